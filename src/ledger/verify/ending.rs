//! What is said at the end of a walk: what nobody checked, what is worth knowing, and the report.

use clover_event::payload::Verdict;

use crate::rulebooks;
use crate::verify::Signatures;
use crate::verify::checker::Checker;
use crate::verify::report;
use crate::verify::report::Divergent;
use crate::verify::report::Report;
use crate::verify::report::Taint;

impl Checker<'_> {
    pub(super) fn remarks(&mut self) {
        if self.unproven_keys > 0 {
            self.notes.push(format!(
                "{} keys without proof of possession (key.added v1)",
                self.unproven_keys
            ));
        }
        if self.state.keyring.format == 1 {
            self.not_checked
                .push("possession and experiment (format 1)".to_owned());
        }
        if self.state.keyring.was_loosened() {
            self.notes.push(
                "the policy was loosened from strict to solo: later claims are self-governed"
                    .to_owned(),
            );
        }
        (self.state.rulebook().notes)(&self.state, &mut self.notes);
        self.note_attested();
        if let Some(head) = &self.head
            && self.head_held
            && head.checkpoint().size < self.position
        {
            self.not_checked.push(format!(
                "checkpoint after seq {}",
                head.checkpoint().size - 1
            ));
        }
        self.not_checked
            .extend(self.older_by.map(report::in_words_of_older));
        if let Some(since) = &self.options.since {
            let last = since.checkpoint().size.saturating_sub(1);
            self.not_checked
                .push(format!("signatures and rules through seq {last}"));
        }
        if self.options.tree_only {
            self.not_checked.push("everything but the tree".to_owned());
        } else if self.file.is_none() && self.blobs.is_none() && self.blobs_named {
            self.not_checked.push("blobs".to_owned());
        }
        if !self.identity {
            self.not_checked.push("identity".to_owned());
        }
        if let Some(part) = &self.part {
            let what = "rules that take the whole history".to_owned();
            self.not_checked.extend([what, "recompute".to_owned()]);
            if part.withheld() > 0 {
                let what = "whether an entry withheld adds or ends a key".to_owned();
                self.not_checked.push(what);
            }
        } else {
            self.not_checked.extend(self.not_computed());
        }
    }

    pub(super) fn into_report(mut self, events: u64) -> Report {
        let (is_part, withheld) = match &self.part {
            Some(part) => (true, part.withheld()),
            None => (false, 0),
        };
        let beside = self.beside();
        let keyring = &self.state.keyring;
        let tainted = keyring.keys.iter().filter_map(|(key, record)| {
            let end = record.end.as_ref()?;
            Some(Taint {
                key: *key,
                since_seq: end.tainted_since?,
                declared_seq: end.seq,
            })
        });
        let (findings, findings_total, first) = self.findings.finish();
        Report {
            verdict: if findings_total == 0 {
                Verdict::Pass
            } else {
                Verdict::Fail
            },
            origin: keyring.origin.clone(),
            events,
            is_part,
            withheld,
            signers: self.signers.len() as u64,
            root: self.tiler.root(),
            beside,
            findings,
            findings_total,
            first,
            older_by: self.older_by,
            divergence: self
                .divergence
                .filter(|word| *word != Divergent::Forked || !self.own_root_broken),
            not_checked: self.not_checked,
            not_recomputed: self.out_of_hand.count + self.unrecorded,
            since: self.options.since_size(),
            signatures: match (self.options.tree_only, self.options.signatures) {
                (true, _) => "not_checked",
                (false, Signatures::Strict) => "strict",
                (false, Signatures::Fast) => {
                    "batch (a key holder can craft a signature that passes here and fails strictly)"
                }
            },
            tainted: tainted.collect(),
            notes: self.times.remarked(self.notes),
            not_asked: rulebooks::not_asked(&keyring.rulebooks),
            rulebooks: keyring.rulebooks.clone(),
            separation: keyring
                .separation()
                .map_or("unknown".to_owned(), |of| of.to_string()),
        }
    }
}
