//! `clover at`: every verb that it takes prints of an earlier entry what it printed when the ledger ended there.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use crate::support::decided;
use crate::support::deployed;
use crate::support::forger;
use crate::support::forger::World;
use crate::support::gated;
use crate::support::iterated;
use crate::support::labelled;
use crate::support::samples;
use crate::support::samples::Story;
use crate::support::tuned;

/// Verbs that append where they are asked of the present: they are compared with a rehearsal, which names itself otherwise.
const REHEARSED: [&str; 7] = [
    "compare",
    "estimate",
    "judge compare",
    "plan audit",
    "plan budget",
    "plan iteration",
    "plan labels",
];

/// The first `size` entries of a story as a ledger of its own.
fn desk(story: &Story, size: u64) -> Desk {
    let mut desk = Desk::new();
    let folder = desk.at.join("export");
    std::fs::create_dir_all(folder.join("blobs")).unwrap();
    let told = &story.lines[..usize::try_from(size).unwrap()];
    let bodies = World::of(told).items.into_iter();
    let text: String = bodies.map(|item| item.body.to_string()).collect();
    let lines = forger::file(told);
    let kept = story.checkpoints.range(..=size).map(|(_, note)| {
        let note = String::from_utf8(note.clone()).unwrap();
        json!({"note": note}).to_string() + "\n"
    });
    std::fs::write(folder.join("checkpoints.jsonl"), kept.collect::<String>()).unwrap();
    std::fs::write(folder.join("ledger.jsonl"), &lines).unwrap();
    std::fs::write(folder.join("checkpoint"), &story.checkpoints[&size]).unwrap();
    for (name, bytes) in &story.blobs {
        if text.contains(name) {
            std::fs::write(folder.join("blobs").join(name), bytes).unwrap();
        }
    }
    desk.ok("import ledger export");
    std::fs::remove_dir_all(folder).unwrap();
    desk
}

/// The verbs of the past, as the refusal lists them.
fn listed(desk: &mut Desk) -> BTreeSet<String> {
    let refused = desk.run("at 0 -- init --holder Ada");
    assert_eq!(refused.code, 2, "{}", refused.err);
    let help = desk.run("at --help").out;
    let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let list = refused.err.split("these can: ").nth(1).unwrap();
    let list = list.lines().next().unwrap();
    assert!(flat.contains(list), "{list}\n{help}");
    let mut verbs = BTreeSet::new();
    for words in list.split(", ") {
        let (noun, last) = words.rsplit_once(' ').unwrap_or(("", words));
        for word in last.split('|') {
            verbs.insert(format!("{noun} {word}").trim().to_owned());
        }
    }
    verbs
}

/// Strings under a name anywhere in a document.
fn named(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                if let (true, Some(text)) = (key == name, inner.as_str()) {
                    found.insert(text.to_owned());
                }
                named(inner, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, name, found)),
        _ => {}
    }
}

/// Commands of every verb of the past that a ledger gives something to ask.
fn commands(desk: &mut Desk, verbs: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let data = desk.ok("log --limit 100000 --json").json()["data"].clone();
    let of = |name: &str| {
        let mut found = BTreeSet::new();
        named(&data, name, &mut found);
        found
    };
    let (experiments, judges) = (of("experiment"), of("judge"));
    let reports: Vec<String> = data["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["kind"] == "report.published")
        .map(|entry| entry["seq"].to_string())
        .collect();
    let mut commands = BTreeMap::new();
    for verb in verbs {
        let each =
            |ids: BTreeSet<String>| ids.into_iter().map(|id| format!("{verb} {id}")).collect();
        let lines: Vec<String> = match verb.as_str() {
            "assume show" => vec![format!("{verb} A0")],
            "budget show" => each(of("account")),
            "calibrate apply" => vec![format!("{verb} --score 0.5")],
            "exposure list" | "gate show" | "prereg show" => each(of("manifest_id")),
            "prereg diff" => each(of("manifest_id")),
            "family show" => each(of("family")),
            "generator show" => each(of("run")),
            "iterate show" | "report iteration" => each(of("iteration")),
            "key export" | "key show" => vec![format!("{verb} Ada"), format!("{verb} Ben")],
            "report show" => reports.iter().map(|seq| format!("{verb} {seq}")).collect(),
            "rubric show" | "prompt show" | "rubric dead" => each(experiments.clone()),
            "rubric diff" | "prompt diff" => {
                let pairs = experiments
                    .iter()
                    .flat_map(|one| experiments.iter().map(move |other| (one, other)));
                pairs
                    .map(|(one, other)| format!("{verb} {one} {other}"))
                    .collect()
            }
            "score show" => each(of("item").into_iter().take(2).collect()),
            "show" => vec!["show 3".to_owned(), "show 100000".to_owned()],
            "log" => vec![
                "log".to_owned(),
                "log --kind key.added --limit 3".to_owned(),
            ],
            "compare" => vec!["compare --all".to_owned()],
            "judge compare" => {
                let two: Vec<&String> = judges.iter().take(2).collect();
                if let [one, other] = two[..] {
                    vec![format!("{verb} {one} {other}")]
                } else {
                    Vec::new()
                }
            }
            "plan audit" => vec![format!("{verb} 0.05")],
            "plan labels" | "plan budget" | "plan iteration" => vec![verb.clone()],
            _ => vec![verb.clone()],
        };
        commands.insert(verb.clone(), lines);
    }
    commands
}

#[test]
fn what_is_asked_of_the_past_is_what_was_printed_then() {
    let stories = [
        ("good", samples::good()),
        ("gated", gated::story()),
        ("iterated", iterated::story()),
        ("labelled", labelled::story()),
        ("decided", decided::story()),
        ("deployed", deployed::story()),
        ("tuned", tuned::story()),
    ];
    let mut answered: BTreeSet<String> = BTreeSet::new();
    let (mut verbs, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, story) in stories {
        let sizes: Vec<u64> = story.checkpoints.keys().copied().collect();
        let last = *sizes.last().unwrap();
        let mut now = desk(&story, last);
        verbs = listed(&mut now);
        let commands = commands(&mut now, &verbs);
        for part in [2, 3, 4] {
            let size = sizes[(sizes.len() - 1) * part / 5];
            if size == last {
                continue;
            }
            let mut then = desk(&story, size);
            for (verb, line) in commands
                .iter()
                .flat_map(|(verb, lines)| lines.iter().map(move |line| (verb, line)))
            {
                let rehearsal = if REHEARSED.contains(&verb.as_str()) {
                    " --dry-run"
                } else {
                    ""
                };
                for json in ["", " --json"] {
                    let was = then.run(&format!("{line}{rehearsal}{json}"));
                    let is = now.run(&format!("at {}{json} -- {line}", size - 1));
                    if was.code == 0 {
                        answered.insert(verb.clone());
                    }
                    let said = was
                        .out
                        .replace("\"verdict\":\"dry_run\"", "\"verdict\":\"as_of\"");
                    // It verifies the ledger, which is another then.
                    if verb != "audit summary" && (was.code, &said) != (is.code, &is.out) {
                        wrong.push(format!(
                            "{name} at {size}: {line}{json}\n--- then {}\n{said}{}--- now {}\n{}{}",
                            was.code, was.err, is.code, is.out, is.err
                        ));
                    }
                }
            }
        }
    }
    let silent: Vec<_> = verbs.difference(&answered).collect();
    assert!(
        wrong.is_empty(),
        "{}\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(silent.is_empty(), "no story answers {silent:?}");
}
