//! `clover guide`: its commands are those of the journeys, one path is walked to its end by what it prints, and it says which
//! command is next.

use serde_json::Value;

use super::Desk;
use super::says;
use crate::support::verifiers::repository;

/// The words of a command as a shell reads them: plain, or in single quotes.
pub(crate) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in command.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn commands(guide: &Value) -> Vec<String> {
    let steps = guide["data"]["steps"].as_array().unwrap().iter();
    steps
        .map(|step| step["command"].as_str().unwrap().to_owned())
        .collect()
}

/// The first words of each command that begins with `clover`.
fn verbs<'a>(commands: impl Iterator<Item = &'a str>) -> Vec<String> {
    let of = commands.filter_map(|command| command.strip_prefix("clover "));
    of.map(|rest| rest.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn paths_are_those_that_the_journeys_walk() {
    for (want, have, name) in [
        ("best", "scores,labels", "which_is_best"),
        ("rubric", "texts,labels", "an_iteration"),
        ("gate", "scores", "a_gate"),
    ] {
        let mut desk = Desk::new();
        let ran = desk.ok(&format!("guide --want {want} --have {have} --json"));
        let guided = commands(&ran.json());
        let path = repository().join(format!("tests/journeys/{name}.txt"));
        let text = std::fs::read_to_string(path).unwrap();
        let walked = verbs(text.lines().filter_map(|line| line.strip_prefix("$ ")));
        // The name of a folder or an experiment may stand where a verb has but one word.
        let first = |all: Vec<String>| -> Vec<String> {
            let one = ["init", "compare"];
            let short = |verb: String| match verb.split_once(' ') {
                Some((of, _)) if one.contains(&of) => of.to_owned(),
                _ => verb,
            };
            all.into_iter().map(short).collect()
        };
        let (guided, walked) = (
            first(verbs(guided.iter().map(String::as_str))),
            first(walked),
        );
        assert_eq!(guided[..walked.len()], walked, "{name}");
        assert!(guided.len() <= walked.len() + 1, "{name}: {guided:?}");
    }
}

#[test]
fn a_path_is_walked_to_its_end_by_what_is_printed() {
    let arena = repository().join("fixtures/reference/arena");
    let asked = format!(
        "guide --want best --have scores,labels --scores {0}/fresh_draws --probes {0}/probe_slice --experiment arena --json",
        arena.display()
    );
    let mut desk = Desk::new();
    let path = commands(&desk.ok(&asked).json());
    for (at, command) in path.iter().enumerate() {
        let guide = desk.ok(&asked).json();
        let taken: Vec<_> = guide["data"]["steps"].as_array().unwrap()[..at]
            .iter()
            .map(|step| step["taken"].clone())
            .collect();
        assert!(!taken.contains(&Value::Bool(false)), "{command}: {taken:?}");
        let next = guide["next"][0].as_str().unwrap();
        // Labelled rows for the test are of the kinds of the rows before them: that step is passed over.
        let seen = guide["data"]["steps"][at]["taken"] != Value::Null;
        assert!(next == command || !seen, "{next} is not {command}");
        let all = words(command);
        let all: Vec<&str> = all.iter().skip(1).map(String::as_str).collect();
        let ran = desk.words(&all);
        // The calibrator of these data does not transfer to one policy.
        let code = if command.starts_with("clover audit transport") {
            10
        } else {
            0
        };
        assert_eq!(ran.code, code, "{command}\n{}{}", ran.out, ran.err);
    }
    let guide = desk.ok(&asked).json();
    assert_eq!(guide["next"][0], "clover verify");
    desk.ok("verify");
}

/// What was done in one experiment is not done in another.
#[test]
fn steps_of_another_experiment_are_not_taken() {
    let mut desk = Desk::with_ledger();
    let asked = "guide --want best --have scores,labels --json --experiment";
    let taken = |desk: &mut Desk, id: &str| {
        let guide = desk.ok(&format!("{asked} {id}")).json();
        let steps = guide["data"]["steps"].as_array().unwrap().clone();
        let find = |part: &str| {
            let mut all = steps.iter();
            let found = all.find(|of| of["command"].as_str().unwrap().starts_with(part));
            found.unwrap()["taken"].clone()
        };
        [find("clover init"), find("clover experiment register")]
    };
    assert_eq!(
        taken(&mut desk, "exp-1"),
        [Value::Bool(true), Value::Bool(true)]
    );
    assert_eq!(
        taken(&mut desk, "never"),
        [Value::Bool(true), Value::Bool(false)]
    );
}

#[test]
fn questions_are_asked_at_a_terminal_and_flags_answer_them_elsewhere() {
    let mut desk = Desk::new();
    desk.on_terminal = true;
    desk.stdin = b"texts,labels\none\nrubric\nalone\n".to_vec();
    let ran = desk.ok("guide");
    assert!(ran.err.contains("What do you have?"), "{}", ran.err);
    assert!(ran.err.contains("One judge or several?"), "{}", ran.err);
    assert!(ran.err.contains("What do you want to know?"), "{}", ran.err);
    assert!(ran.err.contains("Alone or with colleagues?"), "{}", ran.err);
    assert!(
        ran.out.contains("\nclover iterate open it-1 "),
        "{}",
        ran.out
    );
    desk.stdin = b"gold\n".to_vec();
    let ran = desk.run("guide");
    assert_eq!(ran.code, 2);
    says(&ran, &["expected scores, labels, texts, found \"gold\""]);
    desk.on_terminal = false;
    let ran = desk.run("guide --want best");
    assert_eq!(ran.code, 2);
    says(&ran, &["--have is not given"]);
}

#[test]
fn answers_are_remembered_beside_a_ledger_until_another_is_given() {
    let mut desk = Desk::with_ledger();
    let first = desk
        .ok("guide --want gate --have scores --judges several --scores runs.jsonl --holder Bea");
    let again = desk.ok("guide");
    assert_eq!(again.out, first.out);
    says(
        &again,
        &[
            "as answered before: --want=gate --have=scores --judges=several --with=alone --holder=Bea --scores=runs.jsonl",
        ],
    );
    let other = desk.ok("guide --want best --json");
    assert_eq!(other.json()["data"]["want"], "best");
    assert_eq!(other.json()["data"]["judges"], "several");
    assert_eq!(desk.ok("guide --json").json()["data"]["want"], "best");
    let kept = desk.database().with_file_name("guide");
    std::fs::write(&kept, "--want=gold\n").unwrap();
    let ran = desk.run("guide --want best --have scores");
    assert_eq!(ran.code, 0, "{}", ran.err);
    says(&ran, &["answers of before cannot be read and are left out"]);
}

#[test]
fn ids_are_listed_for_the_completion_of_shells() {
    let mut desk = Desk::with_ledger();
    desk.ok("experiment register exp-2 --title Two --purpose testing");
    desk.ok("key new lab --role labeler");
    desk.ok("label design new calib --purpose calibrate --probability 0.5 --experiment exp-1");
    desk.ok("label design new $(id) --purpose audit --probability 0.5 --experiment exp-1");
    desk.file("scores.jsonl", &super::score_line("item-1"));
    desk.ok("append --bulk scores.jsonl --key scorer");
    assert_eq!(desk.ok("ids experiment").out, "exp-1\nexp-2\n");
    // What a shell would run is no completion.
    assert_eq!(desk.ok("ids design").out, "calib\n");
    assert_eq!(desk.ok("ids judge").out, "j\n");
    assert_eq!(desk.ok("ids gate").out, "");
    assert_eq!(desk.run("ids key").code, 2);
}

/// What was registered in one experiment is not registered in another, and texts beside scores are taken in.
#[test]
fn entries_of_another_experiment_are_not_counted() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("experiment register exp-2 --title Two --purpose testing");
    let asked = "guide --want value --have scores,labels,texts --json --experiment";
    let taken = |desk: &mut Desk, id: &str, part: &str| {
        let guide = desk.ok(&format!("{asked} {id}")).json();
        let steps = guide["data"]["steps"].as_array().unwrap().clone();
        let mut all = steps.iter();
        let found = all.find(|of| of["command"].as_str().unwrap().starts_with(part));
        found.unwrap_or_else(|| panic!("{part}: {guide:#}"))["taken"].clone()
    };
    let design = "clover label design new calib";
    assert_eq!(taken(&mut desk, "exp-1", design), true);
    assert_eq!(taken(&mut desk, "exp-2", design), false);
    assert_eq!(
        taken(&mut desk, "exp-2", "clover experiment register"),
        true
    );
    assert_eq!(taken(&mut desk, "exp-2", "clover import rows"), false);
}

/// Of two judges whose labels stand beside their scores, both score before the first label is read.
#[test]
fn two_judges_score_before_the_first_label() {
    let mut desk = Desk::new();
    let row = |score: &str| {
        format!("{{\"prompt_id\":\"p1\",\"judge_score\":{score},\"oracle_label\":0.5}}\n")
    };
    for (name, score) in [
        ("one_responses.jsonl", "0.4"),
        ("two_responses.jsonl", "0.6"),
    ] {
        desk.file(name, &row(score));
    }
    let guide = desk.ok(
        "guide --want best --have scores,labels --judges several --scores one_responses.jsonl --scores two_responses.jsonl --json",
    );
    let all = commands(&guide.json());
    let first_label = all.iter().position(|of| of.contains("--labels")).unwrap();
    let scored =
        |at: &usize| all[*at].starts_with("clover import cje") && !all[*at].contains("--labels");
    let scores: Vec<usize> = (0..all.len()).filter(scored).collect();
    assert!(scores.len() == 2 && scores[1] < first_label, "{all:#?}");
}
