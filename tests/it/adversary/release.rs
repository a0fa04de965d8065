//! A small world about a release: a patch was accepted, and nobody has approved it yet. Watched is whether it can be
//! committed, and what runs.

use std::sync::Arc;

use clover::event::Payload;
use clover::event::id::EventId;
use clover::event::payload::Role;
use clover::projection::deployments::Deployments;
use serde_json::json;

use super::search::Allowed;
use super::search::Letter;
use super::search::Observed;
use super::search::Run;
use super::search::Told;
use super::search::World;
use crate::support::iterated;
use crate::support::planned;
use crate::support::planned::payload;
use crate::support::released;
use crate::support::samples::*;
use crate::support::signer;

/// Ids and positions that a commit names.
struct Parts {
    subject: String,
    index: u64,
    parent: String,
    gates: Vec<String>,
    /// A commit without approvals.
    commit: Option<Payload>,
}

fn told() -> (Told, Parts) {
    let mut teller = Teller::begin();
    let gates = released::accepted(&mut teller);
    teller.blob(released::told(), "text/plain");
    let mut parts = Parts {
        subject: teller.id("accepted").0.to_hex(),
        index: teller.at("accepted"),
        parent: teller.id("rubric").0.to_hex(),
        gates,
        commit: None,
    };
    parts.commit = Some(released::committed(
        &released::patch(),
        (&parts.subject, parts.index),
        (&parts.parent, "1.1"),
        &parts.gates,
        &[],
    ));
    let story = teller.finish();
    let told = Told {
        lines: story.lines,
        blobs: story.blobs,
    };
    (told, parts)
}

/// The newest grants of each key, as a commit lists them.
fn grants(run: &Run, most: usize) -> Vec<EventId> {
    let all = run.trail.iter();
    let grants = all.filter(|(_, event)| matches!(event.payload, Payload::ApprovalGranted(_)));
    let ids: Vec<EventId> = grants.map(|(_, event)| event.id).collect();
    ids[ids.len().saturating_sub(most)..].to_vec()
}

fn commit(run: &Run, parts: &Parts, most: usize) -> Payload {
    let mut commit = parts.commit.clone().unwrap();
    if let Payload::PromptCommitted(said) = &mut commit {
        said.approvals = grants(run, most);
    }
    commit
}

fn letter(
    role: &'static str,
    who: u8,
    name: &str,
    experiment: Option<&'static str>,
    payload: Payload,
) -> Letter {
    Letter {
        role,
        who,
        name: name.to_owned(),
        experiment,
        is_stale: false,
        make: Box::new(move |_| Some(payload.clone())),
    }
}

fn letters(parts: &Arc<Parts>) -> Vec<Letter> {
    let within = Some(EXPERIMENT);
    let subject = &parts.subject;
    let mut all = Vec::new();
    for (role, who, own, other) in [
        ("approver Petra", PETRA, "Petra Weiss", "Paul Okafor"),
        ("approver Paul", PAUL, "Paul Okafor", "Petra Weiss"),
    ] {
        all.push(letter(
            role,
            who,
            "grant",
            within,
            released::granted(own, subject),
        ));
        let false_name = released::granted(other, subject);
        all.push(letter(
            role,
            who,
            "grant by another name",
            within,
            false_name,
        ));
        all.push(letter(
            role,
            who,
            "refuse",
            within,
            released::refused(own, subject),
        ));
    }
    let sly = released::granted("Sly", subject);
    all.push(letter("owner", STELLA, "grant by a new key", within, sly));
    for (name, holder) in [("add a key to Petra", "Petra"), ("add a key to Sly", "Sly")] {
        let added = key_added(&signer(STELLA), holder, true, &[Role::Approver]);
        all.push(letter("owner", ADA, name, None, added.into()));
    }
    let retired = json!({"key_id": signer(PAUL).id().to_string(), "reason": "he left"});
    all.push(letter(
        "owner",
        ADA,
        "retire Paul",
        None,
        payload("key.retired", &retired),
    ));
    let lost = json!({"key_id": signer(BEN).id().to_string(), "reason": "lost", "since_seq": 1});
    all.push(letter(
        "owner",
        ADA,
        "compromise the arbiter",
        None,
        payload("key.compromised", &lost),
    ));
    let closed = payload(
        "experiment.closed",
        &json!({"outcome": "aborted", "reason": "enough"}),
    );
    all.push(letter("owner", ADA, "close experiment", within, closed));
    let of = parts.clone();
    all.push(Letter {
        role: "releaser",
        who: RUNNER_2,
        name: "commit".to_owned(),
        experiment: within,
        is_stale: false,
        make: Box::new(move |run| Some(commit(run, &of, 2))),
    });
    let next = iterated::opened(&released::plan(), "it-9", "2026Q3");
    all.push(letter("arbiter", BEN, "open next", within, next));
    all.push(letter(
        "arbiter",
        BEN,
        "close again",
        within,
        iterated::closed("it-3", "stopped"),
    ));
    all.push(letter(
        "auditor",
        AUDE,
        "review",
        within,
        released::reviewed("disputed", 20),
    ));
    all.push(letter(
        "custodian",
        CLEO,
        "charge",
        None,
        crate::support::decided::charge(),
    ));
    let note = payload("note.recorded", &json!({"text": "as it was"}));
    let deviated = planned::deviated(&released::plan());
    for (role, who) in [
        ("approver Petra", PETRA),
        ("approver Paul", PAUL),
        ("owner", ADA),
        ("releaser", RUNNER_2),
        ("arbiter", BEN),
        ("auditor", AUDE),
        ("optimizer", RUNNER),
        ("custodian", CLEO),
    ] {
        all.push(letter(role, who, "note", None, note.clone()));
        all.push(letter(role, who, "deviate", within, deviated.clone()));
        let granted = released::granted("Somebody", subject);
        if !role.starts_with("approver") {
            all.push(letter(role, who, "grant out of role", within, granted));
        }
    }
    all
}

/// Whether the patch can be committed by what was granted so far, and what runs.
fn observe(run: &mut Run, parts: &Parts) -> Observed {
    let length = run.trail.len();
    let mut commits = false;
    let said = run.trail.iter();
    let mut said = said.filter(|(_, event)| matches!(event.payload, Payload::PromptCommitted(_)));
    if said.next().is_some() {
        commits = true;
    }
    for most in [2, 1] {
        let commit = commit(run, parts, most);
        commits |= run.say(RUNNER_2, Some(EXPERIMENT), commit).is_ok();
        run.back_to(length);
    }
    let running = run.trial.state().fold::<Deployments>();
    Observed::from([
        ("commits", commits.to_string()),
        ("runs", format!("{}", running.by_experiment.len())),
    ])
}

/// Right before it is approved.
pub fn before() -> World {
    let (told, parts) = told();
    let parts = Arc::new(parts);
    World {
        name: "release, before its approvals",
        rulebook: 17,
        most: [3, 12_000],
        told,
        letters: letters(&parts),
        observe: Box::new(move |run| observe(run, &parts)),
        trace: |_| Vec::new(),
        allowed: vec![Allowed {
            field: "commits",
            letters: &["grant"],
            keys: 2,
            why: "two keys of two names approved; whether two names are two people is not held, see THREATS.md",
        }],
    }
}
