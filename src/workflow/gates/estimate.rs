//! The asymptotic class beside a decided gate: the mean improvement by labels of a sample, with the judge's scores that
//! the gate observed as predictions.
//!
//! Unit t of the order has the pseudo-outcome `f + (A / pi)(Y - f)`: f the improvement by the judge, Y by labels, A whether
//! the unit is drawn. Its mean is that of Y whatever the judge says, as the draw came after every score.

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::Metric;
use clover_event::payload::manifest::MetricDirection;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::gates::estimated;
use clover_projection::gates::sampled::SampledRows;
use clover_stats::eprocess::asymptotic::Boundary;
use clover_stats::eprocess::asymptotic::DoublyRobust;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;

/// Why labels give no estimate.
#[derive(Debug, thiserror::Error)]
pub enum EstimateError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The statistics refuse it, or there is too little.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A unit that was drawn lacks a label.
    #[error(
        "unit {unit} was drawn for labels, and design {design} has none of {arm}/{unit}/{draw}"
    )]
    Unlabelled {
        /// The arm.
        arm: String,
        /// The design.
        design: DesignId,
        /// Which draw of the arm.
        draw: u64,
        /// The unit.
        unit: ItemId,
    },
    /// A label lies beyond the scale of the metric.
    #[error("label {label} of {arm}/{unit}/{draw} lies beyond the metric's scale, {low} to {high}")]
    Beyond {
        /// The arm.
        arm: String,
        /// Which draw of the arm.
        draw: u64,
        /// Top of the scale.
        high: Micro,
        /// The label.
        label: Micro,
        /// Bottom of the scale.
        low: Micro,
        /// The unit.
        unit: ItemId,
    },
    /// The entries before do not hold what it reads.
    #[error("no {0} in the entries before it")]
    Absent(&'static str),
}

impl From<SampleError> for EstimateError {
    fn from(error: SampleError) -> Self {
        Self::Unfit(error.into())
    }
}

/// Sum of an arm's labels of a unit, in millionths.
fn sum(
    rows: &SampledRows,
    metric: &Metric,
    (design, arm): (&DesignId, &str),
    unit: &ItemId,
) -> Result<i64, EstimateError> {
    let mut sum = 0;
    for draw in 0..metric.repeats.value() {
        let key = (arm.to_owned(), unit.clone(), draw);
        let label = rows.labels.get(&key).copied();
        let label = label.ok_or_else(|| EstimateError::Unlabelled {
            arm: arm.to_owned(),
            design: design.clone(),
            draw,
            unit: unit.clone(),
        })?;
        let (low, high) = (metric.scale_lo_micro, metric.scale_hi_micro);
        if label < low || label > high {
            return Err(EstimateError::Beyond {
                arm: arm.to_owned(),
                draw,
                high,
                label,
                low,
                unit: unit.clone(),
            });
        }
        sum += label.value();
    }
    Ok(sum)
}

/// The estimate with everything that labels say filled in: how many there are, the interval, and whether it shows the claim.
/// What is registered and drawn is taken from `said`.
///
/// # Errors
/// [`EstimateError`].
pub fn estimate(
    history: &dyn History,
    below: u64,
    experiment: &ExperimentId,
    said: &GateEstimated,
) -> Result<GateEstimated, EstimateError> {
    let rows = SampledRows::below(history, experiment, said, below)?;
    let manifest = rows.manifest.as_deref();
    let manifest = manifest.ok_or(EstimateError::Absent("manifest of that digest"))?;
    let parts = manifest.metric.as_ref().zip(manifest.test.as_ref());
    let (metric, test) = parts.ok_or(EstimateError::Absent("metric and test"))?;
    let arm = |role: ArmRole| {
        let mut arms = manifest.arms.iter().flatten();
        let found = arms.find(|arm| arm.role == role);
        found.ok_or(EstimateError::Absent("arms"))
    };
    let (baseline, candidate) = (arm(ArmRole::Baseline)?, arm(ArmRole::Candidate)?);
    let sign = match metric.direction {
        MetricDirection::Increase => 1,
        MetricDirection::Decrease => -1,
    };
    let draws = metric.repeats.value() as f64 * 1e6;
    let improvement = |delta: i64| (sign * delta) as f64 / draws;
    let part = |micro: Micro| micro.value() as f64 / 1e6;
    let boundary = Boundary::new(part(said.alpha_micro), test.n_max.value())?;
    let pi = part(said.pi_micro);
    let mut stream = DoublyRobust::new(boundary, pi)?;
    let mut labels = 0;
    let n = usize::try_from(said.n.value()).unwrap_or(usize::MAX);
    let observed = rows.observed.get(..n);
    for (unit, delta) in observed.ok_or(EstimateError::Absent("so many units"))? {
        let mut label = None;
        if estimated::is_drawn(said.seed, said.pi_micro, unit) {
            let candidate = sum(&rows, metric, (&said.design, candidate.id.as_str()), unit)?;
            let baseline = sum(&rows, metric, (&said.design, baseline.id.as_str()), unit)?;
            label = Some(improvement(candidate - baseline));
            labels += 1;
        }
        stream.push(improvement(*delta), pi, label)?;
    }
    let found = stream.interval(0)?;
    // The mean of differences of labels within the scale lies within its width.
    let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
    let low = micro((found.low * 1e6).floor(), width);
    let high = micro((found.high * 1e6).ceil(), width);
    Ok(GateEstimated {
        cs_hi_micro: high,
        cs_lo_micro: low,
        labels: Count::new(labels).unwrap_or_default(),
        shows: estimated::shows(manifest, (low.value(), high.value())),
        ..said.clone()
    })
}

/// Whole millionths, at most the width in magnitude.
#[expect(
    clippy::cast_possible_truncation,
    reason = "within a scale, which is at most 10^12"
)]
fn micro(value: f64, width: i64) -> Micro {
    let most = width as f64;
    Micro::new(value.clamp(-most, most) as i64).unwrap_or_default()
}
