//! What a ledger can enforce of an iteration, I1 to I13 of CLOVER v1.1, section 10.5: for each, stories that end in a
//! refusal, and histories under `audits/` in which both verifiers find the breach first at the rule that is named here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clover::event::payload::Role;
use clover::ground::digest::Digest;
use serde_json::json;

use super::assumptions;
use super::decisions;
use super::decisions::refused;
use super::decisions::said;
use super::deployments;
use super::iterations;
use super::releases;
use super::rules;
use super::world::SOLO;
use super::world::tell;
use crate::support::child;
use crate::support::decided;
use crate::support::decided::gate;
use crate::support::decided::passing;
use crate::support::key_added;
use crate::support::planned;
use crate::support::signer;
use crate::support::verifiers;
use crate::support::verifiers::Case;

/// One of the thirteen.
struct Invariant {
    id: &'static str,
    /// Stories that end in a refusal and are tests of their own, by name.
    refused: &'static [(&'static str, fn())],
    /// Stories that are told here alone.
    here: &'static [(&'static str, fn())],
    /// Folders under `audits/`, and the rule that is broken first.
    samples: &'static [(&'static str, &'static str)],
}

/// Stories with their names.
macro_rules! stories {
    ($($story:path),+ $(,)?) => { &[$((stringify!($story), $story as fn())),+] };
}

const ALL: [Invariant; 13] = [
    // The right signer.
    Invariant {
        id: "I1",
        refused: stories![rules::role, rules::signature],
        here: stories![whoever_writes_patches_judges_none],
        samples: &[
            ("role-breach", "role"),
            ("judged-by-the-optimizer", "role"),
            ("signed-by-another-key", "signature"),
            ("unsealed-by-labeler", "role"),
        ],
    },
    // Whoever writes patches sees cards, and nothing else.
    Invariant {
        id: "I2",
        refused: stories![
            decisions::a_patch_is_written_from_what_was_published,
            assumptions::a_read_names_a_live_key_and_a_role_that_it_holds
        ],
        here: stories![labels_that_an_optimizer_was_shown_taint_its_patches],
        samples: &[
            ("read-by-stranger", "access"),
            ("written-from-unpublished", "sealing"),
            ("sealed-though-tainted", "sealing"),
        ],
    },
    // YAML alone, by the ledger's own parser.
    Invariant {
        id: "I3",
        refused: stories![iterations::a_patch_is_what_its_document_says_and_passes_every_check],
        here: &[],
        samples: &[
            ("patch-with-other-bytes", "patch"),
            ("patch-of-another-family", "patch"),
            ("understated-length", "patch"),
        ],
    },
    // Confirm is seen late, once, and for a charge.
    Invariant {
        id: "I4",
        refused: stories![
            decisions::confirm_is_unsealed_once_for_a_charge,
            rules::charge
        ],
        here: stories![confirm_waits_for_the_end_of_its_window],
        samples: &[
            ("unsealed-without-sealing", "sealing"),
            ("unsealed-before-its-window-ended", "sealing"),
            ("unsealed-twice", "natural_key"),
            ("other-confirm-root", "sealing"),
            ("spent-confirm", "split"),
            ("confirm-row-in-fit", "split"),
            ("peek-without-charge", "charge"),
        ],
    },
    // Nothing after the unsealing.
    Invariant {
        id: "I5",
        refused: stories![
            iterations::patches_belong_to_an_open_iteration,
            iterations::one_iteration_is_open_at_a_time_and_its_parameters_stand,
        ],
        here: &[],
        samples: &[
            ("proposed-after-unsealing", "iteration"),
            ("amended-while-open", "amendment"),
            ("asked-after-sealing", "predicate"),
            ("dev-gate-after-unsealing", "predicate"),
            ("classified-after-unsealing", "natural_key"),
        ],
    },
    // One candidate of a family, two accepted patches, three peeks a quarter.
    Invariant {
        id: "I6",
        refused: stories![
            decisions::two_of_a_family_are_never_sealed,
            decisions::what_is_sealed_is_what_alpha_is_divided_by,
            iterations::an_iteration_needs_what_its_plan_names
        ],
        here: stories![a_third_patch_is_never_accepted],
        samples: &[
            ("two-of-a-family-sealed", "sealing"),
            ("third-accepted", "acceptance"),
            ("fourth-peek", "overdraft"),
        ],
    },
    // Classification and parameters are frozen.
    Invariant {
        id: "I7",
        refused: stories![
            decisions::a_gate_stands_on_what_is_frozen_and_registered,
            iterations::every_number_comes_from_the_manifest,
        ],
        here: &[],
        samples: &[
            ("other-classification", "predicate"),
            ("reclassified", "predicate"),
            ("changed-threshold", "predicate"),
            ("changed-parameters", "iteration"),
        ],
    },
    // Verdicts are computed again.
    Invariant {
        id: "I8",
        refused: stories![decisions::a_verdict_follows_from_its_statistics],
        here: &[],
        samples: &[
            ("changed-statistics", "verdict"),
            ("changed-verdict", "verdict"),
        ],
    },
    // Accepted is what passed every gate.
    Invariant {
        id: "I9",
        refused: stories![
            decisions::a_patch_is_accepted_by_all_its_gates,
            decisions::patches_are_accepted_in_order_and_none_is_left_out,
        ],
        here: &[],
        samples: &[
            ("accepted-without-a-gate", "acceptance"),
            ("accepted-against-a-gate", "acceptance"),
            ("accepted-on-twelve-gates", "acceptance"),
        ],
    },
    // Two people, neither of them the author.
    Invariant {
        id: "I10",
        refused: stories![
            releases::two_people_approve_an_accepted_patch_by_name,
            releases::under_strict_author_and_approvers_are_different_people,
            releases::what_needs_two_approvals_is_not_committed_with_fewer,
        ],
        here: &[],
        samples: &[
            ("approved-by-its-author", "approval"),
            ("committed-with-one-approval", "commit"),
            ("deployed-with-one-approval", "commit"),
        ],
    },
    // A draw is scored once.
    Invariant {
        id: "I11",
        refused: stories![
            rules::natural_key,
            assumptions::a_contradicting_judge_blocks_governed_steps_and_nothing_else,
        ],
        here: &[],
        samples: &[
            ("scored-twice", "natural_key"),
            ("step-after-conflict", "blocked"),
            ("committed-after-conflict", "blocked"),
            ("confirm-looked-after-conflict", "blocked"),
            ("deployed-after-conflict", "blocked"),
            ("gate-continued-after-conflict", "blocked"),
            ("gate-decided-after-conflict", "blocked"),
            ("gate-looked-after-conflict", "blocked"),
            ("gate-observed-after-conflict", "blocked"),
            ("gate-opened-after-conflict", "blocked"),
            ("generator-asked-after-conflict", "blocked"),
            ("generator-validated-after-conflict", "blocked"),
            ("promoted-after-conflict", "blocked"),
            ("tuned-after-conflict", "blocked"),
        ],
    },
    // One protocol of labels.
    Invariant {
        id: "I12",
        refused: stories![
            assumptions::people_label_by_the_protocol_in_force,
            deployments::an_iteration_whose_protocol_was_replaced_only_closes_and_says_so,
        ],
        here: &[],
        samples: &[
            ("other-protocol", "sdp"),
            ("gone-on-under-another-protocol", "sdp"),
            ("asked-under-another-protocol", "sdp"),
            ("attacked-under-another-protocol", "sdp"),
            ("fitted-under-another-protocol", "sdp"),
            ("looked-under-another-protocol", "sdp"),
        ],
    },
    // Back to what ran before.
    Invariant {
        id: "I13",
        refused: stories![deployments::a_breach_is_rolled_back_next_and_to_what_ran_before],
        here: &[],
        samples: &[("rolled-back-elsewhere", "rollback")],
    },
];

#[test]
fn each_is_refused_at_append() {
    for (number, invariant) in (1..).zip(&ALL) {
        assert_eq!(invariant.id, format!("I{number}"));
        let elsewhere = if child::slow() {
            invariant.refused
        } else {
            &[]
        };
        let stories = elsewhere.iter().chain(invariant.here);
        for (name, story) in stories {
            println!("{}  {name}", invariant.id);
            story();
        }
    }
}

/// A sample as it lies in its folder.
fn case(folder: &Path) -> Case {
    let read = |name: &str| fs::read(folder.join(name)).ok();
    let blobs = fs::read_dir(folder.join("blobs")).ok().map(|entries| {
        let paths = entries.map(|entry| entry.unwrap().path());
        let named = paths.map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        });
        named.collect::<BTreeMap<_, _>>()
    });
    let key = read("log_key").map(|key| String::from_utf8(key).unwrap().trim().to_owned());
    Case {
        ledger: read("ledger.jsonl").unwrap_or_else(|| panic!("{} is gone", folder.display())),
        checkpoint: read("checkpoint"),
        pin: read("pin"),
        blobs,
        log_key: key,
    }
}

#[test]
fn each_is_found_in_a_history_by_both_verifiers() {
    let mut cases = Vec::new();
    for invariant in &ALL {
        assert!(!invariant.samples.is_empty(), "{}", invariant.id);
        for (sample, rule) in invariant.samples {
            let case = case(&verifiers::repository().join("audits").join(sample));
            let ours = verifiers::ours(&case);
            let found = ours.first.as_ref().map(|(_, rule)| rule.as_str());
            assert_eq!(
                found,
                Some(*rule),
                "{} {sample}: {:?}",
                invariant.id,
                ours.all
            );
            cases.push((invariant.id, sample, case, ours));
        }
    }
    // The page for auditors names them all.
    let page = fs::read_to_string(verifiers::repository().join("audits/README.md")).unwrap();
    for (id, sample, ..) in &cases {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {id} |")));
        let named = row.is_some_and(|row| row.contains(&format!("`{sample}`")));
        assert!(named, "{id} of audits/README.md does not name {sample}");
    }
    if verifiers::python() {
        let all: Vec<Case> = cases.iter().map(|(.., case, _)| case.clone()).collect();
        for ((id, sample, _, ours), theirs) in cases.iter().zip(verifiers::theirs_of_many(&all)) {
            assert_eq!(theirs.unwrap().first, ours.first, "{id} {sample}");
        }
    }
}

fn whoever_writes_patches_judges_none() {
    tell(SOLO, |world| {
        let (plan, patches) = decisions::classified(world);
        let opal = signer(7);
        let added = key_added(&opal, "Opal", &[Role::Optimizer]);
        world.say(&signer(1), added.into(), None);
        let candidate = decided::patch_of(&patches[0]).0;
        let own = gate(&plan, candidate, "dev", &passing("p1"));
        world.refuse_saying("role", &["arbiter", "optimizer"], &opal, own, Some("exp-1"));
    });
}

fn labels_that_an_optimizer_was_shown_taint_its_patches() {
    tell(SOLO, |world| {
        let stage = decisions::passed_on_dev(world);
        let read = json!({
            "class": "label", "outcome": "allowed", "purpose": "to look", "reader": signer(1).id().to_string(),
            "role": "optimizer",
        });
        said(world, planned::payload("data.read", &read));
        let wording = ["an iteration that is not tainted; close it as tainted"];
        let sealing = decided::sealed(&stage.hashes[..2]);
        refused(world, "sealing", &wording, sealing);
    });
}

fn confirm_waits_for_the_end_of_its_window() {
    tell(SOLO, |world| {
        let split = decided::split_in_time();
        let plan = decisions::begun_over(world, split.clone());
        said(world, decided::audited());
        said(world, decided::classified());
        let patch = decided::patches()[0].clone();
        said(world, patch.clone());
        let hash = decided::patch_of(&patch).0;
        decisions::attacked(world, &[hash], &[patch]);
        for payload in decided::gates(&plan, hash, "dev") {
            said(world, payload);
        }
        let sealing = said(world, decided::sealed(&[hash]));
        let charge = decisions::charged(world).0.to_hex();
        let mut early = serde_json::to_value(decided::unsealed(&charge, &sealing)).unwrap();
        early["confirm_root"] = decided::confirm_root_of(&split).into();
        let wording = ["2027-01-01", "on, where the confirm window ends"];
        let early = planned::payload("confirm.unsealed", &early);
        refused(world, "sealing", &wording, early);
    });
}

fn a_third_patch_is_never_accepted() {
    tell(SOLO, |world| {
        let (all, hashes) = decided::three();
        let (plan, patches) = decisions::classified(world);
        let third = all.iter().find(|patch| !patches.contains(patch));
        said(world, third.unwrap().clone());
        decisions::attacked(world, &hashes, &all);
        let judged = |world: &mut dyn super::world::World, hash: Digest, split: &str| {
            let gates = decided::gates(&plan, hash, split).into_iter();
            gates.map(|gate| said(world, gate)).collect::<Vec<String>>()
        };
        let mut gates = hashes.map(|hash| judged(world, hash, "dev"));
        let sealed = said(world, decided::sealed_three(&hashes));
        let charge = decisions::charged(world).0.to_hex();
        said(world, decided::unsealed(&charge, &sealed));
        for (hash, own) in hashes.into_iter().zip(&mut gates) {
            own.extend(judged(world, hash, "confirm"));
        }
        for place in [0, 1] {
            let rank = place as u64 + 1;
            said(world, decided::accepted(&all[place], rank, &gates[place]));
        }
        let beyond = decided::accepted(&all[2], 3, &gates[2]);
        let wording = ["at most 2 accepted patches", "2 accepted before"];
        refused(world, "acceptance", &wording, beyond);
    });
}
