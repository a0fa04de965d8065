//! Vectors of rankings.

use clover_stats::rank;
use clover_stats::rank::PairCounts;
use clover_stats::rank::TauMethod;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Stop;
use crate::check::refused;

/// `rank`: Kendall's tau-b and tau-c, Spearman's rho, pair accuracies and the agreement on the best row.
///
/// # Errors
/// [`Stop`].
pub fn rank(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (x, y) = (
        case.input.at("x")?.numbers()?,
        case.input.at("y")?.numbers()?,
    );
    let x = Values::new("x", &x).map_err(refused)?;
    let y = Values::new("y", &y).map_err(refused)?;
    let counts = PairCounts::of(x, y).map_err(refused)?;
    let methods = [
        ("tau_b:auto", TauMethod::Auto),
        ("tau_b:asymptotic", TauMethod::Asymptotic),
        ("tau_b:exact", TauMethod::Exact),
    ];
    for (name, method) in methods {
        let expected = case.expected.at(name)?;
        match counts.p(method) {
            Ok(p) => {
                check.maybe(&expected.at("statistic")?, counts.tau_b())?;
                check.p_value(&expected.at("pvalue")?, p.unwrap_or(f64::NAN))?;
            }
            Err(_) if expected.maybe("error").is_some() => {
                check.informative(&expected, "the peer refuses it too");
            }
            Err(error) => return Err(refused(error)),
        }
    }
    let expected = case.expected.at("tau_c")?;
    let p = counts.p(TauMethod::Auto).map_err(refused)?;
    check.maybe(&expected.at("statistic")?, counts.tau_c())?;
    check.p_value(&expected.at("pvalue")?, p.unwrap_or(f64::NAN))?;
    let expected = case.expected.at("spearman")?;
    let spearman = rank::spearman(x, y).map_err(refused)?;
    check.maybe(
        &expected.at("statistic")?,
        spearman.map(|spearman| spearman.rho),
    )?;
    let p = spearman.and_then(|spearman| spearman.p);
    check.p_value(&expected.at("pvalue")?, p.unwrap_or(f64::NAN))?;
    check.number(&case.expected.at("pair_acc_paper")?, counts.pair_accuracy())?;
    let experiments = rank::pair_accuracy_experiments(x, y).map_err(refused)?;
    check.number(&case.expected.at("pair_acc_experiments_repo")?, experiments)?;
    let top1 = rank::top1(x, y).map_err(refused)?;
    check.flag(&case.expected.at("top1")?, top1)
}

#[cfg(test)]
mod tests {
    use crate::run;

    #[test]
    fn rank_vectors_pass() {
        let text = include_str!("../../fixtures/reference/stats/rank.json");
        let report = run("rank.json", text, None).unwrap();
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!((report.passed, report.cases), (5, 5));
    }
}
