//! Events that are signed where the log is not written, and handed to whoever writes it: each counts once, under its
//! author, by the rules of the moment it is appended.

use std::path::PathBuf;

use clover::ground::digest::Digest;
use serde_json::Value;

use super::Desk;
use super::Ran;

/// The writer's desk, and Bea's copy of its ledger with a key of her own, admitted as scorer.
pub(super) fn two() -> Desk {
    let mut desk = Desk::with_ledger();
    let ask = "key request --for ledger.example/cli --roles scorer --holder Bea -o bea.request";
    as_bea(&mut desk, |desk| desk.ok(&format!("{ask} --json")));
    let at = desk.path("bea-work/bea.request");
    desk.ok(&format!("key admit {} --yes", at.display()));
    copy(&mut desk, "bea-work");
    desk
}

/// Does something as Bea: with her keys, on her machine, in her folder.
pub(super) fn as_bea<T>(desk: &mut Desk, does: impl FnOnce(&mut Desk) -> T) -> T {
    let own = (desk.config, desk.state, desk.at.clone());
    let at = desk.path("bea-work");
    std::fs::create_dir_all(&at).unwrap();
    (desk.config, desk.state, desk.at) = ("bea", "bea-state", at);
    let done = does(desk);
    (desk.config, desk.state, desk.at) = own;
    done
}

/// Makes a copy of the writer's ledger as Bea has it, in place of the one that she had.
fn copy(desk: &mut Desk, folder: &str) {
    let (export, into) = (desk.path("export"), desk.path(folder));
    std::fs::remove_dir_all(&export).ok();
    std::fs::remove_dir_all(into.join(".clover")).ok();
    desk.ok(&format!("export jsonl -o {} --blobs", export.display()));
    let import = format!(
        "import ledger {} --into {}",
        export.display(),
        into.display()
    );
    as_bea(desk, |desk| desk.ok(&import));
}

fn score(item: &str, micro: i64, out: &str) -> String {
    format!(
        "sign score.recorded --experiment exp-1 --data {{\"draw\":0,\"item\":\"{item}\",\"judge\":\"j\",\"policy\":\"p\",\"score_micro\":{micro}}} -o {out} --json"
    )
}

fn sign(desk: &mut Desk, line: &str) -> Value {
    as_bea(desk, |desk| desk.ok(line)).json()["data"].clone()
}

fn of_bea(desk: &Desk, name: &str) -> String {
    desk.path("bea-work").join(name).display().to_string()
}

fn submit(desk: &mut Desk, names: &[&str]) -> Ran {
    let files: Vec<String> = names.iter().map(|name| of_bea(desk, name)).collect();
    desk.run(&format!("submit {} --json", files.join(" ")))
}

#[test]
fn an_event_is_signed_in_one_place_and_appended_in_another() {
    // given
    let mut desk = two();
    let before = desk.head();
    // when
    let signed = sign(&mut desk, &score("a", 5, "a.jsonl"));
    // then
    assert_eq!(desk.head(), before);
    assert_eq!(signed["author_seq"], 0);
    assert_eq!(signed["seen_size"], before["size"]);
    let taken = submit(&mut desk, &["a.jsonl"]);
    assert_eq!(taken.code, 0, "{}", taken.err);
    let taken = taken.json();
    assert_eq!(taken["verdict"], "appended");
    let result = &taken["data"]["files"][0]["results"][0];
    assert_eq!(result["seq"], before["size"]);
    assert_eq!(result["id"], signed["ids"][0]);
    let shown = desk.ok(&format!("show {} --json", result["seq"])).json();
    assert_eq!(
        shown["data"]["body"]["author"], signed["author"],
        "{shown:#}"
    );
    // A file submitted twice is known again.
    let after = desk.head();
    let again = submit(&mut desk, &["a.jsonl", "a.jsonl"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(again.json()["verdict"], "already_recorded");
    assert_eq!(again.json()["data"]["already"], 2);
    assert_eq!(desk.head(), after);
}

#[test]
fn numbers_go_on_while_files_wait() {
    let mut desk = two();
    for (number, item) in ["a", "b", "c"].into_iter().enumerate() {
        let signed = sign(&mut desk, &score(item, 5, &format!("{item}.jsonl")));
        assert_eq!(signed["author_seq"], number);
        assert_eq!(signed["waiting"], number + 1);
    }
    let later = of_bea(&desk, "c.jsonl");
    desk.refused(
        &["submit", &later],
        11,
        &["c.jsonl", "next event is number 0", "begins with number 2"],
    );
    // The order of the files is no matter.
    let taken = submit(&mut desk, &["c.jsonl", "a.jsonl", "b.jsonl"]);
    assert_eq!(taken.code, 0, "{}", taken.err);
    assert_eq!(taken.json()["data"]["appended"], 3);
    desk.head();
    // What is recorded waits no more.
    copy(&mut desk, "bea-work");
    let signed = sign(&mut desk, &score("d", 5, "d.jsonl"));
    assert_eq!(
        (&signed["author_seq"], &signed["waiting"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn what_was_said_is_not_signed_twice() {
    let mut desk = two();
    sign(&mut desk, &score("a", 5, "a.jsonl"));
    let again = as_bea(&mut desk, |desk| desk.ok(&score("a", 5, "again.jsonl"))).json();
    assert_eq!(again["verdict"], "already_recorded");
    assert!(!PathBuf::from(of_bea(&desk, "again.jsonl")).exists());
    // Nor does it overwrite a file.
    let ran = as_bea(&mut desk, |desk| desk.run(&score("b", 5, "a.jsonl")));
    assert_eq!(ran.code, 11);
    assert!(ran.err.contains("a.jsonl exists already"), "{}", ran.err);
    let next = sign(&mut desk, &score("b", 5, "b.jsonl"));
    assert_eq!(next["author_seq"], 1);
}

#[test]
fn a_number_that_is_taken_is_named_with_the_fix() {
    let mut desk = two();
    sign(&mut desk, &score("a", 5, "a.jsonl"));
    // Another machine of hers does not know of it, and gives its number again.
    let own = desk.path("bea-state");
    std::fs::rename(&own, desk.path("elsewhere")).unwrap();
    let other = sign(&mut desk, &score("b", 5, "b.jsonl"));
    assert_eq!(other["author_seq"], 0);
    assert_eq!(submit(&mut desk, &["a.jsonl"]).code, 0);
    let taken = of_bea(&desk, "b.jsonl");
    desk.refused(
        &["submit", &taken],
        11,
        &[
            "b.jsonl",
            "holds that number with other bytes",
            "signs it again under a free number",
            "next: clover show",
        ],
    );
}

#[test]
fn altered_and_foreign_files_append_nothing() {
    let mut desk = two();
    sign(&mut desk, &score("a", 5, "a.jsonl"));
    let path = of_bea(&desk, "a.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut envelope: Value = serde_json::from_str(&text).unwrap();
    let signature = envelope["signatures"][0]["sig"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = if signature.starts_with('A') { "B" } else { "A" };
    envelope["signatures"][0]["sig"] = format!("{first}{}", &signature[1..]).into();
    let altered = desk.file("altered.jsonl", &envelope.to_string());
    desk.refused(&["submit", &altered], 3, &["altered.jsonl", "signature"]);
    let none = desk.file("none.jsonl", "\n");
    desk.refused(&["submit", &none], 4, &["none.jsonl", "no event"]);
    let entry = desk.file("line.jsonl", "{\"kind\":\"note.recorded\"}\n");
    desk.refused(&["submit", &entry], 4, &["line.jsonl", "line 1"]);
    // In another ledger nobody knows the key, and nothing is added there.
    let mut other = Desk::new();
    other.ok("init --origin ledger.example/other --holder Ada --roles owner,registrar");
    let file = other.file("a.jsonl", &text);
    other.refused(&["submit", &file], 11, &["a.jsonl", "unknown key"]);
}

#[test]
fn rules_judge_when_it_is_appended() {
    // given: what Bea signed is good by the ledger that she has, and Ada recorded otherwise meanwhile
    let mut desk = two();
    sign(&mut desk, &score("a", 5, "a.jsonl"));
    sign(&mut desk, &score("b", 5, "b.jsonl"));
    let by_ada = score("a", 6, "x")
        .replace("sign", "record")
        .replace(" -o x", "");
    desk.ok(&format!("{by_ada} --key scorer"));
    // when
    let file = of_bea(&desk, "a.jsonl");
    desk.refused(&["submit", &file], 11, &["a.jsonl", "natural_key"]);
    // then: with the ledger as it is, the number is free for another event
    copy(&mut desk, "bea-work");
    let ran = as_bea(&mut desk, |desk| desk.ok(&score("c", 5, "c.jsonl")));
    assert!(
        ran.err.contains("refused at the head that is here"),
        "{}",
        ran.err
    );
    assert_eq!(ran.json()["data"]["author_seq"], 0);
    assert_eq!(submit(&mut desk, &["c.jsonl"]).code, 0);
}

#[test]
fn a_refused_file_harms_no_other() {
    let mut desk = two();
    sign(&mut desk, &score("a", 5, "a.jsonl"));
    let bad = desk.file(
        "bad.jsonl",
        &std::fs::read_to_string(of_bea(&desk, "a.jsonl")).unwrap(),
    );
    let text = std::fs::read_to_string(desk.at.join(&bad)).unwrap();
    let mut envelope: Value = serde_json::from_str(&text).unwrap();
    envelope["signatures"][0]["keyid"] = "0".repeat(64).into();
    std::fs::write(desk.at.join(&bad), envelope.to_string()).unwrap();
    let before = desk.head();
    let good = of_bea(&desk, "a.jsonl");
    let ran = desk.run(&format!("submit {bad} {good} --json"));
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("bad.jsonl"), "{}", ran.err);
    assert!(ran.err.contains("stands all the same"), "{}", ran.err);
    assert_eq!(ran.json()["data"]["taken"]["appended"], 1);
    assert_ne!(desk.head(), before);
}

#[test]
fn a_blob_goes_along() {
    let mut desk = two();
    let content = b"what was seen\n";
    std::fs::write(desk.path("bea-work/seen.txt"), content).unwrap();
    let data = format!(
        "{{\"blob\":{{\"blake3\":\"{}\",\"bytes\":{},\"media\":\"text/plain\"}},\"text\":\"seen\"}}",
        Digest::blake3(content).to_hex(),
        content.len()
    );
    let without = format!("sign note.recorded --data {data} -o n.jsonl");
    let ran = as_bea(&mut desk, |desk| desk.run(&without));
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains("blob"), "{}", ran.err);
    sign(&mut desk, &format!("{without} --blob seen.txt --json"));
    let alone = desk.file(
        "alone.jsonl",
        &std::fs::read_to_string(of_bea(&desk, "n.jsonl")).unwrap(),
    );
    desk.refused(&["submit", &alone], 11, &["alone.jsonl", "no such blob"]);
    assert_eq!(submit(&mut desk, &["n.jsonl"]).code, 0);
    desk.head();
}

/// The newest checkpoint and the log key of the writer's ledger, as Bea gets them.
fn given(desk: &mut Desk) -> (String, String) {
    let note = desk.ok("checkpoint show").out;
    desk.file("../bea-work/note", &note);
    let key = desk.ok("key export --log --json").json();
    (note, key["data"]["log_key"].as_str().unwrap().to_owned())
}

fn unread(desk: &mut Desk, out: &str, more: &[&str]) -> Ran {
    let line = score(&format!("item-{out}"), 5, out);
    let words: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
    as_bea(desk, |desk| desk.words(&words))
}

#[test]
fn who_may_not_read_the_log_signs_by_a_checkpoint() {
    // given: Bea has a key, a checkpoint and the log key, and no copy
    let mut desk = two();
    std::fs::remove_dir_all(desk.path("bea-work/.clover")).unwrap();
    let (_, key) = given(&mut desk);
    let seen = ["--seen", "note", "--log-key", &key];
    // when
    for number in 0..2 {
        let ran = unread(&mut desk, &format!("{number}.jsonl"), &seen);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains("nothing was judged"), "{}", ran.err);
        assert_eq!(ran.json()["data"]["author_seq"], number);
    }
    // then: the log went on meanwhile, and takes both
    desk.ok("record note.recorded --data {\"text\":\"on\"} --key owner");
    let taken = submit(&mut desk, &["1.jsonl", "0.jsonl"]);
    assert_eq!(taken.code, 0, "{}", taken.err);
    assert_eq!(taken.json()["data"]["appended"], 2);
    desk.head();
}

#[test]
fn a_checkpoint_that_is_old_or_forged_is_signed_under_by_nobody() {
    let mut desk = two();
    std::fs::remove_dir_all(desk.path("bea-work/.clover")).unwrap();
    let (older, key) = given(&mut desk);
    desk.ok("record note.recorded --data {\"text\":\"on\"} --key owner");
    let (newer, _) = given(&mut desk);
    let seen = ["--seen", "note", "--log-key", &key];
    assert_eq!(unread(&mut desk, "0.jsonl", &seen).code, 0);
    // A number that was given, and one that is said.
    let again = [&seen[..], &["--number", "0"]].concat();
    let ran = unread(&mut desk, "again.jsonl", &again);
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains("number 0 was given before"), "{}", ran.err);
    let later = [&seen[..], &["--number", "7"]].concat();
    let ran = unread(&mut desk, "7.jsonl", &later);
    assert_eq!(ran.json()["data"]["author_seq"], 7);
    // Older than what was seen.
    desk.file("../bea-work/note", &older);
    let ran = unread(&mut desk, "old.jsonl", &seen);
    assert_eq!(ran.code, 3, "{}", ran.err);
    super::says(&ran, &["rolled_back", "seen here before"]);
    // Another size under the signature of this one.
    let changed: String = newer
        .lines()
        .enumerate()
        .map(|(at, line)| {
            if at == 1 {
                "99\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    desk.file("../bea-work/note", &changed);
    let ran = unread(&mut desk, "forged.jsonl", &seen);
    assert_eq!(ran.code, 3, "{}", ran.err);
    super::says(&ran, &["forged", "note"]);
    for name in ["again", "old", "forged"] {
        assert!(!desk.path("bea-work").join(format!("{name}.jsonl")).exists());
    }
}

#[test]
fn a_file_too_large_for_one_submission_is_not_read() {
    let mut desk = Desk::with_ledger();
    let large = std::fs::File::create(desk.at.join("large.jsonl")).unwrap();
    large.set_len(17 << 20).unwrap();
    desk.refused(
        &["submit", "large.jsonl"],
        4,
        &["large.jsonl", "one file takes"],
    );
}

#[test]
fn one_key_in_two_ledgers_signs_for_each() {
    // given: the same owner's key in both, and a file that she signed for the first
    let mut desk = Desk::with_ledger();
    let here = "sign note.recorded --data {\"text\":\"here\"} -o here.jsonl --key owner --json";
    let number = desk.ok(here).json()["data"]["author_seq"].as_u64().unwrap();
    let file = desk.at.join("here.jsonl").display().to_string();
    desk.at = desk.path("elsewhere");
    std::fs::create_dir(&desk.at).unwrap();
    desk.ok("init --origin ledger.example/elsewhere --holder Ada --owner-key owner");
    // As many events there as her numbers are here, so that only the name of the ledger is another.
    for text in 1..number {
        desk.ok(&format!(
            "record note.recorded --data {{\"text\":\"{text}\"}}"
        ));
    }
    // then
    desk.refused(
        &["submit", &file],
        11,
        &["ledger", "ledger.example/elsewhere", "ledger.example/cli"],
    );
}
