//! How far numbers can be trusted: the calibrator's share of the variance, and how rows came to be labelled.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::PolicyId;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::report::ReportPart;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Probability;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Names;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;

fn probability(value: Probability) -> Cell {
    Cell::number(value.value())
}

/// How much of the variance the calibrator causes.
pub(super) fn uncertainty(story: &Story, state: &State, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Uncertainty,
        "How much of a value's variance comes from having few labels. From .30 on, more labels are worth more than any \
         patch; up to .10, more scores are.",
    );
    let has_paused = paused(story, &mut part);
    let shares = shares(story, names);
    if shares.rows.is_empty() && !has_paused {
        part.lacks("the share of the iteration", story.why_no_gates());
    }
    part.table(shares);
    let (policies, tenths) = by_policy(story, state);
    if policies.rows.is_empty() {
        part.lacks(
            "shares by policy and tenth",
            "no oua.estimated is on record: clover estimate records them",
        );
    }
    part.table(policies);
    part.table(tenths);
    part
}

/// What made the iteration pause for labels; whether it did.
fn paused(story: &Story, part: &mut Section) -> bool {
    let paused = story.first(|payload| match payload {
        Payload::IterationPausedForLabels(said) => Some(said),
        _ => None,
    });
    let Some((seq, said)) = paused else {
        return false;
    };
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
    true
}

/// The share that gate P10 read.
fn shares(story: &Story, names: &Names) -> Table {
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
    shares
}

/// Whether terms are of all rows: from rulebook 24 on what one environment gave takes no place of theirs.
fn is_of_all(terms: &EstimateTerms, state: &State) -> bool {
    terms.environment.is_none() || !state.asks(Question::ReportedWorth)
}

/// The newest share of each policy, and its parts by tenth of the reward.
fn by_policy(story: &Story, state: &State) -> (Table, Table) {
    let mut newest: BTreeMap<_, (u64, &OuaEstimated)> = BTreeMap::new();
    let estimated = story.all(|payload| match payload {
        Payload::OuaEstimated(said) if is_of_all(&said.terms, state) => Some(said),
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
    (policies, deciles)
}

/// How rows came to be labelled, whether anything but the reward predicts the residual, and where labels lie.
pub(super) fn labels(story: &Story, state: &State) -> Section {
    let mut part = Section::new(
        ReportPart::Labels,
        "Whether labelled rows stand for all rows, whether scores say all that labels know, and whether labels lie where \
         scores are.",
    );
    chosen(story, &mut part);
    surrogacy(story, &mut part);
    let coverage = coverage(story, state);
    if coverage.rows.is_empty() {
        part.lacks(
            "coverage by policy",
            "no coverage.checked is on record: clover estimate records it",
        );
    }
    part.table(coverage);
    part
}

/// Labelled rows against all rows.
fn chosen(story: &Story, part: &mut Section) {
    let audited = story.first(|payload| match payload {
        Payload::LabelProcessAudited(said) => Some(said),
        _ => None,
    });
    let Some((seq, said)) = audited else {
        part.lacks("the audit of labels", "it is not on record");
        return;
    };
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

/// Whether anything but the reward predicts the residual.
fn surrogacy(story: &Story, part: &mut Section) {
    let checked = story.first(|payload| match payload {
        Payload::PrenticeChecked(said) => Some(said),
        _ => None,
    });
    let Some((seq, said)) = checked else {
        part.lacks("the surrogacy check", "it is not on record");
        return;
    };
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

/// The newest check of each policy: do labels lie where scores are?
fn coverage(story: &Story, state: &State) -> Table {
    let mut newest: BTreeMap<_, (u64, &CoverageChecked)> = BTreeMap::new();
    let covered = story.all(|payload| match payload {
        Payload::CoverageChecked(said) if is_of_all(&said.terms, state) => Some(said),
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
    table
}

/// A policy; an iteration looks at all its logs together.
fn of_policy(policy: Option<&PolicyId>) -> &str {
    policy.map_or("all logs", PolicyId::as_str)
}
