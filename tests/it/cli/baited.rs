//! A label flipped in the file while somebody computes: nothing is computed from it, shown or copied.

use super::Desk;
use super::copy_tree;
use super::estimate::small;
use super::says;

/// A copy whose newest snapshot lies past every label, as it does in any ledger that went on.
fn copy(desk: &mut Desk) {
    desk.ok("export jsonl -o out --blobs");
    desk.ok("import ledger out --into copy");
    let folder = desk.at.join("copy/.clover");
    std::fs::copy(desk.at.join(".clover/log.key"), folder.join("log.key")).unwrap();
}

fn write(desk: &Desk, seq: i64, body: &[u8]) {
    let path = desk.at.join("copy/.clover/ledger.db");
    crate::tamper::tables::without_triggers(&path, |conn| {
        let write = "UPDATE entries SET body = ?1 WHERE seq = ?2";
        conn.execute(write, rusqlite::params![body, seq]).unwrap();
    });
}

#[test]
fn no_number_is_signed_from_a_flipped_label() {
    let mut desk = small(500_000);
    copy(&mut desk);
    let path = desk.at.join("copy/.clover/ledger.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    let find = "SELECT seq, body FROM entries WHERE CAST(body AS TEXT) LIKE '%\"kind\":\"label.recorded\"%' ORDER BY seq LIMIT 1";
    let (seq, honest): (i64, Vec<u8>) = conn
        .query_row(find, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    drop(conn);
    let text = String::from_utf8(honest.clone()).unwrap();
    let flipped = text.replace("\"value_micro\":500000", "\"value_micro\":900000");
    assert_ne!(flipped, text);
    let show = format!("show {seq}");
    let prove = format!("prove {seq}");
    let before = desk.ok("status --json --ledger copy").json()["checkpoint"].clone();
    write(&desk, seq, flipped.as_bytes());
    for verb in [
        "estimate --experiment exp-1",
        "compare --all --experiment exp-1",
        &show,
        &prove,
        "export jsonl -o taken",
        "backup saved",
    ] {
        let ran = desk.run(&format!("{verb} --ledger copy"));
        assert_eq!(ran.code, 3, "{verb}\n{}{}", ran.out, ran.err);
        assert!(ran.err.contains("signed head"), "{verb}\n{}", ran.err);
    }
    assert!(!desk.at.join("saved/ledger.db").exists());
    write(&desk, seq, &honest);
    let after = desk.ok("status --json --ledger copy").json()["checkpoint"].clone();
    assert_eq!(after, before);
    desk.ok("estimate --experiment exp-1 --ledger copy");
    desk.ok("backup saved --ledger copy");
    let ran = desk.ok("verify --ledger copy");
    let line = ran.out.lines().last().unwrap();
    let (front, _) = line.split_once(" signers").unwrap();
    assert!(front.contains("computed numbers NOT RECOMPUTED"), "{line}");
    let ran = desk.ok("verify --recompute --ledger copy");
    assert!(!ran.out.contains("NOT RECOMPUTED"), "{}", ran.out);
}

/// Another ledger at the path of a known one is asked about, and a pin that was taken from it vouches for nothing.
#[test]
fn a_twin_is_not_taken_for_the_ledger_that_was_there() {
    let mut desk = Desk::with_ledger();
    assert!(!desk.ok("verify").out.contains("identity"));
    let (at, config, state) = (desk.at.clone(), desk.config, desk.state);
    desk.at = desk.path("twin");
    (desk.config, desk.state) = ("forger", "forgers-machine");
    std::fs::create_dir_all(&desk.at).unwrap();
    desk.ok("init --origin ledger.example/twin --holder Ada --roles owner,registrar");
    let twins = desk.ok("key export --log").out;
    std::fs::rename(at.join(".clover"), desk.path("honest")).unwrap();
    copy_tree(&desk.at.join(".clover"), &at.join(".clover"));
    (desk.at, desk.config, desk.state) = (at.clone(), config, state);
    for line in [
        "status",
        "key new dan --role scorer",
        "checkpoint pin",
        "export jsonl -o out",
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 3, "{line}: {}{}", ran.out, ran.err);
        let known = "the ledger at this path was ledger.example/cli";
        says(&ran, &[known, "next: clover checkpoint pin --yes"]);
    }
    desk.ok("checkpoint pin --yes");
    desk.ok("status");
    let ran = desk.ok("verify");
    assert!(ran.out.contains("identity NOT CHECKED"), "{}", ran.out);
    desk.ok(&format!("verify --log-key {}", twins.trim()));
    assert!(!desk.ok("verify").out.contains("identity"));
    // And back.
    std::fs::remove_dir_all(at.join(".clover")).unwrap();
    std::fs::rename(desk.path("honest"), at.join(".clover")).unwrap();
    assert_eq!(desk.run("status").code, 3);
    desk.ok("checkpoint pin --yes");
    assert!(!desk.ok("verify").out.contains("identity"));
}

/// Whoever makes a ledger where another lay is told so, and goes on.
#[test]
fn a_new_ledger_in_the_place_of_one_that_was_removed_can_be_used() {
    let mut desk = Desk::with_ledger();
    std::fs::remove_dir_all(desk.at.join(".clover")).unwrap();
    let ran = desk.ok("init --origin ledger.example/second --holder Ada");
    says(
        &ran,
        &["another ledger lay here before: ledger.example/cli"],
    );
    desk.ok("status");
    desk.head();
}
