//! Commands that write folders and are stopped: nothing short stands under a final name, no key lies about, and the next
//! command goes on as if nothing had been.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::copy_tree;
use super::killed;
use super::killed::Home;
use crate::support::child;

/// Files below a folder with their bytes, by their path in it.
fn files(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// Runs a command and stops it after a part of the time that it took before.
fn stopped(home: &Home<'_>, words: &[&str], after: Duration) {
    let mut command = home.command(words);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after.max(Duration::from_millis(1)));
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn an_export_that_is_killed_leaves_nothing_short_and_is_made_by_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    killed::prepare(folder.path());
    let home = Home(folder.path());
    home.ok(&killed::IMPORT);
    let rounds: u32 = if child::slow() { 40 } else { 6 };
    for format in ["jsonl", "tiles"] {
        let started = Instant::now();
        home.ok(&[
            "export",
            format,
            "-o",
            &format!("{format}-whole"),
            "--blobs",
        ]);
        let took = started.elapsed();
        let whole = files(&folder.path().join(format!("work/{format}-whole")));
        for round in 0..rounds {
            let name = format!("{format}-{round}");
            let words = ["export", format, "-o", &name, "--blobs"];
            stopped(
                &home,
                &words,
                took.mul_f64(f64::from(round + 1) / f64::from(rounds + 1)),
            );
            let target = folder.path().join("work").join(&name);
            if !target.exists() {
                home.ok(&words);
            }
            assert_eq!(files(&target), whole, "{format} {round}");
            let beside = std::fs::read_dir(folder.path().join("work")).unwrap();
            let beside = beside.map(|entry| entry.unwrap().file_name());
            let mut beside = beside.filter_map(|left| left.into_string().ok());
            assert!(
                !beside.any(|left| left.starts_with(&format!("{name}."))),
                "{format} {round}"
            );
        }
    }
}

#[test]
fn a_restore_that_is_killed_leaves_no_key_once_the_next_one_ran() {
    // given
    let folder = tempfile::tempdir().unwrap();
    killed::prepare(folder.path());
    let home = Home(folder.path());
    home.ok(&killed::IMPORT);
    home.ok(&["key", "new", "cem", "--role", "custodian"]);
    let shown = home.ok(&["key", "show", "cem"]);
    let recipient = shown["data"]["seal_recipient"].as_str().unwrap();
    home.ok(&["backup", "all", "--all", "--to", recipient]);
    let identity = folder.path().join("config/clover/keys/cem.age");
    let identity = identity.display().to_string();
    let words = |into: &'static str| {
        ["restore", "all", "--identity", &identity, "--into", into].map(str::to_owned)
    };
    let started = Instant::now();
    let whole = words("whole");
    home.ok(&whole.each_ref().map(String::as_str));
    let took = started.elapsed();
    // when: it is stopped at several moments
    let again = words("again");
    let again = again.each_ref().map(String::as_str);
    let (target, mut left) = (folder.path().join("work/again"), 0);
    let aside = || {
        let names = std::fs::read_dir(&target).into_iter().flatten();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".clover."))
            .collect::<Vec<_>>()
    };
    let rounds = 8;
    for round in 0..rounds {
        stopped(
            &home,
            &again,
            took.mul_f64(f64::from(round) / f64::from(rounds)),
        );
        left += aside().len();
        assert!(
            aside().len() <= 1,
            "what the last one left is gone: {:?}",
            aside()
        );
        std::fs::remove_dir_all(target.join(".clover")).ok();
    }
    assert!(left > 0, "no moment was in the middle");
    // then: doctor names what lies there, and a restore removes it
    let secret = target.join(".clover.import-0123456789abcdef");
    copy_tree(&folder.path().join("work/.clover"), &secret);
    let mut doctor = home.command(&["doctor"]);
    let said = doctor.current_dir(&target).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains(".clover.import-0123456789abcdef was left by"),
        "{said}"
    );
    home.ok(&again);
    assert_eq!(aside(), Vec::<String>::new());
    assert!(target.join(".clover/log.key").exists());
}

/// Another restore that is under way is not what a stopped one left.
#[test]
fn what_somebody_works_in_is_not_swept() {
    let folder = tempfile::tempdir().unwrap();
    let aside = folder.path().join(".clover.restore-0123456789abcdef");
    std::fs::create_dir_all(&aside).unwrap();
    let held = clover::ground::ambient::lock_folder(&aside, Duration::ZERO).unwrap();
    clover::session::stage::sweep(folder.path()).unwrap();
    assert!(aside.exists());
    drop(held);
    clover::session::stage::sweep(folder.path()).unwrap();
    assert!(!aside.exists());
}
