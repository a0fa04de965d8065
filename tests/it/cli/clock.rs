//! A clock far ahead of the newest entry, and the way on after an entry was recorded under a wrong one.

use super::Desk;
use super::says;
use crate::support;
use crate::support::verifiers;

const NOTE: &str = "record note.recorded --data {\"text\":\"a\"} --key owner";
const DAY: i64 = 86_400;

#[test]
fn a_clock_far_ahead_is_asked_about() {
    let mut desk = Desk::with_ledger();
    let start = support::start();
    // Within 400 days nobody is asked.
    desk.clock.set(start.plus_seconds(400 * DAY));
    desk.ok(NOTE);
    let head = start.plus_seconds(400 * DAY);
    desk.clock.set(head.plus_seconds(400 * DAY + 1));
    let ran = desk.run(NOTE);
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(
        &ran,
        &[
            "clock_ahead: the clock says",
            "more than 400 days after the newest entry of 2027-12-25",
            "--clock-ahead",
        ],
    );
    // Nothing was recorded, so the right clock still appends.
    desk.clock.set(head.plus_seconds(DAY));
    desk.ok(NOTE);
    assert!(!desk.ok("verify").out.contains("steps ahead"));
    // A ledger that rested for years goes on when somebody says so, and verifiers name the step.
    desk.clock.set(head.plus_seconds(2_000 * DAY));
    desk.ok(&format!("{NOTE} --clock-ahead"));
    let note = "recorded_at steps ahead by more than 400 days 1 times, first at seq 6: no later entry may be earlier";
    let verified = desk.ok("verify");
    assert!(verified.out.contains(note), "{}", verified.out);
    desk.ok("export jsonl -o out");
    if verifiers::python() {
        let ran = verifiers::python3()
            .arg(verifiers::audits_verify())
            .arg(desk.at.join("out/ledger.jsonl"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(text.contains(note), "{text}");
    }
}

/// The way on after an entry under a wrong clock, as `schema/ENVELOPE.md` has it.
#[test]
fn a_successor_goes_on_after_a_wrong_clock() {
    let mut desk = Desk::with_ledger();
    let start = support::start();
    desk.clock.set(start.plus_seconds(173 * 365 * DAY));
    desk.ok(&format!("{NOTE} --clock-ahead"));
    desk.clock.set(start.plus_seconds(DAY));
    assert_eq!(desk.run(NOTE).code, 75);
    desk.ok("verify");
    desk.ok("export jsonl -o predecessor --blobs");
    let said = desk.ok("checkpoint show --json").json()["checkpoint"].clone();
    desk.ok("init next --origin ledger.example/next --holder Ada --roles owner,registrar");
    let text = format!(
        "{{\"text\":\"continues ledger.example/cli after size {} root {}; its clock was wrong from seq 4 on\"}}",
        said["size"],
        said["root"].as_str().unwrap()
    );
    desk.ok_words(&[
        "record",
        "note.recorded",
        "--data",
        &text,
        "--key",
        "owner",
        "--ledger",
        "next",
    ]);
    desk.ok("verify --ledger next");
    desk.ok("verify predecessor/ledger.jsonl");
}
