//! What the judge of an iteration is asked for: rows that it has not scored, and its records, from which a sample is
//! scored again.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::iterations::rows::Key;
use clover_projection::iterations::rows::RowLog;

use crate::iterate::rows::IterationRowsError;
use crate::iterate::rows::RowName;
use crate::iterate::rows::judge_of;
use crate::iterate::rows::records;
use crate::judge::run::RawRecord;

/// What a judge did, and what it did not.
#[derive(Debug)]
pub struct JudgeRecords {
    /// Its records by raw key; of a key, the first.
    pub records: BTreeMap<Digest, RawRecord>,
    /// Rows of the iteration without a record of it, in the order in which they were first scored, each with who scored it:
    /// one of those events keeps the texts.
    pub unscored: Vec<(Vec<JudgeId>, RowName)>,
}

/// The policies whose rows are the anchors of an iteration.
fn anchors(log: &RowLog) -> BTreeSet<&PolicyId> {
    let design = log.opening.as_ref().and_then(|of| of.plan.design.as_ref());
    let named = design.and_then(|design| design.anchors.as_ref());
    let sets = log.anchors.iter().filter(|of| Some(&of.anchors) == named);
    sets.flat_map(|of| [&of.low.policy, &of.high.policy])
        .collect()
}

/// What a judge is asked for in an iteration: rows of the clusters of its split, of its anchors, and each row that the judge
/// of the iteration scored.
///
/// # Errors
/// [`IterationRowsError`].
pub fn asked(
    history: &dyn History,
    (experiment, iteration): (&ExperimentId, &IterationId),
    judge: &JudgeId,
    size: u64,
) -> Result<JudgeRecords, IterationRowsError> {
    let last = size.saturating_sub(1);
    let log = RowLog::through(history, experiment, Some(iteration), last)?;
    let records = records::records_of(history, &log, judge)?;
    let done: BTreeSet<(&PolicyId, &str, u64)> = records
        .iter()
        .map(|of| (&of.policy, of.item.as_str(), of.draw.value()))
        .collect();
    let anchors = anchors(&log);
    let opened = log.opening.as_ref().map_or(0, |of| of.seq);
    let split = log.split(iteration, opened);
    let parts = split.and_then(|of| log.parts.get(&of.split));
    // Rows that the split leaves out are rows of the iteration too, where its judge scored them: whoever judges under another
    // prompt is asked about each of them, or the patch could not be computed.
    let design = log.opening.as_ref().and_then(|of| of.plan.design.as_ref());
    let first = design.and_then(|design| judge_of(&log, design.judge.as_ref()).ok());
    let first = first.filter(|first| first != judge);
    let is_wanted = |by: &JudgeId, (policy, item, draw): &Key| {
        let in_split = parts.is_some_and(|of| of.contains_key(item));
        let mine = anchors.contains(policy) || in_split || first.as_ref() == Some(by);
        mine && !done.contains(&(policy, item.as_str(), *draw))
    };
    let mut wanted: BTreeMap<&Key, (u64, Vec<JudgeId>)> = BTreeMap::new();
    for (by, scores) in &log.scores {
        for score in scores.iter().filter(|score| is_wanted(by, &score.key)) {
            let of = wanted.entry(&score.key).or_insert((score.seq, Vec::new()));
            of.0 = of.0.min(score.seq);
            of.1.push(by.clone());
        }
    }
    let mut unscored: Vec<_> = wanted.into_iter().collect();
    unscored.sort_by_key(|(_, (seq, _))| *seq);
    let unscored = unscored.into_iter().map(|((policy, item, draw), (_, by))| {
        let name = RowName {
            policy: policy.clone(),
            item: item.clone(),
            draw: Count::new(*draw).unwrap_or_default(),
        };
        (by, name)
    });
    let unscored = unscored.collect();
    let by_key = records.into_iter().map(|record| (record.raw_key, record));
    Ok(JudgeRecords {
        records: by_key.rev().collect(),
        unscored,
    })
}
