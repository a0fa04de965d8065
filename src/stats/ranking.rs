//! The ranks that told-apart pairs leave open (Mogstad, Romano, Shaikh and Wilhelm 2024: rank intervals from pairwise tests).

/// The ranks that are left to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInterval {
    /// Best rank, from 1.
    pub best: usize,
    /// Worst rank.
    pub worst: usize,
}

/// The ranks of `policies` policies, 1 the best, by the pairs that tests tell apart: the better, then the worse, by position.
///
/// A policy is no better than one below all that are above it, and no worse than one above all that are below it; a pair
/// that is not told apart is open, never equal. Where the tests of all pairs hold a familywise error (Holm, Bonferroni), all
/// intervals hold together with that error; under a false discovery rate they do not.
pub fn ranks(policies: usize, apart: &[(usize, usize)]) -> Vec<RankInterval> {
    let place = |policy: usize| RankInterval {
        best: 1 + apart.iter().filter(|(_, worse)| *worse == policy).count(),
        worst: policies - apart.iter().filter(|(better, _)| *better == policy).count(),
    };
    (0..policies).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One policy above two that nobody tells apart.
    #[test]
    fn open_pairs_leave_ranks_open() {
        let found = ranks(3, &[(0, 1), (0, 2)]);
        let expected = [(1, 1), (2, 3), (2, 3)];
        let expected = expected.map(|(best, worst)| RankInterval { best, worst });
        assert_eq!(found, expected);
    }

    #[test]
    fn without_a_told_apart_pair_every_rank_is_left() {
        assert_eq!(ranks(2, &[]), [RankInterval { best: 1, worst: 2 }; 2]);
        assert_eq!(ranks(0, &[]), []);
    }

    /// All pairs told apart: the order itself.
    #[test]
    fn a_chain_has_its_own_order() {
        let found = ranks(3, &[(2, 0), (2, 1), (0, 1)]);
        let at = |rank| RankInterval {
            best: rank,
            worst: rank,
        };
        assert_eq!(found, [at(2), at(3), at(1)]);
    }
}
