//! Strata as a control variate: bound before the order is drawn, and counted by both readers in the same way.

use clover::event::Payload;
use clover::event::payload::gate::UnitsListed;
use clover::num::Count;
use clover::num::Micro;
use clover::stats::eprocess;
use clover::stats::eprocess::Looks;
use clover::workflow::gates::design;
use clover::workflow::gates::evidence;
use serde_json::Value;
use serde_json::json;

use super::gates::EXP;
use super::gates::custodian;
use super::gates::drawn;
use super::gates::exposed;
use super::gates::in_force;
use super::gates::refused;
use super::gates::say;
use super::world::SOLO;
use super::world::World;
use super::world::tell;
use super::world::tell_all;
use crate::support::gated;
use crate::support::gated::Life;
use crate::support::planned;

const STRATA: [(&str, i64, u64); 3] = [
    ("easy", -100_000, 5),
    ("hard", 400_000, 4),
    ("middling", 200_000, 3),
];

/// A gate of exactly its twelve units, in three strata.
fn stratified(gate: &mut Value) {
    let units = gated::units("unit-m-1", 12);
    gated::stratify(gate, &units, &STRATA);
}

/// Differences as they were predicted, and some noise.
fn value(life: &Life, t: usize) -> i64 {
    let observed = life.observation(t, &[[&[Some(0)], &[Some(0)]]]);
    let stratum = observed.stratum.unwrap();
    let (_, predicted, _) = STRATA
        .iter()
        .find(|(name, ..)| *name == stratum.as_str())
        .unwrap();
    500_000 + predicted + [50_000, -70_000, 10_000][t % 3]
}

fn observe(world: &mut dyn World, life: &mut Life, t: usize) {
    let (zero, value) = ([Some(100_000)], [Some(value(life, t))]);
    let values: &[[&[Option<i64>]; 2]] = &[[&zero, &value]];
    for score in life.scores(t, values) {
        say(world, score);
    }
    let said = life.observed(t, values);
    say(world, said);
}

fn units_listed(life: &Life) -> UnitsListed {
    let Payload::UnitsListed(said) = life.listed().remove(0) else {
        unreachable!()
    };
    *said
}

fn refused_listing(world: &mut dyn World, wording: &[&str], said: UnitsListed) {
    world.refuse_saying("order", wording, &custodian(), said.into(), EXP);
}

/// Looks that both readers compute again, two-sided and with every test; the last is that of a gate without strata.
#[test]
fn look_at_what_strata_leave() {
    for kind in ["promote", "different"] {
        tell_all(SOLO, "look", |world| {
            let mut life = exposed(world, |gate| {
                stratified(gate);
                gate["hypothesis"]["kind"] = kind.into();
                gate["metric"]["guardrails"] = json!([]);
                gate["test"]["alpha_kill_micro"] = 50_000.into();
                gate["test"]["delta_design_micro"] = 300_000.into();
                gate["test"]["alpha_micro"] = 1_000.into();
                if kind == "promote" {
                    gate["test"]["beta_futile_micro"] = 1_000.into();
                } else {
                    gate["test"]["side"] = "two_sided".into();
                }
            });
            for t in 1..=7 {
                observe(world, &mut life, t);
                if t == 5 {
                    let honest = life.looked();
                    say(world, honest);
                }
            }
            let mut forged = life.looked();
            let manifest = &life.manifest;
            let mut test = manifest.test.clone().unwrap();
            test.control_variate = None;
            let mut plain = manifest.clone();
            plain.test = Some(test.clone());
            let looks = Looks::At(vec![7]);
            let design = design::of(&plain, &test, None, None, looks).unwrap();
            let mut gate = eprocess::Gate::open(design);
            for deltas in &life.deltas {
                gate.push(deltas[0]).unwrap();
            }
            let claim = gate.look().claim.unwrap();
            let log_e = evidence::recorded(claim.ln_wealth);
            assert!(
                (log_e.value() - forged.log_e.value()).abs() > 0.1,
                "strata count"
            );
            forged.log_e = log_e;
            refused(world, "look", &["log wealth", "log_e"], forged);
        });
    }
}

/// The interval too reads what strata leave.
#[test]
fn look_with_another_interval() {
    tell_all(SOLO, "look", |world| {
        let mut life = exposed(world, stratified);
        for t in 1..=8 {
            observe(world, &mut life, t);
        }
        let mut forged = life.looked();
        forged.cs_lo_micro = Micro::new(forged.cs_lo_micro.value() + 100).unwrap();
        refused(world, "look", &["a confidence interval from"], forged);
    });
}

#[test]
fn order_of_units_with_their_strata() {
    tell_all(SOLO, "order", |world| {
        let mut said = units_listed(&in_force(world, stratified));
        said.strata.as_mut().unwrap().pop();
        refused_listing(world, &["12 strata, one for each unit"], said);
    });
    // All entries of a listing have strata, or none.
    tell_all(SOLO, "order", |world| {
        let mut said = units_listed(&in_force(world, stratified));
        let mut second = said.clone();
        said.units.truncate(6);
        said.strata.as_mut().unwrap().truncate(6);
        world.say(&custodian(), said.into(), EXP);
        second.first = Count::new(6).unwrap();
        second.units.drain(..6);
        second.strata = None;
        refused_listing(world, &["every unit of a listing, or of none"], second);
    });
    tell_all(SOLO, "order", |world| {
        in_force(world, stratified);
        let units = gated::units("many", 65);
        let strata = (0..65).map(|at| format!("s-{at}").parse().unwrap());
        let said = UnitsListed {
            confirm_root: gated::confirm(
                &planned::manifest(&planned::gate("exp-1", "m-0")),
                &units,
            )
            .root(),
            first: Count::default(),
            strata: Some(strata.collect()),
            units,
        };
        refused_listing(world, &["at most 64 strata", "65"], said);
    });
    // One unit of another stratum is another root: the registered one is not all listed.
    tell_all(SOLO, "order", |world| {
        let mut life = in_force(world, stratified);
        let (size, root) = (world.size(), world.root_at(world.size()));
        let mut said = units_listed(&life);
        said.strata.as_mut().unwrap().swap(0, 1);
        world.say(&custodian(), said.into(), EXP);
        let (listed, drawn) = life.drawn(root, size);
        say(world, listed);
        let words = ["12 listed units under", "E_DATA_ROOT"];
        refused(world, "order", &words, drawn);
    });
}

/// Units are listed under the registered root with strata that the plan counts otherwise.
#[test]
fn order_of_strata_that_the_plan_counts_otherwise() {
    tell_all(SOLO, "order", |world| {
        let mut life = in_force(world, |gate| {
            stratified(gate);
            gate["test"]["control_variate"][0]["units"] = 4.into();
            gate["test"]["control_variate"][1]["units"] = 5.into();
        });
        let (size, root) = (world.size(), world.root_at(world.size()));
        // As the confirm root has them.
        let mut value = life.value.clone();
        stratified(&mut value);
        let registered = std::mem::replace(&mut life.manifest, planned::manifest(&value));
        let said = units_listed(&life);
        life.manifest = registered;
        world.say(&custodian(), said.into(), EXP);
        let (listed, drawn) = life.drawn(root, size);
        say(world, listed);
        let words = [
            "easy 4, hard 5, middling 3",
            "easy 5, hard 4, middling 3 (E_DATA_ROOT)",
        ];
        refused(world, "order", &words, drawn);
    });
    // A plan that counts strata of units listed without.
    tell_all(SOLO, "order", |world| {
        let units = gated::units("unit-m-1", 12);
        let mut life = in_force(world, |gate| {
            stratified(gate);
            let plain = clover::workflow::gates::steps::root(&gated::units("unit-m-1", 12));
            gate["data"]["confirm_root"] = serde_json::to_value(plain).unwrap();
        });
        let (size, root) = (world.size(), world.root_at(world.size()));
        let said = UnitsListed {
            confirm_root: life.manifest.data.as_ref().unwrap().confirm_root,
            first: Count::default(),
            strata: None,
            units,
        };
        world.say(&custodian(), said.into(), EXP);
        let (listed, drawn) = life.drawn(root, size);
        say(world, listed);
        let words = ["easy 5, hard 4, middling 3", "none (E_DATA_ROOT)"];
        refused(world, "order", &words, drawn);
    });
}

#[test]
fn observation_of_the_unit_s_own_stratum() {
    let cases: [(Option<&str>, &str); 3] = [
        (None, "the unit's stratum, one of test.control_variate"),
        (Some("stranger"), "stranger (E_UNREGISTERED_RULE)"),
        // That of another unit.
        (
            Some("another"),
            "with its stratum if it was listed with one",
        ),
    ];
    for (stratum, wording) in cases {
        tell_all(SOLO, "observation", |world| {
            let mut life = exposed(world, stratified);
            observe(world, &mut life, 1);
            let values: &[[&[Option<i64>]; 2]] = &[[&[Some(0)], &[Some(500_000)]]];
            for score in life.scores(2, values) {
                say(world, score);
            }
            let mut said = life.observation(2, values);
            let own = said.stratum.clone().unwrap();
            let mut others = STRATA.iter().map(|(name, ..)| *name);
            let other = others.find(|name| *name != own.as_str()).unwrap();
            let found = stratum.map(|name| if name == "another" { other } else { name });
            said.stratum = found.map(|name| name.parse().unwrap());
            refused(world, "observation", &[wording], said);
        });
    }
    tell_all(SOLO, "observation", |world| {
        let life = exposed(world, |gate| {
            gate["test"]["without_replacement"] = true.into();
            gate["estimand"]["population"] = "finite".into();
        });
        let values: &[[&[Option<i64>]; 2]] = &[[&[Some(0)], &[Some(500_000)]]];
        for score in life.scores(1, values) {
            say(world, score);
        }
        let mut said = life.observation(1, values);
        said.stratum = Some("easy".parse().unwrap());
        let words = ["no stratum without test.control_variate"];
        refused(world, "observation", &words, said);
    });
}

#[test]
fn manifest_of_strata_that_hold_together() {
    type Change = fn(&mut Value);
    let cases: [(Change, &[&str]); 7] = [
        (
            |gate| {
                gate["test"]["without_replacement"] = false.into();
                gate["estimand"]["population"] = "superpopulation".into();
            },
            &[
                "nobody knows the strata of a population",
                "E_UNREGISTERED_RULE",
            ],
        ),
        (
            |gate| gate["test"]["control_variate"] = json!([]),
            &["1 to 64 strata"],
        ),
        (
            |gate| gate["test"]["control_variate"][0]["stratum"] = "hard".into(),
            &[
                "in order of the bytes of their names, each once",
                "hard twice",
            ],
        ),
        (
            |gate| gate["test"]["control_variate"][2]["predicted_micro"] = (-1_000_001).into(),
            &[
                "at most 1000000 in magnitude",
                "-1000001 of middling (E_SCALE)",
            ],
        ),
        (
            |gate| gate["metric"]["difference_max_micro"] = 300_000.into(),
            &["at most 300000 in magnitude", "400000 of hard"],
        ),
        (
            |gate| gate["test"]["control_variate"][1]["units"] = 3.into(),
            &["data.n_units 12 together", "11 (E_N)"],
        ),
        (
            |gate| gate["test"]["control_variate"][1]["units"] = 0.into(),
            &["units from 1", "0 of hard"],
        ),
    ];
    for (change, wording) in cases {
        tell_all(SOLO, "manifest", |world| {
            in_force(world, |_| ());
            let mut gate = gated::gate("exp-1", "m-2", &gated::units("unit-m-1", 12));
            stratified(&mut gate);
            change(&mut gate);
            refused(world, "manifest", wording, planned::registered(&gate));
        });
    }
}

/// What is expected of strata is part of what is tested.
#[test]
fn amendment_of_predictions() {
    let amended = |life: &Life| {
        let mut new = life.value.clone();
        new["test"]["control_variate"][0]["predicted_micro"] = 0.into();
        new["version"] = 2.into();
        new["parent_digest"] = planned::manifest(&life.value).digest().to_hex().into();
        (new, life.value.clone())
    };
    tell_all(SOLO, "amendment", |world| {
        let life = exposed(world, stratified);
        let (new, old) = amended(&life);
        refused(
            world,
            "amendment",
            &["class 3"],
            planned::amended(&new, &old, 3),
        );
    });
    tell(SOLO, |world| {
        let life = drawn(world, stratified);
        let (new, old) = amended(&life);
        refused(
            world,
            "amendment",
            &["class 3"],
            planned::amended(&new, &old, 1),
        );
    });
}
