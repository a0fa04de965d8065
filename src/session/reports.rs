//! The report of an iteration: gathered from the log, and published as a bundle whose digest is signed.

use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::report::ReportLayout;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::bundle::Bundle;
use clover_projection::iterations::story;
use clover_workflow::bundle;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What reports are made of from here on.
const LAYOUT: Option<ReportLayout> = Some(ReportLayout::Rows);

/// A report that was published.
#[derive(Debug)]
pub struct Publication {
    /// What it says.
    pub bundle: Bundle,
    /// The event.
    pub submission: Submission,
}

/// The bundle of an iteration as of `through_seq`, whose state is given.
///
/// # Errors
/// [`SessionError::Ledger`] when the log cannot be read.
pub fn gathered(
    ledger: &Ledger,
    state: &State,
    (experiment, id): (&ExperimentId, &IterationId),
    through_seq: u64,
) -> Result<Bundle, SessionError> {
    let story = story::read(ledger, experiment, id, (through_seq, LAYOUT))?;
    Ok(bundle::bundle(ledger, &story, state)?.bundle)
}

/// Publishes the report of an iteration at the head; its bundle is stored first.
///
/// # Errors
/// [`SessionError::Port`] without an arbiter's key, and [`SessionError::Ledger`].
pub fn publish(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    of: (&ExperimentId, &IterationId),
    intent: Intent,
) -> Result<Publication, SessionError> {
    let through = ledger.size().saturating_sub(1);
    let bundle = gathered(ledger, ledger.state(), of, through)?;
    let said = bundle::published(&bundle, LAYOUT);
    let command = Command::new(said, Some(of.0.clone()));
    let need = KeyNeed::runner(command.payload.kind());
    let signer = ports.signer(ledger.state(), need)?;
    if intent == Intent::Append {
        ledger.put_blobs(&[bundle.to_bytes()])?;
    }
    let submission = append::submit(ports, ledger, &[command], &signer, intent)?;
    Ok(Publication { bundle, submission })
}
