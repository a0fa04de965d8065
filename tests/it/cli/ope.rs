//! Logged responses on the record: what they say of other policies, and whether they can say it.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use crate::support::verifiers;

const POLICIES: [&str; 3] = ["clone", "parallel_universe_prompt", "unhelpful"];

fn reference() -> Vec<Value> {
    let path = verifiers::repository().join("fixtures/reference/stats/ope.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn expected(name: &str) -> Value {
    let mut cases = reference().into_iter();
    cases.find(|case| case["name"] == name).unwrap()["expected"].clone()
}

#[track_caller]
fn near(what: &str, found: &Value, expected: &Value, within: f64) {
    let gap = (found.as_f64().unwrap() - expected.as_f64().unwrap()).abs();
    assert!(gap <= within, "{what}: {found}, the peer has {expected}");
}

fn empty() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    desk.ok("experiment register arena --title Arena --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.48");
    desk
}

fn estimate<'a>(policy: &'a Value, estimator: &str) -> &'a Value {
    let mut all = policy["estimates"].as_array().unwrap().iter();
    all.find(|of| of["estimator"] == estimator).unwrap()
}

fn verdict<'a>(policy: &'a Value, estimator: &str) -> &'a str {
    let mut guide = policy["diagnosed"]["guide"].as_array().unwrap().iter();
    let row = guide.find(|row| row["estimator"] == estimator).unwrap();
    row["verdict"].as_str().unwrap()
}

#[test]
fn the_real_sample_is_diagnosed_as_the_peer_does_and_computed_again() {
    let sample = verifiers::repository().join("fixtures/reference/arena");
    let sample = sample.display();
    let mut desk = empty();
    desk.ok(&format!("import cje {sample}/fresh_draws --labels"));
    desk.ok(&format!(
        "import cje {sample}/logged_data.jsonl --policy base --logprobs"
    ));
    let ran = desk.ok("estimate --ope --json --plot weights.svg").json();
    let data = &ran["data"];
    assert_eq!(data["logger"], "base");
    for (at, name) in POLICIES.iter().enumerate() {
        let policy = &data["policies"][at];
        assert_eq!(policy["policy"], *name);
        let found = &policy["diagnosed"];
        let peer = expected(&format!("arena_weight_diagnostics_{name}"));
        near(
            name,
            &found["raw"]["ess_fraction"],
            &peer["ess_fraction"],
            1e-9,
        );
        near(name, &found["raw"]["max_share"], &peer["max_share"], 1e-9);
        near(name, &found["raw"]["hill"], &peer["hill_stable"], 1e-8);
        near(name, &found["affinity"], &peer["A_B_judge_vs_fresh"], 1e-9);
        let coverage = &peer["cle_total_surprisal"];
        near(name, &found["ttc"], &coverage["beta"], 1e-9);
        near(name, &found["cle_factor"], &coverage["cle_factor"], 1e-7);
        // The peer calibrates as its release of that time did; weights are the same.
        for (estimator, case, within) in [
            ("snips", "arena_snips_monotone", 0.01),
            ("calibrated-ips", "arena_cal_ips_outer_cv_monotone", 0.02),
        ] {
            let peer = expected(case);
            let found = &estimate(policy, estimator)["estimate"];
            near(name, found, &peer["estimates"][at], within);
        }
        // Only the near-clone passes coverage, as in the CJE paper, section 5.4.
        let answer = if at == 0 {
            json!("calibrated-ips")
        } else {
            Value::Null
        };
        assert_eq!(found["answer"], answer, "{name}");
        assert_eq!(verdict(policy, "snips"), "refused");
        // Nobody checked the draws of the first two, and the level of the last is withheld.
        let (claim, read) = if at < 2 {
            ("borrowed_unchecked", "warned")
        } else {
            ("refused", "refused")
        };
        assert_eq!(found["direct_claim"], claim, "{name}");
        assert_eq!(verdict(policy, "direct"), read, "{name}");
        assert_eq!(policy["direct"].is_null(), at == 2, "{name}");
        assert_eq!(policy["estimates"].as_array().unwrap().len(), 7);
    }
    let text = desk.ok("estimate --ope --dry-run").out;
    assert!(text.contains("logged responses cannot answer"), "{text}");
    assert!(
        text.contains("level withheld:") && text.contains("labels of others calibrate it"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let svg = std::fs::read_to_string(desk.at.join("weights.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("ESS 21.5 %"),
        "{svg}"
    );
    // The same question over the same rows is answered once.
    let again = desk.ok("estimate --ope --json").json();
    assert_eq!(again["verdict"], "already_recorded");
    let standing = desk.ok("assume show OPE --json").json();
    assert!(standing.to_string().contains("fail"), "{standing}");
    let replayed = desk.ok("replay --all --json").json();
    assert_eq!(replayed["verdict"], "reproduced", "{replayed}");
    desk.head();
}

/// Three hundred logged responses of two cohorts, with tokens; the second cohort is one that the target never visits.
fn logs() -> String {
    let mut lines = String::new();
    for i in 0..300_i32 {
        let near = i % 3 != 0;
        let score = f64::from(i % 10) / 10.0;
        let label = (i % 2 == 0).then(|| format!(r#","oracle_label":{}"#, score * 0.8 + 0.1));
        let tokens = [-1.0 - 0.01 * f64::from(i % 7), -0.5];
        let total = tokens[0] + tokens[1];
        let far = 60.0 * f64::from(1 + i % 5);
        let target = total - if near { 0.02 } else { far };
        let cohort = if near { "near" } else { "far" };
        lines += &format!(
            r#"{{"x_id":"x-{i}","prompt":"P {i}","continuation":"A","judge_S":{score},"logp_pi0":[{},{}],"#,
            tokens[0], tokens[1]
        );
        lines += &format!(
            r#""logp_pi_prime":{{"tuned":{target}}},"tokens":[7,9],"cohort":"{cohort}","judge_cfg":{{"model":"m"}},"run_cfg":{{"seed":1}}{}}}"#,
            label.unwrap_or_default()
        );
        lines.push('\n');
    }
    lines
}

#[test]
fn logged_rows_are_held_against_their_contract_and_counted() {
    let mut desk = empty();
    let good = logs();
    let bad = [
        r#"{"x_id":"b-1","judge_S":0.5,"logp_pi0":[-1.0,0.5],"logp_pi_prime":{"tuned":-1.0},"tokens":2}"#,
        r#"{"x_id":"b-2","judge_S":0.5,"logp_pi0":[-1.0,-0.5],"logp_pi_prime":{"tuned":-1.0},"tokens":3}"#,
        r#"{"x_id":"b-3","judge_S":0.5,"logp_pi0":null,"logp_pi_prime":{"tuned":-1.0}}"#,
        r#"{"x_id":"b-4","judge_S":0.5,"logp_pi0":-1.5,"logp_pi_prime":{"tuned":-1.0},"tf":{"pi0":{"logp_prompt":-9.0,"logp_whole":-10.0}}}"#,
        r#"{"x_id":"b-5","judge_S":0.5,"logp_pi0":-1.5,"logp_pi_prime":{"tuned":-1.0},"tf":{"tuned":{"repeats":[-1.0,-1.1]}}}"#,
        r#"{"x_id":"b-6","judge_S":0.5,"logp_pi0":[-1.0,-0.5],"logp_pi_prime":{"tuned":-1.0},"tf":{"pi0":{"mask":[true,false]}}}"#,
    ];
    desk.file("logs.jsonl", &(good + &bad.join("\n") + "\n"));
    let line = "import logged logs.jsonl --policy base --labels --json";
    let first = desk.ok(line).json();
    let warnings = first["warnings"].to_string();
    assert!(
        warnings.contains("6 of 306 rows are not recorded")
            && warnings.contains("sign 1")
            && warnings.contains("missing 1"),
        "{warnings}"
    );
    assert_eq!(first["data"]["recorded"]["logprobs"]["new"], 300);
    let entries = desk.ok("log --kind logprobs.checked --json").json();
    let seq = &entries["data"]["entries"][0]["seq"];
    let said = desk.ok(&format!("show {seq} --json")).json();
    let said = &said["data"]["body"]["data"];
    assert_eq!((&said["kept"], &said["missing"]), (&json!(300), &json!(1)));
    let clauses: Vec<_> = said["broken"].as_array().unwrap().iter().collect();
    let clauses: Vec<&str> = clauses
        .iter()
        .map(|of| of["clause"].as_str().unwrap())
        .collect();
    assert_eq!(
        clauses,
        [
            "additivity",
            "determinism",
            "masking",
            "sign",
            "token-count"
        ]
    );
    // Again, and nothing is added.
    let head = desk.head();
    let again = desk.ok(line).json();
    assert_eq!(again["verdict"], "already_recorded");
    assert_eq!(desk.head(), head);
    // What is left answers where both policies go.
    let data = desk.ok("estimate --ope tuned --json").json()["data"].clone();
    let policy = &data["policies"][0];
    let found = &policy["diagnosed"];
    assert_eq!(found["filter"]["kept"], 300);
    assert_eq!(found["filter"]["without_logprob"], 6);
    assert_eq!(found["filter"]["checked"].as_array().unwrap().len(), 1);
    assert!(
        found["ttc_by_total"].is_number(),
        "tokens are counted: {found}"
    );
    assert_eq!(found["groups"][0]["group"], "cohort far");
    assert!(estimate(policy, "snips-cohorts")["rows"] == 200);
    assert_eq!(verdict(policy, "direct"), "unavailable");
    assert_eq!(verdict(policy, "dr-cpo"), "unavailable");
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
}

#[test]
fn a_wrong_line_is_named_and_leaves_nothing_behind() {
    let mut desk = empty();
    let line = "import logged logs.jsonl --policy base";
    for (bad, parts) in [
        (
            r#"{"x_id":"b","judge_S":0.5,"logp_pi0":"x","logp_pi_prime":{"tuned":-1.0}}"#,
            [
                "logs.jsonl:301: logp_pi0:",
                "a number, or a list of numbers",
            ],
        ),
        (
            r#"{"x_id":"b","judge_S":0.5,"logp_pi0":-1,"logp_pi_prime":{"tuned":[1,"y"]}}"#,
            [
                "logs.jsonl:301: logp_pi_prime.tuned:",
                "a number, or a list of numbers",
            ],
        ),
        (
            r#"{"x_id":"b","judge_S":{"a":1},"logp_pi0":-1,"logp_pi_prime":{"tuned":-1}}"#,
            ["logs.jsonl:301: judge_S:", "expected a number"],
        ),
        (
            r#"{"x_id":"b","judge_S":0.5,"logp_pi0":-1,"logp_pi_prime":{"tuned":-1},"tokens":-3}"#,
            ["logs.jsonl:301: tokens:", "token ids, or their count"],
        ),
    ] {
        desk.file("logs.jsonl", &(logs() + bad + "\n"));
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, 4, &parts);
    }
    let none = desk.run("estimate --ope");
    assert_eq!(none.code, 5);
    says(&none, &["no score by judge in arena"]);
}

#[test]
fn changed_estimates_of_logged_rows_are_refused() {
    let mut desk = empty();
    desk.file("logs.jsonl", &logs());
    desk.ok("import logged logs.jsonl --policy base --labels");
    let data = desk.ok("estimate --ope tuned --dry-run --json").json()["data"].clone();
    let mut said = estimate(&data["policies"][0], "snips").clone();
    said["estimate"] = json!(said["estimate"].as_f64().unwrap() + 1e-4);
    let said = said.to_string();
    let words = [
        "record",
        "ope.estimated",
        "--experiment",
        "arena",
        "--data",
        &said,
    ];
    desk.refused(&words, 11, &["recompute: expected estimate"]);
}
