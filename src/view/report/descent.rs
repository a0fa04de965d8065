//! The report of a run that lowers the loss of a judge's prompt: its curves, its steps, what was rejected, its prompts, what test
//! said once, and the gate of its checkpoint.

use std::collections::BTreeMap;

use crate::event::Payload;
use crate::event::id::ManifestId;
use crate::event::id::RunId;
use crate::event::payload::sgd::SgdLoss;
use crate::event::payload::sgd::SgdPart;
use crate::event::payload::sgd_steps::SgdTrigger;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Listing;
use crate::projection::bundle::Plot;
use crate::projection::bundle::Table;
use crate::projection::gates;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::manifests::ManifestRecord;
use crate::projection::sgd::SgdRun;
use crate::projection::sgd::gate;
use crate::projection::sgd::run_of;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::SessionError;
use crate::session::chronicle::Chronicle;
use crate::session::sgd::found;
use crate::session::sgd::history;
use crate::session::sgd::history::PromptCause;
use crate::session::sgd::history::PromptVersion;
use crate::view::report::course;
use crate::view::report::made;
use crate::view::report::made::ReportSource;
use crate::view::report::made::fact;
use crate::view::sgd;
use crate::view::sgd::SgdRunShown;
use crate::view::sgd::promotion;
use crate::view::sgd::prompts::difference;
use crate::view::word;

/// Where what a run says stands.
#[derive(Debug, Default)]
struct RunEntries {
    checkpoint: Vec<u64>,
    opened: u64,
    rejected: Vec<u64>,
    stop: Vec<u64>,
    steps: BTreeMap<u64, u64>,
    test: Vec<u64>,
    val: Vec<u64>,
}

impl RunEntries {
    fn of(chronicle: &Chronicle, run: &RunId) -> Self {
        let mut found = Self::default();
        for entry in &chronicle.entries {
            let payload = &entry.event.payload;
            if run_of(payload) != Some(run) {
                continue;
            }
            let seq = entry.seq;
            match payload {
                Payload::SgdOpened(_) => found.opened = seq,
                Payload::SgdLossComputed(said) if said.part == SgdPart::Val => found.val.push(seq),
                Payload::SgdPatchRejected(_) => found.rejected.push(seq),
                Payload::SgdStepCommitted(said) => {
                    found.steps.insert(said.step.value(), seq);
                }
                Payload::SgdStopTriggered(_) => found.stop.push(seq),
                Payload::SgdCheckpointSelected(_) => found.checkpoint.push(seq),
                Payload::SgdTestRead(_) => found.test.push(seq),
                _ => {}
            }
        }
        found
    }

    /// The entry that says what stands at a place of the curves.
    fn at(&self, place: u64) -> u64 {
        let step = place.checked_sub(1).and_then(|step| self.steps.get(&step));
        let first = || self.val.first().copied().unwrap_or(self.opened);
        step.copied().unwrap_or_else(first)
    }
}

/// The report of a run.
///
/// # Errors
/// [`SessionError`]: no run of the name, or the log cannot be read.
pub fn document(source: &ReportSource<'_>, id: &RunId) -> Result<Document, SessionError> {
    let run = found(source.state, id)?;
    let facts = sgd::facts(source.state, run);
    let chronicle = source.chronicle(Some(&run.experiment))?;
    let places = RunEntries::of(&chronicle, id);
    let versions = history::versions(run)?;
    let mut out = Document::new(
        ReportKind::Sgd,
        id.as_str(),
        head(source, &chronicle, (run, &facts, &places)),
    );
    let value = Cell::text(run.experiment.as_str());
    out.facts
        .push(fact(vec![places.opened], "experiment", "Experiment", value));
    let judge = Cell::text(run.said.judge.as_str());
    out.facts
        .push(fact(vec![places.opened], "judge", "Judge", judge));
    out.parts = vec![
        curves(&facts, &places),
        steps(&facts, &places),
        rejected(&facts, &places),
        ends(&facts, &places),
        verdict(source, run, &places),
        prompts(run, &versions, &places),
    ];
    out.appendices.push(every_prompt(&versions, &places));
    Ok(source.finish(out)?)
}

fn head(
    source: &ReportSource<'_>,
    chronicle: &Chronicle,
    (run, facts, places): (&SgdRun, &SgdRunShown, &RunEntries),
) -> DocumentHead {
    let answer = match (facts.test_base, facts.test_chosen) {
        (Some(base), Some(chosen)) => format!(
            "On test, read once, the loss is {:.4} under prompt 0 and {:.4} under the checkpoint.",
            base.loss.value(),
            chosen.loss.value()
        ),
        _ => "Test was not read: nothing may be claimed.".to_owned(),
    };
    let steps = made::counted(facts.steps.len() as u64, "step was", "steps were");
    DocumentHead {
        answer,
        people: None,
        period: format!("It was opened {}.", made::on(chronicle, places.opened)),
        rest: vec![
            format!("{steps} taken of at most {}.", facts.steps_max),
            "Numbers of val chose the checkpoint, the best of several: they are exploratory."
                .to_owned(),
            format!(
                "Gradients and patches are written by {}.",
                run.said.model.as_str()
            ),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    }
}

fn maybe(value: Option<Finite>) -> Cell {
    Cell::maybe(value, Cell::from)
}

/// The loss with its terms, and the monitors, under each prompt.
fn curves(facts: &SgdRunShown, places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "curves",
        "Losses and monitors",
        "The loss of val under each prompt with its terms, and what is watched for collapse: rank correlation, entropy, variance.",
    );
    let columns = [
        ("place", "place"),
        ("val", "loss of val"),
        ("train", "loss of batch"),
        ("abs", "distance"),
        ("rank", "ranking"),
        ("contraction", "contraction"),
        ("failures", "unread"),
        ("tau_b", "tau-b"),
        ("entropy", "entropy"),
        ("selfvar", "variance of repeats"),
        ("rows", "rows"),
    ];
    let mut table = Table::new("curves", "Val under each prompt", &columns);
    table.plot = Some(Plot::Points {
        x: (0, "place: 0 is prompt 0"),
        y: "loss",
        line: Some((1, "loss of val")),
        dots: (1, None, "loss of val"),
        hollow: Some((2, "loss of the batch before the step")),
        weight: 10,
        reference: None,
    });
    let first = facts.val.map(|val| (0, val, None));
    let later = facts.steps.iter();
    let later = later.map(|of| (of.step + 1, of.val, Some(of.train.loss)));
    for (place, val, train) in first.into_iter().chain(later) {
        table.row(
            places.at(place),
            row_of(place, &val, (train, facts.rows.val)),
        );
    }
    part.table_or(table, "no loss of val is computed");
    part
}

fn row_of(place: u64, val: &SgdLoss, (train, rows): (Option<Finite>, u64)) -> Vec<Cell> {
    vec![
        Cell::count(place),
        Cell::Number(val.loss),
        maybe(train),
        Cell::Number(val.abs),
        maybe(val.rank),
        Cell::Number(val.contraction),
        Cell::Number(val.failures),
        maybe(val.tau_b),
        Cell::Number(val.entropy),
        Cell::Number(val.selfvar),
        Cell::count(rows),
    ]
}

/// What each step did, by what right, and what its section did to the loss.
fn steps(facts: &SgdRunShown, places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "steps",
        "Steps",
        "The learning rate of each step bounds its patch: its effective step is at most 1.5 times the rate and 0.25.",
    );
    let columns = [
        ("step", "step"),
        ("lr", "learning rate"),
        ("effective", "effective step"),
        ("section", "section"),
        ("chars", "characters"),
        ("rejected", "rejected"),
        ("reverted", "taken back"),
        ("summary", "gradient"),
    ];
    let mut table = Table::new("steps", "Every step", &columns);
    for of in &facts.steps {
        let section = of.section.as_deref().map(Cell::text);
        table.row(
            places.at(of.step + 1),
            vec![
                Cell::count(of.step),
                Cell::micro(of.lr_micro),
                Cell::maybe(of.measured, |of| Cell::micro(of.effective_micro)),
                section.unwrap_or(Cell::Absent),
                Cell::maybe(of.measured, |of| Cell::Count(of.chars)),
                Cell::count(of.rejected),
                Cell::from(of.reverted),
                Cell::text(of.summary.as_str()),
            ],
        );
    }
    part.table_or(table, "no step is taken");
    let columns = [
        ("section", "section"),
        ("steps", "steps"),
        ("change", "change of the loss of val"),
    ];
    let mut table = Table::new("blame", "What edits of each section did", &columns);
    for of in &facts.blame {
        let all = facts
            .steps
            .iter()
            .filter(|step| step.section.as_ref() == Some(&of.section));
        table.row_of(
            all.map(|step| places.at(step.step + 1)).collect(),
            vec![
                Cell::text(of.section.as_str()),
                Cell::count(of.steps),
                Cell::Number(of.change),
            ],
        );
    }
    part.table_or(table, "no section is edited");
    part
}

/// Proposals that were turned down, by rule.
fn rejected(facts: &SgdRunShown, places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "rejected",
        "Rejected proposals",
        "How many proposals broke each rule; one may break several.",
    );
    let columns = [("rule", "rule"), ("proposals", "proposals")];
    let mut table = Table::new(
        "rejected",
        "Proposals by the rule that they break",
        &columns,
    );
    for of in &facts.rejected {
        let cells = vec![Cell::text(of.rule.as_str()), Cell::count(of.proposals)];
        table.row_of(places.rejected.clone(), cells);
    }
    part.table_or(table, "no proposal is rejected");
    part
}

/// Why it looked for its end, which prompt was chosen, and what test said.
fn ends(facts: &SgdRunShown, places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "end",
        "How it ended",
        "The checkpoint has the lowest loss of val, the earliest of equals. Test is read once in an experiment.",
    );
    let triggers = facts.triggers.iter().map(|of: &SgdTrigger| of.as_str());
    let triggers = triggers.collect::<Vec<_>>().join(", ");
    if triggers.is_empty() {
        part.lacks("a stop", "no number called for one");
    } else {
        part.fact(
            places.stop.clone(),
            "triggers",
            "Stopped for",
            Cell::text(triggers),
        );
    }
    match facts.checkpoint {
        Some(digest) => part.fact(
            places.checkpoint.clone(),
            "checkpoint",
            "Checkpoint",
            Cell::from(digest),
        ),
        None => part.lacks("a checkpoint", "none is chosen yet"),
    }
    for (key, title, of) in [
        ("test_base", "Loss of test under prompt 0", facts.test_base),
        (
            "test_chosen",
            "Loss of test under the checkpoint",
            facts.test_chosen,
        ),
    ] {
        match of {
            Some(of) => part.fact(places.test.clone(), key, title, Cell::Number(of.loss)),
            None => part.lacks(title, "test is not read yet"),
        }
    }
    part
}

/// How the gate of the checkpoint ended.
fn verdict(source: &ReportSource<'_>, run: &SgdRun, places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "gate",
        "The gate of the checkpoint",
        "The checkpoint is promoted only where a gate shows that it agrees more with the labels of confirm than prompt 0.",
    );
    let plan = gate::plan_of(source.state, run);
    let Some((id, record)) = plan else {
        part.lacks("a gate", "no plan names the metric of this run");
        return part;
    };
    let first = record
        .versions
        .first()
        .map_or(places.opened, |first| first.seq);
    part.fact(vec![first], "gate", "Gate", Cell::text(id.as_str()));
    rate(&mut part, record);
    let opened = source.state.fold::<Gates>().by_id.get(id);
    let Some(opened) = opened else {
        part.lacks("its verdict", "it is not opened yet");
        return part;
    };
    looked(&mut part, opened);
    match &opened.decided {
        Some(of) => {
            let said = word(&of.outcome).replace('_', " ");
            part.fact(vec![of.seq], "decided", "Decided", Cell::text(said));
            if let Some(now) = source.state.keyring.recorded_at {
                let grade = gates::graded(opened, record, source.state, now);
                let grade = word(&grade).replace('_', " ");
                part.fact(vec![of.seq], "grade", "Grade", Cell::text(grade));
            }
        }
        None => part.lacks("its verdict", "it is not decided yet"),
    }
    promotions(&mut part, source, id);
    part
}

/// The error rate of the plan, with a warning where it is high.
fn rate(part: &mut Chapter, record: &ManifestRecord) {
    let version = record.in_force().or_else(|| record.versions.last());
    let alpha = version.and_then(|version| Some((version.seq, version.manifest.alpha()?)));
    let Some((seq, alpha)) = alpha else {
        part.lacks("an error rate", "the plan names none");
        return;
    };
    let cell = Micro::new(alpha).map_or(Cell::Absent, Cell::micro);
    part.fact(vec![seq], "alpha", "Error rate (alpha)", cell);
    if let Some(words) = promotion::high_rate(alpha) {
        part.fact(vec![seq], "alpha_high", "Warning", Cell::text(words));
    }
}

/// What the last look at a gate found.
fn looked(part: &mut Chapter, opened: &Gate) {
    let Some(look) = &opened.look else {
        part.lacks("an interval", "nobody looked at it yet");
        return;
    };
    let shown = |micro: i64| format!("{:.4}", micro as f64 / 1e6);
    let gain = format!("{} to {}", shown(look.cs_lo), shown(look.cs_hi));
    let p = format!("{:.6}", look.p.value());
    let (observed, seq) = (Cell::count(look.n), vec![look.seq]);
    part.fact(seq.clone(), "observed", "Clusters observed", observed);
    part.fact(seq.clone(), "gain", "Gain in agreement", Cell::text(gain));
    part.fact(seq, "p", "p, always valid", Cell::text(p));
}

/// What was promoted on a gate.
fn promotions(part: &mut Chapter, source: &ReportSource<'_>, id: &ManifestId) {
    let all = &source.state.fold::<Gates>().promotions;
    let mut own = all.iter().filter(|of| of.gates.contains(id)).peekable();
    if own.peek().is_none() {
        part.lacks("a promotion", "nothing was promoted on this gate");
    }
    for of in own {
        let standing = match of.revoked_seq {
            Some(seq) => format!("revoked at seq {seq}"),
            None => "on record".to_owned(),
        };
        let events = [Some(of.seq), of.revoked_seq];
        let events = events.into_iter().flatten().collect();
        part.fact(events, "promotion", "Promotion", Cell::text(standing));
    }
}

fn listing(version: &PromptVersion, title: String, places: &RunEntries) -> Listing {
    Listing {
        events: vec![match version.cause {
            PromptCause::Opened => places.opened,
            PromptCause::Step(_) | PromptCause::Reverted(_) => places.at(version.place),
        }],
        title,
        text: version.prompt.render(),
    }
}

/// Prompt 0, and what the best prompt says otherwise.
fn prompts(run: &SgdRun, versions: &[PromptVersion], places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "prompts",
        "What was changed",
        "What the best prompt says otherwise than prompt 0. Texts are data: nobody here runs them.",
    );
    let best = run.best();
    let mut all = versions.iter();
    let (first, chosen) = (versions.first(), all.find(|of| of.place == best));
    if let Some((first, chosen)) = first.zip(chosen) {
        let text = difference(&first.prompt, &chosen.prompt);
        if text.is_empty() {
            part.lacks("a difference", "the best prompt is prompt 0");
        } else {
            part.listings.push(Listing {
                events: vec![places.opened, places.at(best)],
                title: format!("From prompt 0 to the prompt at place {best}"),
                text,
            });
        }
        part.listings.push(listing(
            chosen,
            format!("The prompt at place {best}"),
            places,
        ));
    }
    part
}

/// The prompt at every place.
fn every_prompt(versions: &[PromptVersion], places: &RunEntries) -> Chapter {
    let mut part = Chapter::new(
        "every-prompt",
        "The prompt at every place",
        "Place 0 is prompt 0, and step t stands at t + 1.",
    );
    let own = versions
        .iter()
        .filter(|of| !matches!(of.cause, PromptCause::Reverted(_)));
    let all = own.map(|of| listing(of, format!("Place {}", of.place), places));
    part.listings.extend(all);
    part
}
