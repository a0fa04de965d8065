//! Two patches of two families, each a true fix: accepted together where their composite holds, and one of them alone
//! where the two together move more than the plan allows.

use clover::num::Micro;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use super::shipped::PEEKS;
use super::shipped::lay_out;
use super::shipped::opening;
use super::shipped::plan;

/// A rubric with two mistakes: it does not know one of the domains of good sources, and takes ordinary answers for padded.
/// Each costs about as much as the other, and neither so much that the calibrator's share calls for more labels.
const RUBRIC: &str = "rubric:
  version: \"1.0\"
  target: Y
  sdp_version: sdp-1
  obligations:
    factual_adequacy:
      verification:
        allowed_domains: [example.org]
        mismatch_penalty: 0.3
  guards:
    length_bias_cap:
      if_tokens_gt: 104
      max_raw_score: 0.45
    tool_trace_consistency: true
";

/// A patch that mends one of them.
fn patch(family: &str, id: &str, change: &str) -> String {
    format!(
        "patch:\n  family: {family}\n  id: {id}\n  rationale: Good answers are under-scored.\n  changes:\n    {change}\n  \
         constraints:\n    max_tokens_added: 10\n    affects_rescore: false\n"
    )
}

fn world(name: &'static str) -> ShippedDataset {
    let [mended, _] = shipped();
    ShippedDataset {
        name,
        setting: Setting {
            confirm_rows: 300,
            label_noise_micro: Micro::new(20_000).unwrap(),
            share_micro: Micro::new(0).unwrap(),
            window_rows: 450,
            ..mended.setting
        },
        by_domain: true,
        eta_micro: 500,
        rubric: RUBRIC.to_owned(),
        patch: patch(
            "evidence_verification",
            &format!("{name}-sources"),
            "obligations.factual_adequacy.verification:\n      allowed_domains+: [data.example.edu]",
        ),
        patch_id: "sources",
        ..mended
    }
}

/// Where a slice has high stakes, the iteration waits before its sealing for a person who knows the field.
fn wait_for_reviews(desk: &mut Desk, name: &str) {
    let sources = format!("{name}-sources");
    let length = format!("{name}-length");
    let ran = desk.ok(&format!("iterate run it-{name} --yes"));
    let waits = format!("waits for a review that accepts {length}, because of slice cell ");
    assert!(ran.out.contains(&waits), "{}", ran.out);
    let seal = format!("it-{name}");
    let words = ["iterate", "seal", seal.as_str()];
    let expected = format!("sealing: expected a review that accepts {length}");
    desk.refused(&words, 11, &[&expected, "clover patch review"]);
    let mut said = |patch: &str, outcome: &str| {
        let findings = "read against ten answers";
        let words = [
            "patch",
            "review",
            patch,
            "--outcome",
            outcome,
            "--findings",
            findings,
        ];
        desk.ok_words(&words).out
    };
    said(&length, "accepted");
    let disputed = said(&sources, "disputed");
    assert!(
        disputed.contains("accepted by 0, disputed by 1"),
        "{disputed}"
    );
    assert!(disputed.contains("expected no dispute of"), "{disputed}");
    desk.refused(&words, 11, &["expected no dispute of", "one at seq "]);
    let words = [
        "patch",
        "review",
        sources.as_str(),
        "--outcome",
        "accepted",
        "--findings",
        "mended",
    ];
    desk.ok_words(&words);
    let list = desk
        .ok(&format!("patch list --iteration it-{name} --json"))
        .json();
    for patch in list["data"]["patches"].as_array().unwrap() {
        assert_eq!(
            patch["reviews"],
            json!({"accepted": 1, "disputed": 0, "noted": 0})
        );
    }
}

/// An iteration with both patches, whose patched rewards may move so far at most, in millionths of W1.
fn proposed(desk: &mut Desk, name: &'static str, w1_max: u64, reviewed: bool) {
    let of = world(name);
    lay_out(&desk.at, &of);
    let cap = patch(
        "length_bias_cap",
        &format!("{name}-length"),
        "guards.length_bias_cap.if_tokens_gt: 200",
    );
    desk.file(&format!("{name}/cap.yaml"), &cap);
    let mut plan = plan(&of);
    for (term, value) in [
        ("confirm_test", json!("t")),
        ("drift_max_micro", json!(60_000)),
        ("ece_slack_micro", json!(20_000)),
        ("hypotheses_max", json!(3)),
        ("shift_metric", json!("w1")),
        ("w1_max_micro", json!(w1_max)),
    ] {
        plan["iteration"][term] = value;
    }
    if reviewed {
        plan["iteration"]["design"]["slices"][0]["cells"][0]["stakes_micro"] = 700_000.into();
    }
    desk.file(&format!("{name}.yaml"), &plan.to_string());
    for line in opening(&of) {
        desk.ok(&line);
    }
    desk.ok(&format!("iterate run it-{name} --to cards"));
    desk.ok(&format!(
        "iterate propose it-{name} {name}/patch.yaml {name}/cap.yaml"
    ));
    if reviewed {
        wait_for_reviews(desk, name);
    }
}

/// The same, run to its end.
fn decided(desk: &mut Desk, name: &'static str, w1_max: u64, reviewed: bool) -> Value {
    proposed(desk, name, w1_max, reviewed);
    let ran = desk.ok(&format!("iterate run it-{name} --yes"));
    println!("{}", ran.out);
    desk.ok(&format!("iterate show it-{name} --json")).json()["data"].clone()
}

fn count(desk: &mut Desk, kind: &str) -> usize {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    list["data"]["entries"].as_array().unwrap().len()
}

/// A ledger of its own: no confirm block is looked at twice in one.
fn desk() -> Desk {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new aude --role auditor");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    desk
}

fn replays(desk: &mut Desk) {
    desk.replayed("");
    desk.ok("verify");
}

/// Nobody signs as adversary, so batteries are judged and no exploit is kept: one that was found in a single patch and rises a
/// little under the composite would be a regression of the composite.
#[test]
fn two_fixes_are_accepted_together_or_the_better_one_alone() {
    let mut desk = desk();
    let both = decided(&mut desk, "both", 200_000, true);
    assert_eq!(both["outcome"], "accepted", "{both:#}");
    assert_eq!(count(&mut desk, "patch.accepted"), 2, "{both:#}");
    let moved = |of: &Value, at: usize| -> f64 {
        let gates = of["candidates"][at]["dev"].as_array().unwrap();
        let p4 = gates.iter().find(|gate| gate["gate"] == "p4").unwrap();
        p4["evidence"]["p4"]["w1"].as_f64().unwrap()
    };
    let candidates = both["candidates"].as_array().unwrap().len();
    let mut w1: Vec<f64> = (0..candidates).map(|at| moved(&both, at)).collect();
    w1.sort_by(f64::total_cmp);
    println!("W1 on dev: {w1:?}");
    // The same data under a plan between the larger of the two and the composite: that one is stopped on dev.
    let [.., larger, composite] = w1[..] else {
        panic!("three candidates: {w1:?}");
    };
    assert!(composite > larger + 0.002, "{w1:?}");
    replays(&mut desk);
    if std::env::var_os("RUN_SLOW_TESTS").is_none() {
        println!(
            "skipped: RUN_SLOW_TESTS=1 runs the plan under which one of the two is accepted alone"
        );
        return;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share in millionths"
    )]
    let between = (f64::midpoint(larger, composite) * 1e6) as u64;
    // In the same ledger the block is spent, whatever the experiment is called, and no peek is paid to learn that. What was
    // decided on dev before stands recorded.
    proposed(&mut desk, "apart", between, false);
    let words = ["iterate", "run", "it-apart", "--yes"];
    let said = ["a confirm block that is not spent", "no peek was charged"];
    let ran = desk.words(&words);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(&ran, &said);
    assert_eq!(count(&mut desk, "budget.charged"), 1);
    assert_eq!(count(&mut desk, "confirm.unsealed"), 1);
    let mut desk = self::desk();
    let apart = decided(&mut desk, "apart", between, false);
    assert_eq!(apart["outcome"], "accepted", "{apart:#}");
    assert_eq!(count(&mut desk, "patch.accepted"), 1, "{apart:#}");
    let sealed = desk.ok("log --kind candidates.sealed --json").json();
    let seq = sealed["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["seq"].as_u64())
        .max();
    let sealing = desk.ok(&format!("show {} --body", seq.unwrap())).out;
    let sealing: Value = serde_json::from_str(&sealing).unwrap();
    assert_eq!(
        sealing["data"]["hypotheses"].as_array().unwrap().len(),
        2,
        "{sealing:#}"
    );
    replays(&mut desk);
}
