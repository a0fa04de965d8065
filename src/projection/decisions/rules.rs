//! The rule `predicate`: the order of an iteration's steps, and what a gate event may say.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::Role;
use crate::event::payload::card::CardPublished;
use crate::event::payload::diagnosis::IterationPausedForLabels;
use crate::event::payload::estimate::IterationTerms;
use crate::event::payload::manifest::IterationPlan;
use crate::event::payload::predicate::GateCalibrators;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::scoring::ScoresRecomputed;
use crate::event::payload::slices::SlicesClassified;
use crate::event::payload::synthesis::DevObjectiveQueried;
use crate::ground::canon;
use crate::ground::digest::Digest;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::access::Access;
use crate::projection::decisions::AllDecisions;
use crate::projection::decisions::CONFIRM_GATES;
use crate::projection::decisions::DEV_GATES;
use crate::projection::decisions::Decisions;
use crate::projection::decisions::block;
use crate::projection::decisions::composite_of;
use crate::projection::decisions::sequence;
use crate::projection::decisions::thresholds_of;
use crate::projection::iterations::CandidateState;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::manifests::Manifests;

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
pub(in crate::projection) struct Live<'a> {
    /// The iteration.
    pub it: &'a Iteration,
    /// Its decisions; `None` before the first.
    pub decided: Option<&'a Decisions>,
}

/// The iteration that an event names, open and of the event's experiment.
pub(in crate::projection) fn live<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    id: &IterationId,
) -> Result<Live<'a>, (String, String)> {
    let expected = || format!("an open iteration of {experiment}");
    let it = state.fold::<Iterations>().by_id.get(id);
    let Some(it) = it.filter(|it| it.experiment == *experiment) else {
        return Err((expected(), format!("{id}, never opened")));
    };
    if let Some((_, seq)) = &it.closed {
        return Err((expected(), format!("{id}, closed at seq {seq}")));
    }
    let decided = state.fold::<AllDecisions>().of(id);
    Ok(Live { it, decided })
}

impl Live<'_> {
    fn seq(&self, of: impl Fn(&Decisions) -> Option<u64>) -> Option<u64> {
        self.decided.and_then(of)
    }

    /// `Err` once the iteration was paused.
    pub(in crate::projection) fn is_going_on(&self, what: &str) -> Judged {
        let seq = self.seq(|of| Some(of.paused.as_ref()?.seq))?;
        no(
            format!("{what} in an iteration that goes on"),
            format!("one paused for labels at seq {seq}: close it"),
        )
    }

    /// `Err` once confirm was unsealed.
    pub(in crate::projection) fn is_sealed_yet(&self, what: &str) -> Judged {
        let unsealed = self.seq(|of| Some(of.unsealed.as_ref()?.seq));
        let seq = unsealed.or(self.it.unsealed_seq)?;
        no(
            format!("{what} before confirm was unsealed"),
            format!("unsealed at seq {seq}"),
        )
    }
}

impl Rule for Predicate {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let step = |id: &IterationId, what: &str, then: &dyn Fn(&Live<'_>) -> Judged| match live(
            state, experiment, id,
        ) {
            Err(found) => Some(found),
            Ok(live) => live.is_going_on(what).or_else(|| then(&live)),
        };
        let early = |live: &Live<'_>| before_classification(live);
        let found = match &event.event.payload {
            Payload::CalibratorFitted(said) => said
                .terms
                .iteration
                .as_ref()
                .and_then(|of| step(&of.iteration, "a calibrator", &|live| fitted(live, of))),
            Payload::OuaEstimated(said) => said.terms.iteration.as_ref().and_then(|of| {
                step(&of.iteration, "an estimate", &|live| {
                    in_force(live, said.calibrator)
                })
            }),
            Payload::CoverageChecked(said) => said.terms.iteration.as_ref().and_then(|of| {
                step(&of.iteration, "a check", &|live| {
                    in_force(live, said.calibrator)
                })
            }),
            Payload::ScoresRecomputed(said) => {
                step(&said.iteration, "scores", &|live| recomputed(live, said))
            }
            Payload::LabelProcessAudited(said) => step(&said.iteration, "an audit", &early),
            Payload::PrenticeChecked(said) => step(&said.iteration, "a check", &early),
            Payload::ResidualsAudited(said) => step(&said.iteration, "an audit", &early),
            Payload::SlicesClassified(said) => step(&said.iteration, "a classification", &|live| {
                classified(live, said)
            }),
            Payload::CardPublished(said) => step(&said.iteration, "a card", &|live| {
                after_classification(live)
                    .or_else(|| live.is_sealed_yet("a card"))
                    .or_else(|| carded(live, said))
            }),
            Payload::IterationPausedForLabels(said) => {
                step(&said.iteration, "a pause", &|live| paused(live, said))
            }
            Payload::DevObjectiveQueried(said) => step(&said.iteration, "a dev call", &|live| {
                dev_call(state, live, said)
            }),
            Payload::GateEvaluated(said) => {
                step(&said.iteration, "a gate", &|live| gate(state, live, said))
            }
            _ => None,
        };
        breaches.extend(
            found.map(|(expected, found)| Breach::new(RuleName::Predicate, expected, found)),
        );
    }
}

/// One calibrator of the rubric that the iteration starts from, before slices are classified by it; then one of each
/// candidate.
fn fitted(live: &Live<'_>, of: &IterationTerms) -> Judged {
    let known = |candidate| live.decided.and_then(|of| of.calibrator(candidate));
    if let Some(calibrator) = known(of.candidate) {
        let found = calibrator.to_string();
        return no("one calibrator of each candidate", found);
    }
    let Some(candidate) = of.candidate else {
        let expected = live.it.rubric_hash;
        return before_classification(live).or_else(|| {
            let found = of.rubric_hash.to_string();
            (of.rubric_hash != expected).then(|| (format!("rubric_hash {expected}"), found))
        });
    };
    if known(None).is_none() {
        return no("the calibrator of the rubric in force first", "none");
    }
    let is = is_candidate(live.it, candidate);
    after_classification(live)
        .or_else(|| live.is_sealed_yet("a calibrator"))
        .or_else(|| {
            let found = format!("{candidate}, none of them");
            let expected = "a patch that stands, or a composite of two";
            (!is).then(|| (expected.to_owned(), found))
        })
}

/// Scores under a candidate, once, before a calibrator is fitted on them, of every row that was read.
fn recomputed(live: &Live<'_>, said: &ScoresRecomputed) -> Judged {
    let known = live.decided.and_then(|of| {
        let key = said.candidate.to_hex();
        of.recomputed.get(&key).copied()
    });
    if let Some(seq) = known {
        let expected = "scores under a candidate once";
        return no(expected, format!("recorded at seq {seq}"));
    }
    let fitted = live
        .decided
        .and_then(|of| of.calibrator(Some(said.candidate)));
    if let Some(calibrator) = fitted {
        let expected = "scores before the calibrator that is fitted on them";
        return no(expected, calibrator.to_string());
    }
    let all = said.recomputed.value() + said.rescored.value();
    if all < said.inputs.rows.value() {
        let expected = format!("a score of each of {} rows at least", said.inputs.rows);
        return no(expected, all.to_string());
    }
    let is = is_candidate(live.it, said.candidate);
    after_classification(live)
        .or_else(|| live.is_sealed_yet("scores"))
        .or_else(|| {
            let found = format!("{}, none of them", said.candidate);
            let expected = "a patch that stands, or a composite of two";
            (!is).then(|| (expected.to_owned(), found))
        })
}

/// What is said of the calibrator in force is said of the one that was fitted, before slices are classified by it.
fn in_force(live: &Live<'_>, calibrator: Digest) -> Judged {
    let known = live.decided.and_then(|of| of.calibrator(None));
    if known == Some(calibrator) {
        return before_classification(live);
    }
    let word = known.map_or("the rubric in force, fitted first".to_owned(), |of| {
        of.to_string()
    });
    no(format!("the calibrator of {word}"), calibrator.to_string())
}

/// A gate names the calibrators that were fitted for it, and none where there are none.
fn compares(live: &Live<'_>, said: &GateEvaluated) -> Judged {
    let known = |candidate| live.decided.and_then(|of| of.calibrator(candidate));
    let both = known(None).zip(known(Some(said.candidate)));
    let expected = both.map(|(baseline, candidate)| GateCalibrators {
        baseline,
        candidate,
    });
    let word = |of: Option<GateCalibrators>| match of {
        Some(of) => format!("{} and {}", of.baseline, of.candidate),
        None => "none".to_owned(),
    };
    (said.calibrators != expected).then(|| {
        let wanted = format!("calibrators {}, as fitted", word(expected));
        (wanted, word(said.calibrators))
    })
}

fn before_classification(live: &Live<'_>) -> Judged {
    let seq = live.seq(|of| Some(of.classified.as_ref()?.1.seq))?;
    no(
        "an audit before slices were classified",
        format!("classified and frozen at seq {seq}"),
    )
}

fn after_classification(live: &Live<'_>) -> Judged {
    match live.seq(|of| Some(of.classified.as_ref()?.1.seq)) {
        Some(_) => None,
        None => no("slices.classified first", "none"),
    }
}

fn classified(live: &Live<'_>, said: &SlicesClassified) -> Judged {
    if live.seq(|of| Some(of.audited.as_ref()?.seq)).is_none() {
        return no("residuals.audited first", "none");
    }
    let hash = canon::digest(CLASSIFICATION_LABEL, &said.slices);
    if said.classification_hash != hash {
        let expected = format!("classification_hash {hash}");
        return no(expected, said.classification_hash.to_string());
    }
    before_classification(live)
}

/// A card is named by its digest, and says what it was computed on: the iteration, its rubric, its calibrator.
fn carded(live: &Live<'_>, said: &CardPublished) -> Judged {
    let differs = |what: &str, expected: String, found: String| {
        (expected != found).then(|| (format!("{what} {expected}"), found))
    };
    let digest = canon::digest(CARD_LABEL, &said.card);
    let named = differs(
        "public_digest",
        digest.to_string(),
        said.public_digest.to_string(),
    );
    let Some(basis) = &said.card.basis else {
        let strange = said.build.as_ref().map(|build| build.as_str().to_owned());
        return named.or_else(|| strange.map(|of| ("a card with its basis".to_owned(), of)));
    };
    let calibrator = live.decided.and_then(|of| of.calibrator(None));
    let calibrator = calibrator.unwrap_or(basis.calibrator);
    named
        .or_else(|| {
            let none = said.build.is_none();
            none.then(|| {
                (
                    "the build of a card with a basis".to_owned(),
                    "none".to_owned(),
                )
            })
        })
        .or_else(|| {
            let (expected, found) = (&said.iteration, &basis.iteration);
            differs("a card of", expected.to_string(), found.to_string())
        })
        .or_else(|| {
            let (expected, found) = (live.it.rubric_hash, basis.rubric_hash);
            differs("rubric_hash", expected.to_string(), found.to_string())
        })
        .or_else(|| {
            let found = basis.calibrator.to_string();
            differs(
                "the calibrator fitted first,",
                calibrator.to_string(),
                found,
            )
        })
}

fn paused(live: &Live<'_>, said: &IterationPausedForLabels) -> Judged {
    if said.share.value() < PAUSE_SHARE {
        return no(
            format!("a share of at least {PAUSE_SHARE}"),
            said.share.to_string(),
        );
    }
    after_classification(live).or_else(|| {
        let seq = live.seq(|of| Some(of.sealed.as_ref()?.once.seq))?;
        no("a pause before sealing", format!("sealed at seq {seq}"))
    })
}

/// The dev objective answers an optimizer, before anything is sealed, as often as registered.
fn dev_call(state: &State, live: &Live<'_>, said: &DevObjectiveQueried) -> Judged {
    if let Some(found) = after_classification(live).or_else(|| live.is_sealed_yet("a dev call")) {
        return Some(found);
    }
    if let Some(seq) = live.seq(|of| Some(of.sealed.as_ref()?.once.seq)) {
        return no("a dev call before sealing", format!("sealed at seq {seq}"));
    }
    let key = state.keyring.keys.get(&said.requester);
    let asks = key.is_some_and(|key| key.end.is_none() && key.roles.contains(Role::Optimizer));
    if !asks {
        let expected = "a requester with a live key in role optimizer";
        return no(expected, said.requester.to_string());
    }
    if !said.answers.iter().map(|of| of.gate).eq(DEV_GATES) {
        return no("answers of p0 to p7 in order", "others");
    }
    let design = plan_of(state, live.it).and_then(|plan| plan.design.as_ref())?;
    let most = design.dev_calls_max.value();
    let made = live.decided.map_or(0, |of| of.receipts.len() as u64);
    (made >= most).then(|| {
        (
            format!("at most {most} dev calls, as registered"),
            format!("{made} made before"),
        )
    })
}

/// What the manifest of an iteration says of iterations.
pub(in crate::projection) fn plan_of<'a>(
    state: &'a State,
    it: &Iteration,
) -> Option<&'a IterationPlan> {
    let (_, record) = state.fold::<Manifests>().of_digest(it.digest)?;
    record.version(it.digest)?.manifest.iteration.as_ref()
}

/// What taints an iteration: a patch from unpublished inputs, or a read that an optimizer may not have.
pub(super) fn taint(state: &State, experiment: &ExperimentId, live: &Live<'_>) -> Option<String> {
    let own = live.decided.and_then(|of| of.tainted.as_ref());
    own.map(super::Tainted::line).or_else(|| {
        let taint = state.fold::<Access>().taints.get(experiment)?;
        (taint.role == Role::Optimizer).then(|| taint.line(experiment))
    })
}

/// A gate stands on the frozen classification, the registered numbers and a candidate of the iteration, once confirm
/// was unsealed if it is about confirm, and before that if not.
fn gate(state: &State, live: &Live<'_>, said: &GateEvaluated) -> Judged {
    if said.evidence.gate() != said.gate {
        let expected = format!("evidence of gate {}", said.gate);
        return no(expected, format!("of {}", said.evidence.gate()));
    }
    let gates: &[_] = match said.split {
        GateSplit::Confirm => &CONFIRM_GATES,
        GateSplit::Dev => &DEV_GATES,
    };
    if !gates.contains(&said.gate) {
        let words: Vec<&str> = gates.iter().map(|gate| gate.as_str()).collect();
        let expected = format!("one of {} on {}", words.join(" "), said.split.as_str());
        return no(expected, said.gate.as_str());
    }
    let Some((hash, _)) = live.decided.and_then(|of| of.classified.as_ref()) else {
        return no("slices.classified first", "none");
    };
    if said.classification_hash != *hash {
        let expected = format!("the frozen classification {hash}");
        return no(expected, said.classification_hash.to_string());
    }
    if said.params_hash != live.it.params_hash {
        let expected = format!("params_hash {}, as opened", live.it.params_hash);
        return no(expected, said.params_hash.to_string());
    }
    let first = registered(state, live, said).or_else(|| compares(live, said));
    first.or_else(|| match said.split {
        GateSplit::Dev => live.is_sealed_yet("a gate on dev").or_else(|| {
            let is = is_candidate(live.it, said.candidate);
            let found = format!("{}, none of them", said.candidate);
            (!is).then(|| {
                (
                    "a patch that stands, or a composite of two".to_owned(),
                    found,
                )
            })
        }),
        GateSplit::Confirm => {
            if live.seq(|of| Some(of.unsealed.as_ref()?.seq)).is_none() {
                return no("confirm.unsealed before a gate on confirm", "none");
            }
            let sealed = live.decided.and_then(|of| of.sealed.as_ref());
            let holds = sealed.is_some_and(|sealed| sealed.holds(said.candidate));
            let found = format!("{}, not among them", said.candidate);
            let strange = (!holds).then(|| ("a sealed candidate".to_owned(), found));
            strange
                .or_else(|| sequence::gate(state, said))
                .or_else(|| block::left_out(state, live.it))
        }
    })
}

/// The thresholds are those of the manifest.
fn registered(state: &State, live: &Live<'_>, said: &GateEvaluated) -> Judged {
    let manifests = state.fold::<Manifests>();
    let record = manifests
        .of_digest(live.it.digest)
        .map(|(_, record)| record);
    let version = record.and_then(|record| record.version(live.it.digest));
    let plan = version.and_then(|version| version.manifest.iteration.as_ref())?;
    if said.thresholds == thresholds_of(plan) {
        return None;
    }
    no("the registered thresholds", "others (E_UNREGISTERED_RULE)")
}

/// Hashes of patches that stand, with their families.
pub(super) fn standing(it: &Iteration) -> Vec<Digest> {
    let stands = |candidate: &&crate::projection::iterations::Candidate| {
        candidate.state == CandidateState::Proposed
    };
    let all = it.candidates.values().filter(stands);
    all.map(|candidate| candidate.patch_hash).collect()
}

pub(in crate::projection) fn is_candidate(it: &Iteration, hash: Digest) -> bool {
    let standing = standing(it);
    let of_two = |a: &Digest| standing.iter().any(|b| composite_of(&[*a, *b]) == hash);
    standing.contains(&hash) || standing.iter().any(of_two)
}
