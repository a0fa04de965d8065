//! A request for a key: the key is drawn where its holder is and stays there; what travels is its public half with what is
//! asked for it, and an owner admits it elsewhere.
//!
//! Two signatures of the new key stand in a request. `proof` goes into `key.added`: whoever signs there has the key. The
//! other covers every field, so that nobody on the way can ask for more in its name. Their encodings begin differently
//! from each other and from every event's, so none can be taken for another.

use clover_event::Kind;
use clover_event::id::Base64Bytes;
use clover_event::id::HolderId;
use clover_event::id::SealRecipient;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::custody::KeyAdded;
use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::canon;
use clover_ground::note::Origin;
use clover_ground::seal::Identity;
use clover_ground::sign;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::sign::PublicKeyError;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::names;
use clover_ledger::rules;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::keys::KeyError;
use crate::keys::addition::KeyTerms;
use crate::keys::files;
use crate::keys::files::KeyFiles;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// DSSE payload type of a request.
pub const PAYLOAD_TYPE: &str = "application/vnd.clover.key-request+json";
/// The version of requests that this program writes and reads.
const VERSION: u64 = 1;

/// Who asks for which roles, in which ledger, with which key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    /// When it was made.
    pub asked_at: Timestamp,
    /// Who will hold the key.
    pub holder: HolderId,
    /// Whether a person will hold it.
    pub human: bool,
    /// SHA-256 of the key's SPKI DER.
    pub key_id: KeyId,
    /// Origin of the ledger.
    pub ledger: Origin,
    /// The key's signature over origin and key id, as `key.added` wants it.
    pub proof: Base64Bytes<64>,
    /// Ed25519 public key.
    pub public_key: Base64Bytes<32>,
    /// What the key is to sign.
    pub roles: Roles,
    /// age recipient to which labels may be sealed.
    pub seal_recipient: Option<SealRecipient>,
    /// The version of the request: 1.
    pub v: Count,
}

/// A request as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRequest {
    /// What is asked.
    pub request: KeyRequest,
    /// The key's signature over the DSSE encoding of the request in canonical JSON.
    pub signature: Base64Bytes<64>,
}

/// Why a request is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The key is in the ledger.
    #[error(
        "key {key_id} was added at seq {seq} for {holder}: a key is added once, and a request counts once"
    )]
    Exists {
        /// Its id.
        key_id: KeyId,
        /// Who holds it.
        holder: HolderId,
        /// The entry that added it.
        seq: u64,
    },
    /// The named key is not the one in the request.
    #[error("request.key_id: expected {expected}, the id of request.public_key, found {found}")]
    KeyId {
        /// The id of the public key.
        expected: KeyId,
        /// What stands there.
        found: KeyId,
    },
    /// It is for another ledger.
    #[error("request.ledger: it asks for {asked}, and this ledger is {here}")]
    Ledger {
        /// The ledger that it names.
        asked: Origin,
        /// The one at hand.
        here: String,
    },
    /// More is to be granted than was asked.
    #[error("the request asks for {asked}; {role} is not among them")]
    NotAsked {
        /// What was asked.
        asked: Roles,
        /// What is too much.
        role: Role,
    },
    /// Whoever made it does not have the key.
    #[error(
        "request.proof: the key did not sign for this ledger; whoever made the request may not have it"
    )]
    Possession,
    /// The key proves nothing.
    #[error("request.public_key: {0}")]
    PublicKey(#[from] PublicKeyError),
    /// A custodian opens labels, and cannot without a recipient.
    #[error("request.seal_recipient: expected the age recipient of a custodian, found none")]
    Recipient,
    /// A field was changed after it was signed.
    #[error("signature: a field of the request was changed after the key signed it")]
    Signature,
    /// It is of another version.
    #[error("request.v: expected {VERSION}, found {0}")]
    Version(Count),
}

/// Draws a key, writes its files, and answers with the request for it. Files of a key whose request is not made go again.
///
/// # Errors
/// [`KeyError::Unwritable`], [`SessionError::Ambient`] and [`SessionError::Seal`].
///
/// # Panics
/// Never: a version is a small number.
pub fn make(
    ambient: &Ambient,
    ledger: Origin,
    terms: KeyTerms,
    key_files: KeyFiles<'_>,
) -> Result<SignedRequest, SessionError> {
    let signer = files::draw(ambient)?;
    let seals = terms.seals || terms.roles.contains(Role::Custodian);
    let identity = if seals {
        Some(ambient.with_entropy(Identity::generate)?)
    } else {
        None
    };
    key_files.write(ambient, &signer)?;
    if let Some(identity) = &identity
        && let Err(error) = key_files.write_identity(ambient, identity)
    {
        files::discard(key_files.path);
        return Err(error);
    }
    let recipient = identity.map(|identity| SealRecipient(identity.recipient()));
    Ok(of_key(ambient, ledger, terms, &signer, recipient))
}

/// The request for a key that its holder has already, for example in another ledger: the same proof, of the same key.
///
/// # Panics
/// Never: a version is a small number.
pub fn of_key(
    ambient: &Ambient,
    ledger: Origin,
    terms: KeyTerms,
    signer: &Signer,
    recipient: Option<SealRecipient>,
) -> SignedRequest {
    let possession = rules::possession_message(ledger.as_str(), signer.id());
    let request = KeyRequest {
        asked_at: ambient.now(),
        holder: terms.holder,
        human: terms.human,
        key_id: signer.id(),
        ledger,
        proof: Base64Bytes(signer.sign(&possession)),
        public_key: Base64Bytes(signer.public_bytes()),
        roles: terms.roles,
        seal_recipient: recipient,
        v: Count::new(VERSION).expect("BUG: a version is a small number"),
    };
    let signature = Base64Bytes(signer.sign(&request.signed_bytes()));
    SignedRequest { request, signature }
}

impl KeyRequest {
    /// The bytes that the key signs.
    ///
    /// # Panics
    /// Never: a request holds no number that canonical JSON cannot write.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let body = canon::to_bytes(self).expect("BUG: a request has a canonical form");
        sign::pae(PAYLOAD_TYPE, &body)
    }
}

impl SignedRequest {
    /// Checks what needs no ledger: form, key, possession, and that no field was changed.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn check(&self) -> Result<(), RequestError> {
        let request = &self.request;
        if request.v.value() != VERSION {
            return Err(RequestError::Version(request.v));
        }
        let key = PublicKey::from_bytes(&request.public_key.0)?;
        if key.id() != request.key_id {
            return Err(RequestError::KeyId {
                expected: key.id(),
                found: request.key_id,
            });
        }
        key.verify(&request.signed_bytes(), &self.signature.0)
            .map_err(|_| RequestError::Signature)?;
        let possession = rules::possession_message(request.ledger.as_str(), request.key_id);
        key.verify(&possession, &request.proof.0)
            .map_err(|_| RequestError::Possession)?;
        if request.roles.contains(Role::Custodian) && request.seal_recipient.is_none() {
            return Err(RequestError::Recipient);
        }
        Ok(())
    }

    /// Writes it into a new file.
    ///
    /// # Errors
    /// When the file stands or cannot be written.
    ///
    /// # Panics
    /// Never: a request is JSON.
    pub fn write(&self, path: &std::path::Path) -> Result<(), SessionError> {
        let text = serde_json::to_string_pretty(self).expect("BUG: a request is JSON");
        Ok(ambient::write_new(
            path,
            format!("{text}\n").as_bytes(),
            0o644,
        )?)
    }
}

/// What an admission adds.
#[derive(Clone, Debug)]
pub struct Admission {
    /// What was asked.
    pub request: KeyRequest,
    /// The roles that are granted: those asked, or fewer.
    pub granted: Roles,
    /// Live keys that the same holder has already.
    pub others: Vec<KeyId>,
}

/// Holds a request against the ledger. Nothing is asked and nothing is written.
///
/// # Errors
/// [`RequestError`], and [`KeyError::LookAlike`].
pub fn judge(
    ledger: &Ledger,
    asked: &SignedRequest,
    narrowed: Option<Roles>,
) -> Result<Admission, SessionError> {
    asked.check().map_err(KeyError::from)?;
    let (request, keyring) = (&asked.request, &ledger.state().keyring);
    if request.ledger.as_str() != keyring.origin {
        let (asked, here) = (request.ledger.clone(), keyring.origin.clone());
        return Err(KeyError::from(RequestError::Ledger { asked, here }).into());
    }
    if let Some(record) = keyring.keys.get(&request.key_id) {
        let exists = RequestError::Exists {
            key_id: request.key_id,
            holder: record.holder.clone(),
            seq: record.added_seq,
        };
        return Err(KeyError::from(exists).into());
    }
    if let Some(other) = names::look_alike(keyring, &request.holder) {
        let (holder, other) = (request.holder.clone(), other.clone());
        return Err(KeyError::LookAlike { holder, other }.into());
    }
    let granted = narrowed.unwrap_or_else(|| request.roles.clone());
    let mut roles = granted.as_slice().iter();
    if let Some(role) = roles.find(|role| !request.roles.contains(**role)) {
        let (asked, role) = (request.roles.clone(), *role);
        return Err(KeyError::from(RequestError::NotAsked { asked, role }).into());
    }
    let live = keyring.live();
    let others = live.filter(|(_, record)| record.holder == request.holder);
    Ok(Admission {
        request: request.clone(),
        granted,
        others: others.map(|(id, _)| *id).collect(),
    })
}

/// Adds the key of a request that was judged, once its owner consents.
///
/// # Errors
/// [`SessionError::Port`] without an owner's key or consent, and [`SessionError::Ledger`]; then nothing was added.
pub fn admit(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    admission: Admission,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let owner = ports.signer(ledger.state(), KeyNeed::runner(Kind::KeyAdded))?;
    let Admission {
        request, granted, ..
    } = admission;
    let command = Command::new(
        KeyAdded {
            holder: request.holder,
            human: request.human,
            key_id: request.key_id,
            proof: Some(request.proof),
            public_key: request.public_key,
            roles: granted,
            seal_recipient: request.seal_recipient,
        },
        None,
    );
    append::permitted(ledger, &command, &owner)?;
    if intent == Intent::Append
        && let clover_event::Payload::KeyAdded(added) = &command.payload
    {
        ports.ask(&Question::AdmitKey {
            key: added.key_id,
            holder: added.holder.to_string(),
            roles: added.roles.to_string(),
        })?;
    }
    append::submit(ports, ledger, &[command], &owner, intent)
}
