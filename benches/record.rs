//! Estimates and audits on the record beside `cje-eval`: the numbers of both, the time that each took, and ten times the
//! sample.
//!
//! `cargo bench --bench record`. `CLOVER_BENCH_PYTHON` names a Python that has `cje-eval`; without it the peer's numbers
//! come from its recorded answers, and its times are left out. `CLOVER_BENCH_ARENA` names a folder with the sample's
//! `fresh_draws` and `probe_slice`; else its numbers without texts are used. `CLOVER_BENCH_RUNS` times each that often.
//! Every command is a process of its own; wall times are medians. Targets of a quiet machine: 10 times the sample within
//! 2 s and 150 MiB.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

mod beside;

use std::path::Path;
use std::path::PathBuf;
use std::process::Command as Process;
use std::process::Stdio;
use std::time::Instant;

use beside::Peer;
use beside::Run;
use beside::enlarged;
use beside::medians;
use beside::memory;
use beside::ours;
use beside::seconds;
use beside::waited_cpu;
use serde_json::Value;

/// Copies of each prompt in the larger sample.
const TIMES: usize = 10;
/// The largest difference to the peer that is none.
const SAME: f64 = 1e-8;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    match args.split_first() {
        Some((first, rest)) if first == "memory" => memory(rest),
        _ => table(),
    }
}

/// A folder with a ledger.
struct Desk(PathBuf);

impl Desk {
    /// With keys, an experiment, designs of labels and peeks.
    fn new(at: &Path) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let desk = Self(at.to_owned());
        for line in [
            "init --origin ledger.example/bench --holder Ada --roles owner,registrar,scorer,labeler,arbiter",
            "key new cem --role custodian --seal",
            "experiment register arena --title Arena --purpose timing --key owner",
            "label design new calib --purpose calibrate --probability 0.48",
            "label design new probes --purpose audit --probability 0.05",
            r#"record budget.opened --data {"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#,
        ] {
            desk.clover(line, 0);
        }
        desk
    }

    /// Runs a program in the folder; its answer is JSON.
    fn answer(&self, program: &Path, words: &[&str], code: i32) -> (Value, Run) {
        let (cpu, since) = (waited_cpu(), Instant::now());
        let output = Process::new(program)
            .args(words)
            .arg("--json")
            .current_dir(&self.0)
            .env("XDG_CONFIG_HOME", self.0.join("config"))
            .env("XDG_STATE_HOME", self.0.join("state"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let wall = since.elapsed().as_secs_f64();
        let (text, told) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{text}{told}");
        let (mut lines, mut peak) = (String::new(), None);
        for line in text.lines() {
            match line.strip_prefix("peak ") {
                Some(kib) => peak = Some(kib.trim().parse::<f64>().unwrap() / 1024.0),
                None => lines.push_str(line),
            }
        }
        let cpu = waited_cpu() - cpu;
        (
            serde_json::from_str(&lines).unwrap(),
            Run { wall, cpu, peak },
        )
    }

    fn clover(&self, line: &str, code: i32) -> (Value, Run) {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.answer(&ours(), &words, code)
    }

    /// Peak memory of a command, MiB.
    fn peak(&self, line: &str) -> f64 {
        let words: Vec<&str> = std::iter::once("memory")
            .chain(line.split_whitespace())
            .collect();
        let program = std::env::current_exe().unwrap();
        self.answer(&program, &words, 0).1.peak.unwrap()
    }
}

/// The peer's recorded answer to a case.
fn reference(file: &str, name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference/stats");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let mut cases = file["cases"].as_array().unwrap().iter();
    cases.find(|case| case["name"] == name).unwrap()["expected"].clone()
}

/// The largest difference that was seen.
#[derive(Default)]
struct Gap(f64);

impl Gap {
    fn number(&mut self, ours: &Value, theirs: &Value) -> (f64, f64) {
        let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
        self.0 = self.0.max((ours - theirs).abs());
        (ours, theirs)
    }
}

/// Values of every policy, ours and the peer's.
fn values(answer: &Value, gap: &mut Gap) {
    let peer = reference("direct_arena.json", "arena_m480_nocov");
    println!(
        "\n{:<26} {:>12} {:>12} {:>20} {:>20}  claim",
        "policy", "ours", "peer", "interval", "of the peer"
    );
    for (at, name) in peer["policies"].as_array().unwrap().iter().enumerate() {
        let mut all = answer["data"]["policies"].as_array().unwrap().iter();
        let found = all.find(|of| of["policy"] == *name).unwrap();
        let level = match &found["level"] {
            Value::Null => &found["withheld"],
            level => level,
        };
        let (value, theirs) = gap.number(&level["estimate"], &peer["estimates"][at]);
        gap.number(&level["se"], &peer["standard_errors"][at]);
        let low = gap.number(&level["interval"][0], &peer["ci95"][at][0]);
        let high = gap.number(&level["interval"][1], &peer["ci95"][at][1]);
        println!(
            "{:<26} {value:>12.9} {theirs:>12.9} {:>20} {:>20}  {}",
            name.as_str().unwrap(),
            format!("[{:.6}, {:.6}]", low.0, high.0),
            format!("[{:.6}, {:.6}]", low.1, high.1),
            found["claim"].as_str().unwrap(),
        );
    }
}

/// Audits of every policy, at the peer's width.
fn audits(answer: &Value, gap: &mut Gap) {
    println!(
        "\n{:<26} {:>12} {:>12} {:>20} {:>20}  state",
        "audit", "ours", "peer", "interval", "of the peer"
    );
    for found in answer["data"]["audits"].as_array().unwrap() {
        let name = found["policy"].as_str().unwrap();
        let peer = reference("transport.json", &format!("arena_probe_{name}_family3"));
        let (value, theirs) = gap.number(&found["mean_residual"], &peer["delta_hat"]);
        let narrow = &found["narrow"];
        gap.number(&narrow["se"], &peer["delta_se"]);
        let low = gap.number(&narrow["interval"]["low"], &peer["delta_ci"][0]);
        let high = gap.number(&narrow["interval"]["high"], &peer["delta_ci"][1]);
        println!(
            "{name:<26} {value:>+12.9} {theirs:>+12.9} {:>20} {:>20}  {} ({} by the peer)",
            format!("[{:+.6}, {:+.6}]", low.0, high.0),
            format!("[{:+.6}, {:+.6}]", low.1, high.1),
            found["state"].as_str().unwrap(),
            peer["status"].as_str().unwrap(),
        );
    }
}

fn head() {
    println!(
        "\n{:<48} {:>12} {:>10} {:>10} {:>10}",
        "what", "peer, wall", "wall", "CPU", "peak"
    );
}

fn timed(what: &str, peer: Option<Run>, run: Run, peak: Option<f64>) {
    println!(
        "{what:<48} {:>12} {:>10} {:>10} {:>10}",
        peer.map_or("-".to_owned(), |peer| seconds(peer.wall)),
        seconds(run.wall),
        seconds(run.cpu),
        peak.map_or("-".to_owned(), |peak| format!("{peak:.1} MiB")),
    );
}

fn bound(what: &str, value: f64, most: f64, unit: &str) {
    let met = if value <= most { "met" } else { "MISSED" };
    println!(
        "{what:<48} {value:>12.2} {:>10}  {met}",
        format!("{most}{unit}")
    );
}

fn table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference/arena");
    let root = std::env::var_os("CLOVER_BENCH_ARENA").map_or(root, PathBuf::from);
    let runs = std::env::var("CLOVER_BENCH_RUNS").map_or(5, |text| text.parse().unwrap());
    println!("sample: {}; medians of {runs} runs", root.display());
    let peer = Peer::find();
    let folder = tempfile::tempdir().unwrap();
    once(&root, &folder.path().join("once"), &peer, runs);
    larger(&root, folder.path(), &peer, runs);
}

/// The sample itself: both tables and times.
fn once(root: &Path, at: &Path, peer: &Peer, runs: usize) {
    let desk = Desk::new(at);
    let draws = root.join("fresh_draws").display().to_string();
    let probes = root.join("probe_slice").display().to_string();
    let taken = desk.clover(&format!("import cje {draws} --labels"), 0).1;
    desk.clover(
        &format!("import cje {probes} --seal probes --reveal-by 2099-01-31T00:00:00.000000Z"),
        0,
    );
    desk.clover("confirm seal probes", 0);
    let theirs: Vec<Run> = (0..runs)
        .filter_map(|_| peer.analyze(&draws, None))
        .collect();
    let theirs = (!theirs.is_empty()).then(|| medians(&theirs));
    let dry: Vec<Run> = (0..runs)
        .map(|_| desk.clover("estimate --dry-run", 0).1)
        .collect();
    let (answer, recorded) = desk.clover("estimate", 0);
    let (audited, audit) = desk.clover("audit transport --yes", 10);
    let mut gap = Gap::default();
    values(&answer, &mut gap);
    audits(&audited, &mut gap);
    println!("largest difference {:.1e}, allowed {SAME:.0e}", gap.0);
    assert!(gap.0 <= SAME);
    head();
    timed("import of 4,000 scores and 480 labels", None, taken, None);
    let peak = desk.peak("estimate --dry-run");
    timed(
        "estimate, nothing recorded",
        theirs,
        medians(&dry),
        Some(peak),
    );
    timed(
        "estimate, recorded and computed again",
        theirs,
        recorded,
        None,
    );
    timed("audit transport, 150 labels opened", None, audit, None);
}

/// Ten times the sample.
fn larger(root: &Path, folder: &Path, peer: &Peer, runs: usize) {
    let draws = folder.join("draws");
    let prompts = enlarged(&root.join("fresh_draws"), &draws, TIMES);
    let draws = draws.display().to_string();
    let desk = Desk::new(&folder.join("larger"));
    let taken = desk.clover(&format!("import cje {draws} --labels"), 0).1;
    let theirs: Vec<Run> = (0..runs.min(3))
        .filter_map(|_| peer.analyze(&draws, None))
        .collect();
    let theirs = (!theirs.is_empty()).then(|| medians(&theirs));
    // Each recording asks another question: one less the level of its intervals.
    let recorded: Vec<Run> = (0..runs)
        .map(|at| desk.clover(&format!("estimate --alpha 0.0{}", 5 + at), 0).1)
        .collect();
    let recorded = medians(&recorded);
    let dry: Vec<Run> = (0..runs)
        .map(|_| desk.clover("estimate --dry-run", 0).1)
        .collect();
    let peak = desk.peak("estimate --alpha 0.04");
    println!("\n{prompts} prompts");
    head();
    timed("import", None, taken, None);
    timed("estimate, nothing recorded", theirs, medians(&dry), None);
    timed(
        "estimate, recorded and computed again",
        theirs,
        recorded,
        Some(peak),
    );
    bound("  its wall time", recorded.wall, 2.0, " s");
    bound("  its peak memory", peak, 150.0, " MiB");
}
