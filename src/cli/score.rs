//! `clover score`: how many draws each answer had, so that the best of several can be told from the only one.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::projection::designs::Designs;

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

/// Experiment, judge and policy.
type Whose = (String, String, String);

/// How many draws there are of each item, as the entries say.
fn draws(ledger: &Ledger) -> Result<BTreeMap<Whose, BTreeMap<String, u64>>, CliError> {
    let mut all: BTreeMap<Whose, BTreeMap<String, u64>> = BTreeMap::new();
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let experiment = read.event.header.experiment.as_ref();
        if let (Payload::ScoreRecorded(said), Some(experiment)) = (&read.event.payload, experiment)
        {
            let whose = (
                experiment.to_string(),
                said.judge.to_string(),
                said.policy.to_string(),
            );
            let items = all.entry(whose).or_default();
            *items.entry(said.item.to_string()).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(all)
}

fn list(ledger: &Ledger) -> Result<Answer, CliError> {
    let designs = ledger.state().fold::<Designs>();
    let conflicts = |experiment: &str| {
        let of = designs.by_experiment.iter();
        let mut of = of.filter(|(id, _)| id.as_str() == experiment);
        of.next().map_or(0, |(_, of)| of.score_conflicts)
    };
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for ((experiment, judge, policy), items) in &draws(ledger)? {
        let scores: u64 = items.values().sum();
        let redrawn = items.values().filter(|draws| **draws > 1).count() as u64;
        let (items, most) = (
            items.len() as u64,
            items.values().max().copied().unwrap_or(0),
        );
        rows.push(vec![
            experiment.clone(),
            judge.clone(),
            policy.clone(),
            ui::thousands(items),
            ui::thousands(scores),
            ui::thousands(redrawn),
            most.to_string(),
        ]);
        data.push(json!({
            "experiment": experiment, "judge": judge, "policy": policy, "items": items,
            "scores": scores, "items_with_several_draws": redrawn, "draws_max": most,
            "conflicts_in_experiment": conflicts(experiment),
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
    Ok(Answer::new(text, json!({"scores": data})))
}

fn decimal(micro: i64) -> String {
    Micro::new(micro).map_or_else(|| micro.to_string(), |micro| micro.to_string())
}

/// A score of an item: its position, experiment, judge and policy, draw, value and standing.
type Score = (u64, [String; 3], u64, i64, &'static str);

/// Every score of an item, as the entries say: those recorded by experiment, judge, policy and draw, then conflicts in order.
fn scores(ledger: &Ledger, item: &str) -> Result<Vec<Score>, CliError> {
    let (mut recorded, mut conflicts) = (Vec::new(), Vec::new());
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let Some(experiment) = &read.event.header.experiment else {
            return Ok(());
        };
        let whose = |judge: &JudgeId, policy: &PolicyId| {
            [experiment.as_str(), judge.as_str(), policy.as_str()].map(str::to_owned)
        };
        match &read.event.payload {
            Payload::ScoreRecorded(of) if of.item.as_str() == item => recorded.push((
                read.stored.seq,
                whose(&of.judge, &of.policy),
                of.draw.value(),
                of.score_micro.value(),
                "recorded",
            )),
            Payload::ScoreConflict(of) if of.item.as_str() == item => conflicts.push((
                read.stored.seq,
                whose(&of.judge, &of.policy),
                of.draw.value(),
                of.score_micro.value(),
                "conflict",
            )),
            _ => {}
        }
        Ok(())
    })?;
    recorded.sort_by(|a: &Score, b| (&a.1, a.2, a.0).cmp(&(&b.1, b.2, b.0)));
    recorded.append(&mut conflicts);
    Ok(recorded)
}

fn show(ledger: &Ledger, item: &str) -> Result<Answer, CliError> {
    let scores = scores(ledger, item)?;
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
    for (place, texts, draw, micro, standing) in &scores {
        let [experiment, judge, policy] = texts.each_ref().map(String::as_str);
        add(*place, [experiment, judge, policy], *draw, *micro, standing);
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
