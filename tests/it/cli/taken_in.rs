//! Labels and rows as people have them: without scores, in either form, under the rules of any label; and files that were
//! given to the wrong verb.

use serde_json::Value;

use super::Desk;
use super::says;

const REVEAL_BY: &str = "2027-01-31T00:00:00.000000Z";

/// A person who holds every role but the custodian's, with two designs and three scored rows of each of two policies.
fn desk() -> Desk {
    let mut desk = bare();
    for policy in ["base", "clone"] {
        let rows: String = (1..=3).map(|i| scored(&format!("p{i}"), i)).collect();
        desk.file(&format!("{policy}_responses.jsonl"), &rows);
    }
    desk.ok("import cje base_responses.jsonl clone_responses.jsonl");
    desk
}

fn bare() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("label design new probes --purpose audit --probability 0.05");
    desk
}

fn scored(item: &str, score: u32) -> String {
    format!(
        r#"{{"prompt_id":"{item}","judge_score":0.{score},"prompt":"Why {item}?","response":"So {item}."}}"#
    ) + "\n"
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let answer = desk
        .ok(&format!("log --kind {kind} --limit 1000 --json"))
        .json();
    answer["data"]["entries"].as_array().unwrap().clone()
}

fn refused(desk: &mut Desk, line: &str, code: u8, parts: &[&str]) {
    let words: Vec<_> = line.split_whitespace().collect();
    desk.refused(&words, code, parts);
}

const LABELS: &str = "item,policy,label,rater,time,scale,remark\n\
    p1,base,4,ada,2026-01-05T10:00:00Z,1:5,clear\n\
    p1,base,5,bea,2026-01-05T11:00:00Z,1:5,\n\
    p2,base,,ada,,1:5,not yet\n\
    p3,clone,1,ada,2026-01-05T10:05:00Z,1:5,\n";

#[test]
fn labels_come_beside_rows_that_the_ledger_holds() {
    let mut desk = desk();
    desk.file("labels.csv", LABELS);
    let before = desk.head();
    let dry = desk.ok("import labels labels.csv --dry-run --json").json();
    assert_eq!(
        (
            &dry["verdict"],
            &dry["data"]["open"]["new"],
            &dry["data"]["unlabelled"]
        ),
        (&"dry_run".into(), &3.into(), &1.into())
    );
    assert_eq!(desk.head(), before);
    let taken = desk.ok("import labels labels.csv --json").json();
    assert_eq!(taken["data"]["open_design"], "calib");
    assert_eq!(taken["data"]["raters"], serde_json::json!(["ada", "bea"]));
    assert_eq!(
        taken["data"]["ends"],
        serde_json::json!([1_000_000, 5_000_000])
    );
    assert_eq!(entries(&mut desk, "label.recorded").len(), 3);
    // No file of labels is kept: what they say stands in their events.
    assert_eq!(entries(&mut desk, "data.ingested").len(), 2);
    let again = desk.ok("import labels labels.csv --json").json();
    assert_eq!(
        (&again["verdict"], &again["data"]["open"]["already"]),
        (&"already_recorded".into(), &3.into())
    );
    // The same as JSON Lines, with one more label.
    desk.file(
        "labels.jsonl",
        "\u{feff}{\"prompt_id\":\"p1\",\"target_policy\":\"base\",\"oracle_label\":4,\"rater\":\"ada\",\"scale\":\"1:5\"}\n\n\
         {\"id\":\"p2\",\"policy\":\"clone\",\"label\":3}\n",
    );
    let more = desk
        .ok("import labels labels.jsonl --scale 1:5 --rater cyd --json")
        .json();
    assert_eq!(
        more["data"]["open"],
        serde_json::json!({"new": 1, "already": 1})
    );
    let warned = more["warnings"].to_string();
    assert!(
        warned.contains("labels.jsonl: a byte order mark"),
        "{warned}"
    );
    desk.head();
}

/// Scores from 0 to 100 and labels from 1 to 5, most of which are the best there is.
fn ratings(desk: &mut Desk) {
    let mut rows = "prompt_id,judge_score\n".to_owned();
    let mut labels = "item,label,time\n".to_owned();
    for i in 0..120 {
        rows += &format!("q{i},{}\n", (i * 37) % 101);
        if i < 40 {
            let label = match (i % 20, i % 3) {
                (0, _) => "1",
                (_, 0) => "4.98",
                _ => "5",
            };
            let time = ["2026-01-31", "2026-01-31T00:00:00Z"][i % 2];
            labels += &format!("q{i},{label},{time}\n");
        }
    }
    desk.file("rows.csv", &rows);
    desk.file("labels.csv", &labels);
    desk.ok("import csv rows.csv --policy base --scale 0:100");
}

#[test]
fn the_scale_of_labels_comes_from_the_record() {
    let mut desk = bare();
    ratings(&mut desk);
    desk.ok("import labels labels.csv --policy base --scale 1:5");
    let kind = "label.scale_declared";
    let declared = entries(&mut desk, kind);
    assert_eq!(declared.len(), 1);
    assert_eq!(
        declared[0]["body"]["data"],
        serde_json::json!({"high_micro": 5_000_000, "low_micro": 1_000_000})
    );
    // Said once, it need not be said again, and nothing else can be said.
    let again = desk
        .ok("import labels labels.csv --policy base --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    let before = desk.head();
    refused(
        &mut desk,
        "import labels labels.csv --policy base --scale 0:10",
        11,
        &["scale: expected 1:5", "found 0:10"],
    );
    assert_eq!(desk.head(), before);
    // Scores have a scale of their own, and no interval reaches beyond that of labels.
    for line in ["estimate --json", "estimate --scale 0:100 --json"] {
        let found = desk.ok(line).json();
        let scale = serde_json::json!({"high_micro": 5_000_000, "low_micro": 1_000_000});
        assert_eq!(found["data"]["terms"]["label_scale"], scale, "{found}");
        let level = &found["data"]["policies"][0]["level"];
        assert!(level["interval"][1].as_f64().unwrap() > 5.0, "{found}");
        assert_eq!(level["interval_clipped"][1], 5.0, "{found}");
    }
    let text = desk.ok("estimate --dry-run").out;
    assert!(text.contains(", 5.00])."), "{text}");
    desk.ok("verify --recompute");
}

#[test]
fn a_file_of_labels_has_one_scale_and_so_has_an_experiment() {
    let mut desk = desk();
    desk.file(
        "labels.csv",
        "item,policy,label,scale\np1,base,4,1:5\np2,base,7,0:10\n",
    );
    refused(
        &mut desk,
        "import labels labels.csv",
        4,
        &["labels.csv:3: scale", "expected 1:5", "found \"0:10\""],
    );
    desk.file("labels.csv", "item,policy,label,scale\np1,base,4,1:5\n");
    refused(
        &mut desk,
        "import labels labels.csv --scale 0:10",
        2,
        &["--scale 0:10", "expected 1:5"],
    );
    // A label that is on record already lies off the scale that a later import says.
    desk.file("labels.csv", "item,policy,label\np1,base,0.5\n");
    desk.ok("import labels labels.csv");
    desk.file("labels.csv", "item,policy,label,scale\np2,base,4,1:5\n");
    refused(
        &mut desk,
        "import labels labels.csv",
        11,
        &["every label from 1 to 5", "found 0.5 recorded at seq"],
    );
    assert!(entries(&mut desk, "label.scale_declared").is_empty());
}

#[test]
fn labels_of_no_row_and_wrong_ones_are_refused_with_their_line() {
    let mut desk = desk();
    let swap = |from: &str, to: &str| LABELS.replace(from, to);
    for (text, code, parts) in [
        (
            swap("p3,clone", "p9,clone"),
            11,
            &[
                "labels.csv:5",
                "a row that this ledger holds",
                "draw 0 of p9 by clone",
            ][..],
        ),
        (
            swap("p3,clone", "p3,other"),
            11,
            &["labels.csv:5", "it holds p3 by base, clone"],
        ),
        (
            swap("5,bea", "5,ada"),
            4,
            &[
                "labels.csv:3: prompt_id",
                "one label of ada",
                "another on line 2",
            ],
        ),
        (
            swap("p3,clone,1,", "p3,clone,6,"),
            4,
            &["labels.csv:5: oracle_label", "expected 1 to 5", "found 6"],
        ),
        (
            swap("05T10:05", "05X10:05"),
            4,
            &["labels.csv:5: time", "RFC 3339"],
        ),
        (
            swap("2026-01-05T10:05", "2099-01-05T10:05"),
            4,
            &["labels.csv:5: time", "a time that is past"],
        ),
        (
            swap("1:5,clear", "5:1,clear"),
            4,
            &["labels.csv:2: scale", "LOW:HIGH"],
        ),
        (
            "item,policy,label\np1,base,\n".to_owned(),
            4,
            &["oracle_label", "at least one label"],
        ),
        (
            // Without a scale of its own: the default is 0 to 1.
            "item,policy,label\np1,base,4\np2,base,2\n".to_owned(),
            4,
            &[
                "labels.csv:2: oracle_label",
                "labels go from 2 to 4",
                "next: clover import labels labels.csv --scale 1:5",
            ],
        ),
        (
            "item,label\np1,1\n".to_owned(),
            4,
            &[
                "labels.csv:1: target_policy: no column for target_policy",
                "--policy ID for a file of one policy",
            ],
        ),
    ] {
        desk.file("labels.csv", &text);
        refused(&mut desk, "import labels labels.csv", code, parts);
    }
    assert_eq!(entries(&mut desk, "label.recorded").len(), 0);
}

#[test]
fn labels_serve_one_purpose_and_sealed_ones_stay_closed() {
    let mut desk = desk();
    desk.file(
        "labels.csv",
        "item,policy,label\np1,base,0.5\np2,base,0.25\n",
    );
    let seal = format!("import labels labels.csv --seal probes --reveal-by {REVEAL_BY} --yes");
    let sealed = desk.ok(&format!("{seal} --json")).json();
    assert_eq!(
        (
            &sealed["data"]["sealed"]["new"],
            &sealed["data"]["open"]["new"]
        ),
        (&2.into(), &0.into())
    );
    assert_eq!(entries(&mut desk, "label.sealed").len(), 2);
    assert_eq!(
        desk.ok(&format!("{seal} --json")).json()["verdict"],
        "already_recorded"
    );
    // A draw that was sealed is never labelled in the open, whoever labels it.
    refused(
        &mut desk,
        "import labels labels.csv --rater zoe",
        11,
        &["labels.csv:2", "a label that is not sealed"],
    );
    // One draw, one sealed label.
    desk.file(
        "twice.csv",
        "item,policy,label,rater\np3,base,0.5,ada\np3,base,0.6,bea\n",
    );
    refused(
        &mut desk,
        &format!("import labels twice.csv --seal probes --reveal-by {REVEAL_BY} --yes"),
        11,
        &[
            "twice.csv:3",
            "one label of a draw that is sealed",
            "another on line 2",
        ],
    );
    // Open for one purpose, never sealed for another; and no design, no label.
    desk.ok("import labels twice.csv");
    desk.file("once.csv", "item,policy,label,rater\np3,base,0.5,cyd\n");
    refused(
        &mut desk,
        &format!("import labels once.csv --seal probes --reveal-by {REVEAL_BY} --yes"),
        11,
        &["once.csv:2", "a label that was never open"],
    );
    refused(
        &mut desk,
        "import labels twice.csv --design nowhere",
        11,
        &["no label design nowhere is registered"],
    );
    desk.head();
}

const ROWS: &str = "id,policy,prompt,answer,domain\n\
    q1,base,\"Why, then?\",Granite.,law\n\
    q2,base,Who?,Chalk.,art\n\
    q1,twin,\"Why, then?\",Granite.,law\n";

const TAKE: &str = "import rows rows.csv --map response=answer --field domain --json";

const FLAT: &str = "while read -r line; do id=${line#*\\\"id\\\":}; echo \"{\\\"id\\\":${id%%,*},\\\"score\\\":0.5}\"; done\n";

#[test]
fn rows_wait_for_a_judge_with_their_texts_private() {
    let mut desk = bare();
    desk.file("rows.csv", ROWS);
    desk.file("flat.sh", FLAT);
    let judge = "judge run --judge llm --model m-1 --json -- sh flat.sh";
    refused(
        &mut desk,
        &judge.replace(" --json", ""),
        5,
        &["no rows", "taken in to be judged"],
    );
    let taken = desk.ok(TAKE).json();
    assert_eq!(
        taken["data"]["rows"],
        serde_json::json!({"new": 3, "already": 0})
    );
    let ingested = &entries(&mut desk, "data.ingested")[0].to_string();
    assert!(!ingested.contains("Granite"), "{ingested}");
    for file in ["ledger.db", "ledger.db-wal"] {
        let bytes = std::fs::read(desk.at.join(".clover").join(file)).unwrap_or_default();
        assert!(
            !bytes.windows(8).any(|window| window == b"Granite."),
            "{file}"
        );
    }
    assert_eq!(entries(&mut desk, "score.recorded").len(), 0);
    assert_eq!(desk.ok(TAKE).json()["verdict"], "already_recorded");
    // The judge reads them from the ledger: each row gets a score, and nothing waits any more.
    let scored = desk.ok(judge).json();
    assert_eq!(scored["data"]["scored"], 3);
    assert_eq!(desk.ok(judge).json()["data"]["already"], 3);
    let one = desk.ok("judge run --judge other --model m-1 --policy twin --json -- sh flat.sh");
    assert_eq!(one.json()["data"]["scored"], 1);
    // Their labels come later, and a field serves as a slice.
    desk.file("labels.csv", "id,policy,label\nq1,twin,1\nq2,base,0\n");
    assert_eq!(
        desk.ok("import labels labels.csv --json").json()["data"]["open"]["new"],
        2
    );
    desk.head();
}

#[test]
fn a_response_is_not_replaced_before_it_is_judged() {
    let mut desk = bare();
    desk.file("rows.csv", ROWS);
    desk.ok(TAKE);
    // Another answer to the same prompt, and one row more: nothing of the file is taken in.
    let better = ROWS.replace("Chalk.", "Better chalk.") + "q9,base,New?,Yes.,law\n";
    desk.file("rows.csv", &better);
    refused(
        &mut desk,
        TAKE.strip_suffix(" --json").unwrap(),
        11,
        &[
            "rows.csv:3",
            "the texts that are on record",
            "needs its own draw_idx",
        ],
    );
    desk.file("rows.csv", &(ROWS.to_owned() + "q9,base,New?,Yes.,law\n"));
    assert_eq!(
        desk.ok(TAKE).json()["data"]["rows"],
        serde_json::json!({"new": 1, "already": 3})
    );
    for (text, parts) in [
        (
            "id,policy,prompt\nq5,base,Why?\n",
            &["rows.csv:2", "no response"][..],
        ),
        (
            "id,policy,answer\nq5,base,So.\n",
            &["rows.csv:2", "no prompt"],
        ),
    ] {
        desk.file("rows.csv", text);
        let map = if text.contains("answer") {
            " --map response=answer"
        } else {
            ""
        };
        refused(&mut desk, &format!("import rows rows.csv{map}"), 11, parts);
    }
    // What else a file brings is left out, and said.
    desk.file(
        "more.jsonl",
        &scored("q7", 5).replace(
            "\"prompt\"",
            "\"oracle_label\":1,\"target_policy\":\"base\",\"prompt\"",
        ),
    );
    let taken = desk.ok("import rows more.jsonl --json").json();
    let warnings = taken["warnings"].to_string();
    assert!(
        warnings.contains("judge_score is left out")
            && warnings.contains("oracle_label is left out"),
        "{warnings}"
    );
}

#[test]
fn files_and_folders_of_rows_are_taken_in_together_or_not_at_all() {
    let mut desk = bare();
    std::fs::create_dir(desk.at.join("rows")).unwrap();
    for policy in ["base", "clone"] {
        desk.file(&format!("rows/{policy}_responses.jsonl"), &scored("p1", 1));
    }
    desk.file("more.csv", "id,policy,prompt,response\nq1,base,Why?\n");
    refused(&mut desk, "import rows rows more.csv", 4, &["more.csv:2"]);
    // The same draw in two files is nobody's to choose from.
    desk.file("again_responses.jsonl", &scored("p1", 1));
    let twice = "import rows rows again_responses.jsonl --policy base";
    refused(&mut desk, twice, 4, &["p1"]);
    desk.file("more.csv", "id,policy,prompt,response\nq1,base,Why?,So.\n");
    let taken = desk.ok("import rows rows more.csv --json").json();
    let data = &taken["data"];
    assert_eq!(data["rows"], serde_json::json!({"new": 3, "already": 0}));
    assert_eq!(data["policies"], serde_json::json!(["base", "clone"]));
    assert_eq!(data["seqs"].as_array().unwrap().len(), 3, "{data:#}");
    assert_eq!(entries(&mut desk, "data.ingested").len(), 3);
    let again = desk.ok("import rows rows more.csv --json").json();
    assert_eq!(again["verdict"], "already_recorded");
    assert_eq!(again["data"]["seqs"], serde_json::json!([]));
}

#[test]
fn a_file_does_not_speak_for_a_judge_of_this_ledger() {
    let mut desk = bare();
    desk.file("flat.sh", FLAT);
    let rows: String = (1..=3).map(|i| scored(&format!("p{i}"), 5)).collect();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("judge run --judge llm --model m-1 --rows base_responses.jsonl -- sh flat.sh");
    let other = rows.replacen("0.5", "0.75", 2).replacen("0.75", "0.5", 1);
    desk.file("base_responses.jsonl", &other);
    for more in ["", " --dry-run"] {
        refused(
            &mut desk,
            &format!("import cje base_responses.jsonl --judge llm{more}"),
            11,
            &[
                "base_responses.jsonl:2: judge_score",
                "0.5, the file says 0.75",
                "--judge ID",
            ],
        );
    }
    assert_eq!(entries(&mut desk, "score.conflict").len(), 0);
    // Scores of a judge that only files speak for: the rehearsal ends as the import would, and records nothing.
    desk.ok("import cje base_responses.jsonl --judge theirs");
    desk.file("base_responses.jsonl", &rows);
    let before = desk.head();
    let dry = desk.run("import cje base_responses.jsonl --judge theirs --dry-run");
    assert_eq!(dry.code, 11, "{}", dry.err);
    assert!(
        dry.err
            .contains("base_responses.jsonl:2: score_once: p2 by base: 0.75 recorded at seq"),
        "{}",
        dry.err
    );
    assert_eq!(desk.head(), before);
}

#[test]
fn a_file_for_another_verb_is_named_with_the_command_that_takes_it() {
    let mut desk = desk();
    let inspect = "{\n  \"version\": 2,\n  \"status\": \"success\",\n  \"eval\": {\"task\": \"t\", \"model\": \"m\"},\n  \"samples\": []\n}\n";
    let promptfoo =
        "{\n  \"evalId\": \"e-1\",\n  \"results\": {\"version\": 3, \"results\": []}\n}\n";
    for (file, text, verb, parts) in [
        (
            "s.csv",
            "id,score,label\np1,0.5,1\n",
            "cje",
            &[
                "s.csv: expected JSON Lines",
                "found comma-separated values",
                "next: clover import csv s.csv --map judge_score=score,prompt_id=id,oracle_label=label --policy base --labels",
            ][..],
        ),
        (
            "l.csv",
            "id,label\np1,1\n",
            "cje",
            &["next: clover import labels l.csv --map prompt_id=id,oracle_label=label"],
        ),
        (
            "s.jsonl",
            "{\"prompt_id\":\"p1\",\"judge_score\":0.5}\n",
            "csv",
            &[
                "found JSON Lines",
                "next: clover import cje s.jsonl --policy base --labels",
            ],
        ),
        (
            "list.json",
            "[{\"prompt_id\":\"p1\",\"judge_score\":0.5}]\n",
            "cje",
            &["found one JSON list", "jq -c '.[]' list.json > rows.jsonl"],
        ),
        (
            "log.json",
            inspect,
            "cje",
            &[
                "found a log of Inspect",
                "next: clover import inspect log.json",
            ],
        ),
        ("log.json", inspect, "csv", &["found a log of Inspect"]),
        (
            "eval.json",
            promptfoo,
            "cje",
            &[
                "found results of promptfoo",
                "next: clover import promptfoo eval.json",
            ],
        ),
        (
            "eval.json",
            promptfoo,
            "csv",
            &["found results of promptfoo"],
        ),
        (
            "log.eval",
            "PK\u{3}\u{4}rest",
            "cje",
            &["next: clover import inspect log.eval"],
        ),
        (
            "t.csv",
            "prompt_id\tjudge_score\np1\t0.5\n",
            "csv",
            &["values between tabs", "comma.csv"],
        ),
        ("empty.csv", "", "csv", &["an empty file"]),
        (
            "blank.csv",
            "prompt_id,judge_score\np1,0.5\n\np2,0.5\n",
            "csv",
            &[
                "blank.csv:3",
                "an empty line",
                "next: sed '/^\\r*$/d' blank.csv > clean.csv",
            ],
        ),
        (
            "hundred.csv",
            "prompt_id,judge_score,oracle_label\np1,85,4\np2,12,1\n",
            "csv",
            &[
                "hundred.csv:2: judge_score",
                "scores go from 12 to 85, labels go from 1 to 4",
                "next: clover import csv hundred.csv --policy base --labels --scale 0:100 --label-scale 1:5",
            ],
        ),
        (
            "twice.csv",
            "prompt_id,judge_score\np1,0.5\np1,0.6\n",
            "csv",
            &[
                "twice.csv:3: draw_idx",
                "another on line 2",
                "need a draw_idx each",
            ],
        ),
    ] {
        desk.file(file, text);
        let line = format!("import {verb} {file} --policy base --labels");
        refused(&mut desk, &line, 4, parts);
    }
    // One value of many beyond the scale is a typing error: another scale would move all the others.
    let lines: String = (0..40).map(|n| format!("q{n},0.{:02}\n", n + 10)).collect();
    let text = format!("id,judge_score\n{lines}q40,7\n");
    desk.file("outlier.csv", &text);
    let parts = [
        "outlier.csv:42: judge_score",
        "1 of 41 values are off the scale",
        "next: mend line 42 of outlier.csv, or where the scale is wrong: clover import csv outlier.csv --map prompt_id=id",
    ];
    let line = "import csv outlier.csv --map prompt_id=id --policy base --labels";
    refused(&mut desk, line, 4, &parts);
    // JSON Lines have other names as well; both at once are refused, and a name that no record has.
    desk.file(
        "other.jsonl",
        "{\"id\":\"r1\",\"prompt\":\"is it?\",\"answer\":\"yes\"}\n",
    );
    desk.ok(
        "import rows other.jsonl --map prompt_id=id --map response=answer --policy base --dry-run",
    );
    let line = "import rows other.jsonl --map prompt_id=name --policy base";
    refused(
        &mut desk,
        line,
        4,
        &["other.jsonl:1", "expected a member name, as --map says"],
    );
    desk.file(
        "both.jsonl",
        "{\"id\":\"r1\",\"prompt_id\":\"r2\",\"response\":\"yes\"}\n",
    );
    let line = "import rows both.jsonl --map prompt_id=id --policy base";
    refused(
        &mut desk,
        line,
        4,
        &["both.jsonl:1: prompt_id: expected one of prompt_id and id, found both"],
    );
    // The command that is named takes the file.
    desk.ok("import csv hundred.csv --policy base --judge human --scale 0:100 --label-scale 1:5");
    let one = desk
        .ok("import csv hundred.csv --policy base --judge human --scale 0:100 --dry-run --json");
    let warned = one.json()["warnings"].to_string();
    assert!(warned.contains("--label-scale LOW:HIGH"), "{warned}");
    desk.file(
        "twice.csv",
        "prompt_id,judge_score,draw_idx\np1,0.5,1\np1,0.6,2\n",
    );
    desk.ok("import csv twice.csv --policy base");
    desk.file(
        "bom.jsonl",
        "\u{feff}{\"prompt_id\":\"b1\",\"judge_score\":0.5}\n",
    );
    desk.ok("import cje bom.jsonl --policy base");
}

#[test]
fn a_field_that_no_row_has_is_refused_with_the_fields_there_are() {
    let mut desk = bare();
    let rows = "prompt_id,judge_score,domain,level\np1,0.5,law,1\n";
    desk.file("s.csv", rows);
    refused(
        &mut desk,
        "import csv s.csv --policy base --field domian",
        4,
        &["s.csv: domian", "there are domain, level"],
    );
    desk.file(
        "s.jsonl",
        "{\"prompt_id\":\"p1\",\"judge_score\":0.5,\"metadata\":{\"domain\":\"law\"}}\n",
    );
    refused(
        &mut desk,
        "import cje s.jsonl --policy base --field domian",
        4,
        &["there are domain, metadata"],
    );
    desk.ok("import csv s.csv --policy base --field domain --field level");
}

#[test]
fn several_files_are_taken_in_whole_or_not_at_all() {
    let mut desk = bare();
    let rows = |from: u32| {
        (from..from + 2)
            .map(|i| scored(&format!("p{i}"), 5))
            .collect::<String>()
    };
    desk.file("a.jsonl", &rows(1));
    let first = desk.ok("import cje a.jsonl --policy base --json").json();
    assert_eq!(first["data"]["recorded"]["scores"]["new"], 2);
    let score = &entries(&mut desk, "score.recorded")[0];
    let shown = desk
        .ok(&format!("show {} --json", score["seq"]))
        .json()
        .to_string();
    let (_, rest) = shown.split_once("\"subject\":\"").unwrap();
    let subject = rest.split('"').next().unwrap().to_owned();
    desk.ok(&format!("erase {subject} --basis request --yes --key cem"));
    // The second file brings erased texts again: the first is not taken in either.
    desk.file("b.jsonl", &rows(3));
    refused(
        &mut desk,
        "import cje b.jsonl a.jsonl --policy other",
        11,
        &["a.jsonl:1", "were erased at seq"],
    );
    let other = desk.ok("import cje b.jsonl --policy other --json").json();
    assert_eq!(other["data"]["recorded"]["scores"]["new"], 2);
    says(
        &desk.run("import cje a.jsonl --policy third"),
        &["were erased"],
    );
}

/// Answers by the name of a row alone: no text reaches it.
const BY_NAME: &str = r#"while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in *'"response":"base/p1/0"'*) score=0.5 ;; *) score=0.25 ;; esac
  echo "{\"id\":$id,\"score\":$score}"
done
"#;

#[test]
fn rows_without_texts_are_judged_by_a_program_that_knows_them() {
    let mut desk = bare();
    desk.file(
        "base_responses.jsonl",
        "{\"prompt_id\":\"p1\",\"words\":3}\n{\"prompt_id\":\"p2\",\"words\":4}\n",
    );
    let before = desk.head();
    refused(
        &mut desk,
        "import rows base_responses.jsonl",
        11,
        &["base_responses.jsonl:1: row", "--without-texts"],
    );
    assert_eq!(desk.head(), before);
    let words = "import rows base_responses.jsonl --without-texts --field words --json";
    let taken = desk.ok(words).json();
    assert!(
        taken["warnings"].to_string().contains("no texts"),
        "{taken}"
    );
    assert_eq!(desk.ok(words).json()["verdict"], "already_recorded");
    refused(
        &mut desk,
        "judge run --judge own --builtin",
        4,
        &["the built-in judge reads texts, and p1 was taken in without"],
    );
    desk.file("judge.sh", BY_NAME);
    desk.ok("judge run --judge llm -- sh judge.sh");
    let scores: Vec<_> = entries(&mut desk, "score.recorded")
        .iter()
        .map(|of| {
            (
                of["body"]["data"]["item"].clone(),
                of["body"]["data"]["score_micro"].clone(),
            )
        })
        .collect();
    assert_eq!(scores.len(), 2);
    assert!(
        scores.contains(&("p1".into(), 500_000.into())),
        "{scores:?}"
    );
    assert!(
        scores.contains(&("p2".into(), 250_000.into())),
        "{scores:?}"
    );
    desk.file("clone_responses.jsonl", &scored("p1", 5));
    refused(
        &mut desk,
        "import rows clone_responses.jsonl --without-texts",
        2,
        &["this row has a text"],
    );
    desk.ok("verify");
}
