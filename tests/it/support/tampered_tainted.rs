//! Samples around rulebook 25: audits, comparisons and judges that rest on entries of a compromised key, and which splits keep rows
//! from audits.

use clover::event::payload::Role;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_probed;
use super::tampered_probed::Audit;
use super::tampered_probed::Split;
use super::tampered_probed::arena;
use super::tampered_prompts;
use super::tampered_scales;
use super::tampered_undone::sample;
use super::valued;

/// What was done under a rulebook: the history, and the position of the event that is in doubt.
type Told = (World, usize);

/// A history under rulebook 25, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    /// The name under rulebook 24, which did not ask, where the history comes twice.
    unasked: Option<&'static str>,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "estimate-after-a-tainted-probe", unasked: Some("estimate-after-a-tainted-probe-unasked"), rule: Some("transport"),
           told: |book| claimed(book, &Pass::TAINTED),
           done: "The key that labelled a probe was compromised before, its audit passed, and an estimate claims a level by that." },
    Case { name: "good-estimate-after-a-tainted-probe", unasked: None, rule: None,
           told: |book| claimed(book, &Pass { claim: "refused", ..Pass::TAINTED }),
           done: "Nothing. The key that labelled a probe was compromised before, its audit passed, and an estimate claims nothing by that." },
    Case { name: "estimate-after-a-tainted-audit", unasked: Some("estimate-after-a-tainted-audit-unasked"), rule: Some("transport"),
           told: |book| claimed(book, &Pass { who: ARBITER, ..Pass::TAINTED }),
           done: "The key that signed a passed audit was compromised before, and an estimate claims a level by that audit." },
    Case { name: "good-estimate-after-another-audit", unasked: None, rule: None,
           told: |book| claimed(book, &Pass { again: true, ..Pass::TAINTED }),
           done: "Nothing. The key that labelled a probe was compromised, and an audit on a probe of another key passed since." },
    Case { name: "told-apart-after-a-tainted-probe", unasked: Some("told-apart-after-a-tainted-probe-unasked"), rule: Some("transport"),
           told: told_apart,
           done: "The key that labelled a probe was compromised before, its audit passed, and a comparison tells the policy apart." },
    Case { name: "judges-compared-by-tainted-labels", unasked: Some("judges-compared-by-tainted-labels-unasked"), rule: Some("judge"),
           told: tampered_scales::tainted_pair,
           done: "The key that labelled was compromised before, and a planned comparison names the better judge by that label." },
    Case { name: "audit-beside-unformed-confirm", unasked: Some("audit-beside-unformed-confirm-unasked"), rule: Some("transport"),
           told: |book| tampered_probed::audited(book, &Audit { rows: 4, split: Split::Unformed, ..Audit::GOOD }),
           done: "Three of four rows of a policy were listed for confirm, by a split that was never formed, and the audit passed by the fourth." },
    Case { name: "audit-beside-confirm-after-labels", unasked: None, rule: Some("transport"),
           told: |book| tampered_probed::audited(book, &Audit { rows: 4, split: Split::Of, ..Audit::GOOD }),
           done: "A split kept three of four rows of a policy for confirm once labels could be read, and the audit passed by the fourth." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(25);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(24).0, None));
        }
    }
    rows
}

/// An estimate of `tuned` by an audit that passed on one probe.
struct Pass {
    /// Whose key was compromised, from the probe on.
    who: u8,
    /// Whether an audit by a probe of another key passed since.
    again: bool,
    claim: &'static str,
}

impl Pass {
    const TAINTED: Self = Self {
        who: LENA,
        again: false,
        claim: "borrowed_checked",
    };
}

fn compromised(world: &mut World, who: u8, since: usize) {
    let data = json!({
        "key_id": signer(who).id().to_string(), "reason": "somebody else signed", "since_seq": since,
    });
    world.say(ADA, "key.compromised", 1, Value::Null, data);
}

/// A key that labels and computes, since another one ended.
fn stan(world: &mut World) {
    let added = key_added(
        &signer(STRANGER),
        "Stan",
        true,
        &[Role::Arbiter, Role::Labeler],
    );
    let data = serde_json::to_value(&added).unwrap();
    world.say(ADA, "key.added", 2, Value::Null, data);
}

/// Audits `tuned` again, by a probe that another key labelled.
fn audit_again(world: &mut World, first: usize) -> usize {
    let design = json!({
        "design": "probe-3", "inclusion_micro": 500_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(STRANGER, "label.design_registered", 1, arena(), design);
    tampered_probed::scored(world, "tuned", "item-y");
    let label = json!({
        "design": "probe-3", "draw": 0, "item": "item-y", "policy": "tuned", "purpose": "audit", "rater": "Stan",
        "value_micro": 0,
    });
    world.say(STRANGER, "label.recorded", 1, arena(), label);
    let mut data = world.items[first].body["data"].clone();
    data["design"] = "probe-3".into();
    data["through_seq"] = (world.items.len() - 1).into();
    world.say(STRANGER, "transport.tested", 1, arena(), data)
}

fn claimed(rulebook: u64, of: &Pass) -> Told {
    let (mut world, first) = tampered_probed::audited(rulebook, &Audit::GOOD);
    compromised(&mut world, of.who, first - 1);
    stan(&mut world);
    let stands = if of.again {
        audit_again(&mut world, first)
    } else {
        first
    };
    let mut data = valued::estimate(5, Some(("pass", stands as u64)));
    for (field, value) in [
        ("claim", of.claim.into()),
        // What is scored once a label of the policy can be read does not count.
        ("late", u64::from(of.again).into()),
        ("off_mode", 3.into()),
        ("policy", "tuned".into()),
        ("rows", 1.into()),
        ("through_seq", (world.items.len() - 1).into()),
    ] {
        data[field] = value;
    }
    data["terms"]["labels"] = "targeted".into();
    data["terms"]["rows"] = "scored_before".into();
    let at = world.say(STRANGER, "estimate.recorded", 1, arena(), data);
    (world, at)
}

/// A comparison of two policies with a prompt in common, of which one was audited.
fn told_apart(rulebook: u64) -> Told {
    let (mut world, first) = tampered_probed::audited(rulebook, &Audit::GOOD);
    tampered_probed::scored(&mut world, "other", "item-z");
    compromised(&mut world, LENA, first - 1);
    let mut data = tampered_prompts::apart();
    data["through_seq"] = (world.items.len() - 1).into();
    let at = world.say(ARBITER, "contrast.recorded", 1, arena(), data);
    (world, at)
}
