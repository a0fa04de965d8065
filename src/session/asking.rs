//! An ask of a model behind HTTP for something else than scores: held for before it is sent, recorded before it is read, asked
//! once.

use std::slice;

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::AccountId;
use clover_event::id::EndpointId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;
use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::asked::AskedRun;
use clover_projection::asked::AskedRuns;
use clover_projection::asked::LastCall;
use clover_projection::budgets::Budgets;
use clover_projection::runs::RunHold;
use clover_workflow::ask::Desk;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::dispatch::DispatchRules;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::ask::sending::Sending;
use clover_workflow::ask::sending::SendingTurn;
use clover_workflow::synth::ask;
use clover_workflow::synth::ask::ModelCallFrame;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::iterate::IterationError;
use crate::ports::Ports;
use crate::ports::Question;
use crate::ports::Work;
use crate::tariff;
use crate::tariff::Tariff;
use crate::tariff::TariffTerms;

/// How long an answer that is on its way is waited for when somebody asks to stop, in turns.
const LAST_BEATS: u32 = 300;
/// Hexadecimal digits of the name of a lock.
const LOCK_DIGITS: usize = 16;

/// Which model a run is to ask, and who pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTerms {
    /// The account; needed where calls cost something.
    pub account: Option<AccountId>,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap: Option<Count>,
    /// Where it is asked.
    pub endpoint: EndpointId,
    /// Most tokens of an answer.
    pub max_output_tokens: Count,
    /// The model that is asked for.
    pub model: Text,
    /// The model that has to answer.
    pub pin: Text,
    /// Whether each ask has a seed.
    pub seeded: bool,
}

impl ModelTerms {
    /// What a run says of its model, at these prices, with asks in this form.
    pub(crate) fn asked(&self, tariff: Option<&Tariff>, form: &str) -> AskedModel {
        AskedModel {
            account: tariff.map(|of| of.account.clone()),
            cap_usd_micro: self.cap.filter(|_| tariff.is_some()),
            endpoint: self.endpoint.clone(),
            form: Text::new(form).expect("BUG: a word is a text"),
            max_output_tokens: self.max_output_tokens,
            model: self.model.clone(),
            pin: self.pin.clone(),
            prices: tariff.map(|of| of.prices.clone()),
            seeded: self.seeded,
            temperature_micro: None,
        }
    }

    /// As an open run was opened.
    pub(crate) fn of(asked: &AskedModel) -> Self {
        Self {
            account: asked.account.clone(),
            cap: asked.cap_usd_micro,
            endpoint: asked.endpoint.clone(),
            max_output_tokens: asked.max_output_tokens,
            model: asked.model.clone(),
            pin: asked.pin.clone(),
            seeded: asked.seeded,
        }
    }

    /// What its calls cost, and who pays.
    pub(crate) fn tariff(&self, ledger: &Ledger) -> Result<Option<Tariff>, SessionError> {
        let terms = TariffTerms {
            endpoint: &self.endpoint,
            pin: self.pin.as_str(),
            account: self.account.as_ref(),
            opened: None,
        };
        tariff::of(ledger, terms)
    }
}

/// What sends.
pub struct ModelSender<'a> {
    /// The desk.
    pub desk: &'a mut dyn Desk,
    /// How it sends.
    pub rules: DispatchRules,
    /// How requests are written and answers are read.
    pub wire: &'a dyn WireForm,
}

/// Why a round was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskStop {
    /// What the endpoint said, without secrets.
    pub complaint: Option<String>,
    /// What its last call came to; none where nothing was sent.
    pub outcome: Option<CallOutcome>,
    /// Why nothing more was sent; none where attempts were used up.
    pub reason: Option<StopReason>,
}

/// What a round came to.
pub(crate) enum RoundEnd {
    /// A call that came to its end.
    Called(LastCall),
    /// Nothing that ends the round: the same command asks again.
    Stopped(AskStop),
}

/// Keeps other processes from asking for the same run until it is dropped.
pub(crate) fn alone(home: &Home, run: &RunId) -> Result<FileLock, SessionError> {
    let named = Digest::sha256(format!("run\n{run}").as_bytes()).to_hex();
    let name: String = named.chars().take(LOCK_DIGITS).collect();
    let path = home.folder().join(format!("asking-{name}"));
    match ambient::lock(&path, std::time::Duration::ZERO) {
        Err(AmbientError::Locked { .. }) => Err(IterationError::BusyRun(run.clone()).into()),
        lock => Ok(lock?),
    }
}

/// The ask of a run as the log has it.
fn standing(ledger: &Ledger, run: &RunId) -> Result<AskedRun, SessionError> {
    let found = ledger.state().fold::<AskedRuns>().by_id.get(run).cloned();
    let gone = || IterationError::Optimizer(format!("{run} asks no model"));
    Ok(found.ok_or_else(gone)?)
}

/// What a hold is charged.
pub(crate) fn settlement(run: &RunId, hold: &RunHold, (amount, unknown): (u64, u64)) -> Command {
    let count = |of| Count::new(of).unwrap_or_default();
    let said = BudgetSettled {
        amount: count(amount),
        hold: hold.name.clone(),
        overrun: amount > hold.amount,
        run: run.clone(),
        unknown: count(unknown.min(amount)),
    };
    Command::new(said, None)
}

/// What an ask is about.
#[derive(Clone, Debug)]
pub(crate) struct AskSubject {
    /// The experiment of its run.
    pub experiment: ExperimentId,
    /// Which ask of the run.
    pub place: u64,
    /// What is asked for.
    pub purpose: CallPurpose,
    /// The run.
    pub run: RunId,
    /// SHA-256 of what is shown.
    pub shown: Digest,
    /// The entry that showed it, where the call names it.
    pub shown_by: Option<EventId>,
}

/// An ask that is about to be sent.
struct OpenAsk<'b> {
    ledger: &'b mut Ledger,
    signer: &'b Signer,
    subject: AskSubject,
    model: AskedModel,
    request: AskRequest,
    tariff: Option<Tariff>,
    bound: u64,
}

impl OpenAsk<'_> {
    fn run(&self) -> &RunId {
        &self.subject.run
    }

    fn standing(&self) -> Result<AskedRun, SessionError> {
        standing(self.ledger, self.run())
    }

    fn frame(&self, of: &AskedRun) -> ModelCallFrame {
        let last = of.last_of(self.subject.place);
        ModelCallFrame {
            ask: self.request.ask.plain_key(),
            bound: Count::new(self.bound).unwrap_or_default(),
            hold: of.hold.as_ref().map(|hold| hold.name.clone()),
            nth: Count::new(last.map_or(0, |last| last.nth + 1)).unwrap_or_default(),
            place: Count::new(self.subject.place).unwrap_or_default(),
            purpose: self.subject.purpose,
            run: self.run().clone(),
            shown: self.subject.shown,
        }
    }

    /// What is said of a call, in the experiment, with what it is about.
    fn command(&self, said: impl Into<Payload>) -> Command {
        let mut command = Command::new(said, Some(self.subject.experiment.clone()));
        command.refs = self.subject.shown_by.into_iter().collect();
        command
    }

    fn append(
        &mut self,
        ports: &mut dyn Ports,
        commands: &[Command],
        blobs: &[Vec<u8>],
    ) -> Result<(), SessionError> {
        let ledger = &mut *self.ledger;
        append::append_with(ports, ledger, commands, self.signer, blobs)?;
        ledger.settle()?;
        Ok(())
    }

    /// An ask that was held for when its process ended is lost, at its bound.
    fn lost(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let of = self.standing()?;
        let Some(hold) = &of.hold else {
            return Ok(());
        };
        let called = self.command(ask::lost(self.frame(&of)));
        let settled = settlement(self.run(), hold, (self.bound, self.bound));
        self.append(ports, &[called, settled], &[])
    }

    /// The next hold; none where the account or the cap has no room, once `spent` more is charged.
    fn hold(&self, of: &AskedRun, (freed, spent): (u64, u64)) -> Option<Command> {
        let tariff = self.tariff.as_ref()?;
        let amount = self.bound.max(1);
        let now = append::now(self.ledger);
        let account = self.ledger.state().fold::<Budgets>();
        let left = account.accounts.get(&tariff.account)?.left(now);
        let left = left.saturating_add(freed).saturating_sub(spent);
        let cap = of.asked.cap_usd_micro.map(|cap| {
            let settled = of.settled.saturating_add(spent);
            cap.value().saturating_sub(settled)
        });
        if amount > left.min(cap.unwrap_or(u64::MAX)) {
            return None;
        }
        let said = BudgetReserved {
            account: tariff.account.clone(),
            amount: Count::new(amount).unwrap_or_default(),
            asks: Count::new(1).unwrap_or_default(),
            hold: Text::new(of.next_hold(self.run())).expect("BUG: a name is a text"),
            run: self.run().clone(),
        };
        Some(Command::new(said, None))
    }

    /// Settles what attempts may have cost, and holds for one more; whether there was room.
    fn held_again(&mut self, ports: &mut dyn Ports, maybe: u64) -> Result<bool, SessionError> {
        let of = self.standing()?;
        let Some(hold) = &of.hold else {
            return Ok(true);
        };
        let owed = of
            .cost_since
            .saturating_add(self.bound.saturating_mul(maybe));
        let amount = owed.saturating_sub(of.settled_since).max(hold.amount);
        let Some(next) = self.hold(&of, (hold.amount, amount)) else {
            return Ok(false);
        };
        let settled = settlement(self.run(), hold, (amount, amount));
        self.append(ports, &[settled, next], &[])?;
        Ok(true)
    }

    /// A call goes on record with its answer and what it cost.
    fn recorded(&mut self, ports: &mut dyn Ports, ended: &EndedCall) -> Result<(), SessionError> {
        let of = self.standing()?;
        let row = self.tariff.as_ref().map(|of| &of.row);
        let (said, blobs) = ask::recorded(&self.model, self.frame(&of), ended, row);
        let owed = of.cost_since.saturating_add(said.cost_usd_micro.value());
        let amount = owed.saturating_sub(of.settled_since);
        let mut commands = vec![self.command(said)];
        let settled = of.hold.as_ref();
        commands.extend(settled.map(|hold| settlement(self.run(), hold, (amount, 0))));
        self.append(ports, &commands, &blobs)
    }

    /// Nothing was sent under the hold, and nobody can tell: it is charged as a whole.
    fn unsent(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let of = self.standing()?;
        let Some(hold) = &of.hold else {
            return Ok(());
        };
        let amount = hold.amount.max(of.unpaid());
        let settled = settlement(self.run(), hold, (amount, amount));
        self.append(ports, &[settled], &[])
    }

    /// Sends until the ask came to something, or nothing more is sent.
    fn sent(
        &mut self,
        ports: &mut dyn Ports,
        sender: &mut ModelSender<'_>,
    ) -> Result<(Option<EndedCall>, Option<StopReason>), SessionError> {
        let ambient = self.ledger.ambient().clone();
        let jitter = SeedTree::of_number(u64::from_be_bytes(ambient.random::<8>()?));
        let request = self.request.clone();
        let (desk, rules) = (&mut *sender.desk, (sender.rules, jitter));
        let mut sending = Sending::held_back(desk, sender.wire, slice::from_ref(&request), rules);
        sending.add(0);
        let mut beats = 0;
        loop {
            match sending.next(ambient.now()) {
                SendingTurn::Ended(call) => return Ok((Some(*call), None)),
                SendingTurn::Hold => {
                    let maybe = sending.maybe_billed().iter().map(|(_, maybe)| *maybe).sum();
                    if self.held_again(ports, maybe)? {
                        sending.held();
                    } else {
                        sending.stop(StopReason::Capped);
                    }
                }
                SendingTurn::Stopped(reason) => {
                    let (mut left, _) = sending.leave();
                    return Ok((left.pop(), Some(reason)));
                }
                SendingTurn::Beat | SendingTurn::Done => {}
            }
            if ports.is_interrupted() {
                sending.stop(StopReason::Interrupted);
                beats += 1;
                if beats > LAST_BEATS {
                    let (mut left, _) = sending.leave();
                    return Ok((left.pop(), Some(StopReason::Interrupted)));
                }
            }
        }
    }
}

/// What a run holds is charged as a whole before a person ends it: nobody knows what was sent. The commands that say so; none
/// where nothing is held.
pub(crate) fn freed(
    ledger: &Ledger,
    ports: &mut dyn Ports,
    run: &RunId,
) -> Result<Option<Command>, SessionError> {
    let runs = ledger.state().fold::<AskedRuns>();
    let of = runs.by_id.get(run);
    let Some((of, hold)) = of.and_then(|of| Some((of, of.hold.as_ref()?))) else {
        return Ok(None);
    };
    let amount = hold.amount.max(of.unpaid());
    ports.ask(&Question::StopRun {
        run: run.clone(),
        account: of.asked.account.as_ref().map(ToString::to_string),
        held_asks: hold.asks_left,
        unknown: amount,
    })?;
    Ok(Some(settlement(run, hold, (amount, amount))))
}

/// What a run pays, as it was opened.
pub(crate) fn tariff_of(
    ledger: &Ledger,
    asked: &AskedModel,
) -> Result<Option<Tariff>, SessionError> {
    let terms = TariffTerms {
        endpoint: &asked.endpoint,
        pin: asked.pin.as_str(),
        account: asked.account.as_ref(),
        opened: asked.account.as_ref().zip(asked.prices.as_ref()),
    };
    tariff::of(ledger, terms)
}

/// The request of an ask, and the most that one attempt of it may cost.
pub(crate) fn request_of(
    model: &AskedModel,
    (ask, wire): (ModelAsk, &dyn WireForm),
    tariff: Option<&Tariff>,
) -> (AskRequest, u64) {
    let request = AskRequest::of(wire, ask);
    let output = model.max_output_tokens.value();
    let bound = tariff.map_or(0, |of| of.row.bound(request.body.len(), output).value());
    (request, bound)
}

/// The model that a run asks.
pub(crate) fn model_of(ledger: &Ledger, run: &RunId) -> Result<AskedModel, SessionError> {
    Ok(standing(ledger, run)?.asked)
}

/// The call of an ask that came to its end, where it had one.
pub(crate) fn ended_call(
    ledger: &Ledger,
    (run, place): (&RunId, u64),
) -> Result<Option<LastCall>, SessionError> {
    let of = standing(ledger, run)?;
    let last = of.last_of(place).filter(|last| last.is_final());
    Ok(last.cloned())
}

/// Asks the model of a run, unless it answered before.
pub(crate) fn put(
    (ledger, signer): (&mut Ledger, &Signer),
    ports: &mut dyn Ports,
    (subject, ask): (AskSubject, ModelAsk),
    sender: &mut ModelSender<'_>,
) -> Result<RoundEnd, SessionError> {
    let place = subject.place;
    if let Some(last) = ended_call(ledger, (&subject.run, place))? {
        return Ok(RoundEnd::Called(last));
    }
    let model = standing(ledger, &subject.run)?.asked;
    let tariff = tariff_of(ledger, &model)?;
    let (request, bound) = request_of(&model, (ask, sender.wire), tariff.as_ref());
    let mut at = OpenAsk {
        ledger,
        signer,
        subject,
        model,
        request,
        tariff,
        bound,
    };
    at.lost(ports)?;
    let stop = |reason| AskStop {
        complaint: None,
        outcome: None,
        reason: Some(reason),
    };
    if ports.is_interrupted() {
        return Ok(RoundEnd::Stopped(stop(StopReason::Interrupted)));
    }
    if at.tariff.is_some() {
        let Some(hold) = at.hold(&at.standing()?, (0, 0)) else {
            return Ok(RoundEnd::Stopped(stop(StopReason::Capped)));
        };
        at.append(ports, &[hold], &[])?;
    }
    ports.progress(Work::Judging, place, 0);
    let (ended, reason) = at.sent(ports, sender)?;
    let Some(ended) = ended else {
        at.unsent(ports)?;
        let reason = reason.unwrap_or(StopReason::Interrupted);
        return Ok(RoundEnd::Stopped(stop(reason)));
    };
    at.recorded(ports, &ended)?;
    let last = at.standing()?.last;
    Ok(match last.filter(|last| last.place == place) {
        Some(last) if last.is_final() => RoundEnd::Called(last),
        last => RoundEnd::Stopped(AskStop {
            complaint: ended.detail,
            outcome: last.map(|last| last.outcome),
            reason,
        }),
    })
}
