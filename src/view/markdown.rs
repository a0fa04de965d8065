//! A view as Markdown: tables as pipes, facts as a list, sources and charts in fences.

use std::fmt::Write as _;

use crate::report::markdown::plain;
use crate::report::markdown::visible;
use crate::view::Block;
use crate::view::View;

/// The blocks of a view as Markdown, and the commands to type next.
pub fn markdown(view: &View) -> String {
    let mut out = String::new();
    for block in &view.blocks {
        put(&mut out, block);
    }
    if !view.next.is_empty() {
        out.push_str("Next:\n\n");
        fence(&mut out, &view.next.join("\n"));
    }
    out
}

fn put(out: &mut String, block: &Block) {
    match block {
        Block::Line(line) | Block::Sentence(line) => paragraph(out, &plain(line)),
        Block::Answer(answer) => paragraph(out, &format!("**{}**", plain(answer))),
        Block::Facts { pairs, .. } => {
            for (label, value) in pairs {
                line(out, &format!("- **{}**: {}", plain(label), plain(value)));
            }
            out.push('\n');
        }
        Block::Table { head, rows } => table(out, head, rows),
        Block::Source(source) => fence(out, source),
        Block::Chart { lines, .. } => fence(out, &lines.join("\n")),
        Block::Verdict { word, rest, .. } => {
            paragraph(out, &format!("**{}**{}", plain(word), plain(rest)));
        }
        Block::Gap => {}
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("BUG: a String takes every write");
}

/// A paragraph of its own. Lines that follow one another stay lines: a reader joins them otherwise.
fn paragraph(out: &mut String, text: &str) {
    line(out, text.trim());
    out.push('\n');
}

fn table(out: &mut String, head: &[impl AsRef<str>], rows: &[Vec<String>]) {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    line(
        out,
        &row(head.iter().map(|of| plain(of.as_ref())).collect()),
    );
    line(out, &row(head.iter().map(|_| "---".to_owned()).collect()));
    for cells in rows {
        line(out, &row(cells.iter().map(|cell| plain(cell)).collect()));
    }
    out.push('\n');
}

/// Text that no markup is read in: its fence is longer than any run of backticks in it.
fn fence(out: &mut String, text: &str) {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let lines = text
        .split('\n')
        .map(|line| visible(line).collect::<String>());
    let text = lines.collect::<Vec<_>>().join("\n");
    line(
        out,
        &format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n')),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_others_wrote_is_no_markup() {
        let mut view = View::of(&Value::Null);
        view.line("# no heading");
        view.table(&["a|b"], [vec!["one|two".to_owned()]]);
        view.source("a fence: ```\nand its end");
        let document = markdown(&view);
        let expected = "\\# no heading\n\n| a\\|b |\n| --- |\n| one\\|two |\n\n````text\na fence: ```\nand its end\n````\n\n";
        assert_eq!(document, expected);
    }
}
