//! A gate with a control variate on the command line, from the file of units to the promotion.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::claims;
use super::gate;

/// Units, every other one hard.
fn units(n: usize) -> Vec<(String, &'static str)> {
    let unit = |at: usize| (format!("unit-{at:03}"), ["easy", "hard"][at % 2]);
    (0..n).map(unit).collect()
}

fn units_file(desk: &Desk, n: usize) -> String {
    let line = |(unit, stratum): (String, &str)| format!("{unit}\t{stratum}\n");
    let lines: String = units(n).into_iter().map(line).collect();
    desk.file("units.txt", &lines)
}

/// The file of a manifest of exactly these units, whose strata are those that `gate root` counted.
fn plan(desk: &mut Desk, n: usize, predicted: [i64; 2]) -> String {
    let file = units_file(desk, n);
    let root = desk.ok(&format!("gate root {file} --json")).json();
    assert_eq!(
        root["data"]["strata"],
        json!({"easy": n / 2, "hard": n / 2})
    );
    let digest = root["data"]["confirm_root"].as_str().unwrap();
    let [easy, hard] = predicted;
    let half = n / 2;
    let strata = format!(
        "without_replacement: true
  control_variate:
    - {{stratum: easy, units: {half}, predicted_micro: {easy}}}
    - {{stratum: hard, units: {half}, predicted_micro: {hard}}}"
    );
    let text = gate::manifest("m-1", "exp-1", digest, 50_000)
        .replace("without_replacement: false", &strata)
        .replace("population: superpopulation", "population: finite")
        .replace("  repeats: 1\n", "  repeats: 1\n  noise: none\n")
        .replace(
            "n_units: 40,",
            &format!("n_units: {n}, strata: [difficulty],"),
        )
        .replace("n_max: 40", &format!("n_max: {n}"));
    desk.file("m-1.yaml", &text)
}

/// Easy units gain little and hard ones much.
fn outcomes(desk: &Desk) -> String {
    let line = |(at, (unit, stratum)): (usize, (String, &str))| {
        let gain = if stratum == "hard" { 0.5 } else { -0.1 };
        let candidate = 0.4 + gain + [0.0, 0.04, -0.04][at % 3];
        format!("{{\"unit\":\"{unit}\",\"baseline\":0.4,\"candidate\":{candidate:.2}}}\n")
    };
    let lines: String = units(40).into_iter().enumerate().map(line).collect();
    desk.file("outcomes.jsonl", &lines)
}

#[test]
fn a_gate_with_strata_is_registered_observed_in_parts_and_promotes() {
    let mut desk = claims::desk();
    claims::family(&mut desk, "quarter", "spend", "0.05", 4);
    let file = plan(&mut desk, 40, [-100_000, 500_000]);
    desk.ok(&format!("prereg check {file}"));
    desk.ok(&format!("prereg sign {file} --countersign --yes"));
    // Without the strata it is another root.
    let bare: String = units(40)
        .iter()
        .map(|(unit, _)| format!("{unit}\n"))
        .collect();
    let bare = desk.file("bare.txt", &bare);
    let open = |units: &str| format!("gate open m-1 --units {units} --judge judge-1");
    let words = open(&bare);
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(&words, 4, &["found no strata", "E_DATA_ROOT"]);
    // With another number of units in each it is told so, and with others in them the roots differ.
    let mut wrong = units(40);
    wrong[0].1 = "hard";
    let text = |lines: Vec<(String, &str)>| -> String {
        let line = |(unit, stratum): (String, &str)| format!("{unit}\t{stratum}\n");
        lines.into_iter().map(line).collect()
    };
    let file = desk.file("wrong.txt", &text(wrong.clone()));
    let parts = [
        "expected 20 in \"easy\", 20 in \"hard\"",
        "found 19 in \"easy\", 21 in",
    ];
    desk.refused(
        &[
            "gate", "open", "m-1", "--units", &file, "--judge", "judge-1",
        ],
        4,
        &parts,
    );
    wrong[1].1 = "easy";
    let file = desk.file("wrong.txt", &text(wrong));
    let parts = ["40 units under", "E_DATA_ROOT"];
    desk.refused(
        &[
            "gate", "open", "m-1", "--units", &file, "--judge", "judge-1",
        ],
        4,
        &parts,
    );
    let units = units_file(&desk, 40);
    let dry = desk.ok(&format!("{} --dry-run", open(&units))).out;
    assert!(dry.contains("\"strata\":[\"easy\",\"hard\""), "{dry}");
    desk.ok(&open(&units));
    desk.ok("exposure open m-1");
    let from = outcomes(&desk);
    let ran = desk.run(&format!(
        "gate observe m-1 --through 4 --from {from} --json"
    ));
    assert_eq!(ran.json()["data"]["n"], 4, "{ran:?}");
    let ran = desk.run("gate observe m-1 --all --json");
    assert_eq!(
        (ran.code, &ran.json()["verdict"]),
        (0, &json!("ship")),
        "{ran:?}"
    );
    let page = desk.ok("gate show m-1").out;
    let row = |stratum: &str| {
        let found = page.lines().find(|line| line.starts_with(stratum)).unwrap();
        found
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("easy")[1..3], ["20", "-0.100000"], "{page}");
    assert_eq!(row("hard")[1..3], ["20", "+0.500000"], "{page}");
    let shown = desk.ok("gate show m-1 --json").json();
    let strata = shown["data"]["strata"].as_array().unwrap();
    let observed: u64 = strata
        .iter()
        .map(|one| one["observed"].as_u64().unwrap())
        .sum();
    assert_eq!(observed, shown["data"]["n"].as_u64().unwrap());
    let mean = strata[1]["mean_difference"].as_f64().unwrap();
    assert!((mean - 0.5).abs() <= 0.04, "{strata:?}");
    desk.ok("gate decide m-1");
    // What was recorded of exactly these units promotes nothing by itself.
    let parts = ["its units were drawn from", "E_UNIT"];
    desk.refused(&["gate", "promote", "m-1"], 11, &parts);
    assert!(desk.ok("gate show m-1").out.contains("grade now: finite"));
    desk.ok("verify");
    claims::holds(&mut desk);
}

/// What stands for a missing draw is no difference that anybody measured.
#[test]
fn a_stratum_is_shown_by_the_units_that_have_their_draws() {
    let mut desk = claims::desk();
    claims::family(&mut desk, "quarter", "spend", "0.05", 4);
    let file = plan(&mut desk, 40, [-100_000, 500_000]);
    desk.ok(&format!("prereg sign {file} --countersign --yes"));
    desk.ok("gate open m-1 --units units.txt --judge judge-1");
    desk.ok("exposure open m-1");
    let line = |(at, (unit, stratum)): (usize, (String, &str))| {
        let candidate = match (stratum, at % 4) {
            ("hard", 1) => "null",
            ("hard", _) => "0.1",
            _ => "0.4",
        };
        format!("{{\"unit\":\"{unit}\",\"baseline\":0.4,\"candidate\":{candidate}}}\n")
    };
    let lines: String = units(40).into_iter().enumerate().map(line).collect();
    let from = desk.file("outcomes.jsonl", &lines);
    desk.run(&format!("gate observe m-1 --all --missing --from {from}"));
    let shown = desk.ok("gate show m-1 --json").json();
    let hard = &shown["data"]["strata"][1];
    assert!(hard["missing"].as_u64().unwrap() > 0, "{hard}");
    let mean = hard["mean_difference"].as_f64().unwrap();
    assert!((mean + 0.3).abs() < 1e-12, "{hard}");
    let page = desk.ok("gate show m-1").out;
    assert!(
        page.contains("draws missing") && page.contains("-0.300000"),
        "{page}"
    );
}

#[test]
fn what_strata_are_worth_is_simulated_before_anybody_signs() {
    let mut desk = claims::desk();
    let file = plan(&mut desk, 100, [-300_000, 400_000]);
    let line = format!("gate simulate --plan {file} --effect 60000 --streams 150");
    let ran = desk.ok(&format!("{line} --json")).json();
    let found = ran["data"]["simulated"].as_array().unwrap();
    let of = |line: &str, strata: &str| -> &Value {
        let mut all = found.iter().filter(|one| one["shape"] == "uniform");
        all.find(|one| one["line"] == line && one["strata"] == strata)
            .unwrap()
    };
    for strata in ["as predicted", "alike", "as predicted, not used"] {
        // 150 gates at alpha .05: more than 18 false claims have probability below 1e-3.
        let null = of("null", strata)["shown"].as_f64().unwrap();
        assert!(null <= 0.12, "{strata} {null}");
    }
    let units = |strata: &str| of("effect", strata)["mean_units"].as_f64().unwrap();
    assert!(
        units("as predicted") < units("as predicted, not used"),
        "{found:#?}"
    );
    let page = desk.ok(&line).out;
    assert!(page.contains("as predicted, not used"), "{page}");
    let worth = "mean units at the effect with the control variate, and without";
    assert!(page.contains(worth) && page.contains("steady"), "{page}");
    assert!(
        page.lines().all(|line| line.chars().count() <= 100),
        "{page}"
    );
}

#[test]
fn files_of_units_and_strata() {
    let mut desk = claims::desk();
    let text = desk.ok(&format!("gate root {}", units_file(&desk, 40))).out;
    let each = "    - {stratum: \"easy\", units: 20, predicted_micro: 0}";
    assert!(text.contains(each), "{text}");
    for (lines, parts) in [
        (
            "a\tx\nb\n",
            ["line 2", "on every line or on none, found none"],
        ),
        (
            "a\nb\tx\n",
            ["line 2", "on every line or on none, found one"],
        ),
        ("a\tx\nb\t\n", ["line 2", "stratum"]),
        ("a\tx\nb\tx \n", ["line 2", "stratum: expected no blanks"]),
        ("a\tx\ty\nb\tz\n", ["line 1", "stratum"]),
        (
            "a\tx\na\ty\n",
            ["line 2", "stands on line 1 too (E_DUP_UNIT)"],
        ),
    ] {
        let file = desk.file("wrong.txt", lines);
        desk.refused(&["gate", "root", &file], 4, &parts);
    }
    // What it prints is read again, whatever the names hold.
    let file = desk.file("odd.txt", "a\tx\u{2028}y\nb\tz\n");
    let text = desk.ok(&format!("gate root {file}")).out;
    assert!(
        text.contains("{stratum: \"x\\u2028y\", units: 1,"),
        "{text}"
    );
    // A plan that counts strata otherwise, or of a population, is told so before it is signed.
    let file = plan(&mut desk, 40, [0, 1_000_001]);
    let ran = desk.run(&format!("prereg check {file}"));
    let said = ran.out + &ran.err;
    assert!(said.contains("at most 1000000 in magnitude"), "{said}");
}
