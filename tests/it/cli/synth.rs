//! Optimizers that see only cards, on the data that ship: the search of this program, and scripted ones that are sloppy,
//! repeat themselves, fail, or would be shown a row.

use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::shipped;

/// Answers by number, one a round.
const SCRIPT: &str = "read view\nn=$(cat n)\necho $((n + 1)) > n\ncat answer-$n.json\n";
const PENALTY: &str = "obligations.factual_adequacy.verification.mismatch_penalty";

/// An iteration whose cards are published, and an optimizer's key of its own.
pub(super) fn carded(plan: impl FnOnce(&mut Value)) -> (Desk, ShippedDataset) {
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new syn --role optimizer");
    desk.ok_words(&["record", "budget.opened", "--data", shipped::PEEKS]);
    let [mended, _] = shipped();
    // Cards of whole domains have rows enough to name what differs.
    let mended = ShippedDataset {
        by_domain: true,
        ..mended
    };
    let mut terms = shipped::plan(&mended);
    plan(&mut terms);
    shipped::written(&desk.at, &mended, &terms);
    for words in shipped::opening(&mended) {
        desk.ok(&words);
    }
    desk.ok("iterate run it-mended --to cards");
    desk.file("optimizer.sh", SCRIPT);
    (desk, mended)
}

pub(super) fn yaml(id: &str, family: &str, changes: &str) -> String {
    format!(
        "patch:\n  family: {family}\n  id: {id}\n  rationale: sources are not checked\n  changes: {{{changes}}}\n  \
         constraints: {{max_tokens_added: 60, affects_rescore: false}}\n"
    )
}

pub(super) fn penalty(id: &str, value: &str) -> String {
    yaml(id, "evidence_verification", &format!("{PENALTY}: {value}"))
}

fn answer(yamls: &[String]) -> String {
    let candidates = yamls.iter().map(|yaml| json!({"yaml": yaml}));
    json!({"candidates": candidates.collect::<Vec<_>>()}).to_string() + "\n"
}

/// Runs an optimizer that gives these answers, in a run of its own.
fn scripted(desk: &mut Desk, answers: &[String], more: &[&str]) -> Ran {
    for (number, answer) in answers.iter().enumerate() {
        desk.file(&format!("answer-{number}.json"), answer);
    }
    desk.file("n", "0\n");
    let words = [
        "synth",
        "run",
        "it-mended",
        "--json",
        "--again",
        "--optimizer",
        "sh optimizer.sh",
    ];
    desk.words(&[&words, more].concat())
}

pub(super) fn codes(data: &Value) -> Vec<&str> {
    let all = data["candidates"].as_array().unwrap().iter();
    all.map(|of| of["code"].as_str().unwrap_or("none"))
        .collect()
}

pub(super) fn count(desk: &mut Desk, kind: &str) -> usize {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    list["data"]["entries"].as_array().unwrap().len()
}

#[test]
fn the_search_finds_the_fix_that_ships_from_cards_alone() {
    let (mut desk, mended) = carded(|_| ());
    let shown = desk.ok("synth view it-mended --json").json();
    assert_eq!(shown["data"]["view"]["v"], "view/1");
    assert_eq!(count(&mut desk, "synth.asked"), 0, "a look is no round");
    let ran = desk.ok("synth run it-mended --json").json();
    let data = &ran["data"];
    assert_eq!(data["proposed"].as_array().unwrap().len(), 1, "{data:#}");
    let rounds = data["rounds"].as_u64().unwrap();
    assert!(
        data["dev_calls"].as_u64().unwrap() <= 10 && rounds <= 6,
        "{data:#}"
    );
    // The world takes .3 away from what false sources earn: so does the patch that ships with it.
    let all = data["candidates"].as_array().unwrap().iter();
    let value = |of: &&Value| of["risk_improve_dev"].as_f64().unwrap_or(0.0);
    let best = all.min_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
    let changes = best["changes"].to_string();
    assert!(
        mended.patch.contains("mismatch_penalty: 0.3"),
        "{}",
        mended.patch
    );
    assert!(
        changes.contains("mismatch_penalty") && changes.contains("0.3\""),
        "{changes}"
    );
    // The same command says the same again; what it said is computed again.
    let again = desk.ok("synth run it-mended --json").json();
    assert_eq!(again["data"], *data);
    // Another optimizer never ran: the ended run is not given in its place.
    let words = ["synth", "run", "it-mended", "--optimizer", "sh other.sh"];
    desk.file("other.sh", "exit 1\n");
    desk.refused(
        &words,
        11,
        &["by cards/1 ended", "next: the same command with --again"],
    );
    desk.ok("verify --recompute");
    let replayed = desk.replayed("");
    assert_eq!(replayed["gone"], 0, "{replayed:#}");
    // While a run is open, nothing is sealed: what it found best is held at its end.
    let again = [&words[..], &["--again"]].concat();
    assert_eq!(desk.words(&again).code, 11, "its optimizer fails");
    let early = desk.words(&["iterate", "run", "it-mended", "--yes"]);
    assert_eq!(early.code, 11, "{}{}", early.out, early.err);
    assert!(
        early.err.contains("it-mended-2 is open")
            && early.err.contains("next: clover synth stop it-mended-2"),
        "{}",
        early.err
    );
    assert_eq!(count(&mut desk, "candidates.sealed"), 0);
    desk.ok("synth stop it-mended-2");
    let ended = desk.ok("iterate run it-mended --yes");
    assert!(ended.out.contains("accepted"), "{}", ended.out);
}

#[test]
fn what_is_no_candidate_is_on_record_with_its_code_and_nothing_of_it_is_proposed() {
    let (mut desk, _) = carded(|_| ());
    let frozen = yaml("frozen-1", "evidence_verification", "target: Y_star");
    let other = yaml(
        "other-1",
        "evidence_verification",
        "guards.length_bias_cap.if_tokens_gt: 300",
    );
    let none = penalty("none-1", "0");
    let five = [
        frozen,
        other,
        none,
        "no patch".to_owned(),
        penalty("five-1", "0.3"),
    ];
    let answers = [
        answer(&five),
        "I would raise the penalty.\n".to_owned(),
        "{}\n".to_owned(),
    ];
    let ran = scripted(&mut desk, &answers, &[]);
    let data = ran.json()["data"].clone();
    assert_eq!(
        codes(&data),
        ["frozen", "cross_family", "noop", "keys", "beyond_k"]
    );
    assert_eq!(
        (&data["end"], &data["unread"]),
        (&json!("stalled"), &json!(1))
    );
    let prose = "I would raise the penalty.\n".to_owned();
    let ran = scripted(&mut desk, &[prose.clone(), prose], &[]);
    assert_eq!(ran.json()["data"]["end"], "unreadable", "{}", ran.out);
    assert_eq!(count(&mut desk, "patch.proposed"), 0);
    assert_eq!(count(&mut desk, "dev.objective_queried"), 0);
    // A document that is returned again is none the second time.
    let same = answer(&[penalty("same-1", "0.02")]);
    let ran = scripted(&mut desk, &[same.clone(), same.clone(), same], &[]);
    let data = ran.json()["data"].clone();
    assert_eq!(
        codes(&data),
        ["none", "duplicate_diff", "duplicate_diff"],
        "{data:#}"
    );
    assert_eq!(
        (&data["end"], &data["dev_calls"]),
        (&json!("duplicates"), &json!(1))
    );
    desk.ok("verify --recompute");
}

#[test]
fn a_run_ends_where_its_plan_says_and_goes_on_after_it_was_cut() {
    let (mut desk, _) = carded(|_| ());
    let end = |ran: &Ran| ran.json()["data"]["end"].clone();
    let first = answer(&[penalty("a-1", "0.01"), penalty("a-2", "0.02")]);
    let ran = scripted(
        &mut desk,
        std::slice::from_ref(&first),
        &["--dev-calls", "1"],
    );
    assert_eq!(end(&ran), "dev_calls");
    let ran = scripted(&mut desk, std::slice::from_ref(&first), &["--rounds", "1"]);
    assert_eq!(end(&ran), "rounds");
    // What was asked before has its receipt, and costs no call.
    assert_eq!(ran.json()["data"]["dev_calls"], 1, "{}", ran.out);
    let ran = scripted(&mut desk, &[answer(&[])], &[]);
    assert_eq!(end(&ran), "empty");
    let worse = [
        first.clone(),
        answer(&[penalty("b-1", "0.015")]),
        answer(&[penalty("b-2", "0.005")]),
    ];
    let ran = scripted(&mut desk, &worse, &[]);
    assert_eq!(end(&ran), "stalled", "{}", ran.out);
    // The optimizer fails in its second round; the run is open, and a person may end it.
    desk.file("answer-1.json", "");
    let ran = scripted(&mut desk, std::slice::from_ref(&first), &[]);
    assert_eq!(
        (ran.code, count(&mut desk, "synth.opened")),
        (11, 5),
        "{}",
        ran.err
    );
    // What the program said before it ended is told; the run stands where a person looks for what is open.
    let words = [
        "synth",
        "run",
        "it-mended",
        "--optimizer",
        "sh optimizer.sh",
    ];
    std::fs::remove_file(desk.at.join("answer-2.json")).ok();
    let failed = desk.words(&words);
    assert!(
        failed.err.contains("exit status: 1: cat: answer-2.json"),
        "{}",
        failed.err
    );
    desk.file("n", "2\n");
    let status = desk.ok("status --json").json();
    assert_eq!(status["data"]["open_synths"][0]["iteration"], "it-mended");
    let shown = desk.ok("synth show it-mended-5").err;
    assert!(
        shown.contains("next: clover synth run it-mended --optimizer 'sh optimizer.sh'"),
        "{shown}"
    );
    let asked = count(&mut desk, "synth.asked");
    let gone_on = desk.words(&["synth", "run", "it-mended", "--optimizer", "cards"]);
    assert_eq!(gone_on.code, 11, "{}", gone_on.err);
    assert!(
        gone_on.err.contains("is open with optimizer"),
        "{}",
        gone_on.err
    );
    // The same command goes on: the round that was asked is answered, and nothing is asked of dev again.
    let calls = count(&mut desk, "dev.objective_queried");
    desk.file("answer-2.json", &answer(&[]));
    let words = [
        "synth",
        "run",
        "it-mended",
        "--json",
        "--optimizer",
        "sh optimizer.sh",
    ];
    let gone_on = desk.words(&words);
    assert_eq!(end(&gone_on), "empty", "{}{}", gone_on.out, gone_on.err);
    assert_eq!(count(&mut desk, "synth.asked"), asked);
    assert_eq!(count(&mut desk, "dev.objective_queried"), calls);
    desk.file("answer-0.json", "");
    let ran = scripted(&mut desk, &[], &[]);
    assert_eq!(ran.code, 11, "{}", ran.err);
    let stopped = desk.ok("synth stop it-mended-6 --json").json();
    assert_eq!(stopped["data"]["end"], "person");
    let list = desk.ok("synth list --json").json();
    assert_eq!(list["data"]["runs"].as_array().unwrap().len(), 6);
    let report = desk.ok("report experiment --format json").out;
    let report: Value = serde_json::from_str(&report).unwrap();
    let begun = report["parts"][0]["tables"][0]["rows"].as_array().unwrap();
    let runs = begun.iter().find(|of| of["what"] == "runs of optimizers");
    assert_eq!(
        runs.map(|of| (&of["begun"], &of["ended"])),
        Some((&json!(6), &json!(6)))
    );
    desk.ok("verify --recompute");
}

#[test]
fn a_view_with_the_words_of_a_row_is_not_handed_over() {
    let [mended, _] = shipped();
    let files = mended.files();
    let file = files
        .iter()
        .find(|of| of.path.starts_with("responses/"))
        .unwrap();
    let line = file.bytes.split(|byte| *byte == b'\n').next().unwrap();
    let row: Value = serde_json::from_slice(line).unwrap();
    let words: String = row["response"].as_str().unwrap().chars().take(60).collect();
    let (mut desk, _) =
        carded(|plan| plan["iteration"]["design"]["topics"] = json!([words.trim()]));
    for line in ["synth view it-mended", "synth run it-mended"] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
        assert!(
            ran.err.contains("words of a text of the row"),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains(words.trim()) && !ran.out.contains(words.trim()));
    }
    assert_eq!(count(&mut desk, "synth.asked"), 0);
    assert_eq!(count(&mut desk, "data.read"), 0);
}
