//! Two judges on the same rows: whose scores agree better with open labels.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::scoring::ComparisonDoubts;
use clover_event::payload::scoring::JudgeCompared;
use clover_event::payload::scoring::NamedComparison;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_projection::designs::Designs;
use clover_projection::judges;
use clover_projection::judges::width;
use clover_projection::judges::worst_of_rows;
use clover_projection::manifests::Manifests;
use clover_projection::reader::LogReader;
use clover_projection::timely::ExperimentRows;
use clover_stats::agreement;
use clover_stats::agreement::Agreement;
use clover_stats::folds;
use clover_stats::inference::Interval;
use clover_stats::sample::Clusters;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::estimate::rows;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::NoCovariates;
use crate::estimate::rows::RowsError;
use crate::estimate::rows::Which;
use crate::estimate::shares::ChosenLabels;
use crate::estimate::shares::LabelRates;
use crate::estimate::terms::finite;
use crate::iterate::steps::BUILD;

pub use clover_projection::judges::NAMED;

/// Error rate of the interval, shared by the comparisons that a plan names.
pub const ALPHA: f64 = 0.05;
/// Folds, where there are labels enough.
const FOLDS: usize = 5;

/// Why two judges cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// No row has a label and a score of both.
    #[error("no labelled row has a score of both")]
    NoPairs,
    /// A judge has no scores.
    #[error("no score by {0}")]
    NoScores(JudgeId),
    /// The rows cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// Too few labels.
    #[error("too little to go on: {0}")]
    Unfit(#[from] Unfit),
}

/// How two judges agree with the labels of the rows that both scored.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeAgreement {
    /// The numbers.
    pub found: Agreement,
    /// Folds.
    pub folds: usize,
    /// Labelled rows that one of them did not score.
    pub unpaired: usize,
    /// What stands against a claim.
    pub doubts: AgreementDoubts,
    /// Whether the rulebook in force asks for that on record.
    is_asked: bool,
}

/// What stands against a claim of which judge is better.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementDoubts {
    /// Policies whose labels are not as many as were drawn.
    pub chosen: Vec<ChosenLabels>,
    /// Rows that one of them scored once a label of the policy could be read, of prompts with such a label.
    pub late: u64,
    /// Labelled rows that neither scored.
    pub unscored: usize,
    /// By how much the difference could move if late and missing scores were the worst.
    pub worst: f64,
}

impl AgreementDoubts {
    /// The position of the judge that agrees better whatever late and missing scores are; `None` where neither does.
    pub fn better(&self, interval: Interval) -> Option<usize> {
        let is_chosen = !self.chosen.is_empty();
        better((interval.low - self.worst, interval.high + self.worst)).filter(|_| !is_chosen)
    }
}

/// The position of the judge that errs less, by the ends of the interval of the first error less the second.
pub fn better((low, high): (f64, f64)) -> Option<usize> {
    if low > 0.0 {
        Some(1)
    } else if high < 0.0 {
        Some(0)
    } else {
        None
    }
}

/// A row: policy, item, draw.
type DrawKey = (String, String, u64);
/// Scores with labels, by row.
type ScoredRows = BTreeMap<DrawKey, (f64, Option<f64>)>;

/// Scores of a judge, with labels where there are some, by row.
fn scored(gathered: &Gathered) -> ScoredRows {
    let ids = gathered.prompts.ids();
    let policies = gathered.dataset.policies.iter().zip(&gathered.sources);
    let rows = policies.flat_map(|(policy, source)| {
        policy.prompts.iter().enumerate().map(move |(row, prompt)| {
            let item = ids[*prompt as usize].clone();
            let key = (policy.name.clone(), item, source.draws[row]);
            (key, (policy.scores[row], policy.labels[row]))
        })
    });
    rows.collect()
}

/// What stands against a claim about rows that were counted, of which some labelled ones have no score of both.
fn doubts(
    (history, below): (&dyn History, u64),
    state: &State,
    experiment: &ExperimentId,
    judges: [&JudgeId; 2],
    (each, unpaired, rows): (&[ScoredRows], usize, usize),
) -> Result<AgreementDoubts, LedgerError> {
    let (mut timely, mut draws) = (ExperimentRows::default(), BTreeSet::new());
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let entries = LogReader::below(history, below).of(experiment);
    entries.each(|seq, event| {
        timely.take(seq, &event.payload);
        if let Payload::LabelRecorded(label) = &event.payload
            && label.purpose != LabelPurpose::Audit
        {
            let value = label.value_micro.value() as f64 / 1e6;
            (low, high) = (low.min(value), high.max(value));
            let (policy, item) = (label.policy.to_string(), label.item.to_string());
            draws.insert((policy, item, label.draw.value()));
        }
        ControlFlow::Continue(())
    })?;
    let is_scored = |draw: &&DrawKey| each.iter().any(|rows| rows.contains_key(*draw));
    let unscored = draws.len() - draws.iter().filter(is_scored).count();
    let declared = width(state.fold::<Designs>().scale(experiment));
    let late = timely.late_beside_labels(judges);
    let missing = (unpaired + unscored) as u64;
    let span = declared.max(high - low);
    Ok(AgreementDoubts {
        chosen: Vec::new(),
        late,
        unscored,
        worst: worst_of_rows((late, missing), rows as u64, span),
    })
}

/// Compares two judges by what stands below an entry, as designs and the scale of labels are in a state: labels for calibration alone. Probes of audits and sealed labels are
/// not read.
///
/// # Errors
/// [`AgreementError`].
pub fn compared(
    (history, below): (&dyn History, u64),
    state: &State,
    experiment: &ExperimentId,
    judges: [&JudgeId; 2],
) -> Result<JudgeAgreement, AgreementError> {
    let rates = LabelRates::of(state, experiment).as_asked(state);
    let (mut each, mut chosen) = (Vec::with_capacity(judges.len()), Vec::new());
    for judge in judges {
        let which = Which {
            experiment,
            judge,
            environment: None,
            covariates: &[],
            fields: &[],
            places: &[],
            strata: false,
            use_of_rows: None,
            rows_below: below,
            audits_below: below,
        };
        let gathered = rows::gather(history, &which, &mut NoCovariates)?;
        let rows = scored(&gathered);
        if rows.is_empty() {
            return Err(AgreementError::NoScores(judge.clone()));
        }
        for policy in 0..gathered.sources.len() {
            let found = rates.beyond_the_draw(&gathered, policy);
            let is_new = |of: &ChosenLabels| {
                let known = |one: &ChosenLabels| one.policy == of.policy;
                !chosen.iter().any(known)
            };
            chosen.extend(found.into_iter().find(is_new));
        }
        each.push(rows);
    }
    let (first, second) = (&each[0], &each[1]);
    let labelled = |rows: &ScoredRows| rows.values().filter(|(_, label)| label.is_some()).count();
    let (mut scores, mut labels, mut items) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
    for (key, (score, label)) in first {
        if let (Some((other, _)), Some(label)) = (second.get(key), label) {
            scores[0].push(*score);
            scores[1].push(*other);
            labels.push(*label);
            items.push(key.1.as_str());
        }
    }
    if labels.is_empty() {
        return Err(AgreementError::NoPairs);
    }
    let of = |column| Values::new("scores", column).map_err(Unfit::from);
    let clusters = Clusters::of(items.iter().copied()).map_err(Unfit::from)?;
    let count = folds::resolve_count(FOLDS, clusters.count());
    let of_row = folds::balanced(&items, &items, count, 0);
    let pair = [of(&scores[0])?, of(&scores[1])?];
    let found = agreement::compare(pair, of(&labels)?, &clusters, (&of_row, count))?;
    let unpaired = labelled(first) + labelled(second) - 2 * found.rows;
    let of_rows = (each.as_slice(), unpaired, found.rows);
    let doubts = doubts((history, below), state, experiment, judges, of_rows);
    let doubts = doubts.map_err(RowsError::from)?;
    Ok(JudgeAgreement {
        found,
        folds: count,
        unpaired,
        doubts: AgreementDoubts { chosen, ..doubts },
        is_asked: state.asks(Question::DoubtedJudges),
    })
}

/// Comparisons of two judges that are on record below an entry, in whichever order they were named.
///
/// # Errors
/// What reading the log gives.
pub fn earlier(
    history: &dyn History,
    experiment: &ExperimentId,
    [first, second]: [&JudgeId; 2],
    below: u64,
) -> Result<Vec<(u64, JudgeCompared)>, LedgerError> {
    let mut all = Vec::new();
    let entries = LogReader::below(history, below).of(experiment);
    entries.each(|seq, event| {
        if let Payload::JudgeCompared(said) = &event.payload {
            let pair = [&said.first, &said.second];
            if pair == [first, second] || pair == [second, first] {
                all.push((seq, (**said).clone()));
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

/// The plan in force at a state that named a comparison before the first label for calibration. Once a comparison that a plan
/// named is on record, whoever asks again has seen it: then no plan stands behind it.
///
/// # Errors
/// What reading the log gives.
pub fn plan(
    (history, below): (&dyn History, u64),
    state: &State,
    experiment: &ExperimentId,
    [first, second]: [&JudgeId; 2],
) -> Result<Option<NamedComparison>, LedgerError> {
    let mut plans = state.fold::<Manifests>().by_id.iter();
    let found = plans.find_map(|(id, record)| {
        let version = record.in_force()?;
        let of = &version.manifest;
        let all = judges::named(of);
        let is_named = judges::names(&all, [first, second]);
        // A plan that waited for its custodian named nothing until then.
        let since = if state.asks(Question::PlanInForce) {
            version.since()?
        } else {
            version.seq
        };
        (of.experiment == *experiment && is_named).then(|| (id.clone(), all.len(), since))
    });
    let Some((manifest, all, seq)) = found else {
        return Ok(None);
    };
    let mut is_late = false;
    let entries = LogReader::below(history, seq).of(experiment);
    entries.each(|_, event| {
        is_late |= matches!(&event.payload, Payload::LabelRecorded(label) if label.purpose != LabelPurpose::Audit);
        ControlFlow::Continue(())
    })?;
    let pair = [first, second];
    let seen = earlier(history, experiment, pair, below)?;
    is_late |= seen.iter().any(|(_, said)| said.plan.is_some());
    Ok((!is_late).then(|| NamedComparison {
        comparisons: count(all),
        manifest,
    }))
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

impl JudgeAgreement {
    /// What was found as an event says it. Comparisons that a plan names share the error rate in equal parts.
    ///
    /// # Panics
    /// Never: what is counted fits the event.
    pub fn said(
        &self,
        judges: [&JudgeId; 2],
        plan: Option<NamedComparison>,
        through: u64,
    ) -> JudgeCompared {
        let named = plan.as_ref().map_or(1, |of| of.comparisons.value().max(1));
        let interval = self.found.interval(ALPHA / named as f64);
        let doubts = self.is_asked.then_some(&self.doubts);
        let better = match doubts.filter(|_| plan.is_some()) {
            Some(doubts) => doubts.better(interval),
            None => better((interval.low, interval.high)),
        };
        JudgeCompared {
            better: better.map(|at| judges[at].clone()),
            build: Text::new(BUILD).expect("BUG: the build is a text"),
            difference: finite(self.found.difference),
            doubts: doubts.map(|of| ComparisonDoubts {
                chosen: count(of.chosen.len()),
                late: Count::new(of.late).unwrap_or_default(),
                unscored: count(of.unscored),
                worst: finite(of.worst),
            }),
            first: judges[0].clone(),
            first_error: finite(self.found.errors[0]),
            folds: count(self.folds),
            high: finite(interval.high),
            items: count(self.found.clusters),
            low: finite(interval.low),
            plan,
            rows: count(self.found.rows),
            second: judges[1].clone(),
            second_error: finite(self.found.errors[1]),
            through_seq: Count::new(through).unwrap_or_default(),
            unpaired: count(self.unpaired),
        }
    }
}
