//! Floors, lengths, words, and what a lint cannot say.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files under a folder with this ending, sorted.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A path under the root, as text.
fn name(path: &Path) -> String {
    let short = path.strip_prefix(root()).unwrap();
    short.to_str().unwrap().to_owned()
}

/// A source file with its text.
fn sources(folder: &str) -> Vec<(String, String)> {
    files(&root().join(folder), ".rs")
        .into_iter()
        .map(|path| (name(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The lines before the tests at a file's foot.
fn untested(text: &str) -> Vec<&str> {
    let lines: Vec<_> = text.lines().collect();
    let tests = |at: &usize| {
        lines[*at].starts_with("#[cfg(test)]")
            && lines
                .get(at + 1)
                .is_some_and(|next| next.starts_with("mod tests"))
    };
    let end = (0..lines.len()).find(tests).unwrap_or(lines.len());
    lines[..end].to_vec()
}

/// The code of a line, without a comment at its end.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap()
}

/// What each module may name besides itself, by floors. A projection encodes its snapshots, so it
/// names `ground` too.
const FLOORS: &[(&str, &[&str])] = &[
    ("num", &[]),
    ("ground", &["num"]),
    ("stats", &["num"]),
    ("prompt", &["ground", "num"]),
    ("rubric", &["ground", "num"]),
    ("attack", &["ground", "num"]),
    ("flow", &["ground", "num"]),
    ("event", &["ground", "num"]),
    ("store", &["event", "ground"]),
    ("ledger", &["event", "ground", "num", "store"]),
    ("projection", &["event", "ground", "ledger", "num"]),
    (
        "workflow",
        &[
            "attack",
            "event",
            "flow",
            "ground",
            "ledger",
            "num",
            "projection",
            "prompt",
            "rubric",
            "stats",
        ],
    ),
    ("qualify", &["event", "ground", "num", "stats", "workflow"]),
    (
        "session",
        &[
            "attack",
            "event",
            "flow",
            "ground",
            "ledger",
            "num",
            "projection",
            "prompt",
            "qualify",
            "rubric",
            "stats",
            "store",
            "workflow",
        ],
    ),
    (
        "view",
        &[
            "attack",
            "event",
            "flow",
            "ground",
            "ledger",
            "num",
            "projection",
            "prompt",
            "qualify",
            "report",
            "rubric",
            "session",
            "stats",
            "store",
            "workflow",
        ],
    ),
    ("report", SHOW),
    ("export", SHOW),
    (
        "model",
        &["event", "ground", "ledger", "num", "projection", "workflow"],
    ),
    ("cli", ALL),
    ("server", ALL),
];
const SHOW: &[&str] = &["event", "ground", "ledger", "num", "projection"];
const ALL: &[&str] = &[
    "attack",
    "event",
    "export",
    "flow",
    "ground",
    "ledger",
    "model",
    "num",
    "projection",
    "prompt",
    "qualify",
    "report",
    "rubric",
    "session",
    "stats",
    "store",
    "view",
    "workflow",
];

/// Floors that are no crate of their own yet: modules of the package at the root, which this test holds.
const AT_ROOT: &[&str] = &["cli", "view"];

/// Folders of `src` that are members of the workspace: all floors but those.
fn members() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("src")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.is_dir());
    let names = folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<_> = names
        .filter(|name| !AT_ROOT.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

#[test]
fn members_are_tested_and_name_only_members_below() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut wrong = Vec::new();
    let members = members();
    let list = members.iter().map(|name| format!(", \"src/{name}\""));
    let list = format!("members = [\".\"{}]", list.collect::<String>());
    assert_eq!(
        manifest.matches(&list).count(),
        2,
        "members and default-members"
    );
    for member in &members {
        let path = root().join("src").join(member).join("Cargo.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, below) = FLOORS.iter().find(|(name, _)| name == member).unwrap();
        for line in text.lines().filter(|line| line.starts_with("clover-")) {
            let other = line["clover-".len()..].split(['.', ' ']).next().unwrap();
            // The facade at the root has the name clover-ledger.
            let other = other.strip_suffix("-core").unwrap_or(other);
            if !below.contains(&other) {
                wrong.push(format!("{member} names {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Modules that a line names through `crate::`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("crate::").filter_map(|(at, path)| {
        let whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &line[at + path.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_lowercase() && c != '_')
            .unwrap_or(rest.len());
        (whole && end > 0).then_some(&rest[..end])
    })
}

#[test]
fn modules_name_only_floors_below() {
    let mut wrong = Vec::new();
    for (file, text) in sources("src") {
        let module = file["src/".len()..].split(['/', '.']).next().unwrap();
        for (at, line) in text.lines().enumerate() {
            if line.contains("use super::super::super") {
                wrong.push(format!("{file}:{}: a path that climbs", at + 1));
            }
        }
        // The manifests of members name what they may, and the compiler holds it.
        if !AT_ROOT.contains(&module) {
            continue;
        }
        let Some((_, below)) = FLOORS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{file}: {module} is on no floor"));
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            for other in named(code(line)) {
                // The command line starts the server.
                let starts = (module, other) == ("cli", "server");
                if other != module && !below.contains(&other) && !starts {
                    wrong.push(format!("{file}:{}: {module} names {other}", at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the statistics may not name outside their tests, besides the floors above.
const OFF_THE_ISLAND: &[&str] = &[
    "serde",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::time",
    "jiff",
    "log::",
    "tracing",
    "println!",
    "eprintln!",
    "super::super",
];

#[test]
fn statistics_are_an_island() {
    let mut wrong = Vec::new();
    for (file, text) in sources("src/stats") {
        for (at, line) in untested(&text).into_iter().enumerate() {
            let line = code(line);
            for word in OFF_THE_ISLAND {
                if line.contains(word) {
                    wrong.push(format!("{file}:{}: {word}", at + 1));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "numbers in, numbers out, no clock, file or log: {wrong:#?}"
    );
}

/// Long because they are flat.
const TABLES: &[&str] = &["src/event/registry/mod.rs"];
/// Lines of a file, tests at its foot not counted.
const LINES_MAX: usize = 600;
/// Files that are longer than they should be. The list only gets shorter.
const TOO_LONG: &[&str] = &["src/ledger/open.rs"];

#[test]
fn files_stay_short() {
    let mut long = Vec::new();
    for (file, text) in sources("src") {
        let lines = untested(&text).len();
        let listed = TOO_LONG.contains(&file.as_str());
        if lines > LINES_MAX && !TABLES.contains(&file.as_str()) && !listed {
            long.push(format!("{file}: {lines} lines"));
        }
    }
    assert!(
        long.is_empty(),
        "over {LINES_MAX} lines without tests: {long:#?}"
    );
}

#[test]
fn every_test_file_is_in_the_binary() {
    let mut orphans = Vec::new();
    for path in files(&root().join("tests/it"), ".rs") {
        if path.ends_with("tests/it/main.rs") {
            continue;
        }
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap();
        let (module, home) = if stem == "mod" {
            (
                folder.file_name().unwrap().to_str().unwrap(),
                folder.parent().unwrap(),
            )
        } else {
            (stem, folder)
        };
        let candidates = [
            home.join("main.rs"),
            home.join("mod.rs"),
            home.with_extension("rs"),
        ];
        let known = candidates.iter().any(|parent| {
            std::fs::read_to_string(parent).is_ok_and(|text| {
                text.lines()
                    .any(|line| line.trim_start_matches("pub ") == format!("mod {module};"))
            })
        });
        if !known {
            orphans.push(name(&path));
        }
    }
    assert!(orphans.is_empty(), "no `mod` names {orphans:?}");
}

/// Words that may stand only in these places: (word, where it may, why not elsewhere).
const KEPT: &[(&str, &[&str], &str)] = &[
    ("rusqlite", &["src/store/"], "only the store names SQLite"),
    (
        "tokio",
        &["src/server/", "src/model/"],
        "nothing below is async",
    ),
    (
        "async fn",
        &["src/server/", "src/model/"],
        "nothing below is async",
    ),
    (
        "projection::RULEBOOK",
        &["src/workflow/lib.rs"],
        "workflow::RULEBOOK has every rule",
    ),
    (
        "history.events",
        &["src/ledger/", "src/projection/reader.rs"],
        "a LogReader reads the log again",
    ),
    (
        "events_with",
        &["src/ledger/"],
        "a LogReader reads the log again",
    ),
    (
        "ledger.entries",
        &["src/cli/", "src/export/", "src/ledger/", "src/session/"],
        "a LogReader reads the log again",
    ),
    ("HashMap", &[], "its order leaks into bytes"),
    ("HashSet", &[], "its order leaks into bytes"),
];

#[test]
fn words_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for (file, text) in sources("src") {
        for (at, line) in text.lines().enumerate() {
            for (word, homes, why) in KEPT {
                if code(line).contains(word) && !homes.iter().any(|home| file.starts_with(home)) {
                    wrong.push(format!("{file}:{}: {word}: {why}", at + 1));
                }
            }
        }
        if file.starts_with("src/store/") || file.starts_with("src/ledger/") {
            for (at, line) in untested(&text).into_iter().enumerate() {
                if code(line).contains("unwrap_or_default()") {
                    let why = "a failed read must not pass for an empty one";
                    wrong.push(format!("{file}:{}: unwrap_or_default: {why}", at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What appends to a ledger.
const APPENDS: &[&str] = &[
    "Ledger::append",
    "Ledger::submit",
    "append_read(",
    "append_with_blobs(",
    "ledger.append(",
    "ledger.settle(",
    "ledger.submit(",
    "ledger.follow(",
    "submit_with_blobs(",
];

#[test]
fn use_cases_alone_append() {
    let mut wrong = Vec::new();
    for (file, text) in sources("src") {
        let floor = file["src/".len()..].split(['/', '.']).next().unwrap();
        if ["ledger", "session"].contains(&floor) {
            continue;
        }
        for (at, line) in untested(&text).into_iter().enumerate() {
            let line = code(line);
            let appends = APPENDS.iter().find(|word| line.contains(**word));
            // The command line hands its ledger to use cases.
            let changes =
                (floor != "cli" && line.contains("&mut Ledger")).then_some(&"&mut Ledger");
            if let Some(word) = appends.or(changes) {
                wrong.push(format!("{file}:{}: {word}", at + 1));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a use case in src/session appends, so that a program and a server can do it too: {wrong:#?}"
    );
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here so that this file does not hold them.
    // A test that never runs is one of them: slow tests run with RUN_SLOW_TESTS=1 instead.
    let words = [
        "TO-DO",
        "FIX-ME",
        "XX-X",
        "to-do!",
        "unimple-mented!",
        "#[ig-nore",
    ]
    .map(|word| word.replace('-', ""));
    let mut wrong = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for (file, text) in sources(folder) {
            for (at, line) in text.lines().enumerate() {
                for word in &words {
                    let found = line.match_indices(word.as_str()).any(|(from, _)| {
                        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
                        edge(line[..from].chars().next_back())
                            && edge(line[from + word.len()..].chars().next())
                    });
                    if found {
                        wrong.push(format!("{file}:{}: {word}", at + 1));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_have_no_vague_names() {
    let vague = [
        "util", "utils", "helper", "helpers", "manager", "common", "misc", "data",
    ];
    for (file, _) in sources("src") {
        for part in file.split(['/', '.']) {
            assert!(!vague.contains(&part), "{file}: say what is in it");
        }
    }
}

#[test]
fn reference_numbers_name_their_source() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests"] {
        for (file, text) in sources(folder) {
            let lines: Vec<_> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let table = line.contains("[f64;") || line.contains("&[f64]");
                // Not the type of an argument: `|x: &[f64]|`.
                let literal = ["= [", "= &["].iter().any(|start| line.contains(start))
                    || line.trim_end().ends_with('=');
                if !table
                    || !literal
                    || line.trim_start().starts_with("//")
                    || file.ends_with("tidy.rs")
                {
                    continue;
                }
                let above = &lines[at.saturating_sub(4)..=at];
                if !above.iter().any(|line| line.contains("source:")) {
                    wrong.push(format!("{file}:{}", at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "tables without `source:`: {wrong:#?}");
}

/// The top level is a map: what is new goes into one of these.
const TOP: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "audits",
    "benches",
    "fixtures",
    "migrations",
    "schema",
    "src",
    "tests",
];

#[test]
fn the_top_level_is_fixed() {
    // What version control does not hold (a build folder, an editor's file) is nobody's.
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output();
    let found: BTreeSet<String> = match listed {
        Ok(listed) if listed.status.success() => String::from_utf8(listed.stdout)
            .unwrap()
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(|path| path.split('/').next().unwrap().to_owned())
            .collect(),
        _ => {
            eprintln!("skipped: not a git checkout");
            return;
        }
    };
    let visible: Vec<_> = found.iter().filter(|name| !name.starts_with('.')).collect();
    let extra: Vec<_> = visible
        .iter()
        .filter(|name| !TOP.contains(&name.as_str()))
        .collect();
    assert!(extra.is_empty(), "{extra:?} has no place at the top level");
}

#[test]
fn migrations_are_numbered_and_every_one_is_applied() {
    let found: Vec<_> = files(&root().join("migrations"), ".sql")
        .iter()
        .map(|path| name(path))
        .collect();
    let store: String = sources("src/store")
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    for file in &found {
        assert!(
            store.contains(&format!("../../{file}")),
            "{file} is not applied"
        );
        let digits = file["migrations/".len()..].trim_start_matches("vault_");
        assert!(
            digits[..4].bytes().all(|byte| byte.is_ascii_digit()),
            "{file}"
        );
    }
    // `released_migrations_never_change` in the store pins their digests.
    assert!(store.contains("fn released_migrations_never_change"));
}

/// Each dependency stands on its page with its use and what was weighed, and no page names one that is gone.
#[test]
fn every_dependency_is_explained() {
    let page = std::fs::read_to_string(root().join("schema/DEPENDENCIES.md")).unwrap();
    let names = members();
    let members = names
        .iter()
        .map(|member| format!("src/{member}/Cargo.toml"));
    let manifests = std::iter::once("Cargo.toml".to_owned()).chain(members);
    let manifests: Vec<_> = manifests
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let declared = |section: &str, is_optional: bool| -> BTreeSet<&str> {
        let lines = manifests.iter().flat_map(|manifest| {
            let lines = manifest.lines().skip_while(|line| *line != section).skip(1);
            lines.take_while(|line| !line.starts_with('['))
        });
        // Members are our own.
        let lines = lines.filter(|line| {
            !line.starts_with("clover-") && line.contains("optional") == is_optional
        });
        let names = lines.filter_map(|line| Some(line.split_once(" = ")?.0));
        names
            .map(|name| name.trim_end_matches(".workspace"))
            .collect()
    };
    let explained = |heading: &str| -> Vec<&str> {
        let lines = page.lines().skip_while(|line| *line != heading).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('#'));
        let rows = lines.filter_map(|line| line.strip_prefix("| `"));
        rows.map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert!(
                cells.len() == 3 && cells.iter().all(|cell| cell.len() > 2),
                "{row}"
            );
            cells[0].trim_end_matches('`')
        })
        .collect()
    };
    let program = declared("[dependencies]", false);
    let tests = &declared("[dev-dependencies]", false) - &program;
    // What else is optional serves tests.
    let features = &declared("[dependencies]", true) - &tests;
    for (declared, heading) in [
        (program, "## In the program"),
        (features, "## Behind a feature"),
        (tests, "## In tests alone"),
    ] {
        assert!(declared.len() > 2, "{heading}");
        let declared: Vec<_> = declared.into_iter().collect();
        assert_eq!(declared, explained(heading), "{heading}");
    }
}

/// A verb's module holds one of each by this name.
const OF_A_VERB: &[&str] = &["Args", "Verb"];
/// Names that one crate still defines twice. The list only gets shorter.
const TWICE: &[(&str, &str)] = &[("root", "Asked"), ("workflow", "Ask")];
/// Names of types that do not say what the thing is.
const VAGUE: &[&str] = &[
    "Asked", "Common", "Found", "Gone", "Held", "Kept", "Known", "Line", "Of", "Part", "Parts",
    "Place", "Places", "Row", "Rows", "Said", "Shown", "Taken", "Told", "Which",
];
/// Words in -ed that may name a type: a noun, and the states of a body under its signature.
const IN_ED: &[&str] = &["Seed", "Signed", "Unverified", "Verified"];
/// Folders that still hold such names. The list only gets shorter.
const VAGUE_STILL: &[&str] = &[
    "src/session/judge/",
    "src/stats/direct/",
    "src/store/",
    "src/view/estimate/",
    "src/workflow/estimate/",
];

/// The type that a line defines. An associated type is none: its trait names it.
fn defined(line: &str) -> Option<&str> {
    let code = code(line);
    let rest = match code.trim_start().strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => code.trim_start(),
    };
    let (word, rest) = rest.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&word)
        || (word == "type" && !code.starts_with(' '));
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    // A macro's type has no name yet.
    (is_type && !name.is_empty()).then_some(name)
}

/// Member, name and file of each type; what no member holds is of the package at the root.
fn types() -> Vec<(String, String, String)> {
    let members = members();
    let mut types = Vec::new();
    for (file, text) in sources("src") {
        let home = |member: &&String| file.starts_with(&format!("src/{member}/"));
        let member = members.iter().find(home).map_or("root", String::as_str);
        for name in untested(&text).into_iter().filter_map(defined) {
            types.push((member.to_owned(), name.to_owned(), file.clone()));
        }
    }
    types
}

#[test]
fn a_crate_gives_each_type_name_once() {
    let types = types();
    assert!(types.len() > 1000, "types are read");
    let mut files = BTreeMap::<(&str, &str), Vec<&str>>::new();
    for (member, name, file) in &types {
        let of_a_verb = file.starts_with("src/cli/") && OF_A_VERB.contains(&name.as_str());
        if !of_a_verb {
            files.entry((member, name)).or_default().push(file);
        }
    }
    files.retain(|_, files| files.len() > 1);
    let found: Vec<_> = files.keys().copied().collect();
    assert_eq!(found, TWICE, "one noun a type: {files:#?}");
}

#[test]
fn types_have_no_vague_names() {
    let mut wrong = Vec::new();
    for (_, name, file) in types() {
        let still = VAGUE_STILL.iter().any(|folder| file.starts_with(folder));
        let is_word = !name[1..].contains(char::is_uppercase);
        let is_participle = is_word && name.ends_with("ed") && !IN_ED.contains(&name.as_str());
        if (is_participle || VAGUE.contains(&name.as_str())) && !still {
            wrong.push(format!("{file}: {name}"));
        }
    }
    assert!(wrong.is_empty(), "a noun says what it is: {wrong:#?}");
}
