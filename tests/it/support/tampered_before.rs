//! Samples around rulebook 22 and what is said or scored once labels can be read: rows of confirm, probes, covariates, strata.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::*;
use super::sequenced;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_undone::sample;
use super::valued;

/// What was done under a rulebook: the history, and the position of the last event.
type Told = (World, usize);

/// A history under a rulebook, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    /// The name under the rulebook that did not ask, where the history comes twice.
    unasked: Option<&'static str>,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "confirm-row-without-score", unasked: Some("confirm-row-without-score-unasked"), rule: Some("sealing"),
           told: |book| shown(book, &[1]),
           done: "Confirm was unsealed, and a label was shown of a row that the judge had not scored: whoever scores could leave it out." },
    Case { name: "confirm-scored-after-unsealing", unasked: Some("confirm-scored-after-unsealing-unasked"), rule: Some("sealing"),
           told: scored_after,
           done: "Confirm was unsealed, a label was shown, and then its row was scored." },
    Case { name: "good-confirm-scored-before", unasked: None, rule: None,
           told: |book| shown(book, &[]),
           done: "Nothing. Every sealed row was scored before confirm was unsealed, and a label was shown." },
    Case { name: "probe-scored-after-its-label", unasked: Some("probe-scored-after-its-label-unasked"), rule: Some("transport"),
           told: |book| audited(book, true, (1, 0), "pass"),
           done: "A probe was labelled, then scored, and its audit passed as if the score had been there before." },
    Case { name: "audit-passed-with-a-late-probe", unasked: None, rule: Some("transport"),
           told: |book| audited(book, true, (0, 1), "pass"),
           done: "A probe was labelled, then scored; the audit says that one is late, and passed." },
    Case { name: "audit-without-a-probe", unasked: None, rule: Some("transport"),
           told: |book| audited(book, false, (0, 0), "inconclusive"),
           done: "A design has one probe, and its audit counts none." },
    Case { name: "good-audit-with-a-late-probe", unasked: None, rule: None,
           told: |book| audited(book, true, (0, 1), "inconclusive"),
           done: "Nothing. A probe was labelled, then scored; the audit says that one is late, and passed nothing." },
    Case { name: "good-audit-of-timely-probes", unasked: None, rule: None,
           told: |book| audited(book, false, (1, 0), "pass"),
           done: "Nothing. A probe was scored, then labelled, and its audit passed." },
    Case { name: "covariate-said-after-labels", unasked: Some("covariate-said-after-labels-unasked"), rule: Some("transport"),
           told: |book| estimated(book, "merit", &["merit"], "targeted"),
           done: "A label could be read, an import said a field of the rows, and an estimate took it as a covariate." },
    Case { name: "good-field-said-after-labels", unasked: None, rule: None,
           told: |book| estimated(book, "merit", &["response_length"], "targeted"),
           done: "Nothing. A label could be read, an import said a field of the rows, and an estimate did without it." },
    Case { name: "weights-by-strata-said-after-labels", unasked: Some("weights-by-strata-said-after-labels-unasked"), rule: Some("transport"),
           told: |book| estimated(book, "stratum", &["response_length"], "weighted"),
           done: "A label could be read, an import said strata of the rows, and an estimate weighted labels by them." },
    Case { name: "good-strata-said-after-labels", unasked: None, rule: None,
           told: |book| estimated(book, "stratum", &["response_length"], "targeted"),
           done: "Nothing. A label could be read, an import said strata of the rows, and an estimate has labels correct nothing." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(22);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(21).0, None));
        }
    }
    rows
}

/// The row of the first label that is shown.
fn first_shown(story: &Story) -> String {
    let of = World::of(&story.lines);
    let said = &of.items[story.at("shown-1")].body["data"];
    said["row"].as_str().unwrap().to_owned()
}

/// A score of a row `base/ITEM/0` by the judge of the iteration.
fn score(world: &mut World, experiment: &Value, row: &str) -> usize {
    let item = row.split('/').nth(1).unwrap();
    let data = json!({
        "draw": 0, "item": item, "judge": "builtin", "policy": "base", "score_micro": 500_000,
    });
    world.say(RUNNER_2, "score.recorded", 1, experiment.clone(), data)
}

/// Sealed rows are scored, but for the first that is shown where `without` names it; confirm is unsealed and that label shown.
fn shown(rulebook: u64, without: &[usize]) -> Told {
    let story = sequenced::story();
    let mut world = World::of(&story.lines);
    let experiment = world.items[story.at("unsealed")].body["experiment"].clone();
    let seals = story
        .names
        .iter()
        .filter(|(name, _)| name.starts_with("seal-"));
    let rows = seals.map(|(_, at)| {
        let row = &world.items[*at].body["data"]["row"];
        row.as_str().unwrap().to_owned()
    });
    let mut rows: Vec<String> = rows.collect();
    if !without.is_empty() {
        let first = first_shown(&story);
        rows.retain(|row| *row != first);
    }
    world.items.truncate(story.at("unsealed"));
    adopt(&mut world, rulebook);
    for row in &rows {
        score(&mut world, &experiment, row);
    }
    again(&mut world, &story, "unsealed", |_| ());
    let at = again(&mut world, &story, "shown-1", |_| ());
    (world, at)
}

/// The label of a row that was not scored is shown under the older rulebook, and then the row is scored.
fn scored_after(rulebook: u64) -> Told {
    let story = sequenced::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("shown-1") + 1);
    let experiment = world.items[story.at("shown-1")].body["experiment"].clone();
    adopt(&mut world, rulebook);
    let at = score(&mut world, &experiment, &first_shown(&story));
    (world, at)
}

/// A probe that is scored before or after its label, and an audit that counts some, says that others are late, and ends so.
fn audited(rulebook: u64, is_late: bool, (rows, late): (u64, u64), state: &str) -> Told {
    let mut world = World::of(&good().lines);
    let arena = || Value::from(ARENA);
    adopt(&mut world, rulebook);
    let design = json!({
        "design": "probe-2", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(LENA, "label.design_registered", 1, arena(), design);
    let score = json!({
        "draw": 0, "item": "item-z", "judge": "judge-1", "policy": "tuned", "score_micro": 500_000,
    });
    if !is_late {
        world.say(RUNNER_3, "score.recorded", 1, arena(), score.clone());
    }
    let label = json!({
        "design": "probe-2", "draw": 0, "item": "item-z", "policy": "tuned", "purpose": "audit", "rater": "Lena",
        "value_micro": 0,
    });
    world.say(LENA, "label.recorded", 1, arena(), label);
    if is_late {
        world.say(RUNNER_3, "score.recorded", 1, arena(), score);
    }
    let mut tested = valued::tested(5, "probe-2", state);
    tested["algorithm"] = "transport/2".into();
    tested["policy"] = "tuned".into();
    tested["through_seq"] = 7.into();
    tested["rows"] = rows.into();
    tested["late"] = late.into();
    let at = world.say(ARBITER, "transport.tested", 1, arena(), tested);
    (world, at)
}

/// An import says a field of rows of which a label could be read, and an estimate is made with covariates and a use of labels.
fn estimated(rulebook: u64, field: &str, covariates: &[&str], labels: &str) -> Told {
    let story = good();
    let mut world = World::of(&story.lines);
    adopt(&mut world, rulebook);
    let at = again(&mut world, &story, "ingested-1", |data| {
        data["fields"] = json!([{"fields": [field], "policy": "base"}]);
        data["rows_root"] = clover::ground::digest::Digest::sha256(b"said later")
            .to_base64()
            .into();
    });
    let mut data = valued::estimate(5, None);
    data["through_seq"] = at.into();
    data["policy"] = "tuned".into();
    data["claim"] = "borrowed_unchecked".into();
    data["off_mode"] = 3.into();
    data["terms"]["labels"] = labels.into();
    data["terms"]["covariates"] = json!(covariates);
    let at = world.say(ARBITER, "estimate.recorded", 1, ARENA.into(), data);
    (world, at)
}
