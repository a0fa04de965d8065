//! The rules `manifest`, `gate`, `look` and `family` where they compute: a registered test can end, values of looks and closings equal what the recorded
//! observations give, within 1e-9, and verdicts exactly.

use clover_event::Payload;
use clover_event::id::ManifestId;
use clover_event::payload::decision::FamilyClosed;
use clover_event::payload::decision::GateContinued;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
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
use clover_num::Finite;
use clover_projection::manifests::Manifests;

use crate::gates::design;
use crate::gates::design::Untestable;
use crate::gates::evidence;
use crate::gates::evidence::LookEvidence;
use crate::gates::family;
use crate::tolerance::Tolerance;

/// Looks and closings, computed again.
#[derive(Clone, Copy, Debug)]
pub struct GateRecomputation;

impl Rule for GateRecomputation {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let (rule, checked) = match &event.event.payload {
            Payload::ManifestRegistered(said) => {
                (RuleName::Manifest, check_horizon(state, &said.manifest))
            }
            Payload::ManifestAmended(said) => {
                (RuleName::Amendment, check_horizon(state, &said.manifest))
            }
            Payload::GateOpened(said) => (RuleName::Gate, check_opening(state, said)),
            Payload::GateContinued(said) => (RuleName::Gate, check_continuation(state, said)),
            Payload::GateLooked(said) => (RuleName::Look, check_look(state, said)),
            Payload::FamilyClosed(said) => (RuleName::Family, check_closing(state, said)),
            _ => return,
        };
        // What recorded facts refuse already needs no second finding of the same rule.
        let whole = rule == RuleName::Amendment
            && breaches
                .iter()
                .any(|breach| breach.rule == RuleName::Manifest);
        if whole || breaches.iter().any(|breach| breach.rule == rule) {
            return;
        }
        breaches.take(rule, checked);
    }
}

/// A design that cannot be is what was found.
fn untestable(wrong: Untestable) -> Unmet {
    Unmet {
        expected: wrong.expected,
        found: wrong.found,
    }
}

/// A gate that could not end by its claim is not registered: it would take its level from the family all the same.
fn check_horizon(state: &State, manifest: &Manifest) -> RuleAnswer {
    let is_gate = manifest.template == Template::Gate;
    if !is_gate {
        return Ok(());
    }
    let family = evidence::family_named(state.fold::<Manifests>(), manifest);
    match design::horizon(manifest, family) {
        None => Ok(()),
        Some(wrong) => Err(untestable(wrong)),
    }
}

fn check_opening(state: &State, said: &GateOpened) -> RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let record = manifests.by_id.get(&said.gate);
    let record = record.required("a gate's manifest of this experiment")?;
    let version = record.in_force().required("a version in force")?;
    let family = evidence::family_of(manifests, record);
    let looks = design::looks(&said.test);
    let design = design::of(&version.manifest, &said.test, family, None, looks);
    design.map(drop).map_err(untestable)
}

fn check_continuation(state: &State, said: &GateContinued) -> RuleAnswer {
    let known = evidence::known(state, &said.gate).required("an opened gate")?;
    let version = known.record.in_force().required("a version in force")?;
    let test = &known.gate.test;
    let looks = design::looks(test);
    let carried = Some(&said.carried);
    let design = design::of(&version.manifest, test, known.family, carried, looks);
    design.map(drop).map_err(untestable)
}

fn check_look(state: &State, said: &GateLooked) -> RuleAnswer {
    let Some(known) = evidence::known(state, &said.gate) else {
        // The rule `gate` refuses a look at no opened gate.
        return Ok(());
    };
    // Elsewhere said: a look at another number of units, or at a gate that has ended.
    let is_refused = said.n.value() != known.gate.n || known.gate.is_terminal();
    if is_refused {
        return Ok(());
    }
    check_values(&evidence::found(known).map_err(untestable)?, said)
}

/// The claims that a closing finds to hold are those that the procedure of its family does.
fn check_closing(state: &State, said: &FamilyClosed) -> RuleAnswer {
    let found = family::rejected(state, &said.family, &said.evidence);
    let list = |ids: &[ManifestId]| {
        let names: Vec<_> = ids.iter().map(ManifestId::as_str).collect();
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        format!("claims that hold: {names}")
    };
    ensure!(found == said.rejected, list(&found), list(&said.rejected));
    Ok(())
}

/// The values of a look are what the observations give; the first that is not is named.
fn check_values(found: &LookEvidence, said: &GateLooked) -> RuleAnswer {
    let (now, then) = (&found.log_wealth, &said.log_wealth);
    check_log("claim", now.claim, then.claim)?;
    check_log("second", now.second, then.second)?;
    check_log("kill", now.kill, then.kill)?;
    check_log("futile", now.futile, then.futile)?;
    let guardrails = said.guardrails.as_deref().unwrap_or_default();
    ensure!(
        guardrails.len() == found.guardrails.len(),
        format!("the wealth of {} guardrails", found.guardrails.len()),
        guardrails.len().to_string(),
    );
    for (expected, said) in found.guardrails.iter().zip(guardrails) {
        check_log("guardrail", Some(*expected), Some(*said))?;
    }
    check_log("log_e", Some(found.log_e), Some(said.log_e))?;
    let (p, stated) = (found.p.value(), said.p.value());
    ensure!(
        Tolerance::Probability.admits(p, stated),
        format!("p {p}"),
        format!("p {stated}")
    );
    let cs = (said.cs_lo_micro.value(), said.cs_hi_micro.value());
    let text = |(lo, hi): (i64, i64)| format!("a confidence interval from {lo} to {hi}");
    ensure!(cs == found.cs, text(found.cs), text(cs));
    ensure!(
        said.standing == found.standing,
        format!("standing {}", found.standing.as_str()),
        format!("standing {}", said.standing.as_str()),
    );
    Ok(())
}

fn check_log(name: &str, expected: Option<Finite>, found: Option<Finite>) -> RuleAnswer {
    let text = |value: Option<Finite>| value.map_or("none".to_owned(), |value| value.to_string());
    let near = match (expected, found) {
        (None, None) => true,
        (Some(a), Some(b)) => Tolerance::LogWealth.admits(a.value(), b.value()),
        _ => false,
    };
    ensure!(
        near,
        format!("log wealth {} of {name}, computed again", text(expected)),
        text(found),
    );
    Ok(())
}
