//! What an arbiter says that has no recipe: who holds it to what it rests on, and why nothing is computed again here.

use crate::event::Kind;
use crate::ledger::RuleName;

/// A kind without a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The kind.
    pub kind: Kind,
    /// The rule that judges it whenever the log is verified.
    pub rule: RuleName,
    /// What there is to know, in a few words.
    pub why: &'static str,
}

/// One line per kind of an arbiter that no recipe computes again.
pub const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        kind: Kind::GateObserved,
        rule: RuleName::Observation,
        why: "copies the scores or labels of one unit, and each copy is held against what was recorded",
    },
    Elsewhere {
        kind: Kind::PlanSealed,
        rule: RuleName::Plan,
        why: "commits to a plan that a person wrote",
    },
    Elsewhere {
        kind: Kind::PlanRevealed,
        rule: RuleName::Plan,
        why: "opens that commitment, and has to fit it",
    },
    // The next kind without a recipe goes here.
];

/// Where a kind without a recipe is judged.
pub fn elsewhere(kind: Kind) -> Option<&'static Elsewhere> {
    ELSEWHERE.iter().find(|of| of.kind == kind)
}

#[cfg(test)]
mod tests {
    use crate::event::payload::Role;
    use crate::event::registry::Signers;
    use crate::workflow::recompute::RECIPES;
    use crate::workflow::recompute::recipe;

    use super::*;

    #[test]
    fn whatever_an_arbiter_says_is_computed_again_or_listed_with_its_reason() {
        for &kind in Kind::ALL {
            let found = (recipe(kind).is_some(), elsewhere(kind).is_some());
            assert_ne!(
                found,
                (true, true),
                "{kind} has a recipe and a reason for none"
            );
            if kind.signers() == Signers::Role(Role::Arbiter) {
                assert_ne!(
                    found,
                    (false, false),
                    "{kind} has neither recipe nor reason"
                );
            }
        }
        let twice = |kinds: Vec<Kind>| {
            let once: std::collections::BTreeSet<&str> =
                kinds.iter().map(|of| of.as_str()).collect();
            once.len() != kinds.len()
        };
        assert!(!twice(RECIPES.iter().map(|of| of.kind).collect()));
        assert!(!twice(ELSEWHERE.iter().map(|of| of.kind).collect()));
    }

    /// The table of a page, row by row, without its head.
    fn table<'t>(page: &'t str, head: &str) -> Vec<Vec<&'t str>> {
        let rows = page.lines().skip_while(|line| *line != head).skip(2);
        let rows = rows.take_while(|line| line.starts_with('|'));
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect()
    }

    #[test]
    fn the_page_lists_what_this_program_computes_and_what_it_does_not() {
        let page = include_str!("../../../schema/REPLAY.md");
        let computed = table(page, "| kind | signed by | computed again from |");
        let named: Vec<String> = computed.iter().map(|row| row[0].replace('`', "")).collect();
        let mut expected: Vec<String> = RECIPES.iter().map(|of| of.kind.to_string()).collect();
        expected.sort();
        assert_eq!(named, expected);
        for row in &computed {
            let kind: Kind = row[0].replace('`', "").parse().unwrap();
            assert_eq!(
                Signers::Role(row[1].parse().unwrap()),
                kind.signers(),
                "{kind}"
            );
            assert!(!row[2].is_empty(), "{kind}");
        }
        let other = table(page, "| kind | rule | why it is not computed again |");
        let expected: Vec<Vec<String>> = ELSEWHERE
            .iter()
            .map(|of| {
                vec![
                    format!("`{}`", of.kind),
                    format!("`{}`", of.rule),
                    of.why.to_owned(),
                ]
            })
            .collect();
        assert_eq!(other, expected);
    }
}
