//! What is said to type next is not refused in turn, and nothing that a person or a program reads is cut without a word.

use super::Desk;
use super::says;
use super::score_line;
use super::signed::as_bea;
use super::synced;
use crate::support::verifiers;

/// An experiment with twenty rows of one policy, and a design for each purpose of open labels.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("label design new probes --purpose audit --probability 0.1");
    let rows: String = (0..20)
        .map(|at| {
            format!(
                "{{\"prompt_id\":\"p{at}\",\"judge_score\":0.{}}}\n",
                at + 10
            )
        })
        .collect();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("import cje base_responses.jsonl");
    desk
}

#[test]
fn the_design_says_what_its_labels_are_for() {
    let mut desk = desk();
    desk.file("probes.csv", "prompt_id,oracle_label\np1,0.5\n");
    let line = "import labels probes.csv --design probes";
    let wrong = format!("{line} --purpose calibrate");
    let ran = desk.refused(
        &wrong.split(' ').collect::<Vec<_>>(),
        2,
        &["--purpose calibrate: expected audit, as probes has it"],
    );
    assert!(
        ran.err.contains("next: the same command without --purpose"),
        "{}",
        ran.err
    );
    desk.ok(line);
    let label = desk
        .ok("log --kind label.recorded --json")
        .json()
        .to_string();
    assert!(
        label.contains(r#"\"purpose\":\"audit\""#) || label.contains(r#""purpose":"audit""#),
        "{label}"
    );
}

#[test]
fn a_recorded_label_is_not_corrected_and_the_refusal_says_what_can_be_done() {
    let mut desk = desk();
    desk.file("one.csv", "prompt_id,oracle_label\np1,0.5\n");
    desk.file("other.csv", "prompt_id,oracle_label\np1,0.7\n");
    desk.ok("import labels one.csv --rater ann");
    let words = ["import", "labels", "other.csv", "--rater", "ann"];
    desk.refused(
        &words,
        11,
        &["a recorded label is never corrected", "--rater NAME"],
    );
    desk.ok("import labels other.csv --rater bob");
    let words = [
        "label",
        "design",
        "new",
        "calib",
        "--purpose",
        "calibrate",
        "--probability",
        "0.4",
    ];
    desk.refused(
        &words,
        11,
        &["its name, or its row", "what is recorded is never changed"],
    );
}

#[test]
fn a_draft_without_labels_asks_for_labels() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("rubric new -o new.yaml");
    let text = std::fs::read_to_string(desk.at.join("new.yaml")).unwrap();
    desk.file("rubric.yaml", &text.replace("guide-1", "guide-2"));
    desk.ok("rubric register rubric.yaml");
    let rows: String = (1..=28)
        .map(|day| format!("{{\"prompt_id\":\"p{day}\",\"judge_score\":0.{},\"sampled_at\":\"2026-09-{day:02}T12:00:00Z\"}}\n", 10 + day))
        .collect();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("import cje base_responses.jsonl");
    desk.ok("experiment split own --seed 1 --hashed");
    let ran = desk.run("prereg new --template iteration --from-data");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(&ran, &["next: clover import labels FILE --experiment own"]);
}

#[test]
fn a_pipe_has_the_whole_log_and_a_terminal_says_what_it_leaves_out() {
    let mut desk = Desk::with_ledger();
    let lines: String = (0..80).map(|at| score_line(&format!("i{at}"))).collect();
    desk.file("scores.jsonl", &lines);
    desk.ok("append --bulk scores.jsonl");
    let size = desk.head()["size"].as_u64().unwrap();
    let whole = desk.ok("log");
    assert_eq!(whole.out.lines().count() as u64, size + 1, "{}", whole.out);
    assert_eq!(whole.err, "");
    let listed = desk.ok("log --json").json();
    assert_eq!(
        listed["data"]["entries"].as_array().unwrap().len() as u64,
        size
    );
    desk.columns = Some(100);
    desk.on_terminal = true;
    let shown = desk.ok("log");
    let left_out = format!("the newest 50 of a log of {size} entries; --limit N shows more");
    assert!(shown.err.contains(&left_out), "{}", shown.err);
}

#[test]
fn one_changed_entry_is_a_few_lines_in_both_verifiers() {
    let mut desk = Desk::with_ledger();
    for part in 0..4 {
        let lines: String = (0..60)
            .map(|at| score_line(&format!("i{part}-{at}")))
            .collect();
        desk.file("scores.jsonl", &lines);
        desk.ok("append --bulk scores.jsonl");
    }
    desk.ok("export jsonl -o out");
    let path = desk.at.join("out/ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().enumerate();
    let changed: String = lines
        .map(|(at, line)| if at == 9 { line.replacen("recorded_at\":\"2", "recorded_at\":\"3", 1) } else { line.to_owned() } + "\n")
        .collect();
    assert_ne!(changed, text);
    std::fs::write(&path, changed).unwrap();
    let own = desk.run("verify out");
    assert_eq!(own.code, 3, "{}", own.err);
    let other = std::process::Command::new("python3")
        .arg(verifiers::repository().join("audits/verify"))
        .arg(&path)
        .output()
        .unwrap();
    let other = String::from_utf8(other.stdout).unwrap();
    for page in [&own.out, &other] {
        assert!(
            page.contains("FAILED  1") && page.contains("the same of"),
            "{page}"
        );
        assert!(page.contains("Begin with seq 10"), "{page}");
        assert!(page.lines().count() < 15, "{page}");
    }
}

#[test]
fn a_sync_says_one_line_a_file_and_a_slate_says_that_it_is_one() {
    let mut desk = synced::team();
    let lines: String = (0..30).map(|at| score_line(&format!("i{at}"))).collect();
    let signed = as_bea(&mut desk, |desk| {
        desk.file("scores.jsonl", &lines);
        desk.ok("append --bulk scores.jsonl")
    });
    assert!(signed.err.contains("not recorded yet"), "{}", signed.err);
    let team = desk.path("team").display().to_string();
    let served = desk.ok(&format!("sync {team}"));
    let taken: Vec<_> = served
        .out
        .lines()
        .filter(|line| line.starts_with("seq "))
        .collect();
    assert_eq!(taken.len(), 1, "{}", served.out);
    assert!(taken[0].contains("30 score.recorded"), "{}", taken[0]);
}

#[test]
fn a_copy_that_is_behind_is_told_to_sync() {
    let mut desk = synced::team();
    desk.ok_words(&["record", "note.recorded", "--data", r#"{"text":"more"}"#]);
    let note = desk.ok("checkpoint show").out;
    let newer = desk.path("newer");
    std::fs::write(&newer, note).unwrap();
    as_bea(&mut desk, |desk| {
        let ran = desk.run(&format!("verify --against {}", newer.display()));
        assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
        assert!(
            ran.out.contains("this copy may only be behind"),
            "{}",
            ran.out
        );
        assert!(ran.err.contains("next: clover sync"), "{}", ran.err);
    });
}

#[test]
fn a_guide_reads_a_file_with_typing_errors() {
    let mut desk = Desk::new();
    let mut labels = "prompt_id,rating\n".to_owned();
    for at in 0..60 {
        labels.push_str(&format!("p{at},{}\n", 1 + at % 5));
    }
    let typed = labels.replace("p7,3", "p7,33").replace("p9,5", "p9,four");
    assert_ne!(labels, typed);
    desk.file("labels.csv", &typed);
    let rows: String = (0..120)
        .map(|at| format!("{{\"prompt_id\":\"p{at}\",\"prompt\":\"?\",\"response\":\"!\"}}\n"))
        .collect();
    desk.file("base_responses.jsonl", &rows);
    let ran = desk.ok(
        "guide --want value --have texts,labels --texts base_responses.jsonl --labels labels.csv",
    );
    // 59 of 120 rows: of 100 rows 44.25 to fit and 4.91 to test, of ten labels nine and one.
    for part in [
        "--design calib --scale 1:5",
        "--probability 0.4425",
        "of 100 rows, 44.25 here",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    // Labels on the wrong scale are told first what scale they are on.
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("import rows base_responses.jsonl");
    let ran = desk.run("import labels labels.csv --map oracle_label=rating");
    assert_eq!(ran.code, 4, "{}", ran.err);
    let first = ran.err.lines().next().unwrap();
    assert!(first.contains("labels go from 1 to 33"), "{}", ran.err);
    assert!(
        ran.err.lines().last().unwrap().ends_with("--scale 1:5"),
        "{}",
        ran.err
    );
}

#[test]
fn a_guide_to_a_gate_of_texts_names_the_units_to_score() {
    let mut desk = Desk::new();
    let scores = desk
        .ok("guide --want gate --have scores --scores outcomes.csv")
        .out;
    let texts = desk.ok("guide --want gate --have texts").out;
    assert!(!scores.contains("Let the judge score both"), "{scores}");
    assert!(
        texts.contains("names those that may be scored now"),
        "{texts}"
    );
    assert!(texts.contains("Let the judge score both"), "{texts}");
}
