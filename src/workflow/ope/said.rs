//! Off-policy numbers as events say them.

use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::Claim;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::ope::GuideEntry;
use clover_event::payload::ope::OpeDiagnosed;
use clover_event::payload::ope::OpeEstimated;
use clover_event::payload::ope::OpeTerms;
use clover_event::payload::ope::StackShare;
use clover_event::payload::overlap::Admissibility;
use clover_event::payload::overlap::CapFigure;
use clover_event::payload::overlap::GroupFigure;
use clover_event::payload::overlap::HillFigures;
use clover_event::payload::overlap::OverlapGrade;
use clover_event::payload::overlap::OverlapThresholds;
use clover_event::payload::overlap::ResidualFigures;
use clover_event::payload::overlap::WeightFigures;
use clover_ground::digest::Digest;
use clover_num::Finite;
use clover_stats::calibrator::Calibrator;
use clover_stats::direct::Scale;
use clover_stats::offpolicy;
use clover_stats::offpolicy::Estimator;
use clover_stats::offpolicy::GateName;
use clover_stats::offpolicy::Grade;
use clover_stats::offpolicy::GuideRow;
use clover_stats::offpolicy::OffPolicy;
use clover_stats::offpolicy::OverlapVerdict;
use clover_stats::offpolicy::Reason;
use clover_stats::offpolicy::Thresholds;
use clover_stats::overlap;
use clover_stats::sample::Clusters;
use clover_stats::sample::SampleError;
use clover_stats::sample::Weights;

use crate::estimate::compute::Found;
use crate::estimate::model;
use crate::estimate::terms;
use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::ends;
pub(super) use crate::estimate::terms::finite;
use crate::estimate::terms::size;
use crate::estimate::terms::text;
use crate::ope::compute::Numbers;
use crate::ope::compute::TargetDiagnosis;

/// Seed of the outer folds of calibrated IPS.
const OUTER_SEED: u64 = 1042;
/// The mean under overlap weights: of the rows that both policies could have given.
const OVERLAP_WEIGHTS: &str = "overlap-weights";
/// The self-normalised mean over cohorts with overlap.
const COHORTS: &str = "snips-cohorts";

/// An estimate with the failed audit that stands against its policy, after which nobody may read it: every estimator here
/// weighs or models rewards of the calibrator that was audited.
#[must_use]
pub fn marked(estimate: OpeEstimated, failed: Option<TransportStanding>) -> OpeEstimated {
    let verdict = match failed {
        Some(_) => Admissibility::Refused,
        None => estimate.verdict,
    };
    OpeEstimated {
        transport: failed,
        verdict,
        ..estimate
    }
}

/// A diagnosis with what may be claimed of the direct level: one that is withheld is refused here too.
#[must_use]
pub fn claimed(diagnosed: OpeDiagnosed, found: &Found, experiment: &ExperimentId) -> OpeDiagnosed {
    let place = found.gathered.policy(diagnosed.policy.as_str());
    let Some(place) = place.filter(|_| diagnosed.draws) else {
        return diagnosed;
    };
    let standing = found.standing(experiment, place);
    let claim = found.claim(place, standing);
    let support = found.analysis.policies[place].support;
    let failed = standing.filter(|of| of.state == TransportState::Fail);
    let (verdict, reason) = match claim {
        Claim::OwnLabels | Claim::BorrowedChecked => (Admissibility::Admissible, None),
        Claim::BorrowedUnchecked => (
            Admissibility::Warned,
            Some("labels of others calibrate it, and no audit passed".to_owned()),
        ),
        Claim::Uncalibrated => (
            Admissibility::Refused,
            Some("a mean of raw scores".to_owned()),
        ),
        Claim::Refused => {
            let outside = 100.0 * support.map_or(0.0, |of| of.out_of_range);
            let reason = match failed {
                Some(audit) => format!("level withheld: its audit failed at seq {}", audit.seq),
                None => {
                    format!("level withheld: {outside:.1} % of scores outside the labelled ones")
                }
            };
            (Admissibility::Refused, Some(reason))
        }
    };
    let direct = Estimator::Direct.name();
    let guide = diagnosed.guide.into_iter().map(|row| {
        if row.estimator.as_str() != direct {
            return row;
        }
        GuideEntry {
            reasons: reason.iter().map(|reason| text(reason)).collect(),
            verdict,
            ..row
        }
    });
    let audited = standing.map_or(0, |_| found.gathered.newest_audit);
    OpeDiagnosed {
        direct_claim: Some(claim),
        guide: guide.collect(),
        through_seq: count(diagnosed.through_seq.value().max(audited)),
        ..diagnosed
    }
}

/// Terms over those of a direct estimate: thresholds as a manifest registers them, with its digest, else those of the CJE
/// paper, table 9.
pub fn terms(
    estimate: EstimateTerms,
    logger: PolicyId,
    planned: Option<(Digest, OverlapThresholds)>,
) -> OpeTerms {
    let (manifest, thresholds) = match planned {
        Some((digest, thresholds)) => (Some(digest), thresholds),
        None => (None, OverlapThresholds::default()),
    };
    OpeTerms {
        estimate,
        logger,
        manifest,
        outer_seed: count(OUTER_SEED),
        thresholds,
    }
}

fn thresholds(of: &OverlapThresholds) -> Thresholds {
    let unit = terms::unit;
    Thresholds {
        ess_good: unit(of.ess_good_micro),
        ess_warn: unit(of.ess_warn_micro),
        hill_good: unit(of.hill_good_micro),
        hill_warn: unit(of.hill_warn_micro),
        affinity_good: unit(of.affinity_good_micro),
        affinity_warn: unit(of.affinity_warn_micro),
        ttc_good: unit(of.ttc_good_micro),
        ttc_warn: unit(of.ttc_warn_micro),
        near_zero_max: unit(of.near_zero_max_micro),
        top_mass_max: unit(of.top_mass_max_micro),
        cv_max: unit(of.cv_max_micro),
        guarded_max: unit(of.guarded_max_micro),
    }
}

/// The digest of a calibrator's curves.
pub(super) fn calibrator_digest(calibrator: &Calibrator) -> Digest {
    model::bytes(calibrator, None).1
}

fn some(value: Option<f64>) -> Option<Finite> {
    value.and_then(Finite::new)
}

fn grade(of: Grade) -> OverlapGrade {
    match of {
        Grade::Good => OverlapGrade::Good,
        Grade::Unknown => OverlapGrade::Unknown,
        Grade::Warn => OverlapGrade::Warn,
        Grade::Critical => OverlapGrade::Critical,
    }
}

fn admissibility(of: OverlapVerdict) -> Admissibility {
    match of {
        OverlapVerdict::Admissible => Admissibility::Admissible,
        OverlapVerdict::Warned => Admissibility::Warned,
        OverlapVerdict::Refused => Admissibility::Refused,
        OverlapVerdict::Unavailable => Admissibility::Unavailable,
    }
}

fn words(reason: &Reason) -> String {
    match reason {
        Reason::NoDraws => "no draws of the policy for every logged prompt".to_owned(),
        Reason::NoLogProbabilities => "no log-probabilities".to_owned(),
        Reason::NotStabilised => "no stabilised weights".to_owned(),
        Reason::Missed(gate) => {
            let value = match gate.value {
                Some(value) => format!("{value:.3}"),
                None => "none".to_owned(),
            };
            format!("{} {value} against {:.2}", gate.name.name(), gate.threshold)
        }
        Reason::Unmeasured(gate) => format!("{} not measured", gate.name()),
        Reason::RestsOnOutcomeModel => "rests on its outcome model alone".to_owned(),
        Reason::FewComponents => "fewer than two components may be read".to_owned(),
    }
}

fn entry(row: &GuideRow) -> GuideEntry {
    GuideEntry {
        estimator: text(row.estimator.name()),
        reasons: row
            .reasons
            .iter()
            .map(|reason| text(&words(reason)))
            .collect(),
        verdict: admissibility(row.verdict),
    }
}

fn figures(weights: &[f64]) -> Result<WeightFigures, SampleError> {
    let weights = Weights::new("weights", weights, weights.len())?;
    let found = overlap::concentration(weights);
    Ok(WeightFigures {
        cv_squared: finite(found.cv_squared),
        ess_fraction: finite(found.ess.fraction),
        hill: some(overlap::hill_stable(weights).index()),
        hill_band: overlap::hill_band(weights).and_then(|band| {
            Some(HillFigures {
                high: Finite::new(band.high)?,
                low: Finite::new(band.low)?,
                median: Finite::new(band.median)?,
            })
        }),
        max_over_median: some(found.max_over_median),
        max_share: finite(found.max_share),
        percentile_99_5: finite(found.percentile_99_5),
        top_5_percent: finite(found.top_5_percent),
    })
}

impl Numbers<'_> {
    fn scale(&self) -> Scale {
        self.found.analysis.output_scale
    }

    fn through(&self) -> u64 {
        self.found.gathered.newest.max(self.logs.newest)
    }

    fn estimated(
        &self,
        estimator: &str,
        (of, prompts): (&OffPolicy, &Clusters),
        shares: &[(Estimator, f64)],
        verdict: Admissibility,
    ) -> OpeEstimated {
        let scale = self.scale();
        let alpha = terms::unit(self.terms.estimate.alpha_micro);
        let spread = of.spread(prompts, alpha).ok();
        let level = |unit: &f64| finite(scale.level(*unit));
        let total = |sampling: f64, calibration: f64| calibration / (sampling + calibration);
        OpeEstimated {
            build: text(BUILD),
            calibrator: self.calibrator,
            df: some(spread.as_ref().map(|of| of.df)),
            estimate: level(&of.value),
            estimator: text(estimator),
            interval: spread.as_ref().map(|of| ends(scale.interval(of.interval))),
            jackknife: of.jackknife.iter().map(level).collect(),
            policy: self.target.clone(),
            rows: size(of.influence.len()),
            rows_root: Root(self.root),
            se: some(spread.as_ref().map(|of| scale.difference(of.se))),
            share: some(spread.as_ref().map(|of| total(of.sampling, of.calibration))),
            stack: shares
                .iter()
                .map(|(of, share)| StackShare {
                    estimator: text(of.name()),
                    share: finite(*share),
                })
                .collect(),
            terms: self.terms.clone(),
            through_seq: count(self.through()),
            transport: None,
            verdict,
        }
    }

    fn estimates(&self, guide: &[GuideRow]) -> Vec<OpeEstimated> {
        let verdict = |estimator: Estimator| {
            let row = guide.iter().find(|row| row.estimator == estimator);
            row.map_or(Admissibility::Unavailable, |row| admissibility(row.verdict))
        };
        let own = self.estimates.iter().map(|(of, shares)| {
            let name = of.estimator.name();
            self.estimated(name, (of, &self.prompts), shares, verdict(of.estimator))
        });
        let mut said: Vec<_> = own.collect();
        // Restricted means answer another question, which is always said.
        if let Some(of) = &self.overlap_mean {
            let of = (of, &self.prompts);
            said.push(self.estimated(OVERLAP_WEIGHTS, of, &[], Admissibility::Warned));
        }
        if let Some((of, prompts)) = &self.cohort_mean {
            said.push(self.estimated(COHORTS, (of, prompts), &[], Admissibility::Warned));
        }
        said
    }

    fn residuals(&self) -> Option<ResidualFigures> {
        let (test, split) = self.residuals.as_ref()?;
        Some(ResidualFigures {
            correlation: some(split.correlation),
            direct: finite(split.direct),
            high: finite(test.interval.high),
            low: finite(test.interval.low),
            mean: finite(test.mean),
            p: finite(test.p),
            se: finite(test.standard_error),
        })
    }

    fn caps(&self) -> Vec<CapFigure> {
        let scale = self.scale();
        let points = self.caps.iter();
        points
            .map(|point| CapFigure {
                cap: finite(point.cap),
                cut: size(point.cut),
                estimate: finite(scale.level(point.estimate)),
                se: some(point.standard_error.map(|se| scale.difference(se))),
            })
            .collect()
    }

    fn groups(&self) -> Vec<GroupFigure> {
        let groups = self.groups.iter();
        groups
            .map(|group| GroupFigure {
                ess_fraction: some(group.concentration.map(|of| of.ess.fraction)),
                group: Text::new(group.name.clone()).unwrap_or_else(|| text("a group")),
                lift: finite(group.lift),
                rows: size(group.rows),
            })
            .collect()
    }
}

/// The events of one target.
pub(super) fn target(of: &Numbers<'_>) -> Result<TargetDiagnosis, SampleError> {
    let limits = thresholds(&of.terms.thresholds);
    let guide = offpolicy::guide(&of.evidence, &limits)?;
    let answer = offpolicy::logged_answer(&guide).ok();
    let gates = of.evidence.raw.as_ref().map(|raw| {
        let gates = offpolicy::overlap_gates(raw, &of.evidence, &limits);
        let tail = gates.iter().find(|gate| gate.name == GateName::Hill);
        let worst = gates.iter().map(|gate| gate.grade).max();
        (worst, tail.map(|gate| gate.grade))
    });
    let (worst, tail) = gates.unwrap_or_default();
    let diagnosed = OpeDiagnosed {
        affinity: finite(of.affinity),
        answer: answer.map(|estimator| text(estimator.name())),
        build: text(BUILD),
        caps: of.caps(),
        cle_factor: some(of.ttc.factor),
        direct_claim: None,
        draws: of.evidence.draws,
        filter: of.filter.clone(),
        groups: of.groups(),
        guarded: finite(of.stabilised.guarded()),
        guide: guide.iter().map(entry).collect(),
        near_zero: finite(of.evidence.near_zero.unwrap_or(0.0)),
        overlap: worst.map_or(OverlapGrade::Unknown, grade),
        policy: of.target.clone(),
        raw: figures(&of.raw)?,
        residuals: of.residuals(),
        rows_root: Root(of.root),
        stabilised: figures(&of.stabilised.weights)?,
        tail: tail.map_or(OverlapGrade::Unknown, grade),
        terms: of.terms.clone(),
        through_seq: count(of.through()),
        ttc: finite(of.ttc.ttc),
        ttc_by_total: some(of.ttc_by_total),
    };
    let ccdf = |weights: &[f64]| {
        let checked = Weights::new("weights", weights, weights.len());
        checked.map(overlap::ccdf)
    };
    Ok(TargetDiagnosis {
        ccdf: [ccdf(&of.raw)?, ccdf(&of.stabilised.weights)?],
        estimates: of.estimates(&guide),
        diagnosed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_thresholds_are_those_of_the_statistics() {
        assert_eq!(
            thresholds(&OverlapThresholds::default()),
            Thresholds::DEFAULT
        );
    }
}
