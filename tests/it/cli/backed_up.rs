//! Backups of everything: encrypted file by file, restored whole on another machine, or not at all.

use std::path::PathBuf;

use serde_json::Value;

use super::Desk;
use super::copy_tree;
use super::says;

/// A ledger with something private in it, and the recipient of backups with its identity.
struct Kept {
    desk: Desk,
    recipient: String,
    identity: String,
    subject: String,
}

fn kept() -> Kept {
    let mut desk = Desk::with_ledger();
    desk.file("secret.txt", "what nobody is to read");
    let put = desk.ok("blob put secret.txt --subject new --json").json();
    let subject = put["data"]["reference"]["subject"]
        .as_str()
        .unwrap()
        .to_owned();
    let cem = desk.ok("key show cem --json").json();
    let recipient = cem["data"]["seal_recipient"].as_str().unwrap().to_owned();
    let identity = desk.path("identity.age");
    std::fs::copy(desk.key_file("cem").with_extension("age"), &identity).unwrap();
    Kept {
        identity: identity.display().to_string(),
        desk,
        recipient,
        subject,
    }
}

impl Kept {
    fn back_up(&mut self, name: &str) -> Value {
        let to = self.desk.path(name);
        let line = format!(
            "backup {} --all --to {} --json",
            to.display(),
            self.recipient
        );
        self.desk.ok(&line).json()
    }

    fn restore(&self, name: &str) -> Vec<String> {
        let words = [
            "restore",
            &self.desk.path(name).display().to_string(),
            "--identity",
            &self.identity,
            "--into",
            &self.desk.path("new").display().to_string(),
            "--json",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Runs a restoration on a machine that is new.
    fn on_a_new_machine(&mut self, name: &str) -> super::Ran {
        (self.desk.config, self.desk.state) = ("fresh", "fresh-state");
        let words = self.restore(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.desk.words(&words)
    }

    fn stands(&self) -> bool {
        self.desk.path("new").exists()
    }
}

fn files(folder: &PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A copy without keys is no backup of everything: what it is for is named.
#[test]
fn a_plain_copy_is_verified_and_not_restored() {
    let mut kept = kept();
    let to = kept.desk.path("plain").display().to_string();
    kept.desk.ok(&format!("backup {to}"));
    let ran = kept.on_a_new_machine("plain");
    says(&ran, &["it is a plain copy without keys", "clover verify"]);
}

#[test]
fn a_restore_names_what_the_backup_lacks() {
    let mut kept = kept();
    kept.back_up("all");
    std::fs::remove_file(kept.desk.path("all/vault.db.age")).unwrap();
    let ran = kept.on_a_new_machine("all");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(
        ran.json()["data"]["missing"],
        serde_json::json!(["vault.db"])
    );
}

#[test]
fn entries_after_a_backup_are_given_up_only_by_saying_so() {
    // given: something was recorded after the backup, and the ledger is gone
    let mut kept = kept();
    kept.back_up("all");
    let saved = kept.desk.head();
    let note = r#"{"text":"after the backup"}"#;
    kept.desk
        .words(&["record", "note.recorded", "--data", note]);
    let seen = kept.desk.head();
    std::fs::remove_dir_all(kept.desk.at.join(".clover")).unwrap();
    // when, then: the way on is named and not taken
    let mut words = kept.restore("all");
    let asked: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = kept.desk.words(&asked);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    says(&ran, &["rolled_back", "a newer backup", "--entries-lost"]);
    assert!(!kept.stands());
    // when
    words.push("--entries-lost".to_owned());
    let asked: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = kept.desk.words(&asked);
    // then: what was seen is kept, the note that is offered can be taken as it is, and the ledger goes on
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let said = ran.json();
    let lost = &said["data"]["lost"];
    assert_eq!(lost["seen"], seen["size"]);
    let old = lost["checkpoint"].as_str().unwrap();
    let old = kept.desk.path(old.strip_prefix("$T/").unwrap());
    let old = old.display().to_string();
    let checkpoint = std::fs::read_to_string(&old).unwrap();
    assert!(checkpoint.contains(seen["root"].as_str().unwrap()));
    let folder = kept.desk.path("new").display().to_string();
    let next = said["next"][0].as_str().unwrap().replace("$T/new", &folder);
    let next = next.replace("clover ", "");
    let (verb, data) = next.split_once(" --data ").unwrap();
    let data = data.trim_matches('\'');
    let words: Vec<&str> = verb.split(' ').chain(["--data", data]).collect();
    let ran = kept.desk.words(&words);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let ran = kept.desk.words(&["verify", "--ledger", &folder]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let ran = kept
        .desk
        .words(&["verify", "--ledger", &folder, "--against", &old]);
    assert_eq!(ran.code, 3, "{} {}{}", saved["size"], ran.out, ran.err);
}

#[test]
fn a_machine_that_is_lost_goes_on_elsewhere() {
    // given
    let mut kept = kept();
    let head = kept.desk.head();
    // when
    let said = kept.back_up("all");
    // then: every file is sealed
    let all = files(&kept.desk.path("all"));
    assert_eq!(said["data"]["files"].as_array().unwrap().len(), all.len());
    for path in &all {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(b"age-encryption.org/v1\n"), "{path:?}");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("PRIVATE KEY") && !text.contains("SQLite format"));
    }
    assert!(
        !kept
            .desk
            .path("work/.clover")
            .read_dir()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy() == "backup" })
    );
    // when
    let ran = kept.on_a_new_machine("all");
    // then: the same log, and whoever wrote it writes on
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let desk = &mut kept.desk;
    desk.at = desk.path("new");
    assert_eq!(desk.head(), head);
    desk.ok("record note.recorded --data {\"text\":\"on\"} --key owner");
    let id = desk.ok("blob list --json").json()["data"]["blobs"][0]["blake3"].clone();
    let line = format!(
        "blob get {} --subject {} -o out.txt --key cem",
        id.as_str().unwrap(),
        kept.subject
    );
    kept.desk.ok(&line);
    let text = std::fs::read_to_string(kept.desk.at.join("out.txt")).unwrap();
    assert_eq!(text, "what nobody is to read");
}

#[test]
fn who_was_erased_stays_erased() {
    // given: the vault of a backup from before the erasure, in one from after it
    let mut kept = kept();
    kept.back_up("before");
    let erase = format!("erase {} --basis asked --yes --key cem", kept.subject);
    kept.desk.ok(&erase);
    kept.back_up("after");
    let vault = |name: &str| kept.desk.path(name).join("vault.db.age");
    std::fs::copy(vault("before"), vault("after")).unwrap();
    // when
    let ran = kept.on_a_new_machine("after");
    // then
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(ran.json()["data"]["erased"], 1);
    let again = kept.desk.path("new/.clover/vault.db");
    assert!(again.exists());
}

#[test]
fn what_cannot_be_restored_leaves_nothing() {
    let mut kept = kept();
    kept.back_up("all");
    kept.desk
        .ok("record note.recorded --data {\"text\":\"later\"} --key owner");
    // An older ledger than this machine saw.
    let words = kept.restore("all");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = kept.desk.words(&words);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    says(&ran, &["a newer backup"]);
    assert!(!kept.stands());
    // Bytes that were changed, in every file.
    for path in files(&kept.desk.path("all")) {
        let bad = kept.desk.path("bad");
        std::fs::remove_dir_all(&bad).ok();
        copy_tree(&kept.desk.path("all"), &bad);
        let at = bad.join(path.strip_prefix(kept.desk.path("all")).unwrap());
        let mut bytes = std::fs::read(&at).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&at, &bytes).unwrap();
        let ran = kept.on_a_new_machine("bad");
        assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
        let name = at.file_name().unwrap().to_str().unwrap();
        says(&ran, &[name]);
        assert!(!kept.stands(), "{name}");
        assert!(!kept.desk.path("fresh/clover/keys/owner.pem").exists());
    }
    // The identity of somebody else.
    let own = std::mem::replace(
        &mut kept.identity,
        kept.desk.path("none.age").display().to_string(),
    );
    let ran = kept.on_a_new_machine("all");
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    kept.identity = own;
    // Without the ledger, and where a key file is another.
    std::fs::create_dir_all(kept.desk.path("fresh/clover/keys")).unwrap();
    std::fs::write(kept.desk.path("fresh/clover/keys/owner.pem"), "another").unwrap();
    let ran = kept.on_a_new_machine("all");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(&ran, &["owner.pem exists already and holds another key"]);
    assert!(!kept.stands());
    std::fs::remove_file(kept.desk.path("all/ledger.db.age")).unwrap();
    let ran = kept.on_a_new_machine("all");
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    says(&ran, &["holds no ledger.db.age"]);
    assert!(!kept.stands());
}

#[test]
fn a_backup_says_what_it_leaves_out() {
    let mut kept = kept();
    let to = kept.desk.path("plain").display().to_string();
    let said = kept.desk.ok(&format!("backup {to}"));
    assert!(said.out.contains("left out"), "{}", said.out);
    assert!(said.out.contains("log.key"), "{}", said.out);
    assert!(said.out.contains("vault.db"), "{}", said.out);
    let other = kept.desk.path("other").display().to_string();
    let ran = kept.desk.run(&format!("backup {other} --all"));
    assert_eq!(ran.code, 2, "{}", ran.err);
    let ran = kept
        .desk
        .run(&format!("backup {other} --all --to age1nobody"));
    assert_eq!(ran.code, 2, "{}", ran.err);
    says(&ran, &["age1nobody"]);
    let recipient = kept.recipient.clone();
    let ran = kept
        .desk
        .run(&format!("backup {to} --all --to {recipient}"));
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(&ran, &["exists already"]);
    assert!(!kept.desk.path("other").exists());
}
