//! Exit code, word and next command of a judge's work that stopped.

use crate::cli::error::CliError;
use crate::cli::ui;
use crate::event::id::JudgeId;
use crate::ground::shell;
use crate::session::estimates::EstimateError;
use crate::session::judge::JudgingError;
use crate::view::Exit;
use crate::workflow::drift::DriftError;
use crate::workflow::judge::JudgeError;
use crate::workflow::judge::agreement::AgreementError;

const HELP: &str = "clover judge run --help";
const RUN: &str = "clover judge run --judge ID --rows PATH";
const DRIFT_HELP: &str = "clover judge drift --help";

/// What stops a judge behind HTTP before it asks.
fn live(message: String, error: &JudgingError) -> CliError {
    match error {
        JudgingError::NoEndpoint(_) => CliError::not_found(message, "clover endpoint list"),
        JudgingError::UnknownAccount(_) => CliError::not_found(message, "clover budget list"),
        JudgingError::NoAccount => CliError::usage(message, "the same command with --account ID"),
        JudgingError::Overlong { .. } => CliError::input(message, "clover judge ask --help"),
        JudgingError::NoCall { .. } => CliError::integrity("damaged", message, "clover verify"),
        JudgingError::Unpriced { .. } => CliError::refused(message, "clover price import --help"),
        JudgingError::NoSpender { .. } => CliError::refused(message, "clover budget list"),
        JudgingError::TakenOver(_) => {
            CliError::refused(message, "clover log --kind judge_run.resumed")
        }
        JudgingError::AskedElsewhere {
            experiment, judge, ..
        } => {
            let place = experiment.as_ref();
            let place = place.map_or_else(String::new, |of| {
                format!(" --experiment {}", shell::word(of))
            });
            let judge = shell::word(&judge);
            CliError::refused(message, format!("clover estimate --judge {judge}{place}"))
        }
        JudgingError::OtherRows(_) => CliError::refused(
            message,
            "the same command with the rows that it was opened with; without them, clover judge stop --help",
        ),
        JudgingError::OtherTerms { run, .. } => CliError::refused(
            message,
            format!(
                "the same command without --account and --cap-usd, or clover judge stop {}",
                shell::word(&run)
            ),
        ),
        JudgingError::OtherText { .. } => CliError::refused(
            message,
            "the same command with the texts as they were; what is another answer is another item",
        ),
        JudgingError::AskedAgain(_) => {
            CliError::refused(message, "clover log --kind noise.measured")
        }
        JudgingError::StillAsking(run) => {
            let run = shell::word(&run);
            CliError::refused(message, format!("clover judge stop {run}"))
        }
        JudgingError::NotDrawable { .. } => CliError::refused(
            message,
            "the same command with --rows of every row that it scored",
        ),
        JudgingError::NoRun(_) => CliError::not_found(message, "clover status"),
        JudgingError::RunEnded(_) => {
            CliError::refused(message, "clover log --kind judge_run.closed")
        }
        _ => CliError::refused(message, "clover status"),
    }
}

impl From<JudgingError> for CliError {
    fn from(error: JudgingError) -> Self {
        let message = error.to_string();
        match error {
            JudgingError::ChangedJudge { .. } => Self::refused(
                message,
                "the same command as it was registered; or with --changed, to record that the judge changed",
            ),
            JudgingError::Compared { second, error, .. } => compared(message, &second, *error),
            JudgingError::Drift { judge, error } => drift(message, &judge, &error),
            JudgingError::FewRows(_) => Self::refused(message, RUN),
            JudgingError::Interrupted { .. } => Self::new(
                Exit::Interrupted,
                "interrupted",
                message,
                "the same command goes on where it stopped",
            ),
            JudgingError::MissingAnchors { .. } => {
                Self::input(format!("--rows: {message}"), DRIFT_HELP)
            }
            JudgingError::NoAnchors(_) => Self::not_found(message, "clover iterate anchors --help"),
            JudgingError::Known { .. }
            | JudgingError::NoPrompt(_)
            | JudgingError::NoPlan { .. }
            | JudgingError::OtherPrompt(_) => Self::integrity("damaged", message, "clover verify"),
            JudgingError::Cassette(_) => Self::input(message, "clover cassette export --help"),
            JudgingError::Unruled(_) => Self::refused(message, "clover rulebook adopt"),
            JudgingError::Textless { .. } => {
                Self::input(message, "clover judge run --judge llm -- python3 judge.py")
            }
            JudgingError::NoTexts { .. } => Self::input(message, HELP),
            JudgingError::OtherTerms { .. }
            | JudgingError::OtherText { .. }
            | JudgingError::AskedAgain(_)
            | JudgingError::StillAsking(_)
            | JudgingError::NotDrawable { .. }
            | JudgingError::NoRun(_)
            | JudgingError::RunEnded(_)
            | JudgingError::NoEndpoint(_)
            | JudgingError::UnknownAccount(_)
            | JudgingError::NoAccount
            | JudgingError::Unpriced { .. }
            | JudgingError::NoSpender { .. }
            | JudgingError::Overlong { .. }
            | JudgingError::NoCall { .. }
            | JudgingError::Busy(_)
            | JudgingError::TakenOver(_)
            | JudgingError::AskedElsewhere { .. }
            | JudgingError::OtherRows(_) => live(message, &error),
            JudgingError::NotRegistered { .. } => Self::not_found(message, RUN),
            JudgingError::OtherJudge {
                registered, seq, ..
            } => other(message, registered.judge.as_str(), seq),
            JudgingError::Records { .. } => Self::integrity("tampered", message, "clover verify"),
            JudgingError::Row { .. } => Self::refused(message, HELP),
            JudgingError::SameJudge => Self::usage(
                format!("--changed: {message}"),
                "the same command without --changed",
            ),
            JudgingError::SeveralAnchors(_) => {
                Self::usage(message, "the same command with --anchors ID")
            }
            JudgingError::SeveralPlans(_) => {
                Self::refused(message, "clover log --kind manifest.registered")
            }
            JudgingError::Stopped {
                place,
                error,
                scored,
            } => stopped(&format!("{place}{error}"), scored, &error),
            JudgingError::Unanswered { error, .. } => silent(message, &error, false),
        }
    }
}

/// Judges that cannot be compared.
fn compared(message: String, second: &JudgeId, error: AgreementError) -> CliError {
    match error {
        AgreementError::Rows(error) => EstimateError::Rows(error).into(),
        AgreementError::NoScores(judge) => CliError::not_found(
            message,
            format!("clover judge run --judge {}", shell::word(&judge)),
        ),
        AgreementError::NoPairs => CliError::refused(
            message,
            format!("clover judge run --judge {}", shell::word(second)),
        ),
        AgreementError::Unfit(_) => CliError::refused(message, "clover import labels FILE"),
    }
}

/// Anchors that cannot be compared.
fn drift(message: String, judge: &JudgeId, error: &DriftError) -> CliError {
    match error {
        DriftError::Ledger(_) => CliError::integrity("damaged", message, "clover verify"),
        DriftError::NoSet(_) => {
            CliError::not_found(message, "clover log --kind anchor_set.registered")
        }
        DriftError::OtherRows { .. } => CliError::refused(
            message,
            format!(
                "clover judge run --judge {judge} --rows PATH",
                judge = shell::word(&judge)
            ),
        ),
        DriftError::Scores { .. } | DriftError::Unfit(_) | DriftError::Sample(_) => {
            CliError::input(message, DRIFT_HELP)
        }
    }
}

/// A judge under the name of another one.
fn other(message: String, registered: &str, seq: u64) -> CliError {
    let name = another(registered);
    let name = shell::word(&name);
    CliError::refused(
        message,
        format!("the same command with --judge {name}, or clover show {seq}"),
    )
}

/// The name of another judge beside this one: `llm-2` beside `llm`, `llm-3` beside that.
fn another(name: &str) -> String {
    let numbered = name.rsplit_once('-');
    let numbered = numbered.and_then(|(stem, number)| Some((stem, number.parse::<u64>().ok()?)));
    match numbered.and_then(|(stem, number)| Some((stem, number.checked_add(1)?))) {
        Some((stem, next)) => format!("{stem}-{next}"),
        None => format!("{name}-2"),
    }
}

/// What stopped a run, and how to go on.
fn stopped(message: &str, scored: usize, error: &JudgeError) -> CliError {
    let recorded = ui::thousands(scored as u64);
    silent(
        format!("{message}; {recorded} rows were recorded before"),
        error,
        scored > 0,
    )
}

/// A judge that gave no score, in words; `has_scores` where it gave others in this run, so that its program and its scale are on
/// record.
fn silent(message: String, error: &JudgeError, has_scores: bool) -> CliError {
    let next = "the same command goes on where it stopped; once it has scores, a program that is mended is another judge, under another --judge NAME";
    let is_number = |found: &str| found.contains("\"score\":");
    match error {
        JudgeError::Late(_) | JudgeError::Ended(_) => {
            CliError::new(Exit::TryLater, "try later", message, next)
        }
        _ if has_scores => CliError::input(
            message,
            "the same command goes on where it stopped; a mended program, or another --scale, is another judge, under another --judge NAME",
        ),
        JudgeError::Answer(found) if is_number(found) => CliError::input(
            message,
            "the same command with --scale LOW:HIGH, where it answers on another scale than 0:1",
        ),
        JudgeError::OffScale { .. } => CliError::input(
            message,
            "the same command with another --scale LOW:HIGH, where it answers on that; or once the program is mended",
        ),
        JudgeError::Answer(_)
        | JudgeError::Declined(_)
        | JudgeError::Evidence { .. }
        | JudgeError::Missing => CliError::input(message, next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_judge_has_the_next_number() {
        for (name, next) in [("llm", "llm-2"), ("llm-2", "llm-3"), ("a-b", "a-b-2")] {
            assert_eq!(another(name), next);
        }
    }
}
