//! `clover gate plan`: the plan of a gate, written from files.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::gate::gate_id;
use crate::cli::gate::open;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::key;
use crate::event::id::FamilyId;
use crate::event::payload::manifest::Template;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::session::gate::plan;
use crate::session::prereg::registration;
use crate::view::View;
use crate::view::gate::draft;
use crate::view::gate::draft::GateTerms;

const HELP: &str = "clover gate plan --help";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The gate: a name that no manifest has yet
    pub id: String,
    /// Names of its units, one a line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub units: PathBuf,
    /// What is in use: its prompt, its code or its weights; the file is hashed
    #[arg(long, value_name = "FILE")]
    pub baseline: PathBuf,
    /// What shall replace it
    #[arg(long, value_name = "FILE")]
    pub candidate: PathBuf,
    /// The judge of both: its prompt, its program or its settings
    #[arg(long, value_name = "FILE")]
    pub judge: PathBuf,
    /// The claim that is put at risk, in words
    #[arg(long, value_name = "TEXT")]
    pub claim: String,
    /// Scale of outcomes, as 0:100
    #[arg(
        long,
        value_name = "LOW:HIGH",
        default_value = "0:1",
        allow_hyphen_values = true
    )]
    pub scale: String,
    /// The family whose error rate it spends, where several are open
    #[arg(long, value_name = "ID")]
    pub family: Option<String>,
    /// The experiment, where several are open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The file to write; standard output when absent
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let gate = gate_id(&args.id)?;
    let claim = key::text("claim", &args.claim)?;
    let (home, ledger) = home::open_to_read(ctx)?;
    let state = ledger.state();
    let experiment = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
    let family = args.family.as_deref().map(family).transpose()?;
    let share = plan::family_share(state, &gate, family.as_ref())?;
    let units = open::units(ctx, &args.units)?.confirm;
    let terms = GateTerms {
        baseline: digest(ctx, &args.baseline)?,
        candidate: digest(ctx, &args.candidate)?,
        claim: claim.as_str().to_owned(),
        experiment,
        gate,
        judge: digest(ctx, &args.judge)?,
        metric: draft::METRIC,
        scale: intake::scale("scale", &args.scale)?,
        units: (units.root(), units.units.len() as u64),
    };
    if terms.baseline == terms.candidate {
        let message = format!(
            "{} and {} hold the same bytes: expected two things to compare",
            args.baseline.display(),
            args.candidate.display()
        );
        return Err(CliError::input(message, HELP));
    }
    let binds = (Template::Gate, Some(terms.units.0.0));
    registration::unseen(state, &terms.experiment, binds)?;
    let view = draft::drafted(&terms, &share, args.output.as_deref());
    if let Some(output) = &args.output {
        let text = draft::text(&terms, &share);
        ambient::write_new(&ctx.path(output), text.as_bytes(), 0o644)?;
    }
    Ok(view)
}

fn digest(ctx: &mut Ctx<'_>, file: &Path) -> Result<Digest, CliError> {
    Ok(Digest::sha256(&ctx.read(file)?))
}

fn family(id: &str) -> Result<FamilyId, CliError> {
    id.parse()
        .map_err(|error| CliError::usage(format!("--family {id:?}: {error}"), "clover family list"))
}
