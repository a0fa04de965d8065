//! Which rules judge a ledger, and the newer ones that it may adopt.

use serde::Serialize;

use crate::ledger::keyring::Keyring;
use crate::ledger::rulebooks;
use crate::ledger::rulebooks::Question;
use crate::ledger::rulebooks::RulebookAdoption;
use crate::ledger::rules::FORMAT;
use crate::view::View;

/// A rulebook with the entry after which it judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedRulebook {
    /// The entry that names it; it judges those after it.
    pub seq: u64,
    /// Its version.
    pub version: u32,
}

impl NamedRulebook {
    /// Every rulebook of a ledger.
    pub fn all(adopted: &[RulebookAdoption]) -> Vec<Self> {
        let of = |of: &RulebookAdoption| Self {
            seq: of.seq,
            version: of.version,
        };
        adopted.iter().map(of).collect()
    }
}

/// A question that the rulebook in force does not ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnaskedQuestion {
    /// Its name, as verdicts have it.
    pub question: &'static str,
    /// The first rulebook that asks it.
    pub rulebook: u32,
    /// The rule whose finding answers it.
    pub rule: &'static str,
    /// What is asked, in words.
    pub words: &'static str,
}

/// The rulebooks of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RulebooksShown {
    /// The version that judges the next entry.
    pub in_force: u32,
    /// The newest version that this program knows.
    pub newest: u32,
    /// Every rulebook that the ledger names, in the order of the log.
    pub rulebooks: Vec<NamedRulebook>,
    /// What the newest asks beside.
    pub not_asked: Vec<UnaskedQuestion>,
}

/// Questions that a rulebook does not ask.
pub fn unasked(version: u32) -> impl Iterator<Item = Question> {
    let all = Question::ALL.iter().copied();
    all.filter(move |question| question.since() > version)
}

/// Whether a newer rulebook may be adopted: a ledger of a format that is only read adopts nothing.
pub fn may_adopt(keyring: &Keyring) -> bool {
    keyring.rulebook() < rulebooks::NEWEST && keyring.format >= FORMAT
}

/// The rulebooks of a ledger, and what the newest asks beside.
pub fn show(keyring: &Keyring) -> View {
    let in_force = keyring.rulebook();
    let asked = |question: Question| UnaskedQuestion {
        question: question.as_str(),
        rulebook: question.since(),
        rule: question.rule().as_str(),
        words: question.words(),
    };
    let facts = RulebooksShown {
        in_force,
        newest: rulebooks::NEWEST,
        rulebooks: NamedRulebook::all(&keyring.rulebooks),
        not_asked: unasked(in_force).map(asked).collect(),
    };
    let mut view = View::of(&facts);
    view.line(rulebooks::in_words(&keyring.rulebooks));
    for of in &facts.not_asked {
        view.line(format!(
            "rulebook {} asks {}: {}",
            of.rulebook, of.question, of.words
        ));
    }
    if may_adopt(keyring) {
        return view.with_next("clover rulebook adopt");
    }
    view
}
