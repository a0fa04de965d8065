//! Whether a judge still scores as it did: its anchors are scored anew and held against their recorded scores.
//! `schema/DRIFT.md` says how each figure is computed and what a failed check stops.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AnchorSetId;
use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::Root;
use crate::id::RowId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::scoring::Decoding;
use crate::payload::scoring::JudgePort;
use crate::payload::scoring::JudgeRegistered;

/// A control chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DriftChart {
    /// The two-sided cumulative sum.
    Cusum,
    /// The exponentially weighted moving average.
    Ewma,
}

/// How anchors that are scored anew are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftPlan {
    /// The chart of residuals.
    pub chart: DriftChart,
    /// Allowance of a cumulative sum, in deviations, or weight of the newest check of an average; in millionths.
    pub chart_micro: Micro,
    /// Rate of false discoveries within each family of charts.
    pub q_micro: Micro,
    /// Series in control that are simulated: at least 99.
    pub replicates: Count,
    /// Deviation of a score that is given anew, in control.
    pub sd_micro: Micro,
    /// Seed of the simulated series.
    pub seed: Count,
    /// Least tau-b of recorded and new scores.
    pub tau_min_micro: Micro,
}

impl Default for DriftPlan {
    /// What is used where no manifest says otherwise.
    fn default() -> Self {
        let micro = |value| Micro::new(value).unwrap_or_default();
        let count = |value| Count::new(value).unwrap_or_default();
        Self {
            chart: DriftChart::Cusum,
            chart_micro: micro(500_000),
            q_micro: micro(10_000),
            replicates: count(9_999),
            sd_micro: micro(50_000),
            seed: count(42),
            tau_min_micro: micro(800_000),
        }
    }
}

/// How a check was judged, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftTerms {
    /// Digest of the manifest version that registers it; absent for the usual numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// The numbers.
    pub plan: DriftPlan,
}

/// What a judge says it is when it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeVersion {
    /// How its model is decoded.
    pub decoding: Decoding,
    /// Version of the evidence record.
    pub evidence_schema: Text,
    /// Version of the extractor.
    pub extractor: Text,
    /// The model.
    pub model: Text,
    /// How it is asked.
    pub port: JudgePort,
    /// SHA-256 of its template with the rubric fields that it shows.
    pub prompt_hash: Digest,
    /// SHA-256 of what is recorded of sources, tool calls and facts.
    pub tool_snapshot: Digest,
}

impl From<&JudgeRegistered> for JudgeVersion {
    fn from(judge: &JudgeRegistered) -> Self {
        Self {
            decoding: judge.decoding,
            evidence_schema: judge.evidence_schema.clone(),
            extractor: judge.extractor.clone(),
            model: judge.model.clone(),
            port: judge.port,
            prompt_hash: judge.prompt_hash,
            tool_snapshot: judge.tool_snapshot,
        }
    }
}

/// The side on which a series left its state in control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DriftSide {
    /// Scores fell.
    Down,
    /// Scores rose.
    Up,
}

/// One series of residuals on its chart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Charted"))]
pub struct ResidualChart {
    /// The check with the largest excursion, from 1.
    pub check: Count,
    /// Whether it left its state in control: `p_adjusted` is at most q.
    pub drifts: bool,
    /// Largest excursion, in deviations in control.
    pub excursion: Finite,
    /// Share of simulated series in control that go as far.
    pub p: Probability,
    /// The same, adjusted over its family.
    pub p_adjusted: Probability,
    /// Its side.
    pub side: DriftSide,
}

/// The mean change of one anchor policy over all checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyDrift {
    /// Its chart, among those of both policies.
    pub charted: ResidualChart,
    /// Mean of new less recorded scores in this check.
    pub mean_change: Finite,
    /// The policy.
    pub policy: PolicyId,
    /// Its rows.
    pub rows: Count,
}

/// Single anchor rows over all checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowsDrift {
    /// Rows whose new score is another than the recorded one.
    pub changed: Count,
    /// Rows that left their state in control.
    pub drifting: Count,
    /// Rows.
    pub rows: Count,
    /// The row with the smallest p.
    pub worst: RowId,
    /// Its chart, among those of all rows.
    pub worst_charted: ResidualChart,
}

/// What a check says, by what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftVerdicts {
    /// Anchors are still ranked as they were.
    pub ranks: Verdict,
    /// No policy and no row left its state in control.
    pub residuals: Verdict,
    /// The judge is the one that was registered, and every score since says so.
    pub version: Verdict,
}

impl DriftVerdicts {
    /// The verdict of the whole: the worst; a version that nobody could look at is left out of it.
    pub fn whole(self) -> Verdict {
        let version = match self.version {
            Verdict::NotChecked => Verdict::Pass,
            said => said,
        };
        let all = [self.ranks, self.residuals, version];
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Fail => 0,
            Verdict::Inconclusive => 1,
            Verdict::NotChecked => 2,
            Verdict::Pass => 3,
        };
        all.into_iter().min_by_key(rank).unwrap_or(Verdict::Fail)
    }
}

/// A judge scored its anchors anew. A failed check makes the open gates of that judge stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeDriftChecked {
    /// Merkle root of the ids of all anchor rows, ascending.
    pub anchor_rows_root: Root,
    /// The anchor set.
    pub anchors: AnchorSetId,
    /// What the judge says it is now; absent where its scores were handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<JudgeVersion>,
    /// The program that computed it.
    pub build: Text,
    /// The judge.
    pub judge: JudgeId,
    /// Tau-b of recorded and new scores; absent where either are all alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kendall_tau: Option<Finite>,
    /// Two-sided p of tau 0, not of an unchanged ranking: it rescues no low tau.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// Both anchor policies, by name.
    pub policies: Vec<PolicyDrift>,
    /// Single rows.
    pub rows: RowsDrift,
    /// The new scores in millionths, row by row in the order of the root.
    pub scores_micro: Vec<Micro>,
    /// How it was judged.
    pub terms: DriftTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Scores of this judge since its registration that do not name it.
    pub unversioned: Count,
    /// What it says.
    pub verdicts: DriftVerdicts,
}
