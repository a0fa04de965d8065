//! The rule `verdict`: what a gate event says follows from its own statistics and thresholds.

use clover_event::Payload;
use clover_event::payload::Verdict;
use clover_event::payload::predicate::Verdicts;
use clover_ledger::Breach;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;

use crate::predicate;

/// The rule `verdict`.
#[derive(Clone, Copy, Debug)]
pub struct VerdictRecomputation;

impl Rule for VerdictRecomputation {
    fn check(&self, _: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Payload::GateEvaluated(said) = &event.event.payload else {
            return;
        };
        let found = predicate::verdicts(&said.evidence, &said.thresholds);
        if found != said.verdicts {
            let expected = format!("{} {}, from its statistics", said.gate, words(found));
            breaches.push(Breach::new(
                RuleName::Verdict,
                expected,
                words(said.verdicts),
            ));
        }
    }
}

fn words(verdicts: Verdicts) -> String {
    let word = |verdict| match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "not_checked",
        Verdict::Pass => "pass",
    };
    format!(
        "{} (recommended) and {} (literal)",
        word(verdicts.recommended),
        word(verdicts.literal)
    )
}
