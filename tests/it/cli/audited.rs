//! Audits under a registered manifest, and what a failed one marks: differences, ranks, plots, logged responses.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::estimate::Sample;
use super::estimate::desk;
use super::estimate::policy;
use super::renderings::drawn;
use super::says;
use crate::support::verifiers;

/// A plan of audits of some policies, at a margin of 0.15.
fn plan(policies: &[&str]) -> String {
    let mut text = format!(
        "template: transport\nversion: 1\nmanifest: audits-1\nexperiment: arena\ntitle: Audits\nhypothesis:\n  \
         claim: calibration transfers\n  kind: measure\ntransport:\n  margin_micro: 150000\n  alpha_micro: 40000\n  \
         family_size: {}\n  power_micro: 800000\n  residual_sd_micro: 200000\n  bias_micro: 0\n  clusters_min: 20\n  \
         labels_per_cluster: 1\n  environments:\n",
        policies.len()
    );
    for policy in policies {
        text.push_str(&format!(
            "    - environment: {policy}\n      clusters: 50\n      required: true\n"
        ));
    }
    text
}

/// The sample with a plan in force and its probes accepted.
fn planned(policies: &[&str]) -> Desk {
    let mut desk = desk(&Sample::kept());
    desk.file("plan.yaml", &plan(policies));
    desk.ok("prereg sign plan.yaml --key owner");
    desk.ok("confirm seal probes");
    desk
}

fn peeks_left(desk: &mut Desk) -> Value {
    let shown = desk.ok("budget show confirm-peeks --json").json();
    shown["data"]["left"].clone()
}

#[test]
fn an_audit_under_a_manifest_is_as_registered() {
    let mut desk = planned(&["clone", "parallel_universe_prompt"]);
    // What the manifest binds is held to before a peek is paid.
    for (words, part) in [
        (
            &["--margin", "0.2"][..],
            "manifest audits-1 binds margin and alpha of audits",
        ),
        (
            &["--alpha", "0.01"],
            "manifest audits-1 binds margin and alpha of audits",
        ),
        (
            &["--policy", "unhelpful"],
            "manifest audits-1 does not plan an audit of unhelpful; it plans clone",
        ),
    ] {
        let words = [&["audit", "transport", "--yes"], words].concat();
        desk.refused(&words, 11, &[part]);
    }
    assert_eq!(peeks_left(&mut desk), 3);
    let ran = desk.ok("audit transport --yes --json").json();
    assert_eq!(ran["verdict"], "pass");
    assert_eq!(peeks_left(&mut desk), 2);
    let shown = desk.ok("prereg show audits-1 --json").json();
    let digest = ran["data"]["manifest"].as_str().unwrap();
    assert!(shown.to_string().contains(digest), "{shown}");
    let audits = ran["data"]["audits"].as_array().unwrap();
    let names: Vec<&Value> = audits.iter().map(|of| &of["policy"]).collect();
    assert_eq!(names, ["clone", "parallel_universe_prompt"]);
    for of in audits {
        let terms = json!({
            "alpha_micro": 40_000, "clusters_min": 20, "family_size": 2, "manifest": digest, "margin_micro": 150_000,
        });
        assert_eq!(of["audit"], terms);
        assert_eq!(of["state"], "pass");
    }
    let warned = ran["warnings"].to_string();
    assert!(
        warned.contains("no manifest plans an audit of unhelpful"),
        "{warned}"
    );
    let text = desk.words(&["audit", "transport", "--yes"]);
    assert_eq!(text.code, 11, "{}{}", text.out, text.err);
    says(&text, &["this audit is on record at seq"]);
    // A passed audit of this very calibrator is what borrowed calibration needs.
    let found = desk.ok("estimate --json").json();
    let claim = |name: &str| policy(&found["data"], name)["claim"].clone();
    assert_eq!(
        (claim("clone"), claim("unhelpful")),
        (json!("borrowed_checked"), json!("refused"))
    );
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    desk.ok("verify --recompute");
    reported(&mut desk, &found["data"]);
    // Another's numbers under the same plan are refused.
    let mut other = audits[0].clone();
    other["audit"]["margin_micro"] = 300_000.into();
    let other = other.to_string();
    let words = [
        "record",
        "transport.tested",
        "--experiment",
        "arena",
        "--data",
        &other,
    ];
    desk.refused(&words, 11, &[]);
}

/// Given passed audits whose probes a custodian sealed and opened, when that key was compromised before, then nothing is claimed.
#[test]
fn a_pass_on_probes_of_a_compromised_key_supports_no_claim() {
    let mut desk = planned(&["clone", "parallel_universe_prompt"]);
    desk.ok("audit transport --yes");
    let claim = |desk: &mut Desk| {
        let found = desk.ok("estimate --json").json();
        (policy(&found["data"], "clone")["claim"].clone(), found)
    };
    assert_eq!(claim(&mut desk).0, "borrowed_checked");
    desk.ok("key compromise cem --since-seq 1 --reason stolen --yes");
    let before = desk.head();
    let (claim, found) = claim(&mut desk);
    assert_eq!(
        (&claim, &found["verdict"]),
        (&json!("refused"), &json!("tainted"))
    );
    let warned = found["warnings"].to_string();
    assert!(warned.contains("clone rests on entries of key"), "{warned}");
    let compared = desk.ok("compare --all --json").json();
    assert_eq!(compared["data"]["answer"]["may_be_claimed"], false);
    assert_eq!(desk.head(), before, "nothing is recorded");
    desk.ok("verify --recompute");
}

/// The report of estimates says what `estimate` said, and shows the values that it recorded.
fn reported(desk: &mut Desk, said: &Value) {
    let report = drawn(desk, "report estimate arena").json;
    let answer = report["head"]["answer"].as_str().unwrap();
    assert!(
        answer.starts_with(said["answer"]["text"].as_str().unwrap()),
        "{answer}\n{said}"
    );
    let rows = report["parts"][0]["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), said["policies"].as_array().unwrap().len());
    for row in rows {
        let of = policy(said, row["policy"].as_str().unwrap());
        let shown = ["level", "unchecked"].map(|name| &of[name]);
        let shown = shown.into_iter().find(|level| level.is_object());
        if let Some(level) = shown {
            assert_eq!(row["estimate"], level["estimate"], "{row}\n{of}");
            let wide = &level["conservative_interval"];
            let wide = if wide.is_null() {
                &level["interval"]
            } else {
                wide
            };
            assert_eq!(row["interval"]["low"], wide[0], "{row}\n{of}");
        } else {
            // What `estimate` withholds stands in no report.
            assert_eq!(row["estimate"], "withheld", "{row}\n{of}");
            assert!(row["interval"].is_null(), "{row}");
        }
        let claimable = said["answer"]["claimable"].as_array().unwrap();
        assert_eq!(
            row["claimable"],
            claimable.contains(&row["policy"]),
            "{row}"
        );
        assert_eq!(row["rows"], of["rows"], "{row}");
    }
    let audits = report["parts"][2]["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(audits.len(), 2, "{audits:#?}");
    assert!(audits.iter().all(|of| of["state"] == "pass"));
    // Nor in a row of an earlier estimate of the policy, nor in a drawing.
    let every = report["appendices"][0]["tables"][0]["rows"]
        .as_array()
        .unwrap();
    let earlier = every.iter().filter(|row| row["policy"] == "unhelpful");
    let earlier: Vec<&Value> = earlier.collect();
    assert!(!earlier.is_empty(), "{every:#?}");
    assert!(
        earlier.iter().all(|row| row["estimate"] == "withheld"),
        "{earlier:#?}"
    );
    let whole = drawn(desk, "report experiment arena").json;
    assert!(
        whole["head"]["rest"].to_string().contains("may be claimed"),
        "{whole}"
    );
    let parts = whole["parts"].as_array().unwrap();
    assert!(
        parts.iter().any(|part| part["title"] == "Gates"),
        "{parts:#?}"
    );
}

/// A row of the table of what was begun and what ended.
fn tally(desk: &mut Desk, what: &str) -> [Value; 2] {
    let report = drawn(desk, "report experiment arena").json;
    let rows = report["parts"][0]["tables"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["what"] == what).unwrap();
    [row["begun"].clone(), row["open"].clone()]
}

#[test]
fn a_plan_that_comes_after_its_probes_plans_no_audit_by_them() {
    let mut desk = desk(&Sample::kept());
    desk.ok("confirm seal probes");
    assert_eq!(tally(&mut desk, "charges for sealed labels"), [0, 0]);
    desk.ok_words(&["confirm", "unseal", "probes", "--for", "a look", "--yes"]);
    // Probes that were opened and that no audit read have no end.
    assert_eq!(tally(&mut desk, "designs for audits"), [1, 1]);
    assert_eq!(tally(&mut desk, "charges for sealed labels"), [1, 0]);
    desk.file("plan.yaml", &plan(&["clone", "parallel_universe_prompt"]));
    desk.ok("prereg sign plan.yaml --key owner");
    // What was seen first is what the page of plans says.
    let plans = desk.ok("audit plans --json").json();
    assert_eq!(plans["data"]["plans"][0]["timing"], "after", "{plans}");
    // A wider margin than the usual one is signed first, or it grades nothing.
    let wider = ["audit", "transport", "--margin", "0.15", "--yes"];
    let refused = desk.refused(&wider, 11, &["--margin 0.15 is above the usual 0.05"]);
    assert!(
        refused
            .err
            .contains("clover prereg new --template transport"),
        "{}",
        refused.err
    );
    let ran = desk.words(&["audit", "transport", "--yes", "--json"]);
    let answer = ran.json();
    let warned = answer["warnings"].to_string();
    let part = "manifest audits-1 came into force after a probe of probes was open";
    assert!(warned.contains(part), "{warned}");
    let audits = answer["data"]["audits"].as_array().unwrap();
    assert_eq!(audits.len(), 3, "{answer}");
    assert!(
        audits
            .iter()
            .all(|of| of["audit"].get("manifest").is_none())
    );
    // Nor does a record that names it.
    let shown = desk.ok("log --kind manifest.registered --json").json();
    let digest = shown["data"]["entries"][0]["body"]["data"]["digest"].clone();
    let mut other = audits[0].clone();
    other["audit"]["manifest"] = digest;
    let other = other.to_string();
    let words = [
        "record",
        "transport.tested",
        "--experiment",
        "arena",
        "--data",
        &other,
    ];
    let parts = ["none that is in force planned audits before a probe was open"];
    desk.refused(&words, 11, &parts);
    desk.ok("verify --recompute");
}

#[test]
fn what_is_planned_and_has_no_probe_is_not_checked() {
    let mut desk = planned(&["clone", "premium"]);
    let ran = desk.words(&["audit", "transport", "--yes", "--json"]);
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    let answer = ran.json();
    assert_eq!(answer["verdict"], "inconclusive");
    assert_eq!(answer["data"]["not_checked"], json!(["premium"]));
    assert_eq!(answer["data"]["audits"][0]["state"], "pass");
}

/// Labels for calibration of a policy's rows that no probe drew, every one of the same value.
fn labelled(desk: &mut Desk, of: &str, rows: usize, value: u64) {
    let folder = verifiers::repository().join("fixtures/reference/arena");
    let items = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let lines = text.lines().map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["prompt_id"].as_str().unwrap().to_owned()
        });
        lines.collect()
    };
    let probes = items(&format!("probe_slice/{of}_probe.jsonl"));
    let all = items(&format!("fresh_draws/{of}_responses.jsonl"));
    let lines: String = all
        .iter()
        .filter(|item| !probes.contains(item))
        .take(rows)
        .map(|item| {
            let data = json!({
                "design": "calib", "draw": 0, "item": item, "policy": of, "purpose": "calibrate", "rater": "r",
                "value_micro": value,
            });
            json!({"kind": "label.recorded", "experiment": "arena", "data": data}).to_string() + "\n"
        })
        .collect();
    desk.file("labels.jsonl", &lines);
    desk.ok("append --bulk labels.jsonl");
}

/// The differences of an answer that a policy is in, and those that it is not.
fn split(answer: &Value, name: &str) -> [Vec<Value>; 2] {
    let pairs = answer["data"]["differences"].as_array().unwrap().iter();
    let (with, without) = pairs
        .cloned()
        .partition(|pair: &Value| pair["first"] == name || pair["second"] == name);
    [with, without]
}

fn ranks(answer: &Value) -> Value {
    let ranking = answer["data"]["ranking"].as_array().unwrap().iter();
    ranking.map(|of| of["rank"].clone()).collect()
}

#[test]
fn a_failed_audit_is_seen_in_differences_ranks_plots_and_logged_responses() {
    let mut desk = desk(&Sample::kept());
    let logged = verifiers::repository().join("fixtures/reference/arena/logged_data.jsonl");
    desk.ok(&format!(
        "import cje {} --policy base --logprobs",
        logged.display()
    ));
    let before = desk.ok("compare --all --json").json();
    let seq = desk.head()["size"].as_u64().unwrap() - 1;
    for pair in before["data"]["differences"].as_array().unwrap() {
        assert_eq!(pair["transport"], Value::Null);
    }
    desk.ok("confirm seal probes");
    let ran = desk.words(&["audit", "transport", "--yes", "--json"]);
    assert_eq!(ran.code, 10, "{}{}", ran.out, ran.err);
    let answer = ran.json();
    let seqs = answer["data"]["recorded"]["seqs"].as_array().unwrap();
    let failed = seqs.last().unwrap().clone();

    let after = desk.ok("compare --all --json").json();
    assert_eq!(after["verdict"], "appended");
    let [with, without] = split(&after, "unhelpful");
    assert_eq!((with.len(), without.len()), (3, 3));
    for pair in &with {
        assert_eq!(pair["transport"], json!({"seq": failed, "state": "FAIL"}));
        assert_eq!(pair["told_apart"], false);
        assert_eq!(pair["reading"], "transport FAIL");
    }
    // Nothing else moved.
    assert_eq!(without, split(&before, "unhelpful")[1]);
    // Only one has labels of its own, and no audit passed: no order is claimed, so nobody has a rank.
    assert_eq!(ranks(&after), json!([null, null, null, null]));
    for pair in &without {
        assert_eq!(
            (&pair["told_apart"], &pair["reading"]),
            (&json!(false), &json!("unchecked"))
        );
    }
    let recorded = desk.ok("log --kind contrast.recorded --json").json();
    let entries = recorded["data"]["entries"].as_array().unwrap().iter();
    let newest = entries.map(|of| of["seq"].as_u64().unwrap()).max();
    let newest = newest.unwrap();
    let said = desk.ok(&format!("show {newest} --json")).json();
    assert_eq!(
        said["data"]["body"]["data"]["second_transport"],
        json!({"seq": failed, "state": "fail"})
    );
    let text = desk.ok("compare --all --dry-run --plot pairs.svg").out;
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.contains("transport FAIL"), "{text}");
    // Rows of the win matrix have a letter, since a number would read as a rank.
    let rank = |name: &str| -> Vec<&str> {
        let lettered = |line: &&str| {
            let first = line.split_whitespace().next();
            first.is_some_and(|word| matches!(word, "A" | "B" | "C" | "D"))
        };
        let mut lines = text.lines().filter(lettered);
        let line = lines.find(|line| line.contains(&format!("  {name} ")));
        line.unwrap().split_whitespace().skip(2).collect()
    };
    assert_eq!(rank("unhelpful"), ["-", "!", "!", "!"], "{text}");
    assert_eq!(rank("base")[0], "-", "{text}");
    let svg = std::fs::read_to_string(desk.at.join("pairs.svg")).unwrap();
    // A difference would give the withheld level away.
    assert_eq!(svg.matches("unhelpful").count(), 0, "{svg}");
    let pairs = text
        .lines()
        .filter(|line| line.contains("- unhelpful ") && line.contains("transport FAIL"));
    assert_eq!(
        pairs.filter(|line| line.contains(" withheld ")).count(),
        3,
        "{text}"
    );
    let forest = desk.ok("estimate --raw --dry-run").out;
    assert!(forest.contains("0.512 transport FAIL"), "{forest}");

    // As of then, nobody had audited anything.
    let then = desk.ok(&format!("at {seq} -- compare --all --json")).json();
    assert_eq!(then["verdict"], "as_of");
    assert_eq!(then["data"]["differences"], before["data"]["differences"]);

    let ope = desk.ok("estimate --ope --json").json();
    for of in ope["data"]["policies"].as_array().unwrap() {
        let is_failed = of["policy"] == "unhelpful";
        for estimate in of["estimates"].as_array().unwrap() {
            let marked = json!({"seq": failed, "state": "fail"});
            let expected = if is_failed { marked } else { Value::Null };
            assert_eq!(estimate["transport"], expected);
            assert!(!is_failed || estimate["verdict"] == "refused");
        }
    }
    let text = desk.ok("estimate --ope unhelpful --dry-run").out;
    assert!(
        text.contains(&format!("refused: transport FAIL at seq {failed}")),
        "{text}"
    );

    // Until it is recalibrated with as many new labels of it as its audit had prompts.
    labelled(&mut desk, "unhelpful", 60, 160_000);
    let again = desk.ok("compare --all --json").json();
    for pair in again["data"]["differences"].as_array().unwrap() {
        assert_eq!(pair["transport"], Value::Null);
    }
    // Its labels are too few where its scores lie: the level is still withheld, and it has no rank.
    assert_eq!(ranks(&again)[3], Value::Null);
    let ope = desk.ok("estimate --ope unhelpful --json").json();
    for estimate in ope["data"]["policies"][0]["estimates"].as_array().unwrap() {
        assert_eq!(estimate["transport"], Value::Null);
    }
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    desk.ok("verify --recompute");
}
