//! A table in so many columns: side by side where it fits, with cells broken between words where they fit so, else row by row.

use comfy_table::ColumnConstraint;
use comfy_table::ContentArrangement;
use comfy_table::Table;
use comfy_table::Width;

use crate::view::text::Screen;
use crate::view::text::escape;
use crate::view::text::flow;

/// Columns that stand between two cells.
const GAP: usize = 2;

/// Characters of the longest of these.
fn longest<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// A table without rules, on a screen.
pub(super) fn table<L: AsRef<str>>(head: &[L], rows: &[Vec<String>], screen: Screen) -> String {
    let head: Vec<String> = head
        .iter()
        .map(|label| escape(label.as_ref()).into_owned())
        .collect();
    let cells = |row: &Vec<String>| row.iter().map(|cell| escape(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    // Of each column the longest word: no cell may be narrower.
    let words: Vec<usize> = (0..head.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).chain([&head[at]]);
            longest(cells.flat_map(|cell| cell.split(' ')))
        })
        .collect();
    let cells: Vec<usize> = (0..head.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).chain([&head[at]]);
            longest(cells.map(String::as_str))
        })
        .collect();
    let widest: usize = cells.iter().map(|width| width + GAP).sum();
    let narrowest: usize = words.iter().map(|width| width + GAP).sum();
    // In a terminal the gap beside the last cell may hang over.
    let columns = match screen {
        Screen::Pipe => screen.columns(),
        Screen::Terminal(_) => screen.columns() + GAP,
    };
    if widest <= columns {
        return side_by_side(&head, &rows, None);
    }
    if narrowest <= columns {
        return side_by_side(&head, &rows, Some((&words, columns)));
    }
    match screen {
        Screen::Pipe => side_by_side(&head, &rows, None),
        Screen::Terminal(_) => row_by_row(&head, &rows, screen),
    }
}

/// Cells beside one another; in so many columns and no cell narrower than its longest word, or as wide as they are.
fn side_by_side(
    head: &[String],
    rows: &[Vec<String>],
    within: Option<(&[usize], usize)>,
) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(head);
    for row in rows {
        table.add_row(row);
    }
    match within {
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        Some((words, columns)) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
            for (column, word) in table.column_iter_mut().zip(words) {
                let least = u16::try_from(word + GAP).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
    }
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end().strip_prefix(' ').unwrap_or(&line));
        out.push('\n');
    }
    out
}

/// One cell a line, each behind the name of its column; an empty line between rows.
fn row_by_row(head: &[String], rows: &[Vec<String>], screen: Screen) -> String {
    let label = longest(head.iter().map(String::as_str)) + GAP;
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            let cell = flow(cell, (label, label), screen.columns());
            out.push_str(&format!("{name:label$}{cell}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [&str; 4] = ["name", "what it is for", "entries", "root"];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row([
                "calib",
                "labels on which the calibrator is fitted",
                "480",
                "0123456789abcdef0123",
            ]),
            row([
                "probes",
                "labels that test it",
                "20",
                "fedcba9876543210fedc",
            ]),
        ]
    }

    #[test]
    fn where_it_fits_cells_stand_side_by_side() {
        let wide = "\
name    what it is for                            entries  root
calib   labels on which the calibrator is fitted  480      0123456789abcdef0123
probes  labels that test it                       20       fedcba9876543210fedc
";
        for columns in [80, 120] {
            assert_eq!(table(&HEAD, &rows(), Screen::Terminal(columns)), wide);
        }
        assert_eq!(table(&HEAD, &rows(), Screen::Pipe), wide);
    }

    #[test]
    fn in_fewer_columns_cells_are_broken_between_words() {
        let broken = "\
name    what it is for         entries  root
calib   labels on which the    480      0123456789abcdef0123
        calibrator is fitted
probes  labels that test it    20       fedcba9876543210fedc
";
        assert_eq!(table(&HEAD, &rows(), Screen::Terminal(60)), broken);
    }

    #[test]
    fn where_no_word_fits_rows_stand_one_below_another() {
        let apart = "\
name            calib
what it is for  labels on which the
                calibrator is fitted
entries         480
root            0123456789abcdef0123

name            probes
what it is for  labels that test it
entries         20
root            fedcba9876543210fedc
";
        assert_eq!(table(&HEAD, &rows(), Screen::Terminal(40)), apart);
    }

    #[test]
    fn in_a_pipe_nothing_is_broken_within_a_word_or_left_out() {
        let hash = "0123456789abcdef".repeat(4);
        let row = vec!["a".to_owned(), hash.clone(), hash.clone(), "b".to_owned()];
        let text = table(&HEAD, &[row], Screen::Pipe);
        assert_eq!(text.matches(&hash).count(), 2, "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
