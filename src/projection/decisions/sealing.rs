//! The rules `sealing` and `acceptance`: what goes to confirm, one charged look at it, and who may be accepted.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::Verdict;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::iteration::IterationClosed;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::label::LabelRevealed;
use crate::event::payload::predicate::CandidatesSealed;
use crate::event::payload::predicate::ConfirmUnsealed;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::predicate::PatchAccepted;
use crate::event::payload::predicate::SealedHypothesis;
use crate::ground::canon;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Fact;
use crate::ledger::Judged as Found;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::assumptions::Assumptions;
use crate::projection::budgets::Budgets;
use crate::projection::decisions::ACCEPTED_MAX;
use crate::projection::decisions::AllDecisions;
use crate::projection::decisions::CONFIRM_GATES;
use crate::projection::decisions::DEV_GATES;
use crate::projection::decisions::Decisions;
use crate::projection::decisions::GateSaid;
use crate::projection::decisions::Judged;
use crate::projection::decisions::Ranked;
use crate::projection::decisions::block;
use crate::projection::decisions::block::kept_shut;
use crate::projection::decisions::hypotheses;
use crate::projection::decisions::reviews;
use crate::projection::decisions::rules::Live;
use crate::projection::decisions::rules::live;
use crate::projection::decisions::rules::taint;
use crate::projection::decisions::select;
use crate::projection::decisions::sequence;
use crate::projection::decisions::thresholds_of;
use crate::projection::iterations::Candidate as Patch;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::manifests::Manifests;
use crate::projection::seals;
use crate::projection::splits;
use crate::projection::splits::Splits;

/// Label of the hash of a composite.
pub const COMPOSITE_LABEL: &str = "clover/composite/v1";

/// The hash of patches taken together: of one, its own; of more, over theirs in ascending order.
pub fn composite_of(patches: &[Digest]) -> Digest {
    let mut patches = patches.to_vec();
    patches.sort_unstable();
    match patches[..] {
        [only] => only,
        _ => canon::digest(COMPOSITE_LABEL, &patches),
    }
}

/// The rules `sealing` and `acceptance`.
#[derive(Clone, Copy, Debug)]
pub struct Sealing;

impl Rule for Sealing {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let now = Now {
            state,
            experiment,
            at: event.recorded_at,
        };
        let (rule, found) = match &event.event.payload {
            Payload::CandidatesSealed(said) => (RuleName::Sealing, now.sealed(said)),
            Payload::ConfirmUnsealed(said) => (RuleName::Sealing, now.unsealed(said)),
            Payload::LabelSealed(said) => (
                RuleName::Sealing,
                block::sealed_late(state, experiment, said),
            ),
            Payload::LabelRevealed(said) => {
                let paid = block::paid_before(state, experiment, said);
                breaches.extend(
                    paid.map(|(expected, found)| Breach::new(RuleName::Charge, expected, found)),
                );
                let found = now.revealed(said);
                let header = &event.event.header;
                let shown = || sequence::shown(state, experiment, header, said);
                (RuleName::Sealing, found.or_else(shown))
            }
            Payload::ConfirmLooked(said) => {
                let found = match live(state, experiment, &said.iteration) {
                    Ok(live) => sequence::looked(state, &live, &event.event.header, said),
                    Err(found) => Some(found),
                };
                (RuleName::Sealing, found)
            }
            Payload::IterationClosed(said) => (RuleName::Acceptance, now.closed(said)),
            Payload::PatchAccepted(said) => (RuleName::Acceptance, now.accepted(said)),
            _ => return,
        };
        breaches.extend(found.map(|(expected, found)| Breach::new(rule, expected, found)));
    }

    fn demands(&self, state: &State, event: &Candidate<'_>, facts: &mut Vec<Fact>) {
        if let (Payload::LabelRevealed(said), Some(experiment)) =
            (&event.event.payload, &event.event.header.experiment)
        {
            facts.extend(block::of_older_block(state, experiment, said));
        }
    }

    fn facts(&self, event: &Candidate<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.header.experiment.as_ref();
        match &event.event.payload {
            Payload::SplitsFormed(said) => facts.push(Fact::Gives {
                digest: splits::confirm_root(experiment, &said.confirm.root),
                once: None,
            }),
            Payload::ConfirmUnsealed(said) => {
                facts.push(Fact::Needs {
                    digest: splits::confirm_root(experiment, &said.confirm_root),
                    before: event.seq,
                    rule: RuleName::Sealing,
                });
                let seen = event
                    .event
                    .header
                    .seen
                    .as_ref()
                    .map_or(0, |seen| seen.size.value());
                facts.push(Fact::Needs {
                    digest: seals::charge(&said.charge.0),
                    before: seen,
                    rule: RuleName::Sealing,
                });
            }
            _ => {}
        }
    }
}

/// The gates of a split, in order.
fn gates_of(split: GateSplit) -> &'static [GateId] {
    match split {
        GateSplit::Confirm => &CONFIRM_GATES,
        GateSplit::Dev => &DEV_GATES,
    }
}

/// The first gate that stops a candidate on a split by `at`, and in words why; `None` if each lets it pass.
pub fn stopped(
    state: &State,
    experiment: &ExperimentId,
    at: Timestamp,
    (iteration, candidate): (&IterationId, Digest),
    split: GateSplit,
) -> Option<(GateId, String)> {
    let now = Now {
        state,
        experiment,
        at,
    };
    let decided = state.fold::<AllDecisions>().of(iteration);
    let judged = decided.and_then(|of| of.candidate(candidate));
    let gates = gates_of(split);
    gates.iter().find_map(|gate| {
        let words = now.stopped_by(judged, std::slice::from_ref(gate), split)?;
        Some((*gate, words))
    })
}

/// Patches to accept by `at`, by hash, in order.
pub fn acceptable(
    state: &State,
    experiment: &ExperimentId,
    at: Timestamp,
    iteration: &IterationId,
) -> Vec<Digest> {
    let now = Now {
        state,
        experiment,
        at,
    };
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let decided = state.fold::<AllDecisions>().of(iteration);
    match it.zip(decided) {
        Some((it, decided)) => now.order(it, decided),
        None => Vec::new(),
    }
}

/// An event's place: the state before it, its experiment, the ledger's time.
struct Now<'a> {
    state: &'a State,
    experiment: &'a ExperimentId,
    at: Timestamp,
}

impl Now<'_> {
    /// Whether a verdict lets a candidate pass: a pass does; what nobody could check does if two keys answered for it
    /// before the splits were formed.
    fn lets_pass(&self, said: &GateSaid) -> bool {
        let code = match (said.verdict, said.gate) {
            (Verdict::Pass, _) => return true,
            (Verdict::NotChecked, GateId::P0) => Assumption::CloverJ2,
            (Verdict::NotChecked, GateId::P7) => Assumption::Adv,
            _ => return false,
        };
        self.is_answered_for(code)
    }

    /// Whether two keys answered for an assumption before the splits were formed, and still do.
    fn is_answered_for(&self, code: Assumption) -> bool {
        let row = self
            .state
            .fold::<Assumptions>()
            .row(code, Some(self.experiment));
        let Some(waiver) = row.and_then(|row| row.granted.as_ref()) else {
            return false;
        };
        let splits = self
            .state
            .fold::<Splits>()
            .by_experiment
            .get(self.experiment);
        let formed = splits.and_then(|of| of.formed.values().map(|formed| formed.seq).max());
        let agreed = waiver.agreed.map(|agreed| agreed.seq);
        let is_early = agreed
            .zip(formed)
            .is_some_and(|(agreed, formed)| agreed < formed);
        is_early && waiver.expires_at > self.at
    }

    /// The first gate of `gates` on `split` that does not let a candidate pass.
    fn stopped_by(
        &self,
        judged: Option<&Judged>,
        gates: &[GateId],
        split: GateSplit,
    ) -> Option<String> {
        gates.iter().find_map(
            |&gate| match judged.and_then(|judged| judged.said(gate, split)) {
                Some(said) if self.lets_pass(said) => None,
                Some(said) => Some(format!(
                    "{gate} {} at seq {}",
                    verdict_word(said.verdict),
                    said.seq
                )),
                None => Some(format!("{gate} not evaluated on {}", split.as_str())),
            },
        )
    }

    fn sealed(&self, said: &CandidatesSealed) -> Found {
        let live = match live(self.state, self.experiment, &said.iteration) {
            Ok(live) => live,
            Err(found) => return Some(found),
        };
        if let Some(found) = live
            .is_going_on("a sealing")
            .or_else(|| live.is_sealed_yet("a sealing"))
        {
            return Some(found);
        }
        if let Some(found) = taint(self.state, self.experiment, &live) {
            return no(
                "an iteration that is not tainted; close it as tainted",
                found,
            );
        }
        let sealed = live.decided.and_then(|of| of.sealed.as_ref());
        if let Some(sealed) = sealed {
            return no("one sealing", format!("sealed at seq {}", sealed.once.seq));
        }
        self.divided(&live, said)
            .or_else(|| hypotheses::hypotheses(live.it, &said.hypotheses))
            .or_else(|| {
                let all = said.hypotheses.iter().flat_map(|one| &one.patches);
                reviews::lacking(self.state, live.it, &all.copied().collect::<Vec<_>>())
            })
            .or_else(|| {
                said.hypotheses.iter().find_map(|one| {
                    let judged = live.decided.and_then(|of| of.candidate(one.candidate));
                    let found = self.stopped_by(judged, &DEV_GATES, GateSplit::Dev)?;
                    no(
                        format!("p0 to p7 passed on dev by {}", one.candidate.short()),
                        found,
                    )
                })
            })
    }

    /// As many hypotheses as alpha is divided by, at most.
    fn divided(&self, live: &Live<'_>, said: &CandidatesSealed) -> Found {
        let manifests = self.state.fold::<Manifests>();
        let (_, record) = manifests.of_digest(live.it.digest)?;
        let version = record.version(live.it.digest)?;
        let plan = version.manifest.iteration.as_ref()?;
        let most = thresholds_of(plan).hypotheses;
        if said.divisor != most {
            return no(format!("divisor {most}"), said.divisor.to_string());
        }
        let found = said.hypotheses.len() as u64;
        (found == 0 || found > most.value())
            .then(|| (format!("1 to {most} hypotheses"), found.to_string()))
    }

    fn unsealed(&self, said: &ConfirmUnsealed) -> Found {
        let live = match live(self.state, self.experiment, &said.iteration) {
            Ok(live) => live,
            Err(found) => return Some(found),
        };
        let Some(sealed) = live.decided.and_then(|of| of.sealed.as_ref()) else {
            return no("candidates.sealed first", "none");
        };
        if sealed.once.id != said.sealed {
            let expected = format!("the sealing at seq {}", sealed.once.seq);
            return no(expected, said.sealed.to_string());
        }
        if let Some(found) = live.is_sealed_yet("an unsealing") {
            return Some(found);
        }
        let Some(account) = self.state.fold::<Budgets>().peeks.get(&said.charge) else {
            let expected = "a charge to an account whose unit is peek";
            return no(expected, said.charge.to_string());
        };
        if self.state.asks(Question::PeekAccount)
            && let Some(found) = block::paid_elsewhere(self.state, live.it, account)
        {
            return Some(found);
        }
        let all = self.state.fold::<AllDecisions>();
        if let Some(seq) = all.charges.get(&said.charge.0.to_hex()) {
            let found = format!("one spent at seq {seq}");
            return no("a charge that paid for no other unsealing", found);
        }
        kept_shut(self.state, self.experiment, said.confirm_root, self.at)
    }

    /// Confirm labels are shown for the peek of an iteration's unsealing, and while it is open. Rulebooks before 18 asked
    /// that of an open iteration alone, whatever paid.
    fn revealed(&self, said: &LabelRevealed) -> Found {
        if !block::is_confirm(self.state, self.experiment, &said.design) {
            return None;
        }
        let asks = self.state.asks(Question::ConfirmRows);
        let iterations = self.state.fold::<Iterations>();
        let Some((id, _)) = iterations.open_in(self.experiment) else {
            let expected = "an open iteration whose confirm.unsealed pays for the reveal";
            return asks.then(|| (expected.to_owned(), "no open iteration".to_owned()));
        };
        let all = self.state.fold::<AllDecisions>();
        let Some(unsealed) = all.of(id).and_then(|of| of.unsealed) else {
            let expected = format!("confirm.unsealed of {id}, which is open, before a reveal");
            return no(expected, "none");
        };
        let paid = all.charges.get(&said.charge.0.to_hex());
        (asks && paid != Some(&unsealed.seq)).then(|| {
            let expected = format!("the charge of the confirm.unsealed at seq {}", unsealed.seq);
            (expected, said.charge.to_string())
        })
    }

    fn accepted(&self, said: &PatchAccepted) -> Found {
        let live = match live(self.state, self.experiment, &said.iteration) {
            Ok(live) => live,
            Err(found) => return Some(found),
        };
        if let Some(found) = taint(self.state, self.experiment, &live) {
            return no("an iteration that is not tainted", found);
        }
        let patch = live.it.candidates.get(&said.patch);
        let Some(patch) = patch.filter(|patch| patch.patch_hash == said.candidate) else {
            let found = format!("{} with hash {}", said.patch, said.candidate);
            return no("a patch of the iteration with its hash", found);
        };
        let Some((decided, sealed)) = live
            .decided
            .and_then(|of| Some((of, of.sealed.as_ref()?)))
            .filter(|(of, _)| of.unsealed.is_some())
        else {
            return no("confirm.unsealed first", "none");
        };
        if let Some(found) = sealed.hypotheses.iter().find_map(|one| {
            let judged = decided.candidate(one.candidate);
            unjudged(judged)
                .map(|gate| format!("{gate} of {} not evaluated", one.candidate.short()))
        }) {
            return no("every gate of every sealed candidate", found);
        }
        self.named(decided, patch, said)
            .or_else(|| self.ranked(&live, decided, said))
    }

    /// The acceptance names its gates and its patch's numbers.
    fn named(&self, decided: &Decisions, patch: &Patch, said: &PatchAccepted) -> Found {
        let judged = decided.candidate(said.candidate);
        let stopped = self
            .stopped_by(judged, &DEV_GATES, GateSplit::Dev)
            .or_else(|| self.stopped_by(judged, &CONFIRM_GATES, GateSplit::Confirm));
        if let Some(found) = stopped {
            return no("a candidate that passed every gate", found);
        }
        let judged = judged?;
        let on = |split, gates: &[GateId]| -> Vec<_> {
            let ids = gates.iter().filter_map(|&gate| judged.said(gate, split));
            ids.map(|said| said.id).collect()
        };
        let mut gates = on(GateSplit::Dev, &DEV_GATES);
        gates.extend(on(GateSplit::Confirm, &CONFIRM_GATES));
        if said.gates != gates {
            let found = format!("{} others", said.gates.len());
            return no("its thirteen gate events, dev then confirm", found);
        }
        if said.kappa.value() != patch.kappa || said.result_hash != patch.result_hash {
            let expected = format!(
                "kappa {} and result_hash {}",
                patch.kappa, patch.result_hash
            );
            let found = format!("kappa {} and result_hash {}", said.kappa, said.result_hash);
            return no(expected, found);
        }
        let improve = judged.risk_improve?;
        (said.risk_improve != improve).then(|| {
            let found = said.risk_improve.to_string();
            (format!("risk_improve {improve}, as p8 has it"), found)
        })
    }

    /// The acceptance is the next in the order among all that passed.
    fn ranked(&self, live: &Live<'_>, decided: &Decisions, said: &PatchAccepted) -> Found {
        let before = decided.accepted.len();
        if before >= ACCEPTED_MAX {
            let found = format!("{before} accepted before");
            return no(format!("at most {ACCEPTED_MAX} accepted patches"), found);
        }
        let order = self.order(live.it, decided);
        let rank = said.rank.value();
        if rank != before as u64 + 1 {
            return no(format!("rank {}", before + 1), rank.to_string());
        }
        match order.get(before) {
            Some(next) if *next == said.candidate => None,
            Some(next) => no(
                format!("{} at rank {rank}", next.short()),
                said.candidate.short().to_string(),
            ),
            None => no("no more patches", "one whose composite did not pass"),
        }
    }

    /// Hashes of the patches to accept, in order.
    fn order(&self, it: &Iteration, decided: &Decisions) -> Vec<Digest> {
        let Some(sealed) = &decided.sealed else {
            return Vec::new();
        };
        let passes = |hash: Digest| {
            let judged = decided.candidate(hash);
            self.stopped_by(judged, &DEV_GATES, GateSplit::Dev)
                .is_none()
                && self
                    .stopped_by(judged, &CONFIRM_GATES, GateSplit::Confirm)
                    .is_none()
        };
        let passed: Vec<Ranked> = it
            .candidates
            .values()
            .filter(|patch| sealed.holds(patch.patch_hash) && passes(patch.patch_hash))
            .filter_map(|patch| {
                let judged = decided.candidate(patch.patch_hash)?;
                Some(Ranked {
                    risk_improve: judged.risk_improve?,
                    kappa: patch.kappa,
                    ks_count: judged.ks_count?,
                    patch: patch.patch_hash,
                })
            })
            .collect();
        let together = |a, b| {
            let hash = composite_of(&[a, b]);
            sealed.holds(hash) && passes(hash)
        };
        let chosen = select(&passed, together);
        chosen.into_iter().map(|at| passed[at].patch).collect()
    }

    /// An iteration ends as its decisions say.
    fn closed(&self, said: &IterationClosed) -> Found {
        use IterationOutcome::{
            Accepted, NoCandidate, NoneAccepted, PausedForLabels, Stopped, Tainted,
        };
        let it = self.state.fold::<Iterations>().by_id.get(&said.iteration)?;
        if said.outcome == Tainted {
            let live = live(self.state, self.experiment, &said.iteration).ok()?;
            return match taint(self.state, self.experiment, &live) {
                Some(_) => None,
                None => no("a tainted iteration", "one that is not"),
            };
        }
        let none = Decisions::default();
        let decided = self.state.fold::<AllDecisions>().of(&said.iteration);
        let decided = decided.unwrap_or(&none);
        let left = match &decided.sealed {
            Some(sealed) => {
                let open = |one: &&SealedHypothesis| {
                    decided.unsealed.is_some()
                        && unjudged(decided.candidate(one.candidate)).is_some()
                };
                sealed.hypotheses.iter().find(open)
            }
            None => None,
        };
        let saved = sequence::saves(self.state, &said.iteration);
        let judged = decided.unsealed.is_some() && (saved || left.is_none());
        let due = self.order(it, decided).len();
        let accepted = decided.accepted.len();
        match said.outcome {
            Stopped
                if decided.unsealed.is_some()
                    && !judged
                    && !block::is_kept_back(self.state, it, self.at) =>
            {
                no("every gate of every sealed candidate", "some missing")
            }
            PausedForLabels if decided.paused.is_none() => {
                no("iteration.paused_for_labels first", "none")
            }
            Accepted if accepted == 0 => no("an accepted patch", "none"),
            Accepted if judged && accepted < due => no(
                format!("{due} accepted patches, which passed every gate"),
                accepted.to_string(),
            ),
            NoneAccepted if accepted > 0 || (judged && due > 0) => no(
                "no patch that passed every gate",
                format!("{}", due.max(accepted)),
            ),
            NoneAccepted if !judged => no("every gate of every sealed candidate", "some missing"),
            NoCandidate if decided.sealed.is_some() => {
                let found = "sealed candidates";
                no("no sealed candidate", found)
            }
            _ => None,
        }
    }
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotChecked => "not_checked",
        Verdict::Pass => "pass",
    }
}

/// The first gate on confirm that was not evaluated.
fn unjudged(judged: Option<&Judged>) -> Option<GateId> {
    let said = |gate: &GateId| {
        judged.is_some_and(|judged| judged.said(*gate, GateSplit::Confirm).is_some())
    };
    CONFIRM_GATES.into_iter().find(|gate| !said(gate))
}
