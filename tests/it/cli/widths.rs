//! What stands in a terminal fits it, and what goes into a pipe is whole.

use super::Desk;
use super::doubts;

/// Characters from which on a word is one that is copied: a hash, a path, a key.
const COPIED: usize = 30;

/// Lines that could be broken and are not: wider than the terminal, no command, and without a word that is copied.
fn too_wide(text: &str, columns: usize) -> Vec<&str> {
    let is_wide = |line: &&str| {
        let start = line.trim_start();
        let is_command = start.starts_with("clover ") || start.starts_with("$ ");
        let longest = line.split(' ').map(|word| word.chars().count()).max();
        line.chars().count() > columns && !is_command && longest.unwrap_or(0) < COPIED
    };
    text.lines().filter(is_wide).collect()
}

fn ledger() -> Desk {
    let mut desk = doubts::desk(
        "1",
        &[
            ("a-policy-with-a-long-name", 0..80, 0.4),
            ("another-policy-of-a-long-name", 0..80, 0.6),
            ("c", 20..80, 0.5),
        ],
    );
    desk.ok("compare --all");
    desk.ok("record budget.opened --data {\"account\":\"peeks\",\"amount\":3,\"period\":\"quarter\",\"purpose\":\"confirm\",\"spenders\":[\"custodian\"],\"unit\":\"peek\"}");
    desk
}

const VERBS: &[&str] = &[
    "access list",
    "assume list",
    "assume show A0",
    "audit decisions",
    "audit peeks",
    "audit plans",
    "audit signers",
    "audit summary",
    "analyze .",
    "budget list",
    "budget show peeks",
    "calibrate list",
    "calibrate show",
    "checkpoint show",
    "compare --all --dry-run",
    "doctor",
    "estimate --dry-run",
    "experiment list",
    "help",
    "help at",
    "help estimate",
    "help gate",
    "help judge run",
    "key list",
    "key show Ada",
    "label design list",
    "log",
    "plan audit 0.2 --dry-run",
    "plan labels 0.05 --score-price 0.01 --label-price 2 --dry-run",
    "replay --all",
    "rulebook show",
    "schema",
    "score list",
    "score show p020",
    "show 3",
    "show 12",
    "status",
    "verify",
    "verify --recompute",
];

#[test]
fn what_stands_in_a_terminal_fits_it() {
    let mut desk = ledger();
    let mut wrong = Vec::new();
    for columns in [60_u16, 80, 120] {
        desk.columns = Some(columns);
        for verb in VERBS {
            // A colour takes no column.
            let colour = if verb.starts_with("help") {
                ""
            } else {
                " --color never"
            };
            let ran = desk.run(&format!("{verb}{colour}"));
            assert!(!ran.out.is_empty(), "{verb}: {}", ran.err);
            for line in too_wide(&ran.out, columns.into()) {
                wrong.push(format!(
                    "{columns} {verb} ({}): {line}",
                    line.chars().count()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// A wider terminal gets a wider chart.
#[test]
fn charts_are_as_wide_as_the_terminal_has_room() {
    let mut desk = ledger();
    let mut widths = Vec::new();
    for columns in [60, 80, 120] {
        desk.columns = Some(columns);
        let out = desk.ok("compare --all --dry-run").out;
        let bars = out.lines().filter(|line| line.contains(['├', '●', '○']));
        widths.push(bars.map(|line| line.chars().count()).max().unwrap());
    }
    assert!(widths.is_sorted_by(|one, two| one < two), "{widths:?}");
}

/// A pipe is no terminal: names, roots and keys stand whole in it.
#[test]
fn what_goes_into_a_pipe_is_whole() {
    let mut desk = ledger();
    for verb in VERBS {
        let out = desk.run(verb).out;
        // Help has examples with their own dots.
        assert!(
            verb.starts_with("help") || !out.contains('…'),
            "{verb}\n{out}"
        );
    }
    let compared = desk.ok("compare --all --dry-run").out;
    let pair = "a-policy-with-a-long-name - another-policy-of-a-long-name";
    assert!(compared.contains(pair), "{compared}");
}

/// Continuous scores are as many as rows: their series are stretches.
#[test]
fn a_series_of_continuous_scores_is_short() {
    let mut desk = ledger();
    let out = desk.ok("estimate --dry-run").out;
    let is_block = |c: char| ('▁'..='█').contains(&c);
    let series = out.split(|c: char| !is_block(c));
    let longest = series.map(|word| word.chars().count()).max().unwrap();
    assert!((10..=24).contains(&longest), "{longest}\n{out}");
}
