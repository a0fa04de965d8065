//! What a budget buys beyond one plan: surfaces of detectable effects, where the next unit of money belongs, and what
//! several policies share.

use crate::oua::Balance;
use crate::oua::Purchase;
use crate::planner::law;
use crate::planner::law::BudgetOptimum;
use crate::planner::law::Costs;
use crate::planner::law::Power;
use crate::planner::law::VarianceModel;
use crate::sample::SampleError;
use clover_num::math;

/// One cell of a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceCell {
    /// Scores, n.
    pub scores: u64,
    /// Labels, m, at most n.
    pub labels: u64,
    /// Standard error of one policy's value.
    pub standard_error: f64,
    /// Minimum detectable effect between two policies.
    pub mde: f64,
    /// `cS n + cY m`.
    pub cost: f64,
}

/// Detectable effects over counts of scores and shares of them that are labelled (CJE paper, appendix D.8: n against m / n,
/// with lines of equal cost). By counts, then shares; a share gives at least one label.
///
/// # Errors
/// [`SampleError`] for no cells, a count of 0, or a share outside (0, 1].
pub fn mde_surface(
    model: &VarianceModel,
    costs: &Costs,
    power: Power,
    scores: &[u64],
    shares: &[f64],
) -> Result<Vec<SurfaceCell>, SampleError> {
    let counted = !scores.is_empty() && scores.iter().all(|&n| n > 0);
    let shared = !shares.is_empty() && shares.iter().all(|share| *share > 0.0 && *share <= 1.0);
    if !counted || !shared {
        return Err(SampleError::Parameter {
            name: "surface",
            expected: "counts above 0 and shares above 0 and at most 1",
        });
    }
    let cell = |n: u64, share: f64| {
        let labels = law::whole((n as f64 * share).round()).clamp(1, n);
        let (scores, m) = (n as f64, labels as f64);
        let standard_error = model.variance(scores, m).sqrt();
        SurfaceCell {
            scores: n,
            labels,
            standard_error,
            mde: law::mde(standard_error, power),
            cost: costs.score() * scores + costs.label() * m,
        }
    };
    let cells = scores
        .iter()
        .flat_map(|&n| shares.iter().map(move |&share| cell(n, share)));
    Ok(cells.collect())
}

/// Where the next unit of money belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpendAdvice {
    /// `omega / (1 - omega)`: calibration over sampling variance; infinite without sampling variance.
    pub variance_odds: f64,
    /// Label spend over score spend.
    pub spend_odds: f64,
    /// Labels where the variance odds exceed the spend odds, else scores.
    pub next: Purchase,
    /// Variance that a unit of money spent on labels removes, over that on scores; 1 at the optimum.
    pub marginal_ratio: f64,
    /// The optimum of the same budget.
    pub optimum: BudgetOptimum,
    /// Standard error now.
    pub standard_error: f64,
    /// Standard error at the optimum.
    pub optimal_error: f64,
}

/// Reads the variance split of an estimate against what was spent (CJE paper, appendix F and section 5.4, point 7): with
/// `main` sampling variance from n scores and `calibration` variance from m labels, `sigma2_eval = n main` and
/// `sigma2_cal = m calibration`.
///
/// # Errors
/// [`SampleError`] for variances that are negative, not finite or both 0, or a balance without prices or rows.
pub fn spend_advice(
    main: f64,
    calibration: f64,
    balance: &Balance,
) -> Result<SpendAdvice, SampleError> {
    let (n, m) = (balance.scores as f64, balance.labels as f64);
    let costs = Costs::new(balance.score_cost, balance.label_cost)?;
    if balance.scores == 0 || balance.labels == 0 {
        return Err(SampleError::Parameter {
            name: "balance",
            expected: "some scores and some labels",
        });
    }
    let model = VarianceModel::new(n * main, m * calibration)?;
    let (score_spend, label_spend) = (costs.score() * n, costs.label() * m);
    let (variance_odds, spend_odds) = (calibration / main, label_spend / score_spend);
    let optimum = law::square_root_law(score_spend + label_spend, &model, &costs);
    // sigma2_cal / (m^2 cY) over sigma2_eval / (n^2 cS).
    let marginal_ratio = variance_odds / spend_odds;
    let part = |variance: f64, rows: f64| if variance > 0.0 { variance / rows } else { 0.0 };
    let optimal =
        part(model.evaluation(), optimum.scores) + part(model.calibration(), optimum.labels);
    Ok(SpendAdvice {
        variance_odds,
        spend_odds,
        next: if variance_odds > spend_odds {
            Purchase::Labels
        } else {
            Purchase::Scores
        },
        marginal_ratio,
        optimum,
        standard_error: (main + calibration).sqrt(),
        optimal_error: optimal.sqrt(),
    })
}

/// What several policies cost on one shared calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedCost {
    /// Policies.
    pub policies: u64,
    /// `P cS n`.
    pub scores: f64,
    /// `cY m`, paid once.
    pub labels: f64,
    /// Both.
    pub total: f64,
    /// Per policy.
    pub per_policy: f64,
    /// `P cY n`: labels on every row of every policy, no judge.
    pub labels_alone: f64,
    /// That over the total.
    pub factor: f64,
}

/// Costs of P policies that share n prompts and m labels (CJE paper, appendix F and table 6).
///
/// # Errors
/// [`SampleError::Parameter`] for no policies, no scores, or costs that overflow.
pub fn shared_cost(
    policies: u64,
    scores: u64,
    labels: u64,
    costs: &Costs,
) -> Result<SharedCost, SampleError> {
    let (p, n, m) = (policies as f64, scores as f64, labels as f64);
    let (judge, label) = (p * costs.score() * n, costs.label() * m);
    let (total, alone) = (judge + label, p * costs.label() * n);
    if policies == 0 || scores == 0 || !math::sum(&[total, alone]).is_finite() {
        return Err(SampleError::Parameter {
            name: "policies",
            expected: "some policies and scores at finite cost",
        });
    }
    Ok(SharedCost {
        policies,
        scores: judge,
        labels: label,
        total,
        per_policy: total / p,
        labels_alone: alone,
        factor: alone / total,
    })
}

impl Costs {
    /// The prices of P policies that share their labels: a prompt is scored P times (CJE paper, appendix F: cS becomes P cS).
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for no policies, or a price that overflows.
    pub fn shared_by(&self, policies: u64) -> Result<Self, SampleError> {
        Self::new(self.score() * policies as f64, self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() < within
    }

    #[test]
    fn five_policies_cost_what_the_paper_says() {
        // source: CJE paper, table 6: n = 5,000, five policies, $55.00 of labels against $0.55 + $3.50.
        let costs = Costs::new(3.5 / 25_000.0, 55.0 / 25_000.0).unwrap();
        let found = shared_cost(5, 5000, 250, &costs).unwrap();
        assert!(near(found.labels, 0.55, 1e-12) && near(found.scores, 3.5, 1e-12));
        assert!(near(found.total, 4.05, 1e-12) && near(found.factor, 13.58, 0.005));
        assert!(near(found.per_policy, 0.81, 1e-12));
        assert!(shared_cost(0, 1, 1, &costs).is_err());
        let shared = costs.shared_by(5).unwrap();
        assert!(near(shared.score(), 5.0 * costs.score(), 1e-18));
        assert!(costs.shared_by(0).is_err());
    }

    #[test]
    fn the_next_unit_goes_where_it_removes_most() {
        let balance = Balance {
            scores: 1000,
            labels: 100,
            score_cost: 1.0,
            label_cost: 10.0,
        };
        let even = spend_advice(1e-4, 1e-4, &balance).unwrap();
        // Equal spend and equal variance: the optimum.
        assert!(near(even.marginal_ratio, 1.0, 1e-12));
        assert!(near(even.optimum.scores, 1000.0, 1e-9) && near(even.optimum.labels, 100.0, 1e-9));
        assert!(near(even.standard_error, even.optimal_error, 1e-15));
        let short = spend_advice(1e-4, 4e-4, &balance).unwrap();
        assert_eq!(short.next, Purchase::Labels);
        assert!(short.optimal_error < short.standard_error && short.optimum.labels > 100.0);
        let long = spend_advice(1e-4, 0.0, &balance).unwrap();
        assert_eq!(long.next, Purchase::Scores);
        assert!(spend_advice(f64::NAN, 1e-4, &balance).is_err());
        let none = Balance {
            labels: 0,
            ..balance
        };
        assert!(spend_advice(1e-4, 1e-4, &none).is_err());
    }

    #[test]
    fn a_surface_falls_with_both_counts() {
        let model = VarianceModel::new(0.05, 0.02).unwrap();
        let costs = Costs::new(0.01, 0.16).unwrap();
        let power = Power::new(0.8, 0.05).unwrap();
        let cells = mde_surface(&model, &costs, power, &[500, 2000], &[0.05, 0.25]).unwrap();
        let mde: Vec<f64> = cells.iter().map(|cell| cell.mde).collect();
        assert!(mde[0] > mde[1] && mde[0] > mde[2] && mde[1] > mde[3] && mde[2] > mde[3]);
        assert_eq!((cells[0].labels, cells[3].labels), (25, 500));
        assert!(near(cells[0].cost, 5.0 + 4.0, 1e-12));
        for wrong in [0.0, 1.5, f64::NAN] {
            assert!(mde_surface(&model, &costs, power, &[500], &[wrong]).is_err());
        }
        assert!(mde_surface(&model, &costs, power, &[], &[0.5]).is_err());
    }
}
