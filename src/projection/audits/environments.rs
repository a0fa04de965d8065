//! Environments in which a calibrator failed, the regimes that were selected for them, and local calibrators; with what the
//! rules `calibrator` and `transport` ask of them.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::environment::EnvironmentOutcome;
use clover_event::payload::environment::EnvironmentRegime;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::environment::RegimeSelected;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::TransportState;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::audits::Audits;

/// Labels that a local calibrator needs (CLOVER v1.1, section 8).
pub const LOCAL_LABELS_MIN: u64 = 200;

/// A regime that was selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegimeStanding {
    /// The local calibrator of regime 2.
    pub calibrator: Option<Digest>,
    /// Why, in words.
    pub reason: String,
    /// The regime.
    pub regime: EnvironmentRegime,
    /// Its entry.
    pub seq: u64,
}

/// What tests found of one environment under one judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentRecord {
    /// The failed test that stands; a later test that passes answers it.
    pub failed_seq: Option<u64>,
    /// Whether a test of it ever failed.
    pub has_failed: bool,
    /// What the newest test found.
    pub newest: Verdict,
    /// The entry of the newest test.
    pub newest_seq: u64,
    /// The regime that was selected last.
    pub regime: Option<RegimeStanding>,
    /// Whether a claim needs it to pass.
    pub required: bool,
    /// Which rows it is.
    pub scope: EnvironmentScope,
}

impl EnvironmentRecord {
    fn new(of: &EnvironmentOutcome, seq: u64) -> Self {
        Self {
            failed_seq: None,
            has_failed: false,
            newest: of.verdict,
            newest_seq: seq,
            regime: None,
            required: of.required,
            scope: of.scope.clone(),
        }
    }

    fn take(&mut self, of: &EnvironmentOutcome, seq: u64) {
        // An environment without a probe was not looked at.
        if of.verdict == Verdict::NotChecked {
            return;
        }
        (self.newest, self.newest_seq) = (of.verdict, seq);
        self.required = of.required;
        match of.verdict {
            Verdict::Fail => {
                self.failed_seq = Some(seq);
                self.has_failed = true;
            }
            Verdict::Pass => self.failed_seq = None,
            Verdict::Inconclusive | Verdict::NotChecked => {}
        }
    }

    /// Whether its rows may be in no level that the calibrator of all rows gives: it failed, and a claim needs it or a
    /// narrower regime was selected for it.
    fn withholds(&self) -> bool {
        let is_narrow = self
            .regime
            .as_ref()
            .is_some_and(|of| of.regime != EnvironmentRegime::Global);
        self.failed_seq.is_some() && (self.required || is_narrow)
    }
}

/// Environments of one experiment by judge, each under its own key.
pub type Environments = BTreeMap<JudgeId, BTreeMap<String, EnvironmentRecord>>;

fn failure(seq: u64) -> Option<TransportStanding> {
    let state = TransportState::Fail;
    Some(TransportStanding {
        seq: Count::new(seq)?,
        state,
    })
}

/// The failed environment that withholds every level of a judge, or those inside an environment that may share rows with it:
/// of several, the one that failed first.
pub(super) fn withholding(
    of: Option<&BTreeMap<String, EnvironmentRecord>>,
    inside: Option<&EnvironmentScope>,
) -> Option<TransportStanding> {
    let records = of.into_iter().flat_map(BTreeMap::values);
    let failed = records.filter(|record| {
        let shares =
            |scope: &EnvironmentScope| record.scope != *scope && !record.scope.is_apart(scope);
        record.withholds() && inside.is_none_or(shares)
    });
    failure(failed.filter_map(|record| record.failed_seq).min()?)
}

/// What stands inside an environment: a failed test of it, unless its local calibrator is the one that is read and passed an
/// audit of its own.
pub(super) fn inside(
    record: Option<&EnvironmentRecord>,
    calibrator: Option<Digest>,
    own: Option<TransportStanding>,
) -> Option<TransportStanding> {
    let Some((record, seq)) = record.and_then(|of| Some((of, of.failed_seq?))) else {
        return own;
    };
    let is_local = record.regime.as_ref().is_some_and(|of| {
        of.regime == EnvironmentRegime::Local
            && of.calibrator.is_some()
            && of.calibrator == calibrator
    });
    let has_passed = own.is_some_and(|of| of.state == TransportState::Pass);
    if is_local && has_passed {
        own
    } else {
        failure(seq)
    }
}

/// Takes in what a test found.
pub(super) fn tested(environments: &mut Environments, seq: u64, said: &EnvironmentsTested) {
    let of = environments.entry(said.terms.judge.clone()).or_default();
    for outcome in &said.environments {
        let record = of
            .entry(outcome.scope.key())
            .or_insert_with(|| EnvironmentRecord::new(outcome, seq));
        record.take(outcome, seq);
    }
}

/// Takes in a regime.
pub(super) fn selected(environments: &mut Environments, seq: u64, said: &RegimeSelected) {
    let of = environments.get_mut(&said.judge);
    if let Some(record) = of.and_then(|of| of.get_mut(&said.scope.key())) {
        record.regime = Some(RegimeStanding {
            calibrator: said.calibrator,
            reason: said.reason.as_str().to_owned(),
            regime: said.regime,
            seq,
        });
    }
}

/// A local calibrator rests on enough labels of its environment, and is no calibrator of an iteration.
pub(super) fn check_local(fit: &CalibratorFitted) -> RuleAnswer {
    let Some(scope) = &fit.terms.environment else {
        return Ok(());
    };
    ensure!(
        fit.labels.value() >= LOCAL_LABELS_MIN,
        format!("at least {LOCAL_LABELS_MIN} labels of {scope} for a local calibrator"),
        format!("{} labels", fit.labels)
    );
    ensure!(
        fit.terms.iteration.is_none(),
        "a calibrator of an iteration without an environment",
        scope.to_string()
    );
    Ok(())
}

/// A window of time is read alone only where a family with it was tested, as a plan named it: no window is drawn by who knows
/// what it holds.
pub(super) fn check_window(
    state: &State,
    experiment: &ExperimentId,
    terms: &EstimateTerms,
) -> RuleAnswer {
    let scope = terms.environment.as_ref();
    let Some(scope) = scope.filter(|scope| scope.window.is_some()) else {
        return Ok(());
    };
    let audits = state.fold::<Audits>();
    let tested = audits.environment(experiment, &terms.judge, scope);
    tested.required(&format!("a test of {scope}, which a plan named"))?;
    Ok(())
}

/// Terms of what is computed over all rows.
pub(super) fn check_whole(terms: &EstimateTerms) -> RuleAnswer {
    match &terms.environment {
        None => Ok(()),
        Some(scope) => unmet("terms without an environment", scope.to_string()),
    }
}

/// A regime is selected after a failed test of its environment; regime 2 with a calibrator that was fitted there on enough
/// labels, regime 3 once a later test passed.
pub(super) fn check_regime(
    state: &State,
    experiment: &ExperimentId,
    said: &RegimeSelected,
) -> RuleAnswer {
    let scope = &said.scope;
    let audits = state.fold::<Audits>();
    let record = audits.environment(experiment, &said.judge, scope);
    let failed = record.filter(|record| record.has_failed);
    let record = failed.required(&format!("a failed test of {scope}"))?;
    ensure!(
        said.tested_seq.value() == record.newest_seq,
        format!("the newest test of {scope}, at seq {}", record.newest_seq),
        format!("seq {}", said.tested_seq)
    );
    ensure!(
        (said.regime == EnvironmentRegime::Local) == said.calibrator.is_some(),
        "a local calibrator for regime 2, and for no other",
        said.calibrator
            .map_or("none".to_owned(), |digest| digest.to_string())
    );
    if said.regime == EnvironmentRegime::Global {
        ensure!(
            record.failed_seq.is_none(),
            format!("regime 3 once a later test of {scope} passed"),
            format!("the failed test at seq {} stands", record.newest_seq)
        );
        return Ok(());
    }
    ensure!(
        record.failed_seq.is_some(),
        format!("a failed test of {scope} that stands"),
        format!("one that passed at seq {}", record.newest_seq)
    );
    let Some(calibrator) = &said.calibrator else {
        return Ok(());
    };
    let labels = audits.local_labels(experiment, &said.judge, scope, calibrator);
    let labels = labels.required(&format!(
        "a calibrator that was fitted on labels of {scope} alone"
    ))?;
    ensure!(
        labels >= LOCAL_LABELS_MIN,
        format!("at least {LOCAL_LABELS_MIN} labels of {scope}"),
        format!("{labels} labels")
    );
    Ok(())
}
