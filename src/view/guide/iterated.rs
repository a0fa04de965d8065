//! The path of an iteration: rows, a split, sealed labels, a plan, a patch, and the one look.

use crate::event::Kind;
use crate::ground::shell;
use crate::view::guide::ASKED;
use crate::view::guide::GuideCase;
use crate::view::guide::GuideData;
use crate::view::guide::GuideFile;
use crate::view::guide::GuidePath;
use crate::view::guide::judges;
use crate::view::guide::mark::StepMark;

/// An iteration of a rubric.
pub(super) fn steps(path: &mut GuidePath, case: &GuideCase) {
    for needed in [GuideData::Texts, GuideData::Labels] {
        if !case.have.contains(&needed) {
            path.missing.push(needed);
        }
    }
    let experiment = shell::word(&case.names.experiment);
    let judge = &case.names.judge;
    let labels = case.names.labels.clone();
    let labels = labels.unwrap_or_else(|| GuideFile::unread("labels", "labels.csv"));
    path.seen(
        "Take in prompts and responses, the anchors' too.",
        case.names.texts.command(" anchors"),
        Kind::DataIngested,
        1,
    );
    let scorer = judges(case).swap_remove(0);
    path.signed(
        ASKED,
        format!(
            "clover judge run --judge {} -- {judge}",
            shell::word(&scorer)
        ),
        StepMark::Scored(scorer.clone()),
    );
    for (at, (id, purpose)) in [("calib", "calibrate"), ("hold", "confirm")]
        .iter()
        .enumerate()
    {
        path.seen(
            "Say with which probability a row is labelled.",
            format!("clover label design new {id} --purpose {purpose} --probability 1"),
            Kind::LabelDesignRegistered,
            at as u64 + 1,
        );
    }
    let apart = case.names.apart.as_deref();
    let apart = apart.unwrap_or("--t1 2026-03-15 --t2 2026-04-01");
    let why = if apart == "--hashed" {
        "Split by hash, as these rows have no sampled_at: verdicts are then exploratory."
    } else {
        "Split by time: what is fitted on, tuned on, and kept for the one look."
    };
    path.seen(
        why,
        format!("clover experiment split {experiment} --seed 1 {apart}"),
        Kind::SplitsFormed,
        1,
    );
    path.seen(
        "Record labels; those of the last part stay sealed.",
        labels.command(" --design calib --seal hold --reveal-by 2027-06-01 --yes"),
        Kind::LabelSealed,
        1,
    );
    path.seen(
        "Take the sealed labels as a whole.",
        "clover confirm seal hold".to_owned(),
        Kind::SealAccepted,
        1,
    );
    planned(path, judge);
}

/// From the plan of an iteration to its verdict.
fn planned(path: &mut GuidePath, judge: &str) {
    path.seen(
        "Name the policies that end the scale.",
        "clover iterate anchors ends --low anchor_low --high anchor_high".to_owned(),
        Kind::AnchorSetRegistered,
        1,
    );
    path.signed(
        "Draft the plan; then fill in the lines marked FILL, and name it plan-1.",
        "clover prereg new --template iteration --from-data -o plan.yaml".to_owned(),
        StepMark::Written("plan.yaml"),
    );
    path.seen(
        "Sign the plan: from here on it binds.",
        "clover prereg sign plan.yaml".to_owned(),
        Kind::ManifestRegistered,
        1,
    );
    path.seen(
        "Open the iteration.",
        "clover iterate open it-1 --manifest plan-1 --peeks 3".to_owned(),
        Kind::IterationOpened,
        1,
    );
    path.seen(
        "Where does the judge err? It then waits for patches.",
        format!("clover iterate run it-1 -- {judge}"),
        Kind::ResidualsAudited,
        1,
    );
    path.signed(
        "Write a patch: a family or a leaf of the rubric, then edit what is marked FILL.",
        "clover patch new length_bias_cap -o patch.yaml".to_owned(),
        StepMark::Written("patch.yaml"),
    );
    path.seen(
        "Gates on dev, one look at the sealed labels, the verdict.",
        format!("clover iterate run it-1 --propose patch.yaml --yes -- {judge}"),
        Kind::IterationClosed,
        1,
    );
    path.step(
        "What may be claimed?",
        "clover iterate show it-1".to_owned(),
    );
}
