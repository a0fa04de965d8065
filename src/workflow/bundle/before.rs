//! What the judge in force gets wrong and what candidates change: slices, environments, calibration.

use clover_event::Payload;
use clover_event::payload::Verdict;
use clover_event::payload::card::SliceClass;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::Greens;
use clover_event::payload::report::ReportPart;
use clover_event::payload::slices::AuditedSlice;
use clover_event::payload::slices::SlicesClassified;
use clover_num::Finite;
use clover_num::Probability;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Names;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_projection::iterations::story::Story;

use crate::predicate;

/// Slices that are listed as costing most.
pub(super) const SEGMENTS: usize = 5;

/// What a report that reads no rows does not show.
pub(super) fn without_rows(part: &mut Section, story: &Story, what: &str) {
    if !story.has_rows() {
        part.lacks(what, "nothing was read from its rows");
    }
}

fn share(value: Probability) -> Cell {
    Cell::number(value.value())
}

fn class(class: SliceClass) -> &'static str {
    match class {
        SliceClass::Green => "green",
        SliceClass::Neutral => "neutral",
        SliceClass::Risk => "risk",
    }
}

fn classified(story: &Story) -> Option<(u64, &SlicesClassified)> {
    story.first(Payload::said::<SlicesClassified>)
}

/// Squared error and calibration error of candidates, as gates recorded them.
pub(super) fn calibration(story: &Story, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Calibration,
        "How far calibrated rewards lie from labels before and after each patch, on the same rows.",
    );
    let mut ece = Table::new(
        "ece",
        "Expected calibration error on dev, on the baseline's bins",
        &[
            ("candidate", "candidate"),
            ("before", "before"),
            ("after", "after"),
            ("bins", "bins"),
        ],
    );
    let mut change = Table::new(
        "squared_error",
        "Change of the mean squared error; negative is better",
        &[
            ("candidate", "candidate"),
            ("split", "on"),
            ("change", "change"),
            ("standard_error", "standard error"),
            ("rows", "labelled rows"),
            ("clusters", "clusters"),
        ],
    );
    for (seq, gate) in story.gates() {
        let name = Cell::text(names.of(gate.candidate));
        match &gate.evidence {
            Evidence::P2(found) => ece.row(
                seq,
                vec![
                    name,
                    found.baseline.into(),
                    found.patched.into(),
                    found.bins.into(),
                ],
            ),
            Evidence::P1(loss) => change.row(seq, loss_row(name, gate, *loss)),
            Evidence::P8(found) => change.row(seq, loss_row(name, gate, found.loss)),
            _ => {}
        }
    }
    if ece.rows.is_empty() && change.rows.is_empty() {
        part.lacks("changes by candidates", story.why_no_gates());
    }
    part.table(change);
    part.table(ece);
    without_rows(
        &mut part,
        story,
        "root mean squared errors and the calibration curve",
    );
    part
}

fn loss_row(
    name: Cell,
    gate: &GateEvaluated,
    loss: clover_event::payload::predicate::LossMean,
) -> Vec<Cell> {
    vec![
        name,
        Cell::text(gate.split.as_str()),
        loss.mean.into(),
        Cell::maybe(loss.standard_error, Cell::Number),
        loss.rows.into(),
        loss.clusters.into(),
    ]
}

/// Slices with their class before, and what candidates change in the protected ones.
pub(super) fn slices(story: &Story, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Slices,
        "Mean residual (label less calibrated reward) of the judge in force by slice. Negative: the judge gives too much. \
         The shrunk interval ignores that the spread between slices is itself estimated; the raw mean stands beside it.",
    );
    match story.audited() {
        Some((seq, audited)) => {
            let frozen = classified(story);
            let mut table = before_table();
            for family in &audited.families {
                for slice in &family.slices {
                    let of = frozen.and_then(|(at, frozen)| {
                        let mut all = frozen.slices.iter();
                        let is = all
                            .find(|one| one.family == family.family && one.slice == slice.slice)?;
                        Some((at, is))
                    });
                    let mut events = vec![seq];
                    events.extend(of.map(|(at, _)| at));
                    let mut cells = vec![
                        Cell::text(family.family.as_str()),
                        Cell::text(slice.slice.as_str()),
                        Cell::maybe(of, |(_, one)| Cell::text(class(one.class))),
                    ];
                    cells.extend(before_cells(slice));
                    table.row_of(events, cells);
                }
            }
            table.plot = Some(Plot::Forest {
                label: (0, 1),
                estimate: 8,
                interval: Some(9),
                reference: Some(0.0),
                axis: "shrunk mean residual with its 95 % interval",
                before: None,
            });
            part.table(table);
        }
        None => part.lacks("slices before", "residuals were not audited"),
    }
    let mut after = change_table();
    for (seq, gate) in story.gates() {
        if let Evidence::P3(greens) | Evidence::P9(greens) = &gate.evidence {
            changes(&mut after, seq, gate, greens, names);
        }
    }
    if after.rows.is_empty() {
        part.lacks("what candidates change", story.why_no_gates());
    }
    part.table(after);
    without_rows(
        &mut part,
        story,
        "residuals of slices under the patched rubric",
    );
    part
}

fn before_table() -> Table {
    Table::new(
        "before",
        "Slices before",
        &[
            ("family", "family"),
            ("slice", "slice"),
            ("class", "class"),
            ("exposure", "exposure"),
            ("stakes", "stakes"),
            ("rows", "labelled rows"),
            ("raw_mean", "raw mean"),
            ("p_adjusted", "p (BH)"),
            ("shrunk_mean", "shrunk mean"),
            ("shrunk_interval", "95 % interval"),
            ("mse", "squared error"),
        ],
    )
}

fn before_cells(slice: &AuditedSlice) -> Vec<Cell> {
    let raw = slice.raw.as_ref();
    let pooled = slice.pooled.as_ref();
    vec![
        share(slice.exposure),
        share(slice.stakes),
        slice.rows.into(),
        Cell::maybe(raw, |raw| raw.mean.into()),
        Cell::maybe(raw, |raw| share(raw.p_adjusted)),
        Cell::maybe(pooled, |pooled| pooled.mean.into()),
        Cell::maybe(pooled, |pooled| Cell::Interval(pooled.low, pooled.high)),
        Cell::maybe(slice.mse, Cell::Number),
    ]
}

fn change_table() -> Table {
    Table::new(
        "changes",
        "Change of the squared error in protected slices; negative is better",
        &[
            ("candidate", "candidate"),
            ("split", "on"),
            ("slice", "slice"),
            ("rows", "labelled rows"),
            ("change", "change"),
            ("standard_error", "standard error"),
            ("p", "p"),
            ("upper", "90 % upper bound"),
            ("largest", "largest single loss"),
            ("abstention_rise", "rise of abstentions"),
        ],
    )
}

fn changes(table: &mut Table, seq: u64, gate: &GateEvaluated, greens: &Greens, names: &Names) {
    for slice in &greens.slices {
        let loss = slice.loss;
        let touched = if slice.untouched { " (untouched)" } else { "" };
        table.row(
            seq,
            vec![
                Cell::text(names.of(gate.candidate)),
                Cell::text(gate.split.as_str()),
                Cell::text(format!("{} / {}{touched}", slice.family, slice.slice)),
                Cell::maybe(loss, |loss| loss.rows.into()),
                Cell::maybe(loss, |loss| loss.mean.into()),
                Cell::maybe(loss.and_then(|loss| loss.standard_error), Cell::Number),
                Cell::maybe(slice.p, share),
                Cell::maybe(slice.upper, Cell::Number),
                Cell::maybe(slice.worst.first().copied(), Cell::Number),
                slice.abstention_rise.into(),
            ],
        );
    }
}

/// The slices that cost most, by exposure, stakes and squared error.
pub(super) fn segments(story: &Story) -> Section {
    let mut part = Section::new(
        ReportPart::Segments,
        "The slices in which the judge costs most: exposure times stakes times squared error, largest first.",
    );
    let Some((seq, audited)) = story.audited() else {
        part.lacks("segments", "residuals were not audited");
        return part;
    };
    let mut all = Vec::new();
    for family in &audited.families {
        for slice in &family.slices {
            if let Some(mse) = slice.mse {
                let cost = slice.exposure.value() * slice.stakes.value() * mse.value();
                all.push((cost, family, slice, mse));
            }
        }
    }
    // Equal costs stay in order of registration.
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut table = Table::new(
        "segments",
        "Slices that cost most",
        &[
            ("family", "family"),
            ("slice", "slice"),
            ("cost", "exposure x stakes x squared error"),
            ("exposure", "exposure"),
            ("stakes", "stakes"),
            ("mse", "squared error"),
            ("shrunk_mean", "shrunk mean"),
        ],
    );
    for (cost, family, slice, mse) in all.into_iter().take(SEGMENTS) {
        table.row(
            seq,
            vec![
                Cell::text(family.family.as_str()),
                Cell::text(slice.slice.as_str()),
                Cell::number(cost),
                share(slice.exposure),
                share(slice.stakes),
                mse.into(),
                Cell::maybe(slice.pooled, |pooled| pooled.mean.into()),
            ],
        );
    }
    part.table(table);
    without_rows(
        &mut part,
        story,
        "the shortest patch that brings each within .03",
    );
    part
}

/// Raw mean residuals, slice by slice, with intervals of two standard errors.
pub(super) fn residuals(story: &Story) -> Section {
    let mut part = Section::new(
        ReportPart::Residuals,
        "Raw mean residuals of the judge in force, each slice by itself. Slices of fewer than 40 labelled rows are not \
         read by themselves.",
    );
    let Some((seq, audited)) = story.audited() else {
        part.lacks("residuals", "residuals were not audited");
        return part;
    };
    let mut table = Table::new(
        "raw",
        "Raw mean residuals",
        &[
            ("family", "family"),
            ("slice", "slice"),
            ("mean", "mean"),
            ("two_errors", "mean ± 2 standard errors"),
            ("p", "p"),
            ("rows", "labelled rows"),
        ],
    );
    for family in &audited.families {
        for slice in &family.slices {
            let Some(raw) = &slice.raw else { continue };
            let (mean, error) = (raw.mean.value(), raw.standard_error.map(Finite::value));
            let ends = error.and_then(|error| {
                Some((
                    Finite::new(mean - 2.0 * error)?,
                    Finite::new(mean + 2.0 * error)?,
                ))
            });
            table.row(
                seq,
                vec![
                    Cell::text(family.family.as_str()),
                    Cell::text(slice.slice.as_str()),
                    raw.mean.into(),
                    Cell::maybe(ends, |(low, high)| Cell::Interval(low, high)),
                    Cell::maybe(raw.p, share),
                    slice.rows.into(),
                ],
            );
        }
    }
    table.plot = Some(Plot::Forest {
        label: (0, 1),
        estimate: 2,
        interval: Some(3),
        reference: Some(0.0),
        axis: "label less calibrated reward",
        before: None,
    });
    if table.rows.is_empty() {
        part.lacks("residuals", "no slice has 40 labelled rows");
    }
    part.table(table);
    without_rows(&mut part, story, "residuals by tenth of the reward");
    part
}

/// Environments under each candidate, and audits of policies.
pub(super) fn transport(story: &Story, names: &Names) -> Section {
    let mut part = Section::new(
        ReportPart::Transport,
        "Whether calibration holds in every environment: mean residual there, with p adjusted within its family.",
    );
    let environments = environments(story, names);
    let audits = audits(story);
    if environments.rows.is_empty() && audits.rows.is_empty() {
        part.lacks(
            "transport",
            "no gate P6 with environments, and no audit of a policy, is on record",
        );
    }
    part.table(environments);
    part.table(audits);
    // Absent without a test, so that reports of before there were any stay as they are.
    let tested = tested(story);
    if !tested.rows.is_empty() {
        part.table(tested);
    }
    part
}

/// Environments that a plan of audits names, on labels that calibration never saw.
fn tested(story: &Story) -> Table {
    let mut table = Table::new(
        "environments_tested",
        "Environments on labels that calibration never saw",
        &[
            ("environment", "environment"),
            ("required", "required"),
            ("rows", "probes"),
            ("mean", "mean residual"),
            ("interval", "interval"),
            ("p_adjusted", "p in its family"),
            ("verdict", "verdict"),
        ],
    );
    for (seq, said) in story.all(Payload::said::<EnvironmentsTested>) {
        for of in &said.environments {
            table.row(
                seq,
                vec![
                    Cell::text(of.scope.to_string()),
                    of.required.into(),
                    of.rows.into(),
                    Cell::maybe(of.mean, Cell::Number),
                    Cell::maybe(of.interval, |ends| Cell::Interval(ends.low, ends.high)),
                    Cell::maybe(of.p_adjusted, share),
                    Cell::text(match of.verdict {
                        Verdict::Fail => "fail",
                        Verdict::Inconclusive => "inconclusive",
                        Verdict::NotChecked => "not_checked",
                        Verdict::Pass => "pass",
                    }),
                ],
            );
        }
    }
    table
}

/// What gate P6 found of each environment under each candidate.
fn environments(story: &Story, names: &Names) -> Table {
    let mut table = Table::new(
        "environments",
        "Environments under each candidate (gate P6)",
        &[
            ("candidate", "candidate"),
            ("split", "on"),
            ("environment", "environment"),
            ("required", "required"),
            ("rows", "labelled rows"),
            ("mean", "mean residual"),
            ("p", "p"),
            ("p_adjusted", "p (BH)"),
            ("detectable", "detectable bias"),
            ("baseline_fails", "baseline fails there"),
        ],
    );
    for (seq, gate) in story.gates() {
        let Evidence::P6(found) = &gate.evidence else {
            continue;
        };
        let adjusted = predicate::adjusted(found);
        for (one, p_adjusted) in found.environments.iter().zip(adjusted) {
            table.row(
                seq,
                vec![
                    Cell::text(names.of(gate.candidate)),
                    Cell::text(gate.split.as_str()),
                    Cell::text(format!("{} / {}", one.family, one.environment)),
                    one.required.into(),
                    one.rows.into(),
                    Cell::maybe(one.mean, Cell::Number),
                    Cell::maybe(one.p, share),
                    Cell::maybe(p_adjusted, Cell::number),
                    Cell::maybe(one.detectable_bias, Cell::Number),
                    one.baseline_fails.into(),
                ],
            );
        }
    }
    table
}

/// Audits of policies on probes.
fn audits(story: &Story) -> Table {
    let mut table = Table::new(
        "audits",
        "Audits of policies on labels that calibration never saw",
        &[
            ("policy", "policy"),
            ("rows", "probes"),
            ("mean", "mean residual"),
            ("interval", "interval"),
            ("p", "p"),
            ("p_adjusted", "p (BH)"),
            ("state", "state"),
        ],
    );
    let tested = story.all(|payload| match payload {
        Payload::TransportTested(said) => Some(said),
        _ => None,
    });
    for (seq, said) in tested {
        table.row(
            seq,
            vec![
                Cell::text(said.policy.as_str()),
                said.rows.into(),
                said.mean_residual.into(),
                Cell::maybe(said.wide.interval, |ends| {
                    Cell::Interval(ends.low, ends.high)
                }),
                Cell::maybe(said.wide.zero_null_p, Cell::Number),
                Cell::maybe(said.zero_null_p_adjusted, Cell::Number),
                Cell::text(said.state.as_str()),
            ],
        );
    }
    table.plot = Some(Plot::Forest {
        label: (0, 0),
        estimate: 2,
        interval: Some(3),
        reference: Some(0.0),
        axis: "mean residual with its interval",
        before: None,
    });
    table
}
