//! Samples around environments: which of them are tested, which regime is selected when, and what a local calibrator rests on.

use serde_json::Value;
use serde_json::json;

use super::forger::Item;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_undone::sample;
use super::valued;

/// The calibrator of all rows, and that of `domain=law` alone.
const WHOLE: u8 = 5;
const LOCAL: u8 = 6;

/// What was done, the position of its last event, and by which rule it is wrong: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    told: fn() -> (World, usize),
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "good-local-level", rule: None, told: || Desk::failed().local(210).selected("2", Some(LOCAL)).audited().level(LOCAL, Some(law())),
           done: "Nothing. The judge failed in one domain, a calibrator was fitted on 210 labels there, regime 2 was selected, an audit of its own passed, and a level inside is claimed." },
    Case { name: "good-regime-without-surrogacy", rule: None, told: || Desk::failed().selected("1", None).at(),
           done: "Nothing. The judge failed in one domain, and regime 1 was selected for it: labels alone." },
    Case { name: "environments-without-a-plan", rule: Some("thresholds"), told: || Desk::new(false).tested(&[("law", "pass")]).at(),
           done: "Nobody planned environments, and once the probes were open one domain was tested and passed." },
    Case { name: "environment-dropped-from-its-family", rule: Some("thresholds"), told: || Desk::new(true).tested(&[("medicine", "pass")]).at(),
           done: "The plan names two domains, and only the one that passed was tested." },
    Case { name: "regime-without-a-failed-test", rule: Some("transport"), told: || Desk::passed().local(210).selected("2", Some(LOCAL)).at(),
           done: "The judge failed in no domain, and a regime with a calibrator of one domain was selected." },
    Case { name: "regime-on-a-calibrator-of-all-rows", rule: Some("transport"), told: || Desk::failed().selected("2", Some(WHOLE)).at(),
           done: "Regime 2 was selected for a domain with the calibrator of all rows, that failed there." },
    Case { name: "regime-global-while-it-fails", rule: Some("transport"), told: || Desk::failed().selected("3", None).at(),
           done: "The judge failed in a domain, and regime 3 was selected though no later test passed." },
    Case { name: "local-calibrator-on-too-few", rule: Some("calibrator"), told: || Desk::failed().local(150).at(),
           done: "A calibrator of one domain was fitted on 150 labels." },
    Case { name: "level-despite-a-failed-environment", rule: Some("transport"), told: || Desk::failed().level(WHOLE, None),
           done: "The judge failed in a domain that a claim needs, and the level over all rows is claimed." },
    Case { name: "local-level-before-its-audit", rule: Some("transport"), told: || Desk::failed().local(210).selected("2", Some(LOCAL)).level(LOCAL, Some(law())),
           done: "Regime 2 was selected, and a level inside the domain is claimed before an audit of the local calibrator." },
    Case { name: "level-in-a-scope-that-shares-rows", rule: Some("transport"), told: || Desk::failed().level(WHOLE, Some(valued::scope("policy", "base"))),
           done: "The judge failed in a domain that a claim needs, and the level of a policy is claimed as if it were an environment of its own." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let of = |case: &Case| {
        let (world, at) = (case.told)();
        sample(
            case.name,
            case.done,
            &world,
            case.rule.map(|rule| (at, rule)),
        )
    };
    CASES.iter().map(of).collect()
}

/// A history in which nothing is wrong, with every kind of this family.
pub fn whole() -> World {
    (CASES[0].told)().0
}

fn law() -> Value {
    valued::scope("domain", "law")
}

/// A ledger whose probes are open, with what is said on it.
struct Desk {
    world: World,
    plan: Value,
    manifest: Value,
    at: usize,
    passed_seq: Option<u64>,
}

impl Desk {
    /// Probes of two policies, and before them a plan of two domains, or none.
    fn new(is_planned: bool) -> Self {
        let mut world = World::of(&good().lines);
        adopt(&mut world, 21);
        let design = json!({
            "design": "probe-2", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "audit",
        });
        world.say(LENA, "label.design_registered", 1, ARENA.into(), design);
        let mut plan = planned::audits(ARENA, "audits-1");
        let domain = |name: &str| json!({"clusters": 130, "environment": name, "family": "domain", "required": true});
        let policy = json!({"clusters": 400, "environment": "tuned", "required": true});
        plan["transport"]["environments"] = json!([policy, domain("law"), domain("medicine")]);
        let mut manifest = valued::digest(9);
        if is_planned {
            let said = serde_json::to_value(planned::registered(&plan)).unwrap();
            manifest = said["digest"].clone();
            world.say(ADA, "manifest.registered", 1, ARENA.into(), said);
        }
        for policy in ["base", "tuned"] {
            let label = json!({
                "design": "probe-2", "draw": 0, "item": "item-z", "policy": policy, "purpose": "audit",
                "rater": "Lena", "value_micro": 0,
            });
            world.say(LENA, "label.recorded", 1, ARENA.into(), label);
        }
        Self {
            world,
            plan,
            manifest,
            at: 0,
            passed_seq: None,
        }
    }

    fn failed() -> Self {
        Self::new(true).tested(&[("law", "fail"), ("medicine", "pass")])
    }

    fn passed() -> Self {
        Self::new(true).tested(&[("law", "pass"), ("medicine", "pass")])
    }

    fn say(mut self, kind: &str, mut data: Value) -> Self {
        if let Some(terms) = data.get_mut("terms") {
            terms["labels"] = "weighted".into();
        }
        self.at = self.world.say(ARBITER, kind, 1, ARENA.into(), data);
        self
    }

    fn at(self) -> (World, usize) {
        (self.world, self.at)
    }

    fn tested(self, found: &[(&str, &str)]) -> Self {
        let of_plan = ("probe-2", &self.manifest);
        let mut data = valued::environments(WHOLE, of_plan, "domain", found);
        for (outcome, (_, verdict)) in data["environments"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .zip(found)
        {
            let p = if *verdict == "fail" { 0.0001 } else { 0.5 };
            outcome["p"] = p.into();
            outcome["p_adjusted"] = p.into();
        }
        self.say("environments.tested", data)
    }

    /// A calibrator on so many labels of `domain=law`.
    fn local(self, labels: u64) -> Self {
        let mut data = valued::fitted(LOCAL, 7);
        data["terms"]["environment"] = law();
        data["labels"] = labels.into();
        data["labels_by_policy"][0]["labels"] = labels.into();
        self.say("calibrator.fitted", data)
    }

    /// A regime for `domain=law`, on its newest test.
    fn selected(self, regime: &str, calibrator: Option<u8>) -> Self {
        let is_test = |item: &Item| item.body["kind"] == "environments.tested";
        let tested = self.world.items.iter().rposition(is_test).unwrap() as u64;
        self.say(
            "regime.selected",
            valued::regime(regime, law(), tested, calibrator),
        )
    }

    /// An audit of the local calibrator on `base` inside `domain=law` that passed.
    fn audited(self) -> Self {
        let mut data = valued::tested(LOCAL, "probe-2", "pass");
        data["algorithm"] = "transport/2".into();
        data["terms"]["environment"] = law();
        data["through_seq"] = 7.into();
        for name in ["alpha_micro", "clusters_min", "family_size", "margin_micro"] {
            data["audit"][name] = self.plan["transport"][name].clone();
        }
        data["audit"]["manifest"] = self.manifest.clone();
        let mut desk = self.say("transport.tested", data);
        desk.passed_seq = Some(desk.at as u64);
        desk
    }

    /// A level of `base` that is claimed, over all rows or inside an environment.
    fn level(self, calibrator: u8, environment: Option<Value>) -> (World, usize) {
        let transport = self.passed_seq.map(|seq| ("pass", seq));
        let mut data = valued::estimate(calibrator, transport);
        data["off_mode"] = 3.into();
        data["through_seq"] = 8.into();
        if let Some(environment) = environment {
            data["terms"]["environment"] = environment;
        }
        self.say("estimate.recorded", data).at()
    }
}
