//! What a report computes from the rows that its iteration read: errors, curves, slices, values under the rubric in force
//! and under every candidate that was put to a gate.
//!
//! Rows are those of the residual audit, to the digest; of confirm, those of the first gate there, and only once the
//! iteration has unsealed them. Calibrators are fitted again as the gates fitted them: same rows, folds and mode.

mod curve;
mod places;
mod rules;
mod slices;
mod tenths;
mod worth;

use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::report::ReportPart;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Names;
use clover_projection::bundle::Section;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::Records;
use clover_projection::iterations::story::Story;
use clover_rubric::Rubric;
use clover_stats::inference::Interval;
use clover_stats::residuals::SliceTerms;
use clover_stats::sample::Unfit;

use crate::iterate::compute::Table;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows;
use crate::iterate::rows::Answers;
use crate::iterate::rows::IterationDataset;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowsQuery;
use crate::iterate::steps;
use crate::iterate::steps::OpenIteration;

/// What the rubric that the iteration starts from is called.
const IN_FORCE: &str = "in force";

/// Why nothing is computed from rows.
#[derive(Debug)]
pub(super) enum NotRead {
    /// The ledger cannot be read: no report.
    Ledger(LedgerError),
    /// There is nothing to compute from, in words.
    Why(String),
}

impl From<LedgerError> for NotRead {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<IterationRowsError> for NotRead {
    fn from(error: IterationRowsError) -> Self {
        match error {
            IterationRowsError::Ledger(error) => Self::Ledger(error),
            other => Self::Why(other.to_string()),
        }
    }
}

impl From<Unfit> for NotRead {
    fn from(error: Unfit) -> Self {
        Self::Why(error.to_string())
    }
}

fn why<T>(words: impl Into<String>) -> Result<T, NotRead> {
    Err(NotRead::Why(words.into()))
}

/// A rubric with its scores of all rows and its calibrator.
struct CalibratedRubric {
    name: String,
    kappa: u64,
    scored: RubricScores,
    fitted: CalibratorFit,
    /// Entries that its numbers come from.
    events: Vec<u64>,
}

/// Rows as they were read for dev, or for confirm, and who judges them.
struct PartRows {
    part: SplitPart,
    loaded: IterationDataset,
    in_force: CalibratedRubric,
    candidates: Vec<CalibratedRubric>,
}

impl PartRows {
    fn table(&self) -> &Table {
        &self.loaded.table
    }

    fn word(&self) -> &'static str {
        self.part.as_str()
    }

    fn labelled(&self) -> Vec<usize> {
        self.table().labelled(self.part)
    }

    /// The rubric in force first.
    fn judges(&self) -> impl Iterator<Item = &CalibratedRubric> {
        std::iter::once(&self.in_force).chain(&self.candidates)
    }
}

/// Everything that is computed from rows.
pub(super) struct BundleMeasurement {
    dev: PartRows,
    /// Rows of the confirm block, or why there are none to show.
    confirm: Result<PartRows, String>,
    /// Candidates that cannot be computed again, and why.
    left_out: Vec<(String, String)>,
    rubric: Rubric,
    terms: SliceTerms,
}

/// Reads the rows of an iteration and fits its calibrators.
pub(super) fn read(
    ledger: &Ledger,
    story: &Story,
    names: &Names,
) -> Result<BundleMeasurement, NotRead> {
    let mut records = Records::default();
    let below = story.through_seq.saturating_add(1);
    let record = records.of(ledger, &story.iteration, below)?;
    let Some(record) = record else {
        return why("the iteration never opened");
    };
    let Some(audited) = &record.audited else {
        return why("residuals were not audited");
    };
    let through = audited.said.inputs.through_seq.value();
    let which = RowsQuery {
        experiment: &record.experiment,
        iteration: &record.iteration,
        through,
        confirm: None,
    };
    let loaded = rows::load(ledger, &which)?;
    if steps::inputs(&loaded.table, loaded.through).digest != audited.said.inputs.digest {
        return why(format!(
            "the rows that the log gives now are not those that seq {} read",
            audited.seq
        ));
    }
    let opened = OpenIteration {
        iteration: record.iteration.clone(),
        plan: loaded.plan.clone(),
    };
    let events = vec![record.opened.seq, audited.seq];
    let rubric = loaded.rubric.clone();
    let terms = SliceTerms {
        level: opened.plan.q_micro.value() as f64 / 1e6,
        ..SliceTerms::default()
    };
    let (settings, in_force) = in_force(&loaded, opened.settings(), events)?;
    let candidates: Vec<_> = story.candidates();
    let mut left_out = Vec::new();
    let dev = side(
        (ledger, SplitPart::Dev),
        (loaded, in_force),
        (record, &candidates, names),
        settings,
        &mut left_out,
    );
    let confirm = confirm(ledger, record, &dev, names, settings)?;
    Ok(BundleMeasurement {
        dev,
        confirm,
        left_out,
        rubric,
        terms,
    })
}

/// The rubric in force with its calibrator, and how candidates are fitted beside it.
fn in_force(
    loaded: &IterationDataset,
    settings: Settings,
    events: Vec<u64>,
) -> Result<(Settings, CalibratedRubric), NotRead> {
    let scored = loaded.table.data().scored.clone();
    let fitted = fit::fit(&loaded.table, &scored, settings)?;
    let settings = settings.bound_to(&fitted);
    let judge = CalibratedRubric {
        name: IN_FORCE.to_owned(),
        kappa: 0,
        scored,
        fitted,
        events,
    };
    Ok((settings, judge))
}

fn side(
    (history, part): (&dyn History, SplitPart),
    (loaded, in_force): (IterationDataset, CalibratedRubric),
    (record, candidates, names): (&IterationRecord, &[clover_ground::digest::Digest], &Names),
    settings: Settings,
    left_out: &mut Vec<(String, String)>,
) -> PartRows {
    let mut side = PartRows {
        part,
        loaded,
        in_force,
        candidates: Vec::new(),
    };
    for candidate in candidates {
        let name = names.of(*candidate);
        match judge(history, &side, (record, *candidate), settings) {
            Ok(of) => side.candidates.push(CalibratedRubric { name, ..of }),
            Err(why) => left_out.push((name, why)),
        }
    }
    side
}

/// A candidate scored and fitted again, or why it cannot be.
fn judge(
    history: &dyn History,
    side: &PartRows,
    (record, candidate): (&IterationRecord, clover_ground::digest::Digest),
    settings: Settings,
) -> Result<CalibratedRubric, String> {
    let patches = record.patches_of(candidate);
    let patches = patches.ok_or("its patches were not proposed in this iteration")?;
    let of = Hypothesis::of(&side.loaded, record, &patches).map_err(|error| error.to_string())?;
    let asked = of.asked(&side.loaded, record);
    let asked = asked.map_err(|error| error.to_string())?;
    let answers =
        asked.map(|(judge, last)| Answers::through(history, &record.experiment, &judge, last));
    let answers = answers.transpose().map_err(|error| error.to_string())?;
    let scored = side
        .loaded
        .candidate((of.hash, of.kappa), &of.rubric.rules(), answers.as_ref())
        .map_err(|missing| missing.to_string())?
        .scored;
    let fitted = fit::fit(side.table(), &scored, settings).map_err(|unfit| unfit.to_string())?;
    let mut events = side.in_force.events.clone();
    let proposed = record.proposed.iter();
    let mine = proposed.filter(|of| patches.iter().any(|patch| patch.patch == of.said.patch));
    events.extend(mine.map(|of| of.seq));
    Ok(CalibratedRubric {
        name: String::new(),
        kappa: of.kappa,
        scored,
        fitted,
        events,
    })
}

/// The confirm block and what was sealed, once it was unsealed and read by a gate.
fn confirm(
    history: &dyn History,
    record: &IterationRecord,
    dev: &PartRows,
    names: &Names,
    settings: Settings,
) -> Result<Result<PartRows, String>, NotRead> {
    let (Some(unsealed), Some(sealed)) = (&record.unsealed, &record.sealed) else {
        return Ok(Err("the confirm block was not unsealed".to_owned()));
    };
    let mut gates = record.gates.iter();
    let Some(gate) = gates.find(|gate| gate.said.split == CriterionSplit::Confirm) else {
        return Ok(Err("no gate has read the confirm block yet".to_owned()));
    };
    let which = RowsQuery {
        experiment: &record.experiment,
        iteration: &record.iteration,
        through: dev.loaded.through.value(),
        confirm: Some(gate.said.inputs.through_seq.value()),
    };
    let loaded = rows::load(history, &which)?;
    if steps::inputs(&loaded.table, loaded.through).digest != gate.said.inputs.digest {
        return Ok(Err(format!(
            "the rows that the log gives now are not those that seq {} read",
            gate.seq
        )));
    }
    let events = vec![record.opened.seq, unsealed.seq, gate.seq];
    let (_, in_force) = in_force(&loaded, settings, events)?;
    let sealed = sealed.said.hypotheses.iter();
    let sealed: Vec<_> = sealed.map(|one| one.candidate).collect();
    let mut left_out = Vec::new();
    let of = (record, &sealed[..], names);
    let side = side(
        (history, SplitPart::Confirm),
        (loaded, in_force),
        of,
        settings,
        &mut left_out,
    );
    match left_out.into_iter().next() {
        Some((name, why)) => Ok(Err(format!("{name}: {why}"))),
        None => Ok(Ok(side)),
    }
}

impl BundleMeasurement {
    /// What is computed, part by part.
    pub(super) fn parts(
        &self,
        ledger: &Ledger,
        story: &Story,
        state: &State,
    ) -> Result<Vec<Section>, LedgerError> {
        let mut parts = vec![
            curve::calibration(self, state),
            slices::after(self),
            slices::segments(self),
            tenths::residuals(self),
            worth::values(self, state),
            places::transport(self),
        ];
        parts.push(rules::complexity(self, ledger, story, state)?);
        parts.extend(self.label_scale());
        Ok(parts)
    }

    /// What labels are shares of, where a scale was declared before the iteration opened.
    fn label_scale(&self) -> Option<Section> {
        let (ends, seq) = self.dev.loaded.label_scale?;
        let mut part = Section::new(ReportPart::Labels, "");
        let words = rows::label_scale_in_words(ends)?;
        part.fact(seq, "label_scale", "Scale of labels", Cell::text(words));
        Some(part)
    }

    /// Dev, and confirm if there is anything to show of it.
    fn sides(&self) -> impl Iterator<Item = &PartRows> {
        std::iter::once(&self.dev).chain(self.confirm.as_ref().ok())
    }

    /// Names what a part cannot show of candidates and of confirm.
    fn lacks(&self, part: &mut Section, what: &str) {
        for (name, why) in &self.left_out {
            part.lacks(format!("{what} under {name}"), why.as_str());
        }
        if let Err(why) = &self.confirm {
            part.lacks(format!("{what} on confirm"), why.as_str());
        }
    }
}

fn interval(found: Option<Interval>) -> Cell {
    let ends = found.map(|of| (Cell::number(of.low), Cell::number(of.high)));
    match ends {
        Some((Cell::Number(low), Cell::Number(high))) => Cell::Interval(low, high),
        _ => Cell::Absent,
    }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Absent, Cell::number)
}

fn count(value: usize) -> Cell {
    Cell::count(value as u64)
}
