//! Sizes of transport audits: the probability that the t interval of the mean residual lies within the margin.

use crate::distribution;
use crate::sample::SampleError;
use clover_num::math;

/// Standard normal mass beyond this is below 4e-33.
pub(super) const TAIL: f64 = 12.0;
/// Absolute accuracy of the quadrature.
const ACCURACY: f64 = 1e-13;
/// Halvings of an interval of the quadrature.
const DEPTH_MAX: u32 = 30;

/// Assumptions about one policy's audit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditScenario {
    /// Standard deviation of independent cluster residuals, at least 0.
    pub residual_sd: f64,
    /// Margin, above 0.
    pub margin: f64,
    /// True mean residual.
    pub bias: f64,
    /// Clusters that are there, if known.
    pub available: Option<u64>,
    /// Human ratings per cluster, at least 1.
    pub labels_per_cluster: f64,
}

impl AuditScenario {
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let legal = self.residual_sd.is_finite()
            && self.residual_sd >= 0.0
            && self.margin.is_finite()
            && self.margin > 0.0
            && self.bias.is_finite()
            && self.labels_per_cluster.is_finite()
            && self.labels_per_cluster >= 1.0;
        if legal {
            return Ok(());
        }
        Err(SampleError::Parameter {
            name: "scenario",
            expected: "finite numbers: sd >= 0, margin > 0, at least 1 label per cluster",
        })
    }
}

/// Terms of a family of audits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditTerms {
    /// Error rate of the family, in (0, 1).
    pub alpha: f64,
    /// Probability that all planned audits pass, in (0.5, 1).
    pub power: f64,
    /// Audits in the family, at least those planned; `None` means exactly those.
    pub family_size: Option<u64>,
    /// Fewest clusters of an audit, at least 2.
    pub clusters_min: u64,
    /// Most clusters that are searched.
    pub clusters_max: u64,
    /// Price of a label, above 0.
    pub label_cost: f64,
    /// Labels already spent on calibration.
    pub calibration_labels: u64,
    /// Money for labels, if declared.
    pub budget: Option<f64>,
}

impl AuditTerms {
    /// The usual terms: alpha .05, power .80, 20 to 100,000 clusters.
    pub fn new(label_cost: f64, calibration_labels: u64) -> Self {
        Self {
            alpha: 0.05,
            power: 0.8,
            family_size: None,
            clusters_min: 20,
            clusters_max: 100_000,
            label_cost,
            calibration_labels,
            budget: None,
        }
    }
}

/// Why a plan has the size it has, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditReason {
    /// The smallest size with the power.
    Planned,
    /// No size helps: the bias lies outside the margin.
    BiasOutsideMargin,
    /// More clusters than are searched.
    SearchLimit,
}

/// The plan of one audit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditPlan {
    /// Clusters needed; `None` with a reason.
    pub clusters: Option<u64>,
    /// Probability of a pass at that size.
    pub power: Option<f64>,
    /// Probability of a pass with the clusters that are there, 0 below the minimum.
    pub power_at_available: Option<f64>,
    /// Whether the clusters that are there suffice.
    pub within_available: Option<bool>,
    /// Human ratings needed.
    pub labels: Option<f64>,
    /// Why.
    pub reason: AuditReason,
}

/// The plan of a family of audits.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditsPlan {
    /// In the order given.
    pub plans: Vec<AuditPlan>,
    /// Family size of the Bonferroni intervals.
    pub family_size: u64,
    /// Power of each audit, `1 - (1 - power) / K`: a union bound.
    pub per_audit_power: f64,
    /// Labels of all audits; `None` if one has no size.
    pub audit_labels: Option<f64>,
    /// Those and the calibration's.
    pub total_labels: Option<f64>,
    /// Their price.
    pub cost: Option<f64>,
    /// Whether the budget pays for it.
    pub within_budget: Option<bool>,
}

/// Probability that a two-sided t interval at level `1 - alpha` from `clusters` normal residuals lies within the
/// margin: an integral over Z = (mean - bias) / SE of the chi-squared probability that the sample deviation is small
/// enough.
///
/// # Errors
/// [`SampleError::Parameter`] for a scenario or level outside its range.
pub fn pass_probability(
    clusters: u64,
    scenario: &AuditScenario,
    alpha: f64,
) -> Result<f64, SampleError> {
    scenario.check()?;
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(SampleError::Parameter {
            name: "alpha",
            expected: "a number in (0, 1)",
        });
    }
    if clusters < 2 {
        return Ok(0.0);
    }
    if scenario.residual_sd <= 0.0 {
        let inside = scenario.bias.abs() <= scenario.margin;
        return Ok(if inside { 1.0 } else { 0.0 });
    }
    let df = clusters as f64 - 1.0;
    let scale = scenario.residual_sd / (clusters as f64).sqrt();
    let (bias, margin) = (scenario.bias / scale, scenario.margin / scale);
    let critical = distribution::t_quantile(1.0 - 0.5 * alpha, df);
    let (low, high) = ((-margin - bias).max(-TAIL), (margin - bias).min(TAIL));
    if low >= high {
        return Ok(0.0);
    }
    let density = |z: f64| {
        let ratio = (margin - (bias + z).abs()).max(0.0) / critical;
        let largest = df * ratio * ratio;
        distribution::normal_pdf(z) * distribution::chi_squared(largest, df).0
    };
    Ok(quadrature_over(&density, (low, high), -bias))
}

/// A probability as an integral of its density, split at a kink and into unit steps, so that no narrow peak falls between
/// the first nodes.
pub(super) fn quadrature_over(
    density: &dyn Fn(f64) -> f64,
    (low, high): (f64, f64),
    kink: f64,
) -> f64 {
    let mut edges = vec![low];
    let mut next = low.floor() + 1.0;
    while next < high {
        edges.push(next);
        next += 1.0;
    }
    edges.push(high);
    if kink > low && kink < high {
        edges.push(kink);
        edges.sort_by(f64::total_cmp);
    }
    let parts: Vec<f64> = edges
        .windows(2)
        .map(|pair| quadrature(density, pair[0], pair[1], DEPTH_MAX))
        .collect();
    math::sum(&parts).clamp(0.0, 1.0)
}

/// Adaptive Gauss-Kronrod quadrature (7 and 15 nodes), halving until both rules agree.
fn quadrature(f: &dyn Fn(f64) -> f64, low: f64, high: f64, depth: u32) -> f64 {
    // source: QUADPACK qk15: nodes of the Kronrod rule on [0, 1], the Gauss nodes at odd places.
    const NODES: [f64; 8] = [
        0.991_455_371_120_812_6,
        0.949_107_912_342_758_5,
        0.864_864_423_359_769_1,
        0.741_531_185_599_394_4,
        0.586_087_235_467_691_1,
        0.405_845_151_377_397_2,
        0.207_784_955_007_898_47,
        0.0,
    ];
    // source: QUADPACK qk15: weights of the Kronrod rule.
    const KRONROD: [f64; 8] = [
        0.022_935_322_010_529_224,
        0.063_092_092_629_978_56,
        0.104_790_010_322_250_18,
        0.140_653_259_715_525_92,
        0.169_004_726_639_267_9,
        0.190_350_578_064_785_4,
        0.204_432_940_075_298_9,
        0.209_482_141_084_727_82,
    ];
    // source: QUADPACK qk15: weights of the Gauss rule.
    const GAUSS: [f64; 4] = [
        0.129_484_966_168_869_7,
        0.279_705_391_489_276_64,
        0.381_830_050_505_118_9,
        0.417_959_183_673_469_4,
    ];
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    let (mut fine, mut coarse) = (0.0, 0.0);
    for (at, (node, weight)) in NODES.iter().zip(KRONROD).enumerate() {
        let value = if at == 7 {
            f(middle)
        } else {
            f(middle - half * node) + f(middle + half * node)
        };
        fine += weight * value;
        if at % 2 == 1 {
            coarse += GAUSS[at / 2] * value;
        }
    }
    if depth == 0 || half * (fine - coarse).abs() <= ACCURACY {
        return half * fine;
    }
    quadrature(f, low, middle, depth - 1) + quadrature(f, middle, high, depth - 1)
}

/// Plans audits so that all pass with the family's power, by a union bound.
///
/// # Errors
/// [`SampleError::Empty`] without scenarios; [`SampleError::Parameter`] for terms or scenarios outside their ranges.
pub fn plan_transport_audits(
    scenarios: &[AuditScenario],
    terms: &AuditTerms,
) -> Result<AuditsPlan, SampleError> {
    if scenarios.is_empty() {
        return Err(SampleError::Empty {
            column: "scenarios",
        });
    }
    let count = scenarios.len() as u64;
    let family_size = terms.family_size.unwrap_or(count);
    check_terms(terms, family_size, count)?;
    let per_audit_power = 1.0 - (1.0 - terms.power) / count as f64;
    let alpha = terms.alpha / family_size as f64;
    if 1.0 - 0.5 * alpha >= 1.0 || per_audit_power >= 1.0 {
        return Err(SampleError::Parameter {
            name: "family size",
            expected: "a level and a power within double precision",
        });
    }
    let mut plans = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        plans.push(plan_one(scenario, terms, alpha, per_audit_power)?);
    }
    let labels: Option<Vec<f64>> = plans.iter().map(|plan| plan.labels).collect();
    let audit_labels = labels.map(|labels| math::sum(&labels));
    let total_labels = audit_labels.map(|labels| labels + terms.calibration_labels as f64);
    let cost = total_labels.map(|labels| labels * terms.label_cost);
    let within_budget = match (cost, terms.budget) {
        (Some(cost), Some(budget)) => Some(cost <= budget),
        _ => None,
    };
    Ok(AuditsPlan {
        plans,
        family_size,
        per_audit_power,
        audit_labels,
        total_labels,
        cost,
        within_budget,
    })
}

fn check_terms(terms: &AuditTerms, family_size: u64, count: u64) -> Result<(), SampleError> {
    let legal = terms.alpha > 0.0
        && terms.alpha < 1.0
        && terms.power > 0.5
        && terms.power < 1.0
        && family_size >= count
        && terms.clusters_min >= 2
        && terms.clusters_max >= terms.clusters_min
        && terms.label_cost.is_finite()
        && terms.label_cost > 0.0
        && terms
            .budget
            .is_none_or(|budget| budget.is_finite() && budget >= 0.0);
    if legal {
        return Ok(());
    }
    Err(SampleError::Parameter {
        name: "terms",
        expected: "alpha in (0, 1), power in (0.5, 1), a family of at least the scenarios, 2 <= clusters, prices above 0",
    })
}

fn plan_one(
    scenario: &AuditScenario,
    terms: &AuditTerms,
    alpha: f64,
    power: f64,
) -> Result<AuditPlan, SampleError> {
    scenario.check()?;
    let passes = |clusters| pass_probability(clusters, scenario, alpha);
    let power_at_available = match scenario.available {
        Some(available) if available >= terms.clusters_min => Some(passes(available)?),
        Some(_) => Some(0.0),
        None => None,
    };
    let bias = scenario.bias.abs();
    let at_edge = bias >= scenario.margin && scenario.residual_sd > 0.0;
    let outside = bias > scenario.margin || at_edge;
    let mut reason = AuditReason::BiasOutsideMargin;
    let mut clusters = None;
    if !outside {
        let (mut low, mut high) = (terms.clusters_min - 1, terms.clusters_min);
        while passes(high)? < power && high < terms.clusters_max {
            (low, high) = (high, high.saturating_mul(2).min(terms.clusters_max));
        }
        if passes(high)? < power {
            reason = AuditReason::SearchLimit;
        } else {
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if passes(middle)? >= power {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            reason = AuditReason::Planned;
            clusters = Some(high);
        }
    }
    let reached = clusters.map(passes).transpose()?;
    let suffices = |available| clusters.is_some_and(|needed| needed <= available);
    Ok(AuditPlan {
        clusters,
        power: reached,
        power_at_available,
        within_available: scenario.available.map(suffices),
        labels: clusters.map(|clusters| clusters as f64 * scenario.labels_per_cluster),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(residual_sd: f64, bias: f64) -> AuditScenario {
        AuditScenario {
            residual_sd,
            margin: 0.05,
            bias,
            available: None,
            labels_per_cluster: 1.0,
        }
    }

    #[test]
    fn probabilities_match_quadrature_elsewhere() {
        // source: scipy 1.17.1 integrate.quad with epsabs 1e-14, limit 500, of the same integral.
        const WANT: [(u64, f64, f64, f64, f64); 4] = [
            (40, 0.1, 0.0, 0.05, 0.738_795_875_008_050_1),
            (245, 0.2, 0.0, 0.025, 0.901_367_495_213_673_1),
            (20, 0.2, 0.02, 0.05, 5.211_389_046_243_746e-5),
            (20_000, 1.5, 0.01, 0.05, 0.964_827_377_736_646_8),
        ];
        for (n, sd, bias, alpha, want) in WANT {
            let got = pass_probability(n, &scenario(sd, bias), alpha).unwrap();
            assert!((got - want).abs() < 1e-11, "n {n}: {got} is not {want}");
        }
    }

    #[test]
    fn hopeless_and_certain_audits() {
        let terms = AuditTerms::new(1.0, 0);
        let found = plan_transport_audits(&[scenario(0.2, 0.05)], &terms).unwrap();
        assert_eq!(found.plans[0].reason, AuditReason::BiasOutsideMargin);
        assert_eq!(found.total_labels, None);
        let found = plan_transport_audits(&[scenario(0.0, 0.05)], &terms).unwrap();
        assert_eq!(found.plans[0].clusters, Some(20));
        let far = AuditTerms {
            clusters_max: 100,
            ..terms
        };
        let found = plan_transport_audits(&[scenario(0.3, 0.0)], &far).unwrap();
        assert_eq!(found.plans[0].reason, AuditReason::SearchLimit);
        assert!(plan_transport_audits(&[], &terms).is_err());
        let bad = AuditTerms {
            alpha: f64::NAN,
            ..terms
        };
        assert!(plan_transport_audits(&[scenario(0.2, 0.0)], &bad).is_err());
        assert!(pass_probability(30, &scenario(f64::NAN, 0.0), 0.05).is_err());
        assert!(pass_probability(1, &scenario(0.2, 0.0), 0.05).unwrap() <= 0.0);
    }
}
