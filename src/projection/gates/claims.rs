//! Looks, decisions, continuations, closed families and promotions: what recorded facts demand of them.

use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::decision::EvidenceClass;
use crate::event::payload::decision::FamilyClosed;
use crate::event::payload::decision::GateContinued;
use crate::event::payload::decision::GateDecided;
use crate::event::payload::decision::GateLooked;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::Outcome;
use crate::event::payload::decision::PromotionIssued;
use crate::event::payload::decision::PromotionRevoked;
use crate::event::payload::manifest::ArmRole;
use crate::event::payload::manifest::FamilyMethod;
use crate::event::payload::manifest::HypothesisKind;
use crate::event::payload::prereg::ManifestAmended;
use crate::ground::digest::Digest;
use crate::ground::sign::KeyId;
use crate::ground::time::Timestamp;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::num::Finite;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::gates::elsewhere;
use crate::projection::gates::grade;
use crate::projection::gates::holds;
use crate::projection::gates::outcome_of;
use crate::projection::gates::rules::family_of;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::projection::manifests::Version;

pub(super) fn looked(gate: &Gate, record: &Record, said: &GateLooked) -> Judged {
    if let Some(decided) = &gate.decided {
        let found = format!("one decided at seq {} (E_AFTER_TERMINAL)", decided.seq);
        return no("a gate that is not decided", found);
    }
    if gate.is_terminal() {
        let seq = gate.look.as_ref().map_or(0, |look| look.seq);
        let expected = format!("gate.decided after the look at seq {seq}");
        return no(expected, "another look (E_AFTER_TERMINAL)");
    }
    if said.n.value() != gate.n || gate.n == 0 {
        let found = format!("n {} (E_N)", said.n);
        return no(format!("n {}, at least 1", gate.n), found);
    }
    let version = record.in_force()?;
    let test = version.manifest.test.as_ref()?;
    if let Some(at) = &test.look_at
        && !at.contains(&said.n)
        && said.n != test.n_max
    {
        let planned: Vec<_> = at.iter().map(ToString::to_string).collect();
        return no(
            format!("a look after {} or test.n_max", planned.join(", ")),
            format!("n {} (E_N)", said.n),
        );
    }
    if said.alpha_micro != test.alpha_micro {
        let expected = format!(
            "test.alpha_micro {}, as registered",
            test.alpha_micro.value()
        );
        let found = format!("{} (E_ALPHA)", said.alpha_micro.value());
        return no(expected, found);
    }
    if said.bettor != gate.test.bettor || test.bettor != gate.test.bettor {
        return no(
            "the bettor that the gate was opened with; another one takes a continuation",
            "another (E_BETTOR)",
        );
    }
    if said.state_digest != gate.state_digest {
        return no(
            format!("state_digest {}", gate.state_digest),
            said.state_digest.to_string(),
        );
    }
    None
}

pub(super) fn decided(
    gate: &Gate,
    record: &Record,
    event: &Candidate<'_>,
    said: &GateDecided,
) -> Judged {
    if let Some(decided) = &gate.decided {
        let found = format!("one decided at seq {} (E_AFTER_TERMINAL)", decided.seq);
        return no("a gate that is not decided", found);
    }
    if said.class != EvidenceClass::Exact {
        return no("class exact", "class asymptotic");
    }
    if (said.n.value(), said.log_e) != (gate.n, gate.log_e()) {
        return no(
            format!("n {} and log_e {}, as recorded", gate.n, gate.log_e()),
            format!("n {} and log_e {}", said.n, said.log_e),
        );
    }
    match said.outcome {
        Outcome::Superseded => record
            .superseded_by
            .is_none()
            .then(|| ("a manifest that another superseded".into(), "none".into())),
        Outcome::Void => {
            let late = grade::is_late(record, event.recorded_at);
            (!late).then(|| ("a sealed plan past its day".into(), "none".into()))
        }
        outcome => {
            if let Some(judged) = record.in_force().and_then(|current| {
                (current.digest != said.digest).then(|| {
                    let found = format!("{} (E_STALE_VERSION)", said.digest);
                    (format!("version {}, in force", current.digest), found)
                })
            }) {
                return Some(judged);
            }
            let look = gate.look.as_ref().filter(|look| look.n == gate.n);
            let led = look.and_then(|look| outcome_of(look.standing));
            if led == Some(outcome) {
                return None;
            }
            let expected = look.map_or("a look after the last observation".to_owned(), |look| {
                format!(
                    "what the look at seq {} found, {:?}",
                    look.seq, look.standing
                )
            });
            no(expected, format!("{outcome:?}"))
        }
    }
}

/// An amendment of an opened gate leaves what is tested, on what and with whom: its order was drawn for that. And it leaves
/// the bettor: looks hold every unit's bet against the one the gate was opened with.
pub(super) fn amended(state: &State, said: &ManifestAmended) -> Judged {
    let gate = state.fold::<Gates>().by_id.get(&said.manifest.manifest)?;
    if said.class.value() >= 3 {
        return no(
            format!(
                "no change of what is tested after gate.opened at seq {}; a new manifest with supersedes would be accepted",
                gate.opened_seq
            ),
            format!("class {} (E_ORDER)", said.class),
        );
    }
    let test = said.manifest.test.as_ref()?;
    if test.bettor == gate.test.bettor {
        return None;
    }
    no(
        "the bettor that the gate was opened with; another one takes a continuation",
        "another (E_BETTOR)",
    )
}

/// What an opened gate tests is what its order was drawn for: no version of it that waited comes into force then.
pub(super) fn countersigned(state: &State, digest: Digest) -> Judged {
    let (id, record) = state.fold::<Manifests>().of_digest(digest)?;
    let class = record.version(digest)?.class.filter(|class| *class >= 3)?;
    let opened = state.fold::<Gates>().by_id.get(id)?.opened_seq;
    no(
        format!(
            "a version of what is tested that comes into force before gate.opened at seq {opened}"
        ),
        format!("one of class {class} (E_ORDER)"),
    )
}

/// Whether a gate may go on where another ended.
pub(super) fn continued(
    state: &State,
    experiment: Option<&ExperimentId>,
    said: &GateContinued,
) -> Judged {
    let (gates, manifests) = (state.fold::<Gates>(), state.fold::<Manifests>());
    let of = |id: &ManifestId| gates.by_id.get(id).zip(manifests.by_id.get(id));
    let Some((gate, record)) =
        of(&said.gate).filter(|(gate, _)| gate.experiment.as_ref() == experiment)
    else {
        return no("an opened gate of this experiment", said.gate.to_string());
    };
    let Some((parent, parent_record)) = of(&said.parent) else {
        return no("a parent that was opened", said.parent.to_string());
    };
    if gate.n > 0 || gate.parent.is_some() {
        return no(
            "a gate without observations that continues no other yet",
            format!("one with {}", gate.n),
        );
    }
    let version = record.in_force()?;
    let named = version.manifest.test.as_ref()?.continuation_of;
    if named.is_none_or(|digest| parent_record.version(digest).is_none()) {
        let found = named.map_or("none".to_owned(), |digest| digest.to_string());
        let expected = format!("test.continuation_of a version of {}", said.parent);
        return no(expected, format!("{found} (E_UNREGISTERED_RULE)"));
    }
    if let Some(child) = &parent.child {
        let found = format!("one that {child} continues");
        return no("a parent that no other gate continues", found);
    }
    let other = |one: &super::Decided| one.outcome != Outcome::UndecidedAtNMax;
    if parent.decided.as_ref().is_none_or(other) {
        return no(
            "a parent that ended undecided_at_n_max",
            "another end, or none",
        );
    }
    let other = parent_record.in_force()?;
    if let Some(judged) = goes_on(said, version, other) {
        return Some(judged);
    }
    let since = record.bound()?.seq;
    if since < parent.opened_seq {
        return no(
            format!(
                "a manifest registered after seq {}, where the parent was opened: on units that its order does not hold",
                parent.opened_seq
            ),
            format!("seq {since} (E_ADAPTIVE_REUSE)"),
        );
    }
    if gate.sources != parent.sources {
        return no("the sources of the parent", "others (E_JUDGE_DIGEST)");
    }
    let wealth = parent
        .look
        .as_ref()
        .map(|look| look.log_wealth)
        .unwrap_or_default();
    if said.carried != wealth {
        return no("the wealth of the parent's last look", "another");
    }
    None
}

/// Whether the one test may go on with the wealth of the other.
fn goes_on(said: &GateContinued, version: &Version, other: &Version) -> Judged {
    if version.h0_digest != said.h0_digest || other.h0_digest != said.h0_digest {
        return no(
            format!("h0_digest {} of both", other.h0_digest),
            format!("{} of {}", version.h0_digest, said.gate),
        );
    }
    if version.manifest.arms != other.manifest.arms {
        return no("the arms of the parent", "others (E_ARM_DIGEST)");
    }
    let [own, parents] = [version, other].map(|of| of.manifest.alpha().unwrap_or(0));
    if own > parents {
        return no(
            format!(
                "test.alpha_micro of at most the parent's {parents}, which was chosen before any of this wealth"
            ),
            format!("{own} (E_ALPHA)"),
        );
    }
    let effects = [version, other].map(|of| of.manifest.test.as_ref()?.delta_design_micro);
    if effects[0] != effects[1] && said.carried.futile.is_some() {
        let [own, parents] =
            effects.map(|effect| effect.map_or("none".to_owned(), |of| of.to_string()));
        return no(
            format!(
                "test.delta_design_micro {parents} of the parent, whose wealth against it is carried"
            ),
            format!("{own} (E_MARGIN)"),
        );
    }
    None
}

/// What a member adds to its family: log e of its last look, of which more than 0 counts only from `n_min` units on and
/// where no unit came after it; 0 without one.
pub fn evidence(gate: Option<&Gate>, record: Option<&Record>) -> Finite {
    let Some(gate) = gate else {
        return Finite::default();
    };
    let test = record
        .and_then(Record::in_force)
        .and_then(|of| of.manifest.test.as_ref());
    let n_min = test.map_or(u64::MAX, |test| test.n_min.value());
    let log_e = gate.log_e();
    if log_e.value() > 0.0 && (gate.n < n_min || gate.is_unlooked()) {
        return Finite::default();
    }
    log_e
}

/// What recorded facts demand of a closing; which claims it finds to hold is computed again elsewhere.
pub(super) fn closed(state: &State, said: &FamilyClosed) -> Judged {
    let name = &said.family;
    let (gates, manifests) = (state.fold::<Gates>(), state.fold::<Manifests>());
    let Some(family) = manifests.families.get(name) else {
        return no("an open family", format!("{name}, never opened"));
    };
    let terms = (family.method, family.alpha, family.members_max);
    let stated = (
        said.method,
        said.alpha_micro.value(),
        said.members_max.value(),
    );
    if terms != stated {
        let text = |(method, alpha, most): (FamilyMethod, i64, u64)| {
            format!("{method:?} at {alpha} with {most} members")
        };
        let found = format!("{} (E_FAMILY_BUDGET)", text(stated));
        return no(format!("{}, as it was opened", text(terms)), found);
    }
    let members = family.joined.iter().map(|(id, _)| id);
    let mut running = members
        .clone()
        .filter_map(|id| Some((id, gates.by_id.get(id)?)));
    let together = !matches!(family.method, FamilyMethod::Elond | FamilyMethod::Spend);
    let unlooked = |gate: &Gate| together && gate.decided.is_none() && gate.is_unlooked();
    if let Some((id, gate)) = running.find(|(_, gate)| unlooked(gate)) {
        return no(
            format!("a look at {id} after its {} units, or its decision", gate.n),
            "units that no look has seen: which of its looks counts is not chosen afterwards",
        );
    }
    let evidence: Vec<_> = members
        .map(|id| {
            (
                id.clone(),
                evidence(gates.by_id.get(id), manifests.by_id.get(id)),
            )
        })
        .collect();
    let found: Vec<_> = said
        .evidence
        .iter()
        .map(|of| (of.member.clone(), of.log_e))
        .collect();
    if evidence != found {
        let text = |list: &[(ManifestId, Finite)]| {
            let list = list.iter().map(|(id, log_e)| format!("{id} {log_e}"));
            list.collect::<Vec<_>>().join(", ")
        };
        return no(
            format!("every member with its last log_e: {}", text(&evidence)),
            text(&found),
        );
    }
    None
}

/// Whether what may be concluded speaks for the candidate: not that it harms, nor that it differs.
pub fn favours(kind: HypothesisKind) -> bool {
    match kind {
        HypothesisKind::Equivalent | HypothesisKind::Noninferior | HypothesisKind::Promote => true,
        HypothesisKind::Different | HypothesisKind::Kill | HypothesisKind::Measure => false,
    }
}

pub(super) fn promoted(
    state: &State,
    now: Timestamp,
    author: KeyId,
    said: &PromotionIssued,
) -> Judged {
    let (gates, manifests) = (state.fold::<Gates>(), state.fold::<Manifests>());
    if said.gates.is_empty() || !said.gates.windows(2).all(|pair| pair[0] < pair[1]) {
        return no("gates in order, each once, at least one", "another list");
    }
    let mut grade = Grade::Certified;
    for id in &said.gates {
        let found = gates.by_id.get(id).zip(manifests.by_id.get(id));
        let Some((gate, record)) = found else {
            return no("opened gates", id.to_string());
        };
        let manifest = &record.in_force()?.manifest;
        let named = manifest.roles.as_ref().and_then(|roles| roles.releaser);
        if let Some(judged) = manifests::signer("releaser", named, author) {
            return Some(judged);
        }
        let kind = manifest.hypothesis.kind;
        if !favours(kind) {
            return no(
                format!("a claim of {id} that speaks for its candidate"),
                format!("{kind:?} (E_DIRECTION)"),
            );
        }
        let arms = manifest.arms.iter().flatten();
        let mut candidates = arms.filter(|arm| arm.role == ArmRole::Candidate);
        if !candidates.any(|arm| arm.artifact_digest == said.candidate_digest) {
            let expected = format!("the candidate of {id}");
            return no(
                expected,
                format!("{} (E_ARM_DIGEST)", said.candidate_digest),
            );
        }
        if let Some(judged) = stands(gates, manifests, (id, gate, record)) {
            return Some(judged);
        }
        grade = grade::least(grade, grade::graded(gate, record, state, now));
    }
    if grade == Grade::Void {
        return no("gates whose grade is not void", "void");
    }
    if said.grade != grade {
        return no(
            format!("grade {grade:?}, derived"),
            format!("{:?}", said.grade),
        );
    }
    rests(state, said).or_else(|| counted(state, said))
}

/// A promotion rests on more than claims about exactly the units that were tested.
fn rests(state: &State, said: &PromotionIssued) -> Judged {
    let manifests = state.fold::<Manifests>();
    let finite = |id: &ManifestId| {
        let bound = manifests.by_id.get(id).and_then(Record::bound);
        let test = bound.and_then(|of| of.manifest.test.as_ref());
        test.is_none_or(|test| test.without_replacement)
    };
    if !state.asks(Question::FiniteClaims) || !said.gates.iter().all(finite) {
        return None;
    }
    no(
        "a gate about what its units were drawn from: what was recorded of exactly these units says nothing of the next ones",
        "gates about exactly their own units (E_UNIT)",
    )
}

/// A promotion says in how many gates its candidate was.
fn counted(state: &State, said: &PromotionIssued) -> Judged {
    if !state.asks(Question::OneFamily) {
        return None;
    }
    let tests = elsewhere::tests_of(state, said.candidate_digest).len() as u64;
    let found = said.tests.map(crate::num::Count::value);
    if found == Some(tests) {
        return None;
    }
    no(
        format!("tests {tests}, the gates that tested the candidate in this ledger"),
        found.map_or("none".to_owned(), |found| found.to_string()),
    )
}

/// Whether a gate's claim holds by the procedure of its family.
fn stands(
    gates: &Gates,
    manifests: &Manifests,
    (id, gate, record): (&ManifestId, &Gate, &Record),
) -> Judged {
    let Some(decided) = &gate.decided else {
        return no(format!("a decision of {id}"), "none");
    };
    let family = family_of(record).and_then(|name| Some((name, manifests.families.get(name)?)));
    let alone = family.is_none_or(|(_, family)| {
        matches!(family.method, FamilyMethod::Spend | FamilyMethod::Elond)
    });
    if alone {
        if holds(decided.outcome) {
            return None;
        }
        return no(
            format!("a decision of {id} that its claim holds"),
            format!("{:?}", decided.outcome),
        );
    }
    let (name, _) = family?;
    let Some(closed) = gates.closed.get(name) else {
        return no(
            format!("family.closed of {name}, which decides for {id}"),
            "none",
        );
    };
    let against = [
        Outcome::Futile,
        Outcome::Kill,
        Outcome::Superseded,
        Outcome::Void,
    ];
    if against.contains(&decided.outcome) {
        return no(
            format!("a decision of {id} that is not against its claim"),
            format!("{:?}", decided.outcome),
        );
    }
    if closed.rejected.contains(id) {
        return None;
    }
    no(
        format!("a claim that the closing of {name} found to hold"),
        id.to_string(),
    )
}

pub(super) fn revoked(state: &State, said: &PromotionRevoked) -> Judged {
    let mut all = state.fold::<Gates>().promotions.iter();
    if all.any(|one| one.id == said.promotion && one.revoked_seq.is_none()) {
        return None;
    }
    no("a promotion that stands", said.promotion.to_string())
}
