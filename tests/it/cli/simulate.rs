//! Planning before registration: simulated iterations of given sizes and of a plan.

use std::path::Path;

use super::Desk;
use crate::support::iterated;

const SMALL: &str = "simulate iteration --truth citations --seed 7 --sizes 300,200,200 --slices 4 --eta 0.0005 --runs 2 \
                     --fresh 1000";

#[test]
fn a_small_simulation_reads_as_it_did() {
    let mut desk = Desk::new();
    let found = desk.ok(SMALL).out;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/simulate_iteration.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, expected,
        "run UPDATE=1 cargo test --test it cli::simulate"
    );
    assert!(
        found.lines().all(|line| line.chars().count() <= 100),
        "{found}"
    );
}

#[test]
fn a_plan_says_what_is_simulated() {
    let mut desk = Desk::new();
    let plan = iterated::plan("arena", "m-it");
    let plan = desk.file("plan.yaml", &plan.to_string());
    let words = format!(
        "simulate iteration --truth length --seed 1 --manifest {plan} --only fix --runs 1 --fresh 1000 --json"
    );
    let data = desk.ok(&words).json()["data"].clone();
    assert_eq!(data["sizes"], serde_json::json!([4000, 3000, 3000]));
    assert_eq!(data["setting"]["slices"], 4);
    assert_eq!(data["domains"], true);
    assert_eq!(data["covariates"], true);
    assert_eq!(data["must_not_regress"], 1);
    let found = &data["simulated"][0]["found"];
    assert_eq!(found["runs"], 1);
    assert_eq!(found["accepted"]["of"], 1);
    assert!(found["worth"].as_f64().is_none_or(|worth| worth < 0.0));
}

#[test]
fn what_cannot_be_simulated_is_named() {
    let mut desk = Desk::with_ledger();
    let base = "simulate iteration --truth citations --seed 7";
    for (more, named) in [
        ("--runs 0", "--runs"),
        ("--sizes 1,2", "three numbers"),
        ("--only both", "fix or null"),
        ("--eta x", "--eta"),
        ("--slices 5", "4 or 12"),
    ] {
        let words: Vec<&str> = base.split(' ').chain(more.split(' ')).collect();
        desk.refused(&words, 2, &[named]);
    }
}
