//! What an import adds, and what was there, in words and as JSON.

use serde_json::Value;
use serde_json::json;

use crate::cli::ui;
use crate::session::intake::counts::Counts;
use crate::session::intake::counts::Pair;
use crate::workflow::import::Rows;

pub(super) fn words(pair: Pair) -> String {
    format!(
        "{} new, {} already",
        ui::thousands(pair.new),
        ui::thousands(pair.already)
    )
}

pub(super) fn cell(pair: Pair) -> String {
    match (pair.new, pair.already) {
        (0, 0) => "-".to_owned(),
        (new, 0) => format!("+{}", ui::thousands(new)),
        (new, already) => format!(
            "+{} ({} already)",
            ui::thousands(new),
            ui::thousands(already)
        ),
    }
}

fn pair(pair: Pair) -> Value {
    json!({"new": pair.new, "already": pair.already})
}

pub(super) fn totals(counts: &Counts) -> Value {
    json!({
        "scores": pair(counts.scores), "labels": pair(counts.labels),
        "sealed": pair(counts.sealed), "logprobs": pair(counts.logprobs), "files": pair(counts.files),
    })
}

pub(super) fn of_rows(counts: &Counts, rows: &Rows) -> Value {
    let mut value = totals(counts);
    value["file"] = json!(rows.file);
    value["rows"] = json!(rows.rows.len());
    value["labelled"] = json!(rows.labelled());
    value["rounded"] = json!(rows.rounded);
    value
}
