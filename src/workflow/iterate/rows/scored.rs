//! Scores of raw answers under a rubric, and which cannot be had.

use crate::num::Micro;
use crate::rubric::engine::EngineError;
use crate::rubric::engine::Rules;
use crate::rubric::evidence::Evidence;
use crate::workflow::iterate::compute::rows::Scored;

/// A raw answer.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub base: Micro,
    pub evidence: Option<Evidence>,
    /// The entry of the score.
    pub seq: u64,
}

/// What could not be scored.
#[derive(Default)]
pub(super) struct Lack {
    pub rows: usize,
    pub first: Option<String>,
}

fn score_of(raw: &Raw, rules: &Rules) -> Result<(f64, bool), Option<EngineError>> {
    let real = |micro: Micro| micro.value() as f64 / 1e6;
    match &raw.evidence {
        None => Err(None),
        Some(evidence) => match rules.score(raw.base, evidence) {
            Ok(found) => Ok((real(found.score), found.abstain)),
            Err(error) => Err(Some(error)),
        },
    }
}

/// Scores under a rubric; a score without a record stands as it is.
pub(super) fn scored(
    rows: &[Raw],
    rules: &Rules,
    lack: &mut Lack,
    name: impl Fn(usize) -> String,
) -> Scored {
    let mut scored = Scored::default();
    for (at, raw) in rows.iter().enumerate() {
        let (score, abstains) = match score_of(raw, rules) {
            Ok(found) => found,
            Err(error) => {
                if let Some(error) = error {
                    lack.rows += 1;
                    lack.first
                        .get_or_insert_with(|| format!("{}: {error}", name(at)));
                }
                (raw.base.value() as f64 / 1e6, false)
            }
        };
        scored.scores.push(score);
        scored.abstains.push(abstains);
    }
    scored
}

/// The same where a row without a record is missing too.
pub(super) fn scored_strictly(
    rows: &[Raw],
    rules: &Rules,
    lack: &mut Lack,
    name: impl Fn(usize) -> String,
) -> Scored {
    if let Some(at) = rows.iter().position(|raw| raw.evidence.is_none()) {
        lack.rows += 1;
        let first = || format!("{}: no evidence record", name(at));
        lack.first.get_or_insert_with(first);
    }
    scored(rows, rules, lack, name)
}
