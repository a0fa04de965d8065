//! Confirm blocks: when one may be unsealed, which labels count in it, and that a gate leaves none of them out.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::AccountId;
use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::Root;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::label::LabelRevealed;
use crate::event::payload::label::LabelSealed;
use crate::event::registry;
use crate::ground::time::Timestamp;
use crate::ledger::Fact;
use crate::ledger::Fold;
use crate::ledger::Judged as Found;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::VerifiedEvent;
use crate::ledger::fold;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::decisions::AllDecisions;
use crate::projection::decisions::rules::plan_of;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::PEEKS_MAX;
use crate::projection::splits::Splits;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::LabelDesignRegistered,
    Kind::LabelRevealed,
    Kind::LabelSealed,
    Kind::SplitsFormed,
];

/// The confirm labels of one experiment since its newest split was formed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Designs for confirm.
    pub designs: BTreeSet<DesignId>,
    /// The latest day by which a label of them is to be revealed.
    pub reveal_by: Option<Timestamp>,
    /// Labels of them that were revealed.
    pub revealed: u64,
    /// Labels of them that were sealed.
    pub sealed: u64,
    /// The entry that formed the newest split.
    pub since: Option<u64>,
}

/// For which labels a charge paid first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paid {
    /// The design; `None` for those of a confirm block.
    pub design: Option<DesignId>,
    /// Their experiment.
    pub experiment: ExperimentId,
}

/// Confirm blocks by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, Block>,
    /// By charge.
    pub paid: BTreeMap<EventId, Paid>,
}

impl Fold for Blocks {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let Some(experiment) = &event.header.experiment else {
            return;
        };
        if let Payload::LabelDesignRegistered(said) = &event.payload
            && said.purpose == DesignPurpose::Confirm
        {
            let block = self.by_experiment.entry(experiment.clone()).or_default();
            block.designs.insert(said.design.clone());
        }
        if let Payload::LabelRevealed(said) = &event.payload {
            let design = self.label_of(experiment, &said.design);
            self.paid.entry(said.charge).or_insert(design);
        }
        let Some(block) = self.by_experiment.get_mut(experiment) else {
            return;
        };
        match &event.payload {
            Payload::SplitsFormed(_) => {
                (block.revealed, block.sealed, block.reveal_by) = (0, 0, None);
                block.since = Some(seq);
            }
            Payload::LabelSealed(said) if block.designs.contains(&said.design) => {
                block.sealed += 1;
                block.reveal_by = block.reveal_by.max(Some(said.reveal_by));
            }
            Payload::LabelRevealed(said) if block.designs.contains(&said.design) => {
                block.revealed += 1;
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

impl Blocks {
    /// Which labels a reveal is of.
    fn label_of(&self, experiment: &ExperimentId, design: &DesignId) -> Paid {
        let block = self.by_experiment.get(experiment);
        let confirm = block.is_some_and(|block| block.designs.contains(design));
        Paid {
            design: (!confirm).then(|| design.clone()),
            experiment: experiment.clone(),
        }
    }
}

/// A charge pays for the labels of one design, or of one confirm block.
pub(super) fn paid_before(state: &State, experiment: &ExperimentId, said: &LabelRevealed) -> Found {
    if !state.asks(Question::OneCharge) {
        return None;
    }
    let blocks = state.fold::<Blocks>();
    let before = blocks.paid.get(&said.charge)?;
    let Paid { design, experiment } = blocks.label_of(experiment, &said.design);
    if before.design == design && before.experiment == experiment {
        return None;
    }
    let labels = before
        .design
        .as_ref()
        .map_or("the confirm block".to_owned(), |design| {
            format!("design {design}")
        });
    no(
        "a charge that paid for no other labels",
        format!("one that paid for {labels} of {}", before.experiment),
    )
}

/// What forbids a label of an older block: that its seal stands below the entry that formed the newest split.
pub(super) fn of_older_block(
    state: &State,
    experiment: &ExperimentId,
    said: &LabelRevealed,
) -> Option<Fact> {
    let block = state.fold::<Blocks>().by_experiment.get(experiment)?;
    if !state.asks(Question::ConfirmRows) || !block.designs.contains(&said.design) {
        return None;
    }
    let fields = [said.design.as_str(), said.row.as_str()];
    Some(Fact::ForbidsBelow {
        digest: registry::natural_key_of(Kind::LabelSealed, experiment, &fields),
        before: block.since?,
        rule: RuleName::Sealing,
    })
}

/// Whether a design is one for confirm.
pub(super) fn is_confirm(state: &State, experiment: &ExperimentId, design: &DesignId) -> bool {
    let block = state.fold::<Blocks>().by_experiment.get(experiment);
    block.is_some_and(|block| block.designs.contains(design))
}

/// Why a confirm block cannot be unsealed at a time, whoever pays for it: what was expected, and what stands there.
pub fn kept_shut(
    state: &State,
    experiment: &ExperimentId,
    confirm_root: Root,
    at: Timestamp,
) -> Found {
    let all = state.fold::<AllDecisions>();
    if let Some(seq) = all.roots.get(&confirm_root.0.to_hex()) {
        let found = format!("one unsealed at seq {seq}");
        return no("a confirm block that is not spent", found);
    }
    let quarter = at.quarter().to_string();
    let unsealed = all.quarters.get(&quarter).copied().unwrap_or(0);
    if state.asks(Question::PeekAccount) && unsealed >= PEEKS_MAX {
        let expected = format!("at most {PEEKS_MAX} confirm blocks unsealed in {quarter}");
        return no(
            expected,
            format!("{unsealed} unsealed before, over all accounts"),
        );
    }
    let splits = state.fold::<Splits>().by_experiment.get(experiment);
    let ends = splits.and_then(|of| of.formed.values().filter_map(|formed| formed.t2).max());
    let early = ends.filter(|t2| *t2 > at)?;
    no(
        format!("an unsealing from {early} on, where the confirm window ends"),
        at.to_string(),
    )
}

/// An unsealing is paid from the account that the plan names, and from no other.
pub(super) fn paid_elsewhere(state: &State, it: &Iteration, account: &AccountId) -> Found {
    let plan = plan_of(state, it).and_then(|plan| plan.design.as_ref());
    let Some(design) = plan else {
        return no("a plan that names its peek_account", "none");
    };
    let named = &design.peek_account;
    (account != named).then(|| {
        (
            format!("a charge to {named}, the plan's peek_account"),
            format!("one to {account}"),
        )
    })
}

/// A confirm label is sealed before the iteration opens that it is to judge: later, its candidates may be known.
pub(super) fn sealed_late(state: &State, experiment: &ExperimentId, said: &LabelSealed) -> Found {
    if !state.asks(Question::SealedBefore) || !is_confirm(state, experiment, &said.design) {
        return None;
    }
    let (id, it) = state.fold::<Iterations>().open_in(experiment)?;
    no(
        format!(
            "a confirm label that is sealed before {id} opens, at seq {}",
            it.opened_seq
        ),
        "one sealed while it is open",
    )
}

/// A gate on confirm reads every label of its block.
pub(super) fn left_out(state: &State, it: &Iteration) -> Found {
    if !state.asks(Question::ConfirmRows) {
        return None;
    }
    let block = state.fold::<Blocks>().by_experiment.get(&it.experiment);
    let Some(block) = block.filter(|block| block.sealed > 0) else {
        return no("a confirm block with sealed labels", "none");
    };
    (block.revealed != block.sealed).then(|| {
        (
            format!(
                "a gate on all {} sealed labels of the confirm block",
                block.sealed
            ),
            format!("{} of them revealed", block.revealed),
        )
    })
}

/// Whether a label of the block was kept back past the last day of all: then no gate can be evaluated any more, and the
/// iteration may stop without.
pub(super) fn is_kept_back(state: &State, it: &Iteration, at: Timestamp) -> bool {
    let block = state.fold::<Blocks>().by_experiment.get(&it.experiment);
    state.asks(Question::ConfirmRows)
        && block.is_some_and(|block| {
            block.revealed != block.sealed && block.reveal_by.is_some_and(|day| day < at)
        })
}
