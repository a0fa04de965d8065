//! Row models: what each data event adds to the plain tables.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::ledger::LabelRow;
use crate::ledger::RevealRow;
use crate::ledger::RowChange;
use crate::ledger::RowModel;
use crate::ledger::ScoreRow;
use crate::ledger::SealRow;
use crate::ledger::VerifiedEvent;

/// `scores`
#[derive(Clone, Copy, Debug)]
pub struct ScoreRows;
/// `labels`
#[derive(Clone, Copy, Debug)]
pub struct LabelRows;
/// `seals`
#[derive(Clone, Copy, Debug)]
pub struct SealRows;
/// `reveals`
#[derive(Clone, Copy, Debug)]
pub struct RevealRows;

fn experiment(event: &VerifiedEvent<'_>) -> String {
    event
        .event()
        .header
        .experiment
        .as_ref()
        .map_or_else(String::new, |id: &ExperimentId| id.to_string())
}

impl RowModel for ScoreRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::ScoreRecorded]
    }

    fn rows(&self, event: &VerifiedEvent<'_>, out: &mut Vec<RowChange>) {
        if let Payload::ScoreRecorded(score) = &event.event().payload {
            out.push(RowChange::Score(ScoreRow {
                seq: event.seq(),
                experiment: experiment(event),
                judge: score.judge.to_string(),
                policy: score.policy.to_string(),
                item: score.item.to_string(),
                draw: score.draw.value(),
                score_micro: score.score_micro.value(),
            }));
        }
    }
}

impl RowModel for LabelRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::LabelRecorded]
    }

    fn rows(&self, event: &VerifiedEvent<'_>, out: &mut Vec<RowChange>) {
        if let Payload::LabelRecorded(label) = &event.event().payload {
            out.push(RowChange::Label(LabelRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.to_string(),
                policy: label.policy.to_string(),
                item: label.item.to_string(),
                draw: label.draw.value(),
                rater: label.rater.to_string(),
                purpose: label.purpose.to_string(),
                value_micro: label.value_micro.value(),
            }));
        }
    }
}

impl RowModel for SealRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::LabelSealed]
    }

    fn rows(&self, event: &VerifiedEvent<'_>, out: &mut Vec<RowChange>) {
        if let Payload::LabelSealed(label) = &event.event().payload {
            out.push(RowChange::Seal(SealRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.to_string(),
                row: label.row.to_string(),
                commitment: label.commitment,
                reveal_by: label.reveal_by.micros(),
            }));
        }
    }
}

impl RowModel for RevealRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::LabelRevealed]
    }

    fn rows(&self, event: &VerifiedEvent<'_>, out: &mut Vec<RowChange>) {
        if let Payload::LabelRevealed(label) = &event.event().payload {
            out.push(RowChange::Reveal(RevealRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.to_string(),
                row: label.row.to_string(),
                charge: label.charge.0,
                value_micro: label.value_micro.value(),
            }));
        }
    }
}
