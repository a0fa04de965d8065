//! Labels of an experiment as they are read: which row each is of, and which of them count.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::RaterId;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::label::draw_of_row;
use clover_ledger::rulebooks::Question;
use clover_num::Count;

use crate::estimate::rows::Gathered;
use crate::estimate::rows::bump;

/// A label before its row is known.
pub(super) struct Label {
    pub(super) policy: PolicyId,
    pub(super) item: ItemId,
    pub(super) draw: u64,
    value: i64,
    pub(super) seq: u64,
    pub(super) design: DesignId,
    /// Whether it is a probe of its design.
    pub(super) is_probe: bool,
    /// Whether its rater labelled the draw under another design before.
    is_again: bool,
    charge: Option<EventId>,
}

/// A draw with who labelled it.
type LabelledDraw = (PolicyId, ItemId, u64, RaterId);

/// Labels as they come.
#[derive(Default)]
pub(super) struct LabelList {
    pub(super) all: Vec<Label>,
    /// Whether a rater's second label of a draw counts no more.
    has_one_label: bool,
    /// The first design under which a rater labelled a draw for calibration.
    first: BTreeMap<LabelledDraw, DesignId>,
}

impl LabelList {
    /// Labels count by the rulebook under which they were recorded.
    pub(super) fn adopted(&mut self, payload: &Payload) {
        let version = match payload {
            Payload::LedgerCreated(of) => of.rulebook,
            Payload::RulebookAdopted(of) => Some(of.version),
            _ => None,
        };
        let asks = |of: Count| of.value() >= u64::from(Question::OneLabel.since());
        self.has_one_label |= version.is_some_and(asks);
    }

    /// Takes an open label in; whether its rater did not label the draw for calibration before.
    pub(super) fn recorded(&mut self, seq: u64, label: &LabelRecorded) -> bool {
        let is_probe = label.purpose == LabelPurpose::Audit;
        let is_again = !is_probe && self.is_again(label);
        self.all.push(Label {
            policy: label.policy.clone(),
            item: label.item.clone(),
            draw: label.draw.value(),
            value: label.value_micro.value(),
            seq,
            design: label.design.clone(),
            is_probe,
            is_again,
            charge: None,
        });
        !is_again
    }

    /// Takes a probe in that was sealed.
    pub(super) fn revealed(&mut self, seq: u64, label: &LabelRevealed) {
        let Some((policy, item, draw)) = draw_of_row(&label.row) else {
            return;
        };
        self.all.push(Label {
            policy,
            item,
            draw: draw.value(),
            value: label.value_micro.value(),
            seq,
            design: label.design.clone(),
            is_probe: true,
            is_again: false,
            charge: Some(label.charge),
        });
    }

    /// Whether the rater of a label for calibration labelled the draw under another design before.
    fn is_again(&mut self, label: &LabelRecorded) -> bool {
        let (policy, item) = (label.policy.clone(), label.item.clone());
        let draw = (policy, item, label.draw.value(), label.rater.clone());
        let first = self.first.entry(draw);
        *first.or_insert_with(|| label.design.clone()) != label.design && self.has_one_label
    }
}

/// What the dataset does not hold of one policy's rows.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Draw of each row.
    pub draws: Vec<u64>,
    /// Score of each row, in millionths.
    pub scores: Vec<i64>,
    /// The entry of each row's score.
    pub scored: Vec<u64>,
    /// Labels for calibration by row, in millionths, in the order of their entries.
    pub labels: BTreeMap<usize, Vec<i64>>,
    /// Rows with a label for calibration, by the design that it names.
    pub labelled: BTreeMap<DesignId, BTreeSet<usize>>,
    /// The entry of the newest label for calibration.
    pub newest_label: Option<u64>,
    /// The entry of the first label for calibration of each row that has one, whether it counts or not.
    pub first_label: BTreeMap<usize, u64>,
}

/// Rows by policy, item and draw.
pub(super) type Places = BTreeMap<(usize, u32, u64), usize>;

/// Gives labels to their rows. Only labels up to the newest row are counted, so that counts do not move without one.
pub(super) fn join(
    found: &mut Gathered,
    labels: LabelList,
    names: &BTreeMap<PolicyId, usize>,
    places: &Places,
) {
    let mut audited = BTreeSet::new();
    for label in labels.all {
        let counts = label.seq <= found.newest;
        let place = names.get(&label.policy).and_then(|&policy| {
            let prompt = found.prompts.known(label.item.as_str())?;
            let row = places.get(&(policy, prompt, label.draw))?;
            Some((policy, *row))
        });
        let Some((policy, row)) = place else {
            if counts {
                bump(&mut found.filter.labels_without_score);
            }
            if label.is_probe {
                let of = found.unscored_probes.entry(label.design).or_default();
                let of = of.entry(label.policy).or_default();
                of.insert((label.item, label.draw));
            }
            continue;
        };
        let values = if label.is_probe {
            if counts {
                audited.insert((policy, row));
            }
            let of = found.probes.entry(label.design).or_default();
            let probes = of.entry(policy).or_default();
            probes.newest = probes.newest.max(label.seq);
            probes.first.entry(row).or_insert(label.seq);
            probes.charge = label.charge.or(probes.charge);
            probes.labels.entry(row).or_default()
        } else if row >= found.sources[policy].draws.len() {
            // Its row does not count, and no label of it does.
            let source = &mut found.sources[policy];
            source.first_label.entry(row).or_insert(label.seq);
            continue;
        } else {
            let source = &mut found.sources[policy];
            source.first_label.entry(row).or_insert(label.seq);
            let of = source.labelled.entry(label.design).or_default();
            of.insert(row);
            source.newest_label = source.newest_label.max(Some(label.seq));
            source.labels.entry(row).or_default()
        };
        if counts && !values.is_empty() {
            bump(&mut found.filter.repeated_labels);
        }
        // The same word of the same rater is one label, under however many designs.
        if !label.is_again {
            values.push(label.value);
        }
    }
    found.filter.audit_labels = Count::new(audited.len() as u64).unwrap_or_default();
}
