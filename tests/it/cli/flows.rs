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
    for (family, asks) in [
        ("invoices", 1),
        ("replies", 1),
        ("tables", 1),
        ("tickets", 2),
    ] {
        let mut desk = begun(family);
        let checked = desk.ok("workflow check shop/workflow.json --json").json();
        assert_eq!(checked["data"]["llm_steps"], asks, "{family}");
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
        assert_eq!(ran["data"]["calls"], 20 * asks);
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

/// Two items that ask the same are told apart, whichever runs, and in whatever order.
#[test]
fn recorded_answers_are_those_of_their_item() {
    let mut desk = Desk::new();
    desk.file(
        "w.json",
        r#"{"ir":"wf/1","inputs":["x"],"steps":[{"id":"read","kind":"llm","prompt":{"user":"Read {{x.text}}"},"out":{"as":"json","schema":{"type":"object"}},"reads":["x.text"],"writes":"y"}],"return":"y"}"#,
    );
    let item = |id: &str, total: u64| {
        format!(
            r#"{{"id":"{id}","input":{{"x":{{"text":"12 euros"}}}},"sim":{{"answer":{{"total":{total}}}}}}}"#
        ) + "\n"
    };
    desk.file("in.jsonl", &(item("a", 12) + &item("b", 13)));
    let run = "workflow run w.json --json --input";
    let first = desk
        .ok(&format!(
            "{run} in.jsonl --executor sim --record answers.jsonl"
        ))
        .json();
    let items = &first["data"]["items"];
    assert_ne!(items[0]["output"], items[1]["output"], "{items}");
    let one = format!("{run} in.jsonl --executor table=answers.jsonl --item b");
    assert_eq!(desk.ok(&one).json()["data"]["items"][0], items[1]);
    desk.file("turned.jsonl", &(item("b", 13) + &item("a", 12)));
    let turned = desk
        .ok(&format!(
            "{run} turned.jsonl --executor table=answers.jsonl"
        ))
        .json();
    assert_eq!(turned["data"]["items"][0], items[1]);
    assert_eq!(turned["data"]["items"][1], items[0]);
    // One id names one item.
    desk.file("twice.jsonl", &(item("a", 12) + &item("a", 13)));
    let twice = desk.run(&format!("{run} twice.jsonl --executor sim"));
    assert_eq!(twice.code, 4, "{}", twice.err);
    says(&twice, &["twice.jsonl:2", "stands twice"]);
    // And the first line of a set is read.
    desk.file(
        "set.jsonl",
        &("{\"task_set\":null}\n".to_owned() + &item("a", 12)),
    );
    let set = desk.run(&format!("{run} set.jsonl --executor sim"));
    assert_eq!(set.code, 4, "{}", set.err);
    says(&set, &["set.jsonl:1", "wf-tasks/1"]);
}

/// A return before a hard check leaves the check open, and the run is not clean.
#[test]
fn a_hard_check_that_never_ran_is_not_kept() {
    let mut desk = Desk::new();
    desk.file(
        "w.json",
        r#"{"ir":"wf/1","inputs":["x"],"steps":[{"id":"early","kind":"return","path":"x"},{"id":"positive","kind":"check","expr":{"op":"gt","a":{"path":"x.total"},"b":{"const":0}},"hard":true}],"return":"x"}"#,
    );
    desk.file(
        "in.jsonl",
        "{\"id\":\"a\",\"input\":{\"x\":{\"total\":-5}}}\n",
    );
    desk.file("none.jsonl", "");
    let ran = desk.run("workflow run w.json --input in.jsonl --executor table=none.jsonl --json");
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    let data = ran.json()["data"].clone();
    assert_eq!(
        data["items"][0]["unchecked"],
        serde_json::json!(["positive"])
    );
    assert_eq!(data["violated"], 1);
    let ran = desk.run("workflow run w.json --input in.jsonl --executor table=none.jsonl");
    assert!(ran.out.contains("NOT CHECKED positive"), "{}", ran.out);
}

#[test]
fn a_drawing_is_written_over_nothing() {
    let mut desk = begun("invoices");
    let before = std::fs::read(desk.at.join("shop/workflow.json")).unwrap();
    let ran = desk.run("workflow show shop/workflow.json -o shop/workflow.json");
    assert_eq!(ran.code, 2, "{}", ran.err);
    desk.file("old.svg", "kept");
    let ran = desk.run("workflow show shop/workflow.json -o old.svg");
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert_eq!(
        std::fs::read(desk.at.join("shop/workflow.json")).unwrap(),
        before
    );
    assert_eq!(
        std::fs::read_to_string(desk.at.join("old.svg")).unwrap(),
        "kept"
    );
}
