//! Scores of raw answers under a rubric, and which cannot be had.

use std::collections::BTreeSet;

use clover_event::id::Text;
use clover_num::Micro;
use clover_projection::iterations::rows::Key;
use clover_rubric::engine::EngineError;
use clover_rubric::engine::Rules;
use clover_rubric::evidence::Evidence;

use crate::iterate::compute::rows::RubricScores;

/// A raw answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Raw {
    pub base: Micro,
    pub evidence: Option<Evidence>,
    /// Its row.
    pub key: Key,
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

/// Paths of the rules that fire on an answer, ascending, each once; `None` where they cannot score it.
pub(super) fn fired(raw: &Raw, rules: &Rules) -> Option<Vec<Text>> {
    let scored = rules.score(raw.base, raw.evidence.as_ref()?).ok()?;
    let paths: BTreeSet<String> = scored.trace.into_iter().map(|of| of.path).collect();
    Some(paths.into_iter().filter_map(Text::new).collect())
}

/// Scores under a rubric; a score without a record stands as it is.
pub(super) fn scored(
    rows: &[Raw],
    rules: &Rules,
    lack: &mut Lack,
    name: impl Fn(usize) -> String,
) -> RubricScores {
    let mut scored = RubricScores::default();
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
) -> RubricScores {
    if let Some(at) = rows.iter().position(|raw| raw.evidence.is_none()) {
        lack.rows += 1;
        let first = || format!("{}: no evidence record", name(at));
        lack.first.get_or_insert_with(first);
    }
    scored(rows, rules, lack, name)
}

#[cfg(test)]
mod tests {
    use clover_num::Count;

    use super::*;

    #[test]
    fn what_fires_on_an_answer_is_named_by_its_path_alone() {
        let micro = |value| Micro::new(value).unwrap();
        let rules = Rules {
            abstain_on: ["dosing".to_owned()].into(),
            confident_but_wrong_max: Some(micro(400_000)),
            length_bias_cap: Some((500, micro(500_000))),
            tool_trace_consistency: true,
            ..Rules::default()
        };
        let of = |evidence: Option<Evidence>| {
            let raw = Raw {
                base: micro(900_000),
                evidence,
                key: ("base".parse().unwrap(), "item-1".parse().unwrap(), 0),
                seq: 0,
            };
            let paths = fired(&raw, &rules)?;
            Some(
                paths
                    .iter()
                    .map(|path| path.as_str().to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let long = Evidence {
            critical_info_missing: true,
            tokens: Count::new(501).unwrap(),
            tool_trace_claims: Count::new(1).unwrap(),
            topics: ["dosing".to_owned()].into(),
            ..Evidence::default()
        };
        let expected = [
            "abstention.triggers",
            "guards.length_bias_cap.max_raw_score",
            "guards.tool_trace_consistency",
        ];
        assert_eq!(of(Some(long)).unwrap(), expected);
        assert_eq!(of(Some(Evidence::default())), Some(Vec::new()));
        // Nobody looked, or not at what a rule asks: that is not the same as nothing.
        assert_eq!(of(None), None);
        let unlooked = Evidence {
            confident: true,
            factual_error: None,
            ..Evidence::default()
        };
        assert_eq!(of(Some(unlooked)), None);
    }
}
