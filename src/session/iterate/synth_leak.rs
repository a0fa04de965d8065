//! Every text and id of an experiment's rows, held against a view before it is handed over.

use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::payload::PrivateRef;
use clover_event::payload::synth_runs::LeakTest;
use clover_num::Count;
use clover_rubric::Rubric;
use clover_workflow::synth::leak::ViewText;
use clover_workflow::synth::view::OptimizerView;
use serde::Deserialize;

use crate::custody::erasure;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::texts::Texts;

/// What is looked through: ids, each once, and where each text is.
#[derive(Default)]
struct LeakRows {
    ids: BTreeSet<String>,
    texts: Vec<(u64, PrivateRef)>,
    blobs: Vec<clover_ground::digest::Digest>,
    /// The rubric that was registered before the first row.
    known: Vec<String>,
}

#[derive(Deserialize)]
struct RowItem {
    item: String,
}

fn rows(bench: &Bench) -> Result<LeakRows, SessionError> {
    let mut found = LeakRows::default();
    let (mut seen, mut is_first) = (BTreeSet::new(), true);
    let ledger = &bench.ledger;
    ledger.entries::<SessionError>(0, ledger.size(), |read| {
        if read.event.header.experiment.as_ref() != Some(&bench.record.experiment) {
            return Ok(());
        }
        match &read.event.payload {
            Payload::RubricRegistered(said) if is_first => {
                let yaml = said.yaml.as_str();
                found.known.push(yaml.to_owned());
                let fixed = Rubric::parse(yaml.as_bytes()).map(|rubric| rubric.to_yaml());
                found.known.extend(fixed.ok());
            }
            Payload::ScoreRecorded(said) => {
                is_first = false;
                found.ids.insert(said.item.to_string());
                let texts = said.prompt.iter().chain(&said.response);
                let new = texts.filter(|of| seen.insert(of.blob.blake3));
                let at = read.stored.seq;
                found.texts.extend(new.map(|of| (at, of.clone())));
            }
            Payload::LabelRecorded(said) => {
                found.ids.insert(said.item.to_string());
            }
            Payload::DataIngested(said) => {
                is_first = false;
                found.blobs.push(said.rows.blake3);
            }
            _ => {}
        }
        Ok(())
    })?;
    for blob in &found.blobs {
        let bytes = ledger.store().reader().blob(blob)?.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let items = lines.filter_map(|line| serde_json::from_slice::<RowItem>(line).ok());
        found.ids.extend(items.map(|of| of.item));
    }
    Ok(found)
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

/// Looks through every row.
///
/// # Errors
/// [`IterationError::Leak`] where something of a row stands in the view, [`IterationError::LeakUnread`] where nobody can
/// say; then nothing was handed over.
pub(super) fn test(bench: &Bench, view: &OptimizerView) -> Result<LeakTest, SessionError> {
    let rows = rows(bench)?;
    let shown = ViewText::of(view, &rows.known);
    let leak = |what: String| IterationError::Leak {
        run: bench.id.to_string(),
        what,
    };
    if let Some(id) = rows.ids.iter().find(|id| shown.holds_id(id)) {
        return Err(leak(format!("the id of a row, {id}")).into());
    }
    let mut texts = Texts::new(&bench.home, &bench.ledger)?;
    let (mut erased, mut unread) = (0_u64, 0_u64);
    for (seq, private) in &rows.texts {
        match texts.opened(private) {
            Ok(text) if shown.holds_text(&text) => {
                let what = format!("words of a text of the row that was scored at seq {seq}");
                return Err(leak(what).into());
            }
            Ok(_) => {}
            Err(_) => match erasure::erased_at(&bench.ledger, &private.subject)? {
                Some(_) => erased += 1,
                None => unread += 1,
            },
        }
    }
    if unread > 0 {
        return Err(IterationError::LeakUnread { texts: unread }.into());
    }
    Ok(LeakTest {
        ids: count(rows.ids.len() as u64),
        texts: count(rows.texts.len() as u64),
        unreadable: count(erased),
    })
}
