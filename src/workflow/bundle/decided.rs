//! What was decided: the outcome, every candidate's fate, what patches change and how long they are.

use crate::event::Payload;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::manifest::Profile;
use crate::event::payload::report::ReportPart;
use crate::event::payload::rubric::AuthorKind;
use crate::event::payload::rubric::ChangeOp;
use crate::event::payload::rubric::LeafChange;
use crate::event::payload::rubric::LeafValue;
use crate::event::payload::rubric::PatchProposed;
use crate::event::payload::rubric::RejectStage;
use crate::ground::digest::Digest;
use crate::num::Finite;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Listing;
use crate::projection::bundle::Names;
use crate::projection::bundle::Part;
use crate::projection::bundle::Table;
use crate::workflow::bundle::Story;

/// The words for an outcome.
pub(super) fn outcome(outcome: IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Accepted => "accepted",
        IterationOutcome::NoCandidate => "no candidate",
        IterationOutcome::NoneAccepted => "none accepted",
        IterationOutcome::PausedForLabels => "paused for labels",
        IterationOutcome::SdpChanged => "labelling protocol changed",
        IterationOutcome::Stopped => "stopped",
        IterationOutcome::Tainted => "tainted",
        IterationOutcome::TransportFailed => "transport failed",
    }
}

fn proposed(story: &Story) -> Vec<(u64, &PatchProposed)> {
    let proposed = story.all(|payload| match payload {
        Payload::PatchProposed(said) => Some(said),
        _ => None,
    });
    proposed.collect()
}

/// What became of one patch: words, risk improvement, entries that say so.
fn fate(story: &Story, patch: &PatchProposed) -> (String, Option<Finite>, Vec<u64>) {
    let mut found = ("proposed".to_owned(), None, Vec::new());
    for said in &story.said {
        match &said.event.payload {
            Payload::CandidatesSealed(sealed)
                if sealed
                    .hypotheses
                    .iter()
                    .any(|one| one.candidate == patch.patch_hash) =>
            {
                found = ("sealed for confirm".to_owned(), None, vec![said.seq]);
            }
            Payload::PatchAccepted(accepted) if accepted.patch == patch.patch => {
                let words = format!("accepted, rank {}", accepted.rank);
                found = (words, Some(accepted.risk_improve), vec![said.seq]);
            }
            Payload::PatchRejected(rejected) if rejected.patch.as_ref() == Some(&patch.patch) => {
                let stage = match rejected.stage {
                    RejectStage::Confirm => "on confirm",
                    RejectStage::Dev => "on dev",
                    RejectStage::Schema => "by the grammar",
                    RejectStage::Selection => "in selection",
                };
                let words = format!("rejected {stage}: {}", rejected.code.as_str());
                found = (words, None, vec![said.seq]);
            }
            Payload::PatchWithdrawn(withdrawn) if withdrawn.patch == patch.patch => {
                found = ("withdrawn".to_owned(), None, vec![said.seq]);
            }
            _ => {}
        }
    }
    found
}

/// The outcome and the candidates.
pub(super) fn decision(story: &Story, names: &Names) -> Part {
    let mut part = Part::new(
        ReportPart::Decision,
        "How the iteration ended, and what became of every patch that was proposed in it.",
    );
    let closed = story.first(|payload| match payload {
        Payload::IterationClosed(said) => Some(said),
        _ => None,
    });
    match closed {
        Some((seq, closed)) => {
            part.fact(
                seq,
                "outcome",
                "Outcome",
                Cell::text(outcome(closed.outcome)),
            );
            part.fact(seq, "reason", "Reason", Cell::text(closed.reason.as_str()));
        }
        None => part.lacks("the outcome", "the iteration is still open"),
    }
    if let Some((seq, opened)) = story.opened() {
        part.fact(
            seq,
            "rubric_hash",
            "Rubric that it starts from",
            opened.rubric_hash,
        );
        part.fact(seq, "manifest", "Manifest that binds it", opened.digest);
        let profile = match opened.params.profile {
            Profile::Literal => "literal",
            Profile::Recommended => "recommended",
        };
        part.fact(seq, "profile", "Profile that binds", Cell::text(profile));
        part.fact(
            seq,
            "quarter",
            "Quarter",
            Cell::text(opened.quarter.as_str()),
        );
    }
    let unsealed = story.first(|payload| match payload {
        Payload::ConfirmUnsealed(said) => Some(said),
        _ => None,
    });
    if let Some((seq, _)) = unsealed {
        part.fact(
            seq,
            "confirm",
            "Confirm labels",
            Cell::text("unsealed once, for one peek"),
        );
    }
    let mut table = Table::new(
        "candidates",
        "Patches",
        &[
            ("patch", "patch"),
            ("family", "family"),
            ("author", "author"),
            ("kappa", "code length"),
            ("state", "what became of it"),
            ("risk_improve", "risk improvement"),
            ("result_hash", "rubric that results"),
        ],
    );
    for (seq, patch) in proposed(story) {
        let (state, improve, mut events) = fate(story, patch);
        events.push(seq);
        let author = match patch.author_kind {
            AuthorKind::Human => "a person",
            AuthorKind::Llm => "a model or search",
        };
        table.row_of(
            events,
            vec![
                Cell::text(names.of(patch.patch_hash)),
                Cell::text(patch.family.as_str()),
                Cell::text(author),
                patch.length.kappa.into(),
                Cell::text(state),
                Cell::maybe(improve, Cell::Number),
                patch.result_hash.into(),
            ],
        );
    }
    if table.rows.is_empty() {
        part.lacks("patches", "none was proposed");
    }
    part.table(table);
    part
}

/// Code lengths. Tokens of the rubric and rules that never fire need its rows.
pub(super) fn complexity(story: &Story) -> Part {
    let mut part = Part::new(
        ReportPart::Complexity,
        "How much longer the rubric gets: tokens that come and go, new guards and fields, and rules that fire on \
         fewer than one row in a thousand.",
    );
    let mut table = Table::new(
        "lengths",
        "Code length of each patch",
        &[
            ("patch", "patch"),
            ("kappa", "code length"),
            ("tokens_added", "tokens added"),
            ("tokens_removed", "removed"),
            ("new_fields", "new fields"),
            ("new_guards", "new guards"),
            ("abstention_edits", "abstention edits"),
        ],
    );
    for (seq, patch) in proposed(story) {
        let length = &patch.length;
        table.row(
            seq,
            vec![
                Cell::text(patch.patch.as_str()),
                length.kappa.into(),
                length.tokens_added.into(),
                length.tokens_removed.into(),
                length.new_fields.into(),
                length.new_guards.into(),
                length.abstention_edits.into(),
            ],
        );
    }
    part.table(table);
    part.lacks(
        "tokens of the rubric, and rules that never fire",
        "nothing was read from its rows",
    );
    part
}

/// A leaf's value as one line.
pub(super) fn leaf(value: &LeafValue) -> String {
    match value {
        LeafValue::Count(count) => count.to_string(),
        LeafValue::Flag(flag) => flag.to_string(),
        LeafValue::List(items) => format!("[{}]", items.join(", ")),
        LeafValue::ShareMicro(share) => (share.value() as f64 / 1e6).to_string(),
        LeafValue::Text(text) => format!("{text:?}"),
    }
}

fn change(change: &LeafChange) -> (&'static str, String) {
    let op = match change.op {
        ChangeOp::Append => "append",
        ChangeOp::Set => "set",
    };
    (op, leaf(&change.value))
}

/// What every patch changes, and its document as it was written.
pub(super) fn diffs(story: &Story) -> Part {
    let mut part = Part::new(
        ReportPart::Diffs,
        "What each patch changes in the rubric, leaf by leaf, and the document as its author wrote it.",
    );
    let mut table = Table::new(
        "changes",
        "Leaves that change",
        &[
            ("patch", "patch"),
            ("path", "leaf"),
            ("op", "how"),
            ("before", "before"),
            ("after", "after"),
        ],
    );
    let before = leaves(story);
    for (seq, patch) in proposed(story) {
        for one in &patch.diff {
            let (op, after) = change(one);
            let old = before.as_ref().and_then(|(at, leaves)| {
                let found = leaves.iter().find(|leaf| leaf.path == one.path)?;
                Some((*at, leaf(&found.value)))
            });
            let mut events = vec![seq];
            events.extend(old.as_ref().map(|(at, _)| *at));
            table.row_of(
                events,
                vec![
                    Cell::text(patch.patch.as_str()),
                    Cell::text(one.path.as_str()),
                    Cell::text(op),
                    Cell::maybe(old, |(_, value)| Cell::Text(value)),
                    Cell::text(after),
                ],
            );
        }
        part.listings.push(Listing {
            events: vec![seq],
            title: format!("{} as it was written", patch.patch),
            text: patch.yaml.as_str().to_owned(),
        });
    }
    if table.rows.is_empty() {
        part.lacks("changes", "no patch was proposed");
    }
    part.table(table);
    part
}

/// Leaves of the rubric that the iteration starts from, where it was registered as such.
fn leaves(story: &Story) -> Option<(u64, &Vec<crate::event::payload::rubric::RubricLeaf>)> {
    let hash: Digest = story.opened()?.1.rubric_hash;
    story.first(|payload| match payload {
        Payload::RubricRegistered(said) if said.rubric_hash == hash => Some(&said.leaves),
        _ => None,
    })
}
