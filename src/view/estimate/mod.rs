//! How estimates of a ledger are shown: values with what may be claimed of them, and what labels are missing.

pub mod charts;
mod claimed;
mod contrasts;
pub mod doubts;
mod ordered;
mod registered;
pub mod said;
mod width;

pub use contrasts::Contrasts;
pub use contrasts::ContrastsFacts;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::payload::audit::TransportStanding;
use crate::event::payload::environment::EnvironmentScope;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::LabelUse;
use crate::event::payload::estimated::TransportState;
use crate::ground::digest::Digest;
use crate::num::Count;
use crate::num::Finite;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::ranking::RankInterval;
use crate::view::View;
use crate::view::answer;
use crate::view::answer::BestPolicy;
use crate::view::answer::Standing;
use crate::view::estimate::doubts::Asked;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::estimate::ordered::ranks;
use crate::view::estimate::width::decisive;
use crate::view::estimate::width::noted;
use crate::view::estimate::width::on_scale;
use crate::view::regime;
use crate::view::values;
use crate::view::values::Ends;
use crate::view::values::LabelsAlone;
use crate::view::values::WeightFacts;
use crate::view::values::bracket;
use crate::view::values::doubted;
use crate::view::values::plotted;
use crate::workflow::estimate::advice;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::slices::Sliced;

/// Values of policies by the rows of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EstimatesFacts {
    /// Which policy is best, and whether that may be claimed.
    pub answer: BestPolicy,
    /// One less the level of intervals.
    pub alpha: f64,
    /// Digest of the calibrator; `null` where there are too few labels for one.
    pub calibrator: Option<Digest>,
    /// Policies in order of their names.
    pub policies: Vec<PolicyFacts>,
    /// Residuals by slice; absent unless they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residuals: Option<charts::SlicesFacts>,
    /// Everything beside the rows that the values depend on.
    pub terms: EstimateTerms,
}

/// One policy. Of `level`, `unchecked` and `withheld` one is there: its name says whether the value is a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyFacts {
    /// Its name.
    pub policy: String,
    /// What may be claimed of its level.
    pub claim: Claim,
    /// Best and worst place that it may take, from 1; `null` where it has no rank.
    pub rank: Option<[u64; 2]>,
    /// Rows.
    pub rows: Count,
    /// Rows that do not count, since they were scored once a label of the policy could be read; absent before rulebook 23.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Count>,
    /// Labels of its own that correct it.
    pub labels: Count,
    /// How labels and calibrator make the value.
    pub route: String,
    /// Weight on the prediction inside the correction; `null` without a correction by own labels.
    pub weight: Option<WeightFacts>,
    /// What its own labels say without a judge.
    pub labels_only: Option<LabelsAlone>,
    /// Mean judge score, as recorded.
    pub judge_mean: f64,
    /// Share of the variance that is the calibrator's, from 0 to 1.
    pub calibration_share: Option<f64>,
    /// The same by tenth of the reward, lowest first; `null` where there is no calibrator.
    pub share_by_decile: Option<Vec<Option<f64>>>,
    /// Ends that monotonicity alone leaves open, where the level is withheld.
    pub bounds: Option<Ends>,
    /// The audit that stands for or against it.
    pub transport: Option<AuditFacts>,
    /// Why there is no interval.
    pub no_interval: Option<String>,
    /// The value, where it is a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelFacts>,
    /// The value, where nobody checked that it is one: no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<LevelFacts>,
    /// The value, where its level is withheld: for whoever computes it again, and no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<LevelFacts>,
}

/// An audit of transport.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditFacts {
    /// What it found: `PASS`, `FAIL`, `INCONCLUSIVE`, `NOT GRADED` or `NOT CHECKED`.
    pub state: &'static str,
    /// Its entry.
    pub seq: Count,
}

impl From<TransportStanding> for AuditFacts {
    fn from(of: TransportStanding) -> Self {
        Self {
            state: state(of.state),
            seq: of.seq,
        }
    }
}

/// A value with its interval, in label units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LevelFacts {
    /// The value.
    pub estimate: f64,
    /// Standard error; `null` where there is none.
    pub se: Option<f64>,
    /// Degrees of freedom of a t interval.
    pub df: Option<f64>,
    /// The interval, not clipped to the scale; `null` where there is none.
    pub interval: Option<Ends>,
    /// The same, clipped.
    pub interval_clipped: Option<Ends>,
    /// The interval widened by the margin of the audit that it rests on, within the scale; absent where it rests on none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conservative_interval: Option<Ends>,
    /// How the interval came about.
    pub interval_method: &'static str,
}

/// Estimates of some policies.
#[derive(Clone, Copy, Debug)]
pub struct Estimates<'a> {
    /// What was computed.
    pub found: &'a Found,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Their differences, which give ranks.
    pub contrasts: &'a [ContrastRecorded],
    /// Position and event of each.
    pub rows: &'a [(usize, EstimateRecorded)],
    /// Whether refused levels are shown.
    pub raw: bool,
    /// Residuals by slice, where they are asked for.
    pub sliced: Option<&'a Sliced>,
    /// What the record says against a claim.
    pub basis: &'a ClaimBasis,
}

/// What an audit found, in capitals.
pub(super) fn state(state: TransportState) -> &'static str {
    match state {
        TransportState::Fail => "FAIL",
        TransportState::Inconclusive => "INCONCLUSIVE",
        TransportState::NotChecked => "NOT CHECKED",
        TransportState::NotGraded => "NOT GRADED",
        TransportState::Pass => "PASS",
    }
}

/// What may be claimed, in a word or two.
fn claim(row: &EstimateRecorded) -> &'static str {
    let audit = row.transport.map_or("NOT CHECKED", |of| state(of.state));
    match row.claim {
        Claim::OwnLabels => "own labels",
        Claim::BorrowedChecked | Claim::BorrowedUnchecked => audit,
        Claim::Refused if audit == state(TransportState::Fail) => audit,
        Claim::Refused => "REFUSE-LEVEL",
        Claim::Uncalibrated => "uncalibrated",
    }
}

fn digits(found: &Found) -> usize {
    values::digits(found.analysis.output_scale)
}

fn ends(of: IntervalEnds) -> Ends {
    Ends([of.low.value(), of.high.value()])
}

fn standing(row: &EstimateRecorded) -> Standing {
    match row.claim {
        Claim::OwnLabels | Claim::BorrowedChecked => Standing::Claimable,
        _ if failed_of(row).is_some() => Standing::Failed,
        Claim::BorrowedUnchecked
            if row
                .transport
                .is_some_and(|of| of.state == TransportState::Inconclusive) =>
        {
            Standing::Inconclusive
        }
        Claim::BorrowedUnchecked
            if row.terms.labels == LabelUse::Targeted && row.labels.value() > 0 =>
        {
            Standing::Stratified
        }
        Claim::BorrowedUnchecked
            if row.terms.labels == LabelUse::Weighted && row.labels.value() > 0 =>
        {
            Standing::Sparse
        }
        Claim::BorrowedUnchecked => Standing::Unchecked,
        Claim::Refused => Standing::Withheld,
        Claim::Uncalibrated => Standing::Uncalibrated,
    }
}

/// How labels are used, in words.
pub fn label_words(labels: LabelUse) -> &'static str {
    match labels {
        LabelUse::Representative => "labels representative",
        LabelUse::Targeted => "labels drawn by stratum: they fit, and correct nothing",
        LabelUse::Weighted => {
            "labels drawn by stratum, weighted by the probabilities of their design"
        }
    }
}

impl Estimates<'_> {
    fn is_withheld(&self, row: &EstimateRecorded) -> bool {
        row.claim == Claim::Refused && !self.raw
    }

    fn places(&self) -> Vec<usize> {
        self.rows.iter().map(|(policy, _)| *policy).collect()
    }

    fn asked<'s>(&'s self, places: &'s [usize]) -> Asked<'s> {
        Asked {
            found: self.found,
            experiment: self.experiment,
            basis: self.basis,
            places,
            contrasts: self.contrasts,
        }
    }

    fn ranks(&self, answer: &BestPolicy) -> Vec<Option<RankInterval>> {
        ranks(&self.asked(&self.places()), answer)
    }

    fn decisive(&self, policy: usize, row: &EstimateRecorded) -> Option<Ends> {
        decisive((self.found, self.experiment), policy, row)
    }

    fn percent(&self) -> String {
        values::percent(self.found.analysis.alpha)
    }

    /// The view, and where it stands on record.
    pub fn view(&self, recorded: Option<View>, unrecorded: &'static str) -> View {
        let facts = self.facts(recorded.is_some());
        let mut view = View::of(&facts);
        view.answer(facts.answer.answer.text.clone());
        self.table(&mut view, &facts.answer);
        view.gap();
        plotted(&mut view, &self.plot());
        view.gap();
        for remark in self.remarks() {
            view.sentence(remark);
        }
        if let Some(sliced) = self.sliced {
            view.gap();
            plotted(&mut view, &charts::slices(sliced));
        }
        let is_recorded = recorded.is_some();
        let mut view = values::on_record(view, &facts, recorded, unrecorded);
        view.next.extend(self.next(is_recorded));
        view
    }

    fn table(&self, view: &mut View, answer: &BestPolicy) {
        let digits = digits(self.found);
        let head = [
            answer::headed(self.found.terms.environment.as_ref(), "policy"),
            "value".to_owned(),
            format!("{} % interval", self.percent()),
            "rank".to_owned(),
            "labels alone".to_owned(),
            "judge".to_owned(),
            "claim".to_owned(),
        ];
        let number = |value: f64| format!("{value:.digits$}");
        let rows = self.rows.iter().zip(self.ranks(answer));
        let rows = rows.map(|((policy, row), place)| {
            let shown = self.decisive(*policy, row);
            let shown = shown.map_or("none".to_owned(), |of| bracket(of, digits));
            let withheld = self.is_withheld(row);
            // Labels of unequal probabilities say nothing alone, unless they are weighted.
            let is_weighted = row.terms.labels != LabelUse::Targeted;
            let alone = row.labels_only.filter(|_| is_weighted);
            let alone = alone.and_then(|of| of.interval);
            let alone = alone.map(|of| on_scale(row, of));
            let is_doubted = matches!(row.claim, Claim::BorrowedUnchecked | Claim::Uncalibrated);
            vec![
                row.policy.to_string(),
                if withheld {
                    "withheld".to_owned()
                } else {
                    doubted(number(row.estimate.value()), is_doubted)
                },
                if withheld { "-".to_owned() } else { shown },
                values::rank(place),
                alone.map_or("-".to_owned(), |of| bracket(ends(of), digits)),
                number(row.raw_mean.value()),
                claim(row).to_owned(),
            ]
        });
        view.table(&head, rows);
    }

    fn remarks(&self) -> Vec<String> {
        let found = self.found;
        let mut remarks = Vec::new();
        match &found.analysis.calibration {
            Ok(of) => {
                let labels = label_words(found.terms.labels);
                remarks.push(values::fitted(of) + labels);
                if let Some(scale) = found.terms.label_scale {
                    let error = of.calibrator.quality.oof_rmse * said::span(Some(scale));
                    remarks.push(format!(
                        "scale  labels and values are on {} to {}; there the error out of fold is {error:.3}",
                        scale.low_micro, scale.high_micro
                    ));
                }
            }
            Err(thin) => remarks.push(format!("calibrator  none: {thin}")),
        }
        remarks.extend(charts::lines(found));
        let audits = self.rows.iter().filter_map(|(_, row)| {
            let of = row.transport?;
            Some(format!(
                "{} {} at seq {}",
                row.policy,
                state(of.state),
                of.seq
            ))
        });
        let audits: Vec<String> = audits.collect();
        if !audits.is_empty() {
            remarks.push(format!("transport  {}", audits.join(", ")));
        }
        let environments = found
            .gathered
            .audits
            .environments(self.experiment, &found.terms.judge);
        remarks.extend(environments.filter_map(regime::line));
        if let Some(scope) = &found.terms.environment {
            remarks.push(format!(
                "environment {scope}  rows and labels of it alone: nothing is said of other rows"
            ));
        }
        let borrows = |row: &EstimateRecorded| row.claim == Claim::BorrowedUnchecked;
        let borrowed = self.rows.iter().filter(|(_, row)| borrows(row));
        let borrowed: Vec<&str> = borrowed.map(|(_, row)| row.policy.as_str()).collect();
        if !borrowed.is_empty() {
            remarks.push(format!(
                "? NOT CHECKED  {}: no result. Labels of others calibrate it, the interval does not cover that this may \
                 not transfer, and a judge that favours it would look the same. It has no rank until an audit passes",
                borrowed.join(", ")
            ));
        }
        remarks.extend(self.rows.iter().filter_map(|(at, row)| {
            charts::unvaried(row, self.found.analysis.policies[*at].is_widened())
        }));
        remarks.extend(self.widened());
        for (policy, row) in self.rows {
            remarks.extend(values::weighed(&self.found.analysis.policies[*policy]));
            remarks.extend(self.shares(*policy, row));
            remarks.extend(self.refusal(*policy, row));
        }
        remarks.extend(self.basis.kinship().iter().cloned());
        remarks
    }

    /// The calibrator's share, overall and by decile of the reward.
    fn shares(&self, policy: usize, row: &EstimateRecorded) -> Option<String> {
        let share = row.share?.value();
        let detail = self.found.analysis.policies[policy].detail.as_ref()?;
        let deciles = detail.share_by_decile.iter().map(|of| {
            let share = of.and_then(|of| of.share());
            share.map_or("-".to_owned(), |share| format!("{:.0}", 100.0 * share))
        });
        Some(format!(
            "{}  the calibrator brings {:.0} % of the variance; of the mean reward of each tenth of rows, least first, in %: {}",
            row.policy,
            100.0 * share,
            deciles.collect::<Vec<_>>().join(", "),
        ))
    }

    /// Why a level is withheld, what is left, and what to label.
    fn refusal(&self, policy: usize, row: &EstimateRecorded) -> Option<String> {
        let result = &self.found.analysis.policies[policy];
        let support = result.support.filter(|support| support.refuse_level)?;
        let digits = digits(self.found);
        // After a failed audit the bounds of the curve give the withheld level away.
        let bounds = row.bounds.filter(|_| failed_of(row).is_none());
        let bounds = bounds.map_or(String::new(), |of| {
            format!("; monotonicity alone leaves {}", bracket(ends(of), digits))
        });
        let m = self
            .found
            .analysis
            .calibration
            .as_ref()
            .map_or(0, |of| of.labels);
        let scale = self.found.analysis.judge_scale;
        let wanted = advice::advice(&support, m).into_iter().map(|of| {
            let edge = scale.map_or(of.edge, |scale| scale.level(of.edge));
            let side = if of.is_low { "below" } else { "above" };
            format!(
                "label {} of its responses with a score {side} {edge} ({:.0} % of them, {} labels there)",
                of.wanted,
                100.0 * of.mass,
                of.labels
            )
        });
        Some(format!(
            "{}  {:.1} % of scores outside the labelled ones{bounds}: {}",
            row.policy,
            100.0 * support.out_of_range,
            wanted.collect::<Vec<_>>().join(", "),
        ))
    }

    /// Findings that must not be missed.
    pub fn warnings(&self) -> Vec<String> {
        let failed = self.rows.iter().filter_map(|(policy, row)| {
            let audit = row.transport.filter(|of| of.state == TransportState::Fail)?;
            if let Some(scope) = failed_environment((self.found, self.experiment), audit.seq) {
                return Some(format!(
                    "{}: calibration fails in {scope} (seq {}); no level until a later test of it passes",
                    row.policy, audit.seq
                ));
            }
            let wanted = self.found.answers(self.experiment, *policy).unwrap_or(1);
            Some(answer::withheld(row.policy.as_str(), audit.seq.value(), wanted))
        });
        let missed = self.rows.iter().filter_map(|(policy, row)| {
            let of = &self.found.analysis.policies[*policy];
            values::missed(row.policy.as_str(), of.estimate, of.resampled?.interval)
        });
        failed.chain(missed).collect()
    }

    /// The values on the scale of labels.
    pub fn plot(&self) -> Forest {
        let digits = digits(self.found);
        let shown = self.rows.iter().filter(|(_, row)| !self.is_withheld(row));
        let rows = shown.map(|(policy, row)| ForestRow {
            label: row.policy.as_str().to_owned(),
            estimate: row.estimate.value(),
            interval: self
                .decisive(*policy, row)
                .map(|Ends([low, high])| (low, high)),
            hollow: !matches!(row.claim, Claim::OwnLabels | Claim::BorrowedChecked),
            note: noted(format!("{:.digits$}", row.estimate.value()), failed_of(row)),
        });
        let of = &self.found.analysis;
        let mut drawn = values::values_forest(of.alpha, of.output_scale, rows.collect());
        drawn.title = answer::headed(self.found.terms.environment.as_ref(), &drawn.title);
        drawn
    }

    /// What they say, for machines.
    pub fn facts(&self, on_record: bool) -> EstimatesFacts {
        let places = self.places();
        let answer = self.asked(&places).values(on_record);
        let rows = self.rows.iter().zip(self.ranks(&answer));
        let rows = rows.map(|((policy, row), place)| self.policy_facts(*policy, row, place));
        EstimatesFacts {
            policies: rows.collect(),
            answer,
            alpha: self.found.analysis.alpha,
            terms: self.found.terms.clone(),
            calibrator: self.found.digest(),
            residuals: self.sliced.map(charts::slices_facts),
        }
    }

    fn policy_facts(
        &self,
        policy: usize,
        row: &EstimateRecorded,
        place: Option<RankInterval>,
    ) -> PolicyFacts {
        let detail = self.found.analysis.policies[policy].detail.as_ref();
        let shares = detail.map(|of| {
            let shares = of.share_by_decile.iter();
            shares.map(|share| share.and_then(|of| of.share()))
        });
        let margin = self.found.margin(self.experiment, policy, row.claim);
        let level = LevelFacts {
            estimate: row.estimate.value(),
            se: row.se.map(Finite::value),
            df: row.df.map(Finite::value),
            interval: row.interval.map(ends),
            interval_clipped: row.interval_clipped.map(ends),
            conservative_interval: self.decisive(policy, row).filter(|_| margin > 0.0),
            interval_method: row.interval_method.as_str(),
        };
        // What is no result is there for whoever recomputes it, under a name that says what it is.
        let (level, unchecked, withheld) = match row.claim {
            Claim::Refused => (None, None, Some(level)),
            Claim::BorrowedUnchecked | Claim::Uncalibrated => (None, Some(level), None),
            Claim::BorrowedChecked | Claim::OwnLabels => (Some(level), None, None),
        };
        PolicyFacts {
            policy: row.policy.to_string(),
            claim: row.claim,
            rank: values::rank_ends(place),
            rows: row.rows,
            late: row.late,
            labels: row.labels,
            route: row.route.as_str().to_owned(),
            weight: self.found.analysis.policies[policy]
                .weight
                .map(WeightFacts::from),
            labels_only: row.labels_only.map(|of| LabelsAlone {
                mean: of.mean.value(),
                interval: of.interval.map(ends),
            }),
            judge_mean: row.raw_mean.value(),
            calibration_share: row.share.map(Finite::value),
            share_by_decile: shares.map(Iterator::collect),
            bounds: row.bounds.map(ends),
            transport: row.transport.map(AuditFacts::from),
            no_interval: row.no_interval.as_ref().map(|why| why.as_str().to_owned()),
            level,
            unchecked,
            withheld,
        }
    }
}

/// The environment whose failed test stands at an entry.
fn failed_environment<'f>(
    (found, experiment): (&'f Found, &'f ExperimentId),
    seq: Count,
) -> Option<&'f EnvironmentScope> {
    let (audits, judge) = (&found.gathered.audits, &found.terms.judge);
    let mut records = audits.environments(experiment, judge);
    let failed = records.find(|record| record.failed_seq == Some(seq.value()));
    failed.map(|record| &record.scope)
}

/// The failed audit that stands against an estimate.
fn failed_of(row: &EstimateRecorded) -> Option<TransportStanding> {
    row.transport.filter(|of| of.state == TransportState::Fail)
}
