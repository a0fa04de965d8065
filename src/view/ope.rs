//! How off-policy estimates are shown: what logged responses of one policy say of others, and whether they can.

use serde::Serialize;

use crate::event::id::PolicyId;
use crate::event::id::Text;
use crate::event::payload::estimated::Claim;
use crate::event::payload::ope::OpeDiagnosed;
use crate::event::payload::ope::OpeEstimated;
use crate::event::payload::overlap::WeightFigures;
use crate::num::Finite;
use crate::num::math;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::view::View;
use crate::view::values;
use crate::workflow::ope::TargetDiagnosis;

/// Points of a weight panel's curve.
const POINTS: usize = 200;
/// Blocks of its terminal twin.
const BLOCKS: usize = 24;

/// Policies by the logged responses of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpeFacts {
    /// Whose responses were logged.
    pub logger: PolicyId,
    /// The policies that they are weighted for.
    pub policies: Vec<OffPolicyFacts>,
}

/// One policy by the logged responses of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OffPolicyFacts {
    /// Its name.
    pub policy: PolicyId,
    /// Its value by responses of its own, in label units; `null` where there is none or its level is withheld.
    pub direct: Option<f64>,
    /// How far logged responses can answer.
    pub diagnosed: OpeDiagnosed,
    /// What they say.
    pub estimates: Vec<OpeEstimated>,
}

/// The view: each policy with its value by its own responses.
pub fn shown(
    logger: &PolicyId,
    computed: &[(&TargetDiagnosis, Option<f64>)],
    recorded: Option<View>,
    unrecorded: &'static str,
) -> View {
    let policies = computed.iter().map(|(of, direct)| OffPolicyFacts {
        policy: of.diagnosed.policy.clone(),
        direct: *direct,
        diagnosed: of.diagnosed.clone(),
        estimates: of.estimates.clone(),
    });
    let facts = OpeFacts {
        logger: logger.clone(),
        policies: policies.collect(),
    };
    let mut view = View::of(&facts);
    view.line(format!("responses of {logger}, weighted for others"));
    for (of, direct) in computed {
        policy(&mut view, of, *direct);
    }
    values::on_record(view, &facts, recorded, unrecorded)
}

fn policy(view: &mut View, of: &TargetDiagnosis, direct: Option<f64>) {
    view.gap();
    view.line(of.diagnosed.policy.to_string());
    let head = ["estimator", "value", "interval", "verdict"];
    view.table(&head, rows(of, direct));
    let mut lines = figures(&of.diagnosed);
    let (_, why) = reasons(&of.diagnosed, "direct");
    if !why.is_empty() {
        lines.insert(0, ("direct", why));
    }
    let decades = decades(&of.ccdf[0]);
    lines.push((
        "weights",
        format!("{decades} share of rows at least as heavy, 1e-6 to 1e3"),
    ));
    for (name, line) in &lines {
        view.sentence(format!("{name:<10}  {line}"));
    }
    view.sentence(format!("→ {}", verdict(&of.diagnosed)));
}

fn number(value: Option<Finite>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| {
        format!("{:.digits$}", value.value())
    })
}

fn reasons(diagnosed: &OpeDiagnosed, estimator: &str) -> (String, String) {
    let row = diagnosed
        .guide
        .iter()
        .find(|row| row.estimator.as_str() == estimator);
    match row {
        Some(row) => {
            let words: Vec<&str> = row.reasons.iter().map(Text::as_str).collect();
            (row.verdict.as_str().to_owned(), words.join("; "))
        }
        None => (
            "warned".to_owned(),
            "of the rows that both policies share".to_owned(),
        ),
    }
}

fn rows(of: &TargetDiagnosis, direct: Option<f64>) -> Vec<Vec<String>> {
    let line = |name: &str, estimate: Option<&OpeEstimated>, value: String| {
        let interval = estimate.and_then(|of| of.interval);
        let interval = interval.map_or("-".to_owned(), |at| {
            format!("[{:.3}, {:.3}]", at.low.value(), at.high.value())
        });
        let failed = estimate.and_then(|of| of.transport);
        let verdict = match failed {
            Some(failed) => format!("refused: transport FAIL at seq {}", failed.seq),
            None => reasons(&of.diagnosed, name).0,
        };
        vec![name.to_owned(), value, interval, verdict]
    };
    let mut rows = Vec::new();
    for row in &of.diagnosed.guide {
        let name = row.estimator.as_str();
        let estimate = of.estimates.iter().find(|of| of.estimator.as_str() == name);
        let value = match (name, estimate) {
            ("direct", _) => match of.diagnosed.direct_claim {
                Some(Claim::Refused) => "withheld".to_owned(),
                _ => direct.map_or("-".to_owned(), |value| format!("{value:.3}")),
            },
            (_, Some(of)) => format!("{:.3}", of.estimate.value()),
            (_, None) => "-".to_owned(),
        };
        rows.push(line(name, estimate, value));
    }
    let in_guide = |of: &&OpeEstimated, guide: &OpeDiagnosed| {
        guide.guide.iter().any(|row| row.estimator == of.estimator)
    };
    for estimate in of
        .estimates
        .iter()
        .filter(|one| !in_guide(one, &of.diagnosed))
    {
        let value = format!("{:.3}", estimate.estimate.value());
        rows.push(line(estimate.estimator.as_str(), Some(estimate), value));
    }
    rows
}

/// Why logged data answer, or cannot.
fn verdict(of: &OpeDiagnosed) -> String {
    if let Some(answer) = &of.answer {
        return format!("logged responses may answer by {}", answer.as_str());
    }
    let why: Vec<String> = ["snips", "calibrated-ips"]
        .iter()
        .map(|name| format!("{name}: {}", reasons(of, name).1))
        .collect();
    format!("logged responses cannot answer ({})", why.join("); ("))
}

fn figures(of: &OpeDiagnosed) -> Vec<(&'static str, String)> {
    let weights = |of: &WeightFigures| {
        format!(
            "ESS {:.1} %, largest {:.1} % of all, p99.5 {:.1}, Hill {}",
            of.ess_fraction.value() * 100.0,
            of.max_share.value() * 100.0,
            of.percentile_99_5.value(),
            number(of.hill, 2)
        )
    };
    let by = if of.ttc_by_total.is_some() {
        format!(
            "by token; {} by total surprisal",
            number(of.ttc_by_total, 2)
        )
    } else {
        "by total surprisal: no token counts".to_owned()
    };
    let mut lines = vec![
        ("ratios", weights(&of.raw)),
        (
            "stabilised",
            format!(
                "{}, caps bound in {:.0} % of folds",
                weights(&of.stabilised),
                of.guarded.value() * 100.0
            ),
        ),
        (
            "coverage",
            format!(
                "TTC {:.2} ({by}), CLE factor {}, affinity {:.2}",
                of.ttc.value(),
                number(of.cle_factor, 1),
                of.affinity.value()
            ),
        ),
        (
            "rows",
            format!(
                "{} of {} logged; {} without log-probabilities, {} without this policy's",
                of.filter.kept, of.filter.rows, of.filter.without_logprob, of.filter.without_target
            ),
        ),
    ];
    lines.extend(sensitivity(of));
    lines
}

/// Residuals, caps and groups of a diagnosis.
fn sensitivity(of: &OpeDiagnosed) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(residuals) = &of.residuals {
        lines.push((
            "residuals",
            format!(
                "{:+.3} [{:+.3}, {:+.3}] weighted; outcome model {:.3}",
                residuals.mean.value(),
                residuals.low.value(),
                residuals.high.value(),
                residuals.direct.value()
            ),
        ));
    }
    let caps: Vec<f64> = of.caps.iter().map(|cap| cap.estimate.value()).collect();
    if let (Some(first), Some(last)) = (of.caps.first(), of.caps.last()) {
        lines.push((
            "caps",
            format!(
                "{:.3} at {:.0} to {:.3} at {:.0} {}",
                first.estimate.value(),
                first.cap.value(),
                last.estimate.value(),
                last.cap.value(),
                spark::line(&caps, ends(&caps))
            ),
        ));
    }
    let groups: Vec<String> = of
        .groups
        .iter()
        .map(|group| {
            let ess = group.ess_fraction.map_or("-".to_owned(), |ess| {
                format!("{:.1} %", ess.value() * 100.0)
            });
            format!("{} ({}): ESS {ess}", group.group.as_str(), group.rows)
        })
        .collect();
    lines.push(("groups", groups.join(" · ")));
    lines
}

fn ends(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        })
}

/// Share of rows at least as heavy, over nine decades.
fn decades(ccdf: &[(f64, f64)]) -> String {
    let shares: Vec<f64> = (0..BLOCKS)
        .map(|at| {
            let exponent = -6.0 + 9.0 * at as f64 / (BLOCKS - 1) as f64;
            let weight = math::exp(exponent * std::f64::consts::LN_10);
            let above = ccdf.iter().find(|(of, _)| *of >= weight);
            above.map_or(0.0, |(_, share)| *share)
        })
        .collect();
    spark::line(&shares, (0.0, 1.0))
}

/// Complementary distributions of ratios and stabilised weights on logarithmic axes.
pub fn panel(computed: &[TargetDiagnosis]) -> Chart {
    let thinned = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let step = points.len().div_ceil(POINTS).max(1);
        let positive = points.iter().filter(|(weight, _)| *weight > 1e-12);
        let logged =
            positive.map(|(weight, share)| (math::ln(*weight) / std::f64::consts::LN_10, *share));
        logged.step_by(step).collect()
    };
    let mut series = Vec::new();
    for of in computed {
        let ess = |share: Finite| format!("ESS {:.1} %", share.value() * 100.0);
        let policy = &of.diagnosed.policy;
        let [raw, stabilised] = &of.ccdf;
        for (word, points, figures) in [
            ("ratios", raw, &of.diagnosed.raw),
            ("stabilised", stabilised, &of.diagnosed.stabilised),
        ] {
            series.push(Series {
                label: format!("{policy}, {word}, {}", ess(figures.ess_fraction)),
                mark: Mark::Line,
                points: thinned(points),
                weights: Vec::new(),
            });
        }
    }
    Chart {
        title: "Share of rows whose weight is at least as large".to_owned(),
        x: "log10 of the mean-one weight".to_owned(),
        y: "share of rows".to_owned(),
        series,
        log_y: true,
    }
}
