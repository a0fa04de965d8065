//! Samples around what estimates and comparisons claim under rulebook 18, and how labels count that were drawn by stratum
//! under rulebook 21, and how they follow a plan under rulebook 22.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::planned;
use super::samples::ADA;
use super::samples::ARBITER;
use super::samples::ARENA;
use super::samples::good;
use super::tampered::Sample;
use super::tampered_chosen;
use super::tampered_names;
use super::valued;

/// The good ledger under rulebook 18, with one more event of the arbiter's.
fn with(kind: &str, data: Value) -> (World, usize) {
    under(18, kind, data)
}

fn under(rulebook: u64, kind: &str, data: Value) -> (World, usize) {
    let mut world = World::of(&good().lines);
    tampered_chosen::adopt(&mut world, rulebook);
    let at = world.say(ARBITER, kind, 1, ARENA.into(), data);
    (world, at)
}

/// A difference of two policies that nobody audited.
fn contrast(claims: Option<(&str, &str)>) -> Value {
    let mut data = valued::contrast(5);
    data["through_seq"] = 7.into();
    data["first"] = "other".into();
    data["family"] = json!(["other", "tuned"]);
    data["told_apart"] = true.into();
    if let Some((claim, reading)) = claims {
        data["first_claim"] = claim.into();
        data["second_claim"] = claim.into();
        data["reading"] = reading.into();
        data["told_apart"] = (reading == "told_apart").into();
    }
    data
}

/// An estimate of a policy that nobody audited, of an experiment whose design for calibration has strata.
fn counted(labels: &str) -> Value {
    let mut data = valued::estimate(5, None);
    data["through_seq"] = 7.into();
    data["policy"] = "tuned".into();
    data["claim"] = "borrowed_unchecked".into();
    data["off_mode"] = 3.into();
    data["terms"]["labels"] = labels.into();
    data
}

/// How labels count that were drawn by stratum.
fn drawn() -> Vec<Sample> {
    let sample = |name, done, (world, at): (World, usize), broken: bool| {
        tampered_names::sample(name, done, &world, broken.then_some((at, "transport")))
    };
    let estimate = |rulebook, labels| under(rulebook, "estimate.recorded", counted(labels));
    let mut difference = contrast(Some(("borrowed_unchecked", "unchecked")));
    difference["terms"]["labels"] = "representative".into();
    vec![
        sample(
            "estimate-without-weights",
            "Labels were drawn by stratum with unequal probabilities, and an estimate counts each as if it stood for as many rows as any other.",
            estimate(21, "representative"),
            true,
        ),
        sample(
            "estimate-without-weights-unasked",
            "The same under an older rulebook, which did not ask: the verdict says so.",
            estimate(20, "representative"),
            false,
        ),
        sample(
            "comparison-without-weights",
            "Labels were drawn by stratum with unequal probabilities, and a comparison counts each as if it stood for as many rows as any other.",
            under(21, "contrast.recorded", difference),
            true,
        ),
        sample(
            "good-weighted-labels",
            "Nothing. Labels were drawn by stratum, and an estimate weights them by the probabilities of their design.",
            estimate(21, "weighted"),
            false,
        ),
        sample(
            "good-labels-by-stratum-unused",
            "Nothing. Labels were drawn by stratum, and an estimate has them correct nothing.",
            estimate(21, "targeted"),
            false,
        ),
    ]
}

/// The good ledger with plans that say how policies are compared and estimated, and then what was said.
fn after_plans(rulebook: u64, plans: &[Value], kind: &str, data: Value) -> (World, usize) {
    let mut world = World::of(&good().lines);
    tampered_chosen::adopt(&mut world, rulebook);
    for (at, estimates) in plans.iter().enumerate() {
        let mut value = planned::audits(ARENA, &format!("compared-{at}"));
        value["estimates"] = estimates.clone();
        let said = serde_json::to_value(planned::registered(&value)).unwrap();
        world.say(ADA, "manifest.registered", 1, ARENA.into(), said);
    }
    let at = world.say(ARBITER, kind, 1, ARENA.into(), data);
    (world, at)
}

/// What a plan says of estimates and comparisons, and what was recorded under it.
fn by_plan() -> Vec<Sample> {
    let sample = |name, done, (world, at): (World, usize), broken: bool| {
        tampered_names::sample(name, done, &world, broken.then_some((at, "thresholds")))
    };
    let compared = |rulebook, plans: &[Value], correction: Option<&str>| {
        let mut data = contrast(Some(("borrowed_unchecked", "unchecked")));
        data["terms"]["labels"] = "targeted".into();
        if let Some(correction) = correction {
            data["correction"] = correction.into();
        }
        after_plans(rulebook, plans, "contrast.recorded", data)
    };
    let estimated = |weight: &str| {
        let mut data = counted("targeted");
        data["terms"]["weight"] = weight.into();
        let plan = json!({"weight": "one"});
        after_plans(22, &[plan], "estimate.recorded", data)
    };
    let holm = json!({"correction": "holm"});
    let plans = [holm.clone(), json!({"correction": "bonferroni"})];
    vec![
        sample(
            "comparison-under-another-correction",
            "A plan binds comparisons to Holm's correction, and a comparison was corrected in the usual, weaker way.",
            compared(22, std::slice::from_ref(&holm), None),
            true,
        ),
        sample(
            "comparison-under-another-correction-unasked",
            "The same under an older rulebook, which did not ask: the verdict says so.",
            compared(21, &[holm], None),
            false,
        ),
        sample(
            "comparison-by-the-second-plan",
            "Two plans bind comparisons, and one was corrected as the later of them says.",
            compared(22, &plans, Some("bonferroni")),
            true,
        ),
        sample(
            "good-comparison-as-planned",
            "Nothing. Two plans bind comparisons, and one was corrected as the first of them says.",
            compared(22, &plans, Some("holm")),
            false,
        ),
        sample(
            "estimate-by-another-weight",
            "A plan binds estimates to whole predictions, and an estimate trusts them by a weight that it tuned on its labels.",
            estimated("tuned"),
            true,
        ),
    ]
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut found = claims();
    found.extend(drawn());
    found.extend(by_plan());
    found
}

fn claims() -> Vec<Sample> {
    let sample = |name, done, (world, at): (World, usize), broken: bool| {
        tampered_names::sample(name, done, &world, broken.then_some((at, "transport")))
    };
    let mut equal = valued::estimate(5, None);
    equal["through_seq"] = 7.into();
    equal["policy"] = "tuned".into();
    equal["claim"] = "borrowed_unchecked".into();
    equal["off_mode"] = 0.into();
    equal["interval"] = json!({"high": 0.0, "low": 0.0});
    let mut read = valued::diagnosed();
    read["through_seq"] = 7.into();
    read["direct_claim"] = "refused".into();
    read["guide"] = json!([{"estimator": "direct", "reasons": [], "verdict": "admissible"}]);
    let audit = |algorithm: &str, low: f64| {
        let mut data = valued::tested(5, "probe", "pass");
        data["algorithm"] = algorithm.into();
        data["policy"] = "tuned".into();
        data["through_seq"] = 7.into();
        data["mean_residual"] = 0.02.into();
        for width in ["narrow", "wide"] {
            data[width]["interval"] = json!({"high": 0.02, "low": low});
            data[width]["min_margin_for_pass"] = 0.02.into();
        }
        data
    };
    let unchecked = contrast(Some(("borrowed_unchecked", "unchecked")));
    let apart = contrast(Some(("borrowed_unchecked", "told_apart")));
    let checked = contrast(Some(("borrowed_checked", "told_apart")));
    vec![
        sample(
            "good-unchecked",
            "Nothing. Two policies without labels of their own and without an audit were compared, and read as unchecked.",
            with("contrast.recorded", unchecked),
            false,
        ),
        sample(
            "unchecked-told-apart",
            "Two policies without labels of their own and without an audit were told apart.",
            with("contrast.recorded", apart),
            true,
        ),
        sample(
            "comparison-without-claims",
            "A comparison tells two policies apart and does not say what either side rests on.",
            with("contrast.recorded", contrast(None)),
            true,
        ),
        sample(
            "checked-by-no-audit",
            "A comparison claims that audits checked its sides, and there is no passed audit of either.",
            with("contrast.recorded", checked),
            true,
        ),
        sample(
            "equal-labels-as-exact",
            "An estimate from equal labels has an interval of width zero.",
            with("estimate.recorded", equal),
            true,
        ),
        sample(
            "good-bounded-audit",
            "Nothing. Probes with equal labels were audited, and the interval reaches as far as their bound.",
            with("transport.tested", audit("transport/2", -0.02)),
            false,
        ),
        sample(
            "audit-without-bound",
            "Probes with equal labels were audited by the sample variance alone, which is zero.",
            with("transport.tested", audit("transport/1", -0.02)),
            true,
        ),
        sample(
            "audit-of-width-zero",
            "An audit passed by an interval of width zero.",
            with("transport.tested", audit("transport/2", 0.02)),
            true,
        ),
        sample(
            "withheld-level-read",
            "A level that is withheld is called admissible beside logged responses.",
            with("ope.diagnosed", read),
            true,
        ),
    ]
}
