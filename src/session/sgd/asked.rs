//! Gradients and patches by a model behind HTTP: held for before it is asked, on record before it is read, asked once.

use clover_event::Kind;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd_steps::ATTEMPTS_MAX;
use clover_event::payload::sgd_steps::SgdGradientReturned;
use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_ledger::RequiredFact;
use clover_num::Count;
use clover_projection::asked::LastCall;
use clover_projection::sgd::due::SgdDue;
use clover_workflow::ask::ModelAsk;
use clover_workflow::sgd::ask;

use crate::append;
use crate::asking;
use crate::asking::AskStop;
use crate::asking::AskSubject;
use crate::asking::ModelSender;
use crate::asking::RoundEnd;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;
use crate::ports::Seat;
use crate::sgd::SgdBench;
use crate::sgd::SgdError;
use crate::sgd::running::SgdRunning;

/// Money of which no consent is needed, at most: one dollar.
const UNASKED_USD_MICRO: u64 = 1_000_000;

/// Whose key asks.
fn need() -> KeyNeed<'static> {
    KeyNeed::of(Seat::Optimizer, Kind::SgdPatchProposed)
}

impl SgdRunning<'_> {
    /// Asks the model for what is due, and says what it answered; why it gave no answer, where it gave none.
    pub(super) fn asked(
        &mut self,
        ports: &mut dyn Ports,
        sender: &mut ModelSender<'_>,
        due: SgdDue,
    ) -> Result<Option<AskStop>, SessionError> {
        let ask = ask::due(self.run()?).map_err(SgdError::from)?;
        self.agreed(ports, (&ask, sender))?;
        let call = match self.put(ports, ask, sender)? {
            RoundEnd::Stopped(stop) => return Ok(Some(stop)),
            RoundEnd::Called(call) => call,
        };
        let text = self.text_of(&call)?;
        if due == SgdDue::Gradient {
            self.gradient_called(ports, &call, text.as_deref())?;
        } else {
            self.proposal_called(ports, &call, text.as_deref())?;
        }
        Ok(None)
    }

    fn put(
        &mut self,
        ports: &mut dyn Ports,
        ask: ModelAsk,
        sender: &mut ModelSender<'_>,
    ) -> Result<RoundEnd, SessionError> {
        let run = self.bench.run()?;
        let awaited = run.awaited().required("an ask that waits");
        let (place, shown) = awaited.map_err(SgdError::from)?;
        let subject = AskSubject {
            experiment: run.experiment.clone(),
            place,
            purpose: CallPurpose::Descend,
            run: self.bench.id.clone(),
            shown,
            shown_by: None,
        };
        let signer = ports.signer(self.bench.ledger.state(), need())?;
        let ledger = &mut self.bench.ledger;
        asking::put((ledger, &signer), ports, (subject, ask), sender)
    }

    /// More than a dollar needs a yes, once.
    fn agreed(
        &mut self,
        ports: &mut dyn Ports,
        (ask, sender): (&ModelAsk, &ModelSender<'_>),
    ) -> Result<(), SessionError> {
        if self.is_agreed {
            return Ok(());
        }
        self.is_agreed = true;
        let run = self.bench.run()?;
        let model = run.said.asked.clone().required("a model that is asked");
        let model = model.map_err(SgdError::from)?;
        let left = run.last_step().saturating_sub(run.taken());
        let asks = left.saturating_mul(1 + ATTEMPTS_MAX);
        let tariff = asking::tariff_of(&self.bench.ledger, &model)?;
        let of = (ask.clone(), sender.wire);
        let (_, bound) = asking::request_of(&model, of, tariff.as_ref());
        let cap = model.cap_usd_micro.map_or(u64::MAX, Count::value);
        let most = bound.saturating_mul(asks).min(cap);
        if most > UNASKED_USD_MICRO {
            ports.ask(&Question::Spend {
                account: model.account.map(|account| account.to_string()),
                asks,
                late: 0,
                most,
            })?;
        }
        Ok(())
    }

    /// The text of a call; none where it has none that is read.
    fn text_of(&self, call: &LastCall) -> Result<Option<String>, SessionError> {
        let Some(text) = &call.text else {
            return Ok(None);
        };
        let found = self.bench.ledger.store().reader().blob(&text.blake3)?;
        let gone = || SgdError::Agents("the answer on record is missing".to_owned());
        Ok(String::from_utf8(found.ok_or_else(gone)?).ok())
    }

    fn gradient_called(
        &mut self,
        ports: &mut dyn Ports,
        call: &LastCall,
        text: Option<&str>,
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let step = Count::new(run.taken()).unwrap_or_default();
        let gradient = ask::gradient_of(run, text).map_err(SgdError::from)?;
        self.leak_test(&gradient)?;
        let too_long = || SgdError::Agents("a gradient of more than 32768 bytes".to_owned());
        let said = SgdGradientReturned {
            call: Some(call.call),
            gradient: SgdDocument::new(gradient).ok_or_else(too_long)?,
            run: self.bench.id.clone(),
            step,
        };
        self.bench.say_of(ports, said, Some(call.call))?;
        Ok(())
    }

    /// A model that has no patch to give ends the step.
    fn proposal_called(
        &mut self,
        ports: &mut dyn Ports,
        call: &LastCall,
        text: Option<&str>,
    ) -> Result<(), SessionError> {
        let Some(patch) = ask::proposal_of(text).and_then(SgdDocument::new) else {
            return self.commit(ports);
        };
        let run = self.bench.run()?;
        let attempt = run.going().map_or(0, |step| step.proposed.len() as u64);
        let said = SgdPatchProposed {
            attempt: Count::new(attempt).unwrap_or_default(),
            call: Some(call.call),
            parent_digest: run.digest(),
            patch,
            run: self.bench.id.clone(),
            step: Count::new(run.taken()).unwrap_or_default(),
        };
        self.bench.say_of(ports, said, Some(call.call))?;
        Ok(())
    }
}

/// What a run holds is charged as a whole before a person ends it.
pub(super) fn freed(bench: &mut SgdBench, ports: &mut dyn Ports) -> Result<(), SessionError> {
    if bench.run()?.said.asked.is_none() {
        return Ok(());
    }
    let _alone = asking::alone(&bench.home, &bench.id)?;
    let Some(settled) = asking::freed(&bench.ledger, ports, &bench.id)? else {
        return Ok(());
    };
    let signer = ports.signer(bench.ledger.state(), need())?;
    append::append(ports, &mut bench.ledger, &[settled], &signer)?;
    Ok(())
}
