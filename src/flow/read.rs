//! Reading and checking a document of `wf/1`.

use std::collections::BTreeSet;

use crate::decode::Fields;
use crate::decode::Spot;
use crate::expr::Expr;
use crate::expr::NAME_MAX;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::number::Number;
use crate::number::Ties;
use crate::path::Path;
use crate::path::is_name;
use crate::scope::Scope;
use crate::shape;
use crate::shape::Shape;
use crate::syntax::Node;
use crate::template::Template;
use crate::workflow::Action;
use crate::workflow::CHAIN_MAX;
use crate::workflow::CheckStep;
use crate::workflow::GuardStep;
use crate::workflow::INPUTS_MAX;
use crate::workflow::LANGUAGE;
use crate::workflow::LlmStep;
use crate::workflow::MapFunction;
use crate::workflow::MapStep;
use crate::workflow::ModelSettings;
use crate::workflow::PROMPT_MAX;
use crate::workflow::ReturnStep;
use crate::workflow::STEPS_MAX;
use crate::workflow::Step;
use crate::workflow::TRIES_MAX;

/// The hole of a guard's note that holds the flags that are false.
pub(crate) const FLAGS: &str = "flags";
/// Most paths that a step reads.
const READS_MAX: usize = 16;
/// Most characters of a guard's note.
const NOTE_MAX: usize = 400;
/// Most entries of a table.
const TABLE_MAX: usize = 256;

/// What a document says.
pub(crate) struct Draft {
    pub(crate) inputs: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) returns: Path,
    pub(crate) chain: usize,
}

/// Reads a step of one kind, whose id is known.
type ReadStep = fn(&Reader, &Spot<'_>, &str) -> Result<Action, Fault>;
/// Reads the arguments of one function.
type ReadFunction = fn(&Scope, &Spot<'_>) -> Result<MapFunction, Fault>;

/// What is known before a step.
struct Reader {
    scope: Scope,
    defaults: ModelSettings,
    steps: Vec<Step>,
    /// Depth of each step in its chain.
    depths: Vec<usize>,
    ids: BTreeSet<String>,
}

pub(crate) fn workflow(node: &Node) -> Result<Draft, Fault> {
    let root = Spot::root(node);
    // A document of another language is told so, whatever else it holds.
    root.member("ir")?
        .word(&[(LANGUAGE, ())], "the language \"wf/1\"")?;
    let fields = root.fields(&["ir", "inputs", "defaults", "steps", "return"])?;
    let mut inputs = Vec::new();
    for spot in fields.need("inputs")?.list(INPUTS_MAX)? {
        let name = name(&spot)?;
        if inputs.contains(&name) {
            return Err(spot.fault(FaultKind::Twice(name)));
        }
        inputs.push(name);
    }
    let standard = ModelSettings {
        model: "@exec".to_owned(),
        temperature: Number::default(),
        max_tokens: 512,
        seed: 7,
    };
    let mut reader = Reader {
        scope: Scope::new(inputs.iter().map(String::as_str)),
        defaults: match fields.get("defaults") {
            Some(spot) => settings(
                &spot.fields(&["model", "temperature", "max_tokens", "seed"])?,
                &standard,
            )?,
            None => standard,
        },
        steps: Vec::new(),
        depths: Vec::new(),
        ids: BTreeSet::new(),
    };
    let steps = fields.need("steps")?;
    for spot in steps.list(STEPS_MAX)? {
        reader.step(&spot)?;
    }
    if reader.steps.is_empty() {
        return Err(steps.expected("at least one step"));
    }
    Ok(Draft {
        returns: reader.scope.path(&fields.need("return")?)?,
        inputs,
        steps: reader.steps,
        chain: reader.depths.into_iter().max().unwrap_or(0),
    })
}

/// A name that the document gives.
fn name(spot: &Spot<'_>) -> Result<String, Fault> {
    let text = spot.text(NAME_MAX)?;
    if !is_name(text) || text == FLAGS {
        return Err(spot.expected("a name such as draft: [a-z][a-z0-9_]{0,31}, and not flags"));
    }
    Ok(text.to_owned())
}

fn settings(fields: &Fields<'_>, standard: &ModelSettings) -> Result<ModelSettings, Fault> {
    let mut of = standard.clone();
    if let Some(spot) = fields.get("model") {
        spot.text(200)?.clone_into(&mut of.model);
    }
    if let Some(spot) = fields.get("temperature") {
        let number = spot.number()?;
        if !(0..=2_000_000).contains(&number.millionths()) {
            return Err(spot.expected("a number from 0 to 2"));
        }
        of.temperature = number;
    }
    if let Some(spot) = fields.get("max_tokens") {
        of.max_tokens = spot.count(1, 32_768, "a whole number from 1 to 32768")?;
    }
    if let Some(spot) = fields.get("seed") {
        of.seed = spot.count(
            0,
            clover_num::INTEGER_MAX,
            "a whole number from 0 to 2^53 - 1",
        )?;
    }
    Ok(of)
}

fn template(spot: &Spot<'_>, most: usize) -> Result<Template, Fault> {
    Template::parse(spot.text(most)?).map_err(|kind| spot.fault(kind))
}

/// A template whose paths are all written.
fn scoped(spot: &Spot<'_>, most: usize, scope: &Scope, extra: &str) -> Result<Template, Fault> {
    let template = template(spot, most)?;
    for path in template.paths() {
        if !scope.has_name(path.root()) && path.to_string() != extra {
            return Err(spot.fault(FaultKind::NotWritten(path.root().to_owned())));
        }
    }
    Ok(template)
}

impl Reader {
    fn step(&mut self, spot: &Spot<'_>) -> Result<(), Fault> {
        let id_spot = spot.member("id")?;
        let id = name(&id_spot)?;
        if !self.ids.insert(id.clone()) {
            return Err(id_spot.fault(FaultKind::Twice(id)));
        }
        let kinds: &[(&str, ReadStep)] = &[
            ("llm", Self::llm),
            ("check", Self::check),
            ("guard", Self::guard),
            ("map", Self::map),
            ("return", Self::ending),
        ];
        let kind = spot.member("kind")?;
        let read = kind.word(kinds, "llm, check, guard, map or return")?;
        let step = Step {
            action: read(self, spot, &id)?,
            id,
        };
        let needs = self.scope.depth(step.reads(), step.flags());
        let target = match &step.action {
            Action::Guard(guard) => self.depths[guard.target],
            _ => 0,
        };
        let depth = needs.max(target) + 1;
        if depth > CHAIN_MAX {
            return Err(spot.fault(FaultKind::TooMany {
                what: "steps of a chain in which each needs the one before",
                most: CHAIN_MAX,
                found: depth,
            }));
        }
        if let Some(name) = step.writes() {
            self.scope.write(name, depth);
        }
        if let Action::Check(check) = &step.action {
            self.scope.set_flag(&check.flag, depth);
        }
        self.depths.push(depth);
        self.steps.push(step);
        Ok(())
    }

    /// A name that nothing writes yet.
    fn writes(&self, fields: &Fields<'_>) -> Result<String, Fault> {
        let spot = fields.need("writes")?;
        let name = name(&spot)?;
        if self.scope.has_name(&name) {
            return Err(spot.fault(FaultKind::Twice(name)));
        }
        Ok(name)
    }

    fn llm(&self, spot: &Spot<'_>, _: &str) -> Result<Action, Fault> {
        let fields = spot.fields(&[
            "id",
            "kind",
            "prompt",
            "reads",
            "out",
            "writes",
            "model",
            "temperature",
            "max_tokens",
            "seed",
        ])?;
        let reads = fields.need("reads")?.list(READS_MAX)?;
        let reads: Vec<Path> = reads
            .iter()
            .map(|spot| self.scope.path(spot))
            .collect::<Result<_, _>>()?;
        let prompt = fields.need("prompt")?.fields(&["system", "user"])?;
        let read = |spot: &Spot<'_>| {
            let template = template(spot, PROMPT_MAX)?;
            let unread = |path: &&Path| !reads.iter().any(|read| path.is_within(read));
            if let Some(path) = template.paths().find(unread) {
                return Err(spot.fault(FaultKind::NotRead(path.to_string())));
            }
            Ok(template)
        };
        let system = prompt.get("system").map(|spot| read(&spot)).transpose()?;
        let user = read(&prompt.need("user")?)?;
        let (is_json, shape) = match fields.get("out") {
            None => (false, None),
            Some(spot) => {
                let out = spot.fields(&["as", "schema"])?;
                let is_json = out
                    .need("as")?
                    .word(&[("json", true), ("text", false)], "json or text")?;
                let shape = out.get("schema").map(|spot| Shape::decode(&spot));
                (is_json, shape.transpose()?)
            }
        };
        Ok(Action::Llm(Box::new(LlmStep {
            system,
            user,
            reads,
            is_json,
            shape,
            writes: self.writes(&fields)?,
            settings: settings(&fields, &self.defaults)?,
        })))
    }

    fn check(&self, spot: &Spot<'_>, id: &str) -> Result<Action, Fault> {
        let fields = spot.fields(&["id", "kind", "expr", "hard", "flag"])?;
        let given = fields.get("flag");
        let flag = given.as_ref().map_or(Ok(id.to_owned()), name)?;
        if self.scope.has_flag(&flag) {
            return Err(given.unwrap_or(spot.clone()).fault(FaultKind::Twice(flag)));
        }
        Ok(Action::Check(CheckStep {
            expr: Expr::decode(&fields.need("expr")?, &self.scope)?,
            is_hard: fields.need("hard")?.bool()?,
            flag,
        }))
    }

    fn guard(&self, spot: &Spot<'_>, _: &str) -> Result<Action, Fault> {
        let fields = spot.fields(&["id", "kind", "target", "when", "max_tries", "note"])?;
        let target = fields.need("target")?;
        let id = target.text(NAME_MAX)?;
        let is_target = |step: &Step| step.id == id && matches!(step.action, Action::Llm(_));
        let place = self.steps.iter().position(is_target);
        let none = || target.fault(FaultKind::NoStep(id.to_owned()));
        let note = fields.get("note");
        let note = note.map(|spot| scoped(&spot, NOTE_MAX, &self.scope, FLAGS));
        Ok(Action::Guard(GuardStep {
            target: place.ok_or_else(none)?,
            when: Expr::decode(&fields.need("when")?, &self.scope)?,
            max_tries: fields.need("max_tries")?.count(
                1,
                TRIES_MAX,
                "a whole number from 1 to 3",
            )?,
            note: note.transpose()?,
        }))
    }

    fn map(&self, spot: &Spot<'_>, _: &str) -> Result<Action, Fault> {
        let fields = spot.fields(&["id", "kind", "fn", "args", "writes"])?;
        let args = fields.need("args")?;
        let word = fields.need("fn")?;
        let functions: &[(&str, ReadFunction)] = &[
            ("select", |scope, args| {
                Ok(MapFunction::Select(only(scope, args)?))
            }),
            ("merge", merge),
            ("parse_json", |scope, args| {
                Ok(MapFunction::ParseJson(only(scope, args)?))
            }),
            ("regex", regex),
            ("lower", |scope, args| {
                Ok(MapFunction::Lower(only(scope, args)?))
            }),
            ("round", round),
            ("lookup", lookup),
            ("concat", concat),
            ("const", |_, args| {
                Ok(MapFunction::Const(
                    args.fields(&["value"])?.need("value")?.data()?,
                ))
            }),
        ];
        let wanted = "select, merge, parse_json, regex, lower, round, lookup, concat or const";
        let read = word.word(functions, wanted)?;
        Ok(Action::Map(MapStep {
            function: read(&self.scope, &args)?,
            writes: self.writes(&fields)?,
        }))
    }

    fn ending(&self, spot: &Spot<'_>, _: &str) -> Result<Action, Fault> {
        let fields = spot.fields(&["id", "kind", "path", "when"])?;
        let when = fields.get("when");
        let when = when.map(|spot| Expr::decode(&spot, &self.scope));
        Ok(Action::Return(ReturnStep {
            path: self.scope.path(&fields.need("path")?)?,
            when: when.transpose()?,
        }))
    }
}

/// The path of a function that takes nothing else.
fn only(scope: &Scope, args: &Spot<'_>) -> Result<Path, Fault> {
    scope.path(&args.fields(&["path"])?.need("path")?)
}

fn merge(scope: &Scope, args: &Spot<'_>) -> Result<MapFunction, Fault> {
    let paths = args.fields(&["paths"])?.need("paths")?.list(READS_MAX)?;
    let paths = paths.iter().map(|spot| scope.path(spot));
    Ok(MapFunction::Merge(paths.collect::<Result<_, _>>()?))
}

fn regex(scope: &Scope, args: &Spot<'_>) -> Result<MapFunction, Fault> {
    let fields = args.fields(&["path", "pattern", "group", "else"])?;
    let spot = fields.need("pattern")?;
    let pattern = shape::pattern(&spot)?;
    let group = match fields.get("group") {
        None => 0,
        Some(spot) => {
            let group = spot.count(0, 50, "the number of a group of the pattern")?;
            let group = usize::try_from(group).unwrap_or(usize::MAX);
            if group >= pattern.groups() {
                return Err(spot.expected("the number of a group of the pattern"));
            }
            group
        }
    };
    Ok(MapFunction::Regex {
        path: scope.path(&fields.need("path")?)?,
        pattern,
        group,
        otherwise: fields.get("else").map(|spot| spot.data()).transpose()?,
    })
}

fn round(scope: &Scope, args: &Spot<'_>) -> Result<MapFunction, Fault> {
    let fields = args.fields(&["path", "decimals", "ties"])?;
    let decimals = fields.need("decimals")?;
    let decimals = decimals.count(0, u64::from(crate::number::DECIMALS_MAX), "0 to 6")?;
    let ties = fields.get("ties").map(|spot| {
        spot.word(
            &[("even", Ties::Even), ("away", Ties::Away)],
            "even or away",
        )
    });
    Ok(MapFunction::Round {
        path: scope.path(&fields.need("path")?)?,
        decimals: u32::try_from(decimals).unwrap_or(0),
        ties: ties.transpose()?.unwrap_or(Ties::Even),
    })
}

fn lookup(scope: &Scope, args: &Spot<'_>) -> Result<MapFunction, Fault> {
    let fields = args.fields(&["path", "table", "else"])?;
    let spot = fields.need("table")?;
    let members = spot.members()?;
    if members.len() > TABLE_MAX {
        return Err(spot.fault(FaultKind::TooMany {
            what: "entries",
            most: TABLE_MAX,
            found: members.len(),
        }));
    }
    let table = members
        .into_iter()
        .map(|(name, spot)| Ok((name.to_owned(), spot.data()?)));
    Ok(MapFunction::Lookup {
        path: scope.path(&fields.need("path")?)?,
        table: table.collect::<Result<_, Fault>>()?,
        otherwise: fields.get("else").map(|spot| spot.data()).transpose()?,
    })
}

fn concat(scope: &Scope, args: &Spot<'_>) -> Result<MapFunction, Fault> {
    let spot = args.fields(&["template"])?.need("template")?;
    Ok(MapFunction::Concat(scoped(&spot, PROMPT_MAX, scope, "")?))
}
