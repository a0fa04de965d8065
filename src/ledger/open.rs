//! Creating and opening a ledger: state from snapshots, tree from tiles, and the pin that must agree.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clover_event::Draft;
use clover_event::Header;
use clover_event::header;
use clover_event::id::Base64Bytes;
use clover_event::id::HolderId;
use clover_event::id::Vkey;
use clover_event::payload::Roles;
use clover_event::payload::custody::LedgerCreated;
use clover_event::payload::custody::OwnerKey;
use clover_event::payload::custody::Policy;
use clover_event::payload::custody::Separation;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Tile;
use clover_ground::merkle::Tiler;
use clover_ground::note::Origin;
use clover_ground::note::SignedCheckpoint;
use clover_ground::note::VerifierKey;
use clover_ground::sign::Signer;
use clover_num::Count;
use clover_store::CreateOptions;
use clover_store::Durability;
use clover_store::OpenOptions;
use clover_store::Reader;
use clover_store::Store;
use clover_store::StoreError;
use clover_store::StoredCheckpoint;
use clover_store::StoredEntry;

use crate::append::PreparedEvent;
use crate::catch_up;
use crate::checkpoint;
use crate::error::Divergence;
use crate::error::LedgerError;
use crate::error::Root64;
use crate::fold::RuleComputation;
use crate::fold::Rulebook;
use crate::lines::write_stored;
use crate::mark::CheckMark;
use crate::mark::Mark;
use crate::pin;
use crate::pin::Pin;
use crate::pin::PinError;
use crate::pin::PinFile;
use crate::restore;
use crate::rulebooks;
use crate::rules;
use crate::slate::Slate;
use crate::state::State;
use crate::tail::Tail;
use crate::under::KnownTiles;
use crate::under::Under;

/// How to open a ledger.
#[derive(Debug)]
pub struct LedgerOptions {
    /// The file and its waiting time.
    pub store: OpenOptions,
    /// The key that signs checkpoints; without it the ledger can only be read.
    pub log_key: Option<Signer>,
    /// The folder of pins; `None` reads and writes none.
    pub pins: Option<PathBuf>,
}

/// What a new ledger starts with.
#[derive(Debug)]
pub struct CreateLedger<'a> {
    /// Origin of the log.
    pub origin: Origin,
    /// Holder of the owner key.
    pub holder: HolderId,
    /// Whether a human holds it.
    pub human: bool,
    /// Roles of the owner key; must hold `owner`.
    pub roles: Roles,
    /// Policy in force.
    pub separation: Separation,
    /// The rulebook that judges it, [`rulebooks::NEWEST`] unless an older history is to be told.
    pub rulebook: u32,
    /// The owner key.
    pub owner: &'a Signer,
    /// How the file is laid out.
    pub layout: CreateOptions,
}

/// An open ledger: the only writer of its file in this process.
#[derive(Debug)]
pub struct Ledger {
    pub(super) store: Store,
    pub(super) ambient: Arc<Ambient>,
    pub(super) rulebook: &'static Rulebook,
    pub(super) head: Head,
    pub(super) log_key: Option<Signer>,
    pub(super) next_log_key: Option<Signer>,
    pub(super) pin: Option<Pin>,
    pub(super) mark: Option<Mark>,
    /// Where it is kept which ledger lies here.
    pub(super) place: Option<PinFile>,
    /// What the mark is known to say.
    pub(super) marked: Option<CheckMark>,
    pub(super) pin_failure: Option<PinError>,
    /// Whether the clock may stand far ahead of the newest entry.
    pub(super) clock_ahead: bool,
    /// What computes appended events again, with what it keeps.
    pub(super) computing: RuleComputation,
}

/// Everything in memory that follows the head of the log.
#[derive(Debug)]
pub(super) struct Head {
    pub state: State,
    pub tiler: Tiler,
    /// Digests that entries past the index cursor gave, with the first giver.
    pub tail: Tail,
    pub indexed: u64,
    /// Entries whose digests are in the index or in `tail`.
    pub known: u64,
    /// Size of the newest stored snapshot.
    pub snapshot: u64,
    /// Digest of the stored snapshots, where they are known to be what the entries give.
    pub snapshots: Option<Digest>,
    /// The note of the newest checkpoint whose signatures were checked or made here.
    pub checked: Vec<u8>,
    /// Entries whose signatures this machine checked before.
    pub verified: u64,
    /// Tiles that are under the head.
    pub kept: KnownTiles,
    /// What the log had where its file was copied, when this is a slate.
    pub slate: Option<Slate>,
}

impl Head {
    pub(super) fn empty(rulebook: &'static Rulebook) -> Self {
        let (state, tiler) = (State::new(rulebook), Tiler::new());
        Self {
            state,
            tiler,
            tail: Tail::default(),
            indexed: 0,
            known: 0,
            snapshot: 0,
            snapshots: None,
            checked: Vec::new(),
            verified: 0,
            kept: KnownTiles::default(),
            slate: None,
        }
    }

    /// Adds leaves and gives the tiles that they fill.
    pub(super) fn grow(&mut self, leaves: &[Digest]) -> Vec<Tile> {
        let tiles = self.tiler.extend(leaves);
        self.kept.put_all(&tiles);
        tiles
    }

    /// What of `reader`'s file is under this head.
    pub(super) fn under<'a>(&'a self, reader: Reader<'a>) -> Under<'a> {
        Under::new(reader, &self.tiler, &self.kept)
    }

    /// What is known to be checked: everything that was folded.
    pub(super) fn is_checked(&self) -> CheckMark {
        CheckMark {
            size: self.size(),
            root: self.root(),
            snapshots: self.snapshots,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.state.size
    }

    pub(super) fn root(&self) -> Digest {
        self.tiler.root()
    }
}

impl Ledger {
    /// Makes a new ledger file and appends its `ledger.created`. `options.log_key` must be there.
    ///
    /// # Errors
    /// [`LedgerError`]; then no file is left behind by this call unless the system failed midway.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn create(
        path: &Path,
        create: CreateLedger<'_>,
        ambient: Arc<Ambient>,
        rulebook: &'static Rulebook,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        let Some(log_key) = options.log_key else {
            return Err(LedgerError::LogKey("is missing".to_owned()));
        };
        let signs = vkey(&create.origin, &log_key)?;
        let place = options.pins.as_ref().map(|pins| PinFile::new(pins, path));
        let pin = options
            .pins
            .map(|pins| Pin::new(&pins, create.origin.as_str()));
        unseen(pin.as_ref())?;
        let store = Store::create(path, create.layout, options.store)?;
        let head = Head::empty(rulebook);
        let mark = pin.as_ref().map(Mark::beside);
        let mut ledger = Self {
            store,
            ambient,
            rulebook,
            head,
            log_key: Some(log_key),
            next_log_key: None,
            pin,
            place,
            mark,
            marked: None,
            pin_failure: None,
            clock_ahead: false,
            computing: RuleComputation::default(),
        };
        let payload = LedgerCreated {
            format: Count::new(rules::FORMAT).expect("BUG: the format is small"),
            log_vkey: signs,
            origin: create.origin.clone(),
            owner: OwnerKey {
                holder: create.holder,
                human: create.human,
                public_key: Base64Bytes(create.owner.public_bytes()),
                roles: create.roles,
            },
            policy: Policy {
                separation: create.separation,
            },
            rulebook: (create.rulebook != rulebooks::UNNAMED).then(|| {
                Count::new(create.rulebook.into()).expect("BUG: a rulebook is a small number")
            }),
        };
        let header = Header {
            at: ledger.ambient.now(),
            author: create.owner.id(),
            author_seq: 0,
            experiment: None,
            ledger: create.origin.to_string().into(),
            refs: Vec::new(),
            seen: None,
        };
        let draft = Draft {
            header,
            payload: payload.into(),
        };
        let signed = draft
            .sign(create.owner)
            .map_err(|source| LedgerError::Body { index: 0, source })?;
        ledger.append_genesis(PreparedEvent::from_signed(0, signed)?)?;
        // Whoever made it knows it from elsewhere than from its file.
        if let Some(pin) = &ledger.pin {
            pin.vouch().map_err(pin_error)?;
        }
        Ok(ledger)
    }

    /// Opens an existing ledger, brings its state to the head, and holds it against the pin.
    ///
    /// # Errors
    /// [`LedgerError::Diverged`] when the pin disagrees, [`LedgerError::Integrity`] when the file does not
    /// match its own signed head, [`LedgerError::LogKey`] when the key at hand is not the log's.
    pub fn open(
        path: &Path,
        ambient: Arc<Ambient>,
        rulebook: &'static Rulebook,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        let ledger = Self::open_anew(path, ambient, rulebook, options)?;
        let known = ledger.place.as_ref().map(PinFile::load).transpose()?;
        let found = &ledger.head.state.keyring.origin;
        match known.flatten() {
            Some(known) if known != *found => Err(Divergence::Replaced {
                known,
                found: found.clone(),
            }
            .into()),
            _ => Ok(ledger),
        }
    }

    /// As [`Ledger::open`], whatever ledger lay at this path before.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_anew(
        path: &Path,
        ambient: Arc<Ambient>,
        rulebook: &'static Rulebook,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        // The pin is read before the file: another process may append in between, and then the log leads.
        let pins = options.pins;
        let store = Store::open(path, options.store)?;
        let mut ledger = Self {
            store,
            ambient,
            rulebook,
            head: Head::empty(rulebook),
            log_key: options.log_key,
            next_log_key: None,
            pin: None,
            place: pins.as_ref().map(|pins| PinFile::new(pins, path)),
            mark: None,
            marked: None,
            pin_failure: None,
            clock_ahead: false,
            computing: RuleComputation::default(),
        };
        let origin = ledger.first_origin()?;
        let pin = pins.map(|pins| Pin::in_use(&pins, &origin, path));
        ledger.pin = pin.transpose().map_err(pin_error)?;
        ledger.mark = ledger.pin.as_ref().map(Mark::beside);
        let pinned = match &ledger.pin {
            Some(pin) => pin.load().map_err(pin_error)?,
            None => None,
        };
        ledger.reload()?;
        if ledger.head.state.keyring.origin != origin {
            let found = format!("origin {origin} in the first entry, which others do not bear out");
            return Err(LedgerError::Integrity { seq: 0, found });
        }
        if let Some(pinned) = pinned {
            ledger.agree(&pinned)?;
        }
        ledger.agree_with_copies()?;
        ledger.check_log_key()?;
        ledger.keep_mark();
        Ok(ledger)
    }

    /// The origin that the first entry claims.
    fn first_origin(&self) -> Result<String, LedgerError> {
        let Some(first) = self.store.reader().entry(0)? else {
            let path = self.store.path().to_owned();
            return Err(StoreError::NotALedger {
                path,
                found: "a ledger file without a first entry".to_owned(),
            }
            .into());
        };
        let integrity = |found: String| LedgerError::Integrity { seq: 0, found };
        let decoded = header::decode(&first.body).map_err(|error| integrity(error.to_string()))?;
        Ok(decoded.header.ledger.into())
    }

    fn check_log_key(&self) -> Result<(), LedgerError> {
        let (Some(own), Some(known)) = (&self.log_key, self.head.state.keyring.log_key()) else {
            return Ok(());
        };
        if known.key().public_key() == own.public_bytes() {
            return Ok(());
        }
        Err(LedgerError::LogKey(format!(
            "at hand is not the key that signs this ledger, {known}"
        )))
    }

    /// Drops what is in memory and reads state and tree anew.
    pub(super) fn reload(&mut self) -> Result<(), LedgerError> {
        self.marked = self.mark.as_ref().and_then(Mark::load);
        let slate = self.head.slate.take();
        let read = self.store.read()?;
        self.head = restore::restore(read.reader(), self.rulebook, self.marked.as_ref())?;
        self.head.slate = slate;
        catch_up::catch_up(&mut self.head, read.reader())
    }

    /// Marks what was checked, where that is worth a mark.
    pub(super) fn keep_mark(&mut self) {
        let checked = self.head.is_checked();
        if let Some(mark) = &self.mark
            && checked.is_worth(self.marked.as_ref())
        {
            mark.keep(&checked);
            self.marked = Some(checked);
        }
    }

    /// Holds the log against a checkpoint kept outside of it.
    ///
    /// # Errors
    /// [`LedgerError::Diverged`].
    pub fn agree(&self, outside: &SignedCheckpoint) -> Result<(), LedgerError> {
        let pinned = outside.checkpoint();
        let keyring = &self.head.state.keyring;
        // Past the head a rotation may be missing, so there any log key of this ledger will do.
        let in_force =
            checkpoint::required_keys(keyring, pinned.size.saturating_sub(1), pinned.size);
        let signed = checkpoint::check(outside, &keyring.origin, &in_force).is_ok();
        let own = signed || pinned.size > self.head.size() && checkpoint::is_own(outside, keyring);
        if !own {
            return Err(Divergence::ForeignKey { size: pinned.size }.into());
        }
        if pinned.size > self.head.size() {
            return Err(Divergence::RolledBack {
                pinned: pinned.size,
                found: self.head.size(),
            }
            .into());
        }
        let found = self.root_at(pinned.size)?;
        if found != pinned.root {
            let forked = Divergence::Forked {
                size: pinned.size,
                pinned: Root64(pinned.root),
                found: Root64(found),
            };
            return Err(forked.into());
        }
        Ok(())
    }

    /// The root of the first `size` entries.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn root_at(&self, size: u64) -> Result<Digest, LedgerError> {
        if size == self.head.size() {
            return Ok(self.head.root());
        }
        let tiles = self.under(self.store.reader());
        merkle::root_at(&tiles, size).map_err(Under::error)
    }

    /// The right edge of the tree over the first `size` entries: what follows them can be added to it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn edge_at(&self, size: u64) -> Result<Tiler, LedgerError> {
        resume(self.store.reader(), size)
    }

    /// State at the head, as of the last append or [`Ledger::refresh`].
    pub fn state(&self) -> &State {
        &self.head.state
    }

    /// Entries at the head.
    pub fn size(&self) -> u64 {
        self.head.size()
    }

    /// Root at the head.
    pub fn root(&self) -> Digest {
        self.head.root()
    }

    /// The file.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Clock and entropy.
    pub fn ambient(&self) -> &Arc<Ambient> {
        &self.ambient
    }

    /// Where the pin lies, when one is kept.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Takes in what other processes appended.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn refresh(&mut self) -> Result<(), LedgerError> {
        let read = self.store.read()?;
        catch_up::catch_up(&mut self.head, read.reader())
    }

    /// The newest signed checkpoint that was checked or made here.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn head_checkpoint(&self) -> Result<SignedCheckpoint, LedgerError> {
        let (size, note) = (self.head.size(), self.head.checked.clone());
        if note.is_empty() {
            return Err(no_head());
        }
        parse_checkpoint(&StoredCheckpoint { size, note })
    }

    /// Moves the pin to the head.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn advance_pin(&self) -> Result<(), LedgerError> {
        if let Some(pin) = &self.pin {
            let head = self.head_checkpoint()?;
            pin.advance(&head).map_err(pin_error)?;
        }
        if let Some(place) = &self.place {
            place.keep(&self.head.state.keyring.origin)?;
        }
        Ok(())
    }

    /// Gives this copy a pin of its own, so that another copy on this machine may be ahead of it. It must be at least
    /// where this machine saw the ledger to be.
    ///
    /// # Errors
    /// [`LedgerError::Diverged`], and what files say.
    pub fn pin_copy(&mut self, pins: &Path) -> Result<(), LedgerError> {
        let (file, origin) = (
            self.store.path().to_owned(),
            &self.head.state.keyring.origin,
        );
        if let Some(known) = pin::replaced(pins, &file, origin).map_err(pin_error)? {
            let found = origin.clone();
            return Err(Divergence::Replaced { known, found }.into());
        }
        if let Some(seen) = Pin::new(pins, origin).load().map_err(pin_error)? {
            self.agree(&seen)?;
        }
        self.place = Some(PinFile::new(pins, &file));
        let pin = Pin::of_copy(pins, origin, &file);
        self.mark = Some(Mark::beside(&pin));
        self.pin = Some(pin);
        self.advance_pin()
    }

    /// Holds a copy with a pin of its own against what other copies on this machine had, as far as it reaches.
    fn agree_with_copies(&self) -> Result<(), LedgerError> {
        let machine = self.pin.as_ref().and_then(Pin::of_machine);
        let seen = machine.map(|pin| pin.load().map_err(pin_error));
        match seen.transpose()?.flatten() {
            Some(seen) if seen.checkpoint().size <= self.head.size() => self.agree(&seen),
            _ => Ok(()),
        }
    }

    /// The `Full` or `Relaxed` syncing of this ledger's commits.
    pub fn durability(&self) -> Durability {
        self.store.durability()
    }
}

/// A new ledger has a name that was never seen here.
fn unseen(pin: Option<&Pin>) -> Result<(), LedgerError> {
    let pinned = pin.map(Pin::load).transpose().map_err(pin_error)?;
    pinned.flatten().map_or(Ok(()), |pinned| {
        let pinned = pinned.checkpoint().size;
        Err(Divergence::RolledBack { pinned, found: 0 }.into())
    })
}

pub(super) fn no_head() -> LedgerError {
    LedgerError::Integrity {
        seq: 0,
        found: "no checkpoint".to_owned(),
    }
}

pub(super) fn pin_error(error: PinError) -> LedgerError {
    match error {
        PinError::Ambient(error) => error.into(),
        PinError::Damaged { .. } => LedgerError::LogKey(format!("cannot be trusted: {error}")),
    }
}

/// The C2SP key under which `signer` signs this origin's checkpoints.
///
/// # Errors
/// [`LedgerError::LogKey`].
pub(super) fn vkey(origin: &Origin, signer: &Signer) -> Result<Vkey, LedgerError> {
    let key = VerifierKey::ed25519(origin.key_name().clone(), signer.public_bytes())
        .map_err(|error| LedgerError::LogKey(error.to_string()))?;
    Vkey::new(key).ok_or_else(|| LedgerError::LogKey("is not Ed25519".to_owned()))
}

pub(super) fn parse_checkpoint(stored: &StoredCheckpoint) -> Result<SignedCheckpoint, LedgerError> {
    let seq = stored.size.saturating_sub(1);
    let integrity = |found: String| LedgerError::Integrity { seq, found };
    let checkpoint =
        SignedCheckpoint::parse(&stored.note).map_err(|error| integrity(error.to_string()))?;
    if checkpoint.checkpoint().size != stored.size {
        return Err(integrity(format!(
            "a checkpoint of size {}",
            checkpoint.checkpoint().size
        )));
    }
    Ok(checkpoint)
}

/// The tree's right edge at `size`, from stored tiles and the entries past the last full one.
pub(super) fn resume(reader: Reader<'_>, size: u64) -> Result<Tiler, LedgerError> {
    let mut partial = Vec::new();
    let mut level_0 = Vec::new();
    reader.entries(size - size % 256, size, |stored| {
        level_0.push(leaf(&stored));
        Ok::<_, LedgerError>(())
    })?;
    partial.push(level_0);
    let mut count = size / 256;
    let mut level = 0_u8;
    while count > 0 {
        partial.push(reader.tile_roots(level, count - count % 256, count)?);
        count /= 256;
        level += 1;
    }
    Tiler::resume(size, partial).map_err(|error| LedgerError::Integrity {
        seq: size,
        found: error.to_string(),
    })
}

/// Leaf hash of a stored entry's rebuilt line.
pub(super) fn leaf(stored: &StoredEntry) -> Digest {
    let mut line = Vec::new();
    write_stored(&mut line, &stored.as_ref());
    merkle::leaf_hash(&line)
}
