//! How unevenly weight lies on rows.

use std::collections::BTreeMap;

use crate::inference;
use crate::quantile;
use crate::sample::SampleError;
use crate::sample::Weights;
use crate::sample::align;
use clover_num::math;

/// Effective sample size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ess {
    /// `(sum w)^2 / sum w^2`, 1 to the count of rows.
    pub rows: f64,
    /// As a share of the rows, above 0 and at most 1.
    pub fraction: f64,
}

/// Effective sample size of weights of any scale (CJE paper, appendix D.1). Scaled by the largest weight first, so that
/// no square overflows.
pub fn ess(weights: Weights<'_>) -> Ess {
    let weights = weights.as_slice();
    let largest = weights.iter().fold(0.0_f64, |a, &b| a.max(b));
    let scaled: Vec<f64> = weights.iter().map(|w| w / largest).collect();
    let total = math::sum(&scaled);
    let rows = total * total / math::dot(&scaled, &scaled);
    Ess {
        rows,
        fraction: rows / weights.len() as f64,
    }
}

/// Share of all weight on the `share` of rows that weigh most; at least one row.
///
/// # Errors
/// [`SampleError::Parameter`] unless `share` is above 0 and at most 1.
pub fn top_mass(weights: Weights<'_>, share: f64) -> Result<f64, SampleError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(SampleError::Parameter {
            name: "share of rows",
            expected: "a number above 0 and at most 1",
        });
    }
    let sorted = quantile::ascending(weights.as_slice());
    let rows = sorted.len();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the rows"
    )]
    let top = ((rows as f64 * share) as usize).clamp(1, rows);
    Ok(math::sum(&sorted[rows - top..]) / math::sum(&sorted))
}

/// What is printed of weights beside their effective sample size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concentration {
    /// Rows.
    pub rows: usize,
    /// Effective sample size.
    pub ess: Ess,
    /// Share of all weight on the heaviest row.
    pub max_share: f64,
    /// Heaviest over median weight; `None` where more than half of the rows weigh nothing.
    pub max_over_median: Option<f64>,
    /// 99.5th percentile of the mean-one weights (type 7).
    pub percentile_99_5: f64,
    /// Squared coefficient of variation (denominator n).
    pub cv_squared: f64,
    /// Share of all weight on the 5 % of rows that weigh most.
    pub top_5_percent: f64,
}

/// Measures weights of any scale (CJE paper, appendix D.1).
pub fn concentration(weights: Weights<'_>) -> Concentration {
    let values = weights.as_slice();
    let rows = values.len();
    let sorted = quantile::ascending(values);
    let largest = sorted[rows - 1];
    let scaled: Vec<f64> = sorted.iter().map(|w| w / largest).collect();
    let mean = math::mean(&scaled);
    let median = quantile::type_7(&scaled, 0.5);
    let variance = inference::squares(&scaled) / rows as f64;
    Concentration {
        rows,
        ess: ess(weights),
        max_share: 1.0 / (mean * rows as f64),
        max_over_median: (median > 0.0).then(|| 1.0 / median),
        percentile_99_5: quantile::type_7(&scaled, 0.995) / mean,
        cv_squared: variance / (mean * mean),
        top_5_percent: top_mass(weights, 0.05).unwrap_or(1.0),
    }
}

/// The empirical complementary distribution of weights: for each distinct weight, in increasing order, the share of rows
/// that weigh at least as much. Drawn on two logarithmic axes; a straight end is a power tail.
pub fn ccdf(weights: Weights<'_>) -> Vec<(f64, f64)> {
    let sorted = quantile::ascending(weights.as_slice());
    let rows = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, &weight) in sorted.iter().enumerate() {
        if points.last().is_none_or(|last| last.0 < weight) {
            points.push((weight, (rows - at as f64) / rows));
        }
    }
    points
}

/// Overlap within one subgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct Subgroup<K> {
    /// Its name.
    pub name: K,
    /// Rows.
    pub rows: usize,
    /// Share of all weight on it.
    pub weight_share: f64,
    /// Weight share over row share: above 1 the target visits it more than the logger did.
    pub lift: f64,
    /// Diagnostics of its own weights; `None` where all are 0.
    pub concentration: Option<Concentration>,
}

/// Diagnostics by subgroup, in order of their names (CJE paper, limitations: subgroups and fairness).
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn subgroups<K: Ord + Clone>(
    weights: Weights<'_>,
    names: &[K],
) -> Result<Vec<Subgroup<K>>, SampleError> {
    let values = weights.as_slice();
    align("subgroups", names.len(), values.len())?;
    let mut members: BTreeMap<&K, Vec<f64>> = BTreeMap::new();
    for (name, &weight) in names.iter().zip(values) {
        members.entry(name).or_default().push(weight);
    }
    let total = math::sum(values);
    let one = |(name, own): (&K, Vec<f64>)| {
        let weight_share = math::sum(&own) / total;
        let row_share = own.len() as f64 / values.len() as f64;
        let checked = Weights::new("weights", &own, own.len());
        Subgroup {
            name: name.clone(),
            rows: own.len(),
            weight_share,
            lift: weight_share / row_share,
            concentration: checked.ok().map(concentration),
        }
    };
    Ok(members.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weigh(values: &[f64]) -> Weights<'_> {
        Weights::new("w", values, values.len()).unwrap()
    }

    #[test]
    fn extremes_have_their_numbers() {
        let even = concentration(weigh(&[3.0; 8]));
        assert!((even.ess.fraction - 1.0).abs() < 1e-15 && even.cv_squared.abs() < 1e-15);
        assert_eq!(even.max_over_median, Some(1.0));
        let one = concentration(weigh(&[0.0, 0.0, 0.0, 1e300]));
        assert!((one.ess.rows - 1.0).abs() < 1e-15 && (one.max_share - 1.0).abs() < 1e-15);
        assert_eq!(one.max_over_median, None);
        assert!((one.cv_squared - 3.0).abs() < 1e-14);
        // By hand: place 2.985 between 0 and 4.
        assert!((one.percentile_99_5 - 3.94).abs() < 1e-12);
        let single = concentration(weigh(&[2.0]));
        assert!(
            (single.ess.fraction - 1.0).abs() < 1e-15 && (single.top_5_percent - 1.0).abs() < 1e-15
        );
        assert!(
            top_mass(weigh(&[1.0]), 0.0).is_err() && top_mass(weigh(&[1.0]), f64::NAN).is_err()
        );
    }

    #[test]
    fn the_complement_falls_from_one() {
        let points = ccdf(weigh(&[2.0, 0.0, 1.0, 2.0]));
        assert_eq!(points, [(0.0, 1.0), (1.0, 0.75), (2.0, 0.5)]);
    }

    #[test]
    fn subgroups_tell_where_the_weight_went() {
        let found = subgroups(weigh(&[1.0, 1.0, 6.0, 0.0]), &["a", "a", "b", "c"]).unwrap();
        assert!(
            (found[1].weight_share - 0.75).abs() < 1e-15 && (found[1].lift - 3.0).abs() < 1e-15
        );
        assert!(found[2].concentration.is_none() && found[2].lift.abs() < 1e-15);
        assert!(subgroups(weigh(&[1.0]), &["a", "b"]).is_err());
    }

    proptest! {
        #[test]
        fn scale_does_not_matter(
            weights in prop::collection::vec(0.001..100.0_f64, 1..40), scale in 1e-200..1e200_f64,
        ) {
            let scaled: Vec<f64> = weights.iter().map(|w| w * scale).collect();
            let (a, b) = (concentration(weigh(&weights)), concentration(weigh(&scaled)));
            prop_assert!((a.ess.fraction - b.ess.fraction).abs() < 1e-12);
            prop_assert!((a.max_share - b.max_share).abs() < 1e-12);
            prop_assert!((a.percentile_99_5 - b.percentile_99_5).abs() < 1e-9);
            // Mean-one weights: ESS / n = 1 / (1 + CV^2).
            prop_assert!((a.ess.fraction * (1.0 + a.cv_squared) - 1.0).abs() < 1e-9);
        }
    }
}
