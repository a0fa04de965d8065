//! What was released to whom, and experiments that a read has tainted.

use serde::Serialize;

use crate::event::id::ClassId;
use crate::event::id::ExperimentId;
use crate::event::id::Root;
use crate::event::payload::Role;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::access::Access;
use crate::session::custody::release::Class;
use crate::session::custody::release::Release;
use crate::view::View;
use crate::view::text::thousands;

/// Hex digits that a table shows of a key's id.
const SHORT: usize = 12;

/// Reads of one class by one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadRow {
    /// The id of the key that read.
    pub reader: String,
    /// Who holds it; `unknown` where no key of the ledger has this id.
    pub holder: String,
    /// The class of data.
    pub class: ClassId,
    /// Times that it was given.
    pub allowed: u64,
    /// Times that it was refused.
    pub denied: u64,
    /// The last entry of either.
    pub last_seq: u64,
}

/// An experiment whose claims a read has tainted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaintRow {
    /// The experiment.
    pub experiment: ExperimentId,
    /// What was read.
    pub class: ClassId,
    /// The role in which it was read.
    pub role: Role,
    /// The id of the key that read it.
    pub reader: String,
    /// The entry of the read.
    pub seq: u64,
}

/// Reads on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessList {
    /// By key and class.
    pub reads: Vec<ReadRow>,
    /// Experiments that a read has tainted.
    pub tainted: Vec<TaintRow>,
}

/// What was released to a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReleaseFacts {
    /// The class of data.
    pub class: &'static str,
    /// Lines that were written.
    pub count: u64,
    /// Rows that they are about.
    pub rows: u64,
    /// Merkle root over the names of these rows; `null` for cards that name none.
    pub rows_root: Option<Root>,
    /// The entry of the read.
    pub seq: u64,
    /// The file.
    pub file: String,
}

/// Experiments that a read has tainted.
pub fn taints(state: &State) -> Vec<TaintRow> {
    let taints = state.fold::<Access>().taints.iter();
    let rows = taints.map(|(experiment, taint)| TaintRow {
        experiment: experiment.clone(),
        class: taint.class.clone(),
        role: taint.role,
        reader: taint.reader.to_string(),
        seq: taint.seq,
    });
    rows.collect()
}

/// A line for each tainted experiment.
pub fn taint_lines(state: &State) -> Vec<String> {
    let taints = state.fold::<Access>().taints.iter();
    taints
        .map(|(experiment, taint)| taint.line(experiment))
        .collect()
}

/// Reads on record, and what they have tainted.
pub fn list(state: &State) -> View {
    let mut reads = Vec::new();
    for (reader, classes) in &state.fold::<Access>().reads {
        let key = state.keyring.keys.get(reader);
        let holder = key.map_or("unknown", |key| key.holder.as_str());
        reads.extend(classes.iter().map(|(class, tally)| ReadRow {
            reader: reader.to_string(),
            holder: holder.to_owned(),
            class: class.clone(),
            allowed: tally.allowed,
            denied: tally.denied,
            last_seq: tally.last_seq,
        }));
    }
    let short = |id: &str| id.chars().take(SHORT).collect();
    let rows = reads.iter().map(|of| {
        vec![
            short(&of.reader),
            of.holder.clone(),
            of.class.to_string(),
            of.allowed.to_string(),
            of.denied.to_string(),
            of.last_seq.to_string(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let mut view = View::of(&AccessList {
        reads,
        tainted: taints(state),
    });
    let head = ["reader", "holder", "class", "allowed", "denied", "last seq"];
    view.table(&head, rows);
    for line in taint_lines(state) {
        view.line(line);
    }
    view
}

/// What was released, and the file that holds it.
pub fn released(ledger: &Ledger, class: Class, of: &Release, file: String) -> View {
    let facts = ReleaseFacts {
        class: class.as_str(),
        count: of.count,
        rows: of.rows as u64,
        rows_root: of.root,
        seq: of.appended[0].seq,
        file,
    };
    let root = facts.rows_root.map_or(String::new(), |root| {
        format!(", rows root {}", root.0.to_base64())
    });
    let (count, seq) = (thousands(facts.count), facts.seq);
    let mut view = View::of(&facts).with_events(&of.appended);
    view.line(format!(
        "{}: {count} of class {class}, on record at seq {seq}{root}",
        facts.file
    ));
    view.verdict = "released";
    view.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    view
}
