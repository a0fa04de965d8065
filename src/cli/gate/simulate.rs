//! `clover gate simulate`: what a registered design does to streams of known effect.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::SimulateArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::prereg;
use crate::cli::ui;
use crate::cli::ui::Progress;
use crate::event::payload::manifest::HypothesisKind;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Noise;
use crate::event::payload::manifest::Test;
use crate::ground::ambient;
use crate::ground::seed::SeedTree;
use crate::ground::shell;
use crate::num::Micro;
use crate::projection::manifests::Family;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::stats::eprocess::Design;
use crate::stats::eprocess::Looks;
use crate::stats::eprocess::Stratum;
use crate::view::View;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::simulate;
use crate::workflow::gates::simulate::Mean;
use crate::workflow::gates::simulate::Paths;
use crate::workflow::gates::simulate::Plan;
use crate::workflow::gates::simulate::Shape;

/// Streams beyond which nothing more is learnt.
const STREAMS_MAX: u64 = 1_000_000;
/// Streams that are simulated unasked.
const STREAMS: u64 = 2_000;
/// Units of a line that are simulated unasked: half a minute of one core at most.
const UNITS: u64 = 50_000_000;
/// Units of a line that are simulated at all: an hour or two of one core.
const UNITS_MAX: u64 = 10_000_000_000;

/// What is asked: how many gates a line, from which seed, and how far it has come.
struct Asked<'w> {
    streams: usize,
    seed: u64,
    told: Told<'w>,
}

/// How many of all gates are done.
struct Told<'w> {
    done: AtomicU64,
    all: u64,
    progress: Mutex<Progress<'w>>,
}

impl Told<'_> {
    fn one(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        // A thread that cannot show progress at once goes on without.
        if let Ok(mut progress) = self.progress.try_lock() {
            progress.at(done, self.all);
        }
    }
}

/// Gates of a line, for a design of at most so many units.
fn streams(args: &SimulateArgs, units: u64) -> Result<u64, CliError> {
    let most = (UNITS_MAX / units.max(1)).clamp(1, STREAMS_MAX);
    match args.streams {
        None => Ok((UNITS / units.max(1)).clamp(1, STREAMS)),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(asked) => {
            let why = if most < STREAMS_MAX {
                format!(" of {} units each", ui::thousands(units))
            } else {
                String::new()
            };
            let message = format!("--streams {asked}: expected 1 to {most}{why}");
            Err(CliError::usage(message, "clover gate simulate --help"))
        }
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &SimulateArgs) -> Result<View, CliError> {
    // What no design takes is refused before one is looked for.
    streams(args, 1)?;
    let (_, ledger, view) = home::view(ctx)?;
    let manifests = view.state(&ledger).fold::<Manifests>();
    let (manifest, next) = match (&args.plan, &args.id) {
        (Some(file), _) => {
            let next = format!(
                "clover prereg sign {} --countersign",
                shell::word(&file.display())
            );
            (prereg::manifest_of(ctx, file)?, next)
        }
        (None, id) => registered(manifests, id.as_deref().unwrap_or_default())?,
    };
    let (manifest, id) = (&manifest, &manifest.manifest);
    let Some(test) = &manifest.test else {
        return Err(CliError::refused(format!("{id} is no gate's"), next));
    };
    let family = evidence::family_named(manifests, manifest);
    let design = design::of(manifest, test, family, None, design::looks(test));
    let design = design.map_err(|wrong| {
        let message = format!("{id}: expected {}, found {}", wrong.expected, wrong.found);
        CliError::refused(message, next.clone())
    })?;
    let lines = effects(args, manifest, test);
    let predicted = &design.terms().strata[..];
    let asked = asked(ctx, args, &design, &lines)?;
    let drawn = Drawn::of(&asked, (&design, predicted), &lines, |looks| {
        design::of(manifest, test, family, None, looks).ok()
    });
    let bar = design::ln_stop(test.alpha_micro.value(), family);
    let chart = drawn.chart(&args.chart, (lines[0].1, bar))?;
    let plain = without_strata(manifest, test, family);
    let (head, mut rows, mut found) = table(&asked, (&design, plain.as_ref()), &lines);
    let (more, alike) = same_arms(&asked, &design, manifest);
    rows.extend(more);
    found.extend(alike);
    let streams = asked.streams;
    drop(asked);
    if let Some(path) = &args.svg {
        ambient::replace(&ctx.path(path), chart.svg().as_bytes(), false)?;
    }
    let mut answer = View::untyped(ui::table(&head, rows), json!({"gate": id.as_str()}));
    answer.line(format!(
        "{streams} gates a line · at the null, shown is the rate of false claims, at most alpha {}",
        test.alpha_micro
    ));
    said_of_streams(&mut answer, args, streams, &design);
    say_alike(&mut answer, (manifest, test), (&found, streams));
    if let Some(line) = worth(&found) {
        answer.source(ui::wrapped(&line));
    }
    if let (None, Some(of)) = (family, &manifest.multiplicity) {
        answer.line(format!(
            "family {} is not open: claims are shown past 1/alpha",
            of.family
        ));
    }
    drawn.lines(&mut answer, bar);
    answer.facts_mut()["paths"] = drawn.data();
    answer.facts_mut()["streams"] = streams.into();
    answer.facts_mut()["seed"] = args.seed.into();
    answer.facts_mut()["simulated"] = found.into();
    Ok(answer.with_next(next))
}

/// The effects that are simulated, by name, the null first.
fn effects(args: &SimulateArgs, manifest: &Manifest, test: &Test) -> Vec<(&'static str, i64)> {
    let null = match manifest.hypothesis.kind {
        HypothesisKind::Kill | HypothesisKind::Measure => 0,
        _ => test.null_margin_micro.value(),
    };
    let worse = manifest.hypothesis.kind == HypothesisKind::Kill;
    let designed = test.delta_design_micro.map(Micro::value);
    let designed = designed.map(|effect| if worse { -effect } else { effect });
    let planned = args.effect.or(designed);
    let planned = planned.map(|effect| ("effect", effect));
    std::iter::once(("null", null)).chain(planned).collect()
}

/// What is asked of a design, with a word on standard error from one second on.
fn asked<'w>(
    ctx: &'w mut Ctx<'_>,
    args: &SimulateArgs,
    design: &Design,
    lines: &[(&str, i64)],
) -> Result<Asked<'w>, CliError> {
    let streams = streams(args, design.terms().max_n)?;
    // Of every line its shapes, where there are strata thrice with one more, and those of the same arms.
    let shapes = Shape::ALL.len();
    let rows = match design.terms().strata.len() {
        0 => lines.len() * shapes + shapes,
        _ => lines.len() * 3 * (shapes + 1) + shapes,
    };
    let paths = streams.min(simulate::paths_of(design).0 as u64);
    let told = Told {
        done: AtomicU64::new(0),
        all: rows as u64 * streams + lines.len() as u64 * paths,
        progress: Mutex::new(ctx.progress("gates simulated")),
    };
    Ok(Asked {
        streams: usize::try_from(streams).unwrap_or(usize::MAX),
        seed: args.seed,
        told,
    })
}

/// How far the rates of so many gates may be off, and why they are so few.
fn said_of_streams(answer: &mut View, args: &SimulateArgs, streams: usize, design: &Design) {
    let alpha = design.alpha();
    let error = (alpha * (1.0 - alpha) / streams as f64).sqrt();
    answer.facts_mut()["monte_carlo_error"] = error.into();
    answer.line(format!(
        "standard error of such a rate at alpha, from {streams} gates: {error:.4}"
    ));
    if args.streams.is_none() && (streams as u64) < STREAMS {
        answer.line(format!(
            "fewer than {STREAMS} gates, for each may take {} units: --streams asks for more",
            ui::thousands(design.terms().max_n)
        ));
    }
}

/// What the gate says of two arms that are the same: their scores differ by the judge's noise alone. Where the scores are
/// registered to be without noise, they do not differ.
fn same_arms(
    args: &Asked<'_>,
    design: &Design,
    manifest: &Manifest,
) -> (Vec<Vec<String>>, Vec<Value>) {
    let noise = manifest.metric.as_ref().and_then(|metric| metric.noise);
    let shapes = match noise {
        Some(Noise::None) => vec![Shape::Same],
        None => Shape::ALL.to_vec(),
    };
    let strata: Vec<_> = alike(&design.terms().strata);
    let named = (!strata.is_empty()).then_some("alike");
    let each = shapes.into_iter();
    each.map(|shape| {
        let mean = Mean::Expected;
        row(args, (design, &strata), ((A_A, 0), named), (shape, mean))
    })
    .unzip()
}

/// Strata of which none is predicted to differ.
fn alike(strata: &[Stratum]) -> Vec<Stratum> {
    let alike = strata.iter().map(|one| Stratum {
        predicted: 0,
        ..*one
    });
    alike.collect()
}

/// The name of lines of two arms that are the same.
const A_A: &str = "A/A";

/// The largest share of gates that show the claim of two arms that are the same.
fn shown_alike(found: &[Value]) -> f64 {
    let lines = found.iter().filter(|one| one["line"] == A_A);
    let shown = lines.filter_map(|one| one["shown"].as_f64());
    shown.fold(0.0, f64::max)
}

/// Adds how often the claim is shown of two arms that are the same.
fn say_alike(
    answer: &mut View,
    (manifest, test): (&Manifest, &Test),
    (found, streams): (&[Value], usize),
) {
    let most = shown_alike(found);
    let words = alike_in_words(manifest, test, most, streams);
    answer.source(ui::wrapped(&words));
    answer.facts_mut()["shown_of_same_arms"] = json!(most);
}

fn alike_in_words(manifest: &Manifest, test: &Test, most: f64, streams: usize) -> String {
    let alpha = test.alpha_micro.value() as f64 / 1e6;
    let kind = manifest.hypothesis.kind;
    let holds = match kind {
        HypothesisKind::Noninferior | HypothesisKind::Equivalent => true,
        HypothesisKind::Promote | HypothesisKind::Different => test.null_margin_micro.value() < 0,
        HypothesisKind::Kill | HypothesisKind::Measure => false,
    };
    if holds {
        return format!(
            "A/A: of two arms that are the same the claim is true, and it is shown in {most:.4} of gates at most"
        );
    }
    let told = format!(
        "A/A: of two arms that are the same the claim is shown in {most:.4} of gates at most"
    );
    // Four Monte Carlo errors above alpha are no news.
    let error = (alpha * (1.0 - alpha) / streams.max(1) as f64).sqrt();
    if most <= alpha + 4.0 * error {
        return told;
    }
    format!(
        "{told}. WARNING: this plan is about exactly its recorded scores, and noise in them looks like a difference. Register estimand.population superpopulation and test.without_replacement false"
    )
}

/// The design without its control variate, where it has one.
fn without_strata(manifest: &Manifest, test: &Test, family: Option<&Family>) -> Option<Design> {
    test.control_variate.as_ref()?;
    let mut plain = manifest.clone();
    plain.test.as_mut()?.control_variate = None;
    design::of(&plain, test, family, None, design::looks(test)).ok()
}

/// What is simulated, as columns, rows and objects.
fn table(
    args: &Asked<'_>,
    (design, plain): (&Design, Option<&Design>),
    lines: &[(&str, i64)],
) -> (Vec<&'static str>, Vec<Vec<String>>, Vec<Value>) {
    let mut head = vec![
        "line",
        "effect",
        "differences",
        "shown",
        "ended",
        "median",
        "p90",
        "mean units",
    ];
    let (rows, found) = if design.terms().strata.is_empty() {
        runs(args, (design, &[]), (lines, None))
    } else {
        head.push("strata");
        with_strata(args, (design, plain), lines)
    };
    (head, rows, found)
}

/// The version of a manifest that is in force, and where to read it.
fn registered(manifests: &Manifests, id: &str) -> Result<(Manifest, String), CliError> {
    let id = gate_id(id)?;
    let next = format!("clover prereg show {id}", id = shell::word(&id));
    let record = manifests.by_id.get(&id);
    let version = record
        .and_then(Record::in_force)
        .ok_or_else(|| CliError::not_found(format!("no manifest {id} in force"), &next))?;
    Ok((version.manifest.clone(), next))
}

/// Paths under the null and under the effect, of differences that are all or nothing: no others spread as wide.
struct Drawn {
    paths: Vec<(String, i64, Paths)>,
}

impl Drawn {
    fn of(
        args: &Asked<'_>,
        (design, strata): (&Design, &[Stratum]),
        lines: &[(&str, i64)],
        at: impl Fn(Looks) -> Option<Design>,
    ) -> Self {
        let shown = at(Looks::At(simulate::places(design)));
        let path = |(name, effect): &(&str, i64)| {
            let label = format!("gate/simulate/{name}/paths");
            let plan = Plan {
                effect: *effect,
                mean: Mean::Recorded,
                seed: SeedTree::of_number(args.seed).child(&label).seed(),
                shape: Shape::TwoPoint,
                strata,
                streams: args.streams,
            };
            let found = simulate::paths(design, shown.as_ref()?, plan, &|| args.told.one());
            Some(((*name).to_owned(), *effect, found))
        };
        Self {
            paths: lines.iter().filter_map(path).collect(),
        }
    }

    fn chart(&self, name: &str, (margin, bar): (i64, f64)) -> Result<Chart, CliError> {
        let line = |label: String, mark: Mark, units: &[u64], values: &[f64]| Series {
            label,
            mark,
            points: units
                .iter()
                .zip(values)
                .map(|(n, value)| (*n as f64, *value))
                .collect(),
            weights: Vec::new(),
        };
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
            other => {
                let message = format!("--chart {other}: expected wealth or interval");
                return Err(CliError::usage(message, "clover gate simulate --help"));
            }
        };
        let mut series = Vec::new();
        for (of, _, paths) in &self.paths {
            let mark = if of == "null" {
                Mark::Other
            } else {
                Mark::Line
            };
            if name == "wealth" {
                for (what, values) in ["first decile", "median", "ninth decile"]
                    .iter()
                    .zip(&paths.ln_wealth)
                {
                    series.push(line(format!("{of}: {what}"), mark, &paths.units, values));
                }
            } else {
                for (what, values) in ["lowest", "highest"].iter().zip(&paths.interval) {
                    series.push(line(
                        format!("{of}: median {what}"),
                        mark,
                        &paths.units,
                        values,
                    ));
                }
            }
        }
        let units = self.paths.first().map(|(.., paths)| &paths.units[..]);
        let units = units.unwrap_or_default();
        let bar = vec![level.1; units.len()];
        series.push(line(level.0.to_owned(), Mark::Rule, units, &bar));
        Ok(Chart {
            title: title.to_owned(),
            x: "units observed".to_owned(),
            y: y.to_owned(),
            series,
            log_y: false,
        })
    }

    /// The same in a terminal: median paths.
    fn lines(&self, answer: &mut View, bar: f64) {
        for (name, _, paths) in &self.paths {
            let line = spark::line(&paths.ln_wealth[1], (0.0, bar));
            answer.line(format!(
                "{name:<6} wealth    {line}  0 to the end at {bar:.2}, median"
            ));
            let [low, high] = &paths.interval;
            let least = low.iter().copied().fold(0.0, f64::min);
            let most = high.iter().copied().fold(0.0, f64::max);
            for (end, values) in [("<", high), (">", low)] {
                let line = spark::line(values, (least, most));
                answer.line(format!(
                    "{name:<6} effect {end}  {line}  {least:+.3} to {most:+.3}, median"
                ));
            }
        }
    }

    fn data(&self) -> Value {
        let each = self.paths.iter().map(|(name, effect, paths)| {
            json!({
                "line": name, "effect_micro": effect, "shape": Shape::TwoPoint.as_str(), "units": paths.units,
                "streams": paths.streams,
                "ln_wealth": {"p10": paths.ln_wealth[0], "p50": paths.ln_wealth[1], "p90": paths.ln_wealth[2]},
                "interval": {"low": paths.interval[0], "high": paths.interval[1]},
            })
        });
        each.collect()
    }
}

/// The same of a design with a control variate: of strata that are as predicted and of strata that are alike, and of the
/// first by the design without.
fn with_strata(
    args: &Asked<'_>,
    (design, plain): (&Design, Option<&Design>),
    lines: &[(&str, i64)],
) -> (Vec<Vec<String>>, Vec<Value>) {
    let predicted = &design.terms().strata;
    let alike = alike(predicted);
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for line in lines {
        let cases = [
            (Some(design), predicted, "as predicted"),
            (Some(design), &alike, "alike"),
            (plain, predicted, "as predicted, not used"),
        ];
        for (design, strata, name) in cases {
            let Some(design) = design else { continue };
            let (more, objects) = runs(args, (design, strata), (&[*line], Some(name)));
            rows.extend(more);
            found.extend(objects);
        }
    }
    (rows, found)
}

/// Mean units with a control variate that comes true, and without, by shape; nothing where there is none.
fn worth(found: &[Value]) -> Option<String> {
    let of = |strata: &str| {
        let its = found
            .iter()
            .filter(|one| one["line"] == "effect" && one["strata"] == strata);
        let units = its.map(|one| (one["shape"].as_str(), one["mean_units"].as_f64()));
        units.collect::<Vec<_>>()
    };
    let (with, without) = (of("as predicted"), of("as predicted, not used"));
    let pairs = with
        .iter()
        .zip(&without)
        .filter_map(|((shape, with), (_, without))| {
            Some(format!("{} {:.1}, {:.1}", (*shape)?, (*with)?, (*without)?))
        });
    let pairs: Vec<_> = pairs.collect();
    let text = "mean units at the effect with the control variate, and without";
    (!pairs.is_empty()).then(|| format!("{text}: {}", pairs.join(" · ")))
}

/// A row and an object for each effect and shape, named by how its strata are.
fn runs(
    args: &Asked<'_>,
    (design, strata): (&Design, &[Stratum]),
    (lines, named): (&[(&str, i64)], Option<&str>),
) -> (Vec<Vec<String>>, Vec<Value>) {
    let steady = named.map(|_| Shape::Steady);
    let shapes = Shape::ALL.into_iter().chain(steady);
    let each = lines
        .iter()
        .flat_map(|line| shapes.clone().map(move |shape| (line, shape)));
    let mean = Mean::Recorded;
    each.map(|(line, shape)| row(args, (design, strata), (*line, named), (shape, mean)))
        .unzip()
}

/// A row and an object of one effect and shape.
fn row(
    args: &Asked<'_>,
    (design, strata): (&Design, &[Stratum]),
    ((name, effect), named): ((&str, i64), Option<&str>),
    (shape, mean): (Shape, Mean),
) -> (Vec<String>, Value) {
    let label = format!("gate/simulate/{name}/{}", shape.as_str());
    let plan = Plan {
        effect,
        mean,
        seed: SeedTree::of_number(args.seed).child(&label).seed(),
        shape,
        strata,
        streams: args.streams,
    };
    let done = simulate::run_told(design, plan, &|| args.told.one());
    let rank = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let mut row = vec![
        name.to_owned(),
        format!("{:+.6}", effect as f64 / 1e6),
        shape.as_str().to_owned(),
        format!("{:.4}", done.shown),
        format!("{:.4}", done.ended),
        rank(done.median),
        rank(done.p90),
        format!("{:.1}", done.mean_units),
    ];
    let mut object = json!({
        "line": name, "effect_micro": effect, "shape": shape.as_str(), "shown": done.shown,
        "ended": done.ended, "median": done.median, "p90": done.p90, "mean_units": done.mean_units,
    });
    if let Some(named) = named {
        row.push(named.to_owned());
        object["strata"] = named.into();
    }
    (row, object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_designs_have_fewer_gates_unasked() {
        let asked = |streams| SimulateArgs {
            id: None,
            plan: None,
            streams,
            effect: None,
            seed: 1,
            svg: None,
            chart: String::new(),
        };
        let of = |count, units| streams(&asked(count), units).ok();
        assert_eq!(of(None, 200), Some(2_000));
        assert_eq!(of(None, 25_000), Some(2_000));
        assert_eq!(of(None, 1_000_000), Some(50));
        assert_eq!(of(Some(10_000), 1_000_000), Some(10_000));
        assert_eq!(of(Some(10_001), 1_000_000), None);
        assert_eq!((of(Some(0), 1), of(Some(u64::MAX), 1)), (None, None));
    }
}
