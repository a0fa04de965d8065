//! Charts of what was estimated: a calibration curve with its labels, residuals by bin, the weights of logged rows, where
//! uncertainty comes from, and what a plan would show. As SVG without scripts, and as a line of a terminal.

use std::fmt::Write as _;

use crate::report::forest::escaped;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;
const TICKS: usize = 5;
const BLUE: &str = "#1f5fa8";
const GREY: &str = "#8a94a3";
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How points of a chart are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Bars from zero.
    Bar,
    /// Circles whose area is the weight.
    Dot,
    /// Joined.
    Line,
}

/// Points that are drawn alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they are.
    pub label: String,
    /// How.
    pub mark: Mark,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// Weight of each, for circles; 1 where missing.
    pub weights: Vec<f64>,
}

/// A chart of two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What x measures.
    pub x: String,
    /// What y measures.
    pub y: String,
    /// Series, drawn in their order.
    pub series: Vec<Series>,
    /// Whether y is shown in powers of ten.
    pub log_y: bool,
}

/// Bars of eight heights, the highest the largest value; nothing for what is not a number.
pub fn sparkline(values: &[f64]) -> String {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let most = finite.clone().fold(f64::NEG_INFINITY, f64::max);
    let least = finite.fold(f64::INFINITY, f64::min).min(0.0);
    let bar = |value: &f64| {
        if !value.is_finite() {
            return ' ';
        }
        let share = if most > least {
            (value - least) / (most - least)
        } else {
            0.0
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share from 0 to 1 of seven steps"
        )]
        let step = (share * (SPARKS.len() - 1) as f64).round() as usize;
        SPARKS[step.min(SPARKS.len() - 1)]
    };
    values.iter().map(bar).collect()
}

/// A range that holds every value, with some room.
fn spanning(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if !(low.is_finite() && high.is_finite()) {
        return (0.0, 1.0);
    }
    let room = (0.05 * (high - low)).max(1e-9);
    (low - room, high + room)
}

fn tick(value: f64, span: f64) -> String {
    let digits = if span >= 20.0 {
        0
    } else if span >= 2.0 {
        1
    } else if span >= 0.02 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

impl Chart {
    fn height_of(&self, y: f64) -> f64 {
        if self.log_y {
            crate::num::math::ln(y.max(f64::MIN_POSITIVE)) / std::f64::consts::LN_10
        } else {
            y
        }
    }

    /// The range of x: half a bar beyond the first and the last, else a little room, never below 0 for what is not.
    fn across(&self, bars: bool) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let xs: Vec<f64> = points.map(|point| point.0).collect();
        let (low, high) = spanning(xs.iter().copied());
        if bars {
            let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
            let most = xs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if least.is_finite() && most.is_finite() {
                return (least - 0.5, most + 0.5);
            }
        }
        if xs.iter().all(|x| *x >= 0.0) {
            (low.max(0.0), high)
        } else {
            (low, high)
        }
    }

    /// Where x is marked: at each bar, else at equal steps.
    fn places(&self, bars: bool, (low, high): (f64, f64)) -> Vec<f64> {
        if bars {
            let bars = self.series.iter().filter(|of| of.mark == Mark::Bar);
            return bars.flat_map(|of| &of.points).map(|of| of.0).collect();
        }
        let steps = (0..TICKS).map(|at| at as f64 / (TICKS - 1) as f64);
        steps.map(|share| low + share * (high - low)).collect()
    }

    fn ticks(&self, out: &mut String, bars: bool, (across, x): Axis<'_>, (up, y): Axis<'_>) {
        let places = self.places(bars, across);
        for at in 0..TICKS.max(places.len()) {
            let share = at.min(TICKS - 1) as f64 / (TICKS - 1) as f64;
            let dx = places.get(at).copied().unwrap_or(across.1);
            let dy = up.0 + share * (up.1 - up.0);
            let shown = if self.log_y {
                format!("1e{dy:.1}")
            } else {
                tick(dy, up.1 - up.0)
            };
            put(
                out,
                &format!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6470\">{}</text>\
                 <line x1=\"{LEFT}\" y1=\"{3:.1}\" x2=\"{4:.1}\" y2=\"{3:.1}\" stroke=\"#e3e6ea\"/>\
                 <text x=\"{5:.1}\" y=\"{6:.1}\" text-anchor=\"end\" fill=\"#5b6470\">{shown}</text>",
                    x(dx),
                    HEIGHT - BOTTOM + 18.0,
                    if bars || places.get(at).is_none() {
                        places.get(at).map_or(String::new(), f64::to_string)
                    } else {
                        tick(dx, across.1 - across.0)
                    },
                    y(dy),
                    WIDTH - RIGHT,
                    LEFT - 6.0,
                    y(dy) + 4.0,
                ),
            );
        }
    }

    /// A drawing of its own: no script, no outside reference.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let bars = self.series.iter().any(|series| series.mark == Mark::Bar);
        let across = self.across(bars);
        let zero = bars.then_some(0.0).filter(|_| !self.log_y);
        let up = spanning(points().map(|point| self.height_of(point.1)).chain(zero));
        let x =
            |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (value - across.0) / (across.1 - across.0);
        let y =
            |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - up.0) / (up.1 - up.0);
        let mut out = head(&self.title, WIDTH, HEIGHT);
        self.ticks(&mut out, bars, (across, &x), (up, &y));
        let lines = self.series.iter().filter(|of| of.mark == Mark::Line);
        let is_named = lines.count() > 1;
        for series in &self.series {
            if let Some((a, b)) = series.points.last().filter(|_| is_named)
                && b.is_finite()
            {
                put(
                    &mut out,
                    &format!(
                        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5b6470\">{}</text>",
                        x(*a),
                        y(self.height_of(*b)) - 5.0,
                        escaped(&series.label)
                    ),
                );
            }
            put(
                &mut out,
                &series.svg(&x, &|value| y(self.height_of(value)), y(up.0.max(0.0))),
            );
        }
        put(
            &mut out,
            &format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6470\">{}</text>\
             <text x=\"16\" y=\"{:.1}\" fill=\"#5b6470\" transform=\"rotate(-90 16 {3:.1})\" \
             text-anchor=\"middle\">{}</text>\n</svg>",
                LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
                HEIGHT - 14.0,
                escaped(&self.x),
                TOP + (HEIGHT - TOP - BOTTOM) / 2.0,
                escaped(&self.y),
            ),
        );
        out
    }
}

impl Series {
    fn svg(&self, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64, floor: f64) -> String {
        let points = self
            .points
            .iter()
            .filter(|(a, b)| a.is_finite() && b.is_finite());
        let name = format!("<title>{}</title>", escaped(&self.label));
        match self.mark {
            Mark::Line => {
                let path: Vec<String> = points
                    .enumerate()
                    .map(|(at, (a, b))| {
                        let word = if at == 0 { 'M' } else { 'L' };
                        format!("{word}{:.1} {:.1}", x(*a), y(*b))
                    })
                    .collect();
                let path = path.join("");
                format!(
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"2\">{name}</path>"
                )
            }
            Mark::Dot => {
                let most = self.weights.iter().copied().fold(1.0, f64::max);
                let dot = |(at, (a, b)): (usize, &(f64, f64))| {
                    let weight = self.weights.get(at).copied().unwrap_or(1.0);
                    let radius = 3.0 + 9.0 * (weight / most).max(0.0).sqrt();
                    let (cx, cy) = (x(*a), y(*b));
                    format!(
                        "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"{radius:.1}\" fill=\"{GREY}\" fill-opacity=\"0.5\">\
                         <title>{weight} at {a}</title></circle>"
                    )
                };
                points.enumerate().map(dot).collect()
            }
            Mark::Bar => {
                let wide = (WIDTH - LEFT - RIGHT) / (self.points.len().max(1) as f64) * 0.6;
                let bar = |(a, b): &(f64, f64)| {
                    let (top, low) = (y(*b).min(floor), y(*b).max(floor));
                    let (from, tall) = (x(*a) - wide / 2.0, (low - top).max(0.5));
                    format!(
                        "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" fill=\"{BLUE}\">{name}</rect>"
                    )
                };
                points.map(bar).collect()
            }
        }
    }
}

/// Ends of an axis and the place of a value on it.
type Axis<'a> = ((f64, f64), &'a dyn Fn(f64) -> f64);

/// Shares of a whole, drawn as a ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// What it shows.
    pub title: String,
    /// Name and size of each part; sizes from 0.
    pub parts: Vec<(String, f64)>,
}

impl Ring {
    /// A drawing of its own.
    pub fn svg(&self) -> String {
        let (width, height, middle, radius) = (420.0, 240.0, 120.0, 80.0);
        let total: f64 = self.parts.iter().map(|(_, part)| part.max(0.0)).sum();
        let around = std::f64::consts::TAU * radius;
        let mut out = head(&self.title, width, height);
        let mut from = 0.0;
        for (at, (name, part)) in self.parts.iter().enumerate() {
            let share = if total > 0.0 {
                part.max(0.0) / total
            } else {
                0.0
            };
            let colour = [BLUE, "#e0a030", GREY, "#4f9d69"][at % 4];
            let legend = 80.0 + 24.0 * at as f64;
            put(
                &mut out,
                &format!(
                    "<circle cx=\"{middle}\" cy=\"{0:.1}\" r=\"{radius}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"28\" stroke-dasharray=\"{1:.2} {2:.2}\" stroke-dashoffset=\"{3:.2}\" \
                 transform=\"rotate(-90 {middle} {0:.1})\"/>\
                 <rect x=\"236\" y=\"{4:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"256\" y=\"{legend}\">{5} {6:.0} %</text>",
                    height / 2.0 + 14.0,
                    share * around,
                    around,
                    -from * around,
                    legend - 10.0,
                    escaped(name),
                    100.0 * share,
                ),
            );
            from += share;
        }
        out.push_str("</svg>\n");
        out
    }

    /// One line: names with their shares.
    pub fn text(&self) -> String {
        let total: f64 = self.parts.iter().map(|(_, part)| part.max(0.0)).sum();
        let parts = self.parts.iter().map(|(name, part)| {
            let share = if total > 0.0 {
                100.0 * part.max(0.0) / total
            } else {
                0.0
            };
            format!("{name} {share:.0} %")
        });
        parts.collect::<Vec<_>>().join(" · ")
    }
}

fn head(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"600\">{0}</text>\n",
        escaped(title),
    )
}

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("BUG: a String takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_one_bar_a_value() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0]), "▁▅█");
        assert_eq!(sparkline(&[-1.0, f64::NAN, 1.0]), "▁ █");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn charts_are_closed_drawings_whose_labels_are_never_markup() {
        let series = |mark| Series {
            label: "<script>".to_owned(),
            mark,
            points: vec![(0.1, 0.2), (0.5, f64::NAN), (0.9, 0.8)],
            weights: vec![1.0, 2.0, 293.0],
        };
        for log_y in [false, true] {
            let chart = Chart {
                title: "Calibration & labels".to_owned(),
                x: "judge <score>".to_owned(),
                y: "expected label".to_owned(),
                series: [Mark::Line, Mark::Dot, Mark::Bar].map(series).to_vec(),
                log_y,
            };
            let svg = chart.svg();
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
            assert!(
                !svg.contains("<script") && !svg.contains("NaN") && !svg.contains("inf"),
                "{svg}"
            );
            assert!(svg.contains("Calibration &amp; labels"));
        }
        let ring = Ring {
            title: "Variance".to_owned(),
            parts: vec![("rows".to_owned(), 3.0), ("labels".to_owned(), 1.0)],
        };
        assert_eq!(ring.text(), "rows 75 % · labels 25 %");
        assert!(ring.svg().ends_with("</svg>\n") && !ring.svg().contains("NaN"));
    }
}
