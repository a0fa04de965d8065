//! What somebody with keys of their own would do to have a claim certified that its evidence does not hold: each ends in a
//! refusal, by the program, in `verify` and by the verifier in Python.

use clover::event::Payload;
use clover::event::payload::decision::FamilyClosed;
use clover::event::payload::decision::GateContinued;
use clover::event::payload::decision::Grade;
use clover::event::payload::decision::MemberEvidence;
use clover::event::payload::decision::Outcome;
use clover::event::payload::decision::PromotionIssued;
use clover::event::payload::decision::Standing;
use clover::event::payload::manifest::FamilyMethod;
use clover::ground::digest::Digest;
use clover::ground::time::Timestamp;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::gates::EXP;
use super::gates::custodian;
use super::gates::decided;
use super::gates::in_force;
use super::gates::observe;
use super::gates::observed;
use super::gates::owner;
use super::gates::promotion;
use super::gates::refused;
use super::gates::registered_in;
use super::gates::same;
use super::gates::say;
use super::gates::score;
use super::gates::undecided;
use super::world::SOLO;
use super::world::World;
use super::world::tell_all;
use crate::support::ORIGIN;
use crate::support::gated;
use crate::support::gated::Life;
use crate::support::gated::values;
use crate::support::planned;
use crate::support::planned::amended;
use crate::support::planned::countersigned;
use crate::support::planned::next;
use crate::support::planned::registered;

/// The checkpoint that the next entry names.
fn head(world: &mut dyn World) -> (u64, Digest) {
    (world.size(), world.root_at(world.size()))
}

/// Lists the units and draws the order that a checkpoint gives, in an experiment.
fn draw(world: &mut dyn World, life: &mut Life, (size, root): (u64, Digest), experiment: &str) {
    let exp = Some(experiment);
    for payload in life.listed() {
        world.say(&custodian(), payload, exp);
    }
    let (listed, drawn) = life.drawn(root, size);
    world.say(&owner(), listed.into(), exp);
    world.say(&owner(), drawn.into(), exp);
}

fn begin(world: &mut dyn World, life: &Life) {
    say(world, life.opened());
    world.say(&custodian(), life.exposed(1, 0, 9), EXP);
}

fn with(value: &Value, change: impl Fn(&mut Value)) -> Value {
    let mut changed = next(value, value);
    change(&mut changed);
    changed
}

/// Given an amendment that waits for its countersignature until units are exposed, of what is tested, of the level, or of the
/// units themselves.
#[test]
fn an_amendment_does_not_wait_for_outcomes() {
    let other = Digest([8; 32]).to_base64();
    for (class, rule) in [
        (3, "manifest_first"),
        (1, "manifest_first"),
        (3, "countersign"),
    ] {
        tell_all(SOLO, rule, |world| {
            let mut life = in_force(world, same);
            let beacon = head(world);
            let second = with(&life.value, |gate| match (class, rule) {
                (_, "countersign") => gate["data"]["confirm_root"] = other.clone().into(),
                (3, _) => gate["metric"]["direction"] = "decrease".into(),
                _ => gate["test"]["alpha_micro"] = 40_000.into(),
            });
            say(world, amended(&second, &life.value, class));
            draw(world, &mut life, beacon, "exp-1");
            begin(world, &life);
            let words = match rule {
                "countersign" => ["before the first look", "E_STALE_VERSION"],
                _ => ["nobody has seen", "E_ADAPTIVE_REUSE"],
            };
            let payload = countersigned(&second);
            world.refuse_saying(rule, &words, &custodian(), payload, EXP);
        });
    }
}

/// Given two plans on the same units, or in the same experiment, of which one waits for its countersignature until the other's
/// outcomes are known: its order would be drawn from a place in the log that suits them.
#[test]
fn no_plan_waits_for_outcomes_of_another() {
    for is_same_set in [true, false] {
        tell_all(SOLO, "manifest_first", |world| {
            let half = |gate: &mut Value| gate["test"]["alpha_micro"] = 25_000.into();
            let mut life = in_force(world, half);
            let beacon = head(world);
            let mut other = gated::gate("exp-1", "m-2", &gated::units("unit-m-2", 12));
            half(&mut other);
            if is_same_set {
                other["data"] = life.value["data"].clone();
            }
            say(world, registered(&other));
            draw(world, &mut life, beacon, "exp-1");
            begin(world, &life);
            if !is_same_set {
                score(world, &life, 1);
            }
            let words = if is_same_set {
                "nobody has seen"
            } else {
                "before any score or readable label"
            };
            let words = [words, "E_ADAPTIVE_REUSE"];
            let payload = countersigned(&other);
            world.refuse_saying("manifest_first", &words, &custodian(), payload, EXP);
        });
    }
}

/// Given an amendment of what is tested that waits while the gate is opened on the order of the version before.
#[test]
fn no_amendment_waits_for_the_opening() {
    tell_all(SOLO, "countersign", |world| {
        let mut life = in_force(world, same);
        let beacon = head(world);
        let second = with(&life.value, |gate| gate["data"]["exposure_cap"] = 3.into());
        say(world, amended(&second, &life.value, 3));
        draw(world, &mut life, beacon, "exp-1");
        say(world, life.opened());
        let words = ["before gate.opened at seq", "one of class 3 (E_ORDER)"];
        let payload = countersigned(&second);
        world.refuse_saying("countersign", &words, &custodian(), payload, EXP);
    });
}

/// Given an opened gate, an amendment of what it tests leaves it without the order that was drawn for that.
#[test]
fn what_an_opened_gate_tests_is_not_amended() {
    tell_all(SOLO, "amendment", |world| {
        let mut life = in_force(world, same);
        let beacon = head(world);
        draw(world, &mut life, beacon, "exp-1");
        say(world, life.opened());
        let second = with(&life.value, |gate| {
            gate["arms"][1]["artifact_digest"] = Digest([9; 32]).to_hex().into();
        });
        let words = ["after gate.opened", "E_ORDER"];
        refused(world, "amendment", &words, amended(&second, &life.value, 3));
    });
}

/// Given another gate of the experiment under which scores were recorded, the level of this one is not chosen any more.
#[test]
fn no_level_is_chosen_after_a_score() {
    tell_all(SOLO, "manifest_first", |world| {
        let half = |gate: &mut Value| gate["test"]["alpha_micro"] = 25_000.into();
        let life = in_force(world, half);
        let mut other = registered_in(world, "exp-1", "m-2", half);
        let beacon = head(world);
        draw(world, &mut other, beacon, "exp-1");
        begin(world, &other);
        score(world, &other, 1);
        let second = with(&life.value, |gate| gate["test"]["n_min"] = 6.into());
        let words = ["E_ADAPTIVE_REUSE"];
        refused(
            world,
            "manifest_first",
            &words,
            amended(&second, &life.value, 1),
        );
    });
}

/// A manifest in force on the first so many units of the gate `m-1`.
fn copied(world: &mut dyn World, id: &str, n: usize, change: impl Fn(&mut Value)) -> Life {
    let units = gated::units("unit-m-1", n);
    let mut gate = gated::gate("exp-1", id, &units);
    change(&mut gate);
    say(world, registered(&gate));
    world.say(&custodian(), countersigned(&gate), EXP);
    Life::new(&gate, &units)
}

/// The order of units that are listed already.
fn order(world: &mut dyn World, life: &mut Life, (size, root): (u64, Digest)) {
    let (listed, drawn) = life.drawn(root, size);
    say(world, listed);
    say(world, drawn);
}

fn in_another_family(gate: &mut Value) {
    gate["multiplicity"]["family"] = "second".into();
    gate["multiplicity"]["family_alpha_micro"] = 100_000.into();
}

fn another_family(world: &mut dyn World) {
    let opened = json!({
        "alpha_micro": 100_000, "family": "second", "members_max": 4, "membership": "any", "method": "spend",
    });
    world.say(&owner(), planned::payload("family.opened", &opened), None);
}

/// Given a gate on one order, copies of it in another family that were registered before that order was known: whoever could
/// open them would choose among orders.
#[test]
fn one_candidate_is_tested_by_the_same_values_in_one_family() {
    let words = [
        "in which m-1 tests this candidate",
        "second (E_FAMILY_BUDGET)",
    ];
    // As it is, under another name of the candidate, against another baseline, on one unit more.
    for copy in 0..4 {
        tell_all(SOLO, "gate", |world| {
            let mut first = in_force(world, same);
            let of_first = head(world);
            another_family(world);
            let mut second = copied(world, "m-2", 12 + copy / 3, |gate| {
                in_another_family(gate);
                match copy {
                    1 => gate["arms"][1]["id"] = "renamed".into(),
                    2 => gate["arms"][0]["artifact_digest"] = Digest([7; 32]).to_hex().into(),
                    _ => {}
                }
            });
            let of_second = head(world);
            draw(world, &mut first, of_first, "exp-1");
            say(world, first.opened());
            if copy == 3 {
                draw(world, &mut second, of_second, "exp-1");
            } else {
                order(world, &mut second, of_second);
            }
            refused(world, "gate", &words, second.opened());
        });
    }
    // In one family the level is shared; who registers after the order is known has units of its own.
    tell_all(SOLO, "gate", |world| {
        let half = |gate: &mut Value| gate["test"]["alpha_micro"] = 25_000.into();
        let mut first = in_force(world, half);
        let of_first = head(world);
        let mut second = copied(world, "m-2", 12, half);
        let of_second = head(world);
        another_family(world);
        let mut third = copied(world, "m-3", 12, in_another_family);
        let of_third = head(world);
        draw(world, &mut first, of_first, "exp-1");
        order(world, &mut second, of_second);
        say(world, first.opened());
        say(world, second.opened());
        let mut later = registered_in(world, "exp-1", "m-4", in_another_family);
        let of_later = head(world);
        draw(world, &mut later, of_later, "exp-1");
        say(world, later.opened());
        order(world, &mut third, of_third);
        refused(world, "gate", &words, third.opened());
    });
}

/// A gate of eight units that ended undecided, and one that names it: registered before the first one's order where `early`.
fn continued(
    world: &mut dyn World,
    (early, judge): (bool, &str),
    alphas: [i64; 2],
) -> GateContinued {
    let mut parent = in_force(world, |gate| {
        gate["test"]["n_max"] = 8.into();
        gate["test"]["alpha_micro"] = alphas[0].into();
    });
    let digest = parent.manifest.digest().to_hex();
    let first = head(world);
    let register = |world: &mut dyn World| {
        world.say(&owner(), planned::experiment_registered(), Some("exp-2"));
        let child = registered_in(world, "exp-2", "m-2", |gate| {
            gate["test"]["alpha_micro"] = alphas[1].into();
            gate["test"]["continuation_of"] = digest.clone().into();
        });
        (child, head(world))
    };
    let before = early.then(|| register(world));
    draw(world, &mut parent, first, "exp-1");
    begin(world, &parent);
    let carried = undecided(world, &mut parent).log_wealth;
    let (mut child, second) = before.unwrap_or_else(|| register(world));
    draw(world, &mut child, second, "exp-2");
    let mut opened = child.opened();
    opened.sources[0].judge = Some(judge.parse().unwrap());
    world.say(&owner(), opened.into(), Some("exp-2"));
    GateContinued {
        carried,
        gate: child.manifest.manifest.clone(),
        h0_digest: child.manifest.h0_digest(),
        parent: parent.manifest.manifest,
    }
}

#[test]
fn wealth_is_carried_to_new_units_at_the_same_level_by_the_same_judge() {
    for (early, judge, alphas, words) in [
        (
            true,
            "judge-of-quality",
            [25_000, 25_000],
            ["where the parent was opened", "E_ADAPTIVE_REUSE"],
        ),
        (
            false,
            "judge-of-quality",
            [20_000, 30_000],
            ["at most the parent's 20000", "E_ALPHA"],
        ),
        (
            false,
            "lenient",
            [25_000, 25_000],
            ["the sources of the parent", "E_JUDGE_DIGEST"],
        ),
    ] {
        tell_all(SOLO, "gate", |world| {
            let said = continued(world, (early, judge), alphas);
            world.refuse_saying("gate", &words, &owner(), said.into(), Some("exp-2"));
        });
    }
}

/// A guardrail needs values of its own.
#[test]
fn one_judge_is_not_the_guardrail_of_itself() {
    tell_all(SOLO, "gate", |world| {
        let mut life = in_force(world, |gate| {
            gate["metric"]["guardrails"] = json!([{"margin_micro": 300_000, "metric": "safety"}]);
        });
        let beacon = head(world);
        draw(world, &mut life, beacon, "exp-1");
        let mut opened = life.opened();
        opened.sources[1].judge = opened.sources[0].judge.clone();
        refused(
            world,
            "gate",
            &["of its own for each metric", "E_JUDGE_DIGEST"],
            opened,
        );
    });
}

/// Given a claim that the arms differ, a draw that is not there speaks for it.
#[test]
fn a_missing_draw_speaks_for_no_claim() {
    tell_all(SOLO, "observation", |world| {
        let mut life = in_force(world, |gate| {
            gate["hypothesis"]["kind"] = "different".into();
            gate["test"]["side"] = "two_sided".into();
        });
        let beacon = head(world);
        draw(world, &mut life, beacon, "exp-1");
        begin(world, &life);
        let (none, one) = ([None], values(1_000_000));
        for score in life.scores(1, &[[&one, &none]]) {
            say(world, score);
        }
        let said = life.observation(1, &[[&one, &none]]);
        let words = ["does not favour the candidate", "E_UNREGISTERED_RULE"];
        refused(world, "observation", &words, said);
    });
}

/// A manifest that is bound to a plan, which nobody sealed.
#[test]
fn a_plan_is_sealed_before_its_gate_is_opened() {
    tell_all(SOLO, "gate", |world| {
        let mut life = in_force(world, |gate| {
            let digest = Digest([3; 32]).to_hex();
            gate["analysis"] = json!({
                "code_digest": digest, "env_digest": digest, "exploratory_allowed": false,
                "plan_commitment": digest,
            });
        });
        let beacon = head(world);
        draw(world, &mut life, beacon, "exp-1");
        let words = ["plan.sealed of analysis.plan_commitment"];
        refused(world, "gate", &words, life.opened());
    });
}

fn not_promoted(world: &mut dyn World, words: &[&str], said: PromotionIssued) {
    world.refuse_saying("promotion", words, &owner(), said.into(), None);
}

/// Given a plan that is revealed after its day, the gate stays void.
#[test]
fn a_late_plan_stays_late() {
    tell_all(SOLO, "promotion", |world| {
        let mut life = in_force(world, same);
        let beacon = head(world);
        let salt = [9; 32];
        say(
            world,
            planned::plan_sealed(ORIGIN, "m-1", salt, planned::PLAN),
        );
        draw(world, &mut life, beacon, "exp-1");
        begin(world, &life);
        for t in 1..=8 {
            observe(world, &mut life, t);
        }
        let look = life.looked();
        say(world, look);
        say(world, life.decided());
        world.set_clock(Timestamp::parse("2027-01-02T00:00:00.000000Z").unwrap());
        world.put_blobs(&[planned::PLAN]);
        say(world, planned::plan_revealed("m-1", salt, planned::PLAN));
        not_promoted(world, &["not void"], promotion(&life, Grade::Certified));
    });
}

/// Given a bound on differences that the scale does not give, the claim rests on trust; given a deviation after a look, an
/// outcome had been seen, whatever is said of it.
#[test]
fn grades_are_not_what_somebody_says() {
    tell_all(SOLO, "promotion", |world| {
        let mut life = in_force(world, |gate| {
            gate["metric"]["difference_max_micro"] = 900_000.into();
        });
        let beacon = head(world);
        draw(world, &mut life, beacon, "exp-1");
        begin(world, &life);
        let (zero, more) = (values(0), values(900_000));
        for t in 1..=8 {
            for score in life.scores(t, &[[&zero, &more]]) {
                say(world, score);
            }
            let said = life.observed(t, &[[&zero, &more]]);
            say(world, said);
        }
        let look = life.looked();
        say(world, look);
        say(world, life.decided());
        not_promoted(
            world,
            &["grade asymptotic, derived"],
            promotion(&life, Grade::Certified),
        );
    });
    tell_all(SOLO, "promotion", |world| {
        let life = decided(world, same);
        let Payload::ManifestDeviated(mut said) = planned::deviated(&life.value) else {
            unreachable!()
        };
        said.outcome_seen = false;
        say(world, Payload::ManifestDeviated(said));
        let said = promotion(&life, Grade::CertifiedAmended);
        not_promoted(world, &["grade exploratory, derived"], said);
    });
}

/// Given a parent with a deviation after its looks; when another gate goes on with its wealth and its claim holds; then from
/// rulebook 18 on that claim is no better than the parent's.
#[test]
fn a_grade_is_carried_with_the_wealth() {
    tell_all(SOLO, "promotion", |world| {
        let level = |gate: &mut Value| gate["test"]["alpha_micro"] = 25_000.into();
        let mut parent = in_force(world, |gate| {
            level(gate);
            gate["test"]["n_max"] = 8.into();
        });
        let beacon = head(world);
        draw(world, &mut parent, beacon, "exp-1");
        begin(world, &parent);
        let carried = undecided(world, &mut parent).log_wealth;
        say(world, planned::deviated(&parent.value));
        let exp = Some("exp-2");
        world.say(&owner(), planned::experiment_registered(), exp);
        let digest = parent.manifest.digest().to_hex();
        let mut child = registered_in(world, "exp-2", "m-2", |gate| {
            level(gate);
            gate["test"]["continuation_of"] = digest.clone().into();
        });
        let beacon = head(world);
        draw(world, &mut child, beacon, "exp-2");
        world.say(&owner(), child.opened().into(), exp);
        world.say(&custodian(), child.exposed(1, 0, 9), exp);
        let said = GateContinued {
            carried,
            gate: child.manifest.manifest.clone(),
            h0_digest: child.manifest.h0_digest(),
            parent: parent.manifest.manifest.clone(),
        };
        world.say(&owner(), said.into(), exp);
        child.carried = Some(carried);
        let (zero, one) = (values(0), values(1_000_000));
        for t in 1..=10 {
            for score in child.scores(t, &[[&zero, &one]]) {
                world.say(&owner(), score, exp);
            }
            let said = child.observed(t, &[[&zero, &one]]);
            world.say(&owner(), said.into(), exp);
        }
        let look = child.looked();
        assert_eq!(look.standing, Standing::Promote);
        world.say(&owner(), look.into(), exp);
        world.say(&owner(), child.decided().into(), exp);
        let version = Count::new(18).unwrap();
        let adopted = clover::event::payload::custody::RulebookAdopted { version };
        world.say(&owner(), adopted.into(), None);
        let mut said = promotion(&child, Grade::SelfGoverned);
        said.gates = vec![child.manifest.manifest.clone()];
        not_promoted(world, &["grade exploratory, derived"], said);
    });
}

fn ebh(gate: &mut Value) {
    gate["multiplicity"] =
        json!({"family": "secondary", "family_alpha_micro": 100_000, "method": "ebh"});
}

fn open_ebh(world: &mut dyn World) {
    let opened = json!({
        "alpha_micro": 100_000, "family": "secondary", "members_max": 1, "membership": "one gate",
        "method": "ebh",
    });
    world.say(&owner(), planned::payload("family.opened", &opened), None);
}

fn closed(life: &Life, rejected: bool) -> FamilyClosed {
    let member = || "m-1".parse().unwrap();
    FamilyClosed {
        alpha_micro: Micro::new(100_000).unwrap(),
        evidence: vec![MemberEvidence {
            log_e: life.look.as_ref().unwrap().log_e,
            member: member(),
        }],
        family: "secondary".parse().unwrap(),
        members_max: Count::new(1).unwrap(),
        method: FamilyMethod::Ebh,
        rejected: if rejected { vec![member()] } else { Vec::new() },
    }
}

/// What a family closes on is the wealth at the end of what was observed, from `n_min` on.
#[test]
fn no_look_is_chosen_for_a_closing() {
    tell_all(SOLO, "family", |world| {
        open_ebh(world);
        let mut life = observed(world, 6, ebh);
        let look = life.looked();
        say(world, look);
        observe(world, &mut life, 7);
        let words = ["a look at m-1 after its 7 units"];
        world.refuse_saying(
            "family",
            &words,
            &owner(),
            closed(&life, false).into(),
            None,
        );
    });
    tell_all(SOLO, "family", |world| {
        open_ebh(world);
        let mut life = observed(world, 6, |gate| {
            ebh(gate);
            gate["test"]["n_min"] = 9.into();
        });
        let look = life.looked();
        assert!(
            look.log_e.value() > 2.4 && look.standing == Standing::Continue,
            "{look:?}"
        );
        say(world, look);
        let words = ["every member with its last log_e: m-1 0"];
        world.refuse_saying("family", &words, &owner(), closed(&life, true).into(), None);
    });
}

/// Given a gate that ended against its claim, whatever the closing of its family found.
#[test]
fn what_ended_against_its_claim_is_not_promoted() {
    tell_all(SOLO, "promotion", |world| {
        open_ebh(world);
        let mut life = observed(world, 8, ebh);
        let look = life.looked();
        say(world, look);
        let mut other = life.value.clone();
        other["manifest"] = "m-2".into();
        other["supersedes"] = life.manifest.digest().to_hex().into();
        other["multiplicity"] =
            json!({"family": "primary", "family_alpha_micro": 50_000, "method": "spend"});
        other["experiment"] = "exp-2".into();
        other["data"]["confirm_root"] = planned::root().into();
        world.say(&owner(), planned::experiment_registered(), Some("exp-2"));
        world.say(&owner(), registered(&other), Some("exp-2"));
        say(world, life.decided_as(Outcome::Superseded));
        world.say(&owner(), closed(&life, true).into(), None);
        let said = promotion(&life, Grade::Certified);
        not_promoted(world, &["not against its claim", "superseded"], said);
    });
}
