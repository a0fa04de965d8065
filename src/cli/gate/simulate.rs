//! `clover gate simulate`: what a registered design does to streams of known effect.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::SimulateArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::payload::manifest::HypothesisKind;
use crate::ground::seed::SeedTree;
use crate::num::Micro;
use crate::projection::manifests::Manifests;
use crate::stats::eprocess::Design;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence;
use crate::workflow::gates::simulate;
use crate::workflow::gates::simulate::Plan;
use crate::workflow::gates::simulate::Shape;

/// Streams beyond which nothing more is learnt.
const STREAMS_MAX: usize = 1_000_000;

pub(super) fn run(ctx: &mut Ctx<'_>, args: &SimulateArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    if args.streams == 0 || args.streams > STREAMS_MAX {
        let message = format!("--streams: expected 1 to {STREAMS_MAX}");
        return Err(CliError::usage(message, "clover gate simulate --help"));
    }
    let (_, ledger, view) = home::view(ctx)?;
    let manifests = view.state(&ledger).fold::<Manifests>();
    let record = manifests.by_id.get(&id);
    let next = format!("clover prereg show {id}");
    let version = record.and_then(|record| Some((record, record.in_force()?)));
    let Some((record, version)) = version else {
        let message = format!("no manifest {id} in force");
        return Err(CliError::not_found(message, next));
    };
    let manifest = &version.manifest;
    let Some(test) = &manifest.test else {
        return Err(CliError::refused(format!("{id} is no gate's"), next));
    };
    let family = evidence::family_of(manifests, record);
    let design = design::of(manifest, test, family, None, design::looks(test));
    let design = design.map_err(|wrong| {
        let message = format!("{id}: expected {}, found {}", wrong.expected, wrong.found);
        CliError::refused(message, next.clone())
    })?;
    let null = match manifest.hypothesis.kind {
        HypothesisKind::Kill | HypothesisKind::Measure => 0,
        _ => test.null_margin_micro.value(),
    };
    let planned = args.effect.or(test.delta_design_micro.map(Micro::value));
    let mut lines = vec![("null", null)];
    lines.extend(planned.map(|effect| ("effect", effect)));
    let (rows, found) = runs(args, &design, &lines);
    let head = [
        "effect",
        "differences",
        "shown",
        "ended",
        "median",
        "p90",
        "mean units",
    ];
    let mut answer = Answer::new(ui::table(&head, rows), json!({"gate": id.as_str()}));
    answer.line(&format!(
        "{} gates a line · at the null, shown is the rate of false claims, at most alpha {}",
        args.streams, test.alpha_micro
    ));
    answer.data["streams"] = args.streams.into();
    answer.data["seed"] = args.seed.into();
    answer.data["simulated"] = found.into();
    Ok(answer.with_next(next))
}

/// A row and an object for each effect and shape.
fn runs(
    args: &SimulateArgs,
    design: &Design,
    lines: &[(&str, i64)],
) -> (Vec<Vec<String>>, Vec<Value>) {
    let each = lines
        .iter()
        .flat_map(|line| Shape::ALL.map(|shape| (line, shape)));
    let one = |((name, effect), shape): (&(&str, i64), Shape)| {
        let label = format!("gate/simulate/{name}/{}", shape.as_str());
        let plan = Plan {
            effect: *effect,
            seed: SeedTree::of_number(args.seed).child(&label).seed(),
            shape,
            streams: args.streams,
        };
        let done = simulate::run(design, plan);
        let rank = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
        let row = vec![
            format!("{:+.6}", *effect as f64 / 1e6),
            shape.as_str().to_owned(),
            format!("{:.4}", done.shown),
            format!("{:.4}", done.ended),
            rank(done.median),
            rank(done.p90),
            format!("{:.1}", done.mean_units),
        ];
        let object = json!({
            "line": name, "effect_micro": effect, "shape": shape.as_str(), "shown": done.shown,
            "ended": done.ended, "median": done.median, "p90": done.p90, "mean_units": done.mean_units,
        });
        (row, object)
    };
    each.map(one).unzip()
}
