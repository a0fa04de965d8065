//! Small worlds about a gate: right before its order is drawn, and right after it was decided. Watched are the orders
//! that could be known before the one that counts, what is tested at which level, and the grade that a promotion gets.

use std::collections::BTreeSet;

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::FamilyId;
use clover::event::id::ItemId;
use clover::event::id::ManifestId;
use clover::event::payload::Role;
use clover::event::payload::custody::KeyAdded;
use clover::event::payload::gate::OrderDrawn;
use clover::event::payload::gate::OrderListed;
use clover::event::payload::manifest::Manifest;
use clover::ground::digest::Digest;
use clover::ledger::Trial;
use clover::num::Count;
use clover::projection::gates::Gates;
use clover::projection::manifests;
use clover::projection::manifests::ManifestRecord;
use clover::projection::manifests::Manifests;
use clover::projection::orders;
use clover::projection::orders::Orders;
use clover::workflow::gates::steps;
use serde_json::Value;
use serde_json::json;

use super::search::Allowed;
use super::search::Letter;
use super::search::Observed;
use super::search::Run;
use super::search::Told;
use super::search::World;
use crate::support::gated;
use crate::support::gated::Life;
use crate::support::planned;
use crate::support::planned::payload;
use crate::support::samples::*;
use crate::support::signer;

const UNITS: usize = 10;
const GATE: &str = "m-1";

fn units() -> Vec<ItemId> {
    gated::units("red", UNITS)
}

fn plan(id: &str, family: &str) -> Value {
    let mut plan = gated::gate(EXPERIMENT, id, &units());
    plan["multiplicity"] =
        json!({"family": family, "family_alpha_micro": 100_000, "method": "spend"});
    plan
}

fn family(name: &str) -> Payload {
    let data = json!({
        "alpha_micro": 100_000, "family": name, "members_max": 3, "membership": "gates of this quarter",
        "method": "spend",
    });
    payload("family.opened", &data)
}

const PEOPLE: [(&str, u8, &str, Role); 5] = [
    ("key-cleo", CLEO, "Cleo", Role::Custodian),
    ("key-ben", BEN, "Ben", Role::Arbiter),
    ("key-runner", RUNNER, "runner", Role::Scorer),
    ("key-lena", LENA, "Lena", Role::Releaser),
    ("key-opal", RUNNER_2, "Opal", Role::Optimizer),
];

const ROLES: [(&str, u8); 6] = [
    ("custodian", CLEO),
    ("arbiter", BEN),
    ("scorer", RUNNER),
    ("releaser", LENA),
    ("optimizer", RUNNER_2),
    ("owner", ADA),
];

fn begin() -> Teller {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in PEOPLE {
        let added: KeyAdded = key_added(&signer(who), holder, true, &[role]);
        teller.say(ADA, name, added);
    }
    teller.say(ADA, "family", family("quarter"));
    teller
}

/// A manifest in force, its units listed.
fn told_in_force() -> Told {
    let mut teller = begin();
    let plan = plan(GATE, "quarter");
    teller.say_in(ADA, "experiment", planned::experiment_registered());
    teller.say_in(ADA, "registered", planned::registered(&plan));
    teller.say_in(CLEO, "countersigned", planned::countersigned(&plan));
    for listed in Life::new(&plan, &units()).listed() {
        teller.say_in(CLEO, "units", listed);
    }
    // Somebody has named a checkpoint above the countersignature: the order can be known.
    teller.say(
        LENA,
        "note",
        payload("note.recorded", &json!({"text": "it is on"})),
    );
    let story = teller.finish();
    Told {
        lines: story.lines,
        blobs: story.blobs,
    }
}

/// A gate that was decided to promote.
fn told_decided(is_deviated: bool) -> Told {
    let mut teller = begin();
    let plan = plan(GATE, "quarter");
    let mut life = gated::tell_opened(&mut teller, EXPERIMENT, &plan, &units());
    let last = UNITS as u64 - 1;
    teller.say_in(CLEO, "exposed", life.exposed(1, 0, last));
    for t in 1..=UNITS {
        gated::tell_unit(
            &mut teller,
            &mut life,
            t,
            &[[&[Some(0)], &[Some(1_000_000)]]],
        );
    }
    gated::tell_look(&mut teller, &mut life);
    teller.say_in(BEN, "decided", life.decided());
    if is_deviated {
        teller.say_in(RUNNER, "deviated", planned::deviated(&plan));
    }
    let story = teller.finish();
    Told {
        lines: story.lines,
        blobs: story.blobs,
    }
}

/// The newest version of the newest manifest that tests the units.
fn newest(trial: &Trial) -> Option<(&ManifestId, &ManifestRecord)> {
    let all = trial.state().fold::<Manifests>();
    let mut id: &ManifestId = all.by_id.keys().find(|id| id.as_str() == GATE)?;
    while let Some(by) = &all.by_id[id].superseded_by {
        id = by;
    }
    Some((id, &all.by_id[id]))
}

/// The orders of the tested units that anybody can compute by now.
fn known_orders(trial: &Trial) -> Vec<Digest> {
    let Some((_, record)) = newest(trial) else {
        return Vec::new();
    };
    let state = trial.state();
    let seed = || {
        let bound = record.bound()?;
        let beacon = orders::beacon(state, bound, None)?;
        let root = bound.manifest.data.as_ref()?.confirm_root;
        Some(orders::seed(bound.digest, root, &beacon))
    };
    seed().into_iter().collect()
}

fn amendment(run: &Run, edit: impl Fn(&mut Value)) -> Option<Payload> {
    let (_, record) = newest(&run.trial)?;
    let parent = record.in_force()?;
    let old = serde_json::to_value(&parent.manifest).unwrap();
    let mut new = planned::next(&old, &old);
    new["version"] = (record.versions.len() + 1).into();
    edit(&mut new);
    let class = manifests::class(&parent.manifest, &planned::manifest(&new));
    Some(planned::amended(&new, &old, class))
}

fn value_of(manifest: &Manifest) -> Value {
    serde_json::to_value(manifest).unwrap()
}

type Say = Box<dyn Fn(&Run) -> Option<Payload> + Send + Sync>;

fn fixed(payload: Payload) -> Say {
    Box::new(move |_| Some(payload.clone()))
}

fn letter(role: &'static str, who: u8, name: &str, make: Say) -> Letter {
    Letter {
        role,
        who,
        name: name.to_owned(),
        experiment: Some(EXPERIMENT),
        is_stale: false,
        make,
    }
}

fn apart(role: &'static str, who: u8, name: &str, make: Say) -> Letter {
    Letter {
        experiment: None,
        ..letter(role, who, name, make)
    }
}

/// Swaps the name of the candidate to and fro: what it is stays the same.
fn rename(new: &mut Value) {
    let next = match new["arms"][1]["id"].as_str() {
        Some("candidate") => "candidate-b",
        _ => "candidate",
    };
    new["arms"][1]["id"] = next.into();
}

fn registrar() -> Vec<Letter> {
    let amend = |name: &str, edit: fn(&mut Value)| {
        let make = move |run: &Run| amendment(run, edit);
        letter("owner", ADA, name, Box::new(make))
    };
    let retired = json!({"key_id": signer(CLEO).id().to_string(), "reason": "she left"});
    let compromised = json!({
        "key_id": signer(BEN).id().to_string(), "reason": "lost", "since_seq": 1,
    });
    let supersede = |run: &Run| {
        let (_, record) = newest(&run.trial)?;
        let old = record.in_force()?;
        let mut new = value_of(&old.manifest);
        let number = run.trial.state().fold::<Manifests>().by_id.len() + 1;
        new["manifest"] = format!("m-{number}").into();
        new["version"] = 1.into();
        new.as_object_mut().unwrap().remove("parent_digest");
        new["supersedes"] = old.digest.to_hex().into();
        Some(planned::registered(&new))
    };
    vec![
        amend("amend words", |new| new["title"] = "Answers again".into()),
        amend("amend least", |new| {
            let least = new["test"]["n_min"].as_u64().unwrap();
            new["test"]["n_min"] = (11 - least).into();
        }),
        amend("amend level", |new| {
            let alpha = new["test"]["alpha_micro"].as_u64().unwrap();
            new["test"]["alpha_micro"] = (if alpha == 50_000 { 60_000 } else { 50_000 }).into();
        }),
        amend("amend tested", rename),
        letter("owner", ADA, "supersede", Box::new(supersede)),
        letter(
            "owner",
            ADA,
            "copy",
            fixed(planned::registered(&plan("m-9", "quarter"))),
        ),
        apart("owner", ADA, "open family", fixed(family("other"))),
        letter(
            "owner",
            ADA,
            "copy into another family",
            fixed(planned::registered(&plan("m-8", "other"))),
        ),
        apart(
            "owner",
            ADA,
            "retire custodian",
            fixed(payload("key.retired", &retired)),
        ),
        apart(
            "owner",
            ADA,
            "compromise arbiter",
            fixed(payload("key.compromised", &compromised)),
        ),
    ]
}

fn drawn(run: &Run) -> Option<(OrderListed, OrderDrawn)> {
    let (_, record) = newest(&run.trial)?;
    let bound = record.bound()?;
    let beacon = orders::beacon(run.trial.state(), bound, Some(run.seen()))?;
    let confirm_root = bound.manifest.data.as_ref()?.confirm_root;
    let seed = orders::seed(bound.digest, confirm_root, &beacon);
    let mut order = units();
    order.sort_by_key(|unit| orders::key(seed, unit));
    let permutation_root = steps::root(&order);
    let listed = OrderListed {
        digest: bound.digest,
        first: Count::default(),
        units: order,
    };
    let drawn = OrderDrawn {
        beacon,
        confirm_root,
        digest: bound.digest,
        n_units: Count::new(UNITS as u64).unwrap(),
        permutation_root,
        seed,
    };
    Some((listed, drawn))
}

fn opening(run: &Run) -> Option<Payload> {
    let (_, record) = newest(&run.trial)?;
    let value = value_of(&record.in_force()?.manifest);
    Some(Life::new(&value, &units()).opened().into())
}

fn letters(is_decided: bool) -> Vec<Letter> {
    let mut all = registrar();
    let countersign = |run: &Run| {
        let (_, record) = newest(&run.trial)?;
        let digest = record.versions.last()?.digest.to_hex();
        Some(payload(
            "manifest.countersigned",
            &json!({"digest": digest}),
        ))
    };
    all.push(letter(
        "custodian",
        CLEO,
        "countersign",
        Box::new(countersign),
    ));
    let expose = |run: &Run| {
        let (_, record) = newest(&run.trial)?;
        let value = value_of(&record.in_force()?.manifest);
        let last = UNITS as u64 - 1;
        Some(planned::exposed(&value, record.exposures + 1, 0, last))
    };
    all.push(letter("custodian", CLEO, "expose", Box::new(expose)));
    let list = |run: &Run| Some(drawn(run)?.0.into());
    let draw = |run: &Run| Some(drawn(run)?.1.into());
    all.push(letter("arbiter", BEN, "list", Box::new(list)));
    all.push(letter("arbiter", BEN, "draw", Box::new(draw)));
    all.push(letter("arbiter", BEN, "open", Box::new(opening)));
    let closed = json!({
        "alpha_micro": 100_000, "evidence": [], "family": "quarter", "members_max": 3, "method": "spend",
        "rejected": [],
    });
    all.push(apart(
        "arbiter",
        BEN,
        "close family",
        fixed(payload("family.closed", &closed)),
    ));
    let score = json!({
        "draw": 0, "item": "red-000", "judge": "judge-of-quality", "policy": "candidate", "score_micro": 1_000_000,
    });
    all.push(letter(
        "scorer",
        RUNNER,
        "score",
        fixed(payload("score.recorded", &score)),
    ));
    if is_decided {
        let issue = |run: &Run| issued(run, "certified");
        all.push(apart("releaser", LENA, "issue", Box::new(issue)));
    }
    let note = payload("note.recorded", &json!({"text": "as it was"}));
    let stranger = KeyAdded {
        proof: Some(Base64Bytes([0; 64])),
        ..key_added(&signer(STRANGER), "Sly", true, &[Role::Custodian])
    };
    all.push(apart(
        "owner",
        ADA,
        "add a key without its proof",
        fixed(stranger.into()),
    ));
    for (role, who) in ROLES {
        all.push(apart(role, who, "note", fixed(note.clone())));
        all.push(Letter {
            is_stale: true,
            ..apart(role, who, "note of an older head", fixed(note.clone()))
        });
        for seen in [false, true] {
            let deviate = move |run: &Run| {
                let (_, record) = newest(&run.trial)?;
                let data = json!({
                    "digest": record.in_force()?.digest.to_hex(), "impact": "none expected", "known_at_seq": 1,
                    "outcome_seen": seen, "rule_path": "metric.repeats", "what": "one unit twice", "why": "a retry",
                });
                Some(payload("manifest.deviated", &data))
            };
            let name = if seen {
                "deviate seen"
            } else {
                "deviate unseen"
            };
            all.push(letter(role, who, name, Box::new(deviate)));
        }
    }
    all
}

fn issued(run: &Run, grade: &str) -> Option<Payload> {
    let (id, record) = newest(&run.trial)?;
    let arms = record.in_force()?.manifest.arms.as_ref()?;
    let data = json!({
        "candidate_digest": arms[1].artifact_digest, "gates": [id], "grade": grade,
    });
    Some(payload("promotion.issued", &data))
}

/// Lists, draws and opens, unless somebody did.
fn opened(run: &mut Run) -> Observed {
    let go = |run: &mut Run| -> Result<(), &'static str> {
        let state = run.trial.state();
        let waits = newest(&run.trial).and_then(|(_, record)| {
            let newest = record.versions.last()?;
            let waits = newest.needs_countersignature() && newest.countersigned_seq.is_none();
            (waits && record.in_force().is_none()).then(|| newest.digest.to_hex())
        });
        let is_open = !state.fold::<Gates>().by_id.is_empty();
        if is_open {
            return Ok(());
        }
        if let Some(digest) = waits {
            let agreed = payload("manifest.countersigned", &json!({"digest": digest}));
            run.say(CLEO, Some(EXPERIMENT), agreed)?;
        }
        let is_drawn = newest(&run.trial)
            .is_some_and(|(_, record)| run.trial.state().fold::<Orders>().of(record).is_some());
        if !is_drawn {
            let (listed, drawn) = drawn(run).ok_or("order")?;
            let is_listed = run
                .trial
                .state()
                .fold::<Orders>()
                .by_digest
                .contains_key(&listed.digest);
            if !is_listed {
                run.say(BEN, Some(EXPERIMENT), listed.into())?;
            }
            run.say(BEN, Some(EXPERIMENT), drawn.into())?;
        }
        let opening = opening(run).ok_or("gate")?;
        run.say(BEN, Some(EXPERIMENT), opening)?;
        Ok(())
    };
    if let Err(rule) = go(run) {
        return Observed::from([("stopped", rule.to_owned())]);
    }
    let known: BTreeSet<Digest> = run.traces.iter().flatten().copied().collect();
    let state = run.trial.state();
    let gates: Vec<_> = state.fold::<Gates>().by_id.keys().cloned().collect();
    let all = state.fold::<Manifests>();
    let record = gates.iter().find_map(|id| all.by_id.get(id));
    let test = record.and_then(|record| record.in_force()?.manifest.test.as_ref());
    let level = test.map_or(String::new(), |test| test.alpha_micro.to_string());
    let quarter = "quarter".parse::<FamilyId>().unwrap();
    let spent = all.families[&quarter].spent();
    Observed::from([
        ("gates", gates.len().to_string()),
        ("level", level),
        ("orders", known.len().to_string()),
        ("spent", spent.to_string()),
    ])
}

/// The grade with which the claim can be promoted.
fn graded(run: &mut Run) -> Observed {
    let length = run.trail.len();
    let is_issued = |run: &Run| {
        let mut trail = run.trail.iter();
        trail.any(|(_, event)| matches!(event.payload, Payload::PromotionIssued(_)))
    };
    if is_issued(run) {
        // It was said in time, with the grade that it had then.
        return Observed::new();
    }
    for grade in [
        "certified",
        "certified_amended",
        "asymptotic",
        "exploratory",
    ] {
        let Some(issued) = issued(run, grade) else {
            break;
        };
        let said = run.say(LENA, None, issued);
        run.back_to(length);
        if said.is_ok() {
            return Observed::from([("grade", grade.to_owned())]);
        }
    }
    Observed::from([("stopped", "promotion".to_owned())])
}

/// Right before the order is drawn.
pub fn before() -> World {
    World {
        name: "gate, before its order is drawn",
        rulebook: 17,
        most: [10, 20_000],
        told: told_in_force(),
        letters: letters(false),
        observe: Box::new(opened),
        trace: known_orders,
        allowed: vec![
            Allowed {
                field: "level",
                letters: &["amend level"],
                keys: 1,
                why: "before the first look its registrar may amend the level, on record, within the family's",
            },
            Allowed {
                field: "orders",
                letters: &["supersede"],
                keys: 1,
                why: "another manifest on the same units draws an order; it takes level of the family, and from rulebook 18 on its grade is lower",
            },
            Allowed {
                field: "spent",
                letters: &["amend level", "copy", "supersede"],
                keys: 1,
                why: "who registers or amends a gate spends its family's level, on record; there is no more than the family has",
            },
        ],
    }
}

fn decided(name: &'static str, is_deviated: bool) -> World {
    World {
        name,
        rulebook: 17,
        most: [10, 20_000],
        told: told_decided(is_deviated),
        letters: letters(true),
        observe: Box::new(graded),
        trace: |_| Vec::new(),
        allowed: vec![Allowed {
            field: "grade",
            letters: &["deviate"],
            keys: 1,
            why: "who may deviate says that something was done otherwise; that lowers a grade and is signed",
        }],
    }
}

/// Right after it was decided.
pub fn after() -> World {
    decided("gate, after it was decided", false)
}

/// The same, where a deviation has lowered its grade.
pub fn lowered() -> World {
    decided("gate, decided and deviated from", true)
}
