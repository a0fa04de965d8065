//! Judging prepared events in order and taking them into memory.

use clover_event::SeenCheckpoint;
use clover_event::entry;
use clover_event::header;
use clover_event::header::DecodedBody;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::time::Timestamp;
use clover_store::Reader;

use crate::append::AppendedEvent;
use crate::append::Batch;
use crate::append::BatchStart;
use crate::append::PreparedEvent;
use crate::append::Slot;
use crate::append::agree_breach;
use crate::append::forbid_breach;
use crate::append::need_breach;
use crate::append::plan;
use crate::append::read_breach;
use crate::append::says_breach;
use crate::catch_up;
use crate::claim::Body;
use crate::claim::Claim;
use crate::error::LedgerError;
use crate::fold::AtHand;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::RuleComputation;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::history::EarlierLog as History;
use crate::open;
use crate::open::Head;
use crate::read;
use crate::read::Measurement;
use crate::rule_names::RuleName;
use crate::rules;
use crate::state::State;

/// Judges prepared events in order and takes them into memory. On error `head` has moved and must be
/// reloaded.
pub(super) fn admit(
    head: &mut Head,
    reader: Reader<'_>,
    prepared: &[Box<PreparedEvent>],
    batch: &mut Batch,
    computing: &mut RuleComputation,
) -> Result<(), LedgerError> {
    let rulebook = head.state.rulebook();
    let (first, recorded_at) = (head.size(), batch.recorded_at);
    let leaves = leaves(first, recorded_at, prepared);
    let mut wanted = Vec::with_capacity(prepared.len());
    for (place, (seq, one)) in (first..).zip(prepared).enumerate() {
        let (prepared, earlier) = (one, &prepared[..place]);
        let index = prepared.index;
        let claim = Claim::new(seq, recorded_at, prepared.signed.signer(), &prepared.said);
        judge_header(&head.state, reader, &claim, index, &batch.before)?;
        let Body::Event(event) = &prepared.said else {
            unreachable!("BUG: a payload that does not decode was refused");
        };
        let candidate = ProposedEvent {
            seq,
            recorded_at,
            event,
        };
        let mut breaches = Vec::new();
        rules::custody(&head.state, &candidate, &mut breaches);
        for rule in rulebook.every_rule() {
            rule.check(&head.state, &candidate, &mut breaches);
        }
        let history = || history(reader, first, earlier);
        let at_hand = computing.check(&head.state, &candidate, history, &mut breaches)?;
        if let AtHand::Gone(why) = at_hand {
            let expected = "what it was computed from";
            breaches.push(Breach::new(RuleName::Recompute, expected, why));
        }
        let breach = match first_breach(breaches) {
            None => missing_blob(reader, &prepared.blobs)?,
            breach => breach,
        };
        if let Some(breach) = breach {
            return Err(LedgerError::Refused {
                index,
                breach,
                in_the_way: None,
            });
        }
        let (natural_key, is_own) = (prepared.natural_key, prepared.is_own);
        let mut facts = facts_of(rulebook, &candidate, natural_key, is_own);
        for rule in rulebook.every_rule() {
            rule.requires(&head.state, &candidate, &mut facts);
        }
        head.state.apply(&VerifiedEvent::new(candidate));
        wanted.push((index, seq, facts));
        batch.appended.push(AppendedEvent {
            seq,
            id: event.id,
            already: false,
        });
    }
    judge_facts(head, reader, &wanted, batch)?;
    batch.tiles.append(&mut head.grow(&leaves));
    head.known = head.size();
    Ok(())
}

/// Refuses a batch that ends where another entry has to follow in the same one.
pub(super) fn is_finished(head: &Head, batch: &Batch, slots: &[Slot]) -> Result<(), LedgerError> {
    let unfinished = (head.state.rulebook().unfinished)(&head.state);
    let first = batch.before.size;
    let Some((seq, breach)) = unfinished.filter(|(seq, _)| *seq >= first) else {
        return Ok(());
    };
    let mut new = slots.iter().enumerate();
    let place = usize::try_from(seq - first).unwrap_or(usize::MAX);
    let is_new = |(_, slot): &(usize, &Slot)| matches!(slot, Slot::New);
    let index = new.by_ref().filter(is_new).nth(place);
    Err(LedgerError::Refused {
        index: index.map_or(0, |(index, _)| index),
        breach,
        in_the_way: None,
    })
}

/// What stands before an entry: the file's, then those of the batch that are not written yet.
fn history<'a>(reader: Reader<'a>, first: u64, earlier: &'a [Box<PreparedEvent>]) -> History<'a> {
    let kept = (first..).zip(earlier);
    History {
        reader: Some(reader),
        stored: first,
        kept: kept
            .filter_map(|(seq, one)| match &one.said {
                Body::Event(event) => Some((seq, event)),
                Body::Broken(_) => None,
            })
            .collect(),
        blobs: None,
    }
}

/// What an event gives and needs. The natural key of an own command was looked up in this transaction
/// already, and given once in its batch.
fn facts_of(
    rulebook: &Rulebook,
    candidate: &ProposedEvent<'_>,
    natural_key: Option<Digest>,
    is_own: bool,
) -> Vec<Fact> {
    let mut facts = Vec::with_capacity(2);
    catch_up::all_facts(rulebook, candidate, natural_key, &mut facts);
    // An own event of a natural key that stands was answered as a retry; what else is given once is judged.
    for fact in facts.iter_mut().filter(|_| is_own) {
        if let Fact::Gives { once, .. } = fact
            && *once == Some(RuleName::NaturalKey)
        {
            *once = None;
        }
    }
    facts
}

/// Leaf hashes of the lines that these events become. On this thread alone: the others sign what comes next, and whoever
/// asked for their help would wait until all of that is signed.
fn leaves(first: u64, recorded_at: Timestamp, prepared: &[Box<PreparedEvent>]) -> Vec<Digest> {
    let numbered: Vec<(u64, &PreparedEvent)> =
        (first..).zip(prepared.iter().map(Box::as_ref)).collect();
    let line = |(seq, event): &(u64, &PreparedEvent)| {
        let (mut line, signed) = (Vec::new(), &event.signed);
        let (body, author, signature) = (signed.body(), signed.signer(), signed.signature());
        entry::write_line(&mut line, *seq, recorded_at, body, &author, signature);
        line
    };
    let mut leaves = Vec::with_capacity(numbered.len());
    for some in numbered.chunks(merkle::LEAVES_AT_ONCE) {
        let lines: Vec<Vec<u8>> = some.iter().map(line).collect();
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        leaves.append(&mut merkle::leaf_hashes(&lines));
    }
    leaves
}

/// Judges that every blob an event names is stored in its length.
fn missing_blob(
    reader: Reader<'_>,
    blobs: &[(Digest, u64)],
) -> Result<Option<Breach>, LedgerError> {
    for (digest, bytes) in blobs {
        let found = reader.blob_len(digest)?;
        if found != Some(*bytes) {
            let expected = format!("blob {digest} of {bytes} bytes");
            let found = found.map_or("no such blob".to_owned(), |found| format!("{found} bytes"));
            return Ok(Some(Breach::new(RuleName::Blob, expected, found)));
        }
    }
    Ok(None)
}

fn first_breach(breaches: Vec<Breach>) -> Option<Breach> {
    breaches.into_iter().min_by_key(|breach| breach.rule)
}

fn judge_header(
    state: &State,
    reader: Reader<'_>,
    claim: &Claim<'_>,
    index: usize,
    before: &BatchStart,
) -> Result<(), LedgerError> {
    let mut breaches = Vec::new();
    rules::header(state, claim, &mut breaches);
    if let Some(seen) = claim.header.seen {
        let size = seen.size.value();
        let own = size == before.size && seen.root.0 == before.root;
        if !own && breaches.iter().all(|breach| breach.rule != RuleName::Seen) {
            judge_seen(reader, seen, &mut breaches)?;
        }
        // What an own command has seen is the head before the batch, whose time is at hand.
        let seen_at = match size {
            0 => None,
            _ if own => before.recorded_at,
            _ if size < before.size => reader.entry(size - 1)?.map(|entry| entry.recorded_at),
            _ => None,
        };
        breaches.extend(seen_at.and_then(|at| rules::not_backdated(claim.header.at, at)));
    }
    match first_breach(breaches) {
        None => Ok(()),
        Some(breach) => {
            let in_the_way = None;
            Err(LedgerError::Refused {
                index,
                breach,
                in_the_way,
            })
        }
    }
}

/// Judges the root in `seen` against the kept checkpoint of that size.
fn judge_seen(
    reader: Reader<'_>,
    seen: SeenCheckpoint,
    breaches: &mut Vec<Breach>,
) -> Result<(), LedgerError> {
    let size = seen.size.value();
    let found = format!("size {size}, root {}", seen.root.0.to_base64());
    match reader.checkpoint(size)? {
        None => breaches.push(Breach::new(
            RuleName::Seen,
            format!("a kept checkpoint of size {size}"),
            found,
        )),
        Some(stored) => {
            let root = open::parse_checkpoint(&stored)?.checkpoint().root;
            if root != seen.root.0 {
                breaches.push(Breach::new(
                    RuleName::Seen,
                    format!("root {} at size {size}", root.to_base64()),
                    found,
                ));
            }
        }
    }
    Ok(())
}

/// Judges what is exact only over the whole history: references, natural keys, seals, charges.
fn judge_facts(
    head: &mut Head,
    reader: Reader<'_>,
    wanted: &[EventFacts],
    batch: &mut Batch,
) -> Result<(), LedgerError> {
    let looks_up = |fact: &Fact| {
        let only_given = matches!(fact, Fact::Id { .. } | Fact::Gives { once: None, .. });
        !only_given && !matches!(fact, Fact::Says { .. })
    };
    let mut facts = wanted.iter().flat_map(|(_, _, facts)| facts);
    if facts.any(looks_up) {
        look_up(head, reader, wanted, batch)?;
    }
    let gives = wanted
        .iter()
        .flat_map(|(_, seq, facts)| catch_up::given_by(*seq, facts));
    batch.given.extend(gives);
    Ok(())
}

fn look_up(
    head: &mut Head,
    reader: Reader<'_>,
    wanted: &[EventFacts],
    batch: &mut Batch,
) -> Result<(), LedgerError> {
    let (given, values) = (&mut batch.given, &batch.values);
    // What was read before this append of what is read and needed, in the order of the facts.
    let mut known = Vec::new();
    let asked = wanted
        .iter()
        .flat_map(|(_, _, facts)| facts)
        .filter_map(|fact| match fact {
            Fact::Reads { digest, .. } => {
                let value = values.get(digest);
                known.push(value);
                value.is_none().then_some(*digest)
            }
            Fact::Needs { digest, .. } => {
                let giver = values.giver(digest);
                known.push(giver.map(|giver| (giver, 0)));
                giver.is_none().then_some(*digest)
            }
            Fact::Gives {
                digest,
                once: Some(_),
            }
            | Fact::Forbids { digest, .. }
            | Fact::ForbidsBelow { digest, .. }
            | Fact::Agrees { digest, .. }
            | Fact::Recorded { digest, .. } => Some(*digest),
            Fact::Id { .. } | Fact::Gives { .. } | Fact::Says { .. } => None,
        });
    let mut asked: Vec<Digest> = asked.collect();
    asked.sort_unstable();
    asked.dedup();
    let mut found = plan::find_indexed(head, reader, &asked)?;
    // What the batch itself gave before matters only where the index does not know all that is looked up.
    if found.contains(&None) {
        head.tail.add(std::mem::take(given));
    }
    plan::find_in_tail(&head.tail, &asked, &mut found);
    let mut givers = Givers { asked, found };
    let stored = stored_values(head.under(reader), wanted, &givers)?;
    let mut known = known.into_iter();
    for (index, seq, facts) in wanted {
        for fact in facts {
            let is_need = matches!(fact, Fact::Needs { .. });
            let asks = is_need || matches!(fact, Fact::Reads { .. });
            let before = asks.then(|| known.next().flatten()).flatten();
            let given = before.filter(|_| is_need).map(|(giver, _)| giver);
            let giver = |digest: &Digest| given.or_else(|| givers.get(digest));
            let judged = match judge_entry(reader, (wanted, &stored, before), &giver, *seq, fact)? {
                Some(refused) => Err(refused),
                None => judge_fact(giver, *seq, fact),
            };
            judged.map_err(|(breach, in_the_way)| LedgerError::Refused {
                index: *index,
                breach,
                in_the_way,
            })?;
        }
        for (digest, seq) in catch_up::given_by(*seq, facts) {
            givers.given(&digest, seq);
        }
    }
    Ok(())
}

/// Who gave the digests that are asked for first.
struct Givers {
    /// Ascending, each once.
    asked: Vec<Digest>,
    /// As many.
    found: Vec<Option<u64>>,
}

impl Givers {
    fn get(&self, digest: &Digest) -> Option<u64> {
        self.found[self.asked.binary_search(digest).ok()?]
    }

    fn given(&mut self, digest: &Digest, seq: u64) {
        if let Ok(at) = self.asked.binary_search(digest) {
            self.found[at].get_or_insert(seq);
        }
    }
}

/// What the stored entries measured whose values the batch reads, in one pass over them.
fn stored_values(
    under: crate::under::Under<'_>,
    wanted: &[EventFacts],
    givers: &Givers,
) -> Result<Vec<(u64, Measurement)>, LedgerError> {
    let first = wanted.first().map_or(0, |(_, seq, _)| *seq);
    let read = |fact: &Fact| match fact {
        Fact::Agrees { digest, .. } | Fact::Reads { digest, .. } => {
            givers.get(digest).filter(|seq| *seq < first)
        }
        _ => None,
    };
    let facts = wanted.iter().flat_map(|(_, _, facts)| facts);
    let mut seqs: Vec<u64> = facts.filter_map(read).collect();
    seqs.sort_unstable();
    seqs.dedup();
    read::measured(under, &seqs)
}

/// Index and position of an event, and its facts.
type EventFacts = (usize, u64, Vec<Fact>);

/// What stored entries measured, by position, ascending.
type Measurements = [(u64, Measurement)];
/// The facts of a batch, what stored entries measured, and of a value that was read before this append the entry and what
/// it says.
type BatchFacts<'a> = (&'a [EventFacts], &'a Measurements, Option<(u64, i64)>);
/// A breach, and the entry that is in the way of the one judged.
type Refusal = (Breach, Option<u64>);

/// Judges a fact by what the entry that gave its digest holds.
fn judge_entry(
    reader: Reader<'_>,
    (wanted, stored, before): BatchFacts<'_>,
    giver: &impl Fn(&Digest) -> Option<u64>,
    seq: u64,
    fact: &Fact,
) -> Result<Option<Refusal>, LedgerError> {
    Ok(match fact {
        Fact::Needs { digest, rule, .. } if *rule == RuleName::Refs => match giver(digest) {
            Some(giver) if recorded(reader, wanted, giver, digest)?.is_none() => {
                Some((need_breach(*rule, digest, seq, None), None))
            }
            _ => None,
        },
        Fact::Recorded { digest, rule, said } => match giver(digest) {
            Some(giver)
                if recorded(reader, wanted, giver, digest)?.is_some_and(|found| found != *said) =>
            {
                Some((says_breach(*rule, giver), Some(giver)))
            }
            _ => None,
        },
        Fact::Agrees {
            digest,
            value,
            rule,
        } => {
            let first = giver(digest).filter(|first| *first < seq);
            let found =
                first.and_then(|first| Some((first, measured(wanted, stored, first, digest)?)));
            let breach = agree_breach(*rule, *value, found);
            breach.map(|breach| (breach, first))
        }
        Fact::Reads {
            digest,
            value,
            after,
            rule,
        } => {
            let of = |giver| (giver, measured(wanted, stored, giver, digest));
            let found = match before {
                Some((giver, value)) => Some((giver, Some(value))),
                None => giver(digest).map(of),
            };
            let found = found.filter(|(giver, _)| *giver < seq);
            let breach = read_breach(*rule, *value, *after, found);
            breach.map(|breach| (breach, found.map(|(giver, _)| giver)))
        }
        _ => None,
    })
}

/// The number that the event of this id recorded, stored or in this batch; `None` when the entry that gave
/// `digest` is not the event of that id.
fn recorded(
    reader: Reader<'_>,
    batch: &[EventFacts],
    seq: u64,
    digest: &Digest,
) -> Result<Option<u64>, LedgerError> {
    let id = |fact: &Fact| match fact {
        Fact::Id { digest: id, said } if id == digest => Some(*said),
        _ => None,
    };
    let first = batch.first().map_or(0, |(_, seq, _)| *seq);
    let in_batch = seq
        .checked_sub(first)
        .and_then(|at| batch.get(usize::try_from(at).ok()?));
    if let Some((_, _, facts)) = in_batch {
        return Ok(facts.iter().find_map(id));
    }
    let stored = reader.entry(seq)?;
    let stored = stored.filter(|stored| Digest::sha256(&stored.body) == *digest);
    Ok(stored.map(|stored| match header::decode(&stored.body) {
        Ok(DecodedBody {
            payload: Ok(payload),
            ..
        }) => rules::number(&payload),
        _ => 0,
    }))
}

/// What the entry at `seq`, stored or in this batch, says under `digest`.
fn measured(batch: &[EventFacts], stored: &Measurements, seq: u64, digest: &Digest) -> Option<i64> {
    let first = batch.first().map_or(0, |(_, seq, _)| *seq);
    let in_batch = seq
        .checked_sub(first)
        .and_then(|at| batch.get(usize::try_from(at).ok()?));
    if let Some((_, _, facts)) = in_batch {
        return facts.iter().find_map(|fact| match fact {
            Fact::Says { digest: of, value } if of == digest => Some(*value),
            _ => None,
        });
    }
    let at = stored.binary_search_by_key(&seq, |(at, _)| *at);
    let (_, said) = stored[at.ok()?];
    said.filter(|(of, _)| of == digest).map(|(_, value)| value)
}

pub(super) fn judge_fact(
    giver: impl Fn(&Digest) -> Option<u64>,
    seq: u64,
    fact: &Fact,
) -> Result<(), (Breach, Option<u64>)> {
    match fact {
        Fact::Gives {
            digest,
            once: Some(rule),
        } => match giver(digest) {
            Some(earlier) if earlier < seq => Err((
                Breach::new(
                    *rule,
                    "one event per natural key",
                    format!("seq {earlier} has it"),
                ),
                Some(earlier),
            )),
            _ => Ok(()),
        },
        Fact::Id { .. }
        | Fact::Gives { once: None, .. }
        | Fact::Says { .. }
        | Fact::Agrees { .. }
        | Fact::Recorded { .. }
        | Fact::Reads { .. } => Ok(()),
        Fact::Needs {
            digest,
            before,
            rule,
        } => match giver(digest) {
            Some(earlier) if earlier < *before => Ok(()),
            other => Err((need_breach(*rule, digest, *before, other), other)),
        },
        Fact::Forbids { digest, rule } => match giver(digest) {
            Some(earlier) if earlier < seq => Err((forbid_breach(*rule, earlier), Some(earlier))),
            _ => Ok(()),
        },
        Fact::ForbidsBelow {
            digest,
            before,
            rule,
        } => match giver(digest) {
            Some(earlier) if earlier < *before.min(&seq) => {
                Err((forbid_breach(*rule, earlier), Some(earlier)))
            }
            _ => Ok(()),
        },
    }
}
