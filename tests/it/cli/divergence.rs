//! Copies that are not the ledger: each has its own verdict, and exit code 3.

use crate::cli::Desk;
use crate::cli::copy_tree;
use crate::cli::says;

const NOTE: &str = "record note.recorded --key owner --data";

#[test]
fn restored_from_a_backup() {
    let mut desk = Desk::with_ledger();
    let copy = desk.path("yesterday").display().to_string();
    desk.ok_words(&["backup", &copy]);
    desk.ok(&format!("{NOTE} {{\"text\":\"today\"}}"));
    std::fs::copy(desk.path("yesterday/ledger.db"), desk.database()).unwrap();
    for ending in ["-wal", "-shm"] {
        let path = format!("{}{ending}", desk.database().display());
        std::fs::remove_file(path).ok();
    }
    for line in [
        "status",
        "log",
        &format!("{NOTE} {{\"text\":\"tomorrow\"}}"),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 3, "{line}: {}", ran.err);
        says(
            &ran,
            &["rolled_back: this log has 4 entries where 5 were seen before"],
        );
    }
    let ran = desk.run("verify");
    assert_eq!(ran.code, 3);
    assert!(
        ran.out
            .contains("FAILED  rolled_back: 1 finding, first at seq 4 (size)"),
        "{}",
        ran.out
    );
    assert_eq!(desk.run("verify --json").json()["verdict"], "rolled_back");
    let ran = desk.ok("verify --no-pin");
    assert!(ran.out.contains("identity NOT CHECKED"), "{}", ran.out);
}

#[test]
fn forged_with_its_own_keys() {
    let mut desk = Desk::with_ledger();
    let log_key = desk.ok("key export --log").out;
    desk.at = desk.path("forgery");
    desk.config = "forger";
    desk.state = "forgers-machine";
    std::fs::create_dir_all(&desk.at).unwrap();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar");
    for n in 0..5 {
        desk.ok(&format!("{NOTE} {{\"text\":\"forged-{n}\"}}"));
    }
    // By itself it is consistent; only what is known from outside tells.
    assert!(
        desk.ok("verify --no-pin")
            .out
            .contains("identity NOT CHECKED")
    );
    let ran = desk.run(&format!("verify --no-pin --log-key {}", log_key.trim()));
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("FAILED  forged: "), "{}", ran.out);
    desk.state = "state";
    let ran = desk.run("status");
    assert_eq!(ran.code, 3, "{}", ran.err);
    says(
        &ran,
        &["forged: the pinned checkpoint of 4 entries is not signed by a log key of this ledger"],
    );
    let ran = desk.run("verify");
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("FAILED  forged: "), "{}", ran.out);
}

#[test]
fn a_forked_copy() {
    let mut desk = Desk::with_ledger();
    copy_tree(&desk.at, &desk.path("twin"));
    desk.ok(&format!("{NOTE} {{\"text\":\"here\"}}"));
    let here = desk.ok("checkpoint show").out;
    let here = desk.file("here", &here);
    desk.at = desk.path("twin");
    desk.state = "twins-machine";
    desk.ok(&format!("{NOTE} {{\"text\":\"there\"}}"));
    let there = desk.ok("checkpoint show").out;
    desk.state = "state";
    let ran = desk.run("status");
    assert_eq!(ran.code, 3, "{}", ran.err);
    says(&ran, &["forked: at 5 entries the pinned root is "]);
    let ran = desk.run("verify");
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("FAILED  forked: "), "{}", ran.out);
    // The two checkpoints prove it to anyone who has the log key.
    desk.at = desk.path("work");
    let there = desk.file("there", &there);
    let ran = desk.run(&format!("checkpoint compare {here} {there}"));
    assert_eq!(ran.code, 3, "{}", ran.out);
    says(&ran, &["forked: the log key signed two histories"]);
}

#[test]
fn a_damaged_pin_is_never_taken_for_none() {
    let mut desk = Desk::with_ledger();
    let pins = desk.path("state/clover/pins");
    let pin = std::fs::read_dir(pins)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pin = pin
        .into_iter()
        .find(|path| path.extension().is_none())
        .unwrap();
    std::fs::write(pin, "nonsense").unwrap();
    let ran = desk.run("status");
    assert_eq!(ran.code, 3, "{}", ran.err);
    says(&ran, &["is damaged"]);
}
