//! What policies are worth, on the record: the peer's numbers from a ledger's rows, audits that are run once, and
//! everything computed again.

use std::fmt::Write as _;
use std::path::Path;
use std::path::PathBuf;

use clover::event::Kind;
use clover::event::registry;
use clover::ground::keyfile;
use clover::ground::sign::Signer;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::ledger::LedgerOptions;
use clover::ledger::Rulebook;
use clover::store::OpenOptions;
use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use crate::support::verifiers;
use crate::support::verifiers::Case;

const REVEAL_BY: &str = "2027-01-31T00:00:00.000000Z";

/// The numbers of the real sample, and the peer's answers.
pub(super) struct Sample {
    arena: PathBuf,
    stats: PathBuf,
}

impl Sample {
    /// As they are kept here, without texts.
    pub(super) fn kept() -> Self {
        let reference = verifiers::repository().join("fixtures/reference");
        Self {
            arena: reference.join("arena"),
            stats: reference.join("stats"),
        }
    }

    /// The originals with their texts, beside the repository; `None` where they are not.
    fn original() -> Option<Self> {
        let shared = verifiers::repository().parent()?.join("shared");
        let found = Self {
            arena: shared.join("arena_sample"),
            stats: shared.join("reference/stats"),
        };
        (found.arena.is_dir() && found.stats.is_dir()).then_some(found)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.arena.join(name).display().to_string()
    }
}

/// The peer's answer to a case.
fn peer(sample: &Sample, file: &str, name: &str) -> Value {
    let path = sample.stats.join(file);
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut cases = file["cases"].as_array().unwrap().iter();
    cases.find(|case| case["name"] == name).unwrap()["expected"].clone()
}

#[track_caller]
fn near(what: &str, found: &Value, expected: &Value) {
    let gap = (found.as_f64().unwrap() - expected.as_f64().unwrap()).abs();
    assert!(gap <= 1e-8, "{what}: {found}, the peer has {expected}");
}

/// The real sample in a ledger, its probes sealed, with three peeks to open them.
pub(super) fn desk(sample: &Sample) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 0.48");
    desk.ok("label design new probes --purpose audit --probability 0.05");
    let account = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", account]);
    desk.ok(&format!(
        "import cje {} --labels",
        sample.path("fresh_draws")
    ));
    desk.ok(&format!(
        "import cje {} --seal probes --reveal-by {REVEAL_BY} --yes",
        sample.path("probe_slice")
    ));
    desk
}

/// A policy of an answer.
pub(super) fn policy<'a>(data: &'a Value, name: &str) -> &'a Value {
    let mut policies = data["policies"].as_array().unwrap().iter();
    policies.find(|policy| policy["policy"] == name).unwrap()
}

fn has_the_peers_values(sample: &Sample, case: &str, data: &Value) {
    let expected = peer(sample, "direct_arena.json", case);
    for (at, name) in expected["policies"].as_array().unwrap().iter().enumerate() {
        let found = policy(data, name.as_str().unwrap());
        let level = &found[match found["claim"].as_str().unwrap() {
            "refused" => "withheld",
            "borrowed_unchecked" => "unchecked",
            _ => "level",
        }];
        let what = name.as_str().unwrap();
        near(what, &level["estimate"], &expected["estimates"][at]);
        near(what, &level["se"], &expected["standard_errors"][at]);
        for end in [0, 1] {
            near(what, &level["interval"][end], &expected["ci95"][at][end]);
        }
        near(what, &level["df"], &expected["df"][what]);
        assert_eq!(found["route"], expected["routes"][at]);
    }
}

fn differences_are_the_peers(desk: &mut Desk, sample: &Sample) {
    let found = desk.ok("compare --all --json").json();
    let expected = peer(sample, "direct_arena.json", "arena_m480_nocov");
    let pairs = found["data"]["differences"].as_array().unwrap();
    let theirs = expected["pairwise"].as_array().unwrap();
    assert_eq!(pairs.len(), theirs.len());
    for (pair, theirs) in pairs.iter().zip(theirs) {
        let what = format!("{} - {}", pair["first"], pair["second"]);
        assert_eq!(pair["first"], theirs["policy1"]);
        // Numbers of a withheld difference stand apart.
        let pair = pair.get("withheld").unwrap_or(pair);
        near(&what, &pair["difference"], &theirs["difference"]);
        near(&what, &pair["se"], &theirs["se_difference"]);
        near(&what, &pair["p"], &theirs["p_value"]);
        near(&what, &pair["p_adjusted"], &theirs["p_adjusted"]);
        near(&what, &pair["interval"][0], &theirs["ci_lower"]);
        near(&what, &pair["interval"][1], &theirs["ci_upper"]);
    }
    // Two of them are a family of one pair.
    let two = desk.ok("compare clone base --dry-run --json").json();
    let [pair] = &two["data"]["differences"].as_array().unwrap()[..] else {
        panic!("one pair");
    };
    assert_eq!(pair["p"], pair["p_adjusted"]);
}

fn audits_are_the_peers(desk: &mut Desk, sample: &Sample) -> Vec<Value> {
    let audit = ["audit", "transport", "--yes", "--json"];
    let refused = desk.words(&audit);
    assert_eq!(refused.code, 11, "{}{}", refused.out, refused.err);
    let dry = ["audit", "transport", "--dry-run"];
    let unaccepted = desk.words(&dry);
    assert_eq!(unaccepted.code, 11, "{}", unaccepted.err);
    desk.ok("confirm seal probes");
    // A dry run ends as the run itself would where nobody could pay.
    let elsewhere = ["audit", "transport", "--account", "none", "--yes"];
    let [paid, foreseen] = [vec![], dry[2..].to_vec()].map(|more| {
        let ran = desk.words(&[&elsewhere[..], &more].concat());
        let refusal = ran.err.find("refused: ").map(|at| ran.err[at..].to_owned());
        (ran.code, refusal.unwrap())
    });
    assert_eq!(paid, foreseen);
    let would = desk.ok("audit transport --dry-run");
    assert!(would.out.contains("open 150 sealed labels of probes"));
    // Whether it can pass is said before it is paid for.
    let foreseen = [
        "open 150 labels of probes with peek 1 of 3 in ",
        "; no audit can pass within 0.05 of labels from 0 to 1: clone with probability 0.00 by 50 probes, ",
        "(clover plan audit 0.05 says how many it takes)",
        "have no probe, and this audit says nothing of them: base",
        "nobody is there to confirm it",
    ];
    desk.refused(&["audit", "transport"], 2, &foreseen);
    let ran = desk.words(&audit);
    assert_eq!(ran.code, 10, "a failed audit: {}{}", ran.out, ran.err);
    let answer = ran.json();
    assert_eq!(
        (&answer["verdict"], &answer["ok"]),
        (&json!("fail"), &json!(false))
    );
    let audits = answer["data"]["audits"].as_array().unwrap();
    assert_eq!(audits.len(), 3);
    for found in audits {
        let name = found["policy"].as_str().unwrap();
        let theirs = peer(
            sample,
            "transport.json",
            &format!("arena_probe_{name}_family3"),
        );
        near(name, &found["mean_residual"], &theirs["delta_hat"]);
        let narrow = &found["narrow"];
        near(name, &narrow["se"], &theirs["delta_se"]);
        // Four policies have scores here, and three are a family there: the interval is a little wider.
        assert_eq!(found["audit"]["family_size"], 4);
        let end = |of: &Value| of.as_f64().unwrap();
        let (low, high) = (
            end(&narrow["interval"]["low"]),
            end(&narrow["interval"]["high"]),
        );
        let (from, to) = (end(&theirs["delta_ci"][0]), end(&theirs["delta_ci"][1]));
        assert!(low < from && high > to && high - low < 1.1 * (to - from));
        let state = narrow["state"].as_str().unwrap().to_uppercase();
        assert_eq!(state, theirs["status"].as_str().unwrap());
        assert_eq!(found["state"], narrow["state"]);
        // The wider interval holds the calibrator's own error too.
        let width = |of: &Value| {
            of["interval"]["high"].as_f64().unwrap() - of["interval"]["low"].as_f64().unwrap()
        };
        assert!(width(&found["wide"]) > width(narrow));
    }
    audits.clone()
}

#[test]
fn the_real_sample_from_estimate_to_audit_and_back() {
    let sample = Sample::kept();
    let mut desk = desk(&sample);
    let before = desk.ok("estimate --json").json();
    assert_eq!(before["verdict"], "appended");
    // One fit, and of each policy its value, its share and its coverage.
    assert_eq!(before["data"]["recorded"]["appended"], 13);
    has_the_peers_values(&sample, "arena_m480_nocov", &before["data"]);
    let claim = |answer: &Value, name: &str| policy(&answer["data"], name)["claim"].clone();
    assert_eq!(claim(&before, "base"), "own_labels");
    assert_eq!(claim(&before, "clone"), "borrowed_unchecked");
    assert_eq!(claim(&before, "unhelpful"), "refused");
    let text = desk.ok("estimate --dry-run").out;
    let line = |text: &str, name: &str| {
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(line(&text, "unhelpful").contains("withheld"), "{text}");
    assert!(
        !text.contains("0.512") && text.contains("label 160 of its responses"),
        "{text}"
    );
    let raw = desk.ok("estimate unhelpful --raw --dry-run").out;
    assert!(raw.contains("0.512  [-0.146, 1.170]"), "{raw}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let head = desk.head();
    assert_eq!(
        desk.ok("estimate --json").json()["verdict"],
        "already_recorded"
    );
    assert_eq!(desk.head(), head);
    let seq = head["size"].as_u64().unwrap() - 1;

    differences_are_the_peers(&mut desk, &sample);
    audits_are_the_peers(&mut desk, &sample);

    let again = desk.words(&["audit", "transport", "--policy", "unhelpful", "--yes"]);
    assert_eq!(again.code, 11);
    says(
        &again,
        &["this audit is on record at seq", "next: clover show"],
    );
    let spent = desk.ok("budget show confirm-peeks --json").json();
    assert_eq!(spent["data"]["left"], 2, "a refused audit charges nothing");

    let after = desk.ok("estimate --json").json();
    has_the_peers_values(&sample, "arena_m480_nocov", &after["data"]);
    let marked = policy(&after["data"], "unhelpful");
    assert_eq!(
        (&marked["claim"], &marked["transport"]["state"]),
        (&json!("refused"), &json!("FAIL"))
    );
    assert_eq!(
        policy(&after["data"], "clone")["transport"]["state"],
        "INCONCLUSIVE"
    );
    assert!(
        after["warnings"][0]
            .as_str()
            .unwrap()
            .contains("does not transfer")
    );
    let then = desk.ok(&format!("at {seq} -- estimate --json")).json();
    assert_eq!(then["verdict"], "as_of");
    assert_eq!(then["data"]["policies"], before["data"]["policies"]);

    tables_withhold_what_is_refused(&mut desk);
    let replayed = desk.ok("replay --all --json").json();
    assert_eq!(replayed["verdict"], "reproduced");
    let outcomes = replayed["data"]["events"].as_array().unwrap();
    assert!(outcomes.iter().all(|event| event["outcome"] == "identical"));
    assert_eq!(outcomes.len(), 13 + 6 + 3 + 4);
    both_verifiers_agree(&mut desk);
}

/// Of the policy that failed its audit, no number of a value or a difference stands in a table; of the others, each does.
fn tables_withhold_what_is_refused(desk: &mut Desk) {
    desk.ok("export csv -o tables");
    let columns = |line: &str| line.split(',').map(ToOwned::to_owned).collect::<Vec<_>>();
    for (file, of, number) in [
        ("estimates.csv", 8, "estimate"),
        ("differences.csv", 8, "difference"),
    ] {
        let text = std::fs::read_to_string(desk.at.join("tables").join(file)).unwrap();
        let mut lines = text.lines().map(columns);
        let head = lines.next().unwrap();
        let at = |name: &str| head.iter().position(|column| column == name).unwrap();
        let mut seen = [0; 2];
        for line in lines {
            let is_refused = line[of] == "unhelpful" || line[of + 1] == "unhelpful";
            for name in [number, "se", "interval_low", "interval_high"] {
                assert_eq!(
                    line[at(name)].is_empty(),
                    is_refused,
                    "{file} {name} {line:?}"
                );
            }
            seen[usize::from(is_refused)] += 1;
        }
        assert!(seen[0] >= 3 && seen[1] >= 2, "{file} {seen:?}");
    }
}

/// The mean residuals that the sample's own page of numbers names, at the probes of each policy, and what follows.
const AUDITED: [(&str, &str, &str); 3] = [
    ("clone", "+0.004", "inconclusive"),
    ("parallel_universe_prompt", "+0.023", "inconclusive"),
    ("unhelpful", "-0.331", "fail"),
];

#[test]
fn the_original_sample_gives_the_peers_numbers() {
    let Some(sample) = Sample::original() else {
        println!("skipped: no shared/arena_sample beside the repository");
        return;
    };
    let mut desk = desk(&sample);
    let found = desk.ok("estimate --json").json();
    has_the_peers_values(&sample, "arena_m480_nocov", &found["data"]);
    // The length of the responses, which the originals have in full.
    let found = desk.ok("estimate --covariate response_length --json");
    has_the_peers_values(&sample, "arena_m480_len", &found.json()["data"]);
    differences_are_the_peers(&mut desk, &sample);
    let audits = audits_are_the_peers(&mut desk, &sample);
    for (audit, (name, mean, state)) in audits.iter().zip(AUDITED) {
        let found = audit["mean_residual"].as_f64().unwrap();
        println!("{name}: {found:+.9} {}", audit["state"]);
        assert_eq!(audit["policy"], name);
        assert_eq!(
            (format!("{found:+.3}").as_str(), &audit["state"]),
            (mean, &json!(state))
        );
    }
}

fn both_verifiers_agree(desk: &mut Desk) {
    desk.head();
    desk.ok("export jsonl -o out --blobs");
    if verifiers::python() {
        let read = |name: &str| std::fs::read(desk.at.join("out").join(name)).unwrap();
        let case = Case {
            ledger: read("ledger.jsonl"),
            checkpoint: Some(read("checkpoint")),
            ..Case::default()
        };
        let folder = desk.path("theirs");
        case.write(&folder);
        let outcome = verifiers::theirs(&case.arguments(&folder));
        assert_eq!(outcome.first, None, "{:?}", outcome.all);
    }
}

/// A ledger with two experiments of the same small rows; `label` is that of the first row of `exp-1`.
pub(super) fn small(label: u64) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles all");
    // Rows are scored before any label of their policy.
    let (mut lines, mut labels) = (String::new(), String::new());
    for experiment in ["exp-1", "exp-2"] {
        desk.ok(&format!(
            "experiment register {experiment} --title T --purpose testing"
        ));
        for at in 0..40_u64 {
            for policy in ["a", "b"] {
                let shift = u64::from(policy == "b") * 3;
                let score = 100_000 + (at * 7 + shift) % 10 * 80_000;
                let data = json!({
                    "draw": 0, "item": format!("item-{at:02}"), "judge": "judge", "policy": policy,
                    "score_micro": score,
                });
                let line =
                    json!({"kind": "score.recorded", "experiment": experiment, "data": data});
                writeln!(lines, "{line}").unwrap();
                if policy == "a" && at % 2 == 0 {
                    let first = at == 0 && experiment == "exp-1";
                    let value = if first {
                        label
                    } else {
                        score * 9 / 10 + at * 1_000
                    };
                    let data = json!({
                        "design": "calib", "draw": 0, "item": format!("item-{at:02}"), "policy": policy,
                        "purpose": "calibrate", "rater": "r", "value_micro": value,
                    });
                    let line =
                        json!({"kind": "label.recorded", "experiment": experiment, "data": data});
                    writeln!(labels, "{line}").unwrap();
                }
            }
        }
    }
    desk.file("rows.jsonl", &(lines + &labels));
    desk.ok("append --bulk rows.jsonl");
    desk
}

/// Decisions of one ledger, as bulk lines.
fn decisions(desk: &mut Desk, from: u64) -> String {
    desk.ok("export jsonl -o kept --blobs");
    let text = std::fs::read_to_string(desk.at.join("kept/ledger.jsonl")).unwrap();
    let mut lines = String::new();
    for line in text.lines().skip(usize::try_from(from).unwrap()) {
        use base64ct::Encoding as _;
        let entry: Value = serde_json::from_str(line).unwrap();
        let body = entry["envelope"]["payload"].as_str().unwrap();
        let body = base64ct::Base64::decode_vec(body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let line =
            json!({"kind": body["kind"], "experiment": body["experiment"], "data": body["data"]});
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

/// What computes nothing again.
static PLAIN: Rulebook = clover::projection::RULEBOOK;

/// Appends decisions as somebody does whose program asks no rule that computes again.
fn without_recomputing(desk: &Desk, lines: &str) {
    let key = |path: &Path| {
        let file = std::fs::read(path).unwrap();
        Signer::from(keyfile::read_private(&file, None).unwrap())
    };
    let options = LedgerOptions {
        store: OpenOptions::default(),
        log_key: Some(key(&desk.at.join(".clover/log.key"))),
        pins: None,
    };
    let mut ledger = Ledger::open(&desk.database(), desk.ambient.clone(), &PLAIN, options).unwrap();
    let commands: Vec<_> = lines
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let kind: Kind = line["kind"].as_str().unwrap().parse().unwrap();
            let data = line["data"].to_string();
            let (payload, _) = registry::decode(kind.as_str(), kind.version(), &data).unwrap();
            Command::new(
                payload,
                Some(line["experiment"].as_str().unwrap().parse().unwrap()),
            )
        })
        .collect();
    ledger
        .append(&commands, &key(&desk.key_file("owner")))
        .unwrap();
}

#[test]
fn one_changed_label_changes_what_rests_on_it_and_nothing_else() {
    let mut first = small(500_000);
    let size = first.head()["size"].as_u64().unwrap();
    for experiment in ["exp-1", "exp-2"] {
        first.ok(&format!("estimate --experiment {experiment}"));
        first.ok(&format!("compare --all --experiment {experiment}"));
    }
    let all = first.ok("replay --all --json").json();
    assert_eq!(
        (&all["verdict"], &all["data"]["same"]),
        (&json!("reproduced"), &json!(16))
    );

    // The same decisions, put beside rows of which one label is another.
    let lines = decisions(&mut first, size);
    let mut second = small(600_000);
    let blobs = first.at.join("kept/blobs");
    for blob in std::fs::read_dir(blobs).unwrap() {
        let path = blob.unwrap().path().display().to_string();
        second.ok_words(&["blob", "put", &path]);
    }
    second.file("decisions.jsonl", &lines);
    second.refused(
        &["append", "--bulk", "decisions.jsonl"],
        11,
        &["decisions.jsonl:1: recompute: expected calibrator"],
    );
    without_recomputing(&second, &lines);
    let verified = second.run("verify --recompute --json");
    assert_eq!(verified.code, 3, "{}{}", verified.out, verified.err);
    let ran = second.run("replay --all --json");
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    let answer = ran.json();
    assert_eq!(answer["verdict"], "differs");
    for event in answer["data"]["events"].as_array().unwrap() {
        let seq = event["seq"].as_u64().unwrap();
        let of = second.ok(&format!("show {seq} --json")).json();
        let depends = of["data"]["body"]["experiment"] == "exp-1";
        let outcome = if depends { "DIFFERS" } else { "identical" };
        assert_eq!(event["outcome"], outcome, "{event}");
    }
    let text = second.run("replay --all");
    assert!(
        text.out
            .contains("8 the same · 8 differ · 0 cannot be computed again"),
        "{}",
        text.out
    );
}

#[test]
fn too_few_labels_give_raw_means_that_say_so() {
    let mut desk = Desk::with_ledger();
    desk.ok("key new arb --role arbiter");
    let row =
        |item: &str, score: f64| format!("{{\"prompt_id\":\"{item}\",\"judge_score\":{score}}}\n");
    let rows: String = (0..5)
        .map(|at| row(&format!("p{at}"), 0.1 * f64::from(at)))
        .collect();
    desk.file("a_responses.jsonl", &rows);
    desk.ok("import cje a_responses.jsonl");
    let found = desk.ok("estimate --json").json();
    let of = policy(&found["data"], "a");
    assert_eq!(
        (&of["claim"], &of["route"]),
        (&json!("uncalibrated"), &json!("naive"))
    );
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    let none = desk.refused(&["estimate", "b"], 5, &["no policy b; there are a"]);
    assert!(none.out.is_empty());
    desk.refused(
        &["audit", "transport"],
        5,
        &["no label design for audit with labels"],
    );
    desk.refused(
        &["compare", "a"],
        4,
        &["expected two policies to compare, found scores of a alone"],
    );
    desk.refused(
        &["estimate", "--judge", "nobody"],
        5,
        &["no score by nobody"],
    );
}

#[test]
fn lengths_come_from_private_texts_and_go_with_their_keys() {
    let mut desk = Desk::with_ledger();
    for role in ["arbiter", "labeler"] {
        desk.ok(&format!("key new {role} --role {role}"));
    }
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let row = |at: usize| {
        let words = "word ".repeat(1 + at * 5 % 17);
        let score = 0.1 + 0.08 * (at % 10) as f64;
        let label = 0.05 + 0.07 * (at % 10) as f64 + 0.01 * (at * 5 % 17) as f64;
        format!(
            "{{\"prompt_id\":\"p{at}\",\"prompt\":\"q\",\"response\":\"{words}\",\"judge_score\":{score:.6},\"oracle_label\":{label:.6}}}\n"
        )
    };
    let rows: String = (0..40).map(row).collect();
    desk.file("a_responses.jsonl", &rows);
    desk.ok("import cje a_responses.jsonl --labels");
    let found = desk
        .ok("estimate --covariate response_length --json")
        .json();
    assert_eq!(found["verdict"], "appended");
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    let vault = desk.at.join(".clover/vault.db");
    std::fs::rename(&vault, desk.path("vault.away")).unwrap();
    // Nothing differs, and nothing is shown: not checked.
    let ran = desk.run("replay --all --json");
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    let gone = ran.json();
    assert_eq!(gone["verdict"], "incomplete");
    assert_eq!(gone["data"]["differ"], 0);
    let ran = desk.run("replay --all");
    assert!(ran.out.contains("NOT CHECKED"), "{}", ran.out);
    let one = gone["data"]["events"][0]["seq"].to_string();
    assert_eq!(desk.run(&format!("replay {one}")).code, 12);
    let why = gone["data"]["events"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("response_length") && why.contains("not at hand"),
        "{why}"
    );
    let ran = desk.run("estimate --covariate response_length --dry-run");
    assert_eq!(ran.code, 4);
    says(&ran, &["the key of its text is gone or not at hand"]);
}

#[test]
fn plans_come_from_the_ledgers_own_variance() {
    let mut desk = small(500_000);
    let fails = [
        "plan",
        "labels",
        "0.02",
        "--score-price",
        "0",
        "--label-price",
        "1",
        "--experiment",
        "exp-1",
    ];
    desk.refused(
        &fails,
        2,
        &["--score-price \"0\": expected a number above 0"],
    );
    let prices = "--score-price 0.01 --label-price 0.16 --experiment exp-1 --json";
    let cheap = desk.ok(&format!("plan labels 0.05 {prices}")).json();
    let of = |answer: &Value, field: &str| {
        answer["data"]["plan"]["evaluation"][field]
            .as_f64()
            .unwrap()
    };
    assert!(of(&cheap, "mde") <= 0.05 * 1.02);
    // What the plan costs buys what the plan shows.
    let money = format!("{:.6}", of(&cheap, "cost"));
    let same = desk.ok(&format!("plan budget {money} {prices}")).json();
    assert!((of(&same, "mde") - of(&cheap, "mde")).abs() < 1e-3);
    let finer = desk.ok(&format!("plan labels 0.01 {prices}")).json();
    assert!(of(&finer, "cost") > of(&cheap, "cost"));
    // What accounts spent is a price too.
    desk.ok_words(&[
        "record", "budget.opened", "--data",
        r#"{"account":"labels","amount":1000,"period":"once","purpose":"p","spenders":["labeler"],"unit":"cent"}"#,
    ]);
    desk.ok_words(&[
        "record",
        "budget.charged",
        "--data",
        r#"{"account":"labels","amount":40,"for":"labels"}"#,
    ]);
    let priced = desk
        .ok("plan labels 0.05 --score-price 0.01 --label-price labels --experiment exp-1 --json");
    assert_eq!(
        priced.json()["data"]["plan"]["prices"]["label_micro"],
        2_000_000
    );
    // Twenty labels leave the calibrator an error that no number of probes makes up for at this margin.
    let few = ["plan", "audit", "0.05", "--experiment", "exp-1"];
    desk.refused(
        &few,
        12,
        &[
            "from 20 labels the calibrator itself is off by",
            "calibrate on about",
        ],
    );
    let probes = desk.ok("plan audit 0.15 --experiment exp-1 --json").json();
    let audit = &probes["data"]["plan"]["audit"];
    assert!(audit["clusters"].as_u64().unwrap() >= 20, "{audit}");
    assert!(
        audit["pass_probability"].as_f64().unwrap() >= 0.8,
        "{audit}"
    );
    assert!(audit["calibration_sd"].as_f64().unwrap() > 0.0, "{audit}");
    // The variance of a label has an interval, and so have the labels.
    let split = &cheap["data"]["plan"]["split"];
    let at = |name: &str| split[name].as_f64().unwrap();
    assert!(
        at("calibration_low") < at("calibration") && at("calibration") < at("calibration_high")
    );
    assert_eq!(split["fold_seeds"], 20);
    assert!(of(&cheap, "labels_low") <= of(&cheap, "labels"));
    assert!(of(&cheap, "labels") <= of(&cheap, "labels_high"));
    let rows = desk
        .ok("plan iteration 0.001 --experiment exp-1 --json")
        .json();
    assert!(
        rows["data"]["plan"]["iteration"]["confirm_rows"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
}
