//! Turns that people take with their own files: what is said names the fix, and the fix works when it is pasted.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::guide::words;
use super::own_data::has_run;
use super::says;
use crate::support::verifiers;

/// A desk with an experiment and a design, and no row.
fn bare() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk
}

/// Lines of two policies.
fn lines(head: &str, line: impl Fn(usize, &str) -> String) -> String {
    let mut out = format!("{head}\n");
    for at in 0..40 {
        for policy in ["alpha", "delta"] {
            writeln!(out, "{}", line(at, policy)).unwrap();
        }
    }
    out
}

/// The command that is named.
fn named(ran: &Ran) -> String {
    let next = ran.err.lines().find_map(|line| line.strip_prefix("next: "));
    next.unwrap_or_else(|| panic!("{}", ran.err)).to_owned()
}

/// Runs a command that was named, as it stands.
fn pasted(desk: &mut Desk, command: &str) -> Ran {
    let all = words(command);
    let all: Vec<&str> = all.iter().skip(1).map(String::as_str).collect();
    desk.words(&all)
}

#[test]
fn a_file_that_another_verb_reads_is_named_with_its_columns() {
    let scores = lines("id,model,helpfulness", |at, policy| {
        format!("p{at},{policy},0.{:02}", 10 + at)
    });
    let labels = lines("id,model,human", |at, policy| {
        format!("p{at},{policy},0.{:02}", 12 + at)
    });
    let texts = lines("id,model,prompt,answer", |at, policy| {
        format!("p{at},{policy},why {at},so {policy}")
    });
    let mut desk = bare();
    desk.file("scores.csv", &scores);
    desk.file("labels.csv", &labels);
    desk.file("texts.csv", &texts);
    let (of_scores, of_labels, of_texts) = (
        "clover import csv scores.csv --map prompt_id=id,target_policy=model,judge_score=helpfulness",
        "clover import labels labels.csv --map prompt_id=id,oracle_label=human,target_policy=model",
        "clover import rows texts.csv --map prompt_id=id,target_policy=model,response=answer",
    );
    for (given, wanted) in [
        ("import cje scores.csv", of_scores),
        ("import logged scores.csv", of_scores),
        ("import inspect scores.csv", of_scores),
        ("import rows scores.csv", of_scores),
        ("import cje labels.csv", of_labels),
        ("import csv labels.csv", of_labels),
        ("import rows labels.csv", of_labels),
        ("import cje texts.csv", of_texts),
        ("import csv texts.csv", of_texts),
        ("import labels texts.csv", of_texts),
    ] {
        let ran = desk.run(given);
        assert_eq!(ran.code, 4, "{given}: {}", ran.err);
        assert_eq!(named(&ran), wanted, "{given}: {}", ran.err);
    }
    for command in [of_texts, of_scores, of_labels] {
        let ran = pasted(&mut desk, command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    }
    desk.ok("verify");
}

#[test]
fn semicolons_commas_and_days_as_people_write_them_are_named_with_what_mends_them() {
    let mut desk = bare();
    let semicolons = lines("id;model;score", |at, policy| {
        format!("p{at};{policy};0.{}", 10 + at)
    });
    desk.file("semi.csv", &semicolons);
    let ran = desk.run("import csv semi.csv");
    says(
        &ran,
        &[
            "found values between semicolons",
            "> comma.csv && clover import csv comma.csv --map judge_score=score",
        ],
    );
    let guide = desk
        .ok("guide --want best --have scores,labels --scores semi.csv")
        .out;
    let part = "> scores-comma.csv && clover import csv scores-comma.csv --map judge_score=score";
    assert!(guide.contains(part), "{guide}");
    // Labels have a file of their own, made in the step that splits it by prompt.
    let labels = lines("id;model;human", |at, policy| format!("p{at};{policy};1"));
    desk.file("semi-labels.csv", &labels);
    let guide = desk
        .ok("guide --want best --have scores,labels --scores semi.csv --labels semi-labels.csv")
        .out;
    for part in [
        "semi-labels.csv > labels-comma.csv && awk -F, ",
        "{ k = $1 } ",
        "clover import labels calib.csv --map ",
        "clover import labels probes.csv --map ",
    ] {
        assert!(guide.contains(part), "{part}: {guide}");
    }
    assert!(!guide.contains("&& clover import labels"), "{guide}");
    let guide = desk
        .ok("guide --want gate --have scores --scores semi.csv")
        .out;
    let part = "> scores-comma.csv && clover gate observe m-1 --all --from scores-comma.csv";
    assert!(guide.contains(part), "{guide}");
    let commas = lines("id,model,points", |at, policy| {
        format!("p{at},{policy},\"0,{}\"", 10 + at)
    });
    desk.file("commas.csv", &commas);
    let map = "--map prompt_id=id,target_policy=model,judge_score=points";
    let ran = desk.run(&format!("import csv commas.csv {map}"));
    says(
        &ran,
        &[
            "with a point where it has a comma",
            "commas.csv points > mended.csv",
        ],
    );
    let days = lines("id,model,prompt,answer,Tag", |at, policy| {
        format!("p{at},{policy},why {at},so {policy},01.03.2026")
    });
    desk.file("days.csv", &days);
    let map = "--map prompt_id=id,target_policy=model,response=answer,sampled_at=Tag";
    let ran = desk.run(&format!("import rows days.csv {map}"));
    says(
        &ran,
        &["which is written 2026-03-01", "days.csv Tag > mended.csv"],
    );
    let ran = desk.run("import labels days.csv --map prompt_id=id,target_policy=model,oracle_label=Tag --seal calib --reveal-by 31.01.2027");
    says(&ran, &["2027-01-31"]);
    // Records of scores under their own names.
    let records: String = (0..40)
        .map(|at| {
            format!(
                "{{\"prompt_id\":\"p{at}\",\"target_policy\":\"alpha\",\"points\":0.{}}}\n",
                10 + at
            )
        })
        .collect();
    desk.file("scores.jsonl", &records);
    let ran = desk.run("import cje scores.jsonl");
    says(
        &ran,
        &[
            "jq -c '. + {judge_score: .\"points\"}' scores.jsonl > rows.jsonl && clover import cje rows.jsonl",
        ],
    );
}

/// Given a file whose numbers have commas or are missing, and a blank line; when the printed line is typed; then it writes the
/// file anew, each other cell as it was.
#[test]
fn a_printed_repair_runs_on_a_file_with_a_blank_line() {
    let mut desk = bare();
    let head = "id,model,points\n";
    let (commas, gaps) = (
        format!("{head}p1,alpha,\"0,25\"\np2,alpha,\"0,5\"\n"),
        format!("{head}p1,alpha,0.25\np2,alpha,\np3,alpha,0.5\np4,alpha,0.75\n"),
    );
    let kept = |rows: &str| format!("{head}{rows}").replace('\n', "\r\n");
    let mended = kept("p1,alpha,0.25\np2,alpha,0.5\n");
    let filled = kept("p1,alpha,0.25\np3,alpha,0.5\np4,alpha,0.75\n");
    for (name, text, to, expected) in [
        ("commas.csv", commas, "mended.csv", mended),
        ("gaps.csv", gaps, "filled.csv", filled),
    ] {
        desk.file(name, &text);
        let ran = desk.run(&format!(
            "import csv {name} --map prompt_id=id,target_policy=model,judge_score=points"
        ));
        let at = ran
            .err
            .find("python3 -c")
            .unwrap_or_else(|| panic!("{}", ran.err));
        let (line, _) = ran.err[at..].split_once("; then").unwrap();
        if !verifiers::python() {
            return;
        }
        // A blank line before the rows, and one at the end.
        desk.file(name, &format!("{}\n", text.replacen('\n', "\n\n", 1)));
        assert!(has_run(&desk, line), "{line}");
        let found = std::fs::read_to_string(desk.at.join(to)).unwrap();
        assert_eq!(found, expected, "{line}");
    }
}

/// Given records with a member of a name that JSON escapes in its own way; when the printed filter is typed; then `jq` reads it.
#[test]
fn a_printed_filter_names_any_member() {
    let mut desk = bare();
    let member = "points \\\"\u{1f}of it's";
    let records: String = (0..40)
        .map(|at| {
            let score = f64::from(at) / 100.0;
            let row =
                json!({"prompt_id": format!("p{at}"), "target_policy": "alpha", member: score});
            format!("{row}\n")
        })
        .collect();
    desk.file("scores.jsonl", &records);
    let ran = desk.run("import cje scores.jsonl");
    let at = ran
        .err
        .find("jq -c ")
        .unwrap_or_else(|| panic!("{}", ran.err));
    let (line, _) = ran.err[at..].split_once(" && clover").unwrap();
    if !has_run(&desk, "jq --version") {
        println!("skipped: jq not found");
        return;
    }
    assert!(has_run(&desk, line), "{line}");
    let rows = std::fs::read_to_string(desk.at.join("rows.jsonl")).unwrap();
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap());
    let scores: Vec<_> = rows
        .map(|row| row["judge_score"].as_f64().unwrap())
        .collect();
    let expected: Vec<_> = (0..40).map(|at| f64::from(at) / 100.0).collect();
    assert_eq!(scores, expected);
}

/// A desk where two policies have labels, and a third has scores alone.
fn of_three() -> Desk {
    let mut desk = bare();
    let mut scores = "prompt_id,target_policy,judge_score\n".to_owned();
    for at in 0..80_usize {
        for (policy, more) in [("alpha", 0), ("charlie", 7), ("delta", 4)] {
            writeln!(scores, "p{at},{policy},0.{:02}", 20 + (at * 37 + more) % 60).unwrap();
        }
    }
    desk.file("scores.csv", &scores);
    desk.ok("import csv scores.csv");
    desk.ok("import csv scores.csv --judge other");
    let labels = |policies: &[(&str, usize)]| {
        let mut out = "prompt_id,policy,label\n".to_owned();
        for at in 0..40_usize {
            for (policy, more) in policies {
                let noise = at * 13 % 9;
                writeln!(
                    out,
                    "p{at},{policy},0.{:02}",
                    18 + (at * 37 + more) % 60 + noise
                )
                .unwrap();
            }
        }
        out
    };
    desk.file("two.csv", &labels(&[("alpha", 0), ("delta", 4)]));
    desk.file("third.csv", &labels(&[("charlie", 7)]));
    desk.ok("import labels two.csv --design calib");
    desk
}

/// Labels of a third policy move the calibrator, and with it a difference of two others: a second look all the same.
#[test]
fn an_order_that_is_compared_again_after_labels_of_a_third_policy_is_exploratory() {
    let mut desk = of_three();
    let exploratory = "so an order is exploratory now";
    let first = desk.ok("compare alpha delta --judge judge");
    assert!(
        !first.out.replace('\n', " ").contains(exploratory),
        "{}",
        first.out
    );
    let again = desk.ok("compare alpha delta --judge judge");
    assert!(
        !again.out.replace('\n', " ").contains(exploratory),
        "{}",
        again.out
    );
    // After a comparison alone the report says what was compared.
    desk.ok("report estimate -o compared.md");
    let report = std::fs::read_to_string(desk.at.join("compared.md")).unwrap();
    assert!(!report.contains("no answer"), "{report}");
    desk.ok("import labels third.csv --design calib");
    let ran = desk.run("compare alpha delta --judge judge");
    assert!(
        ran.out.replace('\n', " ").contains(exploratory),
        "{}",
        ran.out
    );
    let data = desk.run("compare alpha delta --judge judge --json").json();
    assert_eq!(
        data["data"]["answer"]["best"],
        serde_json::json!([]),
        "{data:#}"
    );
    desk.run("compare --all --judge judge");
    desk.ok("report estimate -o values.md");
    let report = std::fs::read_to_string(desk.at.join("values.md")).unwrap();
    assert!(report.contains("exploratory"), "{report}");
    desk.ok("verify");
}

#[test]
fn scores_of_rows_whose_labels_can_be_read_are_said_to_come_late() {
    let mut desk = of_three();
    let ran = desk.ok("import csv scores.csv --judge third");
    let said = ran.err.replace('\n', " ");
    assert!(said.contains("count in no value"), "{said}");
    let ran = desk.run("compare alpha delta --judge third");
    let said = ran.err.replace('\n', " ");
    assert!(!said.contains("no policy alpha"), "{said}");
}

#[test]
fn probes_that_served_another_judge_are_said_to_have() {
    let mut desk = of_three();
    desk.ok("label design new probes --purpose audit --probability 0.1");
    desk.file(
        "probes.csv",
        "prompt_id,policy,label\np70,alpha,0.5\np71,alpha,0.4\np72,delta,0.6\n",
    );
    desk.ok("import labels probes.csv --design probes --purpose audit");
    desk.run("audit transport --judge judge --yes");
    let ran = desk.run("audit transport --judge judge --yes");
    says(
        &ran,
        &["this audit is on record at seq", "is not run again"],
    );
    let ran = desk.run("audit transport --judge other --yes");
    says(
        &ran,
        &[
            "of judge judge",
            "labels of a design of its own",
            "clover label design new",
        ],
    );
}

#[test]
fn a_plan_of_labels_says_how_many_more_detect_the_effect() {
    let mut desk = of_three();
    let ran =
        desk.ok("plan labels 0.02 --judge judge --score-price 0.01 --label-price 0.16 --dry-run");
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("80 scores and 40 labels of each policy detect 0."),
        "{said}"
    );
    assert!(
        said.contains("no number of labels detects 0.0200 beside so few scores"),
        "{said}"
    );
    let ran =
        desk.ok("plan labels 0.12 --judge judge --score-price 0.01 --label-price 0.16 --dry-run");
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("more labels of each detect 0.1200")
            || said.contains("no more labels are needed for 0.1200"),
        "{said}"
    );
}

/// A copy that is older than the ledger is a part of it, and no ledger that was rolled back.
#[test]
fn a_backup_that_is_older_than_the_ledger_verifies() {
    let mut desk = bare();
    desk.ok("backup kept");
    desk.ok_words(&["record", "note.recorded", "--data", r#"{"text":"later"}"#]);
    let ran = desk.ok("verify kept/ledger.db");
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["VERIFIED", "the ledger at hand begins with it"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn nobody_holds_all_roles_under_strict_separation() {
    let mut desk = Desk::new();
    let ran = desk.run("init --holder Ada --roles all --separation strict");
    assert_eq!(ran.code, 2);
    let next = named(&ran);
    assert!(!desk.key_file("owner").exists());
    let ran = pasted(&mut desk, &next);
    assert_eq!(ran.code, 0, "{next}: {}", ran.err);
}
