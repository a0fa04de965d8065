//! Iterations of a rubric, step by step: each step takes the [`Bench`] and the ports, appends, and says what it did.
//!
//! [`advance`](steps::advance) does the step that is due; [`run`](steps::run) goes on until a person is needed.

pub mod attack;
pub mod bench;
pub mod confirm;
pub mod end;
pub mod gates;
pub mod objective;
pub mod open;
pub mod propose;
pub mod rescore;
pub mod score;
pub mod sequence;
pub mod steps;
pub mod synth;
pub mod synth_ask;
mod synth_leak;
pub mod synth_outlook;

pub use bench::Bench;

use clover_event::id::AccountId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::PatchId;
use clover_event::id::RunId;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_projection::iterations::step::Step;
use clover_rubric::PatchFault;
use clover_workflow::synth::view::ViewFault;

/// Why a step of an iteration was not done.
#[derive(Debug, thiserror::Error)]
pub enum IterationError {
    /// Answers to attack need texts, and none is at hand.
    #[error(
        "the battery has no text to attack: prompts and responses were not taken in, or their keys are not here"
    )]
    BatteryTexts,
    /// Answers to attack need texts, and the rows were taken in without.
    #[error(
        "the battery has no text to attack: rows were taken in without texts, which their judge finds by name"
    )]
    BatteryNamed,
    /// The scores were imported.
    #[error(
        "the battery asks the judge about edited answers, and these scores were imported: nobody can be asked"
    )]
    BatteryUnasked,
    /// The battery cannot be measured.
    #[error("{0}")]
    Battery(String),
    /// A row's label waits in another design.
    #[error("a cluster of the block waits whose label is in another design")]
    ClusterElsewhere,
    /// Answers that differ from recorded scores.
    #[error(
        "score_once: {0} scores differ from what is recorded; each is on record as score.conflict, and the first stands"
    )]
    Conflicts(usize),
    /// No account pays for looks at confirm labels.
    #[error("no account {account}, from which {manifest} pays for its look at confirm labels")]
    NoAccount {
        /// The account that is named.
        account: AccountId,
        /// The iteration that was to be opened.
        iteration: IterationId,
        /// The manifest that names it.
        manifest: ManifestId,
    },
    /// The account that pays for looks is open, and holds another number of them.
    #[error(
        "account {account} holds {amount} looks, and {asked} were asked for: an account is opened once"
    )]
    OtherAccount {
        /// The account.
        account: AccountId,
        /// What it holds.
        amount: u64,
        /// What was asked for.
        asked: u64,
    },
    /// The rubric or the plan of an iteration is not known.
    #[error("the rubric or the plan of {0} cannot be read")]
    NoBench(IterationId),
    /// Sealed labels wait, and no design of them was opened.
    #[error("sealed labels of the block are in no design that waits")]
    NoDesignOpen,
    /// No design holds sealed labels.
    #[error("no design with sealed labels for confirm")]
    NoDesign,
    /// No judge is registered.
    #[error("no judge is registered")]
    NoJudge,
    /// The order of a sequential test is not drawn.
    #[error("no checkpoint above the sealing of candidates is named yet")]
    NoOrder,
    /// No such patch.
    #[error("no patch {0}")]
    NoPatch(PatchId),
    /// The manifest plans no iteration.
    #[error("{0} has no section iteration.design")]
    NoPlan(ManifestId),
    /// A row has no texts.
    #[error("a row without texts")]
    NoTexts,
    /// No version of the manifest binds.
    #[error("{0} has no version in force yet")]
    NotInForce(ManifestId),
    /// Sealed rows of confirm that the judge did not score.
    #[error(
        "{rows} of the {all} sealed confirm rows have no score of judge {judge}: none is opened before each has one, and no peek was charged"
    )]
    Unscored {
        /// The judge.
        judge: JudgeId,
        /// How many rows.
        rows: usize,
        /// Of how many.
        all: usize,
    },
    /// The iteration has ended.
    #[error("iteration {iteration} ended at seq {seq}")]
    Ended {
        /// The iteration.
        iteration: IterationId,
        /// Where it ended.
        seq: u64,
    },
    /// A patch failed a check.
    #[error(transparent)]
    Patch(Box<PatchFault>),
    /// Rows cannot be asked about anew.
    #[error(
        "judge {judge} cannot be asked about {rows} rows: their texts were not taken in, or their keys are not here"
    )]
    Silent {
        /// The judge.
        judge: JudgeId,
        /// Rows without texts at hand.
        rows: usize,
    },
    /// Several designs hold sealed labels.
    #[error("several designs hold sealed labels for confirm")]
    SeveralDesigns,
    /// A step is due still after it was done.
    #[error("iteration {iteration}: {} is due still after it was done", .step.as_str())]
    Still {
        /// The iteration.
        iteration: IterationId,
        /// The step.
        step: Step,
    },
    /// Another step is due.
    #[error("iteration {iteration}: {} is due, not {}", .due.as_str(), .step.as_str())]
    StepNotDue {
        /// The iteration.
        iteration: IterationId,
        /// The step that is due.
        due: Step,
        /// The step that was asked for.
        step: Step,
    },
    /// A row cannot be scored again.
    #[error("the texts of {item} are not at hand, so it cannot be scored again")]
    TextsGone {
        /// The row.
        item: String,
        /// The judge that scored it.
        judge: JudgeId,
    },
    /// Too few rows to draw a sample from.
    #[error("expected at least 30 rows with a record, found {0}")]
    TooFewRecords(usize),
    /// The rules in force do not know judges that are asked anew.
    #[error(
        "a patch that changes what the judge is told needs rulebook {0}, and an older one is in force"
    )]
    Unruled(u32),
    /// The judge of an iteration is told a text of its own, and a patch would take its place.
    #[error(
        "the patch changes what judge {judge} is told, and that is a text of its own: the template renders only rubrics, and the text would be lost"
    )]
    OwnPrompt {
        /// The judge.
        judge: JudgeId,
        /// Its experiment.
        experiment: ExperimentId,
    },
    /// The judge of an iteration is told nothing, and a patch changes what it is told.
    #[error(
        "the patch changes what the judge is told, and judge {judge} {why}; iteration.design.judge of a manifest names one that is a program"
    )]
    Untold {
        /// The judge.
        judge: String,
        /// Why it cannot be told.
        why: &'static str,
    },
    /// A patch lists a source that stored answers cite and nobody verified.
    #[error(
        "stored answers cite {host}, which nobody verified: a judge whose known data say whether it resolves has to score them"
    )]
    Unverified {
        /// The first such host.
        host: String,
    },
    /// Sealing waits for reviews.
    #[error("sealing: {0}")]
    Unreviewed(String),
    /// Rows were scored differently the second time.
    #[error(
        "{mismatches} of {sampled} rows were scored differently this time; it is on record, and criterion P0 fails"
    )]
    Unstable {
        /// Rows that differ.
        mismatches: u64,
        /// Rows that were scored again.
        sampled: usize,
    },
    /// Nothing is there that an optimizer could be shown.
    #[error(
        "{0} has no cards yet: an optimizer is shown cards, and no first rubric is written by one"
    )]
    NoCards(IterationId),
    /// The optimizer's key scored or labelled.
    #[error(
        "key {0} signed a score or a label: an optimizer in a run knows neither, so it needs a key of its own"
    )]
    JudgedKey(KeyId),
    /// No dev call is left in the plan.
    #[error("{0} has no dev call left: the plan says dev_calls_max, and all were made")]
    NoDevCalls(IterationId),
    /// No such run of an optimizer.
    #[error("no run {run} in {iteration}")]
    NoRun {
        /// The iteration.
        iteration: IterationId,
        /// What was asked for.
        run: String,
    },
    /// A run of an optimizer is open, so candidates are not sealed.
    #[error("run {0} is open: candidates are sealed once it ended")]
    OpenRun(RunId),
    /// A run of another optimizer ended, and nobody asked for one more.
    #[error("run {run} by {optimizer} ended: another one is opened where --again asks for it")]
    EndedRun {
        /// The optimizer of that run.
        optimizer: String,
        /// The run.
        run: RunId,
    },
    /// A run of an optimizer is open on other terms.
    #[error("run {run} is open with {what} {opened}, and {asked} was asked for")]
    OtherRun {
        /// What was asked for.
        asked: String,
        /// As it was opened.
        opened: String,
        /// The run.
        run: RunId,
        /// Which term.
        what: &'static str,
    },
    /// A view would hold something of a row.
    #[error("the view of {run} holds {what}: nothing was handed over")]
    Leak {
        /// The run.
        run: String,
        /// What it holds, without its words.
        what: String,
    },
    /// Texts of rows cannot be read, so nobody can say that none stands in a view.
    #[error(
        "{texts} texts of rows cannot be read here, so nobody can say that none stands in the view: nothing was handed over"
    )]
    LeakUnread {
        /// How many.
        texts: u64,
    },
    /// A view cannot be made.
    #[error(transparent)]
    View(#[from] ViewFault),
    /// Another process asks for the same run.
    #[error("another process asks the model of {0}")]
    BusyRun(RunId),
    /// An optimizer gave no answer.
    #[error("the optimizer gave no answer: {0}")]
    Optimizer(String),
    /// No such iteration.
    #[error("no iteration {0}")]
    Unknown(IterationId),
    /// No such manifest.
    #[error("no manifest {0}")]
    UnknownManifest(ManifestId),
    /// No such patch in the iteration.
    #[error("no patch {patch} in {iteration}")]
    UnknownPatch {
        /// The iteration.
        iteration: IterationId,
        /// The patch.
        patch: String,
    },
}

/// A hypothesis by hash, with the patches in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidatePatches {
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// Hashes of its patches.
    pub patches: Vec<Digest>,
}
