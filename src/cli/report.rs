//! `clover report`: what the log says of an iteration, as a page, Markdown, or the bundle itself.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::show;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::IterationId;
use crate::event::payload::report::ReportPublished;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::bundle::Bundle;
use crate::projection::bundle::Part;
use crate::projection::bundle::label;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::report::markdown;
use crate::report::page;
use crate::session::reports;
use crate::session::reports::Publication;
use crate::view::View;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Everything about one iteration, each number with its entry; missing parts are named
    #[command(after_help = "Example:\n  clover report iteration it-1 -o report.html")]
    Iteration(IterationArgs),
    /// Reports that were published
    #[command(after_help = "Example:\n  clover report list")]
    List,
    /// One published report: what it lacks, and whether its bundle is what was signed
    #[command(after_help = "Example:\n  clover report show 812 -o report.json")]
    Show(ShowArgs),
}

/// A rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
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
    pub format: Option<Format>,
    /// Keep the bundle in the ledger and sign its digest, as the arbiter
    #[arg(long)]
    pub publish: bool,
    /// With --publish: print the canonical unsigned body and append nothing
    #[arg(long, requires = "publish")]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
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
        Verb::List => list(ctx),
        Verb::Show(args) => show(ctx, args),
    }
}

impl Format {
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

    fn render(self, bundle: &Bundle) -> Vec<u8> {
        match self {
            Self::Html => page::html(bundle).into_bytes(),
            Self::Md => markdown::markdown(bundle).into_bytes(),
            Self::Json => bundle.to_bytes(),
        }
    }
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
        (None, Some(path)) => Some(Format::of(path)?),
        (None, None) => None,
    };
    let through = ctx.as_of;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let (id, it) = named(state, args.id.as_deref())?;
    let through = through.unwrap_or(ledger.size().saturating_sub(1));
    let of = (&it.experiment, id);
    let bundle = reports::gathered(&ledger, state, of, through)?;
    let Some(format) = format else {
        return Ok(summary(&bundle));
    };
    let bytes = format.render(&bundle);
    let Some(out) = &args.out else {
        if ctx.globals.json {
            return Ok(View::untyped("", data(&bundle)));
        }
        ctx.out(&String::from_utf8_lossy(&bytes))?;
        return Ok(View::untyped("", data(&bundle)));
    };
    let path = ctx.path(out);
    ambient::replace(&path, &bytes, false)?;
    let mut answer = summary(&bundle);
    answer.blocks = Vec::new();
    answer.source(format!(
        "{}: {} bytes\n{}",
        path.display(),
        bytes.len(),
        gaps(&bundle)
    ));
    answer.facts_mut()["bytes"] = bytes.len().into();
    answer.next = vec![format!(
        "clover report iteration {id} --publish",
        id = shell::word(&id)
    )];
    Ok(answer)
}

fn standing(part: &Part) -> &'static str {
    match (part.is_present(), part.missing.is_empty()) {
        (false, _) => "missing",
        (true, false) => "in part",
        (true, true) => "whole",
    }
}

/// What is not shown, in lines.
fn gaps(bundle: &Bundle) -> String {
    let mut out = String::new();
    for part in &bundle.parts {
        for gap in &part.missing {
            let line = format!("not shown: {}: {} ({})", part.title, gap.what, gap.why);
            out.push_str(&ui::wrapped(&ui::escape(&line)));
        }
    }
    out
}

fn summary(bundle: &Bundle) -> View {
    let rows = bundle.parts.iter().map(|part| {
        let rows: usize = part.tables.iter().map(|table| table.rows.len()).sum();
        vec![
            part.part.to_string(),
            standing(part).to_owned(),
            (rows + part.facts.len()).to_string(),
        ]
    });
    let mut text = format!(
        "iteration {}  experiment {}  entries 0 to {}\n\n",
        bundle.iteration, bundle.experiment, bundle.through_seq
    );
    text.push_str(&ui::table(&["part", "shown", "rows"], rows.collect()));
    text.push('\n');
    text.push_str(&gaps(bundle));
    text.push_str(&format!("bundle {}\n", bundle.digest()));
    let next = format!(
        "clover report iteration {} -o report.html",
        shell::word(&bundle.iteration)
    );
    View::untyped(text, data(bundle)).with_next(next)
}

fn data(bundle: &Bundle) -> Value {
    json!({
        "bundle_hash": bundle.digest().to_hex(),
        "bundle": serde_json::to_value(bundle).unwrap_or_default(),
        "present": bundle.present(),
        "gaps": bundle.gaps(),
    })
}

/// Appends the publication and keeps the bundle; the rendering is written too where `-o` names one.
fn publish(ctx: &mut Ctx<'_>, args: &IterationArgs) -> Result<View, CliError> {
    let format = args.out.as_deref().map(|path| match args.format {
        Some(format) => Ok(format),
        None => Format::of(path),
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
    let mut answer = submit::shown(ctx, &ledger, &submission);
    if let (Some(out), Some(format), false) = (&args.out, format, args.dry_run) {
        let path = ctx.path(out);
        let bytes = format.render(&bundle);
        ambient::replace(&path, &bytes, false)?;
        answer.line(format!("{}: {} bytes", path.display(), bytes.len()));
    }
    answer.line(format!("bundle {}", bundle.digest()));
    answer.facts_mut()["bundle_hash"] = bundle.digest().to_hex().into();
    answer.facts_mut()["gaps"] = json!(bundle.gaps());
    Ok(answer)
}

/// Publications up to `through`, by position.
fn publications(
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
    let (_, ledger, _view) = home::view(ctx)?;
    let through = as_of.unwrap_or(ledger.size().saturating_sub(1));
    let found = publications(&ledger, through)?;
    let newest = |said: &ReportPublished| {
        let same = found
            .iter()
            .rev()
            .find(|(_, _, other)| other.iteration == said.iteration);
        same.map(|(seq, ..)| *seq)
    };
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (seq, id, said) in &found {
        let by = newest(said).filter(|by| by != seq);
        rows.push(vec![
            seq.to_string(),
            said.iteration.to_string(),
            format!("0 to {}", said.through_seq),
            said.gaps.len().to_string(),
            by.map_or("newest".to_owned(), |by| format!("superseded at seq {by}")),
            said.bundle_hash.short().to_string(),
        ]);
        data.push(json!({
            "seq": seq, "id": id.to_string(), "iteration": said.iteration.as_str(),
            "through_seq": said.through_seq, "gaps": said.gaps.len(), "superseded_by": by,
            "bundle_hash": said.bundle_hash.to_hex(), "blake3": said.bundle.blake3.to_hex(),
        }));
    }
    let head = [
        "seq",
        "iteration",
        "entries read",
        "gaps",
        "standing",
        "bundle",
    ];
    Ok(View::untyped(
        ui::table(&head, rows),
        json!({"reports": data}),
    ))
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
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
    let mut text = ui::pairs(&[
        ("iteration", said.iteration.to_string()),
        ("published", format!("seq {}", read.stored.seq)),
        ("entries read", format!("0 to {}", said.through_seq)),
        ("bundle", format!("{}, as signed", said.bundle_hash)),
        ("assumptions", said.assumptions_digest.to_hex()),
        ("computed by", said.build.as_str().to_owned()),
    ]);
    for gap in &said.gaps {
        let line = format!(
            "not shown: {}: {} ({})",
            gap.part.title(),
            gap.what.as_str(),
            gap.why.as_str()
        );
        text.push_str(&ui::wrapped(&ui::escape(&line)));
    }
    if let Some(out) = &args.out {
        let path = ctx.path(out);
        ambient::replace(&path, &bytes, false)?;
        text.push_str(&format!("{}: {} bytes\n", path.display(), bytes.len()));
    }
    let data = json!({
        "seq": read.stored.seq, "iteration": said.iteration.as_str(), "bundle_hash": said.bundle_hash.to_hex(),
        "present": said.present, "gaps": said.gaps, "through_seq": said.through_seq,
    });
    let page = format!(
        "clover at {} -- report iteration {} -o report.html",
        shell::word(&said.through_seq),
        shell::word(&said.iteration)
    );
    Ok(View::untyped(text, data).with_next(page))
}
