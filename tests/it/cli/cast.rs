//! Commands that several roles sign: every key is found, or named as lacking, before anything is appended.

use super::gate;
use super::sequential;

/// Each key that lacks is named at once, with the options that name one.
#[test]
fn a_gate_asks_for_all_of_its_keys_at_once() {
    gate::opened_as(
        |plan| plan,
        |desk| {
            desk.ok("key new cem2 --role custodian");
            desk.ok("key new bob --role arbiter,releaser");
            let size = desk.head()["size"].clone();
            for dry in ["", " --dry-run"] {
                let words = format!("gate open m-1 --units units.txt --judge judge-1{dry}");
                let words: Vec<_> = words.split(' ').collect();
                let parts = [
                    "several of your keys may sign units.listed: cem, cem2",
                    "several of your keys may sign order.listed: bea, bob",
                    "next: the same command with --custodian cem --key bea",
                ];
                desk.refused(&words, 2, &parts);
                // A key that may not open a gate is told so; one that may list units stands for its own part.
                let words = [&words[..], &["--key", "cem2"]].concat();
                let parts = [
                    "order.listed needs role arbiter, and --key cem2 has custodian",
                    "next: the same command with --custodian cem2 --key bea",
                ];
                desk.refused(&words, 11, &parts);
            }
            assert_eq!(desk.head()["size"], size);
            for name in ["cem2", "bob"] {
                std::fs::remove_file(desk.key_file(name)).unwrap();
            }
        },
    );
}

/// No peek is charged where nobody at hand may judge what it shows.
#[test]
fn no_peek_is_charged_before_every_key_is_found() {
    let mut desk = sequential::sealed(6_000, 100);
    desk.ok("key new cem3 --role custodian --seal");
    let size = desk.head()["size"].clone();
    for verb in ["run", "confirm"] {
        let words = ["iterate", verb, "it-mended", "--yes"];
        let parts = [
            "several of your keys may sign label.revealed: cem, cem3",
            "next: the same command with --custodian cem",
        ];
        desk.refused(&words, 2, &parts);
        let words = [&words[..], &["--key", "cem"]].concat();
        let parts = [
            "gate.evaluated needs role arbiter, and --key cem has custodian",
            "next: the same command with --custodian cem --key ",
        ];
        desk.refused(&words, 11, &parts);
    }
    assert_eq!(desk.head()["size"], size);
    assert_eq!(sequential::labels(&mut desk, "budget.charged"), 0);
    desk.ok("iterate run it-mended --yes --custodian cem");
    assert_eq!(sequential::labels(&mut desk, "budget.charged"), 1);
}
