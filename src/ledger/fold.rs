//! What the floors above give to the ledger: folds, row models, rules, and the value that lists them.

use std::any::Any;
use std::fmt;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_store::RowChange;

use crate::error::LedgerError;
use crate::history::EarlierLog;
use crate::history::History;
use crate::rule_names::RuleName;

/// An event that stands, or is about to stand, at a position of the log.
#[derive(Clone, Copy, Debug)]
pub struct ProposedEvent<'a> {
    /// Position.
    pub seq: u64,
    /// When the ledger took it in. Every rule about time reads this, never the author's `at`.
    pub recorded_at: Timestamp,
    /// The event.
    pub event: &'a Event,
}

/// An event that was checked: strictly verified and judged by the rules, or read from a tree whose root this
/// process matched with a signed checkpoint. Only the ledger makes one.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedEvent<'a>(ProposedEvent<'a>);

impl<'a> VerifiedEvent<'a> {
    pub(super) fn new(candidate: ProposedEvent<'a>) -> Self {
        Self(candidate)
    }

    /// Position.
    pub fn seq(&self) -> u64 {
        self.0.seq
    }

    /// When the ledger took it in.
    pub fn recorded_at(&self) -> Timestamp {
        self.0.recorded_at
    }

    /// The event.
    pub fn event(&self) -> &'a Event {
        self.0.event
    }
}

/// A broken precondition: what the rule wanted and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: RuleName,
    /// What would be accepted.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Breach {
    /// A breach of `rule`.
    pub fn new(rule: RuleName, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            rule,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// What one question of a rule wanted and what stands there; the caller says which rule asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What would be accepted.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// The answer to one question of a rule. A question that does not apply to an event passes by a named predicate; a fact that
/// cannot be found is unmet.
pub type RuleAnswer = Result<(), Unmet>;

/// The answer no, as the last word of a question.
///
/// # Errors
/// Always: what was expected and what was found.
pub fn unmet(expected: impl Into<String>, found: impl Into<String>) -> RuleAnswer {
    let (expected, found) = (expected.into(), found.into());
    Err(Unmet { expected, found })
}

/// Goes on where a condition holds; else the question is answered with what was expected and what was found.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $expected:expr, $found:expr $(,)?) => {{
        // A comparison with what is no number does not hold.
        let holds: bool = $condition;
        if !holds {
            return $crate::unmet($expected, $found);
        }
    }};
}

/// A fact that a question cannot do without.
pub trait RequiredFact<T> {
    /// The fact.
    ///
    /// # Errors
    /// [`Unmet`] where there is none: `expected` was asked for, and none was found.
    fn required(self, expected: &str) -> Result<T, Unmet>;
}

impl<T> RequiredFact<T> for Option<T> {
    fn required(self, expected: &str) -> Result<T, Unmet> {
        self.ok_or_else(|| Unmet {
            expected: expected.to_owned(),
            found: "none".to_owned(),
        })
    }
}

/// Where rules put what is broken.
pub trait Breaches {
    /// Takes the answer to a question of `rule`.
    fn take(&mut self, rule: RuleName, checked: RuleAnswer);
}

impl Breaches for Vec<Breach> {
    fn take(&mut self, rule: RuleName, checked: RuleAnswer) {
        if let Err(Unmet { expected, found }) = checked {
            self.push(Breach::new(rule, expected, found));
        }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected {}, found {}",
            self.rule, self.expected, self.found
        )
    }
}

/// What an event adds to, or demands of, the set of digests that entries before it gave. Exact over the
/// whole history: at append by index look-up, in `verify` by an external sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The id of this entry's event: what a reference must name. Every other digest that an entry gives
    /// is public too, and naming one of those is no reference.
    Id {
        /// SHA-256 of the body.
        digest: Digest,
        /// The number that the event recorded, as [`said`] writes it; 0 where it recorded none.
        said: u64,
    },
    /// The event of this id recorded this number. Whether there is one is another fact's.
    Recorded {
        /// The event's id.
        digest: Digest,
        /// The rule that demands it.
        rule: RuleName,
        /// The number, as [`said`] writes it.
        said: u64,
    },
    /// From this entry on, `digest` is known.
    Gives {
        /// The digest.
        digest: Digest,
        /// The rule that forbids a second giver, if any.
        once: Option<RuleName>,
    },
    /// `digest` must have been given by an entry below `before`.
    Needs {
        /// The digest.
        digest: Digest,
        /// Exclusive bound on the giver's position.
        before: u64,
        /// The rule that demands it.
        rule: RuleName,
    },
    /// No entry before this one may have given `digest`.
    Forbids {
        /// The digest.
        digest: Digest,
        /// The rule that forbids it.
        rule: RuleName,
    },
    /// No entry below `before` may have given `digest`; those from there on may.
    ForbidsBelow {
        /// The digest.
        digest: Digest,
        /// Exclusive bound on a giver's position.
        before: u64,
        /// The rule that forbids it.
        rule: RuleName,
    },
    /// This entry, which gives `digest`, says `value`. Not kept in the index: an append reads the entry itself.
    Says {
        /// The digest.
        digest: Digest,
        /// What it says.
        value: i64,
    },
    /// If an entry before this one gave `digest`, the first that did says `value`.
    Agrees {
        /// The digest.
        digest: Digest,
        /// What it must say.
        value: i64,
        /// The rule that demands it.
        rule: RuleName,
    },
    /// The entry that gave `digest` stands at or above `after`, before this one, and says `value`.
    Reads {
        /// The digest.
        digest: Digest,
        /// What it must say.
        value: i64,
        /// Inclusive bound on its position.
        after: u64,
        /// The rule that demands it.
        rule: RuleName,
    },
}

/// A recorded number in millionths as a fact carries it; never 0.
pub fn said(micro: i64) -> u64 {
    const OFFSET: i64 = 1 << 62;
    u64::try_from(micro.saturating_add(OFFSET)).unwrap_or(1)
}

/// Governance state, folded in memory from recorded facts. Total: it never fails and never computes.
pub trait Fold: Any + Send + Sync {
    /// Takes in an event of a kind in the entry's `reads`.
    fn apply(&mut self, event: &VerifiedEvent<'_>);
    /// Canonical bytes of the state.
    fn snapshot(&self) -> Vec<u8>;
    /// Replaces the state by a snapshot's. False when the bytes are not one.
    fn restore(&mut self, bytes: &[u8]) -> bool;
}

/// Canonical bytes of a fold's state, for [`Fold::snapshot`].
///
/// # Panics
/// If the state has no canonical form: folds hold ids, texts, counts and digests, which have one.
pub fn snapshot_of<T: serde::Serialize>(state: &T) -> Vec<u8> {
    canon::to_bytes(state).expect("BUG: a fold's state has a canonical form")
}

/// Replaces a fold's state by that of a snapshot, for [`Fold::restore`]. False when the bytes are not one.
pub fn restore_from<T: serde::de::DeserializeOwned>(state: &mut T, bytes: &[u8]) -> bool {
    match serde_json::from_slice(bytes) {
        Ok(found) => {
            *state = found;
            true
        }
        Err(_) => false,
    }
}

/// A fold's line in a rulebook.
#[derive(Clone, Copy)]
pub struct FoldEntry {
    /// Its name, under which snapshots are kept.
    pub name: &'static str,
    /// Kinds it takes in.
    pub reads: &'static [Kind],
    /// Its empty state.
    pub make: fn() -> Box<dyn Fold>,
}

/// Turns events into rows of plain tables; pure.
pub trait RowModel: Sync {
    /// Kinds it reads.
    fn reads(&self) -> &'static [Kind];
    /// Gives the rows that `event` adds.
    fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>));
}

/// A precondition as a pure function of (state before, event): it refuses an append and checks again history.
pub trait Rule: Sync {
    /// Checks one event against the state before it; pushes what is broken.
    fn check(&self, state: &super::State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let _ = (state, event, breaches);
    }
    /// What the event gives to and needs from the digests of earlier entries.
    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let _ = (event, facts);
    }
    /// What the event needs or must not find among the digests of earlier entries, where that depends on
    /// the state before it, and what it says to those that read it. Never gives.
    fn requires(&self, state: &super::State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let _ = (state, event, facts);
    }
    /// Kinds of which [`Rule::is_unsaid`] can tell something.
    fn tells(&self) -> &'static [Kind] {
        &[]
    }
    /// Whether the state alone shows that nothing is recorded under the natural key of what is about to be said: then nobody
    /// looks for it.
    fn is_unsaid(&self, state: &super::State, payload: &Payload) -> bool {
        let _ = (state, payload);
        false
    }
    /// Whether checking history by it takes long: `verify` then asks it only under `--recompute`. An append
    /// always asks.
    fn is_costly(&self) -> bool {
        false
    }
}

/// Computes again what events of some kinds say, over the appends of one process or one walk; keeps what computations
/// share, as long as it grows with the log alone.
pub trait Recompute: Send {
    /// Checks one event that no rule has anything against.
    ///
    /// # Errors
    /// [`LedgerError`] when earlier entries cannot be read.
    fn check(
        &mut self,
        state: &super::State,
        event: &ProposedEvent<'_>,
        history: &dyn History,
        breaches: &mut Vec<Breach>,
    ) -> Result<AtHand, LedgerError>;
}

/// Whether what an event was computed from is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtHand {
    /// It is, and was checked.
    Yes,
    /// It is not: nobody here can say. An append goes on, since whoever holds private texts can tell.
    Private,
    /// It never was: nobody recorded it, and nobody will be able to say.
    Unrecorded,
    /// It is not, and why: an append does not go on without it.
    Gone(String),
}

/// A line of a rulebook for kinds that are computed again from earlier entries: at append always, in `verify` under
/// `--recompute`.
#[derive(Clone, Copy)]
pub struct Again {
    /// Kinds that it judges.
    pub kinds: &'static [Kind],
    /// Kinds that it reads again.
    pub reads: &'static [Kind],
    /// Kinds after which a checkpoint is drawn: of any kind is the first event that has seen beyond one of these.
    pub draws: &'static [Kind],
    /// One for the appends of a process, or a walk.
    pub make: fn() -> Box<dyn Recompute>,
}

/// Those of a rulebook in use over the appends of one process, or one walk.
#[derive(Default)]
pub(super) struct RuleComputation(Vec<Option<Box<dyn Recompute>>>);

impl RuleComputation {
    /// Asks whoever computes events of this kind again; the first that lacks something says so.
    pub(super) fn check<'h>(
        &mut self,
        state: &super::State,
        event: &ProposedEvent<'_>,
        history: impl Fn() -> EarlierLog<'h>,
        breaches: &mut Vec<Breach>,
    ) -> Result<AtHand, LedgerError> {
        let lines = state.rulebook().again;
        self.0.resize_with(lines.len(), || None);
        let mut at_hand = AtHand::Yes;
        for (line, made) in lines.iter().zip(&mut self.0) {
            if breaches.is_empty() && line.kinds.contains(&event.event.kind()) {
                let one = made.get_or_insert_with(line.make);
                let found = one.check(state, event, &history(), breaches)?;
                if at_hand == AtHand::Yes {
                    at_hand = found;
                }
            }
        }
        Ok(at_hand)
    }
}

impl fmt::Debug for RuleComputation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Computing({} lines)", self.0.len())
    }
}

/// Everything that judges and folds beyond the ledger's own custody.
pub struct Rulebook {
    /// Raised whenever a fold's state or a rule changes; snapshots of other versions are never read.
    pub version: u32,
    /// The first version that asked what the newest rulebook asks. A ledger that is judged by it has no older snapshots.
    pub newest_since: u32,
    /// Folds.
    pub folds: &'static [FoldEntry],
    /// Row models.
    pub row_models: &'static [&'static dyn RowModel],
    /// Rules over recorded facts, in the order of their judgement.
    pub rules: &'static [&'static dyn Rule],
    /// Rules that compute again what an arbiter said, asked after the others.
    pub recompute: &'static [&'static dyn Rule],
    /// What computes events again from the entries before them, asked last.
    pub again: &'static [Again],
    /// What may not be the end of an append: the entry that asks for another one in the same append, and for which.
    pub unfinished: fn(&super::State) -> Option<(u64, Breach)>,
    /// What `verify` says beside its verdict of the state at the end: no finding, and worth knowing.
    pub notes: fn(&super::State, &mut Vec<String>),
}

impl Rulebook {
    /// Every rule, in the order of judgement.
    pub fn every_rule(&self) -> impl Iterator<Item = &'static dyn Rule> {
        self.rules.iter().chain(self.recompute).copied()
    }

    /// Gives the rows that an event adds to the read models.
    pub fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>)) {
        let kind = event.event().kind();
        for model in self.row_models {
            if model.reads().contains(&kind) {
                model.rows(event, take);
            }
        }
    }
}

impl fmt::Debug for Rulebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rulebook v{}", self.version)
    }
}
