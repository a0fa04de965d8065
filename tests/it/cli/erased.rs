//! Erasures: their certificate, what replay, verify, reports and bundles say once texts are gone, and what expires when.

use std::collections::BTreeSet;

use clover::view::report::coverage::COVERAGE;
use serde_json::Value;

use super::Desk;
use crate::support;
use crate::support::verifiers;

const DAY: i64 = 86_400;

/// Forty rows with texts, scores and labels.
fn forty() -> String {
    let row = |at: usize| {
        let words = "word ".repeat(1 + at * 5 % 17);
        let score = 0.1 + 0.08 * (at % 10) as f64;
        let label = 0.05 + 0.07 * (at % 10) as f64 + 0.01 * (at * 5 % 17) as f64;
        format!(
            "{{\"prompt_id\":\"p{at}\",\"prompt\":\"q\",\"response\":\"{words}\",\"judge_score\":{score:.6},\"oracle_label\":{label:.6}}}\n"
        )
    };
    (0..40).map(row).collect()
}

/// A ledger with estimates: the first reads the lengths of responses, the second does not.
fn with_estimates() -> Desk {
    let mut desk = Desk::with_ledger();
    for role in ["arbiter", "labeler"] {
        desk.ok(&format!("key new {role} --role {role}"));
    }
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.file("a_responses.jsonl", &forty());
    desk.ok("import cje a_responses.jsonl --labels");
    desk.ok("estimate --covariate response_length");
    desk.ok("estimate");
    desk
}

/// The subject of the texts of an item.
fn subject_of(desk: &mut Desk, item: &str) -> String {
    let log = desk.ok("log --kind score.recorded --json").json();
    let entries = log["data"]["entries"].as_array().unwrap();
    let seqs: Vec<u64> = entries
        .iter()
        .map(|of| of["seq"].as_u64().unwrap())
        .collect();
    for seq in seqs {
        let shown = desk.ok(&format!("show {seq} --json")).json();
        if let Some(data) = find(&shown, "item", item) {
            return data["response"]["subject"].as_str().unwrap().to_owned();
        }
    }
    panic!("no score of {item}");
}

/// The object that has a member with a value, wherever it stands.
fn find<'v>(value: &'v Value, name: &str, wanted: &str) -> Option<&'v Value> {
    match value {
        Value::Object(of) if of.get(name).is_some_and(|found| found == wanted) => Some(value),
        Value::Object(of) => of.values().find_map(|inner| find(inner, name, wanted)),
        Value::Array(all) => all.iter().find_map(|inner| find(inner, name, wanted)),
        _ => None,
    }
}

/// Decisions that replay cannot compute, with why.
fn gone(desk: &mut Desk) -> Vec<(u64, String)> {
    let data = desk.replayed("");
    let events = data["events"].as_array().unwrap();
    let gone = events.iter().filter_map(|of| {
        let why = of["why"].as_str()?;
        Some((of["seq"].as_u64().unwrap(), why.to_owned()))
    });
    gone.collect()
}

/// A report as JSON.
fn report(desk: &mut Desk, name: &str) -> Value {
    serde_json::from_str(&desk.ok(&format!("report {name} --format json")).out).unwrap()
}

/// Rows of the first table of a part or appendix.
pub(super) fn rows<'v>(document: &'v Value, part: &str, table: &str) -> Vec<&'v Value> {
    let chapters = ["parts", "appendices"].into_iter();
    let chapters = chapters.flat_map(|of| document[of].as_array().unwrap());
    let tables = chapters
        .filter(|of| of["part"] == part)
        .flat_map(|of| of["tables"].as_array().unwrap());
    let rows = tables
        .filter(|of| of["table"] == table)
        .flat_map(|of| of["rows"].as_array().unwrap());
    rows.collect()
}

fn first_events(rows: &[&Value]) -> BTreeSet<u64> {
    let firsts = rows.iter().map(|row| row["events"][0].as_u64().unwrap());
    firsts.collect()
}

#[test]
fn an_erasure_is_certified_and_what_it_touches_is_named() {
    let mut desk = with_estimates();
    assert_eq!(gone(&mut desk), []);
    desk.refused(&["report", "erasure"], 11, &["no erasure is on record"]);
    let subject = subject_of(&mut desk, "p7");
    desk.refused(
        &["report", "erasure", &subject],
        11,
        &[
            "no erasure of ",
            "is on record",
            "next: clover log --kind subject.erased",
        ],
    );
    desk.ok(&format!(
        "erase {subject} --basis article-17 --requester ticket-812 --yes --key cem"
    ));
    let certificate = report(&mut desk, &format!("erasure {subject}"));
    let seq = certificate["parts"][0]["facts"][0]["events"][0]
        .as_u64()
        .unwrap();

    // What the certificate names is what replay cannot compute, and nothing else.
    let gone = gone(&mut desk);
    let withheld = format!("withheld under erasure #{seq}");
    assert!(!gone.is_empty());
    for (of, why) in &gone {
        assert!(why.contains(&withheld), "{of}: {why}");
    }
    let gone: BTreeSet<u64> = gone.into_iter().map(|(seq, _)| seq).collect();
    let touched = rows(&certificate, "touched", "decisions");
    assert_eq!(first_events(&touched), gone);
    assert!(
        touched
            .iter()
            .all(|row| row["withheld"] == withheld.as_str())
    );

    // Who asked, who did it, how; what stays; and the file that still holds the texts.
    let fact = |key: &str| {
        let facts = certificate["parts"][0]["facts"].as_array().unwrap();
        let found = facts.iter().find(|of| of["fact"] == key).unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(fact("requester"), "ticket-812");
    assert_eq!(fact("basis"), "article-17");
    assert_eq!(fact("subject"), subject);
    assert!(fact("method").starts_with("crypto-erasure: the key was destroyed"));
    assert!(fact("key_standing").starts_with("destroyed"));
    let texts = rows(&certificate, "erased", "texts");
    let of: BTreeSet<&str> = texts
        .iter()
        .map(|row| row["of"].as_str().unwrap())
        .collect();
    assert_eq!(of, BTreeSet::from(["prompt", "response"]));
    let blobs = desk.ok("blob list").out;
    assert!(
        texts
            .iter()
            .all(|row| blobs.contains(row["blake3"].as_str().unwrap()))
    );
    let files = rows(&certificate, "beyond", "files");
    assert_eq!(files.len(), 1);
    assert!(files[0]["reach"].as_str().unwrap().starts_with("KEPT"));
    let answer = certificate["head"]["answer"].as_str().unwrap();
    assert!(
        answer.contains("A file that holds these texts, or rows of them, can still be read"),
        "{answer}"
    );
    for word in ["compliant", "certified"] {
        let text = desk.ok("report erasure --format md").out.to_lowercase();
        assert!(!text.contains(word), "{word}");
    }

    named_elsewhere(&mut desk, seq, &gone);
}

#[test]
fn a_file_that_was_taken_in_beside_the_scores_of_the_texts_is_named_too() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new labeler --role labeler");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    // The rows are scored; ten of them come again in a file with their labels, and no score is new.
    desk.file("a_responses.jsonl", &forty());
    desk.ok("import cje a_responses.jsonl");
    let ten: String = forty()
        .lines()
        .take(10)
        .map(|line| format!("{line}\n"))
        .collect();
    desk.file("labelled.jsonl", &ten);
    desk.ok("import cje labelled.jsonl --policy a --labels");
    let others: String = forty()
        .lines()
        .skip(20)
        .map(|line| format!("{line}\n"))
        .collect();
    desk.file("b_responses.jsonl", &others);
    desk.ok("import cje b_responses.jsonl --policy b");
    let subject = subject_of(&mut desk, "p7");
    desk.ok(&format!(
        "erase {subject} --basis article-17 --yes --key cem"
    ));
    let certificate = report(&mut desk, "erasure");
    let files = rows(&certificate, "beyond", "files");
    let reach: Vec<&str> = files
        .iter()
        .map(|of| of["reach"].as_str().unwrap())
        .collect();
    assert_eq!(reach.len(), 2, "{reach:?}");
    assert!(reach[0].contains("it holds these texts too"), "{reach:?}");
    assert!(
        reach[1].contains("its rows are those of these texts"),
        "{reach:?}"
    );
    let answer = certificate["head"]["answer"].as_str().unwrap();
    assert!(
        answer.contains("2 files that hold these texts, or rows of them, can still be read"),
        "{answer}"
    );
}

/// Every other reading names it too: verify, reports of the experiment and of retention, a bundle.
fn named_elsewhere(desk: &mut Desk, seq: u64, gone: &BTreeSet<u64>) {
    let verified = desk.ok("verify --recompute").out;
    assert!(
        verified.contains(&format!("texts erased at seq {seq}")),
        "{verified}"
    );
    let retention = report(desk, "retention");
    assert_eq!(
        first_events(&rows(&retention, "withheld", "decisions")),
        *gone
    );
    let estimate = report(desk, "estimate exp-1");
    let named = first_events(&rows(&estimate, "withheld", "decisions"));
    assert!(!named.is_empty() && named.is_subset(gone), "{named:?}");
    desk.ok("export bundle -o whole");
    let page = std::fs::read_to_string(desk.at.join("whole/README.md")).unwrap();
    assert!(page.contains("Erased subjects: 1."), "{page}");
    let page = std::fs::read_to_string(desk.at.join("whole/reports/retention-ledger.html"));
    assert!(
        page.unwrap()
            .contains(&format!("withheld under erasure #{seq}"))
    );
    desk.ok("verify whole");
    // The other verifier reads who asked, too.
    if verifiers::python() {
        let mut ran = verifiers::python3();
        ran.arg(verifiers::audits_verify())
            .arg(desk.at.join("whole"));
        let ran = ran.output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.status.success() && text.contains("\nVERIFIED "),
            "{text}"
        );
    }
    // Of entries before it, nothing was erased.
    let ran = desk.run(&format!("at {} -- report erasure", seq - 1));
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
}

/// The text of a member of this name, wherever it stands first.
fn text_of(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::Object(of) => {
            let own = of.get(name).and_then(Value::as_str).map(str::to_owned);
            own.or_else(|| of.values().find_map(|inner| text_of(inner, name)))
        }
        Value::Array(all) => all.iter().find_map(|inner| text_of(inner, name)),
        _ => None,
    }
}

#[test]
fn texts_of_an_erased_file_that_other_subjects_hold_are_named() {
    let mut desk = with_estimates();
    let log = desk.ok("log --kind data.ingested --json").json();
    let seq = log["data"]["entries"][0]["seq"].as_u64().unwrap();
    let shown = desk.ok(&format!("show {seq} --json")).json();
    let file = text_of(&shown, "subject").unwrap();
    desk.ok(&format!("erase {file} --basis article-17 --yes --key cem"));
    let certificate = report(&mut desk, &format!("erasure {file}"));
    assert_eq!(rows(&certificate, "beyond", "copies").len(), 40);
    let said = desk.ok(&format!("report erasure {file} --format md")).out;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("kept under 40 other subjects too"), "{said}");
    // Whoever names an item is told its subject; once that is erased it holds no copy.
    let subject = subject_of(&mut desk, "p7");
    desk.refused(
        &["erase", "p7", "--basis", "article-17"],
        2,
        &[
            "p7 is an item and no subject",
            &format!("next: clover erase {subject} --basis TEXT"),
        ],
    );
    desk.ok(&format!(
        "erase {subject} --basis article-17 --yes --key cem"
    ));
    let certificate = report(&mut desk, &format!("erasure {file}"));
    assert_eq!(rows(&certificate, "beyond", "copies").len(), 39);
}

#[test]
fn nothing_is_certified_while_the_key_stands() {
    let mut desk = Desk::with_ledger();
    desk.file("secret.txt", "a private prompt");
    let put = desk.ok("blob put secret.txt --media text/plain --subject new --json");
    let subject = put.json()["data"]["reference"]["subject"]
        .as_str()
        .unwrap()
        .to_owned();
    // A vault from a backup brings the key back: the event stands, and the texts can be read.
    let (vault, aside) = (desk.at.join(".clover/vault.db"), desk.path("vault.old"));
    std::fs::copy(&vault, &aside).unwrap();
    let erase = format!("erase {subject} --basis request --yes --key cem");
    desk.ok(&erase);
    std::fs::copy(&aside, &vault).unwrap();
    desk.refused(
        &["report", "erasure"],
        11,
        &[
            "is not erased",
            "the vault still has its key",
            "next: clover erase ",
        ],
    );
    desk.ok(&erase);
    let certificate = report(&mut desk, "erasure");
    let facts = certificate["parts"][0]["facts"].as_array().unwrap();
    let value = |key: &str| facts.iter().find(|of| of["fact"] == key).unwrap()["value"].clone();
    assert_eq!(value("requester"), "not on record: the event names nobody");
    assert_eq!(rows(&certificate, "touched", "decisions").len(), 0);
    // Without the vault nobody here can say that the key is gone.
    std::fs::rename(vault, desk.path("vault.away")).unwrap();
    let md = desk.ok("report erasure --format md").out;
    assert!(md.contains("NOT CHECKED"), "{md}");
    desk.refused(&["report", "erasure", "2"], 11, &["entry 2 is no erasure"]);
}

#[test]
fn what_expires_is_listed_by_date_and_status_names_what_is_overdue() {
    let mut desk = Desk::with_ledger();
    let set = |class: &str, days: u64| {
        format!(
            "record retention.set --data {{\"basis\":\"policy-4\",\"class\":\"{class}\",\"days\":{days}}} --key owner"
        )
    };
    desk.ok(&set("responses", 300));
    desk.ok(&set("responses", 30));
    desk.ok(&set("logs", 90));
    assert!(!desk.ok("status").out.contains("overdue"));
    let list = |desk: &mut Desk, more: &str| {
        let list = report(desk, &format!("expiry {more}"));
        let rows = rows(&list, "dates", "dates");
        let row = |row: &&Value| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("name"), text("date"), text("standing"))
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let day = |days: i64| {
        let at = support::start().plus_seconds(days * DAY).to_string();
        at.chars().take(10).collect::<String>()
    };
    let row =
        |name: &str, days: i64, standing: &str| (name.to_owned(), day(days), standing.to_owned());
    // The newest word of a class counts, from the oldest entry on.
    let both = [row("responses", 30, "to come"), row("logs", 90, "to come")];
    assert_eq!(list(&mut desk, ""), both);
    desk.clock.set(support::start().plus_seconds(31 * DAY));
    let both = [row("responses", 30, "OVERDUE"), row("logs", 90, "to come")];
    assert_eq!(list(&mut desk, ""), both);
    let before = format!("--before {}", day(60));
    assert_eq!(list(&mut desk, &before), both[..1]);
    let status = desk.ok("status").out;
    assert!(
        status.contains(&format!("retention responses since {}", day(30))),
        "{status}"
    );
    let overdue = desk.ok("status --json").json()["data"]["overdue"].clone();
    assert_eq!(overdue.as_array().unwrap().len(), 1);
    // Ninety days are below six months.
    let said = desk.ok("report expiry").out;
    assert!(
        said.contains("class logs") && said.contains("90 days"),
        "{said}"
    );
    desk.ok("report expiry -o expiry.csv");
    let csv = std::fs::read_to_string(desk.at.join("expiry.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("date,standing,kind,name,") && lines[1].contains("OVERDUE"));
    desk.ok(&set("logs", 184));
    assert!(!desk.ok("report expiry").out.contains("class logs"));
}

#[test]
fn commands_that_answer_a_framework_are_there() {
    let mut desk = Desk::new();
    for of in COVERAGE.iter().flat_map(|of| of.commands) {
        desk.ok(&format!("{of} --help"));
    }
}
