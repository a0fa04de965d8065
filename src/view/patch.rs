//! Patches: what their checks found, where they stand, what they are worth on dev, and what reviewers think of them.

use std::path::Path;

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::event::id::PatchFamilyId;
use crate::event::id::PatchId;
use crate::event::payload::record::ReviewOutcome;
use crate::event::payload::rubric::ChangeOp;
use crate::event::payload::rubric::CodeLength;
use crate::event::payload::rubric::LeafValue;
use crate::event::payload::synthesis::DevObjectiveQueried;
use crate::event::payload::synthesis::GateAnswer;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::decisions;
use crate::projection::iterations::CandidateState;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::PatchRecord;
use crate::projection::releases::Releases;
use crate::report::shown;
use crate::rubric::CheckedPatch;
use crate::rubric::Patch;
use crate::rubric::Rubric;
use crate::rubric::starter;
use crate::session::append::Submission;
use crate::session::iterate::Bench as Opened;
use crate::session::iterate::propose::Proposal;
use crate::session::iterate::rescore::RescoreRequest;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::Stands;
use crate::view::appended::StandsAnd;
use crate::view::iterate;
use crate::workflow::patches;
use crate::workflow::patches::Bench;

/// A leaf that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// How.
    pub op: ChangeOp,
    /// The leaf's dotted path.
    pub path: String,
    /// Whether stored answers can be scored under it: `recompute`, `conditional` or `rescore`.
    pub class: String,
    /// The new value, or the new elements.
    pub value: LeafValue,
    /// What stands there now, as text; `null` where nothing does.
    pub from: Option<String>,
}

/// A judge that a patch is asked of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeAsks {
    /// The judge, by the name under which it is told what the patch changes.
    pub judge: JudgeId,
    /// Rows and anchors that it has not answered, those of confirm included.
    pub rows: u64,
}

/// A patch that passed its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchChecked {
    /// Its id.
    pub patch: String,
    /// Its family.
    pub family: String,
    /// Its hash: of what it changes.
    pub patch_hash: Digest,
    /// What it changes, leaf by leaf.
    pub diff: Vec<Change>,
    /// Its code length.
    pub kappa: u64,
    /// What the code length is made of.
    pub length: CodeLength,
    /// Whether the judge has to answer anew; `null` where only stored answers could tell.
    pub needs_rescore: Option<bool>,
    /// The judge that is asked anew, told what the patch changes; absent where none is, or no iteration was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<JudgeAsks>,
    /// Paths whose change needs two approvals.
    pub two_key: Vec<String>,
    /// Hash of the rubric after it.
    pub result_hash: Digest,
}

/// A patch that was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchProposal {
    /// What its checks found.
    pub patch: PatchChecked,
}

/// A patch to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewPatch {
    /// The document, with comments.
    pub text: String,
}

/// A patch to begin with, which may be in a file now; `iteration` is the one that is open.
pub fn new(text: String, output: Option<&Path>, iteration: Option<&IterationId>) -> View {
    let facts = NewPatch { text };
    let mut view = View::of(&facts);
    let Some(output) = output else {
        view.source(facts.text);
        return view;
    };
    let (shown, id) = (output.display(), iteration.map(shell::word));
    view.line(format!("{shown}: edit what is marked FILL"));
    view.with_next(format!(
        "clover patch check {} --iteration {}",
        shell::word(&shown),
        id.unwrap_or_else(|| "ID".into())
    ))
}

/// Families of patches, and the leaves of a rubric that each may change.
pub fn choices(rubric: &Rubric) -> String {
    let all = starter::choices(rubric).into_iter();
    let all = all.map(|(family, leaves)| match leaves.as_slice() {
        [] => family.as_str().to_owned(),
        leaves => format!("{} ({})", family.as_str(), leaves.join(", ")),
    });
    all.collect::<Vec<_>>().join("; ")
}

/// How many keys concluded what of a patch last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReviewCounts {
    /// Keys that accept it.
    pub accepted: u64,
    /// Keys that dispute it.
    pub disputed: u64,
    /// Keys that noted something.
    pub noted: u64,
}

/// A proposed patch in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchListing {
    /// Its id.
    pub patch: PatchId,
    /// Its iteration.
    pub iteration: IterationId,
    /// Its family.
    pub family: PatchFamilyId,
    /// Its code length.
    pub kappa: u64,
    /// What became of it: `proposed`, `rejected`, `withdrawn`, `accepted`, or `committed` once a prompt has it.
    pub state: &'static str,
    /// The entry that proposed it.
    pub seq: u64,
    /// Its hash: of what it changes.
    pub patch_hash: Digest,
    /// Hash of the rubric after it.
    pub result_hash: Digest,
    /// What reviewers concluded.
    pub reviews: ReviewCounts,
}

/// Proposed patches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchList {
    /// By iteration and name.
    pub patches: Vec<PatchListing>,
}

/// A review that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PatchReview {
    /// What reviewers concluded, this one included.
    pub reviews: ReviewCounts,
}

/// What a candidate is worth on dev.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Objective {
    /// Improvement of the risk on dev, negative when better.
    pub risk_improve_dev: Finite,
    /// Gates p0 to p7 under the profile that binds.
    pub gates: Vec<GateAnswer>,
    /// The event that says so; a patch may name it among its inputs.
    pub receipt: EventId,
    /// Hash of the candidate.
    pub candidate: Digest,
}

fn facts(bench: &Bench, patch: &Patch, checked: &CheckedPatch) -> PatchChecked {
    let said = patches::diff_of(&checked.diff).into_iter();
    let diff = said.zip(&checked.classes).map(|(change, class)| Change {
        from: bench.rubric.at(&change.path).map(ToString::to_string),
        class: class.to_string(),
        op: change.op,
        path: change.path,
        value: change.value,
    });
    PatchChecked {
        patch: patch.id.clone(),
        family: patch.family.as_str().to_owned(),
        patch_hash: checked.hash,
        diff: diff.collect(),
        kappa: checked.length.kappa(),
        length: patches::length_of(&checked.length),
        needs_rescore: checked.needs_rescore,
        asks: None,
        two_key: checked.two_key.clone(),
        result_hash: checked.rubric.hash(),
    }
}

/// What a patch would change, leaf by leaf.
pub fn diff(bench: &Bench, patch: &Patch, checked: &CheckedPatch) -> View {
    let mut view = View::of(&facts(bench, patch, checked));
    for change in &checked.diff {
        let was = bench.rubric.at(&change.path).map(ToString::to_string);
        let was = was.unwrap_or_else(|| "absent".to_owned());
        let now = checked.rubric.at(&change.path).map(ToString::to_string);
        view.line(change.path.as_str());
        view.line(format!("  - {was}"));
        view.line(format!("  + {}", now.unwrap_or_default()));
    }
    view
}

/// What the checks of a patch found. `file` and `iteration` are what to propose, and where.
pub fn checked(
    bench: &Bench,
    (patch, checked): (&Patch, &CheckedPatch),
    asking: Option<&RescoreRequest>,
    (file, iteration): (&Path, Option<&str>),
) -> View {
    let asks = asking.map(|of| JudgeAsks {
        judge: of.judge.clone(),
        rows: of.rows as u64,
    });
    let mut view = View::of(&PatchChecked {
        asks,
        ..facts(bench, patch, checked)
    });
    let needs = match (asking, checked.needs_rescore) {
        (Some(of), _) => format!("{} asked about {} rows", of.judge, of.rows),
        (None, Some(true)) => "raw answers anew".to_owned(),
        (None, Some(false)) => "no raw answer anew".to_owned(),
        (None, None) => {
            "raw answers anew only where a citation on a new host was never verified".to_owned()
        }
    };
    let two_key = match checked.two_key.as_slice() {
        [] => "not needed".to_owned(),
        paths => format!("needed before the commit, because of {}", paths.join(", ")),
    };
    let length = &checked.length;
    let kappa = format!(
        "{} (+{} -{} tokens, {} new guards, {} edits to abstention)",
        length.kappa(),
        length.tokens_added,
        length.tokens_removed,
        length.new_guards,
        length.abstention_edits
    );
    view.pairs([
        ("patch", patch.id.clone()),
        ("family", patch.family.as_str().to_owned()),
        ("changes", checked.diff.len().to_string()),
        ("patch hash", checked.hash.to_hex()),
        ("code length", kappa),
        ("new fields", length.new_fields.to_string()),
        ("needs", needs),
        ("two approvals", two_key),
        ("rubric after it", checked.rubric.hash().to_hex()),
    ]);
    let iteration = iteration.unwrap_or("ID");
    view.with_next(format!(
        "clover iterate propose {iteration} {}",
        shell::word(&file.display()),
        iteration = shell::word(&iteration)
    ))
}

/// Adds to the view of a proposal what its checks found, and gives its facts.
pub fn proposed(view: View, of: &Proposal) -> (View, StandsAnd<PatchProposal>) {
    let (patch, checked) = (&of.patch, &of.checked);
    let more = PatchProposal {
        patch: facts(&of.bench, patch, checked),
    };
    let mut view = appended::and(view, &more);
    view.line(format!(
        "patch {}  hash {}  code length {}",
        patch.id,
        checked.hash,
        checked.length.kappa()
    ));
    let stands = match &of.submission {
        Submission::Appended { appended, .. } => Stands::of(appended),
        Submission::Rehearsed(_) => Stands::of(&[]),
    };
    (view, StandsAnd { stands, more })
}

fn counts(of: &PatchRecord) -> ReviewCounts {
    let count = |outcome| of.reviewed(outcome) as u64;
    ReviewCounts {
        accepted: count(ReviewOutcome::Accepted),
        disputed: count(ReviewOutcome::Disputed),
        noted: count(ReviewOutcome::Noted),
    }
}

/// What became of a patch, its release too.
fn standing(
    state: &State,
    (it, id): (&Iteration, &IterationId),
    (patch, of): (&PatchId, &PatchRecord),
) -> &'static str {
    let releases = state.fold::<Releases>().of(&it.experiment);
    let mut all = releases
        .into_iter()
        .flat_map(|all| all.acceptances.values());
    let accepted = all.find(|made| made.iteration == *id && made.patch == *patch);
    match accepted {
        _ if of.state != CandidateState::Proposed => of.state.as_str(),
        Some(made)
            if state
                .fold::<Releases>()
                .committed(&it.experiment, made.id)
                .is_some() =>
        {
            "committed"
        }
        Some(_) => "accepted",
        None => of.state.as_str(),
    }
}

/// Proposed patches, of one iteration where it is named.
pub fn list(state: &State, iteration: Option<&IterationId>) -> View {
    let all = state.fold::<Iterations>().by_id.iter();
    let all = all.filter(|(id, _)| iteration.is_none_or(|wanted| wanted == *id));
    let all = all.flat_map(|(id, it)| {
        let each = it.candidates.iter();
        each.map(move |(patch, of)| PatchListing {
            patch: patch.clone(),
            iteration: id.clone(),
            family: of.family.clone(),
            kappa: of.kappa,
            state: standing(state, (it, id), (patch, of)),
            seq: of.seq,
            patch_hash: of.patch_hash,
            result_hash: of.result_hash,
            reviews: counts(of),
        })
    });
    let facts = PatchList {
        patches: all.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.patches.iter().map(|of| {
        vec![
            of.patch.to_string(),
            of.iteration.to_string(),
            of.family.to_string(),
            of.kappa.to_string(),
            of.state.to_owned(),
            format!("seq {}", of.seq),
            of.patch_hash.short().to_string(),
        ]
    });
    let head = [
        "patch",
        "iteration",
        "family",
        "kappa",
        "state",
        "proposed",
        "hash",
    ];
    view.table(&head, rows);
    view
}

/// Adds to the view of a review what reviewers concluded, and what a patch lacks before it is sealed.
pub fn reviewed(view: View, state: &State, id: &IterationId, name: &PatchId) -> View {
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(of) = it.and_then(|it| it.candidates.get(name)) else {
        return view;
    };
    let reviews = counts(of);
    let mut view = appended::and(
        view,
        &PatchReview {
            reviews: reviews.clone(),
        },
    );
    view.line(format!(
        "{name}: accepted by {}, disputed by {}",
        reviews.accepted, reviews.disputed
    ));
    if let Err(unmet) = decisions::check_reviewed(state, id, &[of.patch_hash]) {
        view.line(format!("before it is sealed: {unmet}"));
    }
    view.with_next(format!("clover iterate run {id}", id = shell::word(id)))
}

/// What a candidate is worth on dev.
pub fn objective(
    bench: &Opened,
    said: &DevObjectiveQueried,
    receipt: EventId,
    appended: &[AppendedEvent],
) -> View {
    let found = Objective {
        risk_improve_dev: said.risk_improve,
        gates: said.answers.clone(),
        receipt,
        candidate: said.candidate,
    };
    let mut view = View::of(&found);
    let gates = said.answers.iter();
    let gates = gates.map(|of| format!("{} {}", of.gate, shown::word(of.verdict)));
    view.pairs([
        (
            "risk change",
            format!("{} (negative is better)", said.risk_improve),
        ),
        ("criteria", gates.collect::<Vec<_>>().join("  ")),
        ("receipt", receipt.0.to_hex()),
    ]);
    iterate::answer(bench, view, found, appended)
}
