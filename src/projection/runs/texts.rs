//! One key for the texts that a judge is asked about, and one text for a row: whoever signs for a judge chooses no answer by
//! asking again under another name, and none by another text after a miss.
//!
//! The key is a keyed digest of private texts, so nobody can compute it from the log: that takes the vault.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallRecorded;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use super::ModelRuns;
use super::row_key;

/// Label of the digest that says that a judge was asked about texts.
const ASKED: &str = "clover/asked-about/v1";
/// Label of the digest that says under which key.
const ASKED_AS: &str = "clover/asked-as/v1";
/// Label of the digest that says about which texts a row was missed.
const MISSED: &str = "clover/missed-with/v1";

/// Label of the digest that says that a judge was asked about texts again.
const ASKED_AGAIN: &str = "clover/asked-again/v1";

/// That a judge was asked about texts; where it is asked again, in which run.
fn asked(experiment: &ExperimentId, said: &CallRecorded) -> Digest {
    let (judge, texts) = (&said.judge, &said.texts);
    if said.first.is_some() {
        return canon::digest(ASKED_AGAIN, &(experiment, judge, texts, &said.run));
    }
    canon::digest(ASKED, &(experiment, judge, texts))
}

fn asked_as(experiment: &ExperimentId, said: &CallRecorded) -> Digest {
    canon::digest(ASKED_AS, &(experiment, &said.judge, said.texts, said.ask))
}

fn missed(row: &str, texts: &AskedTexts) -> Digest {
    canon::digest(MISSED, &(row, texts))
}

/// What is known of texts once a call or a miss is on record.
pub(super) fn provides(event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
    let Some(experiment) = &event.event.header.experiment else {
        return;
    };
    let mut gives = |digest| facts.push(Fact::Gives { digest, once: None });
    match &event.event.payload {
        Payload::CallRecorded(said) => {
            gives(asked(experiment, said));
            gives(asked_as(experiment, said));
        }
        Payload::ScoreMissed(said) => {
            let row = (said.policy.as_str(), said.item.as_str(), said.draw);
            let row = row_key(experiment, &said.judge, row);
            gives(missed(&row, &said.call.texts));
        }
        _ => {}
    }
}

/// The first call of an ask is about texts that its judge was not asked about, a further one about the same as before; a row
/// that was missed has no other text in its score, or in its next miss.
pub(super) fn requires(state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
    let Some(experiment) = &event.event.header.experiment else {
        return;
    };
    let mut same_text = |judge: &JudgeId, row, texts: &AskedTexts| {
        let row = row_key(experiment, judge, row);
        let was_missed = state.fold::<ModelRuns>().missed.contains_key(&row);
        if was_missed && state.asks(Question::SameText) {
            facts.push(Fact::Needs {
                digest: missed(&row, texts),
                before: event.seq,
                rule: RuleName::Source,
            });
        }
    };
    match &event.event.payload {
        Payload::ScoreMissed(said) => {
            let row = (said.policy.as_str(), said.item.as_str(), said.draw);
            same_text(&said.judge, row, &said.call.texts);
        }
        Payload::ScoreRecorded(said) => {
            if let Some(of) = &said.call {
                let row = (said.policy.as_str(), said.item.as_str(), said.draw);
                same_text(&said.judge, row, &of.texts);
            }
        }
        Payload::CallRecorded(said) if state.asks(Question::OneAsk) => {
            facts.push(if said.nth.value() == 0 {
                Fact::Forbids {
                    digest: asked(experiment, said),
                    rule: RuleName::Ask,
                }
            } else {
                Fact::Needs {
                    digest: asked_as(experiment, said),
                    before: event.seq,
                    rule: RuleName::Ask,
                }
            });
        }
        _ => {}
    }
}
