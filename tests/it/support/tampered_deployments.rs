//! Samples around deployments, guardrails, rollbacks and recalibrations.

use serde_json::Value;
use serde_json::json;

use super::deployed;
use super::forger::World;
use super::samples::*;
use super::tampered::First;
use super::tampered::Sample;

struct Table {
    story: Story,
    rows: Vec<Sample>,
}

pub fn all() -> Vec<Sample> {
    let mut table = Table {
        story: deployed::story(),
        rows: Vec::new(),
    };
    table.deployed_otherwise();
    table.guarded_otherwise();
    table.story = deployed::recalibration();
    table.recalibrated_otherwise();
    table.rows
}

impl Table {
    fn push(&mut self, name: &'static str, done: &'static str, world: &World, first: First) {
        self.rows.push(Sample::forged(name, done, world, first));
    }

    fn edited(
        &mut self,
        name: &'static str,
        done: &'static str,
        at: &str,
        edit: impl FnOnce(&mut Value),
        (shows_at, rule): (&str, &'static str),
    ) {
        let mut world = World::of(&self.story.lines);
        edit(&mut world.items[self.story.at(at)].body);
        self.push(name, done, &world, Some((self.story.at(shows_at), rule)));
    }

    fn deployed_otherwise(&mut self) {
        let world = World::of(&self.story.lines);
        self.push(
            "good-deployment",
            "Nothing. A committed prompt ran, broke a guardrail, and was rolled back.",
            &world,
            None,
        );
        self.edited(
            "deployed-with-one-approval",
            "One of two people only saw the approval done; the prompt was committed and ran all the same.",
            "yes-paul",
            |body| body["data"]["meaning"] = "witness".into(),
            ("committed", "commit"),
        );
        self.edited(
            "deployed-uncommitted",
            "Something runs that was never committed.",
            "runs",
            |body| body["data"]["commit"] = "7".repeat(64).into(),
            ("runs", "deployment"),
        );
        self.edited(
            "deployed-without-calibrator",
            "A deployment names a calibrator that nobody fitted.",
            "runs",
            |body| body["data"]["versions"]["calibrator"] = "7".repeat(63).into(),
            ("runs", "schema"),
        );
        self.edited(
            "deployed-on-another-calibrator",
            "A deployment names a calibrator that nobody fitted.",
            "runs",
            |body| body["data"]["versions"]["calibrator"] = "8".repeat(64).into(),
            ("runs", "deployment"),
        );
        self.edited(
            "deployed-another-prompt",
            "The judge is told something else than the rubric gives.",
            "runs",
            |body| body["data"]["versions"]["prompt_hash"] = "8".repeat(64).into(),
            ("runs", "deployment"),
        );
    }

    fn guarded_otherwise(&mut self) {
        self.edited(
            "guardrail-said-to-hold",
            "A guardrail that its numbers break is said to hold.",
            "breach",
            |body| body["data"]["verdicts"]["anchors"] = "pass".into(),
            ("breach", "guardrail"),
        );
        self.edited(
            "guardrail-held-to-less",
            "Guardrails were held to other numbers than the plan has.",
            "held",
            |body| body["data"]["thresholds"]["drift_max_micro"] = 90_000.into(),
            ("held", "guardrail"),
        );
        self.edited(
            "guardrail-of-chosen-rows",
            "A check reads live rows from a place of its own choice.",
            "breach",
            |body| {
                let window = &mut body["data"]["window"];
                let from = window["from_seq"].as_u64().unwrap() + 1;
                window["from_seq"] = from.into();
                let through = window["through_seq"].clone();
                let digest = "7".repeat(64);
                body["data"]["inputs"] =
                    json!({"digest": digest, "rows": 40, "through_seq": through});
            },
            ("breach", "guardrail"),
        );
        self.edited(
            "rolled-back-elsewhere",
            "A rollback restores another deployment than the one that ran before.",
            "back",
            |body| body["data"]["restored"] = "7".repeat(64).into(),
            ("back", "rollback"),
        );
    }

    fn recalibrated_otherwise(&mut self) {
        let world = World::of(&self.story.lines);
        self.push(
            "good-recalibration",
            "Nothing. A calibrator was verified on a hundred fresh labels.",
            &world,
            None,
        );
        self.edited(
            "recalibrated-on-too-few",
            "A recalibration claims more labels than there are.",
            "recalibrated",
            |body| body["data"]["labels"] = 101.into(),
            ("recalibrated", "recalibration"),
        );
        self.edited(
            "recalibrated-on-nothing",
            "A recalibration rests neither on rows nor on an audit.",
            "recalibrated",
            |body| {
                body["data"].as_object_mut().unwrap().remove("transport");
            },
            ("recalibrated", "recalibration"),
        );
    }
}
