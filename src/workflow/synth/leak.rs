//! The test that no row stands in a view: windows of six words and of 24 characters of every text of the experiment's rows,
//! and every id, against every text of the view.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::synth::view::OptimizerView;

/// Words of a window.
pub const WORDS: usize = 6;
/// Characters of a window.
pub const CHARACTERS: usize = 24;
/// Bytes from which an id is looked for inside of texts.
const ID_INSIDE: usize = 8;

/// Lower case, each run of white space one space.
fn normalised(text: &str) -> String {
    let words = text.split_whitespace().map(str::to_lowercase);
    words.collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> Vec<&str> {
    let all = text.split(|c: char| !c.is_alphanumeric());
    all.filter(|word| !word.is_empty()).collect()
}

/// Windows of words, and of characters.
fn windows(text: &str) -> (Vec<String>, Vec<&str>) {
    let words = words(text);
    let of_words = words.windows(WORDS).map(|of| of.join(" ")).collect();
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    ends.push(text.len());
    let of_characters = ends.windows(CHARACTERS + 1);
    let cut = |of: &[usize]| &text[of[0]..of[CHARACTERS]];
    (of_words, of_characters.map(cut).collect())
}

/// Texts of a document, without the names of its members, which the form gives.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|item| texts(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a view holds, in the forms that rows are looked for in.
#[derive(Clone, Debug, Default)]
pub struct ViewText {
    words: BTreeSet<String>,
    characters: BTreeSet<String>,
    whole: BTreeSet<String>,
}

impl ViewText {
    /// Of a view; what stands in one of these texts, such as the rubric that was registered before the first row, does not
    /// count.
    pub fn of(view: &OptimizerView, known: &[String]) -> Self {
        let value: Value = serde_json::from_slice(&view.bytes()).unwrap_or_default();
        let mut all = Vec::new();
        texts(&value, &mut all);
        let mut found = Self::default();
        found.take(all);
        found.forget(known);
        found
    }

    fn take(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            let text = normalised(&text);
            let (words, characters) = windows(&text);
            self.words.extend(words);
            self.characters
                .extend(characters.into_iter().map(str::to_owned));
            self.whole.insert(text);
        }
    }

    fn forget(&mut self, known: &[String]) {
        for text in known {
            let text = normalised(text);
            let (words, characters) = windows(&text);
            for window in &words {
                self.words.remove(window);
            }
            for window in characters {
                self.characters.remove(window);
            }
            self.whole.remove(&text);
        }
    }

    /// Whether a window of a row's text stands in it. A text that is shorter than any window is in none.
    pub fn holds_text(&self, text: &str) -> bool {
        let text = normalised(text);
        let (words, characters) = windows(&text);
        words.iter().any(|window| self.words.contains(window))
            || characters
                .iter()
                .any(|window| self.characters.contains(*window))
    }

    /// Whether an id stands in it: as a whole text, and from eight characters on inside of one.
    pub fn holds_id(&self, id: &str) -> bool {
        let id = normalised(id);
        let is_long = id.chars().count() >= ID_INSIDE;
        self.whole.contains(&id)
            || is_long && self.whole.iter().any(|text| text.contains(id.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[&str], known: &[&str]) -> ViewText {
        let known: Vec<String> = known.iter().map(|text| (*text).to_owned()).collect();
        let mut view = ViewText::default();
        view.take(texts.iter().map(|text| (*text).to_owned()));
        view.forget(&known);
        view
    }

    #[test]
    fn six_words_of_a_row_are_found_whatever_stands_between_them() {
        let view = shown(&["Take two of the small red pills"], &[]);
        assert!(view.holds_text("you should take two, of the... SMALL red ones"));
        assert!(!view.holds_text("take two of the small blue pills"));
    }

    #[test]
    fn twenty_four_characters_of_a_row_are_found_inside_of_words() {
        let view = shown(&["abcdefghijklmnopqrstuvwxyz"], &[]);
        assert!(view.holds_text("__abcdefghijklmnopqrstuvwx__"));
        assert!(!view.holds_text("__abcdefghijklmnopqrstuvw__"));
    }

    #[test]
    fn what_was_known_before_the_first_row_does_not_count() {
        let rubric = "abstain where critical information is missing from the question";
        assert!(shown(&[rubric], &[]).holds_text(rubric));
        assert!(!shown(&[rubric], &[rubric]).holds_text(rubric));
    }

    #[test]
    fn an_id_is_found_as_a_whole_and_a_long_one_inside_of_a_text() {
        let view = shown(&["item-7", "slice of prompt-00042 alone"], &[]);
        assert!(view.holds_id("item-7") && view.holds_id("prompt-00042"));
        assert!(!view.holds_id("item") && !view.holds_id("slice"));
    }
}
