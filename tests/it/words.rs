//! Pages for strangers: sentences that can be read aloud, and one word for one thing.

use std::path::PathBuf;

/// Most words of a sentence; a code span counts as one.
const WORDS_MAX: usize = 30;

/// Pages by name, with their text.
fn pages() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("README.md"), root.join("audits/README.md")];
    let worked = std::fs::read_dir(root.join("audits/worked")).unwrap();
    let worked = worked.map(|entry| entry.unwrap().path());
    paths.extend(worked.map(|path| {
        if path.is_dir() {
            path.join("README.md")
        } else {
            path
        }
    }));
    let schema = std::fs::read_dir(root.join("schema")).unwrap();
    paths.extend(
        schema
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "md")),
    );
    paths.sort();
    let page = |path: &PathBuf| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(page).collect()
}

/// Paragraphs and items of lists, without code blocks, tables and headings.
fn paragraphs(page: &str) -> Vec<String> {
    let (mut all, mut at_hand, mut in_code) = (Vec::new(), String::new(), false);
    for line in page.lines() {
        let text = line.trim_start();
        if text.starts_with("```") {
            in_code = !in_code;
        }
        let indented = line.starts_with("    ") && at_hand.is_empty();
        let numbered = text.split_once(". ").is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let item = text.starts_with("- ") || text.starts_with("* ") || numbered;
        let apart = text.is_empty() || text.starts_with('#') || text.starts_with("```");
        if in_code || apart || item {
            all.extend((!at_hand.is_empty()).then(|| std::mem::take(&mut at_hand)));
        }
        if in_code || apart || indented || text.starts_with('|') {
            continue;
        }
        at_hand.push_str(text.trim_start_matches(['-', '*']).trim_start());
        at_hand.push(' ');
    }
    all.extend((!at_hand.is_empty()).then_some(at_hand));
    all
}

/// A paragraph with each code span as one word.
fn without_code(paragraph: &str) -> String {
    let parts = paragraph.split('`').enumerate();
    parts
        .map(|(place, part)| if place % 2 == 0 { part } else { "X" })
        .collect()
}

/// Counts of words of the sentences of a paragraph, with the sentence.
fn sentences(paragraph: &str) -> Vec<(usize, String)> {
    let (mut all, mut at_hand) = (Vec::new(), Vec::new());
    for word in without_code(paragraph).split_whitespace() {
        at_hand.push(word.to_owned());
        if word.ends_with(['.', '!', '?', ':', ';']) {
            all.push((at_hand.len(), at_hand.join(" ")));
            at_hand.clear();
        }
    }
    all.push((at_hand.len(), at_hand.join(" ")));
    all
}

#[test]
fn sentences_of_pages_can_be_read_aloud() {
    let mut long = Vec::new();
    let mut seen = 0;
    for (name, text) in pages() {
        for paragraph in paragraphs(&text) {
            for (count, sentence) in sentences(&paragraph) {
                seen += 1;
                if count > WORDS_MAX {
                    long.push(format!("{name}, {count} words: {sentence}"));
                }
            }
        }
    }
    assert!(seen > 1_000, "{seen} sentences were seen");
    assert!(long.is_empty(), "over {WORDS_MAX} words: {long:#?}");
    // The count itself: a sentence of 31 words is one too many, and a colon ends one.
    let words = "word ".repeat(31);
    assert_eq!(sentences(&words)[0].0, 31);
    assert_eq!(sentences("One two: three `four five` six.")[1].0, 3);
}

/// The glossary's terms, each with the words that are not used for it.
fn glossary() -> Vec<(String, Vec<String>)> {
    let (_, page) = pages()
        .into_iter()
        .find(|(name, _)| name.ends_with("GLOSSARY.md"))
        .unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.skip(1)
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 3, "{row}");
            let not = cells[2].split(", ").filter(|word| *word != "–");
            (cells[0].to_owned(), not.map(str::to_owned).collect())
        })
        .collect()
}

/// Whether a text has the word by itself.
fn has_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&word).any(|(at, _)| {
        !letter(text[..at].chars().next_back()) && !letter(text[at + word.len()..].chars().next())
    })
}

#[test]
fn pages_and_help_use_the_words_of_the_glossary() {
    let glossary = glossary();
    assert!(glossary.len() >= 30);
    let mut texts: Vec<_> = pages()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("GLOSSARY.md"))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let man = std::process::Command::new(env!("CARGO_BIN_EXE_clover"))
        .args(["man", "-o"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(man.status.success());
    for page in std::fs::read_dir(folder.path()).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_name().unwrap().display().to_string();
        texts.push((name, std::fs::read_to_string(path).unwrap()));
    }
    assert!(texts.len() > 100, "{} pages", texts.len());
    let all: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    for (term, not) in &glossary {
        assert!(has_word(&all, term), "no page says {term}");
        for word in not {
            for (name, text) in &texts {
                assert!(
                    !has_word(text, word),
                    "{name} says {word}, the word is {term}"
                );
            }
        }
    }
}
