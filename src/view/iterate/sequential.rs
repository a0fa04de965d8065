//! A sequential confirm test: labels are shown in the order of the beacon, look by look, as far as the tests need them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::payload::predicate::ConfirmLooked;
use crate::event::payload::predicate::SequentialStop;
use crate::ground::digest::Digest;
use crate::num::math;
use crate::projection::iterations::record::IterationRecord;
use crate::report::spark;
use crate::view::View;
use crate::view::iterate::gates;
use crate::view::iterate::number;

/// A look at confirm.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmLook {
    /// The entry that says it.
    pub seq: u64,
    /// What it says.
    pub look: ConfirmLooked,
}

/// Every look, in order.
pub(super) fn looks(record: &IterationRecord) -> Vec<ConfirmLook> {
    let looks = record.looks.iter().map(|look| ConfirmLook {
        seq: look.seq,
        look: look.said.clone(),
    });
    looks.collect()
}

/// The looks as a table, with the path of each test's wealth.
pub(super) fn put(view: &mut View, record: &IterationRecord) {
    let rows = record.looks.iter().flat_map(|look| {
        let each = look.said.hypotheses.iter();
        each.map(move |of| {
            vec![
                look.seq.to_string(),
                format!("{} of {}", look.said.units, look.said.of_units),
                names(record, of.candidate),
                number(of.test.ln_wealth.value()),
                number(of.test.p.value()),
                match of.test.stop {
                    SequentialStop::Continue => "continue".to_owned(),
                    stop => format!("{} at {}", stop.as_str(), of.test.units),
                },
            ]
        })
    });
    let head = [
        "seq",
        "clusters shown",
        "hypothesis",
        "ln wealth",
        "p",
        "test",
    ];
    view.table(&head, rows);
    let sealed = record.sealed.iter().flat_map(|of| &of.said.hypotheses);
    for one in sealed {
        path(view, record, one.candidate);
    }
    if let Some(look) = record.looks.last().filter(|_| record.saves_labels()) {
        let left = look.said.of_units.value() - look.said.units.value();
        view.sentence(format!(
            "every test stopped, none by crossing: the labels of {left} clusters stay sealed"
        ));
    }
}

/// The path of a test's wealth, where there are two looks or more.
fn path(view: &mut View, record: &IterationRecord, candidate: Digest) {
    let looks = record.looks.iter().flat_map(|look| &look.said.hypotheses);
    let mine = looks.filter(|of| of.candidate == candidate);
    let path: Vec<f64> = mine.map(|of| of.test.ln_wealth.value()).collect();
    if path.len() < 2 {
        return;
    }
    let name = names(record, candidate);
    let sealed = record.sealed.as_ref();
    let divisor = sealed.map_or(1, |of| of.said.divisor.value()) as f64;
    let alpha = record.opened.said.params.alpha_micro.value() as f64 / 1e6;
    let bar = math::ln(divisor / alpha);
    let least = path.iter().copied().fold(0.0, f64::min);
    let line = spark::line(&path, (least, bar));
    let line = format!("{name}  ln wealth {line}, full at {}", number(bar));
    view.chart(vec![line], None);
}

/// The patches of a hypothesis by name.
fn names(record: &IterationRecord, candidate: Digest) -> String {
    let sealed = record.sealed.iter().flat_map(|of| &of.said.hypotheses);
    let of = sealed.filter(|one| one.candidate == candidate);
    let names: BTreeSet<String> = of
        .flat_map(|one| &one.patches)
        .map(|hash| gates::name_of(record, *hash))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(" + ")
}
