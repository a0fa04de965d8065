//! `clover export bundle`: what an auditor takes away, read by three programs; and what a maker of bundles could do to it.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::Desk;
use super::release;

/// A program that is none of ours, with its last line and whether it passed.
pub(super) fn program(desk: &Desk, words: &[&str]) -> (bool, String) {
    let ran = Command::new(words[0])
        .args(&words[1..])
        .current_dir(&desk.at)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    let last = text.lines().last().unwrap_or(&err).to_owned();
    (ran.status.success(), last)
}

fn verifier() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("audits/verify");
    path.display().to_string()
}

/// Verifies by `clover`, by the independent verifier, and by the program in an archive or folder; answers with the root.
fn holds(desk: &mut Desk, bundle: &str) -> String {
    let ran = desk.ok(&format!("verify {bundle} --json"));
    let said = ran.json();
    let root = said["checkpoint"]["root"].as_str().unwrap().to_owned();
    let inside = if desk.at.join(bundle).is_dir() {
        format!("{bundle}/verify.py")
    } else {
        bundle.to_owned()
    };
    for words in [
        &["python3", &inside] as &[&str],
        &["python3", &verifier(), bundle],
    ] {
        let (passed, last) = program(desk, words);
        assert!(passed && last.starts_with("VERIFIED"), "{words:?}: {last}");
        assert!(last.contains(&root), "{words:?}: {last}");
    }
    root
}

/// A small ledger of two experiments, with a blob and a budget.
pub(super) fn two_experiments() -> Desk {
    let mut desk = Desk::with_ledger();
    for id in ["one", "two"] {
        desk.ok_words(&[
            "experiment",
            "register",
            id,
            "--title",
            id,
            "--purpose",
            "testing",
        ]);
        let note = format!("{{\"text\":\"of {id}\"}}");
        desk.ok_words(&[
            "record",
            "note.recorded",
            "--experiment",
            id,
            "--data",
            &note,
        ]);
    }
    desk.file("text", "a text that a note names");
    desk.ok("blob put text");
    desk
}

#[test]
fn a_bundle_is_checked_as_one_file_and_as_a_folder() {
    let (mut desk, _) = release::accepted();
    desk.file("text", "a text that a note names");
    let blob = desk.ok("blob put text").out;
    let note = format!("{{\"blob\":{},\"text\":\"a note\"}}", blob.trim());
    desk.ok_words(&[
        "record",
        "note.recorded",
        "--experiment",
        "exp-1",
        "--data",
        &note,
    ]);
    desk.ok("export bundle -o audit.clover");
    desk.ok("export bundle -o audit");
    let root = holds(&mut desk, "audit.clover");
    assert_eq!(holds(&mut desk, "audit"), root);
    let line = desk.ok("verify audit.clover").out;
    assert!(!line.contains("blobs NOT CHECKED"), "{line}");
    for name in [
        "README.md",
        "bundle.json",
        "checkpoint",
        "keys/log.pem",
        "ledger.jsonl",
        "schema/ENVELOPE.md",
        "verify/__main__.py",
    ] {
        assert!(desk.at.join("audit").join(name).is_file(), "{name}");
    }
    let report = desk.run("iterate list --json").json();
    let id = report["data"]["iterations"][0]["iteration"].as_str();
    let id = id.unwrap_or_else(|| panic!("{report:#}"));
    // The ledger can be made of it again.
    desk.ok("import ledger audit --into again");
    // Blobs that entries of a part name are read too, by either verifier.
    desk.ok("export bundle -o part --experiment exp-1");
    holds(&mut desk, "part");
    let blobs = std::fs::read_dir(desk.at.join("part/blobs")).unwrap();
    append(&blobs.map(|file| file.unwrap().path()).next().unwrap());
    resum(&desk.at.join("part"));
    let (ours, _) = both(&mut desk, "part", 3);
    assert!(ours.iter().all(|rule| rule == "blob"), "{ours:?}");
    // Nothing was published: there are pages alone. What was published goes with the bundle as it was signed, and any other
    // bytes under its name are found by either verifier.
    let published = format!("reports/published-{id}.json");
    assert!(!desk.at.join("audit").join(&published).exists());
    let own = desk.ok(&format!("report iteration {id} --format json")).out;
    desk.ok(&format!("report iteration {id} --publish"));
    desk.ok("export bundle -o signed");
    holds(&mut desk, "signed");
    let path = desk.at.join("signed").join(&published);
    let theirs = std::fs::read_to_string(&path).unwrap();
    assert_eq!(own.trim_end(), theirs.trim_end());
    let other = desk.at.join("signed/reports/published-other.json");
    std::fs::rename(&path, &other).unwrap();
    let contents = read(&desk.at.join("signed"), "bundle.json");
    let renamed = contents.replace(&format!("published-{id}.json"), "published-other.json");
    write(&desk.at.join("signed"), "bundle.json", &renamed);
    resum(&desk.at.join("signed"));
    let (ours, _) = both(&mut desk, "signed", 3);
    assert_eq!(ours, ["bundle"], "{ours:?}");
    std::fs::rename(&other, &path).unwrap();
    write(&desk.at.join("signed"), "bundle.json", &contents);
    std::fs::write(&path, theirs.replacen("accepted", "rejected", 1)).unwrap();
    resum(&desk.at.join("signed"));
    let (ours, _) = both(&mut desk, "signed", 3);
    assert_eq!(ours, ["bundle"], "{ours:?}");
}

/// With neither Python nor Clover: `sha256sum`, `openssl` and a shell.
#[test]
fn a_shell_checks_tree_checkpoint_and_signatures() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o whole");
    desk.ok("export bundle -o part --experiment one");
    for (folder, words) in [("whole", "VERIFIED  "), ("part", "VERIFIED  ")] {
        let root = holds(&mut desk, folder);
        let (passed, last) = program(&desk, &["sh", &format!("{folder}/verify.sh")]);
        assert!(passed && last.starts_with(words), "{last}");
        assert!(last.contains(&root), "{last}");
    }
    // One byte of a signature, with the list of digests made anew.
    let path = desk.at.join("whole/ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.rfind("\"sig\":\"").unwrap() + 7;
    let other = if &text[at..=at] == "A" { "B" } else { "A" };
    std::fs::write(&path, format!("{}{other}{}", &text[..at], &text[at + 1..])).unwrap();
    resum(&desk.at.join("whole"));
    let (passed, last) = program(&desk, &["sh", "whole/verify.sh"]);
    assert!(!passed && last.starts_with("FAILED"), "{last}");
    // What it names where a maker changes what it can see.
    for (name, change, words) in SHELL_CHANGES {
        desk.ok("export bundle -o other --experiment one");
        let at = desk.at.join("other");
        change(&at);
        let (passed, last) = program(&desk, &["sh", "other/verify.sh"]);
        assert!(
            !passed && last.starts_with("FAILED") && last.contains(words),
            "{name}: {last}"
        );
        std::fs::remove_dir_all(at).unwrap();
    }
}

/// Changes of a bundle that a shell sees, and what it says of them.
const SHELL_CHANGES: [Change; 11] = [
    (
        "a file of no known place",
        |at| {
            write(at, "VERDICT.txt", "VERIFIED");
            resum(at);
        },
        "no place",
    ),
    (
        "a line behind the signatures",
        |at| {
            append(&at.join("checkpoint"));
            resum(at);
        },
        "other lines than its text",
    ),
    (
        "a text before a key",
        |at| {
            let key = read(at, "keys/log.pem");
            write(at, "keys/log.pem", &format!("owner: Somebody\n{key}"));
            resum(at);
        },
        "other bytes than those of its key",
    ),
    (
        "a field twice",
        |at| {
            let said = read(at, "bundle.json").replacen("{\n", "{\n  \"withheld\": 5,\n", 1);
            write(at, "bundle.json", &said);
            resum(at);
        },
        "other fields",
    ),
    (
        "no newline at the end",
        |at| {
            let lines = read(at, "entries.jsonl");
            write(at, "entries.jsonl", lines.trim_end());
            resum(at);
        },
        "no newline",
    ),
    (
        "a file is added",
        |at| write(at, "more", "x"),
        "the files are not",
    ),
    (
        "a folder is a link",
        |at| std::os::unix::fs::symlink("..", at.join("more")).unwrap(),
        "a link, a pipe or a device",
    ),
    (
        "both files of lines",
        |at| {
            std::fs::copy(at.join("entries.jsonl"), at.join("ledger.jsonl")).unwrap();
            resum(at);
        },
        "both",
    ),
    (
        "the key of the log is gone",
        |at| {
            std::fs::remove_file(at.join("keys/log.pem")).unwrap();
            resum(at);
        },
        "not signed by keys/log.pem",
    ),
    (
        "a key that no entry adds",
        |at| {
            let script = "openssl genpkey -algorithm ed25519 2>/dev/null | openssl pkey -pubout -out k.pem && mv k.pem keys/$(openssl pkey -pubin -in k.pem -outform DER | sha256sum | cut -c 1-64).pem";
            let ran = Command::new("sh")
                .args(["-c", script])
                .current_dir(at)
                .status();
            assert!(ran.unwrap().success());
            resum(at);
        },
        "keys/ has other keys",
    ),
    (
        "an author is another than the key",
        |at| {
            let script = "import base64,json\nout=[]\nfor line in open('entries.jsonl','rb').read().splitlines():\n    said=json.loads(line)\n    if said.get('seq')==1:\n        line=line.replace(said['envelope']['signatures'][0]['keyid'].encode(),b'0'*64)\n    out.append(line)\nopen('entries.jsonl','wb').write(b'\\n'.join(out)+b'\\n')\n";
            let ran = Command::new("python3")
                .args(["-c", script])
                .current_dir(at)
                .status();
            assert!(ran.unwrap().success());
            resum(at);
        },
        "wrote it",
    ),
];

#[test]
fn the_same_ledger_gives_the_same_bytes() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o one.clover");
    desk.ok("export bundle -o two.clover");
    let read = |name: &str| std::fs::read(desk.at.join(name)).unwrap();
    assert!(read("one.clover") == read("two.clover"));
}

#[test]
fn a_part_shows_an_experiment_and_proves_the_place_of_each_entry() {
    let mut desk = two_experiments();
    let root = desk.head()["root"].as_str().unwrap().to_owned();
    desk.ok("export bundle -o part.clover --experiment one");
    assert_eq!(holds(&mut desk, "part.clover"), root);
    let line = desk.ok("verify part.clover --recompute").out;
    assert!(line.contains("events, 3 withheld"), "{line}");
    assert!(line.contains("recompute NOT CHECKED"), "{line}");
    assert!(
        line.contains("whether an entry withheld adds or ends a key NOT CHECKED"),
        "{line}"
    );
    let line = desk.ok("verify part.clover --tree-only").out;
    assert!(
        line.contains(&root) && line.contains("signatures NOT CHECKED"),
        "{line}"
    );
    both(&mut desk, "part.clover", 0);
    assert!(
        line.contains("rules that take the whole history NOT CHECKED"),
        "{line}"
    );
    desk.ok("export bundle -o part --experiment one");
    let lines = std::fs::read_to_string(desk.at.join("part/entries.jsonl")).unwrap();
    let withheld = lines
        .lines()
        .filter(|line| line.starts_with("{\"withheld\""));
    // Experiment `two`, its note, and the experiment that the desk began with.
    assert_eq!(withheld.clone().count(), 3);
    // An id could be guessed back to its body: none is shown that no entry names.
    let named = withheld.filter(|line| line.contains("\"id\""));
    assert_eq!(named.count(), 0);
    assert!(!desk.at.join("part/ledger.jsonl").exists());
    assert!(desk.at.join("part/reports").exists());
    desk.ok("export bundle -o notes --redact note.recorded");
    assert_eq!(holds(&mut desk, "notes"), root);
    // Reports and blobs quote entries: none may tell what is withheld.
    for folder in ["notes/reports", "notes/blobs"] {
        assert!(!desk.at.join(folder).exists(), "{folder}");
    }
    desk.ok("export bundle -o bare.zip --redact blobs --redact 3");
    assert_eq!(holds(&mut desk, "bare.zip"), root);
}

/// The list of digests, as an honest maker would write it.
pub(super) fn resum(folder: &Path) {
    let script = "import hashlib,os,sys\nout=[]\nfor d,_,fs in os.walk('.'):\n    for f in fs:\n        p=os.path.relpath(os.path.join(d,f),'.')\n        if p!='SHA256SUMS': out.append(hashlib.sha256(open(p,'rb').read()).hexdigest()+'  '+p)\nopen('SHA256SUMS','w').write('\\n'.join(sorted(out,key=lambda l:l[66:]))+'\\n')\n";
    let ran = Command::new("python3")
        .args(["-c", script])
        .current_dir(folder)
        .status();
    assert!(ran.unwrap().success());
}

/// Changes a bundle, and says which rule both verifiers name first.
pub(super) type Change = (&'static str, fn(&Path), &'static str);

const CHANGES: [Change; 18] = [
    (
        "a page is a link to itself elsewhere",
        |at| {
            std::fs::rename(at.join("README.md"), at.join("../page")).unwrap();
            std::os::unix::fs::symlink("../page", at.join("README.md")).unwrap();
        },
        "bundle",
    ),
    (
        "a folder is a link",
        |at| std::os::unix::fs::symlink("..", at.join("more")).unwrap(),
        "bundle",
    ),
    (
        "a pipe waits for its other end",
        |at| {
            let made = Command::new("mkfifo").arg(at.join("pipe")).status();
            assert!(made.unwrap().success());
        },
        "bundle",
    ),
    (
        "the log key is another",
        |at| {
            let other = read(at, "keys/log.pem").replace("MCow", "MCox");
            write(at, "keys/log.pem", &other);
            resum(at);
        },
        "bundle",
    ),
    (
        "a key that no entry adds",
        |at| {
            std::fs::copy(at.join("keys/log.pem"), at.join("keys/boss.pem")).unwrap();
            resum(at);
        },
        "bundle",
    ),
    (
        "an earlier checkpoint is of another root",
        |at| {
            let lines = read(at, "checkpoints.jsonl");
            let (first, rest) = lines.split_once('\n').unwrap();
            let root = first.split("\\n").nth(2).unwrap();
            let other = format!(
                "{}{}",
                if root.starts_with('A') { "B" } else { "A" },
                &root[1..]
            );
            let lines = format!("{}\n{rest}", first.replace(root, &other));
            write(at, "checkpoints.jsonl", &lines);
            resum(at);
        },
        "bundle",
    ),
    (
        "no more is withheld than the maker says",
        |at| {
            let said = read(at, "bundle.json").replace("\"withheld\": 3", "\"withheld\": 0");
            write(at, "bundle.json", &said);
            resum(at);
        },
        "bundle",
    ),
    (
        "what is withheld is spelled otherwise",
        |at| {
            let lines =
                read(at, "entries.jsonl").replacen("{\"withheld\":{", "{\"withheld\": {", 1);
            write(at, "entries.jsonl", &lines);
            resum(at);
        },
        "line_format",
    ),
    (
        "a key under the id of another",
        |at| {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cli/forged_part.py");
            let desk = at.parent().unwrap();
            let ran = Command::new("python3")
                .args([Path::new(script), at, &desk.join(".clover/log.key")])
                .current_dir(desk)
                .status();
            assert!(ran.unwrap().success());
            let contents = read(at, "bundle.json").replace("\"withheld\": 3", "\"withheld\": 1");
            write(at, "bundle.json", &contents);
            resum(at);
        },
        "possession",
    ),
    (
        "a page is edited",
        |at| append(&at.join("README.md")),
        "bundle",
    ),
    (
        "a file is added",
        |at| std::fs::write(at.join("reports.html"), "good").unwrap(),
        "bundle",
    ),
    (
        "a file is taken away",
        |at| std::fs::remove_file(at.join("keys/log.pem")).unwrap(),
        "bundle",
    ),
    (
        "an entry is withheld under another leaf",
        |at| {
            edit(at, "\"leaf\":\"", 8);
            resum(at);
        },
        "root",
    ),
    (
        "an entry withheld has another position",
        |at| {
            let lines = read(at, "entries.jsonl");
            let line = lines
                .lines()
                .find(|line| line.starts_with("{\"withheld\""))
                .unwrap();
            let other = line.replace("\"seq\":", "\"seq\":9");
            write(at, "entries.jsonl", &lines.replace(line, &other));
            resum(at);
        },
        "seq",
    ),
    (
        "a signature is another",
        |at| {
            edit(at, "\"sig\":\"", 7);
            resum(at);
        },
        "signature",
    ),
    (
        "a withheld line is left out",
        |at| {
            let lines = read(at, "entries.jsonl");
            let kept = lines
                .lines()
                .filter(|line| !line.starts_with("{\"withheld\""));
            let kept: Vec<&str> = kept.collect();
            write(at, "entries.jsonl", &(kept.join("\n") + "\n"));
            resum(at);
        },
        "seq",
    ),
    (
        "the key of an author is withheld",
        |at| {
            let script = "import base64,hashlib,json\nout=[]\nfor line in open('entries.jsonl','rb').read().splitlines():\n    said=json.loads(line)\n    if 'envelope' in said:\n        body=base64.b64decode(said['envelope']['payload'])\n        if json.loads(body)['kind']=='ledger.created':\n            line=json.dumps({'withheld':{'id':hashlib.sha256(body).hexdigest(),'leaf':hashlib.sha256(b'\\0'+line).hexdigest(),'seq':said['seq']}},separators=(',',':')).encode()\n    out.append(line)\nopen('entries.jsonl','wb').write(b'\\n'.join(out)+b'\\n')\n";
            let ran = Command::new("python3")
                .args(["-c", script])
                .current_dir(at)
                .status();
            assert!(ran.unwrap().success());
            resum(at);
        },
        "key",
    ),
    (
        "the checkpoint is of another root",
        |at| {
            let note = read(at, "checkpoint");
            let root = note.lines().nth(2).unwrap().to_owned();
            let other = format!(
                "{}{}",
                if root.starts_with('A') { "B" } else { "A" },
                &root[1..]
            );
            write(at, "checkpoint", &note.replace(&root, &other));
            resum(at);
        },
        "root",
    ),
];

pub(super) fn read(at: &Path, name: &str) -> String {
    std::fs::read_to_string(at.join(name)).unwrap()
}

pub(super) fn write(at: &Path, name: &str, text: &str) {
    std::fs::write(at.join(name), text).unwrap();
}

fn append(path: &PathBuf) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text + "and more\n").unwrap();
}

/// Changes the character that follows the last place of a text.
fn edit(at: &Path, before: &str, len: usize) {
    let lines = read(at, "entries.jsonl");
    let place = lines.rfind(before).unwrap() + len;
    let other = if &lines[place..=place] == "a" {
        "b"
    } else {
        "a"
    };
    let changed = format!("{}{other}{}", &lines[..place], &lines[place + 1..]);
    write(at, "entries.jsonl", &changed);
}

#[test]
fn what_a_maker_of_bundles_changes_is_named_by_both_verifiers() {
    for (name, change, rule) in CHANGES {
        let mut desk = two_experiments();
        desk.ok("export bundle -o part --experiment one");
        change(&desk.at.join("part"));
        let (ours, theirs) = both(&mut desk, "part", 3);
        assert!(ours.iter().any(|found| found == rule), "{name}: {ours:?}");
        assert!(
            theirs.iter().any(|found| found == rule),
            "{name}: {theirs:?}"
        );
    }
}

/// Rules that each of the two verifiers names. They agree on the code, on the first finding, and on what was not checked.
pub(super) fn both(desk: &mut Desk, bundle: &str, code: i32) -> (Vec<String>, Vec<String>) {
    let ran = desk.run(&format!("verify {bundle} --json --no-pin"));
    assert_eq!(i32::from(ran.code), code, "{}{}", ran.out, ran.err);
    let (passed, text) = program(desk, &["python3", &verifier(), bundle, "--json"]);
    assert_eq!(passed, code == 0, "{text}");
    let ours = ran.json()["data"]["report"].clone();
    let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rules = |report: &serde_json::Value| -> Vec<String> {
        let all = report["findings"].as_array().unwrap();
        all.iter()
            .map(|one| one["rule"].as_str().unwrap().to_owned())
            .collect()
    };
    let (own, other) = (rules(&ours), rules(&theirs));
    assert_eq!(ours["first"], theirs["first"], "{own:?} {other:?}");
    let unchecked = |report: &serde_json::Value| -> BTreeSet<String> {
        let all = report["not_checked"].as_array().unwrap();
        all.iter()
            .map(|what| what.as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(unchecked(&ours), unchecked(&theirs));
    (own, other)
}

/// Archives that lie about what they hold: a file of a name twice, one that swells, one that leads out of the folder.
#[test]
fn archives_that_lie_are_refused_and_write_nothing() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o good.clover");
    let script = concat!(
        "import shutil,warnings,zipfile\nwarnings.simplefilter('ignore')\n",
        "for name in ('twin','swell','out','note'): shutil.copy('good.clover',name+'.clover')\n",
        "with zipfile.ZipFile('twin.clover','a') as z: z.writestr('checkpoint','another')\n",
        "with zipfile.ZipFile('swell.clover','a',zipfile.ZIP_DEFLATED) as z: z.writestr('blobs/'+'0'*64, b'\\0'*(64<<20))\n",
        "with zipfile.ZipFile('out.clover','a') as z: z.writestr('../../escaped','here')\n",
        "with zipfile.ZipFile('note.clover','a') as z: z.comment=b'another archive'\n",
        "good=open('good.clover','rb').read()\n",
        "def put(name,data): open(name+'.clover','wb').write(data)\n",
        "put('short',good[:-30]); put('before',good[:4]+b'#!/bin/sh'+good[4:]); put('after',good+b'more'); put('two',good+good)\n",
        "at=good.rindex(b'PK\\x05\\x06'); put('gap',good[:at]+b'gap'+good[at:])\n",
        "far=b'PK\\x06\\x06'+(44).to_bytes(8,'little')+bytes(44)+b'PK\\x06\\x07'+bytes(4)+at.to_bytes(8,'little')+b'\\1\\0\\0\\0'\n",
        "put('large',good[:at]+far+good[at:])\n",
        "put('name',good.replace(b'README.md',b'README.MD',1)); put('flag',good[:6]+b'\\1'+good[7:])\n",
    );
    let (passed, last) = program(&desk, &["python3", "-c", script]);
    assert!(passed, "{last}");
    let names = [
        "twin", "swell", "out", "note", "short", "before", "after", "two", "gap", "large", "name",
        "flag",
    ];
    for name in names {
        let ran = desk.run(&format!("verify {name}.clover"));
        assert_eq!(ran.code, 4, "{name}: {}{}", ran.out, ran.err);
        let file = format!("{name}.clover");
        let ran = Command::new("python3")
            .args([&verifier(), &file])
            .current_dir(&desk.at)
            .output();
        assert_eq!(ran.unwrap().status.code(), Some(4), "{name}");
    }
    assert!(!desk.at.join("../../escaped").exists());
}

#[test]
fn what_cannot_be_bundled_is_refused_in_words() {
    let mut desk = two_experiments();
    desk.ok("export bundle -o taken.clover");
    std::fs::create_dir(desk.at.join("empty.clover")).unwrap();
    for (line, code, part) in [
        ("export bundle -o -", 2, "not to standard output"),
        ("export bundle -o taken.clover", 2, "exists already"),
        (
            "export bundle -o a.clover --redact ledger.created",
            2,
            "cannot be withheld",
        ),
        ("export bundle -o empty.clover", 2, "exists already"),
        (
            "export bundle -o a.clover --redact key.retired",
            2,
            "cannot be withheld",
        ),
        (
            "export bundle -o a.clover --redact 0",
            2,
            "cannot be withheld",
        ),
        (
            "export bundle -o a.clover --redact nothing",
            2,
            "expected a kind of event",
        ),
        ("export bundle -o a.clover --redact 99", 5, "no entry 99"),
        (
            "export bundle -o a.clover --experiment other",
            5,
            "no such experiment",
        ),
        (
            "export csv -o a --redact 3",
            2,
            "--redact does not go with csv",
        ),
        ("verify taken.clover --blobs x", 2, "it carries its own"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        desk.refused(&words, code, &[part]);
        assert!(!desk.at.join("a.clover").exists(), "{line}");
    }
}
