//! How an analysis is shown: tables and a forest plot for a terminal, JSON, SVG, and a page.

use std::path::Path;

use serde_json::Value;

use crate::cli::error::CliError;
use crate::cli::replicating;
use crate::cli::ui;
use crate::event::payload::estimated::Reading;
use crate::report::forest;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::direct::Route;
use crate::stats::direct::Scale;
use crate::stats::inference::Interval;
use crate::stats::transport::State;
use crate::workflow::analyze::Analysis;
use crate::workflow::analyze::Difference;
use crate::workflow::analyze::Method;
use crate::workflow::analyze::PolicyResult;

/// What the command records.
pub(super) const EXPLORATORY: &str = "exploratory: not on the record";
/// Pairs of policies from which unadjusted p-values are not what to read.
const ADJUST_ABOVE: usize = 5;

/// A file to write, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Svg,
    Html,
}

impl Format {
    pub(super) fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Ok(Self::Json),
            Some("svg") => Ok(Self::Svg),
            Some("html") => Ok(Self::Html),
            _ => Err(CliError::usage(
                format!(
                    "{}: expected a name in .json, .svg or .html",
                    path.display()
                ),
                "clover analyze --help",
            )),
        }
    }
}

/// An analysis with what was asked.
pub(super) struct AnalysisShown<'a> {
    pub analysis: &'a Analysis,
    pub source: String,
    pub covariates: &'a [String],
    pub replicates: Option<usize>,
    pub seed: u64,
    pub draws: &'a str,
    /// Whether the scales of judge scores and of labels were declared.
    pub declared: (bool, bool),
}

/// The interval that is in force: of the bootstrap where one ran, widened where labels hardly vary.
pub(super) fn interval(policy: &PolicyResult) -> Option<Interval> {
    policy.interval().ok().map(|(interval, _)| interval)
}

pub(super) fn se(policy: &PolicyResult) -> Option<f64> {
    let resampled = policy.resampled.map(|resampled| resampled.se);
    resampled.or_else(|| policy.spread.ok().map(|spread| spread.se))
}

fn refused(policy: &PolicyResult) -> bool {
    policy.support.is_some_and(|support| support.refuse_level)
}

/// What may be said of a policy's level.
pub(super) fn level(policy: &PolicyResult) -> &'static str {
    if policy.route == Route::Naive {
        return "uncalibrated";
    }
    if refused(policy) {
        return "REFUSED";
    }
    match policy.transport.as_ref().map(|result| result.audit.state) {
        Some(State::Pass) => "PASS",
        Some(State::Fail) => "FAIL",
        Some(State::Inconclusive(_)) => "INCONCLUSIVE",
        _ if policy.borrows() => "NOT CHECKED",
        _ => "own labels",
    }
}

pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Pass => "PASS",
        State::Fail => "FAIL",
        State::Inconclusive(_) => "INCONCLUSIVE",
        State::NotGraded => "NOT_GRADED",
        State::NotChecked => "NOT_CHECKED",
    }
}

/// Level of intervals in per cent.
pub(super) fn percent(alpha: f64) -> String {
    let level = 100.0 * (1.0 - alpha);
    format!("{level:.4}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

impl AnalysisShown<'_> {
    /// Digits after the point that suit the output scale.
    fn digits(&self) -> usize {
        let span = self.analysis.output_scale.span();
        if span >= 50.0 {
            2
        } else if span > 1.0 {
            3
        } else {
            4
        }
    }

    fn number(&self, value: f64) -> String {
        format!("{value:.*}", self.digits())
    }

    fn bracket(&self, interval: Interval) -> String {
        format!(
            "[{}, {}]",
            self.number(interval.low),
            self.number(interval.high)
        )
    }

    fn percent(&self) -> String {
        percent(self.analysis.alpha)
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let found = self.analysis;
        let mut out = format!(
            "{EXPLORATORY} · {} · {}\n\n",
            ui::escape(&self.source),
            ui::escape(&self.method())
        );
        let head = [
            "policy",
            "value",
            &format!("{} % interval", self.percent()),
            "labels alone",
            "labels",
            "rows",
            "level",
        ];
        let rows = found.policies.iter().map(|policy| {
            vec![
                policy.name.clone(),
                doubted(self.number(policy.estimate), policy),
                interval(policy).map_or("none".to_owned(), |of| self.bracket(of)),
                self.alone(policy),
                ui::thousands(policy.labelled as u64),
                ui::thousands(policy.rows as u64),
                level(policy).to_owned(),
            ]
        });
        out.push_str(&ui::table(&head, rows.collect()));
        out.push('\n');
        out.push_str(&self.values_plot().text());
        if !found.differences.is_empty() {
            out.push('\n');
            out.push_str(&self.differences_text());
        }
        out.push('\n');
        for remark in self.remarks() {
            out.push_str(&ui::wrapped(&remark));
        }
        out
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
        let rows = found.policies.iter().map(|policy| ForestRow {
            label: ui::escape(&policy.name).into_owned(),
            estimate: policy.estimate,
            interval: interval(policy).map(|interval| (interval.low, interval.high)),
            hollow: !policy.is_checked(),
            note: format!("{} {}", self.number(policy.estimate), level(policy)),
        });
        Forest {
            title: format!("Policy values with {} % intervals", self.percent()),
            axis: "mean label, on the label scale".to_owned(),
            range: found.output_scale.ends(),
            reference: None,
            rows: rows.collect(),
        }
    }

    /// Differences around zero.
    fn differences_plot(&self) -> Forest {
        let rows: Vec<ForestRow> = self
            .analysis
            .differences
            .iter()
            .map(|pair| ForestRow {
                label: self.pair(pair),
                estimate: pair.difference,
                interval: Some((pair.interval.low, pair.interval.high)),
                hollow: pair.conservative.is_some(),
                note: format!("{:+.*}", self.digits(), pair.difference),
            })
            .collect();
        let (low, high) = Forest::spanning(&rows);
        Forest {
            title: format!("Differences with {} % intervals", self.percent()),
            axis: "first less second".to_owned(),
            range: (low.min(0.0), high.max(0.0)),
            reference: Some(0.0),
            rows,
        }
    }

    fn pair(&self, pair: &Difference) -> String {
        let name = |policy: usize| ui::cut(&ui::escape(&self.analysis.policies[policy].name), 24);
        format!("{} - {}", name(pair.first), name(pair.second))
    }

    fn differences_text(&self) -> String {
        let found = self.analysis;
        let many = found.differences.len() > 1;
        let head = [
            "difference",
            "value",
            &format!("{} % interval", self.percent()),
            "p",
            if many { "p (BH)" } else { "" },
            "",
        ];
        let rows = found.differences.iter().map(|pair| {
            let p = |p: f64| format!("{p:.3}");
            vec![
                self.pair(pair),
                format!("{:+.*}", self.digits(), pair.difference),
                self.bracket(pair.interval),
                p(pair.p),
                if many {
                    p(pair.p_adjusted)
                } else {
                    String::new()
                },
                self.reading(pair).to_owned(),
            ]
        });
        ui::table(&head, rows.collect())
    }

    /// A difference in words.
    pub(super) fn reading(&self, pair: &Difference) -> &'static str {
        match self.analysis.reading(pair) {
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
                let fitted = &calibration.calibrator;
                let (low, high) = calibration.score_range;
                let (flat_low, flat_high) = calibration.slopes.flat();
                let flat = match (flat_low, flat_high) {
                    (true, true) => ", flat at both ends",
                    (true, false) => ", flat at the low end",
                    (false, true) => ", flat at the high end",
                    (false, false) => "",
                };
                remarks.push(format!(
                    "calibrator  {} {}, {} labels on {} prompts, {} folds; error out of fold {:.3}; scores {low} to \
                     {high}{flat}",
                    fitted.settings.algorithm.name(),
                    fitted.selected.name(),
                    calibration.labels,
                    calibration.clusters,
                    calibration.folds,
                    fitted.quality.oof_rmse,
                ));
                if !self.covariates.is_empty() && !fitted.uses_covariates {
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
            remarks.push(
                "unchecked  a side has neither own labels nor a passed audit, or its level is withheld: whatever p says, \
                 nothing is told apart"
                    .to_owned(),
            );
        }
        if found.differences.len() > 1 {
            remarks.push(format!(
                "differences  {} pairs: read p (BH), which holds the share of false findings",
                found.differences.len()
            ));
        }
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
        let name = ui::escape(&policy.name);
        let mut remarks = Vec::new();
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
            let width = |width: &crate::stats::transport::Width| match width.interval {
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
            Ok((_, Method::Bounded)) => remarks.push(format!(
                "{name}  {} of its labelled prompts hold another label than the most common one: the interval is widened \
                 by an exact bound on the scale",
                policy.off_mode
            )),
            Ok(_) => {}
        }
        remarks
    }

    /// Findings that must not be missed.
    pub(super) fn warnings(&self) -> Vec<String> {
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
                .is_some_and(|result| result.audit.state == State::Fail);
            if failed {
                warnings.push(format!(
                    "{name}: calibration does not transfer; its value is not its value"
                ));
            }
            let resampled = policy.resampled.map(|resampled| resampled.interval);
            let missed = resampled.and_then(|of| replicating::missed(name, policy.estimate, of));
            warnings.extend(missed);
        }
        for pair in self
            .analysis
            .differences
            .iter()
            .filter(|of| of.df.is_none())
        {
            let missed = replicating::missed(&self.pair(pair), pair.difference, pair.interval);
            warnings.extend(missed);
        }
        warnings
    }

    /// The text of a file.
    pub(super) fn rendered(&self, format: Format, data: &Value) -> String {
        match format {
            Format::Json => format!("{data:#}\n"),
            Format::Svg => self.values_plot().svg(),
            Format::Html => self.page(),
        }
    }

    /// One page without scripts or outside references.
    fn page(&self) -> String {
        let mut out = String::from(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Policy values</title>\n\
             <style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
             color:#1d232b}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .8rem .3rem 0;\
             text-align:left;border-bottom:1px solid #e3e6ea;font-variant-numeric:tabular-nums}\
             .banner{background:#fff4d6;padding:.6rem 1rem;border-radius:.4rem}svg{max-width:100%;height:auto}\
             </style></head><body>\n",
        );
        let mut put = |line: String| {
            out.push_str(&line);
            out.push('\n');
        };
        put(format!(
            "<h1>Policy values</h1><p class=\"banner\">{EXPLORATORY}. Source {}; {}.</p>",
            forest::escaped(&self.source),
            forest::escaped(&self.method()),
        ));
        put(self.values_plot().svg());
        put(format!(
            "<table><tr><th>policy</th><th>value</th><th>{} % interval</th><th>labels alone</th><th>labels</th>\
             <th>rows</th><th>level</th></tr>",
            self.percent()
        ));
        for policy in &self.analysis.policies {
            put(format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                forest::escaped(&policy.name),
                self.number(policy.estimate),
                interval(policy).map_or("none".to_owned(), |interval| self.bracket(interval)),
                self.alone(policy),
                policy.labelled,
                policy.rows,
                level(policy),
            ));
        }
        put("</table>".to_owned());
        if !self.analysis.differences.is_empty() {
            put(self.differences_plot().svg());
        }
        put("<ul>".to_owned());
        for remark in self.remarks() {
            put(format!("<li>{}</li>", forest::escaped(&remark)));
        }
        put("</ul></body></html>".to_owned());
        out
    }
}

/// A number that is no result: nobody checked that calibration holds for this policy.
fn doubted(value: String, policy: &PolicyResult) -> String {
    if policy.borrows() || policy.route == Route::Naive {
        format!("{value}?")
    } else {
        value
    }
}

/// Mass of the tails where labels are scarce.
fn starved(support: &crate::stats::boundary::Support) -> f64 {
    [support.low, support.high]
        .iter()
        .filter(|tail| tail.starved)
        .map(|tail| tail.mass)
        .sum()
}
