//! The paths that real people take, from an empty folder by pasted commands alone. Each file of `tests/journeys` is one:
//!
//! ```text
//! # What the person wants to know.
//! # At most 8 clover commands and 0 fields.
//! # Needs SAMPLE.
//! $ clover init --holder Ada --roles all
//! > ledger
//! $ clover audit transport
//! ! 12
//! ```
//!
//! A line `# After an iteration.` takes the steps of `an_iteration.txt` first.
//!
//! Every command must end with 0, or with the code after `!`; its answer, notes included, must hold what stands after `>`.
//!
//! README and the walkthrough are such paths too: each `$` of their blocks of `console` runs, in order, and a block that has
//! the name of a file is that file.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::verifiers::repository;

/// One line that is pasted, and what must come of it.
#[derive(Debug)]
struct Step {
    command: String,
    code: i32,
    parts: Vec<String>,
}

#[derive(Debug)]
struct Journey {
    name: String,
    commands_max: Option<usize>,
    /// Most fields that a person fills: edits of a file that the tool wrote.
    fields_max: Option<usize>,
    needs: Vec<String>,
    steps: Vec<Step>,
}

impl Journey {
    /// Edits of files that the tool wrote, one for each field.
    fn fields(&self) -> usize {
        let edits = self
            .steps
            .iter()
            .filter(|step| step.command.starts_with("sed -i"));
        edits.map(|step| step.command.matches(" -e ").count()).sum()
    }

    /// Commands of clover that were refused: what failed otherwise than by its finding.
    fn refused(&self) -> usize {
        let is_refused = |step: &&Step| {
            step.command.starts_with("clover") && !matches!(step.code, 0 | 3 | 10 | 12)
        };
        self.steps.iter().filter(is_refused).count()
    }
}

fn read(path: &Path) -> Journey {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut journey = Journey {
        name,
        commands_max: None,
        fields_max: None,
        needs: Vec::new(),
        steps: Vec::new(),
    };
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (mark, rest) = line.split_at(2);
        let last = journey.steps.last_mut();
        match mark {
            "# " => {
                if let Some(count) = rest.strip_prefix("At most ") {
                    let count = count.split(' ').next().unwrap();
                    journey.commands_max = Some(count.parse().unwrap());
                    let fields = rest.split_once("commands and ").map(|(_, rest)| rest);
                    let count = fields.map(|rest| rest.split(' ').next().unwrap());
                    journey.fields_max = count.map(|count| count.parse().unwrap());
                }
                if let Some(before) = rest.strip_prefix("After ") {
                    let before = before.trim_end_matches('.').replace(' ', "_");
                    let before = read(&path.with_file_name(format!("{before}.txt")));
                    (journey.needs, journey.steps) = (before.needs, before.steps);
                }
                if let Some(needs) = rest.strip_prefix("Needs ") {
                    let needs = needs.trim_end_matches('.').split(", ");
                    journey.needs = needs.map(ToOwned::to_owned).collect();
                }
            }
            "$ " => journey.steps.push(Step {
                command: rest.to_owned(),
                code: 0,
                parts: Vec::new(),
            }),
            "  " => {
                let last = last.unwrap();
                last.command.push('\n');
                last.command.push_str(rest);
            }
            "! " => last.unwrap().code = rest.parse().unwrap(),
            "> " => last.unwrap().parts.push(rest.to_owned()),
            _ => panic!("{}: {line}", path.display()),
        }
    }
    journey
}

/// The path that a page leads along.
fn of_page(name: &str) -> Journey {
    let text = std::fs::read_to_string(repository().join(name)).unwrap();
    let mut journey = Journey {
        name: name.to_owned(),
        commands_max: None,
        fields_max: None,
        needs: vec!["CLOVER".to_owned()],
        steps: Vec::new(),
    };
    let mut block: Option<(&str, Option<&str>)> = None;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            let mut words = info.split_whitespace();
            block = match (block, words.next()) {
                (None, kind) => Some((kind.unwrap_or_default(), words.next())),
                (Some(_), _) => None,
            };
            if let Some((_, Some(file))) = block {
                journey.steps.push(Step {
                    command: format!("cat > {file} <<'END'\nEND"),
                    code: 0,
                    parts: Vec::new(),
                });
            }
            continue;
        }
        match (block, line.strip_prefix("$ ")) {
            (Some(("console", None)), Some(command)) => journey.steps.push(Step {
                command: command.to_owned(),
                code: 0,
                parts: Vec::new(),
            }),
            (Some(("console", None)), None) => {
                let command = &mut journey.steps.last_mut().unwrap().command;
                command.push_str(&format!("\n{line}"));
            }
            (Some((_, Some(_))), _) => {
                let command = &mut journey.steps.last_mut().unwrap().command;
                command.truncate(command.len() - "END".len());
                command.push_str(&format!("{line}\nEND"));
            }
            _ => {}
        }
    }
    journey
}

#[test]
fn pages_run_as_they_stand() {
    for (page, least) in [
        ("README.md", 30),
        ("schema/WALKTHROUGH.md", 25),
        ("schema/SYNTHESIS.md", 20),
        ("schema/WORKFLOW.md", 10),
    ] {
        let commands = walk(&of_page(page)).unwrap();
        println!("{page}: {commands} commands");
        assert!(commands >= least, "{page}: {commands} commands");
    }
}

/// How a block of `sh` is tried, by the comment in the line above it, which a reader does not see.
#[derive(Debug, PartialEq, Eq)]
enum BlockTrial {
    /// `runs after: COMMANDS`: after these, from an empty folder.
    Runs(String),
    /// `runs slowly after: COMMANDS`: the same, where slow tests run.
    RunsSlowly(String),
    /// `not run: WHY`.
    Not(String),
}

/// The blocks of `sh` of a page, in order: how each is tried, and its commands.
fn blocks(name: &str) -> Vec<(BlockTrial, Vec<String>)> {
    let text = std::fs::read_to_string(repository().join(name)).unwrap();
    let (mut all, mut above, mut is_open) = (Vec::new(), "", false);
    for (at, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", at + 1);
        if line == "```sh" {
            let said = above.strip_prefix("<!-- ");
            let said = said.and_then(|said| said.strip_suffix(" -->"));
            let (how, what) = said
                .and_then(|said| said.split_once(": "))
                .unwrap_or_else(|| panic!("{place}: no comment above says how the block is tried"));
            let what = what.to_owned();
            let trial = match how {
                "runs after" => BlockTrial::Runs(what),
                "runs slowly after" => BlockTrial::RunsSlowly(what),
                "not run" => BlockTrial::Not(what),
                other => panic!("{place}: {other}"),
            };
            all.push((trial, Vec::new()));
            is_open = true;
        } else if line.starts_with("```") {
            is_open = false;
        } else if is_open && let Some(command) = line.strip_prefix("$ ") {
            all.last_mut().unwrap().1.push(command.to_owned());
        }
        above = line;
    }
    all
}

/// Each block of `sh` runs as it stands, in order, or says why not. That every command of a block is one that the parser takes is
/// held in `src/cli/examples.rs`, also of those that do not run.
#[test]
fn blocks_of_commands_run_as_they_stand_or_say_why_not() {
    let (mut ran, mut waits) = (0, 0);
    for page in [
        "README.md",
        "schema/COMMANDS.md",
        "schema/EXPORTS.md",
        "schema/IMPORTS.md",
        "schema/REPORT.md",
    ] {
        for (at, (trial, commands)) in blocks(page).into_iter().enumerate() {
            assert!(!commands.is_empty(), "{page}: block {at}");
            let before = match trial {
                BlockTrial::Not(why) => {
                    println!("{page}: block {at} does not run: {why}");
                    continue;
                }
                BlockTrial::RunsSlowly(_) if std::env::var_os("RUN_SLOW_TESTS").is_none() => {
                    waits += 1;
                    continue;
                }
                BlockTrial::Runs(before) | BlockTrial::RunsSlowly(before) => before,
            };
            let all = std::iter::once(before).chain(commands);
            let steps = all.map(|command| Step {
                command,
                code: 0,
                parts: Vec::new(),
            });
            walk(&Journey {
                name: format!("{page}: block {at}"),
                commands_max: None,
                fields_max: None,
                needs: vec!["CLOVER".to_owned()],
                steps: steps.collect(),
            });
            ran += 1;
        }
    }
    println!("{ran} blocks ran, {waits} wait for RUN_SLOW_TESTS");
    assert!(ran + waits >= 7);
}

/// Folders that journeys may name, where they are there.
fn places() -> BTreeMap<&'static str, PathBuf> {
    let sample = repository().join("../shared/arena_sample");
    let mut places = BTreeMap::from([("CLOVER", repository())]);
    if sample.is_dir() {
        places.insert("SAMPLE", sample.canonicalize().unwrap());
    }
    places
}

/// Runs a journey; returns how many commands of clover it took, or `None` where a folder that it needs is not here.
fn walk(journey: &Journey) -> Option<usize> {
    let places = places();
    if let Some(missing) = journey
        .needs
        .iter()
        .find(|name| !places.contains_key(name.as_str()))
    {
        println!(
            "skipped: journey {} needs {missing}, which is not here",
            journey.name
        );
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (work, at) = (folder.path().join("work"), folder.path().join("at"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(&at, work.to_str().unwrap()).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_clover")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    for step in &journey.steps {
        let now = std::fs::read_to_string(&at).unwrap();
        // The next command begins in the folder where this one ended, as in one terminal.
        let script = format!(
            "{}\ncode=$?\npwd > '{}'\nexit $code",
            step.command,
            at.display()
        );
        let ran = Command::new("sh")
            .args(["-c", &script])
            .current_dir(now.trim())
            .env_clear()
            .env("PATH", &path)
            .env("HOME", &home)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(places.iter())
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
        let said = format!("{}: $ {}\n{out}{err}", journey.name, step.command);
        assert_eq!(ran.status.code(), Some(step.code), "{said}");
        let words = out.split_whitespace().chain(err.split_whitespace());
        let flat = words.collect::<Vec<_>>().join(" ");
        for part in &step.parts {
            assert!(flat.contains(part.as_str()), "{said}\nexpected {part:?}");
        }
    }
    // Nothing is written elsewhere: beside the folder, only keys and pins in the person's own.
    let mut beside: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    beside.sort();
    assert_eq!(beside, ["at", "home", "work"]);
    let words = journey
        .steps
        .iter()
        .flat_map(|step| step.command.split_whitespace());
    Some(words.filter(|word| *word == "clover").count())
}

#[test]
fn each_leads_to_its_answer_in_few_commands_and_no_refusal() {
    let folder = repository().join("tests/journeys");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let journey = read(&path);
        if let Some(commands) = walk(&journey) {
            println!("{}: {commands} commands", journey.name);
            let most = journey
                .commands_max
                .expect("a line: # At most N clover commands and M fields.");
            assert!(commands <= most, "{}: {commands} commands", journey.name);
            let fields = journey.fields();
            println!("{}: {fields} fields", journey.name);
            let most = journey
                .fields_max
                .expect("a line: # At most N clover commands and M fields.");
            assert!(fields <= most, "{}: {fields} fields", journey.name);
            assert_eq!(journey.refused(), 0, "{}", journey.name);
        }
    }
}

/// Sends keys to an interactive zsh once it is ready, and prints what its line says.
const ZSH_KEYS: &str = r"
zmodload zsh/zpty || exit 9
zpty -b z zsh -f -i
zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -d $HOME/zdump; source $HOME/_clover; print REA''DY'
wait_for() {
    out=
    repeat 300; do
        while zpty -r -t z chunk; do out+=$chunk; done
        [[ $out == *$1* ]] && return
        sleep 0.1
    done
    print -r -- $out
    exit 1
}
wait_for READY
zpty -w -n z $'clover estimate --experiment arc\t'
wait_for arctic
zpty -d z
print completed
";

#[test]
fn fish_and_zsh_complete_ids_of_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let binaries = Path::new(env!("CARGO_BIN_EXE_clover")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let ran = |shell: &str, script: &str| {
        let output = Command::new(shell)
            .args(["-c", script])
            .current_dir(home)
            .env_clear()
            .env("PATH", &path)
            .env("HOME", home)
            .env("TERM", "dumb")
            .output();
        // A shell that is not here is told by the only error there is.
        output.ok().map(|output| {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success(), said)
        })
    };
    let made = ran(
        "sh",
        "clover init --holder Ada --roles all >/dev/null && for id in arena arctic; do clover experiment register $id \
         --title T --purpose p >/dev/null || exit 1; done; clover completions fish > clover.fish && clover completions zsh > _clover",
    );
    assert!(made.unwrap().0);
    let asks = "source clover.fish; complete -C 'clover use '; complete -C 'clover gate sh'";
    match ran("fish", asks) {
        None => println!("skipped: fish is not here"),
        Some((_, said)) => {
            for word in ["arctic", "arena", "show"] {
                assert!(said.lines().any(|line| line.starts_with(word)), "{said}");
            }
        }
    }
    match ran("zsh", ZSH_KEYS) {
        None => println!("skipped: zsh is not here"),
        Some((_, said)) => assert!(said.contains("completed"), "{said}"),
    }
}
