//! What the dev objective answers of a patch before anybody proposes it: P7 too, by a battery that ran for the answer.

use serde_json::Value;

use super::iterate;

/// Lifts the cap by which long answers earn nothing: then padding pays.
const UNCAP: &str = "patch:
  family: length_bias_cap
  id: long-answers-pay
  rationale: Long answers look under-scored; lift the cap.
  changes:
    guards.length_bias_cap:
      if_tokens_gt: 2000
      max_raw_score: 1
  constraints:
    max_tokens_added: 10
    affects_rescore: false
";

fn verdict_of_p7(gates: &Value) -> &Value {
    let mut gates = gates.as_array().unwrap().iter();
    &gates.find(|of| of["gate"] == "p7").unwrap()["verdict"]
}

#[test]
fn a_receipt_says_that_an_exploit_pays() {
    let mut desk = iterate::desk("--window 240 --confirm 60");
    iterate::opened(&mut desk);
    desk.ok("iterate run it-1 --to cards");
    let file = desk.file("uncap.yaml", UNCAP);
    let asked = desk
        .ok(&format!("patch objective {file} --iteration it-1 --json"))
        .json();
    assert_eq!(verdict_of_p7(&asked["data"]["gates"]), "fail", "{asked:#}");
    // Nobody proposed it: its battery is on no record, and the answer alone is.
    let batteries = desk.ok("log --kind battery.evaluated --json").json();
    let before = batteries["data"]["entries"].as_array().unwrap().len();
    desk.ok(&format!("iterate propose it-1 {file}"));
    desk.ok("iterate run it-1 --to gate");
    let batteries = desk.ok("log --kind battery.evaluated --json").json();
    let after = batteries["data"]["entries"].as_array().unwrap().len();
    assert_eq!(after, before + 1);
    let shown = desk.ok("iterate show it-1 --json").json();
    let gates = shown["data"]["candidates"][0]["dev"].as_array().unwrap();
    let p7 = gates.iter().find(|gate| gate["gate"] == "p7").unwrap();
    assert_eq!(p7["recommended"], "fail", "{p7:#}");
    // The answer is computed again as it was said.
    let receipts = desk.ok("log --kind dev.objective_queried --json").json();
    let seq = receipts["data"]["entries"][0]["seq"].as_u64().unwrap();
    desk.ok(&format!("replay {seq}"));
}
