//! What a run of a judge behind HTTP came to.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::payload::model_runs::RunEnd;
use crate::num::Micro;
use crate::session::judge::live::LiveCounts;
use crate::view::Exit;
use crate::view::View;
use crate::view::endpoint;
use crate::view::text::thousands;
use crate::workflow::ask::dispatch::StopReason;

/// What a run of a judge behind HTTP came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeAskCounts {
    /// The judge.
    pub judge: JudgeId,
    /// The run; `null` where nothing was left to ask.
    pub run: Option<String>,
    /// Rows that were scored and are on record now.
    pub scored: u64,
    /// Rows that were on record before.
    pub already: u64,
    /// Rows whose ask came to no answer.
    pub missed: u64,
    /// Rows that were missed before, and about which nobody asks again.
    pub missed_before: u64,
    /// Asks that came to nothing yet.
    pub left: u64,
    /// Calls of the run by what they came to.
    pub by_outcome: BTreeMap<String, u64>,
    /// What its calls cost, in millionths of a dollar.
    pub cost_usd_micro: u64,
    /// What it was charged, in millionths of a dollar.
    pub settled_usd_micro: u64,
    /// How it ended; `null` where the same command goes on with it.
    pub end: Option<RunEnd>,
    /// Why it stopped before its end; `null` where it did not.
    pub stopped: Option<String>,
}

fn exit(of: &LiveCounts) -> Exit {
    match (of.stopped, of.end) {
        (Some(StopReason::Interrupted), _) => Exit::Interrupted,
        (Some(StopReason::Patience { .. }), _) => Exit::TryLater,
        (Some(_), _) | (None, Some(RunEnd::Capped)) => Exit::Refused,
        (None, _) if of.missed + of.missed_before > 0 => Exit::Inconclusive,
        (None, _) => Exit::Done,
    }
}

fn dollars(micro: u64) -> String {
    let micro = i64::try_from(micro).ok().and_then(Micro::new);
    micro.map_or_else(|| "more".to_owned(), |of| format!("${of}"))
}

/// What a run came to.
pub fn asked(judge: JudgeId, counts: &LiveCounts) -> View {
    let facts = JudgeAskCounts {
        judge,
        run: counts.run.as_ref().map(ToString::to_string),
        scored: counts.scored,
        already: counts.already,
        missed: counts.missed,
        missed_before: counts.missed_before,
        left: counts.left,
        by_outcome: counts.by_outcome.clone(),
        cost_usd_micro: counts.cost,
        settled_usd_micro: counts.settled,
        end: counts.end,
        stopped: counts.stopped.map(endpoint::stopped),
    };
    let mut view = View::of(&facts);
    view.exit = exit(counts);
    view.pairs([
        ("judge", facts.judge.to_string()),
        (
            "run",
            facts
                .run
                .clone()
                .unwrap_or_else(|| "none: nothing was left to ask".to_owned()),
        ),
        ("scored", thousands(facts.scored)),
        ("already", thousands(facts.already)),
        ("missed", thousands(facts.missed)),
        ("missed before", thousands(facts.missed_before)),
        ("left", thousands(facts.left)),
        ("cost", dollars(facts.cost_usd_micro)),
        ("charged", dollars(facts.settled_usd_micro)),
    ]);
    let failed = facts
        .by_outcome
        .iter()
        .filter(|(word, _)| *word != "answered");
    let failed: Vec<_> = failed
        .map(|(word, calls)| format!("{calls} {word}"))
        .collect();
    if !failed.is_empty() {
        view.sentence(format!(
            "Asks that came to no answer: {}.",
            failed.join(", ")
        ));
    }
    if let Some(why) = &facts.stopped {
        view.sentence(format!("Stopped, with {} asks left: {why}.", facts.left));
    }
    if facts.end == Some(RunEnd::Capped) {
        view.sentence("The account or the cap has no room for the next ask.");
        view.next = vec!["clover budget list".to_owned()];
    } else if facts.end.is_none() && facts.run.is_some() {
        view.next = vec!["the same command goes on where it stopped".to_owned()];
    } else {
        view.next = vec!["clover log --kind call.recorded".to_owned()];
    }
    view
}
