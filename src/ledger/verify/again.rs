//! What is computed again from the entries before, under `--recompute`.

use clover_event::Kind;
use clover_event::Payload;

use crate::error::LedgerError;
use crate::fold::AtHand;
use crate::fold::Breach;
use crate::fold::ProposedEvent;
use crate::history::EarlierLog;
use crate::verify::VerifyError;
use crate::verify::checker::Checker;
use crate::verify::file::FileView;

/// Why answers of models are not read again by a walk over entries.
pub const UNREAD: &str = "which only the vault beside the ledger opens";

impl Checker<'_> {
    /// Computes an event again from the entries before it where that is asked for, else counts it; lines are kept for those
    /// that come after.
    pub(super) fn compute(
        &mut self,
        candidate: &ProposedEvent<'_>,
        breaches: &mut Vec<Breach>,
    ) -> Result<(), VerifyError> {
        let kind = candidate.event.kind();
        if kind == Kind::SubjectErased {
            self.erasures.add(candidate.seq);
        }
        if !self.options.recompute {
            let mut again = self.state.rulebook().again.iter();
            if again.any(|line| line.kinds.contains(&kind)) {
                self.out_of_hand.add(candidate.seq);
            }
            return Ok(());
        }
        // A report is written from states of the past, which a walk over entries does not have.
        self.reports += u64::from(kind == Kind::ReportPublished);
        // An attack reads texts, which are private.
        self.batteries += u64::from(kind == Kind::BatteryEvaluated);
        // Bodies are private: whoever has the vault reads them again beside this walk.
        let is_answer = matches!(&candidate.event.payload, Payload::CallRecorded(said) if said.response.is_some());
        self.answers += u64::from(is_answer);
        let reader = self.file.as_ref().map(FileView::reader);
        let (kept, blobs) = (&self.kept, self.blobs);
        let history = || EarlierLog {
            reader,
            stored: candidate.seq,
            kept: kept.iter().map(|(seq, event)| (*seq, event)).collect(),
            blobs,
        };
        let at_hand = self
            .computing
            .check(&self.state, candidate, history, breaches);
        let at_hand = at_hand.map_err(|error| match error {
            LedgerError::Ambient(error) => VerifyError::Ambient(error),
            LedgerError::Store(error) => VerifyError::Store(error),
            other => VerifyError::Read(other.to_string()),
        })?;
        match at_hand {
            AtHand::Yes => {}
            AtHand::Private | AtHand::Gone(_) => self.out_of_hand.add(candidate.seq),
            AtHand::Unrecorded => self.unrecorded += 1,
        }
        if reader.is_none() && self.is_read_again(candidate) {
            self.kept.push((candidate.seq, candidate.event.clone()));
        }
        Ok(())
    }

    /// Whether a later computation reads an event, or draws from the checkpoint that it has seen.
    fn is_read_again(&mut self, candidate: &ProposedEvent<'_>) -> bool {
        let kind = candidate.event.kind();
        let seen = candidate
            .event
            .header
            .seen
            .map_or(0, |seen| seen.size.value());
        let waiting = self.undrawn.len();
        self.undrawn.retain(|after| seen <= *after);
        let is_drawn = self.undrawn.len() < waiting;
        let lines = || self.state.rulebook().again.iter();
        if lines().any(|line| line.draws.contains(&kind)) {
            self.undrawn.push(candidate.seq);
        }
        is_drawn || lines().any(|line| line.reads.contains(&kind))
    }

    /// What was not computed again, where anything was not.
    pub(super) fn not_computed(&self) -> Vec<String> {
        if !self.options.recompute {
            let mut open = vec!["recompute".to_owned()];
            if self.erasures.count > 0 {
                open.push(format!("texts erased at seq {}", self.erasures.words()));
            }
            return open;
        }
        let both = [
            (self.out_of_hand.count, "whose inputs are not at hand"),
            (self.unrecorded, "whose inputs nobody recorded"),
        ];
        let counts = both.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, why)| {
            let events = if count == 1 { "event" } else { "events" };
            format!("recompute of {count} {events} {why}")
        });
        let mut lines: Vec<String> = counts.collect();
        if let Some(first) = lines.first_mut().filter(|_| self.out_of_hand.count > 0) {
            first.push_str(&format!(" (seq {})", self.out_of_hand.words()));
        }
        let counted = |count: u64, one: &str, many: &str, why: &str| match count {
            0 => None,
            1 => Some(format!("{one}, {why}")),
            count => Some(many.replace('#', &count.to_string()) + ", " + why),
        };
        lines.extend(counted(
            self.batteries,
            "recompute of 1 attack battery",
            "recompute of # attack batteries",
            "which replay alone runs again on texts",
        ));
        lines.extend(counted(
            self.reports,
            "recompute of 1 report",
            "recompute of # reports",
            "which replay alone writes again",
        ));
        lines.extend(counted(
            self.answers,
            "1 answer of a model",
            "# answers of models",
            UNREAD,
        ));
        if self.erasures.count > 0 {
            lines.push(format!("texts erased at seq {}", self.erasures.words()));
        }
        lines
    }
}

/// Positions that are listed before the rest is counted.
const LISTED: usize = 12;

/// Entries of one sort: how many, and the first of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedEntries {
    /// How many.
    pub count: u64,
    first: Vec<u64>,
}

impl ListedEntries {
    fn add(&mut self, seq: u64) {
        self.count += 1;
        if self.first.len() < LISTED {
            self.first.push(seq);
        }
    }

    /// Their positions in words.
    fn words(&self) -> String {
        let first: Vec<_> = self.first.iter().map(u64::to_string).collect();
        match self.count.saturating_sub(self.first.len() as u64) {
            0 => first.join(", "),
            more => format!("{} and {more} more", first.join(", ")),
        }
    }
}
