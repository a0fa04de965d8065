//! Random damage to the samples, the same for the same seed: bytes, lines, fields of signed bodies, whole
//! events that anyone with a key might say, checkpoints, pins and blobs.

use std::collections::BTreeMap;

use base64ct::Base64;
use base64ct::Encoding;
use clover::event::Kind;
use clover::event::payload::Role;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::sign::KeyId;
use clover::ledger::rules;
use serde_json::Value;
use serde_json::json;

use super::forger;
use super::forger::Item;
use super::forger::Sealed;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered;
use super::tampered::Sample;
use super::verifiers::Case;

/// The `SplitMix64` generator.
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `n` times.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What cases are made of.
pub struct Mutator {
    good: Story,
    planned: Story,
    samples: &'static [Sample],
    dice: Dice,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self {
            good: good(),
            planned: planned::story(),
            samples: tampered::all(),
            dice: Dice(seed),
        }
    }

    /// The next case.
    pub fn case(&mut self) -> Case {
        let dice = &mut self.dice;
        let (mut lines, mut case) = if dice.once_in(4) {
            let sample = dice.pick(self.samples);
            let lines = sample.case.ledger.split(|byte| *byte == b'\n');
            let mut lines: Vec<_> = lines.map(<[u8]>::to_vec).collect();
            lines.pop();
            (lines, sample.case.clone())
        } else {
            let story = if dice.once_in(3) {
                &self.planned
            } else {
                &self.good
            };
            let size = [1 + dice.below(story.lines.len()), story.lines.len()];
            let mut world = World::of(&story.lines[..*dice.pick(&size)]);
            let changes = *dice.pick(&[0, 1, 1, 1, 2, 3]);
            for _ in 0..changes {
                change(dice, &mut world);
            }
            (world.seal().lines, Case::default())
        };
        if case.checkpoint.is_some() || dice.once_in(6) {
            for _ in 0..dice.below(3) {
                damage(dice, &mut lines);
            }
        }
        let sealed = Sealed::over(lines);
        case.ledger = forger::file(&sealed.lines);
        if dice.once_in(20) {
            case.ledger.pop();
        }
        if case.checkpoint.is_none() || dice.once_in(3) {
            case.checkpoint = checkpoint(dice, &sealed);
        }
        if dice.once_in(5) {
            case.pin = pin(dice, &sealed, &self.good);
        }
        if dice.once_in(5) {
            let seed = *dice.pick(&[LOG, LOG, LOG, NEXT_LOG, STRANGER]);
            case.log_key = Some(log_vkey(seed).to_string());
        }
        if dice.once_in(6) {
            case.blobs = Some(blobs(dice, &self.good.blobs));
        }
        case
    }
}

/// Damage by someone without keys.
fn damage(dice: &mut Dice, lines: &mut Vec<Vec<u8>>) {
    let at = dice.below(lines.len());
    match dice.below(11) {
        0 | 1 => {
            let byte = dice.below(lines[at].len().max(1));
            let flip = *dice.pick(&[1, 2, 0x10, 0x20, 0x80, 0xff]);
            if let Some(byte) = lines[at].get_mut(byte) {
                *byte ^= flip;
            }
        }
        2 if lines.len() > 1 => drop(lines.remove(at)),
        3 => {
            let other = dice.below(lines.len());
            lines.swap(at, other);
        }
        4 => lines.insert(at, lines[at].clone()),
        5 => lines.truncate(at.max(1)),
        6 if serde_json::from_slice::<Value>(&lines[at]).is_ok_and(|line| line["seq"].is_u64()) => {
            lines[at] = tampered::malleable(&lines[at]);
        }
        7 => {
            let byte = dice.below(lines[at].len() + 1);
            let new = *dice.pick(b" \n\r\"{}[]0A=\xc3\x00");
            lines[at].insert(byte, new);
            let text = lines.join(&b'\n');
            *lines = text
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
        }
        _ => frame(dice, lines, at),
    }
}

/// Changes fields around the signed body.
fn frame(dice: &mut Dice, lines: &mut [Vec<u8>], at: usize) {
    let other = dice.below(lines.len());
    let (Ok(mut line), Ok(donor)) = (
        serde_json::from_slice::<Value>(&lines[at]),
        serde_json::from_slice::<Value>(&lines[other]),
    ) else {
        return;
    };
    let signature = |value: &Value| value["envelope"]["signatures"][0].clone();
    match dice.below(8) {
        0 => line["seq"] = json!(dice.below(50)),
        1 => line["recorded_at"] = donor["recorded_at"].clone(),
        2 => line["envelope"]["payload"] = donor["envelope"]["payload"].clone(),
        3 => line["envelope"]["signatures"][0]["sig"] = signature(&donor)["sig"].clone(),
        4 => line["envelope"]["signatures"][0]["keyid"] = signature(&donor)["keyid"].clone(),
        5 => line["envelope"]["signatures"] = json!([signature(&line), signature(&donor)]),
        6 => line["recorded_at"] = odd(dice),
        _ => mutate(dice, &mut line),
    }
    lines[at] = canon::to_bytes(&line).unwrap_or_else(|_| serde_json::to_vec(&line).unwrap());
}

/// Values that are often wrong somewhere.
fn odd(dice: &mut Dice) -> Value {
    let words = [
        "",
        "x",
        "exp-1",
        "exp-2",
        "solo",
        "strict",
        "once",
        "quarter",
        "peeks",
        "judge-spend",
        "owner",
        "text/plain",
        "a/b/c",
        "text",
        "e\u{301}",
        "\u{e9}",
        "a\u{85}b",
        "a\nb",
        "a\u{0}b",
        "\u{1f600}",
        "2026-10-01T00:00:00.000000Z",
        "0001-01-01T00:00:00.000000Z",
        "9999-12-31T23:59:59.999999Z",
        "2026-02-30T00:00:00.000000Z",
        "2024-02-29T23:59:60.000000Z",
        "1969-12-31T23:59:59.999999Z",
        "AAAA",
        "AAA=",
        "AAB=",
        "AA==",
        "age1",
        ORIGIN,
        "https://a",
        "Ledger.example",
        "completed",
        "aborted",
        "allowed",
        "pass",
        "noted",
        "audit",
        "note.recorded",
        "key.added",
    ];
    match dice.below(15) {
        0 => Value::Null,
        1 => json!(dice.once_in(2)),
        2 => json!(*dice.pick(&[
            0_i64,
            1,
            -1,
            2,
            7,
            40,
            43,
            44,
            300,
            1_000_000_000_000,
            1_000_000_000_001
        ])),
        3 => json!(*dice.pick(&[
            9_007_199_254_740_991_u64,
            9_007_199_254_740_992,
            4_294_967_295,
            4_294_967_296
        ])),
        4 => json!(*dice.pick(&[1.5, 1e21, 1e-7, -0.5])),
        5 => json!([]),
        6 => json!({}),
        7 => json!("y".repeat(*dice.pick(&[100, 101, 200, 201, 4_000, 4_001, 40_000]))),
        8 => json!(Digest::sha256(&[dice.below(9).to_le_bytes()[0]]).to_hex()),
        9 => json!(Base64::encode_string(
            &[7; 64][..*dice.pick(&[31, 32, 33, 64])]
        )),
        10 => json!(log_vkey(*dice.pick(&[LOG, NEXT_LOG, STRANGER])).to_string()),
        11 => json!(*dice.pick(&[
            ["owner", "scorer"],
            ["scorer", "owner"],
            ["owner", "owner"],
            ["labeler", "optimizer"]
        ])),
        12 => json!(signer(*dice.pick(&AUTHORS)).id().to_string()),
        _ => json!(*dice.pick(&words)),
    }
}

/// Changes something somewhere inside a value.
fn mutate(dice: &mut Dice, value: &mut Value) {
    let deeper = !dice.once_in(3);
    match value {
        Value::Object(fields) if !fields.is_empty() && deeper => {
            let at = dice.below(fields.len());
            let name = fields.keys().nth(at).unwrap().clone();
            match dice.below(8) {
                0 => drop(fields.remove(&name)),
                1 => {
                    let new = *dice.pick(&["a", "blob", "proof", "zz"]);
                    fields.insert(new.to_owned(), odd(dice));
                }
                _ => mutate(dice, &mut fields[&name]),
            }
        }
        Value::Array(items) if !items.is_empty() && deeper => {
            let at = dice.below(items.len());
            match dice.below(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                2 => items.reverse(),
                _ => mutate(dice, &mut items[at]),
            }
        }
        Value::String(text) if !text.is_empty() && dice.once_in(3) => {
            let at = dice.below(text.len());
            if text.is_char_boundary(at) {
                text.insert(
                    at,
                    *dice.pick(&['0', 'a', 'A', '+', ' ', '"', '\\', '\u{7f}']),
                );
            }
        }
        Value::Number(number) if dice.once_in(2) => {
            let step = *dice.pick(&[1, -1, 1_000_000]);
            *value = json!(number.as_i64().unwrap_or_default().saturating_add(step));
        }
        // Objects as lists of their values are what a lax reader takes for the same.
        Value::Object(fields) if dice.once_in(3) => *value = fields.values().cloned().collect(),
        other => *other = odd(dice),
    }
}

/// A change by someone with every key.
fn change(dice: &mut Dice, world: &mut World) {
    let at = dice.below(world.items.len());
    match dice.below(10) {
        0 | 1 => {
            let mut body = world.items[at].body.clone();
            mutate(dice, &mut body["data"]);
            if dice.once_in(2) {
                planned::redigest(&mut body["data"]);
            }
            world.items[at].body = body;
        }
        2 => mutate_header(dice, &mut world.items[at]),
        3 => around(dice, &mut world.items[at]),
        4 if world.items.len() > 1 && at > 0 => world.remove(at),
        5 => drop(world.repeat(at)),
        6 => {
            world.items[at].raw = Some(raw(dice, &world.items[at].body));
        }
        _ => {
            let new = say(dice, world);
            if dice.once_in(4) {
                let mut data = world.items[new].body["data"].clone();
                mutate(dice, &mut data);
                world.items[new].body["data"] = data;
            }
            if dice.once_in(6) {
                world.items[new].body["refs"] = json!([world.items[at].was.clone()]);
            }
        }
    }
}

fn mutate_header(dice: &mut Dice, item: &mut Item) {
    let names = [
        "at",
        "author",
        "author_seq",
        "experiment",
        "kind",
        "ledger",
        "refs",
        "seen",
        "v",
        "data",
        "extra",
    ];
    let name = *dice.pick(&names);
    match dice.below(6) {
        0 => {
            item.body.as_object_mut().unwrap().remove(name);
        }
        1 => item.body[name] = odd(dice),
        2 => item.body["author"] = signer(*dice.pick(&AUTHORS)).id().to_string().into(),
        3 => {
            item.body["seen"] =
                json!({"root": Digest([0; 32]).to_base64(), "size": dice.below(46)});
        }
        4 => item.body["refs"] = json!(vec![item.was.clone(); *dice.pick(&[1, 256, 257])]),
        _ => {
            if let Some(value) = item.body.get_mut(name) {
                mutate(dice, value);
            }
        }
    }
    item.numbered = name == "author_seq";
    item.bound = name == "seen" && dice.once_in(2);
}

/// Changes what stands around the body, and when it was said.
fn around(dice: &mut Dice, item: &mut Item) {
    match dice.below(6) {
        0 => item.signer = Some(*dice.pick(&AUTHORS)),
        1 => item.keyid = Some(KeyId(Digest::sha256(b"key"))),
        2 => item.signature = Some([dice.below(3).to_le_bytes()[0]; 64]),
        3 => item.seq = Some(dice.below(50) as u64),
        4 => {
            let step = *dice.pick(&[-86_400, -400, -1, 1, 300, 301, 400, 86_400, 7_776_000]);
            item.recorded_at = item.recorded_at.plus_seconds(step);
        }
        _ => {
            let step = *dice.pick(&[-86_400, -481, -480, -400, -300, 300, 301, 400]);
            item.body["at"] = item.recorded_at.plus_seconds(step).to_string().into();
        }
    }
}

/// A body that is perhaps not canonical.
fn raw(dice: &mut Dice, body: &Value) -> Vec<u8> {
    let mut bytes = canon::to_bytes(body).unwrap_or_default();
    let replace = |bytes: &[u8], old: &str, new: &str| {
        String::from_utf8_lossy(bytes)
            .replacen(old, new, 1)
            .into_bytes()
    };
    match dice.below(9) {
        0 => bytes.push(*dice.pick(b" \n}0")),
        1 => drop(bytes.pop()),
        2 => bytes = replace(&bytes, "\"at\":", "\"at\": "),
        3 => bytes = replace(&bytes, "\"v\":1", "\"v\":1.0"),
        4 => bytes = replace(&bytes, "\"kind\":", "\"k\\u0069nd\":"),
        5 => bytes = replace(&bytes, "\"data\":{", "\"data\":{\"a\":1,\"a\":1,"),
        6 => {
            bytes = replace(
                &bytes,
                "\"data\":{",
                &format!("\"data\":{}", "[".repeat(2_000)),
            );
        }
        7 => {
            let depth = *dice.pick(&[125, 126, 127, 128]);
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            bytes = replace(&bytes, "\"data\":{", &format!("\"data\":{{\"A\":{nested},"));
        }
        _ => {
            let at = dice.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= *dice.pick(&[1, 0x20, 0x80]);
            }
        }
    }
    bytes
}

/// One more event: something that can be said, by someone who often may say it.
fn say(dice: &mut Dice, world: &mut World) -> usize {
    let kind = *dice.pick(Kind::ALL);
    let said: Vec<_> = (0..world.items.len())
        .filter(|at| world.items[*at].body["kind"] == kind.as_str())
        .collect();
    if dice.once_in(3) && !said.is_empty() {
        let new = world.repeat(*dice.pick(&said));
        if let Some(text) = world.items[new].body["data"].get("item").cloned() {
            let item = format!("{}-{}", text.as_str().unwrap_or_default(), dice.below(3));
            world.items[new].body["data"]["item"] = item.into();
        }
        return new;
    }
    if dice.once_in(3) {
        return say_of_labels(dice, world);
    }
    if dice.once_in(4) {
        return say_of_trust(dice, world);
    }
    let who = *dice.pick(&AUTHORS);
    let account = *dice.pick(&["peeks", "judge-spend", "new"]);
    let experiment: Value = (*dice.pick(&["exp-1", "exp-1", "exp-2"])).into();
    let id = signer(who).id().to_string();
    let vkey = log_vkey(*dice.pick(&[LOG, NEXT_LOG, STRANGER, BEN])).to_string();
    let (author, kind, v, experiment, data) = match dice.below(11) {
        0 | 1 => (ADA, "key.added", 2, Value::Null, key(dice, who)),
        2 => (BEN, "key.added", 1, Value::Null, old_key(dice, who)),
        3 => (
            *dice.pick(&[ADA, BEN]),
            "key.retired",
            1,
            Value::Null,
            json!({"key_id": id, "reason": ""}),
        ),
        4 => {
            let data = json!({"key_id": id, "reason": "", "since_seq": dice.below(50)});
            (
                *dice.pick(&[ADA, BEN]),
                "key.compromised",
                1,
                Value::Null,
                data,
            )
        }
        5 => {
            let data = json!({"reason": "", "separation": *dice.pick(&["solo", "strict"])});
            (ADA, "policy.adopted", 1, Value::Null, data)
        }
        6 => (
            ADA,
            "log_key.rotated",
            1,
            Value::Null,
            json!({"reason": "", "vkey": vkey}),
        ),
        7 => {
            let data = json!({"account": account, "amount": 1 + dice.below(3), "for": ""});
            (
                *dice.pick(&[CLEO, RUNNER, RUNNER_3]),
                "budget.charged",
                1,
                Value::Null,
                data,
            )
        }
        8 => {
            let data = json!({
                "account": account, "amount": 1 + dice.below(3), "period": *dice.pick(&["once", "quarter"]),
                "purpose": "", "spenders": [*dice.pick(&["custodian", "scorer"])], "unit": *dice.pick(&["u", "peek"]),
            });
            (ADA, "budget.opened", 1, Value::Null, data)
        }
        9 => {
            let data = json!({"purpose": "", "title": ""});
            (ADA, "experiment.registered", 1, experiment, data)
        }
        _ => (
            who,
            "note.recorded",
            1,
            experiment,
            json!({"text": "\u{e9}\t\n"}),
        ),
    };
    world.say(author, kind, v, experiment, data)
}

/// One more event about designs, labels, splits or conflicts, on few names so that they meet.
fn say_of_labels(dice: &mut Dice, world: &mut World) -> usize {
    let experiment = match dice.below(8) {
        0 => Value::Null,
        1 => "exp-1".into(),
        _ => "arena".into(),
    };
    let design = *dice.pick(&["calib", "probe", "hold", "late"]);
    let item = format!("item-{}", *dice.pick(&["a", "b", "d", "e", "f", "g", "h"]));
    let purpose = *dice.pick(&["calibrate", "audit"]);
    let (who, kind, data) = match dice.below(7) {
        0 | 1 => {
            let data = json!({
                "design": design, "draw": dice.below(2), "item": item, "policy": "base", "purpose": purpose,
                "rater": *dice.pick(&["Lena", "Ben"]), "value_micro": 5,
            });
            (LENA, "label.recorded", data)
        }
        2 => {
            let held = world
                .items
                .iter()
                .find(|held| held.body["kind"] == "label.sealed");
            let mut data = held.map_or(Value::Null, |held| held.body["data"].clone());
            let rows = [
                format!("base/{item}/0"),
                "row-9".to_owned(),
                format!("a%2Fb/{item}/00"),
            ];
            data["row"] = dice.pick(&rows).as_str().into();
            data["design"] = design.into();
            (CLEO, "label.sealed", data)
        }
        3 => {
            let purpose = *dice.pick(&["calibrate", "audit", "confirm"]);
            let strata = json!([{"inclusion_micro": 1, "stratum": "b"}, {"inclusion_micro": 2, "stratum": "a"}]);
            let mut data = json!({
                "design": design, "inclusion_micro": 1 + dice.below(9), "protocol": "sdp-1", "purpose": purpose,
            });
            if dice.once_in(4) {
                data["strata"] = strata;
            }
            (LENA, "label.design_registered", data)
        }
        4 => {
            let more = format!("item-{}", *dice.pick(&["i", "j", "a"]));
            let mut data = json!({
                "clusters": [item, more], "first": dice.below(3) / 2 * 2,
                "part": *dice.pick(&["confirm", "dev", "fit"]), "split": *dice.pick(&["split-1", "split-2"]),
            });
            if dice.once_in(2) {
                data["by"] = json!({
                    "cluster_rule": "blake2b-mod3/1", "seed": 231, "separation": *dice.pick(&["hashed", "time"]),
                });
            }
            (ARBITER, "splits.listed", data)
        }
        5 => {
            let formed = world
                .items
                .iter()
                .find(|item| item.body["kind"] == "splits.formed");
            let mut data = formed.map_or(Value::Null, |formed| formed.body["data"].clone());
            data["split"] = (*dice.pick(&["split-2", "split-3"])).into();
            if dice.once_in(2) {
                data["confirm"] = json!({"count": 0, "root": Digest::sha256(b"").to_base64()});
            }
            (ARBITER, "splits.formed", data)
        }
        _ => {
            let scored = world
                .items
                .iter()
                .find(|item| item.body["kind"] == "score.recorded");
            let recorded =
                scored.map_or_else(|| Digest::sha256(b"").to_hex(), |item| item.was.clone());
            let data = json!({
                "draw": 0, "item": item, "judge": "judge-1", "policy": "base", "recorded": recorded,
                "recorded_micro": 500_000, "score_micro": 500_000 + dice.below(2),
            });
            (RUNNER_3, "score.conflict", data)
        }
    };
    world.say(who, kind, 1, experiment, data)
}

/// One more event about protocols, bridges, waivers or reads.
fn say_of_trust(dice: &mut Dice, world: &mut World) -> usize {
    let experiment: Value = match dice.below(4) {
        0 => Value::Null,
        1 => "doubt".into(),
        _ => "arena".into(),
    };
    let end = *dice.pick(&["2026-10-01T00:00:00.000000Z", "2027-10-01T00:00:00.000000Z"]);
    let sdp = *dice.pick(&["sdp-1", "sdp-2"]);
    let hash = Digest::sha256(b"").to_hex();
    let (who, kind, experiment, data) = match dice.below(5) {
        0 => {
            let data =
                json!({"document": hash, "effective_at": end, "sdp_version": sdp, "target": "Y"});
            (STELLA, "sdp.version_registered", Value::Null, data)
        }
        1 => {
            let mut data = json!({
                "document": hash, "expires_at": end, "sdp_version": sdp,
                "kind": *dice.pick(&["attestation", "construct", "pte"]), "status": *dice.pick(&["fail", "pass"]),
            });
            for name in ["ci_lo", "estimate", "ci_hi"] {
                if dice.once_in(2) {
                    data[name] = json!(*dice.pick(&[0.25, 0.5, 1.0, -1.5]));
                }
            }
            (STELLA, "bridge.assessed", Value::Null, data)
        }
        2 => {
            let code = *dice.pick(&["A0", "A1-A3", "CLOVER.J2", "H1", "L1", "S2"]);
            let data = json!({"code": code, "expires_at": end, "reason": ""});
            (
                *dice.pick(&[PETRA, PAUL]),
                "assumption.waived",
                experiment,
                data,
            )
        }
        3 => {
            let waived = |item: &&Item| item.body["kind"] == "assumption.waived";
            let last = world.items.iter().rfind(waived);
            let waiver = last.map_or(hash, |item| item.was.clone());
            let data = json!({"waiver": waiver});
            (
                *dice.pick(&[PETRA, PAUL]),
                "assumption.countersigned",
                experiment,
                data,
            )
        }
        _ => {
            let mut data = json!({
                "class": *dice.pick(&["label", "row", "rubric"]), "outcome": *dice.pick(&["allowed", "denied"]),
                "purpose": "", "reader": signer(*dice.pick(&AUTHORS)).id().to_string(),
            });
            if dice.once_in(2) {
                data["role"] = (*dice.pick(&["labeler", "auditor", "optimizer"])).into();
            }
            (CLEO, "data.read", experiment, data)
        }
    };
    world.say(who, kind, 1, experiment, data)
}

fn key(dice: &mut Dice, who: u8) -> Value {
    let prover = if dice.once_in(4) { BEN } else { who };
    let mut data = old_key(dice, who);
    let id = KeyId(Digest::from_hex(data["key_id"].as_str().unwrap()).unwrap());
    let proof = signer(prover).sign(&rules::possession_message(ORIGIN, id));
    data["proof"] = Base64::encode_string(&proof).into();
    data
}

fn old_key(dice: &mut Dice, who: u8) -> Value {
    let named = if dice.once_in(5) { LENA } else { who };
    let mut roles: Vec<_> = (0..=dice.below(3))
        .map(|_| dice.pick(&Role::ALL).as_str())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let mut public = signer(who).public_bytes();
    if dice.once_in(8) {
        public = [*dice.pick(&[0, 1, 2, 0xff]); 32];
    }
    json!({
        "holder": *dice.pick(&["Ada", "Cleo", "Lena", "Eve", "runner"]), "human": true,
        "key_id": signer(named).id().to_string(), "public_key": Base64::encode_string(&public), "roles": roles,
    })
}

fn checkpoint(dice: &mut Dice, sealed: &Sealed) -> Option<Vec<u8>> {
    let size = sealed.lines.len();
    // The rotation of the good ledger stands at 26 as long as nothing before it was taken out.
    let due: &[u8] = match size {
        0..=26 => &[LOG],
        27 => &[LOG, NEXT_LOG],
        _ => &[NEXT_LOG],
    };
    let note = match dice.below(24) {
        0 => return None,
        1 => sealed.checkpoint(&[LOG]),
        2 => sealed.checkpoint(&[NEXT_LOG]),
        3 => sealed.checkpoint(&[LOG, NEXT_LOG]),
        4 => {
            let at = dice.below(size + 3);
            let root = sealed.roots.get(at).copied().unwrap_or(sealed.root());
            forger::checkpoint(at as u64, root, due)
        }
        5 => forger::checkpoint(size as u64, Digest::sha256(b"other"), due),
        6 => {
            let mut note = sealed.checkpoint(due);
            let at = dice.below(note.len());
            note[at] ^= *dice.pick(&[1, 2, 0x20]);
            note
        }
        7 => {
            // A good signature beside a bad one of the other log key.
            let good = String::from_utf8(sealed.checkpoint(due)).unwrap();
            let bad = String::from_utf8(forger::checkpoint(
                1,
                sealed.root(),
                &[*dice.pick(&[LOG, NEXT_LOG])],
            ));
            let bad = bad.unwrap();
            format!("{good}{}", bad.split("\n\n").nth(1).unwrap()).into_bytes()
        }
        _ => sealed.checkpoint(due),
    };
    Some(note)
}

fn pin(dice: &mut Dice, sealed: &Sealed, good: &Story) -> Option<Vec<u8>> {
    let at = dice.below(sealed.roots.len());
    let choices: [&[u8]; 4] = [&[LOG], &[NEXT_LOG], &[LOG, NEXT_LOG], &[STRANGER]];
    let keys = *dice.pick(&choices);
    match dice.below(4) {
        0 => None,
        1 => Some(forger::checkpoint(at as u64, sealed.roots[at], keys)),
        2 => Some(forger::checkpoint(
            (at + dice.below(9)) as u64,
            sealed.roots[at],
            keys,
        )),
        _ => {
            let sizes: Vec<_> = good.checkpoints.keys().collect();
            Some(good.checkpoints[*dice.pick(&sizes)].clone())
        }
    }
}

fn blobs(dice: &mut Dice, good: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let mut blobs = good.clone();
    let at = dice.below(blobs.len());
    let name = blobs.keys().nth(at).unwrap().clone();
    match dice.below(4) {
        0 => drop(blobs.remove(&name)),
        1 => blobs.get_mut(&name).unwrap()[0] ^= 1,
        2 => blobs.get_mut(&name).unwrap().push(0),
        _ => {}
    }
    blobs
}
