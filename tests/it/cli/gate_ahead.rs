//! Observations that are read on another thread while the part before is recorded.

use std::path::Path;

use clover::event::payload::gate::GateObserved;
use clover::ground::keyfile;
use clover::ground::sign::Signer;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;
use clover::ledger::Recorded;
use clover::workflow::GOVERNED;
use clover::workflow::gates::evidence;
use clover::workflow::gates::observe;
use clover::workflow::gates::observe::Ask;
use clover::workflow::gates::observe::Course;
use clover::workflow::gates::observe::Next;
use clover::workflow::gates::observe::Stop;
use clover::workflow::gates::replay;

use super::Desk;
use super::gate;
use crate::support;

/// A desk with forty units exposed whose test says nothing before all are there; `candidate` scores each but the `left`th.
fn scored(candidate: &[u32], left: Option<usize>) -> Desk {
    let mut desk = gate::opened_as(|plan| plan.replace("n_min: 5", "n_min: 40"), |_| {});
    desk.ok("exposure open m-1");
    let mut lines = String::new();
    for (at, unit) in gate::units().iter().enumerate() {
        if Some(at) != left {
            lines += &score(unit, "baseline", 400_000);
            lines += &score(unit, "candidate", candidate[at % candidate.len()]);
        }
    }
    let bulk = desk.file("scores.jsonl", &lines);
    desk.ok(&format!("append --bulk {bulk}"));
    desk
}

fn score(unit: &str, policy: &str, score: u32) -> String {
    format!(
        "{{\"kind\":\"score.recorded\",\"experiment\":\"exp-1\",\"data\":{{\"draw\":0,\"item\":\"{unit}\",\"judge\":\"judge-1\",\"policy\":\"{policy}\",\"score_micro\":{score}}}}}\n"
    )
}

fn signer(path: &Path) -> Signer {
    let bytes = std::fs::read(path).unwrap();
    keyfile::read_private(&bytes, None).unwrap().into()
}

fn open(desk: &Desk) -> Ledger {
    let options = LedgerOptions {
        log_key: Some(signer(&desk.at.join(".clover/log.key"))),
        ..support::options(&desk.path(desk.state).join("clover/pins"))
    };
    let ambient = desk.ambient.clone();
    Ledger::open(&desk.database(), ambient, &GOVERNED, options).unwrap()
}

/// What is observed in parts of so many: each part as `take` is given it.
fn run<E: std::fmt::Debug>(
    ledger: &mut Ledger,
    part: u64,
    take: impl FnMut(&mut Ledger, Next) -> Result<(), E>,
) -> Result<(), E> {
    let id = "m-1".parse().unwrap();
    let known = evidence::known(ledger.state(), &id).unwrap();
    let bound = known.record.bound().unwrap();
    let order = replay::order(ledger, bound, known.gate.opened_seq).unwrap();
    let ask = Ask {
        listed: &order.listed,
        missing: false,
        order: &order.units,
        part,
        strata: &order.strata,
        through: u64::MAX,
    };
    let mut course = Course::new(known, ask).unwrap();
    let mut take = take;
    if !course.is_long() {
        let next = course.next(part, |since, keys| ledger.measured(since, keys));
        return take(ledger, next.unwrap());
    }
    let reading = ledger.reading().unwrap();
    observe::ahead(course, reading, |mut parts| {
        parts.try_for_each(|next| take(ledger, next.unwrap()))
    })
}

fn commands(observed: &[GateObserved]) -> Vec<Command> {
    let command = |said: &GateObserved| Command::new(said.clone(), Some("exp-1".parse().unwrap()));
    observed.iter().map(command).collect()
}

fn append(
    ledger: &mut Ledger,
    desk: &Desk,
    (observed, values): (&[GateObserved], Recorded),
) -> Result<(), LedgerError> {
    let bea = signer(&desk.key_file("bea"));
    ledger.append_read(commands(observed), &bea, values)?;
    Ok(())
}

/// Everything in one part, nothing recorded.
fn whole(desk: &Desk) -> (Vec<GateObserved>, Stop) {
    let mut found = None;
    let take = |_: &mut Ledger, next: Next| {
        found = Some((next.observed, next.stop));
        Ok::<_, ()>(())
    };
    run(&mut open(desk), 40, take).unwrap();
    found.unwrap()
}

const CANDIDATE: [u32; 4] = [300_000, 500_000, 450_000, 100_000];

#[test]
fn parts_read_ahead_are_those_of_one_reading() {
    let mut desk = scored(&CANDIDATE, None);
    let (expected, stop) = whole(&desk);
    assert_eq!((expected.len(), stop), (40, Stop::Look));
    let mut ledger = open(&desk);
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    run(&mut ledger, 7, |ledger, next| {
        parts.push((next.observed.len(), next.stop));
        all.extend(next.observed.clone());
        append(ledger, &desk, (&next.observed, next.values))
    })
    .unwrap();
    assert_eq!(all, expected);
    let mut ends = vec![(7, Stop::Asked); 5];
    ends.push((5, Stop::Look));
    assert_eq!(parts, ends);
    let id = "m-1".parse().unwrap();
    let known = evidence::known(ledger.state(), &id).unwrap();
    assert_eq!(known.gate.n, 40);
    drop(ledger);
    desk.ok("verify");
    desk.run("gate look m-1");
    let shown = desk.ok("gate show m-1 --json").json();
    assert_eq!(shown["data"]["n"], 40);
}

#[test]
fn a_unit_without_its_scores_ends_what_is_read_ahead() {
    let mut desk = scored(&CANDIDATE, Some(17));
    let (expected, stop) = whole(&desk);
    let unit = gate::units()[17].clone();
    assert_eq!(stop, Stop::Missing(unit.parse().unwrap()));
    let mut ledger = open(&desk);
    let (mut all, mut last) = (Vec::new(), None);
    run(&mut ledger, 3, |ledger, next| {
        all.extend(next.observed.clone());
        last = Some(next.stop);
        append(ledger, &desk, (&next.observed, next.values))
    })
    .unwrap();
    assert_eq!((&all, last), (&expected, Some(stop)));
    drop(ledger);
    // Its scores come after everything else, and it goes on from there.
    let lines = score(&unit, "baseline", 400_000) + &score(&unit, "candidate", 0);
    let late = desk.file("late.jsonl", &lines);
    desk.ok(&format!("append --bulk {late}"));
    let mut ledger = open(&desk);
    run(&mut ledger, 3, |ledger, next| {
        all.extend(next.observed.clone());
        append(ledger, &desk, (&next.observed, next.values))
    })
    .unwrap();
    let units: Vec<_> = all.iter().map(|said| said.t.value()).collect();
    assert_eq!(units, (1..=40).collect::<Vec<_>>());
    drop(ledger);
    desk.ok("verify");
}

#[test]
fn nothing_is_read_past_a_part_that_is_not_taken() {
    let desk = scored(&CANDIDATE, None);
    let mut taken = 0;
    let failed = run(&mut open(&desk), 3, |_, _| {
        taken += 1;
        if taken == 2 { Err("enough") } else { Ok(()) }
    });
    assert_eq!((failed, taken), (Err("enough"), 2));
}

/// Another process records a part that is read ahead here, before it is recorded here: each unit stands once, in order.
#[test]
fn another_process_that_observes_meanwhile_is_seen() {
    let mut desk = scored(&CANDIDATE, None);
    let (mut ledger, mut other) = (open(&desk), open(&desk));
    let id = "m-1".parse().unwrap();
    let mut parts = 0;
    run(&mut ledger, 7, |ledger, next| {
        parts += 1;
        if parts % 2 == 0 {
            append(&mut other, &desk, (&next.observed, Recorded::default()))?;
        }
        append(ledger, &desk, (&next.observed, next.values))?;
        let known = evidence::known(ledger.state(), &id).unwrap();
        assert_eq!(known.gate.n, (7 * parts).min(40));
        Ok::<_, LedgerError>(())
    })
    .unwrap();
    assert_eq!(parts, 6);
    let known = evidence::known(ledger.state(), &id).unwrap();
    let life = replay::read(&ledger, &id, known, ledger.size()).unwrap();
    let places: Vec<_> = life
        .observed
        .iter()
        .map(|(_, said)| said.t.value())
        .collect();
    assert_eq!(places, (1..=40).collect::<Vec<_>>());
    drop((ledger, other));
    desk.ok("verify");
}

#[test]
fn values_of_another_ledger_are_not_believed() {
    // The same life up to the scores, which differ.
    let (desk, other) = (scored(&CANDIDATE, None), scored(&[900_000], None));
    let mut foreign = None;
    run(&mut open(&other), 40, |_, next| {
        foreign = Some((next.observed, next.values));
        Ok::<_, ()>(())
    })
    .unwrap();
    let (observed, values) = foreign.unwrap();
    let mut ledger = open(&desk);
    let refused = append(&mut ledger, &desk, (&observed, values)).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("observation: expected a recorded value of 900000"),
        "{refused}"
    );
    let (expected, _) = whole(&desk);
    append(&mut ledger, &desk, (&expected, Recorded::default())).unwrap();
}
