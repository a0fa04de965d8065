//! The assumptions ledger, accounts, reads and draws on the command line.

use serde_json::Value;

use super::Desk;
use super::says;

const LATER: &str = "2027-06-01T00:00:00.000000Z";

fn hex() -> String {
    "ab".repeat(32)
}

/// A ledger with an experiment, a steward and two approvers.
fn desk() -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new stella --role steward");
    desk.ok("key new petra --role approver");
    desk.ok("key new paul --role approver");
    desk
}

fn record(desk: &mut Desk, kind: &str, experiment: Option<&str>, data: &str) {
    let mut words = vec!["record", kind, "--data", data];
    if let Some(experiment) = experiment {
        words.extend(["--experiment", experiment]);
    }
    desk.ok_words(&words);
}

fn sdp(desk: &mut Desk, version: &str) {
    let data = format!(
        r#"{{"document":"{}","effective_at":"2026-01-01T00:00:00.000000Z","sdp_version":"{version}","target":"Y"}}"#,
        hex()
    );
    record(desk, "sdp.version_registered", None, &data);
}

fn bridge(desk: &mut Desk, kind: &str, status: &str) {
    let data = format!(
        r#"{{"document":"{}","expires_at":"{LATER}","kind":"{kind}","sdp_version":"sdp-1","status":"{status}"}}"#,
        hex()
    );
    record(desk, "bridge.assessed", None, &data);
}

/// The status of a code in the one experiment, or in the ledger.
fn status(desk: &mut Desk, code: &str) -> String {
    let list = desk.ok("assume list --json").json();
    let rows = list["data"]["assumptions"].as_array().unwrap().clone();
    let row = rows.iter().find(|row| row["code"] == code).unwrap();
    row["status"].as_str().unwrap().to_owned()
}

fn score(desk: &mut Desk, micro: i64) -> String {
    let data = format!(r#"{{"draw":0,"item":"a","judge":"j","policy":"p","score_micro":{micro}}}"#);
    let words = [
        "record",
        "score.recorded",
        "--experiment",
        "exp-1",
        "--data",
        &data,
        "--json",
    ];
    let ran = desk.ok_words(&words).json();
    ran["events"][0].as_str().unwrap().to_owned()
}

fn conflict(desk: &mut Desk) {
    let id = score(desk, 5);
    let data = format!(
        r#"{{"draw":0,"item":"a","judge":"j","policy":"p","recorded":"{id}","recorded_micro":5,"score_micro":6}}"#
    );
    record(desk, "score.conflict", Some("exp-1"), &data);
}

#[test]
fn every_row_stands_from_the_beginning() {
    let mut desk = desk();
    let list = desk.ok("assume list --json").json();
    let rows = list["data"]["assumptions"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    assert!(
        rows.iter().all(|row| row["status"] == "untested"),
        "{rows:#?}"
    );
    let text = desk.ok("assume list").out;
    for code in ["A0 ", "A1-A3", "CJE.D1-R3", "CLOVER.J2", "experiment exp-1"] {
        assert!(text.contains(code), "{code} is not in:\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    desk.refused(&["assume", "show", "J9"], 2, &["expected one of A0, A1-A3"]);
    let shown = desk.ok("assume show CLOVER.J2").out;
    for part in ["scoring is deterministic", "replay", "untested"] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
}

#[test]
fn a_bridge_goes_stale_by_version_age_and_expiry() {
    let mut desk = desk();
    sdp(&mut desk, "sdp-1");
    assert_eq!(status(&mut desk, "A0"), "stale");
    bridge(&mut desk, "pte", "pass");
    bridge(&mut desk, "construct", "warn");
    // One part is still of no version.
    assert_eq!(status(&mut desk, "A0"), "stale");
    bridge(&mut desk, "stability", "pass");
    assert_eq!(status(&mut desk, "A0"), "warn");
    bridge(&mut desk, "construct", "pass");
    assert_eq!(status(&mut desk, "A0"), "pass");
    bridge(&mut desk, "attestation", "inconclusive");
    assert_eq!(status(&mut desk, "A1-A3"), "inconclusive");
    // Time passes only with the ledger.
    let at = |text: &str| clover::ground::time::Timestamp::parse(text).unwrap();
    desk.clock.set(at("2027-07-15T00:00:00.000000Z"));
    assert_eq!(status(&mut desk, "A0"), "pass");
    record(
        &mut desk,
        "note.recorded",
        None,
        r#"{"text":"a summer later"}"#,
    );
    assert_eq!(status(&mut desk, "A0"), "stale");
    desk.head();
}

#[test]
fn a_failure_does_not_grow_old() {
    let mut desk = desk();
    sdp(&mut desk, "sdp-1");
    bridge(&mut desk, "stability", "fail");
    let at = clover::ground::time::Timestamp::parse("2027-12-15T00:00:00.000000Z").unwrap();
    desk.clock.set(at);
    record(&mut desk, "note.recorded", None, r#"{"text":"later"}"#);
    assert_eq!(status(&mut desk, "A0"), "fail");
    assert!(
        desk.ok("status").out.contains("assumed"),
        "status says what fails"
    );
}

#[test]
fn what_was_said_of_the_past_is_said_again() {
    let mut desk = desk();
    let mut told: Vec<(u64, String, String)> = Vec::new();
    let tell = |desk: &mut Desk, told: &mut Vec<(u64, String, String)>| {
        let size = desk.head()["size"].as_u64().unwrap();
        let text = desk.ok("assume list").out;
        let json = desk.ok("assume list --json").out;
        told.push((size - 1, text, json));
    };
    tell(&mut desk, &mut told);
    sdp(&mut desk, "sdp-1");
    tell(&mut desk, &mut told);
    bridge(&mut desk, "pte", "pass");
    tell(&mut desk, &mut told);
    desk.ok_words(&[
        "assume",
        "waive",
        "S2",
        "--reason",
        "one environment",
        "--until",
        LATER,
        "--key",
        "petra",
    ]);
    tell(&mut desk, &mut told);
    desk.ok("assume waive S2 --countersign --key paul");
    tell(&mut desk, &mut told);
    let at = clover::ground::time::Timestamp::parse("2027-05-31T00:00:00.000000Z").unwrap();
    desk.clock.set(at);
    record(
        &mut desk,
        "note.recorded",
        None,
        r#"{"text":"months later"}"#,
    );
    tell(&mut desk, &mut told);
    conflict(&mut desk);
    tell(&mut desk, &mut told);
    desk.clock
        .set(clover::ground::time::Timestamp::parse(LATER).unwrap());
    record(
        &mut desk,
        "note.recorded",
        None,
        r#"{"text":"the waiver has ended"}"#,
    );
    tell(&mut desk, &mut told);
    let different: std::collections::BTreeSet<_> = told.iter().map(|(.., json)| json).collect();
    assert_eq!(different.len(), told.len());
    for (seq, text, json) in &told {
        assert_eq!(desk.ok(&format!("at {seq} -- assume list")).out, *text);
        assert_eq!(
            desk.ok(&format!("at {seq} -- assume list --json")).out,
            *json
        );
        assert_eq!(
            desk.ok(&format!("at {seq} --json -- assume list")).out,
            *json
        );
    }
}

/// A second key that may not agree, or that is the first, is told before the waiver is recorded.
#[test]
fn nothing_is_waived_where_the_second_key_may_not_agree() {
    let mut desk = desk();
    let size = desk.head()["size"].clone();
    let waive = "assume waive S2 --reason why --key petra --until";
    for (second, code, part) in [
        (
            "stella",
            11,
            "needs role approver, and --second stella has steward",
        ),
        ("petra", 2, "expected another key than the first"),
    ] {
        let words = format!("{waive} {LATER} --second {second}");
        let words: Vec<_> = words.split(' ').collect();
        desk.refused(&words, code, &[part]);
        assert_eq!(desk.head()["size"], size);
    }
    desk.ok(&format!("{waive} {LATER} --second paul"));
}

/// The key that agrees is not the one that proposes, where both may: the other one is found.
#[test]
fn the_second_key_is_never_taken_for_the_first() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    // A key that may not agree leads to a role, not to the key that proposes.
    desk.ok("key new cem --role custodian");
    let words = format!("assume waive OPE --reason why --until {LATER} --second cem");
    let words: Vec<_> = words.split(' ').collect();
    let ran = desk.refused(
        &words,
        11,
        &["needs role approver, and --second cem has custodian"],
    );
    assert!(!ran.err.contains("--second owner"), "{}", ran.err);
    desk.ok("key new bea --role approver");
    desk.ok(&format!(
        "assume waive S2 --reason why --until {LATER} --second bea"
    ));
    assert_eq!(status(&mut desk, "S2"), "waived");
}

#[test]
fn two_keys_waive_until_a_time_or_until_something_is_found() {
    let mut desk = desk();
    let waive = [
        "assume",
        "waive",
        "S2",
        "--reason",
        "one environment",
        "--until",
        LATER,
    ];
    desk.refused(&waive, 2, &["several of your keys may sign"]);
    let with = |key: &'static str| [&waive[..], &["--key", key]].concat();
    let ran = desk.ok_words(&with("petra"));
    assert!(
        ran.err
            .contains("assume waive S2 --experiment exp-1 --countersign"),
        "{}",
        ran.err
    );
    assert_eq!(status(&mut desk, "S2"), "untested");
    assert!(
        desk.ok("assume list")
            .out
            .contains("waits for a second key")
    );
    let same = ["assume", "waive", "S2", "--countersign", "--key", "petra"];
    desk.refused(
        &same,
        11,
        &["waiver: expected another key than the one that proposed it"],
    );
    desk.ok("assume waive S2 --countersign --key paul");
    assert_eq!(status(&mut desk, "S2"), "waived");
    let shown = desk.ok("assume show S2").out;
    assert!(shown.contains("one environment"), "{shown}");
    let again = ["assume", "waive", "S2", "--countersign", "--key", "paul"];
    desk.refused(&again, 5, &["no waiver of S2 waits"]);
    // Both at once.
    let mut both = with("petra");
    both[2] = "L2";
    both.extend(["--second", "paul"]);
    desk.ok_words(&both);
    assert_eq!(status(&mut desk, "L2"), "waived");
    let mut never = with("petra");
    never[2] = "H1";
    desk.refused(&never, 11, &["waiver", "never waived"]);
    conflict(&mut desk);
    never[2] = "CLOVER.J2";
    desk.refused(&never, 11, &["CLOVER.J2 that does not fail"]);
    desk.head();
}

#[test]
fn a_conflict_blocks_and_draws_are_counted() {
    let mut desk = desk();
    conflict(&mut desk);
    assert_eq!(status(&mut desk, "CLOVER.J2"), "fail");
    let listed = r#"{"clusters":["a"],"first":0,"part":"fit","split":"s"}"#;
    desk.ok("key new arb --role arbiter");
    let words = [
        "record",
        "splits.listed",
        "--experiment",
        "exp-1",
        "--data",
        listed,
    ];
    desk.refused(
        &words,
        11,
        &[
            "blocked",
            "close exp-1 and register another",
            "clover assume show CLOVER.J2",
        ],
    );
    for draw in 1..4 {
        let data = format!(
            r#"{{"draw":{draw},"item":"a","judge":"j","policy":"p","score_micro":{draw}}}"#
        );
        record(&mut desk, "score.recorded", Some("exp-1"), &data);
    }
    let data = r#"{"draw":0,"item":"b","judge":"j","policy":"p","score_micro":9}"#;
    record(&mut desk, "score.recorded", Some("exp-1"), data);
    let list = desk.ok("score list --json").json();
    let row = &list["data"]["scores"][0];
    let number = |name: &str| row[name].as_u64().unwrap();
    assert_eq!(
        (
            number("items"),
            number("scores"),
            number("items_with_several_draws"),
            number("draws_max")
        ),
        (2, 5, 1, 4)
    );
    assert_eq!(number("conflicts_in_experiment"), 1);
    assert!(desk.ok("score list").out.contains("CLOVER.J2 fails"));
    let shown = desk.ok("score show a --json").json();
    assert_eq!(shown["data"]["draws"], 4);
    let standing: Vec<_> = shown["data"]["scores"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["standing"].clone())
        .collect();
    assert_eq!(standing.iter().filter(|of| **of == "conflict").count(), 1);
    desk.refused(&["score", "show", "z"], 5, &["no score of item"]);
}

fn import(desk: &mut Desk) {
    let line = |id: &str| {
        format!(
            r#"{{"prompt_id":"{id}","judge_score":0.5,"draw_idx":0,"prompt":"Why?","response":"So.","oracle_label":0.5}}"#
        ) + "\n"
    };
    desk.file("base_responses.jsonl", &(line("p1") + &line("p2")));
    desk.ok("key new lena --role labeler");
    desk.ok("label design new calib --purpose calibrate --probability 0.5 --protocol sdp-1");
    desk.ok("import cje base_responses.jsonl --labels");
}

#[test]
fn a_release_is_on_record_and_taints_when_its_role_may_not_have_it() {
    let mut desk = desk();
    import(&mut desk);
    desk.ok("key new opal --role optimizer --machine");
    desk.ok("key new aude --role auditor");
    let ran = desk
        .ok("access release label --to aude --for audit -o labels.jsonl --json")
        .json();
    assert_eq!(
        (&ran["data"]["count"], &ran["data"]["rows"]),
        (&Value::from(2), &Value::from(2))
    );
    let released = std::fs::read_to_string(desk.at.join("labels.jsonl")).unwrap();
    assert_eq!(released.lines().count(), 2);
    let rows = desk
        .ok("access release row --to aude --for audit -o rows.jsonl --json")
        .json();
    // The same rows, so the same root.
    assert_eq!(rows["data"]["rows_root"], ran["data"]["rows_root"]);
    // What an optimizer may not have is on record as denied, and nothing is written.
    for class in ["label", "row"] {
        let words = [
            "access",
            "release",
            class,
            "--to",
            "opal",
            "--for",
            "synthesis",
            "-o",
            "stolen.jsonl",
        ];
        let ran = desk.words(&words);
        assert_eq!(ran.code, 11, "{}", ran.err);
        says(&ran, &["is not for role optimizer", "on record as denied"]);
    }
    assert!(!desk.at.join("stolen.jsonl").exists());
    let list = desk.ok("access list --json").json();
    assert_eq!(list["data"]["tainted"], Value::Array(Vec::new()));
    let denied: u64 = list["data"]["reads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|read| read["denied"].as_u64().unwrap())
        .sum();
    assert_eq!(denied, 2);
    assert_eq!(status(&mut desk, "H1"), "untested");
    // Around the gateway: it goes on record, and the experiment is tainted.
    let keys = desk.ok("key list --json").json();
    let opal = keys["data"]["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["holder"] == "opal")
        .unwrap()["key_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let data =
        format!(r#"{{"class":"row","outcome":"allowed","purpose":"oops","reader":"{opal}"}}"#);
    record(&mut desk, "data.read", Some("exp-1"), &data);
    assert_eq!(status(&mut desk, "H1"), "fail");
    let line = "exp-1 is tainted: at seq";
    for verb in ["status", "access list", "verify"] {
        let ran = desk.ok(verb);
        assert!(ran.out.contains(line), "{verb}:\n{}", ran.out);
    }
    let rubric =
        format!(r#"{{"class":"rubric","outcome":"allowed","purpose":"fine","reader":"{opal}"}}"#);
    record(&mut desk, "data.read", Some("exp-1"), &rubric);
    let list = desk.ok("access list --json").json();
    assert_eq!(list["data"]["tainted"].as_array().unwrap().len(), 1);
    desk.head();
}

#[test]
fn accounts_say_by_which_events_they_were_charged() {
    let mut desk = desk();
    let open = |account: &str, amount: u64, unit: &str, role: &str| {
        format!(
            r#"{{"account":"{account}","amount":{amount},"period":"once","purpose":"p","spenders":["{role}"],"unit":"{unit}"}}"#
        )
    };
    for (account, unit, role) in [
        ("confirm-peeks", "peek", "custodian"),
        ("patches", "patch", "approver"),
        ("labels", "label", "labeler"),
        ("judges", "cent", "scorer"),
        ("dev", "dev_call", "optimizer"),
    ] {
        record(
            &mut desk,
            "budget.opened",
            None,
            &open(account, 5, unit, role),
        );
    }
    for amount in [2, 1] {
        let data = format!(r#"{{"account":"judges","amount":{amount},"for":"run {amount}"}}"#);
        record(&mut desk, "budget.charged", None, &data);
    }
    let list = desk.ok("budget list --json").json();
    let rows = list["data"]["budgets"].as_array().unwrap();
    let pays: Vec<_> = rows
        .iter()
        .map(|row| row["pays_for"].as_str().unwrap())
        .collect();
    assert_eq!(
        pays,
        ["peeks", "dev calls", "judge spend", "labels", "patches"]
    );
    let text = desk.ok("budget list").out;
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let shown = desk.ok("budget show judges --json").json();
    assert_eq!(
        (&shown["data"]["spent"], &shown["data"]["left"]),
        (&Value::from(3), &Value::from(2))
    );
    let charges = shown["data"]["charges"].as_array().unwrap();
    assert_eq!(charges.len(), 2);
    assert_eq!(charges[1]["for"], "run 1");
    let seq = charges[0]["seq"].as_u64().unwrap();
    let then = desk
        .ok(&format!("at {seq} -- budget show judges --json"))
        .json();
    assert_eq!(then["data"]["charges"].as_array().unwrap().len(), 1);
    desk.refused(&["budget", "show", "none"], 5, &["no account"]);
}

#[test]
fn designs_and_splits_move_their_rows() {
    let mut desk = desk();
    desk.ok("key new lena --role labeler");
    desk.ok("key new arb --role arbiter");
    let lines: String = (0..40)
        .map(|i| format!("{{\"prompt_id\":\"p{i}\",\"judge_score\":0.5,\"draw_idx\":0}}\n"))
        .collect();
    desk.file("base_responses.jsonl", &lines);
    desk.ok("import cje base_responses.jsonl");
    desk.ok("label design new calib --purpose calibrate --probability 0.5 --protocol sdp-1");
    // The design is there, the balance of what will be labelled is not known.
    assert_eq!(status(&mut desk, "L1"), "untested");
    let shown = desk.ok("assume show L1 --json").json();
    let row = &shown["data"]["rows"][0];
    assert_eq!(row["evidence"]["part"], "design");
    assert_eq!(
        (&row["parts"][0]["status"], &row["parts"][1]["status"]),
        (&"untested".into(), &"pass".into())
    );
    desk.ok("experiment split exp-1 --seed 7 --hashed");
    assert_eq!(status(&mut desk, "H1"), "warn");
    let confirm = desk.ok("confirm status --json").json();
    assert_eq!(confirm["data"]["splits"][0]["placement"], "pass");
    desk.head();
}

#[test]
fn labels_without_any_design_are_not_missing_at_random() {
    let mut desk = desk();
    desk.ok("key new lena --role labeler");
    let label = r#"{"design":"d","draw":0,"item":"a","policy":"p","purpose":"audit","rater":"r","value_micro":5}"#;
    record(&mut desk, "label.recorded", Some("exp-1"), label);
    assert_eq!(status(&mut desk, "L1"), "fail");
    desk.ok("label design new calib --purpose calibrate --probability 0.5 --protocol sdp-1");
    assert_eq!(status(&mut desk, "L1"), "fail");
}

#[test]
fn no_peek_is_paid_for_what_will_be_refused() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register exp-1 --title One --purpose testing --key owner");
    desk.ok("label design new probes --purpose audit --probability 0.5");
    desk.file(
        "base_probe.jsonl",
        "{\"prompt_id\":\"p1\",\"judge_score\":0.5,\"draw_idx\":0,\"oracle_label\":0.5}\n",
    );
    desk.ok(&format!(
        "import cje base_probe.jsonl --seal probes --reveal-by {LATER} --yes"
    ));
    desk.ok("confirm seal probes");
    for (account, unit) in [("confirm-peeks", "peek"), ("cents", "cent")] {
        let data = format!(
            r#"{{"account":"{account}","amount":3,"period":"quarter","purpose":"p","spenders":["custodian"],"unit":"{unit}"}}"#
        );
        record(&mut desk, "budget.opened", None, &data);
    }
    let unseal = ["confirm", "unseal", "probes", "--for", "audit", "--yes"];
    let cents = [&unseal[..], &["--account", "cents"]].concat();
    desk.refused(
        &cents,
        11,
        &["charge: cents counts in cent", "whose unit is peek"],
    );
    conflict(&mut desk);
    desk.refused(
        &unseal,
        11,
        &["blocked: CLOVER.J2 fails", "no peek was charged"],
    );
    let shown = desk.ok("budget show confirm-peeks --json").json();
    assert_eq!(shown["data"]["left"], 3);
}
