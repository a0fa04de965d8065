//! An iteration whose judge has not scored its rows yet: `iterate score` asks it from the texts on record, goes on where a
//! judge that hangs stopped it, and only then is anything computed.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::iterate;
use super::says;
use crate::support::verifiers;

/// A score that depends on the answer alone; for the item that a file names it never comes.
const JUDGE: &str = r#"import json, sys, time
hangs_at = open("hangs-at.txt").read()
for line in sys.stdin:
    ask = json.loads(line)
    if ask["item"] == hangs_at:
        time.sleep(600)
    words = len(ask["response"].split())
    print('{"id":%d,"score":%.6f}' % (ask["id"], min(words, 200) / 200), flush=True)
"#;

/// Items of a file in its order.
fn items(desk: &Desk, path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(desk.at.join(path)).unwrap();
    let lines = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["prompt_id"].as_str().unwrap().to_owned()
    });
    lines.collect()
}

/// How many rows a judge has a record of.
fn recorded(desk: &mut Desk, judge: &str) -> usize {
    let list = desk.ok("judge list --json").json();
    let all = list["data"]["judges"].as_array().unwrap().clone();
    let mine = all.iter().find(|of| of["judge"] == judge).unwrap();
    usize::try_from(mine["rows"].as_u64().unwrap()).unwrap()
}

fn count(desk: &mut Desk, kind: &str) -> usize {
    let list = desk.ok(&format!("log --kind {kind} --json --limit 100000"));
    list.json()["data"]["entries"].as_array().unwrap().len()
}

/// Rows that were imported with the scores of one judge, and an open iteration of another, which scored the anchors alone.
fn opened(desk: &mut Desk) {
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok_words(&["record", "budget.opened", "--data", iterate::PEEKS]);
    desk.ok("simulate dataset --truth citations --seed 7 --slices 4 --window 240 --confirm 60 --fresh 1000 -o sim");
    desk.ok("rubric register sim/rubric.yaml --experiment sim");
    desk.file("judge.py", JUDGE);
    desk.file("hangs-at.txt", "nothing");
    desk.ok("judge run --judge prog --model prog-1 --rows sim/anchors --known sim/known.json -- python3 judge.py");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("label design new hold --purpose confirm --probability 1");
    let import = "import cje sim/responses --judge old --field domain --field level";
    desk.ok(import);
    desk.ok("experiment split sim --seed 1 --hashed");
    desk.ok(&format!(
        "{import} --labels=calib --seal hold --reveal-by 2027-06-01T00:00:00.000000Z --yes"
    ));
    desk.ok("confirm seal hold --experiment sim");
    desk.ok("iterate anchors a-1 --low anchor_low --high anchor_high --judge prog");
    let mut plan = iterate::plan(desk);
    plan["iteration"]["confirm_separation"] = "hashed".into();
    plan["iteration"]["design"]["judge"] = "prog".into();
    let file = desk.file("it.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
    desk.ok("iterate open it-1 --manifest m-it --yes");
}

#[test]
fn rows_that_the_judge_has_not_scored_are_scored_before_anything_is_computed() {
    if !verifiers::python() {
        return;
    }
    let mut desk = Desk::new();
    opened(&mut desk);
    let all = items(&desk, "sim/responses/base_responses.jsonl");
    let anchors = recorded(&mut desk, "prog");
    assert_eq!(
        anchors,
        items(&desk, "sim/anchors/anchor_low_responses.jsonl").len() * 2
    );
    // Nothing can be computed before, and another program is no substitute for being asked.
    for step in ["fit", "audit", "gate", "seal"] {
        let words = ["iterate", step, "it-1"];
        desk.refused(&words, 11, &["score is due", "clover iterate score it-1"]);
    }
    // It hangs at the 37th row: what it answered before is kept, and nothing else is said.
    desk.file("hangs-at.txt", &all[36]);
    let ran = desk.run("iterate score it-1 --timeout 1 -- python3 judge.py");
    assert_eq!(ran.code, 75, "{}{}", ran.out, ran.err);
    let stood = format!(
        "{}: no answer within 1 seconds; 36 rows were recorded before",
        all[36]
    );
    says(&ran, &[&stood, "the same command goes on"]);
    assert_eq!(recorded(&mut desk, "prog"), anchors + 36);
    assert_eq!(count(&mut desk, "score.replayed"), 0);
    desk.refused(&["iterate", "fit", "it-1"], 11, &["score is due"]);
    // Again: nothing new is recorded.
    let head = desk.head();
    let again = desk.run("iterate run it-1 --timeout 1 -- python3 judge.py");
    desk.file("hangs-at.txt", "nothing");
    assert_eq!(again.code, 75, "{}", again.out);
    assert_eq!(desk.head(), head);
    let ran = desk
        .ok("iterate score it-1 --json -- python3 judge.py")
        .json();
    let rest = all.len() - 36;
    assert_eq!(
        (
            &ran["data"]["scored"],
            &ran["data"]["mismatches"],
            &ran["data"]["without_texts"]
        ),
        (&json!(rest), &json!(0), &json!(0)),
        "{ran:#}"
    );
    assert_eq!(recorded(&mut desk, "prog"), anchors + all.len());
    assert_eq!(count(&mut desk, "score.replayed"), 1);
    let done = desk.ok("iterate run it-1 --to fit -- python3 judge.py");
    assert!(done.out.contains("FIT"), "{}", done.out);
    let refused = desk.run("iterate score it-1 -- python3 judge.py");
    assert_eq!(refused.code, 11, "{}", refused.out);
    says(&refused, &["is due, not score"]);
    desk.ok("verify --recompute");
}
