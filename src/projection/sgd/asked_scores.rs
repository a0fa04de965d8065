//! The question `asked_scores`: a run whose judge is behind HTTP scores nothing but what calls on record answered, about rows that
//! are due. The judge is asked as another that is told the prompt, once for each repeat; its runs name the run of the prompt.

use std::collections::BTreeMap;

use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::RunId;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::row_of_draw;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::model_runs::ScoreMissed;
use clover_event::payload::model_runs::SgdAsked;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_ground::digest::Digest;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use super::SgdRun;
use super::SgdRuns;
use super::due;
use super::rules;
use crate::judges::Judges;
use crate::runs;
use crate::runs::ModelRun;
use crate::runs::ModelRuns;

/// How often an ask that nobody answers is put before the row counts as missed.
pub const MISSES_MAX: u64 = 3;

/// Judges that are told prompts, with what they said, by name.
pub type ToldJudges = BTreeMap<JudgeId, ToldJudge>;

/// What a judge that is told a prompt came to about a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldScore {
    /// How often the row was missed.
    pub misses: u64,
    /// Why, the last time.
    pub reason: Option<CallOutcome>,
    /// The score.
    pub score: Option<Micro>,
}

impl ToldScore {
    /// Whether nobody asks about the row again: it has a score, its model said something else, or it was asked often enough.
    pub fn is_final(&self) -> bool {
        let is_missed = self.reason.is_some_and(|of| !runs::is_asked_again(of));
        self.score.is_some() || is_missed || self.misses >= MISSES_MAX
    }
}

/// Rows that a judge which is told a prompt was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldJudge {
    /// By policy, item and draw.
    rows: BTreeMap<String, ToldScore>,
}

impl ToldJudge {
    /// What it came to about a row.
    pub fn of(&self, row: &SgdRow) -> ToldScore {
        let key = row_of_draw(&row.policy, &row.item, row.draw);
        self.rows.get(&key).copied().unwrap_or_default()
    }

    fn row(&mut self, (policy, item, draw): (&PolicyId, &ItemId, Count)) -> &mut ToldScore {
        let key = row_of_draw(policy, item, draw);
        self.rows.entry(key).or_default()
    }

    pub(super) fn scored(&mut self, said: &ScoreRecorded) {
        self.row((&said.policy, &said.item, said.draw)).score = Some(said.score_micro);
    }

    pub(super) fn missed(&mut self, said: &ScoreMissed) {
        let row = self.row((&said.policy, &said.item, said.draw));
        row.misses += 1;
        row.reason = Some(said.reason);
    }
}

/// Whether a judge is another behind HTTP but for the prompt that it is told.
pub fn is_told(said: &JudgeRegistered) -> bool {
    said.of.is_some() && said.port == JudgePort::Endpoint
}

/// The judge of a run as it was registered, where it is asked behind HTTP.
pub fn judge_of<'a>(state: &'a State, run: &SgdRun) -> Option<&'a JudgeRegistered> {
    asked_judge(state, &run.experiment, &run.said.judge)
}

fn asked_judge<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    judge: &JudgeId,
) -> Option<&'a JudgeRegistered> {
    let judges = state.fold::<Judges>().of(experiment)?;
    let judge = &judges.judges.get(judge)?.said;
    (judge.port == JudgePort::Endpoint).then_some(judge)
}

/// Runs of judges that score for a run of a prompt.
pub fn runs_of<'a>(state: &'a State, run: &'a RunId) -> impl Iterator<Item = &'a ModelRun> {
    let all = state.fold::<ModelRuns>().by_id.values();
    all.filter(move |of| of.said.sgd.as_ref().is_some_and(|of| of.run == *run))
}

/// What scores of a run cost so far, in millionths of a dollar.
pub fn spent(state: &State, run: &RunId) -> u64 {
    let all = runs_of(state, run).map(|of| of.settled);
    all.fold(0, u64::saturating_add)
}

/// A run says who pays for its scores exactly where its judge is behind HTTP.
pub(super) fn check_opened(
    state: &State,
    experiment: &ExperimentId,
    said: &SgdOpened,
) -> RuleAnswer {
    let judge = asked_judge(state, experiment, &said.judge);
    let is_asked = judge.is_some() && state.asks(Question::AskedScores);
    let expected = "who pays for scores, exactly where a judge behind HTTP gives them";
    let found = if said.scoring.is_some() {
        "some"
    } else {
        "none"
    };
    ensure!(is_asked == said.scoring.is_some(), expected, found);
    let is_root = judge.is_none_or(|judge| judge.of.is_none());
    let expected = "a judge of its own, which is told each prompt";
    ensure!(!is_asked || is_root, expected, said.judge.to_string());
    Ok(())
}

/// A judge that is told a prompt asks for a run of that prompt alone: its rows are due, and that run pays.
pub(super) fn check_asked(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &JudgeRunOpened,
) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let judge = asked_judge(state, experiment, &said.judge);
    let told = judge.filter(|of| is_told(of));
    let Some(told) = told.filter(|_| state.asks(Question::AskedScores)) else {
        let expected = "a run of a prompt only of a judge that is told it";
        ensure!(said.sgd.is_none(), expected, "one");
        return Ok(());
    };
    let asked = said.sgd.as_ref();
    let asked = asked.required("the run of a prompt that it scores for")?;
    let run = state.fold::<SgdRuns>().by_id.get(&asked.run);
    let run = run.required(&format!("sgd.opened of {}", asked.run))?;
    let name = &asked.run;
    let expected = format!("the experiment of {name}, {}", run.experiment);
    ensure!(run.experiment == *experiment, expected, experiment.as_str());
    let expected = format!("the judge of {name}, {}", run.said.judge);
    let root = told.root();
    ensure!(*root == run.said.judge, expected, root.to_string());
    let repeats = run.said.terms.repeats.value();
    let repeat = told.repeat.map_or(0, Count::value);
    let expected = format!("a repeat below {repeats}");
    ensure!(repeat < repeats, expected, repeat.to_string());
    let mut open = runs_of(state, name).filter(|of| of.end.is_none());
    let other = open.next().map(|of| of.said.run.to_string());
    let expected = format!("no other open run of judges for {name}");
    ensure!(other.is_none(), expected, other.unwrap_or_default());
    check_paid(state, run, said)?;
    check_due(state, run, asked)
}

/// Scores are paid as their run was opened, and what is left of its cap is the cap of each run of judges.
fn check_paid(state: &State, run: &SgdRun, said: &JudgeRunOpened) -> RuleAnswer {
    let name = &run.said.run;
    let scoring = run.said.scoring.as_ref();
    let scoring = scoring.required(&format!("who pays for scores of {name}"))?;
    let word = |of: Option<String>| of.unwrap_or_else(|| "none".to_owned());
    let (wanted, found) = (&scoring.account, &said.account);
    let expected = format!(
        "the account of {name}, {}",
        word(wanted.as_ref().map(ToString::to_string))
    );
    let shown = word(found.as_ref().map(ToString::to_string));
    ensure!(wanted == found, expected, shown);
    let spent = spent(state, name);
    let left = scoring
        .cap_usd_micro
        .map(|cap| cap.value().saturating_sub(spent));
    let expected = format!(
        "a cap of {}, what {name} has left",
        word(left.map(|of| of.to_string()))
    );
    let found = said.cap_usd_micro.map(Count::value);
    ensure!(
        left == found,
        expected,
        word(found.map(|of| of.to_string()))
    );
    Ok(())
}

/// Rows of a part are due, under the prompt that is due; which prompt a proposal gives, `workflow` says.
fn check_due(state: &State, run: &SgdRun, asked: &SgdAsked) -> RuleAnswer {
    let name = &run.said.run;
    if asked.part == SgdPart::Confirm {
        return rules::check_confirm(state, run, asked.prompt_digest);
    }
    let due = run
        .due()
        .required(&format!("a run that is open, as {name} is not"))?;
    let is_due = due::is_scored(due, asked.part);
    ensure!(
        is_due,
        format!("{due} first"),
        format!("rows of {}", asked.part)
    );
    if asked.part == SgdPart::Test {
        rules::check_test(state, run)?;
    }
    let known: Vec<Digest> = match (asked.part, run.going()) {
        (SgdPart::Base, _) | (SgdPart::Val, None) => vec![run.said.prompt_digest],
        (SgdPart::Batch, _) => vec![run.digest()],
        (SgdPart::Test, _) => {
            let chosen = run.checkpoint.as_ref();
            let chosen = chosen.required("sgd.checkpoint_selected before test is asked about")?;
            vec![run.said.prompt_digest, chosen.prompt_digest]
        }
        _ => return Ok(()),
    };
    let is_known = known.contains(&asked.prompt_digest);
    let expected = format!("the prompt that is due, {}", known[0]);
    ensure!(is_known, expected, asked.prompt_digest.to_string());
    Ok(())
}

/// What a judge that is told a prompt says first of a text is about a row that is due.
pub(super) fn check_row(
    state: &State,
    experiment: Option<&ExperimentId>,
    (judge, call): (&JudgeId, Option<EventId>),
    row: (&PolicyId, &ItemId, Count),
) -> RuleAnswer {
    let told = experiment.and_then(|of| state.fold::<SgdRuns>().told.get(of));
    let is_told = told.is_some_and(|all| all.contains_key(judge));
    let Some((experiment, call)) = experiment.zip(call).filter(|_| is_told) else {
        return Ok(());
    };
    let open = state.fold::<ModelRuns>().open(experiment, judge);
    // A further row with the same text says nothing that is not known.
    let Some(open) = open.filter(|of| of.unnamed.contains(&call)) else {
        return Ok(());
    };
    let asked = open.said.sgd.as_ref();
    let asked = asked.required("the run of a prompt that it scores for")?;
    let run = state.fold::<SgdRuns>().by_id.get(&asked.run);
    let run = run.required(&format!("sgd.opened of {}", asked.run))?;
    let is_due = is_unscored(run, asked, row);
    let expected = format!("a row of {} that is due in {}", asked.part, asked.run);
    ensure!(is_due, expected, row_of_draw(row.0, row.1, row.2));
    Ok(())
}

/// Whether a row of the part has no scores yet. Rows of a part ascend, and those of a batch do not.
fn is_unscored(run: &SgdRun, asked: &SgdAsked, row: (&PolicyId, &ItemId, Count)) -> bool {
    let (from, due) = unscored(run, asked.part, asked.prompt_digest);
    let key = |of: &SgdRow| (&of.policy, &of.item, of.draw) == row;
    if asked.part == SgdPart::Batch {
        return due.into_iter().any(key);
    }
    let all = run.rows(asked.part.split()).get(from..).unwrap_or_default();
    let (policy, item, draw) = row;
    let at = all.partition_point(|of| (&of.item, &of.policy, of.draw) < (item, policy, draw));
    all.get(at).is_some_and(key)
}

/// A run of a prompt goes on once no judge is being asked for it.
pub(super) fn check_quiet(state: &State, run: &SgdRun) -> RuleAnswer {
    let mut open = runs_of(state, &run.said.run).filter(|of| of.end.is_none());
    let open = open.next().map(|of| of.said.run.to_string());
    let expected = "the end of the run of judges that scores for it";
    ensure!(open.is_none(), expected, open.unwrap_or_default());
    Ok(())
}

/// Rows of a part that have no scores yet, with the place of the first.
pub fn unscored(run: &SgdRun, part: SgdPart, prompt: Digest) -> (usize, Vec<&SgdRow>) {
    let step = run.going();
    let from = match part {
        SgdPart::Base => run.base.len(),
        SgdPart::Batch => step.map_or(0, |of| of.scores.len()),
        SgdPart::Val => step.map_or(run.best_scores.len(), |of| of.val_scores.len()),
        SgdPart::Confirm => run.confirm.get(&prompt).map_or(0, Vec::len),
        SgdPart::Test => run.test.get(&prompt).map_or(0, Vec::len),
    };
    let rows = run.rows(part.split());
    let all: Vec<&SgdRow> = match part {
        SgdPart::Batch => step.map_or_else(Vec::new, |of| of.batch_rows(rows)),
        _ => rows.iter().collect(),
    };
    (from, all.into_iter().skip(from).collect())
}
