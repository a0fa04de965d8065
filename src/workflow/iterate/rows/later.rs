//! Rows beside those of an iteration, read by its plan: outputs and labels that came after it, for whoever asks whether
//! its judge still holds.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::intake::SplitPart;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;
use clover_projection::iterations::rows::Score;
use clover_rubric::Rubric;

use crate::iterate::compute::IterationRows;
use crate::iterate::compute::Table;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::rows::EvidenceMissing;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowName;
use crate::iterate::rows::id_of;
use crate::iterate::rows::join::Sources;
use crate::iterate::rows::missing;
use crate::iterate::rows::records;
use crate::iterate::rows::scored::Lack;
use crate::iterate::rows::scored::Raw;
use crate::iterate::rows::scored::scored;
use crate::iterate::rows::scored::scored_strictly;
use crate::iterate::rows::shares;
use crate::iterate::rows::wanted;

/// Which rows and labels.
#[derive(Clone, Copy)]
pub struct LaterQuery<'a> {
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// The iteration whose plan has slices, environments and covariates.
    pub iteration: &'a IterationId,
    /// Whose scores.
    pub judge: &'a JudgeId,
    /// Which labels count, by design and position: open ones, of audits or for calibration.
    pub labels: &'a dyn Fn(&DesignId, u64) -> bool,
    /// Which rows count, by policy and position of the score.
    pub rows: &'a dyn Fn(&PolicyId, u64) -> bool,
    /// The rubric that scores them.
    pub rubric: &'a Rubric,
    /// The last entry that is read.
    pub through: u64,
    /// Whether rows of anchors are read as such, where they are those registered.
    pub with_anchors: bool,
}

impl std::fmt::Debug for LaterQuery<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "After({} through {})", self.iteration, self.through)
    }
}

/// The rows: all of them stand in the part `dev`, so that what reads a part reads them all.
#[derive(Clone, Debug)]
pub struct Later {
    /// The checked rows, scored under the rubric.
    pub table: Table,
    /// Name of each row.
    pub names: Vec<RowName>,
    raw: Vec<Raw>,
}

impl Later {
    /// The same rows under another rubric, from the same raw answers.
    ///
    /// # Errors
    /// [`EvidenceMissing`] where a row has no record, or one without what the rules ask.
    pub fn under(&self, rubric: &Rubric) -> Result<RubricScores, EvidenceMissing> {
        let mut lack = Lack::default();
        let name = |at: usize| self.table.data().rows[at].clone();
        let scored = scored_strictly(&self.raw, &rubric.rules(), &mut lack, name);
        match lack.first {
            Some(first) => Err(EvidenceMissing {
                rows: lack.rows,
                first,
            }),
            None => Ok(scored),
        }
    }

    /// Rows with a label.
    pub fn labelled(&self) -> Vec<usize> {
        self.table.labelled(SplitPart::Dev)
    }
}

/// Reads rows beside those of an iteration; `None` where there is none. Rows of anchors are none of them.
///
/// # Errors
/// [`IterationRowsError`].
pub fn later(
    history: &dyn History,
    after: &LaterQuery<'_>,
) -> Result<Option<Later>, IterationRowsError> {
    let log = RowLog::through(
        history,
        after.experiment,
        Some(after.iteration),
        after.through,
    )?;
    let opening = log.opening.as_ref();
    let design = opening.and_then(|opening| opening.plan.design.clone());
    let (Some(opening), Some(design)) = (opening, design) else {
        let what = format!("no iteration {} by then", after.iteration);
        return Err(missing(what, "clover iterate list"));
    };
    let Some(formed) = log.split(after.iteration, opening.seq) else {
        return Err(missing("the split of the iteration", "clover verify"));
    };
    let rows = admitted(&log, after);
    if rows.is_empty() {
        return Ok(None);
    }
    let evidence = records::evidence(history, &log, after.judge)?;
    let fields = wanted(&design, &log);
    let imported = records::imported(history, &log, &fields.iter().collect::<Vec<_>>())?;
    let none = BTreeSet::new();
    let sources = Sources {
        log: &log,
        design: &design,
        rubric: after.rubric,
        evidence: &evidence,
        late: &none,
        imported: &imported,
        judge: after.judge,
        formed,
        through: after.through,
        unsealed: None,
    };
    let raw: Vec<Raw> = rows.iter().map(|score| sources.raw(score)).collect();
    let mut lack = Lack::default();
    let rules = after.rubric.rules();
    let scored = scored(&raw, &rules, &mut lack, |at| id_of(&rows[at].key));
    let mut anchors = Vec::new();
    let set = sources.anchor_set().filter(|_| after.with_anchors);
    for of in set.iter().flat_map(|set| [&set.low, &set.high]) {
        let (anchor, _) = sources.anchor(of, &rules, &mut lack, &mut Vec::new())?;
        anchors.extend(anchor);
    }
    if let Some(first) = lack.first {
        let rows = lack.rows;
        return Err(IterationRowsError::Evidence { rows, first });
    }
    let labels = labels(&log, after, rows.iter().map(|score| &score.key));
    let labels = shares::of(&log, labels, |at| id_of(&rows[at].key))?;
    let data = IterationRows {
        rows: rows.iter().map(|score| id_of(&score.key)).collect(),
        clusters: rows.iter().map(|score| score.key.1.to_string()).collect(),
        parts: vec![Some(SplitPart::Dev); rows.len()],
        scored,
        covariates: sources.covariates(&rows.iter().map(|score| &score.key))?,
        inclusion: vec![None; rows.len()],
        slices: sources.slices(&rows)?,
        environments: sources.environments(&rows),
        labels,
        anchors,
        ..IterationRows::default()
    };
    let names = rows.iter().map(|score| named(&score.key)).collect();
    let table = Table::new(data)?;
    Ok(Some(Later { table, names, raw }))
}

/// Scores that are asked for, without those of anchors.
fn admitted<'w>(log: &'w RowLog, after: &LaterQuery<'_>) -> Vec<&'w Score> {
    let anchors = log.anchors.iter();
    let anchors: Vec<&PolicyId> = anchors
        .flat_map(|set| [&set.low.policy, &set.high.policy])
        .collect();
    let scores = log.scores.get(after.judge).into_iter().flatten();
    let admitted = scores.filter(|score| {
        let policy = &score.key.0;
        !anchors.contains(&policy) && (after.rows)(policy, score.seq)
    });
    admitted.collect()
}

fn named(key: &Key) -> RowName {
    RowName {
        policy: key.0.clone(),
        item: key.1.clone(),
        draw: Count::new(key.2).unwrap_or_default(),
    }
}

/// The label of each row: the mean where it has several that count.
fn labels<'k>(
    log: &RowLog,
    after: &LaterQuery<'_>,
    keys: impl Iterator<Item = &'k Key>,
) -> Vec<Option<f64>> {
    let mut of: BTreeMap<&Key, (i64, u32)> = BTreeMap::new();
    let open = log.labels.iter().filter(|label| !label.is_confirm);
    for label in open.chain(&log.audited) {
        if (after.labels)(&label.design, label.seq) {
            let (sum, count) = of.entry(&label.key).or_default();
            *sum = sum.saturating_add(label.value.value());
            *count += 1;
        }
    }
    let mean = |key: &Key| {
        let (sum, count) = of.get(key)?;
        Some(*sum as f64 / 1e6 / f64::from(*count))
    };
    keys.map(mean).collect()
}
