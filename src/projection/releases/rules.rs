//! The rule `approval`: who may review a proposed patch, and speak for or against an accepted one.

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::PatchId;
use clover_event::payload::custody::Separation;
use clover_event::payload::record::ReviewRecorded;
use clover_event::payload::release::Meaning;
use clover_ground::sign::KeyId;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::keyring::KeyRecord;
use clover_ledger::unmet;

use crate::iterations::Iterations;
use crate::releases::Acceptance;
use crate::releases::Releases;

/// The rule `approval`.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalRule;

impl Rule for ApprovalRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let checked = match &event.event.payload {
            Payload::ReviewRecorded(said) => check_review(state, event, said),
            Payload::ApprovalGranted(said) => check_word(state, event, said.meaning, said.subject),
            Payload::ApprovalRefused(said) => check_word(state, event, said.meaning, said.subject),
            _ => return,
        };
        breaches.take(RuleName::Approval, checked);
    }
}

/// The acceptance is known, and the word is a person's who did not write the patch.
fn check_word(
    state: &State,
    event: &ProposedEvent<'_>,
    meaning: Meaning,
    subject: EventId,
) -> RuleAnswer {
    let header = &event.event.header;
    // Without an experiment the rule `experiment` refuses it.
    let Some(experiment) = &header.experiment else {
        return Ok(());
    };
    let releases = state.fold::<Releases>();
    let Some(accepted) = releases.acceptance(experiment, subject) else {
        let expected = format!("a patch.accepted of {experiment}");
        return unmet(expected, subject.to_string());
    };
    ensure!(
        meaning != Meaning::Author,
        "another meaning: the author of a patch does not approve it",
        "author"
    );
    check_person(state, header.author)?;
    let patch = state.fold::<Iterations>().patch(&accepted.patch);
    let (_, patch) = patch.required("the proposal of the accepted patch")?;
    check_another(state, &accepted.patch, patch.author, header.author)?;
    check_one_key(state, accepted, header.author)
}

/// A review of a patch is a person's who did not write it, of entries with its proposal among them.
fn check_review(state: &State, event: &ProposedEvent<'_>, said: &ReviewRecorded) -> RuleAnswer {
    let Some(id) = &said.patch else {
        // A review of entries alone.
        return Ok(());
    };
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let experiment = experiment.required(&format!("the experiment of {id}"))?;
    let Some(patch) = state.fold::<Iterations>().patch_in(experiment, id) else {
        let expected = format!("a patch that was proposed in {experiment}");
        return unmet(expected, id.as_str());
    };
    let (from, through) = (said.from_seq.value(), said.through_seq.value());
    ensure!(
        (from..=through).contains(&patch.seq) && through < event.seq,
        format!("entries with seq {} among them, below this one", patch.seq),
        format!("seq {from} to {through}")
    );
    check_person(state, header.author)?;
    check_another(state, id, patch.author, header.author)
}

/// The record of a key that speaks. An unknown key is refused by the rule `key`.
fn known(state: &State, key: KeyId) -> Option<&KeyRecord> {
    state.keyring.keys.get(&key)
}

/// Whether a holder may speak with one key alone.
fn is_strict(state: &State) -> bool {
    state.keyring.separation() == Some(Separation::Strict)
}

/// The key is a person's.
fn check_person(state: &State, speaks: KeyId) -> RuleAnswer {
    let is_machine = known(state, speaks).is_some_and(|key| !key.human);
    ensure!(!is_machine, "a key that a person holds", "a machine's");
    Ok(())
}

/// Whoever speaks about a patch did not write it; under `strict`, nor did another key of the same holder.
fn check_another(state: &State, patch: &PatchId, wrote: KeyId, speaks: KeyId) -> RuleAnswer {
    ensure!(
        wrote != speaks,
        format!("another key than the author's of {patch}"),
        speaks.to_string()
    );
    let Some(speaker) = known(state, speaks) else {
        return Ok(());
    };
    if !is_strict(state) {
        return Ok(());
    }
    let author = known(state, wrote).required("the key of the patch's author")?;
    ensure!(
        author.holder != speaker.holder,
        format!("another holder than the author of {patch}, under strict"),
        speaker.holder.to_string()
    );
    Ok(())
}

/// Under `strict` a holder speaks with one key.
fn check_one_key(state: &State, accepted: &Acceptance, speaks: KeyId) -> RuleAnswer {
    let Some(speaker) = known(state, speaks) else {
        return Ok(());
    };
    if !is_strict(state) {
        return Ok(());
    }
    for (key, word) in &accepted.words {
        let holder = known(state, *key).map(|record| &record.holder);
        ensure!(
            *key == speaks || holder != Some(&speaker.holder),
            "one key of each holder, under strict",
            format!("another of {}, at seq {}", speaker.holder, word.seq)
        );
    }
    Ok(())
}
