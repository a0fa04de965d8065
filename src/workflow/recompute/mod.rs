//! Recomputing what was decided: the statistics behind an event run again from its recorded inputs, terms and seed,
//! and compared with what it says.
//!
//! [`RECIPES`] has one line per kind that can be computed again. Every number must be the same to the bit where the
//! same program computed it; where another did, within 1e-9 relative, with every word and decision the same.

mod compare;
mod estimates;
mod iterations;
mod reports;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::read::Read;
use crate::projection::audits::Audits;
use crate::workflow::analyze::AnalyzeError;
use crate::workflow::estimate::planning::PlanError;
use crate::workflow::estimate::rows::Covariates;
use crate::workflow::estimate::rows::RowsError;

pub use compare::Difference;
pub use compare::Outcome;
pub use compare::compare;
pub use estimates::Computed;
pub use iterations::Iterations;

/// Why an event cannot be computed again.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something that it read is not at hand any more.
    #[error(transparent)]
    Rows(RowsError),
    /// The statistics refuse what it read.
    #[error(transparent)]
    Refused(#[from] AnalyzeError),
    /// It plans from numbers that are not there.
    #[error(transparent)]
    Unplanned(#[from] PlanError),
    /// It names something that its inputs do not have.
    #[error("{0}")]
    Missing(String),
}

impl From<RowsError> for Gone {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Ledger(error) => Self::Ledger(error),
            covariate @ RowsError::Covariate { .. } => Self::Rows(covariate),
        }
    }
}

/// Computes an event's payload again.
pub type Run = fn(&mut Context<'_>, &Read) -> Result<Payload, Gone>;

/// How a kind is computed again.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The kind.
    pub kind: Kind,
    /// Its computation.
    pub run: Run,
}

/// One line per kind that can be computed again.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        kind: Kind::CalibratorFitted,
        run: estimates::fitted,
    },
    Recipe {
        kind: Kind::EstimateRecorded,
        run: estimates::estimate,
    },
    Recipe {
        kind: Kind::ContrastRecorded,
        run: estimates::contrast,
    },
    Recipe {
        kind: Kind::OuaEstimated,
        run: estimates::oua,
    },
    Recipe {
        kind: Kind::CoverageChecked,
        run: estimates::coverage,
    },
    Recipe {
        kind: Kind::TransportTested,
        run: estimates::transport,
    },
    Recipe {
        kind: Kind::PlanRecorded,
        run: estimates::plan,
    },
    Recipe {
        kind: Kind::LabelProcessAudited,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::PrenticeChecked,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::ResidualsAudited,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::SlicesClassified,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::CardPublished,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::IterationPausedForLabels,
        run: iterations::before,
    },
    Recipe {
        kind: Kind::GateEvaluated,
        run: iterations::gate,
    },
    Recipe {
        kind: Kind::ReportPublished,
        run: reports::published,
    },
    // The next kind goes here.
];

/// The recipe of a kind.
pub fn recipe(kind: Kind) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.kind == kind)
}

/// What recomputations share.
pub struct Context<'a> {
    /// The ledger.
    pub ledger: &'a Ledger,
    covariates: &'a mut dyn Covariates,
    /// Fits and audits of the whole log, which estimates are marked by.
    governed: Vec<(u64, ExperimentId, Payload)>,
    /// The last computation, for events that come from the same.
    last: Option<Computed>,
    /// The last iteration, likewise.
    iteration: Option<iterations::Kept>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({} fits and audits)", self.governed.len())
    }
}

impl<'a> Context<'a> {
    /// Over a ledger, with whoever knows the covariates.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn new(
        ledger: &'a Ledger,
        covariates: &'a mut dyn Covariates,
    ) -> Result<Self, LedgerError> {
        let mut governed = Vec::new();
        ledger.entries::<LedgerError>(0, ledger.size(), |read| {
            let is_one = matches!(
                read.event.payload,
                Payload::CalibratorFitted(_) | Payload::TransportTested(_)
            );
            if let Some(experiment) = read.event.header.experiment.filter(|_| is_one) {
                governed.push((read.stored.seq, experiment, read.event.payload));
            }
            Ok(())
        })?;
        Ok(Self {
            ledger,
            covariates,
            governed,
            last: None,
            iteration: None,
        })
    }

    /// Audits of an experiment as they stood before an entry.
    fn audits(&self, experiment: &ExperimentId, below: u64) -> Audits {
        let mut audits = Audits::default();
        let before = self.governed.iter().take_while(|(seq, ..)| *seq < below);
        for (seq, of, payload) in before.filter(|(_, of, _)| of == experiment) {
            audits.take(of, *seq, payload);
        }
        audits
    }

    /// Computes an event again and compares; `None` for a kind without a recipe.
    pub fn replay(&mut self, read: &Read) -> Option<(Outcome, Option<Payload>)> {
        let recipe = recipe(read.event.kind())?;
        Some(match (recipe.run)(self, read) {
            Ok(again) => (compare(&read.event.payload, &again), Some(again)),
            Err(gone) => (Outcome::Gone(gone.to_string()), None),
        })
    }
}
