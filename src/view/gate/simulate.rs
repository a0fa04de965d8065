//! What a gate's design does to streams of known effect.

use serde::Serialize;

use crate::event::id::ManifestId;
use crate::event::payload::manifest::HypothesisKind;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Test;
use crate::projection::manifests::Family;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::view::View;
use crate::view::text::thousands;
use crate::workflow::gates::design;
use crate::workflow::gates::simulate;
use crate::workflow::gates::simulate::Paths;
use crate::workflow::gates::simulate::Shape;

/// What came of the gates of one effect and shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SimulatedLine {
    /// The mean effect, in millionths.
    pub effect_micro: i64,
    /// Share of gates that ended by harm or futility.
    pub ended: f64,
    /// Which effect: `null`, `effect`, or `A/A` of two arms that are the same.
    pub line: String,
    /// Mean number of units observed.
    pub mean_units: f64,
    /// Units after which half of the gates had shown the claim; `null` where fewer showed it.
    pub median: Option<u64>,
    /// Units after which nine tenths of the gates had shown the claim; `null` where fewer showed it.
    pub p90: Option<u64>,
    /// How differences are distributed, in one word.
    pub shape: &'static str,
    /// Share of gates that show the claim.
    pub shown: f64,
    /// How the strata are, in words; `null` of a design without a control variate.
    pub strata: Option<&'static str>,
}

/// Quantiles over simulated gates, at each number of units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// First decile.
    pub p10: Vec<f64>,
    /// Median.
    pub p50: Vec<f64>,
    /// Ninth decile.
    pub p90: Vec<f64>,
}

/// Median ends of the confidence sequence, at each number of units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MedianEnds {
    /// The upper end, in units of the metric.
    pub high: Vec<f64>,
    /// The lower end, in units of the metric.
    pub low: Vec<f64>,
}

/// Paths of gates under one effect, of differences that are all or nothing: no others spread as wide.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SimulatedPaths {
    /// The mean effect, in millionths.
    pub effect_micro: i64,
    /// The confidence sequence of the mean effect.
    pub interval: MedianEnds,
    /// Which effect: `null` or `effect`.
    pub line: String,
    /// Log wealth of the claim.
    pub ln_wealth: Quantiles,
    /// How differences are distributed, in one word.
    pub shape: &'static str,
    /// Gates that the paths are of.
    pub streams: u64,
    /// Numbers of units, ascending.
    pub units: Vec<u64>,
}

/// What a design does to streams of known effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateSimulation {
    /// The gate: its manifest's name.
    pub gate: ManifestId,
    /// Standard error of a rate at alpha from so many gates.
    pub monte_carlo_error: f64,
    /// Paths under each effect.
    pub paths: Vec<SimulatedPaths>,
    /// The seed.
    pub seed: u64,
    /// The largest share of gates that show the claim of two arms that are the same.
    pub shown_of_same_arms: f64,
    /// What came of each effect and shape.
    pub simulated: Vec<SimulatedLine>,
    /// Gates for each line.
    pub streams: u64,
}

/// Plots by the names under which they are asked for.
pub const CHARTS: [&str; 2] = ["wealth", "interval"];
/// The name of lines of two arms that are the same.
pub const A_A: &str = "A/A";

impl SimulatedLine {
    /// Of one effect and shape.
    pub fn new(
        (name, effect): (&str, i64),
        shape: Shape,
        strata: Option<&'static str>,
        done: &simulate::SimulationSummary,
    ) -> Self {
        Self {
            effect_micro: effect,
            ended: done.ended,
            line: name.to_owned(),
            mean_units: done.mean_units,
            median: done.median,
            p90: done.p90,
            shape: shape.as_str(),
            shown: done.shown,
            strata,
        }
    }
}

impl SimulatedPaths {
    /// Of one effect and shape.
    pub fn new((name, effect): (&str, i64), shape: Shape, found: Paths) -> Self {
        let [p10, p50, p90] = found.ln_wealth;
        let [low, high] = found.interval;
        Self {
            effect_micro: effect,
            interval: MedianEnds { high, low },
            line: name.to_owned(),
            ln_wealth: Quantiles { p10, p50, p90 },
            shape: shape.as_str(),
            streams: found.streams as u64,
            units: found.units,
        }
    }
}

/// What was simulated of which plan.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// The plan.
    pub manifest: &'a Manifest,
    /// Its test.
    pub test: &'a Test,
    /// Its family, where it is open.
    pub family: Option<&'a Family>,
    /// Most units of a gate.
    pub units_max: u64,
    /// The number of gates of which there are fewer, for each may take many units; `None` where it was asked for.
    pub fewer_than: Option<u64>,
    /// The effect of the first line, in millionths.
    pub null: i64,
    /// What was found.
    pub found: &'a GateSimulation,
}

/// The largest share of gates that show the claim of two arms that are the same.
pub fn shown_of_same_arms(found: &[SimulatedLine]) -> f64 {
    let lines = found.iter().filter(|one| one.line == A_A);
    lines.map(|one| one.shown).fold(0.0, f64::max)
}

impl Simulation<'_> {
    /// The logarithm past which the gate ends.
    fn bar(&self) -> f64 {
        design::ln_stop(self.test.alpha_micro.value(), self.family)
    }

    /// A plot by its name, `wealth` or `interval`; there is no other.
    pub fn chart(&self, name: &str) -> Option<Chart> {
        chart(&self.found.paths, name, (self.null, self.bar()))
    }

    /// The answer; `next` is what to type next.
    pub fn view(&self, next: String) -> View {
        let (found, test) = (self.found, self.test);
        let mut view = View::of(found);
        table(&mut view, &found.simulated);
        let streams = found.streams;
        view.line(format!(
            "{streams} gates a line · at the null, shown is the rate of false claims, at most alpha {}",
            test.alpha_micro
        ));
        view.line(format!(
            "standard error of such a rate at alpha, from {streams} gates: {:.4}",
            found.monte_carlo_error
        ));
        if let Some(unasked) = self.fewer_than {
            view.line(format!(
                "fewer than {unasked} gates, for each may take {} units: --streams asks for more",
                thousands(self.units_max)
            ));
        }
        view.sentence(self.alike_in_words());
        if let Some(line) = worth(&found.simulated) {
            view.sentence(line);
        }
        if let (None, Some(of)) = (self.family, &self.manifest.multiplicity) {
            view.line(format!(
                "family {} is not open: claims are shown past 1/alpha",
                of.family
            ));
        }
        self.sparks(&mut view);
        view.with_next(next)
    }

    /// How often the claim is shown of two arms that are the same.
    fn alike_in_words(&self) -> String {
        let most = self.found.shown_of_same_arms;
        let alpha = self.test.alpha_micro.value() as f64 / 1e6;
        let holds = match self.manifest.hypothesis.kind {
            HypothesisKind::Noninferior | HypothesisKind::Equivalent => true,
            HypothesisKind::Promote | HypothesisKind::Different => {
                self.test.null_margin_micro.value() < 0
            }
            HypothesisKind::Kill | HypothesisKind::Measure => false,
        };
        if holds {
            return format!(
                "A/A: of two arms that are the same the claim is true, and it is shown in {most:.4} of gates, in the worst of three shapes of noise"
            );
        }
        let told = format!(
            "A/A: of two arms that are the same the claim is shown in {most:.4} of gates, in the worst of three shapes of noise"
        );
        // Four Monte Carlo errors above alpha are no news.
        let error = (alpha * (1.0 - alpha) / self.found.streams.max(1) as f64).sqrt();
        if most <= alpha + 4.0 * error {
            return told;
        }
        format!(
            "{told}. WARNING: this plan is about exactly its recorded scores, and noise in them looks like a difference. Register estimand.population superpopulation and test.without_replacement false"
        )
    }

    /// Median paths as lines of blocks.
    fn sparks(&self, view: &mut View) {
        let bar = self.bar();
        let mut lines = Vec::new();
        for of in &self.found.paths {
            let name = &of.line;
            let line = spark::line(&of.ln_wealth.p50, (0.0, bar));
            lines.push(format!(
                "{name:<6} wealth    {line}  0 to the end at {bar:.2}, median"
            ));
            let MedianEnds { high, low } = &of.interval;
            let least = low.iter().copied().fold(0.0, f64::min);
            let most = high.iter().copied().fold(0.0, f64::max);
            for (end, values) in [("<", high), (">", low)] {
                let line = spark::line(values, (least, most));
                lines.push(format!(
                    "{name:<6} effect {end}  {line}  {least:+.3} to {most:+.3}, median"
                ));
            }
        }
        if lines.is_empty() {
            return;
        }
        let drawn = CHARTS.map(|name| self.chart(name).map(|of| of.svg()));
        let drawn: Option<String> = drawn.into_iter().collect();
        view.chart(lines, drawn);
    }
}

fn table(view: &mut View, found: &[SimulatedLine]) {
    let has_strata = found.iter().any(|of| of.strata.is_some());
    let rank = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let rows = found.iter().map(|of| {
        let cells = [
            of.line.clone(),
            format!("{:+.6}", of.effect_micro as f64 / 1e6),
            of.shape.to_owned(),
            format!("{:.4}", of.shown),
            format!("{:.4}", of.ended),
            rank(of.median),
            rank(of.p90),
            format!("{:.1}", of.mean_units),
        ];
        let strata = of.strata.map(str::to_owned);
        cells.into_iter().chain(strata).collect()
    });
    let head = [
        "line",
        "effect",
        "differences",
        "shown",
        "ended",
        "median",
        "p90",
        "mean units",
        "strata",
    ];
    let columns = if has_strata {
        head.len()
    } else {
        head.len() - 1
    };
    view.table(&head[..columns], rows);
}

/// Mean units with a control variate that comes true, and without, by shape; nothing where there is none.
fn worth(found: &[SimulatedLine]) -> Option<String> {
    let of = |strata: &str| {
        let its = found
            .iter()
            .filter(|one| one.line == "effect" && one.strata == Some(strata));
        its.collect::<Vec<_>>()
    };
    let (with, without) = (of("as predicted"), of("as predicted, not used"));
    let pairs = with.iter().zip(&without);
    let pairs = pairs.map(|(with, without)| {
        format!(
            "{} {:.1}, {:.1}",
            with.shape, with.mean_units, without.mean_units
        )
    });
    let pairs: Vec<_> = pairs.collect();
    let text = "mean units at the effect with the control variate, and without";
    (!pairs.is_empty()).then(|| format!("{text}: {}", pairs.join(" · ")))
}

fn series(label: String, mark: Mark, units: &[u64], values: &[f64]) -> Series {
    let points = units.iter().zip(values);
    Series {
        label,
        mark,
        points: points.map(|(n, value)| (*n as f64, *value)).collect(),
        weights: Vec::new(),
    }
}

fn chart(paths: &[SimulatedPaths], name: &str, (margin, bar): (i64, f64)) -> Option<Chart> {
    let (title, y, level) = match name {
        "wealth" => (
            "Log wealth of the claim, simulated",
            "log e-value",
            ("ends past", bar),
        ),
        "interval" => {
            let margin = margin as f64 / 1e6;
            let title = "Confidence sequence of the mean effect, simulated";
            (title, "mean effect", ("null margin", margin))
        }
        _ => return None,
    };
    let mut all = Vec::new();
    for of in paths {
        let mark = if of.line == "null" {
            Mark::Other
        } else {
            Mark::Line
        };
        let (wealth, ends) = (&of.ln_wealth, &of.interval);
        let lines = if name == "wealth" {
            vec![
                ("first decile", &wealth.p10),
                ("median", &wealth.p50),
                ("ninth decile", &wealth.p90),
            ]
        } else {
            vec![("median lowest", &ends.low), ("median highest", &ends.high)]
        };
        for (what, values) in lines {
            all.push(series(
                format!("{}: {what}", of.line),
                mark,
                &of.units,
                values,
            ));
        }
    }
    let units = paths.first().map(|of| &of.units[..]).unwrap_or_default();
    let bar = vec![level.1; units.len()];
    all.push(series(level.0.to_owned(), Mark::Rule, units, &bar));
    Some(Chart {
        title: title.to_owned(),
        x: "units observed".to_owned(),
        y: y.to_owned(),
        series: all,
        log_y: false,
    })
}
