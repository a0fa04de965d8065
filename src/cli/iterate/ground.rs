//! Steps before candidates: fit, audit, cards, proposals.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::run;
use crate::cli::iterate::run::Asked;
use crate::cli::patch;
use crate::cli::ui;
use crate::event::payload::card::SliceClass;
use crate::event::payload::intake::SplitPart;
use crate::ground::shell;
use crate::projection::iterations::record::Record;
use crate::projection::iterations::step::Step;
use crate::stats::calibrator::Selected;
use crate::view::View;
use crate::workflow::iterate::course::Course;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ProposeArgs {
    /// The iteration
    pub id: String,
    /// Patches, YAML
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What they were written from, by digest; may repeat
    #[arg(long = "input", value_name = "DIGEST")]
    pub inputs: Vec<String>,
    /// The model that wrote them; a person did when absent
    #[arg(long, requires = "prompt_digest")]
    pub model: Option<String>,
    /// SHA-256 of the prompt that the model had
    #[arg(long, value_name = "DIGEST", requires = "model")]
    pub prompt_digest: Option<String>,
}

/// A number with six decimals at most, for people.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

fn maybe(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// Rows and labels of each part, the calibrator, its share, and the checks of labels.
pub(super) fn fitted(course: &Course, record: &Record) -> (String, Value) {
    let (loaded, ground) = (&course.loaded, &course.ground);
    let data = loaded.table.data();
    let rows = |part: SplitPart| data.parts.iter().filter(|of| **of == Some(part)).count();
    let labels = |part: SplitPart| loaded.table.labelled(part).len();
    let line = |part: SplitPart| format!("{} rows, {} labels", rows(part), labels(part));
    let mode = match ground.baseline.calibrator.selected {
        Selected::Monotone => "monotone",
        Selected::TwoStage => "two_stage",
    };
    let share = ground.uncertainty.share.share();
    let squares = ground
        .baseline
        .residuals(&loaded.table, &ground.baseline.rows);
    let squares: Vec<f64> = squares.iter().map(|residual| residual * residual).collect();
    let rmse = crate::num::math::mean(&squares).sqrt();
    let mut pairs = vec![
        ("judge", loaded.judge.to_string()),
        ("split", loaded.split.to_string()),
        ("fit", line(SplitPart::Fit)),
        ("dev", line(SplitPart::Dev)),
        (
            "confirm",
            format!("{} rows, labels unread", rows(SplitPart::Confirm)),
        ),
        (
            "evidence",
            format!("{} of {} rows", loaded.with_evidence(), loaded.table.len()),
        ),
        (
            "anchors",
            data.anchors
                .iter()
                .map(|of| format!("{} ({})", of.policy, of.scored.scores.len()))
                .collect::<Vec<_>>()
                .join(", "),
        ),
        (
            "calibrator",
            format!(
                "{mode}, {} folds, rmse {} out of fold",
                ground.baseline.folds,
                number(rmse)
            ),
        ),
        (
            "calibrator's share",
            format!(
                "{} of the variance, pause from 0.3 unless {} is in sight",
                maybe(share),
                number(ground.thresholds.eta_micro.value() as f64 / 1e6)
            ),
        ),
        ("read through", format!("seq {}", loaded.through)),
    ];
    pairs.extend(checked(record));
    let json = json!({
        "judge": loaded.judge.as_str(), "split": loaded.split.as_str(), "through_seq": loaded.through,
        "rows": {"fit": rows(SplitPart::Fit), "dev": rows(SplitPart::Dev), "confirm": rows(SplitPart::Confirm), "all": loaded.table.len()},
        "labels": {"fit": labels(SplitPart::Fit), "dev": labels(SplitPart::Dev)},
        "with_evidence": loaded.with_evidence(), "calibrator": mode, "folds": ground.baseline.folds,
        "oof_rmse": rmse, "oua_share": share, "promising_gain": ground.gain, "notes": loaded.notes,
    });
    (ui::pairs(&pairs), json)
}

/// What the checks of labels found.
fn checked(record: &Record) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    let labels_held = record.label_process.as_ref().map(|of| {
        let columns = of.said.balance.iter();
        let worst = columns
            .map(|column| column.smd.value().abs())
            .fold(0.0, f64::max);
        let orphans = of.said.orphans;
        (of.said.verdict, worst, orphans)
    });
    if let Some((verdict, worst, orphans)) = labels_held {
        pairs.push((
            "labels (L1)",
            format!(
                "{}: largest difference {} (0.1), {orphans} without a design",
                word(verdict),
                number(worst)
            ),
        ));
    }
    if let Some(of) = &record.prentice {
        pairs.push((
            "residuals (S1)",
            format!(
                "{}: F {} p {} (0.05), largest {}",
                word(of.said.verdict),
                number(of.said.f.value()),
                number(of.said.p.value()),
                of.said.top_term.as_str()
            ),
        ));
    }
    pairs
}

/// A verdict's word.
pub(super) fn word(verdict: crate::event::payload::Verdict) -> &'static str {
    use crate::event::payload::Verdict;
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "not_checked",
        Verdict::Pass => "pass",
    }
}

fn class(class: SliceClass) -> &'static str {
    match class {
        SliceClass::Green => "green",
        SliceClass::Neutral => "neutral",
        SliceClass::Risk => "risk",
    }
}

/// The slice table, and the pause if there is one.
pub(super) fn audited(record: &Record) -> (String, Value) {
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    let families = record.audited.iter().flat_map(|of| &of.said.families);
    for family in families {
        for slice in &family.slices {
            let classes = record.classified.iter().flat_map(|of| &of.said.slices);
            let mut classes =
                classes.filter(|of| of.family == family.family && of.slice == slice.slice);
            let class = classes.next().map_or("-", |of| class(of.class));
            let raw = slice.raw.as_ref();
            let pooled = slice.pooled.as_ref();
            rows.push(vec![
                family.family.to_string(),
                slice.slice.to_string(),
                class.to_owned(),
                slice.rows.to_string(),
                number((slice.exposure.value() * 1e4).round() / 1e4),
                number(slice.stakes.value()),
                raw.map_or("-".to_owned(), |of| format!("{:.4}", of.mean.value())),
                raw.map_or("-".to_owned(), |of| format!("{:.4}", of.p_adjusted.value())),
                pooled.map_or("-".to_owned(), |of| format!("{:.4}", of.mean.value())),
                pooled.map_or("-".to_owned(), |of| {
                    format!("{:.3} … {:.3}", of.low.value(), of.high.value())
                }),
            ]);
            data.push(json!({
                "family": family.family.as_str(), "slice": slice.slice.as_str(), "class": class, "rows": slice.rows,
                "exposure": slice.exposure, "stakes": slice.stakes, "raw": slice.raw, "pooled": slice.pooled,
            }));
        }
    }
    let head = [
        "family", "slice", "class", "n", "w", "u", "mean", "p adj", "pooled", "95 %",
    ];
    let mut text = ui::table(&head, rows);
    if let Some(paused) = &record.paused {
        text.push_str(&ui::wrapped(&format!(
            "paused: the calibrator causes {} of the variance (0.3) and {} is in sight; {} more labels would do",
            number(paused.said.share.value()),
            number(paused.said.gain.value()),
            paused.said.labels_requested
        )));
    }
    (
        text,
        json!({"slices": data, "paused": record.paused.is_some()}),
    )
}

pub(super) fn cards(ctx: &mut Ctx<'_>, id: &str) -> Result<View, CliError> {
    let bench = bench::open(ctx, id)?;
    if bench.due() == Some(Step::Propose) && bench.record.cards_due() == 0 {
        return Ok(bench::answer(&bench, carded(&bench.record), &[]));
    }
    run::step(ctx, bench, Step::Cards, &Asked::default())
}

/// Cards, as whoever writes patches sees them.
pub(super) fn carded(record: &Record) -> (String, Value) {
    let mut text = String::new();
    for card in &record.cards {
        let card = &card.said;
        let of = &card.card;
        let over = match of.direction {
            crate::event::payload::card::Direction::OverScored => "over-scored",
            crate::event::payload::card::Direction::UnderScored => "under-scored",
        };
        let mean = of
            .mean_raw_micro
            .map_or("-".to_owned(), |mean| mean.to_string());
        text.push_str(&ui::wrapped(&ui::escape(&format!(
            "{}  {}, {over}: mean residual {mean} over {} rows  digest {}",
            of.card,
            class(of.class),
            of.rows,
            card.public_digest
        ))));
        for hint in &of.hints {
            text.push_str(&ui::wrapped(&ui::escape(&format!(
                "  hint {}: {} in the worst, {} where it is right, smd {}",
                hint.feature, hint.worst_micro, hint.reference_micro, hint.smd_micro
            ))));
        }
        for path in &of.candidate_paths {
            text.push_str(&format!("  try  {}\n", ui::escape(path.as_str())));
        }
    }
    if record.cards.is_empty() {
        text.push_str("no slice is misjudged: no card\n");
    }
    let cards: Vec<_> = record.cards.iter().map(|card| json!(card.said)).collect();
    (text, json!({"cards": cards}))
}

pub(super) fn propose(ctx: &mut Ctx<'_>, args: &ProposeArgs) -> Result<View, CliError> {
    let (mut text, mut data, mut ids) = (String::new(), Vec::new(), Vec::new());
    let (mut fresh, mut checkpoint) = (false, None);
    for file in &args.files {
        let one = patch::ProposeArgs {
            file: file.clone(),
            iteration: args.id.clone(),
            inputs: args.inputs.clone(),
            model: args.model.clone(),
            prompt_digest: args.prompt_digest.clone(),
            dry_run: false,
        };
        let answer = patch::propose(ctx, &one)?;
        text.push_str(&answer.text());
        data.push(answer.facts().clone());
        ids.extend(answer.events);
        fresh |= answer.verdict == "appended";
        checkpoint = answer.checkpoint;
    }
    let mut answer = View::untyped(text, json!({"patches": data}));
    answer.verdict = if fresh {
        "appended"
    } else {
        "already_recorded"
    };
    answer.events = ids;
    answer.checkpoint = checkpoint;
    Ok(answer.with_next(format!("clover iterate gate {}", shell::word(&args.id))))
}
