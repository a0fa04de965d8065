//! Residuals by slice: where the calibrated judge gives too much or too little, by policy or by a field that an import
//! kept. Read after the fact, so exploratory: slices that bind are those of a registered iteration.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_stats::residuals;
use clover_stats::residuals::SLICES_MAX;
use clover_stats::residuals::SliceAudit;
use clover_stats::residuals::SliceFamily;
use clover_stats::residuals::SliceTerms;
use clover_stats::residuals::Slices;
use clover_stats::sample::Clusters;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::estimate::compute::Found;
use crate::estimate::rows::POLICY;

/// Rows that lie in none of the slices that are told apart.
const OTHER: &str = "other";

/// A labelled row as its calibrator never saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// Position of its policy.
    pub policy: usize,
    /// The row.
    pub row: usize,
    /// Its score, in millionths.
    pub score_micro: i64,
    /// Its label, in label units.
    pub label: f64,
    /// What the calibrator without its fold predicts, in label units.
    pub predicted: f64,
}

impl Residual {
    /// Label less calibrated reward.
    pub fn value(&self) -> f64 {
        self.label - self.predicted
    }
}

/// Labelled rows in the order of the fit; none without a calibrator.
pub fn residuals(found: &Found) -> Vec<Residual> {
    let Ok(of) = &found.analysis.calibration else {
        return Vec::new();
    };
    let mut seen = of.calibrator.out_of_fold.iter();
    let scale = found.analysis.label_scale;
    let mut rows = Vec::with_capacity(of.labels);
    let policies = found.gathered.dataset.policies.iter();
    for (policy, (of, source)) in policies.zip(&found.gathered.sources).enumerate() {
        for &row in source.labels.keys() {
            let predicted = seen.next().copied().unwrap_or_default();
            rows.push(Residual {
                policy,
                row,
                score_micro: source.scores[row],
                label: of.labels[row].unwrap_or_default(),
                predicted: scale.map_or(predicted, |scale| scale.level(predicted)),
            });
        }
    }
    rows
}

/// Residuals of one partition of the rows.
#[derive(Clone, Debug)]
pub struct Sliced {
    /// What the rows are parted by.
    pub field: FieldId,
    /// Its words, those of most rows; `other` last where any row lies in none.
    pub names: Vec<String>,
    /// What was found of each, `other` last.
    pub audit: SliceAudit,
}

/// Why residuals have no slices.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SlicesError {
    /// There is no calibrator.
    #[error("there are no residuals: {0}")]
    NoCalibrator(String),
    /// No row has the field.
    #[error("no import kept {0} of a row of this experiment")]
    Unknown(FieldId),
    /// The statistics refuse it.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// Words of the rows of each policy.
type Words<'a> = Vec<Vec<Option<&'a str>>>;

fn words<'a>(found: &'a Found, field: &FieldId) -> Words<'a> {
    let policies = found.gathered.dataset.policies.iter().enumerate();
    policies
        .map(|(at, policy)| {
            let of = |row: usize| {
                if field.as_str() == POLICY {
                    return Some(policy.name.as_str());
                }
                found.gathered.word(at, row, field)
            };
            (0..policy.scores.len()).map(of).collect()
        })
        .collect()
}

/// The words of most rows, in their order: at most twelve.
fn told_apart<'a>(words: &Words<'a>) -> Vec<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for &word in words.iter().flatten().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut by_rows: Vec<(&str, usize)> = counts.into_iter().collect();
    by_rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    by_rows.truncate(SLICES_MAX);
    let mut names: Vec<&str> = by_rows.into_iter().map(|(word, _)| word).collect();
    names.sort_unstable();
    names
}

/// Mean residuals out of fold by slice, each with a cluster-robust interval where it has 40 labelled rows, adjusted
/// within the family (Benjamini-Hochberg). In label units.
///
/// # Errors
/// [`SlicesError`].
pub fn by_slice(found: &Found, field: &FieldId) -> Result<Sliced, SlicesError> {
    if let Err(thin) = &found.analysis.calibration {
        return Err(SlicesError::NoCalibrator(thin.to_string()));
    }
    let words = words(found, field);
    let names = told_apart(&words);
    if names.is_empty() {
        return Err(SlicesError::Unknown(field.clone()));
    }
    let place = |word: Option<&str>| names.binary_search(&word?).ok();
    let of_all: Vec<Option<usize>> = words.iter().flatten().map(|word| place(*word)).collect();
    let labelled = residuals(found);
    let of_labelled: Vec<Option<usize>> = labelled
        .iter()
        .map(|of| place(words[of.policy][of.row]))
        .collect();
    let values: Vec<f64> = labelled.iter().map(Residual::value).collect();
    let policies = &found.gathered.dataset.policies;
    let prompts = labelled
        .iter()
        .map(|of| policies[of.policy].prompts[of.row]);
    let clusters = Clusters::of(prompts).map_err(Unfit::from)?;
    let count = names.len();
    let all = Slices::new(&of_all, count).map_err(Unfit::from)?;
    let family = SliceFamily {
        residuals: Values::new("residuals", &values).map_err(Unfit::from)?,
        clusters: &clusters,
        slices: Slices::new(&of_labelled, count).map_err(Unfit::from)?,
        exposures: &all.exposures(),
        stakes: &vec![0.0; count],
    };
    let mut audit = residuals::audit(&family, &SliceTerms::default())?;
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if of_all.iter().any(Option::is_none) {
        names.push(OTHER.to_owned());
    } else {
        audit.slices.truncate(count);
    }
    Ok(Sliced {
        field: field.clone(),
        names,
        audit,
    })
}
