//! Scores of a run whose judge is behind HTTP: which prompt it is told, as which judge each repeat is asked, and what its calls
//! gave. The question `asked_scores` holds what was said against it.

use clover_event::id::JudgeId;
use clover_event::payload::model_runs::JudgeRunOpened;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::scoring::repeated_name;
use clover_event::payload::sgd::SgdMissed;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdScored;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::judges::Judges;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdRuns;
use clover_projection::sgd::ToldScore;
use clover_projection::sgd::asked_scores;
use clover_prompt::JudgePrompt;

use crate::prompts;
use crate::sgd::course::SgdCourse;

/// The hash of a prompt as a judge is told it: SHA-256 of its rendering.
pub fn prompt_hash(prompt: &JudgePrompt) -> Digest {
    Digest::sha256(prompt.render().as_bytes())
}

/// The prompt of a digest under which rows of a part are due.
///
/// # Errors
/// [`Unmet`] where another is due.
pub fn prompt_of(
    course: &SgdCourse<'_>,
    part: SgdPart,
    digest: Digest,
) -> Result<JudgePrompt, Unmet> {
    let prompt0 = course.prompt0();
    let is_first = prompt0.digest() == digest;
    let prompt = match part {
        SgdPart::Confirm | SgdPart::Test if is_first => prompt0.clone(),
        _ => course.scored_prompt(part)?,
    };
    if prompt.digest() == digest {
        return Ok(prompt);
    }
    Err(Unmet {
        expected: format!("rows of {part} under {}", prompt.digest()),
        found: digest.to_string(),
    })
}

/// A run of judges asks for the rows of a run of a prompt under the prompt that is due.
pub(super) fn check_told(
    state: &State,
    event: &clover_event::Event,
    said: &JudgeRunOpened,
) -> RuleAnswer {
    let Some(asked) = &said.sgd else {
        return Ok(());
    };
    let run = state.fold::<SgdRuns>().by_id.get(&asked.run);
    let run = run.required(&format!("sgd.opened of {}", asked.run))?;
    let prompt = prompt_of(&SgdCourse::of(run)?, asked.part, asked.prompt_digest)?;
    let experiment = event.header.experiment.as_ref();
    let judges = experiment.and_then(|of| state.fold::<Judges>().of(of));
    let judge = judges.and_then(|of| of.judges.get(&said.judge));
    let judge = &judge.required("a registered judge")?.said;
    let hash = prompt_hash(&prompt);
    let expected = format!(
        "a judge that is told {}, prompt_hash {hash}",
        prompt.digest()
    );
    ensure!(
        judge.prompt_hash == hash,
        expected,
        judge.prompt_hash.to_string()
    );
    let text = prompts::reference(&prompt.render());
    let expected = format!("the text of that prompt, blake3 {}", text.blake3);
    let kept = judge
        .prompt
        .as_ref()
        .required("the prompt that it is told")?;
    ensure!(*kept == text, expected, kept.blake3.to_string());
    Ok(())
}

/// The judges that a run asks under a prompt, repeat by repeat.
///
/// # Errors
/// [`Unmet`] where a name is none.
pub fn judges_of(run: &SgdRun, prompt: &JudgePrompt) -> Result<Vec<JudgeId>, Unmet> {
    let hash = prompt_hash(prompt);
    let names = (0..run.said.terms.repeats.value()).map(|repeat| {
        let repeat = Count::new(repeat).filter(|of| of.value() > 0);
        let name = repeated_name(&run.said.judge, &hash, repeat);
        name.required("a name of at most 200 bytes")
    });
    names.collect()
}

/// Scores of rows with the asks that came to none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedScores {
    /// Of each row its scores, repeat by repeat.
    pub scores: Vec<Vec<Micro>>,
    /// Asks that came to none.
    pub missed: Vec<SgdMissed>,
}

/// What calls on record give for rows, in their order; `None` where one of them is still to be asked about.
pub fn scores_of(
    state: &State,
    run: &SgdRun,
    (judges, rows): (&[JudgeId], &[&SgdRow]),
) -> Option<AskedScores> {
    let told = state.fold::<SgdRuns>().told.get(&run.experiment);
    let mut found = AskedScores::default();
    for (place, row) in rows.iter().enumerate() {
        let mut scores = Vec::with_capacity(judges.len());
        for (repeat, judge) in judges.iter().enumerate() {
            let of = told.and_then(|all| all.get(judge));
            let of = of.map_or_else(ToldScore::default, |of| of.of(row));
            match of.score {
                Some(score) => scores.push(score),
                None if of.is_final() => found.missed.push(SgdMissed {
                    row: Count::new(place as u64)?,
                    repeat: Count::new(repeat as u64)?,
                }),
                None => return None,
            }
        }
        found.scores.push(scores);
    }
    Some(found)
}

/// The judge of a run, where its scores have to stand on calls.
pub fn judge_of<'a>(state: &'a State, run: &SgdRun) -> Option<&'a JudgeRegistered> {
    let is_asked = state.asks(Question::AskedScores);
    asked_scores::judge_of(state, run).filter(|_| is_asked)
}

/// Scores are what calls on record give, and misses as well.
pub(super) fn check_scored(
    state: &State,
    (course, run): (&SgdCourse<'_>, &SgdRun),
    said: &SgdScored,
) -> RuleAnswer {
    if judge_of(state, run).is_none() {
        let expected = "misses only of a judge behind HTTP";
        ensure!(
            said.missed.is_empty(),
            expected,
            said.missed.len().to_string()
        );
        return Ok(());
    }
    let prompt = prompt_of(course, said.part, said.prompt_digest)?;
    let (_, rows) = asked_scores::unscored(run, said.part, said.prompt_digest);
    let rows: Vec<_> = rows.into_iter().take(said.scores.len()).collect();
    let found = scores_of(state, run, (&judges_of(run, &prompt)?, &rows));
    let found = found.required("an answer to each ask about these rows")?;
    let other = found
        .scores
        .iter()
        .zip(&said.scores)
        .position(|(a, b)| a != b);
    let expected = "the scores that calls on record gave";
    let place = other.map_or_else(String::new, |place| format!("others of row {place}"));
    ensure!(other.is_none(), expected, place);
    let expected = format!("{} misses, those on record", found.missed.len());
    let count = said.missed.len().to_string();
    ensure!(found.missed == said.missed, expected, count);
    Ok(())
}
