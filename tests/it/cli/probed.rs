//! What an adversary found: words of others on a page, sealed labels on a scale, labels of a compromised key, and a plan that goes
//! to standard output.

use std::fmt::Write as _;

use super::Desk;
use super::renderings::drawn;
use super::says;

/// When sealed labels are opened at the latest.
const LATER: &str = "2031-01-31";

#[test]
fn a_log_on_a_page_escapes_what_others_wrote() {
    let mut desk = Desk::with_ledger();
    let register = [
        "experiment",
        "register",
        "<script>alert(1)</script>",
        "--title",
        "<img src=x>",
        "--purpose",
        "p",
    ];
    desk.ok_words(&register);
    let page = desk.ok("log --render html").out;
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(page.contains("&lt;img src=x&gt;"), "{page}");
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
    let document = desk.ok("log --render markdown").out;
    assert!(document.contains("```"), "{document}");
    // Lines that come one by one are no page.
    let followed = desk.run("log --follow --render html");
    assert_eq!(followed.code, 2, "{}{}", followed.out, followed.err);
    says(
        &followed,
        &["--follow gives lines as they come", "clover log --follow"],
    );
}

#[test]
fn sealed_labels_on_a_scale_above_0_are_opened() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/own --holder Ada --roles all --custodian cem");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new probes --purpose audit --probability 0.4");
    let peeks = r#"{"account":"confirm-peeks","amount":3,"period":"quarter","purpose":"peeks","spenders":["custodian"],"unit":"peek"}"#;
    desk.ok_words(&["record", "budget.opened", "--data", peeks]);
    desk.file("rows.csv", "prompt_id,judge_score\np1,0.5\np2,0.5\n");
    desk.ok("import csv rows.csv --policy base");
    desk.file("sealed.csv", "item,policy,label\np1,base,3\np2,base,4\n");
    desk.ok(&format!(
        "import labels sealed.csv --scale 1:5 --seal probes --reveal-by {LATER} --yes"
    ));
    desk.ok("confirm seal probes");
    desk.ok("confirm unseal probes --for audit --yes");
    let shown = desk.ok("log --kind label.revealed --json").json();
    assert_eq!(shown["data"]["entries"].as_array().unwrap().len(), 2);
    desk.ok("verify");
}

#[test]
fn labels_of_a_compromised_key_claim_nothing() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/own --holder Ada --roles owner,registrar,scorer,arbiter --custodian cem");
    desk.ok("key new lea --role labeler --holder Lea");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1 --key lea");
    let (mut rows, mut labels) = (
        "prompt_id,judge_score\n".to_owned(),
        "item,policy,label\n".to_owned(),
    );
    for at in 0..60 {
        let score = f64::from(at) / 60.0;
        writeln!(rows, "p{at},{score:.3}").unwrap();
        writeln!(labels, "p{at},base,{:.3}", 0.1 + 0.7 * score).unwrap();
    }
    desk.file("rows.csv", &rows);
    desk.file("labels.csv", &labels);
    desk.ok("import csv rows.csv --policy base");
    desk.ok("import labels labels.csv --design calib --key lea");
    desk.ok("estimate");
    let words = [
        "key",
        "compromise",
        "lea",
        "--since-seq",
        "3",
        "--reason",
        "somebody else signed",
        "--yes",
    ];
    desk.ok_words(&words);
    let before = desk.head();
    let ran = desk.ok("estimate --json");
    let answer = ran.json();
    assert_eq!(answer["verdict"], "tainted", "{answer:#}");
    assert_eq!(answer["data"]["answer"]["may_be_claimed"], false);
    let text = answer["data"]["answer"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("base is VOID: nothing may be claimed of it."),
        "{text}"
    );
    assert_eq!(
        answer["data"]["policies"][0]["claim"], "refused",
        "{answer:#}"
    );
    assert_eq!(desk.head(), before, "nothing is recorded");
    desk.ok("verify --recompute");
    // Reports and extracts claim no more: the value that was recorded before stands nowhere.
    let report = drawn(&mut desk, "report estimate own").json;
    let found = report["head"]["answer"].as_str().unwrap();
    assert!(found.starts_with("base is VOID"), "{found}");
    let tables = [&report["parts"][0], &report["appendices"][0]];
    for table in tables.map(|part| &part["tables"][0]) {
        let rows = table["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{table}");
        assert!(
            rows.iter().all(|row| row["estimate"] == "withheld"),
            "{table}"
        );
    }
    let whole = drawn(&mut desk, "report experiment own").json;
    assert!(
        whole["head"]["rest"][0]
            .as_str()
            .unwrap()
            .starts_with("base is VOID"),
        "{whole}"
    );
    desk.ok("export cyclonedx -o bom.json");
    let bom = std::fs::read_to_string(desk.at.join("bom.json")).unwrap();
    let bom: serde_json::Value = serde_json::from_str(&bom).unwrap();
    let card = &bom["components"][0]["modelCard"];
    let metrics = &card["quantitativeAnalysis"]["performanceMetrics"];
    assert_eq!(metrics.as_array().unwrap().len(), 0, "{card}");
    assert!(
        card["considerations"].to_string().contains("VOID"),
        "{card}"
    );
}

#[test]
fn a_plan_goes_to_standard_output_for_a_dash() {
    let mut desk = Desk::with_ledger();
    let shown = desk.ok("prereg new --template gate -o -").out;
    assert_eq!(shown, desk.ok("prereg new --template gate").out);
    assert!(!desk.at.join("-").exists());
}
