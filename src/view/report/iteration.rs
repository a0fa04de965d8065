//! The report of an iteration: its bundle, with who did what and what happened since.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::IterationId;
use crate::event::payload::predicate::Criterion;
use crate::event::payload::predicate::CriterionSplit;
use crate::event::payload::predicate::Evidence;
use crate::ground::digest::Digest;
use crate::projection::bundle::Bundle;
use crate::projection::iterations::record::IterationRecord;
use crate::projection::newest;
use crate::report::document::Document;
use crate::report::iteration;
use crate::report::shown;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::iterate::bench;
use crate::view::answer::Answer;
use crate::view::iterate::show;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::synth;
use crate::workflow::judge::command;
use crate::workflow::predicate;
use crate::workflow::predicate::ProfileThresholds;

/// Candidates whose figures the head has; the parts have all.
const FIGURES: usize = 3;
/// Digits of a figure in the head.
const FIGURE_DIGITS: usize = 4;

/// What `clover iterate show` answers about an iteration.
///
/// # Errors
/// [`SessionError`]: it is not known, or the log cannot be read.
pub(super) fn answer(source: &ReportSource<'_>, id: &IterationId) -> Result<Answer, SessionError> {
    answer_of(source, &recorded(source, id)?)
}

fn recorded(source: &ReportSource<'_>, id: &IterationId) -> Result<IterationRecord, SessionError> {
    bench::recorded(source.ledger, id, source.through_seq + 1)
}

fn answer_of(source: &ReportSource<'_>, record: &IterationRecord) -> Result<Answer, SessionError> {
    let closed = record.closed.as_ref().map(|of| of.seq);
    let through = closed.unwrap_or(source.through_seq);
    let tainted =
        newest::tainted_through(source.ledger, source.state, &record.experiment, through)?;
    Ok(show::answered(record, tainted))
}

/// What each candidate changes, in figures: of those that were accepted, else of all that were measured.
fn figures(record: &IterationRecord) -> Vec<String> {
    let all = show::hypotheses(record);
    let accepted = |hash: Digest| record.accepted.iter().any(|of| of.said.candidate == hash);
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(hash, _)| accepted(*hash));
    let shown = if own.is_empty() { others } else { own };
    let each = shown.iter().take(FIGURES);
    each.filter_map(|(hash, name)| figure(record, *hash, name))
        .collect()
}

/// What a candidate changes on the rows that were read last: labels, gain with its interval, level of the test.
fn figure(record: &IterationRecord, candidate: Digest, name: &str) -> Option<String> {
    let on = |gate, split| record.gate(candidate, gate, split);
    let confirm = on(Criterion::P8, CriterionSplit::Confirm);
    let of = confirm.or_else(|| on(Criterion::P1, CriterionSplit::Dev))?;
    let (loss, rows) = match &of.said.evidence {
        Evidence::P8(found) => (&found.loss, "labelled rows of confirm"),
        Evidence::P1(loss) => (loss, "labelled rows of dev"),
        _ => return None,
    };
    let mean = loss.mean.value();
    let changes = match mean {
        mean if mean < 0.0 => format!("cuts the squared error by {}", figure_of(-mean)),
        mean if mean > 0.0 => format!("raises the squared error by {}", figure_of(mean)),
        _ => "leaves the squared error as it is".to_owned(),
    };
    let interval = predicate::gain_interval(loss).map(|of| {
        let (low, high) = if mean < 0.0 {
            (-of.high, -of.low)
        } else {
            (of.low, of.high)
        };
        format!(
            " (95 % interval [{}, {}] by its standard error)",
            figure_of(low),
            figure_of(high)
        )
    });
    let level = confirm.map_or_else(
        || ". No label of confirm was read for it.".to_owned(),
        |of| {
            let held = &of.said.thresholds;
            let held = ProfileThresholds::under(held, held.profile);
            format!("; its test has level {}.", held.level)
        },
    );
    let rows = format!("{} {rows}", shown::thousands(loss.rows.value()));
    Some(format!(
        "On {rows}, {name} {changes}{}{level}",
        interval.unwrap_or_default()
    ))
}

/// A figure of a sentence.
fn figure_of(value: f64) -> String {
    shown::number(value, FIGURE_DIGITS)
}

/// Runs of optimizers of an iteration, each with how it ended: one that proposed nothing is on record too.
fn searched(record: &IterationRecord) -> Option<String> {
    let runs = record.synths.iter().map(|run| {
        let said = &run.opened.said;
        let end = run.stopped.as_ref().map(|of| of.said.reason);
        let optimizer = command::name(said.model.as_str());
        format!("{} of {optimizer} ({})", said.run, synth::end_in_words(end))
    });
    let runs: Vec<_> = runs.collect();
    let count = counted(
        runs.len() as u64,
        "run of an optimizer",
        "runs of optimizers",
    );
    (!runs.is_empty()).then(|| format!("It had {count}: {}.", runs.join(", ")))
}

/// The document of an iteration: it begins with what `clover iterate show` answers.
///
/// # Errors
/// [`SessionError`].
pub fn document(source: &ReportSource<'_>, bundle: &Bundle) -> Result<Document, SessionError> {
    let mut out = iteration::document(bundle);
    let record = recorded(source, &bundle.iteration)?;
    let answer = answer_of(source, &record)?;
    let decided = std::mem::replace(&mut out.head.answer, answer.text);
    // What became of each patch, where the answer does not name them.
    let own = (!decided.starts_with("Accepted")).then_some(decided);
    let first = own.into_iter().chain(figures(&record));
    out.head.rest.splice(0..0, first.collect::<Vec<_>>());
    out.head.rest.extend(searched(&record));
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
    out.signatures = course::signed_lines(&about, source.state);
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
