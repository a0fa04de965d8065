//! Gates on dev, and what is sealed for confirm.

use serde_json::Value;
use serde_json::json;

use crate::cli::iterate::ground::number;
use crate::cli::iterate::ground::word;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::sequential;
use crate::cli::ui;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::ground::digest::Digest;
use crate::projection::iterations::record::Record;
use crate::session::iterate::confirm::Confirmation;
use crate::session::iterate::gates::GatedOnDev;
use crate::session::iterate::gates::SealedCandidates;
use crate::workflow::predicate;
use crate::workflow::predicate::Held;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    #[command(flatten)]
    pub program: Program,
}

/// The gates on dev, patch by patch.
pub(super) fn gated(record: &Record, of: &GatedOnDev) -> (String, Value) {
    let (mut text, mut data) = (String::new(), Vec::new());
    for patch in &of.patches {
        let name = patch.patch.to_string();
        let (table, gates) = judged(record, patch.candidate, GateSplit::Dev);
        text.push_str(&format!("{name}\n"));
        text.push_str(&table);
        data.push(json!({"patch": name, "gates": gates}));
        if let Some(words) = &patch.rejected {
            text.push_str(&ui::wrapped(&ui::escape(&format!(
                "{name} rejected on dev: {words}"
            ))));
        }
    }
    (text, json!({"patches": data}))
}

/// The numbers of a gate beside what they are held to.
fn lines(gate: &GateEvaluated) -> Vec<(String, String, String)> {
    let held = Held::under(&gate.thresholds, gate.thresholds.profile);
    let shown = (predicate::gate(gate.gate).show)(&gate.evidence, &held);
    shown
        .into_iter()
        .map(|one| {
            let value = one.value.map_or("-".to_owned(), number);
            (one.name, value, one.held)
        })
        .collect()
}

/// Heads of a table of gates.
const HEAD: [&str; 7] = [
    "gate",
    "asks",
    "number",
    "value",
    "held to",
    "recommended",
    "literal",
];

/// A gate in the table, a line for each of its numbers.
fn rows(of: &GateEvaluated) -> Vec<Vec<String>> {
    let (literal, recommended) = (word(of.verdicts.literal), word(of.verdicts.recommended));
    let mut lines = lines(of);
    if lines.is_empty() {
        lines.push((String::new(), String::new(), String::new()));
    }
    let each = lines.into_iter().enumerate().map(|(at, line)| {
        let or = |text: &str| if at == 0 { text } else { "" }.to_owned();
        let (name, value, held) = line;
        let asks = or(predicate::gate(of.gate).asks);
        let gate = or(of.gate.as_str());
        vec![gate, asks, name, value, held, or(recommended), or(literal)]
    });
    each.collect()
}

/// Gates of one candidate on both splits, with the entries that they stand at, where those are others.
pub(in crate::cli) fn gate_table(gates: &[(Option<u64>, GateEvaluated)]) -> String {
    let each = gates.iter().flat_map(|(seq, of)| {
        let mut rows = rows(of);
        if let Some(seq) = seq {
            rows[0][0] = format!("{} {}, seq {seq}", of.gate, of.split.as_str());
        }
        rows
    });
    ui::table(&HEAD, each.collect())
}

/// The gate table of a candidate on one split.
pub(super) fn judged(record: &Record, candidate: Digest, split: GateSplit) -> (String, Value) {
    let (mut table, mut data) = (Vec::new(), Vec::new());
    for gate in GateId::ALL {
        let Some(said) = record.gate(candidate, gate, split) else {
            continue;
        };
        let of = &said.said;
        table.extend(rows(of));
        let (literal, recommended) = (word(of.verdicts.literal), word(of.verdicts.recommended));
        let numbers: Vec<_> = (predicate::gate(gate).show)(
            &of.evidence,
            &Held::under(&of.thresholds, of.thresholds.profile),
        )
        .into_iter()
        .map(|one| json!({"name": one.name, "value": one.value, "held": one.held}))
        .collect();
        data.push(json!({
            "gate": gate.as_str(), "split": split.as_str(), "asks": predicate::gate(gate).asks, "seq": said.seq,
            "literal": literal, "recommended": recommended, "numbers": numbers, "evidence": of.evidence,
        }));
    }
    (ui::table(&HEAD, table), Value::Array(data))
}

/// What was sealed, and what was not chosen.
pub(super) fn sealed(record: &Record, of: &SealedCandidates) -> (String, Value) {
    let mut text = String::new();
    for patch in &of.not_chosen {
        text.push_str(&format!(
            "{patch}  not chosen: another of its family is better\n"
        ));
    }
    if let Some(composite) = of.composite {
        text.push_str("composite of the two best\n");
        text.push_str(&judged(record, composite, GateSplit::Dev).0);
    }
    let divisor = of.said.divisor.value();
    let rows = of.said.hypotheses.iter().map(|one| {
        vec![
            one.candidate.short().to_string(),
            names_of(record, &one.patches),
        ]
    });
    text.push_str(&ui::table(&["hypothesis", "patches"], rows.collect()));
    text.push_str(&format!(
        "alpha {} each, {} divided by {divisor}\n",
        number(of.alpha / divisor.max(1) as f64),
        number(of.alpha)
    ));
    (
        text,
        json!({"sealed": of.said.hypotheses, "divisor": divisor}),
    )
}

/// The gates on confirm, hypothesis by hypothesis.
pub(super) fn confirmed(record: &Record, of: &Confirmation) -> (String, Value) {
    let (mut text, mut data, mut all) = (String::new(), json!({}), Vec::new());
    if of.is_sequential {
        let (looks, looks_data) = sequential::shown(record);
        text.push_str(&looks);
        data["looks"] = looks_data;
    }
    for hypothesis in &of.hypotheses {
        let names = hypothesis.patches.iter();
        let names: Vec<String> = names.map(|hash| name_of(record, *hash)).collect();
        text.push_str(&format!("{} on confirm\n", names.join(" + ")));
        let (table, gates) = judged(record, hypothesis.candidate, GateSplit::Confirm);
        text.push_str(&table);
        all.push(json!({"patches": names, "gates": gates}));
    }
    data["hypotheses"] = all.into();
    (text, data)
}

/// The names of patches, joined.
pub(super) fn names_of(record: &Record, hashes: &[Digest]) -> String {
    let names = hashes.iter().map(|hash| name_of(record, *hash));
    names.collect::<Vec<_>>().join(" + ")
}

/// The name of a patch by its hash.
pub(super) fn name_of(record: &Record, hash: Digest) -> String {
    let mut all = record.proposed.iter();
    let found = all.find(|patch| patch.said.patch_hash == hash);
    found.map_or_else(
        || hash.short().to_string(),
        |patch| patch.said.patch.to_string(),
    )
}
