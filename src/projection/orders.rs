//! Orders: the units of a confirm set by name, and the order drawn from a checkpoint that nobody could choose; the
//! rule `order`. Membership is exact over the whole history by digests; the fold keeps right edges of trees.

use clover_event::payload::manifest::Test;
use clover_ledger::Breaches;
use clover_ledger::Code;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use std::collections::BTreeMap;

use clover_event::Header;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::SeenCheckpoint;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::Root;
use clover_event::id::StratumId;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::gate::OrderDrawn;
use clover_event::payload::gate::OrderListed;
use clover_event::payload::gate::UnitsListed;
use clover_event::payload::manifest::Beacon;
use clover_event::payload::manifest::DataBinding;
use clover_event::payload::manifest::STRATA_MAX;
use clover_event::payload::manifest::Template;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use serde::Deserialize;
use serde::Serialize;

use crate::beacons::Beacons;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::splits;
use crate::splits::PartClusters;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::OrderDrawn, Kind::OrderListed, Kind::UnitsListed];

/// An order that was drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnOrder {
    /// The checkpoint that it was drawn from.
    pub beacon: DrawnFrom,
    /// Merkle root of the units in this order.
    pub permutation_root: Root,
    /// What units are hashed with.
    pub seed: Digest,
    /// The entry.
    pub seq: u64,
}

/// The order of one manifest version's units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Once it is complete.
    pub drawn: Option<DrawnOrder>,
    /// Units as far as they are listed, in this order.
    pub listed: PartClusters,
}

/// The units of one confirm set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmUnits {
    /// Number of units of each stratum; `None` where units are listed without.
    pub strata: Option<BTreeMap<StratumId, u64>>,
    /// As far as they are listed, ascending.
    pub units: PartClusters,
}

impl ConfirmUnits {
    fn push(&mut self, listed: &UnitsListed) {
        let Some(strata) = &listed.strata else {
            listed.units.iter().for_each(|unit| self.units.push(unit));
            return;
        };
        let counts = self.strata.get_or_insert_default();
        for (unit, stratum) in listed.units.iter().zip(strata) {
            *counts.entry(stratum.clone()).or_default() += 1;
            self.units.push_leaf(unit, stratum_leaf(unit, stratum));
        }
    }
}

/// Leaf of a unit with its stratum under a confirm root: RFC 6962 over both, each after its length in two bytes,
/// big-endian, in UTF-8.
pub fn stratum_leaf(unit: &ItemId, stratum: &StratumId) -> Digest {
    splits::member_leaf_of(&[unit.as_str(), stratum.as_str()])
}

/// Units and orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// Orders by the digest of the version that bound the units.
    pub by_digest: BTreeMap<Digest, Order>,
    /// Units listed by name, by experiment and confirm root.
    pub units: BTreeMap<ExperimentId, BTreeMap<Digest, ConfirmUnits>>,
}

impl Orders {
    /// The order of a manifest, once it is drawn, with the version that bound its units.
    pub fn of<'a>(
        &'a self,
        record: &'a ManifestRecord,
    ) -> Option<(&'a ManifestVersion, &'a DrawnOrder)> {
        let bound = record.bound()?;
        let drawn = self.by_digest.get(&bound.digest)?.drawn.as_ref()?;
        Some((bound, drawn))
    }
}

/// The checkpoint from which the order of a version's units is drawn. Where no entry has named one yet, an entry that
/// names `seen` does.
pub fn beacon(
    state: &State,
    bound: &ManifestVersion,
    seen: Option<SeenCheckpoint>,
) -> Option<DrawnFrom> {
    beacon_above(state, in_force_since(bound), seen)
}

/// The first checkpoint above an entry that [`Beacons`] waits for, likewise.
pub fn beacon_above(state: &State, from: u64, seen: Option<SeenCheckpoint>) -> Option<DrawnFrom> {
    state.fold::<Beacons>().above(from).or_else(|| {
        let seen = seen.filter(|seen| seen.size.value() > from)?;
        Some(DrawnFrom {
            root: seen.root,
            size: seen.size,
        })
    })
}

/// The entry that brought a version into force.
pub fn in_force_since(version: &ManifestVersion) -> u64 {
    version.countersigned_seq.unwrap_or(version.seq)
}

/// What units are hashed with: SHA-256 of the digest of the version that bound them, the root of the units and the
/// root of the checkpoint, 32 bytes each.
pub fn seed(bound: Digest, confirm_root: Root, beacon: &DrawnFrom) -> Digest {
    let mut bytes = bound.0.to_vec();
    bytes.extend_from_slice(&confirm_root.0.0);
    bytes.extend_from_slice(&beacon.root.0.0);
    Digest::sha256(&bytes)
}

/// Units stand in ascending order of this: SHA-256 of the seed, a zero byte and the unit's UTF-8.
pub fn key(seed: Digest, unit: &ItemId) -> Digest {
    let mut bytes = seed.0.to_vec();
    bytes.push(0);
    bytes.extend_from_slice(unit.as_str().as_bytes());
    Digest::sha256(&bytes)
}

impl Fold for Orders {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        match &event.payload {
            Payload::UnitsListed(listed) => {
                let Some(experiment) = &event.header.experiment else {
                    return;
                };
                let of = self.units.entry(experiment.clone()).or_default();
                of.entry(listed.confirm_root.0).or_default().push(listed);
            }
            Payload::OrderListed(listed) => {
                let order = self.by_digest.entry(listed.digest).or_default();
                listed.units.iter().for_each(|unit| order.listed.push(unit));
            }
            Payload::OrderDrawn(said) => {
                let order = self.by_digest.entry(said.digest).or_default();
                order.drawn.get_or_insert(DrawnOrder {
                    beacon: said.beacon,
                    permutation_root: said.permutation_root,
                    seed: said.seed,
                    seq,
                });
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Digest under which a unit is known to be one of a confirm set.
pub(crate) fn listed_in(experiment: Option<&ExperimentId>, root: Root, unit: &ItemId) -> Digest {
    canon::digest("clover/unit/v1", &(experiment, root, unit))
}

/// Digest under which a unit is known to be of a stratum of its confirm set.
pub fn stratified(
    experiment: Option<&ExperimentId>,
    root: Root,
    (unit, stratum): (&ItemId, &StratumId),
) -> Digest {
    canon::digest("clover/unit-stratum/v1", &(experiment, root, unit, stratum))
}

/// Digest under which the unit at a place of an order, from 0, is known.
pub fn placed(order: Digest, place: u64, unit: &ItemId) -> Digest {
    canon::digest("clover/order/v1", &(order, place, unit))
}

/// Digest under which a unit is known to stand in an order.
pub fn ordered(unit: &ItemId) -> Digest {
    canon::digest("clover/ordered-unit/v1", &(unit,))
}

/// The rule `order`.
#[derive(Clone, Copy, Debug)]
pub struct OrderRule;

impl Rule for OrderRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let header = &event.event.header;
        let own = || match &event.event.payload {
            Payload::UnitsListed(said) => check_units(state, header, said),
            Payload::OrderListed(said) => check_listing(state, header, said),
            Payload::OrderDrawn(said) => check_drawing(state, header, said),
            _ => Ok(()),
        };
        let checked = check_beacon(state, event).and_then(|()| own());
        breaches.take(RuleName::Order, checked);
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let gives = |digest| Fact::Gives { digest, once: None };
        match &event.event.payload {
            Payload::UnitsListed(said) => {
                let units = said.units.iter();
                facts.extend(
                    units.map(|unit| gives(listed_in(experiment, said.confirm_root, unit))),
                );
                let strata = said.units.iter().zip(said.strata.iter().flatten());
                facts.extend(strata.map(|of| gives(stratified(experiment, said.confirm_root, of))));
            }
            Payload::OrderListed(said) => {
                for (place, unit) in (said.first.value()..).zip(&said.units) {
                    facts.push(gives(placed(said.digest, place, unit)));
                    facts.push(gives(ordered(unit)));
                }
            }
            _ => {}
        }
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let Payload::OrderListed(said) = &event.event.payload else {
            return;
        };
        let found = state.fold::<Manifests>().of_digest(said.digest);
        let version = found.and_then(|(_, record)| record.version(said.digest));
        let Some((version, data)) =
            version.and_then(|one| Some((one, one.manifest.data.as_ref()?)))
        else {
            // The ground of an order is asked for by the same rule, which refuses a version without confirm data.
            return;
        };
        for unit in &said.units {
            facts.push(Fact::Needs {
                digest: listed_in(experiment, data.confirm_root, unit),
                before: event.seq,
                rule: RuleName::Order,
            });
            facts.push(Fact::ForbidsBelow {
                digest: ordered(unit),
                before: in_force_since(version),
                rule: RuleName::Order,
            });
        }
    }
}

/// The entry after one that fixes what is tested names the checkpoint between them: an order is drawn from that one. Who
/// could write entries that name older checkpoints would wait until the newest one suits.
fn check_beacon(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    if !state.asks(Question::BeaconPlace) {
        return Ok(());
    }
    let Some(fixed) = state.fold::<Beacons>().fixed else {
        // No entry has fixed what is tested.
        return Ok(());
    };
    let is_next = event.seq == fixed + 1;
    let seen = event.event.header.seen.map_or(0, |seen| seen.size.value());
    ensure!(
        !is_next || seen == event.seq,
        format!(
            "an entry that has seen the checkpoint of size {}: an order is drawn from it, as seq {fixed} fixed what is tested",
            event.seq
        ),
        Code::Order.of(format_args!("one that has seen size {seen}")),
    );
    Ok(())
}

fn check_units(state: &State, header: &Header, said: &UnitsListed) -> RuleAnswer {
    let orders = state.fold::<Orders>();
    let of = header
        .experiment
        .as_ref()
        .and_then(|id| orders.units.get(id));
    let listing = of.and_then(|of| of.get(&said.confirm_root.0));
    let part = listing.map(|listing| &listing.units);
    let count = part.map_or(0, |part| part.count);
    if part.is_some_and(|part| part.root() == said.confirm_root.0) {
        return unmet(
            "a confirm root whose units are not all listed",
            format!("{count} units, all of them"),
        );
    }
    if said.first.value() != count {
        return unmet(format!("first {count}"), format!("first {}", said.first));
    }
    let last = part.and_then(|part| part.last.as_ref());
    let mut all = last.into_iter().chain(&said.units);
    let mut before = all.next();
    let ascending = all.all(|unit| before.replace(unit).is_some_and(|last| last < unit));
    if said.units.is_empty() || !ascending {
        return unmet(
            "units in ascending order, each once, at least one",
            Code::DuplicateUnit.of("another order"),
        );
    }
    check_strata(listing, said)
}

/// The units of a listing all have strata or all have none, and those are not too many.
fn check_strata(listing: Option<&ConfirmUnits>, said: &UnitsListed) -> RuleAnswer {
    let before = listing.map(|listing| listing.strata.is_some());
    if before.is_some_and(|before| before != said.strata.is_some()) {
        return unmet(
            "a stratum of every unit of a listing, or of none",
            "strata of some",
        );
    }
    let Some(strata) = &said.strata else {
        // Units need not have strata.
        return Ok(());
    };
    if strata.len() != said.units.len() {
        let expected = format!("{} strata, one for each unit", said.units.len());
        return unmet(expected, strata.len().to_string());
    }
    let known = listing.and_then(|listing| listing.strata.as_ref());
    let known = known.into_iter().flat_map(BTreeMap::keys);
    let all: std::collections::BTreeSet<_> = known.chain(strata).collect();
    if all.len() > STRATA_MAX {
        return unmet(
            format!("at most {STRATA_MAX} strata"),
            all.len().to_string(),
        );
    }
    Ok(())
}

/// The strata that a test corrects for are those listed, with as many units.
fn check_corrected(ground: &Ground<'_>, listing: &ConfirmUnits) -> RuleAnswer {
    let Some(registered) = &ground.test.control_variate else {
        // A test need not correct for strata.
        return Ok(());
    };
    let registered: BTreeMap<_, _> = registered
        .iter()
        .map(|one| (&one.stratum, one.units.value()))
        .collect();
    let listed = listing.strata.iter().flatten();
    let listed: BTreeMap<_, _> = listed.map(|(stratum, units)| (stratum, *units)).collect();
    if registered == listed {
        return Ok(());
    }
    let text = |of: &BTreeMap<&StratumId, u64>| {
        let each = of
            .iter()
            .map(|(stratum, units)| format!("{stratum} {units}"));
        let each: Vec<_> = each.collect();
        if each.is_empty() {
            "none".to_owned()
        } else {
            each.join(", ")
        }
    };
    unmet(
        format!(
            "units by stratum as test.control_variate has them: {}",
            text(&registered)
        ),
        Code::DataRoot.of(text(&listed)),
    )
}

/// The manifest version whose units are ordered, the beacon, and what binds them.
struct Ground<'a> {
    beacon: DrawnFrom,
    bound: &'a ManifestVersion,
    data: &'a DataBinding,
    seed: Digest,
    test: &'a Test,
}

fn ground<'a>(state: &'a State, header: &Header, digest: Digest) -> Result<Ground<'a>, Unmet> {
    let manifests = state.fold::<Manifests>();
    let found = manifests.of_digest(digest).filter(|(_, record)| {
        let gate = |version: &ManifestVersion| version.manifest.template == Template::Gate;
        record.experiment == header.experiment && record.versions.first().is_some_and(gate)
    });
    let fail = |expected: String, found: String| Err(Unmet { expected, found });
    let Some((_, record)) = found else {
        let expected = "the digest of a gate's manifest of this experiment".to_owned();
        return fail(expected, digest.to_string());
    };
    let Some(bound) = record.bound().filter(|bound| bound.digest == digest) else {
        let expected = record
            .bound()
            .map_or("a version in force".to_owned(), |bound| {
                format!("version {}, which bound the units", bound.digest)
            });
        return fail(expected, Code::StaleVersion.of(digest));
    };
    let Some((data, test)) = bound
        .manifest
        .data
        .as_ref()
        .zip(bound.manifest.test.as_ref())
    else {
        let expected = "a manifest that binds confirm data".to_owned();
        return fail(expected, Code::DataRoot.of("none").clone());
    };
    if let Some(look) = &record.first_look {
        let found = Code::Order.of(format_args!("a first look at seq {}", look.seq));
        return fail("an order before any unit is exposed".to_owned(), found);
    }
    if test.beacon != Beacon::FirstCheckpoint {
        let expected = "test.beacon first_checkpoint, which this ledger can check".to_owned();
        return fail(expected, Code::Order.of("drand").clone());
    }
    let Some(beacon) = beacon(state, bound, header.seen) else {
        let since = in_force_since(bound);
        let expected = format!("a checkpoint above seq {since}, which brought it into force");
        return fail(expected, Code::Order.of("none").clone());
    };
    Ok(Ground {
        beacon,
        bound,
        data,
        seed: seed(bound.digest, data.confirm_root, &beacon),
        test,
    })
}

fn check_listing(state: &State, header: &Header, said: &OrderListed) -> RuleAnswer {
    let ground = ground(state, header, said.digest)?;
    let order = state.fold::<Orders>().by_digest.get(&ground.bound.digest);
    if let Some(drawn) = order.and_then(|order| order.drawn.as_ref()) {
        let found = Code::Order.of(format_args!("one drawn at seq {}", drawn.seq));
        return unmet("an order that is not drawn yet", found);
    }
    let count = order.map_or(0, |order| order.listed.count);
    if said.first.value() != count {
        return unmet(format!("first {count}"), format!("first {}", said.first));
    }
    let last = order.and_then(|order| order.listed.last.as_ref());
    let units = last.into_iter().chain(&said.units);
    let mut keys = units.map(|unit| key(ground.seed, unit));
    let mut before = keys.next();
    let ascending = keys.all(|key| before.replace(key).is_some_and(|last| last < key));
    if said.units.is_empty() || !ascending {
        let expected = format!("units in the order that seed {} gives", ground.seed);
        return unmet(expected, Code::Order.of("another order"));
    }
    Ok(())
}

fn check_drawing(state: &State, header: &Header, said: &OrderDrawn) -> RuleAnswer {
    let ground = ground(state, header, said.digest)?;
    if said.confirm_root != ground.data.confirm_root || said.n_units != ground.data.n_units {
        let text = |n, root: Root| format!("{n} units under {}", root.0.to_base64());
        let expected = text(ground.data.n_units, ground.data.confirm_root);
        let found = text(said.n_units, said.confirm_root);
        return unmet(expected, Code::DataRoot.of(found));
    }
    if (said.beacon, said.seed) != (ground.beacon, ground.seed) {
        let text = |of: &DrawnFrom, seed| {
            let root = of.root.0.to_base64();
            format!(
                "the checkpoint of size {} with root {root}, seed {seed}",
                of.size
            )
        };
        let found = text(&said.beacon, said.seed);
        return unmet(text(&ground.beacon, ground.seed), Code::Order.of(found));
    }
    check_units_of(state, header, &ground)?;
    let order = state.fold::<Orders>().by_digest.get(&said.digest);
    let empty = PartClusters::default();
    let listed = order.map_or(&empty, |order| &order.listed);
    ensure!(
        listed.count == said.n_units.value() && listed.root() == said.permutation_root.0,
        format!(
            "all {} units, under the root of those listed in order",
            said.n_units
        ),
        Code::Order.of(format_args!(
            "{} listed under {}, and {} said",
            listed.count,
            listed.root().to_base64(),
            said.permutation_root.0.to_base64()
        )),
    );
    Ok(())
}

/// The units of the confirm set are listed by name, all of them, with the strata that the test corrects for.
fn check_units_of(state: &State, header: &Header, ground: &Ground<'_>) -> RuleAnswer {
    let units = &state.fold::<Orders>().units;
    let of = header.experiment.as_ref().and_then(|id| units.get(id));
    let listing = of.and_then(|of| of.get(&ground.data.confirm_root.0));
    let none = ConfirmUnits::default();
    let listing = listing.unwrap_or(&none);
    let found = &listing.units;
    let root = ground.data.confirm_root.0;
    ensure!(
        found.count == ground.data.n_units.value() && found.root() == root,
        format!(
            "{} listed units under {}",
            ground.data.n_units,
            root.to_base64()
        ),
        Code::DataRoot.of(format_args!(
            "{} under {}",
            found.count,
            found.root().to_base64()
        )),
    );
    check_corrected(ground, listing)
}

#[cfg(test)]
mod tests {
    use clover_num::Count;

    use super::*;

    #[test]
    fn the_order_of_the_format_page_holds() {
        let beacon = DrawnFrom {
            root: Root(Digest([0x33; 32])),
            size: Count::new(7).unwrap(),
        };
        let seed = seed(Digest([0x11; 32]), Root(Digest([0x22; 32])), &beacon);
        // source: hashlib.sha256(b"\x11"*32 + b"\x22"*32 + b"\x33"*32).hexdigest() of Python, and the units sorted by
        // hashlib.sha256(seed + b"\0" + unit).digest()
        assert_eq!(
            seed.to_hex(),
            "8cfa0e55b092114ec1d274d633d317f8dbce497239ae76722c0add142278ff5e"
        );
        let mut units: Vec<ItemId> = ["a", "b", "c", "ü"].map(|id| id.parse().unwrap()).into();
        units.sort_by_key(|unit| key(seed, unit));
        let names: Vec<_> = units.iter().map(ItemId::as_str).collect();
        assert_eq!(names.join(" "), "a ü c b");
    }
}
