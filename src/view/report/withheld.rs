//! What no report can show any more: decisions whose texts were erased. Every report says so, once anything was erased.

use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::ReportKind;
use crate::session::custody::erased;
use crate::session::custody::erased::WithheldDecision;
use crate::view::report::made::ReportSource;

/// The appendix about erasures; none where nothing was erased, and none of a certificate, which is about one.
pub(super) fn chapter(
    source: &ReportSource<'_>,
    document: &Document,
) -> Result<Option<Chapter>, LedgerError> {
    if document.kind == ReportKind::Erasure {
        return Ok(None);
    }
    let withheld = erased::decisions_withheld(source.ledger, source.through_seq)?;
    if withheld.erasures.is_empty() {
        return Ok(None);
    }
    let mut part = Chapter::new(
        "withheld",
        "Withheld under erasures",
        "Texts of erased subjects cannot be read. A decision that read them stands as it was signed, and cannot be computed again.",
    );
    let (erasures, touched) = (withheld.erasures.len(), withheld.decisions.len());
    let events = || withheld.erasures.clone();
    part.fact(
        events(),
        "erasures",
        "Erasures",
        Cell::count(erasures as u64),
    );
    let touches = Cell::count(touched as u64);
    part.fact(events(), "touched", "Decisions that they touch", touches);
    // Of the whole ledger every decision is named; of anything else those that it rests on.
    let cited = document.cited();
    let is_whole = document.kind == ReportKind::Retention;
    let is_named = |of: &&WithheldDecision| is_whole || cited.contains(&of.entry.seq);
    let named: Vec<_> = withheld.decisions.iter().filter(is_named).collect();
    part.fact(
        events(),
        "here",
        "Of these, decisions that this report rests on",
        Cell::count(named.len() as u64),
    );
    if !named.is_empty() {
        part.table_or(table(&named), "");
    }
    Ok(Some(part))
}

fn table(named: &[&WithheldDecision]) -> Table {
    let columns = [
        ("kind", "decision"),
        ("experiment", "experiment"),
        ("withheld", "standing"),
    ];
    let mut table = Table::new(
        "decisions",
        "Decisions that cannot be computed again",
        &columns,
    );
    for of in named {
        let erasures = of.erasures.iter().map(|seq| format!("#{seq}"));
        let erasures: Vec<_> = erasures.collect();
        let experiment = of.entry.experiment.as_ref();
        let cells = vec![
            Cell::text(of.entry.kind.as_str()),
            experiment.map_or(Cell::Absent, |id| Cell::text(id.to_string())),
            Cell::text(format!("withheld under erasure {}", erasures.join(", "))),
        ];
        let events = [of.entry.seq].into_iter().chain(of.erasures.clone());
        table.row_of(events.collect(), cells);
    }
    table
}
