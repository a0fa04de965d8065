//! Optimizers that see only cards (`schema/SYNTHESIS.md`): the view that is handed over, the test that no row stands in it,
//! what an answer is read as, the deterministic optimizer `cards/1`, and when a run ends with what.

pub mod answer;
pub mod ask;
pub mod cards;
pub mod leak;
pub mod progress;
pub mod rule;
pub mod search;
pub mod view;

use view::OptimizerView;

/// Media type of views and answers.
pub const MEDIA: &str = "application/json";

/// Whoever writes candidates: it is handed one view, and knows nothing else.
pub trait Optimizer {
    /// The answer to a view, byte for byte.
    ///
    /// # Errors
    /// In words, where there is none: the round is asked again by whoever goes on with the run.
    fn answer(&mut self, view: &OptimizerView) -> Result<Vec<u8>, String>;
}
