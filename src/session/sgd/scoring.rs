//! Scores of a run whose judge is behind HTTP: it is asked as one that is told the prompt, once for each repeat, in runs of judges
//! that are held for, settled and on record. A row is asked about once under a prompt; what was answered stands.

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::endpoint::Dialect;
use clover_event::payload::model_runs::SgdAsked;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::sgd::SGD_ROWS_MAX;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdScored;
use clover_event::payload::sgd::SgdScoring;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::budgets::Budgets;
use clover_projection::endpoints::Endpoints;
use clover_projection::runs::ModelRuns;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdRuns;
use clover_projection::sgd::asked_scores;
use clover_projection::sgd::asked_scores::MISSES_MAX;
use clover_prompt::JudgePrompt;
use clover_workflow::ask::Desk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::dispatch::DispatchRules;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::plan_file;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::run::text_hash;
use clover_workflow::sgd::asked;
use clover_workflow::sgd::course;
use clover_workflow::sgd::course::SgdCourse;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::responses;
use crate::judge::Assignment;
use crate::judge::JudgingError;
use crate::judge::live;
use crate::judge::live::AskTerms;
use crate::judge::live::LiveCounts;
use crate::judge::live::LiveTerms;
use crate::judge::live_stop;
use crate::ports::Ports;
use crate::ports::Question;
use crate::sgd::SgdBench;
use crate::sgd::SgdError;
use crate::sgd::ahead;
use crate::sgd::count;
use crate::sgd::open::SgdAgentCost;
use crate::sgd::running::SgdRunning;
use crate::tariff;
use crate::tariff::TariffTerms;

/// Money of which no consent is needed, at most: one dollar.
const UNASKED_USD_MICRO: u64 = 1_000_000;

/// What sends to the endpoint of a judge.
pub struct JudgeDesk {
    /// What sends.
    pub desk: Box<dyn Desk>,
    /// How it sends.
    pub rules: DispatchRules,
    /// How requests are written and answers are read.
    pub wire: &'static dyn WireForm,
}

/// The plan of a judge behind HTTP, as it was registered.
///
/// # Errors
/// [`JudgingError::NoPlan`], and what reading the blob gives.
pub fn plan_of(ledger: &Ledger, judge: &JudgeRegistered) -> Result<JudgePlan, SessionError> {
    let damaged = |what: &str| JudgingError::NoPlan {
        judge: judge.judge.clone(),
        what: what.to_owned(),
    };
    let asked = judge.asked.as_ref();
    let asked = asked.ok_or_else(|| damaged("it is not asked behind HTTP"))?;
    let bytes = History::blob(ledger, &asked.plan.blake3)?;
    let bytes = bytes.ok_or_else(|| damaged("its blob is not here"))?;
    let plan = plan_file::read(&bytes).map_err(|error| damaged(&error.to_string()))?;
    if plan.digest() == asked.plan_digest {
        return Ok(plan);
    }
    Err(damaged("its blob has another digest").into())
}

/// How scores of a run are asked for: where, and who pays.
pub struct AskedScoring<'a> {
    /// The experiment whose rows have texts.
    pub experiment: &'a ExperimentId,
    /// The plan of the judge.
    pub plan: &'a JudgePlan,
    /// Who pays.
    pub scoring: &'a SgdScoring,
    /// How requests are written.
    pub wire: &'a dyn WireForm,
}

impl AskedScoring<'_> {
    /// What so many asks cost at most under a prompt, and what is left to pay them once `spent` is gone from the cap, in millionths
    /// of a dollar; `None` where they are free. Each ask counts as that of the longest row, under a prompt a quarter longer.
    ///
    /// # Errors
    /// What prices, accounts and the vault lack.
    pub fn cost(
        &self,
        (home, ledger): (&Home, &Ledger),
        (prompt, asks, spent): (&str, u64, u64),
    ) -> Result<Option<SgdAgentCost>, SessionError> {
        let of = TariffTerms {
            endpoint: &self.plan.endpoint,
            pin: &self.plan.pin,
            account: self.scoring.account.as_ref(),
            opened: None,
        };
        let Some(tariff) = tariff::of(ledger, of)? else {
            return Ok(None);
        };
        let found = responses::scored(home, ledger, self.experiment)?;
        let pepper = home.vault(ledger.ambient())?.pepper()?;
        let rows = (prompt, found.rows.as_slice());
        let each = bound(
            (ledger, &pepper),
            (self.plan, self.wire),
            rows,
            self.scoring,
        )?;
        let budgets = ledger.state().fold::<Budgets>();
        let account = budgets.accounts.get(&tariff.account);
        let cap = self.scoring.cap_usd_micro;
        Ok(Some(SgdAgentCost {
            cap: cap.map(|cap| cap.value().saturating_sub(spent)),
            left: account.map_or(0, |of| of.left(append::now(ledger))),
            most: each.saturating_mul(asks),
        }))
    }
}

/// What scores of a run that is opened may still cost; `None` where its judge is not behind HTTP, or is free.
///
/// # Errors
/// As [`AskedScoring::cost`].
pub fn ahead_of(
    (home, ledger): (&Home, &Ledger),
    run: &SgdRun,
    wire_of: &dyn Fn(Dialect) -> &'static dyn WireForm,
) -> Result<Option<SgdAgentCost>, SessionError> {
    cost_of((home, ledger), (run, ahead::judge_asks(run)), wire_of)
}

/// What scores of confirm may still cost, before the gate of a run decides; `None` where its judge is not behind HTTP, or is free.
///
/// # Errors
/// As [`AskedScoring::cost`].
pub fn confirm_ahead_of(
    (home, ledger): (&Home, &Ledger),
    run: &SgdRun,
    wire_of: &dyn Fn(Dialect) -> &'static dyn WireForm,
) -> Result<Option<SgdAgentCost>, SessionError> {
    cost_of((home, ledger), (run, ahead::confirm_asks(run)), wire_of)
}

/// What so many more scores of a run cost at most.
fn cost_of(
    (home, ledger): (&Home, &Ledger),
    (run, asks): (&SgdRun, u64),
    wire_of: &dyn Fn(Dialect) -> &'static dyn WireForm,
) -> Result<Option<SgdAgentCost>, SessionError> {
    let state = ledger.state();
    let judge = asked_scores::judge_of(state, run);
    let Some((judge, scoring)) = judge.zip(run.said.scoring.as_ref()) else {
        return Ok(None);
    };
    let plan = plan_of(ledger, judge)?;
    let Some(wire) = wire_at(ledger, &plan).map(wire_of) else {
        return Ok(None);
    };
    let of = AskedScoring {
        experiment: &run.experiment,
        plan: &plan,
        scoring,
        wire,
    };
    let course = SgdCourse::of(run).map_err(SgdError::from)?;
    let prompt = course.current().map_err(SgdError::from)?.render();
    let spent = asked_scores::spent(state, &run.said.run);
    of.cost((home, ledger), (&prompt, asks, spent))
}

/// The dialect of the endpoint of a plan, where it is registered.
pub fn wire_at(ledger: &Ledger, plan: &JudgePlan) -> Option<Dialect> {
    let places = ledger.state().fold::<Endpoints>();
    Some(places.by_id.get(&plan.endpoint)?.said.dialect)
}

/// What one score costs at most: of the longest row, under a prompt that grows as far as it may.
pub(super) fn bound(
    (ledger, pepper): (&Ledger, &[u8; 32]),
    (plan, wire): (&JudgePlan, &dyn WireForm),
    (prompt, rows): (&str, &[ImportRow]),
    scoring: &SgdScoring,
) -> Result<u64, SessionError> {
    let of = TariffTerms {
        endpoint: &plan.endpoint,
        pin: &plan.pin,
        account: scoring.account.as_ref(),
        opened: None,
    };
    let Some(tariff) = tariff::of(ledger, of)? else {
        return Ok(0);
    };
    let bytes = rows.iter().map(|row| {
        let said = (
            row.prompt.as_deref().unwrap_or_default(),
            row.response.as_deref().unwrap_or_default(),
        );
        let hashes = (
            text_hash(pepper, "prompt", said.0),
            text_hash(pepper, "response", said.1),
        );
        let fenced = FencedRow::new(pepper, (&hashes.0, &hashes.1), said);
        AskRequest::of(wire, plan.ask(prompt, &fenced)).body.len()
    });
    // A prompt grows by a quarter at most, and a character of it has up to six bytes in JSON.
    let room = prompt.len() * 6 / 4;
    let bytes = bytes.max().unwrap_or_default() + room;
    Ok(tariff.row.bound(bytes, plan.max_output_tokens).value())
}

/// Rows that a judge is asked about, under a prompt.
struct ScoredRows<'a> {
    judge: &'a JudgeRegistered,
    plan: &'a JudgePlan,
    asked: &'a SgdAsked,
    scoring: &'a SgdScoring,
    text: &'a str,
    rows: &'a [SgdRow],
    texts: &'a [ImportRow],
}

impl SgdRunning<'_> {
    /// Has the judge asked about the next rows of a part under a prompt, and says what its calls gave.
    pub(super) fn asked_about(
        &mut self,
        ports: &mut dyn Ports,
        judge: &JudgeRegistered,
        (part, prompt): (SgdPart, &JudgePrompt),
    ) -> Result<(), SessionError> {
        let run = self.bench.run()?;
        let digest = prompt.digest();
        let (first, rows) = course::unscored(run, part, digest);
        let rows: Vec<_> = rows.into_iter().take(SGD_ROWS_MAX).cloned().collect();
        let step = course::step_of(run, part);
        let scoring = run.said.scoring.clone();
        let scoring = scoring.ok_or_else(|| SgdError::Unpaid(self.bench.id.clone()))?;
        let judges = asked::judges_of(run, prompt).map_err(SgdError::from)?;
        let plan = plan_of(&self.bench.ledger, judge)?;
        let texts = self.bench.with_texts(&rows)?;
        let asked = SgdAsked {
            part,
            prompt_digest: digest,
            run: self.bench.id.clone(),
        };
        let text = prompt.render();
        let of = ScoredRows {
            judge,
            plan: &plan,
            asked: &asked,
            scoring: &scoring,
            text: &text,
            rows: &rows,
            texts: &texts,
        };
        self.scoring_agreed(ports, &of)?;
        for (repeat, told) in judges.iter().enumerate() {
            self.repeat_asked(ports, &of, (repeat as u64, told))?;
        }
        let run = self.bench.run()?;
        let due: Vec<_> = rows.iter().collect();
        let found = asked::scores_of(self.bench.ledger.state(), run, (&judges, &due));
        let found = found.ok_or_else(|| SgdError::Unanswered {
            judge: judge.judge.clone(),
            left: 0,
            why: None,
        })?;
        if found.scores.iter().all(Vec::is_empty) {
            return Err(SgdError::NothingRead {
                judge: judge.judge.clone(),
                rows: rows.len(),
            }
            .into());
        }
        let said = SgdScored {
            first: count(first),
            missed: found.missed,
            part,
            prompt_digest: digest,
            run: self.bench.id.clone(),
            scores: found.scores,
            step: Count::new(step).unwrap_or_default(),
        };
        self.bench.say(ports, said)?;
        Ok(())
    }

    /// Asks for one repeat, until each row has come to its end: what nobody answered is put three times at most.
    fn repeat_asked(
        &mut self,
        ports: &mut dyn Ports,
        of: &ScoredRows<'_>,
        (repeat, told): (u64, &JudgeId),
    ) -> Result<(), SessionError> {
        for _ in 0..=MISSES_MAX {
            let state = self.bench.ledger.state();
            let experiment = self.bench.run()?.experiment.clone();
            let known = state.fold::<SgdRuns>().told.get(&experiment);
            let known = known.and_then(|all| all.get(told));
            let is_done = known.is_some_and(|of_judge| {
                let mut all = of.rows.iter();
                all.all(|row| of_judge.of(row).is_final())
            });
            let open = state.fold::<ModelRuns>().open(&experiment, told);
            let is_open = open.is_some();
            if is_done && !is_open {
                return Ok(());
            }
            let spent = asked_scores::spent(state, &self.bench.id);
            let cap = of.scoring.cap_usd_micro;
            let left = cap.map(|cap| cap.value().saturating_sub(spent));
            if left == Some(0) && !is_open {
                return Err(SgdError::Capped(self.bench.id.clone()).into());
            }
            // A run that is open goes on with the cap that it was opened with.
            let cap = left.and_then(Count::new).filter(|_| !is_open);
            let counts = self.asked_once(ports, of, repeat, cap)?;
            self.ended_as(&counts, of)?;
        }
        Ok(())
    }

    fn asked_once(
        &mut self,
        ports: &mut dyn Ports,
        of: &ScoredRows<'_>,
        repeat: u64,
        cap: Option<Count>,
    ) -> Result<LiveCounts, SessionError> {
        let experiment = self.bench.run()?.experiment.clone();
        let SgdBench {
            home,
            ledger,
            id,
            judge,
            ..
        } = &mut *self.bench;
        let sender = judge.as_mut();
        let sender = sender.ok_or_else(|| SgdError::NoDesk(id.clone()))?;
        let pepper = home.vault(ledger.ambient())?.pepper()?;
        let told = (of.judge, of.plan.clone());
        let rows = of.texts.to_vec();
        let assignment = Assignment::told(experiment, told, (of.text, repeat), pepper, rows);
        let assignment = assignment.ok_or_else(|| SgdError::LongName(id.clone()))?;
        let plan = assignment.plan().cloned();
        let plan = plan.ok_or_else(|| SgdError::NoDesk(id.clone()))?;
        let terms = LiveTerms {
            asks: AskTerms {
                account: of.scoring.account.clone(),
                cap,
                plan,
                sgd: Some(of.asked.clone()),
                wire: sender.wire,
            },
            desk: &mut *sender.desk,
            rules: sender.rules,
            yes: true,
        };
        live::run(ports, home, ledger, assignment, terms)
    }

    /// Whether a run of judges came to its end; why the run of the prompt waits, where it did not.
    fn ended_as(&self, counts: &LiveCounts, of: &ScoredRows<'_>) -> Result<(), SgdError> {
        match counts.stopped {
            None => {}
            Some(StopReason::Interrupted) => return Err(SgdError::Cut(self.bench.id.clone())),
            Some(StopReason::Capped) => return Err(SgdError::Capped(self.bench.id.clone())),
            Some(_) => {
                return Err(SgdError::Unanswered {
                    judge: of.judge.judge.clone(),
                    left: counts.left,
                    why: counts.complaint.clone(),
                });
            }
        }
        if counts.left > 0 {
            return Err(SgdError::Capped(self.bench.id.clone()));
        }
        Ok(())
    }

    /// More than a dollar needs a yes, once.
    fn scoring_agreed(
        &mut self,
        ports: &mut dyn Ports,
        of: &ScoredRows<'_>,
    ) -> Result<(), SessionError> {
        if std::mem::replace(&mut self.is_scoring_agreed, true) {
            return Ok(());
        }
        let ledger = &self.bench.ledger;
        let pepper = self.bench.home.vault(ledger.ambient())?.pepper()?;
        let wire = self.bench.judge.as_ref().map(|of| of.wire);
        let wire = wire.ok_or_else(|| SgdError::NoDesk(self.bench.id.clone()))?;
        let rows = (of.text, of.texts);
        let each = bound((ledger, &pepper), (of.plan, wire), rows, of.scoring)?;
        let run = self.bench.run()?;
        let asks = match of.asked.part {
            SgdPart::Confirm => ahead::confirm_asks(run),
            _ => ahead::judge_asks(run),
        };
        let cap = of.scoring.cap_usd_micro.map_or(u64::MAX, Count::value);
        let most = each.saturating_mul(asks).min(cap);
        if most > UNASKED_USD_MICRO {
            ports.ask(&Question::Spend {
                account: of.scoring.account.as_ref().map(ToString::to_string),
                asks,
                late: 0,
                most,
            })?;
        }
        Ok(())
    }
}

/// Ends what is asked of judges for a run, before a person ends it.
pub(super) fn ended(bench: &mut SgdBench, ports: &mut dyn Ports) -> Result<(), SessionError> {
    let open = {
        let all = asked_scores::runs_of(bench.ledger.state(), &bench.id);
        let mut open = all.filter(|of| of.end.is_none());
        open.next().map(|of| of.said.run.clone())
    };
    let Some(open) = open else {
        return Ok(());
    };
    live_stop::stop(ports, &bench.home, &mut bench.ledger, &open)?;
    Ok(())
}
