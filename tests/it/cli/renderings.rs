//! Reports that are drawn from the log: every rendering has the same numbers, each with its entry; nothing comes from outside;
//! text of people stays text.

use std::collections::BTreeSet;

use clover::ground::canon;
use clover::report::document::LIMITS;
use serde_json::Value;

use super::Desk;

/// Words that no report of evidence says.
const BANNED: [&str; 2] = ["compliant", "certified"];

/// One report in its renderings.
pub struct Drawn {
    pub html: String,
    pub json: Value,
    pub md: String,
}

/// Draws a report in every form, and holds what every report has to hold.
pub fn drawn(desk: &mut Desk, command: &str) -> Drawn {
    let mut read = |ending: &str| {
        desk.ok(&format!("{command} -o drawn.{ending}"));
        std::fs::read_to_string(desk.at.join(format!("drawn.{ending}"))).unwrap()
    };
    let (html, json, md) = (read("html"), read("json"), read("md"));
    canon::check(json.as_bytes()).unwrap();
    let out = Drawn {
        json: serde_json::from_str(&json).unwrap(),
        html,
        md,
    };
    out.outside(command);
    out.numbers(command);
    out.entries(command);
    out.columns(command);
    for limit in LIMITS {
        assert!(flat(&out.md).contains(limit), "{command}: {limit}");
        assert!(out.html.contains(limit), "{command}: {limit}");
    }
    let summary = desk.ok(command).out;
    let answer = out.json["head"]["answer"].as_str().unwrap();
    assert!(flat(&summary).starts_with(answer), "{command}: {summary}");
    assert!(
        summary.lines().all(|line| line.chars().count() <= 100),
        "{command}: {summary}"
    );
    out
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What lies outside of drawings and tags, as a reader sees it.
fn visible(html: &str) -> String {
    let mut text = String::new();
    let body = html.split("<body>").nth(1).unwrap();
    for (at, piece) in body.split("<svg").enumerate() {
        let piece = if at == 0 {
            piece
        } else {
            piece.split_once("</svg>").unwrap().1
        };
        // How many entries are not named is a number of the page alone.
        for (at, cell) in piece.split("class=\"ref\">").enumerate() {
            let cell = if at == 0 {
                cell
            } else {
                let end = cell.find("</td>").unwrap_or(usize::MAX);
                let end = end.min(cell.find("</span>").unwrap_or(usize::MAX));
                &cell[end.min(cell.len())..]
            };
            text.push_str(cell);
        }
    }
    let mut out = String::new();
    for piece in text.split('<') {
        out.push(' ');
        out.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
    }
    out
}

/// Every number and every text of a document.
fn said(value: &Value, numbers: &mut Vec<f64>, texts: &mut String) {
    match value {
        Value::Number(number) => numbers.push(number.as_f64().unwrap()),
        Value::String(text) => {
            texts.push(' ');
            texts.push_str(text);
        }
        Value::Array(all) => all.iter().for_each(|of| said(of, numbers, texts)),
        Value::Object(of) => of.values().for_each(|of| said(of, numbers, texts)),
        _ => {}
    }
}

impl Drawn {
    fn outside(&self, command: &str) {
        let html = self.html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http://", "https://", "url(", "@import", "src=", "<script"] {
            assert!(!html.contains(outside), "{command}: {outside}");
        }
        let policy = "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-";
        assert!(html.contains(policy), "{command}");
        for part in ["<main", "<header>", "<footer>", "class=\"skip\""] {
            assert_eq!(html.matches(part).count(), 1, "{command}: {part}");
        }
        // No style stands where the policy would refuse it.
        assert!(!html.contains(" style="), "{command}");
    }

    /// Every number that a page shows in a table or a sentence stands in the JSON, in no fewer digits.
    fn numbers(&self, command: &str) {
        let (mut numbers, mut texts) = (Vec::new(), String::new());
        said(&self.json, &mut numbers, &mut texts);
        let text = visible(&self.html);
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | 'e');
        for word in text
            .split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | '(' | ')' | ';' | ':'))
        {
            let word = word.trim_end_matches([',', '.']);
            if word.is_empty()
                || !word.chars().all(is_part)
                || !word.contains(|c: char| c.is_ascii_digit())
            {
                continue;
            }
            let Ok(value) = word.replace(',', "").parse::<f64>() else {
                continue;
            };
            let digits = word.split('.').nth(1).map_or(0, str::len);
            let near = if word.contains('e') {
                value.abs() * 0.06
            } else {
                0.5 * 0.1_f64.powf(digits as f64) + 1e-12
            };
            let found = numbers.iter().any(|of| (of - value).abs() <= near);
            assert!(
                found || texts.contains(word),
                "{command}: {word} is not in the JSON"
            );
        }
    }

    /// Every entry that anything cites is listed with its id and its leaf, and the page leads there.
    fn entries(&self, command: &str) {
        let mut cited = BTreeSet::new();
        collect(&self.json, &mut cited);
        let listed = self.json["entries"].as_array().unwrap();
        let seqs: BTreeSet<u64> = listed
            .iter()
            .map(|of| of["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(cited, seqs, "{command}");
        for of in listed {
            for name in ["id", "leaf"] {
                assert_eq!(of[name].as_str().unwrap().len(), 64, "{command}: {of}");
            }
            let seq = &of["seq"];
            assert!(
                self.html.contains(&format!("id=\"e{seq}\"")),
                "{command}: {seq}"
            );
        }
    }

    /// Rows name the entries that they come from, and tables have captions and heads.
    fn columns(&self, command: &str) {
        let chapters = ["parts", "appendices"].map(|name| self.json[name].as_array().unwrap());
        for chapter in chapters.into_iter().flatten() {
            for table in chapter["tables"].as_array().unwrap() {
                for row in table["rows"].as_array().unwrap() {
                    // What no entry supports, and what was never begun, has none to name.
                    let is_empty = row["covered"] == "NOT COVERED" || row["begun"] == 0;
                    let events = row["events"].as_array().unwrap();
                    assert!(is_empty || !events.is_empty(), "{command}: {row}");
                }
            }
            let shown = ["facts", "tables", "listings", "missing"];
            let is_something = |name: &&str| !chapter[*name].as_array().unwrap().is_empty();
            assert!(shown.iter().any(is_something), "{command}: {chapter}");
        }
        let tables = self.html.matches("<table").count();
        assert_eq!(self.html.matches("<caption").count(), tables, "{command}");
        assert!(
            self.html.matches("scope=\"col\"").count() >= tables,
            "{command}"
        );
    }
}

fn collect(value: &Value, found: &mut BTreeSet<u64>) {
    match value {
        Value::Array(all) => all.iter().for_each(|of| collect(of, found)),
        Value::Object(of) => {
            for (name, inner) in of {
                if name == "events" {
                    let all = inner.as_array().unwrap();
                    found.extend(all.iter().map(|seq| seq.as_u64().unwrap()));
                } else {
                    collect(inner, found);
                }
            }
        }
        _ => {}
    }
}

/// Evidence for every framework: each requirement is supported, or names why not; no report says more than that.
pub fn evidence(desk: &mut Desk) {
    for report in [
        "annex-iv",
        "part11",
        "soc2",
        "tevv",
        "retention",
        "gdpr",
        "iso42001",
        "iso23894",
        "pccp",
        "sr26-2",
    ] {
        let found = drawn(desk, &format!("report {report}"));
        for text in [&found.html, &found.md] {
            let text = text.to_lowercase();
            for word in BANNED {
                assert!(!text.contains(word), "{report}: {word}");
            }
        }
        let parts = found.json["parts"].as_array().unwrap();
        let rows = parts[0]["tables"][0]["rows"].as_array();
        for row in rows.into_iter().flatten().filter(|_| report != "retention") {
            let is_covered = row["covered"].as_str().unwrap().starts_with("evidence");
            assert_eq!(is_covered, row["entries"].as_u64().unwrap() > 0, "{row}");
            assert!(!row["shows"].as_str().unwrap().is_empty(), "{row}");
        }
    }
}
