//! Estimates of the asymptotic class beside a decided gate: what may be said, and that nothing is promoted by it.

use clover::event::payload::Role;
use clover::event::payload::decision::EvidenceClass;
use clover::event::payload::decision::GateEstimated;
use clover::event::payload::decision::Grade;
use clover::event::payload::decision::Outcome;
use clover::event::payload::decision::PromotionIssued;
use clover::event::payload::decision::Standing;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::gated::Life;
use crate::support::key_added;
use crate::support::labelled;
use crate::support::planned;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn custodian() -> Signer {
    signer(5)
}

/// Given: a gate whose units are all observed, and a look at it.
fn looked(world: &mut dyn World, change: impl Fn(&mut Value)) -> Life {
    let key = key_added(&custodian(), "Cem", &[Role::Custodian]);
    world.say(&owner(), key.into(), None);
    world.say(&owner(), planned::experiment_registered(), EXP);
    world.say(&owner(), planned::family(), None);
    let (mut gate, units) = labelled::manifest("exp-1", "m-1");
    change(&mut gate);
    world.say(&owner(), planned::registered(&gate), EXP);
    world.say(&custodian(), planned::countersigned(&gate), EXP);
    let mut life = Life::new(&gate, &units);
    let (size, root) = (world.size(), world.root_at(world.size()));
    for payload in life.listed() {
        world.say(&custodian(), payload, EXP);
    }
    let (listed, drawn) = life.drawn(root, size);
    world.say(&owner(), listed.into(), EXP);
    world.say(&owner(), drawn.into(), EXP);
    world.say(&owner(), life.opened().into(), EXP);
    let last = labelled::N as u64 - 1;
    world.say(&custodian(), life.exposed(1, 0, last), EXP);
    for t in 1..=labelled::N {
        let [baseline, candidate] = labelled::judged(t).map(|value| [Some(value)]);
        let arms: [&[Option<i64>]; 2] = [&baseline, &candidate];
        for score in life.scores(t, &[arms]) {
            world.say(&owner(), score, EXP);
        }
        let observed = life.observed(t, &[arms]);
        world.say(&owner(), observed.into(), EXP);
    }
    let look = life.looked();
    world.say(&owner(), look.into(), EXP);
    life
}

/// Given: the same, decided and labelled, with the estimate that follows.
fn labelled_gate(world: &mut dyn World, change: impl Fn(&mut Value)) -> (Life, GateEstimated) {
    let life = looked(world, change);
    world.say(&owner(), life.decided().into(), EXP);
    let (size, root) = (world.size(), world.root_at(world.size()));
    world.say(&owner(), labelled::design(), EXP);
    for label in labelled::labels(&life, root) {
        world.say(&owner(), label, EXP);
    }
    let said = labelled::estimated(&life, root, size);
    (life, said)
}

fn same(_: &mut Value) {}

fn refused(rule: &str, wording: &[&str], change: impl Fn(&mut GateEstimated)) {
    tell(SOLO, |world| {
        let (_, mut said) = labelled_gate(world, same);
        change(&mut said);
        world.refuse_saying(rule, wording, &owner(), said.into(), EXP);
    });
}

#[test]
fn what_labels_say_beside_a_verdict_is_of_its_own_class() {
    refused("decision", &["class asymptotic", "class exact"], |said| {
        said.class = EvidenceClass::Exact;
    });
    refused("decision", &["grade asymptotic", "certified"], |said| {
        said.grade = Grade::Certified;
    });
    refused("decision", &["shows"], |said| said.shows = !said.shows);
    refused("decision", &["test.alpha_micro 50000", "E_ALPHA"], |said| {
        said.alpha_micro = Micro::new(100_000).unwrap();
    });
    refused("decision", &["as registered"], |said| {
        said.pi_micro = Micro::new(500_000).unwrap();
    });
    refused("decision", &["the checkpoint of size", "E_ORDER"], |said| {
        said.seed = Digest([9; 32]);
    });
    refused("decision", &["labelled units", "24 (E_N)"], |said| {
        said.labels = Count::new(24).unwrap();
    });
    refused("decision", &["units observed", "n 37 (E_N)"], |said| {
        said.n = Count::new(37).unwrap();
    });
}

#[test]
fn it_stands_beside_a_decision_only() {
    tell(SOLO, |world| {
        let life = looked(world, same);
        let (size, root) = (world.size(), world.root_at(world.size()));
        let said = labelled::estimated(&life, root, size);
        let words = ["gate.decided before an estimate", "none"];
        world.refuse_saying("decision", &words, &owner(), said.into(), EXP);
    });
    // Without a registered way of drawing units for labels there is no sample.
    tell(SOLO, |world| {
        let without = |gate: &mut Value| {
            gate["data"].as_object_mut().unwrap().remove("label_policy");
        };
        let (_, said) = labelled_gate(world, without);
        let words = ["data.label_policy", "E_UNREGISTERED_RULE"];
        world.refuse_saying("decision", &words, &owner(), said.into(), EXP);
    });
}

/// The labels say that the candidate is better, at every number of units, and nothing is promoted by that.
#[test]
fn nothing_is_promoted_by_it() {
    // A margin that the judge's scores do not show, so that the gate ends undecided.
    let margin = |gate: &mut Value| gate["test"]["null_margin_micro"] = 100_000.into();
    tell(SOLO, |world| {
        let life = looked(world, margin);
        assert_eq!(
            life.look.as_ref().unwrap().standing,
            Standing::UndecidedAtNMax
        );
        let mut decided = life.decided();
        decided.class = EvidenceClass::Asymptotic;
        let words = ["class exact", "class asymptotic"];
        world.refuse_saying("decision", &words, &owner(), decided.into(), EXP);
    });
    tell(SOLO, |world| {
        let (life, said) = labelled_gate(world, margin);
        assert!(said.cs_lo_micro.value() > 100_000 && said.shows);
        world.say(&owner(), said.into(), EXP);
        assert_eq!(life.decided().outcome, Outcome::UndecidedAtNMax);
        let arms = life.manifest.arms.as_ref().unwrap();
        let issued = PromotionIssued {
            candidate_digest: arms[1].artifact_digest,
            expires_at: None,
            gates: vec!["m-1".parse().unwrap()],
            grade: Grade::Asymptotic,
            tests: None,
        };
        let words = [
            "a decision of m-1 that its claim holds",
            "undecided_at_n_max",
        ];
        world.refuse_saying("promotion", &words, &owner(), issued.into(), None);
    });
}
