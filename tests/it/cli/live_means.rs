//! Judges behind HTTP whose levels are weighed by what the model gave each of them.

use serde_json::Value;

use super::endpoints::double;
use super::killed::Home;
use super::live_runs::ask;
use super::live_runs::prepare;
use super::live_runs::python_agrees;
use super::live_runs::said;
use super::live_runs::words;

const ROWS: u64 = 20;

fn weighed(home: &Home<'_>) {
    let path = home.0.join("work/plan-1.yaml");
    let plan = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{plan}answer: logprob\n")).unwrap();
}

/// The mean level of masses as a share, by the platform's own doubles.
fn mean(masses: &Value) -> f64 {
    let each = masses.as_array().unwrap().iter().map(|of| {
        let weight = (of["logprob_micro"].as_f64().unwrap() / 1e6).exp();
        (weight, weight * of["level"].as_f64().unwrap() / 4.0)
    });
    let (all, sum) = each.fold((0.0, 0.0), |(all, sum), (w, s)| (all + w, sum + s));
    sum / all
}

/// Given a judge whose plan weighs levels; when rows are asked about; then each score is the mean of its masses, which both
/// verifiers compute again, and whoever has the vault reads again from the answers.
#[test]
fn a_score_is_the_mean_of_what_the_model_gave_each_level() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let model = double("", None);
    prepare(&home, &model, (ROWS, 100_000_000), "none");
    weighed(&home);
    let answer = home.ok(&words(&ask(1)));
    assert_eq!(answer["data"]["scored"], ROWS);
    let calls = said(&home, "call.recorded");
    let mut between = 0;
    for call in &calls {
        let score = call["score_micro"].as_f64().unwrap();
        let expected = mean(&call["masses"]) * 1e6;
        assert!((score - expected).abs() < 0.51, "{call}");
        between += u64::from(score % 250_000.0 != 0.0);
    }
    assert!(between > 5, "{between} of {ROWS} scores lie between levels");
    let scores = said(&home, "score.recorded");
    let of = |all: &[Value]| {
        let mut all: Vec<_> = all.iter().map(|of| of["score_micro"].as_i64()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(of(&scores), of(&calls));
    home.ok(&words("verify --recompute"));
    python_agrees(&home);
}

/// Given a server that takes the parameter and gives no probabilities; then no row gets the level that was said instead.
#[test]
fn an_answer_without_probabilities_gives_no_score() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let silent = double(r#"{"do":{"ignore":["logprobs"]}}"#, None);
    prepare(&home, &silent, (4, 100_000_000), "none");
    weighed(&home);
    let out = home.command(&words(&ask(1))).output().unwrap();
    assert_eq!(out.status.code(), Some(12), "every row is missed");
    for call in said(&home, "call.recorded") {
        assert_eq!(
            (&call["outcome"], &call["detail"]),
            (&"unparsed".into(), &"tokens".into())
        );
    }
    assert!(said(&home, "score.recorded").is_empty());
    home.ok(&words("verify --recompute"));
}

/// A dialect that has no log-probabilities is refused before anything is sent or recorded.
#[test]
fn a_dialect_without_probabilities_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let model = double("", None);
    prepare(&home, &model, (4, 100_000_000), "none");
    weighed(&home);
    home.ok(&words(&format!(
        "endpoint add other --url http://{} --provider example --texts rows --terms kept-here --auth none --dialect anthropic",
        model.address()
    )));
    let path = home.0.join("work/plan-1.yaml");
    let plan = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, plan.replace("endpoint: sim", "endpoint: other")).unwrap();
    let out = home.command(&words(&ask(1))).output().unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(4), "{text}");
    assert!(
        text.contains("anthropic gives no log-probabilities"),
        "{text}"
    );
    assert!(model.billed().is_empty());
}
