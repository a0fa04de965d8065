//! Environments that a plan of audits names: tested once, withheld where the judge failed, and read again under a local
//! calibrator that passed an audit of its own.

use std::fmt::Write as _;

use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::claims::holds;
use super::estimate::policy;

/// How far labels of one domain lie below what the judge says there.
const GAP: f64 = 0.25;

/// Rows of two policies in three domains, the first of which the judge overrates: fits and probes on other prompts.
fn rows(desk: &mut Desk) {
    let mut stream = ChaCha20Rng::from_seed([7; 32]);
    let mut uniform = || (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    for policy in ["base", "tuned"] {
        let (mut fits, mut probes) = (String::new(), String::new());
        for at in 0..1600 {
            let domain = match at % 8 {
                0 => "law",
                1 if at < 160 => "rare",
                _ => "medicine",
            };
            let score = (1000.0 * (0.3 + 0.6 * uniform())).round() / 1000.0;
            let noise = 0.3 * (uniform() - 0.5);
            let gap = if domain == "law" { GAP } else { 0.0 };
            let label = (1000.0 * (score - gap + noise).clamp(0.0, 1.0)).round() / 1000.0;
            // Probes are every sixteenth prompt of law, and a few of medicine.
            let is_probe = at % 16 == 8 || at % 40 == 3;
            let month = 1 + at % 6;
            let mut row = json!({
                "prompt_id": format!("p{at}"), "judge_score": score, "domain": domain,
                "sampled_at": format!("2027-{month:02}-15T00:00:00.000000Z"),
            });
            let mut probe = row.clone();
            probe["oracle_label"] = label.into();
            if is_probe {
                writeln!(probes, "{probe}").unwrap();
            } else {
                row["oracle_label"] = label.into();
            }
            writeln!(fits, "{row}").unwrap();
        }
        desk.file(&format!("rows/{policy}_responses.jsonl"), &fits);
        desk.file(&format!("probes/{policy}_probe.jsonl"), &probes);
    }
}

const PLAN: &str = "\
template: transport
version: 1
manifest: audits-1
experiment: arena
title: Audits
hypothesis: {claim: calibration transfers, kind: measure}
transport:
  margin: 0.15
  alpha: 0.05
  family_size: 2
  power: 0.8
  residual_sd: 0.2
  bias: 0
  clusters_min: 20
  labels_per_cluster: 1
  environments:
    - {environment: base, clusters: 50, required: true}
    - {environment: tuned, clusters: 50, required: true}
    - {family: domain, environment: law, clusters: 126, required: true}
    - {family: domain, environment: medicine, clusters: 126, required: false}
    - {family: policy, environment: base, clusters: 126, required: false}
    - {family: policy, environment: tuned, clusters: 126, required: false}
    - {family: quarter, environment: first, window: {from: 2027-01-01, to: 2027-04-01}, clusters: 126, required: false}
    - {family: quarter, environment: second, window: {from: 2027-04-01, to: 2027-07-01}, clusters: 126, required: false}
";

fn desk(plan: &str) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 0.9");
    desk.ok("label design new probes --purpose audit --probability 1");
    let account = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", account]);
    std::fs::create_dir_all(desk.at.join("rows")).unwrap();
    std::fs::create_dir_all(desk.at.join("probes")).unwrap();
    rows(&mut desk);
    desk.ok("import cje rows --labels --field domain");
    desk.ok("import cje probes --seal probes --reveal-by 2027-12-31T00:00:00.000000Z --field domain --yes");
    desk.file("plan.yaml", plan);
    desk.ok("prereg sign plan.yaml --key owner");
    desk.ok("confirm seal probes");
    desk
}

fn outcome<'a>(data: &'a Value, name: &str) -> &'a Value {
    let families = data["environments"].as_array().unwrap().iter();
    let mut all = families.flat_map(|of| of["environments"].as_array().unwrap());
    all.find(|of| of["scope"]["environment"] == name).unwrap()
}

fn claims(data: &Value) -> [Value; 2] {
    ["base", "tuned"].map(|name| policy(data, name)["claim"].clone())
}

/// The first sentence says which rows it is about.
fn is_within(said: &Value) {
    let text = said["data"]["answer"]["text"].as_str().unwrap();
    assert!(text.starts_with("In domain=law: "), "{text}");
}

/// Given a judge that overrates one domain, when environments are audited as planned, then that domain fails and withholds
/// every level, until its local calibrator passes an audit of its own: then levels inside it may be claimed.
/// Exports for other tools show as many values as `estimate` lets people claim, and the environment that failed.
fn extracts_say_no_more(desk: &mut Desk, values: usize) {
    let text = desk.ok("export cyclonedx -o -").out;
    let bill: Value = serde_json::from_str(&text).unwrap();
    let card = &bill["components"][0]["modelCard"];
    let metrics = card["quantitativeAnalysis"]["performanceMetrics"].as_array();
    assert_eq!(metrics.unwrap().len(), values, "{text}");
    let said = &card["considerations"]["technicalLimitations"][0];
    let own = desk.ok("estimate --dry-run --json").json();
    let own = own["data"]["answer"]["text"].as_str().unwrap().to_owned();
    let (own, _) = own
        .split_once("Nothing of this is on record")
        .unwrap_or((&own, ""));
    assert!(
        said.as_str().unwrap().starts_with(own.trim()),
        "{said}\n{own}"
    );
    let report = desk.ok("export junit -o -").out;
    let failed = report
        .matches("<failure message=\"the judge is biased in domain=law")
        .count();
    assert_eq!(failed, 1, "{report}");
}

#[test]
fn a_domain_in_which_the_judge_fails_is_found_withheld_and_read_locally() {
    let mut desk = desk(PLAN);
    let ran = desk.words(&["audit", "transport", "--yes", "--json"]);
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    let data = &ran.json()["data"];
    let report = desk.ok("report experiment --format json").out;
    let report: Value = serde_json::from_str(&report).unwrap();
    let begun = report["parts"][0]["tables"][0]["rows"].as_array().unwrap();
    let tests = begun
        .iter()
        .find(|of| of["what"] == "tests of environments");
    assert_eq!(tests.unwrap()["begun"], 3, "{begun:?}");
    let law = outcome(data, "law");
    assert_eq!(
        (&law["verdict"], &law["required"]),
        (&json!("fail"), &json!(true))
    );
    // The true residual of law is -GAP less what its own labels move the fit.
    let mean = law["mean"].as_f64().unwrap();
    assert!((-GAP..-0.6 * GAP).contains(&mean), "{law}");
    let interval = &law["interval"];
    assert!(interval["high"].as_f64().unwrap() < 0.0, "{law}");
    assert_eq!(
        outcome(data, "first")["scope"]["window"]["from"],
        "2027-01-01T00:00:00.000000Z"
    );
    let rows = |name: &str| outcome(data, name)["rows"].as_u64().unwrap();
    let families = data["environments"].as_array().unwrap();
    let [domain, policies, quarter] = [&families[0], &families[1], &families[2]];
    let all: u64 = 2 * (0..1600).filter(|at| at % 16 == 8 || at % 40 == 3).count() as u64;
    assert_eq!(
        rows("law") + rows("medicine") + domain["without"].as_u64().unwrap(),
        all
    );
    assert_eq!(
        (rows("first") + rows("second"), &quarter["without"]),
        (all, &json!(0))
    );
    assert_eq!(
        (rows("base") + rows("tuned"), &policies["without"]),
        (all, &json!(0))
    );
    for family in families {
        assert_eq!(
            (&family["probes"], &family["late"]),
            (&json!(all), &json!(0))
        );
    }
    let answer = data["answer"]["text"].as_str().unwrap();
    assert!(
        answer.contains("The calibrator is biased in domain=law"),
        "{answer}"
    );
    assert_eq!(ran.json()["next"], json!(["clover regime list"]));
    // One charge opened probes of both policies.
    let said = desk.ok("audit summary").out;
    assert!(said.contains("1 charge (what accounts count)"), "{said}");
    // A second run finds all of it on record.
    desk.refused(&["audit", "transport", "--yes"], 11, &["on record at seq"]);

    let found = desk.ok("estimate --json").json();
    assert_eq!(claims(&found["data"]), [json!("refused"), json!("refused")]);
    let shown = desk.ok("assume show S2 --experiment arena --json").json();
    assert_eq!(shown["data"]["rows"][0]["status"], "fail", "{shown}");
    let shown = desk.ok("estimate").out;
    for part in [
        "environment domain=law  FAIL at seq",
        "every level is withheld",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }

    extracts_say_no_more(&mut desk, 0);

    let listed = desk.ok("regime list --json").json();
    let all = listed["data"]["environments"].as_array().unwrap();
    let law = all.iter().find(|of| of["scope"]["environment"] == "law");
    let law = law.unwrap();
    assert_eq!(
        (&law["newest"], &law["proposed"]),
        (&json!("fail"), &json!("2"))
    );
    assert_eq!(law["selected"], Value::Null);
    let select = |environment: &'static str, regime: &'static str| {
        [
            "regime",
            "select",
            environment,
            "--regime",
            regime,
            "--reason",
            "no patch is in sight",
        ]
    };
    desk.refused(
        &select("domain=law", "2"),
        11,
        &["there is none", "clover estimate --environment domain=law"],
    );
    desk.refused(
        &select("domain=law", "3"),
        11,
        &["regime 3 once a later test"],
    );
    desk.refused(
        &select("domain=medicine", "1"),
        11,
        &["a failed test of domain=medicine"],
    );
    desk.refused(
        &select("domain=sports", "1"),
        5,
        &["no test of environment domain=sports"],
    );
    let few = ["estimate", "--environment", "domain=rare"];
    desk.refused(&few, 4, &["needs at least 200 labels", "found 40"]);

    let local = ["estimate", "--environment", "domain=law", "--json"];
    let found = desk.ok_words(&local).json();
    assert_eq!(claims(&found["data"]), [json!("refused"), json!("refused")]);
    desk.ok_words(&select("domain=law", "2"));
    let found = desk.ok_words(&local).json();
    assert_eq!(claims(&found["data"]), [json!("refused"), json!("refused")]);
    let ran = desk.words(&[
        "audit",
        "transport",
        "--environment",
        "domain=law",
        "--yes",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    is_within(&ran.json());
    let found = desk.ok_words(&local).json();
    assert_eq!(
        claims(&found["data"]),
        [json!("own_labels"), json!("own_labels")]
    );
    is_within(&found);
    let ran = desk.ok_words(&["compare", "--all", "--environment", "domain=law", "--json"]);
    is_within(&ran.json());
    let scope = r#""environment":{"environment":"law","family":"domain"}"#;
    assert!(ran.out.replace(": ", ":").contains(scope), "{}", ran.out);
    // A local calibrator says nothing of all rows.
    let found = desk.ok("estimate --json").json();
    assert_eq!(claims(&found["data"]), [json!("refused"), json!("refused")]);
    let said = desk.ok("compare --all --dry-run").out;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("calibration fails in domain=law"), "{said}");
    assert!(!words.contains("1 new label"), "{said}");
    // It takes no place of the one over all rows, whichever is newer.
    let whole = desk.ok("calibrate show --json").json();
    assert_eq!(whole["data"]["record"]["environment"], Value::Null);
    let local = desk.ok_words(&["calibrate", "show", "--environment", "domain=law", "--json"]);
    let local = local.json()["data"]["record"].clone();
    assert_eq!(local["environment"], "domain=law");
    assert!(local["labels"].as_u64() < whole["data"]["record"]["labels"].as_u64());
    let listed = desk.ok("calibrate list").out;
    assert!(listed.contains("domain=law"), "{listed}");
    desk.refused(
        &["calibrate", "show", "--environment", "domain=sports"],
        5,
        &["clover estimate --environment domain=sports"],
    );
    let listed = desk.ok("regime list").out;
    assert!(
        listed.contains("domain=law") && listed.contains("FAIL"),
        "{listed}"
    );
    let shown = desk.ok("estimate").out;
    assert!(
        shown.contains("regime 2 (a local calibrator) since seq"),
        "{shown}"
    );

    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    desk.ok("verify --recompute");
    holds(&mut desk);
}

/// Given rows whose labels can be read, when an import says their domain, then no level inside a domain is read: whoever said
/// it could choose which rows are in it. A window is read only once a family with it was tested.
#[test]
fn whoever_knows_labels_draws_no_environment() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 0.9");
    std::fs::create_dir_all(desk.at.join("rows")).unwrap();
    std::fs::create_dir_all(desk.at.join("probes")).unwrap();
    rows(&mut desk);
    desk.ok("import cje rows --labels");
    desk.ok("import cje rows --field domain");
    let late = ["estimate", "--environment", "domain=law"];
    let parts = ["had no domain before their labels could be read"];
    desk.refused(&late, 11, &parts);
    desk.file("plan.yaml", PLAN);
    desk.ok("prereg sign plan.yaml --key owner");
    let window = ["estimate", "--environment", "quarter=first"];
    desk.refused(&window, 11, &["a test of quarter=first from 2027-01-01"]);
    holds(&mut desk);
}

/// Given a plan that names a domain of no row, when an audit is asked for, then it is refused before a peek is paid.
#[test]
fn an_environment_that_holds_no_row_costs_no_peek() {
    let mut desk = desk(&PLAN.replace("environment: law", "environment: laws"));
    let parts = ["no scored row has domain=laws"];
    desk.refused(&["audit", "transport", "--yes"], 11, &parts);
    let left = desk.ok("budget show confirm-peeks --json").json();
    assert_eq!(left["data"]["left"], 3);
}

/// Given a window that ends before it begins, or a window of no family, when the plan is checked, then it is refused.
#[test]
fn a_plan_says_which_windows_it_can_mean() {
    let mut desk = Desk::with_ledger();
    let turned = PLAN.replace("to: 2027-07-01", "to: 2027-04-01");
    let alone = PLAN.replace(
        "family: quarter, environment: second",
        "environment: second",
    );
    for plan in [turned, alone] {
        desk.file("plan.yaml", &plan);
        desk.refused(
            &["prereg", "check", "plan.yaml"],
            4,
            &["a window with a family"],
        );
    }
    // 2.8 * .2 / .05 = 11.2 standard errors of one row: 126 rows.
    desk.file("plan.yaml", &PLAN.replace("clusters: 126", "clusters: 125"));
    desk.refused(
        &["prereg", "check", "plan.yaml"],
        4,
        &["at least 126 clusters"],
    );
}
