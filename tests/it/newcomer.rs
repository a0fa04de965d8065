//! Adding a kind of event touches three places: its struct, its line in the registry, its reader. Everything
//! else is generated or checked; what is forgotten fails here or does not compile.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use clover::event::Kind;
use clover::projection::LEDGER_ONLY;
use clover::workflow::RULEBOOK;

use crate::support::verifiers::repository;

/// Every Rust file under `src`, without its comments and tests.
fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|of| of == "rs") {
                out.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&repository().join("src"), &mut paths);
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        (path, lines.collect::<Vec<_>>().join("\n"))
    };
    paths.into_iter().map(source).collect()
}

#[test]
fn the_text_of_a_kind_stands_in_its_registry_line_alone() {
    let registry = repository().join("src/event/registry/mod.rs");
    for kind in Kind::ALL {
        let literal = format!("\"{kind}\"");
        for (path, code) in sources() {
            let found = code.matches(&literal).count();
            if path == registry {
                // A kind with a retired version has one more line.
                assert!(found >= 1, "{kind} has no line in the registry");
            } else if !path.starts_with(repository().join("src/cli")) {
                // The command line shows kinds to people; below it they are typed.
                assert_eq!(
                    found,
                    0,
                    "{} names {kind} by its text; use Kind",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn a_struct_without_a_line_and_a_line_without_a_reader_are_noticed() {
    let code = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    // A line whose struct is missing does not compile; a struct whose line is missing is found here.
    let registry = code("src/event/registry/mod.rs");
    let (mut payloads, mut structs) = (String::new(), 0);
    let home = repository().join("src/event/payload");
    for (_, code) in sources().iter().filter(|(path, _)| path.starts_with(&home)) {
        payloads += code;
    }
    for name in payloads
        .lines()
        .filter_map(|line| line.strip_prefix("pub struct "))
    {
        let name: String = name
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        structs += 1;
        let is_payload = registry.contains(&format!("\n        {name} "));
        let is_part = [
            format!(": {name},"),
            format!("Option<{name}>"),
            format!("Vec<{name}>"),
            format!("({name}),"),
            format!("Box<{name}>"),
        ];
        assert!(
            is_payload || is_part.iter().any(|field| payloads.contains(field)),
            "{name} is the payload of no kind and part of none: give it a line in the registry"
        );
    }
    assert!(structs >= Kind::ALL.len());
    // The readers are compared with the registry by a test beside their list, and again here.
    assert!(code("src/projection/lib.rs").contains("fn every_kind_has_a_reader()"));
    for kind in Kind::ALL {
        let every = |fold: &clover::ledger::FoldEntry| fold.reads.len() == Kind::ALL.len();
        let mut folds = RULEBOOK.folds.iter().filter(|fold| !every(fold));
        let folds = folds.any(|fold| fold.reads.contains(kind));
        let rows = RULEBOOK
            .row_models
            .iter()
            .any(|model| model.reads().contains(kind));
        let read = folds || rows || LEDGER_ONLY.contains(kind);
        assert!(
            read,
            "nobody reads {kind}: add it to READS of a fold or to LEDGER_ONLY"
        );
    }
}

#[test]
fn what_is_generated_for_a_kind_is_there() {
    for kind in Kind::ALL {
        for v in 1..=kind.version() {
            for folder in ["schema/event", "fixtures/golden"] {
                let path = repository().join(format!("{folder}/{kind}.v{v}.json"));
                let there = path.exists();
                assert!(
                    there,
                    "{} is missing; run UPDATE=1 cargo test schema",
                    path.display()
                );
            }
        }
    }
}
