//! A run as it would be opened: its rows, how often its judge and its model are asked, and what that costs at most.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::RunId;
use crate::ground::digest::Digest;
use crate::ledger::State;
use crate::projection::sgd::SgdRun;
use crate::session::sgd::ahead::SgdAhead;
use crate::session::sgd::open::SgdAgentCost;
use crate::session::sgd::open::SgdPlan;
use crate::view::View;
use crate::view::judge_ask::dollars;
use crate::view::sgd::SgdCounts;
use crate::view::sgd::counts;
use crate::view::sgd::in_words;
use crate::view::sgd::other_reader;
use crate::view::sgd::spent;

/// A run as it would be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPlanned {
    /// Asks of a model that writes gradients and patches, at most; 0 where no model behind HTTP does.
    pub agent_asks_max: u64,
    /// What these asks cost at most, in millionths of a dollar, with 131,072 bytes a request; `null` where they are free.
    pub agent_cost_max_usd_micro: Option<u64>,
    /// What is left in the account that pays them, in millionths of a dollar; `null` where they are free.
    pub account_left_usd_micro: Option<u64>,
    /// Scores that the judge is asked for at most.
    pub asks_max: u64,
    /// What these scores cost at most, in millionths of a dollar, each as that of the longest row; `null` where they are free.
    pub scores_cost_max_usd_micro: Option<u64>,
    /// What is left in the account that pays scores, in millionths of a dollar; `null` where they are free.
    pub scores_left_usd_micro: Option<u64>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// Digest of prompt 0.
    pub prompt_digest: Digest,
    /// Its rows.
    pub rows: SgdCounts,
    /// The run.
    pub run: RunId,
    /// Most steps.
    pub steps_max: u64,
}

/// Clusters of confirm without which no gate at an error rate of 0.05 can decide, as `schema/SGD.md` says.
const GATE_UNITS_MIN: usize = 7;

/// A run as it would be opened.
pub fn planned(
    state: &State,
    plan: &SgdPlan,
    experiment: &ExperimentId,
    (cost, scores): (Option<&SgdAgentCost>, Option<&SgdAgentCost>),
) -> View {
    let said = &plan.opened;
    let facts = SgdPlanned {
        agent_asks_max: plan.agent_asks(),
        agent_cost_max_usd_micro: cost.map(|of| of.most),
        account_left_usd_micro: cost.map(|of| of.left),
        asks_max: plan.asks(),
        scores_cost_max_usd_micro: scores.map(|of| of.most),
        scores_left_usd_micro: scores.map(|of| of.left),
        experiment: experiment.clone(),
        judge: said.judge.clone(),
        prompt_digest: said.prompt_digest,
        rows: counts(|split| plan.count(split)),
        run: said.run.clone(),
        steps_max: said.terms.steps.value(),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("judge", facts.judge.to_string()),
        ("prompt 0", facts.prompt_digest.to_hex()),
        ("rows", in_words(facts.rows)),
        ("steps", format!("at most {}", facts.steps_max)),
        ("scores", format!("at most {}", facts.asks_max)),
    ]);
    scores_paid(&mut view, scores);
    paid(&mut view, facts.agent_asks_max, cost);
    view.sentence("Nothing is on record yet.");
    let units = plan.confirm_clusters();
    if units < GATE_UNITS_MIN {
        view.sentence(format!(
            "Confirm has {units} clusters. A gate at an error rate of 0.05 needs {GATE_UNITS_MIN}, so nothing of this run could be promoted."
        ));
    }
    has_room(&mut view, cost, scores);
    if let Some(other) = other_reader(state, (experiment, &facts.run)) {
        spent(&mut view, experiment, other);
    }
    view
}

/// Asks of a model that writes gradients and patches, and their cost; nothing where none is asked.
fn paid(view: &mut View, asks: u64, cost: Option<&SgdAgentCost>) {
    if asks == 0 {
        return;
    }
    let money = cost.map_or_else(
        || "free".to_owned(),
        |of| {
            let (most, left) = (dollars(of.most), dollars(of.left));
            format!("at most {most}, of {left} in the account")
        },
    );
    let asks = format!("at most {asks}");
    view.pairs([("asks of the model", asks), ("cost", money)]);
}

/// What scores of a judge behind HTTP cost; nothing where they are free.
pub(super) fn scores_paid(view: &mut View, scores: Option<&SgdAgentCost>) {
    if let Some(of) = scores {
        let (most, left) = (dollars(of.most), dollars(of.left));
        let money = format!("at most {most}, of {left} in the account");
        view.pairs([("cost of scores", money)]);
    }
}

pub(super) fn has_room(
    view: &mut View,
    cost: Option<&SgdAgentCost>,
    scores: Option<&SgdAgentCost>,
) {
    if [cost, scores].into_iter().flatten().any(|of| !of.fits()) {
        view.sentence(
            "The most that it may cost is more than there is room for: then the run waits with exit 11, and goes on once there is more.",
        );
    }
}

/// What an open run may still ask and pay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdRemainder {
    /// Asks of a model that writes gradients and patches, at most; 0 where no model behind HTTP does.
    pub agent_asks_max: u64,
    /// What these asks cost at most, in millionths of a dollar, with 131,072 bytes a request; `null` where they are free.
    pub agent_cost_max_usd_micro: Option<u64>,
    /// What is left in the account that pays them, in millionths of a dollar; `null` where they are free.
    pub account_left_usd_micro: Option<u64>,
    /// Scores that the judge is asked for at most, those of test among them.
    pub asks_max: u64,
    /// What these scores cost at most, in millionths of a dollar, each as that of the longest row; `null` where they are free.
    pub scores_cost_max_usd_micro: Option<u64>,
    /// What is left in the account that pays scores, in millionths of a dollar; `null` where they are free.
    pub scores_left_usd_micro: Option<u64>,
    /// The run.
    pub run: RunId,
    /// Most steps.
    pub steps_left: u64,
    /// Steps that were taken.
    pub steps_taken: u64,
}

/// What an open run may still ask and pay.
pub fn ahead(run: &SgdRun, ahead: &SgdAhead, scores: Option<&SgdAgentCost>) -> View {
    let cost = ahead.cost.as_ref();
    let facts = SgdRemainder {
        agent_asks_max: ahead.agent_asks,
        agent_cost_max_usd_micro: cost.map(|of| of.most),
        account_left_usd_micro: cost.map(|of| of.left),
        asks_max: ahead.asks,
        scores_cost_max_usd_micro: scores.map(|of| of.most),
        scores_left_usd_micro: scores.map(|of| of.left),
        run: run.said.run.clone(),
        steps_left: ahead.steps,
        steps_taken: run.taken(),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("steps taken", facts.steps_taken.to_string()),
        ("steps left", format!("at most {}", facts.steps_left)),
        ("scores", format!("at most {}", facts.asks_max)),
    ]);
    scores_paid(&mut view, scores);
    paid(&mut view, facts.agent_asks_max, cost);
    view.sentence("Nothing was asked, and nothing is on record of it.");
    has_room(&mut view, cost, scores);
    view
}
