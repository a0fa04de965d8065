//! The fit window of an experiment: what a plan may be fitted to before it is signed.
//!
//! Whatever lies outside of the fit part is dropped from the log before anything is joined: no label of dev, of confirm or
//! of an audit is there to be read. Of the other parts only rows with a score are counted, and how many of confirm are
//! sealed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::id::SplitId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::IterationDesign;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::iterations::rows::RowLog;
use clover_projection::iterations::rows::SplitFormation;

use crate::import::kept;
use crate::iterate::compute::Table;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::fields;
use crate::iterate::rows::join::Sources;
use crate::iterate::rows::judge_of;
use crate::iterate::rows::missing;
use crate::iterate::rows::records;
use crate::iterate::rows::wanted;
use crate::patches;

/// Rows and labels of the fit part, and how many rows the others have.
#[derive(Clone, Debug)]
pub struct FitWindow {
    /// The newest anchors, where some are registered.
    pub anchors: Option<AnchorSetId>,
    /// Words of imported fields and of `policy`, one for each row of the table; `None` where a row has none.
    pub fields: BTreeMap<FieldId, Vec<Option<String>>>,
    /// Root of the fit part.
    pub fit_root: Root,
    /// Whose scores.
    pub judge: JudgeId,
    /// The scale of which labels are shares, where one is on record.
    pub label_scale: Option<ScaleEnds>,
    /// Scored rows before the confirm window, whatever their part; anchors are none.
    pub logs: u64,
    /// Scored rows of each part.
    pub rows: BTreeMap<SplitPart, u64>,
    /// Rows of the confirm block with a sealed label.
    pub sealed: u64,
    /// The split.
    pub split: SplitId,
    /// The rows of the fit part, and no others.
    pub table: Table,
    /// The last entry that was read.
    pub through: Count,
}

impl FitWindow {
    /// Scored rows of a part.
    pub fn rows_of(&self, part: SplitPart) -> u64 {
        self.rows.get(&part).copied().unwrap_or(0)
    }

    /// Labelled rows of the fit part.
    pub fn labelled(&self) -> u64 {
        self.table.labelled(SplitPart::Fit).len() as u64
    }
}

/// The split that an iteration would run on that opened now: the last that was formed and whose confirm block is not spent.
fn formed(log: &RowLog, experiment: &ExperimentId) -> Result<SplitFormation, IterationRowsError> {
    let spent = |formed: &&SplitFormation| {
        let mut unsealed = log.unsealed.iter();
        unsealed.any(|(root, ..)| *root == formed.confirm_root)
    };
    let found = log.formed.iter().rfind(|formed| !spent(formed));
    found.cloned().ok_or_else(|| {
        missing(
            format!("no split of {experiment} that is formed and not spent"),
            format!("clover experiment split {experiment} --seed N --hashed"),
        )
    })
}

/// Reads the fit window of an experiment through a position, under a rubric and with the slices of a design.
///
/// # Errors
/// [`IterationRowsError`].
pub fn fit_window(
    history: &dyn History,
    experiment: &ExperimentId,
    design: &IterationDesign,
    through: u64,
) -> Result<FitWindow, IterationRowsError> {
    let mut log = RowLog::through(history, experiment, None, through)?;
    let formed = formed(&log, experiment)?;
    let judge = judge_of(&log, design.judge.as_ref())?;
    let newest = log.anchors.last().map(|set| set.anchors.clone());
    let anchors = log.anchors.iter();
    let anchors: BTreeSet<_> = anchors
        .flat_map(|set| [set.low.policy.clone(), set.high.policy.clone()])
        .collect();
    let parts = log.parts.remove(&formed.split).unwrap_or_default();
    let (mut rows, mut logs) = (BTreeMap::new(), 0);
    let scores = log.scores.get(&judge).into_iter().flatten();
    for score in scores.filter(|score| !anchors.contains(&score.key.0)) {
        let part = parts.get(&score.key.1);
        if let Some(part) = part {
            *rows.entry(*part).or_insert(0) += 1;
        }
        logs += u64::from(part != Some(&SplitPart::Confirm));
    }
    let sealed = log.sealed.iter().map(|(key, _)| key);
    let sealed = sealed.filter(|(_, item, _)| parts.get(item) == Some(&SplitPart::Confirm));
    let sealed = sealed.collect::<BTreeSet<_>>().len() as u64;
    // From here on there are no rows and no labels but those of the fit part.
    let is_fit = |item: &_| parts.get(item) == Some(&SplitPart::Fit);
    for scores in log.scores.values_mut() {
        scores.retain(|score| is_fit(&score.key.1) && !anchors.contains(&score.key.0));
    }
    log.labels
        .retain(|label| !label.is_confirm && is_fit(&label.key.1));
    log.audited.clear();
    log.sealed.clear();
    log.parts.insert(formed.split.clone(), parts);
    joined(history, &log, design, (&formed, judge, through)).map(|(table, fields, judge)| {
        FitWindow {
            anchors: newest,
            fields,
            fit_root: formed.fit_root,
            judge,
            label_scale: log.label_scale().map(|(ends, _)| ends),
            logs,
            rows,
            sealed,
            split: formed.split.clone(),
            table,
            through: Count::new(through).unwrap_or_default(),
        }
    })
}

type WindowTable = (Table, BTreeMap<FieldId, Vec<Option<String>>>, JudgeId);

/// Joins what is left of the log.
fn joined(
    history: &dyn History,
    log: &RowLog,
    design: &IterationDesign,
    (formed, judge, through): (&SplitFormation, JudgeId, u64),
) -> Result<WindowTable, IterationRowsError> {
    // Anchors are of no use to a plan, and their rows are gone.
    let design = IterationDesign {
        anchors: None,
        ..design.clone()
    };
    let leaves = log.rubrics.get(&design.rubric_hash).cloned();
    let rubric = leaves.and_then(|leaves| patches::rubric_with(&leaves));
    let hash: Digest = design.rubric_hash;
    let rubric = rubric.ok_or_else(|| {
        missing(
            format!("no rubric of hash {hash}"),
            "clover rubric show EXPERIMENT",
        )
    })?;
    let evidence = records::evidence(history, log, &judge)?;
    let names = kept::names(history, &log.ingested)?;
    let mut all: BTreeSet<FieldId> = names.clone();
    all.extend(wanted(&design, log));
    let imported = records::imported(history, log, &all.iter().collect::<Vec<_>>())?;
    let none = BTreeSet::new();
    let sources = Sources {
        log,
        design: &design,
        rubric: &rubric,
        evidence: &evidence,
        imported: &imported,
        late: &none,
        judge: &judge,
        formed,
        through,
        unsealed: None,
    };
    if log.scores[&judge].is_empty() {
        let what = format!(
            "no score of judge {judge} in the fit part of {}",
            formed.split
        );
        return Err(missing(what, "clover judge run --judge ID --rows PATH"));
    }
    let (table, rows, ..) = sources.table()?;
    let words = |field: &FieldId| -> Vec<Option<String>> {
        let word = |row: &crate::iterate::rows::RowName| {
            let key = (row.policy.clone(), row.item.clone(), row.draw.value());
            imported.get(&key)?.get(field).cloned()
        };
        rows.iter().map(word).collect()
    };
    let fields = names.iter().map(|name| (name.clone(), words(name)));
    // Every row has its policy, imported or not.
    let policies = rows.iter().map(|row| Some(row.policy.to_string()));
    let own = FieldId::new(fields::POLICY).expect("BUG: a literal");
    let fields = fields.chain([(own, policies.collect())]).collect();
    Ok((table, fields, judge))
}
