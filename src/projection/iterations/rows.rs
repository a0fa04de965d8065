//! Rows of an iteration as the log says them: scores, labels, splits, designs and what was taken in, before anything is
//! joined.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::ItemId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::RaterId;
use clover_event::id::Root;
use clover_event::id::SplitId;
use clover_event::payload::BlobRef;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::intake::DataIngested;
use clover_event::payload::intake::PolicyFields;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelDesignRegistered;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::rubric::RubricLeaf;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;

use crate::reader::LogReader;
use crate::reader::Model;

/// A draw of a policy on an item.
pub type Key = (PolicyId, ItemId, u64);

/// The rows of one `data.ingested`.
#[derive(Clone, Debug)]
pub struct IngestedRows {
    /// Its position.
    pub seq: u64,
    /// Its rows.
    pub rows: BlobRef,
    /// The root over them.
    pub root: Root,
    /// Fields of which it says a word that no import said before, where it says so.
    pub fields: Option<Vec<PolicyFields>>,
}

impl IngestedRows {
    /// What an event says.
    pub fn of(seq: u64, said: &DataIngested) -> Self {
        Self {
            seq,
            rows: said.rows.clone(),
            root: said.rows_root,
            fields: said.fields.clone(),
        }
    }

    /// Whether a field is read of the rows of a policy.
    pub fn says(&self, policy: &PolicyId, field: &FieldId) -> bool {
        self.fields.as_ref().is_none_or(|all| {
            let mut mine = all.iter().filter(|of| of.policy == *policy);
            mine.any(|of| of.fields.contains(field))
        })
    }
}

/// The iteration as it was opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Digest of its manifest.
    pub digest: Digest,
    /// Its parameters.
    pub plan: IterationPlan,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
    /// Its position.
    pub seq: u64,
}

/// A split that was formed.
#[derive(Clone, Debug)]
pub struct SplitFormation {
    /// Its name.
    pub split: SplitId,
    /// Root of its fit part.
    pub fit_root: Root,
    /// Root of its confirm block.
    pub confirm_root: Root,
    /// Its position.
    pub seq: u64,
}

/// A label of a row.
#[derive(Clone, Debug)]
pub struct Label {
    /// Its row.
    pub key: Key,
    /// By which design.
    pub design: DesignId,
    /// The label.
    pub value: Micro,
    /// Its position.
    pub seq: u64,
    /// Whether it was sealed for confirm.
    pub is_confirm: bool,
    /// Whether its rater labelled the draw for calibration under another design before.
    pub is_again: bool,
}

/// A draw with who labelled it.
type LabelledDraw = (Key, RaterId);

/// A score of a judge.
#[derive(Clone, Debug)]
pub struct Score {
    /// Its row.
    pub key: Key,
    /// The recorded score, or its share of the scale that was declared of its judge.
    pub base: Micro,
    /// Its position.
    pub seq: u64,
}

/// What was found of one experiment through a position.
#[derive(Debug, Default)]
pub struct RowLog {
    /// The opening of the iteration.
    pub opening: Option<Opening>,
    /// Rubrics that were registered or committed.
    pub rubrics: BTreeMap<Digest, Vec<RubricLeaf>>,
    /// Anchor sets.
    pub anchors: Vec<AnchorSetRegistered>,
    /// Splits that were formed.
    pub formed: Vec<SplitFormation>,
    /// Part of each cluster, by split.
    pub parts: BTreeMap<SplitId, BTreeMap<ItemId, SplitPart>>,
    /// Confirm roots that iterations unsealed: root, iteration, position.
    pub unsealed: Vec<(Root, IterationId, u64)>,
    /// Label designs; of a name, the first.
    pub designs: BTreeMap<DesignId, LabelDesignRegistered>,
    /// Judges; of a name, the first.
    pub judges: BTreeMap<JudgeId, JudgeRegistered>,
    /// Scores by judge.
    pub scores: BTreeMap<JudgeId, Vec<Score>>,
    /// Labels for calibration, and those of confirm that were shown.
    pub labels: Vec<Label>,
    /// Open labels of audits, which no iteration reads.
    pub audited: Vec<Label>,
    /// Rows with a sealed label of a design for confirm.
    pub sealed: Vec<(Key, u64)>,
    /// The first checkpoint above the sealing of the iteration's candidates that an entry names.
    pub beacon: Option<DrawnFrom>,
    sealed_seq: Option<u64>,
    /// Whether the rulebook that the iteration opened under reads a field only where it was said before the row's label could be
    /// read.
    pub asks_fields_before: bool,
    /// Whether labels are read as shares of the declared scale: the rulebook that the iteration opened under says so, or the
    /// newest one that was read where no iteration is asked for.
    pub asks_label_shares: bool,
    /// Whether a label counts once that a rater gives one draw under several designs, by the same rulebook.
    pub asks_label_once: bool,
    /// The design under which a rater labelled a draw for calibration first.
    first_design: BTreeMap<LabelledDraw, DesignId>,
    /// The scale of labels that was declared first, and where.
    pub scale: Option<(ScaleEnds, u64)>,
    /// Scales of scores that were declared of judges.
    score_scales: BTreeMap<JudgeId, ScaleEnds>,
    /// Evidence records of judges: position, judge, blob and root.
    pub records: Vec<(u64, JudgeId, BlobRef, Root)>,
    /// Rows that were taken in.
    pub ingested: Vec<IngestedRows>,
}

/// The same while it is read.
struct RowReader<'a> {
    of: (&'a ExperimentId, Option<&'a IterationId>),
    log: RowLog,
    rulebook: u64,
}

impl Model for RowReader<'_> {
    fn take(&mut self, seq: u64, event: &Event) {
        let (experiment, iteration) = self.of;
        match &event.payload {
            Payload::LedgerCreated(said) => {
                self.rulebook = said.rulebook.map_or(0, Count::value);
            }
            Payload::RulebookAdopted(said) => {
                self.rulebook = self.rulebook.max(said.version.value());
            }
            Payload::IterationOpened(said) if Some(&said.iteration) == iteration => {
                let asks = |of: Question| self.rulebook >= u64::from(of.since());
                let is_first = self.log.opening.is_none();
                self.log.asks_fields_before |= asks(Question::SaidBefore) && is_first;
                self.log.asks_label_shares |= asks(Question::LabelShares) && is_first;
                self.log.asks_label_once |= asks(Question::LabelReadOnce) && is_first;
            }
            _ => {}
        }
        if iteration.is_none() {
            let asks = |of: Question| self.rulebook >= u64::from(of.since());
            self.log.asks_label_shares = asks(Question::LabelShares);
            self.log.asks_label_once = asks(Question::LabelReadOnce);
        }
        // A checkpoint is drawn from whatever comes first, of any experiment.
        self.log.draw_from(event);
        if event.experiment() == Some(experiment) {
            self.log.take(iteration, seq, &event.payload);
        }
    }
}

impl RowLog {
    /// Reads the entries of an experiment through a position, inclusive; without an iteration, rows alone.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn through(
        history: &dyn History,
        experiment: &ExperimentId,
        iteration: Option<&IterationId>,
        through: u64,
    ) -> Result<Self, LedgerError> {
        let of = (experiment, iteration);
        let log = Self::default();
        let model = RowReader {
            of,
            log,
            rulebook: 0,
        };
        let mut log = LogReader::through(history, through).into_model(model)?.log;
        log.first_design.clear();
        if log.asks_label_once {
            log.labels.retain(|label| !label.is_again);
        }
        Ok(log)
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
            Payload::SplitsFormed(said) => self.formed.push(SplitFormation {
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
                    base: self.share(said),
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
                self.ingested.push(IngestedRows::of(seq, said));
            }
            Payload::LabelScaleDeclared(said) => {
                self.scale = self.scale.or(said.ends().map(|ends| (ends, seq)));
            }
            Payload::ScoreScaleDeclared(said) => {
                let of = self.score_scales.entry(said.judge.clone());
                of.or_insert_with(|| said.ends());
            }
            Payload::LabelRecorded(said) => {
                let key = (said.policy.clone(), said.item.clone(), said.draw.value());
                let (of, is_again) = match said.purpose {
                    LabelPurpose::Audit => (&mut self.audited, false),
                    LabelPurpose::Calibrate => {
                        let first = self.first_design.entry((key.clone(), said.rater.clone()));
                        let first = first.or_insert_with(|| said.design.clone());
                        (&mut self.labels, *first != said.design)
                    }
                };
                of.push(Label {
                    key,
                    design: said.design.clone(),
                    value: said.value_micro,
                    seq,
                    is_confirm: false,
                    is_again,
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
                        is_again: false,
                    });
                }
            }
            _ => {}
        }
    }

    /// A score from 0 to 1: its share of the scale that was declared of its judge, if one was.
    fn share(&self, said: &ScoreRecorded) -> Micro {
        let scale = self.score_scales.get(&said.judge);
        let share = scale.and_then(|scale| scale.share(said.score_micro));
        share.unwrap_or(said.score_micro)
    }

    /// The scale of which labels are read as shares, and where it was declared: before the iteration opened. `None` where
    /// labels stand as they are, from 0 to 1.
    pub fn label_scale(&self) -> Option<(ScaleEnds, u64)> {
        let (ends, seq) = self.scale.filter(|_| self.asks_label_shares)?;
        let opened = self.opening.as_ref().map(|opening| opening.seq);
        opened
            .is_none_or(|opened| seq < opened)
            .then_some((ends, seq))
    }

    /// The split of an iteration: the last that was formed before it opened and whose confirm block was not spent by
    /// then, else the first after.
    pub fn split(&self, iteration: &IterationId, opened: u64) -> Option<&SplitFormation> {
        let spent = |formed: &&SplitFormation| {
            self.unsealed.iter().any(|(root, by, seq)| {
                *root == formed.confirm_root && by != iteration && *seq < opened
            })
        };
        let free = || self.formed.iter().filter(|formed| !spent(formed));
        let before = free().rfind(|formed| formed.seq < opened);
        before.or_else(|| free().find(|formed| formed.seq > opened))
    }
}
