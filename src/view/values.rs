//! What every view of policy values shows in the same way, of files and of a ledger: intervals, differences, plots, and
//! the sentences beside them.

use std::fmt::Display;

use serde::Deserialize;
use serde::Serialize;

use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::direct::Scale;
use crate::stats::direct::WeightReason;
use crate::stats::inference::Interval;
use crate::stats::multiplicity::MultiplicityCorrection;
use crate::stats::ranking;
use crate::stats::ranking::RankInterval;
use crate::view::View;
use crate::view::appended::Stands;
use crate::workflow::analyze::Calibration;
use crate::workflow::analyze::PolicyResult;
use crate::workflow::analyze::dataset::PromptGap;
use crate::workflow::analyze::dataset::PromptGaps;
use crate::workflow::estimate::rows::Gathered;
use crate::workflow::estimate::shares::ChosenLabels;

/// Low and high end of an interval, in label units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ends(pub [f64; 2]);

/// The mean of a policy's own labels, without a judge.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelsAlone {
    /// The mean, in label units.
    pub mean: f64,
    /// Its interval; `null` where there is none.
    pub interval: Option<Ends>,
}

/// The weight on a prediction inside a correction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WeightFacts {
    /// From 0 to 1.
    pub value: f64,
    /// Why it is that.
    pub reason: &'static str,
}

impl From<(f64, WeightReason)> for WeightFacts {
    fn from((value, reason): (f64, WeightReason)) -> Self {
        Self {
            value,
            reason: reason.name(),
        }
    }
}

/// A difference of two policies. Of its numbers, which stand beside its names, and `withheld` one is there: a difference whose
/// level is withheld is no result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pair {
    /// The first policy.
    pub first: String,
    /// The second policy.
    pub second: String,
    /// The numbers, where they are a result.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<PairNumbers>,
    /// The numbers, where the difference would give a withheld level away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<PairNumbers>,
    /// What the two are paired on.
    pub basis: String,
    /// How it is to be read, in words: "told apart", "not told apart", "unchecked", or "transport FAIL".
    pub reading: &'static str,
}

/// Numbers of a difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairNumbers {
    /// The first's value less the second's, in label units.
    pub difference: f64,
    /// Standard error, in label units.
    pub se: f64,
    /// Degrees of freedom; `null` for a bootstrap.
    pub df: Option<f64>,
    /// The interval.
    pub interval: Ends,
    /// Two-sided p of no difference, from 0 to 1.
    pub p: f64,
    /// The same over all pairs shown, by the correction, from 0 to 1.
    pub p_adjusted: f64,
    /// The interval widened by what is left open; `null` where nothing is.
    pub conservative_interval: Option<Ends>,
}

/// What was computed, and where it stands on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OnRecord<T> {
    /// What was computed.
    #[serde(flatten)]
    pub found: T,
    /// Where its events stand; absent where nothing was to be appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Stands>,
}

/// What is said of a policy that has no score for some prompts.
fn lacking(policy: &str, gap: PromptGap) -> String {
    format!(
        "{policy} has no score for {} of {} prompts: it is above or below another only where the worst scores there would \
         not change that.",
        gap.first, gap.all
    )
}

/// What is said of two policies that have scores of no prompt in common.
fn disjoint(first: &str, second: &str) -> String {
    format!(
        "{first} and {second} have scores of 0 prompts in common, so neither is above the other: which prompts each has may be \
         all that sets them apart. Score both on the same prompts."
    )
}

/// What is said of prompts that some policies have scores of and others not, a sentence each.
pub fn lacking_prompts<'n>(gaps: &PromptGaps, name: impl Fn(usize) -> &'n str) -> Vec<String> {
    let none = gaps.disjoint();
    let none = none.map(|(first, second)| disjoint(name(first), name(second)));
    let some = gaps.largest().into_iter();
    let some = some.map(|(policy, gap)| lacking(name(policy), gap));
    let drawn = gaps.uneven();
    let drawn = drawn.map(|((first, second), gap)| uneven(name(first), name(second), gap));
    none.chain(some).chain(drawn).collect()
}

/// What is said of rows that do not count.
pub fn scored_late(policy: &str, rows: u64) -> String {
    let (rows, verb, pronoun) = match rows {
        1 => ("1 row".to_owned(), "was", "it does"),
        rows => (format!("{rows} rows"), "were", "they do"),
    };
    format!("{rows} of {policy} {verb} scored after its labels could be read: {pronoun} not count.")
}

/// What is said of a policy of which no row counts: that its rows came late, or that there is none.
pub fn missing_policy(gathered: &Gathered, name: &str) -> String {
    let mut late = gathered.late.iter();
    if let Some((_, rows)) = late.find(|(of, _)| of.as_str() == name) {
        return scored_late(name, *rows);
    }
    let known = gathered.dataset.policies.iter().map(|of| of.name.as_str());
    let known = known.collect::<Vec<_>>().join(", ");
    format!("no policy {name}; there are {known}")
}

/// What is said of a policy whose labels are not as many as were drawn.
pub fn beyond_the_draw(of: &ChosenLabels) -> String {
    let ChosenLabels {
        policy,
        what,
        all,
        labelled,
        drawn,
        ..
    } = of;
    match &of.design {
        Some(design) => format!(
            "{labelled} of {all} {what} of {policy} are labelled by {design}, which draws about {drawn:.0}: somebody chose among \
             them."
        ),
        None => format!(
            "{labelled} of {all} {what} of {policy} are labelled, and their design draws about {drawn:.0}: labels are missing, or \
             somebody chose among them."
        ),
    }
}

/// What is said of two policies of which one has more draws, against the other, on some prompts than on the rest.
fn uneven(first: &str, second: &str, gap: PromptGap) -> String {
    format!(
        "{first} and {second} are not told apart: their draws are uneven on {} of {} prompts, and a mean over rows weighs \
         those prompts more on one side. Score as many draws of each.",
        gap.uneven,
        gap.both()
    )
}

/// Adds to a view of what was computed where it stands, by the view of its append; without one it ends with `unrecorded`.
///
/// # Panics
/// Where `recorded` is no view of an append, which the first test of the verb finds.
pub fn on_record<T: Serialize>(
    mut view: View,
    found: &T,
    recorded: Option<View>,
    unrecorded: &'static str,
) -> View {
    view.verdict = unrecorded;
    let mut stands = None;
    if let Some(recorded) = recorded {
        let of = Stands::deserialize(recorded.facts()).expect("BUG: this is a view of an append");
        if let Some(last) = of.seqs.iter().max() {
            view.gap();
            view.line(format!(
                "recorded {} new, the last at seq {last}",
                of.appended
            ));
        }
        view.verdict = recorded.verdict;
        view.events = recorded.events;
        view.checkpoint = recorded.checkpoint;
        stands = Some(of);
    }
    let mut view = view.with_facts(&OnRecord {
        found,
        recorded: stands,
    });
    // The name without the borrow.
    view.shape = std::any::type_name::<OnRecord<T>>();
    view
}

/// The correction of a family, for a column.
pub(super) fn correction(of: MultiplicityCorrection) -> &'static str {
    match of {
        MultiplicityCorrection::BenjaminiHochberg => "BH",
        MultiplicityCorrection::BenjaminiYekutieli => "BY",
        MultiplicityCorrection::Bonferroni => "Bonferroni",
        MultiplicityCorrection::Holm => "Holm",
    }
}

/// What a correction holds.
pub(super) fn promise(of: MultiplicityCorrection) -> &'static str {
    match of {
        MultiplicityCorrection::BenjaminiHochberg => "holds the share of false findings",
        MultiplicityCorrection::BenjaminiYekutieli => {
            "holds the share of false findings, however the pairs depend on each other"
        }
        MultiplicityCorrection::Bonferroni | MultiplicityCorrection::Holm => {
            "holds the chance of any false finding"
        }
    }
}

/// How far ranks hold together, by the correction of their pairs.
pub(super) fn ranks_together(of: MultiplicityCorrection, alpha: f64) -> String {
    match of {
        MultiplicityCorrection::Bonferroni | MultiplicityCorrection::Holm => format!(
            "ranks  all of them hold together with {} % confidence",
            percent(alpha)
        ),
        MultiplicityCorrection::BenjaminiHochberg | MultiplicityCorrection::BenjaminiYekutieli => {
            "ranks  each by the pairs that are told apart; under --correction holm all hold together"
                .to_owned()
        }
    }
}

/// The better of two policies, then the worse, by the sign of first less second.
pub(super) fn ordered((first, second): (usize, usize), difference: f64) -> (usize, usize) {
    if difference > 0.0 {
        (first, second)
    } else {
        (second, first)
    }
}

/// Ranks of the policies at some positions, among those of them that have one, by the pairs that are told apart: the better,
/// then the worse. Where no order is claimed, nothing has a rank.
pub(super) fn ranks(
    rows: &[usize],
    is_ordered: bool,
    is_ranked: impl Fn(&usize) -> bool,
    apart: impl Iterator<Item = (usize, usize)>,
) -> Vec<Option<RankInterval>> {
    if !is_ordered {
        return vec![None; rows.len()];
    }
    let ranked: Vec<usize> = rows.iter().copied().filter(is_ranked).collect();
    let place = |policy: usize| ranked.iter().position(|of| *of == policy);
    let apart: Vec<_> = apart
        .filter_map(|(better, worse)| place(better).zip(place(worse)))
        .collect();
    let found = ranking::ranks(ranked.len(), &apart);
    rows.iter()
        .map(|policy| Some(found[place(*policy)?]))
        .collect()
}

/// A rank in a table.
pub(super) fn rank(of: Option<RankInterval>) -> String {
    match of {
        None => "-".to_owned(),
        Some(RankInterval { best, worst }) if best == worst => best.to_string(),
        Some(RankInterval { best, worst }) => format!("{best}-{worst}"),
    }
}

/// A rank in an answer.
pub(super) fn rank_ends(of: Option<RankInterval>) -> Option<[u64; 2]> {
    of.map(|of| [of.best as u64, of.worst as u64])
}

/// A tuned weight in words, or why there is none where one was asked for; `None` where none was.
pub(super) fn weighed(policy: &PolicyResult) -> Option<String> {
    let (weight, reason) = policy.weight?;
    let why = match reason {
        WeightReason::RuleOne => return None,
        WeightReason::Tuned => {
            "by the slope of its labels on calibrated rewards; 0 would be its labels alone"
        }
        WeightReason::TooFewLabelledClusters => {
            "not tuned, since fewer than 20 of its prompts have labels"
        }
        WeightReason::RareOutcome => {
            "not tuned, since labels of fewer than 5 prompts differ from the most common one"
        }
        WeightReason::ConstantPredictions => "not tuned, since its calibrated rewards do not vary",
        WeightReason::KnownPropensity => {
            "not tuned, since its labels are weighted by the probabilities of their design"
        }
    };
    Some(format!("{}  weight {weight:.2}: {why}", policy.name))
}

/// Level of intervals in per cent.
pub fn percent(alpha: f64) -> String {
    let level = 100.0 * (1.0 - alpha);
    format!("{level:.4}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Digits after the point that suit a scale, at least one.
pub(super) fn digits(scale: Scale) -> usize {
    let span = scale.span();
    if span >= 50.0 {
        1
    } else if span > 1.0 {
        2
    } else {
        3
    }
}

/// A p value: what is below a thousandth is never shown as none.
pub(super) fn p(p: f64) -> String {
    if p < 0.001 {
        return "< 0.001".to_owned();
    }
    format!("{p:.3}")
}

pub(super) fn bracket(Ends([low, high]): Ends, digits: usize) -> String {
    format!("[{low:.digits$}, {high:.digits$}]")
}

pub(super) fn ends(of: Interval) -> Ends {
    Ends([of.low, of.high])
}

/// A number that is no result, since nobody checked that calibration holds for this policy.
pub(super) fn doubted(value: String, is_doubted: bool) -> String {
    if is_doubted {
        format!("{value}?")
    } else {
        value
    }
}

/// A plot of policy values on the scale of labels.
pub(super) fn values_forest(alpha: f64, scale: Scale, rows: Vec<ForestRow>) -> Forest {
    Forest {
        title: format!("Policy values with {} % intervals", percent(alpha)),
        axis: "mean label, on the label scale".to_owned(),
        range: scale.ends(),
        reference: None,
        rows,
    }
}

/// A plot of differences around zero.
pub(super) fn differences_forest(alpha: f64, rows: Vec<ForestRow>) -> Forest {
    let (low, high) = Forest::spanning(&rows);
    Forest {
        title: format!("Differences with {} % intervals", percent(alpha)),
        axis: "first less second".to_owned(),
        range: (low.min(0.0), high.max(0.0)),
        reference: Some(0.0),
        rows,
    }
}

/// Columns of a plot's axis in terminals, from the narrowest to the widest.
const FORMS: [usize; 5] = [16, 28, 44, 64, 84];

/// Adds a plot.
pub(super) fn plotted(view: &mut View, plot: &Forest) {
    let lines = |text: String| text.lines().map(ToOwned::to_owned).collect();
    let fitted = FORMS.map(|columns| lines(plot.text_of(columns)));
    view.chart_in(lines(plot.text()), fitted.to_vec(), Some(plot.svg()));
}

/// A calibrator in words, up to what only its own verb knows.
pub(super) fn fitted(of: &Calibration) -> String {
    format!(
        "calibrator  {} {}, {} labels on {} prompts, {} folds; error out of fold {:.3}; ",
        of.calibrator.settings.algorithm.name(),
        of.calibrator.selected.name(),
        of.labels,
        of.clusters,
        of.folds,
        of.calibrator.quality.oof_rmse,
    )
}

/// What an exact bound does to an interval: it widens it, or lies within it.
pub(super) fn bounded(name: &str, off_mode: impl Display, is_widened: bool) -> String {
    let what = if is_widened {
        "the interval is widened by an exact bound on the scale"
    } else {
        "an exact bound on the scale lies within the interval, which stays as it is"
    };
    format!(
        "{name}  {off_mode} of its labelled prompts hold another label than the most common one: {what}"
    )
}

/// What an unchecked difference says.
pub(super) const UNCHECKED: &str = "unchecked  a side has neither own labels nor a passed audit, or its level is withheld: whatever p says, nothing \
     is told apart";

/// Why the interval of a bootstrap does not hold its own value, where that is so.
pub(super) fn missed(name: &str, value: f64, interval: Interval) -> Option<String> {
    let side = if value > interval.high {
        "below"
    } else if value < interval.low {
        "above"
    } else {
        return None;
    };
    Some(format!(
        "{name}: the interval of the bootstrap does not hold the value, for nearly all replicates lie {side} it: the \
         refits are biased here; rely on the interval without --bootstrap"
    ))
}
