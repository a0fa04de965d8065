//! The rows of an iteration from the ledger, as of a position: scores under the rubric, labels by part, slices,
//! environments, anchors.
//!
//! A row is a score of the iteration's judge. Its base score and evidence record give S under any rubric by the engine;
//! a score that was imported without a record stands as it is, and no patch can be computed on it. Labels for
//! calibration are those of fit and dev; labels of confirm clusters count once the iteration unsealed them. Rows of
//! anchor policies are anchors and nothing else. The same log gives the same rows in the same order.

mod answers;
mod asked;
mod fields;
mod join;
mod later;
mod records;
mod scored;
mod sequence;
mod shares;
mod window;

use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::SplitId;
use clover_event::id::Text;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::iteration::AnchorRows;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_ground::shell;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;
use clover_projection::splits::members_root;
use clover_rubric::Rubric;
use clover_rubric::engine::Rules;
use clover_rubric::evidence::Evidence;
use clover_rubric::prompt::Firing;
use clover_stats::sample::SampleError;

use crate::environments;
use crate::import::kept::KeptError;
use crate::import::kept::Unread;
use crate::iterate::compute::ScoredRubric;
use crate::iterate::compute::Table;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::rows::join::Sources;
use crate::iterate::rows::scored::Lack;
use crate::iterate::rows::scored::Raw;
use crate::iterate::rows::scored::scored;
use crate::iterate::rows::scored::scored_strictly;
use crate::patches;

pub use answers::Answers;
pub use answers::unverified;
pub use asked::JudgeRecords;
pub use asked::asked;
pub use fields::LOG_TOKENS;
pub use later::Later;
pub use later::LaterQuery;
pub use later::later;
pub use sequence::Sequence;
pub use sequence::Unit;
pub use shares::in_words as label_scale_in_words;
pub use window::FitWindow;
pub use window::fit_window;

pub use clover_projection::said::STRATUM;

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
pub enum IterationRowsError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something that has to be there first.
    #[error("{what}")]
    Missing {
        /// What is not there.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// The rubric in force cannot score some rows.
    #[error("evidence_missing: {rows} rows cannot be scored under the rubric, first {first}")]
    Evidence {
        /// How many.
        rows: usize,
        /// The first, and what it lacks.
        first: String,
    },
    /// Rows in the blob of an event.
    #[error(transparent)]
    Unread(#[from] Unread),
    /// The rows do not fit the plan.
    #[error(transparent)]
    Unfit(#[from] SampleError),
}

impl From<KeptError> for IterationRowsError {
    fn from(error: KeptError) -> Self {
        match error {
            KeptError::Ledger(error) => Self::Ledger(error),
            KeptError::Unread(error) => Self::Unread(error),
        }
    }
}

fn missing(what: impl Into<String>, next: impl Into<String>) -> IterationRowsError {
    IterationRowsError::Missing {
        what: what.into(),
        next: next.into(),
    }
}

/// Which rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsQuery<'a> {
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// The iteration.
    pub iteration: &'a IterationId,
    /// The last entry that is read.
    pub through: u64,
    /// The last entry that is read of the confirm block, once it was unsealed: its rows and its labels. Of all else,
    /// `through` is the last.
    pub confirm: Option<u64>,
}

/// The name of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowName {
    /// Who answered.
    pub policy: PolicyId,
    /// What was answered.
    pub item: ItemId,
    /// Which draw, from 0.
    pub draw: Count,
}

/// The rows of an iteration, with what candidates are computed from.
#[derive(Clone, Debug)]
pub struct IterationDataset {
    /// Whose scores.
    pub judge: JudgeId,
    /// The judge, if it was registered: scores that were imported need no registration.
    pub registered: Option<JudgeRegistered>,
    /// The parameters as opened.
    pub plan: IterationPlan,
    /// The rubric that it starts from.
    pub rubric: Rubric,
    /// Root of the fit part of its split.
    pub fit_root: Root,
    /// Root of the confirm block of its split.
    pub confirm_root: Root,
    /// Its split.
    pub split: SplitId,
    /// The last entry that was read.
    pub through: Count,
    /// The scale of which its labels are shares, and the entry that declared it; `None` where they stand as they are.
    pub label_scale: Option<(ScaleEnds, u64)>,
    /// The checked rows.
    pub table: Table,
    /// Name of each row.
    pub names: Vec<RowName>,
    /// What a reader should know: anchors that are not those registered, rows without evidence.
    pub notes: Vec<String>,
    /// The order of the confirm block, once it is unsealed, where its test is sequential.
    pub sequence: Option<Sequence>,
    /// Where confirm was unsealed, once it is read.
    unsealed: Option<u64>,
    raw: Vec<Raw>,
    anchors: Vec<Vec<Raw>>,
}

/// Rows that a rubric cannot score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("evidence_missing: {rows} rows cannot be scored under it, first {first}")]
pub struct EvidenceMissing {
    /// How many.
    pub rows: usize,
    /// The first, and what it lacks.
    pub first: String,
}

impl IterationDataset {
    /// Whether the judge can be asked anew.
    pub fn is_callable(&self) -> bool {
        let port = self.registered.as_ref().map(|judge| judge.port);
        matches!(port, Some(JudgePort::Builtin | JudgePort::Command))
    }

    /// Rows with an evidence record.
    pub fn with_evidence(&self) -> usize {
        self.raw.iter().filter(|raw| raw.evidence.is_some()).count()
    }

    /// The evidence of a row.
    pub fn evidence(&self, row: usize) -> Option<&Evidence> {
        self.raw[row].evidence.as_ref()
    }

    /// Paths of rules that fire on a row, ascending, each once; `None` for a row that they cannot score.
    pub fn fired(&self, rules: &Rules, row: usize) -> Option<Vec<Text>> {
        scored::fired(&self.raw[row], rules)
    }

    /// How often each rule of a rubric fires over the rows before the confirm window, and how many of those have no
    /// score under it.
    pub fn firing(&self, rubric: &Rubric) -> (Firing, u64) {
        let (rules, mut firing, mut without) = (rubric.rules(), Firing::new(rubric), 0);
        for &row in self.table.logs() {
            let raw = &self.raw[row];
            let scored = raw.evidence.as_ref().map(|of| rules.score(raw.base, of));
            match scored {
                Some(Ok(scored)) => firing.add(&scored),
                Some(Err(_)) | None => without += 1,
            }
        }
        (firing, without)
    }

    /// Covariates of an edited text: those of its own record; an imported one has its mean over the rows.
    pub fn covariates_of(&self, evidence: &Evidence) -> Vec<f64> {
        let design = self.plan.design.as_ref();
        let fields = design
            .map(|design| &design.covariates[..])
            .unwrap_or_default();
        let allowed = fields::allowed(&self.rubric);
        let columns = self.table.data().covariates.iter();
        let each = fields.iter().zip(columns);
        each.map(|(field, column)| {
            let own = fields::of_evidence(field.as_str(), evidence, allowed);
            own.unwrap_or_else(|| clover_num::math::mean(column))
        })
        .collect()
    }

    /// Anchors under rules, in the order of the table, from recorded base scores or from others: those of all anchor rows,
    /// their ids ascending. `None` where there are not as many, or one cannot be scored.
    pub fn anchors_under(
        &self,
        rules: &Rules,
        given: Option<&[Micro]>,
    ) -> Option<Vec<RubricScores>> {
        let anchors = &self.table.data().anchors;
        let mut order: Vec<usize> = (0..anchors.len()).collect();
        order.sort_by_key(|&at| format!("{}/", anchors[at].policy));
        let rows: usize = self.anchors.iter().map(Vec::len).sum();
        let mut rest = given.filter(|given| given.len() == rows);
        if given.is_some() && rest.is_none() {
            return None;
        }
        let mut all = vec![RubricScores::default(); anchors.len()];
        for at in order {
            let mut raw = self.anchors[at].clone();
            if let Some(scores) = rest {
                let (own, others) = scores.split_at(raw.len());
                for (raw, base) in raw.iter_mut().zip(own) {
                    raw.base = *base;
                }
                rest = Some(others);
            }
            let mut lack = Lack::default();
            all[at] = scored(&raw, rules, &mut lack, |_| String::new());
            if lack.first.is_some() {
                return None;
            }
        }
        Some(all)
    }

    /// A candidate: every row and anchor scored anew from its record, or from the answers of a judge that was told something
    /// else.
    ///
    /// # Errors
    /// [`EvidenceMissing`] where a row has no record, or one without what the rules ask.
    pub fn candidate(
        &self,
        (patch, kappa): (Digest, u64),
        rules: &Rules,
        answers: Option<&Answers>,
    ) -> Result<ScoredRubric, EvidenceMissing> {
        let mut lack = Lack::default();
        let anew = answers.map(|of| self.answered(of, &mut lack));
        let (rows, raw_anchors) = match &anew {
            Some((rows, anchors)) => (rows, anchors),
            None => (&self.raw, &self.anchors),
        };
        let scored = scored(rows, rules, &mut lack, |at| {
            self.table.data().rows[at].clone()
        });
        let mut anchors = Vec::with_capacity(raw_anchors.len());
        for (raw, anchor) in raw_anchors.iter().zip(&self.table.data().anchors) {
            let name = |at: usize| format!("{} row {at}", anchor.policy);
            anchors.push(scored_strictly(raw, rules, &mut lack, name));
        }
        let without = rows.iter().filter(|raw| raw.evidence.is_none()).count();
        if without > 0 && lack.first.is_none() {
            let at = rows.iter().position(|raw| raw.evidence.is_none());
            let name = at.map_or(String::new(), |at| self.table.data().rows[at].clone());
            lack.first = Some(format!("{name}: no evidence record"));
        }
        lack.rows += without;
        match lack.first {
            Some(first) => Err(EvidenceMissing {
                rows: lack.rows,
                first,
            }),
            None => Ok(ScoredRubric {
                patch,
                kappa,
                scored,
                anchors,
            }),
        }
    }
}

/// The root over the rows of an anchor policy: their ids `policy/item/draw` in ascending order, each once.
pub fn anchor_root(ids: &BTreeSet<String>) -> Root {
    members_root(ids.iter().map(String::as_str))
}

/// What an anchor set says of the recorded rows of one policy: how many there are, and their root.
///
/// # Errors
/// [`IterationRowsError`].
pub fn anchor_rows(
    history: &dyn History,
    experiment: &ExperimentId,
    size: u64,
    judge: Option<&JudgeId>,
    policy: &PolicyId,
) -> Result<AnchorRows, IterationRowsError> {
    let log = RowLog::through(history, experiment, None, size.saturating_sub(1))?;
    let judge = judge_of(&log, judge)?;
    let of = log.scores[&judge].iter();
    let ids: BTreeSet<String> = of
        .filter(|score| score.key.0 == *policy)
        .map(|score| id_of(&score.key))
        .collect();
    Ok(AnchorRows {
        count: Count::new(ids.len() as u64).unwrap_or_default(),
        policy: policy.clone(),
        rows_root: anchor_root(&ids),
    })
}

fn id_of((policy, item, draw): &Key) -> String {
    row_of_draw(policy, item, Count::new(*draw).unwrap_or_default())
}

/// The judge that a plan names, else the only one with scores.
fn judge_of(log: &RowLog, named: Option<&JudgeId>) -> Result<JudgeId, IterationRowsError> {
    if let Some(judge) = named {
        if log.scores.contains_key(judge) {
            return Ok(judge.clone());
        }
        return Err(missing(
            format!("no score of judge {judge}, which the manifest names"),
            format!(
                "clover judge run --judge {} --rows PATH",
                shell::word(judge)
            ),
        ));
    }
    let is_derived = |judge: &&JudgeId| log.judges.get(*judge).is_some_and(|of| of.of.is_some());
    let mut judges = log.scores.keys().filter(|judge| !is_derived(judge));
    match (judges.next(), judges.next()) {
        (Some(judge), None) => Ok(judge.clone()),
        (None, _) => Err(missing(
            "no score of any judge",
            "clover judge run --judge ID --rows PATH",
        )),
        (Some(a), Some(b)) => Err(missing(
            format!(
                "scores of several judges, {a} and {b} among them: iteration.design.judge of the manifest says which"
            ),
            "clover prereg amend --help",
        )),
    }
}

/// A number of 53 bits for one purpose, from the registered seed.
pub fn number(plan: &IterationPlan, iteration: &IterationId, purpose: &str) -> u64 {
    let opened = crate::iterate::steps::OpenIteration {
        iteration: iteration.clone(),
        plan: plan.clone(),
    };
    opened.number(purpose)
}

/// The rows of an iteration.
///
/// # Errors
/// [`IterationRowsError`].
pub fn load(
    history: &dyn History,
    which: &RowsQuery<'_>,
) -> Result<IterationDataset, IterationRowsError> {
    let last = which.confirm.unwrap_or(which.through).max(which.through);
    let log = RowLog::through(history, which.experiment, Some(which.iteration), last)?;
    let Some(opening) = log.opening.clone() else {
        let what = format!("no iteration {} by then", which.iteration);
        return Err(missing(what, "clover iterate list"));
    };
    let design = opening.plan.design.clone();
    let Some(design) = design else {
        return Err(missing(
            "a plan without iteration.design",
            "clover iterate list",
        ));
    };
    let leaves = log.rubrics.get(&opening.rubric_hash).cloned();
    let rubric = leaves.and_then(|leaves| patches::rubric_with(&leaves));
    let Some(rubric) = rubric else {
        return Err(missing("the rubric of the iteration", "clover verify"));
    };
    let Some(formed) = log.split(which.iteration, opening.seq).cloned() else {
        let experiment = which.experiment;
        return Err(missing(
            format!("no split of {experiment} that is formed and not spent"),
            format!("clover experiment split {experiment} --seed N --hashed"),
        ));
    };
    let judge = judge_of(&log, design.judge.as_ref())?;
    let evidence = records::evidence(history, &log, &judge)?;
    let wanted = wanted(&design, &log);
    let unsealed = log.unsealed.iter();
    let unsealed = unsealed.filter(|(_, by, _)| by == which.iteration);
    let unsealed = unsealed.map(|(.., seq)| *seq).next();
    let parts = log.parts.get(&formed.split);
    let is_confirm = |key: &Key| parts.and_then(|of| of.get(&key.1)) == Some(&SplitPart::Confirm);
    let fields: Vec<&FieldId> = wanted.iter().collect();
    let of_confirm = (&is_confirm as &dyn Fn(&Key) -> bool, unsealed);
    let (imported, late) = records::imported_before(history, &log, &fields, of_confirm)?;
    let sources = Sources {
        log: &log,
        design: &design,
        rubric: &rubric,
        evidence: &evidence,
        imported: &imported,
        late: &late,
        judge: &judge,
        formed: &formed,
        through: which.through,
        unsealed,
    };
    let (table, names, raw, anchors, notes) = sources.table()?;
    let sequence = Sequence::of(&log, &opening, &formed, (unsealed, &names, &raw));
    Ok(IterationDataset {
        sequence,
        registered: log.judges.get(&judge).cloned(),
        judge,
        plan: opening.plan,
        fit_root: formed.fit_root,
        confirm_root: formed.confirm_root,
        split: formed.split,
        through: Count::new(last).unwrap_or_default(),
        label_scale: log.label_scale(),
        table,
        names,
        notes,
        unsealed,
        raw,
        anchors,
        rubric,
    })
}

/// Fields that an import has to have kept.
fn wanted(design: &IterationDesign, log: &RowLog) -> Vec<FieldId> {
    let cells = design.slices.iter().flat_map(|family| &family.cells);
    let conditions = cells.flat_map(|cell| &cell.conditions);
    let mut wanted: BTreeSet<FieldId> = conditions.map(|of| of.field.clone()).collect();
    wanted.extend(design.covariates.iter().cloned());
    let families = design.environments.iter();
    wanted.extend(families.filter_map(|of| environments::field(&of.scope())));
    if log.designs.values().any(|of| of.strata.is_some()) {
        wanted.extend(FieldId::new(STRATUM));
    }
    wanted.retain(|field| !fields::is_own(field.as_str()));
    wanted.into_iter().collect()
}
