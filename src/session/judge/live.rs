//! A judge behind HTTP asks about rows, as a run on record: nothing is sent that was not held for, every ask ends in one word,
//! and a run that was cut goes on from the log.

use std::collections::BTreeMap;
use std::time::Duration;

use clover_event::Kind;
use clover_event::calls::CallOutcome;
use clover_event::id::AccountId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::FirstCall;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::JudgeRunResumed;
use clover_event::payload::model_runs::RescoreTerms;
use clover_event::payload::model_runs::RunEnd;
use clover_event::payload::model_runs::SgdAsked;
use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_workflow::ask::Desk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::dispatch::DispatchRules;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::import::ImportRow;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::judge::run;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::subjects;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;
use crate::judge::live_course;
use crate::judge::live_course::AskedRun;
use crate::judge::live_outlook;
use crate::judge::live_outlook::LiveOutlook;
use crate::judge::live_record::ReadCall;
use crate::judge::live_record::Recorder;
use crate::judge::live_rows::LiveRows;
use crate::judge::live_rows::RowSorter;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;
use crate::tariff;
use crate::tariff::Tariff;
use crate::tariff::TariffTerms;

/// Hexadecimal digits of the name of a lock.
const LOCK_DIGITS: usize = 16;
/// Asks of which no consent is needed, at most.
const UNASKED_MAX: u64 = 1_000;
/// Money of which no consent is needed, at most: one dollar.
const UNASKED_USD_MICRO: u64 = 1_000_000;

/// How a run asks, and who pays.
pub struct AskTerms<'a> {
    /// The account; needed where calls cost something.
    pub account: Option<AccountId>,
    /// The most that the run may cost, in millionths of a dollar.
    pub cap: Option<Count>,
    /// The plan of the judge.
    pub plan: JudgePlan,
    /// The run of a prompt that it scores rows for; none where it scores for none.
    pub sgd: Option<SgdAsked>,
    /// How requests are written and answers are read.
    pub wire: &'a dyn WireForm,
}

/// What a run needs to send.
pub struct LiveTerms<'a> {
    /// How it asks, and who pays.
    pub asks: AskTerms<'a>,
    /// What sends.
    pub desk: &'a mut dyn Desk,
    /// How it sends.
    pub rules: DispatchRules,
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
    /// What the endpoint said last of an ask that came to nothing, without secrets.
    pub complaint: Option<String>,
    /// What is wrong with answers that have not the form, by its word.
    pub details: BTreeMap<String, u64>,
    /// Who answered instead of the pinned model: a name, or nobody who names itself.
    pub other_model: Option<Option<String>>,
    /// The model that has to answer.
    pub pin: String,
    /// Why it stopped before its end.
    pub stopped: Option<StopReason>,
    /// How it ended; none where it can go on.
    pub end: Option<RunEnd>,
    /// Rows that were asked about once a label of their policy could be read.
    pub late: u64,
    /// Asks that came to nothing yet.
    pub left: u64,
    /// Rows whose ask came to no answer.
    pub missed: u64,
    /// Rows that were missed before, and about which nobody asks again.
    pub missed_before: u64,
    /// The run; none where nothing was left to ask.
    pub run: Option<RunId>,
    /// Rows that were scored and are on record now.
    pub scored: u64,
    /// What the run was charged, in millionths of a dollar.
    pub settled: u64,
}

impl LiveCounts {
    /// What is to be said of a call that ended.
    pub(super) fn hear(&mut self, call: &ReadCall) {
        let detail = call.ended.detail.as_ref();
        match call.outcome {
            CallOutcome::Mismatched => {
                let named = call.ended.reading.as_ref().and_then(|of| of.model.clone());
                self.other_model = Some(named);
            }
            CallOutcome::Unparsed => {
                let word = detail.map_or("shape", String::as_str);
                *self.details.entry(word.to_owned()).or_default() += 1;
            }
            CallOutcome::Exhausted | CallOutcome::Rejected => {
                self.complaint = detail.cloned().or(self.complaint.take());
            }
            _ => {}
        }
    }

    /// What is on record of a run.
    pub(super) fn take(&mut self, ledger: &Ledger, run: &RunId) {
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
    /// The call that gave a score first, where it is asked for again.
    pub first: Option<FirstCall>,
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

pub(super) fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: nobody counts to 2^53")
}

/// Keeps other processes from asking for the same judge until it is dropped.
pub(super) fn alone(
    home: &Home,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Result<FileLock, SessionError> {
    let named = Digest::sha256(format!("{experiment}\n{judge}").as_bytes()).to_hex();
    let name: String = named.chars().take(LOCK_DIGITS).collect();
    let path = home.folder().join(format!("asking-{name}"));
    match ambient::lock(&path, Duration::ZERO) {
        Err(AmbientError::Locked { .. }) => Err(JudgingError::Busy(judge.clone()).into()),
        lock => Ok(lock?),
    }
}

/// What stands before a run: its rows, the run that is open, and what calls cost.
struct RunStart {
    sorted: LiveRows,
    open: Option<ModelRun>,
    tariff: Option<Tariff>,
}

/// Reads the rows of an assignment and holds them against what is on record.
fn start(
    home: &Home,
    ledger: &Ledger,
    assignment: &mut Assignment,
    terms: &AskTerms<'_>,
) -> Result<RunStart, SessionError> {
    let rows = std::mem::take(&mut assignment.rows).into_iter();
    let rows = rows.map(|row| {
        let reading = assignment.read(&row)?;
        Ok::<_, JudgingError>((row, reading))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    if assignment.standing(ledger)?.is_some() {
        assignment.registered(ledger)?;
    }
    let pepper = home.vault(ledger.ambient())?.pepper()?;
    let runs = ledger.state().fold::<ModelRuns>();
    let open = runs
        .open(&assignment.experiment, assignment.judge())
        .cloned();
    if let Some(open) = &open {
        if open.said.rescore.is_some() {
            return Err(JudgingError::AskedAgain(open.said.run.clone()).into());
        }
        as_opened(open, terms)?;
    }
    let tariff = tariff(ledger, terms, open.as_ref())?;
    let told = assignment.told_text(ledger)?;
    let sorter = RowSorter {
        ledger,
        assignment,
        plan: &terms.plan,
        wire: terms.wire,
        tariff: tariff.as_ref(),
        pepper: &pepper,
        told: &told,
        open: open.as_ref(),
    };
    let sorted = sorter.sorted(rows)?;
    let asked = sorted.asks.iter().flat_map(|ask| &ask.rows);
    subjects::none_erased_of(home, ledger, asked.map(|(row, _)| row))?;
    Ok(RunStart {
        sorted,
        open,
        tariff,
    })
}

/// A run that is open goes on under the account and the cap that it was opened with: others that are named are refused.
pub(super) fn as_opened(open: &ModelRun, terms: &AskTerms<'_>) -> Result<(), JudgingError> {
    let said = &open.said;
    let is_account = terms.account.is_none() || terms.account == said.account;
    let is_cap = terms.cap.is_none() || terms.cap == said.cap_usd_micro;
    if is_account && is_cap {
        return Ok(());
    }
    Err(JudgingError::OtherTerms {
        account: said.account.clone(),
        cap: said.cap_usd_micro,
        run: said.run.clone(),
    })
}

/// What a run would ask and cost: nothing is sent, and nothing goes on record.
///
/// # Errors
/// As [`run`], but for money and keys.
pub fn outlook(
    home: &Home,
    ledger: &Ledger,
    mut assignment: Assignment,
    terms: &AskTerms<'_>,
) -> Result<LiveOutlook, SessionError> {
    let of = start(home, ledger, &mut assignment, terms)?;
    let money = (terms, of.tariff.as_ref());
    let place = (&assignment.experiment, of.open.as_ref());
    live_outlook::of_rows(ledger, assignment.judge(), &of.sorted, money, place)
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
    let (experiment, plan) = (assignment.experiment.clone(), terms.asks.plan.clone());
    let _alone = alone(home, &experiment, assignment.judge())?;
    ledger.refresh()?;
    let RunStart {
        sorted,
        open,
        tariff,
    } = start(home, ledger, &mut assignment, &terms.asks)?;
    let mut counts = LiveCounts {
        already: sorted.already,
        late: sorted.late(ledger, &experiment),
        missed_before: sorted.missed_before,
        pin: plan.pin.clone(),
        ..LiveCounts::default()
    };
    if sorted.is_done() && open.is_none() {
        return Ok(counts);
    }
    consent(ports, (&sorted, counts.late), &terms, tariff.as_ref())?;
    let scorer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::CallRecorded))?;
    tariff::spender(ledger, &scorer, tariff.as_ref().map(|of| &of.account))?;
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
    let ended = course(
        ports,
        &mut recorder,
        sorted,
        (open, &mut terms),
        &mut counts,
    );
    recorder.ledger.settle()?;
    append::tell_of_pin(ports, recorder.ledger);
    ended?;
    if let Some(run) = counts.run.clone() {
        counts.take(ledger, &run);
    }
    Ok(counts)
}

/// Records what follows from calls on record, opens a run or goes on with one, and asks.
fn course(
    ports: &mut dyn Ports,
    recorder: &mut Recorder<'_>,
    rows: LiveRows,
    (open, terms): (Option<ModelRun>, &mut LiveTerms<'_>),
    counts: &mut LiveCounts,
) -> Result<(), SessionError> {
    let pepper = recorder.home.vault(recorder.ledger.ambient())?.pepper()?;
    let mut asks = rows.asks;
    counts.scored += recorder.answered_before(rows.answered)?;
    counts.missed += recorder.missed_before(&rows.missed)?;
    if asks.is_empty() && open.is_none() {
        return Ok(());
    }
    let (run, epoch) = if let Some(open) = open {
        resumed(recorder, &open, (&rows.keys, &mut asks))?
    } else {
        let of = (asks.len() as u64, root(asks.iter().map(|of| &of.key)));
        (opened(recorder, &terms.asks, of, &|_| None)?, 0)
    };
    counts.run = Some(run.clone());
    let of = AskedRun {
        run: &run,
        epoch,
        asks: &asks,
        requests: &rows.requests,
        pepper: &pepper,
    };
    live_course::asked(ports, recorder, of, terms, counts)
}

/// What calls of the plan cost, and who pays: of a run that is open, as it was opened.
pub(super) fn tariff(
    ledger: &Ledger,
    terms: &AskTerms<'_>,
    open: Option<&ModelRun>,
) -> Result<Option<Tariff>, SessionError> {
    let opened = open.and_then(|of| of.said.account.as_ref().zip(of.said.prices.as_ref()));
    let of = TariffTerms {
        endpoint: &terms.plan.endpoint,
        pin: &terms.plan.pin,
        account: terms.account.as_ref(),
        opened,
    };
    tariff::of(ledger, of)
}

/// More than a thousand asks, or more than a dollar, needs a yes; so does any money for rows that come late.
fn consent(
    ports: &mut dyn Ports,
    (rows, late): (&LiveRows, u64),
    terms: &LiveTerms<'_>,
    tariff: Option<&Tariff>,
) -> Result<(), SessionError> {
    let asks = rows.asks.len() as u64;
    let bounds = rows.asks.iter().map(|of| of.bound.value());
    let most = bounds.fold(0, u64::saturating_add);
    spending(ports, (asks, most, late), terms, tariff)
}

/// Asks whether so many asks may be sent, which cost at most so much.
pub(super) fn spending(
    ports: &mut dyn Ports,
    (asks, most, late): (u64, u64, u64),
    terms: &LiveTerms<'_>,
    tariff: Option<&Tariff>,
) -> Result<(), SessionError> {
    let most = terms.asks.cap.map_or(most, |cap| most.min(cap.value()));
    let is_small = most <= UNASKED_USD_MICRO && (asks <= UNASKED_MAX || tariff.is_none());
    let is_small = is_small && (late == 0 || tariff.is_none());
    if terms.yes || is_small {
        return Ok(());
    }
    let account = tariff.map(|of| of.account.to_string());
    ports.ask(&Question::Spend {
        account,
        asks,
        late,
        most,
    })?;
    Ok(())
}

/// The root of asks, in their order.
fn root<'k>(keys: impl Iterator<Item = &'k Digest>) -> Root {
    Root(run::root(keys.map(|key| key.as_bytes().as_slice())))
}

/// Opens a run of so many asks under their root; `rescore` says, as the log stands, what is asked again.
pub(super) fn opened(
    recorder: &mut Recorder<'_>,
    terms: &AskTerms<'_>,
    (asks, asks_root): (u64, Root),
    rescore: &dyn Fn(&Recorder<'_>) -> Option<RescoreTerms>,
) -> Result<RunId, SessionError> {
    let tariff = recorder.tariff;
    loop {
        let size = recorder.ledger.size();
        let run = RunId::new(format!("run-{size}"));
        let run = run.expect("BUG: a word and a number are a name");
        let said = JudgeRunOpened {
            account: tariff.map(|of| of.account.clone()),
            asks: count(asks),
            asks_root,
            build: Text::new(BUILD).expect("BUG: a build is a text"),
            cap_usd_micro: terms.cap.filter(|_| tariff.is_some()),
            endpoint: terms.plan.endpoint.clone(),
            judge: recorder.judge.clone(),
            prices: tariff.map(|of| of.prices.clone()),
            rescore: rescore(recorder),
            run: run.clone(),
            sgd: terms.sgd.clone(),
        };
        let mut command = recorder.command(said);
        command.refs = vec![recorder.registered];
        match recorder.ledger.append(&[command], recorder.scorer) {
            Ok(_) => return Ok(run),
            // Somebody else took the name, or appended meanwhile.
            Err(error) => recorder.moved(size, error.into())?,
        }
    }
}

/// Goes on with a run that was cut: asks that were held for and have no call are lost, at their bounds, for nobody knows which
/// of them were sent.
fn resumed(
    recorder: &mut Recorder<'_>,
    open: &ModelRun,
    (keys, asks): (&[Digest], &mut [LiveAsk]),
) -> Result<(RunId, u64), SessionError> {
    let run = open.said.run.clone();
    let is_same = root(keys.iter()) == open.said.asks_root && open.left() == asks.len() as u64;
    if !is_same {
        return Err(JudgingError::OtherRows(run).into());
    }
    gone_on(recorder, open, asks)
}

/// Records as lost what a run held for, and that it goes on; with its epoch.
pub(super) fn gone_on(
    recorder: &mut Recorder<'_>,
    open: &ModelRun,
    asks: &mut [LiveAsk],
) -> Result<(RunId, u64), SessionError> {
    let run = open.said.run.clone();
    let mut commands = Vec::new();
    if let Some(hold) = &open.hold {
        let lost = usize::try_from(hold.asks_left).unwrap_or(usize::MAX);
        let mut charged = open.unpaid();
        for ask in asks.iter_mut().take(lost) {
            charged = charged.saturating_add(ask.bound.value());
            commands.push(recorder.lost(open, (hold, ask)));
            ask.nth += 1;
        }
        commands.push(Recorder::settlement((&run, hold), (charged, charged)));
    }
    let epoch = open.epoch + 1;
    let said = JudgeRunResumed {
        epoch: count(epoch),
        run: run.clone(),
    };
    commands.push(recorder.command(said));
    recorder.ledger.append(&commands, recorder.scorer)?;
    Ok((run, epoch))
}
