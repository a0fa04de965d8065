//! From logged rows to estimates of one target policy, and to what admits them.

use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::estimated::CalibratorMode;
use clover_event::payload::ope::LoggedFilter;
use clover_event::payload::ope::OpeDiagnosed;
use clover_event::payload::ope::OpeEstimated;
use clover_event::payload::ope::OpeTerms;
use clover_ground::canon;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Count;
use clover_num::Finite;
use clover_stats::calibrator;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::CalibratorSettings;
use clover_stats::calibrator::Mode;
use clover_stats::direct::Scale;
use clover_stats::folds;
use clover_stats::offpolicy;
use clover_stats::offpolicy::Draws;
use clover_stats::offpolicy::Estimator;
use clover_stats::offpolicy::LoggedRows;
use clover_stats::offpolicy::OffPolicy;
use clover_stats::offpolicy::Outcome;
use clover_stats::offpolicy::OverlapEvidence;
use clover_stats::offpolicy::Ranks;
use clover_stats::offpolicy::Rewards;
use clover_stats::offpolicy::RobustColumns;
use clover_stats::offpolicy::WeightEvidence;
use clover_stats::overlap;
use clover_stats::overlap::Orthogonality;
use clover_stats::overlap::RobustSplit;
use clover_stats::overlap::SurprisalThreshold;
use clover_stats::sample::Clusters;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;
use clover_stats::weights;
use clover_stats::weights::CapPoint;
use clover_stats::weights::CrossFitted;
use clover_stats::weights::LogRatios;
use clover_stats::weights::Objective;
use clover_stats::weights::StabiliserSettings;

use crate::estimate::compute::Found;
use crate::ope::logs::Logs;
use crate::ope::said;

/// Bins of the affinity of judge scores.
const BINS: usize = 20;
/// Caps at which sensitivity is shown, in multiples of the mean weight.
// source: ours; a few steps from no weight above the mean to hardly any cut (CJE paper, table 9, row Cap).
const CAPS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

/// Why there is no off-policy estimate.
#[derive(Debug, thiserror::Error)]
pub enum OpeError {
    /// The rows are no sample, or too few.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// Something that it needs is not there.
    #[error("{0}")]
    Missing(String),
}

impl From<SampleError> for OpeError {
    fn from(error: SampleError) -> Self {
        Self::Unfit(error.into())
    }
}

fn missing(what: impl Into<String>) -> OpeError {
    OpeError::Missing(what.into())
}

/// What was found of one target policy.
#[derive(Clone, Debug)]
pub struct TargetDiagnosis {
    /// Diagnostics, gates and guide.
    pub diagnosed: OpeDiagnosed,
    /// Estimates, in the order of the guide.
    pub estimates: Vec<OpeEstimated>,
    /// The complementary distribution of the ratios, and of the stabilised weights.
    pub ccdf: [Vec<(f64, f64)>; 2],
}

/// The logged rows of one target, on the unit scale.
pub(super) struct TargetRows {
    places: Vec<(ItemId, u64)>,
    base: Vec<f64>,
    target: Vec<f64>,
    scores: Vec<f64>,
    covariates: Vec<Vec<f64>>,
    folds: Vec<usize>,
    tokens: Option<Vec<f64>>,
    cohorts: Option<Vec<String>>,
    pub(super) filter: LoggedFilter,
}

/// Draws of the target for the prompts of the logged rows, on the unit scale.
struct Own {
    prompts: Vec<u32>,
    scores: Vec<f64>,
    covariates: Vec<Vec<f64>>,
}

/// The line of one row under the root.
#[derive(serde::Serialize)]
struct PropensityLeaf<'a> {
    base: Finite,
    draw: Count,
    item: &'a ItemId,
    target: Finite,
}

impl TargetRows {
    fn read(
        found: &Found,
        logs: &Logs,
        terms: &OpeTerms,
        target: &PolicyId,
    ) -> Result<Self, OpeError> {
        let gathered = &found.gathered;
        let logger = gathered.policy(terms.logger.as_str());
        let logger = logger.ok_or_else(|| missing(format!("no scores of {}", terms.logger)))?;
        let (policy, source) = (
            &gathered.dataset.policies[logger],
            &gathered.sources[logger],
        );
        let count = |n: usize| Count::new(n as u64).unwrap_or_default();
        let (mut without_logprob, mut without_target) = (0, 0);
        let mut rows = Self {
            places: Vec::new(),
            base: Vec::new(),
            target: Vec::new(),
            scores: Vec::new(),
            covariates: vec![Vec::new(); policy.covariates.len()],
            folds: Vec::new(),
            tokens: Some(Vec::new()),
            cohorts: Some(Vec::new()),
            filter: LoggedFilter {
                checked: logs
                    .checked
                    .iter()
                    .filter_map(|seq| Count::new(*seq))
                    .collect(),
                kept: Count::default(),
                rows: count(policy.len()),
                without_logprob: Count::default(),
                without_target: Count::default(),
            },
        };
        for row in 0..policy.len() {
            let id = &gathered.prompts.ids()[policy.prompts[row] as usize];
            let item = ItemId::new(id.clone()).map_err(|error| missing(error.to_string()))?;
            let place = (item, source.draws[row]);
            let Some(response) = logs.responses.get(&place) else {
                without_logprob += 1;
                continue;
            };
            let Some(&logprob) = response.targets.get(target) else {
                without_target += 1;
                continue;
            };
            rows.base.push(response.base);
            rows.target.push(logprob);
            rows.scores
                .push(unit(found.analysis.judge_scale, policy.scores[row]));
            for (column, values) in rows.covariates.iter_mut().zip(&policy.covariates) {
                column.push(values[row]);
            }
            rows.take(logs, terms, place);
        }
        rows.filter.kept = count(rows.places.len());
        rows.filter.without_logprob = count(without_logprob);
        rows.filter.without_target = count(without_target);
        if rows.places.is_empty() {
            let message = format!(
                "no scored response of {} has a log-probability under {target}",
                terms.logger
            );
            return Err(missing(message));
        }
        Ok(rows)
    }

    /// Adds what is known of a row beside its numbers.
    fn take(&mut self, logs: &Logs, terms: &OpeTerms, place: (ItemId, u64)) {
        let seed = terms.estimate.fold_seed.value();
        let fold = folds::hash_mod(place.0.as_str(), fold_count(terms), seed);
        self.folds.push(fold);
        // Counts of some rows and not of others would mix two measures.
        let (tokens, cohort) = (logs.tokens.get(&place), logs.cohorts.get(&place));
        match (&mut self.tokens, tokens) {
            (Some(all), Some(tokens)) => all.push(*tokens as f64),
            _ => self.tokens = None,
        }
        match (&mut self.cohorts, cohort) {
            (Some(all), Some(cohort)) => all.push(cohort.as_str().to_owned()),
            _ => self.cohorts = None,
        }
        self.places.push(place);
    }

    /// The Merkle root of the rows.
    fn root(&self) -> clover_ground::digest::Digest {
        let mut tree = Frontier::new();
        for (row, (item, draw)) in self.places.iter().enumerate() {
            let line = PropensityLeaf {
                base: said::finite(self.base[row]),
                draw: Count::new(*draw).unwrap_or_default(),
                item,
                target: said::finite(self.target[row]),
            };
            let line = canon::to_bytes(&line).expect("BUG: ids and numbers have a canonical form");
            tree.push(merkle::leaf_hash(&line));
        }
        tree.root()
    }
}

fn unit(scale: Option<Scale>, value: f64) -> f64 {
    scale.and_then(|scale| scale.to_unit(value)).unwrap_or(0.5)
}

fn fold_count(terms: &OpeTerms) -> usize {
    usize::try_from(terms.estimate.folds.value()).unwrap_or(usize::MAX)
}

/// The calibrator of every label for calibration, on folds that never move.
fn calibrator(found: &Found, terms: &OpeTerms) -> Result<Calibrator, OpeError> {
    let (mut scores, mut labels, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let width = found.gathered.dataset.covariates.len();
    let mut covariates = vec![Vec::new(); width];
    let (seed, count) = (terms.estimate.fold_seed.value(), fold_count(terms));
    for policy in &found.gathered.dataset.policies {
        for (row, label) in policy.labels.iter().enumerate() {
            let Some(label) = label else { continue };
            scores.push(unit(found.analysis.judge_scale, policy.scores[row]));
            labels.push(unit(found.analysis.label_scale, *label));
            let id = &found.gathered.prompts.ids()[policy.prompts[row] as usize];
            own.push(folds::hash_mod(id, count, seed));
            for (column, values) in covariates.iter_mut().zip(&policy.covariates) {
                column.push(values[row]);
            }
        }
    }
    let settings = CalibratorSettings {
        mode: match terms.estimate.mode {
            CalibratorMode::Auto => Mode::Auto,
            CalibratorMode::Monotone => Mode::Monotone,
            CalibratorMode::TwoStage => Mode::TwoStage,
        },
        ..CalibratorSettings::ESTIMATE
    };
    let columns: Vec<&[f64]> = covariates.iter().map(Vec::as_slice).collect();
    let fitted = calibrator::fit(&scores, &labels, &columns, &own, count, None, settings);
    fitted.map_err(OpeError::from)
}

/// Draws of the target, where every logged prompt has one.
fn own_draws(found: &Found, target: &PolicyId, rows: &TargetRows) -> Option<Own> {
    let place = found.gathered.policy(target.as_str())?;
    let policy = &found.gathered.dataset.policies[place];
    let mut number = BTreeMap::new();
    for (item, _) in &rows.places {
        let next = u32::try_from(number.len()).unwrap_or(u32::MAX);
        number.entry(item.as_str()).or_insert(next);
    }
    let ids = found.gathered.prompts.ids();
    let prompts: Vec<u32> = policy
        .prompts
        .iter()
        .map(|prompt| number.get(ids[*prompt as usize].as_str()).copied())
        .map(|known| known.unwrap_or(u32::MAX))
        .collect();
    let mut answered = vec![false; number.len()];
    for &prompt in prompts.iter().filter(|prompt| **prompt != u32::MAX) {
        answered[prompt as usize] = true;
    }
    let scores = policy.scores.iter();
    answered.iter().all(|known| *known).then(|| Own {
        prompts,
        scores: scores
            .map(|score| unit(found.analysis.judge_scale, *score))
            .collect(),
        covariates: policy.covariates.clone(),
    })
}

fn columns(columns: &[Vec<f64>]) -> Result<Vec<Values<'_>>, SampleError> {
    let checked = columns
        .iter()
        .map(|column| Values::new("covariate", column));
    checked.collect()
}

fn weigh(values: &[f64]) -> Result<Weights<'_>, SampleError> {
    Weights::new("weights", values, values.len())
}

/// What the numbers of one target are, before they are said.
pub(super) struct Numbers<'a> {
    pub(super) found: &'a Found,
    pub(super) logs: &'a Logs,
    pub(super) terms: &'a OpeTerms,
    pub(super) target: &'a PolicyId,
    pub(super) calibrator: clover_ground::digest::Digest,
    pub(super) filter: LoggedFilter,
    pub(super) root: clover_ground::digest::Digest,
    pub(super) raw: Vec<f64>,
    pub(super) stabilised: CrossFitted,
    pub(super) prompts: Clusters,
    pub(super) estimates: Vec<(OffPolicy, Vec<(Estimator, f64)>)>,
    pub(super) overlap_mean: Option<OffPolicy>,
    pub(super) cohort_mean: Option<(OffPolicy, Clusters)>,
    pub(super) evidence: OverlapEvidence,
    pub(super) affinity: f64,
    pub(super) ttc: overlap::Coverage,
    pub(super) ttc_by_total: Option<f64>,
    pub(super) caps: Vec<CapPoint>,
    pub(super) groups: Vec<overlap::Subgroup<String>>,
    pub(super) residuals: Option<(Orthogonality, RobustSplit)>,
}

/// Prompts of the rows, numbered by first appearance, as draws are paired.
fn numbered(rows: &TargetRows) -> Result<Clusters, SampleError> {
    let mut number = BTreeMap::new();
    let mut of_row = Vec::with_capacity(rows.places.len());
    for (item, _) in &rows.places {
        let next = u32::try_from(number.len()).unwrap_or(u32::MAX);
        of_row.push(*number.entry(item).or_insert(next));
    }
    Clusters::numbered(of_row, number.len())
}

/// Outer folds of calibrated IPS.
fn outer_folds(rows: &TargetRows, terms: &OpeTerms) -> Vec<usize> {
    let (count, seed) = (fold_count(terms), terms.outer_seed.value());
    let places = rows.places.iter();
    places
        .map(|(item, _)| folds::hash_mod(item.as_str(), count, seed))
        .collect()
}

/// What is known of overlap before any estimate.
struct OverlapDiagnosis {
    ttc: overlap::Coverage,
    ttc_by_total: Option<f64>,
    affinity: f64,
    own: Option<Own>,
    evidence: OverlapEvidence,
}

fn measured(
    found: &Found,
    target: &PolicyId,
    rows: &TargetRows,
    ratios: &LogRatios,
    raw: Weights<'_>,
) -> Result<OverlapDiagnosis, OpeError> {
    let coverage = |lengths: Option<&[f64]>| {
        let mass = overlap::TYPICAL_MASS;
        overlap::coverage(
            &rows.target,
            &rows.base,
            lengths,
            SurprisalThreshold::Logged,
            mass,
        )
    };
    let lengths = rows.tokens.as_deref();
    let ttc = coverage(lengths)?;
    let by_total = lengths.map(|_| coverage(None)).transpose()?;
    let own = own_draws(found, target, rows);
    let scores = Values::new("scores", &rows.scores)?;
    let affinity = match &own {
        Some(own) => overlap::bhattacharyya(scores, Values::new("scores", &own.scores)?, BINS)?,
        None => overlap::bhattacharyya_weighted(scores, raw, BINS)?,
    };
    let mut evidence = OverlapEvidence::of(ratios, Some(&ttc), own.is_some())?;
    evidence.affinity = Some(affinity);
    Ok(OverlapDiagnosis {
        ttc,
        ttc_by_total: by_total.map(|of| of.ttc),
        affinity,
        own,
        evidence,
    })
}

/// Estimates of one target, with what admits them.
///
/// # Errors
/// [`OpeError`].
pub fn target(
    found: &Found,
    logs: &Logs,
    terms: &OpeTerms,
    target: &PolicyId,
) -> Result<TargetDiagnosis, OpeError> {
    let rows = TargetRows::read(found, logs, terms, target)?;
    let fitted = calibrator(found, terms)?;
    let scores = Values::new("scores", &rows.scores)?;
    let rewards = Rewards::of(&fitted, scores, &columns(&rows.covariates)?)?;
    let prompts = numbered(&rows)?;
    let logged = LoggedRows::new(&rewards, &rows.folds, &prompts)?;
    let ratios = LogRatios::new(&rows.target, &rows.base)?;
    let raw = ratios.mean_one();
    let (weights, index) = (weigh(&raw)?, Values::new("index", logged.out_of_fold())?);
    let stabilise = |outer: &[usize]| {
        let (objective, settings) = (
            Objective::Rewards(logged.out_of_fold()),
            StabiliserSettings::default(),
        );
        weights::cross_fit(weights, index, objective, outer, &rows.folds, &settings)
    };
    let outer = outer_folds(&rows, terms);
    let stabilised = stabilise(&outer)?;
    let own_weights = weigh(&stabilised.weights)?;
    let mean = |estimator, weights| offpolicy::weighted_mean(estimator, &logged, weights);
    let mut estimates = vec![
        (mean(Estimator::Snips, weights)?, Vec::new()),
        (mean(Estimator::CalibratedIps, own_weights)?, Vec::new()),
    ];
    let mut of = measured(found, target, &rows, &ratios, weights)?;
    of.evidence.stabilised = Some(WeightEvidence::of(own_weights));
    of.evidence.guarded = Some(stabilised.guarded());
    let mut residuals = None;
    if let Some(own) = &of.own {
        let on_own_folds = stabilise(&rows.folds)?;
        let weights = weigh(&on_own_folds.weights)?;
        let (robust, parts) = robust(&fitted, &logged, (&rows, own), weights)?;
        estimates.extend(robust);
        let found = judged(&logged, weights, &parts, &prompts, terms)?;
        of.evidence.orthogonality = Some(found.0);
        residuals = Some(found);
    }
    let overlapping = weights::overlap(&ratios);
    let overlap_mean = weigh(&overlapping).ok();
    let overlap_mean = overlap_mean.map(|own| mean(Estimator::Snips, own));
    let least = terms.thresholds.ess_good_micro.value() as f64 / 1e6;
    Ok(said::target(&Numbers {
        found,
        logs,
        terms,
        target,
        calibrator: said::calibrator_digest(&fitted),
        filter: rows.filter.clone(),
        root: rows.root(),
        estimates,
        overlap_mean: overlap_mean.transpose()?,
        cohort_mean: cohort_mean(&fitted, &rows, weights, least)?,
        evidence: of.evidence,
        affinity: of.affinity,
        ttc: of.ttc,
        ttc_by_total: of.ttc_by_total,
        caps: weights::cap_curve(weights, Values::new("rewards", rewards.full())?, &CAPS)?,
        groups: groups(&rows, weights)?,
        residuals,
        raw: raw.clone(),
        stabilised,
        prompts: prompts.clone(),
    })?)
}

type RobustMixture = (OffPolicy, Vec<(Estimator, f64)>);

/// DR-CPO, TMLE, MRDR and their mixture.
fn robust(
    fitted: &Calibrator,
    logged: &LoggedRows<'_>,
    (rows, own): (&TargetRows, &Own),
    weights: Weights<'_>,
) -> Result<(Vec<RobustMixture>, RobustColumns), OpeError> {
    let scores = Values::new("scores", &own.scores)?;
    let (of_logged, of_own) = (columns(&rows.covariates)?, columns(&own.covariates)?);
    let rewards = Rewards::of(fitted, scores, &of_own)?;
    let draws = Draws::new(&rewards, &own.prompts, logged)?;
    let (plain, parts) = offpolicy::doubly_robust(logged, &draws, weights)?;
    let logged_scores = Values::new("scores", &rows.scores)?;
    let logged_ranks = Ranks::of(fitted, logged_scores, &of_logged)?;
    let own_ranks = Ranks::of(fitted, scores, &of_own)?;
    let outcome = |omega| Outcome::isotonic(logged, &draws, &logged_ranks, &own_ranks, omega);
    let (moved, _) = offpolicy::targeted(
        logged,
        &draws,
        weights,
        &outcome(None)?,
        logged_scores,
        scores,
    )?;
    let (weighted, _) = offpolicy::more_robust(logged, &draws, weights, &outcome(Some(weights))?)?;
    let components = vec![plain, moved, weighted];
    let stacked = offpolicy::stack(&components)?;
    let mut found: Vec<RobustMixture> = components.into_iter().map(|of| (of, Vec::new())).collect();
    found.push((stacked.estimate, stacked.shares));
    Ok((found, parts))
}

/// The test of the weighted residuals, and the parts of the estimate.
fn judged(
    logged: &LoggedRows<'_>,
    weights: Weights<'_>,
    parts: &RobustColumns,
    prompts: &Clusters,
    terms: &OpeTerms,
) -> Result<(Orthogonality, RobustSplit), OpeError> {
    let full = Values::new("rewards", logged.rewards().full())?;
    let predicted = Values::new("predictions", &parts.predicted)?;
    let direct = Values::new("direct part", &parts.direct)?;
    let alpha = terms.estimate.alpha_micro.value() as f64 / 1e6;
    Ok((
        overlap::orthogonality(weights, full, predicted, prompts, alpha)?,
        overlap::split(direct, weights, full, predicted)?,
    ))
}

/// Overlap by cohort, else by thirds of the judge's scores.
fn groups(
    rows: &TargetRows,
    weights: Weights<'_>,
) -> Result<Vec<overlap::Subgroup<String>>, OpeError> {
    let names: Vec<String> = if let Some(cohorts) = &rows.cohorts {
        cohorts.iter().map(|of| format!("cohort {of}")).collect()
    } else {
        let mut sorted = rows.scores.clone();
        sorted.sort_by(f64::total_cmp);
        let cut = |third: usize| sorted[(sorted.len() * third / 3).min(sorted.len() - 1)];
        let (low, high) = (cut(1), cut(2));
        let third = |score: &f64| match (*score < low, *score < high) {
            (true, _) => "scores, lowest third",
            (_, true) => "scores, middle third",
            _ => "scores, highest third",
        };
        let scores = rows.scores.iter();
        scores.map(|score| third(score).to_owned()).collect()
    };
    Ok(overlap::subgroups(weights, &names)?)
}

/// The self-normalised mean over the cohorts that both policies visit; `None` where all or none do.
fn cohort_mean(
    fitted: &Calibrator,
    rows: &TargetRows,
    weights: Weights<'_>,
    least: f64,
) -> Result<Option<(OffPolicy, Clusters)>, OpeError> {
    let Some(cohorts) = &rows.cohorts else {
        return Ok(None);
    };
    let kept = match weights::to_cohorts(weights, cohorts, least) {
        Ok(found) if found.rows.kept.len() < cohorts.len() => found.rows.kept,
        Ok(_) | Err(Unfit::InsufficientData(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let pick = |values: &[f64]| -> Vec<f64> { kept.iter().map(|&row| values[row]).collect() };
    let covariates: Vec<Vec<f64>> = rows.covariates.iter().map(|of| pick(of)).collect();
    let own = pick(&rows.scores);
    let rewards = Rewards::of(fitted, Values::new("scores", &own)?, &columns(&covariates)?)?;
    let own_folds: Vec<usize> = kept.iter().map(|&row| rows.folds[row]).collect();
    let prompts = Clusters::of(kept.iter().map(|&row| &rows.places[row].0))?;
    let logged = LoggedRows::new(&rewards, &own_folds, &prompts)?;
    let weights = pick(weights.as_slice());
    let mean = offpolicy::weighted_mean(Estimator::Snips, &logged, weigh(&weights)?)?;
    Ok(Some((mean, prompts)))
}
