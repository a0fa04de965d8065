//! What a program finds beside its score: under a schema of its own, read by rubrics where it names a feature, private where it
//! does not. And what a judge shares with those that it judges.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;

const ROWS: usize = 40;

/// A person with every role, an experiment, and rows of which every third says something false.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/judge --holder Ada --roles all");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing");
    let line = |at: usize| {
        let row = json!({"prompt_id": format!("q{at:02}"), "prompt": format!("Why {at}?"),
                         "response": format!("Stone number {at} {}.", if at.is_multiple_of(3) { "floats" } else { "sinks" })});
        format!("{row}\n")
    };
    let rows: String = (0..ROWS).map(line).collect();
    desk.file("base_responses.jsonl", &rows);
    let known = json!({"evidence": {"schema": "acme/1", "fields": {"factual_error": "bool", "quote": "text"}}});
    desk.file("known.json", &known.to_string());
    desk
}

/// A judge that finds what floats, and quotes it; `SAID` is what it says of the ask `id` with the answer `text`.
fn judge(desk: &Desk, said: &str) {
    let script = format!(
        "while IFS= read -r line; do\n  id=${{line#*\\\"id\\\":}}; id=${{id%%,*}}\n  case $line in *floats*) false=true;; *) \
         false=false;; esac\n  {said}\ndone\n"
    );
    desk.file("judge.sh", &script);
}

const GOOD: &str = r#"echo "{\"id\":$id,\"score\":0.5,\"evidence\":{\"factual_error\":$false,\"quote\":\"a secret stone\"}}""#;

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let list = desk.ok(&format!("log --kind {kind} --json")).json();
    list["data"]["entries"].as_array().unwrap().clone()
}

fn data(desk: &mut Desk, entry: &Value) -> Value {
    let body = desk.ok(&format!("show {} --body", entry["seq"])).out;
    serde_json::from_str::<Value>(&body).unwrap()["data"].clone()
}

fn run(verb: &str) -> String {
    format!(
        "judge {verb} --judge llm --rows base_responses.jsonl --known known.json -- sh judge.sh"
    )
}

#[test]
fn evidence_of_a_program_is_kept_under_its_schema() {
    let mut desk = desk();
    judge(&desk, GOOD);
    desk.ok(&run("run"));
    // Then the schema is named, and its file is on record.
    let registered = entries(&mut desk, "judge.registered");
    let registered = data(&mut desk, &registered[0]);
    assert_eq!(registered["evidence_schema"], "evidence/1+acme/1");
    let known = desk.ok(&format!(
        "blob get {}",
        registered["known"]["blake3"].as_str().unwrap()
    ));
    assert!(
        known.out.contains("\"factual_error\":\"bool\""),
        "{}",
        known.out
    );
    // Then rubrics read what it found of a feature, from the record of each row.
    let found = entries(&mut desk, "evidence.recorded");
    let mut records = Vec::new();
    for entry in &found {
        let said = data(&mut desk, entry);
        let blob = said["records"]["blake3"].as_str().unwrap().to_owned();
        let lines = desk.ok(&format!("blob get {blob}")).out;
        assert!(!lines.contains("secret"), "{lines}");
        records.extend(
            lines
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    assert_eq!(records.len(), ROWS);
    for record in &records {
        let at: usize = record["item"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!(
            record["evidence"]["factual_error"],
            at.is_multiple_of(3),
            "{record}"
        );
    }
    // Then all that it returned is private, and ends with its subject.
    let notes = entries(&mut desk, "note.recorded");
    let note = data(&mut desk, &notes[0]);
    let (_, subject) = note["text"]
        .as_str()
        .unwrap()
        .split_once("private, subject ")
        .unwrap();
    let blob = note["blob"]["blake3"].as_str().unwrap();
    let get = format!("blob get {blob} --subject {subject} --key owner");
    let opened = desk.ok(&get).out;
    let line = "\"evidence\":{\"factual_error\":true,\"quote\":\"a secret stone\"}";
    assert!(opened.contains(line), "{opened}");
    desk.ok(&format!("erase {subject} --basis request --yes --key cem"));
    assert_eq!(desk.run(&get).code, 5);
    // When it is asked again, then it finds the same; another finding is a mismatch.
    let again = desk.ok(&run("rescore-check --json"));
    assert_eq!(again.json()["verdict"], "pass");
    desk.ok("verify");
    desk.ok("verify --recompute");
}

#[test]
fn evidence_that_is_not_as_registered_is_named_by_ask_and_field() {
    let mut desk = desk();
    for (said, expected) in [
        (
            GOOD.replace("\\\"a secret stone\\\"", "3"),
            "the answer to ask 1: evidence.quote: expected a text of at most 10,000 characters, found 3",
        ),
        (
            GOOD.replace("quote", "quotes"),
            "evidence.quotes: expected only fields of acme/1: factual_error, quote",
        ),
        (
            r#"echo "{\"id\":$id,\"score\":0.5}""#.to_owned(),
            "the answer to ask 1: evidence: expected an object, found none",
        ),
    ] {
        judge(&desk, &said);
        let ran = desk.run(&run("run"));
        assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
        says(&ran, &["q00: ", expected]);
        assert_eq!(entries(&mut desk, "score.recorded").len(), 0);
        // A mended program is another judge: each is registered under its name before it answers.
        desk = self::desk();
    }
    judge(&desk, GOOD);
    let unknown = desk.run(&run("run").replace(" --known known.json", ""));
    assert_eq!(unknown.code, 4, "{}{}", unknown.out, unknown.err);
    says(
        &unknown,
        &["evidence: expected none, as the file of --known registers no field of it"],
    );
    desk.file(
        "known.json",
        "{\"evidence\":{\"schema\":\"acme/1\",\"fields\":{\"concise\":\"text\"}}}",
    );
    let schema = desk.run(&run("run"));
    assert_eq!(schema.code, 4, "{}{}", schema.out, schema.err);
    says(
        &schema,
        &[
            "known.json",
            "evidence.fields.concise: rubrics read it; expected bool, found text",
        ],
    );
}

#[test]
fn the_key_of_the_scorer_is_another_than_that_of_whoever_runs() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new second --role scorer --machine");
    desk.file(
        "base_responses.jsonl",
        "{\"prompt_id\":\"q1\",\"prompt\":\"Why?\",\"response\":\"So.\"}\n",
    );
    let line = "judge run --judge llm --builtin --rows base_responses.jsonl";
    // Two keys could sign: the option is named, and nothing is recorded.
    let head = desk.head();
    let several = desk.run(&format!("{line} --key owner"));
    assert_eq!(several.code, 2, "{}{}", several.out, several.err);
    says(&several, &["several of your keys may sign", "--scorer"]);
    assert_eq!(desk.head(), head);
    desk.ok(&format!("{line} --key owner --scorer second"));
    let wrong =
        desk.run("judge run --judge other --builtin --rows base_responses.jsonl --scorer cem");
    assert_eq!(wrong.code, 11, "{}{}", wrong.out, wrong.err);
    says(&wrong, &["--scorer cem has custodian"]);
    // An import takes it too; where one key alone fits, that one is found beside --key.
    desk.file(
        "cje_responses.jsonl",
        "{\"prompt_id\":\"q2\",\"judge_score\":0.5}\n",
    );
    desk.ok("import cje cje_responses.jsonl --judge files --key owner --scorer second");
    desk.ok("import rows base_responses.jsonl --key owner --scorer second");
    let author = |desk: &mut Desk, kind: &str| {
        let all = entries(desk, kind);
        let body = desk.ok(&format!("show {} --json", all[0]["seq"])).json();
        body["data"].to_string()
    };
    let keys = desk.ok("key list --json").json()["data"].to_string();
    assert!(keys.contains("second"), "{keys}");
    for kind in ["judge.registered", "score.recorded", "data.ingested"] {
        assert!(!author(&mut desk, kind).is_empty(), "{kind}");
    }
    desk.ok("verify");
}

#[test]
fn a_judge_that_wrote_what_it_judges_is_named() {
    let mut desk = desk();
    judge(
        &desk,
        &GOOD.replace(
            ",\\\"evidence\\\":{\\\"factual_error\\\":$false,\\\"quote\\\":\\\"a secret stone\\\"}",
            "",
        ),
    );
    std::fs::rename(
        desk.at.join("base_responses.jsonl"),
        desk.at.join("gpt-4o_responses.jsonl"),
    )
    .unwrap();
    desk.file("template.txt", "Judge the answer.");
    let run = |judge: &str, model: &str| {
        format!(
            "judge run --judge {judge} --model {model} --prompt template.txt --rows gpt-4o_responses.jsonl --json -- sh judge.sh"
        )
    };
    let own = desk.ok(&run("llm", "openai/GPT-4o")).json();
    let warnings = own["warnings"].to_string();
    assert!(
        warnings.contains("judge llm is openai/GPT-4o, which wrote the answers of policy gpt-4o"),
        "{own:#}"
    );
    let other = desk.ok(&run("second", "m-2")).json();
    let warnings = other["warnings"].to_string();
    assert!(
        warnings.contains("judges second and llm share a prompt"),
        "{other:#}"
    );
    assert!(!warnings.contains("which wrote"), "{other:#}");
    // What is estimated from its scores says so too.
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let labels: String = (0..ROWS)
        .map(|at| format!("q{at:02},gpt-4o,0.{}\n", at % 9 + 1))
        .collect();
    desk.file("labels.csv", &("item,policy,label\n".to_owned() + &labels));
    desk.ok("import labels labels.csv");
    let found = desk.run("estimate --judge llm --dry-run --json");
    let said = format!("{}{}", found.out, found.err);
    assert!(
        said.contains("which wrote the answers of policy gpt-4o"),
        "{said}"
    );
}
