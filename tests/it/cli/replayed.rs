//! What `clover replay` computes again beside the numbers of iterations: gates, families and splits; and where it says that
//! it does not.

use std::collections::BTreeMap;

use clover::event::Kind;
use clover::event::id::ItemId;
use clover::event::payload::intake::SplitPart;
use clover::ground::time::Timestamp;
use clover::num::Count;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::gate;

/// How often each outcome fell to each kind.
fn outcomes(data: &Value) -> BTreeMap<(String, String), usize> {
    let mut found = BTreeMap::new();
    for event in data["events"].as_array().unwrap() {
        let word = |name: &str| event[name].as_str().unwrap().to_owned();
        *found.entry((word("kind"), word("outcome"))).or_default() += 1;
    }
    found
}

fn counted(of: &[(&str, &str, usize)]) -> BTreeMap<(String, String), usize> {
    let each = of.iter();
    each.map(|(kind, outcome, count)| (((*kind).to_owned(), (*outcome).to_owned()), *count))
        .collect()
}

#[test]
fn a_gate_is_computed_again_from_its_order_to_the_closing_of_its_family() {
    let mut desk = gate::scored();
    desk.run("gate observe m-1 --through 6");
    desk.run("gate look m-1");
    desk.run("gate observe m-1 --all");
    desk.ok("gate decide m-1");
    desk.ok("family close quarter --yes");
    let data = desk.ok("replay --all --json").json()["data"].clone();
    let expected = [
        ("family.closed", "identical", 1),
        ("gate.decided", "identical", 1),
        ("gate.looked", "identical", 2),
        ("gate.opened", "identical", 1),
        ("order.drawn", "identical", 1),
        ("order.listed", "identical", 1),
    ];
    assert_eq!(outcomes(&data), counted(&expected), "{data:#}");
    let observed = desk
        .ok("log --kind gate.observed --limit 1000 --json")
        .json();
    let observed = observed["data"]["entries"].as_array().unwrap().clone();
    let elsewhere = data["elsewhere"].as_array().unwrap();
    assert_eq!(elsewhere.len(), 1, "{data:#}");
    assert_eq!(elsewhere[0]["kind"], "gate.observed");
    assert_eq!(elsewhere[0]["events"], observed.len());
    assert_eq!(elsewhere[0]["rule"], "observation");
    let text = desk.ok("replay --all").out;
    let line = format!("{} gate.observed not computed here: ", observed.len());
    assert!(text.contains(&line), "{text}");
    // One of those by itself, and what no rule computes.
    let one = observed[0]["seq"].to_string();
    desk.refused(
        &["replay", &one],
        2,
        &["gate.observed", "rule observation of clover verify"],
    );
    desk.refused(
        &["replay", "0"],
        2,
        &["ledger.created is taken as it was said"],
    );
    let decided = found(&mut desk, "gate.decided");
    let shown = desk.ok(&format!("replay {decided} --explain")).out;
    assert!(
        shown.contains("identical") && shown.contains("outcome"),
        "{shown}"
    );
}

/// The position of the newest event of a kind.
fn found(desk: &mut Desk, kind: &str) -> u64 {
    let log = desk.ok(&format!("log --kind {kind} --json")).json();
    let entries = log["data"]["entries"].as_array().unwrap().iter();
    entries
        .filter_map(|entry| entry["seq"].as_u64())
        .max()
        .unwrap()
}

#[test]
fn the_list_of_kinds_says_who_computes_each_again() {
    let mut desk = Desk::new();
    let listed = desk.ok("schema --json").json();
    let listed = listed["data"]["kinds"].as_array().unwrap();
    assert_eq!(listed.len(), Kind::ALL.len());
    let of = |kind: &str| {
        let one = listed.iter().find(|one| one["kind"] == kind).unwrap();
        assert!(
            kind == "score.recorded" || !one["computed_again"].is_null(),
            "{one}"
        );
        one["computed_again"].clone()
    };
    assert_eq!(of("gate.decided"), json!({"by": "replay"}));
    assert_eq!(of("score.recorded"), Value::Null);
    assert_eq!(of("plan.sealed")["rule"], "plan");
    for one in listed {
        let arbiter = one["signed_by"] == "arbiter";
        assert!(!arbiter || !one["computed_again"].is_null(), "{one}");
    }
    let text = desk.ok("schema").out;
    assert!(
        text.contains("computed again") && text.contains("rule observation"),
        "{text}"
    );
}

const T1: &str = "2026-01-10T00:00:00.000000Z";
const T2: &str = "2026-02-01T00:00:00.000000Z";

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Forty rows, a day apart in two blocks: thirty before [`T1`], ten in the time of confirm.
fn sampled() -> (Desk, BTreeMap<ItemId, Option<Timestamp>>) {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/it --holder Ada --roles owner,registrar,scorer,arbiter");
    desk.ok("experiment register arena --title Arena --purpose testing");
    let (mut lines, mut clusters) = (String::new(), BTreeMap::new());
    for i in 0..40 {
        let day = if i < 30 { 1 + i % 9 } else { 15 + i % 10 };
        let (item, at) = (
            format!("p{i:02}"),
            format!("2026-01-{day:02}T00:00:00.000000Z"),
        );
        let row = json!({"judge_score": 0.5, "prompt_id": item, "sampled_at": at});
        lines += &format!("{row}\n");
        clusters.insert(item.parse().unwrap(), Some(time(&at)));
    }
    desk.file("base_responses.jsonl", &lines);
    desk.ok("import cje base_responses.jsonl --experiment arena --judge judge-1");
    (desk, clusters)
}

/// The rules of a split know where the hash puts a cluster, and not when it was sampled: the rows do.
#[test]
fn a_split_that_takes_an_early_row_for_confirm_differs_from_its_rows() {
    let (mut desk, clusters) = sampled();
    desk.ok(&format!(
        "experiment split arena --seed 7 --t1 {T1} --t2 {T2}"
    ));
    let data = desk.ok("replay --all --json").json()["data"].clone();
    let expected = [
        ("splits.formed", "identical", 1),
        ("splits.listed", "identical", 3),
    ];
    assert_eq!(outcomes(&data), counted(&expected));
    // The same rows, and one of fit taken for confirm by somebody who writes the events by hand.
    let (mut desk, _) = sampled();
    let (t1, t2) = (time(T1), time(T2));
    let apart = Apart::Time {
        t1,
        t2,
        gap_seconds: split::GAP_SECONDS_DEFAULT,
    };
    let mut parts = split::parts(&clusters, 7, apart).unwrap();
    let early = parts.members.get_mut(&SplitPart::Fit).unwrap().remove(0);
    let confirm = parts.members.get_mut(&SplitPart::Confirm).unwrap();
    confirm.push(early);
    confirm.sort();
    let seed = Count::new(7).unwrap();
    for payload in split::events(&"split-1".parse().unwrap(), seed, apart, &parts) {
        let (kind, data) = (
            payload.kind().to_string(),
            serde_json::to_string(&payload).unwrap(),
        );
        desk.ok_words(&["record", &kind, "--experiment", "arena", "--data", &data]);
    }
    desk.ok("verify");
    let ran = desk.run("replay --all --json");
    assert_eq!(ran.code, 3, "{}", ran.out);
    let expected = [
        ("splits.formed", "DIFFERS", 1),
        ("splits.listed", "DIFFERS", 2),
        ("splits.listed", "identical", 1),
    ];
    let data = ran.json()["data"].clone();
    assert_eq!(outcomes(&data), counted(&expected), "{data:#}");
    let formed = data["events"].as_array().unwrap().iter();
    let formed = formed.filter(|event| event["kind"] == "splits.formed");
    let paths: Vec<&str> = formed
        .flat_map(|event| event["differences"].as_array().unwrap())
        .map(|of| of["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["confirm.count", "confirm.root", "fit.count", "fit.root"]
    );
}
