//! The table of what the ledger must reach: floors measured in the same run, ours, and the ratio.
//!
//! `cargo bench --bench ledger` measures at 1,000,000 events; `CLOVER_BENCH_EVENTS=100000` at fewer. Each
//! audit runs in a process of its own, so that its peak memory is its own. CPU is user plus system time of
//! the whole process.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod floor;

use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::Instant;

use clover::event::PAYLOAD_TYPE;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::custody::Separation;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::judge::ScoreRecorded;
use clover::ground::ambient::Ambient;
use clover::ground::sign;
use clover::ground::sign::BatchItem;
use clover::ground::sign::PublicKey;
use clover::ground::sign::Signer;
use clover::ledger::Command;
use clover::ledger::CreateLedger;
use clover::ledger::Ledger;
use clover::ledger::LedgerOptions;
use clover::ledger::verify;
use clover::ledger::verify::Signatures;
use clover::ledger::verify::VerifyOptions;
use clover::num::Count;
use clover::num::Micro;
use clover::store::CreateOptions;
use clover::store::OpenOptions;
use clover::store::Store;
use clover::workflow::RULEBOOK;
use ed25519_dalek::Signer as _;
use floor::BATCH;
use floor::SAMPLE;
use floor::cpu;
use floor::together;

/// What a signature cost, in microseconds, where the absolute rates were set that are to be reached.
const SIGN_THERE: f64 = 18.8;
/// Parts of the bulk append between which its floors are measured.
const STRETCHES: u64 = 8;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["audit", path, mode] => audit(Path::new(path), mode),
        ["fold", path] => {
            let ambient = Arc::new(Ambient::system());
            let ledger = Ledger::open(Path::new(path), ambient, &RULEBOOK, options()).unwrap();
            folds(&ledger, 1.0);
        }
        ["bulk", path, events] => {
            bulk(Path::new(path), events.parse().unwrap());
        }
        _ => table(),
    }
}

fn memory_peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}

fn signer(byte: u8) -> Signer {
    Signer::from_seed(&[byte; 32])
}

fn score(n: u64) -> Command {
    let payload = ScoreRecorded {
        call: None,
        draw: Count::new(0).unwrap(),
        item: format!("arena_{n}").parse().unwrap(),
        judge: "gpt-4.1-nano-2025-04-14".parse().unwrap(),
        policy: "base".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: Micro::new(i64::try_from(n % 1000).unwrap() * 1000).unwrap(),
    };
    Command::new(Payload::from(payload), Some("exp-1".parse().unwrap()))
}

fn create(path: &Path) -> Ledger {
    let owner = signer(1);
    let create = CreateLedger {
        origin: "bench.example/ledger-0123456789abcdef".parse().unwrap(),
        holder: "Ada".parse().unwrap(),
        human: true,
        roles: Roles::new(Role::ALL).unwrap(),
        separation: Separation::Solo,
        rulebook: clover::ledger::rulebooks::NEWEST,
        owner: &owner,
        layout: CreateOptions::default(),
    };
    let mut ledger = Ledger::create(
        path,
        create,
        Arc::new(Ambient::system()),
        &RULEBOOK,
        options(),
    )
    .unwrap();
    let registered = ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: clover::event::id::Text::new("to measure").unwrap(),
        title: clover::event::id::Text::new("bench").unwrap(),
    };
    ledger
        .append(
            &[Command::new(registered, Some("exp-1".parse().unwrap()))],
            &owner,
        )
        .unwrap();
    ledger
}

fn options() -> LedgerOptions {
    LedgerOptions {
        store: OpenOptions::default(),
        log_key: Some(signer(2)),
        pins: None,
    }
}

fn bulk(path: &Path, events: u64) -> Ledger {
    let mut ledger = create(path);
    stretch(&mut ledger, 0..events);
    ledger.settle().unwrap();
    ledger
}

/// Appends scores of these numbers in batches.
fn stretch(ledger: &mut Ledger, numbers: std::ops::Range<u64>) {
    let owner = signer(1);
    let mut at = numbers.start;
    while at < numbers.end {
        let batch: Vec<_> = (at..numbers.end.min(at + BATCH)).map(score).collect();
        at += batch.len() as u64;
        ledger.append(batch, &owner).unwrap();
    }
}

/// Appended in stretches, with the floors of an append measured around each of them: the machine's pace drifts.
struct Appended {
    ledger: Ledger,
    wall: f64,
    /// Of a core, per event.
    us: f64,
    /// The same of one signature, two hashes and an insert, in each stretch as they cost around it.
    floor_us: f64,
}

fn appended(path: &Path, events: u64, first: &Floors, folder: &Path) -> Appended {
    let mut ledger = create(path);
    let (mut wall, mut us, mut floor_us) = (0.0, 0.0, 0.0);
    let mut before = first.sign_together + first.hash + first.insert;
    let each = events.div_ceil(STRETCHES).max(1);
    for from in (0..events).step_by(each as usize) {
        let to = events.min(from + each);
        let (start, spent) = (Instant::now(), cpu());
        stretch(&mut ledger, from..to);
        if to == events {
            ledger.settle().unwrap();
        }
        wall += start.elapsed().as_secs_f64();
        us += (cpu() - spent).as_secs_f64() * 1e6;
        let after = floor::sign(BYTES) + first.hash + floor::insert(folder, BYTES);
        floor_us += f64::midpoint(before, after) * (to - from) as f64;
        before = after;
    }
    let count = events as f64;
    let (us, floor_us) = (us / count, floor_us / count);
    Appended {
        ledger,
        wall,
        us,
        floor_us,
    }
}

/// Runs in a process of its own and prints wall seconds, CPU seconds, peak MiB.
fn audit(path: &Path, mode: &str) {
    let store = Store::open(
        path,
        OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        },
    )
    .unwrap();
    let options = VerifyOptions {
        signatures: if mode == "fast" {
            Signatures::Fast
        } else {
            Signatures::Strict
        },
        tree_only: mode == "tree",
        ..VerifyOptions::default()
    };
    let (wall, before) = (Instant::now(), cpu());
    let ambient = Arc::new(Ambient::system());
    let report =
        verify::verify_store(&store, &options, &RULEBOOK, &ambient, &mut |_, _| {}).unwrap();
    assert_eq!(report.findings_total, 0, "{:?}", report.findings);
    println!(
        "{} {} {}",
        wall.elapsed().as_secs_f64(),
        (cpu() - before).as_secs_f64(),
        memory_peak_mib()
    );
}

struct Audit {
    wall: f64,
    cpu: f64,
    peak: f64,
}

fn run_audit(path: &Path, mode: &str) -> Audit {
    let program = std::env::current_exe().unwrap();
    let output = Process::new(program)
        .args(["audit", path.to_str().unwrap(), mode])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text
        .split_whitespace()
        .map(|part| part.parse().unwrap())
        .collect();
    let [wall, cpu, peak] = numbers[..] else {
        panic!(
            "audit {mode}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    Audit { wall, cpu, peak }
}

/// An audit held against a floor that is measured right before and after it: the machine's pace drifts. Of an odd number of
/// rounds the one with the median ratio: the floor, and the audit.
fn held(path: &Path, mode: &str, rounds: usize, floor: impl Fn() -> f64) -> (f64, Audit) {
    let mut before = floor();
    let mut round = || {
        let audit = run_audit(path, mode);
        let after = floor();
        let around = f64::midpoint(before, after);
        before = after;
        (around, audit)
    };
    let mut rounds: Vec<_> = (0..rounds).map(|_| round()).collect();
    let ratio = |(floor, audit): &(f64, Audit)| audit.wall / floor;
    rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let ratios: Vec<_> = rounds
        .iter()
        .map(|one| format!("{:.2}", ratio(one)))
        .collect();
    if ratios.len() > 1 && mode != "tree" {
        println!(
            "audit {mode}, in {} rounds: {}",
            ratios.len(),
            ratios.join(" ")
        );
    }
    rounds.swap_remove(rounds.len() / 2)
}

/// Floors: what the primitives alone cost, per event, in microseconds of a core. What appends and audits do on all cores
/// is held against what a core does while all work: two that share parts are slower together.
struct Floors {
    sign: f64,
    sign_together: f64,
    strict: f64,
    own_strict: f64,
    batch: f64,
    hash: f64,
    insert: f64,
    fsync: f64,
}

impl Floors {
    fn print(&self, when: &str) {
        println!(
            "floors {when}, us of a core: sign {:.1}, {:.1} on all cores at once · on all at once: strict verify {:.1} (ours {:.1}), \
             coalesced batch {:.1}, 2 hashes {:.2} · insert {:.1} · fdatasync {:.0}",
            self.sign,
            self.sign_together,
            self.strict,
            self.own_strict,
            self.batch,
            self.hash,
            self.insert,
            self.fsync
        );
    }
}

fn per_event(count: usize, mut work: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut work);
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// Bytes of the body of a score.
const BYTES: usize = 430;

/// The peer's strict verification, whose decoding of R ours spares.
fn strict_floor() -> f64 {
    let owner = signer(1);
    let message = sign::pae(PAYLOAD_TYPE, &[b'x'; BYTES]);
    let signature = owner.sign(&message).into();
    let peer = ed25519_dalek::VerifyingKey::from_bytes(&owner.public_bytes()).unwrap();
    together(SAMPLE, || peer.verify_strict(&message, &signature).unwrap())
}

/// The batch equation with equal keys coalesced, of 256 signatures.
fn batch_floor() -> f64 {
    let owner = signer(1);
    let key = PublicKey::from_bytes(&owner.public_bytes()).unwrap();
    let message = sign::pae(PAYLOAD_TYPE, &[b'x'; BYTES]);
    let signature = owner.sign(&message);
    let item = || BatchItem {
        message: [&message, &[]],
        signature,
        key: &key,
    };
    let items: Vec<_> = (0..256).map(|_| item()).collect();
    together(4 * SAMPLE / 256, || sign::verify_batch(&items).unwrap()) / 256.0
}

fn floors(folder: &Path) -> Floors {
    let owner = signer(1);
    let key = PublicKey::from_bytes(&owner.public_bytes()).unwrap();
    let message = sign::pae(PAYLOAD_TYPE, &[b'x'; BYTES]);
    // The faster signing: the peer's, or ours, which derives from the seed once.
    let signing = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let mut signature = [0; 64];
    let sign = per_event(SAMPLE, |_| {
        signature = std::hint::black_box(signing.sign(&message).to_bytes())
    });
    assert_eq!(signature, owner.sign(&message));
    let sign = sign.min(per_event(SAMPLE, |_| {
        std::hint::black_box(owner.sign(&message));
    }));
    let sign_together = floor::sign(BYTES);
    let strict = strict_floor();
    let own_strict = together(SAMPLE, || key.verify(&message, &signature).unwrap());
    let batch = batch_floor();
    Floors {
        sign,
        sign_together,
        strict,
        own_strict,
        batch,
        hash: floor::hash(BYTES),
        insert: floor::insert(folder, BYTES),
        fsync: fsync_floor(folder),
    }
}

fn fsync_floor(folder: &Path) -> f64 {
    use std::io::Write;
    let mut file = std::fs::File::create(folder.join("fsync")).unwrap();
    let page = vec![7; 4096 * 4];
    per_event(500, |_| {
        file.write_all(&page).unwrap();
        file.sync_data().unwrap();
    })
}

/// Wall time of strict (or batch) signatures alone on every core.
fn signatures_wall(per_event_us: f64, events: f64) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    per_event_us * events / 1e6 / cores as f64
}

fn row(what: &str, floor: String, ours: String, ratio: f64, target: f64) {
    let met = if ratio <= target { "met" } else { "MISSED" };
    println!("{what:<44} {floor:>16} {ours:>16} {ratio:>7.2} {target:>7.2}  {met}");
}

fn table() {
    let events: u64 =
        std::env::var("CLOVER_BENCH_EVENTS").map_or(1_000_000, |n| n.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let count = events as f64;
    let before_all = floors(folder.path());
    before_all.print("before");
    let path = folder.path().join("ledger.db");
    let bulk = appended(&path, events, &before_all, folder.path());
    let (mut ledger, append_wall) = (bulk.ledger, bulk.wall);
    let append_peak = memory_peak_mib();
    println!(
        "bulk append of {events} events: {append_wall:.1} s wall, peak {append_peak:.0} MiB\n"
    );
    println!(
        "{:<44} {:>16} {:>16} {:>7} {:>7}",
        "what", "floor", "ours", "ratio", "target"
    );
    row(
        "CPU per signed durable event, bulk",
        format!("{:.1} us", bulk.floor_us),
        format!("{:.1} us", bulk.us),
        bulk.us / bulk.floor_us,
        1.5,
    );
    fsync_row(folder.path());
    let wall = |per_event: fn() -> f64| move || signatures_wall(per_event(), count);
    let (strict_floor, strict) = held(&path, "strict", 1, wall(strict_floor));
    let text = |wall: f64| format!("{wall:.1} s");
    row(
        "full audit, strict",
        text(strict_floor),
        text(strict.wall),
        strict.wall / strict_floor,
        1.3,
    );
    row(
        "  its peak memory",
        "150 MiB".into(),
        format!("{:.0} MiB", strict.peak),
        strict.peak / 150.0,
        1.0,
    );
    let (fast_floor, fast) = held(&path, "fast", 3, wall(batch_floor));
    row(
        "full audit, --fast",
        text(fast_floor),
        text(fast.wall),
        fast.wall / fast_floor,
        1.5,
    );
    // A machine that signs in so many microseconds hashes as many times more slowly.
    let alone = || {
        let owner = signer(1);
        let message = sign::pae(PAYLOAD_TYPE, &[b'x'; BYTES]);
        per_event(SAMPLE, |_| {
            std::hint::black_box(owner.sign(&message));
        })
    };
    let (sign, tree) = held(&path, "tree", 3, alone);
    let scale = SIGN_THERE / sign;
    rate_row(
        "tree-only audit, events/s/core",
        count / tree.cpu,
        (1e6, scale),
    );
    proofs(&ledger);
    folds(&ledger, scale);
    latency(&mut ledger, &floors(folder.path()));
    floors(folder.path()).print("at the end");
    println!(
        "\nabsolute rates are those of a machine that signs in {SIGN_THERE} us, times what this one does of its work"
    );
    println!(
        "strict audit: {:.1} s CPU; append and strict audit together: {:.1} s wall",
        strict.cpu,
        append_wall + strict.wall
    );
}

fn fsync_row(folder: &Path) {
    let trace = folder.join("trace");
    let program = std::env::current_exe().unwrap();
    let events = BATCH * 3;
    let status = Process::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&trace)
        .arg(program)
        .args(["bulk".as_ref(), folder.join("traced.db").as_os_str()])
        .arg(events.to_string())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("fsyncs per event under bulk load: skipped, strace is not here");
        return;
    }
    let lines = std::fs::read_to_string(&trace).unwrap();
    let syncs = lines.lines().filter(|line| line.contains("sync(")).count() as f64;
    let per_event = syncs / events as f64;
    row(
        "fsyncs per event, bulk",
        format!("1/{BATCH}"),
        format!("1/{:.0}", 1.0 / per_event),
        per_event * 64.0,
        1.0,
    );
}

fn proofs(ledger: &Ledger) {
    let head = ledger.head_checkpoint().unwrap();
    let size = ledger.size();
    let rounds = 200_u64;
    let start = Instant::now();
    for n in 0..rounds {
        let seq = n * 7_919 * 104_729 % size;
        std::hint::black_box(ledger.prove(seq, head.clone()).unwrap());
    }
    let inclusion = start.elapsed().as_secs_f64() * 1e3 / rounds as f64;
    let start = Instant::now();
    for n in 0..rounds {
        let first = n * 7_919 * 104_729 % (size - 1) + 1;
        std::hint::black_box(ledger.prove_consistency(first, size).unwrap());
    }
    let consistency = start.elapsed().as_secs_f64() * 1e3 / rounds as f64;
    row(
        "inclusion proof",
        "1 ms".into(),
        format!("{inclusion:.3} ms"),
        inclusion,
        1.0,
    );
    row(
        "consistency proof",
        "1 ms".into(),
        format!("{consistency:.3} ms"),
        consistency,
        1.0,
    );
}

/// An absolute rate, held against what it comes to on this machine.
fn rate_row(what: &str, rate: f64, (wanted, scale): (f64, f64)) {
    let floor = format!("{wanted:.0} x {scale:.2}");
    row(
        what,
        floor,
        format!("{rate:.0}"),
        wanted * scale / rate,
        1.0,
    );
}

fn folds(ledger: &Ledger, scale: f64) {
    let start = Instant::now();
    let state = ledger.state_at(ledger.size()).unwrap();
    let rate = state.size as f64 / start.elapsed().as_secs_f64();
    rate_row("fold of all projections, events/s", rate, (3e5, scale));
}

fn latency(ledger: &mut Ledger, floor: &Floors) {
    let owner = signer(1);
    let rounds = 500;
    let mut times: Vec<f64> = (0..rounds)
        .map(|n| {
            let start = Instant::now();
            ledger.append(&[score(10_000_000 + n)], &owner).unwrap();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let least = floor.fsync + floor.sign;
    row(
        "latency of one durable append (median)",
        format!("{least:.0} us"),
        format!("{median:.0} us"),
        median / least,
        2.0,
    );
}
