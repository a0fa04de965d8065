//! How an analysis of files is shown: values and differences with their plots, and what a reader must know beside them.

mod facts;
mod file;

pub use facts::AnalysisFacts;
pub use file::FileFormat;

use crate::event::payload::estimated::Reading;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::boundary::Support;
use crate::stats::direct::Route;
use crate::stats::direct::Scale;
use crate::stats::inference::Interval;
use crate::stats::ranking::RankInterval;
use crate::stats::transport::AuditState;
use crate::stats::transport::Width;
use crate::view::View;
use crate::view::answer;
use crate::view::answer::BestPolicy;
use crate::view::answer::OrderStanding;
use crate::view::answer::Question;
use crate::view::answer::Standing;
use crate::view::text::escape;
use crate::view::text::thousands;
use crate::view::values;
use crate::view::values::doubted;
use crate::view::values::plotted;
use crate::workflow::analyze::Analysis;
use crate::workflow::analyze::Difference;
use crate::workflow::analyze::Method;
use crate::workflow::analyze::PolicyResult;
use crate::workflow::analyze::Probe;
use crate::workflow::analyze::dataset::Dataset;
use crate::workflow::analyze::dataset::PromptGaps;

/// What the command records.
const EXPLORATORY: &str = "exploratory: not on the record";
/// Pairs of policies from which unadjusted p-values are not what to read.
const ADJUST_ABOVE: usize = 5;

/// An analysis with what was asked.
#[derive(Clone, Debug)]
pub struct AnalysisShown<'a> {
    /// What was found.
    pub analysis: &'a Analysis,
    /// Where the responses are.
    pub source: String,
    /// Covariates that were asked for.
    pub covariates: &'a [String],
    /// Replicates of a bootstrap.
    pub replicates: Option<usize>,
    /// Their seed.
    pub seed: u64,
    /// Whose random numbers.
    pub draws: &'a str,
    /// Whether the scales of judge scores and of labels were declared.
    pub declared: (bool, bool),
    /// Prompts that some of the policies have scores of and others not.
    pub gaps: PromptGaps,
}

/// The interval that is in force: of the bootstrap where one ran, widened where labels hardly vary.
fn interval(policy: &PolicyResult) -> Option<Interval> {
    policy.interval().ok().map(|(interval, _)| interval)
}

fn se(policy: &PolicyResult) -> Option<f64> {
    let resampled = policy.resampled.map(|resampled| resampled.se);
    resampled.or_else(|| policy.spread.ok().map(|spread| spread.se))
}

fn refused(policy: &PolicyResult) -> bool {
    policy.support.is_some_and(|support| support.refuse_level)
}

fn standing(policy: &PolicyResult) -> Standing {
    let audit = policy.transport.as_ref().map(|result| result.audit.state);
    match policy.route {
        Route::Naive => Standing::Uncalibrated,
        _ if audit == Some(AuditState::Fail) => Standing::Failed,
        _ if refused(policy) => Standing::Withheld,
        _ if policy.is_checked() => Standing::Claimable,
        _ if matches!(audit, Some(AuditState::Inconclusive(_))) => Standing::Inconclusive,
        _ => Standing::Unchecked,
    }
}

/// What the rows of a file say against a comparison of them, a sentence each: scores that lack, and probes that are not of
/// the policy that they are said to be of.
pub fn doubts(dataset: &Dataset, probes: &[Probe]) -> Vec<String> {
    let all: Vec<usize> = (0..dataset.policies.len()).collect();
    let lacking = dataset
        .gaps(&all)
        .largest()
        .into_iter()
        .map(|(policy, gap)| {
            format!(
                "{} has no score for {} of {} prompts: what is missing may be missing for a reason",
                dataset.policies[policy].name, gap.first, gap.all
            )
        });
    let probed = probes.iter().filter_map(|probe| {
        let of = dataset.probe_match(&probe.responses)?;
        (2 * of.other > of.common).then(|| {
            format!(
                "--transport-probe {name}: {} of {} prompts have another score than in the rows of {name}: are they another \
                 policy's?",
                of.other,
                of.common,
                name = probe.responses.name
            )
        })
    });
    lacking.chain(probed).collect()
}

/// Whether too many scores lie where there are no labels for a level.
fn is_withheld(policy: &PolicyResult) -> bool {
    policy.route != Route::Naive && refused(policy)
}

/// What may be said of a policy's level.
fn level(policy: &PolicyResult) -> &'static str {
    if policy.route == Route::Naive {
        return "uncalibrated";
    }
    if refused(policy) {
        return "REFUSED";
    }
    match policy.transport.as_ref().map(|result| result.audit.state) {
        Some(AuditState::Pass) => "PASS",
        Some(AuditState::Fail) => "FAIL",
        Some(AuditState::Inconclusive(_)) => "INCONCLUSIVE",
        _ if policy.borrows() => "NOT CHECKED",
        _ => "own labels",
    }
}

fn state(state: AuditState) -> &'static str {
    match state {
        AuditState::Pass => "PASS",
        AuditState::Fail => "FAIL",
        AuditState::Inconclusive(_) => "INCONCLUSIVE",
        AuditState::NotGraded => "NOT GRADED",
        AuditState::NotChecked => "NOT CHECKED",
    }
}

impl AnalysisShown<'_> {
    /// Digits after the point that suit the output scale.
    fn digits(&self) -> usize {
        1 + values::digits(self.analysis.output_scale)
    }

    fn number(&self, value: f64) -> String {
        format!("{value:.*}", self.digits())
    }

    fn bracket(&self, interval: Interval) -> String {
        values::bracket(values::ends(interval), self.digits())
    }

    fn percent(&self) -> String {
        values::percent(self.analysis.alpha)
    }

    /// The view.
    pub fn view(&self) -> View {
        let found = self.analysis;
        let facts = self.facts();
        let mut view = View::of(&facts).with_verdict("exploratory");
        view.answer(facts.answer.answer.text.clone());
        view.line(format!(
            "{EXPLORATORY} · {} · {}",
            self.source,
            self.method()
        ));
        view.gap();
        self.values_table(&mut view);
        view.gap();
        plotted(&mut view, &self.values_plot());
        if !found.differences.is_empty() {
            view.gap();
            self.differences_table(&mut view);
        }
        view.gap();
        for remark in self.remarks() {
            view.sentence(remark);
        }
        view
    }

    fn values_table(&self, view: &mut View) {
        let interval_head = format!("{} % interval", self.percent());
        let head = [
            "policy".to_owned(),
            "value".to_owned(),
            interval_head,
            "labels alone".to_owned(),
            "labels".to_owned(),
            "rows".to_owned(),
            "level".to_owned(),
        ];
        let rows = self.analysis.policies.iter().map(|policy| {
            let is_doubted = policy.borrows() || policy.route == Route::Naive;
            let (value, interval) = if is_withheld(policy) {
                ("withheld".to_owned(), "-".to_owned())
            } else {
                let interval = interval(policy).map(|of| self.bracket(of));
                let value = doubted(self.number(policy.estimate), is_doubted);
                (value, interval.unwrap_or_else(|| "none".to_owned()))
            };
            vec![
                policy.name.clone(),
                value,
                interval,
                self.alone(policy),
                thousands(policy.labelled as u64),
                thousands(policy.rows as u64),
                level(policy).to_owned(),
            ]
        });
        view.table(&head, rows);
    }

    /// How a difference is to be read: two policies that have not the same prompts are told apart only where the worst scores
    /// of what is missing would not change that, and never where they have no prompt in common.
    fn stands(&self, pair: &Difference) -> Reading {
        let found = self.analysis;
        let reading = found.reading(pair);
        let Some(gap) = self.gaps.pair(pair.first, pair.second) else {
            return reading;
        };
        let sides = [pair.first, pair.second].map(|at| &found.policies[at]);
        let margins: f64 = sides.iter().map(|side| side.audited_margin()).sum();
        let widest = pair.widest().unwrap_or(pair.interval).widened(margins);
        let holds =
            gap.is_none() || gap.both() > 0 && gap.leaves_apart(widest, found.output_scale.span());
        if reading == Reading::ToldApart && !holds {
            return Reading::NotToldApart;
        }
        reading
    }

    /// Prompts of which some policies have no score.
    fn lacking(&self) -> Vec<String> {
        values::lacking_prompts(&self.gaps, |policy| &self.analysis.policies[policy].name)
    }

    /// The ranks that told-apart pairs leave to policies; `None` for one that nobody checked, or whose level is withheld, and
    /// for each where none is told apart.
    fn ranks(&self) -> Vec<Option<RankInterval>> {
        let found = self.analysis;
        let all: Vec<usize> = (0..found.policies.len()).collect();
        let told = |pair: &&Difference| self.stands(pair) == Reading::ToldApart;
        let apart = found.differences.iter().filter(told);
        let apart = apart.map(|pair| values::ordered((pair.first, pair.second), pair.difference));
        let claimable = |at: &usize| standing(&found.policies[*at]) == Standing::Claimable;
        values::ranks(&all, self.answer().is_ordered, claimable, apart)
    }

    /// The ranks of several policies that were checked, in words.
    fn ranked(&self) -> Option<String> {
        let policies = self.analysis.policies.iter().zip(self.ranks());
        let ranked = policies.filter(|(_, rank)| rank.is_some());
        let ranked: Vec<String> = ranked
            .map(|(policy, rank)| format!("{} {}", policy.name, values::rank(rank)))
            .collect();
        (ranked.len() > 1).then(|| {
            format!(
                "ranks  {}: what the pairs told apart by p (BH) leave",
                ranked.join(", ")
            )
        })
    }

    /// Which policy is best.
    fn answer(&self) -> BestPolicy {
        let found = self.analysis;
        let policies: Vec<answer::Policy> = found
            .policies
            .iter()
            .map(|policy| answer::Policy {
                name: policy.name.clone(),
                value: policy.estimate,
                interval: interval(policy).map(values::ends),
                standing: standing(policy),
            })
            .collect();
        let order = |first: usize, second: usize| {
            let told = |of: &&Difference| self.stands(of) == Reading::ToldApart;
            found.differences.iter().filter(told).find_map(|of| {
                let sign = of.difference.total_cmp(&0.0);
                if (of.first, of.second) == (first, second) {
                    Some(sign)
                } else {
                    ((of.second, of.first) == (first, second)).then(|| sign.reverse())
                }
            })
        };
        Question {
            policies: &policies,
            order: &order,
            percent: self.percent(),
            digits: self.digits(),
            on_record: false,
            obstacles: &[],
            remarks: &self.lacking(),
            void: &[],
            order_standing: OrderStanding::Asked,
        }
        .answer()
    }

    fn method(&self) -> String {
        match self.replicates {
            Some(replicates) => format!(
                "cluster bootstrap, {replicates} replicates, seed {}",
                self.seed
            ),
            None => "cluster-robust + jackknife, t intervals".to_owned(),
        }
    }

    fn alone(&self, policy: &PolicyResult) -> String {
        match policy.labels_alone() {
            Some(labels) => match labels.interval {
                Some(interval) => self.bracket(interval),
                None => self.number(labels.mean),
            },
            None => "no labels".to_owned(),
        }
    }

    /// Policy values on the output scale.
    fn values_plot(&self) -> Forest {
        let found = self.analysis;
        let shown = found.policies.iter().filter(|of| !is_withheld(of));
        let rows = shown.map(|policy| ForestRow {
            label: escape(&policy.name).into_owned(),
            estimate: policy.estimate,
            interval: interval(policy).map(|interval| (interval.low, interval.high)),
            hollow: !policy.is_checked(),
            note: format!("{} {}", self.number(policy.estimate), level(policy)),
        });
        values::values_forest(found.alpha, found.output_scale, rows.collect())
    }

    /// Differences around zero.
    fn differences_plot(&self) -> Forest {
        let found = self.analysis;
        let shown = found.differences.iter().filter(|of| !self.gives_away(of));
        let rows = shown.map(|pair| ForestRow {
            label: self.pair(pair),
            estimate: pair.difference,
            interval: Some((pair.interval.low, pair.interval.high)),
            hollow: pair.conservative.is_some(),
            note: format!("{:+.*}", self.digits(), pair.difference),
        });
        values::differences_forest(found.alpha, rows.collect())
    }

    fn pair(&self, pair: &Difference) -> String {
        let name = |policy: usize| escape(&self.analysis.policies[policy].name);
        format!("{} - {}", name(pair.first), name(pair.second))
    }

    fn differences_table(&self, view: &mut View) {
        let found = self.analysis;
        let many = found.differences.len() > 1;
        let head = [
            "difference".to_owned(),
            "value".to_owned(),
            format!("{} % interval", self.percent()),
            "p".to_owned(),
            if many { "p (BH)" } else { "" }.to_owned(),
            String::new(),
        ];
        let rows = found.differences.iter().map(|pair| {
            let p = values::p;
            // What is refused is withheld as a whole: its p shows the order as well.
            let is_withheld = self.gives_away(pair);
            let shown = |text: String| if is_withheld { "-".to_owned() } else { text };
            let value = if is_withheld {
                "withheld".to_owned()
            } else {
                format!("{:+.*}", self.digits(), pair.difference)
            };
            vec![
                self.pair(pair),
                value,
                shown(self.bracket(pair.interval)),
                shown(p(pair.p)),
                if many {
                    shown(p(pair.p_adjusted))
                } else {
                    String::new()
                },
                self.reading(pair).to_owned(),
            ]
        });
        view.table(&head, rows);
    }

    /// Whether a difference gives a withheld level away.
    fn gives_away(&self, pair: &Difference) -> bool {
        let policies = &self.analysis.policies;
        is_withheld(&policies[pair.first]) || is_withheld(&policies[pair.second])
    }

    /// A difference in words.
    fn reading(&self, pair: &Difference) -> &'static str {
        match self.stands(pair) {
            Reading::Unchecked => "unchecked",
            Reading::ToldApart => "told apart",
            Reading::NotToldApart => "not told apart",
        }
    }

    /// What a reader must know beside the numbers.
    fn remarks(&self) -> Vec<String> {
        let found = self.analysis;
        let mut remarks = Vec::new();
        match &found.calibration {
            Ok(calibration) => {
                let (low, high) = calibration.score_range;
                let (flat_low, flat_high) = calibration.slopes.flat();
                let flat = match (flat_low, flat_high) {
                    (true, true) => ", flat at both ends",
                    (true, false) => ", flat at the low end",
                    (false, true) => ", flat at the high end",
                    (false, false) => "",
                };
                let fitted = values::fitted(calibration);
                remarks.push(format!("{fitted}scores {low} to {high}{flat}"));
                if !self.covariates.is_empty() && !calibration.calibrator.uses_covariates {
                    remarks.push(
                        "covariates  not used: fewer than 20 labels, so scores alone".to_owned(),
                    );
                }
            }
            Err(thin) => remarks.push(format!(
                "calibrator  none ({thin}): a value marked uncalibrated is a mean of raw judge scores"
            )),
        }
        remarks.extend(self.observed_scales());
        for policy in &found.policies {
            remarks.extend(self.policy_remarks(policy));
        }
        let unchecked = |pair: &Difference| found.reading(pair) == Reading::Unchecked;
        if found.differences.iter().any(unchecked) {
            remarks.push(values::UNCHECKED.to_owned());
        }
        if found.differences.len() > 1 {
            remarks.push(format!(
                "differences  {} pairs: read p (BH), which holds the share of false findings",
                found.differences.len()
            ));
        }
        remarks.extend(self.ranked());
        remarks
    }

    /// Scales that were read off the data: their true ends may lie further out.
    fn observed_scales(&self) -> Option<String> {
        let asked = &self.declared;
        let observed = |name: &str, scale: Option<Scale>, declared: bool| {
            let scale = scale.filter(|scale| !declared && *scale != Scale::UNIT)?;
            let (low, high) = scale.ends();
            Some(format!(
                "{name} {low}:{high} (declare it with --{name}-scale)"
            ))
        };
        let scales = [
            observed("judge", self.analysis.judge_scale, asked.0),
            observed("label", self.analysis.label_scale, asked.1),
        ];
        let scales: Vec<String> = scales.into_iter().flatten().collect();
        (!scales.is_empty()).then(|| format!("scales  as observed: {}", scales.join(", ")))
    }

    fn policy_remarks(&self, policy: &PolicyResult) -> Vec<String> {
        let name = &policy.name;
        let mut remarks: Vec<String> = values::weighed(policy).into_iter().collect();
        if let Some(support) = policy.support.filter(|support| support.refuse_level) {
            let bounds = policy.bounds.map_or(String::new(), |bounds| {
                format!(
                    "; monotonicity alone leaves {} to {}",
                    self.number(bounds.low),
                    self.number(bounds.high)
                )
            });
            remarks.push(format!(
                "{name}  REFUSE-LEVEL: {:.1} % of scores outside the labelled ones, {:.1} % in a tail with few \
                 labels{bounds}",
                100.0 * support.out_of_range,
                100.0 * starved(&support),
            ));
        }
        if let Some(transport) = &policy.transport {
            let audit = &transport.audit;
            let span = self.analysis.output_scale.span();
            let width = |width: &Width| match width.interval {
                Some(at) => format!("[{:+.3}, {:+.3}]", span * at.low, span * at.high),
                None => "none".to_owned(),
            };
            remarks.push(format!(
                "{name}  transport {}: mean residual {:+.3} {} on {} probes (residuals alone {})",
                state(audit.state),
                span * audit.mean,
                width(&audit.wide),
                audit.rows,
                width(&audit.narrow),
            ));
        } else if policy.borrows() {
            remarks.push(format!(
                "{name}  ? NOT CHECKED is no result: labels of others calibrate it, its interval does not cover the \
                 risk that this does not transfer, and a judge that favours it would look the same. Label 20 or more of \
                 its responses, or audit with --transport-probe {name}=FILE"
            ));
        }
        match policy.interval() {
            Err(why) => remarks.push(format!("{name}  no interval: {why}")),
            Ok((_, Method::Bounded)) => {
                remarks.push(values::bounded(name, policy.off_mode, policy.is_widened()));
            }
            Ok(_) => {}
        }
        remarks
    }

    /// Findings that must not be missed.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let many = self.analysis.policies.len() > ADJUST_ABOVE;
        if many {
            warnings.push("more than five policies: unadjusted p-values mislead".to_owned());
        }
        for policy in &self.analysis.policies {
            let name = &policy.name;
            let failed = policy
                .transport
                .as_ref()
                .is_some_and(|result| result.audit.state == AuditState::Fail);
            if failed {
                warnings.push(format!(
                    "{name}: calibration does not transfer; its value is not its value"
                ));
            }
            let resampled = policy.resampled.map(|resampled| resampled.interval);
            let missed = resampled.and_then(|of| values::missed(name, policy.estimate, of));
            warnings.extend(missed);
        }
        for pair in self
            .analysis
            .differences
            .iter()
            .filter(|of| of.df.is_none())
        {
            let missed = values::missed(&self.pair(pair), pair.difference, pair.interval);
            warnings.extend(missed);
        }
        warnings
    }
}

/// Mass of the tails where labels are scarce.
fn starved(support: &Support) -> f64 {
    [support.low, support.high]
        .iter()
        .filter(|tail| tail.starved)
        .map(|tail| tail.mass)
        .sum()
}
