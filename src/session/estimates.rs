//! Estimates over what an experiment holds of one judge: its rows gathered, and what was found put on record, fit first.

use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::JudgeId;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::EstimateTerms;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks::Question;
use clover_projection::audits::Audits;
use clover_projection::looks;
use clover_projection::said;
use clover_projection::said::LateField;
use clover_projection::tainted;
use clover_workflow::analyze::AnalyzeError;
use clover_workflow::estimate::compute;
use clover_workflow::estimate::compute::Found;
use clover_workflow::estimate::drawn::Undrawn;
use clover_workflow::estimate::form;
use clover_workflow::estimate::rows;
use clover_workflow::estimate::rows::Gathered;
use clover_workflow::estimate::rows::RowsError;
use clover_workflow::estimate::rows::Which;

use crate::append;
use crate::append::Submission;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::scores;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::texts::Texts;

/// Why nothing was estimated.
#[derive(Debug, thiserror::Error)]
pub enum EstimateError {
    /// The experiment has no score of the judge.
    #[error("no score by {judge} in {experiment}{}", match judges.as_slice() {
        [] => String::new(),
        judges => format!("; judges with scores: {}", judges.iter().map(JudgeId::as_str).collect::<Vec<_>>().join(", ")),
    })]
    NoScores {
        /// The judge.
        judge: JudgeId,
        /// The experiment.
        experiment: ExperimentId,
        /// The judges that it has scores of.
        judges: Vec<JudgeId>,
    },
    /// Every row was scored once a label of its policy could be read.
    #[error(
        "no row by {judge} in {experiment} counts: each was scored after a label of its policy could be read, and whoever knows labels could choose scores"
    )]
    ScoredLate {
        /// The judge.
        judge: JudgeId,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// No scored row is in the environment.
    #[error("no scored row is in the environment {0}, by what imports kept of rows")]
    NoRows(String),
    /// No calibrator has the name, or several have.
    #[error("{}", match name {
        Some(name) => format!("no calibrator, or more than one, is named {name}"),
        None => "no estimate over all rows was made yet, so there is no calibrator of them".to_owned(),
    })]
    NoCalibrator {
        /// The name.
        name: Option<String>,
    },
    /// No calibrator was fitted on the rows of an environment.
    #[error("no estimate of {0} alone was made yet, so it has no calibrator of its own")]
    NoLocalCalibrator(String),
    /// The curves of a calibrator of an iteration are not here.
    #[error("the curves of the calibrator at seq {seq} are not in this ledger")]
    NoCurves {
        /// Its entry.
        seq: u64,
    },
    /// Its rows give another calibrator.
    #[error("the rows of the calibrator at seq {seq} give another one")]
    Changed {
        /// Its entry.
        seq: u64,
    },
    /// It cannot be fitted.
    #[error(transparent)]
    Computation(#[from] AnalyzeError),
    /// A covariate that was said once labels could be read.
    #[error(
        "covariate {field}: some of it was said at seq {said}, after the first label that could be read, at seq {label}: a covariate counts only where it was said of every row before the first label"
    )]
    SaidLate {
        /// The covariate.
        field: FieldId,
        /// The first label.
        label: u64,
        /// The import.
        said: u64,
    },
    /// The rows cannot be read, or lack a number.
    #[error(transparent)]
    Rows(#[from] RowsError),
}

/// A ledger with what an experiment holds of one judge.
pub struct Estimation {
    /// Where the ledger lies.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// The experiment.
    pub experiment: ExperimentId,
    /// How it is estimated; how labels are used is for the rows to say.
    pub terms: EstimateTerms,
    /// Fields that imports kept, to part rows by.
    pub fields: Vec<FieldId>,
    /// Fields that place rows in the environments that are tested.
    pub places: Vec<FieldId>,
}

impl Estimation {
    /// The rows at the head, or as of an earlier entry.
    ///
    /// # Errors
    /// [`EstimateError`], and [`SessionError::Store`] when the vault cannot be opened.
    pub fn gather(&mut self, as_of: Option<u64>) -> Result<Gathered, SessionError> {
        let below = as_of.map_or(self.ledger.size(), |seq| seq + 1);
        self.terms.rows = form::use_of_rows(self.ledger.state());
        let which = Which {
            experiment: &self.experiment,
            judge: &self.terms.judge,
            environment: self.terms.environment.as_ref(),
            covariates: &self.terms.covariates,
            fields: &self.fields,
            places: &self.places,
            strata: self.ledger.state().asks(Question::WeightedLabels),
            use_of_rows: self.terms.rows,
            rows_below: below,
            audits_below: below,
        };
        let said = said::asked(self.ledger.state(), &self.experiment).filter(|_| as_of.is_none());
        let late = said.and_then(|of| of.late_covariate(&self.terms.covariates));
        if let Some((field, late)) = late {
            let (field, LateField { label, said }) = (field.clone(), late);
            return Err(EstimateError::SaidLate { field, label, said }.into());
        }
        let mut texts = Texts::new(&self.home, &self.ledger)?;
        let mut gathered =
            rows::gather(&self.ledger, &which, &mut texts).map_err(EstimateError::Rows)?;
        let late = said.and_then(|of| of.late_stratum());
        if let Some((policy, LateField { label, said })) = late.filter(|_| gathered.is_stratified) {
            let policy = policy.clone();
            gathered.withhold_weights(Undrawn::SaidLate {
                policy,
                said,
                label,
            });
        }
        let scope = self.terms.environment.as_ref();
        if let Some(scope) = scope.filter(|_| gathered.dataset.policies.is_empty()) {
            return Err(EstimateError::NoRows(scope.to_string()).into());
        }
        if gathered.dataset.policies.is_empty() {
            let (judge, experiment) = (self.terms.judge.clone(), self.experiment.clone());
            if !gathered.late.is_empty() {
                return Err(EstimateError::ScoredLate { judge, experiment }.into());
            }
            let draws = scores::draws(&self.ledger, self.ledger.state())?;
            let judges: BTreeSet<JudgeId> = draws
                .into_keys()
                .filter(|of| of.experiment == experiment)
                .map(|of| of.judge)
                .collect();
            let missing = EstimateError::NoScores {
                judge,
                experiment,
                judges: judges.into_iter().collect(),
            };
            return Err(missing.into());
        }
        self.terms.labels = compute::label_use(&gathered);
        Ok(gathered)
    }

    /// Marks policies that rest on entries of a compromised key: nothing is claimed of them, and nothing of them recorded.
    pub fn taint(&self, found: &mut Found) {
        let (state, calibrator) = (self.ledger.state(), found.digest());
        for policy in 0..found.analysis.policies.len() {
            let of = (&found.terms.judge, &found.name(policy));
            let by = tainted::claimed(state, &self.experiment, of, calibrator.as_ref());
            let scope = found.terms.environment.as_ref();
            let by = by.or_else(|| {
                let audited = tainted::audited(state, &self.experiment, of, scope);
                audited.map(|(_, key)| key)
            });
            if let Some(key) = by {
                found.tainted.insert(policy, key);
            }
        }
    }

    /// A fit as the rulebook asks for it, and as it stands on record where it was put there under one that did not count prompts.
    fn fit_as_recorded(&self, of: CalibratorFitted) -> Result<CalibratorFitted, SessionError> {
        if !self.ledger.state().asks(Question::AnsweredPrompts) {
            return Ok(compute::without_prompts(of));
        }
        let payload = Payload::from(of.clone());
        let Some(key) = payload.natural_key(Some(&self.experiment)) else {
            return Ok(of);
        };
        let since = self.ledger.state().fold::<Audits>().answers.prompts;
        let recorded = self.ledger.giver(&key)?;
        let is_older = recorded.zip(since).is_some_and(|(seq, since)| seq <= since);
        Ok(if is_older {
            compute::without_prompts(of)
        } else {
            of
        })
    }

    /// Appends what was found, fit first.
    ///
    /// # Errors
    /// [`SessionError::Port`] without an arbiter's key, and [`SessionError::Ledger`]; then nothing was appended.
    pub fn record(
        &mut self,
        ports: &mut dyn Ports,
        found: &Found,
        events: Vec<Payload>,
    ) -> Result<Submission, SessionError> {
        let (mut commands, mut blobs) = (Vec::new(), Vec::new());
        let command = |payload: Payload| Command::new(payload, Some(self.experiment.clone()));
        if let Some(fitted) = found.fitted() {
            commands.push(command(self.fit_as_recorded(fitted.event)?.into()));
            blobs.extend(fitted.blobs);
        }
        for mut payload in events {
            if let Payload::ContrastRecorded(of) = &mut payload {
                of.exploratory_since = looks::said(self.ledger.state(), &self.experiment, of);
            }
            commands.push(command(payload));
        }
        let need = KeyNeed::runner(Kind::EstimateRecorded);
        let signer = ports.signer(self.ledger.state(), need)?;
        let appended = self.ledger.append_with_blobs(&commands, &signer, &blobs)?;
        self.ledger.settle()?;
        append::tell_of_pin(ports, &self.ledger);
        Ok(Submission::of(&commands, appended))
    }
}
