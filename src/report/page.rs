//! A report as one page: no script, nothing from outside, readable in light, dark and on paper.
//!
//! Every number stands beside links to the entries that say it; they lead to the list at the foot, where each entry
//! has its id, its signer and its time. Text that people wrote is escaped wherever it stands. The policy in its head
//! lets a browser load nothing, and use no style but the one whose digest it names.

use std::fmt::Write as _;

use clover_ground::digest::Digest;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Fact;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Table;

use crate::document::Chapter;
use crate::document::Document;
use crate::document::ReportKind;
use crate::forest::escaped;
use crate::markdown::visible;
use crate::matrix;
use crate::plot;
use crate::shown;

/// How pages look.
pub const STYLE: &str = include_str!("style.css");
/// Characters from which a text column is kept wide.
const WORDY: usize = 24;
/// Entries that a row names before it says how many more there are.
const REFS: usize = 4;
/// Characters of a run without a space that a narrow cell holds; longer ones may break behind their signs.
const RUN: usize = 12;
/// Keys of columns that say how something ended: the first of them stands behind the first column, so that
/// no screen hides it.
const VERDICTS: &[&str] = &[
    "covered", "outcome", "standing", "state", "status", "verdict", "result",
];

/// Signatures at the foot of a printed page before the rest is counted.
const SIGNED_SHOWN: usize = 3;

/// The style of what stands at the foot of every printed page: signatures, and the number of the page. Whatever could end
/// a text of CSS is written as its code point.
fn foot(document: &Document) -> String {
    let all = &document.signatures;
    let mut text = match all.len() {
        0 => document.title.clone(),
        _ => format!("Signed: {}", all[..all.len().min(SIGNED_SHOWN)].join(" · ")),
    };
    if all.len() > SIGNED_SHOWN {
        let rest = all.len() - SIGNED_SHOWN;
        text.push_str(&format!(
            " · and {rest} more, in the appendix of signatures"
        ));
    }
    let quoted = |text: &str| {
        let mut out = String::new();
        for one in visible(text) {
            if one.is_ascii_alphanumeric() || one == ' ' {
                out.push(one);
            } else {
                write!(out, "\\{:x} ", u32::from(one)).expect("BUG: a String takes every write");
            }
        }
        out
    };
    format!(
        "@page{{@bottom-left{{content:\"{}\";width:85%;font-size:7pt;white-space:pre-wrap}}\
         @bottom-right{{content:counter(page) \" / \" counter(pages);font-size:7pt}}}}\n",
        quoted(&text)
    )
}

/// What a page begins with, up to its body: its title, its style with what `more` adds, and the policy that lets nothing
/// else in.
pub fn top(title: &str, more: &str) -> String {
    let style = format!("\n{STYLE}{more}");
    let digest = Digest::sha256(style.as_bytes()).to_base64();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{style}</style>\n</head>",
        escaped(title)
    )
}

/// The whole page.
pub fn html(document: &Document) -> String {
    let mut out = Page(String::with_capacity(64 << 10));
    let title = format!("{} - Clover report", document.title);
    out.put(&top(&title, &foot(document)));
    out.put("<body>\n<a class=\"skip\" href=\"#main\">To the report</a>");
    out.header(document);
    out.put("<main id=\"main\">");
    out.course(document);
    for part in &document.parts {
        out.part(part);
    }
    out.contents(document);
    for part in &document.appendices {
        out.part(part);
    }
    out.entries(document);
    out.put("</main>");
    out.footer(document);
    out.put("</body>\n</html>");
    out.0
}

/// What opens around something that may be wider than the screen. `of` names it for a screen reader, as attributes. The
/// style shows the line above only where there is something to scroll.
pub fn scroller(of: &str, line: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" {of}>\n<div class=\"all\">\n<p class=\"hint\">{line}: scroll sideways.</p>"
    )
}

/// What closes it.
pub const SCROLLED: &str = "</div>\n</div>";

/// Escaped text in which a long run without a space may break behind its signs, and nowhere inside of a word.
pub(crate) fn broken(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, run) in text.split(' ').enumerate() {
        if at > 0 {
            out.push(' ');
        }
        if is_date(run) {
            out.push_str(&format!("<span class=\"t\">{}</span>", escaped(run)));
            continue;
        }
        if run.chars().count() <= RUN {
            out.push_str(&escaped(run));
            continue;
        }
        let links: Vec<String> = run
            .split_inclusive(['.', '_', '/', '-', ':', ',', '+', '=', '@'])
            .map(escaped)
            .collect();
        out.push_str(&links.join("<wbr>"));
    }
    out
}

/// Whether a run is a date, with or without a time: it stays on one line.
fn is_date(run: &str) -> bool {
    let mut shape = run.bytes().zip(*b"0000-00-00");
    let holds = |(is, like): (u8, u8)| is == like || (like == b'0' && is.is_ascii_digit());
    (10..=20).contains(&run.len()) && run.is_ascii() && shape.all(holds)
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
pub(crate) fn cell(cell: &Cell, digits: usize) -> String {
    let text = shown::cell(cell, digits);
    match cell {
        Cell::Verdict(verdict) => {
            let class = text.to_lowercase().replace(' ', "_");
            format!("<span class=\"v {class}\">{}</span>", shown::word(*verdict))
        }
        Cell::Digest(digest) => format!("<code title=\"{}\">{text}</code>", digest.to_hex()),
        Cell::Number(number) => format!("<data value=\"{number}\">{text}</data>"),
        _ => broken(&text),
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

    fn header(&mut self, document: &Document) {
        let said = &document.head;
        let rest: Vec<_> = said.rest.iter().map(|text| escaped(text)).collect();
        self.put(&format!(
            "<header>\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n<p class=\"lead\"><strong>{}</strong> {}</p>\n<p>{}</p>\n\
             <dl>",
            document.kind.of(),
            escaped(&document.title),
            escaped(&said.answer),
            rest.join(" "),
            escaped(&said.period),
        ));
        for fact in &document.facts {
            self.fact(fact);
        }
        self.put(&format!(
            "<dt>Ledger</dt><dd>{}</dd>\n<dt>Entries read</dt><dd>{} to {}</dd>",
            escaped(&document.ledger),
            shown::thousands(document.from_seq),
            shown::thousands(document.through_seq),
        ));
        if let Some(drawn) = document.drawn() {
            self.put(&format!("<dt>Drawn</dt><dd>{}</dd>", escaped(&drawn)));
        }
        self.put("</dl>\n</header>");
    }

    /// Who did what, and what came of it.
    fn course(&mut self, document: &Document) {
        let said = &document.head;
        if said.people.is_some() || !said.separation.is_empty() {
            let title = said.people_title();
            self.put(&format!(
                "<section id=\"people\" aria-labelledby=\"people-title\">\n<h2 id=\"people-title\">{title}</h2>"
            ));
            for remark in &said.separation {
                let (text, refs) = (escaped(&remark.text), refs(&remark.events));
                self.put(&format!("<p>{text} <span class=\"ref\">{refs}</span></p>"));
            }
            if let Some(table) = &said.people {
                self.table(table, "people-t0");
            }
            self.put("</section>");
        }
        if let Some(table) = &said.since {
            self.put(
                "<section id=\"since\" aria-labelledby=\"since-title\">\n<h2 id=\"since-title\">What happened since</h2>",
            );
            if table.rows.is_empty() {
                self.put("<p>Nothing on record, up to the last entry that was read.</p>");
            } else {
                self.table(table, "since-t0");
            }
            self.put("</section>");
        }
    }

    /// What stands behind the report, where that is much.
    fn contents(&mut self, document: &Document) {
        self.put("<section id=\"appendices\" class=\"appendices\" aria-labelledby=\"appendices-title\">\n\
                  <h2 id=\"appendices-title\">Appendices</h2>\n<nav aria-label=\"Appendices\">\n<ol>");
        for part in &document.appendices {
            let note = match (part.is_present(), part.missing.is_empty()) {
                (false, _) => " <span class=\"part\">(missing)</span>",
                (true, false) => " <span class=\"part\">(in part)</span>",
                (true, true) => "",
            };
            self.put(&format!(
                "<li><a href=\"#{}\">{}</a>{note}</li>",
                part.key,
                escaped(&shown::words(&part.title))
            ));
        }
        self.put("<li><a href=\"#entries\">Entries</a></li>\n</ol>\n</nav>\n</section>");
    }

    fn part(&mut self, part: &Chapter) {
        let id = part.key;
        self.put(&format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>",
            escaped(&shown::words(&part.title)),
        ));
        if !part.about.is_empty() {
            let about = escaped(&shown::words(&part.about));
            self.put(&format!("<p class=\"about\">{about}</p>"));
        }
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
            let title = escaped(&listing.title);
            let of = format!("aria-label=\"{title}\"");
            self.put(&format!(
                "<h3>{title} <span class=\"ref\">{}</span></h3>\n{}<pre>{}</pre>{SCROLLED}",
                refs(&listing.events),
                scroller(&of, "Longer lines"),
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
            Some(Plot::Matrix { row, column, value }) => {
                let rows = matrix::markup(table, row, column, value);
                let title = escaped(&shown::words(&table.title));
                let of = format!("aria-label=\"{title}, at a glance\"");
                self.put(&format!(
                    "<figure>\n{}<table class=\"matrix\">\n<caption>{title}, at a glance</caption>\n{rows}</table>\n\
                     {SCROLLED}\n</figure>",
                    scroller(&of, "More columns")
                ));
            }
            Some(plot) => {
                if let Some(svg) = plot::svg(table, plot) {
                    let of = format!(
                        "aria-label=\"{}, drawn\"",
                        escaped(&shown::words(&table.title))
                    );
                    let open = scroller(&of, "The drawing is wider");
                    self.put(&format!("<figure>\n{open}\n{svg}{SCROLLED}\n</figure>"));
                }
            }
            None => {}
        }
    }

    fn table(&mut self, table: &Table, id: &str) {
        let open = scroller(&format!("aria-labelledby=\"{id}\""), "More columns");
        self.put(&format!(
            "{open}<table>\n<caption id=\"{id}\">{}</caption>\n<thead><tr>",
            escaped(&shown::words(&table.title))
        ));
        let order = order(table);
        let columns: Vec<(usize, &str, usize)> = order
            .iter()
            .map(|at| (*at, class(table, *at), shown::digits(&table.rows, *at)))
            .collect();
        for (at, class, _) in &columns {
            self.put(&format!(
                "<th scope=\"col\"{class}>{}</th>",
                escaped(&shown::words(table.columns[*at].head))
            ));
        }
        // A table of what no entry says has no column of entries.
        let has_refs = table.rows.iter().any(|row| !row.events.is_empty());
        if has_refs {
            self.put("<th scope=\"col\" class=\"ref\">entry</th>");
        }
        self.put("</tr></thead>\n<tbody>");
        for row in &table.rows {
            let mut line = String::from("<tr>");
            for (place, (at, class, digits)) in columns.iter().enumerate() {
                let text = row
                    .cells
                    .get(*at)
                    .map_or(String::new(), |one| cell(one, *digits));
                let (tag, end) = if place == 0 {
                    ("th scope=\"row\"", "th")
                } else {
                    ("td", "td")
                };
                write!(line, "<{tag}{class}>{text}</{end}>")
                    .expect("BUG: a String takes every write");
            }
            if has_refs {
                write!(line, "<td class=\"ref\">{}</td>", refs(&row.events))
                    .expect("BUG: a String takes every write");
            }
            self.put(&format!("{line}</tr>"));
        }
        self.put(&format!("</tbody>\n</table>\n{SCROLLED}"));
    }

    fn entries(&mut self, document: &Document) {
        let open = scroller("aria-labelledby=\"entries-caption\"", "More columns");
        self.put(&format!(
            "<section id=\"entries\" aria-labelledby=\"entries-title\">\n<h2 id=\"entries-title\">Entries</h2>\n\
             <p class=\"about\">The signed entries that this report rests on. The id is the SHA-256 of the entry's body, the leaf \
             its hash in the tree: <code>clover prove</code> writes the path from it to a checkpoint. \
             A cell that ends in … is cut: <code>clover show N</code> has the whole of its entry.</p>\n\
             {open}<table>\n\
             <caption id=\"entries-caption\">Entries by position</caption>\n<thead><tr><th scope=\"col\" class=\"n\">entry</th>\
             <th scope=\"col\">kind</th><th scope=\"col\">recorded at</th><th scope=\"col\">signed by</th>\
             <th scope=\"col\">id and leaf</th></tr></thead>\n<tbody>",
        ));
        for entry in &document.entries {
            let at = entry.recorded_at.to_string();
            let short: String = at.chars().take(19).collect();
            self.put(&format!(
                "<tr id=\"e{0}\"><th scope=\"row\" class=\"n\">{0}</th><td>{1}</td>\
                 <td><time datetime=\"{at}\">{2}</time></td><td>{3} <code>{4}</code></td>\
                 <td class=\"words wide\"><code>{5}</code>{6}</td></tr>",
                entry.seq,
                entry.kind,
                short.replace('T', " "),
                escaped(&entry.holder),
                entry.author.0.short(),
                entry.id,
                entry.leaf.map_or(String::new(), |leaf| format!(
                    "<br><code>{}</code>",
                    leaf.to_hex()
                )),
            ));
        }
        self.put(&format!("</tbody>\n</table>\n{SCROLLED}\n</section>"));
    }

    fn footer(&mut self, document: &Document) {
        self.put("<footer>\n<h2>What this proves, and what it does not</h2>\n<ul>");
        for limit in &document.limits {
            self.put(&format!("<li>{}</li>", escaped(limit)));
        }
        let last = document.entries.last().map_or(0, |entry| entry.seq);
        let again = match document.kind {
            ReportKind::Iteration => format!(
                ", <code>clover report iteration {} -o report.json</code>",
                escaped(&document.title)
            ),
            _ => String::new(),
        };
        self.put(&format!(
            "</ul>\n<p>Check it: <code>clover verify</code>, <code>clover show {last}</code>, \
             <code>clover prove {last}</code>{again}.</p>\n</footer>"
        ));
    }
}

/// The order of columns: what names a row, then each that says how something ended, then the rest as they stand. A
/// table that has a matrix above it is named by the columns of that matrix.
fn order(table: &Table) -> Vec<usize> {
    let all = 0..table.columns.len();
    let first = match table.plot {
        Some(Plot::Matrix { column, .. }) => column.0,
        _ => 0,
    };
    let holds = |at: &usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.cells.get(*at));
        cells.any(|cell| matches!(cell, Cell::Verdict(_)))
    };
    let rest = || all.clone().filter(|at| *at != first);
    let mut ends: Vec<usize> = rest().filter(holds).collect();
    if ends.is_empty() {
        ends.extend(rest().find(|at| VERDICTS.contains(&table.columns[*at].key)));
    }
    let rest = rest().filter(|at| !ends.contains(at));
    [first]
        .into_iter()
        .chain(ends.clone())
        .chain(rest)
        .collect()
}

/// Text of several lines: escaped line by line, so that line ends stay.
fn lines(text: &str) -> String {
    let all: Vec<String> = text.trim_end().split('\n').map(escaped).collect();
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentHead;

    #[test]
    fn a_date_stays_on_one_line_and_a_name_may_break() {
        let broke = |text: &str| broken(text);
        assert_eq!(
            broke("2026-11-20 to 2026-11-21T10:02:03Z"),
            "<span class=\"t\">2026-11-20</span> to <span class=\"t\">2026-11-21T10:02:03Z</span>"
        );
        assert_eq!(broke("2026-11-2x"), "2026-11-2x");
        assert_eq!(
            broke("a-name-of-many-parts"),
            "a-<wbr>name-<wbr>of-<wbr>many-<wbr>parts"
        );
    }

    #[test]
    fn a_signature_at_the_foot_is_text_whatever_it_says() {
        let head = DocumentHead {
            answer: String::new(),
            people: None,
            period: String::new(),
            rest: Vec::new(),
            separation: Vec::new(),
            since: None,
        };
        let mut document = Document::new(ReportKind::Change, "x", head);
        document.signatures = vec!["A\"} \u{202e}body{display:none}\nB </style><b>".to_owned(); 5];
        let foot = foot(&document);
        assert_eq!(foot.matches('"').count(), 4, "{foot}");
        assert!(!foot.contains('<'), "{foot}");
        assert!(!foot.contains("\\202e") && !foot.contains("\\a "), "{foot}");
        assert_eq!(foot.matches('{').count(), 3, "{foot}");
        assert!(foot.contains("and 2 more"), "{foot}");
    }
}
