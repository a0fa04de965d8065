//! The report of a gate: what was planned, what was looked at and when, how it ended, and who stood behind it.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::ground::digest::Digest;
use crate::num::Finite;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::view::gate::facts::GateFacts;
use crate::view::gate::page::Page;
use crate::view::report::course;
use crate::view::report::course::Act;
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

/// The report of a gate.
///
/// # Errors
/// [`SessionError`]: it is not open, its entries make another gate, or the log cannot be read.
pub fn document(source: &ReportSource<'_>, id: &ManifestId) -> Result<Document, SessionError> {
    let facts = Page::read(source.ledger, source.state, id)?.checked_facts()?;
    let chronicle = source.chronicle(facts.experiment.as_ref())?;
    let acts = acts(&chronicle, id, &facts);
    let (since, people): (Vec<&Act<'_>>, Vec<&Act<'_>>) = acts.iter().partition(|act| act.is_since);
    let mut out = Document::new(ReportKind::Gate, id.as_str(), head(&facts));
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
    out.head.separation.extend(course::policy(source.state));
    out.parts = vec![
        plan(&chronicle, id),
        looks(&facts),
        ending(&facts),
        departures(&chronicle, &facts),
    ];
    Ok(source.finish(out)?)
}

fn head(facts: &GateFacts) -> DocumentHead {
    let asked = facts.plan.as_ref().map_or_else(
        || "The plan in force is not on record.".to_owned(),
        |plan| {
            let claim = plan.hypothesis.claim.as_str().trim_end_matches('.');
            format!("Asked was, as registered before: {claim}.")
        },
    );
    let evidence = format!(
        "It rests on {} and {}.",
        counted(facts.n, "observed unit", "observed units"),
        counted(facts.looks.len() as u64, "recorded look", "recorded looks")
    );
    let grade = facts
        .grade
        .map(|grade| format!("Its grade now is {}.", word(&grade)));
    let not =
        "Nothing is claimed of other units, judges or times than those of the plan.".to_owned();
    let ended = facts.decided.map_or_else(
        || "It is not decided.".to_owned(),
        |of| format!("It was decided at seq {}.", of.seq),
    );
    let rest = [Some(asked), Some(evidence), grade, Some(not)];
    DocumentHead {
        answer: facts.answer.text.clone(),
        people: None,
        period: format!("It was opened at seq {}. {ended}", facts.opened_seq),
        rest: rest.into_iter().flatten().collect(),
        separation: Vec::new(),
        since: None,
    }
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
            Payload::GateDecided(said) if said.gate == *id => ("decided", word(&said.outcome)),
            Payload::GateEstimated(said) if said.gate == *id => {
                ("estimated beside it", format!("{} labels", said.labels))
            }
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
                format!("key {}: {}", said.key_id, said.reason.as_str()),
            ),
            _ => return None,
        })
    };
    let entries = chronicle.entries.iter();
    let found = entries.filter_map(|entry| {
        let (verb, said) = step(entry)?;
        let is_step = matches!(
            entry.event.kind(),
            Kind::PromotionIssued | Kind::GateEstimated
        );
        Some(Act {
            entry,
            verb,
            subject: id.to_string(),
            said,
            is_since: entry.seq > decided && !is_step,
        })
    });
    found.collect()
}

fn plan(chronicle: &Chronicle, id: &ManifestId) -> Chapter {
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

fn looks(facts: &GateFacts) -> Chapter {
    let mut part = Chapter::new(
        "looks",
        "What was seen",
        "Every recorded look: the evidence, the p value that holds at any number of looks, and the interval of the effect.",
    );
    part.fact(
        vec![
            facts.opened_seq,
            facts.decided.map_or(facts.opened_seq, |of| of.seq),
        ],
        "observed",
        "Units observed",
        Cell::count(facts.n),
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

fn ending(facts: &GateFacts) -> Chapter {
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
        let standing = of.revoked_seq.map_or_else(
            || "stands".to_owned(),
            |seq| format!("revoked at seq {seq}"),
        );
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
