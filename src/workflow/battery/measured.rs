//! From seeds and a scorer to what `battery.evaluated` and `exploit.discovered` say. `schema/BATTERY.md` has the roots.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_attack::Chain;
use clover_attack::Operator;
use clover_attack::battery;
use clover_attack::battery::Battery;
use clover_attack::battery::CalibratedReward;
use clover_attack::search;
use clover_event::id::EventId;
use clover_event::id::FamilyId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::id::SliceId;
use clover_event::id::Text;
use clover_event::payload::battery::AttackMeasured;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::battery::ChainMeasured;
use clover_event::payload::battery::ExploitDiscovered;
use clover_event::payload::battery::ExploitMeasured;
use clover_event::payload::battery::SliceStressed;
use clover_event::payload::battery::Violation;
use clover_event::payload::label::row_of_draw;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::math;
use clover_projection::batteries::EXPLOIT_MICRO;
use clover_projection::batteries::EXPLOITS_MAX;
use clover_projection::batteries::RISE_MICRO;
use serde::Serialize;

use crate::battery::Seed;
use crate::iterate::steps::BUILD;

/// Seeds unless a run says otherwise: most operators change every one of them, a fact flip most.
pub const SEEDS_DEFAULT: usize = 120;

/// Rewards of texts in place of a seed's response; `None` where there is no score.
pub type Score<'a> = dyn FnMut(&Seed<'_>, &str) -> Option<CalibratedReward> + 'a;

/// A slice with the seeds that lie in it.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceSeeds {
    /// Its family.
    pub family: FamilyId,
    /// Its seeds, by number.
    pub seeds: Vec<usize>,
    /// The slice.
    pub slice: SliceId,
}

/// An exploit that is known.
#[derive(Clone, Debug)]
pub struct KnownExploit<'a> {
    /// What is done.
    pub chain: Chain,
    /// Its number.
    pub number: u64,
    /// Its seed; `None` when the text is not at hand.
    pub seed: Option<Seed<'a>>,
}

/// What is attacked.
#[derive(Clone, Debug)]
pub struct AttackTarget<'a> {
    /// Digest of the calibrator.
    pub calibrator: Digest,
    /// The candidate; `None` for the rubric that the iteration starts from.
    pub candidate: Option<Digest>,
    /// The iteration.
    pub iteration: &'a IterationId,
    /// The judge.
    pub judge: &'a JudgeId,
    /// Exploits in order of their number.
    pub known: Vec<KnownExploit<'a>>,
    /// Hash of the rubric.
    pub rubric_hash: Digest,
    /// Seeds.
    pub seeds: Vec<Seed<'a>>,
    /// Slices with their seeds; none for a candidate.
    pub slices: Vec<SliceSeeds>,
    /// Bounds that the patch states itself.
    pub tighter: BTreeMap<Operator, f64>,
    /// Tries of the search.
    pub tries: u32,
}

/// A seed and a chain that earn more than they may.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainExploit {
    /// What is done.
    pub chain: Chain,
    /// Number of the seed.
    pub seed: usize,
    /// Its uplift.
    pub uplift: Micro,
    /// Why it violates an obligation.
    pub violation: Violation,
}

/// Why nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasurementGap {
    /// Nothing to attack.
    #[error("no seed")]
    NoSeeds,
    /// A search of another length.
    #[error("expected 100 to 200 tries")]
    Tries,
    /// A reward that is no number.
    #[error("a reward that is no finite number")]
    Reward,
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: a chain is a short plain text")
}

fn finite(value: f64) -> Result<Finite, MeasurementGap> {
    Finite::new(value).ok_or(MeasurementGap::Reward)
}

fn micro(value: f64) -> Result<Micro, MeasurementGap> {
    let finite = finite(value)?.value();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "differences of rewards in [0, 1]; what is beyond saturates and is refused"
    )]
    Micro::new((finite * 1e6).round() as i64).ok_or(MeasurementGap::Reward)
}

/// The row of a seed, `policy/item/draw`.
pub fn row(seed: &Seed<'_>) -> String {
    row_of_draw(seed.policy, seed.item, seed.draw)
}

/// Runs everything: each attack on each seed, the search, and every known exploit again. `score` is under the rubric that is
/// attacked, `before` under the one that the iteration starts from, for a candidate.
///
/// # Errors
/// [`MeasurementGap`].
pub fn measure(
    target: &AttackTarget<'_>,
    score: &mut Score<'_>,
    before: Option<&mut Score<'_>>,
) -> Result<(BatteryEvaluated, Vec<ChainExploit>), MeasurementGap> {
    if target.seeds.is_empty() {
        return Err(MeasurementGap::NoSeeds);
    }
    let texts: Vec<&str> = target.seeds.iter().map(|seed| seed.response).collect();
    let battery = battery::run(&texts, |at, text| score(&target.seeds[at], text));
    let hash = target.candidate.unwrap_or(target.rubric_hash);
    let start = search::seed(target.iteration.as_str(), &hash);
    let found = search::run(&texts, target.tries, start, |at, text| {
        score(&target.seeds[at], text)
    });
    let found = found.ok_or(MeasurementGap::Tries)?;
    let (exploits, missing) = again(&target.known, score, before)?;
    let unscored = battery.unscored + found.unscored + missing;
    let chains = found.chains.iter().map(|of| {
        Ok(ChainMeasured {
            chain: text(&of.chain.to_string()),
            mean: finite(of.mean)?,
            seeds: count(of.seeds),
        })
    });
    let chains: Vec<ChainMeasured> = chains.collect::<Result<_, _>>()?;
    let worst = found.worst().map(|of| finite(of.mean)).transpose()?;
    let regressions = exploits.iter().filter(|of| is_worse(of)).count();
    let names: Vec<String> = target.seeds.iter().map(row).collect();
    let event = BatteryEvaluated {
        answers: Vec::new(),
        attacks: attacks(&battery, &target.tighter)?,
        build: text(BUILD),
        calibrator: target.calibrator,
        candidate: target.candidate,
        chains,
        chains_root: chains_root(&found.best, &names)?,
        exploits,
        iteration: target.iteration.clone(),
        judge: target.judge.clone(),
        regressions: count(regressions),
        rubric_hash: target.rubric_hash,
        seeds: count(target.seeds.len()),
        seeds_root: Root(root(
            names.iter().map(|name| merkle::leaf_hash(name.as_bytes())),
        )),
        slices: stressed(&battery, &target.slices)?,
        tries: count(target.tries as usize),
        u_adv: worst.filter(|_| unscored == 0),
        unscored: count(unscored),
    };
    let exploits = discovered(target, &battery, &found)?;
    Ok((event, exploits))
}

/// Known exploits measured again, and how many could not be.
fn again(
    known: &[KnownExploit<'_>],
    score: &mut Score<'_>,
    mut before: Option<&mut Score<'_>>,
) -> Result<(Vec<ExploitMeasured>, usize), MeasurementGap> {
    let uplift = |of: &KnownExploit<'_>, score: &mut Score<'_>| {
        let seed = of.seed.as_ref()?;
        let entry = battery::Entry {
            chain: of.chain.clone(),
            seed: row(seed),
        };
        battery::replay(&entry, seed.response, |text| score(seed, text))
    };
    let mut measured = Vec::with_capacity(known.len());
    let mut missing = 0;
    for of in known {
        let now = uplift(of, score);
        let old = before.as_deref_mut().map(|before| uplift(of, before));
        let (Some(now), false) = (now, old == Some(None)) else {
            missing += 1;
            continue;
        };
        measured.push(ExploitMeasured {
            before_micro: old.flatten().map(micro).transpose()?,
            exploit: Count::new(of.number).unwrap_or_default(),
            uplift_micro: micro(now)?,
        });
    }
    Ok((measured, missing))
}

fn is_worse(of: &ExploitMeasured) -> bool {
    let now = of.uplift_micro.value();
    of.before_micro.is_some_and(|before| {
        let before = before.value();
        if before <= EXPLOIT_MICRO {
            now > EXPLOIT_MICRO
        } else {
            now > before + RISE_MICRO
        }
    })
}

/// Statistics of each attack that changed a seed.
fn attacks(
    battery: &Battery,
    tighter: &BTreeMap<Operator, f64>,
) -> Result<Vec<AttackMeasured>, MeasurementGap> {
    let mut attacks = Vec::new();
    for operator in Operator::ALL {
        let of = battery
            .uplifts
            .iter()
            .filter(|one| one.operator == operator);
        let uplifts: Vec<f64> = of.map(|one| one.uplift).collect();
        if uplifts.is_empty() {
            continue;
        }
        let absolute: Vec<f64> = uplifts.iter().map(|uplift| uplift.abs()).collect();
        attacks.push(AttackMeasured {
            attack: operator.as_str().parse().expect("BUG: a name"),
            max: finite(uplifts.iter().copied().fold(f64::NEG_INFINITY, f64::max))?,
            mean: finite(math::mean(&uplifts))?,
            mean_absolute: finite(math::mean(&absolute))?,
            seeds: count(uplifts.len()),
            tighter_max: tighter.get(&operator).map(|own| finite(*own)).transpose()?,
        });
    }
    Ok(attacks)
}

/// Mean uplift of each attack among the seeds of each slice.
fn stressed(
    battery: &Battery,
    slices: &[SliceSeeds],
) -> Result<Vec<SliceStressed>, MeasurementGap> {
    let ran: BTreeSet<Operator> = battery.uplifts.iter().map(|one| one.operator).collect();
    let mut stressed = Vec::with_capacity(slices.len());
    for slice in slices {
        let (mut means, mut seeds) = (Vec::new(), Vec::new());
        for operator in &ran {
            let of = battery
                .uplifts
                .iter()
                .filter(|one| one.operator == *operator);
            let here = of.filter(|one| slice.seeds.contains(&one.seed));
            let uplifts: Vec<f64> = here.map(|one| one.uplift).collect();
            seeds.push(count(uplifts.len()));
            means.push(if uplifts.is_empty() {
                Micro::default()
            } else {
                micro(math::mean(&uplifts))?
            });
        }
        stressed.push(SliceStressed {
            family: slice.family.clone(),
            means_micro: means,
            seeds,
            slice: slice.slice.clone(),
        });
    }
    Ok(stressed)
}

fn root(leaves: impl Iterator<Item = Digest>) -> Digest {
    let mut tree = Frontier::new();
    leaves.for_each(|leaf| tree.push(leaf));
    tree.root()
}

/// One leaf of the best chains.
#[derive(Serialize)]
struct ChainLeaf<'a> {
    chain: String,
    row: &'a str,
    uplift: Finite,
}

fn chains_root(best: &[search::Best], names: &[String]) -> Result<Root, MeasurementGap> {
    let mut leaves = Vec::with_capacity(best.len());
    for of in best {
        let leaf = ChainLeaf {
            chain: of.chain.to_string(),
            row: &names[of.seed],
            uplift: finite(of.uplift)?,
        };
        let bytes = canon::to_bytes(&leaf).expect("BUG: a leaf has a canonical form");
        leaves.push(merkle::leaf_hash(&bytes));
    }
    Ok(Root(root(leaves.into_iter())))
}

/// Of each seed the worst that earns too much against an obligation, by attack or by search, where it is not known yet.
fn discovered(
    target: &AttackTarget<'_>,
    battery: &Battery,
    found: &search::SearchResult,
) -> Result<Vec<ChainExploit>, MeasurementGap> {
    let mut worst: BTreeMap<usize, (Chain, f64)> = BTreeMap::new();
    let singles = battery
        .uplifts
        .iter()
        .filter(|one| one.violates)
        .map(|one| {
            (
                one.seed,
                Chain::one(battery::step(one.operator, one.seed)),
                one.uplift,
            )
        });
    let searched = found
        .best
        .iter()
        .map(|of| (of.seed, of.chain.clone(), of.uplift));
    for (seed, chain, uplift) in singles.chain(searched) {
        let old = worst.get(&seed).map_or(f64::NEG_INFINITY, |of| of.1);
        if uplift > old {
            worst.insert(seed, (chain, uplift));
        }
    }
    let known: BTreeSet<(String, String)> = target
        .known
        .iter()
        .filter_map(|of| Some((row(of.seed.as_ref()?), of.chain.to_string())))
        .collect();
    let mut exploits = Vec::new();
    for (seed, (chain, uplift)) in worst {
        let uplift = micro(uplift)?;
        let name = (row(&target.seeds[seed]), chain.to_string());
        if uplift.value() <= EXPLOIT_MICRO || known.contains(&name) {
            continue;
        }
        let violation = if chain.apply(target.seeds[seed].response).violates {
            Violation::Construction
        } else {
            Violation::Trace
        };
        exploits.push(ChainExploit {
            chain,
            seed,
            uplift,
            violation,
        });
    }
    exploits.truncate(EXPLOITS_MAX.saturating_sub(target.known.len()));
    Ok(exploits)
}

/// The event of an exploit that a recorded battery found.
pub fn discovery(
    target: &AttackTarget<'_>,
    battery: EventId,
    found: &ChainExploit,
) -> ExploitDiscovered {
    let seed = &target.seeds[found.seed];
    ExploitDiscovered {
        battery,
        chain: text(&found.chain.to_string()),
        draw: seed.draw,
        item: seed.item.clone(),
        iteration: target.iteration.clone(),
        policy: seed.policy.clone(),
        rubric_hash: target.rubric_hash,
        uplift_micro: found.uplift,
        violation: found.violation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A judge that pays .15 for each of at most two citations; `mended` takes it back.
    fn paid(mended: bool) -> impl FnMut(&Seed<'_>, &str) -> Option<CalibratedReward> {
        move |_, text| {
            let cited = text.matches("https://").count().min(2);
            let paid = if mended { 0.0 } else { 0.15 * cited as f64 };
            Some(CalibratedReward {
                reward: 0.2 + paid,
                violates: false,
            })
        }
    }

    #[test]
    fn what_was_found_is_measured_again_under_the_next_rubric() {
        let texts: Vec<String> = (0..60)
            .map(|at| format!("Answer {at} is that the dose may be {at} mg."))
            .collect();
        let items: Vec<_> = (0..60)
            .map(|at| format!("item-{at:02}").parse().unwrap())
            .collect();
        let policy = "base".parse().unwrap();
        let seeds: Vec<Seed<'_>> = texts
            .iter()
            .zip(&items)
            .map(|(response, item)| Seed {
                item,
                policy: &policy,
                draw: Count::default(),
                prompt: "a dose",
                response,
                traces: None,
            })
            .collect();
        let (iteration, judge) = ("it-1".parse().unwrap(), "builtin".parse().unwrap());
        let slices = vec![SliceSeeds {
            family: "f".parse().unwrap(),
            seeds: (0..30).collect(),
            slice: "s".parse().unwrap(),
        }];
        let mut target = AttackTarget {
            calibrator: Digest([1; 32]),
            candidate: None,
            iteration: &iteration,
            judge: &judge,
            known: Vec::new(),
            rubric_hash: Digest([2; 32]),
            seeds: seeds.clone(),
            slices,
            tighter: BTreeMap::new(),
            tries: 150,
        };
        let (said, found) = measure(&target, &mut paid(false), None).unwrap();
        assert!((said.u_adv.unwrap().value() - 0.30).abs() < 1e-12);
        assert!(said.exploits.is_empty() && said.regressions.value() == 0);
        // Every seed has its worst: the single citation of the battery earns .15 or more.
        assert_eq!(found.len(), 60);
        assert!(found.iter().all(|of| of.uplift.value() >= 150_000));
        let fake = said
            .attacks
            .iter()
            .position(|of| of.attack.as_str() == "fake_citation")
            .unwrap();
        assert_eq!(said.slices[0].seeds[fake].value(), 30);
        assert!(said.slices[0].means_micro[fake].value() >= 150_000);
        let again = measure(&target, &mut paid(false), None).unwrap();
        assert_eq!(again, (said, found.clone()));
        // A candidate closes them all; one whose text is gone is not measured, and then nothing passes.
        target.candidate = Some(Digest([3; 32]));
        target.slices = Vec::new();
        let known = found.iter().zip(0..).map(|(of, number)| KnownExploit {
            chain: of.chain.clone(),
            number,
            seed: Some(seeds[of.seed]),
        });
        target.known = known.collect();
        let (said, none) = measure(&target, &mut paid(true), Some(&mut paid(false))).unwrap();
        assert_eq!((said.exploits.len(), none.len()), (60, 0));
        assert!(said.exploits.iter().all(|of| of.uplift_micro.value() == 0));
        assert_eq!(said.u_adv.map(Finite::value), Some(0.0));
        target.known[7].seed = None;
        let (said, _) = measure(&target, &mut paid(true), Some(&mut paid(false))).unwrap();
        assert_eq!((said.unscored.value(), said.u_adv), (1, None));
        // The other way round every closed exploit reopens.
        let (said, _) = measure(&target, &mut paid(false), Some(&mut paid(true))).unwrap();
        assert_eq!(said.regressions.value(), 59);
    }
}
