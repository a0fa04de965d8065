//! `clover qualify`: reference vectors with known answers, run on this machine.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::Text;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::qualify;
use crate::qualify::Report;
use crate::qualify::bundle;
use crate::qualify::bundle::BundledSample;
use crate::qualify::check::Arena;
use crate::qualify::slips;
use crate::qualify::slips::Slip;
use crate::session::qualification;
use crate::session::qualification::VectorFile;
use crate::view::View;
use crate::view::qualify as view;
use crate::view::qualify::short;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Also run the vector files of this folder; may be repeated
    #[arg(long, value_name = "DIR")]
    pub vectors: Vec<PathBuf>,
    /// The real sample's folder, instead of the numbers that are compiled in
    #[arg(long, value_name = "DIR")]
    pub arena: Option<PathBuf>,
    /// List every failure of a file, not the first 20
    #[arg(long)]
    pub all_failures: bool,
    /// Record the outcome in the ledger, signed by --key
    #[arg(long)]
    pub record: bool,
}

/// The real sample in a folder.
#[derive(Debug)]
struct Folder(PathBuf);

impl Arena for Folder {
    fn text(&self, name: &str) -> Result<String, String> {
        let bytes = ambient::read(&self.0.join(name)).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8"))
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let folder = args.arena.as_ref().map(|path| Folder(ctx.path(path)));
    let arena: &dyn Arena = match &folder {
        Some(folder) => folder,
        None => &BundledSample,
    };
    let mut files: Vec<Vector> = bundle::VECTORS
        .iter()
        .map(|(name, text)| Vector {
            name: format!("bundled/{name}"),
            text: Ok((*text).to_owned()),
            slips: Arc::default(),
        })
        .collect();
    for path in &args.vectors {
        files.extend(vectors(ctx, path)?);
    }
    let mut reports = Vec::with_capacity(files.len());
    let all = files.len() as u64;
    let mut progress = ctx.progress("vector files");
    for (done, file) in (0..).zip(&files) {
        progress.at(done, all);
        reports.push(file.run(arena));
    }
    drop(progress);
    let found = view::view(&reports, args.all_failures);
    if args.record {
        let recorded = record(ctx, &files, &reports)?;
        return Ok(view::recorded(found, recorded));
    }
    Ok(found)
}

/// A vector file, or why it could not be read, with the slips that its folder lists.
struct Vector {
    name: String,
    text: Result<String, String>,
    slips: Arc<Vec<Slip>>,
}

impl Vector {
    fn run(&self, arena: &dyn Arena) -> Report {
        let ran = self.text.clone().and_then(|text| {
            let ran = qualify::run_beside(&self.name, &text, Some(arena), &self.slips);
            ran.map_err(|error| error.to_string())
        });
        ran.unwrap_or_else(|why| Report::unread(&self.name, why))
    }
}

/// Puts the outcome on record.
fn record(ctx: &mut Ctx<'_>, files: &[Vector], reports: &[Report]) -> Result<View, CliError> {
    let text = |text: &str| {
        Text::new(text).ok_or_else(|| {
            let message = format!("{}: too long a name", ui::escape(text));
            CliError::input(message, "clover qualify --help")
        })
    };
    let found = files.iter().zip(reports).map(|(file, report)| {
        Ok(VectorFile {
            name: text(&short(&report.file))?,
            text: file.text.as_deref().ok(),
            report,
        })
    });
    let found = found.collect::<Result<Vec<_>, CliError>>()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = qualification::record(&mut ctx.ports(), &mut ledger, &found)?;
    Ok(submit::shown(ctx, &ledger, &submission))
}

/// Slips that a folder of vectors lists; none without a list.
fn listed(folder: &Path) -> Result<Vec<Slip>, CliError> {
    let path = folder.join(slips::FILE);
    let bytes = match ambient::read(&path) {
        Ok(bytes) => bytes,
        Err(AmbientError::NotFound(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let text = String::from_utf8(bytes).map_err(|_| "expected UTF-8".to_owned());
    text.and_then(|text| slips::read(&text)).map_err(|wrong| {
        CliError::input(
            format!("{}: {wrong}", path.display()),
            "clover qualify --help",
        )
    })
}

/// Vector files of a folder, in order of their names.
fn vectors(ctx: &Ctx<'_>, path: &Path) -> Result<Vec<Vector>, CliError> {
    let folder = ctx.path(path);
    let mut found = Vec::new();
    let mut files = ambient::list(&folder)?;
    files.sort();
    let slips = Arc::new(listed(&folder)?);
    for file in files {
        if file.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let bytes = ambient::read(&file).map_err(|error| error.to_string());
        let text = bytes.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "expected UTF-8, found other bytes".to_owned())
        });
        found.push(Vector {
            name: file.display().to_string(),
            text,
            slips: slips.clone(),
        });
    }
    if found.is_empty() {
        return Err(CliError::not_found(
            format!("{}: no vector files (*.json) in it", path.display()),
            "clover qualify --help",
        ));
    }
    Ok(found)
}
