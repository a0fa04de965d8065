//! A report as Markdown that a terminal of 100 columns shows as it is: tables with their columns
//! aligned, wide ones in pieces, those of long texts as lists; the entries of each row; texts in blocks.

use std::fmt::Write as _;

use clover_ground::name::is_unsafe;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Fact;
use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;

use crate::document::Chapter;
use crate::document::Document;
use crate::shown;

/// Columns of a terminal.
const COLUMNS: usize = 100;
/// Entries that a row names before it says how many more there are.
const REFS: usize = 4;
/// Hex digits that are shown of an entry's id.
const ID: usize = 16;

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("BUG: a String takes every write");
}

/// Text on one line in which nothing is markup.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text) {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&'
            | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// The characters of a text on one line: a line end is a blank, and what nobody sees is shown as `\u{202e}`.
pub fn visible(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|c| {
        let (own, code) = match c {
            '\t' | '\n' | '\r' => (Some(' '), None),
            c if is_unsafe(c) => (None, Some(c.escape_default())),
            c => (Some(c), None),
        };
        own.into_iter().chain(code.into_iter().flatten())
    })
}

/// A word that would begin a list if a line began with it.
fn begins_a_list(word: &str) -> bool {
    let number = word.trim_end_matches(['.', ')']);
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    matches!(word, "-" | "+" | "=") || (is_number && number.len() < word.len())
}

/// Words in lines of at most 100 columns, from the second on behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        // A chain that no line holds is broken behind its links.
        let is_long = word.chars().count() + indent.len() > COLUMNS;
        let links = word.split_inclusive(move |c| is_long && c == '+');
        for (at, link) in links.enumerate() {
            let width = link.chars().count();
            let gap = usize::from(at == 0 && column > 0);
            if column > 0 && column + gap + width > COLUMNS && !begins_a_list(link) {
                out.push('\n');
                out.push_str(indent);
                column = indent.len();
            } else if gap == 1 {
                out.push(' ');
                column += 1;
            }
            out.push_str(link);
            column += width;
        }
    }
    out
}

fn refs(events: &[u64]) -> String {
    let shown = events.iter().take(REFS);
    let mut words: Vec<String> = shown.map(|seq| format!("#{seq}")).collect();
    if events.len() > REFS {
        words.push(format!("+{}", events.len() - REFS));
    }
    words.join(" ")
}

/// The whole report.
pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    let head = &document.head;
    put(
        &mut out,
        &format!("# {}: {}\n", document.kind.of(), plain(&document.title)),
    );
    let said = [head.answer.as_str()].into_iter();
    let said = said.chain(head.rest.iter().map(String::as_str));
    let said: Vec<_> = said.map(plain).collect();
    put(&mut out, &wrapped(&said.join(" "), ""));
    put(
        &mut out,
        &format!("\n{}\n", wrapped(&plain(&head.period), "")),
    );
    let line = format!(
        "Ledger {}, entries {} to {}. Numbers after # are entries; the last part lists them.",
        plain(&document.ledger),
        document.from_seq,
        document.through_seq
    );
    put(&mut out, &wrapped(&line, ""));
    if let Some(drawn) = document.drawn() {
        put(&mut out, &wrapped(&drawn, ""));
    }
    put(&mut out, "");
    facts(&mut out, &document.facts);
    course(&mut out, document);
    for of in &document.parts {
        part(&mut out, of);
    }
    for of in &document.appendices {
        part(&mut out, of);
    }
    entries(&mut out, document);
    put(&mut out, "\n## What this proves, and what it does not\n");
    for limit in &document.limits {
        put(&mut out, &wrapped(&format!("- {}", plain(limit)), "  "));
    }
    out
}

/// Who did what, and what came of it.
fn course(out: &mut String, document: &Document) {
    let head = &document.head;
    if head.people.is_some() || !head.separation.is_empty() {
        put(out, &format!("\n## {}\n", head.people_title()));
    }
    for remark in &head.separation {
        let line = format!("- {} ({})", plain(&remark.text), refs(&remark.events));
        put(out, &wrapped(&line, "  "));
    }
    if let Some(people) = &head.people {
        table(out, people);
    }
    if let Some(since) = &head.since {
        put(out, "\n## What happened since\n");
        if since.rows.is_empty() {
            put(
                out,
                "Nothing on record, up to the last entry that was read.",
            );
        } else {
            table(out, since);
        }
    }
}

fn facts(out: &mut String, all: &[Fact]) {
    for fact in all {
        let line = format!(
            "- {}: {} ({})",
            plain(fact.title),
            plain(&shown::fact(fact.key, &fact.value)),
            refs(&fact.events)
        );
        put(out, &wrapped(line.trim_end_matches(" ()"), "  "));
    }
}

fn entries(out: &mut String, document: &Document) {
    put(out, "\n## Entries\n");
    let line = "The signed entries that this report rests on, each with the first digits of its id: `clover show N` has \
                the rest. A cell that ends in … is cut: the same command has the whole of its entry.";
    put(out, &wrapped(line, ""));
    put(out, "");
    let heads = ["entry", "kind", "recorded at", "signed by", "id"].map(str::to_owned);
    let rows = document.entries.iter().map(|entry| {
        let at = entry.recorded_at.to_string();
        let id = entry.id.to_string();
        vec![
            entry.seq.to_string(),
            plain(entry.kind),
            at.chars().take(19).collect(),
            plain(&entry.holder),
            id.chars().take(ID).collect(),
        ]
    });
    let grid = Grid {
        heads: heads.to_vec(),
        rows: rows.collect(),
    };
    let all: Vec<usize> = (0..grid.heads.len()).collect();
    grid.put(out, &all);
}

fn part(out: &mut String, part: &Chapter) {
    put(
        out,
        &format!("\n## {}\n", plain(&shown::words(&part.title))),
    );
    if !part.about.is_empty() {
        put(out, &wrapped(&plain(&shown::words(&part.about)), ""));
    }
    if !part.facts.is_empty() {
        put(out, "");
    }
    facts(out, &part.facts);
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
            let clean: String = visible(line).collect();
            put(out, format!("    {clean}").trim_end());
        }
    }
    if !part.missing.is_empty() {
        put(out, "\nNot shown:\n");
    }
    for gap in &part.missing {
        let line = format!(
            "- {}: {}",
            plain(&shown::words(&gap.what)),
            plain(&shown::words(&gap.why))
        );
        put(out, &wrapped(&line, "  "));
    }
}

/// Texts by row and column.
struct Grid {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells
            .max()
            .unwrap_or(0)
            .max(self.heads[column].chars().count())
            .max(3)
    }

    /// Columns that a table of some columns takes on a line.
    fn across(&self, columns: &[usize]) -> usize {
        let inner: usize = columns.iter().map(|column| self.width(*column) + 3).sum();
        inner + 1
    }

    /// The table of some columns.
    fn put(&self, out: &mut String, columns: &[usize]) {
        let line = |cells: &[String]| {
            let padded = columns.iter().map(|column| {
                let width = self.width(*column);
                format!("{:width$}", cells[*column])
            });
            format!("| {} |", padded.collect::<Vec<_>>().join(" | "))
        };
        put(out, &line(&self.heads));
        let rules = columns
            .iter()
            .map(|column| "-".repeat(self.width(*column) + 2));
        put(out, &format!("|{}|", rules.collect::<Vec<_>>().join("|")));
        for row in &self.rows {
            put(out, &line(row));
        }
    }

    /// Columns in pieces that fit, the first `labels` in each; `None` where one does not.
    fn pieces(&self, labels: usize) -> Option<Vec<Vec<usize>>> {
        let lead: Vec<usize> = (0..labels).collect();
        let mut pieces: Vec<Vec<usize>> = vec![lead.clone()];
        for column in labels..self.heads.len() {
            let mut wider = pieces.pop()?;
            wider.push(column);
            if self.across(&wider) <= COLUMNS {
                pieces.push(wider);
                continue;
            }
            wider.pop();
            pieces.push(wider);
            let mut next = lead.clone();
            next.push(column);
            if self.across(&next) > COLUMNS {
                return None;
            }
            pieces.push(next);
        }
        Some(pieces)
    }
}

/// A cell that says what its row is about.
fn names(cell: &Cell) -> bool {
    matches!(cell, Cell::Text(_) | Cell::Count(_))
}

fn table(out: &mut String, table: &Table) {
    put(
        out,
        &format!(
            "\n{}\n",
            wrapped(
                &format!("### {}", plain(&shown::words(&table.title))),
                "    "
            )
        ),
    );
    let digits: Vec<usize> = (0..table.columns.len())
        .map(|at| shown::digits(&table.rows, at))
        .collect();
    let cells = |row: &TableRow| -> Vec<String> {
        let texts = row.cells.iter().zip(&digits);
        let mut texts: Vec<String> = texts
            .map(|(cell, digits)| plain(&shown::cell(cell, *digits)))
            .collect();
        texts.push(refs(&row.events));
        texts
    };
    let heads = table.columns.iter().map(|of| plain(&shown::words(of.head)));
    let grid = Grid {
        heads: heads.chain(["entry".to_owned()]).collect(),
        rows: table.rows.iter().map(cells).collect(),
    };
    let all: Vec<usize> = (0..grid.heads.len()).collect();
    if grid.across(&all) <= COLUMNS {
        return grid.put(out, &all);
    }
    // As many leading columns as it takes to tell rows apart, of those that are names.
    let leading = table.columns.len().min(3);
    let named = |at: &usize| {
        table
            .rows
            .iter()
            .all(|row| row.cells.get(*at).is_some_and(names))
    };
    let most = (0..leading).take_while(named).count().max(1);
    let apart = |labels: &usize| {
        let mut of: Vec<&[String]> = grid.rows.iter().map(|row| &row[..*labels]).collect();
        of.sort_unstable();
        of.windows(2).all(|two| two[0] != two[1])
    };
    let labels = (1..=most).find(apart).unwrap_or(most);
    match grid.pieces(labels) {
        Some(pieces) => {
            for (at, piece) in pieces.iter().enumerate() {
                if at > 0 {
                    put(out, "");
                }
                grid.put(out, piece);
            }
        }
        None => list(out, &grid),
    }
}

/// Rows as items of a list, for texts that no column holds.
fn list(out: &mut String, grid: &Grid) {
    for row in &grid.rows {
        let last = row.len() - 1;
        let mut line = format!("- {}", row[0]);
        let rest = row.iter().zip(&grid.heads).take(last).skip(1);
        for (cell, head) in rest.filter(|(cell, _)| !matches!(cell.as_str(), "" | "–")) {
            write!(line, "; {head}: {cell}").expect("BUG: a String takes every write");
        }
        if !row[last].is_empty() {
            write!(line, " ({})", row[last]).expect("BUG: a String takes every write");
        }
        put(out, &wrapped(&line, "  "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(columns: &[(&'static str, &'static str)], rows: &[&[&str]]) -> String {
        let mut of = Table::new("t", "Title", columns);
        for (at, row) in (7..).zip(rows) {
            of.row(at, row.iter().map(|text| Cell::text(*text)).collect());
        }
        let mut out = String::new();
        table(&mut out, &of);
        out
    }

    #[test]
    fn a_table_that_fits_is_aligned() {
        let text = rendered(
            &[("a", "name"), ("b", "says")],
            &[&["x", "1"], &["longer", "a|b"]],
        );
        let expected = "\n### Title\n\n\
                        | name   | says | entry |\n\
                        |--------|------|-------|\n\
                        | x      | 1    | #7    |\n\
                        | longer | a\\|b | #8    |\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wide_table_comes_in_pieces_that_say_of_what() {
        let wide = "w".repeat(40);
        let columns = [("a", "name"), ("b", "one"), ("c", "two"), ("d", "three")];
        let text = rendered(
            &columns,
            &[&["x", &wide, &wide, &wide], &["y", &wide, &wide, &wide]],
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
        assert_eq!(text.matches("| x ").count(), 2, "{text}");
        assert_eq!(text.matches("#7").count(), 1, "{text}");
    }

    #[test]
    fn what_no_column_holds_is_a_list() {
        let long = "word ".repeat(40);
        let columns = [("a", "name"), ("b", "says")];
        let text = rendered(&columns, &[&["x", long.trim()]]);
        assert!(text.contains("\n- x; says: word word"), "{text}");
        assert!(text.trim_end().ends_with("(#7)"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
    }

    #[test]
    fn a_chain_longer_than_a_line_is_broken_behind_its_links() {
        let link = "w".repeat(45);
        let text = wrapped(&format!("- {link}+{link}+{link}; seeds: 3"), "  ");
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
        assert_eq!(
            text.replace("\n  ", ""),
            format!("- {link}+{link}+{link}; seeds: 3")
        );
        // Spaces between words stay; a short chain is left as it is.
        assert_eq!(wrapped("a+b c", ""), "a+b c");
    }

    #[test]
    fn no_line_begins_a_list_by_accident() {
        let text = format!("{} - and 3. on", "w".repeat(98));
        assert!(
            !wrapped(&text, "")
                .lines()
                .skip(1)
                .any(|line| line.starts_with(['-', '3']))
        );
    }
}
