//! Labels that come without scores, for rows that a ledger holds already: what of them it holds too, and what is to be
//! recorded.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::RaterId;
use clover_ground::time::Timestamp;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;

use crate::import::ImportError;
use crate::import::ImportRow;
use crate::import::ImportRows;
use crate::import::WRONG_MAX;
use crate::import::plan;
use crate::import::plan::ImportTerms;
use crate::import::plan::LabelIntake;
use crate::import::plan::PlanRefusal;
use crate::import::row;
use crate::import::row::ORACLE_LABEL;
use crate::import::row::PROMPT_ID;

/// Who labelled.
pub const RATER: &str = "rater";
/// When.
pub const TIME: &str = "time";
/// Ends of the scale of the label, as `1:5`.
pub const SCALE: &str = "scale";
/// What a record of a label may say beside its row and its value.
pub const BESIDE: [&str; 3] = [RATER, SCALE, TIME];

/// A draw of a policy on an item.
pub type Draw = (PolicyId, ItemId, Count);

/// A label of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLabel {
    /// Its row.
    pub row: ImportRow,
    /// Its value.
    pub value: Micro,
    /// Who labelled.
    pub rater: RaterId,
}

/// The labels of a file.
#[derive(Clone, Debug, Default)]
pub struct FileLabels {
    /// In order of the file.
    pub labels: Vec<FileLabel>,
    /// The scale that its lines say, where they do.
    pub scale: Option<(Micro, Micro)>,
    /// Records without a label.
    pub unlabelled: u64,
}

impl FileLabels {
    /// Two raters whose names differ in capital letters alone: one person, as a rule.
    pub fn raters_alike(&self) -> Option<(&RaterId, &RaterId)> {
        let mut names: BTreeMap<String, &RaterId> = BTreeMap::new();
        self.labels.iter().find_map(|label| {
            let first = *names
                .entry(label.rater.as_str().to_lowercase())
                .or_insert(&label.rater);
            (first != &label.rater).then_some((first, &label.rater))
        })
    }
}

/// Ends of a scale, as `1:5`.
pub fn scale(text: &str) -> Option<(Micro, Micro)> {
    let exact = |text: &str| match Micro::parse(text) {
        Ok((value, false)) => Some(value),
        _ => None,
    };
    let (low, high) = text.split_once(':')?;
    let ends = exact(low).zip(exact(high));
    ends.filter(|(low, high)| low < high)
}

fn beside<'r>(row: &'r ImportRow, name: &str) -> Option<&'r str> {
    let field = FieldId::new(name).ok()?;
    row.fields.get(&field).map(String::as_str)
}

/// The labels of records, which kept [`BESIDE`] as fields. A record names its rater, or `rater` labelled; one whose label
/// is empty is counted.
///
/// # Errors
/// [`ImportError`] with every line that is wrong: a name, a time that is none or lies after `now`, a scale that is none or
/// another than that of the lines before, a value off it, or a second label of one rater for one draw.
pub fn of(rows: &ImportRows, rater: &RaterId, now: Timestamp) -> Result<FileLabels, ImportError> {
    let mut found = FileLabels::default();
    let mut seen: BTreeMap<(Draw, RaterId), u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in &rows.rows {
        let Some(value) = row.label else {
            found.unlabelled += 1;
            continue;
        };
        let of = (rows, row, value);
        wrong.extend(take(&mut found, of, (rater, now), &mut seen).err());
        if wrong.len() == WRONG_MAX {
            break;
        }
    }
    // The scale of the lines is known once all are read.
    if let Some((low, high)) = found.scale {
        let off = found
            .labels
            .iter()
            .filter(|of| of.value < low || of.value > high);
        wrong.extend(off.take(WRONG_MAX).map(|of| {
            let what = format!(
                "expected {low} to {high}, the scale of its line, found {}",
                of.value
            );
            ImportError::new(&rows.file, of.row.line, Some(ORACLE_LABEL), what)
        }));
        wrong.sort_by_key(|error| error.line);
    }
    if let Some(error) = ImportError::of(wrong) {
        return Err(error);
    }
    if found.labels.is_empty() {
        let what = "expected at least one label, found none".to_owned();
        return Err(ImportError::new(&rows.file, 0, Some(ORACLE_LABEL), what));
    }
    Ok(found)
}

/// Takes one label of a file; `seen` are those before it.
fn take(
    found: &mut FileLabels,
    (rows, row, value): (&ImportRows, &ImportRow, Micro),
    (rater, now): (&RaterId, Timestamp),
    seen: &mut BTreeMap<(Draw, RaterId), u64>,
) -> Result<(), ImportError> {
    let wrong =
        |field: &str, what: String| ImportError::new(&rows.file, row.line, Some(field), what);
    let rater = match beside(row, RATER) {
        None => rater.clone(),
        Some(text) => {
            RaterId::new(text).map_err(|error| wrong(RATER, format!("{error}, found {text:?}")))?
        }
    };
    if let Some(text) = beside(row, TIME) {
        let at = Timestamp::parse_written(text).ok_or_else(|| {
            let what = format!(
                "expected a day such as 2027-01-31 or an RFC 3339 time, found {text:?}{}",
                row::dotted(text)
            );
            wrong(TIME, what)
        })?;
        if at > now {
            let what = format!("expected a time that is past, found {at}");
            return Err(wrong(TIME, what));
        }
    }
    if let Some(text) = beside(row, SCALE) {
        let own = scale(text).ok_or_else(|| {
            wrong(
                SCALE,
                format!("expected LOW:HIGH such as 1:5, found {text:?}"),
            )
        })?;
        let (low, high) = *found.scale.get_or_insert(own);
        if own != (low, high) {
            let what = format!(
                "expected {low}:{high}, the scale of the lines before, found {text:?}; labels of one experiment have one scale"
            );
            return Err(wrong(SCALE, what));
        }
    }
    if let Some(line) = seen.insert((draw(row), rater.clone()), row.line) {
        let what = format!(
            "expected one label of {rater} for draw {} of {} by {}, found another on line {line}",
            row.draw, row.item, row.policy
        );
        return Err(wrong(PROMPT_ID, what));
    }
    let row = row.clone();
    found.labels.push(FileLabel { row, value, rater });
    Ok(())
}

/// Refuses labels of draws that are not `held`.
///
/// # Errors
/// [`ImportError`] with every such line.
pub fn all_held(
    labels: &FileLabels,
    file: &str,
    held: &BTreeMap<Draw, u64>,
) -> Result<(), ImportError> {
    let rows = labels.labels.iter().map(|label| &label.row);
    let strangers = rows
        .filter(|row| !held.contains_key(&draw(row)))
        .map(|row| {
            let what = format!(
                "expected a row that this ledger holds, found none of draw {} of {} by {}{}",
                row.draw,
                row.item,
                row.policy,
                like(held, row)
            );
            ImportError::new(file, row.line, Some("row"), what)
        });
    ImportError::of(strangers.take(WRONG_MAX).collect()).map_or(Ok(()), Err)
}

/// Decides what becomes of each label of a file, whose draws the ledger holds.
///
/// # Errors
/// [`PlanRefusal`]: a label that a rule would refuse.
pub fn plan(
    ledger: &Ledger,
    labels: &FileLabels,
    ask: &ImportTerms,
) -> Result<Vec<LabelIntake>, PlanRefusal> {
    let mut sealed: BTreeMap<Draw, u64> = BTreeMap::new();
    let plans = labels.labels.iter().map(|label| {
        let row = &label.row;
        let draw = draw(row);
        let stop = |rule, expected, found: String| {
            PlanRefusal::Refused(row.line, rule, expected, found, None)
        };
        let ask = ImportTerms {
            rater: label.rater.clone(),
            ..ask.clone()
        };
        let plan = plan::label(ledger, row, &ask)?;
        if matches!(plan, LabelIntake::Sealed(..))
            && let Some(line) = sealed.insert(draw, row.line)
        {
            let found = format!("another on line {line}");
            return Err(stop("purpose", "one label of a draw that is sealed", found));
        }
        Ok(plan)
    });
    plans.collect()
}

fn draw(row: &ImportRow) -> Draw {
    (row.policy.clone(), row.item.clone(), row.draw)
}

/// What the ledger holds of the item, in words.
fn like(held: &BTreeMap<Draw, u64>, row: &ImportRow) -> String {
    const SHOWN: usize = 5;
    let of_item = held.keys().filter(|(_, item, _)| *item == row.item);
    let mut policies: Vec<_> = of_item.map(|(policy, ..)| policy.as_str()).collect();
    policies.dedup();
    if policies.is_empty() {
        return String::new();
    }
    policies.truncate(SHOWN);
    format!("; it holds {} by {}", row.item, policies.join(", "))
}
