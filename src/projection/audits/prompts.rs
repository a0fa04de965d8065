//! Prompts that one side of a comparison has no score of: whoever leaves out the hard ones makes a policy look better, so that
//! nothing is told apart which the worst scores there would change.

use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::payload::estimate::ComparedPrompts;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimated::IntervalEnds;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;

use crate::tallies::DrawTallies;
use crate::tallies::Tallies;

/// What differences are paired on, as they name it.
const PAIRED: &str = "prompt_cluster_paired";
const PARTIAL: &str = "prompt_cluster_partial_overlap";
/// By how much a stated number may be below the one that its counts give: rounding alone.
const ROUNDING: f64 = 1e-9;

/// What prompts of the counts say of the sides: the same, some, or none in common.
fn basis(prompts: &ComparedPrompts) -> Option<&'static str> {
    let (both, only) = (prompts.both.value() > 0, alone(prompts) > 0);
    match (both, only) {
        (true, false) => Some(PAIRED),
        (true, true) => Some(PARTIAL),
        (false, _) => None,
    }
}

/// Prompts of one side alone.
fn alone(prompts: &ComparedPrompts) -> u64 {
    let sides = [prompts.first_only, prompts.second_only];
    sides.map(Count::value).into_iter().sum()
}

fn unit(micro: Micro) -> f64 {
    micro.value() as f64 / 1e6
}

/// A comparison says which prompts its sides have, as its basis and the record have them, and how far missing scores could
/// move it; it tells apart only what they could not undo.
pub(super) fn check_missing(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> RuleAnswer {
    if !state.asks(Question::MissingPrompts) {
        return Ok(());
    }
    let wanted = "prompts: which of them both policies have scores of";
    let prompts = said.prompts.required(wanted)?;
    let by_counts = basis(&prompts);
    let said_basis = Some(said.basis.as_str()).filter(|of| [PAIRED, PARTIAL].contains(of));
    ensure!(
        by_counts == said_basis,
        format!("basis {}", by_counts.unwrap_or("of no prompt in common")),
        format!("basis {}", said.basis.as_str())
    );
    // Of one environment the record counts no prompts: they are computed again.
    if said.terms.environment.is_none() {
        check_counted(state, experiment, said, &prompts)?;
    }
    let (both, only) = (prompts.both.value(), alone(&prompts));
    ensure!(
        !said.told_apart || both > 0 || !state.asks(Question::CommonPrompts),
        format!(
            "nothing told apart: {} and {} have scores of no prompt in common",
            said.first, said.second
        ),
        "told apart"
    );
    let worst = prompts.worst.value();
    if let Some(scale) = said.terms.label_scale.filter(|_| both > 0) {
        let span = unit(scale.high_micro) - unit(scale.low_micro);
        let least = span * only as f64 / (both + only) as f64;
        ensure!(
            worst >= least - ROUNDING,
            format!(
                "worst {least}: {only} of {} prompts lack a score",
                both + only
            ),
            worst.to_string()
        );
    }
    ensure!(
        !said.told_apart || prompts.uneven.value() == 0,
        format!(
            "nothing told apart: on {} prompts one policy has more draws, against the other, than on the rest",
            prompts.uneven.value()
        ),
        "told apart"
    );
    let IntervalEnds { low, high } = said.conservative.unwrap_or(said.interval);
    let (low, high) = (low.value() - worst, high.value() + worst);
    ensure!(
        !said.told_apart || low > 0.0 || high < 0.0,
        format!(
            "nothing told apart: with the worst missing scores the difference lies in [{low}, {high}]"
        ),
        "told apart"
    );
    Ok(())
}

/// The counts are those of the record, where each prompt of a policy has the same draws: then as many prompts are scored as
/// are said, and the two sides have the same ones where none is said to lack. Which prompts they share beyond that is computed
/// again.
fn check_counted(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
    prompts: &ComparedPrompts,
) -> RuleAnswer {
    let scores = state.fold::<Tallies>().scores.get(experiment);
    let of_judge = scores.and_then(|of| of.get(&said.terms.judge));
    let tally = |policy: &PolicyId| of_judge.and_then(|of| of.get(policy));
    let both = prompts.both.value();
    // The record counts rows of any time: of a policy with rows that do not count, its prompts are computed again.
    let is_late = |late: Option<Count>| late.is_some_and(|of| of.value() > 0);
    let sides = [
        (&said.first, prompts.first_only, said.first_late),
        (&said.second, prompts.second_only, said.second_late),
    ];
    for (policy, only, _) in sides.iter().filter(|(.., late)| !is_late(*late)) {
        let counts = tally(policy).map_or(Some(0), |of| of.counts().map(|of| of.items));
        let stated = both.saturating_add(only.value());
        ensure!(
            counts.is_none_or(|items| items == stated),
            format!(
                "{} prompts of {policy}, which have scores",
                counts.unwrap_or(0)
            ),
            format!("{stated}")
        );
    }
    if sides.iter().any(|(.., late)| is_late(*late)) {
        return Ok(());
    }
    let same = tally(&said.first)
        .zip(tally(&said.second))
        .and_then(|(first, second)| DrawTallies::same_items(first, second));
    ensure!(
        same.is_none_or(|same| same == (alone(prompts) == 0)),
        "prompts that lack, where the two policies have scores of other ones",
        "none that lacks"
    );
    Ok(())
}
