//! Units of a confirm set that are readable to those who score them.

use serde::Serialize;

use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::ground::shell;
use crate::session::gate::exposure::ExposureTerms;
use crate::view::View;
use crate::view::appended;
use crate::view::gate::observe_all;

/// Units that an answer names; `exposure list` names all of them, one a line.
const SHOWN: usize = 100;

/// The exposed units of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExposedUnits {
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// The units, in the order drawn.
    pub units: Vec<ItemId>,
}

/// The exposed units of a gate, one a line.
pub fn list(gate: &ManifestId, units: Vec<ItemId>) -> View {
    let facts = ExposedUnits {
        gate: gate.clone(),
        units,
    };
    let mut view = View::of(&facts);
    for unit in &facts.units {
        view.line(unit.as_str());
    }
    view
}

/// What is asked before an exposure that leaves units closed.
pub fn question(gate: &ManifestId, of: &ExposureTerms) -> String {
    let all = of.through.saturating_add(of.closed);
    let rest = if of.is_last {
        format!(
            "it is the last one, and the other {} units stay closed for good",
            of.closed
        )
    } else {
        let left = of.cap.saturating_sub(of.exposure);
        let verb = if left == 1 { "is" } else { "are" };
        format!("{left} more {verb} left for the other {} units", of.closed)
    };
    format!(
        "expose {} of the {all} units of {gate} by exposure {} of {}: {rest}",
        of.through, of.exposure, of.cap
    )
}

/// Adds to the view of an exposure that it is the last one, where it is.
pub fn opened(
    view: View,
    (gate, units): (&ManifestId, Vec<ItemId>),
    terms: &ExposureTerms,
) -> View {
    let is_dry = view.verdict == "dry_run";
    let mut view = if is_dry {
        view
    } else {
        let line = listed(&units, gate);
        let gate = gate.clone();
        let mut view = appended::and(view, &ExposedUnits { gate, units });
        view.sentence(line);
        view
    };
    let ExposureTerms {
        cap,
        closed,
        is_last,
        ..
    } = terms;
    if *is_last {
        let word = if is_dry { "would be" } else { "was" };
        view.line(format!(
            "this {word} exposure {cap} of {cap} (data.exposure_cap): the other {closed} units stay closed for good"
        ));
    }
    view.with_next(observe_all(gate))
}

/// The line of units that are open, as many as one reads.
fn listed(units: &[ItemId], gate: &ManifestId) -> String {
    let shown: Vec<_> = units.iter().take(SHOWN).map(ItemId::as_str).collect();
    let more = if units.len() > SHOWN {
        format!(
            " and {} more: clover exposure list {}",
            units.len() - SHOWN,
            shell::word(gate)
        )
    } else {
        String::new()
    };
    format!("units open, in their order: {}{more}", shown.join(", "))
}
