//! Which environments a plan of audits names, and how they are tested.

use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::manifest::TransportPlan;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Micro;

use crate::audits::Audits;
use crate::designs::Designs;
use crate::drifts::AuditPlan;
use crate::drifts::USUAL_Q;
use crate::drifts::audit_plan;
use crate::manifests::Manifests;

/// A family of environments is tested as the plan has it that was in force first, before a probe was open: all of it, at its
/// level and under its correction. Nobody tests what no plan names.
pub(super) fn check(
    state: &State,
    experiment: &ExperimentId,
    said: &EnvironmentsTested,
) -> RuleAnswer {
    // Whatever the rulebook: nobody tested environments before there was a plan of them.
    let design = state.fold::<Designs>().design(experiment, &said.design);
    let opened = design.and_then(|design| {
        if state.asks(Question::OneProbe) {
            design.opened()
        } else {
            design.first_open_seq
        }
    });
    let opened = opened.required("a label of the design that is open")?;
    let wanted = "a plan of audits that was in force before a probe was open and still is, and names the environments";
    let plan = audit_plan(state.fold::<Manifests>(), experiment, opened);
    let AuditPlan::Graded(version) = plan else {
        return unmet(wanted, "none");
    };
    let id = &version.manifest.manifest;
    ensure!(
        said.manifest == version.digest,
        format!(
            "the digest {} of {id}, the plan of audits that was in force first",
            version.digest
        ),
        said.manifest.to_string()
    );
    let plan = version.manifest.transport.as_ref().required(wanted)?;
    let planned = of_family(plan, &said.family);
    let found = said.environments.iter();
    let found: Vec<_> = found.map(|of| (of.scope.clone(), of.required)).collect();
    ensure!(
        !planned.is_empty() && found == planned,
        format!(
            "all {} environments of {} that {id} names, in its order",
            planned.len(),
            said.family
        ),
        format!("{} environments, or others", found.len())
    );
    ensure!(
        (said.q_micro, said.correction) == (level(plan), plan.correction),
        format!("level and correction of environments that {id} registers"),
        "others"
    );
    Ok(())
}

/// A policy is audited by probes that tested every family of the plan before: whoever drops a family drops the audit.
pub(super) fn check_families(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
    plan: &TransportPlan,
) -> RuleAnswer {
    if said.terms.environment.is_some() {
        return Ok(());
    }
    let tested = state.fold::<Audits>();
    let mut named = plan.environments.iter().filter_map(|of| of.family.as_ref());
    let untested = named.find(|family| !tested.has_family(experiment, &said.design, family));
    match untested {
        None => Ok(()),
        Some(family) => unmet(
            format!(
                "a test of the family {family} that the plan names, by {}, before this audit",
                said.design
            ),
            "none",
        ),
    }
}

/// The environments of a family that a plan names, each with whether a claim needs it to pass.
pub fn of_family(plan: &TransportPlan, family: &FamilyId) -> Vec<(EnvironmentScope, bool)> {
    let scopes = plan
        .environments
        .iter()
        .filter_map(|of| Some((of.scope()?, of.required)));
    scopes.filter(|(of, _)| of.family == *family).collect()
}

/// The level of a family of environments: the plan's, else the usual one.
pub fn level(plan: &TransportPlan) -> Micro {
    let usual = Micro::new(USUAL_Q).unwrap_or_default();
    plan.q_micro.unwrap_or(usual)
}
