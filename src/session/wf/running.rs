//! A run that goes on: whatever is due is executed, judged, proposed or said, until it ends.

use clover_event::Payload;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfExecutor;
use clover_event::payload::repair::WfStrength;
use clover_flow::executor::Executor;
use clover_flow::executor::ExecutorFault;
use clover_flow::executor::simulator::SimulatedModel;
use clover_flow::executor::simulator::Strength;
use clover_flow::executor::table::Table;
use clover_flow::item::Item;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact as _;
use clover_projection::wf::due::WfDue;
use clover_workflow::wf::course;
use clover_workflow::wf::execution;
use clover_workflow::wf::execution::ExecutionPlace;
use clover_workflow::wf::execution::ExecutionSaid;
use clover_workflow::wf::verifier;

use crate::error::SessionError;
use crate::ports::Ports;
use crate::ports::Work;
use crate::wf::RepairBench;
use crate::wf::RepairError;
use crate::wf::files::RunFiles;
use crate::wf::open::SIMULATOR;

/// How far a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairPause {
    /// Somebody asked to stop: the same command goes on.
    Cut,
    /// It ended.
    Ended,
}

/// What answers for the model of a run.
enum Answers {
    /// Items as the simulator knows them, by place; its seed and strength.
    Simulated(Vec<Item>, u64, Strength),
    /// Recorded answers.
    Recorded(Box<Table>),
}

impl RepairBench {
    /// Goes on until the run ends.
    ///
    /// # Errors
    /// [`RepairError`]; no key; what the ledger says. What was said stands, and the same call goes on.
    pub fn go(&mut self, ports: &mut dyn Ports) -> Result<RepairPause, SessionError> {
        ports.heed(true)?;
        let went = self.went(ports);
        ports.heed(false)?;
        went
    }

    fn went(&mut self, ports: &mut dyn Ports) -> Result<RepairPause, SessionError> {
        let mut answers: Option<Answers> = None;
        loop {
            if ports.is_interrupted() {
                return Ok(RepairPause::Cut);
            }
            let run = self.run()?;
            let (turn, all) = (run.turns.len() as u64, run.said.terms.iterations.value());
            let due = run.due();
            match self.whole {
                Some((done, all)) => ports.progress(Work::Trying, done, all),
                None => ports.progress(Work::Repairing, turn, all),
            }
            match due {
                WfDue::Execution {
                    candidate,
                    item,
                    rerun,
                } => {
                    if answers.is_none() {
                        answers = Some(self.answers()?);
                    }
                    let place = ExecutionPlace {
                        candidate,
                        item,
                        rerun,
                    };
                    if let Some(answers) = &mut answers {
                        self.execute(ports, place, answers)?;
                    }
                }
                WfDue::Feedback(id) => self.feedback(ports, id)?,
                WfDue::Score(id) => self.score(ports, id)?,
                WfDue::Prune => {
                    let said = course::pruned(self.run()?);
                    self.say(ports, vec![said.into()], &[])?;
                }
                WfDue::Proposals => {
                    let said = course::proposal(self.run()?, self.plan());
                    let said = said.map_err(RepairError::from)?;
                    self.say(ports, vec![said], &[])?;
                }
                WfDue::Stop(reason) => {
                    let said = self.run()?.stopping(reason);
                    self.say(ports, vec![said.into()], &[])?;
                }
                WfDue::Worth => return Ok(RepairPause::Ended),
            }
        }
    }

    /// What answers for the model, from the run's private file.
    fn answers(&self) -> Result<Answers, SessionError> {
        let said = &self.run()?.said;
        let text = RunFiles::of(&self.home, &self.id, &said.truth).answers()?;
        let wrong = |fault: clover_flow::Fault| RepairError::Request {
            expected: "lines that answer for the model",
            found: format!("{}: {}", fault.path, fault.kind),
        };
        match said.executor {
            WfExecutor::Simulator => {
                let items = (1..)
                    .zip(text.lines())
                    .map(|(at, line)| Item::parse(line, at));
                let items = items.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
                let seed = said.executor_model.as_str().strip_prefix(SIMULATOR);
                let seed = seed.and_then(|seed| seed.parse().ok());
                let seed = seed.required("a model of the simulator with its seed");
                let strength = match said.cell.executor {
                    WfStrength::Strong => Strength::Strong,
                    WfStrength::Weak => Strength::Weak,
                };
                let seed = seed.map_err(RepairError::from)?;
                Ok(Answers::Simulated(items, seed, strength))
            }
            WfExecutor::Table => {
                let mut table = Table::default();
                for line in text.lines() {
                    table.add_line(line).map_err(wrong)?;
                }
                Ok(Answers::Recorded(Box::new(table)))
            }
            WfExecutor::Endpoint => Err(RepairError::Request {
                expected: "the simulator or recorded answers",
                found: "an endpoint".to_owned(),
            }
            .into()),
        }
    }

    fn execute(
        &mut self,
        ports: &mut dyn Ports,
        place: ExecutionPlace,
        answers: &mut Answers,
    ) -> Result<(), SessionError> {
        let run = self.run()?;
        let workflow = course::workflow(run, &place.candidate).map_err(RepairError::from)?;
        let at = usize::try_from(place.item).unwrap_or(usize::MAX);
        let item = self.plan().set.items.get(at).required("an item of the run");
        let item = item.map_err(RepairError::from)?;
        let one = |executor: &mut dyn Executor| {
            execution::execute(run, place, (&workflow, item), executor)
        };
        let said = match answers {
            Answers::Simulated(items, seed, strength) => {
                let model = items.get(at).and_then(|item| item.model.as_ref());
                let Some(model) = model else {
                    let fault = ExecutorFault::NotSimulated(item.id.clone());
                    return Err(RepairError::Executor(fault).into());
                };
                one(&mut SimulatedModel::new(*seed, *strength, &item.id, model))
            }
            Answers::Recorded(table) => {
                table.begin(&item.id);
                one(&mut **table)
            }
        };
        let said = said.map_err(RepairError::from)?;
        let said: ExecutionSaid = said.map_err(RepairError::Executor)?;
        let mut payloads: Vec<Payload> = said.called.into_iter().map(Payload::from).collect();
        let Some(executed) = said.executed else {
            self.say(ports, payloads, &[])?;
            return self.spent(ports);
        };
        let blobs = executed.answers.is_some().then_some(said.answers);
        let blobs: Vec<Vec<u8>> = blobs.into_iter().collect();
        payloads.push(executed.into());
        self.say(ports, payloads, &blobs)?;
        Ok(())
    }

    /// Ends a run whose budget ended within an execution.
    fn spent(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let said = self.run()?.stopping(WfEnd::Budget);
        self.say(ports, vec![said.into()], &[])?;
        Ok(())
    }

    fn feedback(&mut self, ports: &mut dyn Ports, id: Digest) -> Result<(), SessionError> {
        let workflow = course::workflow(self.run()?, &id).map_err(RepairError::from)?;
        self.outcomes(&id)?;
        let outcomes = self.outcomes.get(&id).map_or(&[][..], Vec::as_slice);
        let found = verifier::judged(self.plan(), &workflow, outcomes, &[]);
        let by = (&self.id, self.run()?.said.verifier_digest);
        let said = verifier::given(by, id, self.plan(), &found, (outcomes, &[]));
        self.say(ports, vec![said.into()], &[])?;
        Ok(())
    }

    fn score(&mut self, ports: &mut dyn Ports, id: Digest) -> Result<(), SessionError> {
        let workflow = course::workflow(self.run()?, &id).map_err(RepairError::from)?;
        let theta = self.run()?.said.terms.theta_micro;
        self.outcomes(&id)?;
        let outcomes = self.outcomes.remove(&id).unwrap_or_default();
        let found = verifier::judged(self.plan(), &workflow, &outcomes, &[]);
        let said = verifier::scored(&self.id, id, &found, theta);
        self.say(ports, vec![said.into()], &[])?;
        Ok(())
    }

    /// Ends the run by a person's word.
    ///
    /// # Errors
    /// [`RepairError::Ended`]; no key; what the ledger says.
    pub fn stop(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        if self.run()?.end.is_some() {
            return Err(RepairError::Ended(self.id.clone()).into());
        }
        let said = self.run()?.stopping(WfEnd::Person);
        self.say(ports, vec![said.into()], &[])?;
        Ok(())
    }
}
