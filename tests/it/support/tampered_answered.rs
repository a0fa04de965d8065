//! Samples around rulebook 23 and what an audit of transport is worth: what answers a failed one, how wide its margin is, which
//! probes it takes, on which calibrator, and in which family.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
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
    Case { name: "failure-answered-by-one-label", unasked: Some("failure-answered-by-one-label-unasked"), rule: Some("transport"),
           told: |book| answered(book, 21),
           done: "An audit by 50 prompts failed, one more label of the policy came into the fit, and an estimate says nothing of the failure." },
    Case { name: "good-failure-answered-by-labels", unasked: None, rule: None,
           told: |book| answered(book, 70),
           done: "Nothing. An audit by 50 prompts failed, 50 more labels of the policy came into the fit, and the failure stands no more." },
    Case { name: "audit-by-the-margin-of-another-scale", unasked: Some("audit-by-the-margin-of-another-scale-unasked"),
           rule: Some("thresholds"), told: |book| on_scale(book, (0, 50_000), 50_000),
           done: "Labels go from 0 to 0.05, nobody planned an audit, and one passed within a margin as wide as the scale." },
    Case { name: "good-audit-by-the-margin-of-its-scale", unasked: None, rule: None,
           told: |book| on_scale(book, (1_000_000, 5_000_000), 200_000),
           done: "Nothing. Labels go from 1 to 5, nobody planned an audit, and one passed within 0.2, a twentieth of the scale." },
    Case { name: "probe-under-another-draw", unasked: Some("probe-under-another-draw-unasked"), rule: Some("purpose"),
           told: |book| probed_twice(book, ("item-z", 1)),
           done: "An answer to a prompt was a probe of one design, and once it was seen a probe of another one under another draw number." },
    Case { name: "good-probes-of-two-prompts", unasked: None, rule: None,
           told: |book| probed_twice(book, ("item-y", 0)),
           done: "Nothing. Two designs for audits have a probe each, of two prompts." },
    Case { name: "probe-after-its-audit", unasked: Some("probe-after-its-audit-unasked"), rule: Some("transport"),
           told: probed_after,
           done: "A policy was audited by the probes of a design, and then the design had one more probe of it." },
    Case { name: "audit-of-some-probes", unasked: Some("audit-of-some-probes-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { rows: 4, ..Audit::GOOD }),
           done: "A design draws every row of a policy, one of four has a label, and the audit passed." },
    Case { name: "audit-passed-with-some-probes", unasked: None, rule: Some("transport"),
           told: |book| audited(book, &Audit { rows: 4, obstacles: &["fewer_probes"], ..Audit::GOOD }),
           done: "A design draws every row of a policy, one of four has a label; the audit says so, and passed." },
    Case { name: "good-audit-of-some-probes", unasked: None, rule: None,
           told: |book| audited(book, &Audit { rows: 4, obstacles: &["fewer_probes"], state: "inconclusive", ..Audit::GOOD }),
           done: "Nothing. A design draws every row of a policy, one of four has a label; the audit says so, and passed nothing." },
    Case { name: "audit-on-a-later-fit", unasked: Some("audit-on-a-later-fit-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { refitted: Refitted::OnLabels, ..Audit::GOOD }),
           done: "A probe could be read, then a label for calibration was given, and the audit of a fit on it passed." },
    Case { name: "good-audit-on-a-later-fit", unasked: None, rule: None,
           told: |book| audited(book, &Audit { refitted: Refitted::OnLabels, obstacles: &["fitted_late"], state: "inconclusive", ..Audit::GOOD }),
           done: "Nothing. A label for calibration was given once a probe could be read; the audit of a fit on it says so, and passed nothing." },
    Case { name: "audit-on-terms-chosen-later", unasked: Some("audit-on-terms-chosen-later-unasked"), rule: Some("transport"),
           told: |book| audited(book, &Audit { refitted: Refitted::OnTerms, ..Audit::GOOD }),
           done: "A probe could be read, then somebody chose another kind of calibrator, and its audit passed." },
    Case { name: "good-audit-on-terms-chosen-later", unasked: None, rule: None,
           told: |book| audited(book, &Audit { refitted: Refitted::OnTerms, obstacles: &["other_terms"], state: "inconclusive", ..Audit::GOOD }),
           done: "Nothing. Another kind of calibrator was chosen once a probe could be read; its audit says so, and passed nothing." },
    Case { name: "audit-in-a-part-of-its-family", unasked: Some("audit-in-a-part-of-its-family-unasked"), rule: Some("thresholds"),
           told: |book| audited(book, &Audit { others: 3, ..Audit::GOOD }),
           done: "Five policies had scores when a probe could be read, and an audit that nobody planned counts itself as one of three." },
    Case { name: "good-audit-in-its-family", unasked: None, rule: None,
           told: |book| audited(book, &Audit { others: 3, family: 5, ..Audit::GOOD }),
           done: "Nothing. Five policies had scores when a probe could be read, and an audit counts itself as one of five." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(23);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(22).0, None));
        }
    }
    rows
}

/// How a calibrator was fitted once a probe could be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refitted {
    /// Not at all: that of the story is audited.
    No,
    /// On a label from after the probe.
    OnLabels,
    /// On older labels, in another mode.
    OnTerms,
}

/// An audit of `tuned` by the only probe of a design that draws every row.
struct Audit {
    /// Scored rows of the policy, before its label can be read.
    rows: usize,
    /// Other policies with a score, beside `base`.
    others: usize,
    refitted: Refitted,
    family: u64,
    obstacles: &'static [&'static str],
    state: &'static str,
}

impl Audit {
    const GOOD: Self = Self {
        rows: 1,
        others: 0,
        refitted: Refitted::No,
        family: 3,
        obstacles: &[],
        state: "pass",
    };
}

fn arena() -> Value {
    Value::from(ARENA)
}

fn under(rulebook: u64) -> World {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    world
}

/// Says something under the newest rulebook in terms that read only rows which were scored before labels, under an older one as
/// it is.
fn say(world: &mut World, rulebook: u64, kind: &str, mut data: Value) -> usize {
    if rulebook > 22 {
        data["terms"]["rows"] = "scored_before".into();
        if kind == "estimate.recorded" {
            data["late"] = 0.into();
            data["rows"] = 1.into();
        }
    }
    world.say(ARBITER, kind, 1, arena(), data)
}

/// A design for audits that draws every row.
fn designed(world: &mut World, name: &str) {
    let design = json!({
        "design": name, "inclusion_micro": 1_000_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(LENA, "label.design_registered", 1, arena(), design);
}

fn scored(world: &mut World, policy: &str, item: &str) {
    let score = json!({
        "draw": 0, "item": item, "judge": "judge-1", "policy": policy, "score_micro": 500_000,
    });
    world.say(RUNNER_3, "score.recorded", 1, arena(), score);
}

/// An open label of a draw under a design.
fn labelled(world: &mut World, (design, purpose): (&str, &str), of: (&str, &str, u64)) -> usize {
    valued_at(world, (design, purpose), of, 0)
}

/// The same with a value.
fn valued_at(
    world: &mut World,
    (design, purpose): (&str, &str),
    (policy, item, draw): (&str, &str, u64),
    value: i64,
) -> usize {
    let label = json!({
        "design": design, "draw": draw, "item": item, "policy": policy, "purpose": purpose, "rater": "Lena",
        "value_micro": value,
    });
    world.say(LENA, "label.recorded", 1, arena(), label)
}

/// A probe of a policy's only scored row.
fn probed(world: &mut World) {
    probed_at(world, 0);
}

/// The same with a label of this value.
fn probed_at(world: &mut World, value: i64) {
    designed(world, "probe-2");
    scored(world, "tuned", "item-z");
    let of = ("tuned", "item-z", 0);
    valued_at(world, ("probe-2", "audit"), of, value);
}

/// An audit of that policy.
fn tested(
    world: &mut World,
    (rulebook, calibrator): (u64, u8),
    change: impl FnOnce(&mut Value),
) -> usize {
    let mut tested = valued::tested(calibrator, "probe-2", "pass");
    tested["algorithm"] = "transport/2".into();
    tested["policy"] = "tuned".into();
    tested["through_seq"] = 7.into();
    tested["rows"] = 1.into();
    tested["late"] = 0.into();
    change(&mut tested);
    say(world, rulebook, "transport.tested", tested)
}

/// The story audited `base` by 50 prompts, on a fit with 20 labels of it, and the audit failed. Another fit has so many labels.
fn answered(rulebook: u64, labels: u64) -> Told {
    let mut world = under(rulebook);
    let newest = labelled(&mut world, ("calib", "calibrate"), ("base", "item-q", 0));
    let mut fit = valued::fitted(6, newest as u64);
    fit["labels_by_policy"][0]["labels"] = labels.into();
    say(&mut world, rulebook, "calibrator.fitted", fit);
    let mut data = valued::estimate(6, None);
    data["through_seq"] = newest.into();
    data["off_mode"] = 3.into();
    data["terms"]["labels"] = "targeted".into();
    let at = say(&mut world, rulebook, "estimate.recorded", data);
    (world, at)
}

/// Labels have a scale, which was declared under rulebook 22, and an audit is graded by a margin.
fn on_scale(rulebook: u64, (low, high): (i64, i64), margin: i64) -> Told {
    let mut world = under(22);
    let scale = json!({"high_micro": high, "low_micro": low});
    world.say(LENA, "label.scale_declared", 1, arena(), scale);
    if rulebook > 22 {
        adopt(&mut world, rulebook);
    }
    probed_at(&mut world, low);
    let at = tested(&mut world, (rulebook, 5), |data| {
        data["audit"]["margin_micro"] = margin.into();
    });
    (world, at)
}

/// A probe of one design, and one of another.
fn probed_twice(rulebook: u64, (item, draw): (&str, u64)) -> Told {
    let mut world = under(rulebook);
    probed(&mut world);
    designed(&mut world, "probe-3");
    let at = labelled(&mut world, ("probe-3", "audit"), ("tuned", item, draw));
    (world, at)
}

/// An audit, and then one more probe of its policy under its design.
fn probed_after(rulebook: u64) -> Told {
    let mut world = under(rulebook);
    probed(&mut world);
    tested(&mut world, (rulebook, 5), |_| ());
    let at = labelled(&mut world, ("probe-2", "audit"), ("tuned", "item-y", 0));
    (world, at)
}

fn audited(rulebook: u64, of: &Audit) -> Told {
    let mut world = under(rulebook);
    for at in 1..of.rows {
        scored(&mut world, "tuned", &format!("item-{at}"));
    }
    for at in 0..of.others {
        scored(&mut world, &format!("other-{at}"), "item-z");
    }
    probed(&mut world);
    let mut terms = valued::terms();
    let calibrator = match of.refitted {
        Refitted::No => 5,
        Refitted::OnLabels => {
            let newest = labelled(&mut world, ("calib", "calibrate"), ("base", "item-q", 0));
            let fit = valued::fitted(6, newest as u64);
            say(&mut world, rulebook, "calibrator.fitted", fit);
            6
        }
        Refitted::OnTerms => {
            terms["mode"] = "two_stage".into();
            let mut fit = valued::fitted(6, 2);
            fit["terms"] = terms.clone();
            say(&mut world, rulebook, "calibrator.fitted", fit);
            6
        }
    };
    let at = tested(&mut world, (rulebook, calibrator), |data| {
        data["audit"]["family_size"] = of.family.into();
        data["state"] = of.state.into();
        data["terms"] = terms;
        if !of.obstacles.is_empty() {
            data["obstacles"] = json!(of.obstacles);
        }
    });
    (world, at)
}
