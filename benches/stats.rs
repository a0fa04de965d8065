//! Estimates from files beside `cje-eval`, in one run: time and memory of whole processes, and what grows how.
//!
//! `cargo bench --bench stats`. `CLOVER_BENCH_PYTHON` names a Python that has `cje-eval`; without it the peer's columns
//! are skipped. `CLOVER_BENCH_SAMPLE` names a folder of responses; else the numbers of the real sample are used.
//! `CLOVER_BENCH_PEER_B` lets the peer run fewer replicates, and its time is scaled. `CLOVER_BENCH_RUNS` runs each.
//! Wall times are medians of alternating runs; CPU is user plus system time of the process and what it waited for.
#![expect(clippy::print_stdout, reason = "the table is the product")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::pedantic,
    clippy::allow_attributes,
    reason = "a bench runs outside the library and stops at the first thing that fails"
)]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command as Process;
use std::process::Stdio;
use std::time::Instant;

use clover::cli;
use clover::cli::World;
use clover::stats::isotonic;
use clover::stats::isotonic::Bounds;
use clover::stats::isotonic::Direction;
use clover::stats::sample::Values;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng as _;
use rand_core::SeedableRng as _;
use serde_json::Value;

const REPLICATES: usize = 2000;
/// Copies of each prompt in the larger sample.
const TIMES: usize = 10;

/// The peer in a process that prints its own peak memory in KiB at the end.
const PEER: &str = "import resource, runpy, sys
sys.argv[0] = 'cje'
try:
    runpy.run_module('cje', run_name='__main__')
except SystemExit as end:
    if end.code:
        raise
print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)";

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    if let Some(("memory", rest)) = args
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        memory(rest);
    } else {
        table();
    }
}

/// Runs a command line in this process and prints its peak memory.
fn memory(args: &[String]) {
    let mut world = World::system().unwrap();
    let words = std::iter::once("clover").chain(args.iter().map(String::as_str));
    let exit = cli::execute(words.map(Into::into), &mut world);
    assert_eq!(exit.code(), 0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    println!("peak {}", line.unwrap().split_whitespace().nth(1).unwrap());
}

/// User plus system time of processes that were waited for, in seconds; the kernel counts hundredths.
fn waited_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(13) + ticks(14)) / 100.0
}

/// One run of a process.
#[derive(Clone, Copy)]
struct Run {
    wall: f64,
    cpu: f64,
    /// Peak memory in MiB, where it tells.
    peak: Option<f64>,
}

fn run(program: &Path, args: &[&str]) -> Run {
    let (cpu, start) = (waited_cpu(), Instant::now());
    let output = Process::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let wall = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{program:?} {args:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let last = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("peak "));
    Run {
        wall,
        cpu: waited_cpu() - cpu,
        peak: last.map(|kib| kib.trim().parse::<f64>().unwrap() / 1024.0),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn medians(runs: &[Run]) -> Run {
    Run {
        wall: median(runs.iter().map(|run| run.wall)),
        cpu: median(runs.iter().map(|run| run.cpu)),
        peak: runs[0].peak,
    }
}

/// The peer, if there is one.
struct Peer(Option<PathBuf>);

impl Peer {
    fn find() -> Self {
        let python = std::env::var_os("CLOVER_BENCH_PYTHON").map(PathBuf::from);
        let Some(python) = python else {
            println!("peer: skipped, CLOVER_BENCH_PYTHON names no Python that has cje-eval");
            return Self(None);
        };
        let version = "import importlib.metadata as m; print(m.version('cje-eval'))";
        let output = Process::new(&python).args(["-c", version]).output();
        match output {
            Ok(output) if output.status.success() => {
                let version = String::from_utf8_lossy(&output.stdout);
                println!("peer: cje-eval {}", version.trim());
                Self(Some(python))
            }
            _ => {
                println!("peer: skipped, {} has no cje-eval", python.display());
                Self(None)
            }
        }
    }

    fn analyze(&self, folder: &str, replicates: Option<usize>) -> Option<Run> {
        let python = self.0.as_ref()?;
        let mut args = vec!["-c", PEER, "analyze", folder, "--quiet"];
        let config = replicates.map(|replicates| {
            format!("{{\"inference_method\":\"bootstrap\",\"n_bootstrap\":{replicates}}}")
        });
        if let Some(config) = &config {
            args.extend(["--estimator-config", config]);
        }
        Some(run(python, &args))
    }

    /// A whole process with [`REPLICATES`], measured with as many as `asked` and scaled.
    fn bootstrap(&self, folder: &str, asked: usize, plain: Option<Run>) -> Option<Run> {
        let mut measured = self.analyze(folder, Some(asked))?;
        if asked < REPLICATES {
            let plain = plain?;
            println!(
                "peer: B = {asked} took {:.2} s CPU, {:.2} s of them without replicates; the rest is scaled to B = \
                 {REPLICATES}, and wall time with CPU time",
                measured.cpu, plain.cpu
            );
            let each = (measured.cpu - plain.cpu).max(0.0) / asked as f64;
            let cpu = plain.cpu + each * REPLICATES as f64;
            // Wall times of single runs on a shared machine differ by more than few replicates take.
            measured.wall *= cpu / measured.cpu;
            measured.cpu = cpu;
        }
        Some(measured)
    }
}

fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_clover"))
}

/// Peak memory of `clover` with these arguments, MiB, in a process of its own.
fn our_peak(args: &[&str]) -> f64 {
    let program = std::env::current_exe().unwrap();
    run(&program, &[&["memory"], args].concat()).peak.unwrap()
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", 1e3 * seconds)
    } else {
        format!("{seconds:.2} s")
    }
}

fn head() {
    println!(
        "\n{:<44} {:>12} {:>12} {:>9} {:>9}",
        "what", "peer", "ours", "ratio", "target"
    );
}

/// `least` is how many times the peer's must be of ours.
fn row(what: &str, peer: Option<String>, ours: String, ratio: Option<f64>, least: f64) {
    let (ratio, met) = match ratio {
        Some(ratio) => (
            format!("{ratio:.1}"),
            if ratio >= least { "met" } else { "MISSED" },
        ),
        None => ("-".to_owned(), ""),
    };
    let peer = peer.unwrap_or_else(|| "-".to_owned());
    println!("{what:<44} {peer:>12} {ours:>12} {ratio:>9} {least:>9}  {met}");
}

/// A bound on our own number.
fn bound(what: &str, ours: String, value: f64, most: f64, unit: &str) {
    let met = if value <= most { "met" } else { "MISSED" };
    println!(
        "{what:<44} {:>12} {ours:>12} {:>9} {:>9}  {met}",
        "",
        "",
        format!("{most}{unit}")
    );
}

fn compared(what: &str, peer: Option<Run>, ours: Run, least: f64) {
    let text = |pick: fn(Run) -> f64| peer.map(|peer| seconds(pick(peer)));
    let ratio = |pick: fn(Run) -> f64| peer.map(|peer| pick(peer) / pick(ours).max(1e-3));
    let wall = |run: Run| run.wall;
    let cpu = |run: Run| run.cpu;
    row(
        &format!("{what}, wall"),
        text(wall),
        seconds(ours.wall),
        ratio(wall),
        least,
    );
    row(
        &format!("{what}, CPU"),
        text(cpu),
        seconds(ours.cpu),
        ratio(cpu),
        least,
    );
}

/// Alternating runs of both.
fn side_by_side(peer: &Peer, folder: &str, count: usize) -> (Option<Run>, Run) {
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for _ in 0..count {
        theirs.extend(peer.analyze(folder, None));
        for _ in 0..3 {
            own.push(run(&ours(), &["analyze", folder, "--json"]));
        }
    }
    let theirs = (!theirs.is_empty()).then(|| medians(&theirs));
    (theirs, medians(&own))
}

fn table() {
    let numbers =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference/arena/fresh_draws");
    let sample = std::env::var_os("CLOVER_BENCH_SAMPLE").map_or(numbers, PathBuf::from);
    let number = |name: &str, default: usize| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let (runs, peer_b) = (
        number("CLOVER_BENCH_RUNS", 5),
        number("CLOVER_BENCH_PEER_B", REPLICATES),
    );
    println!(
        "sample: {}; {runs} runs of the peer, {} of ours",
        sample.display(),
        3 * runs
    );
    let peer = Peer::find();
    let folder = tempfile::tempdir().unwrap();
    let larger = folder.path().join("larger");
    let prompts = enlarged(&sample, &larger, TIMES);
    head();
    estimates(
        &peer,
        sample.to_str().unwrap(),
        "the sample",
        runs,
        peer_b,
        [25.0, 100.0],
        true,
    );
    let name = format!("{prompts} prompts");
    let fewer = peer_b.min(100);
    estimates(
        &peer,
        larger.to_str().unwrap(),
        &name,
        runs.min(3),
        fewer,
        [20.0, 50.0],
        false,
    );
    growth(folder.path());
    single_fit();
}

/// Analytic and bootstrap, time and memory, on one folder.
fn estimates(
    peer: &Peer,
    folder: &str,
    name: &str,
    runs: usize,
    peer_b: usize,
    least: [f64; 2],
    bounded: bool,
) {
    let (theirs, own) = side_by_side(peer, folder, runs);
    compared(&format!("analyze, {name}"), theirs, own, least[0]);
    if bounded {
        bound("  its wall time", seconds(own.wall), own.wall, 0.06, " s");
    }
    let memory = |what: &str, theirs: Option<Run>, args: &[&str]| {
        let (theirs, own) = (theirs.and_then(|run| run.peak), our_peak(args));
        row(
            &format!("{what}, {name}"),
            theirs.map(|peak| format!("{peak:.0} MiB")),
            format!("{own:.1} MiB"),
            theirs.map(|peak| peak / own),
            4.0,
        );
    };
    memory("peak memory", theirs, &["analyze", folder, "--json"]);
    let text = REPLICATES.to_string();
    let args = ["analyze", folder, "--json", "--bootstrap", &text];
    let own: Vec<Run> = (0..runs).map(|_| run(&ours(), &args)).collect();
    let own = medians(&own);
    let resampled = peer.bootstrap(folder, peer_b, theirs);
    compared(
        &format!("B = {REPLICATES}, {name}"),
        resampled,
        own,
        least[1],
    );
    if bounded {
        bound("  its wall time", seconds(own.wall), own.wall, 1.0, " s");
    }
    memory("peak memory with replicates", resampled, &args);
}

/// Resamples prompts with replacement, all policies' responses with them, under new ids. Returns the prompts.
fn enlarged(from: &Path, to: &Path, times: usize) -> usize {
    std::fs::create_dir_all(to).unwrap();
    let mut files: Vec<(String, Vec<Value>)> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        ids.extend(
            rows.iter()
                .map(|row| row["prompt_id"].as_str().unwrap().to_owned()),
        );
        files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), rows));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut random = Random::new(1);
    let drawn: Vec<&String> = (0..times * ids.len())
        .map(|_| &ids[(random.uniform() * ids.len() as f64) as usize])
        .collect();
    for (name, rows) in &files {
        let by_id: std::collections::BTreeMap<&str, &Value> = rows
            .iter()
            .map(|row| (row["prompt_id"].as_str().unwrap(), row))
            .collect();
        let mut out = String::new();
        for (copy, id) in drawn.iter().enumerate() {
            if let Some(row) = by_id.get(id.as_str()) {
                let mut row = (*row).clone();
                row["prompt_id"] = Value::String(format!("{id}-{copy}"));
                out.push_str(&row.to_string());
                out.push('\n');
            }
        }
        std::fs::write(to.join(name), out).unwrap();
    }
    drawn.len()
}

struct Random(ChaCha20Rng);

impl Random {
    fn new(seed: u8) -> Self {
        Self(ChaCha20Rng::from_seed([seed; 32]))
    }

    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Time per row at 1,000, 10,000 and 100,000 prompts, scores without ties, a tenth of one policy labelled.
fn growth(folder: &Path) {
    println!(
        "\n{:<44} {:>12} {:>12} {:>12} {:>12} {:>10}",
        "growth, 4 policies, untied scores", "wall", "us per row", "B = 40", "us per row", "peak"
    );
    let mut per_row = Vec::new();
    for prompts in [1_000_usize, 10_000, 100_000] {
        let to = folder.join(format!("growth-{prompts}"));
        std::fs::create_dir_all(&to).unwrap();
        let mut random = Random::new(2);
        for policy in 0..4 {
            let mut out = String::new();
            for prompt in 0..prompts {
                let score = random.uniform();
                let label = if policy == 0 && random.uniform() < 0.1 {
                    format!(
                        ",\"oracle_label\":{:.6}",
                        0.8 * score * score + 0.2 * random.uniform()
                    )
                } else {
                    String::new()
                };
                out.push_str(&format!(
                    "{{\"prompt_id\":\"p{prompt}\",\"judge_score\":{score:.9}{label}}}\n"
                ));
            }
            std::fs::write(to.join(format!("policy{policy}_responses.jsonl")), out).unwrap();
        }
        let to = to.to_str().unwrap();
        let count = if prompts > 10_000 { 3 } else { 5 };
        let plain: Vec<Run> = (0..count)
            .map(|_| run(&ours(), &["analyze", to, "--json"]))
            .collect();
        let args = ["analyze", to, "--json", "--bootstrap", "40"];
        let resampled: Vec<Run> = (0..count).map(|_| run(&ours(), &args)).collect();
        let rows = 4.0 * prompts as f64;
        let (plain, resampled) = (medians(&plain), medians(&resampled));
        per_row.push(plain.wall / rows);
        println!(
            "{:<44} {:>12} {:>12.3} {:>12} {:>12.3} {:>10}",
            format!("{prompts} prompts"),
            seconds(plain.wall),
            1e6 * plain.wall / rows,
            seconds(resampled.wall),
            1e6 * resampled.wall / rows,
            format!("{:.0} MiB", our_peak(&["analyze", to, "--json"])),
        );
    }
    let ratio = per_row[2] / per_row[1];
    bound(
        "time per row, 100,000 to 10,000 prompts",
        format!("{ratio:.2}"),
        ratio,
        2.0,
        "",
    );
}

/// One isotonic fit of a million points beside the sort of the same points.
fn single_fit() {
    let rows = 1_000_000;
    let mut random = Random::new(3);
    let x: Vec<f64> = (0..rows).map(|_| random.uniform()).collect();
    let y: Vec<f64> = x.iter().map(|x| x + random.uniform() - 0.5).collect();
    let (mut sorts, mut fits) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let mut pairs: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        let start = Instant::now();
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        sorts.push(start.elapsed().as_secs_f64());
        std::hint::black_box(&pairs);
        let (x, y) = (Values::new("x", &x).unwrap(), Values::new("y", &y).unwrap());
        let start = Instant::now();
        let curve = isotonic::fit(x, y, None, Bounds::default(), Direction::Increasing).unwrap();
        fits.push(start.elapsed().as_secs_f64());
        std::hint::black_box(&curve);
    }
    let (sort, fit) = (median(sorts.into_iter()), median(fits.into_iter()));
    println!();
    println!(
        "one isotonic fit of {rows} points: {}; the sort of the points: {}",
        seconds(fit),
        seconds(sort)
    );
    bound(
        "isotonic fit of 1,000,000 points",
        seconds(fit),
        fit,
        0.25,
        " s",
    );
    bound(
        "  times the sort",
        format!("{:.2}", fit / sort),
        fit / sort,
        2.0,
        "",
    );
}
