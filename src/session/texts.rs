//! Covariates from private texts: only whoever has the vault can compute them.

use std::collections::BTreeMap;

use clover_event::id::FieldId;
use clover_event::payload::PrivateRef;
use clover_event::payload::judge::ScoreRecorded;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::OpenedBlob;
use clover_ground::seal::SubjectKey;
use clover_ledger::Ledger;
use clover_store::Vault;
use clover_workflow::analyze::read;
use clover_workflow::estimate::rows::Covariates;

use crate::custody::erasure;
use crate::error::SessionError;
use crate::home::Home;

/// Lengths of responses, decrypted one at a time.
pub struct Texts<'l> {
    ledger: &'l Ledger,
    vault: Option<Vault>,
    /// Keys by subject, so that each is asked for once.
    keys: BTreeMap<Digest, Option<SubjectKey>>,
}

impl<'l> Texts<'l> {
    /// Over the vault beside a ledger, when there is one.
    ///
    /// # Errors
    /// When the vault cannot be opened.
    pub fn new(home: &Home, ledger: &'l Ledger) -> Result<Self, SessionError> {
        Ok(Self {
            ledger,
            vault: home.known_vault(ledger.ambient())?,
            keys: BTreeMap::new(),
        })
    }

    fn key(&mut self, subject: &Digest) -> Result<Option<&SubjectKey>, String> {
        if !self.keys.contains_key(subject) {
            let vault = self.vault.as_ref();
            let found = vault.map(|vault| vault.subject_key(subject)).transpose();
            let found = found.map_err(|error| error.to_string())?.flatten();
            let key = found.map(|bytes| SubjectKey::from_bytes(&bytes));
            self.keys.insert(*subject, key);
        }
        Ok(self.keys.get(subject).and_then(Option::as_ref))
    }
}

impl Texts<'_> {
    /// Why a subject has no key here: it was erased, or its vault is elsewhere.
    fn without_key(&self, subject: &Digest) -> String {
        match erasure::erased_at(self.ledger, subject) {
            Ok(Some(seq)) => format!("its text is withheld under erasure #{seq}"),
            Ok(None) => "the key of its text is gone or not at hand".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// A private text.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn opened(&mut self, private: &PrivateRef) -> Result<String, String> {
        String::from_utf8(self.content(private)?).map_err(|error| error.to_string())
    }

    /// Private content, whatever its bytes are.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn content(&mut self, private: &PrivateRef) -> Result<Vec<u8>, String> {
        Ok(self.blob(private)?.plaintext.clone())
    }

    /// Whether the key of a subject is at hand.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn has_key(&mut self, subject: &Digest) -> Result<bool, String> {
        Ok(self.key(subject)?.is_some())
    }

    /// Private bytes, with the salt of their commitment, which they have.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn opened_bytes(&mut self, private: &PrivateRef) -> Result<OpenedBlob, String> {
        let opened = self.blob(private)?;
        if opened.commitment() != private.commitment {
            return Err("its text is not the one that was recorded".to_owned());
        }
        Ok(opened)
    }

    fn blob(&mut self, private: &PrivateRef) -> Result<OpenedBlob, String> {
        let stored = self.ledger.store().reader().blob(&private.blob.blake3);
        let stored = stored
            .map_err(|error| error.to_string())?
            .ok_or("its blob is missing")?;
        let Some(key) = self.key(&private.subject)? else {
            return Err(self.without_key(&private.subject));
        };
        seal::decrypt_blob(key, &stored).map_err(|error| error.to_string())
    }
}

impl Covariates for Texts<'_> {
    fn text(&mut self, private: &PrivateRef) -> Result<String, String> {
        self.opened(private)
    }

    fn value(&mut self, field: &FieldId, score: &ScoreRecorded) -> Result<f64, String> {
        if field.as_str() != read::RESPONSE_LENGTH {
            return Err(format!(
                "expected {}, the covariate that a ledger's texts give",
                read::RESPONSE_LENGTH
            ));
        }
        let Some(response) = &score.response else {
            return Err("its response was not taken in".to_owned());
        };
        Ok(read::words(&self.opened(response)?) as f64)
    }
}
