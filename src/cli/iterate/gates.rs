//! Gates on dev, and what is sealed for confirm.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::attacked;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::ground::Done;
use crate::cli::iterate::ground::number;
use crate::cli::iterate::ground::word;
use crate::cli::iterate::program::Program;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Payload;
use crate::event::payload::Role;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::rubric::PatchProposed;
use crate::event::payload::rubric::RejectStage;
use crate::ground::digest::Digest;
use crate::projection::decisions::check_reviewed;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::Hypothesis;
use crate::workflow::iterate::outcome;
use crate::workflow::iterate::record::Record;
use crate::workflow::iterate::record::Step;
use crate::workflow::predicate;
use crate::workflow::predicate::Held;

/// How a patch is reviewed.
const REVIEW: &str = "clover patch review --help";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    #[command(flatten)]
    pub program: Program,
}

pub(super) fn gate(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, &args.id)?;
    bench.only(Step::Gate)?;
    let (text, data, appended) = gate_on(ctx, &mut bench, &args.program)?;
    Ok(bench.answer(text, data, &appended))
}

/// Evaluates every patch that stands and was not judged, and rejects what a gate stops.
pub(super) fn gate_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    program: &Program,
) -> Result<Done, CliError> {
    let course = bench.take_course()?;
    let standing: Vec<PatchProposed> = bench.record.standing().into_iter().cloned().collect();
    let (mut text, mut data, mut all) = (String::new(), Vec::new(), Vec::new());
    for patch in &standing {
        let of = course.hypothesis(&bench.record, &[patch]).map_err(failed)?;
        let lack = if bench.record.is_judged(of.hash, GateSplit::Dev) {
            None
        } else {
            let (appended, lack) = evaluate(ctx, bench, &course, &of, program)?;
            all.extend(appended);
            lack
        };
        let name = patch.patch.to_string();
        text.push_str(&format!("{name}\n"));
        text.push_str(&judged(&bench.record, of.hash, GateSplit::Dev).0);
        data.push(
            json!({"patch": name, "gates": judged(&bench.record, of.hash, GateSplit::Dev).1}),
        );
        if let Some((code, words)) = bench.stopped(of.hash, GateSplit::Dev) {
            let code = if lack.is_some() {
                outcome::UNSCORED.to_owned()
            } else {
                code
            };
            let words = lack.unwrap_or(words);
            all.extend(reject(ctx, bench, patch, RejectStage::Dev, &code)?);
            text.push_str(&ui::wrapped(&ui::escape(&format!(
                "{name} rejected on dev: {words}"
            ))));
        }
    }
    bench.keep(course);
    Ok((text, json!({"patches": data}), all))
}

/// Says that a patch is rejected.
pub(super) fn reject(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    patch: &PatchProposed,
    stage: RejectStage,
    code: &str,
) -> Result<Vec<crate::ledger::Appended>, CliError> {
    let said = outcome::rejection(&bench.record, patch, (stage, code));
    bench.say(ctx, vec![said.into()])
}

/// Records the scores under a hypothesis, where a scorer's key is at hand and nothing was fitted on them yet.
fn scores(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    course: &Course,
    of: &Hypothesis,
) -> Result<Vec<crate::ledger::Appended>, CliError> {
    let mut known = bench.record.recomputed.iter();
    let is_late = bench.record.fitted_of(Some(of.hash)).is_some()
        || known.any(|one| one.said.candidate == of.hash);
    if is_late || !of.valid || !wallet::holds(ctx, bench.ledger.state(), Role::Scorer)? {
        return Ok(Vec::new());
    }
    match course.recomputed(of).map_err(failed)? {
        Ok(said) => bench.say(ctx, vec![said.into()]),
        // Gate p0 says so.
        Err(_) => Ok(Vec::new()),
    }
}

type Evaluated = (Vec<crate::ledger::Appended>, Option<String>);

/// Computes and records the gates of a hypothesis on dev, and why its rows cannot be scored if so.
fn evaluate(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    course: &Course,
    of: &Hypothesis,
    program: &Program,
) -> Result<Evaluated, CliError> {
    let mut appended = Vec::new();
    appended.extend(scores(ctx, bench, course, of)?);
    if bench.record.fitted_of(Some(of.hash)).is_none()
        && let Ok(kept) = course.fitted(of).map_err(failed)?
    {
        let event = vec![kept.event.into()];
        appended.extend(bench.say_with(ctx, event, &kept.blobs)?);
    }
    let (ran, unrecorded) = attacked::battery(ctx, bench, course, of, program)?;
    appended.extend(ran);
    let found = course.on_dev(&bench.record, of, unrecorded);
    let (gates, lack) = found.map_err(failed)?;
    let gates: Vec<Payload> = gates.into_iter().map(Payload::from).collect();
    appended.extend(bench.say(ctx, gates)?);
    Ok((appended, lack.map(|lack| lack.to_string())))
}

/// The numbers of a gate beside what they are held to.
fn lines(gate: &GateEvaluated) -> Vec<(String, String, String)> {
    let held = Held::under(&gate.thresholds, gate.thresholds.profile);
    let shown = (predicate::gate(gate.gate).show)(&gate.evidence, &held);
    shown
        .into_iter()
        .map(|one| {
            let value = one.value.map_or("-".to_owned(), number);
            (one.name, value, one.held)
        })
        .collect()
}

/// Heads of a table of gates.
const HEAD: [&str; 7] = [
    "gate",
    "asks",
    "number",
    "value",
    "held to",
    "recommended",
    "literal",
];

/// A gate in the table, a line for each of its numbers.
fn rows(of: &GateEvaluated) -> Vec<Vec<String>> {
    let (literal, recommended) = (word(of.verdicts.literal), word(of.verdicts.recommended));
    let mut lines = lines(of);
    if lines.is_empty() {
        lines.push((String::new(), String::new(), String::new()));
    }
    let each = lines.into_iter().enumerate().map(|(at, line)| {
        let or = |text: &str| if at == 0 { text } else { "" }.to_owned();
        let (name, value, held) = line;
        let asks = or(predicate::gate(of.gate).asks);
        let gate = or(of.gate.as_str());
        vec![gate, asks, name, value, held, or(recommended), or(literal)]
    });
    each.collect()
}

/// Gates of one candidate on both splits, with the entries that they stand at, where those are others.
pub(in crate::cli) fn gate_table(gates: &[(Option<u64>, GateEvaluated)]) -> String {
    let each = gates.iter().flat_map(|(seq, of)| {
        let mut rows = rows(of);
        if let Some(seq) = seq {
            rows[0][0] = format!("{} {}, seq {seq}", of.gate, of.split.as_str());
        }
        rows
    });
    ui::table(&HEAD, each.collect())
}

/// The gate table of a candidate on one split.
pub(super) fn judged(record: &Record, candidate: Digest, split: GateSplit) -> (String, Value) {
    let (mut table, mut data) = (Vec::new(), Vec::new());
    for gate in GateId::ALL {
        let Some(said) = record.gate(candidate, gate, split) else {
            continue;
        };
        let of = &said.said;
        table.extend(rows(of));
        let (literal, recommended) = (word(of.verdicts.literal), word(of.verdicts.recommended));
        let numbers: Vec<_> = (predicate::gate(gate).show)(
            &of.evidence,
            &Held::under(&of.thresholds, of.thresholds.profile),
        )
        .into_iter()
        .map(|one| json!({"name": one.name, "value": one.value, "held": one.held}))
        .collect();
        data.push(json!({
            "gate": gate.as_str(), "split": split.as_str(), "asks": predicate::gate(gate).asks, "seq": said.seq,
            "literal": literal, "recommended": recommended, "numbers": numbers, "evidence": of.evidence,
        }));
    }
    (ui::table(&HEAD, table), Value::Array(data))
}

pub(super) fn seal(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, &args.id)?;
    bench.only(Step::Seal)?;
    let (text, data, appended) = seal_on(ctx, &mut bench, &args.program)?;
    Ok(bench.answer(text, data, &appended))
}

/// What reviews the patches that would be sealed still lack, in words.
pub(super) fn waits(bench: &mut Bench) -> Result<Option<String>, CliError> {
    let standing = bench.record.standing();
    let hashes: Vec<_> = standing.iter().map(|patch| patch.patch_hash).collect();
    if check_reviewed(bench.ledger.state(), &bench.id, &hashes).is_ok() {
        return Ok(None);
    }
    let course = bench.take_course()?;
    let standing = bench.record.standing();
    let chosen = course
        .of_families(&bench.record, &standing)
        .map_err(failed)?;
    let hashes: Vec<_> = chosen.iter().map(|(patch, _)| patch.patch_hash).collect();
    bench.keep(course);
    let lacking = check_reviewed(bench.ledger.state(), &bench.id, &hashes).err();
    Ok(lacking.map(|unmet| unmet.expected))
}

/// Chooses one patch a family, judges the composite of the two best, and seals what passed.
pub(super) fn seal_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    program: &Program,
) -> Result<Done, CliError> {
    let course = bench.take_course()?;
    let standing: Vec<PatchProposed> = bench.record.standing().into_iter().cloned().collect();
    let passed: Vec<&PatchProposed> = standing.iter().collect();
    let chosen = course.of_families(&bench.record, &passed).map_err(failed)?;
    let hashes: Vec<_> = chosen.iter().map(|(patch, _)| patch.patch_hash).collect();
    if let Err(unmet) = check_reviewed(bench.ledger.state(), &bench.id, &hashes) {
        let message = format!("sealing: {unmet}");
        return Err(CliError::refused(message, REVIEW));
    }
    let mut all = Vec::new();
    let mut text = String::new();
    for patch in &standing {
        if !chosen
            .iter()
            .any(|(of, _)| of.patch_hash == patch.patch_hash)
        {
            all.extend(reject(
                ctx,
                bench,
                patch,
                RejectStage::Selection,
                outcome::OF_FAMILY,
            )?);
            text.push_str(&format!(
                "{}  not chosen: another of its family is better\n",
                patch.patch
            ));
        }
    }
    let mut hypotheses = Vec::new();
    for (patch, _) in &chosen {
        hypotheses.push(
            course
                .hypothesis(&bench.record, &[*patch])
                .map_err(failed)?,
        );
    }
    if let [(first, _), (second, _), ..] = chosen[..] {
        let of = course
            .hypothesis(&bench.record, &[first, second])
            .map_err(failed)?;
        if !bench.record.is_judged(of.hash, GateSplit::Dev) {
            all.extend(evaluate(ctx, bench, &course, &of, program)?.0);
        }
        text.push_str("composite of the two best\n");
        text.push_str(&judged(&bench.record, of.hash, GateSplit::Dev).0);
        if bench.stopped(of.hash, GateSplit::Dev).is_none() {
            hypotheses.push(of);
        }
    }
    let sealing = course.sealing(&hypotheses.iter().collect::<Vec<_>>());
    let alpha = course.ground.thresholds.alpha_micro.value() as f64 / 1e6;
    let divisor = sealing.divisor.value();
    let rows = sealing.hypotheses.iter().map(|one| {
        let names = one.patches.iter().map(|hash| name_of(&bench.record, *hash));
        vec![
            one.candidate.short().to_string(),
            names.collect::<Vec<_>>().join(" + "),
        ]
    });
    text.push_str(&ui::table(&["hypothesis", "patches"], rows.collect()));
    text.push_str(&format!(
        "alpha {} each, {} divided by {divisor}\n",
        number(alpha / divisor.max(1) as f64),
        number(alpha)
    ));
    let data = json!({"sealed": sealing.hypotheses, "divisor": divisor});
    all.extend(bench.say(ctx, vec![sealing.into()])?);
    bench.keep(course);
    Ok((text, data, all))
}

/// The name of a patch by its hash.
pub(super) fn name_of(record: &Record, hash: Digest) -> String {
    let mut all = record.proposed.iter();
    let found = all.find(|patch| patch.said.patch_hash == hash);
    found.map_or_else(
        || hash.short().to_string(),
        |patch| patch.said.patch.to_string(),
    )
}
