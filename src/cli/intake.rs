//! `clover import cje|csv`: files of judge-scored responses become signed events, one per score and label.
//!
//! Every file is read and planned before anything is appended, so a wrong line changes nothing. What is
//! recorded already answers as such: the same command again adds nothing, and finishes a run that was cut.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_draw;
use crate::cli::intake_files;
use crate::cli::intake_forms;
use crate::cli::intake_refusals;
use crate::cli::intake_verbs;
use crate::cli::record;
use crate::cli::wallet;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::FieldId;
use crate::event::id::PolicyId;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::intake::ImportFormat;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::label::LabelPurpose;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::designs::Designs;
use crate::projection::splits::Splits;
use crate::session::Home;
use crate::session::intake::InputFile;
use crate::session::intake::IntakeRequest;
use crate::session::intake::import as session;
use crate::session::intake::scale as session_scale;
use crate::session::intake::signers;
use crate::view::Exit;
use crate::view::View;
use crate::view::intake as view;
use crate::workflow::import;
use crate::workflow::import::Brings;
use crate::workflow::import::How;
use crate::workflow::import::ImportError;
use crate::workflow::import::ImportRows;
use crate::workflow::import::labels;
use crate::workflow::import::plan::ImportPlan;
use crate::workflow::import::plan::ImportTerms;
use crate::workflow::import::plan::LabelIntake;
use crate::workflow::import::plan::Presence;
use crate::workflow::import::row;

#[derive(Debug, clap::Args)]
pub(super) struct CjeArgs {
    /// Files or folders
    #[arg(
        required = true,
        value_name = "PATH",
        help = "Files or folders of POLICY_responses.jsonl"
    )]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub common: ImportArgs,
    /// Record log-probabilities too; every record must have them
    #[arg(long)]
    pub logprobs: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CsvArgs {
    /// RFC 4180, UTF-8, with a header
    pub file: PathBuf,
    /// Columns of fields
    #[arg(
        long,
        value_name = "FIELD=COLUMN",
        value_delimiter = ',',
        help = "Columns of fields, as judge_score=score,prompt_id=id"
    )]
    pub map: Vec<String>,
    #[command(flatten)]
    pub common: ImportArgs,
}

/// Where labels go that nobody may see yet.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct SealOptions {
    /// Seal labels instead; beside open ones, those of confirm clusters
    #[arg(long, value_name = "DESIGN", requires = "reveal_by")]
    pub seal: Option<String>,
    /// By when sealed labels are to be revealed
    #[arg(long, value_name = "TIME", requires = "seal")]
    pub reveal_by: Option<String>,
    /// Custodian's key, where several could open
    #[arg(long, value_name = "KEY", hide = true)]
    pub to: Option<String>,
}

/// What both forms take.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses
    #[arg(
        long,
        value_name = "ID",
        help = "Whose responses; default from file name or target_policy"
    )]
    pub policy: Option<String>,
    /// Who judged; --scorer KEY where --key is another's
    #[arg(long, value_name = "ID", default_value = "judge")]
    pub judge: String,
    /// Who labelled
    #[arg(long, value_name = "ID", default_value = "oracle", hide = true)]
    pub rater: String,
    /// Record labels openly, for the design of the purpose
    #[arg(long, value_name = "DESIGN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub labels: Option<String>,
    /// Open labels are to calibrate or audit [default: the design's]
    #[arg(long, value_name = "WHAT", value_parser = ["calibrate", "audit"], hide_possible_values = true)]
    pub purpose: Option<String>,
    #[command(flatten)]
    pub sealing: SealOptions,
    /// Ends of the scale of scores and labels
    #[arg(
        long,
        value_name = "LOW:HIGH",
        default_value = "0:1",
        allow_hyphen_values = true
    )]
    pub scale: String,
    /// Ends of the scale of labels: goes on record
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub label_scale: Option<String>,
    /// Keep a field of each row beside its score, public, for slices
    #[arg(
        long,
        value_name = "NAME",
        help = "Keep a field beside each score for slices: public, as domain"
    )]
    pub field: Vec<String>,
    /// Show counts, ranges, mapping and warnings; append nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before labels are sealed; without --seal, before conflicts are recorded
    #[arg(long, hide = true)]
    pub yes: bool,
    /// The scorer's key, where `--key` is another's
    #[arg(long, value_name = "KEY", hide = true)]
    pub scorer: Option<String>,
}

pub(super) const HELP: &str = "clover import cje --help";

pub(super) fn cje(ctx: &mut Ctx<'_>, args: &CjeArgs) -> Result<View, CliError> {
    let paths = intake_files::unfolded(ctx, &args.paths)?;
    let own = if args.logprobs { " --logprobs" } else { "" };
    run(
        ctx,
        (&args.common, own),
        (ImportFormat::Cje, intake_forms::Verb::Cje),
        (&args.paths, &paths),
        &|path, bytes, how| {
            let named = how.policy.cloned().or_else(|| intake_files::of_name(path));
            let how = How {
                policy: named.as_ref(),
                logprobs: args.logprobs,
                ..how
            };
            import::cje::rows(&path.display().to_string(), bytes, how)
        },
    )
}

pub(super) fn csv(ctx: &mut Ctx<'_>, args: &CsvArgs) -> Result<View, CliError> {
    let map = intake_forms::map(&args.map, intake_forms::Verb::Csv)?;
    let paths = [args.file.clone()];
    run(
        ctx,
        (&args.common, ""),
        (ImportFormat::Csv, intake_forms::Verb::Csv),
        (&paths, &paths),
        &|path, bytes, how| {
            let header = bytes
                .split(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default();
            let header = String::from_utf8_lossy(header);
            let has = |name: &str| header.trim_end().split(',').any(|column| column == name);
            let logprobs = map.contains_key(row::BASE_LOGPROB) || has(row::BASE_LOGPROB);
            let how = How { logprobs, ..how };
            import::csv::rows(&path.display().to_string(), bytes, &map, how)
        },
    )
}

pub(super) type Parse<'a> = &'a dyn Fn(&Path, &[u8], How<'_>) -> Result<ImportRows, ImportError>;

/// Takes in files with scores; what helps is said of the verb that was typed.
pub(super) fn run(
    ctx: &mut Ctx<'_>,
    of: (&ImportArgs, &str),
    (format, verb): (ImportFormat, intake_forms::Verb),
    paths: (&[PathBuf], &[PathBuf]),
    parse: Parse<'_>,
) -> Result<View, CliError> {
    take(ctx, of, (format, verb), paths, parse).map_err(|error| {
        if error.next == HELP {
            error.with_next(intake_forms::help(verb))
        } else {
            error
        }
    })
}

fn take(
    ctx: &mut Ctx<'_>,
    (common, own): (&ImportArgs, &str),
    (format, verb): (ImportFormat, intake_forms::Verb),
    (given, paths): (&[PathBuf], &[PathBuf]),
    parse: Parse<'_>,
) -> Result<View, CliError> {
    let (home, mut ledger) = open(ctx, common)?;
    let named = common.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let mut request = request(experiment, common, format, ledger.state())?;
    let wanted = ImportRequest {
        verb,
        brings: Brings::Scores,
        beside: &[],
        given,
        own,
        label_scale: label_scale(ledger.state(), &request)?,
    };
    let files = read(ctx, (common, wanted), &home, paths, parse)?;
    if common.labels.is_some() {
        intake_refusals::some_labels(&files)?;
    }
    let plans = session::plans(&ledger, &files, &request.ask)?;
    session_scale::of_scores(&ledger, &request, (&files, &plans))?;
    for file in &files {
        for warning in &file.rows.warnings {
            ctx.warn(format!("{}: {warning}", file.rows.file));
        }
    }
    let each = || {
        let pairs = files.iter().zip(&plans);
        pairs.flat_map(|(file, plan)| file.rows.rows.iter().zip(&plan.rows))
    };
    let labelled = each().filter(|(_, plan)| plan.label == LabelIntake::Open(Presence::New));
    let scored = each().filter(|(_, plan)| plan.score == Presence::New);
    let new = (labelled.map(|(row, _)| row), scored.map(|(row, _)| row));
    intake_draw::warn_beyond(ctx, &ledger, &request, new);
    if common.labels.is_none() {
        let scored = each().filter(|(_, plan)| plan.score == Presence::New);
        let policies = scored.map(|(row, _)| &row.policy);
        intake_draw::warn_late(ctx, ledger.state(), &request.ask.experiment, policies);
    }
    if common.dry_run {
        let mut answer = view::rehearsed(&files, &plans);
        conflicts(ctx, (&files, &plans), &mut answer);
        return Ok(answer);
    }
    intake_refusals::in_time(ctx, common, &plans)?;
    if let Some(named) = &common.sealing.to
        && signers::seals(&plans)
    {
        request.to = Some(wallet::resolve(ctx, ledger.state(), named)?);
    }
    let new = (files.as_slice(), plans.as_slice());
    let (yes, seals) = (common.yes, common.sealing.seal.is_some());
    let ports = ctx.ports().with_scorer(common.scorer.as_ref());
    let ports = ports.with_seals(yes && seals);
    let again = if seals {
        "the same command without --seal and with"
    } else {
        "the same command with"
    };
    let ports = &mut ports.with_consent(yes && !seals, again);
    let counts = session::import(ports, &home, &mut ledger, &request, new)?;
    Ok(view::imported(&ledger, &files, &counts))
}

/// The ledger, to be read where nothing is to be appended.
pub(super) fn open(ctx: &mut Ctx<'_>, common: &ImportArgs) -> Result<(Home, Ledger), CliError> {
    if common.dry_run {
        home::open_to_read(ctx)
    } else {
        home::open_to_write(ctx)
    }
}

/// A rehearsal with scores that differ from the recorded ones says so, and ends as the import would.
fn conflicts(ctx: &mut Ctx<'_>, (files, plans): (&[InputFile], &[ImportPlan]), answer: &mut View) {
    let mut all = files.iter().zip(plans).flat_map(|(file, plan)| {
        let found = plan.conflicts.iter();
        found.map(|conflict| (&file.rows.file, conflict))
    });
    let Some((file, first)) = all.next() else {
        return;
    };
    let said = &first.said;
    ctx.warn(format!(
        "{file}:{}: score_once: {} by {}: {} recorded at seq {}, {} in the file; the import would ask before it records {} as score.conflict, and nothing else",
        first.line,
        said.item,
        said.policy,
        said.recorded_micro,
        first.seq,
        said.score_micro,
        1 + all.count()
    ));
    answer.exit = Exit::Refused;
}

/// What is read of files, and for which verb.
#[derive(Clone, Copy)]
pub(super) struct ImportRequest<'a> {
    pub verb: intake_forms::Verb,
    pub brings: Brings,
    /// Fields that are kept beside those of `--field`, where a record has them.
    pub beside: &'a [FieldId],
    /// Files and folders as they were given.
    pub given: &'a [PathBuf],
    /// Options of this verb alone, as they were given.
    pub own: &'a str,
    /// Least and greatest label, where they are another than those of scores.
    pub label_scale: Option<(Micro, Micro)>,
}

/// Least and greatest label, as the ledger holds them or the import says.
pub(super) fn label_scale(
    state: &State,
    request: &IntakeRequest,
) -> Result<Option<(Micro, Micro)>, CliError> {
    let agreed = session_scale::agreed(state, &request.ask.experiment, request.label_scale)?;
    Ok(agreed.map(|ends| (ends.low_micro, ends.high_micro)))
}

pub(super) fn ends((low_micro, high_micro): (Micro, Micro)) -> ScaleEnds {
    ScaleEnds {
        high_micro,
        low_micro,
    }
}

/// Reads every file; no draw may be there twice.
pub(super) fn read(
    ctx: &mut Ctx<'_>,
    (common, wanted): (&ImportArgs, ImportRequest<'_>),
    home: &Home,
    paths: &[PathBuf],
    parse: Parse<'_>,
) -> Result<Vec<InputFile>, CliError> {
    let policy = common
        .policy
        .as_deref()
        .map(|text| name("policy", text, PolicyId::new));
    let policy = policy.transpose()?;
    let pepper = match home.known_vault(&ctx.ambient())? {
        Some(vault) => vault.pepper()?,
        None if common.dry_run => [0; 32],
        None => home.vault(&ctx.ambient())?.pepper()?,
    };
    let name_prompt = |prompt: &str| intake_files::prompt_name(&pepper, prompt);
    let fields = common.field.iter();
    let fields: Result<Vec<_>, _> = fields
        .map(|text| name("field", text, FieldId::new))
        .collect();
    let asked = fields?;
    let fields = [asked.as_slice(), wanted.beside].concat();
    // Of rows whose texts are taken in alone, scores and labels are left out, whatever their scale.
    let all = Micro::new(-Micro::MAX).zip(Micro::new(Micro::MAX));
    let all = all.filter(|_| wanted.brings == Brings::Texts);
    let how = How {
        policy: policy.as_ref(),
        logprobs: false,
        fields: &fields,
        brings: wanted.brings,
        scale: all.map_or_else(|| scale("scale", &common.scale), Ok)?,
        label_scale: all.or(wanted.label_scale),
        name_prompt: &name_prompt,
    };
    let contents = paths.iter().map(|path| ctx.read(path));
    let contents = contents.collect::<Result<Vec<_>, _>>()?;
    let mut parsed = Vec::with_capacity(paths.len());
    for (path, bytes) in paths.iter().zip(&contents) {
        parsed.push(parse(path, bytes, how).map_err(|error| {
            let all = || paths.iter().zip(&contents);
            let again = |how: How<'_>| {
                let rows = all().filter_map(|(path, bytes)| {
                    intake_verbs::readable(bytes, |bytes| parse(path, bytes, how))
                });
                rows.collect()
            };
            intake_forms::wrong(&error, (path, bytes), (wanted, common), &again, how)
        })?);
    }
    let files = contents.into_iter().zip(parsed);
    let files: Vec<_> = files
        .map(|(bytes, rows)| InputFile { bytes, rows })
        .collect();
    let rows: Vec<_> = files.iter().map(|file| file.rows.clone()).collect();
    if wanted.brings != Brings::Labels {
        import::distinct(&rows).map_err(|error| wrong(&error))?;
    }
    import::fields_there(&rows, &asked).map_err(|error| wrong(&error))?;
    Ok(files)
}

pub(super) fn wrong(error: &ImportError) -> CliError {
    let mut failed = CliError::input(error.to_string(), HELP);
    failed.data = json!({"file": error.file, "line": error.line, "field": error.field});
    failed
}

pub(super) fn name<T>(
    what: &str,
    text: &str,
    new: impl FnOnce(String) -> Result<T, crate::event::id::IdError>,
) -> Result<T, CliError> {
    new(text.to_owned())
        .map_err(|error| CliError::usage(format!("--{what} {text:?}: {error}"), HELP))
}

pub(super) fn scale(option: &str, text: &str) -> Result<(Micro, Micro), CliError> {
    labels::scale(text).ok_or_else(|| {
        let message = format!("--{option} {text:?}: expected LOW:HIGH such as 0:100");
        CliError::usage(message, HELP)
    })
}

pub(super) fn request(
    experiment: ExperimentId,
    common: &ImportArgs,
    format: ImportFormat,
    state: &State,
) -> Result<IntakeRequest, CliError> {
    let said = common.purpose.as_deref().map(|word| match word {
        "audit" => LabelPurpose::Audit,
        _ => LabelPurpose::Calibrate,
    });
    let purpose = said.unwrap_or(LabelPurpose::Calibrate);
    let open = match common.labels.as_deref() {
        None => design_of(state, &experiment, purpose)
            .ok()
            .map(|design| (design, purpose)),
        Some("") => Some((design_of(state, &experiment, purpose)?, purpose)),
        Some(named) => {
            let design = name("labels", named, DesignId::new)?;
            let of = registered(state, &experiment, &design)?;
            let purpose = purpose_of(&design, of, said)?;
            Some((design, purpose))
        }
    };
    let seal = match common.sealing.seal.as_deref() {
        None => None,
        Some(named) => {
            let design = name("seal", named, DesignId::new)?;
            let purpose = registered(state, &experiment, &design)?;
            if common.labels.is_some() && purpose == DesignPurpose::Confirm {
                has_split(state, &experiment)?;
            }
            Some(design)
        }
    };
    Ok(IntakeRequest {
        ask: ImportTerms {
            experiment,
            judge: name("judge", &common.judge, crate::event::id::JudgeId::new)?,
            rater: name("rater", &common.rater, crate::event::id::RaterId::new)?,
            open,
            opens: common.labels.is_some(),
            seal,
        },
        format,
        label_scale: common
            .label_scale
            .as_deref()
            .map(|text| scale("label-scale", text).map(ends))
            .transpose()?,
        score_scale: Some(ends(scale("scale", &common.scale)?)),
        reveal_by: common
            .sealing
            .reveal_by
            .as_deref()
            .map(record::time)
            .transpose()?,
        to: None,
    })
}

/// Open labels and sealed ones are told apart by the confirm clusters of a split: without one all would be open, and no
/// label that was open is ever one of confirm.
fn has_split(state: &State, experiment: &ExperimentId) -> Result<(), CliError> {
    let of = state.fold::<Splits>().by_experiment.get(experiment);
    if of.is_some_and(|of| !of.formed.is_empty()) {
        return Ok(());
    }
    let message = format!(
        "no split of {experiment} is formed: nothing says which labels are of confirm clusters, to be sealed"
    );
    let next = format!(
        "clover experiment split {experiment} --seed N --hashed",
        experiment = shell::word(&experiment)
    );
    Err(CliError::refused(message, next))
}

const NEW_DESIGN: &str = "clover label design new DESIGN --purpose PURPOSE --probability P";

fn registered(
    state: &State,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<DesignPurpose, CliError> {
    let found = state.fold::<Designs>().registered(experiment, design);
    found.map(|design| design.purpose).ok_or_else(|| {
        let message = format!("design: no label design {design} is registered in {experiment}");
        CliError::refused(message, NEW_DESIGN)
    })
}

/// What open labels of a design are for: the design says it, and what was said beside must be the same.
fn purpose_of(
    design: &DesignId,
    of: DesignPurpose,
    said: Option<LabelPurpose>,
) -> Result<LabelPurpose, CliError> {
    let own = match of {
        DesignPurpose::Audit => LabelPurpose::Audit,
        DesignPurpose::Calibrate => LabelPurpose::Calibrate,
        DesignPurpose::Confirm => {
            let message = format!(
                "design: expected a design for calibrate or audit, found {design}, for confirm: its labels are sealed"
            );
            let next = format!(
                "the same command with --seal {} --reveal-by TIME in place of the design",
                shell::word(design)
            );
            return Err(CliError::refused(message, next));
        }
    };
    match said {
        Some(said) if said != own => {
            let message = format!("--purpose {said}: expected {own}, as {design} has it");
            Err(CliError::usage(
                message,
                "the same command without --purpose",
            ))
        }
        _ => Ok(own),
    }
}

/// The one registered design of a purpose.
fn design_of(
    state: &State,
    experiment: &ExperimentId,
    purpose: LabelPurpose,
) -> Result<DesignId, CliError> {
    let of = state.fold::<Designs>().by_experiment.get(experiment);
    let all = of.into_iter().flat_map(|of| &of.designs);
    let fit: Vec<_> = all
        .filter(|(_, design)| {
            let registered = design.registered.as_ref();
            registered.is_some_and(|design| design.purpose.admits(purpose))
        })
        .map(|(id, _)| id)
        .collect();
    match fit.as_slice() {
        [id] => Ok((*id).clone()),
        [] => {
            let message =
                format!("design: no label design for {purpose} is registered in {experiment}");
            Err(CliError::refused(message, NEW_DESIGN))
        }
        several => {
            let names: Vec<_> = several.iter().map(|id| id.as_str()).collect();
            let message = format!("several designs are for {purpose}: {}", names.join(", "));
            Err(CliError::usage(
                message,
                "the same command with --labels=DESIGN",
            ))
        }
    }
}
