//! From a log to a dataset: scores of one judge, open labels by what they are for, and what was left out.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimated::FilterCounts;
use clover_event::payload::estimated::RowUse;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelPurpose;
use clover_ground::canon;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::audits::Audits;
use clover_projection::iterations::rows::IngestedRows;
use clover_projection::iterations::rows::Key;
use clover_projection::reader::LogReader;
use clover_projection::timely::ExperimentRows;
use serde::Serialize;

use crate::analyze::dataset::Dataset;
use crate::analyze::dataset::Policy;
use crate::analyze::dataset::Prompts;
use crate::analyze::read;
pub use crate::estimate::covariates::Covariates;
pub use crate::estimate::covariates::NOT_AT_HAND;
pub use crate::estimate::covariates::NoCovariates;
use crate::estimate::drawn::Draws;
use crate::estimate::drawn::Inclusion;
use crate::estimate::drawn::Undrawn;
use crate::estimate::labels;
use crate::estimate::labels::LabelList;
pub use crate::estimate::labels::Source;
pub use crate::estimate::probes::Probes;
use crate::estimate::scope;
use crate::estimate::scope::RowPlaces;
use crate::import::kept;
use crate::import::kept::FieldWords;
use crate::import::kept::KeptError;
use crate::import::kept::UnscoredRows;

/// Millionths of one.
const ONE: f64 = 1e6;

/// Why rows could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A covariate of a row is not at hand.
    #[error("covariate {field} of the score at seq {seq}: {what}")]
    Covariate {
        /// Its name.
        field: FieldId,
        /// The score.
        seq: u64,
        /// What is missing.
        what: String,
    },
    /// A covariate that no import kept of a row.
    #[error("covariate {field} of {row}: expected a number that an import kept, found {found}")]
    Number {
        /// Its name.
        field: FieldId,
        /// Policy, item and draw.
        row: String,
        /// What was found.
        found: String,
    },
    /// Fields that imports kept.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// Rows that were placed in an environment, or out of it, by whoever could read their labels.
    #[error(
        "{rows} labelled rows had no {field} before their labels could be read, the first {first}: which of them are in {scope} could be chosen"
    )]
    PlacedLate {
        /// The environment.
        scope: String,
        /// The field that places them.
        field: FieldId,
        /// How many.
        rows: usize,
        /// Policy, item and draw of the first.
        first: String,
    },
}

/// Which rows are read.
#[derive(Clone, Debug)]
pub struct Which<'a> {
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Whose scores.
    pub judge: &'a JudgeId,
    /// The environment whose rows and labels alone are read; `None` for all.
    pub environment: Option<&'a EnvironmentScope>,
    /// Covariates beside the score: the length of responses, or numbers that imports kept of each row.
    pub covariates: &'a [FieldId],
    /// Fields that imports kept, to part rows by; `policy` needs none.
    pub fields: &'a [FieldId],
    /// Fields that place rows in environments: of a row, what was said before its label could be read.
    pub places: &'a [FieldId],
    /// Whether it is to be known how rows were drawn for labels.
    pub strata: bool,
    /// Which rows count; of any time where it is not said.
    pub use_of_rows: Option<RowUse>,
    /// Scores and labels below this position are read.
    pub rows_below: u64,
    /// Audits and fits below this position are read; at least `rows_below`.
    pub audits_below: u64,
}

/// One row's line in an inclusion manifest.
#[derive(Serialize)]
struct Line<'a> {
    draw: u64,
    item: &'a str,
    labels_micro: &'a [i64],
    policy: &'a str,
    score_micro: i64,
}

/// What an experiment holds of one judge.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Scores, and labels for calibration, of every policy.
    pub dataset: Dataset,
    /// Items by number.
    pub prompts: Prompts,
    /// Beside the dataset, by policy.
    pub sources: Vec<Source>,
    /// Labels for audits by design, then policy.
    pub probes: BTreeMap<DesignId, BTreeMap<usize, Probes>>,
    /// What was read and what was not.
    pub filter: FilterCounts,
    /// The newest score or label for calibration.
    pub newest: u64,
    /// The newest import, whose fields say in which environment a row is.
    pub newest_import: u64,
    /// The newest audit.
    pub newest_audit: u64,
    /// Audits as they stand.
    pub audits: Audits,
    /// Whether a design for calibration draws some strata more often than others.
    pub is_stratified: bool,
    /// Rows with a label for audits and no score, by design, then policy.
    pub unscored_probes: BTreeMap<DesignId, BTreeMap<PolicyId, BTreeSet<(ItemId, u64)>>>,
    /// Rows that do not count, of every policy that has some: they were scored once its labels could be read.
    pub late: BTreeMap<PolicyId, u64>,
    /// Those of policies with other rows, by position. A probe of one is known by its place after the rows that count.
    pub aside: BTreeMap<usize, (Policy, Source)>,
    /// Clusters that a split keeps for confirm, with the entry that listed each.
    pub confirm: BTreeMap<ItemId, u64>,
    /// The first label that could be read, of any policy and purpose.
    pub first_label: Option<u64>,
    /// The newest split that was formed before that.
    pub formed: Option<u64>,
    /// Probability of a label by each design for audits, in millionths.
    pub inclusions: BTreeMap<DesignId, Micro>,
    /// With what probability rows of the policies that have labels were labelled, or why that is not known.
    pub(super) inclusion: Option<Result<Inclusion, Undrawn>>,
    /// Audits and earlier looks below this position were read.
    pub below: u64,
    /// Policies of which rows on record have no score of the judge.
    pub unscored: BTreeMap<PolicyId, UnscoredRows>,
    /// Fields that imports kept, of those that were asked for.
    kept: FieldWords,
    /// Which row is in which environment.
    pub(super) places: RowPlaces,
}

/// The name of a row's policy among its fields.
pub const POLICY: &str = "policy";

/// Whether a covariate comes from private texts; every other one is a field that imports kept.
fn is_of_texts(field: &FieldId) -> bool {
    field.as_str() == read::RESPONSE_LENGTH
}

impl Gathered {
    /// Whether a row is in an environment, whose field was asked for.
    pub fn is_in(&self, policy: usize, row: usize, scope: &EnvironmentScope) -> bool {
        let Some(key) = self.key(policy, row) else {
            return false;
        };
        self.places.holds(&key, scope)
    }

    /// The word of a field that an import kept of a row.
    pub fn word(&self, policy: usize, row: usize, field: &FieldId) -> Option<&str> {
        let word = self.kept.get(&self.key(policy, row)?)?.get(field)?;
        Some(word.as_str())
    }

    pub(super) fn key(&self, policy: usize, row: usize) -> Option<Key> {
        let (of, source, row) = self.row(policy, row);
        let item = self.prompts.ids().get(of.prompts[row] as usize)?;
        let (name, item) = (of.name.parse().ok()?, item.parse().ok()?);
        Some((name, item, source.draws[row]))
    }

    /// Covariates that imports kept, as numbers of every row.
    fn fill(&mut self, covariates: &[FieldId]) -> Result<(), RowsError> {
        let kept = covariates.iter().enumerate();
        for (at, field) in kept.filter(|(_, field)| !is_of_texts(field)) {
            for policy in 0..self.dataset.policies.len() {
                let rows = self.sources[policy].draws.len();
                let column = (0..rows).map(|row| self.number(policy, row, field));
                let counted: Vec<f64> = column.collect::<Result<_, _>>()?;
                let late = self.late_column(policy, field)?;
                self.dataset.policies[policy].covariates[at] = counted;
                if let Some((of, _)) = self.aside.get_mut(&policy) {
                    of.covariates[at] = late;
                }
            }
        }
        Ok(())
    }

    pub(super) fn number(
        &self,
        policy: usize,
        row: usize,
        field: &FieldId,
    ) -> Result<f64, RowsError> {
        let word = self.word(policy, row, field);
        let parsed = word.and_then(|word| Micro::parse(word).ok());
        let number = parsed.map(|(number, _)| number.value() as f64 / ONE);
        number.ok_or_else(|| {
            let (of, source, row) = self.row(policy, row);
            let item = &self.prompts.ids()[of.prompts[row] as usize];
            RowsError::Number {
                field: field.clone(),
                row: format!("{}/{item}/{}", of.name, source.draws[row]),
                found: word.map_or("none".to_owned(), |word| format!("{word:?}")),
            }
        })
    }

    /// The position of a policy.
    pub fn policy(&self, name: &str) -> Option<usize> {
        let mut policies = self.dataset.policies.iter();
        policies.position(|policy| policy.name == name)
    }

    /// The canonical line of one row with these labels.
    pub(super) fn line(&self, policy: usize, row: usize, labels: &[i64]) -> Vec<u8> {
        let (of, source, row) = self.row(policy, row);
        let line = Line {
            draw: source.draws[row],
            item: &self.prompts.ids()[of.prompts[row] as usize],
            labels_micro: labels,
            policy: &of.name,
            score_micro: source.scores[row],
        };
        canon::to_bytes(&line).expect("BUG: ids and integers have a canonical form")
    }

    /// The Merkle root of all rows of a policy, in their order.
    pub fn root(&self, policy: usize) -> Root {
        let mut tree = Frontier::new();
        let source = &self.sources[policy];
        for row in 0..source.draws.len() {
            let labels = source.labels.get(&row);
            let labels = labels.map_or(&[][..], Vec::as_slice);
            tree.push(merkle::leaf_hash(&self.line(policy, row, labels)));
        }
        Root(tree.root())
    }
}

/// The mean of labels in millionths.
pub(super) fn mean(labels: &[i64]) -> f64 {
    let total = labels
        .iter()
        .fold(0_i64, |total, label| total.saturating_add(*label));
    if labels.len() == 1 {
        total as f64 / ONE
    } else {
        total as f64 / ONE / labels.len() as f64
    }
}

/// Rows of one policy as they come.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) items: Vec<ItemId>,
    pub(super) draws: Vec<u64>,
    pub(super) scores: Vec<i64>,
    pub(super) scored: Vec<u64>,
    pub(super) covariates: Vec<Vec<f64>>,
}

impl Rows {
    fn push(&mut self, seq: u64, score: &ScoreRecorded) {
        self.items.push(score.item.clone());
        self.draws.push(score.draw.value());
        self.scores.push(score.score_micro.value());
        self.scored.push(seq);
    }
}

/// What a walk over the log has found so far.
#[derive(Default)]
struct Walk {
    rows: BTreeMap<PolicyId, Rows>,
    labels: LabelList,
    sealed: u64,
    /// Counts so far; those of `found` are of when the newest row was read, so that they do not move without one.
    counts: FilterCounts,
    purposes: BTreeMap<DesignId, DesignPurpose>,
    ingested: Vec<IngestedRows>,
    draws: Draws,
    /// Which rows were scored in time, where it is asked.
    timely: ExperimentRows,
    found: Gathered,
}

/// Reads the rows of an experiment.
///
/// # Errors
/// [`RowsError`].
pub fn gather(
    history: &dyn History,
    which: &Which<'_>,
    covariates: &mut dyn Covariates,
) -> Result<Gathered, RowsError> {
    if let Some(field) = which.covariates.iter().find(|field| is_of_texts(field))
        && !covariates.are_at_hand()
    {
        let (field, what) = (field.clone(), NOT_AT_HAND.to_owned());
        return Err(RowsError::Covariate {
            field,
            seq: 0,
            what,
        });
    }
    let mut walk = Walk::default();
    let end = which.audits_below.max(which.rows_below);
    let mut wrong = None;
    LogReader::below(history, end).each(|seq, event| {
        walk.labels.adopted(&event.payload);
        if seq < which.audits_below {
            walk.found.audits.adopt(seq, &event.payload);
        }
        if event.experiment() != Some(which.experiment) {
            return ControlFlow::Continue(());
        }
        walk.governed(seq, which, &event.payload);
        if seq < which.rows_below {
            if which.use_of_rows.is_some() {
                walk.timely.take(seq, &event.payload);
            }
            wrong = walk.row(seq, which, &event.payload, covariates).err();
        }
        match wrong {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    })?;
    if let Some(error) = wrong {
        return Err(error);
    }
    let wanted = which.covariates.iter().filter(|field| !is_of_texts(field));
    let wanted: Vec<&FieldId> = wanted.chain(which.fields).collect();
    let kept = kept::fields(history, &walk.ingested, &wanted)?;
    let (draws, ingested) = (
        std::mem::take(&mut walk.draws),
        std::mem::take(&mut walk.ingested),
    );
    let unscored = walk.unscored(history, &ingested)?;
    let places = RowPlaces::read(history, &ingested, which, &walk.labels)?;
    if let Some(scope) = which.environment {
        walk.found.unscored_probes = places.narrow(scope, &mut walk.rows, &mut walk.labels)?;
    }
    let mut found = walk.done(which);
    if which.strata && found.is_stratified {
        let known = draws.inclusion(history, &ingested, found.newest, &found.rows())?;
        found.inclusion = Some(known);
    }
    found.below = which.audits_below;
    found.kept = kept;
    found.unscored = unscored;
    found.places = places;
    found.fill(which.covariates)?;
    Ok(found)
}

impl Walk {
    /// Rows on record of policies that the judge scored, where it has no score of some.
    fn unscored(
        &self,
        history: &dyn History,
        ingested: &[IngestedRows],
    ) -> Result<BTreeMap<PolicyId, UnscoredRows>, KeptError> {
        let draws = |rows: &Rows| -> BTreeSet<(ItemId, u64)> {
            rows.items
                .iter()
                .cloned()
                .zip(rows.draws.iter().copied())
                .collect()
        };
        let scored: BTreeMap<&PolicyId, _> = self
            .rows
            .iter()
            .map(|(policy, rows)| (policy, draws(rows)))
            .collect();
        let is_scored = |(policy, item, draw): &Key| {
            let of = scored.get(policy);
            of.is_some_and(|of| of.contains(&(item.clone(), *draw)))
        };
        kept::unscored(history, ingested, &is_scored)
    }

    fn governed(&mut self, seq: u64, which: &Which<'_>, payload: &Payload) {
        if seq >= which.audits_below {
            return;
        }
        self.found.audits.take(which.experiment, seq, payload);
        if scope::audited(payload) == Some(which.judge) {
            self.found.newest_audit = seq;
        }
    }

    fn row(
        &mut self,
        seq: u64,
        which: &Which<'_>,
        payload: &Payload,
        covariates: &mut dyn Covariates,
    ) -> Result<(), RowsError> {
        match payload {
            Payload::ScoreRecorded(score) if score.judge == *which.judge => {
                self.moved(seq);
                let rows = match self.rows.get_mut(&score.policy) {
                    Some(rows) => rows,
                    None => self.rows.entry(score.policy.clone()).or_default(),
                };
                rows.covariates
                    .resize_with(which.covariates.len(), Vec::new);
                for (column, field) in rows.covariates.iter_mut().zip(which.covariates) {
                    if !is_of_texts(field) {
                        continue;
                    }
                    let value = covariates.value(field, score).map_err(|what| {
                        let field = field.clone();
                        RowsError::Covariate { field, seq, what }
                    })?;
                    column.push(value);
                }
                rows.push(seq, score);
            }
            Payload::ScoreRecorded(_) => bump(&mut self.counts.other_judges),
            Payload::DataIngested(said) => self.ingested(seq, which, said),
            Payload::ScoreConflict(_) => bump(&mut self.counts.conflicts),
            Payload::LabelDesignRegistered(design) => {
                let stratified = design.strata.as_ref().is_some_and(|of| !of.is_empty());
                self.found.is_stratified |=
                    design.purpose == DesignPurpose::Calibrate && stratified;
                self.draws.design(design);
                if design.purpose == DesignPurpose::Audit {
                    let known = self.found.inclusions.entry(design.design.clone());
                    known.or_insert(design.inclusion_micro);
                }
                self.purposes.insert(design.design.clone(), design.purpose);
            }
            Payload::LabelRecorded(label) => {
                self.found.first_label.get_or_insert(seq);
                let is_new = self.labels.recorded(seq, label);
                if label.purpose != LabelPurpose::Audit {
                    self.moved(seq);
                    if is_new {
                        self.draws.label(seq, label);
                    }
                }
            }
            Payload::SplitsListed(said) if said.part == SplitPart::Confirm => {
                for cluster in &said.clusters {
                    self.found.confirm.entry(cluster.clone()).or_insert(seq);
                }
            }
            Payload::SplitsFormed(_) if self.found.first_label.is_none() => {
                self.found.formed = Some(seq);
            }
            Payload::LabelSealed(_) => self.sealed += 1,
            Payload::LabelRevealed(label) => {
                self.sealed = self.sealed.saturating_sub(1);
                self.found.first_label.get_or_insert(seq);
                if self.purposes.get(&label.design) == Some(&DesignPurpose::Audit) {
                    self.labels.revealed(seq, label);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What an import kept is read where a covariate needs it.
    fn ingested(&mut self, seq: u64, which: &Which<'_>, said: &DataIngested) {
        let is_kept = which.covariates.iter().any(|field| !is_of_texts(field));
        if is_kept || which.environment.is_some() {
            self.moved(seq);
        }
        self.found.newest_import = seq;
        self.ingested.push(IngestedRows::of(seq, said));
    }

    /// A score or a label for calibration was read.
    fn moved(&mut self, seq: u64) {
        self.found.newest = seq;
        self.counts.sealed = Count::new(self.sealed).unwrap_or_default();
        self.found.filter = self.counts;
    }

    /// Joins labels and rows.
    fn done(self, which: &Which<'_>) -> Gathered {
        let mut found = self.found;
        let mut places = labels::Places::new();
        let mut names: BTreeMap<PolicyId, usize> = BTreeMap::new();
        for (name, rows) in self.rows {
            let (rows, late) = match self.timely.late(&name, which.judge) {
                Some(late) => rows.parted(&name, late),
                None => (rows, Rows::default()),
            };
            if !late.scores.is_empty() {
                found.late.insert(name.clone(), late.scores.len() as u64);
            }
            if rows.scores.is_empty() {
                continue;
            }
            let (at, counted) = (found.sources.len(), rows.scores.len());
            let mut of = |rows: Rows, first: usize| {
                let parted = rows.of_policy(&name, &mut found.prompts);
                for (row, (prompt, draw)) in
                    parted.0.prompts.iter().zip(&parted.1.draws).enumerate()
                {
                    places.insert((at, *prompt, *draw), first + row);
                }
                parted
            };
            let ((policy, source), late) = (of(rows, 0), of(late, counted));
            found.dataset.policies.push(policy);
            found.sources.push(source);
            if !late.0.is_empty() {
                found.aside.insert(at, late);
            }
            names.insert(name, at);
        }
        found.dataset.covariates = which
            .covariates
            .iter()
            .map(|field| field.as_str().to_owned())
            .collect();
        labels::join(&mut found, self.labels, &names, &places);
        for (policy, source) in found.dataset.policies.iter_mut().zip(&found.sources) {
            for (&row, labels) in &source.labels {
                policy.labels[row] = Some(mean(labels));
            }
        }
        let rows = found
            .sources
            .iter()
            .map(|source| source.draws.len())
            .sum::<usize>();
        found.filter.rows = Count::new(rows as u64).unwrap_or_default();
        found
    }
}

pub(super) fn bump(count: &mut Count) {
    *count = Count::new(count.value() + 1).unwrap_or(*count);
}
