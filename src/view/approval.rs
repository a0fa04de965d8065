//! A person's word for or against an accepted patch, and what the patch lacks before it is committed.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::releases::Acceptance;
use crate::view::View;
use crate::view::appended;
use crate::workflow::prompts;

/// How an accepted patch stands after a person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApprovalsGiven {
    /// Approvals that stand.
    pub approvals: u64,
    /// Why two of them are needed; empty where none is.
    pub two_key: Vec<String>,
}

/// Adds to the view of a person's word how the patch stands.
pub fn given(view: View, state: &State, experiment: &ExperimentId, of: &Acceptance) -> View {
    let more = ApprovalsGiven {
        approvals: of.approvals().len() as u64,
        two_key: prompts::two_key(state, experiment, of),
    };
    let mut view = appended::and(view, &more);
    let needed = match more.two_key.as_slice() {
        [] => "none is needed".to_owned(),
        why => format!("two are needed, because of {}", why.join(", ")),
    };
    let patch = &of.patch;
    view.line(format!(
        "{patch} has {} approvals; {needed}",
        more.approvals
    ));
    view.with_next(format!("clover prompt commit {}", shell::word(patch)))
}
