//! The report of a gate: what was planned, what was looked at and when, how it ended, and who stood behind it.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::event::payload::decision::Grade;
use crate::event::payload::decision::PromotionIssued;
use crate::event::payload::gate::Reading;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Side;
use crate::event::payload::manifest::Test;
use crate::ground::digest::Digest;
use crate::ledger::State;
use crate::num::Finite;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::projection::manifests::Manifests;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::session::gate::error::GateError;
use crate::view::gate::facts::GateFacts;
use crate::view::gate::page::Page;
use crate::view::gate::verdict::why_amended;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::made;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::picked::PickedTable;
use crate::view::word;

/// The versions of the plan, as they were registered.
const PLAN: PickedTable = PickedTable {
    key: "versions",
    title: "Versions of the plan",
    kinds: &[Kind::ManifestRegistered, Kind::ManifestAmended],
    columns: &[
        ("manifest/version", "version", "version"),
        ("manifest/hypothesis/kind", "claim", "claim"),
        ("manifest/hypothesis/claim", "words", "in words"),
        ("manifest/test/null_margin_micro", "margin", "margin"),
        ("manifest/test/alpha_micro", "alpha", "alpha"),
        ("manifest/test/n_min", "n_min", "least units"),
        ("manifest/test/n_max", "n_max", "most units"),
        ("digest", "digest", "digest"),
    ],
    plot: None,
};
/// What was done otherwise than registered.
const DEVIATIONS: PickedTable = PickedTable {
    key: "deviations",
    title: "Deviations from the plan",
    kinds: &[Kind::ManifestDeviated],
    columns: &[
        ("rule_path", "rule", "rule"),
        ("outcome_seen", "seen", "outcome seen"),
        ("what", "what", "what"),
        ("why", "why", "why"),
        ("impact", "impact", "impact"),
    ],
    plot: None,
};

/// The report of a gate; of one that is registered and not open, of its plan.
///
/// # Errors
/// [`SessionError`]: it is not registered, its entries make another gate, or the log cannot be read.
pub fn document(source: &ReportSource<'_>, id: &ManifestId) -> Result<Document, SessionError> {
    let page = match Page::read(source.ledger, source.state, id) {
        Err(SessionError::Gate(error)) if matches!(*error, GateError::NotOpen(_)) => {
            return registered(source, id)?.ok_or(SessionError::Gate(error));
        }
        page => page?,
    };
    let facts = page.checked_facts()?;
    let chronicle = source.chronicle(facts.experiment.as_ref())?;
    let acts = acts(&chronicle, id, &facts);
    let (since, people): (Vec<&Act<'_>>, Vec<&Act<'_>>) = acts.iter().partition(|act| act.is_since);
    let mut out = Document::new(
        ReportKind::Gate,
        id.as_str(),
        head(&chronicle, &facts, page.missing()),
    );
    if let Some(experiment) = &facts.experiment {
        let value = Cell::text(experiment.as_str());
        out.facts.push(fact(
            vec![facts.opened_seq],
            "experiment",
            "Experiment",
            value,
        ));
    }
    let table = |key, title, of: &[&Act<'_>]| course::table(key, title, of, source.state);
    out.head.people = Some(table("people", "Acts in their order", &people));
    out.head.since = Some(table(
        "since",
        "What bears on it since it was decided",
        &since,
    ));
    out.head.rest.extend(why_amended(source.state, id));
    out.head.separation.extend(course::policy(source.state));
    out.parts = vec![
        plan(&chronicle, id, &page),
        looks(&facts, &page),
        ending(&facts, (&chronicle, source.state)),
        departures(&chronicle, &facts),
    ];
    let mut units = Chapter::new(
        "units",
        "Every unit",
        "Each observed unit in its order, with the entry that says it. A missing draw counts as the worst for the candidate.",
    );
    units.table_or(observed(&page, &facts), "no unit is observed");
    out.appendices.push(units);
    Ok(source.finish(out)?)
}

/// The report of a gate whose plan is registered and that nobody opened; `None` where no such plan is on record.
fn registered(
    source: &ReportSource<'_>,
    id: &ManifestId,
) -> Result<Option<Document>, SessionError> {
    let records = &source.state.fold::<Manifests>().by_id;
    let Some(record) = records.get(id) else {
        return Ok(None);
    };
    let manifest = record.versions.last().map(|version| &version.manifest);
    let Some(manifest) = manifest.filter(|manifest| manifest.test.is_some()) else {
        return Ok(None);
    };
    let chronicle = source.chronicle(record.experiment.as_ref())?;
    let digests = digests(&chronicle, id);
    let own = chronicle.entries.iter().filter_map(|entry| {
        let payload = &entry.event.payload;
        let verb = match payload {
            Payload::ManifestRegistered(_) if self::manifest(payload) == Some(id) => {
                "registered the plan"
            }
            Payload::ManifestAmended(_) if self::manifest(payload) == Some(id) => {
                "amended the plan"
            }
            Payload::ManifestCountersigned(said) if digests.contains(&said.digest) => {
                "countersigned the plan"
            }
            _ => return None,
        };
        Some(Act {
            entry,
            verb,
            subject: id.to_string(),
            said: String::new(),
            is_since: false,
        })
    });
    let acts: Vec<Act<'_>> = own.collect();
    let people: Vec<&Act<'_>> = acts.iter().collect();
    let claim = manifest.hypothesis.claim.as_str().trim_end_matches('.');
    let first = record.versions.first().map_or(0, |version| version.seq);
    let is_replaced = record.superseded_by.is_some();
    let head = DocumentHead {
        answer: "Not decided: it is registered, and nobody opened it. Nothing may be claimed."
            .to_owned(),
        people: Some(course::table(
            "people",
            "Acts in their order",
            &people,
            source.state,
        )),
        period: format!("Its plan was registered {}.", made::on(&chronicle, first)),
        rest: vec![
            format!("Its plan asks: {claim}."),
            if is_replaced {
                "Another plan replaced it.".to_owned()
            } else {
                "No unit is observed, and no look is recorded.".to_owned()
            },
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Gate, id.as_str(), head);
    let mut part = planned(&chronicle, id);
    part.tables.extend(arms(manifest, first));
    out.parts = vec![part];
    Ok(Some(source.finish(out)?))
}

/// What a plan that nobody opened compares.
fn arms(manifest: &Manifest, seq: u64) -> Option<Table> {
    let columns = [("role", "role"), ("id", "name"), ("digest", "digest")];
    let mut table = Table::new("arms", "What is compared", &columns);
    for arm in manifest.arms.iter().flatten() {
        let cells = vec![
            Cell::text(word(&arm.role)),
            Cell::text(arm.id.as_str()),
            Cell::text(arm.artifact_digest.to_hex()),
        ];
        table.row(seq, cells);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn head(chronicle: &Chronicle, facts: &GateFacts, missing: u64) -> DocumentHead {
    let asked = facts.plan.as_ref().map_or_else(
        || "The plan in force is not on record.".to_owned(),
        |plan| {
            let claim = plan.hypothesis.claim.as_str().trim_end_matches('.');
            format!("Its plan asked, before anything was observed: {claim}.")
        },
    );
    let mut evidence = format!(
        "It rests on {} and {}.",
        counted(facts.n, "observed unit", "observed units"),
        counted(facts.looks.len() as u64, "recorded look", "recorded looks"),
    );
    if missing > 0 {
        evidence.push_str(&format!(
            " {} missing: each counts as the worst for the candidate.",
            counted(missing, "draw is", "draws are")
        ));
    }
    let graded = facts
        .grade
        .filter(|grade| facts.n > 0 || *grade == Grade::Void);
    let grade = graded.map(|grade| format!("Its grade now is {}.", word(&grade).replace('_', " ")));
    let test = facts.plan.as_ref().and_then(|plan| plan.test.as_ref());
    let sides = test.map(sides);
    let not =
        "Nothing is claimed of other units, judges or times than those of the plan.".to_owned();
    let ended = facts.decided.map_or_else(
        || "It is not decided.".to_owned(),
        |of| format!("It was decided {}.", made::on(chronicle, of.seq)),
    );
    let planned = planned_on(chronicle, facts);
    let rest = [Some(asked), Some(evidence), sides, grade, Some(not)];
    DocumentHead {
        answer: facts.answer.text.clone(),
        people: None,
        period: format!(
            "{planned}It was opened {}. {ended}",
            made::on(chronicle, facts.opened_seq)
        ),
        rest: rest.into_iter().flatten().collect(),
        separation: Vec::new(),
        since: None,
    }
}

/// When the first version of the plan was registered.
fn planned_on(chronicle: &Chronicle, facts: &GateFacts) -> String {
    let mut entries = chronicle.entries.iter();
    let first = entries.find(|entry| manifest(&entry.event.payload) == Some(&facts.gate));
    first.map_or_else(String::new, |entry| {
        format!(
            "Its plan was registered {}. ",
            made::on(chronicle, entry.seq)
        )
    })
}

/// At which level the test and the intervals hold, and how many sides each has.
fn sides(test: &Test) -> String {
    let level = test.alpha_micro;
    if test.side == Side::TwoSided {
        return format!(
            "The test has two sides, and so have the intervals, at error rate {level}."
        );
    }
    format!(
        "The test has one side, at error rate {level}. An interval has two, together at that rate: the test may decide \
         while the interval holds the margin."
    )
}

/// The manifest that an entry of a plan is of.
fn manifest(payload: &Payload) -> Option<&ManifestId> {
    match payload {
        Payload::ManifestRegistered(said) => Some(&said.manifest.manifest),
        Payload::ManifestAmended(said) => Some(&said.manifest.manifest),
        _ => None,
    }
}

/// Digests of every version of the plan.
fn digests(chronicle: &Chronicle, id: &ManifestId) -> Vec<Digest> {
    chronicle
        .entries
        .iter()
        .filter(|entry| manifest(&entry.event.payload) == Some(id))
        .filter_map(|entry| match &entry.event.payload {
            Payload::ManifestRegistered(said) => Some(said.digest),
            Payload::ManifestAmended(said) => Some(said.digest),
            _ => None,
        })
        .collect()
}

fn acts<'c>(chronicle: &'c Chronicle, id: &ManifestId, facts: &GateFacts) -> Vec<Act<'c>> {
    let decided = facts.decided.map_or(u64::MAX, |of| of.seq);
    let digests = digests(chronicle, id);
    let promotions: Vec<u64> = facts.promotions.iter().map(|of| of.seq).collect();
    let revoked: Vec<u64> = facts
        .promotions
        .iter()
        .filter_map(|of| of.revoked_seq)
        .collect();
    let step = |entry: &ChronicleEntry| -> Option<(&'static str, String)> {
        let payload = &entry.event.payload;
        Some(match payload {
            Payload::ManifestRegistered(_) if manifest(payload) == Some(id) => {
                ("registered the plan", String::new())
            }
            Payload::ManifestAmended(said) if manifest(payload) == Some(id) => {
                ("amended the plan", said.reason.as_str().to_owned())
            }
            Payload::ManifestCountersigned(said) if digests.contains(&said.digest) => {
                ("countersigned the plan", String::new())
            }
            Payload::ManifestDeviated(said) if digests.contains(&said.digest) => {
                ("deviated", said.what.as_str().to_owned())
            }
            Payload::GateOpened(said) if said.gate == *id => ("opened", String::new()),
            Payload::GateDecided(said) if said.gate == *id => {
                ("decided", word(&said.outcome).replace('_', " "))
            }
            Payload::GateEstimated(said) if said.gate == *id => (
                "estimated beside it",
                counted(said.labels.value(), "label", "labels"),
            ),
            Payload::GateContinued(said) if said.parent == *id => {
                ("continued", said.gate.to_string())
            }
            Payload::PromotionIssued(said) if promotions.contains(&entry.seq) => {
                ("promoted", format!("grade {}", word(&said.grade)))
            }
            Payload::PromotionRevoked(said) if revoked.contains(&entry.seq) => {
                ("REVOKED the promotion", said.reason.as_str().to_owned())
            }
            Payload::JudgeDriftChecked(said) if entry.seq > decided => (
                "checked drift",
                format!("judge {}: {}", said.judge, word(&said.verdicts.whole())),
            ),
            Payload::KeyCompromised(said) => (
                "declared compromised",
                format!(
                    "{}: {}",
                    course::key_named(&said.key_id),
                    said.reason.as_str()
                ),
            ),
            _ => return None,
        })
    };
    let each = chronicle.entries.iter();
    let each = each.filter_map(|entry| Some((entry, step(entry)?)));
    each.map(|(entry, (verb, said))| act(entry, (verb, said), (id, decided)))
        .collect()
}

/// What was done, and whether it came of the decision at `decided`.
fn act<'c>(
    entry: &'c ChronicleEntry,
    (verb, said): (&'static str, String),
    (id, decided): (&ManifestId, u64),
) -> Act<'c> {
    let kind = entry.event.kind();
    let is_step = matches!(kind, Kind::PromotionIssued | Kind::GateEstimated);
    Act {
        entry,
        verb,
        subject: id.to_string(),
        said,
        is_since: entry.seq > decided && !is_step,
    }
}

fn plan(chronicle: &Chronicle, id: &ManifestId, page: &Page<'_>) -> Chapter {
    let mut part = planned(chronicle, id);
    let columns = [("what", "what"), ("says", "says")];
    let mut table = Table::new(
        "terms",
        "The plan in force, and how far it has come",
        &columns,
    );
    let own = chronicle.entries.iter();
    let own = own.filter(|entry| manifest(&entry.event.payload) == Some(id));
    let events: Vec<u64> = own.map(|entry| entry.seq).collect();
    for (what, says) in page.terms() {
        table.row_of(events.clone(), vec![Cell::text(what), Cell::text(says)]);
    }
    part.table_or(table, "no version of the plan is in force");
    part
}

fn planned(chronicle: &Chronicle, id: &ManifestId) -> Chapter {
    let mut part = Chapter::new(
        "plan",
        "What was planned",
        "The plan as it was registered before anybody looked, and each later version of it.",
    );
    let own = |entry: &ChronicleEntry| manifest(&entry.event.payload) == Some(id);
    part.table_or(
        PLAN.of(chronicle, own),
        "no version of the plan is in the range",
    );
    part
}

/// Every unit with its entry: the mean difference of its draws, and the draws that are missing.
fn observed(page: &Page<'_>, facts: &GateFacts) -> Table {
    let columns = [
        ("t", "order"),
        ("unit", "unit"),
        ("difference", "mean difference"),
        ("baseline_missing", "baseline draws missing"),
        ("candidate_missing", "candidate draws missing"),
    ];
    let mut table = Table::new("units", "Observed units, candidate less baseline", &columns);
    let plan = facts.plan.as_ref().and_then(|plan| plan.metric.as_ref());
    let draws = plan.map_or(1, |metric| metric.repeats.value().max(1));
    for (seq, said) in page.observed() {
        let first = said.readings.first();
        let mean = |one: &Reading| one.delta_micro.value() as f64 / 1e6 / draws as f64;
        let lacks = |of: fn(&Reading) -> usize| {
            Cell::count(said.readings.iter().map(|one| of(one) as u64).sum())
        };
        let cells = vec![
            said.t.into(),
            Cell::text(said.unit.as_str()),
            Cell::maybe(first, |one| Cell::number(mean(one))),
            lacks(|one| one.baseline_missing.as_ref().map_or(0, Vec::len)),
            lacks(|one| one.candidate_missing.as_ref().map_or(0, Vec::len)),
        ];
        table.row(*seq, cells);
    }
    table
}

fn looks(facts: &GateFacts, page: &Page<'_>) -> Chapter {
    let mut part = Chapter::new(
        "looks",
        "What was seen",
        "Every recorded look: the evidence, which decides, the p value that holds at any number of looks, and beside them the \
         interval of the effect.",
    );
    let observed = page.observed();
    let ends = [observed.first(), observed.last()];
    let mut events: Vec<u64> = ends.into_iter().flatten().map(|(seq, _)| *seq).collect();
    events.dedup();
    part.fact(
        events.clone(),
        "observed",
        "Units observed",
        Cell::count(facts.n),
    );
    part.fact(
        events,
        "missing",
        "Draws missing",
        Cell::count(page.missing()),
    );
    let columns = [
        ("n", "units"),
        ("standing", "standing"),
        ("log_e", "log of evidence"),
        ("p", "p"),
        ("effect", "effect"),
    ];
    let mut table = Table::new("looks", "Recorded looks", &columns);
    for of in &facts.looks {
        let look = &of.look;
        let real = |micro: i64| Finite::new(micro as f64 / 1e6);
        let (low, high) = (look.cs_lo_micro.value(), look.cs_hi_micro.value());
        let effect = real(low).zip(real(high));
        table.row(
            of.seq,
            vec![
                Cell::Count(look.n),
                Cell::text(look.standing.as_str().replace('_', " ")),
                Cell::Number(look.log_e),
                Cell::number(look.p.value()),
                Cell::maybe(effect, |(low, high)| Cell::Interval(low, high)),
            ],
        );
    }
    if table.rows.len() > 1 {
        table.plot = Some(Plot::Points {
            x: (0, "units"),
            y: "log of the evidence",
            line: Some((2, "evidence")),
            dots: (2, None, "looks"),
            hollow: None,
            weight: 0,
            reference: None,
        });
    }
    part.table_or(table, "nobody looked yet");
    part
}

fn ending(facts: &GateFacts, (chronicle, state): (&Chronicle, &State)) -> Chapter {
    let mut part = Chapter::new(
        "ending",
        "How it ended",
        "The decision, what it rests on, an estimate beside it, and what was promoted on it.",
    );
    match facts.decided {
        None => part.lacks("a decision", "the gate is not decided"),
        Some(of) => {
            let outcome = Cell::text(word(&of.outcome).replace('_', " "));
            part.fact(vec![of.seq], "outcome", "Outcome", outcome);
            part.fact(vec![of.seq], "n", "Units by then", Cell::count(of.n));
            part.fact(
                vec![of.seq],
                "class",
                "The test is",
                Cell::text(word(&of.class)),
            );
        }
    }
    if let Some(of) = facts.estimated {
        let real = |micro: i64| Finite::new(micro as f64 / 1e6);
        let effect = real(of.cs_lo).zip(real(of.cs_hi));
        let effect = Cell::maybe(effect, |(low, high)| Cell::Interval(low, high));
        part.fact(
            vec![of.seq],
            "estimate",
            "Effect by labels, beside it",
            effect,
        );
        part.fact(
            vec![of.seq],
            "labels",
            "Labels of it",
            Cell::count(of.labels),
        );
    }
    for of in &facts.promotions {
        let standing = match (of.revoked_seq, facts.grade) {
            (Some(seq), _) => format!("revoked at seq {seq}"),
            (None, Some(Grade::Void)) => {
                "on record, and VOID: the grade of its gate is void now, so nothing may rest on it"
                    .to_owned()
            }
            (None, Some(Grade::Exploratory)) => {
                "on record, and its gate is exploratory now: nothing may be claimed by it"
                    .to_owned()
            }
            (None, None) => {
                "on record, and its gate has no grade: nothing may rest on it".to_owned()
            }
            (None, Some(_)) => until(chronicle, of.seq, state),
        };
        let events = [Some(of.seq), of.revoked_seq]
            .into_iter()
            .flatten()
            .collect();
        part.fact(events, "promotion", "Promotion", Cell::text(standing));
    }
    if facts.promotions.is_empty() {
        part.lacks("a promotion", "nothing was promoted on this gate");
    }
    part
}

/// How long a promotion stands; one that cannot be read again is not said to stand.
fn until(chronicle: &Chronicle, seq: u64, state: &State) -> String {
    let mut all = chronicle.of(Kind::PromotionIssued);
    let found = all.find(|entry| entry.seq == seq);
    let said = found.and_then(|entry| entry.event.payload.said::<PromotionIssued>());
    match (said.map(|said| said.expires_at), state.keyring.recorded_at) {
        (Some(None), _) => "stands".to_owned(),
        (Some(Some(at)), Some(now)) if now < at => format!("stands until {at}"),
        (Some(Some(at)), Some(_)) => format!("expired at {at}: it may not be relied on"),
        _ => "on record; whether it stands is NOT CHECKED".to_owned(),
    }
}

fn departures(chronicle: &Chronicle, facts: &GateFacts) -> Chapter {
    let mut part = Chapter::new(
        "departures",
        "What was done otherwise",
        "Deviations that were recorded, and whether an outcome had been seen by then.",
    );
    let own: Vec<u64> = facts.deviations.iter().map(|of| of.seq).collect();
    let table = DEVIATIONS.of(chronicle, |entry| own.contains(&entry.seq));
    part.table_or(
        table,
        "none was recorded: a deviation that nobody recorded is not shown",
    );
    part
}
