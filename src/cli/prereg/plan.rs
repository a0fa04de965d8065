//! Manifests as files: reading, preflight, and errors that name file, line and field.

use std::path::Path;

use serde_json::Value;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input::Fault;
use crate::cli::prereg::peer;
use crate::cli::prereg::unfilled;
use crate::event::payload::manifest::Manifest;
use crate::ground::shell;
use crate::ground::written;
use crate::ground::yaml::Document;
use crate::ground::yaml::NodePosition;
use crate::ground::yaml::YamlError;
use crate::session::prereg::registration;
use crate::view::View;
use crate::view::prereg::file;
use crate::workflow::prereg;
use crate::workflow::prereg::Report;

const NEXT: &str = "clover prereg new --template NAME";

/// A manifest that was read from a file.
pub(super) struct Plan {
    /// What it says.
    pub manifest: Manifest,
    document: Document,
    source: String,
}

pub(super) fn at(source: &str, place: NodePosition, message: String) -> CliError {
    let fault = Fault {
        line: place.line.max(1),
        column: place.column,
        field: place.path,
        message,
    };
    fault.into_error(source, 1, NEXT)
}

/// Reads a manifest; what is not one is refused at its place.
pub(super) fn load(ctx: &mut Ctx<'_>, file: &Path) -> Result<Plan, CliError> {
    let bytes = ctx.read(file)?;
    parse(&bytes, file)
}

fn parse(bytes: &[u8], file: &Path) -> Result<Plan, CliError> {
    let source = if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    let wrong = |error: YamlError| at(&source, error.place, error.message);
    let document = Document::parse(bytes).map_err(wrong)?;
    let gaps = unfilled::gaps(bytes, &document);
    let (manifest, document) = match written::decode(document) {
        Ok(read) if gaps.iter().all(|gap| !gap.is_marked) => read,
        Ok(_) => return Err(unfilled::refuse(&source, &gaps, None)),
        Err(error) => return Err(unfilled::refuse(&source, &gaps, Some(error))),
    };
    Ok(Plan {
        manifest,
        document,
        source,
    })
}

impl Plan {
    /// Where a field stands, or the nearest field around it.
    fn place(&self, path: &str) -> NodePosition {
        let mut around = path;
        loop {
            if let Some(place) = self.document.place(around) {
                let path = path.to_owned();
                return NodePosition {
                    path,
                    ..place.clone()
                };
            }
            around = around.rsplit_once('.').map_or("", |(around, _)| around);
        }
    }

    /// An error about a field.
    pub(super) fn fault(&self, path: &str, message: &str) -> CliError {
        at(&self.source, self.place(path), message.to_owned())
    }

    /// Refuses a manifest whose contents or sizes cannot work, each at its place.
    pub(super) fn refuse_faults(&self) -> Result<Report, CliError> {
        let report = prereg::preflight(&self.manifest);
        let mut errors = report.faults.iter().map(|fault| {
            let message = format!("expected {}, found {}", fault.expected, fault.found);
            self.fault(&fault.path, &message)
        });
        let Some(mut first) = errors.next() else {
            drop(errors);
            return Ok(report);
        };
        let mut all = vec![first.data.clone()];
        for error in errors {
            first.message.push('\n');
            first.message.push_str(&error.message);
            all.push(error.data);
        }
        first.data["faults"] = Value::Array(all);
        let file = shell::word(&self.source);
        Err(first.with_next(format!("mend {file}, then clover prereg check {file}")))
    }
}

/// Validates a file and prints its preflight.
pub(super) fn check(ctx: &mut Ctx<'_>, path: &Path) -> Result<View, CliError> {
    let bytes = ctx.read(path)?;
    if peer::is_one(&bytes) {
        return peer::check(&path.display().to_string(), &bytes);
    }
    let plan = parse(&bytes, path)?;
    let report = plan.refuse_faults()?;
    // A plan is written before there is a ledger; where one is at hand, it is asked whether the plan comes in time.
    if home::find(ctx).is_ok() {
        match home::open_to_read(ctx) {
            Ok((_, ledger)) => registration::in_time(ledger.state(), &plan.manifest)?,
            Err(error) => ctx.warn(format!(
                "the plan is not held against the ledger here: {}",
                error.message
            )),
        }
    }
    Ok(file::checked(&plan.manifest, report, path))
}
