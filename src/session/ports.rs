//! What a use case asks of its caller: keys, consent, judges, and a place for progress and notices.
//!
//! A command line reads keys from files and asks a person; a server holds a token and asks nobody. Both implement these
//! traits. [`KeysInHand`] is the plain one: keys in memory, consent given, nothing shown.

use std::fmt;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::ManifestId;
use clover_event::id::PolicyId;
use clover_event::id::RunId;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::judge::ScoreConflict;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::registry::Signers;
use clover_ground::digest::Digest;
use clover_ground::seal::Identity;
use clover_ground::seal::Recipient;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signer;
use clover_ledger::State;
use clover_ledger::signers;
use clover_workflow::iterate::reach::Reach;
use clover_workflow::judge::Judge;
use clover_workflow::judge::builtin;
use zeroize::Zeroizing;

use crate::error::PortError;
use crate::error::SessionError;

/// Which of several people a key is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    /// Whoever runs the use case.
    Runner,
    /// Whoever countersigns a plan, as custodian of the data that it binds.
    Countersigner,
    /// Whoever holds sealed labels, and pays for opening them.
    Custodian,
    /// Whoever writes patches.
    Optimizer,
    /// Whoever answers for scores.
    Scorer,
    /// Whoever agrees to what another key said.
    Second,
}

/// What a key is to sign.
#[derive(Clone, Copy, Debug)]
pub enum Signs<'a> {
    /// An event of a kind.
    Kind(Kind),
    /// A charge to an account with these spenders; any role where the account is not known.
    Charge(Option<&'a Roles>),
}

/// A key that a use case needs.
#[derive(Clone, Copy, Debug)]
pub struct KeyNeed<'a> {
    /// Of whom.
    pub seat: Seat,
    /// For what.
    pub signs: Signs<'a>,
}

impl KeyNeed<'static> {
    /// The runner's key for an event.
    pub fn runner(kind: Kind) -> Self {
        Self::of(Seat::Runner, kind)
    }

    /// The key of whoever answers for scores, for an event that is theirs.
    pub fn scorer(kind: Kind) -> Self {
        Self::of(Seat::Scorer, kind)
    }

    /// The key for an event by what its kind asks: whoever answers for scores may be another than whoever runs the use case.
    pub fn by_kind(kind: Kind) -> Self {
        match kind.signers() {
            Signers::Role(Role::Scorer) => Self::scorer(kind),
            _ => Self::runner(kind),
        }
    }

    /// A seat's key for an event.
    pub fn of(seat: Seat, kind: Kind) -> Self {
        let signs = Signs::Kind(kind);
        Self { seat, signs }
    }
}

impl<'a> KeyNeed<'a> {
    /// A seat's key for a charge.
    pub fn charge(seat: Seat, spenders: Option<&'a Roles>) -> Self {
        let signs = Signs::Charge(spenders);
        Self { seat, signs }
    }

    /// The roles of which one is needed; none where any key will do.
    pub fn roles(&self, state: &State) -> Vec<Role> {
        match self.signs {
            Signs::Kind(kind) => signers::needed(state, kind),
            Signs::Charge(spenders) => spenders.map_or_else(Vec::new, |of| of.as_slice().to_vec()),
        }
    }
}

/// The keys at hand.
pub trait Keys {
    /// The key that signs.
    ///
    /// # Errors
    /// When none or several could.
    fn signer(&mut self, state: &State, need: KeyNeed<'_>) -> Result<Arc<Signer>, PortError>;

    /// Looks for every key that is needed, before anything is charged or said.
    ///
    /// # Errors
    /// All that lack, in one error.
    fn check(&mut self, state: &State, needs: &[KeyNeed<'_>]) -> Result<(), PortError>;

    /// Whether a live key with a role is at hand.
    ///
    /// # Errors
    /// When the keys cannot be read.
    fn holds(&mut self, state: &State, role: Role) -> Result<bool, PortError>;

    /// The identity that opens what is sealed to a recipient.
    ///
    /// # Errors
    /// When it is not at hand.
    fn identity(&mut self, state: &State, recipient: &Recipient) -> Result<Identity, PortError>;
}

/// What is asked before something that cannot be undone.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Scores of files are another value for scores that stand: an experiment with such a conflict is blocked for good.
    Conflicts {
        /// The experiment.
        experiment: ExperimentId,
        /// The first of them: file, line, and what differs.
        first: Box<FirstConflict>,
        /// How many there are.
        rows: usize,
    },
    /// A key that was made elsewhere joins: what it signs counts as its holder's word.
    AdmitKey {
        /// Its id, which its holder reads out.
        key: KeyId,
        /// Its holder.
        holder: String,
        /// Its roles.
        roles: String,
    },
    /// A key ends: it signs nothing more.
    EndKey {
        /// Its id.
        key: KeyId,
        /// Its holder.
        holder: String,
        /// Its roles.
        roles: String,
        /// Whether it was compromised; else it retires.
        is_compromised: bool,
    },
    /// The key of a subject is destroyed, and its private content is lost for good.
    Erasure {
        /// The subject.
        subject: Digest,
        /// Answers of models about its texts, whose keys go too.
        answers: u64,
    },
    /// An iteration opens under a plan that its data can never reach.
    OutOfReach {
        /// The iteration.
        iteration: IterationId,
        /// Its plan.
        manifest: ManifestId,
        /// What the data hold of it.
        reach: Box<Reach>,
    },
    /// A peek at sealed labels is charged, and the labels are opened.
    Peek {
        /// The account that is charged.
        account: String,
        /// The holder of the key that signs the charge, where the ledger names one.
        signed_by: Option<String>,
        /// The labels' design.
        design: String,
        /// How many labels are opened.
        labels: usize,
        /// What the account counts.
        unit: String,
        /// Which peek this is, from 1.
        peek: u64,
        /// How many the account has in a period.
        amount: u64,
        /// The period.
        period: String,
        /// What the labels are opened for.
        purpose: String,
    },
    /// Labels are sealed: a charged peek alone opens them.
    Seal {
        /// Their design.
        design: DesignId,
        /// How many.
        labels: usize,
        /// Policies that are scored, where the labels are probes for audits.
        policies: usize,
        /// Those of them of which the design has no probe.
        unprobed: Vec<PolicyId>,
    },
    /// A judge behind HTTP is asked, for more than nobody needs to agree to.
    Spend {
        /// The account that pays; none at a free endpoint.
        account: Option<String>,
        /// How many asks.
        asks: u64,
        /// Rows of them whose policy has labels that can be read: their scores count in no value as things stand.
        late: u64,
        /// What they may cost at most, in millionths of a dollar.
        most: u64,
    },
    /// A run of a judge behind HTTP ends though asks are left, and what is held for it is charged as a whole.
    StopRun {
        /// The account that is charged; none at a free endpoint.
        account: Option<String>,
        /// Asks that are held for and came to nothing on record.
        held_asks: u64,
        /// The run.
        run: RunId,
        /// What is charged for them though nobody knows it to be spent, in millionths of a dollar.
        unknown: u64,
    },
    /// A rulebook judges every entry from here on, and no older one can be adopted again.
    Rulebook(u32),
}

/// A score of a file that differs from the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstConflict {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// Both values, of which answer.
    pub said: ScoreConflict,
    /// Where the recorded one stands.
    pub seq: u64,
}

/// Consent of the person or program behind a use case.
pub trait Consent {
    /// Asks; an error where the answer is no, or nobody can be asked.
    ///
    /// # Errors
    /// Where there is no consent; nothing was changed then.
    fn ask(&mut self, question: &Question) -> Result<(), PortError>;
}

/// What takes a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Bytes of events are appended.
    Appending,
    /// Answers are edited and judged anew.
    Attack,
    /// Pages of a ledger file are copied.
    Copying,
    /// Rows are judged.
    Judging,
    /// Rows are judged again.
    JudgingAgain,
    /// Steps of a run that lowers the loss of a prompt are taken.
    Descending,
    /// Entries of an export are loaded.
    Loading,
    /// Entries are read again.
    Reading,
    /// Units of a gate are observed.
    Observing,
    /// Turns of a run that repairs a workflow are taken.
    Repairing,
    /// Runs that an update or a plan names are opened, gone through and scored: three steps a run.
    Trying,
    /// Entries are verified.
    Verifying,
}

/// What a caller should hear of, beside the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Recorded, and the pin lags behind: why.
    PinLags(String),
    /// A peek was charged.
    PeekCharged {
        /// What the account counts.
        unit: String,
        /// Which peek this was, from 1.
        peek: u64,
        /// How many the account has in a period.
        amount: u64,
        /// The period.
        period: String,
        /// Where it stands.
        seq: u64,
    },
    /// A read of private content is on record at this entry.
    ReadRecorded(u64),
    /// So many labels were revealed after their deadline.
    RevealedLate(usize),
    /// What reading the rows found.
    Rows(String),
}

/// Where progress and notices go.
pub trait Watcher {
    /// `done` of `all`; `all` is 0 where nobody knows it.
    fn progress(&mut self, work: Work, done: u64, all: u64);

    /// Something beside the outcome.
    fn notice(&mut self, notice: Notice);

    /// Takes signals to stop from here on, for [`is_interrupted`](Self::is_interrupted) to see, or leaves them to the system.
    ///
    /// # Errors
    /// When the system refuses.
    fn heed(&mut self, _heeds: bool) -> Result<(), PortError> {
        Ok(())
    }

    /// Whether somebody asked to stop. What is on record stands, and the same use case goes on from there.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The judges that can be asked.
pub trait Judges {
    /// A registered judge, ready to be asked.
    ///
    /// # Errors
    /// When it cannot be asked here.
    fn judge(&mut self, judge: &JudgeRegistered) -> Result<Box<dyn Judge + Send>, PortError>;
}

/// Everything that a use case asks of its caller.
pub trait Ports: Keys + Consent + Watcher + Judges {}

impl<T: Keys + Consent + Watcher + Judges> Ports for T {}

/// Keys and identities in memory, for programs: the first that may sign does, consent is given, nothing is shown, and only
/// the built-in judge can be asked.
#[derive(Default)]
pub struct KeysInHand {
    /// Keys, the preferred first.
    pub signers: Vec<Arc<Signer>>,
    /// What opens sealed labels.
    pub identities: Vec<Identity>,
}

impl fmt::Debug for KeysInHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.signers.iter().map(|signer| signer.id()).collect();
        f.debug_struct("KeysInHand")
            .field("signers", &ids)
            .finish_non_exhaustive()
    }
}

impl KeysInHand {
    fn may(state: &State, signer: &Signer, need: &KeyNeed<'_>) -> bool {
        let Some(key) = state.keyring.keys.get(&signer.id()) else {
            return false;
        };
        let is_genesis =
            matches!(need.signs, Signs::Kind(kind) if kind.signers() == Signers::Genesis);
        let roles = need.roles(state);
        let has_role = roles.is_empty() || roles.iter().any(|role| key.roles.contains(*role));
        key.end.is_none() && !is_genesis && has_role
    }
}

impl Keys for KeysInHand {
    fn signer(&mut self, state: &State, need: KeyNeed<'_>) -> Result<Arc<Signer>, PortError> {
        let mut all = self.signers.iter();
        let may = |signer: &&Arc<Signer>| Self::may(state, signer, &need);
        let found = match need.seat {
            // Two who agree are two: the last key of several.
            Seat::Second => all.rfind(may),
            _ => all.find(may),
        };
        let found =
            found.ok_or_else(|| PortError::new(SessionError::NoKey(format!("{need:?}"))))?;
        Ok(found.clone())
    }

    fn check(&mut self, state: &State, needs: &[KeyNeed<'_>]) -> Result<(), PortError> {
        needs
            .iter()
            .try_for_each(|need| self.signer(state, *need).map(drop))
    }

    fn holds(&mut self, state: &State, role: Role) -> Result<bool, PortError> {
        let live = |signer: &Arc<Signer>| {
            let key = state.keyring.keys.get(&signer.id());
            key.is_some_and(|key| key.end.is_none() && key.roles.contains(role))
        };
        Ok(self.signers.iter().any(live))
    }

    fn identity(&mut self, _: &State, recipient: &Recipient) -> Result<Identity, PortError> {
        let mut all = self.identities.iter();
        let found = all.find(|identity| identity.recipient() == *recipient);
        let again = found.and_then(|identity| {
            let secret = Zeroizing::new(identity.to_string());
            secret.parse().ok()
        });
        again.ok_or_else(|| PortError::new(SessionError::NoIdentity(recipient.to_string())))
    }
}

impl Consent for KeysInHand {
    fn ask(&mut self, _: &Question) -> Result<(), PortError> {
        Ok(())
    }
}

impl Watcher for KeysInHand {
    fn progress(&mut self, _: Work, _: u64, _: u64) {}

    fn notice(&mut self, _: Notice) {}
}

impl Judges for KeysInHand {
    fn judge(&mut self, judge: &JudgeRegistered) -> Result<Box<dyn Judge + Send>, PortError> {
        match judge.port {
            JudgePort::Builtin => Ok(Box::new(builtin::Builtin)),
            JudgePort::Command | JudgePort::Endpoint | JudgePort::Recorded => Err(PortError::new(
                SessionError::NoJudge(judge.judge.to_string()),
            )),
        }
    }
}
