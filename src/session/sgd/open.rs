//! A run is opened: prompt 0, the constants and the roots of its rows are on record before anything is scored for it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::endpoint::Dialect;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::scoring::Decoding;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::sgd::DOCUMENT_MAX;
use clover_event::payload::sgd::SgdAgents;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdScoring;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdSplits;
use clover_event::payload::sgd::SgdTarget;
use clover_event::payload::sgd::SgdTerms;
use clover_event::payload::sgd_steps::ATTEMPTS_MAX;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::budgets::Budgets;
use clover_projection::designs::Designs;
use clover_projection::judges::Judges;
use clover_projection::sgd::SgdRuns;
use clover_projection::sgd::draws::beacon_of;
use clover_projection::sgd::draws::parts_seed;
use clover_projection::sgd::draws::seed_of;
use clover_projection::sgd::due::LISTED;
use clover_projection::sgd::rules::part_root;
use clover_prompt::JudgePrompt;
use clover_prompt::Lexicon;
use clover_rubric::evidence;
use clover_rubric::extract;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::judge::simulated;
use clover_workflow::sgd::ask::FORM;
use clover_workflow::sgd::rows;
use clover_workflow::sgd::rule;

use crate::append;
use crate::asking;
use crate::asking::ModelTerms;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::Assignment;
use crate::judge::JudgingError;
use crate::judge::assignment::JudgeSpec;
use crate::judge::assignment::Model;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;
use crate::sgd::SgdError;
use crate::sgd::scoring;
use crate::sgd::scoring::AskedScoring;
use crate::tariff;
use crate::tariff::TariffTerms;

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct SgdRequest {
    /// Its name.
    pub run: RunId,
    /// The experiment whose labelled rows it reads.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// Whether the judge is a simulated one, and then whether it is the null form.
    pub simulated: Option<bool>,
    /// The plan of a judge behind HTTP that is not registered yet.
    pub judge_plan: Option<JudgePlan>,
    /// Who pays for scores of a judge behind HTTP.
    pub scoring: SgdScoring,
    /// Prompt 0.
    pub prompt: JudgePrompt,
    /// Who writes gradients and patches.
    pub agents: SgdAgents,
    /// The model that is asked for them, where one behind HTTP is.
    pub asks: Option<ModelTerms>,
    /// What writes them, in words.
    pub model: Text,
    /// Constants.
    pub terms: SgdTerms,
}

/// Bytes that a request to a model counts for before there is one: four documents of the greatest length.
pub const ASK_BYTES: usize = 4 * DOCUMENT_MAX;

/// Asks of a step, at most: one gradient and every attempt at a patch.
pub(super) const STEP_ASKS: u64 = 1 + ATTEMPTS_MAX;

/// What a model that writes gradients and patches costs at most, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SgdAgentCost {
    /// The most that the run may cost, where it says so.
    pub cap: Option<u64>,
    /// What is left in its account.
    pub left: u64,
    /// What every ask of every step costs at its bound.
    pub most: u64,
}

impl SgdAgentCost {
    /// Whether account and cap have room for every ask at its bound.
    pub fn fits(&self) -> bool {
        self.most <= self.left.min(self.cap.unwrap_or(u64::MAX))
    }
}

/// A run as it would be opened.
#[derive(Clone, Debug)]
pub struct SgdPlan {
    /// What opens it.
    pub opened: SgdOpened,
    /// Its rows, by part.
    pub rows: BTreeMap<SgdSplit, Vec<SgdRow>>,
}

/// Rows of an experiment with a label, which are on the scale that a run reads: a loss of shares says nothing of others.
fn labelled(
    ledger: &Ledger,
    (experiment, through): (&ExperimentId, u64),
    of: SgdTarget,
) -> Result<Vec<SgdRow>, SessionError> {
    let said = ledger.state().fold::<Designs>().scale(experiment);
    match said.map(|ends| (ends.low_micro, ends.high_micro)) {
        Some((low, high)) if (low.value(), high.value()) != (0, 1_000_000) => {
            Err(SgdError::LabelScale {
                experiment: experiment.clone(),
                low,
                high,
            }
            .into())
        }
        _ => Ok(rows::labelled(ledger, (experiment, through), of)?),
    }
}

impl SgdPlan {
    /// Rows of a part.
    pub fn count(&self, split: SgdSplit) -> u64 {
        self.rows.get(&split).map_or(0, |rows| rows.len() as u64)
    }

    /// Clusters that are kept for confirm: the units of the gate.
    pub fn confirm_clusters(&self) -> usize {
        let rows = self.rows.get(&SgdSplit::Confirm).into_iter().flatten();
        rows.map(|row| &row.item).collect::<BTreeSet<_>>().len()
    }

    /// Asks of a model that writes gradients and patches, at most: of each step one gradient and every attempt at a patch. 0
    /// where no model behind HTTP is asked.
    pub fn agent_asks(&self) -> u64 {
        let is_asked = self.opened.asked.is_some();
        self.opened.terms.steps.value() * if is_asked { STEP_ASKS } else { 0 }
    }

    /// What these asks cost at most, and what is left in their account, in millionths of a dollar; `None` where nothing costs
    /// anything. A request counts as [`ASK_BYTES`] bytes.
    ///
    /// # Errors
    /// What prices and accounts lack.
    pub fn agent_cost(&self, ledger: &Ledger) -> Result<Option<SgdAgentCost>, SessionError> {
        agent_cost(ledger, self.opened.asked.as_ref(), self.agent_asks())
    }

    /// Asks of the judge where every step is taken: base and val first, then a batch and val each step, test twice.
    pub fn asks(&self) -> u64 {
        let terms = &self.opened.terms;
        let each = terms.batch.value() + self.count(SgdSplit::Val);
        let first = self.count(SgdSplit::Train) + self.count(SgdSplit::Val);
        let rows = first + terms.steps.value() * each + 2 * self.count(SgdSplit::Test);
        rows * terms.repeats.value()
    }
}

/// What so many asks of a model cost at most, and what is left to pay them; `None` where nothing costs anything.
///
/// # Errors
/// What prices and accounts lack.
pub(super) fn agent_cost(
    ledger: &Ledger,
    asked: Option<&AskedModel>,
    asks: u64,
) -> Result<Option<SgdAgentCost>, SessionError> {
    let Some(asked) = asked else {
        return Ok(None);
    };
    let Some(tariff) = asking::tariff_of(ledger, asked)? else {
        return Ok(None);
    };
    let bound = tariff.row.bound(ASK_BYTES, asked.max_output_tokens.value());
    let budgets = ledger.state().fold::<Budgets>();
    let account = budgets.accounts.get(&tariff.account);
    Ok(Some(SgdAgentCost {
        cap: asked.cap_usd_micro.map(Count::value),
        left: account.map_or(0, |of| of.left(append::now(ledger))),
        most: bound.value().saturating_mul(asks),
    }))
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: a few words and ids are a text")
}

/// What a run says of the model that is asked; none where none behind HTTP is.
fn asked(ledger: &Ledger, request: &SgdRequest) -> Result<Option<AskedModel>, SessionError> {
    let Some(asks) = &request.asks else {
        return Ok(None);
    };
    let tariff = asks.tariff(ledger)?;
    Ok(Some(asks.asked(tariff.as_ref(), FORM)))
}

/// A judge behind HTTP that is not registered yet, as its plan has it.
fn assigned(request: &SgdRequest) -> Option<Assignment> {
    let spec = JudgeSpec {
        judge: request.judge.clone(),
        model: Model::Endpoint(request.judge_plan.clone()?),
        prompt: String::new(),
        known: None,
        scale: None,
    };
    let experiment = request.experiment.clone();
    Some(Assignment::new(experiment, spec, [0; 32], Vec::new(), 1))
}

/// The judge of a request behind HTTP, registered or as its plan has it.
pub(super) fn asked_judge(ledger: &Ledger, request: &SgdRequest) -> Option<JudgeRegistered> {
    let judges = ledger.state().fold::<Judges>().of(&request.experiment);
    let judge = judges.and_then(|of| of.judges.get(&request.judge));
    let judge = judge.map(|judge| judge.said.clone());
    let judge = judge.or_else(|| Some(assigned(request)?.registration));
    judge.filter(|judge| judge.port == JudgePort::Endpoint)
}

/// What every score of a plan costs at most; `None` where its judge is not behind HTTP, or is free.
///
/// # Errors
/// As [`AskedScoring::cost`].
pub fn judge_cost(
    (home, ledger): (&Home, &Ledger),
    (request, plan): (&SgdRequest, &SgdPlan),
    wire_of: &dyn Fn(Dialect) -> &'static dyn WireForm,
) -> Result<Option<SgdAgentCost>, SessionError> {
    let judge = asked_judge(ledger, request);
    let Some((judge, scoring)) = judge.zip(plan.opened.scoring.as_ref()) else {
        return Ok(None);
    };
    let asked = match &request.judge_plan {
        Some(asked) => asked.clone(),
        None => scoring::plan_of(ledger, &judge)?,
    };
    let Some(wire) = scoring::wire_at(ledger, &asked).map(wire_of) else {
        return Ok(None);
    };
    let of = AskedScoring {
        experiment: &request.experiment,
        plan: &asked,
        scoring,
        wire,
    };
    let prompt = request.prompt.render();
    of.cost((home, ledger), (&prompt, plan.asks(), 0))
}

/// Who pays for scores; none where the judge is not behind HTTP.
fn paid_by(ledger: &Ledger, request: &SgdRequest) -> Result<Option<SgdScoring>, SessionError> {
    let Some(judge) = asked_judge(ledger, request) else {
        return Ok(None);
    };
    if !ledger.state().asks(Question::AskedScores) {
        return Err(JudgingError::Unruled(Question::AskedScores.since()).into());
    }
    let asked = judge.asked.as_ref();
    let Some(asked) = asked else {
        return Ok(None);
    };
    let of = TariffTerms {
        endpoint: &asked.endpoint,
        pin: asked.pin.as_str(),
        account: request.scoring.account.as_ref(),
        opened: None,
    };
    let tariff = tariff::of(ledger, of)?;
    Ok(Some(SgdScoring {
        account: tariff.as_ref().map(|of| of.account.clone()),
        cap_usd_micro: request.scoring.cap_usd_micro.filter(|_| tariff.is_some()),
    }))
}

/// A run as it would be opened by an agents' key. Where the experiment had a run, it has the rows of the first.
///
/// # Errors
/// [`SgdError::FewRows`], [`SgdError::Prompt`], [`SgdError::Taken`], and when the log cannot be read.
pub fn plan(ledger: &Ledger, request: &SgdRequest, key: KeyId) -> Result<SgdPlan, SessionError> {
    let (state, experiment) = (ledger.state(), &request.experiment);
    let runs = state.fold::<SgdRuns>();
    if runs.by_id.contains_key(&request.run) {
        return Err(SgdError::Taken(request.run.clone()).into());
    }
    let first = runs.first_of(experiment).map(|run| &run.said);
    let head = ledger.size().saturating_sub(1);
    let through = first.map_or(head, |first| first.through_seq.value());
    let terms = SgdTerms {
        target: first.map_or(request.terms.target, |first| first.terms.target),
        ..request.terms.clone()
    };
    rule::check_terms(&terms).map_err(|unmet| SgdError::Terms(Box::new(unmet)))?;
    let all = labelled(ledger, (experiment, through), terms.target)?;
    // Whoever opens it names the checkpoint at the head, where no entry named one above its labels.
    let beacon = beacon_of(state, experiment, Some(ledger.seen()));
    let none = || SgdError::NoRun(request.run.clone());
    let seed = seed_of(state, experiment, (beacon, request.run.as_str())).ok_or_else(none)?;
    let of_parts = parts_seed(state, experiment, beacon).ok_or_else(none)?;
    let total = all.len();
    let parts = rows::parts(all, of_parts);
    for split in LISTED {
        if parts.get(&split).is_none_or(|rows| rows.len() < 3) {
            return Err(SgdError::FewRows {
                experiment: experiment.clone(),
                split,
                rows: total,
            }
            .into());
        }
    }
    for split in [SgdSplit::Train, SgdSplit::Val, SgdSplit::Test] {
        let mut targets = parts[&split].iter().map(|row| row.target_micro);
        let first = targets.next();
        if targets.all(|other| Some(other) == first) {
            return Err(SgdError::EqualTargets(split).into());
        }
    }
    let root = |split| part_root(&parts[&split]);
    let json = String::from_utf8(request.prompt.to_json());
    let json = json.ok().and_then(SgdDocument::new);
    let prompt = json.ok_or_else(|| {
        SgdError::Prompt("expected one of at most 32768 bytes as canonical JSON".to_owned())
    })?;
    let opened = SgdOpened {
        agents: request.agents,
        asked: asked(ledger, request)?,
        beacon,
        build: text(BUILD),
        judge: request.judge.clone(),
        key,
        lexicon: Lexicon::built_in().digest(),
        model: request.model.clone(),
        prompt,
        prompt_digest: request.prompt.digest(),
        run: request.run.clone(),
        scoring: paid_by(ledger, request)?,
        seed,
        splits: SgdSplits {
            confirm: root(SgdSplit::Confirm),
            test: root(SgdSplit::Test),
            train: root(SgdSplit::Train),
            val: root(SgdSplit::Val),
        },
        terms,
        through_seq: Count::new(through).unwrap_or_default(),
    };
    Ok(SgdPlan {
        opened,
        rows: parts,
    })
}

/// A simulated judge, as it is registered.
fn registered(request: &SgdRequest, is_null: bool) -> JudgeRegistered {
    let model = if is_null {
        simulated::NULL_MODEL
    } else {
        simulated::MODEL
    };
    JudgeRegistered {
        asked: None,
        decoding: Decoding {
            temperature_micro: Micro::default(),
        },
        evidence_schema: text(evidence::SCHEMA),
        extractor: text(extract::VERSION),
        judge: request.judge.clone(),
        known: None,
        model: text(model),
        of: None,
        port: JudgePort::Builtin,
        prompt: None,
        prompt_hash: Digest::sha256(b""),
        repeat: None,
        scale: None,
        tool_snapshot: Digest::sha256(b""),
    }
}

/// Opens a run. A simulated judge that is not registered is registered before it.
///
/// # Errors
/// [`SgdError`]; no key; what the ledger says.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    request: &SgdRequest,
) -> Result<AppendedEvent, SessionError> {
    let need = KeyNeed::of(Seat::Optimizer, Kind::SgdPatchProposed);
    let signer = ports.signer(ledger.state(), need)?;
    let key = signer.id();
    if ledger.state().fold::<SgdRuns>().judged.contains(&key) {
        return Err(SgdError::JudgedKey(key).into());
    }
    let plan = plan(ledger, request, key)?;
    let asked = plan.opened.asked.as_ref();
    let account = asked.and_then(|asked| asked.account.as_ref());
    tariff::spender(ledger, &signer, account)?;
    let experiment = &request.experiment;
    let judges = ledger.state().fold::<Judges>().of(experiment);
    let known = judges.is_some_and(|of| of.judges.contains_key(&request.judge));
    match (known, request.simulated) {
        (true, _) => {}
        (false, _) if request.judge_plan.is_some() => {
            let signer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::JudgeRegistered))?;
            if let Some(assignment) = assigned(request) {
                assignment.register(ledger, &signer)?;
            }
        }
        (false, Some(is_null)) => {
            let said = registered(request, is_null);
            say(ports, ledger, experiment, said.into())?;
        }
        (false, None) => {
            return Err(SgdError::NoJudge {
                judge: request.judge.clone(),
                experiment: experiment.clone(),
            }
            .into());
        }
    }
    say(ports, ledger, experiment, plan.opened.into())
}

fn say(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    payload: Payload,
) -> Result<AppendedEvent, SessionError> {
    let signer = ports.signer(ledger.state(), KeyNeed::by_kind(payload.kind()))?;
    let command = Command::new(payload, Some(experiment.clone()));
    let appended = append::append(ports, ledger, &[command], &signer)?;
    let first = appended.into_iter().next();
    first.ok_or_else(|| SessionError::NoKey(Role::Registrar.to_string()))
}
