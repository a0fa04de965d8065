//! `clover import inspect|promptfoo|langfuse|openai-evals|otel`: files of other tools, as those tools write them.
//!
//! A file becomes rows, and the rows go the way of any import: every file or none, conflicts before anything is written.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::import_labels;
use crate::cli::import_labels::LabelsArgs;
use crate::cli::import_rows;
use crate::cli::import_rows::RowsArgs;
use crate::cli::intake;
use crate::cli::intake::ImportArgs;
use crate::cli::intake::SealOptions;
use crate::cli::intake_files;
use crate::cli::intake_forms::Verb;
use crate::ground::shell;
use crate::view::View;
use crate::workflow::import::How;
use crate::workflow::import::ImportError;
use crate::workflow::import::ImportRows;
use crate::workflow::import::tools;
use crate::workflow::import::tools::TakenAs;
use crate::workflow::import::tools::Tool;
use crate::workflow::import::tools::ToolTerms;

/// What the verbs of tools share.
#[derive(Debug, clap::Args)]
pub(super) struct ToolOptions {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from the file
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Who judged
    #[arg(long, value_name = "ID", default_value = "judge")]
    pub judge: String,
    /// Which score, where the file has several
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Ends of the scale of scores [default: 0:1]
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub scale: Option<String>,
    /// Keep a field beside each score for slices: public
    #[arg(long, value_name = "NAME")]
    pub field: Vec<String>,
    /// Show counts, ranges, mapping and warnings; append nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before conflicts are recorded
    #[arg(long, hide = true)]
    pub yes: bool,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY", hide = true)]
    pub scorer: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct InspectArgs {
    /// Logs: .eval, or JSON as `inspect log dump` writes it
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub common: ToolOptions,
    /// Which member of a score that is a map or a list
    #[arg(long, value_name = "NAME")]
    pub scorer_key: Option<String>,
    /// Leave out texts: of an archive two members are read
    #[arg(long, conflicts_with = "texts_only")]
    pub scores_only: bool,
    /// Leave out scores: texts wait for `clover judge run`
    #[arg(long, conflicts_with_all = ["score", "scorer_key"])]
    pub texts_only: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromptfooArgs {
    /// Results as JSON
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub common: ToolOptions,
    /// Leave out scores: texts wait for `clover judge run`
    #[arg(long, conflicts_with = "score")]
    pub texts_only: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct FilesArgs {
    /// Files as the tool writes them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub common: ToolOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct LangfuseArgs {
    /// Pages of the API, JSON Lines or CSV
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub common: ToolOptions,
    /// What scores are: judge or label; needed where they came by the API
    #[arg(long = "as", value_name = "WHAT", value_parser = ["judge", "label"], hide_possible_values = true)]
    pub taken_as: Option<String>,
    /// Of labels: the design of open ones
    #[arg(long, value_name = "DESIGN")]
    pub design: Option<String>,
    /// Of labels: calibrate or audit
    #[arg(long, value_name = "WHAT", value_parser = ["calibrate", "audit"], hide_possible_values = true)]
    pub purpose: Option<String>,
    /// Who labelled, where the file does not say
    #[arg(long, value_name = "ID", hide = true)]
    pub rater: Option<String>,
    #[command(flatten)]
    pub sealing: SealOptions,
}

impl ToolOptions {
    fn import(&self) -> ImportArgs {
        ImportArgs {
            experiment: self.experiment.clone(),
            policy: self.policy.clone(),
            judge: self.judge.clone(),
            rater: "oracle".to_owned(),
            labels: None,
            purpose: None,
            sealing: SealOptions::default(),
            scale: self.scale.clone().unwrap_or_else(|| "0:1".to_owned()),
            label_scale: None,
            field: self.field.clone(),
            dry_run: self.dry_run,
            yes: self.yes,
            scorer: self.scorer.clone(),
        }
    }

    /// Texts alone, as `import rows` takes them.
    fn rows(&self, files: &[PathBuf]) -> RowsArgs {
        RowsArgs {
            paths: files.to_vec(),
            map: Vec::new(),
            experiment: self.experiment.clone(),
            policy: self.policy.clone(),
            field: self.field.clone(),
            without_texts: false,
            dry_run: self.dry_run,
            scorer: self.scorer.clone(),
        }
    }
}

/// An option that was given, as it can be typed again.
fn again(option: &str, value: Option<&String>) -> String {
    value.map_or_else(String::new, |value| {
        format!(" --{option} {}", shell::word(value))
    })
}

/// The reader of a tool's files.
fn parsed(
    tool: Tool,
    terms: ToolTerms<'_>,
) -> impl Fn(&Path, &[u8], How<'_>) -> Result<ImportRows, ImportError> {
    move |path, bytes, how| {
        let named = how.policy.cloned().or_else(|| intake_files::of_name(path));
        let how = How {
            policy: named.as_ref(),
            ..how
        };
        tools::rows(tool, (&path.display().to_string(), bytes), terms, how)
    }
}

/// Records the scores of files.
fn scores(
    ctx: &mut Ctx<'_>,
    tool: Tool,
    (files, common): (&[PathBuf], &ToolOptions),
    (terms, own): (ToolTerms<'_>, &str),
) -> Result<View, CliError> {
    let own = format!("{}{own}", again("score", common.score.as_ref()));
    let terms = ToolTerms {
        score: common.score.as_deref(),
        ..terms
    };
    intake::run(
        ctx,
        (&common.import(), &own),
        (tool.format(), Verb::Tool(tool)),
        (files, files),
        &parsed(tool, terms),
    )
}

pub(super) fn inspect(ctx: &mut Ctx<'_>, args: &InspectArgs) -> Result<View, CliError> {
    let (tool, terms) = (Tool::Inspect, ToolTerms::default());
    if args.texts_only {
        let rows = args.common.rows(&args.files);
        return import_rows::take(ctx, &rows, Verb::Tool(tool), &parsed(tool, terms));
    }
    let mut own = again("scorer-key", args.scorer_key.as_ref());
    if args.scores_only {
        own.push_str(" --scores-only");
    }
    let terms = ToolTerms {
        member: args.scorer_key.as_deref(),
        scores_only: args.scores_only,
        ..terms
    };
    scores(ctx, tool, (&args.files, &args.common), (terms, &own))
}

pub(super) fn promptfoo(ctx: &mut Ctx<'_>, args: &PromptfooArgs) -> Result<View, CliError> {
    let (tool, terms) = (Tool::Promptfoo, ToolTerms::default());
    if args.texts_only {
        let rows = args.common.rows(&args.files);
        return import_rows::take(ctx, &rows, Verb::Tool(tool), &parsed(tool, terms));
    }
    scores(ctx, tool, (&args.files, &args.common), (terms, ""))
}

pub(super) fn files(ctx: &mut Ctx<'_>, tool: Tool, args: &FilesArgs) -> Result<View, CliError> {
    let of = (args.files.as_slice(), &args.common);
    scores(ctx, tool, of, (ToolTerms::default(), ""))
}

pub(super) fn langfuse(ctx: &mut Ctx<'_>, args: &LangfuseArgs) -> Result<View, CliError> {
    let taken_as = args.taken_as.as_deref().map(|what| match what {
        "label" => TakenAs::Label,
        _ => TakenAs::Judge,
    });
    let terms = ToolTerms {
        taken_as,
        ..ToolTerms::default()
    };
    if taken_as == Some(TakenAs::Label) {
        return annotations(ctx, args, terms);
    }
    let sealing = &args.sealing;
    if args.design.is_some() || args.rater.is_some() || sealing.seal.is_some() {
        let message = "--design, --rater and --seal are of labels: expected --as label beside them";
        return Err(CliError::usage(message, "the same command with --as label"));
    }
    let own = again("as", args.taken_as.as_ref());
    let of = (args.files.as_slice(), &args.common);
    scores(ctx, Tool::Langfuse, of, (terms, &own))
}

/// Records what people said as labels, for rows that the ledger holds.
fn annotations(
    ctx: &mut Ctx<'_>,
    args: &LangfuseArgs,
    terms: ToolTerms<'_>,
) -> Result<View, CliError> {
    let [file] = args.files.as_slice() else {
        let message = "--as label: expected one file, found several: pages can be joined into one";
        let names: Vec<_> = args
            .files
            .iter()
            .map(|of| shell::word(&of.display()))
            .collect();
        let next = format!("cat {} > labels.json", names.join(" "));
        return Err(CliError::usage(message, next));
    };
    let common = &args.common;
    if !common.field.is_empty() {
        let message = "--field: labels keep no field; the rows that they are of may have it";
        return Err(CliError::usage(message, "the same command without --field"));
    }
    let labels = LabelsArgs {
        file: file.clone(),
        map: Vec::new(),
        experiment: common.experiment.clone(),
        policy: common.policy.clone(),
        rater: args.rater.clone(),
        design: args.design.clone(),
        purpose: args.purpose.clone(),
        sealing: args.sealing.clone(),
        scale: common.scale.clone(),
        dry_run: common.dry_run,
        yes: common.yes,
    };
    let terms = ToolTerms {
        score: common.score.as_deref(),
        ..terms
    };
    let own = format!("{} --as label", again("score", common.score.as_ref()));
    let tool = Tool::Langfuse;
    import_labels::take(ctx, &labels, (Verb::Tool(tool), &own), &parsed(tool, terms))
}
