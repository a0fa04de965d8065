//! A view as one page of HTML: no script, nothing from outside, readable in light, dark and on paper.

use std::fmt::Write as _;

use crate::report::forest::escaped;
use crate::report::page as report;
use crate::view::Block;
use crate::view::View;

/// The blocks of a view as a page under a title.
pub fn page(title: &str, view: &View) -> String {
    let mut out = report::top(&format!("{title} - Clover"), "");
    let title = escaped(title);
    out.push_str(&format!(
        "\n<body>\n<a class=\"skip\" href=\"#main\">To the answer</a>\n\
         <header>\n<p class=\"kicker\">Clover</p>\n<h1>{title}</h1>\n</header>\n<main id=\"main\">\n"
    ));
    out.push_str(&fragment(view));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// The blocks of a view as elements, for a page that has a head of its own.
pub fn fragment(view: &View) -> String {
    let mut out = String::new();
    for block in &view.blocks {
        put(&mut out, block);
    }
    if !view.next.is_empty() {
        let next = escaped_lines(&view.next.join("\n"));
        element(&mut out, &format!("<p>Next:</p>\n<pre>{next}</pre>"));
    }
    out
}

fn put(out: &mut String, block: &Block) {
    match block {
        Block::Line(line) | Block::Sentence(line) => {
            element(out, &format!("<p>{}</p>", escaped(line)));
        }
        Block::Answer(answer) => {
            element(out, &format!("<p><strong>{}</strong></p>", escaped(answer)));
        }
        Block::Facts { pairs, .. } => {
            element(out, "<dl>");
            for (label, value) in pairs {
                let (label, value) = (escaped(label), escaped(value));
                element(out, &format!("<dt>{label}</dt><dd>{value}</dd>"));
            }
            element(out, "</dl>");
        }
        Block::Table { head, rows } => table(out, head, rows),
        Block::Source(source) => element(out, &format!("<pre>{}</pre>", escaped_lines(source))),
        // The drawing escapes what it shows.
        Block::Chart { svg: Some(svg), .. } => element(out, &format!("<figure>{svg}</figure>")),
        Block::Chart {
            lines, svg: None, ..
        } => {
            element(
                out,
                &format!("<pre>{}</pre>", escaped_lines(&lines.join("\n"))),
            );
        }
        Block::Verdict { word, good, rest } => {
            let class = if *good { "pass" } else { "fail" };
            let (word, rest) = (escaped(word), escaped(rest));
            element(
                out,
                &format!("<p><span class=\"v {class}\">{word}</span>{rest}</p>"),
            );
        }
        Block::Gap => {}
    }
}

fn element(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("BUG: a String takes every write");
}

/// Escaped text that keeps its line breaks.
fn escaped_lines(text: &str) -> String {
    let lines: Vec<_> = text
        .trim_end_matches('\n')
        .split('\n')
        .map(escaped)
        .collect();
    lines.join("\n")
}

fn table(out: &mut String, head: &[impl AsRef<str>], rows: &[Vec<String>]) {
    let is_numeric = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        let number = |cell: &String| {
            let digits = cell
                .trim_start_matches(['+', '-', '−'])
                .replace([',', '.', ' ', '%'], "");
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
        };
        !rows.is_empty() && cells.all(|cell| cell == "-" || number(cell))
    };
    let class = |column: usize| {
        if is_numeric(column) {
            " class=\"n\""
        } else {
            ""
        }
    };
    element(out, "<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, name) in head.iter().enumerate() {
        let (class, name) = (class(column), escaped(name.as_ref()));
        element(out, &format!("<th scope=\"col\"{class}>{name}</th>"));
    }
    element(out, "</tr></thead>\n<tbody>");
    for row in rows {
        let cells = row.iter().enumerate();
        let cells =
            cells.map(|(column, cell)| format!("<td{}>{}</td>", class(column), escaped(cell)));
        element(out, &format!("<tr>{}</tr>", cells.collect::<String>()));
    }
    element(out, "</tbody>\n</table></div>");
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_others_wrote_is_text_on_a_page() {
        let mut view = View::of(&Value::Null).with_next("clover show '<b>'");
        view.line("<script>alert(1)</script>");
        view.pairs([("<i>", "\u{202e}</dd>".to_owned())]);
        view.table(
            &["n", "word"],
            [vec!["1,200".to_owned(), "</table>".to_owned()]],
        );
        view.source("<pre>\n</pre>");
        view.blocks.push(Block::Verdict {
            word: "FAILED".into(),
            good: false,
            rest: " <br>".to_owned(),
        });
        let page = page("<title>", &view);
        for (raw, times) in [
            ("<script", 0),
            ("<i>", 0),
            ("</dd>", 1),
            ("</table>", 1),
            ("<pre>", 2),
            ("<b>", 0),
            ("<br>", 0),
            ("</title>", 1),
            ("\u{202e}", 0),
        ] {
            assert_eq!(page.matches(raw).count(), times, "{raw} in {page}");
        }
        assert!(page.contains("<td class=\"n\">1,200</td>"), "{page}");
        assert!(
            page.contains("<span class=\"v fail\">FAILED</span> &lt;br&gt;"),
            "{page}"
        );
    }
}
