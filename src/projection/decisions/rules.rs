//! The rule `predicate`: the order of an iteration's steps, and what a gate event may say.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::payload::Role;
use clover_event::payload::card::CardPublished;
use clover_event::payload::diagnosis::IterationPausedForLabels;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::IterationTerms;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::manifest::IterationEnvironment;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateCalibrators;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::scoring::ScoresRecomputed;
use clover_event::payload::slices::SlicesClassified;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Code;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::access::Access;
use crate::decisions::AllDecisions;
use crate::decisions::CONFIRM_CRITERIA;
use crate::decisions::DEV_CRITERIA;
use crate::decisions::Decisions;
use crate::decisions::block;
use crate::decisions::composite_of;
use crate::decisions::dev_calls_made;
use crate::decisions::sequence;
use crate::decisions::thresholds_of;
use crate::iterations::CandidateState;
use crate::iterations::Iteration;
use crate::iterations::Iterations;
use crate::manifests::Manifests;

/// Label of the digest of a classification.
pub const CLASSIFICATION_LABEL: &str = "clover/classification/v1";
/// Label of the digest of an optimizer's projection of a card.
pub const CARD_LABEL: &str = "clover/card/v1";
/// Share from which an iteration may pause.
const PAUSE_SHARE: f64 = 0.30;

/// The rule `predicate`.
#[derive(Clone, Copy, Debug)]
pub struct Predicate;

/// An open iteration with what was decided in it.
pub(crate) struct Live<'a> {
    /// The iteration.
    pub it: &'a Iteration,
    /// Its decisions; `None` before the first.
    pub decided: Option<&'a Decisions>,
}

/// The iteration that an event names, open and of the event's experiment.
pub(crate) fn live<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    id: &IterationId,
) -> Result<Live<'a>, Unmet> {
    let expected = format!("an open iteration of {experiment}");
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(it) = it.filter(|it| it.experiment == *experiment) else {
        let found = format!("{id}, never opened");
        return Err(Unmet { expected, found });
    };
    if let Some((_, seq)) = &it.closed {
        let found = format!("{id}, closed at seq {seq}");
        return Err(Unmet { expected, found });
    }
    let decided = state.fold::<AllDecisions>().of(id);
    Ok(Live { it, decided })
}

impl Live<'_> {
    fn seq(&self, of: impl Fn(&Decisions) -> Option<u64>) -> Option<u64> {
        self.decided.and_then(of)
    }

    /// Where slices were classified.
    fn classified(&self) -> Option<u64> {
        self.seq(|of| Some(of.classified.as_ref()?.1.seq))
    }

    /// The calibrator that was fitted for a candidate, or for the rubric that the iteration starts from.
    fn calibrator(&self, candidate: Option<Digest>) -> Option<Digest> {
        self.decided.and_then(|of| of.calibrator(candidate))
    }

    /// An iteration that was paused takes no further step.
    pub(crate) fn check_going_on(&self, what: &str) -> RuleAnswer {
        if let Some(seq) = self.seq(|of| Some(of.paused.as_ref()?.seq)) {
            return unmet(
                format!("{what} in an iteration that goes on"),
                format!("one paused for labels at seq {seq}: close it"),
            );
        }
        Ok(())
    }

    /// Nothing of the kind comes once confirm was unsealed.
    pub(crate) fn check_sealed(&self, what: &str) -> RuleAnswer {
        let unsealed = self.seq(|of| Some(of.unsealed.as_ref()?.seq));
        if let Some(seq) = unsealed.or(self.it.unsealed_seq) {
            return unmet(
                format!("{what} before confirm was unsealed"),
                format!("unsealed at seq {seq}"),
            );
        }
        Ok(())
    }

    /// A candidate is a patch of the iteration that stands, or a composite of two.
    pub(crate) fn check_candidate(&self, candidate: Digest) -> RuleAnswer {
        ensure!(
            is_candidate(self.it, candidate),
            "a patch that stands, or a composite of two",
            format!("{candidate}, none of them")
        );
        Ok(())
    }

    /// Nothing of the kind comes once candidates were sealed.
    pub(crate) fn check_not_sealed(&self, what: &str) -> RuleAnswer {
        if let Some(seq) = self.seq(|of| Some(of.sealed.as_ref()?.once.seq)) {
            return unmet(
                format!("{what} before sealing"),
                format!("sealed at seq {seq}"),
            );
        }
        Ok(())
    }

    fn check_before_classification(&self) -> RuleAnswer {
        if let Some(seq) = self.classified() {
            return unmet(
                "an audit before slices were classified",
                format!("classified and frozen at seq {seq}"),
            );
        }
        Ok(())
    }

    fn check_after_classification(&self) -> RuleAnswer {
        ensure!(
            self.classified().is_some(),
            "slices.classified first",
            "none"
        );
        Ok(())
    }
}

/// Where a step of an iteration stands: the state before it, and its experiment.
struct StepContext<'a> {
    state: &'a State,
    experiment: &'a ExperimentId,
}

impl StepContext<'_> {
    /// A step of an open iteration that was not paused, and what is asked of it.
    fn check_step(
        &self,
        id: &IterationId,
        what: &str,
        then: impl FnOnce(&Live<'_>) -> RuleAnswer,
    ) -> RuleAnswer {
        let live = live(self.state, self.experiment, id)?;
        live.check_going_on(what)?;
        then(&live)
    }

    /// What is computed on the terms of an iteration is a step of it; on other terms it is none, and is asked nothing here.
    fn check_step_if_in(
        &self,
        terms: &EstimateTerms,
        what: &str,
        then: impl FnOnce(&Live<'_>, &IterationTerms) -> RuleAnswer,
    ) -> RuleAnswer {
        match &terms.iteration {
            Some(of) => self.check_step(&of.iteration, what, |live| then(live, of)),
            None => Ok(()),
        }
    }

    fn check(&self, payload: &Payload) -> RuleAnswer {
        let early = |live: &Live<'_>| live.check_before_classification();
        match payload {
            Payload::CalibratorFitted(said) => {
                self.check_step_if_in(&said.terms, "a calibrator", check_fitted)
            }
            Payload::OuaEstimated(said) => {
                self.check_step_if_in(&said.terms, "an estimate", |live, _| {
                    check_in_force(live, said.calibrator)
                })
            }
            Payload::CoverageChecked(said) => {
                self.check_step_if_in(&said.terms, "a check", |live, _| {
                    check_in_force(live, said.calibrator)
                })
            }
            Payload::ScoresRecomputed(said) => self.check_step(&said.iteration, "scores", |live| {
                check_recomputed(self.state, live, said)
            }),
            Payload::LabelProcessAudited(said) => {
                self.check_step(&said.iteration, "an audit", early)
            }
            Payload::PrenticeChecked(said) => self.check_step(&said.iteration, "a check", early),
            Payload::ResidualsAudited(said) => self.check_step(&said.iteration, "an audit", early),
            Payload::SlicesClassified(said) => {
                self.check_step(&said.iteration, "a classification", |live| {
                    check_classified(live, said)
                })
            }
            Payload::CardPublished(said) => self.check_step(&said.iteration, "a card", |live| {
                live.check_after_classification()?;
                live.check_sealed("a card")?;
                check_carded(live, said)
            }),
            Payload::IterationPausedForLabels(said) => {
                self.check_step(&said.iteration, "a pause", |live| check_paused(live, said))
            }
            Payload::DevObjectiveQueried(said) => {
                self.check_step(&said.iteration, "a dev call", |live| {
                    check_dev_call(self.state, live, said)
                })
            }
            Payload::GateEvaluated(said) => self.check_step(&said.iteration, "a gate", |live| {
                check_criterion(self.state, live, said)
            }),
            // No other kind is a step that this rule knows.
            _ => Ok(()),
        }
    }
}

impl Rule for Predicate {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let place = StepContext { state, experiment };
        breaches.take(RuleName::Predicate, place.check(&event.event.payload));
    }
}

/// One calibrator of the rubric that the iteration starts from, before slices are classified by it; then one of each
/// candidate.
fn check_fitted(live: &Live<'_>, of: &IterationTerms) -> RuleAnswer {
    if let Some(calibrator) = live.calibrator(of.candidate) {
        let found = calibrator.to_string();
        return unmet("one calibrator of each candidate", found);
    }
    let Some(candidate) = of.candidate else {
        let expected = live.it.rubric_hash;
        live.check_before_classification()?;
        ensure!(
            of.rubric_hash == expected,
            format!("rubric_hash {expected}"),
            of.rubric_hash.to_string()
        );
        return Ok(());
    };
    live.calibrator(None)
        .required("the calibrator of the rubric in force first")?;
    live.check_after_classification()?;
    live.check_sealed("a calibrator")?;
    live.check_candidate(candidate)
}

/// Scores under a candidate, once, before a calibrator is fitted on them, of every row that was read.
fn check_recomputed(state: &State, live: &Live<'_>, said: &ScoresRecomputed) -> RuleAnswer {
    let known = live.decided.and_then(|of| {
        let key = said.candidate.to_hex();
        of.recomputed.get(&key).copied()
    });
    if let Some(seq) = known {
        let expected = "scores under a candidate once";
        return unmet(expected, format!("recorded at seq {seq}"));
    }
    if let Some(calibrator) = live.calibrator(Some(said.candidate)) {
        let expected = "scores before the calibrator that is fitted on them";
        return unmet(expected, calibrator.to_string());
    }
    let all = said.recomputed.value() + said.rescored.value();
    // A judge that is asked anew is asked about rows of confirm once candidates are sealed.
    let is_anew = said.judge.is_some() && state.asks(Question::RescoredAnew);
    ensure!(
        is_anew || all >= said.inputs.rows.value(),
        format!("a score of each of {} rows at least", said.inputs.rows),
        all.to_string()
    );
    live.check_after_classification()?;
    live.check_sealed("scores")?;
    live.check_candidate(said.candidate)
}

/// What is said of the calibrator in force is said of the one that was fitted, before slices are classified by it.
fn check_in_force(live: &Live<'_>, calibrator: Digest) -> RuleAnswer {
    let known = live.calibrator(None);
    if known != Some(calibrator) {
        let word = known.map_or("the rubric in force, fitted first".to_owned(), |of| {
            of.to_string()
        });
        return unmet(format!("the calibrator of {word}"), calibrator.to_string());
    }
    live.check_before_classification()
}

/// A gate names the calibrators that were fitted for it, and none where one of the two was not fitted: a candidate whose
/// rows cannot be scored has none.
fn check_compares(live: &Live<'_>, said: &GateEvaluated) -> RuleAnswer {
    let fitted = (live.calibrator(None), live.calibrator(Some(said.candidate)));
    let expected = match fitted {
        (Some(baseline), Some(candidate)) => Some(GateCalibrators {
            baseline,
            candidate,
        }),
        (None, _) | (_, None) => None,
    };
    let word = |of: Option<GateCalibrators>| match of {
        Some(of) => format!("{} and {}", of.baseline, of.candidate),
        None => "none".to_owned(),
    };
    ensure!(
        said.calibrators == expected,
        format!("calibrators {}, as fitted", word(expected)),
        word(said.calibrators)
    );
    Ok(())
}

fn check_classified(live: &Live<'_>, said: &SlicesClassified) -> RuleAnswer {
    let audited = live.seq(|of| Some(of.audited.as_ref()?.seq));
    audited.required("residuals.audited first")?;
    let hash = canon::digest(CLASSIFICATION_LABEL, &said.slices);
    ensure!(
        said.classification_hash == hash,
        format!("classification_hash {hash}"),
        said.classification_hash.to_string()
    );
    live.check_before_classification()
}

/// A card is named by its digest, and says what it was computed on: the iteration, its rubric, its calibrator.
fn check_carded(live: &Live<'_>, said: &CardPublished) -> RuleAnswer {
    let same = |what: &str, expected: String, found: String| {
        ensure!(expected == found, format!("{what} {expected}"), found);
        Ok(())
    };
    let digest = canon::digest(CARD_LABEL, &said.card).to_string();
    same("public_digest", digest, said.public_digest.to_string())?;
    let Some(basis) = &said.card.basis else {
        // Programs that said no basis named no build either.
        if let Some(build) = &said.build {
            return unmet("a card with its basis", build.as_str());
        }
        return Ok(());
    };
    said.build
        .as_ref()
        .required("the build of a card with a basis")?;
    let (expected, found) = (&said.iteration, &basis.iteration);
    same("a card of", expected.to_string(), found.to_string())?;
    let (expected, found) = (live.it.rubric_hash, basis.rubric_hash);
    same("rubric_hash", expected.to_string(), found.to_string())?;
    let has_fit = live.calibrator(None);
    // Numbers of an iteration without a fit on record are given by hand, and those of a card too.
    let expected = has_fit.unwrap_or(basis.calibrator).to_string();
    let found = basis.calibrator.to_string();
    same("the calibrator fitted first,", expected, found)
}

fn check_paused(live: &Live<'_>, said: &IterationPausedForLabels) -> RuleAnswer {
    let is_small = said.share.value() < PAUSE_SHARE;
    ensure!(
        !is_small,
        format!("a share of at least {PAUSE_SHARE}"),
        said.share.to_string()
    );
    live.check_after_classification()?;
    live.check_not_sealed("a pause")
}

/// The dev objective answers an optimizer, before anything is sealed, as often as registered.
fn check_dev_call(state: &State, live: &Live<'_>, said: &DevObjectiveQueried) -> RuleAnswer {
    live.check_after_classification()?;
    live.check_sealed("a dev call")?;
    live.check_not_sealed("a dev call")?;
    let key = state.keyring.keys.get(&said.requester);
    let asks = key.is_some_and(|key| key.end.is_none() && key.roles.contains(Role::Optimizer));
    ensure!(
        asks,
        "a requester with a live key in role optimizer",
        said.requester.to_string()
    );
    let answers = said.answers.iter().map(|of| of.gate);
    ensure!(
        answers.eq(DEV_CRITERIA),
        "answers of p0 to p7 in order",
        "others"
    );
    let design = plan_of(state, live.it).and_then(|plan| plan.design.as_ref());
    let most = design
        .required("a manifest that says how often dev is called")?
        .dev_calls_max
        .value();
    let made = dev_calls_made(state, &said.iteration);
    ensure!(
        made < most,
        format!("at most {most} dev calls, as registered"),
        format!("{made} made before")
    );
    Ok(())
}

/// What the manifest of an iteration says of iterations.
pub(crate) fn plan_of<'a>(state: &'a State, it: &Iteration) -> Option<&'a IterationPlan> {
    let (_, record) = state.fold::<Manifests>().of_digest(it.digest)?;
    record.version(it.digest)?.manifest.iteration.as_ref()
}

/// What taints an iteration: a patch from unpublished inputs, or a read that an optimizer may not have.
pub(super) fn taint(state: &State, experiment: &ExperimentId, live: &Live<'_>) -> Option<String> {
    let own = live.decided.and_then(|of| of.tainted.as_ref());
    own.map(super::TaintedPatch::line).or_else(|| {
        let taint = state.fold::<Access>().taints.get(experiment)?;
        (taint.role == Role::Optimizer).then(|| taint.line(experiment))
    })
}

/// A gate stands on the frozen classification, the registered numbers and a candidate of the iteration, once confirm
/// was unsealed if it is about confirm, and before that if not.
fn check_criterion(state: &State, live: &Live<'_>, said: &GateEvaluated) -> RuleAnswer {
    ensure!(
        said.evidence.gate() == said.gate,
        format!("evidence of gate {}", said.gate),
        format!("of {}", said.evidence.gate())
    );
    let gates: &[_] = match said.split {
        CriterionSplit::Confirm => &CONFIRM_CRITERIA,
        CriterionSplit::Dev => &DEV_CRITERIA,
    };
    if !gates.contains(&said.gate) {
        let words: Vec<&str> = gates.iter().map(|gate| gate.as_str()).collect();
        let expected = format!("one of {} on {}", words.join(" "), said.split.as_str());
        return unmet(expected, said.gate.as_str());
    }
    let classified = live.decided.and_then(|of| of.classified.as_ref());
    let (hash, _) = classified.required("slices.classified first")?;
    ensure!(
        said.classification_hash == *hash,
        format!("the frozen classification {hash}"),
        said.classification_hash.to_string()
    );
    ensure!(
        said.params_hash == live.it.params_hash,
        format!("params_hash {}, as opened", live.it.params_hash),
        said.params_hash.to_string()
    );
    check_registered(state, live, said)?;
    check_compares(live, said)?;
    match said.split {
        CriterionSplit::Dev => {
            live.check_sealed("a gate on dev")?;
            live.check_candidate(said.candidate)
        }
        CriterionSplit::Confirm => check_criterion_on_confirm(state, live, said),
    }
}

/// A gate on confirm is one of a sealed candidate, on every label of the unsealed block.
fn check_criterion_on_confirm(state: &State, live: &Live<'_>, said: &GateEvaluated) -> RuleAnswer {
    live.seq(|of| Some(of.unsealed.as_ref()?.seq))
        .required("confirm.unsealed before a gate on confirm")?;
    let sealed = live.decided.and_then(|of| of.sealed.as_ref());
    ensure!(
        sealed.is_some_and(|sealed| sealed.holds(said.candidate)),
        "a sealed candidate",
        format!("{}, not among them", said.candidate)
    );
    sequence::check_criterion(state, said)?;
    block::check_whole(state, live.it)
}

/// The thresholds are those of the manifest.
fn check_registered(state: &State, live: &Live<'_>, said: &GateEvaluated) -> RuleAnswer {
    let plan =
        plan_of(state, live.it).required("a manifest with the parameters of its iteration")?;
    ensure!(
        said.thresholds == thresholds_of(plan),
        "the registered thresholds",
        Code::UnregisteredRule.of("others")
    );
    if !state.asks(Question::ClaimedEnvironments) {
        return Ok(());
    }
    match (&said.evidence, &plan.design) {
        (Evidence::P6(found), Some(design)) => check_environments(design, found),
        _ => Ok(()),
    }
}

/// Transport is about what the plan claims: every environment that it requires, or none where it says so.
fn check_environments(design: &IterationDesign, found: &EnvironmentTests) -> RuleAnswer {
    let claims_none = design.claims_no_environment();
    ensure!(
        (found.none_claimed == Some(true)) == claims_none,
        format!("none_claimed as the plan says, {claims_none}"),
        (!claims_none).to_string()
    );
    let is_tested = |of: &&IterationEnvironment| {
        let mut tested = found.environments.iter();
        tested.any(|one| {
            one.required && (&one.environment, &one.family) == (&of.environment, &of.family)
        })
    };
    let mut required = design.environments.iter().filter(|of| of.required);
    if let Some(of) = required.find(|of| !is_tested(of)) {
        let expected = format!(
            "the required environment {} of {}",
            of.environment, of.family
        );
        return unmet(expected, "none");
    }
    Ok(())
}

/// Hashes of patches that stand, with their families.
pub(super) fn standing(it: &Iteration) -> Vec<Digest> {
    let stands =
        |candidate: &&crate::iterations::PatchRecord| candidate.state == CandidateState::Proposed;
    let all = it.candidates.values().filter(stands);
    all.map(|candidate| candidate.patch_hash).collect()
}

pub(crate) fn is_candidate(it: &Iteration, hash: Digest) -> bool {
    let standing = standing(it);
    let of_two = |a: &Digest| standing.iter().any(|b| composite_of(&[*a, *b]) == hash);
    standing.contains(&hash) || standing.iter().any(of_two)
}
