//! The rule `iteration`: what an iteration opens on, what may happen in it, and that nothing moves once a
//! confirm label was seen.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::ManifestId;
use clover_event::id::PatchId;
use clover_event::payload::Role;
use clover_event::payload::budget::Period;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOpened;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::prereg::ManifestAmended;
use clover_event::payload::rubric::PatchRejected;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Code;
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

use crate::budgets::Budgets;
use crate::iterations::CandidateState;
use crate::iterations::Iteration;
use crate::iterations::Iterations;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::rubrics::Rubrics;

/// Fewest rows of an anchor policy.
const ANCHOR_ROWS_MIN: u64 = 200;
/// Most peeks of a quarter.
pub const PEEKS_MAX: u64 = 3;

/// The rule `iteration`.
#[derive(Clone, Copy, Debug)]
pub struct IterationRule;

impl Rule for IterationRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let checked = match &event.event.payload {
            Payload::AnchorSetRegistered(said) => check_anchors(said),
            Payload::IterationOpened(said) => check_opened(state, experiment, event, said),
            Payload::IterationClosed(said) => check_closed(state, experiment, said),
            Payload::ManifestAmended(said) => check_amended(state, said),
            Payload::PatchProposed(said) => {
                check_sealed(state, experiment, &said.iteration, "a proposal")
            }
            Payload::PatchRejected(said) => check_rejected(state, experiment, said),
            Payload::PatchWithdrawn(said) => {
                check_sealed(state, experiment, &said.iteration, "a withdrawal")
                    .and_then(|()| check_stands(state, &said.iteration, &said.patch))
            }
            _ => return,
        };
        breaches.take(RuleName::Iteration, checked);
    }
}

fn check_anchors(said: &AnchorSetRegistered) -> RuleAnswer {
    ensure!(
        said.high.policy != said.low.policy,
        "two policies",
        format!("{} twice", said.high.policy)
    );
    for rows in [&said.high, &said.low] {
        ensure!(
            rows.count.value() >= ANCHOR_ROWS_MIN,
            format!("at least {ANCHOR_ROWS_MIN} rows of {}", rows.policy),
            rows.count.to_string()
        );
    }
    Ok(())
}

/// An iteration opens on the manifest in force, on the rubric in force, and with a peek left.
fn check_opened(
    state: &State,
    experiment: &ExperimentId,
    event: &ProposedEvent<'_>,
    said: &IterationOpened,
) -> RuleAnswer {
    let design = check_bound(state, experiment, event, said)?;
    check_starts(state, experiment, design, said)?;
    check_peeks(state, event, design, said)
}

/// Every number comes from the manifest in force; gives its design.
fn check_bound<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    event: &ProposedEvent<'_>,
    said: &IterationOpened,
) -> Result<&'a IterationDesign, Unmet> {
    let (id, current) = in_force(state, experiment, said)?;
    let plan = current.manifest.iteration.as_ref();
    let Some((plan, design)) = plan.and_then(|plan| Some((plan, plan.design.as_ref()?))) else {
        return Err(Unmet {
            expected: "a manifest with iteration.design".to_owned(),
            found: format!("{id}, which has none"),
        });
    };
    let names = !design.environments.is_empty() || design.claims_no_environment();
    if state.asks(Question::ClaimedEnvironments) && !names {
        return Err(Unmet {
            expected: "a plan that names environments, or says no_environment_claimed".to_owned(),
            found: "neither".to_owned(),
        });
    }
    check_params(id, plan, design, said)?;
    let roles = current.manifest.roles.as_ref();
    let author = event.event.header.author;
    // A manifest may leave open who arbitrates; then the role is enough.
    if let Some(arbiter) = roles.and_then(|roles| roles.arbiter)
        && arbiter != author
    {
        return Err(Unmet {
            expected: format!("signed by roles.arbiter {arbiter}"),
            found: Code::SignerRole.of(author),
        });
    }
    Ok(design)
}

/// The version of a manifest of the experiment that an iteration opens on: the one in force.
fn in_force<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    said: &IterationOpened,
) -> Result<(&'a ManifestId, &'a ManifestVersion), Unmet> {
    let record = state
        .fold::<Manifests>()
        .of_digest(said.digest)
        .filter(|(_, record)| record.experiment.as_ref() == Some(experiment));
    let Some((id, record)) = record else {
        return Err(Unmet {
            expected: "the digest of a manifest of this experiment".to_owned(),
            found: said.digest.to_string(),
        });
    };
    if let Some(by) = &record.superseded_by {
        return Err(Unmet {
            expected: "a manifest in force".to_owned(),
            found: format!("one that {by} superseded"),
        });
    }
    let current = record.in_force().filter(|it| it.digest == said.digest);
    let current = current.ok_or_else(|| Unmet {
        expected: format!("the version of {id} in force"),
        found: Code::StaleVersion.of(said.digest),
    })?;
    Ok((id, current))
}

/// Parameters and rubric are those that were registered.
fn check_params(
    id: &ManifestId,
    plan: &IterationPlan,
    design: &IterationDesign,
    said: &IterationOpened,
) -> RuleAnswer {
    ensure!(
        *said.params == *plan,
        format!("params as {id} registered them, {}", plan.params_hash()),
        Code::UnregisteredRule.of(said.params.params_hash())
    );
    ensure!(
        said.params_hash == plan.params_hash(),
        format!("params_hash {}", plan.params_hash()),
        said.params_hash.to_string()
    );
    ensure!(
        said.rubric_hash == design.rubric_hash,
        format!("rubric_hash {}, as registered", design.rubric_hash),
        said.rubric_hash.to_string()
    );
    Ok(())
}

/// The rubric is in force, the anchors are registered, and no other iteration is open.
fn check_starts(
    state: &State,
    experiment: &ExperimentId,
    design: &IterationDesign,
    said: &IterationOpened,
) -> RuleAnswer {
    let rubric = state.fold::<Rubrics>().in_force(experiment);
    let rubric = rubric.required("a registered rubric")?;
    ensure!(
        rubric.hash == said.rubric_hash,
        format!("the rubric in force, {}", rubric.hash),
        said.rubric_hash.to_string()
    );
    let iterations = state.fold::<Iterations>();
    // A design may do without anchors.
    if let Some(anchors) = &design.anchors {
        let known = iterations.anchors.get(experiment);
        ensure!(
            known.is_some_and(|known| known.contains_key(anchors)),
            "a registered anchor set",
            anchors.to_string()
        );
    }
    if let Some(it) = iterations.by_id.get(&said.iteration) {
        let found = format!("{}, opened at seq {}", said.iteration, it.opened_seq);
        return unmet("an iteration id that is not used yet", found);
    }
    if let Some((open, it)) = iterations.open_in(experiment) {
        return unmet(
            "no open iteration",
            format!("{open}, opened at seq {}", it.opened_seq),
        );
    }
    Ok(())
}

/// A peek is left in the quarter that is named.
fn check_peeks(
    state: &State,
    event: &ProposedEvent<'_>,
    design: &IterationDesign,
    said: &IterationOpened,
) -> RuleAnswer {
    let quarter = event.recorded_at.quarter().to_string();
    ensure!(
        said.quarter == quarter,
        format!("quarter {quarter}"),
        said.quarter.clone()
    );
    let name = &design.peek_account;
    let account = state.fold::<Budgets>().accounts.get(name);
    let account = account.required(&format!("an account {name}"))?;
    ensure!(
        account.period == Period::Quarter && account.amount <= PEEKS_MAX,
        format!("account {name} with at most {PEEKS_MAX} peeks each quarter"),
        account.amount.to_string()
    );
    if state.asks(Question::PeekAccount) {
        for role in [Role::Optimizer, Role::MetaOptimizer] {
            ensure!(
                !account.spenders.contains(role),
                format!("an account {name} that no optimizer spends from"),
                format!("{role} among its spenders")
            );
        }
    }
    ensure!(
        account.left(event.recorded_at) > 0,
        format!("a peek left in {name} in {quarter}"),
        format!("{} of {} spent", account.amount, account.amount)
    );
    Ok(())
}

/// An iteration of this experiment that did not end.
fn live<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    id: &IterationId,
) -> Result<&'a Iteration, Unmet> {
    let expected = format!("an open iteration of {experiment}");
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(it) = it.filter(|it| it.experiment == *experiment) else {
        let found = format!("{id}, never opened");
        return Err(Unmet { expected, found });
    };
    match &it.closed {
        Some((_, seq)) => {
            let found = format!("{id}, closed at seq {seq}");
            Err(Unmet { expected, found })
        }
        None => Ok(it),
    }
}

/// Nothing is proposed or taken back once a sealed label was seen.
fn check_sealed(
    state: &State,
    experiment: &ExperimentId,
    id: &IterationId,
    what: &str,
) -> RuleAnswer {
    let it = live(state, experiment, id)?;
    if let Some(seq) = it.unsealed_seq {
        return unmet(
            format!("{what} before any label was unsealed"),
            format!("one unsealed at seq {seq}"),
        );
    }
    Ok(())
}

/// What is rejected in an open iteration is a candidate that stands, or a document that never became one.
fn check_rejected(state: &State, experiment: &ExperimentId, said: &PatchRejected) -> RuleAnswer {
    live(state, experiment, &said.iteration)?;
    match &said.patch {
        Some(patch) => check_stands(state, &said.iteration, patch),
        // The rule `patch` asks for a candidate at every stage but schema.
        None => Ok(()),
    }
}

/// The patch is a candidate of the iteration that was neither rejected nor taken back.
fn check_stands(state: &State, iteration: &IterationId, patch: &PatchId) -> RuleAnswer {
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let found = match it.and_then(|it| it.candidates.get(patch)) {
        Some(candidate) if candidate.state == CandidateState::Proposed => return Ok(()),
        Some(candidate) => format!("{patch}, {}", candidate.state.as_str()),
        None => format!("{patch}, never proposed"),
    };
    unmet(format!("a candidate of {iteration} that stands"), found)
}

fn check_closed(state: &State, experiment: &ExperimentId, said: &IterationClosed) -> RuleAnswer {
    let it = live(state, experiment, &said.iteration)?;
    match (said.outcome, it.unsealed_seq) {
        (IterationOutcome::NoCandidate, Some(seq)) => unmet(
            "no peek spent on an iteration without candidate",
            format!("a label unsealed at seq {seq}"),
        ),
        (IterationOutcome::NoneAccepted, None) => unmet(
            "labels unsealed before every patch is refused on them",
            "none",
        ),
        // What else an end says is asked by the rules `acceptance` and `sdp`.
        _ => Ok(()),
    }
}

/// The parameters of an open iteration stand.
fn check_amended(state: &State, said: &ManifestAmended) -> RuleAnswer {
    let manifests = state.fold::<Manifests>();
    // An amendment of an unknown manifest is refused by the rule `amendment`.
    let Some(record) = manifests.by_id.get(&said.manifest.manifest) else {
        return Ok(());
    };
    // A manifest of no experiment opens no iteration.
    let open = record
        .experiment
        .as_ref()
        .and_then(|experiment| state.fold::<Iterations>().open_in(experiment));
    let Some((id, it)) = open else {
        return Ok(());
    };
    let Some(version) = record.version(it.digest) else {
        // The iteration runs by another manifest.
        return Ok(());
    };
    ensure!(
        version.manifest.iteration == said.manifest.iteration,
        format!("the parameters of {id}, open since seq {}", it.opened_seq),
        Code::UnregisteredRule.of("others")
    );
    Ok(())
}
