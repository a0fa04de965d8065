//! The way from the checkpoint of a run to its promotion: the plan of its gate, how the gate ended, and what was promoted.

use std::path::Path;

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::id::RunId;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::Outcome;
use crate::event::payload::decision::PromotionIssued;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::gates::Gates;
use crate::projection::sgd::SgdRun;
use crate::projection::sgd::gate::METRIC;
use crate::projection::sgd::gate::confirm_units;
use crate::session::sgd::open::SgdAgentCost;
use crate::session::sgd::promote::PromotionPlan;
use crate::view::Exit;
use crate::view::View;
use crate::view::gate::draft;
use crate::view::gate::draft::GateTerms;
use crate::view::gate::outcome_of;
use crate::view::judge_ask::dollars;
use crate::view::sgd::planned;
use crate::view::word;

/// How far a promotion went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromotionShown {
    /// The run.
    pub run: RunId,
    /// Prompt 0.
    pub baseline: Digest,
    /// The checkpoint.
    pub candidate: Digest,
    /// The gate; `null` before it was planned.
    pub gate: Option<ManifestId>,
    /// Clusters that the run keeps for confirm.
    pub units: u64,
    /// The file of the plan; `null` where it was signed before.
    pub plan: Option<String>,
    /// Clusters that were observed.
    pub observed: u64,
    /// How the gate ended; `null` before.
    pub decided: Option<Outcome>,
    /// How far the promotion may be trusted; `null` where nothing was promoted.
    pub grade: Option<Grade>,
}

/// What the gate of a run still asks of its judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdConfirmRemainder {
    /// Scores of confirm that the judge is asked for at most, under prompt 0 and under the checkpoint.
    pub asks_max: u64,
    /// The checkpoint.
    pub candidate: Digest,
    /// The run.
    pub run: RunId,
    /// What these scores cost at most, in millionths of a dollar, each as that of the longest row; `null` where they are free.
    pub scores_cost_max_usd_micro: Option<u64>,
    /// What is left in the account that pays scores, in millionths of a dollar; `null` where they are free.
    pub scores_left_usd_micro: Option<u64>,
    /// Clusters that the run keeps for confirm.
    pub units: u64,
}

/// What the gate of a run still asks of its judge, before confirm is scored.
pub fn ahead(run: &SgdRun, asks: u64, cost: Option<&SgdAgentCost>) -> View {
    let chosen = run.checkpoint.as_ref().map(|of| of.prompt_digest);
    let facts = SgdConfirmRemainder {
        asks_max: asks,
        candidate: chosen.unwrap_or(run.said.prompt_digest),
        run: run.said.run.clone(),
        scores_cost_max_usd_micro: cost.map(|of| of.most),
        scores_left_usd_micro: cost.map(|of| of.left),
        units: confirm_units(run).len() as u64,
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("checkpoint", facts.candidate.to_hex()),
        ("clusters", facts.units.to_string()),
        ("scores of confirm", format!("at most {asks}")),
    ]);
    planned::scores_paid(&mut view, cost);
    view.sentence("Nothing was asked, and nothing is on record of it.");
    planned::has_room(&mut view, None, cost);
    view.with_next(format!("clover sgd promote {}", shell::word(&facts.run)))
}

/// What a person is asked before confirm is scored.
pub fn question(run: &SgdRun, asks: u64, cost: Option<&SgdAgentCost>) -> String {
    let money = cost.map_or_else(String::new, |of| {
        format!(" for at most {}", dollars(of.most))
    });
    let name = &run.said.run;
    format!(
        "score confirm of {name} under both prompts, at most {asks} scores{money}: these clusters count in no other gate"
    )
}

fn facts(state: &State, run: &SgdRun, gate: Option<&ManifestId>) -> SgdPromotionShown {
    let opened = gate.and_then(|id| state.fold::<Gates>().by_id.get(id));
    let chosen = run.checkpoint.as_ref().map(|of| of.prompt_digest);
    SgdPromotionShown {
        run: run.said.run.clone(),
        baseline: run.said.prompt_digest,
        candidate: chosen.unwrap_or(run.said.prompt_digest),
        gate: gate.cloned(),
        units: confirm_units(run).len() as u64,
        plan: None,
        observed: opened.map_or(0, |gate| gate.n),
        decided: opened.and_then(|gate| gate.decided.as_ref().map(|of| of.outcome)),
        grade: None,
    }
}

fn terms(plan: &PromotionPlan) -> GateTerms {
    GateTerms {
        baseline: plan.baseline,
        candidate: plan.candidate,
        claim: plan.claim.clone(),
        experiment: plan.experiment.clone(),
        gate: plan.gate.clone(),
        judge: plan.metric,
        metric: METRIC,
        scale: (Micro::default(), Micro::new(1_000_000).unwrap_or_default()),
        units: plan.units,
    }
}

/// The plan of a run's gate, as a file.
pub fn plan_text(plan: &PromotionPlan) -> String {
    draft::text(&terms(plan), &plan.share)
}

fn pairs(view: &mut View, facts: &SgdPromotionShown) {
    let gate = facts.gate.as_ref().map(ToString::to_string);
    view.pairs([
        ("run", facts.run.to_string()),
        ("prompt 0", facts.baseline.to_hex()),
        ("checkpoint", facts.candidate.to_hex()),
        ("gate", gate.unwrap_or_else(|| "none yet".to_owned())),
        ("clusters", facts.units.to_string()),
    ]);
}

/// The error rate above which a gate says little, in millionths.
const ALPHA_HIGH: i64 = 200_000;

/// What is said of an error rate, in millionths, with which a promotion says little.
pub fn high_rate(alpha: i64) -> Option<String> {
    (alpha > ALPHA_HIGH).then(|| {
        let rate = alpha as f64 / 1e6;
        format!(
            "error rate {rate} is above 0.2: a checkpoint that is no better is promoted in up to that share of such gates"
        )
    })
}

/// A plan that waits for a signature.
pub fn drafted(state: &State, run: &SgdRun, plan: &PromotionPlan, file: &Path) -> View {
    let shown = file.display().to_string();
    let facts = SgdPromotionShown {
        plan: Some(shown.clone()),
        ..facts(state, run, Some(&plan.gate))
    };
    let mut view = View::of(&facts);
    pairs(&mut view, &facts);
    view.pairs([
        ("plan", shown.clone()),
        (
            "alpha",
            format!("{} of {}", plan.share.alpha, plan.share.family),
        ),
    ]);
    view.sentence(
        "Nothing of confirm was scored yet. Read the plan; once it is signed, promote scores confirm once, under both prompts.",
    );
    let (file, run) = (shell::word(&shown), shell::word(&facts.run));
    view.exit = Exit::Inconclusive;
    view.with_next(format!("clover gate simulate --plan {file}"))
        .with_next(format!("clover prereg sign {file} --countersign"))
        .with_next(format!("clover sgd promote {run}"))
}

/// A plan that is registered, and waits for its custodian.
pub fn unsigned(state: &State, run: &SgdRun, gate: &ManifestId) -> View {
    let facts = facts(state, run, Some(gate));
    let mut view = View::of(&facts);
    pairs(&mut view, &facts);
    view.sentence("The plan is registered, and its custodian has not countersigned it.");
    view.exit = Exit::Inconclusive;
    view.with_next("clover prereg sign FILE --countersign")
}

/// A gate that was cut on its way.
pub fn cut(state: &State, run: &SgdRun, gate: &ManifestId) -> View {
    let facts = facts(state, run, Some(gate));
    let mut view = View::of(&facts);
    pairs(&mut view, &facts);
    view.sentence("It was cut; the same command goes on where it stopped.");
    view.exit = Exit::Interrupted;
    view
}

/// A gate that ended without the claim: nothing is promoted.
pub fn held(state: &State, run: &SgdRun, gate: &ManifestId) -> View {
    let facts = facts(state, run, Some(gate));
    let mut view = View::of(&facts);
    ended(&mut view, state, gate, &facts);
    // A claim of another kind may hold, and nothing ships on it here.
    if view.exit == Exit::Done {
        (view.verdict, view.exit) = ("hold", Exit::Inconclusive);
    }
    view.sentence("Nothing is promoted: the gate did not show that the checkpoint agrees more with the labels.");
    let next = format!("clover gate show {}", shell::word(gate));
    view.with_next(next)
}

/// A checkpoint that was promoted.
pub fn promoted(state: &State, run: &SgdRun, gate: &ManifestId, said: &PromotionIssued) -> View {
    let facts = SgdPromotionShown {
        grade: Some(said.grade),
        ..facts(state, run, Some(gate))
    };
    let mut view = View::of(&facts);
    ended(&mut view, state, gate, &facts);
    view.line(format!("promoted, grade {}", word(&said.grade)));
    let next = format!("clover sgd prompt show {}", shell::word(&facts.run));
    view.with_next(next)
}

/// How a gate ended, in words and numbers.
fn ended(view: &mut View, state: &State, gate: &ManifestId, facts: &SgdPromotionShown) {
    pairs(view, facts);
    let Some(opened) = state.fold::<Gates>().by_id.get(gate) else {
        return;
    };
    let decided = facts.decided.map(|of| word(&of).replace('_', " "));
    let mut rows = vec![
        ("observed", facts.observed.to_string()),
        ("decided", decided.unwrap_or_else(|| "not yet".to_owned())),
    ];
    if let Some(look) = &opened.look {
        let micro = |value: i64| format!("{:.4}", value as f64 / 1e6);
        rows.push(("p, always valid", format!("{:.6}", look.p.value())));
        let (low, high) = (micro(look.cs_lo), micro(look.cs_hi));
        rows.push(("gain in agreement", format!("{low} to {high}")));
    }
    view.pairs(rows);
    (view.verdict, view.exit) = outcome_of(opened);
}
