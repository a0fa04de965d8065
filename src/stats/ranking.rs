//! Who is ahead of whom, and how sure that is: win matrix, rank intervals, shares of ranks.
//!
//! Everything follows from paired contrasts. A pair that is not separated is open, never equal. Sources: the CJE paper,
//! appendix D.5 (pairwise win matrix with FDR marks); Mogstad, Romano, Shaikh and Wilhelm 2024 (rank intervals from
//! pairwise tests); Benjamini and Hochberg 1995; Holm 1979.

use ndarray::Array2;
use rayon::prelude::*;

use crate::direct::Contrast;
use crate::distribution;
use crate::draws::Draws;
use crate::multiplicity;
use crate::multiplicity::MultiplicityCorrection;
use crate::multiplicity::PValues;
use crate::sample::SampleError;
use crate::sample::Thin;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::spd;
use clover_num::math;

/// Share of the mean variance of differences that is added to each so that their matrix has a factor.
const RIDGE: f64 = 1e-12;

/// What a pair's test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The first is above.
    Above,
    /// The first is below.
    Below,
    /// Not told apart.
    Open,
}

impl Mark {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
            Self::Open => "open",
        }
    }
}

/// One cell: the policy of the row against that of the column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Win {
    /// Row's value less column's.
    pub difference: f64,
    /// Confidence that the row's value is above, one-sided: the distribution function of t at difference over its error.
    pub confidence: f64,
    /// Two-sided p of no difference.
    pub p: f64,
    /// p adjusted over all pairs.
    pub adjusted: f64,
    /// What the adjusted test says.
    pub mark: Mark,
}

impl Win {
    fn mirrored(self) -> Self {
        Self {
            difference: -self.difference,
            confidence: 1.0 - self.confidence,
            mark: match self.mark {
                Mark::Above => Mark::Below,
                Mark::Below => Mark::Above,
                Mark::Open => Mark::Open,
            },
            ..self
        }
    }
}

/// Every policy against every other.
#[derive(Clone, Debug, PartialEq)]
pub struct WinMatrix {
    policies: usize,
    cells: Vec<Option<Win>>,
}

impl WinMatrix {
    /// From the contrasts of `policies` policies at `level`: a false discovery rate under Benjamini-Hochberg or -Yekutieli,
    /// a familywise error under Holm or Bonferroni. Pairs without a contrast stay empty.
    ///
    /// # Errors
    /// [`SampleError`] for a contrast of a policy that is not there or of one with itself, or a level outside (0, 1).
    pub fn of(
        policies: usize,
        contrasts: &[Contrast],
        correction: MultiplicityCorrection,
        level: f64,
    ) -> Result<Self, SampleError> {
        let mut matrix = Self {
            policies,
            cells: vec![None; policies * policies],
        };
        if contrasts.is_empty() {
            return Ok(matrix);
        }
        let p: Vec<f64> = contrasts.iter().map(|contrast| contrast.p).collect();
        let family = multiplicity::correct(PValues::new(&p)?, correction, level)?;
        for (at, contrast) in contrasts.iter().enumerate() {
            let (first, second) = (contrast.first, contrast.second);
            if first == second || first.max(second) >= policies {
                return Err(SampleError::Parameter {
                    name: "contrasts",
                    expected: "pairs of different policies that are there",
                });
            }
            let confidence = if contrast.se > 0.0 {
                distribution::t_cdf(contrast.difference / contrast.se, contrast.df)
            } else {
                0.5 * (1.0 + sign(contrast.difference))
            };
            let win = Win {
                difference: contrast.difference,
                confidence,
                p: contrast.p,
                adjusted: family.adjusted[at],
                mark: match (family.reject[at], contrast.difference > 0.0) {
                    (true, true) => Mark::Above,
                    (true, false) => Mark::Below,
                    (false, _) => Mark::Open,
                },
            };
            matrix.cells[first * policies + second] = Some(win);
            matrix.cells[second * policies + first] = Some(win.mirrored());
        }
        Ok(matrix)
    }

    /// Policies.
    pub fn policies(&self) -> usize {
        self.policies
    }

    /// A cell; `None` on the diagonal, for a pair without a contrast, and outside.
    pub fn cell(&self, row: usize, column: usize) -> Option<Win> {
        let inside = row < self.policies && column < self.policies;
        inside.then(|| self.cells[row * self.policies + column])?
    }

    /// The ranks that the tests leave to each policy, 1 the best: no better than one below all that are above it, no worse
    /// than one above all that are below it. Under Holm or Bonferroni all intervals hold together at the level.
    pub fn ranks(&self) -> Vec<RankInterval> {
        let count = |row: usize, mark: Mark| {
            let marks = (0..self.policies).filter_map(|column| self.cell(row, column));
            marks.filter(|win| win.mark == mark).count()
        };
        (0..self.policies)
            .map(|row| RankInterval {
                best: 1 + count(row, Mark::Below),
                worst: self.policies - count(row, Mark::Above),
            })
            .collect()
    }
}

fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// The ranks that are left to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInterval {
    /// Best rank, from 1.
    pub best: usize,
    /// Worst rank.
    pub worst: usize,
}

/// How often each policy takes each rank.
#[derive(Clone, Debug, PartialEq)]
pub struct RankShares {
    /// By policy, then rank from the best; each row sums to 1. Ties share their ranks evenly.
    pub shares: Vec<Vec<f64>>,
}

impl RankShares {
    /// From replicates of all policies' values, one row each.
    ///
    /// # Errors
    /// [`Thin`] below 100 replicates; [`SampleError`] for rows that are empty, uneven or not finite.
    pub fn of(replicates: &[Vec<f64>]) -> Result<Self, Unfit> {
        Thin::unless("replicates", replicates.len(), 100)?;
        let policies = replicates[0].len();
        let mut shares = vec![vec![0.0; policies]; policies];
        for row in replicates {
            let row = Values::aligned("replicate", row, policies)?.as_slice();
            for (policy, value) in row.iter().enumerate() {
                let above = row.iter().filter(|other| *other > value).count();
                let tied = row.iter().filter(|other| (*other - value).abs() <= 0.0);
                let tied = tied.count();
                for share in &mut shares[policy][above..above + tied] {
                    *share += 1.0 / (tied * replicates.len()) as f64;
                }
            }
        }
        Ok(Self { shares })
    }

    /// From values and the contrasts of every pair, by `draws` normal draws of the differences from the first policy:
    /// `cov(d_i, d_j) = (V_i + V_j - V_ij) / 2`, with V the squared errors of the contrasts. Seeded; the same on any number of
    /// threads.
    ///
    /// # Errors
    /// [`Thin`] below 100 draws or where a pair has no contrast; [`SampleError`] for values that are none.
    pub fn normal(
        values: Values<'_>,
        contrasts: &[Contrast],
        seed: [u8; 32],
        draws: usize,
    ) -> Result<Self, Unfit> {
        Thin::unless("draws", draws, 100)?;
        let policies = values.len();
        let variance = |a: usize, b: usize| {
            let pair = contrasts.iter().find(|contrast| {
                (contrast.first, contrast.second) == (a, b)
                    || (contrast.first, contrast.second) == (b, a)
            });
            pair.map(|contrast| contrast.se * contrast.se)
        };
        let pairs = (0..policies).flat_map(|a| (a + 1..policies).map(move |b| (a, b)));
        let known = pairs.clone().filter(|&(a, b)| variance(a, b).is_some());
        Thin::unless("contrasts", known.count(), pairs.count())?;
        let v = |a: usize, b: usize| variance(a, b).unwrap_or(0.0);
        let size = policies - 1;
        let matrix = Array2::from_shape_fn((size, size), |(i, j)| {
            let between = if i == j { 0.0 } else { v(i + 1, j + 1) };
            0.5 * (v(0, i + 1) + v(0, j + 1) - between)
        });
        let trace: f64 = matrix.diag().iter().sum();
        let ridge = RIDGE * trace / size.max(1) as f64;
        let factor = spd::penalised(&matrix, ridge);
        let centre = values.as_slice();
        let replicates: Vec<Vec<f64>> = (0..draws)
            .into_par_iter()
            .map(|replicate| {
                let mut stream = Draws::of(seed, replicate);
                let z: Vec<f64> = (0..size)
                    .map(|_| distribution::normal_quantile(stream.uniform().max(f64::EPSILON)))
                    .collect();
                let moved = factor.times(&z);
                let mut row = vec![centre[0]];
                row.extend((0..size).map(|i| centre[i + 1] + moved[i]));
                row
            })
            .collect();
        Self::of(&replicates)
    }

    /// How often each policy is the best.
    pub fn best(&self) -> Vec<f64> {
        self.shares.iter().map(|ranks| ranks[0]).collect()
    }

    /// The mean rank of each policy, from 1.
    pub fn mean(&self) -> Vec<f64> {
        let mean = |ranks: &Vec<f64>| {
            let at: Vec<f64> = (1..=ranks.len()).map(|rank| rank as f64).collect();
            math::dot(&at, ranks)
        };
        self.shares.iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct::Basis;
    use crate::direct::DfMethod;
    use crate::inference::Interval;

    fn contrast(first: usize, second: usize, difference: f64, se: f64) -> Contrast {
        let df = 100.0;
        Contrast {
            first,
            second,
            difference,
            se,
            df,
            df_method: DfMethod::Cluster,
            p: distribution::t_two_sided(difference / se, df),
            interval: Interval::student(difference, se, df, 0.05),
            basis: Basis::Paired,
            shared_prompts: 100,
        }
    }

    /// Values 0.8, 0.5, 0.49: the first is ahead of both, the others are not told apart.
    fn three() -> Vec<Contrast> {
        vec![
            contrast(0, 1, 0.30, 0.02),
            contrast(0, 2, 0.31, 0.02),
            contrast(1, 2, 0.01, 0.02),
        ]
    }

    #[test]
    fn a_matrix_mirrors_itself_and_leaves_open_what_is() {
        let matrix =
            WinMatrix::of(3, &three(), MultiplicityCorrection::BenjaminiHochberg, 0.05).unwrap();
        let marks = |row: usize| -> Vec<Option<Mark>> {
            (0..3)
                .map(|column| matrix.cell(row, column).map(|win| win.mark))
                .collect()
        };
        assert_eq!(marks(0), [None, Some(Mark::Above), Some(Mark::Above)]);
        assert_eq!(marks(2), [Some(Mark::Below), Some(Mark::Open), None]);
        let (up, down) = (matrix.cell(1, 2).unwrap(), matrix.cell(2, 1).unwrap());
        assert!((up.confidence + down.confidence - 1.0).abs() < 1e-15 && up.confidence > 0.5);
        let ranks = matrix.ranks();
        assert_eq!(ranks[0], RankInterval { best: 1, worst: 1 });
        assert_eq!(ranks[1], RankInterval { best: 2, worst: 3 });
        assert_eq!(ranks[2], RankInterval { best: 2, worst: 3 });
        let none = WinMatrix::of(2, &[], MultiplicityCorrection::Holm, 0.05).unwrap();
        assert_eq!(none.ranks()[0], RankInterval { best: 1, worst: 2 });
        assert_eq!(none.cell(5, 0), None);
        assert!(WinMatrix::of(2, &three(), MultiplicityCorrection::Holm, 0.05).is_err());
        assert!(WinMatrix::of(3, &three(), MultiplicityCorrection::Holm, 0.0).is_err());
    }

    #[test]
    fn shares_of_ranks_follow_the_errors() {
        let values = [0.8, 0.5, 0.49];
        let values = Values::new("values", &values).unwrap();
        let shares = RankShares::normal(values, &three(), [5; 32], 4000).unwrap();
        let best = shares.best();
        assert!(best[0] > 0.999);
        // source: scipy 1.17.1, norm.cdf(0.5) = 0.6915, three binomial deviations of 4,000 draws.
        assert!((shares.shares[1][1] - 0.6915).abs() < 0.022, "{shares:?}");
        for row in &shares.shares {
            assert!((math::sum(row) - 1.0).abs() < 1e-12);
        }
        assert!((math::sum(&shares.mean()) - 6.0).abs() < 1e-12);
        let short = RankShares::normal(values, &three()[..2], [5; 32], 4000);
        assert!(matches!(short, Err(Unfit::Thin(_))));
    }

    #[test]
    fn ties_share_their_ranks() {
        let shares = RankShares::of(&vec![vec![0.5, 0.5, 0.1]; 100]).unwrap();
        for policy in 0..2 {
            assert!((shares.shares[policy][0] - 0.5).abs() < 1e-12);
            assert!((shares.shares[policy][1] - 0.5).abs() < 1e-12);
        }
        assert!((shares.shares[2][2] - 1.0).abs() < 1e-12);
        assert!(RankShares::of(&vec![vec![0.5]; 99]).is_err());
        let mut uneven = vec![vec![0.5, 0.1]; 100];
        uneven[50] = vec![0.5];
        assert!(matches!(RankShares::of(&uneven), Err(Unfit::Invalid(_))));
    }
}
