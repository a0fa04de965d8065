//! How the command line words that a step of an iteration was not done: exit code and way on.

use crate::cli::error::CliError;
use crate::cli::patch;
use crate::event::id::ExperimentId;
use crate::ground::shell;
use crate::projection::iterations::PEEKS_MAX;
use crate::session::iterate::IterationError;
use crate::view::Exit;
use crate::view::iterate::next;

/// The command that lists plans.
const PLANS: &str = "clover log --kind manifest.registered";

/// How a judge comes to be told what a patch can change.
fn rendered(experiment: &ExperimentId) -> String {
    format!(
        "clover prompt checkout {} --out judge; then register a judge of another name with --prompt judge/prompt.txt",
        shell::word(experiment)
    )
}

/// The opening again, with an account for its peeks.
fn with_account(error: &IterationError) -> String {
    let IterationError::NoAccount {
        iteration,
        manifest,
        ..
    } = error
    else {
        return "clover iterate open --help".to_owned();
    };
    format!(
        "clover iterate open {} --manifest {} --peeks {PEEKS_MAX}",
        shell::word(iteration),
        shell::word(manifest)
    )
}

impl From<IterationError> for CliError {
    fn from(error: IterationError) -> Self {
        let message = error.to_string();
        let refused = |next: &str| Self::refused(error.to_string(), next);
        match &error {
            IterationError::BatteryTexts => {
                Self::new(Exit::NotFound, "not found", message, "clover doctor")
            }
            IterationError::BatteryNamed | IterationError::BatteryUnasked => {
                refused("clover assume waive --help")
            }
            IterationError::Battery(_) => refused("clover iterate list"),
            IterationError::ClusterElsewhere | IterationError::NoDesignOpen => {
                refused("clover confirm status")
            }
            IterationError::Conflicts(_) => refused("clover log --kind score.conflict"),
            IterationError::NoAccount { .. } => refused(&with_account(&error)),
            IterationError::OtherAccount { account, .. } => {
                refused(&format!("clover budget show {}", shell::word(account)))
            }
            IterationError::NoBench(_) => Self::not_found(message, "clover verify"),
            IterationError::NoDesign => {
                refused("clover import cje PATH --seal DESIGN --reveal-by TIME")
            }
            IterationError::NoJudge => refused("clover judge list"),
            IterationError::NoOrder => refused("clover checkpoint"),
            IterationError::NoPatch(_) | IterationError::UnknownPatch { .. } => {
                Self::not_found(message, "clover patch list")
            }
            IterationError::NoPlan(manifest) | IterationError::NotInForce(manifest) => {
                refused(&format!("clover prereg show {}", shell::word(manifest)))
            }
            IterationError::NoTexts | IterationError::Silent { .. } => {
                Self::not_found(message, "clover doctor")
            }
            IterationError::Ended { iteration, .. } => refused(&next(iteration, None)),
            IterationError::Patch(fault) => patch::refused(fault, "the patch"),
            IterationError::SeveralDesigns => {
                Self::usage(message, "the same command with --design ID")
            }
            IterationError::Still { iteration, step } => refused(&next(iteration, Some(*step))),
            IterationError::StepNotDue { iteration, due, .. } => {
                refused(&next(iteration, Some(*due)))
            }
            IterationError::TextsGone { judge, .. } => Self::not_found(
                message,
                format!(
                    "clover judge rescore-check --judge {} --rows PATH",
                    shell::word(judge)
                ),
            ),
            IterationError::Unscored { judge, .. } => refused(&format!(
                "clover judge run --judge {} --rows PATH",
                shell::word(judge)
            )),
            IterationError::TooFewRecords(_) => refused("clover judge run --judge ID --rows PATH"),
            IterationError::Unruled(_) => refused("clover rulebook adopt"),
            IterationError::OwnPrompt { experiment, .. } => refused(&rendered(experiment)),
            IterationError::Untold { .. } => {
                refused("clover judge run --judge ID --rows PATH -- COMMAND")
            }
            IterationError::Unverified { .. } => {
                refused("clover judge run --judge ID --rows PATH --known FILE")
            }
            IterationError::Unreviewed(_) => refused("clover patch review --help"),
            IterationError::Unstable { .. } => refused("clover log --kind score.replayed"),
            IterationError::Unknown(_) => Self::not_found(message, "clover iterate list"),
            IterationError::UnknownManifest(_) => Self::not_found(message, PLANS),
            error => of_optimizer(error, message),
        }
    }
}

/// Why a run of an optimizer did not go on.
fn of_optimizer(error: &IterationError, message: String) -> CliError {
    match error {
        IterationError::NoCards(_) => CliError::refused(message, "clover iterate cards ID"),
        IterationError::JudgedKey(_) => {
            CliError::refused(message, "clover key new NAME --role optimizer")
        }
        IterationError::NoDevCalls(_) => CliError::refused(message, "clover patch list"),
        IterationError::NoRun { .. } => CliError::not_found(message, "clover synth list"),
        IterationError::OpenRun(run) => {
            CliError::refused(message, format!("clover synth stop {}", shell::word(run)))
        }
        IterationError::EndedRun { .. } => {
            CliError::refused(message, "the same command with --again")
        }
        IterationError::OtherRun { run, .. } => CliError::refused(
            message,
            format!(
                "clover synth stop {}, then the same command with --again",
                shell::word(run)
            ),
        ),
        IterationError::Leak { .. } | IterationError::View(_) => {
            CliError::refused(message, "clover log --kind card.published")
        }
        IterationError::BusyRun(_) => CliError::refused(message, "clover synth list"),
        IterationError::Optimizer(_) => CliError::refused(
            message,
            "the same command goes on once the optimizer answers",
        ),
        _ => CliError::refused(message, "clover doctor"),
    }
}
