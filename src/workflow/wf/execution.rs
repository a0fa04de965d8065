//! One execution of a candidate on an item: what is said of it, and the same again from its answers.

use std::collections::BTreeMap;

use clover_event::id::RunId;
use clover_event::payload::BlobRef;
use clover_event::payload::repair::WfCallError;
use clover_event::payload::repair::WfCalled;
use clover_event::payload::repair::WfCrash;
use clover_event::payload::repair::WfExecuted;
use clover_event::payload::repair::WfTraceText;
use clover_flow::Bounds;
use clover_flow::RunOutcome;
use clover_flow::Workflow;
use clover_flow::executor::Executor;
use clover_flow::executor::ExecutorFault;
use clover_flow::executor::StepAnswer;
use clover_flow::executor::StepAsk;
use clover_flow::executor::Usage;
use clover_flow::executor::table::Table;
use clover_flow::executor::table::to_line;
use clover_flow::item::Item;
use clover_flow::trace::CrashReason;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_projection::wf::WfRun;
use clover_projection::wf::count;

use crate::estimate::compute::blob;
use crate::wf::words;

/// Media type of the lines of a run.
pub const LINES: &str = "application/jsonl";

/// Which execution it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionPlace {
    /// The candidate.
    pub candidate: Digest,
    /// Place of the item, from 0.
    pub item: u64,
    /// Which execution of the item, from 0.
    pub rerun: u64,
}

/// What an execution came to.
#[derive(Clone, Debug)]
pub struct ExecutionSaid {
    /// Its calls, in order.
    pub called: Vec<WfCalled>,
    /// What it came to; `None` where the budget ended first.
    pub executed: Option<WfExecuted>,
    /// The lines of its answers, which `executed` names.
    pub answers: Vec<u8>,
}

/// An executor that keeps what another answers, and stops once the budget is spent.
struct ChargedExecutor<'a> {
    inner: &'a mut dyn Executor,
    run: &'a WfRun,
    spent: Usage,
    asked: BTreeMap<Digest, usize>,
    lines: Vec<String>,
    calls: Vec<PaidCall>,
}

/// A call that was made.
struct PaidCall {
    step: String,
    attempt: usize,
    request: Digest,
    answer: StepAnswer,
}

impl Executor for ChargedExecutor<'_> {
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        // What follows the end of a run is not in its budget.
        let is_open = self.run.end.is_none();
        if is_open && self.run.is_spent_with(words::usage(self.spent)) {
            return Err(ExecutorFault::Spent);
        }
        let answer = self.inner.ask(ask)?;
        let asked = self.asked.entry(ask.digest).or_default();
        self.lines
            .push(to_line(None, (ask.digest, *asked), &answer));
        *asked += 1;
        self.spent = self.spent.plus(usage(&answer));
        self.calls.push(PaidCall {
            step: ask.step.to_owned(),
            attempt: ask.attempt,
            request: ask.digest,
            answer: answer.clone(),
        });
        Ok(answer)
    }
}

fn usage(answer: &StepAnswer) -> Usage {
    match answer {
        StepAnswer::Text(_, usage) | StepAnswer::Timeout(usage) | StepAnswer::Failed(_, usage) => {
            *usage
        }
    }
}

fn crash(reason: CrashReason) -> WfCrash {
    match reason {
        CrashReason::Parse => WfCrash::Parse,
        CrashReason::Timeout => WfCrash::Timeout,
        CrashReason::Endpoint => WfCrash::Endpoint,
        CrashReason::Type => WfCrash::Type,
        CrashReason::Bound => WfCrash::Bound,
    }
}

fn called(run: &RunId, place: ExecutionPlace, number: u64, call: &PaidCall) -> WfCalled {
    let (answer, error) = match &call.answer {
        StepAnswer::Text(text, _) => (Some(Digest::sha256(text.as_bytes())), None),
        StepAnswer::Timeout(_) => (None, Some(WfCallError::Timeout)),
        StepAnswer::Failed(..) => (None, Some(WfCallError::Failed)),
    };
    let cost = words::usage(usage(&call.answer));
    WfCalled {
        answer,
        ask: None,
        attempt: count(call.attempt as u64),
        candidate: place.candidate,
        error,
        item: count(place.item),
        ms: cost.ms,
        number: count(number),
        request: call.request,
        rerun: count(place.rerun),
        run: run.clone(),
        step: words::text(&call.step),
        tokens_in: cost.tokens_in,
        tokens_out: cost.tokens_out,
        usd_micro: cost.usd_micro,
    }
}

/// Executes a candidate on an item.
///
/// # Errors
/// [`Unmet`] where its trace is too long to be recorded, and [`ExecutorFault`] within where nothing answers.
pub fn execute(
    run: &WfRun,
    place: ExecutionPlace,
    (workflow, item): (&Workflow, &Item),
    executor: &mut dyn Executor,
) -> Result<Result<ExecutionSaid, ExecutorFault>, Unmet> {
    let mut charged = ChargedExecutor {
        inner: executor,
        run,
        spent: Usage::default(),
        asked: BTreeMap::new(),
        lines: Vec::new(),
        calls: Vec::new(),
    };
    let rerun = usize::try_from(place.rerun).unwrap_or(usize::MAX);
    let outcome = clover_flow::run(
        workflow,
        &item.inputs,
        &mut charged,
        Bounds::default(),
        rerun,
    );
    let calls = (run.calls..).zip(&charged.calls);
    let calls = calls.map(|(number, call)| called(&run.said.run, place, number, call));
    let calls: Vec<WfCalled> = calls.collect();
    let lines = charged.lines.iter();
    let answers: String = lines.map(|line| format!("{line}\n")).collect();
    let answers = answers.into_bytes();
    let executed = match outcome {
        Err(ExecutorFault::Spent) => None,
        Err(fault) => return Ok(Err(fault)),
        Ok(outcome) => Some(executed(&run.said.run, place, &outcome, &answers)?),
    };
    Ok(Ok(ExecutionSaid {
        called: calls,
        executed,
        answers,
    }))
}

/// What is said of an outcome whose models answered these lines.
///
/// # Errors
/// [`Unmet`] where its trace is too long to be recorded.
pub fn executed(
    run: &RunId,
    place: ExecutionPlace,
    outcome: &RunOutcome,
    answers: &[u8],
) -> Result<WfExecuted, Unmet> {
    let trace = canon::to_bytes(&outcome.trace).ok();
    let trace = trace.and_then(|bytes| String::from_utf8(bytes).ok());
    let trace = trace.and_then(WfTraceText::new);
    let named: Option<BlobRef> = (!answers.is_empty()).then(|| blob(answers, LINES));
    Ok(WfExecuted {
        answers: named,
        candidate: place.candidate,
        cost: words::usage(outcome.usage),
        crash: outcome.crash().map(|of| crash(of.reason)),
        item: count(place.item),
        output: outcome.trace.output,
        rerun: count(place.rerun),
        run: run.clone(),
        trace: trace.required("a trace of at most 262144 bytes")?,
        trace_digest: outcome.trace.digest(),
    })
}

/// The outcome of an execution again, from the lines that models answered.
///
/// # Errors
/// [`Unmet`] where a line is none, or does not answer what the workflow asks.
pub fn again(
    (workflow, item): (&Workflow, &Item),
    rerun: u64,
    answers: &[u8],
) -> Result<RunOutcome, Unmet> {
    let mut table = Table::default();
    let text = std::str::from_utf8(answers).ok().required("text")?;
    for line in text.lines() {
        let added = table.add_line(line);
        added.map_err(|fault| Unmet {
            expected: "recorded answers".to_owned(),
            found: format!("{}: {}", fault.path, fault.kind),
        })?;
    }
    let rerun = usize::try_from(rerun).unwrap_or(usize::MAX);
    let outcome = clover_flow::run(workflow, &item.inputs, &mut table, Bounds::default(), rerun);
    outcome.map_err(|fault| Unmet {
        expected: "answers to all that the workflow asks".to_owned(),
        found: fault.to_string(),
    })
}
