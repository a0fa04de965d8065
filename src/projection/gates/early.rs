//! The part of the rule `exposure` that keeps units of gates from being scored before they are exposed, or off the scale:
//! what an observation could not take is not recorded.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::id::JudgeId;
use crate::event::id::Root;
use crate::event::payload::label::draw_of_row;
use crate::event::payload::manifest::Template;
use crate::event::payload::prereg::ExposureOpened;
use crate::ledger::Fact;
use crate::ledger::Judged;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::gates::Gates;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::projection::manifests::Version;
use crate::projection::orders;
use crate::projection::orders::Orders;

/// Whose value an event records: the arm and the unit, and the judge with its score where it is one.
struct Value {
    arm: String,
    score: Option<(JudgeId, i64)>,
    unit: ItemId,
}

fn value(payload: &Payload) -> Option<Value> {
    match payload {
        Payload::ScoreRecorded(said) => Some(Value {
            arm: said.policy.as_str().to_owned(),
            score: Some((said.judge.clone(), said.score_micro.value())),
            unit: said.item.clone(),
        }),
        Payload::LabelRevealed(said) => {
            let (policy, unit, _) = draw_of_row(&said.row)?;
            Some(Value {
                arm: policy.as_str().to_owned(),
                score: None,
                unit,
            })
        }
        _ => None,
    }
}

/// Gates of an experiment of which one arm is this one, each with the version that bound its units.
fn gates_of<'s>(
    state: &'s State,
    experiment: &'s ExperimentId,
    arm: &'s str,
) -> impl Iterator<Item = (&'s crate::event::id::ManifestId, &'s Record, &'s Version)> {
    let all = state.fold::<Manifests>().gates(experiment);
    all.filter_map(move |(id, record)| {
        let bound = record.bound()?;
        let mut arms = bound.manifest.arms.iter().flatten();
        arms.any(|one| one.id.as_str() == arm)
            .then_some((id, record, bound))
    })
}

/// A score that a gate reads is on its scale.
pub(super) fn scaled(
    state: &State,
    experiment: Option<&ExperimentId>,
    payload: &Payload,
) -> Judged {
    if !state.asks(Question::ScoredInOrder) {
        return None;
    }
    let value = value(payload)?;
    let (judge, score) = value.score?;
    let gates = state.fold::<Gates>();
    gates_of(state, experiment?, &value.arm).find_map(|(id, _, bound)| {
        let gate = gates.by_id.get(id).filter(|gate| gate.decided.is_none())?;
        let mut sources = gate.sources.iter();
        sources.find(|source| source.judge.as_ref() == Some(&judge))?;
        let metric = bound.manifest.metric.as_ref()?;
        let (low, high) = (metric.scale_lo_micro.value(), metric.scale_hi_micro.value());
        if (low..=high).contains(&score) {
            return None;
        }
        no(
            format!("a score from {low} to {high} millionths, the scale of gate {id}"),
            format!("{score} (E_SCALE)"),
        )
    })
}

/// What forbids a value of a unit that is not exposed: that a confirm set lists it whose gates are still to be decided.
pub(super) fn exposed_first(
    state: &State,
    experiment: &ExperimentId,
    payload: &Payload,
    facts: &mut Vec<Fact>,
) {
    if !state.asks(Question::ScoredInOrder) {
        return;
    }
    let Some(value) = value(payload) else {
        return;
    };
    let gates = state.fold::<Gates>();
    // Roots of confirm sets, each with whether a gate waits for its units and whether one has exposed this unit.
    let mut roots: Vec<(Root, bool, bool)> = Vec::new();
    for (id, record, bound) in gates_of(state, experiment, &value.arm) {
        let Some(data) = &bound.manifest.data else {
            continue;
        };
        let decided = gates
            .by_id
            .get(id)
            .is_some_and(|gate| gate.decided.is_some());
        let waits = !decided && record.superseded_by.is_none();
        let exposed = is_exposed(state, record, &value.unit);
        match roots
            .iter_mut()
            .find(|(root, ..)| *root == data.confirm_root)
        {
            Some(of) => (of.1, of.2) = (of.1 || waits, of.2 || exposed),
            None => roots.push((data.confirm_root, waits, exposed)),
        }
    }
    let closed = roots
        .into_iter()
        .filter(|(_, waits, exposed)| *waits && !*exposed);
    facts.extend(closed.map(|(root, ..)| Fact::Forbids {
        digest: orders::listed_in(Some(experiment), root, &value.unit),
        rule: RuleName::Exposure,
    }));
}

/// Whether a unit of a gate's order is exposed: it stands no further than the last unit that is. Exposures from before
/// rulebook 18 name no unit, so that nobody is kept from scoring what they opened.
fn is_exposed(state: &State, record: &Record, unit: &ItemId) -> bool {
    if record.exposures > 0 && record.through.is_none() {
        return true;
    }
    let Some((_, drawn)) = state.fold::<Orders>().of(record) else {
        return false;
    };
    let through = record.through.as_ref();
    through.is_some_and(|last| orders::key(drawn.seed, unit) <= orders::key(drawn.seed, last))
}

/// The exposure of a gate's units names the last of them.
pub(super) fn named(state: &State, said: &ExposureOpened) -> Judged {
    let (_, record) = state.fold::<Manifests>().of_digest(said.digest)?;
    let first = record.versions.first()?;
    if !state.asks(Question::ScoredInOrder)
        || first.manifest.template != Template::Gate
        || said.through.is_some()
    {
        return None;
    }
    no(
        "through: the name of the last unit exposed",
        "none (E_EXPOSURE)",
    )
}

/// The unit that an exposure names stands where it says in the order drawn.
pub(super) fn placed(state: &State, before: u64, said: &ExposureOpened) -> Option<Fact> {
    let (_, record) = state.fold::<Manifests>().of_digest(said.digest)?;
    let (bound, _) = state.fold::<Orders>().of(record)?;
    Some(Fact::Needs {
        digest: orders::placed(bound.digest, said.last_unit.value(), said.through.as_ref()?),
        before,
        rule: RuleName::Exposure,
    })
}
