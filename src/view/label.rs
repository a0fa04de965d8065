//! Label designs with their labels, and a label that was opened.

use serde::Serialize;

use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::ProtocolId;
use crate::event::payload::label::DesignPurpose;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::designs::Design;
use crate::projection::designs::Designs;
use crate::view::View;
use crate::view::appended;

/// A label that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelValue {
    /// The label, in millionths.
    pub value_micro: Micro,
}

/// Rows with a probability of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StratumRow {
    /// The stratum.
    pub stratum: String,
    /// Probability that a row of it is labelled, in millionths.
    pub inclusion_micro: i64,
}

/// What a design says since it was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DesignTerms {
    /// What its labels are for.
    pub purpose: DesignPurpose,
    /// Probability that a row outside of `strata` is labelled, in millionths.
    pub inclusion_micro: i64,
    /// By which protocol people label.
    pub protocol: ProtocolId,
    /// Strata with probabilities of their own.
    pub strata: Vec<StratumRow>,
    /// The entry that registered it.
    pub registered_seq: u64,
}

/// A label design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DesignRow {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its name.
    pub design: DesignId,
    /// What it says; `null` where labels name it and nobody registered it.
    pub terms: Option<DesignTerms>,
    /// Labels that were recorded open.
    pub open: u64,
    /// Labels that were sealed.
    pub sealed: u64,
    /// Sealed labels that the custodian accepted.
    pub accepted: u64,
    /// Sealed labels that were revealed.
    pub revealed: u64,
}

/// Label designs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DesignList {
    /// By experiment and name.
    pub designs: Vec<DesignRow>,
}

/// Adds to the view of a reveal what the label is.
pub fn revealed(view: View, value: Micro) -> View {
    let mut view = appended::and(view, &LabelValue { value_micro: value });
    view.line(format!("value {value}"));
    view
}

/// Every design with its experiment.
pub(super) fn all(state: &State) -> impl Iterator<Item = (&ExperimentId, &DesignId, &Design)> {
    let by_experiment = state.fold::<Designs>().by_experiment.iter();
    by_experiment.flat_map(|(experiment, of)| {
        let designs = of.designs.iter();
        designs.map(move |(name, design)| (experiment, name, design))
    })
}

fn row((experiment, name, of): (&ExperimentId, &DesignId, &Design)) -> DesignRow {
    let terms = of.registered.as_ref().map(|said| {
        let strata = said.strata.iter().map(|(stratum, inclusion)| StratumRow {
            stratum: stratum.clone(),
            inclusion_micro: *inclusion,
        });
        DesignTerms {
            purpose: said.purpose,
            inclusion_micro: said.inclusion_micro,
            protocol: said.protocol.clone(),
            strata: strata.collect(),
            registered_seq: said.seq,
        }
    });
    DesignRow {
        experiment: experiment.clone(),
        design: name.clone(),
        terms,
        open: of.open,
        sealed: of.sealed,
        accepted: of.accepted,
        revealed: of.revealed,
    }
}

/// Every design.
pub fn list(state: &State) -> View {
    let facts = DesignList {
        designs: all(state).map(row).collect(),
    };
    let rows = facts.designs.iter().map(|of| {
        let terms = of.terms.as_ref();
        let said = |word: fn(&DesignTerms) -> String| terms.map_or(String::new(), word);
        vec![
            of.experiment.to_string(),
            of.design.to_string(),
            terms.map_or("not registered".to_owned(), |of| of.purpose.to_string()),
            said(|of| Micro::new(of.inclusion_micro).map_or(String::new(), |p| p.to_string())),
            said(|of| of.protocol.to_string()),
            of.open.to_string(),
            of.sealed.to_string(),
            of.revealed.to_string(),
        ]
    });
    let head = [
        "experiment",
        "design",
        "purpose",
        "probability",
        "protocol",
        "open",
        "sealed",
        "revealed",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    view
}
