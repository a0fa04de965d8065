//! An import that is killed at any moment is finished by the same command: nothing is lost, nothing is doubled.

use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use clover::num::draws::Draws;
use serde_json::Value;

use super::copy_tree;
use crate::support::child;

const ROWS: usize = 150;
const FILES: [&str; 3] = ["base", "clone", "tuned"];

/// A person's folder: keys, pins, and a ledger.
pub(super) struct Home<'a>(pub(super) &'a Path);

impl Home<'_> {
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clover"));
        command
            .args(words)
            .env_clear()
            .env("XDG_CONFIG_HOME", self.0.join("config"))
            .env("XDG_STATE_HOME", self.0.join("state"))
            .current_dir(self.0.join("work"));
        command
    }

    pub(super) fn ok(&self, words: &[&str]) -> Value {
        let words = [words, &["--json"]].concat();
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(&words).output().unwrap();
        let text = String::from_utf8_lossy(&stdout);
        let failed = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{words:?}\n{text}{failed}");
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn entries(&self) -> u64 {
        self.ok(&["verify"])["checkpoint"]["size"].as_u64().unwrap()
    }

    /// Entries that stand, read beside whoever writes.
    fn stands(&self) -> u64 {
        let file = self.0.join("work/.clover/ledger.db");
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = rusqlite::Connection::open_with_flags(file, flags).unwrap();
        let count = database.query_row("SELECT count(*) FROM entries", [], |row| row.get(0));
        u64::try_from(count.unwrap_or(0_i64)).unwrap()
    }

    fn of_kind(&self, kind: &str) -> usize {
        let log = self.ok(&["log", "--kind", kind, "--limit", "100000"]);
        log["data"]["entries"].as_array().unwrap().len()
    }
}

/// Given a folder where a command goes on until it ends; when it is killed, once right after its first entries and then at
/// random moments, and started again; then it said what it says where nobody cuts it.
pub(super) fn comes_to_the_same<T: PartialEq + std::fmt::Debug>(
    made: &Path,
    words: &[&str],
    came_of: impl Fn(&Home<'_>) -> T,
) {
    let whole = tempfile::tempdir().unwrap();
    copy_tree(made, whole.path());
    let uncut = Home(whole.path());
    let begun = Instant::now();
    uncut.ok(words);
    let took = begun.elapsed();
    let (expected, all) = (came_of(&uncut), uncut.stands());
    let (kills, rounds) = if child::slow() { (40, 5) } else { (2, 1) };
    for seed in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        copy_tree(made, folder.path());
        let home = Home(folder.path());
        let mut draws = Draws::of([seed; 32], 0);
        let mut cut = 0;
        for kill in 0..kills {
            let before = home.stands();
            let mut command = home.command(words);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut run = command.spawn().unwrap();
            if kill == 0 {
                let deadline = begun + Duration::from_secs(60);
                while home.stands() == before && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(1));
                }
            } else {
                let share = draws.uniform() / f64::from(kills);
                std::thread::sleep(took.mul_f64(share).max(Duration::from_millis(5)));
            }
            run.kill().unwrap();
            run.wait().unwrap();
            cut += u32::from((before + 1..all).contains(&home.stands()));
        }
        assert!(cut > 0, "no kill cut anything");
        home.ok(words);
        assert_eq!(came_of(&home), expected, "seed {seed}, {cut} kills cut");
        home.ok(&["verify"]);
    }
}

pub(super) const IMPORT: [&str; 4] = ["import", "cje", "draws", "--labels"];

pub(super) fn prepare(folder: &Path) {
    std::fs::create_dir_all(folder.join("work/draws")).unwrap();
    let home = Home(folder);
    let roles = "owner,registrar,scorer,labeler";
    home.ok(&[
        "init",
        "--origin",
        "ledger.example/killed",
        "--holder",
        "Ada",
        "--roles",
        roles,
    ]);
    home.ok(&[
        "experiment",
        "register",
        "arena",
        "--title",
        "Arena",
        "--purpose",
        "testing",
    ]);
    home.ok(&[
        "label",
        "design",
        "new",
        "calib",
        "--purpose",
        "calibrate",
        "--probability",
        "0.5",
    ]);
    for policy in FILES {
        let lines: String = (0..ROWS)
            .map(|i| {
                format!(
                    "{{\"prompt_id\":\"p{i}\",\"judge_score\":0.5,\"draw_idx\":0,\"prompt\":\"Why {i}?\",\"response\":\"So.\",\"oracle_label\":0.25}}\n"
                )
            })
            .collect();
        let file = folder.join(format!("work/draws/{policy}_responses.jsonl"));
        std::fs::write(file, lines).unwrap();
    }
}

#[test]
fn an_import_that_is_killed_is_finished_by_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    prepare(&made);
    let whole = folder.path().join("whole");
    copy_tree(&made, &whole);
    let started = Instant::now();
    Home(&whole).ok(&IMPORT);
    let took = started.elapsed();
    let (before, after) = (Home(&made).entries(), Home(&whole).entries());
    assert_eq!(after - before, (FILES.len() * (2 * ROWS + 1)) as u64);
    let rounds: u32 = if child::slow() { 60 } else { 6 };
    let (mut cut, mut moments) = (0, std::collections::BTreeSet::new());
    for round in 0..rounds {
        let killed = folder.path().join(format!("killed-{round}"));
        copy_tree(&made, &killed);
        let home = Home(&killed);
        let mut command = home.command(&IMPORT);
        let mut import = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moment = took.mul_f64(f64::from(round + 1) / f64::from(rounds + 1));
        std::thread::sleep(moment.max(Duration::from_millis(1)));
        import.kill().unwrap();
        import.wait().unwrap();
        // What stands is whole, and known to be a part.
        let stands = home.entries();
        cut += u32::from(stands < after);
        moments.insert(stands);
        home.ok(&IMPORT);
        assert_eq!(
            home.entries(),
            after,
            "killed after {moment:?} at {stands} entries"
        );
        for (kind, count) in [
            ("score.recorded", FILES.len() * ROWS),
            ("label.recorded", FILES.len() * ROWS),
            ("data.ingested", FILES.len()),
        ] {
            assert_eq!(
                home.of_kind(kind),
                count,
                "{kind}, killed at {stands} entries"
            );
        }
        assert_eq!(home.ok(&IMPORT)["verdict"], "already_recorded");
        std::fs::remove_dir_all(&killed).unwrap();
    }
    assert!(cut > 0, "no run was cut: {moments:?}");
    println!("{cut} of {rounds} runs were cut, at {moments:?} of {after} entries");
}

/// A judge that answers at once until its second answer, and never again.
const STUCK: &str = r#"n=0
while read -r line; do
  n=$((n+1)); id=${line#*\"id\":}
  [ $n -gt 2 ] && sleep 60
  echo "{\"id\":${id%%,*},\"score\":0.5}"
done
"#;

#[test]
fn answers_are_on_record_when_a_judge_run_is_asked_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let home = Home(folder.path());
    let work = folder.path().join("work");
    std::fs::write(work.join("stuck.sh"), STUCK).unwrap();
    let rows: String = (0..5)
        .map(|i| {
            format!(
                "{{\"prompt_id\":\"q{i}\",\"target_policy\":\"base\",\"prompt\":\"Why {i}?\",\"response\":\"So {i}.\"}}\n"
            )
        })
        .collect();
    std::fs::write(work.join("rows.jsonl"), rows).unwrap();
    for signal in ["-TERM", "-INT"] {
        let before = home.of_kind("score.recorded");
        let judge = format!("judge{signal}");
        let run = [
            "judge",
            "run",
            "--judge",
            &judge,
            "--rows",
            "rows.jsonl",
            "--",
            "sh",
            "stuck.sh",
        ];
        let mut process = home
            .command(&run)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Both answers are on record while the third is waited for.
        let start = Instant::now();
        while home.of_kind("score.recorded") < before + 2 {
            assert!(start.elapsed() < Duration::from_secs(20), "no answer came");
            std::thread::sleep(Duration::from_millis(20));
        }
        let id = process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        let start = Instant::now();
        let status = process.wait().unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(status.code(), Some(130));
        let mut text = String::new();
        let mut errors = process.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut errors, &mut text).unwrap();
        assert!(
            text.contains("interrupted: 2 rows were recorded, 3 are left")
                && text.contains("next: the same command goes on"),
            "{text}"
        );
        assert_eq!(home.of_kind("score.recorded"), before + 2);
    }
    home.entries();
}
