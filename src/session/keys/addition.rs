//! A new key: drawn, proposed with a proof that whoever adds it has it, written to files, and added.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::Base64Bytes;
use clover_event::id::HolderId;
use clover_event::id::SealRecipient;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::custody::KeyAdded;
use clover_ground::seal::Identity;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::names;
use clover_ledger::rules;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::keys::KeyError;
use crate::keys::files;
use crate::keys::files::KeyFiles;
use crate::ports::KeyNeed;
use crate::ports::KeysInHand;
use crate::ports::Ports;

/// What a new key is to be.
#[derive(Clone, Debug)]
pub struct KeyTerms {
    /// Who holds it.
    pub holder: HolderId,
    /// Its roles.
    pub roles: Roles,
    /// Whether a person holds it.
    pub human: bool,
    /// Whether labels can be sealed to its holder; to a custodian they always can.
    pub seals: bool,
}

/// A key that was drawn and is in no file and no ledger yet.
pub struct NewKey {
    owner: Arc<Signer>,
    signer: Signer,
    identity: Option<Identity>,
    command: Command,
}

/// Draws a key with the owner's key at hand.
///
/// # Errors
/// [`KeyError::LookAlike`], and [`SessionError::Port`] without an owner's key.
pub fn draw(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    terms: KeyTerms,
) -> Result<NewKey, SessionError> {
    let state = ledger.state();
    if let Some(other) = names::look_alike(&state.keyring, &terms.holder) {
        let (holder, other) = (terms.holder, other.clone());
        return Err(KeyError::LookAlike { holder, other }.into());
    }
    let owner = ports.signer(state, KeyNeed::runner(Kind::KeyAdded))?;
    let signer = files::draw(ledger.ambient())?;
    let seals = terms.seals || terms.roles.contains(Role::Custodian);
    let identity = if seals {
        Some(ledger.ambient().with_entropy(Identity::generate)?)
    } else {
        None
    };
    let proof = rules::possession_message(&state.keyring.origin, signer.id());
    let recipient = identity.as_ref().map(Identity::recipient);
    let payload = KeyAdded {
        holder: terms.holder,
        human: terms.human,
        key_id: signer.id(),
        proof: Some(Base64Bytes(signer.sign(&proof))),
        public_key: Base64Bytes(signer.public_bytes()),
        roles: terms.roles,
        seal_recipient: recipient.map(SealRecipient),
    };
    Ok(NewKey {
        owner,
        signer,
        identity,
        command: Command::new(payload, None),
    })
}

impl NewKey {
    /// Its id.
    pub fn id(&self) -> KeyId {
        self.signer.id()
    }

    /// The body that would add it; nothing is written.
    ///
    /// # Errors
    /// [`SessionError::Breach`] when a rule says no.
    pub fn rehearse(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
    ) -> Result<Submission, SessionError> {
        self.submit(ports, ledger, Intent::Rehearse)
    }

    /// Writes its files, then adds it; files of a key that was surely not added go again.
    ///
    /// # Errors
    /// [`KeyError::Unwritable`], [`SessionError::Ambient`] and [`SessionError::Ledger`].
    pub fn add(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        key_files: KeyFiles<'_>,
    ) -> Result<Submission, SessionError> {
        let ambient = ledger.ambient().clone();
        key_files.write(&ambient, &self.signer)?;
        let written = match &self.identity {
            Some(identity) => key_files.write_identity(&ambient, identity),
            None => Ok(()),
        };
        let added = written.and_then(|()| self.submit(ports, ledger, Intent::Append));
        if added.as_ref().is_err_and(|error| !error.is_fault()) {
            files::discard(key_files.path);
        }
        added
    }

    /// Adds it, and takes it in hand: no file is written.
    ///
    /// # Errors
    /// [`SessionError::Ledger`]; then it is not in hand.
    pub fn add_in_hand(
        self,
        keys: &mut KeysInHand,
        ledger: &mut Ledger,
    ) -> Result<KeyId, SessionError> {
        self.submit(keys, ledger, Intent::Append)?;
        let id = self.id();
        keys.signers.push(Arc::new(self.signer));
        keys.identities.extend(self.identity);
        Ok(id)
    }

    fn submit(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        intent: Intent,
    ) -> Result<Submission, SessionError> {
        let commands = std::slice::from_ref(&self.command);
        append::submit(ports, ledger, commands, &self.owner, intent)
    }
}
