//! Rows without scores: prompts and responses that wait for a judge. Their texts are kept as one private blob a file.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::Root;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::ImportFormat;
use clover_event::payload::intake::Source;
use clover_event::payload::judge::ScoreRecorded;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;
use clover_projection::said;
use clover_workflow::import::ImportRow;
use clover_workflow::import::ImportRows;
use clover_workflow::import::labels::Draw;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::batch;
use crate::intake::error::IntakeError;
use crate::intake::held;
use crate::intake::subjects;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::texts::Texts;

/// Rows of a file by whether the ledger holds them.
#[derive(Clone, Debug)]
pub struct RowsPlan {
    /// The file, with the rows that are new, and those of which a field is.
    pub rows: ImportRows,
    /// Rows that were taken in or scored before, with the same texts.
    pub already: u64,
    /// Of these, the rows of which a field is said for the first time.
    pub fielded: u64,
}

/// Prompt and response.
type PromptResponse = (String, String);

/// Texts of draws that the ledger holds, with the entry of each; `None` where they are not at hand.
fn texts_held(
    home: &Home,
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<Draw, (u64, Option<PromptResponse>)>, SessionError> {
    let mut found = BTreeMap::new();
    let mut texts = Texts::new(home, ledger)?;
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    for LogStatement { seq, said, .. } in entries.all::<ScoreRecorded>(|_| true)? {
        // A score that came without texts says nothing of them.
        if let (Some(prompt), Some(response)) = (&said.prompt, &said.response) {
            let pair = texts.opened(prompt).ok().zip(texts.opened(response).ok());
            found
                .entry((said.policy, said.item, said.draw))
                .or_insert((seq, pair));
        }
    }
    let held = held::rows(home, ledger, experiment)?;
    for (row, seq) in held.rows.into_iter().zip(held.seqs) {
        let pair = row.prompt.zip(row.response);
        found
            .entry((row.policy, row.item, row.draw))
            .or_insert((seq, pair));
    }
    // Texts that were erased, or whose key is not here.
    for (draw, seq) in held::waiting(ledger, experiment)? {
        found.entry(draw).or_insert((seq, None));
    }
    Ok(found)
}

/// Rows of an experiment that were scored, with their texts; those whose texts are not at hand are none of these.
///
/// # Errors
/// When the log, the vault or the rows of a file cannot be read.
pub fn scored(
    home: &Home,
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<ImportRows, SessionError> {
    let held = texts_held(home, ledger, experiment)?;
    let rows = (1..).zip(held).filter_map(|(line, (draw, (_, texts)))| {
        let row = ImportRow::of_texts(draw, texts?);
        Some(ImportRow { line, ..row })
    });
    let rows: Vec<ImportRow> = rows.collect();
    Ok(ImportRows {
        file: "rows that were scored".to_owned(),
        read: rows.len() as u64,
        rows,
        ..ImportRows::default()
    })
}

/// What of a file's rows is new; nothing is appended. A draw that the ledger holds keeps its texts: another response to be
/// judged in its place is another draw.
///
/// # Errors
/// [`IntakeError::NoTexts`]; [`IntakeError::Row`] at a row whose texts differ from those on record; [`IntakeError::LateFields`];
/// [`IntakeError::Erased`].
pub fn plan(
    home: &Home,
    ledger: &Ledger,
    experiment: &ExperimentId,
    mut rows: ImportRows,
) -> Result<RowsPlan, SessionError> {
    let file = rows.file.clone();
    let stop = |row: &ImportRow, expected: &str, found: String, in_the_way| IntakeError::Row {
        file: file.clone(),
        line: row.line,
        rule: "row",
        expected: expected.to_owned(),
        found,
        in_the_way,
    };
    let held = texts_held(home, ledger, experiment)?;
    let (mut fresh, mut known) = (Vec::new(), Vec::new());
    for row in std::mem::take(&mut rows.rows) {
        let (Some(prompt), Some(response)) = (&row.prompt, &row.response) else {
            return Err(IntakeError::NoTexts {
                file,
                line: row.line,
                lacks: if row.prompt.is_none() {
                    "prompt"
                } else {
                    "response"
                },
                neither: row.prompt.is_none() && row.response.is_none(),
            }
            .into());
        };
        let draw = (row.policy.clone(), row.item.clone(), row.draw);
        match held.get(&draw) {
            None => fresh.push(row),
            Some((_, Some(pair))) if (&pair.0, &pair.1) == (prompt, response) => known.push(row),
            Some((seq, pair)) => {
                let found = match pair {
                    Some(_) => "others; another response to the same prompt needs its own draw_idx",
                    None => "no way to compare: the texts on record are not at hand",
                };
                let expected = "the texts that are on record for this draw";
                return Err(stop(&row, expected, found.to_owned(), Some(*seq)).into());
            }
        }
    }
    rows.rows = fresh;
    let already = known.len() as u64;
    let said = with_new_fields(ledger, experiment, known)?;
    let fielded = said.len() as u64;
    rows.rows.extend(said);
    subjects::none_erased(home, ledger, &rows)?;
    Ok(RowsPlan {
        rows,
        already,
        fielded,
    })
}

/// Of rows that the ledger holds, those of a policy of which a field is said for the first time.
fn with_new_fields(
    ledger: &Ledger,
    experiment: &ExperimentId,
    known: Vec<ImportRow>,
) -> Result<Vec<ImportRow>, SessionError> {
    let new = batch::new_fields(ledger, experiment, &known)?.unwrap_or_default();
    let Some(first) = new.iter().flat_map(|of| &of.fields).next() else {
        return Ok(Vec::new());
    };
    let labelled = said::asked(ledger.state(), experiment).and_then(|of| of.first_label);
    if let Some(seq) = labelled {
        let field = first.clone();
        return Err(IntakeError::LateFields { field, seq }.into());
    }
    let is_said = |row: &ImportRow| new.iter().any(|of| of.policy == row.policy);
    Ok(known.into_iter().filter(is_said).collect())
}

/// Takes in the rows of a plan that are new; nothing where there are none.
///
/// # Errors
/// A missing key, found before anything is appended, and what the vault or the ledger says.
pub fn import(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    (experiment, format): (&ExperimentId, ImportFormat),
    plan: &RowsPlan,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let rows = &plan.rows;
    if rows.rows.is_empty() {
        return Ok(Vec::new());
    }
    let signer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::DataIngested))?;
    let (lines, root) = rows.unscored_root();
    let ambient = ledger.ambient().clone();
    let (private, stored) = batch::private(home, &ambient, &rows.texts(), "application/x-ndjson")?;
    let sampled = rows.sampled();
    let payload = DataIngested {
        fields: batch::new_fields(ledger, experiment, &rows.rows)?,
        format,
        labelled: batch::count(0),
        rounded: batch::count(0),
        rows: batch::reference(&lines, "application/x-ndjson"),
        rows_in: batch::count(rows.read),
        rows_out: batch::count(rows.rows.len() as u64),
        rows_root: Root(root),
        sampled_from: sampled.map(|(from, _)| from),
        sampled_to: sampled.map(|(_, to)| to),
        source: Source::Private(private),
    };
    let command = Command::new(Payload::from(payload), Some(experiment.clone()));
    append::permitted(ledger, &command, &signer)?;
    let appended = append::append_with(ports, ledger, &[command], &signer, &[lines, stored])?;
    ledger.settle()?;
    Ok(appended)
}
