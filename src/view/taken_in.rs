//! How labels and rows that were taken in without scores are shown.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::id::DesignId;
use crate::event::id::FieldId;
use crate::event::id::PolicyId;
use crate::event::id::RaterId;
use crate::ledger::AppendedEvent;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::session::intake::IntakeRequest;
use crate::session::intake::counts;
use crate::session::intake::labels::LabelPlan;
use crate::session::intake::responses::RowsPlan;
use crate::view::LOG;
use crate::view::View;
use crate::view::text::thousands;

/// New and already recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TakenCounts {
    /// What is new.
    pub new: u64,
    /// What was there.
    pub already: u64,
}

impl TakenCounts {
    fn of(pair: counts::IntakeCounts) -> Self {
        Self {
            new: pair.new,
            already: pair.already,
        }
    }

    fn words(self) -> String {
        format!(
            "{} new, {} already",
            thousands(self.new),
            thousands(self.already)
        )
    }
}

/// Labels of a file, taken in without scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelsTakenIn {
    /// The file.
    pub file: String,
    /// Records with a label.
    pub labelled: u64,
    /// Records without one.
    pub unlabelled: u64,
    /// Labels that were rounded to the sixth decimal.
    pub rounded: u64,
    /// Open labels.
    pub open: TakenCounts,
    /// The design of open labels.
    pub open_design: Option<DesignId>,
    /// Sealed labels.
    pub sealed: TakenCounts,
    /// The design of sealed labels.
    pub sealed_design: Option<DesignId>,
    /// Policies whose rows are labelled.
    pub policies: BTreeSet<PolicyId>,
    /// Who labelled.
    pub raters: BTreeSet<RaterId>,
    /// The least and the greatest label.
    pub ends: [Micro; 2],
}

impl LabelsTakenIn {
    /// Of a plan.
    pub fn of(file: &str, rounded: u64, request: &IntakeRequest, plan: &LabelPlan) -> Self {
        let counts = plan.counts();
        let labels = &plan.labels.labels;
        let values = labels.iter().map(|label| label.value);
        let ends = values.clone().min().zip(values.max()).unwrap_or_default();
        Self {
            file: file.to_owned(),
            labelled: labels.len() as u64,
            unlabelled: plan.labels.unlabelled,
            rounded,
            open: TakenCounts::of(counts.labels),
            open_design: request.ask.open.as_ref().map(|(design, _)| design.clone()),
            sealed: TakenCounts::of(counts.sealed),
            sealed_design: request.ask.seal.clone(),
            policies: labels.iter().map(|of| of.row.policy.clone()).collect(),
            raters: labels.iter().map(|of| of.rater.clone()).collect(),
            ends: ends.into(),
        }
    }

    /// The view of a rehearsal.
    pub fn rehearsed(&self) -> View {
        let mut view = View::of(self);
        self.show(&mut view);
        view.with_verdict("dry_run")
    }

    /// The view of labels that are on record.
    pub fn recorded(&self, ledger: &Ledger) -> View {
        let mut view = View::of(self);
        self.show(&mut view);
        let is_new = self.open.new + self.sealed.new > 0;
        on_record(&mut view, ledger, is_new);
        view
    }

    fn show(&self, view: &mut View) {
        let names = |of: &BTreeSet<PolicyId>| {
            let names: Vec<_> = of.iter().map(PolicyId::as_str).collect();
            names.join(", ")
        };
        let of = |counts: TakenCounts, design: &Option<DesignId>| match design {
            Some(design) if counts.new + counts.already > 0 => {
                format!("{} in {design}", counts.words())
            }
            _ => counts.words(),
        };
        let raters: Vec<_> = self.raters.iter().map(RaterId::as_str).collect();
        view.pairs([
            ("file", self.file.clone()),
            (
                "labels",
                format!(
                    "{}, {} to {}",
                    thousands(self.labelled),
                    self.ends[0],
                    self.ends[1]
                ),
            ),
            ("unlabelled", thousands(self.unlabelled)),
            ("policies", names(&self.policies)),
            ("raters", raters.join(", ")),
            ("open", of(self.open, &self.open_design)),
            ("sealed", of(self.sealed, &self.sealed_design)),
            ("rounded", thousands(self.rounded)),
        ]);
    }
}

/// Rows of files, taken in to be judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RowsTakenIn {
    /// The files.
    pub files: Vec<String>,
    /// Rows.
    pub rows: TakenCounts,
    /// Whose responses are new.
    pub policies: BTreeSet<PolicyId>,
    /// Of rows that were there, those that a field is kept beside now.
    pub fielded: u64,
    /// Fields that are kept beside these rows, public.
    pub fields: BTreeSet<FieldId>,
    /// The entries that took them in, one for each file with a new row.
    pub seqs: Vec<u64>,
}

impl RowsTakenIn {
    /// Of the plans of files.
    pub fn of(plans: &[&RowsPlan], appended: &[AppendedEvent]) -> Self {
        let rows = || plans.iter().flat_map(|plan| &plan.rows.rows);
        let fielded: u64 = plans.iter().map(|plan| plan.fielded).sum();
        Self {
            files: plans.iter().map(|plan| plan.rows.file.clone()).collect(),
            rows: TakenCounts {
                new: (rows().count() as u64).saturating_sub(fielded),
                already: plans.iter().map(|plan| plan.already).sum(),
            },
            policies: rows().map(|row| row.policy.clone()).collect(),
            fielded,
            fields: rows().flat_map(|row| row.fields.keys().cloned()).collect(),
            seqs: appended.iter().map(|one| one.seq).collect(),
        }
    }

    /// The view of a rehearsal.
    pub fn rehearsed(&self) -> View {
        let mut view = View::of(self);
        self.show(&mut view);
        view.with_verdict("dry_run")
    }

    /// The view of rows that are on record.
    pub fn recorded(&self, ledger: &Ledger, appended: &[AppendedEvent]) -> View {
        let mut view = View::of(self).with_events(appended);
        self.show(&mut view);
        on_record(&mut view, ledger, self.rows.new + self.fielded > 0);
        view.with_next("clover judge run --judge ID --model NAME -- COMMAND")
    }

    fn show(&self, view: &mut View) {
        let policies: Vec<_> = self.policies.iter().map(PolicyId::as_str).collect();
        let fields: Vec<_> = self.fields.iter().map(FieldId::as_str).collect();
        let name = |at: usize| if at == 0 { "file" } else { "" };
        let files = self.files.iter().enumerate();
        let files = files.map(|(at, file)| (name(at), file.clone()));
        let rows = match self.fielded {
            0 => self.rows.words(),
            fielded => format!(
                "{}, {} of them with a new field",
                self.rows.words(),
                thousands(fielded)
            ),
        };
        let rest = [
            ("rows", rows),
            ("policies", policies.join(", ")),
            ("fields", fields.join(", ")),
        ];
        view.pairs(files.chain(rest));
    }
}

/// Adds where the log stands.
fn on_record(view: &mut View, ledger: &Ledger, is_new: bool) {
    let (size, root) = (ledger.size(), ledger.root().to_base64());
    view.pairs([(LOG, format!("{} entries · root {root}", thousands(size)))]);
    view.verdict = if is_new {
        "appended"
    } else {
        "already_recorded"
    };
    view.checkpoint = Some((size, root));
}
