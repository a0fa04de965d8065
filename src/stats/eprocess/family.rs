//! Families of gates: which claims stand together. Every procedure holds under arbitrary dependence of the e-values.
//!
//! Each e-value must be valid for its own hypothesis: a candidate that was chosen after seeing these outcomes is covered
//! by none of them.

use crate::stats::eprocess::design::MILLION;
use crate::stats::eprocess::design::Threshold;
use crate::stats::eprocess::merge::EValues;
use crate::stats::sample::SampleError;

/// How a family of gates is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The registered levels of the gates sum to at most the family's: familywise error.
    Spend,
    /// False discovery rate (Wang and Ramdas 2022).
    EBh,
    /// The same by closed testing, never fewer rejections (Xu et al. 2025).
    ClosedEBh,
    /// Familywise error by closed testing with the mean (Vovk and Wang 2021).
    ClosedMean,
    /// Online false discovery rate (Xu and Ramdas 2024).
    ELond,
}

/// What a gate's e-value must reach to end it within its family.
///
/// `1/alpha` for `spend`, `K_max/alpha` for a family that is closed together, `1/alpha_t` for e-LOND (see
/// [`elond_stop`]). Levels in millionths.
///
/// # Errors
/// [`SampleError::Parameter`] for a level outside (0, 1), no members, or e-LOND.
pub fn stop(method: Method, alpha: u32, members: u32) -> Result<Threshold, SampleError> {
    level(alpha)?;
    let times = match method {
        Method::Spend => 1,
        Method::EBh | Method::ClosedEBh | Method::ClosedMean => members,
        Method::ELond => 0,
    };
    if times == 0 {
        return Err(SampleError::Parameter {
            name: "members",
            expected: "at least 1; e-LOND stops by its index",
        });
    }
    Ok(Threshold {
        numerator: u64::from(times) * u64::from(MILLION),
        denominator: u64::from(alpha),
    })
}

/// `1/alpha_t` of e-LOND, `alpha_t = alpha (R + 1) / (t (t + 1))`: `index` t from 1 in the order of registration, R the
/// family's rejections that were recorded when the gate was registered.
///
/// # Errors
/// [`SampleError::Parameter`] for a level outside (0, 1), or for an index of 0.
pub fn elond_stop(alpha: u32, index: u32, rejections: u32) -> Result<Threshold, SampleError> {
    level(alpha)?;
    if index == 0 || rejections >= index {
        return Err(SampleError::Parameter {
            name: "index",
            expected: "from 1, and above the rejections before it",
        });
    }
    // In lowest terms: t (t + 1) 10^6 may pass 2^64.
    let numerator = u128::from(index) * (u128::from(index) + 1) * u128::from(MILLION);
    let denominator = u128::from(alpha) * (u128::from(rejections) + 1);
    let common = gcd(numerator, denominator);
    let narrow = |value: u128| u64::try_from(value / common).ok();
    let parts = narrow(numerator).zip(narrow(denominator));
    let (numerator, denominator) = parts.ok_or(SampleError::Parameter {
        name: "index",
        expected: "a smaller number",
    })?;
    Ok(Threshold {
        numerator,
        denominator,
    })
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn level(alpha: u32) -> Result<(), SampleError> {
    if alpha > 0 && alpha < MILLION {
        return Ok(());
    }
    Err(SampleError::Parameter {
        name: "alpha",
        expected: "between 1 and 999999 millionths",
    })
}

/// Whether registered levels, in millionths, fit the family's.
pub fn fits(family: u32, levels: &[u32]) -> bool {
    let spent: u64 = levels.iter().copied().map(u64::from).sum();
    spent <= u64::from(family)
}

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
    crate::stats::sample::open_unit("alpha", alpha)?;
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
    crate::stats::sample::open_unit("alpha", alpha)?;
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
    crate::stats::sample::open_unit("alpha", alpha)?;
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

    #[test]
    fn what_a_member_must_reach() {
        assert_eq!(
            stop(Method::Spend, 50_000, 9).unwrap(),
            Threshold::of_level(50_000)
        );
        assert!((stop(Method::EBh, 50_000, 10).unwrap().value() - 200.0).abs() < 1e-12);
        assert!(stop(Method::ClosedMean, 50_000, 0).is_err());
        assert!(stop(Method::ELond, 50_000, 3).is_err());
        let third = elond_stop(50_000, 3, 1).unwrap();
        assert!((third.value() - 12.0 / (0.05 * 2.0)).abs() < 1e-12);
        assert!(elond_stop(50_000, 0, 0).is_err());
        assert!(elond_stop(1, u32::MAX, 0).is_err());
        assert!(fits(50_000, &[20_000, 30_000]) && !fits(50_000, &[20_000, 30_001]));
    }

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
