//! When a confirm block may be unsealed.

use crate::event::id::ExperimentId;
use crate::event::id::Root;
use crate::ground::time::Timestamp;
use crate::ledger::Judged as Found;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::decisions::AllDecisions;
use crate::projection::splits::Splits;

/// Why a confirm block cannot be unsealed at a time, whoever pays for it: what was expected, and what stands there.
pub fn kept_shut(
    state: &State,
    experiment: &ExperimentId,
    confirm_root: Root,
    at: Timestamp,
) -> Found {
    let root = confirm_root.0.to_hex();
    if let Some(seq) = state.fold::<AllDecisions>().roots.get(&root) {
        let found = format!("one unsealed at seq {seq}");
        return no("a confirm block that is not spent", found);
    }
    let splits = state.fold::<Splits>().by_experiment.get(experiment);
    let ends = splits.and_then(|of| of.formed.values().filter_map(|formed| formed.t2).max());
    let early = ends.filter(|t2| *t2 > at)?;
    no(
        format!("an unsealing from {early} on, where the confirm window ends"),
        at.to_string(),
    )
}
