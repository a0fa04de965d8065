//! What a judge has in common with what it judges, and with other judges: scores of one's own answers, and second opinions
//! that are none.

use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_projection::judges::Judges;
use clover_projection::tallies::Tallies;

use crate::judge::command;

/// What a reader must know of a judge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Kinship {
    /// The model behind a judge wrote what it judges.
    #[error(
        "judge {judge} is {model}, which wrote the answers of policy {policy}: it may favour its own. Labels of that policy show it: clover audit transport"
    )]
    SelfJudging {
        /// The judge.
        judge: JudgeId,
        /// Its model.
        model: String,
        /// The policy.
        policy: PolicyId,
    },
    /// Two judges are told the same by one template.
    #[error(
        "judges {judge} and {other} share a prompt: what it gets wrong, both get wrong, and one is no second opinion on the other"
    )]
    SharedPrompt {
        /// One judge.
        judge: JudgeId,
        /// The other.
        other: JudgeId,
    },
}

/// The last part of a model's name, in lower case: `openai/GPT-4o` is `gpt-4o`.
fn plain(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.to_lowercase()
}

/// Policies of an experiment that some judge scored.
fn policies<'s>(state: &'s State, experiment: &ExperimentId) -> BTreeSet<&'s PolicyId> {
    let scores = state.fold::<Tallies>().scores.get(experiment);
    scores
        .into_iter()
        .flatten()
        .flat_map(|(_, of)| of.keys())
        .collect()
}

/// What a judge shares with the policies of an experiment, those that are named besides, and other judges of it. A judge that is
/// another but for what it is told is held against policies as any, and not against the judge that it stands for.
pub fn of(
    state: &State,
    experiment: &ExperimentId,
    judge: &JudgeRegistered,
    also: &[&PolicyId],
) -> Vec<Kinship> {
    let model = command::name(judge.model.as_str());
    let policies = policies(state, experiment)
        .into_iter()
        .chain(also.iter().copied());
    let own: BTreeSet<&PolicyId> = policies
        .filter(|policy| plain(policy.as_str()) == plain(model))
        .collect();
    let own = own.into_iter().map(|policy| Kinship::SelfJudging {
        judge: judge.judge.clone(),
        model: model.to_owned(),
        policy: policy.clone(),
    });
    let mut found: Vec<Kinship> = own.collect();
    // Of a judge without a template nobody knows what it is told.
    let is_told = judge.prompt_hash != Digest::sha256(b"");
    let others = state.fold::<Judges>().of(experiment);
    let others = others.into_iter().flat_map(|of| of.judges.values());
    let shares = |other: &JudgeRegistered| {
        is_told && other.judge != judge.judge && other.prompt_hash == judge.prompt_hash
    };
    let others = others.filter(|other| shares(&other.said));
    found.extend(others.map(|other| Kinship::SharedPrompt {
        judge: judge.judge.clone(),
        other: other.said.judge.clone(),
    }));
    found
}

/// The same of a judge by its name; nothing where it is not registered, as one whose scores were imported.
pub fn of_registered(state: &State, experiment: &ExperimentId, judge: &JudgeId) -> Vec<Kinship> {
    let judges = state.fold::<Judges>().of(experiment);
    let registered = judges.and_then(|of| of.judges.get(judge));
    registered.map_or_else(Vec::new, |found| of(state, experiment, &found.said, &[]))
}
