//! Iterations whose confirm test is sequential, on the command line.

use serde_json::json;

use super::Desk;
use super::Ran;
use super::shipped;

/// An open iteration on the data that ship, with a sequential confirm test and its patch sealed. `effect` is what the
/// block is planned for.
pub(super) fn sealed(effect: u64, every: u64) -> Desk {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new mal --role adversary");
    desk.ok_words(&["record", "budget.opened", "--data", shipped::PEEKS]);
    let [mended, _] = clover::workflow::simulate::shipped::shipped();
    let mut plan = shipped::plan(&mended);
    plan["iteration"]["confirm_test"] = "sequential".into();
    let bare = desk.file("bare.yaml", &plan.to_string());
    let refused = desk.run(&format!("prereg check {bare}"));
    assert_ne!(refused.code, 0, "{}", refused.out);
    plan["iteration"]["effect_micro"] = effect.into();
    plan["iteration"]["sequential"] = json!({
        "alpha_harm_micro": 50_000, "beta_futile_micro": 100_000, "look_every": every,
    });
    shipped::proposed(&mut desk, &mended, &plan);
    desk.ok("iterate run it-mended --to seal");
    desk
}

pub(super) fn labels(desk: &mut Desk, kind: &str) -> usize {
    let list = desk
        .ok(&format!("log --kind {kind} --limit 5000 --json"))
        .json();
    list["data"]["entries"].as_array().unwrap().len()
}

/// Each part is in what it printed.
fn prints(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
}

/// Replays everything that can be, and judges the whole log again.
fn holds(desk: &mut Desk) {
    let replayed = desk.run("replay --all --json");
    assert_eq!(replayed.code, 0, "{}", replayed.out);
    desk.ok("verify");
    let recomputed = desk.ok("verify --recompute --json").json();
    assert_eq!(recomputed["verdict"], "verified", "{recomputed:#}");
}

#[test]
fn a_fix_crosses_before_the_end_and_is_judged_on_the_whole_block() {
    let mut desk = sealed(6_000, 100);
    let ran = desk.ok("iterate confirm it-mended --yes");
    println!("{}", ran.out);
    let shown = desk.ok("iterate show it-mended --json").json();
    let looks = shown["data"]["looks"].as_array().unwrap().clone();
    let last = &looks.last().unwrap()["look"];
    let test = &last["hypotheses"][0]["test"];
    assert_eq!(test["stop"], "crossed", "{test:#}");
    let at = test["units"].as_u64().unwrap();
    assert!(at < last["of_units"].as_u64().unwrap(), "{last:#}");
    // Crossing ends only the test: every label of the block is shown, and the gates stand on all of them.
    let all = labels(&mut desk, "label.sealed");
    assert_eq!(labels(&mut desk, "label.revealed"), all);
    let confirm = shown["data"]["candidates"][0]["confirm"]
        .as_array()
        .unwrap();
    assert_eq!(confirm.len(), 5, "{confirm:#?}");
    let p8 = confirm.iter().find(|gate| gate["gate"] == "p8").unwrap();
    assert_eq!(p8["evidence"]["p8"]["sequential"], *test, "{p8:#}");
    assert_eq!(p8["evidence"]["p8"]["loss"]["rows"], all as u64);
    assert!(p8["evidence"]["p8"]["p_exact"].is_number() && p8["evidence"]["p8"]["p_t"].is_number());
    let page = desk.ok("iterate show it-mended");
    prints(&page, &["looks at confirm", "crossed at", "p sequential"]);
    for line in page.out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert_eq!(labels(&mut desk, "budget.charged"), 1);
    desk.ok("iterate run it-mended --yes");
    holds(&mut desk);
}

#[test]
fn what_cannot_improve_as_planned_leaves_the_labels_sealed() {
    // No labels could show an improvement of .9: the first cluster shows that it is futile.
    let mut desk = sealed(900_000, 25);
    // Labels that the iteration alone may show cost no peek when somebody else asks for them, neither before it opens them
    // nor while it shows them in order.
    let unseal = [
        "confirm",
        "unseal",
        "hold",
        "--experiment",
        "mended",
        "--for",
        "audit",
        "--yes",
    ];
    desk.refused(&unseal, 11, &["confirm.unsealed of it-mended"]);
    assert_eq!(labels(&mut desk, "budget.charged"), 0);
    let ran = desk.ok("iterate confirm it-mended --yes");
    prints(&ran, &["futile at 1", "stay sealed"]);
    let shown = labels(&mut desk, "label.revealed");
    let looks = desk.ok("iterate show it-mended --json").json()["data"]["looks"].clone();
    assert_eq!(looks.as_array().unwrap().len(), 1);
    assert_eq!(looks[0]["look"]["units"], 25);
    let of = looks[0]["look"]["of_units"].as_u64().unwrap();
    assert!((shown as u64) < of, "{shown} of {of}");
    // The peek is spent, and the iteration ends with the patch rejected by p8.
    desk.refused(
        &unseal,
        11,
        &["in the order that iteration it-mended draws"],
    );
    assert_eq!(labels(&mut desk, "budget.charged"), 1);
    let closed = desk.run("iterate run it-mended --yes");
    assert_eq!(closed.code, 10, "{}{}", closed.out, closed.err);
    prints(&closed, &["p8 futile at cluster 1"]);
    assert_eq!(labels(&mut desk, "gate.evaluated"), 8);
    holds(&mut desk);
}
