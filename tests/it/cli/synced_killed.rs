//! Whoever syncs may be killed at any moment: the folder and both copies are whole, and the next sync does the rest.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::copy_tree;
use super::killed::Home;
use super::score_line;
use crate::support::child;

const SCORES: usize = 600;

/// Ada's and Bea's homes in one folder, with a shared one; Bea has signed scores that wait there.
fn prepare(folder: &Path) {
    let (ada, bea) = (folder.join("ada"), folder.join("bea"));
    for home in [&ada, &bea] {
        std::fs::create_dir_all(home.join("work")).unwrap();
    }
    std::fs::create_dir(folder.join("team")).unwrap();
    let (ada, bea) = (Home(&ada), Home(&bea));
    let init = "init --origin ledger.example/killed --holder Ada --roles owner,registrar";
    said(&ada, init);
    said(
        &ada,
        "experiment register exp-1 --title One --purpose testing",
    );
    said(
        &bea,
        "key request --for ledger.example/killed --roles scorer --holder Bea -o bea.request",
    );
    said(&ada, "key admit ../../bea/work/bea.request --yes");
    said(&ada, SYNC);
    said(&bea, SYNC);
    let lines: String = (0..SCORES).map(|n| score_line(&format!("i{n}"))).collect();
    std::fs::write(folder.join("bea/work/scores.jsonl"), lines).unwrap();
    said(&bea, "append --bulk scores.jsonl");
}

const SYNC: &str = "sync ../../team";

fn said(home: &Home<'_>, line: &str) -> serde_json::Value {
    let words: Vec<&str> = line.split(' ').collect();
    home.ok(&words)
}

/// Kills a sync after a while.
fn kill(home: &Home<'_>, moment: Duration) {
    let words: Vec<&str> = SYNC.split(' ').collect();
    let mut command = home.command(&words);
    let mut sync = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(moment);
    sync.kill().unwrap();
    sync.wait().unwrap();
}

#[test]
fn a_sync_that_is_killed_is_finished_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    std::fs::create_dir(&made).unwrap();
    prepare(&made);
    let whole = folder.path().join("whole");
    copy_tree(&made, &whole);
    let mut took = Vec::new();
    for who in ["ada", "bea"] {
        let started = Instant::now();
        said(&Home(&whole.join(who)), SYNC);
        took.push(started.elapsed());
    }
    let before = Home(&made.join("bea")).entries();
    let after = Home(&whole.join("bea")).entries();
    assert_eq!(after, before + SCORES as u64);
    let rounds: u32 = if child::slow() { 40 } else { 5 };
    for round in 0..rounds {
        let part = f64::from(round + 1) / f64::from(rounds + 1);
        let killed = folder.path().join(format!("killed-{round}"));
        copy_tree(&made, &killed);
        let (ada, bea) = (killed.join("ada"), killed.join("bea"));
        let (ada, bea) = (Home(&ada), Home(&bea));
        kill(&ada, took[0].mul_f64(part));
        // A reader sees what was published before, or all of it.
        said(&bea, SYNC);
        let seen = bea.entries();
        assert!([before, after].contains(&seen), "{seen} at {part}");
        said(&ada, SYNC);
        assert_eq!(ada.entries(), after);
        kill(&bea, took[1].mul_f64(part));
        let seen = bea.entries();
        assert!([before, after].contains(&seen), "{seen} at {part}");
        said(&bea, SYNC);
        assert_eq!(bea.entries(), after);
        let left = std::fs::read_dir(killed.join("team/outbox")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "blobs"), "{left:?}");
        assert!(!killed.join("bea/work/.clover/follow").exists());
    }
}
