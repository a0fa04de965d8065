//! Somebody with data of their own: columns of other names, scales of their own, typing errors, a judge that answers on
//! another scale. What is printed as the next command can be typed, and never records the wrong thing.

use super::Desk;
use super::Ran;
use super::guide::words;
use super::says;

fn bare() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/own --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("label design new probes --purpose audit --probability 0.1");
    desk
}

/// Scores of two policies from 0 to 100, a file of each in a folder.
fn folder(desk: &mut Desk) {
    std::fs::create_dir_all(desk.at.join("fresh")).unwrap();
    for policy in ["alder", "birch"] {
        let lines: String = (0..40)
            .map(|at| {
                format!(
                    "{{\"prompt_id\":\"p{at}\",\"judge_score\":{}}}\n",
                    2 * at + 10
                )
            })
            .collect();
        desk.file(&format!("fresh/{policy}_responses.jsonl"), &lines);
    }
}

/// The last line of a refusal, without `next: `.
fn next(ran: &Ran) -> String {
    let last = ran.err.lines().last().unwrap();
    last.strip_prefix("next: ").unwrap().to_owned()
}

/// Types a command that was printed.
fn typed(desk: &mut Desk, command: &str) -> Ran {
    let all = words(command);
    assert_eq!(all[0], "clover", "{command}");
    let all: Vec<&str> = all.iter().skip(1).map(String::as_str).collect();
    desk.words(&all)
}

/// Whether a line of a shell, typed in a desk's folder, ends with 0.
pub(super) fn has_run(desk: &Desk, line: &str) -> bool {
    let mut shell = std::process::Command::new("sh");
    let ran = shell.args(["-c", line]).current_dir(&desk.at).output();
    ran.unwrap().status.success()
}

const LABELS: &str = "prompt id,model,rating,rater,date\n\
    p1,alder,4,Bea,2026-01-05\np2,alder,2,Bea,2026-01-05\np3,birch,5,Ada,2026-01-06\n";

/// A column that nothing takes is named, and so is the way to take it.
#[test]
fn columns_that_are_left_out_are_named() {
    let mut desk = bare();
    desk.file(
        "rows.csv",
        "prompt_id,judge_score,topic,house\np1,0.5,law,north\np2,0.6,tax,south\n",
    );
    let ran = desk.ok("import csv rows.csv --policy base --field topic --dry-run");
    assert!(
        ran.err
            .contains("column house is not recorded: --map FIELD=house or --field house takes one"),
        "{}",
        ran.err
    );
    let ran = desk.ok("import csv rows.csv --policy base --field topic --field house");
    assert!(!ran.err.contains("is not recorded"), "{}", ran.err);
}

/// Where two judges scored rows, an answer says whose scores it rests on; of one judge it says nothing of that.
#[test]
fn an_answer_names_its_judge_where_several_scored() {
    let mut desk = bare();
    let row = |at: u32, score: u32| {
        let label = if at.is_multiple_of(2) {
            format!(",\"oracle_label\":0.{score}")
        } else {
            String::new()
        };
        format!("{{\"prompt_id\":\"p{at}\",\"judge_score\":0.{score}{label}}}\n")
    };
    let rows: String = (0..60).map(|at| row(at, 10 + at)).collect();
    let scores: String = (0..60).map(|at| row(2 * at + 1, 10 + at)).collect();
    desk.file("base_responses.jsonl", &scores);
    desk.ok("import cje base_responses.jsonl");
    desk.file("base_responses.jsonl", &rows);
    desk.ok("import cje base_responses.jsonl --judge strict --labels --purpose calibrate");
    let alone = desk.ok("estimate --dry-run --judge strict").out;
    assert!(
        alone.contains("judge of these values is strict; judge"),
        "{alone}"
    );
    let mut desk = bare();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("import cje base_responses.jsonl --labels --purpose calibrate");
    let alone = desk.ok("estimate --dry-run").out;
    assert!(!alone.contains("judge of these values"), "{alone}");
}

#[test]
fn ratings_of_people_are_never_proposed_as_scores() {
    let mut desk = bare();
    folder(&mut desk);
    desk.ok("import cje fresh --scale 0:100");
    desk.file("labels.csv", LABELS);
    for (line, more) in [
        ("import cje labels.csv --labels --scale 1:5", " --scale 1:5"),
        (
            "import cje labels.csv --labels=calib --purpose calibrate --rater Cleo --scale 1:5 --dry-run",
            " --rater Cleo --design calib --dry-run --scale 1:5",
        ),
        // Where no scale was said, the values of the file have one.
        ("import cje labels.csv --labels", " --scale 1:5"),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 4, "{line}: {}", ran.err);
        let command = next(&ran);
        assert_eq!(
            command,
            format!(
                "clover import labels labels.csv --map 'prompt_id=prompt id,oracle_label=rating,target_policy=model'{more}"
            ),
            "{line}"
        );
    }
    let command = next(&desk.run("import cje labels.csv --labels"));
    assert_eq!(typed(&mut desk, &command).code, 0, "{command}");
    let tally = desk.ok("log --kind label.recorded --json").json();
    assert_eq!(tally["data"]["entries"].as_array().unwrap().len(), 3);
    // Scores that differ block the experiment for good: the way on is to look at them.
    desk.file(
        "fresh/alder_responses.jsonl",
        "{\"prompt_id\":\"p1\",\"judge_score\":99}\n",
    );
    let before = desk.head();
    let ran = desk.run("import cje fresh/alder_responses.jsonl --scale 0:100");
    assert_eq!(ran.code, 2, "{}", ran.err);
    let command = next(&ran);
    assert!(
        command.starts_with("clover show ")
            && command.ends_with("the same command with --judge ID"),
        "{command}"
    );
    assert_eq!(desk.head(), before);
}

#[test]
fn a_folder_is_named_as_it_was_given_with_the_scale_of_all_its_files() {
    let mut desk = bare();
    folder(&mut desk);
    desk.file(
        "fresh/cedar_responses.jsonl",
        "{\"prompt_id\":\"p1\",\"judge_score\":0.5}\n",
    );
    let ran = desk.run("import cje fresh --dry-run");
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &[
            "alder_responses.jsonl:1: judge_score",
            "in these files scores go from 0.5 to 88",
        ],
    );
    let command = next(&ran);
    assert_eq!(command, "clover import cje fresh --dry-run --scale 0:100");
    assert_eq!(typed(&mut desk, &command).code, 0);
}

#[test]
fn every_wrong_line_of_labels_is_named_at_once() {
    let mut desk = bare();
    folder(&mut desk);
    desk.ok("import cje fresh --scale 0:100");
    desk.file(
        "labels.csv",
        "id,policy,label,rater,day\n\
         p1,alder,\" 4 \",Bea,2026-01-05\n\
         p2,alder,four,Bea,2026-01-05\n\
         p3,alder,3,Bea\n\
         ,alder,3,Bea,2026-01-05\n\
         p5,alder,7,bea,2026-01-05\n",
    );
    let line = "import labels labels.csv --design calib --scale 1:5";
    let ran = desk.run(line);
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &[
            "labels.csv:3: oracle_label: ",
            "labels.csv:4: expected 5 fields as in the header, found 4",
            "labels.csv:5: prompt_id: expected an id, or a prompt, found none; there are day, id, label, policy, rater",
            "labels.csv:6: oracle_label: expected 1 to 5, found \"7\"",
        ],
    );
    // Rows that the ledger does not hold are named together too.
    desk.file(
        "labels.csv",
        "id,policy,label\np1,alder,4\np2,aldr,4\np3,alder,4\np999,birch,4\n",
    );
    let ran = desk.run(line);
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(
        &ran,
        &[
            "labels.csv:3: row: expected a row that this ledger holds, found none of draw 0 of p2 by aldr",
            "labels.csv:5: row: expected a row that this ledger holds, found none of draw 0 of p999 by birch",
            "next: mend line 3 of labels.csv",
        ],
    );
    // More than twenty are counted.
    let many: String = (0..40).map(|at| format!("p{at},alder,m{at}\n")).collect();
    desk.file("labels.csv", &format!("id,policy,label\n{many}"));
    let ran = desk.run(line);
    says(&ran, &["labels.csv:21: oracle_label", "\nand 20 more\n"]);
    assert!(!ran.err.contains("labels.csv:22:"), "{}", ran.err);
    // Lines that are wrong in the same way are one defect.
    let alike: String = (0..40).map(|at| format!("p{at},alder,many\n")).collect();
    desk.file("labels.csv", &format!("id,policy,label\n{alike}"));
    let ran = desk.run(line);
    says(
        &ran,
        &["labels.csv:2: oracle_label", "\nand 39 more lines alike\n"],
    );
    assert!(!ran.err.contains("labels.csv:3:"), "{}", ran.err);
}

#[test]
fn columns_that_no_field_has_are_named_at_once_with_those_that_may_be_meant() {
    let mut desk = bare();
    let file = "Ticket #,Bot variant,Question,Answer text,AutoScore %\n\
                t-1,old,How?,So.,15.0\nt-2,old,Why?,Because.,80.0\n";
    desk.file("cases.csv", file);
    let ran = desk.run("import csv cases.csv");
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &[
            "cases.csv:1: judge_score: no column for judge_score, prompt_id",
            "the file has Ticket #, Bot variant, Question, Answer text, AutoScore %",
            "judge_score=AutoScore %,prompt_id=Ticket #",
        ],
    );
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    desk.file(
        "people.csv",
        "Ticket #,Bot variant,Human rating\nt-1,old,3\n",
    );
    let ran = desk.run("import labels people.csv --design calib --scale 1:5");
    says(
        &ran,
        &["oracle_label=Human rating,prompt_id=Ticket #,target_policy=Bot variant"],
    );
}

#[test]
fn columns_of_labels_have_the_names_that_help_has() {
    let mut desk = bare();
    folder(&mut desk);
    desk.ok("import cje fresh --scale 0:100");
    desk.file(
        "labels.csv",
        "prompt id,model,rating,who,date\np1,alder,\" 4 \",Bea,2026-01-05T00:00:00Z\np2,alder,2,bea,2026-01-05T00:00:00Z\n",
    );
    let ran = desk.words(&[
        "import",
        "labels",
        "labels.csv",
        "--design",
        "calib",
        "--scale",
        "1:5",
        "--map",
        "item=prompt id,policy=model,label=rating,rater=who",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in [
        "raters Bea and bea differ in capital letters alone",
        "date is not read: with --map time=date it is when each label was given",
    ] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
    // Named as the time, a column is read as one.
    desk.file(
        "labels.csv",
        "prompt_id,policy,label,date\np3,alder,3,yesterday\n",
    );
    let ran = desk.run("import labels labels.csv --design calib --scale 1:5 --map time=date");
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &["labels.csv:2: time: expected", "found \"yesterday\""],
    );
}

#[test]
fn exports_of_other_tools_are_known_wherever_they_are_given() {
    let mut desk = bare();
    let inspect = "{\n  \"version\": 2,\n  \"status\": \"success\",\n  \"eval\": {\"task\": \"t\", \"model\": \"m\"},\n  \"samples\": []\n}\n";
    let promptfoo =
        "{\n  \"evalId\": \"e-1\",\n  \"results\": {\"version\": 3, \"results\": []}\n}\n";
    desk.file("log.json", inspect);
    desk.file("eval.json", promptfoo);
    for (line, parts) in [
        (
            "analyze log.json",
            [
                "log.json: expected a score, found none",
                "next: clover import inspect",
            ],
        ),
        (
            "import events eval.json",
            [
                "expected signed events, found results of promptfoo",
                "next: clover import promptfoo eval.json",
            ],
        ),
        // What such a file has are scores: rows of scores hold no label.
        (
            "import labels eval.json",
            [
                "found results of promptfoo: these are scores of a judge",
                "next: clover import promptfoo eval.json",
            ],
        ),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 4, "{line}: {}", ran.err);
        says(&ran, &parts);
    }
}

/// Answers `$1` to everything.
const FLAT: &str = r#"while read -r line; do
  id=${line#*\"id\":}
  echo "{\"id\":${id%%,*},\"score\":$1}"
done
"#;

#[test]
fn a_judge_answers_on_its_own_scale_and_a_failed_first_answer_takes_no_name() {
    let mut desk = bare();
    let lines: String = (0..40)
        .map(|at| {
            format!(
                "{{\"prompt_id\":\"p{at}\",\"prompt\":\"Why {at}?\",\"response\":\"So {at}.\"}}\n"
            )
        })
        .collect();
    desk.file("rows.jsonl", &lines);
    desk.ok("import rows rows.jsonl --policy alder");
    desk.file("flat.sh", FLAT);
    let ran = desk.run("judge run --judge llm -- sh flat.sh 75");
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &[
            "expected a score from 0 to 1",
            "the same command with --scale LOW:HIGH",
        ],
    );
    let kinds = desk.ok("log --kind judge.registered --json").json();
    assert_eq!(kinds["data"]["entries"].as_array().unwrap().len(), 0);
    // The program is mended, under the same name; the scale is part of who the judge is.
    desk.file("flat.sh", &format!("{FLAT}# mended\n"));
    let ran = desk.run("judge run --judge llm --scale 0:50 -- sh flat.sh 75");
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(&ran, &["expected a score from 0 to 50, found"]);
    desk.ok("judge run --judge llm --scale 0:100 -- sh flat.sh 75");
    let score = desk.ok("log --kind score.recorded --limit 1 --json").json();
    assert!(
        score.to_string().contains("\\\"score_micro\\\":750000")
            || score.to_string().contains("\"score_micro\":750000"),
        "{score}"
    );
    let judge = desk
        .ok("log --kind judge.registered --json")
        .json()
        .to_string();
    assert!(
        judge.contains("high_micro") && judge.contains("100000000"),
        "{judge}"
    );
    // What is asked again is read on the registered scale, and another one is another judge.
    let again = desk
        .ok("judge rescore-check --judge llm --json -- sh flat.sh 75")
        .json();
    assert_eq!(again["data"]["mismatches"], 0);
    assert_eq!(
        desk.ok("judge run --judge llm --json -- sh flat.sh 75")
            .json()["verdict"],
        "already_recorded"
    );
    let ran = desk.run("judge run --judge llm --scale 0:10 -- sh flat.sh 75");
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(&ran, &["scale"]);
    desk.ok("verify");
}

#[test]
fn a_guide_reads_the_files_that_it_is_given() {
    let mut desk = Desk::new();
    folder(&mut desk);
    desk.file("labels.csv", LABELS);
    desk.file(
        "scores.csv",
        "id,system,score\np1,alder,0.5\np2,alder,0.75\n",
    );
    let mut commands = |more: &str| -> Vec<String> {
        let guide = desk
            .ok(&format!("guide --with alone --judges one {more} --json"))
            .json();
        let steps = guide["data"]["steps"].as_array().unwrap().iter();
        steps
            .map(|step| step["command"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = commands(
        "--want best --have scores,labels --scores scores.csv --labels labels.csv --probes labels.csv",
    );
    for part in [
        "clover import csv scores.csv --map judge_score=score,prompt_id=id,target_policy=system",
        "clover import labels labels.csv --map 'prompt_id=prompt id,oracle_label=rating,target_policy=model' --design calib --scale 1:5",
        "clover import labels labels.csv --map 'prompt_id=prompt id,oracle_label=rating,target_policy=model' --design probes --purpose audit --scale 1:5",
    ] {
        assert!(
            all.iter().any(|command| command == part),
            "{part}\n{all:#?}"
        );
    }
    // With one file of labels, those for the test are held out of it.
    let all = commands("--want best --have scores,labels --scores fresh --labels labels.csv");
    assert!(
        all.contains(&"clover import cje fresh --scale 0:100".to_owned()),
        "{all:#?}"
    );
    let held = all
        .iter()
        .position(|command| command.starts_with("awk "))
        .unwrap();
    assert!(all[held].ends_with(" labels.csv"), "{all:#?}");
    assert!(
        all[held + 1].contains("import labels calib.csv --map "),
        "{all:#?}"
    );
    assert!(
        all[held + 2].contains("import labels probes.csv --map "),
        "{all:#?}"
    );
    // 3 of 80 rows have a label, nine tenths of them to fit.
    assert!(
        all.iter()
            .any(|command| command.ends_with("calib --purpose calibrate --probability 0.0337")),
        "{all:#?}"
    );
    let lines: String = (1..=28)
        .map(|day| format!("{{\"prompt_id\":\"p{day}\",\"target_policy\":\"a\",\"prompt\":\"?\",\"response\":\"!\",\"sampled_at\":\"2026-09-{day:02}T12:00:00Z\"}}\n"))
        .collect();
    desk.file("texts.jsonl", &lines);
    let guide = "guide --want rubric --have texts,labels --texts texts.jsonl --labels labels.csv";
    let ran = desk.ok(guide);
    // A quarter of 28 days, and the gap of three days before it, by hand: from the 22nd on, so t1 is the 19th.
    for part in [
        "--t1 2026-09-19 --t2 2026-09-29",
        "clover rubric new -o rubric.yaml",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    // A column of days under another name is offered as that field.
    desk.file("texts.jsonl", &lines.replace("sampled_at", "asked_at"));
    let asked = desk.ok(guide).out;
    for part in ["--t1 2026-09-19 --t2 2026-09-29", "sampled_at=asked_at"] {
        assert!(asked.contains(part), "{part}\n{asked}");
    }
    desk.file("texts.jsonl", &lines.replace("sampled_at", "said"));
    let hashed = desk.ok(guide).out;
    let part = "clover experiment split exp-1 --seed 1 --hashed";
    assert!(hashed.contains(part), "{hashed}");
}

/// Given labels of prompts whose ids are numbers; when the printed line splits them; then either file has some, and the draws of
/// a prompt are in one of them.
#[test]
fn labels_are_held_out_by_prompts_whose_ids_are_numbers() {
    let mut desk = Desk::new();
    folder(&mut desk);
    let line = |at: u32, draw: u32| {
        format!(
            "{{\"prompt_id\": {at}, \"target_policy\": \"alder\", \"draw\": {draw}, \"oracle_label\": 0.5}}\n"
        )
    };
    // The draws of a prompt stand apart, as two raters leave them.
    let all = (0..3).flat_map(|draw| (100..200).map(move |at| line(at, draw)));
    desk.file("labels.jsonl", &all.collect::<String>());
    let guide = desk
        .ok("guide --want best --have scores,labels --scores fresh --labels labels.jsonl --with alone --judges one --json")
        .json();
    let mut steps = guide["data"]["steps"].as_array().unwrap().iter();
    let held = steps.find_map(|step| step["command"].as_str().filter(|of| of.starts_with("awk ")));
    let held = held.unwrap();
    if !has_run(&desk, "awk 'BEGIN { }'") {
        println!("skipped: awk not found");
        return;
    }
    assert!(has_run(&desk, held), "{held}");
    let prompts = |name: &str| -> Vec<u64> {
        let text = std::fs::read_to_string(desk.at.join(name)).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: serde_json::Value| line["prompt_id"].as_u64().unwrap())
            .collect()
    };
    let (fit, test) = (prompts("calib.jsonl"), prompts("probes.jsonl"));
    assert!(!fit.is_empty() && !test.is_empty(), "{held}");
    assert_eq!(fit.len() + test.len(), 300);
    assert!(fit.iter().all(|at| !test.contains(at)), "{test:?}");
}

#[test]
fn a_rubric_to_begin_with_is_one() {
    let mut desk = bare();
    desk.ok("rubric new -o rubric.yaml");
    desk.ok("rubric show rubric.yaml");
    // The line that is marked to be filled is filled first.
    let register = ["rubric", "register", "rubric.yaml", "--experiment", "own"];
    desk.refused(&register, 4, &["rubric.yaml:6", "not filled"]);
    let filled = std::fs::read_to_string(desk.at.join("rubric.yaml")).unwrap();
    desk.file("filled.yaml", &filled.replace("guide-1", "guide-7"));
    desk.ok("rubric register filled.yaml --experiment own");
    desk.refused(
        &["rubric", "new", "-o", "rubric.yaml"],
        11,
        &["rubric.yaml"],
    );
    // What stands behind # can be taken in.
    let text = std::fs::read_to_string(desk.at.join("rubric.yaml")).unwrap();
    let all = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.replacen("# ", "", usize::from(line.trim_start().starts_with("# "))));
    let all: Vec<_> = all.collect();
    desk.file("whole.yaml", &(all.join("\n") + "\n"));
    desk.ok("rubric show whole.yaml");
}

#[test]
fn a_split_of_no_rows_says_when_the_rows_are() {
    let mut desk = bare();
    let lines: String = (1..=28)
        .map(|day| format!("{{\"prompt_id\":\"p{day}\",\"target_policy\":\"a\",\"prompt\":\"?\",\"response\":\"!{day}\",\"sampled_at\":\"2026-09-{day:02}T12:00:00Z\"}}\n"))
        .collect();
    desk.file("texts.jsonl", &lines);
    desk.ok("import rows texts.jsonl");
    let ran = desk.run("experiment split own --seed 1 --t1 2026-03-15 --t2 2026-04-01");
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(
        &ran,
        &[
            "first sampled from 2026-09-01T12:00:00.000000Z to 2026-09-28T12:00:00.000000Z",
            "next: the same command with --t1 2026-09-19 --t2 2026-09-29",
        ],
    );
    desk.ok("experiment split own --seed 1 --t1 2026-09-19 --t2 2026-09-29");
}

/// Given rows that nobody scored; when their labels are taken in; then it is said before that scores which follow count in no
/// value, and of a policy that is scored nothing is said.
#[test]
fn labels_before_scores_are_warned_of() {
    let mut desk = bare();
    desk.file(
        "rows.jsonl",
        "{\"prompt_id\":\"p1\",\"prompt\":\"Why?\",\"response\":\"So.\"}\n",
    );
    desk.ok("import rows rows.jsonl --policy alder");
    folder(&mut desk);
    desk.ok("import cje fresh/birch_responses.jsonl --scale 0:100");
    desk.file(
        "labels.csv",
        "item,policy,label,time\np1,alder,0.5,2026-01-05\np1,birch,0.5,2026-01-05\n",
    );
    let ran = desk.ok("import labels labels.csv --design calib --dry-run");
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("no row of alder has a score yet") && !said.contains("birch has"),
        "{said}"
    );
    assert!(
        said.contains("is held against today, and not recorded"),
        "{said}"
    );
}

/// The judge that is meant where nobody names one is the only one that scored; where several did, one is to be named.
#[test]
fn the_only_judge_that_scored_need_not_be_named() {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    let rows = (0..60).map(|n| format!("p{n},base,0.{n:02},{}\n", n % 2));
    let rows: String = rows.collect();
    let text = format!("prompt_id,target_policy,judge_score,oracle_label\n{rows}");
    desk.file("rows.csv", &text);
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("import csv rows.csv --judge llm --labels");
    let answer = desk.ok("estimate --dry-run --json").json();
    assert_eq!(answer["data"]["terms"]["judge"], "llm", "{answer:#}");
    desk.file(
        "more.csv",
        "prompt_id,target_policy,judge_score\np1,tuned,0.5\np2,tuned,0.25\n",
    );
    desk.ok("import csv more.csv --judge other");
    let ran = desk.run("estimate --dry-run");
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &["scores of several judges: llm, other", "--judge ID"],
    );
    desk.ok("estimate --judge llm --dry-run");
}
