//! Block bootstraps of the mean of a dependent series, the block length that suits it, and its effective sample size.
//!
//! Rows are in order of time. All schemes keep the dependence within blocks; a series whose mean moves is not made
//! stationary by them.

use rayon::prelude::*;

use crate::draws::Draws;
use crate::inference;
use crate::inference::Interval;
use crate::sample::SampleError;
use crate::sample::Thin;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::constant;
use crate::sample::open_unit;
use clover_num::math;

/// Fewest rows from which a block length is estimated.
const ROWS_MIN: usize = 10;
/// Autocorrelations within this many sqrt(log10(n) / n) of 0 count as none (Politis and White 2004).
const THRESHOLD: f64 = 2.0;

/// How a replicate is put together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// Blocks of this many rows from anywhere inside the series (Künsch 1989); the ends are drawn less often.
    Moving(usize),
    /// Blocks of this many rows that wrap around (Politis and Romano 1992).
    Circular(usize),
    /// Wrapping blocks of geometric length with this mean, at least 1 (Politis and Romano 1994).
    Stationary(f64),
}

/// A bootstrap of a mean.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockBootstrap {
    /// Mean of the series.
    pub mean: f64,
    /// Standard deviation of the replicates, with B - 1 in the denominator.
    pub se: f64,
    /// Their percentiles (type 7) at (1 - level) / 2 and (1 + level) / 2.
    pub interval: Interval,
    /// Mean of each replicate, in the order of their streams.
    pub replicates: Vec<f64>,
}

/// Bootstraps the mean of a series; replicate b draws from stream b of the seed, so that results do not depend on the
/// number of threads.
///
/// The last block of a replicate is cut so that all replicates have as many rows as the series.
///
/// # Errors
/// [`SampleError::Parameter`] for a block length outside 1 to n (stationary: a mean not in [1, n]), fewer than two
/// replicates or a level outside (0, 1); [`Thin`] below two rows.
pub fn bootstrap_mean(
    series: Values<'_>,
    scheme: Scheme,
    level: f64,
    seed: [u8; 32],
    replicates: usize,
) -> Result<BlockBootstrap, Unfit> {
    let rows = series.len();
    open_unit("level", level)?;
    Thin::unless("rows", rows, 2)?;
    let within = match scheme {
        Scheme::Moving(length) | Scheme::Circular(length) => (1..=rows).contains(&length),
        Scheme::Stationary(mean) => mean >= 1.0 && mean <= rows as f64,
    };
    let refuse = |name, expected| Unfit::Invalid(SampleError::Parameter { name, expected });
    if !within {
        return Err(refuse("block length", "1 to the number of rows"));
    }
    if replicates < 2 {
        return Err(refuse("replicates", "a count of at least 2"));
    }
    let series = series.as_slice();
    let means: Vec<f64> = (0..replicates)
        .into_par_iter()
        .map(|replicate| {
            let mut draws = Draws::of(seed, replicate);
            math::mean(&resample(series, scheme, &mut draws))
        })
        .collect();
    Ok(BlockBootstrap {
        mean: math::mean(series),
        se: inference::standard_deviation(&means)?,
        interval: Interval::percentile(&means, 1.0 - level)?,
        replicates: means,
    })
}

fn resample(series: &[f64], scheme: Scheme, draws: &mut Draws) -> Vec<f64> {
    let rows = series.len();
    let mut sample = Vec::with_capacity(rows);
    match scheme {
        Scheme::Moving(length) | Scheme::Circular(length) => {
            let starts = match scheme {
                Scheme::Moving(_) => rows - length + 1,
                _ => rows,
            };
            while sample.len() < rows {
                let start = draws.below(starts);
                let take = length.min(rows - sample.len());
                sample.extend((start..start + take).map(|row| series[row % rows]));
            }
        }
        Scheme::Stationary(mean) => {
            let mut row = draws.below(rows);
            while sample.len() < rows {
                sample.push(series[row]);
                row = if draws.uniform() < 1.0 / mean {
                    draws.below(rows)
                } else {
                    (row + 1) % rows
                };
            }
        }
    }
    sample
}

/// What the autocorrelation of a series says about blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// Mean block length for [`Scheme::Stationary`], in [1, ceil(min(3 sqrt(n), n / 3))].
    pub stationary: f64,
    /// Block length for [`Scheme::Circular`] and [`Scheme::Moving`], in the same range; round it up.
    pub circular: f64,
    /// The bandwidth M: autocovariances up to lag M entered.
    pub bandwidth: usize,
    /// Flat-top estimate of n times the variance of the mean, in squared units; not above 0 where it fails.
    pub long_run_variance: f64,
    /// Rows of an independent series with the same variance of the mean, n R(0) / long-run variance: above n for a
    /// series that swings; `None` where the long-run variance is not above 0.
    pub effective_rows: Option<f64>,
}

/// Block lengths by Politis and White (2004) with the correction of Patton, Politis and White (2009).
///
/// With autocovariances R(k) (n in the denominator) and `K = max(5, ceil(sqrt(log10 n)))`, m is the first lag after
/// which K autocorrelations in a row are below `2 sqrt(log10(n) / n)`; M = 2 max(m, 1), at most
/// `ceil(sqrt n) + K`, which it also is where there is no such lag. (Some packages take the first negligible lag itself
/// for m, one more.) With the flat-top window w (1 up to 1/2, then
/// down to 0 at 1), G = sum w(k/M) |k| R(k) and g = sum w(k/M) R(k) over |k| <= M, the lengths are
/// `(2 G^2 n / D)^(1/3)` with D = 2 g^2 (stationary) or 4/3 g^2 (circular).
///
/// `None` for a series that does not vary.
///
/// # Errors
/// [`Thin`] below ten rows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lags are small and positive"
)]
pub fn dependence(series: Values<'_>) -> Result<Option<Dependence>, Thin> {
    let rows = series.len();
    Thin::unless("rows", rows, ROWS_MIN)?;
    let series = series.as_slice();
    if constant(series) {
        return Ok(None);
    }
    let n = rows as f64;
    let ln_ten = math::ln(10.0);
    let log10 = math::ln(n) / ln_ten;
    let run = (log10.sqrt().ceil() as usize).max(5);
    let bandwidth_max = n.sqrt().ceil() as usize + run;
    let covariances = autocovariances(series, bandwidth_max);
    let small = THRESHOLD * (log10 / n).sqrt();
    let quiet = |lag: usize| covariances[lag].abs() / covariances[0] < small;
    let first = (0..=bandwidth_max - run).find(|m| (1..=run).all(|k| quiet(m + k)));
    let bandwidth = first.map_or(bandwidth_max, |m| (2 * m.max(1)).min(bandwidth_max));
    let (mut weighted, mut long_run_variance) = (0.0, covariances[0]);
    for (lag, covariance) in covariances.iter().enumerate().take(bandwidth + 1).skip(1) {
        let window = (2.0 * (1.0 - lag as f64 / bandwidth as f64)).min(1.0);
        weighted += 2.0 * window * lag as f64 * covariance;
        long_run_variance += 2.0 * window * covariance;
    }
    let longest = (3.0 * n.sqrt()).min(n / 3.0).ceil();
    let length = |share: f64| {
        let ratio = weighted / long_run_variance;
        // Where the long-run variance vanishes no length is long enough.
        let length = math::pow(2.0 * ratio * ratio * n / share, 1.0 / 3.0);
        if length.is_finite() {
            length.clamp(1.0, longest)
        } else {
            longest
        }
    };
    Ok(Some(Dependence {
        stationary: length(2.0),
        circular: length(4.0 / 3.0),
        bandwidth,
        long_run_variance,
        effective_rows: (long_run_variance > 0.0).then(|| n * covariances[0] / long_run_variance),
    }))
}

/// R(0) to R(lags), each over n.
fn autocovariances(series: &[f64], lags: usize) -> Vec<f64> {
    let mean = math::mean(series);
    let away: Vec<f64> = series.iter().map(|x| x - mean).collect();
    (0..=lags)
        .map(|lag| math::dot(&away[lag..], &away[..away.len() - lag]) / away.len() as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("series", x).unwrap()
    }

    /// `x[i] = rho x[i - 1] + noise`, from a linear congruential generator that other languages can repeat.
    fn autoregression(rho: f64, rows: usize) -> Vec<f64> {
        let (mut state, mut x) = (12_345_u64, 0.0);
        let mut series = Vec::new();
        for _ in 0..rows {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            x = rho * x + state as f64 / f64::from(1_u32 << 31) - 0.5;
            series.push(x);
        }
        series
    }

    // source: an independent numpy computation by the paper's formulas, which repeats arch 8.0.0 where that
    // package's m (the first negligible lag itself, one more than the paper's) is put in.
    const LENGTHS: [(f64, usize, f64, f64); 6] = [
        (0.3, 100, 1.732_913_372_995_385_2, 1.983_690_619_178_952),
        (0.5, 300, 6.204_636_534_437_66, 7.102_535_810_837_535),
        (0.8, 500, 16.250_326_991_045_654, 18.601_980_752_798_79),
        (0.8, 4000, 36.829_478_848_932_816, 42.159_228_984_190_09),
        (-0.6, 400, 13.895_201_093_695_796, 15.906_034_595_096_214),
        (0.95, 1000, 39.264_848_434_115_386, 44.947_031_234_229_77),
    ];

    #[test]
    fn block_lengths_match_the_paper() {
        for (rho, rows, stationary, circular) in LENGTHS {
            let found = dependence(values(&autoregression(rho, rows)))
                .unwrap()
                .unwrap();
            assert!(
                (found.stationary - stationary).abs() < 1e-9,
                "{rho} {rows} {found:?}"
            );
            assert!(
                (found.circular - circular).abs() < 1e-9,
                "{rho} {rows} {found:?}"
            );
        }
    }

    #[test]
    fn dependence_shrinks_the_effective_sample() {
        let found = |rho| {
            dependence(values(&autoregression(rho, 4000)))
                .unwrap()
                .unwrap()
        };
        // An autoregression has n (1 - rho) / (1 + rho) effective rows.
        for (rho, share) in [(0.0, 1.0), (0.5, 1.0 / 3.0), (0.8, 1.0 / 9.0)] {
            let effective = found(rho).effective_rows.unwrap() / 4000.0;
            assert!((effective / share - 1.0).abs() < 0.25, "{rho}: {effective}");
        }
        assert!(dependence(values(&[0.3; 20])).unwrap().is_none());
        assert!(dependence(values(&[0.1, 0.2])).is_err());
    }

    #[test]
    fn blocks_of_one_row_are_the_plain_bootstrap() {
        let series = autoregression(0.0, 200);
        let sd = (autocovariances(&series, 0)[0] / 200.0).sqrt();
        for scheme in [
            Scheme::Moving(1),
            Scheme::Circular(1),
            Scheme::Stationary(1.0),
        ] {
            let found = bootstrap_mean(values(&series), scheme, 0.95, [1; 32], 2000).unwrap();
            assert!((found.se / sd - 1.0).abs() < 0.06, "{scheme:?}");
            assert!(found.interval.low < found.mean && found.mean < found.interval.high);
        }
    }

    #[test]
    fn blocks_see_the_dependence() {
        let series = autoregression(0.8, 3000);
        let known = (dependence(values(&series))
            .unwrap()
            .unwrap()
            .long_run_variance
            / 3000.0)
            .sqrt();
        for scheme in [
            Scheme::Moving(50),
            Scheme::Circular(50),
            Scheme::Stationary(50.0),
        ] {
            let found = bootstrap_mean(values(&series), scheme, 0.95, [2; 32], 600).unwrap();
            assert!(
                (found.se / known - 1.0).abs() < 0.25,
                "{scheme:?} {} {known}",
                found.se
            );
        }
    }

    #[test]
    fn a_block_of_all_rows_is_the_series() {
        let series = [0.1, 0.5, 0.2, 0.9];
        let whole = |scheme| bootstrap_mean(values(&series), scheme, 0.9, [3; 32], 9).unwrap();
        assert!(whole(Scheme::Moving(4)).se < 1e-15);
        assert!(whole(Scheme::Circular(4)).se < 1e-15);
    }

    #[test]
    fn threads_change_nothing() {
        let series = autoregression(0.5, 300);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let run = || {
                bootstrap_mean(values(&series), Scheme::Stationary(7.5), 0.9, [4; 32], 101).unwrap()
            };
            pool.unwrap().install(run)
        };
        assert_eq!(run(1), run(2));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let series = [0.1, 0.5, 0.2];
        let run = |scheme, level, replicates| {
            bootstrap_mean(values(&series), scheme, level, [0; 32], replicates).is_err()
        };
        assert!(run(Scheme::Moving(0), 0.9, 9));
        assert!(run(Scheme::Circular(4), 0.9, 9));
        assert!(run(Scheme::Stationary(0.5), 0.9, 9));
        assert!(run(Scheme::Stationary(f64::NAN), 0.9, 9));
        assert!(run(Scheme::Moving(1), 1.0, 9));
        assert!(run(Scheme::Moving(1), 0.9, 1));
        let one = bootstrap_mean(values(&[0.1]), Scheme::Moving(1), 0.9, [0; 32], 9);
        assert!(matches!(one, Err(Unfit::Thin(_))));
    }
}
