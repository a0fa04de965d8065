//! By what it is seen that a step of a path was taken.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::event::Kind;
use crate::ledger::State;
use crate::projection::designs::Designs;
use crate::projection::tallies::Tallies;

/// By what it is seen that a step was taken.
#[derive(Clone, Debug)]
pub(super) enum StepMark {
    /// So many entries of a kind, of the experiment.
    Entries(Kind, u64),
    /// A label of the design of this name.
    Labelled(&'static str),
    /// A score of the judge of this name.
    Scored(String),
    /// Rows that were taken in before any score: beside scores it cannot be seen whether their texts were.
    Texts,
    /// A file that it writes; one that is not here says nothing.
    Written(&'static str),
}

/// What the ledger here shows of the experiment that a path is about.
#[derive(Clone, Debug)]
pub struct GuideRecord<'l> {
    /// Its state.
    pub state: &'l State,
    /// Entries by kind, up to as many as the path asks for: of the experiment, or of the whole ledger where a kind belongs to
    /// none.
    /// A kind without any is not there.
    pub entries: BTreeMap<Kind, u64>,
}

impl StepMark {
    /// Whether it shows that the step was taken; `None` where nothing can be seen.
    pub(super) fn seen(
        &self,
        record: Option<&GuideRecord<'_>>,
        (written, experiment): (&BTreeSet<&'static str>, &str),
    ) -> Option<bool> {
        match self {
            Self::Written(name) => written.contains(name).then_some(true),
            Self::Entries(kind, entries) => Some(
                record
                    .and_then(|record| record.entries.get(kind))
                    .is_some_and(|found| found >= entries),
            ),
            Self::Texts => {
                let known = record.map_or((false, false), |record| {
                    let ingested = record.entries.contains_key(&Kind::DataIngested);
                    (ingested, is_scored(record.state, experiment, None))
                });
                (!known.1).then_some(known.0)
            }
            Self::Labelled(name) => {
                Some(record.is_some_and(|record| is_labelled(record.state, experiment, name)))
            }
            Self::Scored(name) => {
                Some(record.is_some_and(|record| is_scored(record.state, experiment, Some(name))))
            }
        }
    }
}

/// Whether a design of the experiment has a label.
fn is_labelled(state: &State, experiment: &str, name: &str) -> bool {
    let all = &state.fold::<Designs>().by_experiment;
    let of = all.iter().find(|(id, _)| id.as_str() == experiment);
    let mut designs = of.into_iter().flat_map(|(_, of)| &of.designs);
    designs.any(|(id, design)| id.as_str() == name && design.first_label_seq.is_some())
}

/// Whether a judge scored in the experiment: the one of this name, or any.
fn is_scored(state: &State, experiment: &str, name: Option<&str>) -> bool {
    let all = &state.fold::<Tallies>().scores;
    let of = all.iter().find(|(id, _)| id.as_str() == experiment);
    let mut judges = of.into_iter().flat_map(|(_, of)| of.keys());
    judges.any(|id| name.is_none_or(|name| id.as_str() == name))
}
