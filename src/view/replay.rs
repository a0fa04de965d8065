//! How decisions that were computed again are shown: what is the same, what differs, and what nobody can compute.

use serde::Serialize;
use serde_json::Value;

use crate::event::Kind;
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
