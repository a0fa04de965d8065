//! From a dataset to estimates: scales, calibrator, values, differences, support, transport.

use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::CalibratorSettings;
use clover_stats::calibrator::Frame;
use clover_stats::calibrator::LabelledRows;
use clover_stats::calibrator::Problem;
use clover_stats::direct;
use clover_stats::direct::Bootstrap;
use clover_stats::direct::ClusterWeights;
use clover_stats::direct::Options;
use clover_stats::direct::Row;
use clover_stats::direct::Scale;
use clover_stats::direct::Table;
use clover_stats::folds;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::transport;

use crate::analyze::dataset::Dataset;
use crate::analyze::dataset::Policy;
use crate::analyze::dataset::Prompts;
use crate::analyze::parts;
use crate::analyze::parts::ResultInputs;
use crate::analyze::result::Analysis;
use crate::analyze::result::PolicyResult;
use crate::estimate::drawn::Undrawn;

/// What messages call a judge score and a label.
pub(super) const SCORE: &str = "judge_score";
pub(super) const LABEL: &str = "oracle_label";

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnalyzeError {
    /// A value outside its declared scale.
    #[error("{place}, {field}: {value} lies outside [{low}, {high}]")]
    OutsideScale {
        /// File and line.
        place: String,
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
    #[error(
        "{place}, {LABEL}: a label of policy {policy} on prompt {prompt} both calibrates and audits"
    )]
    LabelUsedTwice {
        /// File and line of the probe.
        place: String,
        /// The policy.
        policy: String,
        /// The prompt.
        prompt: String,
    },
    /// A local calibrator needs labels of its environment.
    #[error(
        "a local calibrator of {environment} needs at least {} labels for calibration there, found {labels}",
        clover_stats::environment::LOCAL_LABELS_MIN
    )]
    FewLocalLabels {
        /// The environment.
        environment: String,
        /// Its labels.
        labels: usize,
    },
    /// A probe's response without a label.
    #[error("{place}, {LABEL}: expected a label, found none")]
    ProbeWithoutLabel {
        /// File and line.
        place: String,
    },
    /// Labels are to be weighted, and their probabilities are not known.
    #[error(transparent)]
    Undrawn(#[from] Undrawn),
    /// The statistics refuse.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

impl From<SampleError> for AnalyzeError {
    fn from(error: SampleError) -> Self {
        Self::Unfit(error.into())
    }
}

impl From<InsufficientData> for AnalyzeError {
    fn from(thin: InsufficientData) -> Self {
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
    pub settings: CalibratorSettings,
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
    /// Stratum of each response, by policy: those of one number had one probability of being labelled.
    pub strata: Option<Vec<Vec<u32>>>,
    /// A bootstrap, if one is asked for.
    pub replicates: Option<Replicates<'a>>,
    /// Transport probes, a family.
    pub probes: &'a [Probe],
    /// Audits that one decision rests on; at least the probes.
    pub family_size: Option<usize>,
    /// Kish-effective prompts below which no audit passes.
    pub clusters_min: f64,
    /// Whether an audit of nearly constant labels reaches as far as the bound of their mean; the peer's does not.
    pub bounds_probes: bool,
    /// Whether shares and labels by decile are wanted.
    pub detail: bool,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            settings: CalibratorSettings::ESTIMATE,
            options: Options::default(),
            judge_scale: None,
            label_scale: None,
            output_scale: None,
            folds: folds::FOLDS_DEFAULT,
            fold_seed: 42,
            labels: Labels::Own,
            propensities: None,
            strata: None,
            replicates: None,
            probes: &[],
            family_size: None,
            clusters_min: transport::EFFECTIVE_CLUSTERS_MIN,
            bounds_probes: false,
            detail: false,
        }
    }
}

/// Scales in force.
pub(super) struct Scales {
    pub(super) judge: Option<Scale>,
    pub(super) label: Option<Scale>,
    pub(super) output: Scale,
}

/// Everything on the unit scale, rows of policies first, calibration rows after them.
pub(super) struct UnitScaleRows {
    pub(super) frame: Frame,
    pub(super) table: Table,
    /// Labelled rows: row of the frame, label, prompt.
    pub(super) labelled: Vec<(usize, f64, u32)>,
}

impl UnitScaleRows {
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
    let fitted = fit(&unit, prompts, request)?;
    let calibrator = &fitted.calibrator;
    let resampled = &fitted.resampled;
    let estimates = direct::estimate(
        &unit.table,
        &unit.frame,
        calibrator.as_ref().ok(),
        &request.options,
    )?;
    let made = ResultInputs {
        dataset,
        prompts,
        request,
        scales: &scales,
        unit: &unit,
        calibrator: calibrator.as_ref().ok(),
    };
    let calibration = match calibrator {
        Ok(calibrator) => Ok(made.calibration(calibrator, fitted.clusters, fitted.folds)?),
        Err(thin) => Err(*thin),
    };
    let audits = made.audits()?;
    let policies = estimates
        .iter()
        .enumerate()
        .map(|(policy, estimate)| {
            made.policy(policy, estimate, resampled.as_ref(), audits[policy].clone())
        })
        .collect::<Result<Vec<PolicyResult>, AnalyzeError>>()?;
    let mut differences = made.differences(&estimates, resampled.as_ref())?;
    for difference in &mut differences {
        difference.conservative = parts::conservative(difference, &policies);
        difference.unvaried = parts::unvaried(difference, &policies, scales.output);
    }
    Ok(Analysis {
        policies,
        differences,
        calibration,
        judge_scale: scales.judge,
        label_scale: scales.label,
        output_scale: scales.output,
        alpha: request.options.alpha,
        replicates: resampled.as_ref().map_or_else(Vec::new, |resampled| {
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

/// A calibrator with its bootstrap.
struct ResampledCalibrator {
    calibrator: Result<Calibrator, InsufficientData>,
    resampled: Option<Bootstrap>,
    clusters: usize,
    folds: usize,
}

/// Fits the calibrator on the labelled rows, and refits it in every replicate.
fn fit(
    unit: &UnitScaleRows,
    prompts: &Prompts,
    request: &Request<'_>,
) -> Result<ResampledCalibrator, AnalyzeError> {
    let id = |prompt: u32| prompts.ids()[prompt as usize].as_str();
    let ids: Vec<&str> = unit.labelled.iter().map(|row| id(row.2)).collect();
    let clusters = distinct(unit.labelled.iter().map(|row| row.2));
    let folds = folds::resolve_count(request.folds, clusters);
    if let Err(thin) = folds::check_clusters(folds, clusters) {
        return Ok(ResampledCalibrator {
            calibrator: Err(thin),
            resampled: None,
            clusters,
            folds,
        });
    }
    let problem = |seed: u64| -> Result<Problem<'_>, SampleError> {
        let of = folds::balanced(&ids, &ids, folds, seed);
        let points = unit.labelled.iter().map(|row| unit.frame.of_row()[row.0]);
        let labels = unit.labelled.iter().map(|row| row.1);
        let labelled = LabelledRows::new(points.collect(), labels.collect(), of, folds)?;
        Problem::new(&unit.frame, labelled, request.settings)
    };
    let resampled = match &request.replicates {
        Some(replicates) => Some(direct::bootstrap(
            &unit.table,
            &problem(replicates.fold_seed)?,
            &unit.labelled.iter().map(|row| row.2).collect::<Vec<_>>(),
            unit.clusters(),
            replicates.weights,
            &request.options,
        )?),
        None => None,
    };
    Ok(ResampledCalibrator {
        calibrator: Ok(problem(request.fold_seed)?.calibrator(None)),
        resampled,
        clusters,
        folds,
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
pub(super) fn to_unit(
    scale: Option<Scale>,
    value: f64,
    policy: &Policy,
    row: usize,
    field: &'static str,
) -> Result<f64, AnalyzeError> {
    let Some(scale) = scale else {
        return Ok(0.5);
    };
    scale.to_unit(value).ok_or_else(|| {
        let (low, high) = scale.ends();
        AnalyzeError::OutsideScale {
            place: policy.place(row),
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
) -> Result<UnitScaleRows, AnalyzeError> {
    let rows: usize = dataset.policies.iter().map(Policy::len).sum();
    let mut columns = vec![Vec::with_capacity(rows); 1 + dataset.covariates.len()];
    let mut labels = Vec::with_capacity(rows);
    for policy in &dataset.policies {
        for row in 0..policy.len() {
            let score = to_unit(scales.judge, policy.scores[row], policy, row, SCORE)?;
            columns[0].push(score);
            labels.push(match policy.labels[row] {
                Some(label) => Some(to_unit(scales.label, label, policy, row, LABEL)?),
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
    if let Some(strata) = &request.strata {
        table = table.with_strata(strata.concat())?;
    }
    Ok(UnitScaleRows {
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
        columns[0].push(to_unit(judge, file.scores[row], file, row, SCORE)?);
        for (column, values) in columns[1..].iter_mut().zip(&file.covariates) {
            column.push(values[row]);
        }
        let label = to_unit(scale, label, file, row, LABEL)?;
        labelled.push((at, label, file.prompts[row]));
    }
    Ok(())
}
