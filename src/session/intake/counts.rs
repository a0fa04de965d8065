//! What an import adds, and what was there: by scores, labels, seals, log-probabilities and files.

use clover_workflow::import::plan::ImportPlan;
use clover_workflow::import::plan::LabelIntake;
use clover_workflow::import::plan::Presence;

/// New and already recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounts {
    /// Events that are new.
    pub new: u64,
    /// Events that were there.
    pub already: u64,
}

impl IntakeCounts {
    fn see(&mut self, standing: Presence) {
        match standing {
            Presence::New => self.new += 1,
            Presence::Already => self.already += 1,
        }
    }
}

/// What a file adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scores.
    pub scores: IntakeCounts,
    /// Open labels.
    pub labels: IntakeCounts,
    /// Sealed labels.
    pub sealed: IntakeCounts,
    /// Log-probabilities.
    pub logprobs: IntakeCounts,
    /// Files.
    pub files: IntakeCounts,
}

impl Counts {
    /// Counts what becomes of a file's rows.
    pub fn of(plan: &ImportPlan) -> Self {
        let mut counts = Self::default();
        let is_new = plan.ingested.is_none();
        counts.files.see(if is_new {
            Presence::New
        } else {
            Presence::Already
        });
        for row in &plan.rows {
            counts.scores.see(row.score);
            counts.see_label(&row.label);
            if let Some(standing) = row.logprob {
                counts.logprobs.see(standing);
            }
        }
        counts
    }

    /// Counts what becomes of a label.
    pub(super) fn see_label(&mut self, label: &LabelIntake) {
        match label {
            LabelIntake::Open(standing) => self.labels.see(*standing),
            LabelIntake::Sealed(standing, _) => self.sealed.see(*standing),
            LabelIntake::None | LabelIntake::Unread => {}
        }
    }

    /// The counts of several files together.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut total = Self::default();
        for counts in all {
            total.add(counts);
        }
        total
    }

    fn pairs(&self) -> [IntakeCounts; 5] {
        [
            self.scores,
            self.labels,
            self.sealed,
            self.logprobs,
            self.files,
        ]
    }

    fn add(&mut self, other: &Self) {
        let all = [
            &mut self.scores,
            &mut self.labels,
            &mut self.sealed,
            &mut self.logprobs,
            &mut self.files,
        ];
        for (mine, other) in all.into_iter().zip(other.pairs()) {
            mine.new += other.new;
            mine.already += other.already;
        }
    }

    /// Events that are new.
    pub fn added(&self) -> u64 {
        self.pairs().iter().map(|pair| pair.new).sum()
    }

    /// Events that were there.
    pub fn already(&self) -> u64 {
        self.pairs().iter().map(|pair| pair.already).sum()
    }
}
