//! Looks at an order: what is compared once it was seen otherwise is exploratory, and a plan from before keeps it claimable.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::doubts;

const SEEN: &str = "so an order is exploratory now";

/// The answer of a comparison, and what it says of earlier looks on record.
fn compared(desk: &mut Desk, line: &str) -> (Value, String) {
    let ran = desk.ok(&format!("{line} --json")).json();
    let answer = ran["data"]["answer"].clone();
    let warnings = ran["warnings"].to_string();
    (answer, warnings)
}

fn text(answer: &Value) -> &str {
    answer["text"].as_str().unwrap()
}

/// The entry that each recorded comparison says makes it exploratory.
fn since(desk: &mut Desk) -> Vec<Value> {
    let listed = desk.ok("log --kind contrast.recorded --json").json();
    let entries = listed["data"]["entries"].as_array().unwrap().clone();
    let mut seqs: Vec<u64> = entries
        .iter()
        .map(|of| of["seq"].as_u64().unwrap())
        .collect();
    seqs.sort_unstable();
    let said = seqs.iter().map(|seq| {
        let body = desk.ok(&format!("show {seq} --body")).out;
        let body: Value = serde_json::from_str(&body).unwrap();
        body["data"]["exploratory_since"].clone()
    });
    said.collect()
}

fn three() -> [(&'static str, std::ops::Range<u64>, f64); 3] {
    [("a", 0..80, 0.4), ("b", 0..80, 0.6), ("c", 0..80, 0.5)]
}

/// Given values of three policies on record; when two of them are compared; then that is exploratory and the command that may be
/// claimed is named, and it is claimed all the same.
#[test]
fn a_pair_that_was_picked_by_its_values_is_exploratory_and_the_whole_family_is_not() {
    let mut desk = doubts::desk("1", &three());
    desk.ok("estimate");
    let (picked, warnings) = compared(&mut desk, "compare a b");
    assert!(
        text(&picked).contains("Other values were recorded before"),
        "{picked}"
    );
    assert!(text(&picked).contains(SEEN), "{picked}");
    assert!(warnings.contains("clover compare --all"), "{warnings}");
    let (all, _) = compared(&mut desk, "compare --all");
    assert!(
        text(&all).starts_with("b is the best of 3 policies"),
        "{all}"
    );
    assert_eq!(all["may_be_claimed"], true);
    let said = since(&mut desk);
    assert!(said[0].is_u64(), "{said:?}");
    assert_eq!(said[1..], [Value::Null, Value::Null, Value::Null]);
    // Labels that come now leave what was claimed, and nothing more can be.
    desk.file("one.csv", "prompt_id,policy,label\np001,a,0.41\n");
    let ran = desk.run("import labels one.csv --design calib --rater second");
    assert!(
        ran.err.contains("was seen at seq"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (again, _) = compared(&mut desk, "compare --all");
    assert!(text(&again).contains(SEEN), "{again}");
    assert_eq!(again["best"], json!([]));
    desk.ok("verify --recompute");
    desk.replayed("");
    desk.ok("report estimate -o page.md");
    let page = std::fs::read_to_string(desk.at.join("page.md")).unwrap();
    assert!(page.contains("exploratory"), "{page}");
}

/// Given an order that one judge was asked for; when another judge of the same rows is asked, or the same rows in another
/// experiment; then both are exploratory.
#[test]
fn an_order_is_seen_by_every_judge_and_in_every_experiment_of_its_rows() {
    let mut desk = doubts::desk("1", &three()[..2]);
    let (first, _) = compared(&mut desk, "compare a b");
    assert!(!text(&first).contains(SEEN), "{first}");
    desk.ok("experiment register again --title Two --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1 --experiment again");
    for name in ["a", "b"] {
        desk.ok(&format!(
            "import cje {name}_responses.jsonl --labels --experiment again --judge other"
        ));
    }
    // Values of the other experiment say it too.
    let values = desk
        .ok("estimate --experiment again --judge other --json")
        .json();
    let values = values["data"]["answer"].clone();
    assert!(
        text(&values).contains("in another experiment before"),
        "{values}"
    );
    let (elsewhere, _) = compared(&mut desk, "compare a b --experiment again --judge other");
    assert!(text(&elsewhere).contains(SEEN), "{elsewhere}");
    assert_eq!(elsewhere["best"], json!([]));
    let said = since(&mut desk);
    assert_eq!(said.len(), 2);
    assert!(said[0].is_null() && said[1].is_u64(), "{said:?}");
    // What was claimed first stands.
    let (first, _) = compared(&mut desk, "compare a b --experiment arena");
    assert!(!text(&first).contains(SEEN), "{first}");
    desk.ok("verify --recompute");
}

/// Given a plan that names an order from 240 labels on; when values are looked at with fewer, and by another family; then those are
/// exploratory and spend nothing, and the planned order may be claimed.
#[test]
fn a_planned_order_is_claimed_whatever_was_seen_of_fewer_labels() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.file(
        "plan.yaml",
        "template: transport\nversion: 1\nmanifest: m-order\nexperiment: arena\ntitle: An order\nhypothesis:\n  \
         claim: one of them is best\n  kind: measure\nestimates:\n  correction: holm\n  order: {judge: judge, labels: 240, \
         policies: [a, b, c]}\ntransport:\n  margin_micro: 50000\n  alpha_micro: 50000\n  family_size: 1\n  power_micro: 800000\n  \
         residual_sd_micro: 200000\n  bias_micro: 0\n  clusters_min: 20\n  labels_per_cluster: 1\n  environments:\n    - \
         environment: d\n      clusters: 200\n      required: true\n",
    );
    desk.ok("prereg sign plan.yaml");
    let shown = desk.ok("prereg show m-order").out.replace('\n', " ");
    assert!(
        shown.contains("order of a, b, c by judge from 240 labels on"),
        "{shown}"
    );
    desk.ok("label design new calib --purpose calibrate --probability 1");
    for (name, prompts, level) in three() {
        if name == "c" {
            desk.ok("estimate");
            let (early, warnings) = compared(&mut desk, "compare a b");
            assert!(
                text(&early).contains("names an order from 240 labels on, and there are 160:"),
                "{early}"
            );
            // One verdict has one reason.
            assert!(!warnings.contains("240"), "{warnings}");
        }
        let file = format!("{name}_responses.jsonl");
        desk.file(&file, &doubts::responses(prompts, level));
        let ran = desk.ok(&format!("import cje {file} --labels"));
        assert!(!ran.err.contains("was seen at seq"), "{}", ran.err);
    }
    let (other, _) = compared(&mut desk, "compare a c");
    assert!(text(&other).contains(SEEN), "{other}");
    let (planned, _) = compared(&mut desk, "compare --all");
    assert!(
        text(&planned).starts_with("b is the best of 3 policies"),
        "{planned}"
    );
    assert_eq!(planned["may_be_claimed"], true);
    desk.ok("verify --recompute");
    desk.replayed("");
}

/// Given a comparison on record; when another names a look that is none; then it is refused.
#[test]
fn a_look_that_stands_nowhere_is_named_by_nobody() {
    let mut desk = doubts::desk("1", &three());
    desk.ok("compare a b");
    let first = desk.ok("log --kind contrast.recorded --json").json();
    let seq = first["data"]["entries"][0]["seq"].as_u64().unwrap();
    let body = desk.ok(&format!("show {seq} --body")).out;
    let mut stale: Value = serde_json::from_str::<Value>(&body).unwrap()["data"].take();
    stale["family"] = json!(["a", "b", "c"]);
    stale["exploratory_since"] = 1.into();
    let text = stale.to_string();
    let words = [
        "record",
        "contrast.recorded",
        "--experiment",
        "arena",
        "--data",
        &text,
    ];
    desk.refused(&words, 11, &["exploratory_since"]);
    desk.ok("verify");
}
