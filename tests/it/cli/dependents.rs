//! What rests on what: a ledger with two decided iterations is written again by somebody who holds every key, with one
//! byte, one threshold or one seed changed and all else made to fit. It verifies; computed again, exactly what rests on
//! the change differs. And nothing differs in a copy that was exported and imported.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover::event::payload::manifest::Manifest;
use clover::ground::keyfile;
use clover::ground::note::Checkpoint;
use clover::ground::note::KeyName;
use clover::ground::note::SignedCheckpoint;
use clover::ground::note::VerifierKey;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::copy_tree;
use crate::support::forger;
use crate::support::forger::World;

/// What differs, by the name of its event: the members that do.
type Differing = BTreeMap<String, BTreeSet<String>>;

/// Keys of the desk by id.
fn keys(desk: &Desk) -> BTreeMap<String, Signer> {
    let folder = desk.key_file("x");
    let files = std::fs::read_dir(folder.parent().unwrap()).unwrap();
    let pems = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|of| of == "pem"));
    let mut keys = BTreeMap::new();
    for path in pems {
        let bytes = std::fs::read(path).unwrap();
        let key = Signer::from(keyfile::read_private(&bytes, None).unwrap());
        keys.insert(key.id().to_string(), key);
    }
    keys
}

fn world(desk: &Desk) -> World {
    let lines = std::fs::read(desk.at.join("export/ledger.jsonl")).unwrap();
    let lines = lines.split(|byte| *byte == b'\n');
    let lines: Vec<Vec<u8>> = lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    World::of(&lines)
}

/// Writes a history as an export, with every checkpoint signed anew, imports it into a folder of its own, which verifies
/// it, and gives that folder.
fn imported(desk: &mut Desk, name: &'static str, world: &World) -> String {
    let sealed = world.seal_with(&keys(desk));
    let (from, to) = (desk.at.join("export"), desk.at.join(name));
    copy_tree(&from, &to);
    std::fs::write(to.join("ledger.jsonl"), forger::file(&sealed.lines)).unwrap();
    let log = std::fs::read(desk.at.join(".clover/log.key")).unwrap();
    let log = Signer::from(keyfile::read_private(&log, None).unwrap());
    let signed = |old: &[u8]| {
        let old = SignedCheckpoint::parse(old).unwrap();
        let (origin, size) = (&old.checkpoint().origin, old.checkpoint().size);
        let name = KeyName::parse(origin.as_str()).unwrap();
        let key = VerifierKey::ed25519(name, log.public_bytes()).unwrap();
        let root = sealed.roots[usize::try_from(size).unwrap()];
        let checkpoint = Checkpoint::new(origin.clone(), size, root);
        SignedCheckpoint::sign(checkpoint, &[(key, log.key())])
            .unwrap()
            .encode()
    };
    let head = std::fs::read(from.join("checkpoint")).unwrap();
    std::fs::write(to.join("checkpoint"), signed(&head)).unwrap();
    let kept = std::fs::read_to_string(from.join("checkpoints.jsonl")).unwrap();
    let kept = kept.lines().map(|line| {
        let old: Value = serde_json::from_str(line).unwrap();
        let new = signed(old["note"].as_str().unwrap().as_bytes());
        format!("{}\n", json!({"note": String::from_utf8(new).unwrap()}))
    });
    std::fs::write(to.join("checkpoints.jsonl"), kept.collect::<String>()).unwrap();
    // On another machine, which knows no other ledger of that name.
    desk.state = name;
    let copy = format!("{name}-copy");
    desk.ok(&format!("import ledger {name} --into {copy}"));
    copy
}

/// A decision by name: its iteration or experiment, its kind, and of a gate which and on what.
fn name(body: &Value) -> String {
    let data = &body["data"];
    let of = data["iteration"].as_str().or(body["experiment"].as_str());
    let kind = body["kind"].as_str().unwrap();
    let mut name = format!("{} {kind}", of.unwrap_or("-"));
    if kind == "gate.evaluated" {
        let (gate, split) = (&data["gate"], &data["split"]);
        name = format!(
            "{} {} {}",
            of.unwrap(),
            gate.as_str().unwrap(),
            split.as_str().unwrap()
        );
    }
    name
}

/// What differs when everything in a folder is computed again, and the names of what was.
fn replayed(desk: &mut Desk, copy: &str, world: &World) -> (Differing, BTreeSet<String>) {
    let ran = desk.run(&format!("replay --all --json --ledger {copy}"));
    let events = ran.json()["data"]["events"].clone();
    let (mut differing, mut same) = (Differing::new(), BTreeSet::new());
    for event in events.as_array().unwrap() {
        let seq = usize::try_from(event["seq"].as_u64().unwrap()).unwrap();
        let name = name(&world.items[seq].body);
        match event["outcome"].as_str().unwrap() {
            "DIFFERS" => {
                let paths = event["differences"].as_array().unwrap().iter();
                let paths = paths.map(|of| of["path"].as_str().unwrap().to_owned());
                differing.entry(name).or_default().extend(paths);
            }
            "identical" => {
                same.insert(name);
            }
            other => assert!(other.starts_with("cannot"), "{name}: {other}"),
        }
    }
    assert_eq!(ran.code == 0, differing.is_empty(), "{}", ran.err);
    (differing, same)
}

fn names(of: &Differing) -> Vec<&str> {
    of.keys().map(String::as_str).collect()
}

/// A copy that was exported and imported gives the same, bit for bit.
fn the_same_elsewhere(desk: &mut Desk) {
    let here = desk.ok("replay --all --json").json()["data"].clone();
    let verdicts: Vec<Value> = ["it-mended", "it-overfitted"]
        .map(|it| desk.ok(&format!("iterate show {it} --json")).json()["data"].clone())
        .into();
    desk.ok("import ledger export --into elsewhere");
    let again = |desk: &mut Desk, line: String| {
        let ran = desk.ok(&format!("{line} --json --ledger elsewhere"));
        ran.json()["data"].clone()
    };
    assert_eq!(again(desk, "replay --all".to_owned()), here);
    for (it, verdict) in ["it-mended", "it-overfitted"].iter().zip(verdicts) {
        assert_eq!(again(desk, format!("iterate show {it}")), verdict);
    }
    assert_eq!(
        (&here["differ"], here["same"].as_u64() > Some(20)),
        (&json!(0), true),
        "{here:#}"
    );
}

/// One digit of one label on dev.
fn a_label(desk: &mut Desk) {
    let mut world = world(desk);
    let mut dev = BTreeSet::new();
    for item in &world.items {
        let body = &item.body;
        if body["kind"] == "splits.listed"
            && body["experiment"] == "mended"
            && body["data"]["part"] == "dev"
        {
            let clusters = body["data"]["clusters"].as_array().unwrap();
            dev.extend(clusters.iter().map(|of| of.as_str().unwrap().to_owned()));
        }
    }
    let is_label = |body: &Value| {
        body["kind"] == "label.recorded"
            && body["experiment"] == "mended"
            && dev.contains(body["data"]["item"].as_str().unwrap())
    };
    let at = world
        .items
        .iter()
        .position(|item| is_label(&item.body))
        .unwrap();
    let value = &mut world.items[at].body["data"]["value_micro"];
    let old = value.as_i64().unwrap();
    *value = (if old % 10 == 9 { old - 1 } else { old + 1 }).into();
    let copy = imported(desk, "label", &world);
    let (differing, same) = replayed(desk, &copy, &world);
    println!("a label: {differing:#?}\nthe same: {same:#?}");
    // Whatever read the rows names their digest; numbers differ where labels on dev enter, and nowhere else.
    let read = [
        "label_process.audited",
        "p0 dev",
        "p1 dev",
        "p10 confirm",
        "p2 dev",
        "p3 dev",
        "p4 confirm",
        "p4 dev",
        "p5 dev",
        "p6 confirm",
        "p6 dev",
        "p8 confirm",
        "p9 confirm",
        "prentice.checked",
        "residuals.audited",
        "scores.recomputed",
    ];
    assert_eq!(names(&differing), read.map(|of| format!("it-mended {of}")));
    let numbers = differing
        .iter()
        .filter(|(_, paths)| paths.iter().any(|path| path != "inputs.digest"));
    let numbers: Vec<&str> = numbers.map(|(name, _)| name.as_str()).collect();
    let on_dev = [
        "p1 dev",
        "p2 dev",
        "p3 dev",
        "prentice.checked",
        "residuals.audited",
    ];
    assert_eq!(numbers, on_dev.map(|of| format!("it-mended {of}")));
    assert!(
        differing
            .values()
            .all(|paths| paths.contains("inputs.digest"))
    );
    assert!(
        same.contains("it-mended slices.classified") && same.contains("it-overfitted p8 confirm")
    );
}

/// Another registered plan, wherever it and its digests stand.
fn replanned(world: &mut World, experiment: &str, edit: impl Fn(&mut Value)) {
    let is_plan =
        |body: &Value| body["kind"] == "manifest.registered" && body["experiment"] == experiment;
    let at = world
        .items
        .iter()
        .position(|item| is_plan(&item.body))
        .unwrap();
    let read = |body: &Value| -> Manifest {
        serde_json::from_value(body["data"]["manifest"].clone()).unwrap()
    };
    let before = read(&world.items[at].body);
    edit(&mut world.items[at].body["data"]["manifest"]["iteration"]);
    let after = read(&world.items[at].body);
    let params = |of: &Manifest| of.iteration.as_ref().unwrap().params_hash().to_hex();
    let swaps = [
        (before.digest().to_hex(), after.digest().to_hex()),
        (params(&before), params(&after)),
    ];
    for item in &mut world.items {
        let body = &mut item.body;
        if body["experiment"] != experiment {
            continue;
        }
        if body["kind"] == "iteration.opened" {
            edit(&mut body["data"]["params"]);
        }
        let mut text = body.to_string();
        for (old, new) in &swaps {
            text = text.replace(old, new);
        }
        *body = serde_json::from_str(&text).unwrap();
    }
}

/// The tolerance of green slices.
fn a_threshold(desk: &mut Desk) {
    let mut world = world(desk);
    replanned(&mut world, "mended", |plan| {
        plan["tau_micro"] = 1_600.into();
    });
    for item in &mut world.items {
        let of_mended = item.body["experiment"] == "mended";
        if item.body["kind"] == "gate.evaluated" && of_mended {
            item.body["data"]["thresholds"]["tau_micro"] = 1_600.into();
            for green in ["p3", "p9"] {
                if let Some(greens) = item.body["data"]["evidence"].get_mut(green) {
                    greens["tau_micro"] = 1_600.into();
                }
            }
        }
    }
    let copy = imported(desk, "threshold", &world);
    let (differing, same) = replayed(desk, &copy, &world);
    println!("a threshold: {differing:#?}\nthe same: {same:#?}");
    assert_eq!(
        names(&differing),
        ["it-mended p3 dev", "it-mended p9 confirm"]
    );
}

/// The registered seed.
fn a_seed(desk: &mut Desk) {
    let mut world = world(desk);
    replanned(&mut world, "mended", |plan| {
        plan["design"]["seed"] = "cd".repeat(32).into();
    });
    let copy = imported(desk, "seed", &world);
    let (differing, same) = replayed(desk, &copy, &world);
    println!("a seed: {differing:#?}\nthe same: {same:#?}");
    // Of what is recorded here, folds enter the calibrator's share alone: dev and confirm are no part of any fold.
    assert_eq!(names(&differing), ["it-mended p10 confirm"]);
    assert_eq!(
        differing["it-mended p10 confirm"],
        BTreeSet::from(["evidence.p10.share".to_owned()])
    );
    assert!(same.len() > 20);
}

/// Over a ledger in which both shipped iterations were decided.
pub(super) fn check(desk: &mut Desk) {
    desk.ok("export jsonl -o export --blobs");
    the_same_elsewhere(desk);
    a_label(desk);
    a_threshold(desk);
    a_seed(desk);
}
