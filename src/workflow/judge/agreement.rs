//! Two judges on the same rows: whose scores agree better with open labels.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_ledger::History;
use clover_stats::agreement;
use clover_stats::agreement::Agreement;
use clover_stats::folds;
use clover_stats::sample::Clusters;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::estimate::rows;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::NoCovariates;
use crate::estimate::rows::RowsError;
use crate::estimate::rows::Which;

/// Folds, where there are labels enough.
const FOLDS: usize = 5;

/// Why two judges cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// No row has a label and a score of both.
    #[error("no labelled row has a score of both")]
    NoPairs,
    /// A judge has no scores.
    #[error("no score by {0}")]
    NoScores(JudgeId),
    /// The rows cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// Too few labels.
    #[error("too little to go on: {0}")]
    Unfit(#[from] Unfit),
}

/// How two judges agree with the labels of the rows that both scored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgeAgreement {
    /// The numbers.
    pub found: Agreement,
    /// Folds.
    pub folds: usize,
    /// Labelled rows that one of them did not score.
    pub unpaired: usize,
}

/// A row: policy, item, draw.
type DrawKey = (String, String, u64);

/// Scores of a judge, with labels where there are some, by row.
fn scored(gathered: &Gathered) -> BTreeMap<DrawKey, (f64, Option<f64>)> {
    let ids = gathered.prompts.ids();
    let policies = gathered.dataset.policies.iter().zip(&gathered.sources);
    let rows = policies.flat_map(|(policy, source)| {
        policy.prompts.iter().enumerate().map(move |(row, prompt)| {
            let item = ids[*prompt as usize].clone();
            let key = (policy.name.clone(), item, source.draws[row]);
            (key, (policy.scores[row], policy.labels[row]))
        })
    });
    rows.collect()
}

/// Compares two judges by what stands below an entry: labels for calibration alone. Probes of audits and sealed labels are
/// not read.
///
/// # Errors
/// [`AgreementError`].
pub fn compared(
    history: &dyn History,
    experiment: &ExperimentId,
    judges: [&JudgeId; 2],
    below: u64,
) -> Result<JudgeAgreement, AgreementError> {
    let mut each = Vec::with_capacity(judges.len());
    for judge in judges {
        let which = Which {
            experiment,
            judge,
            environment: None,
            covariates: &[],
            fields: &[],
            strata: false,
            rows_below: below,
            audits_below: below,
        };
        let gathered = rows::gather(history, &which, &mut NoCovariates)?;
        let rows = scored(&gathered);
        if rows.is_empty() {
            return Err(AgreementError::NoScores(judge.clone()));
        }
        each.push(rows);
    }
    let (first, second) = (&each[0], &each[1]);
    let labelled = |rows: &BTreeMap<DrawKey, (f64, Option<f64>)>| {
        rows.values().filter(|(_, label)| label.is_some()).count()
    };
    let (mut scores, mut labels, mut items) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
    for (key, (score, label)) in first {
        if let (Some((other, _)), Some(label)) = (second.get(key), label) {
            scores[0].push(*score);
            scores[1].push(*other);
            labels.push(*label);
            items.push(key.1.as_str());
        }
    }
    if labels.is_empty() {
        return Err(AgreementError::NoPairs);
    }
    let of = |column| Values::new("scores", column).map_err(Unfit::from);
    let clusters = Clusters::of(items.iter().copied()).map_err(Unfit::from)?;
    let count = folds::resolve_count(FOLDS, clusters.count());
    let of_row = folds::balanced(&items, &items, count, 0);
    let pair = [of(&scores[0])?, of(&scores[1])?];
    let found = agreement::compare(pair, of(&labels)?, &clusters, (&of_row, count))?;
    Ok(JudgeAgreement {
        found,
        folds: count,
        unpaired: labelled(first) + labelled(second) - 2 * found.rows,
    })
}
