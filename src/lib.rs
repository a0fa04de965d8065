//! Clover: an event-sourced experiment ledger for governing LLM judges.
//!
//! # The map
//!
//! Floors; calls go down, results come up. All but [`view`] and [`cli`] are crates of their own: their manifests say
//! what they may name, and the compiler holds it. A test holds these two.
//!
//! | floor | module | what it is |
//! |---|---|---|
//! | 0 | [`num`] | exact millionths, bounded counts, finite doubles, the one door to `libm` |
//! | 1 | [`ground`] | bytes without domain words: canonical JSON, digests, trees, notes, signatures, seals, and the one door to the world |
//! | 1 | [`attack`] | deterministic text edits that seek reward without merit, and the search for the worst (pure) |
//! | 1 | [`stats`] | a pure island: calibrators, inference, audits; it names only [`num`] |
//! | 1 | [`prompt`] | judge prompts in sections, their patches, the rules of a step, leak windows; pure |
//! | 1 | [`rubric`] | rubric and patch grammar, evidence record, engine, code length; pure |
//! | 1 | [`flow`] | workflows of model calls: their language, interpreter, verifier, edits and the search among them; pure |
//! | 2 | [`event`] | what can be said: ids, headers, the closed registry of kinds, typed payloads |
//! | 3 | [`store`] | the ledger file; the only place that names `SQLite` |
//! | 4 | [`ledger`] | the only writer: rules, append, checkpoints, pins, reads, verification |
//! | 5 | [`projection`] | folds, row models and rules over recorded facts |
//! | 6 | [`workflow`] | governed steps over all of the above, without files or terminal |
//! | 7 | [`model`] | models behind HTTP: the desk that sends asks, dialects, and a double of an endpoint |
//! | 7 | [`qualify`] | this build against numbers of respected implementations, slips of theirs included |
//! | 8 | [`session`] | use cases: each takes a ledger, keys and consent, appends, and answers with a typed outcome |
//! | 8 | [`report`] | drawings, and the reports of iterations |
//! | 8 | [`view`] | what a verb answers, once: typed facts, and blocks that text, Markdown and HTML render |
//! | 8 | [`export`] | what leaves the ledger |
//! | 9 | [`cli`] | the command line: wording, hints, exit codes |
//!
//! # A ledger in a few lines
//!
//! ```
//! use std::sync::Arc;
//! use clover::event::payload::{Role, Roles, Verdict, custody::Separation, record::NoteRecorded};
//! use clover::ground::{ambient::Ambient, sign::Signer};
//! use clover::ledger::{Command, CreateLedger, Ledger, LedgerOptions, verify};
//! use clover::workflow::RULEBOOK;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let ambient = Arc::new(Ambient::system());
//! let owner = Signer::from_seed(&ambient.random()?);
//! let create = CreateLedger {
//!     origin: "example.org/lab".parse()?,
//!     holder: "Ada".parse()?,
//!     human: true,
//!     roles: Roles::new([Role::Owner]).ok_or("no roles")?,
//!     separation: Separation::Solo,
//!     rulebook: clover::ledger::rulebooks::NEWEST,
//!     owner: &owner,
//!     layout: clover::store::CreateOptions::default(),
//! };
//! let options = LedgerOptions {
//!     store: clover::store::OpenOptions::default(),
//!     log_key: Some(Signer::from_seed(&ambient.random()?)),
//!     pins: Some(folder.path().join("pins")),
//! };
//! let path = folder.path().join("ledger.db");
//! let mut ledger = Ledger::create(&path, create, ambient.clone(), &RULEBOOK, options)?;
//!
//! let text = clover::event::id::Text::new("first light").ok_or("too long")?;
//! let note = Command::new(NoteRecorded { blob: None, text }, None);
//! let appended = ledger.append(&[note], &owner)?;
//! assert_eq!(appended[0].seq, 1);
//!
//! let options = verify::VerifyOptions::default();
//! let report = verify::verify_store(ledger.store(), &options, &RULEBOOK, &ambient, &mut |_, _| {})?;
//! assert_eq!(report.verdict, Verdict::Pass);
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! * Sign bytes, store those bytes, verify before parsing. Nothing re-serialises to verify.
//! * The tree is the only integrity structure. Everything else in the file is compared with it.
//! * A rule is a pure function of (state before, event); the same functions refuse an append
//!   and re-judge history.
//! * A fold never fails, never computes, and accepts only
//!   [`VerifiedEvent`](ledger::VerifiedEvent)s, which only the ledger makes.
//! * No module but `ground::ambient` reads a clock, draws entropy, or opens a file; `SQLite` opens
//!   its own.
//! * A refused or failed operation leaves the ledger as it was.
//!
//! # The walk of one score
//!
//! 1. The command line decodes the data into [`ScoreRecorded`](event::payload::judge::ScoreRecorded):
//!    from here on nothing is a string that could be something else.
//! 2. [`Ledger::append`](ledger::Ledger::append) takes the write lock (`BEGIN IMMEDIATE`), folds
//!    what other processes appended, and looks up the natural key: the same score with the same
//!    data answers with its old seq.
//! 3. The event gets the author's next number and the checkpoint that was seen; its body is
//!    written once in canonical form and signed over its DSSE encoding.
//! 4. Custody and the rulebook judge it; a breach names the rule, what was expected and what was
//!    found.
//! 5. Entry, read-model row, completed tiles and one signed checkpoint are inserted and committed
//!    together; then the pin moves forward.
//! 6. [`verify_store`](ledger::verify::verify_store) walks the same entries years later, asks the
//!    same rules, and compares every row, tile, digest and snapshot with what they must be.
//!
//! # The walk of a gate observation
//!
//! 1. The command line parses `gate observe` and calls [`Observer::observe`](session::gate::Observer::observe) with its
//!    [`Ports`](session::Ports).
//! 2. The use case refuses a gate that is stale, waits or has ended, and reads the order of its units.
//! 3. [`gates::replay`](workflow::gates::replay) computes the gate's evidence again from the log and compares it with the
//!    snapshot: nothing is added to a number that does not follow from the log.
//! 4. [`ObservationCourse`](workflow::gates::observe::ObservationCourse) reads the scores of the next units and turns
//!    each unit into one `gate.observed`.
//! 5. [`Ledger::append_read`](ledger::Ledger::append_read) appends them, with the values that were read.
//! 6. The rules of [`projection::gates`] hold each observation against order, exposure, scores and test.
//! 7. The fold adds the unit's evidence; where a look is due, [`gates::steps`](workflow::gates::steps) says it and the use
//!    case appends it.
//! 8. The use case answers with a typed outcome, and the command line words it.
//!
//! # The walk of an accepted patch
//!
//! 1. Whoever proposes calls [`propose`](session::iterate::propose::propose); twelve checks of [`rubric`] pass, and
//!    `patch.proposed` holds the document and its hash.
//! 2. [`steps::advance`](session::iterate::steps::advance) reads from the [`Bench`](session::iterate::Bench) which step is
//!    due, and takes it.
//! 3. *gate*: [`Course`](workflow::iterate::course::Course) computes criteria P0 to P10 on dev; each is a `gate.evaluated`.
//! 4. *seal*: what passed becomes `candidates.sealed`, which names every hypothesis before a confirm label is open.
//! 5. *confirm*: the custodian's port gives a key, the peek is charged, labels are revealed, and the criteria are computed
//!    on confirm.
//! 6. *accept*: [`outcome`](workflow::iterate::outcome) says the patches that hold together; each is a `patch.accepted`.
//! 7. The rules of [`projection::iterations`] ask for every gate, review and second key before the ledger takes it.
//! 8. *close*: the rest is rejected with reasons, and `iteration.closed` says how it ended.
//! 9. [`workflow::recompute`] computes every one of these decisions again, years later.

pub use clover_attack as attack;
pub use clover_event as event;
pub use clover_export as export;
pub use clover_flow as flow;
pub use clover_ground as ground;
pub use clover_ledger as ledger;
pub use clover_model as model;
pub use clover_num as num;
pub use clover_projection as projection;
pub use clover_prompt as prompt;
pub use clover_qualify as qualify;
pub use clover_report as report;
pub use clover_rubric as rubric;
pub use clover_session as session;
pub use clover_stats as stats;
pub use clover_store as store;
pub use clover_workflow as workflow;

pub mod cli;
pub mod view;
