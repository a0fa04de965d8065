//! Logged rows as a log holds them: log-probabilities of responses under the policy that gave them and under others.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::Text;
use clover_event::payload::judge::LogprobRecorded;
use clover_event::payload::ope::LogprobsChecked;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_projection::reader::LogReader;
use serde::Deserialize;
use serde::Serialize;

/// Why logged rows could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A blob that an entry names is not at hand, or not what the entry says.
    #[error("the rows of the logprobs.checked at seq {seq}: {what}")]
    Rows {
        /// The entry.
        seq: u64,
        /// What is wrong.
        what: String,
    },
}

/// One row of a `logprobs.checked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedRow {
    /// The first clause that it broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<Text>,
    /// Its cohort: time window, traffic source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort: Option<Text>,
    /// Which draw.
    pub draw: Count,
    /// What was answered.
    pub item: ItemId,
    /// SHA-256 of the judge's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_cfg: Option<Digest>,
    /// SHA-256 of the run's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_cfg: Option<Digest>,
    /// Tokens of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Count>,
}

/// What is known of one logged response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// Log-probability under the policy that gave it.
    pub base: f64,
    /// Under others.
    pub targets: BTreeMap<PolicyId, f64>,
}

/// Logged responses of one policy.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Responses by item and draw.
    pub responses: BTreeMap<(ItemId, u64), Response>,
    /// Token counts.
    pub tokens: BTreeMap<(ItemId, u64), u64>,
    /// Cohorts.
    pub cohorts: BTreeMap<(ItemId, u64), Text>,
    /// Entries that say what was filtered.
    pub checked: Vec<u64>,
    /// The newest entry that was read.
    pub newest: u64,
}

impl Logs {
    /// Policies that some response has a log-probability under.
    pub fn targets(&self) -> BTreeSet<&PolicyId> {
        let responses = self.responses.values();
        responses.flat_map(|of| of.targets.keys()).collect()
    }

    fn recorded(&mut self, seq: u64, said: &LogprobRecorded) {
        let targets = said.targets.iter();
        let response = Response {
            base: said.base.value(),
            targets: targets
                .map(|of| (of.policy.clone(), of.logprob.value()))
                .collect(),
        };
        let place = (said.item.clone(), said.draw.value());
        self.responses.insert(place, response);
        self.newest = seq;
    }

    fn checked(&mut self, seq: u64, said: &LogprobsChecked, rows: &[u8]) -> Result<(), String> {
        if Digest::blake3(rows) != said.rows.blake3 {
            return Err("other bytes than the entry names".to_owned());
        }
        for line in rows
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let row: CheckedRow =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            let place = (row.item, row.draw.value());
            if let Some(tokens) = row.tokens.filter(|tokens| tokens.value() > 0) {
                self.tokens.insert(place.clone(), tokens.value());
            }
            if let Some(cohort) = row.cohort {
                self.cohorts.insert(place, cohort);
            }
        }
        self.checked.push(seq);
        self.newest = seq;
        Ok(())
    }
}

/// Reads the logged responses of an experiment, by the policy that gave them.
///
/// # Errors
/// [`LogsError`].
pub fn read(
    history: &dyn History,
    experiment: &ExperimentId,
    below: u64,
) -> Result<BTreeMap<PolicyId, Logs>, LogsError> {
    let mut found: BTreeMap<PolicyId, Logs> = BTreeMap::new();
    let mut checked = Vec::new();
    LogReader::below(history, below)
        .of(experiment)
        .each(|seq, event| {
            match &event.payload {
                Payload::LogprobRecorded(said) => {
                    let logs = found.entry(said.policy.clone()).or_default();
                    logs.recorded(seq, said);
                }
                Payload::LogprobsChecked(said) => checked.push((seq, said.clone())),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
    for (seq, said) in checked {
        let wrong = |what: String| LogsError::Rows { seq, what };
        let rows = history.blob(&said.rows.blake3)?;
        let rows = rows.ok_or_else(|| wrong("their blob is missing".to_owned()))?;
        let logs = found.entry(said.policy.clone()).or_default();
        let newest = logs.newest;
        logs.checked(seq, &said, &rows).map_err(wrong)?;
        logs.newest = logs.newest.max(newest);
    }
    Ok(found)
}
