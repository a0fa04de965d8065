//! A judge's run that is killed at any moment loses at most half a second of answers, doubles none, and asks again for none
//! that is on record. One that is asked to stop loses none.

use std::collections::BTreeMap;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use clover::event::Payload;
use clover::ground::ambient::Ambient;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::LedgerOptions;
use clover::workflow::judge::run;

use super::gate_ahead::signer;
use super::killed::Home;
use crate::support;
use crate::support::child;

/// Answers some hundred rows a second, each time with another score, and notes of each answer when it was given.
const JUDGE: &str = r#"while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  item=${line#*\"item\":\"}; item=${item%%\"*}
  sleep 0.002
  score=$((RANDOM % 900 + 100))
  echo "${EPOCHREALTIME/./} $item $score" >> answered.log
  echo "{\"id\":$id,\"score\":0.$score}"
done
"#;

/// Answers of how long before the kill may be lost.
pub(super) const LOSS_MAX: Duration = Duration::from_millis(500);

/// What the program noted of an answer.
struct Answered {
    at: Duration,
    item: String,
    micro: i64,
}

/// What is on record: of each item its scores, and of each item how often its record stands.
#[derive(Default)]
struct Recorded {
    scores: BTreeMap<String, Vec<i64>>,
    records: BTreeMap<String, Vec<i64>>,
}

struct Bench {
    folder: tempfile::TempDir,
    children: &'static str,
}

impl Bench {
    fn new(rows: usize, children: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder, children };
        std::fs::create_dir_all(bench.work()).unwrap();
        let home = bench.home();
        let roles = "owner,registrar,scorer";
        let init = format!("init --origin ledger.example/killed --holder Ada --roles {roles}");
        home.ok(&init.split(' ').collect::<Vec<_>>());
        let open = "experiment register arena --title Arena --purpose testing";
        home.ok(&open.split(' ').collect::<Vec<_>>());
        std::fs::write(bench.work().join("judge.sh"), JUDGE).unwrap();
        let lines: String = (0..rows)
            .map(|i| {
                format!(
                    "{{\"prompt_id\":\"q{i}\",\"target_policy\":\"base\",\"prompt\":\"Why {i}?\",\"response\":\"So {i}.\"}}\n"
                )
            })
            .collect();
        std::fs::write(bench.work().join("rows.jsonl"), lines).unwrap();
        bench
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    fn home(&self) -> Home<'_> {
        Home(self.folder.path())
    }

    fn words(&self) -> Vec<&str> {
        let run = "judge run --judge llm --rows rows.jsonl -j";
        let program = ["--", "bash", "judge.sh"];
        let words = run.split(' ').chain([self.children]);
        words.chain(program).collect()
    }

    fn start(&self) -> std::process::Child {
        let mut command = self.home().command(&self.words());
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// What the program noted since it was last asked.
    fn answered(&self) -> Vec<Answered> {
        let path = self.work().join("answered.log");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::remove_file(&path).ok();
        let answers = text.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            Answered {
                at: Duration::from_micros(words[0].parse().unwrap()),
                item: words[1].to_owned(),
                micro: words[2].parse::<i64>().unwrap() * 1_000,
            }
        });
        answers.collect()
    }

    /// What is on record, of a ledger that verifies.
    fn recorded(&self) -> Recorded {
        self.home().entries();
        let clover = self.work().join(".clover");
        let pins = self.folder.path().join("state/clover/pins");
        let options = LedgerOptions {
            log_key: Some(signer(&clover.join("log.key"))),
            ..support::options(&pins)
        };
        let ambient = Arc::new(Ambient::system());
        let ledger = Ledger::open(
            &clover.join("ledger.db"),
            ambient,
            &clover::workflow::RULEBOOK,
            options,
        )
        .unwrap();
        let mut recorded = Recorded::default();
        let mut lists = Vec::new();
        ledger
            .entries(0, ledger.size(), |read| {
                match read.event.payload {
                    Payload::ScoreRecorded(score) => {
                        let item = recorded.scores.entry(score.item.to_string());
                        item.or_default().push(score.score_micro.value());
                    }
                    Payload::EvidenceRecorded(found) => lists.push(found),
                    Payload::ScoreConflict(conflict) => panic!("{conflict:?}"),
                    _ => {}
                }
                Ok::<_, LedgerError>(())
            })
            .unwrap();
        for found in lists {
            let reader = ledger.store().reader();
            let bytes = reader.blob(&found.records.blake3).unwrap().unwrap();
            for record in run::parse(&bytes, &found.records_root.0).unwrap() {
                let item = recorded.records.entry(record.item.to_string());
                item.or_default().push(record.b_micro.value());
            }
        }
        for (item, scores) in &recorded.scores {
            let record = recorded.records.get(item);
            assert_eq!(record, Some(scores), "{item} has another record");
        }
        assert_eq!(recorded.records.len(), recorded.scores.len());
        for (item, scores) in &recorded.scores {
            assert_eq!(scores.len(), 1, "{item} is doubled");
        }
        recorded
    }
}

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// What a killed or stopped run left: `before` stands as it stood, nothing of it was asked again, and what is new is what the
/// program said. Gives the answers that are not on record.
fn missing(before: &Recorded, after: &Recorded, answered: Vec<Answered>) -> Vec<Answered> {
    for (item, scores) in &before.scores {
        assert_eq!(after.scores.get(item), Some(scores), "{item} changed");
    }
    let said: BTreeMap<_, _> = answered
        .iter()
        .map(|of| (of.item.as_str(), of.micro))
        .collect();
    assert_eq!(said.len(), answered.len(), "a row was asked twice in a run");
    for item in said.keys() {
        assert!(!before.scores.contains_key(*item), "{item} was asked again");
    }
    for (item, scores) in &after.scores {
        if !before.scores.contains_key(item) {
            assert_eq!(said.get(item.as_str()), Some(&scores[0]), "{item}");
        }
    }
    let mut answers = answered.into_iter();
    let lost = answers
        .by_ref()
        .filter(|of| !after.scores.contains_key(&of.item));
    lost.collect()
}

/// What kills found.
#[derive(Default)]
struct Found {
    kills: usize,
    cut: usize,
    answers: usize,
    lost: usize,
    losses: Vec<u128>,
}

/// Kills one command again and again at seeded moments, then lets it finish.
fn chain(seed: u64, (kills, rows): (usize, usize), children: &'static str, found: &mut Found) {
    let bench = Bench::new(rows, children);
    let mut before = Recorded::default();
    let mut state = seed;
    for _ in 0..kills {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_millis((state >> 33) % 900);
        let mut run = bench.start();
        std::thread::sleep(moment);
        let killed = now();
        run.kill().unwrap();
        run.wait().unwrap();
        let after = bench.recorded();
        let answered = bench.answered();
        found.kills += 1;
        found.answers += answered.len();
        found.cut += usize::from(after.scores.len() < rows);
        let lost = missing(&before, &after, answered);
        // What the program said after the kill, nobody was there to hear.
        let lost = lost.iter().filter(|of| of.at <= killed);
        let ages: Vec<_> = lost
            .map(|of| killed.saturating_sub(of.at).as_millis())
            .collect();
        let age = ages.iter().copied().max().unwrap_or(0);
        assert!(
            age <= LOSS_MAX.as_millis(),
            "seed {seed}, killed after {moment:?}: {} answers of the last {age} ms are lost",
            ages.len()
        );
        found.lost += ages.len();
        found.losses.push(age);
        before = after;
    }
    let mut run = bench.start();
    assert!(run.wait().unwrap().success());
    let after = bench.recorded();
    let lost = missing(&before, &after, bench.answered());
    assert!(lost.is_empty());
    assert_eq!(after.scores.len(), rows);
    // Nothing is left to ask.
    assert!(bench.start().wait().unwrap().success());
    assert!(bench.answered().is_empty());
}

#[test]
fn a_judge_run_that_is_killed_loses_half_a_second_at_most() {
    let (chains, kills, rows) = if child::slow() {
        (10, 20, 3_000)
    } else {
        (2, 6, 600)
    };
    let mut found = Found::default();
    for seed in 0..chains {
        let children = ["1", "3"][usize::try_from(seed % 2).unwrap()];
        chain(seed, (kills, rows), children, &mut found);
    }
    found.losses.sort_unstable();
    let middle = found.losses[found.losses.len() / 2];
    let most = found.losses[found.losses.len() - 1];
    assert!(found.cut > 0, "no run was cut");
    println!(
        "{} SIGKILLs, {} in a run that was not over; {} answers, {} lost; age of the oldest lost: median {middle} ms, most {most} ms",
        found.kills, found.cut, found.answers, found.lost
    );
}

#[test]
fn a_judge_run_that_is_asked_to_stop_loses_nothing() {
    let rounds: u64 = if child::slow() { 20 } else { 2 };
    for signal in ["-TERM", "-INT"] {
        let bench = Bench::new(20_000, "3");
        let mut before = Recorded::default();
        for round in 0..rounds {
            let mut run = bench.start();
            let start = Instant::now();
            // Before it answers, a signal finds nobody who hears it.
            while !bench.work().join("answered.log").exists() {
                assert!(start.elapsed() < Duration::from_secs(20), "no answer came");
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(37 * (round + 1) % 700));
            let id = run.id().to_string();
            let sent = Command::new("kill").args([signal, &id]).status().unwrap();
            assert!(sent.success());
            assert_eq!(run.wait().unwrap().code(), Some(130));
            let after = bench.recorded();
            let lost = missing(&before, &after, bench.answered());
            let lost: Vec<_> = lost.iter().map(|of| of.item.as_str()).collect();
            assert!(lost.is_empty(), "{signal}: {lost:?} are lost");
            assert!(after.scores.len() > before.scores.len());
            before = after;
        }
    }
}
