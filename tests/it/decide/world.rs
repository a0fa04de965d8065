//! Two worlds in which the same story is told: a live ledger, which refuses, and a forged one, in which
//! `verify` finds.

use std::collections::BTreeSet;

use clover::event::Payload;
use clover::event::id::EventId;
use clover::event::payload::Role;
use clover::event::payload::Verdict;
use clover::event::payload::custody::Separation;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::LedgerError;
use clover::ledger::RuleName;
use clover::ledger::verify::First;
use clover::store::CreateOptions;

use crate::support::ORIGIN;
use crate::support::TestLedger;
use crate::support::forge;
use crate::support::forge::Forge;
use crate::support::forge::Line;
use crate::support::start;
use crate::support::text;
use crate::support::verifiers;

/// What a story may do.
pub trait World {
    fn now(&self) -> Timestamp;
    fn set_clock(&mut self, at: Timestamp);
    fn size(&self) -> u64;
    /// Root of the first `size` entries.
    fn root_at(&self, size: u64) -> Digest;
    /// What an honest author would write next.
    fn line(&self, signer: &Signer, payload: Payload, experiment: Option<&str>) -> Line;
    fn accept(&mut self, signer: &Signer, line: Line) -> EventId;
    /// The end of a story: this line breaks `rule`. `first` is the first rule of that entry in `verify`.
    fn refuse_as(&mut self, rule: &str, first: &str, wording: &[&str], signer: &Signer, line: Line);

    /// Keeps what later events name, where somebody looks.
    fn put_blobs(&mut self, _: &[&[u8]]) {}

    fn say(&mut self, signer: &Signer, payload: Payload, experiment: Option<&str>) -> EventId {
        let line = self.line(signer, payload, experiment);
        self.accept(signer, line)
    }

    fn refuse(&mut self, rule: &str, wording: &[&str], signer: &Signer, line: Line) {
        self.refuse_as(rule, rule, wording, signer, line);
    }

    /// `refuse` for an event that is honest in all but what it says.
    fn refuse_saying(
        &mut self,
        rule: &str,
        wording: &[&str],
        signer: &Signer,
        payload: Payload,
        experiment: Option<&str>,
    ) {
        let line = self.line(signer, payload, experiment);
        self.refuse(rule, wording, signer, line);
    }
}

/// How a ledger begins.
#[derive(Clone, Copy)]
pub struct Start {
    pub separation: Separation,
    pub roles: &'static [Role],
}

pub const SOLO: Start = Start {
    separation: Separation::Solo,
    roles: &Role::ALL,
};

fn checked(rule: &str) -> RuleName {
    rule.parse().unwrap()
}

pub struct Live {
    pub test: TestLedger,
    now: Timestamp,
    refused: bool,
}

impl Live {
    fn new(begin: Start) -> Self {
        let test =
            TestLedger::create_unnamed(begin.separation, begin.roles, CreateOptions::default());
        Self {
            test,
            now: start().plus_seconds(1),
            refused: false,
        }
    }
}

/// Everything that an append could have changed.
fn everything(test: &TestLedger) -> (u64, Digest, Vec<Vec<u8>>, Vec<u8>, Vec<u64>) {
    let reader = test.ledger.store().reader();
    let mut checkpoints = Vec::new();
    reader
        .checkpoints(0, |stored| {
            checkpoints.push(stored.note);
            Ok::<_, clover::store::StoreError>(())
        })
        .unwrap();
    let states = test.ledger.state().snapshots();
    checkpoints.extend(states.into_iter().map(|(_, state)| state));
    let pin = test.ledger.pin().unwrap().load().unwrap().unwrap().encode();
    let mut counts = vec![
        reader.entry_count().unwrap(),
        reader.blob_count().unwrap(),
        reader.index_through().unwrap(),
        reader.authors().unwrap().len() as u64,
    ];
    for table in clover::store::Table::ALL {
        counts.push(reader.row_count(table).unwrap());
    }
    (
        test.ledger.size(),
        test.ledger.root(),
        checkpoints,
        pin,
        counts,
    )
}

impl World for Live {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn set_clock(&mut self, at: Timestamp) {
        self.now = at;
    }

    fn put_blobs(&mut self, blobs: &[&[u8]]) {
        let blobs: Vec<Vec<u8>> = blobs.iter().map(|blob| blob.to_vec()).collect();
        self.test.ledger.put_blobs(&blobs).unwrap();
    }

    fn size(&self) -> u64 {
        self.test.ledger.size()
    }

    fn root_at(&self, size: u64) -> Digest {
        self.test.ledger.root_at(size).unwrap()
    }

    fn line(&self, signer: &Signer, payload: Payload, experiment: Option<&str>) -> Line {
        let ledger = &self.test.ledger;
        let keys = &ledger.state().keyring.keys;
        let next = keys
            .get(&signer.id())
            .map_or(0, |record| record.next_author_seq);
        let seen = Some((ledger.size(), ledger.root()));
        Line {
            body: forge::body(
                self.now,
                signer.id(),
                next,
                &payload,
                experiment,
                ORIGIN,
                seen,
            ),
            raw: None,
            keyid: signer.id(),
            seq: ledger.size(),
            recorded_at: self.now,
            signature: None,
            text: None,
        }
    }

    fn accept(&mut self, signer: &Signer, line: Line) -> EventId {
        self.test.clock.set(self.now);
        let appended = self.test.ledger.submit(vec![line.signed(signer)]);
        let appended = appended.unwrap_or_else(|error| panic!("{error}: {}", line.body));
        assert!(!appended[0].already);
        appended[0].id
    }

    fn refuse_as(&mut self, rule: &str, _: &str, wording: &[&str], signer: &Signer, line: Line) {
        let before = everything(&self.test);
        self.test.clock.set(self.now);
        // In the middle of a batch: nothing of the batch may land.
        let owner = crate::support::signer(1);
        let note = self.line(&owner, note(), None);
        let alone = self.test.ledger.submit(vec![line.signed(signer)]);
        assert_eq!(before, everything(&self.test), "{rule}");
        let signed = vec![note.signed(&owner), line.signed(signer)];
        if signer.id() != owner.id() {
            assert!(self.test.ledger.submit(signed).is_err(), "{rule}: in batch");
            assert_eq!(before, everything(&self.test), "{rule}: in batch");
        }
        match alone {
            Err(LedgerError::Refused { breach, index, .. }) => {
                assert_eq!((breach.rule, index), (checked(rule), 0), "{breach}");
                for word in wording {
                    let text = breach.to_string();
                    assert!(text.contains(word), "{text:?} does not say {word:?}");
                }
            }
            Err(LedgerError::Body { .. }) => assert_eq!(rule, "body_format"),
            other => panic!("{rule}: {other:?}"),
        }
        self.refused = true;
        // No number was consumed, and the ledger goes on.
        if self.test.ledger.state().keyring.keys[&owner.id()]
            .end
            .is_none()
        {
            self.say(&owner, super::world::note(), None);
        }
        self.test.check_all();
    }
}

pub struct Forged {
    pub forge: Forge,
    found: bool,
}

impl World for Forged {
    fn now(&self) -> Timestamp {
        self.forge.now
    }

    fn set_clock(&mut self, at: Timestamp) {
        self.forge.now = at;
    }

    fn size(&self) -> u64 {
        self.forge.size()
    }

    fn root_at(&self, size: u64) -> Digest {
        self.forge.roots[usize::try_from(size).unwrap() - 1]
    }

    fn line(&self, signer: &Signer, payload: Payload, experiment: Option<&str>) -> Line {
        self.forge.line(signer, &payload, experiment)
    }

    fn accept(&mut self, signer: &Signer, line: Line) -> EventId {
        self.forge.push(signer, &line)
    }

    fn refuse_as(
        &mut self,
        rule: &str,
        first: &str,
        wording: &[&str],
        signer: &Signer,
        line: Line,
    ) {
        let report = self.forge.verify();
        assert_eq!(
            report.verdict,
            Verdict::Pass,
            "before {rule}: {:#?}",
            report.findings
        );
        let seq = self.size();
        self.forge.push(signer, &line);
        let report = self.forge.verify();
        assert_eq!(report.verdict, Verdict::Fail, "{rule}");
        assert_eq!(
            report.first,
            Some(First {
                seq,
                rule: checked(first)
            }),
            "{:#?}",
            report.findings
        );
        let found = report
            .findings
            .iter()
            .find(|finding| finding.seq == seq && finding.rule == checked(rule));
        let found = found.unwrap_or_else(|| panic!("no {rule} in {:#?}", report.findings));
        let text = format!("{rule}: expected {}, found {}", found.expected, found.found);
        for word in wording {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
        // One breach is one finding, but for those that a breach brings with it.
        let rules: BTreeSet<_> = report.findings.iter().map(|found| found.rule).collect();
        assert!(rules.len() <= 2, "{:#?}", report.findings);
        assert!(
            report.findings.iter().all(|found| found.seq == seq),
            "{:#?}",
            report.findings
        );
        // A line that is too long is not read to its end, so its tree is another.
        if rule != "line_format" {
            assert_eq!(report.root, self.forge.tiles.root());
        }
        self.found = true;
    }
}

/// A note: what anybody may say at any time.
pub fn note() -> Payload {
    clover::event::payload::record::NoteRecorded {
        blob: None,
        text: text("a note"),
    }
    .into()
}

fn forged(begin: Start) -> Forged {
    let mut forge = Forge::new(begin.separation, begin.roles);
    forge.now = start().plus_seconds(1);
    Forged {
        forge,
        found: false,
    }
}

/// Tells a story in both worlds.
pub fn tell(begin: Start, story: impl Fn(&mut dyn World)) {
    let mut live = Live::new(begin);
    story(&mut live);
    assert!(live.refused, "the story ends in a refusal");
    let mut forged = forged(begin);
    story(&mut forged);
    assert!(forged.found);
}

/// Tells a story in both worlds, and has what it forged read by the verifier in Python, which finds the same rule broken.
pub fn tell_all(begin: Start, rule: &str, story: impl Fn(&mut dyn World)) {
    tell(begin, &story);
    if !verifiers::python() {
        return;
    }
    let mut forged = forged(begin);
    story(&mut forged);
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("ledger.jsonl");
    std::fs::write(&lines, forged.forge.jsonl()).unwrap();
    let theirs = verifiers::theirs(&[lines.to_str().unwrap().to_owned()]);
    let last = forged.size() - 1;
    assert_eq!(
        theirs.first,
        Some((last, rule.to_owned())),
        "{:?}",
        theirs.all
    );
}

/// Tells a story that the program's own append cannot: only the forged ledger.
pub fn tell_forged(begin: Start, story: impl Fn(&mut Forged)) {
    let mut forged = forged(begin);
    story(&mut forged);
    assert!(forged.found);
}
