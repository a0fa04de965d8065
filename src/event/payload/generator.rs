//! A generator that is tuned under a frozen judge: what was frozen, what it asked, what fresh labels say of what came
//! of it, and the way back. `schema/GENERATOR.md` says what each event must hold to. Source: CLOVER v1.1, section 10.3.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::DesignId;
use crate::id::EventId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::RunId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::predicate::EnvironmentTests;
use crate::payload::predicate::Gaming;
use crate::payload::predicate::RowsRead;
use crate::payload::predicate::Thresholds;

/// A generator may be tuned: the judge that runs is frozen for it, with so many questions to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorRunOpened {
    /// The program that computed `frozen`.
    pub build: Text,
    /// The calibrator of the deployment.
    pub calibrator: Digest,
    /// The `deployment.activated` that runs.
    pub deployment: EventId,
    /// Digest of f, fitted again as the iteration of the rubric that runs evaluated it: the same as `calibrator`.
    pub frozen: Digest,
    /// The policy that is tuned.
    pub new: PolicyId,
    /// The policy that it is to be better than.
    pub old: PolicyId,
    /// Hash of the rubric that runs.
    pub rubric_hash: Digest,
    /// Its name.
    pub run: RunId,
    /// What is at stake, from 0 to 1.
    pub stakes_micro: Micro,
    /// Questions that it may ask.
    pub steps: Count,
}

/// A generator asked what outputs are worth, and was told a lower bound: one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorObjectiveQueried {
    /// Merkle root of the answer: canonical lines `{"draw","item","lower_micro","policy"}`, in the order of the log.
    pub answer_root: Root,
    /// The program that computed it.
    pub build: Text,
    /// Digest of f.
    pub frozen: Digest,
    /// What was read.
    pub inputs: RowsRead,
    /// Mean of `f(s) - 1.645 sd(s)` over the rows, sd by the jackknife over folds.
    pub lower_mean: Finite,
    /// Whose outputs.
    pub policy: PolicyId,
    /// The run.
    pub run: RunId,
    /// Which step, from 1.
    pub step: Count,
}

/// Rows and prompts of one arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmRows {
    /// Prompts.
    pub clusters: Count,
    /// Labelled outputs.
    pub rows: Count,
}

/// Fresh labels of the new policy against those of the old.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmsCompared {
    /// Mean label of the new policy less that of the old.
    pub difference: Finite,
    /// One-sided 95 % lower bound; absent without spread or below two prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<Finite>,
    /// Of the new policy.
    pub new: ArmRows,
    /// Of the old policy.
    pub old: ArmRows,
    /// Prompts that both answered: these are paired.
    pub shared: Count,
    /// Standard error by prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Finite>,
}

/// What each check of a generator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorVerdicts {
    /// Attacks on its outputs earn no more than they may.
    pub battery: Verdict,
    /// Fresh labels say that it is better.
    pub gain: Verdict,
    /// The frozen judge holds on its outputs.
    pub transport: Verdict,
}

impl GeneratorVerdicts {
    /// The verdicts by name, alphabetical.
    pub fn each(self) -> [(&'static str, Verdict); 3] {
        [
            ("battery", self.battery),
            ("gain", self.gain),
            ("transport", self.transport),
        ]
    }
}

/// What came of a run, on labels that nothing was fitted on; anything but a pass has to be rolled back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorValidated {
    /// The battery on outputs of the new policy; absent where the judge cannot be asked anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Gaming>,
    /// The program that computed it.
    pub build: Text,
    /// Fresh labels of both policies.
    pub compared: ArmsCompared,
    /// The design of the labels, registered after the run was opened.
    pub design: DesignId,
    /// Digest of f.
    pub frozen: Digest,
    /// What was read.
    pub inputs: RowsRead,
    /// Mean lower bound on labelled outputs of the new policy less that of the old.
    pub lcb_gain: Finite,
    /// The run.
    pub run: RunId,
    /// Questions that were asked.
    pub steps: Count,
    /// What the checks were held to: as guardrails are.
    pub thresholds: Thresholds,
    /// Residuals of the frozen judge on labelled outputs of the new policy, and of the old.
    pub transport: EnvironmentTests,
    /// What all of it comes to.
    pub verdict: Verdict,
    /// What each check says.
    pub verdicts: GeneratorVerdicts,
}

/// The old policy answers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorRolledBack {
    /// Why.
    pub reason: Text,
    /// The policy that answers again: the run's old one.
    pub restored: PolicyId,
    /// The run.
    pub run: RunId,
    /// Its validation, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<EventId>,
}
