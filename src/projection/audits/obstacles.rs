//! Why an audit passes nothing, whatever its numbers are: fewer or more probes than its design draws, and a calibrator that
//! somebody could still choose once probes could be read.

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::AuditObstacle;
use clover_event::payload::estimated::CalibratorMode;
use clover_event::payload::estimated::EnvironmentRows;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::estimated::TransportState;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::audits::Audits;
use crate::audits::probes::PolicyProbes;
use crate::audits::probes::Probes;
use crate::designs::Designs;
use crate::splits::Splits;

/// Folds of a fit on usual terms.
const USUAL_FOLDS: u64 = 5;
/// Their seed.
const USUAL_SEED: u64 = 42;
/// One, in millionths.
const ONE: u128 = 1_000_000;
/// How many standard deviations the labels of a draw may lie from what it draws on average: beyond them is one draw in 370.
const DEVIATIONS: u128 = 3;

/// A calibrator, and the probes that audit it.
#[derive(Clone, Copy, Debug)]
pub struct ProbedFit<'a> {
    /// The design of its probes.
    pub design: &'a DesignId,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Rows of its environment that they were drawn from, where it has one.
    pub inside: Option<EnvironmentRows>,
    /// Its probes that count: those with a score from before their label could be read.
    pub labels: u64,
    /// The newest label of its calibrator.
    pub newest_label: Option<u64>,
    /// The policy.
    pub policy: &'a PolicyId,
    /// On which terms the calibrator was fitted.
    pub terms: &'a EstimateTerms,
}

/// Rows of a policy that a design could draw, and what it draws of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnProbes {
    /// Probability of each row, in millionths.
    pub inclusion_micro: u64,
    /// Rows that are left for it: scored, without a label for calibration, outside of confirm.
    pub left: u64,
    /// All rows that are scored.
    pub rows: u64,
}

impl DrawnProbes {
    /// How many of the rows that are left it draws on average, rounded.
    pub fn expected(self) -> u64 {
        let drawn = u128::from(self.left) * u128::from(self.inclusion_micro);
        u64::try_from((drawn + ONE / 2) / ONE).unwrap_or(u64::MAX)
    }

    /// What so many labels are, of its draw.
    pub fn obstacle(self, labels: u64) -> Option<AuditObstacle> {
        let rate = u128::from(self.inclusion_micro).min(ONE);
        let labels = u128::from(labels) * ONE;
        let is_beyond = |rows: u64| {
            let (rows, off) = (u128::from(rows), u128::from(rows) * rate);
            let off = off.abs_diff(labels);
            off.saturating_mul(off) > DEVIATIONS * DEVIATIONS * rows * rate * (ONE - rate)
        };
        let (least, most) = (u128::from(self.left) * rate, u128::from(self.rows) * rate);
        if labels < least && is_beyond(self.left) {
            Some(AuditObstacle::FewerProbes)
        } else if labels > most && is_beyond(self.rows) {
            Some(AuditObstacle::MoreProbes)
        } else {
            None
        }
    }
}

/// What a design draws of rows of an environment.
pub fn of_rows(rows: EnvironmentRows, inclusion_micro: i64) -> DrawnProbes {
    DrawnProbes {
        inclusion_micro: u64::try_from(inclusion_micro).unwrap_or(0),
        left: rows.left.value(),
        rows: rows.rows.value(),
    }
}

/// Probes of a policy in a design.
fn probes<'s>(
    state: &'s State,
    experiment: &ExperimentId,
    (policy, design): (&PolicyId, &DesignId),
) -> Option<&'s PolicyProbes> {
    let of = state.fold::<Probes>().by_experiment.get(experiment)?;
    of.by_policy.get(policy)?.get(design)
}

/// Rows without those of clusters that are kept for confirm, as the splits share them: what a rulebook below 24 counts.
fn outside_confirm(state: &State, experiment: &ExperimentId, rows: u64) -> u64 {
    let splits = state.fold::<Splits>().by_experiment.get(experiment);
    let formed = splits.into_iter().flat_map(|of| of.formed.values());
    formed.fold(rows, |rows, split| {
        let [confirm, dev, fit] = split.counts.map(u128::from);
        let all = confirm + dev + fit;
        let left = (u128::from(rows) * (dev + fit)).checked_div(all);
        left.map_or(rows, |left| u64::try_from(left).unwrap_or(rows))
    })
}

/// What a design draws of a policy's rows, as they stood when the first probe of the policy could be read, else as they stand.
pub fn drawn(
    state: &State,
    experiment: &ExperimentId,
    (policy, design): (&PolicyId, &DesignId),
    judge: &JudgeId,
) -> Option<DrawnProbes> {
    let of = state.fold::<Designs>().registered(experiment, design)?;
    let all = state.fold::<Probes>().by_experiment.get(experiment);
    let (rows, calibrated) = match probes(state, experiment, (policy, design)) {
        Some(of) => (of.rows.get(judge).copied(), of.calibrated),
        None => all.map_or((None, 0), |all| {
            let calibrated = all.calibrated.get(policy).map_or(0, |of| of.len() as u64);
            (Some(all.scored(policy, judge)), calibrated)
        }),
    };
    let rows = rows.unwrap_or(0);
    let left = rows.saturating_sub(calibrated);
    let left = if state.asks(Question::ConfirmedRows) {
        let formed = state.asks(Question::FormedConfirm);
        let kept = all.map(|all| all.kept_for_confirm((policy, design), (judge, rows), formed));
        left.saturating_sub(kept.unwrap_or(0))
    } else {
        outside_confirm(state, experiment, left)
    };
    Some(DrawnProbes {
        inclusion_micro: u64::try_from(of.inclusion_micro).unwrap_or(0),
        left,
        rows,
    })
}

/// Whether the terms of a fit are those of nobody's choice, where labels have this scale by declaration.
pub fn are_usual(of: &EstimateTerms, declared: Option<ScaleEnds>) -> bool {
    of.covariates.is_empty()
        && of.mode == CalibratorMode::Auto
        && (of.folds.value(), of.fold_seed.value()) == (USUAL_FOLDS, USUAL_SEED)
        && (of.label_scale.is_none() || of.label_scale == declared)
}

/// Why an audit passes nothing, as the rulebook in force asks.
pub fn obstacles(state: &State, of: &ProbedFit<'_>) -> Vec<AuditObstacle> {
    let (experiment, place) = (of.experiment, (of.policy, of.design));
    let mut found = Vec::new();
    let Some(probes) = probes(state, experiment, place) else {
        return found;
    };
    if state.asks(Question::FittedBefore) {
        let audits = state.fold::<Audits>();
        if of.newest_label.is_some_and(|newest| newest > probes.first) {
            found.push(AuditObstacle::FittedLate);
        }
        let on_terms = audits.first_on(experiment, of.terms);
        let is_early = on_terms.is_some_and(|seq| seq < probes.first);
        let declared = state.fold::<Designs>().scale(experiment);
        if !is_early && !are_usual(of.terms, declared) {
            found.push(AuditObstacle::OtherTerms);
        }
    }
    if state.asks(Question::AllProbes) {
        let drawn = match &of.terms.environment {
            None => drawn(state, experiment, place, &of.terms.judge),
            // How many rows an environment has is said by who computed it, and computed again.
            Some(_) if state.asks(Question::InsideProbes) => inside(state, of),
            Some(_) => None,
        };
        found.extend(drawn.and_then(|drawn| drawn.obstacle(of.labels)));
    }
    found.sort_unstable();
    found
}

/// What a design draws of the rows of an environment.
fn inside(state: &State, of: &ProbedFit<'_>) -> Option<DrawnProbes> {
    let design = state
        .fold::<Designs>()
        .registered(of.experiment, of.design)?;
    Some(of_rows(of.inside?, design.inclusion_micro))
}

/// Why a family of environments passes nothing: the calibrator was fitted late, or of a policy with probes there are fewer or
/// more than the design draws.
pub fn family_obstacles(
    state: &State,
    (experiment, design): (&ExperimentId, &DesignId),
    terms: &EstimateTerms,
    newest_label: Option<u64>,
) -> Vec<AuditObstacle> {
    if !state.asks(Question::InsideProbes) {
        return Vec::new();
    }
    let all = state.fold::<Probes>().by_experiment.get(experiment);
    let policies = all.into_iter().flat_map(|all| &all.by_policy);
    let mut found = Vec::new();
    for (policy, designs) in policies {
        let Some(probes) = designs.get(design) else {
            continue;
        };
        let of = ProbedFit {
            design,
            experiment,
            inside: None,
            labels: probes.open.len() as u64,
            newest_label,
            policy,
            terms,
        };
        found.extend(obstacles(state, &of));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A family of environments names what keeps it from passing; beside that, and where an environment has fewer or more probes
/// than its design draws of its rows, nothing passes.
pub(super) fn check_family(
    state: &State,
    experiment: &ExperimentId,
    said: &EnvironmentsTested,
) -> RuleAnswer {
    if !state.asks(Question::InsideProbes) {
        return Ok(());
    }
    let audits = state.fold::<Audits>();
    let fit = audits.fit(experiment, (&said.terms.judge, None), &said.calibrator);
    let newest = fit.and_then(super::FitRecord::newest);
    let found = family_obstacles(state, (experiment, &said.design), &said.terms, newest);
    ensure!(
        said.obstacles == found,
        format!("{} of {}", words(&found), said.family),
        words(&said.obstacles)
    );
    let design = state.fold::<Designs>().registered(experiment, &said.design);
    let rate = design.map_or(0, |of| of.inclusion_micro);
    for of in &said.environments {
        let passes = of.verdict == Verdict::Pass;
        ensure!(
            found.is_empty() || !passes,
            format!("no pass of {} with {}", of.scope, words(&found)),
            "a pass"
        );
        let drawn = of
            .drawn
            .required(&format!("drawn: how many rows {} has", of.scope))?;
        let obstacle = of_rows(drawn, rate).obstacle(of.rows.value());
        ensure!(
            obstacle.is_none() || !passes,
            format!(
                "no pass of {} with {}",
                of.scope,
                words(obstacle.as_slice())
            ),
            "a pass"
        );
    }
    Ok(())
}

fn words(of: &[AuditObstacle]) -> String {
    if of.is_empty() {
        return "no obstacle".to_owned();
    }
    let names: Vec<&str> = of.iter().map(|of| of.as_str()).collect();
    format!("obstacles {}", names.join(", "))
}

/// An audit names what keeps it from passing, and passes nothing where something does.
pub(super) fn check(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
) -> RuleAnswer {
    if !state.asks(Question::AllProbes) {
        return Ok(());
    }
    if said.terms.environment.is_some() && state.asks(Question::InsideProbes) {
        let wanted = "drawn: how many rows its environment has";
        said.drawn.required(wanted)?;
    }
    let scope = (&said.terms.judge, said.terms.environment.as_ref());
    let fit = state
        .fold::<Audits>()
        .fit(experiment, scope, &said.calibrator);
    let of = ProbedFit {
        design: &said.design,
        experiment,
        inside: said.drawn,
        labels: said.rows.value(),
        newest_label: fit.and_then(super::FitRecord::newest),
        policy: &said.policy,
        terms: &said.terms,
    };
    let found = obstacles(state, &of);
    ensure!(
        said.obstacles == found,
        format!("{} of {}", words(&found), said.policy),
        words(&said.obstacles)
    );
    ensure!(
        found.is_empty() || said.state != TransportState::Pass,
        format!("no pass of {} with {}", said.policy, words(&found)),
        "a pass"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: u64, left: u64, inclusion_micro: u64) -> DrawnProbes {
        DrawnProbes {
            inclusion_micro,
            left,
            rows,
        }
    }

    /// Of 600 rows at a quarter 150 are drawn, with a standard deviation of 10.6: from 119 to 181 are within three of them.
    #[test]
    fn a_draw_is_left_by_three_standard_deviations() {
        let of = drawn(600, 600, 250_000);
        assert_eq!(of.expected(), 150);
        for (labels, found) in [
            (25, Some(AuditObstacle::FewerProbes)),
            (118, Some(AuditObstacle::FewerProbes)),
            (119, None),
            (150, None),
            (181, None),
            (182, Some(AuditObstacle::MoreProbes)),
        ] {
            assert_eq!(of.obstacle(labels), found, "{labels}");
        }
    }

    #[test]
    fn a_design_of_every_row_takes_every_row() {
        let of = drawn(40, 40, 1_000_000);
        assert_eq!(of.obstacle(39), Some(AuditObstacle::FewerProbes));
        assert_eq!(of.obstacle(40), None);
    }

    /// Rows that were labelled for calibration are not there to be drawn, and may have been when somebody drew.
    #[test]
    fn rows_for_calibration_may_lack_or_not() {
        let of = drawn(400, 200, 100_000);
        assert_eq!(of.obstacle(20), None);
        assert_eq!(of.obstacle(40), None);
        assert_eq!(of.obstacle(7), Some(AuditObstacle::FewerProbes));
        assert_eq!(of.obstacle(60), Some(AuditObstacle::MoreProbes));
    }
}
