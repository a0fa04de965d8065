//! A judge at work: its registration, its rows, the children that score, and what is appended.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::intake_files;
use crate::cli::intake_files::Scores;
use crate::cli::judge::Common;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::Text;
use crate::event::payload::judge::ScoreConflict;
use crate::event::payload::scoring::Decoding;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::JudgeRegistered;
use crate::ground::digest::Digest;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Micro;
use crate::rubric::evidence;
use crate::rubric::extract;
use crate::session::Home;
use crate::session::intake::batch;
use crate::session::judge::Book;
use crate::session::judge::book;
use crate::session::judge::book::RecordCounts;
use crate::session::judge::registration;
use crate::workflow::import::Row;
use crate::workflow::import::plan;
use crate::workflow::judge::Judge;
use crate::workflow::judge::builtin;
use crate::workflow::judge::command;
use crate::workflow::judge::recorded::Recorded;
use crate::workflow::judge::run;
use crate::workflow::judge::run::Frame;
use crate::workflow::judge::run::Known;
use crate::workflow::judge::run::Reading;
use crate::workflow::judge::run::Record;

const HELP: &str = "clover judge run --help";
/// Times that a child is started anew for one ask.
const RESTARTS_MAX: u32 = 2;
/// Children at most.
const CHILDREN_MAX: u16 = 64;

/// A judge that may be asked on another thread.
type Port = Box<dyn Judge + Send>;

/// What a run works on.
pub(super) struct Desk {
    pub home: Home,
    pub ledger: Ledger,
    pub experiment: ExperimentId,
    pub judge: JudgeId,
    pub rows: Vec<Row>,
    registration: JudgeRegistered,
    known: Option<Vec<u8>>,
    frame: Frame,
    scorer: Option<Signer>,
}

/// A registration that stands.
pub(super) struct Registered {
    pub id: EventId,
}

fn text(what: &str, text: &str) -> Result<Text, CliError> {
    Text::new(text).ok_or_else(|| CliError::usage(format!("--{what}: expected a text"), HELP))
}

/// What was read of `--known`, checked.
fn known(ctx: &mut Ctx<'_>, common: &Common) -> Result<(Option<Vec<u8>>, Known), CliError> {
    let Some(path) = &common.known else {
        return Ok((None, Known::default()));
    };
    let bytes = ctx.read(path)?;
    let known = serde_json::from_slice(&bytes)
        .map_err(|error| CliError::input(format!("{}: {error}", path.display()), HELP))?;
    Ok((Some(bytes), known))
}

impl Desk {
    /// Reads what was asked for, and the rows.
    pub(super) fn open(ctx: &mut Ctx<'_>, common: &Common) -> Result<Self, CliError> {
        Self::reading(ctx, common, Scores::Asked)
    }

    /// As [`Desk::open`]; rows may bring their scores along.
    pub(super) fn reading(
        ctx: &mut Ctx<'_>,
        common: &Common,
        scores: Scores,
    ) -> Result<Self, CliError> {
        let judge = JudgeId::new(common.judge.as_str()).map_err(|error| {
            CliError::usage(format!("--judge {:?}: {error}", common.judge), HELP)
        })?;
        if common.rows.is_empty() {
            return Err(CliError::usage("--rows PATH is missing", HELP));
        }
        let port = match (common.recorded, common.command.is_empty()) {
            (true, _) => JudgePort::Recorded,
            (false, true) => JudgePort::Builtin,
            (false, false) => JudgePort::Command,
        };
        let prompt = match &common.prompt {
            Some(path) => ctx.read(path)?,
            None => Vec::new(),
        };
        let (known_bytes, known) = known(ctx, common)?;
        let registration = JudgeRegistered {
            decoding: Decoding {
                temperature_micro: Micro::default(),
            },
            evidence_schema: text("judge", evidence::SCHEMA)?,
            extractor: text("judge", extract::VERSION)?,
            judge: judge.clone(),
            known: known_bytes
                .as_ref()
                .map(|bytes| batch::reference(bytes, "application/json")),
            model: match port {
                JudgePort::Builtin => text("judge", builtin::MODEL)?,
                JudgePort::Command => text("model", &common.model)?,
                JudgePort::Recorded => text("judge", "recorded")?,
            },
            port,
            prompt_hash: Digest::sha256(&prompt),
            tool_snapshot: Digest::sha256(known_bytes.as_deref().unwrap_or_default()),
        };
        let (home, ledger) = home::open_to_write(ctx)?;
        let experiment = intake::experiment(ledger.state(), common.experiment.as_deref())?;
        let pepper = home.vault(&ctx.ambient())?.pepper()?;
        let policy = common.policy.as_deref();
        let rows = intake_files::rows(ctx, &pepper, &common.rows, policy, scores)?;
        Ok(Self {
            frame: Frame::new(registration.clone(), known, pepper),
            home,
            ledger,
            experiment,
            judge,
            rows,
            registration,
            known: known_bytes,
            scorer: None,
        })
    }

    /// What the judge is, as it was asked for.
    pub(super) fn asked(&self) -> &JudgeRegistered {
        &self.registration
    }

    /// Position and payload of the registration, when there is one.
    pub(super) fn standing(&self) -> Result<Option<(EventId, u64, JudgeRegistered)>, CliError> {
        let found = registration::standing(&self.ledger, &self.experiment, &self.judge)?;
        Ok(found.map(|of| (of.id, of.seq, of.judge)))
    }

    /// The registration; it must say what this command line says.
    pub(super) fn registered(&self) -> Result<Registered, CliError> {
        match self.standing()? {
            Some((id, _, old)) if old == self.registration => Ok(Registered { id }),
            Some((_, seq, old)) => {
                let message = format!(
                    "judge: {} is registered at seq {seq} as {}, and this is another judge: its port, model, template, extractor or known data differ",
                    self.judge,
                    describe(&old)
                );
                Err(CliError::refused(message, format!("clover show {seq}")))
            }
            None => {
                let message = format!(
                    "judge: {} is not registered in {}",
                    self.judge, self.experiment
                );
                Err(CliError::not_found(
                    message,
                    "clover judge run --judge ID --rows PATH",
                ))
            }
        }
    }

    fn scorer(&mut self, ctx: &mut Ctx<'_>) -> Result<(), CliError> {
        if self.scorer.is_none() {
            let signer = wallet::signer(ctx, self.ledger.state(), Kind::ScoreRecorded)?;
            self.scorer = Some(signer);
        }
        Ok(())
    }

    /// The registration, made if there is none.
    pub(super) fn register(&mut self, ctx: &mut Ctx<'_>) -> Result<Registered, CliError> {
        if self.standing()?.is_some() {
            return self.registered();
        }
        self.scorer(ctx)?;
        let scorer = self.scorer.as_ref().expect("BUG: the key was looked for");
        let command = Command::new(self.registration.clone(), Some(self.experiment.clone()));
        let blobs: Vec<Vec<u8>> = self.known.iter().cloned().collect();
        let appended = self.ledger.append_with_blobs(&[command], scorer, &blobs)?;
        Ok(Registered { id: appended[0].id })
    }

    /// Records of this judge, by raw key.
    pub(super) fn recorded(&self) -> Result<BTreeMap<Digest, Record>, CliError> {
        let mut lists = Vec::new();
        self.ledger.entries(0, self.ledger.size(), |read| {
            if let Payload::EvidenceRecorded(found) = read.event.payload
                && found.judge == self.judge
                && read.event.header.experiment.as_ref() == Some(&self.experiment)
            {
                lists.push((read.stored.seq, found));
            }
            Ok::<_, CliError>(())
        })?;
        let mut records = BTreeMap::new();
        for (seq, found) in lists {
            let damaged = |what: String| {
                CliError::integrity(
                    "tampered",
                    format!("the records of seq {seq}: {what}"),
                    "clover verify",
                )
            };
            let bytes = self.ledger.store().reader().blob(&found.records.blake3)?;
            let bytes = bytes.ok_or_else(|| damaged("their blob is missing".to_owned()))?;
            for record in run::parse(&bytes, &found.records_root.0).map_err(damaged)? {
                records.entry(record.raw_key).or_insert(record);
            }
        }
        Ok(records)
    }

    /// What is in a row.
    pub(super) fn read(&self, row: &Row) -> Result<Reading, CliError> {
        self.frame.read(row).ok_or_else(|| {
            let message = format!(
                "line {}: {} has no prompt, or no response",
                row.line, row.item
            );
            CliError::input(message, HELP)
        })
    }

    /// Judges to ask, side by side.
    pub(super) fn judges<'r>(
        &self,
        ctx: &Ctx<'_>,
        common: &Common,
        rows: impl Iterator<Item = &'r Row>,
    ) -> Result<Vec<Port>, CliError> {
        let children = common.children.clamp(1, CHILDREN_MAX);
        match self.registration.port {
            JudgePort::Builtin => Ok((0..children)
                .map(|_| Box::new(builtin::Builtin) as Port)
                .collect()),
            JudgePort::Recorded => Ok(vec![Box::new(self.imported(rows)?)]),
            JudgePort::Command => {
                let plan = command::Plan {
                    command: common.command.clone(),
                    folder: ctx.folder().to_owned(),
                    limit: common.limit(),
                    restarts_max: RESTARTS_MAX,
                };
                let judge =
                    |_| command::Command::new(plan.clone()).map(|judge| Box::new(judge) as Port);
                Ok((0..children).filter_map(judge).collect())
            }
        }
    }

    /// Scores of this judge that are on record already.
    fn imported<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Result<Recorded, CliError> {
        let mut imported = Recorded::default();
        for row in rows {
            let score = Payload::from(plan::score_of(row, &self.judge));
            let key = score.natural_key(Some(&self.experiment));
            let key = key.expect("BUG: scores have natural keys");
            let Some(seq) = self.ledger.giver(&key)? else {
                continue;
            };
            if let Some(Payload::ScoreRecorded(old)) =
                self.ledger.entry(seq)?.map(|read| read.event.payload)
            {
                imported.take(old.policy, old.item, old.draw, old.score_micro);
            }
        }
        Ok(imported)
    }

    /// Conflicts of base scores with what is recorded.
    pub(super) fn conflicts(
        &self,
        rows: Vec<(Row, Micro)>,
    ) -> Result<Vec<ScoreConflict>, CliError> {
        let whose = (&self.experiment, &self.judge);
        Ok(book::conflicts(&self.ledger, whose, rows)?)
    }

    /// Appends scores, conflicts and records.
    pub(super) fn record(
        &mut self,
        ctx: &mut Ctx<'_>,
        registered: &Registered,
        good: Vec<(Row, Reading, Micro)>,
    ) -> Result<RecordCounts, CliError> {
        if good.is_empty() {
            return Ok(RecordCounts::default());
        }
        self.scorer(ctx)?;
        let mut book = Book {
            home: &self.home,
            ledger: &mut self.ledger,
            experiment: &self.experiment,
            judge: &self.judge,
            registered: registered.id,
            scorer: self.scorer.as_ref().expect("BUG: the key was looked for"),
        };
        Ok(book.record(good)?)
    }

    /// Finishes what was appended.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_>) -> Result<(), CliError> {
        self.ledger.settle()?;
        submit::warn_of_pin(ctx, &self.ledger);
        Ok(())
    }
}

/// A judge in a few words.
pub(super) fn describe(judge: &JudgeRegistered) -> String {
    format!("{} {}", judge.port.as_str(), judge.model.as_str())
}

/// A registered judge and what it did.
pub(super) struct Standing {
    pub registered: JudgeRegistered,
    pub seq: u64,
    pub records: u64,
    pub replayed: Option<(u64, u64)>,
}

impl Standing {
    pub(super) fn new(registered: JudgeRegistered, seq: u64) -> Self {
        Self {
            registered,
            seq,
            records: 0,
            replayed: None,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let replayed = self.replayed.map_or("-".to_owned(), |(keys, mismatches)| {
            format!("{mismatches} of {keys} differ")
        });
        vec![
            self.registered.judge.to_string(),
            self.registered.port.as_str().to_owned(),
            self.registered.model.as_str().to_owned(),
            ui::thousands(self.records),
            replayed,
            format!("seq {}", self.seq),
        ]
    }

    pub(super) fn json(&self, experiment: &str) -> Value {
        json!({
            "experiment": experiment, "judge": self.registered.judge.as_str(), "port": self.registered.port.as_str(),
            "model": self.registered.model.as_str(), "extractor": self.registered.extractor.as_str(),
            "rows": self.records, "replayed": self.replayed.map(|(keys, mismatches)| json!({"keys": keys, "mismatches": mismatches})),
            "registered_seq": self.seq,
        })
    }
}
