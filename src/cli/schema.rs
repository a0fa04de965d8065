//! `clover schema [KIND]`: kinds with who signs them, and their JSON Schemas.

use serde_json::Value;

use crate::cli::error::CliError;
use crate::cli::input;
use crate::view::View;
use crate::view::manual;
use crate::view::manual::KindSchema;

/// Every schema by `kind.vN`, generated with the files of `schema/event/`.
const SCHEMAS: &str = include_str!("../../schema/events.json");

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kind; without it, a list of all
    pub kind: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<View, CliError> {
    let Some(kind) = &args.kind else {
        return Ok(manual::kinds());
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
    Ok(manual::schema(&KindSchema(schema.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;

    #[test]
    fn every_kind_has_its_schema() {
        for kind in Kind::ALL {
            let kind = Some(kind.to_string());
            let answer = run(&Args { kind }).unwrap();
            assert!(answer.facts()["properties"].is_object());
        }
    }
}
