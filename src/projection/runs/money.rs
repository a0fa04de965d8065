//! What calls of models cost and what is held for them, whatever they are asked for.

use clover_event::calls::AttemptClass;
use clover_event::calls::CallAttempt;
use clover_event::calls::CallOutcome;
use clover_event::calls::TokenCounts;
use clover_event::id::AccountId;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_event::payload::model_runs::BudgetReserved;
use clover_event::payload::model_runs::BudgetSettled;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::UsageState;
use clover_event::payload::model_terms::PriceRow;
use clover_ground::time::Timestamp;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_num::Count;

use super::RunHold;
use crate::budgets::Account;
use crate::budgets::Budgets;

/// What accounts of money count.
pub const MONEY: &str = "usd_micro";
/// Tokens of one kind that a call may say; more is suspect.
pub const TOKENS_MAX: u64 = 10_000_000;

/// What is on record of a call that its cost follows from.
#[derive(Clone, Copy, Debug)]
pub struct CallMoney<'a> {
    /// Every attempt.
    pub attempts: &'a [CallAttempt],
    /// The most that one attempt may cost, in millionths of a dollar.
    pub bound: Count,
    /// What it came to.
    pub outcome: CallOutcome,
    /// Tokens, where the answer says them.
    pub tokens: Option<&'a TokenCounts>,
    /// What the answer says of its tokens.
    pub usage: UsageState,
}

impl<'a> CallMoney<'a> {
    /// Of a call of a judge.
    pub fn of(said: &'a CallRecorded) -> Self {
        Self {
            attempts: &said.attempts,
            bound: said.bound_usd_micro,
            outcome: said.outcome,
            tokens: said.tokens.as_ref(),
            usage: said.usage,
        }
    }

    /// Of a call for another purpose.
    pub fn of_model(said: &'a ModelCallRecorded) -> Self {
        Self {
            attempts: &said.attempts,
            bound: said.bound_usd_micro,
            outcome: said.outcome,
            tokens: said.tokens.as_ref(),
            usage: said.usage,
        }
    }
}

/// What a call costs by what is on record of it, in millionths of a dollar.
pub fn cost(row: &PriceRow, of: &CallMoney<'_>) -> u64 {
    let bound = of.bound.value();
    let maybe = of.attempts.iter().filter(|of| of.class.is_maybe_billed());
    let maybe = bound.saturating_mul(maybe.count() as u64);
    let last = of.attempts.last();
    let was_answered = last.is_some_and(|of| of.class == AttemptClass::Ok);
    let last = match (of.outcome, was_answered, of.tokens, of.usage) {
        (CallOutcome::Lost | CallOutcome::Mismatched, ..) => bound,
        (_, false, ..) => 0,
        (_, true, Some(tokens), UsageState::Ok) => row.cost(tokens).value(),
        (_, true, ..) => bound,
    };
    maybe.saturating_add(last)
}

pub(crate) fn account<'a>(state: &'a State, id: &AccountId) -> Result<&'a Account, Unmet> {
    let of = state.fold::<Budgets>().accounts.get(id);
    of.required(&format!("account {id}, opened before"))
}

/// Too many tokens are suspect.
pub(crate) fn check_usage(tokens: Option<&TokenCounts>, usage: UsageState) -> RuleAnswer {
    let few = tokens.is_none_or(|of| {
        let parts = [of.input, of.cache_read, of.cache_write, of.output];
        parts.iter().all(|part| part.value() <= TOKENS_MAX)
    });
    ensure!(
        few || usage != UsageState::Ok,
        "suspect usage of more than 10,000,000 tokens",
        usage.as_str()
    );
    Ok(())
}

/// A hold fits into the cap, of which so much was charged, and into its account.
pub(crate) fn check_room(
    state: &State,
    said: &BudgetReserved,
    (cap, settled): (Option<Count>, u64),
    at: Timestamp,
) -> RuleAnswer {
    let amount = said.amount.value();
    if let Some(cap) = cap {
        ensure!(
            settled.saturating_add(amount) <= cap.value(),
            format!(
                "at most {} left of the cap",
                cap.value().saturating_sub(settled)
            ),
            said.amount.to_string()
        );
    }
    let left = account(state, &said.account)?.left(at);
    ensure!(
        amount <= left,
        format!("at most {left} left in {}", said.account),
        said.amount.to_string()
    );
    Ok(())
}

/// An open hold is charged at least what calls of its run cost and nobody paid yet.
pub(crate) fn check_settled(
    said: &BudgetSettled,
    hold: Option<&RunHold>,
    unpaid: u64,
) -> RuleAnswer {
    let hold = hold.required(&format!("an open hold of {}", said.run))?;
    ensure!(
        said.hold == hold.name,
        format!("the open hold, {}", hold.name.as_str()),
        said.hold.as_str()
    );
    let amount = said.amount.value();
    ensure!(
        amount >= unpaid,
        format!(
            "at least {unpaid}, what calls of {} cost and nobody paid yet",
            said.run
        ),
        said.amount.to_string()
    );
    ensure!(
        said.unknown <= said.amount,
        "no more unknown than charged",
        said.unknown.to_string()
    );
    ensure!(
        said.overrun == (amount > hold.amount),
        format!(
            "overrun where more than {} is charged, and nowhere else",
            hold.amount
        ),
        said.overrun.to_string()
    );
    Ok(())
}
