//! A workflow, as `wf/1` says it: closed JSON of steps that are run in order.

use std::collections::BTreeMap;

use clover_ground::canon;
use clover_ground::digest::Digest;

use crate::expr::Expr;
use crate::fault::Fault;
use crate::number::Number;
use crate::number::Ties;
use crate::path::Path;
use crate::pattern::Pattern;
use crate::shape::Shape;
use crate::template::Template;
use crate::value::Data;

/// The word of the language.
pub const LANGUAGE: &str = "wf/1";
/// Domain of a workflow's digest.
const WORKFLOW_LABEL: &str = "clover/wf-ir/v1";
/// Most bytes of a document.
pub const BYTES_MAX: usize = 64 * 1024;
/// Most steps.
pub const STEPS_MAX: usize = 24;
/// Most steps of a chain in which each needs the one before.
pub const CHAIN_MAX: usize = 12;
/// Most inputs.
pub const INPUTS_MAX: usize = 8;
/// Most characters of a prompt's text.
pub const PROMPT_MAX: usize = 8_000;
/// Most tries of a guard.
pub const TRIES_MAX: u64 = 3;
/// Columns of a printed workflow.
const WIDTH: usize = 100;
/// Members that are printed before others.
const ORDER: &[&str] = &[
    "ir", "inputs", "defaults", "id", "kind", "op", "fn", "target", "system", "user", "prompt",
    "path", "a", "b", "of", "steps", "return",
];

/// A workflow that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    document: Data,
    digest: Digest,
    pub(crate) inputs: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) returns: Path,
    pub(crate) chain: usize,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its id, which no other step has.
    pub id: String,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Asks a model.
    Llm(Box<LlmStep>),
    /// Sets a flag.
    Check(CheckStep),
    /// Runs an earlier llm step again, and all steps since, while something is true.
    Guard(GuardStep),
    /// Computes a value.
    Map(MapStep),
    /// Ends the run.
    Return(ReturnStep),
}

/// A step that asks a model.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmStep {
    /// The text for the system's role.
    pub system: Option<Template>,
    /// The text for the user's role.
    pub user: Template,
    /// What its templates may name, and what lies below.
    pub reads: Vec<Path>,
    /// Whether the answer is read as JSON; else it is text.
    pub is_json: bool,
    /// What the answer must look like.
    pub shape: Option<Shape>,
    /// The name that holds the answer.
    pub writes: String,
    /// How the model is asked.
    pub settings: ModelSettings,
}

/// How a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// Its name; `@exec` is the one that the run is given.
    pub model: String,
    /// Its temperature, 0 to 2.
    pub temperature: Number,
    /// Most tokens of an answer.
    pub max_tokens: u64,
    /// Its seed.
    pub seed: u64,
}

/// A step that sets a flag.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckStep {
    /// What must be true.
    pub expr: Expr,
    /// Whether an output is of no use where it is false.
    pub is_hard: bool,
    /// The flag that it sets; its own id where the document names none.
    pub flag: String,
}

/// A step that runs others again.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardStep {
    /// The place of the llm step that is run again.
    pub target: usize,
    /// Again while this is true.
    pub when: Expr,
    /// Most times, 1 to 3.
    pub max_tries: u64,
    /// What is added to the prompt, if anything; `{{flags}}` is the list of flags that are false.
    pub note: Option<Template>,
}

/// A step that computes a value.
#[derive(Clone, Debug, PartialEq)]
pub struct MapStep {
    /// What it computes.
    pub function: MapFunction,
    /// The name that holds it.
    pub writes: String,
}

/// What a map step computes.
#[derive(Clone, Debug, PartialEq)]
pub enum MapFunction {
    /// The value at a path.
    Select(Path),
    /// One object of the members of several; what comes later wins.
    Merge(Vec<Path>),
    /// The JSON that a text holds.
    ParseJson(Path),
    /// What a group of a pattern's first match holds.
    Regex {
        /// The text.
        path: Path,
        /// The pattern.
        pattern: Pattern,
        /// The group; 0 for all of the match.
        group: usize,
        /// What it is where nothing matches; else the run ends there.
        otherwise: Option<Data>,
    },
    /// A text with its ASCII letters in lower case.
    Lower(Path),
    /// A number with so many decimals.
    Round {
        /// The number.
        path: Path,
        /// Decimals, 0 to 6.
        decimals: u32,
        /// Where halves go.
        ties: Ties,
    },
    /// What a table has for a text, or for the decimal text of a number.
    Lookup {
        /// The text.
        path: Path,
        /// The table.
        table: BTreeMap<String, Data>,
        /// What it is where the table has nothing; else the run ends there.
        otherwise: Option<Data>,
    },
    /// A template, filled.
    Concat(Template),
    /// A value of the document.
    Const(Data),
}

/// A step that ends the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnStep {
    /// What is returned.
    pub path: Path,
    /// Only where this is true.
    pub when: Option<Expr>,
}

impl Step {
    /// The word of its kind.
    pub fn kind(&self) -> &'static str {
        match self.action {
            Action::Llm(_) => "llm",
            Action::Check(_) => "check",
            Action::Guard(_) => "guard",
            Action::Map(_) => "map",
            Action::Return(_) => "return",
        }
    }

    /// The name that it writes.
    pub fn writes(&self) -> Option<&str> {
        match &self.action {
            Action::Llm(step) => Some(&step.writes),
            Action::Map(step) => Some(&step.writes),
            _ => None,
        }
    }

    /// Paths that it reads, in order.
    pub fn reads(&self) -> Vec<&Path> {
        match &self.action {
            Action::Llm(step) => step.reads.iter().collect(),
            Action::Check(step) => step.expr.paths(),
            Action::Guard(step) => {
                let note = step.note.iter().flat_map(Template::paths);
                let note = note.filter(|path| path.root() != crate::read::FLAGS);
                step.when.paths().into_iter().chain(note).collect()
            }
            Action::Map(step) => step.function.reads(),
            Action::Return(step) => {
                let when = step.when.iter().flat_map(Expr::paths);
                std::iter::once(&step.path).chain(when).collect()
            }
        }
    }

    /// Flags that it asks for, in order.
    pub fn flags(&self) -> Vec<&str> {
        match &self.action {
            Action::Check(step) => step.expr.flags(),
            Action::Guard(step) => step.when.flags(),
            Action::Return(step) => step.when.iter().flat_map(Expr::flags).collect(),
            Action::Llm(_) | Action::Map(_) => Vec::new(),
        }
    }
}

impl MapFunction {
    /// The word of the function.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Select(_) => "select",
            Self::Merge(_) => "merge",
            Self::ParseJson(_) => "parse_json",
            Self::Regex { .. } => "regex",
            Self::Lower(_) => "lower",
            Self::Round { .. } => "round",
            Self::Lookup { .. } => "lookup",
            Self::Concat(_) => "concat",
            Self::Const(_) => "const",
        }
    }

    fn reads(&self) -> Vec<&Path> {
        match self {
            Self::Select(path)
            | Self::ParseJson(path)
            | Self::Lower(path)
            | Self::Regex { path, .. }
            | Self::Round { path, .. }
            | Self::Lookup { path, .. } => vec![path],
            Self::Merge(paths) => paths.iter().collect(),
            Self::Concat(template) => template.paths().collect(),
            Self::Const(_) => Vec::new(),
        }
    }
}

impl Workflow {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// [`Fault`] at the first place that the language refuses.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let node = crate::syntax::parse(text, BYTES_MAX)?;
        let draft = crate::read::workflow(&node)?;
        let document = node.into_data();
        let digest = canon::digest(WORKFLOW_LABEL, &document);
        Ok(Self {
            document,
            digest,
            inputs: draft.inputs,
            steps: draft.steps,
            returns: draft.returns,
            chain: draft.chain,
        })
    }

    /// Checks a document that an edit has made; places are those of its print.
    ///
    /// # Errors
    /// [`Fault`] at the first place that the language refuses.
    pub fn of(document: &Data) -> Result<Self, Fault> {
        Self::parse(&print(document))
    }

    /// SHA-256 of `clover/wf-ir/v1`, a zero byte and the canonical form of its document.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its document.
    pub fn document(&self) -> &Data {
        &self.document
    }

    /// Its document as people read it. Reading it gives the same workflow.
    pub fn print(&self) -> String {
        print(&self.document)
    }

    /// Names of its inputs.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Its steps, in the order of a run.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What a run returns where no return step ends it.
    pub fn returns(&self) -> &Path {
        &self.returns
    }

    /// Steps of its longest chain in which each needs the one before.
    pub fn chain(&self) -> usize {
        self.chain
    }

    /// The place of a step.
    pub fn place_of(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id)
    }

    /// How many steps ask a model.
    pub fn llm_steps(&self) -> usize {
        let asks = |step: &&Step| matches!(step.action, Action::Llm(_));
        self.steps.iter().filter(asks).count()
    }
}

/// A document as people read it.
pub fn print(document: &Data) -> String {
    document.pretty(ORDER, WIDTH)
}
