//! What programs answered while a battery was run, kept in the order of asks. That order follows from the iteration, the seeds
//! and the answers, so nothing of a text is kept, and a replay asks nobody.

use clover_ground::canon;
use clover_num::Micro;
use clover_rubric::evidence::Feature;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;

use crate::judge::Answer;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;
use crate::judge::fields::ReturnedEvidence;

/// An answer of a program: a base score, and what it found that rubrics read; neither where it declined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptAnswer {
    /// The base score; absent where the program declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    b_micro: Option<Micro>,
    /// Features that the program returned; absent where it returned none.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    features: ReturnedEvidence,
}

impl KeptAnswer {
    /// Of what a program answered; `None` where it failed, for then no battery is recorded.
    pub fn of(answer: &Result<Answer, JudgeError>) -> Option<Self> {
        match answer {
            Ok(answer) => {
                let said = answer.evidence.iter().flatten();
                let features = said.filter(|(name, _)| Feature::named(name).is_some());
                Some(Self {
                    b_micro: Some(answer.score),
                    features: features
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect(),
                })
            }
            Err(JudgeError::Declined(_)) => Some(Self {
                b_micro: None,
                features: Map::new(),
            }),
            Err(_) => None,
        }
    }
}

/// Canonical lines of answers, each with its newline.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn lines(answers: &[KeptAnswer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for answer in answers {
        let line = canon::to_bytes(answer).expect("BUG: counts and flags have a canonical form");
        bytes.extend(line);
        bytes.push(b'\n');
    }
    bytes
}

/// Reads lines back.
///
/// # Errors
/// What is wrong, with its line.
fn parse(bytes: &[u8]) -> Result<Vec<KeptAnswer>, String> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let answers = lines.map(|(at, line)| {
        let answer: KeptAnswer =
            serde_json::from_slice(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        let is_score = answer
            .b_micro
            .is_none_or(|score| (0..=1_000_000).contains(&score.value()));
        is_score
            .then_some(answer)
            .ok_or_else(|| format!("line {}: b_micro is no score", at + 1))
    });
    answers.collect()
}

/// A program in a replay: it gives the answers that it gave.
#[derive(Debug, Default)]
pub struct ReplayedAnswers {
    left: std::vec::IntoIter<KeptAnswer>,
    lacks: bool,
}

impl ReplayedAnswers {
    /// From the lines on record.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn of(bytes: &[u8]) -> Result<Self, String> {
        let left = parse(bytes)?.into_iter();
        Ok(Self { left, lacks: false })
    }

    /// Whether each answer was asked for, and none lacked.
    pub fn is_spent(&self) -> bool {
        !self.lacks && self.left.as_slice().is_empty()
    }
}

impl Judge for ReplayedAnswers {
    fn answer(&mut self, _: &JudgeQuery<'_>) -> Result<Answer, JudgeError> {
        let Some(answer) = self.left.next() else {
            self.lacks = true;
            return Err(JudgeError::Missing);
        };
        let declined = || JudgeError::Declined("on record".to_owned());
        let score = answer.b_micro.ok_or_else(declined)?;
        let features = answer.features;
        Ok(Answer {
            evidence: (!features.is_empty()).then_some(features),
            ..Answer::of(score)
        })
    }
}

#[cfg(test)]
mod tests {
    use clover_num::Count;
    use clover_rubric::evidence::Evidence;
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn kept(score: i64, evidence: Option<Value>) -> Answer {
        Answer {
            evidence: evidence.and_then(|of| of.as_object().cloned()),
            ..Answer::of(Micro::new(score).unwrap())
        }
    }

    fn ask(judge: &mut ReplayedAnswers) -> Result<Answer, JudgeError> {
        judge.answer(&JudgeQuery {
            item: &"item-1".parse().unwrap(),
            policy: &"base".parse().unwrap(),
            draw: Count::new(0).unwrap(),
            prompt: "why?",
            response: "so",
            evidence: &Evidence::default(),
        })
    }

    #[test]
    fn a_program_answers_in_a_replay_what_it_answered() {
        let said = [
            Ok(kept(520_000, None)),
            Err(JudgeError::Declined("too long".to_owned())),
            Ok(kept(
                1,
                Some(json!({"concise": true, "quote": "a text that is private"})),
            )),
        ];
        let answers: Vec<KeptAnswer> = said.iter().filter_map(KeptAnswer::of).collect();
        let bytes = lines(&answers);
        let expected =
            "{\"b_micro\":520000}\n{}\n{\"b_micro\":1,\"features\":{\"concise\":true}}\n";
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        let mut judge = ReplayedAnswers::of(&bytes).unwrap();
        assert_eq!(ask(&mut judge).unwrap().score.value(), 520_000);
        assert!(matches!(ask(&mut judge), Err(JudgeError::Declined(_))));
        assert!(!judge.is_spent());
        let last = ask(&mut judge).unwrap().evidence.unwrap();
        assert_eq!(Value::Object(last), json!({"concise": true}));
        assert!(judge.is_spent());
        // A replay that asks more than was asked is none.
        assert_eq!(ask(&mut judge), Err(JudgeError::Missing));
        assert!(!judge.is_spent());
        assert_eq!(KeptAnswer::of(&Err(JudgeError::Late(1))), None);
        let beyond = ReplayedAnswers::of(b"{\"b_micro\":1000001}\n").unwrap_err();
        assert_eq!(beyond, "line 1: b_micro is no score");
    }
}
