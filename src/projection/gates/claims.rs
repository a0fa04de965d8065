//! Looks, decisions, continuations, closed families and promotions: what recorded facts demand of them.

use clover_event::id::ExperimentId;
use clover_event::id::ManifestId;
use clover_event::payload::decision::EvidenceClass;
use clover_event::payload::decision::FamilyClosed;
use clover_event::payload::decision::GateContinued;
use clover_event::payload::decision::GateDecided;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::decision::Grade;
use clover_event::payload::decision::Outcome;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::decision::PromotionRevoked;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Test;
use clover_event::payload::prereg::ManifestAmended;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::Code;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Finite;

use crate::gates::Gate;
use crate::gates::Gates;
use crate::gates::elsewhere;
use crate::gates::grade;
use crate::gates::holds;
use crate::gates::outcome_of;
use crate::gates::rules::family_of;
use crate::manifests;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

/// The test of the version in force: an opened gate has one.
fn test_in_force(record: &ManifestRecord) -> Result<&Test, Unmet> {
    let version = record.in_force().required("a version in force")?;
    test_of(version)
}

/// The test of a version of a gate's manifest, which has one.
fn test_of(version: &ManifestVersion) -> Result<&Test, Unmet> {
    version.manifest.test.as_ref().required("section test")
}

/// Whether a look may be taken now, and with these numbers.
pub(super) fn check_look(gate: &Gate, record: &ManifestRecord, said: &GateLooked) -> RuleAnswer {
    if let Some(decided) = &gate.decided {
        let found = Code::AfterTerminal.of(format_args!("one decided at seq {}", decided.seq));
        return unmet("a gate that is not decided", found);
    }
    if gate.is_terminal() {
        let seq = gate.look.as_ref().map_or(0, |look| look.seq);
        let expected = format!("gate.decided after the look at seq {seq}");
        return unmet(expected, Code::AfterTerminal.of("another look"));
    }
    if said.n.value() != gate.n || gate.n == 0 {
        let found = Code::Number.of(format_args!("n {}", said.n));
        return unmet(format!("n {}, at least 1", gate.n), found);
    }
    let test = test_in_force(record)?;
    if let Some(at) = &test.look_at
        && !at.contains(&said.n)
        && said.n != test.n_max
    {
        let planned: Vec<_> = at.iter().map(ToString::to_string).collect();
        return unmet(
            format!("a look after {} or test.n_max", planned.join(", ")),
            Code::Number.of(format_args!("n {}", said.n)),
        );
    }
    if said.alpha_micro != test.alpha_micro {
        let expected = format!(
            "test.alpha_micro {}, as registered",
            test.alpha_micro.value()
        );
        let found = Code::Alpha.of(said.alpha_micro.value());
        return unmet(expected, found);
    }
    if said.bettor != gate.test.bettor || test.bettor != gate.test.bettor {
        return unmet(
            "the bettor that the gate was opened with; another one takes a continuation",
            Code::Bettor.of("another"),
        );
    }
    if said.state_digest != gate.state_digest {
        return unmet(
            format!("state_digest {}", gate.state_digest),
            said.state_digest.to_string(),
        );
    }
    Ok(())
}

/// Whether a gate may end so.
pub(super) fn check_decision(
    gate: &Gate,
    record: &ManifestRecord,
    event: &ProposedEvent<'_>,
    said: &GateDecided,
) -> RuleAnswer {
    if let Some(decided) = &gate.decided {
        let found = Code::AfterTerminal.of(format_args!("one decided at seq {}", decided.seq));
        return unmet("a gate that is not decided", found);
    }
    ensure!(
        said.class == EvidenceClass::Exact,
        "class exact",
        "class asymptotic"
    );
    ensure!(
        (said.n.value(), said.log_e) == (gate.n, gate.log_e()),
        format!("n {} and log_e {}, as recorded", gate.n, gate.log_e()),
        format!("n {} and log_e {}", said.n, said.log_e),
    );
    match said.outcome {
        Outcome::Superseded => {
            let superseded = record.superseded_by.is_some();
            ensure!(superseded, "a manifest that another superseded", "none");
            Ok(())
        }
        Outcome::Void => {
            let late = grade::is_late(record, event.recorded_at);
            ensure!(late, "a sealed plan past its day", "none");
            Ok(())
        }
        _ => check_outcome(gate, record, said),
    }
}

/// An outcome by evidence is said under the version in force, and is the one that the last look led to.
fn check_outcome(gate: &Gate, record: &ManifestRecord, said: &GateDecided) -> RuleAnswer {
    let current = record.in_force().required("a version in force")?;
    ensure!(
        current.digest == said.digest,
        format!("version {}, in force", current.digest),
        Code::StaleVersion.of(said.digest),
    );
    let look = gate.look.as_ref().filter(|look| look.n == gate.n);
    let led = look.and_then(|look| outcome_of(look.standing));
    if led == Some(said.outcome) {
        return Ok(());
    }
    let expected = look.map_or("a look after the last observation".to_owned(), |look| {
        format!(
            "what the look at seq {} found, {}",
            look.seq,
            canon::word(&look.standing)
        )
    });
    unmet(expected, canon::word(&said.outcome))
}

/// An amendment of an opened gate leaves what is tested, on what and with whom: its order was drawn for that. And it leaves
/// the bettor: looks hold every unit's bet against the one the gate was opened with.
pub(super) fn check_amendment(state: &State, said: &ManifestAmended) -> RuleAnswer {
    let Some(gate) = state.fold::<Gates>().by_id.get(&said.manifest.manifest) else {
        // No gate of this name is opened: its order is not in use yet.
        return Ok(());
    };
    ensure!(
        said.class.value() < 3,
        format!(
            "no change of what is tested after gate.opened at seq {}; a new manifest with supersedes would be accepted",
            gate.opened_seq
        ),
        Code::Order.of(format_args!("class {}", said.class)),
    );
    let Some(test) = &said.manifest.test else {
        // The rule `manifest` refuses a gate without this section.
        return Ok(());
    };
    ensure!(
        test.bettor == gate.test.bettor,
        "the bettor that the gate was opened with; another one takes a continuation",
        Code::Bettor.of("another"),
    );
    Ok(())
}

/// What an opened gate tests is what its order was drawn for: no version of it that waited comes into force then.
pub(super) fn check_countersignature(state: &State, digest: Digest) -> RuleAnswer {
    let Some((id, record)) = state.fold::<Manifests>().of_digest(digest) else {
        // Whoever asks about the countersignature itself refuses a digest of no version, under the same rule.
        return Ok(());
    };
    let Some(gate) = state.fold::<Gates>().by_id.get(id) else {
        // Not opened yet.
        return Ok(());
    };
    let version = record.version(digest).required("a registered version")?;
    match version.class {
        Some(class) if class >= 3 => unmet(
            format!(
                "a version of what is tested that comes into force before gate.opened at seq {}",
                gate.opened_seq
            ),
            Code::Order.of(format_args!("one of class {class}")),
        ),
        _ => Ok(()),
    }
}

/// A gate with its manifest.
#[derive(Clone, Copy)]
struct GateRecord<'s> {
    gate: &'s Gate,
    record: &'s ManifestRecord,
}

/// A gate that was opened, with its manifest.
fn run_of<'s>(state: &'s State, id: &ManifestId) -> Option<GateRecord<'s>> {
    let gate = state.fold::<Gates>().by_id.get(id)?;
    let record = state.fold::<Manifests>().by_id.get(id)?;
    Some(GateRecord { gate, record })
}

/// Whether a gate may go on where another ended.
pub(super) fn check_continuation(
    state: &State,
    experiment: Option<&ExperimentId>,
    said: &GateContinued,
) -> RuleAnswer {
    let own = run_of(state, &said.gate).filter(|of| of.gate.experiment.as_ref() == experiment);
    let Some(own) = own else {
        return unmet("an opened gate of this experiment", said.gate.to_string());
    };
    let Some(parent) = run_of(state, &said.parent) else {
        return unmet("a parent that was opened", said.parent.to_string());
    };
    let gate = own.gate;
    ensure!(
        gate.n == 0 && gate.parent.is_none(),
        "a gate without observations that continues no other yet",
        format!("one with {}", gate.n),
    );
    let named = test_in_force(own.record)?.continuation_of;
    if named.is_none_or(|digest| parent.record.version(digest).is_none()) {
        let found = named.map_or("none".to_owned(), |digest| digest.to_string());
        let expected = format!("test.continuation_of a version of {}", said.parent);
        return unmet(expected, Code::UnregisteredRule.of(found));
    }
    check_carried(own, parent, said)
}

/// Whether a parent that is named ended so that its wealth may be carried on, and this is that wealth.
fn check_carried(own: GateRecord<'_>, parent: GateRecord<'_>, said: &GateContinued) -> RuleAnswer {
    if let Some(child) = &parent.gate.child {
        let found = format!("one that {child} continues");
        return unmet("a parent that no other gate continues", found);
    }
    let undecided = |one: &super::GateDecision| one.outcome == Outcome::UndecidedAtNMax;
    ensure!(
        parent.gate.decided.as_ref().is_some_and(undecided),
        "a parent that ended undecided_at_n_max",
        "another end, or none",
    );
    let version = own.record.in_force().required("a version in force")?;
    let other = parent.record.in_force();
    let other = other.required("a version of the parent in force")?;
    check_one_test(said, version, other)?;
    let bound = own.record.bound();
    let since = bound.required("a version that set what is tested")?.seq;
    let opened = parent.gate.opened_seq;
    ensure!(
        since >= opened,
        format!(
            "a manifest registered after seq {opened}, where the parent was opened: on units that its order does not hold"
        ),
        Code::AdaptiveReuse.of(format_args!("seq {since}")),
    );
    ensure!(
        own.gate.sources == parent.gate.sources,
        "the sources of the parent",
        Code::JudgeDigest.of("others"),
    );
    // A parent that ended without a look carries nothing.
    let look = parent.gate.look.as_ref();
    let wealth = look.map_or_else(Default::default, |look| look.log_wealth);
    ensure!(
        said.carried == wealth,
        "the wealth of the parent's last look",
        "another",
    );
    Ok(())
}

/// Whether the one test may go on with the wealth of the other.
fn check_one_test(
    said: &GateContinued,
    version: &ManifestVersion,
    other: &ManifestVersion,
) -> RuleAnswer {
    ensure!(
        version.h0_digest == said.h0_digest && other.h0_digest == said.h0_digest,
        format!("h0_digest {} of both", other.h0_digest),
        format!("{} of {}", version.h0_digest, said.gate),
    );
    ensure!(
        version.manifest.arms == other.manifest.arms,
        "the arms of the parent",
        Code::ArmDigest.of("others"),
    );
    let (own, parents) = (test_of(version)?, test_of(other)?);
    ensure!(
        own.alpha_micro <= parents.alpha_micro,
        format!(
            "test.alpha_micro of at most the parent's {}, which was chosen before any of this wealth",
            parents.alpha_micro.value()
        ),
        Code::Alpha.of(own.alpha_micro.value()),
    );
    let effects = [own.delta_design_micro, parents.delta_design_micro];
    if effects[0] != effects[1] && said.carried.futile.is_some() {
        let [own, parents] =
            effects.map(|effect| effect.map_or("none".to_owned(), |of| of.to_string()));
        return unmet(
            format!(
                "test.delta_design_micro {parents} of the parent, whose wealth against it is carried"
            ),
            Code::Margin.of(own),
        );
    }
    Ok(())
}

/// What a member adds to its family: log e of its last look, of which more than 0 counts only from `n_min` units on and
/// where no unit came after it; 0 without one.
pub fn evidence(gate: Option<&Gate>, record: Option<&ManifestRecord>) -> Finite {
    let Some(gate) = gate else {
        return Finite::default();
    };
    let test = record
        .and_then(ManifestRecord::in_force)
        .and_then(|of| of.manifest.test.as_ref());
    let n_min = test.map_or(u64::MAX, |test| test.n_min.value());
    let log_e = gate.log_e();
    if log_e.value() > 0.0 && (gate.n < n_min || gate.is_unlooked()) {
        return Finite::default();
    }
    log_e
}

/// What recorded facts demand of a closing; which claims it finds to hold is computed again elsewhere.
pub(super) fn check_closing(state: &State, said: &FamilyClosed) -> RuleAnswer {
    let name = &said.family;
    let (gates, manifests) = (state.fold::<Gates>(), state.fold::<Manifests>());
    let Some(family) = manifests.families.get(name) else {
        return unmet("an open family", format!("{name}, never opened"));
    };
    let terms = (family.method, family.alpha, family.members_max);
    let stated = (
        said.method,
        said.alpha_micro.value(),
        said.members_max.value(),
    );
    if terms != stated {
        let text = |(method, alpha, most): (FamilyMethod, i64, u64)| {
            format!("{} at {alpha} with {most} members", canon::word(&method))
        };
        let found = Code::FamilyBudget.of(text(stated));
        return unmet(format!("{}, as it was opened", text(terms)), found);
    }
    let members = family.joined.iter().map(|(id, _)| id);
    // A member whose gate is not opened has no units to look at.
    let opened = |id| gates.by_id.get(id).map(|gate| (id, gate));
    let mut running = members.clone().filter_map(opened);
    let together = !matches!(family.method, FamilyMethod::Elond | FamilyMethod::Spend);
    let unlooked = |gate: &Gate| together && gate.decided.is_none() && gate.is_unlooked();
    if let Some((id, gate)) = running.find(|(_, gate)| unlooked(gate)) {
        return unmet(
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
        return unmet(
            format!("every member with its last log_e: {}", text(&evidence)),
            text(&found),
        );
    }
    Ok(())
}

/// Whether what may be concluded speaks for the candidate: not that it harms, nor that it differs.
pub fn favours(kind: HypothesisKind) -> bool {
    match kind {
        HypothesisKind::Equivalent | HypothesisKind::Noninferior | HypothesisKind::Promote => true,
        HypothesisKind::Different | HypothesisKind::Kill | HypothesisKind::Measure => false,
    }
}

/// Whether a candidate may be promoted on these gates, with this grade.
pub(super) fn check_promotion(
    state: &State,
    now: Timestamp,
    author: KeyId,
    said: &PromotionIssued,
) -> RuleAnswer {
    ensure!(
        !said.gates.is_empty() && said.gates.windows(2).all(|pair| pair[0] < pair[1]),
        "gates in order, each once, at least one",
        "another list",
    );
    let mut grade = Grade::Certified;
    for id in &said.gates {
        let Some(run) = run_of(state, id) else {
            return unmet("opened gates", id.to_string());
        };
        check_ground(state, author, (id, run), said)?;
        grade = grade::least(grade, grade::graded(run.gate, run.record, state, now));
    }
    ensure!(
        grade != Grade::Void,
        "gates whose grade is not void",
        "void"
    );
    ensure!(
        said.grade == grade,
        format!("grade {}, derived", canon::word(&grade)),
        canon::word(&said.grade),
    );
    check_rests(state, said)?;
    check_counted(state, said)
}

/// Whether one gate is a ground for the promotion of this candidate by this key.
fn check_ground(
    state: &State,
    author: KeyId,
    (id, run): (&ManifestId, GateRecord<'_>),
    said: &PromotionIssued,
) -> RuleAnswer {
    let version = run.record.in_force().required("a version in force")?;
    let manifest = &version.manifest;
    let named = manifest.roles.as_ref().and_then(|roles| roles.releaser);
    manifests::check_signer("releaser", named, author)?;
    let kind = manifest.hypothesis.kind;
    ensure!(
        favours(kind),
        format!("a claim of {id} that speaks for its candidate"),
        Code::Direction.of(canon::word(&kind)),
    );
    let arms = manifest.arms.iter().flatten();
    let mut candidates = arms.filter(|arm| arm.role == ArmRole::Candidate);
    ensure!(
        candidates.any(|arm| arm.artifact_digest == said.candidate_digest),
        format!("the candidate of {id}"),
        Code::ArmDigest.of(said.candidate_digest),
    );
    check_standing(state, (id, run))
}

/// Whether a test is about exactly the units that it tests; one that nobody finds is no ground either.
pub fn is_of_its_units(test: Option<&Test>) -> bool {
    test.is_none_or(|test| test.without_replacement)
}

/// A promotion rests on more than claims about exactly the units that were tested.
fn check_rests(state: &State, said: &PromotionIssued) -> RuleAnswer {
    if !state.asks(Question::FiniteClaims) {
        return Ok(());
    }
    let manifests = state.fold::<Manifests>();
    let finite = |id: &ManifestId| {
        let bound = manifests.by_id.get(id).and_then(ManifestRecord::bound);
        is_of_its_units(bound.and_then(|of| of.manifest.test.as_ref()))
    };
    ensure!(
        !said.gates.iter().all(finite),
        "a gate about what its units were drawn from: what was recorded of exactly these units says nothing of the next ones",
        Code::Unit.of("gates about exactly their own units"),
    );
    Ok(())
}

/// A promotion says in how many gates its candidate was.
fn check_counted(state: &State, said: &PromotionIssued) -> RuleAnswer {
    if !state.asks(Question::OneFamily) {
        return Ok(());
    }
    let tests = elsewhere::tests_of(state, said.candidate_digest).len() as u64;
    let found = said.tests.map(clover_num::Count::value);
    ensure!(
        found == Some(tests),
        format!("tests {tests}, the gates that tested the candidate in this ledger"),
        found.map_or("none".to_owned(), |found| found.to_string()),
    );
    Ok(())
}

/// Whether a gate's claim holds by the procedure of its family.
fn check_standing(state: &State, (id, run): (&ManifestId, GateRecord<'_>)) -> RuleAnswer {
    let Some(decided) = &run.gate.decided else {
        return unmet(format!("a decision of {id}"), "none");
    };
    let name = family_of(run.record).required("section multiplicity")?;
    let family = state.fold::<Manifests>().families.get(name);
    let family = family.required("an open family")?;
    if matches!(family.method, FamilyMethod::Spend | FamilyMethod::Elond) {
        ensure!(
            holds(decided.outcome),
            format!("a decision of {id} that its claim holds"),
            canon::word(&decided.outcome),
        );
        return Ok(());
    }
    let Some(closed) = state.fold::<Gates>().closed.get(name) else {
        let expected = format!("family.closed of {name}, which decides for {id}");
        return unmet(expected, "none");
    };
    let against = [
        Outcome::Futile,
        Outcome::Kill,
        Outcome::Superseded,
        Outcome::Void,
    ];
    ensure!(
        !against.contains(&decided.outcome),
        format!("a decision of {id} that is not against its claim"),
        canon::word(&decided.outcome),
    );
    ensure!(
        closed.rejected.contains(id),
        format!("a claim that the closing of {name} found to hold"),
        id.to_string(),
    );
    Ok(())
}

/// Whether the promotion that is revoked stands.
pub(super) fn check_revocation(state: &State, said: &PromotionRevoked) -> RuleAnswer {
    let mut all = state.fold::<Gates>().promotions.iter();
    ensure!(
        all.any(|one| one.id == said.promotion && one.revoked_seq.is_none()),
        "a promotion that stands",
        said.promotion.to_string(),
    );
    Ok(())
}
