//! A run of a judge behind HTTP, computed again: what was only observed is taken over from a cassette or the vault, and every
//! event of the run is compared with what follows from it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::BufRead;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::Root;
use clover_event::payload::PrivateRef;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::JudgeRunClosed;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::JudgeRunResumed;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::read::LogEntry;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::runs::ModelRun;
use clover_projection::runs::RunHold;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::called;
use clover_workflow::ask::called::CallFrame;
use clover_workflow::ask::called::JudgedCall;
use clover_workflow::ask::cassette;
use clover_workflow::ask::cassette::CassetteCall;
use clover_workflow::ask::cassette::CassetteError;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::fence::FencedTexts;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::judge::run;
use clover_workflow::recompute::MemberDifference;
use clover_workflow::recompute::Recomputation;
use clover_workflow::recompute::compare;

use crate::error::SessionError;
use crate::home::Home;
use crate::judge::error::JudgingError;
use crate::judge::live::count;
use crate::judge::tape;
use crate::judge::tape::RunBasis;
use crate::judge::tape::TapeReader;

/// One event of a run, computed again.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEventAgain {
    /// Its entry.
    pub seq: u64,
    /// Its kind.
    pub kind: Kind,
    /// How that ended.
    pub outcome: Recomputation,
    /// The call that it stands on, where that differs.
    pub follows: Option<u64>,
}

/// A run, computed again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunAgain {
    /// Every event of the run, in the order of the log.
    pub events: Vec<RunEventAgain>,
    /// Lines of the cassette that are of no call of the run.
    pub strays: Vec<u64>,
    /// Whether keyed digests of texts and asks were computed again: that takes the vault of the ledger.
    pub texts_checked: bool,
    /// Whether the order of asks is known, and with it the root of their keys and what each hold covers.
    pub order_known: bool,
}

impl From<CassetteError> for SessionError {
    fn from(error: CassetteError) -> Self {
        JudgingError::Cassette(error).into()
    }
}

/// What follows from a line, but for its run.
struct CallAgain {
    /// The key of its ask under the pepper; none without one.
    ask: Option<Digest>,
    /// The most that one attempt may cost.
    bound: Count,
    commitment: Option<Digest>,
    ended: EndedCall,
    has_body: bool,
    judged: JudgedCall,
    line: u64,
    /// The member of the ask that its plan and its texts do not give, with both keys.
    other_ask: Option<MemberDifference>,
    place: Option<u64>,
    texts: Option<AskedTexts>,
}

/// What became of a call where it was compared.
#[derive(Clone)]
struct ComparedCall {
    seq: u64,
    differs: bool,
    /// Whether anything could be computed.
    is_known: bool,
    /// The score that it gives.
    score: Option<Micro>,
    outcome: CallOutcome,
    texts: AskedTexts,
}

/// Lines of a cassette, each read again.
struct Calls<'a> {
    basis: &'a RunBasis,
    by_ask: BTreeMap<(Digest, u64), CallAgain>,
    pepper: Option<[u8; 32]>,
    strays: Vec<u64>,
    wire: &'a dyn WireForm,
}

impl Calls<'_> {
    /// Reads a call again: its ask from the texts in it, and its worth from the body.
    fn take(&mut self, line: u64, call: CassetteCall) {
        let (plan, told) = (&self.basis.plan, &self.basis.told);
        let own = FencedTexts::of(&call.ask);
        let (mut texts, mut again, mut ticket) = (None, None, String::new());
        if let Some(own) = &own {
            let mut row = own.row();
            if let Some(pepper) = &self.pepper {
                let x_hash = run::text_hash(pepper, "prompt", &own.prompt);
                let a_hash = run::text_hash(pepper, "response", &own.response);
                row = FencedRow::new(pepper, (&x_hash, &a_hash), (&own.prompt, &own.response));
                texts = Some(AskedTexts { a_hash, x_hash });
            }
            row.ticket().clone_into(&mut ticket);
            again = Some(plan.ask(told, &row));
        }
        let keyed = self.pepper.as_ref().zip(again.as_ref());
        let keyed = keyed.map(|(pepper, ask)| ask.keyed(pepper));
        let other_ask = other_ask(&call, again.as_ref());
        let (_, body) = self.wire.request(again.as_ref().unwrap_or(&call.ask));
        let row = self.basis.row.as_ref();
        let bound = row.map(|row| row.bound(body.len(), plan.max_output_tokens));
        let Some(id) = call.recorded.or(keyed) else {
            self.strays.push(line);
            return;
        };
        let commitment = call.commitment();
        let ended = EndedCall::observed(
            (self.wire, &call.ask.format),
            call.attempts,
            call.body.as_deref(),
            call.provider_request,
        );
        let found = CallAgain {
            ask: keyed,
            bound: bound.unwrap_or_default(),
            commitment,
            has_body: call.body.is_some(),
            judged: called::judged(plan, &ticket, &ended),
            ended,
            line,
            other_ask,
            place: call.place.map(Count::value),
            texts,
        };
        self.by_ask.insert((id, call.nth.value()), found);
    }

    /// The key of each ask on record and the most that an attempt of it may cost, in the order of the run; `None` where nobody
    /// knows it.
    fn order(&self) -> Option<Vec<(Digest, u64)>> {
        let mut by_place = BTreeMap::new();
        for ((ask, _), of) in &self.by_ask {
            by_place.insert(of.place?, (*ask, of.bound.value()));
        }
        let asks = self.basis.run.said.asks.value();
        let places: Vec<_> = by_place.keys().copied().collect();
        let is_whole = places.iter().copied().eq(0..asks);
        is_whole.then(|| by_place.into_values().collect())
    }
}

/// What an ask on a cassette is, against what its plan makes of its texts; none where both are the same.
fn other_ask(
    call: &CassetteCall,
    again: Option<&clover_workflow::ask::ModelAsk>,
) -> Option<MemberDifference> {
    let recomputed = match again {
        Some(again) if *again == call.ask => return None,
        Some(again) => serde_json::to_value(again).unwrap_or_default(),
        None => serde_json::Value::Null,
    };
    let found = serde_json::to_value(&call.ask).unwrap_or_default();
    let (_, member) = cassette::difference(&found, &recomputed);
    Some(MemberDifference {
        path: format!("ask.{}", member.unwrap_or_default()),
        recorded: call.key().to_hex().into(),
        recomputed: again.map_or_else(
            || "no row between two lines of a fence".into(),
            |of| of.plain_key().to_hex().into(),
        ),
    })
}

/// A run as it goes again through its events.
struct Walk<'a> {
    calls: &'a Calls<'a>,
    compared: BTreeMap<EventId, ComparedCall>,
    /// Asks in the order of the run, where it is known.
    order: Option<Vec<(Digest, u64)>>,
    ended: BTreeSet<Digest>,
    found: RunAgain,
    now: ModelRun,
    seen: BTreeSet<(Digest, u64)>,
    gone: BTreeMap<(Digest, u64), String>,
}

impl Walk<'_> {
    /// Compares an event of the run with what it would be.
    fn event(&mut self, read: &LogEntry) {
        let (seq, kind) = (read.stored.seq, read.event.kind());
        let run = &self.now.said.run;
        let again = match &read.event.payload {
            Payload::JudgeRunOpened(said) if said.run == *run => self.opened(said).into(),
            Payload::JudgeRunResumed(said) if said.run == *run => self.resumed().into(),
            Payload::BudgetReserved(said) if said.run == *run => self.reserved(said).into(),
            Payload::BudgetSettled(said) if said.run == *run => self.settled(said).into(),
            Payload::JudgeRunClosed(said) if said.run == *run => self.closed(said).into(),
            Payload::CallRecorded(said) if said.run == *run => {
                let outcome = self.called(seq, read.event.id, said);
                self.push(seq, kind, outcome, None);
                return;
            }
            Payload::ScoreRecorded(said) => {
                let call = said
                    .call
                    .as_ref()
                    .and_then(|of| self.compared.get(&of.call));
                if let Some(call) = call {
                    let mut again = said.clone();
                    if let Some(of) = &mut again.call {
                        of.texts = call.texts;
                    }
                    again.score_micro = call.score.unwrap_or(again.score_micro);
                    let (call, is_called) = (call.clone(), call.score.is_some());
                    self.follower(read, (&call, is_called), &(*again).into());
                }
                return;
            }
            Payload::ScoreMissed(said) => {
                if let Some(call) = self.compared.get(&said.call.call) {
                    let mut again = said.clone();
                    again.call.texts = call.texts;
                    again.reason = call.outcome;
                    let is_called = call.outcome != CallOutcome::Answered;
                    let call = call.clone();
                    self.follower(read, (&call, is_called), &(*again).into());
                }
                return;
            }
            _ => return,
        };
        let outcome = compare(&read.event.payload, &again);
        self.push(seq, kind, outcome, None);
    }

    fn push(&mut self, seq: u64, kind: Kind, outcome: Recomputation, follows: Option<u64>) {
        self.found.events.push(RunEventAgain {
            seq,
            kind,
            outcome,
            follows,
        });
    }

    /// A score or a miss that stands on a call.
    fn follower(
        &mut self,
        read: &LogEntry,
        (call, is_called): (&ComparedCall, bool),
        again: &Payload,
    ) {
        let outcome = if !call.is_known {
            let seq = call.seq;
            Recomputation::Gone(format!("its call at seq {seq} cannot be computed again"))
        } else if is_called {
            compare(&read.event.payload, again)
        } else {
            Recomputation::Differs(vec![MemberDifference {
                path: "event".to_owned(),
                recorded: read.event.kind().as_str().into(),
                recomputed: "none: its call comes to something else".into(),
            }])
        };
        let follows = call.differs.then_some(call.seq);
        self.push(read.stored.seq, read.event.kind(), outcome, follows);
    }

    fn opened(&self, said: &JudgeRunOpened) -> JudgeRunOpened {
        let mut again = said.clone();
        if let Some(order) = &self.order {
            let keys = order.iter().map(|(key, _)| key.as_bytes().as_slice());
            again.asks_root = Root(run::root(keys));
            again.asks = count(order.len() as u64);
        }
        again.endpoint = self.calls.basis.plan.endpoint.clone();
        again
    }

    fn resumed(&mut self) -> JudgeRunResumed {
        let now = &mut self.now;
        (now.epoch, now.holds) = (now.epoch + 1, 0);
        (now.epoch_cost, now.epoch_settled) = (0, 0);
        now.is_losing = false;
        JudgeRunResumed {
            epoch: count(now.epoch),
            run: now.said.run.clone(),
        }
    }

    fn reserved(&mut self, said: &BudgetReserved) -> BudgetReserved {
        let covered = usize::try_from(said.asks.value()).unwrap_or(usize::MAX);
        let amount = self.order.as_ref().map(|order| {
            let open = order.iter().filter(|(ask, _)| !self.ended.contains(ask));
            let bounds = open.take(covered).map(|(_, bound)| *bound);
            count(bounds.fold(0, u64::saturating_add).max(1))
        });
        let hold = clover_event::id::Text::new(self.now.next_hold());
        let again = BudgetReserved {
            amount: amount.unwrap_or(said.amount),
            hold: hold.unwrap_or_else(|| said.hold.clone()),
            ..said.clone()
        };
        self.now.holds += 1;
        self.now.hold = Some(RunHold {
            amount: again.amount.value(),
            asks_left: said.asks.value(),
            bounds: 0,
            name: again.hold.clone(),
        });
        again
    }

    /// What a hold is charged: what calls cost beyond what was charged before, and what was observed of attempts that may have
    /// been billed. Where a run goes on after a cut, all of it is unknown.
    fn settled(&mut self, said: &BudgetSettled) -> BudgetSettled {
        let unpaid = self.now.unpaid();
        let goes_on = unpaid > 0 && said.unknown == said.amount;
        let (amount, unknown) = if self.now.is_losing || goes_on {
            (unpaid, unpaid)
        } else {
            let unknown = said.unknown.value();
            (unpaid.saturating_add(unknown), unknown)
        };
        let hold = self.now.hold.take();
        let again = BudgetSettled {
            amount: count(amount),
            hold: hold
                .as_ref()
                .map_or_else(|| said.hold.clone(), |of| of.name.clone()),
            overrun: hold.as_ref().is_some_and(|of| amount > of.amount),
            run: said.run.clone(),
            unknown: count(unknown),
        };
        let now = &mut self.now;
        now.settled = now.settled.saturating_add(amount);
        now.epoch_settled = now.epoch_settled.saturating_add(amount);
        again
    }

    fn closed(&self, said: &JudgeRunClosed) -> JudgeRunClosed {
        JudgeRunClosed {
            by_outcome: self.now.outcomes(),
            cost_usd_micro: count(self.now.cost),
            end: said.end,
            left: count(self.now.left()),
            run: said.run.clone(),
            settled_usd_micro: count(self.now.settled),
        }
    }

    /// Compares a call with what its line comes to.
    fn called(&mut self, seq: u64, id: EventId, said: &CallRecorded) -> Recomputation {
        let key = (said.ask, said.nth.value());
        self.seen.insert(key);
        let (again, outcome) = match self.calls.by_ask.get(&key) {
            None => {
                let why = self.gone.get(&key).cloned();
                let why = why.unwrap_or_else(|| "the cassette has no line of it".to_owned());
                (None, Recomputation::Gone(why))
            }
            Some(line) => self.compared_call(said, line),
        };
        let known = again.as_ref().unwrap_or(said);
        self.now.count(known.outcome, known.cost_usd_micro.value());
        if known.outcome != CallOutcome::Lost {
            self.ended.insert(said.ask);
        }
        let compared = ComparedCall {
            seq,
            differs: matches!(outcome, Recomputation::Differs(_)),
            is_known: again.is_some(),
            score: known.score_micro,
            outcome: known.outcome,
            texts: known.texts,
        };
        self.compared.insert(id, compared);
        outcome
    }

    fn compared_call(
        &self,
        said: &CallRecorded,
        line: &CallAgain,
    ) -> (Option<CallRecorded>, Recomputation) {
        let kept = said.response.as_ref().filter(|_| line.has_body);
        let frame = CallFrame {
            ask: line.ask.unwrap_or(said.ask),
            bound: line.bound,
            epoch: count(self.now.epoch),
            first: said.first,
            hold: self.now.hold.as_ref().map(|of| of.name.clone()),
            judge: self.now.said.judge.clone(),
            nth: said.nth,
            response: kept.map(|of| PrivateRef {
                commitment: line.commitment.unwrap_or(of.commitment),
                ..of.clone()
            }),
            run: self.now.said.run.clone(),
            texts: line.texts.unwrap_or(said.texts),
        };
        let row = self.calls.basis.row.as_ref();
        let mut again = called::recorded(frame, (&line.ended, &line.judged), row);
        // What a provider said of an ask that came to nothing was not kept with a body.
        if line.judged.answer.detail.is_none() && line.ended.reading.is_none() {
            again.detail.clone_from(&said.detail);
        }
        let (one, other) = (Payload::from(said.clone()), Payload::from(again.clone()));
        let mut outcome = compare(&one, &other);
        if let Some(difference) = &line.other_ask {
            let mut all = vec![difference.clone()];
            if let Recomputation::Differs(found) = outcome {
                all.extend(found);
            }
            outcome = Recomputation::Differs(all);
        } else if kept.is_some() && line.commitment.is_none() && outcome == Recomputation::Identical
        {
            let why = "its line has no salt, so nothing shows that its body is the one on record";
            outcome = Recomputation::Gone(why.to_owned());
        }
        (Some(again), outcome)
    }
}

/// Computes a run again, from a cassette, else from the vault, and compares every event of it.
///
/// # Errors
/// [`JudgingError::Cassette`], and what the log or the vault says.
pub fn replayed(
    home: &Home,
    ledger: &Ledger,
    basis: &RunBasis,
    wire: &dyn WireForm,
    cassette: Option<Box<dyn BufRead + Send>>,
) -> Result<RunAgain, SessionError> {
    let mut tape = TapeReader::new(home, ledger, basis, Vec::new())?;
    let mut calls = Calls {
        basis,
        by_ask: BTreeMap::new(),
        pepper: tape.own_pepper()?,
        strays: Vec::new(),
        wire,
    };
    let mut gone = BTreeMap::new();
    if let Some(reader) = cassette {
        cassette::each::<SessionError>(reader, |line, call| {
            calls.take(line, call);
            Ok(())
        })?;
    } else {
        let places = tape.places()?;
        tape::calls(ledger, &basis.run, |_, said| {
            match tape.call(said) {
                Ok(call) => {
                    let place = places.get(&said.ask).copied();
                    calls.take(0, CassetteCall { place, ..call });
                }
                Err(why) => {
                    gone.insert((said.ask, said.nth.value()), why);
                }
            }
            Ok(())
        })?;
    }
    let mut walk = Walk {
        order: calls.order(),
        calls: &calls,
        compared: BTreeMap::new(),
        ended: BTreeSet::new(),
        found: RunAgain::default(),
        now: ModelRun::opened((&basis.run.experiment, basis.run.seq), &basis.run.said),
        seen: BTreeSet::new(),
        gone,
    };
    walk.found.order_known = walk.order.is_some();
    ledger.entries::<SessionError>(basis.run.seq, ledger.size(), |read| {
        walk.event(&read);
        Ok(())
    })?;
    let unseen = calls
        .by_ask
        .iter()
        .filter(|(key, _)| !walk.seen.contains(*key));
    let mut strays: Vec<_> = unseen.map(|(_, of)| of.line).collect();
    strays.extend(&calls.strays);
    strays.sort_unstable();
    walk.found.strays = strays;
    // A run without a call has no digest that could be checked.
    walk.found.texts_checked = calls.pepper.is_some() || walk.compared.is_empty();
    Ok(walk.found)
}
