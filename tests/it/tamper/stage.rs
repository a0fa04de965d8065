//! A ledger's files as bytes, put on a stage with one thing changed, opened, verified, and appended to.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use clover::event::entry;
use clover::event::payload::Verdict;
use clover::ground::ambient::Ambient;
use clover::ground::note::SignedCheckpoint;
use clover::ledger::Ledger;
use clover::ledger::LedgerOptions;
use clover::ledger::verify;
use clover::ledger::verify::VerifyOptions;
use clover::store::Store;
use clover::workflow::RULEBOOK;

use crate::support::TestLedger;
use crate::support::ambient;
use crate::support::full;
use crate::support::options;
use crate::support::signer;
use crate::support::start;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Opening refused.
    Open,
    /// Verification found it.
    Verify,
    /// Export, verdict and next append are the same.
    Harmless,
    /// None of these: a bug.
    Bug(String),
}

/// Whether the long runs were asked for.
pub fn slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}

/// The files of a ledger.
#[derive(Clone)]
pub struct Files {
    pub db: Vec<u8>,
    pub wal: Option<Vec<u8>>,
    pub pin: Vec<u8>,
}

impl Files {
    /// As they lie now, while the ledger is open.
    pub fn copy(test: &TestLedger) -> Self {
        let wal = test.folder.path().join("ledger.db-wal");
        Self {
            db: std::fs::read(test.path()).unwrap(),
            wal: std::fs::read(wal).ok().filter(|wal| !wal.is_empty()),
            pin: std::fs::read(test.ledger.pin().unwrap().path()).unwrap(),
        }
    }
}

/// What anyone can see of a ledger.
#[derive(PartialEq, Eq)]
pub struct Seen {
    export: Vec<Vec<u8>>,
    verdict: String,
    next: (Vec<u8>, Vec<u8>),
}

/// What a stage needs to know of a ledger.
#[derive(Clone)]
pub struct Scene {
    pin: std::ffi::OsString,
    log_key: u8,
}

impl Scene {
    pub fn of(test: &TestLedger) -> Self {
        let pin = test.ledger.pin().unwrap().path().file_name().unwrap();
        Self {
            pin: pin.to_owned(),
            log_key: test.log_key,
        }
    }
}

/// A folder in which files are put and looked at, one after the other.
pub struct Stage {
    folder: tempfile::TempDir,
    pin_name: PathBuf,
    log_key: u8,
}

impl Stage {
    pub fn new(scene: &Scene) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let folder = folder.unwrap();
        std::fs::create_dir(folder.path().join("pins")).unwrap();
        Self {
            pin_name: folder.path().join("pins").join(&scene.pin),
            folder,
            log_key: scene.log_key,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    pub fn put(&self, files: &Files) {
        for end in ["-wal", "-shm"] {
            std::fs::remove_file(self.folder.path().join(format!("ledger.db{end}"))).ok();
        }
        std::fs::write(self.path(), &files.db).unwrap();
        if let Some(wal) = &files.wal {
            std::fs::write(self.folder.path().join("ledger.db-wal"), wal).unwrap();
        }
        std::fs::write(&self.pin_name, &files.pin).unwrap();
    }

    fn options(&self) -> LedgerOptions {
        let mut options = options(&self.folder.path().join("pins"));
        options.log_key = Some(signer(self.log_key));
        options.store.busy_timeout = std::time::Duration::from_secs(2);
        options
    }

    /// Opens, verifies against the pin, exports and appends.
    fn look(&self) -> Result<Seen, Outcome> {
        let ambient = ambient(start().plus_seconds(3600));
        let opened = Ledger::open(&self.path(), ambient.clone(), &RULEBOOK, self.options());
        let Ok(mut ledger) = opened else {
            return Err(self.look_without_opening(&ambient));
        };
        let verify = |ledger: &Ledger, against: Option<SignedCheckpoint>| {
            let against = against.map(|pin| ("the pin".to_owned(), pin));
            let options = VerifyOptions {
                against: against.into_iter().collect(),
                ..VerifyOptions::default()
            };
            let store = ledger.store();
            verify::verify_store(store, &options, &RULEBOOK, &ambient, &mut |_, _| {})
        };
        let pin = ledger.pin().unwrap().load().map_err(|_| Outcome::Open)?;
        let report = verify(&ledger, pin).map_err(|_| Outcome::Verify)?;
        if report.verdict != Verdict::Pass {
            return Err(Outcome::Verify);
        }
        let mut export = Vec::new();
        let bug =
            |what: &str, error: &dyn std::fmt::Display| Outcome::Bug(format!("{what}: {error}"));
        ledger
            .entries(0, ledger.size(), |read| {
                let mut line = Vec::new();
                let it = &read.stored;
                entry::write_line(
                    &mut line,
                    it.seq,
                    it.recorded_at,
                    &it.body,
                    &it.author,
                    &it.signature,
                );
                export.push(line);
                Ok::<_, clover::ledger::LedgerError>(())
            })
            .map_err(|error| bug("export", &error))?;
        let owner = signer(1);
        let appended = ledger.append(&[full::note("the next")], &owner);
        appended.map_err(|error| bug("append", &error))?;
        let newest = ledger.size() - 1;
        let next = ledger.entry(newest).map_err(|error| bug("read", &error))?;
        let next = next.ok_or_else(|| bug("read", &"no entry"))?.stored;
        let mut line = Vec::new();
        entry::write_line(
            &mut line,
            next.seq,
            next.recorded_at,
            &next.body,
            &next.author,
            &next.signature,
        );
        let head = ledger.head_checkpoint();
        let head = head.map_err(|error| bug("checkpoint", &error))?.encode();
        let after = verify(&ledger, None).map_err(|error| bug("verify after", &error))?;
        if after.verdict != Verdict::Pass {
            return Err(bug("verify after", &format!("{:?}", after.findings)));
        }
        Ok(Seen {
            export,
            verdict: report.verdict_line(),
            next: (line, head),
        })
    }

    /// A file that does not open as a ledger is still verified: it comes to an end, and does not pass.
    fn look_without_opening(&self, ambient: &Arc<Ambient>) -> Outcome {
        let Ok(store) = Store::open(&self.path(), self.options().store) else {
            return Outcome::Open;
        };
        let pin = std::fs::read(&self.pin_name).ok();
        let pin = pin.and_then(|note| SignedCheckpoint::parse(&note).ok());
        let damaged = pin.is_none();
        let options = VerifyOptions {
            against: pin
                .map(|pin| ("the pin".to_owned(), pin))
                .into_iter()
                .collect(),
            ..VerifyOptions::default()
        };
        match verify::verify_store(&store, &options, &RULEBOOK, ambient, &mut |_, _| {}) {
            Ok(report) if report.verdict == Verdict::Pass && !damaged => {
                Outcome::Bug("refused at open, and verified".to_owned())
            }
            _ => Outcome::Open,
        }
    }

    /// What can be seen of untouched files.
    pub fn honest(&self, files: &Files) -> Seen {
        self.put(files);
        match self.look() {
            Ok(seen) => seen,
            Err(outcome) => panic!("untouched: {outcome:?}"),
        }
    }

    /// What becomes of the files that are on the stage.
    pub fn judge(&self, honest: &Seen) -> Outcome {
        let looked = std::panic::catch_unwind(AssertUnwindSafe(|| self.look()));
        match looked {
            Err(_) => Outcome::Bug("a panic".to_owned()),
            Ok(Err(outcome)) => outcome,
            Ok(Ok(seen)) if seen == *honest => Outcome::Harmless,
            Ok(Ok(seen)) => Outcome::Bug(format!(
                "unseen change: export {}, verdict {}, append {}",
                seen.export == honest.export,
                seen.verdict == honest.verdict,
                seen.next == honest.next
            )),
        }
    }
}

/// Judges every one of `changes` on both cores, each core on a stage of its own.
pub fn judge_all<T: Sync>(
    scene: &Scene,
    files: &Files,
    changes: &[T],
    change: impl Fn(&Stage, &T) + Sync,
    name: impl Fn(&T) -> String + Sync,
) -> Counts {
    let honest = Stage::new(scene).honest(files);
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let work = || {
        let stage = Stage::new(scene);
        let mut counts = Counts::default();
        while let Some(it) = changes.get(next.fetch_add(1, Ordering::Relaxed)) {
            change(&stage, it);
            counts.add(|| name(it), stage.judge(&honest));
            done.fetch_add(1, Ordering::Relaxed);
        }
        counts
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // What never comes to an end is a bug too: it is named, and the run stops.
    let watch = || {
        let (mut quiet, mut last, mut told) = (0, 0, changes.len() / 20);
        while done.load(Ordering::Relaxed) < changes.len() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = done.load(Ordering::Relaxed);
            if slow() && now > told {
                eprintln!("{now} of {} changes", changes.len());
                told = now + changes.len() / 20;
            }
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            if quiet > 9_000 {
                let at = next.load(Ordering::Relaxed).min(changes.len());
                let near = changes[at.saturating_sub(cores)..at].iter().map(&name);
                eprintln!(
                    "no end after 3 minutes, one of {:?}",
                    near.collect::<Vec<_>>()
                );
                std::process::abort();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(watch);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold(Counts::default(), Counts::merge)
    })
}

/// Outcomes by class, and the bugs by place.
#[derive(Default)]
pub struct Counts {
    pub classes: BTreeMap<&'static str, u64>,
    pub bugs: Vec<String>,
}

impl Counts {
    pub fn add(&mut self, place: impl FnOnce() -> String, outcome: Outcome) {
        let class = match outcome {
            Outcome::Open => "refused at open",
            Outcome::Verify => "found by verify",
            Outcome::Harmless => "harmless and identical",
            Outcome::Bug(what) => {
                self.bugs.push(format!("{}: {what}", place()));
                "neither"
            }
        };
        *self.classes.entry(class).or_default() += 1;
    }

    pub fn merge(mut self, other: Self) -> Self {
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self.bugs.extend(other.bugs);
        self
    }

    /// Prints the counts, and fails when there is a bug among them.
    pub fn finish(self, what: &str) {
        let total: u64 = self.classes.values().sum();
        eprintln!("{what}: {total} changes, {:?}", self.classes);
        let shown: Vec<_> = self.bugs.iter().take(40).collect();
        assert!(
            self.bugs.is_empty(),
            "{what}: {} neither found nor harmless: {shown:#?}",
            self.bugs.len()
        );
    }
}
