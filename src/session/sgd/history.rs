//! The prompts of a run in the order in which its steps left them, each with what was said of it then.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::payload::sgd::SgdLoss;
use clover_ledger::Ledger;
use clover_num::Finite;
use clover_num::Micro;
use clover_projection::reader::LogReader;
use clover_projection::reader::Model;
use clover_projection::sgd::SgdRun;
use clover_prompt::JudgePrompt;
use clover_workflow::sgd::course::SgdCourse;
use clover_workflow::sgd::verdict;

use crate::error::SessionError;
use crate::sgd::SgdError;

/// What left a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptCause {
    /// The run was opened with it.
    Opened,
    /// A step was taken, from 0.
    Step(u64),
    /// A step was taken back.
    Reverted(u64),
}

/// A prompt of a run, and what left it.
#[derive(Clone, Debug)]
pub struct PromptVersion {
    /// What left it.
    pub cause: PromptCause,
    /// The learning rate of the step; absent where none was taken.
    pub lr: Option<Micro>,
    /// Its place: 0 is prompt 0, and step t stands at t + 1.
    pub place: u64,
    /// The prompt.
    pub prompt: JudgePrompt,
    /// The section that the step edits; absent where none was.
    pub section: Option<String>,
    /// Of the gradient, in a few words; empty where none was returned.
    pub summary: String,
    /// Loss of the batch before the step; absent where none was taken.
    pub train: Option<SgdLoss>,
    /// Loss of val under it; absent before it was computed.
    pub val: Option<SgdLoss>,
}

/// Every prompt of a run, in order.
///
/// # Errors
/// [`SgdError::Course`] where the record gives none.
pub fn versions(run: &SgdRun) -> Result<Vec<PromptVersion>, SgdError> {
    let course = SgdCourse::of(run)?;
    let mut found = vec![PromptVersion {
        cause: PromptCause::Opened,
        lr: None,
        place: 0,
        prompt: course.prompt0().clone(),
        section: None,
        summary: String::new(),
        train: None,
        val: run.val_loss,
    }];
    for step in &run.steps {
        let Some(said) = &step.committed else {
            continue;
        };
        let at = said.step.value();
        found.push(PromptVersion {
            cause: PromptCause::Step(at),
            lr: Some(said.lr_micro),
            place: at + 1,
            prompt: course.prompt_at(at + 1)?.clone(),
            section: verdict::section_of(step),
            summary: said.summary.as_str().to_owned(),
            train: Some(said.train),
            val: Some(said.val),
        });
        if let Some(back) = &step.reverted {
            let place = back.best.value();
            found.push(PromptVersion {
                cause: PromptCause::Reverted(at),
                lr: None,
                place,
                prompt: course.prompt_at(place)?.clone(),
                section: None,
                summary: String::new(),
                train: None,
                val: run.val_at(place),
            });
        }
    }
    Ok(found)
}

impl PromptVersion {
    /// What is said of it, as a commit has it: a title, a blank line, and a line for each number.
    pub fn message(&self, run: &RunId) -> String {
        let title = match (self.cause, &self.section) {
            (PromptCause::Opened, _) => format!("{run}: prompt 0"),
            (PromptCause::Step(step), Some(section)) => {
                format!("{run}: step {step} edits {section}")
            }
            (PromptCause::Step(step), None) => format!("{run}: step {step} changes nothing"),
            (PromptCause::Reverted(step), _) => {
                format!("{run}: step {step} taken back, to place {}", self.place)
            }
        };
        let mut lines = vec![title, String::new()];
        let number = |of: Option<Finite>| {
            of.map_or_else(|| "none".to_owned(), |of| format!("{:.6}", of.value()))
        };
        if let Some(lr) = self.lr {
            lines.push(format!("learning rate    {lr}"));
        }
        if let Some(train) = &self.train {
            lines.push(format!("loss of batch    {:.6}", train.loss.value()));
        }
        if let Some(val) = &self.val {
            lines.push(format!("loss of val      {:.6}", val.loss.value()));
            lines.push(format!("tau-b of val     {}", number(val.tau_b)));
            lines.push(format!("entropy of val   {}", number(Some(val.entropy))));
        }
        if !self.summary.is_empty() {
            lines.push(format!("gradient         {}", self.summary));
        }
        lines.push(format!("prompt           {}", self.prompt.digest()));
        lines.join("\n")
    }

    /// Its files: each section, and the whole as the judge reads it.
    pub fn files(&self) -> BTreeMap<String, String> {
        let lined = |text: &str| format!("{text}\n");
        let sections = self.prompt.sections().iter();
        let sections = sections.map(|of| {
            let name = format!("sections/{}.md", of.section_id);
            (name, lined(&of.text))
        });
        let whole = ("prompt.md".to_owned(), lined(&self.prompt.render()));
        sections.chain([whole]).collect()
    }
}

/// When each prompt of a run was left, in seconds since 1970.
#[derive(Debug, Default)]
struct Times {
    found: BTreeMap<PromptCause, i64>,
    run: Option<RunId>,
}

impl Model for Times {
    fn take(&mut self, _: u64, event: &Event) {
        let (run, cause) = match &event.payload {
            Payload::SgdOpened(said) => (&said.run, PromptCause::Opened),
            Payload::SgdStepCommitted(said) => (&said.run, PromptCause::Step(said.step.value())),
            Payload::SgdReverted(said) => (&said.run, PromptCause::Reverted(said.step.value())),
            _ => return,
        };
        if self.run.as_ref() == Some(run) {
            let seconds = event.header.at.micros().div_euclid(1_000_000);
            self.found.entry(cause).or_insert(seconds);
        }
    }
}

/// When each prompt of a run was left, in seconds since 1970 as their authors say.
///
/// # Errors
/// When the log cannot be read.
pub fn times(ledger: &Ledger, run: &SgdRun) -> Result<BTreeMap<PromptCause, i64>, SessionError> {
    let entries = LogReader::below(ledger, ledger.size()).of(&run.experiment);
    let model = Times {
        found: BTreeMap::new(),
        run: Some(run.said.run.clone()),
    };
    Ok(entries.into_model(model)?.found)
}
