//! Rows, labels and cards released to a role, each release on record before anything leaves.
//!
//! The log itself is readable to whoever has the file; what is kept from a role is what it is not handed. A release
//! that its role may not have is recorded as denied and gives nothing.

use std::collections::BTreeSet;
use std::fmt;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::IterationId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::record::ReadOutcome;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::access::Access;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::Records;
use clover_projection::splits::members_root;
use clover_workflow::iterate::compute::cards::FULL_LABEL;
use clover_workflow::iterate::course::Course;
use serde::Serialize;

use crate::append;
use crate::custody::CustodyError;
use crate::custody::reads;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What can be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Cards as patches are written from them.
    Card,
    /// Full cards, which name rows.
    FullCard,
    /// Open and revealed labels.
    Label,
    /// Ingested rows without texts and labels.
    Row,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Card, Self::FullCard, Self::Label, Self::Row];

    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card.public",
            Self::FullCard => "label.card",
            Self::Label => "label",
            Self::Row => "row",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is asked for, by whom and what for.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    /// The class.
    pub class: Class,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The iteration whose cards they are.
    pub iteration: Option<IterationId>,
    /// The reader's key.
    pub reader: KeyId,
    /// The role in which it reads; all that it holds without one.
    pub role: Option<Role>,
    /// What for.
    pub purpose: Text,
}

/// What was released, and where that stands.
#[derive(Clone, Debug)]
pub struct Release {
    /// The lines that may leave.
    pub lines: Vec<u8>,
    /// How many.
    pub count: u64,
    /// How many rows they are about.
    pub rows: usize,
    /// The root over these rows.
    pub root: Option<Root>,
    /// The read.
    pub appended: Vec<AppendedEvent>,
}

/// Puts a release on record, then gives it.
///
/// # Errors
/// [`CustodyError`] where the role is barred, nothing is there, or something is not as recorded; [`SessionError::Port`]
/// without a custodian's key; [`SessionError::Course`] and [`SessionError::Ledger`].
pub fn release(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    request: &ReleaseRequest,
) -> Result<Release, SessionError> {
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::DataRead))?;
    let ReleaseRequest { class, role, .. } = *request;
    let command = |outcome: ReadOutcome, root: Option<Root>| {
        let reader = (request.reader, role);
        let purpose = request.purpose.clone();
        let read = reads::read(class.as_str(), outcome, purpose, reader, root);
        [Command::new(read, Some(request.experiment.clone()))]
    };
    let access = ledger.state().fold::<Access>();
    if let Some(role) = access.barred(&request.reader, role, class.as_str()) {
        let denied = command(ReadOutcome::Denied, None);
        let seq = append::append(ports, ledger, &denied, &signer)?[0].seq;
        return Err(CustodyError::Barred { class, role, seq }.into());
    }
    let found = content(ledger, request)?;
    let root = found.root();
    let allowed = command(ReadOutcome::Allowed, root);
    let appended = append::append(ports, ledger, &allowed, &signer)?;
    Ok(Release {
        lines: found.lines,
        count: found.count,
        rows: found.rows.len(),
        root,
        appended,
    })
}

/// Lines, and the rows that they are about.
#[derive(Default)]
struct Content {
    lines: Vec<u8>,
    count: u64,
    rows: BTreeSet<String>,
}

impl Content {
    fn push(&mut self, line: &[u8], row: String) {
        self.push_line(line);
        self.rows.insert(row);
    }

    fn push_line(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        self.count += 1;
    }

    /// The root over its rows, of what names some.
    fn root(&self) -> Option<Root> {
        let rows = self.rows.iter().map(String::as_str);
        (!self.rows.is_empty()).then(|| members_root(rows))
    }
}

/// What a class holds; nothing at all is an error.
fn content(ledger: &Ledger, request: &ReleaseRequest) -> Result<Content, SessionError> {
    let experiment = &request.experiment;
    let found = match (request.class, &request.iteration) {
        (Class::Card, Some(id)) => cards(ledger, experiment, id, false)?,
        (Class::FullCard, Some(id)) => cards(ledger, experiment, id, true)?,
        (class, Some(_)) => return Err(CustodyError::NotOfCards(class).into()),
        (Class::Label, None) => labels(ledger, experiment)?,
        (_, None) => rows(ledger, experiment)?,
    };
    if found.count == 0 {
        let (class, experiment) = (request.class, experiment.clone());
        return Err(CustodyError::Empty { class, experiment }.into());
    }
    Ok(found)
}

/// A row of a file that was taken in.
#[derive(serde::Deserialize)]
pub(super) struct IngestedRow {
    pub draw: Count,
    pub item: ItemId,
    pub policy: PolicyId,
}

/// Ingested rows: their canonical lines, without texts and labels.
fn rows(ledger: &Ledger, experiment: &ExperimentId) -> Result<Content, SessionError> {
    let mut blobs: Vec<Digest> = Vec::new();
    ledger.entries::<SessionError>(0, ledger.size(), |read| {
        if let Payload::DataIngested(ingested) = &read.event.payload
            && read.event.header.experiment.as_ref() == Some(experiment)
        {
            blobs.push(ingested.rows.blake3);
        }
        Ok(())
    })?;
    let mut found = Content::default();
    for blob in blobs {
        let damaged = |what: &str| CustodyError::DamagedRows {
            blob,
            what: what.to_owned(),
        };
        let bytes = ledger.store().reader().blob(&blob)?;
        let bytes = bytes.ok_or_else(|| damaged("not there"))?;
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let row: IngestedRow =
                serde_json::from_slice(line).map_err(|error| damaged(&error.to_string()))?;
            found.push(line, row_of_draw(&row.policy, &row.item, row.draw));
        }
    }
    Ok(found)
}

#[derive(Serialize)]
struct LabelLine<'a> {
    design: &'a DesignId,
    row: &'a str,
    seq: u64,
    value_micro: i64,
}

/// Labels that are open, and those that were revealed.
fn labels(ledger: &Ledger, experiment: &ExperimentId) -> Result<Content, SessionError> {
    let mut found = Content::default();
    ledger.entries::<SessionError>(0, ledger.size(), |read| {
        if read.event.header.experiment.as_ref() != Some(experiment) {
            return Ok(());
        }
        let (design, row, value) = match &read.event.payload {
            Payload::LabelRecorded(label) => {
                let row = row_of_draw(&label.policy, &label.item, label.draw);
                (&label.design, row, label.value_micro)
            }
            Payload::LabelRevealed(label) => {
                (&label.design, label.row.to_string(), label.value_micro)
            }
            _ => return Ok(()),
        };
        let line = LabelLine {
            design,
            row: &row,
            seq: read.stored.seq,
            value_micro: value.value(),
        };
        let line = canon::to_bytes(&line).map_err(CustodyError::Canon)?;
        found.push(&line, row);
        Ok(())
    })?;
    Ok(found)
}

/// Published cards of an iteration, by public digest: `full` as they were before they were redacted, computed again from
/// the rows that they read, each the one whose digest is on record.
fn cards(
    ledger: &Ledger,
    experiment: &ExperimentId,
    id: &IterationId,
    full: bool,
) -> Result<Content, SessionError> {
    let record = recorded(ledger, id, ledger.size())?;
    if record.experiment != *experiment {
        return Err(CustodyError::OtherExperiment {
            iteration: id.clone(),
            found: record.experiment,
            experiment: experiment.clone(),
        }
        .into());
    }
    let mut found = Content::default();
    if !full {
        for card in &record.cards {
            found.push_line(&canonical(&card.said)?);
        }
        return Ok(found);
    }
    match record.cards.first() {
        Some(first) => full_cards(ledger, id, &record, first.seq),
        None => Ok(found),
    }
}

#[derive(Serialize)]
struct FullLine<'a, T: Serialize> {
    full: &'a T,
    full_digest: &'a Digest,
    public_digest: &'a Digest,
}

/// The cards of an iteration before they were redacted, computed again as of the first.
fn full_cards(
    ledger: &Ledger,
    id: &IterationId,
    record: &IterationRecord,
    first_seq: u64,
) -> Result<Content, SessionError> {
    // What attacks had earned by then stands in them too.
    let then = recorded(ledger, id, first_seq)?;
    let course = Course::bound(ledger, &then, first_seq)?;
    let again = course.cards(&then)?;
    let mut content = Content::default();
    for card in &record.cards {
        let said = &card.said;
        let found = again.iter().find(|of| of.public.card == said.card.card);
        let found = found.cloned().map(|found| match said.build {
            Some(_) => found,
            None => found.without_basis(),
        });
        let found = found.filter(|found| canon::digest(FULL_LABEL, found) == said.full_digest);
        let found = found.ok_or_else(|| CustodyError::CardDiffers {
            card: said.card.card.to_string(),
            seq: card.seq,
        })?;
        content.push_line(&canonical(&FullLine {
            full: &found,
            full_digest: &said.full_digest,
            public_digest: &said.public_digest,
        })?);
        let rows = found.exemplars.into_iter().chain(found.counterexamples);
        content.rows.extend(rows.map(|row| row.row));
    }
    Ok(content)
}

fn canonical(line: &impl Serialize) -> Result<Vec<u8>, CustodyError> {
    canon::to_bytes(line).map_err(CustodyError::Canon)
}

/// What the log says of an iteration.
fn recorded(
    ledger: &Ledger,
    id: &IterationId,
    below: u64,
) -> Result<IterationRecord, SessionError> {
    let mut records = Records::default();
    let found = records.of(ledger, id, below)?.cloned();
    Ok(found.ok_or_else(|| CustodyError::NoIteration(id.clone()))?)
}
