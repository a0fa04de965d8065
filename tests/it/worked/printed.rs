//! Each kind of report on paper, printed by a headless Chromium: the answer stands on the first page, at most three pages come
//! before the appendices, and nothing is cut at the side.

use std::path::Path;
use std::process::Command;

use super::WorkedSample;
use super::say;
use crate::cli::Desk;
use crate::support::child;

const CHROMIUM: &str = "/usr/bin/chromium";
/// Pages before the appendices.
const PAGES_MAX: usize = 3;
/// Points of the margin that the style asks for, 15 mm, less what a letter may stand over.
const MARGIN: f64 = 41.0;

/// A page of paper: its width in points, and each word with where it begins and ends.
struct Sheet {
    width: f64,
    words: Vec<(f64, f64, String)>,
}

fn attribute(line: &str, name: &str) -> Option<f64> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()?.parse().ok()
}

/// Prints a page; `None` where a program is missing.
fn print(at: &Path, name: &str) -> Option<Vec<Sheet>> {
    let (page, paper, text) = (
        at.join(format!("{name}.html")),
        at.join(format!("{name}.pdf")),
        at.join(format!("{name}.words")),
    );
    let printed = Command::new(CHROMIUM)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .arg("--no-pdf-header-footer")
        .arg(format!("--user-data-dir={}", at.join("chromium").display()))
        .arg(format!("--print-to-pdf={}", paper.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    assert!(printed.status.success(), "{printed:?}");
    let read = Command::new("pdftotext")
        .arg("-bbox")
        .args([&paper, &text])
        .output()
        .ok()?;
    assert!(read.status.success(), "{read:?}");
    let mut sheets: Vec<Sheet> = Vec::new();
    for line in std::fs::read_to_string(text).unwrap().lines() {
        let line = line.trim_start();
        if line.starts_with("<page ") {
            let width = attribute(line, "width").unwrap();
            let words = Vec::new();
            sheets.push(Sheet { width, words });
        } else if line.starts_with("<word ") {
            let (from, to) = (attribute(line, "xMin"), attribute(line, "xMax"));
            let (_, word) = line.split_once('>').unwrap();
            let word = word.split('<').next().unwrap().to_owned();
            let words = &mut sheets.last_mut().unwrap().words;
            words.push((from.unwrap(), to.unwrap(), word));
        }
    }
    Some(sheets)
}

fn holds(desk: &Desk, name: &str, sheets: &[Sheet]) {
    let has = |sheet: &Sheet, word: &str| sheet.words.iter().any(|(_, _, of)| of == word);
    let before = sheets
        .iter()
        .position(|sheet| has(sheet, "Appendices"))
        .unwrap_or(sheets.len());
    assert!(before <= PAGES_MAX, "{name}: {before} pages before the appendices");
    let first = sheets[0].words.iter().map(|(_, _, word)| word.as_str());
    let first = first.collect::<Vec<_>>().join(" ");
    let json = std::fs::read_to_string(desk.at.join(format!("{name}.json"))).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    // The bundle of an iteration has no head.
    let answer = json["head"]["answer"].as_str().unwrap_or("verify-sources");
    let answer: Vec<_> = answer.split_whitespace().collect();
    let head = answer.join(" ").replace('"', "&quot;");
    assert!(first.contains(&head), "{name}: {head}\n{first}");
    for (at, sheet) in sheets.iter().enumerate() {
        for (from, to, word) in &sheet.words {
            let is_inside = *from >= MARGIN && *to <= sheet.width - MARGIN;
            assert!(is_inside, "{name}, page {}: {word} is cut", at + 1);
        }
    }
}

/// Which reports are printed of a history.
fn reports(sample: &WorkedSample) -> &'static [(&'static str, &'static str)] {
    match sample.name {
        "stopped-gate" => &[("gate", "report gate m-1")],
        "accepted-patch" => &[
            ("iteration", "report iteration it-1"),
            ("change", "report change arena@1.1"),
            ("experiment", "report experiment arena"),
            ("part11", "report part11"),
            ("annex-iv", "report annex-iv"),
        ],
        "refused-patch" => &[("iteration", "report iteration it-1")],
        "failed-audit" => &[
            ("estimate", "report estimate arena"),
            ("experiment", "report experiment arena"),
            ("tevv", "report tevv"),
            ("soc2", "report soc2"),
        ],
        "erased-subject" => &[("retention", "report retention"), ("trail", "report trail")],
        other => panic!("{other}"),
    }
}

fn printed(sample: &WorkedSample) -> usize {
    let mut desk = (sample.tell)();
    if sample.name == "accepted-patch" {
        let lines = [
            "key new rel --role releaser --holder Rolf",
            "prompt commit verify-sources",
            "deploy activate arena --judge builtin",
        ];
        say(&mut desk, &lines);
    }
    let mut count = 0;
    for (name, command) in reports(sample) {
        for ending in ["html", "json"] {
            say(&mut desk, &[&format!("{command} -o {name}.{ending}")]);
        }
        let Some(sheets) = print(&desk.at, name) else {
            println!("skipped: chromium or pdftotext is not here");
            return count;
        };
        holds(&desk, name, &sheets);
        count += 1;
    }
    count
}

/// A gate each time; every kind of report in the long run.
#[test]
fn reports_are_whole_on_paper() {
    if !Path::new(CHROMIUM).exists() {
        println!("skipped: {CHROMIUM} is not here");
        return;
    }
    let samples = super::SAMPLES.iter();
    let few = |of: &&WorkedSample| child::slow() || of.name == "stopped-gate";
    let count: usize = samples.filter(few).map(printed).sum();
    println!("{count} reports printed");
}
