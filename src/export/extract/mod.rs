//! Extracts: what events say, in the formats that other tools read.
//!
//! A format is one file here and one line in [`EXTRACTS`]. An extract adds no number of its own: each value stands in an
//! event, whose position and id go along. It ends at a checkpoint, which it names. It is no proof: that is the log itself
//! ([`crate::FORMATS`]).

mod cje;
mod crate_metadata;
mod csv;
mod cyclonedx;
mod dsse;
mod inspect;
mod intoto;
mod junit;
#[cfg(feature = "parquet")]
mod parquet;
mod prov;
mod spdx;

pub use csv::CsvText;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::path::Path;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_ground::ambient;
use clover_ground::note::SignedCheckpoint;
use clover_ground::time::Timestamp;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::ExportError;
use crate::Progress;
use crate::stage;

/// One format of extracts.
pub struct ExtractFormat {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// How it is written.
    pub form: ExtractForm,
    /// Whether it holds the log itself, which is whole or nothing.
    pub is_whole: bool,
}

/// Writes an extract into a stream; answers with the number of things it holds.
pub type WriteFile = fn(&Extract<'_>, &mut dyn Write, Progress<'_>) -> Result<u64, ExportError>;
/// Writes an extract into a new folder; answers with the number of things it holds.
pub type WriteFolder = fn(&Extract<'_>, &Path, Progress<'_>) -> Result<u64, ExportError>;

/// How a format is written.
#[derive(Clone, Copy)]
pub enum ExtractForm {
    /// One file, or a stream.
    File(WriteFile),
    /// A folder of files.
    Folder(WriteFolder),
}

/// Every format of extracts. The next one goes here.
pub static EXTRACTS: &[ExtractFormat] = &[
    file(
        "dsse",
        "signed events as DSSE envelopes, one a line",
        dsse::write,
    ),
    file(
        "intoto",
        "in-toto statements (test-result) of what was decided",
        intoto::write,
    ),
    file(
        "junit",
        "criteria, gates and audits as a JUnit report",
        junit::write,
    ),
    file(
        "cyclonedx",
        "values with intervals as a CycloneDX model card",
        cyclonedx::write,
    ),
    file(
        "spdx",
        "judges and decisions in the AI profile of SPDX 3.0",
        spdx::write,
    ),
    file(
        "prov",
        "who made what from what, as W3C PROV-JSON",
        prov::write,
    ),
    folder(
        "csv",
        "tables: events, scores, labels, estimates, decisions",
        csv::write,
    ),
    #[cfg(feature = "parquet")]
    folder(
        "parquet",
        "the tables of csv as Apache Parquet",
        parquet::write,
    ),
    folder(
        "inspect",
        "scores for the scorer precomputed_scores of Inspect",
        inspect::write,
    ),
    folder(
        "cje",
        "scores and open labels, a JSON Lines file per policy",
        cje::write,
    ),
    ExtractFormat {
        is_whole: true,
        ..folder(
            "ro-crate",
            "the signed log with RO-Crate metadata",
            crate_metadata::write,
        )
    },
];

const fn file(name: &'static str, about: &'static str, write: WriteFile) -> ExtractFormat {
    ExtractFormat {
        name,
        about,
        form: ExtractForm::File(write),
        is_whole: false,
    }
}

const fn folder(name: &'static str, about: &'static str, write: WriteFolder) -> ExtractFormat {
    ExtractFormat {
        name,
        about,
        form: ExtractForm::Folder(write),
        is_whole: false,
    }
}

impl ExtractFormat {
    /// Writes it into a new file or folder, which stands under its name only when it is whole; answers with the number of
    /// things in it.
    ///
    /// # Errors
    /// [`ExportError::Occupied`] where something stands there, and others.
    pub fn write(
        &self,
        extract: &Extract<'_>,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<u64, ExportError> {
        stage::whole(path, |stage| self.write_into(extract, stage, progress))
    }

    /// Writes it to a stream; answers with the number of things in it.
    ///
    /// # Errors
    /// [`ExportError::Stream`] for a folder, and others.
    pub fn write_to(&self, extract: &Extract<'_>, out: &mut dyn Write) -> Result<u64, ExportError> {
        match self.form {
            ExtractForm::File(write) => {
                let items = write(extract, out, &mut |_, _| {})?;
                out.flush()?;
                Ok(items)
            }
            ExtractForm::Folder(_) => Err(ExportError::Stream(self.name)),
        }
    }

    fn write_into(
        &self,
        extract: &Extract<'_>,
        stage: &Path,
        progress: Progress<'_>,
    ) -> Result<u64, ExportError> {
        match self.form {
            ExtractForm::File(write) => {
                let mut out = ambient::writer(stage)?;
                let items = write(extract, out.as_mut(), progress)?;
                out.flush()?;
                Ok(items)
            }
            ExtractForm::Folder(write) => {
                ambient::create_dirs(stage)?;
                write(extract, stage, progress)
            }
        }
    }
}

/// What an extract is taken from.
#[derive(Clone, Copy)]
pub struct Extract<'a> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The checkpoint that it ends at.
    pub checkpoint: &'a SignedCheckpoint,
    /// The experiment whose events are meant; all of them without one.
    pub experiment: Option<&'a ExperimentId>,
    /// What may be claimed.
    pub answers: &'a RecordedAnswers,
}

/// What may be claimed of what is on record, as the verbs that answer say it.
#[derive(Clone, Debug, Default)]
pub struct RecordedAnswers {
    /// Of values of policies: an answer for each judge of an experiment that estimated any.
    pub values: Vec<ValuesAnswer>,
    /// Of gates that were decided.
    pub gates: BTreeMap<ManifestId, GateAnswer>,
    /// Positions of recorded values and differences that the verbs which answer withhold now.
    pub withheld: BTreeSet<u64>,
}

/// What `clover estimate` says of the values of a judge.
#[derive(Clone, Debug)]
pub struct ValuesAnswer {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// The sentence that answers.
    pub text: String,
    /// Values that may be claimed.
    pub values: Vec<ClaimedValue>,
}

/// A value of a policy over all its rows that may be claimed, on the scale of labels.
#[derive(Clone, Debug)]
pub struct ClaimedValue {
    /// The policy.
    pub policy: String,
    /// Where it stands in the log.
    pub seq: u64,
    /// Its event.
    pub event: EventId,
    /// The value.
    pub estimate: f64,
    /// The interval in force: where it rests on an audit, widened by the margin.
    pub interval: Option<[f64; 2]>,
    /// The level of the interval in per cent.
    pub percent: String,
    /// Ends of the scale of labels.
    pub scale: [String; 2],
}

/// What a decided gate lets people say.
#[derive(Clone, Debug)]
pub struct GateAnswer {
    /// Its grade, as of now.
    pub grade: String,
    /// What that grade lets people say.
    pub text: String,
    /// Whether its finding may be claimed.
    pub may_be_claimed: bool,
}

/// An event with its place in the log.
#[derive(Clone, Debug)]
pub struct RecordedEvent {
    /// Its position.
    pub seq: u64,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// What was signed.
    pub event: Event,
}

impl Extract<'_> {
    /// Streams the events that the extract is about, in order.
    fn each(
        &self,
        progress: Progress<'_>,
        mut take: impl FnMut(&RecordedEvent) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let size = self.checkpoint.checkpoint().size;
        let result = self.ledger.entries(0, size, |entry| {
            let seq = entry.stored.seq;
            if (seq + 1).is_multiple_of(1024) {
                progress(seq + 1, size);
            }
            if self.experiment.is_some() && entry.event.experiment() != self.experiment {
                return Ok(());
            }
            let recorded_at = entry.stored.recorded_at;
            let event = entry.event;
            take(&RecordedEvent {
                seq,
                recorded_at,
                event,
            })
            .map_err(crate::Stop)
        });
        result.map_err(|crate::Stop(error)| error)
    }

    /// The events of decisions, in order: all but those that grow with rows ([`is_bulk`]).
    fn decisions(&self, progress: Progress<'_>) -> Result<Vec<RecordedEvent>, ExportError> {
        let mut all = Vec::new();
        self.each(progress, |said| {
            if !is_bulk(said.event.kind()) {
                all.push(said.clone());
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Whether a column of an event is left empty: a number of a value or difference that is withheld now.
    fn withholds(&self, seq: u64, column: &str) -> bool {
        csv::is_of_level(column) && self.answers.withheld.contains(&seq)
    }

    /// The log that it comes from: origin, entries and root, as every extract names them.
    fn origin(&self) -> Value {
        let head = self.checkpoint.checkpoint();
        json!({ "origin": head.origin.to_string(), "size": head.size, "root": head.root.to_string() })
    }
}

/// Kinds of which there is one event per row or unit.
fn is_bulk(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ScoreRecorded
            | Kind::ScoreConflict
            | Kind::LabelRecorded
            | Kind::LabelSealed
            | Kind::SealAccepted
            | Kind::LabelRevealed
            | Kind::LogprobRecorded
            | Kind::GateObserved
            | Kind::UnitsListed
            | Kind::OrderListed
            | Kind::SplitsListed
    )
}

/// Writes a JSON document with a last newline.
fn write_json(out: &mut dyn Write, document: &Value) -> Result<(), ExportError> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// A new file of a folder.
fn create(folder: &Path, name: &str) -> Result<Box<dyn Write + Send>, ExportError> {
    Ok(ambient::writer(&folder.join(name))?)
}

/// What an event says, as JSON.
fn data(said: &RecordedEvent) -> Result<Value, ExportError> {
    serde_json::to_value(&said.event.payload).map_err(|error| {
        let (seq, found) = (said.seq, error.to_string());
        LedgerError::Integrity { seq, found }.into()
    })
}

impl Extract<'_> {
    /// The data of a decided gate with what may be said of it now: a compromised key takes a grade away, and changes no entry.
    fn with_now(&self, said: &RecordedEvent, found: &Value) -> Option<Value> {
        let Payload::GateDecided(decided) = &said.event.payload else {
            return None;
        };
        let answer = self.answers.gates.get(&decided.gate)?;
        let mut out = found.clone();
        let fields = out.as_object_mut()?;
        fields.insert("grade_now".to_owned(), answer.grade.clone().into());
        let may = if answer.may_be_claimed { "yes" } else { "no" };
        fields.insert("may_be_claimed_now".to_owned(), may.into());
        Some(out)
    }
}

/// The word of events for a value that is one, such as a verdict.
fn word<T: Serialize>(value: &T) -> String {
    let found = serde_json::to_value(value).ok();
    found
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
