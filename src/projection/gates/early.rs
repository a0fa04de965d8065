//! The part of the rule `exposure` that keeps units of gates from being scored before they are exposed, or off the scale:
//! what an observation could not take is not recorded.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::Root;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::manifest::Template;
use clover_event::payload::prereg::ExposureOpened;
use clover_ledger::Code;
use clover_ledger::Fact;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::gates::Gates;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::orders;
use crate::orders::Orders;

/// Whose value an event records: the arm and the unit, and the judge with its score where it is one.
struct Value {
    arm: String,
    score: Option<(JudgeId, i64)>,
    unit: ItemId,
}

/// What an event records of a unit. A row that names no draw is of no unit: the rule `design` refuses to seal it.
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

/// Gates of an experiment of which one arm is this one, each with the version that bound its units. Without one no unit of it
/// is bound, and the rule `manifest_first` lets none come into force after an outcome.
fn gates_of<'s>(
    state: &'s State,
    experiment: &'s ExperimentId,
    arm: &'s str,
) -> impl Iterator<Item = (&'s ManifestId, &'s ManifestRecord, &'s ManifestVersion)> {
    let all = state.fold::<Manifests>().gates(experiment);
    all.filter_map(move |(id, record)| {
        let bound = record.bound()?;
        let mut arms = bound.manifest.arms.iter().flatten();
        arms.any(|one| one.id.as_str() == arm)
            .then_some((id, record, bound))
    })
}

/// A score that a gate reads is on its scale.
pub(super) fn check_scale(
    state: &State,
    experiment: Option<&ExperimentId>,
    payload: &Payload,
) -> RuleAnswer {
    if !state.asks(Question::ScoredInOrder) {
        return Ok(());
    }
    let Some(experiment) = experiment else {
        // The rule `experiment` refuses a score of none.
        return Ok(());
    };
    let Some((arm, judge, score)) = score_of(payload) else {
        // Labels are no scores of a judge.
        return Ok(());
    };
    for (id, _, bound) in gates_of(state, experiment, &arm) {
        if !is_read_by(state, id, &judge) {
            continue;
        }
        let metric = bound.manifest.metric.as_ref();
        let metric = metric.required("section metric")?;
        let (low, high) = (metric.scale_lo_micro.value(), metric.scale_hi_micro.value());
        ensure!(
            (low..=high).contains(&score),
            format!("a score from {low} to {high} millionths, the scale of gate {id}"),
            Code::Scale.of(score),
        );
    }
    Ok(())
}

/// The arm, the judge and the value of a score; `None` of what is no score.
fn score_of(payload: &Payload) -> Option<(String, JudgeId, i64)> {
    let value = value(payload)?;
    let (judge, score) = value.score?;
    Some((value.arm, judge, score))
}

/// Whether a gate is opened, not decided, and takes scores of this judge.
fn is_read_by(state: &State, gate: &ManifestId, judge: &JudgeId) -> bool {
    let gate = state.fold::<Gates>().by_id.get(gate);
    gate.is_some_and(|gate| {
        let mut sources = gate.sources.iter();
        gate.decided.is_none() && sources.any(|source| source.judge.as_ref() == Some(judge))
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
fn is_exposed(state: &State, record: &ManifestRecord, unit: &ItemId) -> bool {
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
pub(super) fn check_through(state: &State, said: &ExposureOpened) -> RuleAnswer {
    let found = state.fold::<Manifests>().of_digest(said.digest);
    let first = found.and_then(|(_, record)| record.versions.first());
    // The rule `manifest_first` refuses an exposure under no manifest.
    let is_gate = first.is_some_and(|first| first.manifest.template == Template::Gate);
    if !state.asks(Question::ScoredInOrder) || !is_gate {
        return Ok(());
    }
    ensure!(
        said.through.is_some(),
        "through: the name of the last unit exposed",
        Code::Exposure.of("none"),
    );
    Ok(())
}

/// The unit that an exposure names stands where it says in the order drawn. Without an order nothing can be asked of it: no
/// order is drawn after an exposure, and no gate is opened without one.
pub(super) fn placed(state: &State, before: u64, said: &ExposureOpened) -> Option<Fact> {
    let (_, record) = state.fold::<Manifests>().of_digest(said.digest)?;
    let (bound, _) = state.fold::<Orders>().of(record)?;
    Some(Fact::Needs {
        digest: orders::placed(bound.digest, said.last_unit.value(), said.through.as_ref()?),
        before,
        rule: RuleName::Exposure,
    })
}
