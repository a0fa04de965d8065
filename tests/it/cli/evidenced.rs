//! Extracts of frameworks: who assessed whose work, what was tested of each version, what entries show of each principle, and
//! samples that anybody draws again.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;
use sha2::Digest as _;
use sha2::Sha256;

use super::Desk;
use super::erased::rows;

fn report(desk: &mut Desk, command: &str) -> Value {
    serde_json::from_str(&desk.ok(&format!("report {command} --format json")).out).unwrap()
}

fn row<'v>(rows: &[&'v Value], key: &str, word: &str) -> &'v Value {
    rows.iter().find(|row| row[key] == word).unwrap()
}

/// Of a ledger with a change that was deployed and rolled back.
pub fn extracts(desk: &mut Desk) {
    independence(desk);
    principles(desk);
    samples(desk);
    on_paper(desk);
    whole(desk);
}

/// JSON of an iteration's page: what its bundle has, and who did what beside it.
fn whole(desk: &mut Desk) {
    let bundle = report(desk, "iteration");
    assert!(bundle["head"].is_null(), "{bundle}");
    let all = report(desk, "iteration --whole");
    assert_eq!(all["report"], "iteration");
    let people = all["head"]["people"]["rows"].as_array().unwrap();
    assert!(people.iter().any(|row| row["act"] == "accepted"), "{all}");
    let since = all["head"]["since"]["rows"].as_array().unwrap();
    assert!(since.iter().any(|row| row["act"] == "ROLLED BACK"), "{all}");
    let parts = |of: &Value, name: &str| of[name].as_array().unwrap().len();
    assert_eq!(parts(&all, "appendices"), parts(&bundle, "parts"));
}

/// What the export says: the line of each entry.
fn entries(desk: &mut Desk) -> Vec<Value> {
    let lines = desk.ok("log --json --limit 100000").json();
    lines["data"]["entries"].as_array().unwrap().clone()
}

fn independence(desk: &mut Desk) {
    let found = report(desk, "tevv");
    let signed = rows(&found, "independence", "signed");
    // Each entry whose kind asks for a role is counted once, for its own signer.
    let keys = desk.ok("key list --json").json();
    let holders: BTreeMap<String, String> = keys["data"]["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| {
            let text = |name: &str| key[name].as_str().unwrap().to_owned();
            (text("key_id"), text("holder"))
        })
        .collect();
    let mut proposed: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries(desk) {
        if ["patch.proposed", "patch.withdrawn"].contains(&entry["body"]["kind"].as_str().unwrap())
        {
            let holder = &holders[entry["body"]["author"].as_str().unwrap()];
            *proposed.entry(holder.clone()).or_default() += 1;
        }
    }
    let optimizers: BTreeMap<String, u64> = signed
        .iter()
        .filter(|row| row["role"] == "optimizer")
        .map(|row| {
            let holder = row["holder"].as_str().unwrap().to_owned();
            (holder, row["entries"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(optimizers, proposed);
    let both = |role: &str| -> BTreeSet<&str> {
        let holders = signed.iter().filter(|row| row["role"] == role);
        let holders = holders.map(|row| row["holder"].as_str().unwrap());
        holders
            .filter(|holder| proposed.contains_key(*holder))
            .collect()
    };
    for check in rows(&found, "independence", "checks") {
        let role = check["role"].as_str().unwrap();
        let is_there = signed.iter().any(|row| row["role"] == role);
        let want = match (is_there, both(role).is_empty()) {
            (false, _) => "not_checked",
            (true, true) => "pass",
            (true, false) => "fail",
        };
        assert_eq!(check["verdict"], want, "{check}");
    }
    let versions = rows(&found, "versions", "versions");
    assert_eq!(versions.len(), 2, "{versions:?}");
    let after = row(&versions, "version", "exp-1@1.1");
    assert_ne!(after["deployed"], "never", "{after}");
    assert_eq!(after["record"], "clover report change exp-1@1.1");
    assert!(after["criteria"].as_u64().unwrap() > 0, "{after}");
    let guardrails = after["guardrails"].as_str().unwrap();
    assert!(guardrails.contains("did not pass"), "{after}");
}

fn principles(desk: &mut Desk) {
    let before = report(desk, "part11");
    let all = rows(&before, "alcoa", "principles");
    assert_eq!(all.len(), 10);
    let verdict = |name: &str| row(&all, "principle", name)["verdict"].clone();
    assert_eq!(verdict("Attributable"), "pass");
    assert_eq!(verdict("Consistent"), "pass");
    // No signature shows these.
    assert_eq!(verdict("Accurate"), "not_checked");
    assert_eq!(verdict("Available"), "not_checked");
    assert_eq!(verdict("Enduring"), "not_checked");
    desk.ok("retain set logs --days 90 --basis trial --key owner");
    let below = report(desk, "part11");
    let all = rows(&below, "alcoa", "principles");
    assert_eq!(row(&all, "principle", "Enduring")["verdict"], "fail");
    let said = desk.ok("retain set logs --days 184 --basis law --key owner");
    assert!(!said.out.contains("fewer than"), "{}", said.out);
    let now = report(desk, "part11");
    let all = rows(&now, "alcoa", "principles");
    assert_eq!(row(&all, "principle", "Enduring")["verdict"], "pass");
    let list = desk.ok("retain list --json").json();
    assert_eq!(list["data"]["classes"][0]["days"], 184);
    assert_eq!(list["data"]["classes"][0]["basis"], "law");
    assert_eq!(list["data"]["logs_kept"], true);
}

/// Drawn again here, by the words of REPORT.md alone.
fn samples(desk: &mut Desk) {
    let seed = "audit 7, 14:02";
    let args = ["report", "soc2", "--seed", seed, "--drawn", "3"];
    let args = [&args[..], &["--format", "json"]].concat();
    let found: Value = serde_json::from_str(&desk.ok_words(&args).out).unwrap();
    let kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::from([
        ("CC6.2", vec!["key.added", "key.retired"]),
        (
            "CC6.1",
            vec!["data.read", "label.sealed", "confirm.unsealed"],
        ),
    ]);
    let entries = entries(desk);
    for (code, kinds) in kinds {
        let mut ranked: Vec<(String, u64)> = entries
            .iter()
            .filter(|entry| kinds.contains(&entry["body"]["kind"].as_str().unwrap()))
            .map(|entry| {
                let id = entry["id"].as_str().unwrap();
                let bytes: Vec<u8> = (0..32)
                    .map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap())
                    .collect();
                let mut hash = Sha256::new();
                hash.update(b"clover/audit-sample/v1\0");
                hash.update(seed.as_bytes());
                hash.update(b"\0");
                hash.update(code.as_bytes());
                hash.update(b"\0");
                hash.update(&bytes);
                let rank: String = hash
                    .finalize()
                    .iter()
                    .map(|of| format!("{of:02x}"))
                    .collect();
                (rank, entry["seq"].as_u64().unwrap())
            })
            .collect();
        let population = ranked.len() as u64;
        ranked.sort();
        ranked.truncate(3);
        let sampled = rows(&found, "sampled", "sampled");
        let drawn: Vec<(String, u64)> = sampled
            .iter()
            .filter(|row| row["code"] == code)
            .map(|row| {
                let rank = row["rank"].as_str().unwrap().to_owned();
                (rank, row["seq"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(drawn, ranked, "{code}");
        let populations = rows(&found, "samples", "populations");
        assert_eq!(row(&populations, "code", code)["population"], population);
    }
    desk.refused(
        &["report", "soc2", "--drawn", "0"],
        2,
        &["0 is not in 1..=500"],
    );
}

/// The foot of every printed page names who signed; a name is no style.
fn on_paper(desk: &mut Desk) {
    desk.ok("report change exp-1@1.1 -o change.html");
    let page = std::fs::read_to_string(desk.at.join("change.html")).unwrap();
    let json = report(desk, "change exp-1@1.1");
    let signed = rows(&json, "signatures", "signatures");
    let foot = page.split("@bottom-left{content:\"").nth(1).unwrap();
    let foot = foot.split("\";width").next().unwrap();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ' ' || c == '\\';
    assert!(foot.chars().all(plain), "{foot}");
    assert_eq!(foot.contains("Signed"), !signed.is_empty(), "{foot}");
    assert_eq!(
        json["signatures"].as_array().map_or(0, Vec::len),
        signed.len()
    );
    for row in signed {
        let name = row["name"].as_str().unwrap();
        let first: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(5)
            .collect();
        assert!(foot.contains(&first), "{foot}: {name}");
    }
}
