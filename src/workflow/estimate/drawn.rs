//! With what probability each row was labelled, as the registered design has it and imports have its strata.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::DesignId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelDesignRegistered;
use clover_event::payload::label::LabelRecorded;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Micro;
use clover_projection::iterations::rows::IngestedRows;
use clover_projection::iterations::rows::Key;

use crate::estimate::rows::Gathered;
use crate::estimate::rows::Source;
use crate::import::kept;
use crate::import::kept::KeptError;
use crate::import::kept::Unread;
use crate::iterate::rows::STRATUM;

/// The probability one, in millionths.
const CERTAIN: u32 = 1_000_000;

/// Why it is not known with what probability rows were labelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undrawn {
    /// Nobody asked.
    #[error("strata were not read")]
    NotRead,
    /// Labels of a design that is not for calibration, or that nobody registered before them.
    #[error("labels of {policy} name {design}, which no design was registered as before them")]
    NoDesign {
        /// The policy.
        policy: PolicyId,
        /// What its labels name.
        design: DesignId,
    },
    /// Labels of one policy from more than one design.
    #[error(
        "labels of {policy} come from several designs: by which of them a row could be drawn is not known, so none has a weight; label a policy by strata under one design"
    )]
    SeveralDesigns {
        /// The policy.
        policy: PolicyId,
    },
    /// A row of no stratum, in a design that has some.
    #[error("no import says of which stratum {row} is: import it with --field stratum")]
    NoStratum {
        /// Policy, item and draw.
        row: String,
    },
    /// A row whose stratum was said once its label could be known.
    #[error("{row} was labelled before an import said of which stratum it is")]
    LabelledBefore {
        /// Policy, item and draw.
        row: String,
    },
    /// A stratum that was said once labels of its policy could be read.
    #[error(
        "the stratum of some rows of {policy} was said at seq {said}, after its first label at seq {label}"
    )]
    SaidLate {
        /// The policy.
        policy: PolicyId,
        /// The import.
        said: u64,
        /// The label.
        label: u64,
    },
    /// Rows of an import.
    #[error(transparent)]
    Unread(#[from] Unread),
}

/// Labels for calibration as they came, by policy.
#[derive(Default)]
struct Labelled {
    designs: BTreeSet<DesignId>,
    /// The first label of each row.
    rows: BTreeMap<(ItemId, u64), u64>,
}

/// Designs and labels of a log, as far as they tell how rows were chosen.
#[derive(Default)]
pub(super) struct Draws {
    designs: BTreeMap<DesignId, LabelDesignRegistered>,
    by_policy: BTreeMap<PolicyId, Labelled>,
    /// Labels that name no registered design.
    unregistered: BTreeMap<PolicyId, DesignId>,
}

/// The probability of a policy's rows, in millionths.
pub type Inclusion = BTreeMap<Key, Micro>;

impl Gathered {
    /// With what probability the rows of each policy were labelled, in millionths. Rows of a policy without labels have the
    /// probability one.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn inclusion(&self) -> Result<Vec<Vec<u32>>, Undrawn> {
        let known = match &self.inclusion {
            None => return Err(Undrawn::NotRead),
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(known)) => known,
        };
        let of = |policy: usize, row: usize| {
            let key = self.key(policy, row);
            let found = key.and_then(|key| known.get(&key));
            found.map_or(CERTAIN, |micro| {
                u32::try_from(micro.value()).unwrap_or(CERTAIN)
            })
        };
        let policies = self.sources.iter().enumerate();
        let rows = |(policy, source): (usize, &Source)| {
            let rows = 0..source.draws.len();
            rows.map(|row| of(policy, row)).collect()
        };
        Ok(policies.map(rows).collect())
    }

    /// Leaves labels that were drawn by stratum without weights.
    pub fn withhold_weights(&mut self, why: Undrawn) {
        self.inclusion = Some(Err(why));
    }

    /// Rows by policy.
    pub(super) fn rows(&self) -> BTreeMap<PolicyId, Vec<(ItemId, u64)>> {
        let mut found: BTreeMap<PolicyId, Vec<(ItemId, u64)>> = BTreeMap::new();
        for (policy, source) in self.sources.iter().enumerate() {
            for row in 0..source.draws.len() {
                if let Some((name, item, draw)) = self.key(policy, row) {
                    found.entry(name).or_default().push((item, draw));
                }
            }
        }
        found
    }
}

impl Draws {
    pub(super) fn design(&mut self, design: &LabelDesignRegistered) {
        if design.purpose == DesignPurpose::Calibrate {
            let of = self.designs.entry(design.design.clone());
            of.or_insert_with(|| design.clone());
        }
    }

    /// A label for calibration.
    pub(super) fn label(&mut self, seq: u64, label: &LabelRecorded) {
        if !self.designs.contains_key(&label.design) {
            let of = self.unregistered.entry(label.policy.clone());
            of.or_insert_with(|| label.design.clone());
        }
        let of = self.by_policy.entry(label.policy.clone()).or_default();
        of.designs.insert(label.design.clone());
        let row = (label.item.clone(), label.draw.value());
        of.rows.entry(row).or_insert(seq);
    }

    /// The probability of every row of the policies that have labels; rows by policy. What was imported after `newest` does
    /// not count.
    ///
    /// # Errors
    /// [`LedgerError`]; inside, why it is not known.
    pub(super) fn inclusion(
        &self,
        history: &dyn History,
        ingested: &[IngestedRows],
        newest: u64,
        rows: &BTreeMap<PolicyId, Vec<(ItemId, u64)>>,
    ) -> Result<Result<Inclusion, Undrawn>, LedgerError> {
        let Ok(field) = FieldId::new(STRATUM) else {
            return Ok(Err(Undrawn::NotRead));
        };
        let ingested: Vec<IngestedRows> = ingested
            .iter()
            .filter(|of| of.seq <= newest)
            .cloned()
            .collect();
        let strata = match kept::places(history, &ingested, &field) {
            Ok(strata) => strata,
            Err(KeptError::Ledger(error)) => return Err(error),
            Err(KeptError::Unread(unread)) => return Ok(Err(unread.into())),
        };
        let mut found = Inclusion::new();
        for (policy, rows) in rows {
            if let Err(why) = self.of_policy(policy, rows, &strata, &mut found) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(found))
    }

    fn of_policy(
        &self,
        policy: &PolicyId,
        rows: &[(ItemId, u64)],
        strata: &BTreeMap<Key, (u64, String)>,
        found: &mut Inclusion,
    ) -> Result<(), Undrawn> {
        let Some(labelled) = self.by_policy.get(policy) else {
            return Ok(());
        };
        if let Some(design) = self.unregistered.get(policy) {
            let (policy, design) = (policy.clone(), design.clone());
            return Err(Undrawn::NoDesign { policy, design });
        }
        let mut designs = labelled.designs.iter();
        let (Some(name), None) = (designs.next(), designs.next()) else {
            let policy = policy.clone();
            return Err(Undrawn::SeveralDesigns { policy });
        };
        let design = &self.designs[name];
        for (item, draw) in rows {
            let key = (policy.clone(), item.clone(), *draw);
            let label = labelled.rows.get(&(item.clone(), *draw)).copied();
            let inclusion = probability(design, &key, label, strata)?;
            found.insert(key, inclusion);
        }
        Ok(())
    }
}

/// With what probability a design labels a row, which was labelled at `label` if at all.
fn probability(
    design: &LabelDesignRegistered,
    key: &Key,
    label: Option<u64>,
    strata: &BTreeMap<Key, (u64, String)>,
) -> Result<Micro, Undrawn> {
    let named = design.strata.as_deref().unwrap_or_default();
    if named.is_empty() {
        return Ok(design.inclusion_micro);
    }
    let row = || format!("{}/{}/{}", key.0, key.1, key.2);
    let Some((seq, stratum)) = strata.get(key) else {
        return Err(Undrawn::NoStratum { row: row() });
    };
    if label.is_some_and(|label| label < *seq) {
        return Err(Undrawn::LabelledBefore { row: row() });
    }
    let of = named.iter().find(|of| of.stratum.as_str() == stratum);
    Ok(of.map_or(design.inclusion_micro, |of| of.inclusion_micro))
}
