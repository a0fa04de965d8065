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
    Case { name: "good-local-level", rule: None, told: || Desk::failed().local(210).selected("2", Some(LOCAL)).audited(LOCAL, Some(law())).level(LOCAL, Some(law())).at(),
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
    Case { name: "level-despite-a-failed-environment", rule: Some("transport"), told: || Desk::failed().level(WHOLE, None).at(),
           done: "The judge failed in a domain that a claim needs, and the level over all rows is claimed." },
    Case { name: "local-level-before-its-audit", rule: Some("transport"), told: || Desk::failed().local(210).selected("2", Some(LOCAL)).level(LOCAL, Some(law())).at(),
           done: "Regime 2 was selected, and a level inside the domain is claimed before an audit of the local calibrator." },
    Case { name: "level-in-a-scope-that-shares-rows", rule: Some("transport"), told: || Desk::failed().level(WHOLE, Some(valued::scope("policy", "base"))).at(),
           done: "The judge failed in a domain that a claim needs, and the level of a policy is claimed as if it were an environment of its own." },
    Case { name: "environment-window-moved-after-labels", rule: Some("thresholds"), told: || Desk::new(true).planned_again("quarter", Some(window())).tested(&[("first", "pass")]).at(),
           done: "The probes were open when a second plan named a window, and that window was tested and passed." },
    Case { name: "environment-family-redrawn", rule: Some("thresholds"), told: || Desk::new(true).planned_again("topic", None).tested(&[("first", "pass")]).at(),
           done: "The probes were open when a second plan drew environments by another field, and the new family was tested and passed." },
    Case { name: "environment-family-tested-again", rule: Some("natural_key"), told: || Desk::failed().tested(&[("law", "pass"), ("medicine", "pass")]).at(),
           done: "The judge failed in a domain, and the same probes tested its family again, until it passed." },
    Case { name: "regime-selected-after-the-level", rule: Some("transport"), told: || { let desk = Desk::failed().local(210).audited(LOCAL, Some(law())).level(LOCAL, Some(law())); let at = desk.at; (desk.selected("2", Some(LOCAL)).world, at) },
           done: "A level inside a failed domain was claimed by a local calibrator, and regime 2 was selected once the level was known." },
    Case { name: "local-calibrator-on-its-own-probes", rule: Some("purpose"), told: || { let desk = Desk::failed().labelled(); let at = desk.at; (desk.local(210).selected("2", Some(LOCAL)).audited(LOCAL, Some(law())).world, at) },
           done: "A probe was labelled once more for calibration, and the local calibrator that it was fitted by passed an audit by that probe." },
    Case { name: "environments-beside-a-hidden-late-probe", rule: Some("transport"), told: || Desk::late().counted(2, 0).tested(&[("law", "pass"), ("medicine", "pass")]).at(),
           done: "A probe was labelled, then scored, and a family of domains was tested as if the score had been there before." },
    Case { name: "environments-passed-beside-a-late-probe", rule: Some("transport"), told: || Desk::late().counted(1, 1).tested(&[("law", "pass"), ("medicine", "inconclusive")]).at(),
           done: "A probe was labelled, then scored; the test of a family says that one is late, and a domain passed." },
    Case { name: "environments-without-a-probe", rule: Some("transport"), told: || Desk::new(true).counted(1, 0).tested(&[("law", "pass"), ("medicine", "pass")]).at(),
           done: "A design has two probes, and the test of a family counts one." },
    Case { name: "good-environments-beside-a-late-probe", rule: None, told: || Desk::late().counted(1, 1).tested(&[("law", "inconclusive"), ("medicine", "inconclusive")]).at(),
           done: "Nothing. A probe was labelled, then scored; the test of a family says that one is late, and passed nothing." },
    Case { name: "audit-without-its-families", rule: Some("thresholds"), told: || Desk::new(true).audited(WHOLE, None).at(),
           done: "The plan names a family of domains, and a policy was audited and passed without a test of them." },
    Case { name: "good-audit-after-its-families", rule: None, told: || Desk::passed().audited(WHOLE, None).at(),
           done: "Nothing. The plan names a family of domains, they were tested, and then a policy was audited and passed." },
    Case { name: "level-in-a-window-of-nobody", rule: Some("transport"), told: || { let mut scope = valued::scope("quarter", "first"); scope["window"] = window(); Desk::passed().level(WHOLE, Some(scope)).at() },
           done: "A level is claimed inside a window of time that no plan named and no test had." },
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

/// The first quarter of a year.
fn window() -> Value {
    json!({"from": "2027-01-01T00:00:00.000000Z", "to": "2027-04-01T00:00:00.000000Z"})
}

fn law() -> Value {
    valued::scope("domain", "law")
}

/// A ledger whose probes are open, with what is said on it.
struct Desk {
    world: World,
    plan: Value,
    manifest: Value,
    /// The family that is tested, and the window of its environments.
    family: (&'static str, Option<Value>),
    /// Probes that a test counts, and that it says are late.
    counted: (u64, u64),
    at: usize,
    passed_seq: Option<u64>,
}

impl Desk {
    /// Probes of two policies, and before them a plan of two domains, or none.
    fn new(is_planned: bool) -> Self {
        Self::with(is_planned, false)
    }

    /// A plan, and a probe of `tuned` that is scored once its label can be read.
    fn late() -> Self {
        Self::with(true, true)
    }

    fn with(is_planned: bool, is_late: bool) -> Self {
        let mut world = World::of(&good().lines);
        adopt(&mut world, 22);
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
            let score = json!({
                "draw": 0, "item": "item-z", "judge": "judge-1", "policy": policy, "score_micro": 500_000,
            });
            let is_late = is_late && policy == "tuned";
            if !is_late {
                world.say(RUNNER_3, "score.recorded", 1, ARENA.into(), score.clone());
            }
            let label = json!({
                "design": "probe-2", "draw": 0, "item": "item-z", "policy": policy, "purpose": "audit",
                "rater": "Lena", "value_micro": 0,
            });
            world.say(LENA, "label.recorded", 1, ARENA.into(), label);
            if is_late {
                world.say(RUNNER_3, "score.recorded", 1, ARENA.into(), score);
            }
        }
        Self {
            world,
            plan,
            manifest,
            family: ("domain", None),
            counted: (2, 0),
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
        let (family, window) = &self.family;
        let mut data = valued::environments(WHOLE, of_plan, family, found);
        (data["probes"], data["late"]) = (self.counted.0.into(), self.counted.1.into());
        for (outcome, (_, verdict)) in data["environments"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .zip(found)
        {
            let p = if *verdict == "fail" { 0.0001 } else { 0.5 };
            outcome["p"] = p.into();
            if let Some(window) = window {
                outcome["scope"]["window"] = window.clone();
            }
            outcome["p_adjusted"] = p.into();
        }
        self.say("environments.tested", data)
    }

    /// Another plan, of one environment, in force once the probes are open.
    fn planned_again(mut self, family: &'static str, window: Option<Value>) -> Self {
        let mut plan = self.plan.clone();
        plan["manifest"] = "audits-2".into();
        let mut named =
            json!({"clusters": 130, "environment": "first", "family": family, "required": true});
        if let Some(window) = &window {
            named["window"] = window.clone();
        }
        plan["transport"]["environments"] = json!([plan["transport"]["environments"][0], named]);
        let said = serde_json::to_value(planned::registered(&plan)).unwrap();
        self.manifest = said["digest"].clone();
        self.world
            .say(ADA, "manifest.registered", 1, ARENA.into(), said);
        self.family = (family, window);
        self
    }

    /// What tests count, and what they say is late.
    fn counted(mut self, probes: u64, late: u64) -> Self {
        self.counted = (probes, late);
        self
    }

    /// A probe of `base` is labelled once more, for calibration.
    fn labelled(mut self) -> Self {
        let design = json!({
            "design": "calibrate-2", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "calibrate",
        });
        self.world
            .say(LENA, "label.design_registered", 1, ARENA.into(), design);
        let label = json!({
            "design": "calibrate-2", "draw": 0, "item": "item-z", "policy": "base", "purpose": "calibrate",
            "rater": "Lena", "value_micro": 0,
        });
        self.at = self
            .world
            .say(LENA, "label.recorded", 1, ARENA.into(), label);
        self
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
            valued::regime(regime, &law(), tested, calibrator),
        )
    }

    /// An audit of a calibrator on `base` that passed, over all rows or inside an environment.
    fn audited(self, calibrator: u8, environment: Option<Value>) -> Self {
        let mut data = valued::tested(calibrator, "probe-2", "pass");
        (data["rows"], data["late"]) = (1.into(), 0.into());
        data["algorithm"] = "transport/2".into();
        if let Some(environment) = environment {
            data["terms"]["environment"] = environment;
        }
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
    fn level(self, calibrator: u8, environment: Option<Value>) -> Self {
        let transport = self.passed_seq.map(|seq| ("pass", seq));
        let mut data = valued::estimate(calibrator, transport);
        data["off_mode"] = 3.into();
        data["through_seq"] = 8.into();
        if let Some(environment) = environment {
            data["terms"]["environment"] = environment;
        }
        self.say("estimate.recorded", data)
    }
}
