//! What an erasure took away, what it leaves, which decisions it touches, and what is on record of copies beyond its reach:
//! the facts of a certificate. One that did not take place gives none.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::PrivateRef;
use clover_event::payload::custody::SubjectErased;
use clover_event::payload::intake::Source;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::record::ReadOutcome;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::read::LogEntry;
use clover_store::Vault;
use clover_workflow::recompute::withheld;
use clover_workflow::recompute::withheld::TouchedEntry;

use crate::custody::CustodyError;
use crate::custody::erasure;
use crate::custody::reads;
use crate::custody::release::IngestedRow;
use crate::custody::remains;
use crate::custody::remains::RowsOfSubject;
use crate::error::SessionError;
use crate::home::Home;
use crate::listing;

/// What a private text was, as far as entries say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextUse {
    /// What a model answered when it was asked about a text.
    Answer,
    /// The prompt of scores.
    Prompt,
    /// The response of scores.
    Response,
    /// A file as it was taken in.
    File,
    /// What a note names beside the subject.
    Note,
}

impl TextUse {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer of a model",
            Self::Prompt => "prompt",
            Self::Response => "response",
            Self::File => "file that was taken in",
            Self::Note => "content of a note",
        }
    }
}

/// A text that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasedText {
    /// BLAKE3 of its encrypted bytes.
    pub blake3: Digest,
    /// Their length.
    pub bytes: u64,
    /// The salted commitment to the text, where an entry gives it.
    pub commitment: Option<Digest>,
    /// Entries that name it.
    pub events: Vec<u64>,
    /// Whether the encrypted bytes are in this ledger.
    pub is_stored: bool,
    /// What it was.
    pub of: TextUse,
}

/// What became of the subject's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStanding {
    /// The vault beside this ledger holds no key of the subject.
    Destroyed,
    /// No vault is beside this ledger: nobody here can say.
    NoVault,
}

/// How a file is known to hold texts of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLink {
    /// Scores of the texts were taken in from it.
    Scores,
    /// Its rows are those of the texts: it was taken in beside their scores, for labels as a rule.
    Rows,
    /// Its rows are not in this ledger: nobody here can say what it holds.
    Unread,
}

/// A file that holds texts of the subject, or may: it is kept under a key of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// How it is known.
    pub link: FileLink,
    /// The erasure of it, where it was erased.
    pub erased_seq: Option<u64>,
    /// Its entry.
    pub seq: u64,
    /// The subject under whose key it is kept; absent where it is an envelope to the custodian.
    pub subject: Option<Digest>,
}

/// Something on record that went beyond this ledger before the erasure, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handout {
    /// Who received or made it.
    pub by: KeyId,
    /// Its kind.
    pub kind: Kind,
    /// Its entry.
    pub seq: u64,
    /// What for, or what it says.
    pub what: String,
}

/// An erasure on record, and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ErasureStory {
    /// Whose key signed it.
    pub author: KeyId,
    /// Answers of models about the texts, by the subject of each, with its erasure where there is one.
    pub answers: Vec<(Digest, Option<u64>)>,
    /// Files that hold the texts, or may.
    pub files: Vec<SourceFile>,
    /// What may have gone beyond the ledger.
    pub handouts: Vec<Handout>,
    /// What became of the key.
    pub key: KeyStanding,
    /// Entries that name texts of the subject or say something of its rows: what they say stays.
    pub naming: BTreeMap<Kind, Vec<u64>>,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// What it says.
    pub said: SubjectErased,
    /// Its entry.
    pub seq: u64,
    /// Other subjects that hold texts of a file of this subject, each with its first entry: judges and imports keep rows of a
    /// file under subjects of their own. Those that were erased, and whose key is gone, are left out.
    pub copies: BTreeMap<Digest, u64>,
    /// Texts that cannot be read any more.
    pub texts: Vec<ErasedText>,
    /// Decisions that cannot be computed again.
    pub touched: Vec<TouchedEntry>,
}

/// The erasure that is named by subject or event, else the newest, among entries through a position.
///
/// # Errors
/// [`CustodyError::NotErased`] where there is none, and what reading the log gives.
pub fn named(
    ledger: &Ledger,
    (subject, event): (Option<Digest>, Option<u64>),
    through: u64,
) -> Result<LogEntry, SessionError> {
    let mut found = None;
    let query = KindQuery {
        kind: Kind::SubjectErased,
        takes: &|_| true,
    };
    listing::each::<LedgerError>(ledger, &query, (0, through.saturating_add(1)), |read| {
        if let Payload::SubjectErased(said) = &read.event.payload
            && subject.is_none_or(|of| of == said.subject || of == read.event.id.0)
            && event.is_none_or(|seq| seq == read.stored.seq)
        {
            found = Some(read);
        }
        Ok(true)
    })?;
    found.ok_or_else(|| CustodyError::NotErased { subject, event }.into())
}

/// What became of the key of an erasure.
fn key_standing(
    vault: Option<&Vault>,
    said: &SubjectErased,
    seq: u64,
) -> Result<KeyStanding, SessionError> {
    let Some(vault) = vault else {
        return Ok(KeyStanding::NoVault);
    };
    if vault.subject_key(&said.subject)?.is_none() {
        return Ok(KeyStanding::Destroyed);
    }
    let (subject, basis) = (said.subject, said.basis.clone());
    Err(CustodyError::KeyStands {
        subject,
        seq,
        basis,
    }
    .into())
}

/// What an erasure came to.
///
/// # Errors
/// [`CustodyError::KeyStands`] where the key was not destroyed, and what reading log and vault gives.
pub fn story(
    home: &Home,
    ledger: &Ledger,
    erased: &LogEntry,
    through: u64,
) -> Result<ErasureStory, SessionError> {
    let seq = erased.stored.seq;
    let Payload::SubjectErased(said) = &erased.event.payload else {
        let (subject, event) = (None, Some(seq));
        return Err(CustodyError::NotErased { subject, event }.into());
    };
    let vault = home.known_vault(ledger.ambient())?;
    let key = key_standing(vault.as_ref(), said, seq)?;
    let mut gathering = Gathering::new(said.subject, seq);
    ledger.entries::<LedgerError>(0, through.saturating_add(1), |read| {
        gathering.take(&read);
        Ok(())
    })?;
    let reader = ledger.store().reader();
    let mut texts = Vec::new();
    for (_, mut text) in std::mem::take(&mut gathering.texts) {
        text.is_stored = reader.blob(&text.blake3)?.is_some();
        texts.push(text);
    }
    let mut files = gathering.files();
    for (file, rows) in gathering.beside() {
        let rows = reader.blob(&rows)?;
        if let Some(link) = gathering.link(rows.as_deref()) {
            files.push(SourceFile { link, ..file });
        }
    }
    files.sort_by_key(|file| file.seq);
    let answers = erasure::answers(ledger, &said.subject)?;
    let answers = answers.into_iter().map(|of| {
        let erased = gathering.erasures.get(&of).copied();
        (of, erased)
    });
    let answers = answers.collect();
    for file in &mut files {
        // Said to be erased, and readable here: that is no erasure.
        if let (Some(vault), Some(subject)) = (&vault, &file.subject)
            && vault.subject_key(subject)?.is_some()
        {
            file.erased_seq = None;
        }
    }
    let mut copies = gathering.copies;
    for subject in gathering.erasures.keys() {
        let is_readable = match &vault {
            Some(vault) => vault.subject_key(subject)?.is_some(),
            None => false,
        };
        if !is_readable {
            copies.remove(subject);
        }
    }
    let mut naming = gathering.naming;
    naming.extend(remains::said_of_rows(ledger, &gathering.rows, through)?);
    Ok(ErasureStory {
        answers,
        copies,
        author: erased.event.header.author,
        files,
        handouts: gathering.handouts,
        key,
        naming,
        recorded_at: erased.stored.recorded_at,
        said: (**said).clone(),
        seq,
        texts,
        touched: withheld::touched(
            ledger,
            &BTreeSet::from([said.subject]),
            through.saturating_add(1),
        )?,
    })
}

/// A decision that cannot be computed again since texts were erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldDecision {
    /// The decision.
    pub entry: TouchedEntry,
    /// The erasures, by their entries.
    pub erasures: Vec<u64>,
}

/// Erasures through a position, by entry, and the decisions that they touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithheldDecisions {
    /// The decisions.
    pub decisions: Vec<WithheldDecision>,
    /// Every erasure.
    pub erasures: Vec<u64>,
}

/// What erasures through a position touch; nothing is read but their list where there are none.
///
/// # Errors
/// [`LedgerError`].
pub fn decisions_withheld(ledger: &Ledger, through: u64) -> Result<WithheldDecisions, LedgerError> {
    let mut erased = BTreeMap::new();
    let takes = |_: &LogEntry| true;
    let query = KindQuery {
        kind: Kind::SubjectErased,
        takes: &takes,
    };
    let below = through.saturating_add(1);
    listing::each::<LedgerError>(ledger, &query, (0, below), |read| {
        if let Payload::SubjectErased(said) = read.event.payload {
            erased.entry(said.subject).or_insert(read.stored.seq);
        }
        Ok(true)
    })?;
    if erased.is_empty() {
        return Ok(WithheldDecisions::default());
    }
    let subjects = erased.keys().copied().collect();
    let touched = withheld::touched(ledger, &subjects, below)?;
    let decisions = touched.into_iter().map(|entry| {
        let of = entry
            .subjects
            .iter()
            .filter_map(|of| erased.get(of).copied());
        let mut erasures: Vec<u64> = of.collect();
        erasures.sort_unstable();
        WithheldDecision { entry, erasures }
    });
    let mut erasures: Vec<u64> = erased.values().copied().collect();
    erasures.sort_unstable();
    Ok(WithheldDecisions {
        decisions: decisions.collect(),
        erasures,
    })
}

/// A file that was taken in.
struct IngestedFile {
    experiment: Option<ExperimentId>,
    /// BLAKE3 of its rows without texts and labels.
    rows: Digest,
    seq: u64,
    source: Source,
}

/// One walk over the log.
struct Gathering {
    subject: Digest,
    erased_seq: u64,
    /// Every file that was taken in, by its event.
    ingested: BTreeMap<EventId, IngestedFile>,
    /// Experiments with texts of the subject, and its rows there.
    rows: RowsOfSubject,
    /// Those of them that texts of the subject came from.
    came_from: BTreeSet<EventId>,
    /// Files that are kept under the subject's key.
    own_files: BTreeSet<EventId>,
    /// Other subjects that hold texts of those.
    copies: BTreeMap<Digest, u64>,
    /// Erasures by subject.
    erasures: BTreeMap<Digest, u64>,
    handouts: Vec<Handout>,
    naming: BTreeMap<Kind, Vec<u64>>,
    texts: BTreeMap<Digest, ErasedText>,
}

impl Gathering {
    fn new(subject: Digest, erased_seq: u64) -> Self {
        Self {
            subject,
            erased_seq,
            ingested: BTreeMap::new(),
            rows: BTreeMap::new(),
            came_from: BTreeSet::new(),
            own_files: BTreeSet::new(),
            copies: BTreeMap::new(),
            erasures: BTreeMap::new(),
            handouts: Vec::new(),
            naming: BTreeMap::new(),
            texts: BTreeMap::new(),
        }
    }

    fn take(&mut self, read: &LogEntry) {
        let (seq, event) = (read.stored.seq, &read.event);
        match &event.payload {
            Payload::ScoreRecorded(score) => {
                let texts = [
                    (TextUse::Prompt, &score.prompt),
                    (TextUse::Response, &score.response),
                ];
                let mut is_named = false;
                for (of, text) in texts {
                    is_named |= text.as_ref().is_some_and(|text| self.text(of, text, seq));
                }
                if is_named {
                    self.naming.entry(event.kind()).or_default().push(seq);
                    self.came_from.extend(&event.header.refs);
                    let rows = self.rows.entry(event.header.experiment.clone());
                    let row = row_of_draw(&score.policy, &score.item, score.draw);
                    rows.or_default().insert(row);
                }
                let mut refs = event.header.refs.iter();
                if refs.any(|of| self.own_files.contains(of)) {
                    let texts = [&score.prompt, &score.response].into_iter().flatten();
                    let others = texts.filter(|text| text.subject != self.subject);
                    for text in others {
                        self.copies.entry(text.subject).or_insert(seq);
                    }
                }
            }
            Payload::DataIngested(said) => {
                let file = IngestedFile {
                    experiment: event.header.experiment.clone(),
                    rows: said.rows.blake3,
                    seq,
                    source: said.source.clone(),
                };
                self.ingested.insert(event.id, file);
                if let Source::Private(private) = &said.source
                    && self.text(TextUse::File, private, seq)
                {
                    self.naming.entry(event.kind()).or_default().push(seq);
                    self.own_files.insert(event.id);
                }
            }
            Payload::CallRecorded(said) => {
                let mut answer = said.response.iter();
                if answer.any(|answer| self.text(TextUse::Answer, answer, seq)) {
                    self.naming.entry(event.kind()).or_default().push(seq);
                }
            }
            Payload::NoteRecorded(said) => {
                let is_named = said.text.as_str().contains(&self.subject.to_hex());
                if let Some(blob) = said.blob.as_ref().filter(|_| is_named) {
                    self.naming.entry(event.kind()).or_default().push(seq);
                    self.put(TextUse::Note, (blob.blake3, blob.bytes.value(), None), seq);
                }
            }
            Payload::SubjectErased(said) => {
                self.erasures.entry(said.subject).or_insert(seq);
            }
            // A vault that was put back brings the key back: reads count at any time.
            _ if seq < self.erased_seq || event.kind() == Kind::DataRead => {
                self.handout(seq, event);
            }
            _ => {}
        }
    }

    /// Takes a private text in where it is the subject's; whether it is.
    fn text(&mut self, of: TextUse, private: &PrivateRef, seq: u64) -> bool {
        let is_own = private.subject == self.subject;
        if is_own {
            let blob = &private.blob;
            let blob = (blob.blake3, blob.bytes.value(), Some(private.commitment));
            self.put(of, blob, seq);
        }
        is_own
    }

    fn put(
        &mut self,
        of: TextUse,
        (blake3, bytes, commitment): (Digest, u64, Option<Digest>),
        seq: u64,
    ) {
        let text = self.texts.entry(blake3).or_insert(ErasedText {
            blake3,
            bytes,
            commitment,
            events: Vec::new(),
            is_stored: false,
            of,
        });
        text.events.push(seq);
    }

    /// What gave content of the ledger to somebody.
    fn handout(&mut self, seq: u64, event: &Event) {
        let author = event.header.author;
        let found = match &event.payload {
            Payload::DataRead(read) if read.outcome == ReadOutcome::Allowed => {
                let is_text = read.class.as_str() == reads::PRIVATE;
                is_text.then(|| {
                    let what = format!("a private text was read: {}", read.purpose.as_str());
                    (read.reader, what)
                })
            }
            Payload::AuditAttested(said) => Some((author, said.statement.as_str().to_owned())),
            Payload::ReportPublished(said) => Some((author, said.iteration.to_string())),
            _ => None,
        };
        self.handouts.extend(found.map(|(by, what)| Handout {
            by,
            kind: event.kind(),
            seq,
            what,
        }));
    }

    fn file(&self, of: &IngestedFile, link: FileLink) -> SourceFile {
        let subject = match &of.source {
            Source::Envelope(_) => None,
            Source::Private(private) => Some(private.subject),
        };
        let erased_seq = subject.and_then(|subject| self.erasures.get(&subject).copied());
        SourceFile {
            erased_seq,
            link,
            seq: of.seq,
            subject,
        }
    }

    /// Files from which scores of the texts came.
    fn files(&self) -> Vec<SourceFile> {
        let found = self.came_from.iter();
        let found = found.filter_map(|id| self.ingested.get(id));
        found.map(|of| self.file(of, FileLink::Scores)).collect()
    }

    /// Other files of the same experiments, each with what its rows are found by.
    fn beside(&self) -> Vec<(SourceFile, Digest)> {
        let others = self.ingested.iter();
        let others = others.filter(|(id, of)| {
            let is_own = self.came_from.contains(id) || self.own_files.contains(id);
            !is_own && self.rows.contains_key(&of.experiment)
        });
        let found = others.map(|(_, of)| (self.file(of, FileLink::Rows), of.rows));
        found.collect()
    }

    /// How a file with these rows holds texts of the subject; `None` where it does not.
    fn link(&self, rows: Option<&[u8]>) -> Option<FileLink> {
        let Some(rows) = rows else {
            return Some(FileLink::Unread);
        };
        let mut lines = rows.split(|byte| *byte == b'\n');
        let is_own = |line: &[u8]| {
            let row: IngestedRow = serde_json::from_slice(line).ok()?;
            let row = row_of_draw(&row.policy, &row.item, row.draw);
            Some(self.rows.values().any(|of| of.contains(&row)))
        };
        // A line that nobody can read may be one of them.
        let is_held = lines.any(|line| !line.is_empty() && is_own(line).unwrap_or(true));
        is_held.then_some(FileLink::Rows)
    }
}
