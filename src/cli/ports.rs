//! The ports of use cases, for whoever types commands: keys from files, consent from a person or `--yes`, judges as
//! programs, notes on standard error.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::cast;
use crate::cli::cast::PlannedEvent;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::ui::Pace;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::id::PolicyId;
use crate::event::id::RunId;
use crate::event::payload::Role;
use crate::event::payload::scoring::JudgeRegistered;
use crate::ground::digest::Digest;
use crate::ground::interrupt::Interrupts;
use crate::ground::seal::Identity;
use crate::ground::seal::Recipient;
use crate::ground::sign::Signer;
use crate::ledger::State;
use crate::session::error::PortError;
use crate::session::ports::Consent;
use crate::session::ports::FirstConflict;
use crate::session::ports::Judges;
use crate::session::ports::KeyNeed;
use crate::session::ports::Keys;
use crate::session::ports::Notice;
use crate::session::ports::Question;
use crate::session::ports::Seat;
use crate::session::ports::Signs;
use crate::session::ports::Watcher;
use crate::session::ports::Work;
use crate::view::Exit;
use crate::view::iterate::reach as reaches;
use crate::view::judge_ask::dollars;
use crate::view::judge_ask::late_rows;
use crate::view::key::fingerprint;
use crate::view::text::thousands;
use crate::workflow::judge::Judge;

/// A command's ports: what its options say of keys and consent.
pub(super) struct CliPorts<'c, 'w> {
    ctx: &'c mut Ctx<'w>,
    custodian: Option<String>,
    second: Option<String>,
    scorer: Option<String>,
    optimizer: Option<String>,
    identity: Option<PathBuf>,
    yes: bool,
    again: Option<String>,
    outlook: Option<String>,
    seals: bool,
    program: Option<Program>,
    pace: Option<(Work, Pace)>,
    interrupts: Option<Interrupts>,
}

impl<'w> Ctx<'w> {
    /// The ports of this command.
    pub(super) fn ports(&mut self) -> CliPorts<'_, 'w> {
        CliPorts {
            ctx: self,
            custodian: None,
            second: None,
            scorer: None,
            optimizer: None,
            identity: None,
            yes: false,
            again: None,
            outlook: None,
            seals: false,
            program: None,
            pace: None,
            interrupts: None,
        }
    }
}

impl CliPorts<'_, '_> {
    /// With the key of `--custodian`.
    pub(super) fn with_custodian(mut self, key: Option<&String>) -> Self {
        self.custodian = key.cloned();
        self
    }

    /// With the key of `--second`.
    pub(super) fn with_second(mut self, key: Option<&String>) -> Self {
        self.second = key.cloned();
        self
    }

    /// With the key of `--scorer`.
    pub(super) fn with_scorer(mut self, key: Option<&String>) -> Self {
        self.scorer = key.cloned();
        self
    }

    /// With the key of `--requester`.
    pub(super) fn with_optimizer(mut self, key: Option<&String>) -> Self {
        self.optimizer = key.cloned();
        self
    }

    /// With the file of `--identity`.
    pub(super) fn with_identity(mut self, file: Option<&Path>) -> Self {
        self.identity = file.map(Path::to_owned);
        self
    }

    /// With the answer of `--yes`, and the command that asks again.
    pub(super) fn with_consent(mut self, yes: bool, again: impl Into<String>) -> Self {
        (self.yes, self.again) = (yes, Some(again.into()));
        self
    }

    /// With the answer of `--yes` about seals alone.
    pub(super) fn with_seals(mut self, yes: bool) -> Self {
        self.seals = yes;
        self
    }

    /// With what is foreseen of a peek, in words.
    pub(super) fn with_outlook(mut self, words: Option<String>) -> Self {
        self.outlook = words;
        self
    }

    /// With signals to stop taken from here on.
    pub(super) fn with_interrupts(mut self) -> Result<Self, CliError> {
        self.interrupts = Some(interrupts()?);
        Ok(self)
    }

    /// With the program that follows `--`.
    pub(super) fn with_program(mut self, program: &Program) -> Self {
        self.program = Some(program.clone());
        self
    }

    /// An event or a charge, with the option that names the key for it.
    fn part(&self, state: &State, need: &KeyNeed<'_>) -> PlannedEvent<'_> {
        let (option, named) = match need.seat {
            Seat::Runner => ("--key", None),
            Seat::Countersigner | Seat::Custodian => ("--custodian", self.custodian.as_ref()),
            Seat::Scorer => ("--scorer", self.scorer.as_ref()),
            Seat::Optimizer => ("--requester", self.optimizer.as_ref()),
            Seat::Second => ("--second", self.second.as_ref()),
        };
        PlannedEvent::of(what(need), need.roles(state), option, named)
    }

    /// The custodian's key for a plan, found as the runner's is; `--key` names the registrar's.
    fn countersigner(&mut self, state: &State, need: &KeyNeed<'_>) -> Result<Signer, CliError> {
        let custodian = self.custodian.clone();
        let key = std::mem::replace(&mut self.ctx.globals.key, custodian);
        let found = signer(self.ctx, state, need);
        self.ctx.globals.key = key;
        found.map_err(|mut error| {
            error.next = error.next.replace("--key", "--custodian");
            error
        })
    }

    /// The key of a scorer or an optimizer: the named one, else the one key at hand that may sign. `--key` is whoever runs the
    /// command, and signs where it may.
    fn named(
        &mut self,
        state: &State,
        need: &KeyNeed<'_>,
        has_name: bool,
    ) -> Result<Signer, CliError> {
        let is_named = self.ctx.globals.key.is_some() || self.ctx.variable("CLOVER_KEY").is_some();
        if is_named || has_name {
            return self.seated(state, need);
        }
        signer(self.ctx, state, need)
    }

    /// The key of a seat other than the runner's.
    fn seated(&mut self, state: &State, need: &KeyNeed<'_>) -> Result<Signer, CliError> {
        let part = self.part(state, need);
        let found = cast::of_parts(self.ctx, state, &[part])?;
        let own = self.ctx.globals.key.clone();
        self.ctx.globals.key = found.into_iter().next().flatten();
        let signer = signer(self.ctx, state, need);
        self.ctx.globals.key = own;
        signer
    }
}

/// Signals to stop, for this program to see from here on.
pub(super) fn interrupts() -> Result<Interrupts, CliError> {
    Interrupts::begin().map_err(|error| {
        let message = format!("cannot take signals: {error}");
        CliError::new(Exit::Unexpected, "unexpected", message, "clover doctor")
    })
}

/// Why nothing that is sealed or private is opened on a slate: what pays for it is not on record there yet.
pub(super) fn first_on_record() -> CliError {
    CliError::refused(
        "what is sealed or private is opened or destroyed where the log is written: the event must be on record first",
        "the same command on the copy that has the log key",
    )
}

fn what(need: &KeyNeed<'_>) -> &'static str {
    match need.signs {
        Signs::Kind(kind) => kind.as_str(),
        Signs::Charge(_) => Kind::BudgetCharged.as_str(),
    }
}

fn signer(ctx: &mut Ctx<'_>, state: &State, need: &KeyNeed<'_>) -> Result<Signer, CliError> {
    match need.signs {
        Signs::Kind(kind) => wallet::signer(ctx, state, kind),
        Signs::Charge(spenders) => wallet::spender(ctx, state, spenders),
    }
}

impl Keys for CliPorts<'_, '_> {
    fn signer(&mut self, state: &State, need: KeyNeed<'_>) -> Result<Arc<Signer>, PortError> {
        let found = match need.seat {
            Seat::Runner => signer(self.ctx, state, &need),
            Seat::Countersigner => self.countersigner(state, &need),
            Seat::Scorer => self.named(state, &need, self.scorer.is_some()),
            Seat::Optimizer => self.named(state, &need, self.optimizer.is_some()),
            Seat::Custodian | Seat::Second => self.seated(state, &need),
        };
        Ok(Arc::new(found?))
    }

    fn check(&mut self, state: &State, needs: &[KeyNeed<'_>]) -> Result<(), PortError> {
        let parts: Vec<_> = needs.iter().map(|need| self.part(state, need)).collect();
        cast::of_parts(self.ctx, state, &parts)?;
        Ok(())
    }

    fn holds(&mut self, state: &State, role: Role) -> Result<bool, PortError> {
        Ok(wallet::holds(self.ctx, state, role)?)
    }

    fn identity(&mut self, state: &State, recipient: &Recipient) -> Result<Identity, PortError> {
        if self.ctx.slate.is_some() {
            return Err(first_on_record().into());
        }
        let file = self.identity.clone();
        Ok(wallet::identity(
            self.ctx,
            state,
            file.as_deref(),
            recipient,
        )?)
    }
}

impl Consent for CliPorts<'_, '_> {
    fn ask(&mut self, question: &Question) -> Result<(), PortError> {
        // No bar is drawn over a question.
        self.pace = None;
        let outlook = self.outlook.as_ref();
        let outlook = outlook.map_or_else(String::new, |words| format!("; {words}"));
        let asked = asked(question, &outlook);
        // An answer about seals is none about conflicts, which block an experiment for good.
        let (is_answered, again) = match question {
            Question::Seal { .. } => (self.seals, None),
            _ => (self.yes, self.again.clone()),
        };
        let again = again.unwrap_or_else(|| "the same command with".to_owned());
        let answered = self.ctx.confirm(&asked, is_answered, &again);
        Ok(answered.map_err(|error| match question {
            Question::Conflicts { first, .. } => error.with_next(look(first.seq)),
            _ => error,
        })?)
    }
}

/// How to see a recorded score that a file would contradict: what blocks an experiment for good is nothing to type next.
pub(super) fn look(seq: u64) -> String {
    format!(
        "clover show {seq}; where another judge gave these scores, the same command with --judge ID"
    )
}

/// A question in words, with what is foreseen of a peek.
fn asked(question: &Question, outlook: &str) -> String {
    match question {
        Question::Conflicts {
            experiment,
            first,
            rows,
        } => conflicts(experiment, first, *rows),
        Question::AdmitKey { key, holder, roles } => format!(
            "admit {holder} as {roles}: did {holder} read this fingerprint to you, {}",
            fingerprint(key)
        ),
        Question::EndKey {
            key,
            holder,
            roles,
            is_compromised,
        } => format!(
            "{} key {key} of {holder} ({roles})",
            ending(*is_compromised)
        ),
        Question::Erasure { subject, answers } => erasure(subject, *answers),
        Question::OutOfReach {
            iteration,
            manifest,
            reach,
        } => {
            let lacks = reaches::lacks(reach).join("; ");
            format!("open {iteration} under {manifest}, which its data can never reach: {lacks}")
        }
        Question::Peek {
            design,
            labels,
            unit,
            peek,
            amount,
            period,
            account,
            signed_by,
            purpose,
        } => {
            let by = signed_by.as_deref().map_or_else(String::new, under_key);
            format!(
                "open {labels} labels of {design} with {unit} {peek} of {amount} in {period}{outlook}; charged to {account}{by}, for {purpose}"
            )
        }
        Question::Seal {
            design,
            labels,
            policies,
            unprobed,
        } => format!(
            "seal {labels} labels in {design} for good: a charged peek alone opens them{}",
            without_probe(unprobed, *policies)
        ),
        Question::Spend {
            account,
            asks,
            late,
            most,
        } => spend(account.as_deref(), (*asks, *most), *late),
        Question::StopRun {
            account,
            held_asks,
            run,
            unknown,
        } => stop_run(run, account.as_deref(), (*held_asks, *unknown)),
        Question::Rulebook(version) => format!(
            "adopt rulebook {version}: it judges every entry from here on, and no older one can be adopted again"
        ),
    }
}

/// Whose key signs a charge.
fn under_key(holder: &str) -> String {
    format!(" under the key of {holder}")
}

/// The word for the end of a key.
fn ending(is_compromised: bool) -> &'static str {
    if is_compromised {
        "compromise"
    } else {
        "retire"
    }
}

/// Whether scores that contradict the record are recorded as conflicts.
fn conflicts(experiment: &ExperimentId, first: &FirstConflict, rows: usize) -> String {
    format!(
        "{}:{}: {} by {} is recorded with {}, and the file says {}; record {rows} such scores as conflicts, which block {experiment} for good? Where the file is of another policy or judge, give --policy or --judge; --yes records them",
        first.file,
        first.line,
        first.said.item,
        first.said.policy,
        first.said.recorded_micro,
        first.said.score_micro
    )
}

/// Whether a subject's key is destroyed.
fn erasure(subject: &Digest, answers: u64) -> String {
    let too = match answers {
        0 => String::new(),
        1 => "; so is the answer of a model about it".to_owned(),
        _ => format!("; so are {answers} answers of models about it"),
    };
    format!("destroy the key of subject {subject}; its private content is lost for good{too}")
}

/// Whether a model is asked so often, for so much.
fn spend(account: Option<&str>, (asks, most): (u64, u64), late: u64) -> String {
    let asks = thousands(asks);
    let paid = account.map_or_else(String::new, |account| {
        let most = dollars(most);
        format!(" that may cost {account} up to {most}")
    });
    let late = late_rows(late).map_or_else(String::new, |late| format!("; {late}"));
    format!("send {asks} asks{paid}{late}")
}

/// Whether a run ends though asks are left.
fn stop_run(run: &RunId, account: Option<&str>, (asks, unknown): (u64, u64)) -> String {
    let charged = account.map_or_else(String::new, |account| {
        let unknown = dollars(unknown);
        format!("; {account} is charged {unknown} for {asks} asks that may have been sent")
    });
    format!("end {run}: nothing goes on in it{charged}")
}

/// Policies that a design of probes leaves out, in words.
fn without_probe(unprobed: &[PolicyId], policies: usize) -> String {
    if unprobed.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = unprobed.iter().map(PolicyId::as_str).collect();
    format!(
        "; {} of {policies} policies have no probe in it, and no audit by it checks them: {}",
        names.len(),
        names.join(", ")
    )
}

/// What takes a while, in words.
fn words(work: Work) -> &'static str {
    match work {
        Work::Appending => "bytes appended",
        Work::Attack => "answers attacked",
        Work::Copying => "pages copied",
        Work::Descending => "steps taken",
        Work::Repairing => "turns taken",
        Work::Trying => "steps of all runs (open, run, score)",
        Work::Judging => "rows judged",
        Work::JudgingAgain => "rows scored again",
        Work::Loading => "loaded",
        Work::Reading => "entries read again",
        Work::Observing => "units observed",
        Work::Verifying => "verified",
    }
}

impl Watcher for CliPorts<'_, '_> {
    fn heed(&mut self, heeds: bool) -> Result<(), PortError> {
        self.interrupts = heeds.then(interrupts).transpose()?;
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::came)
    }

    fn progress(&mut self, work: Work, done: u64, all: u64) {
        if self.pace.as_ref().is_none_or(|(of, _)| *of != work) {
            self.pace = Some((work, self.ctx.pace(words(work))));
        }
        if let Some((_, pace)) = &mut self.pace {
            pace.at(done, all, self.ctx.stderr());
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.pace = None;
        match notice {
            Notice::PinLags(error) => self.ctx.warn(format!(
                "recorded, and the pin lags behind: {error}; next: clover checkpoint pin"
            )),
            Notice::PeekCharged {
                unit,
                peek,
                amount,
                period,
                seq,
            } => self.ctx.note(&format!(
                "{unit} {peek} of {amount} in {period} charged at seq {seq}"
            )),
            Notice::ReadRecorded(seq) => {
                self.ctx
                    .note(&format!("the read is on record at seq {seq}"));
            }
            Notice::RevealedLate(late) => self
                .ctx
                .warn(format!("{late} labels were revealed after their deadline")),
            Notice::Rows(found) => self.ctx.warn(found),
        }
    }
}

impl Judges for CliPorts<'_, '_> {
    fn judge(&mut self, judge: &JudgeRegistered) -> Result<Box<dyn Judge + Send>, PortError> {
        let program = self.program.clone().unwrap_or_default();
        Ok(program::port(self.ctx, judge, &program)?)
    }
}
