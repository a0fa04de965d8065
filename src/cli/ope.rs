//! `clover estimate --ope`: what logged responses of one policy say of others, and whether they can.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::EstimateArgs;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::id::PolicyId;
use crate::event::id::Text;
use crate::event::payload::estimated::Claim;
use crate::event::payload::ope::OpeDiagnosed;
use crate::event::payload::ope::OpeEstimated;
use crate::event::payload::ope::OpeTerms;
use crate::ground::ambient;
use crate::num::Finite;
use crate::projection::drifts;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::session::estimates::Estimation;
use crate::view::View;
use crate::workflow::estimate::form::Form;
use crate::workflow::ope;
use crate::workflow::ope::Target;
use crate::workflow::ope::logs;
use crate::workflow::ope::logs::Logs;

const HELP: &str = "clover estimate --help";
/// Points of a weight panel's curve.
const POINTS: usize = 200;
/// Blocks of its terminal twin.
const BLOCKS: usize = 24;

/// The logged responses: of the named policy, else of the only one that has any.
fn logger(
    found: BTreeMap<PolicyId, Logs>,
    named: Option<&str>,
) -> Result<(PolicyId, Logs), CliError> {
    let names: Vec<String> = found.keys().map(ToString::to_string).collect();
    let mut of = found.into_iter();
    match (named, names.len()) {
        (_, 0) => Err(CliError::not_found(
            "no logged response with log-probabilities",
            "clover import logged FILE --policy POLICY",
        )),
        (None, 1) => of.next().ok_or_else(|| CliError::usage("no logger", HELP)),
        (None, _) => Err(CliError::usage(
            format!(
                "several policies have logged responses: {}",
                names.join(", ")
            ),
            "the same command with --logger POLICY",
        )),
        (Some(named), _) => of
            .find(|(policy, _)| policy.as_str() == named)
            .ok_or_else(|| {
                let message = format!("no logged responses of {named}; of {}", names.join(", "));
                CliError::not_found(message, "clover estimate --ope")
            }),
    }
}

/// The policies that are asked for: all that have log-probabilities but the logger where none is.
fn targets(logs: &Logs, logger: &PolicyId, asked: &[String]) -> Result<Vec<PolicyId>, CliError> {
    let known = logs.targets();
    if asked.is_empty() {
        let others = known.into_iter().filter(|policy| *policy != logger);
        return Ok(others.cloned().collect());
    }
    let names: Vec<&str> = known.iter().map(|policy| policy.as_str()).collect();
    let named = asked.iter().map(|name| {
        let found = known.iter().find(|policy| policy.as_str() == name);
        found.map(|policy| (*policy).clone()).ok_or_else(|| {
            let message = format!(
                "no log-probability under {name}; there are {}",
                names.join(", ")
            );
            CliError::not_found(message, "clover estimate --ope")
        })
    });
    let mut named = named.collect::<Result<Vec<_>, _>>()?;
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &EstimateArgs) -> Result<View, CliError> {
    if args.terms.bootstrap.is_some() {
        let message = "--ope has t intervals: --bootstrap belongs to direct estimates";
        return Err(CliError::usage(message, HELP));
    }
    let mut read = estimate::open(ctx, &args.terms.fit)?;
    args.terms.complete(&mut read.terms)?;
    let found = estimate::found(ctx, &mut read)?;
    let below = ctx.as_of.map_or(read.ledger.size(), |seq| seq + 1);
    let all = logs::read(&read.ledger, &read.experiment, below)
        .map_err(|error| CliError::input(error.to_string(), HELP))?;
    let (logger, logs) = logger(all, args.logger.as_deref())?;
    let names = targets(&logs, &logger, &args.policies)?;
    let state = read.ledger.state();
    let planned = estimate::planned(state, &read.experiment, drifts::overlap_plan, "overlap")?;
    let terms = ope::terms(found.terms.clone(), logger, planned);
    let form = Form::asked(read.ledger.state());
    let (mut computed, mut diagnoses) = (Vec::with_capacity(names.len()), Vec::new());
    let mut progress = ctx.progress("policies");
    for (done, name) in names.iter().enumerate() {
        let mut one = ope::target(&found, &logs, &terms, name)
            .map_err(|error| CliError::input(format!("{name}: {error}"), HELP))?;
        let place = found.gathered.policy(name.as_str());
        let failed = place.and_then(|place| found.failed(&read.experiment, place));
        let estimates = std::mem::take(&mut one.estimates).into_iter();
        one.estimates = estimates.map(|of| ope::marked(of, failed)).collect();
        // What is shown says what the direct level rests on; what is recorded does so where the rulebook asks.
        let recorded = one.diagnosed.clone();
        one.diagnosed = ope::claimed(recorded.clone(), &found, &read.experiment);
        diagnoses.push(match form {
            Form::Claimed => one.diagnosed.clone(),
            Form::Bare => recorded,
        });
        computed.push(one);
        progress.at(done as u64 + 1, names.len() as u64);
    }
    drop(progress);
    // A level that is withheld is withheld here too.
    let direct = |policy: &PolicyId| {
        let place = found.gathered.policy(policy.as_str())?;
        let claim = found.claim(place, found.standing(&read.experiment, place));
        (claim != Claim::Refused).then(|| found.analysis.policies[place].estimate)
    };
    let text = text(&terms, &computed, &direct);
    let data = json!({
        "logger": terms.logger,
        "policies": computed.iter().map(|of| shown(of, direct(&of.diagnosed.policy))).collect::<Vec<_>>(),
    });
    if let Some(path) = &args.plot {
        let svg = panel(&computed).svg();
        ambient::replace(&ctx.path(path), svg.as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    let recorded = if args.terms.fit.dry_run || ctx.as_of.is_some() {
        None
    } else {
        Some(append(ctx, &mut read, &found, (&computed, &diagnoses))?)
    };
    let verdict = estimate::unrecorded(ctx);
    Ok(estimate::answer(text, data, recorded, verdict))
}

/// Estimates of each policy, then its diagnosis. Policies with the least overlap come last, so that what the assumptions
/// ledger says at the end is the worst of the run.
fn append(
    ctx: &mut Ctx<'_>,
    read: &mut Estimation,
    found: &crate::workflow::estimate::compute::Found,
    (computed, diagnoses): (&[Target], &[OpeDiagnosed]),
) -> Result<View, CliError> {
    let mut order: Vec<(&Target, &OpeDiagnosed)> = computed.iter().zip(diagnoses).collect();
    order.sort_by_key(|(of, _)| (of.diagnosed.overlap, of.diagnosed.tail));
    let mut events: Vec<Payload> = Vec::new();
    for (of, diagnosed) in order {
        events.push(diagnosed.clone().into());
        events.extend(of.estimates.iter().cloned().map(Payload::from));
    }
    estimate::append(ctx, read, found, events)
}

fn shown(of: &Target, direct: Option<f64>) -> Value {
    json!({
        "policy": of.diagnosed.policy, "direct": direct, "diagnosed": of.diagnosed,
        "estimates": of.estimates,
    })
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

fn rows(of: &Target, direct: Option<f64>) -> Vec<Vec<String>> {
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
    let weights = |of: &crate::event::payload::overlap::WeightFigures| {
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

fn text(
    terms: &OpeTerms,
    computed: &[Target],
    direct: &dyn Fn(&PolicyId) -> Option<f64>,
) -> String {
    let mut out = format!("responses of {}, weighted for others\n", terms.logger);
    for of in computed {
        let policy = &of.diagnosed.policy;
        out.push_str(&format!("\n{policy}\n"));
        let head = ["estimator", "value", "interval", "verdict"];
        out.push_str(&ui::table(&head, rows(of, direct(policy))));
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
            out.push_str(&ui::wrapped(&format!("{name:<10}  {line}")));
        }
        out.push_str(&ui::wrapped(&format!("→ {}", verdict(&of.diagnosed))));
    }
    out
}

/// Share of rows at least as heavy, over nine decades.
fn decades(ccdf: &[(f64, f64)]) -> String {
    let shares: Vec<f64> = (0..BLOCKS)
        .map(|at| {
            let exponent = -6.0 + 9.0 * at as f64 / (BLOCKS - 1) as f64;
            let weight = crate::num::math::exp(exponent * std::f64::consts::LN_10);
            let above = ccdf.iter().find(|(of, _)| *of >= weight);
            above.map_or(0.0, |(_, share)| *share)
        })
        .collect();
    spark::line(&shares, (0.0, 1.0))
}

/// Complementary distributions of ratios and stabilised weights on logarithmic axes.
fn panel(computed: &[Target]) -> Chart {
    let thinned = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let step = points.len().div_ceil(POINTS).max(1);
        let positive = points.iter().filter(|(weight, _)| *weight > 1e-12);
        let logged = positive.map(|(weight, share)| {
            (
                crate::num::math::ln(*weight) / std::f64::consts::LN_10,
                *share,
            )
        });
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
