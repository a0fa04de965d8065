//! Counts, rates and sizes on the command line: what makes no sense is refused with flag and range, and ends at once.

use super::Desk;
use super::gate;
use super::says;

const SAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/reference/arena/fresh_draws"
);

/// Refused as usage: the message names the flag.
#[track_caller]
fn refused(desk: &mut Desk, line: &str, parts: &[&str]) {
    let ran = desk.run(line);
    assert_eq!(ran.code, 2, "{line}\n{}{}", ran.out, ran.err);
    says(&ran, parts);
}

/// An interval's ends are percentiles: of two replicates they are the two, and of 10^12 there is no room.
#[test]
fn a_bootstrap_has_as_many_replicates_as_its_intervals_need() {
    let mut desk = Desk::new();
    for (count, alpha, range) in [
        ("0", "0.05", "200 to 1000000"),
        ("1", "0.05", "200 to 1000000"),
        ("2", "0.05", "200 to 1000000"),
        ("199", "0.05", "200 to 1000000"),
        ("199", "0.4", "200 to 1000000"),
        // Five replicates beyond each end: 10 / alpha.
        ("200", "0.01", "1000 to 1000000"),
        ("999", "0.01", "1000 to 1000000"),
        ("1000001", "0.05", "200 to 1000000"),
        ("1000000000000", "0.05", "200 to 1000000"),
        ("1000000000000000000", "0.05", "200 to 1000000"),
    ] {
        let said = format!("--bootstrap {count}: expected {range} at --alpha {alpha}");
        let line = format!("analyze {SAMPLE} --bootstrap {count} --alpha {alpha}");
        refused(&mut desk, &line, &[&said]);
    }
    let line = format!("analyze {SAMPLE} --bootstrap 200 --alpha 0.000001");
    refused(
        &mut desk,
        &line,
        &["--alpha 0.000001: expected at least 0.00001"],
    );
    for count in ["-1", "NaN", "1e3", "18446744073709551616"] {
        let line = format!("analyze {SAMPLE} --bootstrap={count}");
        refused(&mut desk, &line, &["--bootstrap", count]);
    }
}

/// A number below 0 is a value that is refused by the name of its flag, not an unknown option.
#[test]
fn counts_are_refused_by_flag_and_range() {
    let mut desk = Desk::new();
    let truth = "simulate truth --truth none --seed 7";
    let dataset = "simulate dataset --truth none --seed 7 -o d";
    let iteration = "simulate iteration --truth none --seed 7";
    for (verb, more, parts) in [
        (
            truth,
            "--fresh 999",
            &["--fresh 999: expected 1000 to 100000000"][..],
        ),
        (
            truth,
            "--fresh 1000000000000",
            &["--fresh 1000000000000: expected 1000 to"],
        ),
        (truth, "--fresh -1", &["'-1' for '--fresh"]),
        (truth, "--fresh=", &["'--fresh"]),
        (
            dataset,
            "--fresh 1000000000000000000",
            &["--fresh", "100000000"],
        ),
        (
            dataset,
            "--window 1000000000000",
            &["window_rows", "1 to 100000000"],
        ),
        (iteration, "--runs 0", &["--runs 0: expected 1 to 1000000"]),
        (iteration, "--runs -1", &["'-1' for '--runs"]),
        (iteration, "--runs NaN", &["'NaN' for '--runs"]),
        (
            iteration,
            "--sizes 0,20,20",
            &["--sizes", "from 1 to 1000000"],
        ),
        (
            iteration,
            "--sizes 20,1000000000000,20",
            &["--sizes", "from 1 to 1000000"],
        ),
        (
            "gate simulate --plan none.yaml",
            "--streams -1",
            &["'-1' for '--streams"],
        ),
        (
            "gate simulate --plan none.yaml",
            "--streams 0",
            &["--streams 0: expected 1 to 1000000"],
        ),
        (
            "gate simulate --plan none.yaml",
            "--streams 1000000000000",
            &["--streams", "1 to 1000000"],
        ),
    ] {
        refused(&mut desk, &format!("{verb} {more}"), parts);
    }
    let mut desk = Desk::with_ledger();
    let plan = "plan labels 0.02 --score-price 0.01 --label-price 0.16 --dry-run";
    for (verb, more, parts) in [
        (
            plan,
            "--policies 0",
            &["--policies 0: expected 1 to 1000"][..],
        ),
        (
            plan,
            "--policies 1000000000000000000",
            &["--policies", "1 to 1000"],
        ),
        (
            plan,
            "--power 0.000001",
            &["--power 0.000001: expected a number above 0.05 and below 1"],
        ),
        (plan, "--power 1", &["--power 1: expected", "below 1"]),
        (plan, "--power -1", &["--power", "-1", "above 0"]),
        (
            "plan audit 0.05 --dry-run",
            "--power 0.5",
            &["--power 0.5: expected a number above 0.5"],
        ),
        (
            "plan audit 1000000000000",
            "--dry-run",
            &["ASKED", "up to 1000000"],
        ),
        (
            "plan iteration NaN",
            "--dry-run",
            &["ASKED", "NaN", "above 0"],
        ),
    ] {
        refused(&mut desk, &format!("{verb} {more}"), parts);
    }
}

/// A simulated gate of a million units takes as many streams as end within hours, and says what its rates are worth.
#[test]
fn a_simulated_gate_has_a_bounded_cost() {
    let mut desk = Desk::with_ledger();
    let root = "A".repeat(43) + "=";
    let text = gate::manifest("m-1", "exp-1", &root, 50_000);
    let long = text
        .replace("n_units: 40", "n_units: 1000000")
        .replace("n_max: 40", "n_max: 1000000");
    let (short, long) = (
        desk.file("short.yaml", &text),
        desk.file("long.yaml", &long),
    );
    let line = format!("gate simulate --plan {long} --streams 10001");
    refused(
        &mut desk,
        &line,
        &["--streams 10001: expected 1 to 10000 of 1,000,000 units each"],
    );
    let ran = desk
        .ok(&format!(
            "gate simulate --plan {short} --streams 475 --json"
        ))
        .json();
    // sqrt(.05 x .95 / 475) = .01.
    let error = ran["data"]["monte_carlo_error"].as_f64().unwrap();
    assert!((error - 0.01).abs() < 1e-12, "{error}");
    let page = desk
        .ok(&format!("gate simulate --plan {short} --streams 475"))
        .out;
    assert!(page.contains("from 475 gates: 0.0100"), "{page}");
}

/// The interval of a bootstrap holds its value, or a warning says that it does not and why.
#[test]
fn an_interval_holds_its_value_or_says_why_not() {
    let mut desk = Desk::new();
    let rows = |label: fn(usize) -> f64| -> String {
        let row = |at: usize| {
            let score = (at * 37 % 100) as f64 / 100.0;
            format!(
                "{{\"prompt_id\":\"p{at}\",\"target_policy\":\"one\",\"judge_score\":{score},\"oracle_label\":{}}}\n",
                label(at)
            )
        };
        (0..40).map(row).collect()
    };
    let files = [
        desk.file("follows.jsonl", &rows(|at| (at * 37 % 100) as f64 / 100.0)),
        desk.file(
            "turned.jsonl",
            &rows(|at| 1.0 - (at * 37 % 100) as f64 / 100.0),
        ),
        desk.file("rare.jsonl", &rows(|at| f64::from(u8::from(at == 7)))),
        desk.file("apart.jsonl", &rows(|at| f64::from(u8::from(at % 3 == 0)))),
        SAMPLE.to_owned(),
    ];
    for file in files {
        for seed in 1..=4 {
            let ran = desk.run(&format!(
                "analyze {file} --bootstrap 200 --seed {seed} --json"
            ));
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
            let answer = ran.json();
            let warned = answer["warnings"].to_string();
            for policy in answer["data"]["policies"].as_array().unwrap() {
                let level = if policy["withheld"].is_object() {
                    &policy["withheld"]
                } else {
                    policy
                };
                let of = |end: usize| level["interval"][end].as_f64().unwrap();
                let (low, high) = (of(0), of(1));
                let value = level["estimate"].as_f64().unwrap();
                let name = policy["policy"].as_str().unwrap();
                let said = format!("{name}: the interval of the bootstrap does not hold the value");
                let holds = low <= value && value <= high;
                assert_ne!(holds, warned.contains(&said), "{file} {policy} {warned}");
            }
        }
    }
}
