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
use crate::import::plan;
use crate::import::plan::ImportTerms;
use crate::import::plan::LabelIntake;
use crate::import::plan::PlanRefusal;
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
/// [`ImportError`] at the first that is wrong: a name, a time that is none or lies after `now`, a scale that is none or
/// another than that of the lines before, a value off it, or a second label of one rater for one draw.
pub fn of(rows: &ImportRows, rater: &RaterId, now: Timestamp) -> Result<FileLabels, ImportError> {
    let mut found = FileLabels::default();
    let mut seen: BTreeMap<(Draw, RaterId), u64> = BTreeMap::new();
    for row in &rows.rows {
        let wrong = |field: &str, what: String| ImportError {
            file: rows.file.clone(),
            line: row.line,
            field: Some(field.to_owned()),
            what,
        };
        let Some(value) = row.label else {
            found.unlabelled += 1;
            continue;
        };
        let rater = match beside(row, RATER) {
            None => rater.clone(),
            Some(text) => RaterId::new(text)
                .map_err(|error| wrong(RATER, format!("{error}, found {text:?}")))?,
        };
        if let Some(text) = beside(row, TIME) {
            let at = Timestamp::parse_written(text).ok_or_else(|| {
                let what = format!(
                    "expected a day such as 2027-01-31 or an RFC 3339 time, found {text:?}"
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
        let draw = (row.policy.clone(), row.item.clone(), row.draw);
        if let Some(line) = seen.insert((draw, rater.clone()), row.line) {
            let what = format!(
                "expected one label of {rater} for draw {} of {} by {}, found another on line {line}",
                row.draw, row.item, row.policy
            );
            return Err(wrong(PROMPT_ID, what));
        }
        let row = row.clone();
        found.labels.push(FileLabel { row, value, rater });
    }
    if let Some((low, high)) = found.scale
        && let Some(off) = found
            .labels
            .iter()
            .find(|of| of.value < low || of.value > high)
    {
        return Err(ImportError {
            file: rows.file.clone(),
            line: off.row.line,
            field: Some(ORACLE_LABEL.to_owned()),
            what: format!(
                "expected {low} to {high}, the scale of its line, found {}",
                off.value
            ),
        });
    }
    if found.labels.is_empty() {
        return Err(ImportError {
            file: rows.file.clone(),
            line: 0,
            field: Some(ORACLE_LABEL.to_owned()),
            what: "expected at least one label, found none".to_owned(),
        });
    }
    Ok(found)
}

/// Decides what becomes of each label of a file; `held` are the draws that the ledger holds.
///
/// # Errors
/// [`PlanRefusal`]: a row that the ledger does not hold, or a label that a rule would refuse.
pub fn plan(
    ledger: &Ledger,
    labels: &FileLabels,
    ask: &ImportTerms,
    held: &BTreeMap<Draw, u64>,
) -> Result<Vec<LabelIntake>, PlanRefusal> {
    let mut sealed: BTreeMap<Draw, u64> = BTreeMap::new();
    let plans = labels.labels.iter().map(|label| {
        let row = &label.row;
        let draw = (row.policy.clone(), row.item.clone(), row.draw);
        let stop = |rule, expected, found: String| {
            PlanRefusal::Refused(row.line, rule, expected, found, None)
        };
        if !held.contains_key(&draw) {
            let found = format!(
                "none of draw {} of {} by {}{}",
                row.draw,
                row.item,
                row.policy,
                like(held, row)
            );
            return Err(stop("row", "a row that this ledger holds", found));
        }
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
