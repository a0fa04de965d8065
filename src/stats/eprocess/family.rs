//! Families of gates: which claims stand together. Every procedure holds under arbitrary dependence of the e-values.
//!
//! Each e-value must be valid for its own hypothesis: a candidate that was chosen after seeing these outcomes is covered
//! by none of them.

use crate::eprocess::merge::EValues;
use crate::sample::SampleError;

/// Places of the e-values, largest first; ties by place.
fn ranked(e: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..e.len()).collect();
    order.sort_by(|&a, &b| e[b].total_cmp(&e[a]));
    order
}

/// Marks the first `count` of an order.
fn marked(order: &[usize], count: usize) -> Vec<bool> {
    let mut reject = vec![false; order.len()];
    for &place in &order[..count] {
        reject[place] = true;
    }
    reject
}

/// e-BH at `alpha` in (0, 1): with e sorted descending, the k* largest for `k* = max{k : k e_(k) / K >= 1/alpha}`.
///
/// # Errors
/// [`SampleError::Parameter`] for another level.
pub fn ebh(e: EValues<'_>, alpha: f64) -> Result<Vec<bool>, SampleError> {
    crate::sample::open_unit("alpha", alpha)?;
    let order = ranked(e.as_slice());
    let all = order.len() as f64;
    let last = (1..=order.len()).rfind(|&k| {
        let e = e.as_slice()[order[k - 1]];
        k as f64 * e / all >= 1.0 / alpha
    });
    Ok(marked(&order, last.unwrap_or(0)))
}

/// Closed e-BH: the largest r whose top set R has, for every j of R and i outside it,
/// `sum of the j smallest in R + sum of the i smallest outside >= (i + j) j / (alpha r)`.
///
/// Takes O(K^3) steps at worst, O(K^2) for each r, with sums kept as it goes.
///
/// # Errors
/// [`SampleError::Parameter`] for a level outside (0, 1).
pub fn closed_ebh(e: EValues<'_>, alpha: f64) -> Result<Vec<bool>, SampleError> {
    crate::sample::open_unit("alpha", alpha)?;
    let order = ranked(e.as_slice());
    let sorted: Vec<f64> = order.iter().map(|&place| e.as_slice()[place]).collect();
    let stands = |r: usize| {
        let bar = alpha * r as f64;
        let mut inside = 0.0;
        (1..=r).all(|j| {
            inside += sorted[r - j];
            let mut total = inside;
            let mut holds = total >= (j * j) as f64 / bar;
            for i in 1..=sorted.len() - r {
                total += sorted[sorted.len() - i];
                holds &= total >= ((i + j) * j) as f64 / bar;
            }
            holds
        })
    };
    let most = (1..=order.len()).rfind(|&r| stands(r));
    Ok(marked(&order, most.unwrap_or(0)))
}

/// Closed testing with the mean: `e*_k = min_j (e_k + sum of the j smallest others) / (j + 1)`, j = 0..K-1. Rejecting
/// where e* is at least 1/alpha holds the familywise error.
pub fn closed_mean(e: EValues<'_>) -> Vec<f64> {
    let mut order = ranked(e.as_slice());
    order.reverse();
    let adjusted = |place: usize| {
        let one = e.as_slice()[place];
        let (mut total, mut count, mut least) = (one, 1.0, one);
        for &other in order.iter().filter(|&&other| other != place) {
            total += e.as_slice()[other];
            count += 1.0;
            least = least.min(total / count);
        }
        least
    };
    (0..order.len()).map(adjusted).collect()
}

/// e-LOND over gates in the order of their registration, each decided before the next: the level and whether it is
/// rejected.
///
/// # Errors
/// [`SampleError::Parameter`] for a level outside (0, 1).
pub fn elond(e: EValues<'_>, alpha: f64) -> Result<Vec<(f64, bool)>, SampleError> {
    crate::sample::open_unit("alpha", alpha)?;
    let mut rejections = 0.0;
    let step = |(e, t): (&f64, f64)| {
        let level = alpha * (1.0 / (t * (t + 1.0))) * (rejections + 1.0);
        let reject = *e >= 1.0 / level;
        rejections += if reject { 1.0 } else { 0.0 };
        (level, reject)
    };
    let indexes = (1..=e.as_slice().len()).map(|t| t as f64);
    Ok(e.as_slice().iter().zip(indexes).map(step).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether every subset's mean passes its share of discoveries in `reject`, by enumeration.
    fn closed_by_subsets(e: &[f64], reject: &[bool], alpha: f64) -> bool {
        let chosen = reject.iter().filter(|reject| **reject).count() as f64;
        (1_u32..1 << e.len()).all(|subset| {
            let members = (0..e.len()).filter(|at| subset >> at & 1 == 1);
            let (mut total, mut size, mut hits) = (0.0, 0.0, 0.0);
            for at in members {
                total += e[at];
                size += 1.0;
                hits += f64::from(u8::from(reject[at]));
            }
            total / size >= hits / (alpha * chosen) * (1.0 - 1e-12)
        })
    }

    proptest! {
        #[test]
        fn closing_never_loses_a_rejection(e in prop::collection::vec(0.0..200.0_f64, 1..9)) {
            let values = EValues::new(&e).unwrap();
            let plain = ebh(values, 0.1).unwrap();
            let closed = closed_ebh(values, 0.1).unwrap();
            prop_assert!(plain.iter().zip(&closed).all(|(plain, closed)| *closed || !plain));
            if closed.contains(&true) {
                prop_assert!(closed_by_subsets(&e, &closed, 0.1));
            }
            for (adjusted, e) in closed_mean(values).iter().zip(&e) {
                prop_assert!(adjusted <= e);
            }
        }
    }
}
