//! The life of a gate, event by event: units, order, opening, exposure, scores, observations, looks, decision.

use clover::event::Payload;
use clover::event::id::ItemId;
use clover::event::id::StratumId;
use clover::event::payload::Role;
use clover::event::payload::decision::EvidenceClass;
use clover::event::payload::decision::GateContinued;
use clover::event::payload::decision::GateDecided;
use clover::event::payload::decision::GateLooked;
use clover::event::payload::decision::LogWealth;
use clover::event::payload::decision::Outcome;
use clover::event::payload::decision::Standing;
use clover::event::payload::gate::DrawnFrom;
use clover::event::payload::gate::GateObserved;
use clover::event::payload::gate::GateOpened;
use clover::event::payload::gate::GateSource;
use clover::event::payload::gate::OrderDrawn;
use clover::event::payload::gate::OrderListed;
use clover::event::payload::gate::Reading;
use clover::event::payload::manifest::Manifest;
use clover::ground::digest::Digest;
use clover::num::Count;
use clover::num::Finite;
use clover::num::Micro;
use clover::num::Probability;
use clover::projection::gates;
use clover::projection::orders;
use clover::stats::eprocess;
use clover::stats::eprocess::Hypothesis;
use clover::stats::eprocess::Looks;
use clover::workflow::gates::design;
use clover::workflow::gates::evidence;
use clover::workflow::gates::steps;
use clover::workflow::gates::steps::Confirm;
use serde_json::Value;
use serde_json::json;

use super::planned;
use super::samples::*;
use super::signer;

pub fn units(prefix: &str, n: usize) -> Vec<ItemId> {
    (0..n)
        .map(|at| format!("{prefix}-{at:03}").parse().unwrap())
        .collect()
}

/// A gate on these units: one draw of each arm, from 5 units on, without guardrails or replacement.
pub fn gate(experiment: &str, id: &str, units: &[ItemId]) -> Value {
    let mut gate = planned::gate(experiment, id);
    gate["data"]["confirm_root"] = serde_json::to_value(steps::root(units)).unwrap();
    gate["data"]["n_units"] = units.len().into();
    gate["test"]["n_max"] = units.len().into();
    gate["test"]["n_min"] = 5.into();
    gate["test"]["alpha_micro"] = 50_000.into();
    gate["test"]["without_replacement"] = false.into();
    gate["estimand"]["population"] = "superpopulation".into();
    gate
}

/// The same about exactly these units, with strata: the name of each, what is expected of it in millionths, its units.
pub fn stratify(gate: &mut Value, units: &[ItemId], strata: &[(&str, i64, u64)]) {
    gate["test"]["without_replacement"] = true.into();
    gate["estimand"]["population"] = "finite".into();
    let each = strata.iter().map(|(stratum, predicted, units)| {
        json!({"predicted_micro": predicted, "stratum": stratum, "units": units})
    });
    gate["test"]["control_variate"] = each.collect();
    gate["data"]["strata"] = json!(["topic"]);
    let root = confirm(&planned::manifest(gate), units).root();
    gate["data"]["confirm_root"] = serde_json::to_value(root).unwrap();
}

/// Units with their strata, where the manifest has some: one unit to each in turn, as long as it has any left.
pub fn confirm(manifest: &Manifest, units: &[ItemId]) -> Confirm {
    let test = manifest.test.as_ref().unwrap();
    let strata = test.control_variate.as_ref().map(|strata| {
        let mut left: Vec<_> = strata
            .iter()
            .map(|one| (&one.stratum, one.units.value()))
            .collect();
        let mut next = 0;
        let of = |_: &ItemId| {
            while left[next % left.len()].1 == 0 {
                next += 1;
            }
            let at = next % left.len();
            left[at].1 -= 1;
            next += 1;
            left[at].0.clone()
        };
        units.iter().map(of).collect()
    });
    Confirm {
        strata,
        units: units.to_vec(),
    }
}

/// What was said of one gate so far.
pub struct Life {
    pub value: Value,
    pub manifest: Manifest,
    pub carried: Option<LogWealth>,
    pub names: Vec<ItemId>,
    pub order: Vec<ItemId>,
    pub seed: Digest,
    pub deltas: Vec<Vec<i64>>,
    /// By how much each improvement may be more.
    pub slack: Vec<i64>,
    pub strata: Vec<Option<StratumId>>,
    pub state: Digest,
    pub look: Option<GateLooked>,
}

impl Life {
    pub fn new(value: &Value, units: &[ItemId]) -> Self {
        let manifest = planned::manifest(value);
        let state = gates::state_of_none(Some(&manifest.experiment), &manifest.manifest);
        Self {
            value: value.clone(),
            manifest,
            carried: None,
            names: units.to_vec(),
            order: Vec::new(),
            seed: Digest([0; 32]),
            deltas: Vec::new(),
            slack: Vec::new(),
            strata: Vec::new(),
            state,
            look: None,
        }
    }

    pub fn listed(&self) -> Vec<Payload> {
        steps::list_units(&self.confirm())
    }

    pub fn confirm(&self) -> Confirm {
        confirm(&self.manifest, &self.names)
    }

    /// The order that a checkpoint gives: listed in one event, and drawn.
    pub fn drawn(&mut self, root: Digest, size: u64) -> (OrderListed, OrderDrawn) {
        let beacon = DrawnFrom {
            root: clover::event::id::Root(root),
            size: Count::new(size).unwrap(),
        };
        let data = self.manifest.data.as_ref().unwrap();
        let (digest, confirm_root) = (self.manifest.digest(), data.confirm_root);
        let seed = orders::seed(digest, confirm_root, &beacon);
        self.order = self.names.clone();
        self.seed = seed;
        self.order.sort_by_key(|unit| orders::key(seed, unit));
        let listed = OrderListed {
            digest,
            first: Count::default(),
            units: self.order.clone(),
        };
        let drawn = OrderDrawn {
            beacon,
            confirm_root,
            digest,
            n_units: Count::new(self.names.len() as u64).unwrap(),
            permutation_root: steps::root(&self.order),
            seed,
        };
        (listed, drawn)
    }

    pub fn opened(&self) -> GateOpened {
        let metric = self.manifest.metric.as_ref().unwrap();
        let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
        let sources = std::iter::once(&metric.metric).chain(guardrails);
        let source = |metric: &clover::event::id::MetricId| GateSource {
            design: None,
            judge: Some(format!("judge-of-{metric}").parse().unwrap()),
            metric: metric.clone(),
        };
        GateOpened {
            digest: self.manifest.digest(),
            gate: self.manifest.manifest.clone(),
            sources: sources.map(source).collect(),
            test: self.manifest.test.clone().unwrap(),
        }
    }

    pub fn exposed(&self, exposure: u64, first: u64, last: u64) -> Payload {
        planned::exposed(&self.value, exposure, first, last)
    }

    /// The same, with the name of the last unit.
    pub fn exposed_named(&self, exposure: u64, first: u64, last: u64) -> Payload {
        let Payload::ExposureOpened(mut said) = self.exposed(exposure, first, last) else {
            unreachable!("BUG: an exposure is one");
        };
        said.through = usize::try_from(last).ok().map(|at| self.order[at].clone());
        Payload::ExposureOpened(said)
    }

    /// Scores of the unit at a place of the order, from 1: for each metric the draws of the baseline and of the
    /// candidate; `None` is a draw that failed.
    pub fn scores(&self, t: usize, values: &[[&[Option<i64>]; 2]]) -> Vec<Payload> {
        let mut all = Vec::new();
        for (source, arms) in self.opened().sources.iter().zip(values) {
            for (policy, draws) in ["baseline", "candidate"].into_iter().zip(arms) {
                for (draw, value) in draws.iter().enumerate() {
                    let Some(value) = value else { continue };
                    let data = json!({
                        "draw": draw, "item": self.order[t - 1], "judge": source.judge, "policy": policy,
                        "score_micro": value,
                    });
                    all.push(planned::payload("score.recorded", &data));
                }
            }
        }
        all
    }

    /// The observation of these values, without noting it.
    pub fn observation(&self, t: usize, values: &[[&[Option<i64>]; 2]]) -> GateObserved {
        let metric = self.manifest.metric.as_ref().unwrap();
        let micro = |draws: &[Option<i64>]| -> Vec<Option<Micro>> {
            draws
                .iter()
                .map(|value| value.map(|value| Micro::new(value).unwrap()))
                .collect()
        };
        let reading = |arms: &[&[Option<i64>]; 2]| -> Reading {
            steps::reading(metric, &micro(arms[0]), &micro(arms[1])).unwrap()
        };
        let unit = self.order[t - 1].clone();
        let at = self.names.iter().position(|name| *name == unit).unwrap();
        let strata = self.confirm().strata;
        GateObserved {
            digest: self.manifest.digest(),
            gate: self.manifest.manifest.clone(),
            readings: values.iter().map(reading).collect(),
            stratum: strata.map(|strata| strata[at].clone()),
            t: Count::new(t as u64).unwrap(),
            unit,
        }
    }

    pub fn observed(&mut self, t: usize, values: &[[&[Option<i64>]; 2]]) -> GateObserved {
        let said = self.observation(t, values);
        self.state = gates::state_after(self.state, &said);
        let deltas = said.readings.iter().map(|one| one.delta_micro.value());
        self.deltas.push(deltas.collect());
        let metric = self.manifest.metric.as_ref().unwrap();
        let absent = gates::absent(&said.readings[0]);
        self.slack.push(gates::slack(metric, absent));
        self.strata.push(said.stratum.clone());
        said
    }

    /// What a look finds now, and notes.
    pub fn looked(&mut self) -> GateLooked {
        let test = self.manifest.test.as_ref().unwrap();
        let n = self.deltas.len() as u64;
        let looks = Looks::At(vec![n]);
        let design = design::of(&self.manifest, test, None, self.carried.as_ref(), looks).unwrap();
        let mut gate = eprocess::Gate::open(design);
        for ((deltas, stratum), slack) in self.deltas.iter().zip(&self.strata).zip(&self.slack) {
            let place = |stratum| gates::stratum_place(test, stratum).unwrap();
            let place = stratum.as_ref().map(place);
            gate.push_within(place, (deltas[0], *slack), &deltas[1..])
                .unwrap();
        }
        let found = gate.look();
        let part = |part| {
            found
                .part(part)
                .map(|one| evidence::recorded(one.ln_wealth))
        };
        let claim = found.claim.unwrap();
        let interval = found.interval.unwrap();
        let before = self.look.as_ref();
        let p = Probability::new(claim.p_value()).unwrap();
        let guardrails: Vec<Finite> = (0..)
            .map_while(|at| part(Hypothesis::Guardrail(at)))
            .collect();
        let look = GateLooked {
            alpha_micro: test.alpha_micro,
            bettor: test.bettor.clone(),
            cs_hi_micro: Micro::new(before.map_or(interval.high, |look| {
                interval.high.min(look.cs_hi_micro.value())
            }))
            .unwrap(),
            cs_lo_micro: Micro::new(before.map_or(interval.low, |look| {
                interval.low.max(look.cs_lo_micro.value())
            }))
            .unwrap(),
            digest: self.manifest.digest(),
            gate: self.manifest.manifest.clone(),
            guardrails: (!guardrails.is_empty()).then_some(guardrails),
            log_e: evidence::recorded(claim.ln_wealth),
            log_wealth: LogWealth {
                claim: part(Hypothesis::Claim),
                futile: part(Hypothesis::Futile),
                kill: part(Hypothesis::Kill),
                second: part(Hypothesis::Second),
            },
            n: Count::new(n).unwrap(),
            p: before.map_or(p, |look| {
                if look.p.value() < p.value() {
                    look.p
                } else {
                    p
                }
            }),
            standing: evidence::standing(found.verdict, found.leading),
            state_digest: self.state,
        };
        self.look = Some(look.clone());
        look
    }

    /// The decision to which the last look leads.
    pub fn decided(&self) -> GateDecided {
        let standing = self.look.as_ref().unwrap().standing;
        self.decided_as(gates::outcome_of(standing).unwrap())
    }

    pub fn decided_as(&self, outcome: Outcome) -> GateDecided {
        let look = self.look.as_ref().unwrap();
        GateDecided {
            class: EvidenceClass::Exact,
            digest: self.manifest.digest(),
            gate: self.manifest.manifest.clone(),
            log_e: look.log_e,
            n: look.n,
            outcome,
        }
    }
}

/// The baseline has 0 and the candidate this.
pub fn values(candidate: i64) -> [Option<i64>; 1] {
    [Some(candidate)]
}

fn named(name: String) -> &'static str {
    name.leak()
}

/// A gate of the story: its manifest in force and its units listed, its order drawn, opened.
pub fn tell_opened(teller: &mut Teller, experiment: &str, value: &Value, units: &[ItemId]) -> Life {
    let life = tell_drawn(teller, experiment, value, units);
    let name = named(format!("{}-opened", life.manifest.manifest));
    teller.say_about(BEN, experiment, name, life.opened());
    life
}

/// The same before it is opened.
pub fn tell_drawn(teller: &mut Teller, experiment: &str, value: &Value, units: &[ItemId]) -> Life {
    let mut life = Life::new(value, units);
    let id = life.manifest.manifest.to_string();
    let name = |what: &str| named(format!("{id}-{what}"));
    let begun = planned::experiment_registered();
    teller.say_about(ADA, experiment, name("experiment"), begun);
    teller.say_about(
        ADA,
        experiment,
        name("registered"),
        planned::registered(value),
    );
    let agreed = planned::countersigned(value);
    teller.say_about(CLEO, experiment, name("countersigned"), agreed);
    let (size, root) = (teller.ledger().size(), teller.ledger().root());
    for payload in life.listed() {
        teller.say_about(CLEO, experiment, name("units"), payload);
    }
    let (listed, drawn) = life.drawn(root, size);
    teller.say_about(BEN, experiment, name("listed"), listed);
    teller.say_about(BEN, experiment, name("drawn"), drawn);
    life
}

/// One unit, scored and observed.
pub fn tell_unit(teller: &mut Teller, life: &mut Life, t: usize, values: &[[&[Option<i64>]; 2]]) {
    let experiment = life.manifest.experiment.to_string();
    let id = life.manifest.manifest.to_string();
    for (at, score) in life.scores(t, values).into_iter().enumerate() {
        let name = named(format!("{id}-score-{t}-{at}"));
        teller.say_about(RUNNER, &experiment, name, score);
    }
    let observed = life.observed(t, values);
    let name = named(format!("{id}-observed-{t}"));
    teller.say_about(BEN, &experiment, name, observed);
}

pub fn tell_look(teller: &mut Teller, life: &mut Life) {
    let experiment = life.manifest.experiment.to_string();
    let look = life.looked();
    let name = named(format!("{}-looked-{}", look.gate, look.n));
    teller.say_about(BEN, &experiment, name, look);
}

/// The manifests of the story's three gates.
pub fn manifests() -> [(Value, Vec<ItemId>); 3] {
    let units = ["red", "blue", "green"].map(|prefix| units(prefix, 10));
    let family = json!({"family": "quarter", "family_alpha_micro": 100_000, "method": "spend"});
    let mut first = gate("exp-1", "m-1", &units[0]);
    first["test"]["without_replacement"] = true.into();
    first["estimand"]["population"] = "finite".into();
    first["metric"]["repeats"] = 2.into();
    first["metric"]["guardrails"] = json!([{"margin_micro": 300_000, "metric": "safety"}]);
    let strata = [("easy", 850_000, 6), ("hard", 700_000, 4)];
    stratify(&mut first, &units[0], &strata);
    let mut second = gate("exp-2", "m-2", &units[1]);
    second["test"]["alpha_kill_micro"] = 50_000.into();
    second["test"]["beta_futile_micro"] = 1_000.into();
    second["test"]["n_max"] = 8.into();
    second["test"]["delta_design_micro"] = 200_000.into();
    second["test"]["alpha_micro"] = 25_000.into();
    second["multiplicity"] = family.clone();
    let digest = planned::manifest(&second).digest().to_hex();
    let mut third = gate("exp-3", "m-3", &units[2]);
    third["test"] = second["test"].clone();
    third["test"]["continuation_of"] = digest.into();
    third["test"]["look_at"] = json!([8]);
    third["multiplicity"] = family.clone();
    first["multiplicity"] = family;
    let [red, blue, green] = units;
    [(first, red), (second, blue), (third, green)]
}

/// Three gates: one promotes, one ends undecided, the third goes on from it.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in [
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-runner", RUNNER, "runner", Role::Scorer),
        ("key-lena", LENA, "Lena", Role::Releaser),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let adopted = json!({"reason": "five people work here", "separation": "strict"});
    teller.say(ADA, "policy", planned::payload("policy.adopted", &adopted));
    let family = json!({
        "alpha_micro": 100_000, "family": "quarter", "members_max": 3, "membership": "gates of this quarter",
        "method": "spend",
    });
    teller.say(ADA, "family", planned::payload("family.opened", &family));
    let [(first, red), (second, blue), (third, green)] = manifests();
    let (low, high) = ([Some(0), Some(100_000)], [Some(1_000_000), Some(900_000)]);
    let safe: [&[Option<i64>]; 2] = [&[Some(500_000); 2], &[Some(600_000); 2]];
    let mut life = tell_opened(&mut teller, "exp-1", &first, &red);
    teller.say_about(CLEO, "exp-1", "m-1-exposed-1", life.exposed(1, 0, 5));
    for t in 1..=10 {
        if t == 7 {
            teller.say_about(CLEO, "exp-1", "m-1-exposed-2", life.exposed(2, 6, 9));
        }
        // One draw of the candidate fails; it counts as the worst.
        let candidate = if t == 3 {
            [Some(1_000_000), None]
        } else {
            high
        };
        tell_unit(&mut teller, &mut life, t, &[[&low, &candidate], safe]);
        if t == 4 || t == 10 {
            tell_look(&mut teller, &mut life);
        }
    }
    assert_eq!(life.look.as_ref().unwrap().standing, Standing::Promote);
    teller.say_about(BEN, "exp-1", "m-1-decided", life.decided());
    let parent = tell_undecided(&mut teller, &second, &blue);
    let mut child = tell_opened(&mut teller, "exp-3", &third, &green);
    let carried = parent.look.as_ref().unwrap().log_wealth;
    let continued = GateContinued {
        carried,
        gate: child.manifest.manifest.clone(),
        h0_digest: child.manifest.h0_digest(),
        parent: parent.manifest.manifest.clone(),
    };
    teller.say_about(ADA, "exp-3", "m-3-continued", continued);
    child.carried = Some(carried);
    teller.say_about(CLEO, "exp-3", "m-3-exposed-1", child.exposed(1, 0, 9));
    for t in 1..=8 {
        tell_unit(
            &mut teller,
            &mut child,
            t,
            &[[&[Some(0)], &[Some(1_000_000)]]],
        );
    }
    tell_look(&mut teller, &mut child);
    tell_closing(&mut teller, [&life, &parent, &child]);
    teller.finish()
}

/// The second gate: as good as the baseline, so that nothing is decided.
fn tell_undecided(teller: &mut Teller, value: &Value, units: &[ItemId]) -> Life {
    let mut life = tell_opened(teller, "exp-2", value, units);
    teller.say_about(CLEO, "exp-2", "m-2-exposed-1", life.exposed(1, 0, 9));
    for t in 1..=8 {
        let candidate = [Some(if t % 2 == 0 { 750_000 } else { 450_000 })];
        tell_unit(teller, &mut life, t, &[[&[Some(500_000)], &candidate]]);
        if t == 3 || t == 8 {
            tell_look(teller, &mut life);
        }
    }
    let standing = life.look.as_ref().unwrap().standing;
    assert_eq!(standing, Standing::UndecidedAtNMax);
    teller.say_about(BEN, "exp-2", "m-2-decided", life.decided());
    life
}

fn tell_closing(teller: &mut Teller, lives: [&Life; 3]) {
    let evidence = lives.map(|life| {
        let look = life.look.as_ref().unwrap();
        json!({"log_e": look.log_e, "member": look.gate})
    });
    let closed = json!({
        "alpha_micro": 100_000, "evidence": evidence, "family": "quarter", "members_max": 3, "method": "spend",
        "rejected": ["m-1"],
    });
    teller.say(BEN, "closed", planned::payload("family.closed", &closed));
    let arms = lives[0].manifest.arms.as_ref().unwrap();
    let issued = json!({
        "candidate_digest": arms[1].artifact_digest, "gates": ["m-1"], "grade": "certified",
    });
    let issued = planned::payload("promotion.issued", &issued);
    let id = teller.say_id(LENA, "issued", issued);
    let revoked = json!({"promotion": id, "reason": "the judge was withdrawn"});
    let revoked = planned::payload("promotion.revoked", &revoked);
    teller.say(LENA, "revoked", revoked);
}
