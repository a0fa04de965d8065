//! Refusals of `clover compare`, in the words of whoever compares.

use crate::cli::error::CliError;

/// The field by which a comparison names an earlier look.
const SINCE: &str = "exploratory_since";

/// A comparison that a look stands against which came in meanwhile; and one of rows that are on record by another correction: what
/// was recorded first stands.
pub(super) fn compared_before(error: CliError) -> CliError {
    // Computed before another one was on record, and judged after it.
    if error.data["rule"] == "transport" && error.message.contains(SINCE) {
        let message = "another look at this order came in while it was computed, so that it is exploratory now: nothing was recorded";
        let mut said =
            CliError::refused(message, "the same command, which says what it is worth now");
        said.data = error.data;
        return said;
    }
    if error.data["rule"] != "natural_key" {
        return error;
    }
    let message = format!(
        "these policies are compared on record at seq {}, on the same rows and by another correction: what was recorded first stands, and another choice is exploratory",
        error.data["in_the_way"]
    );
    let mut said = CliError::refused(message, "the same command with --dry-run");
    said.data = error.data;
    said
}
