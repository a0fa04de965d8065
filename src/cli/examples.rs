//! Every example of help, README and the pages of `schema` is a command that the parser takes.

use std::path::Path;
use std::path::PathBuf;

use super::command;
use super::tests::walk;
use crate::ground::ambient;

/// Commands of a line of a shell, each as its words: enough of a shell for examples.
fn commands_of(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, Some(of)) if c == of => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ' | '\n', None) => words.extend(word.take()),
            (';' | '|' | '>' | '<' | '&', None) if c != '&' || chars.next_if_eq(&'&').is_some() => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    all.push(words);
    all.retain(|words| words.first().is_some_and(|of| of == "clover"));
    all
}

/// Holds each command of a text that begins with `mark` against the parser; `\` goes on with the next line.
fn hold_examples(place: &str, text: &str, mark: &str, wrong: &mut Vec<String>) -> usize {
    let text = text.replace("\\\n", " ");
    let mut seen = 0;
    for line in text.lines() {
        let Some(line) = line.strip_prefix(mark) else {
            continue;
        };
        for words in commands_of(line) {
            seen += 1;
            if let Err(error) = command().try_get_matches_from(&words) {
                let said = error.to_string();
                let first = said.lines().next().unwrap_or_default();
                wrong.push(format!("{place}: {}\n  {first}", words.join(" ")));
            }
        }
    }
    seen
}

/// README and the pages of `schema`, by name.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = ambient::list(&root.join("schema")).unwrap();
    paths.retain(|path| path.extension().is_some_and(|of| of == "md"));
    paths.push(root.join("README.md"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = ambient::read(&path).unwrap();
        (name, String::from_utf8(bytes).unwrap())
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_example_is_a_command() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut built = command();
    built.build();
    walk(&built, "clover", &mut |path, verb| {
        let after = verb.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        seen += hold_examples(path, &after, "  ", &mut wrong);
    });
    assert!(seen > 150, "{seen}");
    for (name, page) in pages() {
        let found = hold_examples(&name, &page, "$ ", &mut wrong);
        let is_long = matches!(&*name, "README.md" | "COMMANDS.md" | "WALKTHROUGH.md");
        assert!(found > 20 || !is_long, "{name}: {found}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let words = commands_of("cd a && clover b 'c d' # e");
    assert_eq!(words, [["clover", "b", "c d"]]);
}
