//! Everything the rules know at a position of the log: custody plus the rulebook's folds.

use std::any::Any;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Event;
use clover_event::Kind;
use clover_ground::canon;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;

use crate::fold::Fold;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::keyring::Keyring;
use crate::rulebooks::Question;

/// Name under which the custody fold is kept.
pub const CUSTODY: &str = "custody";

/// State after `size` entries.
pub struct State {
    /// Entries taken in.
    pub size: u64,
    /// Keys, policy, log keys, counters.
    pub keyring: Keyring,
    /// With their types.
    folds: Vec<(TypeId, Box<dyn Fold>)>,
    public: BTreeMap<KeyId, Arc<PublicKey>>,
    rulebook: &'static Rulebook,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({} entries)", self.size)
    }
}

impl State {
    /// Before the first entry.
    pub fn new(rulebook: &'static Rulebook) -> Self {
        let folds = rulebook.folds.iter().map(|entry| {
            let fold = (entry.make)();
            (Any::type_id(fold.as_ref()), fold)
        });
        let folds = folds.collect();
        Self {
            size: 0,
            keyring: Keyring::default(),
            folds,
            public: BTreeMap::new(),
            rulebook,
        }
    }

    /// The rulebook that folds it.
    pub fn rulebook(&self) -> &'static Rulebook {
        self.rulebook
    }

    /// Whether the rulebook in force asks `question` of the next entry.
    pub fn asks(&self, question: Question) -> bool {
        self.keyring.asks(question)
    }

    /// A fold of the rulebook.
    ///
    /// # Panics
    /// When the rulebook does not list `T`: a rule may only ask for folds of its own rulebook.
    pub fn fold<T: Fold>(&self) -> &T {
        let wanted = TypeId::of::<T>();
        let found = self.folds.iter().find(|(of, _)| *of == wanted);
        found
            .and_then(|(_, fold)| (fold.as_ref() as &dyn Any).downcast_ref())
            .expect("BUG: the rulebook lists the folds its rules read")
    }

    /// The checked public key of a known author.
    pub fn public_key(&self, id: &KeyId) -> Option<&Arc<PublicKey>> {
        self.public.get(id)
    }

    /// Takes in an event that was checked.
    pub fn apply(&mut self, event: &VerifiedEvent<'_>) {
        self.size = event.seq() + 1;
        self.apply_custody(event.seq(), event.event());
        self.keyring
            .apply_header(event.seq(), event.recorded_at(), &event.event().header);
        let kind = event.event().kind();
        for (entry, (_, fold)) in self.rulebook.folds.iter().zip(&mut self.folds) {
            if entry.reads.contains(&kind) {
                fold.apply(event);
            }
        }
    }

    pub(super) fn apply_custody(&mut self, seq: u64, event: &Event) {
        let before = self.keyring.keys.len();
        self.keyring.apply_payload(seq, event);
        if self.keyring.keys.len() != before {
            self.refresh_public();
        }
    }

    fn refresh_public(&mut self) {
        for (id, key) in &self.keyring.keys {
            if !self.public.contains_key(id)
                && let Ok(public) = PublicKey::from_bytes(&key.public_key.0)
                && public.id() == *id
            {
                self.public.insert(*id, Arc::new(public));
            }
        }
    }

    /// Takes in only the counters of an entry that broke a rule of custody.
    pub(super) fn apply_counters(
        &mut self,
        seq: u64,
        recorded_at: clover_ground::time::Timestamp,
        header: &clover_event::Header,
    ) {
        self.size = seq + 1;
        self.keyring.apply_header(seq, recorded_at, header);
    }

    /// Name and canonical state of every fold, custody first.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn snapshots(&self) -> Vec<(&'static str, Vec<u8>)> {
        let custody = canon::to_bytes(&self.keyring).expect("BUG: custody has a canonical form");
        let folds = self
            .rulebook
            .folds
            .iter()
            .zip(&self.folds)
            .map(|(entry, (_, fold))| (entry.name, fold.snapshot()));
        std::iter::once((CUSTODY, custody)).chain(folds).collect()
    }

    /// Names under which [`State::snapshots`] gives states, in its order.
    pub(super) fn snapshot_names(&self) -> Vec<&'static str> {
        let folds = self.rulebook.folds.iter().map(|entry| entry.name);
        std::iter::once(CUSTODY).chain(folds).collect()
    }

    /// Places of the folds that read a kind.
    pub(super) fn readers(&self, kind: Kind) -> Vec<usize> {
        let folds = self.rulebook.folds.iter().enumerate();
        let reads = folds.filter(|(_, entry)| entry.reads.contains(&kind));
        reads.map(|(at, _)| at).collect()
    }

    /// Canonical state of the fold at a place.
    pub(super) fn snapshot_at(&self, at: usize) -> Vec<u8> {
        self.folds[at].1.snapshot()
    }

    /// Replaces the fold at a place by a snapshot's state. False when the bytes are not its.
    pub(super) fn restore_at(&mut self, at: usize, bytes: &[u8]) -> bool {
        self.folds[at].1.restore(bytes)
    }

    /// Replaces one fold by a snapshot's state. False when the bytes are not its.
    pub(super) fn restore(&mut self, name: &str, bytes: &[u8]) -> bool {
        if name == CUSTODY {
            let Ok(keyring) = serde_json::from_slice(bytes) else {
                return false;
            };
            self.keyring = keyring;
            self.refresh_public();
            return true;
        }
        let found = self
            .rulebook
            .folds
            .iter()
            .position(|entry| entry.name == name);
        found.is_some_and(|at| self.folds[at].1.restore(bytes))
    }
}
