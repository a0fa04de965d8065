//! A run that goes on: whatever is due is computed, asked or scored, and said, until test is all that is left.

use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::sgd::SGD_ROWS_MAX;
use clover_event::payload::sgd::SgdAgents;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd::SgdLossComputed;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRowsListed;
use clover_event::payload::sgd::SgdScored;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd_steps::SgdEnd;
use clover_event::payload::sgd_steps::SgdGradientReturned;
use clover_event::payload::sgd_steps::SgdPatchApproved;
use clover_event::payload::sgd_steps::SgdPatchProposed;
use clover_event::payload::sgd_steps::SgdPatchRejected;
use clover_event::payload::sgd_steps::SgdStopped;
use clover_event::payload::sgd_steps::SgdWord;
use clover_event::payload::synth_runs::LeakTest;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::judges::Judges;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::due::SgdDue;
use clover_prompt::JudgePrompt;
use clover_workflow::judge::simulated;
use clover_workflow::sgd::agents::Agents;
use clover_workflow::sgd::agents::Aggregate;
use clover_workflow::sgd::asked as scored;
use clover_workflow::sgd::course;
use clover_workflow::sgd::course::SgdCourse;
use clover_workflow::sgd::forward::Forward;
use clover_workflow::sgd::forward::SimulatedForward;
use clover_workflow::sgd::forward::ToldForward;
use clover_workflow::sgd::forward::is_simulated;
use clover_workflow::sgd::leak::ProtectedTexts;
use clover_workflow::sgd::rows;
use clover_workflow::sgd::verdict;
use clover_workflow::sgd::verdict::PatchVerdict;

use crate::asking;
use crate::asking::AskStop;
use crate::asking::ModelSender;
use crate::error::SessionError;
use crate::judge::registration;
use crate::ports::Ports;
use crate::ports::Work;
use crate::sgd::SgdBench;
use crate::sgd::SgdError;
use crate::sgd::asked;
use crate::sgd::count;
use crate::sgd::scoring;

/// Rows of a program's judge between two entries: so many answers are lost at most where a run is killed.
const ASKED_ROWS: usize = 16;

/// How far a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SgdPause {
    /// The model gave no answer that ends its ask: the same command goes on.
    Ask(Box<AskStop>),
    /// Its checkpoint is chosen, and test is all that is left.
    AtTest,
    /// Somebody asked to stop: the same command goes on.
    Cut,
    /// It ended.
    Ended,
    /// As many steps were taken as were asked for.
    Steps,
    /// A proposal says always or never, and waits for a person's word.
    Waits,
}

/// Who writes gradients and patches.
pub enum SgdAnswering<'a> {
    /// The pair of this program.
    Aggregate,
    /// A model behind HTTP.
    Model(ModelSender<'a>),
    /// A program of this machine.
    Program(&'a mut dyn Agents),
}

/// A run that goes on.
pub struct SgdRunning<'b> {
    pub(super) bench: &'b mut SgdBench,
    judge: JudgeRegistered,
    forward: Option<Box<dyn Forward>>,
    pub(super) is_agreed: bool,
    /// Whether somebody agreed to what scores may cost.
    pub(super) is_scoring_agreed: bool,
    leak: Option<ProtectedTexts>,
}

impl std::fmt::Debug for SgdRunning<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SgdRunning({})", self.bench.id)
    }
}

impl<'b> SgdRunning<'b> {
    /// The run of a bench, with its judge.
    ///
    /// # Errors
    /// [`SgdError::NoJudge`].
    pub fn new(bench: &'b mut SgdBench) -> Result<Self, SessionError> {
        let run = bench.run()?;
        let judges = bench.ledger.state().fold::<Judges>().of(&run.experiment);
        let judge = judges.and_then(|of| of.judges.get(&run.said.judge));
        let judge = judge.ok_or_else(|| SgdError::NoJudge {
            judge: run.said.judge.clone(),
            experiment: run.experiment.clone(),
        })?;
        let judge = judge.said.clone();
        Ok(Self {
            bench,
            judge,
            forward: None,
            is_agreed: false,
            is_scoring_agreed: false,
            leak: None,
        })
    }

    pub(super) fn run(&self) -> Result<&SgdRun, SgdError> {
        self.bench.run()
    }

    /// Goes on until test is all that is left, or as many steps were taken.
    ///
    /// # Errors
    /// [`SgdError`]; no key; what the ledger says. What was said stands, and the same call goes on.
    pub fn go(
        &mut self,
        ports: &mut dyn Ports,
        answering: &mut SgdAnswering<'_>,
        steps: Option<u64>,
    ) -> Result<SgdPause, SessionError> {
        let fits = match self.bench.run()?.said.agents {
            SgdAgents::Aggregate => matches!(answering, SgdAnswering::Aggregate),
            SgdAgents::Command => matches!(answering, SgdAnswering::Program(_)),
            SgdAgents::Endpoint => matches!(answering, SgdAnswering::Model(_)),
        };
        if !fits {
            let words = "a run of other agents: say how they are started";
            return Err(SgdError::Agents(words.to_owned()).into());
        }
        let _alone = match answering {
            SgdAnswering::Model(_) => Some(asking::alone(&self.bench.home, &self.bench.id)?),
            SgdAnswering::Aggregate | SgdAnswering::Program(_) => None,
        };
        let until = steps.map(|steps| self.bench.run().map(|run| run.taken() + steps));
        let until = until.transpose()?;
        ports.heed(true)?;
        let went = self.went(ports, answering, until);
        ports.heed(false)?;
        match went {
            Err(SessionError::Sgd(error)) if matches!(*error, SgdError::Cut(_)) => {
                Ok(SgdPause::Cut)
            }
            went => went,
        }
    }

    fn went(
        &mut self,
        ports: &mut dyn Ports,
        answering: &mut SgdAnswering<'_>,
        until: Option<u64>,
    ) -> Result<SgdPause, SessionError> {
        loop {
            if ports.is_interrupted() {
                return Ok(SgdPause::Cut);
            }
            let run = self.bench.run()?;
            let (taken, all) = (run.taken(), run.last_step());
            let Some(due) = run.due() else {
                return Ok(SgdPause::Ended);
            };
            ports.progress(Work::Descending, taken, all);
            match due {
                SgdDue::Test | SgdDue::End => return Ok(SgdPause::AtTest),
                SgdDue::Batch | SgdDue::Checkpoint => {
                    if self.followed(ports)? {
                        continue;
                    }
                    if due == SgdDue::Batch && until.is_some_and(|until| taken >= until) {
                        return Ok(SgdPause::Steps);
                    }
                    self.between(ports, due)?;
                }
                SgdDue::Gradient | SgdDue::Proposal => {
                    if let Some(stop) = self.answered(ports, answering, due)? {
                        return Ok(SgdPause::Ask(Box::new(stop)));
                    }
                }
                SgdDue::Judgement => {
                    if !self.judged(ports)? {
                        return Ok(SgdPause::Waits);
                    }
                }
                SgdDue::Scores(part) => self.scored(ports, part)?,
                SgdDue::Rows(split) => self.listed(ports, split)?,
                SgdDue::Loss(part) => self.loss(ports, part)?,
                SgdDue::Request => self.request(ports)?,
                SgdDue::Commit => self.commit(ports)?,
            }
        }
    }

    /// Says the gradient or the proposal that is due; why there is none, where a model gave none.
    fn answered(
        &mut self,
        ports: &mut dyn Ports,
        answering: &mut SgdAnswering<'_>,
        due: SgdDue,
    ) -> Result<Option<AskStop>, SessionError> {
        let agents: &mut dyn Agents = match answering {
            SgdAnswering::Model(sender) => return self.asked(ports, sender, due),
            SgdAnswering::Aggregate => &mut Aggregate,
            SgdAnswering::Program(program) => *program,
        };
        if due == SgdDue::Gradient {
            self.gradient(ports, agents)?;
        } else {
            self.proposal(ports, agents)?;
        }
        Ok(None)
    }

    fn listed(&mut self, ports: &mut dyn Ports, split: SgdSplit) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let of = (&run.experiment, run.said.through_seq.value());
        let all = rows::labelled(&self.bench.ledger, of, run.said.terms.target)?;
        let seed = course::splits_seed(self.bench.ledger.state(), run).map_err(SgdError::from)?;
        let parts = rows::parts(all, seed);
        let from = run.rows(split).len();
        let rows = parts.get(&split).into_iter().flatten().skip(from);
        let said = SgdRowsListed {
            first: count(from),
            rows: rows.take(rows::LISTED_MAX).cloned().collect(),
            run: self.bench.id.clone(),
            split,
        };
        self.bench.say(ports, said)?;
        Ok(())
    }

    /// What the numbers call for after a step: a reversion, then a stop.
    fn followed(&mut self, ports: &mut dyn Ports) -> Result<bool, SessionError> {
        let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
        if let Some(said) = course.reverted().map_err(SgdError::from)? {
            self.bench.say(ports, said)?;
            return Ok(true);
        }
        if let Some(said) = course.stop().map_err(SgdError::from)? {
            self.bench.say(ports, said)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn between(&mut self, ports: &mut dyn Ports, due: SgdDue) -> Result<(), SessionError> {
        let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
        if due == SgdDue::Batch {
            let said = course.batch().map_err(SgdError::from)?;
            self.bench.say(ports, said)?;
        } else {
            let said = course.checkpoint().map_err(SgdError::from)?;
            self.bench.say(ports, said)?;
        }
        Ok(())
    }

    fn loss(&mut self, ports: &mut dyn Ports, part: SgdPart) -> Result<(), SessionError> {
        let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
        let said: SgdLossComputed = course.loss_computed(part).map_err(SgdError::from)?;
        self.bench.say(ports, said)?;
        Ok(())
    }

    pub(super) fn commit(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
        let said = course.committed().map_err(SgdError::from)?;
        self.bench.say(ports, said)?;
        Ok(())
    }

    /// Builds the request, looks through it for rows, and says it.
    fn request(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
        let mut said = course.requested().map_err(SgdError::from)?;
        said.leak_test = self.leak_test(said.request.as_str())?;
        self.bench.say(ports, said)?;
        Ok(())
    }

    /// Looks a text through for what stands in a row.
    pub(super) fn leak_test(&mut self, text: &str) -> Result<LeakTest, SessionError> {
        if self.leak.is_none() {
            let course = SgdCourse::of(self.bench.run()?).map_err(SgdError::from)?;
            let known = course.prompt0().render();
            let ids = self.ids()?;
            let texts = self.bench.texts()?.values();
            let texts = texts.flat_map(|row| row.prompt.iter().chain(&row.response));
            let texts: Vec<String> = texts.cloned().collect();
            self.leak = Some(ProtectedTexts::of(&known, &ids, &texts));
        }
        let Some(leak) = &self.leak else {
            return Ok(LeakTest::default());
        };
        if let Some(what) = leak.found_in(text) {
            let run = self.bench.id.clone();
            return Err(SgdError::Leak { run, what }.into());
        }
        Ok(LeakTest {
            ids: leak.ids(),
            texts: leak.texts(),
            unreadable: Count::default(),
        })
    }

    fn ids(&self) -> Result<Vec<String>, SessionError> {
        let run = self.bench.run()?;
        let all = run.rows.values().flatten();
        let mut ids: Vec<String> = all.map(|row| row.item.to_string()).collect();
        ids.dedup();
        Ok(ids)
    }

    fn gradient(
        &mut self,
        ports: &mut dyn Ports,
        agents: &mut dyn Agents,
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let step = Count::new(run.taken()).unwrap_or_default();
        let request = run.going().and_then(|step| step.request.as_ref());
        let request = request.map(|of| of.request.as_str().to_owned());
        let answer = agents.gradient(&request.unwrap_or_default());
        let gradient = answer.map_err(SgdError::Agents)?;
        // What agents say wrong is wrong with them, and not with the ledger.
        let gradient = course::gradient(&gradient)
            .map_err(|unmet| SgdError::Agents(format!("expected {}", unmet.found)))?;
        self.leak_test(gradient.as_str())?;
        let said = SgdGradientReturned {
            call: None,
            gradient,
            run: self.bench.id.clone(),
            step,
        };
        self.bench.say(ports, said)?;
        Ok(())
    }

    fn proposal(
        &mut self,
        ports: &mut dyn Ports,
        agents: &mut dyn Agents,
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let course = SgdCourse::of(run).map_err(SgdError::from)?;
        let step = run.taken();
        let attempt = run.going().map_or(0, |step| step.proposed.len());
        let parent_digest = run.digest();
        let ask = course.ask().map_err(SgdError::from)?;
        let answer = agents.propose(&ask).map_err(SgdError::Agents)?;
        let Some(answer) = answer else {
            return self.commit(ports);
        };
        let too_long = || SgdError::Agents("a proposal of more than 32768 bytes".to_owned());
        let patch = SgdDocument::new(answer).ok_or_else(too_long)?;
        let said = SgdPatchProposed {
            attempt: count(attempt),
            call: None,
            parent_digest,
            patch,
            run: self.bench.id.clone(),
            step: Count::new(step).unwrap_or_default(),
        };
        self.bench.say(ports, said)?;
        Ok(())
    }

    /// Judges the proposal that stands; false where a person has to speak first.
    fn judged(&mut self, ports: &mut dyn Ports) -> Result<bool, SessionError> {
        let run = self.bench.run()?;
        let course = SgdCourse::of(run).map_err(SgdError::from)?;
        let verdict = course.verdict().map_err(SgdError::from)?;
        let standing = run.going().and_then(|step| step.standing()).cloned();
        let standing = standing.ok_or_else(|| SgdError::NoneWaits(self.bench.id.clone()))?;
        // Patches add up: what the whole prompt holds of a row is held against prompt 0 too.
        let mut texts = vec![standing.patch.as_str().to_owned()];
        if let PatchVerdict::Valid(patch) = &verdict {
            texts.push(patch.prompt.render());
        }
        let leaks = texts
            .iter()
            .try_for_each(|text| self.leak_test(text).map(drop));
        let violations = match (verdict, leaks) {
            (_, Err(SessionError::Sgd(error))) if matches!(*error, SgdError::Leak { .. }) => {
                vec![verdict::leaked()]
            }
            (_, Err(error)) => return Err(error),
            (PatchVerdict::Valid(_), Ok(())) => {
                self.scored(ports, SgdPart::Val)?;
                return Ok(true);
            }
            (PatchVerdict::Waits, Ok(())) => return Ok(false),
            (PatchVerdict::Broken(violations), Ok(())) => violations,
        };
        let said = SgdPatchRejected {
            attempt: standing.attempt,
            run: self.bench.id.clone(),
            step: standing.step,
            violations,
        };
        self.bench.say(ports, said)?;
        Ok(true)
    }

    /// Whether the run's judge is the simulated one of this program.
    pub fn is_simulated(&self) -> bool {
        is_simulated(&self.judge)
    }

    fn forward(&mut self, ports: &mut dyn Ports) -> Result<&mut Box<dyn Forward>, SessionError> {
        if self.forward.is_none() {
            let made: Box<dyn Forward> = if is_simulated(&self.judge) {
                Box::new(SimulatedForward {
                    is_null: self.judge.model.as_str() == simulated::NULL_MODEL,
                })
            } else {
                let ledger = &self.bench.ledger;
                Box::new(ToldForward::new(registration::opened(
                    ports,
                    ledger,
                    &self.judge,
                )?))
            };
            self.forward = Some(made);
        }
        self.forward
            .as_mut()
            .ok_or_else(|| SgdError::NoRun(self.bench.id.clone()).into())
    }

    /// Scores the next rows of a part.
    pub(super) fn scored(
        &mut self,
        ports: &mut dyn Ports,
        part: SgdPart,
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let course = SgdCourse::of(run).map_err(SgdError::from)?;
        let prompt = course.scored_prompt(part).map_err(SgdError::from)?;
        self.scored_under(ports, part, &prompt)
    }

    /// Scores the next rows of a part under a prompt.
    pub(super) fn scored_under(
        &mut self,
        ports: &mut dyn Ports,
        part: SgdPart,
        prompt: &JudgePrompt,
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        if let Some(judge) = scored::judge_of(self.bench.ledger.state(), run) {
            let judge = judge.clone();
            return self.asked_about(ports, &judge, (part, prompt));
        }
        let step = course::step_of(run, part);
        let (first, rows) = course::unscored(run, part, prompt.digest());
        let most = if self.is_simulated() {
            SGD_ROWS_MAX
        } else {
            ASKED_ROWS
        };
        let rows: Vec<_> = rows.into_iter().take(most).cloned().collect();
        let repeats = run.said.terms.repeats.value();
        let judge = run.said.judge.clone();
        let with_texts = self.bench.with_texts(&rows)?;
        let text = prompt.render();
        let forward = self.forward(ports)?;
        let mut scores = Vec::with_capacity(with_texts.len());
        for row in &with_texts {
            let found = forward.scores(&text, row, repeats);
            scores.push(found.map_err(|error| SgdError::Judge {
                judge: judge.clone(),
                error,
            })?);
        }
        // An outage of the judge is no answer: nothing of it stands on record, least of all of test.
        if !scores.is_empty() && scores.iter().all(Vec::is_empty) {
            let rows = scores.len();
            return Err(SgdError::NothingRead { judge, rows }.into());
        }
        let said = SgdScored {
            first: count(first),
            missed: Vec::new(),
            part,
            prompt_digest: prompt.digest(),
            run: self.bench.id.clone(),
            scores,
            step: Count::new(step).unwrap_or_default(),
        };
        self.bench.say(ports, said)?;
        Ok(())
    }
}

/// Says a person's word about the proposal that stands.
///
/// # Errors
/// [`SgdError::NoneWaits`]; no key; what the ledger says.
pub fn spoken(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    word: SgdWord,
) -> Result<(), SessionError> {
    let run = bench.run()?;
    let standing = waiting(run).cloned();
    let standing = standing.ok_or_else(|| SgdError::NoneWaits(bench.id.clone()))?;
    let said = SgdPatchApproved {
        attempt: standing.attempt,
        decision: word,
        patch_digest: Digest::sha256(standing.patch.as_str().as_bytes()),
        run: bench.id.clone(),
        step: standing.step,
    };
    bench.say(ports, said)?;
    Ok(())
}

/// The proposal that waits for a person.
pub fn waiting(run: &SgdRun) -> Option<&SgdPatchProposed> {
    let is_due = run.due() == Some(SgdDue::Judgement);
    let step = run.going().filter(|_| is_due)?;
    let standing = step.standing()?;
    let is_silent = step.word(standing.attempt.value()).is_none();
    let course = SgdCourse::of(run).ok()?;
    let waits = matches!(course.verdict().ok()?, PatchVerdict::Waits);
    (waits && is_silent).then_some(standing)
}

/// Ends a run by a person's word.
///
/// # Errors
/// [`SgdError::Ended`]; no key; what the ledger says.
pub fn stop(bench: &mut SgdBench, ports: &mut dyn Ports) -> Result<(), SessionError> {
    scoring::ended(bench, ports)?;
    asked::freed(bench, ports)?;
    ended(bench, ports, SgdEnd::Person)
}

/// Says how a run ended.
pub(super) fn ended(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    reason: SgdEnd,
) -> Result<(), SessionError> {
    let run = bench.run()?;
    if run.end.is_some() {
        return Err(SgdError::Ended(bench.id.clone()).into());
    }
    let said = SgdStopped {
        reason,
        run: bench.id.clone(),
        steps: Count::new(run.taken()).unwrap_or_default(),
    };
    bench.say(ports, said)?;
    Ok(())
}
