//! The convex mixture of estimates whose influence has the least variance (algorithm 5).

use crate::offpolicy::estimate::Estimator;
use crate::offpolicy::estimate::OffPolicy;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::align;
use crate::weights::simplex;
use crate::weights::simplex::Square;

/// Added to the diagonal of the influences' covariance (`cje-eval` 0.3.0).
const RIDGE: f64 = 1e-4;
/// Condition of the covariance from which shares are equal.
const CONDITION_MAX: f64 = 1e8;
/// Shares above minus this count as 0.
const SLACK: f64 = 1e-12;

/// A mixture and what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatorStack {
    /// The mixture, with its influence and jackknife.
    pub estimate: OffPolicy,
    /// The share of each component, at least 0, of sum 1. Where components nearly coincide shares are not unique; the
    /// estimate is.
    pub shares: Vec<(Estimator, f64)>,
}

/// Stacks estimates over the same rows and folds: shares minimise `a' (cov + 1e-4 I) a`, or are equal where that matrix
/// could be worse conditioned than 1e8 (trace over the ridge bounds it). Influence and jackknife mix with the same shares.
///
/// # Errors
/// [`SampleError::Misaligned`] for influences or jackknives of different lengths; [`InsufficientData`] below two components or rows.
pub fn stack(components: &[OffPolicy]) -> Result<EstimatorStack, Unfit> {
    InsufficientData::unless("components", components.len(), 2)?;
    let (rows, folds) = (components[0].influence.len(), components[0].jackknife.len());
    for component in components {
        align("influence", component.influence.len(), rows)?;
        align("jackknife", component.jackknife.len(), folds)?;
        align("jackknife", component.held_jackknife.len(), folds)?;
    }
    InsufficientData::unless("rows", rows, 2)?;
    let columns: Vec<Vec<f64>> = components.iter().map(|c| c.influence.clone()).collect();
    let covariance = Square::covariance(&columns);
    let bound = covariance.trace() / RIDGE + 1.0;
    let shares = if bound < CONDITION_MAX {
        simplex::least_variance(&covariance.plus_diagonal(RIDGE), SLACK)
    } else {
        vec![1.0 / components.len() as f64; components.len()]
    };
    let mixed = |of: &dyn Fn(&OffPolicy) -> f64| {
        components
            .iter()
            .zip(&shares)
            .fold(0.0, |sum, (component, share)| sum + share * of(component))
    };
    let estimate = OffPolicy {
        estimator: Estimator::StackedDr,
        value: mixed(&|component| component.value),
        influence: (0..rows)
            .map(|row| mixed(&|component| component.influence[row]))
            .collect(),
        jackknife: (0..folds)
            .map(|fold| mixed(&|component| component.jackknife[fold]))
            .collect(),
        held_jackknife: (0..folds)
            .map(|fold| mixed(&|component| component.held_jackknife[fold]))
            .collect(),
    };
    if !estimate.value.is_finite() {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "components",
            expected: "finite estimates",
        }));
    }
    let named = components.iter().map(|component| component.estimator);
    Ok(EstimatorStack {
        estimate,
        shares: named.zip(shares).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(value: f64, influence: &[f64]) -> OffPolicy {
        OffPolicy {
            estimator: Estimator::DrCpo,
            value,
            influence: influence.to_vec(),
            jackknife: vec![value, value],
            held_jackknife: vec![value, value],
        }
    }

    #[test]
    fn the_mixture_is_no_worse_than_its_best() {
        let steady = component(0.4, &[0.1, -0.1, 0.1, -0.1]);
        let noisy = component(0.8, &[0.9, 0.9, -0.9, -0.9]);
        let found = stack(&[steady.clone(), noisy]).unwrap();
        assert!(found.shares[0].1 > 0.95 && found.estimate.value < 0.42);
        let twice = stack(&[steady.clone(), steady.clone()]).unwrap();
        assert!((twice.estimate.value - 0.4).abs() < 1e-15);
        assert!(matches!(
            stack(std::slice::from_ref(&steady)),
            Err(Unfit::InsufficientData(_))
        ));
        let short = component(0.5, &[0.1]);
        assert!(matches!(
            stack(&[steady.clone(), short]),
            Err(Unfit::Invalid(_))
        ));
        let wild = component(0.5, &[1e4, -1e4, 1e4, -1e4]);
        let equal = stack(&[steady, wild]).unwrap();
        assert!((equal.shares[0].1 - 0.5).abs() < 1e-15);
    }
}
