//! What is written and set before a place of a workflow.

use std::collections::BTreeMap;

use crate::decode::Spot;
use crate::expr::NAME_MAX;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::path::Path;

/// Names and flags that may be named at a place, each with the depth of the chain of steps that leads to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    names: BTreeMap<String, usize>,
    flags: BTreeMap<String, usize>,
}

impl Scope {
    /// Knows these names and no flag.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().map(|name| (name.to_owned(), 0));
        Self {
            names: names.collect(),
            flags: BTreeMap::new(),
        }
    }

    /// A path whose root is written.
    pub(crate) fn path(&self, spot: &Spot<'_>) -> Result<Path, Fault> {
        let wanted = "a path such as draft.total";
        let path = Path::parse(spot.text(NAME_MAX)?).ok_or_else(|| spot.expected(wanted))?;
        if !self.names.contains_key(path.root()) {
            return Err(spot.fault(FaultKind::NotWritten(path.root().to_owned())));
        }
        Ok(path)
    }

    /// A flag that is set.
    pub(crate) fn flag(&self, spot: &Spot<'_>) -> Result<String, Fault> {
        let id = spot.text(NAME_MAX)?;
        if !self.flags.contains_key(id) {
            return Err(spot.fault(FaultKind::NoFlag(id.to_owned())));
        }
        Ok(id.to_owned())
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(crate) fn has_flag(&self, id: &str) -> bool {
        self.flags.contains_key(id)
    }

    pub(crate) fn write(&mut self, name: &str, depth: usize) {
        self.names.insert(name.to_owned(), depth);
    }

    pub(crate) fn set_flag(&mut self, id: &str, depth: usize) {
        self.flags.insert(id.to_owned(), depth);
    }

    /// Steps of the longest chain that leads to any of these.
    pub(crate) fn depth<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a Path>,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> usize {
        let names = paths.into_iter().map(|path| self.names.get(path.root()));
        let flags = flags.into_iter().map(|id| self.flags.get(id));
        names.chain(flags).flatten().copied().max().unwrap_or(0)
    }
}
