//! `qualify` with vectors of others: what cannot be read or is not understood is named as not run, and nothing is cut
//! without a word.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::says;

fn reference(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The folder `vectors` of a desk.
fn folder(desk: &Desk) -> PathBuf {
    let folder = desk.at.join("vectors");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn vectors(kind: &str, cases: &[Value]) -> String {
    json!({
        "file": kind, "note": "of a test", "produced_by": {"peer": "1"}, "tolerance": {"abs": 1e-9},
        "n_cases": cases.len(), "cases": cases,
    })
    .to_string()
}

/// A family of one test, which no correction changes: its p is its own adjusted p.
fn alone(p: f64) -> Value {
    let same = json!({"p_adjusted": [p], "reject": [true]});
    json!({
        "name": "one", "input": {"alpha": 0.1, "p": [p]},
        "expected": {"bonferroni": same, "fdr_bh": same, "fdr_by": same, "holm": same},
    })
}

/// What a run says of the last file that it was given.
fn last_file(ran: &Ran) -> Value {
    let answer = ran.json();
    let files = answer["data"]["files"].as_array().unwrap();
    files.last().unwrap().clone()
}

#[track_caller]
fn not_run(desk: &mut Desk, name: &str, text: &str, parts: &[&str]) {
    std::fs::write(folder(desk).join(name), text).unwrap();
    let ran = desk.run("qualify --vectors vectors --json");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let file = last_file(&ran);
    let why = file["not_run"].to_string();
    assert_eq!(file["passed"], 0, "{file}");
    assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    std::fs::remove_file(folder(desk).join(name)).unwrap();
}

#[test]
fn a_file_that_cannot_be_read_is_not_run_and_the_others_are() {
    let mut desk = Desk::new();
    let folder = folder(&desk);
    let good = reference("stats/multipletests.json");
    std::fs::write(folder.join("a.json"), &good[..good.len() / 2]).unwrap();
    std::fs::write(folder.join("b.json"), [0xff, 0xfe, b'{']).unwrap();
    std::fs::create_dir(folder.join("c.json")).unwrap();
    std::fs::write(folder.join("d.json"), &good).unwrap();
    let ran = desk.run("qualify --vectors vectors");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    for line in [
        "NOT RUN vectors/a.json: not a vector file",
        "NOT RUN vectors/b.json: expected UTF-8",
        "NOT RUN vectors/c.json: ",
        "INCOMPLETE  ",
        " · 0 failed · 0 not run · 3 files not read",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let answer = desk.run("qualify --vectors vectors --json").json();
    assert_eq!(answer["verdict"], "incomplete");
    assert_eq!(answer["data"]["files_not_read"], 3);
    let files = answer["data"]["files"].as_array().unwrap();
    let [a, .., d] = &files[files.len() - 4..] else {
        panic!("{answer}")
    };
    assert_eq!(
        (&a["verdict"], &d["verdict"]),
        (&json!("NOT RUN"), &json!("PASS"))
    );
    // A failure outweighs it.
    std::fs::write(
        folder.join("d.json"),
        good.replace("0.0495757", "0.0495758"),
    )
    .unwrap();
    assert_eq!(desk.run("qualify --vectors vectors").code, 3);
}

#[test]
fn failures_beyond_the_first_are_counted_and_can_be_listed() {
    let mut desk = Desk::new();
    let cases: Vec<Value> = (0..25)
        .map(|at| {
            let mut case = alone(0.03);
            case["name"] = format!("case-{at}").into();
            case["expected"]["holm"]["p_adjusted"] = json!([0.04]);
            case
        })
        .collect();
    let text = vectors("multipletests", &cases);
    std::fs::write(folder(&desk).join("many.json"), text).unwrap();
    let count = |ran: &Ran| ran.out.matches("FAIL vectors/many.json case-").count();
    let ran = desk.run("qualify --vectors vectors");
    assert_eq!((ran.code, count(&ran)), (3, 20), "{}", ran.out);
    assert!(
        ran.out
            .contains("FAIL vectors/many.json and 5 more failures: --all-failures"),
        "{}",
        ran.out
    );
    let ran = desk.run("qualify --vectors vectors --all-failures");
    assert_eq!(count(&ran), 25, "{}", ran.out);
    assert!(!ran.out.contains("more failures"), "{}", ran.out);
    let file = last_file(&desk.run("qualify --vectors vectors --json"));
    assert_eq!(file["failures"].as_array().unwrap().len(), 25);
}

/// What the peer's rounding did in one file is said of that file's bytes, and of no other data.
#[test]
fn a_slip_of_the_peer_belongs_to_one_vector_file() {
    let mut desk = Desk::new();
    let folder = folder(&desk);
    let original = reference("stats/ope.json");
    std::fs::write(folder.join("ope.json"), &original).unwrap();
    let file = last_file(&desk.ok("qualify --vectors vectors --json"));
    assert_eq!(
        (
            &file["passed"],
            file["peer_slips"].as_array().unwrap().len()
        ),
        (&file["cases"], 1)
    );
    // The same cases in other bytes are other vectors: their answers rest on no rounding that anybody vouched for.
    let other = format!("{original} ");
    std::fs::write(folder.join("ope.json"), &other).unwrap();
    let ran = desk.run("qualify --vectors vectors --json");
    let file = last_file(&ran);
    assert_eq!((ran.code, &file["peer_slips"]), (3, &json!([])), "{file}");
    // Until a list beside them does.
    let digest = clover::ground::digest::Digest::sha256(other.as_bytes()).to_string();
    let list = json!({"note": "of a test", "slips": [{
        "vectors": digest, "what": "a rank of the tie before", "source": "a test", "fold": 0, "score": 0.9,
    }]});
    std::fs::write(folder.join("peer.slips"), list.to_string()).unwrap();
    let file = last_file(&desk.ok("qualify --vectors vectors --json"));
    assert_eq!(file["passed"], file["cases"], "{file}");
    std::fs::write(folder.join("peer.slips"), "{}").unwrap();
    let ran = desk.run("qualify --vectors vectors");
    assert_eq!(ran.code, 4, "{}", ran.out);
    says(&ran, &["peer.slips", "note"]);
}

#[test]
fn options_are_honoured_or_the_case_is_not_run() {
    let mut desk = Desk::new();
    let sample = |options: &Value| {
        let mut case = json!({"name": "one", "input": {"include_response_length": false}, "expected": {"method": "x"}});
        for (name, value) in options.as_object().unwrap() {
            case["input"][name] = value.clone();
        }
        vectors("direct_arena", &[case])
    };
    for (options, parts) in [
        (
            json!({"inference": "bootstrap"}),
            ["input.inference", "cluster_robust"],
        ),
        (
            json!({"base_labels_kept_prompt_ids": "half"}),
            ["kept_prompt_ids", "half"],
        ),
        (
            json!({"base_labels_kept_prompt_ids": ["nobody"]}),
            ["kept_prompt_ids", "nobody"],
        ),
    ] {
        not_run(&mut desk, "arena.json", &sample(&options), &parts);
    }
    // A runner that never asks for an option would run the case as if it were not there, to the same numbers.
    let mut case = alone(0.03);
    case["input"]["winsorize"] = 0.01.into();
    let text = vectors("multipletests", &[case]);
    let parts = ["input.winsorize", "does not know"];
    not_run(&mut desk, "multipletests.json", &text, &parts);
    let draws = |more: &Value| {
        let row = |at: i32| {
            let score = f64::from(at) / 20.0;
            json!({"prompt_id": format!("q{at}"), "judge_score": score, "oracle_label": score})
        };
        let rows: Vec<Value> = (0..20).map(row).collect();
        let mut input = json!({"fresh_draws": {"a": rows}, "options": {}});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        vectors(
            "direct_synth",
            &[json!({"name": "one", "input": input, "expected": {"method": "x"}})],
        )
    };
    for (more, parts) in [
        (
            json!({"include_response_length": true}),
            ["include_response_length", "a response or its length"],
        ),
        (
            json!({"options": {"label_design": "snowball"}}),
            ["label_design", "snowball"],
        ),
        (
            json!({"options": {"trim": 1}}),
            ["options.trim", "VECTORS.md"],
        ),
    ] {
        not_run(&mut desk, "synth.json", &draws(&more), &parts);
    }
}

/// A list of kept labels is a list: of all prompts it gives the answers for all, of fewer it gives others.
#[test]
fn kept_labels_of_logged_rows_are_those_of_the_list() {
    let mut desk = Desk::new();
    let whole: Value = serde_json::from_str(&reference("stats/ope.json")).unwrap();
    let cases = whole["cases"].as_array().unwrap();
    let case = cases
        .iter()
        .find(|case| case["input"]["estimator"] == "cal_ips_single_pass");
    let case = case.unwrap();
    let ids: Vec<String> = reference("arena/logged_data.jsonl")
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let id = row["prompt_id"]
                .as_str()
                .or(row["metadata"]["prompt_id"].as_str());
            id.unwrap().to_owned()
        })
        .collect();
    for (kept, code) in [(ids.len(), 0), (ids.len() / 3, 3)] {
        let mut case = case.clone();
        case["input"]["base_labels_kept"] = json!(ids[..kept]);
        let mut file = whole.clone();
        (file["n_cases"], file["cases"]) = (json!(1), json!([case]));
        std::fs::write(folder(&desk).join("ope.json"), file.to_string()).unwrap();
        let ran = desk.run("qualify --vectors vectors");
        assert_eq!(ran.code, code, "{kept}: {}", ran.out);
    }
}

#[test]
fn seeds_below_zero_and_draws_with_replacement_are_run() {
    let mut desk = Desk::new();
    // source: Python 3.11 hashlib.blake2b: digest_size 8 of "{id}--1-5" big-endian mod 5; digest_size 16 of "{id}--1",
    // the first five sorted by it and dealt to three folds in turn, the others mod 3.
    let ids = [
        "arena_8727",
        "arena_4694",
        "arena_1776",
        "arena_3482",
        "q1",
        "q2",
        "q3",
    ];
    let cases = [
        json!({
            "name": "hash", "expected": {"folds": [1, 3, 4, 3, 4, 3, 3]},
            "input": {"prompt_ids": ids, "n_folds": 5, "seed": -1, "rule": "hash_mod", "labelled_prompt_ids": null},
        }),
        json!({
            "name": "dealt", "expected": {"folds": [2, 1, 1, 0, 0, 2, 0]},
            "input": {
                "prompt_ids": ids, "n_folds": 3, "seed": -1, "rule": "balanced_round_robin",
                "labelled_prompt_ids": ids[..5],
            },
        }),
        json!({
            "name": "none", "expected": {"error": "ValueError"},
            "input": {"prompt_ids": ids, "n_folds": 0, "seed": 1, "rule": "hash_mod"},
        }),
    ];
    let text = vectors("folds", &cases).replace("\"abs\":1e-9", "\"exact\":true");
    std::fs::write(folder(&desk).join("folds.json"), text).unwrap();
    let mut wealth: Value = serde_json::from_str(&reference("eprocess/evalues.json")).unwrap();
    let members = wealth["grid_kelly"][0].as_object_mut().unwrap();
    members.remove("WoR_N").unwrap();
    members.remove("log_wealth_up_WoR").unwrap();
    std::fs::write(folder(&desk).join("evalues.json"), wealth.to_string()).unwrap();
    let answer = desk.ok("qualify --vectors vectors --json").json();
    let files = answer["data"]["files"].as_array().unwrap();
    for file in &files[files.len() - 2..] {
        assert_eq!(
            (&file["verdict"], &file["passed"]),
            (&json!("PASS"), &file["cases"]),
            "{file}"
        );
    }
}

/// A single group is its own common mean: tau2 is 0, so that B = v / (v + 0) is 1.
#[test]
fn a_single_group_is_shrunk_by_its_formula() {
    let mut desk = Desk::new();
    // source: Python 3.11, numpy: mean, var(ddof=1), var / 4 and its root of 0.1, 0.2, 0.4, 0.5.
    let (mean, variance, v, se) = (
        0.3,
        0.033_333_333_333_333_33,
        0.008_333_333_333_333_333,
        0.091_287_092_917_527_68,
    );
    let pooled = json!({"tau2": 0.0, "mu": mean, "B": [1.0], "theta": [mean], "se": [se]});
    let case = json!({
        "name": "one", "input": {"groups": [[0.1, 0.2, 0.4, 0.5]]},
        "expected": {
            "n": [4], "mean": [mean], "pooled_var": variance, "v": [v], "mu0": mean, "Q": 0.0,
            "eb_dersimonian_laird": pooled, "eb_paule_mandel": pooled,
            "james_stein_plus": {"factor": 1.0, "theta": [mean]},
        },
    });
    std::fs::write(
        folder(&desk).join("shrinkage.json"),
        vectors("shrinkage", &[case]),
    )
    .unwrap();
    let file = last_file(&desk.ok("qualify --vectors vectors --json"));
    assert_eq!(file["passed"], 1, "{file}");
}
