//! The prompts of a run as people read them: one, what two differ by, how each came about, and the run as a git repository.

use std::process::Command;

use super::sgd::desk;

/// Given a run of three steps; when it is exported; then stock git reads a commit for each prompt, and the ids are the same again.
#[test]
fn git_reads_a_run() {
    let mut desk = desk(60, 3);
    desk.ok("sgd open one --judge sim --simulated --prompt judge.md --steps 3 --repeats 1");
    desk.ok("sgd run one");
    let shown = desk.ok("sgd export one --git one.git --json").json();
    let again = desk.ok("sgd export one --git two.git --json").json();
    assert_eq!(shown["data"]["head"], again["data"]["head"]);
    desk.refused(
        &["sgd", "export", "one", "--git", "one.git"],
        2,
        &["is there"],
    );
    let git = |words: &[&str]| {
        let ran = Command::new("git")
            .current_dir(&desk.at)
            .args(words)
            .output();
        ran.ok()
    };
    // Where no git of that age is at hand, ids are held in the unit test.
    let probed = git(&["init", "--quiet", "--object-format=sha256", "probe"]);
    if probed.is_some_and(|ran| ran.status.success()) {
        let read = |words: &[&str]| {
            let ran = git(words).unwrap();
            assert!(ran.status.success(), "{words:?}: {ran:?}");
            String::from_utf8(ran.stdout).unwrap()
        };
        read(&["-C", "one.git", "fsck", "--strict", "--full"]);
        let text = read(&["-C", "one.git", "log", "-p", "--format=%H%n%B"]);
        assert!(
            text.starts_with(shown["data"]["head"].as_str().unwrap()),
            "{text}"
        );
        for part in [
            "one: prompt 0",
            "one: step 0 edits",
            "loss of val",
            "+++ b/sections/",
            "tau-b",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    } else {
        println!("skipped: no git that reads the SHA-256 object format");
    }
    let log = desk.ok("sgd prompt log one").out;
    assert!(
        log.contains("prompt 0") && log.contains("step 0 edits"),
        "{log}"
    );
    let diff = desk.ok("sgd prompt diff one --to 3").out;
    assert!(diff.contains("+++ b/sections/bias.md"), "{diff}");
    desk.refused(
        &["sgd", "prompt", "show", "one", "--place", "9"],
        5,
        &["no prompt at place 9"],
    );
    let checked = desk.ok("sgd prompt check judge.md").out;
    assert!(
        checked.contains("frozen") && checked.contains("open"),
        "{checked}"
    );
}
