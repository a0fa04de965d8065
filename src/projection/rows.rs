//! Row models: what each data event adds to the plain tables.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_ledger::LabelRow;
use clover_ledger::RevealRow;
use clover_ledger::RowChange;
use clover_ledger::RowModel;
use clover_ledger::ScoreRow;
use clover_ledger::SealRow;
use clover_ledger::VerifiedEvent;

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

fn experiment<'e>(event: &VerifiedEvent<'e>) -> &'e str {
    let id = event.event().experiment();
    id.map_or("", ExperimentId::as_str)
}

impl RowModel for ScoreRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::ScoreRecorded]
    }

    fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>)) {
        if let Payload::ScoreRecorded(score) = &event.event().payload {
            take(RowChange::Score(ScoreRow {
                seq: event.seq(),
                experiment: experiment(event),
                judge: score.judge.as_str(),
                policy: score.policy.as_str(),
                item: score.item.as_str(),
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

    fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>)) {
        if let Payload::LabelRecorded(label) = &event.event().payload {
            take(RowChange::Label(LabelRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.as_str(),
                policy: label.policy.as_str(),
                item: label.item.as_str(),
                draw: label.draw.value(),
                rater: label.rater.as_str(),
                purpose: label.purpose.as_str(),
                value_micro: label.value_micro.value(),
            }));
        }
    }
}

impl RowModel for SealRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::LabelSealed]
    }

    fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>)) {
        if let Payload::LabelSealed(label) = &event.event().payload {
            take(RowChange::Seal(SealRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.as_str(),
                row: label.row.as_str(),
                commitment: &label.commitment,
                reveal_by: label.reveal_by.micros(),
            }));
        }
    }
}

impl RowModel for RevealRows {
    fn reads(&self) -> &'static [Kind] {
        &[Kind::LabelRevealed]
    }

    fn rows<'e>(&self, event: &VerifiedEvent<'e>, take: &mut dyn FnMut(RowChange<'e>)) {
        if let Payload::LabelRevealed(label) = &event.event().payload {
            take(RowChange::Reveal(RevealRow {
                seq: event.seq(),
                experiment: experiment(event),
                design: label.design.as_str(),
                row: label.row.as_str(),
                charge: &label.charge.0,
                value_micro: label.value_micro.value(),
            }));
        }
    }
}
