//! `clover judge ask` under kills, beside another run, with lost replies, and with a key that must stand nowhere.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64ct::Encoding as _;
use clover::model::simulate::Double;
use serde_json::Value;
use serde_json::json;

use super::endpoints::double;
use super::killed::Home;
use crate::support::verifiers;

const CANARY: &str = "sk-canary-9876543210";
const ROWS: u64 = 160;
const PRICES: &str = "provider,model,mode,input,output,cache_read,cache_write
example,m-1-2026-01-15,live,0.25,2,0.025,
example,m-2-2026-01-15,live,0.25,2,0.025,
";

pub(super) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A folder whose ledger may ask an endpoint about rows, from an account of so much.
pub(super) fn prepare(home: &Home<'_>, of: &Double, (rows, amount): (u64, u64), auth: &str) {
    let work = home.0.join("work");
    std::fs::create_dir_all(&work).unwrap();
    home.ok(&words(
        "init --origin ledger.example/live --holder Ada --roles all",
    ));
    home.ok(&words(
        "experiment register live --title Live --purpose testing",
    ));
    home.ok(&words(&format!(
        "endpoint add sim --url http://{} --provider example --texts rows --terms kept-here --auth {auth}",
        of.address()
    )));
    std::fs::write(work.join("prices.csv"), PRICES).unwrap();
    home.ok(&words(
        "price import prices.csv --name 2026-11 --as-of 2026-11-01 --source page",
    ));
    let account = json!({"account": "judges", "amount": amount, "period": "once", "purpose": "judges",
        "spenders": ["scorer"], "unit": "usd_micro"});
    home.ok(&["record", "budget.opened", "--data", &account.to_string()]);
    let row = |item: u64| {
        json!({"prompt_id": format!("item-{item}"), "prompt": format!("Why {item}?"), "response": format!("So {item}.")})
            .to_string()
            + "\n"
    };
    let text: String = (0..rows).map(row).collect();
    std::fs::write(work.join("base_responses.jsonl"), text).unwrap();
    let text: String = (rows..2 * rows).map(row).collect();
    std::fs::write(work.join("other_responses.jsonl"), text).unwrap();
    for n in [1, 2] {
        let plan = format!(
            "plan: judge_plan/1\njudge: live-{n}\nendpoint: sim\nmodel: m-{n}\npin: m-{n}-2026-01-15\ndecoding: {{temperature_micro: 0}}\n"
        );
        std::fs::write(work.join(format!("plan-{n}.yaml")), plan).unwrap();
    }
}

pub(super) fn ask(judge: u64) -> String {
    format!(
        "judge ask --plan plan-{judge}.yaml --rows base_responses.jsonl --account judges -j 16 --yes"
    )
}

/// The verifier in Python finds nothing, where Python is here.
pub(super) fn python_agrees(home: &Home<'_>) {
    if verifiers::python() {
        home.ok(&["export", "jsonl", "-o", "theirs"]);
        let folder = home.0.join("work/theirs");
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let arguments = [
            path("ledger.jsonl"),
            "--checkpoint".to_owned(),
            path("checkpoint"),
        ];
        let outcome = verifiers::theirs(&arguments);
        assert_eq!(outcome.first, None, "{:?}", outcome.all);
    }
}

/// Every event of a kind, as its data.
pub(super) fn said(home: &Home<'_>, kind: &str) -> Vec<Value> {
    let folder = home.0.join("work/said");
    drop(std::fs::remove_dir_all(&folder));
    home.ok(&["export", "jsonl", "-o", "said"]);
    let log = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
    let events = log.lines().map(body);
    let mine = events.filter(|event| event["kind"] == kind);
    mine.map(|event| event["data"].clone()).collect()
}

/// The id of an event.
fn event_id(home: &Home<'_>, seq: u64) -> String {
    said(home, "call.recorded");
    let log = std::fs::read_to_string(home.0.join("work/said/ledger.jsonl")).unwrap();
    let line = log.lines().nth(usize::try_from(seq).unwrap()).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let text = line["envelope"]["payload"].as_str().unwrap();
    let bytes = base64ct::Base64::decode_vec(text).unwrap();
    clover::ground::digest::Digest::sha256(&bytes).to_hex()
}

/// The body of a line of an export.
fn body(line: &str) -> Value {
    let line: Value = serde_json::from_str(line).unwrap();
    let text = line["envelope"]["payload"].as_str().unwrap();
    let bytes = base64ct::Base64::decode_vec(text).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn sum(calls: &[Value], member: &str) -> u64 {
    calls.iter().map(|of| of[member].as_u64().unwrap()).sum()
}

/// What the double billed, in millionths of a dollar.
fn billed(of: &Double) -> u64 {
    let price =
        |input: u64, output: u64| (input * 250_000 + output * 2_000_000).div_ceil(1_000_000);
    let calls = of.billed();
    calls.iter().map(|of| price(of.input, of.output)).sum()
}

#[test]
fn a_run_that_is_killed_at_any_moment_goes_on_and_pays_for_what_it_may_have_sent() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let slow = double(r#"{"do":{"delay_ms":25}}"#, None);
    prepare(&home, &slow, (ROWS, 100_000_000), "none");
    let line = ask(1);
    for moment in 1..=12_u64 {
        let mut child = home.command(&words(&line));
        let mut child = child
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 * moment));
        drop(child.kill());
        child.wait().unwrap();
    }
    let last = home.ok(&words(&line));
    let data = &last["data"];
    assert_eq!(
        data["scored"].as_u64().unwrap() + data["already"].as_u64().unwrap(),
        ROWS
    );
    let calls = said(&home, "call.recorded");
    let of = |outcome: &str| calls.iter().filter(|of| of["outcome"] == outcome).count() as u64;
    assert_eq!(of("answered"), ROWS, "every row has one answer");
    assert!(of("lost") > 0, "a kill struck while asks were out");
    assert_eq!(of("answered") + of("lost"), calls.len() as u64);
    assert_eq!(said(&home, "score.recorded").len() as u64, ROWS);
    let (holds, ends) = (
        said(&home, "budget.reserved"),
        said(&home, "budget.settled"),
    );
    assert_eq!(holds.len(), ends.len(), "no hold is left open");
    let settled = sum(&ends, "amount");
    let lost: Vec<_> = calls
        .iter()
        .filter(|of| of["outcome"] == "lost")
        .cloned()
        .collect();
    let unknown = sum(&lost, "cost_usd_micro");
    let billed = billed(&slow);
    assert!(
        billed <= settled && settled <= billed + unknown,
        "{billed} {settled} {unknown}"
    );
    home.ok(&words("verify --recompute"));
    let budget = home.ok(&words("budget show judges"));
    assert_eq!(budget["data"]["spent"], settled);
}

#[test]
fn two_runs_on_an_account_that_is_too_small_for_both_never_overdraw_it() {
    const AMOUNT: u64 = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let honest = double(r#"{"do":{"delay_ms":5}}"#, None);
    prepare(&home, &honest, (ROWS, AMOUNT), "none");
    let start = |judge: u64| {
        // Each has rows of its own: what one judge was asked is not asked again for another.
        let file = if judge == 1 { "base" } else { "other" };
        let line = ask(judge).replace("base_responses", &format!("{file}_responses"));
        let mut child = home.command(&words(&line));
        child
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children = [start(1), start(2)];
    let codes = children.map(|child| {
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    });
    assert!(codes.iter().any(|(code, _)| *code == Some(11)), "{codes:?}");
    let runs = said(&home, "judge_run.closed");
    assert_eq!(runs.len(), 2, "{codes:?}");
    assert!(runs.iter().any(|of| of["end"] == "capped"), "{runs:?}");
    let each = runs.iter().all(|of| of["cost_usd_micro"] != 0);
    assert!(each, "neither takes all of it: {runs:?}");
    let settled = sum(&said(&home, "budget.settled"), "amount");
    assert!(billed(&honest) <= settled && settled <= AMOUNT, "{settled}");
    home.ok(&words("verify --recompute"));
}

#[test]
fn a_reply_that_is_lost_costs_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let cutting = double(r#"{"when":{"nth":"0..1"},"do":{"cut_at":60}}"#, None);
    prepare(&home, &cutting, (1, 100_000), "none");
    home.ok(&words(&ask(1)));
    let calls = said(&home, "call.recorded");
    let call = &calls[0];
    assert_eq!(call["attempts"].as_array().unwrap().len(), 2, "{call}");
    let tokens = |name: &str| call["tokens"][name].as_u64().unwrap();
    let answer = (tokens("input") * 250_000 + tokens("output") * 2_000_000).div_ceil(1_000_000);
    let bound = call["bound_usd_micro"].as_u64().unwrap();
    assert_eq!(call["cost_usd_micro"], bound + answer);
    assert_eq!(
        sum(&said(&home, "budget.settled"), "amount"),
        bound + answer
    );
}

/// Whether a file below a folder holds the key, but for the file that it was read from.
fn holds_key(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holds_key(&path));
        } else if path.file_name().unwrap() != "key" {
            let bytes = std::fs::read(&path).unwrap();
            if memchr_of(&bytes, CANARY.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn memchr_of(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_key_stands_in_no_file_even_where_an_answer_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let echo = json!({"when": {"nth": "0..1"}, "do": {"body":
        json!({"id": "x", "model": "m-1-2026-01-15", "choices": [{"finish_reason": "stop", "message": {"content": CANARY}}]}).to_string()}});
    let refused =
        json!({"when": {"nth": "1..2"}, "do": {"status": 400, "body": format!("bad {CANARY}")}});
    let leaking = double(&format!("{echo}\n{refused}\n"), Some(CANARY));
    prepare(&home, &leaking, (4, 100_000), "bearer");
    let key = home.0.join("work/key");
    std::fs::write(&key, CANARY).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let line = format!("{} --key-file key", ask(1));
    let output = home.command(&words(&line)).output().unwrap();
    assert_eq!(output.status.code(), Some(12), "{output:?}");
    let calls = said(&home, "call.recorded");
    let secret: Vec<_> = calls.iter().filter(|of| of["detail"] == "secret").collect();
    assert_eq!(secret.len(), 1, "{calls:?}");
    assert!(secret[0].get("response").is_none());
    home.ok(&["export", "bundle", "-o", "audit.clover"]);
    assert_eq!(holds_key(home.0), Vec::<String>::new());
    assert!(!memchr_of(
        &[output.stdout, output.stderr].concat(),
        CANARY.as_bytes()
    ));
}

/// Given rows whose labels can be read already; when a judge behind HTTP would be paid for them; then that is asked before,
/// and said after.
#[test]
fn rows_whose_labels_can_be_read_are_asked_about_before_money_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let honest = double("", None);
    prepare(&home, &honest, (4, 100_000), "none");
    home.ok(&words(&ask(1)));
    home.ok(&words(
        "label design new calib --purpose calibrate --probability 1",
    ));
    let labels = "prompt_id,policy,label\nitem-0,base,0.5\n";
    std::fs::write(home.0.join("work/labels.csv"), labels).unwrap();
    home.ok(&words("import labels labels.csv --design calib"));
    let second = ask(2);
    let dry = home.ok(&words(&format!("{second} --dry-run")));
    assert_eq!(dry["data"]["late"], 4, "{dry}");
    let bare = second.replace(" --yes", "");
    let asked = home.command(&words(&bare)).output().unwrap();
    let text = String::from_utf8(asked.stderr).unwrap();
    assert_eq!(asked.status.code(), Some(2), "{text}");
    assert!(
        text.contains("4 rows are of policies whose labels can be read already"),
        "{text}"
    );
    assert_eq!(said(&home, "call.recorded").len(), 4, "nothing was sent");
    let done = home.ok(&words(&second));
    assert_eq!(
        (&done["data"]["late"], &done["data"]["scored"]),
        (&4.into(), &4.into())
    );
}

/// Given a run that was killed and whose rows are gone; when somebody ends it; then nobody was asked, the open hold is charged
/// as a whole, the judge may be asked again by another run, and both verifiers agree.
#[test]
fn a_run_that_nobody_goes_on_with_is_ended_and_pays_for_its_hold() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let slow = double(r#"{"do":{"delay_ms":60}}"#, None);
    prepare(&home, &slow, (ROWS, 100_000_000), "none");
    let line = ask(1);
    let mut child = home.command(&words(&line));
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while slow.billed().len() < 20 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // While it asks, nobody else ends it.
    let run = said(&home, "judge_run.opened")[0]["run"].clone();
    let stop = format!("judge stop {} --yes", run.as_str().unwrap());
    let busy = home.command(&words(&stop)).output().unwrap();
    assert_eq!(busy.status.code(), Some(11));
    child.kill().unwrap();
    child.wait().unwrap();
    let hold = said(&home, "budget.reserved").pop().unwrap();
    let held = hold["amount"].as_u64().unwrap();
    let paid = sum(&said(&home, "call.recorded"), "cost_usd_micro");
    let settled = sum(&said(&home, "budget.settled"), "amount");
    // A cap or an account that it was not opened with is refused, and not passed over.
    for other in [
        "--cap-usd 0.5",
        "--cap-usd 0.5 --dry-run",
        "--dry-run --account other",
    ] {
        let line = if other.contains("other") {
            line.replace("--account judges ", "")
        } else {
            line.clone()
        };
        let refused = home.command(&words(&format!("{line} {other}"))).output();
        let refused = refused.unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(11), "{other} {text}");
        assert!(
            text.contains("is open with the account judges and no cap"),
            "{text}"
        );
    }
    // A dry run says that the run goes on, and what is held for it.
    let dry = home.ok(&words(&format!("{line} --dry-run")));
    assert_eq!(
        (&dry["data"]["open_run"], &dry["data"]["held_usd_micro"]),
        (&run, &held.into())
    );
    // Without a yes it is only asked about.
    let asked = home
        .command(&words(stop.trim_end_matches(" --yes")))
        .output();
    let asked = asked.unwrap();
    let words_of = String::from_utf8(asked.stderr).unwrap();
    assert!(
        asked.status.code() == Some(2) && words_of.contains("asks that may have been sent"),
        "{words_of}"
    );
    let ended = home.ok(&words(&stop));
    let unpaid = paid - settled.min(paid);
    assert_eq!(ended["data"]["unknown_usd_micro"], held - unpaid);
    assert_eq!(ended["data"]["settled_usd_micro"], settled + held);
    assert!(ended["data"]["held_asks"].as_u64().unwrap() > 0);
    let again = home.command(&words(&stop)).output().unwrap();
    assert_eq!(again.status.code(), Some(11), "it ended before");
    assert!(billed(&slow) <= settled + held);
    // Another run asks for what has no call.
    let before = said(&home, "call.recorded").len() as u64;
    let rest = home.ok(&words(&line));
    assert_eq!(rest["data"]["scored"], ROWS - before);
    home.ok(&words("verify --recompute"));
}

/// What a run would ask and cost is said before anything is sent or recorded; once calls are on record, by their tokens.
#[test]
fn a_dry_run_sends_and_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let honest = double("", None);
    prepare(&home, &honest, (ROWS, 100_000_000), "none");
    let dry = format!("{} --dry-run", ask(1));
    let first = home.ok(&words(&dry))["data"].clone();
    assert_eq!((&first["asks"], &first["calls"]), (&json!(ROWS), &json!(0)));
    assert_eq!(first["left_usd_micro"], 100_000_000);
    assert!(honest.billed().is_empty());
    assert!(said(&home, "judge_run.opened").is_empty());
    home.ok(&words(&ask(1)));
    let spent = sum(&said(&home, "call.recorded"), "cost_usd_micro");
    assert!(spent <= first["most_usd_micro"].as_u64().unwrap());
    let other = dry.replace("base_responses", "other_responses");
    let second = home.ok(&words(&other))["data"].clone();
    assert_eq!(
        (&second["asks"], &second["calls"]),
        (&json!(ROWS), &json!(ROWS))
    );
    // Rows alike cost alike: within a tenth of what the first ones did.
    let cost = second["cost_usd_micro"].as_u64().unwrap();
    assert!(cost.abs_diff(spent) * 10 <= spent, "{cost} beside {spent}");
    let done = home.ok(&words(&dry))["data"].clone();
    assert_eq!((&done["asks"], &done["already"]), (&json!(0), &json!(ROWS)));
}

/// Whoever erases the texts of a row erases the answer of the model about them; other answers stay readable.
#[test]
fn the_answer_about_a_row_is_erased_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let honest = double("", None);
    prepare(&home, &honest, (6, 100_000_000), "none");
    home.ok(&words(&ask(1)));
    let scores = said(&home, "score.recorded");
    let score = scores.iter().find(|of| of["item"] == "item-3").unwrap();
    let subject = score["response"]["subject"].as_str().unwrap();
    let alike = scores
        .iter()
        .filter(|of| of["response"]["subject"] == subject);
    let rows = alike.count();
    let calls = said(&home, "call.recorded");
    let erase = ["erase", subject, "--basis", "they asked"];
    let asked = home.command(&erase).output().unwrap();
    let asked = String::from_utf8(asked.stderr).unwrap();
    assert!(
        asked.contains("of a model about it") || asked.contains("of models about it"),
        "{asked}"
    );
    assert!(said(&home, "subject.erased").is_empty());
    home.ok(&["erase", subject, "--basis", "they asked", "--yes"]);
    let erased: Vec<_> = said(&home, "subject.erased")
        .iter()
        .map(|of| of["subject"].clone())
        .collect();
    assert_eq!(erased.len(), 1 + rows);
    assert!(erased.contains(&json!(subject)));
    let bodies = calls
        .iter()
        .filter(|of| erased.contains(&of["response"]["subject"]));
    assert_eq!(
        bodies.count(),
        rows,
        "as many answers as rows of the subject"
    );
    // What was erased is not sent anywhere: not by another judge, and nothing is held or paid for it.
    let sent = honest.billed().len();
    for more in ["", " --dry-run"] {
        let other = home.command(&words(&format!("{}{more}", ask(2)))).output();
        let other = other.unwrap();
        let text = String::from_utf8(other.stderr).unwrap();
        assert!(
            other.status.code() == Some(11) && text.contains("were erased at seq"),
            "{text}"
        );
    }
    assert_eq!(honest.billed().len(), sent);
    assert_eq!(said(&home, "judge_run.opened").len(), 1);
    // The same command finds nothing left to do.
    home.ok(&["erase", subject, "--basis", "they asked", "--yes"]);
    assert_eq!(said(&home, "subject.erased").len(), 1 + rows);
    home.ok(&words("verify"));
    // The certificate of an answer names its call.
    let mut answers = erased.iter().filter(|of| **of != json!(subject));
    let answer = answers.next().unwrap();
    let certificate = ["report", "erasure", answer.as_str().unwrap()];
    home.ok(&[&certificate[..], &words("--format json -o answer.json")].concat());
    let text = std::fs::read_to_string(home.0.join("work/answer.json")).unwrap();
    assert!(text.contains("answer of a model"), "{text}");
    assert!(text.contains("what an ask came to"), "{text}");
    // What was erased is not read again, and that is said.
    let again = home.ok(&words("verify --recompute"))["data"]["report"].clone();
    let open = again["not_checked"].to_string();
    assert!(open.contains("1 answer of a model"), "{again}");
    assert!(open.contains("1 ask of a model"), "{again}");
}

/// Given answers on record; when the scorer signs calls by hand on the body of one of them; then the rules hold, as bodies are
/// private, and whoever has the vault is told which call says otherwise than its body, and which row has another text.
#[test]
fn an_answer_is_read_again_by_whoever_has_the_vault() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let honest = double("", None);
    prepare(&home, &honest, (3, 100_000), "none");
    home.ok(&words(&ask(1)));
    let notes = home.ok(&words("verify --recompute"))["data"]["report"]["notes"].to_string();
    let expected = "3 answers of models were read again, and 3 asks were made again from texts";
    assert!(notes.contains(expected), "{notes}");
    let record = |kind: &str, data: &Value, refs: &[&str]| {
        let data = data.to_string();
        let mut line = vec!["record", kind, "--experiment", "live", "--data", &data];
        for of in refs {
            line.extend(["--ref", of]);
        }
        home.ok(&line)["data"]["seqs"][0].as_u64().unwrap()
    };
    let mut opened = said(&home, "judge_run.opened").remove(0);
    (opened["asks"], opened["run"]) = (1.into(), "again".into());
    record("judge_run.opened", &opened, &[]);
    let mut call = said(&home, "call.recorded").remove(0);
    let hold = json!({"account": "judges", "amount": call["bound_usd_micro"], "asks": 1, "hold": "again/0/0", "run": "again"});
    record("budget.reserved", &hold, &[]);
    let old = call["texts"].clone();
    (call["ask"], call["hold"], call["run"]) =
        ("01".repeat(32).into(), "again/0/0".into(), "again".into());
    // The same texts under another key are refused.
    let data = call.to_string();
    let refused = home.command(&[
        "record",
        "call.recorded",
        "--experiment",
        "live",
        "--data",
        &data,
    ]);
    let refused = { refused }.output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(11), "{text}");
    call["texts"] = json!({"a_hash": "02".repeat(32), "x_hash": old["x_hash"]});
    let called = record("call.recorded", &call, &[]);
    let id = event_id(&home, called);
    let mut score = said(&home, "score.recorded").remove(0);
    score["item"] = "item-9".into();
    score["call"] = json!({"call": id, "texts": call["texts"]});
    let scored = record("score.recorded", &score, &[&id]);
    home.ok(&words("verify"));
    let failed = home
        .command(&words("verify --recompute --json"))
        .output()
        .unwrap();
    let text = String::from_utf8(failed.stdout).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let found = found["data"]["report"]["findings"]
        .as_array()
        .unwrap()
        .clone();
    let at = found
        .iter()
        .map(|of| (of["seq"].as_u64().unwrap(), of["rule"].as_str().unwrap()));
    let at: Vec<_> = at.collect();
    assert_eq!(at, [(called, "recompute"), (scored, "recompute")], "{text}");
    let expected = found[0]["expected"].as_str().unwrap();
    assert!(
        expected.contains("outcome unparsed of call"),
        "the ticket is of other texts: {expected}"
    );
    let expected = found[1]["expected"].as_str().unwrap();
    assert!(
        expected.contains("about the texts of its row"),
        "{expected}"
    );
}

/// Given an endpoint that rejects what it is sent, as one with a wrong URL or an unknown model does; when rows are asked about;
/// then the run stops at once, says what the endpoint said, and asks again for every row once the fault is mended.
#[test]
fn a_wrong_setting_costs_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let script = r#"{"when":{"nth":"0..3"},"do":{"status":404,"body":"{\"error\":{\"message\":\"no such model here\"}}"}}"#;
    let wrong = double(script, None);
    prepare(&home, &wrong, (20, 100_000_000), "none");
    let line = ask(1).replace("-j 16", "-j 1");
    let out = home.command(&words(&line)).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(11), "{text}");
    assert!(text.contains("rejects every ask"), "{text}");
    assert!(text.contains("no such model here"), "{text}");
    let calls = said(&home, "call.recorded");
    assert_eq!(calls.len(), 3, "it stopped");
    let again = home.ok(&words(&line));
    assert_eq!(again["data"]["scored"], 20);
    home.ok(&words("verify --recompute"));
    // The verifier in Python takes a second call of a rejected ask too.
    python_agrees(&home);
}

/// Another model than the pinned one is named, and so is that none is.
#[test]
fn who_answers_instead_of_the_pinned_model_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let other = double(r#"{"do":{"model":"m-9"}}"#, None);
    prepare(&home, &other, (4, 100_000_000), "none");
    let out = home.command(&words(&ask(1))).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(11), "{text}");
    assert!(text.contains("m-9 answers, and the plan pins"), "{text}");
}

/// A row whose text was changed by a blank is no new row: neither where it was scored, nor where it was missed.
#[test]
fn a_blank_more_is_no_second_try() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let script = r#"{"when":{"contains":"Why 3?"},"do":{"ignore":["json_schema"]}}"#;
    let prose = double(script, None);
    prepare(&home, &prose, (6, 100_000_000), "none");
    let out = home.command(&words(&ask(1))).output().unwrap();
    assert_eq!(out.status.code(), Some(12), "one row is missed");
    let rows = home.0.join("work/base_responses.jsonl");
    let before = std::fs::read_to_string(&rows).unwrap();
    let sent = prose.billed().len();
    for item in ["So 3.", "So 4."] {
        std::fs::write(&rows, before.replace(item, &format!("{item} "))).unwrap();
        let out = home.command(&words(&ask(1))).output().unwrap();
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(11), "{item} {text}");
        assert!(text.contains("was asked about with another text"), "{text}");
    }
    assert_eq!(prose.billed().len(), sent, "nothing was sent");
    assert_eq!(said(&home, "judge_run.opened").len(), 1);
}
