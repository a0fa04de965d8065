//! The plan of a gate on its page: what is tested, at what risk, on what and by which values.

use crate::event::id::ManifestId;
use crate::event::payload::manifest::ArmRole;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Metric;
use crate::event::payload::manifest::MetricDirection;
use crate::event::payload::manifest::Test;
use crate::view::word;
use crate::workflow::gates::evidence::GateContext;

/// Registered looks that the page lists; more are counted.
const LOOKS_MAX: usize = 8;

/// The plan in force, on its page.
pub(super) fn rows(of: GateContext<'_>, id: &ManifestId) -> Vec<(&'static str, String)> {
    let Some(version) = of.record.in_force() else {
        return Vec::new();
    };
    let manifest = &version.manifest;
    let mut rows = vec![
        (
            "gate",
            format!("{id}, version {} in force", manifest.version),
        ),
        ("claim", manifest.hypothesis.claim.as_str().to_owned()),
    ];
    if let Some(test) = &manifest.test {
        rows.extend(terms(manifest, test, of));
    }
    rows.extend(values(manifest, of));
    rows
}

fn terms(manifest: &Manifest, test: &Test, of: GateContext<'_>) -> Vec<(&'static str, String)> {
    let micro = |value: crate::num::Micro| value.to_string();
    let mut risk = format!("alpha {}", micro(test.alpha_micro));
    for (name, value) in [
        ("kill", test.alpha_kill_micro),
        ("futile", test.beta_futile_micro),
        ("planned effect", test.delta_design_micro),
    ] {
        if let Some(value) = value {
            risk.push_str(&format!(" · {name} {}", micro(value)));
        }
    }
    let set = if test.without_replacement {
        "exactly these units"
    } else {
        "what the units were drawn from"
    };
    let mut rows = vec![
        (
            "test",
            format!(
                "{} · {} · margin {} · about {set}",
                word(&manifest.hypothesis.kind),
                word(&test.bettor.name),
                micro(test.null_margin_micro)
            ),
        ),
        ("risk", risk),
        ("units", format!("{} to {}", test.n_min, test.n_max)),
        ("looks", looks(test)),
    ];
    if let (Some(multiplicity), Some(family)) = (&manifest.multiplicity, of.family) {
        let text = format!(
            "{}, {} at {}, {} of {} members",
            multiplicity.family,
            word(&family.method),
            micro(multiplicity.family_alpha_micro),
            family.joined.len(),
            family.members_max
        );
        rows.push(("family", text));
    }
    rows
}

fn looks(test: &Test) -> String {
    let Some(at) = &test.look_at else {
        return "after any unit, whenever the arbiter looks".to_owned();
    };
    let first = at.iter().take(LOOKS_MAX).map(ToString::to_string);
    let first: Vec<_> = first.collect();
    let more = match at.len().saturating_sub(LOOKS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("after {}{more}", first.join(", "))
}

/// Where values come from, of whom, on which units.
fn values(manifest: &Manifest, of: GateContext<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(metric) = &manifest.metric {
        rows.extend(measured(metric, of));
    }
    for arm in manifest.arms.iter().flatten() {
        let name = match arm.role {
            ArmRole::Baseline => "baseline",
            ArmRole::Candidate => "candidate",
        };
        rows.push((name, format!("{} {}", arm.id, arm.artifact_digest)));
    }
    if let Some(data) = &manifest.data {
        let root = data.confirm_root.0.to_base64();
        rows.push((
            "confirm set",
            format!("{} units under {root}", data.n_units),
        ));
    }
    rows
}

fn measured(metric: &Metric, of: GateContext<'_>) -> Vec<(&'static str, String)> {
    let largest = metric.difference_max_micro;
    let largest = largest.map_or(String::new(), |most| format!(", differences to {most}"));
    let scale = format!(
        "{}, {} is better, {} to {}{largest}, draws of each arm: {}",
        metric.metric,
        match metric.direction {
            MetricDirection::Decrease => "less",
            MetricDirection::Increase => "more",
        },
        metric.scale_lo_micro,
        metric.scale_hi_micro,
        metric.repeats
    );
    let mut rows = vec![("metric", scale)];
    for guardrail in metric.guardrails.iter().flatten() {
        let (name, margin) = (&guardrail.metric, guardrail.margin_micro);
        rows.push(("guardrail", format!("{name}, worse by less than {margin}")));
    }
    for source in &of.gate.sources {
        let from = match (&source.judge, &source.design) {
            (Some(judge), _) => format!("scores of judge {judge}"),
            (_, Some(design)) => format!("labels revealed of design {design}"),
            _ => "none".to_owned(),
        };
        rows.push(("values", format!("{}: {from}", source.metric)));
    }
    rows
}
