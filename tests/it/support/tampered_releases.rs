//! Samples around approvals and commits.

use super::released;
use super::tampered::Sample;
use super::tampered_table::Table;

pub fn all() -> Vec<Sample> {
    let mut table = Table::of(released::story());
    table.approved_otherwise();
    table.reviewed_otherwise();
    table.committed_otherwise();
    table.rows
}

impl Table {
    fn approved_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-release",
            "Nothing. An accepted patch was approved by two people and committed.",
            &world,
            None,
        );
        self.rewritten(
            "approved-nothing",
            "An approval names an event that is no acceptance.",
            "yes-paul",
            |body| body["data"]["subject"] = "7".repeat(64).into(),
            ("yes-paul", "approval"),
        );
        self.rewritten(
            "closed-as-if-the-protocol-changed",
            "An iteration ends because of another protocol, and there is none.",
            "closed",
            |body| body["data"]["outcome"] = "sdp_changed".into(),
            ("closed", "sdp"),
        );
        self.rewritten(
            "approved-as-author",
            "A signature on an approval means authorship.",
            "yes-paul",
            |body| body["data"]["meaning"] = "author".into(),
            ("yes-paul", "approval"),
        );
        self.rewritten(
            "refused-and-committed",
            "The second person refused, and the patch was committed all the same.",
            "yes-paul",
            |body| body["kind"] = "approval.refused".into(),
            ("committed", "commit"),
        );
        self.rewritten(
            "witnessed-and-committed",
            "The second person only saw it done, and the patch was committed all the same.",
            "yes-paul",
            |body| body["data"]["meaning"] = "witness".into(),
            ("committed", "commit"),
        );
    }

    fn reviewed_otherwise(&mut self) {
        let mut world = self.world();
        world.remove(self.story.at("reviewed"));
        let at = self.story.at("sealed") - 1;
        self.push(
            "sealed-without-review",
            "A slice has high stakes, and nobody who knows the field had accepted the patch before it was sealed.",
            &world,
            Some((at, "sealing")),
        );
        self.rewritten(
            "sealed-though-disputed",
            "The reviewer disputed the patch, and it was sealed all the same.",
            "reviewed",
            |body| body["data"]["outcome"] = "disputed".into(),
            ("sealed", "sealing"),
        );
        self.rewritten(
            "reviewed-unread",
            "A review of a patch is of entries without its proposal.",
            "reviewed",
            |body| {
                let before = body["data"]["from_seq"].as_u64().unwrap() - 1;
                body["data"]["from_seq"] = before.into();
                body["data"]["through_seq"] = before.into();
            },
            ("reviewed", "approval"),
        );
    }

    fn committed_otherwise(&mut self) {
        let mut world = self.world();
        world.remove(self.story.at("yes-paul"));
        let at = self.story.at("committed") - 1;
        self.push(
            "committed-with-one-approval",
            "An edit that needs two approvals was committed with one.",
            &world,
            Some((at, "commit")),
        );
        self.rewritten(
            "other-leaf-committed",
            "A leaf of the committed rubric is not what the patch makes of it.",
            "committed",
            |body| body["data"]["leaves"][0]["value"] = serde_json::json!({"text": "never"}),
            ("committed", "commit"),
        );
        self.rewritten(
            "other-prompt-committed",
            "The hash of what the judge is told is another.",
            "committed",
            |body| body["data"]["prompt_hash"] = "5".repeat(64).into(),
            ("committed", "commit"),
        );
        self.rewritten(
            "other-text-committed",
            "The stored text is another than the rubric gives.",
            "committed",
            |body| body["data"]["prompt"]["blake3"] = "6".repeat(64).into(),
            ("committed", "commit"),
        );
        self.rewritten(
            "other-parent-committed",
            "A commit follows another entry than the head.",
            "committed",
            |body| body["data"]["parent"] = "7".repeat(64).into(),
            ("committed", "commit"),
        );
        self.rewritten(
            "committed-without-proof",
            "The tree that a commit names does not hold the acceptance.",
            "committed",
            |body| body["data"]["proof"]["size"] = body["data"]["proof"]["index"].clone(),
            ("committed", "commit"),
        );
        self.rewritten(
            "committed-below",
            "A commit takes a version that is not above the last one.",
            "committed",
            |body| body["data"]["version"] = "1.0".into(),
            ("committed", "commit"),
        );
    }
}
