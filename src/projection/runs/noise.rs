//! The rule `noise`: how much scores of a judge behind HTTP waver, on answers that are asked for again.
//!
//! Which answers is drawn from the first checkpoint after the run was opened, so that nobody chooses them; what comes of it is
//! figured from the calls alone, and every run of the judge counts.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::calls::CallOutcome;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::id::RunId;
use clover_event::payload::Verdict;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::FirstCall;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::NoiseFigures;
use clover_event::payload::model_runs::NoiseMeasured;
use clover_ground::canon;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_num::Count;
use clover_num::Micro;
use clover_num::paired::PairedSums;
use serde::Deserialize;
use serde::Serialize;

use super::ModelRun;
use super::ModelRuns;
use super::source;
use crate::judges::Judges;
use crate::orders;

/// Fewest answers of which a verdict is passed.
pub const RESCORED_MIN: u64 = 30;
/// Most answers that one run asks for again.
pub const RESCORED_MAX: u64 = 1_000;
/// Of so many rows that are drawn one may be missed, at most.
const MISSED_ONE_IN: u64 = 50;
/// Label of the digest of the entries that a sample is drawn from.
const FRAME: &str = "clover/noise-frame/v1";
/// Label of the digest that draws one of them.
const DRAW: &str = "clover/noise-draw/v1";

/// What came of asking again, within one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RescoredCalls {
    /// First calls that were asked for again and came to something, by their entries.
    pub done: BTreeSet<u64>,
    /// How many came to no answer.
    pub missed: u64,
    /// Both scores of the rest.
    pub sums: PairedSums,
}

impl RescoredCalls {
    /// Takes in a call.
    pub(super) fn take(&mut self, said: &CallRecorded) {
        let Some(first) = &said.first else {
            return;
        };
        if said.outcome == CallOutcome::Lost {
            return;
        }
        self.done.insert(first.seq.value());
        match said.score_micro {
            Some(again) => self.sums.take(first.score_micro, again),
            None => self.missed += 1,
        }
    }
}

/// Answers of a judge, and what came of asking for them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeNoise {
    /// How many rows were drawn in runs that were measured.
    pub asked: u64,
    /// How many of them came to no answer.
    pub missed: u64,
    /// Runs that asked again.
    pub runs: u64,
    /// Entries of calls that gave a score, ascending.
    pub scored: Vec<u64>,
    /// Both scores of the rest.
    pub sums: PairedSums,
    /// The run that is not measured yet.
    pub unmeasured: Option<RunId>,
}

impl JudgeNoise {
    /// What all runs that were measured say together.
    pub fn pooled(&self) -> NoiseFigures {
        figures((self.asked, self.missed), &self.sums)
    }

    /// Takes in a run that was measured.
    pub(super) fn take(&mut self, asked: u64, of: &RescoredCalls) {
        self.asked = self.asked.saturating_add(asked);
        self.missed += of.missed;
        self.sums.add(&of.sums);
        self.unmeasured = None;
    }
}

/// A judge as a key.
pub fn judge_key(experiment: &ExperimentId, judge: &JudgeId) -> String {
    serde_json::json!([experiment.as_str(), judge.as_str()]).to_string()
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

/// What is said of so many rows.
fn figures((asked, missed): (u64, u64), sums: &PairedSums) -> NoiseFigures {
    let shift = sums.shift();
    NoiseFigures {
        answered: count(sums.pairs),
        asked: count(asked),
        differing: count(sums.differing),
        missed: count(missed),
        sd_micro: sums.sd().map(count),
        shift_half_micro: shift.map(|of| count(of.half)),
        shift_micro: shift.and_then(|of| Micro::new(of.mean)),
    }
}

/// What all rows together say, beside the standard deviation that a plan allows: `None` where each score has to come out the
/// same.
pub fn verdict(of: &NoiseFigures, sd_max: Option<Count>) -> Verdict {
    let Some(most) = sd_max else {
        return if of.differing.value() > 0 {
            Verdict::Fail
        } else if is_thin(of) {
            Verdict::Inconclusive
        } else {
            Verdict::Pass
        };
    };
    let (Some(sd), Some(shift), Some(half)) = (of.sd_micro, of.shift_micro, of.shift_half_micro)
    else {
        return Verdict::Inconclusive;
    };
    if is_thin(of) {
        return Verdict::Inconclusive;
    }
    if sd <= most && shift.value().unsigned_abs() <= half.value() {
        Verdict::Pass
    } else {
        Verdict::Fail
    }
}

/// Whether too few rows have both scores, or too many of those that were drawn have not.
fn is_thin(of: &NoiseFigures) -> bool {
    let (answered, asked) = (of.answered.value(), of.asked.value());
    let without = asked.saturating_sub(answered);
    answered < RESCORED_MIN || without.saturating_mul(MISSED_ONE_IN) > asked
}

/// The digest of the entries that a sample is drawn from.
pub fn frame_root(scored: &[u64]) -> Root {
    Root(canon::digest(FRAME, &scored))
}

/// The entries that a run asks for again: drawn without putting back, from the first checkpoint after it was opened.
pub fn sample((run, asks): (&RunId, u64), scored: &[u64], beacon: &DrawnFrom) -> BTreeSet<u64> {
    let all = scored.len() as u64;
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for at in 0..asks.min(all) {
        let digest = canon::digest(DRAW, &(beacon.root, run, at));
        let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
        let drawn = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let other = at + drawn % (all - at);
        let place = moved.get(&other).copied().unwrap_or(other);
        let here = moved.get(&at).copied().unwrap_or(at);
        moved.insert(other, here);
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        found.extend(scored.get(place));
    }
    found
}

/// The entries that an open run asks for again, once a checkpoint above its opening is known: by an entry, or by `seen`.
pub fn drawn(
    state: &State,
    run: &ModelRun,
    seen: Option<clover_event::SeenCheckpoint>,
) -> Option<BTreeSet<u64>> {
    let beacon = orders::beacon_above(state, run.seq, seen)?;
    let of = state
        .fold::<ModelRuns>()
        .noise_of(&run.experiment, &run.said.judge)?;
    let asks = run.said.asks.value();
    Some(sample((&run.said.run, asks), &of.scored, &beacon))
}

/// What is asked again is drawn from all that gave a score, by the next number, once the last such run is measured.
pub(super) fn check_opened(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &JudgeRunOpened,
) -> RuleAnswer {
    let (Some(terms), Some(experiment)) = (&said.rescore, &event.event.header.experiment) else {
        return Ok(());
    };
    let of = state.fold::<ModelRuns>().noise_of(experiment, &said.judge);
    let of = of.required(&format!("answers of {} that gave a score", said.judge))?;
    ensure!(
        of.unmeasured.is_none(),
        "a judge whose runs that ask again were all measured",
        of.unmeasured
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    );
    ensure!(
        terms.number.value() == of.runs + 1,
        format!("sample {} of {}", of.runs + 1, said.judge),
        terms.number.to_string()
    );
    let all = of.scored.len() as u64;
    ensure!(
        terms.of.value() == all,
        format!("a sample of all {all} answers that gave a score"),
        terms.of.to_string()
    );
    let most = all.min(RESCORED_MAX);
    ensure!(
        (1..=most).contains(&said.asks.value()),
        format!("1 to {most} answers"),
        said.asks.to_string()
    );
    let root = frame_root(&of.scored);
    ensure!(
        said.asks_root == root,
        format!("the digest of their entries, {}", root.0),
        said.asks_root.0.to_string()
    );
    Ok(())
}

/// A call asks for an answer again exactly in a run that does; for one that was drawn, and once.
pub(super) fn check_call(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &CallRecorded,
) -> RuleAnswer {
    let run = state.fold::<ModelRuns>().by_id.get(&said.run);
    let run = run.required(&format!("judge_run.opened of {}", said.run))?;
    let Some(rescored) = &run.rescored else {
        ensure!(
            said.first.is_none(),
            "no first call of an ask that is the first",
            "one"
        );
        return Ok(());
    };
    let first = said.first.as_ref();
    let first = first.required("the first call of an ask that is asked again")?;
    let drawn = drawn(state, run, event.event.header.seen);
    let drawn = drawn.required(&format!("a checkpoint above seq {}", run.seq))?;
    let seq = first.seq.value();
    ensure!(
        drawn.contains(&seq),
        format!("an answer that {} was drawn to ask for again", said.run),
        format!("that of seq {seq}")
    );
    ensure!(
        !rescored.done.contains(&seq),
        "each answer asked for again once",
        format!("that of seq {seq} twice")
    );
    Ok(())
}

/// Figures follow from the calls of a run that ended, and of those before it.
pub(super) fn check_measured(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &NoiseMeasured,
) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let runs = state.fold::<ModelRuns>();
    let run = runs.by_id.get(&said.run);
    let run = run.filter(|of| of.experiment == *experiment && of.said.judge == said.judge);
    let run = run.required(&format!("a run {} of {}", said.run, said.judge))?;
    let rescored = run.rescored.as_ref();
    let rescored = rescored.required("a run that asked for answers again")?;
    ensure!(run.end.is_some(), "a run that ended", "one that is open");
    let due = measured(state, run, rescored);
    let due = due.required(&format!("judge {}, registered before", said.judge))?;
    let words = |of: &NoiseMeasured| canon::to_bytes(of).unwrap_or_default();
    let text = |of: &NoiseMeasured| String::from_utf8_lossy(&words(of)).into_owned();
    ensure!(
        *said == due,
        format!("as its calls give it, {}", text(&due)),
        text(said)
    );
    Ok(())
}

/// What is to be said of a run that asked again: of it, and of every such run of its judge. `None` where the judge is unknown.
pub fn measured(state: &State, run: &ModelRun, rescored: &RescoredCalls) -> Option<NoiseMeasured> {
    let judges = state.fold::<Judges>().of(&run.experiment)?;
    let asked = judges.judges.get(&run.said.judge)?.said.asked.as_ref()?;
    let before = state
        .fold::<ModelRuns>()
        .noise_of(&run.experiment, &run.said.judge)?;
    let mut all = JudgeNoise {
        scored: Vec::new(),
        ..before.clone()
    };
    let asks = run.said.asks.value();
    all.take(asks, rescored);
    let pooled = all.pooled();
    Some(NoiseMeasured {
        figures: figures((asks, rescored.missed), &rescored.sums),
        judge: run.said.judge.clone(),
        pooled,
        run: run.said.run.clone(),
        sd_max_micro: asked.noise_sd_max_micro,
        verdict: verdict(&pooled, asked.noise_sd_max_micro),
    })
}

/// What a call that asks again needs of the first one: that it stands at this entry, about these texts, and gave this score.
pub(super) fn provides(event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
    use clover_event::Payload;
    let Some(experiment) = &event.event.header.experiment else {
        return;
    };
    let Payload::CallRecorded(said) = &event.event.payload else {
        return;
    };
    let Some(FirstCall {
        call,
        score_micro,
        seq,
    }) = said.first
    else {
        return;
    };
    let whose = (experiment, &said.judge);
    let digest = source::call_digest(whose, call, (CallOutcome::Answered, &said.texts));
    facts.push(Fact::Needs {
        digest,
        before: event.seq.min(seq.value() + 1),
        rule: RuleName::Noise,
    });
    facts.push(Fact::ForbidsBelow {
        digest,
        before: seq.value(),
        rule: RuleName::Noise,
    });
    facts.push(Fact::Recorded {
        digest: call.0,
        rule: RuleName::Noise,
        said: fold::said(score_micro.value()),
    });
}
