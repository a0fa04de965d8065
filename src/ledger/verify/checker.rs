//! The sequential half of verification: entries in order through tree, rules, folds and read models.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use clover_event::Event;
use clover_event::PAYLOAD_TYPE;
use clover_event::Payload;
use clover_event::SeenCheckpoint;
use clover_event::id::IterationId;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::TILE_WIDTH;
use clover_ground::merkle::Tiler;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::time::Timestamp;

use crate::claim::Body;
use crate::claim::Claim;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::RuleComputation;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::rule_names::RuleName;
use crate::rules;
use crate::state::State;
use crate::verify::BlobSource;
use crate::verify::VerifyError;
use crate::verify::VerifyOptions;
use crate::verify::again::ListedEntries;
use crate::verify::file::FileView;
use crate::verify::part::PartWalk;
use crate::verify::report::Divergent;
use crate::verify::report::Findings;
use crate::verify::report::Report;
use crate::verify::sets::root_digest;
use crate::verify::sorter::Op;
use crate::verify::sorter::Record;
use crate::verify::sorter::Sorter;
use crate::verify::times::Times;
use crate::verify::work::EntryDigest;
use crate::verify::work::Signature;

/// Name of the pin that a copy of the log is held against.
const PIN: &str = "the pin";
/// Rules whose breach keeps an entry from changing state: nobody with the right to say it said it.
const UNFIT: [RuleName; 3] = [RuleName::Key, RuleName::Role, RuleName::Signature];

/// Walks entries in order.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of one thing whether the walk has met it"
)]
pub(super) struct Checker<'a> {
    pub(super) options: &'a VerifyOptions,
    pub(super) findings: Findings,
    pub(super) state: State,
    pub(super) tiler: Tiler,
    /// Leaves of the tile at hand that the tree does not hold yet.
    leaves: Vec<Digest>,
    pub(super) sorter: Sorter,
    pub(super) times: Times,
    pub(super) position: u64,
    pub(super) signers: BTreeSet<KeyId>,
    /// The file that the entries came from, when there is one.
    pub(super) file: Option<FileView<'a>>,
    pub(super) blobs: Option<BlobSource<'a>>,
    pub(super) blobs_named: bool,
    /// Blobs that entries name, where the entries came as lines with a source of blobs.
    pub(super) named: BTreeSet<Digest>,
    /// Entries that the pin covers beyond a copy of the log.
    pub(super) older_by: Option<u64>,
    /// Checkpoints to be held against the root at their size: by size, name and whether it is the log's own
    /// head.
    outside: BTreeMap<u64, Vec<(String, SignedCheckpoint)>>,
    pub(super) head: Option<SignedCheckpoint>,
    pub(super) head_held: bool,
    pub(super) not_checked: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Leaf hashes of all entries walked so far, for roots that are named later.
    pub(super) walked: Vec<Digest>,
    /// What auditors attested: the entry, the size and the root.
    pub(super) attested: Vec<(u64, u64, Digest)>,
    pub(super) unproven_keys: u64,
    pub(super) divergence: Option<Divergent>,
    /// The entries do not even match the log's own checkpoints: changed in place, not another history.
    pub(super) own_root_broken: bool,
    pub(super) identity: bool,
    pub(super) computing: RuleComputation,
    /// Entries that came as lines and are read again.
    pub(super) kept: Vec<(u64, Event)>,
    /// Entries after which a checkpoint is still to be drawn.
    pub(super) undrawn: Vec<u64>,
    /// Entries that nobody here can compute again.
    pub(super) out_of_hand: ListedEntries,
    /// Erasures of subjects, whose texts nobody can read.
    pub(super) erasures: ListedEntries,
    /// Events that rest on what is on no record: nobody could ever compute them again.
    pub(super) unrecorded: u64,
    /// Answers of models with a body, which are not read again here.
    pub(super) answers: u64,
    /// Attack batteries, whose attacks replay alone runs again.
    pub(super) batteries: u64,
    /// Published reports, which replay alone writes again.
    pub(super) reports: u64,
    /// BLAKE3 of the bundle of the newest of each iteration.
    pub(super) published: BTreeMap<IterationId, Digest>,
    /// Where the entries are a part of a log: what the walk has met of it.
    pub(super) part: Option<PartWalk>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        options: &'a VerifyOptions,
        rulebook: &'static Rulebook,
        ambient: &Arc<Ambient>,
        file: Option<FileView<'a>>,
    ) -> Result<Self, VerifyError> {
        let mut outside: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        let since = options
            .since
            .iter()
            .map(|since| ("--since".to_owned(), since.clone()));
        let pin = options.pin.iter();
        let pin = pin.map(|pin| (PIN.to_owned(), pin.clone()));
        for (name, checkpoint) in options.against.iter().cloned().chain(pin).chain(since) {
            outside
                .entry(checkpoint.checkpoint().size)
                .or_default()
                .push((name, checkpoint));
        }
        Ok(Self {
            options,
            findings: Findings::default(),
            state: State::new(rulebook),
            tiler: Tiler::new(),
            leaves: Vec::with_capacity(TILE_WIDTH.into()),
            sorter: Sorter::new(ambient.clone()),
            times: Times::new(ambient)?,
            position: 0,
            signers: BTreeSet::new(),
            file,
            blobs: None,
            blobs_named: false,
            named: BTreeSet::new(),
            older_by: None,
            outside,
            head: None,
            head_held: false,
            not_checked: Vec::new(),
            notes: Vec::new(),
            walked: Vec::new(),
            attested: Vec::new(),
            unproven_keys: 0,
            divergence: None,
            own_root_broken: false,
            identity: false,
            computing: RuleComputation::default(),
            kept: Vec::new(),
            undrawn: Vec::new(),
            out_of_hand: ListedEntries::default(),
            erasures: ListedEntries::default(),
            unrecorded: 0,
            answers: 0,
            batteries: 0,
            reports: 0,
            published: BTreeMap::new(),
            part: None,
        })
    }

    /// Entries walked so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Names the checkpoint that came with the lines. Where the very same note was kept outside, both are held once: they say
    /// one thing.
    pub(super) fn expect_head(&mut self, head: Option<SignedCheckpoint>) {
        if let Some(head) = &head {
            let at = self.outside.entry(head.checkpoint().size).or_default();
            let mut name = "the checkpoint".to_owned();
            for (same, _) in at.extract_if(.., |(_, kept)| kept == head) {
                name.push_str(" and ");
                name.push_str(&same);
            }
            at.push((name, head.clone()));
        } else {
            self.not_checked.push("checkpoint".to_owned());
        }
        self.head = head;
    }

    /// Takes the next entry.
    pub(super) fn take(&mut self, entry: EntryDigest) -> Result<(), VerifyError> {
        let leaf = entry.leaf;
        if self.options.tree_only {
            self.count_part(&entry);
        } else if self.part.is_some() {
            self.check_part(self.position, entry)?;
        } else {
            self.check(self.position, entry)?;
        }
        self.take_leaf(leaf)
    }

    /// Takes the leaf hash of the next entry. The tree takes leaves tile by tile, unless something is due before.
    pub(super) fn take_leaf(&mut self, leaf: Digest) -> Result<(), VerifyError> {
        self.leaves.push(leaf);
        self.walked.push(leaf);
        self.position += 1;
        if self.position.is_multiple_of(TILE_WIDTH.into()) || self.is_due() {
            self.grow()?;
            return self.at_size();
        }
        Ok(())
    }

    /// Whether anything looks at the tree of the entries walked so far.
    fn is_due(&self) -> bool {
        match &self.file {
            Some(file) => file.is_due(self.position) || self.outside.contains_key(&self.position),
            None => !self.options.tree_only || self.outside.contains_key(&self.position),
        }
    }

    /// Takes the leaves at hand into the tree.
    fn grow(&mut self) -> Result<(), VerifyError> {
        let tiles = self.tiler.extend(&self.leaves);
        self.leaves.clear();
        for tile in tiles {
            let Some(file) = &mut self.file else {
                break;
            };
            let entries = u64::from(TILE_WIDTH).pow(u32::from(tile.level) + 1);
            let last = (tile.index + 1) * entries - 1;
            file.tile(&tile, last, &mut self.findings)?;
        }
        Ok(())
    }

    /// What is due when the tree has reached a size.
    fn at_size(&mut self) -> Result<(), VerifyError> {
        let size = self.position;
        if self.file.is_some() {
            if let Some(mut file) = self.file.take_if(|file| file.is_due(size)) {
                file.at_size(self, size)?;
                self.file = Some(file);
            }
        } else if !self.options.tree_only {
            let record = Record::new(
                root_digest(size, &self.tiler.root()),
                size - 1,
                Op::Holds,
                RuleName::Seen,
                0,
            );
            self.sorter.push(record)?;
        }
        for (name, outside) in self.outside.remove(&size).into_iter().flatten() {
            self.hold(&name, &outside);
        }
        Ok(())
    }

    fn check(&mut self, seq: u64, entry: EntryDigest) -> Result<(), VerifyError> {
        let EntryDigest {
            envelope,
            body,
            signature,
            blobs,
            facts,
            ..
        } = entry;
        let envelope = match envelope {
            Ok(envelope) => envelope,
            Err(why) => {
                self.findings
                    .add(seq, RuleName::LineFormat, "the canonical entry line", why);
                return self
                    .times
                    .push(self.state.keyring.recorded_at.unwrap_or(Timestamp::EPOCH));
            }
        };
        if envelope.seq != seq {
            self.findings.add(
                seq,
                RuleName::Seq,
                seq.to_string(),
                envelope.seq.to_string(),
            );
        }
        self.times.push(envelope.recorded_at)?;
        let said = match body.unwrap_or_else(|| Err("not read".to_owned())) {
            Ok(said) => said,
            Err(why) => {
                self.unreadable_body(seq, envelope.recorded_at, why);
                return Ok(());
            }
        };
        let header = said.header();
        self.signers.insert(header.author);
        if let Some(file) = &mut self.file {
            file.meet(envelope.keyid);
            if let Ok(kind) = said.kind().parse() {
                file.kinds.step(seq, kind, &mut self.findings)?;
            }
        }
        if let Some(column) = envelope
            .column
            .filter(|column| *column != header.author_seq)
        {
            let expected = format!("author_seq {}", header.author_seq);
            self.findings
                .add(seq, RuleName::Column, expected, column.to_string());
        }
        let since = self.options.since_size();
        let mut breaches = Vec::new();
        let claim = Claim::new(seq, envelope.recorded_at, envelope.keyid, &said);
        if seq >= since {
            rules::header(&self.state, &claim, &mut breaches);
            self.check_signature(&claim, signature, &mut breaches);
            self.check_seen(&claim, &mut breaches)?;
        }
        self.check_event(
            seq,
            seq >= since,
            envelope.recorded_at,
            &said,
            &blobs,
            facts,
            breaches,
        )
    }

    /// A body that is none still has a place in time.
    pub(super) fn unreadable_body(&mut self, seq: u64, recorded_at: Timestamp, why: String) {
        let last = self.state.keyring.recorded_at;
        if let Some(breach) = rules::time_order(last, recorded_at) {
            self.findings.breach(seq, breach);
        }
        let expected = "the canonical form of a closed body";
        self.findings.add(seq, RuleName::BodyFormat, expected, why);
        self.state.keyring.recorded_at = Some(recorded_at);
    }

    pub(super) fn check_signature(
        &self,
        claim: &Claim<'_>,
        signature: Signature,
        breaches: &mut Vec<Breach>,
    ) {
        // A key that hashes to its id but was not added yet is an unknown key: that is the finding.
        let genesis = rules::genesis_of(claim).map(|created| created.owner.public_key.0);
        let record = self
            .state
            .keyring
            .keys
            .get(&claim.header.author)
            .map(|record| record.public_key.0);
        let Some(key) = record.or(genesis) else {
            return;
        };
        let broken = match signature {
            Signature::Holds | Signature::Skipped => false,
            Signature::Broken => true,
            Signature::Deferred(parts) => {
                let (body, signature) = *parts;
                let message = sign::pae(PAYLOAD_TYPE, &body);
                // Nobody can sign under a key that is no usable point; anybody could under one of small order.
                PublicKey::from_bytes(&key)
                    .map_or(true, |key| key.verify(&message, &signature).is_err())
            }
        };
        if broken {
            breaches.push(Breach::new(
                RuleName::Signature,
                "a strict Ed25519 signature by the author",
                "one that does not hold",
            ));
        }
    }

    /// The root in `seen`, and the author's clock against the newest entry under it.
    fn check_seen(
        &mut self,
        claim: &Claim<'_>,
        breaches: &mut Vec<Breach>,
    ) -> Result<(), VerifyError> {
        let Some(seen) = claim.header.seen else {
            return Ok(());
        };
        let size = seen.size.value();
        if size == 0 || size > claim.seq {
            return Ok(());
        }
        if breaches.iter().all(|breach| breach.rule != RuleName::Seen) {
            self.check_seen_root(claim.seq, seen, breaches)?;
        }
        if breaches
            .iter()
            .all(|breach| breach.rule != RuleName::Backdated)
        {
            breaches.extend(rules::not_backdated(
                claim.header.at,
                self.times.at(size - 1)?,
            ));
        }
        Ok(())
    }

    pub(super) fn check_seen_root(
        &mut self,
        seq: u64,
        seen: SeenCheckpoint,
        breaches: &mut Vec<Breach>,
    ) -> Result<(), VerifyError> {
        let size = seen.size.value();
        let Some(file) = &mut self.file else {
            let digest = root_digest(size, &seen.root.0);
            return Ok(self.sorter.push(Record::new(
                digest,
                seq,
                Op::Needs,
                RuleName::Seen,
                u64::MAX,
            ))?);
        };
        let found = || format!("size {size}, root {}", seen.root.0.to_base64());
        match file.kept_root(size)? {
            None => breaches.push(Breach::new(
                RuleName::Seen,
                format!("a kept checkpoint of size {size}"),
                found(),
            )),
            Some(root) if root != seen.root.0 => {
                breaches.push(Breach::new(
                    RuleName::Seen,
                    format!("root {} at size {size}", root.to_base64()),
                    found(),
                ));
            }
            Some(_) => {}
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one entry, taken apart")]
    fn check_event(
        &mut self,
        seq: u64,
        checked: bool,
        recorded_at: Timestamp,
        said: &Body,
        blobs: &[(Digest, u64)],
        mut facts: Vec<Fact>,
        mut breaches: Vec<Breach>,
    ) -> Result<(), VerifyError> {
        let retired = breaches.iter().any(|breach| breach.rule == RuleName::Kind);
        let event = match said {
            Body::Event(event) if !retired => event,
            _ => {
                if checked {
                    breaches.extend(rules::opening(seq, said.kind()));
                }
                self.report(seq, breaches);
                self.state.apply_counters(seq, recorded_at, said.header());
                let mut facts = Vec::new();
                rules::header_facts(seq, said.id(), 0, said.header(), &mut facts);
                return self.give_judged(seq, checked, &facts);
            }
        };
        self.take_published(event);
        let candidate = ProposedEvent {
            seq,
            recorded_at,
            event,
        };
        if checked {
            rules::custody(&self.state, &candidate, &mut breaches);
            let (rulebook, recompute) = (self.state.rulebook(), self.options.recompute);
            for rule in rulebook.every_rule() {
                if rule.is_costly() && !recompute {
                    continue;
                }
                rule.check(&self.state, &candidate, &mut breaches);
            }
            self.compute(&candidate, &mut breaches)?;
        }
        for rule in self.state.rulebook().every_rule() {
            rule.requires(&self.state, &candidate, &mut facts);
        }
        if self.state.keyring.origin.is_empty() {
            // Commitments hold the origin, which nobody knows here.
            let on_origin = |fact: &Fact| {
                matches!(
                    fact,
                    Fact::Needs {
                        rule: RuleName::Seal,
                        ..
                    }
                )
            };
            facts.retain(|fact| !on_origin(fact));
        }
        self.name_blobs(seq, blobs)?;
        let fit = breaches.iter().all(|breach| !UNFIT.contains(&breach.rule))
            || rules::is_genesis(seq, event);
        self.report(seq, breaches);
        if fit {
            if let Payload::AuditAttested(said) = &event.payload {
                self.attested.push((seq, said.size.value(), said.root.0));
            }
            self.give_judged(seq, checked, &facts)?;
            self.apply(candidate)
        } else {
            // It counts as an event that stands there, not as what only one with the right to it could say.
            let counts = |fact: &&Fact| match fact {
                Fact::Gives { once, .. } => once.is_some(),
                _ => true,
            };
            let facts: Vec<_> = facts.iter().filter(counts).copied().collect();
            self.give_judged(seq, checked, &facts)?;
            self.state.apply_counters(seq, recorded_at, &event.header);
            Ok(())
        }
    }

    fn apply(&mut self, candidate: ProposedEvent<'_>) -> Result<(), VerifyError> {
        let verified = VerifiedEvent::new(candidate);
        if let Payload::KeyAdded(added) = &candidate.event.payload
            && added.proof.is_none()
        {
            self.unproven_keys += 1;
        }
        if let Some(file) = &mut self.file {
            file.rows(self.state.rulebook(), &verified, &mut self.findings)?;
        }
        self.state.apply(&verified);
        Ok(())
    }

    fn report(&mut self, seq: u64, breaches: Vec<Breach>) {
        for breach in breaches {
            self.findings.breach(seq, breach);
        }
    }

    /// Judges what is due at the end and writes the report.
    pub(super) fn finish(mut self) -> Result<Report, VerifyError> {
        self.grow()?;
        let events = self.position;
        for (size, outside) in std::mem::take(&mut self.outside) {
            for (name, outside) in outside {
                if size == 0 {
                    self.check_outside(&name, &outside, 0);
                    self.compare_root(&name, &outside, merkle::empty_root());
                    continue;
                }
                self.check_outside(&name, &outside, events.saturating_sub(1));
                let is_head = self.head.as_ref() == Some(&outside);
                if name == PIN && self.options.pin.is_some() && !is_head {
                    self.older_by = Some(size - events);
                    continue;
                }
                let expected = format!("{size} entries of {name}");
                self.findings.add(
                    events,
                    RuleName::Size,
                    expected,
                    format!("{events} entries"),
                );
                if !is_head {
                    self.divergence.get_or_insert(Divergent::RolledBack);
                }
            }
        }
        if events == 0 {
            self.findings
                .add(0, RuleName::Genesis, "ledger.created at seq 0", "no entry");
        }
        if let Some(mut file) = self.file.take() {
            file.finish(&mut self)?;
            self.file = Some(file);
        }
        self.check_kept();
        self.check_log_key();
        self.check_sets()?;
        self.remarks();
        Ok(self.into_report(events))
    }
}
