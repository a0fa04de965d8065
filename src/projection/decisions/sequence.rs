//! Sequential confirm tests: whose labels are shown so far, at which looks, and the part of the rule `sealing` that
//! keeps them in the order of the beacon.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Header;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::IterationId;
use clover_event::id::Root;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::label::draw_of_row;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::predicate::ConfirmLooked;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::LookedHypothesis;
use clover_event::payload::predicate::SequentialStop;
use clover_ground::digest::Digest;
use clover_ledger::Code;
use clover_ledger::Fold;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::unmet;
use serde::Deserialize;
use serde::Serialize;

use crate::decisions::rules::Live;
use crate::orders;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CandidatesSealed,
    Kind::ConfirmLooked,
    Kind::ConfirmUnsealed,
    Kind::IterationClosed,
    Kind::IterationOpened,
    Kind::LabelDesignRegistered,
    Kind::LabelRevealed,
];

/// The last look at a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockLook {
    /// Hypotheses as they stood.
    pub hypotheses: Vec<LookedHypothesis>,
    /// Clusters of the block with a sealed label.
    pub of_units: u64,
    /// Where.
    pub seq: u64,
    /// Clusters shown by then.
    pub units: u64,
}

impl BlockLook {
    /// Whether no test goes on.
    pub fn is_settled(&self) -> bool {
        let on = |of: &LookedHypothesis| of.test.stop == SequentialStop::Continue;
        !self.hypotheses.iter().any(on)
    }

    /// Whether the evidence of a hypothesis crossed.
    pub fn has_crossed(&self) -> bool {
        let crossed = |of: &LookedHypothesis| of.test.stop == SequentialStop::Crossed;
        self.hypotheses.iter().any(crossed)
    }

    /// Whether every test stopped, none of them by crossing: no further label is shown.
    pub fn saves(&self) -> bool {
        self.is_settled() && !self.has_crossed()
    }
}

/// The confirm block of one iteration whose test is sequential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequentialBlock {
    /// Its confirm root, once it is unsealed.
    pub confirm_root: Option<Root>,
    /// Digest of its manifest's version.
    pub digest: Digest,
    /// Clusters between two looks.
    pub every: u64,
    /// The cluster whose label was shown last.
    pub last: Option<ItemId>,
    /// The last look.
    pub looked: Option<BlockLook>,
    /// Looks so far.
    pub looks: u64,
    /// The entry that sealed its candidates.
    pub sealed_seq: Option<u64>,
    /// Clusters with a label that is shown.
    pub units: u64,
}

impl SequentialBlock {
    /// Clusters at the last look.
    fn looked_units(&self) -> u64 {
        self.looked.as_ref().map_or(0, |of| of.units)
    }

    /// Whether the labels of the rest may stay sealed.
    pub fn saves(&self) -> bool {
        self.looked.as_ref().is_some_and(BlockLook::saves)
    }

    /// Whether a look has taken in, or needs no more, and every label is shown.
    pub fn is_whole(&self) -> bool {
        let whole = |of: &BlockLook| {
            let looked = of.units == of.of_units || (of.has_crossed() && of.is_settled());
            looked && self.units == of.of_units
        };
        self.looked.as_ref().is_some_and(whole)
    }
}

/// Sequential confirm tests of every iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequences {
    /// By iteration.
    pub by_id: BTreeMap<IterationId, SequentialBlock>,
    /// Designs for confirm.
    pub designs: BTreeMap<ExperimentId, BTreeSet<DesignId>>,
    /// The iteration of each experiment whose block is unsealed.
    pub open: BTreeMap<ExperimentId, IterationId>,
}

impl Fold for Sequences {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        match &event.payload {
            Payload::LabelDesignRegistered(said) if said.purpose == DesignPurpose::Confirm => {
                let of = self.designs.entry(experiment.clone()).or_default();
                of.insert(said.design.clone());
            }
            Payload::IterationOpened(said) => {
                let plan = said.params.sequential.as_ref();
                let test = said.params.confirm_test;
                if let Some(plan) = plan.filter(|_| test == ConfirmTest::Sequential) {
                    let shown = SequentialBlock {
                        confirm_root: None,
                        digest: said.digest,
                        every: plan.look_every.value(),
                        last: None,
                        looked: None,
                        looks: 0,
                        sealed_seq: None,
                        units: 0,
                    };
                    self.by_id.entry(said.iteration.clone()).or_insert(shown);
                }
            }
            Payload::CandidatesSealed(said) => {
                if let Some(of) = self.by_id.get_mut(&said.iteration) {
                    of.sealed_seq.get_or_insert(seq);
                }
            }
            Payload::ConfirmUnsealed(said) => {
                if let Some(of) = self.by_id.get_mut(&said.iteration) {
                    of.confirm_root.get_or_insert(said.confirm_root);
                    self.open.insert(experiment.clone(), said.iteration.clone());
                }
            }
            Payload::LabelRevealed(said) => self.revealed(experiment, said),
            Payload::ConfirmLooked(said) => {
                if let Some(of) = self.by_id.get_mut(&said.iteration) {
                    of.looks += 1;
                    of.looked = Some(BlockLook {
                        hypotheses: said.hypotheses.clone(),
                        of_units: said.of_units.value(),
                        seq,
                        units: said.units.value(),
                    });
                }
            }
            Payload::IterationClosed(said)
                if self.open.get(experiment) == Some(&said.iteration) =>
            {
                self.open.remove(experiment);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

impl Sequences {
    /// The open iteration that shows the labels of a design in an order drawn, a part at a time.
    pub fn shows_in_order(
        &self,
        experiment: &ExperimentId,
        design: &DesignId,
    ) -> Option<&IterationId> {
        let id = self.open.get(experiment)?;
        (self.is_confirm(experiment, design) && self.by_id.contains_key(id)).then_some(id)
    }

    fn is_confirm(&self, experiment: &ExperimentId, design: &DesignId) -> bool {
        let designs = self.designs.get(experiment);
        designs.is_some_and(|of| of.contains(design))
    }

    /// The block whose label a reveal shows, and the cluster.
    fn of_reveal(
        &self,
        experiment: &ExperimentId,
        said: &LabelRevealed,
    ) -> Option<(&IterationId, ItemId)> {
        let id = self.open.get(experiment)?;
        let (_, item, _) = draw_of_row(&said.row)?;
        self.is_confirm(experiment, &said.design)
            .then_some((id, item))
    }

    fn revealed(&mut self, experiment: &ExperimentId, said: &LabelRevealed) {
        let Some((id, item)) = self.of_reveal(experiment, said) else {
            return;
        };
        let id = id.clone();
        if let Some(of) = self.by_id.get_mut(&id)
            && of.last.as_ref() != Some(&item)
        {
            of.units += 1;
            of.last = Some(item);
        }
    }
}

/// The checkpoint that the order of a block is drawn from, and the seed.
fn drawn(state: &State, of: &SequentialBlock, header: &Header) -> Option<(DrawnFrom, Digest)> {
    let beacon = orders::beacon_above(state, of.sealed_seq?, header.seen)?;
    Some((beacon, orders::seed(of.digest, of.confirm_root?, &beacon)))
}

/// While an iteration whose test is sequential is open, labels of its block are shown in the order of the beacon, up to
/// the next look; none after every test stopped without a crossing.
pub(super) fn check_shown(
    state: &State,
    experiment: &ExperimentId,
    header: &Header,
    said: &LabelRevealed,
) -> RuleAnswer {
    let sequences = state.fold::<Sequences>();
    let Some(id) = sequences.shows_in_order(experiment, &said.design) else {
        return Ok(());
    };
    // A seal of a row that names no draw is refused by the rule `design`, and a reveal without a seal by `seal`.
    let Some((_, item, _)) = draw_of_row(&said.row) else {
        return Ok(());
    };
    let of = sequences.by_id.get(id).required("its sequential test")?;
    if let Some(looked) = of.looked.as_ref().filter(|looked| looked.saves()) {
        let expected = format!("no further label of {id}: every test stopped, none by crossing");
        return unmet(expected, format!("a reveal after seq {}", looked.seq));
    }
    let is_of_last = of.last.as_ref() == Some(&item);
    if is_of_last {
        return Ok(());
    }
    let Some((_, seed)) = drawn(state, of, header) else {
        return unmet("a checkpoint above the sealing", Code::Order.of("none"));
    };
    let key = |item: &ItemId| orders::key(seed, item);
    ensure!(
        of.last.as_ref().is_none_or(|last| key(last) < key(&item)),
        format!("labels in the order that seed {seed} gives"),
        Code::Order.of(item)
    );
    let most = of.looked_units() + of.every;
    let settled = of.looked.as_ref().is_some_and(BlockLook::is_settled);
    ensure!(
        settled || of.units < most,
        format!("confirm.looked of {id} after {most} clusters"),
        "a further label"
    );
    Ok(())
}

/// A look takes in every cluster that is shown and new ones, names what was sealed and the order, and keeps what stopped.
pub(super) fn check_looked(
    state: &State,
    live: &Live<'_>,
    header: &Header,
    said: &ConfirmLooked,
) -> RuleAnswer {
    let id = &said.iteration;
    let Some(of) = state.fold::<Sequences>().by_id.get(id) else {
        let expected = "an iteration with confirm_test sequential";
        return unmet(expected, Code::UnregisteredRule.of(id));
    };
    of.confirm_root.required("confirm.unsealed before a look")?;
    ensure!(
        said.params_hash == live.it.params_hash,
        format!("params_hash {}, as opened", live.it.params_hash),
        said.params_hash.to_string()
    );
    if let Some(looked) = of.looked.as_ref().filter(|looked| looked.is_settled()) {
        let found = format!("all of them since seq {}", looked.seq);
        return unmet("a test that did not stop", found);
    }
    let Some((beacon, seed)) = drawn(state, of, header) else {
        return unmet("a checkpoint above the sealing", Code::Order.of("none"));
    };
    ensure!(
        (said.beacon, said.seed) == (beacon, seed),
        format!("the checkpoint of size {}, seed {seed}", beacon.size),
        Code::Order.of(format_args!(
            "of size {}, seed {}",
            said.beacon.size, said.seed
        ))
    );
    let (units, all) = (said.units.value(), said.of_units.value());
    let due = (of.looked_units() + of.every).min(all);
    ensure!(
        units == of.units && units == due,
        format!("a look at {due} of {all} clusters, all of them shown"),
        format!("at {units}, with {} shown", of.units)
    );
    let sealed = live.decided.and_then(|of| of.sealed.as_ref());
    let sealed = sealed.iter().flat_map(|of| &of.hypotheses);
    let named = said.hypotheses.iter().map(|one| one.candidate);
    ensure!(
        sealed.map(|one| one.candidate).eq(named),
        "the sealed hypotheses, in order",
        "others"
    );
    match &of.looked {
        Some(before) => check_kept(before, said),
        // The first look.
        None => Ok(()),
    }
}

/// What stopped at an earlier look stays as it was, the bounds and the number of clusters too.
fn check_kept(before: &BlockLook, said: &ConfirmLooked) -> RuleAnswer {
    ensure!(
        before.of_units == said.of_units.value(),
        format!("a block of {} clusters, as before", before.of_units),
        said.of_units.to_string()
    );
    // Both looks name the sealed hypotheses in their order.
    for (old, new) in before.hypotheses.iter().zip(&said.hypotheses) {
        let stopped = old.test.stop != SequentialStop::Continue;
        ensure!(
            old.test.bound == new.test.bound && !(stopped && old != new),
            format!(
                "{} {} with the bound {}, as at seq {}",
                old.candidate.short(),
                old.test.stop.as_str(),
                old.test.bound,
                before.seq
            ),
            format!("{} with {}", new.test.stop.as_str(), new.test.bound)
        );
    }
    Ok(())
}

/// Gates on confirm stand on the whole block, and P8 on how the test ended at the looks.
pub(super) fn check_criterion(state: &State, said: &GateEvaluated) -> RuleAnswer {
    let Some(of) = state.fold::<Sequences>().by_id.get(&said.iteration) else {
        // The test of the iteration is not sequential.
        return Ok(());
    };
    let looked = of.looked.as_ref().filter(|_| of.is_whole());
    let Some(looked) = looked else {
        let expected = "a gate on the whole confirm block";
        let all = of.looked.as_ref().map(|of| of.of_units);
        let all = all.map_or("an unknown number".to_owned(), |all| all.to_string());
        return unmet(expected, format!("{} of {all} clusters shown", of.units));
    };
    let Evidence::P8(loss) = &said.evidence else {
        return Ok(());
    };
    let mut tests = looked.hypotheses.iter();
    let test = tests.find(|of| of.candidate == said.candidate);
    let test = test.required("a test of the candidate")?.test;
    let found = loss.sequential.map(|of| of.stop);
    let found = found.map_or("none", SequentialStop::as_str);
    // A test that had not stopped at the last look goes on to the end of the block with it: they are the same.
    ensure!(
        loss.sequential == Some(test),
        format!("the test as at seq {}, {}", looked.seq, test.stop.as_str()),
        format!("{found}, or other numbers")
    );
    Ok(())
}

/// Whether every test of an iteration stopped without a crossing before the end of the block, so that no gate on confirm
/// is due.
pub(super) fn saves(state: &State, iteration: &IterationId) -> bool {
    let of = state.fold::<Sequences>().by_id.get(iteration);
    of.is_some_and(|of| of.saves() && !of.is_whole())
}
