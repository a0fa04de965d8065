//! The rule `approval`: who may review a proposed patch, and speak for or against an accepted one.

use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::PatchId;
use crate::event::payload::custody::Separation;
use crate::event::payload::record::ReviewRecorded;
use crate::event::payload::release::Meaning;
use crate::ground::sign::KeyId;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
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
            Payload::ReviewRecorded(said) => {
                let found = review(state, event, said);
                breaches
                    .extend(found.map(|(wanted, is)| Breach::new(RuleName::Approval, wanted, is)));
                return;
            }
            Payload::ApprovalGranted(said) => (said.meaning, said.subject),
            Payload::ApprovalRefused(said) => (said.meaning, said.subject),
            _ => return,
        };
        let found = header
            .experiment
            .as_ref()
            .and_then(|of| approval(state, of, header.author, (meaning, subject)));
        breaches.extend(
            found.map(|(expected, found)| Breach::new(RuleName::Approval, expected, found)),
        );
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
    let machine = a_person(state, author);
    if machine.is_some() {
        return machine;
    }
    let iterations = state.fold::<Iterations>();
    let (_, patch) = iterations.patch(&accepted.patch)?;
    another(state, &accepted.patch, patch.author, author)
        .or_else(|| one_key(state, accepted, author))
}

/// A review of a patch is a person's who did not write it, of entries with its proposal among them.
fn review(state: &State, event: &Candidate<'_>, said: &ReviewRecorded) -> Judged {
    let id = said.patch.as_ref()?;
    let header = &event.event.header;
    let Some(experiment) = &header.experiment else {
        return no(format!("the experiment of {id}"), "none");
    };
    let Some(patch) = state.fold::<Iterations>().patch_in(experiment, id) else {
        let expected = format!("a patch that was proposed in {experiment}");
        return no(expected, id.as_str());
    };
    let (from, through) = (said.from_seq.value(), said.through_seq.value());
    if !(from..=through).contains(&patch.seq) || through >= event.seq {
        let expected = format!("entries with seq {} among them, below this one", patch.seq);
        return no(expected, format!("seq {from} to {through}"));
    }
    a_person(state, header.author).or_else(|| another(state, id, patch.author, header.author))
}

/// The key is a person's. An unknown one is another rule's.
fn a_person(state: &State, speaks: KeyId) -> Judged {
    let key = state.keyring.keys.get(&speaks)?;
    (!key.human).then(|| {
        (
            "a key that a person holds".to_owned(),
            "a machine's".to_owned(),
        )
    })
}

/// Whoever speaks about a patch did not write it; under `strict`, nor did another key of the same holder.
fn another(state: &State, patch: &PatchId, wrote: KeyId, speaks: KeyId) -> Judged {
    if wrote == speaks {
        let expected = format!("another key than the author's of {patch}");
        return no(expected, speaks.to_string());
    }
    let holder = |key: KeyId| state.keyring.keys.get(&key).map(|record| &record.holder);
    let speaker = holder(speaks)?;
    let strict = state.keyring.separation() == Some(Separation::Strict);
    (strict && holder(wrote) == Some(speaker)).then(|| {
        let expected = format!("another holder than the author of {patch}, under strict");
        (expected, speaker.to_string())
    })
}

/// Under `strict` a holder speaks with one key.
fn one_key(state: &State, accepted: &Acceptance, speaks: KeyId) -> Judged {
    let holder = |key: KeyId| state.keyring.keys.get(&key).map(|record| &record.holder);
    let speaker = holder(speaks)?;
    if state.keyring.separation() != Some(Separation::Strict) {
        return None;
    }
    let same = |(key, _): &(&KeyId, _)| **key != speaks && holder(**key) == Some(speaker);
    let (_, word) = accepted.words.iter().find(same)?;
    no(
        "one key of each holder, under strict",
        format!("another of {speaker}, at seq {}", word.seq),
    )
}
