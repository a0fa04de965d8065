//! Calibrators on record: which there are, and what one says of a new score.

use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::IterationId;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::CalibratorFitted;
use clover_ledger::Ledger;
use clover_projection::reader::LogReader;
use clover_projection::reader::Model;
use clover_stats::calibrator::Model as CalibratorModel;
use clover_stats::direct::Scale;
use clover_stats::inference::Interval;
use clover_stats::reliability::CalibrationLine;
use clover_stats::student::Alternative;
use clover_workflow::estimate::compute;
use clover_workflow::estimate::model;
use clover_workflow::estimate::planning::LABELS_MIN;
use clover_workflow::estimate::rows;
use clover_workflow::estimate::rows::Which;

use crate::error::SessionError;
use crate::estimates::EstimateError;
use crate::home::Home;
use crate::texts::Texts;

/// Least hex digits by which a calibrator's digest is named.
const DIGITS_MIN: usize = 8;
/// Level of the interval of a slope.
const SLOPE_LEVEL: f64 = 0.95;

/// A calibrator on record.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Its entry.
    pub seq: u64,
    /// Its event.
    pub id: EventId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// What the event says.
    pub said: CalibratorFitted,
}

impl Fit {
    /// Whether this is what somebody named: a position, an event's id, or the first digits of either digest.
    fn is_named(&self, name: &str) -> bool {
        let digits = name.len() >= DIGITS_MIN;
        name == self.seq.to_string()
            || digits && self.id.to_string().starts_with(name)
            || digits && self.said.calibrator.to_hex().starts_with(name)
    }
}

#[derive(Default)]
struct Fits(Vec<Fit>);

impl Model for Fits {
    fn take(&mut self, seq: u64, event: &clover_event::Event) {
        if let (Payload::CalibratorFitted(said), Some(experiment)) =
            (&event.payload, event.experiment())
        {
            self.0.push(Fit {
                seq,
                id: event.id,
                experiment: experiment.clone(),
                said: (**said).clone(),
            });
        }
    }
}

/// Every calibrator below a position, in the order of the log.
///
/// # Errors
/// [`SessionError::Ledger`].
pub fn list(ledger: &Ledger, below: u64) -> Result<Vec<Fit>, SessionError> {
    Ok(LogReader::below(ledger, below)
        .into_model(Fits::default())?
        .0)
}

/// The newest calibrator that estimates of one environment were made with, named as `domain=law`.
///
/// # Errors
/// [`EstimateError::NoLocalCalibrator`] where there is none, and [`SessionError::Ledger`].
pub fn local(ledger: &Ledger, below: u64, environment: &str) -> Result<Fit, SessionError> {
    let is_of =
        |scope: &EnvironmentScope| environment == format!("{}={}", scope.family, scope.environment);
    let mut fits = list(ledger, below)?;
    fits.retain(|fit| fit.said.terms.environment.as_ref().is_some_and(is_of));
    let none = || EstimateError::NoLocalCalibrator(environment.to_owned());
    Ok(fits.pop().ok_or_else(none)?)
}

/// The calibrator that is named; where none is, the newest that estimates over all rows were made with.
///
/// # Errors
/// [`EstimateError::NoCalibrator`] where none or several have the name, and [`SessionError::Ledger`].
pub fn find(ledger: &Ledger, below: u64, name: Option<&str>) -> Result<Fit, SessionError> {
    let mut fits = list(ledger, below)?;
    let Some(name) = name else {
        fits.retain(|fit| {
            let terms = &fit.said.terms;
            terms.iteration.is_none() && terms.environment.is_none()
        });
        let none = EstimateError::NoCalibrator { name: None };
        return Ok(fits.pop().ok_or(none)?);
    };
    fits.retain(|fit| fit.is_named(name));
    let same = |one: &Fit, two: &Fit| one.said.calibrator == two.said.calibrator;
    let newest = fits.pop();
    match newest {
        Some(newest) if fits.iter().all(|fit| same(fit, &newest)) => Ok(newest),
        _ => {
            let name = Some(name.to_owned());
            Err(EstimateError::NoCalibrator { name }.into())
        }
    }
}

/// A calibrator that is the one on record: fitted again from the rows that it names, or, for one of an iteration, read from the
/// curves that its digest covers.
#[derive(Debug)]
pub struct RefittedCalibrator {
    /// What is on record.
    pub fit: Fit,
    model: CalibratorModel,
    uses_covariates: bool,
    line: Option<CalibrationLine>,
    judge: Option<Scale>,
    output: Scale,
}

/// What a calibrator says of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibratedScore {
    /// The mean label that it expects, on the scale of labels.
    pub value: f64,
    /// Whether the score lies beyond every labelled score: there the curve goes on flat, and no label backs it.
    pub is_beyond: bool,
}

/// Fits a calibrator again and holds it to its record. That of an iteration is read from its curves and held to its digest:
/// `clover replay SEQ` fits it again.
///
/// # Errors
/// [`EstimateError::Changed`] where the rows or the curves give another one; and those of gathering rows.
pub fn load(home: &Home, ledger: &Ledger, fit: Fit) -> Result<RefittedCalibrator, SessionError> {
    let said = &fit.said;
    if said.terms.iteration.is_some() {
        return of_iteration(ledger, fit);
    }
    let which = Which {
        experiment: &fit.experiment,
        judge: &said.terms.judge,
        environment: said.terms.environment.as_ref(),
        covariates: &said.terms.covariates,
        fields: &[],
        places: &[],
        strata: false,
        use_of_rows: said.terms.rows,
        rows_below: said.through_seq.value().saturating_add(1),
        audits_below: 0,
    };
    let mut texts = Texts::new(home, ledger)?;
    let gathered = rows::gather(ledger, &which, &mut texts).map_err(EstimateError::Rows)?;
    let found = compute::compute(gathered, said.terms.clone(), &[], None, None)
        .map_err(EstimateError::Computation)?;
    let changed = EstimateError::Changed { seq: fit.seq };
    if found.digest() != Some(said.calibrator) {
        return Err(changed.into());
    }
    let analysis = found.analysis;
    let calibration = analysis.calibration.map_err(|_| changed)?;
    Ok(RefittedCalibrator {
        fit,
        uses_covariates: calibration.calibrator.uses_covariates,
        model: calibration.calibrator.full,
        line: calibration.line,
        judge: analysis.judge_scale,
        output: analysis.output_scale,
    })
}

/// A calibrator of an iteration, whose scores and labels are shares from 0 to 1.
fn of_iteration(ledger: &Ledger, fit: Fit) -> Result<RefittedCalibrator, SessionError> {
    let changed = EstimateError::Changed { seq: fit.seq };
    let bytes = ledger.past().blob(&fit.said.model.blake3)?;
    let bytes = bytes.ok_or(EstimateError::NoCurves { seq: fit.seq })?;
    let model = model::read(&bytes, &fit.said.calibrator).ok_or(changed)?;
    Ok(RefittedCalibrator {
        uses_covariates: fit.said.uses_covariates,
        fit,
        model,
        line: None,
        judge: Some(Scale::UNIT),
        output: Scale::UNIT,
    })
}

impl RefittedCalibrator {
    /// The iteration by whose rubric its scores are computed.
    pub fn iteration(&self) -> Option<&IterationId> {
        let of = self.fit.said.terms.iteration.as_ref()?;
        Some(&of.iteration)
    }

    /// Ends of the scale of scores.
    pub fn scores(&self) -> (f64, f64) {
        self.judge.unwrap_or(Scale::UNIT).ends()
    }

    /// Whether it rests on fewer labels than any plan asks for.
    pub fn is_thin(&self) -> bool {
        self.fit.said.labels.value() < LABELS_MIN
    }

    /// Ends of the scale of labels.
    pub fn labels(&self) -> (f64, f64) {
        self.output.ends()
    }

    /// Root mean squared error of a label out of fold, on the scale of labels.
    pub fn error(&self) -> f64 {
        self.output.difference(self.fit.said.oof_rmse.value())
    }

    /// The slope of labels on its predictions out of fold, with its interval of 95 %; `None` where predictions are all one
    /// value, or too few. 1 is right; below 1 predictions lie too far apart, above 1 too close together.
    pub fn slope(&self) -> Option<(f64, Interval)> {
        let slope = self.line?.slope;
        let within = slope.interval(SLOPE_LEVEL, Alternative::TwoSided).ok()?;
        Some((slope.mean, within))
    }

    /// Covariates that it needs, in their order.
    pub fn covariates(&self) -> impl Iterator<Item = &str> {
        let names = self.fit.said.terms.covariates.iter();
        names.map(FieldId::as_str).filter(|_| self.uses_covariates)
    }

    /// What it says of a score, with a value for each of [`covariates`](Self::covariates); `None` for a score outside its
    /// scale.
    pub fn apply(&self, score: f64, covariates: &[f64]) -> Option<CalibratedScore> {
        // Where all scores were one value, every score stands in the middle.
        let unit = self.judge.map_or(Some(0.5), |scale| scale.to_unit(score))?;
        let range = &self.fit.said.score_range;
        Some(CalibratedScore {
            value: self.output.level(self.model.predict(unit, covariates)),
            is_beyond: score < range.low.value() || score > range.high.value(),
        })
    }
}
