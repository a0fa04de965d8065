//! A person's word for or against an accepted patch, and what the patch lacks before it is committed.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::releases::APPROVALS_MIN;
use crate::projection::releases::Acceptance;
use crate::projection::releases::Releases;
use crate::view::View;
use crate::view::appended;
use crate::workflow::prompts;

/// Who gives the approval that is lacking.
pub const SECOND: &str = "Another person approves it: the patch's author does not count, nor does a key twice. The owner makes a key of \
    that role: clover key new NAME --role approver.";

/// The command by which another person approves a patch.
pub fn approve(patch: &str) -> String {
    format!("clover approve {patch} --comment TEXT --name NAME --key APPROVER")
}

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
    let is_enough = more.two_key.is_empty() || of.approvals().len() >= APPROVALS_MIN;
    let patch = &of.patch;
    view.line(format!(
        "{patch} has {}; {needed}",
        match more.approvals {
            1 => "1 approval".to_owned(),
            many => format!("{many} approvals"),
        }
    ));
    let patch = shell::word(patch);
    let releases = state.fold::<Releases>();
    if let Some(commit) = releases.committed(experiment, of.id) {
        view.sentence(format!(
            "This word comes after the commit at seq {}: reports say so, and it is no part of what led there.",
            commit.seq
        ));
        return view;
    }
    if is_enough && of.refused().is_none() {
        return view.with_next(format!("clover prompt commit {patch}"));
    }
    if is_enough {
        view.sentence("A refusal stands, so nothing is committed. Whoever refused may grant it later: the newest word of a key counts.");
        return view.with_next(format!("clover approve {patch} --help"));
    }
    view.sentence(SECOND);
    view.with_next(approve(&patch))
}
