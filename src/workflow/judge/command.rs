//! A judge that is a child process: one JSON object a line in, one out.
//!
//! Asked: `{"draw":0,"id":1,"item":"…","policy":"…","prompt":"…","response":"…"}`. Answered, in the same order:
//! `{"id":1,"score":0.85}`, with a `reason` if it likes, or `{"id":1,"error":"why not"}`. A judge that is told what a
//! patch changes is asked with `judge_prompt` beside these. Scores lie in 0 to 1, or on the scale that the
//! judge was registered with, of which their shares are taken, and are read exactly, to the millionth.
//! A child that ends, or does not answer in time, is started anew and asked again; an answer that is none is an error at
//! once, since it would only come again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use clover_event::id::Text;
use clover_event::payload::estimated::ScaleEnds;
use clover_ground::digest::Digest;
use clover_ground::process::Child;
use clover_ground::process::Heard;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::judge::Answer;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;
use crate::judge::fields::EvidenceFields;

/// Between the name of a model and the digest of a program's files.
const FILES: &str = " program/sha256:";

/// The model of a judge that is a program: its name, with the digest of the program's files where it has any. Another
/// program is another judge, as another model is.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn model(name: &Text, files: Option<&Digest>) -> Text {
    let Some(files) = files else {
        return name.clone();
    };
    let text = format!("{}{FILES}{}", name.as_str(), files.to_hex());
    Text::new(text).unwrap_or_else(|| {
        let files = format!("{FILES}{}", files.to_hex());
        Text::new(files).expect("BUG: a digest is short")
    })
}

/// The name of a model, without the files of the program behind it.
pub fn name(model: &str) -> &str {
    model.rsplit_once(FILES).map_or(model, |(name, _)| name)
}

/// The digest of a program's files that a model names.
pub fn files(model: &str) -> Option<&str> {
    model.rsplit_once(FILES).map(|(_, files)| files)
}

/// How a child is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPlan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// How long an answer, and the end, may take.
    pub limit: Duration,
    /// How often it is started anew for one ask.
    pub restarts_max: u32,
}

/// The judge.
#[derive(Debug)]
pub struct Command {
    plan: ChildPlan,
    child: Option<Child>,
    asked: u64,
    prompt: Option<String>,
    fields: Option<EvidenceFields>,
    scale: Option<ScaleEnds>,
}

#[derive(Serialize)]
struct Question<'a> {
    draw: u64,
    id: u64,
    item: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge_prompt: Option<&'a str>,
    policy: &'a str,
    prompt: &'a str,
    response: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChildReply<'a> {
    id: u64,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    evidence: Option<Value>,
}

impl Command {
    /// A judge by its plan; nothing is started before the first ask. `None` without a program.
    pub fn new(plan: ChildPlan) -> Option<Self> {
        (!plan.command.is_empty()).then_some(Self {
            plan,
            child: None,
            asked: 0,
            prompt: None,
            fields: None,
            scale: None,
        })
    }

    /// The same with answers on a scale; 0 to 1 without one.
    #[must_use]
    pub fn on(self, scale: Option<ScaleEnds>) -> Self {
        Self { scale, ..self }
    }

    fn start(&self) -> Result<Child, JudgeError> {
        let mut words: VecDeque<_> = self.plan.command.clone().into();
        let program = words.pop_front().unwrap_or_default();
        Child::start(&program, &Vec::from(words), &self.plan.folder)
            .map_err(|error| JudgeError::Ended(format!("{program}: {error}")))
    }

    /// Asks once; an error that another start may mend leaves no child behind.
    fn ask(&mut self, id: u64, line: &str) -> Result<String, JudgeError> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.start()?,
        };
        child.say(line);
        match child.hear(self.plan.limit) {
            Heard::Line(answer) => {
                self.child = Some(child);
                Ok(answer)
            }
            Heard::Late => Err(JudgeError::Late(self.plan.limit.as_secs())),
            Heard::Ended => {
                let end = child.finish(self.plan.limit);
                let end = end.unwrap_or_else(|| "exit status 0".to_owned());
                Err(JudgeError::Ended(format!(
                    "before it answered ask {id}, with {end}"
                )))
            }
        }
    }
}

/// Reads an answer to ask `id`.
fn read(
    text: &str,
    id: u64,
    (scale, fields): (Option<ScaleEnds>, Option<&EvidenceFields>),
) -> Result<Answer, JudgeError> {
    const SHOWN: usize = 200;
    let shown = || text.chars().take(SHOWN).collect::<String>();
    let answer: ChildReply<'_> = serde_json::from_str(text)
        .map_err(|error| JudgeError::Answer(format!("{}: {error}", shown())))?;
    if answer.id != id {
        return Err(JudgeError::Answer(format!(
            "{}: an answer to ask {}, not {id}",
            shown(),
            answer.id
        )));
    }
    if let (None, Some(error)) = (answer.score, answer.error) {
        return Err(JudgeError::Declined(error));
    }
    let score = answer.score.ok_or_else(|| JudgeError::Answer(shown()))?;
    let evidence = match (fields, answer.evidence) {
        (Some(fields), said) => Some(fields.read(id, said)?),
        (None, None) => None,
        (None, Some(_)) => {
            return Err(JudgeError::Evidence {
                ask: id,
                field: "evidence".to_owned(),
                expected: "none, as the file of --known registers no field of it".to_owned(),
                found: shown(),
            });
        }
    };
    let said = Micro::parse(score.get()).ok().map(|(score, _)| score);
    let score = match scale {
        Some(scale) => said.and_then(|said| scale.share(said)),
        None => said.filter(|score| (0..=1_000_000).contains(&score.value())),
    };
    let wrong = |found: String| match scale {
        Some(scale) => JudgeError::OffScale { scale, found },
        None => JudgeError::Answer(found),
    };
    Ok(Answer {
        score: score.ok_or_else(|| wrong(shown()))?,
        reason: answer.reason,
        evidence,
    })
}

impl Judge for Command {
    fn answer(&mut self, ask: &JudgeQuery<'_>) -> Result<Answer, JudgeError> {
        self.asked += 1;
        let id = self.asked;
        let question = Question {
            draw: ask.draw.value(),
            id,
            item: ask.item.as_str(),
            judge_prompt: self.prompt.as_deref(),
            policy: ask.policy.as_str(),
            prompt: ask.prompt,
            response: ask.response,
        };
        let line = serde_json::to_string(&question).expect("BUG: texts and numbers are JSON");
        let mut starts = 0;
        loop {
            match self.ask(id, &line) {
                Ok(answer) => return read(&answer, id, (self.scale, self.fields.as_ref())),
                Err(error) if starts == self.plan.restarts_max => return Err(error),
                Err(_) => starts += 1,
            }
        }
    }

    fn tell(&mut self, prompt: &str) {
        self.prompt = Some(prompt.to_owned());
    }

    fn expect(&mut self, fields: &EvidenceFields) {
        self.fields = Some(fields.clone());
    }

    fn finish(&mut self) -> Result<(), JudgeError> {
        match self
            .child
            .take()
            .and_then(|mut child| child.finish(self.plan.limit))
        {
            None => Ok(()),
            Some(end) => Err(JudgeError::Ended(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clover_num::Count;
    use clover_rubric::evidence::Evidence;

    use super::*;

    fn judge(script: &str, restarts_max: u32) -> Command {
        let plan = ChildPlan {
            command: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
            folder: "/".into(),
            limit: Duration::from_secs(20),
            restarts_max,
        };
        Command::new(plan).unwrap()
    }

    fn ask(judge: &mut Command) -> Result<i64, JudgeError> {
        let ask = JudgeQuery {
            item: &"item-1".parse().unwrap(),
            policy: &"base".parse().unwrap(),
            draw: Count::new(0).unwrap(),
            prompt: "why?",
            response: "a \"quoted\"\nline",
            evidence: &Evidence::default(),
        };
        judge.score(&ask).map(Micro::value)
    }

    #[test]
    fn answers_on_a_scale_are_shares_of_it() {
        let micro = |value: i64| Micro::new(value * 1_000_000).unwrap();
        let scale = |low, high| {
            Some(ScaleEnds {
                high_micro: micro(high),
                low_micro: micro(low),
            })
        };
        // Shares by hand; 2/3 of a scale and halves of a millionth are rounded half to even.
        for (said, low, high, expected) in [
            ("56", 0, 100, Some(560_000)),
            ("0", 0, 100, Some(0)),
            ("100", 0, 100, Some(1_000_000)),
            ("3", 1, 5, Some(500_000)),
            ("-1", -1, 1, Some(0)),
            ("2", 0, 3, Some(666_667)),
            ("0.00005", 0, 100, Some(0)),
            ("0.00015", 0, 100, Some(2)),
            ("101", 0, 100, None),
            ("0", 1, 5, None),
        ] {
            let text = format!("{{\"id\":1,\"score\":{said}}}");
            let found = read(&text, 1, (scale(low, high), None)).map(|of| of.score.value());
            match expected {
                Some(expected) => assert_eq!(found, Ok(expected), "{said} on {low}:{high}"),
                None => assert!(
                    matches!(found, Err(JudgeError::OffScale { .. })),
                    "{said} on {low}:{high}"
                ),
            }
        }
    }

    /// Answers each line with its number; `$n` counts.
    const COUNTING: &str =
        "n=0; while read -r l; do n=$((n+1)); echo \"{\\\"id\\\":$n,\\\"score\\\":0.$n}\"; done";

    #[test]
    fn scores_are_read_exactly_and_in_order() {
        let mut judge = judge(COUNTING, 0);
        assert_eq!(
            (ask(&mut judge), ask(&mut judge)),
            (Ok(100_000), Ok(200_000))
        );
        assert_eq!(judge.finish(), Ok(()));
        for (text, expected) in [
            ("{\"id\":1,\"score\":8.5e-1}", Ok(850_000)),
            (
                "{\"id\":1,\"score\":1,\"reason\":\"all there\"}",
                Ok(1_000_000),
            ),
            (
                "{\"id\":1,\"error\":\"too long\"}",
                Err("the judge declines: too long"),
            ),
            ("{\"id\":1,\"score\":1.1}", Err("expected a score")),
            ("{\"id\":1,\"score\":\"0.5\"}", Err("expected a score")),
            ("{\"id\":2,\"score\":0.5}", Err("not 1")),
            ("{\"id\":1,\"score\":0.5,\"more\":1}", Err("unknown field")),
            (
                "{\"id\":1,\"score\":0.5,\"evidence\":{}}",
                Err("registers no field"),
            ),
            ("{\"id\":1}", Err("expected a score")),
            ("0.5", Err("expected a score")),
        ] {
            match (
                read(text, 1, (None, None)).map(|of| of.score.value()),
                expected,
            ) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => {
                    assert!(found.to_string().contains(expected), "{found}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_child_that_ends_is_started_anew_as_often_as_it_may() {
        // Each answers one line and ends: the second ask finds its end, and a new child counts from 1.
        let once = "read -r l; echo '{\"id\":1,\"score\":0.5}'";
        let mut short = judge(once, 0);
        assert_eq!(ask(&mut short), Ok(500_000));
        assert!(matches!(ask(&mut short), Err(JudgeError::Ended(_))));
        let mut gone = judge("echo broken >&2; exit 4", 2);
        let error = ask(&mut gone).unwrap_err().to_string();
        assert!(
            error.contains("exit status: 4") && error.ends_with("broken"),
            "{error}"
        );
        let echoing =
            "read -r l; id=${l#*\\\"id\\\":}; echo \"{\\\"id\\\":${id%%,*},\\\"score\\\":0.5}\"";
        let mut again = judge(echoing, 1);
        assert_eq!(
            (ask(&mut again), ask(&mut again), ask(&mut again)),
            (Ok(500_000), Ok(500_000), Ok(500_000))
        );
    }

    #[test]
    fn what_it_is_told_stands_in_every_ask() {
        let told = "case $l in *judge_prompt*mandatory*) echo '{\"id\":1,\"score\":0.9}';; *) echo '{\"id\":1,\"score\":0.1}';; esac";
        let script = format!("read -r l; {told}");
        assert_eq!(ask(&mut judge(&script, 0)), Ok(100_000));
        let mut mended = judge(&script, 0);
        mended.tell("Evidence is mandatory.\n");
        assert_eq!(ask(&mut mended), Ok(900_000));
    }

    #[test]
    fn silence_and_bad_ends_are_errors() {
        let mut silent = judge("sleep 60", 1);
        silent.plan.limit = Duration::from_millis(30);
        assert_eq!(ask(&mut silent), Err(JudgeError::Late(0)));
        let mut bad = judge(
            "read -r l; echo '{\"id\":1,\"score\":0}'; read -r l; exit 9",
            0,
        );
        assert_eq!(ask(&mut bad), Ok(0));
        assert!(bad.finish().unwrap_err().to_string().contains('9'));
        assert!(
            Command::new(ChildPlan {
                command: Vec::new(),
                ..bad.plan.clone()
            })
            .is_none()
        );
    }
}
