//! The way from a checkpoint to its promotion: a plan that a person signs, a gate that scores confirm once, a decision.

use super::Desk;
use super::sgd::desk;
use crate::support::child;

/// A desk with a run that read its test.
fn ended(rows: u64, seed: u64, judge: &str) -> Desk {
    let mut desk = desk(rows, seed);
    desk.ok("key new rel --role releaser");
    desk.ok(&format!(
        "sgd open one --judge sim {judge} --prompt judge.md --steps 4 --repeats 1"
    ));
    desk.ok("sgd run one");
    desk.ok("sgd test one");
    desk
}

/// Given a run whose judge can be improved; when its gate is planned, signed and decided; then its checkpoint is promoted on
/// values that follow from scores of confirm, and nothing of confirm is scored before.
#[test]
fn a_checkpoint_is_promoted_on_its_own_gate() {
    let mut desk = ended(400, 1, "--simulated");
    let planned = desk.run("sgd promote one");
    assert_eq!(planned.code, 12, "{}{}", planned.out, planned.err);
    let plan = std::fs::read_to_string(desk.at.join("one-gate.yaml")).unwrap();
    assert!(plan.contains("metric: agreement"), "{plan}");
    // Asked again, the same plan stands.
    assert_eq!(desk.run("sgd promote one").code, 12);
    desk.ok("prereg sign one-gate.yaml --countersign");
    // The command to type keeps the words of a program apart.
    let asked = desk.words(&["sgd", "promote", "one", "--", "sh", "-c", "cat a b"]);
    assert!(
        asked.err.contains("--yes -- sh -c 'cat a b'"),
        "{}",
        asked.err
    );
    let promoted = desk.run("sgd promote one --yes --json");
    assert_eq!(promoted.code, 0, "{}{}", promoted.out, promoted.err);
    let data = promoted.json()["data"].clone();
    assert_eq!(data["decided"], "promote", "{data:#}");
    // The same answer again, and nothing twice.
    let size = desk.ok("status --json").json()["data"]["events"].clone();
    desk.ok("sgd promote one");
    assert_eq!(desk.ok("status --json").json()["data"]["events"], size);
    desk.ok("verify --recompute");
}

/// Nothing is promoted where the gate does not show it, and the clusters are spent.
#[test]
fn a_gate_that_shows_nothing_promotes_nothing() {
    let mut desk = ended(60, 3, "--simulated");
    assert_eq!(desk.run("sgd promote one").code, 12);
    desk.ok("prereg sign one-gate.yaml --countersign");
    let ran = desk.run("sgd promote one --yes");
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("Nothing is promoted"), "{}", ran.out);
    assert_eq!(desk.run("sgd promote one").code, 12);
    desk.ok("verify --recompute");
}

/// Given a plan that no promotion can rest on; when it is to be signed; then it is refused with the field.
#[test]
fn a_plan_that_can_never_promote_is_not_signed() {
    let mut desk = ended(60, 3, "--simulated");
    let planned = desk.run("sgd promote one --alpha 0.5");
    assert_eq!(planned.code, 12, "{}{}", planned.out, planned.err);
    assert!(planned.err.contains("above 0.2"), "{}", planned.err);
    let plan = std::fs::read_to_string(desk.at.join("one-gate.yaml")).unwrap();
    assert!(plan.contains("direction: increase"), "{plan}");
    let other = plan.replace("direction: increase", "direction: decrease");
    desk.file("one-gate.yaml", &other);
    let words = ["prereg", "sign", "one-gate.yaml", "--countersign", "--yes"];
    desk.refused(&words, 11, &["direction", "can never promote"]);
    desk.file("one-gate.yaml", &plan);
    desk.ok("prereg sign one-gate.yaml --countersign");
}

/// Given a file of another under the name of the plan; when the gate is planned; then nothing is appended before the file is
/// known.
#[test]
fn a_file_in_the_way_is_found_before_anything_is_appended() {
    let mut desk = ended(60, 3, "--simulated");
    let size = |desk: &mut Desk| desk.ok("status --json").json()["data"]["events"].clone();
    let before = size(&mut desk);
    desk.file("one-gate.yaml", "mine\n");
    desk.refused(&["sgd", "promote", "one"], 11, &["exists already"]);
    assert_eq!(size(&mut desk), before);
    let mine = std::fs::read_to_string(desk.at.join("one-gate.yaml")).unwrap();
    assert_eq!(mine, "mine\n");
    // Under another name it is written, and asked for again it stands.
    for _ in 0..2 {
        assert_eq!(desk.run("sgd promote one --plan other.yaml").code, 12);
    }
}

/// Given a run whose name leads to another folder; when its gate is planned; then the file lies in this one.
#[test]
fn a_plan_lies_where_it_is_asked_for() {
    let mut desk = desk(60, 3);
    desk.ok("sgd open ../one --judge sim --simulated --prompt judge.md --steps 4 --repeats 1");
    desk.ok("sgd run ../one");
    desk.ok("sgd test ../one");
    let planned = desk.run("sgd promote ../one");
    assert_eq!(planned.code, 12, "{}{}", planned.out, planned.err);
    assert!(
        desk.at.join("%2E.%2Fone-gate.yaml").is_file(),
        "{}",
        planned.out
    );
}

/// Given a run that a person ended; when it is to be promoted; then the refusal says that, and not what would come next.
#[test]
fn a_run_that_was_ended_is_not_promoted() {
    let mut desk = desk(60, 3);
    desk.ok("sgd open one --judge sim --simulated --prompt judge.md --steps 4 --repeats 1");
    desk.ok("sgd run one --steps 1");
    desk.ok("sgd stop one --yes");
    let words = ["sgd", "promote", "one"];
    desk.refused(&words, 11, &["a person ended it before its test was read"]);
}

/// Given a plan of the run's gate that names another metric; when the run is to be promoted; then it is not taken
/// for its plan, and the name is told.
#[test]
fn a_plan_of_another_metric_is_no_plan_of_the_run() {
    let mut desk = ended(60, 3, "--simulated");
    assert_eq!(desk.run("sgd promote one").code, 12);
    let plan = std::fs::read_to_string(desk.at.join("one-gate.yaml")).unwrap();
    let other = plan.replace("metric: agreement", "metric: another");
    desk.file("one-gate.yaml", &other);
    desk.ok("prereg sign one-gate.yaml");
    let taken = ["sgd", "promote", "one"];
    desk.refused(&taken, 11, &["a manifest one-gate is registered already"]);
}

/// A judge that nothing improves leaves prompt 0, and there is nothing to promote.
#[test]
fn an_unchanged_checkpoint_has_no_gate() {
    let mut desk = ended(60, 1, "--simulated-null");
    desk.refused(
        &["sgd", "promote", "one"],
        11,
        &["there is nothing to promote"],
    );
}

/// Runs of a judge that nothing improves, each with its gate: as few are promoted as the error rate allows.
#[test]
fn nulls_are_hardly_promoted() {
    let runs: u64 = if child::slow() { 200 } else { 1 };
    let mut promoted = 0;
    for seed in 0..runs {
        let mut desk = desk(60, seed + 500);
        desk.ok("key new rel --role releaser");
        desk.ok("sgd open r --judge sim --simulated-null --prompt judge.md --steps 2 --repeats 1");
        desk.ok("sgd run r");
        desk.ok("sgd test r");
        if desk.run("sgd promote r").code == 12 {
            desk.ok("prereg sign r-gate.yaml --countersign");
            promoted += u64::from(desk.run("sgd promote r --yes").code == 0);
        }
    }
    println!("{promoted} of {runs} null runs are promoted");
    let (rate, n) = (0.05, runs as f64);
    let most = rate + 2.0 * (rate * (1.0 - rate) / n).sqrt();
    assert!(promoted as f64 / n <= most);
}

/// The share of runs whose judge can be improved that their gate promotes; how many is for the figures.
#[test]
fn improvements_are_promoted_where_confirm_is_large() {
    if !child::slow() {
        return;
    }
    let mut promoted = 0;
    for seed in 0..20 {
        let mut desk = ended(600, seed + 900, "--simulated");
        assert_eq!(desk.run("sgd promote one").code, 12);
        desk.ok("prereg sign one-gate.yaml --countersign");
        promoted += u64::from(desk.run("sgd promote one --yes").code == 0);
    }
    println!("{promoted} of 20 improvements are promoted");
    assert!(promoted >= 10);
}
