//! What a report begins with, in plain words: what was asked and decided, on what evidence, what is not claimed; when, and by
//! whom. It says nothing that the bundle does not.

use std::collections::BTreeSet;

use clover_event::payload::report::ReportPart;
use clover_projection::bundle::Bundle;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Fact;

use crate::shown;

/// Names before the rest is counted.
const NAMES: usize = 6;

/// What a report begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportLead {
    /// What was decided.
    pub decided: String,
    /// What was asked, the evidence, and what is not claimed.
    pub rest: Vec<String>,
    /// When it was opened and ended, and by whom.
    pub people: String,
}

fn fact<'b>(bundle: &'b Bundle, part: ReportPart, key: &str) -> Option<&'b Fact> {
    let part = bundle.part(part)?;
    part.facts.iter().find(|fact| fact.key == key)
}

fn text(bundle: &Bundle, part: ReportPart, key: &str) -> Option<String> {
    fact(bundle, part, key).map(|fact| shown::alone(&fact.value))
}

/// Patches with what became of them.
fn fates(bundle: &Bundle) -> Vec<(String, String)> {
    let part = bundle.part(ReportPart::Decision);
    let table = part.and_then(|part| part.tables.iter().find(|table| table.key == "candidates"));
    let Some(table) = table else {
        return Vec::new();
    };
    let at = |key: &str| table.columns.iter().position(|column| column.key == key);
    let (Some(patch), Some(state)) = (at("patch"), at("state")) else {
        return Vec::new();
    };
    let word = |cells: &[Cell], at: usize| cells.get(at).map(shown::alone).unwrap_or_default();
    let rows = table.rows.iter();
    rows.map(|row| (word(&row.cells, patch), word(&row.cells, state)))
        .collect()
}

fn named(names: &[String]) -> String {
    let mut out = names[..names.len().min(NAMES)].join(", ");
    if names.len() > NAMES {
        out.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    out
}

fn decided(bundle: &Bundle) -> String {
    let outcome = text(bundle, ReportPart::Decision, "outcome");
    let fates = fates(bundle);
    let accepted: Vec<_> = fates
        .iter()
        .filter(|(_, state)| state.starts_with("accepted"))
        .map(|(patch, _)| patch.clone())
        .collect();
    if !accepted.is_empty() {
        let verb = if accepted.len() == 1 {
            "patch is"
        } else {
            "patches are"
        };
        return format!("Accepted {verb} {}.", named(&accepted));
    }
    let each: Vec<_> = fates
        .iter()
        .map(|(patch, state)| format!("{patch} {}", shown::criteria(state)))
        .collect();
    let of = if each.is_empty() {
        "none was proposed".to_owned()
    } else {
        named(&each)
    };
    match outcome.as_deref() {
        None => format!("Nothing is decided yet: the iteration is open ({of})."),
        Some("no candidate" | "none accepted") => format!("No patch is accepted: {of}."),
        Some(outcome) => format!("No patch is accepted: it ended as {outcome} ({of})."),
    }
}

fn evidence(bundle: &Bundle) -> String {
    let labelled = text(bundle, ReportPart::Labels, "labelled");
    let chosen = labelled.map_or("No label was read to choose on".to_owned(), |rows| {
        format!("{rows} labelled rows were read to choose on")
    });
    match text(bundle, ReportPart::Decision, "confirm") {
        Some(how) => format!("{chosen}; confirm labels were {how}."),
        None => format!("{chosen}; no confirm label was opened."),
    }
}

fn not_claimed(bundle: &Bundle) -> String {
    let lacking = bundle.parts.iter().filter(|part| !part.missing.is_empty());
    let lacking = lacking.count();
    let gaps = if lacking == 0 {
        String::new()
    } else {
        format!(" {lacking} parts lack something, and say what.")
    };
    format!("Nothing is claimed of other rows, judges or times than these.{gaps}")
}

/// The day of an entry, and who signed it.
fn signed(bundle: &Bundle, fact: Option<&Fact>) -> Option<String> {
    let seq = fact?.events.first()?;
    let entry = bundle.events.iter().find(|entry| entry.seq == *seq)?;
    let at = entry.recorded_at.to_string();
    let day: String = at.chars().take("2026-11-20".len()).collect();
    Some(format!("{day} by {}", entry.holder))
}

fn people(bundle: &Bundle) -> String {
    let part = ReportPart::Decision;
    let mut out = match signed(bundle, fact(bundle, part, "manifest")) {
        Some(opened) => format!("Opened {opened}"),
        None => "When it was opened is not on record".to_owned(),
    };
    match signed(bundle, fact(bundle, part, "outcome")) {
        Some(ended) => out.push_str(&format!(", ended {ended}.")),
        None => out.push_str(", not ended yet."),
    }
    let holders: BTreeSet<_> = bundle.events.iter().map(|of| of.holder.clone()).collect();
    let holders: Vec<_> = holders.into_iter().collect();
    out.push_str(&format!(" Its entries are signed by {}.", named(&holders)));
    out
}

/// What the report of a bundle begins with.
pub fn lead(bundle: &Bundle) -> ReportLead {
    let asked = "The question was whether a patch of the rubric makes the judge err less on labels of people.";
    ReportLead {
        decided: decided(bundle),
        rest: vec![asked.to_owned(), evidence(bundle), not_claimed(bundle)],
        people: people(bundle),
    }
}
