//! A patch that changes what the judge is told: the judge is registered as it is told then, asked about the rows, and asked
//! again about a sample of them. Its scores stand beside the first ones, under a name of their own.

use clover_event::Kind;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::Appended;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::iterations::rows::Key;
use clover_workflow::iterate::course::Course;
use clover_workflow::iterate::hypothesis::Hypothesis;
use clover_workflow::iterate::rows::Asked;
use clover_workflow::judge::run::Frame;
use zeroize::Zeroizing;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::score;
use crate::iterate::score::known;
use crate::judge::JudgingError;
use crate::judge::registration;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What asking a judge anew did.
#[derive(Clone, Debug, Default)]
pub struct Rescored {
    /// Entries that were appended, without those of scores.
    pub appended: Vec<Appended>,
    /// Rows that the judge was asked about.
    pub recorded: usize,
    /// Rows that it was asked about again.
    pub sampled: usize,
}

/// Registers the judge of a hypothesis, unless it is registered.
fn registered(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    judge: &JudgeRegistered,
    prompt: &str,
) -> Result<Vec<Appended>, SessionError> {
    let experiment = bench.record.experiment.clone();
    match registration::standing(&bench.ledger, &experiment, &judge.judge)? {
        Some(of) if of.judge == *judge => return Ok(Vec::new()),
        Some(of) => {
            let (registered, seq) = (Box::new(of.judge), of.seq);
            return Err(JudgingError::OtherJudge { registered, seq }.into());
        }
        None => {}
    }
    let ledger = &mut bench.ledger;
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::JudgeRegistered))?;
    let command = Command::new(judge.clone(), Some(experiment));
    let blobs = [prompt.as_bytes().to_vec()];
    let appended = ledger.append_with_blobs(&[command], &signer, &blobs)?;
    bench.again()?;
    Ok(appended)
}

/// Rows without a record of a judge, of those that it is to be asked about.
fn wanted(of: &Asked, keys: &std::collections::BTreeSet<Key>) -> Asked {
    let is_wanted = |name: &clover_workflow::iterate::rows::Named| {
        keys.contains(&(name.policy.clone(), name.item.clone(), name.draw.value()))
    };
    let unscored = of.unscored.iter().filter(|(_, name)| is_wanted(name));
    Asked {
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
) -> Result<Rescored, SessionError> {
    let (Some(judge), Some(prompt)) = (of.judge(&course.loaded), &of.prompt) else {
        return Ok(Rescored::default());
    };
    let pepper = bench.home.vault(bench.ledger.ambient())?.pepper()?;
    let pepper = Zeroizing::new(pepper);
    // Whoever answers, and whoever signs, is found before anything is said.
    let mut port = ports.judge(&judge)?;
    port.tell(&prompt.text);
    ports.signer(
        bench.ledger.state(),
        KeyNeed::runner(Kind::ScoreRecorded),
    )?;
    let mut done = Rescored {
        appended: registered(bench, ports, &judge, &prompt.text)?,
        ..Rescored::default()
    };
    let frame = Frame::new(judge.clone(), known(&bench.ledger, &judge)?, *pepper);
    let by = (&judge, &frame);
    let asked = wanted(&score::asked(bench, &judge)?, &course.loaded.keys(of_confirm));
    let scored = score::score_missing(bench, ports, by, port.as_mut(), &asked.unscored)?;
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
        let again = score::repeat(bench, ports, by, port.as_mut(), &asked)?;
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
    Ok(done)
}

/// A hypothesis on the answers of the judge that is told what it changes: asked about every row of fit and dev, and every
/// anchor. One that changes nothing that a judge is told, or whose judge is no program, is given back as it is.
///
/// # Errors
/// [`IterationError`] and [`JudgingError`]; answers that were recorded before stand, and the step goes on from there.
pub(super) fn before_gates(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    of: Hypothesis,
) -> Result<(Hypothesis, Rescored), SessionError> {
    let is_fitted = bench.record.fitted_of(Some(of.hash)).is_some();
    let judge = of.judge(&course.loaded);
    let (Some(judge), None, false) = (judge, &of.answers, is_fitted) else {
        return Ok((of, Rescored::default()));
    };
    let done = ask(bench, ports, (course, &of), false)?;
    let (ledger, record): (&Ledger, _) = (&bench.ledger, &bench.record);
    let last = ledger.size().saturating_sub(1);
    let of = course.on_answers(ledger, record, of, (&judge, last))?;
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
) -> Result<Rescored, SessionError> {
    let mut all = Rescored::default();
    for of in course.sealed(&bench.ledger, &bench.record)? {
        if of.answers.is_some() {
            let done = ask(bench, ports, (course, &of), true)?;
            all.recorded += done.recorded;
            all.appended.extend(done.appended);
        }
    }
    Ok(all)
}
