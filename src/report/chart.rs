//! Charts of what was estimated: a calibration curve with its labels, residuals by bin, the weights of logged rows, where
//! uncertainty comes from, and what a plan would show. As SVG without scripts, and as a line of a terminal.

use std::fmt::Write as _;

use crate::forest::escaped;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;
/// The most steps between marks.
const TICKS: f64 = 6.0;
/// Room that a line of text takes.
const LINE: f64 = 14.0;
const BLUE: &str = "#1f5fa8";
const GREY: &str = "#8a94a3";
const AMBER: &str = "#b8730a";
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
    /// Joined, in a colour of its own: what the others are held against.
    Other,
    /// Small circles.
    Point,
    /// Joined by dashes: a level.
    Rule,
}

impl Mark {
    /// Whether its points are joined.
    fn is_joined(self) -> bool {
        matches!(self, Self::Line | Self::Other | Self::Rule)
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Bar | Self::Line | Self::Point => BLUE,
            Self::Other => AMBER,
            Self::Dot | Self::Rule => GREY,
        }
    }
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

/// Round values from low to high, a step of 1, 2 or 5 times a power of ten apart, with the digits that they need.
fn rounded(low: f64, high: f64) -> (Vec<f64>, usize) {
    let tens = |times: i32| (0..times).fold(1.0, |power, _| power * 10.0);
    let steps = (-9..=15).flat_map(|k: i32| {
        let power = if k < 0 { 1.0 / tens(-k) } else { tens(k) };
        let digits = usize::try_from(-k).unwrap_or(0);
        [1.0, 2.0, 5.0].map(|times| (times * power, digits))
    });
    let least = (high - low) / TICKS;
    let found = steps.into_iter().find(|(step, _)| *step >= least);
    let (step, digits) = found.unwrap_or((high - low, 0));
    let first = (low / step).ceil();
    let places = (0..=8).map(|at| (first + f64::from(at)) * step);
    let places = places.take_while(|place| *place <= high);
    // Zero has no sign.
    (places.map(|place| place + 0.0).collect(), digits)
}

impl Chart {
    fn height_of(&self, y: f64) -> f64 {
        if self.log_y {
            clover_num::math::ln(y.max(f64::MIN_POSITIVE)) / std::f64::consts::LN_10
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

    /// Marks of x with their words: at each bar, else at round values.
    fn across_at(&self, bars: bool, (low, high): (f64, f64)) -> Vec<(f64, String)> {
        if bars {
            let bars = self.series.iter().filter(|of| of.mark == Mark::Bar);
            let places = bars.flat_map(|of| &of.points).map(|of| of.0);
            return places.map(|place| (place, place.to_string())).collect();
        }
        let (places, digits) = rounded(low, high);
        let named = |place: f64| (place, format!("{place:.digits$}"));
        places.into_iter().map(named).collect()
    }

    fn ticks(
        &self,
        out: &mut String,
        bars: bool,
        (across, x): AxisScale<'_>,
        (up, y): AxisScale<'_>,
    ) {
        for (place, name) in self.across_at(bars, across) {
            let (x, y) = (x(place), HEIGHT - BOTTOM + 18.0);
            put(
                out,
                &format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#5b6470\">{name}</text>"
                ),
            );
        }
        let (places, digits) = rounded(up.0, up.1);
        let power = if self.log_y { "1e" } else { "" };
        for place in places {
            let (y, right) = (y(place), WIDTH - RIGHT);
            put(
                out,
                &format!(
                    "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"#e3e6ea\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5b6470\">{power}{place:.digits$}</text>",
                    LEFT - 6.0,
                    y + 4.0,
                ),
            );
        }
    }

    /// Names of lines at their last points, one above the other where these are close.
    fn names(&self, out: &mut String, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        let lines = self.series.iter().filter(|of| of.mark.is_joined());
        let ends = lines.filter_map(|of| {
            let (a, b) = of.points.last().filter(|(_, b)| b.is_finite())?;
            Some((y(self.height_of(*b)) - 5.0, x(*a), of))
        });
        let mut ends: Vec<_> = ends.collect();
        if ends.len() < 2 {
            return;
        }
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let most = HEIGHT - BOTTOM - LINE * (ends.len() - 1) as f64;
        let mut least = TOP;
        for (at, (y, x, of)) in ends.into_iter().enumerate() {
            let y = y.min(most + LINE * at as f64).max(least);
            least = y + LINE;
            let (name, colour) = (escaped(&of.label), of.mark.colour());
            put(
                out,
                &format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{colour}\" stroke=\"#ffffff\" \
                     stroke-width=\"3\" paint-order=\"stroke\">{name}</text>"
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
        let height = |value: f64| y(self.height_of(value));
        for series in &self.series {
            put(&mut out, &series.svg(&x, &height, y(up.0.max(0.0))));
        }
        self.names(&mut out, &x, &y);
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
            Mark::Line | Mark::Other | Mark::Rule => {
                let (colour, dashes) = (
                    self.mark.colour(),
                    if self.mark == Mark::Rule {
                        " stroke-dasharray=\"6 4\""
                    } else {
                        ""
                    },
                );
                let path: Vec<String> = points
                    .enumerate()
                    .map(|(at, (a, b))| {
                        let word = if at == 0 { 'M' } else { 'L' };
                        format!("{word}{:.1} {:.1}", x(*a), y(*b))
                    })
                    .collect();
                let path = path.join("");
                format!(
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}>{name}</path>"
                )
            }
            Mark::Point => {
                let one = |(a, b): &(f64, f64)| {
                    let (cx, cy) = (x(*a), y(*b));
                    format!(
                        "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\" fill=\"{BLUE}\">{name}</circle>"
                    )
                };
                points.map(one).collect()
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
type AxisScale<'a> = ((f64, f64), &'a dyn Fn(f64) -> f64);

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
    fn marks_are_round_numbers_within_the_range() {
        let words = |low, high| {
            let (places, digits) = rounded(low, high);
            let words = places.iter().map(|place| format!("{place:.digits$}"));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(0.0, 1.0), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(words(-0.057, 0.04), "-0.04 -0.02 0.00 0.02 0.04");
        assert_eq!(words(0.0, 21_692.0), "0 5000 10000 15000 20000");
        assert_eq!(words(-4.8, 3.4), "-4 -2 0 2");
        assert_eq!(
            words(0.012_3, 0.012_8),
            "0.0123 0.0124 0.0125 0.0126 0.0127 0.0128"
        );
    }

    #[test]
    fn names_of_lines_stand_apart() {
        let line = |label: &str, end: f64| Series {
            label: label.to_owned(),
            mark: Mark::Line,
            points: vec![(0.0, 0.0), (1.0, end)],
            weights: Vec::new(),
        };
        let chart = Chart {
            title: "Ends".to_owned(),
            x: "x".to_owned(),
            y: "y".to_owned(),
            series: ["one", "two", "three"].map(|name| line(name, 1.0)).to_vec(),
            log_y: false,
        };
        let svg = chart.svg();
        let at = |name: &str| -> f64 {
            let text = svg
                .lines()
                .find(|line| line.ends_with(&format!(">{name}</text>")));
            let (_, rest) = text.unwrap().split_once("y=\"").unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let mut places = ["one", "two", "three"].map(at);
        places.sort_by(f64::total_cmp);
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LINE - 0.1),
            "{svg}"
        );
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
                series: [
                    Mark::Line,
                    Mark::Dot,
                    Mark::Bar,
                    Mark::Other,
                    Mark::Point,
                    Mark::Rule,
                ]
                .map(series)
                .to_vec(),
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
