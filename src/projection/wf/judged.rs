//! Feedback and scores against executions and rules on record: parts are counted again, and the score is computed from them
//! and from nothing else. Whether an output keeps a rule, whoever has the outputs asks.

use clover_event::payload::repair_feedback::WfFeedbackGiven;
use clover_event::payload::repair_feedback::WfParts;
use clover_event::payload::repair_feedback::WfScored;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_num::Micro;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use super::WfCandidate;
use super::WfExecution;
use super::WfRun;
use super::due::WfDue;

/// Domain of the digest of the traces that feedback rests on.
const EVIDENCE_LABEL: &str = "clover/wf-evidence/v1";
/// Domain of the digest of feedback.
const FEEDBACK_LABEL: &str = "clover/wf-feedback/v1";
/// One, in millionths.
const ONE: u64 = 1_000_000;

/// What of a verifier is held against feedback.
#[derive(Debug, Deserialize)]
struct Verifier {
    cost_reference: u64,
    critic_weight: u64,
    filter: String,
    held_share: u64,
    #[serde(default)]
    rules: Vec<ContextRule>,
}

#[derive(Debug, Deserialize)]
struct Context {
    rules: Vec<ContextRule>,
}

/// A rule as far as it is named and weighed.
#[derive(Debug, Deserialize)]
struct ContextRule {
    hard: Option<bool>,
    id: String,
    weight: Option<serde_json::Number>,
}

impl ContextRule {
    /// Its weight in millionths: a decimal of at most six places, 1 where none is said.
    fn weight(&self) -> Option<i64> {
        let Some(number) = &self.weight else {
            return Some(1_000_000);
        };
        // Millionths are exact: a weight has at most six decimals, and is at most 1000.
        let text = format!("{:.6}", number.as_f64()?);
        let (whole, part) = text.split_once('.')?;
        let part: i64 = part.parse().ok()?;
        let whole: i64 = whole.parse().ok()?;
        whole.checked_mul(1_000_000)?.checked_add(part)
    }
}

fn read<'t, T: Deserialize<'t>>(what: &str, text: &'t str) -> Result<T, Unmet> {
    serde_json::from_str(text).map_err(|error| Unmet {
        expected: what.to_owned(),
        found: error.to_string(),
    })
}

/// A share in millionths, rounded down.
fn share(count: usize, of: usize) -> u64 {
    count as u64 * ONE / (of as u64).max(1)
}

fn micro(value: u64) -> Micro {
    Micro::new(i64::try_from(value).unwrap_or(i64::MAX)).unwrap_or_default()
}

/// A candidate's executions of one item each: the one that counts, then its reruns.
fn by_item<'c>(run: &WfRun, of: &'c WfCandidate) -> Vec<&'c [WfExecution]> {
    let each = usize::try_from(run.said.terms.reruns.value() + 1).unwrap_or(usize::MAX);
    of.executions.chunks(each.max(1)).collect()
}

/// The digest of the traces that feedback rests on, in the order of item and rerun.
pub fn evidence(traces: impl Iterator<Item = Digest>) -> Digest {
    canon::digest(EVIDENCE_LABEL, &traces.collect::<Vec<_>>())
}

/// What a score is made of, from flags and executions.
fn parts(
    verifier: &Verifier,
    items: &[&[WfExecution]],
    said: &WfFeedbackGiven,
) -> Result<WfParts, Unmet> {
    let all: i128 = said
        .flags
        .iter()
        .map(|of| i128::from(of.weight_micro.value()))
        .sum();
    let (mut satisfied, mut cost) = (0u64, 0u64);
    let (mut reruns, mut same) = (0usize, 0usize);
    for (place, executions) in items.iter().enumerate() {
        let first = executions.first().required("an execution of each item")?;
        if first.output.is_some() {
            let is_kept = |kept: &str| kept.as_bytes().get(place) == Some(&b'1');
            let kept = said.flags.iter().filter(|of| is_kept(of.kept.as_str()));
            let kept: i128 = kept.map(|of| i128::from(of.weight_micro.value())).sum();
            let share = if said.flags.is_empty() {
                i128::from(ONE)
            } else {
                kept * i128::from(ONE) / all.max(1)
            };
            satisfied = satisfied.saturating_add(u64::try_from(share).unwrap_or(0));
        }
        let spent = u128::from(first.cost.tokens()) * u128::from(ONE);
        let spent = spent / u128::from(verifier.cost_reference.max(1));
        cost += u64::try_from(spent).unwrap_or(u64::MAX).min(ONE);
        reruns += executions.len() - 1;
        let again = executions.iter().skip(1);
        same += again.filter(|of| of.output == first.output).count();
    }
    let count = (items.len() as u64).max(1);
    let critic = said.critic.iter();
    let critic = critic.fold(0_i64, |sum, of| sum.saturating_add(of.value()));
    let critic = u64::try_from(critic).unwrap_or(0);
    Ok(WfParts {
        cost_micro: micro(cost / count),
        critic_micro: micro(critic / count),
        satisfied_micro: micro(satisfied / count),
        stability_micro: micro(if reruns == 0 {
            ONE
        } else {
            share(same, reruns)
        }),
    })
}

/// (1 - w) satisfied + w critic - 0.1 cost - 0.1 (1 - stability), in millionths, rounded down.
fn score_of(parts: &WfParts, critic_weight: u64) -> i64 {
    let (one, weight) = (i128::from(ONE), i128::from(critic_weight.min(ONE)));
    let of = |part: Micro| i128::from(part.value());
    let gain = (one - weight) * of(parts.satisfied_micro) + weight * of(parts.critic_micro);
    let loss = 100_000 * (of(parts.cost_micro) + one - of(parts.stability_micro));
    i64::try_from((gain - loss).div_euclid(one)).unwrap_or(i64::MIN)
}

/// The score of feedback; none where the verifier's filter leaves none.
fn score(verifier: &Verifier, items: usize, said: &WfFeedbackGiven) -> Option<i64> {
    let crashed = said.crashed.value();
    let breaks = said.flags.iter().any(|flag| flag.hard && !flag.ok);
    let is_out = match verifier.filter.as_str() {
        "crashes" => crashed == items as u64,
        _ => crashed > 0 || breaks,
    };
    (!is_out).then(|| score_of(&said.parts, verifier.critic_weight))
}

/// What feedback says, as its digest is taken: its score included, so that no two scores share it.
fn document(said: &WfFeedbackGiven, score: Option<i64>) -> Value {
    let held = |kept: &str| kept.bytes().filter(|of| *of == b'1').count();
    let blame = said.blame.iter().map(|of| {
        json!({"confidence": of.confidence_micro.value(), "kind": of.kind, "operator": of.operator,
            "rule": of.rule, "step": of.step})
    });
    let flags = said.flags.iter().map(|of| {
        let kept = of.kept.as_str();
        json!({"hard": of.hard, "held": held(kept), "id": of.id, "items": kept.len(), "ok": of.ok,
            "weight": of.weight_micro.value()})
    });
    let suggestion = said.suggestion.as_ref().map(|of| {
        json!({"operator": of.operator, "rationale": of.rationale, "rule": of.rule, "step": of.step})
    });
    let parts = &said.parts;
    json!({
        "blame": blame.collect::<Vec<_>>(),
        "crashed": said.crashed,
        "flags": flags.collect::<Vec<_>>(),
        "observations": said.observations,
        "parts": {"cost": parts.cost_micro.value(), "critic": parts.critic_micro.value(),
            "satisfied": parts.satisfied_micro.value(), "stability": parts.stability_micro.value()},
        "score": score,
        "suggestion": suggestion,
    })
}

/// Flags are the rules of context and verifier, in order; what returned nothing keeps none.
fn check_flags(
    run: &WfRun,
    verifier: &Verifier,
    (items, said): (&[&[WfExecution]], &WfFeedbackGiven),
) -> RuleAnswer {
    let context: Context = read("a context", run.said.context.as_str())?;
    let rules: Vec<&ContextRule> = context.rules.iter().chain(&verifier.rules).collect();
    let expected = format!("{} rules", rules.len());
    let found = said.flags.len();
    ensure!(found == rules.len(), expected, found.to_string());
    for (rule, flag) in rules.into_iter().zip(&said.flags) {
        let weight = rule.weight().required("a weight of six decimals")?;
        let is_it = flag.id.as_str() == rule.id
            && flag.hard == rule.hard.unwrap_or(true)
            && flag.weight_micro.value() == weight;
        let expected = format!("rule {} of context and verifier", rule.id);
        ensure!(is_it, expected, flag.id.as_str());
        let kept = flag.kept.as_str();
        let is_form = kept.len() == items.len() && kept.bytes().all(|of| matches!(of, b'0' | b'1'));
        let expected = format!("1 or 0 for each of {} items", items.len());
        ensure!(is_form, expected, kept);
        for (of, executions) in kept.bytes().zip(items) {
            let returned = executions.first().is_some_and(|of| of.output.is_some());
            let expected = format!("nothing that keeps {} where nothing returned", rule.id);
            ensure!(of == b'0' || returned, expected, kept);
        }
        let held = kept.bytes().filter(|of| *of == b'1').count();
        let ok = share(held, items.len()) >= verifier.held_share;
        let expected = format!("{} as {ok}", rule.id);
        ensure!(flag.ok == ok, expected, flag.ok.to_string());
    }
    Ok(())
}

/// Feedback rests on the executions of its candidate, all of them, under the verifier that the run names.
pub(super) fn check_feedback(run: &WfRun, said: &WfFeedbackGiven) -> RuleAnswer {
    let due = run.due();
    let expected = format!("{due} first");
    let is_due = due == WfDue::Feedback(said.candidate);
    ensure!(is_due, expected, format!("feedback on {}", said.candidate));
    let expected = format!("the verifier of the run, {}", run.said.verifier_digest);
    let found = said.verifier_digest;
    ensure!(
        found == run.said.verifier_digest,
        expected,
        found.to_string()
    );
    let of = run.candidates.get(&said.candidate);
    let of = of.required("a candidate of the run")?;
    let again = evidence(of.executions.iter().map(|of| of.trace));
    let expected = format!("the digest of its traces, {again}");
    ensure!(said.evidence == again, expected, said.evidence.to_string());
    let verifier: Verifier = read("a verifier", run.said.verifier.as_str())?;
    let items = by_item(run, of);
    check_flags(run, &verifier, (&items, said))?;
    let crashed = items.iter().filter_map(|of| of.first());
    let crashed = crashed.filter(|of| of.crash.is_some()).count() as u64;
    let expected = format!("{crashed} items that returned nothing");
    let found = said.crashed.value();
    ensure!(found == crashed, expected, found.to_string());
    let has_critic = said.critic.is_empty() || said.critic.len() == items.len();
    let expected = "what a critic says of each item, or of none";
    ensure!(has_critic, expected, said.critic.len().to_string());
    let are_shares = said
        .critic
        .iter()
        .all(|of| (0..=1_000_000).contains(&of.value()));
    ensure!(are_shares, "what a critic says from 0 to 1", "another");
    let again = parts(&verifier, &items, said)?;
    let words = |of: &WfParts| {
        format!(
            "satisfied {}, critic {}, cost {}, stability {}",
            of.satisfied_micro, of.critic_micro, of.cost_micro, of.stability_micro
        )
    };
    ensure!(said.parts == again, words(&again), words(&said.parts));
    let score = score(&verifier, items.len(), said);
    let digest = canon::digest(FEEDBACK_LABEL, &document(said, score));
    let expected = format!("the digest of what it says, {digest}");
    let found = said.feedback_digest;
    ensure!(found == digest, expected, found.to_string());
    Ok(())
}

/// A score is what the parts of its feedback give.
pub(super) fn check_scored(run: &WfRun, said: &WfScored) -> RuleAnswer {
    let due = run.due();
    let expected = format!("{due} first");
    let is_due = due == WfDue::Score(said.candidate);
    ensure!(is_due, expected, format!("the score of {}", said.candidate));
    let of = run.candidates.get(&said.candidate);
    let of = of.required("a candidate of the run")?;
    let feedback = of.feedback.as_ref().required("its feedback")?;
    let expected = format!("the feedback {}", feedback.feedback_digest);
    let found = said.feedback_digest;
    ensure!(
        found == feedback.feedback_digest,
        expected,
        found.to_string()
    );
    let verifier: Verifier = read("a verifier", run.said.verifier.as_str())?;
    let again = score(&verifier, run.said.items.len(), feedback);
    let words = |of: Option<i64>| of.map_or_else(|| "none".to_owned(), |of| of.to_string());
    let found = said.score_micro.map(Micro::value);
    ensure!(found == again, words(again), words(found));
    let hard = feedback.flags.iter().all(|flag| flag.ok || !flag.hard);
    let theta = run.said.terms.theta_micro.value();
    let reaches = again.is_some_and(|score| score >= theta);
    let passes = hard && feedback.crashed.value() == 0 && reaches;
    let expected = if passes { "a pass" } else { "no pass" };
    ensure!(said.passes == passes, expected, said.passes.to_string());
    Ok(())
}
