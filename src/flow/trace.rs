//! What a run did, step by step, and its digest.

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;

use crate::executor::Usage;
use crate::value::Data;

/// Domain of a trace's digest.
const TRACE_LABEL: &str = "clover/wf-trace/v1";

/// Why a run ended before it returned anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CrashReason {
    /// A text is no JSON, or holds no match of a pattern.
    Parse,
    /// A model gave no answer in time.
    Timeout,
    /// A model's endpoint answered with an error.
    Endpoint,
    /// A value is not there, or not of the kind that a step needs.
    Type,
    /// More steps, calls, bytes or work than a run may have.
    Bound,
}

impl CrashReason {
    /// The word of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Timeout => "timeout",
            Self::Endpoint => "endpoint",
            Self::Type => "type",
            Self::Bound => "bound",
        }
    }
}

/// How a run ended before it returned anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// What was wrong, in a sentence: places and what was wanted there. It stands in public events, so that nothing of an
    /// answer is in it.
    pub detail: String,
    /// Why.
    pub reason: CrashReason,
    /// The step; empty for what the workflow returns at its end.
    pub step: String,
}

/// What a step read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceRead {
    /// Digest of what stood there; `null` where nothing did.
    pub digest: Option<Digest>,
    /// The path.
    pub path: String,
}

/// What a step wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceWrite {
    /// Its digest.
    pub digest: Digest,
    /// The name.
    pub name: String,
}

/// What a step asked of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceCall {
    /// SHA-256 of the text that came back; `null` where none did.
    pub answer: Option<Digest>,
    /// SHA-256 of the canonical request.
    pub request: Digest,
}

/// A flag that a step set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TraceFlag {
    /// Whether an output is of no use where it is false.
    pub hard: bool,
    /// The flag.
    pub id: String,
    /// What it was set to.
    pub ok: bool,
}

/// What a guard did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceGuard {
    /// Whether what it guards against is still true.
    pub still: bool,
    /// How often it ran its target again.
    pub tries: u64,
}

/// One execution of a step. A guard stands after the executions that it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceStep {
    /// How often the step was executed before in this run.
    pub attempt: usize,
    /// What it asked of a model.
    pub call: Option<TraceCall>,
    /// The flag that it set.
    pub flag: Option<TraceFlag>,
    /// What it did as a guard.
    pub guard: Option<TraceGuard>,
    /// What it read, in order.
    pub reads: Vec<TraceRead>,
    /// The step.
    pub step: String,
    /// What it wrote.
    pub writes: Option<TraceWrite>,
}

/// What a run did. It holds no time and no cost: the same answers give the same trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// How it ended, if it crashed.
    pub crash: Option<Crash>,
    /// Digest of what it returned.
    pub output: Option<Digest>,
    /// Executions, in order.
    pub steps: Vec<TraceStep>,
    /// Digest of the workflow.
    pub workflow: Digest,
}

impl Trace {
    /// SHA-256 of `clover/wf-trace/v1`, a zero byte and its canonical form.
    pub fn digest(&self) -> Digest {
        canon::digest(TRACE_LABEL, self)
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// What it returned; `None` where it crashed.
    pub output: Option<Data>,
    /// Flags as they stood at its end, in the order of their checks.
    pub flags: Vec<TraceFlag>,
    /// Hard flags whose check never ran though the run returned, in the order of the steps.
    pub unchecked: Vec<String>,
    /// What it did.
    pub trace: Trace,
    /// What it cost.
    pub usage: Usage,
}

impl RunOutcome {
    /// How it ended, if it crashed.
    pub fn crash(&self) -> Option<&Crash> {
        self.trace.crash.as_ref()
    }

    /// Hard flags that are false, or that nothing asked: no constraint is kept that was not checked. Nothing crashed.
    pub fn violations(&self) -> impl Iterator<Item = &str> {
        let broken = self.flags.iter().filter(|flag| flag.hard && !flag.ok);
        let broken = broken.map(|flag| flag.id.as_str());
        broken.chain(self.unchecked.iter().map(String::as_str))
    }
}
