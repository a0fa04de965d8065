//! Probes: which rows have labels that can be read, what they were drawn from, and which of them were scored only then: whoever scores a row once its label is known
//! chooses what an audit finds.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentOutcome;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::label::row_of_draw;
use clover_ground::digest::blake2b_64;
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

use crate::audits::obstacles;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::LabelDesignRegistered,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LabelSealed,
    Kind::ScoreRecorded,
    Kind::SplitsFormed,
    Kind::SplitsListed,
];

/// A count of entries within so many.
fn prefix(of: u64, all: usize) -> usize {
    usize::try_from(of).map_or(all, |of| of.min(all))
}

/// Probes of one policy in one design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyProbes {
    /// Rows of the policy with a label for calibration when its first probe could be read.
    pub calibrated: u64,
    /// The entry from which its first probe can be read.
    pub first: u64,
    /// Rows with a label that can be read.
    pub open: BTreeSet<String>,
    /// How many of them each judge scored only then.
    pub late: BTreeMap<JudgeId, u64>,
    /// How many rows of the policy each judge had scored when its first probe could be read.
    pub rows: BTreeMap<JudgeId, u64>,
}

/// Probes of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentProbes {
    /// Designs for audits.
    pub designs: BTreeSet<DesignId>,
    /// By policy, then design.
    pub by_policy: BTreeMap<PolicyId, BTreeMap<DesignId, PolicyProbes>>,
    /// Rows with a label for calibration, by policy, with the first design that named each.
    pub calibrated: BTreeMap<PolicyId, BTreeMap<String, DesignId>>,
    /// By design: how many policies had scores when its first probe could be read.
    pub families: BTreeMap<DesignId, u64>,
    /// Clusters that splits keep for confirm, as [`item_word`], in the order in which they were listed.
    pub confirm: Vec<u64>,
    /// How many of them were listed when the first probe of a policy was named, open or sealed, by design.
    pub confirmed: BTreeMap<PolicyId, BTreeMap<DesignId, u64>>,
    /// How many of them are of splits that were formed before the first label could be read.
    pub formed: u64,
    /// Whether a label could be read by now.
    pub is_labelled: bool,
    /// Of which designs a prompt of a policy is a probe, open or sealed.
    pub prompts: BTreeMap<PolicyId, BTreeMap<ItemId, BTreeSet<DesignId>>>,
    /// Rows of each policy that each judge scored.
    pub scores: BTreeMap<PolicyId, BTreeMap<JudgeId, ScoredRows>>,
}

/// Rows of a policy that a judge scored: how many, and which came first. What is held has a bound, whatever the log's length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoredRows {
    /// How many.
    pub count: u64,
    /// The [`item_word`] of each of the first [`ROWS_HELD`], in the order of their scores.
    pub first: Vec<u64>,
}

/// Rows of a policy of which the items are held, for each judge.
const ROWS_HELD: usize = 4_096;

/// Probes by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probes {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentProbes>,
}

/// An item in 53 bits of its digest.
fn item_word(item: &ItemId) -> u64 {
    // As many bits as an integer of a snapshot may have.
    blake2b_64(item.as_str().as_bytes()) >> 11
}

impl ExperimentProbes {
    /// How many of a policy's first rows are in clusters that were kept for confirm when its first probe was named: of more
    /// than [`ROWS_HELD`], as many as the share of those first ones says, rounded down. Where they have to be `formed`, their
    /// split was formed before the first label could be read.
    pub fn kept_for_confirm(
        &self,
        (policy, design): (&PolicyId, &DesignId),
        (judge, rows): (&JudgeId, u64),
        formed: bool,
    ) -> u64 {
        let listed = self.confirmed.get(policy).and_then(|of| of.get(design));
        let listed = listed.copied().unwrap_or(u64::MAX);
        let listed = if formed {
            listed.min(self.formed)
        } else {
            listed
        };
        let listed = prefix(listed, self.confirm.len());
        let kept: BTreeSet<u64> = self.confirm[..listed].iter().copied().collect();
        let scored = self.scores.get(policy).and_then(|of| of.get(judge));
        let scored = scored.map_or(&[][..], |of| of.first.as_slice());
        let held = &scored[..prefix(rows, scored.len())];
        let found = held.iter().filter(|row| kept.contains(row)).count() as u64;
        match held.len() as u64 {
            0 => 0,
            held if rows <= held => found,
            held => found.saturating_mul(rows) / held,
        }
    }

    /// Whether another experiment has rows of a policy that this one has too, among those that are held.
    pub fn shares_rows(&self, other: &Self, policy: &PolicyId) -> bool {
        let words = |of: &Self| -> BTreeSet<u64> {
            let judges = of.scores.get(policy).into_iter().flatten();
            let words = judges.flat_map(|(_, rows)| &rows.first);
            words.copied().collect()
        };
        !words(self).is_disjoint(&words(other))
    }

    /// How many rows of a policy a judge scored.
    pub fn scored(&self, policy: &PolicyId, judge: &JudgeId) -> u64 {
        let of = self.scores.get(policy).and_then(|of| of.get(judge));
        of.map_or(0, |of| of.count)
    }

    /// Another design of which a prompt of a policy is a probe, where it is none of this one.
    pub fn other_design(
        &self,
        policy: &PolicyId,
        item: &ItemId,
        design: &DesignId,
    ) -> Option<&DesignId> {
        let designs = self.prompts.get(policy)?.get(item)?;
        let first = designs.first()?;
        (!designs.contains(design)).then_some(first)
    }

    /// A prompt of a policy is a probe of a design.
    fn probe(&mut self, policy: &PolicyId, item: &ItemId, design: &DesignId) {
        let listed = self.confirm.len() as u64;
        let of = self.confirmed.entry(policy.clone()).or_default();
        of.entry(design.clone()).or_insert(listed);
        let of = self.prompts.entry(policy.clone()).or_default();
        let of = of.entry(item.clone()).or_default();
        of.insert(design.clone());
    }

    fn opened(&mut self, seq: u64, policy: &PolicyId, design: &DesignId, row: &str) {
        let policies = self.scores.len() as u64;
        self.families.entry(design.clone()).or_insert(policies);
        let (scores, calibrated) = (&self.scores, &self.calibrated);
        let of = self.by_policy.entry(policy.clone()).or_default();
        let of = of.entry(design.clone()).or_insert_with(|| PolicyProbes {
            calibrated: calibrated.get(policy).map_or(0, |of| of.len() as u64),
            first: seq,
            rows: scores.get(policy).map_or_else(BTreeMap::new, |of| {
                of.iter()
                    .map(|(judge, of)| (judge.clone(), of.count))
                    .collect()
            }),
            ..PolicyProbes::default()
        });
        of.open.insert(row.to_owned());
    }

    /// Counts a score of a policy's row.
    fn count(&mut self, said: &ScoreRecorded) {
        let judges = match self.scores.get_mut(&said.policy) {
            Some(judges) => judges,
            None => self.scores.entry(said.policy.clone()).or_default(),
        };
        let rows = match judges.get_mut(&said.judge) {
            Some(rows) => rows,
            None => judges.entry(said.judge.clone()).or_default(),
        };
        rows.count += 1;
        if rows.first.len() < ROWS_HELD {
            rows.first.push(item_word(&said.item));
        }
    }

    fn score_late(&mut self, said: &ScoreRecorded) {
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
        let (seq, event) = (event.seq(), event.event());
        let Some(id) = &event.header.experiment else {
            return;
        };
        let of = match self.by_experiment.get_mut(id) {
            Some(of) => of,
            None => self.by_experiment.entry(id.clone()).or_default(),
        };
        match &event.payload {
            Payload::LabelDesignRegistered(said) if said.purpose == DesignPurpose::Audit => {
                of.designs.insert(said.design.clone());
            }
            Payload::LabelRecorded(said) => {
                of.is_labelled = true;
                let row = row_of_draw(&said.policy, &said.item, said.draw);
                match said.purpose {
                    LabelPurpose::Audit => {
                        of.opened(seq, &said.policy, &said.design, &row);
                        of.probe(&said.policy, &said.item, &said.design);
                    }
                    LabelPurpose::Calibrate => {
                        let rows = of.calibrated.entry(said.policy.clone()).or_default();
                        rows.entry(row).or_insert_with(|| said.design.clone());
                    }
                }
            }
            Payload::LabelSealed(said) if of.designs.contains(&said.design) => {
                if let Some((policy, item, _)) = draw_of_row(&said.row) {
                    of.probe(&policy, &item, &said.design);
                }
            }
            Payload::LabelRevealed(said) => {
                of.is_labelled = true;
                if of.designs.contains(&said.design)
                    && let Some((policy, ..)) = draw_of_row(&said.row)
                {
                    of.opened(seq, &policy, &said.design, said.row.as_str());
                }
            }
            Payload::ScoreRecorded(said) => {
                of.score_late(said);
                of.count(said);
            }
            Payload::SplitsListed(said) if said.part == SplitPart::Confirm => {
                of.confirm.extend(said.clusters.iter().map(item_word));
            }
            // One split at a time is listed, and forming it closes it.
            Payload::SplitsFormed(_) if !of.is_labelled => of.formed = of.confirm.len() as u64,
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
    obstacles::check_family(state, experiment, said)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows of a policy, of which a split lists two for confirm beside one that nobody has. Its first probe is named between
    /// the first two clusters and the third.
    #[test]
    fn confirm_keeps_rows_of_the_policy_that_were_listed_before_its_first_probe() {
        let id = |name: &str| -> ItemId { name.parse().unwrap() };
        let (policy, judge): (PolicyId, JudgeId) = ("tuned".parse().unwrap(), "j".parse().unwrap());
        let (first, other): (DesignId, DesignId) =
            ("first".parse().unwrap(), "later".parse().unwrap());
        let mut of = ExperimentProbes::default();
        let rows = ["a", "b", "c", "d"].map(|name| item_word(&id(name)));
        let scores = of.scores.entry(policy.clone()).or_default();
        let first_rows = ScoredRows {
            count: 8,
            first: rows.to_vec(),
        };
        scores.insert(judge.clone(), first_rows);
        of.confirm
            .extend([id("a"), id("nobody")].iter().map(item_word));
        of.probe(&policy, &id("c"), &first);
        of.confirm.push(item_word(&id("d")));
        of.probe(&policy, &id("b"), &other);
        let kept =
            |design: &DesignId, rows| of.kept_for_confirm((&policy, design), (&judge, rows), false);
        assert_eq!(kept(&first, 4), 1);
        assert_eq!(kept(&other, 4), 2);
        // Rows that were scored later are not among those that were drawn from.
        assert_eq!(kept(&other, 3), 1);
        // Of rows beyond those that are held, as many as their share says.
        assert_eq!(kept(&other, 8), 4);
        assert_eq!(of.scored(&policy, &judge), 8);
        // Of a split that was formed before the first label, only the first two clusters.
        let formed = |design: &DesignId| of.kept_for_confirm((&policy, design), (&judge, 4), true);
        assert_eq!((formed(&first), formed(&other)), (0, 0));
        of.formed = 2;
        let formed = |design: &DesignId| of.kept_for_confirm((&policy, design), (&judge, 4), true);
        assert_eq!((formed(&first), formed(&other)), (1, 1));
    }
}
