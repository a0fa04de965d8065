//! A ledger in a temporary folder with a fixed clock and fixed keys, and `check_all`, with which every test
//! that wrote something ends.

pub mod calibrated;
pub mod child;
pub mod computed;
pub mod computed_reports;
pub mod computed_rows;
pub mod computed_telling;
pub mod decided;
pub mod deployed;
pub mod descended;
pub mod drifted;
pub mod forge;
pub mod forger;
pub mod full;
pub mod gated;
pub mod iterated;
pub mod labelled;
pub mod mutator;
pub mod planned;
pub mod released;
pub mod repaired;
pub mod samples;
pub mod sequenced;
pub mod tampered;
pub mod tampered_answered;
pub mod tampered_asked;
pub mod tampered_before;
pub mod tampered_chosen;
pub mod tampered_claims;
pub mod tampered_decisions;
pub mod tampered_deployments;
pub mod tampered_descents;
pub mod tampered_drifts;
pub mod tampered_endpoints;
pub mod tampered_environments;
pub mod tampered_gated;
pub mod tampered_gates;
pub mod tampered_generators;
pub mod tampered_held;
pub mod tampered_invariants;
pub mod tampered_iterations;
pub mod tampered_labelled;
pub mod tampered_looks;
pub mod tampered_names;
pub mod tampered_noise;
pub mod tampered_picked;
pub mod tampered_probed;
pub mod tampered_promotions;
pub mod tampered_prompts;
pub mod tampered_releases;
pub mod tampered_repairs;
pub mod tampered_retold;
pub mod tampered_rows;
pub mod tampered_runs;
pub mod tampered_scales;
pub mod tampered_scored;
pub mod tampered_seen;
pub mod tampered_sequences;
pub mod tampered_stopped;
pub mod tampered_synths;
pub mod tampered_table;
pub mod tampered_tainted;
pub mod tampered_undone;
pub mod tuned;
pub mod valued;
pub mod verifiers;

use std::path::PathBuf;
use std::sync::Arc;

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::ExperimentId;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::Verdict;
use clover::event::payload::custody::KeyAdded;
use clover::event::payload::custody::Separation;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::judge::ScoreRecorded;
use clover::ground::ambient::Ambient;
use clover::ground::ambient::Clock;
use clover::ground::ambient::FixedClock;
use clover::ground::ambient::SeededEntropy;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::AppendedEvent;
use clover::ledger::Command;
use clover::ledger::CreateLedger;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;
use clover::ledger::rulebooks;
use clover::ledger::rules;
use clover::ledger::verify;
use clover::ledger::verify::Report;
use clover::ledger::verify::VerifyOptions;
use clover::num::Count;
use clover::num::Micro;
use clover::store::CreateOptions;
use clover::store::OpenOptions;
use clover::workflow::RULEBOOK;

/// Origin of every test ledger.
pub const ORIGIN: &str = "ledger.example/test";
/// The experiment that [`TestLedger::with_experiment`] registers.
pub const EXPERIMENT: &str = "exp-1";

pub fn start() -> Timestamp {
    Timestamp::parse("2026-11-20T10:00:00.000000Z").unwrap()
}

/// The signer whose seed is 32 times `byte`.
pub fn signer(byte: u8) -> Signer {
    Signer::from_seed(&[byte; 32])
}

pub struct TestLedger {
    pub folder: tempfile::TempDir,
    pub ledger: Ledger,
    pub ambient: Arc<Ambient>,
    pub clock: Arc<FixedClock>,
    pub owner: Signer,
    /// Byte of the log key's seed.
    pub log_key: u8,
}

/// A clock that the test keeps a hand on.
struct SharedClock(Arc<FixedClock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Fixed entropy, and a clock that moves by a millisecond at each reading.
pub fn ambient(at: Timestamp) -> Arc<Ambient> {
    ambient_of(Arc::new(FixedClock::new(at, 1_000)))
}

/// Fixed entropy and this clock.
pub fn ambient_of(clock: Arc<FixedClock>) -> Arc<Ambient> {
    let entropy = SeededEntropy::new([7; 32]);
    Arc::new(Ambient::new(
        Box::new(SharedClock(clock)),
        Box::new(entropy),
    ))
}

/// A fixed clock at [`start`]; a ledger with the system's clock never reads it.
fn clock_at_start() -> Arc<FixedClock> {
    Arc::new(FixedClock::new(start(), 1_000))
}

impl TestLedger {
    /// A solo ledger whose owner holds every role.
    pub fn new() -> Self {
        Self::create(Separation::Solo, &Role::ALL, CreateOptions::default())
    }

    /// As [`TestLedger::new`], with the system's clock and entropy, on a file system in memory where there is
    /// one: for tests of processes, not of disks.
    pub fn real() -> Self {
        let folder = ["/dev/shm", "/tmp"]
            .iter()
            .find_map(|base| tempfile::tempdir_in(base).ok());
        let layout = CreateOptions::default();
        let clock = clock_at_start();
        let ambient = Arc::new(Ambient::system());
        Self::create_in(
            folder.unwrap(),
            (clock, ambient),
            Separation::Solo,
            &Role::ALL,
            layout,
        )
    }

    pub fn create(separation: Separation, roles: &[Role], layout: CreateOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = clock_at_start();
        let ambient = ambient_of(clock.clone());
        Self::create_in(folder, (clock, ambient), separation, roles, layout)
    }

    /// As [`TestLedger::new`], of a ledger that names no rulebook.
    pub fn unnamed(layout: CreateOptions) -> Self {
        Self::create_unnamed(Separation::Solo, &Role::ALL, layout)
    }

    /// As [`TestLedger::create`], of a ledger that names no rulebook.
    pub fn create_unnamed(separation: Separation, roles: &[Role], layout: CreateOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = clock_at_start();
        let outside = (clock.clone(), ambient_of(clock));
        Self::create_under(
            rulebooks::UNNAMED,
            folder,
            outside,
            separation,
            roles,
            layout,
        )
    }

    /// Takes over a ledger that was opened elsewhere.
    pub fn around(folder: tempfile::TempDir, ledger: Ledger) -> Self {
        Self {
            folder,
            ambient: ledger.ambient().clone(),
            clock: clock_at_start(),
            log_key: 2,
            ledger,
            owner: signer(1),
        }
    }

    fn create_in(
        folder: tempfile::TempDir,
        outside: (Arc<FixedClock>, Arc<Ambient>),
        separation: Separation,
        roles: &[Role],
        layout: CreateOptions,
    ) -> Self {
        Self::create_under(
            rulebooks::NEWEST,
            folder,
            outside,
            separation,
            roles,
            layout,
        )
    }

    fn create_under(
        rulebook: u32,
        folder: tempfile::TempDir,
        (clock, ambient): (Arc<FixedClock>, Arc<Ambient>),
        separation: Separation,
        roles: &[Role],
        layout: CreateOptions,
    ) -> Self {
        let owner = signer(1);
        let create = CreateLedger {
            origin: ORIGIN.parse().unwrap(),
            holder: "Ada".parse().unwrap(),
            human: true,
            roles: Roles::new(roles.iter().copied()).unwrap(),
            separation,
            rulebook,
            owner: &owner,
            layout,
        };
        let path = folder.path().join("ledger.db");
        let options = options(&folder.path().join("pins"));
        let ledger = Ledger::create(&path, create, ambient.clone(), &RULEBOOK, options).unwrap();
        Self {
            folder,
            ledger,
            ambient,
            clock,
            owner,
            log_key: 2,
        }
    }

    /// As [`TestLedger::new`], with an open experiment.
    pub fn with_experiment() -> Self {
        let mut test = Self::new();
        test.register(EXPERIMENT);
        test
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.db")
    }

    pub fn append(&mut self, commands: &[Command]) -> Result<Vec<AppendedEvent>, LedgerError> {
        self.ledger.append(commands, &self.owner)
    }

    pub fn register(&mut self, id: &str) {
        let payload = ExperimentRegistered {
            judges: None,
            policies: None,
            purpose: text("to test"),
            title: text("a test"),
        };
        self.append(&[Command::new(payload, Some(id.parse().unwrap()))])
            .unwrap();
    }

    /// Adds a key with these roles.
    pub fn add_key(
        &mut self,
        signer: &Signer,
        holder: &str,
        roles: &[Role],
    ) -> Result<Vec<AppendedEvent>, LedgerError> {
        let payload = key_added(signer, holder, roles);
        self.append(&[Command::new(payload, None)])
    }

    /// Closes and opens the ledger again.
    pub fn reopen(self) -> Result<Self, LedgerError> {
        let Self {
            folder,
            ledger,
            ambient,
            clock,
            owner,
            log_key,
        } = self;
        drop(ledger);
        let path = folder.path().join("ledger.db");
        let mut options = options(&folder.path().join("pins"));
        options.log_key = Some(signer(log_key));
        let ledger = Ledger::open(&path, ambient.clone(), &RULEBOOK, options)?;
        Ok(Self {
            folder,
            ledger,
            ambient,
            clock,
            owner,
            log_key,
        })
    }

    pub fn verify(&self, options: &VerifyOptions) -> Report {
        verify::verify_store(
            self.ledger.store(),
            options,
            &RULEBOOK,
            &self.ambient,
            &mut |_, _| {},
        )
        .unwrap()
    }

    /// Verifies everything against the pin; the ledger must be perfect.
    pub fn check_all(&self) -> Report {
        let pinned = self.ledger.pin().unwrap().load().unwrap().unwrap();
        let against = vec![("the pin".to_owned(), pinned)];
        let report = self.verify(&VerifyOptions {
            against,
            ..VerifyOptions::default()
        });
        assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.findings);
        assert_eq!(report.root, self.ledger.root());
        report
    }
}

pub fn options(pins: &std::path::Path) -> LedgerOptions {
    LedgerOptions {
        store: OpenOptions::default(),
        log_key: Some(signer(2)),
        pins: Some(pins.to_owned()),
    }
}

pub fn key_added(signer: &Signer, holder: &str, roles: &[Role]) -> KeyAdded {
    KeyAdded {
        holder: holder.parse().unwrap(),
        human: true,
        key_id: signer.id(),
        proof: Some(Base64Bytes(
            signer.sign(&rules::possession_message(ORIGIN, signer.id())),
        )),
        public_key: Base64Bytes(signer.public_bytes()),
        roles: Roles::new(roles.iter().copied()).unwrap(),
        seal_recipient: None,
    }
}

pub fn text(text: &str) -> clover::event::id::Text {
    clover::event::id::Text::new(text).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "as a command takes it")]
pub fn experiment() -> Option<ExperimentId> {
    Some(EXPERIMENT.parse().unwrap())
}

/// The score of item `n`.
pub fn score(n: u64) -> Command {
    let payload = ScoreRecorded {
        call: None,
        draw: Count::new(0).unwrap(),
        item: format!("item-{n}").parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "base".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: Micro::new(i64::try_from(n % 1000).unwrap() * 1_000).unwrap(),
    };
    Command::new(Payload::from(payload), experiment())
}

/// A build that passed the one file it was given.
pub fn qualification() -> clover::event::payload::record::QualificationRecorded {
    let count = |value| Count::new(value).unwrap();
    let file = clover::event::payload::record::QualifiedFile {
        cases: count(12),
        digest: clover::ground::digest::Digest::sha256(b"isotonic.json"),
        failed: count(0),
        name: text("bundled/isotonic.json"),
        not_run: count(0),
    };
    clover::event::payload::record::QualificationRecorded {
        build: text("clover 0.1.0"),
        files: vec![file],
        platform: text("x86_64 linux"),
        verdict: Verdict::Pass,
    }
}
