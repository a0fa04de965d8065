//! What frameworks ask of records, source by source, and what answers: a report, a command, or nothing, with the reason.
//! One line a source; the page REPORT.md and the report are written from it.

use crate::event::id::ExperimentId;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle::Chronicle;
use crate::view::report::course;
use crate::view::report::evidence;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::made::period;
use crate::view::report::requirements;
use crate::view::report::requirements::REQUIREMENTS;

/// What a source asks, and what answers.
#[derive(Clone, Copy, Debug)]
pub struct CoverageLine {
    /// The source, with the place in it.
    pub source: &'static str,
    /// What it asks, in short.
    pub asks: &'static str,
    /// Reports that answer.
    pub reports: &'static [ReportKind],
    /// Commands that answer too.
    pub commands: &'static [&'static str],
    /// What of it is not covered, and why; empty where nothing is known to be left.
    pub lacks: &'static str,
}

macro_rules! coverage {
    ($($source:literal $asks:literal [$($report:ident)*] [$($command:literal)*] $lacks:literal;)*) => {
        /// Every source, in the order of the list. The next one goes here.
        pub const COVERAGE: &[CoverageLine] = &[$(CoverageLine {
            source: $source,
            asks: $asks,
            reports: &[$(ReportKind::$report),*],
            commands: &[$($command),*],
            lacks: $lacks,
        }),*];
    };
}

coverage! {
    "AI Act Art. 9(6)-(8)" "testing before the market, against prior defined metrics and thresholds"
        [AnnexIv] ["prereg show"] "";
    "AI Act Art. 11, Annex IV(2)(f), (g)" "validation, data, metrics; reports dated and signed by the responsible persons"
        [AnnexIv] ["export dsse"] "design and data sheets of the system itself: the ledger governs its evaluation";
    "AI Act Art. 12(1)-(2)" "automatic recording of events"
        [AnnexIv Trail] ["log"] "the run-time log of the system itself, and tags by letter of Art. 12(2)";
    "AI Act Art. 12(3)" "biometric identification: period of use, reference database, matched input, persons"
        [] [] "no use of a biometric system is recorded";
    "AI Act Art. 13(3), 15(3)" "declared levels of accuracy and their metrics"
        [Estimate AnnexIv] ["estimate" "export csv"] "";
    "AI Act Art. 14(4)-(5)" "people can override; two persons for some systems"
        [Change AnnexIv] ["approve list"] "";
    "AI Act Art. 17(1)" "quality management: changes, tests, data, monitoring, records, accountability"
        [AnnexIv] [] "procedures themselves are documents outside of a ledger";
    "AI Act Art. 18" "technical documentation is kept for 10 years"
        [Expiry Retention] [] "keeping media readable for so long";
    "AI Act Art. 19(1), 26(6)" "logs are kept for a fit period, at least six months"
        [Expiry Retention] [] "the run-time log of the system itself";
    "AI Act Art. 20, 72, 73" "corrective action, monitoring, serious incidents"
        [AnnexIv Experiment] ["deploy status"] "reports of incidents to authorities: no event of the catalogue is an incident";
    "NIST AI RMF MEASURE 1.1, 1.2, 1.3" "metrics are chosen and assessed again; what is not measured; independent assessors"
        [Tevv] ["assume list"] "";
    "NIST AI RMF MEASURE 2.1, 2.3, 2.4, 2.5, 2.13" "test sets, conditions like deployment, monitoring, limits, the metrics themselves"
        [Tevv] ["judge list"] "";
    "NIST AI RMF MEASURE 3.1, 3.3, 4.2, 4.3, MANAGE 4.1" "emergent risks, feedback, measured improvement or decline"
        [Tevv] [] "feedback of users is not taken in";
    "ISO/IEC 42001 cl. 7.5, 9.1, 9.2, 10.2, A.6.2, A.7, A.8" "verification, operation, logs, provenance; audit and corrective action"
        [Iso42001] [] "other controls of Annex A, and the statement of applicability itself";
    "ISO/IEC 23894 cl. 6.4-6.7" "risks are assessed, treated, monitored, recorded"
        [Iso23894] ["assume list"] "risks that no assumption, slice or exploit of the ledger names";
    "21 CFR 11.10(a)-(g), (k)" "validation, copies, retrieval, access, audit trail, sequence, authority, change control"
        [Part11 Trail] ["verify" "doctor"] "access to the machine, backups and media";
    "21 CFR 11.50, 11.70, 11.100, 11.200, 11.300" "signatures with printed name, date, meaning; linked, unique, controlled"
        [Part11 Change] ["key list"] "who a person is, and how key and passphrase are kept";
    "EU GMP Annex 11, ALCOA++" "attributable, legible, contemporaneous, original, accurate records; review of trails"
        [Part11 Trail] [] "accuracy and completeness: no signature proves them";
    "SOC 2 CC4.1, CC6.1-6.3, CC7.2-7.3, CC8.1, PI1.1-1.5" "evaluation, access, anomalies, authorised and tested changes, processing"
        [Soc2] ["export csv"] "access to machines, and handling of incidents beyond keys and rollbacks";
    "FDA PCCP, GMLP 2025" "modifications described before, protocol, impact; monitored performance"
        [Pccp Iteration] [] "the device itself, and what users are told";
    "SR 26-2, OCC 2026-13" "development, validation, monitoring, documentation, effective challenge; inventory"
        [Sr262] ["judge list"] "models of the firm other than judges and calibrators";
    "GDPR 5(1)(c), (e), 5(2), 17, 25, 30, 32, 35" "minimise, limit storage, erase, account for it"
        [Gdpr Erasure Retention Expiry] ["erase"] "the register of processing and the impact assessment; copies outside of the ledger";
}

impl CoverageLine {
    /// Reports and commands that answer, in words; nothing where none does.
    pub fn answers(&self) -> String {
        let reports = self
            .reports
            .iter()
            .map(|of| format!("report {}", of.as_str()));
        let commands = self.commands.iter().map(|of| (*of).to_owned());
        reports.chain(commands).collect::<Vec<_>>().join(", ")
    }

    /// Whether nothing answers it.
    pub fn is_uncovered(&self) -> bool {
        self.reports.is_empty() && self.commands.is_empty()
    }
}

/// The coverage of every source, with what this ledger has for the requirements of each report.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    experiment: Option<&ExperimentId>,
) -> Result<Document, LedgerError> {
    let chronicle = source.chronicle(experiment)?;
    let total = COVERAGE.len() as u64;
    let uncovered = COVERAGE.iter().filter(|of| of.is_uncovered()).count() as u64;
    let in_part = COVERAGE
        .iter()
        .filter(|of| !of.is_uncovered() && !of.lacks.is_empty());
    let in_part = in_part.count() as u64;
    let head = DocumentHead {
        answer: format!(
            "Of {}, {} answered by a report or a command, {in_part} of them in part; {} not covered.",
            counted(total, "row", "rows"),
            counted(total - uncovered, "is", "are"),
            counted(uncovered, "is", "are"),
        ),
        people: None,
        period: period(&chronicle),
        rest: vec![
            "This report says which report or command gives what a framework asks of records, and what none gives.".to_owned(),
            "Each row is our reading of a rule; the rule itself binds. Evidence does not show that all of a rule is met.".to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let title = experiment.map_or_else(|| "Whole ledger".to_owned(), ToString::to_string);
    let mut out = Document::new(ReportKind::Coverage, title, head);
    out.facts
        .push(fact(Vec::new(), "rows", "Rows", Cell::count(total)));
    out.parts = vec![rows(), held(&chronicle)];
    source.finish(out)
}

/// Every row with what answers it, and what is not covered.
fn rows() -> Chapter {
    let mut part = Chapter::new(
        "coverage",
        "What is asked, and what answers",
        "A name behind the word report is one of clover report; any other is a command of its own, such as clover verify.",
    );
    let columns = [
        ("source", "source"),
        ("covered", "covered"),
        ("asks", "asks, in short"),
        ("answers", "answered by"),
        ("lacks", "not covered"),
    ];
    let mut table = Table::new("rows", "Rows", &columns);
    for of in COVERAGE {
        let covered = match (of.is_uncovered(), of.lacks.is_empty()) {
            (true, _) => "NOT COVERED",
            (false, false) => "in part",
            (false, true) => "answered",
        };
        let cells = [of.source, covered, of.asks].map(Cell::text);
        let mut cells = cells.to_vec();
        cells.push(Cell::text(of.answers()));
        cells.push(Cell::text(of.lacks));
        table.row_of(Vec::new(), cells);
        if !of.lacks.is_empty() {
            part.lacks(of.source, of.lacks);
        }
    }
    part.table_or(table, "");
    part
}

/// Of the requirements of each framework, those that this ledger has entries for.
fn held(chronicle: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "held",
        "What this ledger has",
        "Of the requirements that each report lists, those for which the range has an entry.",
    );
    let columns = [("report", "report"), ("with", "with entries"), ("of", "of")];
    let mut table = Table::new("held", "Requirements with entries", &columns);
    for kind in ReportKind::ALL {
        let all: Vec<_> = requirements::of(*kind).collect();
        if all.is_empty() {
            continue;
        }
        let with = all.iter().filter(|of| evidence::has_entries(chronicle, of));
        let newest = all.iter().flat_map(|of| of.kinds);
        let newest = newest.filter_map(|kind| chronicle.tallies.get(kind));
        let newest = newest.map(|tally| tally.last_seq).max();
        let cells = vec![
            Cell::text(kind.as_str()),
            Cell::count(with.count() as u64),
            Cell::count(all.len() as u64),
        ];
        table.row_of(newest.into_iter().collect(), cells);
    }
    let total = Cell::count(REQUIREMENTS.len() as u64);
    part.fact(
        Vec::new(),
        "requirements",
        "Requirements in all reports",
        total,
    );
    part.table_or(table, "");
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::page;

    #[test]
    fn every_row_is_answered_or_says_why_not() {
        for of in COVERAGE {
            assert!(!of.is_uncovered() || !of.lacks.is_empty(), "{}", of.source);
            assert!(!of.asks.is_empty(), "{}", of.source);
        }
    }

    #[test]
    fn every_report_of_evidence_answers_a_row() {
        for kind in ReportKind::ALL {
            let is_evidence = requirements::of(*kind).next().is_some();
            let answers = COVERAGE.iter().any(|of| of.reports.contains(kind));
            assert!(!is_evidence || answers, "{}", kind.as_str());
        }
    }

    #[test]
    fn the_page_lists_what_is_asked_and_what_answers() {
        let row = |of: &CoverageLine| {
            let answers = of.answers().replace(", ", "` `");
            let answers = if answers.is_empty() {
                "–".to_owned()
            } else {
                format!("`{answers}`")
            };
            let lacks = if of.lacks.is_empty() { "–" } else { of.lacks };
            format!("| {} | {} | {answers} | {lacks} |\n", of.source, of.asks)
        };
        let rows = COVERAGE.iter().map(row).collect();
        page::hold(
            "schema/REPORT.md",
            &[("| source | asks | answered by | not covered |", rows)],
        );
    }
}
