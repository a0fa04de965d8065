//! Calls of a model that writes candidates: what a run would send and cost, what its calls came to, and why it stopped.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::calls::CallOutcome;
use crate::event::id::RunId;
use crate::event::payload::synth_runs::LeakTest;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Count;
use crate::projection::asked::AskedRuns;
use crate::session::asking::AskStop;
use crate::session::iterate::synth::SynthTerms;
use crate::session::iterate::synth_outlook::SynthOutlook;
use crate::view::Exit;
use crate::view::View;
use crate::view::endpoint;
use crate::view::judge_ask::dollars;
use crate::view::text::thousands;
use crate::workflow::ask::dispatch::StopReason;

/// Calls of the model that writes candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SynthCalls {
    /// The endpoint.
    pub endpoint: String,
    /// The model that is asked for.
    pub model: String,
    /// The model that has to answer.
    pub pin: String,
    /// How many calls it had.
    pub calls: u64,
    /// What they came to.
    pub by_outcome: BTreeMap<String, u64>,
    /// What they cost, in millionths of a dollar.
    pub cost_usd_micro: u64,
    /// What the run was charged, in millionths of a dollar.
    pub settled_usd_micro: u64,
    /// What it holds of the account, in millionths of a dollar.
    pub held_usd_micro: u64,
    /// The account that pays; `null` at a free endpoint.
    pub account: Option<String>,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap_usd_micro: Option<u64>,
}

/// Calls of a run; `None` where it asks no model.
pub fn calls(state: &State, run: &RunId) -> Option<SynthCalls> {
    let of = state.fold::<AskedRuns>().by_id.get(run)?;
    Some(SynthCalls {
        endpoint: of.asked.endpoint.to_string(),
        model: of.asked.model.as_str().to_owned(),
        pin: of.asked.pin.as_str().to_owned(),
        calls: of.calls(),
        by_outcome: of.by_outcome.clone(),
        cost_usd_micro: of.cost,
        settled_usd_micro: of.settled,
        held_usd_micro: of.hold.as_ref().map_or(0, |hold| hold.amount),
        account: of.asked.account.as_ref().map(ToString::to_string),
        cap_usd_micro: of.asked.cap_usd_micro.map(Count::value),
    })
}

/// The lines of calls.
pub(super) fn pairs(of: &SynthCalls) -> Vec<(&'static str, String)> {
    let words: Vec<_> = of
        .by_outcome
        .iter()
        .map(|(word, calls)| format!("{calls} {word}"))
        .collect();
    let calls = if words.is_empty() {
        "none yet".to_owned()
    } else {
        words.join(", ")
    };
    let paid = match &of.account {
        None => "nothing: the endpoint is free".to_owned(),
        Some(account) => format!(
            "{}, charged {} to {account}",
            dollars(of.cost_usd_micro),
            dollars(of.settled_usd_micro)
        ),
    };
    vec![("calls", calls), ("cost", paid)]
}

/// The options that name the model of a run.
pub(super) fn options(of: &SynthCalls) -> String {
    let mut words = format!(
        "--endpoint {} --model {}",
        shell::word(&of.endpoint),
        shell::word(&of.model)
    );
    if of.pin != of.model {
        words.push_str(&format!(" --pin {}", shell::word(&of.pin)));
    }
    words
}

/// Why a round was not answered.
pub(super) fn stopped(view: &mut View, stop: &AskStop) {
    let (exit, why) = match (stop.reason, stop.outcome) {
        (Some(StopReason::Interrupted), _) => (Exit::Interrupted, "somebody stopped it".to_owned()),
        (Some(reason @ (StopReason::Patience { .. } | StopReason::Outage { .. })), _) => {
            (Exit::TryLater, endpoint::stopped(reason))
        }
        (Some(reason), _) => (Exit::Refused, endpoint::stopped(reason)),
        (None, Some(CallOutcome::Mismatched)) => {
            let why = "another model answers than the run pins, or none that names itself";
            (Exit::Refused, why.to_owned())
        }
        (None, Some(CallOutcome::Rejected)) => {
            (Exit::Refused, "the endpoint rejects the request".to_owned())
        }
        (None, _) => (
            Exit::TryLater,
            "its attempts were used up on limits and failures".to_owned(),
        ),
    };
    view.exit = exit;
    view.sentence(format!("The model gave no answer: {why}."));
    if let Some(said) = &stop.complaint {
        view.sentence(format!("The endpoint said: {said}"));
    }
    if stop.reason == Some(StopReason::Capped) {
        view.next.insert(0, "clover budget list".to_owned());
    }
}

/// What a run of an optimizer that is a model would send and cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SynthOutlookShown {
    /// What writes candidates.
    pub optimizer: String,
    /// Asks that it may have, one a round.
    pub asks: u64,
    /// Bytes of the first request.
    pub bytes: u64,
    /// SHA-256 of the view that would be sent.
    pub view_digest: Digest,
    /// Ids and texts of rows, none of which stands in it.
    pub leak_test: LeakTest,
    /// Tokens of input of all asks, guessed by bytes.
    pub tokens_input: u64,
    /// Tokens of output of all asks, guessed by the limit of answers.
    pub tokens_output: u64,
    /// What they would probably cost, in millionths of a dollar; `null` at a free endpoint.
    pub cost_usd_micro: Option<u64>,
    /// The most that they may cost, in millionths of a dollar; `null` at a free endpoint.
    pub most_usd_micro: Option<u64>,
    /// The account that pays.
    pub account: Option<String>,
    /// What is left there, in millionths of a dollar.
    pub left_usd_micro: Option<u64>,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap_usd_micro: Option<u64>,
    /// The run that would go on; `null` where a new one would be opened.
    pub open_run: Option<String>,
}

/// What a run would send and cost; nothing was sent.
pub fn foreseen(terms: &SynthTerms, of: &SynthOutlook) -> View {
    let facts = SynthOutlookShown {
        optimizer: terms.model.as_str().to_owned(),
        asks: of.asks,
        bytes: of.bytes,
        view_digest: of.view_digest,
        leak_test: of.leak_test,
        tokens_input: of.tokens[0],
        tokens_output: of.tokens[1],
        cost_usd_micro: of.cost.map(|[cost, _]| cost),
        most_usd_micro: of.cost.map(|[_, most]| most),
        account: of.account.as_ref().map(|(name, _)| name.clone()),
        left_usd_micro: of.account.as_ref().map(|(_, left)| *left),
        cap_usd_micro: of.cap,
        open_run: of.open.as_ref().map(ToString::to_string),
    };
    let mut view = View::of(&facts).with_verdict("dry_run");
    let cost = match of.cost {
        Some([cost, most]) => format!("about {}, at most {}", dollars(cost), dollars(most)),
        None => "nothing: the endpoint is free".to_owned(),
    };
    view.pairs([
        ("optimizer", facts.optimizer.clone()),
        ("asks", format!("at most {}, one a round", facts.asks)),
        ("request", format!("{} bytes", thousands(facts.bytes))),
        (
            "looked through",
            format!(
                "{} texts and {} ids of rows",
                of.leak_test.texts, of.leak_test.ids
            ),
        ),
        (
            "tokens",
            format!(
                "about {} of input, {} of output; a guess by bytes",
                thousands(facts.tokens_input),
                thousands(facts.tokens_output)
            ),
        ),
        ("cost", cost),
        ("view digest", facts.view_digest.to_hex()),
    ]);
    if let Some((account, left)) = &of.account {
        let cap = of
            .cap
            .map_or_else(String::new, |cap| format!(", cap {}", dollars(cap)));
        view.pairs([(
            "account",
            format!("{account}: {} left{cap}", dollars(*left)),
        )]);
    }
    if let Some(run) = &facts.open_run {
        view.pairs([("goes on", format!("{run} is open"))]);
    }
    view.sentence(
        "Nothing was sent and nothing is on record. Later views grow by what was returned.",
    );
    let iteration = shell::word(&of.view.iteration);
    view.next = vec![
        format!("clover synth view {iteration}"),
        "the same command without --dry-run".to_owned(),
    ];
    view
}
