//! Who pays for an accepted patch.

use clover_event::payload::predicate::PatchAccepted;
use clover_ground::time::Timestamp;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::budgets::Budgets;
use crate::budgets::Purpose;
use crate::decisions::AllDecisions;

/// Where an account of patches is open, each accepted patch names a charge of its own to one, of this quarter where that
/// refills. The account is never overdrawn, and so bounds how many are accepted.
pub(super) fn check(state: &State, at: Timestamp, said: &PatchAccepted) -> RuleAnswer {
    if !state.asks(Question::ChargedPatches) {
        return Ok(());
    }
    let budgets = state.fold::<Budgets>();
    let mut accounts = budgets.accounts.values();
    if !accounts.any(|account| account.purpose() == Purpose::Patches) {
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
