//! Everything that was said of a run, computed again from what stood on record before it: the same to the bit.

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::payload::sgd::SgdAgents;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd_steps::SgdGradientReturned;
use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_event::payload::sgd_steps::SgdPatchRejected;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::RequiredFact;
use clover_ledger::Unmet;
use clover_projection::reader::LogReader;
use clover_projection::reader::Model;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::run_of;

use crate::recompute::Recomputation;
use crate::recompute::compare;
use crate::sgd::agents::Agents;
use crate::sgd::agents::Aggregate;
use crate::sgd::course::SgdCourse;
use crate::sgd::course::gradient;
use crate::sgd::rule::is_leak_alone;
use crate::sgd::verdict::PatchVerdict;

/// An event of a run, computed again.
#[derive(Clone, Debug)]
pub struct SgdReplayed {
    /// Its kind.
    pub kind: Kind,
    /// How that ended.
    pub outcome: Recomputation,
    /// Its entry.
    pub seq: u64,
}

/// A run as far as the log was read.
struct Replay<'n> {
    found: Vec<SgdReplayed>,
    name: &'n RunId,
    run: Option<SgdRun>,
}

impl Model for Replay<'_> {
    fn take(&mut self, seq: u64, event: &Event) {
        let payload = &event.payload;
        if run_of(payload) != Some(self.name) {
            return;
        }
        if let (Payload::SgdOpened(said), Some(experiment)) = (payload, &event.header.experiment) {
            self.run
                .get_or_insert_with(|| SgdRun::opened(experiment.clone(), seq, said));
            return;
        }
        let Some(run) = &mut self.run else {
            return;
        };
        let outcome = match again(run, payload) {
            Ok(Some(again)) => Some(compare(payload, &again)),
            Ok(None) => None,
            Err(unmet) => Some(Recomputation::Gone(format!(
                "expected {}, found {}",
                unmet.expected, unmet.found
            ))),
        };
        if let Some(outcome) = outcome {
            let kind = payload.kind();
            self.found.push(SgdReplayed { kind, outcome, seq });
        }
        run.take(payload);
    }
}

/// Every event of a run that follows from those before it, computed again, in order. Scores, words of people and answers of
/// programs follow from nothing, and rows from labels: they are not among them.
///
/// # Errors
/// When the log cannot be read.
pub fn replayed(
    (history, size): (&dyn History, u64),
    run: &RunId,
) -> Result<Vec<SgdReplayed>, LedgerError> {
    let replay = Replay {
        found: Vec::new(),
        name: run,
        run: None,
    };
    let entries = LogReader::below(history, size);
    Ok(entries.into_model(replay)?.found)
}

fn document(text: String) -> Result<SgdDocument, Unmet> {
    SgdDocument::new(text).required("a document of at most 32768 bytes")
}

fn agents(error: String) -> Unmet {
    Unmet {
        expected: "an answer of the built-in agents".to_owned(),
        found: error,
    }
}

/// What an event says by the record before it; `None` of what follows from nothing.
fn again(run: &SgdRun, payload: &Payload) -> Result<Option<Payload>, Unmet> {
    let is_own = run.said.agents == SgdAgents::Aggregate;
    let course = || SgdCourse::of(run);
    let found: Payload = match payload {
        Payload::SgdBatchDrawn(_) => course()?.batch()?.into(),
        Payload::SgdLossComputed(said) => course()?.loss_computed(said.part)?.into(),
        Payload::SgdGradientRequested(said) => {
            let mut again = course()?.requested()?;
            again.leak_test = said.leak_test;
            again.into()
        }
        Payload::SgdGradientReturned(said) if is_own => {
            let request = run.going().and_then(|step| step.request.as_ref());
            let request = request.required("a request")?;
            let answer = Aggregate.gradient(request.request.as_str());
            SgdGradientReturned {
                gradient: gradient(&answer.map_err(agents)?)?,
                ..*said.clone()
            }
            .into()
        }
        Payload::SgdPatchProposed(said) if is_own => {
            let answer = Aggregate.propose(&course()?.ask()?).map_err(agents)?;
            SgdPatchProposed {
                patch: document(answer.required("a proposal")?)?,
                ..*said.clone()
            }
            .into()
        }
        Payload::SgdPatchRejected(said) if !is_leak_alone(said) => match course()?.verdict()? {
            PatchVerdict::Broken(violations) => SgdPatchRejected {
                violations,
                ..*said.clone()
            }
            .into(),
            PatchVerdict::Valid(_) | PatchVerdict::Waits => {
                return Err(Unmet {
                    expected: "a proposal that breaks a rule".to_owned(),
                    found: "one that breaks none".to_owned(),
                });
            }
        },
        Payload::SgdStepCommitted(_) => course()?.committed()?.into(),
        Payload::SgdReverted(_) => course()?
            .reverted()?
            .required("a step that is taken back")?
            .into(),
        Payload::SgdStopTriggered(_) => course()?
            .stop()?
            .required("a step that triggers a stop")?
            .into(),
        Payload::SgdCheckpointSelected(_) => course()?.checkpoint()?.into(),
        Payload::SgdTestRead(_) => course()?.test_read()?.into(),
        _ => return Ok(None),
    };
    Ok(Some(found))
}
