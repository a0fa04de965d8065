//! What an experiment has registered that bears on a claim: designs for audits, and assumptions that fail.

use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::label::DesignPurpose;
use crate::ledger::State;
use crate::projection::assumptions::Assumptions;
use crate::projection::designs::Designs;
use crate::projection::runs::ModelRuns;
use crate::view::judge_noise;

/// Designs for audits of an experiment, with whether any of their labels is on record.
pub(super) fn probes(state: &State, experiment: &ExperimentId) -> Vec<(DesignId, bool)> {
    let designs = state.fold::<Designs>().by_experiment.get(experiment);
    let designs = designs.into_iter().flat_map(|of| &of.designs);
    let audits = designs.filter_map(|(id, design)| {
        let of = design.registered.as_ref()?;
        let is_labelled = design.open + design.sealed > 0;
        (of.purpose == DesignPurpose::Audit).then(|| (id.clone(), is_labelled))
    });
    audits.collect()
}

/// Assumptions that fail and that no label mends.
pub(super) fn assumptions(
    state: &State,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Vec<String> {
    let assumptions = state.fold::<Assumptions>();
    let failed = assumptions.failed(Assumption::A0, Some(experiment));
    // A contradiction lasts where the rulebook says so, whatever a later re-score found.
    let contradicted = assumptions.contradicted_by(state, experiment, judge);
    let said = |code: Assumption, words: &str, seq: u64| {
        format!("{words} ({code} fails since seq {seq}).")
    };
    let found = [
        failed.map(|seq| {
            said(
                Assumption::A0,
                "The label does not mean what it stands for",
                seq,
            )
        }),
        contradicted.map(|of| {
            let words = format!("Judge {judge} gave the same answer different scores");
            said(Assumption::CloverJ2, &words, of.seq)
        }),
    ];
    found.into_iter().flatten().collect()
}

/// How much scores of a judge behind HTTP waver, as it was measured; `None` of other judges.
pub(super) fn noise(state: &State, experiment: &ExperimentId, judge: &JudgeId) -> Option<String> {
    let of = state.fold::<ModelRuns>().noise_of(experiment, judge)?;
    let words = judge_noise::in_words(&of.pooled());
    Some(words.map_or_else(
        || format!("Nobody measured how much scores of {judge} waver: clover judge noise."),
        |words| format!("{judge}: {words}."),
    ))
}
