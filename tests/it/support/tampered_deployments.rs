//! Samples around deployments, guardrails, rollbacks and recalibrations.

use serde_json::json;

use super::deployed;
use super::tampered::Sample;
use super::tampered_table::Table;

pub fn all() -> Vec<Sample> {
    let mut table = Table::of(deployed::story());
    table.deployed_otherwise();
    table.guarded_otherwise();
    table.story = deployed::evaluated();
    table.run_by_another();
    table.story = deployed::alike();
    table.run_by_a_judge_that_is_told_otherwise();
    table.story = deployed::recalibration();
    table.recalibrated_otherwise();
    table.rows
}

impl Table {
    fn deployed_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-deployment",
            "Nothing. A committed prompt ran, broke a guardrail, and was rolled back.",
            &world,
            None,
        );
        self.rewritten(
            "deployed-with-one-approval",
            "One of two people only saw the approval done; the prompt was committed and ran all the same.",
            "yes-paul",
            |body| body["data"]["meaning"] = "witness".into(),
            ("committed", "commit"),
        );
        self.rewritten(
            "deployed-uncommitted",
            "Something runs that was never committed.",
            "runs",
            |body| body["data"]["commit"] = "7".repeat(64).into(),
            ("runs", "deployment"),
        );
        self.rewritten(
            "deployed-without-calibrator",
            "A deployment names a calibrator that nobody fitted.",
            "runs",
            |body| body["data"]["versions"]["calibrator"] = "7".repeat(63).into(),
            ("runs", "schema"),
        );
        self.rewritten(
            "deployed-on-another-calibrator",
            "A deployment names a calibrator that nobody fitted.",
            "runs",
            |body| body["data"]["versions"]["calibrator"] = "8".repeat(64).into(),
            ("runs", "deployment"),
        );
        self.rewritten(
            "deployed-another-prompt",
            "The judge is told something else than the rubric gives.",
            "runs",
            |body| body["data"]["versions"]["prompt_hash"] = "8".repeat(64).into(),
            ("runs", "deployment"),
        );
    }

    fn run_by_another(&mut self) {
        let world = self.world();
        self.push(
            "good-evaluated",
            "Nothing. A committed prompt runs on the calibrator that its gates were evaluated with.",
            &world,
            None,
        );
        self.rewritten(
            "deployed-on-another-judge",
            "A prompt runs on a judge with which none of its gates was evaluated, by a calibrator of that judge.",
            "runs",
            |body| {
                body["data"]["versions"]["judge"] = deployed::OTHER_JUDGE.into();
                body["data"]["versions"]["calibrator"] = "09".repeat(32).into();
            },
            ("runs", "deployment"),
        );
    }

    fn run_by_a_judge_that_is_told_otherwise(&mut self) {
        self.rewritten(
            "deployed-by-a-judge-told-otherwise",
            "A version runs on a judge that is told the text of a refused patch, and that answers like the one it was judged with.",
            "runs",
            |body| {
                body["data"]["versions"]["judge"] = deployed::told_otherwise().into();
                body["data"]["versions"]["model"] = deployed::OTHER_JUDGE.into();
            },
            ("runs", "deployment"),
        );
    }

    fn guarded_otherwise(&mut self) {
        self.rewritten(
            "guardrail-said-to-hold",
            "A guardrail that its numbers break is said to hold.",
            "breach",
            |body| body["data"]["verdicts"]["anchors"] = "pass".into(),
            ("breach", "guardrail"),
        );
        self.rewritten(
            "guardrail-held-to-less",
            "Guardrails were held to other numbers than the plan has.",
            "held",
            |body| body["data"]["thresholds"]["drift_max_micro"] = 90_000.into(),
            ("held", "guardrail"),
        );
        self.rewritten(
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
        self.rewritten(
            "rolled-back-elsewhere",
            "A rollback restores another deployment than the one that ran before.",
            "back",
            |body| body["data"]["restored"] = "7".repeat(64).into(),
            ("back", "rollback"),
        );
    }

    fn recalibrated_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-recalibration",
            "Nothing. A calibrator was verified on a hundred fresh labels.",
            &world,
            None,
        );
        self.rewritten(
            "recalibrated-on-too-few",
            "A recalibration claims more labels than there are.",
            "recalibrated",
            |body| body["data"]["labels"] = 101.into(),
            ("recalibrated", "recalibration"),
        );
        self.rewritten(
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
