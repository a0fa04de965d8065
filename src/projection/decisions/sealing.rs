//! The rules `sealing` and `acceptance`: what goes to confirm, one charged look at it, and who may be accepted.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::ConfirmUnsealed;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::predicate::SealedHypothesis;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::budgets::Budgets;
use crate::decisions::ACCEPTED_MAX;
use crate::decisions::AllDecisions;
use crate::decisions::CONFIRM_CRITERIA;
use crate::decisions::CandidateDecision;
use crate::decisions::DEV_CRITERIA;
use crate::decisions::Decisions;
use crate::decisions::RankedCandidate;
use crate::decisions::block;
use crate::decisions::hypotheses;
use crate::decisions::paid;
use crate::decisions::reviews;
use crate::decisions::rules::Live;
use crate::decisions::rules::live;
use crate::decisions::rules::plan_of;
use crate::decisions::rules::taint;
use crate::decisions::select;
use crate::decisions::sequence;
use crate::decisions::thresholds_of;
use crate::iterations::Iteration;
use crate::iterations::Iterations;
use crate::iterations::PatchRecord;
use crate::seals;
use crate::splits;
use crate::synths::Synths;

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
pub struct SealingRules;

impl Rule for SealingRules {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let now = Now {
            state,
            experiment,
            at: event.recorded_at,
        };
        let (rule, checked) = match &event.event.payload {
            Payload::CandidatesSealed(said) => (RuleName::Sealing, now.check_sealed(said)),
            Payload::ConfirmUnsealed(said) => (RuleName::Sealing, now.check_unsealed(said)),
            Payload::LabelSealed(said) => (
                RuleName::Sealing,
                block::check_early(state, experiment, said),
            ),
            Payload::LabelRevealed(said) => {
                breaches.take(RuleName::Charge, block::check_paid(state, experiment, said));
                let header = &event.event.header;
                let checked = now
                    .check_revealed(said)
                    .and_then(|()| sequence::check_shown(state, experiment, header, said));
                (RuleName::Sealing, checked)
            }
            Payload::ConfirmLooked(said) => {
                let checked = live(state, experiment, &said.iteration).and_then(|live| {
                    sequence::check_looked(state, &live, &event.event.header, said)
                });
                (RuleName::Sealing, checked)
            }
            Payload::IterationClosed(said) => (RuleName::Acceptance, now.check_closed(said)),
            Payload::PatchAccepted(said) => (RuleName::Acceptance, now.check_accepted(said)),
            _ => return,
        };
        breaches.take(rule, checked);
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        match &event.event.payload {
            Payload::LabelRevealed(said) => {
                facts.extend(block::of_older_block(state, experiment, said));
                facts.extend(block::score_of_row(state, experiment, said));
            }
            Payload::ScoreRecorded(said) => {
                facts.extend(block::scored_late(state, experiment, said));
            }
            _ => {}
        }
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
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
fn gates_of(split: CriterionSplit) -> &'static [Criterion] {
    match split {
        CriterionSplit::Confirm => &CONFIRM_CRITERIA,
        CriterionSplit::Dev => &DEV_CRITERIA,
    }
}

/// The first gate that stops a candidate on a split by `at`, and in words why; `None` if each lets it pass.
pub fn stopped(
    state: &State,
    experiment: &ExperimentId,
    at: Timestamp,
    (iteration, candidate): (&IterationId, Digest),
    split: CriterionSplit,
) -> Option<(Criterion, String)> {
    let now = Now {
        state,
        experiment,
        at,
    };
    let it = state.fold::<Iterations>().by_id.get(iteration)?;
    let decided = state.fold::<AllDecisions>().of(iteration);
    let judged = decided.and_then(|of| of.candidate(candidate));
    let gates = gates_of(split);
    gates.iter().find_map(|gate| {
        let words = now.stopped_by(it, judged, std::slice::from_ref(gate), split)?;
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
pub(super) struct Now<'a> {
    pub(super) state: &'a State,
    pub(super) experiment: &'a ExperimentId,
    pub(super) at: Timestamp,
}

impl Now<'_> {
    fn check_sealed(&self, said: &CandidatesSealed) -> RuleAnswer {
        let live = live(self.state, self.experiment, &said.iteration)?;
        live.check_going_on("a sealing")?;
        live.check_sealed("a sealing")?;
        if let Some(found) = taint(self.state, self.experiment, &live) {
            return unmet(
                "an iteration that is not tainted; close it as tainted",
                found,
            );
        }
        if let Some(sealed) = live.decided.and_then(|of| of.sealed.as_ref()) {
            return unmet("one sealing", format!("sealed at seq {}", sealed.once.seq));
        }
        let synths = self.state.fold::<Synths>();
        if let Some(run) = synths
            .open_in(&said.iteration)
            .filter(|_| self.state.asks(Question::RunEndsFirst))
        {
            let expected = format!("synth.stopped of {} before a sealing", run.said.run);
            return unmet(expected, "an open run");
        }
        self.check_divisor(&live, said)?;
        hypotheses::check(live.it, &said.hypotheses)?;
        let all = said.hypotheses.iter().flat_map(|one| &one.patches);
        reviews::check(self.state, live.it, &all.copied().collect::<Vec<_>>())?;
        for one in &said.hypotheses {
            let judged = live.decided.and_then(|of| of.candidate(one.candidate));
            if let Some(found) =
                self.stopped_by(live.it, judged, &DEV_CRITERIA, CriterionSplit::Dev)
            {
                return unmet(
                    format!("p0 to p7 passed on dev by {}", one.candidate.short()),
                    found,
                );
            }
        }
        Ok(())
    }

    /// As many hypotheses as alpha is divided by, at most.
    fn check_divisor(&self, live: &Live<'_>, said: &CandidatesSealed) -> RuleAnswer {
        let plan = plan_of(self.state, live.it)
            .required("a manifest with the parameters of its iteration")?;
        let most = thresholds_of(plan).hypotheses;
        ensure!(
            said.divisor == most,
            format!("divisor {most}"),
            said.divisor.to_string()
        );
        let found = said.hypotheses.len() as u64;
        ensure!(
            (1..=most.value()).contains(&found),
            format!("1 to {most} hypotheses"),
            found.to_string()
        );
        Ok(())
    }

    fn check_unsealed(&self, said: &ConfirmUnsealed) -> RuleAnswer {
        let live = live(self.state, self.experiment, &said.iteration)?;
        let sealed = live.decided.and_then(|of| of.sealed.as_ref());
        let sealed = sealed.required("candidates.sealed first")?;
        ensure!(
            sealed.once.id == said.sealed,
            format!("the sealing at seq {}", sealed.once.seq),
            said.sealed.to_string()
        );
        live.check_sealed("an unsealing")?;
        let Some(charge) = self.state.fold::<Budgets>().peeks.get(&said.charge) else {
            let expected = "a charge to an account whose unit is peek";
            return unmet(expected, said.charge.to_string());
        };
        if self.state.asks(Question::PeekAccount) {
            block::check_account(self.state, live.it, &charge.account)?;
        }
        let all = self.state.fold::<AllDecisions>();
        if let Some(seq) = all.charges.get(&said.charge.0.to_hex()) {
            let found = format!("one spent at seq {seq}");
            return unmet("a charge that paid for no other unsealing", found);
        }
        block::check_unsealing(self.state, self.experiment, said.confirm_root, self.at)
    }

    /// Confirm labels are shown for the peek of an iteration's unsealing, and while it is open. Rulebooks before 18 asked
    /// that of an open iteration alone, whatever paid.
    fn check_revealed(&self, said: &LabelRevealed) -> RuleAnswer {
        if !block::is_confirm(self.state, self.experiment, &said.design) {
            return Ok(());
        }
        let asks = self.state.asks(Question::ConfirmRows);
        let iterations = self.state.fold::<Iterations>();
        let Some((id, it)) = iterations.open_in(self.experiment) else {
            ensure!(
                !asks,
                "an open iteration whose confirm.unsealed pays for the reveal",
                "no open iteration"
            );
            return Ok(());
        };
        let all = self.state.fold::<AllDecisions>();
        let unsealed = all.of(id).and_then(|of| of.unsealed);
        let expected = format!("confirm.unsealed of {id}, which is open, before a reveal");
        let unsealed = unsealed.required(&expected)?;
        let paid = all.charges.get(&said.charge.0.to_hex());
        ensure!(
            !asks || paid == Some(&unsealed.seq),
            format!("the charge of the confirm.unsealed at seq {}", unsealed.seq),
            said.charge.to_string()
        );
        block::check_judge(self.state, it)
    }

    fn check_accepted(&self, said: &PatchAccepted) -> RuleAnswer {
        let live = live(self.state, self.experiment, &said.iteration)?;
        if let Some(found) = taint(self.state, self.experiment, &live) {
            return unmet("an iteration that is not tainted", found);
        }
        let patch = live.it.candidates.get(&said.patch);
        let Some(patch) = patch.filter(|patch| patch.patch_hash == said.candidate) else {
            let found = format!("{} with hash {}", said.patch, said.candidate);
            return unmet("a patch of the iteration with its hash", found);
        };
        let (decided, sealed) = live
            .decided
            .and_then(|of| Some((of, of.sealed.as_ref()?)))
            .filter(|(of, _)| of.unsealed.is_some())
            .required("confirm.unsealed first")?;
        for one in &sealed.hypotheses {
            if let Some(gate) = unjudged(decided.candidate(one.candidate)) {
                let found = format!("{gate} of {} not evaluated", one.candidate.short());
                return unmet("every gate of every sealed candidate", found);
            }
        }
        self.check_named((live.it, decided), patch, said)?;
        self.check_rank(&live, decided, said)?;
        paid::check(self.state, live.it, self.at, said)
    }

    /// The acceptance names its gates and its patch's numbers.
    fn check_named(
        &self,
        (it, decided): (&Iteration, &Decisions),
        patch: &PatchRecord,
        said: &PatchAccepted,
    ) -> RuleAnswer {
        let judged = decided.candidate(said.candidate);
        let stopped = self
            .stopped_by(it, judged, &DEV_CRITERIA, CriterionSplit::Dev)
            .or_else(|| self.stopped_by(it, judged, &CONFIRM_CRITERIA, CriterionSplit::Confirm));
        if let Some(found) = stopped {
            return unmet("a candidate that passed every gate", found);
        }
        let judged = judged.required("gates of the candidate")?;
        let on = |split, gates: &[Criterion]| -> Vec<_> {
            let ids = gates.iter().filter_map(|&gate| judged.said(gate, split));
            ids.map(|said| said.id).collect()
        };
        let mut gates = on(CriterionSplit::Dev, &DEV_CRITERIA);
        gates.extend(on(CriterionSplit::Confirm, &CONFIRM_CRITERIA));
        ensure!(
            said.gates == gates,
            "its thirteen gate events, dev then confirm",
            format!("{} others", said.gates.len())
        );
        ensure!(
            said.kappa.value() == patch.kappa && said.result_hash == patch.result_hash,
            format!(
                "kappa {} and result_hash {}",
                patch.kappa, patch.result_hash
            ),
            format!("kappa {} and result_hash {}", said.kappa, said.result_hash)
        );
        let improve = judged
            .risk_improve
            .required("a risk_improve that p8 says")?;
        ensure!(
            said.risk_improve == improve,
            format!("risk_improve {improve}, as p8 has it"),
            said.risk_improve.to_string()
        );
        Ok(())
    }

    /// The acceptance is the next in the order among all that passed.
    fn check_rank(&self, live: &Live<'_>, decided: &Decisions, said: &PatchAccepted) -> RuleAnswer {
        let before = decided.accepted.len();
        ensure!(
            before < ACCEPTED_MAX,
            format!("at most {ACCEPTED_MAX} accepted patches"),
            format!("{before} accepted before")
        );
        let order = self.order(live.it, decided);
        let rank = said.rank.value();
        ensure!(
            rank == before as u64 + 1,
            format!("rank {}", before + 1),
            rank.to_string()
        );
        let Some(next) = order.get(before) else {
            return unmet("no more patches", "one whose composite did not pass");
        };
        ensure!(
            *next == said.candidate,
            format!("{} at rank {rank}", next.short()),
            said.candidate.short().to_string()
        );
        Ok(())
    }

    /// Hashes of the patches to accept, in order.
    fn order(&self, it: &Iteration, decided: &Decisions) -> Vec<Digest> {
        let Some(sealed) = &decided.sealed else {
            return Vec::new();
        };
        let passes = |hash: Digest| {
            let judged = decided.candidate(hash);
            self.stopped_by(it, judged, &DEV_CRITERIA, CriterionSplit::Dev)
                .is_none()
                && self
                    .stopped_by(it, judged, &CONFIRM_CRITERIA, CriterionSplit::Confirm)
                    .is_none()
        };
        let passed: Vec<RankedCandidate> = it
            .candidates
            .values()
            .filter(|patch| sealed.holds(patch.patch_hash) && passes(patch.patch_hash))
            .filter_map(|patch| {
                let judged = decided.candidate(patch.patch_hash)?;
                Some(RankedCandidate {
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
    fn check_closed(&self, said: &IterationClosed) -> RuleAnswer {
        use IterationOutcome::{
            Accepted, NoCandidate, NoneAccepted, PausedForLabels, SdpChanged, Stopped, Tainted,
            TransportFailed,
        };
        // An end of an iteration that was never opened is refused by the rule `iteration`.
        let Some(it) = self.state.fold::<Iterations>().by_id.get(&said.iteration) else {
            return Ok(());
        };
        let none = Decisions::default();
        let decided = self.state.fold::<AllDecisions>().of(&said.iteration);
        let decided = decided.unwrap_or(&none);
        let accepted = decided.accepted.len();
        let is_judged = self.is_judged(&said.iteration, decided);
        let due = self.order(it, decided).len();
        let missing = "every gate of every sealed candidate";
        let kept_back = || block::is_kept_back(self.state, it, self.at);
        let may_stop = || decided.unsealed.is_none() || is_judged || kept_back();
        match said.outcome {
            Tainted => {
                self.check_tainted(&said.iteration)?;
                let is_free = may_stop() || !self.state.asks(Question::TaintedPeek);
                ensure!(is_free, missing, "some missing");
            }
            Stopped => ensure!(may_stop(), missing, "some missing"),
            TransportFailed => ensure!(
                may_stop() || !self.state.asks(Question::EndAfterPeek),
                missing,
                "some missing"
            ),
            PausedForLabels => {
                decided
                    .paused
                    .required("iteration.paused_for_labels first")?;
            }
            Accepted => {
                ensure!(accepted > 0, "an accepted patch", "none");
                ensure!(
                    !is_judged || accepted >= due,
                    format!("{due} accepted patches, which passed every gate"),
                    accepted.to_string()
                );
            }
            NoneAccepted => {
                ensure!(
                    accepted == 0 && !(is_judged && due > 0),
                    "no patch that passed every gate",
                    due.max(accepted).to_string()
                );
                ensure!(is_judged, missing, "some missing");
            }
            NoCandidate => ensure!(
                decided.sealed.is_none(),
                "no sealed candidate",
                "sealed candidates"
            ),
            // Whether the protocol was replaced is asked by the rule `sdp`.
            SdpChanged => {
                let is_free = may_stop() || !self.state.asks(Question::JudgedPeek);
                ensure!(is_free, missing, "some missing");
            }
        }
        Ok(())
    }

    /// An end as tainted is one of an iteration that is.
    fn check_tainted(&self, iteration: &IterationId) -> RuleAnswer {
        // An end of an iteration that is not open here is refused by the rule `iteration`.
        let Ok(live) = live(self.state, self.experiment, iteration) else {
            return Ok(());
        };
        ensure!(
            taint(self.state, self.experiment, &live).is_some(),
            "a tainted iteration",
            "one that is not"
        );
        Ok(())
    }

    /// Whether confirm was unsealed, and every gate on it was evaluated that is due.
    fn is_judged(&self, iteration: &IterationId, decided: &Decisions) -> bool {
        let mut sealed = decided.sealed.iter().flat_map(|of| &of.hypotheses);
        let whole = |one: &SealedHypothesis| unjudged(decided.candidate(one.candidate)).is_none();
        decided.unsealed.is_some() && (sequence::saves(self.state, iteration) || sealed.all(whole))
    }
}

/// The first gate on confirm that was not evaluated.
fn unjudged(judged: Option<&CandidateDecision>) -> Option<Criterion> {
    let said = |gate: &Criterion| {
        judged.is_some_and(|judged| judged.said(*gate, CriterionSplit::Confirm).is_some())
    };
    CONFIRM_CRITERIA.into_iter().find(|gate| !said(gate))
}
