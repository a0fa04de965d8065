//! What the steps of a gate found: observations, looks, decisions, promotions, and estimates beside them.

use serde::Serialize;

use crate::event::id::ItemId;
use crate::event::id::ManifestId;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::Outcome;
use crate::event::payload::decision::PromotionIssued;
use crate::event::payload::gate::DrawnFrom;
use crate::ground::digest::Digest;
use crate::ledger::Ledger;
use crate::projection::gates::Gate;
use crate::projection::gates::Look as FoundLook;
use crate::session::gate::check;
use crate::session::gate::estimate::LabelSample;
use crate::session::gate::observe::Observations;
use crate::view::Exit;
use crate::view::View;
use crate::view::appended;
use crate::view::gate::GateEstimate;
use crate::view::gate::GateLook;
use crate::view::gate::beside;
use crate::view::gate::command;
use crate::view::gate::decided_by;
use crate::view::gate::effect;
use crate::view::gate::observe_all;
use crate::view::gate::outcome_of;
use crate::view::gate::weakest;
use crate::view::word;
use crate::workflow::gates::observe::ObservationEnd;

/// A unit that cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unfit {
    /// The unit.
    pub unit: ItemId,
    /// Why, in words.
    pub why: String,
}

/// What was observed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Observation {
    /// The gate.
    pub gate: ManifestId,
    /// The last look, where it read all that is observed and nothing is decided; `null` otherwise.
    pub look: Option<GateLook>,
    /// The next unit where it lacks scores; `null` otherwise.
    pub missing: Option<ItemId>,
    /// Units observed so far.
    pub n: u64,
    /// Units that were observed now.
    pub observed: u64,
    /// What `look` means for a release: `ship`, `hold` or `need_more_work`; `null` without it.
    pub outcome: Option<&'static str>,
    /// Units that were observed in a second.
    pub per_second: f64,
    /// Scores that were recorded before, from a file; `null` without a file.
    pub recorded: Option<u64>,
    /// The next unit where the test may not take it; `null` otherwise.
    pub unfit: Option<Unfit>,
}

/// What the last look found, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LookFacts {
    /// The last look; `null` before the first.
    pub look: Option<GateLook>,
    /// What it means for a release: `ship`, `hold` or `need_more_work`.
    pub outcome: &'static str,
}

/// A gate that was decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateEnd {
    /// How it ended.
    pub decided: Outcome,
    /// What its last look found.
    #[serde(flatten)]
    pub looked: LookFacts,
}

/// A candidate that was promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PromotedCandidate {
    /// SHA-256 of the candidate.
    pub candidate_digest: Digest,
    /// How far the promotion may be trusted: the least grade of its gates.
    pub grade: Grade,
}

/// An estimate that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedEstimate {
    /// The last estimate beside the gate; `null` where none stands.
    pub estimated: Option<GateEstimate>,
}

/// Units that are drawn for labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DrawnUnits {
    /// The first checkpoint after the gate was decided, which drew them.
    pub beacon: DrawnFrom,
    /// The gate.
    pub gate: ManifestId,
    /// What units are hashed with.
    pub seed: Digest,
    /// The units, in the order observed.
    pub units: Vec<ItemId>,
}

fn look_facts(gate: &Gate) -> LookFacts {
    LookFacts {
        look: gate.look.as_ref().map(GateLook::from),
        outcome: outcome_of(gate).0,
    }
}

/// Adds what the last look found, in words and numbers; the run ends on it.
fn add_look(view: &mut View, gate: &Gate, look: &FoundLook) {
    let (word, exit) = outcome_of(gate);
    let log_e = look.log_e.value();
    let pairs = [
        ("units", look.n.to_string()),
        ("log e-value", format!("{log_e:.4}{}", weakest(gate, look))),
        ("p, always valid", format!("{:.6}", look.p.value())),
        ("mean effect", effect(look.cs_lo, look.cs_hi)),
        ("standing", check::meaning(look.standing).to_owned()),
        ("outcome", word.to_owned()),
    ];
    let decided_by = decided_by(look).map(|number| ("decided by", number));
    view.pairs(pairs.into_iter().chain(decided_by));
    (view.verdict, view.exit) = (word, exit);
}

/// What was observed, why there is no more, how the gate stands, and what to do next; `is_from_file` where outcomes of a
/// file were recorded before.
pub fn observed(
    ledger: &Ledger,
    (id, gate): (&ManifestId, &Gate),
    found: &Observations,
    is_from_file: bool,
) -> View {
    let (missing, unfit) = match &found.stop {
        ObservationEnd::Missing(unit) => (Some(unit.clone()), None),
        ObservationEnd::Unfit(unit, why) => {
            let (unit, why) = (unit.clone(), why.clone());
            (None, Some(Unfit { unit, why }))
        }
        ObservationEnd::Asked | ObservationEnd::Exhausted | ObservationEnd::Look => (None, None),
    };
    // Units that wait for a look decide nothing that one may ship by.
    let waits = ("need_more_work", Exit::Inconclusive);
    let (look, ends, next) = match &gate.look {
        // What was decided counts, also where nothing is left to observe.
        _ if gate.decided.is_some() => (None, outcome_of(gate), command("gate show", id)),
        Some(look) if look.n == gate.n => {
            let goes_on = !gate.is_terminal() && missing.is_some();
            let next = if goes_on {
                observe_all(id)
            } else {
                command("gate decide", id)
            };
            (Some(look), outcome_of(gate), next)
        }
        None if gate.n == 0 => (None, outcome_of(gate), observe_all(id)),
        _ => (None, waits, command("gate look", id)),
    };
    let facts = Observation {
        gate: id.clone(),
        look: look.map(GateLook::from),
        missing,
        n: gate.n,
        observed: found.observed,
        outcome: look.map(|_| ends.0),
        per_second: found.per_second(),
        recorded: is_from_file.then_some(found.recorded),
        unfit,
    };
    let mut view = View::of(&facts);
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    (view.verdict, view.exit) = ends;
    if let Some(recorded) = facts.recorded {
        view.line(format!("{recorded} scores recorded"));
    }
    view.line(format!(
        "{} units observed, {} in all",
        facts.observed, facts.n
    ));
    if let Some(unit) = &facts.missing {
        view.line(format!(
            "unit {unit} has not all its scores yet: record them, then observe on"
        ));
        view.line("  with --missing each draw without one counts as the worst for the candidate, for good");
    }
    if let Some(Unfit { unit, why }) = &facts.unfit {
        view.sentence(format!("unit {unit} cannot be observed: {why}"));
    }
    if let Some(look) = look {
        add_look(&mut view, gate, look);
    }
    view.with_next(next)
}

/// Adds to the view of a look what it found.
pub fn looked(view: View, (id, gate): (&ManifestId, &Gate)) -> View {
    let mut view = appended::and(view, &look_facts(gate));
    if let Some(look) = &gate.look {
        add_look(&mut view, gate, look);
    }
    let verb = if gate.is_terminal() {
        "gate decide"
    } else {
        "gate show"
    };
    view.with_next(command(verb, id))
}

/// Adds to the view of a decision what its last look found and how the gate ended.
pub fn decided(view: View, (id, gate): (&ManifestId, &Gate), ends: Outcome) -> View {
    let facts = GateEnd {
        decided: ends,
        looked: look_facts(gate),
    };
    let mut view = appended::and(view, &facts);
    if let Some(look) = &gate.look {
        add_look(&mut view, gate, look);
    }
    if matches!(ends, Outcome::Superseded | Outcome::Void) {
        (view.verdict, view.exit) = ("hold", Exit::Inconclusive);
    }
    view.line(format!("decided: {}", word(&ends).replace('_', " ")));
    view.with_next(command("gate show", id))
}

/// Adds to the view of a promotion what was promoted on this gate and others.
pub fn promoted(view: View, id: &ManifestId, said: &PromotionIssued) -> View {
    let (candidate_digest, grade) = (said.candidate_digest, said.grade);
    let facts = PromotedCandidate {
        candidate_digest,
        grade,
    };
    let mut view = appended::and(view, &facts);
    let grade = word(&grade);
    view.line(format!("promoted: {candidate_digest}, grade {grade}"));
    view.with_next(command("gate show", id))
}

/// Adds to the view of an estimate what it says beside the gate.
pub fn estimated(view: View, (id, gate): (&ManifestId, &Gate)) -> View {
    let estimated = gate.estimated.map(GateEstimate::from);
    let mut view = appended::and(view, &RecordedEstimate { estimated });
    if let Some(found) = &gate.estimated {
        view.sentence(beside(found));
    }
    view.with_next(command("gate show", id))
}

/// The units that are drawn for labels, one a line, in the order observed.
pub fn drawn(id: &ManifestId, sample: LabelSample) -> View {
    let facts = DrawnUnits {
        beacon: sample.beacon,
        gate: id.clone(),
        seed: sample.seed,
        units: sample.units,
    };
    let mut view = View::of(&facts);
    for unit in &facts.units {
        view.line(unit.as_str());
    }
    view.with_next(format!("{} --design DESIGN", command("gate estimate", id)))
}
