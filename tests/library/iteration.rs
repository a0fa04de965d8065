//! A whole iteration of a rubric: a plan signed, a patch proposed, and everything to the verdict on it.

use std::error::Error;
use std::path::Path;

use clover::event::id::IterationId;
use clover::event::payload::iteration::IterationOutcome;
use clover::event::payload::rubric::AuthorKind;
use clover::projection::iterations::step::Step;
use clover::session::append::Intent;
use clover::session::iterate::Bench;
use clover::session::iterate::open;
use clover::session::iterate::propose;
use clover::session::iterate::steps;
use clover::session::iterate::steps::StepDone;
use clover::session::prereg::registration;
use clover::workflow::patches::Authorship;
use clover::workflow::simulate::shipped::shipped;

use super::data;
use super::desk::Desk;

/// Runs it in a folder; answers with how it ended.
pub(crate) fn run(folder: &Path) -> Result<IterationOutcome, Box<dyn Error>> {
    // Answers of a judge that pays for false sources, and the patch that mends it.
    let [of, _] = shipped();
    let mut desk = Desk::new(folder)?;
    data::take_in(&mut desk, &of)?;

    // A plan is signed, and binds the iteration that is opened under it.
    let plan = serde_json::from_value(of.plan("ends")?)?;
    let signed = registration::sign(
        &mut desk.keys,
        &mut desk.ledger,
        (plan, &[]),
        false,
        Intent::Append,
    )?;
    let (id, manifest): (IterationId, _) = ("it-1".parse()?, signed.manifest.manifest);
    open::open(
        &mut desk.keys,
        &mut desk.ledger,
        &id,
        (&manifest, None),
        Intent::Append,
    )?;

    // Calibrator, audit and cards; then somebody writes a patch from the cards; then everything to the verdict.
    let Desk {
        home,
        mut keys,
        ledger,
    } = desk;
    let mut bench = Bench::new(home, ledger, id.clone())?;
    steps::run(&mut bench, &mut keys, Step::Cards, None)?;
    let by = Authorship {
        kind: AuthorKind::Human,
        inputs: Vec::new(),
        model: None,
        prompt_digest: None,
        run: None,
    };
    propose::propose(
        &mut keys,
        &mut bench.ledger,
        &id,
        (&of.patch, by),
        Intent::Append,
    )?;
    bench.again()?;
    let (done, _) = steps::run(&mut bench, &mut keys, Step::Close, None)?;
    match done.last() {
        Some(StepDone::Close(ending)) => Ok(ending.outcome),
        other => Err(format!("the iteration stands at {other:?}").into()),
    }
}
