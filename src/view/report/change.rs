//! The change record of a prompt: from the proposal to what runs, by whom, and whether these were different people.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::PatchId;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::release::PromptCommitted;
use crate::event::payload::rubric::PatchProposed;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::deployments::Deployments;
use crate::projection::rubrics::RubricRegistration;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::view::iterate::gates::CriterionNumber;
use crate::view::iterate::gates::numbers;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::iteration;
use crate::view::report::made::ReportSource;
use crate::view::report::made::fact;
use crate::view::report::picked::day;
use crate::workflow::bundle::decided::leaf_change;
use crate::workflow::bundle::gates;
use crate::workflow::predicate;

/// The change record of a version.
///
/// # Errors
/// [`SessionError`].
pub fn document(
    source: &ReportSource<'_>,
    experiment: &ExperimentId,
    version: &RubricRegistration,
) -> Result<Document, SessionError> {
    let chronicle = source.chronicle(Some(experiment))?;
    let acts = course::acts(&chronicle);
    let commit = chronicle.of(Kind::PromptCommitted).find_map(|entry| {
        let said: &PromptCommitted = entry.event.payload.said()?;
        (entry.seq == version.seq).then_some(said)
    });
    let subject = commit.map_or_else(
        || format!("version {}", version.version),
        |said| said.patch.to_string(),
    );
    let own: Vec<&Act<'_>> = acts.iter().filter(|act| act.subject == subject).collect();
    let (mut since, people): (Vec<&Act<'_>>, Vec<&Act<'_>>) =
        own.iter().partition(|act| act.is_since);
    since.extend(others_since(&acts, &own));
    since.sort_by_key(|act| act.entry.seq);
    let mut head = head(experiment, version, commit.is_some(), &own);
    if let Some(standing) = standing(source.state, experiment, version) {
        head.answer = format!("{} {standing}", head.answer);
    }
    let proposal = commit.and_then(|said| proposed(&chronicle, &said.patch));
    if let Some(Payload::PatchProposed(said)) = proposal.map(|entry| &entry.event.payload) {
        let answer = iteration::answer(source, &said.iteration)?;
        if answer.may_be_claimed {
            head.rest.insert(1, answer.text);
        } else {
            head.answer = format!("{} {}", answer.text, head.answer);
        }
    }
    head.separation
        .extend(course::separation(&subject, &own, source.state));
    head.separation.extend(course::policy(source.state));
    head.people = Some(course::table(
        "people",
        "Acts in their order",
        &people,
        source.state,
    ));
    head.since = Some(course::table(
        "since",
        "What came of it",
        &since,
        source.state,
    ));
    let title = format!("{experiment}@{}", version.version);
    let mut out = Document::new(ReportKind::Change, title, head);
    let digest = Cell::Digest(version.hash);
    out.facts
        .push(fact(vec![version.seq], "rubric", "Rubric", digest));
    if let Some(said) = commit {
        out.facts.push(fact(
            vec![version.seq],
            "prompt",
            "Prompt",
            Cell::Digest(said.prompt_hash),
        ));
        out.facts.push(fact(
            vec![version.seq],
            "patch",
            "Patch",
            Cell::text(said.patch.as_str()),
        ));
    }
    out.signatures = course::signed_lines(&own, source.state);
    out.parts = parts(&chronicle, commit, (&own, source.state));
    out.appendices = appendix(&chronicle, commit).into_iter().collect();
    Ok(source.finish(out)?)
}

/// Deployments and rollbacks of other versions since this one was first deployed: they take its place, or give it back.
fn others_since<'a, 'c>(acts: &'a [Act<'c>], own: &[&Act<'c>]) -> Vec<&'a Act<'c>> {
    let is_deployed = |act: &&&Act<'_>| act.entry.event.kind() == Kind::DeploymentActivated;
    let first = own.iter().find(is_deployed).map(|act| act.entry.seq);
    let moves = [Kind::DeploymentActivated, Kind::DeploymentRolledBack];
    let others = acts.iter().filter(|act| {
        let is_later = first.is_some_and(|first| act.entry.seq > first);
        let is_own = own.iter().any(|of| of.entry.seq == act.entry.seq);
        is_later && !is_own && moves.contains(&act.entry.event.kind())
    });
    others.collect()
}

/// Whether a version runs at the end of what was read; `None` where nothing of the experiment was ever deployed.
fn standing(
    state: &State,
    experiment: &ExperimentId,
    version: &RubricRegistration,
) -> Option<String> {
    let of = state.fold::<Deployments>().by_experiment.get(experiment)?;
    let Some(running) = of.running() else {
        return (!of.deployments.is_empty()).then(|| "Nothing runs now.".to_owned());
    };
    let runs = &running.versions.rubric_version;
    if *runs == version.version {
        return Some("It runs now.".to_owned());
    }
    Some(format!(
        "It does not run now: version {runs} does, deployed at seq {}.",
        running.seq
    ))
}

fn head(
    experiment: &ExperimentId,
    version: &RubricRegistration,
    is_committed: bool,
    own: &[&Act<'_>],
) -> DocumentHead {
    let has = |kind: Kind| own.iter().rev().find(|act| act.entry.event.kind() == kind);
    let name = format!("Version {} of {experiment}", version.version);
    let mut answer = match (has(Kind::DeploymentActivated), is_committed) {
        (Some(act), _) => format!(
            "{name} was deployed on {}, at seq {}.",
            day(act.entry),
            act.entry.seq
        ),
        (None, true) => format!("{name} is committed, and was never deployed."),
        (None, false) => format!("{name} is registered, and was never deployed."),
    };
    if let Some(back) = course::rolled_back(own) {
        answer.push(' ');
        answer.push_str(&back);
    }
    let first = own.first().map_or_else(String::new, |act| {
        format!(
            "The first entry about it is of {}, at seq {}.",
            day(act.entry),
            act.entry.seq
        )
    });
    let rest = vec![
        "This record says who proposed, reviewed, approved, committed and deployed the change, and what came of it.".to_owned(),
        if is_committed {
            "It rests on the criteria and signatures below.".to_owned()
        } else {
            "It is a registered version: no patch was accepted for it, and no criterion judged it.".to_owned()
        },
        "Nothing is claimed of how it does on other rows than those that the criteria read.".to_owned(),
    ];
    DocumentHead {
        answer,
        people: None,
        period: first,
        rest,
        separation: Vec::new(),
        since: None,
    }
}

fn parts(
    chronicle: &Chronicle,
    commit: Option<&PromptCommitted>,
    (own, state): (&[&Act<'_>], &State),
) -> Vec<Chapter> {
    let mut changed = Chapter::new(
        "changed",
        "What changed",
        "Each leaf of the rubric that the patch changes.",
    );
    let patch = commit.map(|said| &said.patch);
    let proposal = patch.and_then(|patch| proposed(chronicle, patch));
    match proposal {
        Some(entry) => changed.table_or(leaves(entry), "the patch changes no leaf"),
        None => changed.lacks("changed leaves", "this version comes of no patch"),
    }
    let mut criteria = Chapter::new(
        "criteria",
        "What judged it",
        "Criteria P0 to P10 of the candidate, on dev and on confirm. The binding verdict is that of the profile which was \
         registered; both profiles stand beside it. An appendix has the numbers.",
    );
    let ids = commit.map_or(&[][..], |said| &said.gates);
    criteria.table_or(judged(chronicle, ids), "no criterion judged this version");
    let mut signed = Chapter::new(
        "signatures",
        "Who signed for it",
        "Each signature has the printed name, the date and the meaning that the person gave, and the holder of the key.",
    );
    let table = course::signatures(own, state);
    signed.table_or(table, "nobody approved or refused it on record");
    vec![changed, criteria, signed]
}

/// What the criteria read, where any judged it.
fn appendix(chronicle: &Chronicle, commit: Option<&PromptCommitted>) -> Option<Chapter> {
    let figures = measured(chronicle, &commit?.gates);
    let mut part = Chapter::new(
        "numbers",
        "Numbers of the criteria",
        "Each number that a criterion read, beside what it is held to; one that is held to nothing decides nothing.",
    );
    let is_there = !figures.rows.is_empty();
    part.tables.push(figures);
    is_there.then_some(part)
}

/// Criteria of the candidate, in the order of their entries.
fn criteria<'c>(
    chronicle: &'c Chronicle,
    ids: &'c [EventId],
) -> impl Iterator<Item = (u64, &'c GateEvaluated)> {
    let entries = chronicle.of(Kind::GateEvaluated);
    let own = entries.filter(|entry| ids.contains(&entry.event.id));
    own.filter_map(|entry| Some((entry.seq, entry.event.payload.said()?)))
}

/// What a criterion is called, what it asks, and on which rows.
fn named(said: &GateEvaluated) -> [Cell; 3] {
    [
        Cell::text(said.gate.as_str().to_uppercase()),
        Cell::text(predicate::gate(said.gate).asks),
        Cell::text(said.split.as_str()),
    ]
}

/// What the criteria said of the candidate, under each profile.
fn judged(chronicle: &Chronicle, ids: &[EventId]) -> Table {
    let columns = [
        ("gate", "criterion"),
        ("asks", "asks"),
        ("split", "on"),
        ("verdict", "binding verdict"),
        ("recommended", "recommended"),
        ("literal", "literal"),
    ];
    let mut table = Table::new("criteria", "Criteria of the candidate", &columns);
    for (seq, said) in criteria(chronicle, ids) {
        let mut row = named(said).to_vec();
        let verdicts = [
            said.verdicts.under(said.thresholds.profile),
            said.verdicts.recommended,
            said.verdicts.literal,
        ];
        row.extend(verdicts.map(Cell::Verdict));
        table.row(seq, row);
    }
    table
}

/// What the criteria read: a row for each number beside what it is held to.
fn measured(chronicle: &Chronicle, ids: &[EventId]) -> Table {
    let columns = [
        ("gate", "criterion"),
        ("asks", "asks"),
        ("split", "on"),
        ("number", "number"),
        ("value", "value"),
        ("held", "held to"),
    ];
    let mut table = Table::new("numbers", "Numbers beside what they are held to", &columns);
    for (seq, said) in criteria(chronicle, ids) {
        for number in numbers(said) {
            let mut row = named(said).to_vec();
            row.extend(cells(number));
            table.row(seq, row);
        }
    }
    table
}

fn cells(of: CriterionNumber) -> [Cell; 3] {
    let held = match of.held.as_str() {
        "" => Cell::Absent,
        held => Cell::text(held),
    };
    [
        Cell::text(of.name),
        of.value.map_or(Cell::Absent, gates::value),
        held,
    ]
}

fn proposed<'c>(chronicle: &'c Chronicle, patch: &PatchId) -> Option<&'c ChronicleEntry> {
    chronicle
        .of(Kind::PatchProposed)
        .find(|entry| match &entry.event.payload {
            Payload::PatchProposed(said) => said.patch == *patch,
            _ => false,
        })
}

fn leaves(entry: &ChronicleEntry) -> Table {
    let columns = [("path", "leaf"), ("op", "change"), ("value", "value")];
    let mut table = Table::new("leaves", "Changed leaves", &columns);
    let said = entry.event.payload.said::<PatchProposed>();
    for change in said.into_iter().flat_map(|said| &said.diff) {
        let (op, value) = leaf_change(change);
        let cells = [change.path.as_str(), op, &value];
        table.row(entry.seq, cells.map(Cell::text).to_vec());
    }
    table
}
