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

/// Where the experiment is named that commands are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Source {
    /// `CLOVER_EXPERIMENT` names it.
    Variable,
    /// `clover use` named it, for this ledger's folder.
    Folder,
    /// It is the only one that is open.
    OnlyOne,
}

/// The experiment that commands are about where they name none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CurrentExperiment {
    /// Its id; `null` where commands must name one.
    pub experiment: Option<ExperimentId>,
    /// Who names it.
    pub source: Option<Source>,
    /// Every experiment, in the order of their ids.
    pub experiments: Vec<ExperimentRow>,
}

/// The experiment that commands are about where they name none.
pub fn current(state: &State, found: Option<(ExperimentId, Source)>) -> View {
    let line = match &found {
        None => "commands must name their experiment: --experiment ID".to_owned(),
        Some((id, Source::Variable)) => {
            format!("commands are about experiment {id}: CLOVER_EXPERIMENT names it")
        }
        Some((id, Source::Folder)) => {
            format!("commands are about experiment {id}, unless --experiment names another")
        }
        Some((id, Source::OnlyOne)) => {
            format!("commands are about experiment {id}: no other is open")
        }
    };
    let (experiment, source) = found.unzip();
    let facts = CurrentExperiment {
        experiment,
        source,
        experiments: rows(state),
    };
    let mut view = View::of(&facts);
    view.line(line);
    table(&mut view, &facts.experiments);
    view
}
