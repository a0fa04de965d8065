//! The command line in process: a fixed clock and seed, an environment of its own, buffers for streams.

mod analyze;
mod answered;
mod assume;
mod attested;
mod audited;
mod backed_up;
mod bad_input;
mod baited;
mod before;
mod beside;
mod bundle_claims;
mod bundled;
mod calibrate;
mod carded;
mod cassettes;
mod cast;
mod charged;
mod claims;
mod clock;
mod composite;
mod corrected;
mod current;
mod dependents;
mod divergence;
mod doubts;
mod drafted;
mod drawn;
mod endpoints;
mod environments;
mod erased;
mod estimate;
mod evidenced;
mod extracts;
mod flows;
mod foreign;
mod gate;
mod gate_ahead;
mod gate_page;
mod gate_plan;
mod gate_refusals;
mod guide;
mod held;
mod import_ledger;
mod intake;
mod iterate;
mod iterate_killed;
mod joined;
mod judge;
mod judge_evidence;
mod judge_killed;
mod judges_compared;
mod kept;
mod key_request;
mod killed;
mod kinds;
mod laid_out;
mod late_rows;
mod live;
mod live_means;
mod live_noise;
mod live_runs;
mod looks;
mod meta;
mod meta_cells;
mod mistakes;
mod obstacles;
mod on_scales;
mod ope;
mod openable;
mod own_data;
#[cfg(feature = "parquet")]
mod parquet;
mod past;
mod paused;
mod prereg;
mod probed;
mod program;
mod prompted;
mod qualify;
mod receipts;
mod release;
mod rendered;
mod renderings;
mod repair;
mod replayed;
mod reported;
mod rests;
mod resumed;
mod retold;
mod rewritten;
mod rubric;
mod same_arms;
mod secrets;
mod seen;
mod sequential;
mod sgd;
mod sgd_asked;
mod sgd_leaks;
mod sgd_promotion;
mod sgd_prompts;
mod sgd_scored;
mod shipped;
mod signed;
mod simulate;
mod sizes;
mod stopped;
mod stratified;
mod summarised;
mod synced;
mod synced_killed;
mod synth;
mod synth_asked;
mod synth_killed;
mod taken_in;
mod tools;
mod tools_archives;
mod tools_failed;
mod unchecked;
mod unscored;
mod verbs;
mod ways_on;
mod widths;
mod wrong_turns;

use std::ffi::OsString;
use std::io::Cursor;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;

use clover::cli;
use clover::cli::World;
use clover::ground::ambient::Ambient;
use clover::ground::ambient::Clock;
use clover::ground::ambient::FixedClock;
use clover::ground::ambient::SeededEntropy;
use clover::ground::time::Timestamp;
use serde_json::Value;

use crate::support;

/// A stream whose bytes can be read after the run.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

struct SharedClock(Arc<FixedClock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// What a run did. Paths of the desk are written `$T`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A person at a terminal: a folder with keys, pins and a ledger.
pub(crate) struct Desk {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<FixedClock>,
    ambient: Arc<Ambient>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) on_terminal: bool,
    /// Columns of the terminal that answers go to; none for a pipe.
    pub(crate) columns: Option<u16>,
    /// Name of the folder that holds keys; another name is another person.
    pub(crate) config: &'static str,
    /// Name of the folder that holds pins; another name is another machine.
    pub(crate) state: &'static str,
    /// The experiment that the shell names.
    pub(crate) experiment: Option<&'static str>,
    /// The folder that verbs run in.
    pub(crate) at: PathBuf,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock::new(support::start(), 0));
        let entropy = SeededEntropy::new([7; 32]);
        let shared = SharedClock(clock.clone());
        let at = folder.path().join("work");
        std::fs::create_dir_all(&at).unwrap();
        Self {
            folder,
            clock,
            ambient: Arc::new(Ambient::new(Box::new(shared), Box::new(entropy))),
            stdin: Vec::new(),
            on_terminal: false,
            columns: None,
            config: "config",
            state: "state",
            experiment: None,
            at,
        }
    }

    /// A desk whose ledger has an owner (who is registrar too), a scorer, a custodian and an experiment.
    pub(crate) fn with_ledger() -> Self {
        let mut desk = Self::new();
        desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar");
        desk.ok("key new scorer --role scorer --machine");
        desk.ok("key new cem --role custodian");
        desk.ok("experiment register exp-1 --title One --purpose testing");
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the working folder and gives its name.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at.join(name), text).unwrap();
        name.to_owned()
    }

    /// The ledger file.
    pub(crate) fn database(&self) -> PathBuf {
        self.at.join(".clover/ledger.db")
    }

    pub(crate) fn key_file(&self, name: &str) -> PathBuf {
        self.path(self.config)
            .join(format!("clover/keys/{name}.pem"))
    }

    /// Runs a command line of words without spaces.
    pub(crate) fn run(&mut self, line: &str) -> Ran {
        let words: Vec<_> = line.split_whitespace().collect();
        self.words(&words)
    }

    pub(crate) fn words(&mut self, words: &[&str]) -> Ran {
        let (out, err) = (Buffer::default(), Buffer::default());
        let variable =
            |name: &str, folder: &str| (name.to_owned(), self.path(folder).display().to_string());
        let experiment = self
            .experiment
            .map(|id| ("CLOVER_EXPERIMENT".to_owned(), id.to_owned()));
        let folders = [
            variable("XDG_CONFIG_HOME", self.config),
            variable("XDG_STATE_HOME", self.state),
        ];
        let mut world = World {
            ambient: self.ambient.clone(),
            variables: folders.into_iter().chain(experiment).collect(),
            folder: self.at.clone(),
            stdin: Some(Box::new(Cursor::new(std::mem::take(&mut self.stdin)))),
            stdout: Box::new(out.clone()),
            stderr: Box::new(err.clone()),
            terminals: [self.on_terminal, self.columns.is_some(), false],
            columns: self.columns,
            ask_passphrase: Box::new(|_| None),
        };
        let args = std::iter::once("clover").chain(words.iter().copied());
        let exit = cli::execute(args.map(OsString::from), &mut world);
        let folder = self.folder.path().display().to_string();
        let tidy = |buffer: &Buffer| buffer.text().replace(&folder, "$T");
        Ran {
            code: exit.code(),
            out: tidy(&out),
            err: tidy(&err),
        }
    }

    /// As [`Desk::run`], which must succeed.
    pub(crate) fn ok(&mut self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{line}\n{}{}", ran.out, ran.err);
        ran
    }

    /// Everything computed again, of the ledger here or of another: nothing differs, and 12 is the code exactly where
    /// something cannot be computed.
    pub(crate) fn replayed(&mut self, more: &str) -> Value {
        let ran = self.run(&format!("replay --all --json {more}"));
        let data = ran.json()["data"].clone();
        assert_eq!(data["differ"], 0, "{data:#}");
        let code = if data["gone"] == 0 { 0 } else { 12 };
        assert_eq!(ran.code, code, "{data:#}");
        data
    }

    /// As [`Desk::words`], which must succeed.
    pub(crate) fn ok_words(&mut self, words: &[&str]) -> Ran {
        let ran = self.words(words);
        assert_eq!(ran.code, 0, "{words:?}\n{}{}", ran.out, ran.err);
        ran
    }

    /// Size and root of the ledger, which must verify.
    pub(crate) fn head(&mut self) -> Value {
        let verified = self.ok("verify --json").json();
        assert_eq!(verified["verdict"], "verified");
        verified["checkpoint"].clone()
    }

    /// Runs something that must fail with `code`, say every one of `parts` on standard error, end in a next
    /// command, and leave the ledger as it was.
    pub(crate) fn refused(&mut self, words: &[&str], code: u8, parts: &[&str]) -> Ran {
        let before = self.head();
        let ran = self.words(words);
        assert_eq!(ran.code, code, "{words:?}\n{}{}", ran.out, ran.err);
        says(&ran, parts);
        assert_eq!(self.head(), before);
        ran
    }
}

/// The failure names what it must and ends in a command to type next.
pub(crate) fn says(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in:\n{}", ran.err);
    }
    let last = ran.err.lines().last().unwrap();
    assert!(last.starts_with("next: ") && last.len() > 8, "{}", ran.err);
}

/// Compares text with what it must be, and prints it whole when it differs.
#[track_caller]
pub(crate) fn same(found: &str, expected: &str) {
    let expected = expected.trim_start_matches('\n');
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

/// Copies a folder.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A bulk line with the score of an item.
pub(crate) fn score_line(item: &str) -> String {
    format!(
        "{{\"kind\":\"score.recorded\",\"experiment\":\"exp-1\",\"data\":{{\"draw\":0,\"item\":\"{item}\",\"judge\":\"j\",\"policy\":\"p\",\"score_micro\":5}}}}\n"
    )
}
