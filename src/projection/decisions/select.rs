//! Which of the candidates that passed are taken.

use clover_ground::digest::Digest;
use clover_num::Finite;

/// Patches that one iteration accepts at most.
pub const ACCEPTED_MAX: usize = 2;

/// A candidate that passed every gate, as the order needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedCandidate {
    /// Risk improvement on confirm, negative when better.
    pub risk_improve: Finite,
    /// Code length.
    pub kappa: u64,
    /// Kolmogorov-Smirnov count over the logs.
    pub ks_count: u64,
    /// Hash of the patch.
    pub patch: Digest,
}

/// Candidates in order of acceptance, by their place in `passed`: by risk improvement, then code length, then KS, then
/// hash. The second is taken only if the composite of the first two passed on confirm; two patches that hold apart need
/// not hold together. `composite` says for a pair of hashes whether theirs did. Source: CLOVER v1.1, section 5.
pub fn select(
    passed: &[RankedCandidate],
    composite: impl Fn(Digest, Digest) -> bool,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..passed.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&passed[a], &passed[b]);
        let improve = a.risk_improve.value().total_cmp(&b.risk_improve.value());
        improve
            .then(a.kappa.cmp(&b.kappa))
            .then(a.ks_count.cmp(&b.ks_count))
            .then(a.patch.cmp(&b.patch))
    });
    order.truncate(ACCEPTED_MAX);
    if let [first, second] = order[..]
        && !composite(passed[first].patch, passed[second].patch)
    {
        order.truncate(1);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(risk: f64, kappa: u64, ks_count: u64, patch: &str) -> RankedCandidate {
        RankedCandidate {
            risk_improve: Finite::new(risk).unwrap(),
            kappa,
            ks_count,
            patch: Digest::sha256(patch.as_bytes()),
        }
    }

    #[test]
    fn each_key_breaks_the_ties_of_those_before_it() {
        let better = [
            (ranked(-0.2, 9, 9, "a"), ranked(-0.1, 1, 1, "b")),
            (ranked(-0.1, 1, 9, "a"), ranked(-0.1, 2, 1, "b")),
            (ranked(-0.1, 1, 1, "a"), ranked(-0.1, 1, 2, "b")),
        ];
        for (first, second) in better {
            assert_eq!(select(&[second, first], |_, _| true), [1, 0]);
            assert_eq!(select(&[second, first], |_, _| false), [1]);
        }
        let (a, b) = (ranked(0.0, 1, 1, "a"), ranked(0.0, 1, 1, "b"));
        let least = usize::from(b.patch < a.patch);
        assert_eq!(select(&[a, b], |_, _| false), [least]);
        assert!(select(&[], |_, _| true).is_empty());
    }

    #[test]
    fn a_third_is_never_taken() {
        let three = ["a", "b", "c"].map(|patch| ranked(0.0, 1, 1, patch));
        assert_eq!(select(&three, |_, _| true).len(), 2);
    }
}
