//! Where a policy's rewards are uncertain, and where its scores have labels.

use clover_stats::calibrator::Model;
use clover_stats::oua;
use clover_stats::quantile::Edges;
use clover_stats::sample::Clusters;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::analyze::parts::ResultInputs;
use crate::analyze::result::Detail;
use crate::analyze::run::AnalyzeError;

/// Bins of rewards and scores.
const DECILES: usize = 10;

impl ResultInputs<'_> {
    pub(super) fn detail(&self, policy: usize) -> Result<Option<Detail>, AnalyzeError> {
        let Some(calibrator) = self.calibrator.filter(|_| self.request.detail) else {
            return Ok(None);
        };
        let start = self.start(policy);
        let source = &self.dataset.policies[policy];
        let points = &self.unit.frame.of_row()[start..start + source.len()];
        let predicted = |model: &Model| -> Vec<f64> {
            let at = (0..self.unit.frame.len()).map(|point| {
                let point = self.unit.frame.point(point);
                model.predict(point[0], &point[1..])
            });
            let at: Vec<f64> = at.collect();
            points.iter().map(|&point| at[point as usize]).collect()
        };
        let rewards = predicted(&calibrator.full);
        let rewards = Values::new("rewards", &rewards)?;
        let folds: Vec<Vec<f64>> = calibrator.without_fold.iter().map(predicted).collect();
        let folds: Vec<Values<'_>> = folds
            .iter()
            .map(|fold| Values::new("fold rewards", fold))
            .collect::<Result<_, SampleError>>()?;
        let clusters = Clusters::of(&source.prompts)?;
        let share = match oua::share(rewards, &folds, &clusters) {
            Ok(share) => Some(share),
            Err(Unfit::InsufficientData(_)) => None,
            Err(invalid) => return Err(invalid.into()),
        };
        let share_by_decile = match oua::share_by_decile(rewards, &folds, &clusters) {
            Ok(shares) => shares,
            Err(Unfit::InsufficientData(_)) => Vec::new(),
            Err(invalid) => return Err(invalid.into()),
        };
        let of_reward = Edges::equal_frequency(rewards, DECILES)?;
        let scores: Vec<f64> = points
            .iter()
            .map(|&point| self.unit.frame.score(point as usize))
            .collect();
        let of_score = Edges::equal_frequency(Values::new("scores", &scores)?, DECILES)?;
        let labelled = self.labelled_scores();
        let labelled = Values::new("labelled scores", &labelled)?;
        Ok(Some(Detail {
            share,
            share_by_decile,
            decile_rows: of_reward.rows(rewards).iter().map(Vec::len).collect(),
            labels_by_decile: of_score.rows(labelled).iter().map(Vec::len).collect(),
        }))
    }
}
