//! What belongs together is said by one command: both stand then, or none.

use serde_json::Value;

use super::Desk;
use crate::support::iterated;
use crate::support::iterated::RUBRIC;

/// A desk with a rubric, anchors and a plan in force, whose account of looks nobody opened; the arbiter is a person of
/// their own.
fn planned() -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new ben --role arbiter");
    let file = desk.file("rubric.yaml", RUBRIC);
    desk.ok(&format!("rubric register {file} --experiment exp-1"));
    let anchors = match iterated::anchors(200) {
        clover::event::Payload::AnchorSetRegistered(said) => serde_json::to_string(&said).unwrap(),
        other => panic!("{other:?}"),
    };
    let register = ["record", "anchor_set.registered", "--experiment", "exp-1"];
    desk.ok_words(&[&register[..], &["--data", &anchors]].concat());
    // JSON is YAML.
    let plan = desk.file("it.yaml", &iterated::plan("exp-1", "m-it").to_string());
    desk.ok(&format!("prereg sign {plan}"));
    desk
}

fn accounts(desk: &mut Desk) -> Vec<Value> {
    let list = desk.ok("log --kind budget.opened --json").json();
    list["data"]["entries"].as_array().unwrap().clone()
}

#[test]
fn an_iteration_opens_with_the_account_that_it_pays_from() {
    let mut desk = planned();
    let open = ["iterate", "open", "it-1", "--manifest", "m-it"];
    let with = |peeks| [&open[..], &["--peeks", peeks]].concat();
    let refused = desk.refused(&open, 11, &["no account confirm-peeks"]);
    assert!(
        refused.err.contains("--manifest m-it --peeks 3"),
        "{}",
        refused.err
    );
    // A quarter allows three.
    desk.refused(&with("4"), 2, &["--peeks"]);
    desk.refused(&with("0"), 2, &["--peeks"]);
    let before = desk.head();
    let shown = desk
        .ok_words(&[&with("2")[..], &["--dry-run", "--json"]].concat())
        .json();
    let bodies = shown["data"]["bodies"].as_array().unwrap();
    assert_eq!(bodies.len(), 2, "{shown:#}");
    assert!(bodies[0].as_str().unwrap().contains("budget.opened"));
    assert!(bodies[1].as_str().unwrap().contains("iteration.opened"));
    assert_eq!(desk.head(), before);
    let opened = desk
        .ok_words(&[&with("2")[..], &["--json"]].concat())
        .json();
    assert_eq!(opened["data"]["appended"], 2, "{opened:#}");
    let shown = desk.ok("budget show confirm-peeks").out;
    assert!(shown.contains('2'), "{shown}");
    // Said again it stands; an account is opened once.
    let again = desk
        .ok_words(&[&with("2")[..], &["--json"]].concat())
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    desk.refused(&with("3"), 11, &["holds 2 looks, and 3 were asked for"]);
    // Where the iteration is not opened, its account is not either.
    let mut other = iterated::plan("exp-1", "m-2");
    other["iteration"]["design"]["peek_account"] = "others".into();
    let plan = desk.file("other.yaml", &other.to_string());
    desk.ok(&format!("prereg sign {plan}"));
    let second = [
        "iterate",
        "open",
        "it-2",
        "--manifest",
        "m-2",
        "--peeks",
        "1",
    ];
    desk.refused(&second, 11, &["iteration"]);
    assert_eq!(accounts(&mut desk).len(), 1);
}

#[test]
fn an_experiment_begins_with_the_rubric_that_it_starts_from() {
    let mut desk = Desk::with_ledger();
    desk.file("rubric.yaml", RUBRIC);
    desk.file(
        "wrong.yaml",
        &RUBRIC.replace("mismatch_penalty: 0.35", "mismatch_penalty: 2"),
    );
    let words = |file| {
        let named = ["experiment", "register", "exp-2", "--title", "Two"];
        [&named[..], &["--purpose", "mending", "--rubric", file]].concat()
    };
    desk.refused(&words("none.yaml"), 5, &["none.yaml"]);
    desk.refused(
        &words("wrong.yaml"),
        4,
        &["wrong.yaml:", "mismatch_penalty"],
    );
    let before = desk.head();
    let shown = desk
        .ok_words(&[&words("rubric.yaml")[..], &["--dry-run", "--json"]].concat())
        .json();
    assert_eq!(shown["data"]["bodies"].as_array().unwrap().len(), 2);
    assert_eq!(desk.head(), before);
    let begun = desk
        .ok_words(&[&words("rubric.yaml")[..], &["--json"]].concat())
        .json();
    let data = &begun["data"];
    let seqs: Vec<u64> = serde_json::from_value(data["seqs"].clone()).unwrap();
    assert_eq!(seqs[0] + 1, seqs[1], "{data:#}");
    let shown = desk.ok("rubric show exp-2 --json").json();
    assert_eq!(shown["data"]["rubric_hash"], data["rubric_hash"]);
}
