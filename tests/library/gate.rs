//! A whole gate: a plan signed and countersigned, units exposed and observed, a decision.

use std::error::Error;
use std::path::Path;

use clover::event::id::ExperimentId;
use clover::event::id::ItemId;
use clover::event::payload::decision::Outcome;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::gate::GateSource;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::manifest::Manifest;
use clover::event::payload::prereg::FamilyOpened;
use clover::session::append::Intent;
use clover::session::gate::GateSetup;
use clover::session::gate::Observer;
use clover::session::gate::exposure;
use clover::session::gate::observe::Extent;
use clover::session::gate::open::UnitFile;
use clover::session::gate::steps;
use clover::session::prereg::registration;
use clover::workflow::gates::steps::Confirm;
use serde_json::json;

use super::desk::Desk;

/// Runs it in a folder; answers with what was decided.
pub(crate) fn run(folder: &Path) -> Result<Outcome, Box<dyn Error>> {
    let mut desk = Desk::new(folder)?;
    let experiment: ExperimentId = "answers".parse()?;
    let about = json!({"title": "answers", "purpose": "an example"});
    desk.say_json::<ExperimentRegistered>(about, &experiment)?;
    let family = json!({
        "alpha_micro": 50_000, "family": "quarter", "members_max": 1, "membership": "gates of this quarter", "method": "spend",
    });
    desk.say_json::<FamilyOpened>(family, &experiment)?;

    // The plan says the test, and binds the units by their root.
    let units: Result<Vec<ItemId>, _> = (0..40).map(|at| format!("unit-{at:02}").parse()).collect();
    let units = UnitFile {
        file: "units".to_owned(),
        confirm: Confirm {
            strata: None,
            units: units?,
        },
    };
    let plan: Manifest = serde_json::from_value(json!({
        "template": "gate", "version": 1, "manifest": "m-1", "experiment": "answers", "title": "Answers",
        "hypothesis": {"claim": "the new policy answers better", "kind": "promote"},
        "arms": [
            {"id": "baseline", "role": "baseline", "artifact_digest": "ab".repeat(32)},
            {"id": "candidate", "role": "candidate", "artifact_digest": "cd".repeat(32)},
        ],
        "estimand": {
            "population": "superpopulation", "unit_key": "scenario", "rep_rule": "single", "aggregation": "mean",
            "missing_rule": "conservative",
        },
        "metric": {
            "metric": "quality", "judge_digest": "ef".repeat(32), "direction": "increase", "scale_lo_micro": 0,
            "scale_hi_micro": 1_000_000, "repeats": 1,
        },
        "data": {"confirm_root": units.confirm.root(), "n_units": 40, "exposure_cap": 2},
        "test": {
            "alpha_micro": 50_000, "alpha_kill_micro": 50_000, "side": "upper", "null_margin_micro": 0,
            "delta_design_micro": 200_000, "n_min": 5, "n_max": 40, "bettor": {"name": "grid_kelly", "grid": 20},
            "beacon": "first_checkpoint", "without_replacement": false,
        },
        "multiplicity": {"family": "quarter", "family_alpha_micro": 50_000, "method": "spend"},
    }))?;
    let Desk { keys, ledger, .. } = &mut desk;
    let id = registration::sign(keys, ledger, (plan, &[]), true, Intent::Append)?
        .manifest
        .manifest;
    let source = GateSource {
        design: None,
        judge: Some("judge-1".parse()?),
        metric: "quality".parse()?,
    };
    GateSetup::of(ledger.state(), &id, &units)?.open(keys, ledger, vec![source])?;

    // Thirty units are exposed, in the order that nobody chose; the candidate answers better on each.
    exposure::open(keys, ledger, (&id, Some(30)))?.append(keys, ledger)?;
    let exposed = exposure::list(ledger, ledger.state(), &id)?;
    for (item, (policy, score)) in exposed
        .iter()
        .flat_map(|item| [("baseline", 400_000), ("candidate", 700_000)].map(|score| (item, score)))
    {
        let score = json!({"draw": 0, "item": item, "judge": "judge-1", "policy": policy, "score_micro": score});
        desk.say_json::<ScoreRecorded>(score, &experiment)?;
    }

    // Observing stops at the look that decides.
    let Desk { keys, ledger, .. } = &mut desk;
    let extent = Extent {
        missing: false,
        through: None,
    };
    Observer::of(ledger, &id)?.observe(keys, ledger, (extent, None))?;
    let decided = steps::decide(keys, ledger, &id)?;
    decided.append(keys, ledger)?;
    Ok(decided.terms.outcome)
}
