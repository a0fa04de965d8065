//! What one workflow has and another has not, and how local the change is.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::patch::JsonPatch;
use crate::patch::OperationKind;
use crate::patch::find;
use crate::value::Data;
use crate::workflow::Workflow;

/// What differs between two workflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The patch that makes the second of the first.
    pub patch: JsonPatch,
    /// Values that differ, by their places.
    pub changes: Vec<Change>,
    /// How much of it there is.
    pub locality: Locality,
}

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where: `steps.draft.prompt.user`; a step stands by its id.
    pub path: String,
    /// What the first has there.
    pub from: Option<Data>,
    /// What the second has there.
    pub to: Option<Data>,
}

/// How much of a workflow a change touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locality {
    /// JSON values that are added, removed or replaced; of two values in one place, the larger count.
    pub ast_nodes: usize,
    /// How many more steps ask a model than before; retries of guards are no steps.
    pub new_llm_calls: usize,
    /// Characters of prompts, notes and arguments of map steps that are added or removed.
    pub prompt_chars: usize,
    /// Steps that are added, removed or changed.
    pub steps_touched: usize,
}

/// Steps of a document by id, each with its place.
fn steps(document: &Data) -> BTreeMap<&str, (usize, &Data)> {
    let steps = document.member("steps").and_then(Data::as_list);
    let steps = steps.unwrap_or_default().iter().enumerate();
    let steps = steps.filter_map(|(at, step)| Some((step.member("id")?.as_text()?, (at, step))));
    steps.collect()
}

/// What the second of two workflows has and the first has not.
pub fn between(a: &Workflow, b: &Workflow) -> Difference {
    let patch = JsonPatch::between(a.document(), b.document());
    let (before, after) = (steps(a.document()), steps(b.document()));
    let mut changes = Vec::new();
    for name in ["inputs", "defaults", "return"] {
        let path = name.to_owned();
        compare(
            &path,
            a.document().member(name),
            b.document().member(name),
            &mut changes,
        );
    }
    let ids: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let mut touched = 0;
    for id in &ids {
        let (from, to) = (before.get(id), after.get(id));
        let count = changes.len();
        let path = format!("steps.{id}");
        compare(
            &path,
            from.map(|(_, step)| *step),
            to.map(|(_, step)| *step),
            &mut changes,
        );
        touched += usize::from(changes.len() > count);
    }
    // Steps that stand in another order, and are the same otherwise.
    let order = |of: &BTreeMap<&str, (usize, &Data)>, other: &BTreeMap<&str, (usize, &Data)>| {
        let mut all: Vec<_> = of
            .iter()
            .filter(|(id, _)| other.contains_key(*id))
            .collect();
        all.sort_by_key(|(_, (at, _))| *at);
        all.into_iter()
            .map(|(id, _)| Data::text(*id))
            .collect::<Vec<_>>()
    };
    let (was, is) = (order(&before, &after), order(&after, &before));
    if was != is {
        touched += was.iter().zip(&is).filter(|(a, b)| a != b).count();
        changes.push(Change {
            path: "steps (order)".to_owned(),
            from: Some(Data::List(was)),
            to: Some(Data::List(is)),
        });
    }
    let locality = Locality {
        ast_nodes: nodes(a.document(), &patch),
        new_llm_calls: b.llm_steps().saturating_sub(a.llm_steps()),
        prompt_chars: changes.iter().map(prompt_chars).sum(),
        steps_touched: touched.min(ids.len()),
    };
    Difference {
        patch,
        changes,
        locality,
    }
}

fn compare(path: &str, a: Option<&Data>, b: Option<&Data>, out: &mut Vec<Change>) {
    match (a, b) {
        (a, b) if a == b => {}
        (Some(Data::Object(a)), Some(Data::Object(b))) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                compare(&format!("{path}.{name}"), a.get(name), b.get(name), out);
            }
        }
        (a, b) => out.push(Change {
            path: path.to_owned(),
            from: a.cloned(),
            to: b.cloned(),
        }),
    }
}

/// JSON values that a patch adds, removes or replaces, as it is applied.
pub(crate) fn nodes(document: &Data, patch: &JsonPatch) -> usize {
    let mut at_hand = document.clone();
    let mut count = 0;
    for operation in &patch.0 {
        let gone = find(&at_hand, &operation.at).map_or(0, Data::nodes);
        count += match &operation.kind {
            OperationKind::Add(value) => value.nodes(),
            OperationKind::Replace(value) => value.nodes().max(gone),
            OperationKind::Remove => gone,
            OperationKind::Test(_) => 0,
        };
        // An operation that does not fit changes nothing. The document is changed in place: a copy for each operation
        // would make the work quadratic.
        let _fits = operation.apply(&mut at_hand);
    }
    count
}

/// Whether a member of a step holds texts that may reach a model. What a map step makes of its arguments may stand in a
/// prompt: a constant, a template, a table.
fn holds_texts(name: &str) -> bool {
    matches!(name, "prompt" | "note" | "args")
}

/// Characters of prompts, notes and arguments of map steps that a change adds or removes.
fn prompt_chars(change: &Change) -> usize {
    fn texts(of: &Data, within: bool) -> usize {
        match of {
            Data::Text(text) if within => text.chars().count(),
            Data::Object(members) => members
                .iter()
                .map(|(name, of)| texts(of, within || holds_texts(name)))
                .sum(),
            Data::List(items) => items.iter().map(|of| texts(of, within)).sum(),
            _ => 0,
        }
    }
    let mut segments = change.path.split('.').skip(2);
    let within = segments.any(holds_texts);
    match (&change.from, &change.to) {
        (Some(Data::Text(a)), Some(Data::Text(b))) if within => edited(a, b),
        (from, to) => [from, to]
            .into_iter()
            .flatten()
            .map(|of| texts(of, within))
            .sum(),
    }
}

/// Characters removed and added between what two texts begin and end alike with.
fn edited(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let short = a.len().min(b.len());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let pairs = a.iter().rev().zip(b.iter().rev()).take(short - head);
    let tail = pairs.take_while(|(a, b)| a == b).count();
    a.len() + b.len() - 2 * (head + tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"{"ir":"wf/1","inputs":["x"],"steps":[
        {"id":"a","kind":"llm","prompt":{"user":"Task: {{x}}"},"reads":["x"],"writes":"a"},
        {"id":"b","kind":"map","fn":"lower","args":{"path":"a"},"writes":"y"}],"return":"y"}"#;

    #[test]
    fn a_difference_says_what_and_how_much() {
        let before = Workflow::parse(BEFORE).unwrap();
        let after = BEFORE.replace("Task: ", "Task in EUR: ").replace(
            r#"{"id":"b""#,
            r#"{"id":"k","kind":"check","hard":true,"expr":{"op":"exists","path":"a"}},{"id":"b""#,
        );
        let after = Workflow::parse(&after).unwrap();
        let difference = between(&before, &after);
        assert_eq!(
            difference.patch.apply(before.document()).as_ref(),
            Ok(after.document())
        );
        let paths: Vec<_> = difference
            .changes
            .iter()
            .map(|of| of.path.as_str())
            .collect();
        assert_eq!(paths, ["steps.a.prompt.user", "steps.k"]);
        let expected = Locality {
            ast_nodes: 8,
            new_llm_calls: 0,
            prompt_chars: 7,
            steps_touched: 2,
        };
        assert_eq!(difference.locality, expected);
        assert_eq!(between(&before, &before).locality, Locality::default());
        assert_eq!(edited("aXa", "aa"), 1);
        assert_eq!(edited("aa", "aaa"), 1);
    }

    #[test]
    fn texts_that_reach_a_prompt_through_a_map_step_count_as_prompts() {
        let before = BEFORE.replace(
            r#""fn":"lower","args":{"path":"a"}"#,
            r#""fn":"const","args":{"value":{"rules":["Be short."]}}"#,
        );
        let after = before.replace("Be short.", "Be very short.");
        let of = |text: &str| Workflow::parse(text).unwrap();
        let found = between(&of(&before), &of(&after)).locality;
        assert_eq!((found.prompt_chars, found.steps_touched), (23, 1));
    }

    /// Eight times the rows take about eight times the time; with a square they would take 64 times.
    #[test]
    fn a_large_difference_takes_time_in_its_size() {
        // Names of two letters, for 8,000 rows in the bytes that a workflow may have.
        let letters: Vec<char> = ('#'..='~').filter(|letter| *letter != '\\').collect();
        let table = |rows: usize, word: u8| {
            let name = |at: usize| [at / letters.len(), at % letters.len()].map(|at| letters[at]);
            let name = |at| name(at).iter().collect::<String>();
            let rows = (0..rows).map(|at| format!(r#""{}":{word}"#, name(at)));
            let rows = rows.collect::<Vec<_>>().join(",");
            let text = BEFORE.replace(
                r#""fn":"lower","args":{"path":"a"}"#,
                &format!(r#""fn":"const","args":{{"value":{{{rows}}}}}"#),
            );
            Workflow::parse(&text).unwrap()
        };
        let least = |rows: usize| {
            let (before, after) = (table(rows, 1), table(rows, 2));
            let times = (0..5).map(|_| {
                let start = std::time::Instant::now();
                let found = between(&before, &after);
                assert_eq!(found.locality.ast_nodes, rows);
                start.elapsed()
            });
            times.min().unwrap()
        };
        let (few, many) = (least(1_000), least(8_000));
        assert!(many < few * 24, "{few:?}, {many:?}");
    }

    #[test]
    fn a_print_is_read_again_as_the_same() {
        let before = Workflow::parse(BEFORE).unwrap();
        let again = Workflow::parse(&before.print()).unwrap();
        assert_eq!(again, before);
        assert_eq!(again.print(), before.print());
        assert_eq!(again.digest(), before.digest());
        assert!(
            before
                .print()
                .starts_with("{\n  \"ir\": \"wf/1\",\n  \"inputs\": [\"x\"],\n")
        );
    }
}
