//! Families of environments under the calibrator of an experiment: mean residuals of probes in each, tested once.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::DesignId;
use clover_event::id::FamilyId;
use clover_event::id::FieldId;
use clover_event::payload::Verdict;
use clover_event::payload::environment::EnvironmentOutcome;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::FamilyCorrection;
use clover_event::payload::estimated::AuditObstacle;
use clover_event::payload::estimated::EnvironmentRows;
use clover_event::payload::estimated::IntervalEnds;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::Probability;
use clover_num::math;
use clover_projection::audits::obstacles;
use clover_stats::direct;
use clover_stats::direct::Scale;
use clover_stats::environment;
use clover_stats::environment::Environment;
use clover_stats::environment::EnvironmentFinding;
use clover_stats::environment::EnvironmentVerdict;
use clover_stats::inference;
use clover_stats::sample::Clusters;
use clover_stats::sample::SampleError;
use clover_stats::sample::Values;

use crate::analyze::AnalyzeError;
use crate::analyze::Probe;
use crate::environments;
use crate::estimate::compute;
use crate::estimate::compute::Found;
use crate::estimate::rows;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::Probes;
use crate::estimate::terms;
use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::size;
use crate::estimate::terms::text;

/// Algorithm of a test, with its version.
pub const ALGORITHM: &str = "environments/1";

/// What a test computes with.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentAsk<'a> {
    /// How the family is corrected; `None` for Benjamini-Hochberg.
    pub correction: Option<FamilyCorrection>,
    /// The design of the probes.
    pub design: &'a DesignId,
    /// The environments, each with whether a claim needs it to pass.
    pub environments: &'a [(EnvironmentScope, bool)],
    /// Their family.
    pub family: &'a FamilyId,
    /// Whether each says how many rows it has, and passes only with as many probes as their design draws of them.
    pub inside: bool,
    /// The manifest version that names them.
    pub manifest: Digest,
    /// Why nothing passes, whatever the numbers are.
    pub obstacles: &'a [AuditObstacle],
    /// Level of the family.
    pub q: Micro,
}

impl EnvironmentAsk<'_> {
    /// Fields that decide which rows are in which environment.
    pub fn fields(&self) -> Vec<FieldId> {
        fields(self.environments.iter().map(|(scope, _)| scope))
    }
}

/// Fields that imports have to have kept for these environments.
pub fn fields<'a>(scopes: impl IntoIterator<Item = &'a EnvironmentScope>) -> Vec<FieldId> {
    let found = scopes.into_iter().filter_map(environments::field);
    let mut found: BTreeSet<FieldId> = found.collect();
    found.retain(|field| field.as_str() != rows::POLICY);
    found.into_iter().collect()
}

/// The calibrator, with all probes of a design held to be none of its labels.
///
/// # Errors
/// [`AnalyzeError`].
pub fn fitted(
    gathered: Gathered,
    of: &EstimateTerms,
    design: &DesignId,
) -> Result<Found, AnalyzeError> {
    let held = gathered.probes.get(design).into_iter().flatten();
    let probes = held.map(|(policy, probes)| Probe {
        responses: gathered.probe(*policy, probes),
        margin: None,
    });
    let probes: Vec<Probe> = probes.collect();
    compute::compute(gathered, terms::fit(of), &probes, None, None)
}

/// One probe on the scale of 0 to 1.
struct UnitProbe {
    policy: usize,
    row: usize,
    prompt: u32,
    label: f64,
    predicted: f64,
    without_fold: Vec<f64>,
}

/// Probes of a design that count, by policy, and how many do not: those whose score, or a field that places them, was said
/// only once their label could be read.
fn counted(gathered: &Gathered, design: &DesignId) -> (BTreeMap<usize, Probes>, usize) {
    let mut counted = BTreeMap::new();
    for (policy, (mut probes, _)) in gathered.timely_probes(design) {
        let is_late = |row: usize| {
            let key = gathered.key(policy, row);
            key.is_none_or(|key| gathered.places.is_late(&key))
        };
        probes.labels.retain(|&row, _| !is_late(row));
        if !probes.labels.is_empty() {
            counted.insert(policy, probes);
        }
    }
    let unscored = gathered.unscored_probes.get(design).into_iter().flatten();
    let scored = gathered.probes.get(design).into_iter().flatten();
    let all = unscored.map(|(_, rows)| rows.len()).sum::<usize>()
        + scored.map(|(_, probes)| probes.labels.len()).sum::<usize>();
    let counts: usize = counted.values().map(|probes| probes.labels.len()).sum();
    (counted, all - counts)
}

/// Every probe that counts on the scale of 0 to 1; `None` without a calibrator.
fn probes(found: &Found, held: &BTreeMap<usize, Probes>) -> Option<Vec<UnitProbe>> {
    let calibrator = &found.analysis.calibration.as_ref().ok()?.calibrator;
    let to_unit = |scale: Option<Scale>, value: f64| {
        scale.map_or(0.5, |scale| scale.to_unit(value).unwrap_or(0.5))
    };
    let (judge, labels) = (found.analysis.judge_scale, found.analysis.label_scale);
    let mut all = Vec::new();
    for (&policy, held) in held {
        for (&row, values) in &held.labels {
            let (of, _, at) = found.gathered.row(policy, row);
            let score = to_unit(judge, of.scores[at]);
            let covariates: Vec<f64> = of.covariates.iter().map(|column| column[at]).collect();
            let without = calibrator.without_fold.iter();
            all.push(UnitProbe {
                policy,
                row,
                prompt: of.prompts[at],
                label: to_unit(labels, rows::mean(values)),
                predicted: calibrator.predict(score, &covariates),
                without_fold: without.map(|of| of.predict(score, &covariates)).collect(),
            });
        }
    }
    Some(all)
}

/// Columns of one environment's probes.
struct EnvironmentColumns {
    residuals: Vec<f64>,
    clusters: Clusters,
    variance: f64,
    /// Half the width of what bounds the mean label, where labels are nearly constant.
    bound: Option<f64>,
}

impl EnvironmentColumns {
    fn new(of: &[&UnitProbe], is_scale_known: bool) -> Result<Self, SampleError> {
        let folds = of.first().map_or(0, |probe| probe.without_fold.len());
        let mean_without = (0..folds).map(|fold| {
            let column: Vec<f64> = of.iter().map(|probe| probe.without_fold[fold]).collect();
            math::mean(&column)
        });
        let mean_without: Vec<f64> = mean_without.collect();
        let labels: Vec<(f64, u32)> = of.iter().map(|probe| (probe.label, probe.prompt)).collect();
        let rare = direct::rare(&labels, 0.05);
        Ok(Self {
            residuals: of
                .iter()
                .map(|probe| probe.label - probe.predicted)
                .collect(),
            clusters: Clusters::of(of.iter().map(|probe| probe.prompt))?,
            variance: inference::jackknife_variance(&mean_without).unwrap_or(0.0),
            bound: rare.map(|rare| {
                // Equal labels on a scale that nobody declared bound nothing.
                let known = is_scale_known || rare.off_mode > 0;
                if known { 0.5 * rare.bound.width() } else { 1.0 }
            }),
        })
    }
}

/// Tests a family of environments; `None` without a calibrator or probes.
///
/// # Errors
/// [`AnalyzeError`].
pub fn test(
    found: &Found,
    ask: &EnvironmentAsk<'_>,
) -> Result<Option<EnvironmentsTested>, AnalyzeError> {
    let gathered = &found.gathered;
    let (held, late) = counted(gathered, ask.design);
    let (Some(all), Some(calibrator)) = (probes(found, &held), found.digest()) else {
        return Ok(None);
    };
    let is_in = |probe: &UnitProbe, scope| gathered.is_in(probe.policy, probe.row, scope);
    let known =
        found.terms.label_scale.is_some() || found.analysis.label_scale == Some(Scale::UNIT);
    let mut columns = Vec::with_capacity(ask.environments.len());
    for (scope, _) in ask.environments {
        let inside: Vec<&UnitProbe> = all.iter().filter(|probe| is_in(probe, scope)).collect();
        columns.push(if inside.is_empty() {
            None
        } else {
            Some(EnvironmentColumns::new(&inside, known)?)
        });
    }
    let findings = findings(&columns, ask)?;
    let outside = all.iter().filter(|probe| {
        let mut scopes = ask.environments.iter();
        !scopes.any(|(scope, _)| is_in(probe, scope))
    });
    let without = outside.count();
    let mut tree = Frontier::new();
    let (mut newest, mut charge) = (0, None);
    for (policy, probes) in &held {
        tree.push(merkle::leaf_hash(
            &gathered.probes_root(*policy, probes).0.0,
        ));
        newest = probes.newest.max(newest);
        charge = charge.or(probes.charge);
    }
    let drawn = |scope: &EnvironmentScope| ask.inside.then(|| to_draw(gathered, ask.design, scope));
    let rate = gathered.inclusions.get(ask.design);
    let rate = rate.map_or(0, |rate| rate.value());
    let outcomes = ask.environments.iter().zip(&findings).zip(&columns);
    Ok(Some(EnvironmentsTested {
        algorithm: text(ALGORITHM),
        build: text(BUILD),
        calibrator,
        charge,
        correction: ask.correction,
        design: ask.design.clone(),
        environments: outcomes
            .map(|(((scope, required), finding), columns)| {
                let bound = columns.as_ref().and_then(|of| of.bound);
                let found = finding.as_ref();
                let drawn = drawn(scope);
                let rows = found.map_or(0, |of| of.rows as u64);
                let is_whole =
                    drawn.is_none_or(|of| obstacles::of_rows(of, rate).obstacle(rows).is_none());
                let may_pass = late == 0 && ask.obstacles.is_empty() && is_whole;
                let kept = outcome((scope, *required), found, (bound, ask.q), may_pass);
                EnvironmentOutcome { drawn, ..kept }
            })
            .collect(),
        family: ask.family.clone(),
        late: size(late),
        manifest: ask.manifest,
        obstacles: ask.obstacles.to_vec(),
        probes: size(all.len()),
        probes_root: clover_event::id::Root(tree.root()),
        q_micro: ask.q,
        terms: found.terms.clone(),
        through_seq: count(gathered.newest.max(gathered.newest_import).max(newest)),
        without: size(without),
    }))
}

/// Rows of an environment that the probes of a design were drawn from, of every policy that has some.
fn to_draw(gathered: &Gathered, design: &DesignId, scope: &EnvironmentScope) -> EnvironmentRows {
    let policies = gathered.probes.get(design).into_iter().flatten();
    let each = policies.map(|(&policy, _)| {
        gathered.to_draw((policy, design), |row| gathered.is_in(policy, row, scope))
    });
    let (mut left, mut rows) = (0, 0);
    for of in each {
        left += of.left.value();
        rows += of.rows.value();
    }
    EnvironmentRows {
        left: count(left),
        rows: count(rows),
    }
}

/// The finding of each environment that has probes, adjusted within the family of those.
fn findings(
    columns: &[Option<EnvironmentColumns>],
    ask: &EnvironmentAsk<'_>,
) -> Result<Vec<Option<EnvironmentFinding>>, AnalyzeError> {
    let mut family = Vec::with_capacity(columns.len());
    for of in columns.iter().flatten() {
        family.push(Environment {
            residuals: Values::new("residuals", &of.residuals)?,
            clusters: &of.clusters,
            calibration_variance: of.variance,
        });
    }
    if family.is_empty() {
        return Ok(vec![None; columns.len()]);
    }
    let correction = terms::correction(ask.correction);
    let mut found = environment::test(&family, correction, terms::unit(ask.q))?.into_iter();
    let each = columns
        .iter()
        .map(|of| of.as_ref().and_then(|_| found.next()));
    Ok(each.collect())
}

/// What an event keeps of one environment. Labels that hardly vary see no bias below their bound, and none passes where it may
/// not: beside a probe that does not count, or with fewer or more than are drawn.
fn outcome(
    (scope, required): (&EnvironmentScope, bool),
    found: Option<&EnvironmentFinding>,
    (bound, q): (Option<f64>, Micro),
    may_pass: bool,
) -> EnvironmentOutcome {
    let mut kept = EnvironmentOutcome {
        clusters: size(0),
        detectable_bias: None,
        drawn: None,
        interval: None,
        mean: None,
        p: None,
        p_adjusted: None,
        required,
        rows: size(0),
        scope: scope.clone(),
        standard_error: None,
        verdict: Verdict::NotChecked,
    };
    let Some(found) = found else {
        return kept;
    };
    let bias = found.detectable_bias;
    let bias = bias.map(|bias| bound.map_or(bias, |bound| bound.max(bias)));
    let p_adjusted = found.p.map(|_| found.p_adjusted);
    kept.clusters = size(found.clusters);
    kept.rows = size(found.rows);
    kept.mean = Finite::new(found.mean);
    kept.standard_error = found.standard_error.and_then(Finite::new);
    kept.detectable_bias = bias.and_then(Finite::new);
    kept.interval = found.interval.and_then(|at| {
        Some(IntervalEnds {
            high: Finite::new(at.high)?,
            low: Finite::new(at.low)?,
        })
    });
    kept.p = found.p.and_then(Probability::new);
    kept.p_adjusted = p_adjusted.and_then(Probability::new);
    kept.verdict = match environment::verdict(found.rows, p_adjusted, bias, terms::unit(q)) {
        EnvironmentVerdict::Fail => Verdict::Fail,
        EnvironmentVerdict::Pass if may_pass => Verdict::Pass,
        EnvironmentVerdict::Inconclusive | EnvironmentVerdict::Pass => Verdict::Inconclusive,
    };
    kept
}
