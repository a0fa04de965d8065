//! Points over a measured axis, with whiskers, a line and hollow points to compare them with: curves and residuals.

use std::fmt::Write as _;

use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;

use crate::forest::escaped;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 60.0;
/// Ticks of an axis, about.
const TICKS: f64 = 6.0;
/// Radii of the point with least and with most behind it.
const RADII: (f64, f64) = (3.0, 8.0);
const BLUE: &str = "#1f5fa8";
const GREY: &str = "#8a94a3";
const SOFT: &str = "#5b6470";

/// One row as it is drawn.
struct Point {
    x: f64,
    y: f64,
    ends: Option<(f64, f64)>,
    line: Option<f64>,
    hollow: Option<f64>,
    weight: f64,
}

fn number(row: &TableRow, at: usize) -> Option<f64> {
    row.cells.get(at)?.as_number()
}

fn ends(row: &TableRow, at: usize) -> Option<(f64, f64)> {
    match row.cells.get(at)? {
        Cell::Interval(low, high) => Some((low.value(), high.value())),
        _ => None,
    }
}

/// An axis from one round number to another, and its step.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let all = values.filter(|value| value.is_finite());
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low < high {
            (low, high)
        } else if low.is_finite() {
            (low - 0.05, high + 0.05)
        } else {
            (0.0, 1.0)
        };
        let rough = (high - low) / TICKS;
        // The largest power of ten that is no more than the step, found without a logarithm: ranges are of rewards.
        let mut ten = 1.0;
        while ten > rough {
            ten /= 10.0;
        }
        let of = rough / ten;
        let step = ten
            * if of <= 1.0 {
                1.0
            } else if of <= 2.0 {
                2.0
            } else if of <= 5.0 {
                5.0
            } else {
                10.0
            };
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut at = 0.0;
        while self.low + at * self.step <= self.high + 0.5 * self.step && ticks.len() < 20 {
            ticks.push(self.low + at * self.step);
            at += 1.0;
        }
        ticks
    }

    /// A tick with as many digits as the step needs.
    fn shown(&self, value: f64) -> String {
        let mut digits = 0;
        let mut step = self.step;
        while step < 0.999 && digits < 6 {
            step *= 10.0;
            digits += 1;
        }
        let text = format!("{value:.digits$}");
        let is_zero = text
            .trim_start_matches('-')
            .chars()
            .all(|c| c == '0' || c == '.');
        if is_zero {
            text.trim_start_matches('-').to_owned()
        } else {
            text
        }
    }
}

struct Drawing {
    out: String,
    across: Axis,
    up: Axis,
}

/// A drawing of a table of points; `None` without any.
pub(super) fn svg(table: &Table, plot: Plot) -> Option<String> {
    let Plot::Points {
        x,
        y,
        line,
        dots,
        hollow,
        weight,
        reference,
    } = plot
    else {
        return None;
    };
    let point = |row: &TableRow| {
        Some(Point {
            x: number(row, x.0)?,
            y: number(row, dots.0)?,
            ends: dots.1.and_then(|at| ends(row, at)),
            line: line.and_then(|(at, _)| number(row, at)),
            hollow: hollow.and_then(|(at, _)| number(row, at)),
            weight: number(row, weight).unwrap_or(1.0),
        })
    };
    let mut points: Vec<Point> = table.rows.iter().filter_map(point).collect();
    if points.is_empty() {
        return None;
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut drawing = Drawing {
        out: head(&table.title),
        across: Axis::over(points.iter().map(|point| point.x)),
        up: Axis::over(heights(&points, reference)),
    };
    drawing.axes(x.1, y);
    drawing.reference(reference);
    drawing.line(&points);
    drawing.hollow(&points);
    drawing.dots(&points);
    let legend = [
        Some((Sign::Dot, dots.2)),
        line.map(|(_, word)| (Sign::Line, word)),
        hollow.map(|(_, word)| (Sign::Hollow, word)),
    ];
    drawing.legend(legend.into_iter().flatten());
    drawing.out.push_str("</svg>\n");
    Some(drawing.out)
}

/// Heights that the axis has to hold: whiskers of few labels may leave it.
fn heights(points: &[Point], reference: Option<f64>) -> impl Iterator<Item = f64> {
    let own = points.iter();
    let own = own.flat_map(|point| [Some(point.y), point.line, point.hollow]);
    let own: Vec<f64> = own.flatten().chain(reference).collect();
    let low = own.iter().copied().fold(f64::INFINITY, f64::min);
    let high = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let room = (high - low).max(0.05);
    let whiskers = points.iter().filter_map(|point| point.ends);
    let whiskers: Vec<f64> = whiskers
        .flat_map(|(from, to)| [from.max(low - room), to.min(high + room)])
        .collect();
    own.into_iter().chain(whiskers)
}

/// What stands before a word of the legend.
#[derive(Clone, Copy)]
enum Sign {
    Dot,
    Line,
    Hollow,
}

impl Drawing {
    fn put(&mut self, line: &str) {
        writeln!(self.out, "{line}").expect("BUG: a String takes every write");
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.across.share(value)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.up.share(value)
    }

    fn axes(&mut self, across: &str, up: &str) {
        let floor = HEIGHT - BOTTOM;
        for tick in self.up.ticks() {
            let (at, shown) = (self.y(tick), self.up.shown(tick));
            self.put(&format!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#e3e6ea\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{SOFT}\">{shown}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0,
            ));
        }
        for tick in self.across.ticks() {
            let (at, shown) = (self.x(tick), self.across.shown(tick));
            self.put(&format!(
                "<line x1=\"{at:.1}\" y1=\"{floor:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"{GREY}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{SOFT}\">{shown}</text>",
                floor + 5.0,
                floor + 20.0,
            ));
        }
        let middle = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        self.put(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>\
             <text x=\"18\" y=\"{middle:.1}\" fill=\"{SOFT}\" transform=\"rotate(-90 18 {middle:.1})\" \
             text-anchor=\"middle\">{}</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            HEIGHT - 14.0,
            escaped(across),
            escaped(up),
        ));
    }

    fn reference(&mut self, reference: Option<f64>) {
        if let Some(value) = reference {
            let at = self.y(value);
            self.put(&format!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"{GREY}\" stroke-dasharray=\"4 3\"/>",
                WIDTH - RIGHT
            ));
        }
    }

    fn line(&mut self, points: &[Point]) {
        let mut path = String::new();
        for point in points {
            if let Some(value) = point.line {
                let word = if path.is_empty() { 'M' } else { 'L' };
                write!(path, "{word}{:.1} {:.1}", self.x(point.x), self.y(value))
                    .expect("BUG: a String takes every write");
            }
        }
        if !path.is_empty() {
            self.put(&format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{GREY}\" stroke-width=\"2\"/>"
            ));
        }
    }

    fn hollow(&mut self, points: &[Point]) {
        for point in points {
            if let Some(value) = point.hollow {
                let (x, y) = (self.x(point.x), self.y(value));
                self.put(&format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"none\" stroke=\"{GREY}\" stroke-width=\"2\"/>"
                ));
            }
        }
    }

    fn dots(&mut self, points: &[Point]) {
        let most = points.iter().map(|point| point.weight).fold(1.0, f64::max);
        for point in points {
            let (x, y) = (self.x(point.x), self.y(point.y));
            if let Some((low, high)) = point.ends {
                self.put(&format!(
                    "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"{BLUE}\" stroke-width=\"1.5\"/>",
                    self.y(high),
                    self.y(low)
                ));
            }
            let share = (point.weight / most).max(0.0).sqrt();
            let radius = RADII.0 + (RADII.1 - RADII.0) * share;
            self.put(&format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{BLUE}\"><title>{} rows at {:.3}: {:.4}</title>\
                 </circle>",
                point.weight, point.x, point.y
            ));
        }
    }

    fn legend<'w>(&mut self, words: impl Iterator<Item = (Sign, &'w str)>) {
        let mut at = LEFT;
        let y = TOP - 22.0;
        for (sign, word) in words {
            let mark = match sign {
                Sign::Dot => format!(
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{BLUE}\"/>",
                    at + 6.0
                ),
                Sign::Hollow => format!(
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"none\" stroke=\"{GREY}\" stroke-width=\"2\"/>",
                    at + 6.0
                ),
                Sign::Line => format!(
                    "<line x1=\"{at:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{GREY}\" stroke-width=\"2\"/>",
                    at + 14.0
                ),
            };
            self.put(&format!(
                "{mark}<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{SOFT}\">{}</text>",
                at + 20.0,
                y + 4.0,
                escaped(word)
            ));
            // Wide enough for the letters of any system font.
            at += 40.0 + 6.6 * word.chars().count() as f64;
        }
    }
}

fn head(title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{0}</text>\n",
        escaped(title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers_that_hold_every_value() {
        let axis = Axis::over([0.13, 0.87].into_iter());
        let shown: Vec<String> = axis.ticks().iter().map(|tick| axis.shown(*tick)).collect();
        assert_eq!(shown, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let axis = Axis::over([-0.031, 0.012].into_iter());
        let shown: Vec<String> = axis.ticks().iter().map(|tick| axis.shown(*tick)).collect();
        assert_eq!(
            shown,
            ["-0.04", "-0.03", "-0.02", "-0.01", "0.00", "0.01", "0.02"]
        );
        // One value, or none that is a number.
        let axis = Axis::over([0.5].into_iter());
        assert!(axis.low < 0.5 && axis.high > 0.5);
        let axis = Axis::over([f64::NAN].into_iter());
        assert!(axis.low <= 0.0 && axis.high >= 1.0);
    }

    #[test]
    fn points_are_closed_drawings_with_units_and_no_markup_of_others() {
        let mut table = Table::new(
            "t",
            "<script>",
            &[("x", "x"), ("y", "y"), ("i", "i"), ("n", "n")],
        );
        for (x, y) in [(0.1, 0.2), (0.9, 0.7)] {
            let ends = match (Cell::number(y - 9.0), Cell::number(y + 0.1)) {
                (Cell::Number(low), Cell::Number(high)) => Cell::Interval(low, high),
                _ => Cell::Absent,
            };
            table.row(
                1,
                vec![Cell::number(x), Cell::number(y), ends, Cell::count(40)],
            );
        }
        let plot = Plot::Points {
            x: (0, "score, 0 to 1"),
            y: "label, 0 to 1",
            line: Some((1, "reward")),
            dots: (1, Some(2), "mean <label>"),
            hollow: Some((1, "before")),
            weight: 3,
            reference: Some(0.0),
        };
        let svg = svg(&table, plot).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("<script") && !svg.contains("NaN") && !svg.contains("inf"));
        for word in [
            "score, 0 to 1",
            "label, 0 to 1",
            "mean &lt;label&gt;",
            "before",
            "reward",
        ] {
            assert!(svg.contains(word), "{word}");
        }
        // A whisker of few labels leaves the drawing, it does not squeeze it.
        assert!(svg.contains(">-0.5<") || svg.contains(">-0.4<") || svg.contains(">-1.0<"));
        table.rows.clear();
        assert_eq!(super::svg(&table, plot), None);
    }
}
