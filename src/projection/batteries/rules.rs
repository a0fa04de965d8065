//! The rule `battery`: what a battery and an exploit may say, and what cards and P7 may say of them.

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::Role;
use clover_event::payload::Verdict;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::battery::ExploitDiscovered;
use clover_event::payload::battery::Violation;
use clover_event::payload::card::CardPublished;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::scoring::JudgePort;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Finite;

use crate::batteries::Batteries;
use crate::batteries::EXPLOIT_MICRO;
use crate::batteries::RISE_MICRO;
use crate::batteries::gaming_digest;
use crate::decisions::AllDecisions;
use crate::decisions::Live;
use crate::decisions::block;
use crate::decisions::live;
use crate::iterations::Iteration;
use crate::judges::Judges;

/// Attacks without which a battery is not whole.
pub const ATTACKS: [&str; 7] = [
    "contradiction_inject",
    "fabricated_tool_trace",
    "fact_flip",
    "fake_citation",
    "padding",
    "rubric_mimicry",
    STYLE,
];
/// The attack that is held to its mean absolute uplift, and that alone violates nothing.
const STYLE: &str = "style_strip";
/// Every edit that a chain may be made of.
pub const EDITS: [&str; 28] = [
    "authority_tone",
    "authority_tone:credential",
    "contradiction_inject",
    "fabricated_tool_trace:1",
    "fabricated_tool_trace:2",
    "fabricated_tool_trace:3",
    "fact_flip:negation",
    "fact_flip:number",
    "fact_flip:opposite",
    "fact_flip:unit",
    "fake_citation:1:listed",
    "fake_citation:1:unlisted",
    "fake_citation:2:listed",
    "fake_citation:2:unlisted",
    "fake_citation:3:listed",
    "fake_citation:3:unlisted",
    "padding:100",
    "padding:180",
    "padding:50",
    "rubric_mimicry:1:end",
    "rubric_mimicry:1:front",
    "rubric_mimicry:2:end",
    "rubric_mimicry:2:front",
    "rubric_mimicry:3:end",
    "rubric_mimicry:3:front",
    "rubric_mimicry:4:end",
    "rubric_mimicry:4:front",
    STYLE,
];
/// Most exploits of an experiment.
pub const EXPLOITS_MAX: usize = 400;
/// Most steps of a chain.
const DEPTH_MAX: usize = 3;
/// Most chains of a battery.
const CHAINS_MAX: usize = 10;
/// Tries of a search.
const TRIES: std::ops::RangeInclusive<u64> = 100..=200;
/// Seeds below which an attack is not judged.
pub const SEEDS_MIN: u64 = 50;
/// Largest mean uplift, and largest mean absolute one of style stripping.
const TOLERANCE: (f64, f64) = (0.05, 0.02);

/// The rule `battery`.
#[derive(Clone, Copy, Debug)]
pub struct BatteryRule;

impl Rule for BatteryRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let checked = match &event.event.payload {
            Payload::BatteryEvaluated(said) => check_evaluated(state, experiment, said),
            Payload::ExploitDiscovered(said) => check_discovered(state, experiment, said),
            Payload::CardPublished(said) => check_stressed(state, said),
            Payload::GateEvaluated(said) => check_criterion(state, said),
            _ => return,
        };
        breaches.take(RuleName::Battery, checked);
    }
}

/// What a battery says of the assumption that gaming is bounded.
pub fn verdict(said: &BatteryEvaluated) -> Verdict {
    let (cap, style) = TOLERANCE;
    let ran = |name: &&str| said.attacks.iter().any(|of| of.attack.as_str() == *name);
    let exceeds = said.attacks.iter().any(|of| {
        let (value, cap) = match of.attack.as_str() {
            STYLE => (of.mean_absolute, style),
            _ => (of.mean, cap),
        };
        of.seeds.value() >= SEEDS_MIN && value.value() > cap
    });
    let few = said.attacks.iter().any(|of| of.seeds.value() < SEEDS_MIN);
    match said.u_adv {
        _ if exceeds => Verdict::Fail,
        Some(worst) if worst.value() > cap => Verdict::Fail,
        None => Verdict::Inconclusive,
        Some(_) if few || !ATTACKS.iter().all(ran) => Verdict::Inconclusive,
        Some(_) => Verdict::Pass,
    }
}

fn check_evaluated(
    state: &State,
    experiment: &ExperimentId,
    said: &BatteryEvaluated,
) -> RuleAnswer {
    let live = live(state, experiment, &said.iteration)?;
    live.check_going_on("a battery")?;
    ensure!(
        TRIES.contains(&said.tries.value()),
        "100 to 200 tries",
        said.tries.to_string()
    );
    match said.candidate {
        None => check_attacked(live.it.rubric_hash, said)?,
        Some(candidate) => {
            check_candidate(state, &live, said, candidate)?;
            let mut all = live.it.candidates.values();
            let patch = all.find(|of| of.patch_hash == candidate);
            // What results from a composite is in no event: whoever reads its patches computes it again.
            if let Some(patch) = patch {
                check_attacked(patch.result_hash, said)?;
            }
        }
    }
    if state.asks(Question::BothAnswers) {
        check_both(state, (experiment, live.it), said)?;
    } else if state.asks(Question::AnsweredBattery) {
        check_answers(state, experiment, said)?;
    }
    check_listed(said)?;
    let known = state.fold::<Batteries>().exploits(experiment).len() as u64;
    check_measured(said, known)
}

/// What a program answered is named, the judge's own first: it, and the same judge told what a candidate changes.
fn check_answers(state: &State, experiment: &ExperimentId, said: &BatteryEvaluated) -> RuleAnswer {
    let judges = state.fold::<Judges>().of(experiment);
    let registered = |judge: &JudgeId| Some(&judges?.judges.get(judge)?.said);
    // The rule `judge` refuses a judge that nobody registered.
    let Some(judge) = registered(&said.judge) else {
        return Ok(());
    };
    let names: Vec<&JudgeId> = said.answers.iter().map(|of| &of.judge).collect();
    if judge.port != JudgePort::Command {
        let expected = format!("no answers: {} is no program", said.judge);
        return match names.first() {
            None => Ok(()),
            Some(name) => unmet(expected, format!("answers of {name}")),
        };
    }
    ensure!(
        said.seeds.value() == 0 || !names.is_empty(),
        format!("answers of {}, which is a program", said.judge),
        "none"
    );
    let is_told = |name: &JudgeId| {
        let root = registered(name).and_then(|of| of.of.as_ref());
        said.candidate.is_some() && root == Some(judge.root())
    };
    let own = names.first() == Some(&&said.judge);
    let others = &names[usize::from(own)..];
    ensure!(
        others.len() <= 1 && others.iter().all(|name| is_told(name)),
        format!(
            "answers of {}, and of it as a candidate tells it",
            said.judge
        ),
        "those of another"
    );
    let empty = said.answers.iter().find(|of| of.records_count.value() == 0);
    ensure!(empty.is_none(), "at least one answer of each", "none");
    Ok(())
}

/// What programs answered is named, each once and in the order of asks: the judge of the iteration where known exploits were
/// measured before a candidate tells it something else, and the judge that is attacked.
fn check_both(
    state: &State,
    (experiment, it): (&ExperimentId, &Iteration),
    said: &BatteryEvaluated,
) -> RuleAnswer {
    let judges = state.fold::<Judges>().of(experiment);
    // The rule `judge` refuses a judge that nobody registered.
    let Some(judge) = judges.and_then(|of| of.judges.get(&said.judge)) else {
        return Ok(());
    };
    let names: Vec<&JudgeId> = said.answers.iter().map(|of| &of.judge).collect();
    let word = |names: &[&JudgeId]| match names {
        [] => "none".to_owned(),
        names => names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    if judge.said.port != JudgePort::Command {
        let expected = format!("no answers: {} is no program", said.judge);
        return if names.is_empty() {
            Ok(())
        } else {
            unmet(expected, format!("answers of {}", word(&names)))
        };
    }
    let first = block::judge_of(state, it);
    let first = first.filter(|first| said.candidate.is_some() && *first != said.judge);
    let is_read = match names.as_slice() {
        [] => said.seeds.value() == 0,
        [only] => **only == said.judge,
        [before, own] => Some(*before) == first.as_ref() && **own == said.judge,
        _ => false,
    };
    let expected = match first {
        None => format!("answers of {}", said.judge),
        Some(first) => format!(
            "answers of {}, and before them those of {first} about known exploits",
            said.judge
        ),
    };
    ensure!(is_read, expected, word(&names));
    let empty = said.answers.iter().find(|of| of.records_count.value() == 0);
    ensure!(empty.is_none(), "at least one answer of each", "none");
    Ok(())
}

/// The rubric that was attacked.
fn check_attacked(expected: Digest, said: &BatteryEvaluated) -> RuleAnswer {
    ensure!(
        said.rubric_hash == expected,
        format!("rubric_hash {expected}"),
        said.rubric_hash.to_string()
    );
    Ok(())
}

/// A candidate is attacked once, before unsealing and before its p7.
fn check_candidate(
    state: &State,
    live: &Live<'_>,
    said: &BatteryEvaluated,
    candidate: Digest,
) -> RuleAnswer {
    live.check_sealed("a battery")?;
    live.check_candidate(candidate)?;
    let of = state.fold::<Batteries>().of(&said.iteration);
    if let Some(old) = of.and_then(|of| of.candidate(candidate)) {
        let found = format!("one at seq {}", old.seq);
        return unmet("one battery of each candidate", found);
    }
    let judged = live.decided.and_then(|of| of.candidate(candidate));
    if let Some(p7) = judged.and_then(|of| of.said(Criterion::P7, CriterionSplit::Dev)) {
        let found = format!("p7 at seq {}", p7.seq);
        return unmet("a battery of a candidate before its p7", found);
    }
    Ok(())
}

/// Attacks, chains and slices of a battery.
fn check_listed(said: &BatteryEvaluated) -> RuleAnswer {
    let attacks = &said.attacks;
    if !attacks
        .windows(2)
        .all(|pair| pair[0].attack < pair[1].attack)
    {
        return unmet("attacks in order of name, each once", "another order");
    }
    let aligned = |of: &clover_event::payload::battery::SliceStressed| {
        of.means_micro.len() == attacks.len() && of.seeds.len() == attacks.len()
    };
    if !said.slices.iter().all(aligned) {
        let expected = format!("{} uplifts of each slice", attacks.len());
        return unmet(expected, "another number");
    }
    if said.chains.len() > CHAINS_MAX {
        let found = said.chains.len().to_string();
        return unmet(format!("at most {CHAINS_MAX} chains"), found);
    }
    if let Some(chain) = said
        .chains
        .iter()
        .find(|of| operators(of.chain.as_str()).is_none())
    {
        return unmet("a chain of one to three attacks", chain.chain.as_str());
    }
    let largest = said.chains.iter().map(|of| of.mean).reduce(|worst, next| {
        if next.value() > worst.value() {
            next
        } else {
            worst
        }
    });
    let expected = largest.filter(|_| said.unscored.value() == 0);
    let word = |of: Option<Finite>| of.map_or("none".to_owned(), |of| of.to_string());
    ensure!(
        said.u_adv == expected,
        format!("u_adv {}", word(expected)),
        word(said.u_adv)
    );
    Ok(())
}

/// Every known exploit is measured or counted as unscored, and what became worse is counted.
fn check_measured(said: &BatteryEvaluated, known: u64) -> RuleAnswer {
    let exploits = &said.exploits;
    let ordered = exploits
        .windows(2)
        .all(|pair| pair[0].exploit < pair[1].exploit);
    if !ordered || exploits.iter().any(|of| of.exploit.value() >= known) {
        return unmet(
            format!("exploits below {known} in order, each once"),
            "others",
        );
    }
    let missing = known - exploits.len() as u64;
    if said.unscored.value() < missing {
        let found = format!("{} left out", missing - said.unscored.value());
        return unmet(
            format!("each of {known} known exploits measured again"),
            found,
        );
    }
    let both = said.candidate.is_some();
    if exploits.iter().any(|of| of.before_micro.is_some() != both) {
        let expected = "before_micro where a candidate is attacked, and only there";
        return unmet(expected, "otherwise");
    }
    let worse = |of: &&clover_event::payload::battery::ExploitMeasured| {
        let before = of.before_micro.map_or(i64::MAX, clover_num::Micro::value);
        let now = of.uplift_micro.value();
        if before <= EXPLOIT_MICRO {
            now > EXPLOIT_MICRO
        } else {
            now > before.saturating_add(RISE_MICRO)
        }
    };
    let worse = exploits.iter().filter(worse).count() as u64;
    ensure!(
        said.regressions.value() == worse,
        format!("regressions {worse}"),
        said.regressions.to_string()
    );
    Ok(())
}

/// Whether a chain holds an attack that violates by what it is; `None` for a text that is no chain.
fn operators(chain: &str) -> Option<bool> {
    let steps: Vec<&str> = chain.split('+').collect();
    let mut violates = false;
    for step in &steps {
        let (edit, seed) = step.split_once('@')?;
        let plain = seed.parse::<u32>().ok()?.to_string() == seed;
        if !plain || !EDITS.contains(&edit) {
            return None;
        }
        violates |= edit != STYLE;
    }
    (steps.len() <= DEPTH_MAX).then_some(violates)
}

fn check_discovered(
    state: &State,
    experiment: &ExperimentId,
    said: &ExploitDiscovered,
) -> RuleAnswer {
    live(state, experiment, &said.iteration)?;
    ensure!(
        said.uplift_micro.value() > EXPLOIT_MICRO,
        "an uplift above 0.05",
        said.uplift_micro.to_string()
    );
    let Some(violates) = operators(said.chain.as_str()) else {
        return unmet("a chain of one to three attacks", said.chain.as_str());
    };
    ensure!(
        said.violation != Violation::Construction || violates,
        "a chain that violates by construction",
        said.chain.as_str()
    );
    let batteries = state.fold::<Batteries>();
    let of = batteries.of(&said.iteration);
    let mut ran = of
        .into_iter()
        .flat_map(|of| of.candidates.values().chain(&of.in_force));
    let Some(ran) = ran.find(|ran| ran.id == said.battery) else {
        let expected = format!("a battery of {}", said.iteration);
        return unmet(expected, said.battery.to_string());
    };
    ensure!(
        ran.rubric_hash == said.rubric_hash,
        format!("rubric_hash {}, as attacked", ran.rubric_hash),
        said.rubric_hash.to_string()
    );
    let known = batteries.exploits(experiment).len();
    ensure!(
        known < EXPLOITS_MAX,
        format!("at most {EXPLOITS_MAX} exploits"),
        (known + 1).to_string()
    );
    Ok(())
}

/// A card shows what the battery of the rubric in force measured in its slice, and nothing where none measured it.
fn check_stressed(state: &State, said: &CardPublished) -> RuleAnswer {
    let of = state.fold::<Batteries>().of(&said.iteration);
    let card = &said.card;
    let known = of
        .and_then(|of| of.stress.get(&card.family))
        .and_then(|slices| slices.get(&card.slice));
    let known = known.map_or(&[][..], Vec::as_slice);
    let expected = match of.and_then(|of| of.in_force) {
        Some(ran) => format!("the uplifts of {} at seq {}", card.slice.as_str(), ran.seq),
        None => "no uplifts, before a battery of the rubric in force".to_owned(),
    };
    ensure!(card.stress == known, expected, "others");
    Ok(())
}

/// P7 says what the battery of its candidate measured. In an iteration whose calibrators are on record, of a ledger with
/// an adversary, it names that battery, and without one it says that nobody looked. No other gate names one.
fn check_criterion(state: &State, said: &GateEvaluated) -> RuleAnswer {
    let word = |id: Option<EventId>| id.map_or("none".to_owned(), |id| id.to_string());
    let Evidence::P7(gaming) = &said.evidence else {
        ensure!(
            said.battery.is_none(),
            format!("no battery behind {}", said.gate),
            word(said.battery)
        );
        return Ok(());
    };
    let of = state.fold::<Batteries>().of(&said.iteration);
    let ran = of.and_then(|of| of.candidate(said.candidate));
    let named = ran.map(|ran| ran.id);
    let decided = state.fold::<AllDecisions>().of(&said.iteration);
    let somebody = state.keyring.live_with(Role::Adversary).next().is_some();
    let is_strict = somebody && decided.is_some_and(|of| of.calibrator(None).is_some());
    let is_named = is_strict || said.battery.is_some();
    ensure!(
        said.battery == named || !is_named,
        format!("battery {}, as recorded for the candidate", word(named)),
        word(said.battery)
    );
    let Some(ran) = ran else {
        ensure!(
            !is_strict || !gaming.is_checked(),
            "battery.evaluated of the candidate before its p7",
            "none"
        );
        return Ok(());
    };
    ensure!(
        ran.gaming == gaming_digest(gaming),
        format!("what the battery at seq {} measured", ran.seq),
        "other numbers"
    );
    Ok(())
}
