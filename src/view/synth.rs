//! Runs of optimizers that see only cards: what one returned, what that is worth on dev, how it ended, and every run.

use serde::Serialize;

use crate::event::id::IterationId;
use crate::event::id::PatchId;
use crate::event::id::RunId;
use crate::event::payload::Verdict;
use crate::event::payload::predicate::Criterion;
use crate::event::payload::synth_runs::AnswerState;
use crate::event::payload::synth_runs::CandidateCode;
use crate::event::payload::synth_runs::LeakTest;
use crate::event::payload::synth_runs::OptimizerKind;
use crate::event::payload::synth_runs::SynthCandidate;
use crate::event::payload::synth_runs::SynthEnd;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::iterations::record::IterationRecord;
use crate::projection::iterations::record::SynthRecord;
use crate::projection::synths::Synths;
use crate::projection::synths::is_passing;
use crate::rubric::Patch;
use crate::session::iterate::synth;
use crate::session::iterate::synth::SynthCut;
use crate::session::iterate::synth::SynthOutcome;
use crate::view::Exit;
use crate::view::View;
use crate::view::synth_asked;
use crate::view::synth_asked::SynthCalls;
use crate::workflow::judge::command;
use crate::workflow::synth::progress::Progress;
use crate::workflow::synth::view::OptimizerView;

/// One candidate that an optimizer returned.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReturnedCandidate {
    /// The round, from 0.
    pub round: u64,
    /// Name of the patch; `null` where its document cannot be read.
    pub patch: Option<String>,
    /// What it changes, a leaf each.
    pub changes: Vec<String>,
    /// Hash of its diff; `null` for one that is no patch.
    pub patch_hash: Option<Digest>,
    /// Why it is none; `null` for a patch that passed every check.
    pub code: Option<CandidateCode>,
    /// Risk improvement on dev, negative when better; `null` where the dev objective was not asked.
    pub risk_improve_dev: Option<Finite>,
    /// Whether the dev objective lets it be proposed; `null` where it was not asked.
    pub passes: Option<bool>,
    /// Criteria that it fails on dev.
    pub fails: Vec<Criterion>,
}

/// A run of an optimizer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SynthRunShown {
    /// The run.
    pub run: RunId,
    /// Its iteration.
    pub iteration: IterationId,
    /// What writes candidates.
    pub optimizer: String,
    /// Rounds that were answered.
    pub rounds: u64,
    /// Rounds that it may have.
    pub rounds_max: u64,
    /// Most candidates of a round.
    pub k: u64,
    /// Dev calls that it made.
    pub dev_calls: u64,
    /// Dev calls that it may make.
    pub dev_calls_max: u64,
    /// Rounds whose answer was none.
    pub unread: u64,
    /// What was returned, in order.
    pub candidates: Vec<ReturnedCandidate>,
    /// How it ended; `null` while it is open.
    pub end: Option<SynthEnd>,
    /// Patches that came of it.
    pub proposed: Vec<PatchId>,
    /// Other runs of the iteration.
    pub other_runs: u64,
    /// Calls of the model that writes candidates; `null` where a program of this machine does.
    pub asked: Option<SynthCalls>,
}

/// What an optimizer is shown, and what was looked through.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShownView {
    /// SHA-256 of its bytes.
    pub view_digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// Ids and texts of rows, none of which stands in it.
    pub leak_test: LeakTest,
    /// The view itself.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub view: OptimizerView,
}

/// A run among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SynthRow {
    /// The run.
    pub run: RunId,
    /// Its iteration.
    pub iteration: IterationId,
    /// What writes candidates.
    pub optimizer: String,
    /// Rounds that were answered.
    pub rounds: u64,
    /// Dev calls that it made.
    pub dev_calls: u64,
    /// How it ended; `null` while it is open.
    pub end: Option<SynthEnd>,
    /// Patches that came of it.
    pub proposed: Vec<PatchId>,
}

/// Every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SynthList {
    /// By name.
    pub runs: Vec<SynthRow>,
}

fn candidate(progress: &Progress<'_>, round: usize, of: &SynthCandidate) -> ReturnedCandidate {
    let yaml = of.yaml.as_ref();
    let patch = yaml.and_then(|yaml| Patch::parse(yaml.as_str().as_bytes()).ok());
    let edits = patch.iter().flat_map(|patch| &patch.edits);
    let changes = edits.map(|edit| {
        let value = serde_json::to_string(&edit.value).unwrap_or_default();
        format!("{}: {value}", edit.path)
    });
    let receipt = of.patch_hash.and_then(|hash| progress.receipt(hash));
    ReturnedCandidate {
        round: round as u64,
        changes: changes.collect(),
        patch_hash: of.patch_hash,
        code: of.code,
        risk_improve_dev: receipt.map(|of| of.risk_improve),
        passes: receipt.map(|of| is_passing(&of.answers)),
        fails: receipt
            .into_iter()
            .flat_map(|of| &of.answers)
            .filter(|of| of.verdict == Verdict::Fail)
            .map(|of| of.gate)
            .collect(),
        patch: patch.map(|patch| patch.id),
    }
}

fn facts(record: &IterationRecord, run: &SynthRecord, state: &State) -> SynthRunShown {
    let said = &run.opened.said;
    let progress = Progress::of(record, run, u64::MAX);
    let answers = run.returned.iter().enumerate();
    let candidates = answers.flat_map(|(round, answer)| {
        let all = answer.said.candidates.iter();
        all.map(move |of| (round, of))
    });
    let candidates = candidates.map(|(round, of)| candidate(&progress, round, of));
    let unread = run.returned.iter();
    let unread = unread.filter(|of| of.said.state != AnswerState::Read);
    let mine = record.proposed.iter().map(|of| &of.said);
    let mine = mine.filter(|of| of.run.as_ref() == Some(&said.run));
    SynthRunShown {
        run: said.run.clone(),
        iteration: said.iteration.clone(),
        optimizer: said.model.as_str().to_owned(),
        rounds: run.returned.len() as u64,
        rounds_max: said.rounds.value(),
        k: said.k.value(),
        dev_calls: progress.dev_calls(),
        dev_calls_max: said.dev_calls.value(),
        unread: unread.count() as u64,
        candidates: candidates.collect(),
        end: run.stopped.as_ref().map(|of| of.said.reason),
        proposed: mine.map(|of| of.patch.clone()).collect(),
        other_runs: (record.synths.len() as u64).saturating_sub(1),
        asked: synth_asked::calls(state, &said.run),
    }
}

/// How the end of a run reads.
pub fn end_in_words(end: Option<SynthEnd>) -> &'static str {
    match end {
        None => "open",
        Some(SynthEnd::DevCalls) => "no dev call is left",
        Some(SynthEnd::Duplicates) => "two rounds returned what was seen before",
        Some(SynthEnd::Empty) => "the optimizer has no more candidates",
        Some(SynthEnd::Person) => "a person stopped it",
        Some(SynthEnd::Rounds) => "every round was had",
        Some(SynthEnd::Stalled) => "two rounds brought nothing better",
        Some(SynthEnd::Unreadable) => "half of what two rounds returned cannot be read",
    }
}

fn names(patches: &[PatchId]) -> String {
    let names: Vec<_> = patches.iter().map(PatchId::as_str).collect();
    match &names[..] {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// The command that goes on with an open run.
fn goes_on(facts: &SynthRunShown, optimizer: OptimizerKind) -> String {
    let id = shell::word(&facts.iteration);
    let mut words = vec![format!("clover synth run {id}")];
    if optimizer == OptimizerKind::Command {
        let program = command::name(&facts.optimizer);
        words.push(format!("--optimizer {}", shell::word(program)));
    }
    if let Some(asked) = &facts.asked {
        words.push(synth_asked::options(asked));
    }
    if facts.k != synth::K {
        words.push(format!("-k {}", facts.k));
    }
    if facts.rounds_max != synth::ROUNDS {
        words.push(format!("--rounds {}", facts.rounds_max));
    }
    words.join(" ")
}

/// One run.
pub fn run(record: &IterationRecord, run: &SynthRecord, state: &State) -> View {
    let facts = facts(record, run, state);
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("iteration", facts.iteration.to_string()),
        ("optimizer", facts.optimizer.clone()),
        (
            "rounds",
            format!("{} of {}", facts.rounds, facts.rounds_max),
        ),
        (
            "dev calls",
            format!("{} of {}", facts.dev_calls, facts.dev_calls_max),
        ),
        ("end", end_in_words(facts.end).to_owned()),
        ("proposed", names(&facts.proposed)),
        ("other runs", facts.other_runs.to_string()),
    ]);
    if let Some(asked) = &facts.asked {
        view.pairs(synth_asked::pairs(asked));
    }
    if !facts.candidates.is_empty() {
        let rows = facts.candidates.iter().map(|of| {
            let state = match (of.code, of.passes) {
                (Some(code), _) => code.to_string(),
                (None, None) => "not asked".to_owned(),
                (None, Some(true)) => "passes".to_owned(),
                (None, Some(false)) => {
                    let failed: Vec<_> = of.fails.iter().map(crate::view::word).collect();
                    format!("fails {}", failed.join(", "))
                }
            };
            let worth = of
                .risk_improve_dev
                .map_or_else(String::new, |of| format!("{:+.6}", of.value()));
            vec![of.round.to_string(), state, worth, of.changes.join("; ")]
        });
        view.table(&["round", "state", "risk on dev", "changes"], rows);
    }
    if facts.unread > 0 {
        view.sentence(format!(
            "{} of {} answers were none: an optimizer gives JSON with candidates, and nothing else (schema/SYNTHESIS.md).",
            facts.unread, facts.rounds
        ));
    }
    if facts
        .candidates
        .iter()
        .any(|of| of.risk_improve_dev.is_some())
    {
        view.sentence("Risk on dev is negative where a candidate is better.");
    }
    let id = shell::word(&facts.iteration);
    view.next = match facts.end {
        None => vec![
            goes_on(&facts, run.opened.said.optimizer),
            format!("clover synth stop {}", shell::word(&facts.run)),
        ],
        Some(_) if facts.proposed.is_empty() => vec![format!("clover iterate show {id}")],
        Some(_) => vec![format!("clover iterate run {id}")],
    };
    view
}

/// A run that went on.
pub fn ran(record: &IterationRecord, outcome: &SynthOutcome, state: &State) -> View {
    let mut view = run(record, &outcome.run, state);
    match &outcome.cut {
        Some(SynthCut::Person) => {
            view.exit = Exit::Interrupted;
            view.sentence("It was cut; the same command goes on where it stopped.");
        }
        Some(SynthCut::Ask(stop)) => synth_asked::stopped(&mut view, stop),
        None if outcome.is_resumed => view.sentence("It had been opened before."),
        None => {}
    }
    view
}

/// What an optimizer is shown.
pub fn shown(of: &OptimizerView, leak_test: LeakTest) -> View {
    let bytes = of.bytes();
    let facts = ShownView {
        view_digest: Digest::sha256(&bytes),
        bytes: bytes.len() as u64,
        leak_test,
        view: of.clone(),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("cards", of.cards.len().to_string()),
        ("receipts", of.receipts.len().to_string()),
        ("rejections", of.rejections.len().to_string()),
        ("rounds left", of.left.rounds.to_string()),
        ("dev calls left", of.left.dev_calls.to_string()),
        (
            "looked through",
            format!(
                "{} texts and {} ids of rows",
                leak_test.texts, leak_test.ids
            ),
        ),
        ("view digest", facts.view_digest.to_hex()),
    ]);
    view.source(String::from_utf8_lossy(&bytes).into_owned());
    let id = shell::word(&of.iteration);
    view.with_next(format!("clover synth run {id}"))
}

/// Every run.
pub fn list(state: &State) -> View {
    let runs = state.fold::<Synths>().by_id.values().map(|run| SynthRow {
        run: run.said.run.clone(),
        iteration: run.said.iteration.clone(),
        optimizer: run.said.model.as_str().to_owned(),
        rounds: run.returned,
        dev_calls: run.dev_calls,
        end: run.end,
        proposed: run.proposed.values().cloned().collect(),
    });
    let facts = SynthList {
        runs: runs.collect(),
    };
    let mut view = View::of(&facts);
    if facts.runs.is_empty() {
        view.sentence("No optimizer was run yet.");
        return view.with_next("clover synth run ITERATION");
    }
    let rows = facts.runs.iter().map(|of| {
        vec![
            of.run.to_string(),
            of.optimizer.clone(),
            of.rounds.to_string(),
            of.dev_calls.to_string(),
            end_in_words(of.end).to_owned(),
            names(&of.proposed),
        ]
    });
    let header = ["run", "optimizer", "rounds", "dev calls", "end", "proposed"];
    view.table(&header, rows);
    view.with_next("clover synth show RUN")
}
