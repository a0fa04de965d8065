//! Under which keys scores are kept: once per judge, text and extractor, and once per rubric over that. Byte format:
//! `schema/SCORING.md`.

use clover_event::payload::scoring::Decoding;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;

/// Label of raw keys.
pub const RAW_LABEL: &str = "clover/raw-key/v1";
/// Label of raw keys of judges behind HTTP.
pub const PLAN_LABEL: &str = "clover/raw-key/v2";
/// Label of score keys.
pub const SCORE_LABEL: &str = "clover/score-key/v1";

/// What a raw score depends on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RawKey<'a> {
    /// The response, as a keyed digest.
    pub a_hash: Digest,
    /// How the model was decoded.
    pub decoding: Decoding,
    /// Version of the evidence record.
    pub evidence_schema_version: &'a str,
    /// Version of the extractor.
    pub extractor_version: &'a str,
    /// The model.
    pub judge_model_id: &'a str,
    /// SHA-256 of the judge's template with the rubric fields that it shows.
    pub prompt_hash: Digest,
    /// SHA-256 of what was recorded of sources, tool calls and facts.
    pub tool_snapshot_id: Digest,
    /// The prompt, as a keyed digest.
    pub x_hash: Digest,
}

impl RawKey<'_> {
    /// The key: labelled SHA-256 of the canonical object.
    pub fn digest(&self) -> Digest {
        canon::digest(RAW_LABEL, self)
    }
}

/// What a raw score of a judge behind HTTP depends on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlanKey<'a> {
    /// The response, as a keyed digest.
    pub a_hash: Digest,
    /// Version of the evidence record.
    pub evidence_schema_version: &'a str,
    /// Version of the extractor.
    pub extractor_version: &'a str,
    /// The model that has to answer.
    pub model_returned: &'a str,
    /// Digest of the plan.
    pub plan_digest: Digest,
    /// SHA-256 of what it is told.
    pub prompt_hash: Digest,
    /// SHA-256 of what was recorded of sources, tool calls and facts.
    pub tool_snapshot_id: Digest,
    /// The prompt, as a keyed digest.
    pub x_hash: Digest,
}

impl PlanKey<'_> {
    /// The key: labelled SHA-256 of the canonical object.
    pub fn digest(&self) -> Digest {
        canon::digest(PLAN_LABEL, self)
    }
}

/// The raw key of a judge's score of two texts, as it was registered: that of a plan where the judge stands behind HTTP.
pub fn raw_key(judge: &JudgeRegistered, a_hash: Digest, x_hash: Digest) -> Digest {
    if let Some(asked) = &judge.asked {
        let key = PlanKey {
            a_hash,
            evidence_schema_version: judge.evidence_schema.as_str(),
            extractor_version: judge.extractor.as_str(),
            model_returned: asked.pin.as_str(),
            plan_digest: asked.plan_digest,
            prompt_hash: judge.prompt_hash,
            tool_snapshot_id: judge.tool_snapshot,
            x_hash,
        };
        return key.digest();
    }
    let key = RawKey {
        a_hash,
        decoding: judge.decoding,
        evidence_schema_version: judge.evidence_schema.as_str(),
        extractor_version: judge.extractor.as_str(),
        judge_model_id: judge.model.as_str(),
        prompt_hash: judge.prompt_hash,
        tool_snapshot_id: judge.tool_snapshot,
        x_hash,
    };
    key.digest()
}

/// The key of a score under a rubric: labelled SHA-256 of both digests, raw key first.
pub fn score_key(raw: &Digest, rubric: &Digest) -> Digest {
    let both = [*raw.as_bytes(), *rubric.as_bytes()].concat();
    Digest::labelled(SCORE_LABEL, &both)
}
