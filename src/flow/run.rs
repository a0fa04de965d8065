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
            StepAnswer::Failed(why, usage) => (Err((CrashReason::Endpoint, why)), usage),
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
                    format!("the answer is no JSON: {fault}"),
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
mod tests {
    use super::*;
    use crate::executor::table::Recorder;
    use crate::executor::table::Recording;
    use crate::executor::table::Table;

    /// The workflow of the page: an invoice is read, checked, and read again.
    const INVOICE: &str = r#"{"ir":"wf/1","inputs":["x","c"],
        "defaults":{"model":"@exec","temperature":0,"max_tokens":512,"seed":7},
        "steps":[
          {"id":"draft","kind":"llm","prompt":{"system":"You read invoices.","user":"Task: {{x.text}}\nLimit: {{c.limit}}"},
           "out":{"as":"json","schema":{"type":"object","required":["total"]}},"reads":["x.text","c.limit"],"writes":"draft"},
          {"id":"k1","kind":"check","expr":{"op":"le","a":{"path":"draft.total"},"b":{"path":"c.limit"}},"hard":true,"flag":"limit_ok"},
          {"id":"g1","kind":"guard","target":"draft","when":{"op":"not","of":{"op":"flag","id":"limit_ok"}},"max_tries":2,"note":"Fix: {{flags}}"},
          {"id":"t1","kind":"map","fn":"select","args":{"path":"draft.total"},"writes":"y"}],
        "return":"y"}"#;

    /// Answers in turn.
    struct Script(Vec<StepAnswer>);

    impl Executor for Script {
        fn ask(&mut self, _: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
            Ok(self.0.remove(0))
        }
    }

    fn script(texts: &[&str]) -> Script {
        let answer = |text: &&str| StepAnswer::Text((*text).to_owned(), Usage::default());
        Script(texts.iter().map(answer).collect())
    }

    fn inputs(text: &str) -> BTreeMap<String, Data> {
        match Data::parse(text, 1 << 20).unwrap() {
            Data::Object(members) => members,
            _ => BTreeMap::new(),
        }
    }

    fn over(workflow: &str, given: &str, executor: &mut dyn Executor) -> RunOutcome {
        let workflow = Workflow::parse(workflow).unwrap();
        run(&workflow, &inputs(given), executor, Bounds::default(), 0).unwrap()
    }

    const GIVEN: &str = r#"{"x":{"text":"12 + 30 EUR"},"c":{"limit":40}}"#;

    #[test]
    fn a_guard_runs_its_target_again_with_its_note() {
        let mut inner = script(&["{\"total\":42}", "{\"total\":41}", "{\"total\":40}"]);
        let mut recording = Recording::default();
        let mut recorder = Recorder::new(&mut inner, &mut recording);
        let first = over(INVOICE, GIVEN, &mut recorder);
        assert_eq!(first.output.clone().unwrap().to_string(), "40");
        assert_eq!(first.violations().count(), 0);
        let steps: Vec<_> = first
            .trace
            .steps
            .iter()
            .map(|of| (of.step.as_str(), of.attempt))
            .collect();
        let expected = [
            ("draft", 0),
            ("k1", 0),
            ("draft", 1),
            ("k1", 1),
            ("draft", 2),
            ("k1", 2),
            ("g1", 0),
            ("t1", 0),
        ];
        assert_eq!(steps, expected);
        assert_eq!(
            first.trace.steps[6].guard,
            Some(TraceGuard {
                still: false,
                tries: 2
            })
        );
        // The note makes another request, and the second and third are alike.
        let requests: Vec<_> = first
            .trace
            .steps
            .iter()
            .filter_map(|of| of.call.as_ref())
            .collect();
        assert_ne!(requests[0].request, requests[1].request);
        assert_eq!(requests[1].request, requests[2].request);
        // What was recorded gives the same trace, bit for bit.
        let mut table = Table::default();
        for line in &recording.lines {
            table.add_line(line).unwrap();
        }
        assert_eq!(table.len(), 3);
        let again = over(INVOICE, GIVEN, &mut table);
        assert_eq!(again.trace.digest(), first.trace.digest());
        let workflow = Workflow::parse(INVOICE).unwrap();
        let more = run(&workflow, &inputs(GIVEN), &mut table, Bounds::default(), 0).unwrap_err();
        assert!(
            matches!(more, ExecutorFault::NotRecorded { nth: 1, .. }),
            "{more}"
        );
    }

    #[test]
    fn a_constraint_that_stays_broken_is_no_crash() {
        let outcome = over(INVOICE, GIVEN, &mut script(&["{\"total\":99}"; 3]));
        assert_eq!(outcome.crash(), None);
        assert_eq!(outcome.violations().collect::<Vec<_>>(), ["limit_ok"]);
        assert_eq!(outcome.output.unwrap().to_string(), "99");
    }

    #[test]
    fn crashes_have_a_reason_and_a_step() {
        let crash = |answer: StepAnswer| {
            let outcome = over(INVOICE, GIVEN, &mut Script(vec![answer]));
            let crash = outcome.crash().unwrap().clone();
            assert_eq!(crash.step, "draft");
            // The call that failed is in the trace.
            assert!(outcome.trace.steps[0].call.is_some());
            (crash.reason, crash.detail)
        };
        let text = |text: &str| StepAnswer::Text(text.to_owned(), Usage::default());
        let (reason, detail) = crash(text("{\"total\":"));
        assert_eq!(reason, CrashReason::Parse);
        assert!(detail.contains("1:10"), "{detail}");
        let (reason, detail) = crash(text("{\"sum\":1}"));
        assert_eq!(reason, CrashReason::Type);
        assert!(detail.ends_with("\"total\""), "{detail}");
        assert_eq!(
            crash(StepAnswer::Timeout(Usage::default())).0,
            CrashReason::Timeout
        );
        let failed = StepAnswer::Failed("status 500".to_owned(), Usage::default());
        assert_eq!(crash(failed).0, CrashReason::Endpoint);
        let outcome = over(INVOICE, "{\"x\":{},\"c\":{\"limit\":1}}", &mut script(&[]));
        assert_eq!(outcome.crash().unwrap().detail, "nothing stands at x.text");
        let outcome = over(INVOICE, "{\"x\":{}}", &mut script(&[]));
        assert_eq!(outcome.crash().unwrap().detail, "the input c is not given");
    }

    fn maps(steps: &str, given: &str) -> Result<String, CrashReason> {
        let text = format!(r#"{{"ir":"wf/1","inputs":["x"],"steps":[{steps}],"return":"y"}}"#);
        let outcome = over(&text, given, &mut script(&[]));
        match outcome.crash() {
            Some(crash) => Err(crash.reason),
            None => Ok(outcome.output.unwrap().to_string()),
        }
    }

    fn map_of(function: &str, args: &str, given: &str) -> Result<String, CrashReason> {
        let step =
            format!(r#"{{"id":"m","kind":"map","fn":"{function}","args":{args},"writes":"y"}}"#);
        maps(&step, given)
    }

    fn ok(function: &str, args: &str, given: &str, value: &str) {
        assert_eq!(
            map_of(function, args, given).as_deref(),
            Ok(value),
            "{function} {args}"
        );
    }

    fn bad(function: &str, args: &str, given: &str, reason: CrashReason) {
        assert_eq!(
            map_of(function, args, given),
            Err(reason),
            "{function} {args}"
        );
    }

    #[test]
    fn every_function_has_a_value_or_a_reason() {
        ok(
            "select",
            r#"{"path":"x.1"}"#,
            r#"{"x":[1,{"b":2,"a":1}]}"#,
            r#"{"a":1,"b":2}"#,
        );
        bad(
            "select",
            r#"{"path":"x.2"}"#,
            r#"{"x":[]}"#,
            CrashReason::Type,
        );
        ok(
            "merge",
            r#"{"paths":["x.a","x.b"]}"#,
            r#"{"x":{"a":{"k":1,"l":1},"b":{"k":2}}}"#,
            r#"{"k":2,"l":1}"#,
        );
        bad(
            "merge",
            r#"{"paths":["x"]}"#,
            r#"{"x":[]}"#,
            CrashReason::Type,
        );
        ok(
            "parse_json",
            r#"{"path":"x"}"#,
            r#"{"x":" [1.50] "}"#,
            "[1.5]",
        );
        bad(
            "parse_json",
            r#"{"path":"x"}"#,
            r#"{"x":"[1"}"#,
            CrashReason::Parse,
        );
        ok(
            "regex",
            r#"{"path":"x","pattern":"a(\\d+)","group":1}"#,
            r#"{"x":"a12"}"#,
            "\"12\"",
        );
        ok(
            "regex",
            r#"{"path":"x","pattern":"b","else":null}"#,
            r#"{"x":"a"}"#,
            "null",
        );
        bad(
            "regex",
            r#"{"path":"x","pattern":"b"}"#,
            r#"{"x":"a"}"#,
            CrashReason::Parse,
        );
    }

    #[test]
    fn so_have_those_of_numbers_and_tables() {
        ok("lower", r#"{"path":"x"}"#, r#"{"x":"ÀB"}"#, "\"Àb\"");
        ok(
            "round",
            r#"{"path":"x","decimals":1}"#,
            r#"{"x":0.25}"#,
            "0.2",
        );
        ok(
            "round",
            r#"{"path":"x","decimals":1,"ties":"away"}"#,
            r#"{"x":0.25}"#,
            "0.3",
        );
        bad(
            "round",
            r#"{"path":"x","decimals":1}"#,
            r#"{"x":"1"}"#,
            CrashReason::Type,
        );
        ok(
            "lookup",
            r#"{"path":"x","table":{"1.5":"b"}}"#,
            r#"{"x":1.50}"#,
            "\"b\"",
        );
        ok(
            "lookup",
            r#"{"path":"x","table":{},"else":0}"#,
            r#"{"x":"q"}"#,
            "0",
        );
        bad(
            "lookup",
            r#"{"path":"x","table":{}}"#,
            r#"{"x":"q"}"#,
            CrashReason::Type,
        );
        ok(
            "concat",
            r#"{"template":"{{x.a}}-{{x.n}}"}"#,
            r#"{"x":{"a":"k","n":[1]}}"#,
            "\"k-[1]\"",
        );
        bad(
            "concat",
            r#"{"template":"{{x.b}}"}"#,
            r#"{"x":{}}"#,
            CrashReason::Type,
        );
        ok("const", r#"{"value":[true]}"#, r#"{"x":1}"#, "[true]");
    }

    #[test]
    fn what_grows_without_end_is_bound() {
        let mut steps = vec![
            r#"{"id":"a0","kind":"map","fn":"select","args":{"path":"x"},"writes":"v0"}"#
                .to_owned(),
        ];
        for at in 1..11 {
            let before = at - 1;
            let holes = format!("{{{{v{before}}}}}").repeat(40);
            steps.push(format!(r#"{{"id":"a{at}","kind":"map","fn":"concat","args":{{"template":"{holes}"}},"writes":"v{at}"}}"#));
        }
        steps.push(
            r#"{"id":"z","kind":"map","fn":"select","args":{"path":"v10"},"writes":"y"}"#
                .to_owned(),
        );
        assert_eq!(
            maps(&steps.join(","), r#"{"x":"0123456789"}"#),
            Err(CrashReason::Bound)
        );
        // Guards within guards multiply: the count of executions ends them.
        let mut steps = vec![
            r#"{"id":"m","kind":"llm","prompt":{"user":"u"},"reads":[],"writes":"m"}"#.to_owned(),
        ];
        for at in 0..11 {
            steps.push(format!(r#"{{"id":"g{at}","kind":"guard","target":"m","when":{{"op":"exists","path":"m"}},"max_tries":3}}"#));
        }
        let text = format!(
            r#"{{"ir":"wf/1","inputs":[],"steps":[{}],"return":"m"}}"#,
            steps.join(",")
        );
        let workflow = Workflow::parse(&text).unwrap();
        let mut executor = script(&["a"; 1000]);
        let bounds = Bounds {
            calls: 1000,
            ..Bounds::default()
        };
        let outcome = run(&workflow, &BTreeMap::new(), &mut executor, bounds, 0).unwrap();
        assert_eq!(outcome.crash().unwrap().reason, CrashReason::Bound);
        assert!(outcome.trace.steps.len() <= bounds.steps);
        let mut executor = script(&["a"; 1000]);
        let outcome = run(
            &workflow,
            &BTreeMap::new(),
            &mut executor,
            Bounds::default(),
            0,
        )
        .unwrap();
        assert_eq!(outcome.crash().unwrap().detail, "more than 60 calls");
        assert_eq!(executor.0.len(), 940, "a bound holds to the call");
        // So does the work of patterns over long texts.
        let long = format!(r#"{{"x":"{}"}}"#, "a".repeat(60_000));
        let check = r#"{"op":"regex","path":"x","pattern":"(a|b|ab)*c"}"#;
        let of = vec![check; 16].join(",");
        let checks = format!(
            r#"{{"id":"k","kind":"check","hard":true,"expr":{{"op":"or","of":[{of}]}}}},
            {{"id":"m","kind":"map","fn":"const","args":{{"value":1}},"writes":"y"}}"#
        );
        let start = std::time::Instant::now();
        assert_eq!(maps(&checks, &long), Err(CrashReason::Bound));
        assert!(start.elapsed().as_secs() < 20);
    }

    #[test]
    fn a_return_step_ends_a_run() {
        let steps = r#"{"id":"m","kind":"map","fn":"const","args":{"value":1},"writes":"y"},
            {"id":"r","kind":"return","path":"x","when":{"op":"exists","path":"x.a"}}"#;
        assert_eq!(maps(steps, r#"{"x":{"a":2}}"#).as_deref(), Ok(r#"{"a":2}"#));
        assert_eq!(maps(steps, r#"{"x":{}}"#).as_deref(), Ok("1"));
    }
}
