//! `clover rubric`, `clover patch`, `clover iterate`: from a document to a proposal, and errors at their place.

use super::Desk;
use crate::support::iterated;
use crate::support::iterated::PATCH;
use crate::support::iterated::RUBRIC;

/// A desk with an arbiter, an optimizer, a rubric and an open iteration.
fn begun() -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new ben --role arbiter");
    desk.ok("key new opal --role optimizer");
    let peeks = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", peeks]);
    let file = desk.file("rubric.yaml", RUBRIC);
    desk.ok(&format!("rubric register {file} --experiment exp-1"));
    let anchors = serde_json::to_value(match iterated::anchors(200) {
        clover::event::Payload::AnchorSetRegistered(said) => said,
        other => panic!("{other:?}"),
    });
    let anchors = anchors.unwrap().to_string();
    desk.ok_words(&[
        "record",
        "anchor_set.registered",
        "--experiment",
        "exp-1",
        "--data",
        &anchors,
    ]);
    // JSON is YAML.
    let plan = desk.file("it.yaml", &iterated::plan("exp-1", "m-it").to_string());
    desk.ok(&format!("prereg sign {plan}"));
    let opened = desk.ok("iterate open it-1 --manifest m-it");
    assert!(
        opened.out.contains("iteration it-1  parameters "),
        "{}",
        opened.out
    );
    desk
}

#[test]
fn a_patch_is_checked_proposed_listed_and_withdrawn() {
    let mut desk = begun();
    let file = desk.file("patch.yaml", PATCH);
    let checked = desk
        .ok(&format!("patch check {file} --iteration it-1 --json"))
        .json();
    let data = &checked["data"];
    assert_eq!(
        (&data["kappa"], &data["needs_rescore"]),
        (&3.into(), &serde_json::Value::Null)
    );
    // source: schema/RUBRIC.md
    let hash = "1f12f30871fb985a3063428e3b39adcccbca0ebc2eb6938e9bf6ebc848fd0f37";
    assert_eq!(data["patch_hash"], hash);
    let alone = desk.ok(&format!("patch check {file} --rubric rubric.yaml"));
    assert!(alone.out.contains("3 (+3 -0 tokens"), "{}", alone.out);
    let diff = desk.ok(&format!("patch diff {file} --rubric exp-1")).out;
    assert!(
        diff.contains("allowed_domains\n  - [") && diff.contains("\"bmj.com\""),
        "{diff}"
    );
    desk.ok(&format!("patch propose {file} --iteration it-1"));
    let again = desk
        .ok(&format!("patch propose {file} --iteration it-1 --json"))
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    let listed = desk.ok("patch list --iteration it-1").out;
    assert!(
        listed.contains("len-cite-guard-001") && listed.contains("proposed"),
        "{listed}"
    );
    desk.ok_words(&[
        "patch",
        "withdraw",
        "len-cite-guard-001",
        "--reason",
        "another",
    ]);
    let listed = desk.ok("patch list --json").json();
    assert_eq!(listed["data"]["patches"][0]["state"], "withdrawn");
    let iterations = desk.ok("iterate list").out;
    assert!(iterations.contains("synthesis"), "{iterations}");
    let parts = ["an accepted patch", "none"];
    let close = [
        "iterate",
        "close",
        "it-1",
        "--outcome",
        "accepted",
        "--reason",
        "r",
    ];
    desk.refused(&close, 11, &parts);
    desk.ok_words(&[
        "iterate",
        "close",
        "it-1",
        "--outcome",
        "no-candidate",
        "--reason",
        "r",
        "--yes",
    ]);
    let parts = ["no open iteration", "closed at seq"];
    let late = PATCH.replace("guard-001", "guard-002");
    let file = desk.file("late.yaml", &late);
    desk.refused(
        &["patch", "propose", &file, "--iteration", "it-1"],
        11,
        &parts[1..],
    );
    desk.ok("iterate open it-2 --manifest m-it");
    desk.ok("verify");
}

#[test]
fn errors_name_file_line_and_field() {
    let mut desk = begun();
    for (from, to, part) in [
        (
            "family: \"ev",
            "family: \"xv",
            "bad.yaml:2:11: patch.family: expected one of",
        ),
        (
            "bmj.com",
            "BMJ.com",
            "bad.yaml:10:25: patch.changes.obligations.factual_adequacy",
        ),
        ("if_tokens_gt: 500", "if_tokens_gt: 400", "(cross_family)"),
        (
            "max_tokens_added: 150",
            "max_tokens_added: 2",
            "bad.yaml:6:5: patch.changes: expected tokens",
        ),
        (
            "rationale:",
            "reason:",
            "bad.yaml:4:11: patch.reason: expected family",
        ),
    ] {
        let file = desk.file("bad.yaml", &PATCH.replacen(from, to, 1));
        desk.refused(
            &["patch", "check", &file, "--iteration", "it-1"],
            4,
            &[part],
        );
        desk.refused(
            &["patch", "propose", &file, "--iteration", "it-1"],
            4,
            &[part],
        );
    }
    let file = desk.file("bad.yaml", &RUBRIC.replace("0.35", "1.35"));
    let register = ["rubric", "register", &file, "--experiment", "exp-1"];
    let part = "bad.yaml:10:27: rubric.obligations.factual_adequacy.verification.mismatch_penalty: expected 0 to 1";
    desk.refused(&register, 4, &[part]);
    let good = PATCH.replace("guard-001", "guard-009");
    let file = desk.file("good.yaml", &good);
    desk.refused(
        &["patch", "check", &file, "--iteration", "it-9"],
        5,
        &["no iteration it-9"],
    );
    desk.refused(
        &["iterate", "open", "it-3", "--manifest", "m-9"],
        5,
        &["no manifest m-9"],
    );
    desk.refused(
        &["rubric", "show", "exp-9"],
        5,
        &["no file, and no registered rubric exp-9"],
    );
}

#[test]
fn rubrics_are_shown_compared_and_counted() {
    let mut desk = begun();
    let shown = desk.ok("rubric show exp-1").out;
    assert!(
        shown.contains("# hash de94340a7fcd") && shown.contains("# 9 rules can fire"),
        "{shown}"
    );
    let again = desk.file("again.yaml", &shown);
    assert_eq!(
        desk.ok(&format!("rubric diff exp-1 {again}")).out,
        "the same\n"
    );
    let next = desk.file("next.yaml", &RUBRIC.replace("0.35", "0.4"));
    let diff = desk.ok(&format!("rubric diff exp-1@1.0 {next}")).out;
    assert!(
        diff.contains("mismatch_penalty: 0.35 -> 0.4") && diff.contains("code length 2"),
        "{diff}"
    );
    assert!(
        desk.ok("rubric show exp-1 --prompt")
            .out
            .contains("Abstention: if critical")
    );
    assert!(desk.ok("rubric list").out.contains("1.0"));
    let evidence = clover::rubric::evidence::Evidence::default();
    let evidence = String::from_utf8(evidence.to_bytes()).unwrap();
    let raw = format!("{{\"base\":0.9,\"evidence\":{evidence}}}\n");
    let raw = desk.file("raw.jsonl", &raw);
    let dead = desk
        .ok(&format!("rubric dead exp-1 --raw {raw} --raw {raw} --json"))
        .json();
    let rules = dead["data"]["rules"].as_array().unwrap();
    let standing = |path: &str| {
        let mut all = rules.iter();
        all.find(|rule| rule["path"] == path).unwrap()["standing"].clone()
    };
    assert_eq!(standing("guards.tool_trace_consistency"), "dead");
    assert_eq!(
        standing("obligations.risk_accounting.requires_stakeholders"),
        "live"
    );
    desk.refused(
        &["rubric", "dead", "exp-1"],
        5,
        &["no iteration of exp-1 has read rows", "clover iterate list"],
    );
    let bad = desk.file("raw.jsonl", "\n{\"base\":0.9}\n");
    desk.refused(
        &["rubric", "dead", "exp-1", "--raw", &bad],
        4,
        &["raw.jsonl:2:", "evidence"],
    );
}

#[test]
fn an_iteration_is_reported_published_and_counted() {
    let mut desk = begun();
    let summary = desk.ok("report iteration").out;
    assert!(
        summary.contains("iteration it-1  experiment exp-1"),
        "{summary}"
    );
    assert!(
        summary.contains("not shown: Decision: the outcome (the iteration is still open)"),
        "{summary}"
    );
    assert!(
        summary.lines().all(|line| line.chars().count() <= 100),
        "{summary}"
    );
    for name in ["r.html", "r.md", "r.json"] {
        desk.ok(&format!("report iteration it-1 -o {name}"));
    }
    let json = std::fs::read(desk.at.join("r.json")).unwrap();
    assert!(json.starts_with(b"{\"events\":[{"));
    let text = desk.ok("report iteration it-1 --format md").out;
    assert!(
        text.starts_with("# Report of an iteration: it-1\n"),
        "{text}"
    );
    desk.refused(&["report", "iteration", "it-9"], 5, &["no iteration it-9"]);
    desk.refused(
        &["report", "iteration", "-o", "r.pdf"],
        2,
        &["expected a name in .html, .md or .json"],
    );
    // What is still open is not published.
    desk.refused(
        &["report", "iteration", "it-1", "--publish"],
        11,
        &["an iteration that is closed or decided"],
    );
    desk.ok("iterate close it-1 --outcome stopped --reason enough --yes");
    let status = desk.ok("campaign status").out;
    assert!(
        status.contains("go on: iteration 2 is next (0 of 2 quiet ones in a row)"),
        "{status}"
    );
    assert!(
        status.contains("peeks  3 of 3 left in confirm-peeks"),
        "{status}"
    );
    let status = desk.ok("campaign status exp-1 --json").json();
    assert_eq!(status["data"]["stop"], false);
    assert_eq!(status["data"]["iterations"][0]["outcome"], "stopped");
    let dry = desk.ok("report iteration it-1 --publish --dry-run");
    assert!(dry.out.contains("report.published"), "{}", dry.out);
    let published = desk.ok("report iteration it-1 --publish --json").json();
    let hash = published["data"]["bundle_hash"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = desk.ok("report list --json").json();
    let listed = &listed["data"]["reports"][0];
    assert_eq!(listed["bundle_hash"], hash.as_str());
    let seq = listed["seq"].as_u64().unwrap();
    let shown = desk.ok(&format!("report show {seq} -o kept.json")).out;
    assert!(shown.contains(&format!("{hash}, as signed")), "{shown}");
    desk.refused(&["report", "show", "0"], 2, &["not report.published"]);
    // Programs get what was signed too, where they ask for it.
    let through = listed["through_seq"].as_u64().unwrap().to_string();
    let past = ["at", &through, "--", "report", "iteration", "it-1"];
    let words = [&past[..], &["--json"]].concat();
    let facts = desk.ok_words(&words).json()["data"].clone();
    assert_eq!(facts["bundle_hash"], hash.as_str());
    assert!(facts.get("document").is_none(), "{facts}");
    let words = [&words[..], &["--format", "json"]].concat();
    let facts = desk.ok_words(&words).json()["data"].clone();
    let kept = std::fs::read_to_string(desk.at.join("kept.json")).unwrap();
    assert_eq!(facts["document"], kept);
    // Whoever reads the same entries writes the same bytes.
    desk.ok_words(&[&past[..], &["-o", "again.json"]].concat());
    let read = |name: &str| std::fs::read(desk.at.join(name)).unwrap();
    assert!(!read("kept.json").is_empty());
    assert_eq!(read("kept.json"), read("again.json"));
    let replayed = desk.ok(&format!("replay {seq}")).out;
    assert!(replayed.contains("identical"), "{replayed}");
}
