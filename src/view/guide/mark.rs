//! By what it is seen that a step of a path was taken.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::registry::Scope;
use crate::ledger::State;
use crate::projection::designs::Designs;
use crate::projection::experiments::Experiments;
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
        (written, experiment): (&BTreeSet<&'static str>, &str),
    ) -> Option<bool> {
        match self {
            Self::Written(name) => written.contains(name).then_some(true),
            _ => Some(state.is_some_and(|state| self.is_recorded(state, experiment))),
        }
    }

    /// Whether it is on record in the experiment that the path is about. Entries are counted over the whole ledger, once the
    /// experiment is there.
    fn is_recorded(&self, state: &State, experiment: &str) -> bool {
        let tallies = state.fold::<Tallies>();
        let mut known = state.fold::<Experiments>().by_id.keys();
        let Some(id) = known.find(|id| id.as_str() == experiment) else {
            // Nothing was done in an experiment that nobody registered.
            let is_beside = |kind: &Kind| kind.scope() == Scope::Anywhere;
            return matches!(self, Self::Entries(kind, entries)
                if is_beside(kind) && tallies.of_kind(*kind) >= *entries);
        };
        match self {
            Self::Written(_) => false,
            Self::Entries(kind, entries) => tallies.of_kind(*kind) >= *entries,
            Self::Labelled(name) => {
                let of = state.fold::<Designs>().by_experiment.get(id);
                let mut designs = of.into_iter().flat_map(|of| &of.designs);
                designs.any(|(id, design)| id.as_str() == *name && design.first_label_seq.is_some())
            }
            Self::Scored(name) => {
                let of = tallies.scores.get(id);
                of.is_some_and(|judges| judges.keys().any(|id| id.as_str() == name))
            }
        }
    }
}
