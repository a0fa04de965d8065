//! `clover rubric`: the rubric that an experiment starts from, what differs between two, and rules that never fire.

use std::io::BufRead as _;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input::Fault;
use crate::cli::record;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::id::ExperimentId;
use crate::ground::yaml::Place;
use crate::ground::yaml::YamlError;
use crate::ledger::Command;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::rubrics::Registered;
use crate::projection::rubrics::Rubrics;
use crate::rubric::Rubric;
use crate::rubric::between;
use crate::rubric::evidence::Evidence;
use crate::rubric::prompt::Firing;
use crate::workflow::patches;

const NEXT: &str = "clover rubric show EXPERIMENT";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Register the rubric that an experiment starts from
    #[command(after_help = "Example:\n  clover rubric register rubric.yaml --experiment arena")]
    Register(RegisterArgs),
    /// Show a rubric: YAML in its fixed form, hash, rules that can fire
    #[command(after_help = "Example:\n  clover rubric show rubric.yaml")]
    Show(ShowArgs),
    /// What one rubric has and another has not
    #[command(after_help = "Example:\n  clover rubric diff arena rubric.yaml")]
    Diff(DiffArgs),
    /// Registered rubrics
    #[command(after_help = "Example:\n  clover rubric list")]
    List,
    /// Rules that fire on fewer than one row in a thousand
    #[command(after_help = "Example:\n  clover rubric dead rubric.yaml --raw raw.jsonl")]
    Dead(DeadArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct RegisterArgs {
    /// The rubric, YAML; - for standard input
    pub file: PathBuf,
    /// The experiment that starts from it
    #[arg(long, value_name = "ID")]
    pub experiment: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// A file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub rubric: String,
    /// Show what the judge is told instead
    #[arg(long)]
    pub prompt: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The older one: a file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub old: String,
    /// The newer one
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub new: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeadArgs {
    /// A file, or an experiment, as in arena or arena@1.0
    #[arg(value_name = "FILE|EXPERIMENT[@VERSION]")]
    pub rubric: String,
    /// Raw answers, one {"base":0.8,"evidence":{…}} a line; once for each iteration
    #[arg(long, value_name = "FILE", required = true)]
    pub raw: Vec<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Register(args) => register(ctx, args),
        Verb::Show(args) => show(ctx, args),
        Verb::Diff(args) => compared(ctx, &args.old, &args.new),
        Verb::List => list(ctx),
        Verb::Dead(args) => dead(ctx, args),
    }
}

/// A fault of a document at its place.
pub(super) fn fault(source: &str, place: Place, message: String, next: &str) -> CliError {
    let fault = Fault {
        line: place.line.max(1),
        column: place.column,
        field: place.path,
        message,
    };
    fault.into_error(source, 1, next)
}

/// What a file is called in errors.
pub(super) fn source(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// A document as text.
pub(super) fn document(ctx: &mut Ctx<'_>, file: &Path, next: &str) -> Result<String, CliError> {
    let bytes = ctx.read(file)?;
    String::from_utf8(bytes).map_err(|_| {
        let message = "expected UTF-8".to_owned();
        fault(&source(file), Place::default(), message, next)
    })
}

fn register(ctx: &mut Ctx<'_>, args: &RegisterArgs) -> Result<Answer, CliError> {
    let yaml = document(ctx, &args.file, NEXT)?;
    let next = "clover rubric register --help";
    let wrong = |error: YamlError| fault(&source(&args.file), error.place, error.message, next);
    let payload = patches::register(&yaml).map_err(wrong)?;
    let experiment = record::experiment_id(&args.experiment)?;
    let (hash, version) = (payload.rubric_hash, payload.version.clone());
    let mut answer = record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)?;
    if !args.dry_run {
        answer.line(&format!("rubric {version}  hash {hash}"));
        answer.data["rubric_hash"] = hash.to_hex().into();
    }
    Ok(answer.with_next(format!("clover rubric show {}", args.experiment)))
}

/// A rubric from a file, or from the ledger.
pub(super) fn find(ctx: &mut Ctx<'_>, name: &str) -> Result<Rubric, CliError> {
    let file = Path::new(name);
    if name == "-" || crate::ground::ambient::exists(&ctx.path(file))? {
        let bytes = ctx.read(file)?;
        let wrong = |error: YamlError| fault(&source(file), error.place, error.message, NEXT);
        return Rubric::parse(&bytes).map_err(wrong);
    }
    let (_, ledger, view) = home::view(ctx)?;
    let found = named(view.state(&ledger), name);
    let found = found.map_err(|error| CliError {
        message: format!("no file, and {}", error.message),
        ..error
    })?;
    patches::rubric_of(found.1).ok_or_else(|| {
        let message = format!("the rubric of {name} cannot be read");
        CliError::not_found(message, "clover verify")
    })
}

/// A rubric of the ledger by its name, as in `arena` or `arena@1.0`.
pub(super) fn named<'a>(
    state: &'a State,
    name: &str,
) -> Result<(ExperimentId, &'a Registered), CliError> {
    let (experiment, version) = match name.split_once('@') {
        Some((experiment, version)) => (experiment, Some(version)),
        None => (name, None),
    };
    let experiment = record::experiment_id(experiment)?;
    match registered(state, &experiment, version) {
        Some(found) => Ok((experiment, found)),
        None => {
            let message = format!("no registered rubric {name}");
            Err(CliError::not_found(message, "clover rubric list"))
        }
    }
}

fn registered<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    version: Option<&str>,
) -> Option<&'a Registered> {
    let rubrics = state.fold::<Rubrics>();
    let Some(version) = version else {
        return rubrics.in_force(experiment);
    };
    let mut all = rubrics.by_experiment.get(experiment)?.iter().rev();
    all.find(|rubric| rubric.version == version)
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<Answer, CliError> {
    let rubric = find(ctx, &args.rubric)?;
    let none = std::collections::BTreeSet::new();
    let prompt = crate::rubric::prompt::render(&rubric, &none);
    let yaml = rubric.to_yaml();
    let rules: Vec<_> = rubric.rule_paths().into_iter().collect();
    let data = json!({
        "rubric_hash": rubric.hash().to_hex(), "version": rubric.version(), "yaml": yaml,
        "rules": rules, "prompt": prompt,
    });
    if args.prompt {
        return Ok(Answer::new(prompt, data));
    }
    let mut answer = Answer::new(yaml, data);
    answer.line(&format!("# hash {}", rubric.hash()));
    answer.line(&format!("# {} rules can fire", rules.len()));
    Ok(answer)
}

/// What one rubric has and another has not, with the code length of the difference.
pub(super) fn compared(ctx: &mut Ctx<'_>, old: &str, new: &str) -> Result<Answer, CliError> {
    let (old, new) = (find(ctx, old)?, find(ctx, new)?);
    let (changes, gone) = between(&old, &new);
    let mut text = String::new();
    let mut data = Vec::new();
    for change in &changes {
        let was = old.at(&change.path).map(ToString::to_string);
        let was = was.unwrap_or_else(|| "absent".to_owned());
        text.push_str(&format!("{}: {was} -> {}\n", change.path, change.value));
        data.push(json!({"path": change.path, "from": was, "to": change.value.to_string()}));
    }
    for path in &gone {
        text.push_str(&format!("{path}: gone, which no patch can do\n"));
        data.push(json!({"path": path, "to": Value::Null}));
    }
    let length = crate::rubric::kappa::length(old.leaves(), new.leaves());
    if data.is_empty() {
        text.push_str("the same\n");
    } else {
        text.push_str(&format!("code length {}\n", length.kappa()));
    }
    let data = json!({"changes": data, "kappa": length.kappa()});
    Ok(Answer::new(text, data))
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let all = &view.state(&ledger).fold::<Rubrics>().by_experiment;
    let rubrics = all
        .iter()
        .flat_map(|(id, of)| of.iter().map(move |rubric| (id, rubric)));
    let mut data = Vec::new();
    let mut rows = Vec::new();
    for (id, rubric) in rubrics {
        data.push(json!({
            "experiment": id.as_str(), "version": rubric.version, "seq": rubric.seq,
            "rubric_hash": rubric.hash.to_hex(), "leaves": rubric.leaves.len(),
        }));
        rows.push(vec![
            id.to_string(),
            rubric.version.clone(),
            format!("seq {}", rubric.seq),
            rubric.leaves.len().to_string(),
            rubric.hash.short().to_string(),
        ]);
    }
    let head = ["experiment", "version", "registered", "leaves", "hash"];
    Ok(Answer::new(
        ui::table(&head, rows),
        json!({"rubrics": data}),
    ))
}

/// One raw answer of a judge.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<'a> {
    #[serde(borrow)]
    base: &'a RawValue,
    #[serde(borrow)]
    evidence: &'a RawValue,
}

fn raw(line: &str) -> Result<(Micro, Evidence), String> {
    let raw: Raw<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (base, rounded) = Micro::parse(raw.base.get()).map_err(|error| format!("base: {error}"))?;
    if rounded {
        return Err("base: expected at most six decimals".to_owned());
    }
    let evidence = Evidence::from_json(raw.evidence.get().as_bytes());
    Ok((
        base,
        evidence.map_err(|error| format!("evidence: {error}"))?,
    ))
}

/// How often each rule fired over a file, and rows without a score.
fn fired(ctx: &mut Ctx<'_>, rubric: &Rubric, file: &Path) -> Result<(Firing, u64), CliError> {
    let (rules, mut firing, mut missing) = (rubric.rules(), Firing::new(rubric), 0);
    let next = "clover rubric dead --help";
    let reader = ctx.reader(file)?;
    for (at, line) in (1..).zip(reader.lines()) {
        let line = line.map_err(|error| CliError::input(error.to_string(), next))?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |message: String| {
            let place = Place {
                line: at,
                column: 0,
                path: String::new(),
            };
            fault(&source(file), place, message, next)
        };
        let (base, evidence) = raw(&line).map_err(wrong)?;
        match rules.score(base, &evidence) {
            Ok(scored) => firing.add(&scored),
            Err(crate::rubric::engine::EngineError::EvidenceMissing { .. }) => missing += 1,
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
    Ok((firing, missing))
}

fn dead(ctx: &mut Ctx<'_>, args: &DeadArgs) -> Result<Answer, CliError> {
    let rubric = find(ctx, &args.rubric)?;
    let mut files = Vec::new();
    for file in &args.raw {
        files.push(fired(ctx, &rubric, file)?);
    }
    let dead = |path: &String| {
        let rare = |(firing, _): &(Firing, u64)| firing.rare().contains(&path.as_str());
        files.len() > 1 && files[files.len() - 2..].iter().all(rare)
    };
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for path in rubric.rule_paths() {
        let counts: Vec<_> = files
            .iter()
            .map(|(firing, _)| (firing.fired[&path], firing.rows))
            .collect();
        let rare = files
            .iter()
            .any(|(of, _)| of.rare().contains(&path.as_str()));
        let standing = match (dead(&path), rare) {
            (true, _) => "dead",
            (false, true) => "rare",
            (false, false) => "",
        };
        let shown: Vec<_> = counts.iter().map(|(n, of)| format!("{n}/{of}")).collect();
        data.push(json!({"path": path, "standing": standing, "fired": counts}));
        rows.push(vec![path, shown.join("  "), standing.to_owned()]);
    }
    let missing: u64 = files.iter().map(|(_, missing)| missing).sum();
    let text = ui::table(&["rule", "fired", "standing"], rows);
    let data = json!({"rules": data, "evidence_missing": missing});
    let mut answer = Answer::new(text, data);
    if missing > 0 {
        answer.line(&format!(
            "{missing} rows have no score: their evidence was never checked"
        ));
    }
    Ok(answer)
}
