//! `clover_gates` vectors: the statistics of each gate, not verdicts.

mod rules;

use std::collections::BTreeMap;

use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::predicate;
use clover_stats::predicate::Losses;
use clover_stats::reliability;
use clover_stats::residuals;
use clover_stats::residuals::Raw;
use clover_stats::sample::Clusters;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;

/// Equal-frequency bins of the calibration error.
const BINS: usize = 10;

/// Compares one case.
///
/// # Errors
/// [`Stop`].
pub fn clover_gates(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let y = input.at("y")?.numbers()?;
    let before = input.at("R_baseline")?.numbers()?;
    let after = input.at("R_patched")?.numbers()?;
    let values = |name, column| Values::new(name, column).map_err(refused);
    let (labels, baseline) = (values("y", &y)?, values("R_baseline", &before)?);
    let patched = values("R_patched", &after)?;
    let clusters = Clusters::singletons(y.len()).map_err(refused)?;
    let losses = Losses::new(labels, baseline, patched, &clusters).map_err(refused)?;
    let mean = losses.mean();
    check.count(&expected.at("n")?, mean.rows)?;
    check.number(&expected.at("mse0")?, losses.baseline_mse())?;
    check.number(&expected.at("mse1")?, losses.patched_mse())?;
    check.number(&expected.at("delta_mse")?, mean.mean)?;
    let confirm = expected.at("confirm_one_sided")?;
    check.maybe(&confirm.at("t")?, mean.t(0.0))?;
    let p = predicate::t_p(&mean).unwrap_or(f64::NAN);
    check.p_value(&confirm.at("p")?, p)?;
    let residuals: Vec<f64> = y.iter().zip(&before).map(|(y, r)| y - r).collect();
    slices(case, check, &residuals, &losses)?;
    let shift = predicate::shift(baseline, patched).map_err(refused)?;
    check.number(&expected.at("ks")?, shift.ks())?;
    check.number(&expected.at("wasserstein")?, shift.wasserstein)?;
    let ece = predicate::ece_pair(labels, baseline, patched, BINS).map_err(refused)?;
    check.number(&expected.at("ece0")?, ece.baseline)?;
    check.number(&expected.at("ece1_same_edges")?, ece.patched)?;
    let drift = reliability::anchor_drift(baseline, patched).map_err(refused)?;
    check.number(&expected.at("anchor_drift_mean")?, drift)?;
    rules::through_the_rules(case, check)
}

/// Rows of each slice, by name.
fn members<'a>(input: &Node<'a>) -> Result<BTreeMap<&'a str, Vec<usize>>, Stop> {
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, slice) in input.at("slice")?.texts()?.into_iter().enumerate() {
        members.entry(slice).or_default().push(row);
    }
    Ok(members)
}

fn slices(
    case: &Case<'_>,
    check: &mut Check<'_>,
    residuals: &[f64],
    losses: &Losses,
) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let members = members(input)?;
    let level = input.at("bh_q")?.number()?;
    let mut raws = Vec::new();
    for (name, rows) in &members {
        let want = expected.at("slices")?.at(name)?;
        let picked: Vec<f64> = rows.iter().map(|&row| residuals[row]).collect();
        let clusters = Clusters::singletons(rows.len()).map_err(refused)?;
        let picked = Values::new("residuals", &picked).map_err(refused)?;
        let raw = residuals::raw(picked, &clusters).map_err(refused)?;
        let part = losses.select(rows).map_err(refused)?;
        check.count(&want.at("n")?, rows.len())?;
        let exposure = rows.len() as f64 / residuals.len() as f64;
        check.number(&want.at("exposure")?, exposure)?;
        check.number(&want.at("mean_residual")?, raw.mean)?;
        check.maybe(&want.at("se")?, raw.standard_error)?;
        check.numbers(
            &want.at("ci95")?,
            &raw.interval.map_or([f64::NAN; 2], |at| [at.low, at.high]),
        )?;
        check.p_value(&want.at("p_two_sided")?, raw.p.unwrap_or(f64::NAN))?;
        check.number(&want.at("delta_mse")?, part.mean().mean)?;
        if let Some(p) = want.maybe("noninferiority_p") {
            check.p_value(&p, not_worse(input, name, &part)?)?;
        }
        raws.push(raw);
    }
    residuals::adjust(&mut raws, MultiplicityCorrection::BenjaminiHochberg, level)
        .map_err(refused)?;
    for (name, raw) in members.keys().zip(&raws) {
        let want = expected.at("slice_bh")?.at(name)?;
        check.p_value(&want.at("p_adjusted")?, raw.p_adjusted)?;
        check.flag(&want.at("reject")?, raw.rejected)?;
    }
    greens(input, expected, check, &members, losses, level)?;
    risks(input, expected, check, &members, losses)
}

/// p of the non-inferiority test under the slice's tolerance.
fn not_worse(input: &Node<'_>, name: &str, losses: &Losses) -> Result<f64, Stop> {
    let tau = match input.at("tau_g")?.maybe(name) {
        Some(tau) => tau.number()?,
        None => input.at("tau_g_default")?.number()?,
    };
    Ok(predicate::not_worse_p(losses, tau).unwrap_or(f64::NAN))
}

fn greens(
    input: &Node<'_>,
    expected: &Node<'_>,
    check: &mut Check<'_>,
    members: &BTreeMap<&str, Vec<usize>>,
    losses: &Losses,
    level: f64,
) -> Result<(), Stop> {
    let greens = input.at("green")?.texts()?;
    let mut found = Vec::new();
    for name in &greens {
        let part = losses.select(&members[name]).map_err(refused)?;
        found.push(Raw {
            mean: part.mean().mean,
            standard_error: None,
            t: None,
            interval: None,
            p: Some(not_worse(input, name, &part)?),
            p_adjusted: 1.0,
            rejected: false,
        });
    }
    residuals::adjust(&mut found, MultiplicityCorrection::BenjaminiHochberg, level)
        .map_err(refused)?;
    for (name, raw) in greens.iter().zip(&found) {
        let want = expected.at("noninferiority_bh")?.at(name)?;
        check.p_value(&want.at("p_adjusted")?, raw.p_adjusted)?;
        check.flag(&want.at("reject")?, raw.rejected)?;
    }
    // Benjamini-Hochberg rejects all exactly when the largest p is at most q.
    let all = found.iter().all(|raw| raw.p.is_some_and(|p| p <= level));
    check.flag(&expected.at("noninferiority_all_pass")?, all)
}

fn risks(
    input: &Node<'_>,
    expected: &Node<'_>,
    check: &mut Check<'_>,
    members: &BTreeMap<&str, Vec<usize>>,
    losses: &Losses,
) -> Result<(), Stop> {
    let (mut w, mut u, mut means) = (Vec::new(), Vec::new(), Vec::new());
    for name in input.at("risk")?.texts()? {
        w.push(input.at("w")?.at(name)?.number()?);
        u.push(input.at("u")?.at(name)?.number()?);
        let part = losses.select(&members[name]).map_err(refused)?;
        means.push(part.mean().mean);
    }
    let values = |name, column| Values::new(name, column).map_err(refused);
    let total =
        predicate::risk_improve(values("w", &w)?, values("u", &u)?, values("means", &means)?);
    check.number(&expected.at("risk_improve")?, total.map_err(refused)?)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn the_vectors_pass() {
        let text = include_str!("../../../fixtures/reference/stats/clover_gates.json");
        let report = run("clover_gates.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases);
    }
}
