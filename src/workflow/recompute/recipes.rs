//! How each kind is held to what it rests on: one line a kind.
//!
//! A kind is computed again, or held by a rule in its place, or is taken as it was said. What a line says of the first
//! two is a row of `schema/REPLAY.md`.

use clover_event::Kind;
use clover_ledger::RuleName;

use crate::recompute::Run;
use crate::recompute::agreements;
use crate::recompute::batteries;
use crate::recompute::decided;
use crate::recompute::drift;
use crate::recompute::estimates;
use crate::recompute::gates;
use crate::recompute::generators;
use crate::recompute::guardrails;
use crate::recompute::iterations;
use crate::recompute::offpolicy;
use crate::recompute::recalibrations;
use crate::recompute::repairs;
use crate::recompute::reports;
use crate::recompute::sgd;
use crate::recompute::splits;
use crate::recompute::synths;

/// Who asks for a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Append, `verify --recompute` and replay: as an estimate, or of an iteration, as its terms say.
    Either,
    /// Append, `verify --recompute` and replay: from scores and labels.
    Estimates,
    /// Append, `verify --recompute` and replay: from the rows of an iteration.
    Iterations,
    /// Append, `verify --recompute` and replay: from the rows of what runs.
    Live,
    /// Replay alone: it follows from decisions before it.
    Replay,
}

impl When {
    /// The words of the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Either | Self::Estimates | Self::Iterations | Self::Live => {
                "append, verify, replay"
            }
            Self::Replay => "replay",
        }
    }

    /// Whether a line of the rulebook asks for it: that of estimates, of iterations or of what runs.
    const fn is_of(self, line: Self) -> bool {
        matches!(
            (self, line),
            (Self::Either | Self::Estimates, Self::Estimates)
                | (Self::Either | Self::Iterations, Self::Iterations)
                | (Self::Live, Self::Live)
        )
    }
}

/// A kind that a rule holds in place of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The kind.
    pub kind: Kind,
    /// The rule that judges it whenever the log is verified.
    pub rule: RuleName,
    /// What there is to know, in a few words.
    pub why: &'static str,
}

/// A computation.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// From what.
    pub from: &'static str,
    /// Its function.
    pub run: Run,
    /// Who asks for it.
    pub when: When,
}

/// How a kind is held to what it rests on.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// It is computed again.
    Again(Recipe),
    /// A rule judges it, and nothing is computed.
    Held(Elsewhere),
    /// Somebody measured, wrote or agreed to it: there is nothing to compute.
    Said,
}

const fn again(when: When, run: Run, from: &'static str) -> Way {
    Way::Again(Recipe { from, run, when })
}

const fn held(kind: Kind, rule: RuleName, why: &'static str) -> Way {
    Way::Held(Elsewhere { kind, rule, why })
}

/// How a kind is held to what it rests on.
#[expect(clippy::too_many_lines, reason = "a line for each kind")]
#[rustfmt::skip]
pub const fn way(kind: Kind) -> Way {
    match kind {
        Kind::SplitsListed => again(When::Replay, splits::listed, "the rows that were ingested before it: their clusters, the times they were first sampled, the split's seed and gap"),
        Kind::SplitsFormed => again(When::Replay, splits::formed, "the same as `splits.listed`; count and root of each part"),
        Kind::NoiseMeasured => held(kind, RuleName::Noise, "sums over calls on record, which the rule adds up again"),
        Kind::PlanSealed => held(kind, RuleName::Plan, "commits to a plan that a person wrote"),
        Kind::PlanRevealed => held(kind, RuleName::Plan, "opens that commitment, and has to fit it"),
        Kind::CalibratorFitted => again(When::Either, estimates::fitted, "labelled rows, terms and fold seed; a candidate's under its own rubric"),
        Kind::EstimateRecorded => again(When::Estimates, estimates::estimate, "rows, labels, terms, and the audits that stood"),
        Kind::ContrastRecorded => again(When::Estimates, estimates::contrast, "rows and labels of two policies, terms, and the audits that stood"),
        Kind::OuaEstimated => again(When::Either, estimates::oua, "the rows of the estimate or iteration, under each fold seed"),
        Kind::CoverageChecked => again(When::Either, estimates::coverage, "scores of labelled and of all rows"),
        Kind::TransportTested => again(When::Estimates, estimates::transport, "the calibrator's rows and the probes that were opened"),
        Kind::PlanRecorded => again(When::Estimates, estimates::plan, "the ledger's own variance, prices and what was asked"),
        Kind::IterationOpened => again(When::Replay, decided::opened, "the manifest in force and the quarter of its day"),
        Kind::IterationClosed => again(When::Replay, decided::closed, "what was sealed, accepted or paused; an end that a person chose is told apart"),
        Kind::PatchRejected => again(When::Replay, decided::rejected, "the gates on dev or confirm, the look at which a sequential test stopped, or the choice among those that passed"),
        Kind::LabelProcessAudited => again(When::Iterations, iterations::before, "which rows of the iteration's splits have labels, by design"),
        Kind::PrenticeChecked => again(When::Iterations, iterations::before, "labels and rewards on dev, with what else is known of a row"),
        Kind::ResidualsAudited => again(When::Iterations, iterations::before, "labels and rewards on dev by registered slice"),
        Kind::SlicesClassified => again(When::Iterations, iterations::before, "the residual audit and the registered stakes"),
        Kind::CardPublished => again(When::Iterations, iterations::before, "residuals, evidence and what attacks had earned by then"),
        Kind::IterationPausedForLabels => again(When::Iterations, iterations::before, "the calibrator's share and the gain in sight"),
        Kind::DevObjectiveQueried => again(When::Replay, decided::asked, "the gates on dev of the patch that was asked for, once it was proposed, or as an optimizer returned it; p7 as it was said, where its battery is not on record"),
        Kind::GateEvaluated => again(When::Iterations, iterations::gate, "rows, labels and scores of its split under the rubric and the candidate, thresholds and seed of the plan; of P7 the battery on record"),
        Kind::CandidatesSealed => again(When::Replay, decided::sealed, "the gates on dev and the best patch of each family"),
        Kind::ConfirmUnsealed => again(When::Replay, decided::unsealed, "the split's confirm root and the sealing; the charge is named"),
        Kind::PatchAccepted => again(When::Replay, decided::accepted, "the gates on confirm and the order among candidates"),
        Kind::BatteryEvaluated => again(When::Replay, batteries::evaluated, "texts of the seeds under the eight attacks, the search's seed, exploits known by then; needs the texts, and of a program the answers that are kept"),
        Kind::ScoresRecomputed => again(When::Iterations, iterations::scores, "cached evidence and base scores under the candidate"),
        Kind::OrderListed => again(When::Replay, gates::order, "the units listed by name, the manifest that binds them, and the first checkpoint after it came into force"),
        Kind::OrderDrawn => again(When::Replay, gates::order, "the same as `order.listed`; seed and root of the whole order"),
        Kind::GateOpened => again(When::Replay, gates::opened, "the test as the manifest in force registers it; which scores or labels it reads is taken as said"),
        Kind::GateObserved => held(kind, RuleName::Observation, "copies the scores or labels of one unit, and each copy is held against what was recorded"),
        Kind::GateLooked => again(When::Replay, gates::looked, "the observations before it, under the registered test and the family's terms"),
        Kind::GateDecided => again(When::Replay, gates::decided, "the last look, or the manifest's supersession"),
        Kind::GateContinued => again(When::Replay, gates::continued, "the parent's last look"),
        Kind::FamilyClosed => again(When::Replay, gates::closed, "its members' last looks, under its procedure"),
        Kind::OpeDiagnosed => again(When::Estimates, offpolicy::diagnosed, "logged rows with their log-probabilities"),
        Kind::OpeEstimated => again(When::Estimates, offpolicy::estimated, "logged rows, and those of a direct estimate"),
        Kind::RecalibrationCompleted => again(When::Live, recalibrations::completed, "fresh labels; one that rests on an audit is that audit's"),
        Kind::GuardrailChecked => again(When::Live, guardrails::checked, "live rows of the version that runs; what was given by hand is taken as said"),
        Kind::ReportPublished => again(When::Replay, reports::published, "every part of the bundle, as of the entry that it was read to"),
        Kind::JudgeCompared => again(When::Estimates, agreements::compared, "scores of both judges, labels for calibration, and the plans that were in force; before rulebook 24 by replay alone"),
        Kind::JudgeDriftChecked => again(When::Estimates, drift::checked, "the judge's scores of the anchors, then and now"),
        Kind::GeneratorRunOpened => again(When::Live, generators::run, "the frozen judge's rewards of the old policy"),
        Kind::GeneratorObjectiveQueried => again(When::Live, generators::run, "the frozen judge's rewards of the step's outputs"),
        Kind::GeneratorValidated => again(When::Live, generators::run, "fresh labels of both policies, transport and the battery"),
        Kind::ConfirmLooked => again(When::Iterations, iterations::look, "the confirm labels shown by then, in the drawn order"),
        Kind::GateEstimated => again(When::Estimates, gates::estimated, "labels of the sampled units, with the judge's scores as predictions"),
        Kind::EnvironmentsTested => again(When::Estimates, estimates::environments, "the calibrator's rows, the probes that were opened, and the fields that imports kept of them"),
        Kind::RegimeSelected => held(kind, RuleName::Transport, "a choice of people after a failed test, which the rule asks for"),
        Kind::SynthAsked => again(When::Iterations, synths::asked, "cards, rubric, receipts and earlier answers through the entry that it names; the leak test is taken as said"),
        Kind::SynthReturned => again(When::Iterations, synths::returned, "the view, where `cards/1` answered it, else the bytes of the answer; the codes of its candidates either way"),
        Kind::SynthStopped => again(When::Iterations, synths::stopped, "its rounds and receipts, with the best patch of each family; an end that a person chose is taken as said"),
        Kind::SgdBatchDrawn => held(kind, RuleName::Sgd, "drawn by the run's seed from rows and scores on record, which the rule draws again"),
        Kind::SgdLossComputed => held(kind, RuleName::Sgd, "the loss of scores on record, which the rule computes again"),
        Kind::SgdGradientRequested => held(kind, RuleName::Sgd, "aggregates of the batch, which the rule builds again; the leak test is taken as said"),
        Kind::SgdPatchRejected => held(kind, RuleName::Sgd, "what the validator says of the proposal, which the rule asks it again"),
        Kind::SgdStepCommitted => held(kind, RuleName::Sgd, "the patch applied and the losses of the step, which the rule computes again"),
        Kind::SgdReverted => held(kind, RuleName::Sgd, "the losses of val, which the rule compares again"),
        Kind::SgdStopTriggered => held(kind, RuleName::Sgd, "the losses of every step, which the rule looks through again"),
        Kind::SgdCheckpointSelected => held(kind, RuleName::Sgd, "the lowest loss of val, which the rule finds again"),
        Kind::SgdTestRead => held(kind, RuleName::Sgd, "the losses of test under both prompts, which the rule computes again"),
        Kind::SgdStopped => held(kind, RuleName::Sgd, "a run that was gone through, or a person's word; the rule holds it to the record"),
        Kind::SgdRowsListed => again(When::Estimates, sgd::listed, "labels through the entry that the run names, and the seed of the experiment"),
        Kind::WfCandidateAdded => held(kind, RuleName::Repair, "the edit of its parent, which the rule applies and measures again"),
        Kind::WfEditRejected => held(kind, RuleName::Repair, "the edit of its parent, which the rule applies again"),
        Kind::WfExecuted => again(When::Estimates, repairs::executed, "the answers of models, by which the workflow runs again over its item"),
        Kind::WfFeedbackGiven => again(When::Estimates, repairs::feedback, "outputs of its executions, run again from the answers, and the rules of context and verifier"),
        Kind::WfScored => held(kind, RuleName::Repair, "the parts of its feedback, from which the rule computes it again"),
        Kind::WfPruned => held(kind, RuleName::Repair, "scores and costs, by which the rule orders again"),
        Kind::WfIterationClosed => held(kind, RuleName::Repair, "scores, calls and edits of the turn, which the rule sums again"),
        Kind::WfStopped => held(kind, RuleName::Repair, "scores, turns and calls, from which the rule says again what ends a run; a person's word is taken as said"),
        Kind::EditPairRecorded => held(kind, RuleName::Repair, "the seed of the run, by which the rule draws again, and both edits"),
        Kind::UtilityRecorded => again(When::Estimates, repairs::utility, "outputs of its executions, run again, and what is right, which the run committed to"),
        Kind::MetaTriggered => held(kind, RuleName::Repair, "runs whose truth is known, of which the rule asks again what they show"),
        Kind::MetaValidated => held(kind, RuleName::Repair, "the pairs that its update named, from which the rule computes the gates again"),
        Kind::MetaConcluded => held(kind, RuleName::Repair, "the runs of its plan in all cells, from which the rule computes gates and family again"),
        // The next kind that is computed again goes here.
        Kind::LedgerCreated
        | Kind::KeyAdded
        | Kind::KeyRetired
        | Kind::KeyCompromised
        | Kind::PolicyAdopted
        | Kind::LogKeyRotated
        | Kind::RulebookAdopted
        | Kind::RetentionSet
        | Kind::SubjectErased
        | Kind::BudgetOpened
        | Kind::BudgetCharged
        | Kind::BudgetReserved
        | Kind::BudgetSettled
        | Kind::CallRecorded
        | Kind::ModelCallRecorded
        | Kind::JudgeRunClosed
        | Kind::JudgeRunOpened
        | Kind::JudgeRunResumed
        | Kind::ScoreMissed
        | Kind::EndpointRegistered
        | Kind::PriceTableRegistered
        | Kind::ExperimentRegistered
        | Kind::ExperimentClosed
        | Kind::ScoreRecorded
        | Kind::LabelRecorded
        | Kind::LabelSealed
        | Kind::SealAccepted
        | Kind::LabelRevealed
        | Kind::DataRead
        | Kind::ReviewRecorded
        | Kind::AuditAttested
        | Kind::NoteRecorded
        | Kind::DataIngested
        | Kind::LogprobRecorded
        | Kind::ScoreConflict
        | Kind::LabelDesignRegistered
        | Kind::LabelScaleDeclared
        | Kind::ScoreScaleDeclared
        | Kind::QualificationRecorded
        | Kind::FamilyOpened
        | Kind::ManifestRegistered
        | Kind::ManifestCountersigned
        | Kind::ManifestAmended
        | Kind::ManifestDeviated
        | Kind::ExposureOpened
        | Kind::SdpVersionRegistered
        | Kind::BridgeAssessed
        | Kind::AssumptionWaived
        | Kind::AssumptionCountersigned
        | Kind::RubricRegistered
        | Kind::AnchorSetRegistered
        | Kind::PatchProposed
        | Kind::PatchWithdrawn
        | Kind::SynthOpened
        | Kind::SgdOpened
        | Kind::SgdScored
        | Kind::SgdGradientReturned
        | Kind::SgdPatchProposed
        | Kind::SgdPatchApproved
        | Kind::WfRunStarted
        | Kind::WfCalled
        | Kind::MetaPlanned
        | Kind::MetaUpdated
        | Kind::LibTemplateAdded
        | Kind::ExploitDiscovered
        | Kind::JudgeRegistered
        | Kind::EvidenceRecorded
        | Kind::ScoreReplayed
        | Kind::UnitsListed
        | Kind::PromotionIssued
        | Kind::PromotionRevoked
        | Kind::LogprobsChecked
        | Kind::ApprovalGranted
        | Kind::ApprovalRefused
        | Kind::PromptCommitted
        | Kind::DeploymentActivated
        | Kind::DeploymentRolledBack
        | Kind::GeneratorRolledBack => Way::Said,
    }
}

/// The recipe of a kind.
pub fn recipe(kind: Kind) -> Option<Recipe> {
    match way(kind) {
        Way::Again(recipe) => Some(recipe),
        Way::Held(_) | Way::Said => None,
    }
}

/// Where a kind without a recipe is judged.
pub fn elsewhere(kind: Kind) -> Option<Elsewhere> {
    match way(kind) {
        Way::Held(of) => Some(of),
        Way::Again(_) | Way::Said => None,
    }
}

const fn is_asked(kind: Kind, line: When) -> bool {
    matches!(way(kind), Way::Again(recipe) if recipe.when.is_of(line))
}

const fn count(line: When) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < Kind::ALL.len() {
        found += is_asked(Kind::ALL[at], line) as usize;
        at += 1;
    }
    found
}

const fn kinds<const N: usize>(line: When) -> [Kind; N] {
    let mut all = [Kind::ALL[0]; N];
    let (mut at, mut found) = (0, 0);
    while at < Kind::ALL.len() {
        if is_asked(Kind::ALL[at], line) {
            all[found] = Kind::ALL[at];
            found += 1;
        }
        at += 1;
    }
    all
}

/// Kinds that the rulebook's line of estimates computes again.
pub(super) const ESTIMATES: [Kind; count(When::Estimates)] = kinds(When::Estimates);
/// Those of its line of iterations.
pub(super) const ITERATIONS: [Kind; count(When::Iterations)] = kinds(When::Iterations);
/// Those of its line of what runs.
pub(super) const LIVE: [Kind; count(When::Live)] = kinds(When::Live);

#[cfg(test)]
mod tests {
    use clover_event::payload::Role;
    use clover_event::registry::Signers;
    use clover_ground::page;

    use super::*;

    /// Kinds in the order of their names.
    fn by_name() -> Vec<Kind> {
        let mut all = Kind::ALL.to_vec();
        all.sort_by_key(|kind| kind.as_str());
        all
    }

    #[test]
    fn whatever_an_arbiter_says_is_computed_again_or_held_by_a_rule() {
        let arbiter = Signers::Role(Role::Arbiter);
        for &kind in Kind::ALL.iter().filter(|kind| kind.signers() == arbiter) {
            assert!(!matches!(way(kind), Way::Said), "{kind}");
        }
    }

    #[test]
    fn the_page_lists_what_this_program_computes_and_what_it_does_not() {
        let signed = |kind: Kind| match kind.signers() {
            Signers::Role(role) => role.as_str(),
            other => panic!("{kind} is signed by {other:?}, which the page has no word for"),
        };
        let (mut computed, mut other) = (String::new(), String::new());
        for kind in by_name() {
            match way(kind) {
                Way::Again(Recipe { from, when, .. }) => {
                    let (by, when) = (signed(kind), when.as_str());
                    computed.push_str(&format!("| `{kind}` | {by} | {when} | {from} |\n"));
                }
                Way::Held(Elsewhere { rule, why, .. }) => {
                    other.push_str(&format!("| `{kind}` | `{rule}` | {why} |\n"));
                }
                Way::Said => {}
            }
        }
        let tables = [
            (
                "| kind | signed by | asked by | computed again from |",
                computed,
            ),
            ("| kind | rule | why it is not computed again |", other),
        ];
        page::hold("schema/REPLAY.md", &tables);
    }
}
