//! The rules `run`, `ask`, `price` and `hold`: nothing is sent that was not held for, every ask ends in one word, and what calls
//! cost is what their tokens and the table in force give.

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::JudgeRunClosed;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::JudgeRunResumed;
use clover_event::payload::model_runs::RunEnd;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_event::payload::model_terms::TextClass;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_num::Count;

use super::ModelRun;
use super::ModelRuns;
use super::masses;
use super::money;
use super::money::CallMoney;
use super::money::MONEY;
use super::noise;
use super::source;
use super::texts;
use crate::asked::AskedRuns;
use crate::endpoints::EndpointRecord;
use crate::endpoints::Endpoints;
use crate::judges::Judges;

/// The rules of runs.
#[derive(Clone, Copy, Debug)]
pub struct RunRules;

/// An open run, of the experiment in the header where one is.
fn open_run<'a>(
    state: &'a State,
    run: &RunId,
    experiment: Option<&ExperimentId>,
) -> Result<&'a ModelRun, Unmet> {
    let of = run_of(state, run)?;
    let is_here = experiment.is_none_or(|experiment| of.experiment == *experiment);
    if let Some(end) = of.end {
        return Err(Unmet {
            expected: format!("a run that is open, as {run} is not"),
            found: end.to_string(),
        });
    }
    if !is_here {
        return Err(Unmet {
            expected: format!("the experiment of {run}, {}", of.experiment),
            found: experiment.map_or_else(String::new, ToString::to_string),
        });
    }
    Ok(of)
}

/// The run that an entry names.
fn run_of<'a>(state: &'a State, run: &RunId) -> Result<&'a ModelRun, Unmet> {
    let of = state.fold::<ModelRuns>().by_id.get(run);
    of.required(&format!("judge_run.opened of {run}"))
}

/// The registration of the judge of a run.
fn judge<'a>(state: &'a State, run: &ModelRun) -> Result<&'a JudgeRegistered, Unmet> {
    let of = state.fold::<Judges>().of(&run.experiment);
    let of = of.and_then(|of| of.judges.get(&run.said.judge));
    let of = of.required(&format!("judge {}, registered before", run.said.judge))?;
    Ok(&of.said)
}

/// The endpoint of a run.
fn endpoint<'a>(state: &'a State, said: &JudgeRunOpened) -> Result<&'a EndpointRecord, Unmet> {
    let of = state.fold::<Endpoints>().by_id.get(&said.endpoint);
    of.required(&format!("endpoint {}, registered before", said.endpoint))
}

/// What calls of a run cost; `None` at a free endpoint.
fn price<'a>(
    state: &'a State,
    said: &JudgeRunOpened,
    pin: &str,
) -> Result<Option<&'a PriceRow>, Unmet> {
    let place = endpoint(state, said)?;
    if place.said.free {
        return Ok(None);
    }
    let table = said
        .prices
        .as_ref()
        .required("prices, where calls cost something")?;
    let record = state.fold::<Endpoints>().prices.get(table);
    let record = record.required(&format!("prices {table}, registered before"))?;
    let row = record.row(place.said.provider.as_str(), pin, PriceMode::Live);
    let wanted = format!(
        "a price of {pin} at {} in {table}",
        place.said.provider.as_str()
    );
    row.required(&wanted).map(Some)
}

/// A run is of a judge that is asked at this endpoint, where rows may go, and no other run of the judge is open.
fn check_opened(state: &State, event: &ProposedEvent<'_>, said: &JudgeRunOpened) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let judges = state.fold::<Judges>().of(experiment);
    let judge = judges.and_then(|of| of.judges.get(&said.judge));
    let judge = judge.required(&format!("judge {}, registered before", said.judge))?;
    let asked = judge.said.asked.as_ref();
    let asked = asked.required(&format!(
        "a judge that is asked at an endpoint, as {} is not",
        said.judge
    ))?;
    ensure!(
        asked.endpoint == said.endpoint,
        format!("the endpoint of {}, {}", said.judge, asked.endpoint),
        said.endpoint.to_string()
    );
    let open = state.fold::<ModelRuns>().open(experiment, &said.judge);
    ensure!(
        open.is_none(),
        format!("no other open run of {}", said.judge),
        open.map_or_else(String::new, |of| of.said.run.to_string())
    );
    ensure!(said.asks.value() > 0, "at least one ask", "none");
    let has_place = !said.run.as_str().contains('/');
    ensure!(has_place, "a name without a slash", said.run.to_string());
    let is_free = !state.fold::<AskedRuns>().by_id.contains_key(&said.run);
    ensure!(is_free, "a name that no run had", said.run.to_string());
    Ok(())
}

/// Rows may go to the endpoint of a run.
fn check_place(state: &State, said: &JudgeRunOpened) -> RuleAnswer {
    let place = endpoint(state, said)?;
    ensure!(
        place.said.classes.contains(&TextClass::Rows),
        format!("an endpoint where rows may go, as {} is not", said.endpoint),
        "none of its classes"
    );
    Ok(())
}

/// A run that costs something names its account, which counts money, and its prices, which have one of its model.
fn check_priced(state: &State, event: &ProposedEvent<'_>, said: &JudgeRunOpened) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let judges = experiment.and_then(|of| state.fold::<Judges>().of(of));
    let judge = judges.and_then(|of| of.judges.get(&said.judge));
    let asked = judge.and_then(|of| of.said.asked.as_ref());
    let Some(asked) = asked else {
        return Ok(());
    };
    let row = price(state, said, asked.pin.as_str())?;
    if row.is_none() {
        let names = said.account.is_some() || said.prices.is_some() || said.cap_usd_micro.is_some();
        ensure!(
            !names,
            "no account, prices or cap at a free endpoint",
            "one of them"
        );
        return Ok(());
    }
    let endpoints = state.fold::<Endpoints>();
    let provider = endpoint(state, said)?.said.provider.as_str();
    let newest = endpoints.price(provider, asked.pin.as_str(), PriceMode::Live);
    let newest = newest.map(|(table, _)| table);
    ensure!(
        said.prices.as_ref() == newest,
        format!(
            "the newest prices of {}, {}",
            asked.pin.as_str(),
            newest.map_or_else(String::new, ToString::to_string)
        ),
        said.prices
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    );
    let id = said
        .account
        .as_ref()
        .required("an account, where calls cost something")?;
    let unit = &money::account(state, id)?.unit;
    ensure!(
        unit.as_str() == MONEY,
        format!("an account that counts {MONEY}"),
        unit.to_string()
    );
    Ok(())
}

fn check_resumed(state: &State, event: &ProposedEvent<'_>, said: &JudgeRunResumed) -> RuleAnswer {
    let run = open_run(state, &said.run, event.event.header.experiment.as_ref())?;
    ensure!(
        said.epoch.value() == run.epoch + 1,
        format!("epoch {}", run.epoch + 1),
        said.epoch.to_string()
    );
    ensure!(
        run.hold.is_none(),
        "a run whose hold was settled before",
        "an open hold"
    );
    ensure!(
        run.uncalled == 0,
        "a call of each ask that was held for, lost where nobody knows more",
        format!("{} without", run.uncalled)
    );
    Ok(())
}

/// The end of a run says what is on record of it.
fn check_closed(state: &State, event: &ProposedEvent<'_>, said: &JudgeRunClosed) -> RuleAnswer {
    let run = open_run(state, &said.run, event.event.header.experiment.as_ref())?;
    ensure!(
        run.hold.is_none(),
        "a run whose holds were settled",
        "an open hold"
    );
    ensure!(
        !run.is_losing,
        "a run that went on after asks were lost",
        "its end"
    );
    ensure!(
        run.unnamed.is_empty(),
        "a score or a miss of each call",
        format!("{} calls that nothing names", run.unnamed.len())
    );
    let calls = run.outcomes();
    ensure!(
        said.by_outcome == calls,
        format!(
            "the outcomes of its {} calls",
            run.by_outcome.values().sum::<u64>()
        ),
        "others"
    );
    ensure!(
        said.left.value() == run.left(),
        format!("{} asks left", run.left()),
        said.left.to_string()
    );
    ensure!(
        said.cost_usd_micro.value() == run.cost,
        format!("{} for its calls", run.cost),
        said.cost_usd_micro.to_string()
    );
    ensure!(
        said.settled_usd_micro.value() == run.settled,
        format!("{} charged", run.settled),
        said.settled_usd_micro.to_string()
    );
    ensure!(
        said.end != RunEnd::Completed || run.left() == 0,
        "a run that completed to have no ask left",
        run.left().to_string()
    );
    Ok(())
}

/// A call belongs to an open run of its judge, of this epoch, which has an ask left.
fn check_call(state: &State, event: &ProposedEvent<'_>, said: &CallRecorded) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let run = open_run(state, &said.run, Some(experiment))?;
    ensure!(
        said.judge == run.said.judge,
        format!("the judge of {}, {}", said.run, run.said.judge),
        said.judge.to_string()
    );
    ensure!(
        said.epoch.value() == run.epoch,
        format!("epoch {}", run.epoch),
        said.epoch.to_string()
    );
    ensure!(
        run.left() > 0,
        format!("at most {} asks", run.said.asks),
        "one more"
    );
    ensure!(
        !run.is_losing || said.outcome == CallOutcome::Lost,
        "a run that goes on after asks were lost, before it asks again",
        said.outcome.as_str()
    );
    Ok(())
}

/// An ask is asked once, and again only where its last call came to nothing that its model said; only the pinned model answers.
fn check_ask(state: &State, said: &CallRecorded) -> RuleAnswer {
    let again = state.fold::<ModelRuns>().again.get(&said.ask.to_hex());
    let nth = again.map_or(0, |of| of.nth + 1);
    ensure!(
        said.nth.value() == nth,
        format!("call {nth} of the ask"),
        said.nth.to_string()
    );
    let waits = again.filter(|of| !of.is_lost && of.run == said.run);
    ensure!(
        waits.is_none(),
        format!(
            "another run than {}, in which the ask came to nothing",
            said.run
        ),
        said.run.to_string()
    );
    let is_answered = said.outcome == CallOutcome::Answered;
    ensure!(
        is_answered == said.score_micro.is_some(),
        "a score of an ask that was answered, and of no other",
        said.outcome.as_str()
    );
    let is_lost = said.outcome == CallOutcome::Lost;
    ensure!(
        said.attempts.is_empty() == is_lost,
        "attempts of a call, and of one that was lost none",
        said.attempts.len().to_string()
    );
    let judge = judge(state, run_of(state, &said.run)?)?;
    let asked = judge.asked.as_ref();
    let asked = asked.required(&format!(
        "a judge that is asked at an endpoint, as {} is not",
        said.judge
    ))?;
    let is_other = said.model_returned.as_ref() != Some(&asked.pin);
    ensure!(
        !(is_answered && is_other),
        format!("an answer of {}, which is pinned", asked.pin.as_str()),
        said.model_returned
            .as_ref()
            .map_or("nobody", |of| of.as_str())
    );
    check_masses(said, asked.weighed_levels)
}

/// A judge whose levels are weighed scores by their masses, and by nothing else; any other judge has none.
fn check_masses(said: &CallRecorded, levels: Option<Count>) -> RuleAnswer {
    let Some(levels) = levels else {
        ensure!(
            said.masses.is_none(),
            "masses of a judge whose levels are weighed, and of no other",
            "some"
        );
        return Ok(());
    };
    let was_read = matches!(said.outcome, CallOutcome::Answered | CallOutcome::Uncovered);
    ensure!(
        was_read == said.masses.is_some(),
        "masses of an answer that was read, and of no other call",
        said.outcome.as_str()
    );
    let Some(all) = &said.masses else {
        return Ok(());
    };
    let (outcome, score) = match masses::score(all, levels) {
        Ok(score) => (CallOutcome::Answered, Some(score)),
        Err(fault) => (fault.outcome(), None),
    };
    ensure!(
        said.outcome == outcome,
        format!("an outcome that its masses give, {outcome}"),
        said.outcome.as_str()
    );
    ensure!(
        said.score_micro == score,
        format!(
            "the score that its masses give, {}",
            score.map_or_else(String::new, |of| of.to_string())
        ),
        said.score_micro
            .map_or_else(String::new, |of| of.to_string())
    );
    Ok(())
}

fn check_cost(state: &State, said: &CallRecorded) -> RuleAnswer {
    let run = run_of(state, &said.run)?;
    let judge = judge(state, run)?;
    let pin = judge.asked.as_ref().map_or("", |of| of.pin.as_str());
    let row = price(state, &run.said, pin)?;
    let (expected, bound_fits) = match row {
        None => (0, said.bound_usd_micro == Count::default()),
        Some(row) => (
            money::cost(row, &CallMoney::of(said)),
            said.bound_usd_micro != Count::default() || row.is_zero(),
        ),
    };
    ensure!(
        bound_fits,
        "a bound where calls cost something, and none where they are free",
        said.bound_usd_micro.to_string()
    );
    ensure!(
        said.cost_usd_micro.value() == expected,
        format!("a cost of {expected}"),
        said.cost_usd_micro.to_string()
    );
    money::check_usage(said.tokens.as_ref(), said.usage)
}

/// A call lies in the open hold of its run, which has one left for it.
fn check_held(state: &State, said: &CallRecorded) -> RuleAnswer {
    let run = run_of(state, &said.run)?;
    if run.said.account.is_none() {
        ensure!(
            said.hold.is_none(),
            "no hold at a free endpoint",
            said.hold.as_ref().map_or("none", |of| of.as_str())
        );
        ensure!(
            said.outcome != CallOutcome::Lost,
            "asks that are lost only where something was held for them",
            "a free endpoint"
        );
        return Ok(());
    }
    let hold = run
        .hold
        .as_ref()
        .required(&format!("an open hold of {}", said.run))?;
    ensure!(
        said.hold.as_ref() == Some(&hold.name),
        format!("the open hold, {}", hold.name.as_str()),
        said.hold.as_ref().map_or("none", |of| of.as_str())
    );
    ensure!(
        hold.asks_left > 0,
        format!("as many calls as {} holds for", hold.name.as_str()),
        "one more"
    );
    if state.asks(Question::HeldBounds) {
        let bounds = hold.bounds.saturating_add(said.bound_usd_micro.value());
        let expected = format!(
            "bounds of at most {}, which {} holds",
            hold.amount,
            hold.name.as_str()
        );
        ensure!(bounds <= hold.amount, expected, bounds.to_string());
    }
    Ok(())
}

/// Money is held once at a time, for the asks that follow, within the account and the cap.
fn check_reserved(state: &State, event: &ProposedEvent<'_>, said: &BudgetReserved) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    ensure!(
        run.said.account.as_ref() == Some(&said.account),
        format!("the account of {}", said.run),
        said.account.to_string()
    );
    ensure!(run.hold.is_none(), "no other open hold of the run", "one");
    ensure!(
        !run.is_losing,
        "a run that goes on after asks were lost, before more is held",
        "a hold"
    );
    ensure!(
        said.hold.as_str() == run.next_hold(),
        format!("the hold {}", run.next_hold()),
        said.hold.as_str()
    );
    let asks = said.asks.value();
    let least = run.uncalled.max(1);
    ensure!(
        (least..=run.left()).contains(&asks),
        format!(
            "{least} to {} asks: those that are open, and what is left at most",
            run.left()
        ),
        said.asks.to_string()
    );
    let within = (run.said.cap_usd_micro, run.settled);
    money::check_room(state, said, within, event.recorded_at)
}

/// What a hold is charged is at least what its calls cost.
fn check_settled(state: &State, said: &BudgetSettled) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    money::check_settled(said, run.hold.as_ref(), run.unpaid())
}

/// Whether a run asks a model for something else than scores.
fn is_asked(state: &State, run: &RunId) -> bool {
    state.fold::<AskedRuns>().by_id.contains_key(run)
}

impl Rule for RunRules {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        match &event.event.payload {
            Payload::JudgeRunOpened(said) => {
                breaches.take(RuleName::Run, check_opened(state, event, said));
                breaches.take(RuleName::Endpoint, check_place(state, said));
                breaches.take(RuleName::Price, check_priced(state, event, said));
                breaches.take(RuleName::Noise, noise::check_opened(state, event, said));
            }
            Payload::JudgeRunResumed(said) => {
                breaches.take(RuleName::Run, check_resumed(state, event, said));
            }
            Payload::JudgeRunClosed(said) => {
                breaches.take(RuleName::Run, check_closed(state, event, said));
            }
            Payload::CallRecorded(said) => {
                let run = check_call(state, event, said);
                let is_of_run = run.is_ok();
                breaches.take(RuleName::Run, run);
                if is_of_run {
                    breaches.take(RuleName::Ask, check_ask(state, said));
                    breaches.take(RuleName::Price, check_cost(state, said));
                    breaches.take(RuleName::Hold, check_held(state, said));
                    breaches.take(RuleName::Noise, noise::check_call(state, event, said));
                }
            }
            Payload::NoiseMeasured(said) => {
                breaches.take(RuleName::Noise, noise::check_measured(state, event, said));
            }
            // Holds of runs that ask a model for something else are held by the rule of those.
            Payload::BudgetReserved(said) if !is_asked(state, &said.run) => {
                breaches.take(RuleName::Hold, check_reserved(state, event, said));
            }
            Payload::BudgetSettled(said) if !is_asked(state, &said.run) => {
                breaches.take(RuleName::Hold, check_settled(state, said));
            }
            _ => source::check(state, event, breaches),
        }
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        noise::provides(event, facts);
        source::provides(event, facts);
        texts::provides(event, facts);
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        texts::requires(state, event, facts);
    }
}
