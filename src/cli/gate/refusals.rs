//! Exit code, word and next command of a step of a gate that was not done.

use serde_json::json;

use crate::cli::bulk;
use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::gate::GateError;
use crate::view::Exit;
use crate::view::gate::command;
use crate::view::gate::deviation;
use crate::view::gate::observe_all;

/// A plan of a gate whose family gives it no share.
fn of_family(error: &GateError, message: String) -> CliError {
    match error {
        GateError::FamilySpent(family) => {
            let next = format!("clover family show {}", shell::word(family));
            CliError::refused(message, next)
        }
        GateError::SeveralFamilies(families) => {
            let first = families.first().map(shell::word).unwrap_or_default();
            CliError::usage(message, format!("the same command with --family {first}"))
        }
        GateError::NoOpenFamily => CliError::not_found(message, "clover family open --help"),
        _ => CliError::not_found(message, "clover family list"),
    }
}

/// A gate that needs more work.
fn undecided(message: String, next: String) -> CliError {
    CliError::new(Exit::Inconclusive, "need_more_work", message, next)
}

impl From<GateError> for CliError {
    fn from(error: GateError) -> Self {
        let message = error.to_string();
        match error {
            GateError::AlreadyExposed { gate, .. } => Self::refused(message, observe_all(&gate)),
            GateError::Ended(gate)
            | GateError::NoCandidate(gate)
            | GateError::Revoked { gate, .. }
            | GateError::Undrawn(gate)
            | GateError::Unfit { gate, .. }
            | GateError::Untestable { gate, .. } => {
                Self::refused(message, command("gate show", &gate))
            }
            GateError::Estimate { gate, .. } => {
                Self::refused(message, command("gate estimate", &gate))
            }
            GateError::NotContinued(gate) => {
                Self::refused(message, command("gate continue", &gate))
            }
            GateError::NoConfirmSet(gate)
            | GateError::NoConfirmSetInForce(gate)
            | GateError::NoGatePlan(gate)
            | GateError::NoParent(gate)
            | GateError::Planned(gate)
            | GateError::NotInForce(gate) => Self::refused(message, command("prereg show", &gate)),
            GateError::FamilySpent(_)
            | GateError::NoFamily(_)
            | GateError::NoOpenFamily
            | GateError::SeveralFamilies(_) => of_family(&error, message),
            // What has observed nothing cannot be looked at either.
            GateError::NoLook { gate, n: 0 } => undecided(message, command("gate show", &gate)),
            GateError::NoLook { gate, .. } | GateError::Undecided { gate, .. } => {
                undecided(message, command("gate look", &gate))
            }
            GateError::NoManifest(_) => Self::not_found(message, "clover prereg sign FILE"),
            GateError::NoPromotion(_) => {
                Self::not_found(message, "clover log --kind promotion.issued")
            }
            GateError::NothingExposed(gate) => {
                Self::refused(message, command("exposure open", &gate))
            }
            GateError::NotOpened(gate) => {
                Self::refused(message, format!("{} --help", command("gate open", &gate)))
            }
            GateError::NotOpen(gate) => {
                let next = format!("{} --units FILE --judge JUDGE", command("gate open", &gate));
                Self::not_found(message, next)
            }
            GateError::Outcome { file, error } => {
                let mut wrong = Self::input(message, "clover gate observe --help");
                wrong.data = json!({"file": file, "line": error.line, "field": error.field});
                wrong
            }
            GateError::Reused { .. } => Self::refused(message, "clover gate list"),
            GateError::Score { file, lines, error } => bulk::at_line(*error, &lines, &file),
            GateError::Snapshot { .. } => Self::integrity("snapshot", message, "clover verify"),
            GateError::Stale { gate, judge, seq } => {
                let mut error = Self::refused(message, deviation(&gate));
                error.data = json!({"rule": "drift", "judge": judge, "in_the_way": seq});
                error
            }
            GateError::Strata { file, .. } => {
                let next = format!("clover gate root {}", shell::word(&file));
                Self::input(message, next)
            }
            GateError::TooManyUnits => Self::usage(
                "--through: expected at most 2^53 - 1",
                "clover exposure open --help",
            ),
            GateError::Unheld { .. } => Self::integrity("observation", message, "clover verify"),
            GateError::Units { gate, .. } => Self::input(message, command("prereg show", &gate)),
        }
    }
}
