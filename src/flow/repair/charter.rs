//! What a search is held to besides its first program: the meta prompt of the optimizer, and the verifier.
//!
//! Both are closed JSON with a digest. `{"meta":"wf-meta/1","operators":["edit_prompt"],"rules":["…"]}` says which operators
//! are allowed and what a proposer is told. `{"verifier":"wf-verifier/1","cost_reference":2000,"critic_weight":0,
//! "filter":"crashes","held_share":1000000,"rules":[…]}` says how candidates are scored; its rules are checks of its own, which
//! follow those of the context. Shares and weights are millionths.

use clover_ground::canon;
use clover_ground::digest::Digest;

use crate::decode::Spot;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::number::Number;
use crate::repair::edit::Operator;
use crate::repair::edit_text::OPERATORS;
use crate::repair::feedback::Filter;
use crate::repair::feedback::ONE;
use crate::repair::feedback::VerifierSettings;
use crate::syntax;
use crate::task::ContextRule;
use crate::task::RULES_MAX;
use crate::value::Data;

/// Domain of the digest of a meta prompt.
const META_LABEL: &str = "clover/wf-meta/v1";
/// Domain of the digest of a verifier.
const VERIFIER_LABEL: &str = "clover/wf-verifier/v1";
/// Most bytes of either.
const BYTES_MAX: usize = 64 * 1024;

const FILTERS: &[(&str, Filter)] = &[
    ("crashes", Filter::Crashes),
    ("crashes_and_hard", Filter::CrashesAndHard),
];

/// Which edits a proposer may make, and what it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaPrompt {
    /// Operators that are allowed.
    pub operators: Vec<Operator>,
    /// What it is told, a sentence or a few each.
    pub rules: Vec<String>,
}

/// How candidates are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verifier {
    /// How they are scored.
    pub settings: VerifierSettings,
    /// Checks of its own, besides those of the context.
    pub rules: Vec<ContextRule>,
}

/// The word of an operator.
pub fn operator_word(operator: Operator) -> &'static str {
    let found = OPERATORS.iter().find(|(_, of)| *of == operator);
    found.map_or("", |(word, _)| word)
}

impl Default for MetaPrompt {
    fn default() -> Self {
        Self {
            operators: Operator::STANDARD.to_vec(),
            rules: Vec::new(),
        }
    }
}

impl MetaPrompt {
    /// Reads one.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let node = syntax::parse(text, BYTES_MAX)?;
        let fields = Spot::root(&node).fields(&["meta", "operators", "rules"])?;
        fields
            .need("meta")?
            .word(&[("wf-meta/1", ())], "the language \"wf-meta/1\"")?;
        let mut operators = Vec::new();
        for spot in fields.need("operators")?.list(OPERATORS.len())? {
            let operator = spot.word(OPERATORS, "the name of an operator")?;
            if operators.contains(&operator) {
                return Err(spot.fault(FaultKind::Twice(operator_word(operator).to_owned())));
            }
            operators.push(operator);
        }
        let rules = fields.need("rules")?.list(RULES_MAX)?;
        let rules = rules.iter().map(|spot| spot.text(400).map(str::to_owned));
        Ok(Self {
            operators,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// It as JSON.
    pub fn document(&self) -> Data {
        let operators = self.operators.iter().map(|of| operator_word(*of).into());
        let rules = self.rules.iter().map(|of| Data::text(of.as_str()));
        Data::object([
            ("meta", "wf-meta/1".into()),
            ("operators", Data::List(operators.collect())),
            ("rules", Data::List(rules.collect())),
        ])
    }

    /// SHA-256 of `clover/wf-meta/v1`, a zero byte and its canonical form.
    pub fn digest(&self) -> Digest {
        canon::digest(META_LABEL, &self.document())
    }
}

impl Verifier {
    /// Reads one.
    ///
    /// # Errors
    /// [`Fault`] at the first place that is refused.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let node = syntax::parse(text, BYTES_MAX)?;
        let fields = Spot::root(&node).fields(&[
            "verifier",
            "cost_reference",
            "critic_weight",
            "filter",
            "held_share",
            "rules",
        ])?;
        fields
            .need("verifier")?
            .word(&[("wf-verifier/1", ())], "the language \"wf-verifier/1\"")?;
        let share = |name: &'static str| {
            let spot = fields.need(name)?;
            spot.count(0, ONE, "millionths from 0 to 1000000")
        };
        let reference = fields.need("cost_reference")?;
        let settings = VerifierSettings {
            cost_reference: reference.count(1, 1_000_000_000, "tokens from 1")?,
            critic_weight: share("critic_weight")?,
            filter: fields
                .need("filter")?
                .word(FILTERS, "crashes or crashes_and_hard")?,
            held_share: share("held_share")?,
        };
        let rules = ContextRule::list(&fields.need("rules")?)?;
        Ok(Self { settings, rules })
    }

    /// It as JSON.
    pub fn document(&self) -> Data {
        let count = |of: u64| {
            let of = usize::try_from(of).unwrap_or(usize::MAX);
            Data::Number(Number::of_count(of))
        };
        let filter = FILTERS.iter().find(|(_, of)| *of == self.settings.filter);
        let rules = self.rules.iter().map(ContextRule::described);
        Data::object([
            ("verifier", "wf-verifier/1".into()),
            ("cost_reference", count(self.settings.cost_reference)),
            ("critic_weight", count(self.settings.critic_weight)),
            ("filter", filter.map_or("", |(word, _)| word).into()),
            ("held_share", count(self.settings.held_share)),
            ("rules", Data::List(rules.collect())),
        ])
    }

    /// SHA-256 of `clover/wf-verifier/v1`, a zero byte and its canonical form.
    pub fn digest(&self) -> Digest {
        canon::digest(VERIFIER_LABEL, &self.document())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_as_they_are_written() {
        let meta = MetaPrompt {
            operators: vec![Operator::EditPrompt, Operator::SplitStep],
            rules: vec!["Change one thing at a time.".to_owned()],
        };
        assert_eq!(MetaPrompt::parse(&meta.document().canonical()), Ok(meta));
        let rule = r#"{"id":"own","text":"total is there.","hard":false,"weight":2.5,"check":{"op":"exists","path":"y.total"}}"#;
        let text = format!(
            r#"{{"verifier":"wf-verifier/1","cost_reference":2000,"critic_weight":0,"filter":"crashes","held_share":1000000,"rules":[{rule}]}}"#
        );
        let verifier = Verifier::parse(&text).unwrap();
        assert_eq!(verifier.rules.len(), 1);
        let again = Verifier::parse(&verifier.document().canonical()).unwrap();
        assert_eq!(again.digest(), verifier.digest());
        assert_ne!(again.digest(), Verifier::default().digest());
        let twice = MetaPrompt::parse(
            r#"{"meta":"wf-meta/1","operators":["edit_prompt","edit_prompt"],"rules":[]}"#,
        );
        assert!(twice.is_err());
        assert!(Verifier::parse(&text.replace("2000", "0")).is_err());
    }
}
