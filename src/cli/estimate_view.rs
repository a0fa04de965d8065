//! How estimates and differences of a ledger are shown.

use serde_json::Value;
use serde_json::json;

use crate::cli::analysis;
use crate::cli::estimate;
use crate::cli::estimate_charts as charts;
use crate::cli::replicating;
use crate::cli::ui;
use crate::event::id::ExperimentId;
use crate::event::payload::audit::TransportStanding;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::Reading;
use crate::event::payload::estimated::TransportState;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::stats::inference::Interval;
use crate::workflow::estimate::advice;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::form::Form;

/// Longest name of a policy in a table.
const LABEL: usize = 25;

/// Estimates of some policies.
pub(super) struct Estimates<'a> {
    pub found: &'a Found,
    pub experiment: &'a ExperimentId,
    /// Position and event of each.
    pub rows: &'a [(usize, EstimateRecorded)],
    /// Whether refused levels are shown.
    pub raw: bool,
}

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
    let span = found.analysis.output_scale.span();
    if span >= 50.0 {
        1
    } else if span > 1.0 {
        2
    } else {
        3
    }
}

fn bracket(of: IntervalEnds, digits: usize) -> String {
    let (low, high) = (of.low.value(), of.high.value());
    format!("[{low:.digits$}, {high:.digits$}]")
}

fn ends(of: IntervalEnds) -> [f64; 2] {
    [of.low.value(), of.high.value()]
}

/// A number that is no result: nobody checked that calibration holds for this policy.
fn doubted(value: String, claim: Claim) -> String {
    match claim {
        Claim::BorrowedUnchecked | Claim::Uncalibrated => format!("{value}?"),
        _ => value,
    }
}

/// Places that each policy may take: as many above it as are told apart to be better, and so below. A policy that nobody
/// checked, or whose level is withheld, has none, and stands in nobody's way.
fn ranks(found: &Found, experiment: &ExperimentId, rows: &[usize]) -> Vec<Option<(usize, usize)>> {
    let standing = |policy: usize| found.standing(experiment, policy);
    let is_ranked = |policy: &usize| found.claim(*policy, standing(*policy)).is_checked();
    let ranked: Vec<usize> = rows.iter().copied().filter(is_ranked).collect();
    let contrasts = found
        .contrasts(experiment, rows, Form::Claimed)
        .unwrap_or_default();
    let place = |policy: usize| {
        let name = &found.analysis.policies[policy].name;
        let (mut better, mut worse) = (0, 0);
        for pair in contrasts.iter().filter(|pair| pair.told_apart) {
            let up = pair.difference.value() > 0.0;
            if pair.first.as_str() == name {
                *(if up { &mut worse } else { &mut better }) += 1;
            } else if pair.second.as_str() == name {
                *(if up { &mut better } else { &mut worse }) += 1;
            }
        }
        (1 + better, ranked.len() - worse)
    };
    let of = |&policy: &usize| ranked.contains(&policy).then(|| place(policy));
    rows.iter().map(of).collect()
}

/// A rank in a table.
fn rank(of: Option<(usize, usize)>) -> String {
    match of {
        None => "-".to_owned(),
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}-{worst}"),
    }
}

/// A rank in an answer.
fn rank_ends(of: Option<(usize, usize)>) -> Option<[usize; 2]> {
    of.map(|(best, worst)| [best, worst])
}

impl Estimates<'_> {
    fn is_withheld(&self, row: &EstimateRecorded) -> bool {
        row.claim == Claim::Refused && !self.raw
    }

    fn ranks(&self) -> Vec<Option<(usize, usize)>> {
        let places: Vec<usize> = self.rows.iter().map(|(policy, _)| *policy).collect();
        ranks(self.found, self.experiment, &places)
    }

    fn percent(&self) -> String {
        analysis::percent(self.found.analysis.alpha)
    }

    pub(super) fn text(&self) -> String {
        let digits = digits(self.found);
        let interval = format!("{} % interval", self.percent());
        let head = [
            "policy",
            "value",
            &interval,
            "rank",
            "labels alone",
            "judge",
            "claim",
        ];
        let number = |value: f64| format!("{value:.digits$}");
        let rows = self.rows.iter().zip(self.ranks());
        let rows = rows.map(|((_, row), place)| {
            let shown = row
                .interval
                .map_or("none".to_owned(), |of| bracket(of, digits));
            let withheld = self.is_withheld(row);
            let alone = row.labels_only.and_then(|of| of.interval);
            vec![
                ui::cut(row.policy.as_str(), LABEL),
                if withheld {
                    "withheld".to_owned()
                } else {
                    doubted(number(row.estimate.value()), row.claim)
                },
                if withheld { "-".to_owned() } else { shown },
                rank(place),
                alone.map_or("-".to_owned(), |of| bracket(of, digits)),
                number(row.raw_mean.value()),
                claim(row).to_owned(),
            ]
        });
        let mut out = ui::table(&head, rows.collect());
        out.push('\n');
        out.push_str(&self.plot().text());
        out.push('\n');
        for remark in self.remarks() {
            out.push_str(&ui::wrapped(&remark));
        }
        out
    }

    fn remarks(&self) -> Vec<String> {
        let found = self.found;
        let mut remarks = Vec::new();
        match &found.analysis.calibration {
            Ok(of) => remarks.push(format!(
                "calibrator  {} {}, {} labels on {} prompts, {} folds; error out of fold {:.3}; {}",
                of.calibrator.settings.algorithm.name(),
                of.calibrator.selected.name(),
                of.labels,
                of.clusters,
                of.folds,
                of.calibrator.quality.oof_rmse,
                estimate::label_words(found.terms.labels),
            )),
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
        remarks.extend(
            self.rows
                .iter()
                .filter_map(|(_, row)| charts::unvaried(row)),
        );
        for (policy, row) in self.rows {
            remarks.extend(self.shares(*policy, row));
            remarks.extend(self.refusal(*policy, row));
        }
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
            "{}  calibrator's share of the variance {:.0} %; of the mean reward by tenth: {}",
            row.policy,
            100.0 * share,
            deciles.collect::<Vec<_>>().join(" "),
        ))
    }

    /// Why a level is withheld, what is left, and what to label.
    fn refusal(&self, policy: usize, row: &EstimateRecorded) -> Option<String> {
        let result = &self.found.analysis.policies[policy];
        let support = result.support.filter(|support| support.refuse_level)?;
        let digits = digits(self.found);
        let bounds = row.bounds.map_or(String::new(), |of| {
            format!("; monotonicity alone leaves {}", bracket(of, digits))
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

    pub(super) fn warnings(&self) -> Vec<String> {
        let failed = self.rows.iter().filter_map(|(_, row)| {
            let audit = row.transport.filter(|of| of.state == TransportState::Fail)?;
            Some(format!(
                "{}: calibration does not transfer (seq {}); no level until it is recalibrated with new labels of it",
                row.policy, audit.seq
            ))
        });
        let missed = self.rows.iter().filter_map(|(policy, row)| {
            let of = &self.found.analysis.policies[*policy];
            replicating::missed(row.policy.as_str(), of.estimate, of.resampled?.interval)
        });
        failed.chain(missed).collect()
    }

    pub(super) fn plot(&self) -> Forest {
        let digits = digits(self.found);
        let shown = self.rows.iter().filter(|(_, row)| !self.is_withheld(row));
        let rows = shown.map(|(_, row)| ForestRow {
            label: row.policy.as_str().to_owned(),
            estimate: row.estimate.value(),
            interval: row.interval.map(|of| (of.low.value(), of.high.value())),
            hollow: !matches!(row.claim, Claim::OwnLabels | Claim::BorrowedChecked),
            note: noted(format!("{:.digits$}", row.estimate.value()), failed_of(row)),
        });
        Forest {
            title: format!("Policy values with {} % intervals", self.percent()),
            axis: "mean label, on the label scale".to_owned(),
            range: self.found.analysis.output_scale.ends(),
            reference: None,
            rows: rows.collect(),
        }
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.rows.iter().zip(self.ranks());
        let rows = rows.map(|((policy, row), place)| {
            let detail = self.found.analysis.policies[*policy].detail.as_ref();
            let deciles = detail.map(|of| {
                let shares = of.share_by_decile.iter();
                shares.map(|share| share.and_then(|of| of.share())).collect::<Vec<_>>()
            });
            let level = json!({
                "estimate": row.estimate, "se": row.se, "df": row.df,
                "interval": row.interval.map(ends),
                "interval_clipped": row.interval_clipped.map(ends),
                "interval_method": row.interval_method.as_str(),
            });
            let mut one = json!({
                "policy": row.policy.as_str(), "claim": row.claim.as_str(), "rank": rank_ends(place),
                "rows": row.rows, "labels": row.labels, "route": row.route,
                "labels_only": row.labels_only.map(|of| json!({
                    "mean": of.mean, "interval": of.interval.map(ends),
                })),
                "judge_mean": row.raw_mean, "calibration_share": row.share,
                "share_by_decile": deciles, "bounds": row.bounds.map(ends),
                "transport": row.transport.map(|of| json!({"state": state(of.state), "seq": of.seq})),
                "no_interval": row.no_interval,
            });
            // What is no result is there for whoever recomputes it, under a name that says what it is.
            one[match row.claim {
                Claim::Refused => "withheld",
                Claim::BorrowedUnchecked | Claim::Uncalibrated => "unchecked",
                Claim::BorrowedChecked | Claim::OwnLabels => "level",
            }] = level;
            one
        });
        json!({
            "policies": rows.collect::<Vec<_>>(),
            "alpha": self.found.analysis.alpha,
            "terms": self.found.terms,
            "calibrator": self.found.digest().map(|digest| digest.to_hex()),
        })
    }
}

/// What to type after an estimate.
pub(super) fn next(rows: &[(usize, EstimateRecorded)]) -> Vec<String> {
    let unchecked =
        |row: &EstimateRecorded| row.claim == Claim::BorrowedUnchecked && row.transport.is_none();
    if rows.iter().any(|(_, row)| unchecked(row)) {
        return vec!["clover audit transport".to_owned()];
    }
    Vec::new()
}

/// Differences among some policies.
pub(super) struct Contrasts<'a> {
    pub found: &'a Found,
    pub places: &'a [usize],
    pub pairs: &'a [ContrastRecorded],
    pub experiment: &'a ExperimentId,
}

/// A value beside the failed audit that stands against it.
fn noted(value: String, failed: Option<TransportStanding>) -> String {
    match failed {
        Some(_) => format!("{value} transport FAIL"),
        None => value,
    }
}

/// The failed audit that stands against an estimate.
fn failed_of(row: &EstimateRecorded) -> Option<TransportStanding> {
    row.transport.filter(|of| of.state == TransportState::Fail)
}

/// The failed audit that stands against either policy of a difference.
fn failed_in(of: &ContrastRecorded) -> Option<TransportStanding> {
    of.first_transport.or(of.second_transport)
}

fn pair(of: &ContrastRecorded) -> String {
    let name = |id: &str| ui::cut(id, 24);
    format!("{} - {}", name(of.first.as_str()), name(of.second.as_str()))
}

fn reading(of: &ContrastRecorded) -> &'static str {
    match of.reading {
        _ if failed_in(of).is_some() => "transport FAIL",
        None | Some(Reading::Unchecked) => "unchecked",
        Some(Reading::ToldApart) => "told apart",
        Some(Reading::NotToldApart) => "not told apart",
    }
}

impl Contrasts<'_> {
    pub(super) fn warnings(&self) -> Vec<String> {
        let resampled = self.pairs.iter().filter(|of| of.df.is_none());
        let missed = resampled.filter_map(|of| {
            let interval = Interval {
                low: of.interval.low.value(),
                high: of.interval.high.value(),
            };
            replicating::missed(&pair(of), of.difference.value(), interval)
        });
        missed.collect()
    }

    pub(super) fn text(&self) -> String {
        let digits = digits(self.found);
        let interval = format!(
            "{} % interval",
            analysis::percent(self.found.analysis.alpha)
        );
        let head = ["difference", "value", &interval, "p", "p (BH)", ""];
        let rows = self.pairs.iter().map(|of| {
            let (p, adjusted) = (of.p.value(), of.p_adjusted.value());
            vec![
                pair(of),
                format!("{:+.digits$}", of.difference.value()),
                bracket(of.interval, digits),
                format!("{p:.3}"),
                format!("{adjusted:.3}"),
                reading(of).to_owned(),
            ]
        });
        let mut out = ui::table(&head, rows.collect());
        out.push('\n');
        out.push_str(&self.plot().text());
        if self.places.len() > 2 {
            out.push('\n');
            out.push_str(&self.matrix());
        }
        out.push('\n');
        for remark in self.remarks() {
            out.push_str(&ui::wrapped(&remark));
        }
        out
    }

    /// Who is told apart from whom, best first; those whose failed audit stands come last.
    fn matrix(&self) -> String {
        let places = ranks(self.found, self.experiment, self.places);
        let mut order: Vec<(usize, Option<(usize, usize)>)> =
            self.places.iter().copied().zip(places).collect();
        let value = |policy: usize| self.found.analysis.policies[policy].estimate;
        order.sort_by(|(a, of_a), (b, of_b)| {
            let by_value = value(*b).total_cmp(&value(*a));
            of_a.is_none().cmp(&of_b.is_none()).then(by_value)
        });
        let columns: Vec<String> = (1..=order.len()).map(|place| place.to_string()).collect();
        let mut head = vec!["", "wins against", "rank"];
        head.extend(columns.iter().map(String::as_str));
        let rows = order.iter().enumerate().map(|(at, (policy, place))| {
            let mut cells = vec![
                (at + 1).to_string(),
                ui::cut(&self.found.analysis.policies[*policy].name, LABEL),
                rank(*place),
            ];
            cells.extend(
                order
                    .iter()
                    .map(|(other, _)| self.mark(*policy, *other).to_owned()),
            );
            cells
        });
        ui::table(&head, rows.collect())
    }

    fn mark(&self, policy: usize, other: usize) -> &'static str {
        let name = |at: usize| self.found.analysis.policies[at].name.as_str();
        let is = |of: &&ContrastRecorded, a: usize, b: usize| {
            of.first.as_str() == name(a) && of.second.as_str() == name(b)
        };
        let forward = self.pairs.iter().find(|of| is(of, policy, other));
        let back = self.pairs.iter().find(|of| is(of, other, policy));
        let sign = match (forward, back) {
            (Some(of), _) | (None, Some(of)) if failed_in(of).is_some() => return "!",
            (Some(of), _) | (None, Some(of)) if of.reading == Some(Reading::Unchecked) => {
                return "?";
            }
            (Some(of), _) if of.told_apart => of.difference.value(),
            (None, Some(of)) if of.told_apart => -of.difference.value(),
            (None, None) => return "",
            _ => return "·",
        };
        if sign > 0.0 { "+" } else { "-" }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!(
            "family  {} pairs; marks and ranks by p (BH), which holds the share of false findings",
            self.pairs.len()
        )];
        for &policy in self.places {
            if let Some(of) = self.found.failed(self.experiment, policy) {
                remarks.push(format!(
                    "{}  transport FAIL at seq {}: its differences (!) are those of a calibration that does not transfer; \
                     it has no rank until it is recalibrated with new labels of it",
                    self.found.analysis.policies[policy].name, of.seq
                ));
            }
        }
        let unchecked = self
            .pairs
            .iter()
            .any(|of| of.reading == Some(Reading::Unchecked));
        if unchecked {
            remarks.push(
                "? unchecked  a side has neither own labels nor a passed audit, or its level is withheld: whatever p says, \
                 nothing is told apart"
                    .to_owned(),
            );
        }
        let widened = self.pairs.iter().filter_map(|of| {
            let wide = of.conservative?;
            Some(format!(
                "{}  widened by what monotonicity, rare labels or the margin of an audit leave open: {}",
                pair(of),
                bracket(wide, digits(self.found))
            ))
        });
        remarks.extend(widened);
        remarks
    }

    pub(super) fn plot(&self) -> Forest {
        let digits = digits(self.found);
        let rows: Vec<ForestRow> = self
            .pairs
            .iter()
            .map(|of| ForestRow {
                label: pair(of),
                estimate: of.difference.value(),
                interval: Some((of.interval.low.value(), of.interval.high.value())),
                hollow: of.conservative.is_some() || failed_in(of).is_some(),
                note: noted(
                    format!("{:+.digits$}", of.difference.value()),
                    failed_in(of),
                ),
            })
            .collect();
        let (low, high) = Forest::spanning(&rows);
        let percent = analysis::percent(self.found.analysis.alpha);
        Forest {
            title: format!("Differences with {percent} % intervals"),
            axis: "first less second".to_owned(),
            range: (low.min(0.0), high.max(0.0)),
            reference: Some(0.0),
            rows,
        }
    }

    pub(super) fn json(&self) -> Value {
        let alpha = self.found.analysis.alpha;
        let pairs = self.pairs.iter().map(|of| {
            json!({
                "first": of.first.as_str(), "second": of.second.as_str(),
                "difference": of.difference, "se": of.se, "df": of.df,
                "interval": ends(of.interval), "p": of.p, "p_adjusted": of.p_adjusted,
                "conservative_interval": of.conservative.map(ends), "told_apart": of.told_apart,
                "transport": failed_in(of).map(|of| json!({"state": state(of.state), "seq": of.seq})),
                "reading": reading(of), "claims": [of.first_claim, of.second_claim], "basis": of.basis,
            })
        });
        let places = ranks(self.found, self.experiment, self.places);
        let ranked = self.places.iter().zip(places).map(|(policy, place)| {
            let name = &self.found.analysis.policies[*policy].name;
            json!({"policy": name, "rank": rank_ends(place)})
        });
        json!({
            "differences": pairs.collect::<Vec<_>>(),
            "ranking": ranked.collect::<Vec<_>>(),
            "alpha": alpha,
            "terms": self.found.terms,
        })
    }
}
