//! A plan of a judge behind HTTP as a person writes it.
//!
//! What the file leaves out is as this program has it; what it says otherwise is refused, so that no member is dropped silently.
//! The plan that is kept on record can be read back as such a file.

use clover_event::id::EndpointId;
use clover_event::id::JudgeId;
use clover_ground::yaml::Document;
use clover_ground::yaml::YamlError;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::judged::AnswerForm;
use crate::ask::judged::JudgePlan;
use crate::ask::judged::JudgePlanError;

/// Most tokens of an answer, where a plan says nothing else.
pub const OUTPUT_USUAL: u64 = 600;
/// Levels, where a plan says nothing else.
pub const LEVELS_USUAL: [i64; 5] = [1, 2, 3, 4, 5];

/// Scores that have to come out the same.
const EXACT: &str = "exact";

/// Why a file is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanFileError {
    /// A member says what this program does not do.
    #[error("{member}: expected {expected}, found {found}")]
    Member {
        /// The member.
        member: String,
        /// What this program does.
        expected: String,
        /// What the file says.
        found: String,
    },
    /// The plan is none.
    #[error(transparent)]
    Plan(#[from] JudgePlanError),
    /// The file cannot be read.
    #[error("{0}")]
    Yaml(String),
}

impl From<YamlError> for PlanFileError {
    fn from(error: YamlError) -> Self {
        Self::Yaml(error.to_string())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FileDecoding {
    max_output_tokens: Option<u64>,
    seed: Option<String>,
    temperature_micro: Option<u64>,
}

/// How much scores may waver: `exact`, which is the usual, or a standard deviation.
#[derive(Deserialize)]
#[serde(untagged)]
enum FileDeterminism {
    Noise { noise_sd_max_micro: u64 },
    Word(String),
}

#[derive(Deserialize)]
struct PlanFile {
    answer: Option<String>,
    #[serde(default)]
    decoding: FileDecoding,
    determinism: Option<FileDeterminism>,
    endpoint: EndpointId,
    judge: JudgeId,
    levels: Option<Vec<i64>>,
    model: String,
    pin: Option<String>,
    reasoning: Option<String>,
    #[serde(rename = "plan")]
    _version: String,
}

/// Reads a plan.
///
/// # Errors
/// [`PlanFileError`].
///
/// # Panics
/// Never: a plan that is kept is JSON.
pub fn read(bytes: &[u8]) -> Result<JudgePlan, PlanFileError> {
    let document = Document::parse(bytes)?;
    let file: PlanFile = document.decode()?;
    let mut said: Value = document.decode()?;
    let noise = match file.determinism {
        Some(FileDeterminism::Noise { noise_sd_max_micro }) => Some(noise_sd_max_micro),
        Some(FileDeterminism::Word(word)) if word == EXACT => {
            // The usual is not kept.
            if let Value::Object(members) = &mut said {
                members.remove("determinism");
            }
            None
        }
        Some(FileDeterminism::Word(_)) | None => None,
    };
    let plan = JudgePlan {
        answer: answer(file.answer.as_deref())?,
        endpoint: file.endpoint,
        judge: file.judge,
        levels: file.levels.unwrap_or_else(|| LEVELS_USUAL.to_vec()),
        max_output_tokens: file.decoding.max_output_tokens.unwrap_or(OUTPUT_USUAL),
        pin: file.pin.unwrap_or_else(|| file.model.clone()),
        model: file.model,
        noise_sd_max_micro: noise,
        reasons: file.reasoning.as_deref() != Some("none"),
        repeat: None,
        seeded: file.decoding.seed.as_deref() == Some("derived"),
        temperature_micro: file.decoding.temperature_micro,
    };
    plan.check()?;
    let kept = serde_json::from_slice(&plan.to_bytes()).expect("BUG: a kept plan is JSON");
    held_to(&said, &kept, "")?;
    Ok(plan)
}

/// What makes the score.
fn answer(word: Option<&str>) -> Result<AnswerForm, PlanFileError> {
    let Some(word) = word else {
        return Ok(AnswerForm::default());
    };
    AnswerForm::of(word).ok_or_else(|| PlanFileError::Member {
        member: "answer".to_owned(),
        expected: format!(
            "{} or {}",
            AnswerForm::Json.as_str(),
            AnswerForm::Logprob.as_str()
        ),
        found: word.to_owned(),
    })
}

/// Whether whatever a file says is what is kept.
fn held_to(said: &Value, kept: &Value, path: &str) -> Result<(), PlanFileError> {
    let (Value::Object(members), Value::Object(known)) = (said, kept) else {
        if said == kept {
            return Ok(());
        }
        return Err(PlanFileError::Member {
            member: path.to_owned(),
            expected: kept.to_string(),
            found: said.to_string(),
        });
    };
    for (name, value) in members {
        let place = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let Some(known) = known.get(name) else {
            return Err(PlanFileError::Member {
                member: place,
                expected: "no such member".to_owned(),
                found: value.to_string(),
            });
        };
        held_to(value, known, &place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clover_num::Count;

    use super::*;

    const SHORT: &str = "plan: judge_plan/1\njudge: helpful-1\nendpoint: sim\nmodel: m-1\n";

    #[test]
    fn a_plan_that_is_kept_is_read_back_as_it_was() {
        let plan = read(SHORT.as_bytes()).unwrap();
        assert_eq!((plan.pin.as_str(), plan.levels.len()), ("m-1", 5));
        assert_eq!(read(&plan.to_bytes()).unwrap(), plan);
        let more = format!("{SHORT}decoding: {{seed: derived, temperature_micro: 0}}\n");
        let seeded = read(more.as_bytes()).unwrap();
        assert!(seeded.seeded && seeded.temperature_micro == Some(0));
        assert_eq!(read(&seeded.to_bytes()).unwrap(), seeded);
        let weighed = read(format!("{SHORT}answer: logprob\n").as_bytes()).unwrap();
        assert_eq!(weighed.weighed_levels().map(Count::value), Some(5));
        assert_eq!(read(&weighed.to_bytes()).unwrap(), weighed);
        let noisy = format!("{SHORT}determinism: {{noise_sd_max_micro: 60000}}\nreasoning: none\n");
        let noisy = read(noisy.as_bytes()).unwrap();
        assert_eq!(
            (noisy.noise_sd_max_micro, noisy.reasons),
            (Some(60_000), false)
        );
        assert_eq!(read(&noisy.to_bytes()).unwrap(), noisy);
        let exact = format!("{SHORT}determinism: exact\n");
        assert_eq!(read(exact.as_bytes()).unwrap(), plan);
        let tens = format!("{SHORT}answer: logprob\nlevels: [0, 10]\n");
        let refused = read(tens.as_bytes()).unwrap_err();
        assert_eq!(refused, PlanFileError::Plan(JudgePlanError::Digits));
    }

    #[test]
    fn what_this_program_does_not_do_is_refused_and_never_dropped() {
        for (more, member) in [
            ("mode: pairwise\n", "mode"),
            ("asks: {repeats: 3}\n", "asks.repeats"),
            ("guards: {fence: false}\n", "guards.fence"),
            ("decoding: {top_p: 1}\n", "decoding.top_p"),
            ("decoding: {seed: 7}\n", ""),
            ("decoding: {seed: fixed}\n", "decoding.seed"),
            ("cache: yes\n", "cache"),
            ("answer: line\n", "answer"),
            ("determinism: mostly\n", "determinism"),
            ("reasoning: after\n", "reasoning"),
        ] {
            let text = format!("{SHORT}{more}");
            match read(text.as_bytes()).unwrap_err() {
                PlanFileError::Member { member: found, .. } => assert_eq!(found, member, "{more}"),
                PlanFileError::Yaml(_) => assert_eq!(member, "", "{more}"),
                error @ PlanFileError::Plan(_) => panic!("{more}: {error}"),
            }
        }
        let other = SHORT.replace("judge_plan/1", "judge_plan/2");
        assert!(read(other.as_bytes()).is_err());
    }
}
