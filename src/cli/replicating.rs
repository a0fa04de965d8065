//! A bootstrap: how many replicates it takes, and how far it has come.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::cli::error::CliError;
use crate::cli::ui::Progress;
use crate::stats::direct::ClusterWeights;
use crate::stats::direct::REPLICATES_MAX;

/// Fewest replicates of an interval.
const REPLICATES_MIN: usize = 200;
/// Fewest replicates beyond the two ends of an interval together: its ends are no lone extremes.
const BEYOND_MIN: f64 = 10.0;

/// A number of replicates that an interval of this level can rest on.
pub(super) fn checked(replicates: usize, alpha: f64, help: &str) -> Result<(), CliError> {
    let least = (BEYOND_MIN / alpha - 1e-6)
        .ceil()
        .max(REPLICATES_MIN as f64);
    if least > REPLICATES_MAX as f64 {
        let message = format!(
            "--alpha {alpha}: expected at least {} with --bootstrap, whose intervals rest on at most {REPLICATES_MAX} \
             replicates",
            BEYOND_MIN / REPLICATES_MAX as f64
        );
        return Err(CliError::usage(message, help));
    }
    if (replicates as f64) < least || replicates > REPLICATES_MAX {
        let message = format!(
            "--bootstrap {replicates}: expected {least:.0} to {REPLICATES_MAX} at --alpha {alpha}: five replicates or \
             more beyond each end of an interval"
        );
        return Err(CliError::usage(message, help));
    }
    Ok(())
}

/// Random weights that show how far they have come.
pub(super) struct WeightProgress<'w> {
    weights: Box<dyn ClusterWeights>,
    done: AtomicU64,
    progress: Mutex<Progress<'w>>,
}

impl ClusterWeights for WeightProgress<'_> {
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

impl<'w> WeightProgress<'w> {
    /// These weights, shown.
    pub(super) fn new(weights: Box<dyn ClusterWeights>, progress: Progress<'w>) -> Self {
        Self {
            weights,
            done: AtomicU64::new(0),
            progress: Mutex::new(progress),
        }
    }
}
