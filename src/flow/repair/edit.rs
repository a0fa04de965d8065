//! Edits of a workflow: five operators, and two that a plan must allow. Each is applied, checked and measured.

use serde::Serialize;

use crate::difference;
use crate::difference::Locality;
use crate::fault::Fault;
use crate::number::Number;
use crate::patch::JsonPatch;
use crate::value::Data;
use crate::workflow::STEPS_MAX;
use crate::workflow::Workflow;

/// A kind of edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Changes what an llm step is told.
    EditPrompt,
    /// Puts a check after a step.
    InsertCheck,
    /// Puts a guard after an llm step.
    InsertRetryGuard,
    /// Asks for some members of an answer in one step, and for the rest in another.
    SplitStep,
    /// Gives an llm step more to read.
    RewireIo,
    /// Takes a step away; off unless a plan allows it.
    DeleteStep,
    /// Asks another model; off unless a plan allows it.
    ReplaceModel,
}

impl Operator {
    /// Those that are on by default.
    pub const STANDARD: [Self; 5] = [
        Self::EditPrompt,
        Self::InsertCheck,
        Self::InsertRetryGuard,
        Self::SplitStep,
        Self::RewireIo,
    ];
}

/// A text of an llm step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    /// The system's.
    System,
    /// The user's.
    User,
}

/// An edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Puts `text` in the place of `find`, which must stand there once, or on a line of its own at the end.
    EditPrompt {
        /// The step.
        step: String,
        /// Which text.
        part: PromptPart,
        /// What is replaced; nothing to add a line.
        find: Option<String>,
        /// What stands there then.
        text: String,
    },
    /// Puts a check after a step.
    InsertCheck {
        /// The step that it follows.
        after: String,
        /// Its id.
        id: String,
        /// Its expression.
        expr: Data,
        /// Whether its flag is hard.
        hard: bool,
    },
    /// Puts a guard after an llm step and the checks that follow it.
    InsertRetryGuard {
        /// The step.
        step: String,
        /// Its id.
        id: String,
        /// Its condition.
        when: Data,
        /// Its tries.
        max_tries: u64,
        /// Its note.
        note: Option<String>,
    },
    /// Asks for some members in one step and for the rest in a second, and merges both.
    SplitStep {
        /// The step.
        step: String,
        /// Members that the second step asks for.
        second: Vec<String>,
    },
    /// Adds paths to what a step reads, each on a line of its own in the user's text.
    RewireIo {
        /// The step.
        step: String,
        /// The paths.
        reads: Vec<String>,
    },
    /// Takes a step away.
    DeleteStep {
        /// The step.
        step: String,
    },
    /// Asks another model.
    ReplaceModel {
        /// The step.
        step: String,
        /// The model.
        model: String,
    },
}

/// Most that one edit may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EditBudget {
    /// JSON values.
    pub ast_nodes: usize,
    /// Steps that ask a model and were not there.
    pub new_llm_calls: usize,
    /// Characters of prompts and notes.
    pub prompt_chars: usize,
    /// Steps.
    pub steps_touched: usize,
}

impl Default for EditBudget {
    fn default() -> Self {
        Self {
            ast_nodes: 12,
            new_llm_calls: 1,
            prompt_chars: 400,
            steps_touched: 2,
        }
    }
}

/// Why an edit is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The plan does not allow the operator.
    #[error("the operator {0:?} is not allowed")]
    NotAllowed(Operator),
    /// There is no such step, or it is of another kind.
    #[error("no step {0:?} of the kind that the operator needs")]
    NoStep(String),
    /// The text that is to be replaced does not stand there, or more than once.
    #[error("the text to be replaced stands in the prompt {0} times")]
    TextNotOnce(usize),
    /// Members to split by are not those of the step, or one step would ask for nothing.
    #[error("the members to split by are not some of those that the step asks for")]
    NoSplit,
    /// The result is no workflow.
    #[error("the result is refused: {0}")]
    Invalid(Fault),
    /// Nothing changes.
    #[error("nothing changes")]
    Unchanged,
    /// It touches more than it may.
    #[error("{what}: {found}, at most {most}")]
    OverBudget {
        /// What is counted.
        what: &'static str,
        /// How much it touches.
        found: usize,
        /// Most of it.
        most: usize,
    },
}

/// A workflow that an edit has made.
#[derive(Clone, Debug, PartialEq)]
pub struct EditResult {
    /// The workflow.
    pub workflow: Workflow,
    /// The patch that makes it of its parent.
    pub patch: JsonPatch,
    /// How much the edit touches.
    pub locality: Locality,
}

/// Members of a step, at hand to be changed.
type Members = std::collections::BTreeMap<String, Data>;

impl Edit {
    /// Its operator.
    pub fn operator(&self) -> Operator {
        match self {
            Self::EditPrompt { .. } => Operator::EditPrompt,
            Self::InsertCheck { .. } => Operator::InsertCheck,
            Self::InsertRetryGuard { .. } => Operator::InsertRetryGuard,
            Self::SplitStep { .. } => Operator::SplitStep,
            Self::RewireIo { .. } => Operator::RewireIo,
            Self::DeleteStep { .. } => Operator::DeleteStep,
            Self::ReplaceModel { .. } => Operator::ReplaceModel,
        }
    }

    /// The step that it is about.
    pub fn step(&self) -> &str {
        match self {
            Self::InsertCheck { after, .. } => after,
            Self::EditPrompt { step, .. }
            | Self::InsertRetryGuard { step, .. }
            | Self::SplitStep { step, .. }
            | Self::RewireIo { step, .. }
            | Self::DeleteStep { step }
            | Self::ReplaceModel { step, .. } => step,
        }
    }

    /// Its arguments as JSON.
    pub fn document(&self) -> Data {
        let texts = |of: &[String]| Data::List(of.iter().map(|of| of.as_str().into()).collect());
        match self {
            Self::EditPrompt {
                step,
                part,
                find,
                text,
            } => {
                let part = match part {
                    PromptPart::System => "system",
                    PromptPart::User => "user",
                };
                Data::object([
                    ("step", step.as_str().into()),
                    ("part", part.into()),
                    (
                        "find",
                        find.as_ref().map_or(Data::Null, |of| of.as_str().into()),
                    ),
                    ("text", text.as_str().into()),
                ])
            }
            Self::InsertCheck {
                after,
                id,
                expr,
                hard,
            } => Data::object([
                ("after", after.as_str().into()),
                ("id", id.as_str().into()),
                ("expr", expr.clone()),
                ("hard", (*hard).into()),
            ]),
            Self::InsertRetryGuard {
                step,
                id,
                when,
                max_tries,
                note,
            } => Data::object([
                ("step", step.as_str().into()),
                ("id", id.as_str().into()),
                ("when", when.clone()),
                ("max_tries", count(*max_tries)),
                (
                    "note",
                    note.as_ref().map_or(Data::Null, |of| of.as_str().into()),
                ),
            ]),
            Self::SplitStep { step, second } => {
                Data::object([("step", step.as_str().into()), ("second", texts(second))])
            }
            Self::RewireIo { step, reads } => {
                Data::object([("step", step.as_str().into()), ("reads", texts(reads))])
            }
            Self::DeleteStep { step } => Data::object([("step", step.as_str().into())]),
            Self::ReplaceModel { step, model } => Data::object([
                ("step", step.as_str().into()),
                ("model", model.as_str().into()),
            ]),
        }
    }

    /// The workflow that it makes of a parent, with what it touches.
    ///
    /// # Errors
    /// [`Rejection`] with the first reason.
    pub fn apply(
        &self,
        parent: &Workflow,
        allowed: &[Operator],
        budget: &EditBudget,
    ) -> Result<EditResult, Rejection> {
        if !allowed.contains(&self.operator()) {
            return Err(Rejection::NotAllowed(self.operator()));
        }
        let mut document = parent.document().clone();
        let none = || Rejection::NoStep(self.step().to_owned());
        let place = parent.place_of(self.step()).ok_or_else(none)?;
        let Some(Data::List(steps)) = steps_of(&mut document) else {
            return Err(none());
        };
        self.change(steps, place)?;
        let workflow = Workflow::of(&document).map_err(Rejection::Invalid)?;
        if workflow.digest() == parent.digest() {
            return Err(Rejection::Unchanged);
        }
        let difference = difference::between(parent, &workflow);
        let locality = match self {
            Self::SplitStep { step, .. } => split_locality(&workflow, step),
            _ => difference.locality,
        };
        within(locality, budget, workflow.steps().len())?;
        Ok(EditResult {
            workflow,
            patch: difference.patch,
            locality,
        })
    }

    fn change(&self, steps: &mut Vec<Data>, place: usize) -> Result<(), Rejection> {
        let none = || Rejection::NoStep(self.step().to_owned());
        let Some(Data::Object(step)) = steps.get_mut(place) else {
            return Err(none());
        };
        let is_llm = step.get("kind").and_then(Data::as_text) == Some("llm");
        let needs_llm = !matches!(self, Self::InsertCheck { .. } | Self::DeleteStep { .. });
        if needs_llm && !is_llm {
            return Err(none());
        }
        match self {
            Self::EditPrompt {
                part, find, text, ..
            } => edit_prompt(step, *part, find.as_deref(), text)?,
            Self::RewireIo { reads, .. } => rewire(step, reads),
            Self::ReplaceModel { model, .. } => {
                step.insert("model".to_owned(), model.as_str().into());
            }
            Self::DeleteStep { .. } => {
                steps.remove(place);
            }
            Self::InsertCheck { id, expr, hard, .. } => {
                let check = Data::object([
                    ("id", id.as_str().into()),
                    ("kind", "check".into()),
                    ("expr", expr.clone()),
                    ("hard", (*hard).into()),
                ]);
                steps.insert(place + 1, check);
            }
            Self::InsertRetryGuard {
                step,
                id,
                when,
                max_tries,
                note,
            } => {
                let mut guard = Members::from([
                    ("id".to_owned(), id.as_str().into()),
                    ("kind".to_owned(), "guard".into()),
                    ("target".to_owned(), step.as_str().into()),
                    ("when".to_owned(), when.clone()),
                    ("max_tries".to_owned(), count(*max_tries)),
                ]);
                if let Some(note) = note {
                    guard.insert("note".to_owned(), note.as_str().into());
                }
                // Checks that follow the step are for the guard to ask.
                let is_check =
                    |step: &&Data| step.member("kind").and_then(Data::as_text) == Some("check");
                let checks = steps[place + 1..].iter().take_while(is_check).count();
                steps.insert(place + 1 + checks, Data::Object(guard));
            }
            Self::SplitStep { second, .. } => {
                let (rest, merge) = split(step, second)?;
                steps.insert(place + 1, rest);
                steps.insert(place + 2, merge);
            }
        }
        Ok(())
    }
}

fn count(count: u64) -> Data {
    Data::Number(Number::of_count(
        usize::try_from(count).unwrap_or(usize::MAX),
    ))
}

fn steps_of(document: &mut Data) -> Option<&mut Data> {
    match document {
        Data::Object(members) => members.get_mut("steps"),
        _ => None,
    }
}

fn prompt_of(step: &mut Members) -> Option<&mut Members> {
    match step.get_mut("prompt") {
        Some(Data::Object(prompt)) => Some(prompt),
        _ => None,
    }
}

fn edit_prompt(
    step: &mut Members,
    part: PromptPart,
    find: Option<&str>,
    text: &str,
) -> Result<(), Rejection> {
    let name = match part {
        PromptPart::System => "system",
        PromptPart::User => "user",
    };
    let prompt = prompt_of(step).ok_or(Rejection::TextNotOnce(0))?;
    let before = prompt.get(name).and_then(Data::as_text).unwrap_or_default();
    let after = match find {
        None if before.is_empty() => text.to_owned(),
        None => format!("{before}\n{text}"),
        Some(find) => {
            let found = if find.is_empty() {
                0
            } else {
                before.matches(find).count()
            };
            if found != 1 {
                return Err(Rejection::TextNotOnce(found));
            }
            before.replacen(find, text, 1)
        }
    };
    prompt.insert(name.to_owned(), Data::Text(after));
    Ok(())
}

fn rewire(step: &mut Members, reads: &[String]) {
    if let Some(Data::List(all)) = step.get_mut("reads") {
        for path in reads {
            let path = Data::text(path.as_str());
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    if let Some(Data::Text(user)) = prompt_of(step).and_then(|prompt| prompt.get_mut("user")) {
        for path in reads {
            user.push_str(&format!("\n{path}: {{{{{path}}}}}"));
        }
    }
}

/// Takes members out of what a step asks for; gives the step that asks for them, and the one that merges both.
fn split(step: &mut Members, second: &[String]) -> Result<(Data, Data), Rejection> {
    let text = |of: &Members, name: &str| of.get(name).and_then(Data::as_text).map(str::to_owned);
    let id = text(step, "id").ok_or(Rejection::NoSplit)?;
    let name = text(step, "writes").ok_or(Rejection::NoSplit)?;
    let mut rest = step.clone();
    let halve = |of: &mut Members, keeps: &dyn Fn(&String) -> bool| {
        let Some(Data::Object(out)) = of.get_mut("out") else {
            return 0;
        };
        let Some(Data::Object(schema)) = out.get_mut("schema") else {
            return 0;
        };
        if let Some(Data::List(required)) = schema.get_mut("required") {
            required.retain(|of| of.as_text().is_some_and(|of| keeps(&of.to_owned())));
        }
        match schema.get_mut("properties") {
            Some(Data::Object(properties)) => {
                properties.retain(|name, _| keeps(name));
                properties.len()
            }
            _ => 0,
        }
    };
    let first = halve(step, &|name| !second.contains(name));
    let others = halve(&mut rest, &|name| second.contains(name));
    if first == 0 || others != second.len() || others == 0 {
        return Err(Rejection::NoSplit);
    }
    let (one, two) = (format!("{name}_a"), format!("{name}_b"));
    step.insert("writes".to_owned(), one.as_str().into());
    rest.insert("writes".to_owned(), two.as_str().into());
    rest.insert("id".to_owned(), Data::Text(format!("{id}_b")));
    let paths = Data::List(vec![one.as_str().into(), two.as_str().into()]);
    let merge = Data::object([
        ("id", Data::Text(format!("{id}_m"))),
        ("kind", "map".into()),
        ("fn", "merge".into()),
        ("args", Data::object([("paths", paths)])),
        ("writes", name.as_str().into()),
    ]);
    Ok((Data::Object(rest), merge))
}

/// Values that a split changes in the halves: what each writes, and the id of the second.
const SPLIT_RENAMED: usize = 3;

/// How local a split is. What the step asked for is asked by one half or by both, as it was: it is moved and not changed.
/// New are the names of the halves, and the step that merges them.
fn split_locality(child: &Workflow, step: &str) -> Locality {
    let steps = child.document().member("steps").and_then(Data::as_list);
    let place = child.place_of(&format!("{step}_m"));
    let merge = place.and_then(|at| steps?.get(at)).map_or(0, Data::nodes);
    Locality {
        ast_nodes: SPLIT_RENAMED + merge,
        new_llm_calls: 1,
        prompt_chars: 0,
        steps_touched: 2,
    }
}

fn within(locality: Locality, budget: &EditBudget, steps: usize) -> Result<(), Rejection> {
    let counts = [
        (
            "steps touched",
            locality.steps_touched,
            budget.steps_touched,
        ),
        ("JSON values", locality.ast_nodes, budget.ast_nodes),
        (
            "characters of prompts",
            locality.prompt_chars,
            budget.prompt_chars,
        ),
        ("new calls", locality.new_llm_calls, budget.new_llm_calls),
        ("steps", steps, STEPS_MAX),
    ];
    match counts.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => Err(Rejection::OverBudget { what, found, most }),
        None => Ok(()),
    }
}
