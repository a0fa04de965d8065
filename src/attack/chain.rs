//! Edits in turn.

use std::fmt;
use std::str::FromStr;

use crate::operator::Edit;
use crate::operator::EditError;

/// Most steps of a chain.
pub const DEPTH_MAX: usize = 3;

/// An edit with the seed of its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// What is done.
    pub edit: Edit,
    /// What its draws start from.
    pub seed: u32,
}

impl fmt::Display for Step {
    /// The edit and its seed: `padding:100@7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.edit, self.seed)
    }
}

impl FromStr for Step {
    type Err = EditError;
    fn from_str(text: &str) -> Result<Self, EditError> {
        let wrong = || EditError(text.to_owned());
        let (edit, seed) = text.split_once('@').ok_or_else(wrong)?;
        let step = Self {
            edit: edit.parse()?,
            seed: seed.parse().map_err(|_| wrong())?,
        };
        (step.to_string() == text).then_some(step).ok_or_else(wrong)
    }
}

/// One to three steps, each on what the one before it left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain(Vec<Step>);

/// What a chain made of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttackedText {
    /// The text.
    pub text: String,
    /// Whether it differs from what it was.
    pub changed: bool,
    /// Whether it violates obligations by construction: a step that violates changed it. What an engine finds in the
    /// text may put it into the violating set all the same.
    pub violates: bool,
}

impl Chain {
    /// `None` without a step, or with more than [`DEPTH_MAX`].
    pub fn new(steps: Vec<Step>) -> Option<Self> {
        (1..=DEPTH_MAX)
            .contains(&steps.len())
            .then_some(Self(steps))
    }

    /// One step.
    pub fn one(step: Step) -> Self {
        Self(vec![step])
    }

    /// The steps, in turn.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The chain with one step more; `None` when it is full.
    #[must_use]
    pub fn extended(&self, step: Step) -> Option<Self> {
        let mut steps = self.0.clone();
        steps.push(step);
        Self::new(steps)
    }

    /// Applies the steps in turn.
    pub fn apply(&self, text: &str) -> AttackedText {
        let (mut current, mut violates) = (text.to_owned(), false);
        for step in &self.0 {
            let next = step.edit.apply(&current, u64::from(step.seed));
            violates = violates || step.edit.operator().violates() && next != current;
            current = next;
        }
        let changed = current != text;
        AttackedText {
            text: current,
            changed,
            violates: violates && changed,
        }
    }
}

impl fmt::Display for Chain {
    /// Steps joined by `+`: `fake_citation:1:unlisted@3+padding:50@9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("+")?;
            }
            step.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for Chain {
    type Err = EditError;
    fn from_str(text: &str) -> Result<Self, EditError> {
        let steps: Result<Vec<Step>, _> = text.split('+').map(str::parse).collect();
        Self::new(steps?).ok_or_else(|| EditError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Operator;

    fn edits() -> Vec<Edit> {
        Operator::ALL
            .into_iter()
            .flat_map(Operator::edits)
            .collect()
    }

    const TEXT: &str = "## Dose\n\nThe usual dose **is** 20 mg, and it may be raised to 40 mg after 2 weeks. It is \
                        safe with food. Please ask for help!";

    #[test]
    fn names_and_settings_are_told_apart_and_read_back() {
        assert!(
            Operator::ALL
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str())
        );
        assert_eq!("length_padding".parse(), Ok(Operator::Padding));
        let edits = edits();
        assert_eq!(edits.len(), 28);
        for edit in &edits {
            assert_eq!(edit.to_string().parse(), Ok(*edit));
        }
        let chain: Chain = "fake_citation:1:unlisted@3+padding:50@9".parse().unwrap();
        assert_eq!(chain.to_string(), "fake_citation:1:unlisted@3+padding:50@9");
        for wrong in [
            "",
            "padding:50",
            "padding:51@1",
            "padding:50@01",
            "padding:50@+1",
            "style_strip@4294967296",
        ] {
            assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
        }
        let four = ["style_strip@1"; 4].join("+");
        assert!(four.parse::<Chain>().is_err());
    }

    #[test]
    fn every_edit_changes_a_common_text_and_says_whether_it_violates() {
        for edit in edits() {
            let done = Chain::one(Step { edit, seed: 5 }).apply(TEXT);
            assert!(done.changed, "{edit}");
            assert_eq!(done.violates, edit.operator().violates(), "{edit}");
        }
        // A step that finds nothing to turn violates nothing.
        let flip = Step {
            edit: Edit::FactFlip {
                first: crate::Flip::Unit,
            },
            seed: 1,
        };
        let done = Chain::one(flip).apply("Nothing here.");
        assert!(!done.changed && !done.violates);
    }

    /// Any text; and text near what operators look for, in forms that are longer or shorter once folded.
    fn texts() -> impl Strategy<Value = String> {
        let near = "([0-9２½①]{1,3}[.,]?|m|g|mg|ｇ|㎎|𝒢|İ|ſ|K|ﬁ|\u{200d}|\u{301}|’t|'T| not| is|isn|ＮＯＴ|safe|Ｌow|may|www\\.|[ .!?*_#\n-]){0,12}";
        prop_oneof![any::<String>(), near]
    }

    proptest! {
        #[test]
        fn any_chain_on_any_text_ends_and_repeats(
            text in texts(),
            picks in prop::collection::vec((0..28_usize, any::<u32>()), 1..=3),
        ) {
            let all = edits();
            let steps = picks.iter().map(|(at, seed)| Step { edit: all[*at], seed: *seed }).collect();
            let chain = Chain::new(steps).unwrap();
            let done = chain.apply(&text);
            prop_assert_eq!(&chain.apply(&text), &done);
            prop_assert_eq!(done.changed, done.text != text);
            // Growth is bounded: padding by 180 % and its last sentence, three times over.
            prop_assert!(done.text.len() <= 400 * (text.len() + 1000));
            prop_assert_eq!(chain.to_string().parse::<Chain>(), Ok(chain));
        }

        #[test]
        fn what_settles_a_text_leaves_it_settled(text in texts(), seed in any::<u64>()) {
            for edit in [Edit::StyleStrip, Edit::AuthorityTone { credential: true }, Edit::AuthorityTone { credential: false }] {
                let once = edit.apply(&text, seed);
                prop_assert_eq!(&edit.apply(&once, seed ^ 1), &once, "{}", edit);
            }
        }
    }
}
