//! Gates: their opening, what was observed, looked at and decided, what was promoted, and one gate on one page.

mod charts;
pub mod draft;
pub mod facts;
pub mod list;
pub mod open;
pub mod page;
mod plan;
pub mod simulate;
pub mod steps;
pub mod verdict;

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::id::Root;
use crate::event::payload::decision::EvidenceClass;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::LogWealth;
use crate::event::payload::decision::Outcome;
use crate::event::payload::decision::Standing;
use crate::event::payload::gate::DrawnFrom;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::num::Finite;
use crate::num::Probability;
use crate::projection::drifts;
use crate::projection::gates;
use crate::projection::orders;
use crate::view::Exit;
use crate::view::word;

/// What a gate's last look found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateLook {
    /// Highest mean improvement that no look excludes, in millionths.
    pub cs_hi: i64,
    /// Lowest mean improvement that no look excludes, in millionths.
    pub cs_lo: i64,
    /// Whose evidence decided: `claim`, `kill` or `futile`; `null` where none did. The interval never decides.
    pub decided_by: Option<&'static str>,
    /// Logarithm of the wealth of each guardrail, in the manifest's order.
    pub guardrails: Vec<Finite>,
    /// Logarithm of the evidence for the claim.
    pub log_e: Finite,
    /// Logarithm of the wealth of each test.
    pub log_wealth: LogWealth,
    /// Units observed by then.
    pub n: u64,
    /// Always-valid p value: the least of all looks, from 0 to 1.
    pub p: Probability,
    /// The entry.
    pub seq: u64,
    /// Where the gate stood.
    pub standing: Standing,
}

impl From<&gates::Look> for GateLook {
    fn from(of: &gates::Look) -> Self {
        Self {
            cs_hi: of.cs_hi,
            cs_lo: of.cs_lo,
            decided_by: decider(of.standing),
            guardrails: of.guardrails.clone(),
            log_e: of.log_e,
            log_wealth: of.log_wealth,
            n: of.n,
            p: of.p,
            seq: of.seq,
            standing: of.standing,
        }
    }
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateDecision {
    /// On what the decision rests.
    pub class: EvidenceClass,
    /// Units observed.
    pub n: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The entry.
    pub seq: u64,
}

impl From<gates::GateDecision> for GateDecision {
    fn from(of: gates::GateDecision) -> Self {
        Self {
            class: of.class,
            n: of.n,
            outcome: of.outcome,
            seq: of.seq,
        }
    }
}

/// An estimate beside a decided gate. It decides and promotes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateEstimate {
    /// Error rate of the interval, in millionths.
    pub alpha: i64,
    /// On what it rests: always asymptotic.
    pub class: EvidenceClass,
    /// Upper end for the mean improvement, in millionths.
    pub cs_hi: i64,
    /// Lower end for the mean improvement, in millionths.
    pub cs_lo: i64,
    /// How far it may be trusted, as it was recorded.
    pub grade: Grade,
    /// Units that were labelled.
    pub labels: u64,
    /// Units of the order that were read, from the first.
    pub n: u64,
    /// The entry.
    pub seq: u64,
    /// Whether the interval lies where the claim says.
    pub shows: bool,
}

impl From<gates::GateEstimate> for GateEstimate {
    fn from(of: gates::GateEstimate) -> Self {
        Self {
            alpha: of.alpha,
            class: of.class,
            cs_hi: of.cs_hi,
            cs_lo: of.cs_lo,
            grade: of.grade,
            labels: of.labels,
            n: of.n,
            seq: of.seq,
            shows: of.shows,
        }
    }
}

/// The order in which units are observed, which a checkpoint drew that nobody could choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Order {
    /// The checkpoint.
    pub beacon: DrawnFrom,
    /// Merkle root of the units in the order drawn.
    pub permutation_root: Root,
    /// What units are hashed with.
    pub seed: Digest,
    /// The entry.
    pub seq: u64,
}

impl From<&orders::DrawnOrder> for Order {
    fn from(of: &orders::DrawnOrder) -> Self {
        Self {
            beacon: of.beacon,
            permutation_root: of.permutation_root,
            seed: of.seed,
            seq: of.seq,
        }
    }
}

/// What a standing means for a release, and how a run ends on it.
fn outcome(standing: Standing) -> (&'static str, Exit) {
    match standing {
        Standing::Promote | Standing::Noninferior | Standing::Equivalent => ("ship", Exit::Done),
        // A difference says nothing for the candidate: to ship, the plan claims which way it lies.
        Standing::Different | Standing::Kill | Standing::Futile => ("hold", Exit::Fail),
        Standing::UndecidedAtNMax => ("hold", Exit::Inconclusive),
        Standing::Continue | Standing::Leading => ("need_more_work", Exit::Inconclusive),
    }
}

/// The same of a gate: by its last look, unless it ended otherwise.
pub fn outcome_of(gate: &gates::Gate) -> (&'static str, Exit) {
    let ended = gate.decided.map(|one| one.outcome);
    if matches!(ended, Some(Outcome::Superseded | Outcome::Void)) {
        return ("hold", Exit::Inconclusive);
    }
    let none = ("need_more_work", Exit::Inconclusive);
    gate.look
        .as_ref()
        .map_or(none, |look| outcome(look.standing))
}

/// Where a gate has guardrails: what each part of the least says, by name.
fn weakest(gate: &gates::Gate, look: &gates::Look) -> String {
    if look.guardrails.is_empty() {
        return String::new();
    }
    let claim = gate
        .sources
        .first()
        .map(|source| &source.metric)
        .into_iter();
    let claim = claim.zip(look.log_wealth.claim.map(Finite::value));
    let names = gate.sources.iter().skip(1).map(|source| &source.metric);
    let guardrails = look.guardrails.iter().map(|log_e| log_e.value());
    let parts = claim.chain(names.zip(guardrails));
    let parts = parts.map(|(name, log_e)| format!("{name} {log_e:.4}"));
    let parts: Vec<_> = parts.collect();
    format!(", the least of {}", parts.join(", "))
}

/// Whose evidence allows a standing, as a look judges it: that of the claim first, then of harm, then of futility.
pub(super) fn decider(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::Promote | Standing::Noninferior | Standing::Equivalent | Standing::Different => {
            Some("claim")
        }
        Standing::Kill => Some("kill"),
        Standing::Futile => Some("futile"),
        Standing::Continue | Standing::Leading | Standing::UndecidedAtNMax => None,
    }
}

/// Which number of a look decided, in words; `None` where none did yet.
fn decided_by(look: &gates::Look) -> Option<String> {
    let log = |log: Option<Finite>| log.map_or("-".to_owned(), |log| format!("{:.4}", log.value()));
    let number = match look.standing {
        Standing::Kill => format!("the evidence of harm, log {}", log(look.log_wealth.kill)),
        Standing::Futile => format!(
            "the evidence against the planned effect, log {}",
            log(look.log_wealth.futile)
        ),
        Standing::UndecidedAtNMax => "nothing: no evidence reached its bar".to_owned(),
        standing => {
            decider(standing)?;
            format!("the log e-value, {:.4}", look.log_e.value())
        }
    };
    Some(format!(
        "{number}; the interval of the mean effect stands beside it"
    ))
}

/// An interval in millionths as decimal numbers.
fn effect(lo: i64, hi: i64) -> String {
    if lo > hi {
        return "none fits all looks".to_owned();
    }
    let real = |micro: i64| micro as f64 / 1e6;
    format!("{:+.6} to {:+.6}", real(lo), real(hi))
}

/// An estimate in words, of which none could be taken for a verdict.
fn beside(found: &gates::GateEstimate) -> String {
    let shown = if found.shows { "lies" } else { "does not lie" };
    format!(
        "beside it, asymptotic: effect {} at alpha {} by labels of {} of {} units, seq {}; it {shown} where the claim says, \
         grade {}; it decides and promotes nothing",
        effect(found.cs_lo, found.cs_hi),
        found.alpha as f64 / 1e6,
        found.labels,
        found.n,
        found.seq,
        word(&found.grade),
    )
}

/// A command about a gate.
pub fn command(verb: &str, id: &ManifestId) -> String {
    format!("clover {verb} {}", shell::word(id))
}

/// The command that observes what is exposed.
pub fn observe_all(id: &ManifestId) -> String {
    format!("{} --all", command("gate observe", id))
}

/// The command that says how the drift of a gate's judge is handled.
pub fn deviation(id: &ManifestId) -> String {
    format!(
        "clover prereg deviation {} --rule-path {} --what TEXT --why TEXT --impact TEXT",
        shell::word(id),
        shell::word(&drifts::JUDGE_PATH),
    )
}
