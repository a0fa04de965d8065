//! The rule `report`: what may be given out as the report of an iteration. It moves no read model; published reports are
//! read from the log.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::payload::report::ReportPart;
use clover_event::payload::report::ReportPublished;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::unmet;

use crate::decisions::AllDecisions;
use crate::iterations::Iterations;

/// The rule `report`.
#[derive(Clone, Copy, Debug)]
pub struct ReportRule;

impl Rule for ReportRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Payload::ReportPublished(said) = &event.event.payload else {
            return;
        };
        // Without an experiment the rule `experiment` refuses it.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let read = check_read(state, experiment, event.seq, said);
        breaches.take(RuleName::Report, read.and_then(|()| check_parts(said)));
    }
}

/// It is about an iteration that was decided, and was read after that.
fn check_read(
    state: &State,
    experiment: &ExperimentId,
    seq: u64,
    said: &ReportPublished,
) -> RuleAnswer {
    let id = &said.iteration;
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(it) = it.filter(|it| it.experiment == *experiment) else {
        return unmet(
            format!("an iteration of {experiment}"),
            format!("{id}, never opened"),
        );
    };
    let decided = state.fold::<AllDecisions>().of(id);
    let accepted = decided.filter(|of| !of.accepted.is_empty());
    let paused = decided.and_then(|of| Some(of.paused.as_ref()?.seq));
    let unsealed = accepted.and_then(|of| Some(of.unsealed.as_ref()?.seq));
    let closed = it.closed.as_ref().map(|(_, seq)| *seq);
    let Some(end) = closed.or(paused).or(unsealed) else {
        return unmet(
            "an iteration that is closed or decided",
            format!("{id}, opened at seq {} and going on", it.opened_seq),
        );
    };
    let through = said.through_seq.value();
    ensure!(
        (end..seq).contains(&through),
        format!(
            "through_seq from {end}, where {id} was decided, to {}",
            seq.saturating_sub(1)
        ),
        through.to_string()
    );
    Ok(())
}

/// Every part is there or named as missing, with a reason.
fn check_parts(said: &ReportPublished) -> RuleAnswer {
    ensure!(
        said.present.windows(2).all(|two| two[0] < two[1]),
        "parts in the order of their words, each once",
        "another order"
    );
    for gap in &said.gaps {
        ensure!(
            !gap.what.as_str().is_empty() && !gap.why.as_str().is_empty(),
            format!("what {} lacks, and why", gap.part),
            "an empty word"
        );
    }
    for part in ReportPart::ALL {
        let is_named = said.gaps.iter().any(|gap| gap.part == *part);
        ensure!(
            is_named || said.present.contains(part),
            format!("part {part}, or why it is missing"),
            "neither"
        );
    }
    Ok(())
}
