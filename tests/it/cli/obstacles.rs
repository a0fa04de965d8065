//! What stands in the way is named: a stray journal, pipes and folders in place of files, a pin that
//! another process holds, and the rest of an `init` that was stopped.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use clover::ground::ambient;

use super::Desk;
use super::killed::Home;
use super::says;

const NOTE: &str = "record note.recorded --data {\"text\":\"a\"} --key owner";

#[test]
fn a_stray_journal_is_named() {
    let mut desk = Desk::with_ledger();
    let journal = desk.at.join(".clover/ledger.db-journal");
    std::fs::write(&journal, "left by another tool").unwrap();
    for line in ["status", "verify", NOTE] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 3, "{line}\n{}{}", ran.out, ran.err);
        says(
            &ran,
            &[
                "stray_journal: $T/work/.clover/ledger.db-journal is a rollback journal, which no ledger has",
                "next: mv $T/work/.clover/ledger.db-journal $T/work/.clover/ledger.db-journal.aside",
            ],
        );
    }
    std::fs::rename(&journal, journal.with_extension("aside")).unwrap();
    desk.ok("verify");
    // An empty one says nothing and stands in nobody's way.
    std::fs::write(&journal, "").unwrap();
    desk.ok(NOTE);
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn pipes_folders_and_devices_are_no_files() {
    let mut desk = Desk::with_ledger();
    pipe(&desk.at.join("pipe"));
    std::fs::create_dir(desk.at.join("folder")).unwrap();
    for (name, what) in [
        ("pipe", "a named pipe"),
        ("folder", "a folder"),
        ("/dev/zero", "a device"),
    ] {
        for line in [
            format!("blob put {name}"),
            format!("append --bulk {name} --key owner"),
            format!("prereg check {name}"),
            format!("verify --against {name}"),
            format!("prove 1 -o {name}"),
        ] {
            let ran = desk.run(&line);
            assert_eq!(ran.code, 4, "{line}\n{}{}", ran.out, ran.err);
            says(&ran, &[&format!("is {what}; expected a regular file")]);
        }
        let ran = desk.run(&format!("status --ledger {name}"));
        assert!([4, 5].contains(&ran.code), "{name}\n{}{}", ran.out, ran.err);
        if name != "folder" {
            says(&ran, &[&format!("is not a ledger: {what}")]);
        }
    }
    // Beside the ledger too, where SQLite would wait for them.
    let log = desk.at.join(".clover/ledger.db-wal");
    std::fs::remove_file(&log).ok();
    pipe(&log);
    let ran = desk.run("status");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    says(&ran, &["ledger.db-wal is not a ledger: a named pipe"]);
}

#[test]
fn a_pin_that_is_held_is_waited_for_a_while() {
    let mut desk = Desk::with_ledger();
    let pins = desk.path("state").join("clover/pins");
    let lock = std::fs::read_dir(&pins)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "lock"))
        .unwrap();
    let held = ambient::lock(&lock, Duration::ZERO).unwrap();
    let started = Instant::now();
    let ran = desk.ok(NOTE);
    assert!(started.elapsed() < Duration::from_secs(30));
    for part in [
        "warning: recorded, and the pin lags behind: another process holds",
        "for more than 5 s; next: clover checkpoint pin",
    ] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert_eq!(desk.head()["size"], 5);
    drop(held);
    desk.ok("checkpoint pin");
}

#[test]
fn an_init_that_was_stopped_is_begun_anew() {
    // What stops of an earlier program left: a log key alone, and a database without an entry.
    for left in ["log.key", "ledger.db"] {
        let mut desk = Desk::new();
        let folder = desk.at.join(".clover");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("log.key"), "half").unwrap();
        if left == "ledger.db" {
            std::fs::write(folder.join(left), "").unwrap();
        }
        // A stop between the folder that is made and its name leaves that folder.
        std::fs::create_dir_all(desk.at.join(".clover.4242.new")).unwrap();
        let ran = desk.ok("init --holder Ada");
        assert!(
            ran.err.contains("an unfinished ledger stood there"),
            "{}",
            ran.err
        );
        assert!(desk.at.join(".clover.unfinished-1/log.key").is_file());
        assert!(!desk.at.join(".clover.4242.new").exists());
        desk.ok("verify");
        let ran = desk.run("init --holder Ada");
        assert_eq!(ran.code, 11, "{}", ran.err);
        says(&ran, &["exists already"]);
    }
    // A folder with a vault is somebody's: it is not put aside.
    let mut desk = Desk::new();
    std::fs::create_dir_all(desk.at.join(".clover")).unwrap();
    std::fs::write(desk.at.join(".clover/vault.db"), "keys").unwrap();
    assert_eq!(desk.run("init --holder Ada").code, 11);
}

#[test]
fn an_init_that_is_killed_can_be_repeated() {
    for round in 0..8_u64 {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        let home = Home(folder.path());
        let words = [
            "init",
            "--origin",
            "ledger.example/killed",
            "--holder",
            "Ada",
        ];
        let mut child = home
            .command(&words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(3 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let again = home.command(&words).output().unwrap();
        let text = String::from_utf8_lossy(&again.stderr);
        assert!(
            again.status.success() || text.contains("exists already"),
            "{text}"
        );
        assert_eq!(home.entries(), 1);
        let left = std::fs::read_dir(folder.path().join("work")).unwrap();
        assert_eq!(left.count(), 1);
    }
}

/// A question is never answered by a slip. A bundle answers as its ledger does, and nothing of it is left behind.
#[test]
fn a_slip_answers_no_question() {
    let mut desk = Desk::with_ledger();
    let ran = desk.refused(&["experiment", "close", "exp-1", "--yess"], 2, &["--yess"]);
    assert!(!ran.err.contains("'--yes'"), "{}", ran.err);
    desk.refused(
        &["audit", "plans", "a b.clover"],
        5,
        &["a b.clover is no bundle"],
    );
    desk.ok("export bundle -o folder");
    desk.ok_words(&["export", "bundle", "-o", "a b.clover"]);
    for question in ["signers", "plans", "peeks", "decisions"] {
        let own = desk.ok(&format!("audit {question}")).out;
        for bundle in ["folder", "a b.clover"] {
            let said = desk.ok_words(&["audit", question, bundle]).out;
            assert_eq!(said, own, "{question} of {bundle}");
        }
    }
    desk.ok("verify folder");
    let summary = desk.ok("audit summary folder").out;
    assert!(summary.contains("VERIFIED"), "{summary}");
    // What does not verify answers nothing.
    let lines = desk.database().with_file_name("../folder/ledger.jsonl");
    let text = std::fs::read_to_string(&lines).unwrap();
    std::fs::write(&lines, text.replacen("\"seq\":0", "\"seq\":7", 1)).unwrap();
    desk.refused(&["audit", "plans", "folder"], 3, &["FAILED"]);
}

/// A person copies a suggested command into a shell: it does what it says, whatever an id is called.
#[test]
fn suggested_commands_are_safe_to_paste() {
    let mut desk = Desk::with_ledger();
    let id = "exp;touch pwned;$(touch pwned)";
    desk.ok_words(&[
        "experiment",
        "register",
        id,
        "--title",
        "T",
        "--purpose",
        "testing",
    ]);
    let ran = desk.words(&["deploy", "status", id]);
    let told = format!("{}{}", ran.out, ran.err);
    let shown = desk.words(&["rubric", "show", id]);
    for text in [told, format!("{}{}", shown.out, shown.err)] {
        for next in text.lines().filter_map(|line| line.strip_prefix("next: ")) {
            let safe = format!("'{id}'");
            assert!(!next.contains(id) || next.contains(&safe), "{next}");
            let ran = Command::new("sh")
                .args(["-c", &format!("clover() {{ :; }}; {next}")])
                .current_dir(&desk.at)
                .status()
                .unwrap();
            assert!(ran.success(), "{next}");
        }
    }
    let file = desk.at.join("x;touch pwned");
    std::fs::write(&file, "secret").unwrap();
    let ran = desk.words(&[
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        file.to_str().unwrap(),
    ]);
    says(&ran, &["next: chmod 600 '$T/work/x;touch pwned'"]);
    assert!(!desk.at.join("pwned").exists());
}
