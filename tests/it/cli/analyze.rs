//! `analyze` and `qualify` as a newcomer meets them: values are the peer's, bad input names file, line and field.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::Desk;
use crate::cli::Ran;
use crate::cli::same;
use crate::cli::says;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference")
}

/// The real sample, numbers only.
fn sample() -> String {
    fixtures().join("arena/fresh_draws").display().to_string()
}

/// A probe of the real sample, as an argument.
fn probe(policy: &str) -> String {
    let name = format!("arena/probe_slice/{policy}_probe.jsonl");
    format!("{policy}={}", fixtures().join(name).display())
}

/// What the peer found in a case of its vectors.
fn peer(file: &str, case: &str) -> Value {
    let text = std::fs::read_to_string(fixtures().join("stats").join(file)).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    let found = cases.iter().find(|found| found["name"] == case).unwrap();
    found["expected"].clone()
}

/// Numbers agree to the vectors' 1e-8; anything else exactly.
#[track_caller]
fn near(what: &str, found: &Value, expected: &Value) {
    if let (Some(found), Some(expected)) = (found.as_f64(), expected.as_f64()) {
        let gap = (found - expected).abs();
        assert!(gap <= 1e-8, "{what}: {found}, the peer has {expected}");
    } else {
        assert_eq!(found, expected, "{what}");
    }
}

/// The numbers of a policy's level or of a difference, whether they are a result or withheld.
fn numbers(of: &Value) -> &Value {
    if of["withheld"].is_object() {
        assert!(of["estimate"].is_null() && of["difference"].is_null() && of["interval"].is_null());
        return &of["withheld"];
    }
    of
}

/// Every key number of an analysis against the peer's.
fn agrees(data: &Value, expected: &Value) {
    let policies = data["policies"].as_array().unwrap();
    assert_eq!(
        policies.len(),
        expected["policies"].as_array().unwrap().len()
    );
    for (at, policy) in policies.iter().enumerate() {
        let name = policy["policy"].as_str().unwrap();
        assert_eq!(policy["policy"], expected["policies"][at]);
        for (ours, theirs) in [
            ("estimate", "estimates"),
            ("se", "standard_errors"),
            ("route", "routes"),
            ("plug_in", "plug_in"),
            ("correction", "residual_correction"),
            ("labelled_share", "oracle_fraction"),
        ] {
            let of = match ours {
                "route" | "labelled_share" => policy,
                _ => numbers(policy),
            };
            near(&format!("{name} {ours}"), &of[ours], &expected[theirs][at]);
        }
        for end in [0, 1] {
            near(
                name,
                &numbers(policy)["interval"][end],
                &expected["ci95"][at][end],
            );
        }
        near(name, &numbers(policy)["df"], &expected["df"][name]);
        near(
            name,
            &numbers(policy)["df_method"],
            &expected["df_method"][name],
        );
        near(
            name,
            &policy["calibration_variance"],
            &expected["oracle_variance"][name],
        );
        let (card, theirs) = (&policy["boundary"], &expected["boundary"][name]);
        for field in ["out_of_range", "saturation", "partial_id_width"] {
            near(&format!("{name} {field}"), &card[field], &theirs[field]);
        }
        near(name, &policy["status"], &expected["status"][name]);
    }
    let pairs = data["differences"].as_array().unwrap();
    let theirs = expected["pairwise"].as_array().unwrap();
    assert_eq!(pairs.len(), theirs.len());
    for (pair, theirs) in pairs.iter().zip(theirs) {
        let name = format!("{} - {}", pair["first"], pair["second"]);
        assert_eq!(
            (&pair["first"], &pair["second"]),
            (&theirs["policy1"], &theirs["policy2"])
        );
        for (field, theirs) in [
            (&numbers(pair)["difference"], &theirs["difference"]),
            (&numbers(pair)["se"], &theirs["se_difference"]),
            (&numbers(pair)["p"], &theirs["p_value"]),
            (&numbers(pair)["p_adjusted"], &theirs["p_adjusted"]),
            (&numbers(pair)["interval"][0], &theirs["ci_lower"]),
            (&numbers(pair)["interval"][1], &theirs["ci_upper"]),
            (&numbers(pair)["df"], &theirs["df"]),
            (&pair["basis"], &theirs["basis"]),
        ] {
            near(&name, field, theirs);
        }
    }
    near(
        "mode",
        &data["calibration"]["mode"],
        &expected["selected_mode"],
    );
}

#[test]
fn the_real_sample_has_the_peers_values() {
    let mut desk = Desk::new();
    let ran = desk.ok(&format!("analyze {} --json", sample()));
    let answer = ran.json();
    assert_eq!(answer["verdict"], "exploratory");
    assert_eq!(answer["data"]["record"], "exploratory: not on the record");
    agrees(
        &answer["data"],
        &peer("direct_arena.json", "arena_m480_nocov"),
    );
    // Nothing was recorded, and no ledger was looked for.
    assert_eq!(std::fs::read_dir(&desk.at).unwrap().count(), 0);
}

#[test]
fn response_length_is_a_covariate() {
    let mut desk = Desk::new();
    let line = format!("analyze {} --covariate response_length --json", sample());
    let data = desk.ok(&line).json()["data"].clone();
    agrees(&data, &peer("direct_arena.json", "arena_m480_len"));
    assert_eq!(data["covariates"], json!(["response_length"]));
    assert_eq!(data["calibration"]["uses_covariates"], true);
}

#[test]
fn a_calibration_file_serves_in_place_of_own_labels() {
    let mut desk = Desk::new();
    let logged = fixtures().join("arena/logged_data.jsonl");
    let line = format!(
        "analyze {} --calibration-data {} --json",
        sample(),
        logged.display()
    );
    let data = desk.ok(&line).json()["data"].clone();
    agrees(
        &data,
        &peer("direct_arena.json", "arena_calibration_file_only"),
    );
}

/// The table that the first command prints, its numbers those of the peer to four digits.
#[test]
fn the_terminal_shows_the_same() {
    let mut desk = Desk::new();
    let folder = sample();
    let ran = desk.ok(&format!("analyze {folder}"));
    same(&ran.out.replace(&folder, "SAMPLE"), TEXT);
    let expected = peer("direct_arena.json", "arena_m480_nocov");
    let number = |value: &Value| format!("{:.4}", value.as_f64().unwrap());
    for (at, line) in ran.out.lines().skip(8).take(3).enumerate() {
        let [low, high] = [0, 1].map(|end| number(&expected["ci95"][at][end]));
        assert!(line.contains(&number(&expected["estimates"][at])), "{line}");
        assert!(line.contains(&format!("[{low}, {high}]")), "{line}");
    }
    for (pair, line) in expected["pairwise"]
        .as_array()
        .unwrap()
        .iter()
        .zip(ran.out.lines().skip(20))
    {
        let [low, high] = ["ci_lower", "ci_upper"].map(|end| number(&pair[end]));
        // A difference would give a withheld level away.
        if line.contains("unhelpful") {
            assert!(line.contains("withheld") && !line.contains(&low), "{line}");
        } else {
            assert!(line.contains(&format!("[{low}, {high}]")), "{line}");
        }
    }
}

const TEXT: &str =
    "Which policy is best cannot be said: only the value of base was checked, 0.7544 (95 % interval
[0.7339, 0.7748]). Nothing of this is on record, so nothing of it may be claimed. clone and
parallel_universe_prompt were not checked (only labels of others calibrate them). unhelpful has its
level withheld (too few labels near its scores).

exploratory: not on the record · SAMPLE · cluster-robust + jackknife, t intervals

policy                    value     95 % interval     labels alone      labels  rows   level
base                      0.7544    [0.7339, 0.7748]  [0.7337, 0.7745]  480     1,000  own labels
clone                     0.7641?   [0.7456, 0.7827]  no labels         0       1,000  NOT CHECKED
parallel_universe_prompt  0.7646?   [0.7492, 0.7799]  no labels         0       1,000  NOT CHECKED
unhelpful                 withheld  -                 no labels         0       1,000  REFUSED

Policy values with 95 % intervals
base                                                     ●┤           0.7544 own labels
clone                                                    ├○┤          0.7641 NOT CHECKED
parallel_universe_prompt                                 ├○┤          0.7646 NOT CHECKED
                         0.00    0.25       0.50       0.75       1.00

difference                            value     95 % interval      p      p (BH)
base - clone                          -0.0098   [-0.0341, 0.0145]  0.421  0.505   unchecked
base - parallel_universe_prompt       -0.0102   [-0.0330, 0.0126]  0.375  0.505   unchecked
base - unhelpful                      withheld  -                  -      -       unchecked
clone - parallel_universe_prompt      -0.0004   [-0.0094, 0.0086]  0.922  0.922   unchecked
clone - unhelpful                     withheld  -                  -      -       unchecked
parallel_universe_prompt - unhelpful  withheld  -                  -      -       unchecked

calibrator  calibrator/peer-1 two_stage, 480 labels on 480 prompts, 5 folds; error out of fold
    0.215; scores 0.1 to 1, flat at the low end
clone  ? NOT CHECKED is no result: labels of others calibrate it, its interval does not cover the
    risk that this does not transfer, and a judge that favours it would look the same. Label 20 or
    more of its responses, or audit with --transport-probe clone=FILE
parallel_universe_prompt  ? NOT CHECKED is no result: labels of others calibrate it, its interval
    does not cover the risk that this does not transfer, and a judge that favours it would look the
    same. Label 20 or more of its responses, or audit with --transport-probe
    parallel_universe_prompt=FILE
unhelpful  REFUSE-LEVEL: 1.3 % of scores outside the labelled ones, 86.4 % in a tail with few
    labels; monotonicity alone leaves 0.5047 to 0.5069
unhelpful  ? NOT CHECKED is no result: labels of others calibrate it, its interval does not cover
    the risk that this does not transfer, and a judge that favours it would look the same. Label 20
    or more of its responses, or audit with --transport-probe unhelpful=FILE
unchecked  a side has neither own labels nor a passed audit, or its level is withheld: whatever p
    says, nothing is told apart
differences  6 pairs: read p (BH), which holds the share of false findings
";

#[test]
fn probes_are_graded_as_a_family() {
    let mut desk = Desk::new();
    let names = ["clone", "parallel_universe_prompt", "unhelpful"];
    let mut line = format!("analyze {} --json", sample());
    for name in names {
        line += &format!(
            " --transport-probe {} --transport-margin {name}=0.05",
            probe(name)
        );
    }
    let data = desk.ok(&line).json()["data"].clone();
    for (at, name) in names.iter().enumerate() {
        let found = &data["policies"][at + 1]["transport"];
        let expected = peer("transport.json", &format!("arena_probe_{name}_family3"));
        near(name, &found["mean_residual"], &expected["delta_hat"]);
        let narrow = &found["narrow"];
        near(name, &narrow["state"], &expected["status"]);
        near(name, &narrow["se"], &expected["delta_se"]);
        for end in [0, 1] {
            near(name, &narrow["interval"][end], &expected["delta_ci"][end]);
        }
        near(
            name,
            &narrow["min_margin_for_pass"],
            &expected["min_margin_for_pass"],
        );
        near(
            name,
            &narrow["detectable_bias_80"],
            &expected["detectable_bias_80"],
        );
        assert_eq!(found["margin"], 0.05);
        assert_eq!(found["prompts"], expected["n_clusters"]);
    }
    // A failed audit is on standard error too.
    let fails = data["policies"][3]["transport"]["state"] == "FAIL";
    let ran = desk.ok(&line);
    assert_eq!(
        ran.err.contains("calibration does not transfer"),
        fails,
        "{}",
        ran.err
    );
}

#[test]
fn files_are_written_by_their_endings() {
    let mut desk = Desk::new();
    let line = format!("analyze {} -o a.svg -o a.html -o a.json --json", sample());
    let ran = desk.ok(&line);
    let read = |name: &str| std::fs::read_to_string(desk.at.join(name)).unwrap();
    let svg = read("a.svg");
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    // A level that is withheld is drawn nowhere.
    assert!(svg.contains("clone") && !svg.contains("unhelpful"));
    let page = read("a.html");
    assert!(page.starts_with("<!doctype html>"));
    for part in [
        "exploratory: not on the record",
        "parallel_universe_prompt",
        "0.7544",
        "REFUSED",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // It stands alone: no script, no style sheet or picture from elsewhere.
    for outside in ["<script", "src=", "href=\"h", "href=\"/", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let data: Value = serde_json::from_str(&read("a.json")).unwrap();
    assert_eq!(data, ran.json()["data"]);
    for name in ["a.svg", "a.html", "a.json"] {
        assert!(ran.err.contains(&format!("wrote {name}")));
    }
    desk.run(&format!("analyze {} -o a.png", sample()))
        .fails(2, &["a.png", ".json, .svg or .html"]);
}

#[test]
fn a_bootstrap_says_so_and_repeats() {
    let mut desk = Desk::new();
    let line = format!("analyze {} --bootstrap 200 --json", sample());
    let first = desk.ok(&line);
    assert_eq!(desk.ok(&line).out, first.out);
    let data = first.json()["data"].clone();
    assert_eq!(data["interval"], "percentile");
    assert_eq!(data["bootstrap"]["replicates"], 200);
    // The points are those of the analytic run.
    let expected = peer("direct_arena.json", "arena_m480_nocov");
    for at in 0..4 {
        near(
            "estimate",
            &numbers(&data["policies"][at])["estimate"],
            &expected["estimates"][at],
        );
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let run = |threads: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_clover"))
            .args(["analyze", &sample(), "--bootstrap", "200", "--json"])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    };
    let one = run("1");
    assert_eq!(run("1"), one);
    assert_eq!(run("2"), one);
    assert_eq!(run("3"), one);
}

impl Ran {
    /// It failed with this code and said each of these parts.
    #[track_caller]
    fn fails(&self, code: u8, parts: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        says(self, parts);
    }
}

/// Twelve good responses of one policy, every second one labelled.
fn good() -> Vec<String> {
    let row = |n: u32| {
        let label = if n.is_multiple_of(2) {
            format!("0.{n:02}")
        } else {
            "null".to_owned()
        };
        format!(r#"{{"prompt_id":"p{n}","judge_score":0.{n:02},"oracle_label":{label}}}"#)
    };
    (10..22).map(row).collect()
}

/// Analyzes a folder whose file `a_responses.jsonl` has this third line.
fn third_line(line: &[u8], extra: &str, code: u8, parts: &[&str]) {
    let mut desk = Desk::new();
    let folder = desk.at.join("in");
    std::fs::create_dir(&folder).unwrap();
    let mut bytes = Vec::new();
    for (at, good) in good().iter().enumerate() {
        bytes.extend_from_slice(if at == 2 { line } else { good.as_bytes() });
        bytes.push(b'\n');
    }
    std::fs::write(folder.join("a_responses.jsonl"), bytes).unwrap();
    let words = format!("analyze in {extra}");
    let ran = desk.run(&words);
    ran.fails(code, parts);
}

const HERE: &str = "a_responses.jsonl line 3";

#[test]
fn lines_that_are_no_responses() {
    let line = |text: &str, parts: &[&str]| {
        third_line(text.as_bytes(), "", 4, &[&[HERE], parts].concat());
    };
    line(
        r#"{"prompt_id":"p","judge_sc"#,
        &[
            "expected one JSON object",
            "expected the closing quote of a text, found the end",
        ],
    );
    line("[1]", &["expected one JSON object"]);
    line(
        r#"{"prompt_id":"p","judge_score":NaN}"#,
        &["NaN is not JSON"],
    );
    line(
        r#"{"prompt_id":"p","judge_score":1e999}"#,
        &["judge_score", "finite number", "1e999"],
    );
    line(
        r#"{"prompt_id":"p","judge_score":"0.5"}"#,
        &["judge_score", "finite number", "\"0.5\""],
    );
    line(r#"{"prompt_id":"p"}"#, &["judge_score", "found none"]);
    line(
        r#"{"judge_score":0.5}"#,
        &["prompt_id", "neither prompt_id nor prompt"],
    );
    line(
        r#"{"prompt_id":[],"judge_score":0.5}"#,
        &["prompt_id", "expected a text"],
    );
    line(
        r#"{"prompt_id":"p","judge_score":0.5,"oracle_label":"good"}"#,
        &["oracle_label", "\"good\""],
    );
    line(
        r#"{"prompt_id":"p","judge_score":0.5,"judge_score":0.6}"#,
        &["judge_score is there twice"],
    );
    line(
        r#"{"prompt_id":"p","judge_score":0.5,"target_policy":"b"}"#,
        &["target_policy", "expected a", "found b"],
    );
    line(
        r#"{"prompt_id":"p","judge_score":0.5,"draw_idx":-1}"#,
        &["draw_idx", "expected a count"],
    );
    line(
        r#"{"prompt_id":"p10","judge_score":0.5,"draw_idx":0}"#,
        &[
            "draw_idx",
            "draw 0 of prompt p10 is already there",
            "line 1",
        ],
    );
    third_line(
        b"{\"prompt_id\":\"\xff\",\"judge_score\":0.5}",
        "",
        4,
        &[HERE, "expected UTF-8"],
    );
    third_line(
        br#"{"prompt_id":"p","judge_score":0.5}"#,
        "--covariate response_length",
        4,
        // The first line has none either.
        &["a_responses.jsonl line 1", "response_length", "found none"],
    );
}

#[test]
fn values_outside_a_declared_scale() {
    let label = br#"{"prompt_id":"p","judge_score":0.5,"oracle_label":7}"#;
    third_line(
        label,
        "--label-scale 0:1",
        4,
        &["a", HERE, "oracle_label", "7 lies outside [0, 1]"],
    );
    let score = br#"{"prompt_id":"p","judge_score":-3}"#;
    third_line(
        score,
        "--judge-scale 0:1",
        4,
        &["a", HERE, "judge_score", "-3 lies outside [0, 1]"],
    );
}

#[test]
fn folders_and_files_that_are_not_there() {
    let mut desk = Desk::new();
    std::fs::create_dir(desk.at.join("empty")).unwrap();
    desk.run("analyze empty")
        .fails(5, &["empty: no POLICY_responses.jsonl in it"]);
    desk.run("analyze nowhere").fails(5, &["nowhere"]);
    desk.file("none_responses.jsonl", "\n\n");
    desk.run("analyze .").fails(
        4,
        &["none_responses.jsonl", "expected at least one response"],
    );
    let file = desk.file("one.jsonl", "{\"prompt_id\":\"p\",\"judge_score\":0.5}\n");
    desk.run(&format!("analyze {file}"))
        .fails(4, &["one.jsonl line 1", "target_policy", "found none"]);
}

#[test]
fn options_that_are_out_of_range() {
    let mut desk = Desk::new();
    let folder = sample();
    for (words, parts) in [
        ("--alpha 2", &["--alpha", "(0, 0.5)"][..]),
        ("--alpha NaN", &["--alpha", "(0, 0.5)"]),
        ("--bootstrap 1", &["--bootstrap", "expected 200 to 1000000"]),
        ("--judge-scale 1:0", &["--judge-scale"]),
        ("--judge-scale NaN:1", &["--judge-scale"]),
        ("--labels guessed", &["--labels"]),
        (
            "--transport-margin clone=0.05",
            &["--transport-margin", "no --transport-probe for clone"],
        ),
        (
            "--transport-probe clone",
            &["--transport-probe", "POLICY=VALUE"],
        ),
    ] {
        desk.run(&format!("analyze {folder} {words}"))
            .fails(2, parts);
    }
    let probe = probe("clone");
    desk.run(&format!(
        "analyze {folder} --transport-probe {probe} --transport-margin clone=-1"
    ))
    .fails(2, &["--transport-margin clone", "above 0"]);
    desk.run(&format!(
        "analyze {folder} --transport-probe {probe} --transport-probe {probe}"
    ))
    .fails(2, &["--transport-probe", "clone is there twice"]);
}

#[test]
fn probes_that_cannot_audit() {
    let mut desk = Desk::new();
    let folder = sample();
    let unknown = probe("clone").replacen("clone=", "nobody=", 1);
    desk.run(&format!("analyze {folder} --transport-probe {unknown}"))
        .fails(4, &["no responses of policy nobody"]);
    desk.run(&format!(
        "analyze {folder} --transport-probe clone=nowhere.jsonl"
    ))
    .fails(5, &["nowhere.jsonl"]);
    let file = desk.file(
        "probe.jsonl",
        "{\"prompt_id\":\"arena_1\",\"judge_score\":0.5}\n",
    );
    desk.run(&format!("analyze {folder} --transport-probe clone={file}"))
        .fails(
            4,
            &[
                "probe.jsonl line 1",
                "oracle_label",
                "expected a label, found none",
            ],
        );
    // A label that calibrated cannot audit.
    let seen = "{\"prompt_id\":\"arena_6024\",\"judge_score\":1.0,\"oracle_label\":1.0}\n";
    let file = desk.file("seen.jsonl", seen);
    desk.run(&format!("analyze {folder} --transport-probe base={file}"))
        .fails(
            4,
            &[
                "seen.jsonl line 1",
                "arena_6024",
                "both calibrates and audits",
            ],
        );
}

#[test]
fn too_few_labels_are_named() {
    let mut desk = Desk::new();
    let rows: Vec<String> = good().into_iter().take(5).collect();
    desk.file("few_responses.jsonl", &rows.join("\n"));
    let data = desk.ok("analyze . --json").json()["data"].clone();
    assert_eq!(data["calibration"]["fitted"], false);
    assert_eq!(data["policies"][0]["level"], "uncalibrated");
}

/// Copies a vector file into the desk's folder `vectors`, changed.
fn changed_vectors(desk: &Desk, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(fixtures().join("stats/isotonic.json")).unwrap();
    let folder = desk.at.join("vectors");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("isotonic.json"), change(text)).unwrap();
}

#[test]
fn this_build_qualifies() {
    let mut desk = Desk::new();
    let ran = desk.ok("qualify");
    let last = ran.out.lines().last().unwrap();
    assert!(
        last.starts_with("QUALIFIED  ") && last.ends_with(" · 0 failed · 0 not run"),
        "{last}"
    );
    let answer = desk.ok("qualify --json").json();
    assert_eq!(answer["verdict"], "qualified");
    let files = answer["data"]["files"].as_array().unwrap();
    let bundled = |name: &str| {
        let files = std::fs::read_dir(fixtures().join(name)).unwrap();
        let is_vector = |path: &Path| path.extension().is_some_and(|ending| ending == "json");
        files
            .filter(|file| is_vector(&file.as_ref().unwrap().path()))
            .count()
    };
    assert_eq!(files.len(), bundled("stats") + bundled("eprocess"));
    for file in files {
        assert_eq!(file["verdict"], "PASS", "{file}");
        assert_eq!(file["passed"], file["cases"]);
        assert!(!file["peers"].as_object().unwrap().is_empty());
    }
    // The same sample from a folder.
    let arena = fixtures().join("arena").display().to_string();
    assert_eq!(
        desk.ok(&format!("qualify --arena {arena} --json")).json()["verdict"],
        "qualified"
    );
}

#[test]
fn one_changed_digit_is_a_failure() {
    let mut desk = Desk::new();
    changed_vectors(&desk, |text| text);
    desk.ok("qualify --vectors vectors");
    // The first digit after the point of the last expected number.
    changed_vectors(&desk, |text| {
        let at = text.rfind("0.").unwrap() + 2;
        let digit = if text.as_bytes()[at] == b'9' {
            "8"
        } else {
            "9"
        };
        let mut text = text;
        text.replace_range(at..=at, digit);
        text
    });
    let ran = desk.run("qualify --vectors vectors");
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(
        ran.out.contains("FAIL vectors/isotonic.json"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.lines().last().unwrap().starts_with("FAILED  "),
        "{}",
        ran.out
    );
    let answer = desk.run("qualify --vectors vectors --json").json();
    assert_eq!(
        (&answer["verdict"], &answer["ok"]),
        (&json!("failed"), &json!(false))
    );
    assert_eq!(answer["data"]["failed"], 1);
}

#[test]
fn an_unknown_kind_is_not_run_and_not_passed() {
    let mut desk = Desk::new();
    changed_vectors(&desk, |text| {
        text.replacen("\"isotonic\"", "\"astrology\"", 1)
    });
    let ran = desk.ok("qualify --vectors vectors");
    assert!(
        ran.out.contains("NOT RUN vectors/isotonic.json"),
        "{}",
        ran.out
    );
    let data = desk.ok("qualify --vectors vectors --json").json()["data"].clone();
    let file = data["files"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&file["verdict"], &file["passed"]),
        (&json!("NOT RUN"), &json!(0))
    );
    assert_eq!(
        file["not_run"].as_array().unwrap().len() as u64,
        file["cases"].as_u64().unwrap()
    );
    assert_eq!(data["not_run"], file["cases"]);
}

#[test]
fn vectors_that_are_none() {
    let mut desk = Desk::new();
    changed_vectors(&desk, |text| text[..text.len() / 2].to_owned());
    let says_of_file = |desk: &mut Desk, why: &str| {
        let ran = desk.run("qualify --vectors vectors");
        let line = format!("NOT RUN vectors/isotonic.json: {why}");
        assert!(ran.code == 4 && ran.out.contains(&line), "{}", ran.out);
    };
    says_of_file(&mut desk, "not a vector file");
    changed_vectors(&desk, |text| {
        text.replacen("\"n_cases\":", "\"n_cases\":1", 1)
    });
    says_of_file(&mut desk, "n_cases says");
    std::fs::create_dir(desk.at.join("empty")).unwrap();
    desk.run("qualify --vectors empty")
        .fails(5, &["empty", "no vector files"]);
    desk.run("qualify --vectors nowhere").fails(5, &["nowhere"]);
}

/// Rows of a policy: the value of a prompt is its place, and every one is labelled.
fn rows_of(places: std::ops::Range<u32>, above: f64) -> String {
    let row = |place: u32| {
        let value = 0.25 + 0.5 * f64::from(place) / 400.0 + above;
        // A label is off its score, now above and now below.
        let label = value + if place.is_multiple_of(2) { 0.04 } else { -0.04 };
        format!(
            "{}\n",
            json!({"prompt_id": format!("p{place}"), "judge_score": value, "oracle_label": label})
        )
    };
    places.map(row).collect()
}

#[test]
fn who_lacks_the_hardest_prompts_is_not_the_best_for_that() {
    let mut desk = Desk::new();
    std::fs::create_dir(desk.at.join("given")).unwrap();
    // Given two policies that are the same, of which one was not asked the fifth of the prompts that are hardest.
    desk.file("given/m0_responses.jsonl", &rows_of(0..400, 0.0));
    desk.file("given/m1_responses.jsonl", &rows_of(80..400, 0.0));
    let ran = desk.run("analyze given");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let warned = "m1 has no score for 80 of 400 prompts";
    assert!(ran.err.contains(warned), "{}", ran.err);
    assert!(ran.out.contains("not told apart"), "{}", ran.out);
    let found = desk.run("analyze given --json").json();
    assert_eq!(found["data"]["differences"][0]["reading"], "not told apart");
    assert_ne!(found["data"]["answer"]["best"], json!(["m1"]), "{found:#}");
    // Given one prompt less, and one policy that is far above the other, then no score of that prompt would change it.
    desk.file("given/m1_responses.jsonl", &rows_of(1..400, 0.2));
    let found = desk.run("analyze given --json").json();
    assert_eq!(found["data"]["differences"][0]["reading"], "told apart");
    assert_eq!(found["data"]["answer"]["best"], json!(["m1"]));
}

#[test]
fn policies_without_a_common_prompt_are_not_told_apart() {
    let mut desk = Desk::new();
    std::fs::create_dir(desk.at.join("given")).unwrap();
    // Given two policies far apart, each on prompts of its own, so that easy prompts may be all that sets them apart.
    desk.file("given/m0_responses.jsonl", &rows_of(0..400, 0.0));
    let others = rows_of(0..400, 0.2).replace(":\"p", ":\"q");
    desk.file("given/m1_responses.jsonl", &others);
    let found = desk.run("analyze given --json").json();
    assert_eq!(found["data"]["differences"][0]["reading"], "not told apart");
    assert_ne!(found["data"]["answer"]["best"], json!(["m1"]), "{found:#}");
    let ran = desk.run("analyze given");
    let said = "m0 and m1 have scores of 0 prompts in common";
    let answered = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answered.contains(said), "{}", ran.out);
}
