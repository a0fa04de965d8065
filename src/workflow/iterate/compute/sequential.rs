//! The sequential confirm test of one candidate, cluster by cluster in the order of the beacon.

use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::predicate::SequentialLook;
use clover_event::payload::predicate::SequentialStop;
use clover_event::payload::predicate::Thresholds;
use clover_num::Count;
use clover_num::Probability;
use clover_num::math;
use clover_stats::predicate;
use clover_stats::predicate::Sequential;
use clover_stats::predicate::SequentialTerms;
use clover_stats::predicate::SequentialVerdict;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;

use crate::iterate::compute::evidence::RewardComparison;
use crate::iterate::compute::evidence::finite;
use crate::iterate::compute::rows::pick;

/// The clusters of a confirm block in their order, and how many of them are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What the tests are held to.
    pub terms: SequentialTerms,
    /// Rows of each cluster that have a sealed label; none where no score was recorded before the unsealing.
    pub units: Vec<Vec<usize>>,
    /// Clusters whose labels are all shown: the first of them.
    pub shown: usize,
}

/// What a plan holds its sequential tests to; `None` for a plan with another test.
pub fn terms_of(plan: &IterationPlan, thresholds: &Thresholds) -> Option<SequentialTerms> {
    let of = plan.sequential.as_ref()?;
    let real = |micro: clover_num::Micro| micro.value() as f64 / 1e6;
    Some(SequentialTerms {
        hypotheses: usize::try_from(thresholds.hypotheses.value()).unwrap_or(usize::MAX),
        alpha: real(thresholds.alpha_micro),
        effect: real(plan.effect_micro),
        beta: real(of.beta_futile_micro),
        harm: real(of.alpha_harm_micro),
    })
}

impl RewardComparison<'_> {
    /// The test of the candidate over the clusters that are shown: `H` from the rewards of every row of the block, then
    /// the mean difference of each cluster in turn.
    ///
    /// # Errors
    /// [`Unfit`] for numbers that are none.
    pub fn sequential(&self, block: &Block) -> Result<SequentialLook, Unfit> {
        let rows: Vec<usize> = block.units.iter().flatten().copied().collect();
        let (before, after) = (pick(self.before, &rows), pick(self.after, &rows));
        let bound = predicate::bound(&before, &after);
        let gain = predicate::bound(&after, &before);
        let mut test = Sequential::new(bound, gain, &block.terms)?;
        for unit in &block.units[..block.shown.min(block.units.len())] {
            let differences: Vec<f64> = unit
                .iter()
                .filter_map(|&row| {
                    let label = self.table.data().labels[row]?;
                    let (old, new) = (label - self.before[row], label - self.after[row]);
                    Some(new * new - old * old)
                })
                .collect();
            if !differences.is_empty() {
                test.push(math::mean(&differences))?;
            }
        }
        Ok(look(&test, bound)?)
    }
}

fn look(test: &Sequential, bound: f64) -> Result<SequentialLook, SampleError> {
    Ok(SequentialLook {
        bound: finite(bound)?,
        ln_peak: finite(test.ln_peak())?,
        ln_wealth: finite(test.ln_wealth())?,
        p: Probability::new(test.p()).unwrap_or(Probability::ONE),
        stop: match test.verdict() {
            SequentialVerdict::Continue => SequentialStop::Continue,
            SequentialVerdict::Crossed => SequentialStop::Crossed,
            SequentialVerdict::Futile => SequentialStop::Futile,
            SequentialVerdict::Harmful => SequentialStop::Harmful,
        },
        units: Count::new(test.n()).unwrap_or_default(),
    })
}
