//! Drift over a set of anchors: each anchor's residuals on a control chart, all of them under one false discovery rate.
//!
//! A chart alone has no p-value, and many charts signal by chance. Here the largest excursion of a series, in standard
//! deviations of its own state in control, is compared with excursions of simulated series of the same length, independent
//! and normal; Benjamini-Hochberg runs over the anchors. (CJE paper, appendix D.2: CUSUM or EWMA with FDR control across
//! anchors.)

use rayon::prelude::*;

use crate::distribution;
use crate::draws::Draws;
use crate::monitor::ChartSide;
use crate::monitor::Cusum;
use crate::monitor::Ewma;
use crate::monitor::InControl;
use crate::multiplicity;
use crate::multiplicity::MultiplicityCorrection;
use crate::multiplicity::PValues;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;

/// Which chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chart {
    /// The two-sided cumulative sum with this allowance, in standard deviations.
    Cusum {
        /// At least 0; half the shift to be found.
        k: f64,
    },
    /// The moving average with this weight of the newest row.
    Ewma {
        /// Above 0 and at most 1.
        lambda: f64,
    },
}

/// One anchor's series in order of time, and what it is like in control.
#[derive(Clone, Copy, Debug)]
pub struct Anchor<'a> {
    /// Residuals or scores.
    pub series: Values<'a>,
    /// Target and deviation, from before the series.
    pub state: InControl,
}

/// What became of one anchor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchorExcursion {
    /// Largest excursion, in standard deviations (of the average, for a moving average).
    pub excursion: f64,
    /// The row that it reached it on.
    pub row: usize,
    /// Its side.
    pub side: ChartSide,
    /// Share of simulated series that go as far: `(1 + count) / (replicates + 1)`.
    pub p: f64,
    /// p adjusted over the anchors.
    pub adjusted: f64,
    /// Whether drift is declared.
    pub drifts: bool,
}

/// The excursion of each row, up and down.
fn excursions(chart: Chart, anchor: &Anchor<'_>) -> Result<Vec<(f64, ChartSide)>, SampleError> {
    let larger = |up: f64, down: f64| {
        if up >= down {
            (up, ChartSide::Up)
        } else {
            (down, ChartSide::Down)
        }
    };
    Ok(match chart {
        Chart::Cusum { k } => {
            let path = Cusum::new(anchor.state, k, 1.0)?.follow(anchor.series);
            let rows = path.up.iter().zip(&path.down);
            rows.map(|(up, down)| larger(up / path.limit, down / path.limit))
                .collect()
        }
        Chart::Ewma { lambda } => {
            let path = Ewma::new(anchor.state, lambda, 1.0)?.follow(anchor.series);
            let rows = path.average.iter().zip(&path.half_width);
            rows.map(|(average, width)| {
                let away = (average - anchor.state.target()) / width;
                larger(away, -away)
            })
            .collect()
        }
    })
}

/// Largest excursion up to each row of one simulated series in control.
fn simulated(
    chart: Chart,
    rows: usize,
    seed: [u8; 32],
    replicate: usize,
) -> Result<Vec<f64>, SampleError> {
    let mut draws = Draws::of(seed, replicate);
    let series: Vec<f64> = (0..rows)
        .map(|_| distribution::normal_quantile(draws.uniform().max(f64::EPSILON)))
        .collect();
    let anchor = Anchor {
        series: Values::new("simulated", &series)?,
        state: InControl::new(0.0, 1.0)?,
    };
    let mut most = 0.0_f64;
    let rows = excursions(chart, &anchor)?.into_iter();
    Ok(rows
        .map(|(excursion, _)| {
            most = most.max(excursion);
            most
        })
        .collect())
}

/// Screens anchors at false discovery rate `q`, with `replicates` simulated series shared by all of them. Results are the
/// same on any number of threads.
///
/// # Errors
/// [`SampleError`] for a chart parameter or q out of range; [`InsufficientData`] without anchors or below 99 replicates.
pub fn screen(
    anchors: &[Anchor<'_>],
    chart: Chart,
    q: f64,
    seed: [u8; 32],
    replicates: usize,
) -> Result<Vec<AnchorExcursion>, Unfit> {
    InsufficientData::unless("anchors", anchors.len(), 1)?;
    InsufficientData::unless("replicates", replicates, 99)?;
    let longest = anchors.iter().map(|anchor| anchor.series.len()).max();
    let longest = longest.unwrap_or(1);
    let null: Vec<Vec<f64>> = (0..replicates)
        .into_par_iter()
        .map(|replicate| simulated(chart, longest, seed, replicate))
        .collect::<Result<_, _>>()?;
    let mut found = Vec::with_capacity(anchors.len());
    for anchor in anchors {
        let rows = excursions(chart, anchor)?;
        let mut largest = (0.0, ChartSide::Up, 0);
        for (row, (excursion, side)) in rows.iter().enumerate() {
            if *excursion > largest.0 {
                largest = (*excursion, *side, row);
            }
        }
        let last = anchor.series.len() - 1;
        let as_far = null.iter().filter(|series| series[last] >= largest.0);
        found.push(AnchorExcursion {
            excursion: largest.0,
            row: largest.2,
            side: largest.1,
            p: (1 + as_far.count()) as f64 / (replicates + 1) as f64,
            adjusted: 1.0,
            drifts: false,
        });
    }
    let p: Vec<f64> = found.iter().map(|one| one.p).collect();
    let family = multiplicity::correct(
        PValues::new(&p)?,
        MultiplicityCorrection::BenjaminiHochberg,
        q,
    )?;
    for ((one, adjusted), reject) in found.iter_mut().zip(family.adjusted).zip(family.reject) {
        one.adjusted = adjusted;
        one.drifts = reject;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(seed: u8, stream: usize, rows: usize, shift: f64, from: usize) -> Vec<f64> {
        let mut draws = Draws::of([seed; 32], stream);
        (0..rows)
            .map(|row| {
                let z = distribution::normal_quantile(draws.uniform().max(1e-12));
                z + if row >= from { shift } else { 0.0 }
            })
            .collect()
    }

    fn run(series: &[Vec<f64>], chart: Chart) -> Vec<AnchorExcursion> {
        let state = InControl::new(0.0, 1.0).unwrap();
        let anchors: Vec<Anchor<'_>> = series
            .iter()
            .map(|series| Anchor {
                series: Values::new("residuals", series).unwrap(),
                state,
            })
            .collect();
        screen(&anchors, chart, 0.10, [9; 32], 999).unwrap()
    }

    #[test]
    fn drifting_anchors_are_found_among_steady_ones() {
        for chart in [Chart::Cusum { k: 0.5 }, Chart::Ewma { lambda: 0.2 }] {
            let mut series: Vec<Vec<f64>> =
                (0..30).map(|at| normals(3, at, 60 + at, 0.0, 0)).collect();
            series[4] = normals(4, 0, 80, 1.5, 40);
            series[17] = normals(4, 1, 50, -1.5, 10);
            let found = run(&series, chart);
            let drifting: Vec<usize> = (0..30).filter(|&at| found[at].drifts).collect();
            assert!(
                drifting.contains(&4) && drifting.contains(&17),
                "{drifting:?}"
            );
            assert!(drifting.len() <= 3, "{drifting:?}");
            assert_eq!(
                (found[4].side, found[17].side),
                (ChartSide::Up, ChartSide::Down)
            );
            assert!(found[4].row >= 40);
        }
    }

    #[test]
    fn steady_anchors_are_seldom_declared() {
        let mut families = 0;
        for family in 0..40 {
            let series: Vec<Vec<f64>> = (0..10)
                .map(|at| normals(7, 100 * family + at, 30, 0.0, 0))
                .collect();
            let found = run(&series, Chart::Cusum { k: 0.5 });
            families += usize::from(found.iter().any(|one| one.drifts));
        }
        // 10 % of 40 families, and three binomial deviations.
        assert!(families <= 10, "{families}");
    }

    #[test]
    fn wrong_charts_are_refused() {
        let series = [0.0, 0.1];
        let anchor = Anchor {
            series: Values::new("residuals", &series).unwrap(),
            state: InControl::new(0.0, 1.0).unwrap(),
        };
        let chart = Chart::Ewma { lambda: 0.0 };
        assert!(screen(&[anchor], chart, 0.1, [0; 32], 99).is_err());
        let chart = Chart::Cusum { k: 0.5 };
        assert!(screen(&[anchor], chart, 1.0, [0; 32], 99).is_err());
        assert!(matches!(
            screen(&[], chart, 0.1, [0; 32], 99),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(matches!(
            screen(&[anchor], chart, 0.1, [0; 32], 9),
            Err(Unfit::InsufficientData(_))
        ));
    }
}
