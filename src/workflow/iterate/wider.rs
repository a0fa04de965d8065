//! Thresholds of a plan against those that are usual for as many labels, and what its caps of the shift mean.

use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::ShiftMetric;

use crate::iterate::draft::Profile;

/// The usual largest uplift of an attack, and the usual slack of the calibration error, as in the template.
const UPLIFT_MAX: f64 = 0.05;
const ECE_SLACK: f64 = 0.005;

/// A threshold of a plan that holds a patch to less than usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WiderThreshold {
    /// Its field, without its unit.
    pub field: &'static str,
    /// What the plan says.
    pub said: f64,
    /// What is usual for as many labels.
    pub usual: f64,
}

impl std::fmt::Display for WiderThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} (usual {})", self.field, self.said, self.usual)
    }
}

/// Thresholds of a plan that are wider than those of the draft for as many labels.
pub fn wider(plan: &IterationPlan) -> Vec<WiderThreshold> {
    let rows = [plan.fit_rows, plan.dev_rows, plan.confirm_rows];
    let usual = Profile::of(rows.iter().map(|rows| rows.value()).sum());
    let (ks, w1) = usual.shift_max;
    let all = [
        ("ks_max", plan.ks_max_micro, ks),
        ("w1_max", plan.w1_max_micro, w1),
        ("drift_max", plan.drift_max_micro, usual.drift_max),
        ("uplift_max", plan.uplift_max_micro, UPLIFT_MAX),
        ("ece_slack", plan.ece_slack_micro, ECE_SLACK),
        ("tau", plan.tau_micro, usual.tau),
    ];
    let said = all.into_iter().map(|(field, said, usual)| WiderThreshold {
        field,
        said: said.value() as f64 / 1e6,
        usual,
    });
    said.filter(|of| of.said > of.usual).collect()
}

/// What caps of the shift mean for a patch that changes what the judge is told, in words for each of two criteria.
pub fn locality(metric: ShiftMetric, (ks, w1): (f64, f64), drift: f64) -> [String; 2] {
    let far = match metric {
        ShiftMetric::Both => format!("KS is above {ks} or W1 above {w1}"),
        ShiftMetric::Either => format!("KS is above {ks} and W1 above {w1}"),
        ShiftMetric::Ks => format!("KS is above {ks}"),
        ShiftMetric::W1 => format!("W1 is above {w1}"),
    };
    [
        format!(
            "a patch that changes what the judge is told moves many scores, and p4 refuses it where {far}"
        ),
        format!(
            "p5 refuses such a patch where the mean of an anchor set moves by more than {drift}: the caps are ks_max_micro, \
             w1_max_micro and drift_max_micro"
        ),
    ]
}
