//! Which rows of a policy count in its value: those whose score stands before the first label of the policy can be read. Whoever
//! scores a row after that may choose which rows there are, and what they say of the policy.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::RowUse;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::label::row_of_draw;
use clover_ledger::Fold;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::LabelDesignRegistered,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::ScoreRecorded,
];

/// A row that was scored once a label of its policy could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateRow {
    /// Whether no label of the policy could be read for its prompt then.
    pub is_new_prompt: bool,
    /// The entry of its score.
    pub seq: u64,
}

/// Rows of one policy that one judge scored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedRows {
    /// How many count.
    pub timely: u64,
    /// Those that do not, by row.
    pub late: BTreeMap<String, LateRow>,
}

/// Rows and labels of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRows {
    /// The first label that could be read.
    pub first_label: Option<u64>,
    /// Prompts with a label that can be read.
    pub labelled: BTreeSet<ItemId>,
    /// By judge.
    pub by_judge: BTreeMap<JudgeId, JudgedRows>,
}

/// Rows of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentRows {
    /// When designs of labels were registered.
    pub designs: BTreeMap<DesignId, u64>,
    /// By policy.
    pub by_policy: BTreeMap<PolicyId, PolicyRows>,
}

/// Rows by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimelyRows {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentRows>,
}

impl PolicyRows {
    fn scored(&mut self, seq: u64, said: &ScoreRecorded) {
        let of = match self.by_judge.get_mut(&said.judge) {
            Some(of) => of,
            None => self.by_judge.entry(said.judge.clone()).or_default(),
        };
        if self.first_label.is_none() {
            of.timely += 1;
            return;
        }
        let row = row_of_draw(&said.policy, &said.item, said.draw);
        let is_new_prompt = !self.labelled.contains(&said.item);
        of.late.insert(row, LateRow { is_new_prompt, seq });
    }

    fn labelled(&mut self, seq: u64, item: &ItemId) {
        self.first_label.get_or_insert(seq);
        if !self.labelled.contains(item) {
            self.labelled.insert(item.clone());
        }
    }

    /// A row of a new prompt counts from its label on, where that names a design which was registered once the row was scored.
    fn drawn(&mut self, row: &str, registered: u64) {
        for of in self.by_judge.values_mut() {
            let late = of.late.get(row);
            if late.is_some_and(|of| of.is_new_prompt && of.seq < registered) {
                of.late.remove(row);
                of.timely += 1;
            }
        }
    }
}

impl ExperimentRows {
    fn policy(&mut self, policy: &PolicyId) -> &mut PolicyRows {
        if !self.by_policy.contains_key(policy) {
            self.by_policy.insert(policy.clone(), PolicyRows::default());
        }
        self.by_policy
            .get_mut(policy)
            .expect("BUG: it was just put in")
    }

    /// Takes in what an event of the experiment says.
    pub fn take(&mut self, seq: u64, payload: &Payload) {
        match payload {
            Payload::LabelDesignRegistered(said) => {
                self.designs.entry(said.design.clone()).or_insert(seq);
            }
            Payload::LabelRecorded(said) => {
                let registered = self.designs.get(&said.design).copied();
                let registered = registered.filter(|_| said.purpose == LabelPurpose::Calibrate);
                let of = self.policy(&said.policy);
                of.labelled(seq, &said.item);
                if let Some(registered) = registered {
                    let row = row_of_draw(&said.policy, &said.item, said.draw);
                    of.drawn(&row, registered);
                }
            }
            Payload::LabelRevealed(said) => {
                if let Some((policy, item, _)) = draw_of_row(&said.row) {
                    self.policy(&policy).labelled(seq, &item);
                }
            }
            Payload::ScoreRecorded(said) => self.policy(&said.policy).scored(seq, said),
            _ => {}
        }
    }

    /// Whether a row that is scored now comes late: a label of its policy can be read. A row of a new prompt counts yet, where
    /// a design that is registered afterwards draws it.
    pub fn is_late_now(&self, policy: &PolicyId) -> bool {
        let of = self.by_policy.get(policy);
        of.is_some_and(|of| of.first_label.is_some())
    }

    /// Rows of a policy that do not count, by a judge.
    pub fn late(&self, policy: &PolicyId, judge: &JudgeId) -> Option<&BTreeMap<String, LateRow>> {
        let of = self.by_policy.get(policy)?.by_judge.get(judge)?;
        Some(&of.late).filter(|late| !late.is_empty())
    }

    /// Rows of prompts with a label that can be read, which one of some judges scored only once a label of the policy could be.
    pub fn late_beside_labels(&self, judges: [&JudgeId; 2]) -> u64 {
        let of_policy = |of: &PolicyRows| {
            let late = judges.iter().filter_map(|judge| of.by_judge.get(*judge));
            let rows: BTreeSet<&String> = late.flat_map(|of| of.late.keys()).collect();
            let is_labelled = |row: &&&String| {
                let item = row.split_once('/').and_then(|(_, of)| of.rsplit_once('/'));
                let item = item.and_then(|(item, _)| ItemId::new(item).ok());
                item.is_none_or(|item| of.labelled.contains(&item))
            };
            rows.iter().filter(is_labelled).count() as u64
        };
        self.by_policy.values().map(of_policy).sum()
    }
}

impl Fold for TimelyRows {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(id) = &event.header.experiment else {
            return;
        };
        let of = match self.by_experiment.get_mut(id) {
            Some(of) => of,
            None => self.by_experiment.entry(id.clone()).or_default(),
        };
        of.take(seq, &event.payload);
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// What is computed from scores and labels reads rows that were scored before the labels of their policy. What an iteration
/// reads is kept to that row by row.
pub(super) fn check_terms(state: &State, terms: &EstimateTerms) -> RuleAnswer {
    let is_asked = state.asks(Question::RowsBefore) && terms.iteration.is_none();
    ensure!(
        !is_asked || terms.rows == Some(RowUse::ScoredBefore),
        format!(
            "rows {}: only those that were scored before the first label of their policy",
            RowUse::ScoredBefore
        ),
        "rows of any time"
    );
    Ok(())
}

/// How many rows of a policy count, and how many do not.
fn counted(
    state: &State,
    experiment: &ExperimentId,
    (policy, judge): (&PolicyId, &JudgeId),
) -> (u64, u64) {
    let of = state.fold::<TimelyRows>().by_experiment.get(experiment);
    let of = of.and_then(|of| of.by_policy.get(policy)?.by_judge.get(judge));
    of.map_or((0, 0), |of| (of.timely, of.late.len() as u64))
}

fn check_late(
    terms: &EstimateTerms,
    policy: &PolicyId,
    (said, late): (Option<Count>, u64),
) -> RuleAnswer {
    let said = said.required("late: how many rows were scored once labels could be read")?;
    // Of one environment nobody here knows which rows are in it.
    let is_part = terms.environment.is_some() && said.value() <= late;
    ensure!(
        said.value() == late || is_part,
        format!("{late} rows of {policy} that were scored once its labels could be read"),
        said.to_string()
    );
    Ok(())
}

/// An estimate counts every row that was scored in time, and says how many were not.
pub(super) fn check_estimate(
    state: &State,
    experiment: &ExperimentId,
    said: &EstimateRecorded,
) -> RuleAnswer {
    if !state.asks(Question::RowsBefore) {
        return Ok(());
    }
    let of = (&said.policy, &said.terms.judge);
    let (timely, late) = counted(state, experiment, of);
    check_late(&said.terms, &said.policy, (said.late, late))?;
    let is_part = said.terms.environment.is_some() && said.rows.value() <= timely;
    ensure!(
        said.rows.value() == timely || is_part,
        format!(
            "the {timely} rows of {} that were scored before its labels",
            said.policy
        ),
        said.rows.to_string()
    );
    Ok(())
}

/// A comparison says of both sides how many rows do not count.
pub(super) fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> RuleAnswer {
    if !state.asks(Question::RowsBefore) {
        return Ok(());
    }
    let judge = &said.terms.judge;
    for (policy, found) in [
        (&said.first, said.first_late),
        (&said.second, said.second_late),
    ] {
        let (_, late) = counted(state, experiment, (policy, judge));
        check_late(&said.terms, policy, (found, late))?;
    }
    Ok(())
}
