//! The report of an iteration: its bundle, with who did what and what happened since.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::ledger::LedgerError;
use crate::projection::bundle::Bundle;
use crate::report::document::Document;
use crate::report::iteration;
use crate::session::chronicle::Chronicle;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::made::ReportSource;

/// The document of an iteration.
///
/// # Errors
/// [`LedgerError`].
pub fn document(source: &ReportSource<'_>, bundle: &Bundle) -> Result<Document, LedgerError> {
    let mut out = iteration::document(bundle);
    let chronicle = source.chronicle(Some(&bundle.experiment))?;
    let acts = course::acts(&chronicle);
    let name = bundle.iteration.as_str();
    let own = chronicle.of(Kind::PatchProposed);
    let own = own.filter_map(|entry| match &entry.event.payload {
        Payload::PatchProposed(said) if said.iteration == bundle.iteration => {
            Some(said.patch.to_string())
        }
        _ => None,
    });
    let own: BTreeSet<String> = own.collect();
    let about: Vec<&Act<'_>> = acts
        .iter()
        .filter(|act| !act.is_since && (act.subject == name || own.contains(&act.subject)))
        .collect();
    let accepted = chronicle.of(Kind::PatchAccepted);
    let end = own_end(&chronicle, bundle);
    let is_after = |act: &&Act<'_>| act.is_since && act.entry.seq > end;
    let since: Vec<&Act<'_>> = acts
        .iter()
        .filter(is_after)
        .filter(|act| own.contains(&act.subject) || OF_ALL.contains(&act.entry.event.kind()))
        .collect();
    for entry in accepted {
        let Payload::PatchAccepted(said) = &entry.event.payload else {
            continue;
        };
        if said.iteration == bundle.iteration {
            let remark = course::separation(said.patch.as_str(), &about, source.state);
            out.head.separation.extend(remark);
        }
    }
    out.head.separation.extend(course::policy(source.state));
    if let Some(back) = course::rolled_back(&since) {
        out.head.answer = format!("{} {back}", out.head.answer);
    }
    out.head.people = Some(course::table(
        "people",
        "Acts in their order",
        &about,
        source.state,
    ));
    let since = course::table(
        "since",
        "What bears on it since it ended",
        &since,
        source.state,
    );
    out.head.since = Some(since);
    source.finish(out)
}

/// Where the iteration ended: its close, else where it opened.
fn own_end(chronicle: &Chronicle, bundle: &Bundle) -> u64 {
    let own = |kind: Kind| {
        let mut entries = chronicle.of(kind);
        let found = entries.find(|of| of.event.payload.iteration() == Some(&bundle.iteration));
        found.map(|entry| entry.seq)
    };
    let end = own(Kind::IterationClosed).or_else(|| own(Kind::IterationOpened));
    end.unwrap_or(0)
}

/// Kinds that bear on every decision of the experiment.
const OF_ALL: &[Kind] = &[
    Kind::ExploitDiscovered,
    Kind::JudgeDriftChecked,
    Kind::KeyCompromised,
];
