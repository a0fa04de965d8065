//! What the verifier says of a candidate, from its executions, and the score that follows.

use clover_event::id::RunId;
use clover_event::payload::repair_feedback::WfBlame;
use clover_event::payload::repair_feedback::WfBlameKind;
use clover_event::payload::repair_feedback::WfFeedbackGiven;
use clover_event::payload::repair_feedback::WfFlag;
use clover_event::payload::repair_feedback::WfObservation;
use clover_event::payload::repair_feedback::WfObservationCode;
use clover_event::payload::repair_feedback::WfParts;
use clover_event::payload::repair_feedback::WfScored;
use clover_event::payload::repair_feedback::WfSuggestion;
use clover_flow::RunOutcome;
use clover_flow::Workflow;
use clover_flow::repair::feedback;
use clover_flow::repair::feedback::BlameKind;
use clover_flow::repair::feedback::Feedback;
use clover_flow::repair::feedback::ItemEvidence;
use clover_ground::digest::Digest;
use clover_num::Micro;
use clover_projection::wf::count;
use clover_projection::wf::judged::evidence;

use crate::wf::plan::RepairPlan;
use crate::wf::words;

/// What the verifier says, as the pure search has it: `outcomes` has of each item its execution, then its reruns; `critic` what
/// a critic says of each item, in millionths, and nothing where there is none.
pub fn judged(
    plan: &RepairPlan,
    workflow: &Workflow,
    outcomes: &[Vec<RunOutcome>],
    critic: &[Micro],
) -> Feedback {
    let batch = plan.set.items.iter().zip(outcomes).enumerate();
    let batch = batch.filter_map(|(at, (item, of))| {
        let (run, reruns) = of.split_first()?;
        let critic = critic.get(at).map(|of| of.value());
        Some(ItemEvidence {
            item,
            run,
            reruns,
            critic: critic.map(|of| u64::try_from(of).unwrap_or(0).min(feedback::ONE)),
        })
    });
    let batch: Vec<_> = batch.collect();
    feedback::feedback(workflow, &plan.rules, &batch, &plan.verifier.settings)
}

fn blame(of: &feedback::Blame) -> WfBlame {
    WfBlame {
        confidence_micro: words::share(of.confidence),
        kind: match of.kind {
            BlameKind::Prompt => WfBlameKind::Prompt,
            BlameKind::Io => WfBlameKind::Io,
            BlameKind::Structure => WfBlameKind::Structure,
        },
        operator: words::operator(of.operator),
        rule: words::text(&of.rule),
        step: words::text(&of.step),
    }
}

fn observation(of: &feedback::Observation) -> WfObservation {
    WfObservation {
        code: match of.code {
            "crash" => WfObservationCode::Crash,
            "guard" => WfObservationCode::Guard,
            _ => WfObservationCode::Rule,
        },
        detail: of.detail,
        step: words::text(&of.step),
    }
}

/// Of each item in order, `1` where its first execution keeps a rule.
fn kept(plan: &RepairPlan, rule: usize, outcomes: &[Vec<RunOutcome>]) -> String {
    let items = plan.set.items.iter().zip(outcomes);
    let bits = items.map(|(item, of)| {
        let output = of.first().and_then(|run| run.output.as_ref());
        let holds = output.is_some_and(|output| plan.rules[rule].holds(item, output));
        if holds { '1' } else { '0' }
    });
    bits.collect()
}

/// What is said of feedback; `critic` as in [`judged`].
pub fn given(
    (run, verifier): (&RunId, Digest),
    candidate: Digest,
    plan: &RepairPlan,
    found: &Feedback,
    (outcomes, critic): (&[Vec<RunOutcome>], &[Micro]),
) -> WfFeedbackGiven {
    let flags = found.flags.iter().enumerate().map(|(at, of)| WfFlag {
        hard: of.hard,
        id: words::text(&of.id),
        kept: words::text(&kept(plan, at, outcomes)),
        ok: of.ok,
        weight_micro: words::share(of.weight),
    });
    let traces = outcomes.iter().flatten().map(|of| of.trace.digest());
    let parts = found.parts;
    WfFeedbackGiven {
        blame: found.blame.iter().map(blame).collect(),
        candidate,
        crashed: count(found.crashed as u64),
        critic: critic.to_vec(),
        evidence: evidence(traces),
        feedback_digest: found.digest(),
        flags: flags.collect(),
        observations: found.observations.iter().map(observation).collect(),
        parts: WfParts {
            cost_micro: words::share(parts.cost),
            critic_micro: words::share(parts.critic),
            satisfied_micro: words::share(parts.satisfied),
            stability_micro: words::share(parts.stability),
        },
        run: run.clone(),
        suggestion: found.suggestion.as_ref().map(|of| WfSuggestion {
            operator: words::operator(of.operator),
            rationale: words::text(&of.rationale),
            rule: words::text(&of.rule),
            step: words::text(&of.step),
        }),
        verifier_digest: verifier,
    }
}

/// The score of feedback; no suggestion is read.
pub fn scored(run: &RunId, candidate: Digest, found: &Feedback, theta: Micro) -> WfScored {
    WfScored {
        candidate,
        feedback_digest: found.digest(),
        passes: found.passes(theta.value()),
        run: run.clone(),
        score_micro: found.score.map(words::micro),
    }
}
