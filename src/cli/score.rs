//! `clover score`: how many draws each answer had, so that the best of several can be told from the only one.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::projection::designs::Designs;
use crate::store::Draws;
use crate::store::StoreError;

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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    match verb {
        Verb::List => list(&ledger),
        Verb::Show(args) => show(&ledger, &args.item),
    }
}

fn list(ledger: &Ledger) -> Result<Answer, CliError> {
    let designs = ledger.state().fold::<Designs>();
    let conflicts = |experiment: &str| {
        let of = designs.by_experiment.iter();
        let mut of = of.filter(|(id, _)| id.as_str() == experiment);
        of.next().map_or(0, |(_, of)| of.score_conflicts)
    };
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    ledger.store().reader().draws(|draws: Draws| {
        rows.push(vec![
            draws.experiment.clone(),
            draws.judge.clone(),
            draws.policy.clone(),
            ui::thousands(draws.items),
            ui::thousands(draws.scores),
            ui::thousands(draws.redrawn),
            draws.most.to_string(),
        ]);
        data.push(json!({
            "experiment": draws.experiment, "judge": draws.judge, "policy": draws.policy, "items": draws.items,
            "scores": draws.scores, "items_with_several_draws": draws.redrawn, "draws_max": draws.most,
            "conflicts_in_experiment": conflicts(&draws.experiment),
        }));
        Ok::<_, StoreError>(())
    })?;
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
    Ok(Answer::new(text, json!({"scores": data})))
}

fn decimal(micro: i64) -> String {
    Micro::new(micro).map_or_else(|| micro.to_string(), |micro| micro.to_string())
}

fn show(ledger: &Ledger, item: &str) -> Result<Answer, CliError> {
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    let mut add = |seq: u64, texts: [&str; 3], draw: u64, micro: i64, standing: &str| {
        let [experiment, judge, policy] = texts;
        rows.push(vec![
            experiment.to_owned(),
            judge.to_owned(),
            policy.to_owned(),
            draw.to_string(),
            decimal(micro),
            seq.to_string(),
            standing.to_owned(),
        ]);
        data.push(json!({
            "experiment": experiment, "judge": judge, "policy": policy, "draw": draw, "score_micro": micro,
            "seq": seq, "standing": standing,
        }));
    };
    ledger.store().reader().scores_of(item, |row| {
        let texts = [row.experiment, row.judge, row.policy];
        add(row.seq, texts, row.draw, row.score_micro, "recorded");
        Ok::<_, StoreError>(())
    })?;
    let designs = ledger.state().fold::<Designs>();
    if designs
        .by_experiment
        .values()
        .any(|of| of.score_conflicts > 0)
    {
        ledger.entries::<CliError>(0, ledger.size(), |read| {
            let experiment = read.event.header.experiment.as_ref();
            if let (Payload::ScoreConflict(other), Some(experiment)) =
                (&read.event.payload, experiment)
                && other.item.as_str() == item
            {
                let texts = [
                    experiment.as_str(),
                    other.judge.as_str(),
                    other.policy.as_str(),
                ];
                let (draw, micro) = (other.draw.value(), other.score_micro.value());
                add(read.stored.seq, texts, draw, micro, "conflict");
            }
            Ok(())
        })?;
    }
    if rows.is_empty() {
        let message = format!("no score of item {item:?}");
        return Err(CliError::not_found(message, "clover score list"));
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
    let draws = data
        .iter()
        .filter(|row| row["standing"] == "recorded")
        .count();
    let text = ui::table(&head, rows);
    Ok(Answer::new(
        text,
        json!({"item": item, "draws": draws, "scores": data}),
    ))
}
