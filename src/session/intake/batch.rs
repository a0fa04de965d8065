//! From planned rows to signed events: private texts, the original bytes, scores, labels and seals, each kind
//! under the key that may say it.

use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::Base64Text;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::Root;
use clover_event::id::RowId;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::PrivateRef;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::ImportFormat;
use clover_event::payload::intake::PolicyFields;
use clover_event::payload::intake::Source;
use clover_event::payload::intake::SourceEnvelope;
use clover_event::payload::label::LabelSealed;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::LabelOpening;
use clover_ground::seal::SubjectKey;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RuleName;
use clover_ledger::UnmetDemand;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::iterations::rows::IngestedRows;
use clover_projection::reader::LogReader;
use clover_workflow::import::ImportRow;
use clover_workflow::import::ImportRows;
use clover_workflow::import::form::FileForm;
use clover_workflow::import::kept;
use clover_workflow::import::kept::KeptError;
use clover_workflow::import::plan;
use clover_workflow::import::plan::ImportPlan;
use clover_workflow::import::plan::LabelIntake;
use clover_workflow::import::plan::Presence;
use zeroize::Zeroizing;

use crate::append;
use crate::charges::Payer;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::InputFile;
use crate::intake::IntakeRequest;
use crate::intake::error::IntakeError;
use crate::intake::labels;
use crate::intake::remarks;
use crate::intake::signers::Signers;
use crate::intake::subjects::SubjectKeys;
use crate::ports::Ports;

/// Commands of one transaction.
const BATCH: usize = 16_384;

/// New scores of planned rows that no file was taken in for, to be appended, and the blobs of their texts; they stand on
/// `basis`.
pub(crate) fn scores(
    home: &Home,
    ledger: &Ledger,
    request: &IntakeRequest,
    (rows, plan): (&ImportRows, &ImportPlan),
    basis: EventId,
) -> Result<(Vec<Command>, Vec<Vec<u8>>), SessionError> {
    let keys = SubjectKeys::new(home, ledger, rows, plan)?;
    let batch = Batch {
        request,
        basis: Some(basis),
        rows,
        plan,
    };
    let (mut commands, mut blobs) = (Vec::new(), Vec::new());
    for (row, plan) in batch.pairs() {
        batch.score(ledger, &keys, (row, plan), (&mut commands, &mut blobs))?;
    }
    Ok((commands, blobs))
}

/// What an event says of bytes that are stored beside it.
pub(crate) fn reference(bytes: &[u8], media: &str) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: count(bytes.len() as u64),
        media: MediaType::new(media).expect("BUG: media types here are literals"),
    }
}

pub(super) fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: no file has 2^53 of anything")
}

/// Fields of rows of which no import said each word before, by policy; `None` under a rulebook that does not ask.
pub(super) fn new_fields(
    ledger: &Ledger,
    experiment: &ExperimentId,
    rows: &[ImportRow],
) -> Result<Option<Vec<PolicyFields>>, SessionError> {
    if !ledger.state().asks(Question::SaidBefore) {
        return Ok(None);
    }
    if rows.iter().all(|row| row.fields.is_empty()) {
        return Ok(Some(Vec::new()));
    }
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    let ingested = entries.all::<DataIngested>(|_| true)?;
    let ingested = ingested.iter().map(|of| IngestedRows::of(of.seq, &of.said));
    let ingested: Vec<_> = ingested.collect();
    match kept::new_fields(ledger, &ingested, rows) {
        Ok(found) => Ok(Some(found)),
        Err(KeptError::Ledger(error)) => Err(error.into()),
        Err(KeptError::Unread(error)) => Err(error.into()),
    }
}

/// Records the file itself: its rows, and its original bytes under a key.
pub(super) fn ingest(
    home: &Home,
    ledger: &mut Ledger,
    request: &IntakeRequest,
    (file, plan): (&InputFile, &ImportPlan),
    signers: &Signers,
) -> Result<EventId, SessionError> {
    let rows = &file.rows;
    let (lines, root) = rows.root(&request.ask.judge);
    let media = media(request.format, &file.bytes);
    let ambient = ledger.ambient().clone();
    let (stored, source) = match signers.recipient() {
        Some(recipient) if plan.stays_closed() => {
            // Line feeds at the end change no row, and the length of the envelope tells little of its labels.
            let mut bytes = Zeroizing::new(file.bytes.clone());
            bytes.resize(seal::padded_len(file.bytes.len()), b'\n');
            let bytes =
                ambient.with_entropy(|entropy| seal::encrypt(&bytes, &[recipient.0], entropy))?;
            let source = SourceEnvelope {
                blob: reference(&bytes, "application/octet-stream"),
                recipient: recipient.clone(),
            };
            (bytes, Source::Envelope(source))
        }
        _ => {
            let (source, bytes) = private(home, &ambient, &file.bytes, media)?;
            (bytes, Source::Private(source))
        }
    };
    let sampled = rows.sampled();
    let payload = DataIngested {
        fields: new_fields(ledger, &request.ask.experiment, &rows.rows)?,
        format: request.format,
        labelled: count(rows.labelled()),
        rounded: count(rows.rounded),
        rows: reference(&lines, "application/x-ndjson"),
        rows_in: count(rows.read),
        rows_out: count(rows.rows.len() as u64),
        rows_root: Root(root),
        sampled_from: sampled.map(|(from, _)| from),
        sampled_to: sampled.map(|(_, to)| to),
        source,
    };
    let command = |payload: Payload| Command::new(payload, Some(request.ask.experiment.clone()));
    let (mut commands, mut blobs) = (vec![command(payload.into())], vec![lines, stored]);
    // In one transaction: a file that is on record has said what it says.
    let noted = remarks::of_file(home, &ambient, &request.ask.judge, &rows.remarks)?;
    if let Some((note, stored)) = noted {
        commands.push(command(note.into()));
        blobs.push(stored);
    }
    let signer = needed(signers.scorer());
    let appended = ledger.append_with_blobs(&commands, signer, &blobs)?;
    Ok(appended[0].id)
}

/// The media type of a file of this format.
fn media(format: ImportFormat, bytes: &[u8]) -> &'static str {
    match format {
        ImportFormat::Cje => "application/x-ndjson",
        ImportFormat::Csv => "text/csv",
        ImportFormat::Inspect
        | ImportFormat::Langfuse
        | ImportFormat::OpenaiEvals
        | ImportFormat::Otel
        | ImportFormat::Promptfoo => FileForm::of(bytes).media(),
    }
}

/// Bytes as a private blob under a subject of its own: what an event says of it, and what is stored.
pub(crate) fn private(
    home: &Home,
    ambient: &Ambient,
    bytes: &[u8],
    media: &str,
) -> Result<(PrivateRef, Vec<u8>), SessionError> {
    let subject = Digest(ambient.random()?);
    let key = ambient.with_entropy(SubjectKey::generate)?;
    home.vault(ambient)?.add_subject(&subject, key.as_bytes())?;
    let sealed = ambient
        .with_entropy(|entropy| seal::encrypt_blob(&key, bytes, entropy))
        .map_err(IntakeError::from)?;
    let private = PrivateRef {
        blob: reference(&sealed.bytes, media),
        commitment: sealed.commitment,
        subject,
    };
    Ok((private, sealed.bytes))
}

fn needed(signer: Option<&Signer>) -> &Signer {
    signer.expect("BUG: the keys that are needed were looked for")
}

/// The rows of one file on their way into the log.
pub(super) struct Batch<'a> {
    /// What was asked for.
    pub request: &'a IntakeRequest,
    /// What they stand on; nothing before their file is on record.
    pub basis: Option<EventId>,
    /// The rows.
    pub rows: &'a ImportRows,
    /// What becomes of each.
    pub plan: &'a ImportPlan,
}

impl Batch<'_> {
    fn command(&self, payload: impl Into<Payload>) -> Command {
        let mut command = Command::new(payload, Some(self.request.ask.experiment.clone()));
        command.refs = self.basis.into_iter().collect();
        command
    }

    fn pairs(&self) -> impl Iterator<Item = (&ImportRow, &plan::RowPlan)> {
        self.rows.rows.iter().zip(&self.plan.rows)
    }

    /// Appends new scores with their texts, and new log-probabilities.
    pub(super) fn scores(
        &self,
        ledger: &mut Ledger,
        keys: &SubjectKeys,
        scorer: Option<&Signer>,
    ) -> Result<(), SessionError> {
        let (mut commands, mut blobs) = (Vec::new(), Vec::new());
        for pair in self.pairs() {
            self.score(ledger, keys, pair, (&mut commands, &mut blobs))?;
            if commands.len() >= BATCH {
                append_all(ledger, &mut commands, scorer, &mut blobs)?;
            }
        }
        append_all(ledger, &mut commands, scorer, &mut blobs)
    }

    /// The new score of a row with its texts, and its new log-probabilities.
    fn score(
        &self,
        ledger: &Ledger,
        keys: &SubjectKeys,
        (row, plan): (&ImportRow, &plan::RowPlan),
        (commands, blobs): (&mut Vec<Command>, &mut Vec<Vec<u8>>),
    ) -> Result<(), SessionError> {
        if plan.score == Presence::New {
            let mut score = plan::score_of(row, &self.request.ask.judge);
            let mut seal = |text: Option<&str>| keys.seal(ledger.ambient(), &row.item, text, blobs);
            score.prompt = seal(row.prompt.as_deref())?;
            score.response = seal(row.response.as_deref())?;
            commands.push(self.command(score));
        }
        if plan.logprob == Some(Presence::New) {
            commands.extend(plan::logprob_of(row).map(|logprob| self.command(logprob)));
        }
        Ok(())
    }

    /// What of the log-probabilities kept their contract. Said before the rows, so that a run that was cut says it again
    /// while something is left to append.
    pub(super) fn checked(
        &self,
        ledger: &mut Ledger,
        signers: &Signers,
    ) -> Result<(), SessionError> {
        if let (Some(checked), Some(signer)) = (&self.rows.checked, signers.scorer()) {
            let command = self.command(checked.said.clone());
            ledger.append_with_blobs(&[command], signer, std::slice::from_ref(&checked.lines))?;
        }
        Ok(())
    }

    /// New open labels, to be appended, with their lines.
    fn open_labels(&self) -> Vec<(u64, Command)> {
        let ask = &self.request.ask;
        let Some(open) = &ask.open else {
            return Vec::new();
        };
        let fresh = self
            .pairs()
            .filter(|(_, plan)| plan.label == LabelIntake::Open(Presence::New));
        let said = fresh.filter_map(|(row, _)| {
            let label = plan::label_of(row, row.label?, &ask.rater, open);
            Some((row.line, self.command(label)))
        });
        said.collect()
    }

    /// New labels that stay closed, sealed and to be appended, with their lines.
    fn sealed_labels(
        &self,
        ledger: &Ledger,
        signers: &Signers,
    ) -> Result<Vec<(u64, Command)>, SessionError> {
        let mut commands = Vec::new();
        for (row, plan) in self.pairs() {
            if let (LabelIntake::Sealed(Presence::New, id), Some(value)) = (&plan.label, row.label)
            {
                let label = sealed(ledger, self.request, (id, value), signers)?;
                commands.push((row.line, self.command(label)));
            }
        }
        Ok(commands)
    }

    /// Some of what is said beside labels: the first new score, the lowest and the highest, and what of log-probabilities kept
    /// their contract.
    fn foremost(&self) -> Vec<Command> {
        let new = || self.pairs().filter(|(_, plan)| plan.score == Presence::New);
        let first = new().next();
        let (low, high) = (
            new().min_by_key(|(row, _)| row.score),
            new().max_by_key(|(row, _)| row.score),
        );
        let rows = [first, low, high].into_iter().flatten();
        let scores = rows.map(|(row, _)| plan::score_of(row, &self.request.ask.judge));
        let checked = self.rows.checked.iter().map(|of| of.said.clone());
        let scores = scores.map(|score| self.command(score));
        scores
            .chain(checked.map(|said| self.command(said)))
            .collect()
    }

    /// The new labels, open and sealed. They are held against every rule, and three of the new scores against those of the state,
    /// before anything is appended; `given` is what labels of files before this one give.
    pub(super) fn labels(
        &self,
        ledger: &Ledger,
        signers: &Signers,
        given: &mut BTreeSet<Digest>,
    ) -> Result<NewLabels, SessionError> {
        labels::permitted(ledger, &self.foremost(), signers.scorer())?;
        let new = NewLabels {
            open: self.open_labels(),
            sealed: self.sealed_labels(ledger, signers)?,
        };
        new.permit(ledger, signers, (&self.rows.file, given))?;
        Ok(new)
    }
}

/// New labels of a file, each with its line.
#[derive(Default)]
pub(super) struct NewLabels {
    pub(super) open: Vec<(u64, Command)>,
    pub(super) sealed: Vec<(u64, Command)>,
}

impl NewLabels {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        (self.open.len() + self.sealed.len()) as u64
    }

    /// Each with who signs it.
    fn signed<'a>(&'a self, signers: &'a Signers) -> Vec<(u64, &'a Command, &'a Signer)> {
        let of = |all: &'a [(u64, Command)], signer: Option<&'a Signer>| {
            let all = all.iter();
            all.map(move |(line, command)| (*line, command, needed(signer)))
        };
        let open = of(&self.open, signers.labeler());
        open.chain(of(&self.sealed, signers.custodian())).collect()
    }

    /// Holds each against every rule before the first of anything is appended.
    ///
    /// # Errors
    /// [`IntakeError::Row`] with the line that a rule refuses; what refuses the first label whatever it says is no fault of
    /// its line.
    pub(super) fn permit(
        &self,
        ledger: &Ledger,
        signers: &Signers,
        (file, given): (&str, &mut BTreeSet<Digest>),
    ) -> Result<(), SessionError> {
        let all = self.signed(signers);
        let commands: Vec<_> = all.iter().map(|(_, of, signer)| (*of, *signer)).collect();
        let Some(found) = append::unmet(ledger, &commands, given)? else {
            return Ok(());
        };
        let UnmetDemand {
            index,
            breach,
            in_the_way,
        } = found;
        let is_of_row = breach.rule == RuleName::Purpose || in_the_way.is_some();
        if index == 0 && !is_of_row {
            return Err(breach.into());
        }
        let row = IntakeError::Row {
            file: file.to_owned(),
            line: all[index].0,
            rule: breach.rule.as_str(),
            expected: breach.expected,
            found: breach.found,
            in_the_way,
        };
        Err(row.into())
    }

    /// Puts what they stand on.
    pub(super) fn stand_on(&mut self, basis: EventId) {
        for (_, command) in self.open.iter_mut().chain(&mut self.sealed) {
            command.refs = vec![basis];
        }
    }

    /// Appends them in batches, each with what it costs: no label is there that was not paid, and none is paid that is not
    /// there.
    pub(super) fn append(
        self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        signers: &Signers,
        payer: Option<&Payer>,
    ) -> Result<(), SessionError> {
        let Some(payer) = payer else {
            let commands = |of: Vec<(u64, Command)>| of.into_iter().map(|(_, of)| of).collect();
            let none = &mut Vec::new();
            append_all(ledger, &mut commands(self.open), signers.labeler(), none)?;
            return append_all(
                ledger,
                &mut commands(self.sealed),
                signers.custodian(),
                none,
            );
        };
        for batch in self.signed(signers).chunks(BATCH) {
            let labels = batch.iter().map(|(_, of, signer)| ((*of).clone(), *signer));
            let paid = std::iter::once(payer.charge(batch.len() as u64)).chain(labels);
            append::append_each(ports, ledger, &paid.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// A label, sealed to the recipient that was found.
pub(super) fn sealed(
    ledger: &Ledger,
    request: &IntakeRequest,
    (row, value): (&RowId, Micro),
    signers: &Signers,
) -> Result<LabelSealed, SessionError> {
    let wanted = request.ask.seal.clone().zip(request.reveal_by);
    let (design, reveal_by) = wanted.expect("BUG: rows are sealed in a design with a deadline");
    let recipient = signers.recipient().cloned();
    let recipient = recipient.expect("BUG: the recipient was looked for");
    let ambient = ledger.ambient();
    let opening = ambient.with_entropy(|entropy| LabelOpening::draw(value.value(), entropy))?;
    let envelope = ambient.with_entropy(|entropy| {
        seal::encrypt(opening.to_bytes().as_slice(), &[recipient.0], entropy)
    })?;
    let origin = &ledger.state().keyring.origin;
    Ok(LabelSealed {
        commitment: opening.commitment(origin, design.as_str(), row.as_str()),
        design,
        envelope: Base64Text(envelope),
        recipient,
        reveal_by,
        row: row.clone(),
    })
}

/// Appends commands as few batches, each with one checkpoint.
pub(super) fn append_all(
    ledger: &mut Ledger,
    commands: &mut Vec<Command>,
    signer: Option<&Signer>,
    blobs: &mut Vec<Vec<u8>>,
) -> Result<(), SessionError> {
    if commands.is_empty() {
        return Ok(());
    }
    for batch in commands.chunks(BATCH) {
        ledger.append_with_blobs(batch, needed(signer), &std::mem::take(blobs))?;
    }
    commands.clear();
    Ok(())
}
