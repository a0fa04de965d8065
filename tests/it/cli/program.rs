//! An iteration whose judge is a program: asked anew for the re-score and by the battery, and no worse off for programs that
//! die or talk nonsense.

use clover::workflow::simulate::shipped::ShippedDataset;
use clover::workflow::simulate::shipped::shipped;
use serde_json::Value;

use super::Desk;
use super::shipped::PEEKS;
use super::shipped::lay_out;
use super::shipped::opening;
use super::shipped::plan;
use crate::support::verifiers;

/// As its mode file says, it dies, hangs or talks nonsense; else it pays for each asked term that the answer has, and for anything that looks like an address.
const JUDGE: &str = r#"import json, os, sys, time
mode = open("mode.txt").read() if os.path.exists("mode.txt") else ""
if mode == "dead":
    sys.exit(3)
for line in sys.stdin:
    if mode == "hangs":
        time.sleep(600)
    if mode == "talks":
        print("well", flush=True)
        continue
    ask = json.loads(line)
    answer = ask["response"].lower()
    terms = ask["prompt"].split(": ")[1].rstrip(".").split(", ")
    micro = 70000 * sum(term in answer for term in terms) + 300000 * ("http" in answer)
    print('{"id":%d,"score":%.6f}' % (ask["id"], micro / 1e6), flush=True)
"#;

/// The same in Rust, so that the files say what the program says.
fn score(row: &Value) -> Value {
    let text = |name: &str| row[name].as_str().unwrap().to_lowercase();
    let (prompt, answer) = (text("prompt"), text("response"));
    let terms = prompt.split(": ").nth(1).unwrap();
    let terms = terms.trim_end_matches('.').split(", ");
    let covered = terms.filter(|term| answer.contains(term)).count();
    let hundredths = 7 * covered + 30 * usize::from(answer.contains("http"));
    serde_json::from_str(&format!("{}.{:02}", hundredths / 100, hundredths % 100)).unwrap()
}

fn rescored(desk: &Desk, path: &str) {
    let path = desk.at.join(path);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row["judge_score"] = score(&row);
        format!("{row}\n")
    });
    std::fs::write(&path, lines.collect::<String>()).unwrap();
}

#[test]
fn a_program_judges_an_iteration_to_its_verdict() {
    if !verifiers::python() {
        return;
    }
    let [mended, _] = shipped();
    let of = ShippedDataset {
        name: "program",
        ..mended
    };
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok_words(&["record", "budget.opened", "--data", PEEKS]);
    lay_out(&desk.at, &of);
    for file in [
        "responses/base",
        "anchors/anchor_high",
        "anchors/anchor_low",
    ] {
        rescored(&desk, &format!("program/{file}_responses.jsonl"));
    }
    desk.file("judge.py", JUDGE);
    desk.file("other.sh", "exit 3\n");
    let mut plan = plan(&of);
    plan["iteration"]["design"]["judge"] = "prog".into();
    desk.file("program.yaml", &plan.to_string());
    for line in opening(&of) {
        let line = line.replace("--judge builtin", "--judge prog");
        let line = if line.starts_with("judge run") {
            format!("{line} --model prog-1 -- python3 judge.py")
        } else {
            line
        };
        desk.ok(&line);
    }
    let head = desk.head();
    for (mode, line, parts) in [
        (
            "",
            "iterate score it-program",
            ["judge prog is a program", "-- COMMAND"],
        ),
        (
            "dead",
            "iterate score it-program -- python3 judge.py",
            ["exit status: 3", "next: "],
        ),
        (
            "talks",
            "iterate score it-program -- python3 judge.py",
            ["well", "next: "],
        ),
        // Another program is another judge.
        (
            "",
            "iterate score it-program -- sh other.sh",
            ["expected the program that it was registered with", "next: "],
        ),
        (
            "",
            "iterate score it-program -- ./no-such-program",
            ["no file ./no-such-program", "next: "],
        ),
    ] {
        desk.file("mode.txt", mode);
        let ran = desk.run(line);
        assert_ne!(ran.code, 0, "{line}: {}", ran.out);
        super::says(&ran, &parts);
        assert_eq!(desk.head(), head, "{line}");
    }
    desk.file("mode.txt", "");
    let ran = desk.ok("iterate run it-program --to cards -- python3 judge.py");
    assert!(ran.out.contains("CARDS"), "{}", ran.out);
    desk.ok("iterate propose it-program program/patch.yaml");
    // The battery asks the program too.
    let without = desk.run("iterate gate it-program");
    assert_ne!(without.code, 0, "{}", without.out);
    // A program that hangs is waited for as long as one says; then the step ends, and no gate was evaluated.
    desk.file("mode.txt", "hangs");
    let hung = desk.run("iterate gate it-program --timeout 1 -- python3 judge.py");
    desk.file("mode.txt", "");
    assert_eq!(hung.code, 75, "{}{}", hung.out, hung.err);
    super::says(
        &hung,
        &["the battery: no answer within 1 seconds; nothing of it was recorded"],
    );
    for kind in ["battery.evaluated", "gate.evaluated"] {
        let said = desk.ok(&format!("log --kind {kind} --json")).json();
        assert_eq!(said["data"]["entries"], serde_json::json!([]), "{kind}");
    }
    let ran = desk.run("iterate run it-program --yes -- python3 judge.py");
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    println!("{}", ran.out);
    let shown = desk.ok("iterate show it-program --json").json()["data"].clone();
    assert!(shown["outcome"].is_string(), "{shown:#}");
    let gates = shown["candidates"][0]["dev"].as_array().unwrap();
    assert_eq!(gates.len(), 8, "{shown:#}");
    // The plan claims no environment: P6 has nothing to test.
    for gate in gates.iter().filter(|gate| gate["gate"] != "p6") {
        assert_ne!(gate["recommended"], "not_checked", "{gate:#}");
    }
    desk.replayed("");
    desk.ok("verify");
}
