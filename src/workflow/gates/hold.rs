//! The observations by which a gate ends, held against the log itself: the entries that list its order, the strata of its
//! units and their values. What the index, the table of scores and a snapshot say of them counts for nothing here.

use clover_event::id::ItemId;
use clover_event::id::StratumId;
use clover_event::payload::gate::GateObserved;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_projection::gates;

use crate::gates::evidence::GateContext;
use crate::gates::replay;
use crate::gates::replay::Life;

/// An observation that the log does not bear out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    /// What the log has.
    pub expected: String,
    /// What was observed.
    pub found: String,
    /// The entry that observed.
    pub seq: u64,
}

/// A value that an observation says.
struct Value {
    /// No entry before it counts.
    after: u64,
    /// The entry that observed it.
    by: u64,
    /// Where it was recorded, and what.
    found: Option<(u64, i64)>,
    key: Digest,
    said: Option<i64>,
}

/// The first observation of a gate's life, if any, whose unit, stratum or values are not those of the log. `told` is said how
/// many entries are read.
///
/// # Errors
/// [`LedgerError`].
pub fn hold(
    ledger: &Ledger,
    of: GateContext<'_>,
    life: &Life,
    mut told: impl FnMut(u64),
) -> Result<Option<Unheld>, LedgerError> {
    let order = match of.record.bound() {
        Some(bound) => replay::order(ledger, bound, ledger.size())?,
        None => replay::Order::default(),
    };
    for (place, (seq, said)) in life.observed.iter().enumerate() {
        let there = (order.units.get(place), order.strata.get(place));
        if there != (Some(&said.unit), said.stratum.as_ref()) {
            return Ok(Some(Unheld {
                expected: format!("{} at place {}", named(there.0, there.1), place + 1),
                found: named(Some(&said.unit), said.stratum.as_ref()),
                seq: *seq,
            }));
        }
    }
    let mut values = values(of, life);
    ledger
        .past()
        .measured(0, ledger.size(), |seq, key, value| {
            told(seq);
            let from = values.partition_point(|one| one.key < key);
            let of_key = values[from..].iter_mut().take_while(|one| one.key == key);
            for one in of_key {
                one.found.get_or_insert((seq, value));
            }
        })?;
    let unheld = values.iter().filter_map(Value::unheld);
    Ok(unheld.min_by_key(|one| one.seq))
}

fn named(unit: Option<&ItemId>, stratum: Option<&StratumId>) -> String {
    match (unit, stratum) {
        (Some(unit), Some(stratum)) => format!("unit {unit} of stratum {stratum}"),
        (Some(unit), None) => format!("unit {unit}"),
        _ => "no unit".to_owned(),
    }
}

/// The values of all observations, ascending by key.
fn values(of: GateContext<'_>, life: &Life) -> Vec<Value> {
    let version = of.record.in_force();
    let mut values = Vec::new();
    if let Some((version, experiment)) = version.zip(of.gate.experiment.as_ref()) {
        let read = |(t, (by, said)): (u64, &(u64, GateObserved))| {
            let after = of.record.exposed_seq(t).unwrap_or(u64::MAX);
            let each = gates::values(experiment, &version.manifest, of.gate, said);
            let each = each.map(|(key, said)| Value {
                after,
                by: *by,
                found: None,
                key,
                said,
            });
            values.extend(each);
        };
        (1..).zip(&life.observed).for_each(read);
    }
    values.sort_unstable_by_key(|one| one.key);
    values
}

impl Value {
    /// As the rule of an observation judges it: a value that is read stands between the exposure of its unit and the
    /// observation, and one that is said to be missing does not stand before it.
    fn unheld(&self) -> Option<Unheld> {
        let before = self.found.filter(|(seq, _)| *seq < self.by);
        let held = match (before, self.said) {
            (None, None) => true,
            (Some((seq, value)), Some(said)) => seq >= self.after && value == said,
            _ => false,
        };
        let micro = |value: i64| format!("{value} millionths");
        (!held).then(|| Unheld {
            expected: before.map_or("no value before it".to_owned(), |(seq, value)| {
                format!("{} as entry {seq} has it", micro(value))
            }),
            found: self.said.map_or("a missing draw".to_owned(), micro),
            seq: self.by,
        })
    }
}
