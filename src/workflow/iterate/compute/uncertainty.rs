//! How much of a policy value's variance the calibrator causes, and whether that stops the iteration.

use clover_num::math;
use clover_stats::oua;
use clover_stats::oua::RiskSlice;
use clover_stats::oua::Share;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use rayon::prelude::*;

use crate::iterate::compute::audit::FamilyAudit;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::rows::Table;
use crate::iterate::compute::rows::mean_at;
use crate::iterate::compute::rows::pick;

/// Fold seeds over which the calibration variance is averaged: five folds alone have four degrees of freedom.
pub const FOLD_SEEDS: usize = 20;

/// Shares of the plug-in mean over all logs.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertainty {
    /// Over all logs, the calibration variance averaged over the fold seeds.
    pub share: Share,
    /// By decile of the reward, under the first fold seed.
    pub by_decile: Vec<Option<Share>>,
}

impl Uncertainty {
    /// Labels beyond `labels` that would bring the share to 0.30, as the calibration variance falls with their number:
    /// `m (oua 0.7 / (0.3 main) - 1)`, rounded up; 0 if it is there already.
    pub fn labels_missing(&self, labels: usize) -> usize {
        let allowed = self.share.main * oua::PAUSE_SHARE / (1.0 - oua::PAUSE_SHARE);
        let more = labels as f64 * (self.share.oua / allowed - 1.0);
        if more.is_nan() || more <= 0.0 {
            return 0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at least 0, and what is beyond any count saturates"
        )]
        let more = more.min(1e12).ceil() as usize;
        more
    }
}

/// The share of the baseline. `seeds` are the fold seeds; the first is that of `baseline` itself.
///
/// # Errors
/// [`Unfit`].
pub fn uncertainty(
    table: &Table,
    baseline: &CalibratorFit,
    settings: Settings,
    seeds: &[u64],
) -> Result<Uncertainty, Unfit> {
    let scored = &table.data().scored;
    let logs = table.logs();
    let fold_values = |fitted: &CalibratorFit| -> Vec<f64> {
        (0..fitted.folds)
            .map(|fold| math::mean(&fitted.without_fold(table, scored, fold, logs)))
            .collect()
    };
    let settings = settings.bound_to(baseline);
    // Each seed by itself on any core; the order of seeds is that of the sums.
    let of_seeds: Vec<Result<Vec<f64>, Unfit>> = seeds
        .par_iter()
        .map(|&seed| {
            let fitted = fit::fit(table, scored, Settings { seed, ..settings })?;
            Ok(fold_values(&fitted))
        })
        .collect();
    let of_seeds: Vec<Vec<f64>> = of_seeds.into_iter().collect::<Result<_, _>>()?;
    let columns: Vec<Values<'_>> = of_seeds
        .iter()
        .map(|values| Values::new("fold values", values))
        .collect::<Result<_, _>>()?;
    let rewards = pick(&baseline.rewards, logs);
    let rewards = Values::new("rewards", &rewards)?;
    let clusters = table.clusters(logs)?;
    let folds: Vec<Vec<f64>> = (0..baseline.folds)
        .map(|fold| baseline.without_fold(table, scored, fold, logs))
        .collect();
    let folds: Vec<Values<'_>> = folds
        .iter()
        .map(|fold| Values::new("fold rewards", fold))
        .collect::<Result<_, _>>()?;
    Ok(Uncertainty {
        share: Share {
            rows: logs.len(),
            main: oua::main_variance(rewards, &clusters)?,
            oua: oua::averaged_variance(&columns)?,
        },
        by_decile: oua::share_by_decile(rewards, &folds, &clusters)?,
    })
}

/// Calibration variance of the mean reward on some rows, by the jackknife over folds.
///
/// # Errors
/// [`Unfit`].
pub fn variance_on(
    table: &Table,
    fitted: &CalibratorFit,
    scored: &crate::iterate::compute::rows::RubricScores,
    rows: &[usize],
) -> Result<f64, Unfit> {
    let values: Vec<f64> = (0..fitted.folds)
        .map(|fold| math::mean(&fitted.without_fold(table, scored, fold, rows)))
        .collect();
    Ok(clover_stats::inference::jackknife_variance(&values)?)
}

/// Lower bound on the gain in sight from correcting the mean of every Risk slice of one family.
pub fn promising_gain(audited: &[FamilyAudit]) -> f64 {
    let families: Vec<Vec<RiskSlice>> = audited
        .iter()
        .map(|family| {
            let risk = family.risk();
            risk.filter_map(|slice| {
                let pooled = slice.pooled.as_ref()?;
                Some(RiskSlice {
                    exposure: slice.exposure,
                    mean: pooled.mean,
                    standard_error: pooled.standard_error,
                })
            })
            .collect()
        })
        .collect();
    oua::promising_gain(&families)
}

/// Whether an iteration pauses for labels: a share of at least 0.30, and less than eta in sight.
pub fn pauses(share: Option<f64>, gain: f64, eta: f64) -> bool {
    // A share that has no value means that nothing varies: there is nothing that labels would cure. A gain that is
    // no number is none in sight.
    let in_sight = gain >= eta;
    share.is_some_and(|share| share >= oua::PAUSE_SHARE) && !in_sight
}

/// Mean reward over the logs: the plug-in value that the share is about.
pub fn plug_in(table: &Table, fitted: &CalibratorFit) -> f64 {
    mean_at(&fitted.rewards, table.logs())
}
