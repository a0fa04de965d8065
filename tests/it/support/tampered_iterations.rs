//! Samples around the iterations of a rubric.

use clover::event::Payload;
use clover::ground::canon;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::iterated;
use super::planned;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_table::Table;

pub fn all() -> Vec<Sample> {
    let mut table = Table::of(iterated::story());
    table.opened_otherwise();
    table.patched_otherwise();
    table.said_too_late();
    table.rows
}

fn diff_hash(data: &mut Value) {
    let bytes = canon::to_bytes(&data["diff"]).unwrap();
    data["patch_hash"] = Digest::labelled("clover/patch/v1", &bytes).to_hex().into();
}

impl Table {
    /// An event said at the end, when the labels of the open iteration were seen.
    fn said(
        &mut self,
        name: &'static str,
        done: &'static str,
        who: u8,
        payload: &Payload,
        rule: &'static str,
    ) {
        let mut world = self.world();
        let (kind, v) = (payload.kind().as_str(), payload.kind().version());
        let data = serde_json::to_value(payload).unwrap();
        world.say(who, kind, u64::from(v), EXPERIMENT.into(), data);
        let last = world.items.len() - 1;
        self.push(name, done, &world, Some((last, rule)));
    }

    fn opened_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-iteration",
            "Nothing. A rubric, anchors and a plan; one iteration that ended without a candidate, and one whose \
             confirm labels were seen.",
            &world,
            None,
        );
        self.edited(
            "changed-parameters",
            "An iteration was opened with another demanded improvement than its manifest registered.",
            "opened-2",
            |data| {
                data["params"]["eta_micro"] = 500.into();
                iterated::rehash(data);
            },
            "iteration",
        );
        self.edited(
            "few-anchor-rows",
            "An anchor policy has one row too few.",
            "anchors",
            |data| data["low"]["count"] = 199.into(),
            "iteration",
        );
        self.edited(
            "other-rubric",
            "The leaves beside a rubric's document are not those of the document.",
            "rubric",
            |data| data["leaves"][0]["value"] = json!({"text": "never"}),
            "rubric",
        );
        let mut world = self.world();
        world.remove(self.story.at("closed-1"));
        let at = self.story.at("opened-2") - 1;
        self.push(
            "second-open-iteration",
            "A second iteration was opened while the first one was open.",
            &world,
            Some((at, "iteration")),
        );
    }

    fn patched_otherwise(&mut self) {
        self.edited(
            "patch-of-another-family",
            "A patch of evidence verification touches the length cap.",
            "patch-1",
            |data| {
                let cap = "guards.length_bias_cap.if_tokens_gt";
                data["diff"] = json!([{"op": "set", "path": cap, "value": {"count": 400}}]);
                diff_hash(data);
                let yaml = data["yaml"].as_str().unwrap();
                let yaml = yaml.replace("if_tokens_gt: 500", "if_tokens_gt: 400");
                data["yaml"] = yaml.replace("bmj.com", "nih.gov").into();
            },
            "patch",
        );
        self.edited(
            "patch-with-other-bytes",
            "The document of a patch was exchanged for one that no parser admits; what it is said to change stayed.",
            "patch-2",
            |data| {
                let yaml = data["yaml"].as_str().unwrap();
                data["yaml"] = yaml.replace("rationale", "reason").into();
            },
            "patch",
        );
        self.edited(
            "understated-length",
            "The code length of a patch was understated.",
            "patch-3",
            |data| data["length"]["kappa"] = 1.into(),
            "patch",
        );
        self.edited(
            "same-patch-again",
            "A patch was proposed under an id that another patch had.",
            "patch-2",
            |data| {
                data["patch"] = "len-cite-guard-001".into();
                data["yaml"] = iterated::PATCH.into();
            },
            "natural_key",
        );
    }

    fn said_too_late(&mut self) {
        let late = iterated::patch("late-1", "contradiction_check", iterated::STAKEHOLDERS);
        self.said(
            "proposed-after-unsealing",
            "A patch was proposed when the confirm labels of its iteration had been seen.",
            RUNNER,
            &iterated::proposed("it-2", &late),
            "iteration",
        );
        let plan = iterated::plan(EXPERIMENT, "m-it");
        let mut other = planned::next(&plan, &plan);
        other["iteration"]["tau_micro"] = 2_000.into();
        let amended = planned::amended(&other, &plan, 1);
        self.said(
            "amended-while-open",
            "The tolerance of green slices was raised while an iteration was open, after its labels were seen.",
            ADA,
            &amended,
            "amendment",
        );
        self.said(
            "closed-as-if-unseen",
            "An iteration whose labels were seen was closed as one that spent no peek.",
            BEN,
            &iterated::closed("it-2", "no_candidate"),
            "iteration",
        );
    }
}
