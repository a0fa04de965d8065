//! Samples around rulebook 24: through which entry an arbiter reads, which rows audits and environments draw from, by what a
//! failure is answered, whose labels a claim rests on, and what follows a breach.

use clover::projection::splits;
use serde_json::Value;
use serde_json::json;

use super::deployed;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_undone::sample;
use super::valued;

/// What was done under a rulebook: the history, and the position of the event that is in doubt.
type Told = (World, usize);

/// A history under rulebook 24, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    /// The name under rulebook 23, which did not ask, where the history comes twice.
    unasked: Option<&'static str>,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "estimate-through-an-older-label", unasked: Some("estimate-through-an-older-label-unasked"), rule: Some("transport"),
           told: |book| answered(book, &Fit { older: 1, ..Fit::GOOD }),
           done: "One more label came into the fit, and an estimate says that it was read through the entry before that label." },
    Case { name: "estimate-through-its-own-entry", unasked: None, rule: Some("transport"),
           told: |book| answered(book, &Fit { ahead: 2, ..Fit::GOOD }),
           done: "An estimate says that it was read through an entry that came after it." },
    Case { name: "good-failure-answered-by-prompts", unasked: None, rule: None,
           told: |book| answered(book, &Fit::GOOD),
           done: "Nothing. An audit by 50 prompts failed, labels of 50 more prompts came into the fit, and the failure stands no more." },
    Case { name: "failure-answered-by-one-prompt", unasked: Some("failure-answered-by-one-prompt-unasked"), rule: Some("transport"),
           told: |book| answered(book, &Fit { prompts: 21, ..Fit::GOOD }),
           done: "An audit by 50 prompts failed, 50 more draws of one prompt were labelled, and an estimate says nothing of the failure." },
    Case { name: "fit-without-its-prompts", unasked: None, rule: Some("transport"),
           told: |book| { let (world, at) = answered(book, &Fit { prompts: 0, ..Fit::GOOD }); (world, at - 1) },
           done: "A fit does not say of how many prompts its labels are." },
    Case { name: "estimate-of-tainted-labels", unasked: Some("estimate-of-tainted-labels-unasked"), rule: Some("transport"),
           told: |book| answered(book, &Fit { is_tainted: true, ..Fit::GOOD }),
           done: "The key that labelled was compromised before the newest label of a fit, and an estimate claims a level by it." },
    Case { name: "good-estimate-of-tainted-labels", unasked: None, rule: None,
           told: |book| answered(book, &Fit { is_tainted: true, claim: "refused", ..Fit::GOOD }),
           done: "Nothing. The key that labelled was compromised before the newest label of a fit, and an estimate by it claims nothing." },
    Case { name: "audit-through-an-older-score", unasked: Some("audit-through-an-older-score-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { older: 2, ..Audit::GOOD }),
           done: "An audit says that it was read through the entry before the score of its probe." },
    Case { name: "audit-beside-invented-confirm", unasked: Some("audit-beside-invented-confirm-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { rows: 4, split: Split::Invented, ..Audit::GOOD }),
           done: "A design draws every row of a policy, one of four has a label, a split keeps clusters for confirm that nobody has, and the audit passed." },
    Case { name: "audit-beside-later-confirm", unasked: Some("audit-beside-later-confirm-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { rows: 4, split: Split::Later, ..Audit::GOOD }),
           done: "A design draws every row of a policy, one of four has a label, then a split kept the three others for confirm, and the audit passed." },
    Case { name: "good-audit-beside-its-confirm", unasked: None, rule: None,
           told: |book| audited(book, &Audit { rows: 4, split: Split::Of, ..Audit::GOOD }),
           done: "Nothing. A split keeps three of four rows of a policy for confirm, then the fourth was labelled as the design draws, and the audit passed." },
    Case { name: "audit-by-the-margin-of-named-labels", unasked: Some("audit-by-the-margin-of-named-labels-unasked"), rule: Some("thresholds"),
           told: |book| audited(book, &Audit { scale: true, margin: 500_000, ..Audit::GOOD }),
           done: "Nobody declared a scale of labels, an audit names one from 0 to 10, and passed within a twentieth of it." },
    Case { name: "good-audit-by-the-margin-of-one", unasked: None, rule: None,
           told: |book| audited(book, &Audit { scale: true, ..Audit::GOOD }),
           done: "Nothing. Nobody declared a scale of labels, an audit names one from 0 to 10, and passed within 0.05." },
    Case { name: "local-audit-of-some-probes", unasked: Some("local-audit-of-some-probes-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { inside: Some((40, 40)), ..Audit::GOOD }),
           done: "A design draws every row of an environment, one of forty has a label, and the audit of a local calibrator passed." },
    Case { name: "local-audit-of-rows-unsaid", unasked: None, rule: Some("transport"),
           told: |book| audited(book, &Audit { inside: Some((0, 0)), ..Audit::GOOD }),
           done: "An audit of a local calibrator passed, and does not say how many rows its environment has." },
    Case { name: "good-local-audit-of-all-probes", unasked: None, rule: None,
           told: |book| audited(book, &Audit { inside: Some((1, 1)), ..Audit::GOOD }),
           done: "Nothing. A design draws every row of an environment, its only one has a label, and the audit of a local calibrator passed." },
    Case { name: "environment-of-some-probes", unasked: Some("environment-of-some-probes-unasked"), rule: Some("transport"),
           told: |book| tested(book, &Family { left: 400, ..Family::GOOD }),
           done: "A design draws every row, 130 of 400 rows of a domain have a label, and the domain passed." },
    Case { name: "good-environment-of-some-probes", unasked: None, rule: None,
           told: |book| tested(book, &Family { left: 400, verdict: "inconclusive", ..Family::GOOD }),
           done: "Nothing. A design draws every row, 130 of 400 rows of a domain have a label, and the domain passed nothing." },
    Case { name: "environments-of-some-probes", unasked: Some("environments-of-some-probes-unasked"), rule: Some("transport"),
           told: |book| tested(book, &Family { rows: 3, ..Family::GOOD }),
           done: "A design draws every row, one of three rows of a policy has a label, and two domains passed." },
    Case { name: "good-environments-of-some-probes", unasked: None, rule: None,
           told: |book| tested(book, &Family { rows: 3, verdict: "inconclusive", obstacles: &["fewer_probes"], ..Family::GOOD }),
           done: "Nothing. A design draws every row, one of three rows of a policy has a label; the test says so, and passed nothing." },
    Case { name: "environments-on-a-later-fit", unasked: Some("environments-on-a-later-fit-unasked"), rule: Some("transport"),
           told: |book| tested(book, &Family { is_refitted: true, ..Family::GOOD }),
           done: "Probes could be read, then a label for calibration was given, and two domains passed by a fit on it." },
    Case { name: "good-environments-on-a-later-fit", unasked: None, rule: None,
           told: |book| tested(book, &Family { is_refitted: true, verdict: "inconclusive", obstacles: &["fitted_late"], ..Family::GOOD }),
           done: "Nothing. A label for calibration was given once probes could be read; the test of a fit on it says so, and passed nothing." },
    Case { name: "good-environments-of-all-probes", unasked: None, rule: None,
           told: |book| tested(book, &Family::GOOD),
           done: "Nothing. A design draws every row, every row has a label, and two domains passed." },
    Case { name: "breach-left-alone", unasked: None, rule: Some("rollback"),
           told: breached,
           done: "A guardrail failed, nothing was rolled back, and somebody went on elsewhere." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(24);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(23).0, None));
        }
    }
    rows
}

/// A fit that answers a failed audit, and an estimate by it.
struct Fit {
    prompts: u64,
    claim: &'static str,
    /// Through how many entries before the newest label the estimate was read.
    older: u64,
    /// Or after it.
    ahead: u64,
    is_tainted: bool,
}

impl Fit {
    const GOOD: Self = Self {
        prompts: 70,
        claim: "own_labels",
        older: 0,
        ahead: 0,
        is_tainted: false,
    };
}

/// An audit of `tuned` by the only probe of a design that draws every row.
pub struct Audit {
    /// Scored rows of the policy, before its label can be read.
    pub rows: usize,
    pub split: Split,
    /// Whether terms name a scale of labels from 0 to 10.
    pub scale: bool,
    pub margin: u64,
    /// Rows of its environment, and those that are left; none said where both are 0.
    pub inside: Option<(u64, u64)>,
    /// Through how many entries before its own it was read, beside one.
    pub older: u64,
}

impl Audit {
    pub const GOOD: Self = Self {
        rows: 1,
        split: Split::None,
        scale: false,
        margin: 50_000,
        inside: None,
        older: 0,
    };
}

/// What a split keeps for confirm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// There is none.
    None,
    /// Clusters that nobody has.
    Invented,
    /// All rows of the policy but one, before its probe.
    Of,
    /// The same after it.
    Later,
    /// Listed as before its probe, and never formed.
    Unformed,
}

/// A family of two domains, tested by a probe of each policy.
struct Family {
    /// Scored rows of `tuned`, of which one has a label.
    rows: usize,
    /// Rows of each domain that are left to draw from.
    left: u64,
    is_refitted: bool,
    obstacles: &'static [&'static str],
    verdict: &'static str,
}

impl Family {
    const GOOD: Self = Self {
        rows: 1,
        left: 130,
        is_refitted: false,
        obstacles: &[],
        verdict: "pass",
    };
}

pub fn arena() -> Value {
    Value::from(ARENA)
}

fn under(rulebook: u64) -> World {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    world
}

/// Says something of rows that were scored before labels, read through the entry before it.
fn say(world: &mut World, kind: &str, change: impl FnOnce(&mut Value), mut data: Value) -> usize {
    data["terms"]["rows"] = "scored_before".into();
    data["through_seq"] = (world.items.len() - 1).into();
    change(&mut data);
    world.say(ARBITER, kind, 1, arena(), data)
}

/// A fit says of how many prompts its labels are, where the rulebook asks.
fn fit(rulebook: u64, mut data: Value, prompts: u64) -> Value {
    if rulebook > 23 && prompts > 0 {
        data["labels_by_policy"][0]["prompts"] = prompts.into();
    }
    data
}

fn designed(world: &mut World, name: &str) {
    let design = json!({
        "design": name, "inclusion_micro": 1_000_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(LENA, "label.design_registered", 1, arena(), design);
}

pub fn scored(world: &mut World, policy: &str, item: &str) {
    let score = json!({
        "draw": 0, "item": item, "judge": "judge-1", "policy": policy, "score_micro": 500_000,
    });
    world.say(RUNNER_3, "score.recorded", 1, arena(), score);
}

fn labelled(
    world: &mut World,
    (design, purpose): (&str, &str),
    (policy, item): (&str, &str),
) -> usize {
    let label = json!({
        "design": design, "draw": 0, "item": item, "policy": policy, "purpose": purpose, "rater": "Lena",
        "value_micro": 0,
    });
    world.say(LENA, "label.recorded", 1, arena(), label)
}

/// The story audited `base` by 50 prompts, on a fit with 20 labels of it, and the audit failed. Another fit has 70.
fn answered(rulebook: u64, of: &Fit) -> Told {
    let mut world = under(rulebook);
    let newest = labelled(&mut world, ("calib", "calibrate"), ("base", "item-q"));
    let mut fitted = valued::fitted(6, newest as u64);
    fitted["labels_by_policy"][0]["labels"] = 70.into();
    let fitted = fit(rulebook, fitted, of.prompts);
    say(&mut world, "calibrator.fitted", |_| (), fitted);
    if of.is_tainted {
        let data = json!({
            "key_id": signer(LENA).id().to_string(), "reason": "somebody else signed", "since_seq": newest,
        });
        world.say(ADA, "key.compromised", 1, Value::Null, data);
    }
    let through = newest as u64 - of.older + of.ahead;
    let change = |data: &mut Value| {
        data["off_mode"] = 3.into();
        data["late"] = 0.into();
        data["rows"] = 1.into();
        data["claim"] = of.claim.into();
        data["terms"]["labels"] = "targeted".into();
        data["through_seq"] = through.into();
    };
    let at = say(
        &mut world,
        "estimate.recorded",
        change,
        valued::estimate(6, None),
    );
    (world, at)
}

/// Lists a part of a split.
fn listed(world: &mut World, part: &str, clusters: &[String]) {
    let data = json!({"clusters": clusters, "first": 0, "part": part, "split": "split-2"});
    world.say(ARBITER, "splits.listed", 1, arena(), data);
}

/// Lists a split and forms it.
fn split(world: &mut World, confirm: &[String]) {
    let fit = vec!["fit-1".to_owned(), "fit-2".to_owned()];
    listed(world, "confirm", confirm);
    listed(world, "fit", &fit);
    let part = |clusters: &[String]| {
        let root = splits::members_root(clusters.iter().map(String::as_str));
        json!({"count": clusters.len(), "root": root})
    };
    let data = json!({
        "cluster_rule": "blake2b-mod3/1", "confirm": part(confirm), "dev": part(&[]), "fit": part(&fit),
        "gap": "not_checked", "seed": 7, "separation": "hashed", "split": "split-2",
    });
    world.say(ARBITER, "splits.formed", 1, arena(), data);
}

pub fn audited(rulebook: u64, of: &Audit) -> Told {
    let mut world = under(rulebook);
    let mut terms = valued::terms();
    let mut calibrator = 5;
    if of.scale {
        terms["label_scale"] = json!({"high_micro": 10_000_000, "low_micro": 0});
        calibrator = 6;
    }
    if of.inside.is_some() {
        terms["environment"] = valued::scope("domain", "law");
        calibrator = 6;
    }
    if calibrator == 6 {
        let mut fitted = valued::fitted(6, 61);
        fitted["terms"] = terms.clone();
        fitted["labels"] = 210.into();
        fitted["labels_by_policy"][0]["labels"] = 210.into();
        let fitted = fit(rulebook, fitted, 210);
        say(&mut world, "calibrator.fitted", |_| (), fitted);
    }
    designed(&mut world, "probe-2");
    let others: Vec<String> = (1..of.rows).map(|at| format!("item-{at}")).collect();
    for item in &others {
        scored(&mut world, "tuned", item);
    }
    match of.split {
        Split::Invented => {
            let nobody: Vec<String> = (10..28).map(|at| format!("nobody-{at}")).collect();
            split(&mut world, &nobody);
        }
        Split::Of => split(&mut world, &others),
        Split::Unformed => listed(&mut world, "confirm", &others),
        Split::None | Split::Later => {}
    }
    scored(&mut world, "tuned", "item-z");
    labelled(&mut world, ("probe-2", "audit"), ("tuned", "item-z"));
    if of.split == Split::Later {
        split(&mut world, &others);
    }
    let change = |data: &mut Value| {
        data["algorithm"] = "transport/2".into();
        data["policy"] = "tuned".into();
        data["rows"] = 1.into();
        data["late"] = 0.into();
        terms["rows"] = "scored_before".into();
        data["terms"] = terms;
        data["audit"]["margin_micro"] = of.margin.into();
        let through = data["through_seq"].as_u64().unwrap() - of.older;
        data["through_seq"] = through.into();
        if let Some((rows, left)) = of.inside.filter(|(rows, _)| rulebook > 23 && *rows > 0) {
            data["drawn"] = json!({"left": left, "rows": rows});
        }
    };
    let data = valued::tested(calibrator, "probe-2", "pass");
    let at = say(&mut world, "transport.tested", change, data);
    (world, at)
}

fn tested(rulebook: u64, of: &Family) -> Told {
    let mut world = under(rulebook);
    designed(&mut world, "probe-2");
    let mut plan = planned::audits(ARENA, "audits-1");
    let domain = |name: &str| json!({"clusters": 130, "environment": name, "family": "domain", "required": true});
    let policy = json!({"clusters": 400, "environment": "tuned", "required": true});
    plan["transport"]["environments"] = json!([policy, domain("law"), domain("medicine")]);
    let said = serde_json::to_value(planned::registered(&plan)).unwrap();
    let manifest = said["digest"].clone();
    world.say(ADA, "manifest.registered", 1, arena(), said);
    for at in 1..of.rows {
        scored(&mut world, "tuned", &format!("item-{at}"));
    }
    for policy in ["base", "tuned"] {
        scored(&mut world, policy, "item-z");
        labelled(&mut world, ("probe-2", "audit"), (policy, "item-z"));
    }
    let mut calibrator = 5;
    if of.is_refitted {
        calibrator = 6;
        let newest = labelled(&mut world, ("calib", "calibrate"), ("base", "item-q"));
        let fitted = fit(rulebook, valued::fitted(6, newest as u64), 20);
        say(&mut world, "calibrator.fitted", |_| (), fitted);
    }
    let found = [("law", of.verdict), ("medicine", of.verdict)];
    let data = valued::environments(calibrator, ("probe-2", &manifest), "domain", &found);
    let change = |data: &mut Value| {
        data["terms"]["labels"] = "weighted".into();
        for outcome in data["environments"].as_array_mut().unwrap() {
            (outcome["p"], outcome["p_adjusted"]) = (0.5.into(), 0.5.into());
            if rulebook > 23 {
                outcome["drawn"] = json!({"left": of.left, "rows": of.left});
            }
        }
        if !of.obstacles.is_empty() {
            data["obstacles"] = json!(of.obstacles);
        }
    };
    let at = say(&mut world, "environments.tested", change, data);
    (world, at)
}

/// A check that found a breach, and then a note.
fn breached(rulebook: u64) -> Told {
    let story = deployed::story();
    let mut world = World::of(&story.lines);
    let mut rest = world.items.split_off(story.at("breach"));
    let adopted = adopt(&mut world, rulebook);
    let mut breach = rest.remove(0);
    breach.recorded_at = world.items[adopted].recorded_at.plus_seconds(60);
    world.items.push(breach);
    let note = json!({"text": "everything is fine"});
    let at = world.say(ADA, "note.recorded", 1, Value::Null, note);
    (world, at)
}
