//! What a plan of runs in sixteen cells says of its claims: differences within a task, a gate for each claim over tasks in their
//! order, and the family of gates closed by the mean.

use clover_event::payload::meta::MetaGate;
use clover_event::payload::meta_plan::MetaClaim;
use clover_event::payload::meta_plan::MetaClaimResult;
use clover_event::payload::meta_plan::MetaConcluded;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_num::Finite;
use clover_num::math;
use clover_projection::wf::CrossedPlan;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_projection::wf::cells::CELLS;
use clover_projection::wf::cells::PlanPlace;
use clover_stats::eprocess::bettor;
use clover_stats::eprocess::family;
use clover_stats::eprocess::merge::EValues;

use crate::wf::measure;
use crate::wf::measure::FRACTIONS;

/// Cells whose runs stand against one another in a claim, with their weights: a difference is the sum of these.
type ContrastArms = Vec<(u64, f64)>;

/// What one cell of a task came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellWorth {
    /// Whether the score put candidates in the order of their worth; `None` where none could be compared.
    pub gamma: Option<f64>,
    /// Probability that one proposal gains; `None` where nothing was expanded.
    pub kappa: Option<f64>,
    /// Whether the winner was of use.
    pub succeeds: bool,
}

/// Contrasts of a claim within a task. A bit of a cell is a factor: 1 edits of structure, 2 the strong executor, 4 the strong
/// optimizer, 8 the update.
fn contrasts(claim: MetaClaim) -> Vec<ContrastArms> {
    match claim {
        MetaClaim::OuterGamma | MetaClaim::OuterKappa => (0..8)
            .map(|cell| vec![(cell + 8, 1.0), (cell, -1.0)])
            .collect(),
        MetaClaim::StructureKappa => [0, 4, 8, 12]
            .map(|cell| {
                vec![
                    (cell + 1, 0.5),
                    (cell, -0.5),
                    (cell + 3, -0.5),
                    (cell + 2, 0.5),
                ]
            })
            .into(),
    }
}

fn measured(claim: MetaClaim, of: CellWorth) -> Option<f64> {
    match claim {
        MetaClaim::OuterGamma => of.gamma,
        MetaClaim::OuterKappa | MetaClaim::StructureKappa => of.kappa,
    }
}

/// The difference of a claim in one task, from -1 to 1: the mean over the contrasts of which every cell says something; `None`
/// where there is none.
fn difference(claim: MetaClaim, cells: &[CellWorth]) -> Option<f64> {
    let all = contrasts(claim).into_iter().filter_map(|arms| {
        let parts = arms.into_iter().map(|(cell, weight)| {
            let of = cells.get(usize::try_from(cell).ok()?)?;
            Some(measured(claim, *of)? * weight)
        });
        let parts: Option<Vec<f64>> = parts.collect();
        parts.map(|parts| math::sum(&parts))
    });
    let all: Vec<f64> = all.collect();
    (!all.is_empty()).then(|| (math::sum(&all) / all.len() as f64).clamp(-1.0, 1.0))
}

/// What a run came to; `useful` is the least worth of a workflow that is of use, in millionths.
///
/// # Errors
/// [`Unmet`] for numbers that give no measure.
pub fn worth(run: &WfRun, useful: i64) -> Result<CellWorth, Unmet> {
    Ok(CellWorth {
        gamma: measure::gamma(run)?,
        kappa: measure::kappa(run)?,
        succeeds: run.succeeds(useful) == Some(true),
    })
}

/// Tasks of a plan in order, each with its sixteen cells in order.
///
/// # Errors
/// [`Unmet`] where a run of it is missing, or its truth.
pub fn worths(runs: &WfRuns, plan: &CrossedPlan) -> Result<Vec<Vec<CellWorth>>, Unmet> {
    let useful = plan.said.useful_micro.value();
    let task = |task: u64| {
        let cells = (0..CELLS).map(|cell| {
            let name = PlanPlace { cell, task }.run(&plan.said.plan);
            let run = name.and_then(|name| runs.by_id.get(&name));
            let run = run.filter(|run| run.is_known());
            worth(
                run.required("a run of the plan with its truth known")?,
                useful,
            )
        });
        cells.collect()
    };
    (0..plan.said.tasks.value()).map(task).collect()
}

/// Differences of a claim, of the tasks that have one, in order.
pub fn differences(claim: MetaClaim, tasks: &[Vec<CellWorth>]) -> Vec<f64> {
    let all = tasks.iter();
    all.filter_map(|cells| difference(claim, cells)).collect()
}

/// What becomes of the claims of a plan. A claim holds where its e-value, closed by the mean with those of the others, reaches 1
/// over the level, rounding included.
///
/// # Errors
/// [`Unmet`] where a run of it is missing, or its truth.
pub fn concluded(runs: &WfRuns, plan: &CrossedPlan) -> Result<MetaConcluded, Unmet> {
    let alpha = plan.said.alpha_micro.value() as f64 / 1e6;
    let tasks = worths(runs, plan)?;
    let claims = MetaClaim::ALL.iter();
    let gates: Vec<(MetaClaim, MetaGate)> = claims
        .map(|claim| (*claim, gate(*claim, &tasks, alpha)))
        .collect();
    let wealths = gates.iter();
    let e: Vec<f64> = wealths
        .map(|(_, gate)| math::exp(gate.log_wealth.value()))
        .collect();
    let values = EValues::new(&e).map_err(|error| Unmet {
        expected: "e-values".to_owned(),
        found: error.to_string(),
    })?;
    let results = family::closed_mean(values).into_iter().zip(gates);
    let results = results.map(|(closed, (claim, gate))| {
        let log = math::ln(closed);
        let count = tasks.len() as u64;
        MetaClaimResult {
            claim,
            gate,
            holds: bettor::is_past(count, FRACTIONS, log, math::ln(1.0 / alpha)),
            log_closed: Finite::new(log).unwrap_or_default(),
        }
    });
    Ok(MetaConcluded {
        claims: results.collect(),
        plan: plan.said.plan.clone(),
    })
}

fn gate(claim: MetaClaim, tasks: &[Vec<CellWorth>], alpha: f64) -> MetaGate {
    measure::gate(&differences(claim, tasks), (0.0, alpha))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells whose kappa is what is said of each, and gamma its half.
    fn cells(kappa: impl Fn(u64) -> Option<f64>) -> Vec<CellWorth> {
        let all = (0..CELLS).map(|cell| CellWorth {
            gamma: kappa(cell).map(|of| of / 2.0),
            kappa: kappa(cell),
            succeeds: false,
        });
        all.collect()
    }

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-15)
    }

    #[test]
    fn differences_follow_their_factors() {
        // source: by hand; kappa is 0.1 more for structure, 0.3 more where the executor is weak besides, 0.2 more with the update.
        let kappa = |cell: u64| {
            let has = |bit| f64::from(u8::from(cell & bit > 0));
            let weak = 1.0 - has(2);
            Some(0.1 + has(1) * (0.1 + 0.3 * weak) + 0.2 * has(8))
        };
        let all = cells(kappa);
        assert!(near(difference(MetaClaim::OuterGamma, &all), 0.1));
        assert!(near(difference(MetaClaim::OuterKappa, &all), 0.2));
        assert!(near(difference(MetaClaim::StructureKappa, &all), 0.15));
    }

    #[test]
    fn a_cell_that_says_nothing_takes_its_contrast_away() {
        let all = cells(|cell| (cell != 3).then_some(if cell == 8 { 1.0 } else { 0.0 }));
        // Seven pairs with and without the update are whole, one of them with a difference of 1.
        assert!(near(difference(MetaClaim::OuterKappa, &all), 1.0 / 7.0));
        // Cell 9 is prompts, weak, with the update: its contrast is one of three.
        assert!(near(
            difference(MetaClaim::StructureKappa, &all),
            -0.5 / 3.0
        ));
        assert_eq!(difference(MetaClaim::OuterGamma, &cells(|_| None)), None);
    }
}
