//! What a planned iteration would decide, before it is registered.

use serde::Serialize;

use crate::event::payload::predicate::Criterion;
use crate::event::payload::predicate::CriterionSplit;
use crate::event::payload::predicate::Thresholds;
use crate::view::View;
use crate::view::simulate::Setting;
use crate::view::simulate::larger;
use crate::workflow::predicate;
use crate::workflow::simulate;
use crate::workflow::simulate::iteration;
use crate::workflow::simulate::iteration::Design;
use crate::workflow::simulate::iteration::Proposal;

pub use crate::view::simulate::larger::Larger;
pub use crate::view::simulate::larger::is_short;

/// How many of how many, with the 95 % interval of the share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// How many.
    pub count: u64,
    /// Upper end of the interval.
    pub high: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Of how many.
    pub of: u64,
    /// Their quotient, from 0 to 1; `null` of none.
    pub share: Option<f64>,
}

impl From<iteration::Share> for Share {
    fn from(of: iteration::Share) -> Self {
        Self {
            count: of.count,
            high: of.high,
            low: of.low,
            of: of.of,
            share: of.share,
        }
    }
}

/// A gate that did not let runs pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateBlock {
    /// Which.
    pub gate: Criterion,
    /// How many of the runs that did not pause.
    pub runs: Share,
    /// On which rows.
    pub split: CriterionSplit,
}

/// What runs came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// Of all runs: every gate passed.
    pub accepted: Share,
    /// Of all runs: accepted, and truly no better.
    pub accepted_wrongly: Share,
    /// Gates that blocked, in order; a run may be blocked by several.
    pub blocked: Vec<GateBlock>,
    /// Under a sequential test, of the runs that reached confirm: it crossed; `null` under another test.
    pub crossed: Option<Share>,
    /// Mean over the runs that did not pause of the standard deviation of a row's change on confirm.
    pub difference_sd: Option<f64>,
    /// Mean change of the squared error on confirm over the runs that did not pause.
    pub dmse: Option<f64>,
    /// Of the runs that did not pause: P8 passed.
    pub p8: Share,
    /// Of the runs that reached confirm: P8 passed, and truly no better.
    pub p8_wrongly: Share,
    /// Of all runs: paused for labels.
    pub paused: Share,
    /// Of all runs: every gate on dev passed.
    pub reached: Share,
    /// Of the runs that reached confirm: accepted, and truly no better.
    pub reached_wrongly: Share,
    /// Runs.
    pub runs: u64,
    /// Under a sequential test, of the runs that reached confirm: the mean share of labels that stay sealed; `null` under
    /// another test.
    pub saved: Option<f64>,
    /// Mean change of the squared error on fresh rows over the runs that did not pause.
    pub worth: Option<f64>,
}

impl From<&iteration::Summary> for RunSummary {
    fn from(of: &iteration::Summary) -> Self {
        let blocked = of.blocked.iter().map(|one| GateBlock {
            gate: one.gate,
            runs: one.runs.into(),
            split: one.split,
        });
        Self {
            accepted: of.accepted.into(),
            accepted_wrongly: of.accepted_wrongly.into(),
            blocked: blocked.collect(),
            crossed: of.crossed.map(Share::from),
            difference_sd: of.difference_sd,
            dmse: of.dmse,
            p8: of.p8.into(),
            p8_wrongly: of.p8_wrongly.into(),
            paused: of.paused.into(),
            reached: of.reached.into(),
            reached_wrongly: of.reached_wrongly.into(),
            runs: of.runs,
            saved: of.saved,
            worth: of.worth,
        }
    }
}

/// A candidate, and what runs with it came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CandidateRuns {
    /// The candidate: `fix`, which mends the fault, or `null`, which has no merit.
    pub candidate: &'static str,
    /// What they came to.
    pub found: RunSummary,
}

/// A larger size, and what runs of a true fix came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LargerRuns {
    /// What they came to.
    pub found: RunSummary,
    /// Labelled rows of fit, dev and confirm.
    pub sizes: [usize; 3],
}

/// What a planned iteration would decide.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SimulatedIteration {
    /// Whether the calibrator sees the length of a response.
    pub covariates: bool,
    /// Whether each domain must pass, where domains are environments; `null` where they are not.
    pub domains: Option<bool>,
    /// Fresh rows that truth was read on.
    pub fresh: u64,
    /// Larger sizes that were tried, where a true fix is accepted too rarely.
    pub larger: Vec<LargerRuns>,
    /// Slices that must not regress: the first ones.
    pub must_not_regress: usize,
    /// The power that is asked for, from 0 to 1.
    pub power: f64,
    /// Iterations with each candidate.
    pub runs: u64,
    /// The seed.
    pub seed: u64,
    /// What the world is like.
    pub setting: Setting,
    /// What came of each candidate.
    pub simulated: Vec<CandidateRuns>,
    /// Labelled rows of fit, dev and confirm.
    pub sizes: [usize; 3],
    /// What the gates hold a candidate to.
    pub thresholds: Thresholds,
}

/// What was asked of a planned iteration.
#[derive(Clone, Copy, Debug)]
pub struct SimulationTerms<'a> {
    /// The plan.
    pub design: &'a Design,
    /// The world.
    pub setting: simulate::Setting,
    /// Iterations with each candidate.
    pub runs: u64,
    /// Fresh rows that truth is read on.
    pub fresh: u64,
    /// The seed.
    pub seed: u64,
    /// The power that is asked for, from 0 to 1.
    pub power: f64,
}

fn percent(share: &iteration::Share) -> String {
    match share.share {
        Some(value) => format!("{value:.3} [{:.3}, {:.3}]", share.low, share.high),
        None => "-".to_owned(),
    }
}

/// What stopped candidates, a row a candidate and gate.
fn blocking(found: &[(Proposal, iteration::Summary)]) -> Vec<Vec<String>> {
    let gates = found.iter().flat_map(|(proposal, of)| {
        let blocked = of.blocked.iter().map(|one| {
            let asks = predicate::gate(one.gate).asks;
            vec![
                proposal.as_str().to_owned(),
                format!("{} on {}", one.gate, one.split.as_str()),
                asks.to_owned(),
                percent(&one.runs),
            ]
        });
        let paused = of.paused.count > 0;
        let paused = paused.then(|| {
            let share = percent(&of.paused);
            vec![
                proposal.as_str().to_owned(),
                "oua".to_owned(),
                "paused for labels".to_owned(),
                share,
            ]
        });
        paused.into_iter().chain(blocked)
    });
    gates.collect()
}

fn facts(
    asked: &SimulationTerms<'_>,
    found: &[(Proposal, iteration::Summary)],
    larger: &[Larger],
) -> SimulatedIteration {
    let design = asked.design;
    let larger = larger.iter().map(|of| LargerRuns {
        found: (&of.found).into(),
        sizes: of.sizes,
    });
    let simulated = found.iter().map(|(proposal, of)| CandidateRuns {
        candidate: proposal.as_str(),
        found: of.into(),
    });
    SimulatedIteration {
        covariates: design.covariates,
        domains: design.domains,
        fresh: asked.fresh,
        larger: larger.collect(),
        must_not_regress: design.must_not_regress,
        power: asked.power,
        runs: asked.runs,
        seed: asked.seed,
        setting: asked.setting.into(),
        simulated: simulated.collect(),
        sizes: design.sizes,
        thresholds: design.thresholds.clone(),
    }
}

/// How often each candidate is accepted, what blocks it, and the sizes at which a true fix is accepted.
pub fn show(
    asked: &SimulationTerms<'_>,
    found: &[(Proposal, iteration::Summary)],
    larger: &[Larger],
) -> View {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:+.5}"));
    let head = [
        "candidate",
        "to confirm",
        "accepted",
        "of those to confirm, wrongly",
        "dmse",
        "true",
    ];
    let rows = found.iter().map(|(proposal, of)| {
        vec![
            proposal.as_str().to_owned(),
            percent(&of.reached),
            percent(&of.accepted),
            percent(&of.reached_wrongly),
            number(of.dmse),
            number(of.worth),
        ]
    });
    let facts = facts(asked, found, larger);
    let mut view = View::of(&facts).with_verdict("simulated");
    view.table(&head, rows);
    let gates = blocking(found);
    if !gates.is_empty() {
        view.gap();
        view.table(&["candidate", "criterion", "asks", "blocks"], gates);
    }
    for (proposal, of) in found {
        if let Some((saved, crossed)) = of.saved.zip(of.crossed.as_ref()) {
            view.line(format!(
                "{}: the sequential test crosses {} and leaves {saved:.3} of the labels sealed, of runs to confirm",
                proposal.as_str(),
                percent(crossed)
            ));
        }
    }
    if let Some((Proposal::Fix, fix)) = found.first() {
        if let Some((dmse, sd)) = fix.dmse.zip(fix.difference_sd) {
            view.line(format!(
                "fix: change of a confirm row: mean {dmse:+.5}, deviation {sd:.5} (effect, difference_sd of a plan)"
            ));
        }
        larger::say(&mut view, asked.design, (fix, asked.power), larger);
    }
    let [fit, dev, confirm] = asked.design.sizes;
    let alpha = asked.design.thresholds.alpha_micro;
    view.line(format!(
        "{} iterations each · fit/dev/confirm {fit}/{dev}/{confirm} · {} slices · 95 % intervals · alpha {alpha}",
        asked.runs, asked.setting.slices
    ));
    view
}
