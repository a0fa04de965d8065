//! A sequential confirm test: labels are shown in the order of the beacon, look by look, as far as the tests need them.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::json;

use crate::cli::iterate::gates;
use crate::cli::iterate::ground::number;
use crate::cli::ui;
use crate::event::payload::predicate::SequentialStop;
use crate::projection::iterations::record::Record;
use crate::report::spark;

/// The looks as a table, with the path of each test's wealth.
pub(super) fn shown(record: &Record) -> (String, Value) {
    let mut rows = Vec::new();
    for look in &record.looks {
        for of in &look.said.hypotheses {
            rows.push(vec![
                look.seq.to_string(),
                format!("{} of {}", look.said.units, look.said.of_units),
                names(record, of.candidate),
                number(of.test.ln_wealth.value()),
                number(of.test.p.value()),
                match of.test.stop {
                    SequentialStop::Continue => "continue".to_owned(),
                    stop => format!("{} at {}", stop.as_str(), of.test.units),
                },
            ]);
        }
    }
    let head = [
        "seq",
        "clusters shown",
        "hypothesis",
        "ln wealth",
        "p",
        "test",
    ];
    let mut text = ui::table(&head, rows);
    let sealed = record.sealed.iter().flat_map(|of| &of.said.hypotheses);
    for one in sealed {
        let path: Vec<f64> = record
            .looks
            .iter()
            .flat_map(|look| &look.said.hypotheses)
            .filter(|of| of.candidate == one.candidate)
            .map(|of| of.test.ln_wealth.value())
            .collect();
        if path.len() > 1 {
            let name = names(record, one.candidate);
            let bar = record
                .sealed
                .as_ref()
                .map_or(1, |of| of.said.divisor.value()) as f64;
            let alpha = record.opened.said.params.alpha_micro.value() as f64 / 1e6;
            let bar = crate::num::math::ln(bar / alpha);
            let least = path.iter().copied().fold(0.0, f64::min);
            let line = spark::line(&path, (least, bar));
            text.push_str(&format!(
                "{name}  ln wealth {line}, full at {}\n",
                number(bar)
            ));
        }
    }
    if let Some(look) = record.looks.last().filter(|_| record.saves_labels()) {
        let left = look.said.of_units.value() - look.said.units.value();
        text.push_str(&ui::wrapped(&format!(
            "every test stopped, none by crossing: the labels of {left} clusters stay sealed"
        )));
    }
    let data: Vec<_> = record
        .looks
        .iter()
        .map(|look| json!({"seq": look.seq, "look": look.said}))
        .collect();
    (text, Value::Array(data))
}

/// The patches of a hypothesis by name.
fn names(record: &Record, candidate: crate::ground::digest::Digest) -> String {
    let sealed = record.sealed.iter().flat_map(|of| &of.said.hypotheses);
    let of = sealed.filter(|one| one.candidate == candidate);
    let names: BTreeSet<String> = of
        .flat_map(|one| &one.patches)
        .map(|hash| gates::name_of(record, *hash))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(" + ")
}
