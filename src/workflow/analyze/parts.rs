//! From estimates on the unit scale to results in output units, with what supports them.

use std::collections::BTreeSet;

use clover_num::math;
use clover_stats::boundary;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::Model;
use clover_stats::direct;
use clover_stats::direct::Bootstrap;
use clover_stats::direct::LabelDesign;
use clover_stats::direct::PolicyEstimate;
use clover_stats::direct::Route;
use clover_stats::direct::Scale;
use clover_stats::direct::strata;
use clover_stats::direct::strata::Bounded;
use clover_stats::inference;
use clover_stats::inference::Interval;
use clover_stats::multiplicity;
use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::quantile;
use clover_stats::reliability;
use clover_stats::reliability::CalibrationLine;
use clover_stats::sample::Clusters;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use clover_stats::student;
use clover_stats::transport;

use crate::analyze::dataset::Dataset;
use crate::analyze::dataset::Policy;
use crate::analyze::dataset::Prompts;
use crate::analyze::result::BootstrapResult;
use crate::analyze::result::Calibration;
use crate::analyze::result::Difference;
use crate::analyze::result::LabelsOnly;
use crate::analyze::result::PolicyResult;
use crate::analyze::result::RareLabels;
use crate::analyze::result::SpreadResult;
use crate::analyze::result::TransportResult;
use crate::analyze::run::AnalyzeError;
use crate::analyze::run::LABEL;
use crate::analyze::run::Labels;
use crate::analyze::run::Probe;
use crate::analyze::run::Request;
use crate::analyze::run::SCORE;
use crate::analyze::run::Scales;
use crate::analyze::run::UnitScaleRows;
use crate::analyze::run::to_unit;

/// What results are made of.
pub(super) struct ResultInputs<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) prompts: &'a Prompts,
    pub(super) request: &'a Request<'a>,
    pub(super) scales: &'a Scales,
    pub(super) unit: &'a UnitScaleRows,
    pub(super) calibrator: Option<&'a Calibrator>,
}

impl ResultInputs<'_> {
    pub(super) fn calibration(
        &self,
        calibrator: &Calibrator,
        clusters: usize,
        folds: usize,
    ) -> Result<Calibration, AnalyzeError> {
        let scores = self.labelled_scores();
        let points = boundary::slope_points(Values::new("labelled scores", &scores)?);
        let covariates = self.median_covariates();
        let values = points.map(|score| calibrator.predict(score, &covariates));
        let (low, high) = calibrator.quality.score_range;
        let recorded = |unit: f64| self.scales.judge.map_or(unit, |scale| scale.level(unit));
        Ok(Calibration {
            calibrator: calibrator.clone(),
            labels: self.unit.labelled.len(),
            clusters,
            folds,
            score_range: (recorded(low), recorded(high)),
            slopes: boundary::slopes(points, values),
            line: self.line(calibrator)?,
        })
    }

    /// The line of labels on out-of-fold predictions; `None` where predictions are all one value, or too few.
    fn line(&self, calibrator: &Calibrator) -> Result<Option<CalibrationLine>, AnalyzeError> {
        let labels: Vec<f64> = self.unit.labelled.iter().map(|of| of.1).collect();
        let prompts = Clusters::of(self.unit.labelled.iter().map(|of| of.2))?;
        let predicted = Values::new("predictions", &calibrator.out_of_fold)?;
        let labels = Values::new("labels", &labels)?;
        match reliability::calibration_line(predicted, labels, &prompts) {
            Ok(line) => Ok(line),
            Err(Unfit::InsufficientData(_)) => Ok(None),
            Err(Unfit::Invalid(error)) => Err(error.into()),
        }
    }

    /// Scores of the labelled rows, on the unit scale.
    pub(super) fn labelled_scores(&self) -> Vec<f64> {
        self.unit
            .labelled
            .iter()
            .map(|(row, _, _)| {
                self.unit
                    .frame
                    .score(self.unit.frame.of_row()[*row] as usize)
            })
            .collect()
    }

    /// The median of each covariate among labelled rows: where the slope in the score is read.
    fn median_covariates(&self) -> Vec<f64> {
        let point = |row: usize| {
            self.unit
                .frame
                .point(self.unit.frame.of_row()[row] as usize)
        };
        (1..=self.dataset.covariates.len())
            .map(|column| {
                let values: Vec<f64> = self
                    .unit
                    .labelled
                    .iter()
                    .map(|(row, _, _)| point(*row)[column])
                    .collect();
                quantile::type_7(&quantile::ascending(&values), 0.5)
            })
            .collect()
    }

    /// First row of a policy in the frame.
    pub(super) fn start(&self, policy: usize) -> usize {
        self.dataset.policies[..policy]
            .iter()
            .map(Policy::len)
            .sum()
    }

    /// Unit scores and calibrated rewards of a policy's rows.
    fn rewards(&self, policy: usize, calibrator: &Calibrator) -> (Vec<f64>, Vec<f64>) {
        let start = self.start(policy);
        (start..start + self.dataset.policies[policy].len())
            .map(|row| {
                let point = self
                    .unit
                    .frame
                    .point(self.unit.frame.of_row()[row] as usize);
                (point[0], calibrator.predict(point[0], &point[1..]))
            })
            .unzip()
    }

    pub(super) fn policy(
        &self,
        policy: usize,
        estimate: &PolicyEstimate,
        resampled: Option<&Bootstrap>,
        transport: Option<TransportResult>,
    ) -> Result<PolicyResult, AnalyzeError> {
        let output = self.scales.output;
        let span = output.span();
        let point = &estimate.point;
        let spread = estimate.spread.map(|spread| SpreadResult {
            se: output.difference(spread.se),
            df: spread.df,
            df_method: spread.df_method,
            interval: output.interval(spread.interval),
            sampling: spread.sampling * span * span,
            calibration_share: spread.calibration / (spread.sampling + spread.calibration),
        });
        let (mut card, mut support, mut bounds) = (None, None, None);
        if let Some(calibrator) = self.calibrator {
            let (scores, rewards) = self.rewards(policy, calibrator);
            let labelled = self.labelled_scores();
            let target = Values::new("judge scores", &scores)?;
            let labelled = Values::new("labelled scores", &labelled)?;
            let rewards = Values::new("rewards", &rewards)?;
            let (low, high) = calibrator.quality.reward_range;
            card = Some(boundary::card(target, labelled, rewards, low, high)?);
            let found = boundary::support(target, labelled);
            if found.refuse_level {
                bounds = Some(boundary::bounds(target, rewards, labelled, low, high)?);
            }
            support = Some(found);
        }
        Ok(PolicyResult {
            name: self.dataset.policies[policy].name.clone(),
            rows: estimate.rows,
            clusters: estimate.clusters,
            labelled: estimate.labelled_rows,
            labelled_share: point.labelled_share,
            estimate: output.level(point.estimate),
            route: point.route,
            plug_in: output.level(point.plug_in),
            correction: output.difference(point.correction),
            weight: point.weight,
            spread,
            calibration_variance: estimate.calibration_variance.map(|v| v * span * span),
            resampled: resampled.map(|resampled| BootstrapResult {
                se: output.difference(resampled.se[policy]),
                interval: output.interval(resampled.intervals[policy]),
            }),
            off_mode: direct::off_mode(&self.own_labels(policy)),
            rare: self.rare(policy, estimate),
            labels_only: self.labels_only(policy)?,
            card: card.map(|mut card| {
                card.partial_id_width = card.partial_id_width.map(|width| output.difference(width));
                card
            }),
            support,
            bounds: bounds.map(|bounds| output.interval(bounds)),
            detail: self.detail(policy)?,
            transport,
        })
    }

    /// A policy's own labels on the unit scale, with their prompts.
    fn own_labels(&self, policy: usize) -> Vec<(f64, u32)> {
        let start = self.start(policy);
        let prompts = self.dataset.policies[policy].prompts.iter().enumerate();
        let label = |row: usize| self.unit.table.label(start + row);
        prompts
            .filter_map(|(row, prompt)| Some((label(row)?, *prompt)))
            .collect()
    }

    /// What bounds a value that nearly constant labels of its own make. Labels that were chosen by what they are bound
    /// nothing.
    fn rare(&self, policy: usize, estimate: &PolicyEstimate) -> Option<RareLabels> {
        let route = estimate.point.route;
        if self.is_stratified() && route == Route::Augmented {
            let alpha = self.request.options.alpha;
            let found = estimate.bounded(&self.unit.table, policy, alpha)?;
            return Some(RareLabels {
                bound: self.known(found),
                takes_place: true,
            });
        }
        let chosen = self.request.options.design != LabelDesign::Representative;
        if !route.uses_own_labels() || chosen && route != Route::DirectOracle {
            return None;
        }
        let labels = self.own_labels(policy);
        let found = direct::rare(&labels, self.request.options.alpha)?;
        let known = self.is_scale_known() || found.off_mode > 0;
        Some(RareLabels {
            bound: known.then(|| self.scales.output.interval(found.bound)),
            takes_place: false,
        })
    }

    /// Whether labels were drawn by stratum with known probabilities.
    fn is_stratified(&self) -> bool {
        self.request.options.design == LabelDesign::Stratified
    }

    fn is_scale_known(&self) -> bool {
        self.request.label_scale.is_some() || self.scales.label == Some(Scale::UNIT)
    }

    /// An interval by stratum in output units; `None` where it rests on a scale that nobody declared.
    fn known(&self, found: Bounded) -> Option<Interval> {
        let known = self.is_scale_known() || !found.has_equal;
        known.then(|| self.scales.output.interval(found.interval))
    }

    /// The mean of a policy's own labels by stratum, with its interval.
    fn labels_by_stratum(&self, policy: usize) -> Result<Option<LabelsOnly>, AnalyzeError> {
        let alpha = self.request.options.alpha;
        let found = strata::alone(&self.unit.table, policy, alpha)?;
        let output = self.scales.output;
        Ok(found.map(|found| LabelsOnly {
            mean: output.level(found.mean),
            interval: match found.bounded {
                Some(bounded) => self.known(bounded),
                None => found.interval.map(|of| output.interval(of)),
            },
        }))
    }

    /// The mean of a policy's own labels, with its cluster-robust t interval.
    fn labels_only(&self, policy: usize) -> Result<Option<LabelsOnly>, AnalyzeError> {
        let (labels, prompts): (Vec<f64>, Vec<u32>) = self.own_labels(policy).into_iter().unzip();
        if labels.is_empty() {
            return Ok(None);
        }
        if self.is_stratified() {
            return self.labels_by_stratum(policy);
        }
        let clusters = Clusters::of(prompts)?;
        let values = Values::new("labels", &labels)?;
        let output = self.scales.output;
        let found = match student::cluster_robust(values, &clusters, None) {
            Ok(found) => found,
            Err(Unfit::InsufficientData(_)) => {
                return Ok(Some(LabelsOnly {
                    mean: output.level(math::mean(&labels)),
                    interval: None,
                }));
            }
            Err(Unfit::Invalid(error)) => return Err(error.into()),
        };
        let alpha = self.request.options.alpha;
        let interval = Interval::student(found.mean, found.se(), found.df, alpha);
        Ok(Some(LabelsOnly {
            mean: output.level(found.mean),
            interval: Some(output.interval(interval)),
        }))
    }

    pub(super) fn differences(
        &self,
        estimates: &[PolicyEstimate],
        resampled: Option<&Bootstrap>,
    ) -> Result<Vec<Difference>, AnalyzeError> {
        let options = &self.request.options;
        let output = self.scales.output;
        let mut found = Vec::new();
        for contrast in direct::contrasts(&self.unit.table, estimates, options) {
            // Too few replicates for tail probabilities leave the analytic difference.
            let replicated = resampled.and_then(|resampled| {
                resampled
                    .contrast(contrast.first, contrast.second, options.alpha)
                    .ok()
            });
            let (se, df, interval, p) = match replicated {
                Some((se, interval, p)) => (se, None, interval, p),
                None => (
                    contrast.se,
                    Some(contrast.df),
                    contrast.interval,
                    contrast.p,
                ),
            };
            found.push(Difference {
                first: contrast.first,
                second: contrast.second,
                difference: output.difference(contrast.difference),
                se: output.difference(se),
                df,
                interval: Interval {
                    low: output.difference(interval.low),
                    high: output.difference(interval.high),
                },
                p,
                p_adjusted: p,
                basis: contrast.basis,
                conservative: None,
                unvaried: None,
            });
        }
        let p: Vec<f64> = found.iter().map(|difference| difference.p).collect();
        for (difference, adjusted) in found
            .iter_mut()
            .zip(adjusted(p, MultiplicityCorrection::BenjaminiHochberg)?)
        {
            difference.p_adjusted = adjusted;
        }
        Ok(found)
    }

    /// Audits of the policies that have a probe.
    pub(super) fn audits(&self) -> Result<Vec<Option<TransportResult>>, AnalyzeError> {
        let mut found: Vec<Option<TransportResult>> = vec![None; self.dataset.policies.len()];
        let mut p = Vec::new();
        for probe in self.request.probes {
            let name = &probe.responses.name;
            let policy = self
                .dataset
                .policies
                .iter()
                .position(|policy| policy.name == *name)
                .ok_or_else(|| AnalyzeError::UnknownPolicy(name.clone()))?;
            // Raw scores have nothing to audit.
            let Some(calibrator) = self.calibrator else {
                continue;
            };
            let audit = self.audit(probe, policy, calibrator)?;
            if let Some(zero) = audit.wide.zero_null_p {
                p.push((policy, zero));
            }
            found[policy] = Some(TransportResult {
                audit,
                margin: probe.margin,
                zero_null_p_adjusted: None,
            });
        }
        let adjusted = adjusted(
            p.iter().map(|(_, p)| *p),
            MultiplicityCorrection::BenjaminiHochberg,
        )?;
        for ((policy, _), adjusted) in p.into_iter().zip(adjusted) {
            if let Some(result) = &mut found[policy] {
                result.zero_null_p_adjusted = Some(adjusted);
            }
        }
        Ok(found)
    }

    fn audit(
        &self,
        probe: &Probe,
        policy: usize,
        calibrator: &Calibrator,
    ) -> Result<transport::TransportAudit, AnalyzeError> {
        let source = &probe.responses;
        self.labels_are_held_out(source, policy)?;
        let (mut labels, mut points) = (Vec::new(), Vec::new());
        for row in 0..source.len() {
            let label = source.labels[row].ok_or_else(|| AnalyzeError::ProbeWithoutLabel {
                place: source.place(row),
            })?;
            labels.push(to_unit(self.scales.label, label, source, row, LABEL)?);
            let score = source.scores[row];
            let mut point = vec![to_unit(self.scales.judge, score, source, row, SCORE)?];
            point.extend(source.covariates.iter().map(|column| column[row]));
            points.push(point);
        }
        let mean = |model: &Model| {
            let predicted: Vec<f64> = points
                .iter()
                .map(|point| model.predict(point[0], &point[1..]))
                .collect();
            math::mean(&predicted)
        };
        let predicted: Vec<f64> = points
            .iter()
            .map(|point| calibrator.predict(point[0], &point[1..]))
            .collect();
        let without: Vec<f64> = calibrator.without_fold.iter().map(mean).collect();
        let clusters = Clusters::of(&source.prompts)?;
        let rows = transport::Probe::new(
            Values::new("predictions", &predicted)?,
            Values::new("labels", &labels)?,
            &clusters,
            None,
        )?;
        let mut terms = transport::TransportTerms::new(
            probe
                .margin
                .map(|margin| margin / self.scales.output.span()),
        );
        terms.alpha = self.request.options.alpha;
        let probes = self.request.probes.len();
        terms.family_size = self.request.family_size.unwrap_or(probes).max(1);
        terms.effective_clusters_min = self.request.clusters_min;
        if self.request.bounds_probes {
            let seen: Vec<(f64, u32)> = labels
                .iter()
                .copied()
                .zip(source.prompts.iter().copied())
                .collect();
            terms.mean_label = self.mean_label(&seen, terms.level());
        }
        let jackknife = transport::Jackknife {
            variance: inference::jackknife_variance(&without).unwrap_or(0.0),
            df: without.len().saturating_sub(1).max(1) as f64,
        };
        Ok(transport::audit(&rows, &terms, Some(jackknife))?)
    }

    /// What bounds the mean of a probe's labels, on the unit scale.
    fn mean_label(&self, labels: &[(f64, u32)], level: f64) -> transport::MeanLabel {
        let declared = self.is_scale_known();
        match direct::rare(labels, level) {
            None => transport::MeanLabel::Varies,
            Some(found) if declared || found.off_mode > 0 => {
                transport::MeanLabel::Within(found.bound)
            }
            Some(_) => transport::MeanLabel::Unbounded,
        }
    }

    /// No response of the probe may be one whose label the calibrator saw.
    fn labels_are_held_out(&self, probe: &Policy, policy: usize) -> Result<(), AnalyzeError> {
        if !matches!(self.request.labels, Labels::Own) {
            return Ok(());
        }
        let source = &self.dataset.policies[policy];
        let labelled = source.prompts.iter().zip(&source.labels);
        let seen: BTreeSet<u32> = labelled
            .filter_map(|(prompt, label)| label.map(|_| *prompt))
            .collect();
        match probe
            .prompts
            .iter()
            .position(|prompt| seen.contains(prompt))
        {
            None => Ok(()),
            Some(row) => Err(AnalyzeError::LabelUsedTwice {
                place: probe.place(row),
                policy: source.name.clone(),
                prompt: self.prompts.ids()[probe.prompts[row] as usize].clone(),
            }),
        }
    }
}

/// p-values adjusted as one family.
///
/// # Errors
/// [`AnalyzeError`] for a p outside [0, 1].
pub fn adjusted(
    p: impl IntoIterator<Item = f64>,
    by: MultiplicityCorrection,
) -> Result<Vec<f64>, AnalyzeError> {
    let p: Vec<f64> = p.into_iter().collect();
    Ok(multiplicity::adjusted(&p, by)?)
}

/// A difference's interval, widened on each side by how far the bounds of either policy lie from its plug-in.
pub(super) fn conservative(difference: &Difference, policies: &[PolicyResult]) -> Option<Interval> {
    let slack = |policy: &PolicyResult| {
        policy.bounds.map(|bounds| {
            let below = (policy.plug_in - bounds.low).max(0.0);
            (below, (bounds.high - policy.plug_in).max(0.0))
        })
    };
    let first = slack(&policies[difference.first]);
    let second = slack(&policies[difference.second]);
    if first.is_none() && second.is_none() {
        return None;
    }
    let (first, second) = (first.unwrap_or_default(), second.unwrap_or_default());
    Some(Interval {
        low: difference.interval.low - first.0 - second.1,
        high: difference.interval.high + first.1 + second.0,
    })
}

/// A difference's interval with that of the two policies' own intervals apart, where the labels of either hardly vary: a
/// standard error near zero says nothing there. The whole scale where one has no interval.
pub(super) fn unvaried(
    difference: &Difference,
    policies: &[PolicyResult],
    output: Scale,
) -> Option<Interval> {
    let (first, second) = (&policies[difference.first], &policies[difference.second]);
    if first.rare.is_none() && second.rare.is_none() {
        return None;
    }
    let apart = match (first.interval(), second.interval()) {
        (Ok((first, _)), Ok((second, _))) => Interval {
            low: first.low - second.high,
            high: first.high - second.low,
        },
        _ => Interval::around(0.0, output.span()),
    };
    Some(difference.interval.hull(apart))
}
