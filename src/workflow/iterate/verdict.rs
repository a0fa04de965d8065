//! The rule `verdict`: what a gate event says follows from its own statistics and thresholds.

use crate::event::Payload;
use crate::event::payload::Verdict;
use crate::event::payload::predicate::Verdicts;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::workflow::predicate;

/// The rule `verdict`.
#[derive(Clone, Copy, Debug)]
pub struct Recomputed;

impl Rule for Recomputed {
    fn judge(&self, _: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
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
