//! Why a judge's work stopped.

use std::fmt;

use clover_event::id::AccountId;
use clover_event::id::AnchorSetId;
use clover_event::id::EndpointId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::RunId;
use clover_event::payload::scoring::JudgeRegistered;
use clover_num::Count;
use clover_workflow::ask::cassette::CassetteError;
use clover_workflow::drift::DriftError;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::agreement::AgreementError;
use clover_workflow::judge::command;

/// Why a judge's work stopped.
#[derive(Debug, thiserror::Error)]
pub enum JudgingError {
    /// A run that asked for answers again is no run that scored rows, or the other way round.
    #[error(
        "run {0} asks for answers again, and scores no rows: its figures follow from its calls, which clover verify adds up"
    )]
    AskedAgain(RunId),
    /// A run that scores rows is open.
    #[error("run {0} of judge ask is open: it ends before answers are asked for again")]
    StillAsking(RunId),
    /// Answers that may be drawn have no row here.
    #[error(
        "{missing} of {all} answers that may be drawn have no row with their texts here: all are needed, so that nobody chooses among them"
    )]
    NotDrawable {
        /// Answers that gave a score.
        all: usize,
        /// Those without a row.
        missing: usize,
    },
    /// The judge that would be asked is not the registered one, and nobody said that it changed.
    #[error("{}", other_judge(.registered, .asked, *.seq))]
    ChangedJudge {
        /// The judge as it is asked for.
        asked: Box<JudgeRegistered>,
        /// The judge that is registered.
        registered: Box<JudgeRegistered>,
        /// Where its registration stands.
        seq: u64,
    },
    /// Two judges cannot be compared.
    #[error("{first} and {second}: {error}")]
    Compared {
        /// One judge.
        first: JudgeId,
        /// The other.
        second: JudgeId,
        /// Why not.
        error: Box<AgreementError>,
    },
    /// The anchors' scores cannot be compared.
    #[error("drift: {error}")]
    Drift {
        /// The judge.
        judge: JudgeId,
        /// Why not.
        error: DriftError,
    },
    /// Somebody asked to stop. What the judge had answered is on record.
    #[error("interrupted: {scored} rows were recorded, {left} are left")]
    Interrupted {
        /// Rows of this run that are on record.
        scored: usize,
        /// Rows without an answer.
        left: usize,
    },
    /// Fewer rows are on record than a sample needs.
    #[error("judge: expected at least 30 rows that are on record, found {0}")]
    FewRows(usize),
    /// What the judge knew is not as recorded.
    #[error("what judge {judge} knew: {found}")]
    Known {
        /// The judge.
        judge: JudgeId,
        /// What is there.
        found: String,
    },
    /// Anchors have no row.
    #[error("expected all {rows} anchor rows, {missing} are missing, first {first}")]
    MissingAnchors {
        /// Rows of the set.
        rows: usize,
        /// Rows that are missing.
        missing: usize,
        /// The first of them.
        first: String,
    },
    /// The experiment has no anchors.
    #[error("no anchor set is registered in {0}")]
    NoAnchors(ExperimentId),
    /// What a judge is told is not at hand.
    #[error("what judge {0} is told is not at hand: its blob is missing, or is no text")]
    NoPrompt(JudgeId),
    /// What a judge is told is another text than the one that it was registered with.
    #[error(
        "what judge {0} is told is kept, and is not the text whose hash its registration names"
    )]
    OtherPrompt(JudgeId),
    /// The rules in force do not keep what a judge is told.
    #[error(
        "a judge that is told a text of its own needs rulebook {0}, and an older one is in force"
    )]
    Unruled(u32),
    /// The endpoint is not registered.
    #[error("no endpoint {0} is registered")]
    NoEndpoint(EndpointId),
    /// Calls cost something, and nobody pays.
    #[error("calls of this endpoint cost something, and no account is named")]
    NoAccount,
    /// The account was never opened.
    #[error("no account {0} is open")]
    UnknownAccount(AccountId),
    /// No table has a price of the model.
    #[error("no table of prices has a price of {model} at {provider}")]
    Unpriced {
        /// The model that has to answer.
        model: String,
        /// Whoever runs the endpoint.
        provider: String,
    },
    /// Whoever answers for scores may not spend from the account.
    #[error("the key that signs the run may not spend from {account}, which {spenders} may")]
    NoSpender {
        /// The account.
        account: AccountId,
        /// Roles that may spend from it.
        spenders: String,
    },
    /// A run that is open has another account or another cap.
    #[error(
        "{run} is open with {} and {}, and goes on under them",
        account.as_ref().map_or_else(|| "no account".to_owned(), |of| format!("the account {of}")),
        cap.map_or_else(|| "no cap".to_owned(), |of| format!("a cap of {of} millionths of a dollar")),
    )]
    OtherTerms {
        /// Its account.
        account: Option<AccountId>,
        /// Its cap, in millionths of a dollar.
        cap: Option<Count>,
        /// The run.
        run: RunId,
    },
    /// A row was scored or missed with another text: an answer about this one would be a second try.
    #[error("line {line}: {item} was asked about with another text")]
    OtherText {
        /// The item.
        item: ItemId,
        /// The row's line, from 1.
        line: u64,
    },
    /// No run has the name.
    #[error("no run {0}")]
    NoRun(RunId),
    /// The plan of a judge behind HTTP is not at hand, or a call by it cannot be read again.
    #[error("{judge}: {what}")]
    NoPlan {
        /// The judge.
        judge: JudgeId,
        /// What is wrong.
        what: String,
    },
    /// A file is no cassette.
    #[error(transparent)]
    Cassette(CassetteError),
    /// The run ended before.
    #[error("{0} ended before: nothing is held for it")]
    RunEnded(RunId),
    /// The texts of a row are too long for one ask.
    #[error("line {line}: its texts have more than 60,000 characters")]
    Overlong {
        /// The row's line, from 1.
        line: u64,
    },
    /// A score of a judge behind HTTP names no call.
    #[error("the score of {item} by {judge} names no call")]
    NoCall {
        /// The item.
        item: ItemId,
        /// The judge.
        judge: JudgeId,
    },
    /// A run that was cut goes on with the rows that it was opened with.
    #[error("{0} is open, and these rows give other asks than those that it was opened with")]
    OtherRows(RunId),
    /// Another process asks for the judge.
    #[error("another process asks for {0} now")]
    Busy(JudgeId),
    /// A run went on elsewhere.
    #[error("{0} ended, or went on elsewhere")]
    TakenOver(RunId),
    /// Another judge asked the same, and its call is the only one of that ask.
    #[error(
        "line {line}: {judge} asked the same before, and the answer counts once: read its score, or change the plan"
    )]
    AskedElsewhere {
        /// The experiment of the judge that asked.
        experiment: Option<ExperimentId>,
        /// That judge.
        judge: JudgeId,
        /// The row's line, from 1.
        line: u64,
    },
    /// A row cannot be judged.
    #[error("line {line}: {item} has no prompt, or no response")]
    NoTexts {
        /// The row's line, from 1.
        line: u64,
        /// Its item.
        item: ItemId,
    },
    /// The built-in judge is asked about rows without texts.
    #[error(
        "the built-in judge reads texts, and {item} was taken in without: a program that knows them can judge it"
    )]
    Textless {
        /// The first of them.
        item: ItemId,
    },
    /// The judge is not registered.
    #[error("judge: {judge} is not registered in {experiment}")]
    NotRegistered {
        /// The judge.
        judge: JudgeId,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// Another judge is registered under the name.
    #[error("{}", other_judge(.registered, .asked, *.seq))]
    OtherJudge {
        /// The judge as it is asked for.
        asked: Box<JudgeRegistered>,
        /// The judge that is registered.
        registered: Box<JudgeRegistered>,
        /// Where its registration stands.
        seq: u64,
    },
    /// Records are missing, or not as recorded.
    #[error("the records of seq {seq}: {what}")]
    Records {
        /// The event that names them.
        seq: u64,
        /// What is wrong with them.
        what: String,
    },
    /// A rule would refuse the score of a row.
    #[error("line {line}: {rule}: expected {expected}, found {found}")]
    Row {
        /// The row's line, from 1.
        line: u64,
        /// The rule.
        rule: &'static str,
        /// What it would accept.
        expected: &'static str,
        /// What it found.
        found: String,
    },
    /// The judge is the registered one, though it was said to have changed.
    #[error("this is the judge that was registered")]
    SameJudge,
    /// The experiment has several anchor sets, and none was named.
    #[error("several anchor sets: {}", names(.0))]
    SeveralAnchors(Vec<AnchorSetId>),
    /// Several manifests in force register thresholds.
    #[error("several manifests register thresholds of checks of drift: {}", names(.0))]
    SeveralPlans(Vec<ManifestId>),
    /// The judge gave no score. Rows that it scored before are on record.
    #[error("{place}{error}; {scored} rows were recorded before")]
    Stopped {
        /// The item that it was asked about, as `item: `; empty where it failed at its end.
        place: String,
        /// What the judge, or the program behind it, says.
        error: JudgeError,
        /// Rows of this run that are on record.
        scored: usize,
    },
    /// The judge gave no score, and nothing of the step is on record.
    #[error("{what}: {error}; nothing of it was recorded")]
    Unanswered {
        /// The step.
        what: String,
        /// What the judge, or the program behind it, says.
        error: JudgeError,
    },
}

fn names<T: fmt::Display>(all: &[T]) -> String {
    let names: Vec<_> = all.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn other_judge(registered: &JudgeRegistered, asked: &JudgeRegistered, seq: u64) -> String {
    let (judge, port, model) = (
        &registered.judge,
        registered.port.as_str(),
        registered.model.as_str(),
    );
    let of = |judge: &JudgeRegistered| {
        let name = command::name(judge.model.as_str()).to_owned();
        (
            name,
            command::files(judge.model.as_str()).map(str::to_owned),
        )
    };
    let ((name, files), (other_name, other_files)) = (of(registered), of(asked));
    let parts = [
        ("port", registered.port != asked.port),
        ("model", name != other_name),
        ("program", files != other_files),
        ("prompt", registered.prompt_hash != asked.prompt_hash),
        ("scale", registered.scale != asked.scale),
        ("extractor", registered.extractor != asked.extractor),
        (
            "known data",
            registered.tool_snapshot != asked.tool_snapshot,
        ),
        (
            "fields of evidence",
            registered.evidence_schema != asked.evidence_schema,
        ),
    ];
    let differ = parts.into_iter().filter(|(_, differs)| *differs);
    let differ: Vec<_> = differ.map(|(part, _)| part).collect();
    let differ = match differ.as_slice() {
        [] => "what it was told differs".to_owned(),
        [one] => format!("its {one} differs"),
        all => format!("these differ: {}", all.join(", ")),
    };
    format!(
        "judge: {judge} is registered at seq {seq} as {port} {model}, and this is another judge: {differ}"
    )
}

impl JudgingError {
    /// The judge stopped at an item, after so many rows of this run were recorded.
    pub fn stopped_at(item: impl fmt::Display, error: JudgeError, scored: usize) -> Self {
        let place = format!("{item}: ");
        Self::Stopped {
            place,
            error,
            scored,
        }
    }

    /// The judge failed at its end, after so many rows of this run were recorded.
    pub fn stopped_at_end(error: JudgeError, scored: usize) -> Self {
        let place = String::new();
        Self::Stopped {
            place,
            error,
            scored,
        }
    }
}
