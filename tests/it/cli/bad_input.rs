//! Every kind of bad input has its message and its exit code, and leaves the ledger as it was.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clover::store::OpenOptions;
use clover::store::Store;

use crate::cli::Desk;
use crate::cli::copy_tree;
use crate::cli::says;
use crate::cli::score_line;
use crate::support;

/// Records a note's data as text, expecting a refusal of the input.
fn note(data: &str, parts: &[&str]) {
    let mut desk = Desk::with_ledger();
    desk.refused(&["record", "note.recorded", "--data", data], 4, parts);
}

/// Appends good lines and then one bad line, expecting a refusal that names the line.
fn bulk(bad: &str, parts: &[&str]) {
    let mut desk = Desk::with_ledger();
    let text = score_line("a") + &score_line("b") + bad + "\n" + &score_line("c");
    let file = desk.file("scores.jsonl", &text);
    let parts = [&["input: scores.jsonl:3"], parts].concat();
    desk.refused(&["append", "--bulk", &file], 4, &parts);
}

#[test]
fn truncated_json() {
    note(
        r#"{"text":"a"#,
        &["--data:1:", "text: expected the closing quote of a text"],
    );
    bulk(
        r#"{"kind":"score.recorded","data":{"draw":0,"#,
        &["found the end of the text"],
    );
}

#[test]
fn duplicate_keys() {
    note(
        r#"{"text":"a","text":"b"}"#,
        &["expected the field text once"],
    );
    bulk(
        r#"{"kind":"score.recorded","kind":"score.recorded","data":{}}"#,
        &["expected the field kind once"],
    );
}

/// The schema admits text without a character. An id may hold a space: it is 1 to 200 bytes without control characters.
#[test]
fn an_experiment_without_a_name() {
    let mut desk = Desk::with_ledger();
    let register = ["experiment", "register", "bad id"];
    for (title, purpose, parts) in [
        ("", "testing", ["--title is empty", "its name for people"]),
        (
            " \t",
            "testing",
            ["--title is empty", "its name for people"],
        ),
        ("One", "", ["--purpose is empty", "what it is to find out"]),
    ] {
        let said = ["--title", title, "--purpose", purpose];
        desk.refused(&[&register[..], &said[..]].concat(), 2, &parts);
    }
    let register = ["experiment", "register", ""];
    let said = ["--title", "One", "--purpose", "testing"];
    let parts = ["experiment \"\"", "expected 1 to 200 bytes"];
    desk.refused(&[&register[..], &said[..]].concat(), 2, &parts);
}

#[test]
fn two_to_the_53() {
    let data = r#"{"account":"a","amount":9007199254740992,"for":"b"}"#;
    let mut desk = Desk::with_ledger();
    let parts = ["amount: ", "from 0 to 9007199254740991", "9007199254740992"];
    desk.refused(&["record", "budget.charged", "--data", data], 4, &parts);
    let line = score_line("x").replace("\"draw\":0", "\"draw\":9007199254740992");
    bulk(line.trim_end(), &["data.draw: ", "9007199254740992"]);
}

#[test]
fn not_a_number() {
    let line = score_line("x").replace("\"score_micro\":5", "\"score_micro\":NaN");
    bulk(
        line.trim_end(),
        &["data.score_micro: expected a JSON value"],
    );
    let line = score_line("x").replace("\"score_micro\":5", "\"score_micro\":1e999");
    bulk(
        line.trim_end(),
        &["data.score_micro: expected a smaller number"],
    );
}

#[test]
fn wrong_base64() {
    let mut desk = Desk::with_ledger();
    let data = r#"{"root":"not base64!","size":1,"statement":"s","verdict":"pass"}"#;
    let parts = ["root: expected 32 bytes in padded base64"];
    desk.refused(&["record", "audit.attested", "--data", data], 4, &parts);
    let file = desk.file("event.json", "{\"payload\":\"????\"}\n");
    let parts =
        ["event.json:1: not a signed event as clover sign writes it: other bytes at payload"];
    desk.refused(&["import", "events", &file], 4, &parts);
}

#[test]
fn unknown_kind() {
    let mut desk = Desk::with_ledger();
    let parts =
        ["kind: expected a kind of the registry such as note.recorded, found \"note.taken\""];
    desk.refused(&["record", "note.taken", "--data", "{}"], 4, &parts);
    bulk(
        r#"{"kind":"frobbed","data":{}}"#,
        &["kind: expected a kind of the registry"],
    );
}

#[test]
fn unknown_field() {
    note(
        r#"{"text":"a","colour":"red"}"#,
        &["colour: expected one of blob, text, found colour"],
    );
    bulk(
        r#"{"kind":"note.recorded","data":{"text":"a"},"who":"me"}"#,
        &["expected one of kind, data, experiment, refs, at, found who"],
    );
}

#[test]
fn a_body_of_40_kib() {
    let mut desk = Desk::with_ledger();
    let judges: Vec<_> = (0..260).map(|n| format!("\"{n:0150}\"")).collect();
    let data = format!(
        "{{\"judges\":[{}],\"purpose\":\"p\",\"title\":\"t\"}}",
        judges.join(",")
    );
    assert!(data.len() > 39_000);
    let file = desk.file("big.json", &data);
    let words = [
        "record",
        "experiment.registered",
        "--experiment",
        "big",
        "--data",
        &format!("@{file}"),
    ];
    desk.refused(&words, 4, &["at most 32768; put large content in a blob"]);
    let line =
        format!("{{\"kind\":\"experiment.registered\",\"experiment\":\"big\",\"data\":{data}}}\n");
    let good = "{\"kind\":\"note.recorded\",\"data\":{\"text\":\"a\"}}\n";
    let file = desk.file("big.jsonl", &(good.to_owned() + &line));
    let words = ["append", "--bulk", &file, "--key", "owner"];
    desk.refused(&words, 4, &["big.jsonl:2: the body has", "at most 32768"]);
    let long = format!("{{\"kind\":\"{}\"}}\n", "x".repeat(300_000));
    let file = desk.file("long.jsonl", &long);
    desk.refused(
        &["append", "--bulk", &file],
        4,
        &["long.jsonl:1: a line of more than 262144 bytes"],
    );
}

#[test]
fn a_clock_that_goes_backwards() {
    let mut desk = Desk::with_ledger();
    let good = support::start();
    desk.clock.set(good.plus_seconds(-400));
    let ran = desk.run("record note.recorded --data {\"text\":\"a\"} --key owner");
    assert_eq!(ran.code, 75, "{}", ran.err);
    says(
        &ran,
        &[
            "clock_behind: the clock says",
            "300 s before the newest entry",
        ],
    );
    desk.clock.set(good.plus_seconds(10));
    assert_eq!(desk.head()["size"], 4);
}

#[test]
fn a_missing_key() {
    let mut desk = Desk::with_ledger();
    let words = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "nobody",
    ];
    desk.refused(
        &words,
        5,
        &["not_found: the key $T/config/clover/keys/nobody.pem is missing"],
    );
    std::fs::rename(desk.path("config"), desk.path("moved")).unwrap();
    desk.refused(
        &words[..4],
        5,
        &["no key of this ledger in $T/config/clover/keys"],
    );
    std::fs::rename(desk.path("moved"), desk.path("config")).unwrap();
    std::fs::rename(desk.at.join(".clover/log.key"), desk.path("log.key")).unwrap();
    desk.refused(
        &words[..4],
        5,
        &["log.key is missing: this ledger can be read, not written"],
    );
}

#[test]
fn a_key_that_others_may_read() {
    let mut desk = Desk::with_ledger();
    let words = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "owner",
    ];
    let path = desk.key_file("owner");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let parts = [
        "refused: ",
        "owner.pem is readable by others (mode 644)",
        "next: chmod 600 ",
    ];
    desk.refused(&words, 11, &parts);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let log_key = desk.at.join(".clover/log.key");
    std::fs::set_permissions(&log_key, std::fs::Permissions::from_mode(0o640)).unwrap();
    desk.refused(&words, 11, &["log.key is readable by others (mode 640)"]);
}

#[test]
fn a_wrong_key() {
    let mut desk = Desk::with_ledger();
    let data = "{\"text\":\"a\"}";
    desk.config = "other";
    desk.at = desk.path("elsewhere");
    std::fs::create_dir_all(&desk.at).unwrap();
    desk.ok("init --origin ledger.example/other --owner-key stranger");
    let stranger = desk.key_file("stranger").display().to_string();
    desk.config = "config";
    desk.at = desk.path("work");
    let words = [
        "record",
        "note.recorded",
        "--data",
        data,
        "--key",
        &stranger,
    ];
    desk.refused(&words, 11, &["wrong key: ", "is no key of this ledger"]);
    desk.ok("key retire scorer --reason done --yes");
    let words = ["record", "note.recorded", "--data", data, "--key", "scorer"];
    desk.refused(&words, 11, &["wrong key: ", "was retired at seq 4"]);
    let words = ["append", "--bulk", &desk.file("a.jsonl", &score_line("a"))];
    desk.refused(
        &words,
        11,
        &["score.recorded needs role scorer; your keys: "],
    );
    let broken = desk.file("broken.pem", "no key\n");
    std::fs::set_permissions(
        desk.at.join(&broken),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let words = [
        "record",
        "note.recorded",
        "--data",
        data,
        "--key",
        "broken.pem",
    ];
    desk.refused(&words, 4, &["not a PEM file"]);
}

#[test]
fn a_locked_ledger() {
    let mut desk = Desk::with_ledger();
    let options = OpenOptions {
        busy_timeout: Duration::ZERO,
        ..OpenOptions::default()
    };
    let other = Store::open(&desk.database(), options).unwrap();
    let held = other.begin().unwrap();
    let line = "record note.recorded --data {\"text\":\"a\"} --key owner --busy-timeout 0";
    let ran = desk.run(line);
    assert_eq!(ran.code, 75, "{}", ran.err);
    says(&ran, &["locked: the ledger is locked by another process"]);
    drop(held);
    assert_eq!(desk.head()["size"], 4);
    desk.ok(line);
}

#[test]
fn a_file_that_is_no_ledger() {
    let mut desk = Desk::new();
    let text = desk.file("text.db", &"no ledger at all\n".repeat(100));
    let ran = desk.run(&format!("status --ledger {text}"));
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(
        &ran,
        &["not_a_ledger: $T/work/text.db is not a ledger: not a SQLite database"],
    );
    let ran = desk.run(&format!("verify {text}"));
    assert_eq!(ran.code, 4, "{}", ran.err);
    says(&ran, &["is not a ledger: no entry line in it"]);
    let ran = desk.run(&format!(
        "record note.recorded --data {{\"text\":\"a\"}} --ledger {text}"
    ));
    assert_eq!(ran.code, 4, "{}", ran.err);
    std::fs::create_dir_all(desk.at.join(".clover")).unwrap();
    std::fs::write(desk.database(), "").unwrap();
    let ran = desk.run("verify");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    says(&ran, &["is not a ledger"]);
}

#[test]
fn no_ledger_at_all() {
    let mut desk = Desk::new();
    let ran = desk.run("status");
    assert_eq!(ran.code, 5);
    assert_eq!(
        ran.err,
        "not_found: no ledger in $T/work or above it\nnext: clover init\n"
    );
    let ran = desk.run("status --ledger nowhere --json");
    assert_eq!(ran.code, 5);
    let json = ran.json();
    assert_eq!(
        (json["ok"].as_bool(), json["exit"].as_u64()),
        (Some(false), Some(5))
    );
    assert_eq!(json["verdict"], "not_found");
    assert_eq!(desk.run("statsu").code, 2);
}

/// Runs the program as a person who owns the ledger and is not root.
fn as_nobody(desk: &Desk, at: &Path, words: &[&str]) -> std::io::Result<std::process::Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clover"));
    command.args(words).current_dir(at).env_clear();
    command.env("XDG_CONFIG_HOME", desk.path("config"));
    command.env("XDG_STATE_HOME", desk.path("state"));
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.output()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout == b"0\n")
}

fn own_by_nobody(path: &Path) {
    if !is_root() {
        return;
    }
    std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            own_by_nobody(&entry.unwrap().path());
        }
    }
}

#[test]
fn a_file_that_is_read_only() {
    let mut desk = Desk::with_ledger();
    let before = desk.head();
    own_by_nobody(desk.folder.path());
    let record = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"a\"}",
        "--key",
        "owner",
    ];
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&desk.database(), 0o400);
    let output = match as_nobody(&desk, &desk.at, &record) {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: the program cannot be run as another person: {error}");
            return;
        }
    };
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.starts_with("read_only: ") && err.contains("\nnext: "),
        "{err}"
    );
    let output = as_nobody(&desk, &desk.at, &["verify"]).unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    mode(&desk.database(), 0o600);
    for ending in ["-wal", "-shm"] {
        let path = format!("{}{ending}", desk.database().display());
        std::fs::remove_file(path).ok();
    }
    mode(&desk.at.join(".clover"), 0o500);
    let output = as_nobody(&desk, &desk.at, &record).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    mode(&desk.at.join(".clover"), 0o700);
    assert_eq!(desk.head(), before);
}

/// A small file system of its own, gone when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(at).unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1536k", "tmpfs"])
            .arg(at)
            .output()
            .map_err(|error| error.to_string())?;
        if done.status.success() {
            Ok(Self(at.to_owned()))
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}

#[test]
fn a_full_disk() {
    let mut desk = Desk::with_ledger();
    let small = match SmallDisk::mount(&desk.path("disk")) {
        Ok(small) => small,
        Err(reason) => {
            println!("skipped: no small file system can be mounted: {reason}");
            return;
        }
    };
    copy_tree(&desk.at, &small.0);
    desk.at = small.0.clone();
    let before = desk.head();
    let filler = desk.at.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    let data = format!("{{\"text\":\"{}\"}}", "x".repeat(3_000));
    let words = ["record", "note.recorded", "--data", &data, "--key", "owner"];
    let ran = desk.words(&words);
    assert_eq!(ran.code, 75, "{}", ran.err);
    says(&ran, &["disk_full: the disk is full"]);
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(desk.head(), before);
    desk.ok_words(&words);
    desk.at = desk.path("work");
}

/// Words of the reader of JSON that no person knows.
const READER: [&str; 16] = [
    "missing field",
    "unknown field",
    "duplicate field",
    "invalid type",
    "invalid value:",
    "invalid length",
    "unknown variant",
    "untagged",
    " struct ",
    " at line ",
    "EOF",
    "trailing characters",
    "trailing comma",
    "expected value",
    "key must be a string",
    "invalid digit",
];

/// Each verb that takes a file or data is given texts that are not what it takes.
#[test]
fn nobody_is_told_in_the_words_of_the_reader() {
    let mut desk = Desk::with_ledger();
    let texts = [
        "{}",
        "[1,2",
        "[]",
        "{\"x\":1}",
        "\"text\"",
        "{\"id\":5,\"prompt_id\":5,\"judge_score\":\"a\",\"kind\":7,\"data\":3}",
        "{\"prompt_id\":\"a\",\"judge_score\":[],\"response\":3}",
        "{\"kind\":\"note.recorded\",\"data\":{\"text\":5}}",
        "x: 1",
        "a: [1",
        "rubric: 5",
        "a,b\n1,2\n",
        "{\"a\":1,}",
        "{1:2}",
        "",
    ];
    let verbs = [
        "record note.recorded --data @F",
        "record score.recorded --experiment exp-1 --data @F",
        "record manifest.registered --experiment exp-1 --data @F",
        "record judge.registered --experiment exp-1 --data @F",
        "record budget.opened --data @F",
        "sign note.recorded --data @F -o signed.jsonl",
        "append --bulk F",
        "submit F",
        "import cje F",
        "import csv F",
        "import rows F",
        "import labels F",
        "import logged F",
        "import events F",
        "import ledger F --into copy",
        "analyze F",
        "judge run --judge j --rows F --builtin",
        "judge run --judge j --rows F --known F --builtin",
        "simulate dataset --truth ./F --seed 1 -o sim",
        "simulate truth --truth ./F --seed 1",
        "simulate iteration --truth ./F --seed 1 --sizes 10,10,10 --runs 1",
        "prereg check F",
        "prereg sign F",
        "prereg amend F",
        "rubric register F",
        "rubric diff F F",
        "patch check F",
        "patch propose F",
        "iterate propose it F",
        "iterate run it --propose F",
        "experiment register exp-2 --title a --purpose b --rubric F",
        "key admit F",
        "gate plan m --units F --baseline F --candidate F --judge F --claim c",
        "gate observe m --from F",
        "gate root F",
        "deploy check --metrics F",
        "calibrate apply F",
        "checkpoint compare F",
        "checkpoint consistency F",
        "prove --check F",
        "verify F",
        "restore F --into r",
    ];
    for text in texts {
        desk.file("given.json", text);
        for verb in verbs {
            let line = verb.split(' ').map(|word| match word {
                "F" => "given.json",
                "@F" => "@given.json",
                "./F" => "./given.json",
                other => other,
            });
            let line: Vec<&str> = line.collect();
            let ran = desk.words(&line);
            for word in READER {
                assert!(
                    !ran.err.contains(word),
                    "{verb} of {text}: {word:?} is in:\n{}",
                    ran.err
                );
            }
        }
    }
}

#[test]
fn a_program_is_told_which_options_are_missing() {
    let mut desk = Desk::with_ledger();
    let ran = desk.run("confirm unseal probes --json");
    assert_eq!(ran.code, 2, "{}", ran.out);
    let message = ran.json()["data"]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("--for <TEXT>"),
        "{message}"
    );
}
