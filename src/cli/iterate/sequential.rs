//! A sequential confirm test: labels are shown in the order of the beacon, look by look, as far as the tests need them.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::json;

use crate::cli::confirm::Opening;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground::number;
use crate::cli::ui;
use crate::event::id::ItemId;
use crate::event::payload::label::draw_of_row;
use crate::event::payload::manifest::ConfirmTest;
use crate::event::payload::predicate::SequentialStop;
use crate::ledger::Appended;
use crate::num::Count;
use crate::report::spark;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::record::Record;
use crate::workflow::iterate::rows::Unit;

/// Whether an iteration shows its confirm labels in parts.
pub(super) fn is_registered(record: &Record) -> bool {
    record.opened.said.params.confirm_test == ConfirmTest::Sequential
}

/// Shows labels and looks, until every test stopped or the block ends; where one crossed, the rest is shown.
pub(super) fn looks(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    course: &Course,
    opening: Option<&Opening>,
) -> Result<Vec<Appended>, CliError> {
    let plan = bench.record.opened.said.params.sequential.as_ref();
    let every = plan.map_or(1, |plan| whole(plan.look_every)).max(1);
    let mut all = Vec::new();
    loop {
        let size = bench.ledger.size();
        let rows = course.unsealed(&bench.ledger, &bench.record, size);
        let rows = rows.map_err(failed)?;
        let Some(sequence) = rows.sequence.as_ref() else {
            let message = "no checkpoint above the sealing of candidates is named yet";
            return Err(CliError::refused(message, "clover checkpoint"));
        };
        let (shown, units) = (sequence.shown(), sequence.units.len());
        let last = bench.record.looks.last();
        let looked = last.map_or(0, |look| whole(look.said.units));
        let settled =
            last.is_some_and(|look| stops(look).all(|stop| stop != SequentialStop::Continue));
        let crossed =
            last.is_some_and(|look| stops(look).any(|stop| stop == SequentialStop::Crossed));
        let is_whole = shown == units && (looked == units || settled);
        if bench.record.saves_labels() || is_whole {
            return Ok(all);
        }
        let target = if settled && crossed {
            units
        } else {
            looked.saturating_add(every).min(units)
        };
        if shown >= target {
            let sealed = course.sealed(&bench.record).map_err(failed)?;
            let look = course.looked(&rows, &sealed).map_err(failed)?;
            all.extend(bench.say(ctx, vec![look.into()])?);
            continue;
        }
        let next = &sequence.units[shown..target];
        reveal(ctx, bench, opening, next)?;
    }
}

/// More than any machine has places for is all of them.
fn whole(count: Count) -> usize {
    usize::try_from(count.value()).unwrap_or(usize::MAX)
}

fn stops(
    look: &crate::workflow::iterate::record::Said<crate::event::payload::predicate::ConfirmLooked>,
) -> impl Iterator<Item = SequentialStop> {
    look.said.hypotheses.iter().map(|of| of.test.stop)
}

/// Shows the labels of some clusters.
fn reveal(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    opening: Option<&Opening>,
    units: &[Unit],
) -> Result<(), CliError> {
    let Some(opening) = opening else {
        let message = "sealed labels of the block are in no design that waits";
        return Err(CliError::refused(message, "clover confirm status"));
    };
    let places: std::collections::BTreeMap<&ItemId, usize> = units
        .iter()
        .enumerate()
        .map(|(at, unit)| (&unit.item, at))
        .collect();
    let place = |row: &crate::event::id::RowId| {
        let (_, item, _) = draw_of_row(row)?;
        places.get(&item).copied()
    };
    let (values, _) = opening.reveal_in(ctx, &mut bench.ledger, &place)?;
    if values.is_empty() {
        let message = "a cluster of the block waits whose label is in another design";
        return Err(CliError::refused(message, "clover confirm status"));
    }
    bench.again()
}

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
