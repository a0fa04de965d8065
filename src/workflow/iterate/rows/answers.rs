//! Answers of the judge that was told what a candidate changes: they stand in the place of those that the iteration read.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::History;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;

use crate::iterate::rows::IterationDataset;
use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::id_of;
use crate::iterate::rows::missing;
use crate::iterate::rows::records;
use crate::iterate::rows::scored::Lack;
use crate::iterate::rows::scored::Raw;
use crate::judge::key;
use crate::judge::run::RawRecord;

/// What a judge answered, by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The judge.
    pub judge: JudgeId,
    by_key: BTreeMap<Key, Raw>,
}

impl Answers {
    /// Reads the answers of a judge through a position.
    ///
    /// # Errors
    /// [`IterationRowsError`], also for a record whose key is of another prompt, model or source than the judge was
    /// registered with.
    pub fn through(
        history: &dyn History,
        experiment: &ExperimentId,
        judge: &JudgeRegistered,
        last: u64,
    ) -> Result<Self, IterationRowsError> {
        let log = RowLog::through(history, experiment, None, last)?;
        let mut evidence = BTreeMap::new();
        for record in records::records_of(history, &log, &judge.judge)? {
            if !is_of(judge, &record) {
                let what = format!(
                    "a record of {} by judge {} whose raw_key is of another prompt or judge",
                    record.item, judge.judge
                );
                return Err(missing(what, "clover verify --recompute"));
            }
            let key = (record.policy, record.item, record.draw.value());
            evidence.entry(key).or_insert(record.evidence);
        }
        let scores = log.scores.get(&judge.judge).into_iter().flatten();
        let by_key = scores.map(|score| {
            let raw = Raw {
                base: score.base,
                evidence: evidence.get(&score.key).cloned(),
                key: score.key.clone(),
                seq: score.seq,
            };
            (score.key.clone(), raw)
        });
        Ok(Self {
            judge: judge.judge.clone(),
            by_key: by_key.collect(),
        })
    }

    /// How many rows are answered.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether no row is answered.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The answer to a row.
    fn of(&self, raw: &Raw, lack: &mut Lack) -> Raw {
        if let Some(found) = self.by_key.get(&raw.key) {
            return found.clone();
        }
        lack.rows += 1;
        lack.first
            .get_or_insert_with(|| format!("{}: {} was not asked", id_of(&raw.key), self.judge));
        raw.clone()
    }
}

/// Whether a record stands under the key of a judge as it was registered.
fn is_of(judge: &JudgeRegistered, record: &RawRecord) -> bool {
    key::raw_key(judge, record.a_hash, record.x_hash) == record.raw_key
}

impl IterationDataset {
    /// The raw answers of rows and anchors: those read, or in their place those of a judge that was told something else.
    ///
    /// Nothing before the unsealing reads a row of confirm, and nobody asks about one before candidates are sealed: until
    /// then the old answer holds its place. From then on an answer counts that was given before the labels were shown.
    pub(super) fn answered(&self, answers: &Answers, lack: &mut Lack) -> (Vec<Raw>, Vec<Vec<Raw>>) {
        let is_confirm = |at: usize| self.table.data().parts[at] == Some(SplitPart::Confirm);
        let each = self.raw.iter().enumerate().map(|(at, raw)| {
            if !is_confirm(at) {
                return answers.of(raw, lack);
            }
            let Some(unsealed) = self.unsealed else {
                return raw.clone();
            };
            let found = answers.of(raw, lack);
            if found.seq > unsealed {
                lack.rows += 1;
                let row = id_of(&raw.key);
                let what = || format!("{row}: answered after confirm was unsealed");
                lack.first.get_or_insert_with(what);
            }
            found
        });
        let rows = each.collect();
        let anchors = self.anchors.iter().map(|of| {
            let each = of.iter().map(|raw| answers.of(raw, lack));
            each.collect()
        });
        (rows, anchors.collect())
    }

    /// Of the rows and anchors that a judge was asked about before candidates were sealed, those whose base score or evidence is
    /// another than what the iteration read.
    pub fn moved(&self, answers: &Answers) -> usize {
        let parts = &self.table.data().parts;
        let rows = self.raw.iter().enumerate();
        let rows = rows.filter(|(at, _)| parts[*at] != Some(SplitPart::Confirm));
        let rows = rows
            .map(|(_, raw)| raw)
            .chain(self.anchors.iter().flatten());
        let moved = |raw: &&Raw| {
            let found = answers.by_key.get(&raw.key);
            found.is_some_and(|found| found.base != raw.base || found.evidence != raw.evidence)
        };
        rows.filter(moved).count()
    }

    /// How many rows and anchors a judge is asked about before candidates are sealed.
    pub fn asked_first(&self) -> usize {
        let anchors: usize = self.anchors.iter().map(Vec::len).sum();
        self.table.logs().len() + anchors
    }

    /// Rows and anchors, the rows of confirm or all others.
    pub fn keys(&self, of_confirm: bool) -> BTreeSet<Key> {
        let parts = &self.table.data().parts;
        let is_wanted =
            |(at, _): &(usize, &Raw)| (parts[*at] == Some(SplitPart::Confirm)) == of_confirm;
        let rows = self.raw.iter().enumerate().filter(is_wanted);
        let rows = rows.map(|(_, raw)| raw.key.clone());
        let anchors = self.anchors.iter().flatten().map(|raw| raw.key.clone());
        let anchors = anchors.filter(|_| !of_confirm);
        rows.chain(anchors).collect()
    }
}

/// Hosts that stored answers of a judge cite and that nobody verified.
///
/// # Errors
/// [`IterationRowsError`].
pub fn unverified(
    history: &dyn History,
    (experiment, iteration): (&ExperimentId, &IterationId),
    judge: &JudgeId,
    size: u64,
) -> Result<BTreeSet<String>, IterationRowsError> {
    let last = size.saturating_sub(1);
    let log = RowLog::through(history, experiment, Some(iteration), last)?;
    let records = records::records_of(history, &log, judge)?;
    let cited = records.into_iter().flat_map(|of| of.evidence.citations);
    let unverified = cited.filter(|of| of.resolved.is_none());
    Ok(unverified.map(|of| of.domain).collect())
}
