//! Judges as they were registered, and the rule `judge`: what is said of a judge's raw scores names one that was, and one that
//! is another but for what it is told is that judge indeed.

mod compared;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::RowId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::judge::ScoreScaleDeclared;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::scoring::repeated_name;
use clover_event::payload::sgd::REPEATS_MAX;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

pub use compared::NAMED;
pub use compared::named;
pub use compared::names;
pub use compared::width;
pub use compared::worst_of_rows;

/// Kinds that move the fold.
pub const READS: &[Kind] = &[
    Kind::JudgeCompared,
    Kind::JudgeRegistered,
    Kind::ScoreRecorded,
    Kind::ScoreScaleDeclared,
    Kind::ScoresRecomputed,
];

/// A judge with what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// As it was registered.
    pub said: JudgeRegistered,
    /// How many scores of it are on record since.
    pub scores: u64,
}

/// Judges of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentJudges {
    /// Judges by name.
    pub judges: BTreeMap<JudgeId, Registration>,
    /// Judges that were asked anew for a candidate, by iteration and the candidate's digits.
    pub anew: BTreeMap<IterationId, BTreeMap<String, JudgeId>>,
    /// Judges with scores, registered or imported, with the least and the greatest of them.
    pub scorers: BTreeMap<JudgeId, ScaleEnds>,
    /// Judges of which a comparison is on record that a plan named: `one other`, in the order of names.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub compared: BTreeSet<String>,
    /// Scales that were declared of judges, of which scores on record are values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scales: BTreeMap<JudgeId, ScaleEnds>,
}

impl ExperimentJudges {
    /// The judge that was asked anew for a candidate.
    pub fn asked_for(&self, iteration: &IterationId, candidate: Digest) -> Option<&JudgeId> {
        self.anew.get(iteration)?.get(&candidate.to_hex())
    }

    /// The judge of an iteration: the one that its plan names, else the only one that stands for itself.
    pub fn of_plan(&self, named: Option<&JudgeId>) -> Option<&Registration> {
        if let Some(named) = named {
            return self.judges.get(named);
        }
        let mut all = self.judges.values().filter(|of| of.said.of.is_none());
        let only = all.next();
        only.filter(|_| all.next().is_none())
    }

    /// The judge whose scores an iteration reads, registered or imported: the one that its plan names, else the only one with
    /// scores that stands for itself.
    pub fn read_by(&self, named: Option<&JudgeId>) -> Option<JudgeId> {
        if let Some(named) = named {
            return Some(named.clone());
        }
        let mut all = self.own_scorers();
        let only = all.next();
        only.filter(|_| all.next().is_none()).cloned()
    }

    /// Judges with scores that stand for themselves, registered or imported.
    pub fn own_scorers(&self) -> impl Iterator<Item = &JudgeId> {
        let is_derived = |judge: &&JudgeId| {
            let of = self.judges.get(*judge);
            of.is_some_and(|of| of.said.of.is_some())
        };
        self.scorers.keys().filter(move |judge| !is_derived(judge))
    }

    /// Judges that are another but for what they are told, and are told this.
    pub fn told(&self, prompt_hash: Digest) -> impl Iterator<Item = &Registration> {
        let is_told =
            move |of: &&Registration| of.said.of.is_some() && of.said.prompt_hash == prompt_hash;
        self.judges.values().filter(is_told)
    }
}

/// Judges of every experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judges {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentJudges>,
}

impl Judges {
    /// Judges with scores in an experiment beside one, each of which stands for itself.
    pub fn beside(&self, experiment: &ExperimentId, judge: &JudgeId) -> Vec<JudgeId> {
        let of = self.by_experiment.get(experiment).into_iter();
        let own = of.flat_map(ExperimentJudges::own_scorers);
        own.filter(|other| *other != judge).cloned().collect()
    }
}

impl Judges {
    /// Those of an experiment.
    pub fn of(&self, experiment: &ExperimentId) -> Option<&ExperimentJudges> {
        self.by_experiment.get(experiment)
    }
}

impl Fold for Judges {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let event = event.event();
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        match &event.payload {
            Payload::JudgeRegistered(said) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                let known = of.judges.entry(said.judge.clone());
                known.or_insert_with(|| Registration {
                    said: (**said).clone(),
                    scores: 0,
                });
            }
            Payload::ScoreRecorded(said) => {
                let of = match self.by_experiment.get_mut(experiment) {
                    Some(of) => of,
                    None => self.by_experiment.entry(experiment.clone()).or_default(),
                };
                let score = said.score_micro;
                if let Some(range) = of.scorers.get_mut(&said.judge) {
                    range.high_micro = range.high_micro.max(score);
                    range.low_micro = range.low_micro.min(score);
                } else {
                    let range = ScaleEnds {
                        high_micro: score,
                        low_micro: score,
                    };
                    of.scorers.insert(said.judge.clone(), range);
                }
                if let Some(judge) = of.judges.get_mut(&said.judge) {
                    judge.scores += 1;
                }
            }
            Payload::JudgeCompared(said) if said.plan.is_some() => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                of.compared
                    .insert(compared::pair(&said.first, &said.second));
            }
            Payload::ScoreScaleDeclared(said) if said.low_micro < said.high_micro => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                let known = of.scales.entry(said.judge.clone());
                known.or_insert_with(|| said.ends());
            }
            Payload::ScoresRecomputed(said) => {
                if let Some(judge) = &said.judge {
                    let of = self.by_experiment.entry(experiment.clone()).or_default();
                    let of = of.anew.entry(said.iteration.clone()).or_default();
                    let known = of.entry(said.candidate.to_hex());
                    known.or_insert_with(|| judge.clone());
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// A judge that is another but for what it is told: named after both, a program, and otherwise the same.
fn check_derived(state: &State, experiment: &ExperimentId, said: &JudgeRegistered) -> RuleAnswer {
    if said.of.is_none() || said.port != JudgePort::Endpoint || !state.asks(Question::AskedScores) {
        ensure!(
            said.repeat.is_none(),
            "a repeat only of a judge behind HTTP that is told the prompt of a run",
            "one"
        );
    }
    let Some(of) = &said.of else {
        if state.asks(Question::OwnPrompt) {
            return check_own_prompt(said);
        }
        ensure!(
            said.prompt.is_none(),
            "a prompt only of a judge that is another but for it",
            "one of a judge of its own"
        );
        return Ok(());
    };
    let judges = state.fold::<Judges>().of(experiment);
    let root = judges.and_then(|judges| judges.judges.get(of));
    let root = root.filter(|root| root.said.of.is_none());
    let root = root.required(&format!("judge {of}, registered before as one of its own"))?;
    let is_repeat = said
        .repeat
        .is_none_or(|of| (1..REPEATS_MAX as u64).contains(&of.value()));
    let expected = format!("a repeat from 1 to {}", REPEATS_MAX - 1);
    ensure!(is_repeat, expected, "another");
    let name = repeated_name(of, &said.prompt_hash, said.repeat);
    let name = name.required("a name of at most 200 bytes")?;
    ensure!(
        said.judge == name,
        format!("the name {name}"),
        said.judge.to_string()
    );
    let can_be_told = said.port == JudgePort::Command
        || (said.port == JudgePort::Endpoint && state.asks(Question::AskedScores));
    ensure!(
        can_be_told,
        "a program, which can be told something",
        said.port.as_str()
    );
    ensure!(said.prompt.is_some(), "the prompt that it is told", "none");
    let same = JudgeRegistered {
        judge: root.said.judge.clone(),
        of: None,
        prompt: root.said.prompt.clone(),
        prompt_hash: root.said.prompt_hash,
        repeat: None,
        ..said.clone()
    };
    ensure!(
        same == root.said,
        format!("the model, decoding, extractor and known data of {of}"),
        "others"
    );
    Ok(())
}

/// A program that is told a text of its own keeps that text, and a prompt's hash without its text says nothing.
fn check_own_prompt(said: &JudgeRegistered) -> RuleAnswer {
    let is_program = matches!(said.port, JudgePort::Command | JudgePort::Endpoint);
    let is_told = said.prompt_hash != Digest::sha256(b"");
    let Some(prompt) = &said.prompt else {
        ensure!(
            !is_program || !is_told,
            format!("the text that has the prompt_hash {}", said.prompt_hash),
            "none"
        );
        return Ok(());
    };
    ensure!(
        is_program,
        "a program, which can be told something",
        said.port.as_str()
    );
    ensure!(
        is_told && prompt.bytes.value() > 0,
        "a prompt that holds a text, and its hash",
        format!("{} bytes, prompt_hash {}", prompt.bytes, said.prompt_hash)
    );
    Ok(())
}

/// A scale is one, of a judge whose scores are imported, and is said before the first of them.
fn check_scale(of: Option<&ExperimentJudges>, said: &ScoreScaleDeclared) -> RuleAnswer {
    ensure!(
        said.low_micro < said.high_micro,
        "a scale whose ends are in order",
        format!("{} to {}", said.low_micro, said.high_micro)
    );
    let Some(of) = of else {
        return Ok(());
    };
    ensure!(
        !of.scorers.contains_key(&said.judge),
        format!(
            "a scale that is said before the first score of {}",
            said.judge
        ),
        "one after it"
    );
    let port = of.judges.get(&said.judge).map(|judge| judge.said.port);
    ensure!(
        port.is_none_or(|port| port == JudgePort::Recorded),
        format!(
            "a judge whose scores are imported, as {} is not",
            said.judge
        ),
        port.map_or("none", JudgePort::as_str)
    );
    Ok(())
}

/// A score lies on the scale that was declared of its judge.
fn check_score(of: Option<&ExperimentJudges>, said: &ScoreRecorded) -> RuleAnswer {
    let scale = of.and_then(|of| of.scales.get(&said.judge));
    let Some(scale) = scale.filter(|scale| !scale.holds(said.score_micro)) else {
        return Ok(());
    };
    let (low, high) = (scale.low_micro, scale.high_micro);
    unmet(
        format!("a score from {low} to {high}, the scale of {}", said.judge),
        said.score_micro.to_string(),
    )
}

/// The natural key of a judge's score of a sealed row; `None` where the row is no draw.
pub fn score_key(experiment: &ExperimentId, judge: &JudgeId, row: &RowId) -> Option<Digest> {
    let (policy, item, draw) = draw_of_row(row)?;
    let score = ScoreRecorded {
        call: None,
        draw,
        item,
        judge: judge.clone(),
        policy,
        prompt: None,
        response: None,
        score_micro: Micro::default(),
    };
    Payload::from(score).natural_key(Some(experiment))
}

/// Fewest keys that a re-score takes.
pub const REPLAYED_MIN: u64 = 30;

/// The rule `judge`.
#[derive(Clone, Copy, Debug)]
pub struct JudgeRule;

/// The judge that an event needs.
fn needed(payload: &Payload) -> Option<&JudgeId> {
    match payload {
        Payload::BatteryEvaluated(battery) => Some(&battery.judge),
        Payload::EvidenceRecorded(records) => Some(&records.judge),
        Payload::ScoreReplayed(replayed) => Some(&replayed.judge),
        _ => None,
    }
}

impl Rule for JudgeRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        if let Payload::JudgeRegistered(said) = &event.event.payload
            && let Some(experiment) = &event.event.header.experiment
            && state.asks(Question::DerivedJudge)
        {
            breaches.take(RuleName::Judge, check_derived(state, experiment, said));
        }
        if let Some(experiment) = &event.event.header.experiment
            && state.asks(Question::ScoresOnScale)
        {
            let of = state.fold::<Judges>().of(experiment);
            let answer = match &event.event.payload {
                Payload::ScoreScaleDeclared(said) => check_scale(of, said),
                Payload::ScoreRecorded(said) => check_score(of, said),
                _ => Ok(()),
            };
            breaches.take(RuleName::Judge, answer);
        }
        if let Payload::JudgeCompared(said) = &event.event.payload
            && let Some(experiment) = &event.event.header.experiment
            && state.asks(Question::ComparedJudges)
        {
            let answer = compared::check(state, event.seq, experiment, said);
            breaches.take(RuleName::Judge, answer);
        }
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

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let named = needed(&event.event.payload).zip(experiment);
        facts.extend(named.map(|(judge, experiment)| Fact::Needs {
            digest: registry::natural_key_of(Kind::JudgeRegistered, experiment, &[judge.as_str()]),
            before: event.seq,
            rule: RuleName::Judge,
        }));
    }
}
