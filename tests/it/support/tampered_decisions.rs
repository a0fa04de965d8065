//! Samples around gates, sealing and acceptance.

use super::decided;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_table::Table;

pub fn all() -> Vec<Sample> {
    let mut table = Table::of(decided::story());
    table.judged_otherwise();
    table.paused_otherwise();
    table.sealed_otherwise();
    table.accepted_otherwise();
    table.attacked_otherwise();
    table.written_otherwise();
    table.reported_otherwise();
    table.rows
}

impl Table {
    /// An event was never said, which shows at another.
    fn unsaid(
        &mut self,
        name: &'static str,
        done: &'static str,
        gone: &str,
        shows_at: &str,
        rule: &'static str,
    ) {
        let mut world = self.world();
        world.remove(self.story.at(gone));
        let at = self.story.at(shows_at) - 1;
        self.push(name, done, &world, Some((at, rule)));
    }

    fn written_otherwise(&mut self) {
        let mut world = self.world();
        let data = &mut world.items[self.story.at("patch-a")].body["data"];
        data["inputs"] = serde_json::json!(["0".repeat(64)]);
        self.push(
            "written-from-unpublished",
            "A patch was written from something that nobody had published, and was sealed all the same.",
            &world,
            Some((self.story.at("sealed"), "sealing")),
        );
        self.edited(
            "asked-by-an-arbiter",
            "The dev objective answered a key that is no optimizer's.",
            "asked",
            |data| data["requester"] = signer(BEN).id().to_string().into(),
            "predicate",
        );
    }

    fn attacked_otherwise(&mut self) {
        self.edited(
            "battery-too-short",
            "The search of a battery had fewer tries than it must have.",
            "battery-a",
            |data| data["tries"] = 50.into(),
            "battery",
        );
        self.edited(
            "battery-hides-the-worst",
            "The largest uplift that the search found was lowered.",
            "battery-a",
            |data| data["u_adv"] = 0.02.into(),
            "battery",
        );
        self.edited(
            "battery-hides-a-regression",
            "An open exploit rose under a candidate, and the battery counts no regression.",
            "battery-b",
            |data| data["exploits"][0]["uplift_micro"] = 90_000.into(),
            "battery",
        );
        self.edited(
            "battery-leaves-out-an-exploit",
            "A candidate was attacked with everything but the exploit that is known.",
            "battery-b",
            |data| data["exploits"] = serde_json::json!([]),
            "battery",
        );
        self.edited(
            "exploit-that-is-none",
            "An exploit was reported that earns no more than an attack may.",
            "exploit",
            |data| data["uplift_micro"] = 50_000.into(),
            "battery",
        );
        self.edited(
            "gaming-other-than-attacked",
            "P7 gives a smaller uplift than the battery measured.",
            "a-p7",
            |data| data["evidence"]["p7"]["attacks"][0]["mean"] = 0.001.into(),
            "battery",
        );
        self.edited(
            "card-hides-stress",
            "A card leaves out what attacks earn in its slice.",
            "card",
            |data| {
                *data = serde_json::to_value(decided::card_under(&serde_json::json!([]))).unwrap();
            },
            "battery",
        );
        self.edited(
            "card-of-another-name",
            "A card was softened after its digest had been taken.",
            "card",
            |data| data["card"]["mean_raw_micro"] = (-20_000).into(),
            "predicate",
        );
        self.edited(
            "card-of-another-rubric",
            "A card says that it was computed under a rubric other than the iteration's.",
            "card",
            |data| {
                data["card"]["basis"]["rubric_hash"] = "0".repeat(64).into();
                data["public_digest"] = decided::public_digest(&data["card"]).to_hex().into();
            },
            "predicate",
        );
    }

    fn judged_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-decision",
            "Nothing. Two patches and their composite passed every gate, and both patches were accepted.",
            &world,
            None,
        );
        self.edited(
            "scores-of-fewer-rows",
            "Scores under a candidate leave out rows that were read.",
            "scores-b",
            |data| data["recomputed"] = 2499.into(),
            "predicate",
        );
        self.edited(
            "scores-of-no-candidate",
            "Scores are recorded under a patch that nobody proposed.",
            "scores-a",
            |data| data["candidate"] = "7".repeat(64).into(),
            "predicate",
        );
        self.edited(
            "changed-statistics",
            "The exact p of a candidate on confirm was raised; the verdict stayed.",
            "a-c8",
            |data| data["evidence"]["p8"]["p_exact"] = 0.02.into(),
            "verdict",
        );
        self.edited(
            "changed-verdict",
            "A gate that did not pass under the literal profile was said to have passed.",
            "a-p2",
            |data| data["verdicts"]["literal"] = "pass".into(),
            "verdict",
        );
        self.edited(
            "changed-threshold",
            "A gate was held to another improvement than the registered one.",
            "a-p1",
            |data| data["thresholds"]["eta_micro"] = 500.into(),
            "predicate",
        );
        self.edited(
            "other-classification",
            "A gate cites another classification than the frozen one.",
            "b-p3",
            |data| data["classification_hash"] = "0".repeat(64).into(),
            "predicate",
        );
        self.edited(
            "reclassified",
            "A slice was moved from risk to green, under the old hash.",
            "classified",
            |data| data["slices"][1]["class"] = "green".into(),
            "predicate",
        );
    }

    fn reported_otherwise(&mut self) {
        self.edited(
            "report-hides-a-part",
            "A report was given out without its policy values, and the gap that said so was taken away.",
            "reported",
            |data| data["gaps"] = serde_json::json!([]),
            "report",
        );
        self.edited(
            "report-read-too-early",
            "A report was given out as read before the iteration was decided.",
            "reported",
            |data| data["through_seq"] = 9.into(),
            "report",
        );
    }

    fn paused_otherwise(&mut self) {
        self.edited(
            "paused-without-need",
            "An iteration was paused for labels whose calibrator caused too little of the variance for that.",
            "paused-4",
            |data| data["share"] = 0.25.into(),
            "predicate",
        );
        self.unsaid(
            "closed-as-paused",
            "An iteration was closed as one that waits for labels, and nobody had said why.",
            "paused-4",
            "closed-4",
            "acceptance",
        );
    }

    fn sealed_otherwise(&mut self) {
        self.unsaid(
            "sealed-without-a-gate",
            "A candidate was sealed whose transport nobody had tested.",
            "b-p6",
            "sealed",
            "sealing",
        );
        self.edited(
            "smaller-divisor",
            "Alpha was divided by fewer hypotheses than registered.",
            "sealed",
            |data| data["divisor"] = 3.into(),
            "sealing",
        );
        self.unsaid(
            "unsealed-without-sealing",
            "Confirm was unsealed before anybody said which candidates would be asked.",
            "sealed",
            "unsealed",
            "sealing",
        );
        self.unsaid(
            "confirm-gate-before-unsealing",
            "A gate read confirm labels that nobody had unsealed.",
            "unsealed",
            "a-c4",
            "predicate",
        );
        self.edited(
            "other-confirm-root",
            "A confirm block was unsealed that no split had formed.",
            "unsealed",
            |data| {
                data["confirm_root"] = clover::ground::digest::Digest([7; 32]).to_base64().into();
            },
            "sealing",
        );
    }

    fn accepted_otherwise(&mut self) {
        self.unsaid(
            "accepted-without-a-gate",
            "A patch was accepted though one gate on confirm was never evaluated for the other.",
            "b-c9",
            "accepted-a",
            "acceptance",
        );
        let mut world = self.world();
        let data = &mut world.items[self.story.at("a-c8")].body["data"];
        data["evidence"]["p8"]["p_exact"] = 0.02.into();
        data["verdicts"]["recommended"] = "fail".into();
        self.push(
            "accepted-against-a-gate",
            "A patch was accepted whose gate on confirm had failed.",
            &world,
            Some((self.story.at("accepted-a"), "acceptance")),
        );
        self.edited(
            "closed-without-saying-why",
            "An iteration with two accepted patches was closed as one without.",
            "closed",
            |data| data["outcome"] = "none_accepted".into(),
            "iteration",
        );
    }
}
