//! Why a step of a gate was not done.

use clover_event::id::FamilyId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::Root;
use clover_event::payload::decision::Standing;
use clover_ledger::Code;
use clover_ledger::LedgerError;
use clover_projection::drifts;
use clover_workflow::gates::design::Untestable;
use clover_workflow::gates::estimate::EstimateError;
use clover_workflow::gates::observe::ObserveError;
use clover_workflow::gates::outcomes::OutcomeError;

use crate::error::SessionError;
use crate::gate::check;

/// Why a step of a gate was not done.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// As many units are exposed already.
    #[error("{units} units of {gate} are exposed already")]
    AlreadyExposed {
        /// The gate.
        gate: ManifestId,
        /// How many.
        units: u64,
    },
    /// The gate has ended.
    #[error("gate {0} has ended ({code})", code = Code::AfterTerminal)]
    Ended(ManifestId),
    /// Nothing is left in the family for another gate.
    #[error("family {0} has no error rate or no place left for another gate")]
    FamilySpent(FamilyId),
    /// Labels say nothing beside the decision.
    #[error("gate {gate}: {error}")]
    Estimate {
        /// The gate.
        gate: ManifestId,
        /// Why not.
        error: EstimateError,
    },
    /// A gate that continues another has not taken over its wealth yet.
    #[error(
        "gate {0} continues another: expected gate.continued before its first observation ({code})",
        code = Code::UnregisteredRule
    )]
    NotContinued(ManifestId),
    /// No promotion can name a candidate.
    #[error("{0} has no candidate in force")]
    NoCandidate(ManifestId),
    /// The manifest binds no confirm set, so that no order can be drawn.
    #[error("{0} binds no confirm data")]
    NoConfirmSet(ManifestId),
    /// Nothing can be exposed.
    #[error("{0} has no version in force that binds confirm data")]
    NoConfirmSetInForce(ManifestId),
    /// No such family.
    #[error("no family {0}")]
    NoFamily(FamilyId),
    /// No family is open.
    #[error("no family is open: a gate spends the error rate of one")]
    NoOpenFamily,
    /// The manifest has no section on a test.
    #[error("{0} is no gate's")]
    NoGatePlan(ManifestId),
    /// No look was taken after the last unit.
    #[error("gate {gate} has no look after its {n} units")]
    NoLook {
        /// The gate.
        gate: ManifestId,
        /// Units that were observed.
        n: u64,
    },
    /// No such manifest.
    #[error("no manifest {0}")]
    NoManifest(ManifestId),
    /// The manifest names no gate to continue, or that one did not end undecided.
    #[error("{0} names no gate that ended undecided in test.continuation_of")]
    NoParent(ManifestId),
    /// No promotion stands there.
    #[error("no promotion at seq {0}")]
    NoPromotion(u64),
    /// No unit is exposed.
    #[error("no unit of {0} is exposed")]
    NothingExposed(ManifestId),
    /// No version of the manifest is in force.
    #[error("{0} has no version in force yet")]
    NotInForce(ManifestId),
    /// Units of a gate are exposed after it is opened.
    #[error("{0} is not opened: a gate is opened before any unit is exposed, and not after")]
    NotOpened(ManifestId),
    /// No gate of this name is open.
    #[error("no gate {0} is open")]
    NotOpen(ManifestId),
    /// A line of outcomes cannot be a score of the gate.
    #[error("{file}:{error}")]
    Outcome {
        /// The file.
        file: String,
        /// The line, and what is wrong with it.
        error: OutcomeError,
    },
    /// A unit stood in another order before.
    #[error(
        "unit {unit}: expected one whose order was not drawn before the manifest came into force, found it in an order at seq {seq} ({code})",
        code = Code::AdaptiveReuse
    )]
    Reused {
        /// The unit.
        unit: ItemId,
        /// The entry of that order.
        seq: u64,
    },
    /// A manifest has the name of the new gate.
    #[error("a manifest {0} is registered already")]
    Planned(ManifestId),
    /// The promotion was taken back before.
    #[error("the promotion on these gates was revoked at seq {seq}")]
    Revoked {
        /// The first of its gates.
        gate: ManifestId,
        /// The entry that revoked it.
        seq: u64,
    },
    /// A score was not recorded. Those before its batch are.
    #[error("{file}: {error}")]
    Score {
        /// The file.
        file: String,
        /// The lines of the batch, in the order of its events.
        lines: Vec<u64>,
        /// Why.
        error: Box<LedgerError>,
    },
    /// A snapshot says of a gate otherwise than the log.
    #[error("gate {gate}: the snapshot has {found}")]
    Snapshot {
        /// The gate.
        gate: ManifestId,
        /// What the snapshot says.
        found: String,
    },
    /// Several families are open, and none was named.
    #[error("several families are open: {}", .0.iter().map(FamilyId::as_str).collect::<Vec<_>>().join(", "))]
    SeveralFamilies(Vec<FamilyId>),
    /// A judge drifted, and nobody said how that is handled.
    #[error(
        "drift: gate {gate} is stale: judge {judge} failed its drift check at seq {seq}, and no manifest.deviated on {path} that was known after it says how that is handled",
        path = drifts::JUDGE_PATH
    )]
    Stale {
        /// The gate.
        gate: ManifestId,
        /// The judge.
        judge: JudgeId,
        /// The failed check.
        seq: u64,
    },
    /// The file's strata are not those of the plan.
    #[error(
        "{file}: units by stratum: expected {expected}, as test.control_variate has them, found {found} ({code})",
        code = Code::DataRoot
    )]
    Strata {
        /// The file.
        file: String,
        /// Counts of the plan, where they differ.
        expected: String,
        /// Counts of the file, where they differ.
        found: String,
    },
    /// More units than a log can count.
    #[error("units: expected at most 2^53 - 1")]
    TooManyUnits,
    /// The last look does not end the gate.
    #[error("gate {gate}: {}", check::meaning(*.standing))]
    Undecided {
        /// The gate.
        gate: ManifestId,
        /// What the look found.
        standing: Standing,
    },
    /// No units are drawn for labels.
    #[error(
        "gate {0}: units are drawn for labels once it is decided, where its manifest has data.label_policy"
    )]
    Undrawn(ManifestId),
    /// The test may not take the next unit.
    #[error("gate {gate}: unit {unit} cannot be observed: {why}")]
    Unfit {
        /// The gate.
        gate: ManifestId,
        /// The unit.
        unit: ItemId,
        /// Why not.
        why: String,
    },
    /// An observation is not what the log has.
    #[error("gate {gate}: the observation at seq {seq}: expected {expected}, found {found}")]
    Unheld {
        /// The gate.
        gate: ManifestId,
        /// What the log has.
        expected: String,
        /// What was observed.
        found: String,
        /// The entry that observed.
        seq: u64,
    },
    /// The file's units are not those of the manifest.
    #[error(
        "{file}: {} units under {}, and the manifest binds {} under {} ({code})",
        .found.0, .found.1.0.to_base64(), .bound.0, .bound.1.0.to_base64(), code = Code::DataRoot
    )]
    Units {
        /// The gate.
        gate: ManifestId,
        /// The file.
        file: String,
        /// How many units the file has, and under which root.
        found: Box<(u64, Root)>,
        /// The same of the manifest.
        bound: Box<(u64, Root)>,
    },
    /// The manifest has no test.
    #[error("gate {gate}: expected {}, found {}", .error.expected, .error.found)]
    Untestable {
        /// The gate.
        gate: ManifestId,
        /// What lacks.
        error: Untestable,
    },
}

impl GateError {
    pub(super) fn untestable(gate: &ManifestId, error: Untestable) -> Self {
        let gate = gate.clone();
        Self::Untestable { gate, error }
    }
}

/// Why a part of a gate's units could not be read.
pub(super) fn unobserved(gate: &ManifestId, error: ObserveError) -> SessionError {
    match error {
        ObserveError::Ledger(error) => error.into(),
        ObserveError::Untestable(error) => GateError::untestable(gate, error).into(),
    }
}
