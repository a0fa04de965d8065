//! The rules of custody: what every entry must satisfy whatever it says.
//!
//! The same functions refuse an append and re-judge history. They are split by what they need:
//! [`header`] judges an entry against the state before it, [`custody`] the events that move keys and
//! policy, [`facts`] gives what is exact only over the whole history. Rules about data and budgets are
//! the rulebook's.

use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Header;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::payload::Role;
use clover_event::payload::custody::KeyAdded;
use clover_event::payload::custody::LedgerCreated;
use clover_event::payload::custody::Separation;
use clover_ground::digest::Digest;
use clover_ground::keyfile;
use clover_ground::sign::KeyId;
use clover_ground::sign::PublicKey;
use clover_ground::time::Timestamp;
use clover_num::Count;

use crate::claim::Claim;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::said;
use crate::keyring::Keyring;
use crate::rule_names::RuleName;
use crate::rulebooks;
use crate::rulebooks::Question;
use crate::signers;
use crate::state::State;

/// How far a clock may stand behind the head, and `at` away from what it claims, in seconds.
pub const CLOCK_TOLERANCE_SECONDS: i64 = 300;
/// How far an entry may be recorded after the one before it unless whoever appends says so, in seconds: 400 days.
/// `recorded_at` never goes back, so a clock that is wrong by more would close the log to every right one.
pub const CLOCK_AHEAD_SECONDS: i64 = 400 * 86_400;
/// The format that this program writes.
pub const FORMAT: u64 = 2;
/// Domain label of a proof of possession.
pub const POSSESSION_LABEL: &str = "clover/key/v1";

/// Message that a new key signs to prove possession:
/// `"clover/key/v1" 0x00 u16be(len origin) origin key_id`.
pub fn possession_message(origin: &str, key: KeyId) -> Vec<u8> {
    let mut message = POSSESSION_LABEL.as_bytes().to_vec();
    message.push(0);
    message.extend_from_slice(
        &u16::try_from(origin.len())
            .unwrap_or(u16::MAX)
            .to_be_bytes(),
    );
    message.extend_from_slice(origin.as_bytes());
    message.extend_from_slice(key.0.as_bytes());
    message
}

/// Judges header, key, counters and role of an entry against the state before it; not its signature and not
/// the root in `seen`.
pub(super) fn header(state: &State, claim: &Claim<'_>, breaches: &mut Vec<Breach>) {
    stated(state, claim, breaches);
    counters(&state.keyring, claim, breaches);
}

/// Judges header and key of an entry against the state before it, without the author's own count of entries.
pub(super) fn stated(state: &State, claim: &Claim<'_>, breaches: &mut Vec<Breach>) {
    let Header { author, ledger, .. } = claim.header;
    let keyring = &state.keyring;
    let genesis = genesis_of(claim);
    breaches.extend(time_order(keyring.recorded_at, claim.recorded_at));
    let origin = genesis.map_or(keyring.origin.as_str(), |created| created.origin.as_str());
    if ledger != origin && !origin.is_empty() {
        breaches.push(Breach::new(RuleName::Ledger, origin, ledger.as_str()));
    }
    payload(state, claim, breaches);
    if claim.keyid != *author {
        breaches.push(Breach::new(
            RuleName::Keyid,
            author.to_string(),
            claim.keyid.to_string(),
        ));
    }
    if genesis.is_none() {
        key(keyring, author, breaches);
    }
}

/// Judges the ledger's clock: it never runs backwards along the log.
pub fn time_order(last: Option<Timestamp>, recorded_at: Timestamp) -> Option<Breach> {
    let last = last.filter(|last| recorded_at < *last)?;
    Some(Breach::new(
        RuleName::RecordedAt,
        format!("not before {last}"),
        recorded_at.to_string(),
    ))
}

/// The `ledger.created` that opens a log, when this is it.
pub(super) fn genesis_of<'a>(claim: &Claim<'a>) -> Option<&'a LedgerCreated> {
    match claim.payload {
        Ok(Payload::LedgerCreated(created)) if claim.seq == 0 => Some(created),
        _ => None,
    }
}

fn payload(state: &State, claim: &Claim<'_>, breaches: &mut Vec<Breach>) {
    use clover_event::registry::PayloadError;
    match claim.payload {
        Ok(payload) => {
            let (newest, v) = (payload.kind().version(), claim.v);
            if v != newest && state.keyring.format >= FORMAT {
                let kind = payload.kind();
                breaches.push(Breach::new(
                    RuleName::Kind,
                    format!("{kind} v{newest}"),
                    format!("{kind} v{v}, retired"),
                ));
            }
        }
        Err(error @ PayloadError::Kind { .. }) => {
            breaches.push(Breach::new(
                RuleName::Kind,
                "a kind and version of the registry",
                error.to_string(),
            ));
        }
        Err(PayloadError::Schema { kind, .. })
            if state.keyring.format >= FORMAT
                && kind
                    .parse()
                    .is_ok_and(|kind: Kind| kind.version() != claim.v) =>
        {
            let found = format!("{kind} v{}, retired", claim.v);
            breaches.push(Breach::new(
                RuleName::Kind,
                format!("the newest {kind}"),
                found,
            ));
        }
        Err(PayloadError::Schema { kind, error }) => {
            let expected = format!("data of {kind} v{}", claim.v);
            breaches.push(Breach::new(RuleName::Schema, expected, error.as_str()));
        }
    }
}

fn key(keyring: &Keyring, author: &KeyId, breaches: &mut Vec<Breach>) {
    match keyring.keys.get(author) {
        None => breaches.push(Breach::new(
            RuleName::Key,
            "a key that was added before",
            format!("unknown key {author}"),
        )),
        Some(record) => {
            if let Some(end) = &record.end {
                let how = if end.tainted_since.is_some() {
                    "compromised"
                } else {
                    "retired"
                };
                let found = format!(
                    "key {author} of {} was {how} at seq {}",
                    record.holder, end.seq
                );
                breaches.push(Breach::new(RuleName::Key, "a live key", found));
            }
        }
    }
}

/// Author numbers, `seen` (its root excepted) and the author's clock against the ledger's.
fn counters(keyring: &Keyring, claim: &Claim<'_>, breaches: &mut Vec<Breach>) {
    let header = claim.header;
    let record = keyring.keys.get(&header.author);
    let next = record.map_or(0, |record| record.next_author_seq);
    if header.author_seq != next {
        breaches.push(Breach::new(
            RuleName::AuthorSeq,
            next.to_string(),
            header.author_seq.to_string(),
        ));
    }
    match (&header.seen, claim.seq) {
        (None, 0) => {}
        (None, _) => breaches.push(Breach::new(
            RuleName::Seen,
            "a checkpoint before this entry",
            "null",
        )),
        (Some(seen), seq) => {
            let size = seen.size.value();
            let least = record.map_or(1, |record| record.seen_size.max(1));
            if size == 0 || size > seq {
                breaches.push(Breach::new(
                    RuleName::Seen,
                    format!("a size from 1 to {seq}"),
                    size.to_string(),
                ));
            } else if size < least {
                breaches.push(Breach::new(
                    RuleName::Seen,
                    format!("a size of at least {least}, named before"),
                    size.to_string(),
                ));
            }
        }
    }
    if header.at > claim.recorded_at.plus_seconds(CLOCK_TOLERANCE_SECONDS) {
        let expected = format!(
            "at no later than {} s after recorded_at {}",
            CLOCK_TOLERANCE_SECONDS, claim.recorded_at
        );
        breaches.push(Breach::new(
            RuleName::Backdated,
            expected,
            format!("at {}", header.at),
        ));
    }
}

/// Judges the author's clock against the newest entry under the checkpoint it had seen.
pub fn not_backdated(at: Timestamp, seen_recorded_at: Timestamp) -> Option<Breach> {
    let floor = seen_recorded_at.plus_seconds(-CLOCK_TOLERANCE_SECONDS);
    (at < floor).then(|| {
        let expected = format!(
            "at no earlier than {floor}, {CLOCK_TOLERANCE_SECONDS} s before the checkpoint it saw"
        );
        Breach::new(RuleName::Backdated, expected, format!("at {at}"))
    })
}

/// Judges an event whose key and signature stand: role, and the effect on keys and policy.
pub fn custody(state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
    let keyring = &state.keyring;
    let Event {
        header, payload, ..
    } = event.event;
    signers::judge(state, event, breaches);
    match payload {
        Payload::LedgerCreated(created) if event.seq == 0 => founding(header, created, breaches),
        Payload::KeyAdded(added) => key_added(keyring, event.event.v, added, breaches),
        Payload::KeyRetired(retired) => key_ended(keyring, retired.key_id, "retired", breaches),
        Payload::KeyCompromised(compromised) => key_compromised(
            keyring,
            event.seq,
            compromised.key_id,
            compromised.since_seq.value(),
            breaches,
        ),
        Payload::PolicyAdopted(adopted) if adopted.separation == Separation::Strict => {
            // Who was held to it before is held to what they held then too.
            let ever = keyring.asks(Question::RolesEverHeld) && keyring.was_strict();
            for (holder, roles) in keyring.roles_by_holder(ever) {
                if let Some((a, b)) = Keyring::conflict(&roles) {
                    let holds = if ever { "held" } else { "holds" };
                    let found = format!("{holder} {holds} both {a} and {b}");
                    breaches.push(Breach::new(
                        RuleName::Separation,
                        "no holder with conflicting roles",
                        found,
                    ));
                    break;
                }
            }
        }
        Payload::RulebookAdopted(adopted) => {
            let above = keyring.rulebook();
            breaches.extend(rulebooks::named(above, adopted.version.value()));
        }
        Payload::LogKeyRotated(rotated) => {
            let vkey = rotated.vkey.to_string();
            let named = rotated.vkey.key().name().as_str() == keyring.origin;
            if !named && !keyring.origin.is_empty() {
                let expected = format!("a key named {}", keyring.origin);
                breaches.push(Breach::new(RuleName::Target, expected, vkey));
            } else if keyring
                .log_keys
                .iter()
                .any(|(_, key)| key.to_string() == vkey)
            {
                breaches.push(Breach::new(
                    RuleName::Target,
                    "a log key not used before",
                    vkey,
                ));
            }
        }
        _ => {}
    }
    breaches.extend(opening(event.seq, event.event.kind().as_str()));
    breaches.extend(super::names::names(keyring, event.event));
}

/// Judges that `ledger.created` opens a log, and nothing else does.
pub fn opening(seq: u64, kind: &str) -> Option<Breach> {
    let created = kind == Kind::LedgerCreated.as_str();
    (created != (seq == 0)).then(|| {
        let found = format!("{kind} at seq {seq}");
        Breach::new(RuleName::Genesis, "ledger.created at seq 0 only", found)
    })
}

fn founding(header: &Header, created: &LedgerCreated, breaches: &mut Vec<Breach>) {
    let owner = KeyId(keyfile::key_id(&created.owner.public_key.0));
    if owner != header.author {
        breaches.push(Breach::new(
            RuleName::Genesis,
            format!("signed by the owner it names, {owner}"),
            header.author.to_string(),
        ));
    }
    if !created.owner.roles.contains(Role::Owner) {
        breaches.push(Breach::new(
            RuleName::Genesis,
            "an owner key with role owner",
            created.owner.roles.to_string(),
        ));
    }
    if created.log_vkey.key().name().as_str() != created.origin.as_str() {
        let expected = format!("a log key named {}", created.origin);
        breaches.push(Breach::new(
            RuleName::Genesis,
            expected,
            created.log_vkey.to_string(),
        ));
    }
    if created.format.value() == 0 || created.format.value() > FORMAT {
        let found = created.format.to_string();
        breaches.push(Breach::new(
            RuleName::Genesis,
            format!("a format from 1 to {FORMAT}"),
            found,
        ));
    }
    let version = created.rulebook.map(Count::value);
    breaches.extend(version.and_then(|version| rulebooks::named(rulebooks::UNNAMED, version)));
    let roles = created.owner.roles.as_slice().iter().copied().collect();
    if created.policy.separation == Separation::Strict
        && let Some((a, b)) = Keyring::conflict(&roles)
    {
        let found = format!("{} would hold both {a} and {b}", created.owner.holder);
        breaches.push(Breach::new(
            RuleName::Separation,
            "no holder with conflicting roles",
            found,
        ));
    }
}

fn key_added(keyring: &Keyring, v: u32, added: &KeyAdded, breaches: &mut Vec<Breach>) {
    if keyring.separation() == Some(Separation::Strict) {
        let held = keyring.roles_held_by(&added.holder);
        let roles: BTreeSet<_> = held
            .into_iter()
            .flatten()
            .chain(added.roles.as_slice().iter().copied())
            .collect();
        if let Some((a, b)) = Keyring::conflict(&roles) {
            let ever = if keyring.asks(Question::RolesEverHeld) {
                ", keys that ended included"
            } else {
                ""
            };
            let found = format!("{} would hold both {a} and {b}{ever}", added.holder);
            breaches.push(Breach::new(
                RuleName::Separation,
                "no holder with conflicting roles",
                found,
            ));
        }
    }
    match PublicKey::from_bytes(&added.public_key.0) {
        Err(error) => breaches.push(Breach::new(
            RuleName::Possession,
            "a usable public key",
            error.to_string(),
        )),
        Ok(public) if public.id() != added.key_id => {
            breaches.push(Breach::new(
                RuleName::Possession,
                format!("key_id {}", public.id()),
                added.key_id.to_string(),
            ));
        }
        Ok(public) => {
            // Without an origin nobody knows what was to be signed.
            if v == 1 || keyring.origin.is_empty() {
                return;
            }
            let message = possession_message(&keyring.origin, added.key_id);
            if added
                .proof
                .is_none_or(|proof| public.verify(&message, &proof.0).is_err())
            {
                let expected =
                    format!("the new key's signature over {POSSESSION_LABEL}, origin and key id");
                breaches.push(Breach::new(
                    RuleName::Possession,
                    expected,
                    "no such signature",
                ));
            }
        }
    }
}

fn key_ended(keyring: &Keyring, key: KeyId, how: &str, breaches: &mut Vec<Breach>) {
    match keyring.keys.get(&key) {
        None => breaches.push(Breach::new(
            RuleName::Target,
            "a key that was added before",
            format!("unknown key {key}"),
        )),
        Some(record) if let Some(end) = &record.end => {
            breaches.push(Breach::new(
                RuleName::Target,
                "a live key",
                format!("key {key} ended at seq {}", end.seq),
            ));
        }
        Some(record) => {
            let last =
                record.roles.contains(Role::Owner) && keyring.live_with(Role::Owner).count() == 1;
            if last {
                let found = format!("key {key} would be {how} and is the last");
                breaches.push(Breach::new(
                    RuleName::LastOwner,
                    "a live owner key that remains",
                    found,
                ));
            }
        }
    }
}

fn key_compromised(
    keyring: &Keyring,
    seq: u64,
    key: KeyId,
    since: u64,
    breaches: &mut Vec<Breach>,
) {
    if since > seq {
        breaches.push(Breach::new(
            RuleName::Target,
            format!("since_seq of at most {seq}"),
            since.to_string(),
        ));
    }
    match keyring.keys.get(&key) {
        // A retired key may turn out to have been compromised.
        Some(record)
            if record
                .end
                .as_ref()
                .is_some_and(|end| end.tainted_since.is_none()) => {}
        Some(record)
            if let Some(end) = &record.end
                && end.tainted_since.is_some_and(|old| since < old) => {}
        _ => key_ended(keyring, key, "compromised", breaches),
    }
}

/// The number that an event is known for: of a score, and of a call that gave one; else 0.
pub(crate) fn number(payload: &Payload) -> u64 {
    match payload {
        Payload::ScoreRecorded(score) => said(score.score_micro.value()),
        Payload::CallRecorded(call) => call.score_micro.map_or(0, |score| said(score.value())),
        _ => 0,
    }
}

/// What every event gives to and needs from the digests of earlier entries; its natural key is at hand.
pub fn facts(event: &ProposedEvent<'_>, natural_key: Option<Digest>, facts: &mut Vec<Fact>) {
    let said = number(&event.event.payload);
    header_facts(event.seq, event.event.id, said, &event.event.header, facts);
    if let Some(digest) = natural_key {
        facts.push(Fact::Gives {
            digest,
            once: Some(RuleName::NaturalKey),
        });
    }
}

/// What an event gives and needs by its header alone, whatever its data says; `recorded` is the number that
/// it is known for.
pub fn header_facts(seq: u64, id: EventId, recorded: u64, header: &Header, facts: &mut Vec<Fact>) {
    facts.push(Fact::Id {
        digest: id.0,
        said: recorded,
    });
    for id in &header.refs {
        facts.push(Fact::Needs {
            digest: id.0,
            before: seq,
            rule: RuleName::Refs,
        });
    }
}

/// The first entry is folded whatever it breaks: without it nothing after it can be judged.
pub(super) fn is_genesis(seq: u64, event: &Event) -> bool {
    seq == 0 && matches!(event.payload, Payload::LedgerCreated(_))
}
