//! A run of a judge behind HTTP as a cassette: what was asked and what was answered, from the ledger and its vault.

use std::collections::BTreeMap;
use std::path::Path;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::PrivateRef;
use clover_event::payload::Role;
use clover_event::payload::endpoint::Dialect;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_terms::PriceMode;
use clover_event::payload::model_terms::PriceRow;
use clover_event::payload::record::ReadOutcome;
use clover_ground::ambient::NewPrivateFile;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::History;
use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::endpoints::Endpoints;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_workflow::ask::cassette::CassetteCall;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::plan_file;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::run;

use crate::append;
use crate::custody::reads;
use crate::error::SessionError;
use crate::home::Home;
use crate::intake::held;
use crate::judge::error::JudgingError;
use crate::judge::live::count;
use crate::judge::registration;
use crate::listing;
use crate::ports::KeyNeed;
use crate::ports::Notice;
use crate::ports::Ports;
use crate::texts::Texts;

/// A run, and what its calls are read by.
#[derive(Clone, Debug)]
pub struct RunBasis {
    /// How its requests are written and its answers are read.
    pub dialect: Dialect,
    /// The plan of its judge.
    pub plan: JudgePlan,
    /// The prices of its model; none where calls are free.
    pub row: Option<PriceRow>,
    /// The run.
    pub run: ModelRun,
    /// What its judge is told.
    pub told: String,
}

impl RunBasis {
    /// A run by its name.
    ///
    /// # Errors
    /// [`JudgingError::NoRun`], [`JudgingError::NoPlan`], and what reading the log gives.
    pub fn of(ledger: &Ledger, name: &RunId) -> Result<Self, SessionError> {
        let state = ledger.state();
        let run = state.fold::<ModelRuns>().by_id.get(name);
        let run = run.ok_or_else(|| JudgingError::NoRun(name.clone()))?;
        if run.said.rescore.is_some() {
            return Err(JudgingError::AskedAgain(name.clone()).into());
        }
        let judge = &run.said.judge;
        let damaged = |what: &str| JudgingError::NoPlan {
            judge: judge.clone(),
            what: what.to_owned(),
        };
        let standing = registration::standing(ledger, &run.experiment, judge)?;
        let standing = standing
            .ok_or_else(|| damaged("it is not registered"))?
            .judge;
        let asked = standing.asked.as_ref();
        let asked = asked.ok_or_else(|| damaged("it is not asked behind HTTP"))?;
        let bytes = History::blob(ledger, &asked.plan.blake3)?;
        let bytes = bytes.ok_or_else(|| damaged("its blob is not here"))?;
        let plan = plan_file::read(&bytes).map_err(|error| damaged(&error.to_string()))?;
        let plan = plan.of_judge(&standing);
        let told = match &standing.prompt {
            None => String::new(),
            Some(blob) => registration::kept_prompt(ledger, &standing, blob)?,
        };
        let endpoints = state.fold::<Endpoints>();
        let place = endpoints.by_id.get(&plan.endpoint);
        let place = place.ok_or_else(|| JudgingError::NoEndpoint(plan.endpoint.clone()))?;
        let table = run.said.prices.as_ref();
        let table = table.and_then(|name| endpoints.prices.get(name));
        let row = table
            .and_then(|table| table.row(place.said.provider.as_str(), &plan.pin, PriceMode::Live));
        Ok(Self {
            dialect: place.said.dialect,
            row: row.cloned(),
            run: run.clone(),
            plan,
            told,
        })
    }
}

/// A call that cannot be put on a cassette, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCall {
    /// Where it stands.
    pub seq: u64,
    /// The key of its ask.
    pub ask: Digest,
    /// What is missing.
    pub why: String,
}

/// What became of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CassetteExport {
    /// Calls cannot be read here: nothing was written.
    Missing(Vec<MissingCall>),
    /// The file was written, with so many calls; whether it says the order of asks.
    Written(u64, bool),
}

/// Where the texts of an ask are.
enum TextPlace {
    Row(usize),
    Score(Box<(PrivateRef, PrivateRef)>),
}

/// Reads calls of a run back.
pub(super) struct TapeReader<'l> {
    basis: &'l RunBasis,
    ledger: &'l Ledger,
    pepper: Option<[u8; 32]>,
    places: BTreeMap<(Digest, Digest), TextPlace>,
    rows: Vec<ImportRow>,
    texts: Texts<'l>,
}

/// Texts as a key of a map.
fn pair(of: &AskedTexts) -> (Digest, Digest) {
    (of.x_hash, of.a_hash)
}

/// Calls of a run with their positions, in the order of the log.
pub(super) fn calls(
    ledger: &Ledger,
    of: &ModelRun,
    mut take: impl FnMut(u64, &CallRecorded) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    let query = KindQuery {
        kind: Kind::CallRecorded,
        takes: &|_| true,
    };
    listing::each::<SessionError>(ledger, &query, (of.seq, ledger.size()), |read| {
        if let Payload::CallRecorded(said) = &read.event.payload
            && said.run == of.said.run
        {
            take(read.stored.seq, said)?;
        }
        Ok(true)
    })
}

impl<'l> TapeReader<'l> {
    /// Looks for the texts of a run: those of its scores, of `rows`, and of rows that the ledger holds.
    pub(super) fn new(
        home: &Home,
        ledger: &'l Ledger,
        basis: &'l RunBasis,
        rows: Vec<ImportRow>,
    ) -> Result<Self, SessionError> {
        let vault = home.known_vault(ledger.ambient())?;
        let pepper = vault.map(|vault| vault.pepper()).transpose()?;
        let mut reader = Self {
            basis,
            ledger,
            pepper,
            places: BTreeMap::new(),
            rows,
            texts: Texts::new(home, ledger)?,
        };
        if pepper.is_some() {
            let held = held::rows(home, ledger, &basis.run.experiment)?;
            reader.rows.extend(held.rows);
            reader.find()?;
        }
        Ok(reader)
    }

    fn find(&mut self) -> Result<(), SessionError> {
        for at in 0..self.rows.len() {
            if let Some(texts) = self.texts_of(at) {
                let place = self.places.entry(pair(&texts));
                place.or_insert(TextPlace::Row(at));
            }
        }
        let query = KindQuery {
            kind: Kind::ScoreRecorded,
            takes: &|_| true,
        };
        let places = &mut self.places;
        let between = (0, self.ledger.size());
        listing::each::<SessionError>(self.ledger, &query, between, |read| {
            let Payload::ScoreRecorded(said) = read.event.payload else {
                return Ok(true);
            };
            if let (Some(of), Some(prompt), Some(response)) =
                (&said.call, said.prompt, said.response)
            {
                let place = TextPlace::Score(Box::new((prompt, response)));
                places.entry(pair(&of.texts)).or_insert(place);
            }
            Ok(true)
        })
    }

    /// The keyed digests of a row's texts.
    fn texts_of(&self, at: usize) -> Option<AskedTexts> {
        let (row, pepper) = (self.rows.get(at)?, self.pepper.as_ref()?);
        Some(AskedTexts {
            a_hash: run::text_hash(pepper, "response", row.response.as_deref()?),
            x_hash: run::text_hash(pepper, "prompt", row.prompt.as_deref()?),
        })
    }

    /// The prompt and the response that an ask was about.
    fn asked(&mut self, of: &AskedTexts) -> Result<(String, String), String> {
        let nowhere = "its texts stand in no row of this ledger";
        match self.places.get(&pair(of)).ok_or(nowhere)? {
            TextPlace::Row(at) => {
                let row = self.rows.get(*at);
                let text = |of: Option<&String>| of.cloned().unwrap_or_default();
                let prompt = text(row.and_then(|row| row.prompt.as_ref()));
                Ok((prompt, text(row.and_then(|row| row.response.as_ref()))))
            }
            TextPlace::Score(of) => {
                let prompt = self.texts.opened(&of.0)?;
                Ok((prompt, self.texts.opened(&of.1)?))
            }
        }
    }

    /// A call as it stands on a cassette.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(super) fn call(&mut self, said: &CallRecorded) -> Result<CassetteCall, String> {
        let pepper = self.pepper.ok_or("the vault of this ledger is not here")?;
        let (prompt, response) = self.asked(&said.texts)?;
        let texts = (prompt.as_str(), response.as_str());
        let row = FencedRow::new(&pepper, (&said.texts.x_hash, &said.texts.a_hash), texts);
        let ask = self.basis.plan.ask(&self.basis.told, &row);
        if ask.keyed(&pepper) != said.ask {
            return Err("its texts do not give the ask that is on record".to_owned());
        }
        let named = said.provider_request.as_ref();
        let opened = said.response.as_ref();
        let opened = opened.map(|of| self.texts.opened_bytes(of)).transpose()?;
        Ok(CassetteCall {
            ask,
            attempts: said.attempts.clone(),
            body: opened.as_ref().map(|of| of.plaintext.clone()),
            nth: said.nth,
            place: None,
            provider_request: named.map(|of| of.as_str().to_owned()),
            recorded: Some(said.ask),
            salt: opened.as_ref().map(|of| Digest(of.salt)),
        })
    }

    /// The pepper, where the vault is this ledger's: it has the key of a text of the run.
    pub(super) fn own_pepper(&mut self) -> Result<Option<[u8; 32]>, SessionError> {
        let mut is_own = false;
        let texts = &mut self.texts;
        calls(self.ledger, &self.basis.run, |_, said| {
            let subject = said.response.as_ref().map(|of| &of.subject);
            if let Some(subject) = subject.filter(|_| !is_own) {
                is_own = texts.has_key(subject).unwrap_or(false);
            }
            Ok(())
        })?;
        Ok(self.pepper.filter(|_| is_own))
    }

    /// The places of asks, as [`TapeReader::order`] finds them.
    pub(super) fn places(&self) -> Result<BTreeMap<Digest, Count>, SessionError> {
        let mut asks = Vec::new();
        calls(self.ledger, &self.basis.run, |_, said| {
            asks.push((said.ask, said.texts));
            Ok(())
        })?;
        Ok(self.order(&asks))
    }

    /// The places of asks, by their keys on record: in the order of rows, else in that of the log, where that is the one that the
    /// run was opened with.
    fn order(&self, asks: &[(Digest, AskedTexts)]) -> BTreeMap<Digest, Count> {
        let by_texts: BTreeMap<_, _> = asks.iter().map(|(key, of)| (pair(of), *key)).collect();
        let rows = (0..self.rows.len()).filter_map(|at| self.texts_of(at));
        let rows = rows.filter_map(|of| by_texts.get(&pair(&of)).copied());
        let logged = asks.iter().map(|(key, _)| *key);
        let orders: [Vec<Digest>; 2] = [rows.collect(), logged.collect()];
        for order in orders {
            let mut places = BTreeMap::new();
            let mut keys = Vec::new();
            for key in order {
                places.entry(key).or_insert_with(|| {
                    keys.push(key);
                    count(keys.len() as u64 - 1)
                });
            }
            let said = &self.basis.run.said;
            let root = run::root(keys.iter().map(|of| of.as_bytes().as_slice()));
            if keys.len() as u64 == said.asks.value() && root == said.asks_root.0 {
                return places;
            }
        }
        BTreeMap::new()
    }
}

/// What an export found before anything was written.
struct FoundCalls {
    /// Keys of asks with the number and the position of each call, sorted.
    calls: Vec<(Digest, Count, u64)>,
    missing: Vec<MissingCall>,
    places: BTreeMap<Digest, Count>,
}

/// Reads every call once, so that nothing is written where one is missing.
fn found(
    (home, ledger): (&Home, &Ledger),
    basis: &RunBasis,
    rows: Vec<ImportRow>,
) -> Result<FoundCalls, SessionError> {
    let mut reader = TapeReader::new(home, ledger, basis, rows)?;
    let (mut sorted, mut missing, mut asks) = (Vec::new(), Vec::new(), Vec::new());
    calls(ledger, &basis.run, |seq, said| {
        asks.push((said.ask, said.texts));
        match reader.call(said) {
            Ok(call) => sorted.push((call.key(), call.nth, seq)),
            Err(why) => missing.push(MissingCall {
                seq,
                ask: said.ask,
                why,
            }),
        }
        Ok(())
    })?;
    sorted.sort_unstable();
    Ok(FoundCalls {
        calls: sorted,
        missing,
        places: reader.order(&asks),
    })
}

/// Writes a run as a cassette to a new file that its owner alone may read; that a custodian's key read private texts is on record
/// before. Where a call cannot be read here, nothing is written. `rows` are rows that were judged and that the ledger does not hold.
///
/// # Errors
/// [`SessionError::Port`] without a custodian's key, and when the log, the vault or the file fails.
///
/// # Panics
/// Never: the name of a run is a text.
pub fn export(
    ports: &mut dyn Ports,
    (home, ledger): (&Home, &mut Ledger),
    basis: &RunBasis,
    rows: Vec<ImportRow>,
    path: &Path,
) -> Result<CassetteExport, SessionError> {
    let all = found((home, ledger), basis, rows.clone())?;
    if !all.missing.is_empty() {
        return Ok(CassetteExport::Missing(all.missing));
    }
    let mut file = NewPrivateFile::create(path)?;
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::DataRead))?;
    let purpose = Text::new(format!("cassette of {}", basis.run.said.run));
    let purpose = purpose.expect("BUG: the name of a run is a text");
    let reader = (signer.id(), Some(Role::Custodian));
    let read = reads::read(reads::PRIVATE, ReadOutcome::Allowed, purpose, reader, None);
    let command = Command::new(read, Some(basis.run.experiment.clone()));
    let appended = append::append(ports, ledger, &[command], &signer)?;
    ports.notice(Notice::ReadRecorded(appended[0].seq));
    let mut reader = TapeReader::new(home, ledger, basis, rows)?;
    for (.., seq) in &all.calls {
        let read = ledger.entry(*seq)?.map(|read| read.event.payload);
        let Some(Payload::CallRecorded(said)) = read else {
            continue;
        };
        let call = reader.call(&said).map_err(|what| JudgingError::NoPlan {
            judge: said.judge.clone(),
            what,
        })?;
        let place = all.places.get(&said.ask).copied();
        file.write(&CassetteCall { place, ..call }.to_line())?;
    }
    file.finish()?;
    Ok(CassetteExport::Written(
        all.calls.len() as u64,
        !all.places.is_empty(),
    ))
}
