//! Samples around rulebook 22 and what somebody would try again under another name once they have seen it: probes, a label, an
//! account.

use serde_json::Value;
use serde_json::json;

use super::decided;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_undone::sample;
use super::valued;

/// What was done under a rulebook: the history, and the position of the last event.
type Told = (World, usize);

/// A history under a rulebook, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    /// The name under the rulebook that did not ask, where the history comes twice.
    unasked: Option<&'static str>,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "probe-of-two-designs", unasked: Some("probe-of-two-designs-unasked"), rule: Some("purpose"),
           told: |book| probed_twice(book, "tuned"),
           done: "A draw was labelled as a probe of one design, and once it was seen as a probe of another one." },
    Case { name: "good-probes-of-two-designs", unasked: None, rule: None,
           told: |book| probed_twice(book, "base"),
           done: "Nothing. Two designs for audits have a probe each, of draws that they do not share." },
    Case { name: "audit-planned-between-its-designs", unasked: Some("audit-planned-between-its-designs-unasked"),
           rule: Some("thresholds"), told: |book| planned_between(book, true),
           done: "A probe was seen under one design, a plan was signed, and the audit of the probe under another design is graded by it." },
    Case { name: "good-audit-planned-between-its-designs", unasked: None, rule: None,
           told: |book| planned_between(book, false),
           done: "Nothing. A plan was signed between two designs that share a probe, and the audit is graded by the usual numbers." },
    Case { name: "audit-design-with-strata", unasked: Some("audit-design-with-strata-unasked"), rule: Some("design"),
           told: uneven,
           done: "A design for audits was registered with strata, and audits count each probe alike." },
    Case { name: "audit-passed-by-stratum", unasked: Some("audit-passed-by-stratum-unasked"), rule: Some("transport"),
           told: |book| audited_unevenly(book, "pass"),
           done: "Probes were drawn by stratum, and an audit that counts each of them alike passed." },
    Case { name: "good-audit-failed-by-stratum", unasked: None, rule: None,
           told: |book| audited_unevenly(book, "fail"),
           done: "Nothing. Probes were drawn by stratum under an older rulebook, and their audit did not pass." },
    Case { name: "label-said-otherwise", unasked: Some("label-said-otherwise-unasked"), rule: Some("score_once"),
           told: |book| labelled_twice(book, "Lena", 600_000),
           done: "A rater labelled a draw, and said something else of it under another design." },
    Case { name: "good-label-said-again", unasked: None, rule: None,
           told: |book| labelled_twice(book, "Lena", 400_000),
           done: "Nothing. A rater labelled a draw, and said the same of it under another design." },
    Case { name: "good-label-of-another-rater", unasked: None, rule: None,
           told: |book| labelled_twice(book, "Lars", 600_000),
           done: "Nothing. Two raters labelled one draw under two designs, and do not agree." },
    Case { name: "patch-paid-from-a-second-account", unasked: Some("patch-paid-from-a-second-account-unasked"),
           rule: Some("acceptance"),
           told: |book| accepted(book, &[("patches", "custodian"), ("patches-2", "custodian")], "patches-2"),
           done: "An account bounds how many patches are accepted, and one was paid from an account that was opened beside it." },
    Case { name: "patch-paid-by-optimizers", unasked: None, rule: Some("acceptance"),
           told: |book| accepted(book, &[("patches", "optimizer")], "patches"),
           done: "An accepted patch was paid from an account that optimizers may charge." },
    Case { name: "good-patch-paid-from-the-first-account", unasked: None, rule: None,
           told: |book| accepted(book, &[("patches-2", "custodian"), ("patches", "custodian")], "patches-2"),
           done: "Nothing. Two accounts of patches are open, and an accepted patch was paid from the one that was opened first." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(22);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(21).0, None));
        }
    }
    rows
}

fn arena() -> Value {
    Value::from(ARENA)
}

/// A design for a purpose, with a stratum or without.
fn designed(world: &mut World, name: &str, purpose: &str, has_strata: bool) -> usize {
    let mut design = json!({
        "design": name, "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": purpose,
    });
    if has_strata {
        design["strata"] = json!([{"inclusion_micro": 900_000, "stratum": "easy"}]);
    }
    world.say(LENA, "label.design_registered", 1, arena(), design)
}

/// An open label of a draw under a design.
fn labelled(world: &mut World, design: &str, purpose: &str, of: (&str, &str, i64)) -> usize {
    let (policy, rater, value) = of;
    let label = json!({
        "design": design, "draw": 0, "item": "item-z", "policy": policy, "purpose": purpose, "rater": rater,
        "value_micro": value,
    });
    world.say(LENA, "label.recorded", 1, arena(), label)
}

/// A probe of one design, and one of another design by another rater.
fn probed_twice(rulebook: u64, policy: &str) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    for design in ["probe-2", "probe-3"] {
        designed(&mut world, design, "audit", false);
    }
    labelled(&mut world, "probe-2", "audit", ("tuned", "Lena", 0));
    let at = labelled(&mut world, "probe-3", "audit", (policy, "Lars", 0));
    (world, at)
}

/// A plan of audits between two designs that share a probe, all under rulebook 21, and an audit by the second design: graded
/// by the plan or as is usual.
fn planned_between(rulebook: u64, by_plan: bool) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, 21);
    for design in ["probe-2", "probe-3"] {
        designed(&mut world, design, "audit", false);
    }
    labelled(&mut world, "probe-2", "audit", ("tuned", "Lena", 0));
    let mut plan = planned::audits(ARENA, "audits-0");
    plan["transport"]["margin_micro"] = 90_000.into();
    let said = serde_json::to_value(planned::registered(&plan)).unwrap();
    let digest = said["digest"].clone();
    world.say(ADA, "manifest.registered", 1, arena(), said);
    labelled(&mut world, "probe-3", "audit", ("tuned", "Lena", 0));
    if rulebook > 21 {
        adopt(&mut world, rulebook);
    }
    let at = tested(&mut world, (rulebook, "probe-3"), "pass", |audit| {
        if by_plan {
            audit["family_size"] = plan["transport"]["family_size"].clone();
            audit["margin_micro"] = 90_000.into();
            audit["manifest"] = digest;
        }
    });
    (world, at)
}

/// An audit of one policy by the only probe of a design.
fn tested(
    world: &mut World,
    (rulebook, design): (u64, &str),
    state: &str,
    grade: impl FnOnce(&mut Value),
) -> usize {
    let mut tested = valued::tested(5, design, state);
    tested["algorithm"] = "transport/2".into();
    tested["policy"] = "tuned".into();
    tested["through_seq"] = 7.into();
    if rulebook > 21 {
        tested["late"] = 0.into();
        tested["rows"] = 1.into();
    }
    grade(&mut tested["audit"]);
    world.say(ARBITER, "transport.tested", 1, arena(), tested)
}

/// A design for audits with strata.
fn uneven(rulebook: u64) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    let at = designed(&mut world, "probe-2", "audit", true);
    (world, at)
}

/// Probes that were drawn by stratum under rulebook 21, and their audit.
fn audited_unevenly(rulebook: u64, state: &str) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, 21);
    designed(&mut world, "probe-2", "audit", true);
    labelled(&mut world, "probe-2", "audit", ("tuned", "Lena", 0));
    if rulebook > 21 {
        adopt(&mut world, rulebook);
    }
    let at = tested(&mut world, (rulebook, "probe-2"), state, |_| ());
    (world, at)
}

/// A label for calibration, and one of the same draw under another design.
fn labelled_twice(rulebook: u64, rater: &str, value: i64) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    for design in ["calibrate-2", "calibrate-3"] {
        designed(&mut world, design, "calibrate", false);
    }
    let first = ("tuned", "Lena", 400_000);
    labelled(&mut world, "calibrate-2", "calibrate", first);
    let at = labelled(
        &mut world,
        "calibrate-3",
        "calibrate",
        ("tuned", rater, value),
    );
    (world, at)
}

/// A patch that is accepted under a charge to one of several accounts of patches, each with who may charge it.
fn accepted(rulebook: u64, accounts: &[(&str, &str)], paid: &str) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("accepted-a"));
    adopt(&mut world, rulebook);
    for (name, spender) in accounts {
        let mut spenders = vec!["custodian", *spender];
        spenders.dedup();
        let account = json!({
            "account": name, "amount": 2, "period": "quarter", "purpose": "accepted patches",
            "spenders": spenders, "unit": "patch",
        });
        world.say(ADA, "budget.opened", 1, Value::Null, account);
    }
    let charge = json!({"account": paid, "amount": 1, "for": "one patch"});
    let at = world.say(CLEO, "budget.charged", 1, Value::Null, charge);
    let charge = world.items[at].was.clone();
    let at = again(&mut world, &story, "accepted-a", |data| {
        data["charge"] = charge.into();
    });
    (world, at)
}
