//! The closed registry of kinds: one line each.
//!
//! A line gives the variant, the kind's text, its newest payload version, who may sign, whether it belongs to an
//! experiment, and its natural key; then the fields that name its iteration (`in`), its gate (`of`) and the rows that
//! it was computed from (`from`), where it has them. To add a kind: its struct in `payload/<family>.rs`, its line here, and its
//! reader (`READS` and `apply` of a fold or row model, or `projection::LEDGER_ONLY`). To raise a version: keep the old struct
//! as `…V1`, raise the number, add a line under `retired` and one `From<…V1>`.

use std::fmt;
use std::str::FromStr;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Serialize;
use serde::Serializer;

use crate::field::NamesInputs;
use crate::field::NamesIteration;
use crate::field::RegistryFields;
use crate::field::Statement;
use crate::id::ExperimentId;
use crate::id::IterationId;
use crate::id::ManifestId;
use crate::payload::Role;
use crate::payload::Role::Adversary;
use crate::payload::Role::Approver;
use crate::payload::Role::Arbiter;
use crate::payload::Role::Auditor;
use crate::payload::Role::Custodian;
use crate::payload::Role::Labeler;
use crate::payload::Role::MetaOptimizer;
use crate::payload::Role::Optimizer;
use crate::payload::Role::Owner;
use crate::payload::Role::Registrar;
use crate::payload::Role::Releaser;
use crate::payload::Role::Scorer;
use crate::payload::Role::Steward;
use crate::payload::Role::Verifier;
use crate::payload::assumption::AssumptionCountersigned;
use crate::payload::assumption::AssumptionWaived;
use crate::payload::assumption::BridgeAssessed;
use crate::payload::assumption::SdpVersionRegistered;
use crate::payload::audit::CoverageChecked;
use crate::payload::audit::OuaEstimated;
use crate::payload::audit::TransportTested;
use crate::payload::battery::BatteryEvaluated;
use crate::payload::battery::ExploitDiscovered;
use crate::payload::budget::BudgetCharged;
use crate::payload::budget::BudgetOpened;
use crate::payload::card::CardPublished;
use crate::payload::custody::KeyAdded;
use crate::payload::custody::KeyAddedV1;
use crate::payload::custody::KeyCompromised;
use crate::payload::custody::KeyRetired;
use crate::payload::custody::LedgerCreated;
use crate::payload::custody::LogKeyRotated;
use crate::payload::custody::PolicyAdopted;
use crate::payload::custody::RetentionSet;
use crate::payload::custody::RulebookAdopted;
use crate::payload::custody::SubjectErased;
use crate::payload::decision::FamilyClosed;
use crate::payload::decision::GateContinued;
use crate::payload::decision::GateDecided;
use crate::payload::decision::GateEstimated;
use crate::payload::decision::GateLooked;
use crate::payload::decision::PromotionIssued;
use crate::payload::decision::PromotionRevoked;
use crate::payload::deployment::DeploymentActivated;
use crate::payload::deployment::DeploymentRolledBack;
use crate::payload::deployment::GuardrailChecked;
use crate::payload::deployment::RecalibrationCompleted;
use crate::payload::diagnosis::IterationPausedForLabels;
use crate::payload::diagnosis::LabelProcessAudited;
use crate::payload::diagnosis::PrenticeChecked;
use crate::payload::drift::JudgeDriftChecked;
use crate::payload::environment::EnvironmentsTested;
use crate::payload::environment::RegimeSelected;
use crate::payload::estimate::CalibratorFitted;
use crate::payload::estimate::ContrastRecorded;
use crate::payload::estimate::EstimateRecorded;
use crate::payload::experiment::ExperimentClosed;
use crate::payload::experiment::ExperimentRegistered;
use crate::payload::gate::GateObserved;
use crate::payload::gate::GateOpened;
use crate::payload::gate::OrderDrawn;
use crate::payload::gate::OrderListed;
use crate::payload::gate::UnitsListed;
use crate::payload::generator::GeneratorObjectiveQueried;
use crate::payload::generator::GeneratorRolledBack;
use crate::payload::generator::GeneratorRunOpened;
use crate::payload::generator::GeneratorValidated;
use crate::payload::intake::DataIngested;
use crate::payload::intake::SplitsFormed;
use crate::payload::intake::SplitsListed;
use crate::payload::iteration::AnchorSetRegistered;
use crate::payload::iteration::IterationClosed;
use crate::payload::iteration::IterationOpened;
use crate::payload::judge::LogprobRecorded;
use crate::payload::judge::ScoreConflict;
use crate::payload::judge::ScoreRecorded;
use crate::payload::judge::ScoreScaleDeclared;
use crate::payload::label::LabelDesignRegistered;
use crate::payload::label::LabelRecorded;
use crate::payload::label::LabelRevealed;
use crate::payload::label::LabelScaleDeclared;
use crate::payload::label::LabelSealed;
use crate::payload::label::SealAccepted;
use crate::payload::meta::LibTemplateAdded;
use crate::payload::meta::MetaTriggered;
use crate::payload::meta::MetaUpdated;
use crate::payload::meta::MetaValidated;
use crate::payload::meta_plan::MetaConcluded;
use crate::payload::meta_plan::MetaPlanned;
use crate::payload::model_calls::ModelCallRecorded;
use crate::payload::model_runs::BudgetReserved;
use crate::payload::model_runs::BudgetSettled;
use crate::payload::model_runs::CallRecorded;
use crate::payload::model_runs::JudgeRunClosed;
use crate::payload::model_runs::JudgeRunOpened;
use crate::payload::model_runs::JudgeRunResumed;
use crate::payload::model_runs::NoiseMeasured;
use crate::payload::model_runs::ScoreMissed;
use crate::payload::model_terms::EndpointRegistered;
use crate::payload::model_terms::PriceTableRegistered;
use crate::payload::ope::LogprobsChecked;
use crate::payload::ope::OpeDiagnosed;
use crate::payload::ope::OpeEstimated;
use crate::payload::planning::PlanRecorded;
use crate::payload::predicate::CandidatesSealed;
use crate::payload::predicate::ConfirmLooked;
use crate::payload::predicate::ConfirmUnsealed;
use crate::payload::predicate::GateEvaluated;
use crate::payload::predicate::PatchAccepted;
use crate::payload::predicate::RowsRead;
use crate::payload::prereg::ExposureOpened;
use crate::payload::prereg::FamilyOpened;
use crate::payload::prereg::ManifestAmended;
use crate::payload::prereg::ManifestCountersigned;
use crate::payload::prereg::ManifestDeviated;
use crate::payload::prereg::ManifestRegistered;
use crate::payload::prereg::PlanRevealed;
use crate::payload::prereg::PlanSealed;
use crate::payload::record::AuditAttested;
use crate::payload::record::DataRead;
use crate::payload::record::NoteRecorded;
use crate::payload::record::QualificationRecorded;
use crate::payload::record::ReviewRecorded;
use crate::payload::release::ApprovalGranted;
use crate::payload::release::ApprovalRefused;
use crate::payload::release::PromptCommitted;
use crate::payload::repair::WfCalled;
use crate::payload::repair::WfCandidateAdded;
use crate::payload::repair::WfEditRejected;
use crate::payload::repair::WfExecuted;
use crate::payload::repair::WfRunStarted;
use crate::payload::repair::WfStopped;
use crate::payload::repair_feedback::EditPairRecorded;
use crate::payload::repair_feedback::UtilityRecorded;
use crate::payload::repair_feedback::WfFeedbackGiven;
use crate::payload::repair_feedback::WfIterationClosed;
use crate::payload::repair_feedback::WfPruned;
use crate::payload::repair_feedback::WfScored;
use crate::payload::report::ReportPublished;
use crate::payload::rubric::PatchProposed;
use crate::payload::rubric::PatchRejected;
use crate::payload::rubric::PatchWithdrawn;
use crate::payload::rubric::RubricRegistered;
use crate::payload::scoring::EvidenceRecorded;
use crate::payload::scoring::JudgeCompared;
use crate::payload::scoring::JudgeRegistered;
use crate::payload::scoring::ScoreReplayed;
use crate::payload::scoring::ScoresRecomputed;
use crate::payload::sgd::SgdLossComputed;
use crate::payload::sgd::SgdOpened;
use crate::payload::sgd::SgdRowsListed;
use crate::payload::sgd::SgdScored;
use crate::payload::sgd::SgdTestRead;
use crate::payload::sgd_steps::SgdBatchDrawn;
use crate::payload::sgd_steps::SgdCheckpointSelected;
use crate::payload::sgd_steps::SgdGradientRequested;
use crate::payload::sgd_steps::SgdGradientReturned;
use crate::payload::sgd_steps::SgdPatchApproved;
use crate::payload::sgd_steps::SgdPatchProposed;
use crate::payload::sgd_steps::SgdPatchRejected;
use crate::payload::sgd_steps::SgdReverted;
use crate::payload::sgd_steps::SgdStepCommitted;
use crate::payload::sgd_steps::SgdStopTriggered;
use crate::payload::sgd_steps::SgdStopped;
use crate::payload::slices::ResidualsAudited;
use crate::payload::slices::SlicesClassified;
use crate::payload::synth_runs::SynthAsked;
use crate::payload::synth_runs::SynthOpened;
use crate::payload::synth_runs::SynthReturned;
use crate::payload::synth_runs::SynthStopped;
use crate::payload::synthesis::DevObjectiveQueried;

/// Domain label of natural-key digests.
pub const NATURAL_KEY_LABEL: &str = "clover/natural-key/v1";

/// Who may sign a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signers {
    /// Any live key.
    Any,
    /// The owner that the event itself names: seq 0 only.
    Genesis,
    /// A live key that holds this role.
    Role(Role),
    /// A live key that holds one of the account's spender roles.
    Spenders,
}

/// Whether a kind belongs to an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// With or without one.
    Anywhere,
    /// The header must name an open experiment.
    Experiment,
    /// The header names the experiment that the event itself registers.
    NewExperiment,
}

/// Why `(kind, v, data)` is not a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// No such kind, or no such version of it.
    #[error("{kind} v{v} is not in the registry")]
    Kind {
        /// Kind text.
        kind: String,
        /// Version.
        v: u32,
    },
    /// The data is not the closed schema of its kind.
    #[error("data of {kind}: {error}")]
    Schema {
        /// Kind text.
        kind: &'static str,
        /// What is wrong.
        error: String,
    },
}

macro_rules! natural_key {
    ($kind:ident, $payload:ident, $experiment:ident, repeatable) => {{
        let _ = ($payload, $experiment);
        None
    }};
    ($kind:ident, $payload:ident, $experiment:ident, unique [$($field:ident),*]) => {{
        let parts = (Kind::$kind.as_str(), $experiment, $(&$payload.$field,)*);
        Some(match Kind::$kind.scope() {
            Scope::Anywhere => natural_key_digest(&(parts.0, $(&$payload.$field,)*)),
            Scope::Experiment | Scope::NewExperiment => natural_key_digest(&parts),
        })
    }};
}

macro_rules! natural_key_parts {
    (repeatable) => {
        None
    };
    (unique [$($field:ident),*]) => {
        Some(&[$(stringify!($field)),*])
    };
}

macro_rules! optional_field {
    ($payload:ident, $ask:path) => {{
        let _ = $payload;
        None
    }};
    ($payload:ident, $ask:path, $field:ident) => {
        $ask(&$payload.$field)
    };
}

macro_rules! optional_name {
    () => {
        None
    };
    ($field:ident) => {
        Some(stringify!($field))
    };
}

fn natural_key_digest<T: Serialize>(parts: &T) -> Digest {
    canon::digest(NATURAL_KEY_LABEL, parts)
}

/// The natural key of an event in an experiment whose key fields are these texts, in the registry's order.
pub fn natural_key_of(kind: Kind, experiment: &ExperimentId, fields: &[&str]) -> Digest {
    let mut parts = vec![kind.as_str(), experiment.as_str()];
    parts.extend_from_slice(fields);
    natural_key_digest(&parts)
}

/// The natural key of a call of an ask.
pub fn call_key(ask: &Digest, nth: Count) -> Digest {
    natural_key_digest(&(Kind::CallRecorded.as_str(), ask, nth))
}

/// The natural key of the score of a draw, of ids as texts.
pub fn score_key(
    experiment: &str,
    judge: &str,
    policy: &str,
    (item, draw): (&str, Count),
) -> Digest {
    let kind = Kind::ScoreRecorded.as_str();
    natural_key_digest(&(kind, experiment, judge, policy, item, draw))
}

fn read<T: serde::de::DeserializeOwned>(kind: &'static str, text: &str) -> Result<T, PayloadError> {
    serde_json::from_str(text).map_err(|error| PayloadError::Schema {
        kind,
        error: error.to_string(),
    })
}

/// Decodes `text` as `T` and returns it with its canonical bytes.
fn typed<T: Serialize + serde::de::DeserializeOwned>(
    kind: &'static str,
    text: &str,
) -> Result<(T, Vec<u8>), PayloadError> {
    let schema = |error: String| PayloadError::Schema { kind, error };
    let value: T = read(kind, text)?;
    let bytes = canon::to_bytes(&value).map_err(|error| schema(error.to_string()))?;
    Ok((value, bytes))
}

macro_rules! registry {
    (
        kinds { $($kind:ident $text:literal $v:literal by $signers:expr, $scope:ident, $rule:tt $([$($field:ident),*])?
            $(in $iteration:ident)? $(of $gate:ident)? $(from $inputs:ident)?;)* }
        retired { $($old:ident $old_text:literal $old_v:literal => $new:ident;)* }
    ) => {
        /// A kind of event. Order is registry order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("`", $text, "`")] $kind,)*
        }

        impl Kind {
            /// Every kind, in registry order.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The text in events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $text),* }
            }

            /// Newest payload version.
            pub fn version(self) -> u32 {
                match self { $(Self::$kind => $v),* }
            }

            /// Who may sign it.
            pub fn signers(self) -> Signers {
                match self { $(Self::$kind => $signers),* }
            }

            /// Fields of its data that make its natural key, after the experiment of its header where it has one; `None`
            /// for kinds that may repeat.
            pub fn natural_key_parts(self) -> Option<&'static [&'static str]> {
                match self { $(Self::$kind => natural_key_parts!($rule $([$($field),*])?)),* }
            }

            /// Whether it belongs to an experiment.
            pub fn scope(self) -> Scope {
                match self { $(Self::$kind => Scope::$scope),* }
            }

            /// Fields of its data that name its iteration, its gate and its rows.
            pub fn fields(self) -> RegistryFields {
                match self {
                    $(Self::$kind => RegistryFields {
                        gate: optional_name!($($gate)?),
                        inputs: optional_name!($($inputs)?),
                        iteration: optional_name!($($iteration)?),
                    },)*
                }
            }
        }

        /// A payload of any kind, in its newest version.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "each variant is the struct of its name, documented there")]
        pub enum Payload {
            $($kind(Box<$kind>),)*
        }

        $(impl From<$kind> for Payload {
            fn from(payload: $kind) -> Self {
                Self::$kind(Box::new(payload))
            }
        }

        impl Statement for $kind {
            const KIND: Kind = Kind::$kind;

            fn of(payload: &Payload) -> Option<&Self> {
                match payload {
                    Payload::$kind(said) => Some(said),
                    _ => None,
                }
            }
        })*

        impl Payload {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),* }
            }

            /// The iteration that it belongs to. Estimates belong to none.
            pub fn iteration(&self) -> Option<&IterationId> {
                match self {
                    $(Self::$kind(payload) => {
                        optional_field!(payload, NamesIteration::iteration $(, $iteration)?)
                    })*
                }
            }

            /// The gate that it opens, moves or estimates.
            pub fn gate(&self) -> Option<&ManifestId> {
                match self { $(Self::$kind(payload) => optional_field!(payload, Some $(, $gate)?)),* }
            }

            /// The rows that it was computed from, as it says.
            pub fn inputs(&self) -> Option<RowsRead> {
                match self {
                    $(Self::$kind(payload) => {
                        optional_field!(payload, NamesInputs::inputs $(, $inputs)?)
                    })*
                }
            }

            /// Digest of the natural key, or `None` for kinds that may repeat.
            pub fn natural_key(&self, experiment: Option<&ExperimentId>) -> Option<Digest> {
                #[expect(unused_variables, reason = "kinds whose key is the experiment alone read no field")]
                match self {
                    $(Self::$kind(payload) => natural_key!($kind, payload, experiment, $rule $([$($field),*])?),)*
                }
            }
        }

        impl Serialize for Payload {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$kind(payload) => payload.serialize(serializer)),* }
            }
        }

        /// Decodes the data of `(kind, v)`, upcast to the newest version, with its canonical bytes as they
        /// stand in the body.
        ///
        /// # Errors
        /// [`PayloadError`].
        pub fn decode(kind: &str, v: u32, data: &str) -> Result<(Payload, Vec<u8>), PayloadError> {
            match (kind, v) {
                $(($text, $v) => typed::<$kind>($text, data).map(|(payload, bytes)| (payload.into(), bytes)),)*
                $(($old_text, $old_v) => {
                    typed::<$old>($old_text, data).map(|(payload, bytes)| ($new::from(payload).into(), bytes))
                })*
                _ => Err(PayloadError::Kind { kind: kind.to_owned(), v }),
            }
        }

        /// As [`decode`], for data that was found canonical when it was admitted.
        ///
        /// # Errors
        /// [`PayloadError`].
        pub fn decode_admitted(kind: &str, v: u32, data: &str) -> Result<Payload, PayloadError> {
            match (kind, v) {
                $(($text, $v) => read::<$kind>($text, data).map(Payload::from),)*
                $(($old_text, $old_v) => read::<$old>($old_text, data).map(|old| $new::from(old).into()),)*
                _ => Err(PayloadError::Kind { kind: kind.to_owned(), v }),
            }
        }

        /// JSON Schema of every kind and version, for `schema/event/`.
        #[cfg(feature = "schema")]
        pub fn schemas() -> Vec<(&'static str, u32, schemars::Schema)> {
            vec![
                $(($text, $v, schemars::schema_for!($kind)),)*
                $(($old_text, $old_v, schemars::schema_for!($old)),)*
            ]
        }
    };
}

registry! {
    kinds {
        // variant           kind                  v   signed by                  belongs to      natural key, in iteration, of gate, from rows
        LedgerCreated        "ledger.created"       1  by Signers::Genesis,         Anywhere,      unique [];
        KeyAdded             "key.added"            2  by Signers::Role(Owner),     Anywhere,      unique [key_id];
        KeyRetired           "key.retired"          1  by Signers::Role(Owner),     Anywhere,      unique [key_id];
        KeyCompromised       "key.compromised"      1  by Signers::Role(Owner),     Anywhere,      unique [key_id, since_seq];
        PolicyAdopted        "policy.adopted"       1  by Signers::Role(Owner),     Anywhere,      repeatable;
        LogKeyRotated        "log_key.rotated"      1  by Signers::Role(Owner),     Anywhere,      unique [vkey];
        RulebookAdopted      "rulebook.adopted"     1  by Signers::Role(Owner),     Anywhere,      repeatable;
        RetentionSet         "retention.set"        1  by Signers::Role(Owner),     Anywhere,      repeatable;
        SubjectErased        "subject.erased"       1  by Signers::Role(Custodian), Anywhere,      unique [subject];
        BudgetOpened         "budget.opened"        1  by Signers::Role(Registrar), Anywhere,      unique [account];
        BudgetCharged        "budget.charged"       1  by Signers::Spenders,        Anywhere,      repeatable;
        ExperimentRegistered "experiment.registered" 1 by Signers::Role(Registrar), NewExperiment, unique [];
        ExperimentClosed     "experiment.closed"    1  by Signers::Role(Registrar), Experiment,    unique [];
        ScoreRecorded        "score.recorded"       1  by Signers::Role(Scorer),    Experiment,    unique [judge, policy, item, draw];
        LabelRecorded        "label.recorded"       1  by Signers::Role(Labeler),   Experiment,    unique [design, policy, item, draw, rater];
        LabelSealed          "label.sealed"         1  by Signers::Role(Custodian), Experiment,    unique [design, row];
        SealAccepted         "seal.accepted"        1  by Signers::Role(Custodian), Experiment,    unique [design, row];
        LabelRevealed        "label.revealed"       1  by Signers::Role(Custodian), Experiment,    unique [design, row];
        DataRead             "data.read"            1  by Signers::Role(Custodian), Anywhere,      repeatable;
        ReviewRecorded       "review.recorded"      1  by Signers::Role(Auditor),   Anywhere,      repeatable;
        AuditAttested        "audit.attested"       1  by Signers::Role(Auditor),   Anywhere,      repeatable;
        NoteRecorded         "note.recorded"        1  by Signers::Any,             Anywhere,      repeatable;
        DataIngested         "data.ingested"        1  by Signers::Role(Scorer),    Experiment,    unique [rows_root];
        LogprobRecorded      "logprob.recorded"     1  by Signers::Role(Scorer),    Experiment,    unique [policy, item, draw];
        ScoreConflict        "score.conflict"       1  by Signers::Role(Scorer),    Experiment,    unique [judge, policy, item, draw, score_micro];
        LabelDesignRegistered "label.design_registered" 1 by Signers::Role(Labeler), Experiment,   unique [design];
        SplitsListed         "splits.listed"        1  by Signers::Role(Arbiter),   Experiment,    unique [split, part, first];
        SplitsFormed         "splits.formed"        1  by Signers::Role(Arbiter),   Experiment,    unique [split];
        QualificationRecorded "qualification.recorded" 1 by Signers::Any,           Anywhere,      repeatable;
        FamilyOpened         "family.opened"        1  by Signers::Role(Registrar), Anywhere,      unique [family];
        ManifestRegistered   "manifest.registered"  1  by Signers::Role(Registrar), Experiment,    unique [digest];
        ManifestCountersigned "manifest.countersigned" 1 by Signers::Role(Custodian), Experiment,  unique [digest];
        ManifestAmended      "manifest.amended"     1  by Signers::Role(Registrar), Experiment,    unique [digest];
        ManifestDeviated     "manifest.deviated"    1  by Signers::Any,             Experiment,    repeatable;
        PlanSealed           "plan.sealed"          1  by Signers::Role(Arbiter),   Experiment,    unique [manifest];
        PlanRevealed         "plan.revealed"        1  by Signers::Role(Arbiter),   Experiment,    unique [manifest];
        ExposureOpened       "exposure.opened"      1  by Signers::Role(Custodian), Experiment,    unique [digest, exposure];
        SdpVersionRegistered "sdp.version_registered" 1 by Signers::Role(Steward),  Anywhere,      unique [sdp_version];
        BridgeAssessed       "bridge.assessed"      1  by Signers::Role(Steward),   Anywhere,      repeatable;
        AssumptionWaived     "assumption.waived"    1  by Signers::Role(Approver),  Anywhere,      repeatable;
        AssumptionCountersigned "assumption.countersigned" 1 by Signers::Role(Approver), Anywhere, unique [waiver];
        CalibratorFitted     "calibrator.fitted"    1  by Signers::Role(Arbiter),   Experiment,    unique [build, terms, through_seq] in terms from iteration;
        EstimateRecorded     "estimate.recorded"    1  by Signers::Role(Arbiter),   Experiment,    unique [build, policy, terms, through_seq];
        ContrastRecorded     "contrast.recorded"    1  by Signers::Role(Arbiter),   Experiment,    unique [build, family, first, second, terms, through_seq];
        OuaEstimated         "oua.estimated"        1  by Signers::Role(Arbiter),   Experiment,    unique [build, policy, terms, through_seq] in terms from inputs;
        CoverageChecked      "coverage.checked"     1  by Signers::Role(Arbiter),   Experiment,    unique [build, policy, terms, through_seq] in terms from inputs;
        TransportTested      "transport.tested"     1  by Signers::Role(Arbiter),   Experiment,    repeatable;
        PlanRecorded         "plan.recorded"        1  by Signers::Role(Arbiter),   Experiment,    unique [asked_micro, build, policies, power_micro, prices, purpose, terms, through_seq];
        RubricRegistered     "rubric.registered"    1  by Signers::Role(Registrar), Experiment,    unique [rubric_hash];
        AnchorSetRegistered  "anchor_set.registered" 1 by Signers::Role(Registrar), Experiment,    unique [anchors];
        IterationOpened      "iteration.opened"     1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration;
        IterationClosed      "iteration.closed"     1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration;
        PatchProposed        "patch.proposed"       1  by Signers::Role(Optimizer), Experiment,    unique [patch] in iteration;
        PatchRejected        "patch.rejected"       1  by Signers::Role(Arbiter),   Experiment,    unique [iteration, stage, yaml_sha256] in iteration;
        LabelProcessAudited  "label_process.audited" 1 by Signers::Role(Arbiter),  Experiment,    unique [iteration] in iteration from inputs;
        PrenticeChecked      "prentice.checked"     1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration from inputs;
        ResidualsAudited     "residuals.audited"    1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration from inputs;
        SlicesClassified     "slices.classified"    1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration;
        CardPublished        "card.published"       1  by Signers::Role(Arbiter),   Experiment,    unique [iteration, public_digest] in iteration;
        IterationPausedForLabels "iteration.paused_for_labels" 1 by Signers::Role(Arbiter), Experiment, unique [iteration] in iteration from inputs;
        DevObjectiveQueried  "dev.objective_queried" 1 by Signers::Role(Arbiter),  Experiment,    unique [candidate, iteration] in iteration from inputs;
        GateEvaluated        "gate.evaluated"       1  by Signers::Role(Arbiter),   Experiment,    unique [candidate, gate, iteration, split] in iteration from inputs;
        CandidatesSealed     "candidates.sealed"    1  by Signers::Role(Arbiter),   Experiment,    unique [iteration] in iteration;
        ConfirmUnsealed      "confirm.unsealed"     1  by Signers::Role(Custodian), Experiment,    unique [iteration] in iteration;
        PatchAccepted        "patch.accepted"       1  by Signers::Role(Arbiter),   Experiment,    unique [candidate, iteration] in iteration;
        PatchWithdrawn       "patch.withdrawn"      1  by Signers::Role(Optimizer), Experiment,    unique [patch] in iteration;
        BatteryEvaluated     "battery.evaluated"    1  by Signers::Role(Adversary), Experiment,   repeatable in iteration;
        ExploitDiscovered    "exploit.discovered"   1  by Signers::Role(Adversary), Experiment,   unique [policy, item, draw, chain] in iteration;
        JudgeRegistered      "judge.registered"     1  by Signers::Role(Scorer),    Experiment,    unique [judge];
        EvidenceRecorded     "evidence.recorded"    1  by Signers::Role(Scorer),    Experiment,    unique [judge, records_root];
        ScoreReplayed        "score.replayed"       1  by Signers::Role(Scorer),    Experiment,    repeatable;
        ScoresRecomputed     "scores.recomputed"    1  by Signers::Role(Scorer),    Experiment,    unique [candidate, iteration] in iteration from inputs;
        UnitsListed          "units.listed"         1  by Signers::Role(Custodian), Experiment,    unique [confirm_root, first];
        OrderListed          "order.listed"         1  by Signers::Role(Arbiter),   Experiment,    unique [digest, first];
        OrderDrawn           "order.drawn"          1  by Signers::Role(Arbiter),   Experiment,    unique [digest];
        GateOpened           "gate.opened"          1  by Signers::Role(Arbiter),   Experiment,    unique [gate] of gate;
        GateObserved         "gate.observed"        1  by Signers::Role(Arbiter),   Experiment,    unique [gate, t] of gate;
        GateLooked           "gate.looked"          1  by Signers::Role(Arbiter),   Experiment,    unique [gate, n, digest] of gate;
        GateDecided          "gate.decided"         1  by Signers::Role(Arbiter),   Experiment,    unique [gate] of gate;
        GateContinued        "gate.continued"       1  by Signers::Role(Registrar), Experiment,    unique [gate] of gate;
        FamilyClosed         "family.closed"        1  by Signers::Role(Arbiter),   Anywhere,      unique [family];
        PromotionIssued      "promotion.issued"     1  by Signers::Role(Releaser),  Anywhere,      unique [candidate_digest, gates];
        PromotionRevoked     "promotion.revoked"    1  by Signers::Role(Releaser),  Anywhere,      unique [promotion];
        LogprobsChecked      "logprobs.checked"     1  by Signers::Role(Scorer),    Experiment,    unique [policy, rows_root];
        OpeDiagnosed         "ope.diagnosed"        1  by Signers::Role(Arbiter),   Experiment,    unique [build, policy, terms, through_seq];
        OpeEstimated         "ope.estimated"        1  by Signers::Role(Arbiter),   Experiment,    unique [build, estimator, policy, terms, through_seq];
        ApprovalGranted      "approval.granted"     1  by Signers::Role(Approver),  Experiment,    repeatable;
        ApprovalRefused      "approval.refused"     1  by Signers::Role(Approver),  Experiment,    repeatable;
        PromptCommitted      "prompt.committed"     1  by Signers::Role(Releaser),  Experiment,    unique [acceptance];
        DeploymentActivated  "deployment.activated" 1  by Signers::Role(Releaser),  Experiment,    repeatable;
        RecalibrationCompleted "recalibration.completed" 1 by Signers::Role(Arbiter), Experiment,  repeatable from computed;
        GuardrailChecked     "guardrail.checked"    1  by Signers::Role(Releaser),  Experiment,    repeatable from inputs;
        DeploymentRolledBack "deployment.rolled_back" 1 by Signers::Role(Releaser), Experiment,    unique [deployment];
        ReportPublished      "report.published"     1  by Signers::Role(Arbiter),   Experiment,    unique [bundle_hash, iteration] in iteration;
        JudgeDriftChecked    "judge.drift_checked"  1  by Signers::Role(Releaser),  Experiment,    repeatable;
        GeneratorRunOpened   "generator.run_opened" 1  by Signers::Role(Arbiter),   Experiment,    unique [run];
        GeneratorObjectiveQueried "generator.objective_queried" 1 by Signers::Role(Arbiter), Experiment, unique [run, step] from inputs;
        GeneratorValidated   "generator.validated"  1  by Signers::Role(Arbiter),   Experiment,    unique [run] from inputs;
        GeneratorRolledBack  "generator.rolled_back" 1 by Signers::Role(Releaser),  Experiment,    unique [run];
        ConfirmLooked        "confirm.looked"       1  by Signers::Role(Arbiter),   Experiment,    unique [iteration, units] in iteration from inputs;
        GateEstimated        "gate.estimated"       1  by Signers::Role(Arbiter),   Experiment,    unique [gate, n] of gate;
        LabelScaleDeclared   "label.scale_declared" 1  by Signers::Role(Labeler),   Experiment,    unique [];
        JudgeCompared        "judge.compared"       1  by Signers::Role(Arbiter),   Experiment,    unique [build, first, second, through_seq];
        EnvironmentsTested   "environments.tested"  1  by Signers::Role(Arbiter),   Experiment,    unique [design, family];
        RegimeSelected       "regime.selected"      1  by Signers::Role(Arbiter),   Experiment,    repeatable;
        ScoreScaleDeclared   "score.scale_declared" 1  by Signers::Role(Scorer),    Experiment,    unique [judge];
        EndpointRegistered   "endpoint.registered"  1  by Signers::Role(Registrar), Anywhere,      unique [endpoint];
        PriceTableRegistered "price_table.registered" 1 by Signers::Role(Registrar), Anywhere,     unique [prices];
        JudgeRunOpened       "judge_run.opened"     1  by Signers::Role(Scorer),    Anywhere,      unique [run];
        JudgeRunResumed      "judge_run.resumed"    1  by Signers::Role(Scorer),    Anywhere,      unique [run, epoch];
        JudgeRunClosed       "judge_run.closed"     1  by Signers::Role(Scorer),    Anywhere,      unique [run];
        BudgetReserved       "budget.reserved"      1  by Signers::Spenders,        Anywhere,      unique [hold];
        BudgetSettled        "budget.settled"       1  by Signers::Spenders,        Anywhere,      unique [hold];
        CallRecorded         "call.recorded"        1  by Signers::Role(Scorer),    Anywhere,      unique [ask, nth];
        ScoreMissed          "score.missed"         1  by Signers::Role(Scorer),    Experiment,    unique [judge, policy, item, draw, nth];
        SynthOpened          "synth.opened"         1  by Signers::Role(Registrar), Experiment,    unique [run] in iteration;
        SynthAsked           "synth.asked"          1  by Signers::Role(Arbiter),   Experiment,    unique [run, round] in iteration;
        SynthReturned        "synth.returned"       1  by Signers::Role(Optimizer), Experiment,    unique [run, round] in iteration;
        SynthStopped         "synth.stopped"        1  by Signers::Role(Arbiter),   Experiment,    unique [run] in iteration;
        ModelCallRecorded    "model_call.recorded"  1  by Signers::Role(Optimizer), Experiment,    unique [ask, nth];
        SgdOpened            "sgd.opened"           1  by Signers::Role(Registrar), Experiment,    unique [run];
        SgdRowsListed        "sgd.rows_listed"      1  by Signers::Role(Arbiter),   Experiment,    unique [run, split, first];
        SgdBatchDrawn        "sgd.batch_drawn"      1  by Signers::Role(Arbiter),   Experiment,    unique [run, step];
        SgdScored            "sgd.scored"           1  by Signers::Role(Scorer),    Experiment,    unique [run, part, step, prompt_digest, first];
        SgdLossComputed      "sgd.loss_computed"    1  by Signers::Role(Arbiter),   Experiment,    unique [run, part, step, prompt_digest];
        SgdGradientRequested "sgd.gradient_requested" 1 by Signers::Role(Arbiter),  Experiment,    unique [run, step];
        SgdGradientReturned  "sgd.gradient_returned" 1 by Signers::Role(Optimizer), Experiment,    unique [run, step];
        SgdPatchProposed     "sgd.patch_proposed"   1  by Signers::Role(Optimizer), Experiment,    unique [run, step, attempt];
        SgdPatchRejected     "sgd.patch_rejected"   1  by Signers::Role(Arbiter),   Experiment,    unique [run, step, attempt];
        SgdPatchApproved     "sgd.patch_approved"   1  by Signers::Role(Approver),  Experiment,    unique [run, step, attempt];
        SgdStepCommitted     "sgd.step_committed"   1  by Signers::Role(Arbiter),   Experiment,    unique [run, step];
        SgdReverted          "sgd.reverted"         1  by Signers::Role(Arbiter),   Experiment,    unique [run, step];
        SgdStopTriggered     "sgd.stop_triggered"   1  by Signers::Role(Arbiter),   Experiment,    unique [run];
        SgdCheckpointSelected "sgd.checkpoint_selected" 1 by Signers::Role(Arbiter), Experiment,   unique [run];
        SgdTestRead          "sgd.test_read"        1  by Signers::Role(Custodian), Experiment,    unique [run];
        SgdStopped           "sgd.stopped"          1  by Signers::Role(Arbiter),   Experiment,    unique [run];
        WfRunStarted         "wf.run_started"       1  by Signers::Role(Registrar), Experiment,    unique [run];
        WfCandidateAdded     "wf.candidate_added"   1  by Signers::Role(Optimizer), Experiment,    unique [run, number];
        WfEditRejected       "wf.edit_rejected"     1  by Signers::Role(Arbiter),   Experiment,    unique [run, number];
        WfCalled             "wf.called"            1  by Signers::Role(Scorer),    Experiment,    unique [run, number];
        WfExecuted           "wf.executed"          1  by Signers::Role(Scorer),    Experiment,    unique [run, candidate, item, rerun];
        WfFeedbackGiven      "wf.feedback_given"    1  by Signers::Role(Verifier),  Experiment,    unique [run, candidate];
        WfScored             "wf.scored"            1  by Signers::Role(Arbiter),   Experiment,    unique [run, candidate];
        WfPruned             "wf.pruned"            1  by Signers::Role(Arbiter),   Experiment,    unique [run, iteration];
        WfIterationClosed    "wf.iteration_closed"  1  by Signers::Role(Arbiter),   Experiment,    unique [run, iteration];
        WfStopped            "wf.stopped"           1  by Signers::Role(Arbiter),   Experiment,    unique [run];
        EditPairRecorded     "edit_pair.recorded"   1  by Signers::Role(Arbiter),   Experiment,    unique [run, number];
        UtilityRecorded      "utility.recorded"     1  by Signers::Role(Custodian), Experiment,    unique [run, candidate];
        MetaTriggered        "meta.triggered"       1  by Signers::Role(MetaOptimizer), Experiment, unique [trigger];
        MetaUpdated          "meta.updated"         1  by Signers::Role(MetaOptimizer), Experiment, unique [update];
        MetaValidated        "meta.validated"       1  by Signers::Role(Arbiter),   Experiment,    unique [update];
        LibTemplateAdded     "lib.template_added"   1  by Signers::Role(MetaOptimizer), Experiment, unique [template_digest];
        NoiseMeasured        "noise.measured"       1  by Signers::Role(Scorer),    Experiment,    unique [run];
        MetaPlanned          "meta.planned"         1  by Signers::Role(Registrar), Experiment,    unique [plan];
        MetaConcluded        "meta.concluded"       1  by Signers::Role(Arbiter),   Experiment,    unique [plan];
        // The next kind goes here.
    }
    retired {
        // Only in ledgers of format 1.
        KeyAddedV1           "key.added"            1  => KeyAdded;
    }
}

impl Payload {
    /// What it says, where it is of this kind.
    pub fn said<T: Statement>(&self) -> Option<&T> {
        T::of(self)
    }

    /// The value that it records under its natural key, in millionths.
    pub fn measured(&self) -> Option<i64> {
        match self {
            Self::LabelRecorded(label) => Some(label.value_micro.value()),
            Self::LabelRevealed(label) => Some(label.value_micro.value()),
            Self::ScoreRecorded(score) => Some(score.score_micro.value()),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = PayloadError;
    fn from_str(text: &str) -> Result<Self, PayloadError> {
        let found = Self::ALL.iter().copied().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| PayloadError::Kind {
            kind: text.to_owned(),
            v: 0,
        })
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
