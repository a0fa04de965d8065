//! What `verify`, `export` and `import ledger` hold a log against, and what they leave behind.

use super::Desk;
use super::copy_tree;
use super::says;

fn exported(desk: &mut Desk) {
    desk.ok("export jsonl -o whole");
    desk.ok("checkpoint pin");
}

/// The pin of the name that the entries bear is asked, with a checkpoint beside them or without.
#[test]
fn a_file_that_is_taken_away_never_betters_a_verdict() {
    let mut desk = Desk::with_ledger();
    desk.ok("export jsonl -o early");
    desk.ok("record note.recorded --data {\"text\":\"one\"}");
    exported(&mut desk);
    let lines = std::fs::read_to_string(desk.at.join("whole/ledger.jsonl")).unwrap();
    std::fs::create_dir(desk.at.join("part")).unwrap();
    let part: String = lines.split_inclusive('\n').take(3).collect();
    desk.file("part/ledger.jsonl", &part);
    // An older copy with its own checkpoint is held against the ledger at hand, which begins with it.
    let ran = desk.ok("verify early");
    assert!(ran.out.contains("older than the pin by"), "{}", ran.out);
    for path in ["part", "part/ledger.jsonl"] {
        let ran = desk.run(&format!("verify {path}"));
        assert_eq!(ran.code, 3, "{}", ran.out);
        assert!(ran.out.contains("FAILED"), "{}", ran.out);
        assert!(ran.out.contains("the pin"), "{}", ran.out);
        desk.ok(&format!("verify {path} --no-pin"));
    }
    std::fs::remove_file(desk.at.join("whole/checkpoint")).unwrap();
    desk.ok("verify whole");
    desk.ok("verify whole --since pin");
    // Another log under the same name, without the checkpoint that would tell.
    let mut twin = Desk::with_ledger();
    twin.ok("record note.recorded --data {\"text\":\"two\"}");
    twin.ok("record note.recorded --data {\"text\":\"two\"}");
    exported(&mut twin);
    copy_tree(&twin.at.join("whole"), &desk.at.join("twin"));
    assert_eq!(desk.run("verify twin").code, 3);
    std::fs::remove_file(desk.at.join("twin/checkpoint")).unwrap();
    assert_eq!(desk.run("verify twin").code, 3);
}

/// The checkpoint of an export is the note that was pinned: what both say is found once.
#[test]
fn what_the_checkpoint_and_the_pin_say_alike_is_one_finding() {
    let mut desk = Desk::with_ledger();
    desk.ok("record note.recorded --data {\"text\":\"one\"}");
    exported(&mut desk);
    let lines = std::fs::read_to_string(desk.at.join("whole/ledger.jsonl")).unwrap();
    let count = lines.lines().count();
    let part: String = lines.split_inclusive('\n').take(count - 1).collect();
    desk.file("whole/ledger.jsonl", &part);
    let mut findings = |line: &str| {
        let ran = desk.run(&format!("verify whole --json{line}"));
        assert_eq!(ran.code, 3, "{}", ran.out);
        ran.json()["data"]["report"]["findings_total"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(findings(" --no-pin"), 1);
    assert_eq!(findings(""), 1);
    assert!(
        desk.run("verify whole")
            .out
            .contains("the checkpoint and the pin")
    );
}

#[test]
fn another_ledger_at_the_same_place_is_named_by_verify_too() {
    let mut desk = Desk::with_ledger();
    desk.ok("verify");
    std::fs::rename(desk.at.join(".clover"), desk.at.join("kept")).unwrap();
    let mut other = Desk::new();
    other.ok("init --origin ledger.example/other --holder Eve --roles owner,registrar");
    copy_tree(&other.at.join(".clover"), &desk.at.join(".clover"));
    for verb in ["status", "verify"] {
        let parts = ["replaced: ", "another ledger was put in its place"];
        let ran = desk.run(verb);
        assert_eq!(ran.code, 3, "{}", ran.out);
        says(&ran, &parts);
    }
    desk.ok("verify --no-pin");
}

#[test]
fn hashes_alone_say_nothing_of_rules() {
    let mut desk = Desk::with_ledger();
    let ran = desk.ok("verify --tree-only");
    assert!(ran.out.contains("rules NOT CHECKED"), "{}", ran.out);
    assert!(!ran.out.contains("NOT ASKED"), "{}", ran.out);
}

/// A path is one word of the command that is proposed.
#[test]
fn a_proposed_command_quotes_its_path() {
    let mut desk = Desk::with_ledger();
    desk.ok("export jsonl -o whole");
    let lines = std::fs::read_to_string(desk.at.join("whole/ledger.jsonl")).unwrap();
    let bad = "x;touch PWNED;";
    std::fs::create_dir(desk.at.join(bad)).unwrap();
    desk.file(
        &format!("{bad}/ledger.jsonl"),
        &lines.replacen("recorded_at", "recorded_It", 1),
    );
    let ran = desk.words(&["verify", bad, "--no-pin"]);
    says(
        &ran,
        &["next: sed -n 1p '$T/work/x;touch PWNED;/ledger.jsonl'"],
    );
}

#[test]
fn an_export_replaces_no_file() {
    let mut desk = Desk::with_ledger();
    std::fs::create_dir(desk.at.join("out")).unwrap();
    desk.file("out/checkpoints.jsonl", "mine");
    desk.refused(
        &["export", "jsonl", "-o", "out"],
        2,
        &["out exists already"],
    );
    assert_eq!(
        std::fs::read(desk.at.join("out/checkpoints.jsonl")).unwrap(),
        b"mine"
    );
    assert!(!desk.at.join("out/ledger.jsonl").exists());
}

#[test]
fn a_refused_import_leaves_nothing_behind() {
    let mut desk = Desk::with_ledger();
    desk.ok("export jsonl -o whole --blobs");
    // The lines hold up; a checkpoint of those kept does not.
    let path = desk.at.join("whole/checkpoints.jsonl");
    let kept = std::fs::read_to_string(&path).unwrap();
    let last = kept.lines().last().unwrap().to_owned();
    std::fs::write(&path, format!("{last}\n{last}\n")).unwrap();
    let ran = desk.run("import ledger whole --into imp/new");
    assert_ne!(ran.code, 0, "{}", ran.out);
    assert!(!desk.at.join("imp/new").exists(), "{}", ran.err);
}

#[test]
fn a_wrong_command_line_is_an_object_too() {
    let mut desk = Desk::with_ledger();
    let ran = desk.run("verify --json --bogus");
    assert_eq!(ran.code, 2);
    let said = ran.json();
    assert_eq!((&said["ok"], &said["exit"]), (&false.into(), &2.into()));
    assert!(
        said["data"]["message"]
            .as_str()
            .unwrap()
            .contains("--bogus"),
        "{said:#}"
    );
}

/// Whatever table is gone or holds what no ledger writes: it is a finding, the walk of the entries goes on, and what was done
/// to an entry is named too.
#[test]
fn what_cannot_be_read_is_a_finding_and_the_walk_goes_on() {
    let changes: [(&str, &str); 6] = [
        ("DROP TABLE labels", "schema_sql"),
        ("DROP TABLE digest_index", "schema_sql"),
        ("DROP TABLE kind_runs", "schema_sql"),
        ("DROP TABLE tiles", "schema_sql"),
        ("DROP TABLE entries", "genesis"),
        (
            "INSERT OR REPLACE INTO cursors VALUES ('digest_index', -1)",
            "cursors.through is -1",
        ),
    ];
    for (change, names) in changes {
        let mut desk = Desk::with_ledger();
        desk.ok("verify");
        let conn = rusqlite::Connection::open(desk.at.join(".clover/ledger.db")).unwrap();
        conn.execute_batch(change).unwrap();
        drop(conn);
        let ran = desk.run("verify");
        assert_eq!(ran.code, 3, "{change}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains("FAILED"), "{change}: {}", ran.out);
        assert!(ran.out.contains(names), "{change}: {}", ran.out);
    }
    // A forged signature is not hidden by it.
    let mut desk = Desk::with_ledger();
    let conn = rusqlite::Connection::open(desk.at.join(".clover/ledger.db")).unwrap();
    let forged = "DROP TRIGGER entries_keep; UPDATE entries SET signature = zeroblob(64) WHERE seq = 2; \
                  INSERT OR REPLACE INTO cursors VALUES ('digest_index', -1)";
    conn.execute_batch(forged).unwrap();
    drop(conn);
    let ran = desk.run("verify");
    assert!(
        ran.out.contains("first at seq 2 (signature)"),
        "{}{}",
        ran.out,
        ran.err
    );
}
