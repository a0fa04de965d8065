//! Labels that are taken in, against what their design can have drawn.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::cli::ctx::Ctx;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::payload::label::LabelPurpose;
use crate::event::payload::label::row_of_draw;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::audits::probes::Probes;
use crate::projection::designs::Designs;
use crate::projection::looks::LookScope;
use crate::projection::looks::OrderLooks;
use crate::projection::timely::TimelyRows;
use crate::session::intake::IntakeRequest;
use crate::view::judge_ask::late_rows;
use crate::workflow::estimate::shape;
use crate::workflow::import::ImportRow;

/// Says of which policies labels become more than their design can have drawn: nothing of them may be claimed then. Rows with
/// a new label in the open, and rows with a new score.
pub(super) fn warn_beyond<'a>(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    request: &IntakeRequest,
    (labelled, scored): (
        impl Iterator<Item = &'a ImportRow>,
        impl Iterator<Item = &'a ImportRow>,
    ),
) {
    let Some((design, LabelPurpose::Calibrate)) = &request.ask.open else {
        return;
    };
    let experiment = &request.ask.experiment;
    let state = ledger.state();
    let mut labelled = labelled.peekable();
    if labelled.peek().is_some() {
        warn_seen(ctx, state, experiment);
    }
    let drawn = state.fold::<Designs>().registered(experiment, design);
    let Some(drawn) = drawn.filter(|of| of.strata.is_empty()) else {
        return;
    };
    // Rows: a second rater of one adds none.
    let rows_of = |rows: &mut dyn Iterator<Item = &'a ImportRow>| {
        let mut found: BTreeMap<&PolicyId, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let id = row_of_draw(&row.policy, &row.item, row.draw);
            found.entry(&row.policy).or_default().insert(id);
        }
        found
    };
    let mut scored = scored;
    let (labelled, scored) = (rows_of(&mut labelled), rows_of(&mut scored));
    let probes = state.fold::<Probes>().by_experiment.get(experiment);
    let rate = (drawn.inclusion_micro as f64 / 1e6).min(1.0);
    for (policy, added) in labelled {
        let known = probes.and_then(|of| of.calibrated.get(policy));
        let known = known.into_iter().flatten().filter(|(_, of)| *of == design);
        let known: BTreeSet<&String> = known.map(|(row, _)| row).collect();
        let labels = known.len() + added.iter().filter(|row| !known.contains(row)).count();
        let before = probes.and_then(|of| of.scores.get(policy));
        let before = before.into_iter().flatten().map(|(_, rows)| rows.count);
        let before = usize::try_from(before.max().unwrap_or(0)).unwrap_or(usize::MAX);
        let rows = before.saturating_add(scored.get(policy).map_or(0, BTreeSet::len));
        if rows > 0 && shape::is_above_draw(rows, labels, rate) {
            ctx.warn(format!(
                "{labels} of {rows} rows of {policy} are then labelled by {design}, which draws about {:.0}: nothing of it may be \
                 claimed; give more labels a design of their own: clover label design new NAME --purpose calibrate \
                 --probability P, then --design NAME",
                rows as f64 * rate
            ));
        }
    }
}

/// Says that an order was seen: after more labels it can be compared, and no longer claimed, unless a plan waits for them.
fn warn_seen(ctx: &mut Ctx<'_>, state: &State, experiment: &ExperimentId) {
    let scope = LookScope::of(state, experiment);
    let seen = state.fold::<OrderLooks>().seen(&scope);
    if let Some(seq) = seen.filter(|_| scope.awaited().is_none()) {
        ctx.warn(format!(
            "an order of policies was seen at seq {seq}: what was claimed of it stands, and one that is compared after these labels is \
             exploratory; new rows in an experiment of their own give a claim of their own"
        ));
    }
}

/// Says of how many rows the scores come late: a label of their policy can be read already.
pub(super) fn warn_late<'a>(
    ctx: &mut Ctx<'_>,
    state: &State,
    experiment: &ExperimentId,
    scored: impl Iterator<Item = &'a PolicyId>,
) {
    let of = state.fold::<TimelyRows>().by_experiment.get(experiment);
    let late = scored.filter(|policy| of.is_some_and(|of| of.is_late_now(policy)));
    if let Some(words) = late_rows(late.count() as u64) {
        ctx.warn(words);
    }
}
