//! The rules `manifest`, `gate`, `look` and `family` where they compute: a registered test can end, values of looks and closings equal what the recorded
//! observations give, within 1e-9, and verdicts exactly.

use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::event::payload::decision::GateContinued;
use crate::event::payload::decision::GateLooked;
use crate::event::payload::gate::GateOpened;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::manifests::Manifests;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::evidence::Found;
use crate::workflow::gates::family;

/// Largest difference of a recorded log wealth from the one computed again.
const TOLERANCE: f64 = 1e-9;

/// Looks and closings, computed again.
#[derive(Clone, Copy, Debug)]
pub struct Recomputed;

impl Rule for Recomputed {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let (rule, judged) = match &event.event.payload {
            Payload::ManifestRegistered(said) => {
                (RuleName::Manifest, registered(state, &said.manifest))
            }
            Payload::ManifestAmended(said) => {
                (RuleName::Amendment, registered(state, &said.manifest))
            }
            Payload::GateOpened(said) => (RuleName::Gate, opened(state, said)),
            Payload::GateContinued(said) => (RuleName::Gate, continued(state, said)),
            Payload::GateLooked(said) => (RuleName::Look, looked(state, said)),
            Payload::FamilyClosed(said) => {
                let found = family::rejected(state, &said.family, &said.evidence);
                let differs = found != said.rejected;
                let list = |ids: &[ManifestId]| {
                    let names: Vec<_> = ids.iter().map(ManifestId::as_str).collect();
                    format!(
                        "claims that hold: {}",
                        if names.is_empty() {
                            "none".to_owned()
                        } else {
                            names.join(", ")
                        }
                    )
                };
                (
                    RuleName::Family,
                    differs.then(|| (list(&found), list(&said.rejected))),
                )
            }
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
        breaches.extend(judged.map(|(expected, found)| Breach::new(rule, expected, found)));
    }
}

/// A gate that could not end by its claim is not registered: it would take its level from the family all the same.
fn registered(state: &State, manifest: &Manifest) -> Judged {
    if manifest.template != Template::Gate {
        return None;
    }
    let family = evidence::family_named(state.fold::<Manifests>(), manifest);
    let wrong = design::horizon(manifest, family)?;
    Some((wrong.expected, wrong.found))
}

fn opened(state: &State, said: &GateOpened) -> Judged {
    let manifests = state.fold::<Manifests>();
    let record = manifests.by_id.get(&said.gate)?;
    let manifest = &record.in_force()?.manifest;
    let family = evidence::family_of(manifests, record);
    let looks = design::looks(&said.test);
    let wrong = design::of(manifest, &said.test, family, None, looks).err()?;
    Some((wrong.expected, wrong.found))
}

fn continued(state: &State, said: &GateContinued) -> Judged {
    let known = evidence::known(state, &said.gate)?;
    let manifest = &known.record.in_force()?.manifest;
    let test = &known.gate.test;
    let looks = design::looks(test);
    let wrong = design::of(manifest, test, known.family, Some(&said.carried), looks).err()?;
    Some((wrong.expected, wrong.found))
}

fn looked(state: &State, said: &GateLooked) -> Judged {
    let known = evidence::known(state, &said.gate)?;
    // Elsewhere said: a look at another number of units, or at a gate that has ended.
    if said.n.value() != known.gate.n || known.gate.is_terminal() {
        return None;
    }
    match evidence::found(known) {
        Ok(found) => differs(&found, said),
        Err(wrong) => Some((wrong.expected, wrong.found)),
    }
}

/// The first value of a look that is not what the observations give.
fn differs(found: &Found, said: &GateLooked) -> Judged {
    let (now, then) = (&found.log_wealth, &said.log_wealth);
    let pairs = [
        ("claim", now.claim, then.claim),
        ("second", now.second, then.second),
        ("kill", now.kill, then.kill),
        ("futile", now.futile, then.futile),
    ];
    let wrong = |(name, now, then): (&str, Option<Finite>, Option<Finite>)| log(name, now, then);
    if let Some(judged) = pairs.into_iter().find_map(wrong) {
        return Some(judged);
    }
    let guardrails = said.guardrails.as_deref().unwrap_or_default();
    if guardrails.len() != found.guardrails.len() {
        let expected = format!("the wealth of {} guardrails", found.guardrails.len());
        return Some((expected, guardrails.len().to_string()));
    }
    for (expected, said) in found.guardrails.iter().zip(guardrails) {
        if let Some(judged) = log("guardrail", Some(*expected), Some(*said)) {
            return Some(judged);
        }
    }
    if let Some(judged) = log("log_e", Some(found.log_e), Some(said.log_e)) {
        return Some(judged);
    }
    let (p, stated) = (found.p.value(), said.p.value());
    if (p - stated).abs() > TOLERANCE {
        return Some((format!("p {p}"), format!("p {stated}")));
    }
    let cs = (said.cs_lo_micro.value(), said.cs_hi_micro.value());
    if cs != found.cs {
        let text = |(lo, hi): (i64, i64)| format!("a confidence interval from {lo} to {hi}");
        return Some((text(found.cs), text(cs)));
    }
    (said.standing != found.standing).then(|| {
        (
            format!("standing {:?}", found.standing),
            format!("{:?}", said.standing),
        )
    })
}

fn log(name: &str, expected: Option<Finite>, found: Option<Finite>) -> Judged {
    let text = |value: Option<Finite>| value.map_or("none".to_owned(), |value| value.to_string());
    let near = match (expected, found) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let (a, b) = (a.value(), b.value());
            // Relative where wealth is large: what is recorded is a sum of as many logarithms.
            (a - b).abs() <= TOLERANCE * a.abs().max(1.0)
        }
        _ => false,
    };
    if near {
        return None;
    }
    Some((
        format!("log wealth {} of {name}, computed again", text(expected)),
        text(found),
    ))
}
