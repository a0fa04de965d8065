//! What is used is charged where an account of its unit is open, and what would overdraw it is refused before it is used.

use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;

use super::Desk;
use super::shipped;

/// An account that never refills.
fn account(desk: &mut Desk, unit: &str, amount: u64, spender: &str) {
    let text = format!(
        r#"{{"account":"{unit}s","amount":{amount},"period":"once","purpose":"a test","spenders":["{spender}"],"unit":"{unit}"}}"#
    );
    desk.ok_words(&["record", "budget.opened", "--data", &text]);
}

/// What was charged to an account.
fn spent(desk: &mut Desk, account: &str) -> u64 {
    let list = desk.ok("budget list --json").json();
    let all = list["data"]["budgets"].as_array().unwrap().clone();
    let mine = all.iter().find(|of| of["account"] == account).unwrap();
    mine["spent"].as_u64().unwrap()
}

fn not_charged(desk: &mut Desk) -> Value {
    desk.ok("budget list --json").json()["data"]["not_charged"].clone()
}

const JUDGE: &str = r#"import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    open("asked.txt", "a").write("x")
    print('{"id":%d,"score":%.6f}' % (ask["id"], min(len(ask["response"]), 500) / 500), flush=True)
"#;

#[test]
fn calls_of_a_program_are_charged_and_never_beyond_what_is_left() {
    if !crate::support::verifiers::python() {
        return;
    }
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/judge --holder Ada --roles all");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok("simulate dataset --truth citations --seed 7 --slices 4 --window 60 --confirm 20 --fresh 1000 -o sim");
    desk.file("judge.py", JUDGE);
    assert_eq!(not_charged(&mut desk).as_array().unwrap().len(), 3);
    let run = "judge run --judge prog --model prog-1 --known sim/known.json --rows";
    // Nobody is charged before an account is open, and the built-in judge costs nothing.
    account(&mut desk, "judge_call", 100, "scorer");
    desk.ok("judge run --judge builtin --rows sim/responses --known sim/known.json");
    assert_eq!(spent(&mut desk, "judge_calls"), 0);
    desk.ok(&format!("{run} sim/responses -- python3 judge.py"));
    let asked = |desk: &Desk| std::fs::read(desk.at.join("asked.txt")).unwrap().len() as u64;
    let first = asked(&desk);
    assert!((1..=80).contains(&first), "{first}");
    assert_eq!(spent(&mut desk, "judge_calls"), first);
    // A thousand anchors are more than is left: nobody is asked.
    let left = format!("at most {} judge_call left in judge_calls", 100 - first);
    let words = format!("{run} sim/anchors -- python3 judge.py");
    let words: Vec<&str> = words.split_whitespace().collect();
    desk.refused(&words, 11, &[&left]);
    assert_eq!(asked(&desk), first);
}

#[test]
fn labels_are_charged_and_never_beyond_what_is_left() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler");
    desk.ok("experiment register arena --title Arena --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let row = |item: u32| {
        format!(
            r#"{{"prompt_id":"p{item}","judge_score":0.{item},"prompt":"Why {item}?","response":"So {item}."}}"#
        ) + "\n"
    };
    let rows: String = (1..=5).map(row).collect();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("import cje base_responses.jsonl");
    account(&mut desk, "label", 4, "labeler");
    let labels = |items: &[u32]| {
        let lines = items.iter().map(|item| format!("p{item},base,0.5\n"));
        "item,policy,label\n".to_owned() + &lines.collect::<String>()
    };
    desk.file("labels.csv", &labels(&[1, 2, 3]));
    desk.ok("import labels labels.csv");
    assert_eq!(spent(&mut desk, "labels"), 3);
    // What is on record already costs nothing.
    desk.ok("import labels labels.csv");
    assert_eq!(spent(&mut desk, "labels"), 3);
    desk.file("more.csv", &labels(&[3, 4, 5]));
    let words = ["import", "labels", "more.csv"];
    desk.refused(&words, 11, &["at most 1 label left in labels"]);
    assert_eq!(spent(&mut desk, "labels"), 3);
    desk.file("one.csv", &labels(&[3, 4]));
    desk.ok("import labels one.csv");
    assert_eq!(spent(&mut desk, "labels"), 4);
    // A label that is said by hand costs what an imported one costs.
    let said = r#"{"design":"calib","draw":0,"item":"p5","policy":"base","purpose":"calibrate","rater":"r","value_micro":500000}"#;
    let by_hand = [
        "record",
        "label.recorded",
        "--experiment",
        "arena",
        "--data",
        said,
    ];
    desk.refused(&by_hand, 11, &["at most 0 label left in labels"]);
}

/// Given files of scores with labels, of which the second has a row that a rule refuses; when they are imported twice, and its
/// labels alone; then no score, no file and no label is recorded, and nothing is charged: the refusal names file and line.
#[test]
fn labels_that_are_refused_cost_nothing_and_leave_nothing() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler --custodian cem");
    desk.ok("experiment register arena --title Arena --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("label design new probes --purpose audit --probability 0.1");
    account(&mut desk, "label", 1000, "labeler");
    let row = |item: u32| {
        format!(r#"{{"prompt_id":"p{item}","judge_score":0.5,"oracle_label":0.25}}"#) + "\n"
    };
    let rows: String = (1..=3).map(row).collect();
    desk.file("a_responses.jsonl", &rows);
    desk.file("b_responses.jsonl", &rows);
    desk.ok("import cje b_responses.jsonl");
    let probe = r#"{"design":"probes","draw":0,"item":"p3","policy":"b","purpose":"audit","rater":"r","value_micro":500000}"#;
    desk.ok_words(&[
        "record",
        "label.recorded",
        "--experiment",
        "arena",
        "--data",
        probe,
    ]);
    let words = "import cje a_responses.jsonl b_responses.jsonl --labels --purpose calibrate";
    let words: Vec<_> = words.split_whitespace().collect();
    for _ in 0..2 {
        desk.refused(
            &words,
            11,
            &["b_responses.jsonl:3: purpose", "next: clover show"],
        );
    }
    desk.file("labels.csv", "policy,item,label\nb,p1,0.5\nb,p3,0.5\n");
    let alone = ["import", "labels", "labels.csv", "--design", "calib"];
    desk.refused(&alone, 11, &["labels.csv:3: purpose"]);
    // The probe that was said by hand was charged with it.
    assert_eq!(spent(&mut desk, "labels"), 1);
    // Once what was in the way is left out, each label is there with its charge.
    desk.file("b_responses.jsonl", &(1..=2).map(row).collect::<String>());
    desk.ok_words(&words);
    assert_eq!(spent(&mut desk, "labels"), 6);
    desk.ok_words(&words);
    assert_eq!(spent(&mut desk, "labels"), 6);
    let charges = desk.ok("log --kind budget.charged --json").json();
    assert_eq!(charges["data"]["entries"].as_array().unwrap().len(), 3);
}

/// Given two keys that may score, and an account that scorers spend from; when a judge is run under the key of `--scorer`; then
/// that key pays.
#[test]
fn whoever_answers_for_scores_pays_for_the_calls() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/judge --holder Ada --roles owner,registrar");
    for key in ["s1", "s2"] {
        desk.ok(&format!("key new {key} --role scorer"));
    }
    desk.ok("experiment register sim --title Simulation --purpose testing --key owner");
    account(&mut desk, "judge_call", 10, "scorer");
    let rows = r#"{"prompt_id":"q1","prompt":"Why?","response":"So."}"#;
    desk.file("base_responses.jsonl", &format!("{rows}\n"));
    desk.file("flat.sh", "while read -r line; do id=$(echo \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/'); echo \"{\\\"id\\\":$id,\\\"score\\\":0.5}\"; done\n");
    desk.ok("judge run --judge prog --rows base_responses.jsonl --scorer s2 -- sh flat.sh");
    assert_eq!(spent(&mut desk, "judge_calls"), 1);
    let charge = desk.ok("log --kind budget.charged --json").json();
    let score = desk.ok("log --kind score.recorded --json").json();
    let author = |list: &Value| list["data"]["entries"][0]["body"]["author"].clone();
    assert!(author(&charge).is_string(), "{charge:#}");
    assert_eq!(author(&charge), author(&score));
}

#[test]
fn accepted_patches_are_charged_and_never_beyond_what_is_left() {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/paid --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new mal --role adversary");
    desk.ok_words(&["record", "budget.opened", "--data", shipped::PEEKS]);
    let opened = |account: &str| {
        format!(
            r#"{{"account":"{account}","amount":1,"period":"quarter","purpose":"a test","spenders":["arbiter"],"unit":"patch"}}"#
        )
    };
    desk.ok_words(&["record", "budget.opened", "--data", &opened("patchs")]);
    let other = r#"{"account":"patchs","amount":1,"for":"a patch of another team"}"#;
    desk.ok_words(&["record", "budget.charged", "--data", other]);
    let [mended, _] = shipped();
    shipped::proposed(&mut desk, &mended, &shipped::plan(&mended));
    let stopped = desk.run("iterate run it-mended --yes");
    assert_eq!(stopped.code, 11, "{}{}", stopped.out, stopped.err);
    assert!(
        stopped.err.contains("at most 0 patch left in patchs"),
        "{}",
        stopped.err
    );
    let accepted = "log --kind patch.accepted --json";
    assert_eq!(
        desk.ok(accepted).json()["data"]["entries"],
        Value::Array(Vec::new())
    );
    // An account that is opened beside the spent one is no second limit.
    desk.ok_words(&["record", "budget.opened", "--data", &opened("more")]);
    let stopped = desk.run("iterate run it-mended --yes");
    assert!(
        stopped.err.contains("at most 0 patch left in patchs"),
        "{}",
        stopped.err
    );
    assert_eq!(spent(&mut desk, "more"), 0);
    // The account refills with the quarter, and the step that waited goes on.
    desk.clock
        .set(crate::support::start().plus_seconds(100 * 86_400));
    desk.ok("iterate run it-mended --yes");
    assert_eq!(spent(&mut desk, "patchs"), 1);
    assert_eq!(spent(&mut desk, "more"), 0);
    let found = desk.ok(accepted).json();
    let seq = found["data"]["entries"][0]["seq"].as_u64().unwrap();
    let said: Value = serde_json::from_str(&desk.ok(&format!("show {seq} --body")).out).unwrap();
    assert!(said["data"]["charge"].is_string(), "{said:#}");
    // P6 has no environment to test, and the plan says so.
    let page = desk.ok("iterate show it-mended").out;
    let page: Vec<&str> = page.split_whitespace().collect();
    let page = page.join(" ");
    assert!(
        page.contains("The plan claims no environment: nothing was tested there."),
        "{page}"
    );
    let shown = desk.ok("iterate show it-mended --json").json();
    let gates = shown["data"]["candidates"][0]["dev"].as_array().unwrap();
    let p6 = gates.iter().find(|gate| gate["gate"] == "p6").unwrap();
    assert_eq!(p6["recommended"], "not_checked", "{p6:#}");
    let replayed = desk.ok(&format!("replay {seq}"));
    assert!(replayed.out.contains("same"), "{}", replayed.out);
}

#[test]
fn an_account_is_opened_in_words() {
    let mut desk = Desk::with_ledger();
    desk.ok("budget open judges --usd 2.50");
    desk.ok("budget open confirm-peeks --unit peek --amount 3 --quarterly");
    desk.ok(
        "budget open people --unit label --amount 200 --spender labeler,custodian --purpose labels",
    );
    let list = desk.ok("budget list --json").json();
    let said: Vec<Value> = list["data"]["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            serde_json::json!([
                of["account"],
                of["amount"],
                of["unit"],
                of["period"],
                of["spenders"]
            ])
        })
        .collect();
    assert_eq!(
        said,
        [
            serde_json::json!(["confirm-peeks", 3, "peek", "2026Q4", ["custodian"]]),
            serde_json::json!(["judges", 2_500_000, "usd_micro", "once", ["scorer"]]),
            serde_json::json!(["people", 200, "label", "once", ["custodian", "labeler"]]),
        ]
    );
    let before = desk.head();
    for (words, code, said) in [
        (
            "budget open more",
            2,
            "--usd X, or --unit UNIT with --amount N",
        ),
        ("budget open more --usd 0", 2, "above 0"),
        (
            "budget open more --usd 1.0000001",
            2,
            "dollars above 0, such as 2.50",
        ),
        ("budget open more --usd -1", 2, "-1"),
        (
            "budget open more --usd 1 --unit peek --amount 2",
            2,
            "cannot be used with",
        ),
        (
            "budget open more --unit label --amount 5",
            2,
            "--spender: expected the roles that may charge an account of label",
        ),
        ("budget open more --unit peek --amount 0", 2, "above 0"),
        (
            "budget open judges --usd 1",
            11,
            "account judges was opened before, at seq 4",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        desk.refused(&words, code, &[said]);
    }
    desk.ok("budget open more --usd 1 --dry-run");
    assert_eq!(desk.head(), before);
}
