//! The report of an iteration as Markdown: tables with the entries of each row, texts in fences.

use std::fmt::Write as _;

use crate::projection::bundle::Bundle;
use crate::projection::bundle::Part;
use crate::projection::bundle::Table;
use crate::report::shown;

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("BUG: a String takes every write");
}

/// Text on one line in which nothing is markup.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&'
            | '~' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn refs(events: &[u64]) -> String {
    let words: Vec<String> = events.iter().map(|seq| format!("#{seq}")).collect();
    words.join(" ")
}

/// The whole report.
pub fn markdown(bundle: &Bundle) -> String {
    let mut out = String::new();
    put(
        &mut out,
        &format!("# Iteration {}\n", plain(bundle.iteration.as_str())),
    );
    put(
        &mut out,
        &format!(
            "Experiment {}, ledger {}, entries 0 to {}. Numbers after # are entries; the last part lists them.",
            plain(bundle.experiment.as_str()),
            plain(&bundle.ledger),
            bundle.through_seq
        ),
    );
    put(&mut out, &format!("Bundle {}.", bundle.digest().to_hex()));
    for of in &bundle.parts {
        part(&mut out, of);
    }
    put(&mut out, "\n## Entries\n");
    put(&mut out, "| entry | kind | recorded at | signed by | id |");
    put(&mut out, "|---:|---|---|---|---|");
    for entry in &bundle.events {
        put(
            &mut out,
            &format!(
                "| {} | {} | {} | {} | {} |",
                entry.seq,
                plain(entry.kind),
                entry.recorded_at,
                plain(&entry.holder),
                entry.id
            ),
        );
    }
    out
}

fn part(out: &mut String, part: &Part) {
    put(out, &format!("\n## {}\n", part.title));
    put(out, &plain(part.about));
    if !part.facts.is_empty() {
        put(out, "");
    }
    for fact in &part.facts {
        put(
            out,
            &format!(
                "- {}: {} ({})",
                plain(fact.title),
                plain(&shown::alone(&fact.value)),
                refs(&fact.events)
            ),
        );
    }
    for of in &part.tables {
        table(out, of);
    }
    for listing in &part.listings {
        put(
            out,
            &format!(
                "\n### {} ({})\n",
                plain(&listing.title),
                refs(&listing.events)
            ),
        );
        // An indented block ends only where its indent does.
        for line in listing.text.trim_end().split('\n') {
            let clean: String = line
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            put(out, format!("    {clean}").trim_end());
        }
    }
    if !part.missing.is_empty() {
        put(out, "\nNot shown:\n");
    }
    for gap in &part.missing {
        put(out, &format!("- {}: {}", plain(&gap.what), plain(&gap.why)));
    }
}

fn table(out: &mut String, table: &Table) {
    put(out, &format!("\n### {}\n", plain(&table.title)));
    let heads: Vec<String> = table.columns.iter().map(|of| plain(of.head)).collect();
    put(out, &format!("| {} | entry |", heads.join(" | ")));
    put(out, &format!("|{}", "---|".repeat(heads.len() + 1)));
    let digits: Vec<usize> = (0..heads.len())
        .map(|at| shown::digits(&table.rows, at))
        .collect();
    for row in &table.rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .zip(&digits)
            .map(|(cell, digits)| plain(&shown::cell(cell, *digits)))
            .collect();
        put(
            out,
            &format!("| {} | {} |", cells.join(" | "), refs(&row.events)),
        );
    }
}
