//! The rule `synth` of answers: each candidate's code is what the parser says, computed again. It stands on this floor
//! because it reads documents with the grammar of `rubric`.

use clover_event::Payload;
use clover_event::payload::synth_runs::AnswerState;
use clover_event::payload::synth_runs::CandidateCode;
use clover_event::payload::synth_runs::SynthReturned;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_projection::synths::Synths;

use crate::patches::Bench;
use crate::synth::answer;
use crate::synth::answer::Terms;

/// Whether answers say of their candidates what the parser does.
#[derive(Clone, Copy, Debug)]
pub struct AnswerRule;

fn word(code: Option<CandidateCode>) -> &'static str {
    code.map_or("none", CandidateCode::as_str)
}

fn check(state: &State, event: &ProposedEvent<'_>, said: &SynthReturned) -> RuleAnswer {
    let synths = state.fold::<Synths>();
    let (Some(run), Some(experiment)) = (
        synths.by_id.get(&said.run),
        event.event.header.experiment.as_ref(),
    ) else {
        // The rule of runs refuses it, and there is nothing to check it against.
        return Ok(());
    };
    let bench = Bench::of(state, experiment, &said.iteration);
    let bench = bench.required("the rubric and the plan of the iteration")?;
    // What the answer of a call is, the rule of runs says.
    let is_kept = said.state != AnswerState::Oversize;
    let expected = "an answer on record, unless it was too long";
    ensure!(
        said.call.is_some() || said.answer.is_some() == is_kept,
        expected,
        said.state.to_string()
    );
    let is_read = said.state == AnswerState::Read || said.candidates.is_empty();
    ensure!(
        is_read,
        "no candidate of an answer that was not read",
        "some"
    );
    let k = run.said.k.value();
    let mut terms = Terms {
        bench: answer::bench_of(bench, &run.valid),
        k,
        inputs: &run.inputs,
    };
    for (place, of) in (0..).zip(&said.candidates) {
        let is_beyond = of.code == Some(CandidateCode::BeyondK);
        let expected = format!("beyond_k of candidate {place}, as {k} are read, and of no other");
        ensure!(is_beyond == (place >= k), expected, word(of.code));
        let is_whole = of.yaml.is_some() != answer::is_unread(of.code);
        ensure!(
            is_whole,
            "the document of each candidate that was read",
            "none"
        );
        let passes = of.code.is_none();
        let expected = "patch_hash of a candidate that passes every check, and of no other";
        ensure!(of.patch_hash.is_some() == passes, expected, word(of.code));
        let Some(yaml) = &of.yaml else {
            continue;
        };
        let found = answer::judged(&terms, yaml.as_str(), &of.cards);
        let expected = format!("code {} of candidate {place}", word(found.err()));
        ensure!(found.err() == of.code, expected, word(of.code));
        if let (Ok(hash), Some(own)) = (found, of.patch_hash) {
            let expected = format!("patch_hash {}", hash.to_hex());
            ensure!(hash == own, expected, own.to_hex());
            terms.bench.hashes.insert(hash);
        }
    }
    Ok(())
}

impl Rule for AnswerRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if let Payload::SynthReturned(said) = &event.event.payload {
            breaches.take(RuleName::Synth, check(state, event, said));
        }
    }
}
