//! The rule `sgd` where it computes: batches, losses, requests, verdicts, steps and ends of a run are what its record gives.

use clover_event::Payload;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdScored;
use clover_event::payload::sgd::SgdTerms;
use clover_event::payload::sgd_steps::SgdPatchRejected;
use clover_event::payload::sgd_steps::SgdStepCommitted;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdRuns;
use clover_projection::sgd::run_of;
use clover_prompt::JudgePrompt;
use clover_prompt::Lexicon;
use clover_prompt::PatchRule;

use crate::recompute::Recomputation;
use crate::recompute::compare;
use crate::sgd::asked;
use crate::sgd::course::SgdCourse;
use crate::sgd::course::patch_terms;
use crate::sgd::verdict::PatchVerdict;

/// The rule of runs, computed again.
#[derive(Clone, Copy, Debug)]
pub struct SgdRecomputation;

/// What is said is what the record gives.
fn same(said: &Payload, again: impl Into<Payload>) -> RuleAnswer {
    match compare(said, &again.into()) {
        Recomputation::Differs(all) => match all.first() {
            Some(first) => unmet(
                format!("{} {}", first.path, first.recomputed),
                first.recorded.to_string(),
            ),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Prompt 0 is one, and the constants are a schedule.
fn check_opened(said: &SgdOpened) -> RuleAnswer {
    let prompt = JudgePrompt::from_json(said.prompt.as_str().as_bytes());
    let prompt = prompt.map_err(|fault| Unmet {
        expected: "a prompt".to_owned(),
        found: fault.to_string(),
    })?;
    let bytes = prompt.to_json();
    let is_canonical = bytes == said.prompt.as_str().as_bytes();
    ensure!(is_canonical, "a prompt as canonical JSON", "another form");
    let digest = prompt.digest();
    let expected = format!("the digest of the prompt, {digest}");
    let found = said.prompt_digest;
    ensure!(found == digest, expected, found.to_string());
    ensure!(
        prompt.version() == 0,
        "version 0",
        prompt.version().to_string()
    );
    let lexicon = Lexicon::built_in().digest();
    let expected = format!("the lexicon of the program, {lexicon}");
    let found = said.lexicon;
    ensure!(found == lexicon, expected, found.to_string());
    check_schedule(&said.terms)
}

/// Whether constants are ones that a run may have.
///
/// # Errors
/// The first that is none.
pub fn check_terms(terms: &SgdTerms) -> RuleAnswer {
    clover_projection::sgd::rules::check_terms(terms)?;
    check_schedule(terms)
}

fn check_schedule(terms: &SgdTerms) -> RuleAnswer {
    let checked = patch_terms(terms).schedule.check();
    checked.map_err(|fault| Unmet {
        expected: format!("{} as {}", fault.field, fault.expected),
        found: "another".to_owned(),
    })
}

/// Val is scored under what the valid proposal results in.
fn check_scored(
    state: &State,
    (course, run): (&SgdCourse<'_>, &SgdRun),
    said: &SgdScored,
) -> RuleAnswer {
    asked::check_scored(state, (course, run), said)?;
    if said.part != SgdPart::Val || run.going().is_none() {
        return Ok(());
    }
    let prompt = course.scored_prompt(said.part)?.digest();
    let expected = format!("val under {prompt}");
    let found = said.prompt_digest;
    ensure!(found == prompt, expected, found.to_string());
    Ok(())
}

/// Whether a rejection names nothing but words of rows.
pub fn is_leak_alone(said: &SgdPatchRejected) -> bool {
    let mut all = said.violations.iter();
    all.all(|of| of.rule.as_str() == PatchRule::Leak.as_str())
}

/// A rejection names what the validator found; words of rows only whoever has the texts can see.
fn check_rejected(course: &SgdCourse<'_>, said: &SgdPatchRejected) -> RuleAnswer {
    if is_leak_alone(said) {
        return Ok(());
    }
    match course.verdict()? {
        PatchVerdict::Broken(all) if all == said.violations => Ok(()),
        PatchVerdict::Broken(all) => {
            let names = |all: &[clover_event::payload::sgd_steps::SgdViolation]| {
                let words = all.iter().map(|of| {
                    format!(
                        "{} {} of {}",
                        of.rule.as_str(),
                        of.found.as_str(),
                        of.bound.as_str()
                    )
                });
                words.collect::<Vec<_>>().join(", ")
            };
            unmet(names(&all), names(&said.violations))
        }
        PatchVerdict::Valid(_) => unmet("no rejection of a valid proposal", "one"),
        PatchVerdict::Waits => unmet("a person's word first", "none"),
    }
}

/// The next batch, or the checkpoint, comes after what the numbers of the last step call for.
fn check_followed(course: &SgdCourse<'_>) -> RuleAnswer {
    if let Some(due) = course.reverted()? {
        let expected = format!("sgd.reverted to {} first", due.to_digest);
        return unmet(expected, "none");
    }
    if let Some(due) = course.stop()? {
        let expected = format!("sgd.stop_triggered after step {} first", due.step);
        return unmet(expected, "none");
    }
    Ok(())
}

/// What a step takes is what it leaves: a proposal that stands is applied.
fn check_committed(course: &SgdCourse<'_>, said: &SgdStepCommitted) -> RuleAnswer {
    same(&said.clone().into(), course.committed()?)
}

/// Digests under which a text of a prompt could pass for another candidate: of what the judge is told, with and without a last
/// line end.
fn text_digests(prompt: &JudgePrompt) -> [Digest; 2] {
    let text = prompt.render();
    [
        Digest::sha256(text.as_bytes()),
        Digest::sha256(format!("{text}\n").as_bytes()),
    ]
}

/// A prompt that a step of a run left is promoted by its own digest, and not by that of its text. A run that is
/// broken has findings of its own, and stands in the way of no other candidate.
fn check_text(state: &State, said: &PromotionIssued) -> RuleAnswer {
    if !state.asks(Question::SgdGate) {
        return Ok(());
    }
    for run in state.fold::<SgdRuns>().by_id.values() {
        for prompt in &SgdCourse::left(run) {
            let is_text = text_digests(prompt).contains(&said.candidate_digest);
            let expected = format!("{}, the prompt that {} left", prompt.digest(), run.said.run);
            let found = || format!("{}, of its text", said.candidate_digest);
            ensure!(!is_text, expected, found());
        }
    }
    Ok(())
}

fn check(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    let payload = &event.event.payload;
    let Some(name) = run_of(payload) else {
        return Ok(());
    };
    let run = state.fold::<SgdRuns>().by_id.get(name);
    let run = run.required(&format!("sgd.opened of {name}"))?;
    match payload {
        Payload::SgdRowsListed(_)
        | Payload::SgdPatchApproved(_)
        | Payload::SgdPatchProposed(_)
        | Payload::SgdStopped(_) => {
            return Ok(());
        }
        _ => {}
    }
    let course = SgdCourse::of(run)?;
    match payload {
        Payload::SgdBatchDrawn(_) => {
            check_followed(&course)?;
            same(payload, course.batch()?)
        }
        Payload::SgdScored(said) => check_scored(state, (&course, run), said),
        Payload::SgdLossComputed(said) => same(payload, course.loss_computed(said.part)?),
        Payload::SgdGradientRequested(said) => {
            let mut again = course.requested()?;
            again.leak_test = said.leak_test;
            same(payload, again)
        }
        Payload::SgdGradientReturned(said) => course.checked(said.gradient.as_str()).map(drop),
        Payload::SgdPatchRejected(said) => check_rejected(&course, said),
        Payload::SgdStepCommitted(said) => check_committed(&course, said),
        Payload::SgdReverted(_) => {
            let again = course.reverted()?;
            same(payload, again.required("a step that is taken back")?)
        }
        Payload::SgdStopTriggered(_) => {
            let again = course.stop()?;
            same(payload, again.required("a step that triggers a stop")?)
        }
        Payload::SgdCheckpointSelected(_) => {
            check_followed(&course)?;
            same(payload, course.checkpoint()?)
        }
        Payload::SgdTestRead(_) => same(payload, course.test_read()?),
        _ => Ok(()),
    }
}

impl Rule for SgdRecomputation {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // What recorded facts refuse already needs no second finding of the same rule.
        if breaches.iter().any(|breach| breach.rule == RuleName::Sgd) {
            return;
        }
        let answer = match &event.event.payload {
            Payload::SgdOpened(said) => check_opened(said),
            Payload::PromotionIssued(said) => check_text(state, said),
            Payload::JudgeRunOpened(said) => asked::check_told(state, event.event, said),
            payload if run_of(payload).is_some() => check(state, event),
            _ => return,
        };
        breaches.take(RuleName::Sgd, answer);
    }
}
