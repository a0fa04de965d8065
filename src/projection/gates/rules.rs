//! The rules `gate`, `observation`, `look`, `decision` and `promotion`, as far as recorded facts decide them. What
//! looks and closings are worth is computed again elsewhere, under the same names.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ManifestId;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::HypothesisKind;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Side;
use clover_event::payload::manifest::Template;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Code;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::unmet;

use crate::gates::Gate;
use crate::gates::Gates;
use crate::gates::claims;
use crate::gates::early;
use crate::gates::elsewhere;
use crate::gates::estimated;
use crate::gates::observed;
use crate::manifests;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::orders;
use crate::orders::Orders;

/// The rules of gates.
#[derive(Clone, Copy, Debug)]
pub struct GateRules;

impl Rule for GateRules {
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

    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let header = &event.event.header;
        let acts = |gate: &ManifestId, digest: Digest| Acts {
            author: header.author,
            digest,
            experiment: header.experiment.as_ref(),
            gate: gate.clone(),
        };
        match &event.event.payload {
            Payload::GateOpened(said) => {
                let acts = acts(&said.gate, said.digest);
                breaches.take(RuleName::StaleVersion, acts.check_current(state));
                breaches.take(RuleName::Gate, check_opening(state, &acts, said));
            }
            Payload::GateContinued(said) => {
                let experiment = header.experiment.as_ref();
                let checked = claims::check_continuation(state, experiment, said);
                breaches.take(RuleName::Gate, checked);
            }
            Payload::GateObserved(said) => {
                let acts = acts(&said.gate, said.digest);
                breaches.take(RuleName::StaleVersion, acts.check_current(state));
                match acts.known(state) {
                    Ok((gate, record)) => {
                        let rule = RuleName::Observation;
                        breaches.take(rule, observed::check(gate, record, said));
                        breaches.take(rule, check_order(state, gate, record));
                    }
                    Err(wrong) => breaches.take(RuleName::Gate, Err(wrong)),
                }
            }
            Payload::GateLooked(said) => {
                let acts = acts(&said.gate, said.digest);
                breaches.take(RuleName::StaleVersion, acts.check_current(state));
                match acts.known(state) {
                    Ok((gate, record)) => {
                        breaches.take(RuleName::Look, claims::check_look(gate, record, said));
                    }
                    Err(wrong) => breaches.take(RuleName::Gate, Err(wrong)),
                }
            }
            Payload::GateDecided(said) => match acts(&said.gate, said.digest).known(state) {
                Ok((gate, record)) => {
                    let checked = claims::check_decision(gate, record, event, said);
                    breaches.take(RuleName::Decision, checked);
                }
                Err(wrong) => breaches.take(RuleName::Gate, Err(wrong)),
            },
            Payload::GateEstimated(said) => match acts(&said.gate, said.digest).opened(state) {
                Ok(of) => {
                    let checked = estimated::check(state, event, of, said);
                    breaches.take(RuleName::Decision, checked);
                }
                Err(wrong) => breaches.take(RuleName::Gate, Err(wrong)),
            },
            _ => check_beside(state, event, breaches),
        }
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
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
                    // The rule `gate` refuses an observation of no opened gate.
                    return;
                };
                // Without an order the rule `observation` refuses it.
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
                // A unit past those exposed, or of a version not in force, is refused by the same rule.
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

/// What is asked of events that act on no opened gate by themselves.
fn check_beside(state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
    let header = &event.event.header;
    let (rule, checked) = match &event.event.payload {
        payload @ Payload::ScoreRecorded(_) => {
            let experiment = header.experiment.as_ref();
            let checked = early::check_scale(state, experiment, payload);
            (RuleName::Exposure, checked)
        }
        Payload::ExposureOpened(said) => (RuleName::Exposure, early::check_through(state, said)),
        Payload::ManifestAmended(said) => {
            (RuleName::Amendment, claims::check_amendment(state, said))
        }
        Payload::ManifestCountersigned(said) => {
            let checked = claims::check_countersignature(state, said.digest);
            (RuleName::Countersign, checked)
        }
        Payload::FamilyClosed(said) => (RuleName::Family, claims::check_closing(state, said)),
        Payload::PromotionIssued(said) => {
            let (now, by) = (event.recorded_at, header.author);
            let checked = claims::check_promotion(state, now, by, said);
            (RuleName::Promotion, checked)
        }
        Payload::PromotionRevoked(said) => {
            (RuleName::Promotion, claims::check_revocation(state, said))
        }
        _ => return,
    };
    breaches.take(rule, checked);
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
    fn check_current(&self, state: &State) -> RuleAnswer {
        manifests::check_current(state.fold::<Manifests>(), self.digest)
    }

    /// The opened gate with its manifest, when this key may act on it under this digest, and its family is not closed.
    fn known<'s>(&self, state: &'s State) -> Result<(&'s Gate, &'s ManifestRecord), Unmet> {
        let (gate, record) = self.opened(state)?;
        let gates = state.fold::<Gates>();
        if let Some(closed) = family_of(record).and_then(|name| gates.closed.get(name)) {
            return Err(Unmet {
                expected: "a gate of a family that is not closed".to_owned(),
                found: Code::AfterTerminal.of(format_args!("closed at seq {}", closed.seq)),
            });
        }
        Ok((gate, record))
    }

    /// The same, of a family that may be closed.
    fn opened<'s>(&self, state: &'s State) -> Result<(&'s Gate, &'s ManifestRecord), Unmet> {
        let id = &self.gate;
        let manifests = state.fold::<Manifests>();
        let gate = state.fold::<Gates>().by_id.get(id);
        let found = gate.zip(manifests.by_id.get(id));
        let found = found.filter(|(gate, _)| gate.experiment.as_ref() == self.experiment);
        let (gate, record) = found.ok_or_else(|| Unmet {
            expected: "an opened gate of this experiment".to_owned(),
            found: id.to_string(),
        })?;
        if record.version(self.digest).is_none() {
            return Err(Unmet {
                expected: format!("the digest of a version of {id}"),
                found: self.digest.to_string(),
            });
        }
        check_arbiter(record, self.author)?;
        Ok((gate, record))
    }
}

/// An arbiter that the version in force names acts, and no other; it need not name one.
fn check_arbiter(record: &ManifestRecord, author: KeyId) -> RuleAnswer {
    let version = record.in_force().required("a version in force")?;
    let roles = version.manifest.roles.as_ref();
    manifests::check_signer("arbiter", roles.and_then(|roles| roles.arbiter), author)
}

/// The family that a manifest belongs to.
pub(super) fn family_of(record: &ManifestRecord) -> Option<&clover_event::id::FamilyId> {
    let first = record.versions.first()?.manifest.multiplicity.as_ref()?;
    Some(&first.family)
}

fn check_opening(state: &State, acts: &Acts<'_>, said: &GateOpened) -> RuleAnswer {
    may_open(state, (acts.author, acts.experiment), said)?;
    let record = state.fold::<Manifests>().by_id.get(&said.gate);
    let record = record.required("a gate's manifest of this experiment")?;
    ensure!(
        state.fold::<Orders>().of(record).is_some(),
        "order.drawn before the gate is opened",
        Code::Order.of("none"),
    );
    Ok(())
}

/// Whether a gate may be opened, whatever became of its order so far: it is asked before that is drawn, too.
///
/// # Errors
/// What stands against it.
pub fn may_open(
    state: &State,
    (author, experiment): (KeyId, Option<&ExperimentId>),
    said: &GateOpened,
) -> RuleAnswer {
    let id = &said.gate;
    let record = state.fold::<Manifests>().by_id.get(id);
    let gate = |record: &&ManifestRecord| {
        let template = |one: &ManifestVersion| one.manifest.template == Template::Gate;
        record.experiment.as_ref() == experiment && record.versions.first().is_some_and(template)
    };
    let Some(record) = record.filter(gate) else {
        return unmet("a gate's manifest of this experiment", id.to_string());
    };
    let Some(version) = record.in_force() else {
        return unmet(
            "a manifest that its custodian has countersigned",
            format!("{id}, not countersigned"),
        );
    };
    if record.version(said.digest).is_none() {
        let expected = format!("the digest of a version of {id}");
        return unmet(expected, said.digest.to_string());
    }
    check_arbiter(record, author)?;
    if let Some(look) = &record.first_look {
        let found = Code::Exposure.of(format_args!("a first look at seq {}", look.seq));
        return unmet("a gate that is opened before any unit is exposed", found);
    }
    let stated = Manifest {
        test: Some(said.test.clone()),
        ..version.manifest.clone()
    };
    if let Some(change) = manifests::changes(&version.manifest, &stated).first() {
        let text = |value: &Option<String>| value.clone().unwrap_or("none".to_owned());
        return unmet(
            format!("{} {}, as registered", change.path, text(&change.from)),
            format!("{} ({})", text(&change.to), change.code()),
        );
    }
    check_sources(&version.manifest, said)?;
    testable(&version.manifest)?;
    elsewhere::check_elsewhere(state, record, said)?;
    check_plan(record, version)
}

/// Each metric of the manifest has one source, and each source is of one metric.
fn check_sources(manifest: &Manifest, said: &GateOpened) -> RuleAnswer {
    let metric = manifest.metric.as_ref().required("section metric")?;
    let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
    let names: Vec<_> = std::iter::once(&metric.metric).chain(guardrails).collect();
    let found: Vec<_> = said.sources.iter().map(|source| &source.metric).collect();
    let list = |names: &[&clover_event::id::MetricId]| {
        let names = names.iter().map(|name| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    if names != found {
        return unmet(
            format!("sources for {}", list(&names)),
            Code::JudgeDigest.of(list(&found)),
        );
    }
    let one = |source: &clover_event::payload::gate::GateSource| {
        source.judge.is_some() != source.design.is_some()
    };
    if !said.sources.iter().all(one) {
        return unmet(
            "a judge or a design for each metric",
            Code::JudgeDigest.of("both, or neither"),
        );
    }
    // One judge gives a draw one score, which would stand for both metrics.
    let whose = |source: &clover_event::payload::gate::GateSource| {
        (source.judge.clone(), source.design.clone())
    };
    for (at, source) in said.sources.iter().enumerate() {
        let mut before = said.sources[..at].iter();
        if let Some(other) = before.find(|other| whose(other) == whose(source)) {
            return unmet(
                "a judge or a design of its own for each metric",
                Code::JudgeDigest.of(format_args!(
                    "one for {} and {}",
                    other.metric, source.metric
                )),
            );
        }
    }
    Ok(())
}

/// Units are those of the order that was drawn before the gate was opened.
fn check_order(state: &State, gate: &Gate, record: &ManifestRecord) -> RuleAnswer {
    let drawn = state.fold::<Orders>().of(record);
    ensure!(
        drawn.is_some_and(|(_, drawn)| drawn.seq < gate.opened_seq),
        "an order drawn before the gate was opened",
        Code::Order.of("none of the version in force"),
    );
    Ok(())
}

/// A plan that a manifest is bound to is sealed before the gate is opened.
fn check_plan(record: &ManifestRecord, version: &ManifestVersion) -> RuleAnswer {
    let Some(bound) = version.plan_commitment() else {
        // A version need not bind a plan.
        return Ok(());
    };
    ensure!(
        record.plan.is_some(),
        format!("plan.sealed of analysis.plan_commitment {bound}"),
        Code::UnregisteredRule.of("none"),
    );
    Ok(())
}

/// What a registered gate must be for its test to be this one.
///
/// # Errors
/// What it is otherwise.
pub fn testable(manifest: &Manifest) -> RuleAnswer {
    let candidates = manifest.arms.iter().flatten();
    let candidates = candidates.filter(|arm| arm.role == ArmRole::Candidate);
    let count = candidates.count();
    if count != 1 {
        return unmet("one candidate", Code::ArmDigest.of(count));
    }
    let excludes = manifest
        .estimand
        .as_ref()
        .and_then(|of| of.exclusions.as_ref());
    if excludes.is_some_and(|list| !list.is_empty()) {
        return unmet(
            "an estimand without exclusions: fields of units are not recorded",
            Code::UnregisteredRule.of("exclusions"),
        );
    }
    let strata = manifest.data.as_ref().and_then(|data| data.strata.as_ref());
    let test = manifest.test.as_ref().required("section test")?;
    if strata.is_some_and(|list| !list.is_empty()) && test.control_variate.is_none() {
        return unmet(
            "test.control_variate, which says what counts of units' strata",
            Code::UnregisteredRule.of("data.strata alone"),
        );
    }
    if test.without_replacement && test.continuation_of.is_some() {
        return unmet(
            "a continuation about what its units were drawn from: one finite set says nothing of another",
            Code::DataRoot.of("test.without_replacement"),
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
        return Ok(());
    }
    unmet(
        "test.side upper to promote or for noninferiority, lower to kill, two_sided for equivalence and difference",
        Code::Direction.of(format_args!(
            "{} with {}",
            canon::word(&kind),
            canon::word(&side)
        )),
    )
}
