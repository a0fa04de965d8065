//! From a dataset to estimates: scales, calibrator, values, differences, support, transport.

use crate::stats::boundary;
use crate::stats::calibrator::Calibrator;
use crate::stats::calibrator::Frame;
use crate::stats::calibrator::Labelled;
use crate::stats::calibrator::Problem;
use crate::stats::calibrator::Settings;
use crate::stats::direct;
use crate::stats::direct::Bootstrap;
use crate::stats::direct::ClusterWeights;
use crate::stats::direct::Options;
use crate::stats::direct::PolicyEstimate;
use crate::stats::direct::Row;
use crate::stats::direct::Scale;
use crate::stats::direct::Table;
use crate::stats::folds;
use crate::stats::inference;
use crate::stats::inference::Interval;
use crate::stats::multiplicity;
use crate::stats::multiplicity::Correction;
use crate::stats::multiplicity::PValues;
use crate::stats::sample::Clusters;
use crate::stats::sample::SampleError;
use crate::stats::sample::Thin;
use crate::stats::sample::Unfit;
use crate::stats::sample::Values;
use crate::stats::transport;
use crate::workflow::analyze::dataset::Dataset;
use crate::workflow::analyze::dataset::Policy;
use crate::workflow::analyze::dataset::Prompts;
use crate::workflow::analyze::result::Analysis;
use crate::workflow::analyze::result::Calibration;
use crate::workflow::analyze::result::Difference;
use crate::workflow::analyze::result::LabelsOnly;
use crate::workflow::analyze::result::PolicyResult;
use crate::workflow::analyze::result::Resampled;
use crate::workflow::analyze::result::SpreadResult;
use crate::workflow::analyze::result::TransportResult;

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnalyzeError {
    /// A value outside its declared scale.
    #[error("policy {policy}, response {row}, {field}: {value} lies outside [{low}, {high}]")]
    OutsideScale {
        /// The policy.
        policy: String,
        /// The response, from 1 in the order of its file.
        row: usize,
        /// Score or label.
        field: &'static str,
        /// The value.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// A probe names a policy that has no responses.
    #[error("no responses of policy {0}")]
    UnknownPolicy(String),
    /// A probe holds a label that the calibrator saw: it would audit itself.
    #[error("policy {policy}: the label of prompt {prompt} both calibrates and audits")]
    LabelUsedTwice {
        /// The policy.
        policy: String,
        /// The prompt.
        prompt: String,
    },
    /// A probe's response without a label.
    #[error("probe of policy {policy}, response {row}: expected a label, found none")]
    ProbeWithoutLabel {
        /// The policy.
        policy: String,
        /// The response, from 1.
        row: usize,
    },
    /// The statistics refuse.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

impl From<SampleError> for AnalyzeError {
    fn from(error: SampleError) -> Self {
        Self::Unfit(error.into())
    }
}

impl From<Thin> for AnalyzeError {
    fn from(thin: Thin) -> Self {
        Self::Unfit(thin.into())
    }
}

/// Where calibration labels come from.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'a> {
    /// All labels of the evaluated responses, pooled over policies.
    Own,
    /// Another file's, on [0, 1] or as declared; the responses' own labels then only correct.
    File(&'a Policy),
}

/// A held-out sample of one policy's responses, labelled to audit.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its responses.
    pub responses: Policy,
    /// Largest acceptable absolute mean residual, in output units.
    pub margin: Option<f64>,
}

/// A bootstrap.
pub struct Replicates<'a> {
    /// Cluster weights of each replicate.
    pub weights: &'a dyn ClusterWeights,
    /// Seed of the refits' folds.
    pub fold_seed: u64,
}

/// How to analyze.
pub struct Request<'a> {
    /// The calibrator.
    pub settings: Settings,
    /// The estimator.
    pub options: Options,
    /// Scale of judge scores, if declared.
    pub judge_scale: Option<Scale>,
    /// Scale of labels, if declared.
    pub label_scale: Option<Scale>,
    /// Scale of results; that of labels, if not declared.
    pub output_scale: Option<Scale>,
    /// Folds asked for.
    pub folds: usize,
    /// Seed of the folds.
    pub fold_seed: u64,
    /// Where calibration labels come from.
    pub labels: Labels<'a>,
    /// Probability that each response was labelled, by policy.
    pub propensities: Option<Vec<Vec<f64>>>,
    /// A bootstrap, if one is asked for.
    pub replicates: Option<Replicates<'a>>,
    /// Transport probes, a family.
    pub probes: &'a [Probe],
    /// Audits that one decision rests on; at least the probes.
    pub family_size: Option<usize>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            settings: Settings::ESTIMATE,
            options: Options::default(),
            judge_scale: None,
            label_scale: None,
            output_scale: None,
            folds: folds::FOLDS_DEFAULT,
            fold_seed: 42,
            labels: Labels::Own,
            propensities: None,
            replicates: None,
            probes: &[],
            family_size: None,
        }
    }
}

/// Scales in force.
struct Scales {
    judge: Option<Scale>,
    label: Option<Scale>,
    output: Scale,
}

/// Everything on the unit scale, rows of policies first, calibration rows after them.
struct Unit {
    frame: Frame,
    table: Table,
    /// Labelled rows: row of the frame, label, prompt.
    labelled: Vec<(usize, f64, u32)>,
}

impl Unit {
    /// Clusters that a replicate weights: prompts of the policies, and those of calibration rows alone.
    fn clusters(&self) -> usize {
        let labelled = self.labelled.iter().map(|row| row.2 as usize + 1).max();
        labelled.unwrap_or(0).max(self.table.prompts())
    }
}

/// Estimates every policy of a dataset.
///
/// # Errors
/// [`AnalyzeError`].
pub fn analyze(
    dataset: &Dataset,
    prompts: &Prompts,
    request: &Request<'_>,
) -> Result<Analysis, AnalyzeError> {
    let numbers = dataset.policies.iter().flat_map(|policy| &policy.prompts);
    let evaluated = numbers.max().map_or(0, |&most| most as usize + 1);
    let scales = scales(dataset, request);
    let unit = unit(dataset, evaluated, &scales, request)?;
    let ids: Vec<&str> = unit
        .labelled
        .iter()
        .map(|(_, _, prompt)| prompts.ids()[*prompt as usize].as_str())
        .collect();
    let clusters = distinct(unit.labelled.iter().map(|(_, _, prompt)| *prompt));
    let count = folds::resolve_count(request.folds, clusters);
    let thin = folds::check_clusters(count, clusters);
    let problem = |seed: u64| -> Result<Problem<'_>, SampleError> {
        let of = folds::balanced(&ids, &ids, count, seed);
        let points = unit
            .labelled
            .iter()
            .map(|(row, _, _)| unit.frame.of_row()[*row]);
        let labels = unit.labelled.iter().map(|(_, label, _)| *label);
        let labelled = Labelled::new(points.collect(), labels.collect(), of, count)?;
        Problem::new(&unit.frame, labelled, request.settings)
    };
    let calibrator = match thin {
        Ok(()) => Ok(problem(request.fold_seed)?.calibrator(None)),
        Err(thin) => Err(thin),
    };
    let estimates = direct::estimate(
        &unit.table,
        &unit.frame,
        calibrator.as_ref().ok(),
        &request.options,
    )?;
    let resampled = match (&request.replicates, &calibrator) {
        (Some(replicates), Ok(_)) => Some(direct::bootstrap(
            &unit.table,
            &problem(replicates.fold_seed)?,
            &unit.labelled.iter().map(|row| row.2).collect::<Vec<_>>(),
            unit.clusters(),
            replicates.weights,
            &request.options,
        )?),
        _ => None,
    };
    let parts = Parts {
        dataset,
        prompts,
        request,
        scales: &scales,
        unit: &unit,
        calibrator: calibrator.as_ref().ok(),
    };
    let calibration = match &calibrator {
        Ok(calibrator) => Ok(parts.calibration(calibrator, clusters, count)?),
        Err(thin) => Err(*thin),
    };
    let audits = parts.audits()?;
    let policies = estimates
        .iter()
        .enumerate()
        .map(|(policy, estimate)| {
            parts.policy(policy, estimate, resampled.as_ref(), audits[policy].clone())
        })
        .collect::<Result<Vec<PolicyResult>, AnalyzeError>>()?;
    let mut differences = parts.differences(&estimates, resampled.as_ref())?;
    for difference in &mut differences {
        difference.conservative = conservative(difference, &policies);
    }
    Ok(Analysis {
        policies,
        differences,
        calibration,
        judge_scale: scales.judge,
        label_scale: scales.label,
        output_scale: scales.output,
        alpha: request.options.alpha,
        replicates: resampled.map_or_else(Vec::new, |resampled| {
            let level = |value: &f64| scales.output.level(*value);
            resampled
                .replicates
                .iter()
                .map(|row| row.iter().map(level).collect())
                .collect()
        }),
        prompts: evaluated,
    })
}

fn distinct(prompts: impl Iterator<Item = u32>) -> usize {
    let mut prompts: Vec<u32> = prompts.collect();
    prompts.sort_unstable();
    prompts.dedup();
    prompts.len()
}

fn scales(dataset: &Dataset, request: &Request<'_>) -> Scales {
    let scores = dataset.policies.iter().flat_map(|policy| &policy.scores);
    let labels = dataset.policies.iter().flat_map(|policy| &policy.labels);
    let judge = request
        .judge_scale
        .or_else(|| Scale::observed(scores.copied()));
    let label = request
        .label_scale
        .or_else(|| Scale::observed(labels.flatten().copied()));
    Scales {
        judge,
        label,
        output: request.output_scale.or(label).unwrap_or(Scale::UNIT),
    }
}

/// A value on [0, 1]; the middle where all values are one value outside it.
fn to_unit(
    scale: Option<Scale>,
    value: f64,
    policy: &str,
    row: usize,
    field: &'static str,
) -> Result<f64, AnalyzeError> {
    let Some(scale) = scale else {
        return Ok(0.5);
    };
    scale.to_unit(value).ok_or_else(|| {
        let (low, high) = scale.ends();
        AnalyzeError::OutsideScale {
            policy: policy.to_owned(),
            row: row + 1,
            field,
            value,
            low,
            high,
        }
    })
}

fn unit(
    dataset: &Dataset,
    evaluated: usize,
    scales: &Scales,
    request: &Request<'_>,
) -> Result<Unit, AnalyzeError> {
    let rows: usize = dataset.policies.iter().map(Policy::len).sum();
    let mut columns = vec![Vec::with_capacity(rows); 1 + dataset.covariates.len()];
    let mut labels = Vec::with_capacity(rows);
    for policy in &dataset.policies {
        for row in 0..policy.len() {
            let score = to_unit(
                scales.judge,
                policy.scores[row],
                &policy.name,
                row,
                "judge score",
            )?;
            columns[0].push(score);
            labels.push(match policy.labels[row] {
                Some(label) => Some(to_unit(scales.label, label, &policy.name, row, "label")?),
                None => None,
            });
        }
        for (column, values) in columns[1..].iter_mut().zip(&policy.covariates) {
            column.extend_from_slice(values);
        }
    }
    let mut labelled = Vec::new();
    match request.labels {
        Labels::Own => {
            let all = dataset.policies.iter().flat_map(|policy| &policy.prompts);
            for (row, (label, prompt)) in labels.iter().zip(all).enumerate() {
                labelled.extend(label.map(|label| (row, label, *prompt)));
            }
        }
        Labels::File(file) => calibration_rows(file, &mut columns, &mut labelled, request)?,
    }
    let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let frame = Frame::new(&views)?;
    let own = matches!(request.labels, Labels::Own);
    let mut next_fit = 0_u32;
    let (mut at, mut policies) = (0, Vec::with_capacity(dataset.policies.len()));
    for policy in &dataset.policies {
        let mut table_rows = Vec::with_capacity(policy.len());
        for &prompt in &policy.prompts {
            let fit_row = (own && labels[at].is_some()).then(|| {
                next_fit += 1;
                next_fit - 1
            });
            table_rows.push(Row {
                point: frame.of_row()[at],
                prompt,
                label: labels[at],
                fit_row,
            });
            at += 1;
        }
        policies.push(table_rows);
    }
    let mut table = Table::new(&policies, evaluated)?;
    if let Some(propensities) = &request.propensities {
        table = table.with_propensities(propensities.concat())?;
    }
    Ok(Unit {
        frame,
        table,
        labelled,
    })
}

/// Appends the labelled rows of a calibration file.
fn calibration_rows(
    file: &Policy,
    columns: &mut [Vec<f64>],
    labelled: &mut Vec<(usize, f64, u32)>,
    request: &Request<'_>,
) -> Result<(), AnalyzeError> {
    let judge = Some(request.judge_scale.unwrap_or(Scale::UNIT));
    let scale = Some(request.label_scale.unwrap_or(Scale::UNIT));
    for row in 0..file.len() {
        let Some(label) = file.labels[row] else {
            continue;
        };
        let at = columns[0].len();
        columns[0].push(to_unit(
            judge,
            file.scores[row],
            &file.name,
            row,
            "judge score",
        )?);
        for (column, values) in columns[1..].iter_mut().zip(&file.covariates) {
            column.push(values[row]);
        }
        let label = to_unit(scale, label, &file.name, row, "label")?;
        labelled.push((at, label, file.prompts[row]));
    }
    Ok(())
}

/// What results are made of.
struct Parts<'a> {
    dataset: &'a Dataset,
    prompts: &'a Prompts,
    request: &'a Request<'a>,
    scales: &'a Scales,
    unit: &'a Unit,
    calibrator: Option<&'a Calibrator>,
}

impl Parts<'_> {
    fn calibration(
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
        })
    }

    /// Scores of the labelled rows, on the unit scale.
    fn labelled_scores(&self) -> Vec<f64> {
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
                let mut values: Vec<f64> = self
                    .unit
                    .labelled
                    .iter()
                    .map(|(row, _, _)| point(*row)[column])
                    .collect();
                values.sort_unstable_by(f64::total_cmp);
                inference::quantile(&values, 0.5)
            })
            .collect()
    }

    /// First row of a policy in the frame.
    fn start(&self, policy: usize) -> usize {
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

    fn policy(
        &self,
        policy: usize,
        estimate: &PolicyEstimate,
        resampled: Option<&Bootstrap>,
        transport: Option<TransportResult>,
    ) -> Result<PolicyResult, AnalyzeError> {
        let output = self.scales.output;
        let point = &estimate.point;
        let spread = estimate.spread.map(|spread| SpreadResult {
            se: output.difference(spread.se),
            df: spread.df,
            df_method: spread.df_method,
            interval: output.interval(spread.interval),
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
        let span = output.span();
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
            resampled: resampled.map(|resampled| Resampled {
                se: output.difference(resampled.se[policy]),
                interval: output.interval(resampled.intervals[policy]),
            }),
            labels_only: self.labels_only(policy)?,
            card: card.map(|mut card| {
                card.partial_id_width = card.partial_id_width.map(|width| output.difference(width));
                card
            }),
            support,
            bounds: bounds.map(|mut bounds| {
                bounds.lower = output.level(bounds.lower);
                bounds.upper = output.level(bounds.upper);
                bounds
            }),
            transport,
        })
    }

    /// The mean of a policy's own labels, with its cluster-robust t interval.
    fn labels_only(&self, policy: usize) -> Result<Option<LabelsOnly>, AnalyzeError> {
        let start = self.start(policy);
        let source = &self.dataset.policies[policy];
        let (mut labels, mut prompts) = (Vec::new(), Vec::new());
        for row in 0..source.len() {
            if let Some(label) = self.unit.table.label(start + row) {
                labels.push(label);
                prompts.push(source.prompts[row]);
            }
        }
        if labels.is_empty() {
            return Ok(None);
        }
        let mean = crate::num::math::mean(&labels);
        let clusters = Clusters::of(prompts)?;
        let none = vec![false; labels.len()];
        let interval = inference::cluster_variance(&labels, &clusters, &none)
            .ok()
            .map(|split| {
                let df = split.clusters as f64 - 1.0;
                let alpha = self.request.options.alpha;
                Interval::student(mean, split.total().sqrt(), df, alpha)
            });
        Ok(Some(LabelsOnly {
            mean: self.scales.output.level(mean),
            interval: interval.map(|interval| self.scales.output.interval(interval)),
        }))
    }

    fn differences(
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
            });
        }
        let p: Vec<f64> = found.iter().map(|difference| difference.p).collect();
        for (difference, adjusted) in found.iter_mut().zip(adjusted(&p, options.alpha)?) {
            difference.p_adjusted = adjusted;
        }
        Ok(found)
    }

    /// Audits of the policies that have a probe.
    fn audits(&self) -> Result<Vec<Option<TransportResult>>, AnalyzeError> {
        let mut found: Vec<Option<TransportResult>> = vec![None; self.dataset.policies.len()];
        let Some(calibrator) = self.calibrator else {
            return Ok(found);
        };
        let mut p = Vec::new();
        for probe in self.request.probes {
            let name = &probe.responses.name;
            let policy = self
                .dataset
                .policies
                .iter()
                .position(|policy| policy.name == *name)
                .ok_or_else(|| AnalyzeError::UnknownPolicy(name.clone()))?;
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
        let values: Vec<f64> = p.iter().map(|(_, p)| *p).collect();
        let adjusted = adjusted(&values, self.request.options.alpha)?;
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
    ) -> Result<transport::Audit, AnalyzeError> {
        let source = &probe.responses;
        self.labels_are_held_out(source, policy)?;
        let (mut labels, mut points) = (Vec::new(), Vec::new());
        for row in 0..source.len() {
            let label = source.labels[row].ok_or_else(|| AnalyzeError::ProbeWithoutLabel {
                policy: source.name.clone(),
                row: row + 1,
            })?;
            labels.push(to_unit(
                self.scales.label,
                label,
                &source.name,
                row,
                "label",
            )?);
            let score = source.scores[row];
            let mut point = vec![to_unit(
                self.scales.judge,
                score,
                &source.name,
                row,
                "judge score",
            )?];
            point.extend(source.covariates.iter().map(|column| column[row]));
            points.push(point);
        }
        let mean = |model: &crate::stats::calibrator::Model| {
            let predicted: Vec<f64> = points
                .iter()
                .map(|point| model.predict(point[0], &point[1..]))
                .collect();
            crate::num::math::mean(&predicted)
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
        let mut terms = transport::Terms::new(
            probe
                .margin
                .map(|margin| margin / self.scales.output.span()),
        );
        terms.alpha = self.request.options.alpha;
        let probes = self.request.probes.len();
        terms.family_size = self.request.family_size.unwrap_or(probes).max(1);
        let jackknife = transport::Jackknife {
            variance: inference::jackknife_variance(&without),
            df: without.len().saturating_sub(1).max(1) as f64,
        };
        Ok(transport::audit(&rows, &terms, Some(jackknife))?)
    }

    /// No response of the probe may be one whose label the calibrator saw.
    fn labels_are_held_out(&self, probe: &Policy, policy: usize) -> Result<(), AnalyzeError> {
        if !matches!(self.request.labels, Labels::Own) {
            return Ok(());
        }
        let source = &self.dataset.policies[policy];
        for row in 0..source.len() {
            if source.labels[row].is_some() && probe.prompts.contains(&source.prompts[row]) {
                return Err(AnalyzeError::LabelUsedTwice {
                    policy: source.name.clone(),
                    prompt: self.prompts.ids()[source.prompts[row] as usize].clone(),
                });
            }
        }
        Ok(())
    }
}

/// A difference's interval, widened on each side by how far the bounds of either policy lie from its plug-in.
fn conservative(difference: &Difference, policies: &[PolicyResult]) -> Option<Interval> {
    let slack = |policy: &PolicyResult| {
        policy.bounds.map(|bounds| {
            let below = (policy.plug_in - bounds.lower).max(0.0);
            (below, (bounds.upper - policy.plug_in).max(0.0))
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

/// Benjamini-Hochberg adjusted p-values.
fn adjusted(p: &[f64], alpha: f64) -> Result<Vec<f64>, AnalyzeError> {
    if p.is_empty() {
        return Ok(Vec::new());
    }
    let family = PValues::new(p)?;
    Ok(multiplicity::correct(family, Correction::BenjaminiHochberg, alpha)?.adjusted)
}
