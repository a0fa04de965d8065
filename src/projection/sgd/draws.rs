//! From what the rows of runs are drawn.

use clover_event::SeenCheckpoint;
use clover_event::id::ExperimentId;
use clover_event::payload::gate::DrawnFrom;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use super::SgdRuns;
use crate::beacons::Beacons;

/// The seed of everything that is drawn in an experiment's runs: of parts where no run is named, else of its batches. From
/// rulebook 27 on a checkpoint above the newest label salts it: where rows fall is not known while they are named. Whoever opens
/// the run may still choose among checkpoints above that label, where no entry has named one of them.
pub fn seed_of(
    state: &State,
    experiment: &ExperimentId,
    (beacon, run): (Option<DrawnFrom>, &str),
) -> Option<Digest> {
    let registered = state.fold::<SgdRuns>().experiments.get(experiment)?;
    let mut bytes = match beacon {
        None => b"clover/sgd/seed/v1\0".to_vec(),
        Some(_) => b"clover/sgd/seed/v2\0".to_vec(),
    };
    bytes.extend_from_slice(registered.0.as_bytes());
    if let Some(beacon) = beacon {
        bytes.extend_from_slice(beacon.root.0.as_bytes());
    }
    bytes.extend_from_slice(run.as_bytes());
    Some(Digest::sha256(&bytes))
}

/// The checkpoint that salts the draws of a run that is opened now by an entry that names `seen`: the first one above the newest
/// label that an entry named, and `seen` itself where none did.
pub fn beacon_of(
    state: &State,
    experiment: &ExperimentId,
    seen: Option<SeenCheckpoint>,
) -> Option<DrawnFrom> {
    let is_salted = state.asks(Question::SaltedRows);
    let beacons = state.fold::<Beacons>();
    is_salted
        .then(|| beacons.above_labels(experiment, seen))
        .flatten()
}

/// The seed of the parts of an experiment's rows: that of its first run, once one was opened.
pub fn parts_seed(
    state: &State,
    experiment: &ExperimentId,
    beacon: Option<DrawnFrom>,
) -> Option<Digest> {
    let first = state.fold::<SgdRuns>().first_of(experiment);
    let beacon = first.map_or(beacon, |first| first.said.beacon);
    seed_of(state, experiment, (beacon, ""))
}
