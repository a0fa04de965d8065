//! Prompt commits: the rubric and the judge's text that follow from an accepted patch, what approvals they need, and
//! the rule `commit`, which computes all of it again. `schema/DEPLOYMENT.md` says what a commit must hold to.

use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::release::Inclusion;
use clover_event::payload::release::PromptCommitted;
use clover_event::payload::rubric::ChangeOp;
use clover_event::payload::rubric::LeafChange;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches as _;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_num::Count;
use clover_projection::iterations::Iterations;
use clover_projection::releases::APPROVALS_MIN;
use clover_projection::releases::Acceptance;
use clover_projection::releases::Releases;
use clover_projection::releases::STAKES_MICRO;
use clover_projection::rubrics::RubricRegistration;
use clover_projection::rubrics::Rubrics;
use clover_rubric::Rubric;
use clover_rubric::RubricFault;
use clover_rubric::Value;
use clover_rubric::between;
use clover_rubric::leaf;
use clover_rubric::needs_two_keys;
use clover_rubric::prompt;

use crate::patches;

/// Media type of a rendered prompt.
const MEDIA: &str = "text/plain";

/// The leaves of a rubric with the changes of a patch, under a new version.
///
/// # Errors
/// [`RubricFault`] where what results is no rubric.
pub fn patched(parent: &Rubric, diff: &[LeafChange], version: &str) -> Result<Rubric, RubricFault> {
    let mut leaves = parent.leaves().clone();
    for change in diff {
        let new = patches::meant(&change.value);
        match (change.op, leaves.get_mut(&change.path), new) {
            (ChangeOp::Append, Some(Value::List(old)), Value::List(new)) => old.extend(new),
            (_, _, new) => {
                leaves.insert(change.path.clone(), new);
            }
        }
    }
    leaves.insert("version".to_owned(), Value::Text(version.to_owned()));
    Rubric::new(leaves)
}

/// The version after another: its minor part raised by one.
pub fn version_after(version: &str) -> String {
    let (major, minor) = leaf::version(version).unwrap_or_default();
    format!("{major}.{}", u64::from(minor) + 1)
}

/// What the judge is told of a rubric in an iteration whose extractor knows these topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgePrompt {
    /// Hash of the text under its template.
    pub hash: Digest,
    /// The text.
    pub text: String,
}

/// What the judge is told.
pub fn rendered(rubric: &Rubric, plan: Option<&IterationPlan>) -> JudgePrompt {
    let topics = plan.and_then(|plan| Some(plan.design.as_ref()?.topics.iter()));
    let topics: BTreeSet<String> = topics
        .into_iter()
        .flatten()
        .map(|topic| topic.as_str().to_owned())
        .collect();
    JudgePrompt {
        hash: prompt::hash(rubric, &topics),
        text: prompt::render(rubric, &topics),
    }
}

/// Whether a judge can be told a rubric with a patch in place of `base`, what the rubric without it renders: it was told
/// nothing so far, or just that. A text of its own would be lost, and the patch would be measured with that loss.
pub fn can_be_retold(judge: &JudgeRegistered, base: &JudgePrompt) -> bool {
    let own = judge.prompt_hash;
    let is_own = |text: &str| own == Digest::sha256(text.as_bytes());
    judge.of.is_some() || is_own("") || is_own(&base.text)
}

/// The reference to a text that is stored.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn reference(text: &str) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(text.as_bytes()),
        bytes: Count::new(text.len() as u64).unwrap_or_default(),
        media: MediaType::new(MEDIA).expect("BUG: a constant media type"),
    }
}

/// The plan under which a patch was accepted.
pub fn plan_of<'a>(state: &'a State, accepted: &Acceptance) -> Option<&'a IterationPlan> {
    let it = state.fold::<Iterations>().by_id.get(&accepted.iteration)?;
    patches::plan_of(state, it)
}

/// The plan under which a version of an experiment is told: that of its iteration; of the first that starts from it,
/// where no patch brought it.
pub fn plan_told<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    registered: &RubricRegistration,
) -> Option<&'a IterationPlan> {
    let releases = state.fold::<Releases>().of(experiment);
    let commit = releases.and_then(|of| of.commit(registered.id));
    let mut iterations = state.fold::<Iterations>().by_id.iter();
    let (_, it) = match commit {
        Some(commit) => iterations.find(|(id, _)| **id == commit.iteration),
        None => iterations
            .find(|(_, it)| it.experiment == *experiment && it.rubric_hash == registered.hash),
    }?;
    patches::plan_of(state, it)
}

/// What the judge is told in a version of an experiment; `None` where its leaves are no rubric.
pub fn told(
    state: &State,
    experiment: &ExperimentId,
    registered: &RubricRegistration,
) -> Option<JudgePrompt> {
    let rubric = patches::rubric_of(registered)?;
    Some(rendered(&rubric, plan_told(state, experiment, registered)))
}

/// Hashes under which a version may have been judged: its own, and where a patch brought it, that of its rubric under the
/// version number that its iteration started from, which its gates saw.
pub fn judged_as(
    state: &State,
    experiment: &ExperimentId,
    registered: &RubricRegistration,
) -> Vec<Digest> {
    let on_trial = || {
        let releases = state.fold::<Releases>().of(experiment)?;
        let commit = releases.commit(registered.id)?;
        let it = state.fold::<Iterations>().by_id.get(&commit.iteration)?;
        let base = state
            .fold::<Rubrics>()
            .of_hash(experiment, it.rubric_hash)?;
        let (base, rubric) = (patches::rubric_of(base)?, patches::rubric_of(registered)?);
        let tried = patched(&rubric, &[], base.version()).ok()?;
        Some(tried.hash())
    };
    std::iter::once(registered.hash).chain(on_trial()).collect()
}

/// Why an accepted patch needs two approvals; empty where it needs none.
///
/// Paths of safety rules count, and any slice of the iteration with stakes of 0.7 or more: an edit of a rubric is
/// applied to every row, and nothing recorded tells which slices of high stakes it leaves alone.
pub fn two_key(state: &State, experiment: &ExperimentId, accepted: &Acceptance) -> Vec<String> {
    let mut why = Vec::new();
    let it = state.fold::<Iterations>().by_id.get(&accepted.iteration);
    let base = it.and_then(|it| state.fold::<Rubrics>().of_hash(experiment, it.rubric_hash));
    if let Some(base) = base.and_then(patches::rubric_of)
        && let Ok(after) = patched(&base, &accepted.diff, base.version())
    {
        let (changes, _) = between(&base, &after);
        let safety = changes
            .iter()
            .filter(|change| needs_two_keys(change, base.at(&change.path)));
        why.extend(safety.map(|change| change.path.clone()));
    }
    let design = plan_of(state, accepted).and_then(|plan| plan.design.as_ref());
    for family in design.into_iter().flat_map(|design| &design.slices) {
        let high = family
            .cells
            .iter()
            .filter(|cell| cell.stakes_micro.value() >= STAKES_MICRO);
        why.extend(high.map(|cell| format!("slice {} {}", family.family, cell.slice)));
    }
    why
}

/// The rubric that the next commit of an experiment follows.
pub fn head<'a>(state: &'a State, experiment: &ExperimentId) -> Option<&'a RubricRegistration> {
    state.fold::<Rubrics>().in_force(experiment)
}

fn refusal(expected: impl Into<String>, found: impl Into<String>) -> Unmet {
    let (expected, found) = (expected.into(), found.into());
    Unmet { expected, found }
}

/// The patch was tried on the head, or on what another patch of its own iteration was committed to.
fn follows(
    state: &State,
    experiment: &ExperimentId,
    (accepted, head): (&Acceptance, &RubricRegistration),
) -> Result<(), Unmet> {
    let it = state.fold::<Iterations>().by_id.get(&accepted.iteration);
    let base = it.map(|it| it.rubric_hash);
    let releases = state.fold::<Releases>().of(experiment);
    let brought = releases.and_then(|of| of.commit(head.id));
    if base == Some(head.hash) || brought.is_some_and(|of| of.iteration == accepted.iteration) {
        return Ok(());
    }
    let base = base.map_or("none".to_owned(), |hash| hash.to_string());
    Err(refusal(
        format!("a patch that was tried on the head, {}", head.hash),
        format!("{}, tried on {base}", accepted.patch),
    ))
}

/// Approvals stand where they are needed, and no refusal does.
pub(crate) fn approved(
    state: &State,
    experiment: &ExperimentId,
    accepted: &Acceptance,
) -> Result<Vec<EventId>, Unmet> {
    if let Some(seq) = accepted.refused() {
        let expected = format!("no refusal of {} that stands", accepted.patch);
        return Err(refusal(expected, format!("one at seq {seq}")));
    }
    let approvals = accepted.approvals();
    if approvals.len() < APPROVALS_MIN
        && let Some(first) = two_key(state, experiment, accepted).first()
    {
        let expected = format!("two approvals of {}, because of {first}", accepted.patch);
        return Err(refusal(expected, approvals.len().to_string()));
    }
    Ok(approvals)
}

/// The commit that follows from an acceptance, with what the judge is told; `size` is that of a tree that holds the
/// acceptance.
///
/// # Errors
/// What was expected, and what was found.
pub fn commit(
    state: &State,
    experiment: &ExperimentId,
    acceptance: EventId,
    (version, size): (&str, Count),
) -> Result<(PromptCommitted, String), Unmet> {
    let releases = state.fold::<Releases>();
    let Some(accepted) = releases.acceptance(experiment, acceptance) else {
        let expected = format!("a patch.accepted of {experiment}");
        return Err(refusal(expected, acceptance.to_string()));
    };
    if let Some(old) = releases.committed(experiment, acceptance) {
        let found = format!("{}, at seq {}", old.version, old.seq);
        return Err(refusal("an acceptance that was not committed yet", found));
    }
    let Some(head) = head(state, experiment) else {
        return Err(refusal("a registered rubric", "none"));
    };
    follows(state, experiment, (accepted, head))?;
    let approvals = approved(state, experiment, accepted)?;
    let rubrics = state.fold::<Rubrics>().by_experiment.get(experiment);
    let newest = rubrics.into_iter().flatten().map(|of| &of.version);
    let newest = newest.max_by_key(|version| leaf::version(version));
    let newest = newest.unwrap_or(&head.version);
    if leaf::version(version) <= leaf::version(newest) {
        return Err(refusal(format!("a version above {newest}"), version));
    }
    let parent = patches::rubric_of(head);
    let rubric = parent.and_then(|parent| patched(&parent, &accepted.diff, version).ok());
    let Some(rubric) = rubric else {
        return Err(refusal("a rubric that results", "none"));
    };
    let told = rendered(&rubric, plan_of(state, accepted));
    let said = PromptCommitted {
        acceptance,
        approvals,
        gates: accepted.gates.clone(),
        leaves: patches::leaves_of(&rubric),
        parent: head.id,
        patch: accepted.patch.clone(),
        prompt: reference(&told.text),
        prompt_hash: told.hash,
        proof: Inclusion {
            index: Count::new(accepted.seq).unwrap_or_default(),
            size,
        },
        rubric_hash: rubric.hash(),
        version: version.to_owned(),
    };
    Ok((said, told.text))
}

/// The rule `commit`. It stands on this floor because it edits rubrics, which no projection may name.
#[derive(Clone, Copy, Debug)]
pub struct Commits;

impl Rule for Commits {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let (Payload::PromptCommitted(said), Some(experiment)) =
            (&event.event.payload, &event.event.header.experiment)
        else {
            return;
        };
        breaches.take(
            RuleName::Commit,
            check_committed(state, experiment, event.seq, said),
        );
    }
}

fn check_committed(
    state: &State,
    experiment: &ExperimentId,
    seq: u64,
    said: &PromptCommitted,
) -> Result<(), Unmet> {
    let terms = (said.version.as_str(), said.proof.size);
    let (read, _) = commit(state, experiment, said.acceptance, terms)?;
    let differs = |name: &str, read: String, found: String| {
        if read == found {
            return Ok(());
        }
        Err(refusal(format!("{name} {read}"), found))
    };
    let list = |name: &str, read: &[EventId], found: &[EventId]| {
        if read == found {
            return Ok(());
        }
        let shown = |ids: &[EventId]| format!("{} of them", ids.len());
        let expected = format!("the {name} of its acceptance, {}", shown(read));
        Err(refusal(expected, format!("others, {}", shown(found))))
    };
    differs("parent", read.parent.to_string(), said.parent.to_string())?;
    differs("patch", read.patch.to_string(), said.patch.to_string())?;
    list("gates", &read.gates, &said.gates)?;
    list("approvals", &read.approvals, &said.approvals)?;
    if read.leaves != said.leaves {
        let expected = format!("the leaves of {} with the patch", read.parent.0.short());
        return Err(refusal(expected, "others"));
    }
    let (hash, found) = (read.rubric_hash, said.rubric_hash);
    differs("rubric_hash", hash.to_string(), found.to_string())?;
    let (hash, found) = (read.prompt_hash, said.prompt_hash);
    differs("prompt_hash", hash.to_string(), found.to_string())?;
    let prompt =
        |of: &BlobRef| format!("{} of {} bytes, {}", of.blake3, of.bytes, of.media.as_str());
    differs("prompt", prompt(&read.prompt), prompt(&said.prompt))?;
    let (index, size) = (read.proof.index.value(), said.proof.size.value());
    if said.proof.index != read.proof.index || size <= index || size > seq {
        let expected = format!(
            "proof of index {index} in a size from {} to {seq}",
            index + 1
        );
        let found = format!("index {} in {size}", said.proof.index);
        return Err(refusal(expected, found));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_version_raises_the_minor_part() {
        assert_eq!(version_after("1.0"), "1.1");
        assert_eq!(version_after("2.9"), "2.10");
    }
}
