//! What one step of an iteration found, or all that were due.

use serde::Serialize;

use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::event::id::Text;
use crate::event::payload::Verdict;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::predicate::PatchAccepted;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::report::shown;
use crate::session::SessionError;
use crate::session::iterate::Bench;
use crate::session::iterate::end::Acceptance;
use crate::session::iterate::end::IterationEnd;
use crate::session::iterate::score::ScoringResult;
use crate::session::iterate::steps::StepDone;
use crate::session::iterate::steps::Wait;
use crate::view::Exit;
use crate::view::View;
use crate::view::appended::StandsAnd;
use crate::view::iterate::answer;
use crate::view::iterate::gates;
use crate::view::iterate::gates::ConfirmFacts;
use crate::view::iterate::gates::DevGates;
use crate::view::iterate::gates::SealedHypotheses;
use crate::view::iterate::ground;
use crate::view::iterate::ground::CalibratorFit;
use crate::view::iterate::ground::CardList;
use crate::view::iterate::ground::SliceAudit;
use crate::view::iterate::number;
use crate::view::patch::PatchProposal;
use crate::view::text;
use crate::view::word;

/// Nothing was done: no step was due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoStep {}

/// The judge cannot be asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnaskedJudge {
    /// `not_checked`.
    pub verdict: Verdict,
}

/// What a re-score found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RescoreCounts {
    /// The judge that was asked.
    pub judge: JudgeId,
    /// Rows that were scored again.
    pub keys: u64,
    /// Those whose score differs from the recorded one.
    pub mismatches: u64,
    /// Rows that had no score, and have one now.
    pub scored: u64,
    /// Rows that were not scored, since their texts are not at hand.
    pub without_texts: u64,
}

/// Accepted patches.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AcceptedPatches {
    /// By rank.
    pub accepted: Vec<PatchAccepted>,
}

/// How an iteration ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IterationClosing {
    /// The outcome.
    pub outcome: IterationOutcome,
    /// Why.
    pub reason: Text,
}

/// What a step found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum StepFound {
    /// Scores.
    Score(RescoreCounts),
    /// The calibrator.
    Fit(Box<CalibratorFit>),
    /// The audit of residuals.
    Audit(SliceAudit),
    /// Cards.
    Cards(CardList),
    /// Gates on dev.
    Gate(DevGates),
    /// What was sealed.
    Seal(SealedHypotheses),
    /// Gates on confirm.
    Confirm(ConfirmFacts),
    /// Accepted patches.
    Accept(AcceptedPatches),
    /// The end.
    Close(IterationClosing),
}

/// A step that was done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepFacts {
    /// The step.
    pub step: &'static str,
    /// What it found.
    pub data: StepFound,
}

/// Steps that were due and needed no person.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ran {
    /// Patches that were proposed, in the order of the files; empty where none was given.
    pub proposed: Vec<StandsAnd<PatchProposal>>,
    /// In the order done.
    pub steps: Vec<StepFacts>,
    /// What the next step waits for, in words; `null` where it waits for nobody.
    pub waits_for: Option<String>,
}

/// Patches that were proposed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProposedAll {
    /// In the order of the files.
    pub patches: Vec<StandsAnd<PatchProposal>>,
}

/// The answer of one step.
///
/// # Errors
/// [`SessionError`], where the rows of the iteration cannot be computed with.
pub fn step(bench: &mut Bench, done: &StepDone) -> Result<View, SessionError> {
    let mut view = View::of(&NoStep {});
    let found = put(&mut view, bench, done)?;
    if let StepFound::Close(_) = &found
        && bench.record.paused.is_some()
    {
        // By itself the end says nothing of the rows: the audit may have been long ago.
        let course = bench.take_course()?;
        ground::paused(&mut view, &bench.record, Some(&course));
        bench.put_back(course);
    }
    let appended = done.appended();
    Ok(match found {
        StepFound::Score(found) => answer(bench, view, found, appended),
        StepFound::Fit(found) => answer(bench, view, *found, appended),
        StepFound::Audit(found) => answer(bench, view, found, appended),
        StepFound::Cards(found) => answer(bench, view, found, appended),
        StepFound::Gate(found) => answer(bench, view, found, appended),
        StepFound::Seal(found) => answer(bench, view, found, appended),
        StepFound::Confirm(found) => answer(bench, view, found, appended),
        StepFound::Accept(found) => answer(bench, view, found, appended),
        StepFound::Close(found) => answer(bench, view, found, appended),
    })
}

/// The answer where no step was due.
pub fn none(bench: &Bench) -> View {
    answer(bench, View::of(&NoStep {}), NoStep {}, &[])
}

/// The cards of an iteration, where they were published before.
pub fn cards(bench: &Bench) -> View {
    let mut view = View::of(&NoStep {});
    let found = ground::carded(&mut view, &bench.record);
    answer(bench, view, found, &[])
}

/// What is said where nobody can be asked.
pub fn unasked(bench: &Bench) -> View {
    let mut view = View::of(&NoStep {});
    view.line("NOT CHECKED: these scores were imported, and nobody can be asked for them again.");
    view.line("A waiver of CLOVER.J2 by two keys before the splits lets criterion P0 pass all the same: clover assume waive");
    let verdict = Verdict::NotChecked;
    answer(bench, view, UnaskedJudge { verdict }, &[])
}

/// What a step found, for people and as facts.
fn put(view: &mut View, bench: &mut Bench, done: &StepDone) -> Result<StepFound, SessionError> {
    Ok(match done {
        StepDone::Score(of) => StepFound::Score(scored(view, of)),
        StepDone::Fit(_) => {
            let course = bench.take_course()?;
            let found = ground::fitted(view, &course, &bench.record);
            bench.put_back(course);
            StepFound::Fit(Box::new(found))
        }
        StepDone::Audit(_) => {
            let course = match bench.record.paused {
                None => None,
                Some(_) => Some(bench.take_course()?),
            };
            let found = ground::audited(view, &bench.record, course.as_ref());
            if let Some(course) = course {
                bench.put_back(course);
            }
            StepFound::Audit(found)
        }
        StepDone::Cards(_) => StepFound::Cards(ground::carded(view, &bench.record)),
        StepDone::Gate(of) => StepFound::Gate(gates::gated(view, &bench.record, of)),
        StepDone::Seal(of) => StepFound::Seal(gates::sealed(view, &bench.record, of)),
        StepDone::Confirm(of) => StepFound::Confirm(gates::confirmed(view, &bench.record, of)),
        StepDone::Accept(of) => {
            let found = accepted(view, of);
            if let Some(wider) = gates::wider(&bench.record) {
                view.sentence(wider);
            }
            StepFound::Accept(found)
        }
        StepDone::Close(of) => StepFound::Close(ended(view, &bench.id, of)),
    })
}

fn scored(view: &mut View, of: &ScoringResult) -> RescoreCounts {
    let mut rows = vec![("judge", of.judge.to_string())];
    if of.recorded > 0 {
        rows.push(("rows scored first", text::thousands(of.recorded as u64)));
    }
    if of.silent > 0 {
        rows.push(("rows without texts", text::thousands(of.silent as u64)));
    }
    rows.push(("scored again", text::thousands(of.sampled as u64)));
    rows.push(("mismatches", of.mismatches.to_string()));
    view.pairs(rows);
    RescoreCounts {
        judge: of.judge.clone(),
        keys: of.sampled as u64,
        mismatches: of.mismatches,
        scored: of.recorded as u64,
        without_texts: of.silent as u64,
    }
}

fn accepted(view: &mut View, of: &Acceptance) -> AcceptedPatches {
    let rows = of.patches.iter().map(|said| {
        vec![
            said.rank.to_string(),
            said.patch.to_string(),
            said.kappa.to_string(),
            number(said.risk_improve.value()),
            said.result_hash.short().to_string(),
        ]
    });
    let head = ["rank", "patch", "kappa", "risk change", "rubric after it"];
    view.table(&head, rows);
    view.sentence("A patch is better where its risk change is negative.");
    AcceptedPatches {
        accepted: of.patches.clone(),
    }
}

/// How an iteration ended, and what was not accepted.
fn ended(view: &mut View, id: &IterationId, of: &IterationEnd) -> IterationClosing {
    for (patch, words) in &of.not_accepted {
        view.sentence(format!("{patch} not accepted: {words}"));
    }
    let (outcome, reason) = (word(&of.outcome), shown::reason(of.reason.as_str()));
    if of.outcome == IterationOutcome::PausedForLabels {
        // What the labels could do stands with the audit: by themselves their number promises too much.
        view.line(format!(
            "iteration {id}  {outcome}: the audit says what would do"
        ));
    } else {
        view.line(format!("iteration {id}  {outcome}: {reason}"));
    }
    IterationClosing {
        outcome: of.outcome,
        reason: of.reason.clone(),
    }
}

/// Steps one after the other, as they are done.
#[derive(Debug)]
pub struct Run {
    view: View,
    found: Ran,
    appended: Vec<AppendedEvent>,
    /// Ids of proposals, and whether one is new.
    events: Vec<String>,
    is_new: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            view: View::of(&NoStep {}),
            found: Ran {
                proposed: Vec::new(),
                steps: Vec::new(),
                waits_for: None,
            },
            appended: Vec::new(),
            events: Vec::new(),
            is_new: false,
        }
    }
}

impl Run {
    /// Adds a patch that was proposed.
    pub fn propose(&mut self, (one, found): (View, StandsAnd<PatchProposal>)) {
        self.view.line("PROPOSE");
        self.view.blocks.extend(one.blocks);
        self.view.gap();
        self.events.extend(one.events);
        self.is_new |= one.verdict == "appended";
        self.found.proposed.push(found);
    }

    /// Adds a step that was done.
    ///
    /// # Errors
    /// As [`step`].
    pub fn add(&mut self, bench: &mut Bench, done: &StepDone) -> Result<(), SessionError> {
        let step = done.step().as_str();
        self.view.line(step.to_uppercase());
        let data = put(&mut self.view, bench, done)?;
        self.view.gap();
        self.found.steps.push(StepFacts { step, data });
        self.appended.extend(done.appended().iter().copied());
        Ok(())
    }

    /// The answer, where it stopped.
    pub fn answer(mut self, bench: &Bench, waits: Option<Wait>) -> View {
        self.found.waits_for = waits.map(awaited);
        if let Some(what) = &self.found.waits_for {
            self.view.line(format!("waits for {what}"));
        }
        let mut view = answer(bench, self.view, self.found, &self.appended);
        if self.is_new && view.exit != Exit::Inconclusive {
            view.verdict = "appended";
        }
        view.events.splice(0..0, self.events);
        view
    }
}

fn awaited(wait: Wait) -> String {
    match wait {
        Wait::Patches => "patches, which people or programs write from the cards".to_owned(),
        Wait::Reviews(lacking) => lacking,
    }
}

/// The answer to patches that were proposed one after the other.
pub fn proposed(iteration: &str, all: Vec<(View, StandsAnd<PatchProposal>)>) -> View {
    let mut view = View::of(&NoStep {}).with_verdict("already_recorded");
    let mut patches = Vec::with_capacity(all.len());
    for (one, found) in all {
        view.blocks.extend(one.blocks);
        view.events.extend(one.events);
        view.checkpoint = one.checkpoint;
        if one.verdict == "appended" {
            view.verdict = one.verdict;
        }
        patches.push(found);
    }
    let view = view.with_facts(&ProposedAll { patches });
    view.with_next(format!("clover iterate gate {}", shell::word(&iteration)))
}
