//! What a bundle says of itself and the log contradicts; files that no bundle has; and bundles that are older than the pin.

use std::path::Path;

use super::bundled::both;
use super::bundled::program;
use super::bundled::read;
use super::bundled::resum;
use super::bundled::two_experiments;
use super::bundled::write;
use super::copy_tree;
use crate::support::verifiers;

const NOTE: &str = "record note.recorded --key owner --data";

/// What the verdict says of a bundle that is older than the pin by one entry, where no ledger is at hand.
const OLDER: &str = "older than the pin by 1 entry: whether it is its beginning NOT CHECKED";

#[test]
fn a_copy_that_is_older_than_the_pin_is_no_rollback() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o audit.clover");
    desk.ok("export bundle -o part.clover --experiment one");
    desk.ok("export jsonl -o lines");
    let copies = ["audit.clover", "part.clover", "lines"];
    desk.ok(&format!("{NOTE} {{\"text\":\"later\"}}"));
    // The ledger at hand shows that they are its beginning.
    for copy in copies {
        let ran = desk.ok(&format!("verify {copy}"));
        assert!(
            !ran.out.contains("older than the pin by 1 entry: whether"),
            "{}",
            ran.out
        );
        assert!(
            ran.out.contains("the ledger at hand begins with it"),
            "{}",
            ran.out
        );
    }
    // Elsewhere nothing does, and the verdict says so.
    let (here, there) = (desk.at.clone(), desk.path("elsewhere"));
    copy_tree(&here, &there);
    std::fs::remove_dir_all(there.join(".clover")).unwrap();
    desk.at = there;
    for copy in copies {
        let ran = desk.ok(&format!("verify {copy}"));
        assert!(ran.out.contains(OLDER), "{}", ran.out);
    }
    let ran = desk.ok("verify audit.clover --no-pin");
    assert!(!ran.out.contains("older"), "{}", ran.out);
}

#[test]
fn a_copy_of_another_history_is_found_by_pin_or_ledger() {
    let mut desk = two_experiments();
    let (here, twin) = (desk.at.clone(), desk.path("twin"));
    copy_tree(&here, &twin);
    desk.ok(&format!("{NOTE} {{\"text\":\"here\"}}"));
    desk.at.clone_from(&twin);
    desk.state = "twins-machine";
    desk.ok(&format!("{NOTE} {{\"text\":\"there\"}}"));
    let other = desk.path("other.clover").display().to_string();
    desk.ok(&format!("export bundle -o {other}"));
    desk.ok(&format!("{NOTE} {{\"text\":\"more\"}}"));
    let longer = desk.path("longer.clover").display().to_string();
    desk.ok(&format!("export bundle -o {longer}"));
    desk.at.clone_from(&here);
    desk.state = "state";
    // As long as the pin, and longer.
    for bundle in [&other, &longer] {
        let ran = desk.run(&format!("verify {bundle}"));
        assert_eq!(ran.code, 3, "{}", ran.out);
        assert!(ran.out.contains("FAILED  forked: "), "{}", ran.out);
    }
    // Shorter: the ledger at hand has another beginning. Without it nobody looked.
    desk.ok(&format!("{NOTE} {{\"text\":\"later\"}}"));
    let ran = desk.run(&format!("verify {other}"));
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(
        ran.out.contains("FAILED  forked: 1 finding") && ran.out.contains("(root)"),
        "{}",
        ran.out
    );
    desk.at = desk.path("elsewhere");
    std::fs::create_dir_all(&desk.at).unwrap();
    let ran = desk.ok(&format!("verify {other}"));
    assert!(ran.out.contains(OLDER), "{}", ran.out);
}

/// How a bundle is made, and what is changed in it.
type Claim = (&'static str, &'static str, fn(&Path));

const CLAIMS: [Claim; 14] = [
    ("a kind that is shown", "--experiment one", |at| {
        say(
            at,
            "\"redacted\": []",
            "\"redacted\": [\n    \"note.recorded\"\n  ]",
        );
    }),
    ("a position that is shown", "--redact 3", |at| {
        say(at, "    \"3\"", "    \"3\",\n    \"4\"");
    }),
    ("a position beyond the log", "--redact 3", |at| {
        say(at, "    \"3\"", "    \"3\",\n    \"99\"");
    }),
    ("a position less", "--redact 3 --redact 4", |at| {
        say(at, "    \"3\",\n", "");
    }),
    (
        "an experiment of no entry",
        "--redact note.recorded --redact experiment.registered",
        |at| {
            say(
                at,
                "    \"note.recorded\",\n    \"experiment.registered\",\n",
                "",
            );
            say(at, "\"experiment\": null", "\"experiment\": \"ghost\"");
        },
    ),
    ("a page of no known place", "", |at| {
        write(at, "VERDICT.txt", "VERIFIED, and the best policy is ours");
    }),
    ("a page of another form", "", |at| {
        write(at, "schema/RESULTS.html", "x");
    }),
    ("a folder more", "", |at| {
        std::fs::create_dir(at.join("certificates")).unwrap();
        write(at, "certificates/README.md", "x");
    }),
    ("a report of no form", "", |at| {
        write(at, "reports/best.txt", "x");
        say(
            at,
            "\"reports\": [\n",
            "\"reports\": [\n    \"best.txt\",\n",
        );
    }),
    ("a blob that no entry names", "", |at| {
        std::fs::create_dir_all(at.join("blobs")).unwrap();
        write(at, &format!("blobs/{}", "0".repeat(64)), "x");
        say(at, "\"blobs\": 0", "\"blobs\": 1");
    }),
    ("a missing blob that no entry names", "", |at| {
        let without = format!("\"without\": [\n    \"{}\"\n  ]", "0".repeat(64));
        say(at, "\"without\": []", &without);
    }),
    ("entries without their last newline", "", |at| {
        let lines = read(at, "ledger.jsonl");
        write(at, "ledger.jsonl", lines.trim_end());
    }),
    ("earlier checkpoints are emptied", "", |at| {
        write(at, "checkpoints.jsonl", "");
    }),
    ("the last of the checkpoints is gone", "", |at| {
        let lines = read(at, "checkpoints.jsonl");
        let (rest, _) = lines.trim_end().rsplit_once('\n').unwrap();
        write(at, "checkpoints.jsonl", &format!("{rest}\n"));
    }),
];

fn say(at: &Path, from: &str, to: &str) {
    let said = read(at, "bundle.json");
    assert!(said.contains(from), "{from}: {said}");
    write(at, "bundle.json", &said.replacen(from, to, 1));
}

#[test]
fn what_the_log_contradicts_is_named_by_both_verifiers() {
    let mut desk = two_experiments();
    for (name, words, change) in CLAIMS {
        desk.ok(format!("export bundle -o claim {words}").trim_end());
        let at = desk.at.join("claim");
        change(&at);
        resum(&at);
        let (ours, theirs) = both(&mut desk, "claim", 3);
        assert!(ours.iter().all(|rule| rule == "bundle"), "{name}: {ours:?}");
        assert_eq!(ours, theirs, "{name}");
        std::fs::remove_dir_all(at).unwrap();
    }
}

/// The id of an entry withheld is the maker's word, but not that of an entry that stands elsewhere.
#[test]
fn an_event_has_one_place_in_a_part() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o cut --redact 3");
    let at = desk.at.join("cut");
    let log = desk.ok("log --json").json();
    let entries = log["data"]["entries"].as_array().unwrap();
    let shown = entries.iter().find(|of| of["seq"] == 5).unwrap();
    let id = shown["id"].as_str().unwrap();
    let lines = read(&at, "entries.jsonl");
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let leaf = lines[3].split("\"leaf\":\"").nth(1).unwrap()[..64].to_owned();
    lines[3] = format!("{{\"withheld\":{{\"id\":\"{id}\",\"leaf\":\"{leaf}\",\"seq\":3}}}}");
    write(&at, "entries.jsonl", &(lines.join("\n") + "\n"));
    resum(&at);
    let (ours, theirs) = both(&mut desk, "cut", 3);
    assert_eq!(ours, ["natural_key"]);
    assert_eq!(ours, theirs);
}

/// A leaf refutes a position, and neither a kind nor an experiment.
#[test]
fn why_entries_are_withheld_is_checked_of_positions_alone() {
    let mut desk = two_experiments();
    for (words, is_checked) in [
        ("", true),
        ("--redact 3 --redact 5", true),
        ("--redact note.recorded", false),
        ("--experiment one", false),
        ("--experiment one --redact 3", false),
    ] {
        desk.ok(format!("export bundle -o part {words}").trim_end());
        let line = desk.ok("verify part").out;
        let says = line.contains("why entries are withheld NOT CHECKED");
        assert_eq!(says, !is_checked, "{words}: {line}");
        assert!(line.contains("the maker's texts and programs"), "{line}");
        both(&mut desk, "part", 0);
        let (_, shell) = program(&desk, &["sh", "part/verify.sh"]);
        assert!(shell.starts_with("VERIFIED"), "{words}: {shell}");
        std::fs::remove_dir_all(desk.at.join("part")).unwrap();
    }
}

/// A history whose entries name several blobs each.
#[test]
fn each_missing_blob_is_named_by_both_verifiers() {
    let mut desk = two_experiments();
    let worked = verifiers::repository().join("audits/worked/erased-subject/audit.clover");
    let worked = worked.display().to_string();
    let (passed, last) = program(
        &desk,
        &["python3", "-m", "zipfile", "-e", &worked, "worked"],
    );
    assert!(passed, "{last}");
    let at = desk.at.join("worked");
    let blobs = std::fs::read_dir(at.join("blobs")).unwrap().count();
    std::fs::remove_dir_all(at.join("blobs")).unwrap();
    say(&at, &format!("\"blobs\": {blobs}"), "\"blobs\": 0");
    resum(&at);
    let (ours, theirs) = both(&mut desk, "worked", 3);
    assert!(
        ours.len() >= blobs && ours == theirs,
        "{blobs}: {ours:?} {theirs:?}"
    );
}
