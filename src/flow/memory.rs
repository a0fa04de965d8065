//! What a run holds: values by name, flags, and how much work is left.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::path::Path;
use crate::pattern::Pattern;
use crate::value::Data;

/// Units of work of a full tank: about one a byte, value or comparison that is looked at.
const FUEL_MAX: u64 = 8_000_000;

/// The work that a run asks for is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work of a run is spent")]
pub struct Spent;

/// How much work is left: it makes every evaluation end.
#[derive(Clone, Debug)]
pub struct Fuel(Cell<u64>);

impl Fuel {
    /// Enough for any honest run.
    pub fn full() -> Self {
        Self(Cell::new(FUEL_MAX))
    }

    /// Pays for some work.
    ///
    /// # Errors
    /// [`Spent`] where less is left.
    pub fn spend(&self, units: usize) -> Result<(), Spent> {
        let left = self.0.get().checked_sub(units as u64).ok_or(Spent)?;
        self.0.set(left);
        Ok(())
    }

    /// Pays for looking for a pattern in a text: each byte costs as much as the pattern is large.
    ///
    /// # Errors
    /// [`Spent`] where less is left.
    pub fn spend_match(&self, pattern: &Pattern, text: &str) -> Result<(), Spent> {
        let units = (text.len() as u64 + 1) * pattern.cost();
        let left = self.0.get().checked_sub(units).ok_or(Spent)?;
        self.0.set(left);
        Ok(())
    }
}

/// Values by name and flags by id.
#[derive(Clone, Debug)]
pub struct Memory {
    values: BTreeMap<String, Data>,
    flags: BTreeMap<String, bool>,
    weight: usize,
    /// How much work is left.
    pub fuel: Fuel,
}

impl Memory {
    /// Holds these values, with a full tank.
    pub fn new(values: BTreeMap<String, Data>) -> Self {
        let weight = values.values().map(Data::weight).sum();
        Self {
            values,
            flags: BTreeMap::new(),
            weight,
            fuel: Fuel::full(),
        }
    }

    /// What stands at a path.
    pub fn find(&self, path: &Path) -> Option<&Data> {
        path.find(self.values.get(path.root())?)
    }

    /// Writes a value over what its name held.
    pub fn write(&mut self, name: &str, value: Data) {
        self.weight += value.weight();
        if let Some(before) = self.values.insert(name.to_owned(), value) {
            self.weight -= before.weight();
        }
    }

    /// Sets a flag.
    pub fn set_flag(&mut self, id: &str, is_ok: bool) {
        self.flags.insert(id.to_owned(), is_ok);
    }

    /// A flag; `None` where no check has set it.
    pub fn flag(&self, id: &str) -> Option<bool> {
        self.flags.get(id).copied()
    }

    /// Ids of the flags that are false, in order of their bytes.
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        let flags = self.flags.iter().filter(|(_, ok)| !**ok);
        flags.map(|(id, _)| id.as_str())
    }

    /// Bytes that its values take, about.
    pub fn weight(&self) -> usize {
        self.weight
    }
}
