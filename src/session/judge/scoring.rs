//! Rows that a judge scored, asked again to see whether it repeats itself.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::Root;
use clover_event::payload::scoring::ScoreReplayed;
use clover_ground::digest::Digest;
use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::Answer;
use clover_workflow::judge::Judge;
use clover_workflow::judge::run;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::charges;
use crate::error::SessionError;
use crate::judge::ask;
use crate::judge::assignment::Assignment;
use crate::judge::book;
use crate::judge::error::JudgingError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// Ends judges after their last ask.
pub(super) fn finish(
    judges: &mut [Box<dyn Judge + Send>],
    scored: usize,
) -> Result<(), JudgingError> {
    for judge in judges {
        judge
            .finish()
            .map_err(|error| JudgingError::stopped_at_end(error, scored))?;
    }
    Ok(())
}

/// A re-score on record.
#[derive(Clone, Debug)]
pub struct Rescore {
    /// What it found.
    pub said: ScoreReplayed,
    /// Where it stands, and after it the conflicts.
    pub appended: Vec<AppendedEvent>,
}

/// Scores a sample of recorded rows again, and records how many differ and each score that does.
///
/// # Errors
/// [`JudgingError`]; nothing was appended then.
pub fn rescore(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    mut assignment: Assignment,
    seed: Count,
) -> Result<Rescore, SessionError> {
    let registered = assignment.registered(ledger)?;
    let records = assignment.records(ledger)?;
    let mut here: Vec<(ImportRow, Reading)> = Vec::new();
    for row in std::mem::take(&mut assignment.rows) {
        let reading = assignment.read(&row)?;
        if records.contains_key(&reading.raw_key) {
            here.push((row, reading));
        }
    }
    let keys: Vec<Digest> = here.iter().map(|(_, reading)| reading.raw_key).collect();
    let sample = run::sample(&keys, seed.value()).ok_or(JudgingError::FewRows(keys.len()))?;
    here.retain(|(_, reading)| sample.binary_search(&reading.raw_key).is_ok());
    let whose = (assignment.registration.port, assignment.judge());
    let calls = here.len() as u64;
    if let Some(payer) = charges::calls(ports, ledger, whose, calls)? {
        payer.pay(ledger, calls)?;
    }
    let scores = answers(ports, ledger, &assignment, &here)?;
    let (mut mismatches, mut differing) = (0_u64, Vec::new());
    for ((row, reading), answer) in here.iter().zip(scores) {
        let (old, base) = (&records[&reading.raw_key], answer.score);
        let reading = reading.clone().with(&answer);
        mismatches += u64::from(old.b_micro != base || old.evidence != reading.evidence);
        if old.b_micro != base {
            differing.push((row.clone(), base));
        }
    }
    let said = ScoreReplayed {
        judge: assignment.judge().clone(),
        keys: count(sample.len() as u64),
        keys_root: Root(run::root(
            sample.iter().map(|key| key.as_bytes().as_slice()),
        )),
        mismatches: count(mismatches),
        seed,
    };
    let whose = (&assignment.experiment, assignment.judge());
    let conflicts = book::conflicts(ledger, whose, differing)?;
    let experiment = Some(assignment.experiment.clone());
    let mut commands = vec![Command::new(said.clone(), experiment.clone())];
    let conflicts = conflicts.into_iter();
    commands.extend(conflicts.map(|conflict| Command::new(conflict, experiment.clone())));
    for command in &mut commands {
        command.refs = vec![registered];
    }
    let signer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::ScoreReplayed))?;
    let appended = settled(ports, ledger, &commands, &signer)?;
    Ok(Rescore { said, appended })
}

/// Asks the judge for every row, and ends it; one answer for each row, in their order.
pub(super) fn answers(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    assignment: &Assignment,
    rows: &[(ImportRow, Reading)],
) -> Result<Vec<Answer>, SessionError> {
    let mut judges = assignment.judges(ports, ledger, rows.iter().map(|(row, _)| row))?;
    let answers = ask::ask(&mut judges, rows);
    let scores = rows.iter().zip(answers).map(|((row, _), answer)| {
        answer.map_err(|error| JudgingError::stopped_at(&row.item, error, 0))
    });
    let scores = scores.collect::<Result<Vec<_>, _>>()?;
    finish(&mut judges, 0)?;
    Ok(scores)
}

/// Appends commands, and lets the index take them in.
pub(super) fn settled(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Arc<Signer>,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let appended = ledger.append(commands, signer)?;
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    Ok(appended)
}

fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: no file has 2^53 rows")
}
