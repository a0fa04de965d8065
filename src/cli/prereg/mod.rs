//! `clover prereg`: plans that bind, from a commented file to a signed manifest, its amendments and deviations.

mod draft;
mod peer;
mod plan;
mod refusals;
mod sealed;
mod unfilled;
mod view;

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::ground::ambient;
use crate::ledger::State;
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::Manifests;
use crate::session::SessionError;
use crate::session::append::Intent;
use crate::session::gate::plan::FamilyShare;
use crate::session::gate::plan::whole_alpha;
use crate::session::prereg::PreregError;
use crate::session::prereg::amendment;
use crate::session::prereg::deviation;
use crate::session::prereg::deviation::DeviationTerms;
use crate::session::prereg::registration;
use crate::session::sgd::promote;
use crate::view::View;
use crate::view::prereg::draft as drafts;
use crate::view::prereg::file;
use crate::view::prereg::sign;
use crate::workflow::iterate::draft::FEW_LABELS;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a commented manifest to fill in
    #[command(
        after_help = "Example:\n  clover prereg new --template transport -o plan.yaml\n  clover prereg new --template iteration --from-data -o plan.yaml"
    )]
    New(PreregNewArgs),
    /// Check a manifest and its sizes, or one of agent-eval; nothing is recorded
    #[command(after_help = "Example:\n  clover prereg check plan.yaml")]
    Check(PreregCheckArgs),
    /// Register a manifest, or countersign it as custodian of its confirm data
    #[command(
        after_help = "Example:\n  clover prereg sign plan.yaml --countersign --custodian cem"
    )]
    Sign(PreregSignArgs),
    /// Show a manifest: versions, first look, exposures, deviations
    #[command(after_help = "Example:\n  clover prereg show m-1")]
    Show(PreregShowArgs),
    /// What changed since the version in force at the first look
    #[command(after_help = "Example:\n  clover prereg diff m-1 --from 1 --to 3")]
    Diff(PreregDiffArgs),
    /// Register a new version of a manifest; its class is computed
    #[command(
        after_help = "Example:\n  clover prereg amend plan.yaml --reason 'more units were found'"
    )]
    Amend(AmendArgs),
    /// Record that something was done otherwise than registered
    #[command(
        override_usage = "clover prereg deviation ID --rule-path PATH --what T --why T --impact T",
        after_help = "Example:\n  clover prereg deviation m-1 --rule-path test.n_max --what 'stopped at 80' \\\n    --why 'the judge was withdrawn' --impact 'less power' --outcome-seen"
    )]
    Deviation(DeviationArgs),
    /// An analysis plan: committed to now, shown later
    #[command(subcommand)]
    Plan(sealed::Verb),
}

#[derive(Debug, clap::Args)]
pub(super) struct PreregNewArgs {
    /// compare, estimates, gate, iteration, sgd, transport or workflow
    #[arg(long, value_name = "NAME")]
    pub template: String,
    /// A manifest of agent-eval, JSON: what it binds is filled in, of a gate
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Draft sizes, slices and effects from the labels of fit alone
    #[arg(long, conflicts_with = "from")]
    pub from_data: bool,
    /// With --from-data: the experiment; default the one that is open
    #[arg(long, value_name = "ID", requires = "from_data")]
    pub experiment: Option<String>,
    /// With --from-data: the judge, where several have scores
    #[arg(long, value_name = "ID", requires = "from_data")]
    pub judge: Option<String>,
    /// With --from-data: what a label costs, for what more of them would
    #[arg(long, value_name = "PRICE", requires = "from_data")]
    pub label_price: Option<String>,
    /// Sizes for so many labels in all, without data
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "from_data"])]
    pub labels: Option<u64>,
    /// The file to write; standard output for - and when absent
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl PreregNewArgs {
    /// The file to write; `None` for standard output, which `-` names too.
    fn file(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| *path != Path::new("-"))
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct PreregCheckArgs {
    /// The manifest, YAML; - for standard input
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct PreregSignArgs {
    /// The manifest, YAML; - for standard input
    pub file: PathBuf,
    /// Countersign it too; alone where it is registered already
    #[arg(long)]
    pub countersign: bool,
    /// The custodian's key, where several may countersign
    #[arg(long, value_name = "FILE|NAME", requires = "countersign")]
    pub custodian: Option<String>,
    /// Do not ask before all of a family's alpha, or a plan that nothing can meet
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PreregShowArgs {
    /// The manifest
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct PreregDiffArgs {
    /// The manifest
    pub id: String,
    /// The older version; the one in force at the first look when absent
    #[arg(long, value_name = "VERSION")]
    pub from: Option<u64>,
    /// The newer version; the one in force when absent
    #[arg(long, value_name = "VERSION")]
    pub to: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(super) struct AmendArgs {
    /// The new version, whole, YAML; - for standard input
    pub file: PathBuf,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeviationArgs {
    /// The manifest
    pub id: String,
    /// The part of the manifest, as a path of its fields
    #[arg(long, value_name = "PATH")]
    pub rule_path: String,
    /// What was done
    #[arg(long)]
    pub what: String,
    /// Why
    #[arg(long)]
    pub why: String,
    /// What it does to the claim
    #[arg(long)]
    pub impact: String,
    /// An outcome had been seen by then
    #[arg(long)]
    pub outcome_seen: bool,
    /// Entries that stood when it became known; all of them when absent
    #[arg(long, value_name = "SEQ")]
    pub known_at_seq: Option<u64>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::New(args) => new(ctx, &args),
        Verb::Check(args) => plan::check(ctx, &args.file),
        Verb::Sign(args) => sign(ctx, &args),
        Verb::Show(args) => view::show(ctx, &args.id),
        Verb::Diff(args) => view::diff(ctx, &args),
        Verb::Amend(args) => amend(ctx, &args),
        Verb::Deviation(args) => deviation(ctx, &args),
        Verb::Plan(verb) => sealed::run(ctx, verb),
    }
}

/// The manifest of a file, whose contents and sizes can work.
pub(super) fn manifest_of(ctx: &mut Ctx<'_>, file: &Path) -> Result<Manifest, CliError> {
    let plan = plan::load(ctx, file)?;
    plan.refuse_faults()?;
    Ok(plan.manifest)
}

fn new(ctx: &mut Ctx<'_>, args: &PreregNewArgs) -> Result<View, CliError> {
    let named = |template: &Template| template.as_str() == args.template;
    let Some(template) = Template::ALL.into_iter().find(named) else {
        let names = Template::ALL.map(Template::as_str).join(", ");
        let message = format!("--template {:?}: expected one of {names}", args.template);
        return Err(CliError::usage(message, "clover prereg new --help"));
    };
    if (args.from_data || args.labels.is_some()) && template != Template::Iteration {
        let flag = if args.from_data {
            "--from-data"
        } else {
            "--labels"
        };
        let message = format!("{flag}: expected --template iteration, found {template:?}");
        return Err(CliError::usage(message, "clover prereg new --help"));
    }
    if args.from_data {
        return draft::new(ctx, args);
    }
    let text = match (&args.from, args.labels) {
        (None, None) => file::template(template).to_owned(),
        (None, Some(labels)) => draft::sized(labels)?,
        (Some(_), _) if template != Template::Gate => {
            let message = format!("--from: expected --template gate, found {template:?}");
            return Err(CliError::usage(message, "clover prereg new --help"));
        }
        (Some(from), _) => peer::plan(&from.display().to_string(), &ctx.read(from)?)?,
    };
    if let Some(output) = args.file() {
        ambient::write_new(&ctx.path(output), text.as_bytes(), 0o644)?;
    }
    let mut view = file::new(template, text, args.file(), None);
    if args.file().is_some() && args.labels.is_some_and(|labels| labels < FEW_LABELS) {
        view.gap();
        drafts::few(&mut view);
    }
    Ok(view)
}

fn named(id: &str) -> Result<ManifestId, CliError> {
    let next = "clover log --kind manifest.registered";
    id.parse()
        .map_err(|error| CliError::usage(format!("manifest {id:?}: {error}"), next))
}

/// A recorded manifest by its name.
fn find<'a>(state: &'a State, id: &str) -> Result<(ManifestId, &'a ManifestRecord), CliError> {
    let id = named(id)?;
    match state.fold::<Manifests>().by_id.get(&id) {
        Some(record) => Ok((id, record)),
        None => Err(PreregError::NoManifest(id).into()),
    }
}

fn sign(ctx: &mut Ctx<'_>, args: &PreregSignArgs) -> Result<View, CliError> {
    let plan = plan::load(ctx, &args.file)?;
    let report = plan.refuse_faults()?;
    let basis: Vec<_> = draft::basis(ctx, &args.file, &plan.manifest)?
        .into_iter()
        .collect();
    let (_, mut ledger) = home::open_to_write(ctx)?;
    check_promotes(ledger.state(), &plan.manifest)?;
    let intent = submit::intent(args.dry_run);
    let question = whole_alpha(ledger.state(), &plan.manifest)
        .map(|share| whole_alpha_question(&plan.manifest, &share))
        .or_else(|| {
            let known = ledger.state().fold::<Manifests>();
            let is_new = known.of_digest(plan.manifest.digest()).is_none();
            unmet_question(&plan.manifest, &report.unmet).filter(|_| is_new)
        });
    if let Some(question) = question.filter(|_| !args.dry_run) {
        let of = (plan.manifest.clone(), basis.as_slice());
        let (ports, rehearsal) = (&mut ctx.ports(), Intent::Rehearse);
        // What the rules refuse is not asked about.
        if registration::sign(ports, &mut ledger, of, false, rehearsal).is_ok() {
            ctx.confirm(&question, args.yes, "the same command with")?;
        }
    }
    let mut ports = ctx.ports().with_custodian(args.custodian.as_ref());
    let (manifest, countersign) = ((plan.manifest, basis.as_slice()), args.countersign);
    let done = registration::sign(&mut ports, &mut ledger, manifest, countersign, intent)?;
    let each = [done.registered, done.countersigned];
    let shown = each.iter().flatten();
    let mut shown = shown.map(|submission| submit::shown(ctx, &ledger, submission));
    let first = shown.next().expect("BUG: something was signed");
    let second = shown.next();
    if args.dry_run && each[0].is_some() {
        return Ok(first);
    }
    let answer = match second {
        None => first,
        Some(second) => sign::joined(first, second),
    };
    let of = (&done.manifest, done.digest);
    Ok(sign::signed(answer, &ledger, of, &args.file))
}

/// Refuses the plan of a run's gate on which its checkpoint can never be promoted.
fn check_promotes(state: &State, manifest: &Manifest) -> Result<(), CliError> {
    promote::check_signed(state, manifest).map_err(|error| {
        let error = CliError::from(SessionError::from(error));
        error.with_next("the same command with the field mended")
    })
}

/// What is asked before a plan under which nothing can be decided; `None` where every criterion can be met.
fn unmet_question(manifest: &Manifest, unmet: &[String]) -> Option<String> {
    let criteria = unmet.join("; ");
    (!unmet.is_empty()).then(|| {
        format!(
            "sign {}, under which no candidate meets every criterion: {criteria}",
            manifest.manifest
        )
    })
}

/// What is asked before a plan leaves nothing to the members of its family that may still join.
fn whole_alpha_question(manifest: &Manifest, share: &FamilyShare) -> String {
    let others = match share.members_left.saturating_sub(1) {
        1 => "the one member that may still join".to_owned(),
        more => format!("{more} members that may still join"),
    };
    format!(
        "register {} with alpha {}: family {} has {} left, and nothing is left then for {others}",
        manifest.manifest, share.alpha, share.family, share.left
    )
}

fn amend(ctx: &mut Ctx<'_>, args: &AmendArgs) -> Result<View, CliError> {
    let reason = key::text("reason", &args.reason)?;
    let plan = plan::load(ctx, &args.file)?;
    plan.refuse_faults()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    check_promotes(ledger.state(), &plan.manifest)?;
    let (manifest, intent) = (plan.manifest.clone(), submit::intent(args.dry_run));
    let done = amendment::amend(&mut ctx.ports(), &mut ledger, manifest, reason, intent);
    let done = done.map_err(|error| match error {
        SessionError::Prereg(error @ PreregError::OtherParent { .. }) => {
            plan.fault("parent_digest", &error.to_string())
        }
        error => error.into(),
    })?;
    let answer = submit::shown(ctx, &ledger, &done.submission);
    let of = (&done.manifest, done.digest, done.class);
    Ok(sign::amended(answer, &ledger, of, &args.file))
}

fn deviation(ctx: &mut Ctx<'_>, args: &DeviationArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let terms = DeviationTerms {
        manifest: named(&args.id)?,
        known_at_seq: args.known_at_seq,
        rule_path: key::text("rule-path", &args.rule_path)?,
        what: key::text("what", &args.what)?,
        why: key::text("why", &args.why)?,
        impact: key::text("impact", &args.impact)?,
        outcome_seen: args.outcome_seen,
    };
    let intent = submit::intent(args.dry_run);
    let submission = deviation::deviate(&mut ctx.ports(), &mut ledger, terms, intent)?;
    Ok(submit::shown(ctx, &ledger, &submission))
}
