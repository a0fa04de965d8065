//! What the files of a bundle say of its log, held against the log itself.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::verify::Report;

use super::BundleContents;
use super::OpenBundle;
use super::Redaction;
use super::material;
use super::open::BundleError;
use super::open::CHECKPOINTS_MAX;
use super::open::PEM_MAX;
use super::open::SMALL_MAX;
use crate::KeptCheckpoint;
use crate::file_name;
use crate::source::BLOBS;
use crate::source::CHECKPOINTS;

/// What was expected of a file, and what was found.
type Disagreement = (String, String);
/// Checkpoints, each by the name of its line; and lines that are none.
type KeptCheckpoints = (Vec<(String, SignedCheckpoint)>, Vec<Disagreement>);

/// What names of published reports begin with: their bytes are those that an entry names.
pub const PUBLISHED: &str = "published-";

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
        let head = self.checkpoint()?;
        if bytes
            .split(|byte| *byte == b'\n')
            .rev()
            .nth(1)
            .and_then(note)
            .is_none_or(|last| last.as_bytes() != head)
        {
            let expected = format!("{CHECKPOINTS}: the checkpoint as its last line");
            broken.push((expected, "another, or none".to_owned()));
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
        let is_read = report.signatures != "not_checked";
        let published = reports
            .iter()
            .filter(|name| name.to_ascii_lowercase().starts_with(PUBLISHED));
        for name in published.filter(|_| is_read) {
            let bytes = self.small(&format!("reports/{name}"), SMALL_MAX)?;
            if !is_published(name, &Digest::blake3(&bytes), report) {
                let expected = format!("reports/{name} as it was published last");
                found.push((expected, "other bytes, or another name".to_owned()));
            }
        }
        if is_read {
            self.other_keys(&below("keys/"), report, &mut found)?;
        }
        found.extend(why_withheld(contents, report));
        found.extend(other_blobs(contents, report, &below("blobs/")));
        for name in names.iter().filter(|name| !has_a_place(name)) {
            found.push(("files of a bundle alone".to_owned(), name.clone()));
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

/// Whether bytes are those of the newest published report of the iteration that the file is named after, in full or by its
/// digest.
fn is_published(name: &str, bytes: &Digest, report: &Report) -> bool {
    let mut of = report.beside.published.iter();
    of.any(|(iteration, newest)| {
        let id = iteration.as_str();
        let mut names = [file_name::encode(id), file_name::digested(id)].into_iter();
        newest == bytes && names.any(|own| name == format!("{PUBLISHED}{own}.json"))
    })
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
    let is_known = |text: &String| text == "blobs" || position(text).is_some();
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

/// What of the files beside the log nobody checks.
pub fn not_checked(contents: &BundleContents, report: &Report) -> Vec<String> {
    let is_position = |of: &String| of == "blobs" || position(of).is_some();
    let is_shown = contents.experiment.is_none() && contents.redacted.iter().all(is_position);
    let why = (report.withheld > 0 && !is_shown).then_some("why entries are withheld");
    let words = "the maker's texts and programs";
    why.into_iter()
        .chain([words])
        .map(ToOwned::to_owned)
        .collect()
}

fn position(text: &str) -> Option<u64> {
    let seq = text.parse::<u64>().ok();
    seq.filter(|seq| seq.to_string() == text)
}

/// Where entries, or their places, contradict the reasons for which others are withheld.
fn why_withheld(contents: &BundleContents, report: &Report) -> Vec<Disagreement> {
    if !report.is_part {
        return Vec::new();
    }
    let (beside, mut found) = (&report.beside, Vec::new());
    let reasons = contents.redacted.iter().filter(|of| *of != "blobs");
    let (positions, kinds): (Vec<&String>, Vec<&String>) =
        reasons.partition(|of| position(of).is_some());
    for kind in &kinds {
        if beside.kinds.contains(*kind) {
            let expected = format!("no entry of kind {kind}, as bundle.json says");
            found.push((expected, "one that is shown".to_owned()));
        }
    }
    let positions: BTreeSet<u64> = positions.iter().filter_map(|of| position(of)).collect();
    for seq in positions.difference(&beside.withheld) {
        let expected = format!("entry {seq} withheld, as bundle.json says");
        let is_there = *seq < report.events;
        let other = if is_there {
            "it is shown"
        } else {
            "no such entry"
        };
        found.push((expected, other.to_owned()));
    }
    let is_checked = report.signatures != "not_checked";
    match &contents.experiment {
        None if kinds.is_empty() && !positions.is_empty() => {
            if let Some(seq) = beside.withheld.difference(&positions).next() {
                let expected = "only those entries withheld that bundle.json names".to_owned();
                found.push((expected, format!("entry {seq} too")));
            }
        }
        Some(experiment)
            if kinds.is_empty()
                && positions.is_empty()
                && is_checked
                && beside.experiments.is_empty() =>
        {
            let expected = format!("entries of {experiment}, as bundle.json says");
            found.push((expected, "none".to_owned()));
        }
        _ => {}
    }
    found
}

/// Blobs that no entry names, and what is said of those that are not there.
fn other_blobs(
    contents: &BundleContents,
    report: &Report,
    there: &BTreeSet<String>,
) -> Vec<Disagreement> {
    let mut found = Vec::new();
    let without = &contents.without;
    if contents.redacted.iter().any(|of| of == "blobs") {
        if !there.is_empty() || !without.is_empty() {
            let expected = "no blobs, as bundle.json says".to_owned();
            let count = there.len() + without.len();
            found.push((expected, format!("{count} blobs")));
        }
        return found;
    }
    let Some(named) = &report.beside.blobs else {
        return found;
    };
    let named: BTreeSet<String> = named.iter().map(Digest::to_hex).collect();
    for name in there.difference(&named) {
        let expected = "blobs that entries name alone".to_owned();
        found.push((expected, format!("blobs/{name}")));
    }
    let is_missing = |of: &&String| named.contains(*of) && !there.contains(*of);
    if let Some(other) = without.iter().find(|of| !is_missing(of)) {
        let expected = "blobs without a file in bundle.json, which entries name".to_owned();
        found.push((expected, other.escape_debug().to_string()));
    }
    found
}

/// Whether a bundle has a place for a file of this name.
fn has_a_place(name: &str) -> bool {
    const FILES: [&str; 10] = [
        "README.md",
        "SHA256SUMS",
        "__main__.py",
        "bundle.json",
        "checkpoint",
        "checkpoints.jsonl",
        "entries.jsonl",
        "ledger.jsonl",
        "verify.py",
        "verify.sh",
    ];
    let Some((folder, rest)) = name.split_once('/') else {
        return FILES.contains(&name);
    };
    let ends = |ending: &str| {
        rest.strip_suffix(ending)
            .is_some_and(|rest| !rest.is_empty())
    };
    match folder {
        "blobs" => Digest::from_hex(rest).is_some(),
        "keys" => ends(".pem") && !rest.contains('/'),
        "reports" => (ends(".html") || ends(".json")) && !rest.contains('/'),
        "schema" => ends(".md") && !rest.contains('/'),
        "verify" => ends(".py"),
        _ => false,
    }
}
