//! `clover analyze PATH`: policy values with honest intervals from files of judge-scored responses; no ledger.

use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake_verbs::GivenRows;
use crate::cli::replicating;
use crate::cli::replicating::WeightProgress;
use crate::ground::ambient;
use crate::ground::seed::SeedTree;
use crate::ground::shell;
use crate::num::Micro;
use crate::stats::direct::ClusterWeights;
use crate::stats::direct::Correction;
use crate::stats::direct::Exponential;
use crate::stats::direct::LabelDesign;
use crate::stats::direct::Scale;
use crate::stats::peer_draws::PeerExponential;
use crate::view::View;
use crate::view::analysis;
use crate::view::analysis::AnalysisShown;
use crate::view::analysis::FileFormat;
use crate::workflow::analyze;
use crate::workflow::analyze::AnalyzeError;
use crate::workflow::analyze::Labels;
use crate::workflow::analyze::Probe;
use crate::workflow::analyze::Replicates;
use crate::workflow::analyze::Request;
use crate::workflow::analyze::dataset::Dataset;
use crate::workflow::analyze::dataset::Prompts;
use crate::workflow::analyze::read;
use crate::workflow::analyze::read::FieldNames;
use crate::workflow::analyze::read::ReadError;
use crate::workflow::analyze::read::Responses;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::tools;
use crate::workflow::import::tools::Tool;
use crate::workflow::import::tools::ToolTerms;

/// What to type when the input is not right.
const HELP: &str = "clover analyze --help";
/// What stands below its options.
pub(super) const EXAMPLE: &str =
    "Example:\n  clover analyze fresh_draws --covariate response_length -o values.svg";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the responses are
    #[arg(
        help = "A folder of POLICY_responses.jsonl, or one file that names target_policy",
        value_name = "DIR|FILE"
    )]
    pub path: PathBuf,
    /// Covariates beside the score
    #[arg(
        long,
        value_name = "NAME",
        help = "Calibrate on response_length or another recorded number too"
    )]
    pub covariate: Vec<String>,
    /// Percentile intervals of N refitting replicates, such as 2000
    #[arg(long, value_name = "N")]
    pub bootstrap: Option<usize>,
    /// Seed of the replicates
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Whose: chacha, or numpy for cje-eval's own
    #[arg(long, value_name = "WHOSE", default_value = "chacha", value_parser = ["chacha", "numpy"], hide_possible_values = true)]
    pub draws: String,
    /// Fit the calibrator on this file's labels instead
    #[arg(long, value_name = "FILE")]
    pub calibration_data: Option<PathBuf>,
    /// Held-out labels of policy P: does calibration transfer?
    #[arg(long, value_name = "P=FILE", value_parser = named)]
    pub transport_probe: Vec<(String, String)>,
    /// Largest mean residual of P that passes; none: no pass
    #[arg(long, value_name = "P=D", value_parser = named)]
    pub transport_margin: Vec<(String, String)>,
    /// representative, or targeted in an unknown way
    #[arg(long, value_name = "HOW", default_value = "representative", value_parser = ["representative", "targeted"], hide_default_value = true, hide_possible_values = true)]
    pub labels: String,
    /// Trust in the judge beside own labels: one, or tuned (PPI++)
    #[arg(long, value_name = "WEIGHT", default_value = "one", value_parser = ["one", "tuned"], hide_default_value = true, hide_possible_values = true)]
    pub weight: String,
    /// Ends of the judge's scale, as 0:100 [else 0:1 or observed]
    #[arg(long, value_name = "LOW:HIGH", value_parser = scale)]
    pub judge_scale: Option<Scale>,
    /// Ends of the labels' scale
    #[arg(long, value_name = "LOW:HIGH", value_parser = scale)]
    pub label_scale: Option<Scale>,
    /// One less the level of intervals
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    pub alpha: f64,
    /// Write FILE.svg, FILE.html, FILE.json; may be repeated
    #[arg(long, short, value_name = "FILE")]
    pub out: Vec<PathBuf>,
}

/// `NAME=VALUE`.
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected POLICY=VALUE".to_owned()),
    }
}

/// `LOW:HIGH`.
fn scale(text: &str) -> Result<Scale, String> {
    let wrong = || "expected two numbers as 0:100, the second above the first".to_owned();
    let (low, high) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    Scale::new(number(low)?, number(high)?).map_err(|_| wrong())
}

/// What clap cannot check, and the kinds of files to write.
fn checked(args: &Args) -> Result<Vec<FileFormat>, CliError> {
    if !(args.alpha > 0.0 && args.alpha < 0.5) {
        return Err(CliError::usage(
            "--alpha: expected a number in (0, 0.5)",
            HELP,
        ));
    }
    if let Some(replicates) = args.bootstrap {
        replicating::checked(replicates, args.alpha, HELP)?;
    }
    args.out.iter().map(|path| format(path)).collect()
}

/// A file to write, by its ending.
fn format(path: &Path) -> Result<FileFormat, CliError> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(FileFormat::Json),
        Some("svg") => Ok(FileFormat::Svg),
        Some("html") => Ok(FileFormat::Html),
        _ => {
            let path = path.display();
            let message = format!("{path}: expected a name in .json, .svg or .html");
            Err(CliError::usage(message, HELP))
        }
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let kinds = checked(args)?;
    let (dataset, mut prompts) = dataset(ctx, args)?;
    let calibration = match &args.calibration_data {
        Some(path) => {
            let file = file(ctx, path, &fields(args))?;
            Some(read::calibration(&file, &mut prompts))
        }
        None => None,
    };
    let clusters = prompts.ids().len();
    let probes = probes(ctx, args, &mut prompts)?;
    let mut request = Request {
        judge_scale: args.judge_scale,
        label_scale: args.label_scale,
        probes: &probes,
        bounds_probes: true,
        labels: calibration.as_ref().map_or(Labels::Own, Labels::File),
        ..Request::default()
    };
    request.options.alpha = args.alpha;
    if args.labels == "targeted" {
        request.options.design = LabelDesign::TargetedUnknown;
    }
    if args.weight == "tuned" {
        request.options.correction = Correction::Tuned;
    }
    let shown = args.bootstrap.map(|replicates| {
        let weights = drawn(args, replicates, clusters);
        WeightProgress::new(weights, ctx.progress("replicates"))
    });
    request.replicates = shown.as_ref().map(|weights| Replicates {
        weights,
        // The peer's refits fold by the bootstrap's seed.
        fold_seed: if args.draws == "numpy" {
            args.seed
        } else {
            request.fold_seed
        },
    });
    let found = analyze::analyze(&dataset, &prompts, &request).map_err(|error| refused(&error))?;
    drop(shown);
    for warning in analysis::doubts(&dataset, &probes) {
        ctx.warn(warning);
    }
    let shown = AnalysisShown {
        analysis: &found,
        source: args.path.display().to_string(),
        covariates: &args.covariate,
        replicates: args.bootstrap,
        seed: args.seed,
        draws: &args.draws,
        declared: (args.judge_scale.is_some(), args.label_scale.is_some()),
        gaps: dataset.gaps(&(0..dataset.policies.len()).collect::<Vec<_>>()),
    };
    for (path, format) in args.out.iter().zip(kinds) {
        let text = shown.file(format);
        ambient::replace(&ctx.path(path), text.as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    for warning in shown.warnings() {
        ctx.warn(warning);
    }
    Ok(shown.view())
}

/// Random weights of replicates.
fn drawn(args: &Args, replicates: usize, clusters: usize) -> Box<dyn ClusterWeights> {
    if args.draws == "numpy" {
        return Box::new(PeerExponential::new(args.seed, replicates, clusters));
    }
    let seed = SeedTree::of_number(args.seed).child("analyze/bootstrap");
    Box::new(Exponential {
        seed: seed.seed(),
        replicates,
    })
}

fn fields(args: &Args) -> FieldNames {
    FieldNames {
        covariates: args.covariate.clone(),
        ..FieldNames::default()
    }
}

/// Reads one file.
fn file(ctx: &Ctx<'_>, path: &Path, fields: &FieldNames) -> Result<Responses, CliError> {
    let bytes = ambient::read(&ctx.path(path))?;
    parsed(&path.display().to_string(), &bytes, fields)
}

/// The scores of a file of another tool as JSON Lines: nothing else is asked of it, as `import` could.
fn of_tool(tool: Tool, name: &str, bytes: &[u8]) -> Result<String, CliError> {
    let wide = Micro::new(-Micro::MAX).zip(Micro::new(Micro::MAX));
    let how = How {
        policy: None,
        logprobs: false,
        brings: Brings::Scores,
        scale: wide.expect("BUG: the ends of all numbers"),
        label_scale: None,
        fields: &[],
        name_prompt: &str::to_owned,
    };
    let rows = tools::rows(tool, (name, bytes), ToolTerms::default(), how);
    rows.map(|rows| rows.responses()).map_err(|error| {
        let file = shell::word(name);
        CliError::input(
            error.to_string(),
            format!("clover import {} {file}", tool.verb()),
        )
    })
}

fn parsed(name: &str, bytes: &[u8], fields: &FieldNames) -> Result<Responses, CliError> {
    if let Some(tool) = Tool::of(FileForm::of(bytes)) {
        let text = of_tool(tool, name, bytes)?;
        return read::responses(name, &text, fields).map_err(|error| unreadable(&error));
    }
    let form = FileForm::of(bytes);
    if matches!(form, FileForm::Csv | FileForm::Separated(_)) {
        let message = format!(
            "{name}: expected JSON Lines, as `analyze` reads without a ledger, found {}",
            form.name()
        );
        let given = GivenRows::of(name, vec![(PathBuf::from(name), bytes.to_vec())]);
        let next = given.file(Brings::Scores).command("");
        return Err(CliError::input(message, next));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n');
        let line = line.count() + 1;
        CliError::input(format!("{name} line {line}: expected UTF-8"), HELP)
    })?;
    read::responses(name, text, fields).map_err(|error| unreadable(&error))
}

fn unreadable(error: &ReadError) -> CliError {
    let mut wrong = CliError::input(error.to_string(), HELP);
    wrong.data = serde_json::json!({
        "file": error.source_name, "line": error.line, "field": error.field,
    });
    wrong
}

fn refused(error: &AnalyzeError) -> CliError {
    CliError::input(error.to_string(), HELP)
}

/// Every policy's responses: from a folder, whose file names name policies, or from one file.
fn dataset(ctx: &Ctx<'_>, args: &Args) -> Result<(Dataset, Prompts), CliError> {
    let root = ctx.path(&args.path);
    let fields = fields(args);
    let files: Vec<(Option<String>, PathBuf)> = if ambient::is_dir(&root) {
        policies(&root)?
    } else {
        vec![(None, root)]
    };
    let files = files
        .into_par_iter()
        .map(|(policy, path)| {
            let bytes = ambient::read(&path)?;
            let responses = parsed(&path.display().to_string(), &bytes, &fields)?;
            Ok((policy, responses))
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    read::dataset(&files, &args.covariate).map_err(|error| unreadable(&error))
}

/// Files of a folder by policy: `POLICY_responses.jsonl`, else every `POLICY.jsonl`, else the same under `responses`.
fn policies(root: &Path) -> Result<Vec<(Option<String>, PathBuf)>, CliError> {
    for folder in [root.to_owned(), root.join("responses")] {
        if !ambient::is_dir(&folder) {
            continue;
        }
        let mut files = ambient::list(&folder)?;
        files.sort();
        for ending in ["_responses.jsonl", ".jsonl"] {
            let named = files.iter().filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                let policy = name.strip_suffix(ending)?;
                (!policy.is_empty()).then(|| (Some(policy.to_owned()), path.clone()))
            });
            let named: Vec<_> = named.collect();
            if !named.is_empty() {
                return Ok(named);
            }
        }
    }
    Err(CliError::not_found(
        format!("{}: no POLICY_responses.jsonl in it", root.display()),
        HELP,
    ))
}

/// Transport probes with their margins.
fn probes(ctx: &mut Ctx<'_>, args: &Args, prompts: &mut Prompts) -> Result<Vec<Probe>, CliError> {
    let mut margins = args.transport_margin.clone();
    let mut probes = Vec::new();
    for (policy, path) in &args.transport_probe {
        if probes
            .iter()
            .any(|probe: &Probe| probe.responses.name == *policy)
        {
            let message = format!("--transport-probe: {policy} is there twice");
            return Err(CliError::usage(message, HELP));
        }
        let file = file(ctx, Path::new(path), &fields(args))?;
        let at = margins.iter().position(|(name, _)| name == policy);
        let margin = if let Some(at) = at {
            let (_, text) = margins.remove(at);
            let margin = text.parse::<f64>().ok();
            let margin = margin.filter(|margin| margin.is_finite() && *margin > 0.0);
            Some(margin.ok_or_else(|| {
                let message = format!("--transport-margin {policy}: expected a number above 0");
                CliError::usage(message, HELP)
            })?)
        } else {
            ctx.warn(format!(
                "--transport-probe {policy}: without --transport-margin {policy}=D nothing is held to a margin, and no audit passes; D is in label units, such as 0.05"
            ));
            None
        };
        let rows: Vec<usize> = (0..file.scores.len()).collect();
        probes.push(Probe {
            responses: read::probe(policy, &file, &rows, prompts),
            margin,
        });
    }
    if let Some((policy, _)) = margins.first() {
        let message = format!("--transport-margin: no --transport-probe for {policy}");
        return Err(CliError::usage(message, HELP));
    }
    Ok(probes)
}
