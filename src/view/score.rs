//! How scores are shown: how many draws each answer had.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::ledger::State;
use crate::num::Count;
use crate::num::Micro;
use crate::projection::designs::Designs;
use crate::projection::tallies::DrawCounts;
use crate::session::judge::scores::ItemScore;
use crate::session::judge::scores::ScoreKey;
use crate::view::View;
use crate::view::text::thousands;

/// Scores by experiment, judge and policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreList {
    /// How many there are of each.
    pub scores: Vec<ScoreCounts>,
}

/// How many draws a judge scored of a policy's items.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreCounts {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// The policy that answered.
    pub policy: PolicyId,
    /// Items.
    pub items: u64,
    /// Scores, one for each draw.
    pub scores: u64,
    /// Items with more than one draw.
    pub items_with_several_draws: u64,
    /// Draws of the item that has the most.
    pub draws_max: u64,
    /// Scores of the experiment that differ from the recorded one, which stands.
    pub conflicts_in_experiment: u64,
}

/// Every score of one item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreShown {
    /// The item, as it was asked for.
    pub item: String,
    /// Scores that are recorded.
    pub draws: u64,
    /// Those, then conflicts.
    pub scores: Vec<ScoreRow>,
}

/// A score of one item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreRow {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// The policy that answered.
    pub policy: PolicyId,
    /// Which draw of the item.
    pub draw: Count,
    /// The score, in millionths.
    pub score_micro: Micro,
    /// Its entry.
    pub seq: u64,
    /// `recorded`, or `conflict` where another score of the draw stands.
    pub standing: &'static str,
}

/// Scores by experiment, judge and policy.
pub fn list(state: &State, draws: &BTreeMap<ScoreKey, DrawCounts>) -> View {
    let designs = state.fold::<Designs>();
    let conflicts = |experiment: &ExperimentId| {
        let of = designs.by_experiment.get(experiment);
        of.map_or(0, |of| of.score_conflicts)
    };
    let scores = draws.iter().map(|(key, counts)| ScoreCounts {
        experiment: key.experiment.clone(),
        judge: key.judge.clone(),
        policy: key.policy.clone(),
        items: counts.items,
        scores: counts.scores,
        items_with_several_draws: counts.redrawn,
        draws_max: counts.draws_max,
        conflicts_in_experiment: conflicts(&key.experiment),
    });
    let facts = ScoreList {
        scores: scores.collect(),
    };
    let rows = facts.scores.iter().map(|of| {
        vec![
            of.experiment.to_string(),
            of.judge.to_string(),
            of.policy.to_string(),
            thousands(of.items),
            thousands(of.scores),
            thousands(of.items_with_several_draws),
            of.draws_max.to_string(),
        ]
    });
    let head = [
        "experiment",
        "judge",
        "policy",
        "items",
        "scores",
        "several draws",
        "most",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    for (experiment, of) in &designs.by_experiment {
        let count = of.score_conflicts;
        if count > 0 {
            view.line(format!(
                "{experiment}: {count} score.conflict, CLOVER.J2 fails"
            ));
        }
    }
    view
}

/// Every score of one item.
pub fn show(item: &str, found: &[ItemScore]) -> View {
    let scores = found.iter().map(|of| ScoreRow {
        experiment: of.key.experiment.clone(),
        judge: of.key.judge.clone(),
        policy: of.key.policy.clone(),
        draw: of.draw,
        score_micro: of.score,
        seq: of.seq,
        standing: if of.is_conflict {
            "conflict"
        } else {
            "recorded"
        },
    });
    let facts = ScoreShown {
        item: item.to_owned(),
        draws: found.iter().filter(|of| !of.is_conflict).count() as u64,
        scores: scores.collect(),
    };
    let rows = facts.scores.iter().map(|of| {
        vec![
            of.experiment.to_string(),
            of.judge.to_string(),
            of.policy.to_string(),
            of.draw.to_string(),
            of.score_micro.to_string(),
            of.seq.to_string(),
            of.standing.to_owned(),
        ]
    });
    let head = [
        "experiment",
        "judge",
        "policy",
        "draw",
        "score",
        "seq",
        "standing",
    ];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    view
}
