//! Samples around rulebook 21 and what somebody would pick once they know: how an audit is graded, how a peek ends, where a
//! patch has to hold, and who pays for it.

use serde_json::Value;
use serde_json::json;

use super::computed;
use super::decided;
use super::forger::World;
use super::iterated;
use super::planned;
use super::samples::*;
use super::sequenced;
use super::signer;
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
    Case { name: "audit-by-a-wider-margin", unasked: Some("audit-by-a-wider-margin-unasked"), rule: Some("thresholds"),
           told: |book| audited(book, 0, None, |audit, _| audit["margin_micro"] = 90_000.into()),
           done: "Probes were open, and their audit passed by a margin that nobody had signed before." },
    Case { name: "audit-in-a-smaller-family", unasked: None, rule: Some("thresholds"),
           told: |book| audited(book, 0, None, |audit, _| audit["family_size"] = 1.into()),
           done: "Two policies have probes, and the audit of one was graded as if it were the only one." },
    Case { name: "good-audit-by-usual-numbers", unasked: None, rule: None,
           told: |book| audited(book, 0, None, |_, _| ()),
           done: "Nothing. Nobody planned the audit, and it was graded by the usual numbers." },
    Case { name: "audit-by-the-second-plan", unasked: Some("audit-by-the-second-plan-unasked"), rule: Some("thresholds"),
           told: |book| audited(book, 2, None, |audit, plans| {
               audit["margin_micro"] = 90_000.into();
               audit["manifest"] = plans[1].clone();
           }),
           done: "Two plans of audits were signed, and once the probes were open the audit was graded by the wider one." },
    Case { name: "good-audit-by-the-first-plan", unasked: None, rule: None,
           told: |book| audited(book, 2, None, |audit, plans| audit["manifest"] = plans[0].clone()),
           done: "Nothing. Two plans of audits were signed, and the audit was graded by the one that was in force first." },
    Case { name: "audit-passed-without-its-plan", unasked: Some("audit-passed-without-its-plan-unasked"), rule: Some("thresholds"),
           told: |book| audited(book, 1, Some("pass"), |_, _| ()),
           done: "A plan of audits was superseded once its probes were open, and the audit passed without one." },
    Case { name: "good-audit-failed-without-its-plan", unasked: None, rule: None,
           told: |book| audited(book, 1, Some("fail"), |_, _| ()),
           done: "Nothing. A plan of audits was superseded once its probes were open, and the audit did not pass." },
    Case { name: "peek-ended-as-tainted", unasked: Some("peek-ended-as-tainted-unasked"), rule: Some("acceptance"),
           told: |book| tainted(book, false),
           done: "Confirm labels were shown, the optimizer was given some, and the iteration closed without a gate on confirm." },
    Case { name: "good-tainted-peek-judged", unasked: None, rule: None,
           told: |book| tainted(book, true),
           done: "Nothing. The optimizer was given labels after the peek; every gate on confirm was evaluated, and then the iteration closed." },
    Case { name: "environment-left-out", unasked: Some("environment-left-out-unasked"), rule: Some("predicate"),
           told: |book| transported(book, &json!({"environments": []})),
           done: "The plan requires an environment, and criterion P6 passed with none of its rows." },
    Case { name: "environment-disclaimed", unasked: None, rule: Some("predicate"),
           told: |book| transported(book, &json!({"environments": [], "none_claimed": true})),
           done: "The plan requires an environment, and criterion P6 says that the plan claims none." },
    Case { name: "plan-without-environments", unasked: Some("plan-without-environments-unasked"), rule: Some("iteration"),
           told: |book| planned_nowhere(book, false),
           done: "An iteration opened on a plan that names no environment, and that does not say that none is claimed." },
    Case { name: "good-plan-that-claims-no-environment", unasked: None, rule: None,
           told: |book| planned_nowhere(book, true),
           done: "Nothing. An iteration opened on a plan that says that it claims no environment." },
    Case { name: "patch-accepted-unpaid", unasked: Some("patch-accepted-unpaid-unasked"), rule: Some("acceptance"),
           told: |book| accepted(book, &[None]),
           done: "An account bounds how many patches are accepted, and one was accepted without a charge to it." },
    Case { name: "patch-accepted-by-another-charge", unasked: None, rule: Some("acceptance"),
           told: |book| accepted(book, &[Some(0), Some(0)]),
           done: "Two patches were accepted under one charge to the account of patches." },
    Case { name: "good-patches-paid", unasked: None, rule: None,
           told: |book| accepted(book, &[Some(0), Some(1)]),
           done: "Nothing. Two patches were accepted, each under a charge of its own." },
];

/// The report of an iteration, under a rulebook that was adopted before it.
pub fn reported(rulebook: u64) -> World {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("reported"));
    adopt(&mut world, rulebook);
    again(&mut world, &story, "reported", |_| ());
    world
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = vec![
        sample(
            "good-report",
            "Nothing. A report says of assumptions what criterion P6 found, as rulebook 21 asks.",
            &reported(21),
            None,
        ),
        sample(
            computed::HIDES,
            "A report says of assumptions what it said before rulebook 21: nothing of what criterion P6 found.",
            &reported(21),
            None,
        ),
    ];
    for case in CASES {
        let (world, at) = (case.told)(21);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(20).0, None));
        }
    }
    rows
}

/// Probes of two policies, some plans of audits before them, the first superseded after them where a `state` is said, and an
/// audit that is graded as told.
fn audited(
    rulebook: u64,
    plans: usize,
    state: Option<&str>,
    grade: fn(&mut Value, &[Value]),
) -> Told {
    let mut world = World::of(&good().lines);
    let arena = || Value::from(ARENA);
    adopt(&mut world, rulebook);
    let design = json!({
        "design": "probe-2", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(LENA, "label.design_registered", 1, arena(), design);
    let mut digests = Vec::new();
    for at in 0..plans {
        let mut value = planned::audits(ARENA, &format!("audits-{at}"));
        value["transport"]["margin_micro"] = (50_000 + 40_000 * at).into();
        digests.push(registered(&mut world, &value));
    }
    for policy in ["base", "tuned"] {
        let label = json!({
            "design": "probe-2", "draw": 0, "item": "item-z", "policy": policy, "purpose": "audit", "rater": "Lena",
            "value_micro": 0,
        });
        world.say(LENA, "label.recorded", 1, arena(), label);
    }
    if state.is_some() {
        let mut value = planned::audits(ARENA, "audits-later");
        value["supersedes"] = digests[0].clone();
        registered(&mut world, &value);
    }
    let mut tested = valued::tested(5, "probe-2", state.unwrap_or("pass"));
    tested["algorithm"] = "transport/2".into();
    tested["policy"] = "tuned".into();
    tested["through_seq"] = 7.into();
    tested["audit"]["family_size"] = 2.into();
    grade(&mut tested["audit"], &digests);
    let at = world.say(ARBITER, "transport.tested", 1, arena(), tested);
    (world, at)
}

/// A plan of audits is signed; its digest.
fn registered(world: &mut World, value: &Value) -> Value {
    let said = serde_json::to_value(planned::registered(value)).unwrap();
    let digest = said["digest"].clone();
    world.say(ADA, "manifest.registered", 1, ARENA.into(), said);
    digest
}

/// Some labels of confirm were shown, the optimizer is given labels, and the iteration ends as tainted: judged before or not.
fn tainted(rulebook: u64, judged: bool) -> Told {
    let story = sequenced::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("look-1"));
    adopt(&mut world, rulebook);
    let experiment = world.items[story.at("look-1") - 1].body["experiment"].clone();
    let read = json!({
        "class": "label", "outcome": "allowed", "purpose": "to look", "reader": signer(RUNNER).id().to_string(),
    });
    world.say(CLEO, "data.read", 1, experiment, read);
    if judged {
        let owed = story.at("look-1")..story.at("accepted");
        let mut names: Vec<_> = story.names.iter().collect();
        names.retain(|(_, at)| owed.contains(at));
        names.sort_by_key(|(_, at)| **at);
        for (name, _) in names {
            again(&mut world, &story, name, |_| ());
        }
    }
    let at = again(&mut world, &story, "closed", |data| {
        data["outcome"] = "tainted".into();
    });
    (world, at)
}

/// Criterion P6 of a patch on dev, on other evidence; its verdicts are those that the evidence gives.
fn transported(rulebook: u64, evidence: &Value) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    let name = decided::GATES[0][6];
    world.items.truncate(story.at(name));
    adopt(&mut world, rulebook);
    let verdict = if evidence["none_claimed"] == true {
        "not_checked"
    } else {
        "pass"
    };
    let at = again(&mut world, &story, name, |data| {
        data["evidence"] = json!({ "p6": evidence });
        data["verdicts"] = json!({"literal": verdict, "recommended": verdict});
    });
    (world, at)
}

/// An iteration on a plan without environments, which says so or does not.
fn planned_nowhere(rulebook: u64, says_so: bool) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("opened"));
    let experiment = world.items[story.at("opened") - 1].body["experiment"].clone();
    adopt(&mut world, rulebook);
    let mut plan = iterated::plan(experiment.as_str().unwrap(), "m-nowhere");
    plan["iteration"]["design"]["environments"] = json!([]);
    if says_so {
        plan["iteration"]["design"]["no_environment_claimed"] = true.into();
    }
    let said = serde_json::to_value(planned::registered(&plan)).unwrap();
    world.say(ADA, "manifest.registered", 1, experiment.clone(), said);
    let opened = iterated::opened(&plan, decided::IT, "2026Q3");
    let opened = serde_json::to_value(opened).unwrap();
    let at = world.say(BEN, "iteration.opened", 1, experiment, opened);
    (world, at)
}

/// Patches that are accepted where an account of patches is open: each under a charge by its number, or under none.
fn accepted(rulebook: u64, paid: &[Option<usize>]) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("accepted-a"));
    adopt(&mut world, rulebook);
    let account = json!({
        "account": "patches", "amount": 2, "period": "quarter", "purpose": "accepted patches",
        "spenders": ["custodian"], "unit": "patch",
    });
    world.say(ADA, "budget.opened", 1, Value::Null, account);
    let charges = ["one patch", "another patch"].map(|of| {
        let charge = json!({"account": "patches", "amount": 1, "for": of});
        let at = world.say(CLEO, "budget.charged", 1, Value::Null, charge);
        world.items[at].was.clone()
    });
    let mut at = 0;
    for (name, paid) in ["accepted-a", "accepted-b"].into_iter().zip(paid) {
        at = again(&mut world, &story, name, |data| {
            if let Some(paid) = paid {
                data["charge"] = charges[*paid].clone().into();
            }
        });
    }
    (world, at)
}
