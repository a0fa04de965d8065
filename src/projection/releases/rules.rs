//! The rule `approval`: who may speak for or against an accepted patch.

use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::payload::custody::Separation;
use crate::event::payload::release::Meaning;
use crate::ground::sign::KeyId;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::iterations::Iterations;
use crate::projection::releases::Acceptance;
use crate::projection::releases::Releases;

/// The rule `approval`.
#[derive(Clone, Copy, Debug)]
pub struct Approving;

impl Rule for Approving {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let header = &event.event.header;
        let (meaning, subject) = match &event.event.payload {
            Payload::ApprovalGranted(said) => (said.meaning, said.subject),
            Payload::ApprovalRefused(said) => (said.meaning, said.subject),
            _ => return,
        };
        let found = header
            .experiment
            .as_ref()
            .and_then(|of| approval(state, of, header.author, (meaning, subject)));
        breaches.extend(found.map(|(expected, found)| Breach::new("approval", expected, found)));
    }
}

/// The acceptance is known, and the word is a person's who did not write the patch.
fn approval(
    state: &State,
    experiment: &ExperimentId,
    author: KeyId,
    (meaning, subject): (Meaning, EventId),
) -> Judged {
    let releases = state.fold::<Releases>();
    let Some(accepted) = releases.acceptance(experiment, subject) else {
        let expected = format!("a patch.accepted of {experiment}");
        return no(expected, subject.to_string());
    };
    if meaning == Meaning::Author {
        let expected = "another meaning: the author of a patch does not approve it";
        return no(expected, "author");
    }
    let key = state.keyring.keys.get(&author);
    // An unknown key is another rule's.
    if key.is_some_and(|key| !key.human) {
        return no("a key that a person holds", "a machine's");
    }
    let iterations = state.fold::<Iterations>();
    let (_, patch) = iterations.patch(&accepted.patch)?;
    if patch.author == author {
        let expected = format!("another key than the author's of {}", accepted.patch);
        return no(expected, author.to_string());
    }
    apart(state, accepted, patch.author, author)
}

/// Under `strict` author and approvers are different people.
fn apart(state: &State, accepted: &Acceptance, wrote: KeyId, speaks: KeyId) -> Judged {
    let holder = |key: KeyId| state.keyring.keys.get(&key).map(|record| &record.holder);
    let speaker = holder(speaks)?;
    if state.keyring.separation() != Some(Separation::Strict) {
        return None;
    }
    if holder(wrote) == Some(speaker) {
        let expected = format!(
            "another holder than the author of {}, under strict",
            accepted.patch
        );
        return no(expected, speaker.to_string());
    }
    let same = |(key, _): &(&KeyId, _)| **key != speaks && holder(**key) == Some(speaker);
    let (_, word) = accepted.words.iter().find(same)?;
    no(
        "one key of each holder, under strict",
        format!("another of {speaker}, at seq {}", word.seq),
    )
}
