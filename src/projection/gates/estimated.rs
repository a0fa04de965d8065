//! Estimates of the asymptotic class beside a decided gate: which units are drawn for labels, and what recorded facts demand
//! of the event. Its interval is computed again from labels elsewhere.
//!
//! The sample is drawn from the first checkpoint after the decision: nobody could fit a prediction to who would be labelled.

use crate::event::Seen;
use crate::event::id::ItemId;
use crate::event::payload::decision::EvidenceClass;
use crate::event::payload::decision::GateEstimated;
use crate::event::payload::decision::Grade;
use crate::event::payload::gate::DrawnFrom;
use crate::event::payload::manifest::HypothesisKind;
use crate::event::payload::manifest::Manifest;
use crate::ground::digest::Digest;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::State;
use crate::ledger::no;
use crate::num::Micro;
use crate::projection::gates::Gate;
use crate::projection::gates::grade;
use crate::projection::manifests::Record;
use crate::projection::orders;
use crate::projection::orders::Orders;

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
    record: &Record,
    seen: Option<Seen>,
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
    record: &Record,
    state: &State,
    now: crate::ground::time::Timestamp,
) -> Grade {
    grade::least(Grade::Asymptotic, grade::graded(gate, record, state, now))
}

/// Judges an estimate of an opened gate.
pub(super) fn judge(
    state: &State,
    event: &Candidate<'_>,
    (gate, record): (&Gate, &Record),
    said: &GateEstimated,
) -> Judged {
    if gate.decided.is_none() {
        return no("gate.decided before an estimate beside it", "none");
    }
    if said.class != EvidenceClass::Asymptotic {
        return no("class asymptotic", "class exact");
    }
    let Some(version) = record.in_force().filter(|one| one.digest == said.digest) else {
        let found = format!("{} (E_STALE_VERSION)", said.digest);
        return no("the version in force", found);
    };
    let seen = event.event.header.seen;
    let Some(found) = drawn(state, gate, record, seen) else {
        return no("a checkpoint above gate.decided", "none (E_ORDER)");
    };
    if (said.beacon, said.seed) != found {
        let (beacon, seed) = found;
        let expected = format!("the checkpoint of size {}, seed {seed}", beacon.size);
        let found = format!("of size {}, seed {} (E_ORDER)", said.beacon.size, said.seed);
        return no(expected, found);
    }
    if let Some(judged) = registered(&version.manifest, gate, said) {
        return Some(judged);
    }
    let grade = graded(gate, record, state, event.recorded_at);
    (said.grade != grade).then(|| {
        (
            format!("grade {grade:?}, derived"),
            format!("{:?}", said.grade),
        )
    })
}

/// Judges what the manifest and the gate fix.
fn registered(manifest: &Manifest, gate: &Gate, said: &GateEstimated) -> Judged {
    let test = manifest.test.as_ref()?;
    if said.alpha_micro != test.alpha_micro {
        let expected = format!("test.alpha_micro {}", test.alpha_micro.value());
        return no(expected, format!("{} (E_ALPHA)", said.alpha_micro.value()));
    }
    let policy = manifest
        .data
        .as_ref()
        .and_then(|data| data.label_policy.as_ref());
    let Some(policy) = policy else {
        let expected = "data.label_policy, which says how units are drawn for labels";
        return no(expected, "none (E_UNREGISTERED_RULE)");
    };
    if said.pi_micro != policy.pi_min_micro {
        let expected = format!("pi_micro {}, as registered", policy.pi_min_micro.value());
        return no(expected, said.pi_micro.value().to_string());
    }
    if gate
        .sources
        .first()
        .is_none_or(|source| source.judge.is_none())
    {
        return no("a gate on the scores of a judge", "one on labels");
    }
    let (n, labels) = (said.n.value(), said.labels.value());
    if n == 0 || n > gate.n {
        let expected = format!("n from 1 to {}, the units observed", gate.n);
        return no(expected, format!("n {n} (E_N)"));
    }
    if labels < LABELS_MIN || labels > n {
        let expected = format!("{LABELS_MIN} to {n} labelled units");
        return no(expected, format!("{labels} (E_N)"));
    }
    let interval = (said.cs_lo_micro.value(), said.cs_hi_micro.value());
    if interval.0 > interval.1 {
        let found = format!("{} to {}", interval.0, interval.1);
        return no("an interval from its lower end", found);
    }
    let shows = shows(manifest, interval);
    (said.shows != shows).then(|| (format!("shows {shows}"), said.shows.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::id::Root;
    use crate::num::Count;

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
