//! What the gradient agent is told, and what it answers with.
//!
//! A [`GradientRequest`] holds the prompt and numbers: no other member can hold a text.

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;

use crate::model::JudgePrompt;
use crate::normal;
use crate::patch;
use crate::patch::AnswerFault;

/// Most items of a gradient.
pub const ITEMS_MAX: usize = 5;
/// Most Unicode scalars of an attribution.
pub const ATTRIBUTION_MAX: u64 = 280;
/// Cells with fewer rows are suppressed.
pub const CELL_MIN: u32 = 5;

/// A number rounded to two decimals, in hundredths; in JSON a decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hundredths(pub i32);

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}

impl<'de> Deserialize<'de> for Hundredths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)? * 100.0;
        let near = value.round();
        #[expect(clippy::cast_possible_truncation, reason = "its magnitude is checked")]
        let hundredths = near as i32;
        if (value - near).abs() > 1e-6 || near.abs() > 1e9 {
            return Err(D::Error::custom("expected a number with two decimals"));
        }
        Ok(Self(hundredths))
    }
}

/// A class of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ErrorClass {
    /// Judged too high.
    A,
    /// Judged too low.
    B,
    /// Judged right.
    C,
}

impl ErrorClass {
    /// All of them, in the order of a request.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];
}

/// What is said of a class of errors; the numbers are absent where the class has fewer than five rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassNumbers {
    /// Mean subscores of the judge by axis, in the order of the prompt's axes; empty where the judge gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axis_means: Vec<Option<Hundredths>>,
    /// Rows; absent where they are fewer than five.
    pub count: Option<u32>,
    /// Mean of judged less human, in normalised scores.
    pub mean_r: Option<Hundredths>,
    /// Its quantiles 0, 1/4, 1/2, 3/4 and 1 (type 7).
    pub quantiles: Option<[Hundredths; 5]>,
    /// Its standard deviation (n - 1).
    pub sd_r: Option<Hundredths>,
    /// Mean variance between repeats.
    pub selfvar: Option<Hundredths>,
}

/// Terms of the loss on the batch, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossNumbers {
    /// Absolute errors over those of the constant median.
    pub abs: Hundredths,
    /// Instability over that of step 0.
    pub instability: Hundredths,
    /// The weighted sum.
    pub loss: Hundredths,
    /// Share of answers that could not be read.
    pub parse_failures: Hundredths,
    /// The rank loss; absent where the batch has no pair.
    pub rank: Option<Hundredths>,
    /// The penalty for contraction.
    pub spread: Hundredths,
}

/// What the gradient agent is told: the prompt, and aggregates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientRequest {
    /// Numbers of the classes A, B and C.
    pub class_stats: [ClassNumbers; 3],
    /// Terms of the loss.
    pub loss_terms: LossNumbers,
    /// The rate of the step, in millionths.
    pub lr: Micro,
    /// The digest of the gradient before; absent at the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_gradient_digest: Option<Digest>,
    /// The prompt in force.
    pub prompt: JudgePrompt,
    /// The step, from 0.
    pub step: u32,
    /// Rows by fifth of the human scale, each by whether the judge was too high, too low or neither; absent where they are
    /// fewer than five.
    pub table: [[Option<u32>; 3]; 5],
}

impl GradientRequest {
    /// Its canonical JSON: what leaves for the agent, byte for byte.
    ///
    /// # Panics
    /// Never: texts and integers have a canonical form.
    pub fn to_json(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: texts and integers have a canonical form")
    }

    /// SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.to_json())
    }
}

/// What is to become of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Demand more.
    Tighten,
    /// Demand less.
    Loosen,
    /// Say the same more clearly.
    Clarify,
    /// Shift weight between what is said.
    Rebalance,
    /// Leave it.
    Keep,
}

/// One line of a gradient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientItem {
    /// What the errors of the class have in common, in general terms; at most 280 characters.
    pub attribution: String,
    /// The class.
    pub class: ErrorClass,
    /// How sure the agent is, 0 to 1, in millionths.
    pub confidence: Micro,
    /// What is to become of the section.
    pub direction: Direction,
    /// The section.
    pub target_section: String,
}

/// What the gradient agent answers with: a direction of descent, not an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gradient {
    /// Sections to leave as they are, from class C.
    pub anchors: Vec<String>,
    /// Its lines, at most five.
    pub items: Vec<GradientItem>,
    /// The step, from 0.
    pub step: u32,
}

/// Why an answer is no gradient of a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GradientFault {
    /// Another step.
    #[error("step: expected {expected}")]
    Step {
        /// The step that was asked for.
        expected: u32,
    },
    /// More than [`ITEMS_MAX`] items.
    #[error("items: expected at most {ITEMS_MAX}, found {found}")]
    Items {
        /// How many there are.
        found: usize,
    },
    /// A section that the prompt does not have, or names of one twice.
    #[error("{path}: expected a section of the prompt, each anchor once")]
    Section {
        /// The field.
        path: String,
    },
    /// An attribution that is too long or not in normal form.
    #[error("{path}: expected at most {ATTRIBUTION_MAX} characters in normal form, on one line")]
    Attribution {
        /// The field.
        path: String,
    },
    /// A confidence outside 0 to 1.
    #[error("{path}: expected 0 to 1")]
    Confidence {
        /// The field.
        path: String,
    },
}

impl Gradient {
    /// SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        Digest::sha256(&self.to_json())
    }

    /// Reads a gradient from untrusted bytes: JSON with these members and no others. [`Gradient::check`] holds it against
    /// its prompt.
    ///
    /// # Errors
    /// [`AnswerFault`] saying why they are none.
    pub fn from_json(bytes: &[u8]) -> Result<Self, AnswerFault> {
        patch::read(bytes)
    }

    /// Its canonical JSON.
    ///
    /// # Panics
    /// Never: texts and integers have a canonical form.
    pub fn to_json(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: texts and integers have a canonical form")
    }

    /// Whether it is a gradient of a prompt at a step.
    ///
    /// # Errors
    /// [`GradientFault`] with the first field that is wrong.
    pub fn check(&self, prompt: &JudgePrompt, step: u32) -> Result<(), GradientFault> {
        if self.step != step {
            return Err(GradientFault::Step { expected: step });
        }
        if self.items.len() > ITEMS_MAX {
            return Err(GradientFault::Items {
                found: self.items.len(),
            });
        }
        for (at, item) in self.items.iter().enumerate() {
            let path = |field: &str| format!("items[{at}].{field}");
            if prompt.section(&item.target_section).is_none() {
                return Err(GradientFault::Section {
                    path: path("target_section"),
                });
            }
            let text = &item.attribution;
            let is_line = normal::check(text).is_ok() && !text.contains('\n');
            if !is_line || normal::scalars(text) > ATTRIBUTION_MAX {
                return Err(GradientFault::Attribution {
                    path: path("attribution"),
                });
            }
            if !(0..=1_000_000).contains(&item.confidence.value()) {
                return Err(GradientFault::Confidence {
                    path: path("confidence"),
                });
            }
        }
        for (at, anchor) in self.anchors.iter().enumerate() {
            if prompt.section(anchor).is_none() || self.anchors[..at].contains(anchor) {
                return Err(GradientFault::Section {
                    path: format!("anchors[{at}]"),
                });
            }
        }
        Ok(())
    }

    /// Its lines as one text of at most 280 characters, for a commit.
    pub fn summary(&self) -> String {
        let line = |item: &GradientItem| {
            format!(
                "{}: {} {}",
                canon::word(&item.class),
                canon::word(&item.direction),
                item.target_section
            )
        };
        let all = self.items.iter().map(line).collect::<Vec<_>>().join("; ");
        all.chars().take(280).collect()
    }
}
