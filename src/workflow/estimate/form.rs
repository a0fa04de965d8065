//! The form of what is recorded, by rulebook.

use clover_event::payload::estimated::RowUse;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

/// What events say, by the rulebook that they are recorded under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Before rulebook 18: intervals as statistics give them, and differences without the claims of their sides.
    Bare,
    /// From rulebook 18 on: nothing is told apart unless both sides are checked, and equal labels give no width of zero.
    Claimed,
    /// From rulebook 23 on: also, nothing is told apart that the worst scores of missing prompts would change.
    Compared,
    /// From rulebook 24 on: also, nothing is told apart that shares no prompt.
    Shared,
}

/// Which rows are read, by the rulebook in force.
pub fn use_of_rows(state: &State) -> Option<RowUse> {
    let asks = state.asks(Question::RowsBefore);
    asks.then_some(RowUse::ScoredBefore)
}

impl Form {
    /// The form that readers are shown, whatever the rulebook in force asks of the record.
    pub const NEWEST: Self = Self::Shared;

    /// The form that the rulebook in force asks for.
    pub fn asked(state: &State) -> Self {
        if state.asks(Question::CommonPrompts) {
            Self::Shared
        } else if state.asks(Question::MissingPrompts) {
            Self::Compared
        } else if state.asks(Question::CheckedClaims) {
            Self::Claimed
        } else {
            Self::Bare
        }
    }
}
