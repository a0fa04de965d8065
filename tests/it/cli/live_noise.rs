//! `clover judge noise`: answers that are asked for again, and what follows of the judge.

use std::process::Stdio;
use std::time::Duration;

use clover::model::simulate::SimulatedJudge;

use super::endpoints::doubled;
use super::killed::Home;
use super::live_runs::ask;
use super::live_runs::prepare;
use super::live_runs::python_agrees;
use super::live_runs::said;
use super::live_runs::words;

const ROWS: u64 = 40;

fn noisy(micro: u32) -> SimulatedJudge {
    SimulatedJudge {
        noise_sd_micro: micro,
        drift: None,
    }
}

fn plan(home: &Home<'_>, more: &str) {
    let path = home.0.join("work/plan-1.yaml");
    let plan = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{plan}{more}\n")).unwrap();
}

fn noise() -> String {
    ask(1).replace("judge ask", "judge noise --json -n 32")
}

fn asked_again(home: &Home<'_>) -> (i32, serde_json::Value) {
    let ran = home.command(&words(&noise())).output().unwrap();
    let facts = serde_json::from_slice(&ran.stdout);
    let said = String::from_utf8_lossy(&ran.stderr);
    (
        ran.status.code().unwrap(),
        facts.unwrap_or_else(|_| panic!("{said}")),
    )
}

/// Given a judge that may waver; when it is asked again, killed, and asked on; then its noise is on record and within what its
/// plan allows, its first scores stand, and both verifiers add it up.
#[test]
fn a_judge_that_may_waver_is_measured_through_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let model = doubled(r#"{"do":{"delay_ms":5}}"#, None, Some(noisy(150_000)));
    prepare(&home, &model, (ROWS, 100_000_000), "none");
    plan(
        &home,
        "determinism: {noise_sd_max_micro: 250000}\nreasoning: none",
    );
    home.ok(&words(&ask(1)));
    let before = said(&home, "score.recorded");
    let line = noise().replace("-j 16", "-j 2");
    let mut child = home.command(&words(&line));
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(60));
    drop(child.kill());
    child.wait().unwrap();
    let (code, facts) = asked_again(&home);
    let facts = &facts["data"];
    assert_eq!(code, 0, "{facts}");
    assert_eq!(facts["figures"]["answered"], 32, "{facts}");
    assert_eq!(facts["verdict"], "pass", "{facts}");
    assert!(
        facts["figures"]["sd_micro"].as_u64() > Some(50_000),
        "{facts}"
    );
    let measured = said(&home, "noise.measured");
    assert_eq!(measured.len(), 1);
    assert_eq!(said(&home, "score.recorded"), before);
    home.ok(&words("verify --recompute"));
    python_agrees(&home);
}

/// Given a judge whose scores have to come out the same; when it wavers; then it contradicts itself, and J2 fails for good.
#[test]
fn a_judge_that_has_to_repeat_itself_and_does_not_fails() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let model = doubled("", None, Some(noisy(150_000)));
    prepare(&home, &model, (ROWS, 100_000_000), "none");
    home.ok(&words(&ask(1)));
    let (code, facts) = asked_again(&home);
    assert_eq!(code, 10, "{facts}");
    let shown = home.ok(&words("assume show CLOVER.J2 --experiment live"));
    assert_eq!(shown["data"]["rows"][0]["status"], "fail", "{shown}");
    home.ok(&words("verify"));
    python_agrees(&home);
}
