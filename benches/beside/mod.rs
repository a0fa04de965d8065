//! Whole processes of Clover and of `cje-eval`, timed, with their peak memory; and the sample, larger.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command as Process;
use std::process::Stdio;
use std::time::Instant;

use clover::cli;
use clover::cli::World;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use serde_json::Value;

/// The peer in a process that prints its own peak memory in KiB at the end.
const PEER: &str = "import resource, runpy, sys
sys.argv[0] = 'cje'
try:
    runpy.run_module('cje', run_name='__main__')
except SystemExit as end:
    if end.code:
        raise
print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)";

/// Runs a command line in this process and prints its peak memory.
pub(crate) fn memory(args: &[String]) {
    let mut world = World::system().unwrap();
    let words = std::iter::once("clover").chain(args.iter().map(String::as_str));
    let exit = cli::execute(words.map(Into::into), &mut world);
    assert_eq!(exit.code(), 0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    println!("peak {}", line.unwrap().split_whitespace().nth(1).unwrap());
}

/// User plus system time of processes that were waited for, in seconds; the kernel counts hundredths.
pub(crate) fn waited_cpu() -> f64 {
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
pub(crate) struct Run {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    /// Peak memory in MiB, where it tells.
    pub(crate) peak: Option<f64>,
}

pub(crate) fn run(program: &Path, args: &[&str]) -> Run {
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

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn medians(runs: &[Run]) -> Run {
    Run {
        wall: median(runs.iter().map(|run| run.wall)),
        cpu: median(runs.iter().map(|run| run.cpu)),
        peak: runs[0].peak,
    }
}

/// The peer, if there is one.
pub(crate) struct Peer(Option<PathBuf>);

impl Peer {
    pub(crate) fn find() -> Self {
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

    pub(crate) fn analyze(&self, folder: &str, replicates: Option<usize>) -> Option<Run> {
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
}

pub(crate) fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_clover"))
}

pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", 1e3 * seconds)
    } else {
        format!("{seconds:.2} s")
    }
}

/// Resamples prompts with replacement, all policies' responses with them, under new ids. Returns the prompts.
pub(crate) fn enlarged(from: &Path, to: &Path, times: usize) -> usize {
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

pub(crate) struct Random(ChaCha20Rng);

impl Random {
    pub(crate) fn new(seed: u8) -> Self {
        Self(ChaCha20Rng::from_seed([seed; 32]))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
