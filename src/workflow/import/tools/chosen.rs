//! Which score of a record is taken, and its value as a number.

use std::collections::BTreeSet;

use clover_num::Micro;

use super::json::Node;
use super::json::NodeFault;

/// Names of scores that a message shows.
const SHOWN: usize = 20;

/// Letters of Inspect, and what they are worth.
const LETTERS: [(&str, &str); 4] = [("C", "1"), ("I", "0"), ("P", "0.5"), ("N", "0")];

/// The score that is taken: the one that was asked for, else the only one there is.
///
/// # Errors
/// Where it is not there, or where there are several; the path is the option that says which.
pub(super) fn score(names: &BTreeSet<String>, asked: Option<&str>) -> Result<String, NodeFault> {
    let option = || "--score".to_owned();
    let there = || {
        let shown = names.iter().take(SHOWN).map(String::as_str);
        shown.collect::<Vec<_>>().join(", ")
    };
    match (asked, names.len()) {
        (Some(asked), _) if names.contains(asked) => Ok(asked.to_owned()),
        (Some(asked), 0) => {
            let what = format!("expected a score {asked:?}, found no score at all");
            Err((option(), what))
        }
        (Some(asked), _) => {
            let what = format!("expected one of {}, found {asked:?}", there());
            Err((option(), what))
        }
        (None, 0) => Err((String::new(), "expected a score, found none".to_owned())),
        (None, 1) => Ok(names.first().cloned().unwrap_or_default()),
        (None, _) => {
            let what = format!("expected the name of one score, as there are {}", there());
            Err((option(), what))
        }
    }
}

/// A value of Inspect as a number; `None` where it is `null`, as an unscored one is read.
///
/// # Errors
/// What is no number, flag or letter, and a list or map of which no member was asked for.
pub(super) fn value(node: &Node<'_>, member: Option<&str>) -> Result<Option<String>, NodeFault> {
    if node.is_list() || node.is_object() {
        return value_of_member(node, member);
    }
    single(node)
}

fn value_of_member(node: &Node<'_>, member: Option<&str>) -> Result<Option<String>, NodeFault> {
    let members: Vec<(String, Node<'_>)> = if node.is_list() {
        let all = node.list()?.into_iter().enumerate();
        all.map(|(at, node)| (at.to_string(), node)).collect()
    } else {
        let object = node.object()?;
        let all = object.record.0.iter();
        all.map(|(name, raw)| {
            let path = format!("{}.{name}", node.path);
            (name.to_string(), Node::new(raw, path))
        })
        .collect()
    };
    let names = || {
        let shown = members.iter().take(SHOWN).map(|(name, _)| name.as_str());
        shown.collect::<Vec<_>>().join(", ")
    };
    let Some(member) = member else {
        let what = format!(
            "expected the name of one member, as {} holds {}",
            node.path,
            names()
        );
        return Err(("--scorer-key".to_owned(), what));
    };
    let found = members.iter().find(|(name, _)| name == member);
    let Some((_, found)) = found else {
        let what = if members.is_empty() {
            format!("expected a member {member:?}, found no member at all")
        } else {
            format!("expected one of {}, found {member:?}", names())
        };
        return Err((node.path.clone(), what));
    };
    if found.is_list() || found.is_object() {
        return Err(found.fault("a number, a flag or one of C, I, P, N"));
    }
    single(found)
}

fn single(node: &Node<'_>) -> Result<Option<String>, NodeFault> {
    if node.raw.get() == "null" {
        return Ok(None);
    }
    if !node.is_text() {
        return node.number().map(Some);
    }
    let text = node.text()?;
    let letter = LETTERS.iter().find(|(letter, _)| *letter == text);
    match letter {
        Some((_, worth)) => Ok(Some((*worth).to_owned())),
        None if Micro::parse(&text).is_ok() => Ok(Some(text)),
        None => Err(node.fault("a number, a flag or one of C, I, P, N")),
    }
}
