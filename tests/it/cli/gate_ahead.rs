//! Observations that are read on another thread while the part before is recorded.

use std::path::Path;

use clover::event::payload::gate::GateObserved;
use clover::ground::keyfile;
use clover::ground::sign::Signer;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;
use clover::ledger::RecordedValues;
use clover::num::Count;
use clover::num::Micro;
use clover::workflow::GOVERNED;
use clover::workflow::gates::evidence;
use clover::workflow::gates::hold;
use clover::workflow::gates::observe;
use clover::workflow::gates::observe::Next;
use clover::workflow::gates::observe::ObservationCourse;
use clover::workflow::gates::observe::ObservationEnd;
use clover::workflow::gates::observe::ObservationRequest;
use clover::workflow::gates::replay;

use super::Desk;
use super::gate;
use crate::support;
use crate::tamper::tables::without_triggers;

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

pub(super) fn signer(path: &Path) -> Signer {
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
    let ask = ObservationRequest {
        listed: &order.listed,
        missing: false,
        order: &order.units,
        part,
        strata: &order.strata,
        through: u64::MAX,
    };
    let mut course = ObservationCourse::new(known, ask).unwrap();
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
    (observed, values): (&[GateObserved], RecordedValues),
) -> Result<(), LedgerError> {
    let bea = signer(&desk.key_file("bea"));
    ledger.append_read(commands(observed), &bea, values)?;
    Ok(())
}

/// Everything in one part, nothing recorded.
fn whole(desk: &Desk) -> (Vec<GateObserved>, ObservationEnd) {
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
    assert_eq!((expected.len(), stop), (40, ObservationEnd::Look));
    let mut ledger = open(&desk);
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    run(&mut ledger, 7, |ledger, next| {
        parts.push((next.observed.len(), next.stop));
        all.extend(next.observed.clone());
        append(ledger, &desk, (&next.observed, next.values))
    })
    .unwrap();
    assert_eq!(all, expected);
    let mut ends = vec![(7, ObservationEnd::Asked); 5];
    ends.push((5, ObservationEnd::Look));
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
    assert_eq!(stop, ObservationEnd::Missing(unit.parse().unwrap()));
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
            append(
                &mut other,
                &desk,
                (&next.observed, RecordedValues::default()),
            )?;
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
    append(&mut ledger, &desk, (&expected, RecordedValues::default())).unwrap();
}

/// What the table of scores alone says is not observed: values are read from entries, under the signed head.
#[test]
fn nothing_is_observed_that_only_the_table_of_scores_says() {
    let mut desk = scored(&[300_000], None);
    let (expected, _) = whole(&desk);
    without_triggers(&desk.database(), |conn| {
        let write = "UPDATE scores SET score_micro = 900000 WHERE policy = 'candidate'";
        assert_eq!(conn.execute(write, []).unwrap(), 40);
    });
    assert_eq!(whole(&desk).0, expected);
    let mut ledger = open(&desk);
    run(&mut ledger, 7, |ledger, next| {
        append(ledger, &desk, (&next.observed, next.values))
    })
    .unwrap();
    drop(ledger);
    // By the table the candidate would have shown its effect.
    let ran = desk.run("gate look m-1");
    assert_eq!(ran.code, 12, "{ran:?}");
    let ran = desk.run("verify");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.out.contains("read_model"), "{ran:?}");
}

#[test]
fn an_observation_that_the_log_does_not_bear_out_is_named() {
    let id = "m-1".parse().unwrap();
    let observed = |left: usize| {
        let desk = scored(&CANDIDATE, Some(left));
        let mut ledger = open(&desk);
        run(&mut ledger, 40, |ledger, next| {
            append(ledger, &desk, (&next.observed, next.values))
        })
        .unwrap();
        let known = evidence::known(ledger.state(), &id).unwrap();
        let life = replay::read(&ledger, &id, known, ledger.size()).unwrap();
        // It ends at the unit without scores, which may come early in the order that was drawn.
        (life.observed.len() >= 10).then_some((desk, ledger, life))
    };
    let (_desk, ledger, life) = (0..40).find_map(observed).unwrap();
    let known = evidence::known(ledger.state(), &id).unwrap();
    let first = life.observed[0].0;
    assert_eq!(hold::hold(&ledger, known, &life, |_| {}).unwrap(), None);
    let named = |change: &dyn Fn(&mut replay::Life), words: [&str; 2]| {
        let mut changed = life.clone();
        change(&mut changed);
        let found = hold::hold(&ledger, known, &changed, |_| {})
            .unwrap()
            .unwrap();
        assert!(found.expected.contains(words[0]), "{found:?}");
        assert!(found.found.contains(words[1]), "{found:?}");
        found.seq
    };
    let micro = |value| Micro::new(value).unwrap();
    let seq = named(
        &|life| life.observed[6].1.readings[0].candidate[0] = micro(1_000_000),
        ["millionths as entry", "1000000 millionths"],
    );
    assert_eq!(seq, first + 6);
    // Two of them: the first is named.
    let seq = named(
        &|life| {
            for at in [9, 4] {
                life.observed[at].1.readings[0].baseline[0] = micro(0);
            }
        },
        ["400000 millionths as entry", "0 millionths"],
    );
    assert_eq!(seq, first + 4);
    let seq = named(
        &|life| {
            let draw = Count::new(0).unwrap();
            life.observed[3].1.readings[0].candidate_missing = Some(vec![draw]);
        },
        ["millionths as entry", "a missing draw"],
    );
    assert_eq!(seq, first + 3);
    // A value that was recorded after it was observed, and one before its unit was exposed, is none.
    named(
        &|life| life.observed[2].0 = 1,
        ["no value before it", "millionths"],
    );
    let seq = named(
        &|life| {
            let other = life.observed[1].1.unit.clone();
            life.observed[0].1.unit = other;
        },
        ["at place 1", "unit "],
    );
    assert_eq!(seq, first);
    named(
        &|life| life.observed[5].1.stratum = Some("hard".parse().unwrap()),
        ["at place 6", "of stratum hard"],
    );
}
