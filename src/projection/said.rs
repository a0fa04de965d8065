//! When imports said fields of rows, beside when labels could be read: a covariate, or a stratum that weights labels, which was
//! said by whoever could know labels is one that could be chosen.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::PolicyId;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::LabelUse;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::draw_of_row;
use clover_ledger::Fold;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::DataIngested,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LedgerCreated,
    Kind::RulebookAdopted,
];

/// The imported field that names a row's stratum.
pub const STRATUM: &str = "stratum";

/// The covariate that comes from private texts; every other one is a field that imports kept.
pub const RESPONSE_LENGTH: &str = "response_length";

/// Something that was said late: the label that could be read, and the import after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateField {
    /// The first label that could be read.
    pub label: u64,
    /// The import.
    pub said: u64,
}

/// Fields and labels of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFields {
    /// The first label of the experiment that could be read.
    pub first_label: Option<u64>,
    /// The first label for calibration of each policy.
    pub labelled: BTreeMap<PolicyId, u64>,
    /// The first import that said a field after a label could be read, by field.
    pub late: BTreeMap<FieldId, LateField>,
    /// The same of an import that does not say which fields it says.
    pub late_unnamed: Option<LateField>,
    /// The first import that said a stratum of a policy after a label for calibration of it.
    pub late_strata: BTreeMap<PolicyId, LateField>,
}

/// Fields by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidFields {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentFields>,
    /// The rulebook in force: an import under one that did not ask is none that is late.
    pub rulebook: u64,
}

impl ExperimentFields {
    fn ingested(&mut self, seq: u64, said: &DataIngested) {
        let first = self.first_label;
        let Some(fields) = &said.fields else {
            let late = first.map(|label| LateField { label, said: seq });
            self.late_unnamed = self.late_unnamed.or(late);
            return;
        };
        for of in fields {
            let strata = of.fields.iter().any(|field| field.as_str() == STRATUM);
            if let Some(&label) = self.labelled.get(&of.policy).filter(|_| strata) {
                let late = LateField { label, said: seq };
                self.late_strata.entry(of.policy.clone()).or_insert(late);
            }
            let Some(label) = first else {
                continue;
            };
            for field in &of.fields {
                let late = LateField { label, said: seq };
                self.late.entry(field.clone()).or_insert(late);
            }
        }
    }

    /// The first covariate that imports said in part once a label could be read.
    pub fn late_covariate<'f>(
        &self,
        covariates: &'f [FieldId],
    ) -> Option<(&'f FieldId, LateField)> {
        let mut kept = covariates
            .iter()
            .filter(|field| field.as_str() != RESPONSE_LENGTH);
        kept.find_map(|field| {
            let late = self.late.get(field).copied().or(self.late_unnamed)?;
            Some((field, late))
        })
    }

    /// The first policy of which a stratum was said once a label for calibration of it could be read.
    pub fn late_stratum(&self) -> Option<(&PolicyId, LateField)> {
        let named = self.late_strata.iter().next();
        let named = named.map(|(policy, late)| (policy, *late));
        named.or_else(|| Some((self.labelled.keys().next()?, self.late_unnamed?)))
    }
}

impl Fold for SaidFields {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        match &event.payload {
            Payload::LedgerCreated(said) => {
                self.rulebook = said.rulebook.map_or(0, clover_num::Count::value);
            }
            Payload::RulebookAdopted(said) => {
                self.rulebook = self.rulebook.max(said.version.value());
            }
            _ => {}
        }
        let Some(id) = &event.header.experiment else {
            return;
        };
        let of = match self.by_experiment.get_mut(id) {
            Some(of) => of,
            None => self.by_experiment.entry(id.clone()).or_default(),
        };
        match &event.payload {
            Payload::DataIngested(said)
                if self.rulebook >= u64::from(Question::SaidBefore.since()) =>
            {
                of.ingested(seq, said);
            }
            Payload::LabelRecorded(said) => {
                of.first_label.get_or_insert(seq);
                if said.purpose == LabelPurpose::Calibrate
                    && !of.labelled.contains_key(&said.policy)
                {
                    of.labelled.insert(said.policy.clone(), seq);
                }
            }
            Payload::LabelRevealed(said) if draw_of_row(&said.row).is_some() => {
                of.first_label.get_or_insert(seq);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Fields of an experiment, where the rulebook in force asks when they were said.
pub fn asked<'s>(state: &'s State, experiment: &ExperimentId) -> Option<&'s ExperimentFields> {
    let of = state.fold::<SaidFields>().by_experiment.get(experiment);
    of.filter(|_| state.asks(Question::SaidBefore))
}

/// Covariates, and strata that weight labels, were said before the labels could be read. What an iteration reads is kept to
/// that row by row.
pub(super) fn check_terms(
    state: &State,
    experiment: &ExperimentId,
    terms: &EstimateTerms,
) -> RuleAnswer {
    let of = asked(state, experiment).filter(|_| terms.iteration.is_none());
    let Some(of) = of else {
        return Ok(());
    };
    if let Some((field, late)) = of.late_covariate(&terms.covariates) {
        return unmet(
            format!(
                "covariate {field} said of every row before the first label could be read, at seq {}",
                late.label
            ),
            format!("some of it said at seq {}", late.said),
        );
    }
    let late = of
        .late_stratum()
        .filter(|_| terms.labels == LabelUse::Weighted);
    if let Some((policy, late)) = late {
        return unmet(
            format!(
                "labels weighted by strata that were said of every row of {policy} before the first label of it, at seq {}",
                late.label
            ),
            format!("some said at seq {}", late.said),
        );
    }
    Ok(())
}
