//! `clover gate simulate`: what a registered design does to streams of known effect.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

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
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::Manifests;
use crate::stats::eprocess::Design;
use crate::stats::eprocess::Looks;
use crate::stats::eprocess::Stratum;
use crate::view::View;
use crate::view::gate::simulate::A_A;
use crate::view::gate::simulate::CHARTS;
use crate::view::gate::simulate::GateSimulation;
use crate::view::gate::simulate::SimulatedLine;
use crate::view::gate::simulate::SimulatedPaths;
use crate::view::gate::simulate::Simulation;
use crate::view::gate::simulate::shown_of_same_arms;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::simulate;
use crate::workflow::gates::simulate::Mean;
use crate::workflow::gates::simulate::Shape;
use crate::workflow::gates::simulate::SimulationPlan;

/// Streams beyond which nothing more is learnt.
const STREAMS_MAX: u64 = 1_000_000;
/// Streams that are simulated unasked.
const STREAMS: u64 = 2_000;
/// Units of a line that are simulated unasked: half a minute of one core at most.
const UNITS: u64 = 50_000_000;
/// Units of a line that are simulated at all: an hour or two of one core.
const UNITS_MAX: u64 = 10_000_000_000;

/// What is asked: how many gates a line, from which seed, and how far it has come.
struct SimulationRequest<'w> {
    streams: usize,
    seed: u64,
    told: SimulationProgress<'w>,
}

/// How many of all gates are done.
struct SimulationProgress<'w> {
    done: AtomicU64,
    all: u64,
    progress: Mutex<Progress<'w>>,
}

impl SimulationProgress<'_> {
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
    if !CHARTS.contains(&args.chart.as_str()) {
        let message = format!("--chart {}: expected wealth or interval", args.chart);
        return Err(CliError::usage(message, "clover gate simulate --help"));
    }
    let lines = effects(args, manifest, test);
    if args.effect.is_none() && test.delta_design_micro.is_none() {
        ctx.note(&format!(
            "{id} plans no effect: a mean effect of {} is assumed, 0.05 beyond the null; --effect MICRO simulates another",
            Micro::new(lines[1].1).unwrap_or_default()
        ));
    }
    let asked = asked(ctx, args, &design, &lines)?;
    let streams = asked.streams as u64;
    let shown = Looks::At(simulate::places(&design));
    let shown = design::of(manifest, test, family, None, shown).ok();
    let paths = shown.map_or(Vec::new(), |shown| paths(&asked, (&design, &shown), &lines));
    let plain = without_strata(manifest, test, family);
    let mut simulated = table(&asked, (&design, plain.as_ref()), &lines);
    simulated.extend(same_arms(&asked, &design, manifest));
    drop(asked);
    let alpha = design.alpha();
    let found = GateSimulation {
        gate: id.clone(),
        monte_carlo_error: (alpha * (1.0 - alpha) / streams as f64).sqrt(),
        paths,
        seed: args.seed,
        shown_of_same_arms: shown_of_same_arms(&simulated),
        simulated,
        streams,
    };
    let simulation = Simulation {
        manifest,
        test,
        family,
        units_max: design.terms().max_n,
        fewer_than: (args.streams.is_none() && streams < STREAMS).then_some(STREAMS),
        null: lines[0].1,
        found: &found,
    };
    if let (Some(path), Some(chart)) = (&args.svg, simulation.chart(&args.chart)) {
        ambient::replace(&ctx.path(path), chart.svg().as_bytes(), false)?;
    }
    Ok(simulation.view(next))
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
    let beyond = if worse { -ASSUMED } else { ASSUMED };
    let planned = args.effect.or(designed);
    let planned = planned.unwrap_or_else(|| null.saturating_add(beyond));
    vec![("null", null), ("effect", planned)]
}

/// How far beyond the null an effect is simulated that nobody planned, in millionths.
const ASSUMED: i64 = 50_000;

/// What is asked of a design, with a word on standard error from one second on.
fn asked<'w>(
    ctx: &'w mut Ctx<'_>,
    args: &SimulateArgs,
    design: &Design,
    lines: &[(&str, i64)],
) -> Result<SimulationRequest<'w>, CliError> {
    let streams = streams(args, design.terms().max_n)?;
    // Of every line its shapes, where there are strata thrice with one more, and those of the same arms.
    let shapes = Shape::ALL.len();
    let rows = match design.terms().strata.len() {
        0 => lines.len() * shapes + shapes,
        _ => lines.len() * 3 * (shapes + 1) + shapes,
    };
    let paths = streams.min(simulate::paths_of(design).0 as u64);
    let told = SimulationProgress {
        done: AtomicU64::new(0),
        all: rows as u64 * streams + lines.len() as u64 * paths,
        progress: Mutex::new(ctx.progress("gates simulated")),
    };
    Ok(SimulationRequest {
        streams: usize::try_from(streams).unwrap_or(usize::MAX),
        seed: args.seed,
        told,
    })
}

/// What the gate says of two arms that are the same: their scores differ by the judge's noise alone. Where the scores are
/// registered to be without noise, they do not differ.
fn same_arms(
    args: &SimulationRequest<'_>,
    design: &Design,
    manifest: &Manifest,
) -> Vec<SimulatedLine> {
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
        line(args, (design, &strata), ((A_A, 0), named), (shape, mean))
    })
    .collect()
}

/// Strata of which none is predicted to differ.
fn alike(strata: &[Stratum]) -> Vec<Stratum> {
    let alike = strata.iter().map(|one| Stratum {
        predicted: 0,
        ..*one
    });
    alike.collect()
}

/// The design without its control variate, where it has one.
fn without_strata(manifest: &Manifest, test: &Test, family: Option<&Family>) -> Option<Design> {
    test.control_variate.as_ref()?;
    let mut plain = manifest.clone();
    plain.test.as_mut()?.control_variate = None;
    design::of(&plain, test, family, None, design::looks(test)).ok()
}

/// What came of each effect and shape.
fn table(
    args: &SimulationRequest<'_>,
    (design, plain): (&Design, Option<&Design>),
    lines: &[(&str, i64)],
) -> Vec<SimulatedLine> {
    if design.terms().strata.is_empty() {
        runs(args, (design, &[]), (lines, None))
    } else {
        with_strata(args, (design, plain), lines)
    }
}

/// The version of a manifest that is in force, and where to read it.
fn registered(manifests: &Manifests, id: &str) -> Result<(Manifest, String), CliError> {
    let id = gate_id(id)?;
    let next = format!("clover prereg show {id}", id = shell::word(&id));
    let record = manifests.by_id.get(&id);
    let version = record
        .and_then(ManifestRecord::in_force)
        .ok_or_else(|| CliError::not_found(format!("no manifest {id} in force"), &next))?;
    Ok((version.manifest.clone(), next))
}

/// Paths under the null and under the effect, of differences that are all or nothing: no others spread as wide.
fn paths(
    args: &SimulationRequest<'_>,
    (design, shown): (&Design, &Design),
    lines: &[(&str, i64)],
) -> Vec<SimulatedPaths> {
    let path = |line: &(&str, i64)| {
        let (name, effect) = *line;
        let label = format!("gate/simulate/{name}/paths");
        let plan = SimulationPlan {
            effect,
            mean: Mean::Recorded,
            seed: SeedTree::of_number(args.seed).child(&label).seed(),
            shape: Shape::TwoPoint,
            strata: &design.terms().strata,
            streams: args.streams,
        };
        let found = simulate::paths(design, shown, plan, &|| args.told.one());
        SimulatedPaths::new(*line, Shape::TwoPoint, found)
    };
    lines.iter().map(path).collect()
}

/// The same of a design with a control variate: of strata that are as predicted and of strata that are alike, and of the
/// first by the design without.
fn with_strata(
    args: &SimulationRequest<'_>,
    (design, plain): (&Design, Option<&Design>),
    lines: &[(&str, i64)],
) -> Vec<SimulatedLine> {
    let predicted = &design.terms().strata;
    let alike = alike(predicted);
    let mut found = Vec::new();
    for line in lines {
        let cases = [
            (Some(design), predicted, "as predicted"),
            (Some(design), &alike, "alike"),
            (plain, predicted, "as predicted, not used"),
        ];
        for (design, strata, name) in cases {
            let Some(design) = design else { continue };
            found.extend(runs(args, (design, strata), (&[*line], Some(name))));
        }
    }
    found
}

/// A line for each effect and shape, named by how its strata are.
fn runs(
    args: &SimulationRequest<'_>,
    (design, strata): (&Design, &[Stratum]),
    (lines, named): (&[(&str, i64)], Option<&'static str>),
) -> Vec<SimulatedLine> {
    let steady = named.map(|_| Shape::Steady);
    let shapes = Shape::ALL.into_iter().chain(steady);
    let each = lines
        .iter()
        .flat_map(|line| shapes.clone().map(move |shape| (line, shape)));
    let mean = Mean::Recorded;
    each.map(|(of, shape)| line(args, (design, strata), (*of, named), (shape, mean)))
        .collect()
}

/// What came of one effect and shape.
fn line(
    args: &SimulationRequest<'_>,
    (design, strata): (&Design, &[Stratum]),
    (of, named): ((&str, i64), Option<&'static str>),
    (shape, mean): (Shape, Mean),
) -> SimulatedLine {
    let (name, effect) = of;
    let label = format!("gate/simulate/{name}/{}", shape.as_str());
    let plan = SimulationPlan {
        effect,
        mean,
        seed: SeedTree::of_number(args.seed).child(&label).seed(),
        shape,
        strata,
        streams: args.streams,
    };
    let done = simulate::run_told(design, plan, &|| args.told.one());
    SimulatedLine::new(of, shape, named, &done)
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
