//! Vectors of `ville` and of enumerations: families, calibrators, tests, sequences, grid-Kelly.

use clover_num::math;
use clover_stats::eprocess::asymptotic::Boundary;
use clover_stats::eprocess::asymptotic::RunningMoments;
use clover_stats::eprocess::bettor;
use clover_stats::eprocess::classical;
use clover_stats::eprocess::family;
use clover_stats::eprocess::hedged::Bernstein;
use clover_stats::eprocess::hedged::Stream;
use clover_stats::eprocess::merge;
use clover_stats::eprocess::merge::EValues;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use crate::eprocess::absolute;
use crate::eprocess::allowed;
use crate::eprocess::at_counts;
use crate::eprocess::confseq::ends;
use crate::eprocess::relative;

/// `evalues`.
///
/// # Errors
/// [`Stop`].
pub fn evalues(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    match case.input.at("list")?.text()? {
        "multiplicity" => multiplicity(case, check),
        "calibrators" => calibrators(case, check),
        list => {
            let input = case.input.at("case")?;
            let streams = case.input.at("file")?.at("streams")?;
            let values = streams.at(input.at("stream")?.text()?)?.numbers()?;
            let stream = Values::new("x", &values)
                .and_then(Stream::new)
                .map_err(refused)?;
            let counts = input.at("n")?.counts()?;
            for name in ["stream", "m0", "n"] {
                check.informative(&case.expected.at(name)?, "what goes in");
            }
            let null = input.at("m0")?.number()?;
            if list == "ville_tests" {
                tests(case, check, stream, null, &counts)?;
                sequences(case, check, stream, &counts)?;
                classics(case, check, &values, null, &counts)
            } else {
                grid_kelly(case, check, &values, null, &counts)
            }
        }
    }
}

/// Places that are rejected.
fn places(reject: &[bool]) -> Vec<usize> {
    (0..reject.len()).filter(|at| reject[*at]).collect()
}

/// Compares rejected values, since equal e-values may stand in for each other.
fn rejected(
    check: &mut Check<'_>,
    expected: &Node<'_>,
    e: &[f64],
    reject: &[bool],
) -> Result<(), Stop> {
    let value = |at: &usize| e.get(*at).copied().unwrap_or(f64::NAN);
    let want = expected.counts()?;
    let (mut wanted, mut found): (Vec<f64>, Vec<f64>) = (
        want.iter().map(value).collect(),
        places(reject).iter().map(value).collect(),
    );
    wanted.sort_by(f64::total_cmp);
    found.sort_by(f64::total_cmp);
    let same = wanted
        .iter()
        .map(|e| e.to_bits())
        .eq(found.iter().map(|e| e.to_bits()));
    check.flag_of(expected, same, "the rejected e-values");
    Ok(())
}

fn multiplicity(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let rel = allowed(case, "e_rel")?;
    let raw = case.input.at("case")?.at("e")?.numbers()?;
    check.informative(&case.expected.at("e")?, "what goes in");
    let e = EValues::new(&raw).map_err(refused)?;
    let expected = |name: &str| case.expected.at(name);
    check.within(&expected("mean")?, e.mean(), None, Some(rel))?;
    check.within(&expected("product")?, e.product(), None, Some(rel))?;
    let p: Vec<f64> = raw.iter().map(|e| merge::p_of_e(*e)).collect();
    relative(check, &expected("e_to_p")?, &p, rel)?;
    let closed = family::closed_mean(e);
    relative(check, &expected("closed_mean_adjusted")?, &closed, rel)?;
    for (text, alpha) in [("0.05", 0.05), ("0.1", 0.1)] {
        let at = |name: &str| expected(&format!("{name}_alpha_{text}"));
        let plain = family::ebh(e, alpha).map_err(refused)?;
        rejected(check, &at("ebh_reject_idx")?, &raw, &plain)?;
        let bh = family::closed_ebh(e, alpha).map_err(refused)?;
        rejected(check, &at("closed_ebh_reject_idx")?, &raw, &bh)?;
        let familywise: Vec<bool> = closed.iter().map(|e| *e >= 1.0 / alpha).collect();
        rejected(
            check,
            &at("closed_mean_fwer_reject_idx")?,
            &raw,
            &familywise,
        )?;
        let online = expected(&format!("elond_alpha_{text}_gamma_1_over_t(t+1)"))?;
        let found = family::elond(e, alpha).map_err(refused)?;
        check.count_of(&online, found.len());
        for ((t, row), (level, reject)) in (1..).zip(online.elements()?).zip(found) {
            check.count(&row.index(0)?, t)?;
            check.within(&row.index(1)?, level, None, Some(rel))?;
            check.flag(&row.index(2)?, reject)?;
        }
    }
    Ok(())
}

fn calibrators(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let rel = allowed(case, "e_rel")?;
    let p = case.input.at("case")?.at("p")?.numbers()?;
    check.informative(&case.expected.at("p")?, "what goes in");
    for (name, kappa) in [("kappa_0.5", 0.5), ("kappa_0.1", 0.1)] {
        let e: Result<Vec<f64>, _> = p.iter().map(|p| merge::e_of_p(*p, kappa)).collect();
        relative(check, &case.expected.at(name)?, &e.map_err(refused)?, rel)?;
    }
    let e: Result<Vec<f64>, _> = p.iter().map(|p| merge::e_of_p_mixed(*p)).collect();
    relative(
        check,
        &case.expected.at("mixture")?,
        &e.map_err(refused)?,
        rel,
    )
}

fn exps(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| math::exp(*log)).collect()
}

fn tests(
    case: &Case<'_>,
    check: &mut Check<'_>,
    stream: Stream<'_>,
    null: f64,
    counts: &[usize],
) -> Result<(), Stop> {
    let rel = allowed(case, "e_rel")?;
    let bets = stream.plugin_bets(2.0 / 0.05);
    let half = stream.capital(&bets, null, 0.5, None);
    let (up, down) = (exps(&half.up), exps(&half.down));
    let both: Vec<f64> = up
        .iter()
        .zip(&down)
        .map(|(up, down)| 0.5 * (up + down))
        .collect();
    let wide = stream.capital(&bets, null, 0.9, None).up;
    let mut peak = 0.0_f64;
    let p: Vec<f64> = wide
        .iter()
        .map(|log| {
            peak = peak.max(*log);
            math::exp(-peak).min(1.0)
        })
        .collect();
    for (name, found) in [
        ("BettingTest_greater", up),
        ("BettingTest_less", down),
        ("BettingTest_two-sided", both),
        ("BettingTest_greater_c.9", exps(&wide)),
        ("p_greater_c.9", p),
    ] {
        relative(
            check,
            &case.expected.at(name)?,
            &at_counts(&found, counts),
            rel,
        )?;
    }
    Ok(())
}

fn sequences(
    case: &Case<'_>,
    check: &mut Check<'_>,
    stream: Stream<'_>,
    counts: &[usize],
) -> Result<(), Stop> {
    let betting = case.expected.at("BettingCS")?;
    check.informative(&betting.at("grid")?, "what goes in");
    let abs = allowed(case, "BettingCS_abs")?;
    ends(
        check,
        &betting,
        &stream.hedged(0.05, 0.5, None),
        counts,
        abs,
    )?;
    let bernstein = stream.empirical_bernstein(0.05, Bernstein::TwoSided);
    let abs = allowed(case, "other_cs_abs")?;
    let node = case.expected.at("EmpiricalBernsteinCS")?;
    ends(check, &node, &bernstein, counts, abs)
}

fn classics(
    case: &Case<'_>,
    check: &mut Check<'_>,
    values: &[f64],
    null: f64,
    counts: &[usize],
) -> Result<(), Stop> {
    let (abs, rel) = (allowed(case, "other_cs_abs")?, allowed(case, "e_rel")?);
    let asymptotic = case.expected.at("AsymptoticCS_t500_min20")?;
    let boundary = peer_boundary(check, &asymptotic)?;
    let mut running = RunningMoments::default();
    let (mut intervals, mut ratios) = (Vec::new(), Vec::new());
    let (mut sum, mut successes) = (0.0, 0_u64);
    let (mut beta, mut bounds) = (Vec::new(), Vec::new());
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for (n, x) in (1_u64..).zip(values) {
        running.push(*x).map_err(refused)?;
        let interval = running.interval(&boundary, 20);
        intervals.push(interval.map_or((f64::NAN, f64::NAN), |found| (found.low, found.high)));
        sum += x;
        let ratio = classical::normal_mixture(n, sum / n as f64, null, 0.3, 0.1);
        ratios.push(math::exp(ratio));
        successes += u64::from(*x > 0.5);
        beta.push(math::exp(classical::bernoulli_mixture(successes, n, null)));
        let found = classical::bernoulli_bounds(successes, n, 0.05);
        (low, high) = (low.max(found.0), high.min(found.1));
        bounds.push((low, high));
    }
    ends(check, &asymptotic, &intervals, counts, abs)?;
    let node = case.expected.at("MSPRT_sigma.3_tau.1")?;
    relative(check, &node, &at_counts(&ratios, counts), rel)?;
    if let Some(node) = case.expected.maybe("BernoulliTest_beta11") {
        relative(check, &node, &at_counts(&beta, counts), rel)?;
        let node = case.expected.at("BernoulliCS_beta11")?;
        ends(check, &node, &bounds, counts, abs)?;
    }
    Ok(())
}

/// `best_rho(500, 0.05)` of ville 0.1.0, the precision of its mixture: 1 over the square of our rho.
const PEER_PRECISION: f64 = 60.886_790_149_040_41;

/// The boundary as the peer tunes it, by a numerical search that stops 4e-7 of its value from the optimum. That shows at the
/// ninth digit, so the ends are compared with the peer's own rho, and our optimum with it to six digits.
fn peer_boundary(check: &mut Check<'_>, node: &Node<'_>) -> Result<Boundary, Stop> {
    let rho = PEER_PRECISION.sqrt().recip();
    let best = Boundary::new(0.05, 500).map_err(refused)?.rho();
    check.flag_of(node, (best / rho - 1.0).abs() < 1e-6, "the optimal rho");
    Boundary::with_rho(0.05, rho).map_err(refused)
}

/// The native core beside `numpy`, with and without replacement.
fn grid_kelly(
    case: &Case<'_>,
    check: &mut Check<'_>,
    values: &[f64],
    null: f64,
    counts: &[usize],
) -> Result<(), Stop> {
    let abs = allowed(case, "log_wealth_abs")?;
    let input = case.input.at("case")?;
    let fractions = input.at("K")?.count()?;
    check.informative(&case.expected.at("K")?, "what goes in");
    // Without it the units are drawn with replacement only.
    let units = input.maybe("WoR_N").map(|node| node.count()).transpose()?;
    if let Some(node) = case.expected.maybe("WoR_N") {
        check.informative(&node, "what goes in");
    }
    let (mut up, mut down, mut both, mut left) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &n in counts {
        let prefix = &values[..n.min(values.len())];
        let returns = |mean: f64, sign: f64| -> Vec<f64> {
            let one = |x: &f64| {
                if sign > 0.0 {
                    x / mean
                } else {
                    (1.0 - x) / (1.0 - mean)
                }
            };
            prefix.iter().map(|x| one(x) - 1.0).collect()
        };
        let (a, b) = (
            bettor::ln_wealth(&returns(null, 1.0), fractions),
            bettor::ln_wealth(&returns(null, -1.0), fractions),
        );
        up.push(a);
        down.push(b);
        both.push(bettor::log_mean_exp(&[a, b]));
        if let Some(units) = units {
            left.push(native(prefix, null, units, fractions)?);
        }
    }
    for (name, found) in [
        ("log_wealth_up", up),
        ("log_wealth_down", down),
        ("log_two_sided_mean", both),
    ] {
        absolute(check, &case.expected.at(name)?, &found, abs)?;
    }
    match units {
        Some(_) => absolute(check, &case.expected.at("log_wealth_up_WoR")?, &left, abs),
        None => Ok(()),
    }
}

/// Log wealth of a gate on a finite set; the streams have six decimals, so that x is exact in millionths.
fn native(values: &[f64], null: f64, units: usize, fractions: usize) -> Result<f64, Stop> {
    use clover_stats::eprocess::Bettor;
    use clover_stats::eprocess::Claim;
    use clover_stats::eprocess::Design;
    use clover_stats::eprocess::Gate;
    use clover_stats::eprocess::GateTerms;
    use clover_stats::eprocess::Looks;
    use clover_stats::eprocess::Population;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounded millionths of [-1, 1]"
    )]
    let micro = |x: f64| ((2.0 * x - 1.0) * 1e6).round() as i64;
    let units = units as u64;
    let mut terms = GateTerms::new(1_000_000, units);
    terms.claim = Claim::Superior {
        margin: micro(null),
    };
    terms.bettor = Bettor::GridKelly { fractions };
    terms.looks = Looks::At(vec![units]);
    terms.population = Population::Finite { units };
    let mut gate = Gate::verdicts_only(Design::new(terms).map_err(refused)?);
    for x in values {
        gate.push(micro(*x)).map_err(refused)?;
    }
    let claim = gate.look().claim;
    Ok(claim.map_or(f64::NAN, |claim| claim.ln_wealth))
}
