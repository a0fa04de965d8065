//! Runs of models among what was begun: judges behind HTTP with what they were charged, and optimizers.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::session::chronicle::Chronicle;
use crate::view::judge_ask::dollars;
use crate::view::report::experiment::Tally;
use crate::view::report::made::counted;
use crate::view::text::thousands;
use crate::view::word;

/// How many ended in each way, in the order of their words.
fn ends<'c>(of: impl Iterator<Item = &'c String>) -> String {
    let mut ways: BTreeMap<&str, u64> = BTreeMap::new();
    for way in of {
        *ways.entry(way).or_default() += 1;
    }
    let ways = ways
        .into_iter()
        .map(|(way, count)| format!("{count} {way}"));
    ways.collect::<Vec<_>>().join(", ")
}

/// Runs of judges behind HTTP, with what their calls came to and what they were charged.
pub(super) fn judges(chronicle: &Chronicle) -> Tally {
    let (mut begun, mut ways) = (Vec::new(), Vec::new());
    let (mut calls, mut answered, mut settled) = (0, 0, 0);
    for entry in &chronicle.entries {
        match &entry.event.payload {
            Payload::JudgeRunOpened(_) => begun.push(entry.seq),
            Payload::JudgeRunClosed(said) => {
                ways.push(word(&said.end));
                settled += said.settled_usd_micro.value();
                for of in &said.by_outcome {
                    calls += of.calls.value();
                    if word(&of.outcome) == "answered" {
                        answered += of.calls.value();
                    }
                }
            }
            _ => (),
        }
    }
    let mut says = format!(
        "{} in ended runs, {} answered, {} charged",
        counted(calls, "call", "calls"),
        thousands(answered),
        dollars(settled)
    );
    if !ways.is_empty() {
        says = format!("{}: {says}", ends(ways.iter()));
    }
    Tally {
        what: "runs of judges",
        begun,
        ended: ways.len() as u64,
        says,
    }
}

/// Runs of optimizers that see only cards.
pub(super) fn optimizers(chronicle: &Chronicle) -> Tally {
    let mut begun = Vec::new();
    let (mut ended, mut rounds, mut dev_calls, mut proposed) = (0, 0, 0, 0);
    let (mut calls, mut cost) = (0, 0_u64);
    for entry in &chronicle.entries {
        match &entry.event.payload {
            Payload::SynthOpened(_) => begun.push(entry.seq),
            Payload::SynthStopped(said) => {
                ended += 1;
                rounds += said.rounds.value();
                dev_calls += said.dev_calls.value();
                proposed += said.proposed.len() as u64;
            }
            Payload::ModelCallRecorded(said) => {
                calls += 1;
                cost = cost.saturating_add(said.cost_usd_micro.value());
            }
            _ => (),
        }
    }
    let mut says = format!(
        "{}, {}, {} proposed",
        counted(rounds, "round", "rounds"),
        counted(dev_calls, "dev call", "dev calls"),
        counted(proposed, "patch", "patches")
    );
    if calls > 0 {
        let calls = counted(calls, "call of a model", "calls of models");
        says = format!("{says}, {calls} for {}", dollars(cost));
    }
    Tally {
        what: "runs of optimizers",
        begun,
        ended,
        says,
    }
}
