//! Workflows that nobody would write: thousands of random ones and changed ones. The checker and the interpreter end, never
//! panic, and keep their bounds. 300 of each; 5,000 with `RUN_SLOW_TESTS=1`.

use clover::flow;
use clover::flow::Bounds;
use clover::flow::Workflow;
use clover::flow::executor::Executor;
use clover::flow::executor::ExecutorFault;
use clover::flow::executor::StepAnswer;
use clover::flow::executor::StepAsk;
use clover::flow::executor::Usage;
use clover::ground::seed::SeedTree;
use clover::num::draws::Draws;

fn cases() -> usize {
    if std::env::var_os("RUN_SLOW_TESTS").is_some() {
        5_000
    } else {
        300
    }
}

/// Draws what a random workflow is made of.
struct Maker {
    draws: Draws,
    /// Names that may be read.
    names: Vec<String>,
    flags: Vec<String>,
    models: Vec<String>,
}

impl Maker {
    fn pick(&mut self, of: &[&str]) -> String {
        of[self.draws.below(of.len())].to_owned()
    }

    fn path(&mut self) -> String {
        let root = self.draws.below(self.names.len());
        let below = self.pick(&["", "", "", "", ".text", ".total", ".lines.1", ".n-x"]);
        format!("{}{below}", self.names[root])
    }

    fn operand(&mut self) -> String {
        match self.draws.below(4) {
            0 => format!(
                r#"{{"const":{}}}"#,
                self.pick(&["1", "-0.5", "\"a\"", "[1,\"a\"]", "{\"k\":null}", "true"])
            ),
            1 => format!(r#"{{"op":"len","path":"{}"}}"#, self.path()),
            _ => format!(r#"{{"path":"{}"}}"#, self.path()),
        }
    }

    fn expr(&mut self, depth: usize) -> String {
        let deep = if depth == 0 { 6 } else { 9 };
        match self.draws.below(deep) {
            0 | 1 => {
                let op = self.pick(&["eq", "ne", "lt", "le", "gt", "ge", "in"]);
                format!(
                    r#"{{"op":"{op}","a":{},"b":{}}}"#,
                    self.operand(),
                    self.operand()
                )
            }
            2 => format!(r#"{{"op":"exists","path":"{}"}}"#, self.path()),
            3 => {
                let pattern = self.pick(&["^a+$", "(a|b)*c", "\\\\d{1,9}", "(x+x+)+y", ""]);
                // An empty pattern is refused: the checker sees such documents too.
                format!(
                    r#"{{"op":"regex","path":"{}","pattern":"{pattern}"}}"#,
                    self.path()
                )
            }
            4 if !self.flags.is_empty() => {
                let at = self.draws.below(self.flags.len());
                format!(r#"{{"op":"flag","id":"{}"}}"#, self.flags[at])
            }
            4 | 5 => {
                let schema = self.pick(&[
                    r#"{"type":"object","required":["total"]}"#,
                    r#"{"type":["string","null"],"maxLength":4}"#,
                    r#"{"items":{"type":"integer"},"minItems":1}"#,
                ]);
                format!(
                    r#"{{"op":"schema","path":"{}","schema":{schema}}}"#,
                    self.path()
                )
            }
            6 => format!(r#"{{"op":"not","of":{}}}"#, self.expr(depth - 1)),
            _ => {
                let op = self.pick(&["and", "or"]);
                let of: Vec<_> = (0..self.draws.below(4))
                    .map(|_| self.expr(depth - 1))
                    .collect();
                format!(r#"{{"op":"{op}","of":[{}]}}"#, of.join(","))
            }
        }
    }

    fn map(&mut self) -> (String, String) {
        let path = self.path();
        let function = self.pick(&[
            "select",
            "merge",
            "parse_json",
            "regex",
            "lower",
            "round",
            "lookup",
            "concat",
            "const",
        ]);
        let args = match function.as_str() {
            "merge" => format!(r#"{{"paths":["{path}","{}"]}}"#, self.path()),
            "regex" => format!(r#"{{"path":"{path}","pattern":"(\\d+)","group":1,"else":null}}"#),
            "round" => format!(
                r#"{{"path":"{path}","decimals":{},"ties":"away"}}"#,
                self.draws.below(7)
            ),
            "lookup" => format!(r#"{{"path":"{path}","table":{{"a":1}},"else":{{"total":2}}}}"#),
            "concat" => {
                let hole = format!("{{{{{path}}}}}");
                format!(
                    r#"{{"template":"{}-"}}"#,
                    hole.repeat(1 + self.draws.below(30))
                )
            }
            "const" => r#"{"value":{"total":[1,{"text":"a"}]}}"#.to_owned(),
            _ => format!(r#"{{"path":"{path}"}}"#),
        };
        (function, args)
    }

    fn step(&mut self, at: usize) -> String {
        let id = format!("s{at}");
        match self.draws.below(10) {
            0..=2 => {
                let path = self.path();
                self.names.push(format!("w{at}"));
                self.models.push(id.clone());
                let form = self.pick(&["", r#""out":{"as":"json"},"#, r#""out":{"as":"text"},"#]);
                format!(
                    r#"{{"id":"{id}","kind":"llm","prompt":{{"user":"Do {{{{{path}}}}}"}},{form}"reads":["{path}"],"writes":"w{at}"}}"#
                )
            }
            3 | 4 => {
                let expr = self.expr(3);
                self.flags.push(id.clone());
                let hard = self.draws.coin();
                format!(r#"{{"id":"{id}","kind":"check","expr":{expr},"hard":{hard}}}"#)
            }
            5 | 6 if !self.models.is_empty() => {
                let target = self.models[self.draws.below(self.models.len())].clone();
                let when = self.expr(2);
                let tries = 1 + self.draws.below(3);
                format!(
                    r#"{{"id":"{id}","kind":"guard","target":"{target}","when":{when},"max_tries":{tries},"note":"Fix {{{{flags}}}}"}}"#
                )
            }
            7 if self.draws.below(4) == 0 => {
                let (path, when) = (self.path(), self.expr(1));
                format!(r#"{{"id":"{id}","kind":"return","path":"{path}","when":{when}}}"#)
            }
            _ => {
                let (function, args) = self.map();
                self.names.push(format!("w{at}"));
                format!(
                    r#"{{"id":"{id}","kind":"map","fn":"{function}","args":{args},"writes":"w{at}"}}"#
                )
            }
        }
    }

    fn workflow(mut self) -> String {
        let steps: Vec<_> = (0..=self.draws.below(24)).map(|at| self.step(at)).collect();
        let returns = self.path();
        format!(
            r#"{{"ir":"wf/1","inputs":["x","c"],"steps":[{}],"return":"{returns}"}}"#,
            steps.join(",")
        )
    }
}

fn random(case: usize) -> String {
    let maker = Maker {
        draws: Draws::of(SeedTree::of_number(30).seed(), case),
        names: vec!["x".to_owned(), "c".to_owned()],
        flags: Vec::new(),
        models: Vec::new(),
    };
    maker.workflow()
}

/// A model that says anything, and now and then nothing.
struct Moody(Draws);

impl Executor for Moody {
    fn ask(&mut self, _: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        let usage = Usage {
            calls: 1,
            ..Usage::default()
        };
        let long = "aa ".repeat(30_000);
        let texts = [
            "{\"total\":1.5}",
            "[1,2,{\"text\":\"x\"}]",
            "words",
            "{\"a\":",
            "",
            &long,
            "\"{\\\"b\\\":1}\"",
        ];
        Ok(match self.0.below(40) {
            0 => StepAnswer::Timeout(usage),
            1 => StepAnswer::Failed("status 500".to_owned(), usage),
            at => StepAnswer::Text(texts[at % texts.len()].to_owned(), usage),
        })
    }
}

/// Runs a document if it is a workflow; whether it is one, and whether it returned.
fn held(text: &str, case: usize) -> (bool, bool) {
    let Ok(workflow) = Workflow::parse(text) else {
        return (false, false);
    };
    assert_eq!(
        Workflow::parse(&workflow.print()).as_ref(),
        Ok(&workflow),
        "{text}"
    );
    let value = flow::Data::parse(
        r#"{"text":"aab 12","total":7,"lines":[1,[2]],"n-x":"{}"}"#,
        200,
    )
    .unwrap();
    let inputs = workflow
        .inputs()
        .iter()
        .map(|name| (name.clone(), value.clone()))
        .collect();
    let bounds = Bounds::default();
    let once = || {
        let mut model = Moody(Draws::of([3; 32], case));
        flow::run(&workflow, &inputs, &mut model, bounds, 0).unwrap()
    };
    let outcome = once();
    assert!(outcome.usage.calls <= bounds.calls as u64, "{text}");
    assert!(outcome.trace.steps.len() <= bounds.steps, "{text}");
    assert_eq!(outcome.output.is_some(), outcome.crash().is_none());
    assert_eq!(once().trace.digest(), outcome.trace.digest(), "{text}");
    (true, outcome.output.is_some())
}

#[test]
fn random_workflows_end() {
    let (mut valid, mut returned) = (0, 0);
    for case in 0..cases() {
        let (is_valid, has_returned) = held(&random(case), case);
        valid += usize::from(is_valid);
        returned += usize::from(has_returned);
    }
    println!(
        "{} documents: {valid} are workflows, {returned} returned",
        cases()
    );
    assert!(
        valid * 3 > cases() && returned * 50 > cases(),
        "{valid} {returned}"
    );
}

/// Words that change what a document means.
const WORDS: &[&str] = &[
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "1e99",
    "-1",
    "0.1234567",
    "null",
    "{{x}}",
    "{{",
    "s0",
    "w1",
    "flags",
    "llm",
    "guard",
    "\\ud800",
    "\u{1F980}",
    "\"op\":\"not\",",
    "\"max_tries\":3,",
    "reads",
    "x.text",
];

#[test]
fn changed_workflows_end() {
    let mut valid = 0;
    for case in 0..cases() {
        let mut draws = Draws::of(SeedTree::of_number(31).seed(), case);
        let mut text: Vec<char> = random(case).chars().collect();
        for _ in 0..=draws.below(4) {
            let at = draws.below(text.len());
            let end = (at + draws.below(12)).min(text.len());
            match draws.below(4) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let part: Vec<char> = text[at..end].to_vec();
                    let to = draws.below(text.len());
                    text.splice(to..to, part);
                }
                _ => {
                    let word = WORDS[draws.below(WORDS.len())];
                    text.splice(at..end, word.chars());
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let text: String = text.into_iter().collect();
        valid += usize::from(held(&text, case).0);
    }
    println!("{} changed documents: {valid} are workflows", cases());
}
