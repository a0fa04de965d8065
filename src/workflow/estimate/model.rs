//! A calibrator as it is kept: its curves as canonical JSON, under the digest that events name.

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Finite;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::Model;
use serde::Serialize;

use crate::estimate::terms;

/// Domain label of a calibrator's digest.
pub const CALIBRATOR_LABEL: &str = "clover/calibrator/v1";

/// Knots of a curve, as many x as y.
#[derive(Serialize)]
struct Knots {
    x: Vec<Finite>,
    y: Vec<Finite>,
}

/// The smooth index of a ranked model.
#[derive(Serialize)]
struct Index {
    coefficients: Vec<Finite>,
    intercept: Finite,
    knots: Vec<Vec<Finite>>,
    penalty: Finite,
}

/// One model; a monotone one has a curve alone.
#[derive(Serialize)]
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
