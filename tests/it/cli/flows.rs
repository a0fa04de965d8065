//! `clover workflow`: a document is checked at its place, runs say what each step did, and recorded answers repeat them.

use super::Desk;
use super::says;

/// A desk with the files of a family in `shop`.
fn begun(family: &str) -> Desk {
    let mut desk = Desk::new();
    desk.ok(&format!("workflow new {family} -o shop"));
    desk
}

#[test]
fn every_family_begins_is_checked_shown_and_run() {
    for family in ["invoices", "replies", "tables"] {
        let mut desk = begun(family);
        let checked = desk.ok("workflow check shop/workflow.json --json").json();
        assert_eq!(checked["data"]["llm_steps"], 1, "{family}");
        let shown = desk.ok("workflow show shop/workflow.json -o shop.svg").out;
        assert!(
            shown.contains("asks a model") && shown.contains("shop.svg"),
            "{shown}"
        );
        let source = desk.ok("workflow show shop/workflow.json --source").out;
        let printed = desk.file("printed.json", &source);
        let again = desk.ok(&format!("workflow check {printed} --json")).json();
        assert_eq!(again["data"]["workflow"], checked["data"]["workflow"]);
        assert_eq!(
            desk.ok(&format!("workflow diff shop/workflow.json {printed}"))
                .out,
            "the same\n"
        );
        let run = "workflow run shop/workflow.json --input shop/local.jsonl --executor sim --json";
        let ran = desk.ok(run).json();
        assert_eq!(ran["data"]["items"].as_array().unwrap().len(), 20);
        assert_eq!(ran["data"]["calls"], 20);
        let refused = desk.run(&format!("workflow new {family} -o shop"));
        assert_eq!(refused.code, 11);
    }
}

#[test]
fn recorded_answers_give_the_same_traces_and_no_others() {
    let mut desk = begun("invoices");
    let run = "workflow run shop/workflow.json --input shop/local.jsonl --json --executor";
    let first = desk.ok(&format!("{run} sim --record answers.jsonl")).json();
    let again = desk.ok(&format!("{run} table=answers.jsonl")).json();
    assert_eq!(first["data"]["items"], again["data"]["items"]);
    let general = "workflow run shop/workflow.json --input shop/general.jsonl --executor";
    let missing = desk.run(&format!("{general} table=answers.jsonl"));
    assert_eq!(missing.code, 4);
    says(
        &missing,
        &["item \"general-0\"", "not recorded", "step draft"],
    );
    let one = desk.ok(&format!("{general} sim --item general-3")).out;
    assert!(
        one.contains("draft") && one.contains("trace") && one.contains("general-3"),
        "{one}"
    );
    assert_eq!(desk.run(&format!("{general} sim --item nobody")).code, 4);
    assert_eq!(desk.run(&format!("{general} http")).code, 2);
}

#[test]
fn what_is_wrong_has_its_file_line_and_column() {
    let mut desk = begun("invoices");
    let text = std::fs::read_to_string(desk.at.join("shop/workflow.json")).unwrap();
    let file = desk.file(
        "bad.json",
        &text.replace("\"reads\": [\"x.text\"]", "\"reads\": [\"z.text\"]"),
    );
    let bad = desk.run(&format!("workflow check {file} --json")).json();
    let line = 1 + text
        .lines()
        .position(|line| line.contains("\"reads\""))
        .unwrap();
    assert_eq!(
        (&bad["data"]["line"], &bad["exit"]),
        (&line.into(), &4.into()),
        "{bad}"
    );
    assert_eq!(bad["data"]["column"], 17);
    assert_eq!(bad["data"]["field"], "steps[0].reads[0]");
    let lines = desk.file(
        "lines.jsonl",
        "{\"input\":{}}\n\n{\"input\":{},\"more\":1}\n",
    );
    let bad = desk.run(&format!(
        "workflow run shop/workflow.json --input {lines} --executor sim"
    ));
    says(
        &bad,
        &["lines.jsonl:3:13: more: expected one of id, input, truth, sim"],
    );
    let lines = desk.file("plain.jsonl", "{\"input\":{}}\n");
    let bad = desk.run(&format!(
        "workflow run shop/workflow.json --input {lines} --executor sim"
    ));
    says(&bad, &["no member sim"]);
    // A run that crashes is told with its step and reason.
    let lines = desk.file(
        "short.jsonl",
        "{\"input\":{\"x\":{},\"c\":{}},\"sim\":{\"answer\":1}}\n",
    );
    let bad = desk.run(&format!(
        "workflow run shop/workflow.json --input {lines} --executor sim"
    ));
    assert_eq!(bad.code, 10, "{}", bad.out);
    assert!(
        bad.out.contains("draft: nothing stands at x.text"),
        "{}",
        bad.out
    );
    let patch = desk.ok(&format!("workflow diff shop/workflow.json {} --patch", {
        let text = text.replace("You read invoices.", "You read bills.");
        desk.file("other.json", &text)
    }));
    let patch: serde_json::Value = serde_json::from_str(&patch.out).unwrap();
    assert_eq!(patch[0]["path"], "/steps/0/prompt/system");
}
