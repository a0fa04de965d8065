//! Ids of what a ledger holds, for the completion of shells.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use crate::ground::shell;
use crate::ledger::State;
use crate::projection::designs::Designs;
use crate::projection::experiments::Experiments;
use crate::projection::gates::Gates;
use crate::projection::iterations::Iterations;
use crate::projection::judges::Judges;
use crate::projection::tallies::Tallies;
use crate::view::View;
use crate::view::word;

/// What has ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum IdKind {
    /// Label designs.
    Design,
    /// Experiments.
    Experiment,
    /// Gates.
    Gate,
    /// Iterations.
    Iteration,
    /// Judges.
    Judge,
    /// Patches.
    Patch,
}

impl IdKind {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Design,
        Self::Experiment,
        Self::Gate,
        Self::Iteration,
        Self::Judge,
        Self::Patch,
    ];
}

impl FromStr for IdKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| word(kind) == text);
        found.ok_or_else(|| {
            let words = Self::ALL.map(|kind| word(&kind));
            format!("expected one of {}, found {text:?}", words.join(", "))
        })
    }
}

/// Ids of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdList {
    /// Of what.
    pub kind: IdKind,
    /// Those that a shell reads as they stand, ascending. An id that it would read anything else into is left out.
    pub ids: Vec<String>,
}

/// Ids of one kind, one a line.
pub fn list(state: &State, kind: IdKind) -> View {
    let all: BTreeSet<String> = match kind {
        IdKind::Design => {
            let all = state.fold::<Designs>().by_experiment.values();
            all.flat_map(|of| of.designs.keys().map(ToString::to_string))
                .collect()
        }
        IdKind::Experiment => {
            let all = state.fold::<Experiments>().by_id.keys();
            all.map(ToString::to_string).collect()
        }
        IdKind::Gate => {
            let all = state.fold::<Gates>().by_id.keys();
            all.map(ToString::to_string).collect()
        }
        IdKind::Iteration => {
            let all = state.fold::<Iterations>().by_id.keys();
            all.map(ToString::to_string).collect()
        }
        IdKind::Judge => {
            let registered = state.fold::<Judges>().by_experiment.values();
            let registered = registered.flat_map(|of| of.judges.keys());
            // Scores may be imported of a judge that nobody registered.
            let scored = state.fold::<Tallies>().scores.values();
            let scored = scored.flat_map(|judges| judges.keys());
            registered.chain(scored).map(ToString::to_string).collect()
        }
        IdKind::Patch => {
            let all = state.fold::<Iterations>().by_id.values();
            all.flat_map(|of| of.candidates.keys().map(ToString::to_string))
                .collect()
        }
    };
    let ids: Vec<String> = all
        .into_iter()
        .filter(|id| shell::word(id) == *id)
        .collect();
    let facts = IdList { kind, ids };
    let mut view = View::of(&facts);
    view.source(facts.ids.join("\n"));
    view
}
