//! Who pays for an accepted patch.

use clover_event::id::AccountId;
use clover_event::id::IterationId;
use clover_event::payload::predicate::PatchAccepted;
use clover_ground::time::Timestamp;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::budgets;
use crate::budgets::Account;
use crate::budgets::Budgets;
use crate::budgets::PatchCharge;
use crate::budgets::Purpose;
use crate::decisions::AllDecisions;
use crate::decisions::rules::plan_of;
use crate::iterations::Iteration;
use crate::iterations::Iterations;

/// Where an account of patches is open, each accepted patch names a charge of its own to it, of this quarter where that
/// refills. The account is never overdrawn, and so bounds how many are accepted.
pub(super) fn check(
    state: &State,
    it: &Iteration,
    at: Timestamp,
    said: &PatchAccepted,
) -> RuleAnswer {
    if !state.asks(Question::ChargedPatches) {
        return Ok(());
    }
    let budgets = state.fold::<Budgets>();
    let mut accounts = budgets.accounts.values();
    let is_named = state.asks(Question::PatchAccount) && named(state, it).is_some();
    if !is_named && !accounts.any(|account| account.purpose() == Purpose::Patches) {
        let found = said.charge.map(|charge| charge.to_string());
        ensure!(
            found.is_none(),
            "no charge: no account of patches is open",
            found.as_deref().unwrap_or("none")
        );
        return Ok(());
    }
    let charge = said
        .charge
        .required("a charge to an account whose unit is patch")?;
    let Some(paid) = budgets.patches.get(&charge) else {
        let expected = "a charge to an account whose unit is patch";
        return unmet(expected, charge.to_string());
    };
    check_account(state, it, paid)?;
    if let Some(quarter) = paid.quarter.filter(|quarter| *quarter != at.quarter()) {
        let expected = format!("a charge of {}", at.quarter());
        return unmet(expected, format!("one of {quarter}"));
    }
    let paid = &state.fold::<AllDecisions>().paid_patches;
    if let Some(seq) = paid.get(&charge.0.to_hex()) {
        let found = format!("one spent at seq {seq}");
        return unmet("a charge that paid for no other patch", found);
    }
    Ok(())
}

/// The account of patches that the plan of an iteration names.
fn named<'a>(state: &'a State, it: &Iteration) -> Option<&'a AccountId> {
    let design = plan_of(state, it)?.design.as_ref()?;
    design.patch_account.as_ref()
}

/// The account that pays for patches of an iteration, by the plan or since it was opened first.
pub fn patch_payer<'a>(
    state: &'a State,
    iteration: &IterationId,
) -> Option<(&'a AccountId, &'a Account)> {
    let it = state.fold::<Iterations>().by_id.get(iteration)?;
    budgets::patch_account(state.fold::<Budgets>(), named(state, it))
}

/// A second account is no second limit.
fn check_account(state: &State, it: &Iteration, paid: &PatchCharge) -> RuleAnswer {
    if !state.asks(Question::PatchAccount) {
        return Ok(());
    }
    let named = named(state, it);
    let pays = budgets::patch_account(state.fold::<Budgets>(), named).map(|(id, _)| id);
    let expected = match (named, pays) {
        (Some(named), _) => format!(
            "a charge to {named}, the plan's patch_account: an account of patches that no optimizer charges"
        ),
        (None, Some(first)) => {
            format!("a charge to {first}, the account of patches that was opened first")
        }
        (None, None) => "a charge to an account of patches that no optimizer charges".to_owned(),
    };
    ensure!(
        pays == Some(&paid.account),
        expected,
        format!("one to {}", paid.account)
    );
    Ok(())
}
