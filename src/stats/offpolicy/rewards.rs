//! What the estimators read: calibrated rewards of logged rows and of the target's draws, under every fold's model.

use crate::calibrator::Calibrator;
use crate::calibrator::Model;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;

/// Calibrated rewards of rows: under the model of all labels, and under the model without each fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewards {
    full: Vec<f64>,
    without_fold: Vec<Vec<f64>>,
}

impl Rewards {
    /// Checks rewards that were computed elsewhere: one column for all labels, one for each fold left out.
    ///
    /// # Errors
    /// [`SampleError`] for columns that are empty, misaligned or not finite, or without folds.
    pub fn new(full: Vec<f64>, without_fold: Vec<Vec<f64>>) -> Result<Self, SampleError> {
        let rows = Values::new("rewards", &full)?.len();
        if without_fold.is_empty() {
            return Err(SampleError::Empty { column: "folds" });
        }
        for column in &without_fold {
            Values::aligned("fold rewards", column, rows)?;
        }
        Ok(Self { full, without_fold })
    }

    /// The rewards of scores and covariates (one column each, as the calibrator was fitted).
    ///
    /// # Errors
    /// [`SampleError`] for columns that are not finite and aligned.
    ///
    /// # Panics
    /// If the calibrator uses more covariates.
    pub fn of(
        calibrator: &Calibrator,
        scores: Values<'_>,
        covariates: &[Values<'_>],
    ) -> Result<Self, SampleError> {
        for covariate in covariates {
            align("covariates", covariate.len(), scores.len())?;
        }
        let under = |model: &Model| at_rows(scores, covariates, |s, x| model.predict(s, x));
        Ok(Self {
            full: under(&calibrator.full),
            without_fold: calibrator.without_fold.iter().map(under).collect(),
        })
    }

    /// Under the model of all labels.
    pub fn full(&self) -> &[f64] {
        &self.full
    }

    /// Under the model without each fold.
    pub fn without_fold(&self) -> &[Vec<f64>] {
        &self.without_fold
    }

    /// Rows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.full.len()
    }
}

/// A function of each row's score and covariates.
fn at_rows(
    scores: Values<'_>,
    covariates: &[Values<'_>],
    of: impl Fn(f64, &[f64]) -> f64,
) -> Vec<f64> {
    let mut row_covariates = vec![0.0; covariates.len()];
    let row = |(row, &score): (usize, &f64)| {
        for (value, column) in row_covariates.iter_mut().zip(covariates) {
            *value = column.as_slice()[row];
        }
        of(score, &row_covariates)
    };
    scores.as_slice().iter().enumerate().map(row).collect()
}

/// Where the calibrator's isotonic step places rows: the score itself, or the rank of the smooth index.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    pub(super) full: Vec<f64>,
    pub(super) without_fold: Vec<Vec<f64>>,
}

impl Ranks {
    /// The ranks of scores and covariates under every model of a calibrator.
    ///
    /// # Errors
    /// [`SampleError`] for columns that are not finite and aligned.
    ///
    /// # Panics
    /// If the calibrator uses more covariates.
    pub fn of(
        calibrator: &Calibrator,
        scores: Values<'_>,
        covariates: &[Values<'_>],
    ) -> Result<Self, SampleError> {
        for covariate in covariates {
            align("covariates", covariate.len(), scores.len())?;
        }
        let under = |model: &Model| at_rows(scores, covariates, |s, x| model.rank(s, x));
        Ok(Self {
            full: under(&calibrator.full),
            without_fold: calibrator.without_fold.iter().map(under).collect(),
        })
    }
}

/// Logged rows: rewards, the fold and the prompt of each.
#[derive(Clone, Debug)]
pub struct LoggedRows<'a> {
    rewards: &'a Rewards,
    folds: &'a [usize],
    prompts: &'a Clusters,
    out_of_fold: Vec<f64>,
}

impl<'a> LoggedRows<'a> {
    /// Pairs rewards with the fold of each row, as numbered by the calibrator, and its prompt.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns, a fold without a model, or a prompt in two folds.
    pub fn new(
        rewards: &'a Rewards,
        folds: &'a [usize],
        prompts: &'a Clusters,
    ) -> Result<Self, SampleError> {
        let rows = rewards.len();
        align("folds", folds.len(), rows)?;
        align("prompts", prompts.of_row().len(), rows)?;
        let models = rewards.without_fold.len();
        let mut fold_of = vec![None; prompts.count()];
        for (&fold, &prompt) in folds.iter().zip(prompts.of_row()) {
            let known = fold_of[prompt as usize].get_or_insert(fold);
            if fold >= models || *known != fold {
                return Err(SampleError::Parameter {
                    name: "folds",
                    expected: "a fold of the calibrator, the same for all rows of a prompt",
                });
            }
        }
        let out_of_fold = (0..rows).map(|row| rewards.without_fold[folds[row]][row]);
        Ok(Self {
            rewards,
            folds,
            prompts,
            out_of_fold: out_of_fold.collect(),
        })
    }

    /// Rewards under every model.
    pub fn rewards(&self) -> &'a Rewards {
        self.rewards
    }

    /// The reward of each row under the model that did not see its fold.
    pub fn out_of_fold(&self) -> &[f64] {
        &self.out_of_fold
    }

    /// The fold of each row.
    pub fn folds(&self) -> &'a [usize] {
        self.folds
    }

    /// The prompt of each row.
    pub fn prompts(&self) -> &'a Clusters {
        self.prompts
    }

    /// Rows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.out_of_fold.len()
    }
}

/// The target's own draws, by the logged rows whose prompt they answer.
#[derive(Clone, Debug)]
pub struct Draws<'a> {
    rewards: &'a Rewards,
    of_prompt: Vec<Vec<usize>>,
}

impl<'a> Draws<'a> {
    /// Pairs draws with logged rows: `prompts` numbers the prompt of each draw as those of the logged rows are numbered;
    /// draws of other prompts carry a number beyond and are not used.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns, another count of fold models, or a logged prompt without a draw: restrict
    /// the logged rows first.
    pub fn new(
        rewards: &'a Rewards,
        prompts: &[u32],
        logged: &LoggedRows<'_>,
    ) -> Result<Self, SampleError> {
        align("draws' prompts", prompts.len(), rewards.len())?;
        align(
            "draws' fold rewards",
            rewards.without_fold.len(),
            logged.rewards.without_fold.len(),
        )?;
        let mut of_prompt = vec![Vec::new(); logged.prompts.count()];
        for (draw, &prompt) in prompts.iter().enumerate() {
            if let Some(draws) = of_prompt.get_mut(prompt as usize) {
                draws.push(draw);
            }
        }
        let empty = |&prompt: &u32| of_prompt[prompt as usize].is_empty();
        if logged.prompts.of_row().iter().any(empty) {
            return Err(SampleError::Parameter {
                name: "draws",
                expected: "at least one for each logged prompt",
            });
        }
        Ok(Self { rewards, of_prompt })
    }

    /// Draws, the unused ones included.
    pub(super) fn len(&self) -> usize {
        self.rewards.len()
    }

    /// The mean over each logged row's draws of a value of (fold of the row, draw).
    pub(super) fn means(
        &self,
        logged: &LoggedRows<'_>,
        of: impl Fn(usize, usize) -> f64,
    ) -> Vec<f64> {
        let rows = logged.folds().iter().zip(logged.prompts().of_row());
        rows.map(|(&fold, &prompt)| {
            let draws = &self.of_prompt[prompt as usize];
            let total = draws.iter().fold(0.0, |sum, &draw| sum + of(fold, draw));
            total / draws.len() as f64
        })
        .collect()
    }

    /// Their rewards.
    pub(super) fn rewards(&self) -> &Rewards {
        self.rewards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_must_fit_together() {
        let rewards = Rewards::new(vec![0.1, 0.2, 0.3], vec![vec![0.1; 3], vec![0.9; 3]]).unwrap();
        let prompts = Clusters::of(["a", "b", "a"]).unwrap();
        let logged = LoggedRows::new(&rewards, &[0, 1, 0], &prompts).unwrap();
        assert_eq!(logged.out_of_fold(), [0.1, 0.9, 0.1]);
        assert!(LoggedRows::new(&rewards, &[0, 1, 1], &prompts).is_err());
        assert!(LoggedRows::new(&rewards, &[0, 2, 0], &prompts).is_err());
        let draws = Rewards::new(vec![0.5; 3], vec![vec![0.4, 0.6, 0.8], vec![0.0; 3]]).unwrap();
        let paired = Draws::new(&draws, &[0, 0, 1], &logged).unwrap();
        let at = |fold: usize, draw: usize| draws.without_fold()[fold][draw];
        assert_eq!(paired.means(&logged, at), [0.5, 0.0, 0.5]);
        assert!(Draws::new(&draws, &[0, 0, 7], &logged).is_err());
        assert!(Rewards::new(vec![0.1], Vec::new()).is_err());
        assert!(Rewards::new(vec![0.1], vec![vec![f64::NAN]]).is_err());
    }
}
