//! By what it is seen that a step of a path was taken.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::ledger::State;
use crate::projection::designs::Designs;
use crate::projection::tallies::Tallies;

/// By what it is seen that a step was taken.
#[derive(Clone, Debug)]
pub(super) enum StepMark {
    /// So many entries of a kind.
    Entries(Kind, u64),
    /// A label of the design of this name.
    Labelled(&'static str),
    /// A score of the judge of this name.
    Scored(String),
    /// A file that it writes; one that is not here says nothing.
    Written(&'static str),
}

impl StepMark {
    /// Whether it shows that the step was taken; `None` where nothing can be seen.
    pub(super) fn seen(
        &self,
        state: Option<&State>,
        written: &BTreeSet<&'static str>,
    ) -> Option<bool> {
        match self {
            Self::Written(name) => written.contains(name).then_some(true),
            _ => Some(state.is_some_and(|state| self.is_recorded(state))),
        }
    }

    fn is_recorded(&self, state: &State) -> bool {
        let tallies = state.fold::<Tallies>();
        match self {
            Self::Written(_) => false,
            Self::Entries(kind, entries) => tallies.of_kind(*kind) >= *entries,
            Self::Labelled(name) => {
                let mut all = state.fold::<Designs>().by_experiment.values();
                all.any(|of| {
                    let mut designs = of.designs.iter();
                    designs.any(|(id, design)| {
                        id.as_str() == *name && design.first_label_seq.is_some()
                    })
                })
            }
            Self::Scored(name) => {
                let mut all = tallies.scores.values();
                all.any(|judges| judges.keys().any(|id| id.as_str() == name))
            }
        }
    }
}
