//! The report of estimates: the newest values of an experiment, their differences and audits, and every value ever recorded.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::payload::estimate::EstimateRecorded;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::made::period;
use crate::view::report::made::seqs;
use crate::view::report::picked::PickedTable;

/// Values of policies.
pub(super) const VALUES: PickedTable = PickedTable {
    key: "values",
    title: "Values of policies",
    kinds: &[Kind::EstimateRecorded],
    columns: &[
        ("policy", "policy", "policy"),
        ("claim", "standing", "claim"),
        ("estimate", "estimate", "value"),
        ("interval", "interval", "interval"),
        ("labels", "labels", "own labels"),
        ("rows", "rows", "rows"),
        ("prompts", "prompts", "prompts"),
        ("raw_mean", "raw_mean", "mean score"),
        ("terms/judge", "judge", "judge"),
        ("through_seq", "through_seq", "read through"),
    ],
    plot: Some(Plot::Forest {
        label: (0, 0),
        estimate: 2,
        interval: Some(3),
        reference: None,
        axis: "value on the scale of labels",
        before: None,
    }),
};
/// Differences between policies.
pub(super) const DIFFERENCES: PickedTable = PickedTable {
    key: "differences",
    title: "Differences between policies",
    kinds: &[Kind::ContrastRecorded],
    columns: &[
        ("first", "first", "first"),
        ("second", "second", "second"),
        ("told_apart", "result", "told apart"),
        ("difference", "difference", "difference"),
        ("interval", "interval", "interval"),
        ("p", "p", "p"),
        ("p_adjusted", "p_adjusted", "p, corrected"),
        ("through_seq", "through_seq", "read through"),
    ],
    plot: Some(Plot::Forest {
        label: (0, 1),
        estimate: 3,
        interval: Some(4),
        reference: Some(0.0),
        axis: "first less second",
        before: None,
    }),
};
/// Audits of transport.
pub(super) const AUDITS: PickedTable = PickedTable {
    key: "audits",
    title: "Audits of transport",
    kinds: &[Kind::TransportTested],
    columns: &[
        ("policy", "policy", "policy"),
        ("state", "state", "verdict"),
        ("mean_residual", "mean_residual", "mean residual"),
        ("wide/interval", "interval", "interval"),
        ("audit/margin_micro", "margin", "margin"),
        ("rows", "rows", "probes"),
        ("design", "design", "design"),
        ("terms/judge", "judge", "judge"),
    ],
    plot: Some(Plot::Forest {
        label: (0, 0),
        estimate: 2,
        interval: Some(3),
        reference: Some(0.0),
        axis: "label less calibrated score",
        before: None,
    }),
};
/// Calibrators that were fitted.
const CALIBRATORS: PickedTable = PickedTable {
    key: "calibrators",
    title: "Calibrators",
    kinds: &[Kind::CalibratorFitted],
    columns: &[
        ("terms/judge", "judge", "judge"),
        ("selected", "selected", "calibrator"),
        ("labels", "labels", "labels"),
        ("clusters", "clusters", "prompts"),
        ("oof_rmse", "oof_rmse", "error out of fold"),
        ("calibrator", "digest", "digest"),
        ("through_seq", "through_seq", "read through"),
    ],
    plot: None,
};

/// The newest estimate that was recorded of an experiment.
pub fn newest(chronicle: &Chronicle) -> Option<&EstimateRecorded> {
    let entry = chronicle.of(Kind::EstimateRecorded).last()?;
    entry.event.payload.said()
}

/// The report of the estimates of an experiment. `answer` is that of `clover estimate` by the terms and rows of the newest
/// recorded one, or why it cannot be given.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    experiment: &ExperimentId,
    chronicle: &Chronicle,
    answer: Result<String, String>,
) -> Result<Document, LedgerError> {
    let read = newest(chronicle).map_or(0, |of| of.through_seq.value());
    let audits = chronicle
        .of(Kind::TransportTested)
        .filter(|entry| entry.seq > read);
    let (answer, gap) = match answer {
        Ok(answer) => match audits.count() as u64 {
            0 => (answer, None),
            since => {
                let since = counted(since, "audit was", "audits were");
                let text = format!(
                    "{answer} {since} recorded after these values: one that failed withdraws the value of its policy."
                );
                (text, None)
            }
        },
        Err(why) => (
            "No answer can be given from what is on record; the recorded values are below."
                .to_owned(),
            Some(why),
        ),
    };
    let head = DocumentHead {
        answer,
        people: None,
        period: period(chronicle),
        rest: rest(chronicle),
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
    out.parts = parts(chronicle, gap);
    let mut all = Chapter::new(
        "every-value",
        "Every value on record",
        "All estimates and differences that were recorded, the earlier ones too.",
    );
    all.table_or(VALUES.of(chronicle, |_| true), "none is on record");
    all.table_or(DIFFERENCES.of(chronicle, |_| true), "none is on record");
    // Values that were read at different times do not belong in one drawing.
    for table in &mut all.tables {
        table.plot = None;
    }
    out.appendices.push(all);
    source.finish(out)
}

/// What was asked, on what it rests, and what is not claimed.
fn rest(chronicle: &Chronicle) -> Vec<String> {
    vec![
        "Asked was what each policy is worth on the scale of labels, by scores of a judge that labels of people calibrate."
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

fn parts(chronicle: &Chronicle, gap: Option<String>) -> Vec<Chapter> {
    let newest_of = |kind: Kind| {
        let read = chronicle.of(kind).filter_map(read_through);
        read.max().unwrap_or(0)
    };
    let (values, pairs) = (
        newest_of(Kind::EstimateRecorded),
        newest_of(Kind::ContrastRecorded),
    );
    let mut newest = Chapter::new(
        "newest",
        "Newest values",
        "What was recorded last, by the same rows: the value of each policy, and what may be claimed of it.",
    );
    let table = VALUES.of(chronicle, |entry| read_through(entry) == Some(values));
    newest.table_or(
        table,
        "no estimate is on record: clover estimate records it",
    );
    if let Some(why) = gap {
        newest.lacks("the answer", why);
    }
    let mut order = Chapter::new(
        "order",
        "Differences",
        "What was recorded last of differences: which policies are told apart.",
    );
    let table = DIFFERENCES.of(chronicle, |entry| read_through(entry) == Some(pairs));
    order.table_or(
        table,
        "no difference is on record: clover compare records it",
    );
    let mut audits = Chapter::new(
        "audits",
        "Audits of transport",
        "Every audit, the failed ones too: whether calibration holds for a policy on labels that it never saw.",
    );
    audits.table_or(
        AUDITS.of(chronicle, |_| true),
        "none is on record: clover audit transport records it",
    );
    let mut fits = Chapter::new(
        "calibrators",
        "Calibrators",
        "What turned scores into labels.",
    );
    fits.table_or(CALIBRATORS.of(chronicle, |_| true), "none is on record");
    vec![newest, order, audits, fits]
}

fn read_through(entry: &ChronicleEntry) -> Option<u64> {
    match &entry.event.payload {
        Payload::EstimateRecorded(said) => Some(said.through_seq.value()),
        Payload::ContrastRecorded(said) => Some(said.through_seq.value()),
        _ => None,
    }
}

fn acts(chronicle: &Chronicle) -> Vec<Act<'_>> {
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
                format!("{} labels", said.labels),
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
                format!("key {}", said.key_id),
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
