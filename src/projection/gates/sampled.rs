//! What the log says for an estimate beside a gate: its manifest, its units as they were observed, and labels of the
//! sample.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::manifest::Manifest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Micro;

use crate::reader::LogReader;
use crate::reader::Model;

/// What is read for an estimate.
#[derive(Debug, Default)]
pub struct SampledRows {
    /// Labels of the design by arm, unit and draw; of two labels of one draw the first.
    pub labels: BTreeMap<(String, ItemId, u64), Micro>,
    /// The manifest of its digest.
    pub manifest: Option<Box<Manifest>>,
    /// Units in the order observed, with the sum of the differences of their draws, in millionths.
    pub observed: Vec<(ItemId, i64)>,
}

/// The same while it is read.
struct SampledReader<'a> {
    said: &'a GateEstimated,
    rows: SampledRows,
}

impl Model for SampledReader<'_> {
    fn take(&mut self, _: u64, event: &Event) {
        let (said, rows) = (self.said, &mut self.rows);
        match &event.payload {
            Payload::ManifestRegistered(of) if of.digest == said.digest => {
                rows.manifest = Some(of.manifest.clone());
            }
            Payload::ManifestAmended(of) if of.digest == said.digest => {
                rows.manifest = Some(of.manifest.clone());
            }
            Payload::GateObserved(of) if of.gate == said.gate => {
                let delta = of.readings.first().map_or(0, |one| one.delta_micro.value());
                rows.observed.push((of.unit.clone(), delta));
            }
            Payload::LabelRecorded(of) if of.design == said.design => {
                let key = (of.policy.to_string(), of.item.clone(), of.draw.value());
                rows.labels.entry(key).or_insert(of.value_micro);
            }
            Payload::LabelRevealed(of) if of.design == said.design => {
                if let Some((policy, item, draw)) = draw_of_row(&of.row) {
                    let key = (policy.to_string(), item, draw.value());
                    rows.labels.entry(key).or_insert(of.value_micro);
                }
            }
            _ => {}
        }
    }
}

impl SampledRows {
    /// Reads the entries of an experiment below a position, as far as an estimate names them.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn below(
        history: &dyn History,
        experiment: &ExperimentId,
        said: &GateEstimated,
        below: u64,
    ) -> Result<Self, LedgerError> {
        let rows = Self::default();
        let entries = LogReader::below(history, below).of(experiment);
        Ok(entries.into_model(SampledReader { said, rows })?.rows)
    }
}
