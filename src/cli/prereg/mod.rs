//! `clover prereg`: plans that bind, from a commented file to a signed manifest, its amendments and deviations.

mod peer;
mod plan;
mod sealed;
mod view;

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ManifestId;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::event::payload::prereg::ManifestAmended;
use crate::event::payload::prereg::ManifestCountersigned;
use crate::event::payload::prereg::ManifestDeviated;
use crate::event::payload::prereg::ManifestRegistered;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::num::Count;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Write a commented manifest to fill in
    #[command(after_help = "Example:\n  clover prereg new --template transport -o plan.yaml")]
    New(NewArgs),
    /// Check a manifest and its sizes, or one of agent-eval; nothing is recorded
    #[command(after_help = "Example:\n  clover prereg check plan.yaml")]
    Check(CheckArgs),
    /// Register a manifest, or countersign it as custodian of its confirm data
    #[command(
        after_help = "Example:\n  clover prereg sign plan.yaml --countersign --custodian cleo"
    )]
    Sign(SignArgs),
    /// Show a manifest: versions, first look, exposures, deviations
    #[command(after_help = "Example:\n  clover prereg show m-1")]
    Show(ShowArgs),
    /// What changed since the version in force at the first look
    #[command(after_help = "Example:\n  clover prereg diff m-1 --from 1 --to 3")]
    Diff(DiffArgs),
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
pub(super) struct NewArgs {
    /// gate, iteration, sgd, transport or workflow
    #[arg(long, value_name = "NAME")]
    pub template: String,
    /// A manifest of agent-eval, JSON: what it binds is filled in, of a gate
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The file to write; standard output when absent
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The manifest, YAML; - for standard input
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct SignArgs {
    /// The manifest, YAML; - for standard input
    pub file: PathBuf,
    /// Countersign it too; alone where it is registered already
    #[arg(long)]
    pub countersign: bool,
    /// The custodian's key, where several may countersign
    #[arg(long, value_name = "FILE|NAME", requires = "countersign")]
    pub custodian: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The manifest
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
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

fn new(ctx: &mut Ctx<'_>, args: &NewArgs) -> Result<Answer, CliError> {
    let named = |template: &Template| template.as_str() == args.template;
    let Some(template) = Template::ALL.into_iter().find(named) else {
        let names = Template::ALL.map(Template::as_str).join(", ");
        let message = format!("--template {:?}: expected one of {names}", args.template);
        return Err(CliError::usage(message, "clover prereg new --help"));
    };
    let text = match &args.from {
        None => plan::text(template).to_owned(),
        Some(_) if template != Template::Gate => {
            let message = format!("--from: expected --template gate, found {template:?}");
            return Err(CliError::usage(message, "clover prereg new --help"));
        }
        Some(file) => peer::plan(&file.display().to_string(), &ctx.read(file)?)?,
    };
    let data = json!({"template": template.as_str(), "text": text});
    let Some(output) = &args.output else {
        return Ok(Answer::new(text, data));
    };
    ambient::write_new(&ctx.path(output), text.as_bytes(), 0o644)?;
    let shown = output.display();
    Ok(
        Answer::new(format!("{shown}: fill the lines marked FILL\n"), data).with_next(format!(
            "clover prereg check {shown}",
            shown = shell::word(&shown)
        )),
    )
}

/// A recorded manifest by its name.
fn find<'a>(state: &'a State, id: &str) -> Result<(ManifestId, &'a Record), CliError> {
    let next = "clover log --kind manifest.registered";
    let id: ManifestId = id
        .parse()
        .map_err(|error| CliError::usage(format!("manifest {id:?}: {error}"), next))?;
    match state.fold::<Manifests>().by_id.get(&id) {
        Some(record) => Ok((id, record)),
        None => Err(CliError::not_found(format!("no manifest {id}"), next)),
    }
}

/// The newest version that says what a file says: the number and the parent of an amendment are the ledger's
/// to give, and stand in no file.
fn recorded_as(state: &State, file: Manifest) -> Manifest {
    let record = state.fold::<Manifests>().by_id.get(&file.manifest);
    let newest = record.and_then(|record| record.versions.last());
    let numbered = newest.map(|newest| Manifest {
        parent_digest: newest.manifest.parent_digest,
        version: newest.manifest.version,
        ..file.clone()
    });
    let same = |numbered: &Manifest| newest.is_some_and(|newest| newest.manifest == *numbered);
    numbered.filter(same).unwrap_or(file)
}

fn sign(ctx: &mut Ctx<'_>, args: &SignArgs) -> Result<Answer, CliError> {
    let plan = plan::load(ctx, &args.file)?;
    plan.refuse_faults()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let manifest = recorded_as(ledger.state(), plan.manifest);
    let (digest, experiment) = (manifest.digest(), manifest.experiment.clone());
    let known = ledger
        .state()
        .fold::<Manifests>()
        .of_digest(digest)
        .is_some();
    let mut answer = None;
    let due = args.countersign && (known || !args.dry_run);
    let countersigner = due.then(|| countersigner(ctx, &ledger, args)).transpose()?;
    // Whoever only countersigns needs no registrar's key.
    if !(known && args.countersign) {
        let payload = ManifestRegistered {
            digest,
            h0_digest: manifest.h0_digest(),
            manifest: Box::new(manifest.clone()),
        };
        let signer = wallet::signer(ctx, ledger.state(), Kind::ManifestRegistered)?;
        if countersigner
            .as_ref()
            .is_some_and(|other| other.id() == signer.id())
        {
            let message = "countersign: the custodian's key is another than the registrar's; nothing was recorded";
            return Err(CliError::refused(
                message,
                "the same command with --custodian NAME",
            ));
        }
        let command = Command::new(payload, Some(experiment.clone()));
        let done = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
        if args.dry_run {
            return Ok(done);
        }
        answer = Some(done);
    }
    if let Some(signer) = countersigner {
        let command = Command::new(ManifestCountersigned { digest }, Some(experiment));
        let done = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
        answer = Some(match answer {
            None => done,
            Some(first) => joined(first, done),
        });
    }
    let answer = answer.expect("BUG: something was signed");
    Ok(signed(answer, &ledger, &manifest, digest, &args.file))
}

/// The custodian's key, before anything is recorded; `--key` names the registrar's.
fn countersigner(ctx: &mut Ctx<'_>, ledger: &Ledger, args: &SignArgs) -> Result<Signer, CliError> {
    let key = std::mem::replace(&mut ctx.globals.key, args.custodian.clone());
    let signer = wallet::signer(ctx, ledger.state(), Kind::ManifestCountersigned);
    ctx.globals.key = key;
    signer.map_err(|mut error| {
        error.next = error.next.replace("--key", "--custodian");
        error
    })
}

/// Two answers as one.
fn joined(mut first: Answer, second: Answer) -> Answer {
    first.text.push_str(&second.text);
    first.events.extend(second.events);
    first.checkpoint = second.checkpoint;
    let seqs = [&first.data, &second.data];
    let seqs: Vec<_> = seqs
        .iter()
        .filter_map(|data| data["seqs"].as_array())
        .flatten()
        .cloned()
        .collect();
    first.data["seqs"] = seqs.into();
    if second.verdict == "appended" {
        first.verdict = second.verdict;
    }
    first
}

/// The answer of `sign` and `amend`: digest, standing, checkpoint.
fn signed(
    mut answer: Answer,
    ledger: &Ledger,
    manifest: &Manifest,
    digest: Digest,
    file: &Path,
) -> Answer {
    let id = &manifest.manifest;
    answer.line(&format!(
        "manifest {id} version {}  digest {digest}",
        manifest.version
    ));
    if let Some((size, root)) = answer.checkpoint.clone() {
        answer.line(&format!("checkpoint {size}  {root}"));
    }
    let record = ledger.state().fold::<Manifests>().by_id.get(id);
    let version = record.and_then(|record| record.version(digest));
    let stands = version.is_some_and(manifests::Version::stands);
    answer.data["manifest"] = id.as_str().into();
    answer.data["digest"] = digest.to_hex().into();
    answer.data["h0_digest"] = manifest.h0_digest().to_hex().into();
    answer.data["in_force"] = stands.into();
    if stands {
        answer.line("in force");
        return answer.with_next(format!("clover prereg show {id}", id = shell::word(&id)));
    }
    answer.line("not in force: it binds confirm data and waits for its custodian");
    answer.with_next(format!(
        "clover prereg sign {} --countersign",
        shell::word(&file.display())
    ))
}

fn amend(ctx: &mut Ctx<'_>, args: &AmendArgs) -> Result<Answer, CliError> {
    let reason = key::text("reason", &args.reason)?;
    let plan = plan::load(ctx, &args.file)?;
    plan.refuse_faults()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (manifest, class, parent) = {
        let (id, record) = find(ledger.state(), plan.manifest.manifest.as_str())?;
        let Some(parent) = record.in_force() else {
            let next = format!("clover prereg show {id}", id = shell::word(&id));
            return Err(CliError::refused(
                format!("{id} has no version in force yet"),
                next,
            ));
        };
        let mut manifest = plan.manifest.clone();
        if let Some(stated) = manifest.parent_digest
            && stated != parent.digest
        {
            let found = format!(
                "expected the version in force, {}, found {stated}",
                parent.digest
            );
            return Err(plan.fault("parent_digest", &found));
        }
        manifest.parent_digest = Some(parent.digest);
        manifest.version = Count::new(record.versions.len() as u64 + 1).unwrap_or(manifest.version);
        let class = manifests::class(&parent.manifest, &manifest);
        if manifests::changes(&parent.manifest, &manifest).is_empty() {
            let next = format!("clover prereg diff {id}", id = shell::word(&id));
            return Err(CliError::refused(
                "it says what the version in force says",
                next,
            ));
        }
        (manifest, class, parent.digest)
    };
    let digest = manifest.digest();
    let payload = ManifestAmended {
        class: Count::new(class).unwrap_or_default(),
        digest,
        h0_digest: manifest.h0_digest(),
        manifest: Box::new(manifest.clone()),
        parent_digest: parent,
        reason,
    };
    let signer = wallet::signer(ctx, ledger.state(), Kind::ManifestAmended)?;
    let command = Command::new(payload, Some(manifest.experiment.clone()));
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    answer.data["class"] = class.into();
    if args.dry_run {
        return Ok(answer);
    }
    answer.line(&format!("class {class}"));
    Ok(signed(answer, &ledger, &manifest, digest, &args.file))
}

fn deviation(ctx: &mut Ctx<'_>, args: &DeviationArgs) -> Result<Answer, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (id, record) = find(ledger.state(), &args.id)?;
    let Some(version) = record.in_force() else {
        let next = format!("clover prereg show {id}", id = shell::word(&id));
        return Err(CliError::refused(
            format!("{id} has no version in force yet"),
            next,
        ));
    };
    let known = args.known_at_seq.unwrap_or(ledger.size());
    let known = Count::new(known).filter(|known| known.value() <= ledger.size());
    let Some(known_at_seq) = known else {
        let message = format!("--known-at-seq: expected at most {}", ledger.size());
        return Err(CliError::usage(message, "clover status"));
    };
    let payload = ManifestDeviated {
        digest: version.digest,
        impact: key::text("impact", &args.impact)?,
        known_at_seq,
        outcome_seen: args.outcome_seen,
        rule_path: key::text("rule-path", &args.rule_path)?,
        what: key::text("what", &args.what)?,
        why: key::text("why", &args.why)?,
    };
    let experiment = version.manifest.experiment.clone();
    let payload = payload.into();
    let signer = wallet::signer(ctx, ledger.state(), Kind::ManifestDeviated)?;
    let command = Command {
        payload,
        experiment: Some(experiment),
        refs: Vec::new(),
        at: None,
    };
    submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)
}
