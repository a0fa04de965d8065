//! The verbs as a person meets them: what they print, and that the ledger verifies after each.

use clover::event::id::EventId;
use clover::event::payload::custody::SubjectErased;
use clover::ground::digest::Digest;
use clover::ledger::rulebooks;

use crate::cli::Desk;
use crate::cli::Ran;
use crate::cli::copy_tree;
use crate::cli::release;
use crate::cli::same;
use crate::cli::says;
use crate::cli::score_line;
use crate::support;

/// An origin is lower-case ASCII without spaces; a folder's name may be neither.
#[test]
fn any_folder_can_hold_a_ledger() {
    let mut desk = Desk::new();
    let ran = desk
        .ok("init My-Lab --holder Ada --roles all --json")
        .json();
    let origin = ran["data"]["origin"].as_str().unwrap().to_owned();
    assert!(origin.starts_with("clover.local/my-lab-"), "{origin}");
}

/// A text with each digest as a number, in order of first mention: what they are hangs on the rulebook that a ledger names.
fn numbered(text: &str, digests: &mut Vec<String>) -> String {
    let mut shown = String::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let is_hex = word.len() == 64 && word.chars().all(|one| one.is_ascii_hexdigit());
        let is_root = word.len() == 44 && word.ends_with('=');
        if !(is_hex || is_root) {
            shown.push_str(part);
            continue;
        }
        let place = digests.iter().position(|one| one == word);
        let place = place.unwrap_or_else(|| {
            digests.push(word.to_owned());
            digests.len() - 1
        });
        shown.push_str(&part.replace(word, &format!("#{}", place + 1)));
    }
    shown
}

#[test]
fn the_first_five_minutes() {
    let mut desk = Desk::new();
    let ran = desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar");
    same(&ran.out, INIT);
    same(
        &ran.err,
        "next: clover key new NAME --role scorer,labeler\nnext: clover status\n",
    );
    let ran = desk.ok("key new scorer --role scorer --machine");
    let mut digests = Vec::new();
    let mut numbered = |ran: &Ran| numbered(&ran.out, &mut digests);
    same(&numbered(&ran), KEY_NEW);
    desk.ok("key new cem --role custodian");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    same(&desk.ok("key list").out, KEY_LIST);
    let file = desk.file("scores.jsonl", &(score_line("a") + &score_line("b")));
    let ran = desk.ok(&format!("append --bulk {file}"));
    same(&numbered(&ran), BULK);
    let ran = desk.ok(&format!("append --bulk {file}"));
    assert!(
        ran.out
            .starts_with("appended 0 · already 2 · no new seq · root "),
        "{}",
        ran.out
    );
    same(&desk.ok("log --from 3").out, LOG);
    same(&numbered(&desk.ok("show 4")), SHOW);
    same(&numbered(&desk.ok("status")), STATUS);
    let rules = format!("rules {}", rulebooks::NEWEST);
    let verified = numbered(&desk.ok("verify"));
    same(&verified, &VERIFY.replace("rules NEWEST", &rules));
    same(&desk.ok("at 3 -- experiment list").out, EXPERIMENTS);
    let ran = desk.run("at 1 -- experiment list");
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let again = desk.run("init");
    assert_eq!(again.code, 11);
    says(&again, &["ledger.db exists already"]);
}

const INIT: &str = "
ledger   $T/work/.clover
origin   ledger.example/cli
log key  ledger.example/cli+b46cc772+ASKUS2b7/WpdtkA+/DuAWf0b6y0dGemu4C5azjOqdrJ8
owner    $T/config/clover/keys/owner.pem db16b9822ee85f1a4969b5c60a7a3772edb936c2905ce6b37fd436f803cb973f
roles    solo separation
pin      $T/state/clover/pins/b1ccdadd7d2abe6c6a1a30aabd82447bf9d0c6081cd42b885ba693b0bf08a30f
";
const KEY_NEW: &str = "
seq 1  key.added  #1
key #2 in $T/config/clover/keys/scorer.pem
";
const KEY_LIST: &str = "
file    key id            holder  held by  roles             events  standing
owner   db16b9822ee85f1a  Ada     person   owner, registrar  4       live
scorer  3ee31b7dd5b8774e  scorer  machine  scorer            0       live
cem     abc770d40146e71c  cem     person   custodian         0       live
";
const BULK: &str = "
appended 2 · already 0 · seq 4..5 · root #3
";
const LOG: &str = r#"
    seq  recorded              kind                   holder        data
      3  2026-11-20T10:00:00Z  experiment.registered  Ada           {"purpose":"testing","title":"One"}
      4  2026-11-20T10:00:00Z  score.recorded         scorer        {"draw":0,"item":"a","judge":"j","policy":"p","score_micro":5}
      5  2026-11-20T10:00:00Z  score.recorded         scorer        {"draw":0,"item":"b","judge":"j","policy":"p","score_micro":5}
"#;
const SHOW: &str = r#"
seq         4
kind        score.recorded v1
id          #4
holder      scorer (scorer)
author      #2 number 0
at          2026-11-20T10:00:00.000000Z
recorded    2026-11-20T10:00:00.000000Z
experiment  exp-1
seen        4 entries, root #5
leaf        #6
{
  "draw": 0,
  "item": "a",
  "judge": "j",
  "policy": "p",
  "score_micro": 5
}
"#;
const STATUS: &str = "
ledger   $T/work/.clover/ledger.db
origin   ledger.example/cli
entries  6
root     #3
head     2026-11-20T10:00:00Z
roles    solo: one person may hold all roles, claims are self-governed
keys     3 live, 0 ended
pin      at the head, agrees
rows     labels 0 · reveals 0 · scores 2 · seals 0

experiment  title  registered  standing
exp-1       One    seq 3       open
";
const VERIFY: &str = "
VERIFIED  6 events · 2 signers · root #3 · roles solo · rules NEWEST · signatures: strict · recompute NOT CHECKED
";
const EXPERIMENTS: &str = "
experiment  title  registered  standing
exp-1       One    seq 3       open
";

#[test]
fn a_dry_run_prints_the_body_and_appends_nothing() {
    let mut desk = Desk::with_ledger();
    let before = desk.head();
    let words = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "owner",
        "--dry-run",
    ];
    let ran = desk.ok_words(&words);
    let body = ran.out.trim_end();
    assert!(body.starts_with("{\"at\":\"2026-11-20T10:00:00."), "{body}");
    clover::ground::canon::check(body.as_bytes()).unwrap();
    assert!(ran.err.contains("dry run: nothing was appended"));
    let json = desk.ok_words(&[&words[..], &["--json"]].concat()).json();
    assert_eq!(json["verdict"], "dry_run");
    desk.ok("key new extra --role scorer --dry-run");
    assert!(!desk.key_file("extra").exists());
    for words in [
        vec!["key", "retire", "scorer", "--reason", "r", "--dry-run"],
        vec!["key", "rotate-log", "--reason", "r", "--dry-run"],
        vec!["experiment", "close", "exp-1", "--reason", "r", "--dry-run"],
    ] {
        desk.ok_words(&words);
    }
    // The rules speak even where nothing is appended.
    let words = ["experiment", "close", "exp-2", "--reason", "r", "--dry-run"];
    desk.refused(
        &words,
        11,
        &["experiment: expected a registered experiment"],
    );
    assert_eq!(desk.head(), before);
}

#[test]
fn refusals_name_the_rule_and_the_next_command() {
    let mut desk = Desk::with_ledger();
    let open = r#"{"account":"peeks","amount":3,"period":"quarter","purpose":"p","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", open]);
    let charge = r#"{"account":"peeks","amount":2,"for":"gate 1"}"#;
    let charged = desk
        .ok_words(&["record", "budget.charged", "--data", charge, "--json"])
        .json();
    assert_eq!(charged["data"]["seqs"][0], 5);
    same(&desk.ok("budget list").out, BUDGETS);
    let ran = desk.refused(
        &["record", "budget.charged", "--data", charge],
        11,
        &["refused: overdraft: expected at most 1 peek left in peeks in 2026Q4, found 2"],
    );
    assert!(
        ran.err.ends_with("next: clover budget list\n"),
        "{}",
        ran.err
    );
    let file = desk.file("a.jsonl", &score_line("a"));
    desk.refused(
        &["append", "--bulk", &file, "--key", "owner"],
        11,
        &["a.jsonl:1: role: expected a key with role scorer for score.recorded"],
    );
    desk.ok(&format!("append --bulk {file}"));
    let file = desk.file("b.jsonl", &score_line("a").replace(":5}", ":6}"));
    let ran = desk.refused(
        &["append", "--bulk", &file],
        11,
        &["natural_key", "seq 6 recorded it"],
    );
    assert!(ran.err.ends_with("next: clover show 6\n"), "{}", ran.err);
    // A quarter later the account is full again.
    desk.clock.set(support::start().plus_seconds(60 * 86_400));
    assert!(
        desk.ok("budget show peeks")
            .out
            .contains("left      3 peek in 2027Q1")
    );
    desk.ok_words(&["record", "budget.charged", "--data", charge]);
    desk.head();
}

const BUDGETS: &str = "
account  pays for  unit  period  opened     charged  left  charges        spenders
peeks    peeks     peek  2026Q4  3 (seq 4)  2        1     1, last seq 5  custodian
Nothing is charged for judge_call, label, patch: no account of that unit is open.
";

#[test]
fn a_kept_event_is_imported_again_safely() {
    let mut desk = Desk::with_ledger();
    let words = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "owner",
        "--out",
        "n.json",
    ];
    desk.ok_words(&words);
    let ran = desk.ok("import events n.json");
    assert!(
        ran.out.starts_with("appended 0 · already 1 · "),
        "{}",
        ran.out
    );
    let ran = desk.run("import events n.json --dry-run");
    assert!(ran.out.starts_with("{\"at\":"), "{}", ran.out);
    // An export's lines are envelopes too.
    desk.ok("export jsonl -o out");
    let ran = desk.ok("import events out/ledger.jsonl");
    assert!(
        ran.out.starts_with("appended 0 · already 5 · "),
        "{}",
        ran.out
    );
    let kept = std::fs::read_to_string(desk.at.join("n.json")).unwrap();
    // One changed character of the signature, still base64.
    let at = kept.find("\"sig\":\"").unwrap() + 10;
    let other = if &kept[at..=at] == "A" { "B" } else { "A" };
    let file = desk.file(
        "bad.json",
        &format!("{}{other}{}", &kept[..at], &kept[at + 1..]),
    );
    let ran = desk.run(&format!("import events {file}"));
    assert!(ran.code == 3 || ran.code == 11, "{}", ran.err);
    // What a rule refuses is not kept.
    let words = [
        "record",
        "experiment.closed",
        "--data",
        "{\"outcome\":\"completed\",\"reason\":\"r\"}",
        "--experiment",
        "exp-9",
        "--out",
        "c.json",
    ];
    desk.refused(&words, 11, &["experiment"]);
    assert!(!desk.at.join("c.json").exists());
    desk.head();
}

#[test]
fn proofs_checkpoints_and_exports() {
    let mut desk = Desk::with_ledger();
    let lines: String = (0..300).map(|n| score_line(&format!("i{n}"))).collect();
    let file = desk.file("s.jsonl", &lines);
    let early = desk.ok("checkpoint show").out;
    desk.file("early", &early);
    desk.ok(&format!("append --bulk {file}"));
    let ran = desk.ok("prove 17 -o 17.tlog-proof");
    assert_eq!(
        ran.out,
        "$T/work/17.tlog-proof: entry 17 under 304 entries, 9 hashes\n"
    );
    let line = desk.ok("show 17 --line").out;
    desk.file("17.line", &line);
    let key = desk.ok("key export --log").out.trim().to_owned();
    let check = "prove --check 17.tlog-proof --line 17.line";
    let ran = desk.ok(&format!("{check} --log-key {key}"));
    assert!(
        ran.out
            .starts_with("PROVEN  entry 17 of ledger.example/cli · 304 · root "),
        "{}",
        ran.out
    );
    desk.file("17.line", &line.replace("\"seq\":17", "\"seq\":18"));
    let ran = desk.run(check);
    assert_eq!(ran.code, 3);
    says(&ran, &["tampered: the proof does not hold"]);
    let ran = desk.ok("checkpoint compare early head");
    assert!(
        ran.out.starts_with("ORDER  4 entries, root "),
        "{}",
        ran.out
    );
    let proof = desk.ok("checkpoint consistency 4 304").out;
    let order = desk.ok("checkpoint compare early head --json").json();
    assert_eq!(order["data"]["consistency"], "pass");
    assert_eq!(order["data"]["newer"]["size"], 304);
    desk.file("consistency", &proof);
    desk.ok("checkpoint compare early head --proof consistency");
    assert!(
        desk.ok("checkpoint compare head pin")
            .out
            .starts_with("AGREE  ")
    );
    desk.file("consistency", "");
    assert_eq!(
        desk.run("checkpoint compare early head --proof consistency")
            .code,
        3
    );
    desk.ok("checkpoint pin");
    let ran = desk.ok("export jsonl -o out --blobs");
    assert!(
        ran.out
            .starts_with("exported 304 entries · 0 blobs · 3 files · root "),
        "{}",
        ran.out
    );
    let ran = desk.ok("verify out");
    assert!(
        ran.out.starts_with("VERIFIED  304 events") && !ran.out.contains("identity"),
        "{}",
        ran.out
    );
    desk.ok(&format!(
        "verify out/ledger.jsonl --log-key {key} --against early --no-pin --fast"
    ));
    desk.ok("verify --since early");
    desk.ok("verify --since pin --tree-only");
    assert_eq!(desk.run("export jsonl -o out").code, 2);
    let stream = desk.ok("export jsonl -o -").out;
    assert_eq!(
        stream,
        std::fs::read_to_string(desk.at.join("out/ledger.jsonl")).unwrap()
    );
    desk.ok("export tiles -o tiles");
    for (file, bytes) in [
        ("tile/0/000", 8_192),
        ("tile/0/001.p/48", 48 * 32),
        ("tile/1/000.p/1", 32),
    ] {
        let path = desk.at.join("tiles").join(file);
        assert_eq!(std::fs::metadata(path).unwrap().len(), bytes, "{file}");
    }
    assert!(desk.at.join("tiles/tile/entries/001.p/48").exists());
    // A changed line is found at its place.
    let text = stream.replace("\"seq\":17}", "\"seq\":71}");
    std::fs::write(desk.at.join("out/ledger.jsonl"), text).unwrap();
    let ran = desk.run("verify out");
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("first at seq 17 (seq)"), "{}", ran.out);
    desk.head();
}

#[test]
fn a_label_is_sealed_paid_for_and_revealed() {
    let mut desk = Desk::with_ledger();
    let row = "--experiment exp-1 --design confirm --row 7";
    desk.file("value", "-0.25\n");
    desk.ok(&format!(
        "seal label {row} --value @value --to cem --reveal-by 2027-01-31T00:00:00.000000Z --yes"
    ));
    desk.ok(&format!("seal accept {row}"));
    let some = "0".repeat(64);
    let words = format!("seal reveal {row} --charge {some}");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(
        &words,
        11,
        &["refused: --charge is no event of this ledger"],
    );
    let note = desk.ok_words(&[
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "cem",
        "--json",
    ]);
    let note = note.json()["events"][0].as_str().unwrap().to_owned();
    let words = format!("seal reveal {row} --charge {note}");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(
        &words,
        11,
        &["--charge is a note.recorded, not a budget.charged"],
    );
    let other = "--experiment exp-1 --design probes --row 7";
    desk.ok(&format!(
        "seal label {other} --value @value --to cem --reveal-by 2027-01-31T00:00:00.000000Z --yes"
    ));
    desk.ok(&format!("seal accept {other}"));
    let open = r#"{"account":"peeks","amount":3,"period":"quarter","purpose":"p","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", open]);
    let charge = r#"{"account":"peeks","amount":1,"for":"row 7"}"#;
    let charge = desk.ok_words(&["record", "budget.charged", "--data", charge, "--json"]);
    let charge = charge.json()["events"][0].as_str().unwrap().to_owned();
    let ran = desk.ok(&format!("seal reveal {row} --charge {charge}"));
    assert!(ran.out.ends_with("value -0.25\n"), "{}", ran.out);
    assert!(
        desk.ok("status")
            .out
            .contains("labels 0 · reveals 1 · scores 0 · seals 2")
    );
    // One peek pays for one design.
    let words = format!("seal reveal {other} --charge {charge}");
    let words: Vec<_> = words.split(' ').collect();
    let parts = [
        "charge",
        "paid for no other labels",
        "design confirm of exp-1",
    ];
    desk.refused(&words, 11, &parts);
    // And for what was sealed when it was charged.
    let later = "--experiment exp-1 --design confirm --row 8";
    desk.ok(&format!(
        "seal label {later} --value @value --to cem --reveal-by 2027-01-31T00:00:00.000000Z --yes"
    ));
    desk.ok(&format!("seal accept {later}"));
    let words = format!("seal reveal {later} --charge {charge}");
    let words: Vec<_> = words.split(' ').collect();
    let parts = [
        "row 8 was sealed at seq",
        "after the charge at seq",
        "a charge opens what was sealed when it was charged",
    ];
    desk.refused(&words, 11, &parts);
    desk.head();
}

#[test]
fn private_content_is_erased_and_the_ledger_still_verifies() {
    let mut desk = Desk::with_ledger();
    desk.file("secret.txt", "a private prompt");
    let put = desk
        .ok("blob put secret.txt --media text/plain --subject new --json")
        .json();
    let reference = &put["data"]["reference"];
    let subject = reference["subject"].as_str().unwrap().to_owned();
    let digest = reference["blob"]["blake3"].as_str().unwrap().to_owned();
    let mut line = score_line("a");
    line.insert_str(
        line.find("\"score_micro\"").unwrap(),
        &format!("\"prompt\":{reference},"),
    );
    let file = desk.file("s.jsonl", &line);
    desk.ok(&format!("append --bulk {file}"));
    let get = format!("blob get {digest} --subject {subject}");
    assert_eq!(desk.ok(&get).out, "a private prompt");
    let erase = format!("erase {subject} --basis request");
    let words: Vec<_> = erase.split(' ').collect();
    desk.refused(
        &words,
        2,
        &[
            "usage: destroy the key of subject",
            "next: clover erase",
            "--yes",
        ],
    );
    desk.on_terminal = true;
    desk.stdin = b"n\n".to_vec();
    desk.refused(&words, 11, &["not confirmed; nothing was changed"]);
    desk.stdin = b"y\n".to_vec();
    let ran = desk.ok(&erase);
    desk.on_terminal = false;
    assert!(ran.out.ends_with(": destroyed\n"), "{}", ran.out);
    assert_eq!(desk.run(&get).code, 5);
    let ran = desk.ok(&format!("{erase} --yes"));
    assert!(
        ran.out.contains("already recorded") && ran.out.ends_with(": gone before\n"),
        "{}",
        ran.out
    );
    let again = desk.ok(&format!("{erase} --yes --json")).json();
    let facts = &again["data"];
    assert_eq!(facts["already"], 1);
    assert_eq!(facts["destroyed"], false);
    assert!(
        ran.out
            .contains(&format!("seq {}  subject.erased", facts["seqs"][0]))
    );
    assert!(desk.ok("blob list").out.contains(&digest));
    let unknown = "1".repeat(64);
    desk.refused(
        &["erase", &unknown, "--basis", "b", "--yes"],
        5,
        &["unknown here"],
    );
    desk.ok("export jsonl -o out --blobs");
    assert!(!desk.ok("verify out").out.contains("blobs NOT CHECKED"));
    std::fs::write(desk.at.join("out/blobs").join(&digest), "other").unwrap();
    let ran = desk.run("verify out");
    assert!(ran.code == 3 && ran.out.contains("(blob)"), "{}", ran.out);
    desk.head();
}

/// Given a private text, when somebody writes the event of its erasure by hand, then that is refused with the right command; and
/// where the event came in by other means, the text is said to be readable until `erase` destroys the key.
#[test]
fn an_erasure_that_leaves_the_key_is_refused_and_found() {
    let mut desk = Desk::with_ledger();
    desk.file("secret.txt", "a private prompt");
    let put = desk
        .ok("blob put secret.txt --media text/plain --subject new --json")
        .json();
    let subject = put["data"]["reference"]["subject"].as_str().unwrap();
    let digest = put["data"]["reference"]["blob"]["blake3"].as_str().unwrap();
    let data = format!("{{\"basis\":\"art 17\",\"subject\":\"{subject}\"}}");
    let next = format!("next: clover erase {subject} --basis 'art 17'");
    let parts = ["subject.erased alone leaves the key", &next];
    let record = ["record", "subject.erased", "--data", &data];
    desk.refused(&record, 11, &parts);
    let sign = [
        "sign",
        "subject.erased",
        "--data",
        &data,
        "--out",
        "s.jsonl",
    ];
    desk.refused(&sign, 11, &parts);
    let line = format!("{{\"data\":{data},\"kind\":\"subject.erased\"}}\n");
    let file = desk.file("e.jsonl", &line);
    desk.refused(&["append", "--bulk", &file], 4, &parts[..1]);
    assert!(!desk.run("doctor").out.contains("recorded as erased"));

    let said = SubjectErased {
        basis: support::text("art 17"),
        requester: None,
        subject: Digest::from_hex(subject).unwrap(),
    };
    let (_, seq) = release::said(&mut desk, "cem", &said.into(), false);
    let found = format!("recorded as erased at seq {seq}, text still readable here");
    let doctor = desk.run("doctor");
    assert!(doctor.out.contains(&found), "{}", doctor.out);
    let get = format!("blob get {digest} --subject {subject}");
    assert_eq!(desk.ok(&get).out, "a private prompt");
    let ran = desk.ok(&format!("erase {subject} --basis request --yes"));
    assert!(ran.out.ends_with(": destroyed\n"), "{}", ran.out);
    assert_eq!(desk.run(&get).code, 5);
    assert!(!desk.run("doctor").out.contains("recorded as erased"));
    desk.head();
}

#[test]
fn keys_end_and_the_log_key_changes() {
    let mut desk = Desk::with_ledger();
    let retire = "key retire scorer --reason replaced";
    let words: Vec<_> = retire.split(' ').collect();
    desk.refused(
        &words,
        2,
        &[
            "retire key ",
            "next: clover key retire scorer --reason 'replaced' --yes",
        ],
    );
    desk.ok(&format!("{retire} --yes"));
    desk.ok("key compromise cem --since-seq 2 --reason leaked --yes");
    let ran = desk.ok("verify");
    assert!(
        ran.out.contains("tainted: events of key ") && ran.out.contains("1 tainted keys"),
        "{}",
        ran.out
    );
    let words = ["key", "retire", "owner", "--reason", "r", "--yes"];
    desk.refused(&words, 11, &["last_owner"]);
    let before = desk.ok("key export --log").out;
    // The append went through and the program stopped before the rename: the next verb finishes it.
    let old = std::fs::read(desk.at.join(".clover/log.key")).unwrap();
    desk.ok("key rotate-log --reason yearly");
    let log_key = desk.at.join(".clover/log.key");
    std::fs::rename(&log_key, desk.at.join(".clover/log.key.next")).unwrap();
    std::fs::write(&log_key, old).unwrap();
    std::os::unix::fs::PermissionsExt::set_mode(
        &mut std::fs::metadata(&log_key).unwrap().permissions(),
        0o600,
    );
    std::fs::set_permissions(
        &log_key,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let ran = desk.ok("record note.recorded --key owner --data {\"text\":\"a\"}");
    assert!(
        ran.err.contains("the rotation of the log key is finished"),
        "{}",
        ran.err
    );
    assert!(!desk.at.join(".clover/log.key.next").exists());
    assert_ne!(desk.ok("key export --log").out, before);
    desk.ok(&format!("verify --log-key {}", before.trim()));
    desk.head();
}

#[test]
fn a_passphrase_guards_a_key() {
    let mut desk = Desk::with_ledger();
    let secret = desk.file("pass", "correct horse\n");
    std::fs::set_permissions(
        desk.at.join(&secret),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    desk.ok("key new locked --role labeler --new-passphrase-file pass");
    let note = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "locked",
    ];
    desk.refused(
        &note,
        4,
        &["the key file is encrypted and no passphrase was given"],
    );
    desk.ok_words(&[&note[..], &["--passphrase-file", "pass"]].concat());
    let wrong = desk.file("wrong", "staple\n");
    std::fs::set_permissions(
        desk.at.join(&wrong),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let words = [&note[..], &["--passphrase-file", "wrong"]].concat();
    desk.refused(&words, 4, &["wrong passphrase"]);
}

#[test]
fn text_from_a_ledger_cannot_drive_a_terminal() {
    let mut desk = Desk::with_ledger();
    let title = "evil \u{9b}2J \u{202e}txt";
    let data = format!("{{\"text\":\"{title}\"}}");
    // C1 controls are no text of a ledger; what reorders text is.
    desk.refused(
        &["record", "note.recorded", "--data", &data, "--key", "owner"],
        4,
        &["control"],
    );
    let data = "{\"text\":\"evil \u{202e}txt\"}";
    desk.ok_words(&["record", "note.recorded", "--data", data, "--key", "owner"]);
    for line in ["log", "show 4", "show 4 --json", "log --json"] {
        assert!(!desk.ok(line).out.contains('\u{202e}'), "{line}");
    }
}

#[test]
fn strict_separation_is_always_visible() {
    let mut desk = Desk::new();
    desk.ok("init --separation strict --holder Ada");
    assert!(
        desk.ok("status")
            .out
            .contains("strict: conflicting roles are refused, per holder")
    );
    desk.ok("key new opt --role optimizer --holder Bob --machine");
    desk.refused(
        &["key", "new", "lab", "--role", "labeler", "--holder", "Bob"],
        11,
        &["separation: expected no holder with conflicting roles"],
    );
    assert!(!desk.key_file("lab").exists());
    // Who gives up a role keeps what they learned in it.
    desk.ok("key retire opt --reason over --yes");
    desk.refused(
        &["key", "new", "lab", "--role", "labeler", "--holder", "Bob"],
        11,
        &["Bob would hold both optimizer and labeler, keys that ended included"],
    );
    assert!(!desk.key_file("lab").exists());
    desk.ok("key new lab --role auditor --holder Bob");
}

#[test]
fn answers_have_one_json_form() {
    let mut desk = Desk::with_ledger();
    let ran = desk.ok("status --json");
    let keys: Vec<_> = [
        "ok",
        "verdict",
        "exit",
        "events",
        "checkpoint",
        "data",
        "warnings",
        "next",
    ]
    .into();
    let json = ran.json();
    let object = json.as_object().unwrap();
    assert_eq!(object.len(), keys.len());
    for key in keys {
        assert!(object.contains_key(key), "{key}");
    }
    assert_eq!(ran.out.lines().count(), 1);
    let ran = desk.ok("log --limit 2 --json");
    assert_eq!(ran.json()["data"]["entries"].as_array().unwrap().len(), 2);
    let id = ran.json()["data"]["entries"][1]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(Digest::from_hex(&id).map(EventId).is_some());
    assert_eq!(
        desk.ok(&format!("show {id} --json")).json()["data"]["seq"],
        3
    );
    assert_eq!(
        desk.ok("log --kind key.added --author owner --json").json()["data"]["entries"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        desk.ok("log --follow --from 0 --limit 3")
            .out
            .lines()
            .count(),
        4
    );
}

#[test]
fn a_backup_verifies_and_holds_no_key() {
    let mut desk = Desk::with_ledger();
    desk.file("secret.txt", "private");
    desk.ok("blob put secret.txt --subject new");
    desk.ok("backup plain");
    desk.ok("backup full --with-vault");
    let names = |folder: &str| {
        let names = std::fs::read_dir(desk.at.join(folder)).unwrap();
        let mut names: Vec<_> = names
            .map(|name| name.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
        names.sort();
        names
    };
    assert_eq!(names("plain"), ["ledger.db"]);
    assert_eq!(names("full"), ["ledger.db", "vault.db"]);
    desk.ok("verify plain/ledger.db");
    assert_eq!(desk.run("backup plain").code, 11);
    copy_tree(&desk.at.join("plain"), &desk.path("moved"));
    desk.at = desk.path("moved");
    desk.ok("status --ledger .");
}

#[test]
fn schemas_completions_pages_and_the_doctor() {
    let mut desk = Desk::with_ledger();
    assert!(desk.ok("schema").out.contains("score.recorded"));
    assert!(
        desk.ok("schema score.recorded")
            .out
            .contains("\"score_micro\"")
    );
    assert_eq!(desk.run("schema score.taken").code, 5);
    for shell in ["bash", "fish", "zsh"] {
        assert!(
            desk.ok(&format!("completions {shell}"))
                .out
                .contains("busy-timeout"),
            "{shell}"
        );
    }
    assert!(desk.ok("man").out.contains(".TH"));
    desk.ok("man -o man");
    assert!(desk.at.join("man/clover-key-new.1").exists());
    let ran = desk.ok("doctor --selftest");
    assert!(
        ran.out.contains("OQ roll back") && !ran.out.contains("BAD"),
        "{}",
        ran.out
    );
    let log_key = desk.at.join(".clover/log.key");
    std::fs::set_permissions(log_key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let ran = desk.run("doctor");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("BAD   log key file"), "{}", ran.out);
}

#[test]
fn the_demo_holds() {
    let mut desk = Desk::new();
    let ran = desk.ok("demo --dir demo");
    assert!(ran.out.lines().count() < 245, "{}", ran.out);
    assert!(
        ran.out.lines().all(|line| line.chars().count() <= 130),
        "{}",
        ran.out
    );
    for part in [
        "10,000 signed events",
        "VERIFIED  10004 events",
        "PROVEN  entry 4711",
        "FAILED  ",
        "first at seq 4711",
        "FIRST ITERATION",
        "SECOND ITERATION",
        "A WORKFLOW",
        "A MODEL AS A JUDGE",
        "0 differ · 0 cannot be computed again",
        "All of it held",
    ] {
        assert!(ran.out.contains(part), "{part} is not in:\n{}", ran.out);
    }
    desk.ok("status --ledger demo");
    assert_eq!(desk.run("demo --dir demo").code, 11);
}
