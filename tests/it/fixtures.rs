//! Fixtures are generated, never edited: `UPDATE=1 cargo test --test it fixtures` writes them, every other run
//! compares them.

use std::fmt::Write as _;
use std::path::Path;

use clover::ground::ambient::Entropy as _;
use clover::ground::ambient::SeededEntropy;

const POLICIES: [&str; 4] = ["base", "clone", "parallel_universe_prompt", "unhelpful"];
const ITEMS: u64 = 2_300;
const LABELS: u64 = 700;
const NOTES: u64 = 88;
const CHARGES: u64 = 9;

struct Draws(SeededEntropy);

impl Draws {
    /// An integer below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes).unwrap();
        u64::from_le_bytes(bytes) % bound
    }
}

/// The demo's 10,000 commands, grouped by who signs them.
fn demo() -> String {
    let mut draws = Draws(SeededEntropy::new([42; 32]));
    let mut out = String::new();
    out.push_str(r#"{"kind":"experiment.registered","experiment":"arena","data":{"judges":["gpt-judge@3"],"policies":["base","clone","parallel_universe_prompt","unhelpful"],"purpose":"which of four policies is better, by a calibrated judge","title":"Arena, four policies"}}"#);
    out.push('\n');
    for (account, amount, unit) in [
        ("confirm-peeks", 3, "peek"),
        ("label-spend", 5_000, "label"),
    ] {
        writeln!(
            out,
            r#"{{"kind":"budget.opened","data":{{"account":"{account}","amount":{amount},"period":"quarter","purpose":"demo","spenders":["custodian"],"unit":"{unit}"}}}}"#
        )
        .unwrap();
    }
    for (at, policy) in POLICIES.into_iter().enumerate() {
        // The judge is fooled by nobody here but dislikes the last policy.
        let base = [780_000, 790_000, 785_000, 240_000][at];
        for item in 0..ITEMS {
            let score = (base + draws.below(200_000)) / 10_000 * 10_000;
            writeln!(
                out,
                r#"{{"kind":"score.recorded","experiment":"arena","data":{{"draw":0,"item":"arena-{item:04}","judge":"gpt-judge@3","policy":"{policy}","score_micro":{score}}}}}"#
            )
            .unwrap();
        }
    }
    for label in 0..LABELS {
        let item = label * ITEMS / LABELS;
        let value = draws.below(21) * 50_000;
        writeln!(
            out,
            r#"{{"kind":"label.recorded","experiment":"arena","data":{{"design":"calibration","draw":0,"item":"arena-{item:04}","policy":"base","purpose":"calibrate","rater":"lin","value_micro":{value}}}}}"#
        )
        .unwrap();
    }
    for note in 0..NOTES {
        let item = draws.below(ITEMS);
        writeln!(
            out,
            r#"{{"kind":"note.recorded","experiment":"arena","data":{{"text":"review {note}: item arena-{item:04} read, nothing to add"}}}}"#
        )
        .unwrap();
    }
    for charge in 0..CHARGES {
        let amount = 50 + draws.below(30);
        writeln!(
            out,
            r#"{{"kind":"budget.charged","data":{{"account":"label-spend","amount":{amount},"for":"calibration batch {charge}"}}}}"#
        )
        .unwrap();
    }
    out
}

#[test]
fn the_demo_fixture_is_what_its_generator_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/demo.jsonl");
    let text = demo();
    assert_eq!(text.lines().count(), 10_000);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "run UPDATE=1 cargo test --test it fixtures");
}
