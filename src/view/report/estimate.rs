//! The report of estimates: the newest values of an experiment, their differences and audits, and every value ever recorded.

use crate::event::Kind;
use crate::event::Payload;
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
use crate::view::report::course::Act;
use crate::view::report::environments;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::made::period;
use crate::view::report::made::seqs;
use crate::view::report::values;
use crate::view::report::values::AnsweredValues;

/// The report of the estimates of an experiment. `all` is what `clover estimate` and `clover compare` say of what is on record.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    experiment: &ExperimentId,
    (chronicle, all): (&Chronicle, &[AnsweredValues]),
) -> Result<Document, LedgerError> {
    let mut answers = values::answers(all).into_iter();
    let none = || "No estimate is on record, so nothing may be claimed.".to_owned();
    let answer = answers.next().unwrap_or_else(none);
    let mut others: Vec<String> = answers.collect();
    others.extend(rest(chronicle));
    let head = DocumentHead {
        answer,
        people: None,
        period: period(chronicle),
        rest: others,
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Estimate, experiment.as_str(), head);
    let value = Cell::text(experiment.as_str());
    out.facts
        .push(fact(Vec::new(), "experiment", "Experiment", value));
    let acts = acts(chronicle);
    let (since, people): (Vec<&Act<'_>>, Vec<&Act<'_>>) = acts.iter().partition(|act| act.is_since);
    out.head.people = Some(course::table(
        "people",
        "Acts in their order",
        &people,
        source.state,
    ));
    out.head.since = Some(course::table(
        "since",
        "What bears on it",
        &since,
        source.state,
    ));
    out.parts = parts(chronicle, all);
    let mut every = Chapter::new(
        "every-value",
        "Every value on record",
        "All estimates and differences that were recorded, the earlier ones too. What is withheld now is withheld in each row. \
         An audit may have widened an interval since: the one to quote stands under the newest values.",
    );
    put(
        &mut every,
        values::every_value(chronicle, all),
        "values",
        "no estimate is on record",
    );
    let mut pairs = values::differences(chronicle, all, false);
    // Differences that were read at different times do not belong in one drawing.
    for table in &mut pairs {
        table.plot = None;
    }
    put(
        &mut every,
        pairs,
        "differences",
        "no difference is on record",
    );
    out.appendices.push(every);
    source.finish(out)
}

/// Adds tables, or names what lacks.
fn put(part: &mut Chapter, tables: Vec<Table>, what: &str, why: &str) {
    if tables.is_empty() {
        part.lacks(what, why);
    }
    part.tables.extend(tables);
}

/// What was asked, on what it rests, and what is not claimed.
fn rest(chronicle: &Chronicle) -> Vec<String> {
    vec![
        "This report says what each policy is worth on the scale of labels, by a judge that labels of people calibrate."
            .to_owned(),
        format!(
            "On record are {}, {} and {}.",
            counted(
                chronicle.count(Kind::EstimateRecorded), "estimate", "estimates"),
            counted(chronicle.count(Kind::ContrastRecorded), "difference", "differences"),
            counted(chronicle.count(Kind::TransportTested), "audit of transport", "audits of transport"),
        ),
        "Nothing is claimed of other rows, judges or times than those that were read.".to_owned(),
    ]
}

/// The newest values of each judge and environment, and why some have no answer.
pub(super) fn newest(part: &mut Chapter, all: &[AnsweredValues]) {
    let valued = all.iter().filter(|of| !of.newest.by_policy.is_empty());
    let tables = valued.map(values::newest_table).collect();
    put(
        part,
        tables,
        "values of policies",
        "no estimate is on record: clover estimate records it",
    );
    for of in all {
        if let Err(why) = &of.said {
            part.lacks("the answer", why.clone());
        }
    }
}

fn parts(chronicle: &Chronicle, all: &[AnsweredValues]) -> Vec<Chapter> {
    let mut first = Chapter::new(
        "newest",
        "Newest values",
        "The newest value of each policy as clover estimate shows it now: the interval in force, and what may be claimed.",
    );
    newest(&mut first, all);
    let mut order = Chapter::new(
        "order",
        "Differences",
        "The newest difference of each pair: which policies are told apart.",
    );
    put(
        &mut order,
        values::differences(chronicle, all, true),
        "differences between policies",
        "no difference is on record: clover compare records it",
    );
    let mut audits = Chapter::new(
        "audits",
        "Audits of transport",
        "Every audit, the failed ones too: whether calibration holds for a policy on labels that it never saw.",
    );
    audits.table_or(
        values::audits(chronicle),
        "none is on record: clover audit transport records it",
    );
    let mut fits = Chapter::new(
        "calibrators",
        "Calibrators",
        "What turned scores into labels.",
    );
    fits.table_or(values::calibrators(chronicle), "none is on record");
    let environments = environments::chapter(chronicle);
    [first, order, audits]
        .into_iter()
        .chain(environments)
        .chain([fits])
        .collect()
}

/// Steps to the values of an experiment, and what bears on them.
pub(super) fn acts(chronicle: &Chronicle) -> Vec<Act<'_>> {
    let last = seqs(chronicle.of(Kind::EstimateRecorded)).last().copied();
    let entries = chronicle.entries.iter();
    let found = entries.filter_map(|entry| {
        let (verb, subject, said) = match &entry.event.payload {
            Payload::ExperimentRegistered(_) => {
                ("registered", "the experiment".to_owned(), String::new())
            }
            Payload::JudgeRegistered(said) => {
                ("registered", format!("judge {}", said.judge), String::new())
            }
            Payload::LabelDesignRegistered(said) => (
                "registered",
                format!("label design {}", said.design),
                String::new(),
            ),
            Payload::ManifestRegistered(said) => (
                "registered",
                format!("plan {}", said.manifest.manifest),
                String::new(),
            ),
            Payload::CalibratorFitted(said) => (
                "fitted",
                format!("judge {}", said.terms.judge),
                counted(said.labels.value(), "label", "labels"),
            ),
            Payload::TransportTested(said) => (
                "audited",
                said.policy.to_string(),
                crate::view::word(&said.state),
            ),
            Payload::JudgeDriftChecked(said) => (
                "checked drift",
                format!("judge {}", said.judge),
                crate::view::word(&said.verdicts.whole()),
            ),
            Payload::ScoreConflict(said) => (
                "recorded a conflict",
                format!("judge {}", said.judge),
                String::new(),
            ),
            Payload::KeyCompromised(said) => (
                "declared compromised",
                course::key_named(&said.key_id),
                said.reason.as_str().to_owned(),
            ),
            _ => return None,
        };
        let kind = entry.event.kind();
        let bears = [
            Kind::JudgeDriftChecked,
            Kind::KeyCompromised,
            Kind::ScoreConflict,
        ];
        let is_after = last.is_some_and(|last| entry.seq > last);
        Some(Act {
            entry,
            verb,
            subject,
            said,
            is_since: is_after || bears.contains(&kind),
        })
    });
    found.collect()
}
