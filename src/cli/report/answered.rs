//! What `clover estimate` says by the terms of a recorded estimate, for reports and extracts.

use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::event::id::ExperimentId;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimate::FamilyCorrection;
use crate::ledger::Ledger;
use crate::projection::manifests::estimated;
use crate::session::estimates::Estimation;
use crate::session::home::Home;
use crate::stats::direct::ClusterWeights;
use crate::view::estimate::Estimates;
use crate::view::estimate::doubts::ClaimBasis;
use crate::workflow::estimate::compute;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::terms;

/// Estimates by the terms of a recorded one, over the rows that stood through an entry, or over all of them, as `show` reads them.
///
/// # Errors
/// [`CliError`] where rows cannot be read or give no estimates.
pub(in crate::cli) fn by_recorded<T>(
    (home, ledger): (Home, Ledger),
    experiment: &ExperimentId,
    recorded: &EstimateTerms,
    through: Option<u64>,
    show: impl FnOnce(&Estimates<'_>) -> T,
) -> Result<T, CliError> {
    let mut read = Estimation {
        home,
        ledger,
        experiment: experiment.clone(),
        terms: recorded.clone(),
        fields: Vec::new(),
        places: Vec::new(),
    };
    let gathered = read.gather(through)?;
    let weights = recorded.bootstrap.as_ref().map(terms::weights);
    let weights = weights.as_ref().map(|of| of as &dyn ClusterWeights);
    let found = compute::compute(gathered, read.terms.clone(), &[], None, weights);
    let found = found.map_err(|error| estimate::refused(&error))?;
    let places: Vec<usize> = (0..found.analysis.policies.len()).collect();
    let rows = places.iter();
    let rows: Vec<_> = rows
        .map(|&policy| (policy, found.estimate(experiment, policy, Form::NEWEST)))
        .collect();
    let state = read.ledger.state();
    let planned = estimated::correction(state.fold(), experiment);
    let correction = planned.and_then(|plan| FamilyCorrection::of(plan.said));
    let contrasts = found
        .contrasts(experiment, &places, correction, Form::NEWEST)
        .map_err(|error| estimate::refused(&error))?;
    let basis = ClaimBasis::of(state, experiment, &recorded.judge);
    Ok(show(&Estimates {
        found: &found,
        contrasts: &contrasts,
        experiment,
        rows: &rows,
        raw: false,
        sliced: None,
        basis: &basis,
    }))
}
