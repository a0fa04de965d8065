//! Rows of a table as a tree, each below the row that it was made of; the table stays beside it.

use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Table;

use crate::forest::escaped;
use crate::shown;

/// Width of the drawing.
const WIDTH: usize = 640;
/// Height of a row.
const ROW: usize = 30;
/// How far a row stands to the right of what it was made of, and how many steps of this there may be.
const INDENT: usize = 22;
const DEPTH_MAX: usize = 8;
/// Where the first row begins.
const TOP: usize = 60;
/// Most characters of what a row is.
const ABOUT_MAX: usize = 32;

/// A row with its place in the tree.
struct TreeRow {
    /// Its place in the table.
    at: usize,
    /// Rows between it and a root.
    depth: usize,
    /// Place in the drawing of the row that it was made of.
    above: Option<usize>,
}

/// The rows in the order in which they are drawn: each before what was made of it. A row whose origin is not an earlier row is a
/// root, so that no circle of names loops.
fn ordered(table: &Table, node: usize, parent: usize) -> Vec<TreeRow> {
    let origin = |at: usize| {
        let name = table.rows[at].cells.get(parent)?;
        let earlier = table.rows[..at].iter();
        let mut earlier = earlier.map(|row| row.cells.get(node));
        earlier.position(|of| of == Some(name) && *name != Cell::Absent)
    };
    let origins: Vec<Option<usize>> = (0..table.rows.len()).map(origin).collect();
    let below = |of: Option<usize>| {
        let all = origins.iter().enumerate().rev();
        all.filter(move |(_, origin)| **origin == of)
            .map(|(at, _)| at)
    };
    let mut drawn: Vec<TreeRow> = Vec::new();
    let mut next: Vec<(usize, usize, Option<usize>)> =
        below(None).map(|at| (at, 0, None)).collect();
    while let Some((at, depth, above)) = next.pop() {
        let here = drawn.len();
        drawn.push(TreeRow { at, depth, above });
        next.extend(below(Some(at)).map(|of| (of, depth + 1, Some(here))));
    }
    drawn
}

fn x(depth: usize) -> usize {
    24 + INDENT * depth.min(DEPTH_MAX)
}

fn y(place: usize) -> usize {
    TOP + ROW * place
}

/// A drawing of a table of rows that were made of each other; `None` without any.
pub(super) fn svg(table: &Table, plot: Plot) -> Option<String> {
    let Plot::Tree {
        node,
        parent,
        about,
        score,
        mark,
    } = plot
    else {
        return None;
    };
    let rows = ordered(table, node, parent);
    if rows.is_empty() {
        return None;
    }
    let title = escaped(&shown::words(&table.title));
    let height = y(rows.len());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{title}</text>\n",
    );
    let digits = shown::digits(&table.rows, score);
    for (place, row) in rows.iter().enumerate() {
        let (x, y) = (x(row.depth), y(place));
        if let Some(above) = row.above {
            let (from, start) = (self::x(rows[above].depth), self::y(above) + 6);
            out.push_str(&format!(
                "<path d=\"M{from} {start} V{y} H{}\" fill=\"none\" stroke=\"#5b6470\"/>\n",
                x - 6
            ));
        }
        let text = |column: usize, most: usize| {
            let of = table.rows[row.at].cells.get(column);
            let of = of.filter(|of| **of != Cell::Absent);
            let of = of.map_or_else(String::new, |of| shown::cell(of, digits));
            let cut: String = of.chars().take(most).collect();
            escaped(&cut)
        };
        let marked = text(mark, ABOUT_MAX);
        let fill = if marked.is_empty() {
            "#ffffff"
        } else {
            "#1f5fa8"
        };
        out.push_str(&format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"6\" fill=\"{fill}\" stroke=\"#1f5fa8\"/>\
             <text x=\"{0}\" y=\"{1}\"><tspan font-weight=\"600\">{2}</tspan> {3}</text>\
             <text x=\"{4}\" y=\"{1}\" text-anchor=\"end\">{5} <tspan font-weight=\"600\">{marked}</tspan></text>\n",
            x + 12,
            y + 5,
            text(node, ABOUT_MAX),
            text(about, ABOUT_MAX),
            WIDTH - 16,
            text(score, ABOUT_MAX),
        ));
    }
    out.push_str("</svg>\n");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str)]) -> Table {
        let columns = [
            ("node", "node"),
            ("parent", "parent"),
            ("about", "about"),
            ("score", "score"),
            ("mark", "mark"),
        ];
        let mut table = Table::new("tree", "A <tree>", &columns);
        for (node, parent) in rows {
            let parent = if parent.is_empty() {
                Cell::Absent
            } else {
                Cell::text(*parent)
            };
            let cells = vec![
                Cell::text(*node),
                parent,
                Cell::text("é".repeat(90)),
                Cell::number(0.5),
                Cell::Absent,
            ];
            table.row(0, cells);
        }
        table
    }

    const TREE: Plot = Plot::Tree {
        node: 0,
        parent: 1,
        about: 2,
        score: 3,
        mark: 4,
    };

    #[test]
    fn each_row_stands_below_what_it_was_made_of() {
        let table = table(&[("a", ""), ("b", ""), ("c", "a"), ("d", "c"), ("e", "a")]);
        let found = ordered(&table, 0, 1);
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.at, row.depth, row.above))
            .collect();
        let expected = [
            (0, 0, None),
            (2, 1, Some(0)),
            (3, 2, Some(1)),
            (4, 1, Some(0)),
            (1, 0, None),
        ];
        assert_eq!(found, expected);
        let svg = svg(&table, TREE).unwrap();
        assert_eq!(svg.matches("<circle").count(), 5);
        assert!(svg.contains("A &lt;tree&gt;") && !svg.contains("<tree>"));
    }

    #[test]
    fn names_in_a_circle_are_drawn_once() {
        let table = table(&[("a", "b"), ("b", "a"), ("c", "c")]);
        assert_eq!(ordered(&table, 0, 1).len(), 3);
        assert!(svg(&self::table(&[]), TREE).is_none());
    }
}
