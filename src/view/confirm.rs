//! Sealed labels as a whole: what waits, what is late, and what was accepted or opened.

use serde::Serialize;

use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::RowId;
use crate::event::id::SplitId;
use crate::event::payload::label::DesignPurpose;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::designs::Design;
use crate::projection::splits::FormedSplit;
use crate::projection::splits::Splits;
use crate::session::confirm::AcceptanceCounts;
use crate::session::confirm::RevealedLabels;
use crate::session::confirm::SealedLabel;
use crate::view::View;
use crate::view::budget;
use crate::view::budget::AccountRow;
use crate::view::label;
use crate::view::split;

/// Sealed labels that their custodian accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelsAccepted {
    /// Labels that are accepted now.
    pub accepted: u64,
    /// Labels that were accepted before.
    pub already: u64,
}

/// A label that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenedLabel {
    /// Its row.
    pub row: RowId,
    /// The label, in millionths.
    pub value_micro: Micro,
}

/// Labels of a design that were opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelsOpened {
    /// The `budget.charged` that paid for them; `null` where none was left to open, and no peek was charged.
    pub charge: Option<EventId>,
    /// Labels that are revealed now.
    pub revealed: u64,
    /// Labels that were revealed before.
    pub already: u64,
    /// Those that are revealed now, in the order of their entries.
    pub labels: Vec<OpenedLabel>,
}

/// A design with sealed labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SealedDesign {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its name.
    pub design: DesignId,
    /// What its labels are for; `null` where it was never registered.
    pub purpose: Option<DesignPurpose>,
    /// Labels that were sealed.
    pub sealed: u64,
    /// Those that the custodian accepted.
    pub accepted: u64,
    /// Those that were revealed.
    pub revealed: u64,
    /// Those that were to be revealed by now and were not.
    pub late: u64,
    /// By when the next of them is to be revealed; `null` where all are.
    pub reveal_by: Option<Timestamp>,
}

/// A split of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SplitRow {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its name.
    pub split: SplitId,
    /// Clusters to fit on.
    pub fit: u64,
    /// Clusters to choose on.
    pub dev: u64,
    /// Clusters to confirm on.
    pub confirm: u64,
    /// Seconds between fit and dev on one side and confirm on the other; `null` where confirm is not separated in time.
    pub gap_seconds: Option<u64>,
    /// The entry that formed it.
    pub seq: u64,
    /// Whether clusters were held against the rule that puts them into parts: `pass` or `not_checked`.
    pub placement: &'static str,
    /// What may be claimed on confirm: `time-separated` or `EXPLORATORY`.
    pub grade: &'static str,
}

/// What waits under seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmStatus {
    /// Designs with sealed labels, by experiment.
    pub designs: Vec<SealedDesign>,
    /// Labels that were to be revealed by now and were not.
    pub breaches: u64,
    /// Splits that are formed, by experiment.
    pub splits: Vec<SplitRow>,
    /// Accounts with what is left.
    pub budgets: Vec<AccountRow>,
}

fn at_head(mut view: View, ledger: &Ledger, is_new: bool) -> View {
    view.verdict = if is_new {
        "appended"
    } else {
        "already_recorded"
    };
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}

/// Sealed labels of a design that their custodian accepted.
pub fn accepted(ledger: &Ledger, of: &AcceptanceCounts, design: &DesignId) -> View {
    let AcceptanceCounts { new, already } = *of;
    let facts = LabelsAccepted {
        accepted: new as u64,
        already: already as u64,
    };
    let mut view = View::of(&facts);
    view.line(format!(
        "accepted {new} · already {already} · design {design}"
    ));
    at_head(view, ledger, new > 0)
}

/// Labels of a design that were opened.
pub fn opened(ledger: &Ledger, of: &RevealedLabels, design: &str) -> View {
    let labels = of.labels.iter().map(|(row, value)| OpenedLabel {
        row: row.clone(),
        value_micro: *value,
    });
    let facts = LabelsOpened {
        charge: of.charge,
        revealed: of.labels.len() as u64,
        already: of.already as u64,
        labels: labels.collect(),
    };
    let mut view = View::of(&facts);
    let Some(charge) = of.charge else {
        view.line(format!("every label of {design} is revealed already"));
        return view.with_verdict("already_recorded");
    };
    view.line(format!(
        "revealed {} labels of {design} under charge {charge}",
        facts.revealed
    ));
    at_head(view, ledger, true)
}

fn design(
    (experiment, name, of): (&ExperimentId, &DesignId, &Design),
    waiting: &[SealedLabel],
    now: Timestamp,
) -> SealedDesign {
    let mine = waiting.iter();
    let mine = mine.filter(|of| of.experiment == experiment.as_str() && of.design == name.as_str());
    let registered = of.registered.as_ref();
    SealedDesign {
        experiment: experiment.clone(),
        design: name.clone(),
        purpose: registered.map(|of| of.purpose),
        sealed: of.sealed,
        accepted: of.accepted,
        revealed: of.revealed,
        late: mine.clone().filter(|of| of.reveal_by < now).count() as u64,
        reveal_by: mine.map(|of| of.reveal_by).min(),
    }
}

fn split_row(experiment: &ExperimentId, split: &SplitId, of: &FormedSplit) -> SplitRow {
    let [confirm, dev, fit] = of.counts;
    SplitRow {
        experiment: experiment.clone(),
        split: split.clone(),
        fit,
        dev,
        confirm,
        gap_seconds: of.gap_seconds,
        seq: of.seq,
        placement: if of.is_placed { "pass" } else { "not_checked" },
        grade: match of.gap_seconds {
            None => "EXPLORATORY",
            Some(_) => "time-separated",
        },
    }
}

fn splits(state: &State) -> Vec<SplitRow> {
    let all = state.fold::<Splits>().by_experiment.iter();
    let all = all.flat_map(|(experiment, of)| {
        let formed = of.formed.iter();
        formed.map(move |(split, of)| split_row(experiment, split, of))
    });
    all.collect()
}

/// Adds a line for each split of an experiment, formed or begun.
fn split_lines(view: &mut View, state: &State, rows: &[SplitRow]) {
    for (experiment, of) in &state.fold::<Splits>().by_experiment {
        for row in rows.iter().filter(|row| row.experiment == *experiment) {
            let SplitRow {
                split,
                fit,
                dev,
                confirm,
                ..
            } = row;
            let gap = split::gap(row.gap_seconds);
            let placed = match row.placement {
                "pass" => "",
                _ => " · parts NOT CHECKED",
            };
            view.line(format!(
                "split {split} of {experiment}: fit {fit} · dev {dev} · confirm {confirm} · gap {gap}{placed}"
            ));
        }
        if let Some(open) = &of.open {
            let split = &open.split;
            view.line(format!("split {split} of {experiment}: listed, not formed"));
        }
    }
}

/// What waits under seal, splits, and accounts with the peeks that are left.
pub fn status(state: &State, waiting: &[SealedLabel], now: Timestamp) -> View {
    let sealed = label::all(state).filter(|(.., of)| of.sealed > 0);
    let designs: Vec<_> = sealed.map(|of| design(of, waiting, now)).collect();
    let facts = ConfirmStatus {
        breaches: designs.iter().map(|of| of.late).sum(),
        designs,
        splits: splits(state),
        budgets: budget::accounts(state, now),
    };
    let rows = facts.designs.iter().map(|of| {
        let purpose = of.purpose.map_or("not registered", DesignPurpose::as_str);
        vec![
            of.experiment.to_string(),
            of.design.to_string(),
            purpose.to_owned(),
            of.sealed.to_string(),
            of.accepted.to_string(),
            of.revealed.to_string(),
            match (of.reveal_by, of.late) {
                (None, _) => "all revealed".to_owned(),
                (Some(by), 0) => format!("reveal by {by}"),
                (Some(by), late) => format!("BREACH: {late} not revealed by {by}"),
            },
        ]
    });
    let head = [
        "experiment",
        "design",
        "purpose",
        "sealed",
        "accepted",
        "revealed",
        "deadline",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    split_lines(&mut view, state, &facts.splits);
    if !facts.budgets.is_empty() {
        view.gap();
        budget::table(&mut view, &facts.budgets);
    }
    if facts.breaches > 0 {
        view.verdict = "breach";
    }
    view
}
