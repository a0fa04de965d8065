//! Gates: one story for each way to break a rule.

use clover::event::Payload;
use clover::event::id::Root;
use clover::event::payload::Role;
use clover::event::payload::decision::EvidenceClass;
use clover::event::payload::decision::FamilyClosed;
use clover::event::payload::decision::GateContinued;
use clover::event::payload::decision::GateLooked;
use clover::event::payload::decision::Grade;
use clover::event::payload::decision::MemberEvidence;
use clover::event::payload::decision::Outcome;
use clover::event::payload::decision::PromotionIssued;
use clover::event::payload::decision::PromotionRevoked;
use clover::event::payload::decision::Standing;
use clover::event::payload::manifest::FamilyMethod;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::num::Count;
use clover::num::Finite;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use super::world::tell_all;
use crate::support::gated;
use crate::support::gated::Life;
use crate::support::gated::values;
use crate::support::key_added;
use crate::support::planned;
use crate::support::planned::countersigned;
use crate::support::planned::registered;
use crate::support::signer;

pub(super) const EXP: Option<&str> = Some("exp-1");

pub(super) fn owner() -> Signer {
    signer(1)
}

pub(super) fn custodian() -> Signer {
    signer(5)
}

pub(super) fn say(world: &mut dyn World, payload: impl Into<Payload>) {
    world.say(&owner(), payload.into(), EXP);
}

pub(super) fn refused(
    world: &mut dyn World,
    rule: &str,
    wording: &[&str],
    payload: impl Into<Payload>,
) {
    world.refuse_saying(rule, wording, &owner(), payload.into(), EXP);
}

/// Given: a gate's manifest in force, on twelve units.
pub(super) fn in_force(world: &mut dyn World, change: impl Fn(&mut Value)) -> Life {
    let key = key_added(&custodian(), "Cem", &[Role::Custodian]);
    world.say(&owner(), key.into(), None);
    world.say(&owner(), planned::experiment_registered(), EXP);
    world.say(&owner(), planned::family(), None);
    registered_in(world, "exp-1", "m-1", change)
}

pub(super) fn registered_in(
    world: &mut dyn World,
    experiment: &str,
    id: &str,
    change: impl Fn(&mut Value),
) -> Life {
    let units = gated::units(&format!("unit-{id}"), 12);
    let mut gate = gated::gate(experiment, id, &units);
    change(&mut gate);
    world.say(&owner(), registered(&gate), Some(experiment));
    world.say(&custodian(), countersigned(&gate), Some(experiment));
    Life::new(&gate, &units)
}

/// Given: the same, and its units listed. The listing names the first checkpoint after it came into force.
fn listed(world: &mut dyn World, change: impl Fn(&mut Value)) -> (Life, Digest, u64) {
    let life = in_force(world, change);
    let (size, root) = (world.size(), world.root_at(world.size()));
    for payload in life.listed() {
        world.say(&custodian(), payload, EXP);
    }
    (life, root, size)
}

/// Given: the same, and its order drawn.
pub(super) fn drawn(world: &mut dyn World, change: impl Fn(&mut Value)) -> Life {
    let (mut life, root, size) = listed(world, change);
    let (listed, drawn) = life.drawn(root, size);
    say(world, listed);
    say(world, drawn);
    life
}

/// Given: the same, and the gate opened and ten of its units exposed.
pub(super) fn exposed(world: &mut dyn World, change: impl Fn(&mut Value)) -> Life {
    let life = drawn(world, change);
    say(world, life.opened());
    world.say(&custodian(), life.exposed(1, 0, 9), EXP);
    life
}

/// Given: the same, and so many units scored and observed, each better by as much as can be.
pub(super) fn observed(world: &mut dyn World, n: usize, change: impl Fn(&mut Value)) -> Life {
    let mut life = exposed(world, change);
    for t in 1..=n {
        observe(world, &mut life, t);
    }
    life
}

pub(super) fn observe(world: &mut dyn World, life: &mut Life, t: usize) {
    score(world, life, t);
    let (zero, one) = (values(0), values(1_000_000));
    let said = life.observed(t, &[[&zero, &one]]);
    say(world, said);
}

pub(super) fn score(world: &mut dyn World, life: &Life, t: usize) {
    let (zero, one) = (values(0), values(1_000_000));
    for score in life.scores(t, &[[&zero, &one]]) {
        say(world, score);
    }
}

/// Given: the same with eight units, and a decision to promote.
pub(super) fn decided(world: &mut dyn World, change: impl Fn(&mut Value)) -> Life {
    let mut life = observed(world, 8, change);
    let look = life.looked();
    assert_eq!(look.standing, Standing::Promote);
    say(world, look);
    let decided = life.decided();
    say(world, decided);
    life
}

pub(super) fn same(_: &mut Value) {}

#[test]
fn order_of_listed_units_only() {
    // Units are listed in ascending order, each once, and all of them before the order is drawn.
    tell(SOLO, |world| {
        let life = in_force(world, same);
        let Payload::UnitsListed(mut said) = life.listed().remove(0) else {
            unreachable!()
        };
        said.units.swap(0, 1);
        let words = ["ascending order, each once", "E_DUP_UNIT"];
        world.refuse_saying("order", &words, &custodian(), (*said).into(), EXP);
    });
    tell(SOLO, |world| {
        let (life, ..) = listed(world, same);
        let mut again = life.listed();
        let Payload::UnitsListed(said) = &mut again[0] else {
            unreachable!()
        };
        said.first = Count::new(12).unwrap();
        said.units = gated::units("zzz", 1);
        let words = ["not all listed", "12 units, all of them"];
        world.refuse_saying("order", &words, &custodian(), again.remove(0), EXP);
    });
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, same);
        let (mut listed, _) = life.drawn(root, size);
        listed.units[11] = "stranger".parse().unwrap();
        let seed = life.drawn(root, size).1.seed;
        listed
            .units
            .sort_by_key(|unit| clover::projection::orders::key(seed, unit));
        refused(
            world,
            "order",
            &["units.listed of this confirm root"],
            listed,
        );
    });
    tell(SOLO, |world| {
        let mut life = in_force(world, same);
        // Nothing is listed; the event itself names the first checkpoint.
        let (_, drawn) = life.drawn(world.root_at(world.size()), world.size());
        let words = ["12 listed units under", "0 under", "E_DATA_ROOT"];
        refused(world, "order", &words, drawn);
    });
}

#[test]
fn order_is_what_the_beacon_gives() {
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, same);
        let (mut listed, _) = life.drawn(root, size);
        listed.units.swap(3, 7);
        refused(world, "order", &["that seed", "E_ORDER"], listed);
    });
    // A later checkpoint is another beacon.
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, same);
        let (listed, _) = life.drawn(root, size);
        say(world, listed);
        let (_, later) = life.drawn(world.root_at(world.size()), world.size());
        refused(
            world,
            "order",
            &["the checkpoint of size", "E_ORDER"],
            later,
        );
    });
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, same);
        let (listed, mut drawn) = life.drawn(root, size);
        say(world, listed);
        drawn.permutation_root = Root(Digest([1; 32]));
        refused(world, "order", &["listed in order", "E_ORDER"], drawn);
    });
}

#[test]
fn order_is_drawn_once_and_before_exposure() {
    tell(SOLO, |world| {
        let mut life = drawn(world, same);
        let (mut listed, _) = life.drawn(Digest([0; 32]), 1);
        listed.first = Count::new(12).unwrap();
        refused(
            world,
            "order",
            &["an order that is not drawn yet", "E_ORDER"],
            listed,
        );
    });
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, same);
        world.say(&custodian(), life.exposed(1, 0, 9), EXP);
        let (listed, _) = life.drawn(root, size);
        refused(
            world,
            "order",
            &["before any unit is exposed", "a first look at seq"],
            listed,
        );
    });
    tell(SOLO, |world| {
        let (mut life, root, size) = listed(world, |gate| gate["test"]["beacon"] = "drand".into());
        let (listed, _) = life.drawn(root, size);
        refused(world, "order", &["first_checkpoint", "drand"], listed);
    });
}

#[test]
fn order_of_units_that_stood_in_an_earlier_order() {
    // Registered after the first order, or registered before it and brought into force after it.
    for is_late in [true, false] {
        reuses(is_late);
    }
}

fn reuses(is_late: bool) {
    tell(SOLO, |world| {
        let half = |gate: &mut Value| gate["test"]["alpha_micro"] = 25_000.into();
        let (mut first, root, size) = listed(world, half);
        let exp = Some("exp-2");
        // Another confirm set, with one unit of the first.
        let mut units = gated::units("other", 11);
        units.push(first.names[0].clone());
        units.sort();
        let mut gate = gated::gate("exp-2", "m-2", &units);
        half(&mut gate);
        let (order, drawn) = first.drawn(root, size);
        let first_order = |world: &mut dyn World| {
            say(world, order.clone());
            say(world, drawn.clone());
        };
        if is_late {
            first_order(world);
        }
        world.say(&owner(), planned::experiment_registered(), exp);
        world.say(&owner(), registered(&gate), exp);
        if !is_late {
            first_order(world);
        }
        world.say(&custodian(), countersigned(&gate), exp);
        let mut life = Life::new(&gate, &units);
        let (size, root) = (world.size(), world.root_at(world.size()));
        for payload in life.listed() {
            world.say(&custodian(), payload, exp);
        }
        let (listed, _) = life.drawn(root, size);
        let words = [
            "not drawn before the manifest came into force",
            "E_ADAPTIVE_REUSE",
        ];
        world.refuse_saying("order", &words, &owner(), listed.into(), exp);
    });
}

#[test]
fn gate_opened_as_registered() {
    let cases: &[(&str, Value, &str)] = &[
        ("alpha_micro", json!(60_000), "E_ALPHA"),
        ("n_max", json!(11), "E_N"),
        ("n_min", json!(4), "E_N"),
        ("null_margin_micro", json!(1), "E_MARGIN"),
        (
            "bettor",
            json!({"grid": 21, "name": "grid_kelly"}),
            "E_BETTOR",
        ),
        ("beacon", json!("drand"), "E_ORDER"),
        ("beta_futile_micro", json!(100_000), "E_UNREGISTERED_RULE"),
    ];
    for (name, value, code) in cases {
        tell(SOLO, |world| {
            let life = drawn(world, same);
            let mut said = serde_json::to_value(life.opened()).unwrap();
            said["test"][name] = value.clone();
            let said = planned::payload("gate.opened", &said);
            refused(world, "gate", &["as registered", name, code], said);
        });
    }
    tell(SOLO, |world| {
        let life = drawn(world, same);
        let mut said = life.opened();
        said.sources[0].metric = "other".parse().unwrap();
        refused(
            world,
            "gate",
            &["sources for quality", "E_JUDGE_DIGEST"],
            said,
        );
    });
    tell(SOLO, |world| {
        let (life, ..) = listed(world, same);
        refused(
            world,
            "gate",
            &["order.drawn before", "E_ORDER"],
            life.opened(),
        );
    });
    tell(SOLO, |world| {
        let life = drawn(world, same);
        world.say(&custodian(), life.exposed(1, 0, 9), EXP);
        refused(
            world,
            "gate",
            &["before any unit is exposed", "E_EXPOSURE"],
            life.opened(),
        );
    });
    tell(SOLO, |world| {
        let life = drawn(world, same);
        let mut second = planned::next(&life.value, &life.value);
        second["title"] = "other".into();
        say(world, planned::amended(&second, &life.value, 0));
        refused(world, "stale_version", &["E_STALE_VERSION"], life.opened());
    });
}

/// A bettor may be chosen anew until bets are made.
#[test]
fn gate_keeps_the_bettor_it_was_opened_with() {
    let amended = |life: &Life| {
        let mut second = planned::next(&life.value, &life.value);
        second["test"]["bettor"]["grid"] = 30.into();
        planned::amended(&second, &life.value, 2)
    };
    tell(SOLO, |world| {
        let life = drawn(world, same);
        say(world, amended(&life));
        refused(world, "stale_version", &["E_STALE_VERSION"], life.opened());
    });
    tell(SOLO, |world| {
        let life = observed(world, 2, same);
        refused(
            world,
            "amendment",
            &["continuation", "E_BETTOR"],
            amended(&life),
        );
    });
}

#[test]
fn gate_that_can_be_tested() {
    let cases: &[(&str, Value, &str)] = &[
        ("/test/side", json!("lower"), "E_DIRECTION"),
        ("/test/bettor/grid", json!(101), "E_BETTOR"),
        (
            "/estimand/exclusions",
            json!([{"field": "length", "op": "missing"}]),
            "E_UNREGISTERED_RULE",
        ),
        ("/data/strata", json!(["length"]), "E_UNREGISTERED_RULE"),
    ];
    for (path, value, code) in cases {
        tell(SOLO, |world| {
            let life = drawn(world, |gate| {
                let (parent, name) = path.rsplit_once('/').unwrap();
                gate.pointer_mut(parent).unwrap()[name] = value.clone();
            });
            refused(world, "gate", &[code], life.opened());
        });
    }
}

/// What shows a small effect says nothing against a claim of harm, sameness or difference; against noninferiority it does from
/// its margin on.
#[test]
fn futility_is_of_claims_that_a_small_effect_speaks_against() {
    let planned = |kind: &'static str, side: &'static str, margin: i64, effect: i64| {
        move |gate: &mut Value| {
            gate["hypothesis"]["kind"] = kind.into();
            gate["test"]["side"] = side.into();
            gate["test"]["null_margin_micro"] = margin.into();
            gate["test"]["delta_design_micro"] = effect.into();
            gate["test"]["beta_futile_micro"] = 100_000.into();
            gate["test"]["n_min"] = 1.into();
        }
    };
    for (kind, side, margin, effect) in [
        ("promote", "upper", 100_000, 100_000),
        ("noninferior", "upper", -200_000, -200_000),
        ("equivalent", "two_sided", 300_000, 300_001),
        ("kill", "lower", 0, 100_000),
        ("different", "two_sided", 0, 100_000),
    ] {
        tell(SOLO, move |world| {
            let life = drawn(world, planned(kind, side, margin, effect));
            refused(
                world,
                "gate",
                &["designed effect", "E_MARGIN"],
                life.opened(),
            );
        });
    }
    // As good as the baseline is what noninferiority is planned for: no effect is not futile, one at the margin is.
    for (value, is_futile) in [(500_000, false), (0, true)] {
        tell(SOLO, move |world| {
            let mut life = exposed(world, |gate| {
                planned("noninferior", "upper", -200_000, 0)(gate);
                gate["test"]
                    .as_object_mut()
                    .unwrap()
                    .remove("alpha_kill_micro");
            });
            let (half, given) = (values(500_000), values(value));
            for t in 1..=10 {
                for score in life.scores(t, &[[&half, &given]]) {
                    say(world, score);
                }
                let said = life.observed(t, &[[&half, &given]]);
                say(world, said);
            }
            let look = life.looked();
            assert_eq!(look.standing == Standing::Futile, is_futile, "{look:?}");
            say(world, look);
            let said = life.observation(11, &[[&half, &given]]);
            let words = if is_futile {
                "E_AFTER_TERMINAL"
            } else {
                "E_EXPOSURE"
            };
            refused(world, "observation", &[words], said);
        });
    }
}

/// What stands for a missing draw counts no further than a difference can be.
#[test]
fn a_missing_draw_is_no_difference_that_cannot_be() {
    tell_all(SOLO, "observation", |world| {
        let mut life = exposed(world, |gate| {
            gate["metric"]["difference_max_micro"] = 300_000.into();
        });
        let (some, none) = (values(500_000), [None]);
        for score in life.scores(1, &[[&some, &none]]) {
            say(world, score);
        }
        let said = life.observed(1, &[[&some, &none]]);
        assert_eq!(said.readings[0].delta_micro.value(), -300_000);
        let mut further = said.clone();
        further.readings[0].delta_micro = Micro::new(-500_000).unwrap();
        refused(
            world,
            "observation",
            &["delta_micro -300000", "-500000"],
            further,
        );
    });
}

/// A test that could not end by its claim is neither registered nor made by an amendment: its level would be taken all the same.
#[test]
fn a_registered_gate_can_end_within_its_units() {
    let short = |gate: &mut Value| {
        gate["test"]["n_min"] = 1.into();
        gate["test"]["n_max"] = 6.into();
    };
    let words = ["test.n_max of at least 7", "found 6 (E_HORIZON)"];
    tell_all(SOLO, "manifest", |world| {
        let units = gated::units("unit", 12);
        in_force(world, same);
        let mut gate = gated::gate("exp-1", "m-2", &units);
        short(&mut gate);
        refused(world, "manifest", &words, registered(&gate));
    });
    tell_all(SOLO, "amendment", |world| {
        let life = in_force(world, same);
        let mut second = planned::next(&life.value, &life.value);
        short(&mut second);
        let said = planned::amended(&second, &life.value, 1);
        refused(world, "amendment", &words, said);
    });
}

/// A missing draw stands against the candidate in its claim. Harm, futility and the most that the mean may be are judged as if
/// it had been at the other end.
#[test]
fn missing_draws_show_neither_harm_nor_futility() {
    let planned = |gate: &mut Value| {
        gate["test"]["alpha_kill_micro"] = 50_000.into();
        gate["test"]["delta_design_micro"] = 300_000.into();
        gate["test"]["beta_futile_micro"] = 100_000.into();
    };
    for grid in [20, 19] {
        tell_all(SOLO, "look", |world| {
            let mut life = exposed(world, |gate| {
                planned(gate);
                gate["test"]["bettor"]["grid"] = grid.into();
            });
            let (none, some) = ([None], values(500_000));
            for t in 1..=9 {
                let candidate = if t % 3 == 0 { some } else { none };
                for score in life.scores(t, &[[&some, &candidate]]) {
                    say(world, score);
                }
                let said = life.observed(t, &[[&some, &candidate]]);
                say(world, said);
            }
            let slack = std::mem::replace(&mut life.slack, vec![0; 9]);
            let kept = life.look.take();
            let naive = life.looked();
            (life.slack, life.look) = (slack, kept);
            if grid == 20 {
                refused(world, "look", &["of kill, computed again"], naive);
                return;
            }
            let look = life.looked();
            assert_eq!(look.log_e, naive.log_e);
            assert_eq!(look.cs_lo_micro, naive.cs_lo_micro);
            assert!(look.cs_hi_micro > naive.cs_hi_micro);
            assert!(look.log_wealth.kill < naive.log_wealth.kill);
            assert!(look.log_wealth.futile < naive.log_wealth.futile);
            say(world, look);
            let words = ["n 9, at least 1", "n 3 (E_N)"];
            let again = GateLooked {
                n: Count::new(3).unwrap(),
                ..naive
            };
            refused(world, "look", &words, again);
        });
    }
}

#[test]
fn observation_in_order_and_exposed() {
    tell(SOLO, |world| {
        let life = exposed(world, same);
        score(world, &life, 2);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(2, &[[&zero, &one]]);
        refused(world, "observation", &["t 1", "t 2 (E_ORDER)"], said);
    });
    // The right number with another unit.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        score(world, &life, 2);
        let (zero, one) = (values(0), values(1_000_000));
        let mut said = life.observation(2, &[[&zero, &one]]);
        said.t = Count::new(1).unwrap();
        refused(world, "observation", &["at this place of the order"], said);
    });
    tell(SOLO, |world| {
        let mut life = exposed(world, |gate| gate["test"]["n_min"] = 12.into());
        for t in 1..=10 {
            observe(world, &mut life, t);
        }
        score(world, &life, 11);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(11, &[[&zero, &one]]);
        refused(
            world,
            "observation",
            &["one of the 10 units exposed", "E_EXPOSURE"],
            said,
        );
    });
    tell(SOLO, |world| {
        let mut life = exposed(world, |gate| gate["test"]["n_max"] = 9.into());
        for t in 1..=9 {
            observe(world, &mut life, t);
        }
        score(world, &life, 10);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(10, &[[&zero, &one]]);
        refused(world, "observation", &["test.n_max 9", "E_PAST_MAXN"], said);
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        score(world, &life, 9);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(9, &[[&zero, &one]]);
        refused(
            world,
            "observation",
            &["a gate that has ended", "E_AFTER_TERMINAL"],
            said,
        );
    });
    tell(SOLO, |world| {
        let life = drawn(world, same);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(1, &[[&zero, &one]]);
        refused(world, "gate", &["an opened gate"], said);
    });
}

#[test]
fn observation_equals_its_sources() {
    let (zero, one, half) = (values(0), values(1_000_000), values(500_000));
    // The difference is not that of the values.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        score(world, &life, 1);
        let mut said = life.observation(1, &[[&zero, &one]]);
        said.readings[0].delta_micro = Micro::new(999_999).unwrap();
        refused(
            world,
            "observation",
            &["delta_micro 1000000", "999999"],
            said,
        );
    });
    // The values are not those recorded.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        score(world, &life, 1);
        let said = life.observation(1, &[[&zero, &half]]);
        let words = ["a recorded value of 500000", "1000000 at seq"];
        refused(world, "observation", &words, said);
    });
    // Nothing is recorded.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        let said = life.observation(1, &[[&zero, &one]]);
        refused(world, "observation", &["a recorded value", "none"], said);
    });
    // A draw that is recorded is said to be missing.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        score(world, &life, 1);
        let said = life.observation(1, &[[&zero, &[None]]]);
        refused(world, "observation", &["said to be missing"], said);
    });
    // What stands for a missing draw is against the candidate.
    tell(SOLO, |world| {
        let life = exposed(world, same);
        let mut said = life.observation(1, &[[&zero, &[None]]]);
        said.readings[0].candidate[0] = Micro::new(1).unwrap();
        said.readings[0].delta_micro = Micro::new(1).unwrap();
        refused(
            world,
            "observation",
            &["the end against the candidate"],
            said,
        );
    });
    tell(SOLO, |world| {
        let life = exposed(world, same);
        let said = life.observation(1, &[[&zero, &values(1_000_001)]]);
        refused(world, "observation", &["E_SCALE"], said);
    });
    tell(SOLO, |world| {
        let life = exposed(world, same);
        let said = life.observation(1, &[[&[Some(0), Some(0)], &[Some(1), Some(1)]]]);
        refused(world, "observation", &["1 draws of each arm"], said);
    });
}

#[test]
fn observation_of_a_score_from_before_its_exposure() {
    let (zero, one) = (values(0), values(1_000_000));
    tell(SOLO, |world| {
        let mut life = exposed(world, same);
        for t in 1..=10 {
            if t < 5 {
                observe(world, &mut life, t);
            }
        }
        // The twelfth unit is scored before the second exposure shows it.
        score(world, &life, 12);
        world.say(&custodian(), life.exposed(2, 10, 11), EXP);
        let mut look = life.looked();
        assert_eq!(look.standing, Standing::Continue);
        look.p = clover::num::Probability::new(look.p.value()).unwrap();
        for t in 5..=6 {
            observe(world, &mut life, t);
        }
        // Pretend that the twelfth is the seventh: place and exposure both stand against it; the place is enough.
        let mut said = life.observation(12, &[[&zero, &one]]);
        said.t = Count::new(7).unwrap();
        refused(world, "observation", &["E_ORDER"], said);
    });
}

#[test]
fn look_is_computed_again() {
    type Change = fn(&mut GateLooked);
    let cases: &[(Change, &[&str])] = &[
        (
            |look| {
                look.log_wealth.claim = Finite::new(look.log_wealth.claim.unwrap().value() + 1e-6);
            },
            &["of claim, computed again"],
        ),
        (
            |look| look.log_e = Finite::new(9.0).unwrap(),
            &["of log_e, computed again", "9"],
        ),
        (
            |look| look.standing = Standing::Continue,
            &["standing promote", "continue"],
        ),
        (
            |look| look.cs_lo_micro = Micro::new(1).unwrap(),
            &["a confidence interval from"],
        ),
        (
            |look| look.p = clover::num::Probability::new(0.5).unwrap(),
            &["expected p 0.0", "p 0.5"],
        ),
        (
            |look| look.state_digest = Digest([7; 32]),
            &["state_digest"],
        ),
        (|look| look.n = Count::new(7).unwrap(), &["n 8", "E_N"]),
        (
            |look| look.alpha_micro = Micro::new(60_000).unwrap(),
            &["test.alpha_micro 50000", "E_ALPHA"],
        ),
        (
            |look| look.bettor.grid = Count::new(30),
            &["the gate was opened with", "E_BETTOR"],
        ),
    ];
    for (change, words) in cases {
        tell(SOLO, |world| {
            let mut life = observed(world, 8, same);
            let mut look = life.looked();
            change(&mut look);
            refused(world, "look", words, look);
        });
    }
}

#[test]
fn look_where_looks_are_registered() {
    let planned = |gate: &mut Value| gate["test"]["look_at"] = json!([5, 10]);
    tell(SOLO, |world| {
        let mut life = observed(world, 5, planned);
        let look = life.looked();
        say(world, look);
        observe(world, &mut life, 6);
        let look = life.looked();
        refused(world, "look", &["a look after 5, 10", "n 6 (E_N)"], look);
    });
    // No registered look is left out.
    tell_all(SOLO, "observation", |world| {
        let life = observed(world, 5, planned);
        score(world, &life, 6);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(6, &[[&zero, &one]]);
        let words = ["gate.looked after 5 units", "t 6 (E_N)"];
        refused(world, "observation", &words, said);
    });
    // After a look that ended the gate there is no other.
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let mut again = life.look.clone().unwrap();
        again.n = Count::new(8).unwrap();
        again.digest = planned::manifest(&life.value).digest();
        let second = planned::next(&life.value, &life.value);
        let mut second = second;
        second["title"] = "other".into();
        say(world, planned::amended(&second, &life.value, 0));
        again.digest = planned::manifest(&second).digest();
        refused(
            world,
            "look",
            &["gate.decided after", "E_AFTER_TERMINAL"],
            again,
        );
    });
}

#[test]
fn decision_is_that_of_the_last_look() {
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let mut decided = life.decided();
        decided.outcome = Outcome::UndecidedAtNMax;
        refused(
            world,
            "decision",
            &["found, promote", "undecided_at_n_max"],
            decided,
        );
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 6, same);
        let look = life.looked();
        assert_eq!(look.standing, Standing::Continue);
        say(world, look);
        let mut decided = life.decided_as(Outcome::Promote);
        decided.class = EvidenceClass::Exact;
        refused(world, "decision", &["found, continue", "promote"], decided);
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let mut decided = life.decided();
        decided.log_e = Finite::new(99.0).unwrap();
        refused(world, "decision", &["as recorded", "log_e 99"], decided);
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        life.looked();
        let mut decided = life.decided();
        decided.log_e = Finite::default();
        refused(
            world,
            "decision",
            &["a look after the last observation"],
            decided,
        );
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let mut decided = life.decided();
        decided.class = EvidenceClass::Asymptotic;
        refused(world, "decision", &["class exact"], decided);
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let decided = life.decided_as(Outcome::Superseded);
        refused(world, "decision", &["that another superseded"], decided);
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        let decided = life.decided_as(Outcome::Void);
        refused(world, "decision", &["a sealed plan past its day"], decided);
    });
}

pub(super) fn closing(life: &Life, rejected: &[&str]) -> FamilyClosed {
    FamilyClosed {
        alpha_micro: Micro::new(50_000).unwrap(),
        evidence: vec![MemberEvidence {
            log_e: life.look.as_ref().unwrap().log_e,
            member: "m-1".parse().unwrap(),
        }],
        family: "primary".parse().unwrap(),
        members_max: Count::new(3).unwrap(),
        method: FamilyMethod::Spend,
        rejected: rejected.iter().map(|id| id.parse().unwrap()).collect(),
    }
}

#[test]
fn family_is_closed_by_its_procedure() {
    tell(SOLO, |world| {
        let life = decided(world, same);
        let closed = closing(&life, &[]);
        world.refuse_saying(
            "family",
            &["claims that hold: m-1", "none"],
            &owner(),
            closed.into(),
            None,
        );
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        let mut closed = closing(&life, &["m-1"]);
        closed.evidence[0].log_e = Finite::new(100.0).unwrap();
        let words = ["every member with its last log_e", "m-1 100"];
        world.refuse_saying("family", &words, &owner(), closed.into(), None);
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        let mut closed = closing(&life, &["m-1"]);
        closed.alpha_micro = Micro::new(100_000).unwrap();
        let words = ["as it was opened", "E_FAMILY_BUDGET"];
        world.refuse_saying("family", &words, &owner(), closed.into(), None);
    });
    // Nothing is observed after.
    tell(SOLO, |world| {
        let mut life = observed(world, 6, same);
        life.looked();
        let mut closed = closing(&life, &[]);
        closed.evidence[0].log_e = Finite::default();
        world.say(&owner(), closed.into(), None);
        score(world, &life, 7);
        let (zero, one) = (values(0), values(1_000_000));
        let said = life.observation(7, &[[&zero, &one]]);
        refused(
            world,
            "gate",
            &["a family that is not closed", "E_AFTER_TERMINAL"],
            said,
        );
    });
}

pub(super) fn promotion(life: &Life, grade: Grade) -> PromotionIssued {
    let arms = life.manifest.arms.as_ref().unwrap();
    PromotionIssued {
        candidate_digest: arms[1].artifact_digest,
        expires_at: None,
        gates: vec!["m-1".parse().unwrap()],
        grade,
        tests: None,
    }
}

#[test]
fn promotion_rests_on_what_was_decided() {
    fn no(world: &mut dyn World, words: &[&str], said: impl Into<Payload>) {
        world.refuse_saying("promotion", words, &owner(), said.into(), None);
    }
    tell(SOLO, |world| {
        let mut life = observed(world, 8, same);
        let look = life.looked();
        say(world, look);
        no(
            world,
            &["a decision of m-1", "none"],
            promotion(&life, Grade::Certified),
        );
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        let mut said = promotion(&life, Grade::Certified);
        said.candidate_digest = Digest([1; 32]);
        no(world, &["the candidate of m-1", "E_ARM_DIGEST"], said);
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        let said = promotion(&life, Grade::Exploratory);
        no(world, &["grade certified, derived", "exploratory"], said);
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        say(world, planned::deviated(&life.value));
        let said = promotion(&life, Grade::Certified);
        no(world, &["grade exploratory, derived", "certified"], said);
    });
    tell(SOLO, |world| {
        let mut life = observed(world, 6, |gate| gate["test"]["n_max"] = 12.into());
        let look = life.looked();
        say(world, look);
        let decided = life.decided_as(Outcome::Promote);
        refused(world, "decision", &["found, continue"], decided);
    });
    // What is merely different, or worse, is promoted by nothing.
    for (kind, side, shown) in [
        ("different", "two_sided", Standing::Different),
        ("kill", "lower", Standing::Kill),
    ] {
        tell(SOLO, move |world| {
            let mut life = exposed(world, |gate| {
                gate["hypothesis"]["kind"] = kind.into();
                gate["test"]["side"] = side.into();
                gate["test"]
                    .as_object_mut()
                    .unwrap()
                    .remove("alpha_kill_micro");
                gate["test"]
                    .as_object_mut()
                    .unwrap()
                    .remove("beta_futile_micro");
            });
            let (zero, one) = (values(0), values(1_000_000));
            for t in 1..=8 {
                for score in life.scores(t, &[[&one, &zero]]) {
                    say(world, score);
                }
                let said = life.observed(t, &[[&one, &zero]]);
                say(world, said);
            }
            let look = life.looked();
            assert_eq!(look.standing, shown);
            say(world, look);
            say(world, life.decided());
            let said = promotion(&life, Grade::Certified);
            no(world, &["speaks for its candidate", "E_DIRECTION"], said);
        });
    }
    // A family that is closed together decides by its closing, not by a gate alone.
    let together = |gate: &mut Value| {
        gate["multiplicity"] = json!({
            "family": "secondary", "family_alpha_micro": 100_000, "method": "ebh",
        });
    };
    tell(SOLO, |world| {
        let opened = json!({
            "alpha_micro": 100_000, "family": "secondary", "members_max": 1, "membership": "one gate",
            "method": "ebh",
        });
        world.say(&owner(), planned::payload("family.opened", &opened), None);
        let life = decided(world, together);
        let said = promotion(&life, Grade::Certified);
        no(world, &["family.closed of secondary", "none"], said);
    });
    tell(SOLO, |world| {
        let life = decided(world, same);
        let id = world.say(&owner(), promotion(&life, Grade::Certified).into(), None);
        let revoked = |reason: &str| PromotionRevoked {
            promotion: id,
            reason: crate::support::text(reason),
        };
        world.say(&owner(), revoked("withdrawn").into(), None);
        // Once more, with other words.
        let mut again = revoked("again");
        again.promotion.0.0[0] ^= 1;
        no(world, &["a promotion that stands"], again);
    });
}

/// Given: eight units that speak now for one arm and now for the other, and the end of the gate.
pub(super) fn undecided(world: &mut dyn World, life: &mut Life) -> GateLooked {
    let (zero, one) = (values(0), values(1_000_000));
    for t in 1..=8_usize {
        let arms: [&[Option<i64>]; 2] = if t % 2 == 0 {
            [&one, &zero]
        } else {
            [&zero, &one]
        };
        for score in life.scores(t, &[arms]) {
            say(world, score);
        }
        let said = life.observed(t, &[arms]);
        say(world, said);
    }
    let look = life.looked();
    assert_eq!(look.standing, Standing::UndecidedAtNMax);
    say(world, look.clone());
    say(world, life.decided());
    look
}

#[test]
fn gate_continues_an_undecided_one() {
    // Given: a gate of eight units that ended undecided, and one that names it.
    fn both(
        world: &mut dyn World,
        alike: impl Fn(&mut Value),
        change: impl Fn(&mut Value),
    ) -> (Life, Life) {
        let mut parent = exposed(world, |gate| {
            gate["test"]["n_max"] = 8.into();
            gate["test"]["alpha_micro"] = 25_000.into();
            alike(gate);
        });
        undecided(world, &mut parent);
        let exp = Some("exp-2");
        world.say(&owner(), planned::experiment_registered(), exp);
        let digest = parent.manifest.digest().to_hex();
        let mut child = registered_in(world, "exp-2", "m-2", |gate| {
            gate["test"]["alpha_micro"] = 25_000.into();
            gate["test"]["continuation_of"] = digest.clone().into();
            alike(gate);
            change(gate);
        });
        let (size, root) = (world.size(), world.root_at(world.size()));
        for payload in child.listed() {
            world.say(&custodian(), payload, exp);
        }
        let (listed, drawn) = child.drawn(root, size);
        world.say(&owner(), listed.into(), exp);
        world.say(&owner(), drawn.into(), exp);
        world.say(&owner(), child.opened().into(), exp);
        world.say(&custodian(), child.exposed(1, 0, 9), exp);
        (parent, child)
    }
    fn parent(world: &mut dyn World, change: impl Fn(&mut Value)) -> (Life, Life) {
        both(world, same, change)
    }
    fn continued(parent: &Life, child: &Life) -> GateContinued {
        GateContinued {
            carried: parent.look.as_ref().unwrap().log_wealth,
            gate: child.manifest.manifest.clone(),
            h0_digest: child.manifest.h0_digest(),
            parent: parent.manifest.manifest.clone(),
        }
    }
    fn no(world: &mut dyn World, words: &[&str], said: GateContinued) {
        world.refuse_saying("gate", words, &owner(), said.into(), Some("exp-2"));
    }
    tell(SOLO, |world| {
        let (parent, child) = parent(world, same);
        let mut said = continued(&parent, &child);
        said.carried.claim = Finite::new(3.0);
        no(world, &["the wealth of the parent's last look"], said);
    });
    tell(SOLO, |world| {
        let (parent, child) = parent(world, |gate| {
            gate["metric"]["judge_digest"] = Digest([9; 32]).to_hex().into();
        });
        no(world, &["of both"], continued(&parent, &child));
    });
    tell(SOLO, |world| {
        let (parent, child) = parent(world, |gate| {
            gate["arms"][1]["artifact_digest"] = Digest([9; 32]).to_hex().into();
        });
        no(
            world,
            &["the arms of the parent", "E_ARM_DIGEST"],
            continued(&parent, &child),
        );
    });
    tell(SOLO, |world| {
        let (parent, child) = parent(world, same);
        let exp = Some("exp-2");
        let (zero, one) = (values(0), values(1_000_000));
        for score in child.scores(1, &[[&zero, &one]]) {
            world.say(&owner(), score, exp);
        }
        let said = child.observation(1, &[[&zero, &one]]);
        let words = [
            "gate.continued before the first observation",
            "E_UNREGISTERED_RULE",
        ];
        assert!(parent.look.is_some());
        world.refuse_saying("observation", &words, &owner(), said.into(), exp);
    });
    // One finite set says nothing of another: such a continuation is not opened.
    tell(SOLO, |world| {
        let life = drawn(world, |gate| {
            gate["estimand"]["population"] = "finite".into();
            gate["test"]["without_replacement"] = true.into();
            gate["test"]["continuation_of"] = Digest([7; 32]).to_hex().into();
        });
        let words = ["what its units were drawn from", "E_DATA_ROOT"];
        refused(world, "gate", &words, life.opened());
    });
    // A parent about exactly its own units has another null hypothesis.
    tell(SOLO, |world| {
        let finite = |gate: &mut Value| {
            gate["estimand"]["population"] = "finite".into();
            gate["test"]["without_replacement"] = true.into();
        };
        let (parent, child) = both(world, finite, |gate| {
            gate["estimand"]["population"] = "superpopulation".into();
            gate["test"]["without_replacement"] = false.into();
        });
        no(world, &["of both"], continued(&parent, &child));
    });
    // Wealth against one effect is none against another.
    tell(SOLO, |world| {
        let (parent, child) = both(
            world,
            |gate| {
                gate["test"]["beta_futile_micro"] = 1_000.into();
                gate["test"]["delta_design_micro"] = 200_000.into();
            },
            |gate| gate["test"]["delta_design_micro"] = 300_000.into(),
        );
        let words = ["delta_design_micro", "of the parent", "E_MARGIN"];
        no(world, &words, continued(&parent, &child));
    });
    // What is carried counts at the next look.
    tell(SOLO, |world| {
        let (parent, mut child) = parent(world, same);
        let exp = Some("exp-2");
        world.say(&owner(), continued(&parent, &child).into(), exp);
        child.carried = Some(parent.look.as_ref().unwrap().log_wealth);
        let (zero, one) = (values(0), values(1_000_000));
        for score in child.scores(1, &[[&zero, &one]]) {
            world.say(&owner(), score, exp);
        }
        let said = child.observed(1, &[[&zero, &one]]);
        world.say(&owner(), said.into(), exp);
        child.carried = None;
        let without = child.looked();
        child.look = None;
        child.carried = Some(parent.look.as_ref().unwrap().log_wealth);
        let with = child.looked();
        assert!(with.log_e.value() < without.log_e.value());
        let words = ["of claim, computed again"];
        world.refuse_saying("look", &words, &owner(), without.into(), exp);
    });
}

/// Given a gate whose units were exposed before rulebook 18, by exposures that name no unit; when 18 is adopted; then its
/// scores are recorded and observed as before.
#[test]
fn units_that_were_exposed_before_rulebook_18_are_scored_after_it() {
    tell_all(SOLO, "exposure", |world| {
        let mut life = exposed(world, same);
        let version = Count::new(18).unwrap();
        let adopted = clover::event::payload::custody::RulebookAdopted { version };
        world.say(&owner(), adopted.into(), None);
        observe(world, &mut life, 1);
        observe(world, &mut life, 2);
        // From here on what is off the scale is not recorded.
        let pair: [&[Option<i64>]; 2] = [&values(0), &values(1_900_000)];
        let off = life.scores(3, &[pair]).pop().unwrap();
        refused(world, "exposure", &["E_SCALE"], off);
    });
}
