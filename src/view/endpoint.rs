//! What an endpoint of models can do, and what a double of one was asked.

use serde::Serialize;

use crate::event::calls::CallOutcome;
use crate::event::payload::endpoint::Ability;
use crate::event::payload::endpoint::BaseUrl;
use crate::event::payload::endpoint::Dialect;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::ask::SECOND;
use crate::workflow::ask::dispatch::StopReason;
use crate::workflow::ask::probe::EndpointAbilities;
use crate::workflow::ask::probe::ProbeFindings;

/// One thing that a plan can ask of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AbilityRow {
    /// What: `json_schema`, `logprobs`, `seed` and so on.
    pub name: &'static str,
    /// Whether it is followed.
    pub found: Ability,
    /// What was tried.
    pub tried: &'static str,
}

/// One ask of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbedCall {
    /// Digest of the ask: SHA-256 of its canonical bytes.
    pub ask: String,
    /// How often it was sent.
    pub attempts: u64,
    /// What is wrong with the answer, without secrets; `null` where nothing is.
    pub detail: Option<String>,
    /// What it came to.
    pub outcome: CallOutcome,
}

/// What an endpoint was found to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndpointProbe {
    /// Where it was asked.
    pub url: String,
    /// The form of requests and answers.
    pub dialect: Dialect,
    /// The model that was asked for.
    pub model: String,
    /// Models that answered, in order, each once.
    pub models_returned: Vec<String>,
    /// Fingerprints of the system behind it.
    pub fingerprints: Vec<String>,
    /// What it can do.
    pub abilities: Vec<AbilityRow>,
    /// Every ask that ended.
    pub calls: Vec<ProbedCall>,
    /// Asks that were never sent.
    pub left: u64,
    /// Why it stopped before its end; `null` where it did not.
    pub stopped: Option<String>,
}

/// Why nothing more was sent.
pub fn stopped(reason: StopReason) -> String {
    match reason {
        StopReason::Denied => "the endpoint refuses the key".to_owned(),
        StopReason::Foreign => {
            "the endpoint answers with something that its dialect has no form for".to_owned()
        }
        StopReason::Interrupted => "somebody stopped it".to_owned(),
        StopReason::Capped => "the account or the cap has no room for the next ask".to_owned(),
        StopReason::Mismatched => "another model answers than is pinned".to_owned(),
        StopReason::Patience { wait } => {
            let seconds = wait / SECOND;
            format!("the endpoint asks to wait {seconds} seconds, longer than patience lasts")
        }
        StopReason::Outage { lasted } => {
            let seconds = lasted / SECOND;
            format!("the endpoint failed for {seconds} seconds, longer than patience lasts")
        }
        StopReason::Quota => "the quota of the key is used up".to_owned(),
        StopReason::Redirected => {
            "the endpoint answers from another address, and no redirect is followed".to_owned()
        }
        StopReason::Rejected => "the endpoint rejects every ask and answered none".to_owned(),
        StopReason::Unreachable => {
            "nobody answers at the endpoint's address: is the server started, and the URL right"
                .to_owned()
        }
    }
}

fn exit(findings: &ProbeFindings) -> Exit {
    let answered =
        !findings.models.is_empty() || findings.calls.iter().any(|(_, of)| of.reading.is_some());
    match findings.stopped {
        Some(StopReason::Interrupted) => Exit::Interrupted,
        Some(StopReason::Patience { .. } | StopReason::Outage { .. } | StopReason::Unreachable) => {
            Exit::TryLater
        }
        Some(_) => Exit::Refused,
        None if answered => Exit::Done,
        None => Exit::TryLater,
    }
}

/// What each thing that a plan can ask for was found to be.
fn abilities(of: EndpointAbilities) -> Vec<AbilityRow> {
    let rows = [
        (
            "json_schema",
            of.json_schema,
            "a choice, against what the text asks for",
        ),
        (
            "logprobs",
            of.logprobs,
            "masses of each token, finite and at most 1",
        ),
        ("seed", of.seed, "three draws with a seed and three without"),
        ("temperature", of.temperature, "a temperature of 0"),
        (
            "output_limit",
            of.output_limit,
            "an answer of at most 3 tokens",
        ),
        ("usage", of.usage, "tokens of every answer, whose sums fit"),
        (
            "cache_usage",
            of.cache_usage,
            "tokens from a cache, of every answer",
        ),
    ];
    let rows = rows.map(|(name, found, tried)| AbilityRow { name, found, tried });
    rows.into()
}

/// What a probe found.
pub fn probed((url, dialect, model): (&BaseUrl, Dialect, &str), findings: &ProbeFindings) -> View {
    let calls = findings.calls.iter().map(|(ask, of)| ProbedCall {
        ask: ask.plain_key().to_hex(),
        attempts: of.attempts.len() as u64,
        detail: of.detail.clone(),
        outcome: of.outcome,
    });
    let facts = EndpointProbe {
        url: url.to_string(),
        dialect,
        model: model.to_owned(),
        models_returned: findings.models.clone(),
        fingerprints: findings.fingerprints.clone(),
        abilities: abilities(findings.abilities),
        calls: calls.collect(),
        left: findings.left,
        stopped: findings.stopped.map(stopped),
    };
    let mut view = View::of(&facts);
    view.exit = exit(findings);
    let none = |texts: &[String]| match texts {
        [] => "none said so".to_owned(),
        texts => texts.join(", "),
    };
    view.pairs([
        ("endpoint", format!("{} at {}", facts.dialect, facts.url)),
        ("asked for", facts.model.clone()),
        ("answered", none(&facts.models_returned)),
        ("fingerprint", none(&facts.fingerprints)),
    ]);
    view.gap();
    let rows = facts.abilities.iter();
    let rows = rows.map(|of| {
        vec![
            of.name.to_owned(),
            of.found.to_string(),
            of.tried.to_owned(),
        ]
    });
    view.table(&["ability", "found", "tried"], rows);
    let failed = facts
        .calls
        .iter()
        .filter(|of| of.outcome != CallOutcome::Answered);
    for call in failed {
        if let Some(detail) = &call.detail {
            view.sentence(format!("One ask came to {}: {detail}.", call.outcome));
        }
    }
    if let Some(why) = &facts.stopped {
        view.sentence(format!(
            "Stopped, with {} asks not sent: {why}.",
            facts.left
        ));
    }
    view
}

/// What a double was asked until it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoubleEnded {
    /// Where it listened.
    pub url: String,
    /// Requests that reached it.
    pub calls: u64,
    /// Tokens of input that it billed.
    pub input: u64,
    /// Tokens of output that it billed.
    pub output: u64,
    /// Where what it billed was written, a line a request; `null` where nobody asked for it.
    pub billed: Option<String>,
}

/// A double ended.
pub fn double_ended(
    url: String,
    (calls, input, output): (u64, u64, u64),
    file: Option<String>,
) -> View {
    let facts = DoubleEnded {
        url,
        calls,
        input,
        output,
        billed: file,
    };
    let mut view = View::of(&facts);
    view.sentence(format!(
        "{} requests reached {}; it billed {} tokens of input and {} of output.",
        facts.calls, facts.url, facts.input, facts.output
    ));
    if let Some(path) = &facts.billed {
        view.pairs([("billed", path.clone())]);
    }
    view
}
