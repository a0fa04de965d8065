//! Recorded scores as the scorer `precomputed_scores` of Inspect reads them: `EXPERIMENT/JUDGE/POLICY.jsonl`, a draw a line.
//!
//! Draw 0 of an item is epoch 1 of the sample of that id.

use std::path::Path;

use serde_json::json;

use super::Extract;
use super::cje;
use crate::ExportError;
use crate::Progress;

/// Writes a file per experiment, judge and policy; answers with the number of lines.
pub(super) fn write(
    extract: &Extract<'_>,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    cje::by_policy(extract, folder, ".jsonl", progress, |said, score| {
        json!({
            "id": score.item.as_str(),
            "epoch": score.draw.value() + 1,
            "value": cje::number(score.score_micro),
            "explanation": format!("judge {}, recorded at seq {}", score.judge, said.seq),
        })
    })
}
