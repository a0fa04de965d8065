//! Outcomes of units as a file holds them, one unit of one metric a line, and the scores that they are.

use clover_ledger::Code;
use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::MetricId;
use clover_event::id::PolicyId;
use clover_event::payload::gate::GateSource;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::Manifest;
use clover_num::Count;
use clover_num::Micro;
use serde_json::Value;

use crate::gates::evidence::GateContext;
use crate::import;

/// One unit of one metric: the values of each draw in both arms, `None` where a draw failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Values of the baseline by draw.
    pub baseline: Vec<Option<Micro>>,
    /// Values of the candidate by draw.
    pub candidate: Vec<Option<Micro>>,
    /// The line that it stands on.
    pub line: u64,
    /// The metric; the main one when absent.
    pub metric: Option<MetricId>,
    /// The unit.
    pub unit: ItemId,
}

/// A line that cannot be read, or that the gate cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {}expected {expected}, found {found}", named(.field))]
pub struct OutcomeError {
    /// The line, from 1.
    pub line: u64,
    /// The field; empty for the whole.
    pub field: &'static str,
    /// What would be taken.
    pub expected: String,
    /// What stands there.
    pub found: String,
    /// Whether it is a value beyond the scale of the gate.
    pub is_off_scale: bool,
}

/// A field before what is wrong with it.
fn named(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

fn wrong(
    line: u64,
    field: &'static str,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> OutcomeError {
    let (expected, found) = (expected.into(), found.into());
    OutcomeError {
        line,
        field,
        expected,
        found,
        is_off_scale: false,
    }
}

/// Reads outcomes: JSON Lines of `{"unit":…,"baseline":…,"candidate":…}` with a number, a list of them by draw, or null
/// for a draw that failed, and optionally `metric`; or comma-separated values with these columns, draws apart by blanks.
///
/// # Errors
/// [`OutcomeError`] names the line and the field.
pub fn read(bytes: &[u8]) -> Result<Vec<Outcome>, OutcomeError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + memchr::memchr_iter(b'\n', before).count() as u64;
        wrong(line, "", "UTF-8", "other bytes")
    })?;
    // The mark with which some editors begin a file is no part of it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        return lines.map(|(line, text)| of_object(line, text)).collect();
    }
    of_table(text)
}

fn of_object(line: u64, text: &str) -> Result<Outcome, OutcomeError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| wrong(line, "", "a JSON object", error.to_string()))?;
    let Value::Object(fields) = value else {
        return Err(wrong(line, "", "a JSON object", "another value"));
    };
    let mut texts = BTreeMap::new();
    for (name, value) in &fields {
        let Some(name) = NAMES.into_iter().find(|known| known == name) else {
            return Err(wrong(
                line,
                "",
                format!("fields of {}", NAMES.join(", ")),
                name,
            ));
        };
        texts.insert(name, words(line, name, value)?);
    }
    outcome(line, &texts)
}

const NAMES: [&str; 4] = ["unit", "metric", "baseline", "candidate"];

/// A field's words: numbers of draws as they are written, `null` for a draw that failed.
fn words(line: u64, field: &'static str, value: &Value) -> Result<Vec<String>, OutcomeError> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Null => Ok(vec![FAILED.to_owned()]),
        Value::Array(draws) => {
            let each = draws.iter().map(|draw| match draw {
                Value::Number(number) => Ok(number.to_string()),
                Value::Null => Ok(FAILED.to_owned()),
                other => Err(wrong(line, field, "a number or null", other.to_string())),
            });
            each.collect()
        }
        other => Err(wrong(
            line,
            field,
            "a text, a number or a list",
            other.to_string(),
        )),
    }
}

const FAILED: &str = "null";

fn of_table(text: &str) -> Result<Vec<Outcome>, OutcomeError> {
    let records = import::csv::records(text)
        .map_err(|(line, found)| wrong(line, "", "a record of comma-separated values", found))?;
    let mut records = records.into_iter();
    let Some((_, header)) = records.next() else {
        return Err(wrong(
            1,
            "",
            "JSON Lines, or a header of columns",
            "nothing",
        ));
    };
    let mut columns = Vec::new();
    for name in &header {
        let Some(known) = NAMES.into_iter().find(|known| known == name) else {
            return Err(wrong(
                1,
                "",
                format!("columns of {}", NAMES.join(", ")),
                name,
            ));
        };
        columns.push(known);
    }
    let one = |(line, record): (u64, Vec<String>)| {
        if record.len() != columns.len() {
            let found = format!("{} fields", record.len());
            return Err(wrong(line, "", format!("{} fields", columns.len()), found));
        }
        let texts = columns.iter().zip(&record).map(|(name, cell)| {
            let empty = cell.trim().is_empty();
            let words = match *name {
                "metric" if empty => return (*name, Vec::new()),
                "baseline" | "candidate" if empty => vec![FAILED.to_owned()],
                "baseline" | "candidate" => cell.split_whitespace().map(str::to_owned).collect(),
                _ => vec![cell.clone()],
            };
            (*name, words)
        });
        outcome(line, &texts.collect())
    };
    records.map(one).collect()
}

fn outcome(
    line: u64,
    texts: &BTreeMap<&'static str, Vec<String>>,
) -> Result<Outcome, OutcomeError> {
    let needed = |name: &'static str| {
        let found = texts.get(name).filter(|words| !words.is_empty());
        found.ok_or_else(|| wrong(line, name, "a value", "none"))
    };
    let draws = |name: &'static str| {
        let each = needed(name)?.iter().map(|word| draw(line, name, word));
        each.collect::<Result<Vec<_>, _>>()
    };
    let one = |name: &'static str, words: &[String]| match words {
        [word] => Ok(word.clone()),
        _ => Err(wrong(
            line,
            name,
            "one name",
            format!("{} values", words.len()),
        )),
    };
    let unit = one("unit", needed("unit")?)?;
    let unit = unit.parse::<ItemId>().map_err(|error| {
        wrong(
            line,
            "unit",
            "the name of a unit",
            format!("{unit:?} ({error})"),
        )
    })?;
    let metric = texts.get("metric").filter(|words| !words.is_empty());
    let metric = metric.map(|words| {
        let name = one("metric", words)?;
        name.parse::<MetricId>().map_err(|error| {
            wrong(
                line,
                "metric",
                "the name of a metric",
                format!("{name:?} ({error})"),
            )
        })
    });
    Ok(Outcome {
        baseline: draws("baseline")?,
        candidate: draws("candidate")?,
        line,
        metric: metric.transpose()?,
        unit,
    })
}

fn draw(line: u64, field: &'static str, word: &str) -> Result<Option<Micro>, OutcomeError> {
    if word == FAILED {
        return Ok(None);
    }
    match Micro::parse(word) {
        Ok((value, false)) => Ok(Some(value)),
        Ok((_, true)) => Err(wrong(line, field, "at most six decimals", word)),
        Err(error) => Err(wrong(
            line,
            field,
            "a number",
            format!("{word:?} ({error})"),
        )),
    }
}

/// What a gate asks of outcomes, opened or not.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeTerms<'a> {
    /// The manifest in force.
    pub manifest: &'a Manifest,
    /// Where its values come from, the main metric first.
    pub sources: &'a [GateSource],
}

/// Holds outcomes against a gate before its order is drawn: each is of a unit and a metric of it, once, with as many draws as
/// planned and values on the scale. Answers with the units that have no outcome of the main metric.
///
/// # Errors
/// [`OutcomeError`], as [`scores`] but for what the order and exposures add.
pub fn before(
    of: OutcomeTerms<'_>,
    units: &[ItemId],
    outcomes: &[Outcome],
) -> Result<Vec<ItemId>, OutcomeError> {
    let places: BTreeMap<&ItemId, u64> = units.iter().zip(0..).collect();
    let mut sorted = BTreeMap::new();
    for outcome in outcomes {
        let Some(place) = places.get(&outcome.unit).copied() else {
            let found = outcome.unit.as_str();
            return Err(wrong(outcome.line, "unit", "a unit of the gate", found));
        };
        once(of.sources, place, outcome, &mut sorted)?;
    }
    let main = |place: u64| sorted.contains_key(&(place, 0));
    let without = places.iter().filter(|(_, place)| !main(**place));
    let without = without.map(|(unit, _)| (*unit).clone()).collect();
    all_of(of, sorted)?;
    Ok(without)
}

/// The scores that outcomes are, in the order drawn, each with its line. A draw that failed is none.
///
/// # Errors
/// [`OutcomeError`]: units that the gate has not drawn or not exposed, units twice, metrics and numbers of draws that
/// are not the manifest's, values of labels.
pub fn scores(
    of: GateContext<'_>,
    order: &[ItemId],
    outcomes: &[Outcome],
) -> Result<Vec<(u64, ScoreRecorded)>, OutcomeError> {
    let places: BTreeMap<&ItemId, u64> = order.iter().zip(0..).collect();
    let mut sorted = BTreeMap::new();
    for outcome in outcomes {
        let line = outcome.line;
        let Some(place) = places.get(&outcome.unit).copied() else {
            let found = Code::Order.of(&outcome.unit);
            return Err(wrong(line, "unit", "a unit of the gate's order", found));
        };
        if place >= of.record.units {
            let found = Code::Exposure.of(format_args!("{} at place {}", outcome.unit, place + 1));
            let expected = format!("one of the {} units exposed", of.record.units);
            return Err(wrong(line, "unit", expected, found));
        }
        once(&of.gate.sources, place, outcome, &mut sorted)?;
    }
    let version = of.record.in_force();
    let manifest = &version.ok_or_else(|| not_in_force(0))?.manifest;
    let of = OutcomeTerms {
        manifest,
        sources: &of.gate.sources,
    };
    all_of(of, sorted)
}

/// Outcomes by the place of their unit and by metric.
type OutcomesByPlace<'o> = BTreeMap<(u64, usize), &'o Outcome>;

fn not_in_force(line: u64) -> OutcomeError {
    wrong(line, "", "a gate whose manifest is in force", "none")
}

/// Takes an outcome in: of a metric of the gate, and of this unit the first.
fn once<'o>(
    sources: &[GateSource],
    place: u64,
    outcome: &'o Outcome,
    sorted: &mut OutcomesByPlace<'o>,
) -> Result<(), OutcomeError> {
    let line = outcome.line;
    let metric = match &outcome.metric {
        Some(name) => sources.iter().position(|source| source.metric == *name),
        None => Some(0),
    };
    let Some(metric) = metric else {
        let names = sources.iter().map(|source| source.metric.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let found = outcome.metric.as_ref().map_or("none", |name| name.as_str());
        return Err(wrong(line, "metric", format!("one of {names}"), found));
    };
    if let Some(earlier) = sorted.insert((place, metric), outcome) {
        let found = Code::DuplicateUnit.of(format_args!(
            "{} on line {} too",
            outcome.unit, earlier.line
        ));
        return Err(wrong(line, "unit", "each unit once", found));
    }
    Ok(())
}

/// The scores of sorted outcomes; of values beyond the scale every line is named.
fn all_of(
    of: OutcomeTerms<'_>,
    sorted: OutcomesByPlace<'_>,
) -> Result<Vec<(u64, ScoreRecorded)>, OutcomeError> {
    let (mut found, mut off) = (Vec::new(), Vec::new());
    for ((_, metric), outcome) in sorted {
        match of_outcome(of, metric, outcome, &mut found) {
            Ok(()) => {}
            Err(error) if error.is_off_scale => off.push(error),
            Err(error) => return Err(error),
        }
    }
    off.sort_by_key(|error| error.line);
    if off.is_empty() {
        return Ok(found);
    }
    let lines: Vec<u64> = off.iter().map(|error| error.line).collect();
    let mut first = off.swap_remove(0);
    first.found.push_str(&others(&lines));
    Err(first)
}

/// That other lines are off the scale too.
fn others(lines: &[u64]) -> String {
    const SHOWN: usize = 20;
    let shown = lines.iter().skip(1).take(SHOWN).map(ToString::to_string);
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    let more = match lines.len().saturating_sub(1 + SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "; {} lines are off the scale, also {}{more}",
        lines.len(),
        shown.join(", ")
    )
}

fn of_outcome(
    of: OutcomeTerms<'_>,
    metric: usize,
    outcome: &Outcome,
    found: &mut Vec<(u64, ScoreRecorded)>,
) -> Result<(), OutcomeError> {
    let line = outcome.line;
    let none = || not_in_force(line);
    let (terms, arms) = of
        .manifest
        .metric
        .as_ref()
        .zip(of.manifest.arms.as_ref())
        .ok_or_else(none)?;
    let source = of.sources.get(metric).ok_or_else(none)?;
    let Some(judge) = &source.judge else {
        let found = format!("a metric of revealed labels, {}", source.metric);
        return Err(wrong(line, "metric", "a metric of a judge's scores", found));
    };
    for (field, role, values) in [
        ("baseline", ArmRole::Baseline, &outcome.baseline),
        ("candidate", ArmRole::Candidate, &outcome.candidate),
    ] {
        if values.len() as u64 != terms.repeats.value() {
            let expected = format!("{} draws", terms.repeats);
            return Err(wrong(line, field, expected, values.len().to_string()));
        }
        let arm = arms.iter().find(|arm| arm.role == role).ok_or_else(none)?;
        let policy = arm.id.as_str().parse::<PolicyId>();
        let policy = policy.map_err(|error| {
            wrong(
                line,
                field,
                "an arm that names a policy",
                format!("{} ({error})", arm.id),
            )
        })?;
        for (draw, value) in (0..).zip(values) {
            let (Some(score_micro), Some(draw)) = (*value, Count::new(draw)) else {
                continue;
            };
            if score_micro < terms.scale_lo_micro || score_micro > terms.scale_hi_micro {
                let expected = format!(
                    "values from {} to {}",
                    terms.scale_lo_micro, terms.scale_hi_micro
                );
                let off = wrong(line, field, expected, Code::Scale.of(score_micro));
                return Err(OutcomeError {
                    is_off_scale: true,
                    ..off
                });
            }
            let score = ScoreRecorded {
                call: None,
                draw,
                item: outcome.unit.clone(),
                judge: judge.clone(),
                policy: policy.clone(),
                prompt: None,
                response: None,
                score_micro,
            };
            found.push((line, score));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn both_forms_say_the_same() {
        let lines = "{\"unit\":\"a\",\"baseline\":0.5,\"candidate\":[0.25,null]}\n\n{\"unit\":\"b\",\"metric\":\"cost\",\"baseline\":1,\"candidate\":null}\n";
        let table = "unit,metric,baseline,candidate\na,,0.5,0.25 null\nb,cost,1,\n";
        let (lines, table) = (
            read(lines.as_bytes()).unwrap(),
            read(table.as_bytes()).unwrap(),
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (lines[0].line, table[0].line, lines[1].line, table[1].line),
            (1, 2, 3, 3)
        );
        for (a, b) in lines.iter().zip(&table) {
            let b = Outcome {
                line: a.line,
                ..b.clone()
            };
            assert_eq!(*a, b);
        }
        assert_eq!(lines[0].candidate, [Micro::new(250_000), None]);
        assert_eq!(lines[1].candidate, [None]);
        assert_eq!(lines[1].metric.as_ref().unwrap().as_str(), "cost");
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, says) in [
            (
                "",
                "1: expected JSON Lines, or a header of columns, found nothing",
            ),
            (
                "unit,score\n",
                "1: expected columns of unit, metric, baseline, candidate, found score",
            ),
            (
                "unit,baseline,candidate\na,1\n",
                "2: expected 3 fields, found 2 fields",
            ),
            (
                "unit,baseline,candidate\na,1,x\n",
                "2: candidate: expected a number, found \"x\"",
            ),
            (
                "unit,baseline,candidate\na,1,0.1234567\n",
                "2: candidate: expected at most six decimals",
            ),
            (
                "{\"unit\":\"a\",\"baseline\":1}\n",
                "1: candidate: expected a value, found none",
            ),
            (
                "{\"unit\":\"a\",\"baseline\":1,\"candidate\":1}\n{\"unit\":7",
                "2: expected a JSON object",
            ),
            (
                "{\"unit\":\"a\",\"baseline\":1,\"candidate\":[\"1\"]}\n",
                "1: candidate: expected a number or null",
            ),
            (
                "{\"unit\":\"a\",\"baseline\":1,\"candidate\":1,\"n\":1}\n",
                "1: expected fields of unit",
            ),
        ] {
            assert!(told(text).starts_with(says), "{}", told(text));
        }
    }
}
