//! States of the past that this machine folded itself, kept beside the mark and outside the ledger's folder: whoever asks for a
//! state between two of them need not fold from the first entry.
//!
//! They are believed as the mark is, for what is shown. What a rule or a check goes by is folded from the entries.

use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::digest::Digest;

use crate::error::LedgerError;
use crate::open;
use crate::open::Head;
use crate::open::Ledger;
use crate::pin::Pin;
use crate::state::State;

/// First word of a file.
const HEAD: &str = "clover state 1";
/// Entries between two states, at least.
const SPACING: u64 = 8_192;
/// Bytes of a state that an entry may cost: larger states are kept further apart. An entry takes some 900 bytes itself. A state of
/// 1.1 MB, as 2,000,000 entries have, is kept every 16,384 entries, which fold in some 60 ms.
const BYTES_AN_ENTRY: u64 = 80;

/// Where one origin's states lie, a file each.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
}

/// Sizes at whose multiples a state of so many bytes is kept.
fn spacing(bytes: u64) -> u64 {
    let mut spacing = SPACING;
    while spacing.saturating_mul(BYTES_AN_ENTRY) < bytes {
        spacing = spacing.saturating_mul(2);
    }
    spacing
}

fn encode(state: &State, root: Digest) -> Vec<u8> {
    let (version, size) = (state.rulebook().version, state.size);
    let mut bytes = format!("{HEAD}\n{version} {size} {}\n", root.to_hex()).into_bytes();
    for (name, fold) in state.snapshots() {
        bytes.extend_from_slice(format!("{name} {}\n", fold.len()).as_bytes());
        bytes.extend_from_slice(&fold);
        bytes.push(b'\n');
    }
    bytes
}

/// The first line, and what follows it.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, &bytes[end + 1..]))
}

/// The state in a file, and the root that it says; `None` where it is none of this size and rulebook.
fn decode(bytes: &[u8], size: u64, mut state: State) -> Option<(State, Digest)> {
    let (head, bytes) = line(bytes)?;
    let (of, mut bytes) = line(bytes)?;
    let [version, found, root] = of.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let version: u32 = version.parse().ok()?;
    let found: u64 = found.parse().ok()?;
    let fits = head == HEAD && version == state.rulebook().version && found == size;
    let mut names: Vec<&str> = Vec::new();
    while fits && !bytes.is_empty() {
        let (of, rest) = line(bytes)?;
        let (name, len) = of.split_once(' ')?;
        let (fold, rest) = rest.split_at_checked(len.parse().ok()?)?;
        state.restore(name, fold).then_some(())?;
        names.push(name);
        bytes = rest.strip_prefix(b"\n")?;
    }
    let expected = state.snapshot_names();
    state.size = size;
    let root = Digest::from_hex(root)?;
    (fits && names == expected).then_some((state, root))
}

impl StateFolder {
    /// The folder beside a pin.
    pub(super) fn beside(pin: &Pin) -> Self {
        let mut path = pin.path().as_os_str().to_owned();
        path.push(".states");
        Self { path: path.into() }
    }

    fn file(&self, size: u64) -> PathBuf {
        self.path.join(format!("{size:016}"))
    }

    /// Sizes of the states that are kept, at most `size`, the largest first.
    fn sizes(&self, size: u64) -> Vec<u64> {
        let files = ambient::list(&self.path).unwrap_or_else(|_| Vec::new());
        let sizes = files.iter().filter_map(|file| {
            let name = file.file_name()?.to_str()?;
            name.parse::<u64>().ok().filter(|found| *found <= size)
        });
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }

    /// Keeps a state where the log passed a place for one since it had `before` entries. Without it more is folded next time,
    /// so a failure is no error.
    pub(super) fn keep(&self, before: u64, state: &State, root: Digest) {
        if before / SPACING == state.size / SPACING {
            return;
        }
        let bytes = encode(state, root);
        let spacing = spacing(bytes.len() as u64);
        if before / spacing != state.size / spacing
            && ambient::create_private_dirs(&self.path).is_ok()
        {
            ambient::replace_private(&self.file(state.size), &bytes, false).ok();
        }
    }
}

impl Ledger {
    /// Keeps the state at the head where an append, begun at `before` entries, passed a place for one.
    pub(super) fn keep_state(&self, before: u64) {
        if let Some(pin) = &self.pin {
            let folder = StateFolder::beside(pin);
            folder.keep(before, &self.head.state, self.head.root());
        }
    }

    /// As [`Ledger::state_at`], from the nearest state that this machine kept: to be shown, and nothing else.
    ///
    /// # Errors
    /// As [`Ledger::state_at`].
    pub fn state_shown(&self, size: u64) -> Result<State, LedgerError> {
        let size = size.min(self.size());
        let Some(pin) = &self.pin else {
            return self.state_at(size);
        };
        let folder = StateFolder::beside(pin);
        let mut head = self.nearest(&folder, size)?;
        while head.size() < size {
            let before = head.size();
            let next = size.min((before / SPACING + 1) * SPACING);
            self.fold_on(&mut head, next)?;
            folder.keep(before, &head.state, head.root());
        }
        Ok(head.state)
    }

    /// The largest kept state of at most `size` entries that are under the signed head.
    fn nearest(&self, folder: &StateFolder, size: u64) -> Result<Head, LedgerError> {
        for kept in folder.sizes(size) {
            let mut head = Head::empty(self.rulebook);
            let Ok(bytes) = ambient::read(&folder.file(kept)) else {
                continue;
            };
            let Some((state, root)) = decode(&bytes, kept, State::new(self.rulebook)) else {
                continue;
            };
            if self.root_at(kept)? != root {
                continue;
            }
            let tiler = open::resume(self.store.reader(), kept)?;
            if tiler.root() == root {
                (head.state, head.tiler) = (state, tiler);
                return Ok(head);
            }
        }
        Ok(Head::empty(self.rulebook))
    }
}
