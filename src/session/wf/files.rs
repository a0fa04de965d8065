//! Private files of a run beside its ledger: what a simulated model knows, and what is right with its salt.
//!
//! Neither is on record before the run has ended: the record holds a commitment. `DIR/.clover/repair/RUN/COMMITMENT/` is
//! readable by its owner alone. COMMITMENT is the first 16 hex digits of the commitment to what is right: a run that is opened
//! under a name that is taken has files of its own, before the ledger says whose name it is.

use std::path::PathBuf;

use clover_event::id::RunId;
use clover_ground::ambient;
use clover_ground::digest::Digest;

use crate::error::SessionError;
use crate::home::Home;
use crate::wf::RepairError;

/// Digits of the commitment that name a folder.
const DIGITS: usize = 16;

/// Files of a run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    folder: PathBuf,
    run: RunId,
}

impl RunFiles {
    /// Those of a run with a commitment to what is right.
    pub fn of(home: &Home, run: &RunId, truth: &Digest) -> Self {
        let folder = home.folder().join("repair").join(run.as_str());
        let folder = folder.join(&truth.to_hex()[..DIGITS]);
        let run = run.clone();
        Self { folder, run }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        ambient::create_private_dirs(&self.folder)?;
        Ok(ambient::replace_private(
            &self.folder.join(name),
            bytes,
            true,
        )?)
    }

    fn read(&self, name: &str, what: &'static str) -> Result<Vec<u8>, SessionError> {
        let path = self.folder.join(name);
        if !ambient::exists(&path)? {
            let run = self.run.clone();
            return Err(RepairError::NotHere { run, what }.into());
        }
        Ok(ambient::read(&path)?)
    }

    /// Keeps what answers for the model: item lines for the simulator, or recorded answers.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_answers(&self, lines: &str) -> Result<(), SessionError> {
        self.write("answers.jsonl", lines.as_bytes())
    }

    /// What answers for the model.
    ///
    /// # Errors
    /// [`RepairError::NotHere`], and when the file cannot be read.
    pub fn answers(&self) -> Result<String, SessionError> {
        let bytes = self.read("answers.jsonl", "what answers for the model")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Keeps what is right, and what its commitment was salted with.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn keep_truth(&self, salt: &Digest, lines: &str) -> Result<(), SessionError> {
        self.write("salt", salt.to_hex().as_bytes())?;
        self.write("truth.jsonl", lines.as_bytes())
    }

    /// What is right, and what its commitment was salted with.
    ///
    /// # Errors
    /// [`RepairError::NotHere`], and when a file cannot be read.
    pub fn truth(&self) -> Result<(Digest, Vec<u8>), SessionError> {
        let what = "what is right";
        let salt = self.read("salt", what)?;
        let salt = std::str::from_utf8(&salt).ok();
        let salt = salt.and_then(|text| Digest::from_hex(text.trim()));
        let run = self.run.clone();
        let salt = salt.ok_or(RepairError::NotHere { run, what })?;
        Ok((salt, self.read("truth.jsonl", what)?))
    }
}
