//! The rows that a ledger holds: draws that were scored, and draws that were taken in to be judged.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::Source;
use clover_event::payload::judge::ScoreRecorded;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;
use clover_workflow::import;
use clover_workflow::import::Brings;
use clover_workflow::import::How;
use clover_workflow::import::ImportRow;
use clover_workflow::import::kept::Unread;
use clover_workflow::import::labels::Draw;
use serde::Deserialize;

use crate::error::SessionError;
use crate::home::Home;
use crate::texts::Texts;

/// A line of ingested rows; without a score, it waits for a judge.
#[derive(Deserialize)]
struct IngestedLine {
    draw: Count,
    item: ItemId,
    policy: PolicyId,
    #[serde(default)]
    score_micro: Option<Micro>,
}

/// Files of an experiment whose rows came without scores.
fn unscored(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<Vec<(u64, DataIngested, Vec<IngestedLine>)>, SessionError> {
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    let mut files = Vec::new();
    for LogStatement { seq, said, .. } in entries.all::<DataIngested>(|_| true)? {
        let bytes = History::blob(ledger, &said.rows.blake3)?;
        let bytes = bytes.ok_or(Unread::Absent { seq })?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let lines = lines.map(serde_json::from_slice::<IngestedLine>);
        let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|error| {
            let what = error.to_string();
            Unread::Damaged { seq, what }
        })?;
        if lines.iter().all(|line| line.score_micro.is_none()) {
            files.push((seq, said, lines));
        }
    }
    Ok(files)
}

/// Draws of an experiment that were scored or taken in to be judged, each with the entry that first names it.
///
/// # Errors
/// When the log or the rows of a file cannot be read.
pub fn draws(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<Draw, u64>, SessionError> {
    let mut draws = BTreeMap::new();
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    for LogStatement { seq, said, .. } in entries.all::<ScoreRecorded>(|_| true)? {
        draws
            .entry((said.policy, said.item, said.draw))
            .or_insert(seq);
    }
    for (draw, seq) in waiting(ledger, experiment)? {
        draws.entry(draw).or_insert(seq);
    }
    Ok(draws)
}

/// Draws of an experiment that were taken in to be judged, each with the entry that first names it.
///
/// # Errors
/// When the log or the rows of a file cannot be read.
pub fn waiting(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<Draw, u64>, SessionError> {
    let mut draws = BTreeMap::new();
    for (seq, _, lines) in unscored(ledger, experiment)? {
        for line in lines {
            let draw = (line.policy, line.item, line.draw);
            draws.entry(draw).or_insert(seq);
        }
    }
    Ok(draws)
}

/// Rows that were taken in to be judged, with their texts, and files whose texts are not at hand.
#[derive(Debug, Default)]
pub struct UnscoredRows {
    /// In the order in which they were taken in; of a draw, the first.
    pub rows: Vec<ImportRow>,
    /// Where each was taken in.
    pub seqs: Vec<u64>,
    /// Files whose texts were erased, or whose key is not here: where each stands, and why.
    pub silent: Vec<(u64, String)>,
}

/// Rows of an experiment that were taken in to be judged.
///
/// # Errors
/// When the log, the vault or the rows of a file cannot be read.
pub fn rows(
    home: &Home,
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<UnscoredRows, SessionError> {
    let mut held = UnscoredRows::default();
    let mut seen = BTreeMap::new();
    let mut texts = Texts::new(home, ledger)?;
    for (seq, said, _) in unscored(ledger, experiment)? {
        let Source::Private(private) = &said.source else {
            held.silent
                .push((seq, "it is sealed to a custodian".to_owned()));
            continue;
        };
        let text = match texts.opened(private) {
            Ok(text) => text,
            Err(why) => {
                held.silent.push((seq, why));
                continue;
            }
        };
        let how = How {
            policy: None,
            logprobs: false,
            brings: Brings::Texts,
            scale: (Micro::default(), Micro::default()),
            label_scale: None,
            fields: &[],
            name_prompt: &|_| String::new(),
        };
        let file = format!("seq {seq}");
        let rows = import::cje::rows(&file, text.as_bytes(), how).map_err(|error| {
            let what = error.to_string();
            Unread::Damaged { seq, what }
        })?;
        for row in rows.rows {
            let draw: Draw = (row.policy.clone(), row.item.clone(), row.draw);
            if seen.insert(draw, seq).is_none() {
                held.seqs.push(seq);
                held.rows.push(row);
            }
        }
    }
    Ok(held)
}
