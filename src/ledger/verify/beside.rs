//! What came beside the lines of a bundle and must agree with them: checkpoints of earlier sizes; and what other files of it are
//! held to.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_ground::digest::Digest;
use clover_ground::merkle::Frontier;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign::KeyId;

use crate::checkpoint;
use crate::rule_names::RuleName;
use crate::verify::checker::Checker;

/// What entries say of the files that stand beside them.
#[derive(Clone, Debug, Default)]
pub struct FilesBeside {
    /// Public keys that the log added.
    pub keys: BTreeMap<KeyId, [u8; 32]>,
    /// The public key of the log, the newest one.
    pub log_key: Option<[u8; 32]>,
    /// Experiments of the entries shown, where they are a part of a log.
    pub experiments: BTreeSet<ExperimentId>,
    /// Kinds of the entries shown, where they are a part of a log.
    pub kinds: BTreeSet<String>,
    /// Positions of the entries withheld.
    pub withheld: BTreeSet<u64>,
    /// BLAKE3 of the bundle of the newest published report of each iteration, of the entries that could be read.
    pub published: BTreeMap<IterationId, Digest>,
    /// Blobs that entries name, where blobs were looked at.
    pub blobs: Option<BTreeSet<Digest>>,
}

impl Checker<'_> {
    /// Takes in the digest of the bundle of a published report.
    pub(super) fn take_published(&mut self, event: &Event) {
        if let Payload::ReportPublished(said) = &event.payload {
            let of = said.iteration.clone();
            self.published.insert(of, said.bundle.blake3);
        }
    }

    /// Holds checkpoints that came beside the lines, in the order of their sizes, against the tree and its log keys.
    pub(super) fn check_kept(&mut self) {
        let (mut tree, mut grown) = (Frontier::new(), 0);
        for (name, kept) in &self.options.kept {
            let said = kept.checkpoint();
            let leaves = usize::try_from(said.size).ok();
            let more = leaves.and_then(|size| self.walked.get(grown..size));
            for leaf in more.into_iter().flatten() {
                tree.push(*leaf);
                grown += 1;
            }
            let problem = if more.is_none() {
                let expected = format!("a size of at most {}", self.position);
                Some((expected, format!("size {}", said.size)))
            } else if tree.root() != said.root {
                let expected = format!("root {} at size {}", tree.root().to_base64(), said.size);
                Some((expected, said.root.to_base64()))
            } else {
                self.unsigned(kept)
                    .map(|found| ("the signature of the log key".to_owned(), found))
            };
            if let Some((expected, found)) = problem {
                let expected = format!("{name}: {expected}");
                self.findings
                    .add(self.position, RuleName::Bundle, expected, found);
            }
        }
    }

    /// What is wrong with the signatures of a checkpoint, where keys were looked at.
    fn unsigned(&self, kept: &SignedCheckpoint) -> Option<String> {
        if self.options.tree_only {
            return None;
        }
        let size = kept.checkpoint().size;
        let keyring = &self.state.keyring;
        let known: Vec<_> = (keyring.log_keys.iter())
            .filter(|(seq, _)| *seq < size.max(1))
            .map(|(_, key)| key.key().clone())
            .collect();
        let required = checkpoint::required_keys(keyring, size.saturating_sub(1), size.max(1));
        checkpoint::check_known(kept, &keyring.origin, &known)
            .and_then(|()| checkpoint::check(kept, &keyring.origin, &required))
            .err()
    }

    /// What files beside the entries are held to.
    pub(super) fn beside(&mut self) -> FilesBeside {
        // A whole log withholds nothing.
        let (experiments, kinds, withheld) = match self.part.take() {
            Some(part) => (part.experiments, part.kinds, part.positions),
            None => (BTreeSet::new(), BTreeSet::new(), BTreeSet::new()),
        };
        let keyring = &self.state.keyring;
        let keys = keyring.keys.iter();
        let log_key = keyring.log_key();
        FilesBeside {
            keys: keys.map(|(id, key)| (*id, key.public_key.0)).collect(),
            log_key: log_key.and_then(|key| key.key().public_key().try_into().ok()),
            experiments,
            kinds,
            withheld,
            published: std::mem::take(&mut self.published),
            blobs: (self.blobs.is_some() && !self.options.tree_only)
                .then(|| std::mem::take(&mut self.named)),
        }
    }
}
