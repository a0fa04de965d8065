//! Checks of a judge's drift, as an author may write them, and anchors that a ledger holds.

use std::collections::BTreeSet;

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::payload::drift::DriftPlan;
use clover::event::payload::drift::DriftTerms;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::label::row_of_draw;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::num::Count;
use clover::num::Micro;
use clover::workflow::drift;
use clover::workflow::drift::AnchorHistory;
use clover::workflow::drift::AnchorQuery;
use clover::workflow::drift::AnchorRow;
use clover::workflow::drift::Heard;
use clover::workflow::iterate::rows::anchor_root;
use serde_json::Value;
use serde_json::json;

use super::TestLedger;
use super::planned::payload;

/// Rows of each anchor policy.
pub const ROWS: u64 = 200;
pub const SET: &str = "anchors-d";
pub const JUDGE: &str = "judge-d";

/// A score of an anchor row: distinct, and good ones above bad ones.
pub fn score(policy: &str, at: u64) -> i64 {
    let level = if policy == "good" { 600_000 } else { 100_000 };
    level + i64::try_from(at).unwrap() * 1_000
}

/// Scores of both policies, and the set that names them.
pub fn anchored(judge: &str) -> Vec<Payload> {
    let mut said = Vec::new();
    let mut of = |policy: &str| {
        let mut ids = BTreeSet::new();
        for at in 0..ROWS {
            let scored = ScoreRecorded {
                call: None,
                draw: Count::default(),
                item: format!("anchor-{at:03}").parse().unwrap(),
                judge: judge.parse().unwrap(),
                policy: policy.parse().unwrap(),
                prompt: None,
                response: None,
                score_micro: Micro::new(score(policy, at)).unwrap(),
            };
            ids.insert(row_of_draw(&scored.policy, &scored.item, scored.draw));
            said.push(scored.into());
        }
        json!({"count": ROWS, "policy": policy, "rows_root": anchor_root(&ids)})
    };
    let (low, high) = (of("bad"), of("good"));
    let set = json!({"anchors": SET, "high": high, "low": low});
    said.push(payload("anchor_set.registered", &set));
    said
}

/// Appends scores and set in one batch.
pub fn anchor(test: &mut TestLedger, experiment: &str) {
    let id = || Some(experiment.parse::<ExperimentId>().unwrap());
    let batch: Vec<_> = anchored(JUDGE)
        .into_iter()
        .map(|payload| Command::new(payload, id()))
        .collect();
    test.append(&batch).unwrap();
}

pub fn recorded(test: &TestLedger, experiment: &str) -> AnchorHistory {
    let (experiment, anchors, judge) = (
        experiment.parse().unwrap(),
        SET.parse().unwrap(),
        JUDGE.parse().unwrap(),
    );
    let which = AnchorQuery {
        anchors: &anchors,
        experiment: &experiment,
        judge: &judge,
        through: test.ledger.size() - 1,
    };
    drift::recorded(&test.ledger, &which).unwrap()
}

pub fn usual() -> DriftTerms {
    DriftTerms {
        manifest: None,
        plan: DriftPlan::default(),
    }
}

/// What the judge says now: a change of each recorded score, from the row's place.
pub fn checked(test: &TestLedger, experiment: &str, change: impl Fn(usize) -> i64) -> Payload {
    let found = recorded(test, experiment);
    let scores = found.rows.iter().enumerate().map(|(at, row)| {
        let moved = row.recorded.value() + change(at);
        Micro::new(moved).unwrap()
    });
    let heard = Heard {
        asked: None,
        scores: scores.collect(),
    };
    drift::check(&found, heard, usual()).unwrap().into()
}

/// What the judge says anew, where good rows moved by a change, after earlier checks of the same rows; and its scores.
pub fn again(
    judge: &str,
    earlier: &[Vec<Micro>],
    through: u64,
    change: i64,
) -> (Payload, Vec<Micro>) {
    let rows = ["bad", "good"].into_iter();
    let rows = rows.flat_map(|policy| (0..ROWS).map(move |at| (policy, at)));
    let rows = rows.map(|(policy, at)| AnchorRow {
        id: format!("{policy}/anchor-{at:03}/0"),
        policy: policy.parse().unwrap(),
        item: format!("anchor-{at:03}").parse().unwrap(),
        draw: 0,
        recorded: Micro::new(score(policy, at)).unwrap(),
    });
    let found = AnchorHistory {
        anchors: SET.parse().unwrap(),
        judge: judge.parse().unwrap(),
        rows: rows.collect(),
        earlier: earlier.to_vec(),
        registered: None,
        unversioned: 0,
        through,
    };
    let moved = |row: &AnchorRow| {
        let good = row.policy.as_str() == "good";
        Micro::new(row.recorded.value() + if good { change } else { 0 }).unwrap()
    };
    let scores: Vec<Micro> = found.rows.iter().map(moved).collect();
    let heard = Heard {
        asked: None,
        scores: scores.clone(),
    };
    let said = drift::check(&found, heard, usual()).unwrap();
    (said.into(), scores)
}

fn charted(drifts: bool) -> Value {
    let p = if drifts { 0.0001 } else { 0.5 };
    json!({
        "check": 1, "drifts": drifts, "excursion": if drifts { 6.5 } else { 0.25 }, "p": p, "p_adjusted": p,
        "side": "up",
    })
}

/// A check of two rows by numbers of nobody's: for samples, where nothing is computed again.
pub fn written(judge: &str, set: &str, fails: bool) -> Value {
    json!({
        "anchor_rows_root": Digest([7; 32]).to_base64(), "anchors": set,
        "asked": {
            "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "clover-text/1",
            "model": "m-2026-05", "port": "command", "prompt_hash": Digest([8; 32]).to_hex(),
            "tool_snapshot": Digest([9; 32]).to_hex(),
        },
        "build": "clover 0.1.0", "judge": judge, "kendall_tau": 1.0, "p": 1.0,
        "policies": [
            {"charted": charted(fails), "mean_change": 0.05, "policy": "bad", "rows": 1},
            {"charted": charted(false), "mean_change": 0.0, "policy": "good", "rows": 1},
        ],
        "rows": {"changed": 1, "drifting": 0, "rows": 2, "worst": "bad/a/0", "worst_charted": charted(false)},
        "scores_micro": [250_000, 750_000], "terms": {"plan": plan()}, "through_seq": 3, "unversioned": 0,
        "verdicts": {"ranks": "pass", "residuals": if fails { "fail" } else { "pass" }, "version": "pass"},
    })
}

/// The usual numbers, as `schema/DRIFT.md` has them.
pub fn plan() -> Value {
    json!({
        "chart": "cusum", "chart_micro": 500_000, "q_micro": 10_000, "replicates": 9_999, "sd_micro": 50_000,
        "seed": 42, "tau_min_micro": 800_000,
    })
}

/// Table 9 of the CJE paper with the warnings of its implementation, as `schema/DRIFT.md` has them.
pub fn table_9() -> Value {
    json!({
        "affinity_good_micro": 850_000, "affinity_warn_micro": 500_000, "cv_max_micro": 2_000_000,
        "ess_good_micro": 300_000, "ess_warn_micro": 100_000, "guarded_max_micro": 500_000,
        "hill_good_micro": 2_000_000, "hill_warn_micro": 1_000_000, "near_zero_max_micro": 850_000,
        "top_mass_max_micro": 300_000, "ttc_good_micro": 700_000, "ttc_warn_micro": 300_000,
    })
}
