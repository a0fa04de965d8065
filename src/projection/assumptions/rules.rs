//! The rules `sdp`, `waiver` and `blocked`: under which protocol people label, who may waive what, and what no
//! experiment may do whose judge contradicted itself.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::assumption::AssumptionCountersigned;
use crate::event::payload::assumption::AssumptionWaived;
use crate::event::payload::assumption::BridgeAssessed;
use crate::event::payload::custody::Separation;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::rubric::LeafValue;
use crate::ground::sign::KeyId;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::assumptions::Assumptions;
use crate::projection::assumptions::Row;
use crate::projection::assumptions::Waiver;
use crate::projection::designs::Designs;
use crate::projection::iterations::Iterations;
use crate::projection::rubrics::Rubrics;

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
    // The next governed step goes here.
];

/// Why an open iteration cannot go on: the label protocol that its rubric names is not in force any more, or the bridge
/// failed.
fn changed(state: &State, event: &Candidate<'_>, iteration: &IterationId) -> Option<String> {
    let it = state.fold::<Iterations>().by_id.get(iteration)?;
    // What a closed one does is another rule's.
    if it.closed.is_some() {
        return None;
    }
    let assumptions = state.fold::<Assumptions>();
    if let Some(seq) = assumptions.failed(Assumption::A0, None) {
        return Some(format!("A0 fails since seq {seq}"));
    }
    let force = assumptions.sdp_in_force(event.recorded_at)?;
    let rubric = state
        .fold::<Rubrics>()
        .of_hash(&it.experiment, it.rubric_hash)?;
    let mut leaves = rubric.leaves.iter();
    let named = leaves.find(|leaf| leaf.path == "sdp_version")?;
    let same = named.value == LeafValue::Text(force.version.to_string());
    (!same && force.seq > it.opened_seq)
        .then(|| format!("{} in force since seq {}", force.version, force.seq))
}

/// A step of an iteration, which none takes once its protocol was replaced.
fn step(payload: &Payload) -> Option<&IterationId> {
    Some(match payload {
        Payload::CandidatesSealed(said) => &said.iteration,
        Payload::CardPublished(said) => &said.iteration,
        Payload::ConfirmUnsealed(said) => &said.iteration,
        Payload::GateEvaluated(said) => &said.iteration,
        Payload::IterationPausedForLabels(said) => &said.iteration,
        Payload::LabelProcessAudited(said) => &said.iteration,
        Payload::PatchAccepted(said) => &said.iteration,
        Payload::PatchProposed(said) => &said.iteration,
        Payload::PrenticeChecked(said) => &said.iteration,
        Payload::ResidualsAudited(said) => &said.iteration,
        Payload::ScoresRecomputed(said) => &said.iteration,
        Payload::SlicesClassified(said) => &said.iteration,
        _ => return None,
    })
}

/// An open iteration whose protocol was replaced only closes, and as `sdp_changed`; no other does so.
fn protocol_stands(state: &State, event: &Candidate<'_>) -> Judged {
    if let Payload::IterationOpened(_) = &event.event.payload {
        let seq = state.fold::<Assumptions>().failed(Assumption::A0, None)?;
        return no("A0 that does not fail", format!("fail since seq {seq}"));
    }
    if let Payload::IterationClosed(said) = &event.event.payload {
        let changed = changed(state, event, &said.iteration);
        let is_so = said.outcome == IterationOutcome::SdpChanged;
        return match changed {
            Some(why) if !is_so => no("an end as sdp_changed", format!("another, and {why}")),
            None if is_so => no("a protocol that was replaced, or A0 that fails", "neither"),
            _ => None,
        };
    }
    let id = step(&event.event.payload)?;
    let why = changed(state, event, id)?;
    no(
        format!("no step of {id} under another protocol: close it as sdp_changed"),
        why,
    )
}

/// The rules `sdp`, `waiver` and `blocked`.
#[derive(Clone, Copy, Debug)]
pub struct Bridge;

impl Rule for Bridge {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let header = &event.event.header;
        let experiment = header.experiment.as_ref();
        let (rule, judged) = match &event.event.payload {
            Payload::BridgeAssessed(new) => (RuleName::Sdp, assessed(state, event, new)),
            Payload::LabelDesignRegistered(new) => (
                RuleName::Sdp,
                by_protocol(state, event, new.protocol.as_str()),
            ),
            Payload::LabelRecorded(new) => (RuleName::Sdp, labelled(state, event, &new.design)),
            Payload::LabelSealed(new) => (RuleName::Sdp, labelled(state, event, &new.design)),
            Payload::AssumptionWaived(new) => (RuleName::Waiver, waived(state, event, new)),
            Payload::AssumptionCountersigned(new) => (RuleName::Waiver, agreed(state, event, new)),
            _ => (RuleName::Sdp, protocol_stands(state, event)),
        };
        breaches.extend(judged.map(|(expected, found)| Breach::new(rule, expected, found)));
        if let Some((expected, found)) = blocked(state, event.event.kind(), experiment) {
            breaches.push(Breach::new(RuleName::Blocked, expected, found));
        }
    }
}

/// Whether an experiment may take a governed step.
fn blocked(state: &State, kind: Kind, experiment: Option<&ExperimentId>) -> Judged {
    if !GOVERNED.contains(&kind) {
        return None;
    }
    let failed = state
        .fold::<Assumptions>()
        .failed(Assumption::CloverJ2, experiment)?;
    let experiment = experiment?;
    no(
        format!(
            "{kind} in an experiment whose judge never contradicted itself; close {experiment} and register another"
        ),
        format!("CLOVER.J2 fail since the score.conflict at seq {failed}"),
    )
}

fn is_human(state: &State, author: &KeyId) -> bool {
    let key = state.keyring.keys.get(author);
    // An unknown key is another rule's.
    key.is_none_or(|key| key.human)
}

fn assessed(state: &State, event: &Candidate<'_>, new: &BridgeAssessed) -> Judged {
    let assumptions = state.fold::<Assumptions>();
    match assumptions.sdp.last() {
        Some(newest) if newest.version == new.sdp_version => {}
        Some(newest) => {
            let expected = format!("the newest protocol, {}", newest.version);
            return no(expected, new.sdp_version.to_string());
        }
        None => {
            return no(
                "a registered protocol",
                format!("{}, not registered", new.sdp_version),
            );
        }
    }
    if !is_human(state, &event.event.header.author) {
        return no("a key that a person holds", "a machine's");
    }
    if new.expires_at <= event.recorded_at {
        let expected = format!("an end after {}", event.recorded_at);
        return no(expected, new.expires_at.to_string());
    }
    let ordered = match (new.ci_lo, new.estimate, new.ci_hi) {
        (None, _, None) => true,
        (Some(lo), Some(estimate), Some(hi)) => lo <= estimate && estimate <= hi,
        _ => false,
    };
    if ordered {
        return None;
    }
    no(
        "ci_lo, estimate and ci_hi in ascending order, or no interval",
        "otherwise",
    )
}

/// From the first registered protocol on, people label by the one in force.
fn by_protocol(state: &State, event: &Candidate<'_>, protocol: &str) -> Judged {
    let force = state
        .fold::<Assumptions>()
        .sdp_in_force(event.recorded_at)?;
    if force.version.as_str() == protocol {
        return None;
    }
    no(
        format!(
            "protocol {}, in force since seq {}",
            force.version, force.seq
        ),
        protocol,
    )
}

fn labelled(state: &State, event: &Candidate<'_>, design: &crate::event::id::DesignId) -> Judged {
    let experiment = event.event.header.experiment.as_ref()?;
    let design = state.fold::<Designs>().registered(experiment, design)?;
    let (expected, found) = by_protocol(state, event, design.protocol.as_str())?;
    no(
        format!("a label of a design by {expected}"),
        format!("a design by {found}"),
    )
}

/// What no waiver covers.
fn unwaivable(state: &State, code: Assumption, experiment: Option<&ExperimentId>) -> Judged {
    if code == Assumption::H1 {
        return no(
            "another assumption: a confirm block that was touched is never waived",
            "H1",
        );
    }
    if !matches!(code, Assumption::A0 | Assumption::CloverJ2) {
        return None;
    }
    let seq = state.fold::<Assumptions>().failed(code, experiment)?;
    no(
        format!("{code} that does not fail: its failure is never waived"),
        format!("fail since seq {seq}"),
    )
}

fn waived(state: &State, event: &Candidate<'_>, new: &AssumptionWaived) -> Judged {
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    match (new.code.is_of_ledger(), experiment) {
        (true, Some(found)) => {
            let expected = format!("{} of the whole ledger, without an experiment", new.code);
            return no(expected, found.to_string());
        }
        (false, None) => return no(format!("{} of an experiment", new.code), "null"),
        _ => {}
    }
    let judged = unwaivable(state, new.code, experiment);
    if judged.is_some() {
        return judged;
    }
    if !is_human(state, &header.author) {
        return no("a key that a person holds", "a machine's");
    }
    if new.expires_at <= event.recorded_at {
        let expected = format!("an end after {}", event.recorded_at);
        return no(expected, new.expires_at.to_string());
    }
    None
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
    let proposed = |(code, row): (&Assumption, &'a Row)| Some((*code, row.proposed.as_ref()?));
    rows.iter()
        .filter_map(proposed)
        .find(|(_, waiver)| waiver.id == new.waiver)
}

fn agreed(state: &State, event: &Candidate<'_>, new: &AssumptionCountersigned) -> Judged {
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let assumptions = state.fold::<Assumptions>();
    let Some((code, waiver)) = waiting(assumptions, experiment, new) else {
        return no(
            "the newest waiver of an assumption, waiting for a second key",
            new.waiver.to_string(),
        );
    };
    if header.author == waiver.author {
        return no(
            "another key than the one that proposed it",
            header.author.to_string(),
        );
    }
    let holder = |key: &KeyId| state.keyring.keys.get(key).map(|record| &record.holder);
    if state.keyring.separation() == Some(Separation::Strict)
        && let Some(second) = holder(&header.author)
        && Some(second) == holder(&waiver.author)
    {
        let found = format!("{second}, who proposed it");
        return no(
            "another holder than the one who proposed it, under strict",
            found,
        );
    }
    if !is_human(state, &header.author) {
        return no("a key that a person holds", "a machine's");
    }
    if waiver.expires_at <= event.recorded_at {
        let found = format!("one that ended at {}", waiver.expires_at);
        return no("a waiver that has not ended", found);
    }
    unwaivable(state, code, experiment)
}
