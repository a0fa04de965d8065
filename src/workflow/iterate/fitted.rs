//! Calibrators of an iteration as events say them: the fit, its share of the variance, and labels where scores lie.

use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::DecileShare;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::audit::TailSupport;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::IterationFit;
use clover_event::payload::estimate::IterationTerms;
use clover_event::payload::estimated::CalibratorMode;
use clover_event::payload::estimated::IntervalEnds;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Count;
use clover_num::Finite;
use clover_num::math;
use clover_stats::boundary;
use clover_stats::boundary::Slopes;
use clover_stats::boundary::TailCoverage;
use clover_stats::calibrator::Mode;
use clover_stats::calibrator::Model;
use clover_stats::quantile;
use clover_stats::quantile::Edges;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::estimate::compute::blob;
use crate::estimate::terms;
use crate::estimate::terms::size;
use crate::iterate::compute::Table;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::compute::rows::pick;
use crate::iterate::rows::IterationDataset;
use crate::iterate::said;
use crate::iterate::said::finite;
use crate::iterate::steps::BUILD;
use crate::iterate::steps::CandidateFit;
use crate::iterate::steps::Ground;
use crate::iterate::steps::OpenIteration;

/// Label of the digest of folds.
const FOLDS_LABEL: &str = "clover/iteration-folds/v1";
/// Label of the digest of a curve.
const KNOTS_LABEL: &str = "clover/iteration-knots/v1";
/// Tenths of scores and rewards.
const DECILES: usize = 10;
/// Errors within which a prediction is near its label.
const NEAR: f64 = 0.1;

/// A fit with the blobs that it names: its curves, and its rows.
#[derive(Clone, Debug)]
pub struct FitRecord {
    /// The event.
    pub event: CalibratorFitted,
    /// The blobs.
    pub blobs: [Vec<u8>; 2],
}

/// An iteration with its rows, as its calibrators are said of.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitContext<'a> {
    pub opened: &'a OpenIteration,
    pub loaded: &'a IterationDataset,
    pub ground: &'a Ground,
}

/// One labelled row of a fit.
#[derive(serde::Serialize)]
struct FitRow<'a> {
    draw: Count,
    fold: usize,
    item: &'a str,
    label: Option<Finite>,
    policy: &'a str,
    score: Finite,
}

fn range(values: &[f64]) -> Result<IntervalEnds, SampleError> {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
    Ok(IntervalEnds {
        high: finite(high)?,
        low: finite(low)?,
    })
}

/// Root mean square of `label - reward`, and the share of rows where it is at most 0.1.
fn errors(labels: &[f64], rewards: &[f64]) -> (f64, f64) {
    let off: Vec<f64> = labels.iter().zip(rewards).map(|(y, r)| y - r).collect();
    let squares: Vec<f64> = off.iter().map(|d| d * d).collect();
    let near = off.iter().filter(|d| d.abs() <= NEAR).count();
    (
        math::mean(&squares).sqrt(),
        near as f64 / off.len().max(1) as f64,
    )
}

impl FitContext<'_> {
    fn table(&self) -> &Table {
        &self.loaded.table
    }

    /// On which terms: the registered mode for the rubric in force, whose choice binds candidates.
    fn terms(
        &self,
        candidate: Option<Digest>,
        rubric_hash: Digest,
        judge: Option<&JudgeId>,
    ) -> EstimateTerms {
        let judge = judge.unwrap_or(&self.loaded.judge);
        let design = self.opened.plan.design.as_ref();
        let covariates = design.map(|design| design.covariates.clone());
        let mut terms = terms::usual(judge.clone(), covariates.unwrap_or_default());
        let settings = match candidate {
            None => self.opened.settings(),
            Some(_) => self.ground.settings,
        };
        terms.fold_seed = Count::new(settings.seed).unwrap_or_default();
        terms.folds = size(settings.folds);
        terms.mode = match settings.mode {
            Mode::Auto => CalibratorMode::Auto,
            Mode::Monotone => CalibratorMode::Monotone,
            Mode::TwoStage => CalibratorMode::TwoStage,
        };
        terms.iteration = Some(IterationTerms {
            candidate,
            iteration: self.opened.iteration.clone(),
            rubric_hash,
        });
        terms
    }

    /// The labelled rows of fit with their folds, a line each, and the root over them.
    fn lines(
        &self,
        fitted: &CalibratorFit,
        scored: &RubricScores,
    ) -> Result<(Vec<u8>, Digest), SampleError> {
        let (mut bytes, mut tree) = (Vec::new(), Frontier::new());
        for (&row, &fold) in fitted.rows.iter().zip(&fitted.fold_of) {
            let name = &self.loaded.names[row];
            let label = self.table().data().labels[row];
            let line = FitRow {
                draw: name.draw,
                fold,
                item: name.item.as_str(),
                label: label.and_then(Finite::new),
                policy: name.policy.as_str(),
                score: finite(scored.scores[row])?,
            };
            let line = canon::to_bytes(&line).expect("BUG: ids and finite numbers are canonical");
            tree.push(merkle::leaf_hash(&line));
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
        }
        Ok((bytes, tree.root()))
    }

    fn slopes(&self, fitted: &CalibratorFit, scored: &RubricScores) -> Result<Slopes, SampleError> {
        let scores = pick(&scored.scores, &fitted.rows);
        let points = boundary::slope_points(Values::new("labelled scores", &scores)?);
        let covariates = self.table().data().covariates.iter();
        let medians: Vec<f64> = covariates
            .map(|column| {
                let sorted = quantile::ascending(&pick(column, &fitted.rows));
                quantile::type_7(&sorted, 0.5)
            })
            .collect();
        let values = points.map(|score| fitted.calibrator.predict(score, &medians));
        Ok(boundary::slopes(points, values))
    }

    /// Errors out of fold of both calibrators of the rubric in force: what tells whether labels are monotone in scores.
    fn both(&self) -> Result<(Finite, Finite), Unfit> {
        let (table, settings) = (self.table(), self.opened.settings());
        let labels = table.labels(&self.ground.baseline.rows);
        let chosen = self.ground.settings.mode;
        let of = |mode: Mode| -> Result<Finite, Unfit> {
            let (rmse, _) = if mode == chosen {
                errors(&labels, &self.ground.baseline.out_of_fold)
            } else {
                let settings = Settings { mode, ..settings };
                let fitted = fit::fit(table, &table.data().scored, settings)?;
                errors(&labels, &fitted.out_of_fold)
            };
            Ok(finite(rmse)?)
        };
        Ok((of(Mode::Monotone)?, of(Mode::TwoStage)?))
    }

    fn fitted(
        &self,
        (fitted, scored): (&CalibratorFit, &RubricScores),
        (candidate, rubric_hash, judge): (Option<Digest>, Digest, Option<&JudgeId>),
    ) -> Result<FitRecord, Unfit> {
        let table = self.table();
        let labels = table.labels(&fitted.rows);
        let rewards = pick(&fitted.rewards, &fitted.rows);
        let (oof_rmse, near) = errors(&labels, &fitted.out_of_fold);
        let (rmse, _) = errors(&labels, &rewards);
        let (curves, digest) = said::model(fitted);
        let (rows, root) = self.lines(fitted, scored)?;
        let slopes = self.slopes(fitted, scored)?;
        let both = candidate.is_none().then(|| self.both()).transpose()?;
        let names = fitted.rows.iter().map(|&row| &table.data().rows[row]);
        let folds: Vec<_> = names.zip(&fitted.fold_of).collect();
        let (Model::Monotone(curve) | Model::Ranked { curve, .. }) = &fitted.calibrator.full;
        let knots = |values: &[f64]| -> Vec<Option<Finite>> {
            values.iter().map(|value| Finite::new(*value)).collect()
        };
        let (x, y) = curve.knots();
        let event = CalibratorFitted {
            algorithm: terms::text(fitted.calibrator.settings.algorithm.name()),
            build: terms::text(BUILD),
            calibrator: digest,
            clusters: size(table.clusters(&fitted.rows)?.count()),
            folds: size(fitted.folds),
            iteration: Some(IterationFit {
                atom_rows: size(fitted.atom.as_ref().map_or(0, |atom| atom.rows)),
                fit_root: self.loaded.fit_root,
                folds_hash: canon::digest(FOLDS_LABEL, &folds),
                inputs: self.ground.inputs,
                knots_hash: canon::digest(KNOTS_LABEL, &(knots(x), knots(y))),
                oof_rmse_monotone: both.map(|of| of.0),
                oof_rmse_two_stage: both.map(|of| of.1),
            }),
            labels: size(fitted.rows.len()),
            labels_by_policy: Vec::new(),
            model: blob(&curves, "application/json"),
            oof_rmse: finite(oof_rmse)?,
            oof_within_tenth: finite(near)?,
            reward_range: range(&rewards)?,
            rmse: finite(rmse)?,
            rows: blob(&rows, "application/x-ndjson"),
            rows_root: Root(root),
            score_range: range(&pick(&scored.scores, &fitted.rows))?,
            selected: terms::kind(fitted.calibrator.selected),
            slope_high: slopes.high.map(finite).transpose()?,
            slope_low: slopes.low.map(finite).transpose()?,
            terms: self.terms(candidate, rubric_hash, judge),
            through_seq: self.ground.inputs.through_seq,
            uses_covariates: fitted.calibrator.uses_covariates,
        };
        let blobs = [curves, rows];
        Ok(FitRecord { event, blobs })
    }

    /// The calibrator of the rubric in force.
    pub(super) fn baseline(&self) -> Result<FitRecord, Unfit> {
        let of = (&self.ground.baseline, &self.table().data().scored);
        self.fitted(of, (None, self.loaded.rubric.hash(), None))
    }

    /// The calibrator of a candidate, whose rubric has this hash, for the judge that was asked anew if one was.
    pub(super) fn candidate(
        &self,
        of: &CandidateFit,
        rubric_hash: Digest,
        judge: Option<&JudgeId>,
    ) -> Result<FitRecord, Unfit> {
        let by = (Some(of.candidate.patch), rubric_hash, judge);
        self.fitted((&of.fitted, &of.candidate.scored), by)
    }

    /// Merkle root over the names of the logs.
    fn logs_root(&self) -> Root {
        let table = self.table();
        let mut tree = Frontier::new();
        for &row in table.logs() {
            tree.push(merkle::leaf_hash(table.data().rows[row].as_bytes()));
        }
        Root(tree.root())
    }

    /// The share of the plug-in mean over all logs that the calibrator causes.
    fn oua(&self, calibrator: &CalibratorFitted) -> Result<OuaEstimated, Unfit> {
        let (table, found) = (self.table(), &self.ground.uncertainty);
        let rewards = pick(&self.ground.baseline.rewards, table.logs());
        let rewards = Values::new("rewards", &rewards)?;
        let tenths = Edges::equal_frequency(rewards, DECILES)?.rows(rewards);
        let tenths = tenths.iter().zip(&found.by_decile);
        let tenths = tenths.map(|(rows, share)| {
            let share = share.and_then(|of| of.share()).map(finite).transpose()?;
            let rows = size(rows.len());
            Ok(DecileShare { rows, share })
        });
        let seeds = self.ground.fold_seeds.iter();
        Ok(OuaEstimated {
            build: terms::text(BUILD),
            calibrator: calibrator.calibrator,
            fold_seeds: seeds.filter_map(|seed| Count::new(*seed)).collect(),
            inputs: Some(self.ground.inputs),
            policy: None,
            rows_root: self.logs_root(),
            share: found.share.share().map(finite).transpose()?,
            share_by_decile: tenths.collect::<Result<_, SampleError>>()?,
            terms: calibrator.terms.clone(),
            through_seq: calibrator.through_seq,
            var_main: finite(found.share.main)?,
            var_oua: finite(found.share.oua)?,
        })
    }

    /// Whether the scores of all logs lie where labels of fit are.
    fn coverage(&self, calibrator: &CalibratorFitted) -> Result<CoverageChecked, Unfit> {
        let (table, baseline) = (self.table(), &self.ground.baseline);
        let scored = &table.data().scored;
        let target = pick(&scored.scores, table.logs());
        let labelled = pick(&scored.scores, &baseline.rows);
        let rewards = pick(&baseline.rewards, table.logs());
        let target = Values::new("scores", &target)?;
        let labelled = Values::new("labelled scores", &labelled)?;
        let support = boundary::support(target, labelled);
        let (low, high) = (
            calibrator.reward_range.low.value(),
            calibrator.reward_range.high.value(),
        );
        let rewards = Values::new("rewards", &rewards)?;
        let card = boundary::card(target, labelled, rewards, low, high)?;
        let (flat_low, flat_high) = self.slopes(baseline, scored)?.flat();
        let counts = Edges::equal_frequency(target, DECILES)?.rows(labelled);
        let tail = |tail: &TailCoverage| -> Result<TailSupport, SampleError> {
            Ok(TailSupport {
                edge: finite(tail.edge)?,
                labels: size(tail.labels),
                mass: finite(tail.mass)?,
                starved: tail.starved,
            })
        };
        Ok(CoverageChecked {
            build: terms::text(BUILD),
            calibrator: calibrator.calibrator,
            decile_counts: counts.iter().map(|rows| size(rows.len())).collect(),
            flat_high,
            flat_low,
            high_tail: tail(&support.high)?,
            inputs: Some(self.ground.inputs),
            low_tail: tail(&support.low)?,
            out_of_range: finite(support.out_of_range)?,
            policy: None,
            refuse_level: support.refuse_level,
            rows_root: self.logs_root(),
            saturation: finite(card.saturation)?,
            terms: calibrator.terms.clone(),
            through_seq: calibrator.through_seq,
        })
    }

    /// What follows from the calibrator of the rubric in force.
    pub(super) fn about(&self, calibrator: &CalibratorFitted) -> Result<[Payload; 2], Unfit> {
        Ok([
            self.oua(calibrator)?.into(),
            self.coverage(calibrator)?.into(),
        ])
    }
}
