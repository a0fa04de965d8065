//! `clover import ledger`: an export becomes the same ledger again, or nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::Desk;
use super::copy_tree;
use super::gate;
use super::says;
use crate::support::TestLedger;
use crate::support::full;

/// Every file of a folder with its bytes, by its path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().to_owned();
                let bytes = std::fs::read(entry.path()).unwrap();
                found.insert(name.display().to_string(), bytes);
            }
        }
    }
    found
}

/// What stands in the working folder, hidden names too.
fn names(desk: &Desk, folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(desk.at.join(folder)) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A gate that was observed, looked at, decided; with a blob, several authors and many checkpoints.
#[test]
fn e_values_and_replays_are_the_same_after_export_and_import() {
    let mut desk = gate::scored();
    desk.file("plan.txt", "what was planned");
    desk.ok("blob put plan.txt");
    desk.run("gate observe m-1 --through 6");
    desk.run("gate look m-1");
    desk.run("gate observe m-1 --all");
    desk.ok("gate decide m-1");
    let shown = desk.ok("gate show m-1 --json").json()["data"].clone();
    let replayed = desk.replayed("");
    let status = desk.head();
    for format in ["jsonl", "tiles"] {
        let copy = format!("from-{format}");
        desk.ok(&format!("export {format} -o {format} --blobs"));
        let ran = desk.ok(&format!("import ledger {format} --into {copy} --json"));
        assert_eq!(ran.json()["checkpoint"], status);
        assert_eq!(ran.json()["verdict"], "imported");
        let again = |desk: &mut Desk, line: &str| {
            desk.ok(&format!("{line} --json --ledger {copy}")).json()["data"].clone()
        };
        assert_eq!(again(&mut desk, "gate show m-1"), shown);
        assert_eq!(desk.replayed(&format!("--ledger {copy}")), replayed);
        assert_eq!(again(&mut desk, "verify")["report"]["findings_total"], 0);
        // The export of the copy is the export, byte for byte.
        desk.ok(&format!(
            "export {format} -o {format}-2 --blobs --ledger {copy}"
        ));
        let second = desk.at.join(format!("{format}-2"));
        assert_eq!(files(&desk.at.join(format)), files(&second));
        // Without the log key nothing can be appended; with it the copy goes on where the log was.
        let note = [
            "record",
            "note.recorded",
            "--data",
            "{\"text\":\"on\"}",
            "--ledger",
            &copy,
        ];
        let ran = desk.words(&note);
        assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
        says(&ran, &["can be read, not written"]);
        assert!(!desk.at.join(&copy).join(".clover/log.key").exists());
    }
    let key = ".clover/log.key";
    std::fs::copy(desk.at.join(key), desk.at.join("from-tiles").join(key)).unwrap();
    let words = [
        "record",
        "note.recorded",
        "--data",
        "{\"text\":\"on\"}",
        "--key",
        "cem",
    ];
    desk.ok_words(&[&words[..], &["--ledger", "from-tiles"]].concat());
    desk.ok("verify --ledger from-tiles");
    // That was the same log: the one it was made from is now behind its pin.
    assert_eq!(desk.run("status").code, 3);
}

#[test]
fn a_ledger_of_every_kind_is_the_same_again() {
    let mut test = TestLedger::unnamed(clover::store::CreateOptions::default());
    full::every_kind(&mut test);
    let (size, root) = (test.ledger.size(), test.ledger.root());
    let from = test.path().display().to_string();
    let mut desk = Desk::new();
    desk.ok_words(&["export", "jsonl", "-o", "out", "--blobs", "--ledger", &from]);
    let ran = desk.ok("import ledger out --dry-run");
    assert!(
        ran.out.ends_with("dry run: nothing was imported\n"),
        "{}",
        ran.out
    );
    assert_eq!(names(&desk, "."), ["out"]);
    let ran = desk.ok("import ledger out --json").json();
    assert_eq!(ran["checkpoint"]["size"], size);
    assert_eq!(ran["checkpoint"]["root"], root.to_base64());
    desk.ok("verify");
    desk.ok("export jsonl -o again --blobs");
    assert_eq!(files(&desk.at.join("out")), files(&desk.at.join("again")));
    // What stands is never replaced.
    let ran = desk.run("import ledger out");
    assert_eq!(ran.code, 11);
    says(&ran, &[".clover exists already"]);
}

/// A change to the bytes of a file.
type Edit<'a> = &'a dyn Fn(Vec<u8>) -> Vec<u8>;

#[test]
fn an_export_that_does_not_verify_becomes_nothing() {
    let mut desk = gate::scored();
    desk.ok("export tiles -o tiles");
    desk.file("note.txt", "a note that is kept as a blob");
    let blob = desk.ok("blob put note.txt --json").json()["data"]["reference"].clone();
    let note = format!("{{\"blob\":{blob},\"text\":\"kept\"}}");
    desk.ok_words(&["record", "note.recorded", "--data", &note, "--key", "cem"]);
    desk.ok("export jsonl -o out --blobs");
    desk.ok("export jsonl -o bare --no-blobs");
    let name = desk
        .at
        .join("out/blobs")
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let blob_file = format!("blobs/{}", name.file_name().into_string().unwrap());
    let change = |desk: &Desk, to: &str, file: &str, edit: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let to = desk.at.join(to);
        std::fs::remove_dir_all(&to).ok();
        copy_tree(&desk.at.join("out"), &to);
        let bytes = std::fs::read(to.join(file)).unwrap();
        std::fs::write(to.join(file), edit(bytes)).unwrap();
    };
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let text = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap()
                .replacen(from, to, 1)
                .into_bytes()
        }
    };
    let last = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        let kept = text.lines().count() - 1;
        text.lines()
            .take(kept)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into_bytes()
    };
    let third = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().enumerate().filter(|(at, _)| *at != 3);
        lines
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
            .into_bytes()
    };
    let fork = |bytes: Vec<u8>| {
        // Another root under a kept size: its note is no longer signed.
        let text = String::from_utf8(bytes).unwrap();
        text.replacen("\\n3\\n", "\\n3\\nA", 1).into_bytes()
    };
    let cases: [(&str, Edit<'_>, u8, &str); 8] = [
        (
            "ledger.jsonl",
            &text("\"seq\":7}", "\"seq\":8}"),
            3,
            "first at seq 7",
        ),
        ("ledger.jsonl", &cut, 3, "FAILED"),
        ("ledger.jsonl", &last, 3, "FAILED"),
        ("checkpoint", &cut, 4, "no signed checkpoint"),
        ("checkpoints.jsonl", &last, 4, "every checkpoint kept"),
        ("checkpoints.jsonl", &third, 3, "seen"),
        ("checkpoints.jsonl", &fork, 4, "no signed checkpoint"),
        (&blob_file, &cut, 3, "FAILED"),
    ];
    let clean = names(&desk, ".");
    for (file, edit, code, says) in cases {
        change(&desk, "bad", file, edit);
        let ran = desk.run("import ledger bad --into new");
        let told = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, code, "{file} {says}\n{told}");
        assert!(told.contains(says), "{file}: {says:?} is not in\n{told}");
        assert_eq!(names(&desk, "new"), Vec::<String>::new(), "{file}");
    }
    // A blob that no event names is held to its name too.
    let other = format!("{:0>64}", "7");
    std::fs::write(desk.at.join("out/blobs").join(&other), "other").unwrap();
    let ran = desk.run("import ledger out --into new");
    assert_eq!(ran.code, 3);
    says(&ran, &[&other, "expected bytes of that digest"]);
    std::fs::remove_dir_all(desk.at.join("bad")).unwrap();
    std::fs::remove_dir_all(desk.at.join("new")).ok();
    assert_eq!(names(&desk, "."), clean);
    // Blobs that are named and not there; tiles that are not those of the entries.
    let ran = desk.run("import ledger bare --into new");
    assert_eq!(ran.code, 4);
    says(
        &ran,
        &[
            "there is no folder of them",
            "next: clover export jsonl -o DIR",
        ],
    );
    // The older export is behind the pin.
    let ran = desk.run("import ledger tiles --into new");
    assert_eq!(ran.code, 3);
    says(&ran, &["an older copy was put back"]);
    desk.state = "elsewhere";
    desk.ok("verify tiles");
    let tile = desk.at.join("tiles/tile/0");
    let first = tile.join(
        tile.read_dir()
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .file_name(),
    );
    let first = if first.is_dir() {
        first.read_dir().unwrap().next().unwrap().unwrap().path()
    } else {
        first
    };
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let ran = desk.run("import ledger tiles --into new");
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    says(&ran, &["expected the hashes of these entries"]);
    assert_eq!(names(&desk, "."), clean);
    let ran = desk.run("import ledger nowhere --into new");
    assert_eq!(ran.code, 5);
}

/// An auditor has one file. It is no folder: the way from one to the other is said, and the option that names a ledger in use is
/// not taken for the place of a new one.
#[test]
fn a_bundle_in_one_file_names_the_way_to_a_ledger() {
    let mut desk = gate::scored();
    desk.ok("export bundle -o audit.clover");
    let before = names(&desk, ".");
    let ran = desk.run("import ledger audit.clover --into new");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &[
            "is a file, expected a folder",
            "unzip",
            "clover import ledger DIR --into NEW",
        ],
    );
    let ran = desk.run("import ledger audit.clover --ledger new");
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    says(&ran, &["--into names the folder of a new one"]);
    assert_eq!(names(&desk, "."), before);
}
