//! Fields that kinds share: what an event says of the iteration and the gate that it belongs to, and of the rows that
//! it was computed from. The registry's lines name them; [`Payload`](crate::Payload) answers from them.

use crate::id::IterationId;
use crate::payload::deployment::RecalibrationInputs;
use crate::payload::estimate::EstimateTerms;
use crate::payload::estimate::IterationFit;
use crate::payload::predicate::RowsRead;
use crate::registry::Kind;
use crate::registry::Payload;

/// Names of the fields that a registry line lists beside the natural key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryFields {
    /// The field that names the gate.
    pub gate: Option<&'static str>,
    /// The field that says which rows were read.
    pub inputs: Option<&'static str>,
    /// The field that names the iteration.
    pub iteration: Option<&'static str>,
}

/// The payload of one kind.
pub trait Statement: Sized {
    /// Its kind.
    const KIND: Kind;

    /// This kind's payload; `None` for another kind.
    fn of(payload: &Payload) -> Option<&Self>;
}

/// A field that names an iteration.
pub(super) trait NamesIteration {
    /// The iteration; `None` where an optional part is absent.
    fn iteration(&self) -> Option<&IterationId>;
}

impl NamesIteration for IterationId {
    fn iteration(&self) -> Option<&IterationId> {
        Some(self)
    }
}

/// Terms of an estimate name no iteration.
impl NamesIteration for EstimateTerms {
    fn iteration(&self) -> Option<&IterationId> {
        self.iteration.as_ref().map(|of| &of.iteration)
    }
}

/// A field that says which rows were read.
pub(super) trait NamesInputs {
    /// The rows; `None` where an optional part is absent.
    fn inputs(&self) -> Option<RowsRead>;
}

impl NamesInputs for RowsRead {
    fn inputs(&self) -> Option<RowsRead> {
        Some(*self)
    }
}

impl NamesInputs for IterationFit {
    fn inputs(&self) -> Option<RowsRead> {
        Some(self.inputs)
    }
}

impl NamesInputs for RecalibrationInputs {
    fn inputs(&self) -> Option<RowsRead> {
        Some(self.inputs)
    }
}

impl<T: NamesInputs> NamesInputs for Option<T> {
    fn inputs(&self) -> Option<RowsRead> {
        self.as_ref().and_then(NamesInputs::inputs)
    }
}
