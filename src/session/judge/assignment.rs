//! What a judge is given to do: its registration as asked for, what it knows, and rows.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::scoring::AskedAt;
use clover_event::payload::scoring::Decoding;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::digest::Digest;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks::Question;
use clover_num::Micro;
use clover_rubric::evidence;
use clover_rubric::extract;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::import::ImportRow;
use clover_workflow::import::plan;
use clover_workflow::judge::Judge;
use clover_workflow::judge::builtin;
use clover_workflow::judge::command;
use clover_workflow::judge::fields::EvidenceFields;
use clover_workflow::judge::recorded::RecordedScores;
use clover_workflow::judge::run;
use clover_workflow::judge::run::Frame;
use clover_workflow::judge::run::ProbeEvidence;
use clover_workflow::judge::run::RawRecord;
use clover_workflow::judge::run::Reading;
use clover_workflow::prompts;

use crate::error::SessionError;
use crate::intake::batch;
use crate::judge::error::JudgingError;
use crate::judge::registration;
use crate::judge::registration::Registration;
use crate::ports::Judges;

/// Judges that are asked side by side, at most.
const CHILDREN_MAX: u16 = 64;

/// What answers as a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// The built-in judge.
    Builtin,
    /// A program, with the name of the model behind it and the digest of its files, where it has any.
    Program(Text, Option<Digest>),
    /// A model behind HTTP.
    Endpoint(JudgePlan),
    /// The scores that are on record already.
    Recorded,
}

/// A judge as it is asked for.
#[derive(Clone, Debug)]
pub struct JudgeSpec {
    /// Its name.
    pub judge: JudgeId,
    /// What answers.
    pub model: Model,
    /// What a program is told in every ask; empty where it is told nothing.
    pub prompt: String,
    /// What is known of sources, facts and tool calls: the bytes, and what they say.
    pub known: Option<(Vec<u8>, ProbeEvidence)>,
    /// The scale that a program answers on, where it is not 0 to 1.
    pub scale: Option<ScaleEnds>,
}

/// What a judge is given to do.
#[derive(Debug)]
pub struct Assignment {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge, as it is asked for.
    pub registration: JudgeRegistered,
    /// The rows.
    pub rows: Vec<ImportRow>,
    known: Option<Vec<u8>>,
    /// How it is asked behind HTTP.
    plan: Option<JudgePlan>,
    /// What it is told, where it was handed in and is to be kept.
    prompt: Option<String>,
    frame: Frame,
    children: u16,
}

impl JudgeSpec {
    /// A judge that was registered when the files of programs did not count is asked as it was registered. Scale and
    /// known data that are not said are those that it was registered with.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn as_registered(
        &mut self,
        ledger: &Ledger,
        experiment: &ExperimentId,
    ) -> Result<(), SessionError> {
        let standing = registration::standing(ledger, experiment, &self.judge)?;
        if let (None, Some(of)) = (&self.known, &standing) {
            self.known = registration::known_bytes(ledger, &of.judge)?;
        }
        let Model::Program(name, files) = &mut self.model else {
            return Ok(());
        };
        if standing.as_ref().is_some_and(|of| of.judge.model == *name) {
            *files = None;
        }
        let registered = standing.and_then(|of| of.judge.scale);
        self.scale = self.scale.or(registered);
        Ok(())
    }
}

fn fixed(text: &str) -> Text {
    Text::new(text).expect("BUG: versions and models here are literals")
}

impl Assignment {
    /// Rows for a judge of which up to `children` are asked side by side; `pepper` is the vault's.
    pub fn new(
        experiment: ExperimentId,
        spec: JudgeSpec,
        pepper: [u8; 32],
        rows: Vec<ImportRow>,
        children: u16,
    ) -> Self {
        let (known, facts) = match spec.known {
            Some((bytes, facts)) => (Some(bytes), facts),
            None => (None, ProbeEvidence::default()),
        };
        let (mut plan, mut asked, mut decoding) = (None, None, Micro::default());
        let (port, model) = match spec.model {
            Model::Endpoint(of) => {
                let bytes = of.to_bytes();
                asked = Some(AskedAt {
                    endpoint: of.endpoint.clone(),
                    noise_sd_max_micro: of.noise_sd_max_micro.and_then(clover_num::Count::new),
                    pin: fixed(&of.pin),
                    plan: batch::reference(&bytes, "application/json"),
                    plan_digest: of.digest(),
                    weighed_levels: of.weighed_levels(),
                });
                let temperature = of.temperature_micro.and_then(|of| i64::try_from(of).ok());
                decoding = temperature.and_then(Micro::new).unwrap_or_default();
                let model = fixed(&of.model);
                plan = Some(of);
                (JudgePort::Endpoint, model)
            }
            Model::Builtin => (JudgePort::Builtin, fixed(builtin::MODEL)),
            Model::Program(name, files) => {
                (JudgePort::Command, command::model(&name, files.as_ref()))
            }
            Model::Recorded => (JudgePort::Recorded, fixed("recorded")),
        };
        let version = match &facts.evidence {
            Some(fields) => fields.version(),
            None => evidence::SCHEMA.to_owned(),
        };
        let can_be_told = matches!(port, JudgePort::Command | JudgePort::Endpoint);
        let is_told = can_be_told && !spec.prompt.is_empty();
        let prompt = is_told.then(|| spec.prompt.clone());
        let registration = JudgeRegistered {
            asked,
            decoding: Decoding {
                temperature_micro: decoding,
            },
            evidence_schema: fixed(&version),
            extractor: fixed(extract::VERSION),
            judge: spec.judge,
            known: known
                .as_ref()
                .map(|bytes| batch::reference(bytes, "application/json")),
            model,
            of: None,
            port,
            prompt: prompt.as_deref().map(prompts::reference),
            prompt_hash: Digest::sha256(spec.prompt.as_bytes()),
            repeat: None,
            scale: spec.scale,
            tool_snapshot: Digest::sha256(known.as_deref().unwrap_or_default()),
        };
        Self {
            frame: Frame::new(registration.clone(), facts, pepper),
            experiment,
            registration,
            rows,
            known,
            plan,
            prompt,
            children: children.clamp(1, CHILDREN_MAX),
        }
    }

    /// Rows for a judge behind HTTP that is told the prompt of a run, for the `repeat`th time, from 0. It is `root` but for that.
    /// `None` where its name is none.
    pub fn told(
        experiment: ExperimentId,
        (root, plan): (&JudgeRegistered, JudgePlan),
        (prompt, repeat): (&str, u64),
        pepper: [u8; 32],
        rows: Vec<ImportRow>,
    ) -> Option<Self> {
        let hash = Digest::sha256(prompt.as_bytes());
        let registration = root.asked_again(prompts::reference(prompt), hash, repeat)?;
        Some(Self {
            frame: Frame::new(registration.clone(), ProbeEvidence::default(), pepper),
            experiment,
            plan: Some(plan.of_judge(&registration)),
            registration,
            rows,
            known: None,
            prompt: Some(prompt.to_owned()),
            children: 1,
        })
    }

    /// How it is asked behind HTTP.
    pub fn plan(&self) -> Option<&JudgePlan> {
        self.plan.as_ref()
    }

    /// The same assignment for a judge that is registered already. What it is told stands in its registration, and need not be
    /// handed in again; one that is another but for what it is told says so there alone. A judge that was registered when
    /// programs were told nothing is told nothing now.
    ///
    /// # Errors
    /// [`JudgingError::Unruled`] where the rules in force do not keep what a judge is told; and what reading the log gives.
    pub fn as_registered(self, ledger: &Ledger) -> Result<Self, SessionError> {
        let Some(standing) = self.standing(ledger)?.map(|of| of.judge) else {
            if self.prompt.is_some() && !ledger.state().asks(Question::OwnPrompt) {
                return Err(JudgingError::Unruled(Question::OwnPrompt.since()).into());
            }
            return Ok(self);
        };
        let mine = &self.registration;
        let is_silent = mine.prompt_hash == Digest::sha256(b"");
        let is_same = standing.prompt_hash == mine.prompt_hash;
        if standing.of.is_none() && !is_same && !(is_silent && standing.prompt.is_some()) {
            return Ok(self);
        }
        let registration = JudgeRegistered {
            of: standing.of,
            prompt: standing.prompt,
            prompt_hash: standing.prompt_hash,
            ..self.registration
        };
        Ok(Self {
            frame: self.frame.under(registration.clone()),
            registration,
            prompt: None,
            ..self
        })
    }

    /// Whether it is told something in every ask.
    pub fn is_told(&self) -> bool {
        self.registration.prompt.is_some()
    }

    /// The judge's name.
    pub fn judge(&self) -> &JudgeId {
        &self.registration.judge
    }

    pub(super) fn standing(&self, ledger: &Ledger) -> Result<Option<Registration>, SessionError> {
        Ok(registration::standing(
            ledger,
            &self.experiment,
            self.judge(),
        )?)
    }

    /// The registration; it must be of this judge.
    pub(super) fn registered(&self, ledger: &Ledger) -> Result<EventId, SessionError> {
        let error = match self.standing(ledger)? {
            Some(of) if of.judge == self.registration => return Ok(of.id),
            Some(of) => JudgingError::OtherJudge {
                asked: Box::new(self.registration.clone()),
                registered: Box::new(of.judge),
                seq: of.seq,
            },
            None => JudgingError::NotRegistered {
                judge: self.judge().clone(),
                experiment: self.experiment.clone(),
            },
        };
        Err(error.into())
    }

    /// Registers the judge.
    pub(crate) fn register(
        &self,
        ledger: &mut Ledger,
        scorer: &Signer,
    ) -> Result<EventId, SessionError> {
        let command = Command::new(self.registration.clone(), Some(self.experiment.clone()));
        let mut blobs: Vec<Vec<u8>> = self.known.iter().cloned().collect();
        blobs.extend(self.plan.as_ref().map(JudgePlan::to_bytes));
        blobs.extend(self.prompt.as_ref().map(|text| text.clone().into_bytes()));
        let appended = ledger.append_with_blobs(&[command], scorer, &blobs)?;
        Ok(appended[0].id)
    }

    /// What it is told with every ask.
    pub(super) fn told_text(&self, ledger: &Ledger) -> Result<String, SessionError> {
        match (&self.prompt, &self.registration.prompt) {
            (Some(text), _) => Ok(text.clone()),
            (None, None) => Ok(String::new()),
            (None, Some(blob)) => registration::kept_prompt(ledger, &self.registration, blob),
        }
    }

    /// Records of this judge by raw key; of a key, the first.
    pub(super) fn records(
        &self,
        ledger: &Ledger,
    ) -> Result<BTreeMap<Digest, RawRecord>, SessionError> {
        let mut records = BTreeMap::new();
        for record in self.recorded(ledger)? {
            records.entry(record.raw_key).or_insert(record);
        }
        Ok(records)
    }

    /// Records of this judge in the order of the log.
    pub(super) fn recorded(&self, ledger: &Ledger) -> Result<Vec<RawRecord>, SessionError> {
        let mut lists = Vec::new();
        ledger.entries(0, ledger.size(), |read| {
            if let Payload::EvidenceRecorded(found) = read.event.payload
                && found.judge == *self.judge()
                && read.event.header.experiment.as_ref() == Some(&self.experiment)
            {
                lists.push((read.stored.seq, found));
            }
            Ok::<_, SessionError>(())
        })?;
        let mut records = Vec::new();
        for (seq, found) in lists {
            let damaged = |what: String| JudgingError::Records { seq, what };
            let bytes = ledger.store().reader().blob(&found.records.blake3)?;
            let bytes = bytes.ok_or_else(|| damaged("their blob is missing".to_owned()))?;
            records.append(&mut run::parse(&bytes, &found.records_root.0).map_err(damaged)?);
        }
        Ok(records)
    }

    /// What is in a row.
    pub(super) fn read(&self, row: &ImportRow) -> Result<Reading, JudgingError> {
        self.frame.read(row).ok_or_else(|| JudgingError::NoTexts {
            line: row.line,
            item: row.item.clone(),
        })
    }

    /// Fields of evidence that the judge returns.
    pub(super) fn fields(&self) -> Option<&EvidenceFields> {
        self.frame.fields()
    }

    /// Judges to ask, side by side.
    pub(super) fn judges<'r>(
        &self,
        ports: &mut dyn Judges,
        ledger: &Ledger,
        rows: impl Iterator<Item = &'r ImportRow>,
    ) -> Result<Vec<Box<dyn Judge + Send>>, SessionError> {
        if self.registration.port == JudgePort::Recorded {
            return Ok(vec![Box::new(self.scores_on_record(ledger, rows)?)]);
        }
        let (judge, fields) = (&self.registration, self.fields());
        let told = self.prompt.as_deref();
        let judges = (0..self.children)
            .map(|_| registration::opened_with(ports, ledger, judge, (fields, told)));
        judges.collect()
    }

    /// Scores of this judge that are on record already.
    fn scores_on_record<'r>(
        &self,
        ledger: &Ledger,
        rows: impl Iterator<Item = &'r ImportRow>,
    ) -> Result<RecordedScores, SessionError> {
        let mut found = RecordedScores::default();
        for row in rows {
            let score = Payload::from(plan::score_of(row, self.judge()));
            let key = score.natural_key(Some(&self.experiment));
            let key = key.expect("BUG: scores have natural keys");
            let Some(seq) = ledger.giver(&key)? else {
                continue;
            };
            if let Some(Payload::ScoreRecorded(old)) =
                ledger.entry(seq)?.map(|read| read.event.payload)
            {
                found.take(old.policy, old.item, old.draw, old.score_micro);
            }
        }
        Ok(found)
    }
}
