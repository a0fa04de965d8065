//! What an import adds, and what was there: by scores, labels, seals, log-probabilities and files.

use serde_json::Value;
use serde_json::json;

use crate::cli::ui;
use crate::workflow::import::Rows;
use crate::workflow::import::plan::Label;
use crate::workflow::import::plan::Plan;
use crate::workflow::import::plan::Standing;

/// New and already recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    pub new: u64,
    pub already: u64,
}

impl Pair {
    fn see(&mut self, standing: Standing) {
        match standing {
            Standing::New => self.new += 1,
            Standing::Already => self.already += 1,
        }
    }

    pub(super) fn words(self) -> String {
        format!(
            "{} new, {} already",
            ui::thousands(self.new),
            ui::thousands(self.already)
        )
    }

    pub(super) fn cell(self) -> String {
        match (self.new, self.already) {
            (0, 0) => "-".to_owned(),
            (new, 0) => format!("+{}", ui::thousands(new)),
            (new, already) => format!(
                "+{} ({} already)",
                ui::thousands(new),
                ui::thousands(already)
            ),
        }
    }

    fn json(self) -> Value {
        json!({"new": self.new, "already": self.already})
    }
}

/// What a file adds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub scores: Pair,
    pub labels: Pair,
    pub sealed: Pair,
    pub logprobs: Pair,
    pub files: Pair,
}

impl Counts {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut counts = Self::default();
        let is_new = plan.ingested.is_none();
        counts.files.see(if is_new {
            Standing::New
        } else {
            Standing::Already
        });
        for row in &plan.rows {
            counts.scores.see(row.score);
            match &row.label {
                Label::Open(standing) => counts.labels.see(*standing),
                Label::Sealed(standing, _) => counts.sealed.see(*standing),
                Label::None | Label::Unread => {}
            }
            if let Some(standing) = row.logprob {
                counts.logprobs.see(standing);
            }
        }
        counts
    }

    fn pairs(&self) -> [Pair; 5] {
        [
            self.scores,
            self.labels,
            self.sealed,
            self.logprobs,
            self.files,
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
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
    pub(super) fn added(&self) -> u64 {
        self.pairs().iter().map(|pair| pair.new).sum()
    }

    /// Events that were there.
    pub(super) fn already(&self) -> u64 {
        self.pairs().iter().map(|pair| pair.already).sum()
    }

    pub(super) fn totals(&self) -> Value {
        json!({
            "scores": self.scores.json(), "labels": self.labels.json(),
            "sealed": self.sealed.json(), "logprobs": self.logprobs.json(), "files": self.files.json(),
        })
    }

    pub(super) fn json(&self, rows: &Rows) -> Value {
        let mut value = self.totals();
        value["file"] = json!(rows.file);
        value["rows"] = json!(rows.rows.len());
        value["labelled"] = json!(rows.labelled());
        value["rounded"] = json!(rows.rounded);
        value
    }
}
