//! Each kind of report on paper, printed by a headless Chromium: the answer stands on the first page, at most three pages come
//! before the appendices, and nothing is cut at the side. The same pages are held on screens, where axe is at hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::WorkedSample;
use super::say;
use super::seen;
use crate::cli::Desk;
use crate::support::child;

pub(super) const CHROMIUM: &str = "/usr/bin/chromium";
/// Pages before the appendices.
const PAGES_MAX: usize = 3;
/// Letters of a word that no column is too narrow for.
const SHORT: usize = 6;

/// The words of each sheet of paper.
type Sheets = Vec<Vec<String>>;

pub(super) fn decoded(text: &str) -> String {
    let signs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let decode = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    signs.into_iter().fold(text.to_owned(), decode)
}

/// Prints a page; `None` where a program is missing.
fn print(at: &Path, name: &str) -> Option<Sheets> {
    let path = |ending: &str| at.join(format!("{name}.{ending}"));
    let printed = Command::new(CHROMIUM)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .arg("--no-pdf-header-footer")
        .arg(format!("--user-data-dir={}", at.join("chromium").display()))
        .arg(format!("--print-to-pdf={}", path("pdf").display()))
        .arg(format!("file://{}", path("html").display()))
        .output()
        .ok()?;
    assert!(printed.status.success(), "{printed:?}");
    let read = Command::new("pdftotext")
        .arg("-bbox")
        .args([path("pdf"), path("words")])
        .output()
        .ok()?;
    assert!(read.status.success(), "{read:?}");
    let mut sheets = Sheets::new();
    for line in std::fs::read_to_string(path("words")).unwrap().lines() {
        let line = line.trim_start();
        if line.starts_with("<page ") {
            sheets.push(Vec::new());
        } else if line.starts_with("<word ") {
            let (_, word) = line.split_once('>').unwrap();
            let word = decoded(word.split('<').next().unwrap());
            sheets.last_mut().unwrap().push(word);
        }
    }
    Some(sheets)
}

/// How often each short word stands in the cells of all tables.
fn cells(page: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let (_, body) = page.split_once("<main").unwrap();
    // Where a long run may break, it is one word all the same.
    let body = body.replace("<wbr>", "");
    for piece in body.split("</td>").flat_map(|piece| piece.split("</th>")) {
        let at = piece.rfind("<td").max(piece.rfind("<th "));
        let Some(cell) = at.map(|at| &piece[at..]) else {
            continue;
        };
        let text = cell.split('<').filter_map(|part| part.split_once('>'));
        for word in text.flat_map(|(_, text)| text.split_whitespace()) {
            *counts.entry(decoded(word)).or_default() += 1;
        }
    }
    counts.retain(|word: &String, _| word.chars().count() <= SHORT);
    counts
}

fn holds(desk: &Desk, name: &str, sheets: &Sheets) {
    let read = |ending: &str| {
        let path = desk.at.join(format!("{name}.{ending}"));
        std::fs::read_to_string(path).unwrap()
    };
    let is_last = |sheet: &Vec<String>| sheet.iter().any(|word| word == "Appendices");
    let before = sheets.iter().position(is_last).unwrap_or(sheets.len());
    assert!(
        before <= PAGES_MAX,
        "{name}: {before} pages before the appendices"
    );
    let json: Value = serde_json::from_str(&read("json")).unwrap();
    // The bundle of an iteration has no head of its own.
    let answer = json["head"]["answer"].as_str().unwrap_or("verify-sources");
    let first = sheets[0].join(" ");
    assert!(first.contains(answer), "{name}: {answer}\n{first}");
    // What is cut at the side is on no sheet. A head that is repeated on the next sheet only adds.
    let cells = cells(&read("html"));
    assert!(cells.values().sum::<usize>() >= 10, "{name}: {cells:?}");
    for (word, count) in cells {
        let all = sheets.iter().flatten();
        let found = all.filter(|of| **of == word).count();
        assert!(
            found >= count,
            "{name}: {word} is {found} times on paper, and {count} times in cells"
        );
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
            ("coverage", "report coverage"),
            ("iso23894", "report iso23894"),
            ("iso42001", "report iso42001"),
            ("pccp", "report pccp"),
            ("sr26-2", "report sr26-2"),
        ],
        "refused-patch" => &[("iteration", "report iteration it-1")],
        "failed-audit" => &[
            ("estimate", "report estimate arena"),
            ("experiment", "report experiment arena"),
            ("tevv", "report tevv"),
            ("soc2", "report soc2"),
        ],
        "erased-subject" => &[
            ("erasure", "report erasure"),
            ("expiry", "report expiry"),
            ("gdpr", "report gdpr"),
            ("retention", "report retention"),
            ("trail", "report trail"),
        ],
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
        match seen::axe() {
            Some(axe) => seen::holds(&desk, name, &axe),
            None => println!("skipped on screens: CLOVER_AXE names no axe.min.js"),
        }
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
