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
use serde_json::Value;
use serde_json::json;

use super::Desk;

const CANARY: &str = "sk-canary-0123456789";

fn double(script: &str, key: Option<&str>) -> Double {
    Double::start(DoubleOptions {
        key: key.map(|key| Secret::new(key.to_owned())),
        listen: None,
        script: Script::parse(script).unwrap(),
        seed: 7,
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
