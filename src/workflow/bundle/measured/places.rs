//! Environments under the rubric in force.

use clover_event::payload::report::ReportPart;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_stats::environment::EnvironmentFinding;
use clover_stats::environment::EnvironmentVerdict;

use crate::bundle::measured::BundleMeasurement;
use crate::bundle::measured::PartRows;
use crate::bundle::measured::count;
use crate::bundle::measured::interval;
use crate::bundle::measured::number;
use crate::iterate::compute::evidence::TRANSPORT_LEVEL;
use crate::iterate::compute::transport;

/// Every registered environment, on dev and on confirm.
pub(super) fn transport(measured: &BundleMeasurement) -> Section {
    let mut part = Section::new(ReportPart::Transport, "");
    if measured.dev.table().data().environments.is_empty() {
        part.lacks("environments", "the plan registers none");
        return part;
    }
    let mut table = Table::new(
        "in_force",
        "Environments under the rubric in force",
        &[
            ("environment", "environment"),
            ("split", "on"),
            ("required", "required"),
            ("rows", "labelled rows"),
            ("mean", "mean residual"),
            ("interval", "95 % interval"),
            ("p", "p"),
            ("p_adjusted", "p (BH)"),
            ("detectable", "detectable bias"),
            ("verdict", "verdict"),
        ],
    );
    for side in measured.sides() {
        let judged = (&side.in_force.fitted, &side.in_force.scored);
        match transport::under(side.table(), judged, side.part, TRANSPORT_LEVEL) {
            Ok(found) => rows(&mut table, side, &found),
            Err(error) => part.lacks(
                format!("environments on {}", side.word()),
                error.to_string(),
            ),
        }
    }
    table.plot = Some(Plot::Forest {
        label: (0, 1),
        estimate: 4,
        interval: Some(5),
        reference: Some(0.0),
        axis: "mean residual (label less reward) with its 95 % interval",
        before: None,
    });
    part.table(table);
    if let Err(why) = &measured.confirm {
        part.lacks("environments on confirm", why.as_str());
    }
    part
}

fn rows(table: &mut Table, side: &PartRows, found: &[Vec<Option<EnvironmentFinding>>]) {
    for (family, found) in side.table().data().environments.iter().zip(found) {
        for (at, environment) in family.environments.iter().enumerate() {
            let of = found[at].as_ref();
            let verdict = of.map_or(EnvironmentVerdict::Inconclusive, |of| of.verdict);
            table.row_of(
                side.in_force.events.clone(),
                vec![
                    Cell::text(format!("{} / {environment}", family.id)),
                    Cell::text(side.word()),
                    family.required[at].into(),
                    count(of.map_or(0, |of| of.rows)),
                    number(of.map(|of| of.mean)),
                    interval(of.and_then(|of| of.interval)),
                    number(of.and_then(|of| of.p)),
                    number(of.map(|of| of.p_adjusted)),
                    number(of.and_then(|of| of.detectable_bias)),
                    Cell::Verdict(match verdict {
                        EnvironmentVerdict::Fail => clover_event::payload::Verdict::Fail,
                        EnvironmentVerdict::Inconclusive => {
                            clover_event::payload::Verdict::Inconclusive
                        }
                        EnvironmentVerdict::Pass => clover_event::payload::Verdict::Pass,
                    }),
                ],
            );
        }
    }
}
