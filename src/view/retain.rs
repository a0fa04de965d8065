//! How long each class of records is kept.

use serde::Serialize;

use crate::ledger::State;
use crate::session::chronicle::holder;
use crate::session::expiry::LogsFloor;
use crate::session::expiry::RetainedClass;
use crate::view::View;

/// A class, as it was set last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RetainedRow {
    /// The class.
    pub class: String,
    /// For how many days.
    pub days: u64,
    /// Until when the oldest entry of the log is kept; `null` beyond the last date that a time can say.
    pub until: Option<String>,
    /// On which ground.
    pub basis: String,
    /// Who said so.
    pub holder: String,
    /// The entry that says it.
    pub seq: u64,
}

/// Every class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RetainList {
    /// By name.
    pub classes: Vec<RetainedRow>,
    /// Whether class logs is kept for six months or more.
    pub logs_kept: bool,
}

/// Every class with its days.
pub fn list(state: &State, classes: &[RetainedClass], logs: LogsFloor) -> View {
    let rows = classes.iter().map(|of| RetainedRow {
        basis: of.basis.clone(),
        class: of.class.clone(),
        days: of.days,
        holder: holder(state, &of.author),
        seq: of.seq,
        until: of.until.map(|at| at.to_string()),
    });
    let facts = RetainList {
        classes: rows.collect(),
        logs_kept: logs == LogsFloor::Kept,
    };
    let mut view = View::of(&facts);
    let rows = facts.classes.iter().map(|of| {
        let until = of.until.as_deref().map_or("never due", |at| &at[..10]);
        vec![
            of.class.clone(),
            of.days.to_string(),
            until.to_owned(),
            of.holder.clone(),
            of.seq.to_string(),
            of.basis.clone(),
        ]
    });
    view.table(&["class", "days", "until", "by", "seq", "basis"], rows);
    match logs {
        LogsFloor::Kept => {}
        LogsFloor::Below(days, seq) => view.sentence(format!(
            "class logs is kept for fewer days than six months, 184, by seq {seq}: {days}."
        )),
        LogsFloor::Unsaid => view.sentence("nobody said how long class logs is kept."),
    }
    let next = match logs {
        LogsFloor::Kept => "clover report expiry",
        _ => "clover retain set logs --days 184 --basis 'AI Act, Art. 19'",
    };
    view.with_next(next)
}
