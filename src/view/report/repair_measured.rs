//! What runs of an experiment say of the score that selected in them, as parts of the report of one of them.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::RunId;
use crate::num::Finite;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::session::chronicle::Chronicle;
use crate::view::repair_measures;
use crate::view::repair_measures::RepairMean;
use crate::view::repair_measures::RepairMeasured;
use crate::view::repair_measures::RepairShare;
use crate::view::report::made;
use crate::view::report::made::ReportSource;
use crate::view::report::repair::RunDrawn;
use crate::workflow::wf::measure;
use crate::workflow::wf::measures;

/// Level of the intervals.
const LEVEL: f64 = 0.95;

fn interval(low: Option<Finite>, high: Option<Finite>) -> Cell {
    low.zip(high)
        .map_or(Cell::Absent, |(low, high)| Cell::Interval(low, high))
}

/// Where each run of an experiment ended.
fn stops(chronicle: &Chronicle) -> BTreeMap<&RunId, u64> {
    let all = chronicle.entries.iter();
    let all = all.filter_map(|entry| match &entry.event.payload {
        Payload::WfStopped(said) => Some((&said.run, entry.seq)),
        _ => None,
    });
    all.collect()
}

/// What passed against what is of use, candidate by candidate of the run.
fn confusion(drawn: &RunDrawn<'_>, useful: f64) -> Chapter {
    let mut part = Chapter::new(
        "confusion",
        "Passed, and of use",
        format!(
            "Candidates of this run: what the verifier passed, against what is right. A candidate is of use from a worth of {useful} on."
        ),
    );
    let columns = [
        ("passed", "the verifier"),
        ("useful", "of use"),
        ("useless", "of no use"),
    ];
    let mut table = Table::new(
        "confusion",
        "Candidates by what was said and what is right",
        &columns,
    );
    let least = (useful * 1e6).round();
    for (says, name) in [(true, "passes"), (false, "does not pass")] {
        let all = drawn.facts.candidates.iter();
        let all = all.filter(|of| of.passes == Some(says) && of.worth_micro.is_some());
        let (mut good, mut bad, mut events) = (0, 0, Vec::new());
        for of in all {
            events.extend(drawn.places.worth.get(&of.candidate));
            if of.worth_micro.is_some_and(|worth| worth as f64 >= least) {
                good += 1;
            } else {
                bad += 1;
            }
        }
        if !drawn.places.worth.is_empty() {
            let cells = vec![Cell::text(name), Cell::count(good), Cell::count(bad)];
            table.row_of(events, cells);
        }
    }
    part.table_or(table, "what is right is not opened yet");
    part
}

/// gamma, kappa and beta with their intervals.
fn believed(facts: &RepairMeasured, events: &[u64]) -> Chapter {
    let mut part = Chapter::new(
        "believed",
        "How far scores can be believed",
        "Over runs of this experiment and family that were scored. The unit is a run; intervals of 95 % are Student's over runs. 1/2 is \
         chance for gamma and beta.",
    );
    let columns = [
        ("measure", "measure"),
        ("says", "what it says"),
        ("mean", "mean"),
        ("interval", "95 %"),
        ("runs", "runs"),
    ];
    let mut table = Table::new("measures", "Measures over runs", &columns);
    table.plot = Some(Plot::Forest {
        label: (0, 1),
        estimate: 2,
        interval: Some(3),
        reference: Some(0.5),
        axis: "0 to 1; 1/2 is chance for gamma and beta",
        before: None,
    });
    let all: [(&'static str, &RepairMean, &'static str); 5] = [
        ("gamma", &facts.gamma, "scores in the order of worth"),
        ("kappa of 1", &facts.kappa_1, "one proposal gains"),
        ("kappa of 3", &facts.kappa_3, "one of three gains"),
        ("beta", &facts.beta, "blame against a drawn step"),
        ("regret", &facts.regret, "worth lost by the best score"),
    ];
    for (name, of, says) in all {
        let Some(mean) = of.mean else {
            part.lacks(name, "no run says anything of it");
            continue;
        };
        table.row_of(
            events.to_vec(),
            vec![
                Cell::text(name),
                Cell::text(says),
                Cell::Number(mean),
                interval(of.low, of.high),
                Cell::count(of.runs),
            ],
        );
    }
    part.table_or(table, "no run was scored");
    part
}

/// Shares of runs, and success against calls.
fn success(facts: &RepairMeasured, events: &[u64]) -> Chapter {
    let mut part = Chapter::new(
        "success",
        "Success under budget",
        "Shares of runs with Clopper and Pearson's interval of 95 %. Runs that failed are in the denominator.",
    );
    let columns = [
        ("share", "share of runs"),
        ("count", "runs"),
        ("of", "of"),
        ("rate", "rate"),
        ("interval", "95 %"),
    ];
    let mut table = Table::new("shares", "Shares of runs", &columns);
    let all: [(&'static str, &RepairShare); 5] = [
        ("winner of use", &facts.success),
        ("first program of use", &facts.before),
        ("passed", &facts.passed),
        ("passed and of no use", &facts.false_positive),
        ("of use and not passed", &facts.false_negative),
    ];
    for (name, of) in all.into_iter().filter(|(_, of)| of.of > 0) {
        table.row_of(
            events.to_vec(),
            vec![
                Cell::text(name),
                Cell::count(of.count),
                Cell::count(of.of),
                Cell::number(of.count as f64 / of.of as f64),
                interval(of.low, of.high),
            ],
        );
    }
    part.table_or(table, "no run was scored");
    let columns = [
        ("calls", "calls"),
        ("share", "share of runs that succeeded"),
        ("runs", "runs"),
    ];
    let mut table = Table::new("curve", "Success within so many calls", &columns);
    table.plot = Some(Plot::Points {
        x: (0, "calls"),
        y: "share of runs",
        line: Some((1, "success")),
        dots: (1, None, "success"),
        hollow: None,
        weight: 2,
        reference: None,
    });
    for point in &facts.curve {
        let cells = vec![
            Cell::count(point.calls),
            Cell::Number(point.share),
            Cell::count(facts.runs.len() as u64),
        ];
        table.row_of(events.to_vec(), cells);
    }
    part.table_or(table, "no run succeeded");
    part
}

/// What came of the edits of each operator.
fn league(facts: &RepairMeasured, events: &[u64]) -> Chapter {
    let mut part = Chapter::new(
        "operators",
        "Operators",
        "What edits came to by operator, over the same runs. A gain is worth of the candidate less worth of what it was made of.",
    );
    let columns = [
        ("operator", "operator"),
        ("added", "made a candidate"),
        ("rejected", "rejected"),
        ("gained", "gained enough"),
        ("gain", "mean gain"),
    ];
    let mut table = Table::new("operators", "Edits by operator", &columns);
    let mut all: Vec<_> = facts.operators.iter().collect();
    all.sort_by(|a, b| {
        let gain = |of: Option<Finite>| of.map_or(f64::NEG_INFINITY, Finite::value);
        gain(b.1.gain).total_cmp(&gain(a.1.gain))
    });
    for (name, of) in all {
        table.row_of(
            events.to_vec(),
            vec![
                Cell::text(name.as_str()),
                Cell::count(of.added),
                Cell::count(of.rejected),
                Cell::count(of.gained),
                Cell::maybe(of.gain, Cell::from),
            ],
        );
    }
    part.table_or(table, "no edit made a candidate");
    part
}

/// The parts of a report on a run that speak of what is right.
pub(super) fn chapters(
    source: &ReportSource<'_>,
    chronicle: &Chronicle,
    (drawn, useful): (&RunDrawn<'_>, f64),
) -> Vec<Chapter> {
    let experiment = &drawn.run.experiment;
    let family = Some(drawn.facts.family.as_str());
    let runs = measures::scored(source.state, experiment, family);
    let unscored = measures::unscored(source.state, experiment, family);
    let terms = measures::MeasureTerms {
        useful,
        epsilon: measure::EPSILON,
        least_gain: measure::LEAST_GAIN,
        level: LEVEL,
    };
    let mut parts = vec![confusion(drawn, useful)];
    let Ok(found) = measures::of(&runs, terms) else {
        parts[0].lacks("measures over runs", "their numbers give none");
        return parts;
    };
    let facts = repair_measures::facts(experiment, (&found, unscored), terms);
    let stops = stops(chronicle);
    let events = runs
        .iter()
        .filter_map(|run| stops.get(&run.said.run).copied());
    let events: Vec<u64> = events.collect();
    let mut believed = believed(&facts, &events);
    if unscored > 0 {
        let what = made::counted(unscored, "run that ended", "runs that ended");
        believed.lacks(what, "they are not scored yet");
    }
    parts.extend([success(&facts, &events), believed, league(&facts, &events)]);
    parts
}
