//! What "did you mean" may offer: never a verb that cannot be taken back.

use std::ffi::OsString;

use clap::error::ContextKind;
use clap::error::ContextValue;

use crate::cli::refusals::command_line::verb_before;

/// Verbs that destroy, open, spend, decide, put in force or end something for good. A slip of the fingers is never led to one.
pub(in crate::cli) const FOR_GOOD: &[&str] = &[
    "access release",
    "approve",
    "assume waive",
    "audit transport",
    "battery close",
    "confirm seal",
    "confirm unseal",
    "deploy activate",
    "deploy recalibrate",
    "deploy rollback",
    "erase",
    "experiment close",
    "experiment split",
    "exposure open",
    "family close",
    "gate continue",
    "gate decide",
    "gate look",
    "gate open",
    "gate promote",
    "gate revoke",
    "generator rollback",
    "generator validate",
    "iterate accept",
    "iterate close",
    "iterate confirm",
    "iterate gate",
    "iterate run",
    "iterate seal",
    "judge stop",
    "key compromise",
    "key retire",
    "key rotate-log",
    "patch withdraw",
    "prereg amend",
    "prereg deviation",
    "prereg plan reveal",
    "prereg plan seal",
    "prereg sign",
    "prompt commit",
    "repair stop",
    "rulebook adopt",
    "seal accept",
    "seal label",
    "seal reveal",
    "sgd promote",
    "sgd stop",
    "sgd test",
    "submit",
    "sync",
    "synth stop",
];

/// Takes verbs of [`FOR_GOOD`] out of what a wrong command line is told it may have meant.
pub(in crate::cli) fn without_those_for_good(
    mut error: clap::Error,
    args: &[OsString],
) -> clap::Error {
    // What answers every question with yes is not led to either.
    let asks_nothing =
        |value: &ContextValue| matches!(value, ContextValue::String(name) if name == "--yes");
    if error
        .get(ContextKind::SuggestedArg)
        .is_some_and(asks_nothing)
    {
        error.remove(ContextKind::SuggestedArg);
    }
    let kind = ContextKind::SuggestedSubcommand;
    let offered = match error.remove(kind) {
        Some(ContextValue::Strings(offered)) => offered,
        Some(ContextValue::String(offered)) => vec![offered],
        _ => return error,
    };
    let before = verb_before(args);
    let is_safe = |name: &String| {
        let path = [&before[..], std::slice::from_ref(name)].concat().join(" ");
        !FOR_GOOD.contains(&path.as_str())
    };
    let safe: Vec<String> = offered.into_iter().filter(is_safe).collect();
    if !safe.is_empty() {
        error.insert(kind, ContextValue::Strings(safe));
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::command;
    use crate::cli::parse;

    /// Paths of all verbs that do something.
    fn verbs(command: &clap::Command, path: &[String], into: &mut Vec<Vec<String>>) {
        for verb in command.get_subcommands() {
            let path = [path, &[verb.get_name().to_owned()]].concat();
            if verb.get_subcommands().next().is_none() {
                into.push(path.clone());
            }
            verbs(verb, &path, into);
        }
    }

    fn all() -> Vec<Vec<String>> {
        let mut all = Vec::new();
        verbs(&command(), &[], &mut all);
        all
    }

    /// A word with a slip: a letter left out, doubled, or exchanged with the next.
    fn slips(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let mut slips = Vec::new();
        for at in 0..letters.len() {
            let mut without = letters.clone();
            without.remove(at);
            let mut doubled = letters.clone();
            doubled.insert(at, letters[at]);
            slips.extend([without, doubled]);
            if at + 1 < letters.len() {
                let mut exchanged = letters.clone();
                exchanged.swap(at, at + 1);
                slips.push(exchanged);
            }
        }
        slips
            .into_iter()
            .map(|slip| slip.into_iter().collect())
            .collect()
    }

    #[test]
    fn the_list_names_verbs_that_exist_in_order() {
        let all: BTreeSet<String> = all().iter().map(|path| path.join(" ")).collect();
        for path in FOR_GOOD {
            assert!(all.contains(*path), "{path} is no verb");
        }
        assert!(FOR_GOOD.is_sorted_by(|one, two| one < two));
    }

    #[test]
    fn every_verb_whose_name_ends_something_is_on_the_list() {
        let words = [
            "accept",
            "activate",
            "close",
            "compromise",
            "decide",
            "erase",
            "promote",
            "release",
            "retire",
            "reveal",
            "revoke",
            "rollback",
            "unseal",
            "withdraw",
        ];
        for path in all() {
            let last = path.last().unwrap().as_str();
            let path = path.join(" ");
            assert!(
                !words.contains(&last) || FOR_GOOD.contains(&path.as_str()),
                "{path}"
            );
        }
    }

    #[test]
    fn no_slip_is_led_to_a_verb_for_good_and_others_are_helped() {
        let mut helped = 0;
        for path in all() {
            let (last, before) = path.split_last().unwrap();
            for slip in slips(last) {
                let words = ["clover"]
                    .into_iter()
                    .chain(before.iter().map(String::as_str));
                let args: Vec<OsString> = words.chain([slip.as_str()]).map(Into::into).collect();
                let Err(error) = parse(&args) else {
                    continue;
                };
                let text = error.render().to_string();
                let Some(tip) = text.lines().find(|line| line.contains("similar")) else {
                    continue;
                };
                helped += 1;
                for of in FOR_GOOD {
                    let (of_before, name) = of.rsplit_once(' ').unwrap_or(("", of));
                    let here = of_before == before.join(" ");
                    assert!(
                        !here || !tip.contains(&format!("'{name}'")),
                        "{args:?}: {tip}"
                    );
                }
            }
        }
        assert!(helped > 100, "{helped}");
    }
}
