//! One walk over the log: what an iteration reads of it, before anything is joined.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::FieldId;
use crate::event::id::ItemId;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::id::Root;
use crate::event::id::SplitId;
use crate::event::payload::BlobRef;
use crate::event::payload::gate::DrawnFrom;
use crate::event::payload::intake::SplitPart;
use crate::event::payload::iteration::AnchorSetRegistered;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::label::LabelDesignRegistered;
use crate::event::payload::label::LabelPurpose;
use crate::event::payload::label::draw_of_row;
use crate::event::payload::manifest::IterationPlan;
use crate::event::payload::rubric::RubricLeaf;
use crate::event::payload::scoring::JudgeRegistered;
use crate::ground::digest::Digest;
use crate::ground::merkle;
use crate::ground::merkle::Frontier;
use crate::ledger::past::Past;
use crate::ledger::read::Read;
use crate::num::Micro;
use crate::rubric::evidence::Evidence;
use crate::workflow::iterate::rows::RowsError;
use crate::workflow::judge::run;
use crate::workflow::judge::run::Record;

/// A draw of a policy on an item.
pub(super) type Key = (PolicyId, ItemId, u64);

/// The iteration as it was opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub digest: Digest,
    pub plan: IterationPlan,
    pub rubric_hash: Digest,
    pub seq: u64,
}

/// A split that was formed.
#[derive(Clone, Debug)]
pub(super) struct Formed {
    pub split: SplitId,
    pub confirm_root: Root,
    pub seq: u64,
}

/// A label of a row.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub key: Key,
    pub design: DesignId,
    pub value: Micro,
    pub seq: u64,
    pub is_confirm: bool,
}

/// A score of a judge.
#[derive(Clone, Debug)]
pub(super) struct Score {
    pub key: Key,
    pub base: Micro,
    pub seq: u64,
}

/// What was found of one experiment through a position.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub opening: Option<Opening>,
    pub rubrics: BTreeMap<Digest, Vec<RubricLeaf>>,
    pub anchors: Vec<AnchorSetRegistered>,
    pub formed: Vec<Formed>,
    pub parts: BTreeMap<SplitId, BTreeMap<ItemId, SplitPart>>,
    /// Confirm roots that iterations unsealed: root, iteration, position.
    pub unsealed: Vec<(Root, IterationId, u64)>,
    pub designs: BTreeMap<DesignId, LabelDesignRegistered>,
    pub judges: BTreeMap<JudgeId, JudgeRegistered>,
    pub scores: BTreeMap<JudgeId, Vec<Score>>,
    pub labels: Vec<Label>,
    /// Rows with a sealed label of a design for confirm.
    pub sealed: Vec<(Key, u64)>,
    /// The first checkpoint above the sealing of the iteration's candidates that an entry names.
    pub beacon: Option<DrawnFrom>,
    sealed_seq: Option<u64>,
    records: Vec<(u64, JudgeId, BlobRef, Root)>,
    ingested: Vec<(u64, BlobRef, Root)>,
}

impl Walk {
    /// Reads the entries of an experiment through a position, inclusive.
    pub(super) fn over(
        past: &Past<'_>,
        experiment: &ExperimentId,
        iteration: Option<&IterationId>,
        through: u64,
    ) -> Result<Self, RowsError> {
        let mut walk = Self::default();
        past.entries::<RowsError>(0, through.saturating_add(1), |read| {
            walk.draw_from(&read);
            if read.event.header.experiment.as_ref() == Some(experiment) {
                walk.take(iteration, read);
            }
            Ok(())
        })?;
        Ok(walk)
    }

    fn draw_from(&mut self, read: &Read) {
        let Some(from) = self.sealed_seq.filter(|_| self.beacon.is_none()) else {
            return;
        };
        let seen = read.event.header.seen;
        let above = seen.filter(|seen| seen.size.value() > from);
        self.beacon = above.map(|seen| DrawnFrom {
            root: seen.root,
            size: seen.size,
        });
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each kind that is read")]
    fn take(&mut self, iteration: Option<&IterationId>, read: Read) {
        let seq = read.stored.seq;
        match read.event.payload {
            Payload::IterationOpened(said) if Some(&said.iteration) == iteration => {
                self.opening.get_or_insert(Opening {
                    digest: said.digest,
                    plan: *said.params,
                    rubric_hash: said.rubric_hash,
                    seq,
                });
            }
            Payload::RubricRegistered(said) => {
                self.rubrics.entry(said.rubric_hash).or_insert(said.leaves);
            }
            Payload::PromptCommitted(said) => {
                self.rubrics.entry(said.rubric_hash).or_insert(said.leaves);
            }
            Payload::AnchorSetRegistered(said) => self.anchors.push(said),
            Payload::SplitsListed(said) => {
                let of = self.parts.entry(said.split).or_default();
                of.extend(said.clusters.into_iter().map(|item| (item, said.part)));
            }
            Payload::SplitsFormed(said) => self.formed.push(Formed {
                split: said.split,
                confirm_root: said.confirm.root,
                seq,
            }),
            Payload::CandidatesSealed(said) if Some(&said.iteration) == iteration => {
                self.sealed_seq.get_or_insert(seq);
            }
            Payload::LabelSealed(said) => {
                let purpose = self.designs.get(&said.design).map(|of| of.purpose);
                if purpose == Some(DesignPurpose::Confirm)
                    && let Some((policy, item, draw)) = draw_of_row(&said.row)
                {
                    self.sealed.push(((policy, item, draw.value()), seq));
                }
            }
            Payload::ConfirmUnsealed(said) => {
                self.unsealed.push((said.confirm_root, said.iteration, seq));
            }
            Payload::LabelDesignRegistered(said) => {
                self.designs.entry(said.design.clone()).or_insert(said);
            }
            Payload::JudgeRegistered(said) => {
                self.judges.entry(said.judge.clone()).or_insert(said);
            }
            Payload::ScoreRecorded(said) => {
                let score = Score {
                    key: (said.policy, said.item, said.draw.value()),
                    base: said.score_micro,
                    seq,
                };
                self.scores.entry(said.judge).or_default().push(score);
            }
            Payload::EvidenceRecorded(said) => {
                let of = (seq, said.judge, said.records, said.records_root);
                self.records.push(of);
            }
            Payload::DataIngested(said) => self.ingested.push((seq, said.rows, said.rows_root)),
            Payload::LabelRecorded(said) if said.purpose == LabelPurpose::Calibrate => {
                self.labels.push(Label {
                    key: (said.policy, said.item, said.draw.value()),
                    design: said.design,
                    value: said.value_micro,
                    seq,
                    is_confirm: false,
                });
            }
            Payload::LabelRevealed(said) => {
                let purpose = self.designs.get(&said.design).map(|of| of.purpose);
                if purpose == Some(DesignPurpose::Confirm)
                    && let Some((policy, item, draw)) = draw_of_row(&said.row)
                {
                    self.labels.push(Label {
                        key: (policy, item, draw.value()),
                        design: said.design,
                        value: said.value_micro,
                        seq,
                        is_confirm: true,
                    });
                }
            }
            _ => {}
        }
    }

    /// Records of a judge's rows, the first of a draw.
    pub(super) fn evidence(
        &self,
        past: &Past<'_>,
        judge: &JudgeId,
    ) -> Result<BTreeMap<Key, Evidence>, RowsError> {
        let mut found = BTreeMap::new();
        for record in self.records_of(past, judge)? {
            let key = (record.policy, record.item, record.draw.value());
            found.entry(key).or_insert(record.evidence);
        }
        Ok(found)
    }

    /// Records of a judge's rows, in the order of the log.
    pub(super) fn records_of(
        &self,
        past: &Past<'_>,
        judge: &JudgeId,
    ) -> Result<Vec<Record>, RowsError> {
        let mut found = Vec::new();
        for (seq, _, blob, root) in self.records.iter().filter(|(_, of, ..)| of == judge) {
            let damaged = |what: String| RowsError::Damaged { seq: *seq, what };
            let bytes = past.blob(&blob.blake3)?;
            let bytes = bytes.ok_or_else(|| damaged("its blob is not there".to_owned()))?;
            found.append(&mut run::parse(&bytes, &root.0).map_err(damaged)?);
        }
        Ok(found)
    }

    /// Wanted fields of ingested rows; of a row and field, what was taken in first.
    pub(super) fn fields(
        &self,
        past: &Past<'_>,
        wanted: &[&FieldId],
    ) -> Result<BTreeMap<Key, BTreeMap<FieldId, String>>, RowsError> {
        #[derive(Deserialize)]
        struct Line {
            draw: crate::num::Count,
            #[serde(default)]
            fields: BTreeMap<FieldId, String>,
            item: ItemId,
            policy: PolicyId,
        }
        let mut found: BTreeMap<Key, BTreeMap<FieldId, String>> = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        for (seq, blob, root) in &self.ingested {
            let damaged = |what: String| RowsError::Damaged { seq: *seq, what };
            let bytes = past.blob(&blob.blake3)?;
            let bytes = bytes.ok_or_else(|| damaged("its blob is not there".to_owned()))?;
            let mut tree = Frontier::new();
            let lines = bytes.split(|byte| *byte == b'\n');
            for line in lines.filter(|line| !line.is_empty()) {
                tree.push(merkle::leaf_hash(line));
                let line: Line =
                    serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
                let mut kept = line.fields;
                kept.retain(|field, _| wanted.contains(&field));
                if kept.is_empty() {
                    continue;
                }
                let key = (line.policy, line.item, line.draw.value());
                let of = found.entry(key).or_default();
                for (field, word) in kept {
                    of.entry(field).or_insert(word);
                }
            }
            if tree.root() != root.0 {
                return Err(damaged("rows that are not under their root".to_owned()));
            }
        }
        Ok(found)
    }

    /// The split of an iteration: the last that was formed before it opened and whose confirm block was not spent by
    /// then, else the first after.
    pub(super) fn split(&self, iteration: &IterationId, opened: u64) -> Option<&Formed> {
        let spent = |formed: &&Formed| {
            self.unsealed.iter().any(|(root, by, seq)| {
                *root == formed.confirm_root && by != iteration && *seq < opened
            })
        };
        let free = || self.formed.iter().filter(|formed| !spent(formed));
        let before = free().rfind(|formed| formed.seq < opened);
        before.or_else(|| free().find(|formed| formed.seq > opened))
    }
}
