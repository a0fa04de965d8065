//! What the built-in outer loop proposes for a class of triggers, from runs whose truth is known: the same of the same record.
//!
//! A false positive is answered by checks that every truth keeps and that outputs which passed in vain break; a false negative
//! by a verifier without those of its own checks that useful outputs break; stagnation by a meta prompt without the operator
//! that failed most; a slow success by a template, the workflow that won.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::payload::meta::MetaCase;
use clover_event::payload::repair::WfOperator;
use clover_flow::item::Item;
use clover_flow::path::is_name;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::charter::Verifier;
use clover_flow::task::ContextRule;
use clover_flow::value::Data;
use clover_projection::wf::WfRun;

use crate::wf::words;

/// The name of the proposer, with its version.
pub const PROPOSER: &str = "lessons/1";
/// Most checks that one update adds.
const CHECKS_MAX: usize = 3;
/// Most values of a member that a check lists.
const VALUES_MAX: usize = 6;
/// Least items for each value that a check lists, and least items of a shape: fewer say nothing of what else is right.
const ITEMS_FOR_EACH: usize = 4;
/// Most characters of a text whose shape is a check.
const SHAPE_MAX: usize = 40;
/// The largest reference cost that a verifier may have, in tokens.
const REFERENCE_MAX: u64 = 1_000_000_000;

/// What is proposed, and why in a few words.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson<T> {
    /// What takes the place of its parent.
    pub document: T,
    /// Why.
    pub why: String,
}

/// A check as a rule of a verifier; `None` where it is none in the language.
fn rule(id: &str, text: &str, check: Data) -> Option<ContextRule> {
    let described = Data::object([("id", id.into()), ("text", text.into()), ("check", check)]);
    let mut whole = Verifier::default().document();
    if let Data::Object(members) = &mut whole {
        members.insert("rules".to_owned(), Data::List(vec![described]));
    }
    let read = Verifier::parse(&whole.canonical()).ok()?;
    read.rules.into_iter().next()
}

fn path(of: String) -> Data {
    Data::object([("path", Data::Text(of))])
}

/// The paths of single values that an item is given: one name below an input.
fn given(item: &Item) -> BTreeMap<String, &Data> {
    let mut all = BTreeMap::new();
    for (root, value) in &item.inputs {
        if let (true, Data::Object(members)) = (root == "x" || root == "c", value) {
            let named = members.iter().filter(|(name, _)| is_name(name));
            all.extend(named.map(|(name, value)| (format!("{root}.{name}"), value)));
        }
    }
    all
}

/// The pattern of texts that have the digits of this one where it has them, and its other characters.
fn shape(text: &str) -> Option<String> {
    let is_plain = |of: char| of.is_ascii_alphanumeric() || " .,:/_-".contains(of);
    let may = text.chars().count() <= SHAPE_MAX
        && text.chars().all(is_plain)
        && text.chars().any(|of| of.is_ascii_digit());
    may.then(|| {
        let body: String = text
            .chars()
            .map(|of| match of {
                '0'..='9' => "\\d".to_owned(),
                '.' => "\\.".to_owned(),
                of => of.to_string(),
            })
            .collect();
        format!("^{body}$")
    })
}

/// Checks of one member that all truths might keep: that it is there, that it is what an input says, that it is one of few
/// values, that it is written alike.
fn checks_of(name: &str, right: &[Item]) -> Vec<(String, Data)> {
    let values = right
        .iter()
        .filter_map(|item| item.truth.as_ref()?.member(name));
    let values: Vec<&Data> = values.collect();
    let place = || format!("y.{name}");
    let there = Data::object([("op", "exists".into()), ("path", Data::Text(place()))]);
    let mut all = vec![(format!("{name} is there."), there)];
    let known = right.first().map(given).unwrap_or_default();
    for input in known.keys() {
        let pair = Data::object([
            ("op", "eq".into()),
            ("a", path(place())),
            ("b", path(input.clone())),
        ]);
        all.push((format!("{name} is what {input} says."), pair));
    }
    let distinct: BTreeSet<&Data> = values.iter().copied().collect();
    let texts: Option<Vec<&str>> = distinct.iter().map(|of| of.as_text()).collect();
    let Some(texts) = texts else {
        return all;
    };
    if distinct.len() <= VALUES_MAX && values.len() >= ITEMS_FOR_EACH * distinct.len() {
        let list = distinct.iter().copied().cloned().collect();
        let among = Data::object([
            ("op", "in".into()),
            ("a", path(place())),
            ("b", Data::object([("const", Data::List(list))])),
        ]);
        all.push((format!("{name} is one of: {}.", texts.join(", ")), among));
    }
    let shapes: BTreeSet<Option<String>> = texts.iter().map(|of| shape(of)).collect();
    let one = shapes.into_iter().collect::<Vec<_>>();
    if let ([Some(pattern)], true) = (one.as_slice(), values.len() >= ITEMS_FOR_EACH) {
        let like = Data::object([
            ("op", "regex".into()),
            ("path", Data::Text(place())),
            ("pattern", pattern.as_str().into()),
        ]);
        let example = texts.first().copied().unwrap_or_default();
        all.push((format!("{name} is written like {example}."), like));
    }
    all
}

/// An id that no rule has.
fn free(taken: &BTreeSet<String>, name: &str) -> String {
    let name: String = name.chars().take(16).collect();
    let all = (1..).map(|at| format!("learnt-{name}-{at}"));
    let mut all = all.filter(|id| !taken.contains(id));
    all.next().unwrap_or_default()
}

/// A verifier with further checks: each is kept by what is right of every item, and the outputs that passed in vain break it.
/// Those come first that catch the most outputs that no check before them catches. `None` where no check catches any.
pub fn stricter(
    verifier: &Verifier,
    context: &[ContextRule],
    (right, wrong): (&[Item], &[(Item, Data)]),
) -> Option<Lesson<Verifier>> {
    let truths: Vec<(&Item, &Data)> = right
        .iter()
        .filter_map(|item| Some((item, item.truth.as_ref()?)))
        .collect();
    let members = truths.iter().flat_map(|(_, truth)| match truth {
        Data::Object(members) => members.keys().cloned().collect(),
        _ => Vec::new(),
    });
    let members: BTreeSet<String> = members.filter(|name| is_name(name)).collect();
    let known = context.iter().chain(&verifier.rules);
    let mut taken: BTreeSet<String> = known.map(|of| of.id.clone()).collect();
    let mut found = Vec::new();
    for name in &members {
        for (text, check) in checks_of(name, right) {
            let Some(rule) = rule(&free(&taken, name), &text, check) else {
                continue;
            };
            if truths.iter().all(|(item, truth)| rule.holds(item, truth)) {
                taken.insert(rule.id.clone());
                found.push(rule);
            }
        }
    }
    let mut left: Vec<&(Item, Data)> = wrong.iter().collect();
    let (mut rules, mut caught) = (verifier.rules.clone(), 0);
    for _ in 0..CHECKS_MAX {
        let broken = |rule: &ContextRule| {
            let all = left.iter().filter(|(item, y)| !rule.holds(item, y));
            all.count()
        };
        let best = found.iter().map(|rule| (broken(rule), rule));
        // Of equals the first: names in their order, and the plainest check of each before the others.
        let best = best.rev().max_by_key(|(count, _)| *count);
        let Some((count, rule)) = best.filter(|(count, _)| *count > 0) else {
            break;
        };
        left.retain(|(item, y)| rule.holds(item, y));
        caught += count;
        rules.push(rule.clone());
    }
    (caught > 0).then(|| Lesson {
        why: format!(
            "Checks that every truth keeps, and that {caught} of {} outputs break which passed and are wrong.",
            wrong.len()
        ),
        document: Verifier {
            rules,
            settings: verifier.settings,
        },
    })
}

/// A verifier without those of its own checks that useful outputs break; where there are none, one to which cost says half as
/// much. `None` where nothing can be loosened.
pub fn looser(verifier: &Verifier, useful: &[(Item, Data)]) -> Option<Lesson<Verifier>> {
    let mut next = verifier.clone();
    let keeps = |rule: &ContextRule| useful.iter().all(|(item, y)| rule.holds(item, y));
    next.rules.retain(keeps);
    let dropped = verifier.rules.len() - next.rules.len();
    if dropped > 0 {
        let why = format!("Without {dropped} checks of its own that outputs of use break.");
        return Some(Lesson {
            document: next,
            why,
        });
    }
    let reference = verifier.settings.cost_reference;
    next.settings.cost_reference = reference.saturating_mul(2).min(REFERENCE_MAX);
    (next.settings.cost_reference > reference).then(|| Lesson {
        document: next,
        why: "No check of its own is broken: cost says half as much.".to_owned(),
    })
}

/// Tries of each operator that came to nothing: edits that were rejected, and candidates no better than their parents.
fn failures(runs: &[&WfRun]) -> BTreeMap<WfOperator, (u64, u64)> {
    let mut all: BTreeMap<WfOperator, (u64, u64)> = BTreeMap::new();
    for run in runs {
        for of in &run.rejected {
            let tries = all.entry(of.operator).or_default();
            *tries = (tries.0 + 1, tries.1 + 1);
        }
        for (id, of) in &run.candidates {
            let Some((operator, parent)) = of.operator.zip(of.parent) else {
                continue;
            };
            let tries = all.entry(operator).or_default();
            let gained = run.worth(id).zip(run.worth(&parent));
            let is_gain = gained.is_some_and(|(own, parent)| own > parent);
            *tries = (tries.0 + u64::from(!is_gain), tries.1 + 1);
        }
    }
    all
}

/// A meta prompt without the operator whose tries came to nothing most often. `None` where it is the only one, or none failed.
pub fn narrower(meta: &MetaPrompt, runs: &[&WfRun]) -> Option<Lesson<MetaPrompt>> {
    if meta.operators.len() < 2 {
        return None;
    }
    let all = failures(runs);
    let tries = |of| all.get(&words::operator(of)).copied().unwrap_or_default();
    let worst = meta.operators.iter().rev().max_by_key(|of| tries(**of).0);
    let worst = *worst.filter(|of| tries(**of).0 > 0)?;
    let (failed, tried) = tries(worst);
    let mut next = meta.clone();
    next.operators.retain(|of| *of != worst);
    let word = words::operator(worst);
    Some(Lesson {
        document: next,
        why: format!("Without {word}: {failed} of its {tried} tries gained nothing."),
    })
}

/// The case whose winner is worth the most, then the one that spent the fewest tokens, then the first by name.
pub fn distilled<'c>(cases: &'c [MetaCase], runs: &[&WfRun]) -> Option<&'c MetaCase> {
    let of = |case: &MetaCase| {
        let mut all = runs.iter().filter(|run| run.said.run == case.run);
        let run = all.next()?;
        let worth = run.worth(&case.candidate)?;
        Some((worth, std::cmp::Reverse(run.spent.tokens())))
    };
    let known = cases.iter().filter(|case| of(case).is_some());
    known.rev().max_by_key(|case| of(case))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(at: u64, truth: &str) -> Item {
        let line = format!(r#"{{"id":"i{at}","input":{{"x":{{"paid":{at}}}}},"truth":{truth}}}"#);
        Item::parse(&line, 1).unwrap()
    }

    fn data(text: &str) -> Data {
        Data::parse(text, 1 << 12).unwrap()
    }

    #[test]
    fn a_check_is_kept_by_every_truth_and_catches_what_is_wrong() {
        let right: Vec<Item> = (1..=8)
            .map(|at| item(at, &format!(r#"{{"amount":{at},"word":"a"}}"#)))
            .collect();
        let wrong = |at: usize, text: &str| (right[at].clone(), data(text));
        let wrong = [
            wrong(2, r#"{"amount":1,"word":"a"}"#),
            wrong(3, r#"{"amount":1,"word":"a"}"#),
            wrong(4, r#"{"amount":5}"#),
        ];
        let verifier = Verifier::default();
        let found = stricter(&verifier, &[], (&right, &wrong)).unwrap();
        let texts: Vec<&str> = found
            .document
            .rules
            .iter()
            .map(|of| of.text.as_str())
            .collect();
        assert_eq!(texts, ["amount is what x.paid says.", "word is there."]);
        assert!(found.why.contains("3 of 3"), "{}", found.why);
        // It reads as it is written, so that a run may begin from it.
        let again = Verifier::parse(&found.document.document().canonical()).unwrap();
        assert_eq!(again.digest(), found.document.digest());
        // Nothing is learnt where what is wrong keeps whatever the truths keep.
        let alike = [(right[0].clone(), data(r#"{"amount":1,"word":"a"}"#))];
        assert_eq!(stricter(&verifier, &[], (&right, &alike)), None);
        let loose = looser(
            &found.document,
            &[(right[2].clone(), data(r#"{"word":"b"}"#))],
        );
        assert_eq!(loose.unwrap().document.rules.len(), 1);
    }

    #[test]
    fn a_text_has_the_shape_of_its_digits() {
        assert_eq!(shape("27.11.2026").unwrap(), r"^\d\d\.\d\d\.\d\d\d\d$");
        assert_eq!(shape("none"), None);
        assert_eq!(shape("(1)"), None);
    }
}
