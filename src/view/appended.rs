//! What every verb that appends says: where its events stand, or the bodies that they would have.

use serde::Deserialize;
use serde::Serialize;

use crate::event::Kind;
use crate::ledger::Appended;
use crate::ledger::Ledger;
use crate::session::append::Rehearsed;
use crate::view::View;

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
    pub fn of(appended: &[Appended]) -> Self {
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

/// The view after an append: one line an event.
pub fn stands(ledger: &Ledger, kinds: &[Kind], appended: &[Appended]) -> View {
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
pub fn bodies(rehearsed: &[Rehearsed]) -> View {
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
