//! By how much one arm's mean label exceeds another's, where the arms may share prompts.
//!
//! With `psi_i = +(y_i - mean new) / n_new` in the new arm and `-(y_i - mean old) / n_old` in the old one, totalled by
//! prompt: `V = m / (m - 1) sum_c T_c^2`, m the prompts of the arm that has fewer, and m - 1 degrees of freedom. Prompts
//! that both arms answered are paired by their totals; prompts of one arm add their own variance. Source: CLOVER v1.1,
//! section 10.3; Liang and Zeger (1986) for the totals.

use crate::distribution;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use clover_num::math;

/// Level of the one-sided lower bound.
pub const LEVEL: f64 = 0.95;
/// Totals below this are rounding: labels lie in [0, 1].
const NO_SPREAD: f64 = 1e-13;

/// The difference of two arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Mean of the new arm less mean of the old.
    pub difference: f64,
    /// Its standard error; `None` below two prompts in an arm, or without spread.
    pub standard_error: Option<f64>,
    /// Degrees of freedom: prompts of the arm that has fewer, less one.
    pub df: f64,
    /// Rows and prompts of the new arm.
    pub new: (usize, usize),
    /// Rows and prompts of the old arm.
    pub old: (usize, usize),
    /// Prompts of both.
    pub shared: usize,
}

impl Gain {
    /// One-sided lower bound at 95 %; `None` without a standard error.
    pub fn lower(&self) -> Option<f64> {
        let reach = distribution::t_quantile(LEVEL, self.df) * self.standard_error?;
        Some(self.difference - reach)
    }
}

/// Compares the rows in the new arm with the others.
///
/// # Errors
/// [`SampleError`] for columns of different lengths; [`InsufficientData`] for an arm without rows.
pub fn gain(values: Values<'_>, is_new: &[bool], clusters: &Clusters) -> Result<Gain, Unfit> {
    align("arms", is_new.len(), values.len())?;
    align("clusters", clusters.of_row().len(), values.len())?;
    let arm = |of: bool| -> Vec<usize> {
        let rows = 0..values.len();
        rows.filter(|&row| is_new[row] == of).collect()
    };
    let (new, old) = (arm(true), arm(false));
    InsufficientData::unless("rows of the new arm", new.len(), 1)?;
    InsufficientData::unless("rows of the old arm", old.len(), 1)?;
    let y = values.as_slice();
    let mean = |rows: &[usize]| math::mean(&rows.iter().map(|&row| y[row]).collect::<Vec<_>>());
    let (of_new, of_old) = (mean(&new), mean(&old));
    let mut seen = vec![[false; 2]; clusters.count()];
    let influence: Vec<f64> = (0..y.len())
        .map(|row| {
            let cluster = clusters.of_row()[row] as usize;
            seen[cluster][usize::from(is_new[row])] = true;
            if is_new[row] {
                (y[row] - of_new) / new.len() as f64
            } else {
                (of_old - y[row]) / old.len() as f64
            }
        })
        .collect();
    let prompts = |of: &dyn Fn(&[bool; 2]) -> bool| seen.iter().filter(|of_one| of(of_one)).count();
    let in_new = prompts(&|of| of[1]);
    let in_old = prompts(&|of| of[0]);
    let least = in_new.min(in_old);
    let totals = clusters.totals(&influence);
    let squares: Vec<f64> = totals.iter().map(|total| total * total).collect();
    let sum = math::sum(&squares);
    let spread = least >= 2 && totals.iter().any(|total| total.abs() > NO_SPREAD);
    let variance = sum * least as f64 / (least as f64 - 1.0);
    if spread && !variance.is_finite() {
        return Err(SampleError::Parameter {
            name: "values",
            expected: "sums and squares within the range of a double",
        }
        .into());
    }
    Ok(Gain {
        difference: of_new - of_old,
        standard_error: spread.then(|| variance.sqrt()),
        df: least as f64 - 1.0,
        new: (new.len(), in_new),
        old: (old.len(), in_old),
        shared: prompts(&|of| of[0] && of[1]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clover_num::draws::Draws;

    fn found(y: &[f64], is_new: &[bool], prompts: &[u32]) -> Gain {
        let clusters = Clusters::of(prompts.iter().copied()).unwrap();
        gain(Values::new("y", y).unwrap(), is_new, &clusters).unwrap()
    }

    #[test]
    fn shared_prompts_are_the_paired_t_interval() {
        // By hand: differences .2 .1 .3 .0 .4, mean .2, s^2 = .025, se = sqrt(.025 / 5); t_.95(4) = 2.131846786.
        let old = [0.5, 0.4, 0.3, 0.6, 0.2];
        let new = [0.7, 0.5, 0.6, 0.6, 0.6];
        let y: Vec<f64> = old.iter().chain(&new).copied().collect();
        let arms: Vec<bool> = (0..10).map(|row| row >= 5).collect();
        let prompts: Vec<u32> = (0..5).chain(0..5).collect();
        let of = found(&y, &arms, &prompts);
        assert_eq!((of.new, of.old, of.shared), ((5, 5), (5, 5), 5));
        assert!((of.difference - 0.2).abs() < 1e-15);
        assert!((of.standard_error.unwrap() - 0.005_f64.sqrt()).abs() < 1e-15);
        let lower = 0.2 - 2.131_846_786_326_649 * 0.005_f64.sqrt();
        assert!((of.lower().unwrap() - lower).abs() < 1e-9);
    }

    #[test]
    fn arms_without_a_shared_prompt_add_their_variances() {
        // By hand: new .2 .4 .6 (sum of squares about the mean .08), old .1 .3 .5 .7 (.20); m = 3:
        // V = 3/2 (.08 / 9 + .20 / 16) = .0320833...
        let y = [0.2, 0.4, 0.6, 0.1, 0.3, 0.5, 0.7];
        let arms = [true, true, true, false, false, false, false];
        let of = found(&y, &arms, &[0, 1, 2, 3, 4, 5, 6]);
        assert!(
            (of.standard_error.unwrap() - (1.5 * (0.08 / 9.0 + 0.20 / 16.0_f64)).sqrt()).abs()
                < 1e-15
        );
        assert_eq!((of.shared, of.df.to_bits()), (0, 2.0_f64.to_bits()));
    }

    #[test]
    fn nothing_is_said_without_spread_or_an_arm() {
        let clusters = Clusters::of([0, 1]).unwrap();
        let y = Values::new("y", &[0.1, 0.2]).unwrap();
        assert!(matches!(
            gain(y, &[true, true], &clusters),
            Err(Unfit::InsufficientData(_))
        ));
        let of = found(
            &[0.5, 0.5, 0.9, 0.9],
            &[false, false, true, true],
            &[0, 1, 0, 1],
        );
        assert_eq!((of.standard_error, of.lower()), (None, None));
        assert_eq!(found(&[0.5, 0.9], &[false, true], &[0, 0]).lower(), None);
    }

    /// How often a lower bound above 0 is found where the arms are worth the same.
    fn false_gains(runs: usize, prompts: u32, shared: bool, binary: bool) -> f64 {
        let mut wrong = 0_u32;
        for run in 0..runs {
            let mut draws = Draws::of([11; 32], run);
            let (mut y, mut arms, mut of) = (Vec::new(), Vec::new(), Vec::new());
            for prompt in 0..prompts {
                let base = draws.uniform();
                for is_new in [false, true] {
                    let level = if shared { base } else { draws.uniform() };
                    let label = if binary {
                        f64::from(u8::from(draws.uniform() < 0.2 + 0.6 * level))
                    } else {
                        0.7 * level + 0.3 * draws.uniform()
                    };
                    y.push(label);
                    arms.push(is_new);
                    of.push(if shared {
                        prompt
                    } else {
                        2 * prompt + u32::from(is_new)
                    });
                }
            }
            wrong += u32::from(
                found(&y, &arms, &of)
                    .lower()
                    .is_some_and(|lower| lower > 0.0),
            );
        }
        f64::from(wrong) / runs as f64
    }

    #[test]
    fn the_bound_holds_its_level_where_nothing_was_gained() {
        let runs = 4_000_usize;
        let most = 0.05 + 2.0 * (0.05 * 0.95 / runs as f64).sqrt();
        for (prompts, shared, binary) in [
            (40, true, false),
            (40, true, true),
            (60, false, true),
            (200, true, true),
        ] {
            let rate = false_gains(runs, prompts, shared, binary);
            println!("{prompts} prompts, shared {shared}, binary {binary}: {rate}");
            assert!(
                rate <= most && rate > 0.02,
                "{prompts} {shared} {binary}: {rate} > {most}"
            );
        }
    }
}
