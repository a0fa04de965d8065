//! A ledger that somebody writes again who holds every key: its export with some events edited, all of it numbered,
//! bound to its own tree and signed anew, checkpoints included.

use std::collections::BTreeMap;

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

/// The history in the folder `export`, to be edited.
pub(super) fn world(desk: &Desk) -> World {
    let lines = std::fs::read(desk.at.join("export/ledger.jsonl")).unwrap();
    let lines = lines.split(|byte| *byte == b'\n');
    let lines: Vec<Vec<u8>> = lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    World::of(&lines)
}

/// Writes a history as an export beside the first, with the same blobs and with every checkpoint signed anew.
pub(super) fn exported(desk: &Desk, name: &str, world: &World) {
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
}

/// A gate event of an iteration, by its place.
fn gate(world: &World, (iteration, gate, split): (&str, &str, &str)) -> usize {
    let is_it = |body: &Value| {
        let data = &body["data"];
        body["kind"] == "gate.evaluated"
            && (&data["iteration"], &data["gate"], &data["split"])
                == (&json!(iteration), &json!(gate), &json!(split))
    };
    let mut items = world.items.iter();
    items.position(|item| is_it(&item.body)).unwrap()
}

/// Makes a number larger by a millionth of itself, which is too little for any verdict.
fn nudge(number: &mut Value) {
    let old = number.as_f64().unwrap();
    *number = (old * (1.0 + 1e-6)).into();
    assert_ne!(number.as_f64(), Some(old));
}

/// Over a ledger with a whole iteration, computed again: nothing is found in it, and in a copy where numbers of two of
/// its gates were edited by somebody with every key, these two events and no other.
pub(super) fn edited_gates_are_found(desk: &mut Desk, iteration: &str) {
    let verified = desk.ok("verify --recompute --json").json();
    let report = &verified["data"]["report"];
    assert_eq!(
        (&verified["verdict"], &report["findings"]),
        (&json!("verified"), &json!([]))
    );
    // Both iterations were decided without an adversary: nobody signed what was attacked for P7.
    let unchecked = [
        "recompute of 2 events whose inputs nobody recorded",
        "recompute of 2 reports, which replay alone writes again",
    ];
    assert_eq!(report["not_checked"], json!(unchecked), "{report:#}");
    desk.ok("export jsonl -o export --blobs");
    let mut world = world(desk);
    let mut edited = Vec::new();
    for (name, split, path) in [
        ("p4", "dev", "/evidence/p4/w1"),
        ("p8", "confirm", "/evidence/p8/loss/standard_error"),
    ] {
        let at = gate(&world, (iteration, name, split));
        let data = &mut world.items[at].body["data"];
        nudge(data.pointer_mut(path).unwrap());
        edited.push((at as u64, "recompute".to_owned()));
    }
    exported(desk, "edited", &world);
    let verified = desk.run("verify edited --recompute --no-pin --json");
    let report = verified.json()["data"]["report"].clone();
    let findings = report["findings"].as_array().unwrap().iter();
    let found: Vec<(u64, String)> = findings
        .map(|one| {
            let rule = one["rule"].as_str().unwrap();
            (one["seq"].as_u64().unwrap(), rule.to_owned())
        })
        .collect();
    assert_eq!(found, edited, "{report:#}");
    assert_eq!(
        (&report["findings_total"], verified.code),
        (&json!(2), 3),
        "{report:#}"
    );
}
