//! Environments by their words, the regime that CLOVER's order proposes for one that failed, and the selection of a regime.

use std::ops::ControlFlow;

use clover_event::Payload;
use clover_event::id::EnvironmentId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::environment::EnvironmentRegime;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::RegimeSelected;
use clover_event::payload::manifest::AuditedEnvironment;
use clover_event::payload::manifest::IterationEnvironment;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::State;
use clover_num::Count;
use clover_projection::audits::Audits;
use clover_projection::audits::environments::EnvironmentRecord;
use clover_projection::manifests::Manifests;
use clover_projection::reader::LogReader;
use clover_stats::environment;
use clover_stats::environment::EnvironmentVerdict;
use clover_stats::environment::Regime;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::calibrators;
use crate::error::SessionError;
use crate::estimates::EstimateError;
use crate::estimates::Estimation;
use crate::ports::Ports;

/// Why no regime was selected.
#[derive(Debug, thiserror::Error)]
pub enum RegimeError {
    /// An environment is a family and a name.
    #[error("environment {0:?}: expected FAMILY=NAME, such as domain=law")]
    Words(String),
    /// Nobody tested it.
    #[error("no test of environment {scope} is on record under judge {judge}")]
    Untested {
        /// The environment.
        scope: String,
        /// The judge.
        judge: JudgeId,
    },
    /// No calibrator was fitted on its labels.
    #[error("regime 2 needs a calibrator that was fitted on labels of {0} alone: there is none")]
    NoLocal(String),
}

/// The environment of these words, with its window where a plan in force names one.
///
/// # Errors
/// [`RegimeError::Words`].
pub fn scope(
    state: &State,
    experiment: &ExperimentId,
    words: &str,
) -> Result<EnvironmentScope, RegimeError> {
    let wrong = || RegimeError::Words(words.to_owned());
    let (family, environment) = words.split_once('=').ok_or_else(wrong)?;
    let family = FamilyId::new(family).map_err(|_| wrong())?;
    let environment = EnvironmentId::new(environment).map_err(|_| wrong())?;
    let named = |of: &EnvironmentScope| of.family == family && of.environment == environment;
    let manifests = state.fold::<Manifests>();
    let in_force = manifests.in_force_of(experiment);
    let planned = in_force.flat_map(|(_, version)| {
        let plan = version.manifest.transport.iter();
        let audited = plan.flat_map(|plan| &plan.environments);
        let mut found: Vec<EnvironmentScope> =
            audited.filter_map(AuditedEnvironment::scope).collect();
        let iteration = version.manifest.iteration.as_ref();
        let design = iteration.and_then(|plan| plan.design.as_ref());
        let of_design = design.into_iter().flat_map(|design| &design.environments);
        found.extend(of_design.map(IterationEnvironment::scope));
        found
    });
    let known = planned.into_iter().find(named);
    Ok(known.unwrap_or(EnvironmentScope {
        environment,
        family,
        window: None,
    }))
}

/// An environment that was tested, and which regime follows by CLOVER's order.
#[derive(Clone, Debug)]
pub struct RegimeProposal {
    /// What tests found.
    pub record: EnvironmentRecord,
    /// Labels for calibration inside it.
    pub labels: usize,
    /// Whether a patch was proposed since it failed.
    pub patch_tried: bool,
    /// What the order proposes.
    pub proposed: EnvironmentRegime,
}

/// Every environment that was tested, with the regime that follows.
///
/// # Errors
/// Those of gathering rows.
pub fn proposals(
    of: &mut Estimation,
    as_of: Option<u64>,
) -> Result<Vec<RegimeProposal>, SessionError> {
    let below = as_of.map_or(of.ledger.size(), |seq| seq + 1);
    let state = of.ledger.state_shown(below)?;
    let audits = state.fold::<Audits>();
    let records = audits.environments(&of.experiment, &of.terms.judge);
    let records: Vec<EnvironmentRecord> = records.cloned().collect();
    let mut found = Vec::with_capacity(records.len());
    for record in records {
        let labels = labels_of(of, &record.scope, as_of)?;
        let patch_tried = record
            .failed_seq
            .map(|seq| patched(of, seq, below))
            .transpose()?
            .unwrap_or(false);
        let verdict = match record.failed_seq {
            Some(_) => EnvironmentVerdict::Fail,
            None => EnvironmentVerdict::Pass,
        };
        // Which hint failing environments share is for the cards of an iteration to say: estimates know of none.
        let proposed = match environment::regime(verdict, None, patch_tried, labels) {
            Regime::Global | Regime::GlobalPatchAttempt => EnvironmentRegime::Global,
            Regime::Local => EnvironmentRegime::Local,
            Regime::None => EnvironmentRegime::LabelsAlone,
        };
        found.push(RegimeProposal {
            record,
            labels,
            patch_tried,
            proposed,
        });
    }
    Ok(found)
}

/// Labels for calibration inside an environment.
fn labels_of(
    of: &mut Estimation,
    scope: &EnvironmentScope,
    as_of: Option<u64>,
) -> Result<usize, SessionError> {
    of.terms.environment = Some(scope.clone());
    let gathered = of.gather(as_of);
    of.terms.environment = None;
    match gathered {
        Ok(gathered) => Ok(gathered.sources.iter().map(|of| of.labels.len()).sum()),
        Err(SessionError::Estimate(error)) if matches!(*error, EstimateError::NoRows(_)) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether a patch was proposed in the experiment since an entry.
fn patched(of: &Estimation, since: u64, below: u64) -> Result<bool, SessionError> {
    let mut found = false;
    let entries = LogReader::below(&of.ledger, below).since(since);
    entries.of(&of.experiment).each(|_, event| {
        found = matches!(event.payload, Payload::PatchProposed(_));
        if found {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(found)
}

/// A regime that somebody selects.
#[derive(Clone, Debug)]
pub struct RegimeChoice {
    /// The environment.
    pub scope: EnvironmentScope,
    /// The regime.
    pub regime: EnvironmentRegime,
    /// Why.
    pub reason: Text,
    /// The local calibrator of regime 2, as `calibrate list` names it; else the newest that was fitted there.
    pub calibrator: Option<String>,
}

/// Selects a regime.
///
/// # Errors
/// [`RegimeError`], [`EstimateError::NoCalibrator`], [`SessionError::Port`] without a key, and [`SessionError::Ledger`]
/// where a rule refuses; then nothing was appended.
pub fn select(
    ports: &mut dyn Ports,
    of: &mut Estimation,
    choice: RegimeChoice,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let judge = of.terms.judge.clone();
    let audits = of.ledger.state().fold::<Audits>();
    let record = audits.environment(&of.experiment, &judge, &choice.scope);
    let tested_seq = record.map(|record| record.newest_seq);
    let tested_seq = tested_seq.ok_or_else(|| RegimeError::Untested {
        scope: choice.scope.to_string(),
        judge: judge.clone(),
    })?;
    let calibrator = match choice.regime {
        EnvironmentRegime::Local => Some(local(of, &choice)?),
        EnvironmentRegime::Global | EnvironmentRegime::LabelsAlone => None,
    };
    let payload = RegimeSelected {
        calibrator,
        judge,
        reason: choice.reason,
        regime: choice.regime,
        scope: choice.scope,
        tested_seq: Count::new(tested_seq).unwrap_or_default(),
    };
    let command = Command::new(payload, Some(of.experiment.clone()));
    append::submit_one(ports, &mut of.ledger, command, intent)
}

/// The calibrator that is named, or the newest of the environment.
fn local(of: &Estimation, choice: &RegimeChoice) -> Result<Digest, SessionError> {
    let size = of.ledger.size();
    if let Some(name) = &choice.calibrator {
        return Ok(calibrators::find(&of.ledger, size, Some(name))?
            .said
            .calibrator);
    }
    let fits = calibrators::list(&of.ledger, size)?;
    let mut own = fits.into_iter().rev().filter(|fit| {
        let terms = &fit.said.terms;
        fit.experiment == of.experiment
            && terms.judge == of.terms.judge
            && terms.environment.as_ref() == Some(&choice.scope)
    });
    let newest = own.next().map(|fit| fit.said.calibrator);
    Ok(newest.ok_or_else(|| {
        let EnvironmentScope {
            family,
            environment,
            ..
        } = &choice.scope;
        RegimeError::NoLocal(format!("{family}={environment}"))
    })?)
}
