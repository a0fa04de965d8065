//! What each criterion says of each candidate, at a glance: a mark for each, which leads to its entry. Few candidates stand
//! beside one another, so that a telephone shows every mark; many stand below one another.

use std::fmt::Write as _;

use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;

use crate::forest::escaped;
use crate::page::broken;
use crate::page::cell;
use crate::shown;

/// Candidates that a telephone shows beside one another.
const BESIDE: usize = 2;

/// The columns of a table that make a matrix.
struct Matrix<'t> {
    table: &'t Table,
    name: usize,
    head: (usize, usize),
    value: usize,
}

fn text(row: &TableRow, at: usize) -> String {
    row.cells.get(at).map_or(String::new(), shown::alone)
}

/// What rows say in a column, each once, in their order.
fn distinct(table: &Table, at: usize) -> Vec<String> {
    let mut out = Vec::new();
    for row in &table.rows {
        let found = text(row, at);
        if !out.contains(&found) {
            out.push(found);
        }
    }
    out
}

impl Matrix<'_> {
    /// The mark of a candidate under a criterion and a split.
    fn mark(&self, name: &str, gate: &str, split: &str) -> String {
        let is_it = |row: &&TableRow| {
            text(row, self.name) == name
                && text(row, self.head.0) == gate
                && text(row, self.head.1) == split
        };
        self.table.rows.iter().find(is_it).map_or_else(
            || "<td>–</td>".to_owned(),
            |row| {
                let seq = row.events.first().copied().unwrap_or_default();
                let word = row.cells.get(self.value).map(|of| cell(of, 0));
                format!(
                    "<td><a href=\"#e{seq}\">{}</a></td>",
                    word.unwrap_or_default()
                )
            },
        )
    }

    /// Criteria and splits that occur together, in their order.
    fn heads(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for row in &self.table.rows {
            let head = (text(row, self.head.0), text(row, self.head.1));
            if !out.contains(&head) {
                out.push(head);
            }
        }
        out
    }

    fn first(&self, at: usize) -> String {
        let head = shown::words(self.table.columns[at].head);
        format!("<thead><tr><th scope=\"col\">{head}</th>")
    }

    /// A row a criterion, a column each candidate and split.
    fn beside(&self) -> String {
        let (names, gates) = (
            distinct(self.table, self.name),
            distinct(self.table, self.head.0),
        );
        let splits = distinct(self.table, self.head.1);
        let columns = || {
            names
                .iter()
                .flat_map(|name| splits.iter().map(move |split| (name, split)))
        };
        let mut out = self.first(self.head.0);
        for (name, split) in columns() {
            let (name, split) = (broken(name), escaped(split));
            put(
                &mut out,
                &format!("<th scope=\"col\">{name}<br>{split}</th>"),
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for gate in &gates {
            let marks = columns().map(|(name, split)| self.mark(name, gate, split));
            row(&mut out, gate, &marks.collect::<String>());
        }
        out
    }

    /// A row a candidate, a column each criterion and split.
    fn below(&self) -> String {
        let heads = self.heads();
        let mut out = self.first(self.name);
        for (gate, split) in &heads {
            let (gate, split) = (escaped(gate), escaped(split));
            put(
                &mut out,
                &format!("<th scope=\"col\">{gate}<br>{split}</th>"),
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for name in distinct(self.table, self.name) {
            let marks = heads
                .iter()
                .map(|(gate, split)| self.mark(&name, gate, split));
            row(&mut out, &name, &marks.collect::<String>());
        }
        out
    }
}

fn put(out: &mut String, text: &str) {
    write!(out, "{text}").expect("BUG: a String takes every write");
}

fn row(out: &mut String, head: &str, marks: &str) {
    let head = broken(head);
    put(
        out,
        &format!("<tr><th scope=\"row\">{head}</th>{marks}</tr>\n"),
    );
}

/// The head and the body of the matrix.
pub(crate) fn markup(table: &Table, name: usize, head: (usize, usize), value: usize) -> String {
    let matrix = Matrix {
        table,
        name,
        head,
        value,
    };
    let rows = if distinct(table, name).len() <= BESIDE {
        matrix.beside()
    } else {
        matrix.below()
    };
    format!("{rows}</tbody>\n")
}

#[cfg(test)]
mod tests {
    use clover_event::payload::Verdict;
    use clover_projection::bundle::Cell;

    use super::*;

    fn table(names: &[&str]) -> Table {
        let columns = [
            ("c", "candidate"),
            ("gate", "criterion"),
            ("split", "on"),
            ("v", "verdict"),
        ];
        let mut of = Table::new("t", "Title", &columns);
        for (at, name) in (1..).zip(names) {
            let cells = ["P1", "dev"].map(Cell::text);
            let mut row = vec![Cell::text(*name)];
            row.extend(cells);
            row.push(Cell::Verdict(Verdict::Pass));
            of.row(at, row);
        }
        of
    }

    #[test]
    fn few_candidates_stand_beside_one_another_and_many_below() {
        let few = markup(&table(&["a", "b"]), 0, (1, 2), 3);
        assert!(few.contains("<th scope=\"row\">P1</th>"), "{few}");
        assert_eq!(few.matches("<tr>").count(), 2, "{few}");
        let many = markup(&table(&["a", "b", "c"]), 0, (1, 2), 3);
        assert!(many.contains("<th scope=\"row\">c</th>"), "{many}");
        assert_eq!(many.matches("<tr>").count(), 4, "{many}");
        for text in [few, many] {
            assert!(
                text.contains("<td><a href=\"#e1\"><span class=\"v pass\">"),
                "{text}"
            );
        }
    }
}
