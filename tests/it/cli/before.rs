//! What is said or scored once labels can be read counts nowhere, and the honest order of work is not refused.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;
use super::sequential::labels;
use super::shipped;

/// A ledger with one design for calibration that labels with this probability.
fn desk(probability: &str) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all --custodian cem");
    desk.ok("experiment register arena --title One --purpose testing");
    desk.ok(&format!(
        "label design new calib --purpose calibrate --probability {probability}"
    ));
    desk
}

/// What a row of a file holds beside its prompt.
#[derive(Clone, Copy, Default)]
struct Holds {
    label: bool,
    score: bool,
    merit: bool,
}

/// Rows of a policy by their numbers: a score, and a label and a field where they are wanted.
fn rows(range: std::ops::Range<usize>, holds: impl Fn(usize) -> Holds) -> String {
    let row = |at: usize| {
        let score = 0.1 + 0.8 * ((at * 37 % 101) as f64 / 101.0);
        let label = 0.05 + 0.85 * score + ((at % 5) as f64 - 2.0) / 50.0;
        let of = holds(at);
        let mut row = json!({"prompt_id": format!("p{at:03}"), "prompt": format!("q{at}"), "response": format!("a{at}")});
        if of.score {
            row["judge_score"] = json!((score * 1e6).round() / 1e6);
        }
        if of.label {
            row["oracle_label"] = json!((label * 1e6).round() / 1e6);
        }
        if of.merit {
            row["merit"] = json!((label * 1e3).round() / 1e3);
        }
        row.to_string() + "\n"
    };
    range.map(row).collect()
}

/// Writes a file of a policy's rows and gives its path.
fn file(desk: &mut Desk, folder: &str, policy: &str, text: &str) -> String {
    std::fs::create_dir_all(desk.at.join(folder)).unwrap();
    desk.file(&format!("{folder}/{policy}_responses.jsonl"), text)
}

fn answer(desk: &mut Desk, line: &str) -> (Value, String) {
    let ran = desk.run(&format!("{line} --json"));
    let data = ran.json()["data"].clone();
    let text = data["answer"]["text"].as_str().unwrap().to_owned();
    (data, text)
}

const SCORED: Holds = Holds {
    label: false,
    score: true,
    merit: false,
};
const LABELLED: Holds = Holds {
    label: true,
    score: true,
    merit: false,
};

/// 80 scored and labelled rows of `base`, and 60 rows of `tuned`, of which none is scored or all are.
fn audited(is_scored: bool) -> Desk {
    let mut desk = desk("1");
    let base = file(&mut desk, "base", "base", &rows(0..80, |_| LABELLED));
    desk.ok(&format!("import cje {base} --labels"));
    desk.ok("label design new probes --purpose audit --probability 1");
    if is_scored {
        let tuned = file(&mut desk, "tuned", "tuned", &rows(0..60, |_| SCORED));
        desk.ok(&format!("import cje {tuned}"));
    }
    let labelled = rows(0..60, |_| LABELLED);
    let mut csv = "prompt_id,label,policy\n".to_owned();
    for line in labelled.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        csv += &format!(
            "{},{},tuned\n",
            row["prompt_id"].as_str().unwrap(),
            row["oracle_label"]
        );
    }
    let texts = rows(0..60, |_| Holds::default());
    let texts = file(&mut desk, "texts", "tuned", &texts);
    if !is_scored {
        desk.ok(&format!("import rows {texts} --policy tuned"));
    }
    let csv = desk.file("probes.csv", &csv);
    desk.ok(&format!(
        "import labels {csv} --policy tuned --design probes --purpose audit"
    ));
    desk
}

#[test]
fn probes_that_were_scored_before_their_labels_are_audited() {
    let mut desk = audited(true);
    let (data, text) = answer(&mut desk, "audit transport --design probes");
    let of = &data["audits"][0];
    assert_eq!(
        (&of["state"], &of["late"], &of["rows"]),
        (&json!("pass"), &json!(0), &json!(60)),
        "{text}"
    );
    desk.ok("verify --recompute");
}

#[test]
fn probes_that_are_scored_once_their_labels_can_be_read_pass_nothing() {
    let mut desk = audited(false);
    let none = desk.run("audit transport --design probes");
    assert_eq!(none.code, 11, "{}{}", none.out, none.err);
    // Whoever has read the labels scores some rows, and leaves the others.
    let tuned = file(&mut desk, "tuned", "tuned", &rows(0..40, |_| SCORED));
    desk.ok(&format!("import cje {tuned}"));
    let ran = desk.run("audit transport --design probes");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &["no probe of probes had a score before its label could be read"],
    );
}

#[test]
fn an_audit_with_a_late_probe_says_how_many_and_passes_nothing() {
    let mut desk = audited(true);
    // Eight more prompts are labelled first and scored later; two more are never scored.
    let texts = rows(60..70, |_| Holds::default());
    let texts = file(&mut desk, "more", "tuned", &texts);
    desk.ok(&format!("import rows {texts} --policy tuned"));
    let labelled = rows(60..70, |_| LABELLED);
    let mut csv = "prompt_id,label,policy\n".to_owned();
    for line in labelled.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        csv += &format!(
            "{},{},tuned\n",
            row["prompt_id"].as_str().unwrap(),
            row["oracle_label"]
        );
    }
    let csv = desk.file("more.csv", &csv);
    desk.ok(&format!(
        "import labels {csv} --policy tuned --design probes --purpose audit"
    ));
    let late = file(&mut desk, "late", "tuned", &rows(60..68, |_| SCORED));
    desk.ok(&format!("import cje {late}"));
    let (data, text) = answer(&mut desk, "audit transport --design probes");
    let of = &data["audits"][0];
    assert_eq!(
        (&of["late"], &of["rows"], &of["state"]),
        (&json!(10), &json!(60), &json!("inconclusive"))
    );
    assert!(
        text.contains(
            "Of the 70 probes of tuned, 10 had no score before their label could be read"
        ),
        "{text}"
    );
    // Nobody records a pass in its place.
    let seq =
        desk.ok("log --kind transport.tested --json").json()["data"]["entries"][0]["seq"].clone();
    let said = desk.ok(&format!("show {seq} --json")).json()["data"]["body"]["data"].clone();
    let mut other = said.clone();
    other["late"] = json!(0);
    other["policy"] = json!("base");
    let words = other.to_string();
    desk.refused(
        &[
            "record",
            "transport.tested",
            "--experiment",
            "arena",
            "--data",
            &words,
        ],
        11,
        &[],
    );
    desk.ok("verify --recompute");
    desk.ok("replay --all");
}

const WITH: Holds = Holds {
    label: false,
    score: true,
    merit: true,
};

#[test]
fn a_covariate_counts_where_it_was_said_before_the_labels() {
    let mut desk = desk("1");
    let every = |at: usize| Holds {
        label: at < 80,
        ..WITH
    };
    // Two files in one command, the labels of the first beside the fields of the second: rows come first, labels last.
    file(&mut desk, "both", "base", &rows(0..80, every));
    file(&mut desk, "both", "tuned", &rows(0..60, |_| WITH));
    desk.ok("import cje both --labels --field merit");
    desk.ok("estimate --covariate merit");
    // The same rows once more say nothing anew, and other rows without the field are no matter.
    desk.ok("import cje both --judge other --field merit");
    desk.ok("estimate --covariate merit");
    let later = file(&mut desk, "later", "later", &rows(0..60, |_| WITH));
    desk.ok(&format!("import cje {later} --field merit"));
    let ran = desk.run("estimate --covariate merit");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &[
            "covariate merit: some of it was said at seq",
            "after the first label that could be read",
        ],
    );
    desk.ok("estimate");
    desk.ok("verify --recompute");
}

#[test]
fn a_covariate_that_copies_labels_is_refused() {
    let mut desk = desk("1");
    let base = file(&mut desk, "base", "base", &rows(0..80, |_| LABELLED));
    desk.ok(&format!("import cje {base} --labels"));
    let merit = |_| Holds {
        merit: true,
        ..LABELLED
    };
    let again = file(&mut desk, "again", "base", &rows(0..80, merit));
    desk.ok(&format!("import cje {again} --field merit"));
    let ran = desk.run("estimate --covariate merit --dry-run");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(&ran, &["covariate merit: some of it was said at seq"]);
}

#[test]
fn fewer_labels_than_the_design_draws_are_named() {
    let mut desk = desk("0.9");
    let holds = |at: usize| Holds {
        label: at < 67,
        ..SCORED
    };
    let base = file(&mut desk, "base", "base", &rows(0..157, holds));
    desk.ok(&format!("import cje {base} --labels"));
    let (data, text) = answer(&mut desk, "estimate");
    assert!(
        text.contains("67 of 157 rows of base are labelled, and their design draws about 141"),
        "{text}"
    );
    assert_eq!(data["answer"]["may_be_claimed"], false);
    // Once the labels that were missing have come, the value may be claimed.
    let holds = |at: usize| Holds {
        label: at < 141,
        ..SCORED
    };
    let base = file(&mut desk, "base", "base", &rows(0..157, holds));
    desk.ok(&format!("import cje {base} --labels"));
    let (data, text) = answer(&mut desk, "estimate");
    assert_eq!(data["answer"]["may_be_claimed"], true, "{text}");
}

/// A row of confirm whose label was sealed, and that no judge has scored.
#[test]
fn confirm_opens_once_every_sealed_row_is_scored_and_none_is_scored_after() {
    let [mended, _] = clover::workflow::simulate::shipped::shipped();
    let mut desk = Desk::new();
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("key new mal --role adversary");
    desk.ok_words(&["record", "budget.opened", "--data", shipped::PEEKS]);
    shipped::written(&desk.at, &mended, &shipped::plan(&mended));
    let path = desk.at.join("mended/responses/base_responses.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let time = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["sampled_at"].as_str().unwrap().to_owned()
    };
    let (_, _, t2) = mended.world().times();
    let within = |line: &&str| time(line) < t2.to_string();
    let left = text
        .lines()
        .filter(within)
        .max_by_key(|line| time(line))
        .unwrap()
        .to_owned();
    let kept: String = text
        .lines()
        .filter(|line| *line != left)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&path, kept).unwrap();
    let mut row: Value = serde_json::from_str(&left).unwrap();
    let label = row["oracle_label"].clone();
    let item = row["prompt_id"].as_str().unwrap().to_owned();
    for name in ["judge_score", "oracle_label"] {
        row.as_object_mut().unwrap().remove(name);
    }
    let texts = file(&mut desk, "left", "base", &format!("{row}\n"));
    let csv = desk.file(
        "left.csv",
        &format!("prompt_id,label,policy\n{item},{label},base\n"),
    );
    for (at, words) in shipped::opening(&mended).into_iter().enumerate() {
        if at == 5 {
            desk.ok(&format!(
                "import rows {texts} --experiment mended --policy base"
            ));
        }
        if at == 8 {
            desk.ok(&format!(
                "import labels {csv} --experiment mended --policy base --seal hold --reveal-by 2027-06-01 --yes"
            ));
        }
        desk.ok(&words);
    }
    desk.ok("iterate run it-mended --to cards");
    desk.ok("iterate propose it-mended mended/patch.yaml");
    desk.ok("iterate run it-mended --to seal");
    let all = labels(&mut desk, "label.sealed");
    let says_how_many =
        format!("1 of the {all} sealed confirm rows have no score of judge builtin");
    desk.refused(
        &["iterate", "confirm", "it-mended", "--yes"],
        11,
        &[&says_how_many],
    );
    assert_eq!(labels(&mut desk, "budget.charged"), 0);
    desk.ok("judge run --experiment mended --judge builtin --rows left --known mended/known.json");
    desk.ok("iterate confirm it-mended --yes");
    assert_eq!(labels(&mut desk, "label.revealed"), all);
    // Whoever has seen the labels scores no row of the block.
    let score = json!({
        "draw": 1, "item": item, "judge": "builtin", "policy": "base", "score_micro": 500_000,
    });
    let score = score.to_string();
    let words = [
        "record",
        "score.recorded",
        "--experiment",
        "mended",
        "--data",
        &score,
    ];
    desk.refused(&words, 11, &["sealing"]);
    desk.ok("iterate run it-mended --yes");
    desk.ok("verify --recompute");
    // Once it has ended, anybody may.
    desk.ok_words(&words);
}
