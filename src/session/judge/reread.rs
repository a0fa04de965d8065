//! Answers of models that are read again, and asks that are made again: whoever has the vault sees whether what a scorer signed
//! follows from the bodies and the texts.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::AttemptClass;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::PrivateRef;
use clover_event::payload::endpoint::Dialect;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::UsageState;
use clover_event::payload::model_terms::PriceMode;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::endpoints::Endpoints;
use clover_projection::judges::Judges;
use clover_projection::runs::ModelRuns;
use clover_projection::tallies::Tallies;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::called;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::plan_file;
use clover_workflow::ask::reading;
use clover_workflow::ask::reading::ReplyReading;
use clover_workflow::ask::reading::StopCause;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::judge::run::text_hash;

use crate::error::SessionError;
use crate::home::Home;
use crate::judge::registration;
use crate::judge::reread_models;
use crate::texts::Texts;

/// What an entry says otherwise than what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFinding {
    /// The entry.
    pub seq: u64,
    /// What follows.
    pub expected: String,
    /// What it says.
    pub found: String,
}

/// What reading again came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RereadAnswers {
    /// Answers that were read again.
    pub answers: u64,
    /// Asks that were made again.
    pub asks: u64,
    /// What differs, in the order of the log.
    pub findings: Vec<AnswerFinding>,
    /// Answers that cannot be read, and why the first cannot.
    pub unread: u64,
    /// Rows whose ask cannot be made again.
    pub unasked: u64,
    /// Why the first of them cannot.
    pub why: Option<String>,
}

/// How a judge asks.
struct KnownJudge {
    plan: JudgePlan,
    told: String,
    wire: &'static dyn WireForm,
}

/// A call, as far as scores are held against it.
struct KnownCall {
    ask: Digest,
    bound: Count,
    run: RunId,
}

/// Gives the form of a dialect.
pub type WireOf<'a> = &'a dyn Fn(Dialect) -> &'static dyn WireForm;

struct Rereader<'a> {
    ledger: &'a Ledger,
    texts: Texts<'a>,
    pepper: [u8; 32],
    wire: WireOf<'a>,
    judges: BTreeMap<(ExperimentId, JudgeId), Result<KnownJudge, String>>,
    calls: BTreeMap<EventId, KnownCall>,
    out: RereadAnswers,
}

/// Reads every answer again whose body is here, and makes every ask again whose texts are.
///
/// # Errors
/// When the ledger or the vault cannot be read.
pub fn all(home: &Home, ledger: &Ledger, wire: WireOf<'_>) -> Result<RereadAnswers, SessionError> {
    let mut out = RereadAnswers::default();
    reread_models::all(ledger, wire, &mut out)?;
    if ledger.state().fold::<Tallies>().of_kind(Kind::CallRecorded) == 0 {
        return Ok(out);
    }
    let Some(vault) = home.known_vault(ledger.ambient())? else {
        return without_vault(ledger, out);
    };
    let mut reader = Rereader {
        ledger,
        texts: Texts::new(home, ledger)?,
        pepper: vault.pepper()?,
        wire,
        judges: BTreeMap::new(),
        calls: BTreeMap::new(),
        out,
    };
    ledger.entries(0, ledger.size(), |read| {
        let seq = read.stored.seq;
        let Some(experiment) = read.event.header.experiment.clone() else {
            return Ok(());
        };
        match &read.event.payload {
            Payload::CallRecorded(said) => reader.called((&experiment, read.event.id), seq, said),
            Payload::ScoreRecorded(said) if said.call.is_some() => {
                reader.scored(&experiment, seq, said);
            }
            _ => {}
        }
        Ok::<_, SessionError>(())
    })?;
    let mut out = reader.out;
    out.findings.sort_by_key(|finding| finding.seq);
    Ok(out)
}

/// Without a vault nothing can be read again.
fn without_vault(ledger: &Ledger, mut out: RereadAnswers) -> Result<RereadAnswers, SessionError> {
    let before = out.unread;
    ledger.entries(0, ledger.size(), |read| {
        if let Payload::CallRecorded(said) = &read.event.payload
            && said.response.is_some()
        {
            out.unread += 1;
        }
        Ok::<_, SessionError>(())
    })?;
    if out.unread > before {
        out.why = Some("no vault is beside the ledger".to_owned());
    }
    Ok(out)
}

/// What a call says that follows from its answer.
#[derive(Debug, PartialEq, Eq)]
struct Follows {
    members: [(&'static str, String); 8],
}

fn word<T: ToString>(of: Option<T>) -> String {
    of.map_or_else(|| "none".to_owned(), |of| of.to_string())
}

impl Follows {
    fn said(said: &CallRecorded) -> Self {
        let tokens = said.tokens.map(|of| format!("{of:?}"));
        let masses = said.masses.as_ref().map(|of| {
            let each = of
                .iter()
                .map(|of| format!("{} {}", of.level, of.logprob_micro));
            each.collect::<Vec<_>>().join(", ")
        });
        Self {
            members: [
                ("outcome", said.outcome.to_string()),
                (
                    "model_returned",
                    word(said.model_returned.as_ref().map(Text::as_str)),
                ),
                ("masses", word(masses)),
                ("score_micro", word(said.score_micro.map(Micro::value))),
                ("tokens", word(tokens)),
                ("usage", said.usage.as_str().to_owned()),
                (
                    "fingerprint",
                    word(said.fingerprint.as_ref().map(Text::as_str)),
                ),
                ("detail", word(said.detail.as_ref().map(Text::as_str))),
            ],
        }
    }

    /// What follows from a body; `None` where the attempt gave no answer that is read.
    fn of(judge: &KnownJudge, said: &CallRecorded, pepper: &[u8; 32], body: &[u8]) -> Self {
        let read = judge.wire.read(body);
        let read = read.filter(|read| read.stop != StopCause::Failed);
        let was_answered = said
            .attempts
            .last()
            .is_some_and(|of| of.class == AttemptClass::Ok);
        let mut again = said.clone();
        match read {
            Some(read) => judge.follow(&mut again, pepper, &read),
            None if was_answered => {
                again.outcome = CallOutcome::Unparsed;
                (again.masses, again.score_micro, again.tokens) = (None, None, None);
                again.usage = UsageState::Absent;
            }
            None => {}
        }
        Self::said(&again)
    }
}

impl KnownJudge {
    fn follow(&self, again: &mut CallRecorded, pepper: &[u8; 32], read: &ReplyReading) {
        let fenced = FencedRow::new(pepper, (&again.texts.x_hash, &again.texts.a_hash), ("", ""));
        let format = self.plan.ask("", &fenced).format;
        let (outcome, detail) = reading::outcome_of(read, &format);
        let said = (outcome, detail.map(str::to_owned));
        let answer = called::answered(&self.plan, read, said, fenced.ticket());
        (again.outcome, again.score_micro) = (answer.outcome, answer.score);
        again.masses = answer.masses;
        again.detail = called::kept_text(answer.detail.as_deref());
        again.model_returned = called::kept_text(read.model.as_deref());
        again.fingerprint = called::kept_text(read.fingerprint.as_deref());
        again.tokens = read.tokens;
        again.usage = called::usage(&again.attempts, Some(read));
    }
}

impl Rereader<'_> {
    fn gone(&mut self, why: &str, is_answer: bool) {
        if is_answer {
            self.out.unread += 1;
        } else {
            self.out.unasked += 1;
        }
        self.out.why.get_or_insert_with(|| why.to_owned());
    }

    fn differs(&mut self, seq: u64, expected: String, found: String) {
        self.out.findings.push(AnswerFinding {
            seq,
            expected,
            found,
        });
    }

    /// How a judge asks, by what is on record of it.
    fn known(&mut self, experiment: &ExperimentId, judge: &JudgeId) -> Result<&KnownJudge, String> {
        let key = (experiment.clone(), judge.clone());
        if !self.judges.contains_key(&key) {
            let found = self.read_judge(experiment, judge);
            self.judges.insert(key.clone(), found);
        }
        self.judges[&key].as_ref().map_err(Clone::clone)
    }

    fn read_judge(&self, experiment: &ExperimentId, judge: &JudgeId) -> Result<KnownJudge, String> {
        let state = self.ledger.state();
        let of = state.fold::<Judges>().of(experiment);
        let of = of.and_then(|of| of.judges.get(judge));
        let said = &of.ok_or("its judge is not registered")?.said;
        let asked = said.asked.as_ref().ok_or("its judge is not behind HTTP")?;
        let place = state.fold::<Endpoints>().by_id.get(&asked.endpoint);
        let place = place.ok_or("its endpoint is not registered")?;
        let plan = History::blob(self.ledger, &asked.plan.blake3).map_err(|e| e.to_string())?;
        let plan = plan.ok_or("the plan of its judge is not here")?;
        let plan = plan_file::read(&plan).map_err(|error| error.to_string())?;
        if plan.digest() != asked.plan_digest {
            return Err("the plan of its judge has another digest".to_owned());
        }
        let plan = plan.of_judge(said);
        let told = said.prompt.as_ref();
        let told = told.map(|blob| registration::kept_prompt(self.ledger, said, blob));
        let told = told.transpose().map_err(|error| error.to_string())?;
        Ok(KnownJudge {
            plan,
            told: told.unwrap_or_default(),
            wire: (self.wire)(place.said.dialect),
        })
    }

    /// A call says what its body does.
    fn called(
        &mut self,
        (experiment, id): (&ExperimentId, EventId),
        seq: u64,
        said: &CallRecorded,
    ) {
        let known = KnownCall {
            ask: said.ask,
            bound: said.bound_usd_micro,
            run: said.run.clone(),
        };
        self.calls.insert(id, known);
        let Some(response) = &said.response else {
            if said.outcome == CallOutcome::Answered {
                let expected = format!("the body of the answer of call {}", id.0.short());
                self.differs(seq, expected, "none".to_owned());
            }
            return;
        };
        let pepper = self.pepper;
        let body = self.texts.content(response);
        let follows = body.and_then(|body| {
            let judge = self.known(experiment, &said.judge)?;
            Ok(Follows::of(judge, said, &pepper, &body))
        });
        let follows = match follows {
            Ok(follows) => follows,
            Err(why) => return self.gone(&why, true),
        };
        self.out.answers += 1;
        let pairs = follows.members.iter().zip(Follows::said(said).members);
        let other = pairs.into_iter().find(|(again, said)| again.1 != said.1);
        if let Some(((name, again), (_, said))) = other {
            let expected = format!(
                "{name} {again} of call {}, as its answer says",
                id.0.short()
            );
            self.differs(seq, expected, said);
        }
    }

    fn row_texts(&mut self, said: &ScoreRecorded) -> Result<(String, String), String> {
        let mut open = |text: &Option<PrivateRef>| {
            let text = text.as_ref().ok_or("its texts were not taken in")?;
            self.texts.opened(text)
        };
        Ok((open(&said.prompt)?, open(&said.response)?))
    }

    /// A score stands on a call about the texts of its row, under the key that plan and texts give.
    fn scored(&mut self, experiment: &ExperimentId, seq: u64, said: &ScoreRecorded) {
        let Some(of) = said.call else {
            return;
        };
        let (prompt, response) = match self.row_texts(said) {
            Ok(texts) => texts,
            Err(why) => return self.gone(&why, false),
        };
        let pepper = self.pepper;
        let texts = AskedTexts {
            a_hash: text_hash(&pepper, "response", &response),
            x_hash: text_hash(&pepper, "prompt", &prompt),
        };
        let name = of.call.0.short().to_string();
        if texts != of.texts {
            let expected = format!("call {name} about the texts of its row");
            return self.differs(seq, expected, "other texts".to_owned());
        }
        let request = self.known(experiment, &said.judge).map(|judge| {
            let said = (prompt.as_str(), response.as_str());
            let fenced = FencedRow::new(&pepper, (&texts.x_hash, &texts.a_hash), said);
            let ask = judge.plan.ask(&judge.told, &fenced);
            let bytes = AskRequest::of(judge.wire, ask.clone()).body.len();
            (ask.keyed(&pepper), bytes, judge.plan.clone())
        });
        let (key, bytes, plan) = match request {
            Ok(request) => request,
            Err(why) => return self.gone(&why, false),
        };
        let Some(call) = self.calls.get(&of.call) else {
            return;
        };
        self.out.asks += 1;
        if call.ask != key {
            let expected = format!(
                "ask {} of call {name}, as plan and texts give it",
                key.short()
            );
            let found = call.ask.short().to_string();
            return self.differs(seq, expected, found);
        }
        let bound = self.bound(call, &plan, bytes);
        if let Some(bound) = bound.filter(|bound| *bound != call.bound) {
            let expected =
                format!("bound {bound} of call {name}, as its request and the prices give it");
            let found = call.bound.to_string();
            self.differs(seq, expected, found);
        }
    }

    /// The most that one attempt of a call may cost; `None` where another program wrote the request.
    fn bound(&self, call: &KnownCall, plan: &JudgePlan, bytes: usize) -> Option<Count> {
        let state = self.ledger.state();
        let endpoints = state.fold::<Endpoints>();
        let run = state.fold::<ModelRuns>().by_id.get(&call.run)?;
        if run.said.build.as_str() != BUILD {
            return None;
        }
        let table = run.said.prices.as_ref();
        let table = table.and_then(|table| endpoints.prices.get(table));
        let place = endpoints.by_id.get(&plan.endpoint);
        let row = table.zip(place).and_then(|(table, place)| {
            table.row(place.said.provider.as_str(), &plan.pin, PriceMode::Live)
        });
        let bound = row.map(|row| row.bound(bytes, plan.max_output_tokens));
        Some(bound.unwrap_or_default())
    }
}
