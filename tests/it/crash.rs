//! Processes that append at once, that are killed, and whose system calls fail: nothing acknowledged is
//! lost, nothing is doubled, no history forks, and the next append works.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use clover::event::id::EventId;
use clover::ledger::Ledger;

use crate::support::TestLedger;
use crate::support::child;
use crate::support::score;

/// What a child does; nothing when it is an ordinary test run.
#[test]
fn child() {
    let Ok(job) = std::env::var(child::JOB) else {
        return;
    };
    let parts: Vec<_> = job.split(' ').collect();
    let (what, folder) = (parts[0], Path::new(parts[1]));
    let number: u8 = parts[2].parse().unwrap();
    let count: u64 = parts[3].parse().unwrap();
    let mut ledger = child::open(folder).unwrap();
    let key = child::child_signer(number);
    let base = u64::from(number) * 1_000_000 + count;
    match what {
        "each" => (0..count).for_each(|n| ack(&ledger.append(&[score(base + n)], &key).unwrap())),
        "storm" => storm(&mut ledger, &key, base, count),
        // Until it is killed: one, three, eleven at a time.
        "endless" => {
            for n in (0..).step_by(11) {
                let size = [1, 3, 11][usize::try_from(n % 3).unwrap()];
                let batch: Vec<_> = (n..n + size).map(|n| score(base + n)).collect();
                ack(&ledger.append(&batch, &key).unwrap());
            }
        }
        other => panic!("no such job: {other}"),
    }
}

fn ack(appended: &[clover::ledger::AppendedEvent]) {
    let lines: String = appended
        .iter()
        .map(|appended| format!("ACK {} {}\n", appended.seq, appended.id))
        .collect();
    let mut out = std::io::stdout().lock();
    out.write_all(lines.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Says everything again and again: the same unsigned command, and the same signed body.
fn storm(ledger: &mut Ledger, key: &clover::ground::sign::Signer, base: u64, count: u64) {
    for n in 0..count {
        let first = ledger.append(&[score(base + n)], key).unwrap();
        let again = ledger
            .append(&[score(base + n), score(base + n)], key)
            .unwrap();
        assert!(
            again
                .iter()
                .all(|again| again.already && again.seq == first[0].seq)
        );
        let signed = child::signed_again(ledger, first[0].seq);
        let again = ledger.submit(vec![signed.clone(), signed]).unwrap();
        assert!(
            again
                .iter()
                .all(|again| again.already && again.seq == first[0].seq)
        );
        ack(&first);
    }
}

/// Every acknowledgement that a child wrote before it ended.
fn acks(child: &mut std::process::Child) -> Vec<(u64, EventId)> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(|line| child::parse_ack(&line))
        .collect()
}

fn assert_present(ledger: &Ledger, acked: &[(u64, EventId)]) {
    for (seq, id) in acked {
        let entry = ledger.entry(*seq).unwrap();
        assert_eq!(
            entry.map(|entry| entry.event.id),
            Some(*id),
            "acknowledged seq {seq} is lost"
        );
    }
}

fn many_processes(what: &str) {
    let each: u64 = if child::slow() { 1_000 } else { 100 };
    let processes = 8;
    let test = child::ledger_for_children(processes);
    let before = test.ledger.size();
    let folder = test.folder.path().display().to_string();
    let mut children: Vec<_> = (0..processes)
        .map(|number| child::spawn(&format!("{what} {folder} {number} {each}")))
        .collect();
    let mut acked = Vec::new();
    for child in &mut children {
        acked.extend(acks(child));
        assert!(child.wait().unwrap().success());
    }
    let test = test.reopen().unwrap();
    let expected = u64::from(processes) * each;
    assert_eq!(test.ledger.size() - before, expected);
    acked.sort_unstable();
    let seqs: Vec<_> = acked.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(
        seqs,
        (before..before + expected).collect::<Vec<_>>(),
        "gap-free, none doubled"
    );
    assert_present(&test.ledger, &acked);
    test.check_all();
    println!("{what}: {processes} processes, {expected} events, gap-free, no duplicate");
}

#[test]
fn eight_processes_append_to_one_ledger() {
    many_processes("each");
}

#[test]
fn eight_processes_append_in_a_retry_storm() {
    many_processes("storm");
}

#[test]
fn killed_at_random_moments_nothing_acknowledged_is_lost() {
    let rounds: u32 = if child::slow() { 170 } else { 12 };
    let mut test = child::ledger_for_children(3);
    let mut acked = Vec::new();
    let (mut kills, mut state) = (0, 0x9e37_79b9_u64);
    for round in 0..rounds {
        let folder = test.folder.path().display().to_string();
        let mut children: Vec<_> = (0..3)
            .map(|number| {
                child::spawn(&format!(
                    "endless {folder} {number} {}",
                    u64::from(round) * 5_000
                ))
            })
            .collect();
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (state >> 33) % 120));
        for child in &mut children {
            child.kill().unwrap();
            kills += 1;
        }
        let mut fresh = Vec::new();
        for child in &mut children {
            child.wait().unwrap();
            fresh.extend(acks(child));
        }
        test = test.reopen().unwrap();
        assert_present(&test.ledger, &fresh);
        acked.append(&mut fresh);
        let item = 900_000_000 + u64::from(round);
        let next = test.append(&[score(item)]).unwrap();
        assert!(!next[0].already);
        if round % 20 == 0 {
            test.check_all();
        }
    }
    assert_present(&test.ledger, &acked);
    test.check_all();
    println!(
        "{kills} SIGKILLs, {} acknowledged events, none lost; {} entries at the end",
        acked.len(),
        test.ledger.size()
    );
}

/// Write-side system calls of an append, its checkpoint and its pin.
const CALLS: [&str; 9] = [
    "fdatasync",
    "fsync",
    "pwrite64",
    "write",
    "ftruncate",
    "fallocate",
    "rename",
    "unlink",
    "openat",
];

fn strace() -> bool {
    let found = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Runs one append with call number `when` of `call` failing as `fault` says; true when the fault came to
/// pass.
fn append_under_fault(
    test: &TestLedger,
    call: &str,
    fault: &str,
    when: u32,
) -> (bool, Vec<(u64, EventId)>) {
    let folder = test.folder.path();
    let log = folder.join("strace.log");
    let child = child::command(&format!("each {} 0 1", folder.display()));
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o"]).arg(&log);
    traced.args(["-P", &folder.join("ledger.db").display().to_string()]);
    traced.args(["-P", &folder.join("ledger.db-wal").display().to_string()]);
    traced.args(["-P", &folder.join("ledger.db-shm").display().to_string()]);
    traced.args([
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:{fault}:when={when}"),
    ]);
    traced.arg(child.get_program()).args(child.get_args());
    for (name, value) in child.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    traced.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = traced.spawn().unwrap();
    let acked = acks(&mut running);
    running.wait().unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    (
        log.contains("(INJECTED)") || log.contains("killed by SIGKILL"),
        acked,
    )
}

#[test]
fn every_write_side_call_may_fail_or_be_the_last() {
    if !strace() {
        println!("skipped: strace is not here, so no system call can be made to fail");
        return;
    }
    let most = if child::slow() { 40 } else { 3 };
    let faults = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"];
    let (mut injected, mut acknowledged) = (0, 0);
    for call in CALLS {
        for fault in faults {
            for when in 1..=most {
                let test = child::ledger_for_children(1);
                let (hit, acked) = append_under_fault(&test, call, fault, when);
                let mut test = test.reopen().unwrap();
                assert_present(&test.ledger, &acked);
                acknowledged += acked.len();
                test.append(&[score(800_000_000)]).unwrap();
                test.check_all();
                if !hit {
                    break;
                }
                injected += 1;
            }
        }
    }
    assert!(injected > 20, "only {injected} faults came to pass");
    println!(
        "{injected} faults injected, {acknowledged} appends acknowledged, none lost, every next append worked"
    );
}
