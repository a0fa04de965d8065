//! A judge behind HTTP asks about rows, as a run on record: nothing is sent that was not held for, every ask ends in one word,
//! and a run that was cut goes on from the log.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::AccountId;
use clover_event::id::PriceTableId;
use clover_event::id::Root;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallOf;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::JudgeRunResumed;
use clover_event::payload::model_runs::RunEnd;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::budgets::Budgets;
use clover_projection::endpoints::Endpoints;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_workflow::ask::Desk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::dispatch::DispatchRules;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::judged::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::Sending;
use clover_workflow::ask::sending::SendingTurn;
use clover_workflow::import::ImportRow;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::judge::run;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;
use crate::judge::live_record::ReadCall;
use crate::judge::live_record::Recorder;
use crate::judge::live_record::RunBatch;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Work;

/// Asks that one hold covers beyond those that are open, at most.
const WINDOW: usize = 128;
/// Answers that go on record together, at most.
const TOGETHER: usize = 256;
/// How long an answer waits for others before it goes on record, in turns of the desk of a tenth of a second.
const BEATS: u32 = 5;
/// How long answers that are on their way are waited for when somebody asks to stop, in turns.
const LAST_BEATS: u32 = 300;
/// Asks of which no consent is needed, at most.
const UNASKED_MAX: u64 = 1_000;
/// Money of which no consent is needed, at most: one dollar.
const UNASKED_USD_MICRO: u64 = 1_000_000;

/// How a run asks, and who pays.
pub struct LiveTerms<'a> {
    /// The account; needed where calls cost something.
    pub account: Option<AccountId>,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap: Option<Count>,
    /// What sends.
    pub desk: &'a mut dyn Desk,
    /// The plan of the judge.
    pub plan: JudgePlan,
    /// How it sends.
    pub rules: DispatchRules,
    /// How requests are written and answers are read.
    pub wire: &'a dyn WireForm,
    /// Whether somebody agreed to what it may cost.
    pub yes: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Rows that were on record before.
    pub already: u64,
    /// Calls by what they came to.
    pub by_outcome: BTreeMap<String, u64>,
    /// What its calls cost, in millionths of a dollar.
    pub cost: u64,
    /// Why it stopped before its end.
    pub stopped: Option<StopReason>,
    /// How it ended; none where it can go on.
    pub end: Option<RunEnd>,
    /// Asks that came to nothing yet.
    pub left: u64,
    /// Rows whose ask came to no answer.
    pub missed: u64,
    /// The run; none where nothing was left to ask.
    pub run: Option<RunId>,
    /// Rows that were scored and are on record now.
    pub scored: u64,
    /// What the run was charged, in millionths of a dollar.
    pub settled: u64,
}

impl LiveCounts {
    /// What is on record of a run.
    fn take(&mut self, ledger: &Ledger, run: &RunId) {
        let runs = ledger.state().fold::<ModelRuns>();
        if let Some(of) = runs.by_id.get(run) {
            self.by_outcome = of.by_outcome.clone();
            (self.cost, self.settled) = (of.cost, of.settled);
            (self.end, self.left) = (of.end, of.left());
        }
    }
}

/// One ask with the rows that it stands for.
pub(super) struct LiveAsk {
    /// The ask's key.
    pub key: Digest,
    /// Which call of it is next.
    pub nth: u64,
    /// Rows of its texts.
    pub rows: Vec<(ImportRow, Reading)>,
    /// Its texts.
    pub texts: AskedTexts,
    /// The most that one attempt may cost.
    pub bound: Count,
}

/// What a run needs to know of money: prices and the account; none at a free endpoint.
#[derive(Clone, Debug)]
pub(super) struct Tariff {
    pub account: AccountId,
    pub prices: PriceTableId,
    pub row: PriceRow,
}

/// Rows of an assignment by what is to be done.
struct LiveRows {
    already: u64,
    /// Rows whose text was scored before: with their score and its call.
    answered: Vec<(ImportRow, Reading, Micro, CallOf)>,
    /// Asks in the order of their rows, with the request of each.
    asks: Vec<LiveAsk>,
    requests: Vec<AskRequest>,
}

fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: nobody counts to 2^53")
}

/// Asks the judge of an assignment about every row that has no score of it yet.
///
/// # Errors
/// [`JudgingError`]; what was answered before is on record, and what was held is settled.
pub fn run(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    mut assignment: Assignment,
    mut terms: LiveTerms<'_>,
) -> Result<LiveCounts, SessionError> {
    let rows = std::mem::take(&mut assignment.rows).into_iter();
    let rows = rows.map(|row| {
        let reading = assignment.read(&row)?;
        Ok::<_, JudgingError>((row, reading))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    if assignment.standing(ledger)?.is_some() {
        assignment.registered(ledger)?;
    }
    let tariff = tariff(ledger, &terms)?;
    let sorted = sorted(home, ledger, &assignment, rows, (&terms, tariff.as_ref()))?;
    let mut counts = LiveCounts {
        already: sorted.already,
        ..LiveCounts::default()
    };
    let (experiment, plan) = (assignment.experiment.clone(), terms.plan.clone());
    let pepper = home.vault(ledger.ambient())?.pepper()?;
    let runs = ledger.state().fold::<ModelRuns>();
    let open = runs.open(&experiment, assignment.judge()).cloned();
    if sorted.asks.is_empty() && sorted.answered.is_empty() && open.is_none() {
        return Ok(counts);
    }
    consent(&sorted, &terms, tariff.as_ref())?;
    let scorer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::CallRecorded))?;
    spender(ledger, &scorer, tariff.as_ref())?;
    let registered = match assignment.standing(ledger)? {
        Some(_) => assignment.registered(ledger)?,
        None => assignment.register(ledger, &scorer)?,
    };
    let mut recorder = Recorder {
        home,
        ledger,
        experiment: &experiment,
        judge: assignment.judge(),
        registered,
        scorer: &scorer,
        plan: &plan,
        tariff: tariff.as_ref(),
    };
    let LiveRows {
        answered,
        asks,
        requests,
        ..
    } = sorted;
    counts.scored += recorder.answered_before(answered)?;
    if asks.is_empty() && open.is_none() {
        return Ok(counts);
    }
    let run = match open {
        Some(open) => resumed(&mut recorder, &open, &asks)?,
        None => opened(&mut recorder, &terms, &asks)?,
    };
    counts.run = Some(run.clone());
    let of = (&run, asks.as_slice(), requests.as_slice());
    let ended = asked(ports, &mut recorder, of, (&mut terms, &pepper), &mut counts);
    recorder.ledger.settle()?;
    append::tell_of_pin(ports, recorder.ledger);
    ended?;
    counts.take(ledger, &run);
    Ok(counts)
}

/// What calls of the plan cost, and who pays.
fn tariff(ledger: &Ledger, terms: &LiveTerms<'_>) -> Result<Option<Tariff>, SessionError> {
    let state = ledger.state();
    let endpoints = state.fold::<Endpoints>();
    let plan = &terms.plan;
    let place = endpoints.by_id.get(&plan.endpoint);
    let place = place.ok_or_else(|| JudgingError::NoEndpoint(plan.endpoint.clone()))?;
    if place.said.free {
        return Ok(None);
    }
    let provider = place.said.provider.as_str();
    let priced = endpoints.price(provider, &plan.pin, PriceMode::Live);
    let (prices, row) = priced.ok_or_else(|| JudgingError::Unpriced {
        model: plan.pin.clone(),
        provider: provider.to_owned(),
    })?;
    let account = terms.account.clone().ok_or(JudgingError::NoAccount)?;
    if !state.fold::<Budgets>().accounts.contains_key(&account) {
        return Err(JudgingError::UnknownAccount(account).into());
    }
    Ok(Some(Tariff {
        account,
        prices: prices.clone(),
        row: row.clone(),
    }))
}

/// Whoever signs the run also spends from its account: one key signs what goes on record together.
fn spender(ledger: &Ledger, scorer: &Signer, tariff: Option<&Tariff>) -> Result<(), SessionError> {
    let Some(tariff) = tariff else {
        return Ok(());
    };
    let state = ledger.state();
    let key = state.keyring.keys.get(&scorer.id());
    let account = state.fold::<Budgets>().accounts.get(&tariff.account);
    let spends = key.zip(account).is_some_and(|(key, account)| {
        let mut roles = key.roles.as_slice().iter();
        roles.any(|role| account.spenders.contains(*role))
    });
    if spends {
        return Ok(());
    }
    let spenders = account.map_or_else(String::new, |of| of.spenders.to_string());
    let account = tariff.account.clone();
    Err(JudgingError::NoSpender { account, spenders }.into())
}

/// More than a thousand asks, or more than a dollar, needs a yes.
fn consent(
    rows: &LiveRows,
    terms: &LiveTerms<'_>,
    tariff: Option<&Tariff>,
) -> Result<(), SessionError> {
    let asks = rows.asks.len() as u64;
    let bounds = rows.asks.iter().map(|of| of.bound.value());
    let most = bounds.fold(0, u64::saturating_add);
    let most = terms.cap.map_or(most, |cap| most.min(cap.value()));
    let is_small = most <= UNASKED_USD_MICRO && (asks <= UNASKED_MAX || tariff.is_none());
    if terms.yes || is_small {
        return Ok(());
    }
    Err(JudgingError::NeedsYes { asks, most }.into())
}

/// Rows against the records of their judge. One ask stands for all rows of its texts.
fn sorted(
    home: &Home,
    ledger: &Ledger,
    assignment: &Assignment,
    rows: Vec<(ImportRow, Reading)>,
    (terms, tariff): (&LiveTerms<'_>, Option<&Tariff>),
) -> Result<LiveRows, SessionError> {
    let pepper = home.vault(ledger.ambient())?.pepper()?;
    let told = assignment.told_text(ledger)?;
    let records = assignment.recorded(ledger)?;
    let mut first = BTreeMap::new();
    let mut done = BTreeSet::new();
    for of in &records {
        first.entry(of.raw_key).or_insert(of);
        done.insert((of.raw_key, of.policy.clone(), of.item.clone(), of.draw));
    }
    let mut found = LiveRows {
        already: 0,
        answered: Vec::new(),
        asks: Vec::new(),
        requests: Vec::new(),
    };
    let mut alike: BTreeMap<Digest, usize> = BTreeMap::new();
    for (row, reading) in rows {
        let key = reading.raw_key;
        let own = (key, row.policy.clone(), row.item.clone(), row.draw);
        if done.contains(&own) {
            found.already += 1;
        } else if let Some(record) = first.get(&key) {
            let call = call_of(ledger, assignment, record)?;
            found.answered.push((row, reading, record.b_micro, call));
        } else if let Some(at) = alike.get(&key) {
            found.asks[*at].rows.push((row, reading));
        } else if let Some((ask, request)) =
            live_ask(ledger, (terms, tariff), (&pepper, &told), (row, reading))?
        {
            alike.insert(key, found.asks.len());
            found.asks.push(ask);
            found.requests.push(request);
        }
    }
    Ok(found)
}

/// The call that a recorded score stands on.
fn call_of(
    ledger: &Ledger,
    assignment: &Assignment,
    record: &run::RawRecord,
) -> Result<CallOf, SessionError> {
    let lost = || JudgingError::NoCall {
        item: record.item.clone(),
        judge: assignment.judge().clone(),
    };
    let key = clover_event::registry::score_key(
        assignment.experiment.as_str(),
        assignment.judge().as_str(),
        record.policy.as_str(),
        (record.item.as_str(), record.draw),
    );
    let seq = ledger.giver(&key)?.ok_or_else(lost)?;
    let read = ledger.entry(seq)?;
    match read.map(|read| read.event.payload) {
        Some(Payload::ScoreRecorded(said)) => Ok(said.call.ok_or_else(lost)?),
        _ => Err(lost().into()),
    }
}

/// The ask about a row with its request; `None` where it was asked before and is not asked again.
fn live_ask(
    ledger: &Ledger,
    (terms, tariff): (&LiveTerms<'_>, Option<&Tariff>),
    (pepper, told): (&[u8; 32], &str),
    (row, reading): (ImportRow, Reading),
) -> Result<Option<(LiveAsk, AskRequest)>, SessionError> {
    let texts = reading.texts();
    let said = (
        row.prompt.as_deref().unwrap_or_default(),
        row.response.as_deref().unwrap_or_default(),
    );
    let fenced = FencedRow::new(pepper, (&texts.x_hash, &texts.a_hash), said);
    if fenced.is_overlong() {
        return Err(JudgingError::Overlong { line: row.line }.into());
    }
    let ask = terms.plan.ask(told, &fenced);
    let key = ask.keyed(pepper);
    let runs = ledger.state().fold::<ModelRuns>();
    let nth = match runs.again.get(&key.to_hex()) {
        // What came to nothing in a run that is open waits for the next one.
        Some(again) if runs.is_open(&again.run) => return Ok(None),
        Some(again) => again.nth + 1,
        None => 0,
    };
    let known = clover_event::registry::call_key(&key, Count::default());
    if nth == 0 && ledger.giver(&known)?.is_some() {
        return Ok(None);
    }
    let request = AskRequest::of(terms.wire, ask);
    let bound = tariff.map_or_else(Count::default, |of| {
        of.row
            .bound(request.body.len(), terms.plan.max_output_tokens)
    });
    let ask = LiveAsk {
        key,
        nth,
        rows: vec![(row, reading)],
        texts,
        bound,
    };
    Ok(Some((ask, request)))
}

/// The root of asks, in their order.
fn root(asks: &[LiveAsk]) -> Root {
    Root(run::root(
        asks.iter().map(|of| of.key.as_bytes().as_slice()),
    ))
}

/// Opens a run.
fn opened(
    recorder: &mut Recorder<'_>,
    terms: &LiveTerms<'_>,
    asks: &[LiveAsk],
) -> Result<RunId, SessionError> {
    let run = RunId::new(format!("run-{}", recorder.ledger.size()));
    let run = run.expect("BUG: a word and a number are a name");
    let tariff = recorder.tariff;
    let said = JudgeRunOpened {
        account: tariff.map(|of| of.account.clone()),
        asks: count(asks.len() as u64),
        asks_root: root(asks),
        build: Text::new(BUILD).expect("BUG: a build is a text"),
        cap_usd_micro: terms.cap.filter(|_| tariff.is_some()),
        endpoint: terms.plan.endpoint.clone(),
        judge: recorder.judge.clone(),
        prices: tariff.map(|of| of.prices.clone()),
        run: run.clone(),
    };
    let mut command = Command::new(said, Some(recorder.experiment.clone()));
    command.refs = vec![recorder.registered];
    recorder.ledger.append(&[command], recorder.scorer)?;
    Ok(run)
}

/// Goes on with a run that was cut. What it held is charged in full: nobody knows what of it was sent.
fn resumed(
    recorder: &mut Recorder<'_>,
    open: &ModelRun,
    asks: &[LiveAsk],
) -> Result<RunId, SessionError> {
    let run = open.said.run.clone();
    let (left, found) = (open.left(), asks.len() as u64);
    if left != found {
        return Err(JudgingError::OtherRows { run, left, found }.into());
    }
    let mut commands = Vec::new();
    if let Some(hold) = &open.hold {
        let amount = hold.amount.max(open.unpaid());
        let unknown = amount.saturating_sub(open.unpaid());
        commands.push(recorder.settlement((&run, hold), (amount, unknown)));
    }
    let said = JudgeRunResumed {
        epoch: count(open.epoch + 1),
        run: run.clone(),
    };
    commands.push(recorder.command(said));
    recorder.ledger.append(&commands, recorder.scorer)?;
    Ok(run)
}

/// Asks that are under way.
struct Course<'a> {
    run: &'a RunId,
    asks: &'a [LiveAsk],
    /// The first ask that is in no hold yet.
    next: usize,
    /// Asks of the hold that came to nothing yet.
    open: BTreeSet<usize>,
    /// Calls that are not on record yet.
    ended: Vec<ReadCall>,
    /// Whether nothing more fits into the account or the cap.
    is_capped: bool,
}

impl Course<'_> {
    fn bound(&self, at: usize) -> u64 {
        self.asks.get(at).map_or(0, |of| of.bound.value())
    }

    /// How many of the next asks a hold covers beside those that are open, and what it holds; as many as there is room for,
    /// and all of them where nothing costs anything.
    fn window(&self, room: Option<u64>) -> (usize, u64) {
        let left = self.asks.len() - self.next;
        let Some(room) = room else {
            return (left, 0);
        };
        let open = self.open.iter().map(|at| self.bound(*at));
        let mut amount = open.fold(0, u64::saturating_add);
        for more in 0..left.min(WINDOW) {
            let sum = amount.saturating_add(self.bound(self.next + more));
            if sum > room {
                return (more, amount);
            }
            amount = sum;
        }
        (left.min(WINDOW), amount)
    }

    /// What attempts of open asks that may have been billed come to.
    fn unknown(&self, attempts: &[(u64, u64)]) -> u64 {
        let open = attempts.iter().filter_map(|(place, maybe)| {
            let at = usize::try_from(*place).ok()?;
            let is_open = self.open.contains(&at);
            is_open.then(|| self.bound(at).saturating_mul(*maybe))
        });
        open.fold(0, u64::saturating_add)
    }

    /// Whether nothing is left to send.
    fn is_over(&self) -> bool {
        self.open.is_empty() && (self.next == self.asks.len() || self.is_capped)
    }
}

/// Asks, records what comes back, and ends the run where nothing is left to do.
fn asked(
    ports: &mut dyn Ports,
    recorder: &mut Recorder<'_>,
    (run, asks, requests): (&RunId, &[LiveAsk], &[AskRequest]),
    (terms, pepper): (&mut LiveTerms<'_>, &[u8; 32]),
    counts: &mut LiveCounts,
) -> Result<(), SessionError> {
    let ambient = recorder.ledger.ambient().clone();
    let jitter = SeedTree::of_number(u64::from_be_bytes(ambient.random::<8>()?));
    let mut sending = Sending::held_back(terms.desk, terms.wire, requests, (terms.rules, jitter));
    let mut course = Course {
        run,
        asks,
        next: 0,
        open: BTreeSet::new(),
        ended: Vec::new(),
        is_capped: false,
    };
    record(recorder, &mut course, &mut sending, RunNext::Hold, counts)?;
    let all = asks.len() as u64;
    let (mut beats, mut last) = (0, 0);
    let mut stopped = None;
    while !course.is_over() {
        let due = match sending.next(ambient.now()) {
            SendingTurn::Ended(call) => {
                let call = recorder.read(asks, pepper, *call);
                if call.outcome == CallOutcome::Mismatched {
                    sending.stop(StopReason::Mismatched);
                }
                course.ended.push(call);
                course.ended.len() >= TOGETHER
            }
            SendingTurn::Beat => {
                beats += 1;
                beats >= BEATS && !course.ended.is_empty()
            }
            SendingTurn::Done | SendingTurn::Hold => true,
            SendingTurn::Stopped(reason) => {
                stopped = Some(reason);
                break;
            }
        };
        if due {
            beats = 0;
            record(recorder, &mut course, &mut sending, RunNext::Hold, counts)?;
            ports.progress(
                Work::Judging,
                all - (course.open.len() + all_left(&course)) as u64,
                all,
            );
        }
        if ports.is_interrupted() {
            sending.stop(StopReason::Interrupted);
            last += 1;
            if last > LAST_BEATS {
                stopped = Some(StopReason::Interrupted);
                break;
            }
        }
    }
    let (late, _) = sending.leave();
    let late = late
        .into_iter()
        .map(|call| recorder.read(asks, pepper, call));
    course.ended.extend(late);
    let next = match stopped {
        Some(StopReason::Interrupted) => RunNext::Nothing,
        Some(StopReason::Capped) => RunNext::End(RunEnd::Capped),
        Some(_) => RunNext::End(RunEnd::Stopped),
        None if course.next == asks.len() => RunNext::End(RunEnd::Completed),
        None => RunNext::End(RunEnd::Capped),
    };
    counts.stopped = stopped;
    record(recorder, &mut course, &mut sending, next, counts)
}

/// Asks that were in no hold yet.
fn all_left(course: &Course<'_>) -> usize {
    course.asks.len() - course.next
}

/// What follows what goes on record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunNext {
    /// The next hold, where anything is left.
    Hold,
    /// Nothing: the run may go on later.
    Nothing,
    /// The end of the run.
    End(RunEnd),
}

/// Records calls that ended, settles what was held for them, and holds for what follows: all of it together.
fn record(
    recorder: &mut Recorder<'_>,
    course: &mut Course<'_>,
    sending: &mut Sending<'_>,
    next: RunNext,
    counts: &mut LiveCounts,
) -> Result<(), SessionError> {
    let mut calls = std::mem::take(&mut course.ended);
    calls.sort_by_key(|of| of.at);
    for call in &calls {
        course.open.remove(&call.at);
    }
    let runs = recorder.ledger.state().fold::<ModelRuns>();
    let standing = runs.by_id.get(course.run);
    let standing = standing
        .expect("BUG: the run was opened or found here")
        .clone();
    let cost = calls.iter().map(|of| of.cost.value());
    let cost = cost.fold(standing.unpaid(), u64::saturating_add);
    let unknown = course.unknown(&sending.maybe_billed());
    let amount = cost
        .saturating_add(unknown)
        .saturating_sub(standing.ahead());
    let mut batch = RunBatch::new(course.run, &standing);
    batch.calls = calls;
    batch.settle = standing
        .hold
        .as_ref()
        .map(|_| (amount, unknown.min(amount)));
    let (more, held) = match next {
        RunNext::Hold => {
            let room = recorder.room(&standing, amount);
            let (more, held) = course.window(room);
            match room {
                // Asks on their way fit, as they were held for; those that wait for a hold do not, and are not sent again.
                Some(room) if held > room => {
                    sending.stop(StopReason::Capped);
                    (0, room)
                }
                _ => (more, held),
            }
        }
        RunNext::Nothing | RunNext::End(_) => (0, 0),
    };
    let places = course.next..course.next + more;
    course.is_capped = next == RunNext::Hold && more == 0 && all_left(course) > 0;
    let covered = (course.open.len() + more) as u64;
    batch.hold = (held > 0).then_some((covered, held));
    batch.end = match next {
        RunNext::End(end) => Some(end),
        _ => None,
    };
    let found = recorder.record(course.asks, batch)?;
    counts.scored += found.scored;
    counts.missed += found.missed;
    course.next = places.end;
    course.open.extend(places.clone());
    sending.held();
    for place in places {
        sending.add(place as u64);
    }
    Ok(())
}
