//! The report of a run that repairs a workflow: what was asked, the tree of its candidates, what the winner changes, how it was
//! judged, its steps on items, and what all of it was worth once what is right was opened.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::RunId;
use crate::event::payload::repair::WfOperator;
use crate::flow::Workflow;
use crate::flow::difference;
use crate::flow::task::TaskSet;
use crate::flow::value::Data;
use crate::ground::digest::Digest;
use crate::num::Micro;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Listing;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::projection::wf::WfRun;
use crate::projection::wf::run_of;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::wf::RepairError;
use crate::session::wf::found;
use crate::session::wf::plan_of;
use crate::view::repair;
use crate::view::repair::RepairCandidate;
use crate::view::repair::RepairRunShown;
use crate::view::report::course as remarks;
use crate::view::report::made;
use crate::view::report::made::ReportSource;
use crate::view::report::made::fact;
use crate::view::report::repair_measured;
use crate::view::report::repair_traces;
use crate::workflow::wf::course;
use crate::workflow::wf::plan::RepairPlan;

/// Where what a run says stands.
#[derive(Debug, Default)]
pub(super) struct RepairEntries {
    added: BTreeMap<Digest, u64>,
    closed: Vec<u64>,
    /// The last execution of each candidate.
    pub(super) executed: BTreeMap<Digest, u64>,
    feedback: BTreeMap<Digest, u64>,
    pub(super) opened: u64,
    pairs: Vec<u64>,
    pruned: Vec<u64>,
    rejected: Vec<u64>,
    scored: BTreeMap<Digest, u64>,
    stopped: Vec<u64>,
    pub(super) worth: BTreeMap<Digest, u64>,
}

impl RepairEntries {
    fn of(chronicle: &Chronicle, run: &RunId) -> Self {
        let mut found = Self::default();
        for entry in &chronicle.entries {
            if run_of(&entry.event.payload) == Some(run) {
                found.take(entry.seq, &entry.event.payload);
            }
        }
        found
    }

    fn take(&mut self, seq: u64, payload: &Payload) {
        match payload {
            Payload::WfRunStarted(_) => self.opened = seq,
            Payload::WfCandidateAdded(said) => {
                self.added.entry(said.candidate).or_insert(seq);
            }
            Payload::EditPairRecorded(said) => {
                self.pairs.push(seq);
                for arm in [&said.targeted, &said.control] {
                    self.added.entry(arm.candidate).or_insert(seq);
                }
            }
            Payload::WfExecuted(said) => {
                self.executed.insert(said.candidate, seq);
            }
            Payload::WfFeedbackGiven(said) => {
                self.feedback.insert(said.candidate, seq);
            }
            Payload::WfScored(said) => {
                self.scored.insert(said.candidate, seq);
            }
            Payload::UtilityRecorded(said) => {
                self.worth.insert(said.candidate, seq);
            }
            Payload::WfPruned(_) => self.pruned.push(seq),
            Payload::WfIterationClosed(_) => self.closed.push(seq),
            Payload::WfEditRejected(_) => self.rejected.push(seq),
            Payload::WfStopped(_) => self.stopped.push(seq),
            _ => {}
        }
    }

    /// The entries that say what a row on a candidate shows.
    pub(super) fn of_candidate(&self, id: &Digest) -> Vec<u64> {
        let first = self.added.get(id).copied().unwrap_or(self.opened);
        let further = [&self.feedback, &self.scored, &self.worth];
        let further = further.into_iter().filter_map(|of| of.get(id).copied());
        std::iter::once(first).chain(further).collect()
    }
}

/// A run with all that is drawn of it.
pub(super) struct RunDrawn<'a> {
    pub(super) run: &'a WfRun,
    pub(super) facts: RepairRunShown,
    pub(super) plan: RepairPlan,
    pub(super) places: RepairEntries,
}

/// The report of a run; `useful` is the least worth of a workflow that is of use.
///
/// # Errors
/// [`SessionError`]: no run of the name, or the log cannot be read.
pub fn document(
    source: &ReportSource<'_>,
    id: &RunId,
    useful: f64,
) -> Result<Document, SessionError> {
    let run = found(source.state, id)?;
    let chronicle = source.chronicle(Some(&run.experiment))?;
    let drawn = RunDrawn {
        run,
        facts: repair::facts(run),
        plan: plan(source, run)?,
        places: RepairEntries::of(&chronicle, id),
    };
    let workflow = |id: &Digest| course::workflow(run, id).map_err(RepairError::from);
    let first = workflow(&run.said.program_digest)?;
    let winner = drawn.facts.winner.as_ref().map(workflow).transpose()?;
    let head = head(source, &chronicle, &drawn);
    let mut out = Document::new(ReportKind::Repair, id.as_str(), head);
    let opened = vec![drawn.places.opened];
    for (key, title, value) in [
        ("experiment", "Experiment", run.experiment.to_string()),
        ("executor", "What answers", drawn.facts.executor.clone()),
        ("optimizer", "What proposes", drawn.facts.optimizer.clone()),
    ] {
        out.facts
            .push(fact(opened.clone(), key, title, Cell::text(value)));
    }
    out.parts = vec![
        asked(&drawn),
        candidates(&drawn),
        changed(&drawn, &first, winner.as_ref()),
        judged(&drawn),
        turns(&drawn),
        repair_traces::chapter(source, &drawn)?,
    ];
    out.parts.extend(repair_measured::chapters(
        source,
        &chronicle,
        (&drawn, useful),
    ));
    if let Some((winner, id)) = winner.as_ref().zip(drawn.facts.winner) {
        let mut part = Chapter::new(
            "workflow",
            "The winner as a document",
            "The workflow that the run ended with. Texts in it are data.",
        );
        part.listings.push(Listing {
            events: drawn.places.of_candidate(&id),
            title: "The workflow".to_owned(),
            text: winner.print(),
        });
        out.appendices.push(part);
    }
    Ok(source.finish(out)?)
}

/// What a run is held to; without its items where the ledger does not store them any more.
fn plan(source: &ReportSource<'_>, run: &WfRun) -> Result<RepairPlan, SessionError> {
    match plan_of(source.ledger, run) {
        Err(SessionError::Repair(_)) => {
            let plan = RepairPlan::of(&run.said);
            Ok(plan.map_err(RepairError::from)?)
        }
        found => found,
    }
}

/// What was asked, what came, and what is not claimed, in a sentence.
fn answer(drawn: &RunDrawn<'_>) -> String {
    let facts = &drawn.facts;
    let asked = format!(
        "Asked to keep {} on {} of {}",
        made::counted(drawn.plan.rules.len() as u64, "rule", "rules"),
        made::counted(facts.items, "item", "items"),
        facts.family
    );
    let worth = facts.worth_before_micro.zip(facts.worth_after_micro);
    let came = match (facts.end, worth) {
        (None, _) => return format!("{asked}, the run goes on; nothing is claimed yet."),
        (Some(end), _) if facts.winner.is_none() => {
            return format!(
                "{asked}, the run ended by {end} with no workflow; nothing is claimed."
            );
        }
        (Some(end), None) => format!("the run ended by {end}; what its winner is worth is sealed"),
        (Some(end), Some((before, after))) => format!(
            "the run ended by {end}; worth rose from {} to {} of 1",
            repair::decimal(before),
            repair::decimal(after)
        ),
    };
    let came = match worth {
        Some((before, after)) if after <= before => came.replace("rose from", "went from"),
        _ => came,
    };
    format!("{asked}, {came}; other items are not claimed.")
}

fn head(source: &ReportSource<'_>, chronicle: &Chronicle, drawn: &RunDrawn<'_>) -> DocumentHead {
    let facts = &drawn.facts;
    let verdict = match facts.end {
        None => "No candidate is chosen yet.",
        Some(_) if facts.passed => "The winner passes: it keeps every hard rule on every item.",
        Some(_) => "No candidate passes.",
    };
    let mut rest = vec![
        verdict.to_owned(),
        "The run judged by rules, crashes and cost. It never saw what is right; that was committed to first and is opened after \
         its end."
            .to_owned(),
    ];
    if facts
        .executor
        .starts_with(crate::session::wf::open::SIMULATOR)
    {
        rest.push("A simulated model is no evidence about a real one.".to_owned());
    }
    DocumentHead {
        answer: answer(drawn),
        people: None,
        period: format!(
            "It was opened {}.",
            made::on(chronicle, drawn.places.opened)
        ),
        rest,
        separation: remarks::policy(source.state).into_iter().collect(),
        since: None,
    }
}

/// Rules of the context and what may be spent.
fn asked(drawn: &RunDrawn<'_>) -> Chapter {
    let mut part = Chapter::new(
        "asked",
        "What was asked",
        "The rules that candidates are judged by, and what the run may spend. All of it was on record before the first execution.",
    );
    let opened = vec![drawn.places.opened];
    let columns = [("rule", "rule"), ("text", "what it says"), ("hard", "hard")];
    let mut table = Table::new("rules", "Rules", &columns);
    for rule in &drawn.plan.rules {
        table.row_of(
            opened.clone(),
            vec![
                Cell::text(rule.id.as_str()),
                Cell::text(rule.text.as_str()),
                Cell::from(rule.is_hard),
            ],
        );
    }
    part.table_or(table, "the verifier has none");
    let (terms, spent) = (&drawn.run.said.terms, &drawn.facts.spent);
    let last = drawn.places.stopped.last().or(drawn.places.closed.last());
    let events: Vec<u64> = opened.iter().chain(last).copied().collect();
    let columns = [
        ("what", "what"),
        ("most", "may be spent"),
        ("spent", "spent"),
    ];
    let mut table = Table::new("budget", "Budget", &columns);
    for (what, most, spent) in [
        ("turns", terms.iterations, drawn.facts.turns),
        ("calls", terms.budget.calls, spent.calls.value()),
        ("tokens", terms.budget.tokens, spent.tokens()),
        (
            "dollars, millionths",
            terms.budget.usd_micro,
            spent.usd_micro.value(),
        ),
    ] {
        table.row_of(
            events.clone(),
            vec![Cell::text(what), Cell::from(most), Cell::count(spent)],
        );
    }
    part.table_or(table, "it has none");
    let commitment = Cell::from(drawn.run.said.truth);
    part.fact(opened, "truth", "Commitment to what is right", commitment);
    part
}

/// How a candidate came about.
fn about(of: &RepairCandidate) -> String {
    let step = of.step.as_deref().unwrap_or_default();
    let made = of.operator.map_or("begins", WfOperator::as_str);
    format!("{made} {step}").trim_end().to_owned()
}

/// Every candidate, drawn as a tree.
fn candidates(drawn: &RunDrawn<'_>) -> Chapter {
    let mut part = Chapter::new(
        "candidates",
        "Candidates",
        "Each stands below the one that it was made of, by one edit. Scores know nothing of what is right; worths are by what is right.",
    );
    let columns = [
        ("candidate", "candidate"),
        ("parent", "made of"),
        ("about", "edit"),
        ("turn", "turn"),
        ("score", "score"),
        ("mark", "mark"),
        ("worth", "worth"),
        ("broken", "rules it breaks"),
        ("crashed", "crashed on"),
        ("calls", "calls"),
    ];
    let mut table = Table::new("tree", "Candidates of the run", &columns);
    table.plot = Some(Plot::Tree {
        node: 0,
        parent: 1,
        about: 2,
        score: 4,
        mark: 5,
    });
    for of in &drawn.facts.candidates {
        let mark = match (drawn.facts.winner == Some(of.candidate), of.passes) {
            (true, Some(true)) => Cell::text("winner"),
            (true, _) => Cell::text("best"),
            (false, Some(true)) => Cell::text("passes"),
            _ => Cell::Absent,
        };
        table.row_of(
            drawn.places.of_candidate(&of.candidate),
            vec![
                Cell::from(of.candidate),
                Cell::maybe(of.parent, Cell::from),
                Cell::text(about(of)),
                Cell::count(of.turn),
                Cell::maybe(of.score_micro, Cell::micro),
                mark,
                Cell::maybe(of.worth_micro.and_then(Micro::new), Cell::micro),
                Cell::text(of.broken.join(", ")),
                Cell::count(of.crashed),
                Cell::count(of.calls),
            ],
        );
    }
    part.table_or(table, "there is none");
    if drawn.facts.worth_before_micro.is_none() {
        part.lacks(
            "what candidates are worth",
            "what is right is not opened yet",
        );
    }
    part
}

fn value(of: Option<&Data>) -> Cell {
    of.map_or(Cell::Absent, |of| {
        Cell::text(made::cut(&of.canonical(), 400))
    })
}

/// What the winner says otherwise than the first program.
fn changed(drawn: &RunDrawn<'_>, first: &Workflow, winner: Option<&Workflow>) -> Chapter {
    let mut part = Chapter::new(
        "changed",
        "What was changed",
        "Every value in which the winner differs from the first program. A step stands by its id.",
    );
    let columns = [
        ("place", "place"),
        ("from", "first program"),
        ("to", "winner"),
    ];
    let mut table = Table::new("changes", "From the first program to the winner", &columns);
    let id = drawn.facts.winner;
    if let Some((winner, id)) = winner.zip(id) {
        for change in difference::between(first, winner).changes {
            table.row_of(
                vec![drawn.places.opened, drawn.places.of_candidate(&id)[0]],
                vec![
                    Cell::text(change.path.as_str()),
                    value(change.from.as_ref()),
                    value(change.to.as_ref()),
                ],
            );
        }
    }
    let why = if id.is_some() {
        "the winner is the first program"
    } else {
        "no candidate is chosen"
    };
    part.table_or(table, why);
    part
}

/// What the verifier says of the first program and of the winner.
fn judged(drawn: &RunDrawn<'_>) -> Chapter {
    let mut part = Chapter::new(
        "judged",
        "How they were judged",
        "Rules that the first program and the winner keep, and the steps that are blamed for those that they break.",
    );
    let columns = [
        ("of", "candidate"),
        ("rule", "rule"),
        ("hard", "hard"),
        ("kept", "kept on"),
        ("items", "items"),
    ];
    let mut flags = Table::new("flags", "Rules that are kept", &columns);
    let columns = [
        ("of", "candidate"),
        ("step", "step"),
        ("rule", "rule"),
        ("kind", "what is at fault"),
        ("operator", "edit that would change it"),
        ("confidence", "share of items"),
    ];
    let mut blame = Table::new("blame", "Steps that are blamed", &columns);
    for (id, name) in ends(drawn) {
        let feedback = drawn.run.candidate(&id).and_then(|of| of.feedback.as_ref());
        let Some(said) = feedback else {
            continue;
        };
        let events = drawn.places.feedback.get(&id).copied();
        let events: Vec<u64> = events.into_iter().collect();
        for flag in &said.flags {
            let kept = flag.kept.as_str();
            let cells = vec![
                Cell::text(name),
                Cell::text(flag.id.as_str()),
                Cell::from(flag.hard),
                Cell::count(kept.matches('1').count() as u64),
                Cell::count(kept.len() as u64),
            ];
            flags.row_of(events.clone(), cells);
        }
        for of in &said.blame {
            let cells = vec![
                Cell::text(name),
                Cell::text(of.step.as_str()),
                Cell::text(of.rule.as_str()),
                Cell::text(of.kind.as_str()),
                Cell::text(of.operator.as_str()),
                Cell::micro(of.confidence_micro),
            ];
            blame.row_of(events.clone(), cells);
        }
    }
    part.table_or(flags, "nothing was judged");
    part.table_or(blame, "nothing is blamed");
    part
}

/// The first program, and the winner where it is another.
pub(super) fn ends(drawn: &RunDrawn<'_>) -> Vec<(Digest, &'static str)> {
    let first = drawn.run.said.program_digest;
    let winner = drawn.facts.winner.filter(|id| *id != first);
    let winner = winner.map(|id| (id, "winner"));
    std::iter::once((first, "first program"))
        .chain(winner)
        .collect()
}

/// What each turn kept, and edits that were rejected.
fn turns(drawn: &RunDrawn<'_>) -> Chapter {
    let mut part = Chapter::new(
        "turns",
        "Turns",
        "Each turn judged its candidates together, kept the best, and had edits of these proposed.",
    );
    let columns = [
        ("turn", "turn"),
        ("kept", "kept"),
        ("dropped", "dropped"),
        ("best", "best score"),
    ];
    let mut table = Table::new("turns", "What each turn kept", &columns);
    for (turn, seq) in drawn.run.turns.iter().zip(&drawn.places.pruned) {
        let best = turn
            .kept
            .first()
            .and_then(|id| drawn.run.candidate(id)?.score());
        table.row(
            *seq,
            vec![
                Cell::from(turn.iteration),
                Cell::count(turn.kept.len() as u64),
                Cell::count(turn.dropped.len() as u64),
                Cell::maybe(best.and_then(Micro::new), Cell::micro),
            ],
        );
    }
    part.table_or(table, "no turn has ended");
    let columns = [("reason", "reason"), ("edits", "edits")];
    let mut table = Table::new("rejected", "Edits that were rejected", &columns);
    for (reason, count) in &drawn.facts.rejected {
        let cells = vec![Cell::text(reason.as_str()), Cell::count(*count)];
        table.row_of(drawn.places.rejected.clone(), cells);
    }
    part.table_or(table, "none was rejected");
    part
}

/// The family of tasks with the rules that the run judges by.
pub(super) fn set(plan: &RepairPlan) -> TaskSet {
    TaskSet {
        rules: plan.rules.clone(),
        ..plan.set.clone()
    }
}
