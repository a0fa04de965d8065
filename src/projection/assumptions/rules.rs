//! The rules `sdp`, `waiver` and `blocked`: under which protocol people label, who may waive what, and what no
//! experiment may do whose judge contradicted itself.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::assumption::AssumptionCountersigned;
use clover_event::payload::assumption::AssumptionWaived;
use clover_event::payload::assumption::BridgeAssessed;
use clover_event::payload::assumption::SdpVersionRegistered;
use clover_event::payload::custody::Separation;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::rubric::LeafValue;
use clover_ground::sign::KeyId;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::assumptions::AssumptionRow;
use crate::assumptions::Assumptions;
use crate::assumptions::Contradiction;
use crate::assumptions::Waiver;
use crate::decisions::AllDecisions;
use crate::designs::Designs;
use crate::gates;
use crate::iterations::Iterations;
use crate::manifests::Manifests;
use crate::rubrics::Rubrics;

/// Steps that need a judge who does not contradict itself: none is taken in an experiment with a
/// `score.conflict`. What is only recorded (scores, labels, deviations, the end) goes on.
pub const GOVERNED: &[Kind] = &[
    Kind::CandidatesSealed,
    Kind::ConfirmUnsealed,
    Kind::ExposureOpened,
    Kind::GateEvaluated,
    Kind::LabelRevealed,
    Kind::ManifestAmended,
    Kind::ManifestRegistered,
    Kind::PatchAccepted,
    Kind::SplitsFormed,
    Kind::SplitsListed,
];

/// The same from rulebook 19 on: what rests on its scores, or lets something run that does. A decision against a claim, a
/// rollback, a revocation and every end stay possible.
const GOVERNED_TOO: &[Kind] = &[
    Kind::ConfirmLooked,
    Kind::DeploymentActivated,
    Kind::GateContinued,
    Kind::GateLooked,
    Kind::GateObserved,
    Kind::GateOpened,
    Kind::GeneratorObjectiveQueried,
    Kind::GeneratorRunOpened,
    Kind::GeneratorValidated,
    Kind::PromptCommitted,
    // The next governed step goes here.
];

/// Steps of an iteration that none took under rulebook 18 once its protocol was replaced.
const STEPS: &[Kind] = &[
    Kind::CandidatesSealed,
    Kind::CardPublished,
    Kind::ConfirmUnsealed,
    Kind::GateEvaluated,
    Kind::IterationPausedForLabels,
    Kind::LabelProcessAudited,
    Kind::PatchAccepted,
    Kind::PatchProposed,
    Kind::PrenticeChecked,
    Kind::ResidualsAudited,
    Kind::ScoresRecomputed,
    Kind::SlicesClassified,
];

/// What an iteration still says once its protocol was replaced, from rulebook 19 on: which patches do not go on, and its end.
/// Every other kind that names an iteration is a step.
const NO_STEPS: &[Kind] = &[
    Kind::IterationClosed,
    Kind::IterationOpened,
    Kind::PatchRejected,
    Kind::PatchWithdrawn,
];

/// Why an open iteration cannot go on: the label protocol that its rubric names is not in force any more, or the bridge
/// failed. `None` where it can, and of one that is not open: what that does is refused by the rules `iteration` and
/// `predicate`.
fn changed(
    state: &State,
    event: &ProposedEvent<'_>,
    iteration: &IterationId,
) -> Result<Option<String>, Unmet> {
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let Some(it) = it.filter(|it| it.closed.is_none()) else {
        return Ok(None);
    };
    let assumptions = state.fold::<Assumptions>();
    if let Some(seq) = assumptions.failed(Assumption::A0, None) {
        return Ok(Some(format!("A0 fails since seq {seq}")));
    }
    let Some(force) = assumptions.sdp_in_force(event.recorded_at) else {
        // No protocol is in force, and so none replaced another.
        return Ok(None);
    };
    let is_newer = force.seq > it.opened_seq;
    if !is_newer {
        return Ok(None);
    }
    let rubric = state
        .fold::<Rubrics>()
        .of_hash(&it.experiment, it.rubric_hash)
        .required("the rubric that the iteration starts from")?;
    let mut leaves = rubric.leaves.iter();
    let named = leaves
        .find(|leaf| leaf.path == "sdp_version")
        .required("a rubric that names its protocol")?;
    let same = named.value == LeafValue::Text(force.version.to_string());
    Ok((!same).then(|| format!("{} in force since seq {}", force.version, force.seq)))
}

/// An open iteration whose protocol was replaced only closes, and as `sdp_changed`; no other does so.
fn check_protocol_stands(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    match &event.event.payload {
        Payload::IterationOpened(_) => check_a0(state),
        Payload::IterationClosed(said) => {
            let is_so = said.outcome == IterationOutcome::SdpChanged;
            if let Some(why) = changed(state, event, &said.iteration)? {
                let found = format!("another, and {why}");
                ensure!(is_so, "an end as sdp_changed", found);
            } else {
                let expected = "a protocol that was replaced, or A0 that fails";
                ensure!(!is_so, expected, "neither");
            }
            Ok(())
        }
        payload => {
            let is_step = if state.asks(Question::ProtocolSteps) {
                !NO_STEPS.contains(&payload.kind())
            } else {
                STEPS.contains(&payload.kind())
            };
            let Some(id) = payload.iteration().filter(|_| is_step) else {
                return Ok(());
            };
            if is_owed(state, id, payload) {
                return Ok(());
            }
            if let Some(why) = changed(state, event, id)? {
                return unmet(
                    format!("no step of {id} under another protocol: close it as sdp_changed"),
                    why,
                );
            }
            Ok(())
        }
    }
}

/// Whether an iteration owes this step: once its confirm was unsealed, every gate there is evaluated, whatever protocol people
/// label by since.
fn is_owed(state: &State, iteration: &IterationId, payload: &Payload) -> bool {
    let is_of_confirm = match payload {
        Payload::ConfirmLooked(_) => true,
        Payload::GateEvaluated(said) => said.split == CriterionSplit::Confirm,
        _ => false,
    };
    let decided = state.fold::<AllDecisions>().of(iteration);
    state.asks(Question::JudgedPeek)
        && is_of_confirm
        && decided.is_some_and(|of| of.unsealed.is_some())
}

/// A protocol that takes the place of another is in force from its registration on at the earliest.
fn check_effective(
    state: &State,
    event: &ProposedEvent<'_>,
    new: &SdpVersionRegistered,
) -> RuleAnswer {
    let is_first = state.fold::<Assumptions>().sdp.is_empty();
    if is_first || !state.asks(Question::EffectiveLater) {
        return Ok(());
    }
    ensure!(
        new.effective_at >= event.recorded_at,
        format!(
            "effective_at of {} not before it is recorded, at {}: name a moment that is still to come",
            new.sdp_version, event.recorded_at
        ),
        new.effective_at.to_string()
    );
    Ok(())
}

/// An iteration opens while A0 does not fail.
fn check_a0(state: &State) -> RuleAnswer {
    if let Some(seq) = state.fold::<Assumptions>().failed(Assumption::A0, None) {
        return unmet("A0 that does not fail", format!("fail since seq {seq}"));
    }
    Ok(())
}

/// The rules `sdp`, `waiver` and `blocked`.
#[derive(Clone, Copy, Debug)]
pub struct Bridge;

impl Rule for Bridge {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let (rule, checked) = match &event.event.payload {
            Payload::BridgeAssessed(new) => (RuleName::Sdp, check_assessed(state, event, new)),
            Payload::SdpVersionRegistered(new) => {
                (RuleName::Sdp, check_effective(state, event, new))
            }
            Payload::LabelDesignRegistered(new) => (
                RuleName::Sdp,
                check_protocol(state, event, new.protocol.as_str()),
            ),
            Payload::LabelRecorded(new) => (RuleName::Sdp, check_label(state, event, &new.design)),
            Payload::LabelSealed(new) => (RuleName::Sdp, check_label(state, event, &new.design)),
            Payload::AssumptionWaived(new) => (RuleName::Waiver, check_waived(state, event, new)),
            Payload::AssumptionCountersigned(new) => {
                (RuleName::Waiver, check_agreed(state, event, new))
            }
            _ => (RuleName::Sdp, check_protocol_stands(state, event)),
        };
        breaches.take(rule, checked);
        breaches.take(RuleName::Blocked, check_blocked(state, event));
    }
}

/// Whether an event is a step that needs a judge who does not contradict itself.
fn is_governed(state: &State, payload: &Payload) -> bool {
    let kind = payload.kind();
    if GOVERNED.contains(&kind) {
        return true;
    }
    if !state.asks(Question::GovernedSteps) {
        return false;
    }
    match payload {
        Payload::GateDecided(said) => gates::holds(said.outcome),
        Payload::PromotionIssued(_) => true,
        _ => GOVERNED_TOO.contains(&kind),
    }
}

/// The first experiment that a step rests on and whose judge contradicted itself, with the entry. A promotion rests on those of
/// its gates, wherever it is issued; what belongs to no experiment rests on none.
fn contradicted<'a>(
    state: &'a State,
    event: &'a ProposedEvent<'_>,
) -> Option<(&'a ExperimentId, Contradiction)> {
    let mut rests: Vec<&ExperimentId> = event.event.header.experiment.iter().collect();
    if let Payload::PromotionIssued(said) = &event.event.payload {
        let manifests = state.fold::<Manifests>();
        let of = |gate| manifests.by_id.get(gate)?.experiment.as_ref();
        rests = said.gates.iter().filter_map(of).collect();
    }
    let assumptions = state.fold::<Assumptions>();
    let mut failed = rests.into_iter().filter_map(|experiment| {
        let since = assumptions.contradicted(state, experiment)?;
        Some((experiment, since))
    });
    failed.next()
}

/// Whether an experiment may take a governed step.
fn check_blocked(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    if !is_governed(state, &event.event.payload) {
        return Ok(());
    }
    let Some((experiment, since)) = contradicted(state, event) else {
        return Ok(());
    };
    let kind = event.event.kind();
    unmet(
        format!(
            "{kind} in an experiment whose judge never contradicted itself; close {experiment} and register another"
        ),
        format!(
            "CLOVER.J2 fail since the {} at seq {}",
            since.witness.kind(),
            since.seq
        ),
    )
}

fn is_human(state: &State, author: &KeyId) -> bool {
    let key = state.keyring.keys.get(author);
    // An unknown key is another rule's.
    key.is_none_or(|key| key.human)
}

fn check_assessed(state: &State, event: &ProposedEvent<'_>, new: &BridgeAssessed) -> RuleAnswer {
    let Some(newest) = state.fold::<Assumptions>().sdp.last() else {
        return unmet(
            "a registered protocol",
            format!("{}, not registered", new.sdp_version),
        );
    };
    ensure!(
        newest.version == new.sdp_version,
        format!("the newest protocol, {}", newest.version),
        new.sdp_version.to_string()
    );
    check_human(state, event)?;
    ensure!(
        new.expires_at > event.recorded_at,
        format!("an end after {}", event.recorded_at),
        new.expires_at.to_string()
    );
    let ordered = match (new.ci_lo, new.estimate, new.ci_hi) {
        (None, _, None) => true,
        (Some(lo), Some(estimate), Some(hi)) => lo <= estimate && estimate <= hi,
        _ => false,
    };
    ensure!(
        ordered,
        "ci_lo, estimate and ci_hi in ascending order, or no interval",
        "otherwise"
    );
    Ok(())
}

fn check_human(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    ensure!(
        is_human(state, &event.event.header.author),
        "a key that a person holds",
        "a machine's"
    );
    Ok(())
}

/// From the first registered protocol on, people label by the one in force.
fn check_protocol(state: &State, event: &ProposedEvent<'_>, protocol: &str) -> RuleAnswer {
    let assumptions = state.fold::<Assumptions>();
    let Some(force) = assumptions.sdp_in_force(event.recorded_at) else {
        // Before the first one anybody labels by any.
        return Ok(());
    };
    ensure!(
        force.version.as_str() == protocol,
        format!(
            "protocol {}, in force since seq {}",
            force.version, force.seq
        ),
        protocol
    );
    Ok(())
}

/// A label is one of a design by the protocol in force.
fn check_label(state: &State, event: &ProposedEvent<'_>, design: &DesignId) -> RuleAnswer {
    // Without an experiment the rule `experiment` refuses it.
    let Some(experiment) = &event.event.header.experiment else {
        return Ok(());
    };
    // A label of no registered design is refused by the rule `design`, but where the experiment registers none: then
    // nothing names its protocol, and the assumptions L1 and CJE.J1 fail for good.
    let Some(design) = state.fold::<Designs>().registered(experiment, design) else {
        return Ok(());
    };
    let protocol = check_protocol(state, event, design.protocol.as_str());
    protocol.map_err(|Unmet { expected, found }| Unmet {
        expected: format!("a label of a design by {expected}"),
        found: format!("a design by {found}"),
    })
}

/// What no waiver covers.
fn check_waivable(
    state: &State,
    code: Assumption,
    experiment: Option<&ExperimentId>,
) -> RuleAnswer {
    ensure!(
        code != Assumption::H1,
        "another assumption: a confirm block that was touched is never waived",
        "H1"
    );
    let assumptions = state.fold::<Assumptions>();
    let failed = match (code, experiment) {
        (Assumption::A0, _) => assumptions.failed(code, experiment),
        (Assumption::CloverJ2, Some(experiment)) => assumptions
            .contradicted(state, experiment)
            .map(|since| since.seq),
        _ => None,
    };
    if let Some(seq) = failed {
        return unmet(
            format!("{code} that does not fail: its failure is never waived"),
            format!("fail since seq {seq}"),
        );
    }
    Ok(())
}

fn check_waived(state: &State, event: &ProposedEvent<'_>, new: &AssumptionWaived) -> RuleAnswer {
    let experiment = event.event.experiment();
    match (new.code.is_of_ledger(), experiment) {
        (true, Some(found)) => {
            let expected = format!("{} of the whole ledger, without an experiment", new.code);
            return unmet(expected, found.to_string());
        }
        (false, None) => return unmet(format!("{} of an experiment", new.code), "null"),
        (true, None) | (false, Some(_)) => {}
    }
    check_waivable(state, new.code, experiment)?;
    check_human(state, event)?;
    ensure!(
        new.expires_at > event.recorded_at,
        format!("an end after {}", event.recorded_at),
        new.expires_at.to_string()
    );
    Ok(())
}

/// The waiver that waits for a second key.
fn waiting<'a>(
    assumptions: &'a Assumptions,
    experiment: Option<&ExperimentId>,
    new: &AssumptionCountersigned,
) -> Option<(Assumption, &'a Waiver)> {
    let rows = match experiment {
        Some(experiment) => &assumptions.by_experiment.get(experiment)?.rows,
        None => &assumptions.of_ledger,
    };
    let proposed =
        |(code, row): (&Assumption, &'a AssumptionRow)| Some((*code, row.proposed.as_ref()?));
    rows.iter()
        .filter_map(proposed)
        .find(|(_, waiver)| waiver.id == new.waiver)
}

fn check_agreed(
    state: &State,
    event: &ProposedEvent<'_>,
    new: &AssumptionCountersigned,
) -> RuleAnswer {
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let assumptions = state.fold::<Assumptions>();
    let Some((code, waiver)) = waiting(assumptions, experiment, new) else {
        return unmet(
            "the newest waiver of an assumption, waiting for a second key",
            new.waiver.to_string(),
        );
    };
    ensure!(
        header.author != waiver.author,
        "another key than the one that proposed it",
        header.author.to_string()
    );
    // An unknown author is refused by the rule `key`.
    let holder = |key: &KeyId| state.keyring.keys.get(key).map(|record| &record.holder);
    if state.keyring.separation() == Some(Separation::Strict)
        && let Some(second) = holder(&header.author)
    {
        ensure!(
            Some(second) != holder(&waiver.author),
            "another holder than the one who proposed it, under strict",
            format!("{second}, who proposed it")
        );
    }
    check_human(state, event)?;
    ensure!(
        waiver.expires_at > event.recorded_at,
        "a waiver that has not ended",
        format!("one that ended at {}", waiver.expires_at)
    );
    check_waivable(state, code, experiment)
}
