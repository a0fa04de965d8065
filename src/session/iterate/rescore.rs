//! A patch that changes what the judge is told: the judge is registered as it is told then, asked about the rows, and asked
//! again about a sample of them. Its scores stand beside the first ones, under a name of their own.

use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks::Question;
use clover_projection::iterations::rows::Key;
use clover_rubric::CheckedPatch;
use clover_rubric::Patch;
use clover_rubric::leaf::Class;
use clover_workflow::iterate::course::Course;
use clover_workflow::iterate::hypothesis::Hypothesis;
use clover_workflow::iterate::rows;
use clover_workflow::iterate::rows::JudgeRecords;
use clover_workflow::iterate::rows::RowName;
use clover_workflow::judge::run::Frame;
use clover_workflow::patches::Bench as PatchBench;
use clover_workflow::prompts;
use clover_workflow::prompts::JudgePrompt;
use zeroize::Zeroizing;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::bench::recorded;
use crate::iterate::score;
use crate::judge::JudgingError;
use crate::judge::registration;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What asking a judge anew did.
#[derive(Clone, Debug)]
pub struct PatchRescore {
    /// The judge.
    pub judge: JudgeId,
    /// Entries that were appended, without those of scores.
    pub appended: Vec<AppendedEvent>,
    /// Rows that the judge was asked about.
    pub recorded: usize,
    /// Rows that it was asked about again.
    pub sampled: usize,
    /// How its answers differ from those before; none before the first gate.
    pub moved: Option<MovedAnswers>,
}

/// Answers of a judge that was told something else, against those that the iteration read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAnswers {
    /// The judge that the iteration read.
    pub from: JudgeId,
    /// Rows and anchors that both answered.
    pub rows: usize,
    /// Of those, the ones with another base score or other evidence.
    pub differ: usize,
}

/// What a patch asks of a judge before its first gate.
#[derive(Clone, Debug, PartialEq)]
pub struct RescoreRequest {
    /// The judge, told what the patch changes.
    pub judge: JudgeId,
    /// The judge that the iteration asks, as it was registered: its program answers.
    pub registered: Box<JudgeRegistered>,
    /// Rows and anchors that it has not answered, those of confirm included.
    pub rows: usize,
}

/// What a patch asks of the judge of its iteration; `None` where it changes nothing that the judge is told.
///
/// # Errors
/// [`IterationError::Untold`] where nobody can be told, and [`IterationError::OwnPrompt`] where a text of its own would be lost.
pub fn asking(
    ledger: &Ledger,
    iteration: &IterationId,
    (bench, checked): (&PatchBench, &CheckedPatch),
) -> Result<Option<RescoreRequest>, SessionError> {
    let record = recorded(ledger, iteration, ledger.size())?;
    let plan = &record.opened.said.params;
    let prompt = prompts::rendered(&checked.rubric, Some(plan));
    let base = prompts::rendered(&bench.rubric, Some(plan));
    if prompt.hash == base.hash {
        return Ok(None);
    }
    let named = plan.design.as_ref().and_then(|of| of.judge.as_ref());
    let untold = |judge: Option<&JudgeId>, why| IterationError::Untold {
        judge: judge.map_or("of the iteration".to_owned(), JudgeId::to_string),
        why,
    };
    let Some(judge) = record.judge() else {
        return Err(untold(named, "is not registered: its scores were imported").into());
    };
    match judge.port {
        JudgePort::Command => {}
        JudgePort::Builtin => {
            return Err(untold(
                Some(&judge.judge),
                "is the built-in one, which is told nothing",
            )
            .into());
        }
        JudgePort::Endpoint | JudgePort::Recorded => {
            return Err(untold(Some(&judge.judge), "is nobody: its scores were imported").into());
        }
    }
    check_template(&record.experiment, judge, &base)?;
    let told = judge.told(prompts::reference(&prompt.text), prompt.hash);
    let told = told.ok_or_else(|| untold(Some(&judge.judge), "has too long a name"))?;
    let of = (&record.experiment, iteration);
    let asked = rows::asked(ledger, of, &told.judge, ledger.size())?;
    let mine = asked
        .unscored
        .iter()
        .filter(|(by, _)| by.contains(&judge.judge));
    Ok(Some(RescoreRequest {
        judge: told.judge,
        registered: Box::new(judge.clone()),
        rows: mine.count(),
    }))
}

/// Refuses to tell a judge a rendered rubric in place of a text of its own.
fn check_template(
    experiment: &ExperimentId,
    judge: &JudgeRegistered,
    base: &JudgePrompt,
) -> Result<(), IterationError> {
    if prompts::can_be_retold(judge, base) {
        return Ok(());
    }
    Err(IterationError::OwnPrompt {
        judge: judge.judge.clone(),
        experiment: experiment.clone(),
    })
}

/// Refuses a patch that changes what the judge of its iteration is told, where that is a text of the judge's own.
///
/// # Errors
/// [`IterationError::OwnPrompt`].
pub fn check_retold(
    ledger: &Ledger,
    iteration: &IterationId,
    (bench, checked): (&PatchBench, &CheckedPatch),
) -> Result<(), SessionError> {
    let record = recorded(ledger, iteration, ledger.size())?;
    let plan: Option<&IterationPlan> = Some(&record.opened.said.params);
    let base = prompts::rendered(&bench.rubric, plan);
    let is_changed = prompts::rendered(&checked.rubric, plan).hash != base.hash;
    match record.judge().filter(|_| is_changed) {
        Some(judge) => Ok(check_template(&record.experiment, judge, &base)?),
        None => Ok(()),
    }
}

/// Whether a patch that lists new sources needs one verified, by the answers on record: its checks once more, with the hosts
/// that nobody verified. A patch of another kind is given back as it was checked, and so is one where no judge is known.
///
/// # Errors
/// [`IterationError::Patch`] where a check fails that only the record decides.
pub fn decided(
    ledger: &Ledger,
    iteration: &IterationId,
    (bench, yaml): (&PatchBench, &str),
    (patch, checked): (Patch, CheckedPatch),
) -> Result<(Patch, CheckedPatch), SessionError> {
    if checked.needs_rescore.is_some() {
        return Ok((patch, checked));
    }
    let Some(hosts) = unverified(ledger, iteration)? else {
        return Ok((patch, checked));
    };
    let again = bench.check(yaml.as_bytes(), Some(&hosts));
    Ok(again.map_err(|fault| IterationError::Patch(Box::new(fault)))?)
}

/// Hosts that stored answers of an iteration's judge cite and nobody verified; `None` where no judge is known.
fn unverified(
    ledger: &Ledger,
    iteration: &IterationId,
) -> Result<Option<BTreeSet<String>>, SessionError> {
    let record = recorded(ledger, iteration, ledger.size())?;
    let Some(judge) = record.judge() else {
        return Ok(None);
    };
    let of = (&record.experiment, iteration);
    let found = rows::unverified(ledger, of, &judge.judge, ledger.size())?;
    Ok(Some(found))
}

/// Refuses a patch that needs sources verified: no judge of the iteration can be asked for that.
///
/// # Errors
/// [`IterationError::Unverified`].
pub fn check_sources(
    ledger: &Ledger,
    iteration: &IterationId,
    (bench, yaml): (&PatchBench, &str),
    checked: &CheckedPatch,
) -> Result<(), SessionError> {
    let is_conditional = checked.classes.contains(&Class::Conditional);
    if !is_conditional || checked.needs_rescore != Some(true) {
        return Ok(());
    }
    let needs = |host: &&String| {
        let one = BTreeSet::from([(*host).clone()]);
        let found = bench.check(yaml.as_bytes(), Some(&one));
        found.is_ok_and(|(_, checked)| checked.needs_rescore == Some(true))
    };
    let hosts = unverified(ledger, iteration)?.unwrap_or_default();
    match hosts.iter().find(needs) {
        Some(host) if checked.classes.iter().max() == Some(&Class::Conditional) => {
            Err(IterationError::Unverified { host: host.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// Registers the judge of a hypothesis, unless it is registered.
fn registered(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    judge: &JudgeRegistered,
    prompt: &str,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let experiment = bench.record.experiment.clone();
    match registration::standing(&bench.ledger, &experiment, &judge.judge)? {
        Some(of) if of.judge == *judge => return Ok(Vec::new()),
        Some(of) => {
            let error = JudgingError::OtherJudge {
                asked: Box::new(judge.clone()),
                registered: Box::new(of.judge),
                seq: of.seq,
            };
            return Err(error.into());
        }
        None => {}
    }
    let ledger = &mut bench.ledger;
    let signer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::JudgeRegistered))?;
    let command = Command::new(judge.clone(), Some(experiment));
    let blobs = [prompt.as_bytes().to_vec()];
    let appended = ledger.append_with_blobs(&[command], &signer, &blobs)?;
    bench.again()?;
    Ok(appended)
}

/// Rows without a record of a judge, of those that it is to be asked about.
fn wanted(of: &JudgeRecords, keys: &BTreeSet<Key>) -> JudgeRecords {
    let is_wanted = |name: &RowName| {
        keys.contains(&(name.policy.clone(), name.item.clone(), name.draw.value()))
    };
    let unscored = of.unscored.iter().filter(|(_, name)| is_wanted(name));
    JudgeRecords {
        records: of.records.clone(),
        unscored: unscored.cloned().collect(),
    }
}

/// Asks the judge of a hypothesis about rows that it did not answer yet, and before the first gate about a sample again.
fn ask(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    (course, of): (&Course, &Hypothesis),
    of_confirm: bool,
) -> Result<Option<PatchRescore>, SessionError> {
    let (Some(judge), Some(prompt)) = (of.judge(&course.loaded), &of.prompt) else {
        return Ok(None);
    };
    if !bench.ledger.state().asks(Question::RescoredAnew) {
        return Err(IterationError::Unruled(Question::RescoredAnew.since()).into());
    }
    let pepper = bench.home.vault(bench.ledger.ambient())?.pepper()?;
    let pepper = Zeroizing::new(pepper);
    // Whoever answers, and whoever signs, is found before anything is said.
    drop(ports.judge(&judge)?);
    ports.signer(bench.ledger.state(), KeyNeed::scorer(Kind::ScoreRecorded))?;
    let mut done = PatchRescore {
        judge: judge.judge.clone(),
        appended: registered(bench, ports, &judge, &prompt.text)?,
        recorded: 0,
        sampled: 0,
        moved: None,
    };
    let frame = Frame::new(
        judge.clone(),
        registration::known(&bench.ledger, &judge)?,
        *pepper,
    );
    let by = (&judge, &frame);
    let asked = wanted(
        &score::asked(bench, &judge)?,
        &course.loaded.keys(of_confirm),
    );
    let scored = score::score_missing(bench, ports, by, &asked.unscored)?;
    if scored.differing > 0 {
        return Err(IterationError::Conflicts(scored.differing).into());
    }
    if scored.silent > 0 {
        return Err(IterationError::Silent {
            judge: judge.judge,
            rows: scored.silent,
        }
        .into());
    }
    done.recorded = scored.recorded;
    if !of_confirm && !bench.record.is_replayed(&judge.judge) {
        let asked = score::asked(bench, &judge)?;
        let again = score::repeat(bench, ports, by, &asked)?;
        done.appended.extend(again.appended);
        done.sampled = again.sampled;
        if again.mismatches > 0 {
            return Err(IterationError::Unstable {
                mismatches: again.mismatches,
                sampled: again.sampled,
            }
            .into());
        }
    }
    Ok(Some(done))
}

/// A hypothesis on the answers of the judge that is told what it changes: asked about every row of fit and dev, and every
/// anchor. One that changes nothing that a judge is told, or whose judge is no program or is told a text of its own, is given
/// back as it is.
///
/// # Errors
/// [`IterationError`] and [`JudgingError`]; answers that were recorded before stand, and the step goes on from there.
pub(super) fn before_gates(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    of: Hypothesis,
) -> Result<(Hypothesis, Option<PatchRescore>), SessionError> {
    let is_fitted = bench.record.fitted_of(Some(of.hash)).is_some();
    let base = prompts::rendered(&course.loaded.rubric, Some(&course.loaded.plan));
    let own = course.loaded.registered.as_ref();
    let can_be_retold = own.is_some_and(|own| prompts::can_be_retold(own, &base));
    let judge = of.judge(&course.loaded).filter(|_| can_be_retold);
    let (Some(judge), None, false) = (judge, &of.answers, is_fitted) else {
        return Ok((of, None));
    };
    let mut done = ask(bench, ports, (course, &of), false)?;
    let (ledger, record): (&Ledger, _) = (&bench.ledger, &bench.record);
    let last = ledger.size().saturating_sub(1);
    let of = course.on_answers(ledger, record, of, (&judge, last))?;
    if let (Some(done), Some(answers)) = (&mut done, &of.answers) {
        done.moved = Some(MovedAnswers {
            from: course.loaded.judge.clone(),
            rows: course.loaded.asked_first(),
            differ: course.loaded.moved(answers),
        });
    }
    Ok((of, done))
}

/// Asks the judges of sealed hypotheses about the rows of confirm, before a label of it is shown.
///
/// # Errors
/// As [`before_gates`].
pub(super) fn before_unsealing(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
) -> Result<Vec<PatchRescore>, SessionError> {
    let mut all = Vec::new();
    for of in course.sealed(&bench.ledger, &bench.record)? {
        if of.answers.is_some() {
            all.extend(ask(bench, ports, (course, &of), true)?);
        }
    }
    Ok(all)
}
