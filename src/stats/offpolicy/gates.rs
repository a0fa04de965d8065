//! Which estimators the evidence admits, and why logged data cannot answer (CJE paper, tables 7 and 9, algorithm 8).

use crate::offpolicy::estimate::Estimator;
use crate::overlap;
use crate::overlap::Concentration;
use crate::overlap::Coverage;
use crate::overlap::Orthogonality;
use crate::overlap::Tail;
use crate::sample::SampleError;
use crate::sample::Weights;
use crate::weights::LogRatios;

/// Where gates change their verdict; the defaults are those of table 9 and of `cje-eval` 0.3.0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Effective sample size, as a share, from which overlap is good: variance at most 1 / 0.30 of independent rows.
    pub ess_good: f64,
    /// From which it is warned of instead of refused.
    pub ess_warn: f64,
    /// Hill index from which a tail has a finite variance.
    pub hill_good: f64,
    /// From which it has a finite mean.
    pub hill_warn: f64,
    /// Affinity of judge scores from which overlap is good.
    pub affinity_good: f64,
    /// Below which it is a severe mismatch.
    pub affinity_warn: f64,
    /// Target-typicality coverage from which logged data may answer.
    pub ttc_good: f64,
    /// Below which no doubt is left that they cannot.
    pub ttc_warn: f64,
    /// Share of ratios below 1e-10 above which overlap is refused.
    pub near_zero_max: f64,
    /// Share of weight on the heaviest 5 % above which, together with `cv_max`, overlap is refused.
    pub top_mass_max: f64,
    /// Coefficient of variation that goes with it.
    pub cv_max: f64,
    /// Share of folds whose caps bind above which the cap is warned of.
    pub guarded_max: f64,
}

impl Thresholds {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        ess_good: 0.30,
        ess_warn: 0.10,
        hill_good: 2.0,
        hill_warn: 1.0,
        affinity_good: 0.85,
        affinity_warn: 0.50,
        ttc_good: 0.70,
        ttc_warn: 0.30,
        near_zero_max: 0.85,
        top_mass_max: 0.30,
        cv_max: 2.0,
        guarded_max: 0.50,
    };

    /// Refuses thresholds that are not finite numbers of at least 0, or a warning level above its good one.
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn check(&self) -> Result<(), SampleError> {
        let pairs = [
            (self.ess_warn, self.ess_good),
            (self.hill_warn, self.hill_good),
            (self.affinity_warn, self.affinity_good),
            (self.ttc_warn, self.ttc_good),
        ];
        let single = [
            self.near_zero_max,
            self.top_mass_max,
            self.cv_max,
            self.guarded_max,
        ];
        let ordered = pairs
            .iter()
            .all(|(low, high)| *low >= 0.0 && low <= high && high.is_finite());
        if ordered
            && single
                .iter()
                .all(|value| value.is_finite() && *value >= 0.0)
        {
            return Ok(());
        }
        Err(SampleError::Parameter {
            name: "gate thresholds",
            expected: "finite numbers of at least 0, each warning level at most its good one",
        })
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a number means for a gate, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The gate is met.
    Good,
    /// Not measured: never read as met.
    Unknown,
    /// Missed; estimates carry a warning.
    Warn,
    /// Missed by far.
    Critical,
}

impl Grade {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }

    /// At least `good`, at least `warn`, or neither; unknown without a number or for NaN.
    fn ladder(value: Option<f64>, warn: f64, good: f64) -> Self {
        match value {
            Some(value) if value >= good => Self::Good,
            Some(value) if value >= warn => Self::Warn,
            Some(value) if value < warn => Self::Critical,
            _ => Self::Unknown,
        }
    }

    /// Good at most `limit`, critical above; unknown without a number or for NaN.
    fn ceiling(value: Option<f64>, limit: f64) -> Self {
        match value {
            Some(value) if value <= limit => Self::Good,
            Some(value) if value > limit => Self::Critical,
            _ => Self::Unknown,
        }
    }
}

/// A gate of table 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateName {
    /// Effective sample size over rows.
    Ess,
    /// Hill index of the weights.
    Hill,
    /// Bhattacharyya affinity of judge scores.
    Affinity,
    /// Target-typicality coverage.
    Ttc,
    /// Share of ratios that are nearly 0.
    NearZero,
    /// Weight on the heaviest 5 % where weights vary much.
    TopMass,
    /// Weighted residuals of the outcome model about 0.
    Orthogonality,
    /// Share of folds whose caps bind.
    Cap,
}

impl GateName {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ess => "ess",
            Self::Hill => "hill",
            Self::Affinity => "affinity",
            Self::Ttc => "ttc",
            Self::NearZero => "near-zero",
            Self::TopMass => "top-mass",
            Self::Orthogonality => "orthogonality",
            Self::Cap => "cap",
        }
    }

    /// What table 9 advises where it is missed.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Ess | Self::Affinity => {
                "use overlap weights or restrict to cohorts that both policies visit"
            }
            Self::Hill => "no offline conclusion below 1; below 2 report with a warning",
            Self::Ttc => {
                "prefer draws of the target: no weighting reaches where the logger does not go"
            }
            Self::NearZero | Self::TopMass => {
                "collect draws of the target, or log a policy nearer to it"
            }
            Self::Orthogonality => {
                "strengthen the outcome model; weighted means only as a diagnostic"
            }
            Self::Cap => "show the cap curve; prefer overlap weights or restriction",
        }
    }
}

/// One gate, judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlapGate {
    /// Which.
    pub name: GateName,
    /// What was measured; infinity for a level tail; `None` where nothing was.
    pub value: Option<f64>,
    /// The level that is good.
    pub threshold: f64,
    /// The verdict.
    pub grade: Grade,
}

/// What is known of one set of weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightEvidence {
    /// Their concentration.
    pub concentration: Concentration,
    /// Their stable Hill index.
    pub tail: Tail,
}

impl WeightEvidence {
    /// Measures weights.
    pub fn of(weights: Weights<'_>) -> Self {
        Self {
            concentration: overlap::concentration(weights),
            tail: overlap::hill_stable(weights),
        }
    }
}

/// What is known of one target policy beside its logger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverlapEvidence {
    /// Whether there are draws of the target.
    pub draws: bool,
    /// Ratios as they are; `None` without log-probabilities.
    pub raw: Option<WeightEvidence>,
    /// Share of ratios below 1e-10.
    pub near_zero: Option<f64>,
    /// Weights stabilised in the score.
    pub stabilised: Option<WeightEvidence>,
    /// Share of folds whose caps bound.
    pub guarded: Option<f64>,
    /// Affinity of judge scores.
    pub affinity: Option<f64>,
    /// Target-typicality coverage.
    pub ttc: Option<f64>,
    /// The test of the weighted residuals.
    pub orthogonality: Option<Orthogonality>,
}

impl OverlapEvidence {
    /// What ratios and coverage say; the rest is added where it is known.
    ///
    /// # Errors
    /// [`SampleError`] if the weights are none: never for checked ratios.
    pub fn of(
        ratios: &LogRatios,
        coverage: Option<&Coverage>,
        draws: bool,
    ) -> Result<Self, SampleError> {
        let weights = ratios.mean_one();
        let checked = Weights::new("weights", &weights, weights.len())?;
        Ok(Self {
            draws,
            raw: Some(WeightEvidence::of(checked)),
            near_zero: Some(ratios.share_below(1e-10)),
            ttc: coverage.map(|coverage| coverage.ttc),
            ..Self::default()
        })
    }
}

/// The gates of one set of weights, with those of the policies themselves, in the order of [`GateName`].
pub fn overlap_gates(
    weights: &WeightEvidence,
    evidence: &OverlapEvidence,
    thresholds: &Thresholds,
) -> Vec<OverlapGate> {
    let gate = |name, value: Option<f64>, threshold, grade| OverlapGate {
        name,
        value,
        threshold,
        grade,
    };
    let t = thresholds;
    let ess = Some(weights.concentration.ess.fraction);
    let hill = weights.tail.index();
    let top = weights.concentration.top_5_percent;
    let varied = weights.concentration.cv_squared.sqrt() > t.cv_max;
    let top_grade = if varied {
        Grade::ceiling(Some(top), t.top_mass_max)
    } else {
        Grade::Good
    };
    vec![
        gate(
            GateName::Ess,
            ess,
            t.ess_good,
            Grade::ladder(ess, t.ess_warn, t.ess_good),
        ),
        gate(
            GateName::Hill,
            hill,
            t.hill_good,
            Grade::ladder(hill, t.hill_warn, t.hill_good),
        ),
        gate(
            GateName::Affinity,
            evidence.affinity,
            t.affinity_good,
            Grade::ladder(evidence.affinity, t.affinity_warn, t.affinity_good),
        ),
        gate(
            GateName::Ttc,
            evidence.ttc,
            t.ttc_good,
            Grade::ladder(evidence.ttc, t.ttc_warn, t.ttc_good),
        ),
        gate(
            GateName::NearZero,
            evidence.near_zero,
            t.near_zero_max,
            Grade::ceiling(evidence.near_zero, t.near_zero_max),
        ),
        gate(GateName::TopMass, Some(top), t.top_mass_max, top_grade),
    ]
}

/// Whether an estimate may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverlapVerdict {
    /// As it stands.
    Admissible,
    /// With its warnings.
    Warned,
    /// Not at all.
    Refused,
    /// It cannot be computed from what there is.
    Unavailable,
}

impl OverlapVerdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admissible => "admissible",
            Self::Warned => "warned",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a verdict is not plain admissible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// There are no draws of the target.
    NoDraws,
    /// There are no log-probabilities.
    NoLogProbabilities,
    /// There are no stabilised weights.
    NotStabilised,
    /// A gate was not met.
    Missed(OverlapGate),
    /// A gate was not measured.
    Unmeasured(GateName),
    /// Overlap fails: the estimate rests on its outcome model alone.
    RestsOnOutcomeModel,
    /// Fewer than two components may be read.
    FewComponents,
}

/// One row of the estimator guide.
#[derive(Clone, Debug, PartialEq)]
pub struct GuideRow {
    /// The estimator.
    pub estimator: Estimator,
    /// Whether it may be read.
    pub verdict: OverlapVerdict,
    /// Why not, or with what warning.
    pub reasons: Vec<Reason>,
}

/// The estimator guide: every estimator with its verdict, from the evidence and nothing else.
///
/// Direct needs draws and no overlap. Weighted means need overlap: ESS below its good level, TTC below its good level, a
/// critical affinity or tail, or a refusal of ratios or top mass refuses them; other misses and what was not measured
/// warn. Doubly robust estimates need both sources; they survive poor overlap through their outcome model, which is said,
/// but not a tail without mean; weighted residuals away from 0 are warned of. Stacking needs two readable components.
///
/// # Errors
/// [`SampleError::Parameter`] for thresholds out of order.
pub fn guide(
    evidence: &OverlapEvidence,
    thresholds: &Thresholds,
) -> Result<Vec<GuideRow>, SampleError> {
    thresholds.check()?;
    let mut rows = Vec::with_capacity(Estimator::ALL.len());
    for estimator in Estimator::ALL {
        let (verdict, reasons) = match estimator {
            Estimator::Direct if evidence.draws => (OverlapVerdict::Admissible, Vec::new()),
            Estimator::Direct => (OverlapVerdict::Unavailable, vec![Reason::NoDraws]),
            Estimator::Snips => weighted(evidence, evidence.raw.as_ref(), thresholds),
            Estimator::CalibratedIps => stabilised(evidence, thresholds),
            Estimator::DrCpo | Estimator::Tmle | Estimator::Mrdr => robust(evidence, thresholds),
            Estimator::StackedDr => stacked(&rows),
        };
        rows.push(GuideRow {
            estimator,
            verdict,
            reasons,
        });
    }
    Ok(rows)
}

/// The first estimator that answers from logged rows without draws, or every reason why none does.
///
/// # Errors
/// The reasons, those of unstabilised weights first, each once.
pub fn logged_answer(guide: &[GuideRow]) -> Result<Estimator, Vec<Reason>> {
    let weighted = [Estimator::CalibratedIps, Estimator::Snips];
    let row = |estimator| guide.iter().find(|row| row.estimator == estimator);
    for row in weighted.into_iter().filter_map(row) {
        if row.verdict <= OverlapVerdict::Warned {
            return Ok(row.estimator);
        }
    }
    let mut reasons: Vec<Reason> = Vec::new();
    for row in weighted.into_iter().rev().filter_map(row) {
        for reason in &row.reasons {
            if !reasons.contains(reason) {
                reasons.push(*reason);
            }
        }
    }
    Err(reasons)
}

fn stabilised(
    evidence: &OverlapEvidence,
    thresholds: &Thresholds,
) -> (OverlapVerdict, Vec<Reason>) {
    if evidence.raw.is_some() && evidence.stabilised.is_none() {
        return (OverlapVerdict::Unavailable, vec![Reason::NotStabilised]);
    }
    let (mut verdict, mut reasons) = weighted(evidence, evidence.stabilised.as_ref(), thresholds);
    if verdict == OverlapVerdict::Unavailable {
        return (verdict, reasons);
    }
    let limit = thresholds.guarded_max;
    let missed = Grade::ceiling(evidence.guarded, limit) == Grade::Critical;
    if missed {
        reasons.push(Reason::Missed(OverlapGate {
            name: GateName::Cap,
            value: evidence.guarded,
            threshold: limit,
            grade: Grade::Warn,
        }));
        verdict = verdict.max(OverlapVerdict::Warned);
    }
    (verdict, reasons)
}

/// The verdict on a mean under weights.
fn weighted(
    evidence: &OverlapEvidence,
    weights: Option<&WeightEvidence>,
    thresholds: &Thresholds,
) -> (OverlapVerdict, Vec<Reason>) {
    let Some(weights) = weights else {
        return (
            OverlapVerdict::Unavailable,
            vec![Reason::NoLogProbabilities],
        );
    };
    let mut verdict = OverlapVerdict::Admissible;
    let mut reasons = Vec::new();
    for gate in overlap_gates(weights, evidence, thresholds) {
        let refuses = match gate.name {
            GateName::Ess | GateName::Ttc => gate.grade >= Grade::Warn,
            _ => gate.grade == Grade::Critical,
        };
        match gate.grade {
            Grade::Good => continue,
            Grade::Unknown => reasons.push(Reason::Unmeasured(gate.name)),
            Grade::Warn | Grade::Critical => reasons.push(Reason::Missed(gate)),
        }
        verdict = verdict.max(if refuses {
            OverlapVerdict::Refused
        } else {
            OverlapVerdict::Warned
        });
    }
    (verdict, reasons)
}

/// The verdict on a doubly robust estimate, under stabilised weights where there are any.
fn robust(evidence: &OverlapEvidence, thresholds: &Thresholds) -> (OverlapVerdict, Vec<Reason>) {
    let Some(weights) = evidence.stabilised.as_ref().or(evidence.raw.as_ref()) else {
        return (
            OverlapVerdict::Unavailable,
            vec![Reason::NoLogProbabilities],
        );
    };
    if !evidence.draws {
        return (OverlapVerdict::Unavailable, vec![Reason::NoDraws]);
    }
    let (overlap, mut reasons) = weighted(evidence, Some(weights), thresholds);
    let mut verdict = overlap.min(OverlapVerdict::Warned);
    if overlap == OverlapVerdict::Refused {
        reasons.push(Reason::RestsOnOutcomeModel);
    }
    let meanless = |reason: &Reason| {
        matches!(reason, Reason::Missed(gate)
            if gate.name == GateName::Hill && gate.grade == Grade::Critical)
    };
    if reasons.iter().any(meanless) {
        verdict = OverlapVerdict::Refused;
    }
    match &evidence.orthogonality {
        Some(test) if test.holds() => {}
        Some(test) => {
            reasons.push(Reason::Missed(OverlapGate {
                name: GateName::Orthogonality,
                value: Some(test.mean),
                threshold: 0.0,
                grade: Grade::Warn,
            }));
            verdict = verdict.max(OverlapVerdict::Warned);
        }
        None => {
            reasons.push(Reason::Unmeasured(GateName::Orthogonality));
            verdict = verdict.max(OverlapVerdict::Warned);
        }
    }
    (verdict, reasons)
}

fn stacked(rows: &[GuideRow]) -> (OverlapVerdict, Vec<Reason>) {
    let parts: Vec<&GuideRow> = rows
        .iter()
        .filter(|row| {
            matches!(
                row.estimator,
                Estimator::DrCpo | Estimator::Tmle | Estimator::Mrdr
            )
        })
        .collect();
    let readable = parts
        .iter()
        .filter(|row| row.verdict <= OverlapVerdict::Warned);
    if readable.clone().count() >= 2 {
        let verdict = readable.map(|row| row.verdict).max();
        let mut reasons: Vec<Reason> = Vec::new();
        for reason in parts.iter().flat_map(|row| &row.reasons) {
            if !reasons.contains(reason) {
                reasons.push(*reason);
            }
        }
        return (verdict.unwrap_or(OverlapVerdict::Unavailable), reasons);
    }
    let best = parts.iter().map(|row| row.verdict).min();
    (
        best.unwrap_or(OverlapVerdict::Unavailable)
            .max(OverlapVerdict::Refused),
        vec![Reason::FewComponents],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(weights: &[f64]) -> WeightEvidence {
        WeightEvidence::of(Weights::new("w", weights, weights.len()).unwrap())
    }

    fn good() -> OverlapEvidence {
        let even: Vec<f64> = (0..200).map(|i| 0.9 + f64::from(i % 5) * 0.05).collect();
        OverlapEvidence {
            draws: true,
            raw: Some(of(&even)),
            near_zero: Some(0.0),
            stabilised: Some(of(&even)),
            guarded: Some(0.0),
            affinity: Some(0.99),
            ttc: Some(0.9),
            orthogonality: None,
        }
    }

    fn verdicts(evidence: &OverlapEvidence) -> Vec<OverlapVerdict> {
        let guide = guide(evidence, &Thresholds::DEFAULT).unwrap();
        guide.iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn good_overlap_admits_and_says_what_was_not_measured() {
        let rows = guide(&good(), &Thresholds::DEFAULT).unwrap();
        assert_eq!(rows[1].verdict, OverlapVerdict::Admissible);
        assert_eq!(rows[2].verdict, OverlapVerdict::Admissible);
        assert_eq!(rows[3].verdict, OverlapVerdict::Warned);
        let unmeasured = Reason::Unmeasured(GateName::Orthogonality);
        assert_eq!(rows[3].reasons, [unmeasured]);
        assert_eq!(logged_answer(&rows), Ok(Estimator::CalibratedIps));
    }

    #[test]
    fn low_coverage_refuses_weights_however_stable() {
        let low = OverlapEvidence {
            ttc: Some(0.5),
            ..good()
        };
        let rows = guide(&low, &Thresholds::DEFAULT).unwrap();
        assert_eq!(
            (rows[1].verdict, rows[2].verdict),
            (OverlapVerdict::Refused, OverlapVerdict::Refused)
        );
        assert_eq!(rows[0].verdict, OverlapVerdict::Admissible);
        assert!(rows[3].reasons.contains(&Reason::RestsOnOutcomeModel));
        let why = logged_answer(&rows).unwrap_err();
        assert!(matches!(why[0], Reason::Missed(gate) if gate.name == GateName::Ttc));
        assert_eq!(why.len(), 1);
    }

    #[test]
    fn nothing_measured_never_passes() {
        let blind = OverlapEvidence {
            affinity: None,
            ttc: Some(f64::NAN),
            ..good()
        };
        assert_eq!(verdicts(&blind)[1], OverlapVerdict::Warned);
        let nothing = OverlapEvidence::default();
        assert_eq!(verdicts(&nothing)[..4], [OverlapVerdict::Unavailable; 4]);
        assert_eq!(verdicts(&nothing)[6], OverlapVerdict::Unavailable);
        let reversed = Thresholds {
            ess_warn: 0.9,
            ..Thresholds::DEFAULT
        };
        assert!(guide(&good(), &reversed).is_err());
        let nan = Thresholds {
            cv_max: f64::NAN,
            ..Thresholds::DEFAULT
        };
        assert!(guide(&good(), &nan).is_err());
    }

    #[test]
    fn a_dominant_weight_refuses_and_caps_warn() {
        let mut heavy = vec![1e-12; 200];
        heavy[7] = 1.0;
        let dominated = OverlapEvidence {
            raw: Some(of(&heavy)),
            near_zero: Some(0.995),
            guarded: Some(0.8),
            ..good()
        };
        let rows = guide(&dominated, &Thresholds::DEFAULT).unwrap();
        assert_eq!(rows[1].verdict, OverlapVerdict::Refused);
        let names: Vec<GateName> = rows[1]
            .reasons
            .iter()
            .filter_map(|reason| match reason {
                Reason::Missed(gate) => Some(gate.name),
                _ => None,
            })
            .collect();
        assert!(names.contains(&GateName::Ess) && names.contains(&GateName::NearZero));
        assert!(names.contains(&GateName::TopMass));
        let capped = OverlapEvidence {
            guarded: Some(0.8),
            ..good()
        };
        assert_eq!(verdicts(&capped)[2], OverlapVerdict::Warned);
    }
}
