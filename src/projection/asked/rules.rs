//! Runs that ask a model for something else than scores: nothing is sent that was not held for, an ask is answered once, and
//! what calls cost is what their tokens and the table in force give.

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_event::payload::model_calls::OUTPUT_MAX;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
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
use clover_num::Count;

use super::AskedRun;
use super::AskedRuns;
use crate::endpoints::EndpointRecord;
use crate::endpoints::Endpoints;
use crate::runs::ModelRuns;
use crate::runs::money;
use crate::runs::money::CallMoney;
use crate::runs::money::MONEY;
use crate::sgd::SgdRuns;
use crate::synths::Synths;

/// The rules of these runs.
#[derive(Clone, Copy, Debug)]
pub struct AskedRules;

/// The ask that a run waits for: its place, and the digest of what was shown. A line a purpose.
fn awaited(state: &State, purpose: CallPurpose, run: &RunId) -> Option<(u64, Digest)> {
    match purpose {
        CallPurpose::Descend => state.fold::<SgdRuns>().by_id.get(run)?.awaited(),
        CallPurpose::Propose => state.fold::<Synths>().by_id.get(run)?.awaited(),
    }
}

/// A run that is open, of the experiment in the header where one is.
fn open_run<'a>(
    state: &'a State,
    run: &RunId,
    experiment: Option<&ExperimentId>,
) -> Result<&'a AskedRun, Unmet> {
    let of = state.fold::<AskedRuns>().by_id.get(run);
    let of = of.required(&format!("a run {run} that asks a model, opened before"))?;
    let expected = format!("a run that is open, as {run} is not");
    if of.is_over {
        let found = "its end".to_owned();
        return Err(Unmet { expected, found });
    }
    if experiment.is_some_and(|experiment| of.experiment != *experiment) {
        let expected = format!("the experiment of {run}, {}", of.experiment);
        let found = experiment.map_or_else(String::new, ToString::to_string);
        return Err(Unmet { expected, found });
    }
    Ok(of)
}

fn endpoint<'a>(state: &'a State, asked: &AskedModel) -> Result<&'a EndpointRecord, Unmet> {
    let of = state.fold::<Endpoints>().by_id.get(&asked.endpoint);
    of.required(&format!("endpoint {}, registered before", asked.endpoint))
}

/// What calls of a run cost; `None` at a free endpoint.
fn price<'a>(state: &'a State, asked: &AskedModel) -> Result<Option<&'a PriceRow>, Unmet> {
    let place = endpoint(state, asked)?;
    if place.said.free {
        return Ok(None);
    }
    let table = asked.prices.as_ref();
    let table = table.required("prices, where calls cost something")?;
    let record = state.fold::<Endpoints>().prices.get(table);
    let record = record.required(&format!("prices {table}, registered before"))?;
    let (provider, pin) = (place.said.provider.as_str(), asked.pin.as_str());
    let row = record.row(provider, pin, PriceMode::Live);
    let wanted = format!("a price of {pin} at {provider} in {table}");
    row.required(&wanted).map(Some)
}

/// The name of a run is no other run's, and has room for the names of its holds; an answer has a length.
fn check_named(state: &State, run: &RunId, asked: &AskedModel) -> RuleAnswer {
    let has_place = !run.as_str().contains('/');
    ensure!(has_place, "a name without a slash", run.to_string());
    let is_asked = state.fold::<AskedRuns>().by_id.contains_key(run);
    let is_free = !is_asked && !state.fold::<ModelRuns>().by_id.contains_key(run);
    ensure!(is_free, "a name that no run had", run.to_string());
    let output = asked.max_output_tokens.value();
    let expected = format!("max_output_tokens from 1 to {OUTPUT_MAX}");
    ensure!(
        (1..=OUTPUT_MAX).contains(&output),
        expected,
        output.to_string()
    );
    Ok(())
}

/// Texts of the purpose may go to the endpoint, and the model may be asked there.
fn check_place(state: &State, purpose: CallPurpose, asked: &AskedModel) -> RuleAnswer {
    let place = endpoint(state, asked)?;
    let (_, class) = purpose.terms();
    let expected = format!(
        "an endpoint where {class} may go, as {} is not",
        asked.endpoint
    );
    ensure!(
        place.said.classes.contains(&class),
        expected,
        "none of its classes"
    );
    let is_asked_here = place
        .said
        .model
        .as_ref()
        .is_none_or(|only| *only == asked.model);
    let expected = format!("the model that {} is registered for", asked.endpoint);
    ensure!(is_asked_here, expected, asked.model.as_str());
    Ok(())
}

/// A run that costs something names its account, which counts money, and the newest prices of its model.
fn check_priced(state: &State, asked: &AskedModel) -> RuleAnswer {
    if price(state, asked)?.is_none() {
        let is_bare =
            asked.account.is_none() && asked.prices.is_none() && asked.cap_usd_micro.is_none();
        let expected = "no account, prices or cap at a free endpoint";
        ensure!(is_bare, expected, "one of them");
        return Ok(());
    }
    let provider = endpoint(state, asked)?.said.provider.as_str();
    let pin = asked.pin.as_str();
    let newest = state
        .fold::<Endpoints>()
        .price(provider, pin, PriceMode::Live);
    let newest = newest.map(|(table, _)| table);
    let word = |of: Option<&_>| of.map_or_else(String::new, ToString::to_string);
    let expected = format!("the newest prices of {pin}, {}", word(newest));
    ensure!(
        asked.prices.as_ref() == newest,
        expected,
        word(asked.prices.as_ref())
    );
    let id = asked.account.as_ref();
    let id = id.required("an account, where calls cost something")?;
    let unit = &money::account(state, id)?.unit;
    let expected = format!("an account that counts {MONEY}");
    ensure!(unit.as_str() == MONEY, expected, unit.to_string());
    Ok(())
}

/// A call is of the key of its run, about what was shown last and nobody answered yet.
fn check_call(state: &State, event: &ProposedEvent<'_>, said: &ModelCallRecorded) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let run = open_run(state, &said.run, Some(experiment))?;
    let author = event.event.header.author;
    let expected = format!("the key of {}, {}", said.run, run.key);
    ensure!(author == run.key, expected, author.to_string());
    let expected = format!("the purpose of {}, {}", said.run, run.purpose);
    ensure!(
        said.purpose == run.purpose,
        expected,
        said.purpose.to_string()
    );
    let due = awaited(state, run.purpose, &said.run);
    let (place, shown) = due.required("something that was shown and is not answered yet")?;
    let expected = format!("ask {place} of {}", said.run);
    ensure!(
        said.place.value() == place,
        expected,
        said.place.to_string()
    );
    let expected = format!("the digest of what was shown, {}", shown.to_hex());
    ensure!(said.shown == shown, expected, said.shown.to_hex());
    Ok(())
}

/// An ask is answered once, and asked again only where its last call came to nothing that its model said; an answer is of the
/// pinned model, and is kept whole.
fn check_ask(state: &State, said: &ModelCallRecorded) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    let last = run.last_of(said.place.value());
    if let Some(last) = last {
        let expected = format!("no further call of ask {} of {}", said.place, said.run);
        ensure!(!last.is_final(), expected, last.outcome.as_str());
        let expected = format!("the ask of the call before, {}", last.ask.to_hex());
        ensure!(said.ask == last.ask, expected, said.ask.to_hex());
    }
    let nth = last.map_or(0, |last| last.nth + 1);
    let expected = format!("call {nth} of the ask");
    ensure!(said.nth.value() == nth, expected, said.nth.to_string());
    let is_lost = said.outcome == CallOutcome::Lost;
    let expected = "attempts of a call, and of one that was lost none";
    ensure!(
        said.attempts.is_empty() == is_lost,
        expected,
        said.attempts.len().to_string()
    );
    let expected = "an outcome of an ask that no judge answers";
    ensure!(
        said.outcome != CallOutcome::Uncovered,
        expected,
        said.outcome.as_str()
    );
    let is_answered = said.outcome == CallOutcome::Answered;
    let expected = "the text of an answer, and of no other call";
    ensure!(
        is_answered == said.text.is_some(),
        expected,
        said.outcome.as_str()
    );
    let expected = "the body of an answer";
    ensure!(!is_answered || said.response.is_some(), expected, "none");
    let is_other = said.model_returned.as_ref() != Some(&run.asked.pin);
    let expected = format!("an answer of {}, which is pinned", run.asked.pin.as_str());
    let found = said.model_returned.as_ref();
    ensure!(
        !(is_answered && is_other),
        expected,
        found.map_or("nobody", |of| of.as_str())
    );
    Ok(())
}

fn check_cost(state: &State, said: &ModelCallRecorded) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    let row = price(state, &run.asked)?;
    let is_bare = said.bound_usd_micro == Count::default();
    let fits = row.map_or(is_bare, |row| !is_bare || row.is_zero());
    let expected = "a bound where calls cost something, and none where they are free";
    ensure!(fits, expected, said.bound_usd_micro.to_string());
    let cost = row.map_or(0, |row| money::cost(row, &CallMoney::of_model(said)));
    let expected = format!("a cost of {cost}");
    ensure!(
        said.cost_usd_micro.value() == cost,
        expected,
        said.cost_usd_micro.to_string()
    );
    money::check_usage(said.tokens.as_ref(), said.usage)
}

/// A call lies in the open hold of its run, which covers its bound.
fn check_held(state: &State, said: &ModelCallRecorded) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    let found = said.hold.as_ref().map_or("none", |of| of.as_str());
    if run.asked.account.is_none() {
        ensure!(said.hold.is_none(), "no hold at a free endpoint", found);
        let is_lost = said.outcome == CallOutcome::Lost;
        let expected = "asks that are lost only where something was held for them";
        ensure!(!is_lost, expected, "a free endpoint");
        return Ok(());
    }
    let hold = run.hold.as_ref();
    let hold = hold.required(&format!("an open hold of {}", said.run))?;
    let expected = format!("the open hold, {}", hold.name.as_str());
    ensure!(said.hold.as_ref() == Some(&hold.name), expected, found);
    let expected = format!("one call, which {} holds for", hold.name.as_str());
    ensure!(hold.asks_left > 0, expected, "one more");
    let bound = said.bound_usd_micro.value();
    let expected = format!(
        "a bound of at most {}, which {} holds",
        hold.amount,
        hold.name.as_str()
    );
    ensure!(bound <= hold.amount, expected, bound.to_string());
    Ok(())
}

/// Money is held for one ask at a time, by the key of the run, while the ask waits for an answer.
fn check_reserved(state: &State, event: &ProposedEvent<'_>, said: &BudgetReserved) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    let author = event.event.header.author;
    let expected = format!("the key of {}, {}", said.run, run.key);
    ensure!(author == run.key, expected, author.to_string());
    let expected = format!("the account of {}", said.run);
    ensure!(
        run.asked.account.as_ref() == Some(&said.account),
        expected,
        said.account.to_string()
    );
    ensure!(run.hold.is_none(), "no other open hold of the run", "one");
    let next = run.next_hold(&said.run);
    ensure!(
        said.hold.as_str() == next,
        format!("the hold {next}"),
        said.hold.as_str()
    );
    ensure!(said.asks.value() == 1, "one ask", said.asks.to_string());
    let due = awaited(state, run.purpose, &said.run);
    let (place, _) = due.required("something that was shown and is not answered yet")?;
    let is_answered = run.last_of(place).is_some_and(super::LastCall::is_final);
    let expected = format!(
        "an ask without an answer, as ask {place} of {} is not",
        said.run
    );
    ensure!(!is_answered, expected, "its answer");
    let within = (run.asked.cap_usd_micro, run.settled);
    money::check_room(state, said, within, event.recorded_at)
}

/// A hold is charged what its call cost, and as a whole where it has none: nobody knows what was sent.
fn check_settled(state: &State, said: &BudgetSettled) -> RuleAnswer {
    let run = open_run(state, &said.run, None)?;
    money::check_settled(said, run.hold.as_ref(), run.unpaid())?;
    let whole = run.hold.as_ref().filter(|hold| hold.asks_left > 0);
    let least = whole.map_or(0, |hold| hold.amount);
    let expected = format!("at least {least}, the whole of a hold that has no call");
    ensure!(
        said.amount.value() >= least,
        expected,
        said.amount.to_string()
    );
    Ok(())
}

/// A run that ends holds nothing.
fn check_over(state: &State, run: &RunId, purpose: CallPurpose) -> RuleAnswer {
    let of = state.fold::<AskedRuns>().of(run, purpose);
    let holds = of.is_some_and(|of| of.hold.is_some());
    ensure!(!holds, "a run whose hold was settled", "an open hold");
    Ok(())
}

/// A run that asks a model is opened: it has a name of its own, and its model may be asked and can be paid.
fn check_opened(
    state: &State,
    run: &RunId,
    (purpose, asked): (CallPurpose, Option<&AskedModel>),
    breaches: &mut Vec<Breach>,
) {
    let Some(asked) = asked else {
        return;
    };
    breaches.take(RuleName::Run, check_named(state, run, asked));
    breaches.take(RuleName::Endpoint, check_place(state, purpose, asked));
    breaches.take(RuleName::Price, check_priced(state, asked));
}

impl Rule for AskedRules {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let is_mine = |run| state.fold::<AskedRuns>().by_id.contains_key(run);
        match &event.event.payload {
            Payload::SynthOpened(said) => {
                let asked = (CallPurpose::Propose, said.asked.as_ref());
                check_opened(state, &said.run, asked, breaches);
            }
            Payload::SgdOpened(said) => {
                let asked = (CallPurpose::Descend, said.asked.as_ref());
                check_opened(state, &said.run, asked, breaches);
            }
            Payload::SynthStopped(said) => {
                let over = check_over(state, &said.run, CallPurpose::Propose);
                breaches.take(RuleName::Hold, over);
            }
            Payload::SgdStopped(said) => {
                let over = check_over(state, &said.run, CallPurpose::Descend);
                breaches.take(RuleName::Hold, over);
            }
            Payload::ModelCallRecorded(said) => {
                let run = check_call(state, event, said);
                let is_of_run = run.is_ok();
                breaches.take(RuleName::Run, run);
                if is_of_run {
                    breaches.take(RuleName::Ask, check_ask(state, said));
                    breaches.take(RuleName::Price, check_cost(state, said));
                    breaches.take(RuleName::Hold, check_held(state, said));
                }
            }
            Payload::BudgetReserved(said) if is_mine(&said.run) => {
                breaches.take(RuleName::Hold, check_reserved(state, event, said));
            }
            Payload::BudgetSettled(said) if is_mine(&said.run) => {
                breaches.take(RuleName::Hold, check_settled(state, said));
            }
            _ => {}
        }
    }
}
