//! Manifests as files: templates, reading, preflight, and errors that name file, line and field.

use std::path::Path;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::input::Fault;
use crate::cli::prereg::peer;
use crate::cli::ui;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::ground::shell;
use crate::ground::yaml::Document;
use crate::ground::yaml::Place;
use crate::ground::yaml::YamlError;
use crate::view::View;
use crate::workflow::prereg;
use crate::workflow::prereg::Report;

const NEXT: &str = "clover prereg new --template NAME";

/// The commented file of a template.
pub(super) fn text(template: Template) -> &'static str {
    match template {
        Template::Gate => include_str!("gate.yaml"),
        Template::Iteration => include_str!("iteration.yaml"),
        Template::Sgd => include_str!("sgd.yaml"),
        Template::Transport => include_str!("transport.yaml"),
        Template::Workflow => include_str!("workflow.yaml"),
    }
}

/// A manifest that was read from a file.
pub(super) struct Plan {
    /// What it says.
    pub manifest: Manifest,
    document: Document,
    source: String,
}

fn at(source: &str, place: Place, message: String) -> CliError {
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
    let manifest = document.decode().map_err(wrong)?;
    Ok(Plan {
        manifest,
        document,
        source,
    })
}

impl Plan {
    /// Where a field stands, or the nearest field around it.
    fn place(&self, path: &str) -> Place {
        let mut around = path;
        loop {
            if let Some(place) = self.document.place(around) {
                let path = path.to_owned();
                return Place {
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
        Err(first.with_next(format!("clover prereg check {}", shell::word(&self.source))))
    }
}

/// Validates a file and prints its preflight.
pub(super) fn check(ctx: &mut Ctx<'_>, file: &Path) -> Result<View, CliError> {
    let bytes = ctx.read(file)?;
    if peer::is_one(&bytes) {
        return peer::check(&file.display().to_string(), &bytes);
    }
    let plan = parse(&bytes, file)?;
    let report = plan.refuse_faults()?;
    let manifest = &plan.manifest;
    let mut rows: Vec<(&str, String)> = vec![
        ("manifest", manifest.manifest.to_string()),
        ("template", manifest.template.as_str().to_owned()),
        ("digest", manifest.digest().to_hex()),
        ("h0 digest", manifest.h0_digest().to_hex()),
    ];
    for measure in &report.measures {
        let value = measure.value.map_or("none".to_owned(), number);
        rows.push((&measure.name, value));
    }
    let mut answer = View::untyped(ui::pairs(&rows), data(manifest, &report));
    for criterion in &report.unmet {
        answer.line(format!("cannot be met: {criterion}"));
    }
    for reason in &report.not_checked {
        answer.line(format!("not checked: {reason}"));
    }
    let countersign = if manifest.data.is_some() {
        " --countersign"
    } else {
        ""
    };
    Ok(answer.with_next(format!(
        "clover prereg sign {}{countersign}",
        shell::word(&file.display())
    )))
}

fn number(value: f64) -> String {
    if value.fract().abs() > 0.0 {
        format!("{value:.4}")
    } else {
        format!("{value}")
    }
}

fn data(manifest: &Manifest, report: &Report) -> Value {
    let measures = report.measures.iter();
    let measures: Vec<_> = measures
        .map(|measure| json!({"name": measure.name, "value": measure.value}))
        .collect();
    json!({
        "manifest": manifest.manifest.as_str(), "template": manifest.template.as_str(),
        "digest": manifest.digest().to_hex(), "h0_digest": manifest.h0_digest().to_hex(),
        "preflight": measures, "not_checked": report.not_checked, "unmet": report.unmet,
        "binds_confirm_data": manifest.data.is_some(),
    })
}
