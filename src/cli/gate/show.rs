//! `clover gate show`: a gate's whole life on one page, read from the log again.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::ShowArgs;
use crate::cli::gate::charts;
use crate::cli::gate::estimate;
use crate::cli::gate::gate_id;
use crate::cli::gate::outcome_of;
use crate::cli::gate::plan;
use crate::cli::gate::refusals;
use crate::cli::gate::run::effect;
use crate::cli::gate::run::weakest;
use crate::cli::home;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Direction;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Prediction;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::drifts;
use crate::projection::gates;
use crate::projection::gates::Gates;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::orders::Orders;
use crate::report::spark;
use crate::session::gate::check;
use crate::session::gate::check::known;
use crate::view::View;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::evidence::Known;
use crate::workflow::gates::replay;
use crate::workflow::gates::replay::Life;
use crate::workflow::gates::replay::Path;

/// Looks that the page lists; more are counted.
const LOOKS_MAX: usize = 12;
/// Blocks of a line, so that what they span fits beside them.
const SPARKS: usize = 60;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let of = known(state, &id)?;
    let life = replay::read(&ledger, &id, of, state.size)?;
    let path = replay::path(of, &life).unwrap_or_default();
    let drawn = charts::svg(of, (&life, &path), &args.chart)?;
    if let Some(file) = &args.svg {
        ambient::replace(&ctx.path(file), drawn.as_bytes(), false)?;
    }
    let checked = check::same(&id, of, &life);
    let same = checked.is_ok();
    let now = state.keyring.recorded_at;
    let grade = now.map(|now| gates::graded(of.gate, of.record, state, now));
    let mut answer = View::untyped(String::new(), Value::Null);
    plan::rows(&mut answer, of, &id);
    answer.source(ui::wrapped_pairs(&order(state, of)));
    observed(&mut answer, of, &life, same);
    strata_table(&mut answer, of, &life);
    looks(&mut answer, of, &life);
    sparks(&mut answer, of, &path);
    ending(&mut answer, state, (&id, of), now);
    promotions(&mut answer, &ledger, (state, &id))?;
    if let Some(grade) = grade {
        answer.line(format!("grade now: {}", word(&json!(grade))));
    }
    differences(&mut answer, of);
    *answer.facts_mut() = data(state, (&id, of), (&life, &path), same);
    answer.facts_mut()["grade"] = json!(grade);
    let stale = drifts::stale_gate(state, &id).filter(|_| of.gate.decided.is_none());
    answer.facts_mut()["stale"] = json!(
        stale
            .as_ref()
            .map(|of| { json!({"judge": of.judge, "check_seq": of.check_seq}) })
    );
    checked?;
    if let Some(stale) = stale {
        let (judge, seq) = (&stale.judge, stale.check_seq);
        answer.source(ui::wrapped(&format!(
            "STALE: judge {judge} failed its drift check at seq {seq}; nothing is observed, looked at or decided before a deviation on {} says how that is handled",
            drifts::JUDGE_PATH
        )));
        return Ok(answer.with_next(refusals::deviation(&id)));
    }
    let next = match &of.gate.look {
        _ if may_promote(state, &id, of) => {
            format!("clover gate promote {id}", id = shell::word(&id))
        }
        _ if of.gate.decided.is_some() => format!("clover prereg diff {id}", id = shell::word(&id)),
        Some(look) if gates::outcome_of(look.standing).is_some() => {
            format!("clover gate decide {id}", id = shell::word(&id))
        }
        _ if check::waits(of) => format!("clover gate continue {id}", id = shell::word(&id)),
        _ if of.record.units <= of.gate.n => {
            format!("clover exposure open {id}", id = shell::word(&id))
        }
        _ => format!("clover gate observe {id} --all", id = shell::word(&id)),
    };
    Ok(answer.with_next(next))
}

/// Gates of the same candidate in no family of this one: whoever registers many may find one that holds by luck.
fn elsewhere(state: &State, id: &ManifestId, of: Known<'_>) -> Vec<ManifestId> {
    let Some(own) = of.record.in_force().map(|version| &version.manifest) else {
        return Vec::new();
    };
    let family = |manifest: &Manifest| Some(manifest.multiplicity.as_ref()?.family.clone());
    let all = state.fold::<Manifests>().by_id.iter();
    let others = all.filter(|(other, record)| {
        let manifest = record.versions.last().map(|version| &version.manifest);
        *other != id
            && manifest.is_some_and(|manifest| {
                let alone = family(manifest).is_none() || family(manifest) != family(own);
                manifests::is_candidate_shared(manifest, own) && alone
            })
    });
    others.map(|(other, _)| other.clone()).collect()
}

/// Whether its claim was decided to hold, and nothing was promoted on it yet.
fn may_promote(state: &State, id: &ManifestId, of: Known<'_>) -> bool {
    let gates = state.fold::<Gates>();
    let promoted = gates.promotions.iter().any(|one| one.gates.contains(id));
    let kind = of
        .record
        .in_force()
        .map(|version| version.manifest.hypothesis.kind);
    kind.is_some_and(gates::favours)
        && !promoted
        && of.gate.decided.is_some_and(|one| gates::holds(one.outcome))
}

/// A word of an enum as it stands in events.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or("none").to_owned()
}

fn order(state: &State, of: Known<'_>) -> Vec<(&'static str, String)> {
    let mut rows = vec![("registered", entries(of))];
    if let Some((_, drawn)) = state.fold::<Orders>().of(of.record) {
        rows.push((
            "order",
            format!(
                "drawn at seq {} from checkpoint {} {}",
                drawn.seq,
                drawn.beacon.size,
                drawn.beacon.root.0.to_base64()
            ),
        ));
    }
    rows.push(("opened", format!("seq {}", of.gate.opened_seq)));
    if let Some(parent) = &of.gate.parent {
        rows.push(("continues", parent.to_string()));
    }
    let exposed = of.record.exposed.iter();
    let exposed: Vec<_> = exposed
        .map(|(units, seq)| format!("{units} by seq {seq}"))
        .collect();
    let text = if exposed.is_empty() {
        "nothing yet".to_owned()
    } else {
        exposed.join(", ")
    };
    rows.push(("exposed", text));
    rows
}

fn entries(of: Known<'_>) -> String {
    let versions = of.record.versions.iter().map(|one| {
        let agreed = one.countersigned_seq;
        let agreed = agreed.map_or(String::new(), |seq| format!(", countersigned at {seq}"));
        format!(
            "version {} at seq {}{agreed}",
            one.manifest.version, one.seq
        )
    });
    versions.collect::<Vec<_>>().join("; ")
}

fn observed(answer: &mut View, of: Known<'_>, life: &Life, same: bool) {
    let span = match (life.observed.first(), life.observed.last()) {
        (Some((first, _)), Some((last, _))) => format!(", seq {first} to {last}"),
        _ => String::new(),
    };
    let missing = life.observed.iter().flat_map(|(_, said)| &said.readings);
    let missing: usize = missing
        .map(|one| {
            one.baseline_missing.as_ref().map_or(0, Vec::len)
                + one.candidate_missing.as_ref().map_or(0, Vec::len)
        })
        .sum();
    let replayed = if same { "identical" } else { "DIFFERENT" };
    answer.source(ui::pairs(&[
        (
            "observed",
            format!("{} units{span}, {missing} draws missing", of.gate.n),
        ),
        ("replay", format!("{replayed}: state {}", life.state_digest)),
    ]));
}

/// What was predicted of a stratum, and what came of it so far.
struct Shown<'a> {
    predicted: &'a Prediction,
    /// Units that were observed.
    n: u64,
    /// Those of them of which draws are missing.
    missing: u64,
    /// Mean difference of the others, candidate less baseline.
    mean: Option<f64>,
}

fn strata<'a>(of: Known<'a>, life: &Life) -> Vec<Shown<'a>> {
    let known = of.gate.test.control_variate.as_deref().unwrap_or_default();
    let metric = of
        .record
        .in_force()
        .and_then(|one| one.manifest.metric.as_ref());
    let draws = metric.map_or(1, |metric| metric.repeats.value().max(1));
    let one = |(at, predicted): (usize, &'a Prediction)| {
        let its = life.observed.iter().map(|(_, said)| said);
        let its = its.filter(|said| of.gate.stratum_of(said) == Some(at));
        let readings = its.filter_map(|said| said.readings.first());
        let (mut n, mut whole, mut sum) = (0_u64, 0_u64, 0_i128);
        for reading in readings {
            n += 1;
            // What stands for a missing draw is no difference that anybody measured.
            if gates::absent(reading) == 0 {
                whole += 1;
                sum += i128::from(reading.delta_micro.value());
            }
        }
        Shown {
            predicted,
            n,
            missing: n - whole,
            mean: (whole > 0).then(|| sum as f64 / 1e6 / (whole * draws) as f64),
        }
    };
    known.iter().enumerate().map(one).collect()
}

fn strata_table(answer: &mut View, of: Known<'_>, life: &Life) {
    let strata = strata(of, life);
    if strata.is_empty() {
        return;
    }
    let rows = strata.iter().map(|of| {
        let mean = of.mean.map(|mean| format!("{mean:+.6}"));
        vec![
            of.predicted.stratum.to_string(),
            of.predicted.units.to_string(),
            format!("{:+.6}", of.predicted.predicted_micro.value() as f64 / 1e6),
            of.n.to_string(),
            of.missing.to_string(),
            mean.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let head = [
        "stratum",
        "units",
        "predicted",
        "observed",
        "draws missing",
        "mean difference",
    ];
    answer.source(ui::table(&head, rows.collect()));
    answer.line("differences: candidate less baseline, of units whose draws are all there");
}

fn looks(answer: &mut View, of: Known<'_>, life: &Life) {
    let metric = of
        .record
        .in_force()
        .and_then(|one| one.manifest.metric.as_ref());
    let is_less_better = metric.is_some_and(|metric| metric.direction == Direction::Decrease);
    if life.looks.is_empty() {
        return answer.line("no looks yet");
    }
    let skipped = life.looks.len().saturating_sub(LOOKS_MAX);
    let rows = life.looks.iter().skip(skipped).map(|(seq, look)| {
        vec![
            seq.to_string(),
            look.n.to_string(),
            format!("{:.4}", look.log_e.value()),
            format!("{:.6}", look.p.value()),
            effect(look.cs_lo_micro.value(), look.cs_hi_micro.value()),
            word(&json!(look.standing)),
        ]
    });
    let head = ["look", "units", "log e", "p", "mean effect", "standing"];
    answer.source(ui::table(&head, rows.collect()));
    if is_less_better {
        answer.line("less is better: an effect above 0 is a candidate below its baseline");
    }
    if skipped > 0 {
        answer.line(format!("{skipped} earlier looks"));
    }
}

/// The path of the gate as lines of blocks.
fn sparks(answer: &mut View, of: Known<'_>, path: &Path) {
    let wealth: Vec<f64> = path.wealth.iter().map(|(_, log)| *log).collect();
    let bar = design::ln_stop(of.gate.test.alpha_micro.value(), of.family);
    let least = wealth.iter().copied().fold(0.0, f64::min).max(-bar);
    if !wealth.is_empty() {
        let line = spark::line(&wealth, (least, bar));
        answer.line(format!(
            "wealth    {line}  {least:.2} to the end at {bar:.2}"
        ));
    }
    // As many as of the wealth, the last of each stretch.
    let step = path.interval.len().div_ceil(SPARKS).max(1);
    let places = || path.interval.rchunks(step).rev();
    let ends = |end: fn(&(u64, i64, i64)) -> i64| {
        let last = places().filter_map(<[_]>::last);
        last.map(|place| end(place) as f64 / 1e6)
            .collect::<Vec<_>>()
    };
    let (highs, lows) = (ends(|place| place.2), ends(|place| place.1));
    let least = lows.iter().copied().fold(0.0, f64::min);
    let most = highs.iter().copied().fold(0.0, f64::max);
    if !lows.is_empty() {
        for (name, values) in [("effect <", highs), ("effect >", lows)] {
            let line = spark::line(&values, (least, most));
            answer.line(format!("{name}  {line}  {least:+.3} to {most:+.3}"));
        }
    }
}

fn ending(
    answer: &mut View,
    state: &State,
    (id, of): (&ManifestId, Known<'_>),
    now: Option<Timestamp>,
) {
    if let Some(look) = &of.gate.look {
        let (word, _) = outcome_of(of.gate);
        answer.line(format!(
            "standing: {} ({word})",
            check::meaning(look.standing)
        ));
        let parts = weakest(of.gate, look);
        if !parts.is_empty() {
            let text = format!("log e {:.4}{parts}", look.log_e.value());
            answer.source(ui::wrapped(&text));
        }
    }
    let others = elsewhere(state, id, of);
    if let Some(first) = others.first() {
        let (one, more) = (others.len() == 1, others.len() - 1);
        let more = if one {
            String::new()
        } else {
            format!(" and {more} more")
        };
        answer.source(ui::wrapped(&format!(
            "its candidate is tested outside its family too, which its level does not count: {first}{more}"
        )));
    }
    match of.gate.decided {
        None => answer.line("not decided"),
        Some(decided) => answer.line(format!(
            "decided at seq {}: {} after {} units, {}",
            decided.seq,
            word(&json!(decided.outcome)),
            decided.n,
            word(&json!(decided.class))
        )),
    }
    if let Some(found) = &of.gate.estimated {
        answer.source(estimate::words(found));
    }
    if let Some(child) = &of.gate.child {
        answer.line(format!("continued by {child}"));
    }
    if let (Some(plan), Some(now)) = (&of.record.plan, now) {
        let standing = match plan.revealed_seq {
            Some(seq) if plan.revealed_at > Some(plan.reveal_by) => {
                format!("VOID: revealed at seq {seq}, after {}", plan.reveal_by)
            }
            Some(seq) => format!("revealed at seq {seq}"),
            None if now > plan.reveal_by => format!("VOID: not revealed by {}", plan.reveal_by),
            None => format!("to be revealed by {}", plan.reveal_by),
        };
        answer.line(format!("sealed plan: {standing}"));
    }
}

/// What was promoted on the gate, as the entries say it.
fn promotions(
    answer: &mut View,
    ledger: &Ledger,
    (state, id): (&State, &ManifestId),
) -> Result<(), CliError> {
    let all = &state.fold::<Gates>().promotions;
    for one in all.iter().filter(|one| one.gates.contains(id)) {
        let revoked = one.revoked_seq;
        let revoked = revoked.map_or(String::new(), |seq| format!(", revoked at seq {seq}"));
        let read = ledger.entry(one.seq)?.map(|read| read.event.payload);
        let Some(Payload::PromotionIssued(said)) = &read else {
            continue;
        };
        let grade = word(&json!(said.grade));
        answer.line(format!("promotion at seq {}{revoked}, {grade}", one.seq));
        answer.line(format!("  of {}", said.candidate_digest));
    }
    Ok(())
}

/// What was registered at the first look against what is in force, and what was done otherwise.
fn differences(answer: &mut View, of: Known<'_>) {
    let looked = of.record.first_look.as_ref().and_then(|look| look.digest);
    let from = looked.and_then(|digest| of.record.version(digest));
    if let (Some(from), Some(to)) = (from, of.record.in_force()) {
        let changes = manifests::changes(&from.manifest, &to.manifest);
        if changes.is_empty() {
            answer.line("executed as registered at the first look");
        }
        for change in changes {
            let none = || "none".to_owned();
            let (from, to) = (
                change.from.unwrap_or_else(none),
                change.to.unwrap_or_else(none),
            );
            let text = format!(
                "changed since the first look: {} {from} to {to}",
                change.path
            );
            answer.source(ui::wrapped(&ui::escape(&text)));
        }
    }
    for one in &of.record.deviations {
        let seen = if one.outcome_seen {
            ", outcome seen"
        } else {
            ""
        };
        let text = format!(
            "deviation at seq {}{seen}: {}: {}",
            one.seq, one.rule_path, one.what
        );
        answer.source(ui::wrapped(&ui::escape(&text)));
    }
}

fn data(
    state: &State,
    (id, of): (&ManifestId, Known<'_>),
    (life, path): (&Life, &Path),
    same: bool,
) -> Value {
    // What is decided has forgotten its observations.
    let log_e = match of.gate.decided {
        Some(_) => Some(of.gate.log_e()),
        None => evidence::found(of).ok().map(|found| found.log_e),
    };
    let looks: Vec<_> = life
        .looks
        .iter()
        .map(|(seq, look)| json!({"seq": seq, "look": look}))
        .collect();
    let strata = strata(of, life).into_iter().map(|of| {
        json!({
            "stratum": of.predicted.stratum, "units": of.predicted.units,
            "predicted_micro": of.predicted.predicted_micro, "observed": of.n, "missing": of.missing,
            "mean_difference": of.mean,
        })
    });
    let order = state.fold::<Orders>().of(of.record).map(|(_, drawn)| drawn);
    let promotions: Vec<_> = state
        .fold::<Gates>()
        .promotions
        .iter()
        .filter(|one| one.gates.contains(id))
        .collect();
    json!({
        "gate": id.as_str(), "experiment": of.gate.experiment, "opened_seq": of.gate.opened_seq,
        "order": order, "exposed": of.record.exposed, "n": of.gate.n, "looks": looks, "wealth": path.wealth, "interval": path.interval,
        "decided": of.gate.decided, "estimated": of.gate.estimated, "parent": of.gate.parent, "child": of.gate.child,
        "promotions": promotions, "replay_identical": same, "state_digest": life.state_digest.to_hex(),
        "log_e_now": log_e,
        "deviations": of.record.deviations,
        "strata": strata.collect::<Vec<_>>(), "sources": of.gate.sources,
        "plan": of.record.in_force().map(|version| &version.manifest),
        "digest": of.record.in_force().map(|version| version.digest),
    })
}
