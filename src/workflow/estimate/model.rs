//! A calibrator as it is kept: its curves as canonical JSON, under the digest that events name.

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Finite;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::IndexParts;
use clover_stats::calibrator::Model;
use clover_stats::isotonic::Curve;
use serde::Deserialize;
use serde::Serialize;

use crate::estimate::terms;

/// Domain label of a calibrator's digest.
pub const CALIBRATOR_LABEL: &str = "clover/calibrator/v1";

/// Knots of a curve, as many x as y.
#[derive(Serialize, Deserialize)]
struct Knots {
    x: Vec<Finite>,
    y: Vec<Finite>,
}

/// The smooth index of a ranked model.
#[derive(Serialize, Deserialize)]
struct Index {
    coefficients: Vec<Finite>,
    intercept: Finite,
    knots: Vec<Vec<Finite>>,
    penalty: Finite,
}

/// One model; a monotone one has a curve alone.
#[derive(Serialize, Deserialize)]
struct Curves {
    curve: Knots,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Index>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<Knots>,
}

/// The mean label of abstaining rows, which an iteration calibrates as one atom: of all, and without each fold.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Atom {
    pub full: Finite,
    pub without_fold: Vec<Finite>,
}

/// A calibrator with its fold models.
#[derive(Serialize)]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    abstaining: Option<Atom>,
    algorithm: &'static str,
    full: Curves,
    selected: &'static str,
    without_fold: Vec<Curves>,
}

fn numbers(values: &[f64]) -> Vec<Finite> {
    values.iter().map(|value| terms::finite(*value)).collect()
}

fn knots((x, y): (&[f64], &[f64])) -> Knots {
    Knots {
        x: numbers(x),
        y: numbers(y),
    }
}

fn curves(model: &Model) -> Curves {
    match model {
        Model::Monotone(curve) => Curves {
            curve: knots(curve.knots()),
            index: None,
            ranks: None,
        },
        Model::Ranked { index, ecdf, curve } => Curves {
            curve: knots(curve.knots()),
            index: index.as_ref().map(|index| Index {
                coefficients: numbers(index.coefficients()),
                intercept: terms::finite(index.intercept()),
                knots: index
                    .splines()
                    .iter()
                    .map(|spline| numbers(spline.knots()))
                    .collect(),
                penalty: terms::finite(index.penalty()),
            }),
            ranks: Some(knots(ecdf.knots())),
        },
    }
}

fn values(numbers: Vec<Finite>) -> Vec<f64> {
    numbers.into_iter().map(Finite::value).collect()
}

impl Curves {
    /// The model; `None` where the numbers are no curve.
    fn model(self) -> Option<Model> {
        let curve = Curve::from_knots(values(self.curve.x), values(self.curve.y)).ok()?;
        let Some(ranks) = self.ranks else {
            return self.index.is_none().then_some(Model::Monotone(curve));
        };
        let index = self.index.map(|index| IndexParts {
            knots: index.knots.into_iter().map(values).collect(),
            coefficients: values(index.coefficients),
            intercept: index.intercept.value(),
            penalty: index.penalty.value(),
        });
        Model::from_parts(index, (values(ranks.x), values(ranks.y)), curve).ok()
    }
}

/// What [`read`] takes of a calibrator that was kept.
#[derive(Deserialize)]
struct KeptFull {
    full: Curves,
}

/// The model of all labels, from the bytes of [`bytes`] under their digest; `None` where they are others, or no calibrator.
pub fn read(bytes: &[u8], digest: &Digest) -> Option<Model> {
    if Digest::labelled(CALIBRATOR_LABEL, bytes) != *digest {
        return None;
    }
    let kept: KeptFull = serde_json::from_slice(bytes).ok()?;
    kept.full.model()
}

fn kept(calibrator: &Calibrator, abstaining: Option<Atom>) -> Kept {
    Kept {
        abstaining,
        algorithm: calibrator.settings.algorithm.name(),
        full: curves(&calibrator.full),
        selected: calibrator.selected.name(),
        without_fold: calibrator.without_fold.iter().map(curves).collect(),
    }
}

/// The canonical bytes of a calibrator, and SHA-256 of `"clover/calibrator/v1" 0x00` and them.
pub(crate) fn bytes(calibrator: &Calibrator, abstaining: Option<Atom>) -> (Vec<u8>, Digest) {
    let bytes = canon::to_bytes(&kept(calibrator, abstaining))
        .expect("BUG: finite numbers have a canonical form");
    let digest = Digest::labelled(CALIBRATOR_LABEL, &bytes);
    (bytes, digest)
}

#[cfg(test)]
mod tests {
    use clover_stats::calibrator;
    use clover_stats::calibrator::CalibratorSettings;
    use clover_stats::calibrator::Mode;

    use super::*;

    /// Given calibrators of both kinds, then what is read from their bytes predicts the same numbers to the last bit.
    #[test]
    fn a_calibrator_is_read_as_it_was_kept() {
        let rows = 200_u32;
        let place = |row: u32| f64::from(row) / f64::from(rows - 1);
        let scores: Vec<f64> = (0..rows).map(place).collect();
        let lengths: Vec<f64> = (0..rows).map(|row| f64::from(row * 37 % 101)).collect();
        let labels: Vec<f64> = (0..rows)
            .map(|row| (place(row) * 0.7 + f64::from(row * 53 % 17) / 60.0).clamp(0.0, 1.0))
            .collect();
        let folds: Vec<usize> = (0..rows as usize).map(|row| row % 5).collect();
        for mode in [Mode::Monotone, Mode::TwoStage] {
            let settings = CalibratorSettings {
                mode,
                ..CalibratorSettings::ESTIMATE
            };
            let covariates: &[&[f64]] = match mode {
                Mode::Monotone => &[],
                _ => &[&lengths],
            };
            let fitted = calibrator::fit(&scores, &labels, covariates, &folds, 5, None, settings);
            let fitted = fitted.unwrap();
            let (bytes, digest) = bytes(&fitted, None);
            let again = read(&bytes, &digest).unwrap();
            assert_eq!(again, fitted.full);
            for at in 0..=1_000 {
                let score = f64::from(at) / 1_000.0;
                let (one, two) = (
                    fitted.predict(score, &[50.0]),
                    again.predict(score, &[50.0]),
                );
                assert_eq!(one.to_bits(), two.to_bits());
            }
            let mut changed = bytes.clone();
            let at = changed.iter().position(|byte| *byte == b'5').unwrap();
            changed[at] = b'6';
            assert_eq!(read(&changed, &digest), None);
        }
    }
}
