//! What was said of rows beside their scores, or instead of them: kept as a private blob under a subject of its own, so that
//! whoever erases that subject erases it.

use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Text;
use clover_event::payload::record::NoteRecorded;
use clover_ground::ambient::Ambient;
use clover_num::Count;
use clover_workflow::import::tools::RowEdit;
use clover_workflow::import::tools::RowRemark;
use serde::Serialize;

use crate::error::SessionError;
use crate::home::Home;
use crate::intake::batch;

/// A remark as a line of the blob: as the remarks of a judge that was asked, and with edits.
#[derive(Serialize)]
struct RemarkLine<'a> {
    declined: bool,
    draw: Count,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<EditLine<'a>>,
    item: &'a ItemId,
    policy: &'a PolicyId,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// An edit of a score.
#[derive(Serialize)]
struct EditLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    author: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    value: &'a str,
}

impl<'a> From<&'a RowEdit> for EditLine<'a> {
    fn from(edit: &'a RowEdit) -> Self {
        Self {
            at: edit.at.as_deref(),
            author: &edit.author,
            reason: edit.reason.as_deref(),
            value: &edit.value,
        }
    }
}

impl<'a> From<&'a RowRemark> for RemarkLine<'a> {
    fn from(remark: &'a RowRemark) -> Self {
        Self {
            declined: remark.declined,
            draw: remark.draw,
            edits: remark.edits.iter().map(EditLine::from).collect(),
            item: &remark.item,
            policy: &remark.policy,
            reason: remark.reason.as_deref(),
        }
    }
}

/// The note of remarks on rows, and the blob that it names.
pub(crate) fn noted<T: Serialize>(
    home: &Home,
    ambient: &Ambient,
    judge: &JudgeId,
    remarks: &[T],
) -> Result<(NoteRecorded, Vec<u8>), SessionError> {
    let mut lines = Vec::new();
    for remark in remarks {
        serde_json::to_writer(&mut lines, remark).expect("BUG: ids and texts are JSON");
        lines.push(b'\n');
    }
    let (private, stored) = batch::private(home, ambient, &lines, "application/x-ndjson")?;
    let text = format!(
        "what judge {judge} said of {} rows, private, subject {}",
        remarks.len(),
        private.subject.to_hex()
    );
    let note = NoteRecorded {
        blob: Some(private.blob),
        text: Text::new(text).expect("BUG: an id and a digest are short"),
    };
    Ok((note, stored))
}

/// The note of what a file says of its rows, and the blob that it names; `None` where it says nothing.
pub(super) fn of_file(
    home: &Home,
    ambient: &Ambient,
    judge: &JudgeId,
    remarks: &[RowRemark],
) -> Result<Option<(NoteRecorded, Vec<u8>)>, SessionError> {
    if remarks.is_empty() {
        return Ok(None);
    }
    let lines: Vec<_> = remarks.iter().map(RemarkLine::from).collect();
    noted(home, ambient, judge, &lines).map(Some)
}
