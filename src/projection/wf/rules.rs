//! The rule `repair`, as far as it needs no workflow to be read: steps of a run come in their order, each by whoever may say it,
//! within its budget; what is right stays out of reach until the run has ended. What follows from workflows and texts,
//! `clover-workflow` asks.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::Role;
use clover_event::payload::repair::WfCalled;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfExecuted;
use clover_event::payload::repair::WfExecutor;
use clover_event::payload::repair::WfPart;
use clover_event::payload::repair::WfRunStarted;
use clover_event::payload::repair::WfStopped;
use clover_event::payload::repair::WfTerms;
use clover_event::payload::repair::WfUsage;
use clover_event::payload::repair_feedback::EditPairRecorded;
use clover_event::payload::repair_feedback::UtilityRecorded;
use clover_event::payload::repair_feedback::WfIterationClosed;
use clover_event::payload::repair_feedback::WfPruned;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use super::WfRun;
use super::WfRuns;
use super::cells;
use super::due::WfDue;
use super::judged;
use super::learnt;
use super::plus;
use super::run_of;
use super::traced;
use super::usage_of;

/// The rule of runs that repair a workflow.
#[derive(Clone, Copy, Debug)]
pub struct RepairRule;

/// Domain of the digest of a workflow, over its canonical JSON.
pub const IR_LABEL: &str = "clover/wf-ir/v1";
/// Domain of the digest of the first line of a task set.
pub const CONTEXT_LABEL: &str = "clover/wf-context/v1";
/// Domain of the digest of a meta prompt.
pub const META_LABEL: &str = "clover/wf-meta/v1";
/// Domain of the digest of a verifier.
pub const VERIFIER_LABEL: &str = "clover/wf-verifier/v1";

/// The seed of everything that is drawn in a run: of its experiment's registration and its name, so that nobody draws twice.
pub fn seed_of(state: &State, experiment: &ExperimentId, run: &RunId) -> Option<Digest> {
    let registered = state.fold::<WfRuns>().experiments.get(experiment)?;
    let mut bytes = b"clover/wf/seed/v1\0".to_vec();
    bytes.extend_from_slice(registered.0.as_bytes());
    bytes.extend_from_slice(run.as_str().as_bytes());
    Some(Digest::sha256(&bytes))
}

/// The commitment to what is right: SHA-256 of `clover/wf-truth/v1`, a zero byte, the salt and the BLAKE3 digest of the lines.
pub fn truth_commitment(salt: Digest, lines: Digest) -> Digest {
    let bytes = [salt.as_bytes().as_slice(), lines.as_bytes()].concat();
    Digest::labelled("clover/wf-truth/v1", &bytes)
}

/// Place of the control step of a pair among the eligible.
pub fn control_draw(seed: Digest, parent: Digest, number: u64, eligible: usize) -> u64 {
    let mut bytes = b"clover/wf/control/v1\0".to_vec();
    bytes.extend_from_slice(seed.as_bytes());
    bytes.extend_from_slice(parent.as_bytes());
    bytes.extend_from_slice(&number.to_be_bytes());
    let drawn = Digest::sha256(&bytes);
    let drawn = drawn.as_bytes().iter().take(8);
    let drawn = drawn.fold(0u64, |all, byte| (all << 8) | u64::from(*byte));
    drawn % (eligible as u64).max(1)
}

pub(super) fn same(what: &str, found: Digest, (label, text): (&str, &str)) -> RuleAnswer {
    let digest = Digest::labelled(label, text.as_bytes());
    let expected = format!("the digest of {what}, {digest}");
    ensure!(found == digest, expected, found.to_string());
    Ok(())
}

fn within(what: &str, found: u64, (least, most): (u64, u64)) -> RuleAnswer {
    let expected = format!("{what} from {least} to {most}");
    ensure!((least..=most).contains(&found), expected, found.to_string());
    Ok(())
}

fn check_terms(terms: &WfTerms) -> RuleAnswer {
    within("beam", terms.beam.value(), (1, 32))?;
    within("proposals", terms.proposals.value(), (1, 16))?;
    within("iterations", terms.iterations.value(), (1, 50))?;
    within("reruns", terms.reruns.value(), (0, 8))?;
    within("stagnation", terms.stagnation.value(), (1, 50))?;
    let theta = u64::try_from(terms.theta_micro.value()).unwrap_or(u64::MAX);
    within("theta in millionths", theta, (0, 1_000_000))?;
    let gain = u64::try_from(terms.least_gain_micro.value()).unwrap_or(u64::MAX);
    within("least_gain in millionths", gain, (0, 1_000_000))?;
    within("calls", terms.budget.calls.value(), (1, 10_000_000))
}

fn check_key(state: &State, what: &str, (key, role): (&KeyId, Role)) -> RuleAnswer {
    let known = state.keyring.keys.get(key);
    let may = known.is_some_and(|of| of.end.is_none() && of.roles.contains(role));
    let expected = format!("a live key in role {} as {what}", role.as_str());
    ensure!(may, expected, key.to_string());
    let reads = state.fold::<WfRuns>().readers.contains(key);
    let expected = format!("a key as {what} that read no truth");
    ensure!(!reads, expected, key.to_string());
    Ok(())
}

/// A run is opened on items whose truth nobody has read, by keys that never read one, under a seed that nobody chose.
fn check_started(state: &State, event: &ProposedEvent<'_>, said: &WfRunStarted) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let runs = state.fold::<WfRuns>();
    let is_new = !runs.by_id.contains_key(&said.run);
    ensure!(is_new, "a name that no run had", said.run.to_string());
    check_key(
        state,
        "the optimizer's",
        (&said.optimizer_key, Role::Optimizer),
    )?;
    check_key(
        state,
        "the verifier's",
        (&said.verifier_key, Role::Verifier),
    )?;
    let seed = seed_of(state, experiment, &said.run);
    let seed = seed.required("experiment.registered of the experiment")?;
    let expected = format!("the seed that experiment and run give, {seed}");
    ensure!(said.seed == seed, expected, said.seed.to_string());
    check_terms(&said.terms)?;
    // No rule holds the calls of a run against what an endpoint answered.
    let is_held = said.executor != WfExecutor::Endpoint;
    let expected = "the simulator or recorded answers";
    ensure!(is_held, expected, said.executor.to_string());
    same(
        "the program",
        said.program_digest,
        (IR_LABEL, said.program.as_str()),
    )?;
    same(
        "the context",
        said.context_digest,
        (CONTEXT_LABEL, said.context.as_str()),
    )?;
    same(
        "the meta prompt",
        said.meta_digest,
        (META_LABEL, said.meta.as_str()),
    )?;
    same(
        "the verifier",
        said.verifier_digest,
        (VERIFIER_LABEL, said.verifier.as_str()),
    )?;
    for (place, item) in said.items.iter().enumerate() {
        let mut before = said.items.iter().take(place);
        let is_new = !before.any(|of| of.id == item.id || of.input == item.input);
        ensure!(is_new, "each item once", item.id.as_str());
        let is_read = runs.opened_items.contains(&item.input);
        let expected = "items whose truth is not opened";
        ensure!(!is_read, expected, item.id.as_str());
    }
    learnt::check_started(runs, experiment, said)
}

fn event_is_by(event: &ProposedEvent<'_>, what: &str, key: KeyId) -> RuleAnswer {
    let author = event.event.header.author;
    let expected = format!("{what} key of the run, {key}");
    ensure!(author == key, expected, author.to_string());
    Ok(())
}

fn due_first<T>(run: &WfRun, found: &str) -> Result<T, clover_ledger::Unmet> {
    Err(clover_ledger::Unmet {
        expected: format!("{} first", run.due()),
        found: found.to_owned(),
    })
}

/// A call belongs to the execution that is due, and nothing is begun once the budget is spent.
fn check_called(run: &WfRun, said: &WfCalled) -> RuleAnswer {
    let found = (said.candidate, said.item.value(), said.rerun.value());
    check_execution(run, Kind::WfCalled.as_str(), found)?;
    if run.end.is_none() {
        let expected = "no call once the budget is spent";
        ensure!(!run.is_spent(), expected, said.number.to_string());
    }
    let number = said.number.value();
    let expected = format!("call {} of the run", run.calls);
    ensure!(number == run.calls, expected, number.to_string());
    let is_asked = run.said.executor == WfExecutor::Endpoint;
    let expected = "the ask of a call exactly where a model behind HTTP is called";
    ensure!(
        said.ask.is_some() == is_asked,
        expected,
        said.number.to_string()
    );
    let is_one = said.answer.is_some() != said.error.is_some();
    ensure!(is_one, "an answer, or why there is none", "both or neither");
    Ok(())
}

fn check_execution(run: &WfRun, kind: &str, found: (Digest, u64, u64)) -> RuleAnswer {
    let WfDue::Execution {
        candidate,
        item,
        rerun,
    } = run.due()
    else {
        return due_first(run, kind);
    };
    if (candidate, item, rerun) != found {
        let (candidate, item, rerun) = found;
        let found = format!("{kind} of {candidate} on item {item}, time {rerun}");
        return due_first(run, &found);
    }
    Ok(())
}

/// An execution is the sum of its calls, and its trace is of them and nothing else.
fn check_executed(run: &WfRun, said: &WfExecuted) -> RuleAnswer {
    let found = (said.candidate, said.item.value(), said.rerun.value());
    check_execution(run, Kind::WfExecuted.as_str(), found)?;
    let sum = run.pending.iter().map(usage_of);
    let sum = sum.fold(WfUsage::default(), plus);
    let words = |of: &WfUsage| {
        format!(
            "{} calls, {} + {} tokens, {} usd_micro, {} ms",
            of.calls, of.tokens_in, of.tokens_out, of.usd_micro, of.ms
        )
    };
    let expected = format!("the sum of its calls, {}", words(&sum));
    ensure!(said.cost == sum, expected, words(&said.cost));
    let is_one = said.output.is_some() != said.crash.is_some();
    ensure!(is_one, "an output, or why there is none", "both or neither");
    let has_answers = said.answers.is_some();
    let expected = "answers exactly where models were called";
    let are_there = has_answers != run.pending.is_empty();
    ensure!(are_there, expected, has_answers.to_string());
    traced::check(run, said)
}

fn ids(all: &[Digest]) -> String {
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    all.join(" ")
}

/// A turn keeps what scores and costs say, in their order.
fn check_pruned(run: &WfRun, said: &WfPruned) -> RuleAnswer {
    if run.due() != WfDue::Prune {
        return due_first(run, Kind::WfPruned.as_str());
    }
    let turn = run.turn();
    let expected = format!("turn {turn}");
    let found = said.iteration.value();
    ensure!(found == turn, expected, found.to_string());
    let (kept, dropped) = run.pruned();
    let expected = format!("kept by score, cost and id: {}", ids(&kept));
    ensure!(kept == said.kept, expected, ids(&said.kept));
    let expected = format!("dropped: {}", ids(&dropped));
    ensure!(dropped == said.dropped, expected, ids(&said.dropped));
    Ok(())
}

/// Proposals go on in the order of what was kept, each candidate with at most as many as the run allows.
fn check_proposal(run: &WfRun, (number, iteration): (u64, u64), parent: &Digest) -> RuleAnswer {
    if run.due() != WfDue::Proposals {
        return due_first(run, "a proposal");
    }
    let expected = format!("proposal {} of the run", run.proposals);
    ensure!(number == run.proposals, expected, number.to_string());
    let turn = run.turn();
    let expected = format!("turn {turn}");
    ensure!(iteration == turn, expected, iteration.to_string());
    let kept = run.turns.last().map_or(&[][..], |of| &of.kept);
    let place = kept.iter().position(|id| id == parent);
    let place = place.required("a candidate that the turn kept")?;
    let last = run.tries.last();
    let before = last.and_then(|(id, _)| kept.iter().position(|of| of == id));
    let goes_on = before.is_none_or(|before| before <= place);
    let expected = "proposals in the order of what was kept";
    ensure!(goes_on, expected, parent.to_string());
    let tries = last.filter(|(id, _)| id == parent).map_or(0, |of| of.1);
    let most = run.said.terms.proposals.value();
    let expected = format!("at most {most} proposals for a candidate");
    ensure!(tries < most, expected, (tries + 1).to_string());
    Ok(())
}

/// A turn is closed with what its scores, calls and edits add up to.
fn check_closed(run: &WfRun, said: &WfIterationClosed) -> RuleAnswer {
    if run.due() != WfDue::Proposals {
        return due_first(run, Kind::WfIterationClosed.as_str());
    }
    let again = run.closing();
    let words = |of: &WfIterationClosed| {
        format!(
            "turn {}, best {:?}, added {}, rejected {}, left {} calls {} tokens {} usd_micro, touched {} {} {} {}",
            of.iteration,
            of.best_micro.map(clover_num::Micro::value),
            of.added,
            of.rejected,
            of.left.calls,
            of.left.tokens,
            of.left.usd_micro,
            of.locality.steps_touched,
            of.locality.ast_nodes,
            of.locality.prompt_chars,
            of.locality.new_llm_calls,
        )
    };
    ensure!(again == *said, words(&again), words(said));
    Ok(())
}

/// A run ends as its record says, or by a person.
fn check_stopped(run: &WfRun, said: &WfStopped) -> RuleAnswer {
    ensure!(run.end.is_none(), "a run that is open", "its end");
    let due = run.due();
    let is_cut =
        run.is_spent() && said.reason == WfEnd::Budget && matches!(due, WfDue::Execution { .. });
    let is_due = due == WfDue::Stop(said.reason);
    if !is_due && !is_cut && said.reason != WfEnd::Person {
        return due_first(run, &format!("the end of the run by {}", said.reason));
    }
    let again = run.stopping(said.reason);
    let words = |of: &WfStopped| {
        format!(
            "winner {}, {}, {} candidates, {} turns, {} calls",
            of.winner
                .map_or_else(|| "none".to_owned(), |id| id.to_string()),
            if of.passed { "passes" } else { "does not pass" },
            of.candidates,
            of.iterations,
            of.spent.calls,
        )
    };
    ensure!(again == *said, words(&again), words(said));
    Ok(())
}

/// What is right is read after the end, by a key that neither proposes nor judges, of every candidate, and alike for equal outputs.
fn check_utility(
    state: &State,
    event: &ProposedEvent<'_>,
    (run, said): (&WfRun, &UtilityRecorded),
) -> RuleAnswer {
    if run.due() != WfDue::Worth {
        return due_first(run, Kind::UtilityRecorded.as_str());
    }
    let author = event.event.header.author;
    let runs = state.fold::<WfRuns>();
    for of in runs.by_id.values() {
        let is_edge = author == of.said.optimizer_key || author == of.said.verifier_key;
        let expected = "a key that neither proposes nor judges in a run";
        ensure!(!is_edge, expected, author.to_string());
        let has = |item: &clover_event::payload::repair::WfItem| {
            run.said.items.iter().any(|own| own.input == item.input)
        };
        let shares = of.end.is_none() && of.said.items.iter().any(has);
        let expected = "no open run on the same items";
        ensure!(!shares, expected, of.said.run.to_string());
    }
    let next = run.unworthed().first().copied();
    let next = next.required("a candidate that was executed on every item and has no worth")?;
    let expected = format!("the worth of {next}");
    let found = said.candidate;
    ensure!(found == next, expected, found.to_string());
    let committed = truth_commitment(said.salt, said.truth.blake3);
    let expected = format!("the truth that the run committed to, {}", run.said.truth);
    ensure!(committed == run.said.truth, expected, committed.to_string());
    if let Some(first) = &run.truth {
        let is_same = first.salt == said.salt && first.truth == said.truth;
        ensure!(is_same, "the truth that was opened", "another");
    }
    let count = run.said.items.len();
    let expected = format!("a number for each of {count} items");
    let found = said.utilities_micro.len();
    ensure!(found == count, expected, found.to_string());
    check_worth(run, said)
}

fn check_worth(run: &WfRun, said: &UtilityRecorded) -> RuleAnswer {
    let each = usize::try_from(run.said.terms.reruns.value() + 1).unwrap_or(usize::MAX);
    let output = |id: &Digest, place: usize| {
        let of = run.candidates.get(id)?.executions.get(place * each)?;
        of.output
    };
    for (place, worth) in said.utilities_micro.iter().enumerate() {
        let value = worth.value();
        let expected = "a worth from 0 to 1";
        ensure!(
            (0..=1_000_000).contains(&value),
            expected,
            value.to_string()
        );
        let own = output(&said.candidate, place);
        let expected = format!("nothing for item {place}, where it returned nothing");
        ensure!(own.is_some() || value == 0, expected, value.to_string());
        for (id, other) in &run.candidates {
            let Some(known) = other.utilities.as_ref().and_then(|of| of.get(place)) else {
                continue;
            };
            let is_same = own.is_none() || output(id, place) != own || known == worth;
            let expected = format!("{known} for item {place}, as for the same output of {id}");
            ensure!(is_same, expected, value.to_string());
        }
    }
    Ok(())
}

/// A pair changes a step that is blamed, and one that the seed draws among the others.
fn check_pair(run: &WfRun, said: &EditPairRecorded) -> RuleAnswer {
    let is_open = run.due() == WfDue::Worth && run.truth.is_none();
    let expected = "pairs after the end of the run, before what is right is read";
    ensure!(is_open, expected, Kind::EditPairRecorded.as_str());
    let number = said.number.value();
    let expected = format!("pair {} of the run", run.pairs.len());
    ensure!(
        number == run.pairs.len() as u64,
        expected,
        number.to_string()
    );
    let parent = run.candidates.get(&said.parent);
    let parent = parent.required("a candidate of the run")?;
    let scored = parent.scored.as_ref();
    let fails = scored.required("a parent with a score")?;
    ensure!(
        !fails.passes,
        "a parent that does not pass",
        "one that does"
    );
    let blame = parent.feedback.as_ref();
    let blame = blame.required("feedback on the parent")?;
    let mut steps = blame.blame.iter().map(|of| of.step.as_str());
    let is_blamed = steps.any(|step| step == said.targeted.step.as_str());
    let expected = "a step that the feedback blames";
    ensure!(is_blamed, expected, said.targeted.step.as_str());
    let eligible = said.eligible.len();
    ensure!(eligible > 0, "a step to draw", "none");
    let draw = control_draw(run.said.seed, said.parent, number, eligible);
    let expected = format!("place {draw}, which the seed draws");
    let found = said.draw.value();
    ensure!(found == draw, expected, found.to_string());
    let drawn = usize::try_from(draw)
        .ok()
        .and_then(|at| said.eligible.get(at));
    let is_drawn = drawn == Some(&said.control.step);
    ensure!(is_drawn, "the drawn step", said.control.step.as_str());
    let propensity = 1_000_000 / i64::try_from(eligible).unwrap_or(i64::MAX);
    let expected = format!("a propensity of {propensity}");
    let found = said.propensity_micro.value();
    ensure!(found == propensity, expected, found.to_string());
    Ok(())
}

fn check_begun(state: &State, run: &WfRun) -> RuleAnswer {
    let runs = state.fold::<WfRuns>();
    if state.asks(Question::OpenedArms) {
        learnt::check_begun(runs, run)?;
    }
    cells::check_begun(runs, run)
}

fn check_in_run(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    let payload = &event.event.payload;
    let Some(name) = run_of(payload) else {
        return Ok(());
    };
    let run = state.fold::<WfRuns>().by_id.get(name);
    let run = run.required(&format!("wf.run_started of {name}"))?;
    let experiment = event.event.header.experiment.as_ref();
    let expected = format!("the experiment of {name}, {}", run.experiment);
    let found = experiment.map_or("none", |of| of.as_str());
    ensure!(experiment == Some(&run.experiment), expected, found);
    match payload {
        Payload::WfCalled(said) => {
            check_begun(state, run)?;
            check_called(run, said)
        }
        Payload::WfExecuted(said) => {
            check_begun(state, run)?;
            check_executed(run, said)
        }
        Payload::WfFeedbackGiven(said) => {
            event_is_by(event, "the verifier's", run.said.verifier_key)?;
            judged::check_feedback(run, said)
        }
        Payload::WfScored(said) => judged::check_scored(run, said),
        Payload::WfPruned(said) => check_pruned(run, said),
        Payload::WfCandidateAdded(said) => {
            event_is_by(event, "the optimizer's", run.said.optimizer_key)?;
            let place = (said.number.value(), said.iteration.value());
            check_proposal(run, place, &said.parent)?;
            let is_new = !run.candidates.contains_key(&said.candidate);
            let expected = "a candidate that the run does not have";
            ensure!(is_new, expected, said.candidate.to_string());
            same("the workflow", said.candidate, (IR_LABEL, said.ir.as_str()))
        }
        Payload::WfEditRejected(said) => {
            let place = (said.number.value(), said.iteration.value());
            check_proposal(run, place, &said.parent)
        }
        Payload::WfIterationClosed(said) => check_closed(run, said),
        Payload::WfStopped(said) => check_stopped(run, said),
        Payload::EditPairRecorded(said) => check_pair(run, said),
        Payload::UtilityRecorded(said) => check_utility(state, event, (run, said)),
        _ => Ok(()),
    }
}

/// Whether a run is of those on which an update is tried.
pub(super) fn is_trial(said: &WfRunStarted) -> bool {
    said.part == WfPart::Validate
}

impl Rule for RepairRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let runs = state.fold::<WfRuns>();
        let answer = match &event.event.payload {
            Payload::WfRunStarted(said) => check_started(state, event, said),
            Payload::MetaTriggered(said) => learnt::check_triggered(runs, event, said),
            Payload::MetaUpdated(said) => learnt::check_updated(runs, event, said),
            Payload::MetaValidated(said) => learnt::check_validated(runs, said),
            Payload::MetaPlanned(said) => cells::check_planned(runs, event, said),
            Payload::MetaConcluded(said) => cells::check_concluded(runs, said),
            Payload::LibTemplateAdded(said) => learnt::check_template(runs, said),
            payload if run_of(payload).is_some() => check_in_run(state, event),
            _ => return,
        };
        breaches.take(RuleName::Repair, answer);
    }
}
