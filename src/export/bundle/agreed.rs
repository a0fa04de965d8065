//! What the files of a bundle say of its log, held against the log itself.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::verify::Report;

use super::BundleContents;
use super::OpenBundle;
use super::Redaction;
use super::material;
use super::open::BundleError;
use super::open::CHECKPOINTS_MAX;
use super::open::PEM_MAX;
use crate::KeptCheckpoint;
use crate::source::BLOBS;
use crate::source::CHECKPOINTS;

/// What was expected of a file, and what was found.
type Disagreement = (String, String);
/// Checkpoints, each by the name of its line; and lines that are none.
type KeptCheckpoints = (Vec<(String, SignedCheckpoint)>, Vec<Disagreement>);

impl OpenBundle {
    /// The checkpoints beside the entries, each by the name of its line; and lines that are none.
    ///
    /// # Errors
    /// [`BundleError`] where they cannot be read.
    pub fn kept(&mut self) -> Result<KeptCheckpoints, BundleError> {
        let (mut kept, mut broken) = (Vec::new(), Vec::new());
        if !self.has(CHECKPOINTS) {
            broken.push((CHECKPOINTS.to_owned(), "no such file".to_owned()));
            return Ok((kept, broken));
        }
        let bytes = self.small(CHECKPOINTS, CHECKPOINTS_MAX)?;
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        // The last line ends in a newline, so that nothing stands behind it.
        let last = lines.pop().unwrap_or_default();
        if !last.is_empty() {
            let expected = format!("{CHECKPOINTS}: a newline at its end");
            broken.push((expected, "none".to_owned()));
        }
        let mut size = None;
        for (number, line) in (1_u64..).zip(lines) {
            let name = format!("{CHECKPOINTS} line {number}");
            let note = note(line).and_then(|note| SignedCheckpoint::parse(note.as_bytes()).ok());
            let Some(note) = note else {
                let expected = format!("{name}: a signed checkpoint");
                broken.push((expected, "another line".to_owned()));
                continue;
            };
            let own = note.checkpoint().size;
            if size.is_some_and(|before| before >= own) {
                let expected = format!("{name}: a size above that of the line before");
                broken.push((expected, format!("size {own}")));
                continue;
            }
            size = Some(own);
            kept.push((name, note));
        }
        Ok((kept, broken))
    }

    /// Where keys and contents do not agree with the log that was verified.
    ///
    /// # Errors
    /// [`BundleError`] where they cannot be read.
    pub fn disagreements(
        &mut self,
        contents: &BundleContents,
        report: &Report,
    ) -> Result<Vec<Disagreement>, BundleError> {
        let names = self.names()?.0;
        let mut found = said(contents, report);
        let below = |folder: &str| -> BTreeSet<String> {
            let inside = names.iter().filter_map(|name| name.strip_prefix(folder));
            inside.map(ToOwned::to_owned).collect()
        };
        let blobs = below(&format!("{BLOBS}/")).len();
        if u64::try_from(blobs).ok() != Some(contents.blobs) {
            let expected = format!("{} blobs, as bundle.json says", contents.blobs);
            found.push((expected, blobs.to_string()));
        }
        let reports = below("reports/");
        let named: BTreeSet<String> = contents.reports.iter().cloned().collect();
        if reports != named || named.len() != contents.reports.len() {
            let expected = "the reports that bundle.json names".to_owned();
            found.push((expected, format!("{} reports", reports.len())));
        }
        if report.signatures != "not_checked" {
            self.other_keys(&below("keys/"), report, &mut found)?;
        }
        Ok(found)
    }

    /// Files of keys that are not those of the log.
    fn other_keys(
        &mut self,
        there: &BTreeSet<String>,
        report: &Report,
        found: &mut Vec<Disagreement>,
    ) -> Result<(), BundleError> {
        let keys = report.beside.keys.iter();
        let mut expected: BTreeMap<String, String> = keys
            .map(|(id, key)| (format!("{id}.pem"), material::pem(key)))
            .collect();
        let log_key = report.beside.log_key.iter();
        expected.extend(log_key.map(|key| ("log.pem".to_owned(), material::pem(key))));
        for (name, pem) in &expected {
            let is_own = there.contains(name)
                && self.small(&format!("keys/{name}"), PEM_MAX)? == pem.as_bytes();
            if !is_own {
                let expected = format!("keys/{name} with the key that the log names");
                found.push((expected, "another file, or none".to_owned()));
            }
        }
        for name in there.iter().filter(|name| !expected.contains_key(*name)) {
            let expected = "keys of the log alone".to_owned();
            found.push((expected, format!("keys/{name}")));
        }
        Ok(())
    }
}

/// The note that a line of checkpoints holds, where the line has its one spelling.
fn note(line: &[u8]) -> Option<String> {
    let kept: KeptCheckpoint = serde_json::from_slice(line).ok()?;
    let own = serde_json::to_vec(&kept).ok()?;
    (own == line).then_some(kept.note)
}

/// What `bundle.json` says of the log.
fn said(contents: &BundleContents, report: &Report) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let mut hold = |what: &str, said: String, log: String| {
        if said != log {
            found.push((format!("{what} {log} in bundle.json"), said));
        }
    };
    if report.signatures != "not_checked" {
        hold("origin", contents.origin.clone(), report.origin.clone());
    }
    hold("size", contents.size.to_string(), report.events.to_string());
    hold("root", contents.root.clone(), report.root.to_base64());
    let withheld = report.withheld.to_string();
    hold("withheld", contents.withheld.to_string(), withheld);
    if let Some(experiment) = &contents.experiment {
        let mut shown = report.beside.experiments.iter();
        if let Some(other) = shown.find(|shown| shown.as_str() != experiment) {
            let expected = format!("entries of {experiment}, as bundle.json says");
            found.push((expected, format!("one of {other}")));
        }
    }
    let is_known = |text: &String| {
        text == "blobs"
            || text
                .parse::<u64>()
                .is_ok_and(|seq| seq.to_string() == *text)
    };
    let is_kind = |text: &String| text.parse::<Kind>().is_ok_and(Redaction::may_withhold);
    let mut redacted = contents.redacted.iter();
    if let Some(text) = redacted.find(|text| !is_known(text) && !is_kind(text)) {
        let expected = "what was left out in bundle.json: kinds, positions, or blobs".to_owned();
        found.push((expected, text.escape_debug().to_string()));
    }
    let is_cut = contents.experiment.is_some() || contents.redacted.iter().any(|of| of != "blobs");
    if is_cut != report.is_part {
        let form = if report.is_part {
            "a part"
        } else {
            "a whole log"
        };
        let expected = format!("{form} in bundle.json");
        found.push((expected, "the other".to_owned()));
    }
    found
}
