//! Gates that are opened, and the units of a confirm set for a manifest.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::id::Root;
use crate::event::id::StratumId;
use crate::session::gate::open::GateOpening;
use crate::view::View;
use crate::view::appended;
use crate::view::gate::Order;
use crate::view::gate::command;
use crate::view::json;
use crate::workflow::gates::steps::Confirm;

/// A gate that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenGate {
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// Always true: the gate is open.
    pub open: bool,
    /// The order in which its units are observed.
    pub order: Option<Order>,
}

/// What a manifest binds of the units of its confirm set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnitsRoot {
    /// Merkle root of the units, with their strata where they have some.
    pub confirm_root: Root,
    /// How many units.
    pub n_units: u64,
    /// Units of each stratum; empty where they have none.
    pub strata: BTreeMap<StratumId, u64>,
}

/// Adds to the view of an opening of `units` units the order that was drawn.
pub fn opened(view: View, gate: &ManifestId, opening: &GateOpening, units: usize) -> View {
    let order = opening.order.as_ref().map(Order::from);
    let mut view = appended::and(
        view,
        &OpenGate {
            gate: gate.clone(),
            open: true,
            order,
        },
    );
    if let Some(order) = order {
        let (size, root) = (order.beacon.size, order.beacon.root.0.to_base64());
        view.line(format!(
            "order of {units} units from checkpoint {size}  {root}"
        ));
    }
    view.with_next(command("exposure open", gate))
}

/// Number and Merkle root of units, as the section of a manifest that binds them.
pub fn root(confirm: &Confirm) -> View {
    let strata = confirm.counts().into_iter();
    let facts = UnitsRoot {
        confirm_root: confirm.root(),
        n_units: confirm.units.len() as u64,
        strata: strata.map(|(of, units)| (of.clone(), units)).collect(),
    };
    let (root, units) = (facts.confirm_root.0.to_base64(), facts.n_units);
    let mut text = format!("data:\n  confirm_root: {root}\n  n_units: {units}\n");
    if !facts.strata.is_empty() {
        text.push_str(
            "test:\n  control_variate:   # FILL: the mean difference that you expect of each\n",
        );
        for (stratum, units) in &facts.strata {
            let name = json::escaped(&serde_json::json!(stratum).to_string());
            text.push_str(&format!(
                "    - {{stratum: {name}, units: {units}, predicted_micro: 0}}\n"
            ));
        }
    }
    let mut view = View::of(&facts);
    view.source(text);
    view.with_next("clover prereg new --template gate")
}
