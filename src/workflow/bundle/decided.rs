//! What was decided: the outcome, every candidate's fate, what patches change and how long they are.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::payload::Verdict;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::manifest::Profile;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::report::ReportPart;
use clover_event::payload::rubric::AuthorKind;
use clover_event::payload::rubric::ChangeOp;
use clover_event::payload::rubric::LeafChange;
use clover_event::payload::rubric::LeafValue;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::RejectStage;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Finite;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Listing;
use clover_projection::bundle::Names;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;
use clover_rubric::Rubric;
use clover_rubric::kappa;

use crate::bundle::before;
use crate::patches;
use crate::prompts;

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
    let proposed = story.all(Payload::said::<PatchProposed>);
    proposed.collect()
}

/// Every criterion that a candidate failed where it was rejected, from rulebook 24 on; `None` unless there are several.
fn failed(story: &Story, state: &State, (of, stage): (Digest, RejectStage)) -> Option<String> {
    let split = match stage {
        RejectStage::Dev => CriterionSplit::Dev,
        RejectStage::Confirm => CriterionSplit::Confirm,
        RejectStage::Schema | RejectStage::Selection => return None,
    };
    let is_failed = |gate: &GateEvaluated| {
        let verdict = gate.verdicts.under(gate.thresholds.profile);
        gate.candidate == of && gate.split == split && verdict == Verdict::Fail
    };
    let gates = story.gates().filter(|(_, gate)| is_failed(gate));
    let mut names: Vec<&'static str> = Vec::new();
    for (_, gate) in gates {
        let name = gate.gate.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (last, before) = names.split_last()?;
    let is_shown = !before.is_empty() && state.asks(Question::ReportedWorth);
    is_shown.then(|| format!("{} and {last} failed", before.join(", ")))
}

/// What became of one patch: words, risk improvement, entries that say so.
fn fate(story: &Story, state: &State, patch: &PatchProposed) -> (String, Option<Finite>, Vec<u64>) {
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
                let failed = failed(story, state, (patch.patch_hash, rejected.stage));
                let code = rejected.code.as_str();
                let words = format!("rejected {stage}: {}", failed.as_deref().unwrap_or(code));
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
pub(super) fn decision(story: &Story, state: &State, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Decision,
        "How the iteration ended, and what became of every patch that was proposed in it.",
    );
    ended(story, &mut part);
    began(story, &mut part);
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
    let table = fates(story, state, names);
    if table.rows.is_empty() {
        part.lacks("patches", "none was proposed");
    }
    part.table(table);
    part
}

/// How it ended, if it did.
fn ended(story: &Story, part: &mut Section) {
    let closed = story.first(|payload| match payload {
        Payload::IterationClosed(said) => Some(said),
        _ => None,
    });
    let Some((seq, closed)) = closed else {
        part.lacks("the outcome", "the iteration is still open");
        return;
    };
    part.fact(
        seq,
        "outcome",
        "Outcome",
        Cell::text(outcome(closed.outcome)),
    );
    part.fact(seq, "reason", "Reason", Cell::text(closed.reason.as_str()));
}

/// What it started from, and what binds it.
fn began(story: &Story, part: &mut Section) {
    let Some((seq, opened)) = story.opened() else {
        return;
    };
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

/// Every patch with its fate.
fn fates(story: &Story, at: &State, names: &Names) -> Table {
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
        let (state, improve, mut events) = fate(story, at, patch);
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
    table
}

/// Code lengths, and the size of the rubric before and after. Which rules never fire needs its rows.
pub(super) fn complexity(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
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
    if story.has_rows() {
        sizes(story, state, &mut part);
    }
    before::without_rows(
        &mut part,
        story,
        "tokens of the rubric, and rules that never fire",
    );
    part
}

/// Tokens, leaves and rules of the rubric in force and of what each patch makes of it.
fn sizes(story: &Story, state: &State, part: &mut Section) {
    let registered = story.rubric(state);
    let rubric = registered.and_then(|of| Some((of.seq, patches::rubric_of(of)?)));
    let Some((at, rubric)) = rubric else {
        part.lacks("the size of the rubric", "it is not on record");
        return;
    };
    let mut table = Table::new(
        "sizes",
        "Size of the rubric: tokens of its values and key names",
        &[
            ("rubric", "rubric"),
            ("tokens", "tokens"),
            ("leaves", "leaves"),
            ("rules", "rules that can fire"),
        ],
    );
    let mut row = |name: &str, of: &Rubric, events: Vec<u64>| {
        let tokens = kappa::length(&BTreeMap::new(), of.leaves()).tokens_added;
        table.row_of(
            events,
            vec![
                Cell::text(name),
                Cell::count(tokens),
                Cell::count(of.leaves().len() as u64),
                Cell::count(of.rule_paths().len() as u64),
            ],
        );
    };
    row("in force", &rubric, vec![at]);
    for (seq, patch) in proposed(story) {
        match prompts::patched(&rubric, &patch.diff, rubric.version()) {
            Ok(after) => row(patch.patch.as_str(), &after, vec![at, seq]),
            Err(fault) => part.lacks(
                format!("the size of the rubric under {}", patch.patch),
                fault.to_string(),
            ),
        }
    }
    part.table(table);
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

/// How a patch changes a leaf, and its value as one line.
pub fn leaf_change(change: &LeafChange) -> (&'static str, String) {
    let op = match change.op {
        ChangeOp::Append => "append",
        ChangeOp::Set => "set",
    };
    (op, leaf(&change.value))
}

/// What every patch changes, and its document as it was written.
pub(super) fn diffs(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
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
    let before = story.rubric(state);
    for (seq, patch) in proposed(story) {
        for one in &patch.diff {
            let (op, after) = leaf_change(one);
            let old = before.and_then(|rubric| {
                let found = rubric.leaves.iter().find(|leaf| leaf.path == one.path)?;
                Some((rubric.seq, leaf(&found.value)))
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
