//! The rule `recompute`: an arbiter's numbers are those that the entries before give.

use clover_event::Kind;
use clover_event::Payload;
use clover_ledger::Again;
use clover_ledger::AtHand;
use clover_ledger::Breach;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::ProposedEvent;
use clover_ledger::Recompute;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use crate::estimate::rows::NoCovariates;
use crate::recompute::Context;
use crate::recompute::Recomputation;
use crate::recompute::RecomputeCache;
use crate::recompute::RecomputeError;
use crate::recompute::compare;
use crate::recompute::iterations;
use crate::recompute::recipe;
use crate::recompute::recipes;

/// The name in findings.
const NAME: RuleName = RuleName::Recompute;

/// Estimates and what belongs to them: computed again at append and under `verify --recompute`.
pub const AGAIN: Again = Again {
    kinds: &recipes::ESTIMATES,
    reads: &[
        Kind::AnchorSetRegistered,
        Kind::CalibratorFitted,
        Kind::DataIngested,
        Kind::EnvironmentsTested,
        Kind::GateObserved,
        Kind::JudgeCompared,
        Kind::JudgeDriftChecked,
        Kind::JudgeRegistered,
        Kind::LabelDesignRegistered,
        Kind::LabelRecorded,
        Kind::LabelRevealed,
        Kind::LabelSealed,
        Kind::LogprobRecorded,
        Kind::LogprobsChecked,
        Kind::ManifestAmended,
        Kind::ManifestRegistered,
        Kind::RegimeSelected,
        Kind::ScoreConflict,
        Kind::ScoreRecorded,
        Kind::SgdOpened,
        Kind::SplitsListed,
        Kind::TransportTested,
        Kind::WfRunStarted,
    ],
    draws: &[],
    make: || Box::<Estimates>::default(),
};

/// What rows of iterations and of versions that run are read from: scores and labels, whatever names an iteration, and whatever
/// says which rows it read.
const ROWS: &[Kind] = &[
    Kind::AnchorSetRegistered,
    Kind::BatteryEvaluated,
    Kind::CalibratorFitted,
    Kind::CandidatesSealed,
    Kind::CardPublished,
    Kind::ConfirmLooked,
    Kind::ConfirmUnsealed,
    Kind::CoverageChecked,
    Kind::DataIngested,
    Kind::DeploymentActivated,
    Kind::DevObjectiveQueried,
    Kind::EvidenceRecorded,
    Kind::ExploitDiscovered,
    Kind::GateEvaluated,
    Kind::GeneratorObjectiveQueried,
    Kind::GeneratorRunOpened,
    Kind::GeneratorValidated,
    Kind::GuardrailChecked,
    Kind::IterationClosed,
    Kind::IterationOpened,
    Kind::IterationPausedForLabels,
    Kind::JudgeDriftChecked,
    Kind::JudgeRegistered,
    Kind::LabelDesignRegistered,
    Kind::LabelProcessAudited,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LabelScaleDeclared,
    Kind::LabelSealed,
    Kind::LedgerCreated,
    Kind::OuaEstimated,
    Kind::PatchAccepted,
    Kind::PatchProposed,
    Kind::PatchRejected,
    Kind::PatchWithdrawn,
    Kind::PrenticeChecked,
    Kind::PromptCommitted,
    Kind::RecalibrationCompleted,
    Kind::ReportPublished,
    Kind::ResidualsAudited,
    Kind::RubricRegistered,
    Kind::RulebookAdopted,
    Kind::ScoreConflict,
    Kind::ScoreRecorded,
    Kind::ScoreReplayed,
    Kind::ScoreScaleDeclared,
    Kind::ScoresRecomputed,
    Kind::SlicesClassified,
    Kind::SplitsFormed,
    Kind::SplitsListed,
    Kind::SynthAsked,
    Kind::SynthOpened,
    Kind::SynthReturned,
    Kind::SynthStopped,
];

/// What came of a version that runs: likewise, from live rows. What was given by hand is taken as it was said.
pub const LIVE: Again = Again {
    kinds: &recipes::LIVE,
    reads: ROWS,
    draws: &[],
    make: || Box::<OfLive>::default(),
};

/// What iterations computed: likewise, from the rows and the decisions before.
pub const ITERATIONS: Again = Again {
    kinds: &recipes::ITERATIONS,
    reads: ROWS,
    draws: &[Kind::CandidatesSealed],
    make: || Box::<OfIterations>::default(),
};

/// Estimates and what belongs to them, computed again from scores and labels.
#[derive(Debug, Default)]
struct Estimates(RecomputeCache);

impl Recompute for Estimates {
    fn check(
        &mut self,
        state: &State,
        event: &ProposedEvent<'_>,
        history: &dyn History,
        breaches: &mut Vec<Breach>,
    ) -> Result<AtHand, LedgerError> {
        // Of judges that were compared under an older rulebook replay alone says whether the numbers hold.
        let is_older =
            event.event.kind() == Kind::JudgeCompared && !state.asks(Question::DoubtedJudges);
        if event.event.payload.iteration().is_some() || is_older {
            return Ok(AtHand::Yes);
        }
        let mut nobody = NoCovariates;
        let mut context = Context::new(history, &mut nobody, &mut self.0).before(state);
        context.govern(event.seq)?;
        check(&mut context, event, breaches)
    }
}

/// What iterations computed, from rows. One iteration's rows are held at a time.
#[derive(Debug, Default)]
struct OfIterations(RecomputeCache);

impl Recompute for OfIterations {
    fn check(
        &mut self,
        state: &State,
        event: &ProposedEvent<'_>,
        history: &dyn History,
        breaches: &mut Vec<Breach>,
    ) -> Result<AtHand, LedgerError> {
        if event.event.payload.iteration().is_none() {
            return Ok(AtHand::Yes);
        }
        let mut nobody = NoCovariates;
        let mut context = Context::new(history, &mut nobody, &mut self.0).before(state);
        match iterations::unbound(&mut context, event) {
            Ok(None) => check(&mut context, event, breaches),
            Ok(Some((expected, found))) => {
                breaches.push(Breach::new(NAME, expected, found));
                Ok(AtHand::Yes)
            }
            Err(RecomputeError::Ledger(error)) => Err(error),
            Err(gone) => {
                breaches.push(Breach::new(
                    NAME,
                    "what earlier entries give",
                    gone.to_string(),
                ));
                Ok(AtHand::Yes)
            }
        }
    }
}

/// What live rows gave. The judge of one run is held at a time.
#[derive(Debug, Default)]
struct OfLive(RecomputeCache);

impl Recompute for OfLive {
    fn check(
        &mut self,
        state: &State,
        event: &ProposedEvent<'_>,
        history: &dyn History,
        breaches: &mut Vec<Breach>,
    ) -> Result<AtHand, LedgerError> {
        let payload = &event.event.payload;
        let inputs = payload.inputs();
        let through = inputs.map(|rows| rows.through_seq.value());
        let is_opening = matches!(payload, Payload::GeneratorRunOpened(_));
        if through.is_none() && !is_opening {
            return Ok(AtHand::Yes);
        }
        let seen = event.event.header.seen.as_ref();
        let due = seen.map_or(0, |seen| seen.size.value()).saturating_sub(1);
        if let Some(through) = through.filter(|through| *through != due) {
            let expected = format!("rows through seq {due}");
            let found = format!("through seq {through}");
            breaches.push(Breach::new(NAME, expected, found));
            return Ok(AtHand::Yes);
        }
        let mut nobody = NoCovariates;
        let mut context = Context::new(history, &mut nobody, &mut self.0).before(state);
        check(&mut context, event, breaches)
    }
}

/// Computes an event again and says where it differs.
fn check(
    context: &mut Context<'_>,
    event: &ProposedEvent<'_>,
    breaches: &mut Vec<Breach>,
) -> Result<AtHand, LedgerError> {
    let Some(recipe) = recipe(event.event.kind()) else {
        return Ok(AtHand::Yes);
    };
    let (expected, found) = match (recipe.run)(context, event.seq, event.event) {
        // Texts are private: whoever holds their keys can replay it, the log alone cannot.
        Err(RecomputeError::Rows(_) | RecomputeError::Logs(_)) => return Ok(AtHand::Private),
        Err(RecomputeError::Unrecorded(_)) => return Ok(AtHand::Unrecorded),
        Err(RecomputeError::Ledger(error)) => return Err(error),
        Err(RecomputeError::Absent(what)) => return Ok(AtHand::Gone(what)),
        Err(gone) => ("what earlier entries give".to_owned(), gone.to_string()),
        Ok(again) => match compare(&event.event.payload, &again) {
            Recomputation::Differs(differences) => match differences.first() {
                Some(first) => (
                    format!("{} {}", first.path, first.recomputed),
                    first.recorded.to_string(),
                ),
                None => return Ok(AtHand::Yes),
            },
            _ => return Ok(AtHand::Yes),
        },
    };
    breaches.push(Breach::new(NAME, expected, found));
    Ok(AtHand::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_names_an_iteration_or_says_which_rows_it_read_is_read_again() {
        let is_named = |kind: &&Kind| {
            let fields = kind.fields();
            fields.inputs.is_some() || fields.iteration.is_some()
        };
        let missing: Vec<_> = Kind::ALL
            .iter()
            .filter(is_named)
            .filter(|kind| !ROWS.contains(kind))
            .collect();
        assert_eq!(missing, Vec::<&Kind>::new());
    }

    #[test]
    fn a_list_of_kinds_names_each_once() {
        for list in [AGAIN.reads, ROWS] {
            let once: std::collections::BTreeSet<_> = list.iter().collect();
            assert_eq!(once.len(), list.len());
        }
    }
}
