//! `clover audit summary`: one page, the verdict first; rows behind `--full`.

use super::Desk;
use super::gate;
use super::says;

#[test]
fn the_verdict_and_five_answers_fit_one_page() {
    gate::opened_as(
        |plan| plan,
        |desk| {
            let ran = desk.ok("audit summary");
            let lines: Vec<_> = ran.out.lines().collect();
            assert!(lines[0].starts_with("VERIFIED  "), "{}", ran.out);
            assert!(lines.len() <= 40, "{}", ran.out);
            for name in ["signed", "plans", "peeks", "decisions", "not claimed"] {
                let found = lines.iter().any(|line| line.starts_with(name));
                assert!(found, "{name}: {}", ran.out);
            }
            let flat = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [
                "1 plan: 0 in force before the first row, 0 before the first outcome, 1 with nothing seen yet",
                "that what was recorded is true or complete",
            ] {
                assert!(flat.contains(part), "{part}: {flat}");
            }
            says(&ran, &["next: clover audit summary --full"]);
            assert!(!ran.out.contains("Who signed what"), "{}", ran.out);
            let full = desk.ok("audit summary --full").out;
            assert!(full.starts_with(lines[0]), "{full}");
            assert!(full.contains("Who signed what, in which role"), "{full}");
        },
    );
}

#[test]
fn an_earlier_entry_is_summed_up_and_not_judged() {
    let mut desk = Desk::with_ledger();
    let ran = desk.ok("at 1 -- audit summary --json");
    let found = ran.json();
    assert!(found["data"]["line"].is_null(), "{found}");
    assert_eq!(found["data"]["entries"], 2);
}
