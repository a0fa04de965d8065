//! Two arms that are the same: what `gate simulate` promises of the template as it comes, and what gates do of scores that
//! differ by a judge's noise alone.

use clover::ground::digest::Digest;
use clover::stats::eprocess::Design;
use clover::stats::eprocess::Gate;
use clover::stats::eprocess::GateTerms;
use clover::stats::eprocess::Population;
use clover::stats::eprocess::Verdict;
use clover::stats::eprocess::mulberry::Mulberry32;
use serde_json::Value;

use super::Desk;
use super::claims;
use crate::coverage::is_slow;

/// The template as it comes, with what nobody can leave open.
fn template(desk: &mut Desk) -> String {
    let text = desk.ok("prereg new --template gate").out;
    let digest = |of: &str| Digest::sha256(of.as_bytes()).to_hex();
    let root = Digest::sha256(b"units").to_base64();
    let mut arms = 0;
    let filled = text.lines().map(|line| {
        let name = line.trim_start().split(':').next().unwrap_or_default();
        let value = match name {
            "manifest" => "m-1".to_owned(),
            "experiment" => "exp-1".to_owned(),
            "title" | "claim" => "two arms that are the same".to_owned(),
            "artifact_digest" => {
                arms += 1;
                digest(&format!("arm {arms}"))
            }
            "judge_digest" => digest("judge"),
            "confirm_root" => root.clone(),
            "family" => "quarter".to_owned(),
            "alpha_micro" => "50000".to_owned(),
            _ => return line.to_owned(),
        };
        let indent = line.len() - line.trim_start().len();
        format!("{}{name}: {value}", " ".repeat(indent))
    });
    filled.map(|line| line + "\n").collect()
}

/// The largest share of gates that `gate simulate` says pass of two arms that are the same, and what it prints.
fn promised(desk: &mut Desk, plan: &str, streams: u32) -> (f64, Vec<Value>, String) {
    let file = desk.file("plan.yaml", plan);
    let line = format!("gate simulate --plan {file} --streams {streams}");
    let found = desk.ok(&format!("{line} --json")).json();
    let lines = found["data"]["simulated"].as_array().unwrap();
    let same: Vec<Value> = lines
        .iter()
        .filter(|one| one["line"] == "A/A")
        .cloned()
        .collect();
    let most = found["data"]["shown_of_same_arms"].as_f64().unwrap();
    (most, same, desk.ok(&line).out)
}

/// How many of so many gates promote a candidate that is its baseline, scored again by a judge of some noise: normal about the
/// unit's quality, within the scale, in hundredths. At most 200 units, as in the template.
fn promotes(population: Population, runs: u32) -> u32 {
    let mut terms = GateTerms::new(1_000_000, 200);
    terms.min_n = 20;
    terms.population = population;
    let design = Design::new(terms).unwrap();
    let one = |run: u32| {
        let mut dice = Mulberry32::new(i64::from(run) * 104_729 + 7);
        let mut gate = Gate::verdicts_only(design.clone());
        for _ in 0..200 {
            let quality = 0.2 + 0.6 * dice.uniform();
            let mut score = || {
                // A sum of twelve uniforms less six is normal enough.
                let noise = (0..12).map(|_| dice.uniform()).sum::<f64>() - 6.0;
                let score = (quality + 0.15 * noise).clamp(0.0, 1.0);
                hundredths(score)
            };
            let delta = score() - score();
            if gate.push(delta).unwrap().verdict.is_terminal() {
                break;
            }
        }
        u32::from(gate.verdict() == Verdict::Promote)
    };
    (0..runs).map(one).sum()
}

#[expect(clippy::cast_possible_truncation, reason = "0 to 100")]
fn hundredths(score: f64) -> i64 {
    (score * 100.0).round() as i64 * 10_000
}

/// Two Monte Carlo errors above alpha .05, of so many runs.
fn most(runs: u32) -> f64 {
    0.05 + 2.0 * (0.05 * 0.95 / f64::from(runs)).sqrt()
}

#[test]
fn the_template_as_it_comes_promotes_noise_at_most_at_alpha() {
    let runs = if is_slow() { 1_000 } else { 200 };
    let mut desk = claims::desk();
    claims::family(&mut desk, "quarter", "spend", "0.05", 3);
    let plan = template(&mut desk);
    assert!(
        plan.contains("population: superpopulation") && plan.contains("without_replacement: false")
    );
    let file = desk.file("plan.yaml", &plan);
    desk.ok(&format!("prereg check {file}"));
    let (shown, lines, page) = promised(&mut desk, &plan, runs);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(shown <= most(runs), "{lines:?}");
    assert!(
        page.contains("A/A: of two arms that are the same") && !page.contains("WARNING"),
        "{page}"
    );
    let promoted = promotes(Population::Superpopulation, runs);
    let rate = f64::from(promoted) / f64::from(runs);
    assert!(rate <= most(runs), "{promoted} of {runs}");
    println!(
        "A/A, the template as it comes: {promoted} of {runs} promoted, at most {shown} promised"
    );
}

/// About exactly its own units, the template promotes noise in every second gate: it is refused, and said.
#[test]
fn a_finite_plan_of_noisy_scores_is_refused_and_its_simulation_warns() {
    let runs = if is_slow() { 1_000 } else { 200 };
    let mut desk = claims::desk();
    claims::family(&mut desk, "quarter", "spend", "0.05", 3);
    let finite = template(&mut desk)
        .replace("population: superpopulation", "population: finite")
        .replace("without_replacement: false", "without_replacement: true");
    let (shown, _, page) = promised(&mut desk, &finite, runs);
    let promoted = promotes(Population::Finite { units: 200 }, runs);
    let rate = f64::from(promoted) / f64::from(runs);
    // What is promised is what happens: of symmetric noise about half.
    assert!(
        (shown - 0.5).abs() < 0.15 && (rate - 0.5).abs() < 0.15,
        "{shown} {rate}"
    );
    assert!(page.contains("WARNING"), "{page}");
    println!("A/A, exactly its own units: {promoted} of {runs} promoted, at most {shown} promised");
    let file = desk.file("plan.yaml", &finite);
    let words = format!("prereg sign {file} --countersign");
    let words: Vec<_> = words.split(' ').collect();
    desk.refused(&words, 11, &["metric.noise none", "E_UNIT"]);
    // Without noise two arms that are the same never differ.
    let quiet = finite.replace("  repeats: 1 ", "  noise: none\n  repeats: 1 ");
    let (shown, lines, page) = promised(&mut desk, &quiet, 20);
    assert_eq!((shown, lines.len()), (0.0, 1), "{lines:?}");
    assert!(!page.contains("WARNING"), "{page}");
    let file = desk.file("quiet.yaml", &quiet);
    desk.ok(&format!("prereg check {file}"));
}
