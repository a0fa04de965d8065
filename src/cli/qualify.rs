//! `clover qualify`: reference vectors with known answers, run on this machine.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::Text;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::session::qualification;
use crate::session::qualification::VectorFile;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::qualify;
use crate::workflow::qualify::Report;
use crate::workflow::qualify::bundle;
use crate::workflow::qualify::bundle::Bundled;
use crate::workflow::qualify::check::Arena;
use crate::workflow::qualify::slips;
use crate::workflow::qualify::slips::Slip;

/// Failures of a file that an answer lists for people unasked; `--json` has all.
const FAILURES_SHOWN: usize = 20;

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
        None => &Bundled,
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
    let mut found = answer(&reports, args.all_failures);
    if args.record {
        let recorded = record(ctx, &files, &reports)?;
        found.events = recorded.events;
        found.checkpoint = recorded.checkpoint;
        found.blocks.extend(recorded.blocks);
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

fn answer(reports: &[Report], all_failures: bool) -> View {
    let total = |count: fn(&Report) -> usize| -> usize { reports.iter().map(count).sum() };
    let (cases, passed) = (total(|r| r.cases), total(|r| r.passed));
    let not_run = total(|r| r.not_run.len());
    let failed = cases - passed - not_run;
    let unread = reports.iter().filter(|of| of.unread.is_some()).count();
    let rows = reports.iter().map(|report| {
        let worst = report.worst.as_ref();
        vec![
            short(&report.file),
            verdict(report).to_owned(),
            format!("{}/{}", report.passed, report.cases),
            report.not_run.len().to_string(),
            match worst {
                Some(worst) => format!("{:.1e}", worst.deviation),
                None if report.passed == 0 => "-".to_owned(),
                None => "exact".to_owned(),
            },
            worst.map_or(String::new(), |worst| share(worst.share)),
            report.tolerance.clone(),
        ]
    });
    let head = [
        "file",
        "verdict",
        "passed",
        "not run",
        "largest",
        "of allowed",
        "tolerance",
    ];
    let mut text = ui::table(&head, rows.collect());
    for report in reports {
        text.push_str(&remarks(report, all_failures));
    }
    let word = match (failed, unread) {
        (0, 0) => "QUALIFIED",
        (0, _) => "INCOMPLETE",
        _ => "FAILED",
    };
    text.push_str(&format!(
        "{word}  {passed} of {cases} cases passed · {failed} failed · {not_run} not run"
    ));
    if unread > 0 {
        let files = if unread == 1 { "file" } else { "files" };
        text.push_str(&format!(" · {unread} {files} not read"));
    }
    text.push('\n');
    let mut answer = View::untyped(
        text,
        json!({
            "cases": cases, "passed": passed, "failed": failed, "not_run": not_run, "files_not_read": unread,
            "files": reports.iter().map(file_json).collect::<Vec<Value>>(),
        }),
    );
    (answer.verdict, answer.exit) = match (failed, unread) {
        (0, 0) => ("qualified", Exit::Done),
        (0, _) => ("incomplete", Exit::Input),
        _ => ("failed", Exit::Integrity),
    };
    answer
}

/// What a file's row of the table leaves out: failures, and what was not run.
fn remarks(report: &Report, all_failures: bool) -> String {
    let (name, mut text) = (short(&report.file), String::new());
    let most = if all_failures {
        usize::MAX
    } else {
        FAILURES_SHOWN
    };
    for failure in report.failures.iter().take(most) {
        text.push_str(&format!(
            "FAIL {name} {} {}: {}\n",
            ui::escape(&failure.case),
            ui::escape(&failure.at),
            ui::escape(&failure.what)
        ));
    }
    let more = report.failures.len().saturating_sub(most);
    if more > 0 {
        let failures = if more == 1 { "failure" } else { "failures" };
        text.push_str(&format!(
            "FAIL {name} and {more} more {failures}: --all-failures lists them, --json holds them\n"
        ));
    }
    if let Some(why) = &report.unread {
        text.push_str(&format!("NOT RUN {name}: {}\n", ui::escape(why)));
    }
    for (case, why) in &report.not_run {
        text.push_str(&format!(
            "NOT RUN {name} {}: {}\n",
            ui::escape(case),
            ui::escape(why)
        ));
    }
    text
}

fn verdict(report: &Report) -> &'static str {
    if !report.is_clean() {
        "FAIL"
    } else if report.passed == 0 {
        "NOT RUN"
    } else {
        "PASS"
    }
}

/// A share of what is allowed.
fn share(share: f64) -> String {
    if share < 1e-4 {
        "0.0 %".to_owned()
    } else {
        format!("{:.1} %", 100.0 * share)
    }
}

/// The last two parts of a name.
fn short(name: &str) -> String {
    let parts: Vec<&str> = name.rsplitn(3, '/').take(2).collect();
    let parts: Vec<&str> = parts.into_iter().rev().collect();
    parts.join("/")
}

fn file_json(report: &Report) -> Value {
    json!({
        "file": report.file, "verdict": verdict(report), "note": report.note, "peers": report.peers,
        "tolerance": report.tolerance, "cases": report.cases, "passed": report.passed,
        "refused_as_expected": report.refused,
        "not_run": report.not_run.iter()
            .map(|(case, why)| json!({"case": case, "why": why})).collect::<Vec<_>>(),
        "not_read": report.unread, "peer_slips": report.slips.iter()
            .map(|slip| json!({"fold": slip.fold, "score": slip.score, "what": slip.what})).collect::<Vec<_>>(),
        "failures": report.failures.iter()
            .map(|f| json!({"case": f.case, "at": f.at, "what": f.what})).collect::<Vec<_>>(),
        "worst": report.worst.as_ref().map(|worst| json!({
            "case": worst.case, "at": worst.at, "deviation": worst.deviation,
            "share_of_allowed": worst.share,
        })),
    })
}
