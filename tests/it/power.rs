//! Power loss: the file rebuilt from a traced write log, cut at every sync.
//!
//! A SIGKILL does not test power loss, since the kernel keeps what was written. Here every write that an
//! appending process makes to the ledger's files is recorded with its bytes; for each sync, and for the
//! moments between, the files are rebuilt as a disk might hold them: all that was synced, and of what was
//! not, nothing, everything, or an arbitrary part. Each must open, hold every event that was acknowledged
//! before that moment, agree with the pin, and take the next append.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use clover::event::id::EventId;

use crate::support::TestLedger;
use crate::support::child;
use crate::support::score;

/// One traced call that matters.
#[derive(Clone, Debug)]
enum Call {
    /// Bytes at an offset of a file.
    Write(String, u64, Vec<u8>),
    /// A file was cut or grown to a length.
    Truncate(String, u64),
    /// A file's writes so far are on disk.
    Sync(String),
    /// A file was removed.
    Unlink(String),
    /// An append was acknowledged.
    Ack(u64, EventId),
}

/// Reads `strace -f -y -xx` lines; calls that were split by other threads are joined by their thread id.
fn parse(log: &str) -> Vec<Call> {
    let mut unfinished: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.trim_start().split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, start.to_owned());
            continue;
        }
        let whole = match rest
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"))
        {
            Some((_, end)) => unfinished.remove(thread).unwrap_or_default() + end,
            None => rest.to_owned(),
        };
        calls.extend(call(&whole));
    }
    calls
}

fn call(text: &str) -> Vec<Call> {
    let Some((name, rest)) = text.split_once('(') else {
        return Vec::new();
    };
    let failed = text
        .rsplit_once(" = ")
        .is_none_or(|(_, result)| result.starts_with('-'));
    if failed {
        return Vec::new();
    }
    let file = |rest: &str| {
        let path = rest
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'))?
            .0;
        let path = String::from_utf8(hex(path)).ok()?;
        let name = path.rsplit('/').next()?.to_owned();
        name.starts_with("ledger.db").then_some(name)
    };
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    match name {
        "pwrite64" => {
            let Some(name) = file(rest) else {
                return Vec::new();
            };
            let (_, rest) = rest.split_once('"').unwrap();
            let (bytes, rest) = rest.split_once('"').unwrap();
            let offset = rest.split(',').nth(2).unwrap().split(')').next().unwrap();
            vec![Call::Write(name, number(offset), hex(bytes))]
        }
        "ftruncate" => {
            let length = rest
                .rsplit_once(") =")
                .unwrap()
                .0
                .rsplit_once(',')
                .unwrap()
                .1;
            file(rest)
                .map(|name| Call::Truncate(name, number(length)))
                .into_iter()
                .collect()
        }
        "fdatasync" | "fsync" => file(rest).map(Call::Sync).into_iter().collect(),
        "unlink" => {
            let path = String::from_utf8(hex(rest.split('"').nth(1).unwrap_or_default())).unwrap();
            let name = path.rsplit('/').next().unwrap().to_owned();
            if name.starts_with("ledger.db") {
                vec![Call::Unlink(name)]
            } else {
                Vec::new()
            }
        }
        "write" => {
            let text = String::from_utf8(hex(rest.split('"').nth(1).unwrap_or_default()));
            let text = text.unwrap_or_default();
            let acks = text.lines().filter_map(child::parse_ack);
            acks.map(|(seq, id)| Call::Ack(seq, id)).collect()
        }
        _ => Vec::new(),
    }
}

/// `\x41\x42` as bytes; other characters stand for themselves.
fn hex(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if let Some(digits) = rest.strip_prefix(b"\\x") {
            let pair = std::str::from_utf8(&digits[..2]).unwrap();
            out.push(u8::from_str_radix(pair, 16).unwrap());
            rest = &digits[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

type Files = BTreeMap<String, Vec<u8>>;

fn apply(files: &mut Files, call: &Call) {
    match call {
        Call::Write(name, offset, bytes) => {
            let file = files.entry(name.clone()).or_default();
            let from = usize::try_from(*offset).unwrap();
            if file.len() < from + bytes.len() {
                file.resize(from + bytes.len(), 0);
            }
            file[from..from + bytes.len()].copy_from_slice(bytes);
        }
        Call::Truncate(name, length) => {
            files
                .entry(name.clone())
                .or_default()
                .resize(usize::try_from(*length).unwrap(), 0);
        }
        Call::Unlink(name) => {
            files.remove(name);
        }
        Call::Sync(_) | Call::Ack(..) => {}
    }
}

/// The files after `calls`, of whose unsynced writes only those for which `keep` says so arrived.
fn rebuild(base: &Files, calls: &[Call], mut keep: impl FnMut(usize) -> bool) -> Files {
    let mut last_sync: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        if let Call::Sync(name) = call {
            last_sync.insert(name, at);
        }
    }
    let mut files = base.clone();
    for (at, call) in calls.iter().enumerate() {
        let name = match call {
            Call::Write(name, ..) | Call::Truncate(name, _) | Call::Unlink(name) => name,
            Call::Sync(_) | Call::Ack(..) => continue,
        };
        let synced = last_sync.get(name.as_str()).is_some_and(|sync| at < *sync);
        if synced || keep(at) {
            apply(&mut files, call);
        }
    }
    files
}

/// Where to cut, and how many of these moments lie where a WAL checkpoint writes the database itself: those are
/// all taken. Appends are alike, so of many only some are taken.
fn moments(calls: &[Call]) -> (Vec<usize>, usize) {
    let is_edge = |call: Option<&Call>| matches!(call, Some(Call::Sync(_) | Call::Ack(..)));
    let edge = |at: &usize| {
        is_edge(calls.get(*at)) || *at > 0 && is_edge(calls.get(at - 1)) || *at == calls.len()
    };
    let to_database = |call: &Call| match call {
        Call::Write(name, ..) | Call::Truncate(name, _) | Call::Sync(name) => name == "ledger.db",
        Call::Unlink(_) | Call::Ack(..) => false,
    };
    let near = |at: usize| {
        let around = at.saturating_sub(16)..calls.len().min(at + 16);
        calls[around].iter().any(to_database)
    };
    let edges: Vec<usize> = (0..=calls.len()).filter(edge).collect();
    let step = edges.len().div_ceil(150);
    let moments: Vec<usize> = (edges.iter().enumerate())
        .filter(|(number, at)| number.is_multiple_of(step) || near(**at))
        .map(|(_, at)| *at)
        .collect();
    let checkpointing = moments.iter().filter(|at| near(**at)).count();
    (moments, checkpointing)
}

/// Opens the rebuilt files as a ledger of their own and asks everything of it.
fn examine(files: &Files, acked: &[(u64, EventId)], pin: &Path, what: &str) {
    let folder = tempfile::tempdir_in(if Path::new("/dev/shm").exists() {
        "/dev/shm"
    } else {
        "/tmp"
    });
    let folder = folder.unwrap();
    for (name, bytes) in files {
        if name != "ledger.db-shm" {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
    }
    let pins = folder.path().join("pins");
    std::fs::create_dir(&pins).unwrap();
    std::fs::copy(pin, pins.join(pin.file_name().unwrap())).unwrap();
    let mut ledger =
        child::open(folder.path()).unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
    for (seq, id) in acked {
        let found = ledger.entry(*seq).unwrap().map(|entry| entry.event.id);
        assert_eq!(found, Some(*id), "{what}: acknowledged seq {seq} is lost");
    }
    ledger
        .append(&[score(700_000_000)], &child::child_signer(0))
        .unwrap();
    let test = TestLedger::around(folder, ledger);
    test.check_all();
}

#[test]
fn whatever_the_disk_kept_at_a_power_loss_nothing_synced_is_lost() {
    let found = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        println!("skipped: strace is not here, so no write log can be taken");
        return;
    }
    let appends = if child::slow() { 700 } else { 12 };
    let test = child::ledger_for_children(1);
    let pin = test.ledger.pin().unwrap().path().to_owned();
    let pinned_before = std::fs::read(&pin).unwrap();
    let folder = test.folder;
    drop(test.ledger);
    let base: Files = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                std::fs::read(entry.path()).unwrap(),
            )
        })
        .filter(|(name, _)| name.starts_with("ledger.db"))
        .collect();
    let log = folder.path().join("strace.log");
    let child = child::command(&format!("each {} 0 {appends}", folder.path().display()));
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-y", "-xx", "-s", "10000000", "-o"])
        .arg(&log);
    traced.args([
        "-e",
        "trace=pwrite64,ftruncate,fdatasync,fsync,unlink,write",
    ]);
    traced.arg(child.get_program()).args(child.get_args());
    for (name, value) in child.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    assert!(
        traced
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let calls = parse(&std::fs::read_to_string(&log).unwrap());
    let acked_total = calls
        .iter()
        .filter(|call| matches!(call, Call::Ack(..)))
        .count();
    assert_eq!(
        acked_total, appends,
        "every append was acknowledged in the trace"
    );
    // The pin is renamed without a sync: at any moment the disk may hold the one from before.
    std::fs::write(&pin, pinned_before).unwrap();
    let (moments, checkpointing) = moments(&calls);
    assert!(
        checkpointing > 0 || !child::slow(),
        "a WAL checkpoint falls inside"
    );
    let (mut cuts, mut state) = (0, 0x2545_f491_4f6c_dd1d_u64);
    for at in moments {
        let (past, what) = (
            &calls[..at],
            format!("cut before call {at} of {}", calls.len()),
        );
        let acked: Vec<_> = past
            .iter()
            .filter_map(|call| match call {
                Call::Ack(seq, id) => Some((*seq, *id)),
                _ => None,
            })
            .collect();
        examine(
            &rebuild(&base, past, |_| false),
            &acked,
            &pin,
            &format!("{what}, nothing unsynced"),
        );
        examine(
            &rebuild(&base, past, |_| true),
            &acked,
            &pin,
            &format!("{what}, everything"),
        );
        let arbitrary = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        };
        examine(
            &rebuild(&base, past, arbitrary),
            &acked,
            &pin,
            &format!("{what}, an arbitrary part"),
        );
        cuts += 3;
    }
    println!(
        "{cuts} files rebuilt around {appends} appends ({checkpointing} moments near a write to the \
         database itself), {acked_total} acknowledged, none lost"
    );
}
