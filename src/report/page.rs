//! The report of an iteration as one page: no script, nothing from outside, readable in light, dark and on paper.
//!
//! Every number stands beside links to the entries that say it; they lead to the list at the foot, where each entry
//! has its id, its signer and its time. Text that people wrote is escaped wherever it stands.

use std::fmt::Write as _;

use clover_projection::bundle::Bundle;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Fact;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;

use crate::forest::escaped;
use crate::lead;
use crate::plot;
use crate::shown;

/// How pages look.
pub const STYLE: &str = include_str!("style.css");
/// Characters from which a text column is kept wide.
const WORDY: usize = 24;
/// Entries that a row names before it says how many more there are.
const REFS: usize = 4;

/// The whole page.
pub fn html(bundle: &Bundle) -> String {
    let mut out = Page(String::with_capacity(64 << 10));
    let title = format!("Iteration {}", bundle.iteration);
    out.put(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - Clover report</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<a class=\"skip\" href=\"#main\">To the report</a>",
        escaped(&title)
    ));
    out.header(bundle);
    out.put("<main id=\"main\">");
    for part in &bundle.parts {
        out.part(part);
    }
    out.entries(bundle);
    out.put("</main>");
    out.footer(bundle);
    out.put("</body>\n</html>");
    out.0
}

/// Links to entries.
fn refs(events: &[u64]) -> String {
    let mut out = String::new();
    for seq in events.iter().take(REFS) {
        write!(out, "<a href=\"#e{seq}\">{seq}</a> ").expect("BUG: a String takes every write");
    }
    if events.len() > REFS {
        let rest = &events[REFS..];
        let last = rest.last().copied().unwrap_or_default();
        write!(out, "<a href=\"#e{last}\">+{}</a>", rest.len())
            .expect("BUG: a String takes every write");
    }
    out.trim_end().to_owned()
}

/// A cell as markup.
fn cell(cell: &Cell, digits: usize) -> String {
    let text = shown::cell(cell, digits);
    match cell {
        Cell::Verdict(verdict) => {
            let class = text.replace(' ', "_");
            format!("<span class=\"v {class}\">{}</span>", shown::word(*verdict))
        }
        Cell::Digest(digest) => format!("<code title=\"{}\">{text}</code>", digest.to_hex()),
        Cell::Number(number) => format!("<data value=\"{number}\">{text}</data>"),
        _ => escaped(&text),
    }
}

fn is_numeric(cell: &Cell) -> bool {
    matches!(cell, Cell::Count(_) | Cell::Interval(..) | Cell::Number(_))
}

/// How a column is set: numbers to the right, long texts wide.
fn class(table: &Table, column: usize) -> &'static str {
    let cells = || table.rows.iter().filter_map(|row| row.cells.get(column));
    if cells().any(is_numeric) {
        return " class=\"n\"";
    }
    let longest = cells().map(|cell| match cell {
        Cell::Text(text) => text.chars().count(),
        _ => 0,
    });
    match longest.max().unwrap_or(0) {
        0..=WORDY => "",
        25..=60 => " class=\"words\"",
        _ => " class=\"words wide\"",
    }
}

struct Page(String);

impl Page {
    fn put(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn header(&mut self, bundle: &Bundle) {
        let said = lead::lead(bundle);
        let rest: Vec<_> = said.rest.iter().map(|text| escaped(text)).collect();
        let lead = format!(
            "<strong>{}</strong> {}",
            escaped(&said.decided),
            rest.join(" ")
        );
        let people = escaped(&said.people);
        self.put(&format!(
            "<header>\n<p class=\"kicker\">Clover report of an iteration</p>\n<h1>{}</h1>\n<p class=\"lead\">{lead}</p>\n\
             <p>{people}</p>\n<dl><dt>Experiment</dt><dd>{}</dd><dt>Ledger</dt><dd>{}</dd><dt>Entries read</dt><dd>0 to {}</dd>\
             <dt>Bundle</dt><dd><code>{}</code></dd></dl>",
            escaped(bundle.iteration.as_str()),
            escaped(bundle.experiment.as_str()),
            escaped(&bundle.ledger),
            shown::thousands(bundle.through_seq),
            bundle.digest().to_hex(),
        ));
        self.put("<nav aria-label=\"Parts\">\n<ol>");
        for part in &bundle.parts {
            let note = match (part.is_present(), part.missing.is_empty()) {
                (false, _) => " <span class=\"part\">(missing)</span>",
                (true, false) => " <span class=\"part\">(in part)</span>",
                (true, true) => "",
            };
            self.put(&format!(
                "<li><a href=\"#{}\">{}</a>{note}</li>",
                part.part,
                shown::words(part.title)
            ));
        }
        self.put("<li><a href=\"#entries\">Entries</a></li>\n</ol>\n</nav>\n</header>");
    }

    fn part(&mut self, part: &Section) {
        let id = part.part;
        self.put(&format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>\n\
             <p class=\"about\">{}</p>",
            shown::words(part.title),
            escaped(&shown::words(part.about))
        ));
        if !part.facts.is_empty() {
            self.put("<dl>");
            for fact in &part.facts {
                self.fact(fact);
            }
            self.put("</dl>");
        }
        for (at, table) in part.tables.iter().enumerate() {
            self.plot(table);
            self.table(table, &format!("{id}-t{at}"));
        }
        for listing in &part.listings {
            self.put(&format!(
                "<h3>{} <span class=\"ref\">{}</span></h3>\n<pre tabindex=\"0\">{}</pre>",
                escaped(&listing.title),
                refs(&listing.events),
                lines(&listing.text),
            ));
        }
        if !part.missing.is_empty() {
            self.put("<div class=\"gap\">\n<p>Not shown</p>\n<ul>");
            for gap in &part.missing {
                let (what, why) = (
                    escaped(&shown::words(&gap.what)),
                    escaped(&shown::words(&gap.why)),
                );
                self.put(&format!("<li><strong>{what}</strong>: {why}</li>"));
            }
            self.put("</ul>\n</div>");
        }
        self.put("</section>");
    }

    fn fact(&mut self, fact: &Fact) {
        let value = match &fact.value {
            Cell::Digest(digest) => format!("<code>{}</code>", digest.to_hex()),
            Cell::Verdict(_) => cell(&fact.value, 0),
            Cell::Number(number) => {
                format!(
                    "<data value=\"{number}\">{}</data>",
                    shown::alone(&fact.value)
                )
            }
            _ => escaped(&shown::fact(fact.key, &fact.value)),
        };
        let (title, refs) = (escaped(fact.title), refs(&fact.events));
        self.put(&format!(
            "<dt>{title}</dt><dd>{value} <span class=\"ref\">{refs}</span></dd>"
        ));
    }

    fn plot(&mut self, table: &Table) {
        match table.plot {
            Some(Plot::Matrix { row, column, value }) => self.matrix(table, row, column, value),
            Some(plot) => {
                if let Some(svg) = plot::svg(table, plot) {
                    self.put(&format!(
                        "<figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}, drawn\">\n{svg}\
                         </div>\n</figure>",
                        escaped(&shown::words(&table.title))
                    ));
                }
            }
            None => {}
        }
    }

    /// What each gate says of each candidate, at a glance; the table below has the entries.
    fn matrix(&mut self, table: &Table, row: usize, column: (usize, usize), value: usize) {
        let text = |cells: &[Cell], at: usize| cells.get(at).map_or(String::new(), shown::alone);
        let (mut names, mut heads) = (Vec::new(), Vec::new());
        for one in &table.rows {
            let head = (text(&one.cells, column.0), text(&one.cells, column.1));
            let name = text(&one.cells, row);
            if !names.contains(&name) {
                names.push(name);
            }
            if !heads.contains(&head) {
                heads.push(head);
            }
        }
        self.put(&format!(
            "<figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}, at a glance\">\n\
             <table class=\"matrix\">\n<caption>{0}, at a glance</caption>\n<thead><tr><th scope=\"col\">{1}</th>",
            escaped(&shown::words(&table.title)),
            shown::words(table.columns[row].head),
        ));
        for (gate, split) in &heads {
            self.put(&format!(
                "<th scope=\"col\">{}<br>{}</th>",
                escaped(gate),
                escaped(split)
            ));
        }
        self.put("</tr></thead>\n<tbody>");
        for name in &names {
            self.put(&format!("<tr><th scope=\"row\">{}</th>", escaped(name)));
            for (gate, split) in &heads {
                let found = table.rows.iter().find(|one| {
                    text(&one.cells, row) == *name
                        && text(&one.cells, column.0) == *gate
                        && text(&one.cells, column.1) == *split
                });
                let shown = found.map_or("–".to_owned(), |one| {
                    let seq = one.events.first().copied().unwrap_or_default();
                    let word = cell(&one.cells[value], 0);
                    format!("<a href=\"#e{seq}\">{word}</a>")
                });
                self.put(&format!("<td>{shown}</td>"));
            }
            self.put("</tr>");
        }
        self.put("</tbody>\n</table>\n</div>\n</figure>");
    }

    fn table(&mut self, table: &Table, id: &str) {
        self.put(&format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"{id}\">\n<table>\n\
             <caption id=\"{id}\">{}</caption>\n<thead><tr>",
            escaped(&shown::words(&table.title))
        ));
        let classes: Vec<&str> = (0..table.columns.len())
            .map(|at| class(table, at))
            .collect();
        let digits: Vec<usize> = (0..table.columns.len())
            .map(|at| shown::digits(&table.rows, at))
            .collect();
        for (column, class) in table.columns.iter().zip(&classes) {
            self.put(&format!(
                "<th scope=\"col\"{class}>{}</th>",
                escaped(&shown::words(column.head))
            ));
        }
        self.put("<th scope=\"col\" class=\"ref\">entry</th></tr></thead>\n<tbody>");
        for row in &table.rows {
            let mut line = String::from("<tr>");
            for (at, one) in row.cells.iter().enumerate() {
                let text = cell(one, digits[at]);
                let class = classes[at];
                let tag = if at == 0 { "th scope=\"row\"" } else { "td" };
                let end = if at == 0 { "th" } else { "td" };
                write!(line, "<{tag}{class}>{text}</{end}>")
                    .expect("BUG: a String takes every write");
            }
            self.put(&format!(
                "{line}<td class=\"ref\">{}</td></tr>",
                refs(&row.events)
            ));
        }
        self.put("</tbody>\n</table>\n</div>");
    }

    fn entries(&mut self, bundle: &Bundle) {
        self.put(
            "<section id=\"entries\" aria-labelledby=\"entries-title\">\n<h2 id=\"entries-title\">Entries</h2>\n\
             <p class=\"about\">The signed entries that this report rests on. The id is the SHA-256 of the entry's body.</p>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"entries-caption\">\n<table>\n\
             <caption id=\"entries-caption\">Entries by position</caption>\n<thead><tr><th scope=\"col\" class=\"n\">entry</th>\
             <th scope=\"col\">kind</th><th scope=\"col\">recorded at</th><th scope=\"col\">signed by</th>\
             <th scope=\"col\">id</th></tr></thead>\n<tbody>",
        );
        for entry in &bundle.events {
            let at = entry.recorded_at.to_string();
            let short: String = at.chars().take(19).collect();
            self.put(&format!(
                "<tr id=\"e{0}\"><th scope=\"row\" class=\"n\">{0}</th><td>{1}</td>\
                 <td><time datetime=\"{at}\">{2}</time></td><td>{3} <code>{4}</code></td>\
                 <td class=\"words\"><code>{5}</code></td></tr>",
                entry.seq,
                entry.kind,
                short.replace('T', " "),
                escaped(&entry.holder),
                entry.author.0.short(),
                entry.id,
            ));
        }
        self.put("</tbody>\n</table>\n</div>\n</section>");
    }

    fn footer(&mut self, bundle: &Bundle) {
        self.put(&format!(
            "<footer>\n<p>Each entry is signed by the key that is named, and the log that holds them is append-only: that \
             proves who said what and in which order, and that nothing was changed since. It does not prove that a label \
             is right, that rows were not looked at elsewhere, or that a rule was a wise one.</p>\n\
             <p>Check it: <code>clover verify</code>, <code>clover show {}</code>, <code>clover report iteration {} -o \
             report.json</code>.</p>\n</footer>",
            bundle.events.last().map_or(0, |entry| entry.seq),
            escaped(bundle.iteration.as_str()),
        ));
    }
}

/// Text of several lines: escaped line by line, so that line ends stay.
fn lines(text: &str) -> String {
    let all: Vec<String> = text.trim_end().split('\n').map(escaped).collect();
    all.join("\n")
}
