//! The registration of a judge: which judge a name stands for.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::BlobRef;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_workflow::judge::Judge;
use clover_workflow::judge::fields::EvidenceFields;
use clover_workflow::judge::run::ProbeEvidence;

use crate::error::SessionError;
use crate::judge::error::JudgingError;
use crate::ports::Judges;

/// The event that registers a judge.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its id.
    pub id: EventId,
    /// Where it stands.
    pub seq: u64,
    /// The judge.
    pub judge: JudgeRegistered,
}

/// What is known of sources, facts and tool calls, as a judge registered it.
///
/// # Errors
/// [`JudgingError::Known`], and what reading the blob gives.
pub fn known(ledger: &Ledger, judge: &JudgeRegistered) -> Result<ProbeEvidence, SessionError> {
    let known = known_bytes(ledger, judge)?;
    Ok(known.map(|(_, known)| known).unwrap_or_default())
}

/// The same with its bytes; `None` where the judge was registered with nothing known.
///
/// # Errors
/// As [`known`].
pub fn known_bytes(
    ledger: &Ledger,
    judge: &JudgeRegistered,
) -> Result<Option<(Vec<u8>, ProbeEvidence)>, SessionError> {
    let Some(blob) = &judge.known else {
        return Ok(None);
    };
    let damaged = |found: String| JudgingError::Known {
        judge: judge.judge.clone(),
        found,
    };
    let bytes = History::blob(ledger, &blob.blake3)?;
    let bytes = bytes.ok_or_else(|| damaged("its blob is not there".to_owned()))?;
    let known = serde_json::from_slice(&bytes);
    let known = known.map_err(|error| damaged(error.to_string()))?;
    Ok(Some((bytes, known)))
}

/// A registered judge, ready to be asked, and told what it was registered to be told.
///
/// # Errors
/// When it cannot be asked here, or what it is told is not at hand.
pub fn opened(
    ports: &mut dyn Judges,
    ledger: &Ledger,
    judge: &JudgeRegistered,
) -> Result<Box<dyn Judge + Send>, SessionError> {
    let known = known(ledger, judge)?;
    opened_with(ports, ledger, judge, (known.evidence.as_ref(), None))
}

/// The same with the fields of evidence that it returns, and what it is told where that is not on record yet.
pub(super) fn opened_with(
    ports: &mut dyn Judges,
    ledger: &Ledger,
    judge: &JudgeRegistered,
    (fields, told): (Option<&EvidenceFields>, Option<&str>),
) -> Result<Box<dyn Judge + Send>, SessionError> {
    let mut port = ports.judge(judge)?;
    if let Some(fields) = fields {
        port.expect(fields);
    }
    if let Some(text) = told {
        port.tell(text);
    } else if let Some(blob) = &judge.prompt {
        port.tell(&kept_prompt(ledger, judge, blob)?);
    }
    Ok(port)
}

/// What a judge is told, as it was kept. A text of its own has the hash that its registration names.
pub(super) fn kept_prompt(
    ledger: &Ledger,
    judge: &JudgeRegistered,
    blob: &BlobRef,
) -> Result<String, SessionError> {
    let absent = || JudgingError::NoPrompt(judge.judge.clone());
    let bytes = History::blob(ledger, &blob.blake3)?.ok_or_else(absent)?;
    if judge.of.is_none() && Digest::sha256(&bytes) != judge.prompt_hash {
        return Err(JudgingError::OtherPrompt(judge.judge.clone()).into());
    }
    Ok(String::from_utf8(bytes).map_err(|_| absent())?)
}

/// How a judge of an experiment is reached; `None` where nobody registered it.
///
/// # Errors
/// When the ledger cannot be read.
pub fn port(
    ledger: &Ledger,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Result<Option<JudgePort>, SessionError> {
    Ok(standing(ledger, experiment, judge)?.map(|of| of.judge.port))
}

/// The registration of a judge, when there is one.
///
/// # Errors
/// When the ledger cannot be read.
pub fn standing(
    ledger: &Ledger,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Result<Option<Registration>, LedgerError> {
    let key = registry::natural_key_of(Kind::JudgeRegistered, experiment, &[judge.as_str()]);
    let Some(seq) = ledger.giver(&key)? else {
        return Ok(None);
    };
    let read = ledger.entry(seq)?;
    Ok(read.and_then(|read| match read.event.payload {
        Payload::JudgeRegistered(judge) => Some(Registration {
            id: read.event.id,
            seq,
            judge: *judge,
        }),
        _ => None,
    }))
}
