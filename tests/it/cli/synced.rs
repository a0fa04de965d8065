//! One ledger for two people through a folder that they share: one publishes, the other follows and hands in, and no fork,
//! rollback or second writer gets through.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use super::Desk;
use super::Ran;
use super::copy_tree;
use super::says;
use super::score_line;
use super::signed::as_bea;

/// Ada publishes in a folder; Bea follows it, with a key as scorer.
pub(super) fn team() -> Desk {
    let mut desk = Desk::with_ledger();
    let ask = "key request --for ledger.example/cli --roles scorer --holder Bea -o bea.request";
    as_bea(&mut desk, |desk| desk.ok(ask));
    let request = desk.path("bea-work/bea.request");
    desk.ok(&format!("key admit {} --yes", request.display()));
    std::fs::create_dir(desk.path("team")).unwrap();
    ada(&mut desk);
    let said = bea(&mut desk);
    assert_eq!(said["data"]["is_new"], true);
    desk
}

fn sync(desk: &mut Desk) -> Ran {
    let team = desk.path("team");
    desk.run(&format!("sync {} --json", team.display()))
}

fn ada(desk: &mut Desk) -> Value {
    let ran = sync(desk);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    ran.json()
}

fn bea(desk: &mut Desk) -> Value {
    as_bea(desk, ada)
}

fn score(item: &str, micro: i64) -> String {
    format!(
        "record score.recorded --experiment exp-1 --data {{\"draw\":0,\"item\":\"{item}\",\"judge\":\"j\",\"policy\":\"p\",\"score_micro\":{micro}}} --json"
    )
}

/// Bea's sync fails and leaves her copy as it was.
fn bea_refuses(desk: &mut Desk, code: u8, parts: &[&str]) {
    as_bea(desk, |desk| {
        let team = desk.path("team").display().to_string();
        let ran = desk.refused(&["sync", &team], code, parts);
        let left = std::fs::read_dir(desk.at.join(".clover")).unwrap();
        let mut left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(!left.any(|name| name == "follow"), "{}", ran.err);
    });
}

fn outbox(desk: &Desk) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(desk.path("team/outbox")).unwrap();
    let mut paths: Vec<_> = listed
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

fn root(desk: &mut Desk) -> String {
    desk.head()["root"].as_str().unwrap().to_owned()
}

#[test]
fn what_one_signs_the_other_records_and_both_have_one_log() {
    // given
    let mut desk = team();
    // when
    let said = as_bea(&mut desk, |desk| desk.ok(&score("a", 5)));
    // then: it is signed, and says that it is not recorded
    assert_eq!(said.json()["verdict"], "signed");
    assert_eq!(said.json()["checkpoint"], Value::Null);
    assert!(said.err.contains("not recorded yet"), "{}", said.err);
    assert_eq!(outbox(&desk).len(), 1);
    // when
    let served = ada(&mut desk);
    // then
    let taken = &served["data"]["taken"][0]["results"][0];
    assert_eq!(taken["id"], said.json()["events"][0]);
    assert_eq!(served["data"]["published"], 1);
    assert!(outbox(&desk).is_empty());
    let followed = bea(&mut desk);
    assert_eq!(followed["data"]["fetched"], 1);
    assert_eq!(followed["data"]["recorded"], 1);
    assert_eq!(followed["data"]["waiting"], 0);
    let hers = as_bea(&mut desk, Desk::head);
    assert_eq!(hers, desk.head());
    // Nothing is left to do, and that is said as well.
    assert_eq!(ada(&mut desk)["data"]["published"], 0);
    assert_eq!(bea(&mut desk)["data"]["fetched"], 0);
}

#[test]
fn a_verb_runs_on_what_waits() {
    let mut desk = team();
    // given: a bulk of more than one file takes, in two commands whose events build on each other
    let lines: String = (0..4_100).map(|n| score_line(&format!("i{n}"))).collect();
    as_bea(&mut desk, |desk| {
        desk.file("scores.jsonl", &lines);
        desk.ok("append --bulk scores.jsonl");
        // What waits is known again.
        let again = desk.ok("append --bulk scores.jsonl --json").json();
        assert_eq!(again["data"]["appended"], 0, "{again}");
        desk.ok(&score("more", 5));
    });
    assert_eq!(outbox(&desk).len(), 3);
    // when
    let served = ada(&mut desk);
    // then
    assert_eq!(served["data"]["published"], 4_101);
    assert_eq!(bea(&mut desk)["data"]["recorded"], 3);
    let hers = as_bea(&mut desk, Desk::head);
    assert_eq!(hers, desk.head());
}

#[test]
fn what_a_rule_refuses_goes_back_to_its_author() {
    // given
    let mut desk = team();
    as_bea(&mut desk, |desk| desk.ok(&score("a", 5)));
    desk.ok(&format!("{} --key scorer", score("a", 6)));
    // when
    let served = ada(&mut desk);
    // then
    let refused = served["data"]["refused"][0]["message"].as_str().unwrap();
    assert!(refused.contains("natural_key"), "{refused}");
    assert_eq!(outbox(&desk).len(), 1);
    let followed = bea(&mut desk);
    let refused = followed["data"]["refused"][0]["message"].as_str().unwrap();
    assert!(refused.contains("natural_key"), "{refused}");
    assert!(outbox(&desk).is_empty());
    as_bea(&mut desk, |desk| desk.ok(&score("b", 5)));
    assert_eq!(
        ada(&mut desk)["data"]["taken"][0]["results"][0]["already"],
        false
    );
}

#[test]
fn rubbish_in_the_outbox_harms_nobody() {
    let mut desk = team();
    as_bea(&mut desk, |desk| desk.ok(&score("a", 5)));
    let junk = desk.path("team/outbox/junk.jsonl");
    std::fs::write(&junk, "{\"not\":\"an event\"}\n").unwrap();
    let served = ada(&mut desk);
    assert_eq!(served["data"]["taken"].as_array().unwrap().len(), 1);
    assert_eq!(served["data"]["refused"][0]["file"], "junk.jsonl");
    assert_eq!(outbox(&desk), [junk]);
}

#[test]
fn a_file_that_was_taken_before_the_writer_stopped_is_known() {
    let mut desk = team();
    as_bea(&mut desk, |desk| desk.ok(&score("a", 5)));
    let file = outbox(&desk).remove(0);
    let kept = std::fs::read(&file).unwrap();
    // The writer stopped after it had recorded the file, before it published.
    let before = desk.path("before");
    copy_tree(&desk.path("team"), &before);
    ada(&mut desk);
    let after = desk.head();
    std::fs::remove_dir_all(desk.path("team")).unwrap();
    copy_tree(&before, &desk.path("team"));
    assert_eq!(std::fs::read(&file).unwrap(), kept);
    let served = ada(&mut desk);
    assert_eq!(served["data"]["taken"][0]["results"][0]["already"], true);
    assert_eq!(served["data"]["published"], 1);
    assert!(outbox(&desk).is_empty());
    assert_eq!(desk.head(), after);
    assert_eq!(bea(&mut desk)["data"]["recorded"], 1);
}

/// A second copy of Ada's ledger with its log key, elsewhere on her machine.
fn second(desk: &Desk) -> PathBuf {
    let other = desk.path("second");
    copy_tree(&desk.at.join(".clover"), &other.join(".clover"));
    other
}

/// Does something in the second copy, which has pins of its own.
fn in_second<T>(desk: &mut Desk, other: &Path, does: impl FnOnce(&mut Desk) -> T) -> T {
    let (at, state) = (desk.at.clone(), desk.state);
    (desk.at, desk.state) = (other.to_owned(), "second-state");
    let done = does(desk);
    (desk.at, desk.state) = (at, state);
    done
}

#[test]
fn a_fork_is_published_by_nobody_and_followed_by_nobody() {
    // given: two copies of the writer go apart
    let mut desk = team();
    let other = second(&desk);
    desk.ok("record note.recorded --data {\"text\":\"one\"} --key owner");
    in_second(&mut desk, &other, |desk| {
        desk.ok("record note.recorded --data {\"text\":\"two\"} --key owner");
    });
    ada(&mut desk);
    let published = std::fs::read(desk.path("team/log/checkpoint")).unwrap();
    // then: the second is refused, with both checkpoints
    let (one, two) = (root(&mut desk), in_second(&mut desk, &other, root));
    let team = desk.path("team").display().to_string();
    in_second(&mut desk, &other, |desk| {
        desk.refused(
            &["sync", &team],
            3,
            &["forked", &one, &two, "two histories"],
        );
    });
    assert_eq!(
        std::fs::read(desk.path("team/log/checkpoint")).unwrap(),
        published
    );
    // when: it is published elsewhere, longer, and offered to Bea in place of what she followed
    bea(&mut desk);
    in_second(&mut desk, &other, |desk| {
        desk.ok("record note.recorded --data {\"text\":\"three\"} --key owner");
        let aside = desk.path("aside");
        std::fs::create_dir(&aside).unwrap();
        desk.ok(&format!("sync {}", aside.display()));
    });
    std::fs::remove_dir_all(desk.path("team/log")).unwrap();
    copy_tree(&desk.path("aside/log"), &desk.path("team/log"));
    let three = in_second(&mut desk, &other, root);
    // then
    bea_refuses(&mut desk, 3, &["forked", &one, &three, "nothing was taken"]);
}

#[test]
fn an_older_log_is_no_news() {
    let mut desk = team();
    let older = desk.path("older");
    copy_tree(&desk.path("team/log"), &older);
    let had = root(&mut desk);
    desk.ok("record note.recorded --data {\"text\":\"one\"} --key owner");
    let has = root(&mut desk);
    ada(&mut desk);
    bea(&mut desk);
    std::fs::remove_dir_all(desk.path("team/log")).unwrap();
    copy_tree(&older, &desk.path("team/log"));
    bea_refuses(&mut desk, 3, &["rolled_back", &had, &has, "an older log"]);
    // The writer has what is missing, and publishes it again.
    assert_eq!(ada(&mut desk)["data"]["published"], 1);
    bea(&mut desk);
}

#[test]
fn a_log_that_was_changed_on_the_way_is_refused() {
    let mut desk = team();
    desk.ok("record note.recorded --data {\"text\":\"one\"} --key owner");
    ada(&mut desk);
    let entries = desk.path("team/log/tile/entries/000.p");
    let mut widths: Vec<_> = std::fs::read_dir(&entries)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    widths.sort();
    let newest = widths.last().unwrap();
    let bytes = std::fs::read(newest).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = text.rfind("recorded_at").unwrap();
    let mut changed = bytes.clone();
    // The year of the newest entry, which only the tree protects.
    let place = bytes.len() - (text.len() - at) + "recorded_at\":\"202".len();
    changed[place] = b'7';
    std::fs::write(newest, &changed).unwrap();
    bea_refuses(&mut desk, 3, &[]);
    // Half of a bundle is no bundle.
    std::fs::write(newest, &bytes[..bytes.len() / 2]).unwrap();
    let team = desk.path("team").display().to_string();
    as_bea(&mut desk, |desk| {
        let before = desk.head();
        assert_ne!(desk.run(&format!("sync {team}")).code, 0);
        assert_eq!(desk.head(), before);
    });
    std::fs::write(newest, &bytes).unwrap();
    bea(&mut desk);
}

#[test]
fn another_ledger_of_the_same_name_is_refused() {
    let mut desk = team();
    let other = desk.path("other");
    std::fs::create_dir(&other).unwrap();
    in_second(&mut desk, &other, |desk| {
        desk.config = "mallory";
        desk.ok("init --origin ledger.example/cli --holder Mal --roles owner,registrar");
        for text in ["1", "2", "3", "4", "5", "6", "7", "8"] {
            desk.ok(&format!(
                "record note.recorded --data {{\"text\":\"{text}\"}}"
            ));
        }
        let aside = desk.path("aside");
        std::fs::create_dir(&aside).unwrap();
        desk.ok(&format!("sync {}", aside.display()));
        desk.config = "config";
    });
    std::fs::remove_dir_all(desk.path("team/log")).unwrap();
    copy_tree(&desk.path("aside/log"), &desk.path("team/log"));
    bea_refuses(
        &mut desk,
        3,
        &["nothing was taken", "no log key of this ledger"],
    );
}

#[test]
fn one_copy_publishes_until_another_takes_over() {
    // given: a copy with the log key that is another seat
    let mut desk = team();
    let other = second(&desk);
    std::fs::remove_file(other.join(".clover/seat")).unwrap();
    let team = desk.path("team").display().to_string();
    in_second(&mut desk, &other, |desk| {
        desk.refused(
            &["sync", &team],
            11,
            &["another copy of this ledger publishes"],
        );
        desk.refused(&["sync", &team, "--take-over"], 2, &["--yes"]);
    });
    // when
    desk.ok("record note.recorded --data {\"text\":\"one\"} --key owner");
    ada(&mut desk);
    in_second(&mut desk, &other, |desk| {
        // It takes what it lacks first.
        let served = desk
            .ok(&format!("sync {team} --take-over --yes --json"))
            .json();
        assert_eq!(served["data"]["fetched"], 1);
        desk.ok("record note.recorded --data {\"text\":\"two\"} --key owner");
        desk.ok("sync");
    });
    // then
    let ran = sync(&mut desk);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &["another copy of this ledger publishes", "--take-over"],
    );
    assert_eq!(bea(&mut desk)["data"]["fetched"], 2);
}

#[test]
fn two_writers_wait_for_each_other() {
    let mut desk = team();
    let lock = std::fs::File::open(desk.path("team/lock")).unwrap();
    lock.lock().unwrap();
    let team = desk.path("team").display().to_string();
    desk.refused(&["sync", &team, "--busy-timeout", "0"], 75, &["locked"]);
    drop(lock);
    ada(&mut desk);
}

#[test]
fn a_copy_needs_a_published_log_and_the_log_key_that_was_named() {
    let mut desk = Desk::with_ledger();
    std::fs::create_dir(desk.path("team")).unwrap();
    let team = desk.path("team").display().to_string();
    as_bea(&mut desk, |desk| {
        let ran = desk.run(&format!("sync {team}"));
        assert_eq!(ran.code, 5, "{}", ran.err);
        says(&ran, &["nothing is published"]);
        let ran = desk.run("sync");
        assert_eq!(ran.code, 5, "{}", ran.err);
        let ran = desk.run("sync nowhere");
        assert_eq!(ran.code, 5, "{}", ran.err);
        says(&ran, &["nowhere is no folder"]);
    });
    ada(&mut desk);
    let own = desk.ok("key export --log --json").json()["data"]["log_key"].clone();
    let other = desk.path("other");
    std::fs::create_dir(&other).unwrap();
    let wrong = in_second(&mut desk, &other, |desk| {
        desk.ok("init --origin ledger.example/cli --holder Mal --roles owner,registrar");
        desk.ok("key export --log --json").json()["data"]["log_key"].clone()
    });
    as_bea(&mut desk, |desk| {
        let ran = desk.words(&["sync", &team, "--log-key", wrong.as_str().unwrap()]);
        assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
        assert!(!desk.at.join(".clover").exists());
        desk.ok_words(&["sync", &team, "--log-key", own.as_str().unwrap()]);
    });
}

#[test]
fn nothing_is_opened_or_rotated_on_a_readers_copy() {
    let mut desk = team();
    let id = "0".repeat(64);
    as_bea(&mut desk, |desk| {
        let private = ["blob", "get", &id, "--subject", &id, "-o", "x"];
        desk.refused(&private, 11, &["must be on record first"]);
        let erase = ["erase", &id, "--basis", "asked", "--yes"];
        desk.refused(&erase, 11, &["must be on record first"]);
        desk.file("text.txt", "text");
        let put = ["blob", "put", "text.txt"];
        desk.refused(&put, 11, &["with the event that names it"]);
        let rotate = ["key", "rotate-log", "--reason", "x"];
        desk.refused(&rotate, 11, &["a reader's copy"]);
        assert!(!desk.at.join(".clover/log.key.next").exists());
        let doctor = desk.run("doctor").out;
        assert!(doctor.contains("this copy follows"), "{doctor}");
    });
    assert!(!desk.path("team/outbox").exists() || outbox(&desk).is_empty());
}

#[test]
fn who_sees_no_labels_is_told_that_the_log_shows_them() {
    let mut desk = Desk::new();
    desk.ok(
        "init --origin ledger.example/cli --holder Ada --roles owner,registrar --separation strict",
    );
    let ask = "key request --for ledger.example/cli --roles optimizer --holder Bea -o bea.request";
    as_bea(&mut desk, |desk| desk.ok(ask));
    let request = desk.path("bea-work/bea.request");
    desk.ok(&format!("key admit {} --yes", request.display()));
    std::fs::create_dir(desk.path("team")).unwrap();
    ada(&mut desk);
    let said = as_bea(&mut desk, |desk| sync(desk).err);
    assert!(said.contains("optimizer, which sees no labels"), "{said}");
    // Ada holds no such role.
    desk.config = "config";
    assert!(!sync(&mut desk).err.contains("sees no labels"));
}

/// Does something in another copy on Ada's machine, with her memory of what was seen.
fn beside<T>(desk: &mut Desk, folder: &str, does: impl FnOnce(&mut Desk) -> T) -> T {
    let at = desk.at.clone();
    desk.at = desk.path(folder);
    std::fs::create_dir_all(&desk.at).unwrap();
    let done = does(desk);
    desk.at = at;
    done
}

/// The copy is older than what was seen of its ledger.
fn is_behind(desk: &mut Desk) {
    let ran = desk.run("log");
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    says(&ran, &["rolled_back"]);
}

const NOTE: &str = "record note.recorded --data {\"text\":\"one\"} --key owner";

#[test]
fn a_copy_that_follows_may_stand_beside_the_one_that_publishes() {
    // given: both on one machine, which remembers what it saw
    let mut desk = team();
    beside(&mut desk, "follower", ada);
    // when: the writer is ahead, of the folder too
    desk.ok(NOTE);
    beside(&mut desk, "follower", |desk| {
        // then
        desk.ok("verify");
        desk.ok("log");
        assert_eq!(ada(desk)["data"]["fetched"], 0);
    });
    let older = desk.path("older");
    copy_tree(&desk.path("follower/.clover"), &older);
    ada(&mut desk);
    beside(&mut desk, "follower", |desk| {
        assert_eq!(ada(desk)["data"]["fetched"], 1);
        desk.ok("verify");
    });
    // What this copy had is remembered all the same.
    std::fs::remove_dir_all(desk.path("follower/.clover")).unwrap();
    copy_tree(&older, &desk.path("follower/.clover"));
    beside(&mut desk, "follower", |desk| {
        is_behind(desk);
        assert_eq!(desk.run("verify").code, 3);
        // Its own sync brings it up again: what is published begins with what was seen.
        ada(desk);
        desk.ok("verify");
    });
}

#[test]
fn a_copy_whose_memory_is_the_machines_is_brought_up_by_sync() {
    // given: a copy that was made before copies had pins of their own
    let mut desk = team();
    beside(&mut desk, "follower", ada);
    for pin in std::fs::read_dir(desk.path("state/clover/pins")).unwrap() {
        let pin = pin.unwrap().path();
        if pin.to_str().unwrap().contains(".copy-") {
            std::fs::remove_file(pin).unwrap();
        }
    }
    desk.ok(NOTE);
    let team = desk.path("team").display().to_string();
    beside(&mut desk, "follower", |desk| {
        is_behind(desk);
        let ran = desk.run(&format!("sync {team}"));
        assert_eq!(ran.code, 3, "{}", ran.err);
        says(
            &ran,
            &["this machine saw", "sync the copy that has them first"],
        );
    });
    // when
    ada(&mut desk);
    // then
    beside(&mut desk, "follower", |desk| {
        assert_eq!(ada(desk)["data"]["fetched"], 1);
        desk.ok("log");
    });
}

#[test]
fn a_writer_takes_in_what_a_copy_of_it_published() {
    // given: a copy with the log key appends, publishes and is left
    let mut desk = team();
    let other = desk.path("second");
    copy_tree(&desk.at.join(".clover"), &other.join(".clover"));
    let take_over = format!(
        "sync {} --take-over --yes --json",
        desk.path("team").display()
    );
    beside(&mut desk, "second", |desk| {
        desk.ok(NOTE);
        desk.ok(&take_over);
    });
    // then: the first knows that it is behind, and takes that in
    is_behind(&mut desk);
    let served = desk.ok(&take_over).json();
    assert_eq!(served["data"]["fetched"], 1);
    desk.ok(NOTE);
    desk.ok("verify");
}
