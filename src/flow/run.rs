//! Running a workflow.
//!
//! Steps run in order. A guard whose `when` is true runs its target again, with its note added to the prompt, then
//! every step between the target and itself, and asks again, up to `max_tries` times; a guard among those steps does the
//! same within. Steps, calls, bytes and work are bounded, so that every run ends.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clover_ground::digest::Digest;

use crate::executor::Executor;
use crate::executor::ExecutorFault;
use crate::executor::StepAnswer;
use crate::executor::StepAsk;
use crate::executor::Usage;
use crate::executor::request_digest;
use crate::map;
use crate::memory::Memory;
use crate::memory::Spent;
use crate::path::Path;
use crate::read::FLAGS;
use crate::request;
use crate::template::Template;
use crate::trace::Crash;
use crate::trace::CrashReason;
use crate::trace::RunOutcome;
use crate::trace::Trace;
use crate::trace::TraceCall;
use crate::trace::TraceFlag;
use crate::trace::TraceGuard;
use crate::trace::TraceRead;
use crate::trace::TraceStep;
use crate::trace::TraceWrite;
use crate::value::Data;
use crate::value::shortened;
use crate::workflow::Action;
use crate::workflow::CheckStep;
use crate::workflow::GuardStep;
use crate::workflow::LlmStep;
use crate::workflow::MapStep;
use crate::workflow::ReturnStep;
use crate::workflow::Step;
use crate::workflow::Workflow;

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most executions of steps.
    pub steps: usize,
    /// Most calls of models.
    pub calls: usize,
    /// Most bytes that all values take at a time.
    pub bytes: usize,
    /// Most bytes of a text: an answer, a prompt, a filled template.
    pub text: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            steps: 500,
            calls: 60,
            bytes: 1 << 20,
            text: 64 * 1024,
        }
    }
}

/// Why a run ends before its last step.
enum Halt {
    /// It crashed.
    Crash(CrashReason, String),
    /// A return step ended it.
    Return(Data),
    /// Nothing answers.
    Executor(ExecutorFault),
}

impl From<Spent> for Halt {
    fn from(spent: Spent) -> Self {
        Self::Crash(CrashReason::Bound, spent.to_string())
    }
}

impl From<(CrashReason, String)> for Halt {
    fn from((reason, detail): (CrashReason, String)) -> Self {
        Self::Crash(reason, detail)
    }
}

/// Runs a workflow over its inputs; `rerun` tells repeated runs of the same inputs apart.
///
/// # Errors
/// [`ExecutorFault`] where the executor cannot answer at all. Everything else that goes wrong is an outcome.
pub fn run(
    workflow: &Workflow,
    inputs: &BTreeMap<String, Data>,
    executor: &mut dyn Executor,
    bounds: Bounds,
    rerun: usize,
) -> Result<RunOutcome, ExecutorFault> {
    let mut runner = Runner {
        workflow,
        memory: Memory::new(inputs.clone()),
        executor,
        bounds,
        rerun,
        attempts: vec![0; workflow.steps.len()],
        executed: 0,
        calls: 0,
        usage: Usage::default(),
        trace: Vec::new(),
        at: None,
    };
    let ended = runner.all();
    let (output, crash) = match ended {
        Ok(value) | Err(Halt::Return(value)) => (Some(value), None),
        Err(Halt::Executor(fault)) => return Err(fault),
        Err(Halt::Crash(reason, detail)) => {
            let step = runner.at.map(|at| workflow.steps[at].id.clone());
            let step = step.unwrap_or_default();
            (
                None,
                Some(Crash {
                    detail,
                    reason,
                    step,
                }),
            )
        }
    };
    let flags = workflow.steps.iter().filter_map(|step| match &step.action {
        Action::Check(check) => Some(TraceFlag {
            hard: check.is_hard,
            id: check.flag.clone(),
            ok: runner.memory.flag(&check.flag)?,
        }),
        _ => None,
    });
    let unchecked = workflow.steps.iter().filter_map(|step| match &step.action {
        Action::Check(check) if check.is_hard && crash.is_none() => {
            let is_open = runner.memory.flag(&check.flag).is_none();
            is_open.then(|| check.flag.clone())
        }
        _ => None,
    });
    Ok(RunOutcome {
        flags: flags.collect(),
        unchecked: unchecked.collect(),
        trace: Trace {
            crash,
            output: output.as_ref().map(Data::digest),
            steps: runner.trace,
            workflow: workflow.digest(),
        },
        output,
        usage: runner.usage,
    })
}

struct Runner<'a> {
    workflow: &'a Workflow,
    memory: Memory,
    executor: &'a mut dyn Executor,
    bounds: Bounds,
    rerun: usize,
    /// Executions of each step.
    attempts: Vec<usize>,
    executed: usize,
    calls: usize,
    usage: Usage,
    trace: Vec<TraceStep>,
    /// The step that runs.
    at: Option<usize>,
}

impl Runner<'_> {
    fn all(&mut self) -> Result<Data, Halt> {
        let workflow = self.workflow;
        for name in &workflow.inputs {
            let path = Path::parse(name);
            if path.is_none_or(|path| self.memory.find(&path).is_none()) {
                let detail = format!("the input {name} is not given");
                return Err(Halt::Crash(CrashReason::Type, detail));
            }
        }
        for at in 0..workflow.steps.len() {
            self.step(at, None)?;
        }
        self.at = None;
        self.value(&workflow.returns)
    }

    /// A copy of what stands at a path.
    fn value(&self, path: &Path) -> Result<Data, Halt> {
        let value = self.memory.find(path).ok_or_else(|| nothing(path))?;
        self.memory.fuel.spend(value.weight())?;
        Ok(value.clone())
    }

    fn step(&mut self, at: usize, note: Option<&str>) -> Result<(), Halt> {
        let workflow = self.workflow;
        let step = &workflow.steps[at];
        self.at = Some(at);
        self.executed += 1;
        if self.executed > self.bounds.steps {
            let detail = format!("more than {} executions of steps", self.bounds.steps);
            return Err(Halt::Crash(CrashReason::Bound, detail));
        }
        match &step.action {
            Action::Llm(llm) => self.llm((at, step), llm, note),
            Action::Check(check) => self.check((at, step), check),
            Action::Map(map) => self.map((at, step), map),
            Action::Guard(guard) => self.guard((at, step), guard),
            Action::Return(ending) => self.ending((at, step), ending),
        }
    }

    /// The record of an execution that begins.
    fn begin(&mut self, (at, step): (usize, &Step)) -> Result<TraceStep, Halt> {
        let attempt = self.attempts[at];
        self.attempts[at] += 1;
        let mut reads = Vec::new();
        for path in step.reads() {
            let found = self.memory.find(path);
            if let Some(value) = found {
                self.memory.fuel.spend(value.weight())?;
            }
            reads.push(TraceRead {
                digest: found.map(Data::digest),
                path: path.to_string(),
            });
        }
        Ok(TraceStep {
            attempt,
            call: None,
            flag: None,
            guard: None,
            reads,
            step: step.id.clone(),
            writes: None,
        })
    }

    /// Writes what a step made, and ends its record.
    fn write(&mut self, mut record: TraceStep, name: &str, value: Data) -> Result<(), Halt> {
        self.memory.fuel.spend(value.weight())?;
        record.writes = Some(TraceWrite {
            digest: value.digest(),
            name: name.to_owned(),
        });
        self.memory.write(name, value);
        self.trace.push(record);
        if self.memory.weight() > self.bounds.bytes {
            let detail = format!("values take more than {} bytes", self.bounds.bytes);
            return Err(Halt::Crash(CrashReason::Bound, detail));
        }
        Ok(())
    }

    fn llm(
        &mut self,
        (at, step): (usize, &Step),
        llm: &LlmStep,
        note: Option<&str>,
    ) -> Result<(), Halt> {
        let mut record = self.begin((at, step))?;
        let find = |path: &Path| self.memory.find(path).map(Cow::Borrowed);
        let fill =
            |template: &Template| map::fill(template, &self.memory.fuel, self.bounds.text, find);
        let system = llm.system.as_ref().map(fill).transpose()?;
        let mut user = fill(&llm.user)?;
        if let Some(note) = note {
            user.push_str("\n\n");
            user.push_str(note);
        }
        self.bound_text(&user)?;
        self.bound_text(system.as_deref().unwrap_or_default())?;
        if self.calls == self.bounds.calls {
            let detail = format!("more than {} calls", self.bounds.calls);
            return Err(Halt::Crash(CrashReason::Bound, detail));
        }
        self.calls += 1;
        let request = request::body(&step.id, llm, system, user);
        let digest = request_digest(&request);
        let ask = StepAsk {
            step: &step.id,
            attempt: record.attempt,
            rerun: self.rerun,
            request: &request,
            digest,
            of: llm,
        };
        let answer = self.executor.ask(&ask).map_err(Halt::Executor)?;
        let (text, usage) = match answer {
            StepAnswer::Text(text, usage) => (Ok(text), usage),
            StepAnswer::Timeout(usage) => (
                Err((CrashReason::Timeout, "no answer in time".to_owned())),
                usage,
            ),
            // An endpoint's words stand beside the answers, and nowhere else.
            StepAnswer::Failed(_, usage) => (
                Err((CrashReason::Endpoint, "the endpoint failed".to_owned())),
                usage,
            ),
        };
        self.usage = self.usage.plus(usage);
        let answered = |text: &String| Digest::sha256(text.as_bytes());
        record.call = Some(TraceCall {
            answer: text.as_ref().ok().map(answered),
            request: digest,
        });
        let value = text
            .map_err(Halt::from)
            .and_then(|text| self.read(llm, text));
        match value {
            Ok(value) => self.write(record, &llm.writes, value),
            Err(halt) => {
                // The call was made: it stands in the trace of a run that crashed.
                self.trace.push(record);
                Err(halt)
            }
        }
    }

    /// An answer as the step wants it.
    fn read(&self, llm: &LlmStep, text: String) -> Result<Data, Halt> {
        self.bound_text(&text)?;
        let value = if llm.is_json {
            let read = Data::parse(text.trim(), self.bounds.text);
            read.map_err(|fault| {
                Halt::Crash(
                    CrashReason::Parse,
                    format!("the answer is no JSON: {}", fault.unquoted()),
                )
            })?
        } else {
            Data::Text(text)
        };
        if let Some(shape) = &llm.shape
            && let Some(below) = shape.misfit(&value, &self.memory.fuel)?
        {
            let place = if below.is_empty() {
                "as a whole"
            } else {
                &below[1..]
            };
            let detail = format!("the answer does not fit its schema: {}", shortened(place));
            return Err(Halt::Crash(CrashReason::Type, detail));
        }
        Ok(value)
    }

    fn bound_text(&self, text: &str) -> Result<(), Halt> {
        self.memory.fuel.spend(text.len())?;
        if text.len() > self.bounds.text {
            let detail = format!("a text of more than {} bytes", self.bounds.text);
            return Err(Halt::Crash(CrashReason::Bound, detail));
        }
        Ok(())
    }

    fn check(&mut self, step: (usize, &Step), check: &CheckStep) -> Result<(), Halt> {
        let mut record = self.begin(step)?;
        let is_ok = check.expr.eval(&self.memory)?;
        self.memory.set_flag(&check.flag, is_ok);
        record.flag = Some(TraceFlag {
            hard: check.is_hard,
            id: check.flag.clone(),
            ok: is_ok,
        });
        self.trace.push(record);
        Ok(())
    }

    fn map(&mut self, step: (usize, &Step), map: &MapStep) -> Result<(), Halt> {
        let record = self.begin(step)?;
        let value = map::apply(&map.function, &self.memory, self.bounds.text)?;
        self.write(record, &map.writes, value)
    }

    fn guard(&mut self, step: (usize, &Step), guard: &GuardStep) -> Result<(), Halt> {
        let mut record = self.begin(step)?;
        let mut tries = 0;
        let still = loop {
            let still = guard.when.eval(&self.memory)?;
            if !still || tries == guard.max_tries {
                break still;
            }
            tries += 1;
            let note = guard.note.as_ref().map(|note| self.note(note));
            let note = note.transpose()?;
            self.step(guard.target, note.as_deref())?;
            for at in guard.target + 1..step.0 {
                self.step(at, None)?;
            }
            self.at = Some(step.0);
        };
        record.guard = Some(TraceGuard { still, tries });
        self.trace.push(record);
        Ok(())
    }

    fn note(&self, note: &Template) -> Result<String, Halt> {
        let filled = map::fill(note, &self.memory.fuel, self.bounds.text, |path| {
            if path.root() == FLAGS {
                let flags: Vec<_> = self.memory.broken().collect();
                return Some(Cow::Owned(Data::Text(flags.join(", "))));
            }
            self.memory.find(path).map(Cow::Borrowed)
        });
        Ok(filled?)
    }

    fn ending(&mut self, step: (usize, &Step), ending: &ReturnStep) -> Result<(), Halt> {
        let record = self.begin(step)?;
        self.trace.push(record);
        let ends = match &ending.when {
            Some(when) => when.eval(&self.memory)?,
            None => true,
        };
        if ends {
            return Err(Halt::Return(self.value(&ending.path)?));
        }
        Ok(())
    }
}

/// A crash: a path leads to nothing.
fn nothing(path: &Path) -> Halt {
    Halt::Crash(CrashReason::Type, format!("nothing stands at {path}"))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
