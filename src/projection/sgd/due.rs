//! What is due in a run, by what stands on record alone. Whether a step is taken back, and whether a stop is triggered, is
//! computed: `workflow` says it.

use std::fmt;

use clover_event::Kind;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd_steps::ATTEMPTS_MAX;
use clover_ground::digest::Digest;

use super::SgdRun;
use super::SgdStep;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SgdDue {
    /// Rows of a part are listed.
    Rows(SgdSplit),
    /// Rows are scored.
    Scores(SgdPart),
    /// A loss is computed.
    Loss(SgdPart),
    /// A batch is drawn, or the step before is followed by a reversion or a stop.
    Batch,
    /// A gradient is asked for.
    Request,
    /// A gradient is returned.
    Gradient,
    /// A patch is proposed, or the step is taken without one.
    Proposal,
    /// The proposal that stands is rejected, spoken about, or scored on val.
    Judgement,
    /// The step is taken.
    Commit,
    /// The checkpoint is chosen.
    Checkpoint,
    /// Test is read.
    Test,
    /// The run ends.
    End,
}

impl fmt::Display for SgdDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(split) => write!(f, "rows of {split}"),
            Self::Scores(part) => write!(f, "scores of {part}"),
            Self::Loss(part) => write!(f, "the loss of {part}"),
            Self::Batch => f.write_str("a batch"),
            Self::Request => f.write_str("a request for a gradient"),
            Self::Gradient => f.write_str("a gradient"),
            Self::Proposal => f.write_str("a proposal, or a step without one"),
            Self::Judgement => f.write_str("a rejection, or scores of val"),
            Self::Commit => f.write_str("a step"),
            Self::Checkpoint => f.write_str("a checkpoint"),
            Self::Test => f.write_str("the reading of test"),
            Self::End => f.write_str("the end of the run"),
        }
    }
}

/// Parts in the order in which their rows are listed.
pub const LISTED: [SgdSplit; 4] = [
    SgdSplit::Train,
    SgdSplit::Val,
    SgdSplit::Test,
    SgdSplit::Confirm,
];

impl SgdRun {
    /// How many rows a part has.
    pub fn count(&self, split: SgdSplit) -> usize {
        let all = self.said.splits.of(split).count.value();
        usize::try_from(all).unwrap_or(usize::MAX)
    }

    /// The last step that is taken, counted from 1.
    pub fn last_step(&self) -> u64 {
        let most = self.said.terms.steps.value();
        let stop = self.stop.as_ref();
        stop.map_or(most, |of| {
            let last = of.step.value() + 1 + of.extra.value();
            last.min(most)
        })
    }

    /// What is due; `None` where it ended.
    pub fn due(&self) -> Option<SgdDue> {
        if self.end.is_some() {
            return None;
        }
        let mut parts = LISTED.into_iter();
        if let Some(split) = parts.find(|split| self.rows(*split).len() < self.count(*split)) {
            return Some(SgdDue::Rows(split));
        }
        Some(self.due_of_base().unwrap_or_else(|| match self.going() {
            Some(step) => self.due_in(step),
            None => self.due_between(),
        }))
    }

    fn due_of_base(&self) -> Option<SgdDue> {
        if self.base.len() < self.count(SgdSplit::Train) {
            return Some(SgdDue::Scores(SgdPart::Base));
        }
        if self.base_loss.is_none() {
            return Some(SgdDue::Loss(SgdPart::Base));
        }
        // Before the first step these are the scores of prompt 0.
        if self.steps.is_empty() && self.best_scores.len() < self.count(SgdSplit::Val) {
            return Some(SgdDue::Scores(SgdPart::Val));
        }
        let is_known = self.val_loss.is_some();
        (!is_known).then_some(SgdDue::Loss(SgdPart::Val))
    }

    fn due_between(&self) -> SgdDue {
        if self.taken() < self.last_step() {
            return SgdDue::Batch;
        }
        if self.checkpoint.is_none() {
            return SgdDue::Checkpoint;
        }
        if self.test_read.is_none() {
            return SgdDue::Test;
        }
        SgdDue::End
    }

    fn due_in(&self, step: &SgdStep) -> SgdDue {
        let batch = step.batch.as_ref().map_or(0, |of| of.rows.len());
        if step.scores.len() < batch {
            return SgdDue::Scores(SgdPart::Batch);
        }
        if step.train.is_none() {
            return SgdDue::Loss(SgdPart::Batch);
        }
        if step.request.is_none() {
            return SgdDue::Request;
        }
        if step.gradient.is_none() {
            return SgdDue::Gradient;
        }
        if step.standing().is_none() {
            let rejected = step.rejected.len() as u64;
            return if rejected < ATTEMPTS_MAX {
                SgdDue::Proposal
            } else {
                SgdDue::Commit
            };
        }
        if step.val_scores.is_empty() {
            return SgdDue::Judgement;
        }
        if step.val_scores.len() < self.count(SgdSplit::Val) {
            return SgdDue::Scores(SgdPart::Val);
        }
        match step.val {
            None => SgdDue::Loss(SgdPart::Val),
            Some(_) => SgdDue::Commit,
        }
    }
}

impl SgdRun {
    /// The ask of a model that the run waits for: its place, and the digest of what is shown. Of step t it is 4 t and the
    /// request for a gradient, then 4 t + 1 and on and the gradient that proposals are to answer.
    pub fn awaited(&self) -> Option<(u64, Digest)> {
        self.said.asked.as_ref()?;
        let (due, step) = (self.due()?, self.going()?);
        let first = self.taken() * (1 + ATTEMPTS_MAX);
        match due {
            SgdDue::Gradient => {
                let request = step.request.as_ref()?;
                Some((first, request.request_digest))
            }
            SgdDue::Proposal => {
                let gradient = step.gradient.as_ref()?;
                let shown = Digest::sha256(gradient.gradient.as_str().as_bytes());
                Some((first + 1 + step.proposed.len() as u64, shown))
            }
            _ => None,
        }
    }
}

/// Whether rows of a part may be scored now.
pub fn is_scored(due: SgdDue, part: SgdPart) -> bool {
    due == SgdDue::Scores(part)
        || (part == SgdPart::Val && due == SgdDue::Judgement)
        || (part == SgdPart::Test && due == SgdDue::Test)
}

/// Whether an event of a kind, about a part of rows where it names one, is what is due.
pub fn is_due(due: SgdDue, kind: Kind, (part, split): (Option<SgdPart>, Option<SgdSplit>)) -> bool {
    match kind {
        Kind::SgdRowsListed => split.is_some_and(|split| due == SgdDue::Rows(split)),
        Kind::SgdScored => part.is_some_and(|part| is_scored(due, part)),
        Kind::SgdLossComputed => part.is_some_and(|part| due == SgdDue::Loss(part)),
        Kind::SgdBatchDrawn => due == SgdDue::Batch,
        Kind::SgdGradientRequested => due == SgdDue::Request,
        Kind::SgdGradientReturned => due == SgdDue::Gradient,
        Kind::SgdPatchProposed => due == SgdDue::Proposal,
        Kind::SgdPatchRejected | Kind::SgdPatchApproved => due == SgdDue::Judgement,
        Kind::SgdStepCommitted => matches!(due, SgdDue::Commit | SgdDue::Proposal),
        Kind::SgdReverted | Kind::SgdStopTriggered => {
            matches!(due, SgdDue::Batch | SgdDue::Checkpoint)
        }
        Kind::SgdCheckpointSelected => due == SgdDue::Checkpoint,
        Kind::SgdTestRead => due == SgdDue::Test,
        Kind::SgdStopped => true,
        _ => false,
    }
}
