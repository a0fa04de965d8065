//! Probes whose labels can be read, and which of them were scored only then: whoever scores a row once its label is known
//! chooses what an audit finds.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentOutcome;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
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
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::LabelDesignRegistered,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::ScoreRecorded,
];

/// Probes of one policy in one design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyProbes {
    /// Rows with a label that can be read.
    pub open: BTreeSet<String>,
    /// How many of them each judge scored only then.
    pub late: BTreeMap<JudgeId, u64>,
}

/// Probes of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentProbes {
    /// Designs for audits.
    pub designs: BTreeSet<DesignId>,
    /// By policy, then design.
    pub by_policy: BTreeMap<PolicyId, BTreeMap<DesignId, PolicyProbes>>,
}

/// Probes by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probes {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentProbes>,
}

impl ExperimentProbes {
    fn opened(&mut self, policy: &PolicyId, design: &DesignId, row: &str) {
        let of = self.by_policy.entry(policy.clone()).or_default();
        let of = of.entry(design.clone()).or_default();
        of.open.insert(row.to_owned());
    }

    fn scored(&mut self, said: &ScoreRecorded) {
        let Some(designs) = self.by_policy.get_mut(&said.policy) else {
            return;
        };
        let row = row_of_draw(&said.policy, &said.item, said.draw);
        for of in designs.values_mut().filter(|of| of.open.contains(&row)) {
            *of.late.entry(said.judge.clone()).or_default() += 1;
        }
    }
}

impl Fold for Probes {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let event = event.event();
        let Some(id) = &event.header.experiment else {
            return;
        };
        match &event.payload {
            Payload::LabelDesignRegistered(said) if said.purpose == DesignPurpose::Audit => {
                let of = self.by_experiment.entry(id.clone()).or_default();
                of.designs.insert(said.design.clone());
            }
            Payload::LabelRecorded(said) if said.purpose == LabelPurpose::Audit => {
                let row = row_of_draw(&said.policy, &said.item, said.draw);
                let of = self.by_experiment.entry(id.clone()).or_default();
                of.opened(&said.policy, &said.design, &row);
            }
            Payload::LabelRevealed(said) => {
                let of = self.by_experiment.get_mut(id);
                let of = of.filter(|of| of.designs.contains(&said.design));
                if let Some((of, (policy, ..))) = of.zip(draw_of_row(&said.row)) {
                    of.opened(&policy, &said.design, said.row.as_str());
                }
            }
            Payload::ScoreRecorded(said) => {
                if let Some(of) = self.by_experiment.get_mut(id) {
                    of.scored(said);
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// A family of environments is tested by every probe of its design, or the probe is late; beside one none passes.
pub(super) fn check_all_timely(
    state: &State,
    experiment: &ExperimentId,
    said: &EnvironmentsTested,
) -> RuleAnswer {
    let probes = state.fold::<Probes>().by_experiment.get(experiment);
    let of_design = || {
        let policies = probes.into_iter().flat_map(|of| of.by_policy.values());
        policies.filter_map(|designs| designs.get(&said.design))
    };
    let all: u64 = of_design().map(|of| of.open.len() as u64).sum();
    let counted = said.probes.value().saturating_add(said.late.value());
    ensure!(
        counted == all,
        format!("all {all} probes of {}, counted or late", said.design),
        format!("{} counted and {} late", said.probes, said.late)
    );
    let judge = &said.terms.judge;
    let late = of_design().filter_map(|of| of.late.get(judge).copied());
    let known: u64 = late.sum();
    ensure!(
        said.late.value() >= known,
        format!("{known} probes late, which {judge} scored once their labels could be read"),
        format!("{} late", said.late)
    );
    let passes = |of: &EnvironmentOutcome| of.verdict == Verdict::Pass;
    ensure!(
        said.late.value() == 0 || !said.environments.iter().any(passes),
        format!("no pass beside {} probes that are late", said.late),
        "a pass"
    );
    Ok(())
}

/// An audit counts every probe of its policy, says how many lack a score from before their label could be read, and passes
/// nothing where one does.
pub(super) fn check_timely(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
) -> RuleAnswer {
    let is_part = said.terms.environment.is_some();
    if !is_part && !state.asks(Question::TimelyProbes) {
        return Ok(());
    }
    let late = said
        .late
        .required("late: how many probes have no score from before their label")?;
    let probes = state.fold::<Probes>().by_experiment.get(experiment);
    let probes = probes.and_then(|of| of.by_policy.get(&said.policy)?.get(&said.design));
    let all = probes.map_or(0, |of| of.open.len() as u64);
    let counted = said.rows.value().saturating_add(late.value());
    // An environment holds some of the probes; those that are late count against it wherever they are.
    let is_whole = if is_part {
        counted <= all
    } else {
        counted == all
    };
    ensure!(
        is_whole,
        format!("all {all} probes of {}, counted or late", said.policy),
        format!("{} counted and {late} late", said.rows)
    );
    let judge = &said.terms.judge;
    let known = probes.and_then(|of| of.late.get(judge)).copied();
    let known = known.unwrap_or(0);
    ensure!(
        late.value() >= known,
        format!("{known} probes late, which {judge} scored once their labels could be read"),
        format!("{late} late")
    );
    ensure!(
        late.value() == 0 || said.state != TransportState::Pass,
        format!("no pass where {late} probes have no score from before their label"),
        "a pass"
    );
    Ok(())
}
