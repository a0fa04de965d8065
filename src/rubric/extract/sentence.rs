//! What words and sentences say: counts of marked words, positions against one's own, contradictions, errors.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::words;

use crate::extract::content_words;
use crate::extract::recorded::Facts;
use crate::extract::vocabulary;
use crate::extract::vocabulary::Marks;
use crate::extract::vocabulary::TOPICS;

/// Words of a sentence that puts forward a position against its own.
const COUNTER_WORDS: usize = 8;
/// Words of a sentence that names somebody who is affected.
const STAKEHOLDER_WORDS: usize = 6;
/// Most stakeholders that a sentence names without being a mere list of them.
const STAKEHOLDERS_MAX: u32 = 2;
/// Words of a sentence that can contradict or repeat another.
const STATEMENT_WORDS: usize = 3;

/// What a text says.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own"
)]
pub(super) struct Reading {
    /// Words of certainty.
    pub certain: u64,
    /// Words of doubt.
    pub hedges: u64,
    /// Words that name a risk.
    pub risks: u64,
    /// Whether it appeals to evidence, or states a percentage.
    pub claims: bool,
    /// Whether a sentence puts forward a position against its own, on what was asked.
    pub counters: bool,
    /// Whether two sentences say the opposite of each other.
    pub contradicts: bool,
    /// Whether a sentence stands there twice.
    pub repeats: bool,
    /// Who is affected, as bits of the vocabulary.
    pub stakeholders: u64,
    /// Distinct words by topic, as bits of the vocabulary.
    pub topics: [u64; TOPICS.len()],
    /// Whether a statement is known to be false; `None` when none is known at all.
    pub error: Option<bool>,
    /// Words that carry content: of a prompt only.
    content: BTreeSet<String>,
    /// Whether somebody speaks of themselves: of a prompt only.
    personal: bool,
    /// Topics of which the decisive circumstances are told: of a prompt only.
    told: u64,
}

impl Reading {
    /// Reads what was asked.
    pub(super) fn of_prompt(prompt: &str) -> Self {
        let mut reading = Self {
            content: content_words(prompt),
            ..Self::default()
        };
        words::each_spoken(prompt, |_, folded| {
            let marks = vocabulary::marks(folded);
            reading.count(marks);
            reading.personal = reading.personal || marks.has(Marks::PERSONAL);
            reading.told |= marks.decisive_for();
            if folded.starts_with(|c: char| c.is_numeric()) {
                reading.told = u64::MAX;
            }
        });
        reading
    }

    /// Whether somebody asks for themselves on a topic without what decides the answer.
    pub(super) fn leaves_out(&self) -> bool {
        let missing = |at: usize| {
            TOPICS[at].is_decided() && self.topics[at] != 0 && self.told & (1 << at) == 0
        };
        self.personal && (0..TOPICS.len()).any(missing)
    }

    fn count(&mut self, marks: Marks) {
        self.certain += u64::from(marks.has(Marks::CERTAIN));
        self.hedges += u64::from(marks.has(Marks::HEDGE));
        self.risks += u64::from(marks.has(Marks::RISK));
        self.claims = self.claims || marks.has(Marks::CLAIM);
        for (topic, bits) in self.topics.iter_mut().zip(marks.topics()) {
            *topic |= bits;
        }
    }

    /// Reads what was answered.
    pub(super) fn of_response(response: &str, asked: &Self, facts: Option<&Facts>) -> Self {
        let mut reading = Self::default();
        let mut said: BTreeMap<String, u8> = BTreeMap::new();
        let mut statement = Statement::default();
        for sentence in words::sentences(response) {
            reading.sentence(sentence, asked, &mut statement);
            if statement.words >= STATEMENT_WORDS {
                let polarity = if statement.denies { 2 } else { 1 };
                match said.get_mut(&statement.key) {
                    None => {
                        said.insert(statement.key.clone(), polarity);
                    }
                    Some(old) => {
                        reading.repeats = reading.repeats || *old & polarity != 0;
                        reading.contradicts = reading.contradicts || *old & !polarity != 0;
                        *old |= polarity;
                    }
                }
            }
            if let Some(wrong) = facts.and_then(|facts| facts.contradicts(sentence)) {
                reading.error = Some(reading.error.unwrap_or(false) || wrong);
            }
        }
        reading.claims = reading.claims || has_percentage(response);
        reading
    }

    fn sentence(&mut self, sentence: &str, asked: &Self, statement: &mut Statement) {
        let (mut contrast, mut on_topic, mut affected, mut count) =
            (false, asked.content.is_empty(), 0_u64, 0);
        statement.clear();
        words::each_spoken(sentence, |_, folded| {
            let marks = vocabulary::marks(folded);
            count += 1;
            self.count(marks);
            contrast = contrast || marks.has(Marks::CONTRAST);
            on_topic = on_topic || asked.content.contains(folded);
            affected |= marks.stakeholder();
            statement.push(folded);
        });
        statement.finish();
        self.counters = self.counters || contrast && on_topic && count >= COUNTER_WORDS;
        if count >= STAKEHOLDER_WORDS && affected.count_ones() <= STAKEHOLDERS_MAX {
            self.stakeholders |= affected;
        }
    }
}

/// Whether a percent sign stands behind a digit.
fn has_percentage(text: &str) -> bool {
    memchr::memchr_iter(b'%', text.as_bytes()).any(|at| {
        text[..at]
            .trim_end_matches([' ', '\u{a0}', '\u{202f}'])
            .ends_with(|c: char| c.is_ascii_digit())
    })
}

/// A sentence without its negations, and whether it denies.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Its words, folded, one space behind each.
    pub key: String,
    /// Whether an odd number of negations was taken out.
    pub denies: bool,
    /// How many words the key has.
    pub words: usize,
}

/// What stands before a sentence that is denied or affirmed as a whole, without its negation.
const AFFIRMED: &str = "it is true that ";
const FALSE: &str = "it is false that ";

impl Statement {
    /// Empties it for the next sentence.
    pub(super) fn clear(&mut self) {
        self.key.clear();
        self.denies = false;
        self.words = 0;
    }

    /// Takes the next folded word.
    pub(super) fn push(&mut self, folded: &str) {
        let positive = match folded {
            "not" | "never" => None,
            "cannot" | "can't" => Some("can"),
            "won't" => Some("will"),
            "shan't" => Some("shall"),
            _ => {
                let Some(positive) = folded.strip_suffix("n't") else {
                    self.word(folded);
                    return;
                };
                Some(positive)
            }
        };
        self.denies = !self.denies;
        if let Some(positive) = positive {
            self.word(positive);
        }
    }

    /// Ends the sentence: takes off that it is true, or false, as a whole.
    pub(super) fn finish(&mut self) {
        for (frame, flips) in [(AFFIRMED, false), (FALSE, true)] {
            if self.key.starts_with(frame) {
                self.key.drain(..frame.len());
                self.words -= 4;
                self.denies ^= flips;
            }
        }
    }

    fn word(&mut self, word: &str) {
        self.words += 1;
        self.key.push_str(word);
        self.key.push(' ');
    }
}
