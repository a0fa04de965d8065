//! Whether the data of an experiment can ever reach what a plan asks of them: sizes against the rows that are there, and
//! the pause for labels before it happens.
//!
//! Everything is read from the fit window and from counts of rows: whoever holds a plan against its data learns no label
//! of dev and none of confirm.

use clover_event::id::IterationId;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::Manifest;
use clover_num::Count;
use clover_projection::decisions::thresholds_of;
use clover_projection::manifests::Fault;
use clover_stats::oua;
use clover_stats::residuals::SliceTerms;
use clover_stats::sample::Unfit;

use crate::iterate::compute::audit;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::uncertainty;
use crate::iterate::rows::FitWindow;
use crate::iterate::steps::OpenIteration;
use crate::prereg;

/// Share of the planned rows of a part below which it is short: hashing alone moves the size of a part by some per cent.
const SHORT: f64 = 0.9;

/// What a pause rests on, and whether labels could lift it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// The calibrator's share of the variance.
    pub share: f64,
    /// The gain in sight.
    pub gain: f64,
    /// The gain that would do.
    pub eta: f64,
    /// Labelled rows of the fit part.
    pub labelled: u64,
    /// Rows of the fit part.
    pub rows: u64,
}

impl Pause {
    /// Whether an iteration pauses on these numbers.
    pub fn is_due(&self) -> bool {
        uncertainty::pauses(Some(self.share), self.gain, self.eta)
    }

    /// The share with a label on every row of the fit part: the calibration variance falls with their number, and the
    /// sampling variance stays. More rows of the same kind leave it as it is, since both variances fall alike.
    pub fn share_at_best(&self) -> f64 {
        if self.share >= 1.0 {
            return 1.0;
        }
        let odds = self.share / (1.0 - self.share);
        let odds = odds * self.labelled as f64 / self.rows.max(self.labelled).max(1) as f64;
        odds / (1.0 + odds)
    }

    /// Whether nothing but the gain in sight keeps the iteration from a pause that no label here lifts.
    pub fn rests_on_gain(&self) -> bool {
        !self.is_due() && self.share >= oua::PAUSE_SHARE && !self.is_curable()
    }

    /// Whether labels of rows that are there would lift it.
    pub fn is_curable(&self) -> bool {
        self.share_at_best() < oua::PAUSE_SHARE
    }

    /// Labels that would lift it; more than the fit part has rows for where it is not curable.
    pub fn labels_missing(&self) -> u64 {
        if self.share >= 1.0 {
            return u64::MAX;
        }
        let odds = self.share / (1.0 - self.share);
        let allowed = oua::PAUSE_SHARE / (1.0 - oua::PAUSE_SHARE);
        let more = self.labelled as f64 * (odds / allowed - 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at least 0, and what is beyond any count saturates"
        )]
        let more = more.max(0.0).ceil() as u64;
        more
    }
}

/// Rows of a part, planned and there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSize {
    /// The part.
    pub part: SplitPart,
    /// Rows that the plan says.
    pub planned: u64,
    /// Scored rows that are there.
    pub there: u64,
}

impl PartSize {
    /// Whether clearly fewer are there than planned.
    pub fn is_short(&self) -> bool {
        (self.there as f64) < SHORT * self.planned as f64
    }
}

/// A plan held against its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// Fit, dev and confirm.
    pub parts: [PartSize; 3],
    /// Sizes that cannot work with the rows that are there, and could as planned.
    pub faults: Vec<Fault>,
    /// Criteria that no candidate passes with the rows that are there, which are no more than the plan names.
    pub unmet: Vec<String>,
    /// The pause that the fit window lets expect; `None` where too few labels are there to tell.
    pub pause: Option<Pause>,
}

impl Reach {
    /// Whether the data can never reach what the plan asks.
    pub fn is_out_of_reach(&self) -> bool {
        let short = self.parts.iter().any(PartSize::is_short);
        short || !self.faults.is_empty() || !self.unmet.is_empty() || self.pauses_for_good()
    }

    /// Whether the iteration will pause, and no label of these rows can lift it.
    pub fn pauses_for_good(&self) -> bool {
        self.pause.is_some_and(|of| of.is_due() && !of.is_curable())
    }
}

/// Holds a manifest against the rows of its experiment.
///
/// # Errors
/// [`Unfit`] for rows that no calibrator can be fitted on at all.
pub fn hold(
    manifest: &Manifest,
    plan: &IterationPlan,
    iteration: &IterationId,
    window: &FitWindow,
) -> Result<Reach, Unfit> {
    let size = |part, planned: Count| PartSize {
        part,
        planned: planned.value(),
        there: window.rows_of(part),
    };
    let parts = [
        size(SplitPart::Fit, plan.fit_rows),
        size(SplitPart::Dev, plan.dev_rows),
        size(SplitPart::Confirm, plan.confirm_rows),
    ];
    let (as_planned, as_there) = (
        prereg::preflight(manifest),
        prereg::preflight(&shrunk(manifest, &parts)),
    );
    let is_new = |fault: &Fault| !as_planned.faults.iter().any(|of| of.path == fault.path);
    Ok(Reach {
        parts,
        faults: as_there.faults.into_iter().filter(is_new).collect(),
        unmet: as_there.unmet,
        pause: pause(plan, iteration, window)?,
    })
}

/// The manifest with no more rows than are there.
fn shrunk(manifest: &Manifest, parts: &[PartSize; 3]) -> Manifest {
    let mut manifest = manifest.clone();
    if let Some(plan) = &mut manifest.iteration {
        let [fit, dev, confirm] =
            parts.map(|of| Count::new(of.planned.min(of.there)).unwrap_or_default());
        (plan.fit_rows, plan.dev_rows, plan.confirm_rows) = (fit, dev, confirm);
    }
    manifest
}

/// What the iteration will say of its labels, as far as the fit window shows: dev shows the gain in sight.
fn pause(
    plan: &IterationPlan,
    iteration: &IterationId,
    window: &FitWindow,
) -> Result<Option<Pause>, Unfit> {
    let opened = OpenIteration {
        iteration: iteration.clone(),
        plan: plan.clone(),
    };
    let level = plan.q_micro.value() as f64 / 1e6;
    let found = of_window(window, opened.settings(), level);
    let (share, gain) = match found {
        Ok(Some(found)) => found,
        Ok(None) | Err(Unfit::InsufficientData(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(Pause {
        share,
        gain,
        eta: thresholds_of(plan).eta_micro.value() as f64 / 1e6,
        labelled: window.labelled(),
        rows: window.rows_of(SplitPart::Fit),
    }))
}

/// The calibrator's share over all logs and the gain in sight, both from the fit window.
///
/// # Errors
/// [`Unfit`] for too few labels.
pub fn of_window(
    window: &FitWindow,
    settings: Settings,
    level: f64,
) -> Result<Option<(f64, f64)>, Unfit> {
    let table = &window.table;
    let baseline = fit::fit(table, &table.data().scored, settings)?;
    let seeds: Vec<u64> = (0..uncertainty::FOLD_SEEDS as u64)
        .map(|number| settings.seed.wrapping_add(number))
        .collect();
    let found = uncertainty::uncertainty(table, &baseline, settings, &seeds)?;
    // The plug-in mean is over all logs, of which the window is a part.
    let logs = window.logs.max(1) as f64;
    let main = found.share.main * table.len() as f64 / logs;
    let total = main + found.share.oua;
    if total.is_nan() || total <= 0.0 {
        return Ok(None);
    }
    let terms = SliceTerms {
        level,
        ..SliceTerms::default()
    };
    let audited = audit::audit_on(table, &baseline, SplitPart::Fit, &terms)?;
    let gain = uncertainty::promising_gain(&audited);
    Ok(Some((found.share.oua / total, gain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(share: f64, labelled: u64, rows: u64) -> Pause {
        Pause {
            share,
            gain: 0.0,
            eta: 0.001,
            labelled,
            rows,
        }
    }

    #[test]
    fn labels_of_rows_that_are_there_lift_a_pause_and_others_do_not() {
        // 100 of 400 labelled, a share of one half: with all labelled the odds of 1 fall to 1/4, a share of 1/5.
        let of = pause(0.5, 100, 400);
        assert!(of.is_due() && of.is_curable());
        assert!((of.share_at_best() - 0.2).abs() < 1e-12);
        // Odds of 3/7 are allowed: 100 (7/3 - 1) more labels, rounded up.
        assert_eq!(of.labels_missing(), 134);
        let all = pause(0.5, 400, 400);
        assert!(all.is_due() && !all.is_curable());
        assert!((all.share_at_best() - 0.5).abs() < 1e-12);
        assert_eq!(pause(1.0, 400, 400).labels_missing(), u64::MAX);
        let in_sight = Pause { gain: 0.001, ..all };
        assert!(!in_sight.is_due() && in_sight.rests_on_gain());
        assert!(!all.rests_on_gain() && !pause(0.29, 10, 10).rests_on_gain());
        assert!(!pause(0.29, 10, 10).is_due());
    }
}
