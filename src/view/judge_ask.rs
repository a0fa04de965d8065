//! What a run of a judge behind HTTP came to.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::payload::model_runs::RunEnd;
use crate::num::Micro;
use crate::session::judge::live::LiveCounts;
use crate::session::judge::live_outlook::LiveOutlook;
use crate::session::judge::live_stop::RunStop;
use crate::view::Exit;
use crate::view::View;
use crate::view::endpoint;
use crate::view::text::thousands;
use crate::workflow::ask::dispatch::StopReason;
use crate::workflow::ask::judged::JudgePlan;

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
    /// What is wrong with answers of this command that have not the form, by its word.
    pub details: BTreeMap<String, u64>,
    /// What the endpoint said last of an ask that came to nothing.
    pub complaint: Option<String>,
    /// Rows that were asked about once a label of their policy could be read: their scores count in no value as things stand.
    pub late: u64,
}

pub(super) fn exit(of: &LiveCounts) -> Exit {
    match (of.stopped, of.end) {
        (Some(StopReason::Interrupted), _) => Exit::Interrupted,
        (Some(StopReason::Patience { .. }), _) => Exit::TryLater,
        (Some(_), _) | (None, Some(RunEnd::Capped)) => Exit::Refused,
        (None, _) if of.missed + of.missed_before > 0 => Exit::Inconclusive,
        (None, _) => Exit::Done,
    }
}

/// An amount in dollars.
pub fn dollars(micro: u64) -> String {
    let micro = i64::try_from(micro).ok().and_then(Micro::new);
    micro.map_or_else(|| "more".to_owned(), |of| format!("${of}"))
}

/// What rows that come late are worth; `None` where none do.
pub fn late_rows(late: u64) -> Option<String> {
    (late > 0).then(|| {
        let rows = if late == 1 { "row is" } else { "rows are" };
        format!(
            "{} {rows} of policies whose labels can be read already, so these scores count in no value, unless a label design \
             of later draws their prompts",
            thousands(late)
        )
    })
}

/// Why a run stopped: where another model answered, which one.
pub(super) fn why(reason: StopReason, counts: &LiveCounts) -> String {
    let pin = &counts.pin;
    match (reason, &counts.other_model) {
        (StopReason::Mismatched, Some(Some(named))) => {
            format!("{named} answers, and the plan pins {pin}")
        }
        (StopReason::Mismatched, Some(None)) => format!(
            "the endpoint does not name the model that answers, and the plan pins {pin}: nobody could tell who judged"
        ),
        _ => endpoint::stopped(reason),
    }
}

/// What came to no answer, why the run stopped, and what the endpoint said.
fn unanswered(view: &mut View, facts: &JudgeAskCounts) {
    let failed = facts
        .by_outcome
        .iter()
        .filter(|(word, _)| *word != "answered");
    let failed: Vec<_> = failed
        .map(|(word, calls)| match word.as_str() {
            "unparsed" if !facts.details.is_empty() => {
                let details = facts.details.iter();
                let details: Vec<_> = details
                    .map(|(word, calls)| format!("{calls} {word}"))
                    .collect();
                format!("{calls} {word} ({})", details.join(", "))
            }
            _ => format!("{calls} {word}"),
        })
        .collect();
    if !failed.is_empty() {
        view.sentence(format!(
            "Asks that came to no answer: {}.",
            failed.join(", ")
        ));
    }
    if let Some(why) = &facts.stopped {
        let again = ["exhausted", "mismatched", "rejected"];
        let again = again.iter().filter_map(|word| facts.by_outcome.get(*word));
        let again: u64 = again.sum();
        let tried = if again > 0 {
            format!(", and {again} that the same command asks again")
        } else {
            String::new()
        };
        view.sentence(format!(
            "Stopped, with {} asks left{tried}: {why}.",
            facts.left
        ));
    }
    if let Some(said) = &facts.complaint {
        view.sentence(format!("The endpoint said: {said}"));
    }
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
        stopped: counts.stopped.map(|reason| why(reason, counts)),
        details: counts.details.clone(),
        complaint: counts.complaint.clone(),
        late: counts.late,
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
    unanswered(&mut view, &facts);
    if let Some(late) = late_rows(facts.late) {
        view.sentence(format!("{late}."));
    }
    if counts.stopped == Some(StopReason::Mismatched) {
        view.sentence("The plan of a judge stands for good. To take the model that answers, name it as pin in the plan of another judge.");
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

/// What a run would ask and cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeAskOutlook {
    /// The judge.
    pub judge: JudgeId,
    /// The model that would be asked, and the endpoint.
    pub model: String,
    /// The endpoint.
    pub endpoint: String,
    /// Rows that have a score.
    pub already: u64,
    /// Rows that were missed before, and about which nobody asks again.
    pub missed_before: u64,
    /// Asks that would be sent.
    pub asks: u64,
    /// Tokens of input that they would probably have.
    pub tokens_input: u64,
    /// Tokens of output that they would probably have.
    pub tokens_output: u64,
    /// Calls of the judge on record whose tokens say so; 0 where bytes and the limit of answers do.
    pub calls: u64,
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
    /// Rows to be asked about whose policy has labels that can be read: their scores count in no value as things stand.
    pub late: u64,
    /// The run that would go on; `null` where a new one would be opened.
    pub open_run: Option<String>,
    /// What that run holds of the account, in millionths of a dollar.
    pub held_usd_micro: u64,
}

/// The lines of an outlook.
fn foreseen_pairs(facts: &JudgeAskOutlook, of: &LiveOutlook) -> Vec<(&'static str, String)> {
    let whence = if facts.calls > 0 {
        format!("as its {} calls on record had", thousands(facts.calls))
    } else {
        "a guess by the bytes of the requests".to_owned()
    };
    let mut pairs = vec![
        (
            "judge",
            format!("{} · {} at {}", facts.judge, facts.model, facts.endpoint),
        ),
        (
            "asks",
            format!(
                "{}; {} rows have a score, {} were missed before",
                thousands(facts.asks),
                thousands(facts.already),
                thousands(facts.missed_before)
            ),
        ),
        (
            "tokens",
            format!(
                "about {} of input, {} of output; {whence}",
                thousands(facts.tokens_input),
                thousands(facts.tokens_output)
            ),
        ),
    ];
    pairs.push((
        "cost",
        match of.cost {
            Some([cost, most]) => format!("about {}, at most {}", dollars(cost), dollars(most)),
            None => "nothing: the endpoint is free".to_owned(),
        },
    ));
    if let Some((account, left)) = &of.account {
        let cap = of
            .cap
            .map_or_else(String::new, |cap| format!(", cap {}", dollars(cap)));
        pairs.push((
            "account",
            format!("{account}: {} left{cap}", dollars(*left)),
        ));
    }
    if let Some(run) = &facts.open_run {
        let held = facts.held_usd_micro;
        let held = if held > 0 {
            let held = dollars(held);
            format!(
                "; it holds {held}, and asks of that hold are charged in full: nobody knows whether they were sent"
            )
        } else {
            String::new()
        };
        pairs.push(("goes on", format!("{run} is open{held}")));
    }
    pairs
}

/// What a run would ask and cost; nothing was sent.
pub fn foreseen(judge: JudgeId, plan: &JudgePlan, of: &LiveOutlook) -> View {
    let facts = JudgeAskOutlook {
        judge,
        model: plan.model.clone(),
        endpoint: plan.endpoint.to_string(),
        already: of.already,
        missed_before: of.missed_before,
        asks: of.asks,
        tokens_input: of.tokens[0],
        tokens_output: of.tokens[1],
        calls: of.calls,
        cost_usd_micro: of.cost.map(|[cost, _]| cost),
        most_usd_micro: of.cost.map(|[_, most]| most),
        account: of.account.as_ref().map(|(name, _)| name.clone()),
        left_usd_micro: of.account.as_ref().map(|(_, left)| *left),
        cap_usd_micro: of.cap,
        late: of.late,
        open_run: of.open.as_ref().map(|(run, _)| run.to_string()),
        held_usd_micro: of.open.as_ref().map_or(0, |(_, held)| *held),
    };
    let pairs = foreseen_pairs(&facts, of);
    let mut view = View::of(&facts).with_verdict("dry_run");
    view.pairs(pairs);
    if let Some(late) = late_rows(facts.late) {
        view.sentence(format!("{late}."));
    }
    view.sentence("Nothing was sent and nothing is on record.");
    let most = of.cost.map_or(0, |[_, most]| most);
    let room = of.account.as_ref().map_or(u64::MAX, |(_, left)| *left);
    if most > room.min(of.cap.unwrap_or(u64::MAX)) {
        view.sentence("The most that it may cost is more than there is room for: then the run stops with exit 11, and goes on once there is more.");
    }
    view.with_next("the same command without --dry-run")
}

/// The end of a run that nobody goes on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeRunStop {
    /// The run.
    pub run: String,
    /// Asks without a call.
    pub left: u64,
    /// Those of them that were held for: nobody knows whether they were sent.
    pub held_asks: u64,
    /// What the run was charged in all, in millionths of a dollar.
    pub settled_usd_micro: u64,
    /// The part of it that nobody knows to be spent, of its last hold, in millionths of a dollar.
    pub unknown_usd_micro: u64,
}

/// What the end of a run came to.
pub fn ended(of: &RunStop) -> View {
    let facts = JudgeRunStop {
        run: of.run.to_string(),
        left: of.left,
        held_asks: of.held_asks,
        settled_usd_micro: of.settled,
        unknown_usd_micro: of.unknown,
    };
    let mut view = View::of(&facts).with_verdict("stopped");
    view.pairs([
        ("run", facts.run),
        (
            "left",
            format!("{} asks without a call", thousands(facts.left)),
        ),
        (
            "charged",
            format!(
                "{}, of which {} for {} asks that may have been sent",
                dollars(facts.settled_usd_micro),
                dollars(facts.unknown_usd_micro),
                thousands(facts.held_asks)
            ),
        ),
    ]);
    view.with_next("clover budget list")
}
