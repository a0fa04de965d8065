//! Vectors of `confseq`: bets, wealth, confidence sequences, and draws without replacement.

use clover_num::math;
use clover_stats::eprocess::hedged::Bernstein;
use clover_stats::eprocess::hedged::Stream;
use clover_stats::sample::Values;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use crate::eprocess::absolute;
use crate::eprocess::allowed;
use crate::eprocess::at_counts;
use crate::eprocess::relative;

/// `confseq_betting`.
///
/// # Errors
/// [`Stop`].
pub fn confseq(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = case.input.at("case")?;
    let values = if let Some(drawn) = input.maybe("x_drawn") {
        drawn.numbers()?
    } else {
        let streams = case.input.at("file")?.at("streams")?;
        streams.at(input.at("stream")?.text()?)?.numbers()?
    };
    let stream = Values::new("x", &values)
        .and_then(Stream::new)
        .map_err(refused)?;
    let counts = input.at("record_at_n")?.counts()?;
    check.informative(&case.expected.at("record_at_n")?, "what goes in");
    match case.input.at("list")?.text()? {
        "martingales" => martingales(case, check, stream, &values, &counts),
        "confidence_sequences" => sequences(case, check, stream, &counts),
        _ => without_replacement(case, check, stream, &counts),
    }
}

fn exps(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| math::exp(*log)).collect()
}

fn martingales(
    case: &Case<'_>,
    check: &mut Check<'_>,
    stream: Stream<'_>,
    values: &[f64],
    counts: &[usize],
) -> Result<(), Stop> {
    let m = case.input.at("case")?.at("m")?.number()?;
    for name in ["stream", "m"] {
        check.informative(&case.expected.at(name)?, "what goes in");
    }
    let (abs, rel) = (allowed(case, "lambda_abs")?, allowed(case, "mart_rel")?);
    for (name, bets) in [
        ("lambda_predmix_eb_alpha.05", stream.plugin_bets(1.0 / 0.05)),
        ("lambda_aKelly", stream.agrapa_bets(m, 1.0)),
        ("lambda_LBOW_raw_untruncated", stream.lower_bound_bets(m)),
    ] {
        absolute(
            check,
            &case.expected.at(name)?,
            &at_counts(&bets, counts),
            abs,
        )?;
    }
    let one = stream.capital(&stream.plugin_bets(1.0 / 0.05), m, 0.5, None);
    let two = stream.capital(&stream.plugin_bets(2.0 / 0.05), m, 0.5, None);
    let (up, down) = (exps(&two.up), exps(&two.down));
    let pairs = || up.iter().zip(&down);
    let agrapa = stream.ln_wealth(&stream.agrapa_bets(m, 0.9), m);
    debug_assert_eq!(values.len(), up.len(), "one wealth for each value");
    for (name, wealth) in [
        ("mart_predmix_theta1_c.5", exps(&one.up)),
        ("mart_predmix_theta0_c.5", exps(&one.down)),
        (
            "mart_hedged_max_theta.5_c.5",
            pairs().map(|(up, down)| 0.5 * up.max(*down)).collect(),
        ),
        (
            "mart_hedged_convex_theta.5_c.5",
            pairs().map(|(up, down)| 0.5 * (up + down)).collect(),
        ),
        ("mart_aKelly_theta1_c.9", exps(&agrapa)),
        ("mart_grid_kelly_D20_theta1", exps(&stream.grid(m, 20))),
    ] {
        relative(
            check,
            &case.expected.at(name)?,
            &at_counts(&wealth, counts),
            rel,
        )?;
    }
    Ok(())
}

/// Compares both ends of a sequence at some counts.
pub(super) fn ends(
    check: &mut Check<'_>,
    expected: &Node<'_>,
    found: &[(f64, f64)],
    counts: &[usize],
    abs: f64,
) -> Result<(), Stop> {
    let low: Vec<f64> = found.iter().map(|(low, _)| *low).collect();
    let high: Vec<f64> = found.iter().map(|(_, high)| *high).collect();
    absolute(check, &expected.at("lower")?, &at_counts(&low, counts), abs)?;
    absolute(
        check,
        &expected.at("upper")?,
        &at_counts(&high, counts),
        abs,
    )
}

fn sequences(
    case: &Case<'_>,
    check: &mut Check<'_>,
    stream: Stream<'_>,
    counts: &[usize],
) -> Result<(), Stop> {
    for name in ["stream", "breaks"] {
        check.informative(&case.expected.at(name)?, "what goes in");
    }
    let abs = 2.0 / case.input.at("case")?.at("breaks")?.number()?;
    let expected = |name: &str| case.expected.at(name);
    for (name, found) in [
        ("hedged_cs_alpha.05", stream.hedged(0.05, 0.5, None)),
        ("hedged_cs_alpha.01", stream.hedged(0.01, 0.5, None)),
        ("dKelly_cs_D10_alpha.05", stream.mixture(0.05, 10)),
    ] {
        ends(check, &expected(name)?, &found, counts, abs)?;
    }
    let lower = stream.lower(0.05, 0.5);
    let node = expected("betting_lower_cs_alpha.05")?;
    absolute(check, &node, &at_counts(&lower, counts), abs)?;
    let bernstein = stream.empirical_bernstein(0.05, Bernstein::Lower);
    let lower: Vec<f64> = bernstein.iter().map(|(low, _)| *low).collect();
    let node = expected("predmix_empbern_lower_cs_alpha.05")?;
    absolute(check, &node, &at_counts(&lower, counts), abs)?;
    check.informative(
        &expected("betting_ci_alpha.05")?,
        "an interval for one fixed size, which no gate reports and whose bets the file does not give",
    );
    Ok(())
}

fn without_replacement(
    case: &Case<'_>,
    check: &mut Check<'_>,
    stream: Stream<'_>,
    counts: &[usize],
) -> Result<(), Stop> {
    let input = case.input.at("case")?;
    for name in ["population", "N", "x_drawn", "population_mean", "m"] {
        check.informative(&case.expected.at(name)?, "what goes in");
    }
    let (m, units) = (input.at("m")?.number()?, input.at("N")?.count()? as u64);
    let (abs, rel) = (allowed(case, "lambda_abs")?, allowed(case, "mart_rel")?);
    let capital = stream.capital(&stream.plugin_bets(1.0 / 0.05), m, 0.5, Some(units));
    let node = case.expected.at("mu_t")?;
    absolute(check, &node, &at_counts(&capital.nulls, counts), abs)?;
    for (name, wealth) in [
        ("mart_predmix_theta1_c.5_WoR", &capital.up),
        ("mart_predmix_theta0_c.5_WoR", &capital.down),
    ] {
        // The peer's capital against the point null is infinite, null here, where a one-sided null goes on.
        let node = case.expected.at(name)?;
        let got = at_counts(&exps(wealth), counts);
        check.count_of(&node, got.len());
        for (element, value) in node.elements()?.iter().zip(got) {
            if element.is_null() {
                check.informative(element, "the peer's point null is impossible here");
            } else {
                check.within(element, value, None, Some(rel))?;
            }
        }
    }
    let logical = stream.logical(units);
    ends(
        check,
        &case.expected.at("logical_cs")?,
        &logical,
        counts,
        abs,
    )?;
    let hedged = case.expected.at("hedged_cs_WoR_alpha.05")?;
    check.informative(&hedged.at("breaks")?, "what goes in");
    let grid = 2.0 / hedged.at("breaks")?.number()?;
    ends(
        check,
        &hedged,
        &stream.hedged(0.05, 0.5, Some(units)),
        counts,
        grid,
    )
}
