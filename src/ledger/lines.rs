//! Lines of entries, hashed side by side.

use clover_event::entry;
use clover_event::entry::LINE_LEN_MAX;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_store::EntryRef;

/// Lines whose leaf hashes are wanted, one after the other.
#[derive(Default)]
pub(super) struct LeafLines {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Places of entries without a line, ascending, each with its leaf.
    given: Vec<(usize, Digest)>,
}

/// Adds the line of a stored entry, without newline: the bytes that its leaf is the hash of.
pub fn write_stored(out: &mut Vec<u8>, entry: &EntryRef<'_>) {
    entry::write_line(
        out,
        entry.seq,
        entry.recorded_at,
        entry.body,
        &entry.author,
        entry.signature,
    );
}

impl LeafLines {
    /// Entries at hand.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds the line of an entry; says what is wrong with it, if anything is.
    pub(super) fn push(&mut self, entry: &EntryRef<'_>) -> Option<String> {
        let start = self.bytes.len();
        write_stored(&mut self.bytes, entry);
        self.ends.push(self.bytes.len());
        line_fault(self.bytes.len() - start)
    }

    /// Adds a line as it stands.
    pub(super) fn push_line(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
    }

    /// Adds an entry that has no line; its leaf is zero.
    pub(super) fn push_unreadable(&mut self) {
        self.push_leaf(Digest([0; 32]));
    }

    /// Adds an entry of which only the leaf is at hand.
    pub(super) fn push_leaf(&mut self, leaf: Digest) {
        self.given.push((self.ends.len(), leaf));
        self.ends.push(self.bytes.len());
    }

    /// The leaf hashes of the entries at hand, which are then no more.
    pub(super) fn leaves(&mut self) -> Vec<Digest> {
        let mut start = 0;
        let mut lines = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            lines.push(&self.bytes[start..*end]);
            start = *end;
        }
        let mut leaves = merkle::leaf_hashes(&lines);
        for (at, leaf) in self.given.drain(..) {
            leaves[at] = leaf;
        }
        self.bytes.clear();
        self.ends.clear();
        leaves
    }
}

/// Why a line of this length cannot stand in a log, if it cannot.
fn line_fault(len: usize) -> Option<String> {
    (len > LINE_LEN_MAX).then(|| format!("a line of {len} bytes, at most {LINE_LEN_MAX}"))
}
