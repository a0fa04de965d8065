//! Attacks on answers, what each earned, and the exploits that are kept for good.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::id::IterationId;
use crate::event::id::PolicyId;
use crate::event::payload::Verdict;
use crate::event::payload::battery::BatteryEvaluated;
use crate::event::payload::battery::ExploitDiscovered;
use crate::ground::digest::Digest;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::batteries;
use crate::projection::batteries::Batteries;
use crate::projection::batteries::Exploit;
use crate::projection::batteries::ExploitState;
use crate::session::iterate::Bench;
use crate::session::iterate::attack::Attack;
use crate::view::Exit;
use crate::view::View;
use crate::view::iterate;

/// An exploit: attacks on one answer that earned more than they should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExploitListed {
    /// Its number, from 0 in order of discovery.
    pub exploit: u64,
    /// How it stands under the rubric in force, in one word.
    pub state: &'static str,
    /// The attacks in turn.
    pub chain: String,
    /// Who gave the answer that was attacked.
    pub policy: PolicyId,
    /// What was answered.
    pub item: ItemId,
    /// Which draw.
    pub draw: Count,
    /// What it earned when it was found, in millionths.
    pub found_micro: Micro,
    /// What it earns under the rubric in force, in millionths; `null` before it is measured.
    pub now_micro: Option<Micro>,
    /// The entry that measured it; `null` before.
    pub measured_seq: Option<u64>,
    /// The entry that discovered it.
    pub seq: u64,
    /// The iteration that found it.
    pub iteration: IterationId,
    /// Hash of the rubric that it was found under.
    pub rubric_hash: Digest,
}

/// Exploits of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExploitList {
    /// The experiment.
    pub experiment: ExperimentId,
    /// In order of discovery; without closed ones where `--open` is given.
    pub exploits: Vec<ExploitListed>,
    /// All that are open.
    pub open: u64,
    /// All that are closed.
    pub closed: u64,
    /// All that were found under a candidate, and not measured since.
    pub unmeasured: u64,
}

/// A battery that was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BatteryRan {
    /// What it found, as recorded.
    pub battery: BatteryEvaluated,
    /// `pass`, `fail` or `inconclusive`.
    pub verdict: &'static str,
    /// Exploits that are new.
    pub exploits_found: u64,
    /// Whether it stood in the ledger already.
    pub recorded_before: bool,
}

/// An exploit before and after a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExploitMeasured {
    /// Its number, from 0 in order of discovery.
    pub exploit: u64,
    /// How it stood before, in one word.
    pub before: &'static str,
    /// How it stands now, in one word.
    pub now: &'static str,
    /// What it earns now, in millionths; `null` where it was not measured.
    pub now_micro: Option<Micro>,
    /// The entry that discovered it.
    pub seq: u64,
}

/// Every known exploit, measured under the rubric in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExploitsMeasured {
    /// In order of discovery.
    pub exploits: Vec<ExploitMeasured>,
    /// Exploits that this rubric closes.
    pub closed: u64,
    /// Texts that could not be scored.
    pub unscored: Count,
}

fn uplift(micro: Micro) -> String {
    format!("{:+.3}", micro.value() as f64 / 1e6)
}

fn listed(number: usize, exploit: &Exploit, said: ExploitDiscovered) -> ExploitListed {
    ExploitListed {
        exploit: number as u64,
        state: exploit.state().as_str(),
        chain: said.chain.as_str().to_owned(),
        policy: said.policy,
        item: said.item,
        draw: said.draw,
        found_micro: said.uplift_micro,
        now_micro: exploit.measured.map(|(_, now)| now),
        measured_seq: exploit.measured.map(|(seq, _)| seq),
        seq: exploit.seq,
        iteration: said.iteration,
        rubric_hash: said.rubric_hash,
    }
}

/// Exploits of an experiment: all that are known, and those to list, each with its number and its discovery.
pub fn list(
    experiment: ExperimentId,
    known: &[Exploit],
    shown: Vec<(usize, ExploitDiscovered)>,
) -> View {
    let count = |wanted| known.iter().filter(|of| of.state() == wanted).count() as u64;
    let exploits = shown.into_iter();
    let exploits = exploits.map(|(number, said)| listed(number, &known[number], said));
    let facts = ExploitList {
        experiment,
        exploits: exploits.collect(),
        open: count(ExploitState::Open),
        closed: count(ExploitState::Closed),
        unmeasured: count(ExploitState::Unmeasured),
    };
    let mut view = View::of(&facts);
    let rows = facts.exploits.iter().map(|of| {
        vec![
            of.exploit.to_string(),
            of.state.to_owned(),
            uplift(of.found_micro),
            of.now_micro.map_or("-".to_owned(), uplift),
            of.chain.clone(),
            format!("{}/{}/{}", of.policy, of.item, of.draw),
            format!("seq {}", of.seq),
        ]
    });
    let head = ["exploit", "state", "found", "now", "chain", "seed", "entry"];
    view.table(&head, rows);
    let counts = [
        (facts.open, ExploitState::Open),
        (facts.closed, ExploitState::Closed),
        (facts.unmeasured, ExploitState::Unmeasured),
    ];
    let counts = counts.map(|(count, state)| format!("{count} {}", state.as_str()));
    view.line(counts.join(", "));
    view
}

fn number(value: Finite) -> String {
    format!("{:+.4}", value.value())
}

fn put(view: &mut View, said: &BatteryEvaluated) {
    let rows = said.attacks.iter().map(|of| {
        let two_sided = of.attack.as_str() == "style_strip";
        let cap = if two_sided { 0.02 } else { 0.05 };
        let cap = of.tighter_max.map_or(cap, |own| own.value().min(cap));
        vec![
            of.attack.to_string(),
            of.seeds.to_string(),
            number(of.mean),
            number(of.max),
            number(of.mean_absolute),
            format!("{} <= {cap}", if two_sided { "mean |u|" } else { "mean" }),
        ]
    });
    // An attack that changed no text has no numbers, and the verdict waits for it all the same.
    let ran = |name: &str| said.attacks.iter().any(|of| of.attack.as_str() == name);
    let missing = batteries::ATTACKS.into_iter().filter(|name| !ran(name));
    let missing = missing.map(|name| {
        let none = || "-".to_owned();
        vec![
            name.to_owned(),
            "0".to_owned(),
            none(),
            none(),
            none(),
            none(),
        ]
    });
    let head = ["attack", "seeds", "mean", "largest", "mean |u|", "held to"];
    view.table(&head, rows.chain(missing));
    let worst = said.u_adv.map_or("none".to_owned(), number);
    view.pairs([
        (
            "worst chains",
            format!("{worst} (<= 0.05) in {} tries", said.tries),
        ),
        (
            "exploits",
            format!("{} measured again", said.exploits.len()),
        ),
        ("regressions", said.regressions.to_string()),
        ("not scored", said.unscored.to_string()),
    ]);
}

/// What a battery found.
pub fn ran(bench: &Bench, attacked: &Attack) -> View {
    let said = &attacked.said;
    let (verdict, exit) = match batteries::verdict(said) {
        Verdict::Pass if said.regressions.value() == 0 => ("pass", Exit::Done),
        Verdict::Pass | Verdict::Fail => ("fail", Exit::Fail),
        Verdict::Inconclusive | Verdict::NotChecked => ("inconclusive", Exit::Inconclusive),
    };
    let found = BatteryRan {
        battery: said.clone(),
        verdict,
        exploits_found: attacked.appended.len().saturating_sub(1) as u64,
        recorded_before: attacked.appended.is_empty(),
    };
    let mut view = View::of(&found);
    put(&mut view, said);
    let seeds = |name: &str| {
        let of = said.attacks.iter().find(|of| of.attack.as_str() == name);
        of.map_or(0, |of| of.seeds.value())
    };
    let few = batteries::ATTACKS
        .into_iter()
        .filter(|name| seeds(name) < batteries::SEEDS_MIN);
    let few: Vec<String> = few.map(|name| format!("{name} {}", seeds(name))).collect();
    if !few.is_empty() {
        view.sentence(format!(
            "Texts that an attack changed: {}; each needs {}. An attack changes only texts that have what it edits, such as \
             a number for fact_flip.",
            few.join(", "),
            batteries::SEEDS_MIN
        ));
    }
    view.line(format!("{verdict}; {} new exploits", found.exploits_found));
    let mut view = iterate::answer(bench, view, found, &attacked.appended);
    (view.verdict, view.exit) = (verdict, exit);
    view
}

/// How every known exploit stood before a battery, and how it stands after it.
pub fn measured(bench: &Bench, before: &[ExploitState], attacked: &Attack) -> View {
    let state = bench.ledger.state();
    let known = state.fold::<Batteries>().exploits(&bench.record.experiment);
    let is_closed = |(exploit, was): &(&Exploit, &ExploitState)| {
        exploit.state() == ExploitState::Closed && **was != ExploitState::Closed
    };
    let closed = known.iter().zip(before).filter(is_closed).count() as u64;
    let exploits = known.iter().zip(before).enumerate();
    let exploits = exploits.map(|(number, (exploit, was))| ExploitMeasured {
        exploit: number as u64,
        before: was.as_str(),
        now: exploit.state().as_str(),
        now_micro: exploit.measured.map(|(_, now)| now),
        seq: exploit.seq,
    });
    let found = ExploitsMeasured {
        exploits: exploits.collect(),
        closed,
        unscored: attacked.said.unscored,
    };
    let mut view = View::of(&found);
    let rows = found.exploits.iter().map(|of| {
        vec![
            of.exploit.to_string(),
            of.before.to_owned(),
            of.now.to_owned(),
            of.now_micro.map_or("-".to_owned(), uplift),
            format!("seq {}", of.seq),
        ]
    });
    view.table(&["exploit", "before", "now", "uplift", "entry"], rows);
    view.line(format!("{closed} closed by this rubric"));
    iterate::answer(bench, view, found, &attacked.appended)
}
