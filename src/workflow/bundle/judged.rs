//! What is estimated and by whom: target, anchors, versions, policy values, the calibrator's share, labels.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::PolicyId;
use crate::event::payload::audit::CoverageChecked;
use crate::event::payload::audit::OuaEstimated;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::Claim;
use crate::event::payload::iteration::AnchorSetRegistered;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::report::ReportPart;
use crate::event::payload::rubric::RubricRegistered;
use crate::ledger::State;
use crate::num::Probability;
use crate::projection::assumptions::Assumptions;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Names;
use crate::projection::bundle::Part;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::workflow::bundle::Story;
use crate::workflow::bundle::decided::leaf;

fn anchors(story: &Story) -> Option<(u64, &AnchorSetRegistered)> {
    let design = story.opened()?.1.params.design.as_ref()?;
    let wanted = design.anchors.as_ref()?;
    story.first(|payload| match payload {
        Payload::AnchorSetRegistered(said) if said.anchors == *wanted => Some(said),
        _ => None,
    })
}

/// The rubric that the iteration starts from, where it was registered as such.
fn rubric(story: &Story) -> Option<(u64, &RubricRegistered)> {
    let hash = story.opened()?.1.rubric_hash;
    story.first(|payload| match payload {
        Payload::RubricRegistered(said) if said.rubric_hash == hash => Some(said),
        _ => None,
    })
}

fn leaf_of(said: &RubricRegistered, path: &str) -> Option<Cell> {
    let found = said.leaves.iter().find(|leaf| leaf.path == path)?;
    let text = leaf(&found.value);
    Some(Cell::text(text.trim_matches('"')))
}

/// Y or Y*, the protocol of labels, and the anchor policies with how far candidates move them.
#[expect(
    clippy::too_many_lines,
    reason = "one part of the page, fact by fact in the order of reading"
)]
pub(super) fn target(story: &Story, names: &Names) -> Part {
    let mut part = Part::new(
        ReportPart::Target,
        "What rewards estimate, by which labelling protocol, and stored answers of a bad and a good policy that hold the \
         scale in place.",
    );
    match rubric(story) {
        Some((seq, said)) => {
            for (path, key, title) in [
                ("target", "target", "Target"),
                ("sdp_version", "sdp_version", "Labelling protocol"),
            ] {
                if let Some(cell) = leaf_of(said, path) {
                    part.fact(seq, key, title, cell);
                }
            }
        }
        None => part.lacks(
            "the target",
            "the rubric that it starts from was not registered as such",
        ),
    }
    match anchors(story) {
        Some((seq, said)) => {
            let mut table = Table::new(
                "anchors",
                "Anchor policies",
                &[
                    ("anchor", "anchor"),
                    ("policy", "policy"),
                    ("rows", "stored rows"),
                ],
            );
            for (word, rows) in [("low", &said.low), ("high", &said.high)] {
                table.row(
                    seq,
                    vec![
                        Cell::text(word),
                        Cell::text(rows.policy.as_str()),
                        rows.count.into(),
                    ],
                );
            }
            part.table(table);
        }
        None => part.lacks("anchors", "the manifest registers no anchor set"),
    }
    let mut drift = Table::new(
        "drift",
        "How far candidates move the anchors",
        &[
            ("candidate", "candidate"),
            ("policy", "policy"),
            ("drift", "mean shift"),
            ("rows", "rows"),
        ],
    );
    for (seq, gate) in story.gates() {
        let Evidence::P5(found) = &gate.evidence else {
            continue;
        };
        for anchor in &found.anchors {
            drift.row(
                seq,
                vec![
                    Cell::text(names.of(gate.candidate)),
                    Cell::text(anchor.policy.as_str()),
                    anchor.drift.into(),
                    anchor.rows.into(),
                ],
            );
        }
    }
    if drift.rows.is_empty() {
        part.lacks("drift of anchors", story.why_no_gates());
    }
    part.table(drift);
    part
}

/// Model, prompt, rubric, calibrator, protocol, anchors.
#[expect(
    clippy::too_many_lines,
    reason = "one part of the page, fact by fact in the order of reading"
)]
pub(super) fn versions(story: &Story, state: &State) -> Part {
    let mut part = Part::new(
        ReportPart::Versions,
        "What every number here depends on: change one of these, and it is another judge.",
    );
    let mut judges = Table::new(
        "judges",
        "Judges",
        &[
            ("judge", "judge"),
            ("model", "model"),
            ("port", "asked by"),
            ("temperature", "temperature"),
            ("prompt_hash", "prompt"),
            ("extractor", "extractor"),
            ("evidence_schema", "evidence"),
        ],
    );
    let registered = story.all(|payload| match payload {
        Payload::JudgeRegistered(said) => Some(said),
        _ => None,
    });
    for (seq, said) in registered {
        judges.row(
            seq,
            vec![
                Cell::text(said.judge.as_str()),
                Cell::text(said.model.as_str()),
                Cell::text(said.port.as_str()),
                Cell::micro(said.decoding.temperature_micro),
                said.prompt_hash.into(),
                Cell::text(said.extractor.as_str()),
                Cell::text(said.evidence_schema.as_str()),
            ],
        );
    }
    if judges.rows.is_empty() {
        part.lacks(
            "judge model and prompt",
            "no judge is registered: its scores were imported without saying whose they are",
        );
    }
    part.table(judges);
    match rubric(story) {
        Some((seq, said)) => {
            part.fact(
                seq,
                "rubric_version",
                "Rubric version",
                Cell::text(said.version.as_str()),
            );
            part.fact(seq, "rubric_hash", "Rubric hash", said.rubric_hash);
        }
        None => part.lacks("the rubric's version", "it was not registered as such"),
    }
    match story.audited() {
        Some((seq, audited)) => {
            part.fact(seq, "calibrator", "Calibrator", audited.calibrator);
            part.fact(
                seq,
                "algorithm",
                "Residual audit",
                Cell::text(audited.algorithm.as_str()),
            );
            part.fact(
                seq,
                "build",
                "Computed by",
                Cell::text(audited.build.as_str()),
            );
            part.fact(seq, "rows_digest", "Rows as read", audited.inputs.digest);
        }
        None => part.lacks("the calibrator", "residuals were not audited"),
    }
    let now = super::ledger_time(state);
    match state.fold::<Assumptions>().sdp_in_force(now) {
        Some(version) => part.fact(
            version.seq,
            "sdp_version",
            "Labelling protocol in force",
            Cell::text(version.version.as_str()),
        ),
        None => part.lacks(
            "the labelling protocol in force",
            "no version of it is registered",
        ),
    }
    match anchors(story) {
        Some((seq, said)) => part.fact(
            seq,
            "anchors",
            "Anchors",
            Cell::text(format!("{}, {}", said.low.policy, said.high.policy)),
        ),
        None => part.lacks("anchors", "the manifest registers no anchor set"),
    }
    part
}

/// What policies are worth, newest estimate of each.
pub(super) fn values(story: &Story) -> Part {
    let mut part = Part::new(
        ReportPart::Values,
        "What each policy is worth on the scale of labels. Intervals count the calibrator's own uncertainty. A level that \
         the labels do not support is withheld.",
    );
    let mut newest: BTreeMap<_, (u64, &EstimateRecorded)> = BTreeMap::new();
    let recorded = story.all(|payload| match payload {
        Payload::EstimateRecorded(said) => Some(said),
        _ => None,
    });
    for (seq, said) in recorded {
        newest.insert((&said.terms.judge, &said.policy), (seq, said));
    }
    let mut table = Table::new(
        "values",
        "Policy values",
        &[
            ("judge", "judge"),
            ("policy", "policy"),
            ("estimate", "value"),
            ("interval", "interval"),
            ("se", "standard error"),
            ("share", "calibrator's share"),
            ("labels", "own labels"),
            ("rows", "rows"),
            ("claim", "may be claimed"),
        ],
    );
    for (seq, said) in newest.values() {
        let refused = said.claim == Claim::Refused;
        let shown = |cell: Cell| if refused { Cell::Absent } else { cell };
        let ends = said.interval_clipped.or(said.interval);
        table.row(
            *seq,
            vec![
                Cell::text(said.terms.judge.as_str()),
                Cell::text(said.policy.as_str()),
                shown(said.estimate.into()),
                shown(Cell::maybe(ends, |ends| {
                    Cell::Interval(ends.low, ends.high)
                })),
                shown(Cell::maybe(said.se, Cell::Number)),
                Cell::maybe(said.share, Cell::Number),
                said.labels.into(),
                said.rows.into(),
                Cell::text(said.claim.as_str().replace('_', " ")),
            ],
        );
    }
    table.plot = Some(Plot::Forest {
        label: (1, 1),
        estimate: 2,
        interval: Some(3),
        reference: None,
        axis: "mean label",
    });
    if table.rows.is_empty() {
        part.lacks(
            "policy values",
            "no estimate is on record: clover estimate records them",
        );
    }
    part.table(table);
    part
}

fn probability(value: Probability) -> Cell {
    Cell::number(value.value())
}

/// How much of the variance the calibrator causes.
#[expect(
    clippy::too_many_lines,
    reason = "one part of the page, fact by fact in the order of reading"
)]
pub(super) fn uncertainty(story: &Story, names: &Names) -> Part {
    let mut part = Part::new(
        ReportPart::Uncertainty,
        "How much of a value's variance comes from having few labels. From .30 on, more labels are worth more than any \
         patch; up to .10, more scores are.",
    );
    let paused = story.first(|payload| match payload {
        Payload::IterationPausedForLabels(said) => Some(said),
        _ => None,
    });
    if let Some((seq, said)) = paused {
        part.fact(
            seq,
            "paused_share",
            "Share at the pause",
            probability(said.share),
        );
        part.fact(seq, "gain", "Gain in sight at most", said.gain);
        part.fact(
            seq,
            "labels_requested",
            "Labels asked for",
            said.labels_requested,
        );
    }
    let mut shares = Table::new(
        "shares",
        "Share over all logs of the iteration (gate P10)",
        &[
            ("candidate", "candidate"),
            ("share", "share"),
            ("confirm_change", "change on confirm"),
        ],
    );
    for (seq, gate) in story.gates() {
        if let Evidence::P10(found) = &gate.evidence {
            shares.row(
                seq,
                vec![
                    Cell::text(names.of(gate.candidate)),
                    probability(found.share),
                    found.confirm_change.into(),
                ],
            );
        }
    }
    if shares.rows.is_empty() && paused.is_none() {
        part.lacks("the share of the iteration", story.why_no_gates());
    }
    part.table(shares);
    let mut newest: BTreeMap<_, (u64, &OuaEstimated)> = BTreeMap::new();
    let estimated = story.all(|payload| match payload {
        Payload::OuaEstimated(said) => Some(said),
        _ => None,
    });
    for (seq, said) in estimated {
        newest.insert((&said.terms.judge, &said.policy), (seq, said));
    }
    let mut policies = Table::new(
        "policies",
        "Share by policy",
        &[
            ("policy", "policy"),
            ("share", "share"),
            ("var_main", "sampling variance"),
            ("var_oua", "calibration variance"),
        ],
    );
    let mut deciles = Table::new(
        "deciles",
        "Share by tenth of the reward, lowest first; ties merge tenths",
        &[
            ("policy", "policy"),
            ("tenth", "tenth"),
            ("share", "share"),
            ("rows", "rows"),
        ],
    );
    for (seq, said) in newest.values() {
        policies.row(
            *seq,
            vec![
                Cell::text(of_policy(said.policy.as_ref())),
                Cell::maybe(said.share, Cell::Number),
                said.var_main.into(),
                said.var_oua.into(),
            ],
        );
        for (tenth, one) in (1..).zip(&said.share_by_decile) {
            deciles.row(
                *seq,
                vec![
                    Cell::text(of_policy(said.policy.as_ref())),
                    Cell::count(tenth),
                    Cell::maybe(one.share, Cell::Number),
                    one.rows.into(),
                ],
            );
        }
    }
    if policies.rows.is_empty() {
        part.lacks(
            "shares by policy and tenth",
            "no oua.estimated is on record: clover estimate records them",
        );
    }
    part.table(policies);
    part.table(deciles);
    part
}

/// How rows came to be labelled, whether anything but the reward predicts the residual, and where labels lie.
#[expect(
    clippy::too_many_lines,
    reason = "one part of the page, fact by fact in the order of reading"
)]
pub(super) fn labels(story: &Story) -> Part {
    let mut part = Part::new(
        ReportPart::Labels,
        "Whether labelled rows stand for all rows, whether scores say all that labels know, and whether labels lie where \
         scores are.",
    );
    let audited = story.first(|payload| match payload {
        Payload::LabelProcessAudited(said) => Some(said),
        _ => None,
    });
    match audited {
        Some((seq, said)) => {
            part.fact(seq, "labelled", "Labelled rows", said.labelled);
            part.fact(
                seq,
                "orphans",
                "Labels that no design explains",
                said.orphans,
            );
            part.fact(seq, "balance", "Missing at random", said.verdict);
            let mut table = Table::new(
                "balance",
                "Labelled rows against all rows",
                &[
                    ("column", "column"),
                    ("smd", "standardised mean difference"),
                ],
            );
            for column in &said.balance {
                table.row(
                    seq,
                    vec![Cell::text(column.column.as_str()), column.smd.into()],
                );
            }
            part.table(table);
        }
        None => part.lacks("the audit of labels", "it is not on record"),
    }
    let checked = story.first(|payload| match payload {
        Payload::PrenticeChecked(said) => Some(said),
        _ => None,
    });
    match checked {
        Some((seq, said)) => {
            part.fact(
                seq,
                "prentice_p",
                "p that the reward says all",
                probability(said.p),
            );
            part.fact(seq, "prentice_f", "Wald F of all other terms", said.f);
            part.fact(
                seq,
                "prentice_term",
                "Largest other term",
                Cell::text(said.top_term.as_str()),
            );
            part.fact(seq, "prentice", "Surrogacy", said.verdict);
        }
        None => part.lacks("the surrogacy check", "it is not on record"),
    }
    let mut newest: BTreeMap<_, (u64, &CoverageChecked)> = BTreeMap::new();
    let covered = story.all(|payload| match payload {
        Payload::CoverageChecked(said) => Some(said),
        _ => None,
    });
    for (seq, said) in covered {
        newest.insert((&said.terms.judge, &said.policy), (seq, said));
    }
    let mut table = Table::new(
        "coverage",
        "Labels where scores are",
        &[
            ("policy", "policy"),
            ("out_of_range", "scores outside the labelled"),
            ("fewest", "fewest labels in a tenth"),
            ("refuse_level", "level withheld"),
        ],
    );
    for (seq, said) in newest.values() {
        let fewest = said.decile_counts.iter().copied().min();
        table.row(
            *seq,
            vec![
                Cell::text(of_policy(said.policy.as_ref())),
                said.out_of_range.into(),
                Cell::maybe(fewest, Cell::Count),
                said.refuse_level.into(),
            ],
        );
    }
    if table.rows.is_empty() {
        part.lacks(
            "coverage by policy",
            "no coverage.checked is on record: clover estimate records it",
        );
    }
    part.table(table);
    part
}

/// A policy; an iteration looks at all its logs together.
fn of_policy(policy: Option<&PolicyId>) -> &str {
    policy.map_or("all logs", PolicyId::as_str)
}
