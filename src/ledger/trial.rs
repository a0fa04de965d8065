//! A history in memory on which events are tried: judged by the rules that admit and re-judge, taken in, and taken back.
//!
//! It has no file, checks no signature and computes no numbers again. It serves searches over many short
//! continuations of one history; what it lets pass, [`crate::verify`] lets pass too, once it is signed.

use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Entry;
use clover_event::Event;
use clover_event::header;
use clover_event::header::DecodedBody;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;

use crate::append;
use crate::catch_up;
use crate::claim::Claim;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::keyring::Keyring;
use crate::rule_names::RuleName;
use crate::rules;
use crate::state::State;

/// What entries said of one digest, in their order.
#[derive(Clone, Copy, Debug)]
enum DigestStatement {
    Gives { seq: u64 },
    Id { seq: u64, said: u64 },
    Says { seq: u64, value: i64 },
}

/// How to take one event back.
struct Step {
    folds: Vec<(usize, Arc<[u8]>)>,
    given: Vec<Digest>,
    keyring: Keyring,
}

/// A history in memory.
pub struct Trial {
    state: State,
    given: BTreeMap<Digest, Vec<DigestStatement>>,
    times: Vec<Timestamp>,
    /// Bytes of each fold as it stands, where somebody asked for them.
    bytes: Vec<Option<Arc<[u8]>>>,
    steps: Vec<Step>,
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trial({} entries)", self.state.size)
    }
}

impl Trial {
    /// Before the first entry.
    pub fn new(rulebook: &'static Rulebook) -> Self {
        Self {
            state: State::new(rulebook),
            given: BTreeMap::new(),
            times: Vec::new(),
            bytes: vec![None; rulebook.folds.len()],
            steps: Vec::new(),
        }
    }

    /// Tries the entries of these lines, one after the other.
    ///
    /// # Errors
    /// The first line that is no entry or breaks a rule, with what it breaks.
    pub fn follow<'a>(
        &mut self,
        lines: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), (u64, Vec<Breach>)> {
        for line in lines {
            let seq = self.state.size;
            let broken = |why: String| {
                (
                    seq,
                    vec![Breach::new(RuleName::LineFormat, "an entry line", why)],
                )
            };
            let entry = Entry::parse(line).map_err(|why| broken(why.to_string()))?;
            let read = header::decode(entry.signed.body());
            let event = match read.map_err(|why| broken(why.to_string()))? {
                DecodedBody {
                    id,
                    header,
                    v,
                    payload: Ok(payload),
                } => Event {
                    id,
                    header,
                    payload,
                    v,
                },
                other => return Err(broken(format!("data of {} that is none", other.kind()))),
            };
            let breaches = self.say(entry.recorded_at, &event);
            if !breaches.is_empty() {
                return Err((seq, breaches));
            }
        }
        Ok(())
    }

    /// Judges an event as the next entry, and takes it in when it breaks nothing.
    pub fn say(&mut self, recorded_at: Timestamp, event: &Event) -> Vec<Breach> {
        let seq = self.state.size;
        let candidate = ProposedEvent {
            seq,
            recorded_at,
            event,
        };
        let mut breaches = self.judge_header(&candidate);
        rules::custody(&self.state, &candidate, &mut breaches);
        let rulebook = self.state.rulebook();
        for rule in rulebook.every_rule() {
            rule.check(&self.state, &candidate, &mut breaches);
        }
        let mut facts = Vec::new();
        catch_up::all_facts(rulebook, &candidate, event.natural_key(), &mut facts);
        for rule in rulebook.every_rule() {
            rule.requires(&self.state, &candidate, &mut facts);
        }
        breaches.extend(facts.iter().filter_map(|fact| self.judge_fact(seq, fact)));
        if breaches.is_empty() {
            self.take(candidate, &facts);
        }
        breaches.sort_by_key(|breach| breach.rule);
        breaches
    }

    /// Takes the newest event back. False when there is none.
    ///
    /// # Panics
    /// When a fold does not read its own snapshot, which would be a bug.
    pub fn take_back(&mut self) -> bool {
        let Some(step) = self.steps.pop() else {
            return false;
        };
        self.state.size -= 1;
        self.state.keyring = step.keyring;
        self.times.pop();
        for (at, bytes) in step.folds {
            let is_own = self.state.restore_at(at, &bytes);
            assert!(is_own, "BUG: a fold reads its own snapshot");
            self.bytes[at] = Some(bytes);
        }
        for digest in step.given.iter().rev() {
            if let Some(of) = self.given.get_mut(digest) {
                of.pop();
                if of.is_empty() {
                    self.given.remove(digest);
                }
            }
        }
        true
    }

    /// What the rules know after the newest event.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn judge_header(&self, candidate: &ProposedEvent<'_>) -> Vec<Breach> {
        let Event {
            header, payload, v, ..
        } = candidate.event;
        let claim = Claim {
            seq: candidate.seq,
            recorded_at: candidate.recorded_at,
            keyid: header.author,
            header,
            v: *v,
            payload: Ok(payload),
        };
        let mut breaches = Vec::new();
        rules::header(&self.state, &claim, &mut breaches);
        let seen = header.seen.map(|seen| seen.size.value());
        let seen = seen.and_then(|size| usize::try_from(size.checked_sub(1)?).ok());
        if let Some(at) = seen.and_then(|at| self.times.get(at)) {
            breaches.extend(rules::not_backdated(header.at, *at));
        }
        breaches
    }

    fn take(&mut self, candidate: ProposedEvent<'_>, facts: &[Fact]) {
        let keyring = self.state.keyring.clone();
        let mut folds = Vec::new();
        for at in self.state.readers(candidate.event.kind()) {
            let state = &self.state;
            let bytes = self.bytes[at].take();
            folds.push((at, bytes.unwrap_or_else(|| state.snapshot_at(at).into())));
        }
        let mut given = Vec::new();
        for fact in facts {
            let seq = candidate.seq;
            let (digest, one) = match *fact {
                Fact::Gives { digest, .. } => (digest, DigestStatement::Gives { seq }),
                Fact::Id { digest, said } => (digest, DigestStatement::Id { seq, said }),
                Fact::Says { digest, value } => (digest, DigestStatement::Says { seq, value }),
                _ => continue,
            };
            self.given.entry(digest).or_default().push(one);
            given.push(digest);
        }
        self.state.apply(&VerifiedEvent::new(candidate));
        self.times.push(candidate.recorded_at);
        self.steps.push(Step {
            folds,
            given,
            keyring,
        });
    }

    fn of(&self, digest: &Digest) -> &[DigestStatement] {
        self.given.get(digest).map_or(&[], Vec::as_slice)
    }

    /// The first entry that gave a digest.
    fn giver(&self, digest: &Digest) -> Option<u64> {
        self.of(digest).iter().find_map(|given| match given {
            DigestStatement::Gives { seq } | DigestStatement::Id { seq, .. } => Some(*seq),
            DigestStatement::Says { .. } => None,
        })
    }

    /// The event of this id, and the number that it recorded.
    fn event(&self, digest: &Digest) -> Option<(u64, u64)> {
        self.of(digest).iter().find_map(|given| match given {
            DigestStatement::Id { seq, said } => Some((*seq, *said)),
            _ => None,
        })
    }

    /// What the entry at a position says under a digest.
    fn said(&self, digest: &Digest, at: u64) -> Option<i64> {
        self.of(digest).iter().find_map(|given| match given {
            DigestStatement::Says { seq, value } if *seq == at => Some(*value),
            _ => None,
        })
    }

    fn judge_fact(&self, seq: u64, fact: &Fact) -> Option<Breach> {
        match *fact {
            Fact::Id { .. } | Fact::Gives { once: None, .. } | Fact::Says { .. } => None,
            Fact::Gives {
                digest,
                once: Some(rule),
            } => self.giver(&digest).map(|first| {
                let found = format!("seq {first} has it");
                Breach::new(rule, "one event per natural key", found)
            }),
            Fact::Needs {
                digest,
                before,
                rule,
            } => {
                let giver = match rule {
                    RuleName::Refs => self.event(&digest).map(|(at, _)| at),
                    _ => self.giver(&digest),
                };
                let is_met = giver.is_some_and(|at| at < before);
                (!is_met).then(|| append::need_breach(rule, &digest, before, giver))
            }
            Fact::Forbids { digest, rule } => {
                let giver = self.giver(&digest);
                giver.map(|at| append::forbid_breach(rule, at))
            }
            Fact::ForbidsBelow {
                digest,
                before,
                rule,
            } => {
                let giver = self.giver(&digest).filter(|at| *at < before.min(seq));
                giver.map(|at| append::forbid_breach(rule, at))
            }
            Fact::Recorded { digest, rule, said } => {
                let other = self.event(&digest).filter(|(_, found)| *found != said);
                other.map(|(at, _)| append::says_breach(rule, at))
            }
            Fact::Agrees {
                digest,
                value,
                rule,
            } => {
                let first = self.giver(&digest);
                let found = first.and_then(|first| Some((first, self.said(&digest, first)?)));
                append::agree_breach(rule, value, found)
            }
            Fact::Reads {
                digest,
                value,
                after,
                rule,
            } => {
                let first = self.giver(&digest);
                let found = first.map(|first| (first, self.said(&digest, first)));
                append::read_breach(rule, value, after, found)
            }
        }
    }
}
