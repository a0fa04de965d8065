//! When each entry was recorded, kept outside memory: a later checkpoint's time is compared with it.

use clover_ground::ambient::Ambient;
use clover_ground::ambient::Scratch;
use clover_ground::time::Timestamp;

use crate::rules;
use crate::verify::VerifyError;

/// `recorded_at` of every entry walked, in an unnamed scratch file.
pub(super) struct Times {
    scratch: Scratch,
    pending: Vec<u8>,
    flushed: u64,
    last: Option<(u64, Timestamp)>,
    /// What was pushed last, and how much was pushed.
    newest: Option<Timestamp>,
    pushed: u64,
    /// First entry that was recorded long after the one before it, and how many were.
    ahead: Option<(u64, u64)>,
}

impl Times {
    const PENDING_MAX: usize = 1 << 19;

    pub(super) fn new(ambient: &Ambient) -> Result<Self, VerifyError> {
        Ok(Self {
            scratch: Scratch::new(ambient)?,
            pending: Vec::new(),
            flushed: 0,
            last: None,
            newest: None,
            pushed: 0,
            ahead: None,
        })
    }

    /// Notes, with one on steps of the ledger's clock that only a flag allows at append.
    pub(super) fn remarked(&self, mut notes: Vec<String>) -> Vec<String> {
        if let Some((seq, steps)) = self.ahead {
            notes.push(format!(
                "recorded_at steps ahead by more than 400 days {steps} times, first at seq {seq}: no later entry may be earlier"
            ));
        }
        notes
    }

    pub(super) fn push(&mut self, at: Timestamp) -> Result<(), VerifyError> {
        let before = self.newest.replace(at);
        if before.is_some_and(|before| at > before.plus_seconds(rules::CLOCK_AHEAD_SECONDS)) {
            self.ahead.get_or_insert((self.pushed, 0)).1 += 1;
        }
        self.pushed += 1;
        self.pending.extend_from_slice(&at.micros().to_be_bytes());
        if self.pending.len() >= Self::PENDING_MAX {
            self.scratch.append(&self.pending)?;
            self.flushed += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }

    pub(super) fn at(&mut self, seq: u64) -> Result<Timestamp, VerifyError> {
        if let Some((_, at)) = self.last.filter(|(of, _)| *of == seq) {
            return Ok(at);
        }
        let mut bytes = [0; 8];
        let offset = seq * 8;
        match offset
            .checked_sub(self.flushed)
            .and_then(|at| usize::try_from(at).ok())
        {
            Some(at) => {
                if let Some(found) = self.pending.get(at..at + 8) {
                    bytes.copy_from_slice(found);
                }
            }
            None => {
                self.scratch.read_at(offset, &mut bytes)?;
            }
        }
        let at = Timestamp::from_micros(i64::from_be_bytes(bytes)).unwrap_or(Timestamp::EPOCH);
        self.last = Some((seq, at));
        Ok(at)
    }
}
