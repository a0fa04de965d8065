//! What stands before candidates: fit, audit, cards.

use serde::Serialize;

use crate::event::id::JudgeId;
use crate::event::id::SplitId;
use crate::event::payload::card::CardPublished;
use crate::event::payload::card::Direction;
use crate::event::payload::intake::SplitPart;
use crate::event::payload::slices::AuditedSlice;
use crate::event::payload::slices::PooledMean;
use crate::event::payload::slices::RawMean;
use crate::num::Count;
use crate::num::Probability;
use crate::num::math;
use crate::projection::iterations::record::IterationRecord;
use crate::report::shown;
use crate::stats::calibrator::CalibratorChoice;
use crate::view::View;
use crate::view::iterate::maybe;
use crate::view::iterate::number;
use crate::view::iterate::reach;
use crate::view::word;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::rows;

/// Rows of each part of the split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartRows {
    /// Rows that calibrators are fitted on.
    pub fit: u64,
    /// Rows that candidates are judged on before confirm.
    pub dev: u64,
    /// Rows of the confirm block.
    pub confirm: u64,
    /// Every row, those outside the split included.
    pub all: u64,
}

/// Labels of the parts whose labels are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartLabels {
    /// Labels of rows that calibrators are fitted on.
    pub fit: u64,
    /// Labels of rows that candidates are judged on before confirm.
    pub dev: u64,
}

/// Rows and labels of each part, and the calibrator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratorFit {
    /// The judge whose scores are read.
    pub judge: JudgeId,
    /// The split.
    pub split: SplitId,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Rows of each part.
    pub rows: PartRows,
    /// Labels of each part.
    pub labels: PartLabels,
    /// Rows with evidence beside the score.
    pub with_evidence: u64,
    /// The form of the calibrator: `monotone` or `two_stage`.
    pub calibrator: &'static str,
    /// Folds in use.
    pub folds: u64,
    /// Root of the mean squared residual on the label's scale, out of fold.
    pub oof_rmse: f64,
    /// The calibrator's share of the variance, from 0 to 1; `null` where there is none.
    pub oua_share: Option<f64>,
    /// Lower bound on the gain that is in sight.
    pub promising_gain: f64,
    /// What labels are shares of, in words; absent where they stand as they are, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_scale: Option<String>,
    /// Remarks on the rows.
    pub notes: Vec<String>,
}

/// A slice of the audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slice {
    /// The family of the slice.
    pub family: String,
    /// The slice.
    pub slice: String,
    /// `green`, `neutral` or `risk`; `-` before the classification.
    pub class: String,
    /// Labelled rows.
    pub rows: Count,
    /// Its share of all logs, from 0 to 1.
    pub exposure: Probability,
    /// What is at stake in it, from 0 to 1.
    pub stakes: Probability,
    /// Its mean residual by itself; `null` below 40 labelled rows.
    pub raw: Option<RawMean>,
    /// Its mean residual shrunk towards that of its family; `null` without labelled rows or without spread.
    pub pooled: Option<PooledMean>,
}

/// The audit of residuals by slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SliceAudit {
    /// Slices by family, in order of registration.
    pub slices: Vec<Slice>,
    /// Whether the iteration pauses for labels.
    pub paused: bool,
}

/// Residual cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardList {
    /// The cards, as published.
    pub cards: Vec<CardPublished>,
}

fn fit(course: &Course) -> CalibratorFit {
    let (loaded, ground) = (&course.loaded, &course.ground);
    let parts = &loaded.table.data().parts;
    let of_part = |part: SplitPart| parts.iter().filter(|of| **of == Some(part)).count() as u64;
    let labels = |part: SplitPart| loaded.table.labelled(part).len() as u64;
    let baseline = &ground.baseline;
    let squares = baseline.residuals(&loaded.table, &baseline.rows);
    let squares: Vec<f64> = squares.iter().map(|residual| residual * residual).collect();
    CalibratorFit {
        judge: loaded.judge.clone(),
        split: loaded.split.clone(),
        through_seq: loaded.through,
        rows: PartRows {
            fit: of_part(SplitPart::Fit),
            dev: of_part(SplitPart::Dev),
            confirm: of_part(SplitPart::Confirm),
            all: loaded.table.len() as u64,
        },
        labels: PartLabels {
            fit: labels(SplitPart::Fit),
            dev: labels(SplitPart::Dev),
        },
        with_evidence: loaded.with_evidence() as u64,
        calibrator: match baseline.calibrator.selected {
            CalibratorChoice::Monotone => "monotone",
            CalibratorChoice::TwoStage => "two_stage",
        },
        folds: baseline.folds as u64,
        oof_rmse: math::mean(&squares).sqrt(),
        oua_share: ground.uncertainty.share.share(),
        promising_gain: ground.gain,
        label_scale: loaded
            .label_scale
            .and_then(|(ends, _)| rows::label_scale_in_words(ends)),
        notes: loaded.notes.clone(),
    }
}

/// Rows and labels of each part, the calibrator, its share, and the checks of labels.
pub fn fitted(view: &mut View, course: &Course, record: &IterationRecord) -> CalibratorFit {
    let of = fit(course);
    let anchors = course.loaded.table.data().anchors.iter();
    let anchors = anchors.map(|of| format!("{} ({})", of.policy, of.scored.scores.len()));
    let line = |rows: u64, labels: u64| format!("{rows} rows, {labels} labels");
    let eta = course.ground.thresholds.eta_micro.value() as f64 / 1e6;
    let mut pairs = vec![
        ("judge", of.judge.to_string()),
        ("split", of.split.to_string()),
        ("fit", line(of.rows.fit, of.labels.fit)),
        ("dev", line(of.rows.dev, of.labels.dev)),
        (
            "confirm",
            format!("{} rows, labels unread", of.rows.confirm),
        ),
        (
            "evidence",
            format!("{} of {} rows", of.with_evidence, of.rows.all),
        ),
        ("anchors", anchors.collect::<Vec<_>>().join(", ")),
        (
            "calibrator",
            format!(
                "{}, {} folds, rmse {} out of fold",
                of.calibrator,
                of.folds,
                number(of.oof_rmse)
            ),
        ),
        (
            "calibrator's share",
            format!(
                "{} of the variance, pause from 0.3 unless {} is in sight",
                maybe(of.oua_share),
                number(eta)
            ),
        ),
        ("read through", format!("seq {}", of.through_seq)),
    ];
    if let Some(scale) = &of.label_scale {
        pairs.push(("labels", scale.clone()));
    }
    pairs.extend(checked(record));
    view.pairs(pairs);
    of
}

/// What the checks of labels found.
fn checked(record: &IterationRecord) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    if let Some(of) = &record.label_process {
        let columns = of.said.balance.iter();
        let worst = columns
            .map(|column| column.smd.value().abs())
            .fold(0.0, f64::max);
        let orphans = of.said.orphans;
        pairs.push((
            "labels (L1)",
            format!(
                "{}: largest difference {} (0.1), {orphans} without a design",
                shown::word(of.said.verdict),
                number(worst)
            ),
        ));
    }
    if let Some(of) = &record.prentice {
        pairs.push((
            "residuals (S1)",
            format!(
                "{}: F {} p {} (0.05), largest {}",
                shown::word(of.said.verdict),
                number(of.said.f.value()),
                number(of.said.p.value()),
                of.said.top_term.as_str()
            ),
        ));
    }
    pairs
}

fn slice(record: &IterationRecord, family: &str, of: &AuditedSlice) -> Slice {
    let classes = record.classified.iter().flat_map(|of| &of.said.slices);
    let mut mine = classes.filter(|one| one.family.as_str() == family && one.slice == of.slice);
    Slice {
        family: family.to_owned(),
        slice: of.slice.to_string(),
        class: mine
            .next()
            .map_or("-".to_owned(), |classed| word(&classed.class)),
        rows: of.rows,
        exposure: of.exposure,
        stakes: of.stakes,
        raw: of.raw,
        pooled: of.pooled,
    }
}

/// What the audit found of each slice.
pub(super) fn audit(record: &IterationRecord) -> SliceAudit {
    let families = record.audited.iter().flat_map(|of| &of.said.families);
    let slices = families.flat_map(|family| {
        let each = family.slices.iter();
        each.map(|of| slice(record, family.family.as_str(), of))
    });
    SliceAudit {
        slices: slices.collect(),
        paused: record.paused.is_some(),
    }
}

/// The slice table, and the pause if there is one, with the course that tells whether it can be lifted.
pub fn audited(view: &mut View, record: &IterationRecord, course: Option<&Course>) -> SliceAudit {
    let of = audit(record);
    put(view, &of.slices);
    paused(view, record, course);
    of
}

/// The pause, where there is one.
pub(super) fn paused(view: &mut View, record: &IterationRecord, course: Option<&Course>) {
    if let (Some(paused), Some(course)) = (&record.paused, course) {
        view.sentence(reach::paused(&paused.said, course));
    }
}

/// The same, where the facts stand elsewhere.
pub(super) fn put(view: &mut View, slices: &[Slice]) {
    let rows = slices.iter().map(|of| {
        let raw = of.raw.as_ref();
        let pooled = of.pooled.as_ref();
        vec![
            of.family.clone(),
            of.slice.clone(),
            of.class.clone(),
            of.rows.to_string(),
            number((of.exposure.value() * 1e4).round() / 1e4),
            number(of.stakes.value()),
            raw.map_or("-".to_owned(), |of| format!("{:.4}", of.mean.value())),
            raw.map_or("-".to_owned(), |of| format!("{:.4}", of.p_adjusted.value())),
            pooled.map_or("-".to_owned(), |of| format!("{:.4}", of.mean.value())),
            pooled.map_or("-".to_owned(), |of| {
                format!("{:.3} … {:.3}", of.low.value(), of.high.value())
            }),
        ]
    });
    let head = [
        "family", "slice", "class", "n", "w", "u", "mean", "p adj", "pooled", "95 %",
    ];
    view.table(&head, rows);
}

/// Cards, as whoever writes patches sees them.
pub fn carded(view: &mut View, record: &IterationRecord) -> CardList {
    for card in &record.cards {
        let card = &card.said;
        let of = &card.card;
        let over = match of.direction {
            Direction::OverScored => "over-scored",
            Direction::UnderScored => "under-scored",
        };
        let mean = of
            .mean_raw_micro
            .map_or("-".to_owned(), |mean| mean.to_string());
        view.sentence(format!(
            "{}  {}, {over}: mean residual {mean} over {} rows  digest {}",
            of.card,
            word(&of.class),
            of.rows,
            card.public_digest
        ));
        for hint in &of.hints {
            view.sentence(format!(
                "  hint {}: {} in the worst, {} where it is right, smd {}",
                hint.feature, hint.worst_micro, hint.reference_micro, hint.smd_micro
            ));
        }
        for path in &of.candidate_paths {
            view.line(format!("  try  {}", path.as_str()));
        }
    }
    if record.cards.is_empty() {
        view.line("no slice is misjudged: no card");
    }
    let cards = record.cards.iter().map(|card| card.said.clone());
    CardList {
        cards: cards.collect(),
    }
}
