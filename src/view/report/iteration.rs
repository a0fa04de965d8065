//! The report of an iteration: its bundle, with who did what and what happened since.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::IterationId;
use crate::projection::bundle::Bundle;
use crate::projection::newest;
use crate::report::document::Document;
use crate::report::iteration;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::iterate::bench;
use crate::view::answer::Answer;
use crate::view::iterate::show;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::made::ReportSource;

/// What `clover iterate show` answers about an iteration.
///
/// # Errors
/// [`SessionError`]: it is not known, or the log cannot be read.
pub(super) fn answer(source: &ReportSource<'_>, id: &IterationId) -> Result<Answer, SessionError> {
    let below = source.through_seq + 1;
    let record = bench::recorded(source.ledger, id, below)?;
    let closed = record.closed.as_ref().map(|of| of.seq);
    let through = closed.unwrap_or(source.through_seq);
    let tainted =
        newest::tainted_through(source.ledger, source.state, &record.experiment, through)?;
    Ok(show::answered(&record, tainted))
}

/// The document of an iteration: it begins with what `clover iterate show` answers.
///
/// # Errors
/// [`SessionError`].
pub fn document(source: &ReportSource<'_>, bundle: &Bundle) -> Result<Document, SessionError> {
    let mut out = iteration::document(bundle);
    let answer = answer(source, &bundle.iteration)?;
    let decided = std::mem::replace(&mut out.head.answer, answer.text);
    // What became of each patch, where the answer does not name them.
    if !decided.starts_with("Accepted") {
        out.head.rest.insert(0, decided);
    }
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
    Ok(source.finish(out)?)
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
