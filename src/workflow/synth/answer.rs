//! What an answer of an optimizer is read as: `{"candidates":[{"yaml":"…","cards":["<digest>"],"why":"…"}]}`, each candidate
//! through the twelve checks of patches, without repair.

use std::collections::BTreeSet;

use clover_event::calls::CallOutcome;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
pub use clover_event::payload::model_calls::ANSWER_MAX;
use clover_event::payload::rubric::SourceText;
use clover_event::payload::synth_runs::AnswerState;
use clover_event::payload::synth_runs::CANDIDATES_MAX;
use clover_event::payload::synth_runs::CARDS_MAX;
use clover_event::payload::synth_runs::CandidateCode;
use clover_event::payload::synth_runs::SynthCandidate;
use clover_event::payload::synth_runs::SynthReturned;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::asked::LastCall;
use clover_rubric::CheckedPatch;
use clover_rubric::Patch;
use serde::Deserialize;

use crate::ask::reading;
use crate::patches::Bench;
use crate::synth::MEDIA;

/// Most characters of a reason.
const WHY_MAX: usize = 280;
/// Most bytes of the documents of an answer together, as JSON: an event has room for no more.
const DOCUMENTS_MAX: usize = 20 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerDocument {
    candidates: Vec<CandidateDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CandidateDocument {
    yaml: String,
    #[serde(default)]
    cards: Vec<Digest>,
    #[serde(default)]
    why: String,
}

/// What an answer was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Its candidates.
    pub candidates: Vec<SynthCandidate>,
    /// What became of it as a whole.
    pub state: AnswerState,
}

impl ReadAnswer {
    fn none(state: AnswerState) -> Self {
        let candidates = Vec::new();
        Self { candidates, state }
    }
}

/// What candidates of a round are held to.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// The rubric, families, frozen paths and topics of the iteration; the ids and hashes of what was proposed, and of what
    /// the run returned before.
    pub bench: Bench,
    /// Most candidates.
    pub k: u64,
    /// What the view held.
    pub inputs: &'a [Digest],
}

/// What one document is by the checks: a patch, or why it is none.
///
/// # Errors
/// The code of what it failed.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn checked(bench: &Bench, yaml: &str) -> Result<(Patch, CheckedPatch), CandidateCode> {
    let found = bench.check(yaml.as_bytes(), None);
    let (patch, checked) = found.map_err(|fault| {
        let code = fault.code.as_str().parse();
        code.expect("BUG: each check of patches has a code of candidates")
    })?;
    if checked.needs_rescore == Some(true) {
        return Err(CandidateCode::Rescore);
    }
    Ok((patch, checked))
}

/// What a document that names these cards is: the hash of its diff, or why it is none.
///
/// # Errors
/// The code of what it failed.
pub fn judged(terms: &Terms<'_>, yaml: &str, cards: &[Digest]) -> Result<Digest, CandidateCode> {
    let (_, checked) = checked(&terms.bench, yaml)?;
    if cards.iter().any(|card| !terms.inputs.contains(card)) {
        return Err(CandidateCode::Cards);
    }
    Ok(checked.hash)
}

/// Reads an answer.
pub fn read(bytes: &[u8], mut terms: Terms<'_>) -> ReadAnswer {
    if bytes.len() > ANSWER_MAX {
        return ReadAnswer::none(AnswerState::Oversize);
    }
    let Ok(answer) = serde_json::from_slice::<AnswerDocument>(bytes) else {
        return ReadAnswer::none(AnswerState::Unreadable);
    };
    let is_whole = answer.candidates.len() <= CANDIDATES_MAX
        && answer
            .candidates
            .iter()
            .all(|of| of.cards.len() <= CARDS_MAX && of.why.chars().count() <= WHY_MAX);
    if !is_whole {
        return ReadAnswer::none(AnswerState::Unreadable);
    }
    let mut room = DOCUMENTS_MAX;
    let mut candidates = Vec::with_capacity(answer.candidates.len());
    for (place, of) in (0..).zip(answer.candidates) {
        if place >= terms.k {
            candidates.push(unread(CandidateCode::BeyondK));
            continue;
        }
        let length = serde_json::to_string(&of.yaml).map_or(usize::MAX, |json| json.len());
        let Some(yaml) = SourceText::new(of.yaml.as_str()).filter(|_| length <= room) else {
            candidates.push(unread(CandidateCode::Oversize));
            continue;
        };
        room -= length;
        let found = judged(&terms, &of.yaml, &of.cards);
        terms.bench.hashes.extend(found.ok());
        candidates.push(SynthCandidate {
            cards: of.cards,
            code: found.err(),
            patch_hash: found.ok(),
            yaml: Some(yaml),
        });
    }
    ReadAnswer {
        candidates,
        state: AnswerState::Read,
    }
}

fn unread(code: CandidateCode) -> SynthCandidate {
    SynthCandidate {
        cards: Vec::new(),
        code: Some(code),
        patch_hash: None,
        yaml: None,
    }
}

/// Whether a candidate of this code is on record without its document.
pub fn is_unread(code: Option<CandidateCode>) -> bool {
    matches!(code, Some(CandidateCode::BeyondK | CandidateCode::Oversize))
}

/// The bench of an iteration with what a run returned before.
#[must_use]
pub fn bench_of(bench: Bench, valid: &BTreeSet<Digest>) -> Bench {
    let hashes = bench.hashes.union(valid).copied().collect();
    Bench { hashes, ..bench }
}

/// The reference to a view or an answer that is stored.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn reference(bytes: &[u8]) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: Count::new(bytes.len() as u64).unwrap_or_default(),
        media: MediaType::new(MEDIA).expect("BUG: a constant media type"),
    }
}

/// What becomes of an answer by a call that ended without a text.
pub fn state_of_call(call: &LastCall) -> AnswerState {
    let detail = call.detail.as_ref().map(Text::as_str);
    if call.outcome == CallOutcome::Unparsed && detail == Some(reading::OVERSIZE) {
        AnswerState::Oversize
    } else {
        AnswerState::Unreadable
    }
}

/// The event of an answer, in the place of another of its round.
pub fn returned(bytes: &[u8], read: ReadAnswer, of: &SynthReturned) -> SynthReturned {
    SynthReturned {
        answer: (read.state != AnswerState::Oversize).then(|| reference(bytes)),
        candidates: read.candidates,
        state: read.state,
        ..of.clone()
    }
}

#[cfg(test)]
mod tests {
    use clover_rubric::Rubric;
    use serde_json::json;

    use super::*;

    const RUBRIC: &str = "rubric:\n  version: \"1.0\"\n  target: Y\n  sdp_version: v1\n  guards:\n    \
                          confident_but_wrong_max: 0.4\n";

    fn terms(inputs: &[Digest]) -> Terms<'_> {
        Terms {
            bench: Bench::loose(Rubric::parse(RUBRIC.as_bytes()).unwrap()),
            k: 2,
            inputs,
        }
    }

    fn patch(value: &str) -> String {
        format!(
            "patch:\n  family: contradiction_check\n  id: max-1\n  rationale: why not\n  changes: \
             {{guards.confident_but_wrong_max: {value}}}\n  constraints: {{max_tokens_added: 9, affects_rescore: false}}\n"
        )
    }

    fn codes(answer: &serde_json::Value, inputs: &[Digest]) -> Vec<Option<CandidateCode>> {
        let read = read(answer.to_string().as_bytes(), terms(inputs));
        assert_eq!(read.state, AnswerState::Read);
        read.candidates.iter().map(|of| of.code).collect()
    }

    #[test]
    fn an_answer_of_another_form_has_no_candidate() {
        let long = "x".repeat(ANSWER_MAX + 1);
        let why = json!({"candidates": [{"yaml": "", "why": "y".repeat(WHY_MAX + 1)}]}).to_string();
        for (bytes, state) in [
            ("Raise the cap.", AnswerState::Unreadable),
            (r#"{"candidates":[{"yaml":1}]}"#, AnswerState::Unreadable),
            (r#"{"candidates":[],"note":""}"#, AnswerState::Unreadable),
            (why.as_str(), AnswerState::Unreadable),
            (long.as_str(), AnswerState::Oversize),
        ] {
            let read = read(bytes.as_bytes(), terms(&[]));
            assert_eq!(
                (read.state, read.candidates.len()),
                (state, 0),
                "{bytes:.40}"
            );
        }
    }

    #[test]
    fn each_candidate_has_a_hash_or_a_code() {
        let card = Digest::sha256(b"card");
        let of = |yaml: String, cards: &[Digest]| json!({"yaml": yaml, "cards": cards});
        let same = json!({"candidates": [of(patch("0.2"), &[card]), of(patch("0.20"), &[])]});
        assert_eq!(
            codes(&same, &[card]),
            [None, Some(CandidateCode::DuplicateDiff)]
        );
        let strange = json!({"candidates": [of(patch("0.2"), &[card]), of(patch("0.4"), &[])]});
        assert_eq!(
            codes(&strange, &[]),
            [Some(CandidateCode::Cards), Some(CandidateCode::Noop)]
        );
        let long = format!("{}# {}\n", patch("0.2"), "x".repeat(9_000));
        let many =
            json!({"candidates": [of(long, &[]), of(patch("0.2"), &[]), of(patch("0.1"), &[])]});
        assert_eq!(
            codes(&many, &[]),
            [
                Some(CandidateCode::Oversize),
                None,
                Some(CandidateCode::BeyondK)
            ]
        );
    }
}
