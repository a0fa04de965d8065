//! The steps in their order: the one that is due, and all that need no person.

use clover_event::Kind;
use clover_event::id::DesignId;
use clover_ledger::AppendedEvent;
use clover_projection::iterations::step::Step;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::confirm;
use crate::iterate::confirm::Confirmation;
use crate::iterate::end;
use crate::iterate::end::Acceptance;
use crate::iterate::end::IterationEnd;
use crate::iterate::gates;
use crate::iterate::gates::GatedOnDev;
use crate::iterate::gates::SealedCandidates;
use crate::iterate::score;
use crate::iterate::score::ScoringResult;
use crate::ports::Notice;
use crate::ports::Ports;

/// Fits the calibrator, and audits how rows came to be labelled.
///
/// # Errors
/// [`SessionError`]; then nothing was appended.
pub fn fit(bench: &mut Bench, ports: &mut dyn Ports) -> Result<Vec<AppendedEvent>, SessionError> {
    let course = bench.take_course()?;
    for note in &course.loaded.notes {
        ports.notice(Notice::Rows(note.clone()));
    }
    let events = course.before(&[
        Kind::LabelProcessAudited,
        Kind::PrenticeChecked,
        Kind::CalibratorFitted,
        Kind::OuaEstimated,
        Kind::CoverageChecked,
    ]);
    let appended = bench.say_with(ports, events, course.blobs())?;
    bench.put_back(course);
    Ok(appended)
}

/// Audits residuals by slice and freezes the classification; asks for labels where the calibrator causes too much of the
/// variance.
///
/// # Errors
/// [`SessionError`]; then nothing was appended.
pub fn audit(bench: &mut Bench, ports: &mut dyn Ports) -> Result<Vec<AppendedEvent>, SessionError> {
    let course = bench.take_course()?;
    let kinds = [
        Kind::ResidualsAudited,
        Kind::SlicesClassified,
        Kind::IterationPausedForLabels,
    ];
    let appended = bench.say(ports, course.before(&kinds))?;
    bench.put_back(course);
    Ok(appended)
}

/// Publishes a card for every slice that is misjudged.
///
/// # Errors
/// [`SessionError`]; then nothing was appended.
pub fn cards(bench: &mut Bench, ports: &mut dyn Ports) -> Result<Vec<AppendedEvent>, SessionError> {
    let course = bench.take_course()?;
    let cards = course.cards(&bench.record)?;
    let cards = cards.iter().map(|card| course.published(card)).collect();
    let appended = bench.say(ports, cards)?;
    bench.put_back(course);
    Ok(appended)
}

/// What a step did. What it found stands in the bench's record.
#[derive(Clone, Debug)]
pub enum StepDone {
    /// Rows were scored.
    Score(ScoringResult),
    /// The calibrator was fitted.
    Fit(Vec<AppendedEvent>),
    /// Residuals were audited.
    Audit(Vec<AppendedEvent>),
    /// Cards were published.
    Cards(Vec<AppendedEvent>),
    /// Gates on dev were evaluated.
    Gate(GatedOnDev),
    /// Candidates were sealed.
    Seal(SealedCandidates),
    /// Confirm was looked at.
    Confirm(Confirmation),
    /// Patches were accepted.
    Accept(Acceptance),
    /// The iteration ended.
    Close(IterationEnd),
}

impl StepDone {
    /// The step.
    pub fn step(&self) -> Step {
        match self {
            Self::Score(_) => Step::Score,
            Self::Fit(_) => Step::Fit,
            Self::Audit(_) => Step::Audit,
            Self::Cards(_) => Step::Cards,
            Self::Gate(_) => Step::Gate,
            Self::Seal(_) => Step::Seal,
            Self::Confirm(_) => Step::Confirm,
            Self::Accept(_) => Step::Accept,
            Self::Close(_) => Step::Close,
        }
    }

    /// Entries that were appended.
    pub fn appended(&self) -> &[AppendedEvent] {
        match self {
            Self::Score(of) => &of.appended,
            Self::Fit(appended) | Self::Audit(appended) | Self::Cards(appended) => appended,
            Self::Gate(of) => &of.appended,
            Self::Seal(of) => &of.appended,
            Self::Confirm(of) => &of.appended,
            Self::Accept(of) => &of.appended,
            Self::Close(of) => &of.appended,
        }
    }
}

/// What an iteration waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Patches, which people or programs write from the cards.
    Patches,
    /// Reviews, in words.
    Reviews(String),
}

/// What came of going on.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A step was done.
    Done(StepDone),
    /// Somebody has to do something first.
    Waits(Wait),
    /// Nothing is due up to the last step that was asked for.
    Idle,
}

/// Does a step that is due.
///
/// # Errors
/// [`IterationError::StepNotDue`], and what the step gives.
pub fn take(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    step: Step,
    design: Option<&DesignId>,
) -> Result<Option<StepDone>, SessionError> {
    bench.only(step)?;
    Ok(Some(match step {
        Step::Score => StepDone::Score(score::score(bench, ports)?),
        Step::Fit => StepDone::Fit(fit(bench, ports)?),
        Step::Audit => StepDone::Audit(audit(bench, ports)?),
        Step::Cards => StepDone::Cards(cards(bench, ports)?),
        Step::Gate => StepDone::Gate(gates::gate(bench, ports)?),
        Step::Seal => StepDone::Seal(gates::seal(bench, ports)?),
        Step::Confirm => StepDone::Confirm(confirm::confirm(bench, ports, design)?),
        Step::Accept => StepDone::Accept(end::accept(bench, ports)?),
        Step::Close => StepDone::Close(end::close(bench, ports)?),
        Step::Propose => return Ok(None),
    }))
}

/// Does the step that is due, if it is not after `last` and needs no person. `before` is the step done just before: one
/// that is due again after it was done would go on for ever.
///
/// # Errors
/// [`IterationError::Still`], and what the step gives.
pub fn advance(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    (before, last): (Option<Step>, Step),
    design: Option<&DesignId>,
) -> Result<Progress, SessionError> {
    let Some(step) = bench.due().filter(|step| *step <= last) else {
        return Ok(Progress::Idle);
    };
    if step == Step::Propose {
        return Ok(Progress::Waits(Wait::Patches));
    }
    if step == Step::Seal
        && let Some(lacking) = gates::waits_for_review(bench)?
    {
        return Ok(Progress::Waits(Wait::Reviews(lacking)));
    }
    if before == Some(step) && step != Step::Accept {
        return Err(IterationError::Still {
            iteration: bench.id.clone(),
            step,
        }
        .into());
    }
    let done = take(bench, ports, step, design)?;
    Ok(done.map_or(Progress::Waits(Wait::Patches), Progress::Done))
}

/// Does every step up to `last` that needs no person; answers with what was done and what it waits for.
///
/// # Errors
/// [`SessionError`]; what was appended before stands.
pub fn run(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    last: Step,
    design: Option<&DesignId>,
) -> Result<(Vec<StepDone>, Option<Wait>), SessionError> {
    let mut done: Vec<StepDone> = Vec::new();
    loop {
        let before = done.last().map(StepDone::step);
        match advance(bench, ports, (before, last), design)? {
            Progress::Done(step) => done.push(step),
            Progress::Waits(wait) => return Ok((done, Some(wait))),
            Progress::Idle => return Ok((done, None)),
        }
    }
}
