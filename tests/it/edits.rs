//! Two verifiers over ledgers in which one thing was edited by somebody with every key: wrong types, numbers and lists
//! without measure, broken characters, documents beyond YAML. They must agree on every finding, and neither may end in
//! an error. 400 cases; 10,000 with `RUN_SLOW_TESTS=1`; others with `CLOVER_SEED=N`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::name;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use crate::support::forger;
use crate::support::forger::World;
use crate::support::planned;
use crate::support::signer;
use crate::support::tampered;
use crate::support::verifiers;
use crate::support::verifiers::Case;

/// `SplitMix64` (Steele, Lea and Flood 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Stands where text is put that no value can say.
const MARK: &str = "\u{e000}raw\u{e000}";

/// Characters that are put into strings.
const CHARACTERS: &[&str] = &[
    "\u{378}",
    "e\u{301}",
    "\u{200b}",
    "\u{202e}",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "\u{b}",
    "\u{c}",
    "\u{1c}",
    "\u{7f}",
    " ",
    "\u{3000}",
    "\u{a0}",
    "\u{1f600}",
    "\u{10ffff}",
    "\u{958}",
];

/// What is put into documents.
fn pieces() -> Vec<String> {
    let long = [
        "9".repeat(5_000),
        format!("0x{}", "f".repeat(5_000)),
        "[".repeat(3_000),
    ];
    let deep = [
        format!("{}{}", "[".repeat(300), "]".repeat(300)),
        format!("{}1{}", "{a: ".repeat(300), "}".repeat(300)),
    ];
    let words = [
        "\u{c}",
        "\u{b}",
        "\u{1c}",
        "\u{1f}",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{a0}",
        "\u{3000}",
        "NaN",
        ".nan",
        ".inf",
        "1e999",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "[]",
        "{}",
        "- - ",
        "1_000",
        "+1",
        "1.",
        "9007199254740992",
        "~",
        "'",
        "\"\\f\"",
        "# c\u{c}\n",
        "\n\u{c}\n",
        "\n \u{c}\n",
        "key: 1\nkey: 2\n",
        "...\n",
        "[tax, \"\\ud800\"]",
        "0.0200000000000000000000000000000001",
    ];
    let words = words.iter().map(|word| (*word).to_owned());
    long.into_iter().chain(deep).chain(words).collect()
}

/// Text of JSON that no writer of ours makes, and some that it does.
fn texts() -> Vec<String> {
    let nested = |open: &str, most: usize, close: &str| {
        format!("{}{}", open.repeat(most), close.repeat(most))
    };
    let mut found = vec![
        "9".repeat(18),
        "9".repeat(5_000),
        nested("[", 126, "]"),
        nested("[", 128, "]"),
        "[".repeat(9_000),
        format!("\"{}\"", "x".repeat(20_000)),
    ];
    let words = [
        "null",
        "true",
        "0",
        "-1",
        "9007199254740991",
        "9007199254740992",
        "18446744073709551616",
        "0.5",
        "1e308",
        "1e400",
        "5e-324",
        "NaN",
        "Infinity",
        "-0",
        "1.0",
        "700.5",
        "[]",
        "{}",
        "[[]]",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "\"\\f\"",
        "\"\\/\"",
        "{\"a\":1,\"a\":2}",
        "[1,]",
        "{\"\":1}",
        "{\"blake3\":1,\"bytes\":2,\"media\":3}",
        "\"\"",
        "\"2026-02-30T00:00:00.000000Z\"",
        "\"AA==\"",
        "\"1.0\"",
        "\"exp-1\"",
    ];
    found.extend(words.iter().map(|word| (*word).to_owned()));
    found
}

/// A ledger of the samples, by its lines.
struct Sample {
    lines: Vec<Vec<u8>>,
    bodies: Vec<Value>,
}

fn samples() -> Vec<Sample> {
    let good = tampered::written().iter();
    let good = good.filter(|sample| sample.name.starts_with("good"));
    let mut good: Vec<_> = good.collect();
    good.sort_by_key(|sample| sample.name);
    let good = good.into_iter().map(|sample| {
        let mut lines: Vec<_> = sample
            .case
            .ledger
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines.pop();
        let items = World::of(&lines).items.into_iter();
        let bodies = items.map(|item| item.body).collect();
        Sample { lines, bodies }
    });
    good.collect()
}

/// Pointers to what stands inside a value, a few of each list.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut inside = |name: &str, value: &Value| {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        places(value, &at, found);
        found.push(at);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| inside(name, value)),
        Value::Array(items) => {
            let items = items.iter().take(5).enumerate();
            items.for_each(|(at, value)| inside(&at.to_string(), value));
        }
        _ => {}
    }
}

/// Puts a piece into a document.
fn annotate(draws: &mut Draws, document: &str, piece: &str) -> String {
    let ends: Vec<_> = document.match_indices('\n').map(|(at, _)| at).collect();
    let colons: Vec<_> = document.match_indices(':').map(|(at, _)| at).collect();
    match draws.below(3) {
        0 if !ends.is_empty() => {
            let at = *draws.pick(&ends);
            format!("{}{piece}{}", &document[..at], &document[at..])
        }
        1 if !colons.is_empty() => {
            let at = *draws.pick(&colons) + 1;
            let end = document[at..]
                .find('\n')
                .map_or(document.len(), |end| at + end);
            format!("{} {piece}{}", &document[..at], &document[end..])
        }
        _ => {
            let mut at = draws.below(document.len() + 1);
            while !document.is_char_boundary(at) {
                at -= 1;
            }
            format!("{}{piece}{}", &document[..at], &document[at..])
        }
    }
}

/// Edits one thing in a body; the bytes of the new one.
fn edit(draws: &mut Draws, mut body: Value, pieces: &[String], texts: &[String]) -> Vec<u8> {
    let mut found = Vec::new();
    places(&body["data"], "/data", &mut found);
    let document = found.iter().find(|at| at.ends_with("/yaml")).cloned();
    let header = ["/at", "/experiment", "/kind", "/refs", "/v"].map(str::to_owned);
    let at = match document {
        Some(document) if draws.below(2) == 0 => document,
        _ if found.is_empty() || draws.below(16) == 0 => draws.pick(&header).clone(),
        _ => draws.pick(&found).clone(),
    };
    let text = draws.pick(texts).clone();
    let (parent, name) = at.rsplit_once('/').unwrap();
    let (parent, name) = (parent.to_owned(), name.to_owned());
    let choice = draws.below(8);
    if choice == 0
        && let Some(parent) = body.pointer_mut(&parent)
    {
        match parent {
            Value::Object(fields) => drop(fields.remove(&name)),
            Value::Array(items) => items.reverse(),
            _ => {}
        }
    } else if choice == 1
        && let Some(Value::Object(fields)) = body.pointer_mut(&parent)
    {
        fields.insert("zz".to_owned(), MARK.into());
    } else if let Some(value) = body.pointer_mut(&at) {
        *value = match &*value {
            Value::String(document) if at.ends_with("/yaml") => {
                let piece = draws.pick(pieces);
                annotate(draws, document, piece).into()
            }
            Value::String(text) if choice < 5 => {
                let piece = draws.pick(CHARACTERS);
                annotate(draws, text, piece).into()
            }
            Value::Array(items) if choice < 4 && !items.is_empty() => {
                let mut items = items.clone();
                items.insert(0, items[0].clone());
                items.into()
            }
            Value::Array(_) if choice < 5 => json!([]),
            _ => MARK.into(),
        };
    }
    if draws.below(2) == 0 {
        planned::redigest(&mut body["data"]);
    }
    let plain = canon::to_bytes(&body).unwrap_or_else(|_| serde_json::to_vec(&body).unwrap());
    let plain = String::from_utf8(plain).unwrap();
    plain.replace(&format!("\"{MARK}\""), &text).into_bytes()
}

fn cases(draws: &mut Draws, total: usize) -> Vec<Case> {
    let samples = samples();
    let keys: BTreeMap<String, Signer> = (0..=255)
        .map(|seed| (signer(seed).id().to_string(), signer(seed)))
        .collect();
    let mut kinds = BTreeMap::<String, Vec<(usize, usize)>>::new();
    for (of, sample) in samples.iter().enumerate() {
        for (at, body) in sample.bodies.iter().enumerate() {
            let kind = body["kind"].as_str().unwrap().to_owned();
            kinds.entry(kind).or_default().push((of, at));
        }
    }
    let kinds: Vec<_> = kinds.into_values().collect();
    let documents: Vec<_> = kinds
        .iter()
        .filter(|places| samples[places[0].0].bodies[places[0].1]["data"]["yaml"].is_string())
        .cloned()
        .collect();
    let (pieces, texts) = (pieces(), texts());
    let case = |_| {
        let of = if draws.below(4) == 0 {
            &documents
        } else {
            &kinds
        };
        let of = draws.pick(of);
        let (of, at) = *draws.pick(of);
        let sample = &samples[of];
        let end = (at + 1 + *draws.pick(&[0, 0, 1, 5])).min(sample.lines.len());
        let mut world = World::of(&sample.lines[..end]);
        world.items[at].raw = Some(edit(draws, sample.bodies[at].clone(), &pieces, &texts));
        Case {
            ledger: forger::file(&world.seal_with(&keys).lines),
            ..Case::default()
        }
    };
    (0..total).map(case).collect()
}

/// What the other verifier says that it did not check excuses findings of ours, and none of its own.
fn excused(answer: &Value, missing: &BTreeSet<&(u64, String)>) -> bool {
    let unchecked = answer["not_checked"].to_string();
    let document = unchecked.contains("documents beyond plain YAML");
    let ids = unchecked.contains("normal form of ids");
    let wanted = |rule: &str| document && ["rubric", "patch", "synth"].contains(&rule) || ids;
    missing.iter().all(|(_, rule)| wanted(rule))
}

#[test]
fn two_verifiers_agree_on_single_edits() {
    if !verifiers::python() {
        return;
    }
    let slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let seed = std::env::var("CLOVER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let cases = cases(&mut Draws(seed), if slow { 10_000 } else { 400 });
    let (mut wrong, mut rules) = (Vec::new(), BTreeMap::<String, u64>::new());
    for (at, (case, answer)) in cases
        .iter()
        .zip(verifiers::answers_of_many(&cases))
        .enumerate()
    {
        let ours = verifiers::ours(case);
        let why = if answer["exit"].is_null() {
            let theirs = verifiers::outcome(&answer);
            let missing: BTreeSet<_> = ours.all.difference(&theirs.all).collect();
            let more: Vec<_> = theirs.all.difference(&ours.all).collect();
            let apart = !missing.is_empty() || !more.is_empty();
            let ids = answer["not_checked"]
                .to_string()
                .contains("normal form of ids");
            (apart && !(excused(&answer, &missing) && (more.is_empty() || ids)))
                .then(|| format!("ours alone {missing:?}, theirs alone {more:?}"))
        } else {
            Some(format!("ours {:?}, theirs ended in an error", ours.all))
        };
        if let Some(why) = why {
            let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
            let folder = folder.join(format!("edits-{seed}-{at}"));
            case.write(&folder);
            wrong.push(format!("{}: {why}", folder.display()));
        }
        let rule = ours.first.map_or("none".to_owned(), |(_, rule)| rule);
        *rules.entry(rule).or_default() += 1;
    }
    println!("{} cases; first: {rules:?}", cases.len());
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rules.len() > 10);
}

/// What the two verifiers know of characters is the same, whatever their libraries know: which are assigned, and which
/// look alike.
#[test]
fn two_verifiers_hold_the_same_names() {
    if !verifiers::python() {
        return;
    }
    let known: Vec<char> = ('\0'..=char::MAX)
        .filter(|c| name::is_assigned(*c))
        .collect();
    let skeletons: Vec<_> = known
        .iter()
        .map(|c| name::skeleton(&c.to_string()))
        .collect();
    let ours = Digest::sha256(skeletons.join("\n").as_bytes()).to_hex();
    let script = "import hashlib, sys; sys.path.insert(0, sys.argv[1])\n\
                  from formats.characters import UNASSIGNED, skeleton\n\
                  known = [c for c in map(chr, range(0x110000)) if not '\\ud800' <= c <= '\\udfff']\n\
                  known = [c for c in known if not UNASSIGNED.search(c)]\n\
                  text = '\\n'.join(map(skeleton, known))\n\
                  print(len(known), hashlib.sha256(text.encode()).hexdigest())";
    let output = verifiers::python3()
        .args(["-c", script])
        .arg(verifiers::audits_verify())
        .output()
        .unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    assert_eq!(theirs.trim(), format!("{} {ours}", known.len()));
}
