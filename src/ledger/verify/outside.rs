//! Checkpoints and keys that came from elsewhere: pins, copies that somebody kept, the log key that was named.

use clover_ground::digest::Digest;
use clover_ground::merkle::Frontier;
use clover_ground::note::SignedCheckpoint;

use crate::checkpoint;
use crate::rule_names::RuleName;
use crate::verify::checker::Checker;
use crate::verify::report::Divergent;

impl Checker<'_> {
    /// Holds the root at hand against an outside checkpoint of this size.
    pub(super) fn hold(&mut self, name: &str, outside: &SignedCheckpoint) {
        let size = outside.checkpoint().size;
        self.head_held |= self.head.as_ref() == Some(outside);
        self.check_outside(name, outside, size.saturating_sub(1));
        self.compare_root(name, outside, self.tiler.root());
    }

    /// Notes what auditors attested of a tree that this one never was.
    pub(super) fn note_attested(&mut self) {
        let mut attested = std::mem::take(&mut self.attested);
        attested.sort_by_key(|(_, size, _)| *size);
        let (mut tree, mut grown, mut strangers) = (Frontier::new(), 0, Vec::new());
        for (seq, size, root) in attested {
            let leaves = usize::try_from(size).ok();
            let Some(more) = leaves.and_then(|size| self.walked.get(grown..size)) else {
                strangers.push((seq, size));
                continue;
            };
            for leaf in more {
                tree.push(*leaf);
            }
            grown += more.len();
            if tree.root() != root {
                strangers.push((seq, size));
            }
        }
        strangers.sort_unstable();
        let notes = strangers.iter().map(|(seq, size)| {
            format!(
                "audit.attested at seq {seq} names a root that this tree does not have at size {size}"
            )
        });
        self.notes.extend(notes);
    }

    pub(super) fn compare_root(&mut self, name: &str, outside: &SignedCheckpoint, root: Digest) {
        let (size, expected) = (outside.checkpoint().size, outside.checkpoint().root);
        if root != expected {
            let expected = format!("root {} of {name}", expected.to_base64());
            self.findings.add(
                size.saturating_sub(1),
                RuleName::Root,
                expected,
                root.to_base64(),
            );
            if self.head.as_ref() == Some(outside) {
                self.own_root_broken = true;
            } else {
                self.divergence.get_or_insert(Divergent::Forked);
            }
        }
    }

    /// Judges the signatures of an outside checkpoint: those of the log keys in force at its size. Past the
    /// last entry a rotation may be missing, so there only a bad signature is a finding.
    pub(super) fn check_outside(&mut self, name: &str, outside: &SignedCheckpoint, seq: u64) {
        // Without the events nobody knows the log's keys; the root is compared all the same.
        if self.options.tree_only {
            return;
        }
        let size = outside.checkpoint().size;
        let is_head = self.head.as_ref() == Some(outside);
        let keyring = &self.state.keyring;
        let is_own = checkpoint::is_own(outside, keyring);
        if !is_head && !is_own {
            self.divergence.get_or_insert(Divergent::Forged);
        }
        let known: Vec<_> = (keyring.log_keys.iter())
            .filter(|(seq, _)| *seq < size.max(1))
            .map(|(_, key)| key.key().clone())
            .collect();
        let required = checkpoint::required_keys(keyring, size.saturating_sub(1), size.max(1));
        let verdict = checkpoint::check_known(outside, &keyring.origin, &known).and_then(|()| {
            if size > self.position {
                Ok(())
            } else {
                checkpoint::check(outside, &keyring.origin, &required)
            }
        });
        match verdict {
            Ok(()) => {
                let known = self.options.log_key.as_ref();
                let by_known =
                    known.is_some_and(|key| outside.verify(std::slice::from_ref(key)).is_ok());
                // The export's own checkpoint may be the very one that was kept outside.
                let kept = self.options.against.iter().any(|(_, kept)| kept == outside);
                self.identity |= by_known || kept || !is_head && is_own;
            }
            Err(found) => {
                let expected = format!("{name} signed by the log key of {}", keyring.origin);
                self.findings
                    .add(seq, RuleName::Checkpoint, expected, found);
            }
        }
    }

    /// What was given as a checkpoint must be one.
    fn check_unreadable(&mut self) {
        let seq = self.position.saturating_sub(1);
        for (name, why) in &self.options.unreadable {
            let expected = format!("a signed checkpoint in {name}");
            self.findings
                .add(seq, RuleName::Checkpoint, expected, why.clone());
        }
    }

    /// What came from outside besides readable checkpoints; the log key that was named must be this ledger's.
    pub(super) fn check_log_key(&mut self) {
        self.check_unreadable();
        let Some(known) = &self.options.log_key else {
            return;
        };
        let keyring = &self.state.keyring;
        if !keyring.log_keys.iter().any(|(_, key)| key.key() == known) && !self.options.tree_only {
            let found = keyring
                .log_key()
                .map_or("none".to_owned(), ToString::to_string);
            self.findings
                .add(0, RuleName::Checkpoint, format!("log key {known}"), found);
            self.divergence.get_or_insert(Divergent::Forged);
        } else if self.file.is_some() {
            self.identity = true;
        }
    }
}
