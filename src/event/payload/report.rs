//! Reports that were given out.

use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::IterationId;
use crate::id::Text;
use crate::payload::BlobRef;

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident = $word:literal, $title:literal;)*) => {
        /// A part of the report of an iteration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ReportPart {
            $($(#[$doc])* $part,)*
        }

        impl ReportPart {
            /// Every part, in the order of their words.
            pub const ALL: &[Self] = &[$(Self::$part,)*];

            /// The word in events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$part => $word,)* }
            }

            /// Its heading.
            pub fn title(self) -> &'static str {
                match self { $(Self::$part => $title,)* }
            }
        }
    };
}

parts! {
    /// The assumptions ledger.
    Assumptions = "assumptions", "Assumptions";
    /// Accounts, and what is left in them.
    Budgets = "budgets", "Budgets";
    /// Errors of the calibrated judge before and after, and its curve.
    Calibration = "calibration", "Calibration before and after";
    /// Code length of patches, size of the rubric, rules that never fire.
    Complexity = "complexity", "Complexity";
    /// What was decided of whom.
    Decision = "decision", "Decision";
    /// What patches change.
    Diffs = "diffs", "Changes to the rubric";
    /// Uplift of attacks, and exploits.
    Gaming = "gaming", "Attacks";
    /// Every gate with its thresholds.
    Gates = "gates", "Gates";
    /// How rows came to be labelled.
    Labels = "labels", "Labels";
    /// Residuals, drawn.
    Residuals = "residuals", "Residuals";
    /// Slices that cost most.
    Segments = "segments", "Negative segments";
    /// Slices before and after.
    Slices = "slices", "Slices";
    /// What is estimated, and what holds its scale.
    Target = "target", "Target and anchors";
    /// Residuals by environment.
    Transport = "transport", "Transport";
    /// The calibrator's share of the variance.
    Uncertainty = "uncertainty", "Calibration uncertainty";
    /// Policy values.
    Values = "values", "Policy values";
    /// What every number depends on.
    Versions = "versions", "Version tuple";
}

impl std::fmt::Display for ReportPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that a part of a report does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportGap {
    /// The part.
    pub part: ReportPart,
    /// What it does not show.
    pub what: Text,
    /// Why.
    pub why: Text,
}

/// What a report is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReportLayout {
    /// What entries say, and what is computed from the rows that the iteration read.
    Rows,
}

/// The report of an iteration was given out. `schema/REPORT.md` gives the bundle and its digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportPublished {
    /// Digest of its table of assumptions.
    pub assumptions_digest: Digest,
    /// The program that wrote it.
    pub build: Text,
    /// The bundle: canonical JSON.
    pub bundle: BlobRef,
    /// Digest of the bundle.
    pub bundle_hash: Digest,
    /// What it does not show, in its order.
    pub gaps: Vec<ReportGap>,
    /// The iteration.
    pub iteration: IterationId,
    /// What it is made of; absent where it is what entries say and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<ReportLayout>,
    /// Parts that show anything, in the order of their words.
    pub present: Vec<ReportPart>,
    /// The last entry that was read.
    pub through_seq: Count,
}
