//! What each decision of an iteration rests on: a table from the specification, not from what a replay gives.

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Input {
    /// A label of a row of fit.
    FitLabel,
    /// A label of a row of dev, in any slice.
    DevLabel,
    /// One of a row of dev in a green slice.
    GreenDevLabel,
    /// A label of a row of confirm, in any slice.
    ConfirmLabel,
    /// One of a row of confirm in a green slice.
    GreenConfirmLabel,
    /// A base score of a row of confirm, in any slice.
    ConfirmScore,
    /// One of a row of confirm in a green slice.
    GreenConfirmScore,
    /// The level q.
    Q,
    /// The registered seed.
    Seed,
    /// The tolerance of green slices.
    Tau,
}

use Input::ConfirmLabel;
use Input::ConfirmScore;
use Input::DevLabel;
use Input::FitLabel;
use Input::GreenConfirmLabel;
use Input::GreenConfirmScore;
use Input::GreenDevLabel;
use Input::Q;
use Input::Seed;
use Input::Tau;

/// What an event names beside its own numbers, by a digest or a number of something else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Named {
    /// The calibrators, whose digest is over their curves, those without each fold included, or the seed of their folds
    /// (`schema/ESTIMATES.md`).
    Calibrators,
    /// The rows through the last entry that everything before confirm reads: scores of all parts, labels of fit and dev
    /// (`schema/PREDICATE.md`, "What is read").
    Rows,
    /// The same with the labels of confirm.
    Unsealed,
}

impl Named {
    pub(super) fn touched_by(self, change: Input) -> bool {
        match self {
            Self::Calibrators => matches!(change, FitLabel | Seed),
            Self::Rows => matches!(change, FitLabel | DevLabel | ConfirmScore),
            Self::Unsealed => {
                matches!(change, FitLabel | DevLabel | ConfirmScore | ConfirmLabel)
            }
        }
    }
}

use Named::Calibrators;
use Named::Rows;
use Named::Unsealed;

/// A decision and what it rests on.
pub(super) struct Rests {
    /// Its kind, or its gate and split.
    pub of: &'static str,
    /// What its real numbers are functions of: the least change of it is a change of theirs.
    pub numbers: &'static [Input],
    /// What its counts, flags, words and rounded numbers are functions of, which may stay as they are.
    pub counts: &'static [Input],
    /// What else it names.
    pub names: &'static [Named],
    /// Where the specification has it: sections of CLOVER v1.1.
    pub source: &'static str,
}

const fn row(
    of: &'static str,
    numbers: &'static [Input],
    counts: &'static [Input],
    names: &'static [Named],
    source: &'static str,
) -> Rests {
    Rests {
        of,
        numbers,
        counts,
        names,
        source,
    }
}

/// Every decision of an iteration that can be computed again. Labels of fit enter wherever a reward does (2.1: fitted on Dfit
/// only), those of dev and of confirm only what is read of dev and of confirm; folds enter what is out of fold or jackknifed.
pub(super) const RESTS: &[Rests] = &[
    row(
        "label_process.audited",
        &[],
        &[],
        &[Rows],
        "12 L1: scores and covariates of labelled rows against all rows before confirm; no value of a label",
    ),
    row(
        "calibrator.fitted",
        &[FitLabel, Seed],
        &[],
        &[Rows, Calibrators],
        "2.1: labels and scores of fit, K folds by the seed, which give the error out of fold",
    ),
    row(
        "calibrator.fitted of a candidate",
        &[FitLabel, Seed],
        &[],
        &[Rows, Calibrators],
        "2.1: the same rows, folds and mode, scored under the patch",
    ),
    row(
        "oua.estimated",
        &[FitLabel, Seed],
        &[],
        &[Rows, Calibrators],
        "2.2: means of fold models over all logs before confirm, averaged over 20 seeds of folds",
    ),
    row(
        "coverage.checked",
        &[],
        &[FitLabel],
        &[Rows, Calibrators],
        "12 L2, SUP: counts of labels by tenths of scores, and whether the curve of all labels is flat at its ends",
    ),
    row(
        "prentice.checked",
        &[FitLabel, DevLabel],
        &[],
        &[Rows],
        "8: residuals of dev regressed on R and what else there is; R is of the curve of all labels of fit",
    ),
    row(
        "residuals.audited",
        &[FitLabel, DevLabel],
        &[Q],
        &[Rows, Calibrators],
        "3.2, 3.3: mean residuals of dev by slice; q says which are rejected",
    ),
    row(
        "slices.classified",
        &[],
        &[FitLabel, DevLabel],
        &[],
        "3.4: classes, by whether intervals of mean residuals exclude 0 and means reach 0.03",
    ),
    row(
        "card.published",
        &[FitLabel, Seed],
        &[DevLabel, Q],
        &[Calibrators],
        "3.5: one for each slice that q rejects or that is Risk; statistics of dev to four decimals; the full card has residuals of its exemplars, which are Y - R; calibrator_id, and so both digests, follow the folds that the seed draws",
    ),
    row(
        "battery.evaluated of a candidate",
        &[FitLabel, Seed],
        &[],
        &[Calibrators],
        "7.1, 10.2: differences of R on edited texts; the seed draws whose; an adversary reads no labels",
    ),
    row(
        "scores.recomputed",
        &[ConfirmScore],
        &[],
        &[Rows],
        "9.1: S of every row from its raw record under the patch",
    ),
    row(
        "p0 dev",
        &[],
        &[],
        &[Rows, Calibrators],
        "5.2: grammar, inputs, code length, re-score",
    ),
    row(
        "p1 dev",
        &[FitLabel, DevLabel],
        &[],
        &[Rows, Calibrators],
        "5.1, 5.2: the mean of d on dev",
    ),
    row(
        "p2 dev",
        &[FitLabel, DevLabel],
        &[],
        &[Rows, Calibrators],
        "2.1, 5.2: |mean Y - mean R| of ten bins of dev",
    ),
    row(
        "p3 dev",
        &[FitLabel, GreenDevLabel, Tau],
        &[],
        &[Rows, Calibrators],
        "5.1, 5.2: d on dev in each green slice, against tau",
    ),
    row(
        "p4 dev",
        &[FitLabel],
        &[],
        &[Rows, Calibrators],
        "5.1: distributions of R and R' over logs; no label of theirs",
    ),
    row(
        "p5 dev",
        &[FitLabel],
        &[],
        &[Rows, Calibrators],
        "5.1: mean R' - R on anchors",
    ),
    row(
        "p6 dev",
        &[FitLabel, DevLabel, Seed],
        &[],
        &[Rows, Calibrators],
        "8: mean residuals of dev by environment; their variance has the jackknife over folds",
    ),
    row(
        "p7 dev",
        &[],
        &[],
        &[Rows, Calibrators],
        "5.2, 7: what the battery on record says, which is computed again by itself",
    ),
    row(
        "candidates.sealed",
        &[],
        &[],
        &[],
        "5.3, 10.1: who passed P0 to P7",
    ),
    row("confirm.unsealed", &[], &[], &[], "6: roots"),
    row(
        "p4 confirm",
        &[FitLabel, ConfirmScore],
        &[],
        &[Unsealed, Calibrators],
        "5.1, 5.2: distributions of R and R' over the confirm window",
    ),
    row(
        "p6 confirm",
        &[FitLabel, ConfirmLabel, ConfirmScore, Seed],
        &[],
        &[Unsealed, Calibrators],
        "8: as on dev, on confirm",
    ),
    row(
        "p8 confirm",
        &[FitLabel, ConfirmLabel, ConfirmScore],
        &[Seed],
        &[Unsealed, Calibrators],
        "5.1: d on confirm; of the bootstrap, which the seed draws, a count",
    ),
    row(
        "p9 confirm",
        &[FitLabel, GreenConfirmLabel, GreenConfirmScore, Tau],
        &[],
        &[Unsealed, Calibrators],
        "5.1, 5.2: d on confirm in each green slice, against tau",
    ),
    row(
        "p10 confirm",
        &[FitLabel, ConfirmLabel, ConfirmScore, Seed],
        &[],
        &[Unsealed, Calibrators],
        "5.2: the share of 2.2, and the mean of d on confirm",
    ),
    row(
        "patch.accepted",
        &[],
        &[],
        &[],
        "5.3: who passed, by what P8 on record says",
    ),
    row("iteration.closed", &[], &[], &[], "10.1: what was accepted"),
];

/// Whether a member names something else, as against a number of the event's own.
pub(super) fn is_name(path: &str) -> bool {
    let named = [
        "calibrator",
        "card.basis.calibrator",
        "inputs.digest",
        "iteration.inputs.digest",
        "terms.fold_seed",
    ];
    named.contains(&path) || path.starts_with("calibrators.")
}
