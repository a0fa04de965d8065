//! The rule `judge`: what is said of a judge's raw scores names a judge that was registered.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::registry;
use clover_ledger::Breach;
use clover_ledger::Candidate;
use clover_ledger::Fact;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;

/// Fewest keys that a re-score takes.
pub const REPLAYED_MIN: u64 = 30;

/// The rule `judge`.
#[derive(Clone, Copy, Debug)]
pub struct Registered;

/// The judge that an event needs.
fn needed(payload: &Payload) -> Option<&JudgeId> {
    match payload {
        Payload::BatteryEvaluated(battery) => Some(&battery.judge),
        Payload::EvidenceRecorded(records) => Some(&records.judge),
        Payload::ScoreReplayed(replayed) => Some(&replayed.judge),
        _ => None,
    }
}

impl Rule for Registered {
    fn judge(&self, _: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let mut breach = |expected: &str, found: String| {
            breaches.push(Breach::new(RuleName::Judge, expected.to_owned(), found));
        };
        match &event.event.payload {
            Payload::EvidenceRecorded(records) if records.records_count.value() == 0 => {
                breach("at least one record", "none".to_owned());
            }
            Payload::ScoreReplayed(replayed) if replayed.keys.value() < REPLAYED_MIN => {
                breach("at least 30 keys", replayed.keys.to_string());
            }
            Payload::ScoreReplayed(replayed) if replayed.mismatches > replayed.keys => {
                let found = format!("{} of {}", replayed.mismatches, replayed.keys);
                breach("no more mismatches than keys", found);
            }
            _ => {}
        }
    }

    fn facts(&self, event: &Candidate<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let named = needed(&event.event.payload).zip(experiment);
        facts.extend(named.map(|(judge, experiment)| Fact::Needs {
            digest: registry::natural_key_of(Kind::JudgeRegistered, experiment, &[judge.as_str()]),
            before: event.seq,
            rule: RuleName::Judge,
        }));
    }
}
