//! Labels that were drawn by stratum, from their design to a claim: each counts with the probability that it was drawn with.

use std::fmt::Write as _;

use serde_json::Value;

use super::Desk;

/// Strata with every how many of their rows are labelled, and the mean label of each.
const STRATA: [(&str, usize, f64); 3] = [("common", 20, 0.2), ("mid", 5, 0.4), ("rare", 2, 0.7)];

/// The stratum of a prompt: half, three tenths and a fifth of them.
fn stratum(prompt: usize) -> usize {
    [0, 0, 0, 0, 0, 1, 1, 1, 2, 2][prompt % 10]
}

/// Whether a prompt is labelled: every so many of its stratum.
fn is_labelled(prompt: usize) -> bool {
    let of = stratum(prompt);
    let before = (0..prompt).filter(|other| stratum(*other) == of).count();
    before.is_multiple_of(STRATA[of].1)
}

/// A score and a label of a prompt, about a level.
fn drawn(prompt: usize, up: f64) -> (f64, f64) {
    let offset = ((prompt * 7 % 23) as f64 - 11.0) / 100.0;
    let label = STRATA[stratum(prompt)].2 + up + offset + ((prompt % 3) as f64 - 1.0) / 50.0;
    (0.45 + up + 2.0 * offset, label)
}

const PROMPTS: usize = 400;

/// Responses of a policy, with the fields that are to be kept.
fn responses(up: f64, is_labelled: &dyn Fn(usize) -> bool, has_stratum: bool) -> String {
    let mut text = String::new();
    for prompt in 0..PROMPTS {
        let (score, label) = drawn(prompt, up);
        write!(
            text,
            "{{\"prompt_id\":\"p{prompt:03}\",\"judge_score\":{score:.6}"
        )
        .unwrap();
        if is_labelled(prompt) {
            write!(text, ",\"oracle_label\":{label:.6}").unwrap();
        }
        if has_stratum {
            let name = STRATA[stratum(prompt)].0;
            write!(text, ",\"stratum\":\"{name}\"").unwrap();
        }
        text.push_str("}\n");
    }
    text
}

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok(
        "label design new calib --purpose calibrate --probability 0.05 --stratum mid=0.2 --stratum rare=0.5",
    );
    desk
}

fn taken_in(desk: &mut Desk, name: &str, text: &str, more: &str) {
    let file = desk.file(&format!("{name}_responses.jsonl"), text);
    desk.ok(&format!("import cje {file} --labels{more}"));
}

fn estimate(desk: &mut Desk) -> Value {
    desk.ok("estimate --json").json()["data"].clone()
}

/// The mean label of all rows by its strata: shares of the rows times mean labels, by hand from the file.
fn mean_by_stratum(up: f64) -> f64 {
    (0..STRATA.len())
        .map(|of| {
            let rows = (0..PROMPTS).filter(|prompt| stratum(*prompt) == of);
            let labels = rows.clone().filter(|prompt| is_labelled(*prompt));
            let labels: Vec<f64> = labels.map(|prompt| drawn(prompt, up).1).collect();
            let share = rows.count() as f64 / PROMPTS as f64;
            share * labels.iter().sum::<f64>() / labels.len() as f64
        })
        .sum()
}

#[test]
fn labels_drawn_by_stratum_are_weighted_and_claimed() {
    let mut desk = desk();
    for (name, up) in [("a", 0.0), ("b", 0.1)] {
        let text = responses(up, &is_labelled, true);
        taken_in(&mut desk, name, &text, " --field stratum");
    }
    let said = estimate(&mut desk);
    assert_eq!(said["terms"]["labels"], "weighted");
    assert_eq!(said["answer"]["may_be_claimed"], true, "{}", said["answer"]);
    for (at, up) in [(0, 0.0), (1, 0.1)] {
        let of = &said["policies"][at];
        assert_eq!(of["claim"], "own_labels");
        let alone = of["labels_only"]["mean"].as_f64().unwrap();
        // Labels are recorded to the sixth decimal.
        assert!((alone - mean_by_stratum(up)).abs() < 1e-6, "{of}");
        let interval = of["level"]["interval"].as_array().unwrap();
        let [low, high] = [&interval[0], &interval[1]].map(|end| end.as_f64().unwrap());
        // The level of the policy: .5 x .2 + .3 x .4 + .2 x .7 = .36, and .1 more.
        assert!(low < 0.36 + up && 0.36 + up < high, "{of}");
    }
    let page = desk.ok("estimate").out;
    assert!(
        page.contains("labels drawn by stratum, weighted by the probabilities of their design"),
        "{page}"
    );
    let compared = desk.ok("compare a b --json").json()["data"].clone();
    assert_eq!(compared["answer"]["may_be_claimed"], true);
    assert_eq!(compared["answer"]["best"], serde_json::json!(["b"]));
    desk.ok("verify --recompute");
}

fn refused(desk: &mut Desk, why: &str) {
    let said = estimate(desk);
    assert_eq!(
        said["answer"]["may_be_claimed"], false,
        "{}",
        said["answer"]
    );
    let text = said["answer"]["text"].as_str().unwrap();
    assert!(text.contains(why), "{text}");
    desk.ok("verify --recompute");
}

#[test]
fn labels_of_no_known_stratum_are_not_weighted() {
    let mut desk = desk();
    taken_in(&mut desk, "a", &responses(0.0, &is_labelled, false), "");
    refused(&mut desk, "no import says of which stratum a/p000/0 is");
    // What is said once labels are known does not count.
    let text = responses(0.0, &|_| false, true);
    let file = desk.file("a_responses.jsonl", &text);
    desk.ok(&format!("import cje {file} --field stratum --yes"));
    refused(&mut desk, "stratum");
}

#[test]
fn a_stratum_with_few_labels_is_refused() {
    let mut desk = desk();
    let few = |prompt: usize| is_labelled(prompt) && (stratum(prompt) != 0 || prompt < 150);
    let text = responses(0.0, &few, true);
    taken_in(&mut desk, "a", &text, " --field stratum");
    refused(&mut desk, "has too few labels in a stratum");
}

#[test]
fn more_labels_than_a_stratum_can_have_are_named() {
    let mut desk = desk();
    let many =
        |prompt: usize| is_labelled(prompt) || stratum(prompt) == 0 && prompt.is_multiple_of(3);
    let text = responses(0.0, &many, true);
    taken_in(&mut desk, "a", &text, " --field stratum");
    refused(&mut desk, "with the probability 0.05 are labelled");
}
