//! `clover report`: what the log says of an iteration, a gate, an experiment, a change, or for a framework; as a page,
//! Markdown or JSON.

pub(in crate::cli) mod answered;
mod documents;

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::report::documents::EvidenceArgs;
use crate::cli::report::documents::OfExperimentArgs;
use crate::cli::report::documents::ReportChangeArgs;
use crate::cli::report::documents::ReportErasureArgs;
use crate::cli::report::documents::ReportExpiryArgs;
use crate::cli::report::documents::ReportGateArgs;
use crate::cli::report::documents::ReportRepairArgs;
use crate::cli::report::documents::ReportSgdArgs;
use crate::cli::report::documents::ReportTrailArgs;
use crate::cli::report::documents::SampledArgs;
use crate::cli::show;
use crate::cli::submit;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::IterationId;
use crate::event::payload::report::ReportPublished;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::bundle::Bundle;
use crate::projection::bundle::label;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::report::document::Document;
use crate::report::document::ReportKind;
use crate::report::markdown;
use crate::report::page;
use crate::session::reports;
use crate::session::reports::Publication;
use crate::view::View;
use crate::view::report as view;
use crate::view::report::iteration;
use crate::view::report::made::ReportSource;

/// Reports of evidence, each a verb of its own: on one line, so that a screen shows the others too.
pub(super) const FRAMEWORKS: &str =
    "Evidence for a framework: annex-iv gdpr iso23894 iso42001 part11 pccp soc2 sr26-2 tevv";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Evidence for Annex IV of the AI Act: each requirement, or why it is not covered
    #[command(
        hide = true,
        after_help = "Example:\n  clover report annex-iv --experiment arena -o annex-iv.html"
    )]
    AnnexIv(EvidenceArgs),
    /// The change record of a prompt: who proposed, approved, deployed it, what came of it
    #[command(after_help = "Example:\n  clover report change arena@1.1 -o change.html")]
    Change(ReportChangeArgs),
    /// What frameworks ask of records, and which report or command answers; what none does
    #[command(after_help = "Example:\n  clover report coverage -o coverage.html")]
    Coverage(EvidenceArgs),
    /// The certificate of an erasure: what was erased, what remains, what it touches
    #[command(after_help = "Example:\n  clover report erasure -o certificate.html")]
    Erasure(ReportErasureArgs),
    /// Values of policies, their differences and audits, and every earlier value
    #[command(after_help = "Example:\n  clover report estimate arena -o values.html")]
    Estimate(OfExperimentArgs),
    /// All of one experiment: what was begun, and what came of it
    #[command(after_help = "Example:\n  clover report experiment arena -o arena.html")]
    Experiment(OfExperimentArgs),
    /// What expires when: retention, waivers, promotions, sealed labels; overdue first
    #[command(after_help = "Example:\n  clover report expiry --before 2027-01-01 -o expiry.csv")]
    Expiry(ReportExpiryArgs),
    /// One gate: its plan, its looks, its decision, and who stood behind it
    #[command(after_help = "Example:\n  clover report gate gate-1 -o gate.html")]
    Gate(ReportGateArgs),
    /// Evidence for the GDPR
    #[command(
        hide = true,
        after_help = "Example:\n  clover report gdpr -o gdpr.html"
    )]
    Gdpr(EvidenceArgs),
    /// Evidence for ISO/IEC 23894, with an extract for a risk register
    #[command(
        hide = true,
        after_help = "Example:\n  clover report iso23894 -o iso23894.html"
    )]
    Iso23894(EvidenceArgs),
    /// Evidence for ISO/IEC 42001, an index for the statement of applicability
    #[command(
        hide = true,
        after_help = "Example:\n  clover report iso42001 -o iso42001.html"
    )]
    Iso42001(EvidenceArgs),
    /// Everything about one iteration, each number with its entry; missing parts are named
    #[command(after_help = "Example:\n  clover report iteration it-1 -o report.html")]
    Iteration(IterationArgs),
    /// Evidence for 21 CFR Part 11 and EU GMP Annex 11
    #[command(
        hide = true,
        after_help = "Example:\n  clover report part11 -o part11.html"
    )]
    Part11(EvidenceArgs),
    /// Evidence for a change control plan of the FDA: families of patches, protocol, outcomes
    #[command(
        hide = true,
        after_help = "Example:\n  clover report pccp --experiment arena -o pccp.html"
    )]
    Pccp(EvidenceArgs),
    /// One run that repaired a workflow: candidates, changes, steps, how far to believe it
    #[command(after_help = "Example:\n  clover report repair shop-1 -o shop-1.html")]
    Repair(ReportRepairArgs),
    /// What is kept and for how long, what was erased, and what is due
    #[command(after_help = "Example:\n  clover report retention -o retention.html")]
    Retention(EvidenceArgs),
    /// One run of a judge's prompt: curves, steps, rejections, prompts, test, and its gate
    #[command(after_help = "Example:\n  clover report sgd tune-1 -o tune-1.html")]
    Sgd(ReportSgdArgs),
    /// Evidence for SOC 2, of a window
    #[command(
        hide = true,
        after_help = "Example:\n  clover report soc2 --from 2026-11-01 --to 2026-11-30 -o soc2.html"
    )]
    Soc2(SampledArgs),
    /// Evidence for SR 26-2, with an inventory of judges and calibrators
    #[command(
        hide = true,
        name = "sr26-2",
        after_help = "Example:\n  clover report sr26-2 -o sr26-2.html"
    )]
    Sr262(EvidenceArgs),
    /// Evidence for the NIST AI RMF: testing, evaluation, verification and validation
    #[command(
        hide = true,
        after_help = "Example:\n  clover report tevv --experiment arena -o tevv.html"
    )]
    Tevv(EvidenceArgs),
    /// Entries in their order, decoded: as a page, or as CSV
    #[command(
        after_help = "Example:\n  clover report trail --from 2026-11-20 --author rel -o trail.csv"
    )]
    Trail(ReportTrailArgs),
    /// Reports that were published
    #[command(after_help = "Example:\n  clover report list")]
    List,
    /// One published report: what it lacks, and whether its bundle is what was signed
    #[command(after_help = "Example:\n  clover report show 812 -o report.json")]
    Show(ReportShowArgs),
}

/// A rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReportFormat {
    /// One page: no script, nothing from outside
    Html,
    /// Markdown
    Md,
    /// The bundle: canonical JSON, of which the digest is recorded
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct IterationArgs {
    /// The iteration; else the one that opened last
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Where it goes; its ending gives the format
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format; without -o it goes to standard output
    #[arg(
        long,
        value_enum,
        value_name = "html|md|json",
        hide_possible_values = true
    )]
    pub format: Option<ReportFormat>,
    /// JSON of all that the page shows, its head and what happened since too, in place of the bundle
    #[arg(long, conflicts_with = "publish")]
    pub whole: bool,
    /// Keep the bundle in the ledger and sign its digest, as the arbiter
    #[arg(long)]
    pub publish: bool,
    /// With --publish: print the canonical unsigned body and append nothing
    #[arg(long, requires = "publish")]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReportShowArgs {
    /// Position or event id of its publication
    #[arg(value_name = "SEQ|ID")]
    pub event: String,
    /// Where the bundle goes, as it was published
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Iteration(args) if args.publish => publish(ctx, args),
        Verb::Iteration(args) => iteration(ctx, args),
        Verb::AnnexIv(args) => documents::of_evidence(ctx, ReportKind::AnnexIv, args),
        Verb::Change(args) => documents::of_change(ctx, args),
        Verb::Coverage(args) => documents::of_evidence(ctx, ReportKind::Coverage, args),
        Verb::Gdpr(args) => documents::of_evidence(ctx, ReportKind::Gdpr, args),
        Verb::Iso23894(args) => documents::of_evidence(ctx, ReportKind::Iso23894, args),
        Verb::Iso42001(args) => documents::of_evidence(ctx, ReportKind::Iso42001, args),
        Verb::Pccp(args) => documents::of_evidence(ctx, ReportKind::Pccp, args),
        Verb::Sr262(args) => documents::of_evidence(ctx, ReportKind::Sr262, args),
        Verb::Erasure(args) => documents::of_erasure(ctx, args),
        Verb::Estimate(args) => documents::of_estimates(ctx, args),
        Verb::Experiment(args) => documents::of_experiment(ctx, args),
        Verb::Expiry(args) => documents::of_expiry(ctx, args),
        Verb::Gate(args) => documents::of_gate(ctx, args),
        Verb::Part11(args) => documents::of_evidence(ctx, ReportKind::Part11, args),
        Verb::Repair(args) => documents::of_repair(ctx, args),
        Verb::Retention(args) => documents::of_evidence(ctx, ReportKind::Retention, args),
        Verb::Sgd(args) => documents::of_descent(ctx, args),
        Verb::Soc2(args) => documents::of_samples(ctx, ReportKind::Soc2, args),
        Verb::Tevv(args) => documents::of_evidence(ctx, ReportKind::Tevv, args),
        Verb::Trail(args) => documents::of_trail(ctx, args),
        Verb::List => list(ctx),
        Verb::Show(args) => show(ctx, args),
    }
}

impl ReportFormat {
    fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Ok(Self::Html),
            Some("md" | "markdown") => Ok(Self::Md),
            Some("json") => Ok(Self::Json),
            _ => Err(CliError::usage(
                format!(
                    "{}: expected a name in .html, .md or .json, or --format",
                    path.display()
                ),
                "clover report iteration --help",
            )),
        }
    }

    /// The rendering of an iteration; its JSON is the bundle, whose digest is signed.
    fn render(self, bundle: &Bundle, drawn: &Document) -> Vec<u8> {
        match self {
            Self::Html => page::html(drawn).into_bytes(),
            Self::Md => markdown::markdown(drawn).into_bytes(),
            Self::Json => bundle.to_bytes(),
        }
    }
}

/// The document of a bundle, with what stands beside it in the log.
fn drawn(ledger: &Ledger, state: &State, bundle: &Bundle) -> Result<Document, CliError> {
    let source = ReportSource {
        ledger,
        state,
        from_seq: 0,
        through_seq: bundle.through_seq,
    };
    Ok(iteration::document(&source, bundle)?)
}

/// The iteration that is named, else the one that opened last.
fn named<'a>(
    state: &'a State,
    name: Option<&str>,
) -> Result<(&'a IterationId, &'a Iteration), CliError> {
    let all = &state.fold::<Iterations>().by_id;
    let found = match name {
        Some(name) => {
            let id: IterationId = name.parse().map_err(|error| {
                CliError::usage(
                    format!("iteration {name:?}: {error}"),
                    "clover iterate list",
                )
            })?;
            all.get_key_value(&id)
        }
        None => all.iter().max_by_key(|(_, it)| it.opened_seq),
    };
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no iteration {name}"),
            None => "no iteration was opened yet".to_owned(),
        };
        CliError::not_found(message, "clover iterate list")
    })
}

fn iteration(ctx: &mut Ctx<'_>, args: &IterationArgs) -> Result<View, CliError> {
    let format = match (args.format, &args.out) {
        (Some(format), _) => Some(format),
        (None, Some(path)) => Some(ReportFormat::of(path)?),
        (None, None) => None,
    };
    let through = ctx.as_of;
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let (id, it) = named(state, args.id.as_deref())?;
    let through = through.unwrap_or(ledger.size().saturating_sub(1));
    let of = (&it.experiment, id);
    let bundle = reports::gathered(&ledger, state, of, through)?;
    let drawn = drawn(&ledger, state, &bundle)?;
    let both = (&bundle, &drawn);
    let Some(format) = format else {
        return Ok(view::summary(&bundle, &drawn));
    };
    let bytes = match format {
        ReportFormat::Json if args.whole => drawn.to_bytes(),
        format => format.render(&bundle, &drawn),
    };
    Ok(match given(ctx, args.out.as_deref(), &bytes)? {
        Rendering::Shown(text) => view::document(both, text),
        Rendering::Written(file, bytes) => view::written(both, &file, bytes),
    })
}

/// Where a rendering went.
enum Rendering {
    /// To standard output: its text.
    Shown(String),
    /// To a file: its path, and its length in bytes.
    Written(String, usize),
}

/// Writes a rendering to a file where one is named, else to standard output; there an answer in JSON carries it.
fn given(ctx: &mut Ctx<'_>, out: Option<&Path>, bytes: &[u8]) -> Result<Rendering, CliError> {
    if let Some(out) = out {
        let (file, bytes) = written(ctx, out, bytes)?;
        return Ok(Rendering::Written(file, bytes));
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    if !ctx.globals.json {
        ctx.out(&text)?;
    }
    Ok(Rendering::Shown(text))
}

/// Writes a file; gives its path and its length in bytes.
fn written(ctx: &Ctx<'_>, out: &Path, bytes: &[u8]) -> Result<(String, usize), CliError> {
    let path = ctx.path(out);
    ambient::replace(&path, bytes, false)?;
    Ok((path.display().to_string(), bytes.len()))
}

/// Appends the publication and keeps the bundle; the rendering is written too where `-o` names one.
fn publish(ctx: &mut Ctx<'_>, args: &IterationArgs) -> Result<View, CliError> {
    let format = args.out.as_deref().map(|path| match args.format {
        Some(format) => Ok(format),
        None => ReportFormat::of(path),
    });
    let format = format.transpose()?;
    if ctx.as_of.is_some() {
        let message = "a report is published at the head, not as of an earlier entry";
        return Err(CliError::usage(
            message,
            "clover report iteration --publish",
        ));
    }
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let (id, it) = named(ledger.state(), args.id.as_deref())?;
    let (id, experiment) = (id.clone(), it.experiment.clone());
    let intent = submit::intent(args.dry_run);
    let of = (&experiment, &id);
    let Publication { bundle, submission } =
        reports::publish(&mut ctx.ports(), &mut ledger, of, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    let file = match (&args.out, format, args.dry_run) {
        (Some(out), Some(format), false) => {
            let drawn = drawn(&ledger, ledger.state(), &bundle)?;
            Some(written(ctx, out, &format.render(&bundle, &drawn))?)
        }
        _ => None,
    };
    Ok(view::published(answer, &bundle, file))
}

/// Publications up to `through`, by position.
pub(in crate::cli) fn publications(
    ledger: &Ledger,
    through: u64,
) -> Result<Vec<(u64, EventId, ReportPublished)>, CliError> {
    let mut found = Vec::new();
    ledger.entries::<LedgerError>(0, through + 1, |read| {
        if let Payload::ReportPublished(said) = read.event.payload {
            found.push((read.stored.seq, read.event.id, *said));
        }
        Ok(())
    })?;
    Ok(found)
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let as_of = ctx.as_of;
    let (_, ledger, _) = home::view(ctx)?;
    let through = as_of.unwrap_or(ledger.size().saturating_sub(1));
    Ok(view::list(&publications(&ledger, through)?))
}

fn show(ctx: &mut Ctx<'_>, args: &ReportShowArgs) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let read = show::find(ctx, &ledger, &args.event)?;
    let Payload::ReportPublished(said) = &read.event.payload else {
        let message = format!(
            "{} is {}, not report.published",
            args.event,
            read.event.kind()
        );
        return Err(CliError::usage(message, "clover report list"));
    };
    let missing = || {
        let message = format!("the bundle {} is not in this ledger", said.bundle.blake3);
        CliError::not_found(message, "clover blob list")
    };
    let bytes = ledger.store().reader().blob(&said.bundle.blake3)?;
    let bytes = bytes.ok_or_else(missing)?;
    let is_same = Digest::blake3(&bytes) == said.bundle.blake3
        && Digest::labelled(label(said.layout), &bytes) == said.bundle_hash;
    if !is_same {
        let message = format!(
            "the bundle kept under {} is not what was signed",
            said.bundle.blake3
        );
        return Err(CliError::integrity("tampered", message, "clover verify"));
    }
    let file = match &args.out {
        Some(out) => Some(written(ctx, out, &bytes)?),
        None => None,
    };
    Ok(view::show(read.stored.seq, said, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::report::requirements;

    #[test]
    fn help_names_every_framework() {
        let named: Vec<_> = FRAMEWORKS.split(' ').skip(4).collect();
        let kinds = ReportKind::ALL.iter();
        let with = kinds.filter(|kind| requirements::of(**kind).next().is_some());
        let words: Vec<_> = with.map(|kind| kind.as_str()).collect();
        assert_eq!(named, words);
    }
}
