//! Slices under every candidate, and the shortest patch that mends each slice that costs most.

use clover_event::payload::report::ReportPart;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_stats::residuals;
use clover_stats::residuals::Class;
use clover_stats::residuals::RISK_EFFECT;
use clover_stats::residuals::Slice;
use clover_stats::sample::Unfit;

use crate::bundle::before::SEGMENTS;
use crate::bundle::measured::BundleMeasurement;
use crate::bundle::measured::CalibratedRubric;
use crate::bundle::measured::PartRows;
use crate::bundle::measured::count;
use crate::bundle::measured::interval;
use crate::bundle::measured::number;
use crate::iterate::compute::audit;
use crate::iterate::compute::audit::FamilyAudit;

fn class(class: Class) -> Cell {
    Cell::text(match class {
        Class::Green => "green",
        Class::Neutral => "neutral",
        Class::Risk => "risk",
    })
}

fn shrunk(slice: &Slice) -> Option<f64> {
    slice.pooled.map(|pooled| pooled.mean)
}

fn audited(
    measured: &BundleMeasurement,
    side: &PartRows,
    judge: &CalibratedRubric,
) -> Result<Vec<FamilyAudit>, Unfit> {
    audit::audit_on(side.table(), &judge.fitted, side.part, &measured.terms)
}

/// A table for each candidate and side, the rubric in force beside it.
pub(super) fn after(measured: &BundleMeasurement) -> Section {
    let mut part = Section::new(ReportPart::Slices, "");
    for side in measured.sides() {
        for judge in &side.candidates {
            match table(measured, side, judge) {
                Ok(table) => part.table(table),
                Err(error) => part.lacks(
                    format!("slices under {} on {}", judge.name, side.word()),
                    error.to_string(),
                ),
            }
        }
    }
    if measured.dev.candidates.is_empty() && measured.left_out.is_empty() {
        part.lacks(
            "slices after",
            "the plan names no slices, or no candidate was put to a gate",
        );
    }
    measured.lacks(&mut part, "slices");
    part
}

fn table(
    measured: &BundleMeasurement,
    side: &PartRows,
    judge: &CalibratedRubric,
) -> Result<Table, Unfit> {
    let mut table = Table::new(
        "after",
        format!("Slices under {}, on {}", judge.name, side.word()),
        &[
            ("rubric", "rubric"),
            ("family", "family"),
            ("slice", "slice"),
            ("class_before", "class in force"),
            ("class", "class after"),
            ("rows", "labelled rows"),
            ("raw_before", "raw mean in force"),
            ("raw_mean", "raw mean after"),
            ("p_adjusted", "p (BH) after"),
            ("shrunk_before", "shrunk mean in force"),
            ("shrunk_mean", "shrunk mean after"),
            ("shrunk_interval", "95 % interval after"),
            ("mse_before", "squared error in force"),
            ("mse", "squared error after"),
        ],
    );
    let before = audited(measured, side, &side.in_force)?;
    let after = audited(measured, side, judge)?;
    for (old, new) in before.iter().zip(&after) {
        let slices = old.audit.slices.iter().zip(&new.audit.slices);
        for (place, (was, is)) in slices.enumerate() {
            let raw = |slice: &Slice| number(slice.raw.map(|raw| raw.mean));
            table.row_of(
                judge.events.clone(),
                vec![
                    Cell::text(judge.name.as_str()),
                    Cell::text(new.family.as_str()),
                    Cell::text(new.names[place].as_str()),
                    class(was.class),
                    class(is.class),
                    count(is.rows),
                    raw(was),
                    raw(is),
                    number(is.raw.map(|raw| raw.p_adjusted)),
                    number(shrunk(was)),
                    number(shrunk(is)),
                    interval(is.pooled.map(|pooled| pooled.interval)),
                    number(old.mse[place]),
                    number(new.mse[place]),
                ],
            );
        }
    }
    table.plot = Some(Plot::Forest {
        label: (1, 2),
        estimate: 10,
        interval: Some(11),
        reference: Some(0.0),
        axis: "shrunk mean residual (label less reward) with its 95 % interval; hollow: in force",
        before: Some(9),
    });
    Ok(table)
}

/// Of the slices that cost most, the shortest patch of those that were evaluated that takes each within .03.
pub(super) fn segments(measured: &BundleMeasurement) -> Section {
    let mut part = Section::new(ReportPart::Segments, "");
    match mended(measured) {
        Ok(table) => part.table(table),
        Err(error) => part.lacks("the shortest patch for each", error.to_string()),
    }
    for (name, why) in &measured.left_out {
        part.lacks(format!("whether {name} mends any"), why.as_str());
    }
    part
}

/// Slices of all families in order, with their families.
fn flat(audited: &[FamilyAudit]) -> Vec<(&FamilyAudit, usize, &Slice)> {
    let families = audited.iter();
    let slices = families.flat_map(|of| {
        let slices = of.audit.slices.iter().enumerate();
        slices.map(move |(place, slice)| (of, place, slice))
    });
    slices.collect()
}

fn mended(measured: &BundleMeasurement) -> Result<Table, Unfit> {
    let mut table = Table::new(
        "mended",
        "The shortest patch of those evaluated that takes the shrunk mean within .03, on dev",
        &[
            ("family", "family"),
            ("slice", "slice"),
            ("shrunk_before", "shrunk mean in force"),
            ("patch", "shortest patch"),
            ("kappa", "code length"),
            ("shrunk_mean", "shrunk mean after"),
            ("evaluated", "patches evaluated"),
        ],
    );
    let side = &measured.dev;
    let before = audited(measured, side, &side.in_force)?;
    let mut after = Vec::with_capacity(side.candidates.len());
    for judge in &side.candidates {
        after.push((judge, audited(measured, side, judge)?));
    }
    let all = flat(&before);
    let column = |pick: &dyn Fn(&Slice) -> f64| -> Vec<f64> {
        all.iter().map(|(.., slice)| pick(slice)).collect()
    };
    let mse: Vec<Option<f64>> = all.iter().map(|(of, place, _)| of.mse[*place]).collect();
    let exposures = column(&|slice| slice.exposure);
    let stakes = column(&|slice| slice.stakes);
    for (at, _) in residuals::heaviest(&exposures, &stakes, &mse, SEGMENTS) {
        let (family, place, slice) = all[at];
        let within = |mean: &f64| mean.abs() < RISK_EFFECT;
        let mends = after.iter().filter_map(|(judge, audited)| {
            let mean = shrunk(flat(audited).get(at)?.2).filter(within)?;
            Some((*judge, mean))
        });
        let shortest = mends.min_by(|a, b| (a.0.kappa, &a.0.name).cmp(&(b.0.kappa, &b.0.name)));
        let (patch, kappa, mean) = if shrunk(slice).as_ref().is_some_and(within) {
            ("none is needed", Cell::Absent, Cell::Absent)
        } else {
            match shortest {
                Some((judge, mean)) => (
                    judge.name.as_str(),
                    Cell::count(judge.kappa),
                    Cell::number(mean),
                ),
                None if after.is_empty() => ("none was evaluated", Cell::Absent, Cell::Absent),
                None => ("none of those evaluated", Cell::Absent, Cell::Absent),
            }
        };
        let mut events = side.in_force.events.clone();
        events.extend(after.iter().flat_map(|(judge, _)| &judge.events));
        table.row_of(
            events,
            vec![
                Cell::text(family.family.as_str()),
                Cell::text(family.names[place].as_str()),
                number(shrunk(slice)),
                Cell::text(patch),
                kappa,
                mean,
                count(after.len()),
            ],
        );
    }
    Ok(table)
}
