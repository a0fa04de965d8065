//! A report as a document: what it answers, when and by whom, what came of it, then parts, appendices, and the entries
//! that all of it rests on. Pages, Markdown and JSON are renderings of it; whoever makes one computes no number.

use std::collections::BTreeSet;

use clover_event::id::EventId;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_projection::bundle::Fact;
use clover_projection::bundle::Gap;
use clover_projection::bundle::Listing;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use serde::Serialize;
use serde::Serializer;

use crate::shown;

macro_rules! report_kinds {
    ($($kind:ident $word:literal $of:literal;)*) => {
        /// What a report is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ReportKind {
            $(#[doc = $of] $kind,)*
        }

        impl ReportKind {
            /// Every kind, in the order of their words.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its word on the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word),* }
            }

            /// What stands over its title.
            pub fn of(self) -> &'static str {
                match self { $(Self::$kind => $of),* }
            }
        }
    };
}

// One line a kind: its word, and what stands over the title.
report_kinds! {
    AnnexIv    "annex-iv"   "Evidence for Annex IV of the AI Act";
    Change     "change"     "Change record of a prompt";
    Coverage   "coverage"   "What frameworks ask, and what answers";
    Erasure    "erasure"    "Certificate of an erasure";
    Estimate   "estimate"   "Report of estimates";
    Experiment "experiment" "Report of an experiment";
    Expiry     "expiry"     "What expires when";
    Gate       "gate"       "Report of a gate";
    Gdpr       "gdpr"       "Evidence for the GDPR";
    Iso23894   "iso23894"   "Evidence for ISO/IEC 23894";
    Iso42001   "iso42001"   "Evidence for ISO/IEC 42001";
    Iteration  "iteration"  "Report of an iteration";
    Part11     "part11"     "Evidence for 21 CFR Part 11";
    Pccp       "pccp"       "Evidence for a change control plan of the FDA";
    Repair     "repair"     "Report of the repair of a workflow";
    Retention  "retention"  "Retention and erasure";
    Sgd        "sgd"        "Report of a run of a judge's prompt";
    Soc2       "soc2"       "Evidence for SOC 2";
    Sr262      "sr26-2"     "Evidence for SR 26-2";
    Tevv       "tevv"       "Evidence for NIST AI RMF, Measure";
    Trail      "trail"      "Trail of entries";
}

impl Serialize for ReportKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What the signatures under a report prove and what they do not; every report prints it.
pub const LIMITS: [&str; 4] = [
    "A signature proves which key signed an entry, and that its bytes did not change since.",
    "The log proves the order of entries, and that none was taken out or put between since its checkpoint was seen.",
    "Neither proves that what an entry says is true, or that everything that happened was recorded.",
    "Times are those of the clock of the ledger; only an outside anchor proves that an entry is not later.",
];

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chapter {
    /// What it says to a reader, in a sentence.
    pub about: String,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Texts.
    pub listings: Vec<Listing>,
    /// What it does not show, and why.
    pub missing: Vec<Gap>,
    /// Its key: lower-case letters and hyphens.
    #[serde(rename = "part")]
    pub key: &'static str,
    /// Tables; one that has a plot is drawn too.
    pub tables: Vec<Table>,
    /// Its heading.
    pub title: String,
}

impl Chapter {
    /// Nothing yet.
    pub fn new(key: &'static str, title: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            facts: Vec::new(),
            listings: Vec::new(),
            missing: Vec::new(),
            key,
            tables: Vec::new(),
            title: title.into(),
        }
    }

    /// Adds a fact with the entries that say it.
    pub fn fact(
        &mut self,
        events: Vec<u64>,
        key: &'static str,
        title: &'static str,
        value: impl Into<clover_projection::bundle::Cell>,
    ) {
        let value = value.into();
        self.facts.push(Fact {
            events,
            key,
            title,
            value,
        });
    }

    /// Adds a table; an empty one is named as missing, with the reason.
    pub fn table_or(&mut self, table: Table, why: &str) {
        if table.rows.is_empty() {
            let what = table.title;
            self.lacks(what, why);
        } else {
            self.tables.push(table);
        }
    }

    /// Names something that it does not show.
    pub fn lacks(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.missing.push(Gap {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Whether it shows anything.
    pub fn is_present(&self) -> bool {
        !(self.facts.is_empty() && self.tables.is_empty() && self.listings.is_empty())
    }

    /// Its facts and rows of its tables.
    pub fn rows(&self) -> usize {
        let rows = self.tables.iter().map(|table| table.rows.len());
        self.facts.len() + rows.sum::<usize>()
    }

    fn cited(&self) -> impl Iterator<Item = u64> {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let facts = self.facts.iter().flat_map(|fact| &fact.events);
        let listings = self.listings.iter().flat_map(|listing| &listing.events);
        let rows = rows.flat_map(|row| &row.events);
        facts.chain(rows).chain(listings).copied()
    }
}

impl From<&Section> for Chapter {
    fn from(of: &Section) -> Self {
        Self {
            about: of.about.to_owned(),
            facts: of.facts.clone(),
            listings: of.listings.clone(),
            missing: of.missing.clone(),
            key: of.part.as_str(),
            tables: of.tables.iter().map(shown::table).collect(),
            title: shown::title(of.title),
        }
    }
}

/// A sentence with the entries that say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The entries.
    pub events: Vec<u64>,
    /// The sentence.
    pub text: String,
}

/// What a report begins with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DocumentHead {
    /// What was decided or found, in a sentence or two.
    pub answer: String,
    /// Who did what and when; absent where nobody is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<Table>,
    /// From when to when, in words.
    pub period: String,
    /// What was asked, on what evidence it rests, and what is not claimed.
    pub rest: Vec<String>,
    /// Whether those who proposed, decided and released are different people.
    pub separation: Vec<Remark>,
    /// What happened since, within the range; absent where this is not asked of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Table>,
}

impl DocumentHead {
    /// The heading over those who acted, and over whether they are different people.
    pub fn people_title(&self) -> &'static str {
        if self.people.is_some() {
            "Who did what"
        } else {
            "Separation of roles"
        }
    }
}

/// An entry that a document rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CitedEntry {
    /// Who signed it.
    pub author: KeyId,
    /// The holder of that key.
    pub holder: String,
    /// Its id.
    pub id: EventId,
    /// Its kind.
    pub kind: &'static str,
    /// The hash of its leaf in the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<Digest>,
    /// When the ledger took it.
    pub recorded_at: Timestamp,
    /// Its position.
    pub seq: u64,
}

/// The log as a report read it: whoever holds a signed checkpoint of this size can compare the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadCheckpoint {
    /// Its Merkle root, in Base64 as in checkpoints.
    pub root: String,
    /// Its entries.
    pub size: u64,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// Parts behind the report: what it is made of.
    pub appendices: Vec<Chapter>,
    /// The log at its last entry; absent where nothing but a bundle was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<ReadCheckpoint>,
    /// The entries that it rests on, by position.
    pub entries: Vec<CitedEntry>,
    /// What it is about, beside its head.
    pub facts: Vec<Fact>,
    /// The first entry that was read.
    pub from_seq: u64,
    /// What it begins with.
    pub head: DocumentHead,
    /// The log.
    pub ledger: String,
    /// What its signatures prove, and what they do not.
    pub limits: Vec<String>,
    /// Its parts.
    pub parts: Vec<Chapter>,
    /// The program that drew it; empty where nothing but a bundle was read.
    pub program: &'static str,
    /// What it is.
    #[serde(rename = "report")]
    pub kind: ReportKind,
    /// Signatures of people, each in words with its entry: on paper they stand at the foot of every page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
    /// The last entry that was read.
    pub through_seq: u64,
    /// Its title.
    pub title: String,
}

impl Document {
    /// A report with a head and nothing else yet.
    pub fn new(kind: ReportKind, title: impl Into<String>, head: DocumentHead) -> Self {
        Self {
            appendices: Vec::new(),
            checkpoint: None,
            entries: Vec::new(),
            facts: Vec::new(),
            from_seq: 0,
            head,
            ledger: String::new(),
            limits: LIMITS.map(str::to_owned).to_vec(),
            parts: Vec::new(),
            program: "",
            kind,
            signatures: Vec::new(),
            through_seq: 0,
            title: title.into(),
        }
    }

    /// Which program drew it from which log, in words; `None` where nothing but a bundle was read.
    pub(crate) fn drawn(&self) -> Option<String> {
        let ReadCheckpoint { root, size } = self.checkpoint.as_ref()?;
        Some(format!(
            "Drawn by {} from the log of size {size} with root {root}.",
            self.program
        ))
    }

    /// Parts and appendices.
    pub fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        self.parts.iter().chain(&self.appendices)
    }

    /// Positions that it cites.
    pub fn cited(&self) -> BTreeSet<u64> {
        let tables = self.head.people.iter().chain(&self.head.since);
        let rows = tables.flat_map(|table| &table.rows);
        let rows = rows.flat_map(|row| &row.events);
        let facts = self.facts.iter().flat_map(|fact| &fact.events);
        let remarks = self.head.separation.iter().flat_map(|of| &of.events);
        let head = rows.chain(facts).chain(remarks).copied();
        head.chain(self.chapters().flat_map(Chapter::cited))
            .collect()
    }

    /// Lists the entries that it cites.
    ///
    /// # Errors
    /// What `of` returns.
    pub fn list_entries<E>(
        &mut self,
        mut of: impl FnMut(u64) -> Result<Option<CitedEntry>, E>,
    ) -> Result<(), E> {
        let mut entries = Vec::new();
        for seq in self.cited() {
            entries.extend(of(seq)?);
        }
        self.entries = entries;
        Ok(())
    }

    /// Its bytes: canonical JSON.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn to_bytes(&self) -> Vec<u8> {
        canon::to_bytes(self).expect("BUG: names, counts and finite numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_kinds_are_in_order() {
        let words: Vec<_> = ReportKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert!(words.is_sorted());
    }
}
