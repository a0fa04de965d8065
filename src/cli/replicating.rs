//! Progress of a bootstrap.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::cli::ui::Progress;
use crate::stats::direct::ClusterWeights;

/// Random weights that show how far they have come.
pub(super) struct Replicating<'w> {
    weights: Box<dyn ClusterWeights>,
    done: AtomicU64,
    progress: Mutex<Progress<'w>>,
}

impl ClusterWeights for Replicating<'_> {
    fn replicates(&self) -> usize {
        self.weights.replicates()
    }

    fn weights(&self, replicate: usize, clusters: usize) -> Vec<f64> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        // A thread that cannot show progress at once goes on without.
        if let Ok(mut progress) = self.progress.try_lock() {
            progress.at(done, self.weights.replicates() as u64);
        }
        self.weights.weights(replicate, clusters)
    }
}

impl<'w> Replicating<'w> {
    /// These weights, shown.
    pub(super) fn new(weights: Box<dyn ClusterWeights>, progress: Progress<'w>) -> Self {
        Self {
            weights,
            done: AtomicU64::new(0),
            progress: Mutex::new(progress),
        }
    }
}
