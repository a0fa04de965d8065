//! The vectors and the real sample that are compiled in, so that a user can qualify a build with nothing else.

use crate::check::Arena;

macro_rules! vector {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../fixtures/reference/stats/", $name)),
        )
    };
}

macro_rules! eprocess {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../fixtures/reference/eprocess/", $name)),
        )
    };
}

macro_rules! sample {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../fixtures/reference/arena/", $name)),
        )
    };
}

/// Vector files by name, in order.
pub const VECTORS: &[(&str, &str)] = &[
    eprocess!("agent_eval_core.json"),
    eprocess!("agent_eval_decide.json"),
    eprocess!("agent_eval_gate.json"),
    eprocess!("agent_eval_headline.json"),
    eprocess!("agent_eval_manifest.json"),
    eprocess!("agent_eval_resume.json"),
    vector!("bootstrap.json"),
    vector!("boundary.json"),
    vector!("calibrator.json"),
    vector!("cle.json"),
    vector!("clover_gates.json"),
    eprocess!("confseq_betting.json"),
    vector!("direct_arena.json"),
    vector!("direct_synth.json"),
    vector!("distribution.json"),
    vector!("ece.json"),
    eprocess!("evalues.json"),
    vector!("folds.json"),
    vector!("isotonic.json"),
    vector!("multipletests.json"),
    vector!("ope.json"),
    vector!("planner.json"),
    eprocess!("prng_mulberry32.json"),
    vector!("rank.json"),
    vector!("se_pieces.json"),
    vector!("shrinkage.json"),
    vector!("transport.json"),
    vector!("ttest.json"),
    vector!("weights.json"),
];

/// Slips of the peers in these vectors.
pub const SLIPS: &str = include_str!("../../fixtures/reference/stats/peer.slips");

/// Files of the real sample, without its texts.
const SAMPLE: &[(&str, &str)] = &[
    sample!("fresh_draws/base_responses.jsonl"),
    sample!("fresh_draws/clone_responses.jsonl"),
    sample!("fresh_draws/parallel_universe_prompt_responses.jsonl"),
    sample!("fresh_draws/unhelpful_responses.jsonl"),
    sample!("logged_data.jsonl"),
    sample!("probe_slice/clone_probe.jsonl"),
    sample!("probe_slice/parallel_universe_prompt_probe.jsonl"),
    sample!("probe_slice/unhelpful_probe.jsonl"),
];

/// The real sample that is compiled in: numbers only, response lengths in place of responses.
#[derive(Clone, Copy, Debug)]
pub struct BundledSample;

impl Arena for BundledSample {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = SAMPLE.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| format!("the bundled sample has no {name}"))?;
        Ok((*text).to_owned())
    }
}
