//! What people get wrong, and what cannot be undone: each has a message that names the fix, and nothing is written or charged.

use serde_json::Value;

use super::Desk;
use super::gate;

/// A command line that is wrong, with what must be said of it.
struct Mistake {
    line: &'static str,
    code: u8,
    /// The first line of the message, without warnings before it.
    first: &'static str,
    /// What the next command is, or ends in.
    next: &'static str,
}

/// Size and root of the log, and every account with what it spent.
fn stands(desk: &mut Desk) -> (Value, Value) {
    let budgets = desk.ok("budget list --json").json();
    (desk.head(), budgets["data"].clone())
}

/// The message of a failure: its first line without what was warned of before, and the last line.
fn said(err: &str) -> (&str, &str) {
    let mut lines = err.lines().filter(|line| !line.starts_with("warning: "));
    let first = lines.next().unwrap_or_default();
    (first, err.lines().last().unwrap_or_default())
}

#[track_caller]
fn all(desk: &mut Desk, mistakes: &[Mistake]) {
    for Mistake {
        line,
        code,
        first,
        next,
    } in mistakes
    {
        let before = stands(desk);
        let ran = desk.run(line);
        let (found, last) = said(&ran.err);
        assert_eq!(found, *first, "{line}\n{}{}", ran.out, ran.err);
        assert_eq!(ran.code, *code, "{line}\n{}{}", ran.out, ran.err);
        let fix = last.strip_prefix("next: ");
        assert!(
            fix.is_some_and(|fix| fix.ends_with(next)),
            "{line}\n{}",
            ran.err
        );
        assert_eq!(stands(desk), before, "{line} wrote something");
    }
}

fn row(prompt: &str, score: &str) -> String {
    format!(
        "{{\"prompt_id\":\"{prompt}\",\"draw_idx\":0,\"judge_score\":{score},\"oracle_label\":0.25,\"prompt\":\"Why {prompt}?\",\"response\":\"So.\"}}\n"
    )
}

fn rows(score: &str) -> String {
    (0..3).map(|at| row(&format!("p{at}"), score)).collect()
}

/// Three rows by two policies, a closed experiment beside, and one key for each role.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar");
    desk.ok("key new scorer --role scorer --machine");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new lab --role labeler,arbiter");
    desk.ok("experiment register old --title Old --purpose testing");
    desk.ok("experiment close old --reason done --yes");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    desk.file("base_responses.jsonl", &rows("0.5"));
    desk.file("clone_responses.jsonl", &rows("0.5"));
    desk.ok("import cje base_responses.jsonl clone_responses.jsonl");
    desk
}

#[test]
fn a_wrong_name_has_its_message() {
    let mut desk = desk();
    let mistakes = [
        Mistake {
            line: "imprt cje base_responses.jsonl",
            code: 2,
            first: "error: unrecognized subcommand 'imprt'",
            next: "clover --help",
        },
        Mistake {
            line: "status --jsn",
            code: 2,
            first: "error: unexpected argument '--jsn' found",
            next: "clover status --help",
        },
        Mistake {
            line: "record score.recorded --experiment exp-1 --data {\"draw\":0,\"item\":\"a\",\"judge\":\"j\",\"policy\":\"base\",\"score_micro\":1} --key cem",
            code: 11,
            first: "refused: role: expected a key with role scorer for score.recorded, found key of cem with roles custodian",
            next: "clover key list",
        },
        Mistake {
            line: "estimate --experiment nope",
            code: 5,
            first: "not_found: --experiment names nope: no such experiment; open: exp-1",
            next: "clover experiment list",
        },
        Mistake {
            line: "import cje base_responses.jsonl --experiment nope",
            code: 11,
            first: "refused: experiment: expected a registered experiment, found nope, not registered",
            next: "clover experiment list",
        },
        Mistake {
            line: "import cje base_responses.jsonl --experiment old",
            code: 11,
            first: "refused: experiment: expected an open experiment, found old, closed at seq 5",
            next: "clover experiment list",
        },
        Mistake {
            line: "judge run --judge llm --rows base_responses.jsonl -- no-such-judge-here",
            code: 5,
            first: "not_found: the judge's program: no no-such-judge-here in any folder of PATH",
            next: "the same command with the program's path",
        },
        Mistake {
            line: "judge run --judge llm --rows base_responses.jsonl -- sh judge.sh",
            code: 5,
            first: "not_found: the judge's program: no file judge.sh",
            next: "the same command with the file's right name",
        },
        Mistake {
            line: "confirm unseal probes --for audit --yes",
            code: 5,
            first: "not_found: no sealed label of design probes in exp-1",
            next: "clover label design list",
        },
    ];
    all(&mut desk, &mistakes);
}

const INSPECT: &str = r#"{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"input":"Why?","scores":{"acc":{"value":1}}}]}"#;

#[test]
fn a_file_that_is_not_what_a_verb_reads_has_its_message() {
    let mut desk = desk();
    desk.file("inspect.json", INSPECT);
    // A mark at the start that nobody sees; scores from 0 to 100, labels from 1 to 5.
    desk.file(
        "marked.csv",
        "\u{feff}prompt_id,judge_score,oracle_label\np7,80,4\np8,20,2\n",
    );
    desk.file(
        "bad.jsonl",
        &(row("p7", "0.5") + &row("p8", "\"high\"") + &row("p9", "0.5")),
    );
    desk.file("good.jsonl", &row("p6", "0.5"));
    desk.file("other.jsonl", &rows("0.9"));
    desk.ok("judge run --judge own --builtin --rows base_responses.jsonl");
    let mistakes = [
        Mistake {
            line: "import cje marked.csv --policy base",
            code: 4,
            first: "input: marked.csv: expected JSON Lines, as `import cje` reads, found comma-separated values",
            next: "clover import csv marked.csv --policy base --scale 0:100 --label-scale 1:5",
        },
        Mistake {
            line: "import csv marked.csv --policy base",
            code: 4,
            first: "input: marked.csv:2: judge_score: expected 0 to 1, found \"80\"; in this file scores go from 20 to 80, labels go from 2 to 4",
            next: "clover import csv marked.csv --policy base --scale 0:100 --label-scale 1:5",
        },
        Mistake {
            line: "import cje inspect.json --policy base",
            code: 4,
            first: "input: inspect.json: expected JSON Lines, as `import cje` reads, found a log of Inspect",
            next: "clover import inspect inspect.json --policy base",
        },
        Mistake {
            line: "import rows inspect.json --policy base",
            code: 4,
            first: "input: inspect.json: expected comma-separated values or JSON Lines, as `import rows` reads, found a log of Inspect",
            next: "clover import inspect inspect.json --texts-only --policy base",
        },
        Mistake {
            line: "import cje bad.jsonl --policy base",
            code: 4,
            first: "input: bad.jsonl:2: judge_score: expected a number, found \"\\\"high\\\"\"",
            next: "clover import cje --help",
        },
        Mistake {
            line: "import cje good.jsonl bad.jsonl --policy base",
            code: 4,
            first: "input: bad.jsonl:2: judge_score: expected a number, found \"\\\"high\\\"\"",
            next: "clover import cje --help",
        },
        Mistake {
            line: "import cje other.jsonl --policy base --judge own",
            code: 11,
            first: "refused: other.jsonl:1: judge_score: own was asked by this ledger and scored p0 by base 0.25, the file says 0.9; 3 of its rows differ, and nothing was recorded",
            next: "the same command with --judge ID, where another judge gave these scores",
        },
        Mistake {
            line: "judge run --judge own --builtin --rows missing.jsonl",
            code: 5,
            first: "not_found: $T/work/missing.jsonl does not exist",
            next: "ls -l $T/work",
        },
    ];
    all(&mut desk, &mistakes);
}

#[test]
fn a_wrong_number_or_day_has_its_message() {
    let mut desk = desk();
    let mistakes = [
        Mistake {
            line: "experiment split exp-1 --seed 1 --t1 15.03.2026 --t2 2026-04-01",
            code: 2,
            first: "usage: \"15.03.2026\" is no time: this day is written 2026-03-15",
            next: "the same command with 2026-03-15",
        },
        Mistake {
            line: "family open quarter --method spend --alpha 5 --members 2 --membership all",
            code: 2,
            first: "usage: --alpha 5: expected a number above 0 and below 1, such as 0.05",
            next: "clover family open --help",
        },
        Mistake {
            line: "label design new probes --purpose audit --probability 5",
            code: 2,
            first: "usage: --probability \"5\": expected a number from 0.000001 to 1 with at most six decimals, such as 0.3",
            next: "clover label design new --help",
        },
        Mistake {
            line: "plan audit 5% ",
            code: 2,
            first: "usage: ASKED \"5%\": expected a number above 0 and up to 1000000, of six decimals at most",
            next: "--help",
        },
    ];
    all(&mut desk, &mistakes);
}

#[test]
fn a_plan_that_is_not_filled_in_is_not_signed() {
    let mut desk = desk();
    desk.ok("prereg new --template gate -o plan.yaml");
    let mistakes = [Mistake {
        line: "prereg sign plan.yaml",
        code: 4,
        first: "input: plan.yaml: 10 fields are to be filled",
        next: "fill them in plan.yaml, then clover prereg check plan.yaml",
    }];
    all(&mut desk, &mistakes);
}

const SEAL: &str = "import labels labels.csv --policy base --seal hold --reveal-by 2027-01-31";

#[test]
fn labels_are_sealed_as_somebody_said() {
    let mut desk = desk();
    let lines: String = (0..40).map(|at| row(&format!("q{at:02}"), "0.5")).collect();
    desk.file("more.jsonl", &lines);
    desk.ok("import cje more.jsonl --policy base");
    let labels: String = (0..40).map(|at| format!("q{at:02},0.25\n")).collect();
    desk.file("labels.csv", &format!("prompt_id,oracle_label\n{labels}"));
    let unregistered = [Mistake {
        line: SEAL,
        code: 11,
        first: "refused: design: no label design hold is registered in exp-1",
        next: "clover label design new DESIGN --purpose PURPOSE --probability P",
    }];
    all(&mut desk, &unregistered);
    desk.ok("label design new hold --purpose confirm --probability 1");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("experiment split exp-1 --seed 1 --hashed");
    let before = stands(&mut desk);
    let ran = desk.run(SEAL);
    let (first, last) = said(&ran.err);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(
        first.starts_with("usage: --seal: ")
            && first.contains(" of 40 labels are outside confirm, first of q"),
        "{first}"
    );
    assert_eq!(
        last,
        "next: the same command with --design DESIGN, which records those in the open"
    );
    assert_eq!(stands(&mut desk), before);
    let bare = row("bare", "0.5").replace("\"oracle_label\":0.25,", "");
    desk.file("bare.jsonl", &bare);
    let ran = desk.run("import cje bare.jsonl --policy base --labels=calib");
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let (first, _) = said(&ran.err);
    assert!(
        first.starts_with("usage: bare.jsonl: --labels is given, and no row has a label"),
        "{first}"
    );
    assert_eq!(stands(&mut desk), before);
    let late = format!("{SEAL} --design calib --yes").replace("2027-01-31", "2020-01-31");
    let ran = desk.run(&late);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let (first, last) = said(&ran.err);
    assert!(
        first.starts_with("usage: --reveal-by 2020-01-31: expected a time to come, it is "),
        "{first}"
    );
    assert_eq!(last, "next: the same command with a later --reveal-by");
    assert_eq!(stands(&mut desk), before);
    desk.ok(&format!("{SEAL} --design calib --yes"));
    desk.ok("confirm seal hold");
    let early = [Mistake {
        line: "confirm unseal hold --for a-look --yes",
        code: 11,
        first: "refused: sealing: expected an open iteration whose confirm.unsealed pays for the reveal, found no open iteration",
        next: "clover iterate list",
    }];
    all(&mut desk, &early);
}

/// What cannot be undone is asked about: without a terminal it is refused, and somebody's no is one.
#[track_caller]
fn asked(desk: &mut Desk, line: &str, question: &str, again: &str) {
    let before = stands(desk);
    let ran = desk.run(line);
    let (first, last) = said(&ran.err);
    assert_eq!(
        first,
        format!("usage: {question}: nobody is there to confirm it"),
        "{line}\n{}",
        ran.err
    );
    assert_eq!(ran.code, 2, "{line}");
    assert_eq!(last, format!("next: {again} --yes"), "{line}");
    assert_eq!(stands(desk), before, "{line} wrote something");
    desk.on_terminal = true;
    for answer in ["n\n", "\n", "never\n", ""] {
        desk.stdin = answer.as_bytes().to_vec();
        let ran = desk.run(line);
        assert_eq!(ran.code, 11, "{line}\n{}{}", ran.out, ran.err);
        let (first, last) = said(&ran.err);
        let expected = format!("{question} [y/N] refused: not confirmed; nothing was changed");
        assert_eq!(first, expected, "{line}");
        assert_eq!(last, format!("next: {again}"), "{line}");
    }
    desk.on_terminal = false;
    assert_eq!(stands(desk), before, "{line} wrote something");
}

const AGAIN: &str = "the same command with";

#[test]
fn sealing_and_closing_are_asked_about() {
    let mut desk = desk();
    desk.ok("label design new probes --purpose audit --probability 1");
    desk.file(
        "labels.csv",
        "prompt_id,oracle_label\np0,0.25\np1,0.5\np2,0.75\n",
    );
    asked(
        &mut desk,
        "import labels labels.csv --policy base --seal probes --reveal-by 2027-01-31",
        "seal 3 labels in probes for good: a charged peek alone opens them; 1 of 2 policies have no probe in it, and no audit by it checks them: clone",
        AGAIN,
    );
    asked(
        &mut desk,
        "seal label --experiment exp-1 --design probes --row clone/p0/0 --value 0.25 --to cem --reveal-by 2027-01-31",
        "seal the label of clone/p0/0 for good: a charged peek alone shows it",
        AGAIN,
    );
    asked(
        &mut desk,
        "experiment close exp-1 --reason done",
        "close exp-1: nothing more is scored, labelled or decided in it, and nothing opens it again",
        AGAIN,
    );
}

#[test]
fn a_peek_that_can_show_nothing_is_not_charged() {
    let mut desk = desk();
    desk.ok("label design new probes --purpose audit --probability 1");
    desk.file(
        "labels.csv",
        "prompt_id,oracle_label\np0,0.25\np1,0.5\np2,0.75\n",
    );
    desk.ok("import labels labels.csv --policy base --seal probes --reveal-by 2027-01-31 --yes");
    desk.ok("confirm seal probes");
    let account = r#"{"account":"confirm-peeks","amount":2,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", account]);
    let before = stands(&mut desk);
    let ran = desk.run("audit transport --yes");
    let (first, last) = said(&ran.err);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    assert!(
        first.starts_with("refused: there is no calibrator to audit: "),
        "{first}"
    );
    assert_eq!(last, "next: clover label design list");
    assert_eq!(stands(&mut desk), before);
    let unpaid = [Mistake {
        line: "confirm unseal probes --for audit --account nope --yes",
        code: 11,
        first: "refused: account: no account nope: a peek is charged before a label is opened",
        next: "clover budget open nope --unit peek --amount 3 --quarterly",
    }];
    all(&mut desk, &unpaid);
    asked(
        &mut desk,
        "confirm unseal probes --for audit",
        "open 3 labels of probes with peek 1 of 2 in 2026Q4; charged to confirm-peeks under the key of cem, for audit",
        "clover confirm unseal probes --for 'audit'",
    );
    // What is pasted is charged to the account that was named.
    desk.ok("budget open pk --unit peek --amount 2");
    asked(
        &mut desk,
        "confirm unseal probes --for audit --account pk",
        "open 3 labels of probes with peek 1 of 2 in all; charged to pk under the key of cem, for audit",
        "clover confirm unseal probes --for 'audit' --account pk",
    );
}

#[test]
fn exposures_families_and_what_a_gate_takes_are_asked_about() {
    let mut desk = gate::opened_as(
        |plan| plan,
        |desk| {
            desk.ok_words(&[
                "family",
                "open",
                "second",
                "--method",
                "spend",
                "--alpha",
                "0.05",
                "--members",
                "2",
                "--membership",
                "two",
            ]);
        },
    );
    let root = desk.ok("gate root units.txt --json").json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    let plan = gate::manifest("m-2", "exp-1", &root, 50_000).replace("quarter", "second");
    desk.file("whole.yaml", &plan);
    asked(
        &mut desk,
        "prereg sign whole.yaml",
        "register m-2 with alpha 0.05: family second has 0.05 left, and nothing is left then for the one member that may still join",
        AGAIN,
    );
    asked(
        &mut desk,
        "exposure open m-1 --through 30",
        "expose 30 of the 40 units of m-1 by exposure 1 of 2: 1 more is left for the other 10 units",
        "clover exposure open m-1 --through 30",
    );
    // As whom it ran stands in what is typed next.
    asked(
        &mut desk,
        "exposure open m-1 --through 30 --key cem",
        "expose 30 of the 40 units of m-1 by exposure 1 of 2: 1 more is left for the other 10 units",
        "clover exposure open m-1 --through 30 --key cem",
    );
    desk.ok("exposure open m-1 --through 30 --yes");
    asked(
        &mut desk,
        "exposure open m-1 --through 35",
        "expose 35 of the 40 units of m-1 by exposure 2 of 2: it is the last one, and the other 5 units stay closed for good",
        "clover exposure open m-1 --through 35",
    );
    // Nothing stays closed: nobody is asked.
    desk.ok("exposure open m-1");
    asked(
        &mut desk,
        "family close second",
        "close family second: 0 claims hold, no member joins it any more, and nothing opens it again",
        "clover family close second",
    );
}

/// Rows that a judge was given by name are split as those that were taken in.
#[test]
fn a_split_sees_the_rows_that_a_judge_was_given() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new arb --role arbiter");
    let lines: String = (0..40).map(|at| row(&format!("q{at:02}"), "0.5")).collect();
    desk.file("base_responses.jsonl", &lines);
    let nothing = [Mistake {
        line: "experiment split exp-1 --seed 1 --hashed",
        code: 5,
        first: "not_found: no ingested rows in exp-1",
        next: "clover judge run --rows PATH",
    }];
    all(&mut desk, &nothing);
    desk.ok("judge run --judge own --builtin --rows base_responses.jsonl");
    let timed = [Mistake {
        line: "experiment split exp-1 --seed 1 --t1 2026-03-15 --t2 2026-04-01",
        code: 11,
        first: "refused: split: cluster q00 has no sampled_at, so confirm cannot be a later block: register hashed separation",
        next: "the same command with --hashed",
    }];
    all(&mut desk, &timed);
    let rehearsed = desk
        .ok("experiment split exp-1 --seed 1 --hashed --dry-run")
        .out;
    let formed = desk.ok("experiment split exp-1 --seed 1 --hashed").out;
    assert!(
        formed.starts_with(rehearsed.trim_end()),
        "{rehearsed}{formed}"
    );
    let listed = desk.ok("log --kind splits.listed --json").json();
    let listed = listed["data"]["entries"].as_array().unwrap().len();
    assert_eq!(listed, 3);
    // The whole log is computed anew from what it holds.
    desk.ok("verify");
    assert_eq!(
        desk.ok("experiment split exp-1 --seed 1 --hashed --json")
            .json()["verdict"],
        "already_recorded"
    );
}

/// A split by hash is of both: rows of files, and rows that a judge was given by name.
#[test]
fn a_split_takes_judged_rows_beside_those_of_files() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new arb --role arbiter");
    let lines = |from: u32| -> String {
        (from..from + 40)
            .map(|at| row(&format!("q{at:02}"), "0.5"))
            .collect()
    };
    desk.file("base_responses.jsonl", &lines(0));
    desk.file("clone_responses.jsonl", &lines(20));
    desk.ok("import rows base_responses.jsonl");
    desk.ok("judge run --judge own --builtin --rows clone_responses.jsonl");
    let clusters = |answer: &Value| -> u64 {
        let parts = ["fit", "dev", "confirm"].iter();
        parts
            .map(|part| answer["data"][part]["count"].as_u64().unwrap())
            .sum()
    };
    let dry = desk
        .ok("experiment split exp-1 --seed 1 --hashed --dry-run --json")
        .json();
    assert_eq!(clusters(&dry), 60, "{dry}");
    let formed = desk.ok("experiment split exp-1 --seed 1 --hashed");
    assert!(formed.err.contains("took in 20 rows"), "{}", formed.err);
    desk.ok("verify");
}
