//! What one observation may say.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::gate::GateObserved;
use clover_event::payload::gate::GateSource;
use clover_event::payload::gate::Reading;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::manifest::Arm;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Metric;
use clover_event::payload::manifest::MetricDirection;
use clover_event::payload::manifest::MissingRule;
use clover_event::payload::manifest::Test;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ledger::Code;
use clover_ledger::Fact;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Count;
use clover_num::Micro;

use crate::gates::Gate;
use crate::manifests::ManifestRecord;

/// Largest difference of two scores, in millionths.
pub fn scale(metric: &Metric) -> i64 {
    let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
    metric.difference_max_micro.map_or(width, Micro::value)
}

/// What stands for a missing draw: the end of the scale that is against the candidate.
pub fn missing_value(metric: &Metric, arm: ArmRole) -> Micro {
    match (metric.direction, arm) {
        (MetricDirection::Increase, ArmRole::Candidate)
        | (MetricDirection::Decrease, ArmRole::Baseline) => metric.scale_lo_micro,
        (MetricDirection::Increase, ArmRole::Baseline)
        | (MetricDirection::Decrease, ArmRole::Candidate) => metric.scale_hi_micro,
    }
}

/// How many draws of both arms a reading says are missing.
pub fn absent(reading: &Reading) -> u64 {
    let of = |role| arm_of(reading, role).1.len() as u64;
    of(ArmRole::Baseline) + of(ArmRole::Candidate)
}

/// The sum of a candidate's values less that of the baseline's, of which draws are missing or none is. What stands for missing
/// ones counts no further against the candidate than a difference can be.
pub fn delta(metric: &Metric, [baseline, candidate]: [i64; 2], has_missing: bool) -> i64 {
    let delta = candidate.saturating_sub(baseline);
    let repeats = i64::try_from(metric.repeats.value()).unwrap_or(i64::MAX);
    let most = scale(metric).saturating_mul(repeats);
    match metric.direction {
        _ if !has_missing => delta,
        MetricDirection::Increase => delta.max(-most),
        MetricDirection::Decrease => delta.min(most),
    }
}

/// By how much a unit's improvement may be more than its values say, in millionths, where so many draws are missing: each
/// may have been at the other end of the scale.
pub fn slack(metric: &Metric, absent: u64) -> i64 {
    let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
    let absent = i64::try_from(absent).unwrap_or(i64::MAX);
    width.saturating_mul(absent)
}

/// Values of one arm of a reading, and the draws of it that are missing.
fn arm_of(reading: &Reading, role: ArmRole) -> (&[Micro], &[Count]) {
    let (values, missing) = match role {
        ArmRole::Baseline => (&reading.baseline, &reading.baseline_missing),
        ArmRole::Candidate => (&reading.candidate, &reading.candidate_missing),
    };
    (values, missing.as_deref().unwrap_or_default())
}

/// Whether a gate that may take an observation may take this one.
pub(super) fn check(gate: &Gate, record: &ManifestRecord, said: &GateObserved) -> RuleAnswer {
    ensure!(
        !gate.is_terminal(),
        "no observation of a gate that has ended",
        Code::AfterTerminal.of(format_args!("t {}", said.t)),
    );
    let version = record.in_force().required("a version in force")?;
    let manifest = &version.manifest;
    let test = manifest.test.as_ref().required("section test")?;
    check_turn(gate, record, test, said)?;
    let strata = test.control_variate.is_some();
    if strata != said.stratum.is_some() || strata && gate.stratum_of(said).is_none() {
        let expected = if strata {
            "the unit's stratum, one of test.control_variate"
        } else {
            "no stratum without test.control_variate"
        };
        let found = said.stratum.as_ref().map_or("none", |one| one.as_str());
        return unmet(expected, Code::UnregisteredRule.of(found));
    }
    ensure!(
        said.readings.len() == gate.sources.len(),
        format!("{} readings, one for each metric", gate.sources.len()),
        said.readings.len().to_string(),
    );
    let metric = manifest.metric.as_ref().required("section metric")?;
    let estimand = manifest.estimand.as_ref();
    let estimand = estimand.required("section estimand")?;
    // What stands for a missing draw is against the candidate, not against a claim of harm, equality or difference.
    let against = matches!(
        manifest.hypothesis.kind,
        HypothesisKind::Different | HypothesisKind::Equivalent | HypothesisKind::Kill
    );
    let excluded = against || estimand.missing_rule == MissingRule::Excluded;
    for (reading, source) in said.readings.iter().zip(&gate.sources) {
        check_reading(reading, metric, excluded).map_err(|wrong| Unmet {
            expected: format!("{}: {}", source.metric, wrong.expected),
            ..wrong
        })?;
    }
    Ok(())
}

/// Whether it is the turn of this observation: the next one, of a unit that is exposed, within the plan and its looks.
fn check_turn(
    gate: &Gate,
    record: &ManifestRecord,
    test: &Test,
    said: &GateObserved,
) -> RuleAnswer {
    ensure!(
        test.continuation_of.is_none() || gate.parent.is_some(),
        "gate.continued before the first observation of a gate that continues another",
        Code::UnregisteredRule.of("none"),
    );
    ensure!(
        said.t.value() == gate.n + 1,
        format!("t {}", gate.n + 1),
        Code::Order.of(format_args!("t {}", said.t)),
    );
    ensure!(
        said.t <= test.n_max,
        format!("at most test.n_max {}", test.n_max),
        Code::PastMaximum.of(format_args!("t {}", said.t)),
    );
    let mut looks = test.look_at.iter().flatten();
    let is_due = looks.any(|look| look.value() == gate.n) && gate.is_unlooked();
    ensure!(
        !is_due,
        format!("gate.looked after {} units, as test.look_at has it", gate.n),
        Code::Number.of(format_args!("t {}", said.t)),
    );
    ensure!(
        said.t.value() <= record.units,
        format!("one of the {} units exposed", record.units),
        Code::Exposure.of(format_args!("t {}", said.t)),
    );
    Ok(())
}

/// Whether a reading holds the draws of both arms, and the difference that they have.
fn check_reading(reading: &Reading, metric: &Metric, excluded: bool) -> RuleAnswer {
    let mut sums = [0_i64; 2];
    let roles = [ArmRole::Baseline, ArmRole::Candidate];
    for (sum, role) in sums.iter_mut().zip(roles) {
        check_draws(arm_of(reading, role), metric, role, excluded)?;
        for value in arm_of(reading, role).0 {
            *sum = sum.saturating_add(value.value());
        }
    }
    let delta = delta(metric, sums, absent(reading) > 0);
    ensure!(
        reading.delta_micro.value() == delta,
        format!("delta_micro {delta}"),
        reading.delta_micro.value().to_string(),
    );
    let repeats = i64::try_from(metric.repeats.value()).unwrap_or(i64::MAX);
    let most = scale(metric).saturating_mul(repeats);
    ensure!(
        delta.saturating_abs() <= most,
        format!("a difference of at most {most} in magnitude"),
        Code::Scale.of(delta),
    );
    Ok(())
}

/// Whether an arm has as many draws as are registered, each on the scale, and those that are missing stand for what they must.
fn check_draws(
    (values, missing): (&[Micro], &[Count]),
    metric: &Metric,
    role: ArmRole,
    excluded: bool,
) -> RuleAnswer {
    ensure!(
        values.len() as u64 == metric.repeats.value(),
        format!("{} draws of each arm", metric.repeats),
        format!("{} draws", values.len()),
    );
    let ascending = missing.windows(2).all(|pair| pair[0] < pair[1]);
    let there = missing.iter().all(|draw| *draw < metric.repeats);
    ensure!(
        ascending && there,
        "missing draws in order, each once",
        "another list"
    );
    ensure!(
        !excluded || missing.is_empty(),
        "every draw, where missing_rule is excluded or the claim does not favour the candidate",
        Code::UnregisteredRule.of(format_args!("{} missing draws", missing.len())),
    );
    let stands = missing_value(metric, role);
    for (draw, value) in (0..).zip(values) {
        let is_missing = missing.iter().any(|of| of.value() == draw);
        ensure!(
            !is_missing || *value == stands,
            format!("{stands} for a missing draw: the end against the candidate"),
            value.to_string(),
        );
        ensure!(
            (metric.scale_lo_micro..=metric.scale_hi_micro).contains(value),
            format!(
                "values from {} to {}",
                metric.scale_lo_micro, metric.scale_hi_micro
            ),
            Code::Scale.of(value),
        );
    }
    let scored = (0..).zip(values);
    let mut scored = scored.filter(|(draw, _)| missing.iter().all(|of| of.value() != *draw));
    let first = scored.next().map(|(_, value)| value);
    ensure!(
        metric.noise.is_none() || scored.all(|(_, value)| Some(value) == first),
        "draws of one unit that agree, as metric.noise is none",
        Code::Unit.of("draws that differ"),
    );
    Ok(())
}

/// The natural keys of the values that an observation reads, with what it says that they are: `None` of those that it says
/// are not there.
pub fn values<'a>(
    experiment: &'a ExperimentId,
    manifest: &'a Manifest,
    gate: &'a Gate,
    said: &'a GateObserved,
) -> impl Iterator<Item = (Digest, Option<i64>)> + 'a {
    let arms = manifest.arms.iter().flatten();
    let read = |arm: &'a Arm| {
        gate.sources
            .iter()
            .zip(&said.readings)
            .map(move |of| (arm, of))
    };
    arms.flat_map(read)
        .flat_map(move |(arm, (source, reading))| {
            let (values, missing) = arm_of(reading, arm.role);
            let values = (0..).zip(values);
            values.filter_map(move |(draw, value)| {
                let key = value_key(experiment, source, arm, (&said.unit, draw))?;
                let is_missing = missing.iter().any(|of| of.value() == draw);
                Some((key, (!is_missing).then_some(value.value())))
            })
        })
}

/// The values that an observation reads, and those that it says are not there.
pub(super) fn facts(
    experiment: &ExperimentId,
    manifest: &Manifest,
    gate: &Gate,
    (said, exposed_seq): (&GateObserved, u64),
    facts: &mut Vec<Fact>,
) {
    let rule = RuleName::Observation;
    let values = values(experiment, manifest, gate, said);
    facts.extend(values.map(|(digest, value)| match value {
        None => Fact::Forbids { digest, rule },
        Some(value) => Fact::Reads {
            digest,
            value,
            after: exposed_seq,
            rule,
        },
    }));
}

/// Natural key of the event that records a value; `None` where no such event can be: of a source without judge and design,
/// with which no gate is opened. Names of arms are spelled as those of policies are.
pub fn value_key(
    experiment: &ExperimentId,
    source: &GateSource,
    arm: &Arm,
    (unit, draw): (&ItemId, u64),
) -> Option<Digest> {
    let policy: PolicyId = arm.id.as_str().parse().ok()?;
    let draw = Count::new(draw)?;
    if let Some(judge) = &source.judge {
        let (experiment, judge) = (experiment.as_str(), judge.as_str());
        let drawn = (unit.as_str(), draw);
        let key = registry::score_key(experiment, judge, policy.as_str(), drawn);
        return Some(key);
    }
    let design = source.design.as_ref()?;
    let row = row_of_draw(&policy, unit, draw);
    let fields = [design.as_str(), row.as_str()];
    Some(registry::natural_key_of(
        Kind::LabelRevealed,
        experiment,
        &fields,
    ))
}
