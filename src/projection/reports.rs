//! The rule `report`: what may be given out as the report of an iteration. It moves no read model; published reports are
//! read from the log.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::payload::report::ReportGap;
use crate::event::payload::report::ReportPart;
use crate::event::payload::report::ReportPublished;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::decisions::AllDecisions;
use crate::projection::iterations::Iterations;

/// The rule `report`.
#[derive(Clone, Copy, Debug)]
pub struct Reporting;

impl Rule for Reporting {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Payload::ReportPublished(said) = &event.event.payload else {
            return;
        };
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let found = read(state, experiment, event.seq, said).or_else(|| named(said));
        breaches
            .extend(found.map(|(expected, found)| Breach::new(RuleName::Report, expected, found)));
    }
}

/// It is about an iteration that was decided, and was read after that.
fn read(state: &State, experiment: &ExperimentId, seq: u64, said: &ReportPublished) -> Judged {
    let id = &said.iteration;
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(it) = it.filter(|it| it.experiment == *experiment) else {
        return no(
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
        return no(
            "an iteration that is closed or decided",
            format!("{id}, opened at seq {} and going on", it.opened_seq),
        );
    };
    let through = said.through_seq.value();
    if through < end || through >= seq {
        let expected = format!(
            "through_seq from {end}, where {id} was decided, to {}",
            seq.saturating_sub(1)
        );
        return no(expected, through.to_string());
    }
    None
}

/// Every part is there or named as missing, with a reason.
fn named(said: &ReportPublished) -> Judged {
    let ascending = said.present.windows(2).all(|two| two[0] < two[1]);
    if !ascending {
        return no(
            "parts in the order of their words, each once",
            "another order",
        );
    }
    let unclear = |gap: &&ReportGap| gap.what.as_str().is_empty() || gap.why.as_str().is_empty();
    if let Some(gap) = said.gaps.iter().find(unclear) {
        return no(format!("what {} lacks, and why", gap.part), "an empty word");
    }
    let absent = |part: &&ReportPart| {
        !said.present.contains(part) && !said.gaps.iter().any(|gap| gap.part == **part)
    };
    let part = ReportPart::ALL.iter().find(absent)?;
    no(format!("part {part}, or why it is missing"), "neither")
}
