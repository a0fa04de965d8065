//! Reports of samples, written from a ledger file that is made of the sample.

use std::collections::BTreeMap;
use std::sync::Arc;

use clover::event::Kind;
use clover::event::Payload;
use clover::event::id::IterationId;
use clover::ground::ambient::Ambient;
use clover::ground::digest::Digest;
use clover::ground::note::SignedCheckpoint;
use clover::ledger::Ledger;
use clover::ledger::load;
use clover::ledger::load::LogSource;
use clover::projection::iterations::Iterations;
use clover::projection::iterations::story;
use clover::store::OpenOptions;
use clover::workflow::GOVERNED;
use clover::workflow::bundle;
use clover::workflow::estimate::rows::NoCovariates;
use clover::workflow::recompute::Context;
use clover::workflow::recompute::Recomputation;
use clover::workflow::recompute::RecomputeCache;

use super::options;
use super::verifiers::Case;

/// A ledger file of an export.
fn loaded(
    lines: &[u8],
    checkpoint: &[u8],
    blobs: impl IntoIterator<Item = Vec<u8>>,
) -> (tempfile::TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let blobs: Vec<_> = blobs.into_iter().map(Ok).collect();
    let parts = LogSource {
        lines: Box::new(lines),
        checkpoints: vec![SignedCheckpoint::parse(checkpoint).unwrap()],
        blobs: Box::new(blobs.into_iter()),
    };
    load::load(&path, OpenOptions::default(), &GOVERNED, parts, &mut |_| {}).unwrap();
    let ambient = Arc::new(Ambient::system());
    let pins = options(&folder.path().join("pins"));
    let ledger = Ledger::open(&path, ambient, &GOVERNED, pins).unwrap();
    (folder, ledger)
}

/// The report of an iteration at the end of a history, and its bytes.
pub fn report(
    lines: &[u8],
    checkpoint: &[u8],
    blobs: &BTreeMap<Digest, Vec<u8>>,
    iteration: &IterationId,
) -> (Payload, Vec<u8>) {
    let (_folder, ledger) = loaded(lines, checkpoint, blobs.values().cloned());
    let state = ledger.state();
    let it = &state.fold::<Iterations>().by_id[iteration];
    let asked = (ledger.size() - 1, None);
    let story = story::read(&ledger, &it.experiment, iteration, asked).unwrap();
    let found = bundle::bundle(&ledger, &story, state).unwrap();
    let bytes = found.bundle.to_bytes();
    (bundle::published(&found.bundle, None).into(), bytes)
}

/// What becomes of the reports of a sample that are written again.
pub fn written_again(case: &Case) -> Vec<Recomputation> {
    let blobs = case.blobs.clone().unwrap_or_default();
    let checkpoint = case.checkpoint.clone().unwrap();
    let (_folder, ledger) = loaded(&case.ledger, &checkpoint, blobs.into_values());
    let mut reports = Vec::new();
    let take = |read: clover::ledger::read::LogEntry| {
        if read.event.kind() == Kind::ReportPublished {
            reports.push((read.stored.seq, read.event));
        }
        Ok::<_, clover::ledger::LedgerError>(())
    };
    ledger.entries(0, ledger.size(), take).unwrap();
    let (mut nobody, mut cache) = (NoCovariates, RecomputeCache::default());
    let again = reports.into_iter().map(|(seq, event)| {
        let mut context = Context::new(&ledger, &mut nobody, &mut cache).over(&ledger);
        context.replay(seq, &event).unwrap().unwrap().0
    });
    again.collect()
}
