//! The one look at confirm: a charged peek, the labels, and the gates on them.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::predicate::ConfirmUnsealed;
use clover_event::payload::predicate::CriterionSplit;
use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Breach;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RuleName;
use clover_projection::budgets::Budgets;
use clover_projection::decisions;
use clover_projection::decisions::block;
use clover_projection::designs::Designs;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::record::IterationRecord;
use clover_workflow::iterate::course::Course;

use crate::confirm;
use crate::confirm::Begun;
use crate::confirm::PaidDesign;
use crate::confirm::Peek;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::CandidatePatches;
use crate::iterate::IterationError;
use crate::iterate::rescore;
use crate::iterate::sequence;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

/// What the look at confirm did.
#[derive(Clone, Debug)]
pub struct Confirmation {
    /// Entries that were appended.
    pub appended: Vec<AppendedEvent>,
    /// The hypotheses that were judged; none where labels were saved.
    pub hypotheses: Vec<CandidatePatches>,
    /// Whether labels are shown in parts.
    pub is_sequential: bool,
}

/// Whether an iteration shows its confirm labels in parts.
pub fn is_sequential(record: &IterationRecord) -> bool {
    record.opened.said.params.confirm_test == ConfirmTest::Sequential
}

/// The design whose sealed labels confirm: the one that is named, else the only one that waits.
fn design(bench: &Bench, named: Option<&DesignId>) -> Result<DesignId, IterationError> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    let all = bench.ledger.state().fold::<Designs>();
    let of = all.by_experiment.get(&bench.record.experiment);
    let designs = of.iter().flat_map(|of| &of.designs);
    let mut confirm = designs.filter(|(_, design)| {
        let purpose = design.registered.as_ref().map(|of| of.purpose);
        purpose == Some(DesignPurpose::Confirm) && design.sealed > design.revealed
    });
    match (confirm.next(), confirm.next()) {
        (Some((id, _)), None) => Ok(id.clone()),
        (None, _) => Err(IterationError::NoDesign),
        (Some(_), Some(_)) => Err(IterationError::SeveralDesigns),
    }
}

/// Whether labels are still to be opened; a run that was cut between the unsealing and the last label goes on.
fn opens(bench: &Bench, named: Option<&DesignId>) -> bool {
    let waits = design(bench, named).is_ok();
    bench.record.unsealed.is_none() || (waits && bench.record.confirm_through().is_none())
}

/// Looks for every key that the look at confirm needs, before anything is charged or said.
///
/// # Errors
/// What the keys' port says of those that lack.
pub fn check_keys(
    bench: &Bench,
    ports: &mut dyn Ports,
    named: Option<&DesignId>,
) -> Result<(), SessionError> {
    let state = bench.ledger.state();
    let mut needs = vec![KeyNeed::runner(Kind::GateEvaluated)];
    if opens(bench, named) {
        needs.push(KeyNeed::of(Seat::Custodian, Kind::LabelRevealed));
        let plan = bench.record.opened.said.params.design.as_ref();
        let accounts = &state.fold::<Budgets>().accounts;
        if let Some(account) = plan.and_then(|plan| accounts.get(&plan.peek_account)) {
            needs.push(KeyNeed::charge(Seat::Custodian, Some(&account.spenders)));
        }
    }
    Ok(ports.check(state, &needs)?)
}

/// Opens the confirm labels in one charged peek, all at once or in parts, and judges what was sealed.
///
/// # Errors
/// [`SessionError`]; nothing is paid for what could not be opened, and what was appended before stands.
pub fn confirm(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    named: Option<&DesignId>,
) -> Result<Confirmation, SessionError> {
    check_keys(bench, ports, named)?;
    let course = bench.take_course()?;
    let opens = opens(bench, named);
    let is_sequential = is_sequential(&bench.record);
    let mut appended = Vec::new();
    if bench.record.unsealed.is_none() {
        rescore::before_unsealing(bench, ports, &course)?;
    }
    if is_sequential {
        let opening = if opens {
            unseal(bench, ports, &course, (named, Shows::InOrder))?
        } else {
            None
        };
        appended.extend(sequence::look(bench, ports, &course, opening.as_deref())?);
        if bench.record.saves_labels() {
            bench.put_back(course);
            return Ok(Confirmation {
                appended,
                hypotheses: Vec::new(),
                is_sequential,
            });
        }
    } else if opens {
        unseal(bench, ports, &course, (named, Shows::All))?;
    }
    let size = bench.ledger.size();
    let unsealed = course.unsealed(&bench.ledger, &bench.record, size)?;
    let mut hypotheses = Vec::new();
    for hypothesis in &course.sealed(&bench.ledger, &bench.record)? {
        if !bench
            .record
            .is_judged(hypothesis.hash, CriterionSplit::Confirm)
        {
            let gates = course.on_confirm(&unsealed, hypothesis)?;
            let gates: Vec<Payload> = gates.into_iter().map(Payload::from).collect();
            appended.extend(bench.say(ports, gates)?);
        }
        hypotheses.push(CandidatePatches {
            candidate: hypothesis.hash,
            patches: hypothesis.patches.clone(),
        });
    }
    bench.put_back(course);
    Ok(Confirmation {
        appended,
        hypotheses,
        is_sequential,
    })
}

/// Which labels an unsealing shows.
#[derive(Clone, Copy)]
enum Shows {
    /// All of them.
    All,
    /// None yet: they come in order.
    InOrder,
}

/// Refuses an unsealing before each sealed row of the block has a score of the iteration's judge: who leaves rows unscored would
/// choose which of them count.
fn check_scored(bench: &Bench) -> Result<(), SessionError> {
    let state = bench.ledger.state();
    let Some(it) = state.fold::<Iterations>().by_id.get(&bench.id) else {
        return Ok(());
    };
    let sought = block::score_sought(state, it).map_err(|unmet| {
        let found = format!("{}; no peek was charged", unmet.found);
        Breach::new(RuleName::Sealing, unmet.expected, found)
    })?;
    let Some((judge, score)) = sought else {
        return Ok(());
    };
    let (all, rows) = confirm::without_score(&bench.ledger, &it.experiment, &score)?;
    if rows > 0 {
        return Err(IterationError::Unscored { judge, rows, all }.into());
    }
    Ok(())
}

/// Charges a peek, says that confirm is unsealed, and reveals its labels, or leaves them to come in order.
fn unseal(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    (named, shows): (Option<&DesignId>, Shows),
) -> Result<Option<Box<PaidDesign>>, SessionError> {
    let design = design(bench, named)?;
    let (id, experiment) = (bench.id.clone(), bench.record.experiment.clone());
    let plan = bench.record.opened.said.params.design.as_ref();
    let account = plan.map(|design| design.peek_account.to_string());
    let peek = Peek {
        experiment: experiment.clone(),
        design,
        account: account.unwrap_or_default(),
        purpose: format!("iteration {id}"),
        seat: Seat::Custodian,
    };
    let confirm_root = course.loaded.confirm_root;
    let sealed = bench.record.sealed.as_ref().map(|sealed| sealed.id);
    let is_open = bench.record.unsealed.is_some();
    let (state, at) = (bench.ledger.state(), bench.now());
    let shut = decisions::check_unsealing(state, &experiment, confirm_root, at);
    if let Some(unmet) = shut.err().filter(|_| !is_open) {
        // Nothing is paid for what could not be opened.
        let found = format!("{}; no peek was charged", unmet.found);
        return Err(Breach::new(RuleName::Sealing, unmet.expected, found).into());
    }
    if !is_open {
        check_scored(bench)?;
    }
    let mut between = |ledger: &mut Ledger, charge: EventId, signer: &Signer| {
        let Some(sealed) = sealed.filter(|_| !is_open) else {
            return Ok(());
        };
        let said = ConfirmUnsealed {
            charge,
            confirm_root,
            iteration: id.clone(),
            sealed,
        };
        ledger.append(&[Command::new(said, Some(experiment.clone()))], signer)?;
        Ok(())
    };
    let ledger = &mut bench.ledger;
    let opened = match shows {
        Shows::All => confirm::open(ports, ledger, &peek, Some(&mut between)).map(|_| None),
        Shows::InOrder => match confirm::begin(ports, ledger, &peek, Some(&mut between))? {
            Begun::AllOpen(_) => Ok(None),
            Begun::Paid(opening) => Ok(Some(opening)),
        },
    };
    let opened = opened?;
    bench.again()?;
    Ok(opened)
}
