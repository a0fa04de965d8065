//! What a file brings, by the names and the numbers of its columns.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::intake_columns;
use crate::ground::shell;
use crate::view::guide::PromptPlace;
use crate::workflow::import::Brings;
use crate::workflow::import::csv;
use crate::workflow::import::form::FileForm;
use crate::workflow::import::row;

/// Other names of columns, for a command that maps them. A rating is what a person gives.
const COLUMNS: [(&str, &[&str]); 6] = [
    (row::JUDGE_SCORE, &["score", "judge"]),
    (
        row::PROMPT_ID,
        &["id", "item", "item_id", "example_id", "question_id"],
    ),
    (
        row::ORACLE_LABEL,
        &[
            "label",
            "gold",
            "human",
            "human_label",
            "human_score",
            "rating",
            "human_rating",
        ],
    ),
    (row::TARGET_POLICY, &["policy", "model", "system"]),
    (row::PROMPT, &["input", "question"]),
    (row::RESPONSE, &["output", "answer", "completion"]),
];

/// Names of columns that may say when a row was sampled.
const TIMES: [&str; 9] = [
    "asked",
    "asked_at",
    "created",
    "created_at",
    "date",
    "day",
    "sampled",
    "time",
    "timestamp",
];

/// Names of the columns of a header, or of the members of the first record.
pub(super) fn names(form: FileForm, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    if form == FileForm::Csv {
        let names = first.split(',').map(|name| name.trim_matches('"'));
        return names.map(str::to_owned).collect();
    }
    let record: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(first).unwrap_or_default();
    record.into_keys().collect()
}

/// Records of JSON Lines of which the members are looked at.
const LOOKED_AT: usize = 1_000;

/// Names of the members that are numbers in every record that has them, as far as the first thousand tell.
fn members_of_numbers(text: &str) -> Vec<String> {
    let mut all: BTreeMap<String, bool> = BTreeMap::new();
    for line in text.lines().take(LOOKED_AT) {
        let record: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(line).unwrap_or_default();
        for (name, value) in record.into_iter().filter(|(_, value)| !value.is_null()) {
            *all.entry(name).or_insert(true) &= value.is_number();
        }
    }
    let numbers = all.into_iter().filter(|(_, is_number)| *is_number);
    numbers.map(|(name, _)| name).collect()
}

/// What a file brings, by the names of its columns.
pub(super) struct FileColumns {
    pub(super) form: FileForm,
    /// Fields that it has.
    has: Vec<&'static str>,
    /// Fields with the columns of another name.
    pub(super) map: Vec<(&'static str, String)>,
    /// A column that may say when a row was sampled, where none has the name of that field.
    sampled: Option<String>,
    /// The only column of numbers among those that are no field.
    number: Option<String>,
}

impl FileColumns {
    /// The columns of comma-separated values or JSON Lines; `None` for another form.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let form = FileForm::of(bytes);
        if !matches!(form, FileForm::Csv | FileForm::JsonLines) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let columns = names(form, text);
        let plain = |name: &str| name.trim().to_lowercase().replace([' ', '-'], "_");
        let (mut has, mut map) = (Vec::new(), Vec::new());
        for (field, others) in COLUMNS {
            let same = |name: &&str| columns.iter().any(|column| column == name);
            let like = |column: &&String| {
                let name = plain(column);
                name == field || others.contains(&name.as_str())
            };
            if same(&field) {
                has.push(field);
            } else if let Some(column) = columns.iter().find(like) {
                has.push(field);
                map.push((field, column.clone()));
            }
        }
        let own = columns.iter().any(|column| column == row::SAMPLED_AT);
        let is_time = |column: &&String| TIMES.contains(&plain(column).as_str());
        let sampled = columns.iter().find(is_time).filter(|_| !own).cloned();
        let numbers = match form {
            FileForm::Csv => csv::numbers(bytes),
            _ => members_of_numbers(text),
        };
        let is_field = |column: &String| {
            has.contains(&column.as_str()) || map.iter().any(|(_, of)| of == column)
        };
        let mut rest = numbers
            .into_iter()
            .filter(|column| !is_field(column) && sampled.as_ref() != Some(column));
        let number = rest.next().filter(|_| rest.next().is_none());
        Some(Self {
            form,
            has,
            map,
            sampled,
            number,
        })
    }

    /// The same for what is wanted of the file: where no column has the name of a score or a label, and one alone has
    /// numbers, that is it.
    pub(super) fn meant(mut self, brings: Brings) -> Self {
        let field = match brings {
            Brings::Scores => row::JUDGE_SCORE,
            Brings::Labels => row::ORACLE_LABEL,
            Brings::Texts => return self,
        };
        if self.has(row::JUDGE_SCORE) || self.has(row::ORACLE_LABEL) {
            return self;
        }
        if let Some(column) = self.number.take() {
            self.has.push(field);
            self.map.push((field, column));
        }
        self
    }

    /// What the file brings, where that is not what was wanted of it and cannot be.
    pub(super) fn brings_other(&self, wanted: Brings) -> Option<Brings> {
        let has = |of: Brings| match of {
            Brings::Scores => self.has(row::JUDGE_SCORE),
            Brings::Texts => self.has(row::RESPONSE),
            Brings::Labels => self.has(row::ORACLE_LABEL),
        };
        if has(wanted) || (self.number.is_some() && wanted != Brings::Texts) {
            return None;
        }
        let all = [Brings::Scores, Brings::Labels, Brings::Texts];
        let named = all.into_iter().find(|of| has(*of));
        named.or_else(|| self.number.as_ref().map(|_| Brings::Scores))
    }

    /// Whether a column has this field.
    pub(super) fn has(&self, field: &str) -> bool {
        self.has.contains(&field)
    }

    /// What it is taken in for: scores where it has them, else texts, else labels.
    pub(super) fn brings(&self) -> Brings {
        if self.has(row::JUDGE_SCORE) {
            Brings::Scores
        } else if self.has(row::RESPONSE) && !self.has(row::ORACLE_LABEL) {
            Brings::Texts
        } else {
            Brings::Labels
        }
    }

    pub(super) fn verb(&self, brings: Brings) -> &'static str {
        match (brings, self.form) {
            (Brings::Scores, FileForm::Csv) => "csv",
            (Brings::Scores, _) => "cje",
            (Brings::Texts, _) => "rows",
            (Brings::Labels, _) => "labels",
        }
    }

    /// The same with the column of times, for rows that bring texts: they are split by it.
    pub(super) fn with_times(&self) -> Option<Self> {
        let column = self.sampled.as_ref()?;
        let mut map = self.map.clone();
        map.push((row::SAMPLED_AT, column.clone()));
        Some(Self {
            form: self.form,
            has: self.has.clone(),
            map,
            sampled: None,
            number: self.number.clone(),
        })
    }

    /// Where the prompt of a line stands: by its name, else by its text.
    pub(super) fn prompt(&self, bytes: &[u8]) -> Option<PromptPlace> {
        let fields = [row::PROMPT_ID, row::PROMPT];
        let field = fields.into_iter().find(|field| self.has(field))?;
        let mapped = self.map.iter().find(|(of, _)| *of == field);
        let column = mapped.map_or(field, |(_, column)| column.as_str());
        if self.form != FileForm::Csv {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let name = column.to_owned();
            return column
                .chars()
                .all(is_plain)
                .then_some(PromptPlace::Member(name));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let names = names(self.form, text.trim_end_matches('\r'));
        let at = names.iter().position(|name| name == column)?;
        Some(if bytes.contains(&b'"') {
            PromptPlace::Quoted(at + 1)
        } else {
            PromptPlace::Column(at + 1)
        })
    }

    /// A filter of `jq` that gives each field its own name.
    pub(super) fn renamed(&self) -> String {
        let members = self.map.iter();
        let members: Vec<_> = members
            // A text of `jq` is one of JSON.
            .map(|(field, member)| format!("{field}: .{}", json!(member)))
            .collect();
        shell::quoted(&format!(". + {{{}}}", members.join(", ")))
    }

    /// The pairs for `--map` of comma-separated values: those found, and for each other field that is needed the column that
    /// suggests itself, else `NAME`. A file of one policy may have no column for it.
    pub(super) fn pairs(&self, bytes: &[u8], brings: Brings) -> String {
        let value = match brings {
            Brings::Labels => Some(row::ORACLE_LABEL),
            Brings::Scores => Some(row::JUDGE_SCORE),
            Brings::Texts => None,
        };
        // A text of a prompt gives its id.
        let item = (!self.has(row::PROMPT)).then_some(row::PROMPT_ID);
        let needed = [value, item, Some(row::TARGET_POLICY)];
        let missing: Vec<_> = needed
            .into_iter()
            .flatten()
            .filter(|field| !self.has(field))
            .collect();
        let is_taken = |column: &str| self.map.iter().any(|(_, taken)| taken == column);
        let more = intake_columns::suggestions(bytes, &missing, is_taken);
        let more = more.into_iter().filter_map(|(field, column)| {
            let or_none = (field != row::TARGET_POLICY).then(|| "NAME".to_owned());
            Some((field, column.or(or_none)?))
        });
        let found = self.map.iter();
        let found = found.map(|(field, column)| format!("{field}={column}"));
        let all = found.chain(more.map(|(field, column)| format!("{field}={column}")));
        all.collect::<Vec<_>>().join(",")
    }
}
