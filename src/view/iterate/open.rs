//! Iterations that are opened, and every one of them.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::iteration::AnchorRows;
use crate::event::payload::iteration::AnchorSetRegistered;
use crate::event::payload::iteration::IterationOutcome;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::campaign::PATIENCE;
use crate::projection::manifests::Manifests;
use crate::session::iterate::open as session;
use crate::view::View;
use crate::view::appended;
use crate::view::iterate::reach;
use crate::view::iterate::reach::Reach;
use crate::view::word;

/// An iteration that was opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationOpening {
    /// Whether the campaign of its experiment had stopped before.
    pub campaign_stopped: bool,
    /// Digest of its parameters.
    pub params_hash: Digest,
    /// What its data hold of its plan; `null` where it was opened before, or no data are there yet.
    pub reach: Option<Reach>,
}

/// An iteration in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationListing {
    /// Its name.
    pub iteration: IterationId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// The manifest that binds it; `?` where none is registered under its digest.
    pub manifest: String,
    /// How far it is, in one word.
    pub stage: &'static str,
    /// How it ended; `null` while it is open.
    pub outcome: Option<IterationOutcome>,
    /// Patches that were proposed.
    pub patches: u64,
    /// The quarter in which it was opened.
    pub quarter: String,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// The entry that unsealed its confirm block; `null` before.
    pub unsealed_seq: Option<u64>,
    /// Digest of its parameters.
    pub params_hash: Digest,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
}

/// Every iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationList {
    /// By name.
    pub iterations: Vec<IterationListing>,
}

/// Adds to the view of an opening what it was opened with.
pub fn opened(view: View, iteration: &IterationId, of: &session::OpenedIteration) -> View {
    let held = of.reach.as_ref().and_then(|of| of.as_ref().ok());
    let mut view = appended::and(
        view,
        &IterationOpening {
            campaign_stopped: of.is_after_stop,
            params_hash: of.params_hash,
            reach: held.map(Reach::from),
        },
    );
    if view.verdict != "dry_run" {
        let hash = of.params_hash;
        view.line(format!("iteration {iteration}  parameters {hash}"));
    }
    if let Some(held) = &of.reach {
        reach::opened(&mut view, held);
    }
    view.with_next(format!("clover iterate run {}", shell::word(iteration)))
}

/// What follows from opening an iteration after two quiet ones in a row.
pub fn after_the_stop(experiment: &ExperimentId, iteration: &IterationId) -> String {
    format!(
        "the campaign of {experiment} has stopped: in its last {PATIENCE} iterations no slice was significant, every shrunk \
         interval covered 0, and transport passed. {iteration} opens all the same; it may spend a peek, and what it finds \
         is likelier to be noise. The numbers: clover campaign status {experiment}"
    )
}

/// Adds to the view of a registration how many rows hold the scale.
pub fn anchors(mut view: View, of: &AnchorSetRegistered) -> View {
    if view.verdict != "dry_run" {
        let rows = |of: &AnchorRows| format!("{} {} rows", of.policy, of.count);
        let (low, high) = (rows(&of.low), rows(&of.high));
        view.line(format!("low {low} · high {high}"));
    }
    view
}

/// Every iteration.
pub fn list(state: &State) -> View {
    let all = state.fold::<Iterations>().by_id.iter();
    let all = all.map(|(id, it)| {
        let manifest = state.fold::<Manifests>().of_digest(it.digest);
        IterationListing {
            iteration: id.clone(),
            experiment: it.experiment.clone(),
            manifest: manifest.map_or("?", |(id, _)| id.as_str()).to_owned(),
            stage: it.stage().as_str(),
            outcome: it.closed.map(|(outcome, _)| outcome),
            patches: it.candidates.len() as u64,
            quarter: it.quarter.clone(),
            opened_seq: it.opened_seq,
            unsealed_seq: it.unsealed_seq,
            params_hash: it.params_hash,
            rubric_hash: it.rubric_hash,
        }
    });
    let facts = IterationList {
        iterations: all.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.iterations.iter().map(|it| {
        vec![
            it.iteration.to_string(),
            it.experiment.to_string(),
            it.manifest.clone(),
            it.outcome
                .map_or(it.stage.to_owned(), |outcome| word(&outcome)),
            it.patches.to_string(),
            it.quarter.clone(),
            format!("seq {}", it.opened_seq),
        ]
    });
    let head = [
        "iteration",
        "experiment",
        "manifest",
        "standing",
        "patches",
        "quarter",
        "opened",
    ];
    view.table(&head, rows);
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opens_after_the_stop_is_told_what_follows() {
        let (experiment, iteration) = ("arena".parse().unwrap(), "it-9".parse().unwrap());
        let words = after_the_stop(&experiment, &iteration);
        for part in [
            "the campaign of arena has stopped",
            "it-9 opens all the same",
            "may spend a peek",
            "clover campaign status arena",
        ] {
            assert!(words.contains(part), "{words}");
        }
    }
}
