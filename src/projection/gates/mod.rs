//! Gates: what was observed of the units so far, every look's findings, and how each gate ended.
//!
//! The fold keeps integers that were recorded, and digests over them; what they are worth is computed elsewhere and
//! compared. The differences of a gate are let go once it is decided.

mod claims;
mod early;
mod elsewhere;
pub mod estimated;
mod grade;
mod observed;
mod rules;
pub mod sampled;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use claims::evidence;
pub use claims::favours;
pub use claims::is_of_its_units;
pub use elsewhere::tests_of;
pub use grade::graded;
pub use grade::is_late;
pub use grade::is_order_known;
pub use grade::least;
pub use observed::absent;
pub use observed::delta;
pub use observed::missing_value;
pub use observed::scale;
pub use observed::slack;
pub use observed::value_key;
pub use observed::values;
pub use rules::GateRules;
pub use rules::may_open;
pub use rules::testable;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::id::StratumId;
use clover_event::payload::decision::EvidenceClass;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::decision::Grade;
use clover_event::payload::decision::LogWealth;
use clover_event::payload::decision::Outcome;
use clover_event::payload::decision::Standing;
use clover_event::payload::gate::GateObserved;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::gate::GateSource;
use clover_event::payload::manifest::BettorName;
use clover_event::payload::manifest::Test;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::FamilyClosed,
    Kind::GateContinued,
    Kind::GateDecided,
    Kind::GateEstimated,
    Kind::GateLooked,
    Kind::GateObserved,
    Kind::GateOpened,
    Kind::LabelRevealed,
    Kind::PromotionIssued,
    Kind::PromotionRevoked,
    Kind::ScoreRecorded,
];
/// Domain label of the chained digest of a gate's observations.
pub const STATE_LABEL: &str = "clover/gate-state/v1";

/// Differences of one metric: how often each was observed, and in which order where that matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Each difference, ascending, with the number of units that had it.
    pub levels: Vec<(i64, u64)>,
    /// All of them in order; empty where wealth does not depend on it.
    pub sequence: Vec<i64>,
}

impl Stream {
    fn push(&mut self, delta: i64, ordered: bool) {
        match self
            .levels
            .binary_search_by_key(&delta, |(level, _)| *level)
        {
            Ok(at) => self.levels[at].1 += 1,
            Err(at) => self.levels.insert(at, (delta, 1)),
        }
        if ordered {
            self.sequence.push(delta);
        }
    }
}

/// The last look at a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// Highest mean improvement not excluded, in millionths.
    pub cs_hi: i64,
    /// Lowest mean improvement not excluded, in millionths.
    pub cs_lo: i64,
    /// Wealth of each guardrail.
    pub guardrails: Vec<Finite>,
    /// Evidence for the claim.
    pub log_e: Finite,
    /// Wealth of each test.
    pub log_wealth: LogWealth,
    /// Units observed.
    pub n: u64,
    /// Always-valid p value.
    pub p: Probability,
    /// The entry.
    pub seq: u64,
    /// Where the gate stood.
    pub standing: Standing,
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateDecision {
    /// On what it rests.
    pub class: EvidenceClass,
    /// Units observed.
    pub n: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The entry.
    pub seq: u64,
}

/// An estimate beside a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateEstimate {
    /// Error rate, in millionths.
    pub alpha: i64,
    /// On what it rests.
    pub class: EvidenceClass,
    /// Upper end for the mean improvement, in millionths.
    pub cs_hi: i64,
    /// Lower end for the mean improvement, in millionths.
    pub cs_lo: i64,
    /// Its grade when it was recorded.
    pub grade: Grade,
    /// Units labelled.
    pub labels: u64,
    /// Units read.
    pub n: u64,
    /// The entry.
    pub seq: u64,
    /// Whether the interval lies where the claim says.
    pub shows: bool,
}

impl GateEstimate {
    fn new(seq: u64, said: &GateEstimated) -> Self {
        Self {
            alpha: said.alpha_micro.value(),
            class: said.class,
            cs_hi: said.cs_hi_micro.value(),
            cs_lo: said.cs_lo_micro.value(),
            grade: said.grade,
            labels: said.labels.value(),
            n: said.n.value(),
            seq,
            shows: said.shows,
        }
    }
}

/// One gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Units with missing draws of the main metric: which in its sequence, from 1, 0 where that is not kept; its difference; and
    /// how many draws of both arms. Empty once it is decided.
    pub absent: Vec<(u64, i64, u64)>,
    /// Wealth that it started with.
    pub carried: Option<LogWealth>,
    /// The gate that goes on from it.
    pub child: Option<ManifestId>,
    /// How it ended.
    pub decided: Option<GateDecision>,
    /// The last estimate beside it, which has no part in how it ended.
    pub estimated: Option<GateEstimate>,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// The entry of its first look.
    pub first_look_seq: Option<u64>,
    /// The last look.
    pub look: Option<Look>,
    /// Looks so far.
    pub looks: u64,
    /// Units observed.
    pub n: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// The gate that it goes on from.
    pub parent: Option<ManifestId>,
    /// Where its values come from.
    pub sources: Vec<GateSource>,
    /// Digest of its observations, chained.
    pub state_digest: Digest,
    /// Stratum of each observation, by its place in the control variate; empty without one, and once it is decided.
    pub strata: Vec<usize>,
    /// Differences of each source; empty once it is decided.
    pub streams: Vec<Stream>,
    /// The test as it was when it was opened.
    pub test: Test,
}

impl Gate {
    fn open(seq: u64, experiment: Option<&ExperimentId>, opened: &GateOpened) -> Self {
        Self {
            absent: Vec::new(),
            carried: None,
            child: None,
            decided: None,
            estimated: None,
            experiment: experiment.cloned(),
            first_look_seq: None,
            look: None,
            looks: 0,
            n: 0,
            opened_seq: seq,
            parent: None,
            sources: opened.sources.clone(),
            state_digest: state_of_none(experiment, &opened.gate),
            strata: Vec::new(),
            streams: vec![Stream::default(); opened.sources.len()],
            test: opened.test.clone(),
        }
    }

    /// Whether wealth depends on the order of the observations.
    pub fn is_ordered(&self) -> bool {
        self.test.without_replacement || self.test.bettor.name != BettorName::GridKelly
    }

    /// Whether nothing more may be observed: it is decided, or the last look ended it.
    pub fn is_terminal(&self) -> bool {
        let ended = |look: &Look| outcome_of(look.standing).is_some();
        self.decided.is_some() || self.look.as_ref().is_some_and(ended)
    }

    /// Whether units were observed after its last look.
    pub fn is_unlooked(&self) -> bool {
        self.n > self.look.as_ref().map_or(0, |look| look.n)
    }

    /// The evidence at the last look; 0 without one.
    pub fn log_e(&self) -> Finite {
        self.look
            .as_ref()
            .map_or_else(Finite::default, |look| look.log_e)
    }

    /// The place of an observation's stratum in the control variate.
    pub fn stratum_of(&self, said: &GateObserved) -> Option<usize> {
        stratum_place(&self.test, said.stratum.as_ref()?)
    }

    /// Whether its values may come from this event.
    fn reads(&self, experiment: Option<&ExperimentId>, payload: &Payload) -> bool {
        let mut sources = self.sources.iter();
        self.decided.is_none()
            && self.experiment.as_ref() == experiment
            && match payload {
                Payload::ScoreRecorded(said) => {
                    sources.any(|source| source.judge.as_ref() == Some(&said.judge))
                }
                Payload::LabelRevealed(said) => {
                    sources.any(|source| source.design.as_ref() == Some(&said.design))
                }
                _ => false,
            }
    }

    fn observe(&mut self, said: &GateObserved) {
        self.n += 1;
        self.state_digest = state_after(self.state_digest, said);
        self.strata.extend(self.stratum_of(said));
        let ordered = self.is_ordered();
        for (stream, reading) in self.streams.iter_mut().zip(&said.readings) {
            stream.push(reading.delta_micro.value(), ordered);
        }
        if let Some((stream, reading)) = self.streams.first().zip(said.readings.first()) {
            let absent = absent(reading);
            if absent > 0 {
                let place = stream.sequence.len() as u64;
                self.absent
                    .push((place, reading.delta_micro.value(), absent));
            }
        }
    }

    fn looked(&mut self, seq: u64, said: &GateLooked) {
        self.looks += 1;
        self.first_look_seq.get_or_insert(seq);
        self.look = Some(Look {
            cs_hi: said.cs_hi_micro.value(),
            cs_lo: said.cs_lo_micro.value(),
            guardrails: said.guardrails.clone().unwrap_or_default(),
            log_e: said.log_e,
            log_wealth: said.log_wealth,
            n: said.n.value(),
            p: said.p,
            seq,
            standing: said.standing,
        });
    }
}

/// The place of a stratum in a test's control variate.
pub fn stratum_place(test: &Test, stratum: &StratumId) -> Option<usize> {
    let known = test.control_variate.as_ref()?;
    let found = known.binary_search_by_key(&stratum, |one| &one.stratum);
    found.ok()
}

/// The outcome to which a standing leads; `None` while more may be observed.
pub fn outcome_of(standing: Standing) -> Option<Outcome> {
    match standing {
        Standing::Continue | Standing::Leading => None,
        Standing::Different => Some(Outcome::Different),
        Standing::Equivalent => Some(Outcome::Equivalent),
        Standing::Futile => Some(Outcome::Futile),
        Standing::Kill => Some(Outcome::Kill),
        Standing::Noninferior => Some(Outcome::Noninferior),
        Standing::Promote => Some(Outcome::Promote),
        Standing::UndecidedAtNMax => Some(Outcome::UndecidedAtNMax),
    }
}

/// Whether an outcome says that the claim holds.
pub fn holds(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Different | Outcome::Equivalent | Outcome::Noninferior | Outcome::Promote
    )
}

/// The state digest before the first observation.
pub fn state_of_none(experiment: Option<&ExperimentId>, gate: &ManifestId) -> Digest {
    canon::digest(STATE_LABEL, &(experiment, gate))
}

/// The state digest after one more observation.
pub fn state_after(before: Digest, said: &GateObserved) -> Digest {
    let deltas: Vec<_> = said.readings.iter().map(|one| one.delta_micro).collect();
    state_link(before, said.t, &said.unit, &deltas)
}

fn state_link(before: Digest, t: Count, unit: &ItemId, deltas: &[clover_num::Micro]) -> Digest {
    canon::digest(STATE_LABEL, &(before, t, unit, deltas))
}

/// What the procedure of a family said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyClosing {
    /// Members whose claims hold.
    pub rejected: Vec<ManifestId>,
    /// The entry.
    pub seq: u64,
}

/// A promotion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// Its event.
    pub id: EventId,
    /// The gates that it rests on.
    pub gates: Vec<ManifestId>,
    /// The entry that revoked it.
    pub revoked_seq: Option<u64>,
    /// Its entry.
    pub seq: u64,
}

/// Every gate, closed family and promotion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// Gates by name.
    pub by_id: BTreeMap<ManifestId, Gate>,
    /// Families that are closed.
    pub closed: BTreeMap<FamilyId, FamilyClosing>,
    /// Promotions in order.
    pub promotions: Vec<Promotion>,
    /// Keys that signed what a gate rests on, each with the last entry: values that it may read, and what was said of it.
    pub rests: BTreeMap<ManifestId, BTreeMap<KeyId, u64>>,
}

impl Fold for Gates {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        self.take(event.seq(), event.event());
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

impl Gates {
    /// Keeps whose entries gates rest on.
    fn rest(&mut self, seq: u64, event: &Event) {
        let author = event.header.author;
        match event.kind() {
            Kind::GateObserved | Kind::GateLooked | Kind::GateDecided => {
                if let Some(id) = event.payload.gate() {
                    let rests = self.rests.entry(id.clone()).or_default();
                    rests.insert(author, seq);
                }
            }
            Kind::ScoreRecorded | Kind::LabelRevealed => {
                let readers = self.by_id.iter();
                let readers =
                    readers.filter(|(_, gate)| gate.reads(event.experiment(), &event.payload));
                for (id, _) in readers {
                    let rests = self.rests.entry(id.clone()).or_default();
                    rests.insert(author, seq);
                }
            }
            _ => {}
        }
    }

    /// Takes in what an entry says: of a log that is read again, to be compared with what a snapshot held.
    pub fn take(&mut self, seq: u64, event: &Event) {
        self.rest(seq, event);
        match &event.payload {
            Payload::GateOpened(said) => {
                let gate = Gate::open(seq, event.experiment(), said);
                self.by_id.entry(said.gate.clone()).or_insert(gate);
            }
            Payload::GateObserved(said) => {
                if let Some(gate) = self.by_id.get_mut(&said.gate) {
                    gate.observe(said);
                }
            }
            Payload::GateLooked(said) => {
                if let Some(gate) = self.by_id.get_mut(&said.gate) {
                    gate.looked(seq, said);
                }
            }
            Payload::GateDecided(said) => {
                if let Some(gate) = self.by_id.get_mut(&said.gate) {
                    gate.streams.fill(Stream::default());
                    gate.strata.clear();
                    gate.absent.clear();
                    gate.decided.get_or_insert(GateDecision {
                        class: said.class,
                        n: said.n.value(),
                        outcome: said.outcome,
                        seq,
                    });
                }
            }
            Payload::GateEstimated(said) => {
                if let Some(gate) = self.by_id.get_mut(&said.gate) {
                    gate.estimated = Some(GateEstimate::new(seq, said));
                }
            }
            Payload::GateContinued(said) => {
                if let Some(parent) = self.by_id.get_mut(&said.parent) {
                    parent.child.get_or_insert_with(|| said.gate.clone());
                }
                if let Some(gate) = self.by_id.get_mut(&said.gate) {
                    gate.carried = Some(said.carried);
                    gate.parent = Some(said.parent.clone());
                }
            }
            Payload::FamilyClosed(said) => {
                let rejected = said.rejected.clone();
                let closed = FamilyClosing { rejected, seq };
                self.closed.entry(said.family.clone()).or_insert(closed);
            }
            Payload::PromotionIssued(said) => self.promotions.push(Promotion {
                id: event.id,
                gates: said.gates.clone(),
                revoked_seq: None,
                seq,
            }),
            Payload::PromotionRevoked(said) => {
                let mut all = self.promotions.iter_mut();
                if let Some(promotion) = all.find(|one| one.id == said.promotion) {
                    promotion.revoked_seq.get_or_insert(seq);
                }
            }
            _ => {}
        }
    }
}
