//! The rules `gate`, `observation`, `look`, `decision` and `promotion`, as far as recorded facts decide them. What
//! looks and closings are worth is computed again elsewhere, under the same names.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::gate::GateOpened;
use crate::event::payload::manifest::ArmRole;
use crate::event::payload::manifest::HypothesisKind;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Side;
use crate::event::payload::manifest::Template;
use crate::ground::digest::Digest;
use crate::ground::sign::KeyId;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Fact;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::gates::claims;
use crate::projection::gates::early;
use crate::projection::gates::elsewhere;
use crate::projection::gates::estimated;
use crate::projection::gates::observed;
use crate::projection::manifests;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::projection::orders;
use crate::projection::orders::Orders;

/// The rules of gates.
#[derive(Clone, Copy, Debug)]
pub struct Gating;

impl Rule for Gating {
    fn tells(&self) -> &'static [Kind] {
        &[Kind::GateObserved]
    }

    /// An observation is the gate's next one or a later one.
    fn is_unsaid(&self, state: &State, payload: &Payload) -> bool {
        let Payload::GateObserved(said) = payload else {
            return false;
        };
        let gate = state.fold::<Gates>().by_id.get(&said.gate);
        gate.is_some_and(|gate| said.t.value() > gate.n)
    }

    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let header = &event.event.header;
        let acts = |gate: &ManifestId, digest: Digest| Acts {
            author: header.author,
            digest,
            experiment: header.experiment.as_ref(),
            gate: gate.clone(),
        };
        let mut judge = |rule, judged: Judged| {
            if let Some((expected, found)) = judged {
                breaches.push(Breach::new(rule, expected, found));
            }
        };
        match &event.event.payload {
            Payload::GateOpened(said) => {
                let acts = acts(&said.gate, said.digest);
                judge(RuleName::StaleVersion, acts.stale(state));
                judge(RuleName::Gate, opened(state, &acts, said));
            }
            Payload::GateContinued(said) => {
                let experiment = header.experiment.as_ref();
                judge(RuleName::Gate, claims::continued(state, experiment, said));
            }
            Payload::GateObserved(said) => {
                let acts = acts(&said.gate, said.digest);
                judge(RuleName::StaleVersion, acts.stale(state));
                match acts.known(state) {
                    Ok((gate, record)) => {
                        judge(RuleName::Observation, observed::judge(gate, record, said));
                        judge(RuleName::Observation, ordered(state, gate, record));
                    }
                    Err(judged) => judge(RuleName::Gate, judged),
                }
            }
            Payload::GateLooked(said) => {
                let acts = acts(&said.gate, said.digest);
                judge(RuleName::StaleVersion, acts.stale(state));
                match acts.known(state) {
                    Ok((gate, record)) => judge(RuleName::Look, claims::looked(gate, record, said)),
                    Err(judged) => judge(RuleName::Gate, judged),
                }
            }
            Payload::GateDecided(said) => {
                let acts = acts(&said.gate, said.digest);
                match acts.known(state) {
                    Ok((gate, record)) => {
                        judge(
                            RuleName::Decision,
                            claims::decided(gate, record, event, said),
                        );
                    }
                    Err(judged) => judge(RuleName::Gate, judged),
                }
            }
            Payload::GateEstimated(said) => {
                let acts = acts(&said.gate, said.digest);
                match acts.opened(state) {
                    Ok(of) => judge(RuleName::Decision, estimated::judge(state, event, of, said)),
                    Err(judged) => judge(RuleName::Gate, judged),
                }
            }
            _ => {
                if let Some((rule, judged)) = beside(state, event) {
                    judge(rule, judged);
                }
            }
        }
    }

    fn demands(&self, state: &State, event: &Candidate<'_>, facts: &mut Vec<Fact>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let gates = state.fold::<Gates>();
        match &event.event.payload {
            Payload::ExposureOpened(said) => facts.extend(early::placed(state, event.seq, said)),
            Payload::ScoreRecorded(_) | Payload::LabelRevealed(_) => {
                early::exposed_first(state, experiment, &event.event.payload, facts);
                let mut all = gates.by_id.values();
                if all.any(|gate| gate.experiment.as_ref() == Some(experiment))
                    && let Some(value) = event.event.payload.measured()
                    && let Some(digest) = event.event.natural_key()
                {
                    facts.push(Fact::Says { digest, value });
                }
            }
            Payload::GateObserved(said) => {
                let record = state.fold::<Manifests>().by_id.get(&said.gate);
                let Some((gate, record)) = gates.by_id.get(&said.gate).zip(record) else {
                    return;
                };
                if let Some((bound, _)) = state.fold::<Orders>().of(record) {
                    facts.push(Fact::Needs {
                        digest: orders::placed(
                            bound.digest,
                            said.t.value().saturating_sub(1),
                            &said.unit,
                        ),
                        before: event.seq,
                        rule: RuleName::Observation,
                    });
                    let data = bound.manifest.data.as_ref();
                    if let Some((stratum, data)) = said.stratum.as_ref().zip(data) {
                        let of = (&said.unit, stratum);
                        facts.push(Fact::Needs {
                            digest: orders::stratified(Some(experiment), data.confirm_root, of),
                            before: event.seq,
                            rule: RuleName::Observation,
                        });
                    }
                }
                if let Some(version) = record.in_force()
                    && let Some(exposed) = record.exposed_seq(said.t.value())
                {
                    let said = (&**said, exposed);
                    observed::facts(experiment, &version.manifest, gate, said, facts);
                }
            }
            _ => {}
        }
    }
}

/// What is asked of events that act on no opened gate by themselves: the rule, and what stands against it.
fn beside(state: &State, event: &Candidate<'_>) -> Option<(RuleName, Judged)> {
    let header = &event.event.header;
    Some(match &event.event.payload {
        payload @ Payload::ScoreRecorded(_) => {
            let experiment = header.experiment.as_ref();
            (
                RuleName::Exposure,
                early::scaled(state, experiment, payload),
            )
        }
        Payload::ExposureOpened(said) => (RuleName::Exposure, early::named(state, said)),
        Payload::ManifestAmended(said) => (RuleName::Amendment, claims::amended(state, said)),
        Payload::ManifestCountersigned(said) => (
            RuleName::Countersign,
            claims::countersigned(state, said.digest),
        ),
        Payload::FamilyClosed(said) => (RuleName::Family, claims::closed(state, said)),
        Payload::PromotionIssued(said) => {
            let (now, by) = (event.recorded_at, header.author);
            (RuleName::Promotion, claims::promoted(state, now, by, said))
        }
        Payload::PromotionRevoked(said) => (RuleName::Promotion, claims::revoked(state, said)),
        _ => return None,
    })
}

/// Who acts on which gate, under which version.
struct Acts<'a> {
    author: KeyId,
    digest: Digest,
    experiment: Option<&'a ExperimentId>,
    gate: ManifestId,
}

impl Acts<'_> {
    /// The version in force is named, and its manifest is not superseded.
    fn stale(&self, state: &State) -> Judged {
        manifests::current(state.fold::<Manifests>(), self.digest)
    }

    /// The opened gate with its manifest, when this key may act on it under this digest, and its family is not closed.
    fn known<'s>(&self, state: &'s State) -> Result<(&'s Gate, &'s Record), Judged> {
        let (gate, record) = self.opened(state)?;
        let gates = state.fold::<Gates>();
        if let Some(closed) = family_of(record).and_then(|name| gates.closed.get(name)) {
            let found = format!("closed at seq {} (E_AFTER_TERMINAL)", closed.seq);
            return Err(no("a gate of a family that is not closed", found));
        }
        Ok((gate, record))
    }

    /// The same, of a family that may be closed.
    fn opened<'s>(&self, state: &'s State) -> Result<(&'s Gate, &'s Record), Judged> {
        let id = &self.gate;
        let gates = state.fold::<Gates>();
        let found = gates
            .by_id
            .get(id)
            .zip(state.fold::<Manifests>().by_id.get(id));
        let found = found.filter(|(gate, _)| gate.experiment.as_ref() == self.experiment);
        let Some((gate, record)) = found else {
            return Err(no("an opened gate of this experiment", id.to_string()));
        };
        if record.version(self.digest).is_none() {
            let expected = format!("the digest of a version of {id}");
            return Err(no(expected, self.digest.to_string()));
        }
        if let Some(judged) = arbiter(record, self.author) {
            return Err(Some(judged));
        }
        Ok((gate, record))
    }
}

fn arbiter(record: &Record, author: KeyId) -> Judged {
    let roles = record.in_force()?.manifest.roles.as_ref()?;
    manifests::signer("arbiter", roles.arbiter, author)
}

/// The family that a manifest belongs to.
pub(super) fn family_of(record: &Record) -> Option<&crate::event::id::FamilyId> {
    let first = record.versions.first()?.manifest.multiplicity.as_ref()?;
    Some(&first.family)
}

fn opened(state: &State, acts: &Acts<'_>, said: &GateOpened) -> Judged {
    let drawn = || -> Judged {
        let record = state.fold::<Manifests>().by_id.get(&said.gate)?;
        let none = state.fold::<Orders>().of(record).is_none();
        none.then(|| no("order.drawn before the gate is opened", "none (E_ORDER)"))
            .flatten()
    };
    let but_for_order = may_open(state, (acts.author, acts.experiment), said);
    but_for_order.or_else(drawn)
}

/// What stands against the opening of a gate, whatever became of its order so far: it is asked before that is drawn, too.
pub fn may_open(
    state: &State,
    (author, experiment): (KeyId, Option<&ExperimentId>),
    said: &GateOpened,
) -> Judged {
    let id = &said.gate;
    let record = state.fold::<Manifests>().by_id.get(id);
    let gate = |record: &&Record| {
        let template = |one: &manifests::Version| one.manifest.template == Template::Gate;
        record.experiment.as_ref() == experiment && record.versions.first().is_some_and(template)
    };
    let Some(record) = record.filter(gate) else {
        return no("a gate's manifest of this experiment", id.to_string());
    };
    let Some(version) = record.in_force() else {
        return no(
            "a manifest that its custodian has countersigned",
            format!("{id}, not countersigned"),
        );
    };
    if record.version(said.digest).is_none() {
        let expected = format!("the digest of a version of {id}");
        return no(expected, said.digest.to_string());
    }
    if let Some(judged) = arbiter(record, author) {
        return Some(judged);
    }
    if let Some(look) = &record.first_look {
        let found = format!("a first look at seq {} (E_EXPOSURE)", look.seq);
        return no("a gate that is opened before any unit is exposed", found);
    }
    let stated = Manifest {
        test: Some(said.test.clone()),
        ..version.manifest.clone()
    };
    if let Some(change) = manifests::changes(&version.manifest, &stated).first() {
        let text = |value: &Option<String>| value.clone().unwrap_or("none".to_owned());
        return no(
            format!("{} {}, as registered", change.path, text(&change.from)),
            format!("{} ({})", text(&change.to), change.code()),
        );
    }
    sources(&version.manifest, said)
        .or_else(|| testable(&version.manifest))
        .or_else(|| elsewhere::tested_elsewhere(state, record, said))
        .or_else(|| unsealed(record, version))
}

fn sources(manifest: &Manifest, said: &GateOpened) -> Judged {
    let metric = manifest.metric.as_ref()?;
    let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
    let names: Vec<_> = std::iter::once(&metric.metric).chain(guardrails).collect();
    let found: Vec<_> = said.sources.iter().map(|source| &source.metric).collect();
    let list = |names: &[&crate::event::id::MetricId]| {
        let names = names.iter().map(|name| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    if names != found {
        return no(
            format!("sources for {}", list(&names)),
            format!("{} (E_JUDGE_DIGEST)", list(&found)),
        );
    }
    let one = |source: &crate::event::payload::gate::GateSource| {
        source.judge.is_some() != source.design.is_some()
    };
    if !said.sources.iter().all(one) {
        return no(
            "a judge or a design for each metric",
            "both, or neither (E_JUDGE_DIGEST)",
        );
    }
    // One judge gives a draw one score, which would stand for both metrics.
    let whose = |source: &crate::event::payload::gate::GateSource| {
        (source.judge.clone(), source.design.clone())
    };
    let mut all = said.sources.iter().enumerate();
    let twice = all.find_map(|(at, source)| {
        let mut before = said.sources[..at].iter();
        let other = before.find(|other| whose(other) == whose(source))?;
        Some(format!(
            "one for {} and {} (E_JUDGE_DIGEST)",
            other.metric, source.metric
        ))
    });
    twice.and_then(|found| no("a judge or a design of its own for each metric", found))
}

/// Units are those of the order that was drawn before the gate was opened.
fn ordered(state: &State, gate: &Gate, record: &Record) -> Judged {
    let drawn = state.fold::<Orders>().of(record);
    if drawn.is_some_and(|(_, drawn)| drawn.seq < gate.opened_seq) {
        return None;
    }
    no(
        "an order drawn before the gate was opened",
        "none of the version in force (E_ORDER)",
    )
}

/// A plan that a manifest is bound to is sealed before the gate is opened.
fn unsealed(record: &Record, version: &manifests::Version) -> Judged {
    let analysis = version.manifest.analysis.as_ref();
    let bound = analysis.and_then(|analysis| analysis.plan_commitment)?;
    if record.plan.is_some() {
        return None;
    }
    no(
        format!("plan.sealed of analysis.plan_commitment {bound}"),
        "none (E_UNREGISTERED_RULE)",
    )
}

/// What a registered gate must be for its test to be this one.
pub fn testable(manifest: &Manifest) -> Judged {
    let candidates = manifest.arms.iter().flatten();
    let candidates = candidates.filter(|arm| arm.role == ArmRole::Candidate);
    let count = candidates.count();
    if count != 1 {
        return no("one candidate", format!("{count} (E_ARM_DIGEST)"));
    }
    let excludes = manifest
        .estimand
        .as_ref()
        .and_then(|of| of.exclusions.as_ref());
    if excludes.is_some_and(|list| !list.is_empty()) {
        return no(
            "an estimand without exclusions: fields of units are not recorded",
            "exclusions (E_UNREGISTERED_RULE)",
        );
    }
    let strata = manifest.data.as_ref().and_then(|data| data.strata.as_ref());
    let test = manifest.test.as_ref()?;
    if strata.is_some_and(|list| !list.is_empty()) && test.control_variate.is_none() {
        return no(
            "test.control_variate, which says what counts of units' strata",
            "data.strata alone (E_UNREGISTERED_RULE)",
        );
    }
    if test.without_replacement && test.continuation_of.is_some() {
        return no(
            "a continuation about what its units were drawn from: one finite set says nothing of another",
            "test.without_replacement (E_DATA_ROOT)",
        );
    }
    let (kind, side) = (manifest.hypothesis.kind, test.side);
    let fits = match kind {
        HypothesisKind::Promote | HypothesisKind::Noninferior => side == Side::Upper,
        HypothesisKind::Kill => side == Side::Lower,
        HypothesisKind::Different | HypothesisKind::Equivalent => side == Side::TwoSided,
        HypothesisKind::Measure => true,
    };
    if fits {
        return None;
    }
    no(
        "test.side upper to promote or for noninferiority, lower to kill, two_sided for equivalence and difference",
        format!("{kind:?} with {side:?} (E_DIRECTION)"),
    )
}
