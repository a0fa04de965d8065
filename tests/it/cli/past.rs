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

/// Verbs that no ledger here answers: they refuse alike then and now.
const SILENT: [&str; 19] = [
    "exposure list",
    "gate show",
    "generator show",
    "judge compare",
    "prereg diff",
    "prereg show",
    "repair measure",
    "repair show",
    "report erasure",
    "report gate",
    "report repair",
    "report sgd",
    "report show",
    "rubric dead",
    "sgd prompt diff",
    "sgd prompt log",
    "sgd prompt show",
    "sgd show",
    "synth show",
];

/// The first `size` entries of a story as a ledger of its own.
fn desk(story: &Story, size: u64) -> Desk {
    let mut desk = Desk::new();
    let folder = desk.at.join("export");
    std::fs::create_dir_all(folder.join("blobs")).unwrap();
    let told = &story.lines[..usize::try_from(size).unwrap()];
    let items = World::of(told).items;
    // Whoever looks then looks right after the newest entry.
    desk.clock.set(items.last().unwrap().recorded_at);
    let bodies = items.iter().map(|item| item.body.to_string());
    let text: String = bodies.collect();
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

fn is_slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
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
    // The first ids of a verb, where nobody has the time for all.
    let most = if is_slow() { usize::MAX } else { 3 };
    let experiments: BTreeSet<String> = experiments.into_iter().take(most).collect();
    let mut commands = BTreeMap::new();
    for verb in verbs {
        let each = |ids: BTreeSet<String>| {
            let ids = ids.into_iter().take(most);
            ids.map(|id| format!("{verb} {id}")).collect()
        };
        let lines: Vec<String> = match verb.as_str() {
            "assume show" => vec![format!("{verb} A0")],
            "budget show" => each(of("account")),
            "calibrate apply" => vec![format!("{verb} --score 0.5")],
            "exposure list" | "gate show" | "prereg diff" | "prereg show" | "report gate" => {
                each(of("manifest_id"))
            }
            "family show" => each(of("family")),
            "generator show" | "repair show" | "report repair" | "report sgd"
            | "sgd prompt diff" | "sgd prompt log" | "sgd prompt show" | "sgd show"
            | "synth show" => each(of("run")),
            "iterate show" | "report iteration" => each(of("iteration")),
            "key export" | "key show" => vec![format!("{verb} Ada"), format!("{verb} Ben")],
            "report show" => reports.iter().map(|seq| format!("{verb} {seq}")).collect(),
            "report change" | "report estimate" | "report experiment" | "rubric show"
            | "prompt show" | "rubric dead" => each(experiments.clone()),
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
            "plan audit" => vec![format!("{verb} 0.2")],
            "plan iteration" => vec![format!("{verb} 0.02")],
            "plan labels" => vec![format!("{verb} 0.05 --score-price 0.01 --label-price 2")],
            "plan budget" => vec![format!("{verb} 1000 --score-price 0.01 --label-price 2")],
            _ => vec![verb.clone()],
        };
        commands.insert(verb.clone(), lines);
    }
    commands
}

/// Whether a verb appends where it is asked of the present, as one does that can be rehearsed: it is compared with its
/// rehearsal, which names itself otherwise.
fn is_rehearsed(desk: &mut Desk, verb: &str) -> bool {
    let help = desk.ok(&format!("{verb} --help")).out;
    // Where an option asks for the append, the verb alone appends nothing.
    help.contains("--dry-run") && !help.contains("--publish")
}

/// What each command prints of a ledger as it is: the exit code and the bytes, as text and as JSON.
/// Where nobody has the time for both, the forms take turns from verb to verb, and from story to story.
fn printed(
    desk: &mut Desk,
    commands: &BTreeMap<String, Vec<String>>,
    turn: usize,
) -> BTreeMap<String, (u8, String)> {
    let mut all = BTreeMap::new();
    for (at, (verb, lines)) in commands.iter().enumerate() {
        let forms = match (is_slow(), (at + turn) % 2) {
            (true, _) => &["", " --json"][..],
            (false, 0) => &[""],
            (false, _) => &[" --json"],
        };
        let rehearsal = if is_rehearsed(desk, verb) {
            " --dry-run"
        } else {
            ""
        };
        for line in lines {
            for json in forms {
                let ran = desk.run(&format!("{line}{rehearsal}{json}"));
                let out = ran
                    .out
                    .replace("\"verdict\":\"dry_run\"", "\"verdict\":\"as_of\"");
                all.insert(format!("{line}{json}"), (ran.code, out));
            }
        }
    }
    all
}

/// What differs where the same is asked of a later ledger as of an entry.
fn differing(
    desk: &mut Desk,
    seq: u64,
    then: &BTreeMap<String, (u8, String)>,
    answered: &mut BTreeSet<String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, (code, out)) in then {
        let plain = line.trim_end_matches(" --json");
        let json = if plain == line { "" } else { "--json " };
        let is = desk.run(&format!("at {seq} {json}-- {plain}"));
        if *code == 0 {
            answered.insert(plain.to_owned());
        }
        // It verifies the ledger, which is another then.
        if !plain.starts_with("audit summary") && (*code, out) != (is.code, &is.out) {
            wrong.push(format!(
                "at {seq} {line}\n--- then {code}\n{out}--- now {}\n{}{}",
                is.code, is.out, is.err
            ));
        }
    }
    wrong
}

/// The verbs that answered, of commands that did.
fn verbs_of(lines: &BTreeSet<String>, verbs: &BTreeSet<String>) -> BTreeSet<String> {
    let is_of = |verb: &&String| {
        lines
            .iter()
            .any(|line| line == *verb || line.starts_with(&format!("{verb} ")))
    };
    verbs.iter().filter(is_of).cloned().collect()
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
    let (mut verbs, mut wrong, mut answered) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for (turn, (name, story)) in stories.into_iter().enumerate() {
        let sizes: Vec<u64> = story.checkpoints.keys().copied().collect();
        let last = *sizes.last().unwrap();
        let mut now = desk(&story, last);
        verbs = listed(&mut now);
        let commands = commands(&mut now, &verbs);
        let size = sizes[(sizes.len() - 1) * 4 / 5];
        assert!(size < last, "{name}");
        let then = printed(&mut desk(&story, size), &commands, turn);
        let found = differing(&mut now, size - 1, &then, &mut answered);
        wrong.extend(found.into_iter().map(|of| format!("{name} {of}")));
    }
    // What is computed needs rows with labels.
    let mut live = super::doubts::desk("1", &[("a", 0..80, 0.4), ("b", 10..80, 0.6)]);
    live.ok("estimate");
    live.ok("compare --all");
    let commands = commands(&mut live, &verbs);
    let then = printed(&mut live, &commands, 0);
    let size = live.head()["size"].as_u64().unwrap();
    live.file(
        "c_responses.jsonl",
        "{\"prompt_id\":\"p001\",\"judge_score\":0.5,\"oracle_label\":0.5}\n",
    );
    live.ok("import cje c_responses.jsonl --labels");
    live.ok("estimate");
    live.ok("record note.recorded --data {\"text\":\"later\"}");
    wrong.extend(differing(&mut live, size - 1, &then, &mut answered));
    let heard = verbs_of(&answered, &verbs);
    let silent: Vec<_> = verbs.difference(&heard).collect();
    assert!(
        wrong.is_empty(),
        "{}\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    let silent: Vec<_> = silent
        .into_iter()
        .filter(|verb| !SILENT.contains(&verb.as_str()))
        .collect();
    assert!(silent.is_empty(), "no ledger answers {silent:?}");
}
