//! Tables as comma-separated values (RFC 4180, UTF-8), a file per table, with `csv-metadata.json` (W3C CSVW).
//!
//! Text that a spreadsheet would take for a formula gets an apostrophe before it. Amounts are exact decimals.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use clover_event::Kind;
use clover_ground::name::is_unsafe;
use clover_num::Micro;
use serde_json::Value;
use serde_json::json;

use super::Extract;
use super::RecordedEvent;
use super::create;
use super::data;
use super::write_json;
use crate::ExportError;
use crate::Progress;

/// Columns that every table begins with.
const HEAD: [(&str, &str); 6] = [
    ("seq", "integer"),
    ("recorded_at", "dateTime"),
    ("kind", "string"),
    ("experiment", "string"),
    ("author", "string"),
    ("event", "string"),
];
/// Ending of the names of amounts in millionths.
const MICRO: &str = "_micro";

/// A table: a file, the kinds whose events are its rows, and what of them its columns hold.
pub(super) struct CsvTable {
    /// The file.
    pub file: &'static str,
    /// The kinds of events that are its rows.
    pub kinds: &'static [Kind],
    /// Names in the data of events, `/` between levels. Amounts in millionths become decimals under a name without
    /// `_micro`. Without any the column `data` holds all.
    pub columns: &'static [&'static str],
}

/// Every table. The next one goes here.
pub(super) const TABLES: &[CsvTable] = &[
    CsvTable {
        file: "events.csv",
        kinds: Kind::ALL,
        columns: &[],
    },
    CsvTable {
        file: "scores.csv",
        kinds: &[Kind::ScoreRecorded],
        columns: &["judge", "policy", "item", "draw", "score_micro"],
    },
    CsvTable {
        file: "labels.csv",
        kinds: &[Kind::LabelRecorded, Kind::LabelRevealed],
        columns: &[
            "design",
            "policy",
            "item",
            "draw",
            "row",
            "rater",
            "purpose",
            "value_micro",
        ],
    },
    CsvTable {
        file: "calibrators.csv",
        kinds: &[Kind::CalibratorFitted],
        columns: &[
            "terms/judge",
            "terms/environment",
            "calibrator",
            "selected",
            "labels",
            "clusters",
            "folds",
            "rmse",
            "oof_rmse",
            "through_seq",
        ],
    },
    CsvTable {
        file: "estimates.csv",
        kinds: &[Kind::EstimateRecorded],
        columns: &[
            "terms/judge",
            "terms/environment",
            "policy",
            "claim",
            "estimate",
            "se",
            "df",
            "interval/low",
            "interval/high",
            "terms/alpha_micro",
            "bounds/low",
            "bounds/high",
            "rows",
            "prompts",
            "labels",
            "route",
            "no_interval",
            "through_seq",
        ],
    },
    CsvTable {
        file: "differences.csv",
        kinds: &[Kind::ContrastRecorded],
        columns: &[
            "terms/judge",
            "terms/environment",
            "first",
            "second",
            "reading",
            "exploratory_since",
            "difference",
            "se",
            "df",
            "interval/low",
            "interval/high",
            "conservative/low",
            "conservative/high",
            "p",
            "p_adjusted",
            "through_seq",
        ],
    },
    CsvTable {
        file: "audits.csv",
        kinds: &[Kind::TransportTested],
        columns: &[
            "terms/judge",
            "terms/environment",
            "policy",
            "design",
            "state",
            "mean_residual",
            "wide/interval/low",
            "wide/interval/high",
            "audit/margin_micro",
            "audit/alpha_micro",
            "audit/family_size",
            "rows",
            "clusters",
            "through_seq",
        ],
    },
    CsvTable {
        file: "environments.csv",
        kinds: &[Kind::EnvironmentsTested],
        columns: &[
            "terms/judge",
            "family",
            "design",
            "q_micro",
            "environments",
            "probes",
            "late",
            "without",
            "through_seq",
        ],
    },
    CsvTable {
        file: "patches.csv",
        kinds: &[
            Kind::PatchProposed,
            Kind::PatchRejected,
            Kind::PatchAccepted,
            Kind::PatchWithdrawn,
        ],
        columns: &[
            "iteration",
            "patch",
            "family",
            "patch_hash",
            "candidate",
            "result_hash",
            "stage",
            "reason",
            "kappa",
            "rank",
            "risk_improve",
        ],
    },
    CsvTable {
        file: "criteria.csv",
        kinds: &[Kind::GateEvaluated],
        columns: &[
            "iteration",
            "candidate",
            "gate",
            "split",
            "thresholds/profile",
            "verdicts/literal",
            "verdicts/recommended",
            "inputs/rows",
            "inputs/through_seq",
        ],
    },
    CsvTable {
        file: "iterations.csv",
        kinds: &[
            Kind::IterationOpened,
            Kind::IterationPausedForLabels,
            Kind::IterationClosed,
        ],
        columns: &[
            "iteration",
            "rubric_hash",
            "quarter",
            "digest",
            "outcome",
            "reason",
        ],
    },
    CsvTable {
        file: "gates.csv",
        kinds: &[
            Kind::GateOpened,
            Kind::GateLooked,
            Kind::GateDecided,
            Kind::GateEstimated,
        ],
        columns: &[
            "gate",
            "digest",
            "n",
            "standing",
            "outcome",
            "class",
            "grade",
            "log_e",
            "p",
            "cs_lo_micro",
            "cs_hi_micro",
            "grade_now",
            "may_be_claimed_now",
        ],
    },
    CsvTable {
        file: "releases.csv",
        kinds: &[
            Kind::ApprovalGranted,
            Kind::ApprovalRefused,
            Kind::PromptCommitted,
            Kind::DeploymentActivated,
            Kind::DeploymentRolledBack,
            Kind::PromotionIssued,
            Kind::PromotionRevoked,
        ],
        columns: &[
            "patch",
            "version",
            "rubric_hash",
            "prompt_hash",
            "deployment",
            "restored",
            "meaning",
            "reason",
            "candidate_digest",
            "gates",
            "grade",
            "promotion",
        ],
    },
    CsvTable {
        file: "budgets.csv",
        kinds: &[Kind::BudgetOpened],
        columns: &["account", "unit", "amount", "period", "purpose"],
    },
    CsvTable {
        file: "charges.csv",
        kinds: &[Kind::BudgetCharged],
        columns: &["account", "amount", "for"],
    },
];

/// A table that is being written.
struct OpenTable<'t> {
    table: &'t CsvTable,
    out: Box<dyn Write + Send>,
    line: String,
}

/// Writes every table into a folder; answers with the rows of all.
pub(super) fn write(
    extract: &Extract<'_>,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let mut open = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let mut out = create(folder, table.file)?;
        let names = columns(table).map(|(name, _)| name).collect::<Vec<_>>();
        out.write_all(format!("{}\r\n", names.join(",")).as_bytes())?;
        open.push(OpenTable {
            table,
            out,
            line: String::new(),
        });
    }
    let mut rows = 0;
    extract.each(progress, |said| {
        let found = data(said)?;
        let told = ToldData::of(extract, said, &found);
        for table in open
            .iter_mut()
            .filter(|open| open.table.kinds.contains(&said.event.kind()))
        {
            let withholds = |column: &str| extract.withholds(said.seq, column);
            table.row(said, told.of_table(table.table), &withholds)?;
            rows += 1;
        }
        Ok(())
    })?;
    for mut table in open {
        table.out.flush()?;
    }
    write_json(
        create(folder, "csv-metadata.json")?.as_mut(),
        &metadata(extract),
    )?;
    Ok(rows)
}

impl OpenTable<'_> {
    fn row(
        &mut self,
        said: &RecordedEvent,
        found: &Value,
        withholds: &dyn Fn(&str) -> bool,
    ) -> Result<(), ExportError> {
        self.line.clear();
        let event = &said.event;
        let experiment = event
            .experiment()
            .map(ToString::to_string)
            .unwrap_or_default();
        let recorded = said.recorded_at.to_string();
        self.line.push_str(&said.seq.to_string());
        let texts = [&recorded, event.kind().as_str(), &experiment];
        for text in texts
            .into_iter()
            .chain([&*event.header.author.to_string(), &*event.id.to_string()])
        {
            self.cell(text);
        }
        if self.table.columns.is_empty() {
            self.cell(&found.to_string());
        }
        for &column in self.table.columns {
            let pointed = found.pointer(&format!("/{column}"));
            match pointed.filter(|_| !withholds(column)) {
                None | Some(Value::Null) => self.line.push(','),
                Some(Value::String(text)) => self.cell(text),
                Some(number) if column.ends_with(MICRO) => {
                    self.line.push(',');
                    let micro = number.as_i64().and_then(Micro::new);
                    self.line
                        .push_str(&micro.map(|micro| micro.to_string()).unwrap_or_default());
                }
                Some(Value::Number(number)) => {
                    self.line.push(',');
                    self.line.push_str(&number.to_string());
                }
                Some(other) => self.cell(&other.to_string()),
            }
        }
        self.line.push_str("\r\n");
        Ok(self.out.write_all(self.line.as_bytes())?)
    }

    /// Appends a cell of text.
    fn cell(&mut self, text: &str) {
        self.line.push(',');
        cell(&mut self.line, text);
    }
}

/// Appends a cell of text, quoted where it must be; what a spreadsheet would take for a formula gets an apostrophe.
fn cell(line: &mut String, text: &str) {
    // A spreadsheet may pass over blanks and what nobody sees, and take a sign in full width for the sign.
    let seen = text.trim_start_matches(|c: char| c.is_whitespace() || is_hidden(c));
    let guarded = text.starts_with(['\t', '\r', '\n'])
        || seen.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let quoted = guarded || text.contains(['"', ',', '\n', '\r']) || text.contains(is_hidden);
    if !quoted {
        line.push_str(text);
        return;
    }
    line.push('"');
    if guarded {
        line.push('\'');
    }
    for c in text.chars() {
        match c {
            '"' => line.push_str("\"\""),
            c if is_hidden(c) => line.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => line.push(c),
        }
    }
    line.push('"');
}

/// What nobody sees in a cell, or what reorders it, but tabs and ends of lines. A cell has them as `\u202e`, the escape of JSON, so that JSON in a cell stays the same JSON.
fn is_hidden(c: char) -> bool {
    is_unsafe(c) && !matches!(c, '\t' | '\n' | '\r')
}

/// A table of text as CSV: RFC 4180, UTF-8, no cell a formula.
#[derive(Clone, Debug, Default)]
pub struct CsvText(String);

impl CsvText {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Self {
        let mut out = Self::default();
        out.row(columns);
        out
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[&str]) {
        for (at, text) in cells.iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            cell(&mut self.0, text);
        }
        self.0.push_str("\r\n");
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// What tables have of an event: the data as they were signed, and with what may be said of them now.
pub(super) struct ToldData<'a> {
    now: Cow<'a, Value>,
    signed: &'a Value,
}

impl<'a> ToldData<'a> {
    /// Of an event, whose data are those that were signed.
    pub(super) fn of(extract: &Extract<'_>, said: &RecordedEvent, signed: &'a Value) -> Self {
        let now = extract.with_now(said, signed);
        let now = now.map_or(Cow::Borrowed(signed), Cow::Owned);
        Self { now, signed }
    }

    /// What a table has: that of all events has the data as they were signed.
    pub(super) fn of_table(&self, table: &CsvTable) -> &Value {
        if table.columns.is_empty() {
            self.signed
        } else {
            &self.now
        }
    }
}

/// Names and datatypes of the columns of a table, in order.
pub(super) fn columns(table: &CsvTable) -> impl Iterator<Item = (String, &'static str)> {
    let own: Vec<(String, &str)> = match table.columns {
        [] => vec![("data".to_owned(), "json")],
        some => some
            .iter()
            .map(|column| (name(column), datatype(column)))
            .collect(),
    };
    HEAD.iter()
        .map(|&(name, datatype)| (name.to_owned(), datatype))
        .chain(own)
}

/// Whether a column gives a value or a difference away.
pub(super) fn is_of_level(column: &str) -> bool {
    let (first, last) = (column.split('/').next(), column.rsplit('/').next());
    matches!(first, Some("interval" | "bounds" | "conservative"))
        || matches!(
            last,
            Some("estimate" | "se" | "df" | "difference" | "p" | "p_adjusted")
        )
}

/// `interval/low` is `interval_low`, `terms/alpha_micro` is `alpha`.
fn name(column: &str) -> String {
    let column = column.strip_prefix("terms/").unwrap_or(column);
    column
        .strip_suffix(MICRO)
        .unwrap_or(column)
        .replace('/', "_")
}

fn datatype(column: &str) -> &'static str {
    let last = column.rsplit('/').next().unwrap_or(column);
    match last {
        _ if last.ends_with(MICRO) => "decimal",
        "estimate" | "se" | "df" | "low" | "high" | "difference" | "p" | "p_adjusted" | "rmse"
        | "oof_rmse" | "log_e" | "mean_residual" | "risk_improve" => "double",
        "draw" | "rows" | "prompts" | "labels" | "clusters" | "folds" | "n" | "kappa" | "rank"
        | "amount" | "family_size" | "through_seq" => "integer",
        _ => "string",
    }
}

/// What the files and their columns are, as CSV on the Web says it.
fn metadata(extract: &Extract<'_>) -> Value {
    let table = |table: &CsvTable| {
        let columns = columns(table)
            .map(|(name, datatype)| json!({ "name": name, "titles": name, "datatype": datatype }));
        json!({ "url": table.file, "tableSchema": { "columns": columns.collect::<Vec<_>>() } })
    };
    json!({
        "@context": "http://www.w3.org/ns/csvw",
        "rdfs:comment": "Every row is one signed event: seq is its position in the log, event its SHA-256. \
                         Text that begins like a formula has an apostrophe before it. \
                         Numbers of a value that is refused now are empty.",
        "dc:source": extract.origin(),
        "tables": TABLES.iter().map(table).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::CsvText;

    #[test]
    fn a_cell_shows_marks_that_nobody_sees_and_stays_the_same_json() {
        let json = "{\"a\":\"x\u{202e}y\"}";
        let mut out = CsvText::default();
        out.row(&[
            "a\u{202e}b",
            json,
            "line\nnext",
            "\u{1b}[2J",
            "=1",
            "\n=1",
            "\u{202e}＝1",
        ]);
        let text = String::from_utf8(out.into_bytes()).unwrap();
        assert_eq!(
            text,
            "\"a\\u202eb\",\"{\"\"a\"\":\"\"x\\u202ey\"\"}\",\"line\nnext\",\"\\u001b[2J\",\"'=1\",\"'\n=1\",\"'\\u202e＝1\"\r\n"
        );
        let cell = text.split(',').nth(1).unwrap().trim_matches('"');
        let back: serde_json::Value = serde_json::from_str(&cell.replace("\"\"", "\"")).unwrap();
        assert_eq!(back["a"], "x\u{202e}y");
    }
}
