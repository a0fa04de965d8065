//! The rule `iteration`: what an iteration opens on, what may happen in it, and that nothing moves once a
//! confirm label was seen.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::id::PatchId;
use crate::event::payload::Role;
use crate::event::payload::budget::Period;
use crate::event::payload::iteration::AnchorRows;
use crate::event::payload::iteration::AnchorSetRegistered;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOpened;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::manifest::IterationDesign;
use crate::event::payload::prereg::ManifestAmended;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::budgets::Budgets;
use crate::projection::iterations::CandidateState;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::manifests::Manifests;
use crate::projection::rubrics::Rubrics;

/// Fewest rows of an anchor policy.
const ANCHOR_ROWS_MIN: u64 = 200;
/// Most peeks of a quarter.
pub(in crate::projection) const PEEKS_MAX: u64 = 3;

/// The rule `iteration`.
#[derive(Clone, Copy, Debug)]
pub struct Iterating;

impl Rule for Iterating {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let judged = match &event.event.payload {
            Payload::AnchorSetRegistered(said) => anchors(said),
            Payload::IterationOpened(said) => bound(state, experiment, event, said)
                .or_else(|| starts(state, experiment, said))
                .or_else(|| peeks(state, event, said)),
            Payload::IterationClosed(said) => closed(state, experiment, said),
            Payload::ManifestAmended(said) => amended(state, said),
            Payload::PatchProposed(said) => {
                sealed_yet(state, experiment, &said.iteration, "a proposal")
            }
            Payload::PatchRejected(said) => {
                live(state, experiment, &said.iteration).err().or_else(|| {
                    let patch = said.patch.as_ref()?;
                    stands(state, &said.iteration, patch)
                })
            }
            Payload::PatchWithdrawn(said) => {
                sealed_yet(state, experiment, &said.iteration, "a withdrawal")
                    .or_else(|| stands(state, &said.iteration, &said.patch))
            }
            _ => None,
        };
        let breach =
            judged.map(|(expected, found)| Breach::new(RuleName::Iteration, expected, found));
        breaches.extend(breach);
    }
}

fn anchors(said: &AnchorSetRegistered) -> Judged {
    if said.high.policy == said.low.policy {
        return no("two policies", format!("{} twice", said.high.policy));
    }
    let few = |rows: &&AnchorRows| rows.count.value() < ANCHOR_ROWS_MIN;
    let few = [&said.high, &said.low].into_iter().find(few)?;
    no(
        format!("at least {ANCHOR_ROWS_MIN} rows of {}", few.policy),
        few.count.to_string(),
    )
}

/// Every number comes from the manifest in force.
fn bound(
    state: &State,
    experiment: &ExperimentId,
    event: &Candidate<'_>,
    said: &IterationOpened,
) -> Judged {
    let manifests = state.fold::<Manifests>();
    let record = manifests
        .of_digest(said.digest)
        .filter(|(_, record)| record.experiment.as_ref() == Some(experiment));
    let Some((id, record)) = record else {
        let expected = "the digest of a manifest of this experiment";
        return no(expected, said.digest.to_string());
    };
    if let Some(by) = &record.superseded_by {
        return no("a manifest in force", format!("one that {by} superseded"));
    }
    let current = record.in_force().filter(|it| it.digest == said.digest);
    let Some(current) = current else {
        let found = format!("{} (E_STALE_VERSION)", said.digest);
        return no(format!("the version of {id} in force"), found);
    };
    let plan = current.manifest.iteration.as_ref();
    let Some((plan, design)) = plan.and_then(|plan| Some((plan, plan.design.as_ref()?))) else {
        let found = format!("{id}, which has none");
        return no("a manifest with iteration.design", found);
    };
    if *said.params != *plan {
        let expected = format!("params as {id} registered them, {}", plan.params_hash());
        return no(
            expected,
            format!("{} (E_UNREGISTERED_RULE)", said.params.params_hash()),
        );
    }
    if said.params_hash != plan.params_hash() {
        let expected = format!("params_hash {}", plan.params_hash());
        return no(expected, said.params_hash.to_string());
    }
    if said.rubric_hash != design.rubric_hash {
        let expected = format!("rubric_hash {}, as registered", design.rubric_hash);
        return no(expected, said.rubric_hash.to_string());
    }
    let roles = current.manifest.roles.as_ref();
    let author = event.event.header.author;
    let arbiter = roles.and_then(|roles| roles.arbiter);
    let arbiter = arbiter.filter(|named| *named != author)?;
    no(
        format!("signed by roles.arbiter {arbiter}"),
        format!("{author} (E_SIGNER_ROLE)"),
    )
}

fn design_of<'a>(state: &'a State, said: &IterationOpened) -> Option<&'a IterationDesign> {
    let (_, record) = state.fold::<Manifests>().of_digest(said.digest)?;
    let version = record.version(said.digest)?;
    version.manifest.iteration.as_ref()?.design.as_ref()
}

/// The rubric is in force, the anchors are registered, and no other iteration is open.
fn starts(state: &State, experiment: &ExperimentId, said: &IterationOpened) -> Judged {
    let design = design_of(state, said)?;
    let rubric = state.fold::<Rubrics>().in_force(experiment);
    let Some(rubric) = rubric else {
        return no("a registered rubric", "none");
    };
    if rubric.hash != said.rubric_hash {
        let expected = format!("the rubric in force, {}", rubric.hash);
        return no(expected, said.rubric_hash.to_string());
    }
    let iterations = state.fold::<Iterations>();
    if let Some(anchors) = &design.anchors {
        let known = iterations.anchors.get(experiment);
        if !known.is_some_and(|known| known.contains_key(anchors)) {
            return no("a registered anchor set", anchors.to_string());
        }
    }
    if let Some(it) = iterations.by_id.get(&said.iteration) {
        let found = format!("{}, opened at seq {}", said.iteration, it.opened_seq);
        return no("an iteration id that is not used yet", found);
    }
    let (open, it) = iterations.open_in(experiment)?;
    no(
        "no open iteration",
        format!("{open}, opened at seq {}", it.opened_seq),
    )
}

/// A peek is left in the quarter that is named.
fn peeks(state: &State, event: &Candidate<'_>, said: &IterationOpened) -> Judged {
    let design = design_of(state, said)?;
    let quarter = event.recorded_at.quarter().to_string();
    if said.quarter != quarter {
        return no(format!("quarter {quarter}"), said.quarter.clone());
    }
    let name = &design.peek_account;
    let Some(account) = state.fold::<Budgets>().accounts.get(name) else {
        return no(format!("an account {name}"), "none");
    };
    if account.period != Period::Quarter || account.amount > PEEKS_MAX {
        let expected = format!("account {name} with at most {PEEKS_MAX} peeks each quarter");
        return no(expected, account.amount.to_string());
    }
    let optimizes = [Role::Optimizer, Role::MetaOptimizer];
    let optimizes = optimizes
        .iter()
        .find(|role| account.spenders.contains(**role));
    if let Some(role) = optimizes.filter(|_| state.asks(Question::PeekAccount)) {
        let expected = format!("an account {name} that no optimizer spends from");
        return no(expected, format!("{role} among its spenders"));
    }
    if account.left(event.recorded_at) == 0 {
        let found = format!("{} of {} spent", account.amount, account.amount);
        return no(format!("a peek left in {name} in {quarter}"), found);
    }
    None
}

/// An iteration of this experiment that did not end.
fn live<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    id: &IterationId,
) -> Result<&'a Iteration, (String, String)> {
    let expected = || format!("an open iteration of {experiment}");
    let it = state.fold::<Iterations>().by_id.get(id);
    let it = it.filter(|it| it.experiment == *experiment);
    let Some(it) = it else {
        return Err((expected(), format!("{id}, never opened")));
    };
    match &it.closed {
        Some((_, seq)) => Err((expected(), format!("{id}, closed at seq {seq}"))),
        None => Ok(it),
    }
}

/// Nothing is proposed or taken back once a sealed label was seen.
fn sealed_yet(state: &State, experiment: &ExperimentId, id: &IterationId, what: &str) -> Judged {
    let it = match live(state, experiment, id) {
        Ok(it) => it,
        Err(judged) => return Some(judged),
    };
    let seq = it.unsealed_seq?;
    no(
        format!("{what} before any label was unsealed"),
        format!("one unsealed at seq {seq}"),
    )
}

/// The patch is a candidate of the iteration that was neither rejected nor taken back.
fn stands(state: &State, iteration: &IterationId, patch: &PatchId) -> Judged {
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let found = match it.and_then(|it| it.candidates.get(patch)) {
        Some(candidate) if candidate.state == CandidateState::Proposed => return None,
        Some(candidate) => format!("{patch}, {}", candidate.state.as_str()),
        None => format!("{patch}, never proposed"),
    };
    no(format!("a candidate of {iteration} that stands"), found)
}

fn closed(state: &State, experiment: &ExperimentId, said: &IterationClosed) -> Judged {
    let it = match live(state, experiment, &said.iteration) {
        Ok(it) => it,
        Err(judged) => return Some(judged),
    };
    match (said.outcome, it.unsealed_seq) {
        (IterationOutcome::NoCandidate, Some(seq)) => no(
            "no peek spent on an iteration without candidate",
            format!("a label unsealed at seq {seq}"),
        ),
        (IterationOutcome::NoneAccepted, None) => no(
            "labels unsealed before every patch is refused on them",
            "none",
        ),
        _ => None,
    }
}

/// The parameters of an open iteration stand.
fn amended(state: &State, said: &ManifestAmended) -> Judged {
    let manifests = state.fold::<Manifests>();
    let record = manifests.by_id.get(&said.manifest.manifest)?;
    let experiment = record.experiment.as_ref()?;
    let (id, it) = state.fold::<Iterations>().open_in(experiment)?;
    let version = record.version(it.digest)?;
    if version.manifest.iteration == said.manifest.iteration {
        return None;
    }
    no(
        format!("the parameters of {id}, open since seq {}", it.opened_seq),
        "others (E_UNREGISTERED_RULE)",
    )
}
