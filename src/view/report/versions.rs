//! What was tested of each version of a prompt while it was in force, so that a reader sees at once which
//! version no audit, check or estimate is about. Its change record has the rest.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::payload::Verdict;
use crate::event::payload::estimated::TransportState;
use crate::ground::shell;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::view::report::picked::day;

/// What entries say of a version while it is the newest of its experiment.
struct VersionTests {
    coverage: u64,
    criteria: u64,
    deployed: Option<u64>,
    drift: CheckTally,
    estimates: u64,
    events: Vec<u64>,
    experiment: ExperimentId,
    from: String,
    guardrails: CheckTally,
    transport: CheckTally,
    version: String,
}

/// How many checks there were, and how many of them did not pass.
#[derive(Clone, Copy, Default)]
struct CheckTally {
    all: u64,
    short: u64,
}

impl CheckTally {
    fn take(&mut self, passes: bool) {
        self.all += 1;
        self.short += u64::from(!passes);
    }

    fn cell(self) -> Cell {
        match (self.all, self.short) {
            (0, _) => Cell::text("none"),
            (all, 0) => Cell::text(format!("{all}, all passed")),
            (all, short) => Cell::text(format!("{all}, {short} did not pass")),
        }
    }
}

/// One row a version.
pub(super) fn chapter(chronicle: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "versions",
        "Tests of each version",
        "What was tested while a version was the newest of its experiment, from the first entry on, whatever the range begins with. The last column has the command that prints all of it.",
    );
    let columns = [
        ("version", "version"),
        ("from", "from"),
        ("deployed", "deployed"),
        ("criteria", "criteria evaluated before"),
        ("estimates", "estimates"),
        ("transport", "transport audits"),
        ("coverage", "coverage checks"),
        ("guardrails", "guardrail checks"),
        ("drift", "drift checks"),
        ("record", "the whole of it"),
    ];
    let mut table = Table::new("versions", "Versions", &columns);
    for of in all(chronicle) {
        let name = format!("{}@{}", of.experiment, of.version);
        let deployed = of
            .deployed
            .map_or_else(|| "never".to_owned(), |seq| format!("at seq {seq}"));
        let cells = vec![
            Cell::text(name.as_str()),
            Cell::text(of.from),
            Cell::text(deployed),
            Cell::count(of.criteria),
            Cell::count(of.estimates),
            of.transport.cell(),
            Cell::count(of.coverage),
            of.guardrails.cell(),
            of.drift.cell(),
            Cell::text(format!("clover report change {}", shell::word(&name))),
        ];
        table.row_of(of.events, cells);
    }
    part.table_or(table, "no rubric was registered up to the end of the range");
    part
}

fn all(chronicle: &Chronicle) -> Vec<VersionTests> {
    let mut out: Vec<VersionTests> = Vec::new();
    let mut newest: BTreeMap<ExperimentId, usize> = BTreeMap::new();
    // Criteria that were evaluated since the newest version are about the one that comes next.
    let mut criteria: BTreeMap<ExperimentId, u64> = BTreeMap::new();
    for entry in &chronicle.entries {
        let Some(experiment) = entry.event.experiment() else {
            continue;
        };
        let version = match &entry.event.payload {
            Payload::RubricRegistered(said) => Some(&said.version),
            Payload::PromptCommitted(said) => Some(&said.version),
            Payload::GateEvaluated(_) => {
                *criteria.entry(experiment.clone()).or_default() += 1;
                None
            }
            _ => None,
        };
        if let Some(version) = version {
            newest.insert(experiment.clone(), out.len());
            let criteria = criteria.remove(experiment).unwrap_or_default();
            out.push(begun(entry, (experiment, version), criteria));
        } else if let Some(of) = newest.get(experiment).and_then(|at| out.get_mut(*at)) {
            of.take(entry);
        }
    }
    out
}

fn begun(
    entry: &ChronicleEntry,
    (experiment, version): (&ExperimentId, &str),
    criteria: u64,
) -> VersionTests {
    VersionTests {
        coverage: 0,
        criteria,
        deployed: None,
        drift: CheckTally::default(),
        estimates: 0,
        events: vec![entry.seq],
        experiment: experiment.clone(),
        from: format!("{}, seq {}", day(entry), entry.seq),
        guardrails: CheckTally::default(),
        transport: CheckTally::default(),
        version: version.to_owned(),
    }
}

impl VersionTests {
    fn take(&mut self, entry: &ChronicleEntry) {
        match &entry.event.payload {
            Payload::EstimateRecorded(_) => self.estimates += 1,
            Payload::CoverageChecked(_) => self.coverage += 1,
            Payload::TransportTested(said) => {
                self.transport.take(said.state == TransportState::Pass);
            }
            Payload::GuardrailChecked(said) => {
                let each = said.verdicts.each();
                let is_short = each.iter().any(|(_, of)| *of == Verdict::Fail);
                self.guardrails.take(!is_short);
            }
            Payload::JudgeDriftChecked(said) => {
                self.drift.take(said.verdicts.whole() == Verdict::Pass);
            }
            Payload::DeploymentActivated(said) => {
                if said.versions.rubric_version == self.version {
                    self.deployed.get_or_insert(entry.seq);
                }
            }
            _ => return,
        }
        self.events.push(entry.seq);
    }
}
