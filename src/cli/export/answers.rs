//! What may be claimed of what a ledger holds, as `clover estimate` and `clover gate show` say it, for extracts.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::report::answered;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::payload::estimate::EstimateRecorded;
use crate::export::extract::ClaimedValue;
use crate::export::extract::GateAnswer;
use crate::export::extract::RecordedAnswers;
use crate::export::extract::ValuesAnswer;
use crate::ledger::Ledger;
use crate::view::estimate::said;
use crate::view::gate::verdict;
use crate::view::values;
use crate::view::values::Ends;
use crate::view::word;

/// The newest estimate of each policy over all its rows.
type NewestEstimates = BTreeMap<PolicyId, (u64, EventId, EstimateRecorded)>;

/// What may be claimed of everything, or of one experiment.
pub(super) fn recorded(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    experiment: Option<&ExperimentId>,
) -> Result<RecordedAnswers, CliError> {
    let gates = verdict::graded_claims(ledger.state()).map(|(id, said)| {
        let answer = GateAnswer {
            grade: word(&said.grade),
            text: said.words.to_owned(),
            may_be_claimed: said.may_be_claimed,
        };
        (id.clone(), answer)
    });
    let mut answers = RecordedAnswers {
        values: Vec::new(),
        gates: gates.collect(),
        withheld: BTreeSet::new(),
    };
    for ((id, judge), newest) in newest(ledger, &mut answers.withheld)? {
        if experiment.is_none_or(|of| *of == id) {
            answers.values.push(answered(ctx, (id, judge), &newest)?);
        }
    }
    Ok(answers)
}

/// The newest estimates by experiment and judge; also the positions of all values and differences that are withheld now.
fn newest(
    ledger: &Ledger,
    withheld: &mut BTreeSet<u64>,
) -> Result<BTreeMap<(ExperimentId, JudgeId), NewestEstimates>, CliError> {
    let mut newest: BTreeMap<_, NewestEstimates> = BTreeMap::new();
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let (seq, event) = (read.stored.seq, &read.event);
        if event
            .experiment()
            .is_some_and(|of| said::is_withheld_now(ledger.state(), of, &event.payload))
        {
            withheld.insert(seq);
        }
        let Some(said) = event.said::<EstimateRecorded>() else {
            return Ok(());
        };
        // What was estimated inside of an environment says nothing of the other rows.
        if let (None, Some(experiment)) = (&said.terms.environment, event.experiment()) {
            let of = (experiment.clone(), said.terms.judge.clone());
            let policies = newest.entry(of).or_default();
            policies.insert(said.policy.clone(), (seq, event.id, said.clone()));
        }
        Ok(())
    })?;
    Ok(newest)
}

/// What is claimed of a judge's values: those on record that the rows still give.
fn answered(
    ctx: &mut Ctx<'_>,
    (experiment, judge): (ExperimentId, JudgeId),
    newest: &NewestEstimates,
) -> Result<ValuesAnswer, CliError> {
    let mut answer = ValuesAnswer {
        experiment: experiment.clone(),
        judge: judge.clone(),
        text: String::new(),
        values: Vec::new(),
    };
    let last = newest.values().max_by_key(|(seq, ..)| *seq);
    let Some((_, _, last)) = last else {
        return Ok(answer);
    };
    let opened = home::open_to_read(ctx)?;
    let policies: Vec<PolicyId> = newest.keys().cloned().collect();
    let of = (&last.terms, policies.as_slice());
    let said = answered::by_recorded(opened, &experiment, of, None, |shown| {
        let (text, claimed) = shown.claimed();
        answer.text = text;
        let percent = values::percent(shown.found.analysis.alpha);
        for (row, interval) in claimed {
            take(&mut answer, newest, (row, interval, &percent));
        }
    });
    if let Err(error) = said {
        answer.text = format!("Nothing of it may be claimed: {error}");
    }
    Ok(answer)
}

/// Takes a value that may be claimed into an answer, where it is the one on record.
fn take(
    answer: &mut ValuesAnswer,
    newest: &NewestEstimates,
    (row, interval, percent): (&EstimateRecorded, Option<Ends>, &str),
) {
    let known = newest.get(&row.policy);
    let same = known.filter(|(_, _, said)| answered::is_same(said, row));
    let Some((seq, event, _)) = same else {
        answer.text.push_str(&format!(
            " The value of {} on record is another: `clover estimate` records this one.",
            row.policy
        ));
        return;
    };
    let scale = row.terms.label_scale.map_or_else(
        || ["0".to_owned(), "1".to_owned()],
        |ends| [ends.low_micro.to_string(), ends.high_micro.to_string()],
    );
    answer.values.push(ClaimedValue {
        policy: row.policy.to_string(),
        seq: *seq,
        event: *event,
        estimate: row.estimate.value(),
        interval: interval.map(|ends| ends.0),
        percent: percent.to_owned(),
        scale,
    });
}
