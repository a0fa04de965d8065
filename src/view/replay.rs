//! How decisions that were computed again are shown: what is the same, what differs, and what nobody can compute.

use serde::Serialize;
use serde_json::Value;

use crate::event::Kind;
use crate::event::id::RunId;
use crate::session::judge::run_replay::RunAgain;
use crate::view::Exit;
use crate::view::View;
use crate::view::explained;
use crate::view::explained::Explanation;
use crate::workflow::recompute::Elsewhere;
use crate::workflow::recompute::Recomputation;

/// Differences that are shown without `--explain`.
const SHOWN: usize = 3;

/// One event, computed again.
#[derive(Clone, Debug)]
pub struct ReplayedEvent {
    /// Its entry.
    pub seq: u64,
    /// Its kind.
    pub kind: Kind,
    /// How that ended.
    pub outcome: Recomputation,
    /// What it is on one page, where that was asked for.
    pub page: Option<Explanation>,
}

impl ReplayedEvent {
    fn word(&self) -> &'static str {
        match self.outcome {
            Recomputation::Identical => "identical",
            Recomputation::Within => "within 1e-9",
            Recomputation::Differs(_) => "DIFFERS",
            Recomputation::Gone(_) => "cannot be computed again",
            Recomputation::Told(_) => "a person's word",
        }
    }
}

/// Decisions that were computed again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayFacts {
    /// Those that are the same.
    pub same: u64,
    /// Those that differ.
    pub differ: u64,
    /// Those that cannot be computed again.
    pub gone: u64,
    /// Those that say what a person decided: there is nothing to compute.
    pub told: u64,
    /// Kinds that a rule of `clover verify` computes instead.
    pub elsewhere: Vec<ElsewhereFacts>,
    /// Every decision, in the order of the log.
    pub events: Vec<ReplayedFacts>,
}

/// A kind of event that is computed elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ElsewhereFacts {
    /// The kind.
    pub kind: &'static str,
    /// Its events.
    pub events: u64,
    /// The rule that computes it at every `clover verify`.
    pub rule: &'static str,
    /// What there is to know, in a few words.
    pub why: &'static str,
}

/// A decision that was computed again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedFacts {
    /// Its entry.
    pub seq: u64,
    /// Its kind.
    pub kind: &'static str,
    /// How that ended, in words: "identical", "within 1e-9", "DIFFERS", "cannot be computed again", "a person's word".
    pub outcome: &'static str,
    /// Members that differ.
    pub differences: Vec<DifferenceFacts>,
    /// Why nothing was computed; `null` where something was.
    pub why: Option<String>,
}

/// A member that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferenceFacts {
    /// Its path, such as `interval.low`; `event` where it should not be there at all.
    pub path: String,
    /// As recorded; `null` where it is absent.
    pub recorded: Value,
    /// As computed again.
    pub recomputed: Value,
}

impl From<&ReplayedEvent> for ReplayedFacts {
    fn from(of: &ReplayedEvent) -> Self {
        let differences = match &of.outcome {
            Recomputation::Differs(differences) => differences.as_slice(),
            _ => &[],
        };
        let differences = differences.iter().map(|of| DifferenceFacts {
            path: of.path.clone(),
            recorded: of.recorded.clone(),
            recomputed: of.recomputed.clone(),
        });
        Self {
            seq: of.seq,
            kind: of.kind.as_str(),
            outcome: of.word(),
            differences: differences.collect(),
            why: match &of.outcome {
                Recomputation::Gone(why) | Recomputation::Told(why) => Some(why.clone()),
                _ => None,
            },
        }
    }
}

fn facts(replayed: &[ReplayedEvent], others: &[(Elsewhere, u64)]) -> ReplayFacts {
    let count = |is: fn(&Recomputation) -> bool| {
        let found = replayed.iter().filter(|of| is(&of.outcome));
        found.count() as u64
    };
    let differ = count(|of| matches!(of, Recomputation::Differs(_)));
    let gone = count(|of| matches!(of, Recomputation::Gone(_)));
    let told = count(|of| matches!(of, Recomputation::Told(_)));
    let elsewhere = others.iter().map(|(of, events)| ElsewhereFacts {
        kind: of.kind.as_str(),
        events: *events,
        rule: of.rule.as_str(),
        why: of.why,
    });
    ReplayFacts {
        same: replayed.len() as u64 - differ - gone - told,
        differ,
        gone,
        told,
        elsewhere: elsewhere.collect(),
        events: replayed.iter().map(ReplayedFacts::from).collect(),
    }
}

/// A run of a judge behind HTTP that was computed again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunReplayFacts {
    /// The run.
    pub run: String,
    /// Events that are the same.
    pub same: u64,
    /// Events that differ.
    pub differ: u64,
    /// Events that cannot be computed again.
    pub gone: u64,
    /// Whether keyed digests of texts and asks were computed again: that takes the vault of the ledger.
    pub texts_checked: bool,
    /// Whether the order of asks is known, and with it the root of their keys and what each hold covers.
    pub order_known: bool,
    /// Lines of the cassette that are of no call of the run.
    pub strays: Vec<u64>,
    /// Every event of the run, in the order of the log.
    pub events: Vec<RunEventFacts>,
}

/// An event of a run that was computed again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEventFacts {
    /// The event.
    #[serde(flatten)]
    pub event: ReplayedFacts,
    /// The call that it stands on, where that call differs; `null` where none does.
    pub follows: Option<u64>,
}

/// A run of a judge behind HTTP, event by event.
pub fn run_view(run: &RunId, again: &RunAgain) -> View {
    let events = again.events.iter().map(|of| {
        let one = ReplayedEvent {
            seq: of.seq,
            kind: of.kind,
            outcome: of.outcome.clone(),
            page: None,
        };
        (one, of.follows)
    });
    let events: Vec<_> = events.collect();
    let count = |is: fn(&Recomputation) -> bool| {
        let found = events.iter().filter(|(of, _)| is(&of.outcome));
        found.count() as u64
    };
    let differ = count(|of| matches!(of, Recomputation::Differs(_)));
    let gone = count(|of| matches!(of, Recomputation::Gone(_)));
    let facts = RunReplayFacts {
        run: run.to_string(),
        same: events.len() as u64 - differ - gone,
        differ,
        gone,
        texts_checked: again.texts_checked,
        order_known: again.order_known,
        strays: again.strays.clone(),
        events: events
            .iter()
            .map(|(of, follows)| RunEventFacts {
                event: of.into(),
                follows: *follows,
            })
            .collect(),
    };
    let mut view = View::of(&facts);
    for (of, follows) in &events {
        remarks(&mut view, of, false);
        if let Some(call) = follows {
            view.sentence(format!(
                "seq {}  {} follows from the call at seq {call}",
                of.seq, of.kind
            ));
        }
    }
    for line in &facts.strays {
        view.sentence(format!("line {line}  it is of no call of {run}"));
    }
    view.line(format!(
        "{} events of {run}: {} the same · {differ} differ · {gone} cannot be computed again",
        facts.events.len(),
        facts.same
    ));
    if !facts.texts_checked {
        view.sentence("texts NOT CHECKED: the vault of this ledger is not here, so keyed digests of asks and texts were taken as recorded");
    }
    if !facts.order_known {
        view.sentence("holds NOT CHECKED: the order of asks is not known, so what each hold covers was taken as recorded");
    }
    (view.verdict, view.exit) = match (differ + facts.strays.len() as u64, gone) {
        (0, 0) => ("reproduced", Exit::Done),
        (0, _) => ("incomplete", Exit::Inconclusive),
        _ => ("differs", Exit::Integrity),
    };
    view
}

/// What was computed again, and with `explain` every number that differs.
pub fn view(replayed: &[ReplayedEvent], others: &[(Elsewhere, u64)], explain: bool) -> View {
    let facts = facts(replayed, others);
    let mut view = View::of(&facts);
    let rows = facts.events.iter().map(|of| {
        vec![
            of.seq.to_string(),
            of.kind.to_owned(),
            of.outcome.to_owned(),
        ]
    });
    view.table(&["seq", "kind", "again"], rows);
    for of in replayed {
        remarks(&mut view, of, explain);
    }
    let (same, differ, gone, told) = (facts.same, facts.differ, facts.gone, facts.told);
    let people = match told {
        0 => String::new(),
        told => format!(" · {told} said by people"),
    };
    view.gap();
    view.line(format!(
        "{same} the same · {differ} differ · {gone} cannot be computed again{people}"
    ));
    if gone > 0 && differ == 0 {
        view.sentence(
            "NOT CHECKED where it cannot be computed again: nothing differs, and not everything is shown to be the same",
        );
    }
    for of in &facts.elsewhere {
        let ElsewhereFacts {
            kind,
            events,
            rule,
            why,
        } = of;
        view.sentence(format!(
            "{events} {kind} not computed here: {why} (rule {rule}, at every clover verify)"
        ));
    }
    (view.verdict, view.exit) = match (differ, gone) {
        (0, 0) => ("reproduced", Exit::Done),
        (0, _) => ("incomplete", Exit::Inconclusive),
        _ => ("differs", Exit::Integrity),
    };
    view
}

fn remarks(view: &mut View, of: &ReplayedEvent, explain: bool) {
    match &of.outcome {
        Recomputation::Differs(differences) => {
            let shown = if explain { differences.len() } else { SHOWN };
            for one in differences.iter().take(shown) {
                view.sentence(format!(
                    "seq {}  {}: recorded {}, computed {}",
                    of.seq, one.path, one.recorded, one.recomputed
                ));
            }
            if differences.len() > shown {
                let more = differences.len() - shown;
                view.line(format!(
                    "seq {}  and {more} more: --explain shows them",
                    of.seq
                ));
            }
        }
        Recomputation::Gone(why) | Recomputation::Told(why) => {
            view.sentence(format!("seq {}  {why}", of.seq));
        }
        Recomputation::Identical | Recomputation::Within => {}
    }
    if let Some(page) = &of.page {
        view.gap();
        view.line(format!("seq {}  {}, computed again", of.seq, of.kind));
        explained::put(view, page);
    }
}
