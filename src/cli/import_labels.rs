//! `clover import labels`: labels without scores, for rows that the ledger holds.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::intake;
use crate::cli::intake::ImportArgs;
use crate::cli::intake::ImportRequest;
use crate::cli::intake::Parse;
use crate::cli::intake::SealOptions;
use crate::cli::intake_draw;
use crate::cli::intake_forms;
use crate::cli::intake_forms::Verb;
use crate::cli::record;
use crate::cli::wallet;
use crate::event::id::ExperimentId;
use crate::event::id::FieldId;
use crate::event::id::PolicyId;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::intake::ImportFormat;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::projection::audits::probes::Probes;
use crate::session::intake::IntakeRequest;
use crate::session::intake::held;
use crate::session::intake::labels as session;
use crate::session::intake::labels::LabelPlan;
use crate::session::intake::sealing;
use crate::view::View;
use crate::view::taken_in::LabelsTakenIn;
use crate::workflow::import::Brings;
use crate::workflow::import::ImportRows;
use crate::workflow::import::labels;
use crate::workflow::import::labels::FileLabels;
use crate::workflow::import::plan::LabelIntake;
use crate::workflow::import::plan::Presence;

pub(super) const HELP: &str = "clover import labels --help";

#[derive(Debug, clap::Args)]
pub(super) struct LabelsArgs {
    /// CSV or JSON Lines: `prompt_id label`, and `policy rater time scale` where it has them
    pub file: PathBuf,
    /// Columns of fields, as `label=verdict,time=day`
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',')]
    pub map: Vec<String>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from the file, or the only policy
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Who labelled, where a line does not say [else you, or oracle for the owner]
    #[arg(long, value_name = "ID")]
    pub rater: Option<String>,
    /// Design of open labels; default the one of the purpose
    #[arg(long, value_name = "DESIGN")]
    pub design: Option<String>,
    /// Open labels are to calibrate or audit [default: the design's]
    #[arg(long, value_name = "WHAT", value_parser = ["calibrate", "audit"], hide_possible_values = true)]
    pub purpose: Option<String>,
    #[command(flatten)]
    pub sealing: SealOptions,
    /// Ends of the scale of labels: goes on record [else as recorded, or 0:1]
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub scale: Option<String>,
    /// Show what would be recorded; append nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before labels are sealed
    #[arg(long, hide = true)]
    pub yes: bool,
}

impl LabelsArgs {
    fn common(&self) -> ImportArgs {
        let opens = self.design.is_some() || self.sealing.seal.is_none();
        ImportArgs {
            experiment: self.experiment.clone(),
            policy: self.policy.clone(),
            judge: "judge".to_owned(),
            rater: self.rater.clone().unwrap_or_else(|| "oracle".to_owned()),
            labels: opens.then(|| self.design.clone().unwrap_or_default()),
            purpose: self.purpose.clone(),
            sealing: self.sealing.clone(),
            scale: "0:1".to_owned(),
            label_scale: self.scale.clone(),
            field: Vec::new(),
            dry_run: self.dry_run,
            scorer: None,
            yes: false,
        }
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &LabelsArgs) -> Result<View, CliError> {
    let map = intake_forms::map(&args.map, Verb::Labels)?;
    take(ctx, args, (Verb::Labels, ""), &|path, bytes, how| {
        intake_forms::rows(path, bytes, &map, how)
    })
}

/// Takes in the labels of a file that `parse` reads; `own` are options of the verb alone, as they were given.
pub(super) fn take(
    ctx: &mut Ctx<'_>,
    args: &LabelsArgs,
    (verb, own): (Verb, &str),
    parse: Parse<'_>,
) -> Result<View, CliError> {
    let mut common = args.common();
    let (home, mut ledger) = intake::open(ctx, &common)?;
    let named = common.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let request = intake::request(experiment, &common, ImportFormat::Csv, ledger.state());
    // A file that is none of labels is said before a design that it would not need.
    let mut request = match request {
        Err(error) => {
            let bytes = ctx.read(&args.file)?;
            let of = (args.file.as_path(), bytes.as_slice());
            return Err(intake_forms::of_another_verb(of, (verb, &common)).unwrap_or(error));
        }
        Ok(request) => request,
    };
    if args.rater.is_none()
        && let Some(own) = wallet::labeler(ctx, ledger.state())
    {
        request.ask.rater = own;
    }
    if common.policy.is_none() {
        common.policy = only_policy(&ledger, &request.ask.experiment)?;
    }
    let beside = labels::BESIDE.map(|name| FieldId::new(name).expect("BUG: a literal"));
    let paths = [args.file.clone()];
    let wanted = ImportRequest {
        verb,
        brings: Brings::Labels,
        beside: &beside,
        given: &paths,
        own,
        label_scale: intake::label_scale(ledger.state(), &request)?,
    };
    let of = (&common, wanted);
    let files = intake::read(ctx, of, &home, &paths, parse)?;
    let rows = &files[0].rows;
    for warning in &rows.warnings {
        ctx.warn(format!("{}: {warning}", rows.file));
    }
    let now = ctx.ambient().now();
    let found = labels::of(rows, &request.ask.rater, now);
    let found = found.map_err(|error| intake::wrong(&error).with_next(HELP))?;
    warn(ctx, rows, &found);
    request.label_scale = said(&found, request.label_scale, args)?;
    let plan = session::plan(&ledger, found, &rows.file, &request)?;
    let facts = LabelsTakenIn::of(&rows.file, rows.rounded, &request, &plan);
    within_confirm(&ledger, &request, &plan)?;
    let labelled = plan.labels.labels.iter().zip(&plan.plans);
    let labelled = labelled.filter(|(_, plan)| **plan == LabelIntake::Open(Presence::New));
    let labelled = labelled.map(|(label, _)| &label.row);
    intake_draw::warn_beyond(ctx, &ledger, &request, (labelled, std::iter::empty()));
    before_scores(ctx, &ledger, &request, &plan);
    if args.dry_run {
        return Ok(facts.rehearsed());
    }
    if facts.sealed.new > 0
        && let Some(text) = &args.sealing.reveal_by
    {
        record::deadline(now, text)?;
    }
    if let Some(named) = args.sealing.to.as_ref().filter(|_| facts.sealed.new > 0) {
        request.to = Some(wallet::resolve(ctx, ledger.state(), named)?);
    }
    let ports = &mut ctx.ports().with_seals(args.yes);
    session::import(ports, &mut ledger, &request, (&plan, &rows.file))?;
    Ok(facts.recorded(&ledger))
}

/// Says what of a file looks otherwise than it was meant.
fn warn(ctx: &mut Ctx<'_>, rows: &ImportRows, found: &FileLabels) {
    let file = &rows.file;
    if let Some((one, other)) = found.raters_alike() {
        ctx.warn(format!(
            "{file}: raters {one} and {other} differ in capital letters alone and count as two"
        ));
    }
    if rows.names.contains(labels::TIME) || rows.mapping.contains_key(labels::TIME) {
        ctx.warn(format!(
            "{file}: when labels were given is held against today, and not recorded"
        ));
    }
    let is_day = |name: &&String| ["date", "day"].contains(&name.to_lowercase().as_str());
    let is_used = |name: &str| rows.mapping.values().any(|column| column == name);
    if let Some(name) = rows.names.iter().find(is_day).filter(|name| !is_used(name)) {
        let own = |name: &String| name == labels::TIME;
        if !rows.names.iter().any(own) {
            let pair = shell::word(&format!("{}={name}", labels::TIME));
            ctx.warn(format!(
                "{file}: {name} is not read: with --map {pair} it is when each label was given, which is checked and not recorded"
            ));
        }
    }
}

/// The scale that the lines of a file say, else the one that was given.
fn said(
    found: &FileLabels,
    given: Option<ScaleEnds>,
    args: &LabelsArgs,
) -> Result<Option<ScaleEnds>, CliError> {
    let own = found.scale.map(intake::ends);
    match (own, given) {
        (Some(own), Some(given)) if own != given => {
            let message = format!(
                "--scale {}:{}: expected {}:{}, the scale in the lines of {}",
                given.low_micro,
                given.high_micro,
                own.low_micro,
                own.high_micro,
                args.file.display()
            );
            Err(CliError::usage(message, "the same command without --scale"))
        }
        _ => Ok(own.or(given)),
    }
}

/// Refuses to seal labels outside confirm that nobody named.
fn within_confirm(
    ledger: &Ledger,
    request: &IntakeRequest,
    plan: &LabelPlan,
) -> Result<(), CliError> {
    let Some(of) = sealing::outside(ledger, request, plan.plans.iter())? else {
        return Ok(());
    };
    let message = format!(
        "--seal: {} of {} labels are outside confirm, first of {}: sealed, they fit no calibrator",
        of.labels, of.all, of.first
    );
    let next = "the same command with --design DESIGN, which records those in the open";
    Err(CliError::usage(message, next))
}

/// Says of which policies nobody scored a row yet: once these labels can be read, scores of their rows count in no value.
fn before_scores(ctx: &mut Ctx<'_>, ledger: &Ledger, request: &IntakeRequest, plan: &LabelPlan) {
    if request.ask.open.is_none() {
        return;
    }
    let experiment = &request.ask.experiment;
    let probes = ledger.state().fold::<Probes>();
    let scores = probes.by_experiment.get(experiment).map(|of| &of.scores);
    let mut unscored: BTreeSet<&PolicyId> = BTreeSet::new();
    for (label, plan) in plan.labels.labels.iter().zip(&plan.plans) {
        let policy = &label.row.policy;
        let is_scored = scores.is_some_and(|of| of.get(policy).is_some_and(|of| !of.is_empty()));
        if matches!(plan, LabelIntake::Open(Presence::New)) && !is_scored {
            unscored.insert(policy);
        }
    }
    if !unscored.is_empty() {
        let names: Vec<_> = unscored.iter().map(|of| of.as_str()).collect();
        ctx.warn(format!(
            "no row of {} has a score yet: a row that is scored once a label of its policy can be read counts in no value. Let a \
             judge score the rows first, then take the labels in",
            names.join(", ")
        ));
    }
}

/// The policy of every row that the ledger holds, where it is one.
fn only_policy(ledger: &Ledger, experiment: &ExperimentId) -> Result<Option<String>, CliError> {
    let draws = held::draws(ledger, experiment)?;
    let mut policies: Vec<_> = draws.keys().map(|(policy, ..)| policy.as_str()).collect();
    policies.dedup();
    Ok(match policies.as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    })
}
