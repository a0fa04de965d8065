//! A plan of an iteration drafted from the fit window of an experiment. Nothing is appended.

use clover_event::id::AccountId;
use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::intake::SplitSeparation;
use clover_event::payload::manifest::CalibratorMode;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::manifest::RegressionGuard;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_ledger::State;
use clover_num::Count;
use clover_projection::budgets::Budgets;
use clover_projection::judges::ExperimentJudges;
use clover_projection::judges::Judges;
use clover_projection::rubrics::Rubrics;
use clover_projection::splits::Splits;
use clover_workflow::iterate::course::CourseError;
use clover_workflow::iterate::draft;
use clover_workflow::iterate::draft::Draft;
use clover_workflow::iterate::rows;
use clover_workflow::iterate::rows::FitWindow;

use crate::error::SessionError;
use crate::prereg::PreregError;

/// Label of the seed that a draft takes from the split.
const SEED_LABEL: &str = "clover/draft-seed/v1";

/// A draft, and what of the ledger it names.
#[derive(Clone, Debug)]
pub struct LedgerDraft {
    /// The account of looks at confirm labels, where there is one that can be meant.
    pub account: Option<AccountId>,
    /// The newest anchors, where some are registered.
    pub anchors: Option<AnchorSetId>,
    /// The numbers.
    pub draft: Draft,
    /// The experiment.
    pub experiment: ExperimentId,
    /// How confirm is kept apart, and the gap in seconds.
    pub separation: (SplitSeparation, Option<u64>),
    /// Hash of the rubric in force.
    pub rubric_hash: Digest,
    /// Seed of folds, bootstraps and searches: from the root of the fit part, so that nobody draws it again.
    pub seed: Digest,
    /// The window that was read.
    pub window: FitWindow,
}

/// Drafts a plan from the fit part of the split that an iteration would run on; `judge` is whose scores are read, where several
/// have some.
///
/// # Errors
/// [`PreregError::NoRubric`]; [`PreregError::SeveralJudges`]; [`SessionError::Course`] where rows, labels or a split lack.
pub fn draft(
    (history, state): (&dyn History, &State),
    experiment: &ExperimentId,
    judge: Option<&JudgeId>,
    through: u64,
) -> Result<LedgerDraft, SessionError> {
    let rubric = state.fold::<Rubrics>().in_force(experiment);
    let rubric_hash = rubric.map(|rubric| rubric.hash);
    let rubric_hash = rubric_hash.ok_or_else(|| PreregError::NoRubric(experiment.clone()))?;
    let mut accounts = state.fold::<Budgets>().accounts.iter();
    let account = accounts
        .find(|(_, account)| account.unit.as_str() == "peek")
        .map(|(id, _)| id.clone());
    let judges = state.fold::<Judges>().of(experiment);
    let mut scorers = judges.into_iter().flat_map(ExperimentJudges::own_scorers);
    if let (None, Some(first), Some(second)) = (judge, scorers.next(), scorers.next()) {
        let (first, second) = (first.clone(), second.clone());
        return Err(PreregError::SeveralJudges { first, second }.into());
    }
    let bare = bare(rubric_hash, judge);
    let window = rows::fit_window(history, experiment, &bare, through);
    let window = window.map_err(CourseError::Rows)?;
    let draft = draft::draft(&window).map_err(CourseError::Unfit)?;
    let splits = state.fold::<Splits>().by_experiment.get(experiment);
    let split = splits.and_then(|of| of.formed.get(&window.split));
    let separation = split.map_or((SplitSeparation::Hashed, None), |of| {
        (of.separation, of.gap_seconds)
    });
    Ok(LedgerDraft {
        account,
        anchors: window.anchors.clone(),
        draft,
        experiment: experiment.clone(),
        separation,
        rubric_hash,
        seed: Digest::labelled(SEED_LABEL, &window.fit_root.0.0),
        window,
    })
}

/// A design that names nothing but a rubric, and a judge where one is said: whatever else a draft says is found.
fn bare(rubric_hash: Digest, judge: Option<&JudgeId>) -> IterationDesign {
    IterationDesign {
        anchors: None,
        calibrator: CalibratorMode::Monotone,
        covariates: Vec::new(),
        dev_calls_max: Count::default(),
        environments: Vec::new(),
        frozen_paths: None,
        judge: judge.cloned(),
        must_not_regress: RegressionGuard::Guard,
        no_environment_claimed: None,
        patch_account: None,
        peek_account: AccountId::new("none").expect("BUG: a constant id"),
        rubric_hash,
        seed: Digest([0; 32]),
        slices: Vec::new(),
        topics: Vec::new(),
    }
}
