//! Two judges held against the same labels: what plans named, and what came of it.

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::scoring::JudgeCompared;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::judges;
use crate::projection::manifests::Manifests;
use crate::report::document::Chapter;
use crate::session::chronicle::Chronicle;
use crate::view::report::experiment::Tally;
use crate::view::report::made::counted;

/// What is counted.
pub(super) const WHAT: &str = "comparisons of judges";

/// Comparisons on record, with the entry of each.
fn recorded(chronicle: &Chronicle) -> Vec<(u64, &JudgeCompared)> {
    let all = chronicle.of(Kind::JudgeCompared);
    all.filter_map(|entry| Some((entry.seq, entry.event.payload.said::<JudgeCompared>()?)))
        .collect()
}

/// Comparisons that plans in force name, and those that nobody planned: the first have an end once they are on record.
pub(super) fn tally(chronicle: &Chronicle, state: &State, experiment: &ExperimentId) -> Tally {
    let recorded = recorded(chronicle);
    let plans = state.fold::<Manifests>().by_id.iter();
    let plans = plans.filter_map(|(id, record)| Some((id, record.in_force()?)));
    let plans = plans.filter(|(_, version)| version.manifest.experiment == *experiment);
    let named: Vec<_> = plans
        .flat_map(|(id, version)| {
            let all = judges::named(&version.manifest).into_iter();
            all.map(move |pair| (id, version.seq, pair))
        })
        .collect();
    let is_there = |(id, _, pair): &&(&ManifestId, u64, String)| {
        recorded.iter().any(|(_, said)| {
            let of = said.plan.as_ref().is_some_and(|plan| plan.manifest == **id);
            of && judges::names(std::slice::from_ref(pair), [&said.first, &said.second])
        })
    };
    let unplanned = recorded.iter().filter(|(_, said)| said.plan.is_none());
    let unplanned: Vec<u64> = unplanned.map(|(seq, _)| *seq).collect();
    let exploratory = unplanned.len() as u64;
    let mut tally = Tally {
        what: WHAT,
        begun: named.iter().map(|(_, seq, _)| *seq).collect(),
        ended: named.iter().filter(is_there).count() as u64 + exploratory,
        says: format!(
            "{} by plans, {exploratory} exploratory",
            counted(named.len() as u64, "was named", "were named")
        ),
    };
    tally.begun.extend(unplanned);
    tally
}

/// Each comparison on record; `None` where there is none and nobody planned one.
pub(super) fn chapter(chronicle: &Chronicle, is_begun: bool) -> Option<Chapter> {
    let columns = [
        ("first", "judge"),
        ("second", "compared with"),
        ("better", "agrees better"),
        ("difference", "squared error, first less second"),
        ("interval", "interval"),
        ("rows", "rows"),
        ("plan", "named by plan"),
    ];
    let title = "Squared errors against the same labels, on the scale of labels";
    let mut table = Table::new("judges", title, &columns);
    for (seq, said) in recorded(chronicle) {
        let better = said
            .better
            .as_ref()
            .map_or("not told apart", |of| of.as_str());
        let plan = said.plan.as_ref();
        let cells = vec![
            Cell::text(said.first.as_str()),
            Cell::text(said.second.as_str()),
            Cell::text(better),
            said.difference.into(),
            Cell::Interval(said.low, said.high),
            said.rows.into(),
            Cell::text(plan.map_or("none, exploratory", |plan| plan.manifest.as_str())),
        ];
        table.row(seq, cells);
    }
    if table.rows.is_empty() && !is_begun {
        return None;
    }
    let mut part = Chapter::new(
        "judges",
        "Comparisons of judges",
        "Which of two judges agrees better with the labels of the rows that both scored. Only one that a plan named before the \
         first label may be claimed.",
    );
    part.table_or(table, "no comparison is on record");
    Some(part)
}
