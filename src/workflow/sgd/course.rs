//! What follows from the record of a run: prompts, losses, batches, requests, verdicts, steps, ends. Whoever goes on with a
//! run says it, and the rule `sgd` holds what was said against it.

use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd::SgdLoss;
use clover_event::payload::sgd::SgdLossComputed;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdTerms;
use clover_event::payload::sgd::SgdTestRead;
use clover_event::payload::sgd_steps::SgdBatchDrawn;
use clover_event::payload::sgd_steps::SgdCheckpointSelected;
use clover_event::payload::sgd_steps::SgdGradientRequested;
use clover_event::payload::sgd_steps::SgdMeasured;
use clover_event::payload::sgd_steps::SgdReverted;
use clover_event::payload::sgd_steps::SgdStepCommitted;
use clover_event::payload::sgd_steps::SgdStopTriggered;
use clover_event::payload::synth_runs::LeakTest;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_num::Count;
use clover_num::Finite;
use clover_projection::sgd::RowScores;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdStep;
use clover_projection::sgd::draws::parts_seed;
use clover_projection::sgd::rules::rows_root;
use clover_prompt::Gradient;
use clover_prompt::JudgePrompt;
use clover_prompt::PatchTerms;
use clover_prompt::Schedule;

use crate::sgd::agents::PatchAsk;
use crate::sgd::numbers;
use crate::sgd::verdict::PatchVerdict;
use crate::sgd::verdict::proposal;

/// A run with its prompts.
#[derive(Clone, Debug)]
pub struct SgdCourse<'r> {
    pub(super) run: &'r SgdRun,
    /// Prompt 0, and the prompt after each step that was taken.
    prompts: Vec<JudgePrompt>,
    pub(super) terms: PatchTerms,
}

pub(super) fn unmet(expected: &str, found: impl Into<String>) -> Unmet {
    Unmet {
        expected: expected.to_owned(),
        found: found.into(),
    }
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

pub(super) fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

pub(super) fn text(value: &str) -> Text {
    Text::new(value).unwrap_or_else(|| Text::new("none").expect("BUG: a word is a text"))
}

/// What bounds the steps of a run.
pub fn patch_terms(terms: &SgdTerms) -> PatchTerms {
    PatchTerms {
        schedule: Schedule {
            lr_max: terms.lr_max_micro,
            lr_min: terms.lr_min_micro,
            steps: small(terms.steps.value()),
            tau: terms.tau_micro,
            warmup: small(terms.warmup.value()),
        },
        ..PatchTerms::default()
    }
}

/// The seed of the splits of a run's experiment.
///
/// # Errors
/// [`Unmet`] where the experiment is not registered.
pub fn splits_seed(state: &State, run: &SgdRun) -> Result<Digest, Unmet> {
    let seed = parts_seed(state, &run.experiment, run.said.beacon);
    seed.required("experiment.registered of the experiment")
}

/// A gradient, as canonical JSON.
///
/// # Errors
/// [`Unmet`] where it is none, or too long.
pub fn gradient(text: &str) -> Result<SgdDocument, Unmet> {
    let read: Gradient =
        serde_json::from_str(text).map_err(|error| unmet("a gradient", error.to_string()))?;
    let bytes = canon::to_bytes(&read).map_err(|error| unmet("a gradient", error.to_string()))?;
    let json = String::from_utf8(bytes).ok().and_then(SgdDocument::new);
    json.ok_or_else(|| unmet("a gradient of at most 32768 bytes", "a longer one"))
}

pub use clover_projection::sgd::asked_scores::unscored;

/// The step that scores of a part are said of.
pub fn step_of(run: &SgdRun, part: SgdPart) -> u64 {
    if part == SgdPart::Base {
        0
    } else {
        run.taken()
    }
}

/// Rows of the batch of a step, in its order.
fn batch_rows<'r>(run: &'r SgdRun, step: &SgdStep) -> Vec<&'r SgdRow> {
    step.batch_rows(run.rows(SgdSplit::Train))
}

impl<'r> SgdCourse<'r> {
    /// Of a run, with every prompt that its steps left.
    ///
    /// # Errors
    /// [`Unmet`] where prompt 0 or a patch that was applied is none.
    pub fn of(run: &'r SgdRun) -> Result<Self, Unmet> {
        let mut course = Self::opened(run)?;
        let mut taken = run.steps.iter().filter(|step| step.committed.is_some());
        taken.try_for_each(|step| course.take(step))?;
        Ok(course)
    }

    fn opened(run: &'r SgdRun) -> Result<Self, Unmet> {
        let prompt0 = JudgePrompt::from_json(run.said.prompt.as_str().as_bytes());
        let prompt0 = prompt0.map_err(|fault| unmet("a prompt", fault.to_string()))?;
        Ok(Self {
            run,
            prompts: vec![prompt0],
            terms: patch_terms(&run.said.terms),
        })
    }

    fn take(&mut self, step: &SgdStep) -> Result<(), Unmet> {
        let next = self.after(step)?;
        self.prompts.push(next);
        Ok(())
    }

    /// The prompts that the steps of a run left, in order, as far as its record gives them.
    pub fn left(run: &'r SgdRun) -> Vec<JudgePrompt> {
        let Ok(mut course) = Self::opened(run) else {
            return Vec::new();
        };
        for step in run.steps.iter().filter(|step| step.committed.is_some()) {
            // A patch that does not apply leaves nothing to go on with.
            if course.take(step).is_err() {
                break;
            }
        }
        course.prompts.split_off(1)
    }

    /// The prompt after a step that was taken.
    fn after(&self, step: &SgdStep) -> Result<JudgePrompt, Unmet> {
        let current = self.standing_before(step)?;
        let attempt = step.committed.as_ref().and_then(|of| of.attempt);
        let Some(attempt) = attempt else {
            return Ok(current.clone());
        };
        let place = usize::try_from(attempt.value()).unwrap_or(usize::MAX);
        let said = step
            .proposed
            .get(place)
            .required("the proposal of a step")?;
        let next = current.applied(&proposal(said)?.patch, self.terms.section_chars_max);
        next.required("a patch that applies")
    }

    /// The prompt that a step edits.
    fn standing_before(&self, step: &SgdStep) -> Result<&JudgePrompt, Unmet> {
        let parent = match (&step.committed, step.proposed.first()) {
            (Some(committed), _) => committed.parent_digest,
            (None, Some(proposed)) => proposed.parent_digest,
            (None, None) => self.run.digest(),
        };
        self.prompt_of(parent)
    }

    fn prompt_of(&self, digest: Digest) -> Result<&JudgePrompt, Unmet> {
        // The newest are asked for most.
        let mut all = self.prompts.iter().rev();
        let found = all.find(|prompt| prompt.digest() == digest);
        found.required("a prompt of the run")
    }

    /// Prompt 0.
    pub fn prompt0(&self) -> &JudgePrompt {
        &self.prompts[0]
    }

    /// The prompt at a place: 0 is prompt 0, and step t stands at t + 1.
    ///
    /// # Errors
    /// [`Unmet`] where no step stands there.
    pub fn prompt_at(&self, place: u64) -> Result<&JudgePrompt, Unmet> {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        self.prompts.get(place).required("a step at that place")
    }

    /// The prompt that stands.
    ///
    /// # Errors
    /// [`Unmet`] where the record has none.
    pub fn current(&self) -> Result<&JudgePrompt, Unmet> {
        self.prompt_of(self.run.digest())
    }

    /// The checkpoint.
    ///
    /// # Errors
    /// [`Unmet`] before it was chosen.
    pub fn chosen(&self) -> Result<JudgePrompt, Unmet> {
        let chosen = self.run.checkpoint.as_ref();
        let chosen = chosen.required("a checkpoint on record")?;
        self.prompt_of(chosen.prompt_digest).cloned()
    }

    /// The prompt under which a part is scored now.
    ///
    /// # Errors
    /// [`Unmet`] where the record has none.
    pub fn scored_prompt(&self, part: SgdPart) -> Result<JudgePrompt, Unmet> {
        match (part, self.run.going()) {
            (SgdPart::Val, Some(_)) => match self.verdict()? {
                PatchVerdict::Valid(patch) => Ok(patch.prompt),
                PatchVerdict::Broken(_) | PatchVerdict::Waits => {
                    Err(unmet("a proposal that is valid", "another"))
                }
            },
            (SgdPart::Confirm | SgdPart::Test, _) => self.chosen(),
            _ => self.current().cloned(),
        }
    }

    pub(super) fn going(&self) -> Result<&'r SgdStep, Unmet> {
        self.run.going().required("a step that goes on")
    }

    /// Variance of repeats under prompt 0, to which later ones are compared.
    fn selfvar(&self) -> Option<f64> {
        self.run.base_loss.map(|of| of.selfvar.value())
    }

    fn loss_of(&self, rows: &[&SgdRow], scores: &RowScores) -> Result<SgdLoss, Unmet> {
        if rows.len() != scores.len() {
            let expected = format!("scores of {} rows", rows.len());
            return Err(unmet(&expected, scores.len().to_string()));
        }
        numbers::loss(self.run, rows, scores, self.selfvar())
    }

    /// The loss of a part as it was scored.
    ///
    /// # Errors
    /// [`Unmet`] before it was scored, or where the numbers give none.
    pub fn loss(&self, part: SgdPart) -> Result<SgdLoss, Unmet> {
        let all = |split| self.run.rows(split).iter().collect::<Vec<_>>();
        match (part, self.run.going()) {
            (SgdPart::Base, _) => self.loss_of(&all(SgdSplit::Train), &self.run.base),
            (SgdPart::Batch, _) => {
                let step = self.going()?;
                self.loss_of(&batch_rows(self.run, step), &step.scores)
            }
            (SgdPart::Val, Some(step)) => self.loss_of(&all(SgdSplit::Val), &step.val_scores),
            (SgdPart::Val, None) => self.loss_of(&all(SgdSplit::Val), &self.run.best_scores),
            (SgdPart::Confirm | SgdPart::Test, _) => {
                Err(unmet("a part whose loss is computed", part.as_str()))
            }
        }
    }

    /// What is said of the loss of a part.
    ///
    /// # Errors
    /// As [`loss`](Self::loss).
    pub fn loss_computed(&self, part: SgdPart) -> Result<SgdLossComputed, Unmet> {
        let prompt_digest = match (part, self.run.going()) {
            (SgdPart::Val, Some(_)) => self.scored_prompt(part)?.digest(),
            (SgdPart::Base | SgdPart::Val, None) => self.run.said.prompt_digest,
            _ => self.run.digest(),
        };
        Ok(SgdLossComputed {
            loss: self.loss(part)?,
            part,
            prompt_digest,
            run: self.run.said.run.clone(),
            step: count(self.run.taken()),
        })
    }

    /// The batch of the next step.
    ///
    /// # Errors
    /// [`Unmet`] where the numbers give none.
    pub fn batch(&self) -> Result<SgdBatchDrawn, Unmet> {
        let drawn = numbers::batch(self.run)?;
        let train = self.run.rows(SgdSplit::Train);
        let rows = drawn.rows.iter().filter_map(|place| train.get(*place));
        Ok(SgdBatchDrawn {
            confusable: count(drawn.confusable),
            high: count(drawn.high),
            low: count(drawn.low),
            root: Root(rows_root(rows)),
            rows: drawn
                .rows
                .iter()
                .map(|place| count(*place as u64))
                .collect(),
            run: self.run.said.run.clone(),
            step: count(self.run.taken()),
        })
    }

    /// The request of the step that goes on; the leak test is left to whoever has the texts.
    ///
    /// # Errors
    /// [`Unmet`] where the record gives none.
    pub fn requested(&self) -> Result<SgdGradientRequested, Unmet> {
        let step = self.going()?;
        let mut before = self.run.steps.iter().rev();
        let before = before.find_map(|of| of.gradient.as_ref());
        let before = before.map(|of| Digest::sha256(of.gradient.as_str().as_bytes()));
        let number = small(self.run.taken());
        let request = numbers::request(
            self.run,
            (&batch_rows(self.run, step), &step.scores),
            (
                self.current()?,
                self.terms.schedule.lr(number),
                number,
                before,
            ),
            self.selfvar(),
        )?;
        let bytes = request.to_json();
        let request_digest = Digest::sha256(&bytes);
        let request = String::from_utf8(bytes).ok().and_then(SgdDocument::new);
        let request = request.required("a request of at most 32768 bytes")?;
        Ok(SgdGradientRequested {
            leak_test: LeakTest::default(),
            request,
            request_digest,
            run: self.run.said.run.clone(),
            step: count(self.run.taken()),
        })
    }

    /// The gradient of the step that goes on.
    ///
    /// # Errors
    /// [`Unmet`] before it was returned, or where it is none of the prompt that stands.
    pub fn gradient(&self) -> Result<Gradient, Unmet> {
        let said = self.going()?.gradient.as_ref();
        let said = said.required("a gradient on record")?;
        self.checked(said.gradient.as_str())
    }

    /// A gradient of the prompt that stands.
    ///
    /// # Errors
    /// [`Unmet`] where it is none.
    pub fn checked(&self, text: &str) -> Result<Gradient, Unmet> {
        let read: Gradient =
            serde_json::from_str(text).map_err(|error| unmet("a gradient", error.to_string()))?;
        let step = small(self.run.taken());
        let checked = read.check(self.current()?, step);
        checked.map_err(|fault| unmet("a gradient of the prompt", fault.to_string()))?;
        Ok(read)
    }

    /// What the optimizer is asked.
    ///
    /// # Errors
    /// [`Unmet`] where the record gives none.
    pub fn ask(&self) -> Result<PatchAsk, Unmet> {
        let step = self.going()?;
        let number = small(self.run.taken());
        let all = self.run.steps.iter().flat_map(|of| &of.proposed);
        let tried = all.filter_map(|of| proposal(of).ok());
        let rejected = step.proposed.iter().zip(&step.rejected);
        let rejected = rejected.map(|(said, _)| {
            let found = self.violations(said);
            found.unwrap_or_default()
        });
        let current = self.current()?;
        Ok(PatchAsk {
            attempt: step.proposed.len() as u64,
            gradient: self.gradient()?,
            lr_micro: self.terms.schedule.lr(number),
            prompt: current.clone(),
            prompt_digest: current.digest().to_hex(),
            rejected: rejected.collect(),
            step: number,
            tau_micro: self.terms.schedule.tau,
            terms: self.terms.clone(),
            tried: tried.collect(),
            prompt0: self.prompt0().clone(),
        })
    }

    /// The step that goes on, as it is taken.
    ///
    /// # Errors
    /// [`Unmet`] where it may not be taken yet.
    pub fn committed(&self) -> Result<SgdStepCommitted, Unmet> {
        let step = self.going()?;
        let number = self.run.taken();
        let train = step.train.required("sgd.loss_computed of the batch")?;
        let parent = self.run.digest();
        let zero = Finite::default();
        let (attempt, measured, new_digest, val, error) = match step.standing() {
            None => (None, None, parent, self.standing_val()?, zero),
            Some(said) => {
                let val = step.val.required("sgd.loss_computed of val")?;
                let PatchVerdict::Valid(patch) = self.verdict()? else {
                    return Err(unmet("a proposal that is valid", "another"));
                };
                let measures = patch.measures;
                let measured = SgdMeasured {
                    chars: count(u64::from(measures.chars)),
                    effective_micro: measures.effective,
                    modal_delta: count(u64::from(measures.levels_moved)),
                    soft_to_hard: count(u64::from(measures.soft_to_hard)),
                };
                let digest = patch.prompt.digest();
                let error = numbers::paired_error(self.run, &step.val_scores)?;
                (Some(said.attempt), Some(measured), digest, val, error)
            }
        };
        let before = self.run.best();
        let best_loss = self.run.val_at(before).required("a loss of val")?;
        let is_best = val.loss < best_loss.loss;
        Ok(SgdStepCommitted {
            attempt,
            best: count(if is_best { number + 1 } else { before }),
            error,
            lr_micro: self.terms.schedule.lr(small(number)),
            measured,
            new_digest,
            parent_digest: parent,
            run: self.run.said.run.clone(),
            step: count(number),
            summary: text(&self.gradient()?.summary()),
            train,
            val,
        })
    }

    /// Loss of val under the prompt that stands.
    fn standing_val(&self) -> Result<SgdLoss, Unmet> {
        let taken = self.run.taken();
        let last = taken.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let last = last.and_then(|at| self.run.steps.get(at));
        let place = last.and_then(|step| step.reverted.as_ref());
        let place = place.map_or(taken, |of| of.best.value());
        self.run.val_at(place).required("a loss of val")
    }

    /// Whether the prompt goes back after the last step; none where it does not, or did.
    ///
    /// # Errors
    /// [`Unmet`] where the numbers give none.
    pub fn reverted(&self) -> Result<Option<SgdReverted>, Unmet> {
        let last = self.run.steps.last();
        let is_open = last.is_none_or(|step| step.reverted.is_some() || step.committed.is_none());
        if is_open || !self.run.said.terms.reverts {
            return Ok(None);
        }
        if !numbers::reverts(self.run)? {
            return Ok(None);
        }
        let error = last.and_then(|step| step.committed.as_ref());
        let se = error.required("a step")?.error;
        let taken = self.run.taken();
        let best = self.run.best();
        let best_loss = self.run.val_at(best).required("a loss of val")?;
        let val = self.run.val_at(taken).required("a loss of val")?;
        let to = self.run.digest_at(best).required("the best prompt")?;
        Ok(Some(SgdReverted {
            best_loss: best_loss.loss,
            best: count(best),
            se,
            step: count(taken.saturating_sub(1)),
            run: self.run.said.run.clone(),
            to_digest: to,
            val_loss: val.loss,
        }))
    }

    /// Whether a stop is due after the last step; none where it is not, or stands.
    ///
    /// # Errors
    /// [`Unmet`] where the numbers give none.
    pub fn stop(&self) -> Result<Option<SgdStopTriggered>, Unmet> {
        let taken = self.run.taken();
        if self.run.stop.is_some() || taken == 0 {
            return Ok(None);
        }
        let triggers = numbers::triggers(self.run)?;
        if triggers.is_empty() {
            return Ok(None);
        }
        Ok(Some(SgdStopTriggered {
            extra: self.run.said.terms.extra,
            run: self.run.said.run.clone(),
            step: count(taken - 1),
            triggers,
        }))
    }

    /// The checkpoint: the lowest loss of val, the earliest of equals.
    ///
    /// # Errors
    /// [`Unmet`] where the record has none.
    pub fn checkpoint(&self) -> Result<SgdCheckpointSelected, Unmet> {
        let losses = (0..=self.run.taken()).map(|place| {
            let loss = self.run.val_at(place).required("a loss of val");
            Ok((place, loss?.loss))
        });
        let losses: Vec<_> = losses.collect::<Result<_, Unmet>>()?;
        let mut best = losses[0];
        for next in losses {
            if next.1 < best.1 {
                best = next;
            }
        }
        let digest = self.run.digest_at(best.0).required("a prompt")?;
        Ok(SgdCheckpointSelected {
            best: count(best.0),
            prompt_digest: digest,
            run: self.run.said.run.clone(),
            val_loss: best.1,
        })
    }

    /// What test says.
    ///
    /// # Errors
    /// [`Unmet`] before every row was scored under both prompts.
    pub fn test_read(&self) -> Result<SgdTestRead, Unmet> {
        let chosen = self.run.checkpoint.as_ref();
        let chosen = chosen.required("a checkpoint on record")?.prompt_digest;
        let rows: Vec<&SgdRow> = self.run.rows(SgdSplit::Test).iter().collect();
        let loss = |digest: &Digest| {
            let scores = self.run.test.get(digest).required("scores of test")?;
            self.loss_of(&rows, scores)
        };
        Ok(SgdTestRead {
            base: loss(&self.run.said.prompt_digest)?,
            chosen: loss(&chosen)?,
            prompt_digest: chosen,
            run: self.run.said.run.clone(),
        })
    }
}
