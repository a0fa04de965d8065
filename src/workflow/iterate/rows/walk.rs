//! One walk over the log: what an iteration reads of it, before anything is joined.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::event::Event;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::FieldId;
use crate::event::id::ItemId;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
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
use crate::ledger::History;
use crate::num::Micro;
use crate::rubric::evidence::Evidence;
use crate::workflow::import::kept;
use crate::workflow::import::kept::Ingested;
use crate::workflow::import::kept::Kept;
use crate::workflow::import::kept::Unread;
use crate::workflow::iterate::rows::RowsError;
use crate::workflow::judge::run;
use crate::workflow::judge::run::Record;

/// A draw of a policy on an item.
pub(super) type Key = kept::Key;

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
    pub fit_root: Root,
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
    /// Open labels of audits, which no iteration reads.
    pub audited: Vec<Label>,
    /// Rows with a sealed label of a design for confirm.
    pub sealed: Vec<(Key, u64)>,
    /// The first checkpoint above the sealing of the iteration's candidates that an entry names.
    pub beacon: Option<DrawnFrom>,
    sealed_seq: Option<u64>,
    records: Vec<(u64, JudgeId, BlobRef, Root)>,
    ingested: Vec<Ingested>,
}

impl Walk {
    /// Reads the entries of an experiment through a position, inclusive.
    pub(super) fn over(
        history: &dyn History,
        experiment: &ExperimentId,
        iteration: Option<&IterationId>,
        through: u64,
    ) -> Result<Self, RowsError> {
        let mut walk = Self::default();
        history.events(0, through.saturating_add(1), &mut |seq, event| {
            walk.draw_from(event);
            if event.experiment() == Some(experiment) {
                walk.take(iteration, seq, &event.payload);
            }
            ControlFlow::Continue(())
        })?;
        Ok(walk)
    }

    fn draw_from(&mut self, event: &Event) {
        let Some(from) = self.sealed_seq.filter(|_| self.beacon.is_none()) else {
            return;
        };
        let seen = event.header.seen;
        let above = seen.filter(|seen| seen.size.value() > from);
        self.beacon = above.map(|seen| DrawnFrom {
            root: seen.root,
            size: seen.size,
        });
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each kind that is read")]
    fn take(&mut self, iteration: Option<&IterationId>, seq: u64, payload: &Payload) {
        match payload {
            Payload::IterationOpened(said) if Some(&said.iteration) == iteration => {
                self.opening.get_or_insert(Opening {
                    digest: said.digest,
                    plan: (*said.params).clone(),
                    rubric_hash: said.rubric_hash,
                    seq,
                });
            }
            Payload::RubricRegistered(said) => {
                let of = self.rubrics.entry(said.rubric_hash);
                of.or_insert_with(|| said.leaves.clone());
            }
            Payload::PromptCommitted(said) => {
                let of = self.rubrics.entry(said.rubric_hash);
                of.or_insert_with(|| said.leaves.clone());
            }
            Payload::AnchorSetRegistered(said) => self.anchors.push((**said).clone()),
            Payload::SplitsListed(said) => {
                let of = self.parts.entry(said.split.clone()).or_default();
                of.extend(said.clusters.iter().map(|item| (item.clone(), said.part)));
            }
            Payload::SplitsFormed(said) => self.formed.push(Formed {
                split: said.split.clone(),
                fit_root: said.fit.root,
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
                let by = said.iteration.clone();
                self.unsealed.push((said.confirm_root, by, seq));
            }
            Payload::LabelDesignRegistered(said) => {
                let of = self.designs.entry(said.design.clone());
                of.or_insert_with(|| (**said).clone());
            }
            Payload::JudgeRegistered(said) => {
                let of = self.judges.entry(said.judge.clone());
                of.or_insert_with(|| (**said).clone());
            }
            Payload::ScoreRecorded(said) => {
                let score = Score {
                    key: (said.policy.clone(), said.item.clone(), said.draw.value()),
                    base: said.score_micro,
                    seq,
                };
                match self.scores.get_mut(&said.judge) {
                    Some(scores) => scores.push(score),
                    None => drop(self.scores.insert(said.judge.clone(), vec![score])),
                }
            }
            Payload::EvidenceRecorded(said) => {
                let of = (
                    seq,
                    said.judge.clone(),
                    said.records.clone(),
                    said.records_root,
                );
                self.records.push(of);
            }
            Payload::DataIngested(said) => {
                self.ingested.push(Ingested {
                    seq,
                    rows: said.rows.clone(),
                    root: said.rows_root,
                });
            }
            Payload::LabelRecorded(said) => {
                let of = match said.purpose {
                    LabelPurpose::Audit => &mut self.audited,
                    LabelPurpose::Calibrate => &mut self.labels,
                };
                of.push(Label {
                    key: (said.policy.clone(), said.item.clone(), said.draw.value()),
                    design: said.design.clone(),
                    value: said.value_micro,
                    seq,
                    is_confirm: false,
                });
            }
            Payload::LabelRevealed(said) => {
                let purpose = self.designs.get(&said.design).map(|of| of.purpose);
                let is_confirm = purpose == Some(DesignPurpose::Confirm);
                let of = match purpose {
                    Some(DesignPurpose::Audit) => &mut self.audited,
                    Some(DesignPurpose::Confirm) => &mut self.labels,
                    _ => return,
                };
                if let Some((policy, item, draw)) = draw_of_row(&said.row) {
                    of.push(Label {
                        key: (policy, item, draw.value()),
                        design: said.design.clone(),
                        value: said.value_micro,
                        seq,
                        is_confirm,
                    });
                }
            }
            _ => {}
        }
    }

    /// Records of a judge's rows, the first of a draw.
    pub(super) fn evidence(
        &self,
        history: &dyn History,
        judge: &JudgeId,
    ) -> Result<BTreeMap<Key, Evidence>, RowsError> {
        let mut found = BTreeMap::new();
        for record in self.records_of(history, judge)? {
            let key = (record.policy, record.item, record.draw.value());
            found.entry(key).or_insert(record.evidence);
        }
        Ok(found)
    }

    /// Records of a judge's rows, in the order of the log.
    pub(super) fn records_of(
        &self,
        history: &dyn History,
        judge: &JudgeId,
    ) -> Result<Vec<Record>, RowsError> {
        let mut found = Vec::new();
        for (seq, _, blob, root) in self.records.iter().filter(|(_, of, ..)| of == judge) {
            let damaged = |what: String| Unread::Damaged { seq: *seq, what };
            let bytes = history.blob(&blob.blake3)?;
            let bytes = bytes.ok_or(Unread::Absent { seq: *seq })?;
            found.append(&mut run::parse(&bytes, &root.0).map_err(damaged)?);
        }
        Ok(found)
    }

    /// Wanted fields of ingested rows; of a row and field, what was taken in first.
    pub(super) fn fields(
        &self,
        history: &dyn History,
        wanted: &[&FieldId],
    ) -> Result<Kept, RowsError> {
        Ok(kept::fields(history, &self.ingested, wanted)?)
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
