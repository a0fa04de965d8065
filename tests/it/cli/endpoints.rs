//! `clover endpoint`: a probe of a double, its faults and its key, and a double that the command line serves.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use clover::ground::secret::Secret;
use clover::model::simulate::Double;
use clover::model::simulate::DoubleOptions;
use clover::model::simulate::Script;
use clover::model::simulate::SimulatedJudge;
use serde_json::Value;
use serde_json::json;

use super::Desk;

const CANARY: &str = "sk-canary-0123456789";

/// A double on a free port, which answers by a script.
pub(super) fn double(script: &str, key: Option<&str>) -> Double {
    doubled(script, key, None)
}

/// A double that judges by merits of rows.
pub(super) fn doubled(script: &str, key: Option<&str>, judge: Option<SimulatedJudge>) -> Double {
    Double::start(DoubleOptions {
        judge,
        key: key.map(|key| Secret::new(key.to_owned())),
        listen: None,
        script: Script::parse(script).unwrap(),
        seed: 7,
        tape: None,
    })
    .unwrap()
}

fn probe(of: &Double, more: &str) -> String {
    format!(
        "endpoint probe --url http://{} --model m-1 --json {more}",
        of.address()
    )
}

fn abilities(data: &Value) -> Value {
    let rows = data["abilities"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["name"].as_str().unwrap().to_owned(),
            row["found"].clone(),
        )
    })
    .collect::<serde_json::Map<_, _>>()
    .into()
}

#[test]
fn a_probe_of_an_address_that_nobody_answers_at_ends() {
    let mut desk = Desk::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let line = format!("endpoint probe --url http://{} --model m-1", free.unwrap());
    let ran = desk.run(&line);
    assert_eq!(ran.code, 75, "{}{}", ran.out, ran.err);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(
        said.contains("nobody answers at the endpoint's address"),
        "{said}"
    );
}

#[test]
fn a_probe_says_what_an_endpoint_follows_and_what_it_ignores() {
    let mut desk = Desk::new();
    let honest = double("", None);
    let data = desk.ok(&probe(&honest, "")).json()["data"].clone();
    let all = json!({"json_schema": "yes", "logprobs": "yes", "seed": "yes", "temperature": "yes",
        "output_limit": "yes", "usage": "yes", "cache_usage": "no"});
    assert_eq!(abilities(&data), all);
    assert_eq!(data["models_returned"], json!(["m-1-2026-01-15"]));
    assert_eq!(
        data["calls"].as_array().unwrap().len(),
        honest.billed().len()
    );
    let rule = r#"{"do":{"ignore":["json_schema","logprobs","seed","limit"],"usage":"absent"}}"#;
    let deaf = double(rule, None);
    let data = desk.ok(&probe(&deaf, "")).json()["data"].clone();
    let none = json!({"json_schema": "ignored", "logprobs": "ignored", "seed": "ignored",
        "temperature": "yes", "output_limit": "ignored", "usage": "no", "cache_usage": "no"});
    assert_eq!(abilities(&data), none);
    let strict = double(
        r#"{"when":{"contains":"temperature"},"do":{"status":400}}"#,
        None,
    );
    let data = desk.ok(&probe(&strict, "")).json()["data"].clone();
    assert_eq!(abilities(&data)["temperature"], "no");
}

#[test]
fn a_probe_waits_out_a_limit_and_ends_at_a_refused_key() {
    let mut desk = Desk::new();
    let rule = r#"{"when":{"nth":"0..2"},"do":{"status":429,"headers":{"retry-after-ms":"30"}}}"#;
    let busy = double(rule, None);
    let data = desk.ok(&probe(&busy, "")).json()["data"].clone();
    assert_eq!(abilities(&data)["json_schema"], "yes");
    let day = r#"{"do":{"status":429,"headers":{"retry-after":"86400"}}}"#;
    assert_eq!(desk.run(&probe(&double(day, None), "")).code, 75);
    let locked = double("", Some(CANARY));
    let ran = desk.run(&probe(&locked, ""));
    assert_eq!(ran.code, 11, "{}", ran.out);
    assert_eq!(
        ran.json()["data"]["stopped"],
        "the endpoint refuses the key"
    );
    let key = desk.file("key", CANARY);
    let path = desk.at.join(&key);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = desk.run(&probe(&locked, "--key-file key"));
    assert_ne!(open.code, 0, "a key that others may read is not used");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = desk.ok(&probe(&locked, "--key-file key"));
    assert!(!format!("{}{}{}{}", ran.out, ran.err, open.out, open.err).contains("canary"));
}

#[test]
fn nothing_is_sent_elsewhere() {
    let mut desk = Desk::new();
    for url in [
        "https://api.example.com/v1",
        "http://localhost:8080",
        "http://10.0.0.1",
    ] {
        let ran = desk.run(&format!("endpoint probe --url {url} --model m-1"));
        assert_eq!(ran.code, 11, "{url}: {}", ran.err);
    }
    let ran = desk.run("endpoint probe --url http://user@127.0.0.1 --model m-1");
    assert_eq!(ran.code, 2, "{}", ran.err);
}

/// One request as any client writes it: the body of the answer.
fn asked(address: &str) -> Value {
    let body = json!({"model": "m-1", "messages": [{"role": "user", "content": "Hi"}]}).to_string();
    for _ in 0..500 {
        let Ok(mut stream) = TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let length = body.len();
        write!(
            stream,
            "POST /chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        return serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    }
    panic!("nobody listens on {address}");
}

#[test]
fn a_double_is_served_and_says_what_it_billed() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let at = address.clone();
    let client = std::thread::spawn(move || asked(&at));
    let mut desk = Desk::new();
    desk.file("faults.jsonl", r#"{"do":{"model":"m-2"}}"#);
    let line = format!(
        "endpoint simulate --listen {address} --script faults.jsonl --billed billed.jsonl --calls 1 --json"
    );
    let data = desk.ok(&line).json()["data"].clone();
    let answer = client.join().unwrap();
    assert_eq!(answer["model"], "m-2");
    let billed = std::fs::read_to_string(desk.at.join("billed.jsonl")).unwrap();
    let billed: Value = serde_json::from_str(&billed).unwrap();
    assert_eq!(billed["input"], answer["usage"]["prompt_tokens"]);
    assert_eq!(data["input"], billed["input"]);
    assert_eq!(data["calls"], 1);
    let wrong = desk.run("endpoint simulate --listen 0.0.0.0:0");
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    desk.file("wrong.jsonl", "{\"do\":{\"stattus\":1}}");
    let wrong = desk.run("endpoint simulate --script wrong.jsonl");
    assert!(
        wrong.code == 4 && wrong.err.contains("line 1"),
        "{}",
        wrong.err
    );
}

const PRICES: &str = "provider,model,mode,input,output,cache_read,cache_write\n\
                      example,m-1,live,0.25,2,0.025,\n";

#[test]
fn an_endpoint_is_registered_shown_and_probed_by_its_name() {
    let mut desk = Desk::with_ledger();
    let locked = double("", Some(CANARY));
    let add = format!(
        "endpoint add sim-1 --url http://{} --provider here --texts rows --texts synthetic --terms kept-here --model m-1 --free",
        locked.address()
    );
    let dry = desk.ok(&format!("{add} --dry-run --json")).json();
    assert_eq!(
        desk.ok("endpoint list --json").json()["data"]["endpoints"],
        json!([])
    );
    assert_eq!(dry["verdict"], "dry_run");
    desk.ok(&add);
    let shown = desk.ok("endpoint show sim-1 --json").json()["data"].clone();
    assert_eq!(shown["classes"], json!(["rows", "synthetic"]));
    assert_eq!(shown["key_variable"], "CLOVER_KEY_SIM_1");
    assert_eq!(shown["auth"], "bearer");
    let listed = desk.ok("endpoint list");
    assert!(listed.out.contains("sim-1"), "{}", listed.out);
    let without = desk.run("endpoint probe sim-1 --model m-1");
    assert_eq!(without.code, 4, "{}", without.err);
    assert!(without.err.contains("CLOVER_KEY_SIM_1"), "{}", without.err);
    let other = desk.run("endpoint probe sim-1 --model m-2");
    assert_eq!(other.code, 11, "{}", other.err);
    desk.file("key", CANARY);
    let path = desk.at.join("key");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let found = desk.ok("endpoint probe sim-1 --model m-1 --key-file key --json");
    assert_eq!(abilities(&found.json()["data"])["json_schema"], "yes");
    assert_eq!(desk.run("endpoint show nobody").code, 5);
    assert_eq!(desk.run("endpoint probe nobody --model m-1").code, 5);
    assert_eq!(
        desk.ok(&format!("{add} --json")).json()["verdict"],
        "already_recorded"
    );
    let twice = desk.run(&add.replace("kept-here", "sold"));
    assert!(
        twice.code == 11 && twice.err.contains("natural_key"),
        "{}",
        twice.err
    );
    desk.head();
}

#[test]
fn an_endpoint_that_would_leak_is_refused_and_nothing_is_recorded() {
    let mut desk = Desk::with_ledger();
    let before = desk.head();
    for more in [
        "--url http://models.example.com/v1 --terms none --texts rows",
        "--url http://localhost:8080 --terms none --texts rows",
        "--url https://models.example.com/v1 --insecure --terms none --texts rows",
        "--url https://models.example.com/v1 --texts rows",
    ] {
        let ran = desk.run(&format!("endpoint add out --provider example {more}"));
        assert!(
            ran.code == 11 && ran.err.contains("endpoint"),
            "{more}: {}",
            ran.err
        );
    }
    for more in [
        "--url https://models.example.com/v1",
        "--url https://models.example.com/v1?key=1 --texts rows",
        "--url https://models.example.com/v1 --texts everything",
    ] {
        let ran = desk.run(&format!("endpoint add out --provider example {more}"));
        assert_eq!(ran.code, 2, "{more}: {}", ran.err);
    }
    assert_eq!(desk.head(), before);
    desk.ok("endpoint add out --provider example --url http://10.0.0.1 --insecure --terms none --texts rows");
    let shown = desk.ok("endpoint show out");
    assert!(shown.out.contains("plain http"), "{}", shown.out);
    assert_eq!(
        desk.run("endpoint probe out --model m-1 --key-env HOME")
            .code,
        4
    );
}

#[test]
fn prices_are_registered_exactly_and_shown_in_dollars() {
    let mut desk = Desk::with_ledger();
    // As a spreadsheet writes it.
    desk.file("prices.csv", &format!("\u{feff}{PRICES}"));
    let import = "price import prices.csv --name 2026-11 --as-of 2026-11-01 --source page";
    desk.ok(import);
    let shown = desk.ok("price show 2026-11 --json").json()["data"].clone();
    assert_eq!(shown["as_of"], "2026-11-01T00:00:00.000000Z");
    let row = json!({"provider": "example", "model": "m-1", "mode": "live", "input": 250_000,
        "cache_read": 25_000, "cache_write": 250_000, "output": 2_000_000});
    assert_eq!(shown["rows"], json!([row]));
    let text = desk.ok("price show 2026-11").out;
    assert!(
        text.contains("0.025") && text.contains("dollars for a million"),
        "{text}"
    );
    assert!(desk.ok("price list").out.contains("2026-11"));
    desk.file("prices.csv", &PRICES.replace("0.25", "0.0000001"));
    let ran = desk.run(&import.replace("2026-11 ", "2026-12 "));
    assert!(
        ran.code == 4 && ran.err.contains("six decimals"),
        "{}",
        ran.err
    );
    assert_eq!(desk.run("price show 2026-12").code, 5);
    let late = desk.run("price import prices.csv --name 2026-12 --as-of November --source page");
    assert_eq!(late.code, 2, "{}", late.err);
    desk.head();
}

/// A desk that may ask an endpoint about three rows: free, or paid from an account.
fn live_desk(of: &Double, free: bool) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/live --holder Ada --roles all");
    desk.ok("experiment register live --title Live --purpose testing");
    let cost = if free { "--free" } else { "" };
    desk.ok(&format!(
        "endpoint add sim --url http://{} --provider example --texts rows --terms kept-here --auth none {cost}",
        of.address()
    ));
    let row = |item: u8| {
        json!({"prompt_id": format!("item-{item}"), "prompt": format!("Why {item}?"), "response": format!("Because {item}.")})
            .to_string()
            + "\n"
    };
    desk.file("base_responses.jsonl", &[1, 2, 3].map(row).concat());
    if !free {
        desk.file("prices.csv", &PRICES.replace("m-1", "m-1-2026-01-15"));
        desk.ok("price import prices.csv --name 2026-11 --as-of 2026-11-01 --source page");
        let account = r#"{"account":"judges","amount":1000000,"period":"once","purpose":"judges","spenders":["scorer"],"unit":"usd_micro"}"#;
        desk.ok_words(&["record", "budget.opened", "--data", account]);
    }
    desk
}

const LIVE: &str = "judge ask --judge live-1 --endpoint sim --model m-1 --pin m-1-2026-01-15 --rows base_responses.jsonl --policy base --json";

fn kinds(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let answer = desk
        .ok(&format!("log --kind {kind} --limit 100 --json"))
        .json();
    answer["data"]["entries"].as_array().unwrap().clone()
}

#[test]
fn a_free_endpoint_scores_rows_once_and_every_score_names_its_call() {
    let honest = double("", None);
    let mut desk = live_desk(&honest, true);
    let first = desk.ok(LIVE).json()["data"].clone();
    assert_eq!(
        (&first["scored"], &first["missed"], &first["left"]),
        (&json!(3), &json!(0), &json!(0))
    );
    assert_eq!(first["end"], "completed");
    assert_eq!(honest.billed().len(), 3);
    assert_eq!(kinds(&mut desk, "call.recorded").len(), 3);
    assert_eq!(kinds(&mut desk, "score.recorded").len(), 3);
    let again = desk.ok(LIVE).json()["data"].clone();
    assert_eq!(
        (&again["already"], &again["run"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(honest.billed().len(), 3, "nothing is asked twice");
    desk.head();
}

#[test]
fn what_is_billed_is_never_more_than_what_is_charged() {
    let faults = r#"{"when":{"nth":"1..2"},"do":{"cut_at":60}}
{"when":{"nth":"3..4"},"do":{"status":500}}"#;
    let cutting = double(faults, None);
    let mut desk = live_desk(&cutting, false);
    let none = desk.run(LIVE);
    assert!(
        none.code == 2 && none.err.contains("--account"),
        "{}",
        none.err
    );
    let ran = desk.ok(&format!("{LIVE} --account judges")).json()["data"].clone();
    assert_eq!(ran["scored"], 3, "{ran}");
    let price =
        |input: u64, output: u64| (input * 250_000 + output * 2_000_000).div_ceil(1_000_000);
    let billed: u64 = cutting
        .billed()
        .iter()
        .map(|of| price(of.input, of.output))
        .sum();
    let settled = ran["settled_usd_micro"].as_u64().unwrap();
    assert!(billed > 0 && billed <= settled, "{billed} of {settled}");
    assert_eq!(ran["settled_usd_micro"], ran["cost_usd_micro"]);
    let budget = desk.ok("budget show judges --json").json()["data"].clone();
    assert_eq!(budget["spent"], settled);
    assert_eq!(budget["left"], 1_000_000 - settled);
    desk.head();
}

#[test]
fn a_cap_another_model_and_prose_end_in_words() {
    let honest = double("", None);
    let mut desk = live_desk(&honest, false);
    let capped = desk.run(&format!("{LIVE} --account judges --cap-usd 0.000001"));
    assert_eq!(capped.code, 11, "{}", capped.out);
    assert_eq!(capped.json()["data"]["end"], "capped");
    assert_eq!(honest.billed().len(), 0, "nothing was sent");
    desk.head();
    let other = double(r#"{"do":{"model":"m-9"}}"#, None);
    let mut desk = live_desk(&other, false);
    let changed = desk.run(&format!("{LIVE} --account judges -j 1"));
    assert_eq!(changed.code, 11, "{}", changed.out);
    let data = changed.json()["data"].clone();
    assert_eq!(
        (&data["scored"], &data["end"]),
        (&json!(0), &json!("stopped"))
    );
    assert!(
        data["by_outcome"]["mismatched"].as_u64() >= Some(1),
        "{data}"
    );
    desk.head();
    let prose = double(r#"{"do":{"ignore":["json_schema"]}}"#, None);
    let mut desk = live_desk(&prose, true);
    let missed = desk.run(LIVE);
    assert_eq!(missed.code, 12, "{}", missed.out);
    assert_eq!(missed.json()["data"]["by_outcome"], json!({"unparsed": 3}));
    assert_eq!(kinds(&mut desk, "score.missed").len(), 3);
    let again = desk.run(LIVE);
    assert_eq!(
        again.json()["data"]["run"],
        Value::Null,
        "an answer that cannot be read is not asked for again"
    );
    desk.head();
}
