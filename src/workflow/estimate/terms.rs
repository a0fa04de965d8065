//! Terms of an estimate as events have them, and what they ask of the computation.

use clover_event::id::FieldId;
use clover_event::id::JudgeId;
use clover_event::id::Text;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::FamilyCorrection;
use clover_event::payload::estimated::CalibratorKind;
use clover_event::payload::estimated::CalibratorMode;
use clover_event::payload::estimated::IntervalEnds;
use clover_event::payload::estimated::LabelUse;
use clover_event::payload::estimated::PredictionWeight;
use clover_event::payload::estimated::Resampling;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::estimated::TransportState;
use clover_ground::seed::SeedTree;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_stats::calibrator::CalibratorChoice;
use clover_stats::calibrator::Mode;
use clover_stats::direct::Correction;
use clover_stats::direct::Exponential;
use clover_stats::direct::LabelDesign;
use clover_stats::direct::Scale;
use clover_stats::folds;
use clover_stats::inference::Interval;
use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::transport::AuditState;

use crate::analyze::Request;

/// Seed where nothing else is said.
pub const SEED_DEFAULT: u64 = 42;
/// Path of the bootstrap's seeds.
pub const BOOTSTRAP_LABEL: &str = "estimate/bootstrap";
/// The level of intervals where nothing else is said, in millionths.
const ALPHA_DEFAULT: i64 = 50_000;

/// The program, as events name it.
pub const BUILD: &str = concat!("clover ", env!("CARGO_PKG_VERSION"));

/// The usual terms for a judge.
pub fn usual(judge: JudgeId, covariates: Vec<FieldId>) -> EstimateTerms {
    EstimateTerms {
        alpha_micro: Micro::new(ALPHA_DEFAULT).unwrap_or_default(),
        bootstrap: None,
        covariates,
        environment: None,
        fold_seed: count(SEED_DEFAULT),
        folds: count(folds::FOLDS_DEFAULT as u64),
        iteration: None,
        judge,
        judge_scale: None,
        label_scale: None,
        labels: LabelUse::Representative,
        mode: CalibratorMode::Auto,
        rows: None,
        weight: None,
    }
}

/// Terms that a fit depends on: level, bootstrap and use of labels are not among them.
pub fn fit(of: &EstimateTerms) -> EstimateTerms {
    let mut usual = usual(of.judge.clone(), of.covariates.clone());
    usual.environment.clone_from(&of.environment);
    usual.fold_seed = of.fold_seed;
    usual.folds = of.folds;
    usual.judge_scale = of.judge_scale;
    usual.label_scale = of.label_scale;
    usual.mode = of.mode;
    usual.rows = of.rows;
    usual
}

/// A bootstrap of so many replicates.
pub fn resampling(replicates: u64, seed: u64) -> Option<Resampling> {
    Some(Resampling {
        replicates: Count::new(replicates)?,
        seed: Count::new(seed)?,
        seed_label: text(BOOTSTRAP_LABEL),
    })
}

/// The replicates' weights of a bootstrap.
pub fn weights(bootstrap: &Resampling) -> Exponential {
    let tree = SeedTree::of_number(bootstrap.seed.value());
    Exponential {
        seed: tree.child(bootstrap.seed_label.as_str()).seed(),
        replicates: usize::try_from(bootstrap.replicates.value()).unwrap_or(usize::MAX),
    }
}

/// The correction that an event names.
pub fn correction(of: Option<FamilyCorrection>) -> MultiplicityCorrection {
    match of {
        None => MultiplicityCorrection::BenjaminiHochberg,
        Some(FamilyCorrection::BenjaminiYekutieli) => MultiplicityCorrection::BenjaminiYekutieli,
        Some(FamilyCorrection::Bonferroni) => MultiplicityCorrection::Bonferroni,
        Some(FamilyCorrection::Holm) => MultiplicityCorrection::Holm,
    }
}

/// What terms ask of the computation, without a bootstrap.
pub(super) fn request(terms: &EstimateTerms) -> Request<'static> {
    let mut request = Request {
        judge_scale: terms.judge_scale.and_then(scale),
        label_scale: terms.label_scale.and_then(scale),
        folds: usize::try_from(terms.folds.value()).unwrap_or(usize::MAX),
        fold_seed: terms.fold_seed.value(),
        detail: true,
        ..Request::default()
    };
    request.settings.mode = match terms.mode {
        CalibratorMode::Auto => Mode::Auto,
        CalibratorMode::Monotone => Mode::Monotone,
        CalibratorMode::TwoStage => Mode::TwoStage,
    };
    request.options.alpha = unit(terms.alpha_micro);
    request.options.correction = match terms.weight {
        None | Some(PredictionWeight::One) => Correction::One,
        Some(PredictionWeight::Tuned) => Correction::Tuned,
    };
    request.options.design = match terms.labels {
        LabelUse::Representative => LabelDesign::Representative,
        LabelUse::Targeted => LabelDesign::TargetedUnknown,
        LabelUse::Weighted => LabelDesign::Stratified,
    };
    request
}

/// Millionths as a double.
pub(crate) fn unit(micro: Micro) -> f64 {
    micro.value() as f64 / 1e6
}

/// A scale on record.
pub(crate) fn scale(ends: ScaleEnds) -> Option<Scale> {
    Scale::new(unit(ends.low_micro), unit(ends.high_micro)).ok()
}

pub(crate) fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

pub(crate) fn size(value: usize) -> Count {
    count(value as u64)
}

/// A number that the statistics checked to be finite.
pub(crate) fn finite(value: f64) -> Finite {
    Finite::new(value).expect("BUG: a checked statistic is finite")
}

pub(crate) fn ends(interval: Interval) -> IntervalEnds {
    IntervalEnds {
        high: finite(interval.high),
        low: finite(interval.low),
    }
}

/// A word of the program's own.
pub(crate) fn text(word: &str) -> Text {
    Text::new(word).expect("BUG: a word of the program is a text")
}

pub(crate) fn kind(selected: CalibratorChoice) -> CalibratorKind {
    match selected {
        CalibratorChoice::Monotone => CalibratorKind::Monotone,
        CalibratorChoice::TwoStage => CalibratorKind::TwoStage,
    }
}

pub(super) fn state(state: AuditState) -> TransportState {
    match state {
        AuditState::Pass => TransportState::Pass,
        AuditState::Fail => TransportState::Fail,
        AuditState::Inconclusive(_) => TransportState::Inconclusive,
        AuditState::NotGraded => TransportState::NotGraded,
        AuditState::NotChecked => TransportState::NotChecked,
    }
}

#[cfg(test)]
mod tests {
    use clover_projection::audits::obstacles;

    use super::*;

    /// What nobody chose is what the rule of audits takes for it.
    #[test]
    fn usual_terms_are_usual_to_audits() {
        let of = usual("judge".parse().unwrap(), Vec::new());
        assert!(obstacles::are_usual(&of, None));
        let mut other = of.clone();
        other.fold_seed = count(7);
        assert!(!obstacles::are_usual(&other, None));
        let mut other = of;
        other.mode = CalibratorMode::TwoStage;
        assert!(!obstacles::are_usual(&other, None));
    }
}
