//! What a gate refuses, and that nothing of it is half-written.

use super::gate;
use super::gate::opened_as;

fn cheap(plan: &str) -> String {
    plan.replace("  alpha_micro: 50000", "  alpha_micro: 20000")
}

/// Units that stood in an order before, and a key that may not draw one, are refused before any unit is listed.
#[test]
fn nothing_is_listed_for_a_gate_that_cannot_be_opened() {
    let mut desk = opened_as(
        |plan| cheap(&plan),
        |desk| {
            let words = "gate open m-1 --units units.txt --judge judge-1 --key scorer";
            let words: Vec<_> = words.split(' ').collect();
            desk.refused(&words, 11, &["needs role"]);
        },
    );
    desk.ok("experiment register exp-2 --title Two --purpose testing");
    let root = desk.ok("gate root units.txt --json").json();
    let root = root["data"]["confirm_root"].as_str().unwrap().to_owned();
    let plan = cheap(&gate::manifest("m-2", "exp-2", &root, 50_000));
    let plan = desk.file("m-2.yaml", &plan);
    desk.ok(&format!("prereg sign {plan} --countersign --yes"));
    for dry in ["", " --dry-run"] {
        let words = format!("gate open m-2 --units units.txt --judge judge-1{dry}");
        let words: Vec<_> = words.split(' ').collect();
        desk.refused(&words, 11, &["unit unit-", "E_ADAPTIVE_REUSE"]);
    }
}

/// The units before one that the test may not take are observed, and that one is named.
#[test]
fn a_unit_that_the_test_may_not_take_is_named() {
    let bounded = |plan: String| {
        let plan = plan.replace(
            "  repeats: 1",
            "  difference_max_micro: 300000\n  repeats: 1",
        );
        plan.replace("  n_min: 5", "  n_min: 40")
    };
    let mut desk = opened_as(bounded, |_| {});
    desk.ok("exposure open m-1 --through 30 --yes");
    let order = desk.ok("exposure list m-1").out;
    let order: Vec<_> = order
        .split_whitespace()
        .filter(|word| word.starts_with("unit-"))
        .collect();
    let line = |(at, unit): (usize, &&str)| {
        let candidate = if at == 9 { "0.9" } else { "0.5" };
        format!("{{\"unit\":\"{unit}\",\"baseline\":0.4,\"candidate\":{candidate}}}\n")
    };
    let lines: String = order.iter().enumerate().map(line).collect();
    let from = desk.file("outcomes.jsonl", &lines);
    let ran = desk.run(&format!("gate observe m-1 --all --from {from} --json"));
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    let data = &ran.json()["data"];
    assert_eq!(
        (&data["observed"], &data["n"]),
        (&9.into(), &9.into()),
        "{data}"
    );
    assert_eq!(data["unfit"]["unit"], order[9], "{data}");
    let words = ["gate", "observe", "m-1", "--all"];
    let parts = [order[9], "delta 500000: expected at most 300000"];
    desk.refused(&words, 11, &parts);
}

/// What no gate could do is said before anybody signs.
#[test]
fn plans_that_can_never_work_are_told_so() {
    let mut desk = opened_as(|plan| plan, |_| {});
    let root = "zKhW8a6Oo5tx8ROoNeGaJd7M6MMuT27u0ZEs9edN+6g=";
    let plan = gate::manifest("m-2", "exp-1", root, 50_000);
    let finite = plan
        .replace("without_replacement: false", "without_replacement: true")
        .replace("population: superpopulation", "population: finite")
        .replace("  repeats: 1\n", "  repeats: 1\n  noise: none\n");
    let strata = "  control_variate:\n    - {stratum: \"easy \", units: 20, predicted_micro: 0}\n    \
                  - {stratum: hard, units: 20, predicted_micro: 1}\n";
    let continues = format!("  continuation_of: {}\n", "0c".repeat(32));
    let kind = |kind: &str, side: &str, margin: i64| {
        plan.replace("kind: promote", &format!("kind: {kind}"))
            .replace("side: upper", &format!("side: {side}"))
            .replace(
                "null_margin_micro: 0",
                &format!("null_margin_micro: {margin}"),
            )
            .replace("  n_min: 5", "  beta_futile_micro: 100000\n  n_min: 5")
    };
    let parts: &[(String, &[&str])] = &[
        (
            finite.replace("multiplicity:", &format!("{continues}multiplicity:")),
            &["what its units were drawn from", "E_DATA_ROOT"],
        ),
        (
            finite
                .replace("multiplicity:", &format!("{strata}multiplicity:"))
                .replace("n_units: 40,", "n_units: 40, strata: [difficulty],"),
            &["test.control_variate[0].stratum", "no blanks around it"],
        ),
        (
            plan.replace("scale_hi_micro: 1000000", "scale_hi_micro: 600000000000")
                .replace("rep_rule: single", "rep_rule: mean")
                .replace("repeats: 1", "repeats: 2"),
            &["10^12 millionths in all repeats together", "E_SCALE"],
        ),
        (
            kind("kill", "lower", 0),
            &[
                "designed effect",
                "to promote, for noninferiority or to measure",
            ],
        ),
    ];
    for (plan, parts) in parts {
        let file = desk.file("m-2.yaml", plan);
        let ran = desk.run(&format!("prereg check {file}"));
        assert!(ran.code != 0, "{}", ran.out);
        let said = ran.out.clone() + &ran.err;
        for part in *parts {
            assert!(said.contains(part), "{part:?} is not in:\n{said}");
        }
    }
    // Noninferiority may be planned for no effect at all.
    let plan = kind("noninferior", "upper", -200_000);
    let file = desk.file(
        "m-2.yaml",
        &plan.replace("delta_design_micro: 200000", "delta_design_micro: 0"),
    );
    let ran = desk.run(&format!("prereg check {file}"));
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

/// A file of outcomes that the gate could not read is refused before a unit is listed or an order drawn.
#[test]
fn outcomes_are_checked_before_the_order_is_drawn() {
    let mut desk = opened_as(
        |plan| cheap(&plan),
        |desk| {
            let before = desk.head();
            let names = std::fs::read_to_string(desk.at.join("units.txt")).unwrap();
            let good: String = names
                .lines()
                .map(|unit| format!("{{\"unit\":\"{unit}\",\"baseline\":0.4,\"candidate\":0.5}}\n"))
                .collect();
            let first = good.lines().next().unwrap().to_owned() + "\n";
            let open = "gate open m-1 --units units.txt --judge judge-1 --from";
            for (text, says) in [
                (
                    good.replacen("0.5", "\"x\"", 1),
                    ":1: candidate: expected a number",
                ),
                (
                    good.replacen("unit-", "item-", 1),
                    ":1: unit: expected a unit of the gate, found item-",
                ),
                (
                    good.replacen("0.5", "1.5", 1),
                    ":1: candidate: expected values from 0 to 1",
                ),
                (
                    good.replacen("0.4", "[0.4,0.4]", 1),
                    ":1: baseline: expected 1 draws, found 2",
                ),
                (good.clone() + &first, "unit: expected each unit once"),
            ] {
                desk.file("bad.jsonl", &text);
                let ran = desk.run(&format!("{open} bad.jsonl"));
                assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
                assert!(ran.err.contains(says), "{says}\n{}", ran.err);
                assert_eq!(desk.head(), before, "{says}");
            }
            // A unit without an outcome is told, and is no error: a draw may fail.
            desk.file("some.jsonl", &good.replacen(&first, "", 1));
            let ran = desk.ok(&format!("{open} some.jsonl --dry-run"));
            assert!(
                ran.err.contains("units have no outcome of the main metric"),
                "{}",
                ran.err
            );
            assert_eq!(desk.head(), before);
        },
    );
    desk.ok("verify");
}
