//! Rules of estimates and audits, as stories: `calibrator`, `transport`.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::payload::custody::RulebookAdopted;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::label::LabelDesignRegistered;
use clover::ground::sign::Signer;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use super::world::tell_all;
use crate::support::planned;
use crate::support::score;
use crate::support::signer;
use crate::support::text;
use crate::support::valued;
use crate::support::valued::payload;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn design(name: &str, purpose: DesignPurpose) -> Payload {
    LabelDesignRegistered {
        design: name.parse().unwrap(),
        inclusion_micro: Micro::new(50_000).unwrap(),
        protocol: "sdp-1".parse().unwrap(),
        purpose,
        strata: None,
    }
    .into()
}

fn tested(design: &str, state: &str) -> Payload {
    payload(Kind::TransportTested, &valued::tested(5, design, state))
}

fn fitted(calibrator: u8, newest_seq: u64) -> Payload {
    let mut data = valued::fitted(calibrator, newest_seq);
    let labels = data["labels_by_policy"].as_array_mut().unwrap();
    // New labels are of `base` alone.
    labels.push(json!({"labels": 20, "newest_seq": 3, "policy": "tuned"}));
    payload(Kind::CalibratorFitted, &data)
}

/// An estimate through another entry each, so that none is the same question.
fn estimate(calibrator: u8, through: u64, claim: &str, transport: Option<(&str, u64)>) -> Payload {
    let mut data: Value = valued::estimate(calibrator, transport);
    data["through_seq"] = through.into();
    data["claim"] = claim.into();
    data["off_mode"] = 3.into();
    payload(Kind::EstimateRecorded, &data)
}

/// A difference of `base` and another policy, with the audit that is said to stand against `base`.
fn contrast(through: u64, told_apart: bool, audit: Option<u64>) -> Payload {
    let mut data = claimed(
        "own_labels",
        if told_apart {
            "told_apart"
        } else {
            "not_told_apart"
        },
    );
    data["through_seq"] = through.into();
    data["told_apart"] = told_apart.into();
    if let Some(seq) = audit {
        data["first_transport"] = json!({"seq": seq, "state": "fail"});
        data["first_claim"] = "refused".into();
        data["reading"] = "unchecked".into();
    }
    payload(Kind::ContrastRecorded, &data)
}

/// A difference of `base`, with labels of its own, and another policy with this claim.
fn claimed(second: &str, reading: &str) -> Value {
    let mut data = valued::contrast(5);
    data["first_claim"] = "own_labels".into();
    data["second_claim"] = second.into();
    data["reading"] = reading.into();
    data["told_apart"] = (reading == "told_apart").into();
    data
}

/// What logged responses say of `base`.
fn weighted(through: u64, verdict: &str, audit: Option<u64>) -> Payload {
    let mut data = valued::weighted(5);
    data["policy"] = "base".into();
    data["through_seq"] = through.into();
    data["verdict"] = verdict.into();
    if let Some(seq) = audit {
        data["transport"] = json!({"seq": seq, "state": "fail"});
    }
    payload(Kind::OpeEstimated, &data)
}

/// An experiment with two designs for audits, one to calibrate, and a fit of calibrator 5.
fn begin(world: &mut dyn World) {
    let registered = ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: text("testing"),
        title: text("Experiment"),
    };
    world.say(&owner(), registered.into(), EXP);
    for (name, purpose) in [
        ("calib", DesignPurpose::Calibrate),
        ("first", DesignPurpose::Audit),
        ("second", DesignPurpose::Audit),
    ] {
        world.say(&owner(), design(name, purpose), EXP);
    }
    world.put_blobs(&[valued::MODEL, valued::ROWS]);
    world.say(&owner(), fitted(5, 3), EXP);
}

#[test]
fn what_names_a_calibrator_names_one_that_was_fitted() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), estimate(5, 3, "own_labels", None), EXP);
        world.refuse_saying(
            "calibrator",
            &["a calibrator of this judge, fitted before", "none"],
            &owner(),
            estimate(6, 4, "own_labels", None),
            EXP,
        );
    });
}

#[test]
fn a_finished_audit_is_not_run_again() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), tested("first", "fail"), EXP);
        world.say(&owner(), tested("second", "pass"), EXP);
        world.refuse_saying(
            "transport",
            &["the probes of this design have not audited yet: register a design with new labels"],
            &owner(),
            tested("first", "pass"),
            EXP,
        );
    });
}

#[test]
fn probes_belong_to_a_design_for_audit() {
    tell(SOLO, |world| {
        begin(world);
        world.refuse_saying(
            "transport",
            &[
                "a registered label design for audit",
                "calib, which is none",
            ],
            &owner(),
            tested("calib", "pass"),
            EXP,
        );
    });
}

#[test]
fn probes_that_were_open_cost_nothing() {
    tell(SOLO, |world| {
        begin(world);
        let charge = world.say(
            &owner(),
            payload(
                Kind::NoteRecorded,
                &serde_json::json!({"text": "not a charge"}),
            ),
            None,
        );
        let mut data = valued::tested(5, "first", "pass");
        data["charge"] = charge.to_string().into();
        world.refuse_saying(
            "transport",
            &["no charge for probes that were open from the start"],
            &owner(),
            payload(Kind::TransportTested, &data),
            EXP,
        );
    });
}

#[test]
fn a_failed_audit_marks_every_estimate_until_new_labels_recalibrate() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        let failed = Some(("fail", seq));
        world.say(&owner(), estimate(5, 4, "refused", failed), EXP);
        // Neither another calibrator on the old labels nor a passed audit lifts it.
        world.say(&owner(), fitted(6, 4), EXP);
        world.say(&owner(), tested("second", "pass"), EXP);
        world.say(&owner(), estimate(6, 5, "refused", failed), EXP);
        // New labels of the policy do.
        world.say(&owner(), fitted(7, seq + 1), EXP);
        world.say(&owner(), estimate(7, 6, "own_labels", None), EXP);
        // By the calibrator that the second audit passed, that audit stands.
        world.say(
            &owner(),
            estimate(5, 7, "own_labels", Some(("pass", seq + 3))),
            EXP,
        );
        world.refuse_saying(
            "transport",
            &["the audit that stands: no audit", "fail at seq"],
            &owner(),
            estimate(7, 8, "refused", failed),
            EXP,
        );
    });
}

#[test]
fn an_estimate_does_not_hide_its_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[
                &format!("the audit that stands: fail at seq {seq}"),
                "no audit",
            ],
            &owner(),
            estimate(5, 4, "own_labels", None),
            EXP,
        );
    });
}

#[test]
fn no_level_is_claimed_after_a_failed_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[
                "claim refused until base is recalibrated with new labels of it",
                "claim own_labels",
            ],
            &owner(),
            estimate(5, 4, "own_labels", Some(("fail", seq))),
            EXP,
        );
    });
}

#[test]
fn a_failed_audit_marks_differences_until_new_labels_recalibrate() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), contrast(3, true, None), EXP);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.say(&owner(), contrast(4, false, Some(seq)), EXP);
        // A passed audit does not lift it, nor does the mark stand against the other policy.
        world.say(&owner(), tested("second", "pass"), EXP);
        world.say(&owner(), contrast(5, false, Some(seq)), EXP);
        world.say(&owner(), fitted(7, seq + 1), EXP);
        world.say(&owner(), contrast(6, true, None), EXP);
        world.refuse_saying(
            "transport",
            &[
                "the audit that stands against base: no audit",
                "fail at seq",
            ],
            &owner(),
            contrast(7, false, Some(seq)),
            EXP,
        );
    });
}

#[test]
fn a_difference_does_not_hide_a_failed_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[
                &format!("the audit that stands against base: fail at seq {seq}"),
                "no audit",
            ],
            &owner(),
            contrast(4, false, None),
            EXP,
        );
    });
}

#[test]
fn a_difference_does_not_mark_the_policy_that_was_not_audited() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        let mut data = valued::contrast(5);
        for side in ["first_transport", "second_transport"] {
            data[side] = json!({"seq": seq, "state": "fail"});
        }
        world.refuse_saying(
            "transport",
            &["the audit that stands against tuned: no audit"],
            &owner(),
            payload(Kind::ContrastRecorded, &data),
            EXP,
        );
    });
}

#[test]
fn nothing_is_told_apart_after_a_failed_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[
                "nothing told apart until base is recalibrated with new labels of it",
                "told apart",
            ],
            &owner(),
            contrast(4, true, Some(seq)),
            EXP,
        );
    });
}

#[test]
fn a_failed_audit_marks_what_logged_responses_say() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), weighted(3, "warned", None), EXP);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.say(&owner(), weighted(4, "refused", Some(seq)), EXP);
        world.say(&owner(), fitted(7, seq + 1), EXP);
        world.say(&owner(), weighted(5, "admissible", None), EXP);
        world.refuse_saying(
            "transport",
            &["the audit that stands against it: no audit", "fail at seq"],
            &owner(),
            weighted(6, "refused", Some(seq)),
            EXP,
        );
    });
}

#[test]
fn logged_responses_do_not_hide_a_failed_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[&format!(
                "the audit that stands against it: fail at seq {seq}"
            )],
            &owner(),
            weighted(4, "refused", None),
            EXP,
        );
    });
}

#[test]
fn logged_responses_are_not_read_after_a_failed_audit() {
    tell(SOLO, |world| {
        begin(world);
        let seq = world.size();
        world.say(&owner(), tested("first", "fail"), EXP);
        world.refuse_saying(
            "transport",
            &[
                "verdict refused until base is recalibrated",
                "verdict warned",
            ],
            &owner(),
            weighted(4, "warned", Some(seq)),
            EXP,
        );
    });
}

/// From here on rulebook 18 judges.
fn adopt(world: &mut dyn World) {
    let version = Count::new(18).unwrap();
    world.say(&owner(), RulebookAdopted { version }.into(), None);
}

#[test]
fn a_side_that_nobody_checked_is_not_told_apart() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        let honest = claimed("borrowed_unchecked", "unchecked");
        world.say(&owner(), payload(Kind::ContrastRecorded, &honest), EXP);
        let mut data = claimed("borrowed_unchecked", "told_apart");
        data["through_seq"] = 4.into();
        world.refuse_saying(
            "transport",
            &[
                "reading unchecked, for own_labels and borrowed_unchecked",
                "reading told_apart",
            ],
            &owner(),
            payload(Kind::ContrastRecorded, &data),
            EXP,
        );
    });
}

#[test]
fn a_comparison_says_what_its_sides_rest_on() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        world.refuse_saying(
            "transport",
            &["the claims of both sides, and a reading"],
            &owner(),
            payload(Kind::ContrastRecorded, &valued::contrast(5)),
            EXP,
        );
    });
}

#[test]
fn a_checked_side_has_a_passed_audit() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        world.refuse_saying(
            "transport",
            &["a passed audit of tuned by this calibrator"],
            &owner(),
            payload(
                Kind::ContrastRecorded,
                &claimed("borrowed_checked", "told_apart"),
            ),
            EXP,
        );
    });
}

#[test]
fn own_labels_are_in_the_fit() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        let mut data = claimed("own_labels", "told_apart");
        data["second"] = "other".into();
        world.refuse_saying(
            "transport",
            &["a calibrator with labels of other"],
            &owner(),
            payload(Kind::ContrastRecorded, &data),
            EXP,
        );
    });
}

#[test]
fn what_is_told_apart_is_what_the_reading_says() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        let mut data = claimed("own_labels", "not_told_apart");
        data["told_apart"] = true.into();
        world.refuse_saying(
            "transport",
            &["told_apart as reading not_told_apart says", "true"],
            &owner(),
            payload(Kind::ContrastRecorded, &data),
            EXP,
        );
    });
}

#[test]
fn no_estimate_has_an_interval_of_width_zero() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        let mut data = valued::estimate(5, None);
        data["off_mode"] = 0.into();
        data["interval"] = json!({"high": 0.0, "low": 0.0});
        world.refuse_saying(
            "transport",
            &["an interval with a width, or none", "a width of zero"],
            &owner(),
            payload(Kind::EstimateRecorded, &data),
            EXP,
        );
    });
}

#[test]
fn an_estimate_says_how_far_its_labels_vary() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        world.refuse_saying(
            "transport",
            &["off_mode: how far its labels vary"],
            &owner(),
            payload(Kind::EstimateRecorded, &valued::estimate(5, None)),
            EXP,
        );
    });
}

/// A diagnosis of `tuned` with draws, whose direct level has this claim and verdict.
fn diagnosed(through: u64, claim: &str, verdict: &str) -> Payload {
    let mut data = valued::diagnosed();
    data["through_seq"] = through.into();
    data["direct_claim"] = claim.into();
    let guide = data["guide"].as_array_mut().unwrap();
    guide.push(json!({"estimator": "direct", "reasons": [], "verdict": verdict}));
    payload(Kind::OpeDiagnosed, &data)
}

#[test]
fn a_withheld_level_is_refused_beside_logged_responses() {
    tell_all(SOLO, "transport", |world| {
        begin(world);
        adopt(world);
        world.say(&owner(), diagnosed(3, "borrowed_unchecked", "warned"), EXP);
        world.refuse_saying(
            "transport",
            &["direct refused for claim refused", "admissible"],
            &owner(),
            diagnosed(4, "refused", "admissible"),
            EXP,
        );
    });
}

/// A plan that says how policies are compared and estimated.
fn plan(id: &str, estimates: &Value) -> Value {
    let mut value = planned::audits("exp-1", id);
    value["estimates"] = estimates.clone();
    value
}

/// The experiment under rulebook 22, with these plans in their order.
fn begin_planned(world: &mut dyn World, plans: &[Value]) {
    begin(world);
    let version = Count::new(22).unwrap();
    world.say(&owner(), RulebookAdopted { version }.into(), None);
    for plan in plans {
        world.say(&owner(), planned::registered(plan), EXP);
    }
}

/// A difference by a correction and a weight.
fn compared(through: u64, correction: Option<&str>, weight: Option<&str>) -> Payload {
    let mut data = claimed("borrowed_unchecked", "unchecked");
    data["through_seq"] = through.into();
    if let Some(correction) = correction {
        data["correction"] = correction.into();
    }
    if let Some(weight) = weight {
        data["terms"]["weight"] = weight.into();
    }
    payload(Kind::ContrastRecorded, &data)
}

/// A difference that a plan does not allow is found by every verifier; what the plan says may be said.
fn held_to_plan(
    plans: &[Value],
    (right, wrong): ([Option<&str>; 2], [Option<&str>; 2]),
    parts: &[&str],
) {
    tell_all(SOLO, "thresholds", |world| {
        begin_planned(world, plans);
        let [correction, weight] = right;
        world.say(&owner(), compared(3, correction, weight), EXP);
        let [correction, weight] = wrong;
        let said = compared(4, correction, weight);
        world.refuse_saying("thresholds", parts, &owner(), said, EXP);
    });
}

#[test]
fn a_comparison_has_the_correction_of_the_plan_that_was_in_force_first() {
    let plans = [
        plan("m-2", &json!({"correction": "holm"})),
        plan("m-1", &json!({"correction": "bonferroni"})),
    ];
    let parts = ["correction holm, as m-2 says", "correction bonferroni"];
    let pair = ([Some("holm"), None], [Some("bonferroni"), None]);
    held_to_plan(&plans, pair, &parts);
    // The usual one is as much another as any.
    let parts = [
        "correction holm, as m-2 says",
        "correction benjamini_hochberg",
    ];
    held_to_plan(&plans[..1], ([Some("holm"), None], [None, None]), &parts);
    // A plan may bind the usual one too.
    let usual = [plan("m-3", &json!({"correction": "benjamini_hochberg"}))];
    let parts = [
        "correction benjamini_hochberg, as m-3 says",
        "correction holm",
    ];
    held_to_plan(&usual, ([None, None], [Some("holm"), None]), &parts);
}

#[test]
fn a_comparison_has_the_weight_of_its_plan() {
    let plans = [plan("m-1", &json!({"weight": "tuned"}))];
    let pair = ([Some("holm"), Some("tuned")], [Some("holm"), None]);
    held_to_plan(&plans, pair, &["weight tuned, as m-1 says", "weight one"]);
}

#[test]
fn an_estimate_has_the_weight_of_its_plan() {
    tell_all(SOLO, "thresholds", |world| {
        begin_planned(world, &[plan("m-1", &json!({"weight": "one"}))]);
        world.say(&owner(), estimate(5, 3, "own_labels", None), EXP);
        let mut data = valued::estimate(5, None);
        data["off_mode"] = 3.into();
        data["terms"]["weight"] = "tuned".into();
        world.refuse_saying(
            "thresholds",
            &["weight one, as m-1 says", "weight tuned"],
            &owner(),
            payload(Kind::EstimateRecorded, &data),
            EXP,
        );
    });
}

/// Before outcomes a plan may be superseded, and the new one binds; after them the old one goes on to.
#[test]
fn a_plan_that_outcomes_were_seen_under_binds_for_good() {
    let first = plan("m-1", &json!({"correction": "holm"}));
    let mut later = plan("m-2", &json!({"correction": "bonferroni"}));
    later["supersedes"] = json!(planned::manifest(&first).digest());
    for (seen, binds, other) in [(false, "bonferroni", "holm"), (true, "holm", "bonferroni")] {
        tell_all(SOLO, "thresholds", |world| {
            begin_planned(world, std::slice::from_ref(&first));
            if seen {
                world.say(&owner(), score(1).payload, EXP);
            }
            world.say(&owner(), planned::registered(&later), EXP);
            world.say(&owner(), compared(3, Some(binds), None), EXP);
            world.refuse_saying(
                "thresholds",
                &[&format!("correction {binds}")],
                &owner(),
                compared(4, Some(other), None),
                EXP,
            );
        });
    }
}

/// A plan that comes after outcomes binds what comes after it.
#[test]
fn a_plan_after_outcomes_binds_from_there_on() {
    tell_all(SOLO, "thresholds", |world| {
        begin_planned(world, &[]);
        world.say(&owner(), score(1).payload, EXP);
        world.say(&owner(), compared(3, None, None), EXP);
        let plan = plan("m-1", &json!({"correction": "holm"}));
        world.say(&owner(), planned::registered(&plan), EXP);
        world.say(&owner(), compared(4, Some("holm"), None), EXP);
        world.refuse_saying(
            "thresholds",
            &["correction holm, as m-1 says"],
            &owner(),
            compared(5, None, None),
            EXP,
        );
    });
}
