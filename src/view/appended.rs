//! What every verb that appends says: where its events stand, or the bodies that they would have.

use serde::Deserialize;
use serde::Serialize;

use crate::event::Kind;
use crate::ledger::AppendedEvent;
use crate::ledger::Ledger;
use crate::session::append::Rehearsal;
use crate::session::intake::bulk::Tally;
use crate::view::View;
use crate::view::text::thousands;

/// Events that were appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stands {
    /// Events that are new.
    pub appended: u64,
    /// Events that stood in the ledger already, with the same data.
    pub already: u64,
    /// The position of each, in the order given.
    pub seqs: Vec<u64>,
}

impl Stands {
    /// Of events that were appended.
    pub fn of(appended: &[AppendedEvent]) -> Self {
        let already = appended.iter().filter(|of| of.already).count() as u64;
        Self {
            appended: appended.len() as u64 - already,
            already,
            seqs: appended.iter().map(|of| of.seq).collect(),
        }
    }
}

/// Where events stand, and what the verb says beside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StandsAnd<T> {
    /// Where they stand.
    #[serde(flatten)]
    pub stands: Stands,
    /// What else there is to say.
    #[serde(flatten)]
    pub more: T,
}

/// A dry run: what would be signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bodies {
    /// The canonical unsigned body of each event, as text.
    pub bodies: Vec<String>,
}

/// What would be signed, and what the verb says beside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BodiesAnd<T> {
    /// What would be signed.
    #[serde(flatten)]
    pub rehearsed: Bodies,
    /// What else there is to say.
    #[serde(flatten)]
    pub more: T,
}

/// Where a signed event is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptIn {
    /// The file.
    pub file: String,
}

/// Events of a file that were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileAppended {
    /// Events that are new.
    pub appended: u64,
    /// Events that stood in the ledger already, with the same data.
    pub already: u64,
    /// The first position of a new one; `null` where none is new.
    pub first_seq: Option<u64>,
    /// The last position of a new one; `null` where none is new.
    pub last_seq: Option<u64>,
}

/// How many events a dry run read; it shows the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventsRead {
    /// Events of the file.
    pub read: u64,
}

/// The view after an append: one line an event.
pub fn stands(ledger: &Ledger, kinds: &[Kind], appended: &[AppendedEvent]) -> View {
    let mut view = View::of(&Stands::of(appended)).with_events(appended);
    for (of, kind) in appended.iter().zip(kinds) {
        let already = if of.already { "  already recorded" } else { "" };
        view.line(format!("seq {}  {kind}  {}{already}", of.seq, of.id));
    }
    view.verdict = if appended.iter().all(|of| of.already) {
        "already_recorded"
    } else {
        "appended"
    };
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}

/// The view after an append of a file.
pub fn file(ledger: &Ledger, tally: &Tally) -> View {
    let facts = FileAppended {
        appended: tally.appended,
        already: tally.already,
        first_seq: tally.first,
        last_seq: tally.last,
    };
    let seqs = match (facts.first_seq, facts.last_seq) {
        (Some(first), Some(last)) => format!("seq {first}..{last}"),
        _ => "no new seq".to_owned(),
    };
    let (appended, already) = (thousands(facts.appended), thousands(facts.already));
    let root = ledger.root().to_base64();
    let mut view = View::of(&facts);
    view.line(format!(
        "appended {appended} · already {already} · {seqs} · root {root}"
    ));
    view.verdict = match facts.appended {
        0 => "already_recorded",
        _ => "appended",
    };
    view.checkpoint = Some((ledger.size(), root));
    view
}

/// The view after an append, with what else there is to say: its facts are those of [`StandsAnd`], or of [`BodiesAnd`]
/// where nothing was appended.
///
/// # Panics
/// Where the view is none of [`stands`] and [`bodies`], which the first test of the verb finds.
pub fn and<T: Serialize>(view: View, more: &T) -> View {
    // The names without the borrow.
    if view.shape() == std::any::type_name::<Bodies>() {
        let found = Bodies::deserialize(view.facts());
        let rehearsed = found.expect("BUG: this is a view of a dry run");
        let mut view = view.with_facts(&BodiesAnd { rehearsed, more });
        view.shape = std::any::type_name::<BodiesAnd<T>>();
        return view;
    }
    let stands = Stands::deserialize(view.facts()).expect("BUG: this is a view of an append");
    let mut view = view.with_facts(&StandsAnd { stands, more });
    view.shape = std::any::type_name::<StandsAnd<T>>();
    view
}

/// The view of a dry run: the canonical unsigned bodies.
pub fn bodies(rehearsed: &[Rehearsal]) -> View {
    let bodies = rehearsed.iter();
    let bodies = bodies.map(|of| String::from_utf8_lossy(&of.body).into_owned());
    let mut view = checked(bodies.collect());
    view.events = rehearsed.iter().map(|of| of.id.to_string()).collect();
    view
}

/// The view of a dry run over bodies that are text already.
pub fn checked(bodies: Vec<String>) -> View {
    let facts = Bodies { bodies };
    let mut view = View::of(&facts).with_verdict("dry_run");
    for body in facts.bodies {
        view.line(body);
    }
    view
}
