//! Outcome models of the doubly robust estimates: the expected reward of a row without sight of its fold.

use crate::isotonic;
use crate::isotonic::ClipBounds;
use crate::isotonic::Monotonicity;
use crate::offpolicy::rewards::Draws;
use crate::offpolicy::rewards::LoggedRows;
use crate::offpolicy::rewards::Ranks;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;

/// Least weight of a row in a weighted outcome model (`cje-eval` 0.3.0).
const WEIGHT_MIN: f64 = 1e-8;

/// Out-of-fold predictions: of each logged row, and of each draw under the model without each fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub(super) logged: Vec<f64>,
    /// By fold, then draw.
    pub(super) draws: Vec<Vec<f64>>,
}

impl Outcome {
    /// The calibrator itself: `f` without the row's fold. No second model, no second error.
    pub fn calibrator(logged: &LoggedRows<'_>, draws: &Draws<'_>) -> Self {
        Self {
            logged: logged.out_of_fold().to_vec(),
            draws: draws.rewards().without_fold().to_vec(),
        }
    }

    /// Isotonic regressions, one without each fold, of the full model's rewards on the calibrator's own order: logged rows
    /// train at the rank that the model without their fold gives, everything is predicted at the rank of the full
    /// model (`cje-eval` 0.3.0). With `weights`, rows count by them, at least 1e-8 (MRDR's omega = |w|).
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns, or a fold that holds every row.
    pub fn isotonic(
        logged: &LoggedRows<'_>,
        draws: &Draws<'_>,
        logged_ranks: &Ranks,
        draw_ranks: &Ranks,
        weights: Option<Weights<'_>>,
    ) -> Result<Self, SampleError> {
        let rows = logged.len();
        align("logged ranks", logged_ranks.full.len(), rows)?;
        align("draw ranks", draw_ranks.full.len(), draws.len())?;
        let folds = logged.folds();
        let count = logged.rewards().without_fold().len();
        align("fold ranks", logged_ranks.without_fold.len(), count)?;
        let omega = match weights {
            Some(weights) => {
                align("weights", weights.as_slice().len(), rows)?;
                let held = weights.as_slice().iter().map(|w| w.max(WEIGHT_MIN));
                Some(held.collect::<Vec<f64>>())
            }
            None => None,
        };
        let mut predicted = vec![0.0; rows];
        let mut by_fold = Vec::with_capacity(count);
        for fold in 0..count {
            let train: Vec<usize> = (0..rows).filter(|&row| folds[row] != fold).collect();
            let at = |row: &usize| logged_ranks.without_fold[folds[*row]][*row];
            let x: Vec<f64> = train.iter().map(at).collect();
            let y: Vec<f64> = train
                .iter()
                .map(|&row| logged.rewards().full()[row])
                .collect();
            let w: Option<Vec<f64>> = omega
                .as_ref()
                .map(|omega| train.iter().map(|&row| omega[row]).collect());
            let checked = w
                .as_ref()
                .map(|w| Weights::new("weights", w, train.len()))
                .transpose()?;
            let curve = isotonic::fit(
                Values::new("ranks", &x)?,
                Values::new("rewards", &y)?,
                checked,
                ClipBounds::default(),
                Monotonicity::Increasing,
            )?;
            for (row, value) in predicted.iter_mut().enumerate() {
                if folds[row] == fold {
                    *value = curve.at(logged_ranks.full[row]);
                }
            }
            by_fold.push(draw_ranks.full.iter().map(|&rank| curve.at(rank)).collect());
        }
        Ok(Self {
            logged: predicted,
            draws: by_fold,
        })
    }
}
