//! `clover import rows`: prompts and responses without scores, to be judged by `clover judge run`.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::intake;
use crate::cli::intake::ImportArgs;
use crate::cli::intake::ImportRequest;
use crate::cli::intake::Parse;
use crate::cli::intake::SealOptions;
use crate::cli::intake_files;
use crate::cli::intake_forms;
use crate::cli::intake_forms::Verb;
use crate::event::payload::intake::ImportFormat;
use crate::session::intake::InputFile;
use crate::session::intake::responses as session;
use crate::view::View;
use crate::view::taken_in::RowsTakenIn;
use crate::workflow::import::Brings;
use crate::workflow::import::ImportRow;
use crate::workflow::import::form::FileForm;

#[derive(Debug, clap::Args)]
pub(super) struct RowsArgs {
    /// CSV or JSON Lines: `prompt_id prompt response`, and `policy` where several; or folders
    #[arg(
        required = true,
        value_name = "PATH",
        help = "CSV or JSON Lines of `prompt_id prompt response`, or folders of JSON Lines"
    )]
    pub paths: Vec<PathBuf>,
    /// Columns of fields, as `response=answer`
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',')]
    pub map: Vec<String>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from the file
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Keep a field of each row beside it, public, for slices
    #[arg(
        long,
        value_name = "NAME",
        help = "Keep a field beside each row for slices: public, as domain"
    )]
    pub field: Vec<String>,
    /// Rows have no texts here: a program is asked by policy, item and draw
    #[arg(long)]
    pub without_texts: bool,
    /// Show what would be recorded; append nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY")]
    pub scorer: Option<String>,
}

impl RowsArgs {
    fn common(&self) -> ImportArgs {
        ImportArgs {
            experiment: self.experiment.clone(),
            policy: self.policy.clone(),
            judge: "judge".to_owned(),
            rater: "oracle".to_owned(),
            labels: None,
            purpose: None,
            sealing: SealOptions::default(),
            scale: "0:1".to_owned(),
            label_scale: None,
            field: self.field.clone(),
            dry_run: self.dry_run,
            scorer: self.scorer.clone(),
            yes: false,
        }
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &RowsArgs) -> Result<View, CliError> {
    let map = intake_forms::map(&args.map, Verb::Rows)?;
    take(ctx, args, Verb::Rows, &|path, bytes, how| {
        intake_forms::rows(path, bytes, &map, how)
    })
}

/// Takes in the rows of files that `parse` reads.
pub(super) fn take(
    ctx: &mut Ctx<'_>,
    args: &RowsArgs,
    verb: Verb,
    parse: Parse<'_>,
) -> Result<View, CliError> {
    let common = args.common();
    let (home, mut ledger) = intake::open(ctx, &common)?;
    let named = common.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let paths = intake_files::unfolded(ctx, &args.paths)?;
    let wanted = ImportRequest {
        verb,
        brings: Brings::Texts,
        beside: &[],
        given: &args.paths,
        own: "",
        label_scale: None,
    };
    let of = (&common, wanted);
    let files = intake::read(ctx, of, &home, &paths, parse)?;
    // Every file is planned before the first is taken in.
    let mut plans = Vec::with_capacity(files.len());
    for mut file in files {
        warn(ctx, &file);
        if args.without_texts {
            put_names(ctx, &mut file)?;
        }
        let format = match (verb, FileForm::of(&file.bytes)) {
            (Verb::Tool(tool), _) => tool.format(),
            (_, FileForm::Csv | FileForm::LangfuseTable) => ImportFormat::Csv,
            _ => ImportFormat::Cje,
        };
        let plan = session::plan(&home, &ledger, &experiment, file.rows)?;
        plans.push((format, plan));
    }
    if args.without_texts {
        ctx.warn("no attack can be tried on rows without texts: criterion P7 is not checked of any patch".to_owned());
        ctx.warn(
            "a patch then passes P7 only where two keys waive ADV before experiment split: clover assume waive --help"
                .to_owned(),
        );
    }
    let mut appended = Vec::new();
    if !args.dry_run {
        for (format, plan) in &plans {
            let of = (&experiment, *format);
            let ports = &mut ctx.ports().with_scorer(args.scorer.as_ref());
            let found = session::import(ports, &home, &mut ledger, of, plan)?;
            appended.extend(found);
        }
    }
    let plans: Vec<_> = plans.iter().map(|(_, plan)| plan).collect();
    let taken = RowsTakenIn::of(&plans, &appended);
    if args.dry_run {
        return Ok(taken.rehearsed());
    }
    Ok(taken.recorded(&ledger, &appended))
}

/// Puts the names of rows in place of the texts that they lack.
fn put_names(ctx: &mut Ctx<'_>, file: &mut InputFile) -> Result<(), CliError> {
    let rows = &mut file.rows;
    let has_text = |row: &&ImportRow| row.prompt.is_some() || row.response.is_some();
    if let Some(row) = rows.rows.iter().find(has_text) {
        let message = format!(
            "{}:{}: --without-texts: this row has a text",
            rows.file, row.line
        );
        return Err(CliError::usage(
            message,
            "the same command without --without-texts",
        ));
    }
    rows.rows = rows.rows.drain(..).map(ImportRow::named).collect();
    ctx.warn(format!(
        "{}: no texts: only a program that knows them can judge these rows, and rules that read texts find nothing",
        rows.file
    ));
    Ok(())
}

/// Says what of a file is not as one would have it, and what of it another verb takes.
fn warn(ctx: &mut Ctx<'_>, file: &InputFile) {
    for warning in &file.rows.warnings {
        ctx.warn(format!("{}: {warning}", file.rows.file));
    }
    for (field, verb) in [("judge_score", "csv"), ("oracle_label", "labels")] {
        if file.rows.mapping.contains_key(field) {
            ctx.warn(format!(
                "{}: {field} is left out: clover import {verb} takes it",
                file.rows.file
            ));
        }
    }
}
