//! Confirm blocks: when one may be unsealed, which labels count in it, and that a gate leaves none of them out.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::AccountId;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::id::RowId;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::label::LabelSealed;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use serde::Deserialize;
use serde::Serialize;

use crate::decisions::AllDecisions;
use crate::decisions::rules::plan_of;
use crate::iterations::Iteration;
use crate::iterations::Iterations;
use crate::iterations::PEEKS_MAX;
use crate::judges::Judges;
use crate::judges::score_key;
use crate::splits;
use crate::splits::Splits;

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
pub struct PeekPayment {
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
    pub paid: BTreeMap<EventId, PeekPayment>,
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
    fn label_of(&self, experiment: &ExperimentId, design: &DesignId) -> PeekPayment {
        let block = self.by_experiment.get(experiment);
        let confirm = block.is_some_and(|block| block.designs.contains(design));
        PeekPayment {
            design: (!confirm).then(|| design.clone()),
            experiment: experiment.clone(),
        }
    }
}

/// A charge pays for the labels of one design, or of one confirm block.
pub(super) fn check_paid(
    state: &State,
    experiment: &ExperimentId,
    said: &LabelRevealed,
) -> RuleAnswer {
    if !state.asks(Question::OneCharge) {
        return Ok(());
    }
    let blocks = state.fold::<Blocks>();
    let Some(before) = blocks.paid.get(&said.charge) else {
        // The first reveal that it pays for.
        return Ok(());
    };
    let now = blocks.label_of(experiment, &said.design);
    let labels = before
        .design
        .as_ref()
        .map_or("the confirm block".to_owned(), |design| {
            format!("design {design}")
        });
    ensure!(
        *before == now,
        "a charge that paid for no other labels",
        format!("one that paid for {labels} of {}", before.experiment)
    );
    Ok(())
}

/// What forbids a label of an older block: that its seal stands below the entry that formed the newest split. A block whose
/// designs no split followed has no older one: what it holds was sealed after them.
pub(super) fn of_older_block(
    state: &State,
    experiment: &ExperimentId,
    said: &LabelRevealed,
) -> Option<Fact> {
    let is_asked = state.asks(Question::ConfirmRows) && is_confirm(state, experiment, &said.design);
    let block = state.fold::<Blocks>().by_experiment.get(experiment);
    let newest_split = block.filter(|_| is_asked).and_then(|block| block.since)?;
    let fields = [said.design.as_str(), said.row.as_str()];
    Some(Fact::ForbidsBelow {
        digest: registry::natural_key_of(Kind::LabelSealed, experiment, &fields),
        before: newest_split,
        rule: RuleName::Sealing,
    })
}

/// The judge whose scores of confirm rows an iteration reads.
pub(crate) fn judge_of(state: &State, it: &Iteration) -> Option<JudgeId> {
    let plan = plan_of(state, it).and_then(|plan| plan.design.as_ref());
    let named = plan.and_then(|design| design.judge.as_ref());
    state.fold::<Judges>().of(&it.experiment)?.read_by(named)
}

/// What a reveal needs: a score of its row by the iteration's judge, from before the unsealing. A row without one could be left
/// out of every gate by whoever scores.
pub(super) fn score_of_row(
    state: &State,
    experiment: &ExperimentId,
    said: &LabelRevealed,
) -> Option<Fact> {
    let is_asked =
        state.asks(Question::ScoredBefore) && is_confirm(state, experiment, &said.design);
    let (id, it) = state
        .fold::<Iterations>()
        .open_in(experiment)
        .filter(|_| is_asked)?;
    let unsealed = state.fold::<AllDecisions>().of(id)?.unsealed?;
    let judge = judge_of(state, it)?;
    Some(Fact::Needs {
        digest: score_key(experiment, &judge, &said.row)?,
        before: unsealed.seq,
        rule: RuleName::Sealing,
    })
}

/// A judge, and the key of its score of a row.
pub type SoughtScores = (JudgeId, Box<dyn Fn(&RowId) -> Option<Digest>>);

/// How the score of a sealed confirm row is found: the judge of the open iteration, and the natural key of its score. `None`
/// where the rulebook in force does not ask for one.
///
/// # Errors
/// [`Unmet`](clover_ledger::Unmet) where no judge is the iteration's.
pub fn score_sought(state: &State, it: &Iteration) -> Result<Option<SoughtScores>, Unmet> {
    if !state.asks(Question::ScoredBefore) {
        return Ok(None);
    }
    let judge = judge_of(state, it).required("a judge of the iteration")?;
    let (experiment, by) = (it.experiment.clone(), judge.clone());
    let key = move |row: &RowId| score_key(&experiment, &by, row);
    Ok(Some((judge, Box::new(key))))
}

/// A judge whose scores can be looked for, before a label is shown: a plan that names none, beside scores of several, has none.
pub(super) fn check_judge(state: &State, it: &Iteration) -> RuleAnswer {
    if state.asks(Question::ScoredBefore) {
        judge_of(state, it)
            .required("a judge of the iteration, by its plan or as the only one with scores")?;
    }
    Ok(())
}

/// What forbids a score while confirm is unsealed: that its prompt lies in a confirm block. Whoever sees labels scores none of
/// its rows, until the iteration has ended.
pub(super) fn scored_late(
    state: &State,
    experiment: &ExperimentId,
    said: &ScoreRecorded,
) -> Option<Fact> {
    if !state.asks(Question::ScoredBefore) {
        return None;
    }
    let (id, _) = state.fold::<Iterations>().open_in(experiment)?;
    state.fold::<AllDecisions>().of(id)?.unsealed?;
    Some(Fact::Forbids {
        digest: splits::in_confirm(Some(experiment), &said.item),
        rule: RuleName::Sealing,
    })
}

/// Whether a design is one for confirm.
pub(super) fn is_confirm(state: &State, experiment: &ExperimentId, design: &DesignId) -> bool {
    let block = state.fold::<Blocks>().by_experiment.get(experiment);
    block.is_some_and(|block| block.designs.contains(design))
}

/// Whether a confirm block may be unsealed at a time, whoever pays for it: once, within the peeks of a quarter, after its
/// window.
///
/// # Errors
/// [`Unmet`](clover_ledger::Unmet): what was expected, and what stands there.
pub fn check_unsealing(
    state: &State,
    experiment: &ExperimentId,
    confirm_root: Root,
    at: Timestamp,
) -> RuleAnswer {
    let all = state.fold::<AllDecisions>();
    if let Some(seq) = all.roots.get(&confirm_root.0.to_hex()) {
        let found = format!("one unsealed at seq {seq}");
        return unmet("a confirm block that is not spent", found);
    }
    let quarter = at.quarter().to_string();
    let unsealed = all.quarters.get(&quarter).copied().unwrap_or(0);
    if state.asks(Question::PeekAccount) {
        ensure!(
            unsealed < PEEKS_MAX,
            format!("at most {PEEKS_MAX} confirm blocks unsealed in {quarter}"),
            format!("{unsealed} unsealed before, over all accounts")
        );
    }
    // A split without a window is drawn by hash, and a root of no split is refused by a fact.
    let splits = state.fold::<Splits>().by_experiment.get(experiment);
    let windows = splits.into_iter().flat_map(|of| of.formed.values());
    let end_of_windows = windows.filter_map(|formed| formed.t2).max();
    if let Some(end) = end_of_windows {
        ensure!(
            end <= at,
            format!("an unsealing from {end} on, where the confirm window ends"),
            at.to_string()
        );
    }
    Ok(())
}

/// An unsealing is paid from the account that the plan names, and from no other.
pub(super) fn check_account(state: &State, it: &Iteration, account: &AccountId) -> RuleAnswer {
    let plan = plan_of(state, it).and_then(|plan| plan.design.as_ref());
    let named = &plan
        .required("a plan that names its peek_account")?
        .peek_account;
    ensure!(
        account == named,
        format!("a charge to {named}, the plan's peek_account"),
        format!("one to {account}")
    );
    Ok(())
}

/// A confirm label is sealed before the iteration opens that it is to judge: later, its candidates may be known.
pub(super) fn check_early(
    state: &State,
    experiment: &ExperimentId,
    said: &LabelSealed,
) -> RuleAnswer {
    let is_asked =
        state.asks(Question::SealedBefore) && is_confirm(state, experiment, &said.design);
    if !is_asked {
        return Ok(());
    }
    if let Some((id, it)) = state.fold::<Iterations>().open_in(experiment) {
        return unmet(
            format!(
                "a confirm label that is sealed before {id} opens, at seq {}",
                it.opened_seq
            ),
            "one sealed while it is open",
        );
    }
    Ok(())
}

/// A gate on confirm reads every label of its block.
pub(super) fn check_whole(state: &State, it: &Iteration) -> RuleAnswer {
    if !state.asks(Question::ConfirmRows) {
        return Ok(());
    }
    let block = state.fold::<Blocks>().by_experiment.get(&it.experiment);
    let block = block
        .filter(|block| block.sealed > 0)
        .required("a confirm block with sealed labels")?;
    ensure!(
        block.revealed == block.sealed,
        format!(
            "a gate on all {} sealed labels of the confirm block",
            block.sealed
        ),
        format!("{} of them revealed", block.revealed)
    );
    Ok(())
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
