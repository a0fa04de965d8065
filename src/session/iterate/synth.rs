//! Runs of an optimizer that sees only cards: round by round a view is made, looked through for rows, released on record and
//! answered; each new candidate is asked of the dev objective; at the end the best of each family is proposed. Everything is
//! on record before the next step, so a run that was cut goes on where it was.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::record::ReadOutcome;
use clover_event::payload::rubric::AuthorKind;
use clover_event::payload::synth_runs::AnswerState;
use clover_event::payload::synth_runs::LeakTest;
use clover_event::payload::synth_runs::OptimizerKind;
use clover_event::payload::synth_runs::SynthAsked;
use clover_event::payload::synth_runs::SynthEnd;
use clover_event::payload::synth_runs::SynthOpened;
use clover_event::payload::synth_runs::SynthReturned;
use clover_event::payload::synth_runs::SynthStopped;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_num::Count;
use clover_projection::access::OPTIMIZER_CLASSES;
use clover_projection::asked::LastCall;
use clover_projection::iterations::record::SynthRecord;
use clover_projection::synths::Synths;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::patches::Authorship;
use clover_workflow::synth::Optimizer;
use clover_workflow::synth::answer;
use clover_workflow::synth::answer::Terms;
use clover_workflow::synth::ask;
use clover_workflow::synth::progress::Progress;
use clover_workflow::synth::view;
use clover_workflow::synth::view::OptimizerView;

use crate::append;
use crate::asking;
use crate::asking::AskStop;
use crate::asking::ModelSender;
use crate::asking::ModelTerms;
use crate::asking::RoundEnd;
use crate::custody::reads;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::objective;
use crate::iterate::propose;
use crate::iterate::synth_ask;
use crate::iterate::synth_leak;
use crate::iterate::synth_outlook;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;
use crate::tariff;

/// Candidates of a round where nobody says.
pub const K: u64 = 4;
/// Rounds where nobody says.
pub const ROUNDS: u64 = 6;
/// Dev calls where nobody says.
pub const DEV_CALLS: u64 = 40;

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct SynthTerms {
    /// Most dev calls; `None` for 40, or what the plan leaves.
    pub dev_calls: Option<Count>,
    /// Most candidates of a round.
    pub k: Count,
    /// What writes candidates, in words.
    pub model: Text,
    /// Who writes candidates.
    pub optimizer: OptimizerKind,
    /// Most rounds.
    pub rounds: Count,
    /// Whether attacks on candidates can be scored.
    pub can_ask: bool,
    /// Whether another run is opened where one ended.
    pub again: bool,
    /// The model that is asked, where one writes candidates.
    pub asks: Option<ModelTerms>,
    /// Whether somebody agreed to what it may cost.
    pub yes: bool,
}

/// Who answers a round.
pub enum Answering<'a> {
    /// A model behind HTTP.
    Model(ModelSender<'a>),
    /// A program of this machine.
    Program(&'a mut dyn Optimizer),
}

/// Why a run stopped before its end: the same command goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SynthCut {
    /// The model gave no answer that ends its round.
    Ask(AskStop),
    /// Somebody asked to stop.
    Person,
}

/// A run after it went on.
#[derive(Clone, Debug)]
pub struct SynthOutcome {
    /// Everything that was said of it.
    pub run: SynthRecord,
    /// Whether it had been opened before.
    pub is_resumed: bool,
    /// Why it stopped before its end; `None` where it ended.
    pub cut: Option<SynthCut>,
}

/// The view that an optimizer would be shown now, and what was looked through; of the open run, or of one on these terms.
///
/// # Errors
/// [`IterationError::NoCards`], [`IterationError::View`], and a leak.
pub fn view(bench: &Bench, k: Count) -> Result<(OptimizerView, LeakTest), SessionError> {
    let made = match bench.record.open_synth() {
        Some(run) => made(bench, run)?,
        None => made(bench, &imagined(bench, k)?)?,
    };
    let leak = synth_leak::test(bench, &made)?;
    Ok((made, leak))
}

/// A run as it would be opened.
fn imagined(bench: &Bench, k: Count) -> Result<SynthRecord, SessionError> {
    let said = SynthOpened {
        asked: None,
        build: text(BUILD),
        dev_calls: dev_calls(bench, None)?,
        iteration: bench.id.clone(),
        k,
        key: KeyId(Digest::sha256(b"")),
        model: text("nobody"),
        optimizer: OptimizerKind::Cards,
        rounds: count(ROUNDS),
        run: next_name(bench)?,
    };
    let opened = clover_projection::reader::LogStatement {
        seq: bench.ledger.size(),
        id: clover_event::id::EventId(Digest::sha256(b"")),
        said,
    };
    Ok(SynthRecord {
        opened,
        asked: Vec::new(),
        returned: Vec::new(),
        stopped: None,
    })
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: a few words and ids are a text")
}

fn count(value: u64) -> Count {
    Count::new(value).expect("BUG: nobody counts to 2^53")
}

/// The view of a run from everything that stands in the log.
fn made(bench: &Bench, run: &SynthRecord) -> Result<OptimizerView, SessionError> {
    if bench.record.cards.is_empty() {
        return Err(IterationError::NoCards(bench.id.clone()).into());
    }
    let checks = propose::bench(bench.ledger.state(), &bench.id)?;
    let through = bench.ledger.size().saturating_sub(1);
    let view = view::of(&bench.record, &checks, run, through);
    Ok(view.map_err(IterationError::from)?)
}

/// The first name of this iteration that no run of the ledger had.
pub(super) fn next_name(bench: &Bench) -> Result<RunId, IterationError> {
    let known = &bench.ledger.state().fold::<Synths>().by_id;
    let mut names = (1_u64..).map(|number| format!("{}-{number}", bench.id));
    let free = names.find_map(|name| {
        let name: RunId = name.parse().ok()?;
        (!known.contains_key(&name)).then_some(name)
    });
    free.ok_or_else(|| IterationError::Unknown(bench.id.clone()))
}

/// Dev calls of a new run: what was asked for, else 40, and no more than the plan leaves.
fn dev_calls(bench: &Bench, asked: Option<Count>) -> Result<Count, IterationError> {
    let design = bench.record.opened.said.params.design.as_ref();
    let most = design.map_or(0, |design| design.dev_calls_max.value());
    let made = bench.record.receipts.len() as u64 + bench.record.dev_calls_elsewhere;
    let left = most.saturating_sub(made);
    if left == 0 {
        return Err(IterationError::NoDevCalls(bench.id.clone()));
    }
    Ok(asked.unwrap_or_else(|| count(DEV_CALLS.min(left))))
}

/// Runs an optimizer in an iteration to its end: opens a run, or goes on with the one that is open. Where one ended, it is
/// given again, unless another is asked for.
///
/// # Errors
/// [`IterationError`]; what was said before stands, and the same call goes on from there.
pub fn run(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    terms: &SynthTerms,
    optimizer: &mut Answering<'_>,
) -> Result<SynthOutcome, SessionError> {
    let open = bench
        .record
        .synths
        .iter()
        .position(|of| of.stopped.is_none());
    if let (None, Some(last), false) = (open, bench.record.synths.last(), terms.again) {
        let said = &last.opened.said;
        if said.model != terms.model {
            return Err(IterationError::EndedRun {
                optimizer: said.model.as_str().to_owned(),
                run: said.run.clone(),
            }
            .into());
        }
        return Ok(SynthOutcome {
            run: last.clone(),
            is_resumed: true,
            cut: None,
        });
    }
    if let Answering::Model(sender) = optimizer {
        synth_outlook::consent(bench, ports, terms, sender.wire)?;
    }
    let need = KeyNeed::of(Seat::Optimizer, Kind::SynthReturned);
    let signer = ports.signer(bench.ledger.state(), need)?;
    let (place, is_resumed) = match open {
        Some(place) => (place, true),
        None => (opened(bench, ports, terms, &signer)?, false),
    };
    let mut at = Running {
        bench,
        place,
        signer,
        can_ask: terms.can_ask,
    };
    at.check_same(terms)?;
    let name = at.run().opened.said.run.clone();
    let _alone = match optimizer {
        Answering::Model(_) => Some(asking::alone(&at.bench.home, &name)?),
        Answering::Program(_) => None,
    };
    ports.heed(true)?;
    let went = at.go(ports, optimizer);
    ports.heed(false)?;
    let cut = went?;
    Ok(SynthOutcome {
        run: at.run().clone(),
        is_resumed,
        cut,
    })
}

/// Stops the open run of an iteration by a person's word; what it returned is not proposed.
///
/// # Errors
/// [`IterationError::NoRun`] where none of that name is open.
pub fn stop(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    name: &str,
) -> Result<SynthRecord, SessionError> {
    let mut all = bench.record.synths.iter();
    let open = all.position(|of| of.stopped.is_none() && of.opened.said.run.as_str() == name);
    let place = open.ok_or_else(|| IterationError::NoRun {
        iteration: bench.id.clone(),
        run: name.to_owned(),
    })?;
    synth_ask::freed(
        bench,
        ports,
        &bench.record.synths[place].opened.said.run.clone(),
    )?;
    ended(bench, ports, place, SynthEnd::Person)?;
    Ok(bench.record.synths[place].clone())
}

fn opened(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    terms: &SynthTerms,
    signer: &Signer,
) -> Result<usize, SessionError> {
    if bench.record.cards.is_empty() {
        return Err(IterationError::NoCards(bench.id.clone()).into());
    }
    let synths = bench.ledger.state().fold::<Synths>();
    if synths.judged.contains(&signer.id()) {
        return Err(IterationError::JudgedKey(signer.id()).into());
    }
    let tariff = terms.asks.as_ref().map(|of| of.tariff(&bench.ledger));
    let tariff = tariff.transpose()?.flatten();
    tariff::spender(&bench.ledger, signer, tariff.as_ref().map(|of| &of.account))?;
    let said = SynthOpened {
        asked: terms
            .asks
            .as_ref()
            .map(|of| of.asked(tariff.as_ref(), ask::FORM)),
        build: text(BUILD),
        dev_calls: dev_calls(bench, terms.dev_calls)?,
        iteration: bench.id.clone(),
        k: terms.k,
        key: signer.id(),
        model: terms.model.clone(),
        optimizer: terms.optimizer,
        rounds: terms.rounds,
        run: next_name(bench)?,
    };
    let run = said.run.clone();
    bench.say(ports, vec![said.into()])?;
    let mut all = bench.record.synths.iter();
    let place = all.position(|of| of.opened.said.run == run);
    let iteration = bench.id.clone();
    let run = run.to_string();
    Ok(place.ok_or(IterationError::NoRun { iteration, run })?)
}

/// Says how a run ended.
fn ended(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    place: usize,
    reason: SynthEnd,
) -> Result<(), SessionError> {
    let run = &bench.record.synths[place];
    let name = &run.opened.said.run;
    let progress = Progress::of(&bench.record, run, bench.ledger.size());
    let mine = bench.record.proposed.iter().map(|of| &of.said);
    let mine = mine.filter(|of| of.run.as_ref() == Some(name));
    let mut proposed: Vec<_> = mine.map(|of| (&of.family, of.patch.clone())).collect();
    proposed.sort();
    let said = SynthStopped {
        dev_calls: count(progress.dev_calls()),
        iteration: bench.id.clone(),
        proposed: proposed.into_iter().map(|(_, patch)| patch).collect(),
        reason,
        rounds: count(run.returned.len() as u64),
        run: name.clone(),
    };
    bench.say(ports, vec![said.into()])?;
    Ok(())
}

/// A run that goes on.
struct Running<'b> {
    bench: &'b mut Bench,
    place: usize,
    signer: Arc<Signer>,
    can_ask: bool,
}

impl Running<'_> {
    fn run(&self) -> &SynthRecord {
        &self.bench.record.synths[self.place]
    }

    fn progress(&self) -> Progress<'_> {
        Progress::of(&self.bench.record, self.run(), self.bench.ledger.size())
    }

    /// Refuses to go on with a run on other terms than it was opened on.
    fn check_same(&self, terms: &SynthTerms) -> Result<(), IterationError> {
        let said = &self.run().opened.said;
        let same = [
            (
                "optimizer",
                said.model.as_str().to_owned(),
                terms.model.as_str().to_owned(),
            ),
            ("key", said.key.to_string(), self.signer.id().to_string()),
            ("k", said.k.to_string(), terms.k.to_string()),
            ("rounds", said.rounds.to_string(), terms.rounds.to_string()),
        ];
        let asks = said.asked.as_ref().zip(terms.asks.as_ref());
        let asks = asks.map(|(opened, asked)| synth_outlook::compared(opened, asked));
        let mut all = same.into_iter().chain(asks.into_iter().flatten());
        match all.find(|(_, opened, asked)| opened != asked) {
            None => Ok(()),
            Some((what, opened, asked)) => Err(IterationError::OtherRun {
                asked,
                opened,
                run: said.run.clone(),
                what,
            }),
        }
    }

    /// Goes on to the end; says why it stopped before it.
    fn go(
        &mut self,
        ports: &mut dyn Ports,
        optimizer: &mut Answering<'_>,
    ) -> Result<Option<SynthCut>, SessionError> {
        loop {
            if ports.is_interrupted() {
                return Ok(Some(SynthCut::Person));
            }
            if self.run().asked.len() > self.run().returned.len() {
                let stop = match optimizer {
                    Answering::Model(sender) => self.called(ports, sender)?,
                    Answering::Program(program) => self.answered(ports, *program)?,
                };
                if let Some(stop) = stop {
                    return Ok(Some(SynthCut::Ask(stop)));
                }
                continue;
            }
            if self.evaluated(ports)? {
                return Ok(Some(SynthCut::Person));
            }
            if let Some(reason) = self.progress().due() {
                self.proposed(ports)?;
                ended(self.bench, ports, self.place, reason)?;
                return Ok(None);
            }
            self.asked(ports)?;
        }
    }

    /// Makes the view of the next round, looks through it, and hands it over on record.
    fn asked(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let view = made(self.bench, self.run())?;
        let leak_test = synth_leak::test(self.bench, &view)?;
        let through = self.bench.ledger.size().saturating_sub(1);
        let bytes = view.bytes();
        let (run, round) = (&self.run().opened.said.run, self.run().asked.len());
        let purpose = text(&format!("synth {run} round {round}"));
        let reads = OPTIMIZER_CLASSES.map(|class| {
            let reader = (self.signer.id(), Some(Role::Optimizer));
            let read = reads::read(class, ReadOutcome::Allowed, purpose.clone(), reader, None);
            Payload::from(read)
        });
        let said = SynthAsked {
            build: text(BUILD),
            inputs: view.inputs(),
            iteration: self.bench.id.clone(),
            leak_test,
            round: count(round as u64),
            run: run.clone(),
            through_seq: count(through),
            view: answer::reference(&bytes),
            view_digest: Digest::sha256(&bytes),
        };
        self.bench.say(ports, reads.to_vec())?;
        self.bench.say_with(ports, vec![said.into()], &[bytes])?;
        Ok(())
    }

    /// Asks the optimizer, and records what it returned.
    fn answered(
        &mut self,
        ports: &mut dyn Ports,
        optimizer: &mut dyn Optimizer,
    ) -> Result<Option<AskStop>, SessionError> {
        let asked = &self.run().asked[self.run().returned.len()].said;
        let gone = || IterationError::Optimizer("the view on record cannot be read".to_owned());
        let blob = synth_ask::view_of(&self.bench.ledger, asked)?;
        let view: OptimizerView = serde_json::from_slice(&blob).map_err(|_| gone())?;
        let bytes = optimizer.answer(&view).map_err(IterationError::Optimizer)?;
        self.returned(ports, Some(bytes), None)?;
        Ok(None)
    }

    /// Asks the model, and records what it returned.
    fn called(
        &mut self,
        ports: &mut dyn Ports,
        sender: &mut ModelSender<'_>,
    ) -> Result<Option<AskStop>, SessionError> {
        let asked = self.run().asked[self.run().returned.len()].clone();
        let signer = self.signer.clone();
        let call = match synth_ask::asked(self.bench, ports, (&signer, asked), sender)? {
            RoundEnd::Stopped(stop) => return Ok(Some(stop)),
            RoundEnd::Called(call) => call,
        };
        let text = call.text.as_ref().map(|text| {
            let found = self.bench.ledger.store().reader().blob(&text.blake3)?;
            let gone = || IterationError::Optimizer("the answer on record is missing".to_owned());
            Ok::<_, SessionError>(found.ok_or_else(gone)?)
        });
        self.returned(ports, text.transpose()?, Some(&call))?;
        Ok(None)
    }

    /// Records what was returned, by a call where a model was asked.
    fn returned(
        &mut self,
        ports: &mut dyn Ports,
        bytes: Option<Vec<u8>>,
        call: Option<&LastCall>,
    ) -> Result<(), SessionError> {
        let asked = &self.run().asked[self.run().returned.len()].said;
        let bare = SynthReturned {
            answer: None,
            call: call.map(|call| call.call),
            candidates: Vec::new(),
            iteration: asked.iteration.clone(),
            round: asked.round,
            run: asked.run.clone(),
            state: call.map_or(AnswerState::Unreadable, answer::state_of_call),
        };
        let said = match &bytes {
            None => bare,
            Some(bytes) => {
                let synths = self.bench.ledger.state().fold::<Synths>();
                let run = &self.run().opened.said;
                let valid = synths.by_id.get(&run.run).map(|of| of.valid.clone());
                let checks = propose::bench(self.bench.ledger.state(), &self.bench.id)?;
                let terms = Terms {
                    bench: answer::bench_of(checks, &valid.unwrap_or_default()),
                    k: run.k.value(),
                    inputs: &asked.inputs,
                };
                answer::returned(bytes, answer::read(bytes, terms), &bare)
            }
        };
        let kept = bytes.filter(|_| said.answer.is_some());
        let mut command = Command::new(said, Some(self.bench.record.experiment.clone()));
        command.refs = call.map(|call| call.call).into_iter().collect();
        let blobs: Vec<Vec<u8>> = kept.into_iter().collect();
        let ledger = &mut self.bench.ledger;
        append::append_with(ports, ledger, &[command], &self.signer, &blobs)?;
        self.bench.again()
    }

    /// Asks the dev objective of each new candidate, as long as calls are left; says whether somebody asked to stop.
    fn evaluated(&mut self, ports: &mut dyn Ports) -> Result<bool, SessionError> {
        let unscored = self.progress().unscored();
        let yamls = unscored.into_iter().filter_map(|of| of.yaml.clone());
        let yamls: Vec<_> = yamls.collect();
        for yaml in yamls {
            if self.progress().dev_calls_left() == 0 {
                break;
            }
            if ports.is_interrupted() {
                return Ok(true);
            }
            let mut checks = propose::bench(self.bench.ledger.state(), &self.bench.id)?;
            (checks.ids, checks.hashes) = Default::default();
            let Ok((patch, checked)) = checks.check(yaml.as_str().as_bytes(), None) else {
                continue;
            };
            let asks = (self.signer.id(), self.can_ask);
            objective::ask(self.bench, ports, (yaml.as_str(), &patch, &checked), asks)?;
        }
        Ok(false)
    }

    /// Proposes the best of each family that passed, unless it was before.
    fn proposed(&mut self, ports: &mut dyn Ports) -> Result<(), SessionError> {
        let checks = propose::bench(self.bench.ledger.state(), &self.bench.id)?;
        for winner in self.progress().winners(&checks) {
            let mut before = self.bench.record.proposed.iter();
            if before.any(|of| of.said.patch_hash == winner.hash) {
                continue;
            }
            let run = self.run();
            let asked = &run.asked[winner.round].said;
            let by = Authorship {
                kind: AuthorKind::Llm,
                inputs: asked.inputs.clone(),
                model: Some(run.opened.said.model.clone()),
                prompt_digest: Some(asked.view_digest),
                run: Some(run.opened.said.run.clone()),
            };
            let signer = self.signer.clone();
            let (id, yaml) = (self.bench.id.clone(), winner.yaml.as_str());
            propose::propose_by(ports, &mut self.bench.ledger, &id, (yaml, by), &signer)?;
            self.bench.again()?;
        }
        Ok(())
    }
}
