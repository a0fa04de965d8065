//! Estimates of the asymptotic class beside a decided gate: which units are drawn for labels, and what recorded facts demand
//! of the event. Its interval is computed again from labels elsewhere.
//!
//! The sample is drawn from the first checkpoint after the decision: nobody could fit a prediction to who would be labelled.

use clover_event::SeenCheckpoint;
use clover_event::id::ItemId;
use clover_event::payload::decision::EvidenceClass;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::decision::Grade;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Manifest;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Code;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Micro;

use crate::gates::Gate;
use crate::gates::grade;
use crate::manifests::ManifestRecord;
use crate::orders;
use crate::orders::Orders;

/// Labelled units before which nothing is said.
pub const LABELS_MIN: u64 = 25;

/// What units are hashed with: SHA-256 of the seed of their order and the root of the checkpoint, 32 bytes each.
pub fn seed(order: Digest, beacon: &DrawnFrom) -> Digest {
    let mut bytes = order.0.to_vec();
    bytes.extend_from_slice(&beacon.root.0.0);
    Digest::sha256(&bytes)
}

/// Whether a unit is drawn for labels: the first 8 bytes of SHA-256 of the seed, a byte 1 and the unit's UTF-8, as a share of
/// 2^64, lie below `pi`.
pub fn is_drawn(seed: Digest, pi: Micro, unit: &ItemId) -> bool {
    let mut bytes = seed.0.to_vec();
    bytes.push(1);
    bytes.extend_from_slice(unit.as_str().as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = Digest::sha256(&bytes).0;
    let place = u128::from(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    let pi = u128::try_from(pi.value()).unwrap_or(0);
    place * 1_000_000 < pi << 64
}

/// The checkpoint that the sample of a decided gate is drawn from, and the seed. Where no entry has named one yet, an entry
/// that names `seen` does.
pub fn drawn(
    state: &State,
    gate: &Gate,
    record: &ManifestRecord,
    seen: Option<SeenCheckpoint>,
) -> Option<(DrawnFrom, Digest)> {
    let decided = gate.decided.as_ref()?;
    let (_, order) = state.fold::<Orders>().of(record)?;
    let beacon = orders::beacon_above(state, decided.seq, seen)?;
    Some((beacon, seed(order.seed, &beacon)))
}

/// Whether an interval of the mean improvement lies beyond every null hypothesis of the manifest's claim.
pub fn shows(manifest: &Manifest, (low, high): (i64, i64)) -> bool {
    let margin = manifest.test.as_ref().map(|test| test.null_margin_micro);
    let Some(margin) = margin.map(Micro::value) else {
        return false;
    };
    match manifest.hypothesis.kind {
        HypothesisKind::Promote | HypothesisKind::Noninferior => low > margin,
        HypothesisKind::Different => low > margin || high < margin,
        HypothesisKind::Equivalent => low > -margin && high < margin,
        HypothesisKind::Kill => high < 0,
        HypothesisKind::Measure => false,
    }
}

/// The grade of what an estimate shows: that of the gate, asymptotic at best.
pub fn graded(
    gate: &Gate,
    record: &ManifestRecord,
    state: &State,
    now: clover_ground::time::Timestamp,
) -> Grade {
    grade::least(Grade::Asymptotic, grade::graded(gate, record, state, now))
}

/// Whether an estimate may be said of an opened gate.
pub(super) fn check(
    state: &State,
    event: &ProposedEvent<'_>,
    (gate, record): (&Gate, &ManifestRecord),
    said: &GateEstimated,
) -> RuleAnswer {
    ensure!(
        gate.decided.is_some(),
        "gate.decided before an estimate beside it",
        "none"
    );
    ensure!(
        said.class == EvidenceClass::Asymptotic,
        "class asymptotic",
        "class exact"
    );
    let Some(version) = record.in_force().filter(|one| one.digest == said.digest) else {
        let found = Code::StaleVersion.of(said.digest);
        return unmet("the version in force", found);
    };
    let seen = event.event.header.seen;
    let Some(found) = drawn(state, gate, record, seen) else {
        return unmet("a checkpoint above gate.decided", Code::Order.of("none"));
    };
    if (said.beacon, said.seed) != found {
        let (beacon, seed) = found;
        let expected = format!("the checkpoint of size {}, seed {seed}", beacon.size);
        let found = Code::Order.of(format_args!(
            "of size {}, seed {}",
            said.beacon.size, said.seed
        ));
        return unmet(expected, found);
    }
    check_registered(&version.manifest, gate, said)?;
    let grade = graded(gate, record, state, event.recorded_at);
    ensure!(
        said.grade == grade,
        format!("grade {}, derived", canon::word(&grade)),
        canon::word(&said.grade),
    );
    Ok(())
}

/// Whether an estimate is what the manifest and the gate fix.
fn check_registered(manifest: &Manifest, gate: &Gate, said: &GateEstimated) -> RuleAnswer {
    let test = manifest.test.as_ref().required("section test")?;
    ensure!(
        said.alpha_micro == test.alpha_micro,
        format!("test.alpha_micro {}", test.alpha_micro.value()),
        Code::Alpha.of(said.alpha_micro.value()),
    );
    let data = manifest.data.as_ref();
    let Some(policy) = data.and_then(|data| data.label_policy.as_ref()) else {
        let expected = "data.label_policy, which says how units are drawn for labels";
        return unmet(expected, Code::UnregisteredRule.of("none"));
    };
    ensure!(
        said.pi_micro == policy.pi_min_micro,
        format!("pi_micro {}, as registered", policy.pi_min_micro.value()),
        said.pi_micro.value().to_string(),
    );
    let source = gate.sources.first();
    ensure!(
        source.is_some_and(|source| source.judge.is_some()),
        "a gate on the scores of a judge",
        "one on labels",
    );
    let (n, labels) = (said.n.value(), said.labels.value());
    ensure!(
        (1..=gate.n).contains(&n),
        format!("n from 1 to {}, the units observed", gate.n),
        Code::Number.of(format_args!("n {n}")),
    );
    ensure!(
        (LABELS_MIN..=n).contains(&labels),
        format!("{LABELS_MIN} to {n} labelled units"),
        Code::Number.of(labels),
    );
    let interval = (said.cs_lo_micro.value(), said.cs_hi_micro.value());
    ensure!(
        interval.0 <= interval.1,
        "an interval from its lower end",
        format!("{} to {}", interval.0, interval.1),
    );
    let shows = shows(manifest, interval);
    ensure!(
        said.shows == shows,
        format!("shows {shows}"),
        said.shows.to_string()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use clover_event::id::Root;
    use clover_num::Count;

    use super::*;

    #[test]
    fn the_sample_of_the_format_page_holds() {
        let beacon = DrawnFrom {
            root: Root(Digest([0x33; 32])),
            size: Count::new(7).unwrap(),
        };
        let seed = seed(Digest([0x44; 32]), &beacon);
        // source: hashlib.sha256(b"\x44"*32 + b"\x33"*32) of Python, and of the units those whose
        // int.from_bytes(hashlib.sha256(seed + b"\1" + unit).digest()[:8], "big") is below 2**63
        assert_eq!(
            seed.to_hex(),
            "8c0dd7494fdf000151a850d34a888e1d974ee33abe80b5732779d71fe86278b7"
        );
        let drawn =
            |name: &str| is_drawn(seed, Micro::new(500_000).unwrap(), &name.parse().unwrap());
        let names = ["a", "b", "c", "d", "e", "ü"]
            .into_iter()
            .filter(|name| drawn(name));
        assert_eq!(names.collect::<Vec<_>>().join(" "), "a c ü");
        let all = |pi| is_drawn(seed, Micro::new(pi).unwrap(), &"a".parse().unwrap());
        assert!(all(1_000_000) && !all(0));
    }
}
