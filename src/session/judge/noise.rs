//! A judge behind HTTP is asked again about answers that it gave, to see how much its scores waver.
//!
//! Which answers is drawn once the run is on record, so every row that could be drawn has to be here before it is opened.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::calls::CallOutcome;
use clover_event::id::RunId;
use clover_event::payload::model_runs::FirstCall;
use clover_event::payload::model_runs::NoiseMeasured;
use clover_event::payload::model_runs::RescoreTerms;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_projection::runs::noise;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::judged::SERIES;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;
use crate::judge::live;
use crate::judge::live::AskTerms;
use crate::judge::live::LiveAsk;
use crate::judge::live::LiveCounts;
use crate::judge::live::LiveTerms;
use crate::judge::live::count;
use crate::judge::live_course;
use crate::judge::live_course::AskedRun;
use crate::judge::live_record::Recorder;
use crate::judge::live_rows::RowSorter;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::tariff;
use crate::tariff::Tariff;

/// What came of asking again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoiseRun {
    /// The run.
    pub counts: LiveCounts,
    /// What it says of the judge; none where the same command goes on with it.
    pub said: Option<NoiseMeasured>,
}

/// A row whose ask gave a score.
struct DrawableRow {
    first: FirstCall,
    row: ImportRow,
    reading: Reading,
    bound: Count,
}

/// Rows that may be drawn, by the entries of their calls.
type Drawable = BTreeMap<u64, DrawableRow>;

/// Which rows of a file may be drawn; all that the judge gave a score have to be among them.
fn drawable(
    sorter: &RowSorter<'_>,
    rows: Vec<(ImportRow, Reading)>,
    scored: &[u64],
) -> Result<Drawable, SessionError> {
    let mut found = BTreeMap::new();
    for (row, reading) in rows {
        let ask = sorter.ask_in(SERIES, &row, &reading)?;
        let Some(last) = sorter.last_call(&ask.keyed(sorter.pepper))? else {
            continue;
        };
        let Some(score_micro) = last.said.score_micro.filter(|_| sorter.is_own(&last)) else {
            continue;
        };
        let bytes = AskRequest::of(sorter.wire, ask).body.len();
        let bound = sorter.tariff.map_or_else(Count::default, |of| {
            of.row.bound(bytes, sorter.plan.max_output_tokens)
        });
        let first = FirstCall {
            call: last.id,
            score_micro,
            seq: count(last.seq),
        };
        found.entry(last.seq).or_insert(DrawableRow {
            first,
            row,
            reading,
            bound,
        });
    }
    let missing = scored.iter().filter(|seq| !found.contains_key(*seq));
    let missing = missing.count();
    if missing > 0 {
        let all = scored.len();
        return Err(JudgingError::NotDrawable { all, missing }.into());
    }
    Ok(found)
}

/// The series of a run that asks again.
fn series(terms: &RescoreTerms) -> String {
    format!("rescore-{}", terms.number)
}

/// Opens the next run that asks again about rows with a score.
fn opened(
    recorder: &mut Recorder<'_>,
    terms: &LiveTerms<'_>,
    (asks, scored): (u64, &[u64]),
) -> Result<RunId, SessionError> {
    let of = (asks, noise::frame_root(scored));
    live::opened(recorder, &terms.asks, of, &|recorder| {
        let runs = recorder.ledger.state().fold::<ModelRuns>();
        let before = runs.noise_of(recorder.experiment, recorder.judge);
        Some(RescoreTerms {
            number: count(before.map_or(0, |of| of.runs) + 1),
            of: count(scored.len() as u64),
        })
    })
}

/// The asks of an open run that came to nothing yet, in the order of their first calls.
fn asks(
    sorter: &RowSorter<'_>,
    run: &ModelRun,
    drawable: &mut Drawable,
) -> Result<(Vec<LiveAsk>, Vec<AskRequest>), SessionError> {
    let seen = Some(sorter.ledger.seen());
    let drawn = noise::drawn(sorter.ledger.state(), run, seen).unwrap_or_default();
    let terms = run.said.rescore.as_ref();
    let series = terms.map(series).unwrap_or_default();
    let (mut asks, mut requests) = (Vec::new(), Vec::new());
    for seq in drawn {
        let Some(of) = drawable.remove(&seq) else {
            continue;
        };
        let ask = sorter.ask_in(&series, &of.row, &of.reading)?;
        let key = ask.keyed(sorter.pepper);
        let last = sorter.last_call(&key)?;
        if last
            .as_ref()
            .is_some_and(|of| of.said.outcome != CallOutcome::Lost)
        {
            continue;
        }
        requests.push(AskRequest::of(sorter.wire, ask));
        // A request of another series is a few bytes longer than that of the first.
        let bytes = requests.last().map_or(0, |of| of.body.len());
        let bound = sorter.tariff.map_or(of.bound, |tariff| {
            tariff.row.bound(bytes, sorter.plan.max_output_tokens)
        });
        asks.push(LiveAsk {
            first: Some(of.first),
            key,
            nth: last.map_or(0, |of| of.said.nth.value() + 1),
            texts: of.reading.texts(),
            rows: vec![(of.row, of.reading)],
            bound,
        });
    }
    Ok((asks, requests))
}

/// What asks are made from.
struct NoiseFrame<'a> {
    assignment: &'a Assignment,
    plan: &'a JudgePlan,
    wire: &'a dyn WireForm,
    tariff: Option<&'a Tariff>,
    pepper: &'a [u8; 32],
    told: &'a str,
}

impl<'a> NoiseFrame<'a> {
    fn sorter(&'a self, ledger: &'a Ledger) -> RowSorter<'a> {
        RowSorter {
            ledger,
            assignment: self.assignment,
            plan: self.plan,
            wire: self.wire,
            tariff: self.tariff,
            pepper: self.pepper,
            told: self.told,
            open: None,
        }
    }
}

/// What is on record of asking a judge again.
struct NoiseStart {
    /// The run that is open.
    open: Option<ModelRun>,
    /// Entries of calls that gave a score.
    scored: Vec<u64>,
    /// A run that ended, and was cut before it was measured.
    ended: Option<RunId>,
}

fn start(
    ledger: &Ledger,
    assignment: &Assignment,
    terms: &AskTerms<'_>,
) -> Result<NoiseStart, SessionError> {
    let runs = ledger.state().fold::<ModelRuns>();
    let whose = (&assignment.experiment, assignment.judge());
    let open = runs.open(whose.0, whose.1).cloned();
    if let Some(of) = open.as_ref() {
        if of.said.rescore.is_none() {
            return Err(JudgingError::StillAsking(of.said.run.clone()).into());
        }
        live::as_opened(of, terms)?;
    }
    let known = runs.noise_of(whose.0, whose.1);
    let scored = known.map_or_else(Vec::new, |of| of.scored.clone());
    if (scored.len() as u64) < noise::RESCORED_MIN {
        return Err(JudgingError::FewRows(scored.len()).into());
    }
    let ended = known.and_then(|of| of.unmeasured.clone());
    Ok(NoiseStart {
        ended: ended.filter(|_| open.is_none()),
        open,
        scored,
    })
}

/// Asks the judge of an assignment again about so many of the answers that it gave, and records how much its scores waver.
///
/// # Errors
/// [`JudgingError`]; what was answered before is on record, and what was held is settled.
pub fn run(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    mut assignment: Assignment,
    (terms, wanted): (LiveTerms<'_>, u64),
) -> Result<NoiseRun, SessionError> {
    let (experiment, plan) = (assignment.experiment.clone(), terms.asks.plan.clone());
    let _alone = live::alone(home, &experiment, assignment.judge())?;
    ledger.refresh()?;
    let registered = assignment.registered(ledger)?;
    let start = start(ledger, &assignment, &terms.asks)?;
    let scorer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::CallRecorded))?;
    let mut done = NoiseRun::default();
    done.counts.pin.clone_from(&plan.pin);
    if let Some(run) = start.ended {
        done.counts.run = Some(run);
        return measured(ports, ledger, &assignment, (done, &scorer));
    }
    let tariff = live::tariff(ledger, &terms.asks, start.open.as_ref())?;
    tariff::spender(ledger, &scorer, tariff.as_ref().map(|of| &of.account))?;
    let rows = std::mem::take(&mut assignment.rows).into_iter();
    let rows = rows.map(|row| {
        let reading = assignment.read(&row)?;
        Ok::<_, JudgingError>((row, reading))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let pepper = home.vault(ledger.ambient())?.pepper()?;
    let told = assignment.told_text(ledger)?;
    let frame = NoiseFrame {
        assignment: &assignment,
        plan: &plan,
        wire: terms.asks.wire,
        tariff: tariff.as_ref(),
        pepper: &pepper,
        told: &told,
    };
    let drawable = drawable(&frame.sorter(ledger), rows, &start.scored)?;
    let size = start.open.as_ref().map_or_else(
        || {
            wanted
                .min(start.scored.len() as u64)
                .min(noise::RESCORED_MAX)
        },
        ModelRun::left,
    );
    let dearest = drawable.values().map(|of| of.bound.value()).max();
    let most = dearest.unwrap_or_default().saturating_mul(size);
    live::spending(ports, (size, most, 0), &terms, tariff.as_ref())?;
    let mut recorder = Recorder {
        home,
        ledger: &mut *ledger,
        experiment: &experiment,
        judge: assignment.judge(),
        registered,
        scorer: &scorer,
        plan: &plan,
        tariff: tariff.as_ref(),
    };
    let of = (&frame, drawable);
    let ended = course(
        ports,
        &mut recorder,
        of,
        (start, terms, size),
        &mut done.counts,
    );
    recorder.ledger.settle()?;
    append::tell_of_pin(ports, recorder.ledger);
    ended?;
    measured(ports, ledger, &assignment, (done, &scorer))
}

/// Opens a run or goes on with one, and asks.
fn course(
    ports: &mut dyn Ports,
    recorder: &mut Recorder<'_>,
    (frame, mut drawable): (&NoiseFrame<'_>, Drawable),
    (start, mut terms, size): (NoiseStart, LiveTerms<'_>, u64),
    counts: &mut LiveCounts,
) -> Result<(), SessionError> {
    let run = match &start.open {
        Some(open) => open.said.run.clone(),
        None => opened(recorder, &terms, (size, &start.scored))?,
    };
    let runs = recorder.ledger.state().fold::<ModelRuns>();
    let standing = runs.by_id.get(&run).cloned();
    let standing = standing.ok_or_else(|| JudgingError::NoRun(run.clone()))?;
    let sorter = frame.sorter(recorder.ledger);
    let (mut asks, requests) = asks(&sorter, &standing, &mut drawable)?;
    let epoch = match &start.open {
        Some(open) => live::gone_on(recorder, open, &mut asks)?.1,
        None => 0,
    };
    counts.run = Some(run.clone());
    let of = AskedRun {
        run: &run,
        epoch,
        asks: &asks,
        requests: &requests,
        pepper: frame.pepper,
    };
    live_course::asked(ports, recorder, of, &mut terms, counts)
}

/// Records what a run that ended says of its judge.
fn measured(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    assignment: &Assignment,
    (mut done, scorer): (NoiseRun, &clover_ground::sign::Signer),
) -> Result<NoiseRun, SessionError> {
    let Some(name) = done.counts.run.clone() else {
        return Ok(done);
    };
    done.counts.take(ledger, &name);
    let state = ledger.state();
    let run = state.fold::<ModelRuns>().by_id.get(&name);
    let said = run
        .filter(|of| of.end.is_some())
        .and_then(|of| noise::measured(state, of, of.rescored.as_ref()?));
    if let Some(said) = said {
        let experiment = Some(assignment.experiment.clone());
        let command = clover_ledger::Command::new(said.clone(), experiment);
        append::append(ports, ledger, &[command], scorer)?;
        done.said = Some(said);
    }
    Ok(done)
}
