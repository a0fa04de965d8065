//! The trace of an execution against the calls that stand on record: it is of its candidate, and asks nothing else.

use clover_event::payload::repair::WfExecuted;
use clover_ground::digest::Digest;
use clover_ledger::RuleAnswer;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use serde::Deserialize;

use super::WfRun;

/// Domain of the digest of a trace.
const TRACE_LABEL: &str = "clover/wf-trace/v1";

/// What of a trace is held against the record.
#[derive(Debug, Deserialize)]
struct Trace {
    crash: Option<Crash>,
    output: Option<Digest>,
    steps: Vec<TracedStep>,
    workflow: Digest,
}

#[derive(Debug, Deserialize)]
struct Crash {
    reason: String,
}

#[derive(Debug, Deserialize)]
struct TracedStep {
    attempt: u64,
    call: Option<TracedCall>,
    step: String,
}

#[derive(Debug, Deserialize)]
struct TracedCall {
    answer: Option<Digest>,
    request: Digest,
}

/// Holds a trace against the execution that has it.
pub(super) fn check(run: &WfRun, said: &WfExecuted) -> RuleAnswer {
    let text = said.trace.as_str();
    let digest = Digest::labelled(TRACE_LABEL, text.as_bytes());
    let expected = format!("the digest of the trace, {digest}");
    let found = said.trace_digest;
    ensure!(found == digest, expected, found.to_string());
    let trace: Trace = serde_json::from_str(text).map_err(|error| Unmet {
        expected: "a trace".to_owned(),
        found: error.to_string(),
    })?;
    let expected = format!("a trace of {}", said.candidate);
    let is_own = trace.workflow == said.candidate;
    ensure!(is_own, expected, trace.workflow.to_string());
    let is_same = trace.output == said.output;
    ensure!(is_same, "the output of the trace", "another");
    let crash = trace.crash.as_ref().map(|of| of.reason.as_str());
    let is_same = crash
        == said
            .crash
            .map(clover_event::payload::repair::WfCrash::as_str);
    ensure!(is_same, "the end of the trace", "another");
    let calls = trace.steps.iter();
    let calls = calls.filter_map(|step| Some((step, step.call.as_ref()?)));
    let calls: Vec<_> = calls.collect();
    let expected = format!("{} calls in the trace", run.pending.len());
    let found = calls.len();
    ensure!(found == run.pending.len(), expected, found.to_string());
    for ((step, call), on_record) in calls.into_iter().zip(&run.pending) {
        let is_it = step.step == on_record.step.as_str()
            && step.attempt == on_record.attempt.value()
            && call.request == on_record.request
            && call.answer == on_record.answer;
        let expected = format!("call {} in the trace", on_record.number);
        ensure!(is_it, expected, format!("another call of {}", step.step));
    }
    Ok(())
}
