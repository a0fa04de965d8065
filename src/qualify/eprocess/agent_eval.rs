//! Vectors of `agent-eval`: the wealth process, the paired gate, snapshots, decisions over cells, the generator.

use clover_stats::eprocess::compat;
use clover_stats::eprocess::compat::Decision;
use clover_stats::eprocess::compat::MAX_BET;
use clover_stats::eprocess::compat::PairedGate;
use clover_stats::eprocess::compat::PairedGateOptions;
use clover_stats::eprocess::compat::Snapshot;
use clover_stats::eprocess::mulberry::Mulberry32;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use crate::eprocess::absolute;
use crate::eprocess::allowed;
use clover_workflow::peer_manifest;

/// A member's number, where it is.
fn maybe(node: &Node<'_>, name: &str) -> Result<Option<f64>, Stop> {
    node.maybe(name).map(|node| node.number()).transpose()
}

fn maybe_count(node: &Node<'_>, name: &str) -> Result<Option<u64>, Stop> {
    let count = node.maybe(name).map(|node| node.count()).transpose()?;
    Ok(count.map(|count| count as u64))
}

fn as_count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Compares a count that may be null.
fn optional(check: &mut Check<'_>, expected: &Node<'_>, got: Option<u64>) -> Result<(), Stop> {
    match got {
        Some(n) if !expected.is_null() => check.count(expected, as_count(n)),
        None if expected.is_null() => check.maybe(expected, None),
        _ => {
            check.fail(expected, format!("found {got:?}"));
            Ok(())
        }
    }
}

/// `agent_eval_core`: bets, wealth and the latch, step by step; inputs that must be refused.
///
/// # Errors
/// [`Stop`].
pub fn core(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = case.input.at("case")?;
    let parameters = input.at("params")?;
    let mut process = compat::Process::new(
        maybe(&parameters, "alpha")?.unwrap_or(0.05),
        maybe(&parameters, "maxBet")?.unwrap_or(MAX_BET),
        maybe(&parameters, "nullMean")?.unwrap_or(0.5),
    )
    .map_err(refused)?;
    if case.input.at("list")?.text()? == "invalid" {
        process.push(input.at("x")?.number()?).map_err(refused)?;
        return Ok(());
    }
    let (rel, abs) = (allowed(case, "wealth_rel")?, allowed(case, "lambda_abs")?);
    for name in ["id", "note", "params", "x", "step_columns", "record_every"] {
        check.informative(&case.expected.at(name)?, "what goes in");
    }
    let steps = case.expected.at("steps")?.elements()?;
    let mut next = steps.iter();
    let every = input.at("record_every")?.count()?;
    for (n, x) in (1..).zip(input.at("x")?.numbers()?) {
        let bet = process.push(x).map_err(refused)?;
        if n % every != 0 {
            continue;
        }
        let Some(step) = next.next() else { continue };
        check.count(&step.index(0)?, n)?;
        check.within(&step.index(1)?, bet, Some(abs), None)?;
        check.within(&step.index(2)?, process.wealth(), None, Some(rel))?;
        check.flag(&step.index(3)?, process.decided_at().is_some())?;
    }
    compare_process(check, &case.expected.at("final")?, &process, rel)
}

fn compare_process(
    check: &mut Check<'_>,
    expected: &Node<'_>,
    process: &compat::Process,
    rel: f64,
) -> Result<(), Stop> {
    let moments = process.moments();
    check.count(&expected.at("n")?, as_count(moments.n))?;
    check.within(&expected.at("wealth")?, process.wealth(), None, Some(rel))?;
    check.flag(&expected.at("decided")?, process.decided_at().is_some())?;
    check.within(&expected.at("sumX")?, moments.sum, None, Some(rel))?;
    check.within(&expected.at("varSum")?, moments.squares, None, Some(rel))?;
    if let Some(threshold) = expected.maybe("threshold") {
        check.within(&threshold, process.threshold(), None, Some(rel))?;
    }
    match expected.at("decidedAtN") {
        Ok(at) => optional(check, &at, process.decided_at()),
        // A snapshot leaves it out.
        Err(_) => Ok(()),
    }
}

/// The options of a gate, with what a manifest binds; a manifest whose hash does not hold is refused.
fn options(case: &Node<'_>) -> Result<PairedGateOptions, Stop> {
    let given = case.at("options")?;
    let registration = match case.maybe("manifest") {
        Some(manifest) => {
            let read = peer_manifest::read(&manifest.json()).map_err(refused)?;
            Some(read.registration)
        }
        None => None,
    };
    Ok(PairedGateOptions {
        alpha: maybe(&given, "alpha")?,
        max_bet: maybe(&given, "maxBet")?,
        min_n: maybe_count(&given, "minN")?,
        max_n: maybe_count(&given, "maxN")?,
        scale: maybe(&given, "scale")?,
        registration,
    })
}

/// `agent_eval_gate`: wealth and decisions after every delta, what is thrown, what is refused at the start.
///
/// # Errors
/// [`Stop`].
pub fn gate(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (case.input.at("case")?, &case.expected);
    let rel = allowed(case, "eValue_rel")?;
    for name in [
        "id",
        "note",
        "options",
        "manifest",
        "deltas",
        "observation_columns",
    ] {
        check.informative(&expected.at(name)?, "what goes in");
    }
    let refusal = expected.at("constructor_error")?;
    let opened = options(&input).and_then(|options| PairedGate::new(&options).map_err(refused));
    let mut gate = match opened {
        Ok(gate) => gate,
        Err(Stop::Refused(_)) if !refusal.is_null() => {
            return refused_gate(check, expected);
        }
        Err(stop) => return Err(stop),
    };
    if !refusal.is_null() {
        check.fail(&refusal, "a refusal was expected".to_owned());
    }
    let rows = expected.at("observations")?.elements()?;
    let (mut promoted, mut margin, mut thrown) = (None, f64::INFINITY, None);
    for (at, delta) in input.at("deltas")?.numbers()?.into_iter().enumerate() {
        let Ok(decision) = gate.push(delta) else {
            thrown = Some(at);
            break;
        };
        let (n, wealth) = (gate.process().moments().n, gate.process().wealth());
        let Some(row) = rows.get(at) else { continue };
        check.count(&row.index(0)?, as_count(n))?;
        check.within(&row.index(1)?, wealth, None, Some(rel))?;
        check.text(&row.index(2)?, decision.as_str())?;
        if decision == Decision::Promote && promoted.is_none() {
            promoted = Some(n);
        }
        if n >= gate.min_n() {
            let threshold = gate.process().threshold();
            margin = margin.min((wealth - threshold).abs() / threshold);
        }
    }
    check.informative(&refusal, "no error");
    let at = expected.at("thrown")?;
    match (thrown, at.is_null()) {
        (None, true) => check.maybe(&at, None)?,
        (Some(index), false) => {
            check.count(&at.at("at_delta_index")?, index)?;
            check.informative(&at.at("message")?, "wording");
        }
        _ => check.fail(&at, format!("thrown at {thrown:?}")),
    }
    optional(check, &expected.at("first_promote_n")?, promoted)?;
    let node = expected.at("min_rel_margin_to_threshold")?;
    check.within(&node, margin, Some(rel), None)?;
    let last = expected.at("final")?;
    check.text(&last.at("decision")?, gate.decision().as_str())?;
    let null = gate.process().null_mean();
    check.within(&last.at("nullMean")?, null, None, Some(rel))?;
    compare_process(check, &last, gate.process(), rel)
}

/// A gate that was not opened: nothing came of it.
fn refused_gate(check: &mut Check<'_>, expected: &Node<'_>) -> Result<(), Stop> {
    check.informative(
        &expected.at("constructor_error")?,
        "wording; that it is refused was compared",
    );
    for name in ["thrown", "first_promote_n", "final"] {
        check.maybe(&expected.at(name)?, None)?;
    }
    check.count_of(&expected.at("observations")?, 0);
    let margin = expected.at("min_rel_margin_to_threshold")?;
    check.number(&margin, f64::INFINITY)
}

/// A snapshot; one that cannot be a state is refused by its shape.
fn snapshot(node: &Node<'_>) -> Result<Snapshot, Stop> {
    let none = || Stop::Refused("not a state".to_owned());
    let decision = match node.at("decision")?.text()? {
        "continue" => Decision::Continue,
        "promote" => Decision::Promote,
        "undecided-at-maxN" => Decision::Undecided,
        _ => return Err(none()),
    };
    let number = |name: &str| node.at(name)?.number();
    let decided_at = maybe_count(node, "decidedAtN")?;
    let alpha = number("alpha")?;
    let latched = node.at("decided")?.flag()? == decided_at.is_some();
    let threshold = (number("threshold")? - 1.0 / alpha).abs() <= 0.0;
    if !latched || !threshold {
        return Err(none());
    }
    Ok(Snapshot {
        alpha,
        decided_at,
        decision,
        max_bet: number("maxBet")?,
        n: node.at("n")?.count().map_err(|_| none())? as u64,
        null_mean: number("nullMean")?,
        squares: number("varSum")?,
        sum: number("sumX")?,
        wealth: number("wealth")?,
    })
}

fn compare_snapshot(
    check: &mut Check<'_>,
    expected: &Node<'_>,
    gate: &PairedGate,
    rel: f64,
) -> Result<(), Stop> {
    let found = gate.snapshot();
    check.text(&expected.at("decision")?, found.decision.as_str())?;
    for (name, value) in [
        ("alpha", found.alpha),
        ("maxBet", found.max_bet),
        ("nullMean", found.null_mean),
    ] {
        check.within(&expected.at(name)?, value, None, Some(rel))?;
    }
    compare_process(check, expected, gate.process(), rel)
}

/// `agent_eval_resume`: a snapshot goes on only if replaying the deltas gives it; all others are refused, the forged one
/// that the peer accepts among them.
///
/// # Errors
/// [`Stop`].
pub fn resume(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    // The file states no tolerance; its README gives 1e-12 relative for wealth.
    let rel = 1e-12;
    let input = case.input.at("case")?;
    let file = case.input.at("file")?;
    let options = options(&file)?;
    let deltas = file.at("deltas")?.numbers()?;
    let from = input.at("snapshot")?;
    if case.input.at("list")?.text()? == "snapshots" {
        let claimed = snapshot(&from)?;
        let n = usize::try_from(claimed.n).unwrap_or(usize::MAX);
        let before = deltas.get(..n).unwrap_or(&deltas);
        let resumed = PairedGate::resume(&options, &claimed, before);
        if case.expected.maybe("error").is_some() {
            resumed.map_err(refused)?;
            return Ok(());
        }
        let forged = resumed.is_err();
        check.flag_of(
            &case.expected.at("label")?,
            forged,
            "a forged snapshot is refused",
        );
        check.informative(&case.expected.at("snapshot")?, "what goes in");
        return Ok(());
    }
    let k = input.at("k")?.count()?;
    check.count(&case.expected.at("k")?, k)?;
    let mut gate = PairedGate::new(&options).map_err(refused)?;
    for delta in &deltas[..k.min(deltas.len())] {
        gate.push(*delta).map_err(refused)?;
    }
    compare_snapshot(check, &case.expected.at("snapshot")?, &gate, rel)?;
    // What the peer wrote agrees to its last bit, or within rounding; ours is resumed.
    let mut gate = PairedGate::resume(&options, &gate.snapshot(), &deltas[..k]).map_err(refused)?;
    for delta in &deltas[k..] {
        gate.push(*delta).map_err(refused)?;
    }
    compare_snapshot(check, &case.expected.at("final")?, &gate, rel)?;
    let last = case.expected.at("last")?;
    check.text(&last.at("decision")?, gate.decision().as_str())?;
    check.within(
        &last.at("eValue")?,
        gate.process().wealth(),
        None,
        Some(rel),
    )?;
    check.count(&last.at("n")?, as_count(gate.process().moments().n))?;
    check.informative(&last.at("reason")?, "wording");
    Ok(())
}

/// `agent_eval_decide`: cells in the order of their ids, shuffled, as one stream.
///
/// # Errors
/// [`Stop`].
pub fn decide(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (case.input.at("case")?, &case.expected);
    let rel = allowed(case, "wealth_rel")?;
    for name in ["id", "note", "options", "manifest", "cells"] {
        check.informative(&expected.at(name)?, "what goes in");
    }
    let mut cells = Vec::new();
    for cell in input.at("cells")?.elements()? {
        let id = format!("{}:{}", cell.at("s")?.text()?, cell.at("r")?.count()?);
        let delta = cell.at("cand")?.number()? - cell.at("base")?.number()?;
        cells.push((id, delta));
    }
    cells.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
    let mean = cells.iter().map(|(_, delta)| delta).sum::<f64>() / cells.len() as f64;
    let seed = maybe_count(&input.at("options")?, "shuffleSeed")?.unwrap_or(1337);
    let seed = i64::try_from(seed).unwrap_or(0);
    Mulberry32::new(seed).shuffle(&mut cells);
    let order = expected.at("shuffled_order")?;
    check.count_of(&order, cells.len());
    for (node, (id, _)) in order.elements()?.iter().zip(&cells) {
        check.text(node, id)?;
    }
    let mut gate = PairedGate::new(&options(&input)?).map_err(refused)?;
    for (_, delta) in &cells {
        if gate.push(*delta).map_err(refused)? != Decision::Continue {
            break;
        }
    }
    let (decision, status) = match gate.decision() {
        Decision::Promote => ("ship", "pass"),
        Decision::Undecided => ("hold", "fail"),
        Decision::Continue => ("need_more_work", "not_evaluated"),
    };
    check.text(&expected.at("decision")?, decision)?;
    check.text(&expected.at("status")?, status)?;
    check.count(&expected.at("n")?, as_count(gate.process().moments().n))?;
    check.within(
        &expected.at("wealth")?,
        gate.process().wealth(),
        None,
        Some(rel),
    )?;
    check.within(&expected.at("meanDelta")?, mean, None, Some(rel))?;
    check.count(&expected.at("pairedN")?, cells.len())
}

/// `agent_eval_headline`: the 200 streams of one effect, every decision, count and wealth, and their summary.
///
/// # Errors
/// [`Stop`].
pub fn headline(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let rel = 1e-12;
    let null = case.input.at("list")?.text()? == "H0";
    let file = case.input.at("file")?;
    let options = PairedGateOptions {
        scale: Some(1.0),
        ..options(&file)?
    };
    let (mut stops, mut promoted) = (Vec::new(), Vec::new());
    for (s, row) in (1_i64..).zip(case.expected.elements()?) {
        let mut generator = Mulberry32::new(s * if null { 7919 } else { 104_729 });
        let mut gate = PairedGate::new(&options).map_err(refused)?;
        while gate.decision() == Decision::Continue {
            let noise = generator.uniform() * 2.0 - 1.0;
            let delta = if null { noise * 0.9 } else { 0.2 + noise * 0.6 };
            gate.push(delta).map_err(refused)?;
        }
        let n = as_count(gate.process().moments().n);
        check.count(&row.index(0)?, usize::try_from(s).unwrap_or(0))?;
        check.text(&row.index(1)?, gate.decision().as_str())?;
        check.count(&row.index(2)?, n)?;
        check.within(&row.index(3)?, gate.process().wealth(), None, Some(rel))?;
        stops.push(n);
        if gate.decision() == Decision::Promote {
            promoted.push(usize::try_from(s).unwrap_or(0));
        }
    }
    stops.sort_unstable();
    let summary = file.at("summary")?;
    let share = promoted.len() as f64 / stops.len() as f64;
    if null {
        check.within(&summary.at("H0_false_promote")?, share, None, Some(rel))?;
        return check.counts(&summary.at("H0_promote_seeds")?, &promoted);
    }
    let at = |place: usize| stops.get(place).copied().unwrap_or(0);
    for (name, count) in [
        ("effect_median_index100", at(100)),
        ("effect_p90_index179_nearest_rank", at(179)),
        ("effect_index180", at(180)),
        ("effect_min", at(0)),
        ("effect_max", at(stops.len().saturating_sub(1))),
        ("undecided", stops.len() - promoted.len()),
    ] {
        check.count(&summary.at(name)?, count)?;
    }
    let mean = stops.iter().sum::<usize>() as f64 / stops.len() as f64;
    check.within(&summary.at("effect_mean")?, mean, None, Some(rel))
}

/// `agent_eval_manifest`: content digests, and that a changed manifest does not verify.
///
/// # Errors
/// [`Stop`].
pub fn manifest(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let text = case.input.at("case")?.at("manifest")?.json();
    let digest = peer_manifest::content_digest(&text)
        .map_err(refused)?
        .to_hex();
    let manifest = case.expected.at("manifest")?;
    check.text(&manifest.at("contentHash")?, &digest)?;
    check.informative(&manifest, "what goes in");
    check.text(&case.expected.at("legacy_content_digest")?, &digest)?;
    check.flag(
        &case.expected.at("verifies")?,
        peer_manifest::read(&text).is_ok(),
    )?;
    let tampered = text.replacen("0.05", "0.5", 1);
    let verifies = tampered == text || peer_manifest::read(&tampered).is_ok();
    check.flag(&case.expected.at("tampered_verifies")?, verifies)
}

/// `prng_mulberry32`: doubles exactly, permutations.
///
/// # Errors
/// [`Stop`].
pub fn mulberry32(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let seed = case.input.at("case")?.at("seed")?.number()?;
    #[expect(clippy::cast_possible_truncation, reason = "seeds are small integers")]
    let mut generator = Mulberry32::new(seed as i64);
    check.within(&case.expected.at("seed")?, seed, None, None)?;
    if let Some(first) = case.expected.maybe("first") {
        let got: Vec<f64> = first
            .elements()?
            .iter()
            .map(|_| generator.uniform())
            .collect();
        return absolute(check, &first, &got, f64::MIN_POSITIVE);
    }
    let n = case.input.at("case")?.at("n")?.count()?;
    let mut order: Vec<usize> = (0..n).collect();
    generator.shuffle(&mut order);
    check.count(&case.expected.at("n")?, n)?;
    check.counts(&case.expected.at("order")?, &order)
}
