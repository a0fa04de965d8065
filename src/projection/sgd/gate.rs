//! The gate that holds the checkpoint of a run against prompt 0: what it measures, of which run it is, and what a unit of it
//! is worth. A unit is a cluster of confirm, and its value is how far its scores agree with its labels.

use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::id::Root;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::manifest::Arm;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::MetricDirection;
use clover_event::payload::manifest::Template;
use clover_event::payload::sgd::SgdSplit;
use clover_ground::digest::Digest;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_num::Micro;

use super::SgdRun;
use super::SgdRuns;
use crate::gates::Gates;
use crate::gates::is_of_its_units;
use crate::manifests::ManifestRecord;
use crate::manifests::Manifests;
use crate::splits::members_root;

/// The metric of a run's gate: 1 less the mean distance of scores and labels, from 0 to 1.
pub const METRIC: &str = "agreement";

const ONE: i64 = 1_000_000;

/// The root over the clusters that a run keeps for confirm: what a gate of its prompts binds.
pub fn confirm_root(run: &SgdRun) -> Root {
    members_root(confirm_units(run).into_iter().map(ItemId::as_str))
}

/// The clusters that a run keeps for confirm, ascending.
pub fn confirm_units(run: &SgdRun) -> Vec<&ItemId> {
    let rows = run.rows(SgdSplit::Confirm);
    let mut items: Vec<_> = rows.iter().map(|row| &row.item).collect();
    items.dedup();
    items
}

/// The digest that stands for the judge in the plan of a run's gate: SHA-256 of `clover/sgd/gate/v1`, a zero byte, the run's
/// seed, and the digests of prompt 0 and of the checkpoint, 32 bytes each. `None` before the checkpoint was chosen.
pub fn metric_digest(run: &SgdRun) -> Option<Digest> {
    let chosen = run.checkpoint.as_ref()?.prompt_digest;
    let mut bytes = b"clover/sgd/gate/v1\0".to_vec();
    for part in [run.said.seed, run.said.prompt_digest, chosen] {
        bytes.extend_from_slice(part.as_bytes());
    }
    Some(Digest::sha256(&bytes))
}

/// What stands for the judge in a plan whose metric is that of a run.
fn named_digest(manifest: &Manifest) -> Option<Digest> {
    let metric = manifest.metric.as_ref();
    let agreement = metric.filter(|of| of.metric.as_str() == METRIC);
    agreement.map(|of| of.judge_digest)
}

/// The run whose metric a plan names.
pub fn run_of_plan<'s>(state: &'s State, manifest: &Manifest) -> Option<&'s SgdRun> {
    let named = named_digest(manifest)?;
    let mut all = state.fold::<SgdRuns>().by_id.values();
    all.find(|run| metric_digest(run) == Some(named))
}

/// The plan of a gate that names the metric of a run, with its name: the first that was registered. A plan names what the version
/// does that set what it tests; where none stands yet, its newest version does.
pub fn plan_of<'s>(state: &'s State, run: &SgdRun) -> Option<(&'s ManifestId, &'s ManifestRecord)> {
    let digest = metric_digest(run)?;
    let is_its = |record: &ManifestRecord| {
        let said = record.bound().or(record.versions.last());
        said.map(|said| &said.manifest).is_some_and(|manifest| {
            manifest.template == Template::Gate && named_digest(manifest) == Some(digest)
        })
    };
    let all = state.fold::<Manifests>().by_id.iter();
    let own = all.filter(|(_, record)| record.superseded_by.is_none() && is_its(record));
    own.min_by_key(|(_, record)| record.versions.first().map(|first| first.seq))
}

/// What a cluster of confirm is worth under a prompt, in millionths: 1 less the mean over its rows of the distance of the
/// mean score and the target, to the nearest, half up. A row without a score that can be read is as far as can be under the
/// checkpoint, and at its target under prompt 0. `None` before every row was scored.
pub fn agreement(run: &SgdRun, prompt: Digest, unit: &ItemId) -> Option<Micro> {
    let rows = run.rows(SgdSplit::Confirm);
    let scores = run.confirm.get(&prompt)?;
    if scores.len() != run.count(SgdSplit::Confirm) {
        return None;
    }
    let none = if prompt == run.said.prompt_digest {
        0
    } else {
        ONE
    };
    // Rows ascend by item: those of a cluster are neighbours.
    let first = rows.partition_point(|row| row.item < *unit);
    let from = rows.iter().zip(scores).skip(first);
    let own = from.take_while(|(row, _)| row.item == *unit);
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (row, scores) in own {
        let n = i64::try_from(scores.len()).ok()?;
        let distance = if n == 0 {
            none
        } else {
            let total: i64 = scores.iter().map(|z| z.value()).sum();
            let target = row.target_micro.value().checked_mul(n)?;
            halved(total.checked_sub(target)?.checked_abs()?, n)?
        };
        sum += distance.min(ONE);
        count += 1;
    }
    Micro::new(ONE - halved(sum, count)?)
}

/// A quotient of two numbers that are not negative, to the nearest, half up.
fn halved(sum: i64, by: i64) -> Option<i64> {
    let doubled = sum.checked_mul(2)?.checked_add(by)?;
    doubled.checked_div(2 * by)
}

/// A score that a gate of a run reads is what the scores of confirm give.
pub(super) fn check_agreement(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &ScoreRecorded,
) -> RuleAnswer {
    // Without a run there is no gate of one, and a score of no experiment the rule `experiment` refuses.
    let has_runs = !state.fold::<SgdRuns>().by_id.is_empty();
    let Some(experiment) = event.event.header.experiment.as_ref().filter(|_| has_runs) else {
        return Ok(());
    };
    for (id, record) in state.fold::<Manifests>().gates(experiment) {
        let gate = state.fold::<Gates>().by_id.get(id);
        let read = gate.is_some_and(|gate| {
            let mut sources = gate.sources.iter();
            sources.any(|source| source.judge.as_ref() == Some(&said.judge))
        });
        let bound = record.bound().filter(|_| read);
        let Some((manifest, run)) = bound.and_then(|bound| {
            let run = run_of_plan(state, &bound.manifest)?;
            Some((&bound.manifest, run))
        }) else {
            continue;
        };
        let mut arms = manifest.arms.iter().flatten();
        let Some(arm) = arms.find(|arm| arm.id.as_str() == said.policy.as_str()) else {
            continue;
        };
        let name = &run.said.run;
        let value = agreement(run, arm.artifact_digest, &said.item);
        let value = value.required(&format!(
            "sgd.scored of confirm of {name} under {}",
            arm.artifact_digest
        ))?;
        let expected = format!("{METRIC} {value} of {}, as {name} scored it", said.item);
        let found = said.score_micro;
        ensure!(found == value, expected, found.to_string());
    }
    Ok(())
}

/// A gate of a run is open to scores of confirm: its plan has the run's metric and clusters, and all of them are exposed.
pub(super) fn check_open(state: &State, run: &SgdRun) -> RuleAnswer {
    let gates = &state.fold::<Gates>().by_id;
    let root = confirm_root(run);
    let is_open = |(id, record): (&ManifestId, &ManifestRecord)| {
        let gate = gates.get(id).filter(|gate| gate.decided.is_none());
        let bound = record.bound().zip(gate);
        bound.is_some_and(|(bound, _)| {
            let of = run_of_plan(state, &bound.manifest);
            let data = bound.manifest.data.as_ref();
            let is_its = of.is_some_and(|of| of.said.run == run.said.run);
            is_its
                && data.is_some_and(|data| {
                    data.confirm_root == root && record.units >= data.n_units.value()
                })
        })
    };
    let mut all = state.fold::<Manifests>().by_id.iter();
    let name = &run.said.run;
    let expected =
        format!("an undecided gate of {name} with every cluster of confirm exposed before");
    ensure!(all.any(is_open), expected, "none");
    Ok(())
}

fn arm_of(manifest: &Manifest, role: ArmRole) -> Option<&Arm> {
    manifest.arms.iter().flatten().find(|arm| arm.role == role)
}

/// What a plan says, and the run whose gate it plans.
type PlanOfRun<'a> = (&'a SgdRun, (&'a ManifestId, &'a Manifest));

/// A gate binds the clusters that its run kept for confirm.
fn check_units((run, (_, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let (name, root) = (&run.said.run, confirm_root(run));
    let bound = manifest.data.as_ref().map(|of| of.confirm_root);
    let expected = format!("a gate on the confirm clusters of {name}, {}", root.0);
    let found = bound.map_or_else(|| "none".to_owned(), |of| of.0.to_string());
    ensure!(bound == Some(root), expected, found);
    Ok(())
}

/// A gate holds its candidate against prompt 0.
fn check_base((run, (id, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let mut arms = manifest.arms.iter().flatten();
    let is_base = arms
        .any(|arm| arm.role == ArmRole::Baseline && arm.artifact_digest == run.said.prompt_digest);
    let expected = format!("a gate against prompt 0 of {}", run.said.run);
    ensure!(is_base, expected, id.to_string());
    Ok(())
}

fn check_metric((run, (_, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let name = &run.said.run;
    let metric = manifest.metric.as_ref().required("section metric")?;
    let digest = metric_digest(run).required(&format!("a checkpoint of {name}"))?;
    let expected = format!("metric {METRIC} of {name}, judge_digest {digest}");
    let is_its = metric.metric.as_str() == METRIC && metric.judge_digest == digest;
    let found = format!("{} of {}", metric.metric, metric.judge_digest);
    ensure!(is_its, expected, found);
    Ok(())
}

fn check_scale((_, (_, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let metric = manifest.metric.as_ref().required("section metric")?;
    let is_whole = metric.scale_lo_micro.value() == 0
        && metric.scale_hi_micro.value() == ONE
        && metric.repeats.value() == 1
        && metric.direction == MetricDirection::Increase;
    let expected = "one value of a cluster from 0 to 1, more is better";
    ensure!(is_whole, expected, "another scale");
    Ok(())
}

fn check_kind((_, (id, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let margin = manifest
        .test
        .as_ref()
        .map(|of| of.null_margin_micro.value());
    let claims = manifest.hypothesis.kind == HypothesisKind::Promote;
    let claims = claims && margin.is_some_and(|margin| margin >= 0);
    let expected = "a claim to promote with a margin of 0 or more";
    ensure!(claims, expected, id.to_string());
    Ok(())
}

fn check_candidate((run, (id, manifest)): PlanOfRun<'_>) -> RuleAnswer {
    let chosen = run.checkpoint.as_ref().map(|of| of.prompt_digest);
    let candidate = arm_of(manifest, ArmRole::Candidate).map(|arm| arm.artifact_digest);
    let expected = format!("the checkpoint of {} as candidate", run.said.run);
    ensure!(candidate == chosen, expected, id.to_string());
    Ok(())
}

/// A question of a plan.
type PlanCheck = fn(PlanOfRun<'_>) -> RuleAnswer;

/// What a plan binds, by its fields.
const BINDS: [(&str, PlanCheck); 2] = [
    ("data.confirm_root", check_units),
    ("the baseline of arms", check_base),
];

/// What a plan claims, by its fields.
const CLAIMS: [(&str, PlanCheck); 4] = [
    ("metric.metric, metric.judge_digest", check_metric),
    (
        "metric.scale_lo_micro, scale_hi_micro, repeats, direction",
        check_scale,
    ),
    ("hypothesis.kind, test.null_margin_micro", check_kind),
    ("the candidate of arms", check_candidate),
];

/// A gate on which a prompt of a run is promoted holds it against prompt 0, on the clusters kept for confirm.
pub(super) fn check_bound(run: &SgdRun, plan: (&ManifestId, &Manifest)) -> RuleAnswer {
    BINDS.iter().try_for_each(|(_, check)| check((run, plan)))
}

/// A gate on which a prompt of a run is promoted claims that it agrees more with the labels, by the run's metric.
pub(super) fn check_claim(
    state: &State,
    run: &SgdRun,
    plan: (&ManifestId, &Manifest),
) -> RuleAnswer {
    CLAIMS
        .iter()
        .try_for_each(|(_, check)| check((run, plan)))?;
    let gate = state.fold::<Gates>().by_id.get(plan.0);
    let sources = gate.map(|gate| gate.sources.as_slice()).unwrap_or_default();
    let is_judge = sources.first().is_some_and(|source| source.judge.is_some());
    let expected = format!("values that follow from scores of {}", run.said.run);
    ensure!(is_judge, expected, "labels");
    Ok(())
}

/// Why a plan can never promote the checkpoint of a run, with the fields that say so: what the rule asks of the promotion, but
/// for what only an opened gate shows. `None` where it can.
pub fn plan_fault(
    state: &State,
    run: &SgdRun,
    plan: (&ManifestId, &Manifest),
) -> Option<(&'static str, Unmet)> {
    let claims = state.asks(Question::SgdGate).then_some(CLAIMS);
    let all = BINDS.into_iter().chain(claims.into_iter().flatten());
    let mut faults = all.filter_map(|(fields, check)| Some((fields, check((run, plan)).err()?)));
    faults.next().or_else(|| {
        let is_finite = state.asks(Question::FiniteClaims) && is_of_its_units(plan.1.test.as_ref());
        is_finite.then(|| {
            let unmet = Unmet {
                expected: "a claim about what the clusters were drawn from".to_owned(),
                found: "a finite population, of exactly these clusters".to_owned(),
            };
            ("estimand.population, test.without_replacement", unmet)
        })
    })
}
