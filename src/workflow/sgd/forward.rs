//! Who scores rows under a prompt. A judge that is a program is told the prompt by its line protocol; a judge behind HTTP
//! joins here.

use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_num::Micro;
use clover_rubric::extract;

use crate::import::ImportRow;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;
use crate::judge::simulated;
use crate::judge::simulated::SimulatedJudge;

/// Gives scores under a prompt.
pub trait Forward {
    /// The scores of a row, repeat by repeat, from 0 to 1 in millionths; one that cannot be read is left out.
    ///
    /// # Errors
    /// [`JudgeError`] where the judge cannot be asked; nothing is known of the row then.
    fn scores(
        &mut self,
        prompt: &str,
        row: &ImportRow,
        repeats: u64,
    ) -> Result<Vec<Micro>, JudgeError>;
}

/// Whether a judge is simulated by this program.
pub fn is_simulated(judge: &JudgeRegistered) -> bool {
    let model = judge.model.as_str();
    judge.port == JudgePort::Builtin && [simulated::MODEL, simulated::NULL_MODEL].contains(&model)
}

fn texts(row: &ImportRow) -> Result<(&str, &str), JudgeError> {
    let both = row.prompt.as_deref().zip(row.response.as_deref());
    both.ok_or(JudgeError::Missing)
}

/// A simulated judge.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedForward {
    /// Whether nothing improves it.
    pub is_null: bool,
}

impl Forward for SimulatedForward {
    fn scores(
        &mut self,
        prompt: &str,
        row: &ImportRow,
        repeats: u64,
    ) -> Result<Vec<Micro>, JudgeError> {
        let (question, response) = texts(row)?;
        let judge = SimulatedJudge::told(prompt, self.is_null);
        let all = (0..repeats).map(|repeat| judge.score(question, response, repeat));
        Ok(all.collect())
    }
}

/// Any other judge, told the prompt before it is asked.
pub struct ToldForward {
    judge: Box<dyn Judge + Send>,
    told: Option<String>,
}

impl std::fmt::Debug for ToldForward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToldForward")
    }
}

impl ToldForward {
    /// Over a judge that is ready to be asked.
    pub fn new(judge: Box<dyn Judge + Send>) -> Self {
        Self { judge, told: None }
    }
}

impl Forward for ToldForward {
    fn scores(
        &mut self,
        prompt: &str,
        row: &ImportRow,
        repeats: u64,
    ) -> Result<Vec<Micro>, JudgeError> {
        let (question, response) = texts(row)?;
        if self.told.as_deref() != Some(prompt) {
            self.judge.tell(prompt);
            self.told = Some(prompt.to_owned());
        }
        let source = extract::Source {
            prompt: question,
            response,
            ..extract::Source::default()
        };
        let evidence = extract::extract(&source);
        let query = JudgeQuery {
            item: &row.item,
            policy: &row.policy,
            draw: row.draw,
            prompt: question,
            response,
            evidence: &evidence,
        };
        let mut scores = Vec::new();
        for _ in 0..repeats {
            match self.judge.score(&query) {
                Ok(score) => scores.push(score),
                // What cannot be read, or is declined, is an outcome.
                Err(
                    JudgeError::Answer(_) | JudgeError::OffScale { .. } | JudgeError::Declined(_),
                ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(scores)
    }
}
