//! The checkpoint of a run is promoted on gates that held it against prompt 0 on the clusters that it kept for confirm.

use clover_event::id::ManifestId;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::sgd::SgdSplit;
use clover_ledger::Ledger;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::due::SgdDue;
use clover_projection::sgd::rules::confirm_root;

use crate::error::SessionError;
use crate::gate::gate_step::GateStep;
use crate::gate::promote;
use crate::ports::Ports;
use crate::sgd::SgdError;
use crate::sgd::error::WantedGate;

/// The promotion of the checkpoint of a run on decided gates.
///
/// # Errors
/// [`SgdError::NotDue`] before test was read, [`SgdError::Unchanged`] where prompt 0 is the checkpoint, [`SgdError::NoGate`]
/// without a gate, and what the gates say.
pub fn promote(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    run: &SgdRun,
    gates: &[ManifestId],
) -> Result<GateStep<PromotionIssued>, SessionError> {
    let name = run.said.run.clone();
    let (Some(chosen), Some(_)) = (&run.checkpoint, &run.test_read) else {
        let due = run.due().unwrap_or(SgdDue::Test);
        return Err(SgdError::NotDue { run: name, due }.into());
    };
    if chosen.prompt_digest == run.said.prompt_digest {
        return Err(SgdError::Unchanged(name).into());
    }
    let Some((first, others)) = gates.split_first() else {
        let rows = run.rows(SgdSplit::Confirm);
        let mut items: Vec<_> = rows.iter().map(|row| &row.item).collect();
        items.dedup();
        let wanted = WantedGate {
            baseline: run.said.prompt_digest,
            candidate: chosen.prompt_digest,
            root: confirm_root(run),
            units: items.len(),
        };
        return Err(SgdError::NoGate(Box::new(wanted)).into());
    };
    promote::promote(ports, ledger, (first, others), None)
}
