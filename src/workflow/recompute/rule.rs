//! The rule `recompute`: an arbiter's numbers are those that the entries before give.

use crate::event::Kind;
use crate::ledger::Again;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::History;
use crate::ledger::LedgerError;
use crate::ledger::Recompute;
use crate::ledger::State;
use crate::workflow::estimate::rows::NoCovariates;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::Outcome;
use crate::workflow::recompute::Shared;
use crate::workflow::recompute::compare;
use crate::workflow::recompute::recipe;

/// The name in findings.
const NAME: &str = "recompute";

/// What is computed again at append and under `verify --recompute`.
pub const AGAIN: Again = Again {
    kinds: &[
        Kind::CalibratorFitted,
        Kind::EstimateRecorded,
        Kind::ContrastRecorded,
        Kind::OuaEstimated,
        Kind::CoverageChecked,
        Kind::TransportTested,
        Kind::PlanRecorded,
        Kind::OpeDiagnosed,
        Kind::OpeEstimated,
        Kind::JudgeDriftChecked,
        // The next kind goes here.
    ],
    reads: &[
        Kind::AnchorSetRegistered,
        Kind::CalibratorFitted,
        Kind::JudgeDriftChecked,
        Kind::JudgeRegistered,
        Kind::LabelDesignRegistered,
        Kind::LabelRecorded,
        Kind::LabelRevealed,
        Kind::LabelSealed,
        Kind::LogprobRecorded,
        Kind::LogprobsChecked,
        Kind::ScoreConflict,
        Kind::ScoreRecorded,
        Kind::TransportTested,
    ],
    make: || Box::<Recomputed>::default(),
};

/// Estimates and what belongs to them, computed again from scores and labels.
#[derive(Debug, Default)]
struct Recomputed(Shared);

impl Recompute for Recomputed {
    fn judge(
        &mut self,
        _: &State,
        event: &Candidate<'_>,
        history: &dyn History,
        breaches: &mut Vec<Breach>,
    ) -> Result<bool, LedgerError> {
        let mut nobody = NoCovariates;
        let mut context = Context::new(history, &mut nobody, &mut self.0);
        let Some(recipe) = recipe(event.event.kind()) else {
            return Ok(true);
        };
        context.govern(event.seq)?;
        let (expected, found) = match (recipe.run)(&mut context, event.seq, event.event) {
            // Texts are private: whoever holds their keys can replay it, the log alone cannot.
            Err(Gone::Rows(_) | Gone::Logs(_)) => return Ok(false),
            Err(Gone::Ledger(error)) => return Err(error),
            Err(gone) => ("what earlier entries give".to_owned(), gone.to_string()),
            Ok(again) => match compare(&event.event.payload, &again) {
                Outcome::Differs(differences) => match differences.first() {
                    Some(first) => (
                        format!("{} {}", first.path, first.recomputed),
                        first.recorded.to_string(),
                    ),
                    None => return Ok(true),
                },
                _ => return Ok(true),
            },
        };
        breaches.push(Breach::new(NAME, expected, found));
        Ok(true)
    }
}
