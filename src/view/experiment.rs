//! Experiments.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::ledger::State;
use crate::projection::experiments::Experiments;
use crate::view::View;

/// An experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExperimentRow {
    /// Its id.
    pub experiment: ExperimentId,
    /// Its name for people.
    pub title: String,
    /// The entry that registered it.
    pub registered_seq: u64,
    /// The entry that closed it; `null` while it is open.
    pub closed_seq: Option<u64>,
}

/// Every experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExperimentList {
    /// In the order of their ids.
    pub experiments: Vec<ExperimentRow>,
}

/// Every experiment, in the order of their ids.
pub fn rows(state: &State) -> Vec<ExperimentRow> {
    let experiments = state.fold::<Experiments>().by_id.iter();
    let rows = experiments.map(|(id, of)| ExperimentRow {
        experiment: id.clone(),
        title: of.title.clone(),
        registered_seq: of.registered_seq,
        closed_seq: of.closed_seq,
    });
    rows.collect()
}

/// A table of experiments.
pub fn table(view: &mut View, rows: &[ExperimentRow]) {
    let rows = rows.iter().map(|of| {
        let closed = of.closed_seq;
        vec![
            of.experiment.to_string(),
            of.title.clone(),
            format!("seq {}", of.registered_seq),
            closed.map_or("open".to_owned(), |seq| format!("closed at seq {seq}")),
        ]
    });
    view.table(&["experiment", "title", "registered", "standing"], rows);
}

/// Every experiment.
pub fn list(state: &State) -> View {
    let facts = ExperimentList {
        experiments: rows(state),
    };
    let mut view = View::of(&facts);
    table(&mut view, &facts.experiments);
    view
}
