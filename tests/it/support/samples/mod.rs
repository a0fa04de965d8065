//! The good sample ledger: every kind of the registry in one story of a few people under strict
//! separation, told through the real ledger with a fixed clock and fixed keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use clover::event::Payload;
use clover::event::entry;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::PrivateRef;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::Verdict;
use clover::event::payload::budget::BudgetCharged;
use clover::event::payload::budget::BudgetOpened;
use clover::event::payload::budget::Period;
use clover::event::payload::custody::KeyAdded;
use clover::event::payload::custody::KeyCompromised;
use clover::event::payload::custody::KeyRetired;
use clover::event::payload::custody::LogKeyRotated;
use clover::event::payload::custody::PolicyAdopted;
use clover::event::payload::custody::RetentionSet;
use clover::event::payload::custody::Separation;
use clover::event::payload::custody::SubjectErased;
use clover::event::payload::experiment::ExperimentClosed;
use clover::event::payload::experiment::ExperimentOutcome;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::label::LabelPurpose;
use clover::event::payload::label::LabelRecorded;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::record::AuditAttested;
use clover::event::payload::record::DataRead;
use clover::event::payload::record::NoteRecorded;
use clover::event::payload::record::ReadOutcome;
use clover::event::payload::record::ReviewOutcome;
use clover::event::payload::record::ReviewRecorded;
use clover::ground::ambient::Ambient;
use clover::ground::ambient::Clock;
use clover::ground::ambient::FixedClock;
use clover::ground::ambient::SeededEntropy;
use clover::ground::digest::Digest;
use clover::ground::note::KeyName;
use clover::ground::note::VerifierKey;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::seal::LabelOpening;
use clover::ground::seal::SubjectKey;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::AppendedEvent;
use clover::ledger::Command;
use clover::ledger::CreateLedger;
use clover::ledger::Ledger;
use clover::ledger::LedgerError;
use clover::ledger::rules;
use clover::num::Count;
use clover::num::Micro;
use clover::store::CreateOptions;
use clover::workflow::RULEBOOK;

use super::options;
use super::signer;
use super::text;

mod intake;
mod trust;

pub use intake::ARENA;
pub use intake::held;
pub use trust::DOUBT;

/// Origin of the samples.
pub const ORIGIN: &str = "ledger.example/audits";
/// The experiment in them.
pub const EXPERIMENT: &str = "exp-1";
/// The story crosses the end of a quarter between its two peeks.
const START: &str = "2026-09-30T22:25:00.000000Z";
const STEP_SECONDS: i64 = 180;

/// Who signs, by the byte that their seed is made of.
pub const ADA: u8 = 1;
pub const LOG: u8 = 2;
pub const BEN: u8 = 3;
pub const RUNNER: u8 = 4;
pub const LENA: u8 = 5;
pub const CLEO: u8 = 6;
pub const AUDE: u8 = 7;
pub const RUNNER_2: u8 = 8;
pub const RUNNER_3: u8 = 9;
pub const NEXT_LOG: u8 = 10;
pub const STRANGER: u8 = 11;
pub const ARBITER: u8 = 12;
pub const STELLA: u8 = 13;
pub const PETRA: u8 = 14;
pub const PAUL: u8 = 15;
/// Every author of the samples.
pub const AUTHORS: [u8; 13] = [
    ADA, BEN, RUNNER, LENA, CLEO, AUDE, RUNNER_2, RUNNER_3, STRANGER, ARBITER, STELLA, PETRA, PAUL,
];

/// A ledger as an auditor receives it.
#[derive(Clone, Debug)]
pub struct Story {
    /// Entry lines without newlines.
    pub lines: Vec<Vec<u8>>,
    /// Signed checkpoints by size.
    pub checkpoints: BTreeMap<u64, Vec<u8>>,
    /// Blobs by digest.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// Positions by name.
    pub names: BTreeMap<&'static str, usize>,
}

impl Story {
    /// The position of a named event.
    pub fn at(&self, name: &str) -> usize {
        *self
            .names
            .get(name)
            .unwrap_or_else(|| panic!("no event is named {name}"))
    }

    /// The newest checkpoint.
    pub fn head(&self) -> Vec<u8> {
        self.checkpoints.values().last().unwrap().clone()
    }
}

/// The vkey of a log key.
pub fn log_vkey(seed: u8) -> VerifierKey {
    VerifierKey::ed25519(KeyName::parse(ORIGIN).unwrap(), signer(seed).public_bytes()).unwrap()
}

/// The clock of the story, which the teller moves.
struct Shared(Arc<FixedClock>);

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Tells a story through a real ledger.
pub struct Teller {
    ledger: Ledger,
    clock: Arc<FixedClock>,
    now: Timestamp,
    names: BTreeMap<&'static str, usize>,
    ids: BTreeMap<&'static str, EventId>,
    blobs: BTreeMap<String, Vec<u8>>,
    _folder: tempfile::TempDir,
}

impl Teller {
    /// A ledger that names no rulebook.
    pub fn begin() -> Self {
        Self::begin_under(clover::ledger::rulebooks::UNNAMED)
    }

    pub fn begin_under(rulebook: u32) -> Self {
        let now = Timestamp::parse(START).unwrap();
        let clock = Arc::new(FixedClock::new(now, 250));
        let ambient = Arc::new(Ambient::new(
            Box::new(Shared(clock.clone())),
            Box::new(SeededEntropy::new([9; 32])),
        ));
        let folder = tempfile::tempdir().unwrap();
        let create = CreateLedger {
            origin: ORIGIN.parse().unwrap(),
            holder: "Ada".parse().unwrap(),
            human: true,
            roles: roles(&[Role::Owner, Role::Registrar]),
            separation: Separation::Solo,
            rulebook,
            owner: &signer(ADA),
            layout: CreateOptions::default(),
        };
        let ledger = Ledger::create(
            &folder.path().join("ledger.db"),
            create,
            ambient,
            &RULEBOOK,
            options(&folder.path().join("pins")),
        )
        .unwrap();
        Self {
            ledger,
            clock,
            now,
            names: BTreeMap::from([("created", 0)]),
            ids: BTreeMap::new(),
            blobs: BTreeMap::new(),
            _folder: folder,
        }
    }

    /// Appends named events as one batch.
    pub fn say_all(&mut self, who: u8, said: Vec<(&'static str, Command)>) {
        self.now = self.now.plus_seconds(STEP_SECONDS);
        self.clock.set(self.now);
        let (names, commands): (Vec<_>, Vec<_>) = said.into_iter().unzip();
        let blobs: Vec<_> = self.blobs.values().cloned().collect();
        let appended: Vec<AppendedEvent> = self
            .ledger
            .append_with_blobs(&commands, &signer(who), &blobs)
            .unwrap();
        for (name, appended) in names.into_iter().zip(appended) {
            assert!(!appended.already, "{name} stood there before");
            self.names
                .insert(name, usize::try_from(appended.seq).unwrap());
            self.ids.insert(name, appended.id);
        }
    }

    pub fn say(&mut self, who: u8, name: &'static str, payload: impl Into<Payload>) {
        self.say_all(who, vec![(name, Command::new(payload, None))]);
    }

    pub fn say_in(&mut self, who: u8, name: &'static str, payload: impl Into<Payload>) {
        self.say_all(who, vec![(name, in_experiment(payload))]);
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Appends an event in an experiment of its own.
    pub fn say_about(
        &mut self,
        who: u8,
        experiment: &str,
        name: &'static str,
        payload: impl Into<Payload>,
    ) -> EventId {
        let experiment = Some(experiment.parse().unwrap());
        self.say_all(who, vec![(name, Command::new(payload, experiment))]);
        self.ids[name]
    }

    pub fn say_id(&mut self, who: u8, name: &'static str, payload: impl Into<Payload>) -> EventId {
        self.say(who, name, payload);
        self.id(name)
    }

    pub fn id(&self, name: &str) -> EventId {
        self.ids[name]
    }

    /// The position of an event that was said.
    pub fn at(&self, name: &str) -> u64 {
        self.names[name] as u64
    }

    fn entropy<T>(&self, f: impl FnOnce(&mut dyn clover::ground::ambient::Entropy) -> T) -> T {
        self.ledger.ambient().with_entropy(f)
    }

    pub fn blob(&mut self, bytes: Vec<u8>, media: &str) -> BlobRef {
        let blake3 = Digest::blake3(&bytes);
        let length = Count::new(bytes.len() as u64).unwrap();
        self.blobs.insert(blake3.to_hex(), bytes);
        BlobRef {
            blake3,
            bytes: length,
            media: MediaType::new(media).unwrap(),
        }
    }

    fn private(&mut self, plaintext: &str) -> PrivateRef {
        let key = SubjectKey::from_bytes(&[0xc0; 32]);
        let sealed =
            self.entropy(|entropy| seal::encrypt_blob(&key, plaintext.as_bytes(), entropy));
        let sealed = sealed.unwrap();
        PrivateRef {
            blob: self.blob(sealed.bytes, "application/octet-stream"),
            commitment: sealed.commitment,
            subject: subject(),
        }
    }

    pub fn finish(self) -> Story {
        let (mut lines, mut checkpoints) = (Vec::new(), BTreeMap::new());
        let size = self.ledger.size();
        let take = |read: clover::ledger::read::LogEntry| {
            let (mut line, stored) = (Vec::new(), read.stored);
            entry::write_line(
                &mut line,
                stored.seq,
                stored.recorded_at,
                &stored.body,
                &stored.author,
                &stored.signature,
            );
            lines.push(line);
            Ok::<_, LedgerError>(())
        };
        self.ledger.entries(0, size, take).unwrap();
        for size in 1..=size {
            if let Some(checkpoint) = self.ledger.checkpoint_at(size).unwrap() {
                checkpoints.insert(size, checkpoint.encode());
            }
        }
        Story {
            lines,
            checkpoints,
            blobs: self.blobs,
            names: self.names,
        }
    }
}

fn roles(roles: &[Role]) -> Roles {
    Roles::new(roles.iter().copied()).unwrap()
}

fn in_experiment(payload: impl Into<Payload>) -> Command {
    Command::new(payload, Some(EXPERIMENT.parse().unwrap()))
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap()
}

/// The subject whose prompts are kept privately.
pub fn subject() -> Digest {
    Digest::labelled("a subject of the samples", b"")
}

/// A new key of a holder.
pub fn key_added(signer: &Signer, holder: &str, human: bool, held: &[Role]) -> KeyAdded {
    let proof = signer.sign(&rules::possession_message(ORIGIN, signer.id()));
    KeyAdded {
        holder: holder.parse().unwrap(),
        human,
        key_id: signer.id(),
        proof: Some(Base64Bytes(proof)),
        public_key: Base64Bytes(signer.public_bytes()),
        roles: roles(held),
        seal_recipient: None,
    }
}

fn score(item: &str, draw: u64, micro: i64) -> ScoreRecorded {
    ScoreRecorded {
        call: None,
        draw: count(draw),
        item: item.parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "base".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: Micro::new(micro).unwrap(),
    }
}

fn label(item: &str, purpose: LabelPurpose, micro: i64) -> LabelRecorded {
    LabelRecorded {
        design: "design-1".parse().unwrap(),
        draw: count(0),
        item: item.parse().unwrap(),
        policy: "base".parse().unwrap(),
        purpose,
        rater: "Lena".parse().unwrap(),
        value_micro: Micro::new(micro).unwrap(),
    }
}

fn note(text_: &str) -> NoteRecorded {
    NoteRecorded {
        blob: None,
        text: text(text_),
    }
}

/// The good ledger.
pub fn good() -> Story {
    let mut teller = Teller::begin();
    let identity = Identity::from_bytes(&[0xa0; 32]);
    keys(&mut teller, &identity);
    preparation(&mut teller);
    measurement(&mut teller);
    let openings = sealing(&mut teller, &identity);
    changes_of_keys(&mut teller);
    opening(&mut teller, &openings);
    intake::tell(&mut teller, &identity);
    trust::tell(&mut teller);
    teller.finish()
}

fn keys(teller: &mut Teller, identity: &Identity) {
    let add = |teller: &mut Teller, name, who, holder, human, held: &[Role]| {
        teller.say(ADA, name, key_added(&signer(who), holder, human, held));
    };
    add(teller, "key-ben", BEN, "Ben", true, &[Role::Owner]);
    add(
        teller,
        "key-runner",
        RUNNER,
        "runner",
        false,
        &[Role::Scorer],
    );
    add(teller, "key-lena", LENA, "Lena", true, &[Role::Labeler]);
    let recipient = identity.recipient();
    let cleo = KeyAdded {
        seal_recipient: Some(SealRecipient(recipient)),
        ..key_added(&signer(CLEO), "Cleo", true, &[Role::Custodian])
    };
    teller.say(ADA, "key-cleo", cleo);
    add(teller, "key-aude", AUDE, "Aude", true, &[Role::Auditor]);
    add(
        teller,
        "key-runner-2",
        RUNNER_2,
        "runner",
        false,
        &[Role::Scorer],
    );
    let adopted = PolicyAdopted {
        reason: text("more than one person works here now"),
        separation: Separation::Strict,
    };
    teller.say(ADA, "policy", adopted);
}

fn preparation(teller: &mut Teller) {
    let retention = RetentionSet {
        basis: text("contract"),
        class: "prompts".parse().unwrap(),
        days: count(180),
    };
    teller.say(ADA, "retention", retention);
    let registered = ExperimentRegistered {
        judges: Some(vec!["judge-1".parse().unwrap()]),
        policies: Some(vec!["base".parse().unwrap(), "tuned".parse().unwrap()]),
        purpose: text("does the tuned policy answer better?"),
        title: text("Answers, Zürich 2026"),
    };
    teller.say_in(ADA, "registered", registered);
    let opened = |account: &str, amount, period, role, unit: &str| BudgetOpened {
        account: account.parse().unwrap(),
        amount: count(amount),
        period,
        purpose: text("to keep looks few"),
        spenders: roles(&[role]),
        unit: unit.parse().unwrap(),
    };
    let peeks = opened("peeks", 1, Period::Quarter, Role::Custodian, "peek");
    teller.say(ADA, "peeks", peeks);
    let spend = opened("judge-spend", 1_000, Period::Once, Role::Scorer, "cent");
    teller.say(ADA, "spend", spend);
    let blob = teller.blob(b"Rate each answer from 0 to 1.\n".to_vec(), "text/plain");
    let rubric = NoteRecorded {
        blob: Some(blob),
        text: text("the rubric that raters see"),
    };
    let mut command = Command::new(rubric, None);
    command.refs = vec![teller.id("registered")];
    teller.say_all(LENA, vec![("rubric", command)]);
}

fn measurement(teller: &mut Teller) {
    let private = ScoreRecorded {
        call: None,
        prompt: Some(teller.private("Why is the sky blue?")),
        response: Some(teller.private("Because air scatters short waves more.")),
        ..score("item-2", 0, -250_000)
    };
    let batch = vec![
        ("score-0", in_experiment(score("item-0", 0, 850_000))),
        ("score-1", in_experiment(score("item-1", 0, 0))),
        ("score-2", in_experiment(private)),
        ("score-3", in_experiment(score("item-2", 1, 1_000_000))),
    ];
    teller.say_all(RUNNER, batch);
    let charge = BudgetCharged {
        account: "judge-spend".parse().unwrap(),
        amount: count(400),
        purpose: text("four scores"),
    };
    teller.say(RUNNER, "spent", charge);
    teller.say_in(RUNNER_2, "score-4", score("item-4", 0, 125_000));
    teller.say_in(RUNNER_2, "score-5", score("item-5", 0, 500_000));
    let calibrate = label("item-0", LabelPurpose::Calibrate, 1_000_000);
    teller.say_in(LENA, "label-0", calibrate);
    teller.say_in(LENA, "label-1", label("item-1", LabelPurpose::Audit, 0));
}

fn sealing(teller: &mut Teller, identity: &Identity) -> [LabelOpening; 2] {
    let rows = [("row-1", "sealed-1", 1_000_000), ("row-2", "sealed-2", 0)];
    let mut files = Vec::new();
    let openings = rows.map(|(row, name, micro)| {
        let (recipients, design) = ([identity.recipient()], "design-2");
        let opening = teller.entropy(|entropy| LabelOpening::draw(micro, entropy).unwrap());
        let plain = opening.to_bytes();
        let file = teller.entropy(|entropy| seal::encrypt(&plain[..], &recipients, entropy));
        let file = file.unwrap();
        let sealed = LabelSealed {
            commitment: opening.commitment(ORIGIN, design, row),
            design: design.parse().unwrap(),
            envelope: Base64Text(file.clone()),
            recipient: SealRecipient(recipients[0]),
            reveal_by: Timestamp::parse("2026-12-31T23:59:59.999999Z").unwrap(),
            row: row.parse().unwrap(),
        };
        teller.say_in(CLEO, name, sealed);
        files.push(file);
        opening
    });
    let accepted = |row: &str, file: &[u8]| SealAccepted {
        design: "design-2".parse().unwrap(),
        envelope_sha256: Digest::sha256(file),
        row: row.parse().unwrap(),
    };
    let batch = vec![
        ("accepted-1", in_experiment(accepted("row-1", &files[0]))),
        ("accepted-2", in_experiment(accepted("row-2", &files[1]))),
    ];
    teller.say_all(CLEO, batch);
    openings
}

fn changes_of_keys(teller: &mut Teller) {
    let rotated = LogKeyRotated {
        reason: text("the machine was replaced"),
        vkey: clover::event::id::Vkey::new(log_vkey(NEXT_LOG)).unwrap(),
    };
    teller.ledger.set_next_log_key(signer(NEXT_LOG));
    teller.say(ADA, "rotated", rotated);
    let retired = KeyRetired {
        key_id: signer(RUNNER).id(),
        reason: text("end of its term"),
    };
    teller.say(ADA, "retired", retired);
    let since = teller.names["score-5"] as u64;
    let compromised = KeyCompromised {
        key_id: signer(RUNNER_2).id(),
        reason: text("its disk was copied"),
        since_seq: count(since),
    };
    teller.say(BEN, "compromised", compromised);
    let added = key_added(&signer(RUNNER_3), "runner", false, &[Role::Scorer]);
    teller.say(ADA, "key-runner-3", added);
    let mut again = in_experiment(score("item-5", 1, 510_000));
    again.refs = vec![teller.id("score-5"), teller.id("compromised")];
    teller.say_all(RUNNER_3, vec![("score-6", again)]);
}

fn opening(teller: &mut Teller, openings: &[LabelOpening; 2]) {
    let read = |outcome, rows_root| DataRead {
        class: "prompts".parse().unwrap(),
        outcome,
        purpose: text("to answer a complaint"),
        reader: signer(AUDE).id(),
        role: None,
        rows_root,
    };
    let rows_root = Some(Root(Digest::sha256(b"rows")));
    teller.say(CLEO, "read", read(ReadOutcome::Allowed, rows_root));
    teller.say(CLEO, "denied", read(ReadOutcome::Denied, None));
    let charge = |row: &str| BudgetCharged {
        account: "peeks".parse().unwrap(),
        amount: count(1),
        purpose: text(row),
    };
    let reveal = |teller: &Teller, charge: &str, row: &str, opening: &LabelOpening| {
        let payload = LabelRevealed {
            charge: teller.id(charge),
            design: "design-2".parse().unwrap(),
            row: row.parse().unwrap(),
            salt: Base64Bytes(opening.salt),
            value_micro: Micro::new(opening.value_micro).unwrap(),
        };
        in_experiment(payload)
    };
    teller.say(CLEO, "charge-1", charge("row-1"));
    let first = reveal(teller, "charge-1", "row-1", &openings[0]);
    teller.say_all(CLEO, vec![("revealed-1", first)]);
    let erased = SubjectErased {
        basis: text("request of the subject"),
        requester: None,
        subject: subject(),
    };
    teller.say(CLEO, "erased", erased);
    let size = teller.ledger.size();
    let attested = AuditAttested {
        root: Root(teller.ledger.root()),
        size: count(size),
        statement: text("every entry was verified from an export"),
        verdict: Verdict::Pass,
    };
    teller.say(AUDE, "attested", attested);
    let review = ReviewRecorded {
        findings: text("one key was in other hands;\tits later scores are set aside"),
        from_seq: count(0),
        outcome: ReviewOutcome::Noted,
        patch: None,
        through_seq: count(size - 1),
    };
    teller.say(AUDE, "reviewed", review);
    teller.say(AUDE, "qualified", crate::support::qualification());
    for name in ["wait-1", "wait-2"] {
        teller.say(LENA, name, note("still waiting for the next quarter"));
    }
    // A new quarter has begun: the account of peeks is full again.
    teller.say(CLEO, "charge-2", charge("row-2"));
    let second = reveal(teller, "charge-2", "row-2", &openings[1]);
    teller.say_all(CLEO, vec![("revealed-2", second)]);
    let closed = ExperimentClosed {
        outcome: ExperimentOutcome::Completed,
        reason: text("all rows were opened"),
    };
    teller.say_in(ADA, "closed", closed);
    teller.say(AUDE, "last", note("nothing is missing"));
}
