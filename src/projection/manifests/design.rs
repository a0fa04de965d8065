//! What can be wrong with what an iteration runs on.

use std::collections::BTreeSet;

use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::SliceFamily;

use crate::manifests::check::Sound;
use crate::manifests::check::check_windows;
use crate::manifests::check::fault;

/// Most families of slices, and most slices of a family.
const SLICES_MAX: usize = 12;
/// Most topics of a vocabulary.
const TOPICS_MAX: usize = 100;
/// Families of patches.
const PATCH_FAMILIES: [&str; 4] = [
    "abstention",
    "contradiction_check",
    "evidence_verification",
    "length_bias_cap",
];

fn each_once<T: Ord>(names: impl Iterator<Item = T>) -> bool {
    let mut seen = BTreeSet::new();
    let mut names = names;
    names.all(|name| seen.insert(name))
}

/// Whether nothing is wrong with a design; a plan need not have one.
pub(super) fn check(plan: &IterationPlan) -> Sound {
    let Some(design) = &plan.design else {
        return Ok(());
    };
    let families = plan.patch_families.iter();
    let known = families
        .clone()
        .all(|of| PATCH_FAMILIES.contains(&of.as_str()));
    if plan.patch_families.is_empty() || !known || !each_once(families) {
        return fault(
            "iteration.patch_families",
            format!("some of {}, each once", PATCH_FAMILIES.join(", ")),
            format!("{} families", plan.patch_families.len()),
        );
    }
    let environments = &design.environments;
    if !each_once(environments.iter().map(|of| &of.environment)) {
        return fault(
            "iteration.design.environments",
            "each environment once",
            format!("{} environments", environments.len()),
        );
    }
    let windows = environments.iter().map(|of| (true, of.window));
    check_windows("iteration.design.environments", windows)?;
    if design.claims_no_environment() && !environments.is_empty() {
        return fault(
            "iteration.design.no_environment_claimed",
            "no environment",
            format!("{} environments", environments.len()),
        );
    }
    let slices = &design.slices;
    if slices.len() > SLICES_MAX || !each_once(slices.iter().map(|of| &of.family)) {
        return fault(
            "iteration.design.slices",
            format!("at most {SLICES_MAX} families, each once"),
            format!("{} families", slices.len()),
        );
    }
    slices.iter().try_for_each(check_cells)?;
    let topics = &design.topics;
    let ascending = topics
        .windows(2)
        .all(|pair| pair[0].as_str() < pair[1].as_str());
    let short = |topic: &str| (1..=64).contains(&topic.chars().count());
    if topics.len() <= TOPICS_MAX && ascending && topics.iter().all(|of| short(of.as_str())) {
        return Ok(());
    }
    fault(
        "iteration.design.topics",
        format!("at most {TOPICS_MAX} topics of 1 to 64 characters, ascending, each once"),
        format!("{} topics", topics.len()),
    )
}

fn check_cells(of: &SliceFamily) -> Sound {
    let path = "iteration.design.slices";
    let count = of.cells.len();
    if !(1..=SLICES_MAX).contains(&count) || !each_once(of.cells.iter().map(|cell| &cell.slice)) {
        return fault(
            path,
            format!("1 to {SLICES_MAX} cells of {}, each once", of.family),
            format!("{count} cells"),
        );
    }
    for cell in &of.cells {
        let bound = cell.conditions.iter().all(|on| {
            let words = on.any_of.as_ref().map(|words| !words.is_empty());
            words.unwrap_or(on.at_least_micro.is_some() || on.below_micro.is_some())
        });
        if cell.conditions.is_empty() || !bound {
            let expected = format!("conditions with a bound for {}", cell.slice);
            return fault(path, expected, "none");
        }
        let stakes = cell.stakes_micro.value();
        if !(0..=1_000_000).contains(&stakes) {
            let expected = format!("stakes_micro of {} 0 to 1000000", cell.slice);
            return fault(path, expected, stakes.to_string());
        }
    }
    Ok(())
}
