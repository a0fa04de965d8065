//! Iterations of one experiment taken together: what each found, and whether there is anything left to find.
//!
//! The campaign stops when two iterations in a row show no slice that is significant after Benjamini and Hochberg, all
//! shrunk intervals cover 0, and transport passes. The rule is advice: it takes nothing away from anybody, and an
//! iteration that opens after it is as good as any other. Source: CLOVER v1.1, section 10.1, step 12.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::Verdict;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::slices::AuditedSlice;
use clover_event::payload::slices::ResidualsAudited;
use clover_ledger::History;
use clover_ledger::LedgerError;

use crate::reader::LogReader;
use crate::reader::Model;

/// Quiet iterations in a row after which a campaign stops.
pub const PATIENCE: usize = 2;

/// What the residual audit of an iteration found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidualAudit {
    /// The entry.
    pub seq: u64,
    /// Slices.
    pub slices: usize,
    /// Slices that are significant within their family.
    pub significant: usize,
    /// Slices whose shrunk interval does not cover 0, or that have rows and no interval.
    pub off_zero: usize,
}

/// One iteration of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What its audit found, if there was one.
    pub audited: Option<ResidualAudit>,
    /// How and where it ended.
    pub closed: Option<(IterationOutcome, u64)>,
    /// Its name.
    pub iteration: IterationId,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// Patches that were accepted in it.
    pub accepted: usize,
    /// Whether calibration held in every environment that was looked at while it was open.
    pub transport: Verdict,
}

impl Turn {
    /// Whether there was nothing to find: no significant slice, every interval covers 0, transport passes.
    pub fn is_quiet(&self) -> bool {
        let nothing = self
            .audited
            .is_some_and(|of| of.significant == 0 && of.off_zero == 0);
        nothing && self.transport == Verdict::Pass
    }
}

/// The iterations of one experiment in the order of their opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campaign {
    /// The iterations.
    pub turns: Vec<Turn>,
    /// Deviations from manifests, by entry.
    pub deviations: Vec<(u64, String)>,
}

impl Campaign {
    /// Quiet iterations in a row up to the newest that ended.
    pub fn quiet_in_a_row(&self) -> usize {
        let ended = self.turns.iter().rev().filter(|turn| turn.closed.is_some());
        ended.take_while(|turn| turn.is_quiet()).count()
    }

    /// Whether two quiet iterations in a row say that there is nothing left to find.
    pub fn has_stopped(&self) -> bool {
        self.quiet_in_a_row() >= PATIENCE
    }

    /// The iteration that is open.
    pub fn open(&self) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.closed.is_none())
    }

    fn turn(&mut self, iteration: &IterationId) -> Option<&mut Turn> {
        self.turns
            .iter_mut()
            .find(|turn| turn.iteration == *iteration)
    }
}

impl Model for Campaign {
    fn take(&mut self, seq: u64, event: &Event) {
        match &event.payload {
            Payload::IterationOpened(said) => self.turns.push(Turn {
                audited: None,
                closed: None,
                iteration: said.iteration.clone(),
                opened_seq: seq,
                accepted: 0,
                transport: Verdict::NotChecked,
            }),
            Payload::IterationClosed(said) => {
                if let Some(turn) = self.turn(&said.iteration) {
                    turn.closed.get_or_insert((said.outcome, seq));
                }
            }
            Payload::PatchAccepted(said) => {
                if let Some(turn) = self.turn(&said.iteration) {
                    turn.accepted += 1;
                }
            }
            Payload::ResidualsAudited(said) => {
                if let Some(turn) = self.turn(&said.iteration) {
                    turn.audited.get_or_insert_with(|| audited(seq, said));
                }
            }
            Payload::GateEvaluated(said) => {
                if let (Some(found), Some(turn)) = (transport(said), self.turn(&said.iteration)) {
                    turn.transport = joined(turn.transport, found);
                }
            }
            Payload::TransportTested(said) => {
                let open = self.turns.iter_mut().find(|turn| turn.closed.is_none());
                if let Some(turn) = open {
                    let found = match said.state {
                        TransportState::Fail => Verdict::Fail,
                        TransportState::Pass => Verdict::Pass,
                        TransportState::Inconclusive | TransportState::NotGraded => {
                            Verdict::Inconclusive
                        }
                        TransportState::NotChecked => Verdict::NotChecked,
                    };
                    turn.transport = joined(turn.transport, found);
                }
            }
            Payload::ManifestDeviated(said) => {
                let words = format!("{}: {}", said.rule_path.as_str(), said.what.as_str());
                self.deviations.push((seq, words));
            }
            _ => {}
        }
    }
}

/// The worse of two looks; nobody looking says nothing.
fn joined(a: Verdict, b: Verdict) -> Verdict {
    let looked = [a, b].into_iter();
    let looked = looked.filter(|verdict| *verdict != Verdict::NotChecked);
    // Verdicts stand from the worst to the best.
    looked.min().unwrap_or(Verdict::NotChecked)
}

/// What a gate P6 says of the rubric in force: a failure that is the candidate's own says nothing of it.
fn transport(said: &GateEvaluated) -> Option<Verdict> {
    let Evidence::P6(found) = &said.evidence else {
        return None;
    };
    if found.environments.iter().any(|one| one.baseline_fails) {
        return Some(Verdict::Fail);
    }
    match said.verdicts.under(said.thresholds.profile) {
        Verdict::Fail => None,
        verdict => Some(verdict),
    }
}

fn audited(seq: u64, said: &ResidualsAudited) -> ResidualAudit {
    let slices = || said.families.iter().flat_map(|family| &family.slices);
    let is_off = |slice: &&AuditedSlice| match &slice.pooled {
        Some(pooled) => pooled.low.value() > 0.0 || pooled.high.value() < 0.0,
        // A slice that has rows and was not read may be off.
        None => slice.exposure.value() > 0.0,
    };
    let is_significant = |slice: &&AuditedSlice| slice.raw.as_ref().is_some_and(|raw| raw.rejected);
    ResidualAudit {
        seq,
        slices: slices().count(),
        significant: slices().filter(is_significant).count(),
        off_zero: slices().filter(is_off).count(),
    }
}

/// Reads the campaign of an experiment from the log, up to `through_seq`.
///
/// # Errors
/// [`LedgerError`].
pub fn read(
    history: &dyn History,
    experiment: &ExperimentId,
    through_seq: u64,
) -> Result<Campaign, LedgerError> {
    let entries = LogReader::through(history, through_seq).of(experiment);
    entries.into_model(Campaign::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(name: &str, significant: usize, off_zero: usize, transport: Verdict) -> Turn {
        Turn {
            audited: Some(ResidualAudit {
                seq: 1,
                slices: 4,
                significant,
                off_zero,
            }),
            closed: Some((IterationOutcome::NoCandidate, 9)),
            iteration: name.parse().unwrap(),
            opened_seq: 0,
            accepted: 0,
            transport,
        }
    }

    fn quiet(name: &str) -> Turn {
        turn(name, 0, 0, Verdict::Pass)
    }

    fn stopped(turns: Vec<Turn>) -> bool {
        let campaign = Campaign {
            turns,
            deviations: Vec::new(),
        };
        campaign.has_stopped()
    }

    #[test]
    fn a_campaign_stops_after_two_quiet_iterations_in_a_row() {
        assert!(stopped(vec![quiet("a"), quiet("b")]));
        assert!(!stopped(vec![quiet("a")]));
        let loud = turn("c", 1, 0, Verdict::Pass);
        assert!(!stopped(vec![quiet("a"), loud.clone(), quiet("b")]));
        assert!(stopped(vec![loud, quiet("a"), quiet("b")]));
        let open = Turn {
            closed: None,
            ..turn("d", 4, 4, Verdict::Fail)
        };
        assert!(stopped(vec![quiet("a"), quiet("b"), open]));
    }

    #[test]
    fn nobody_looking_is_not_quiet() {
        assert!(!turn("a", 0, 1, Verdict::Pass).is_quiet());
        for verdict in [Verdict::NotChecked, Verdict::Inconclusive, Verdict::Fail] {
            assert!(!turn("a", 0, 0, verdict).is_quiet());
        }
        let unread = Turn {
            audited: None,
            ..quiet("a")
        };
        assert!(!unread.is_quiet());
        assert_eq!(joined(Verdict::NotChecked, Verdict::Pass), Verdict::Pass);
        assert_eq!(joined(Verdict::Fail, Verdict::Pass), Verdict::Fail);
    }
}
