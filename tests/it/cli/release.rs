//! `approve`, `prompt` and `deploy`, from an accepted patch to a rollback.

use std::path::Path;

use clover::event::Payload;
use clover::ground::keyfile;
use clover::ground::sign::Signer;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::ledger::LedgerOptions;
use clover::workflow::RULEBOOK;
use serde_json::Value;

use super::Desk;
use super::evidenced::extracts;
use super::renderings::drawn;
use super::renderings::evidence;
use super::says;
use crate::support;
use crate::support::decided;
use crate::support::deployed;
use crate::support::iterated;
use crate::support::planned;
use crate::support::released;
use crate::support::valued;

/// Appends an event by the rules over recorded facts: the numbers of these stories come from no rows. Gives its id.
pub(super) fn said(
    desk: &mut Desk,
    key: &str,
    payload: &Payload,
    experiment: bool,
) -> (String, u64) {
    let signer = |path: &Path| -> Signer {
        let bytes = std::fs::read(path).unwrap();
        keyfile::read_private(&bytes, None).unwrap().into()
    };
    let options = LedgerOptions {
        log_key: Some(signer(&desk.at.join(".clover/log.key"))),
        ..support::options(&desk.path(desk.state).join("clover/pins"))
    };
    let ambient = desk.ambient.clone();
    let mut ledger = Ledger::open(&desk.database(), ambient, &RULEBOOK, options).unwrap();
    let experiment = experiment.then(|| "exp-1".parse().unwrap());
    let command = Command::new(payload.clone(), experiment);
    let author = signer(&desk.key_file(key));
    let appended = ledger.append(&[command], &author).unwrap();
    (appended[0].id.0.to_hex(), appended[0].seq)
}

/// A desk on which a patch that needs two approvals was accepted; the id of the acceptance.
pub(super) fn accepted() -> (Desk, String) {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all --rulebook 17");
    for name in ["petra", "paul"] {
        desk.ok(&format!("key new {name} --role approver"));
    }
    desk.ok("key new opal --role optimizer");
    desk.ok("experiment register exp-1 --title One --purpose testing");
    let ada = "owner";
    said(&mut desk, ada, &iterated::peek_account(), false);
    let mut plan = iterated::plan("exp-1", "m-it");
    plan["iteration"]["design"]["slices"][0]["cells"][1]["stakes_micro"] = 800_000.into();
    for payload in [
        iterated::rubric_registered(iterated::RUBRIC),
        iterated::anchors(200),
        planned::registered(&plan),
    ] {
        said(&mut desk, ada, &payload, true);
    }
    for payload in decided::split_events() {
        said(&mut desk, ada, &payload, true);
    }
    let opened = iterated::opened(&plan, decided::IT, &quarter());
    said(&mut desk, ada, &opened, true);
    said(&mut desk, ada, &decided::audited(), true);
    said(&mut desk, ada, &decided::classified(), true);
    let (_, proposal) = said(&mut desk, "opal", &released::patch(), true);
    let review = released::reviewed("accepted", proposal);
    said(&mut desk, ada, &review, true);
    let hash = decided::patch_of(&released::patch()).0;
    let mut gates = Vec::new();
    for gate in decided::gates(&plan, hash, "dev") {
        gates.push(said(&mut desk, ada, &gate, true).0);
    }
    let (sealing, _) = said(&mut desk, ada, &decided::sealed(&[hash]), true);
    let (charge, _) = said(&mut desk, ada, &decided::charge(), false);
    said(&mut desk, ada, &decided::unsealed(&charge, &sealing), true);
    for gate in decided::gates(&plan, hash, "confirm") {
        gates.push(said(&mut desk, ada, &gate, true).0);
    }
    let accepted = decided::accepted(&released::patch(), 1, &gates);
    let (id, _) = said(&mut desk, ada, &accepted, true);
    said(
        &mut desk,
        ada,
        &iterated::closed(decided::IT, "accepted"),
        true,
    );
    (desk, id)
}

fn quarter() -> String {
    support::start().quarter().to_string()
}

fn approve(desk: &mut Desk, who: &str, name: &str) -> Value {
    let words = [
        "approve",
        "concise-3",
        "--comment",
        "read on forty rows",
        "--name",
        name,
    ];
    let words = [&words[..], &["--key", who, "--json"]].concat();
    desk.ok_words(&words).json()
}

#[test]
fn a_patch_is_approved_committed_read_and_taken_out() {
    let (mut desk, id) = accepted();
    let words = ["prompt", "commit", "concise-3"];
    let wording = [
        "two approvals of concise-3, because of slice domain-length long",
        "0",
    ];
    let ran = desk.refused(&words, 11, &wording);
    let another = "clover approve concise-3 --comment TEXT --name NAME --key APPROVER";
    says(
        &ran,
        &[
            "author does not count",
            "clover key new NAME --role approver",
            another,
        ],
    );
    // What is next is another person's word, until there are two.
    let first = approve(&mut desk, "petra", "Petra Weiss");
    assert_eq!(
        (&first["data"]["approvals"], &first["next"][0]),
        (&1.into(), &another.into())
    );
    let second = approve(&mut desk, "paul", "Paul Okafor");
    let commit = "clover prompt commit concise-3";
    assert_eq!(
        (&second["data"]["approvals"], &second["next"][0]),
        (&2.into(), &commit.into())
    );
    let stands = |desk: &mut Desk| {
        let listed = desk.ok("patch list --json").json();
        let all = listed["data"]["patches"].as_array().unwrap();
        let mine = all.iter().find(|of| of["patch"] == "concise-3").unwrap();
        mine["state"].clone()
    };
    assert_eq!(stands(&mut desk), "accepted");
    let before = desk.ok("status --json").json()["checkpoint"]["size"].clone();
    let committed = desk
        .ok(&format!("prompt commit {id} --key owner --json"))
        .json();
    assert_eq!(stands(&mut desk), "committed");
    assert_eq!(committed["data"]["prompt"]["version"], "1.1", "{before}");
    let again = desk.ok("prompt commit concise-3 --key owner --json").json();
    assert_eq!(again["verdict"], "already_recorded");
    let log = desk.ok("prompt log exp-1 --json").json();
    let versions = log["data"]["prompts"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(
        (&versions[0]["version"], &versions[0]["head"]),
        (&"1.1".into(), &true.into())
    );
    let kappa = decided::patch_of(&released::patch()).2;
    assert_eq!(
        (&versions[0]["kappa"], &versions[0]["approvals"]),
        (&kappa.into(), &2.into())
    );
    assert_eq!(versions[0]["parent"], versions[1]["event"]);
    let seq = versions[0]["seq"].as_u64().unwrap() - 1;
    let then = desk
        .ok(&format!("at {seq} -- prompt log exp-1 --json"))
        .json();
    assert_eq!(then["data"]["prompts"].as_array().unwrap().len(), 1);
    let told = desk.ok("prompt show exp-1@1.1").out;
    assert!(
        told.starts_with("You judge one response to one prompt."),
        "{told}"
    );
    let diff = desk.ok("prompt diff exp-1@1.0 exp-1@1.1").out;
    assert!(
        diff.contains("obligations.usefulness.penalty: absent -> 0.1"),
        "{diff}"
    );
    desk.ok("prompt checkout exp-1@1.1 --out judge");
    let yaml = std::fs::read_to_string(desk.at.join("judge/rubric.yaml")).unwrap();
    assert!(
        yaml.contains("version: \"1.1\"") && yaml.contains("penalty: 0.1"),
        "{yaml}"
    );
    let text = std::fs::read_to_string(desk.at.join("judge/prompt.txt")).unwrap();
    assert_eq!(text, told);
    let ran = desk.run("prompt checkout exp-1@1.1 --out judge");
    assert_eq!(ran.code, 4);
    says(&ran, &["judge/rubric.yaml is there already"]);
    desk.head();
}

#[test]
fn what_breaks_a_guardrail_is_rolled_back_in_the_same_append() {
    let (mut desk, _) = accepted();
    for (name, bytes) in [("model", valued::MODEL), ("rows", valued::ROWS)] {
        desk.file(name, std::str::from_utf8(bytes).unwrap());
        desk.ok(&format!("blob put {name}"));
    }
    said(&mut desk, "owner", &deployed::fitted(), true);
    desk.ok("deploy activate exp-1@1.0 --judge judge-1 --key owner");
    approve(&mut desk, "petra", "Petra Weiss");
    approve(&mut desk, "paul", HOSTILE);
    desk.ok("prompt commit concise-3 --key owner");
    desk.ok("deploy activate exp-1 --judge judge-1 --key owner");
    desk.file("good.json", &deployed::good().to_string());
    desk.file("moved.json", &deployed::moved().to_string());
    let note = planned::payload("note.recorded", &serde_json::json!({"text": "live"}));
    said(&mut desk, "owner", &note, false);
    let held = desk.ok("deploy check exp-1 --evidence good.json --by-hand trial --key owner");
    assert!(held.out.contains("anchors       pass"), "{}", held.out);
    let broken = desk.run("deploy check exp-1 --evidence moved.json --by-hand trial --key owner");
    assert_eq!(broken.code, 10, "{}{}", broken.out, broken.err);
    assert!(
        broken.out.contains("deployment.rolled_back"),
        "{}",
        broken.out
    );
    let status = desk.ok("deploy status exp-1 --json").json();
    let all = status["data"]["deployments"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert!(
        all[0]["rolled_back"].is_u64() && all[1]["running"] == true,
        "{status}"
    );
    let words = [
        "deploy",
        "activate",
        "exp-1@1.1",
        "--judge",
        "judge-1",
        "--key",
        "owner",
    ];
    desk.refused(&words, 11, &["a commit that was not rolled back"]);
    let log = desk.ok("prompt log exp-1 --json").json();
    assert_eq!(log["data"]["prompts"][1]["head"], true);
    // A version that is not there: its experiment's log shows which are; without one, the list of rubrics does.
    for (named, next) in [
        ("exp-1@9.9", "next: clover prompt log exp-1"),
        ("exp-9@1.0", "next: clover rubric list"),
    ] {
        let words = [
            "deploy", "activate", named, "--judge", "judge-1", "--key", "owner",
        ];
        desk.refused(&words, 5, &[&format!("no registered rubric {named}"), next]);
    }
    desk.head();
    reported(&mut desk);
}

/// A printed name that would be a script.
const HOSTILE: &str = "<script>alert(1)</script>";

/// Each report of the release says who did what, that it was rolled back, and what nobody did; names stay text.
fn reported(desk: &mut Desk) {
    let change = drawn(desk, "report change exp-1@1.1");
    let answer = change.json["head"]["answer"].as_str().unwrap();
    assert!(
        answer.contains("Version 1.1 of exp-1 was deployed on 2026-11-20"),
        "{answer}"
    );
    assert!(
        answer.contains("Since then it was rolled back, on 2026-11-20"),
        "{answer}"
    );
    assert!(
        answer.contains("It does not run now: version 1.0 does, deployed at seq"),
        "{answer}"
    );
    // What another version did to it stands in the record of the version that it replaced.
    let replaced = drawn(desk, "report change exp-1@1.0");
    let answer = replaced.json["head"]["answer"].as_str().unwrap();
    assert!(answer.contains("It runs now."), "{answer}");
    let since = replaced.json["head"]["since"]["rows"].as_array().unwrap();
    let acts: Vec<&str> = since
        .iter()
        .map(|row| row["act"].as_str().unwrap())
        .collect();
    assert!(
        acts.contains(&"deployed") && acts.last() == Some(&"ROLLED BACK"),
        "{acts:?}"
    );
    let people = change.json["head"]["people"]["rows"].as_array().unwrap();
    let acts: Vec<&str> = people
        .iter()
        .map(|row| row["act"].as_str().unwrap())
        .collect();
    assert_eq!(
        acts,
        [
            "proposed",
            "reviewed",
            "accepted",
            "approved",
            "approved",
            "committed",
            "deployed"
        ]
    );
    let since = change.json["head"]["since"]["rows"].as_array().unwrap();
    assert_eq!(since.last().unwrap()["act"], "ROLLED BACK");
    let separation = change.json["head"]["separation"][0]["text"]
        .as_str()
        .unwrap();
    assert!(
        separation.contains("concise-3 was proposed by "),
        "{separation}"
    );
    assert!(
        separation.contains("approved by paul and petra"),
        "{separation}"
    );
    let signed = &change.json["parts"][2]["tables"][0]["rows"];
    assert_eq!(signed[0]["name"], "Petra Weiss");
    assert_eq!(
        (&signed[1]["name"], &signed[1]["meaning"]),
        (&HOSTILE.into(), &"approve".into())
    );
    // Where a long word may break, no word is added.
    let html = change.html.replace("<wbr>", "");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains("<script>alert"));
    assert!(change.md.contains("\\<script\\>alert(1)"), "{}", change.md);
    // What a patch was accepted for is not told without what became of it.
    desk.ok("report iteration -o it.html");
    let html = std::fs::read_to_string(desk.at.join("it.html")).unwrap();
    assert!(html.contains("Since then it was rolled back, on 2026-11-20"));
    assert!(!html.contains("<script"));
    let facts = desk.ok("report iteration --json").json()["data"].clone();
    assert!(
        facts["answer"].as_str().unwrap().contains("rolled back"),
        "{facts}"
    );
    // Before the breach nothing was rolled back.
    let seq = since.last().unwrap()["events"][0].as_u64().unwrap();
    let then = desk
        .ok(&format!("at {} -- report change exp-1@1.1", seq - 2))
        .out;
    assert!(!then.contains("rolled back"), "{then}");
    let whole = drawn(desk, "report experiment exp-1");
    let rows = whole.json["parts"][0]["tables"][0]["rows"]
        .as_array()
        .unwrap();
    let of = |what: &str| rows.iter().find(|row| row["what"] == what).unwrap();
    assert_eq!(
        (&of("iterations")["begun"], &of("iterations")["ended"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (
            &of("proposed patches")["begun"],
            &of("proposed patches")["open"]
        ),
        (&1.into(), &0.into())
    );
    evidence(desk);
    let size = desk.ok("status --json").json()["checkpoint"]["size"]
        .as_u64()
        .unwrap();
    let trail = drawn(desk, "report trail");
    let rows = trail.json["parts"][0]["tables"][0]["rows"]
        .as_array()
        .unwrap();
    assert!(rows.len() as u64 <= size, "{}", rows.len());
    assert_eq!(rows.last().unwrap()["kind"], "deployment.rolled_back");
    desk.ok("report trail --kind approval.granted -o trail.csv");
    let csv = std::fs::read_to_string(desk.at.join("trail.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(
        csv.starts_with("seq,recorded_at,kind,experiment,holder,roles,author,event,leaf,says\r\n")
    );
    let words = ["report", "change", "exp-1@1.1", "-o", "change.csv"];
    desk.refused(&words, 2, &["only a trail and dates are written as CSV"]);
    let words = ["report", "trail", "--from", "9", "--to", "3"];
    desk.refused(
        &words,
        2,
        &["the range is empty: --from is entry 9, --to entry 3"],
    );
    approved_late(desk);
    extracts(desk);
}

/// Whoever approves after the deployment has no part in what led there: the record says when, and whose key it was.
fn approved_late(desk: &mut Desk) {
    desk.ok("key new bea --role approver");
    approve(desk, "bea", "Petra Weiss");
    let change = drawn(desk, "report change exp-1@1.1");
    let separation = change.json["head"]["separation"][0]["text"].as_str();
    let separation = separation.unwrap();
    let said = "approved by paul and petra, committed by Ada, deployed by Ada, approved AFTER it was deployed by bea";
    assert!(separation.contains(said), "{separation}");
    let rows = change.json["parts"][2]["tables"][0]["rows"].as_array();
    let late = rows.unwrap().last().unwrap();
    assert_eq!(late["name"], "Petra Weiss");
    assert_eq!(
        (&late["holder"], &late["order"]),
        (&"bea".into(), &"AFTER it was deployed".into())
    );
}
