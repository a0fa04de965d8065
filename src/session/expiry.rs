//! What has a date in a ledger: how long classes are kept, waivers, findings that grow old, promotions, sealed plans and
//! labels, and plans that have to begin by a day. Computed from recorded dates alone.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::RowId;
use clover_event::payload::custody::RetentionSet;
use clover_event::payload::manifest::Manifest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_ledger::read::LogEntry;
use clover_projection::assumptions;
use clover_projection::assumptions::Assumptions;
use clover_projection::assumptions::Standing;
use clover_projection::assumptions::Status;
use clover_projection::experiments::Experiments;
use clover_projection::gates::Gates;
use clover_projection::manifests::ManifestRecord;
use clover_projection::manifests::Manifests;

use crate::listing;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// The class of the log itself.
pub const LOGS: &str = "logs";
/// Days for which logs are kept at least: six months, of which none is longer.
pub const LOGS_DAYS_MIN: u64 = 184;

macro_rules! dated_kinds {
    ($($kind:ident $word:literal $then:literal;)*) => {
        /// What has a date.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DatedKind {
            $(#[doc = $word] $kind,)*
        }

        impl DatedKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word),* }
            }

            /// What holds once the date has passed.
            pub fn then(self) -> &'static str {
                match self { $(Self::$kind => $then),* }
            }
        }
    };
}

// One line a kind: its word, and what holds once its date has passed. The next one goes here.
dated_kinds! {
    Class     "retention" "the oldest entry is past the days of its class: what is kept beside the log is due for deletion";
    Waiver    "waiver"    "the waiver has ended, and the assumption counts as it was found";
    Proposed  "proposed waiver" "no second key agreed in time: it has to be proposed again";
    Finding   "finding"   "what was found of the assumption is stale, and has to be assessed again";
    Promotion "promotion" "the candidate may not be relied on any more";
    Plan      "sealed plan" "claims that rest on the plan are void";
    Labels    "sealed labels" "labels that nobody revealed show as a breach";
    Start     "latest start" "the plan may not expose its first unit any more";
    Embargo   "embargo"   "units may be exposed";
}

/// Something with a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedThing {
    /// The date.
    pub at: Timestamp,
    /// On which ground, or of how many.
    pub basis: String,
    /// Entries that say so.
    pub events: Vec<u64>,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// What it is.
    pub kind: DatedKind,
    /// Its name.
    pub name: String,
}

/// What class logs lacks, where its days are not said or lie below the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogsFloor {
    /// At least six months are on record.
    Kept,
    /// Fewer days are on record, by the entry.
    Below(u64, u64),
    /// Nobody said how long logs are kept.
    Unsaid,
}

/// Every thing with a date, the earliest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiryList {
    /// Whether logs are kept for six months.
    pub logs: LogsFloor,
    /// What has a date.
    pub things: Vec<DatedThing>,
}

impl ExpiryList {
    /// What is past its date. An embargo that ended is none of it: it only held something back.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = &DatedThing> {
        self.things.iter().filter(move |of| of.is_overdue(now))
    }
}

impl DatedThing {
    /// Whether it is past its date.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.at <= now
    }
}

/// What has a date, as of a state of the ledger and a time.
///
/// # Errors
/// [`LedgerError`].
pub fn list(ledger: &Ledger, state: &State, now: Timestamp) -> Result<ExpiryList, LedgerError> {
    let mut things = Vec::new();
    let (classes, logs) = classes(ledger, state)?;
    things.extend(classes);
    things.extend(assumed(state, now));
    things.extend(promoted(ledger, state)?);
    things.extend(planned(state, now));
    things.extend(sealed(ledger, state)?);
    things.sort_by(|one, other| {
        let key = |of: &DatedThing| (of.at, of.kind, of.events.first().copied());
        key(one).cmp(&key(other))
    });
    Ok(ExpiryList { logs, things })
}

/// Gives every entry of a kind below the end of a state.
fn of_kind(
    ledger: &Ledger,
    state: &State,
    kind: Kind,
    mut take: impl FnMut(LogEntry),
) -> Result<(), LedgerError> {
    let takes = |_: &LogEntry| true;
    let query = KindQuery {
        kind,
        takes: &takes,
    };
    listing::each(ledger, &query, (0, state.size), |read| {
        take(read);
        Ok(true)
    })
}

/// How long a class is kept, as it was set last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedClass {
    /// On which ground.
    pub basis: String,
    /// The key that said so.
    pub author: KeyId,
    /// The class.
    pub class: String,
    /// For how many days.
    pub days: u64,
    /// Its entry.
    pub seq: u64,
    /// Until when the oldest entry of the log is kept; `None` beyond the last date that a time can say.
    pub until: Option<Timestamp>,
}

/// How long each class is kept, by its name, and what class logs lacks.
///
/// # Errors
/// [`LedgerError`].
pub fn retained(
    ledger: &Ledger,
    state: &State,
) -> Result<(Vec<RetainedClass>, LogsFloor), LedgerError> {
    let mut newest: BTreeMap<String, (u64, KeyId, RetentionSet)> = BTreeMap::new();
    of_kind(ledger, state, Kind::RetentionSet, |read| {
        if let Some(said) = read.event.said::<RetentionSet>() {
            let word = (read.stored.seq, read.event.header.author, said.clone());
            newest.insert(said.class.to_string(), word);
        }
    })?;
    let logs = match newest.get(LOGS) {
        None => LogsFloor::Unsaid,
        Some((seq, _, said)) if said.days.value() < LOGS_DAYS_MIN => {
            LogsFloor::Below(said.days.value(), *seq)
        }
        Some(_) => LogsFloor::Kept,
    };
    let oldest = ledger.entry(0)?.map(|entry| entry.stored.recorded_at);
    let until = |days: u64| {
        let micros = i64::try_from(days).ok()?.checked_mul(DAY)?;
        Timestamp::from_micros(micros.checked_add(oldest?.micros())?)
    };
    let classes = newest.into_iter().map(|(class, (seq, author, said))| {
        let days = said.days.value();
        RetainedClass {
            author,
            basis: said.basis.as_str().to_owned(),
            class,
            days,
            seq,
            until: until(days),
        }
    });
    Ok((classes.collect(), logs))
}

/// Classes with their date.
fn classes(ledger: &Ledger, state: &State) -> Result<(Vec<DatedThing>, LogsFloor), LedgerError> {
    let (classes, logs) = retained(ledger, state)?;
    let things = classes.into_iter().filter_map(|of| {
        Some(DatedThing {
            at: of.until?,
            basis: match of.days {
                1 => format!("1 day: {}", of.basis),
                days => format!("{days} days: {}", of.basis),
            },
            events: vec![of.seq],
            experiment: None,
            kind: DatedKind::Class,
            name: of.class,
        })
    });
    Ok((things.collect(), logs))
}

/// Waivers and findings of assumptions.
fn assumed(state: &State, now: Timestamp) -> Vec<DatedThing> {
    let experiments = state.fold::<Experiments>().by_id.keys();
    let rows = assumptions::rows(state, now, experiments);
    rows.iter().flat_map(|row| of_row(state, row)).collect()
}

fn of_row(state: &State, row: &Standing) -> Vec<DatedThing> {
    let thing = |kind, at, seqs: Vec<u64>, basis: &str| DatedThing {
        at,
        basis: basis.to_owned(),
        events: seqs,
        experiment: row.experiment.clone(),
        kind,
        name: row.code.to_string(),
    };
    let mut found = Vec::new();
    let recorded = state.fold::<Assumptions>();
    if let Some(of) = recorded.row(row.code, row.experiment.as_ref()) {
        // One that ended and is not needed any more asks nothing of anybody.
        let is_wanted = row.status != Status::Pass;
        if let Some(waiver) = of.granted.as_ref().filter(|_| is_wanted) {
            let agreed = waiver.agreed.map(|agreed| agreed.seq);
            let seqs = [waiver.seq].into_iter().chain(agreed).collect();
            let reason = &waiver.reason;
            found.push(thing(DatedKind::Waiver, waiver.expires_at, seqs, reason));
        }
        let is_later = |seq: u64| of.granted.as_ref().is_none_or(|granted| seq > granted.seq);
        let proposed = of
            .proposed
            .as_ref()
            .filter(|of| is_wanted && is_later(of.seq));
        if let Some(waiver) = proposed {
            let (at, seqs) = (waiver.expires_at, vec![waiver.seq]);
            found.push(thing(DatedKind::Proposed, at, seqs, &waiver.reason));
        }
    }
    for (part, _, evidence) in &row.parts {
        if let Some((at, seq)) = evidence.and_then(|of| Some((of.expires_at?, of.seq))) {
            found.push(thing(DatedKind::Finding, at, vec![seq], part));
        }
    }
    found
}

/// Promotions that may be relied on until a day, and were not revoked.
fn promoted(ledger: &Ledger, state: &State) -> Result<Vec<DatedThing>, LedgerError> {
    let mut found = Vec::new();
    let promotions = &state.fold::<Gates>().promotions;
    of_kind(ledger, state, Kind::PromotionIssued, |read| {
        let Payload::PromotionIssued(said) = &read.event.payload else {
            return;
        };
        let seq = read.stored.seq;
        let mut all = promotions.iter();
        let is_revoked = all.any(|of| of.seq == seq && of.revoked_seq.is_some());
        let gates: Vec<_> = said.gates.iter().map(ToString::to_string).collect();
        found.extend(
            said.expires_at
                .filter(|_| !is_revoked)
                .map(|at| DatedThing {
                    at,
                    basis: format!("gates {}", gates.join(", ")),
                    events: vec![seq],
                    experiment: read.event.header.experiment.clone(),
                    kind: DatedKind::Promotion,
                    name: format!("candidate {}", said.candidate_digest.short()),
                }),
        );
    })?;
    Ok(found)
}

/// Plans that wait: to be revealed, to begin, or for an embargo to end.
fn planned(state: &State, now: Timestamp) -> Vec<DatedThing> {
    let mut found = Vec::new();
    for (id, record) in &state.fold::<Manifests>().by_id {
        let Some(version) = record.in_force().or_else(|| record.versions.last()) else {
            continue;
        };
        let mut put = |kind, at, seq, basis: &str| {
            found.push(DatedThing {
                at,
                basis: basis.to_owned(),
                events: vec![seq],
                experiment: record.experiment.clone(),
                kind,
                name: id.to_string(),
            });
        };
        let plan = record.plan.as_ref();
        if let Some(plan) = plan.filter(|plan| plan.revealed_seq.is_none()) {
            put(
                DatedKind::Plan,
                plan.reveal_by,
                plan.sealed_seq,
                "to be revealed by then",
            );
        }
        let (start, embargo) = waits(record, &version.manifest);
        if let Some(at) = start {
            put(DatedKind::Start, at, version.seq, "no unit was exposed yet");
        }
        if let Some(at) = embargo.filter(|at| *at > now) {
            put(
                DatedKind::Embargo,
                at,
                version.seq,
                "no unit is exposed before",
            );
        }
    }
    found
}

/// By when a plan has to begin, and until when it may not: while no unit was exposed and no other took its place.
fn waits(record: &ManifestRecord, manifest: &Manifest) -> (Option<Timestamp>, Option<Timestamp>) {
    let is_waiting = record.exposures == 0 && record.superseded_by.is_none();
    let expiry = manifest.expiry.as_ref().filter(|_| is_waiting);
    expiry.map_or((None, None), |of| (of.must_start_before, of.embargo_until))
}

/// What is known of the seals of a design: its earliest day, its labels, its entries.
type SealedRows = BTreeMap<(Option<ExperimentId>, DesignId), BTreeMap<RowId, (Timestamp, u64)>>;

/// Labels that are sealed and wait to be revealed, by design: the earliest day.
fn sealed(ledger: &Ledger, state: &State) -> Result<Vec<DatedThing>, LedgerError> {
    let mut waiting = SealedRows::new();
    of_kind(ledger, state, Kind::LabelSealed, |read| {
        if let Payload::LabelSealed(said) = read.event.payload {
            let of = (read.event.header.experiment, said.design.clone());
            let rows = waiting.entry(of).or_default();
            rows.insert(said.row.clone(), (said.reveal_by, read.stored.seq));
        }
    })?;
    of_kind(ledger, state, Kind::LabelRevealed, |read| {
        if let Payload::LabelRevealed(said) = read.event.payload {
            let of = (read.event.header.experiment, said.design.clone());
            if let Some(rows) = waiting.get_mut(&of) {
                rows.remove(&said.row);
            }
        }
    })?;
    let found = waiting
        .into_iter()
        .filter_map(|((experiment, design), rows)| {
            let (at, first) = rows.values().min().copied()?;
            Some(DatedThing {
                at,
                basis: format!("{} labels wait to be revealed", rows.len()),
                events: vec![first],
                experiment,
                kind: DatedKind::Labels,
                name: design.to_string(),
            })
        });
    Ok(found.collect())
}
