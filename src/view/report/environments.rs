//! Tests of transport by environment, and the regimes that people chose after one failed.

use crate::event::Kind;
use crate::event::payload::Verdict;
use crate::event::payload::environment::EnvironmentsTested;
use crate::event::payload::environment::RegimeSelected;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::shown;
use crate::session::chronicle::Chronicle;
use crate::view::estimate::said;
use crate::view::report::experiment::Tally;

/// Each environment of each family that was tested, the failed ones too, on the scale of labels.
fn tested(chronicle: &Chronicle) -> Table {
    let columns = [
        ("environment", "environment"),
        ("verdict", "verdict"),
        ("mean_residual", "mean residual"),
        ("interval", "interval"),
        ("p_adjusted", "p, corrected"),
        ("rows", "probes"),
        ("required", "a claim needs it"),
        ("design", "design"),
        ("judge", "judge"),
    ];
    let title = "Tests by environment, label less calibrated score, on the scale of labels";
    let mut table = Table::new("environments", title, &columns);
    for entry in chronicle.of(Kind::EnvironmentsTested) {
        let Some(of) = entry.event.payload.said::<EnvironmentsTested>() else {
            continue;
        };
        let span = said::span(of.terms.label_scale);
        for outcome in &of.environments {
            let mean = Cell::maybe(outcome.mean, |mean| Cell::number(mean.value() * span));
            let ends = outcome
                .interval
                .and_then(|ends| said::scaled(ends, span))
                .map_or(Cell::Absent, |(low, high)| Cell::Interval(low, high));
            let cells = vec![
                Cell::text(outcome.scope.to_string()),
                outcome.verdict.into(),
                mean,
                ends,
                Cell::maybe(outcome.p_adjusted, |p| Cell::number(p.value())),
                outcome.rows.into(),
                outcome.required.into(),
                Cell::text(of.design.as_str()),
                Cell::text(of.terms.judge.as_str()),
            ];
            table.row(entry.seq, cells);
        }
    }
    table
}

/// How rewards may be used where a test failed, as people chose.
fn regimes(chronicle: &Chronicle) -> Table {
    let columns = [
        ("environment", "environment"),
        ("regime", "regime"),
        ("meaning", "what it allows"),
        ("judge", "judge"),
        ("tested_seq", "after the test at seq"),
        ("reason", "why"),
    ];
    let mut table = Table::new("regimes", "Regimes", &columns);
    for entry in chronicle.of(Kind::RegimeSelected) {
        let Some(of) = entry.event.payload.said::<RegimeSelected>() else {
            continue;
        };
        let cells = vec![
            Cell::text(of.scope.to_string()),
            Cell::text(of.regime.as_str()),
            Cell::text(of.regime.words()),
            Cell::text(of.judge.as_str()),
            of.tested_seq.into(),
            Cell::text(of.reason.as_str()),
        ];
        table.row(entry.seq, cells);
    }
    table
}

/// Tests of calibration in environments, with what each environment came to.
pub(super) fn tally(chronicle: &Chronicle) -> Tally {
    let all: Vec<_> = chronicle.of(Kind::EnvironmentsTested).collect();
    let tests = all
        .iter()
        .filter_map(|entry| entry.event.payload.said::<EnvironmentsTested>());
    let verdicts: Vec<_> = tests
        .flat_map(|of| of.environments.iter().map(|of| of.verdict))
        .collect();
    let each = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Inconclusive,
        Verdict::NotChecked,
    ];
    let says = each.into_iter().filter_map(|verdict| {
        let count = verdicts.iter().filter(|of| **of == verdict).count();
        (count > 0).then(|| format!("{count} {}", shown::word(verdict)))
    });
    Tally {
        what: "tests of environments",
        begun: all.iter().map(|entry| entry.seq).collect(),
        ended: all.len() as u64,
        says: format!("environments: {}", says.collect::<Vec<_>>().join(", ")),
    }
}

/// The chapter of environments; `None` where none was ever tested or chosen.
pub(super) fn chapter(chronicle: &Chronicle) -> Option<Chapter> {
    let tables = [tested(chronicle), regimes(chronicle)];
    let tables: Vec<_> = tables
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect();
    if tables.is_empty() {
        return None;
    }
    let mut chapter = Chapter::new(
        "environments",
        "Environments",
        "Whether calibration holds in each environment of the plan, and how rewards may be used where it does not.",
    );
    chapter.tables = tables;
    Some(chapter)
}
