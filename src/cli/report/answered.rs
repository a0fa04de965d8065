//! What `clover estimate` says by the terms of a recorded estimate, for reports and extracts.

use std::collections::BTreeMap;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::home;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimate::EstimateTerms;
use crate::event::payload::estimate::FamilyCorrection;
use crate::ledger::Ledger;
use crate::projection::manifests::estimated;
use crate::session::chronicle::Chronicle;
use crate::session::estimates::Estimation;
use crate::session::home::Home;
use crate::stats::direct::ClusterWeights;
use crate::view::estimate::Contrasts;
use crate::view::estimate::Estimates;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::estimate::said::SaidValues;
use crate::view::estimate::said::interval_of;
use crate::view::report::values::AnsweredValues;
use crate::view::report::values::NewestValues;
use crate::view::report::values::compared_alone;
use crate::view::report::values::newest;
use crate::workflow::estimate::compute;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::terms;

/// Estimates of policies that are on record, by the terms of a recorded one, over the rows that stood through an entry, or over
/// all of them, as `show` reads them. Policies that rest on entries of a compromised key are marked.
///
/// # Errors
/// [`CliError`] where rows cannot be read or give no estimates.
pub(in crate::cli) fn by_recorded<T>(
    (home, ledger): (Home, Ledger),
    experiment: &ExperimentId,
    (recorded, policies): (&EstimateTerms, &[PolicyId]),
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
    let mut found = found.map_err(|error| estimate::refused(&error))?;
    read.taint(&mut found);
    let all = 0..found.analysis.policies.len();
    let places: Vec<usize> = all
        .filter(|at| policies.contains(&found.name(*at)))
        .collect();
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

/// Whether a value says what another does.
pub(in crate::cli) fn is_same(one: &EstimateRecorded, other: &EstimateRecorded) -> bool {
    (one.estimate, one.interval, one.claim) == (other.estimate, other.interval, other.claim)
}

/// What `clover estimate` and `clover compare` say of every recorded value of an experiment now: an answer for each judge and
/// environment, the one that was recorded last first.
///
/// # Errors
/// [`CliError`] where the ledger cannot be opened.
pub(in crate::cli) fn of_chronicle(
    ctx: &mut Ctx<'_>,
    experiment: &ExperimentId,
    chronicle: &Chronicle,
) -> Result<Vec<AnsweredValues>, CliError> {
    let mut all = Vec::new();
    for of in newest(chronicle) {
        let opened = home::open_to_read(ctx)?;
        let policies: Vec<PolicyId> = of.by_policy.keys().cloned().collect();
        let NewestValues { by_policy, terms } = &of;
        let said = by_recorded(opened, experiment, (terms, &policies), ctx.as_of, |shown| {
            shown.said(|row| {
                let known = by_policy.get(&row.policy);
                known.is_some_and(|(_, said)| is_same(said, row))
            })
        });
        let said = said.map_err(|error| error.to_string());
        all.push(AnsweredValues { newest: of, said });
    }
    Ok(all)
}

/// What `clover compare` says now of recorded differences of which no value is on record, a judge and an environment each.
///
/// # Errors
/// [`CliError`] where the ledger cannot be opened.
pub(in crate::cli) fn of_compared(
    ctx: &mut Ctx<'_>,
    experiment: &ExperimentId,
    chronicle: &Chronicle,
) -> Result<Vec<AnsweredValues>, CliError> {
    let mut all = Vec::new();
    for recorded in compared_alone(chronicle) {
        let Some(last) = recorded.last() else {
            continue;
        };
        let opened = home::open_to_read(ctx)?;
        let pairs = recorded.iter();
        let policies: Vec<PolicyId> = pairs
            .flat_map(|of| [of.first.clone(), of.second.clone()])
            .collect();
        let of = (&last.terms, policies.as_slice());
        let said = by_recorded(opened, experiment, of, ctx.as_of, |shown| {
            ordered(shown, &recorded)
        });
        all.push(AnsweredValues {
            newest: NewestValues {
                by_policy: BTreeMap::new(),
                terms: last.terms.clone(),
            },
            said: said
                .and_then(|said| said)
                .map_err(|error| error.to_string()),
        });
    }
    Ok(all)
}

/// The order that `clover compare` gives, as one family like the recorded differences.
fn ordered(shown: &Estimates<'_>, recorded: &[ContrastRecorded]) -> Result<SaidValues, CliError> {
    let places: Vec<usize> = shown.rows.iter().map(|(policy, _)| *policy).collect();
    let correction = recorded.last().and_then(|of| of.correction);
    let pairs = shown
        .found
        .contrasts(shown.experiment, &places, correction, Form::NEWEST)
        .map_err(|error| estimate::refused(&error))?;
    let numbers = |of: &ContrastRecorded| {
        (
            of.difference,
            interval_of(of),
            of.p,
            of.p_adjusted,
            of.reading,
        )
    };
    let is_recorded = |pair: &ContrastRecorded| {
        let names = (&pair.first, &pair.second);
        let mut all = recorded.iter();
        all.any(|of| (&of.first, &of.second) == names && numbers(of) == numbers(pair))
    };
    let is_same = pairs.iter().all(is_recorded);
    let order = Contrasts {
        found: shown.found,
        places: &places,
        pairs: &pairs,
        experiment: shown.experiment,
        basis: shown.basis,
    };
    let mut answer = order.answer(is_same);
    if !is_same {
        let other = " The rows now give other differences than those on record.";
        answer.answer.text.push_str(other);
    }
    let shown = Estimates {
        contrasts: &pairs,
        ..*shown
    };
    Ok(SaidValues {
        answer,
        ..shown.said(|_| true)
    })
}
