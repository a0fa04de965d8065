//! Every command that a refusal or a view names can be pasted: its verb is there, and so are its options.
//!
//! Commands stand as literals beside what they answer; this reads them where they stand.

#![expect(
    clippy::disallowed_methods,
    reason = "a test reads the sources themselves"
)]

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use clap::error::ErrorKind;

use crate::cli::parse;

/// Folders whose literals a person reads.
const READ: [&str; 6] = [
    "src/cli",
    "src/ledger/rule_names.rs",
    "src/projection",
    "src/session",
    "src/view",
    "src/workflow",
];

/// Literals that are no command to type, with the reason.
const BESIDE: [(&str, &str); 5] = [
    (
        "clover deploy recalibrate",
        "the rule's word; the verb's arguments are added",
    ),
    (
        "clover experiment split {experiment} --seed 1 {apart}",
        "options stand for {apart}",
    ),
    ("clover key new", "the begin of a command"),
    (
        "clover record budget.charged --data '{",
        "a part of a command",
    ),
    ("clover compare [OPTIONS]", "how a verb is used"),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    if folder.is_file() {
        into.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

/// String literals of a source, up to its tests.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let mut found = Vec::new();
    for line in source.lines() {
        let line = line.trim_start();
        // Comments and attributes name verbs in words.
        if line.starts_with("//") || line.starts_with("#[") || line.starts_with("override_usage") {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once('"') {
            let mut text = String::new();
            let mut chars = after.char_indices();
            let mut end = after.len();
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => text.extend(chars.next().map(|(_, c)| c)),
                    _ => text.push(c),
                }
            }
            found.push(text);
            rest = &after[end..];
        }
    }
    found
}

/// The words of a command as a shell reads them; a place in braces is a word, and options where it follows one.
fn words(command: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quoted, mut deep) = (Vec::new(), None::<String>, false, 0);
    for c in command.chars() {
        match c {
            '{' if !quoted => deep += 1,
            '}' if deep > 0 => {
                deep -= 1;
                word.get_or_insert_with(|| "1".to_owned());
            }
            _ if deep > 0 => {}
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

/// Why a command cannot be typed; what it takes in place of a name is the reader's to say.
fn fault(command: &str) -> Option<String> {
    let error = parse(&words(command)).err()?;
    let is_wrong = matches!(
        error.kind(),
        ErrorKind::ArgumentConflict
            | ErrorKind::InvalidSubcommand
            | ErrorKind::MissingRequiredArgument
            | ErrorKind::TooManyValues
            | ErrorKind::UnknownArgument
            | ErrorKind::WrongNumberOfValues
    );
    // A verb that stands in braces is known where it is put in.
    let is_open = error.kind() == ErrorKind::InvalidSubcommand && command.contains('{');
    (is_wrong && !is_open).then(|| error.to_string())
}

#[test]
fn every_command_that_is_named_can_be_pasted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut count, mut faults) = (Vec::new(), 0, Vec::new());
    for folder in READ {
        sources(&root.join(folder), &mut files);
    }
    // Wrong commands stand here on purpose.
    files.retain(|path| !path.ends_with("pasted.rs"));
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        for literal in literals(&text) {
            let is_beside = BESIDE.iter().any(|(of, _)| {
                literal == *of || of.ends_with(['{', ']']) && literal.starts_with(of)
            });
            if !literal.starts_with("clover ") || is_beside {
                continue;
            }
            let place = path.strip_prefix(root).unwrap().display().to_string();
            // Of several commands the first is typed; what follows in words is read.
            let first = literal.split([';', ',', '\n']).next().unwrap();
            let first = first.split(" && ").next().unwrap();
            count += 1;
            if first.contains('…') {
                faults.push(format!("{place}: {literal}: an ellipsis cannot be typed"));
            }
            if let Some(fault) = fault(first) {
                let fault = fault.lines().next().unwrap_or_default().to_owned();
                faults.push(format!("{place}: {literal}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 300, "{count}");
}

#[test]
fn a_verb_or_an_option_that_is_not_there_is_found() {
    for wrong in [
        "clover iterat show ID",
        "clover iterate show",
        "clover estimate --no-such-option",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
    assert_eq!(fault("clover iterate show {id}"), None);
}
