//! The certificate of an erasure: who asked, who did it and when, what cannot be read any more, what remains and why,
//! which decisions cannot be computed again, and what is beyond the reach of a ledger.

use crate::event::Kind;
use crate::event::payload::Role;
use crate::ground::time::Timestamp;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle::holder;
use crate::session::custody::erased::ErasedText;
use crate::session::custody::erased::ErasureStory;
use crate::session::custody::erased::FileLink;
use crate::session::custody::erased::KeyStanding;
use crate::session::custody::erased::SourceFile;
use crate::view::report::course;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;

/// What is said of a requester who is not on record.
const UNNAMED: &str = "not on record: the event names nobody";
/// How texts are erased, in a sentence.
const METHOD: &str =
    "crypto-erasure: the key was destroyed, and the encrypted bytes were not deleted";

/// The certificate of an erasure.
///
/// # Errors
/// [`LedgerError`].
pub fn document(source: &ReportSource<'_>, story: &ErasureStory) -> Result<Document, LedgerError> {
    let by = holder(source.state, &story.author);
    let texts = counted(story.texts.len() as u64, "text", "texts");
    let touched = counted(story.touched.len() as u64, "decision", "decisions");
    let kept = story
        .files
        .iter()
        .filter(|of| of.erased_seq.is_none())
        .count() as u64;
    let kept = match kept {
        0 => String::new(),
        1 => " A file that holds these texts, or rows of them, can still be read: the last part names it."
            .to_owned(),
        n => format!(
            " {n} files that hold these texts, or rows of them, can still be read: the last part names them."
        ),
    };
    let answers = story.answers.iter().filter(|(_, erased)| erased.is_none());
    let answers = match answers.count() {
        0 => String::new(),
        1 => " One answer of a model about these texts can still be read: the last part names it."
            .to_owned(),
        n => format!(
            " {n} answers of models about these texts can still be read: the last part names them."
        ),
    };
    let copies = match story.copies.len() {
        0 => String::new(),
        1 => " Texts of this file are kept under 1 other subject too, and can still be read: the last part names it."
            .to_owned(),
        n => format!(
            " Texts of this file are kept under {n} other subjects too, and can still be read: the last part names them."
        ),
    };
    let is_checked = match story.key {
        KeyStanding::Destroyed => "The vault beside this ledger holds no key of the subject.",
        KeyStanding::NoVault => {
            "No vault, which holds keys, lies beside this ledger: whether the key is gone is NOT CHECKED."
        }
    };
    let head = DocumentHead {
        answer: format!(
            "{by} erased subject {} on {}. {texts} cannot be read any more, and {touched} cannot be computed again.{kept}{answers}{copies}",
            story.said.subject.short(),
            day(story.recorded_at),
        ),
        people: None,
        period: format!(
            "Erased at entry {}; entries {} to {} were read.",
            story.seq, source.from_seq, source.through_seq
        ),
        rest: vec![
            is_checked.to_owned(),
            "It is crypto-erasure: the key was destroyed, and the encrypted bytes stay in the ledger. Nobody can read them without the key.".to_owned(),
            "That supports an answer to a request for erasure, such as one under Article 17 of the GDPR. Whether it is enough is for people to judge.".to_owned(),
            "Nothing is claimed of copies of the texts outside of this ledger.".to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let title = format!("Subject {}", story.said.subject.short());
    let mut out = Document::new(ReportKind::Erasure, title, head);
    out.parts = vec![
        act(source, story),
        erased(story),
        remains(story),
        decisions(story),
        beyond(source, story),
    ];
    source.finish(out)
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take("2026-11-20".len()).collect()
}

/// Who asked, who did it, when, on which basis, and how.
fn act(source: &ReportSource<'_>, story: &ErasureStory) -> Chapter {
    let mut part = Chapter::new(
        "erasure",
        "The erasure",
        "What the entry says, and what was looked at for this certificate.",
    );
    let state = source.state;
    let own = || vec![story.seq];
    let requester = story.said.requester.as_ref();
    let requester = requester.map_or(UNNAMED, |of| of.as_str());
    part.fact(own(), "requester", "Asked by", Cell::text(requester));
    part.fact(
        own(),
        "by",
        "Done by",
        Cell::text(holder(state, &story.author)),
    );
    let role = Cell::text(Role::Custodian.as_str());
    part.fact(own(), "role", "In the role of", role);
    part.fact(
        own(),
        "key",
        "Signed with key",
        Cell::text(story.author.to_string()),
    );
    let at = Cell::text(story.recorded_at.to_string());
    part.fact(own(), "recorded_at", "Recorded at", at);
    part.fact(
        own(),
        "basis",
        "Basis",
        Cell::text(story.said.basis.as_str()),
    );
    part.fact(
        own(),
        "subject",
        "Subject",
        Cell::Digest(story.said.subject),
    );
    let scope = format!(
        "every text under the key of the subject: {}",
        counted(story.texts.len() as u64, "text", "texts")
    );
    part.fact(own(), "scope", "Scope", Cell::text(scope));
    part.fact(own(), "method", "Method", Cell::text(METHOD));
    let key = match story.key {
        KeyStanding::Destroyed => "destroyed: the vault has no such key",
        KeyStanding::NoVault => "NOT CHECKED: no vault is beside this ledger",
    };
    part.fact(own(), "key_standing", "Key of the subject", Cell::text(key));
    part
}

/// The texts that cannot be read any more.
fn erased(story: &ErasureStory) -> Chapter {
    let mut part = Chapter::new(
        "erased",
        "What was erased",
        "Each text by the digest of its encrypted bytes, which entries name. Its commitment tells nothing without its salt, which was encrypted too.",
    );
    let columns = [
        ("of", "text"),
        ("blake3", "BLAKE3 of the encrypted bytes"),
        ("bytes", "bytes"),
        ("commitment", "commitment"),
        ("named", "named by"),
        ("stored", "encrypted bytes"),
    ];
    let mut table = Table::new("texts", "Texts", &columns);
    for text in &story.texts {
        table.row_of(text.events.clone(), cells(text));
    }
    part.table_or(table, "no entry names a text under the key of the subject");
    part
}

fn cells(text: &ErasedText) -> Vec<Cell> {
    let stored = if text.is_stored {
        "in this ledger, unreadable"
    } else {
        "not in this ledger"
    };
    vec![
        Cell::text(text.of.as_str()),
        Cell::text(text.blake3.to_hex()),
        Cell::count(text.bytes),
        text.commitment.map_or(Cell::Absent, Cell::Digest),
        Cell::text(counted(text.events.len() as u64, "entry", "entries")),
        Cell::text(stored),
    ]
}

/// What an erasure leaves, and why.
fn remains(story: &ErasureStory) -> Chapter {
    let mut part = Chapter::new(
        "remains",
        "What remains, and why",
        "Entries are not changed and not deleted: else no root, proof or signature after them would hold.",
    );
    let columns = [("what", "what remains"), ("why", "why"), ("n", "entries")];
    let mut table = Table::new("remains", "What remains", &columns);
    let general = [
        (
            "positions, ids, signatures and leaf hashes of all entries",
            "the root of the log and every proof still verify",
        ),
        (
            "digests and commitments of the erased texts",
            "they name what was judged, and tell nothing of it without key and salt; keyed digests of an ask are tested by who has the ledger's pepper, which stays",
        ),
        (
            "ids of the rows wherever entries list rows: splits, units, orders, and what people wrote in notes and reasons",
            "an id or a word in the clear is not erased; clover log and a search of the export find them",
        ),
        (
            "what was decided and counted from the texts",
            "a decision stays on record with its numbers, also where it cannot be computed again",
        ),
    ];
    for (what, why) in general {
        let cells = vec![Cell::text(what), Cell::text(why), Cell::Absent];
        table.row_of(vec![story.seq], cells);
    }
    for (kind, seqs) in &story.naming {
        let (what, why) = left(*kind);
        let cells = vec![
            Cell::text(what),
            Cell::text(why),
            Cell::count(seqs.len() as u64),
        ];
        table.row_of(seqs.clone(), cells);
    }
    part.table_or(table, "");
    part
}

/// What an entry that names an erased text says in the clear beside it.
fn left(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::ScoreRecorded => (
            "scores with the ids of item, policy, judge and draw",
            "they are numbers about the text; an id in the clear is not erased",
        ),
        Kind::CallRecorded => (
            "what an ask came to: score, tokens, cost and keyed digests of its texts",
            "they are numbers about the answer, and digests that nobody can guess a text by",
        ),
        Kind::DataIngested => (
            "rows of the file, without its texts and labels",
            "the root of the rows is recorded; ids and fields of rows are not erased",
        ),
        Kind::EvidenceRecorded => (
            "evidence that a judge took from the text, in the clear: counts, marks, cited hosts",
            "scores are computed again from it; it was recorded as public evidence, and is not erased",
        ),
        Kind::LabelRecorded | Kind::LabelRevealed => (
            "labels that people gave the rows, with the ids of item, policy, draw and rater",
            "they are numbers about the text, on which decisions rest",
        ),
        Kind::LabelSealed | Kind::SealAccepted => (
            "sealed labels of the rows, with the row in the clear",
            "the seal is on record; who has the custodian's key opens it",
        ),
        _ => (
            "the words of notes",
            "a note is an entry; what it says in the clear is not erased",
        ),
    }
}

/// Decisions that cannot be computed again, one by one.
fn decisions(story: &ErasureStory) -> Chapter {
    let mut part = Chapter::new(
        "touched",
        "Decisions that cannot be computed again",
        "Each reads a text of the subject when it is computed. It stands as it was signed, and clover replay says that its input is withheld.",
    );
    let columns = [
        ("kind", "decision"),
        ("experiment", "experiment"),
        ("withheld", "standing"),
    ];
    let mut table = Table::new("decisions", "Decisions", &columns);
    for of in &story.touched {
        let experiment = of.experiment.as_ref();
        let cells = vec![
            Cell::text(of.kind.as_str()),
            experiment.map_or(Cell::Absent, |id| Cell::text(id.to_string())),
            Cell::text(format!("withheld under erasure #{}", story.seq)),
        ];
        table.row_of(vec![of.seq, story.seq], cells);
    }
    if table.rows.is_empty() {
        let none = "none: no decision on record reads a text of the subject";
        part.fact(vec![story.seq], "none", "Touched", Cell::text(none));
    } else {
        part.table_or(table, "");
    }
    part
}

/// Copies beyond the reach of a ledger: those on record, and what no ledger records.
fn beyond(source: &ReportSource<'_>, story: &ErasureStory) -> Chapter {
    let mut part = Chapter::new(
        "beyond",
        "Beyond the reach of this ledger",
        "What an erasure here does not reach. Whoever made a copy has to be asked.",
    );
    let columns = [("what", "what"), ("reach", "what holds of it")];
    let mut table = Table::new("files", "Files that hold the texts", &columns);
    for file in &story.files {
        let mut events = vec![file.seq];
        events.extend(file.erased_seq);
        table.row_of(
            events,
            vec![Cell::text(of_file(file)), Cell::text(held(file, story.key))],
        );
    }
    if !table.rows.is_empty() {
        part.table_or(table, "");
    }
    other_subjects(&mut part, story);
    handed_out(&mut part, source, story);
    part.lacks(
        "backups",
        "they are not recorded. One with the vault (backup --with-vault, or --all) has the key still: it has to be destroyed too. \
         A restored ledger destroys the key again only where its log has this erasure",
    );
    part.lacks(
        "exports and audit bundles",
        "they are not recorded. They hold the encrypted bytes and no key, so the texts cannot be read there either; \
         everything that remains here stands in them too",
    );
    part.lacks(
        "files and tools that the texts came from",
        "they are outside of the ledger, and so is what judges and their providers were sent",
    );
    part
}

/// Answers about the texts, and copies of them, that are kept under subjects of their own.
fn other_subjects(part: &mut Chapter, story: &ErasureStory) {
    let columns = [("subject", "subject"), ("reach", "what holds of it")];
    let mut table = Table::new("answers", "Answers of models about the texts", &columns);
    for (subject, erased) in &story.answers {
        let reach = match erased {
            Some(seq) => format!("erased too, at entry {seq}"),
            None => "KEPT: it can be read until its own subject is erased".to_owned(),
        };
        let events = vec![erased.unwrap_or(story.seq)];
        table.row_of(
            events,
            vec![Cell::text(subject.to_hex()), Cell::text(reach)],
        );
    }
    if !table.rows.is_empty() {
        part.table_or(table, "");
    }
    let columns = [("subject", "subject"), ("reach", "what holds of it")];
    let mut table = Table::new(
        "copies",
        "Other subjects that hold texts of the erased file",
        &columns,
    );
    for (subject, seq) in &story.copies {
        let reach = "KEPT: its texts can be read until this subject is erased too";
        table.row(*seq, vec![Cell::text(subject.to_hex()), Cell::text(reach)]);
    }
    if !table.rows.is_empty() {
        part.table_or(table, "");
    }
}

/// What gave content of the ledger to somebody, as far as it is on record.
fn handed_out(part: &mut Chapter, source: &ReportSource<'_>, story: &ErasureStory) {
    let columns = [("kind", "entry"), ("by", "by"), ("what", "what it says")];
    let mut table = Table::new(
        "handouts",
        "On record: reports and attestations before the erasure, and every read of a private text",
        &columns,
    );
    for of in &story.handouts {
        let cells = vec![
            Cell::text(of.kind.as_str()),
            Cell::text(holder(source.state, &of.by)),
            Cell::text(of.what.as_str()),
        ];
        table.row(of.seq, cells);
    }
    if table.rows.is_empty() {
        let none = "no read of a private text is on record, and no report or attestation before the erasure";
        part.fact(vec![story.seq], "none", "Handed out", Cell::text(none));
    } else {
        part.table_or(table, "");
    }
}

fn of_file(file: &SourceFile) -> String {
    match file.subject {
        Some(subject) => format!(
            "the file of entry {}, under subject {}",
            file.seq,
            subject.to_hex()
        ),
        None => format!(
            "the file of entry {}, an envelope to the custodian",
            file.seq
        ),
    }
}

fn held(file: &SourceFile, key: KeyStanding) -> String {
    let holds = match file.link {
        FileLink::Scores => "it holds these texts too",
        FileLink::Rows => "its rows are those of these texts",
        FileLink::Unread => "its rows are not in this ledger, so it may hold these texts",
    };
    match (file.subject, file.erased_seq) {
        (_, Some(seq)) if key == KeyStanding::NoVault => {
            format!("on record as erased at entry {seq}; its key is NOT CHECKED here")
        }
        (_, Some(seq)) => format!("erased too, at entry {seq}"),
        (Some(_), None) => {
            format!("KEPT: {holds}, and it can be read until its own subject is erased")
        }
        (None, None) => format!("KEPT: {holds}, and the custodian's key opens it"),
    }
}
