//! `clover schema [KIND]`: kinds with who signs them, and their JSON Schemas.

use serde_json::Value;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::input;
use crate::cli::ui;
use crate::event::Kind;
use crate::event::registry::Scope;
use crate::event::registry::Signers;
use crate::view::View;
use crate::workflow::recompute;

/// Every schema by `kind.vN`, generated with the files of `schema/event/`.
const SCHEMAS: &str = include_str!("../../schema/events.json");

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kind; without it, a list of all
    pub kind: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<View, CliError> {
    let Some(kind) = &args.kind else {
        return Ok(list());
    };
    let kind =
        input::kind(kind).map_err(|message| CliError::not_found(message, "clover schema"))?;
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    let name = format!("{kind}.v{}", kind.version());
    let schema = schemas.get(&name).ok_or_else(|| {
        CliError::not_found(
            format!("no schema of {name} in this build"),
            "clover schema",
        )
    })?;
    let text = serde_json::to_string_pretty(schema).unwrap_or_default() + "\n";
    Ok(View::untyped(text, schema.clone()))
}

fn signers(kind: Kind) -> String {
    match kind.signers() {
        Signers::Any => "any live key".to_owned(),
        Signers::Genesis => "the first owner".to_owned(),
        Signers::Role(role) => role.to_string(),
        Signers::Spenders => "a spender of the account".to_owned(),
    }
}

fn scope(kind: Kind) -> &'static str {
    match kind.scope() {
        Scope::Anywhere => "anywhere",
        Scope::Experiment => "an open experiment",
        Scope::NewExperiment => "the experiment it begins",
    }
}

/// Who computes a kind again: `clover replay`, or a rule of `clover verify` in its place; `-` for what is taken as it was said.
fn again(kind: Kind) -> (String, Value) {
    if recompute::recipe(kind).is_some() {
        return ("replay".to_owned(), json!({"by": "replay"}));
    }
    match recompute::elsewhere(kind) {
        Some(of) => (
            format!("rule {}", of.rule),
            json!({"by": "verify", "rule": of.rule, "why": of.why}),
        ),
        None => ("-".to_owned(), Value::Null),
    }
}

fn list() -> View {
    let rows = Kind::ALL.iter().map(|kind| {
        vec![
            kind.to_string(),
            format!("v{}", kind.version()),
            signers(*kind),
            scope(*kind).to_owned(),
            again(*kind).0,
        ]
    });
    let text = ui::table(
        &[
            "kind",
            "version",
            "signed by",
            "belongs to",
            "computed again",
        ],
        rows.collect(),
    );
    let data: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| {
            json!({
                "kind": kind.as_str(), "version": kind.version(),
                "signed_by": signers(*kind), "belongs_to": scope(*kind),
                "computed_again": again(*kind).1,
            })
        })
        .collect();
    View::untyped(text, json!({"kinds": data})).with_next("clover schema KIND")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_schema() {
        for kind in Kind::ALL {
            let kind = Some(kind.to_string());
            let answer = run(&Args { kind }).unwrap();
            assert!(answer.facts()["properties"].is_object());
        }
    }
}
