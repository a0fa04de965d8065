//! Samples around prompts that one side of a comparison has no score of, under rulebooks 23 and 24.

use std::ops::Range;

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::ARBITER;
use super::samples::ARENA;
use super::samples::RUNNER_3;
use super::samples::good;
use super::tampered::Sample;
use super::tampered_chosen;
use super::tampered_names;
use super::valued;

/// Prompts that `other` has scores of; `tuned` has those from the third on.
const PROMPTS: u64 = 10;
const LACKING: u64 = 2;

/// What a comparison says of its prompts.
fn prompts(both: u64, first_only: u64, worst: f64) -> Value {
    json!({"both": both, "first_only": first_only, "second_only": 0, "uneven": 0, "worst": worst})
}

/// The prompts as they are: with labels from 0 to 1 two of ten move a difference by at most .2.
fn honest() -> Value {
    prompts(PROMPTS - LACKING, LACKING, 0.2)
}

/// A comparison of two policies with labels of their own, whose interval ends .1 above zero.
fn contrast(basis: &str, prompts: Value, is_told_apart: bool) -> Value {
    let reading = if is_told_apart {
        "told_apart"
    } else {
        "not_told_apart"
    };
    let mut data = valued::contrast(5);
    let said = data.as_object_mut().unwrap();
    said.remove("calibrator");
    said.remove("conservative");
    for side in ["first_claim", "second_claim"] {
        said.insert(side.to_owned(), "own_labels".into());
    }
    let basis = format!("prompt_cluster_{basis}");
    for (field, value) in [
        ("basis", basis.into()),
        ("difference", 0.15.into()),
        ("family", json!(["other", "tuned"])),
        ("first", "other".into()),
        ("interval", json!({"high": 0.2, "low": 0.1})),
        ("p", 0.001.into()),
        ("p_adjusted", 0.001.into()),
        ("prompts", prompts),
        ("reading", reading.into()),
        ("through_seq", 7.into()),
        ("told_apart", is_told_apart.into()),
    ] {
        said.insert(field.to_owned(), value);
    }
    data["terms"]["label_scale"] = json!({"high_micro": 1_000_000, "low_micro": 0});
    data["terms"]["labels"] = "targeted".into();
    data["terms"]["rows"] = "scored_before".into();
    data["first_late"] = 0.into();
    data["second_late"] = 0.into();
    data
}

/// A comparison that tells two policies apart by a prompt that both have.
pub fn apart() -> Value {
    contrast("paired", prompts(1, 0, 0.0), true)
}

/// The good ledger with scores of both policies, and the comparison.
fn compared(rulebook: u64, data: Value) -> (World, usize) {
    scored(rulebook, LACKING..PROMPTS, data)
}

/// The same, of a policy that has scores of these prompts.
fn scored(rulebook: u64, tuned: Range<u64>, data: Value) -> (World, usize) {
    let mut world = World::of(&good().lines);
    tampered_chosen::adopt(&mut world, rulebook);
    for (policy, prompts) in [("other", 0..PROMPTS), ("tuned", tuned)] {
        for at in prompts {
            let score = json!({
                "draw": 0, "item": format!("lacked-{at}"), "judge": "judge-1", "policy": policy, "score_micro": 500_000,
            });
            world.say(RUNNER_3, "score.recorded", 1, ARENA.into(), score);
        }
    }
    let at = world.say(ARBITER, "contrast.recorded", 1, ARENA.into(), data);
    (world, at)
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let sample = |name, done, rulebook: u64, data: Value, is_broken: bool| {
        let (world, at) = compared(rulebook, data);
        tampered_names::sample(name, done, &world, is_broken.then_some((at, "transport")))
    };
    let apart = |name, done, rulebook: u64, is_broken: bool| {
        let mut said = prompts(0, PROMPTS, 0.0);
        said["second_only"] = PROMPTS.into();
        let data = contrast("disjoint", said, true);
        let (world, at) = scored(rulebook, PROMPTS..2 * PROMPTS, data);
        tampered_names::sample(name, done, &world, is_broken.then_some((at, "transport")))
    };
    let mut uneven = contrast(
        "partial_overlap",
        prompts(PROMPTS - LACKING, LACKING, 0.05),
        true,
    );
    uneven["prompts"]["worst"] = 0.0.into();
    uneven["prompts"]["uneven"] = 4.into();
    uneven["terms"]
        .as_object_mut()
        .unwrap()
        .remove("label_scale");
    let mut silent = contrast("partial_overlap", honest(), true);
    silent.as_object_mut().unwrap().remove("prompts");
    vec![
        apart(
            "told-apart-by-no-common-prompt",
            "One policy has scores of ten prompts and another one of ten others, and a comparison tells them apart.",
            24,
            true,
        ),
        apart(
            "told-apart-by-no-common-prompt-unasked",
            "The same under an older rulebook, which did not ask: the verdict says so.",
            23,
            false,
        ),
        sample(
            "told-apart-with-prompts-missing",
            "A policy has no score for two of ten prompts, and a comparison tells it apart though their worst scores would change that.",
            23,
            contrast("partial_overlap", honest(), true),
            true,
        ),
        sample(
            "told-apart-with-uneven-draws",
            "A comparison says that draws of two policies are uneven on four prompts, and tells the policies apart all the same.",
            23,
            uneven,
            true,
        ),
        sample(
            "told-apart-with-prompts-missing-unasked",
            "The same under an older rulebook, which did not ask: the verdict says so.",
            22,
            silent.clone(),
            false,
        ),
        sample(
            "missing-prompts-left-unsaid",
            "A policy has no score for two of ten prompts, and a comparison says nothing of which prompts it is about.",
            23,
            silent,
            true,
        ),
        sample(
            "missing-prompts-said-to-be-there",
            "A policy has no score for two of ten prompts, and a comparison says that both policies have all of them.",
            23,
            contrast("paired", prompts(PROMPTS, 0, 0.0), true),
            true,
        ),
        sample(
            "missing-prompts-said-to-be-fewer",
            "A policy has no score for two of ten prompts, and a comparison of it says that one lacks.",
            23,
            contrast("partial_overlap", prompts(PROMPTS - 1, 1, 0.05), true),
            true,
        ),
        sample(
            "missing-prompts-made-light",
            "A policy has no score for two of ten prompts, and a comparison says that they could move it by less than a whole scale each.",
            23,
            contrast(
                "partial_overlap",
                prompts(PROMPTS - LACKING, LACKING, 0.05),
                true,
            ),
            true,
        ),
        sample(
            "missing-prompts-said-to-be-apart",
            "Two policies share eight prompts, and a comparison says that they share none, so that nothing would lack.",
            23,
            contrast("disjoint", prompts(0, PROMPTS, 0.0), true),
            true,
        ),
        sample(
            "good-comparison-beside-missing-prompts",
            "Nothing. A policy has no score for two of ten prompts, and a comparison of it tells nothing apart.",
            23,
            contrast("partial_overlap", honest(), false),
            false,
        ),
    ]
}
