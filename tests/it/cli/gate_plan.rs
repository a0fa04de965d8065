//! Plans of gates that are written from files, and the second key that a plan needs.

use super::Desk;

const PLAN: &str = "gate plan m-1 --units units.txt --baseline old.txt --candidate new.txt --judge judge.txt --claim better";

/// One person with two keys, an experiment and the files of a gate.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all --custodian cem");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    for (name, text) in [
        ("old.txt", "old"),
        ("new.txt", "new"),
        ("judge.txt", "judge"),
    ] {
        desk.file(name, text);
    }
    let units: String = (0..12).map(|n| format!("unit-{n}\n")).collect();
    desk.file("units.txt", &units);
    desk
}

fn family(desk: &mut Desk, id: &str, terms: &str) {
    desk.ok(&format!(
        "family open {id} --alpha 0.05 {terms} --membership gates"
    ));
}

fn refused(desk: &mut Desk, more: &str, code: u8, parts: &[&str]) {
    let line = format!("{PLAN} {more}");
    let words: Vec<_> = line.split_whitespace().collect();
    let before = desk.head();
    desk.refused(&words, code, parts);
    assert_eq!(desk.head(), before);
}

#[test]
fn a_plan_is_signed_as_it_was_written() {
    let mut desk = desk();
    family(&mut desk, "quarter", "--method spend --members 4");
    let said = desk.ok(&format!("{PLAN} -o gate.yaml --json")).json();
    let data = &said["data"];
    // A fourth of what is left, and the digests of the files as `sha256sum` prints them.
    assert_eq!(data["alpha_micro"], 12_500);
    assert_eq!(data["n_units"], 12);
    let text = data["text"].as_str().unwrap();
    for of in [
        // printf old | sha256sum; printf new | sha256sum; printf judge | sha256sum
        "    artifact_digest: cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4",
        "    artifact_digest: 11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437",
        "  judge_digest: 10e86c6514d40f2a3e861b31847340ee8c8ed181029a17b042f137121d28863e",
    ] {
        assert!(text.contains(of), "{of}: {text}");
    }
    desk.ok("prereg sign gate.yaml --countersign --yes");
    desk.ok("gate open m-1 --units units.txt --judge judge-1");
    // The name is taken now, and the rest of the family is shared by three.
    refused(&mut desk, "", 11, &["a manifest m-1 is registered already"]);
    let next = PLAN.replace("plan m-1", "plan m-2");
    let said = desk.ok(&format!("{next} --json")).json();
    assert_eq!(said["data"]["alpha_micro"], 12_500);
    assert_eq!(said["data"]["alpha_left_micro"], 37_500);
    assert_eq!(said["data"]["members_left"], 3);
    // The file is the person's: it is not written over.
    let words = format!("{next} -o gate.yaml");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(&words, 11, &["gate.yaml exists already"]);
}

#[test]
fn what_a_plan_cannot_be_written_from_is_named() {
    let mut desk = desk();
    refused(
        &mut desk,
        "",
        5,
        &["no family is open", "clover family open --help"],
    );
    family(&mut desk, "quarter", "--method spend --members 1");
    refused(
        &mut desk,
        "--candidate old.txt",
        2,
        &["cannot be used multiple times"],
    );
    desk.file("new.txt", "old");
    refused(
        &mut desk,
        "",
        4,
        &["old.txt and new.txt hold the same bytes"],
    );
    desk.file("new.txt", "new");
    refused(&mut desk, "--family month", 5, &["no family month"]);
    family(&mut desk, "month", "--method elond --members 5");
    refused(
        &mut desk,
        "",
        2,
        &[
            "several families are open: month, quarter",
            "--family month",
        ],
    );
    desk.ok(&format!("{PLAN} --family quarter -o gate.yaml"));
    desk.ok("prereg sign gate.yaml --countersign --yes");
    let other = PLAN.replace("plan m-1", "plan m-2");
    let words = format!("{other} --family quarter");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(
        &words,
        11,
        &["family quarter has no error rate or no place left"],
    );
    // The share of the first member of five, by e-LOND's own weights.
    let said = desk.ok(&format!("{other} --family month --json")).json();
    let shown = desk.ok("family show month --json").json();
    assert_eq!(
        said["data"]["alpha_left_micro"],
        said["data"]["alpha_micro"]
    );
    assert!(
        said["data"]["alpha_micro"].as_i64().unwrap() < 50_000,
        "{shown}"
    );
}

/// A key that stands in the way is found before anything is made.
/// What `prereg sign` would refuse is refused before anybody is asked to sign: a gate's plan after scores of its experiment.
#[test]
fn a_plan_that_comes_too_late_is_refused_where_it_is_written_and_checked() {
    let mut desk = desk();
    family(&mut desk, "quarter", "--method spend --members 4");
    desk.ok(&format!("{PLAN} -o gate.yaml"));
    desk.ok("prereg check gate.yaml");
    desk.file(
        "rows.csv",
        "prompt_id,target_policy,judge_score\np1,base,0.5\np2,base,0.25\n",
    );
    desk.ok("import csv rows.csv --experiment exp-1");
    let parts = ["E_ADAPTIVE_REUSE", "before any score"];
    for line in ["prereg check gate.yaml", "prereg sign gate.yaml --yes"] {
        let words: Vec<_> = line.split_whitespace().collect();
        desk.refused(&words, 11, &parts);
    }
    refused(&mut desk, "-o late.yaml", 11, &parts);
    assert!(!desk.path("late.yaml").exists());
}

#[test]
fn no_ledger_is_made_without_its_custodian() {
    let mut desk = Desk::new();
    let init = "init --holder Ada --roles all --custodian";
    for (custodian, parts) in [
        ("owner", "owner.pem is the owner's key"),
        ("../x", "is no key name"),
        ("Àda", "is no key name"),
    ] {
        let line = format!("{init} {custodian}");
        let words: Vec<_> = line.split(' ').collect();
        let code = if custodian == "owner" { 11 } else { 2 };
        let ran = desk.words(&words);
        assert_eq!(ran.code, code, "{}", ran.err);
        assert!(ran.err.contains(parts), "{}", ran.err);
        assert!(!desk.path(".clover").exists());
    }
    desk.ok(&format!("{init} cem"));
    let keys = desk.ok("key list --json").json();
    let keys = keys["data"]["keys"].as_array().unwrap();
    let roles: Vec<_> = keys.iter().map(|key| key["roles"].to_string()).collect();
    assert_eq!(roles.len(), 2, "{keys:?}");
    assert!(roles.iter().any(|of| of == "[\"custodian\"]"), "{roles:?}");
}

/// Of keys that may all sign, the one that was made for less signs, unless one is named.
#[test]
fn a_key_made_for_the_task_signs_before_one_that_may_all() {
    let mut desk = desk();
    desk.ok("key new bot --role scorer,labeler");
    desk.ok("key new bea --role scorer");
    let record = r#"{"draw":0,"item":"a","judge":"j","policy":"p","score_micro":5}"#;
    let words = [
        "record",
        "score.recorded",
        "--experiment",
        "exp-1",
        "--data",
        record,
    ];
    desk.ok_words(&words);
    let signer = |desk: &mut Desk| {
        let log = desk.ok("log --limit 1 --json").json();
        log["data"]["entries"][0]["body"]["author"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let by_task = signer(&mut desk);
    let bea = desk.ok("key show bea --json").json();
    assert_eq!(bea["data"]["key_id"], by_task.as_str());
    // Two that were made for it: a person says which.
    desk.ok("key new bob --role scorer");
    let other = record.replace("\"a\"", "\"b\"");
    let words = [
        "record",
        "score.recorded",
        "--experiment",
        "exp-1",
        "--data",
        &other,
    ];
    desk.refused(&words, 2, &["several of your keys may sign score.recorded"]);
}
