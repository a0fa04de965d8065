//! A hypothesis: the rubric that one or two patches give, and what the judge answers who is told so.

use std::sync::Arc;

use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_projection::decisions::GRAMMARS;
use clover_projection::decisions::composite_of;
use clover_projection::iterations::record::IterationRecord;
use clover_rubric::Rubric;

use crate::iterate::course::CourseError;
use crate::iterate::rows::Answers;
use crate::iterate::rows::IterationDataset;
use crate::patches::Bench;
use crate::prompts;
use crate::prompts::JudgePrompt;

/// A hypothesis: one patch, or two together.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Hash of the patch, or of the composite.
    pub hash: Digest,
    /// The patches by hash, ascending.
    pub patches: Vec<Digest>,
    /// Code length: the sum of theirs.
    pub kappa: u64,
    /// The rubric that results.
    pub rubric: Rubric,
    /// Whether grammar, family and re-score class hold.
    pub valid: bool,
    /// Whether it was written from published inputs alone.
    pub declared: bool,
    /// What the judge is to be told, where the patches change it.
    pub prompt: Option<JudgePrompt>,
    /// What the judge answered who was told so; `None` where nobody was asked.
    pub answers: Option<Arc<Answers>>,
    /// Whether grammar and family hold.
    is_sound: bool,
}

impl Hypothesis {
    /// A hypothesis of some proposed patches, each on what those before it give.
    ///
    /// # Errors
    /// [`CourseError::Candidate`] for patches that are none of this rubric.
    pub fn of(
        loaded: &IterationDataset,
        record: &IterationRecord,
        patches: &[&PatchProposed],
    ) -> Result<Self, CourseError> {
        let hashes: Vec<Digest> = patches.iter().map(|patch| patch.patch_hash).collect();
        let mut sorted = hashes.clone();
        sorted.sort_unstable();
        let mut found = Self {
            hash: composite_of(&hashes),
            patches: sorted,
            kappa: 0,
            rubric: loaded.rubric.clone(),
            valid: true,
            declared: true,
            prompt: None,
            answers: None,
            is_sound: true,
        };
        for patch in patches {
            let bench = Bench::under(&loaded.plan, found.rubric.clone());
            let bench =
                bench.ok_or_else(|| CourseError::Candidate("a plan without design".to_owned()))?;
            let checked = bench.check(patch.yaml.as_str().as_bytes(), None);
            let (_, checked) = checked.map_err(|fault| {
                CourseError::Candidate(format!("patch {}: {fault}", patch.patch))
            })?;
            found.is_sound &= checked.hash == patch.patch_hash;
            found.valid &= checked.needs_rescore != Some(true);
            found.kappa += patch.length.kappa.value();
            found.rubric = checked.rubric;
            found.declared &= is_declared(loaded, record, patch);
        }
        found.valid &= found.is_sound;
        let told = |rubric| prompts::rendered(rubric, Some(&loaded.plan));
        let prompt = told(&found.rubric);
        found.prompt = (prompt.hash != told(&loaded.rubric).hash).then_some(prompt);
        Ok(found)
    }

    /// The judge that is asked anew: that of the iteration, told what the patches change. `None` where they change nothing
    /// that it is told, or it is no program.
    pub fn judge(&self, loaded: &IterationDataset) -> Option<JudgeRegistered> {
        let prompt = self.prompt.as_ref()?;
        let judge = loaded.registered.as_ref()?;
        let can_be_told = judge.port == JudgePort::Command;
        let told = can_be_told.then(|| judge.told(prompts::reference(&prompt.text), prompt.hash));
        told.flatten()
    }

    /// The judge that was asked anew, and the last entry that its answers are read from, where scores under the hypothesis
    /// are on record: up to the unsealing of confirm, nothing after it.
    ///
    /// # Errors
    /// [`CourseError::Candidate`] where those scores are of another judge.
    pub fn asked(
        &self,
        loaded: &IterationDataset,
        record: &IterationRecord,
    ) -> Result<Option<(JudgeRegistered, u64)>, CourseError> {
        let mut recomputed = record.recomputed.iter();
        let said = recomputed.find(|of| of.said.candidate == self.hash);
        let Some((said, named)) = said.and_then(|of| Some((of, of.said.judge.as_ref()?))) else {
            return Ok(None);
        };
        let judge = self.judge(loaded).filter(|judge| judge.judge == *named);
        let stands = judge.filter(|judge| record.judges.contains(judge));
        let judge = stands.ok_or_else(|| {
            CourseError::Candidate(format!("scores of {named}, which was told something else"))
        })?;
        let unsealed = record.unsealed.as_ref().map_or(0, |of| of.seq);
        Ok(Some((judge, said.seq.max(unsealed))))
    }

    /// It on the answers of the judge that was asked anew.
    #[must_use]
    pub fn on(self, answers: Arc<Answers>) -> Self {
        Self {
            valid: self.is_sound,
            answers: Some(answers),
            ..self
        }
    }
}

/// Whether a patch names no input but the rubric and cards of the iteration, receipts and grammars.
fn is_declared(loaded: &IterationDataset, record: &IterationRecord, patch: &PatchProposed) -> bool {
    let rubric = loaded.rubric.hash();
    patch.inputs.iter().all(|input| {
        let mut cards = record.cards.iter();
        let mut receipts = record.receipts.iter();
        *input == rubric
            || GRAMMARS
                .iter()
                .any(|name| Digest::sha256(name.as_bytes()) == *input)
            || receipts.any(|receipt| receipt.id.0 == *input)
            || cards.any(|card| card.said.public_digest == *input)
    })
}
