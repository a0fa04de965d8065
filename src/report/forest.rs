//! Forest plots: one estimate and its interval a row, for a terminal, as SVG, and as a page.

use std::fmt::Write as _;

use clover_ground::name::is_unsafe;

/// Columns of the terminal plot between its labels and its numbers.
const PLOT: usize = 44;
/// Longest label in a terminal.
const LABEL: usize = 26;
/// Columns from which an axis shows all of its ticks.
const TICKS_FROM: usize = 40;
/// Ticks of an axis.
const TICKS: usize = 5;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// What it shows.
    pub title: String,
    /// What the axis measures.
    pub axis: String,
    /// Ends of the axis.
    pub range: (f64, f64),
    /// Where a reference line stands, such as 0 for differences.
    pub reference: Option<f64>,
    /// Rows from top to bottom.
    pub rows: Vec<ForestRow>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct ForestRow {
    /// What was estimated.
    pub label: String,
    /// The estimate.
    pub estimate: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether the estimate must not be read as a level: drawn hollow.
    pub hollow: bool,
    /// A word beside it.
    pub note: String,
}

impl Forest {
    /// An axis that holds every row, widened to round ends.
    pub fn spanning(rows: &[ForestRow]) -> (f64, f64) {
        let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
        for row in rows {
            let (low, high) = row.interval.unwrap_or((row.estimate, row.estimate));
            ends = (
                ends.0.min(low).min(row.estimate),
                ends.1.max(high).max(row.estimate),
            );
        }
        if !(ends.0.is_finite() && ends.1.is_finite()) {
            return (0.0, 1.0);
        }
        let margin = (0.05 * (ends.1 - ends.0)).max(1e-9);
        (ends.0 - margin, ends.1 + margin)
    }

    /// The least range that holds another and whose ticks are round: a step of 1, 2 or 5 times a power of ten, or of a
    /// quarter where two digits show it.
    pub fn round(low: f64, high: f64) -> (f64, f64) {
        if !(low < high && low.is_finite() && high.is_finite()) {
            return (low, high);
        }
        let steps = (TICKS - 1) as f64;
        let mut ten = 1.0;
        while ten * steps < high - low {
            ten *= 10.0;
        }
        while ten * steps / 10.0 >= high - low {
            ten /= 10.0;
        }
        // From the smallest step up; twice the last one reaches from wherever its lower end is rounded to.
        let steps_of = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0].map(|of| of * ten);
        let quarters = |step: &f64| ten >= 1.0 || (*step - 0.25 * ten).abs() > 1e-12;
        for step in steps_of.into_iter().filter(quarters) {
            let from = (low / step).floor() * step;
            if from + steps * step >= high {
                return (from, from + steps * step);
            }
        }
        (low, high)
    }

    /// Where a value stands on the axis: 0 to 1 inside it.
    fn place(&self, value: f64) -> f64 {
        (value - self.range.0) / (self.range.1 - self.range.0)
    }

    /// A plot of at most 100 columns.
    pub fn text(&self) -> String {
        self.text_of(PLOT)
    }

    /// The same with an axis of so many columns.
    pub fn text_of(&self, plot: usize) -> String {
        let mut out = String::new();
        let width = self.rows.iter().map(|row| row.label.chars().count()).max();
        let width = width.unwrap_or(0).min(LABEL);
        let mut write = |line: &str| {
            out.push_str(line.trim_end());
            out.push('\n');
        };
        write(&self.title);
        for row in &self.rows {
            let mut label = clean(&row.label);
            if label.chars().count() > width {
                // What is longer than the others leave room for stands above its row, whole.
                write(&std::mem::take(&mut label));
            }
            let cells: String = self.cells(row, plot).into_iter().collect();
            write(&format!("{label:width$} {cells} {}", row.note));
        }
        write(&format!("{:width$} {}", "", self.ticks_text(plot)));
        out
    }

    /// The cells of one row: an interval between bars, arrows where it leaves the axis.
    fn cells(&self, row: &ForestRow, plot: usize) -> Vec<char> {
        let mut cells = vec![' '; plot];
        let column = |share: f64| {
            let place = (share * (plot - 1) as f64).round();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the plot"
            )]
            let column = place.clamp(0.0, (plot - 1) as f64) as usize;
            column
        };
        if let Some(reference) = self.reference {
            cells[column(self.place(reference))] = '┊';
        }
        if let Some((low, high)) = row.interval {
            let (from, to) = (self.place(low), self.place(high));
            let (first, last) = (column(from), column(to));
            for cell in &mut cells[first..=last] {
                *cell = '─';
            }
            cells[first] = if from < 0.0 { '◀' } else { '├' };
            cells[last] = if to > 1.0 { '▶' } else { '┤' };
        }
        cells[column(self.place(row.estimate))] = if row.hollow { '○' } else { '●' };
        cells
    }

    fn ticks_text(&self, plot: usize) -> String {
        let mut cells = vec![' '; plot + 8];
        // Where the axis is short, its ends and its middle alone have room.
        let every = if plot < TICKS_FROM { 2 } else { 1 };
        for tick in (0..TICKS).step_by(every) {
            let share = tick as f64 / (TICKS - 1) as f64;
            let value = self.range.0 + share * (self.range.1 - self.range.0);
            let text = self.tick(value);
            let middle = (tick * (plot - 1)) / (TICKS - 1);
            let start = middle.saturating_sub(text.chars().count() / 2);
            for (offset, c) in text.chars().enumerate() {
                if let Some(cell) = cells.get_mut(start + offset) {
                    *cell = c;
                }
            }
        }
        cells.into_iter().collect()
    }

    fn tick(&self, value: f64) -> String {
        let span = self.range.1 - self.range.0;
        let digits = if span >= 20.0 {
            0
        } else if span >= 2.0 {
            1
        } else if span >= 0.04 {
            2
        } else {
            3
        };
        format!("{value:.digits$}")
    }

    /// A drawing of its own: no script, no outside reference.
    pub fn svg(&self) -> String {
        self.svg_over(&[])
    }

    /// The same over hollow marks, one for each row: where its estimate stood before.
    pub fn svg_over(&self, before: &[Option<f64>]) -> String {
        let (left, plot, right) = (220.0, 420.0, 240.0);
        // A label with no room beside the drawing stands above its row.
        let row_height = if self.rows.iter().any(ForestRow::is_long) {
            46.0
        } else {
            28.0
        };
        let title = lines(&clean(&self.title), TITLE_LINE);
        let top = 32.0 + 20.0 * title.len() as f64;
        let width = left + plot + right;
        let bottom = top + row_height * self.rows.len() as f64;
        let height = bottom + 56.0;
        let x = |value: f64| left + plot * self.place(value).clamp(0.0, 1.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
             <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            escaped(&self.title),
        );
        let mut put = |line: String| {
            out.push_str(&line);
            out.push('\n');
        };
        for (at, line) in title.iter().enumerate() {
            put(format!(
                "<text x=\"16\" y=\"{}\" font-size=\"15\" font-weight=\"600\">{}</text>",
                26 + 20 * at,
                escaped(line)
            ));
        }
        for tick in 0..TICKS {
            let share = tick as f64 / (TICKS - 1) as f64;
            let value = self.range.0 + share * (self.range.1 - self.range.0);
            let at = x(value);
            put(format!(
                "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e3e6ea\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6470\">{}</text>",
                bottom + 18.0,
                self.tick(value),
            ));
        }
        put(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6470\">{}</text>",
            left + plot / 2.0,
            bottom + 40.0,
            escaped(&self.axis),
        ));
        if let Some(reference) = self.reference {
            let at = x(reference);
            put(format!(
                "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#8a94a3\" \
                 stroke-dasharray=\"4 3\"/>"
            ));
        }
        for (at, row) in self.rows.iter().enumerate() {
            let below = if row_height > 28.0 { 9.0 } else { 0.0 };
            let y = top + row_height * (at as f64 + 0.5) + below;
            if let Some(value) = before.get(at).copied().flatten() {
                put(format!(
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"7\" fill=\"none\" stroke=\"#8a94a3\" stroke-width=\"2\"/>",
                    x(value)
                ));
            }
            put(row_svg(row, y, left, plot, self));
        }
        out.push_str("</svg>\n");
        out
    }
}

fn row_svg(row: &ForestRow, y: f64, left: f64, plot: f64, forest: &Forest) -> String {
    let x = |value: f64| left + plot * forest.place(value).clamp(0.0, 1.0);
    let (label, whole) = (row.drawn_label(), clean(&row.label));
    let label_y = if row.is_long() { y - 14.0 } else { y + 4.5 };
    let title = if label == whole {
        String::new()
    } else {
        format!("<title>{}</title>", escaped(&whole))
    };
    let mut out = format!(
        "<text x=\"16\" y=\"{label_y:.1}\">{}{title}</text>",
        escaped(&label),
    );
    if let Some((low, high)) = row.interval {
        let (from, to) = (x(low), x(high));
        write!(
            out,
            "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" stroke=\"#1f5fa8\" \
             stroke-width=\"2\"/>"
        )
        .expect("BUG: a String takes every write");
        for (inside, at, back) in [
            (forest.place(low) >= 0.0, from, 6.0),
            (forest.place(high) <= 1.0, to, -6.0),
        ] {
            let path = if inside {
                format!("M{at:.1} {:.1}v10", y - 5.0)
            } else {
                format!(
                    "M{:.1} {:.1}l{:.1} 5l{back:.1} 5",
                    at + back,
                    y - 5.0,
                    -back
                )
            };
            write!(
                out,
                "<path d=\"{path}\" stroke=\"#1f5fa8\" stroke-width=\"2\" fill=\"none\"/>"
            )
            .expect("BUG: a String takes every write");
        }
    }
    let fill = if row.hollow { "#ffffff" } else { "#1f5fa8" };
    write!(
        out,
        "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{fill}\" stroke=\"#1f5fa8\" \
         stroke-width=\"2\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#303740\">{}</text>",
        x(row.estimate),
        left + plot + 16.0,
        y + 4.5,
        escaped(&row.note),
    )
    .expect("BUG: a String takes every write");
    out
}

/// Text for markup: nothing in it is markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_unsafe(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// A label without control characters.
fn clean(label: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    label.chars().map(plain).collect()
}

/// Characters of a label that have room beside a drawing.
const BESIDE: usize = 30;
/// Characters of a label that have room above a row.
const ABOVE: usize = 110;
/// Characters of a line of the title.
const TITLE_LINE: usize = 100;

impl ForestRow {
    /// Whether the label has no room beside the drawing.
    fn is_long(&self) -> bool {
        self.label.chars().count() > BESIDE
    }

    /// The label as it is drawn: its end stands, since names that begin alike differ there. The whole stands in a `title`.
    fn drawn_label(&self) -> String {
        let label = clean(&self.label);
        let count = label.chars().count();
        if count <= ABOVE {
            return label;
        }
        let half = ABOVE / 2 - 1;
        let start: String = label.chars().take(half).collect();
        let end: String = label.chars().skip(count - half).collect();
        format!("{start}…{end}")
    }
}

/// Text in lines of at most so many characters, broken between words.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("BUG: there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > most {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forest() -> Forest {
        let row = |label: &str, estimate: f64, interval, hollow| ForestRow {
            label: label.to_owned(),
            estimate,
            interval,
            hollow,
            note: format!("{estimate:.3}"),
        };
        Forest {
            title: "Policy values".to_owned(),
            axis: "mean label".to_owned(),
            range: (0.0, 1.0),
            reference: None,
            rows: vec![
                row("base", 0.75, Some((0.7, 0.8)), false),
                row("<script>alert(1)</script>", 0.5, Some((-0.2, 1.2)), true),
                row("one prompt", 0.4, None, false),
            ],
        }
    }

    #[test]
    fn a_terminal_sees_intervals_arrows_and_hollow_marks() {
        let text = forest().text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 100));
        assert!(lines[1].contains("├─●─┤"), "{text}");
        assert!(lines[2].contains('◀') && lines[2].contains('▶') && lines[2].contains('○'));
        assert!(!lines[3].contains('─'));
        assert!(lines[4].contains("0.00") && lines[4].contains("1.00"));
    }

    #[test]
    fn a_round_range_holds_its_values_and_ticks_at_round_numbers() {
        for (low, high) in [
            (-0.056, 0.03),
            (0.0, 1.0),
            (-3.0, 12.0),
            (0.71, 0.7101),
            (-0.4, -0.39),
        ] {
            let (from, to) = Forest::round(low, high);
            assert!(from <= low && high <= to, "{low} {high}: {from} {to}");
            let step = (to - from) / (TICKS - 1) as f64;
            assert!(
                (from / step - (from / step).round()).abs() < 1e-6,
                "{from} in steps of {step}"
            );
            let mut lead = step;
            while lead < 0.95 {
                lead *= 10.0;
            }
            let round = [1.0, 2.0, 2.5, 5.0, 10.0];
            assert!(round.iter().any(|of| (lead - of).abs() < 1e-6), "{lead}");
            // No wider than five times what is shown.
            assert!(to - from <= 5.0 * (high - low), "{low} {high}: {from} {to}");
        }
        assert_eq!(Forest::round(0.0, 1.0), (0.0, 1.0));
        assert_eq!(Forest::round(-0.056, 0.03), (-0.1, 0.1));
    }

    #[test]
    fn long_labels_stand_whole_so_that_rows_differ() {
        let mut forest = forest();
        let name = "claude-3-5-sonnet-20241022 / claude-3-5-haiku-2024102";
        forest.rows[0].label = format!("{name}1");
        forest.rows[1].label = format!("{name}2");
        let svg = forest.svg();
        assert!(svg.contains(&format!(">{name}1<")) && svg.contains(&format!(">{name}2<")));
        forest.rows[0].label = format!("{}end", "long ".repeat(60));
        assert!(forest.svg().contains("end<title>"));
        forest.title = "words of a title ".repeat(20);
        let lines = forest.svg().matches("font-weight=\"600\"").count();
        assert_eq!(lines, 4);
    }

    #[test]
    fn labels_are_never_markup() {
        let svg = forest().svg();
        assert!(!svg.contains("<script"));
        assert!(svg.contains("&lt;script&gt;"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
