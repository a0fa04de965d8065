//! Every gate and how it stands.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::decision::LogWealth;
use crate::event::payload::gate::GateSource;
use crate::event::payload::manifest::Test;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::drifts;
use crate::projection::gates;
use crate::projection::gates::Gates;
use crate::view::View;
use crate::view::gate::GateDecision;
use crate::view::gate::GateEstimate;
use crate::view::gate::GateLook;
use crate::view::gate::outcome_of;
use crate::view::word;

/// One gate in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateListing {
    /// Logarithm of the wealth that it started with; `null` where it starts anew.
    pub carried: Option<LogWealth>,
    /// The gate that goes on from it; `null` where none does.
    pub child: Option<ManifestId>,
    /// How it ended; `null` while it is open.
    pub decided: Option<GateDecision>,
    /// The last estimate beside it, which decides nothing; `null` without one.
    pub estimated: Option<GateEstimate>,
    /// Its experiment; `null` where its events name none.
    pub experiment: Option<ExperimentId>,
    /// The entry of its first look; `null` before.
    pub first_look_seq: Option<u64>,
    /// The last look; `null` before the first.
    pub look: Option<GateLook>,
    /// Looks so far.
    pub looks: u64,
    /// Units observed.
    pub n: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// What it means for a release: `ship`, `hold` or `need_more_work`.
    pub outcome: &'static str,
    /// The gate that it goes on from; `null` where it starts anew.
    pub parent: Option<ManifestId>,
    /// Where its values come from: the metric first, then its guardrails.
    pub sources: Vec<GateSource>,
    /// Whether its judge failed a drift check that no deviation answers.
    pub stale: bool,
    /// Digest of its observations, chained.
    pub state_digest: Digest,
    /// The test as it was when it was opened.
    pub test: Test,
}

/// Every gate, by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateList {
    /// The gates.
    pub gates: BTreeMap<ManifestId, GateListing>,
}

fn listed(state: &State, id: &ManifestId, of: &gates::Gate) -> GateListing {
    GateListing {
        carried: of.carried,
        child: of.child.clone(),
        decided: of.decided.map(GateDecision::from),
        estimated: of.estimated.map(GateEstimate::from),
        experiment: of.experiment.clone(),
        first_look_seq: of.first_look_seq,
        look: of.look.as_ref().map(GateLook::from),
        looks: of.looks,
        n: of.n,
        opened_seq: of.opened_seq,
        outcome: outcome_of(of).0,
        parent: of.parent.clone(),
        sources: of.sources.clone(),
        stale: of.decided.is_none() && drifts::stale_gate(state, id).is_some(),
        state_digest: of.state_digest,
        test: of.test.clone(),
    }
}

/// Every gate.
pub fn list(state: &State) -> View {
    let gates = state.fold::<Gates>().by_id.iter();
    let gates = gates.map(|(id, of)| (id.clone(), listed(state, id, of)));
    let facts = GateList {
        gates: gates.collect(),
    };
    let mut view = View::of(&facts);
    if facts.gates.is_empty() {
        view.line("no gates");
        return view.with_next("clover prereg new --template gate");
    }
    let rows = facts.gates.iter().map(|(id, of)| {
        let look = of.look.as_ref();
        let decided = of.decided.map(|one| word(&one.outcome).replace('_', " "));
        let standing = if of.stale { "stale" } else { "open" };
        vec![
            id.to_string(),
            of.n.to_string(),
            of.looks.to_string(),
            look.map_or("-".to_owned(), |look| format!("{:.3}", look.log_e.value())),
            decided.unwrap_or_else(|| standing.to_owned()),
            of.outcome.to_owned(),
        ]
    });
    let head = ["gate", "units", "looks", "log e", "decided", "outcome"];
    view.table(&head, rows);
    // The newest that is still to be decided; where all are, the newest.
    let newest = facts.gates.iter();
    let newest = newest.max_by_key(|(_, of)| (of.decided.is_none(), of.opened_seq));
    match newest {
        Some((id, _)) => view.with_next(format!("clover gate show {}", shell::word(id))),
        None => view,
    }
}
