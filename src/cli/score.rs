//! `clover score`: how many draws each answer had, so that the best of several can be told from the only one.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::event::id::ExperimentId;
use crate::ledger::Ledger;
use crate::projection::designs::Designs;
use crate::session::judge::scores;
use crate::view::View;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Scores by judge and policy: items, draws, items with more than one draw, conflicts
    #[command(after_help = "Example:\n  clover score list")]
    List,
    /// Every draw of one item, and every other score that a judge gave it
    #[command(after_help = "Example:\n  clover score show arena_22")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The item
    pub item: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    match verb {
        Verb::List => list(&ledger),
        Verb::Show(args) => show(&ledger, &args.item),
    }
}

fn list(ledger: &Ledger) -> Result<View, CliError> {
    let designs = ledger.state().fold::<Designs>();
    let conflicts = |experiment: &ExperimentId| {
        let of = designs.by_experiment.get(experiment);
        of.map_or(0, |of| of.score_conflicts)
    };
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (key, counts) in scores::draws(ledger)? {
        rows.push(vec![
            key.experiment.to_string(),
            key.judge.to_string(),
            key.policy.to_string(),
            ui::thousands(counts.items),
            ui::thousands(counts.scores),
            ui::thousands(counts.redrawn),
            counts.draws_max.to_string(),
        ]);
        data.push(json!({
            "experiment": key.experiment.as_str(), "judge": key.judge.as_str(), "policy": key.policy.as_str(),
            "items": counts.items, "scores": counts.scores, "items_with_several_draws": counts.redrawn,
            "draws_max": counts.draws_max, "conflicts_in_experiment": conflicts(&key.experiment),
        }));
    }
    let head = [
        "experiment",
        "judge",
        "policy",
        "items",
        "scores",
        "several draws",
        "most",
    ];
    let mut text = ui::table(&head, rows);
    for (experiment, of) in &designs.by_experiment {
        if of.score_conflicts > 0 {
            let count = of.score_conflicts;
            let experiment = ui::escape(experiment.as_str());
            text.push_str(&format!(
                "{experiment}: {count} score.conflict, CLOVER.J2 fails\n"
            ));
        }
    }
    Ok(View::untyped(text, json!({"scores": data})))
}

fn show(ledger: &Ledger, item: &str) -> Result<View, CliError> {
    let found = scores::of_item(ledger, item)?;
    if found.is_empty() {
        let message = format!("no score of item {item:?}");
        return Err(CliError::not_found(message, "clover score list"));
    }
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for of in &found {
        let standing = if of.is_conflict {
            "conflict"
        } else {
            "recorded"
        };
        rows.push(vec![
            of.key.experiment.to_string(),
            of.key.judge.to_string(),
            of.key.policy.to_string(),
            of.draw.to_string(),
            of.score.to_string(),
            of.seq.to_string(),
            standing.to_owned(),
        ]);
        data.push(json!({
            "experiment": of.key.experiment.as_str(), "judge": of.key.judge.as_str(),
            "policy": of.key.policy.as_str(), "draw": of.draw.value(), "score_micro": of.score.value(),
            "seq": of.seq, "standing": standing,
        }));
    }
    let head = [
        "experiment",
        "judge",
        "policy",
        "draw",
        "score",
        "seq",
        "standing",
    ];
    let draws = found.iter().filter(|of| !of.is_conflict).count();
    let text = ui::table(&head, rows);
    Ok(View::untyped(
        text,
        json!({"item": item, "draws": draws, "scores": data}),
    ))
}
