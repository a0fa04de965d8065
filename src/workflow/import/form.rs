//! What a file is, by its bytes: so that a file given to the wrong verb is named, and not only refused.

use serde::de::IgnoredAny;

/// Bytes that are looked at; a name of a member that tells forms apart stands near the start.
const LOOKED_AT: usize = 1 << 16;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// Nothing but white space.
    Empty,
    /// One JSON object a line.
    JsonLines,
    /// One JSON list.
    JsonList,
    /// A log of Inspect, as JSON.
    Inspect,
    /// A log of Inspect, as it writes it: an archive.
    InspectArchive,
    /// Results of promptfoo.
    Promptfoo,
    /// Scores of Langfuse, in any of its forms but comma-separated values.
    Langfuse,
    /// Scores of Langfuse as comma-separated values.
    LangfuseTable,
    /// Records of OpenAI evals.
    OpenaiEvals,
    /// Log records as OTLP/JSON.
    Otel,
    /// Another JSON object over several lines.
    Json,
    /// A header and values between commas.
    Csv,
    /// A header and values between tabs or semicolons.
    Separated(char),
    /// UTF-16, as some spreadsheets write it.
    Utf16,
    /// None of these.
    Other,
}

impl FileForm {
    /// The form of a file.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"PK\x03\x04") {
            return Self::InspectArchive;
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Self::Utf16;
        }
        let start = &bytes[..bytes.len().min(LOOKED_AT)];
        let text = String::from_utf8_lossy(start);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_start();
        match text.chars().next() {
            None => Self::Empty,
            Some('{' | '[') => Self::of_json(bytes, text),
            Some(_) => Self::of_header(text),
        }
    }

    /// A file of JSON: one value, or what is meant as one a line.
    fn of_json(bytes: &[u8], start: &str) -> Self {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        if let Some(form) = Self::of_scores(start) {
            return form;
        }
        let is_value = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        let has = |name: &str| start.contains(&format!("\"{name}\""));
        let first = start.lines().next().unwrap_or_default();
        let is_one = is_value(bytes);
        // A log of Inspect may hold numbers that JSON has not.
        let is_tool = start.starts_with('{') && (is_one || !is_value(first.as_bytes()));
        if is_tool && has("eval") && has("version") && (has("task") || has("samples")) {
            Self::Inspect
        } else if is_one && has("evalId")
            || is_one && has("results") && has("prompts") && has("version")
            || is_one && has("outputs") && has("version")
        {
            Self::Promptfoo
        } else if !is_one {
            Self::JsonLines
        } else if start.starts_with('[') {
            Self::JsonList
        } else if is_value(first.as_bytes()) {
            Self::JsonLines
        } else {
            Self::Json
        }
    }

    /// Scores that others sent or logged, one document or one a line: their first members tell.
    fn of_scores(start: &str) -> Option<Self> {
        let has = |name: &str| start.contains(&format!("\"{name}\""));
        if has("resourceLogs") && has("scopeLogs") {
            Some(Self::Otel)
        } else if has("spec") && has("completion_fns") && has("run_id") {
            Some(Self::OpenaiEvals)
        } else if has("source")
            && has("dataType")
            && (has("subject") || has("traceId") || has("sessionId"))
        {
            Some(Self::Langfuse)
        } else {
            None
        }
    }

    fn of_header(text: &str) -> Self {
        let header = text.lines().next().unwrap_or_default();
        if header.contains(',') {
            let has = |name: &str| {
                let mut columns = header.trim_end().split(',');
                columns.any(|column| column.trim_matches('"') == name)
            };
            let is_langfuse = ["source", "dataType", "name", "value"]
                .iter()
                .all(|name| has(name));
            return if is_langfuse {
                Self::LangfuseTable
            } else {
                Self::Csv
            };
        }
        let others = ['\t', ';'];
        let found = others.into_iter().find(|c| header.contains(*c));
        found.map_or(Self::Other, Self::Separated)
    }

    /// Its media type.
    pub fn media(self) -> &'static str {
        match self {
            Self::InspectArchive => "application/zip",
            Self::Csv | Self::LangfuseTable => "text/csv",
            Self::JsonLines | Self::OpenaiEvals | Self::Otel => "application/x-ndjson",
            Self::JsonList | Self::Inspect | Self::Promptfoo | Self::Langfuse | Self::Json => {
                "application/json"
            }
            Self::Empty | Self::Separated(_) | Self::Utf16 | Self::Other => "text/plain",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "an empty file",
            Self::JsonLines => "JSON Lines",
            Self::JsonList => "one JSON list",
            Self::Inspect => "a log of Inspect",
            Self::InspectArchive => "an archive, as Inspect writes its logs",
            Self::Promptfoo => "results of promptfoo",
            Self::Langfuse | Self::LangfuseTable => "scores of Langfuse",
            Self::OpenaiEvals => "records of OpenAI evals",
            Self::Otel => "log records of OpenTelemetry",
            Self::Json => "one JSON object over several lines",
            Self::Csv => "comma-separated values",
            Self::Separated('\t') => "values between tabs",
            Self::Separated(_) => "values between semicolons",
            Self::Utf16 => "UTF-16 text",
            Self::Other => "neither JSON nor comma-separated values",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_their_beginning() {
        for (bytes, form) in [
            (&b""[..], FileForm::Empty),
            (b" \r\n\n", FileForm::Empty),
            (b"{\"prompt_id\":\"a\"}\n{\"prompt_id\":\"b\"}\n", FileForm::JsonLines),
            (b"\xef\xbb\xbf{\"prompt_id\":\"a\"}", FileForm::JsonLines),
            // A line that is cut is still meant as one.
            (b"{\"prompt_id\":\"a\",\"judge_sc", FileForm::JsonLines),
            (b"[{\"prompt_id\":\"a\"}]", FileForm::JsonList),
            (b"[1]\n{\"prompt_id\":\"a\"}\n", FileForm::JsonLines),
            (b"prompt_id,score\na,1\n", FileForm::Csv),
            (b"\xef\xbb\xbfprompt_id,score\n", FileForm::Csv),
            (
                b"\"id\",\"name\",\"value\",\"dataType\",\"source\"\r\n",
                FileForm::LangfuseTable,
            ),
            (
                b"{\"data\":[{\"name\":\"n\",\"dataType\":\"NUMERIC\",\"source\":\"EVAL\",\"traceId\":\"t\"}]}",
                FileForm::Langfuse,
            ),
            (
                b"{\"spec\":{\"completion_fns\":[\"m\"],\"run_id\":\"r\"}}\n{\"run_id\":\"r\"}\n",
                FileForm::OpenaiEvals,
            ),
            (
                b"{\"resourceLogs\":[{\"scopeLogs\":[]}]}\n{\"resourceLogs\":[]}\n",
                FileForm::Otel,
            ),
            // A log of Inspect may hold what JSON has not.
            (
                b"{\"version\":2,\"eval\":{\"task\":\"t\"},\"samples\":[NaN]}",
                FileForm::Inspect,
            ),
            (b"prompt_id\tscore\n", FileForm::Separated('\t')),
            (b"prompt_id;score\n", FileForm::Separated(';')),
            (b"PK\x03\x04rest", FileForm::InspectArchive),
            (b"\xff\xfep\0r\0", FileForm::Utf16),
            (
                b"{\n  \"version\": 2,\n  \"status\": \"success\",\n  \"eval\": {\n    \"task\": \"t\"\n  },\n  \"samples\": []\n}",
                FileForm::Inspect,
            ),
            (
                b"{\n  \"evalId\": \"eval-1\",\n  \"results\": {\"version\": 3, \"prompts\": []}\n}",
                FileForm::Promptfoo,
            ),
            (b"{\n  \"rows\": []\n}", FileForm::Json),
            (b"hello\n", FileForm::Other),
        ] {
            assert_eq!(FileForm::of(bytes), form, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
