//! Where calls of a run go on record, with the scores that they gave, what they cost, and what is held for the next.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::PrivateRef;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_event::payload::model_runs::CallOf;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::JudgeRunClosed;
use clover_event::payload::model_runs::RunEnd;
use clover_event::payload::model_runs::ScoreMissed;
use clover_event::payload::model_runs::UsageState;
use clover_ground::digest::Digest;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::SignedEvent;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::budgets::Budgets;
use clover_projection::budgets::HeldAmount;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_projection::runs::RunHold;
use clover_projection::runs::row_key;
use clover_workflow::ask::called;
use clover_workflow::ask::called::CallFrame;
use clover_workflow::ask::called::JudgedCall;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::charges::Meter;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::batch;
use crate::judge::book::Book;
use crate::judge::book::BookBasis;
use crate::judge::book::Entries;
use crate::judge::live::LiveAsk;
use crate::judge::live::count;
use crate::tariff::Tariff;

/// A call that ended, read.
pub(super) struct ReadCall {
    /// Its place.
    pub at: usize,
    /// What it cost.
    pub cost: Count,
    /// What it came to.
    pub outcome: CallOutcome,
    /// Its body as it is kept, where it has one.
    body: Option<(PrivateRef, Vec<u8>)>,
    pub ended: EndedCall,
    judged: JudgedCall,
}

/// What goes on record together.
pub(super) struct RunBatch<'a> {
    /// The run as it stands.
    pub standing: &'a ModelRun,
    /// Calls that ended, in order.
    pub calls: &'a [ReadCall],
    /// What the open hold is charged, and the part of it that nobody knows to be spent.
    pub settle: Option<(u64, u64)>,
    /// How many asks the next hold covers, and what it holds.
    pub hold: Option<(u64, u64)>,
    /// How the run ends.
    pub end: Option<RunEnd>,
}

/// What there is room for in a hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldRoom {
    /// What leaves as much to other runs of the account.
    pub fair: u64,
    /// What account and cap have.
    pub most: u64,
}

/// Rows that went on record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchCounts {
    /// Rows that have a score now.
    pub scored: u64,
    /// Rows whose ask came to no answer.
    pub missed: u64,
}

/// Events of one key, signed in order, so that one may name another.
struct Signing<'a> {
    ledger: &'a Ledger,
    signer: &'a Signer,
    number: u64,
    events: Vec<SignedEvent>,
}

impl Signing<'_> {
    fn push(&mut self, command: &Command) -> Result<EventId, SessionError> {
        let one =
            append::draft(self.ledger, command, self.signer, self.number).sign(self.signer)?;
        let id = EventId(Digest::sha256(one.body()));
        let signed = Signed::new(one.body().to_vec(), one.signer(), *one.signature());
        self.events.push(signed);
        self.number += 1;
        Ok(id)
    }
}

/// Where calls of a judge go on record.
pub(super) struct Recorder<'a> {
    pub home: &'a Home,
    pub ledger: &'a mut Ledger,
    pub experiment: &'a ExperimentId,
    pub judge: &'a JudgeId,
    pub registered: EventId,
    pub scorer: &'a Signer,
    pub plan: &'a JudgePlan,
    pub tariff: Option<&'a Tariff>,
}

type RowOf = (PolicyId, ItemId, Count);
/// A row with its score.
type ScoredRow = (ImportRow, Reading, Micro);
/// Commands, the blobs that they name, and how many rows have a score by them.
type SaidScores = (Vec<Command>, Vec<Vec<u8>>, u64);

impl Recorder<'_> {
    /// What is said in the experiment.
    pub(super) fn command(&self, payload: impl Into<Payload>) -> Command {
        Command::new(payload, Some(self.experiment.clone()))
    }

    /// Reads a call that ended: its score where the answer has the form, what it came to, and what it cost.
    pub(super) fn read(
        &self,
        asks: &[LiveAsk],
        pepper: &[u8; 32],
        mut ended: EndedCall,
    ) -> ReadCall {
        let at = usize::try_from(ended.place).unwrap_or(usize::MAX);
        let ask = asks
            .get(at)
            .expect("BUG: what was sent is an ask of the run");
        let row = ask.rows.first().map(|(row, _)| row);
        let texts = row.map_or(("", ""), |row| {
            let (prompt, response) = (row.prompt.as_deref(), row.response.as_deref());
            (prompt.unwrap_or_default(), response.unwrap_or_default())
        });
        let fenced = FencedRow::new(pepper, (&ask.texts.x_hash, &ask.texts.a_hash), texts);
        let judged = called::judged(self.plan, fenced.ticket(), &ended);
        ended.detail.clone_from(&judged.answer.detail);
        let mut call = ReadCall {
            at,
            cost: Count::default(),
            outcome: judged.answer.outcome,
            body: None,
            ended,
            judged,
        };
        let run = RunId::new("run").expect("BUG: a word is a name");
        call.cost = self
            .said((ask, &call), (&run, Count::default()), (None, None))
            .cost_usd_micro;
        call
    }

    /// The event of a call.
    fn said(
        &self,
        (ask, call): (&LiveAsk, &ReadCall),
        (run, epoch): (&RunId, Count),
        (hold, response): (Option<Text>, Option<PrivateRef>),
    ) -> CallRecorded {
        let frame = CallFrame {
            ask: ask.key,
            bound: ask.bound,
            epoch,
            first: ask.first,
            hold,
            judge: self.judge.clone(),
            nth: count(ask.nth),
            response,
            run: run.clone(),
            texts: ask.texts,
        };
        let row = self.tariff.map(|of| &of.row);
        called::recorded(frame, (&call.ended, &call.judged), row)
    }

    /// An ask that was held for when its run was cut: nobody knows whether it was sent.
    pub(super) fn lost(&self, of: &ModelRun, (hold, ask): (&RunHold, &LiveAsk)) -> Command {
        self.command(CallRecorded {
            ask: ask.key,
            attempts: Vec::new(),
            bound_usd_micro: ask.bound,
            cost_usd_micro: ask.bound,
            detail: None,
            epoch: count(of.epoch),
            fingerprint: None,
            first: ask.first,
            hold: Some(hold.name.clone()),
            judge: self.judge.clone(),
            masses: None,
            model_returned: None,
            nth: count(ask.nth),
            outcome: CallOutcome::Lost,
            provider_request: None,
            response: None,
            run: of.said.run.clone(),
            score_micro: None,
            texts: ask.texts,
            tokens: None,
            usage: UsageState::Absent,
        })
    }

    /// Whether something can be tried again: it was refused, and others appended since the ledger had `size` entries.
    pub(super) fn moved(&mut self, size: u64, error: SessionError) -> Result<(), SessionError> {
        if !matches!(&error, SessionError::Ledger(LedgerError::Refused { .. })) {
            return Err(error);
        }
        self.ledger.refresh()?;
        if self.ledger.size() > size {
            return Ok(());
        }
        Err(error)
    }

    /// Encrypts the bodies of answers, each under a key of its own.
    pub(super) fn keep_bodies(&self, calls: &mut [ReadCall]) -> Result<(), SessionError> {
        let ambient = self.ledger.ambient().clone();
        for call in calls {
            if let Some(body) = call.ended.body.take() {
                let kept = batch::private(self.home, &ambient, &body, "application/json")?;
                call.body = Some(kept);
            }
        }
        Ok(())
    }

    /// What is left for a hold once the open one is charged: in the account, and under the cap; none where nothing costs
    /// anything.
    pub(super) fn room(&self, standing: &ModelRun, amount: u64) -> Option<HoldRoom> {
        let tariff = self.tariff?;
        let now = append::now(self.ledger);
        let budgets = self.ledger.state().fold::<Budgets>();
        let account = budgets.accounts.get(&tariff.account);
        let left = account.map_or(0, |of| of.left(now));
        let hold = standing.hold.as_ref();
        let hold = hold.and_then(|of| budgets.holds.get(of.name.as_str()));
        // What an earlier quarter holds and is charged leaves this one alone.
        let is_now = |of: &&HeldAmount| of.quarter.is_none_or(|quarter| quarter == now.quarter());
        let left = hold.filter(is_now).map_or(left, |of| {
            left.saturating_add(of.amount).saturating_sub(amount)
        });
        let cap = standing.said.cap_usd_micro.map(|cap| {
            let spent = standing.settled.saturating_add(amount);
            cap.value().saturating_sub(spent)
        });
        let of = |left: u64| cap.map_or(left, |cap| cap.min(left));
        Some(HoldRoom {
            fair: of(left / 2),
            most: of(left),
        })
    }

    /// What a hold is charged.
    pub(super) fn settlement(
        (run, hold): (&RunId, &RunHold),
        (amount, unknown): (u64, u64),
    ) -> Command {
        let said = BudgetSettled {
            amount: count(amount),
            hold: hold.name.clone(),
            overrun: amount > hold.amount,
            run: run.clone(),
            unknown: count(unknown),
        };
        Command::new(said, None)
    }

    /// Scores of rows whose text was asked about before.
    pub(super) fn answered_before(
        &mut self,
        rows: Vec<(ImportRow, Reading, Micro, CallOf)>,
    ) -> Result<u64, SessionError> {
        if rows.is_empty() {
            return Ok(0);
        }
        let mut calls = BTreeMap::new();
        let mut good = Vec::with_capacity(rows.len());
        for (row, reading, score, call) in rows {
            calls.insert((row.policy.clone(), row.item.clone(), row.draw), call);
            good.push((row, reading, score));
        }
        let (commands, blobs, scored) = self.scores(good, &calls)?;
        self.ledger
            .append_with_blobs(&commands, self.scorer, &blobs)?;
        Ok(scored)
    }

    /// Misses of rows whose text was asked about before, and came to nothing.
    pub(super) fn missed_before(
        &mut self,
        rows: &[(ImportRow, CallOf, CallOutcome)],
    ) -> Result<u64, SessionError> {
        let commands = rows
            .iter()
            .map(|(row, of, reason)| self.miss(row, *of, *reason));
        let commands: Vec<_> = commands.collect();
        if !commands.is_empty() {
            self.ledger.append(&commands, self.scorer)?;
        }
        Ok(commands.len() as u64)
    }

    /// A row that has no score, by a call.
    fn miss(&self, row: &ImportRow, call: CallOf, reason: CallOutcome) -> Command {
        let before = &self.ledger.state().fold::<ModelRuns>().missed;
        let key = (row.policy.as_str(), row.item.as_str(), row.draw);
        let key = row_key(self.experiment, self.judge, key);
        let nth = before.get(&key).copied().unwrap_or_default();
        let said = ScoreMissed {
            call,
            draw: row.draw,
            item: row.item.clone(),
            judge: self.judge.clone(),
            nth: count(nth),
            policy: row.policy.clone(),
            reason,
        };
        let mut command = self.command(said);
        command.refs = vec![self.registered, call.call];
        command
    }

    /// Scores with their calls, and the record of what was found in the rows.
    fn scores(
        &mut self,
        good: Vec<(ImportRow, Reading, Micro)>,
        calls: &BTreeMap<RowOf, CallOf>,
    ) -> Result<SaidScores, SessionError> {
        let book = Book {
            home: self.home,
            ledger: &mut *self.ledger,
            experiment: self.experiment,
            judge: self.judge,
            basis: BookBasis::Registered(self.registered),
            scorer: self.scorer,
            meter: Meter::default(),
        };
        let mut entries = Entries::default();
        let found = book.answers(good, self.registered, &mut entries)?;
        for command in &mut entries.commands {
            if let Payload::ScoreRecorded(said) = &mut command.payload {
                let row = (said.policy.clone(), said.item.clone(), said.draw);
                if let Some(of) = calls.get(&row) {
                    said.call = Some(*of);
                    command.refs.push(of.call);
                }
            }
        }
        Ok((entries.commands, entries.blobs, found.recorded as u64))
    }

    /// Records calls with their scores and misses, what they cost, what is held for the next, and how the run ends.
    pub(super) fn record(
        &mut self,
        asks: &[LiveAsk],
        batch: &RunBatch<'_>,
    ) -> Result<BatchCounts, SessionError> {
        let standing = batch.standing;
        let (mut blobs, mut called) = (Vec::new(), Vec::new());
        for call in batch.calls {
            let (private, stored) = call.body.clone().unzip();
            blobs.extend(stored);
            let hold = standing.hold.as_ref().map(|of| of.name.clone());
            let of = (&standing.said.run, count(standing.epoch));
            let said = self.said((&asks[call.at], call), of, (hold, private));
            called.push(self.command(said));
        }
        let number = append::next_author_seq(self.ledger, self.scorer);
        let mut signing = Signing {
            ledger: &*self.ledger,
            signer: self.scorer,
            number,
            events: Vec::new(),
        };
        let mut calls = Vec::with_capacity(called.len());
        for command in &called {
            calls.push(signing.push(command)?);
        }
        let (number, events) = (signing.number, signing.events);
        let (good, missed, of_rows) = self.rows(asks, batch.calls, &calls);
        let mut counts = BatchCounts {
            scored: 0,
            missed: missed.len() as u64,
        };
        let mut commands = Vec::new();
        if !good.is_empty() {
            let (scored, mut stored, rows) = self.scores(good, &of_rows)?;
            counts.scored = rows;
            commands = scored;
            blobs.append(&mut stored);
        }
        commands.extend(missed);
        commands.extend(self.money(batch));
        let mut signing = Signing {
            ledger: &*self.ledger,
            signer: self.scorer,
            number,
            events,
        };
        for command in &commands {
            signing.push(command)?;
        }
        let events = signing.events;
        if !events.is_empty() {
            self.ledger.submit_with_blobs(events, &blobs)?;
        }
        Ok(counts)
    }

    /// Rows that calls answered, rows that they missed, and the call of each.
    fn rows(
        &self,
        asks: &[LiveAsk],
        calls: &[ReadCall],
        ids: &[EventId],
    ) -> (Vec<ScoredRow>, Vec<Command>, BTreeMap<RowOf, CallOf>) {
        let (mut good, mut missed, mut of_rows) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (call, id) in calls.iter().zip(ids) {
            let ask = &asks[call.at];
            if ask.first.is_some() {
                // The first answer stays the score.
                continue;
            }
            let of = CallOf {
                call: *id,
                texts: ask.texts,
            };
            for (row, reading) in &ask.rows {
                let place = (row.policy.clone(), row.item.clone(), row.draw);
                of_rows.insert(place, of);
                if let Some(score) = call.judged.answer.score {
                    good.push((row.clone(), reading.clone(), score));
                    continue;
                }
                missed.push(self.miss(row, of, call.outcome));
            }
        }
        (good, missed, of_rows)
    }

    /// What is said of money, and of the end of the run.
    fn money(&self, batch: &RunBatch<'_>) -> Vec<Command> {
        let (run, standing) = (&batch.standing.said.run, batch.standing);
        let mut commands = Vec::new();
        let mut settled = standing.settled;
        if let (Some(hold), Some(of)) = (&standing.hold, batch.settle) {
            settled = settled.saturating_add(of.0);
            commands.push(Self::settlement((run, hold), of));
        }
        if let (Some(tariff), Some((asks, amount))) = (self.tariff, batch.hold) {
            let name =
                Text::new(standing.next_hold()).expect("BUG: a name and two numbers are a text");
            let said = BudgetReserved {
                account: tariff.account.clone(),
                amount: count(amount),
                asks: count(asks),
                hold: name,
                run: run.clone(),
            };
            commands.push(Command::new(said, None));
        }
        if let Some(end) = batch.end {
            let mut after = standing.clone();
            for call in batch.calls {
                after.count(call.outcome, call.cost.value());
            }
            let said = JudgeRunClosed {
                by_outcome: after.outcomes(),
                cost_usd_micro: count(after.cost),
                end,
                left: count(after.left()),
                run: run.clone(),
                settled_usd_micro: count(settled),
            };
            commands.push(self.command(said));
        }
        commands
    }
}
