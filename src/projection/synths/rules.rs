//! The rule `synth`: an optimizer is shown what was released to it, in as many rounds, candidates and dev calls as its run
//! has, and what is proposed from a run was returned in it. That each candidate is what the parser says, `workflow` asks.

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::rubric::AuthorKind;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::synth_runs::AnswerState;
use clover_event::payload::synth_runs::K_MAX;
use clover_event::payload::synth_runs::OptimizerKind;
use clover_event::payload::synth_runs::ROUNDS_MAX;
use clover_event::payload::synth_runs::SynthAsked;
use clover_event::payload::synth_runs::SynthEnd;
use clover_event::payload::synth_runs::SynthOpened;
use clover_event::payload::synth_runs::SynthReturned;
use clover_event::payload::synth_runs::SynthStopped;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_ground::sign::KeyId;
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

use super::SynthRun;
use super::Synths;
use crate::access::OPTIMIZER_CLASSES;
use crate::asked::AskedRuns;
use crate::decisions::AllDecisions;
use crate::decisions::dev_calls_made;
use crate::decisions::live;
use crate::decisions::plan_of;

/// The rule of runs of optimizers.
#[derive(Clone, Copy, Debug)]
pub struct SynthRule;

/// An open run, of the iteration and experiment that are named.
fn open_run<'a>(
    state: &'a State,
    run: &RunId,
    (experiment, iteration): (Option<&ExperimentId>, &IterationId),
) -> Result<&'a SynthRun, Unmet> {
    let of = state.fold::<Synths>().by_id.get(run);
    let of = of.required(&format!("synth.opened of {run}"))?;
    let expected = format!("a run that is open, as {run} is not");
    if let Some(end) = of.end {
        let found = end.to_string();
        return Err(Unmet { expected, found });
    }
    if of.said.iteration != *iteration || Some(&of.experiment) != experiment {
        let expected = format!("the iteration of {run}, {}", of.said.iteration);
        let found = iteration.to_string();
        return Err(Unmet { expected, found });
    }
    Ok(of)
}

/// Whether a text is the name of a built-in optimizer, in small or capital letters: `cards/` and a number, up to the first
/// blank.
fn is_own_name(model: &Text) -> bool {
    let mut words = model.as_str().split([' ', '\t']);
    let first = words.find(|word| !word.is_empty()).unwrap_or_default();
    let first = first.to_ascii_lowercase();
    let number = first.strip_prefix("cards/");
    number.is_some_and(|of| !of.is_empty() && of.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a run says of a model that is asked: its name is the pinned model and the endpoint, so that nobody passes another off
/// as it.
fn check_model(said: &SynthOpened) -> RuleAnswer {
    let is_asked = said.optimizer == OptimizerKind::Endpoint;
    let expected = "a model that is asked, exactly where one behind HTTP writes candidates";
    ensure!(
        said.asked.is_some() == is_asked,
        expected,
        said.optimizer.as_str()
    );
    let Some(asked) = &said.asked else {
        return Ok(());
    };
    let name = format!("{} at {}", asked.pin.as_str(), asked.endpoint);
    let expected = format!("the model and its endpoint, {name}");
    ensure!(said.model.as_str() == name, expected, said.model.as_str());
    Ok(())
}

/// An answer of a model behind HTTP names the call that gave it, and is its text; an answer of anybody else names none.
fn check_called(state: &State, event: &ProposedEvent<'_>, said: &SynthReturned) -> RuleAnswer {
    let runs = state.fold::<AskedRuns>();
    let Some(run) = runs.of(&said.run, CallPurpose::Propose) else {
        let expected = "no call in a run that asks no model";
        ensure!(said.call.is_none(), expected, "one");
        return Ok(());
    };
    let last = run.last_of(said.round.value());
    let last = last.filter(|last| last.is_final());
    let last = last.required(&format!(
        "a call of round {} that came to its end",
        said.round
    ))?;
    let call = said.call.required("the call that gave the answer")?;
    let expected = format!("the call of round {}, {}", said.round, last.call);
    ensure!(call == last.call, expected, call.to_string());
    let refs = event.event.header.refs.contains(&call);
    ensure!(
        refs,
        format!("the call {call} among its references"),
        "none"
    );
    let expected = "the text of its call as the answer, byte for byte";
    ensure!(
        said.answer == last.text,
        expected,
        said.answer.as_ref().map_or("none", |_| "another")
    );
    let detail = last.detail.as_ref().map(Text::as_str);
    let state = match (last.outcome, detail) {
        // What it was read as, the parser says.
        (CallOutcome::Answered, _) => return Ok(()),
        (CallOutcome::Unparsed, Some("oversize")) => AnswerState::Oversize,
        _ => AnswerState::Unreadable,
    };
    let expected = format!("{state} of a call that is {}", last.outcome);
    ensure!(said.state == state, expected, said.state.to_string());
    Ok(())
}

/// A run is opened where cards were published and nothing was sealed, by no key that scores or labels, within what the plan
/// leaves.
fn check_opened(state: &State, event: &ProposedEvent<'_>, said: &SynthOpened) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let live = live(state, experiment, &said.iteration)?;
    live.check_going_on("a run")?;
    live.check_not_sealed("a run")?;
    let decided = state.fold::<AllDecisions>().of(&said.iteration);
    let cards = decided.map_or(0, |of| of.published.len().saturating_sub(1));
    ensure!(cards > 0, "an iteration with cards", "none");
    let synths = state.fold::<Synths>();
    if let Some(open) = synths.open_in(&said.iteration) {
        let expected = format!("no other open run in {}", said.iteration);
        return unmet(expected, open.said.run.to_string());
    }
    if synths.by_id.contains_key(&said.run) {
        return unmet("a name that no run had", said.run.to_string());
    }
    let key = state.keyring.keys.get(&said.key);
    let may = key.is_some_and(|key| key.end.is_none() && key.roles.contains(Role::Optimizer));
    ensure!(may, "a live key in role optimizer", said.key.to_string());
    if state.asks(Question::OwnNames) {
        let own = is_own_name(&said.model);
        let is_cards = said.optimizer == OptimizerKind::Cards;
        let expected = "the name of a built-in optimizer exactly where it writes the candidates";
        ensure!(own == is_cards, expected, said.model.as_str());
    }
    check_model(said)?;
    let judged = synths.judged.contains(&said.key);
    let expected = "an optimizer's key that signed no score and no label";
    ensure!(!judged, expected, said.key.to_string());
    let within = |what: &str, found: u64, most: u64| -> RuleAnswer {
        let expected = format!("{what} from 1 to {most}");
        ensure!((1..=most).contains(&found), expected, found.to_string());
        Ok(())
    };
    within("k", said.k.value(), K_MAX)?;
    within("rounds", said.rounds.value(), ROUNDS_MAX)?;
    let design = plan_of(state, live.it).and_then(|plan| plan.design.as_ref());
    let most = design.required("a manifest that says how often dev is called")?;
    let made = dev_calls_made(state, &said.iteration);
    let left = most.dev_calls_max.value().saturating_sub(made);
    within("dev_calls", said.dev_calls.value(), left)
}

/// A view is handed over once each class in it was released to the key since the last, and what stands in it was published.
fn check_asked(state: &State, event: &ProposedEvent<'_>, said: &SynthAsked) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let run = open_run(state, &said.run, (experiment, &said.iteration))?;
    let experiment = experiment.required("an experiment")?;
    let live = live(state, experiment, &said.iteration)?;
    live.check_not_sealed("a round")?;
    let expected = format!("an answer to round {} first", run.asked.saturating_sub(1));
    ensure!(run.asked == run.returned, expected, "none");
    let (round, rounds) = (said.round.value(), run.said.rounds.value());
    let expected = format!("round {} of at most {rounds}", run.asked);
    ensure!(
        round == run.asked && round < rounds,
        expected,
        round.to_string()
    );
    for class in OPTIMIZER_CLASSES {
        let expected = format!(
            "data.read of {class} to the key of {} before the view",
            said.run
        );
        ensure!(run.released.contains(class), expected, "none");
    }
    let decided = state.fold::<AllDecisions>().of(&said.iteration);
    let decided = decided.required("an iteration with cards")?;
    let mut inputs = said.inputs.iter();
    if let Some(strange) = inputs.find(|input| !decided.is_published(**input)) {
        return unmet("inputs that were published", strange.to_hex());
    }
    let through = said.through_seq.value();
    let expected = format!("a view of entries from seq {} on, before itself", run.seq);
    ensure!(
        (run.seq..event.seq).contains(&through),
        expected,
        through.to_string()
    );
    Ok(())
}

/// An answer is signed by the key of the run, once a view was handed over.
fn check_returned(state: &State, event: &ProposedEvent<'_>, said: &SynthReturned) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let run = open_run(state, &said.run, (experiment, &said.iteration))?;
    let author = event.event.header.author;
    let expected = format!("the key of {}, {}", said.run, run.said.key);
    ensure!(author == run.said.key, expected, author.to_string());
    ensure!(
        run.asked > run.returned,
        "synth.asked of its round first",
        "none"
    );
    let expected = format!("round {}", run.returned);
    ensure!(
        said.round.value() == run.returned,
        expected,
        said.round.to_string()
    );
    check_called(state, event, said)
}

/// While a run is open, a dev call is about what it returned, and there are as many as it has.
fn check_dev_call(state: &State, said: &DevObjectiveQueried) -> RuleAnswer {
    let Some(run) = state.fold::<Synths>().open_in(&said.iteration) else {
        return Ok(());
    };
    let name = &run.said.run;
    let expected = format!("a dev call of {name}, which is open, by its key");
    ensure!(
        said.requester == run.said.key,
        expected,
        said.requester.to_string()
    );
    let expected = format!("a candidate that {name} returned");
    ensure!(
        run.valid.contains(&said.candidate),
        expected,
        said.candidate.to_hex()
    );
    let most = run.said.dev_calls.value();
    let expected = format!("at most {most} dev calls of {name}");
    ensure!(
        run.dev_calls < most,
        expected,
        format!("{} made before", run.dev_calls)
    );
    Ok(())
}

/// What names a run was returned in it and passed, one of a family; and the key of a run proposes as a program nothing else.
fn check_proposed(state: &State, author: &KeyId, said: &PatchProposed) -> RuleAnswer {
    let synths = state.fold::<Synths>();
    let Some(name) = &said.run else {
        let is_free = said.author_kind == AuthorKind::Human || !synths.is_optimizer(author);
        let expected = "the run that returned it: its key is that of an optimizer in a run";
        ensure!(is_free, expected, "none");
        return Ok(());
    };
    let run = synths.by_id.get(name);
    let run = run.required(&format!("synth.opened of {name}"))?;
    let is_open = run.end.is_none() && run.said.iteration == said.iteration;
    let expected = format!("an open run of {}", said.iteration);
    ensure!(is_open, expected, name.to_string());
    let expected = format!("the key of {name}, {}", run.said.key);
    ensure!(*author == run.said.key, expected, author.to_string());
    let expected = format!("a candidate that {name} returned");
    ensure!(
        run.valid.contains(&said.patch_hash),
        expected,
        said.patch_hash.to_hex()
    );
    let passing = synths.passing.get(&said.iteration);
    let passes = passing.is_some_and(|of| of.contains(&said.patch_hash));
    let expected = "a candidate of which the dev objective says that p1 to p7 pass";
    ensure!(passes, expected, said.patch_hash.to_hex());
    if state.asks(Question::ModelOfRun) {
        let model = &run.said.model;
        let is_program = said.author_kind == AuthorKind::Llm;
        let found = said.model.as_ref().filter(|_| is_program);
        let expected = format!("a patch by the model of {name}, {}", model.as_str());
        let found_words = found.map_or("another author", |of| of.as_str());
        ensure!(found == Some(model), expected, found_words);
    }
    if let Some(other) = run.proposed.get(said.family.as_str()) {
        let expected = format!("one patch of {} from {name}", said.family);
        return unmet(expected, format!("{other} before it"));
    }
    let view = said.prompt_digest.filter(|view| run.views.contains(view));
    view.required(&format!("the digest of a view of {name} as prompt_digest"))?;
    Ok(())
}

/// The end of a run says what it had and what came of it.
fn check_stopped(state: &State, event: &ProposedEvent<'_>, said: &SynthStopped) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let run = open_run(state, &said.run, (experiment, &said.iteration))?;
    let expected = format!("{} rounds", run.returned);
    ensure!(
        said.rounds.value() == run.returned,
        expected,
        said.rounds.to_string()
    );
    let expected = format!("{} dev calls", run.dev_calls);
    ensure!(
        said.dev_calls.value() == run.dev_calls,
        expected,
        said.dev_calls.to_string()
    );
    let came: Vec<_> = run.proposed.values().cloned().collect();
    let expected = format!("the patches that name it, {}", came.len());
    ensure!(
        said.proposed == came,
        expected,
        said.proposed.len().to_string()
    );
    let is_whole = said.reason != SynthEnd::Rounds || run.returned == run.said.rounds.value();
    let expected = format!("rounds as its end after {} of them", run.said.rounds);
    ensure!(is_whole, expected, run.returned.to_string());
    Ok(())
}

/// Whoever optimizes neither scores nor labels.
fn check_judged(state: &State, author: &KeyId) -> RuleAnswer {
    let optimizes = state.fold::<Synths>().is_optimizer(author);
    ensure!(
        !optimizes,
        "a key that is no optimizer's in a run",
        author.to_string()
    );
    Ok(())
}

impl Rule for SynthRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let author = &event.event.header.author;
        let answer = match &event.event.payload {
            Payload::SynthOpened(said) => check_opened(state, event, said),
            Payload::SynthAsked(said) => check_asked(state, event, said),
            Payload::SynthReturned(said) => check_returned(state, event, said),
            Payload::SynthStopped(said) => check_stopped(state, event, said),
            Payload::DevObjectiveQueried(said) => check_dev_call(state, said),
            Payload::PatchProposed(said) => check_proposed(state, author, said),
            Payload::ScoreRecorded(_) | Payload::LabelRecorded(_) | Payload::LabelSealed(_) => {
                check_judged(state, author)
            }
            _ => return,
        };
        breaches.take(RuleName::Synth, answer);
    }
}
