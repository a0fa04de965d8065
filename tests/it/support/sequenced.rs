//! An iteration whose confirm test is sequential: labels shown cluster by cluster, two looks, a crossing, the rest.

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::SealRecipient;
use clover::event::payload::Role;
use clover::event::payload::gate::DrawnFrom;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::predicate::Evidence;
use clover::ground::digest::Digest;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::time::Timestamp;
use clover::num::Micro;
use clover::projection::orders;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::decided::of;
use super::iterated;
use super::planned;
use super::planned::payload;
use super::samples::*;
use super::signer;

/// The iteration.
pub const IT: &str = "it-5";
const DESIGN: &str = "hold-5";

/// A plan with a look after every two clusters.
pub fn plan(experiment: &str, id: &str) -> Value {
    let mut plan = iterated::plan(experiment, id);
    plan["iteration"]["confirm_test"] = "sequential".into();
    plan["iteration"]["sequential"] = json!({
        "alpha_harm_micro": 50_000, "beta_futile_micro": 100_000, "look_every": 2,
    });
    plan
}

/// Where events go, and what the ledger knows by then.
pub trait Teach {
    /// Appends an event of an experiment.
    fn say(&mut self, who: u8, name: &'static str, payload: Payload) -> EventId;
    /// Charges a peek.
    fn charge(&mut self) -> EventId;
    /// The newest checkpoint.
    fn head(&self) -> DrawnFrom;
    /// The name of the log.
    fn origin(&self) -> &'static str;
    /// The quarter.
    fn quarter(&self) -> String;
    /// The key that labels are sealed to.
    fn recipient(&self) -> SealRecipient;
}

fn split_events() -> Vec<Payload> {
    let clusters = (0..24).map(|i| (format!("q{i:02}").parse().unwrap(), None));
    let parts = split::parts(&clusters.collect(), 11, Apart::Hashed).unwrap();
    let seed = clover::num::Count::new(11).unwrap();
    split::events(&"split-5".parse().unwrap(), seed, Apart::Hashed, &parts)
}

/// The confirm clusters, and their root.
fn confirm() -> (Vec<ItemId>, clover::event::id::Root) {
    let mut items = Vec::new();
    let mut root = None;
    for event in split_events() {
        match event {
            Payload::SplitsListed(said)
                if said.part == clover::event::payload::intake::SplitPart::Confirm =>
            {
                items.extend(said.clusters);
            }
            Payload::SplitsFormed(said) => root = Some(said.confirm.root),
            _ => {}
        }
    }
    (items, root.unwrap())
}

fn row(item: &ItemId) -> String {
    format!("base/{item}/0")
}

fn design() -> Payload {
    LabelDesignRegistered {
        design: DESIGN.parse().unwrap(),
        inclusion_micro: Micro::new(1_000_000).unwrap(),
        protocol: "sdp-1".parse().unwrap(),
        purpose: clover::event::payload::label::DesignPurpose::Confirm,
        strata: None,
    }
    .into()
}

fn envelope(item: &ItemId) -> Vec<u8> {
    format!("age-encryption.org/v1\nan envelope of {item}").into_bytes()
}

fn label(item: &ItemId, recipient: SealRecipient, origin: &str) -> [Payload; 2] {
    let sealed = LabelSealed {
        commitment: seal::commitment(origin, DESIGN, &row(item), &[9; 32], 250_000),
        design: DESIGN.parse().unwrap(),
        envelope: Base64Text(envelope(item)),
        recipient,
        reveal_by: Timestamp::parse("2027-01-01T00:00:00.000000Z").unwrap(),
        row: row(item).parse().unwrap(),
    };
    let accepted = SealAccepted {
        design: DESIGN.parse().unwrap(),
        envelope_sha256: Digest::sha256(&envelope(item)),
        row: row(item).parse().unwrap(),
    };
    [sealed.into(), accepted.into()]
}

fn shown(item: &ItemId, charge: EventId) -> Payload {
    LabelRevealed {
        charge,
        design: DESIGN.parse().unwrap(),
        row: row(item).parse().unwrap(),
        salt: Base64Bytes([9; 32]),
        value_micro: Micro::new(250_000).unwrap(),
    }
    .into()
}

/// A test that goes on, or that crossed at the third cluster.
fn test(crossed: bool) -> Value {
    let (ln, p, stop, units) = if crossed {
        (5.0, (-5.0_f64).exp(), "crossed", 3)
    } else {
        (2.5, (-2.5_f64).exp(), "continue", 2)
    };
    json!({"bound": 0.25, "ln_peak": ln, "ln_wealth": ln, "p": p, "stop": stop, "units": units})
}

const REVEALS: [&str; 12] = [
    "shown-1", "shown-2", "shown-3", "shown-4", "shown-5", "shown-6", "shown-7", "shown-8",
    "shown-9", "shown-10", "shown-11", "shown-12",
];
const SEALS: [[&str; 2]; 12] = [
    ["seal-1", "takes-1"],
    ["seal-2", "takes-2"],
    ["seal-3", "takes-3"],
    ["seal-4", "takes-4"],
    ["seal-5", "takes-5"],
    ["seal-6", "takes-6"],
    ["seal-7", "takes-7"],
    ["seal-8", "takes-8"],
    ["seal-9", "takes-9"],
    ["seal-10", "takes-10"],
    ["seal-11", "takes-11"],
    ["seal-12", "takes-12"],
];
const DEV: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];
const CONFIRM: [&str; 5] = ["c4", "c6", "c8", "c9", "c10"];

/// The whole iteration, from the rubric to the end; one patch, whose test crosses at the second look.
pub fn iteration(to: &mut dyn Teach, experiment: &str, manifest: &str) {
    let plan = plan(experiment, manifest);
    let concise = iterated::patch("concise-5", "length_bias_cap", iterated::CONCISE);
    let patch = iterated::proposed(IT, &concise);
    let (candidate, result, _) = decided::patch_of(&patch);
    to.say(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    to.say(RUNNER_2, "judge", decided::judge());
    to.say(ADA, "anchors", iterated::anchors(200));
    to.say(ADA, "manifest", planned::registered(&plan));
    for (name, event) in ["split-1", "split-2", "split-3", "split-4"]
        .into_iter()
        .zip(split_events())
    {
        to.say(BEN, name, event);
    }
    to.say(LENA, "design", design());
    let (mut items, confirm_root) = confirm();
    let recipient = to.recipient();
    for (names, item) in SEALS.iter().zip(&items) {
        for (name, said) in names
            .iter()
            .zip(label(item, recipient.clone(), to.origin()))
        {
            to.say(CLEO, name, said);
        }
    }
    let quarter = to.quarter();
    to.say(BEN, "opened", iterated::opened(&plan, IT, &quarter));
    for (name, said) in [
        ("labels", decided::label_process()),
        ("audited", decided::audited()),
        ("classified", decided::classified()),
    ] {
        to.say(BEN, name, of(&said, IT));
    }
    to.say(RUNNER_3, "battery", of(&decided::battery_in_force(), IT));
    to.say(RUNNER, "patch", patch.clone());
    let battery = decided::battery(Some(candidate), result, &[]);
    to.say(RUNNER_3, "battery-of", of(&battery, IT));
    let mut ids = Vec::new();
    for (name, gate) in DEV.iter().zip(decided::gates(&plan, candidate, "dev")) {
        ids.push(to.say(BEN, name, of(&gate, IT)).0.to_hex());
    }
    let sealed = to.say(BEN, "sealed", of(&decided::sealed(&[candidate]), IT));
    let beacon = to.head();
    let digest = planned::manifest(&plan).digest();
    let seed = orders::seed(digest, confirm_root, &beacon);
    items.sort_by_key(|item| orders::key(seed, item));
    let charge = to.charge();
    let unsealed = json!({
        "charge": charge, "confirm_root": confirm_root, "iteration": IT, "sealed": sealed,
    });
    to.say(CLEO, "unsealed", payload("confirm.unsealed", &unsealed));
    let params_hash = planned::manifest(&plan).iteration.unwrap().params_hash();
    let look = |units: usize, crossed: bool| {
        let data = json!({
            "beacon": beacon, "build": "clover 0.1.0",
            "hypotheses": [{"candidate": candidate, "test": test(crossed)}], "inputs": decided::rows(),
            "iteration": IT, "of_units": items.len(), "params_hash": params_hash, "seed": seed, "units": units,
        });
        payload("confirm.looked", &data)
    };
    for (at, (name, item)) in REVEALS.iter().zip(&items).enumerate() {
        match at {
            2 => drop(to.say(BEN, "look-1", look(2, false))),
            4 => drop(to.say(BEN, "look-2", look(4, true))),
            _ => {}
        }
        to.say(CLEO, name, shown(item, charge));
    }
    for (name, gate) in CONFIRM
        .iter()
        .zip(decided::gates(&plan, candidate, "confirm"))
    {
        let gate = match gate {
            Payload::GateEvaluated(said) if matches!(said.evidence, Evidence::P8(_)) => {
                let mut evidence = decided::passing("p8");
                evidence["p8"]["sequential"] = test(true);
                decided::gate(&plan, candidate, "confirm", &evidence)
            }
            other => other,
        };
        ids.push(to.say(BEN, name, of(&gate, IT)).0.to_hex());
    }
    let accepted = decided::accepted(&patch, 1, &ids);
    to.say(BEN, "accepted", of(&accepted, IT));
    to.say(BEN, "closed", iterated::closed(IT, "accepted"));
}

impl Teach for Teller {
    fn say(&mut self, who: u8, name: &'static str, payload: Payload) -> EventId {
        self.say_in(who, name, payload);
        self.id(name)
    }

    fn charge(&mut self) -> EventId {
        self.say_id(CLEO, "charge", decided::charge())
    }

    fn head(&self) -> DrawnFrom {
        head(self.ledger())
    }

    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn quarter(&self) -> String {
        "2026Q3".to_owned()
    }

    fn recipient(&self) -> SealRecipient {
        SealRecipient(Identity::from_bytes(&[0xa0; 32]).recipient())
    }
}

/// The newest checkpoint of a ledger.
pub fn head(ledger: &clover::ledger::Ledger) -> DrawnFrom {
    DrawnFrom {
        root: clover::event::id::Root(ledger.root()),
        size: clover::num::Count::new(ledger.size()).unwrap(),
    }
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    told(Teller::begin())
}

/// The same by another teller.
pub fn told(mut teller: Teller) -> Story {
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-mal", RUNNER_3, "Mal", Role::Adversary),
        ("key-lena", LENA, "Lena", Role::Labeler),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let cleo = clover::event::payload::custody::KeyAdded {
        seal_recipient: Some(teller.recipient()),
        ..key_added(&signer(CLEO), "Cleo", true, &[Role::Custodian])
    };
    teller.say(ADA, "key-cleo", cleo);
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say(ADA, "peeks", iterated::peek_account());
    iteration(&mut teller, EXPERIMENT, "m-5");
    teller.finish()
}
