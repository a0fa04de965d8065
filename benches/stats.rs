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

mod beside;

use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

use beside::Peer;
use beside::Random;
use beside::Run;
use beside::enlarged;
use beside::median;
use beside::medians;
use beside::memory;
use beside::ours;
use beside::run;
use beside::seconds;
use clover::stats::descent::Constants;
use clover::stats::descent::LossTerms;
use clover::stats::descent::ScoredRows;
use clover::stats::descent::loss;
use clover::stats::isotonic;
use clover::stats::isotonic::ClipBounds;
use clover::stats::isotonic::Monotonicity;
use clover::stats::sample::Values;

const REPLICATES: usize = 2000;
/// Copies of each prompt in the larger sample.
const TIMES: usize = 10;

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

/// A whole process with [`REPLICATES`], measured with as many as `asked` and scaled.
fn bootstrap(peer: &Peer, folder: &str, asked: usize, plain: Option<Run>) -> Option<Run> {
    let mut measured = peer.analyze(folder, Some(asked))?;
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

/// Peak memory of `clover` with these arguments, MiB, in a process of its own.
fn our_peak(args: &[&str]) -> f64 {
    let program = std::env::current_exe().unwrap();
    run(&program, &[&["memory"], args].concat()).peak.unwrap()
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
    prompt_loss();
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
    let resampled = bootstrap(peer, folder, peer_b, theirs);
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
        let curve =
            isotonic::fit(x, y, None, ClipBounds::default(), Monotonicity::Increasing).unwrap();
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

/// The loss of a judge's prompt over 100,000 rows of three scores, with all its terms and rank correlations.
fn prompt_loss() {
    let rows = 100_000;
    let mut random = Random::new(4);
    let targets: Vec<f64> = (0..rows).map(|_| random.uniform()).collect();
    let scores: Vec<[f64; 3]> = targets
        .iter()
        .map(|target| [0; 3].map(|_| (target + 0.3 * random.uniform() - 0.15).clamp(0.0, 1.0)))
        .collect();
    let (terms, mut times) = (LossTerms::default(), Vec::new());
    for _ in 0..9 {
        let start = Instant::now();
        let read = scores.iter().map(<[f64; 3]>::as_slice);
        let read = ScoredRows::new(&targets, read, 3).unwrap();
        let constants = Constants::of(&targets, read.selfvar(), terms.deviation).unwrap();
        std::hint::black_box(&loss(&read, &terms, &constants).unwrap());
        times.push(start.elapsed().as_secs_f64());
    }
    let time = median(times.into_iter());
    bound(
        "loss of a prompt over 100,000 rows",
        seconds(time),
        time,
        0.05,
        " s",
    );
}
