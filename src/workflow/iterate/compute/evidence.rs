//! The sufficient statistics of each gate for one candidate.

use clover_event::id::PolicyId;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::AnchorDrift;
use clover_event::payload::predicate::Anchors;
use clover_event::payload::predicate::Blast;
use clover_event::payload::predicate::CalibrationChange;
use clover_event::payload::predicate::CalibrationShare;
use clover_event::payload::predicate::ConfirmLoss;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GreenSlice;
use clover_event::payload::predicate::Greens;
use clover_event::payload::predicate::LossMean;
use clover_event::payload::predicate::Thresholds;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use clover_num::math;
use clover_stats::crv1::ClusteredMean;
use clover_stats::predicate;
use clover_stats::predicate::GreenRule;
use clover_stats::predicate::Losses;
use clover_stats::predicate::Replication;
use clover_stats::reliability;
use clover_stats::residuals::Class;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::iterate::compute::audit::GateSlice;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::ScoredRubric;
use crate::iterate::compute::rows::Table;
use crate::iterate::compute::rows::pick;
use crate::iterate::compute::sequential::Block;
use crate::iterate::compute::transport;

/// Equal-frequency bins of the calibration error.
const BINS: usize = 10;
/// Level at which the baseline counts as failing in an environment.
pub const TRANSPORT_LEVEL: f64 = 0.10;

/// What the gates of one candidate read of the rows: both rewards, and the classification.
#[derive(Clone, Copy, Debug)]
pub struct RewardComparison<'a> {
    /// The rows.
    pub table: &'a Table,
    /// Reward of every row under the rubric in force.
    pub before: &'a [f64],
    /// Reward of every row under the candidate, from a calibrator of the same rows, folds and mode.
    pub after: &'a [f64],
    /// Whether the candidate abstains, by row.
    pub abstains: &'a [bool],
    /// The frozen classification.
    pub classified: &'a [GateSlice],
    /// What the gates hold it to.
    pub thresholds: &'a Thresholds,
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

/// A number that checked inputs make finite.
pub(super) fn finite(value: f64) -> Result<Finite, SampleError> {
    Finite::new(value).ok_or(SampleError::Parameter {
        name: "values",
        expected: "sums and squares within the range of a double",
    })
}

/// A probability; `None` for what is not one.
fn probability(value: Option<f64>) -> Option<Probability> {
    Probability::new(value?)
}

/// What an event keeps of a mean.
///
/// # Errors
/// [`SampleError`] for a mean that is not finite.
pub fn loss_mean(mean: &ClusteredMean) -> Result<LossMean, SampleError> {
    Ok(LossMean {
        clusters: count(mean.clusters),
        mean: finite(mean.mean)?,
        rows: count(mean.rows),
        standard_error: mean.standard_error().and_then(Finite::new),
    })
}

impl RewardComparison<'_> {
    /// Paired losses on some labelled rows outside fit.
    fn losses(&self, rows: &[usize]) -> Result<Losses, SampleError> {
        let labels = self.table.labels(rows);
        let before = pick(self.before, rows);
        let after = pick(self.after, rows);
        Losses::new(
            Values::new("labels", &labels)?,
            Values::new("baseline", &before)?,
            Values::new("patched", &after)?,
            &self.table.clusters(rows)?,
        )
    }

    /// Paired losses on the labelled rows of a part.
    ///
    /// # Errors
    /// [`Unfit`] without labelled rows.
    pub fn part(&self, part: SplitPart) -> Result<Losses, Unfit> {
        let rows = self.table.labelled(part);
        InsufficientData::unless("labelled rows", rows.len(), 1)?;
        Ok(self.losses(&rows)?)
    }

    /// P1.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn p1(&self) -> Result<Evidence, Unfit> {
        Ok(Evidence::P1(loss_mean(&self.part(SplitPart::Dev)?.mean())?))
    }

    /// P2.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn p2(&self) -> Result<Evidence, Unfit> {
        let rows = self.table.labelled(SplitPart::Dev);
        InsufficientData::unless("labelled rows", rows.len(), 1)?;
        let labels = self.table.labels(&rows);
        let before = pick(self.before, &rows);
        let after = pick(self.after, &rows);
        let found = predicate::ece_pair(
            Values::new("labels", &labels)?,
            Values::new("baseline", &before)?,
            Values::new("patched", &after)?,
            BINS,
        )?;
        Ok(Evidence::P2(CalibrationChange {
            baseline: finite(found.baseline)?,
            bins: count(found.bins),
            patched: finite(found.patched)?,
        }))
    }

    /// P3 on dev, P9 on confirm.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn greens(&self, part: SplitPart) -> Result<Evidence, Unfit> {
        let labelled = self.table.labelled(part);
        let logs = match part {
            SplitPart::Confirm => self.table.confirm_logs(),
            _ => self.table.logs(),
        };
        let mut slices = Vec::new();
        for slice in self.of_class(Class::Green) {
            let rows = self.inside(slice, &labelled);
            slices.push(self.green(slice, &rows, &self.inside(slice, logs))?);
        }
        let tau_micro = self.thresholds.tau_micro;
        let greens = Greens { slices, tau_micro };
        Ok(match part {
            SplitPart::Confirm => Evidence::P9(greens),
            _ => Evidence::P3(greens),
        })
    }

    /// Paired losses of each green slice on the labelled rows of a part; `None` where it has fewer than `least` of them.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn green_losses(
        &self,
        part: SplitPart,
        least: usize,
    ) -> Result<Vec<(&GateSlice, Option<Losses>)>, SampleError> {
        let labelled = self.table.labelled(part);
        self.of_class(Class::Green)
            .map(|slice| {
                let rows = self.inside(slice, &labelled);
                let enough = rows.len() >= least.max(1);
                let losses = enough.then(|| self.losses(&rows)).transpose()?;
                Ok((slice, losses))
            })
            .collect()
    }

    fn abstention_rise(&self, rows: &[usize]) -> f64 {
        if rows.is_empty() {
            return 0.0;
        }
        let share = |abstains: &[bool]| {
            let of = rows.iter().filter(|row| abstains[**row]).count();
            of as f64 / rows.len() as f64
        };
        share(self.abstains) - share(&self.table.data().scored.abstains)
    }

    fn of_class(&self, class: Class) -> impl Iterator<Item = &GateSlice> {
        self.classified
            .iter()
            .filter(move |slice| slice.class == class)
    }

    /// Which of some rows lie in a slice.
    fn inside(&self, slice: &GateSlice, rows: &[usize]) -> Vec<usize> {
        let family = &self.table.data().slices[slice.family];
        let cell = (slice.place < family.slices.len()).then_some(slice.place);
        let inside = |row: &usize| family.of_row[*row] == cell;
        rows.iter().copied().filter(inside).collect()
    }

    fn green(
        &self,
        of: &GateSlice,
        rows: &[usize],
        logs: &[usize],
    ) -> Result<GreenSlice, SampleError> {
        let mut slice = GreenSlice {
            abstention_rise: finite(self.abstention_rise(logs))?,
            family: self.table.data().slices[of.family].id.clone(),
            loss: None,
            must_not_regress: of.must_not_regress,
            p: None,
            p_zero: None,
            slice: of.name(self.table),
            untouched: false,
            upper: None,
            worst: Vec::new(),
        };
        if rows.is_empty() {
            return Ok(slice);
        }
        let losses = self.losses(rows)?;
        let tau = self.thresholds.tau_micro.value() as f64 / 1e6;
        let found = predicate::green(&losses, GreenRule::Guard)?;
        slice.loss = Some(loss_mean(&found.mean)?);
        slice.p = probability(predicate::not_worse_p(&losses, tau));
        slice.p_zero = probability(predicate::not_worse_p(&losses, 0.0));
        slice.untouched = predicate::untouched(&losses);
        slice.upper = found.upper.and_then(Finite::new);
        slice.worst = found
            .worst
            .iter()
            .filter_map(|(_, d)| Finite::new(*d))
            .collect();
        Ok(slice)
    }

    /// P4, over the logs of dev or the confirm window.
    ///
    /// # Errors
    /// [`Unfit`] without rows.
    pub fn p4(&self, part: SplitPart) -> Result<Evidence, Unfit> {
        let rows = match part {
            SplitPart::Confirm => self.table.confirm_logs(),
            _ => self.table.logs(),
        };
        let before = pick(self.before, rows);
        let after = pick(self.after, rows);
        let found = predicate::shift(
            Values::new("baseline", &before)?,
            Values::new("patched", &after)?,
        )?;
        Ok(Evidence::P4(Blast {
            ks_count: count(found.ks_count),
            rows: count(found.rows),
            w1: finite(found.wasserstein)?,
        }))
    }

    /// P8. `replicates` and `seed` are those of the bootstrap, `block` the order of the sequential test.
    ///
    /// # Errors
    /// [`Unfit`] without labelled confirm rows.
    pub fn p8(
        &self,
        replicates: usize,
        seed: [u8; 32],
        block: Option<&Block>,
    ) -> Result<Evidence, Unfit> {
        let losses = self.part(SplitPart::Confirm)?;
        let found = predicate::confirm(&losses, replicates, seed);
        Ok(Evidence::P8(ConfirmLoss {
            bound: finite(found.bound)?,
            ln_wealth: finite(found.betting.ln_wealth)?,
            loss: loss_mean(&found.mean)?,
            moved_clusters: count(found.moved_clusters),
            p_bootstrap: probability(found.bootstrap_p),
            p_exact: probability(Some(found.betting.p)).unwrap_or(Probability::ONE),
            p_t: probability(found.t_p),
            risk_improve: self.risk_improve(SplitPart::Confirm)?,
            sequential: block.map(|block| self.sequential(block)).transpose()?,
        }))
    }

    /// P10, from the share of the baseline.
    ///
    /// # Errors
    /// [`Unfit`] without labelled confirm rows.
    pub fn p10(&self, share: Option<f64>) -> Result<Evidence, Unfit> {
        let losses = self.part(SplitPart::Confirm)?;
        Ok(Evidence::P10(CalibrationShare {
            confirm_change: finite(losses.mean().mean)?,
            share: probability(share).unwrap_or_default(),
        }))
    }

    /// Risk improvement on a part, `sum over Risk of w u DMSE`, negative when better; a Risk slice without labelled
    /// rows there counts 0. Never a gate.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn risk_improve(&self, part: SplitPart) -> Result<Finite, Unfit> {
        let labelled = self.table.labelled(part);
        let mut terms = Vec::new();
        for slice in self.of_class(Class::Risk) {
            let rows = self.inside(slice, &labelled);
            if !rows.is_empty() {
                let mean = self.losses(&rows)?.mean().mean;
                terms.push(slice.exposure * slice.stakes * mean);
            }
        }
        Ok(finite(math::sum(&terms))?)
    }

    /// H1: does confirm repeat dev?
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn replication(&self) -> Result<Replication, Unfit> {
        let dev = self.part(SplitPart::Dev)?.mean();
        let confirm = self.part(SplitPart::Confirm)?.mean();
        Ok(predicate::replication(&dev, &confirm))
    }
}

/// The calibrators of both rubrics, for gates that read more than the rewards of rows.
#[derive(Clone, Copy, Debug)]
pub struct Models<'a> {
    /// Of the rubric in force.
    pub baseline: &'a CalibratorFit,
    /// Of the candidate, on the same rows, folds and mode.
    pub patched: &'a CalibratorFit,
    /// The candidate.
    pub candidate: &'a ScoredRubric,
}

impl<'a> Models<'a> {
    /// What the gates read of the rows.
    pub fn compared(
        &self,
        table: &'a Table,
        classified: &'a [GateSlice],
        thresholds: &'a Thresholds,
    ) -> RewardComparison<'a> {
        RewardComparison {
            table,
            before: &self.baseline.rewards,
            after: &self.patched.rewards,
            abstains: &self.candidate.scored.abstains,
            classified,
            thresholds,
        }
    }

    /// P5.
    ///
    /// # Errors
    /// [`Unfit`] for an anchor set without rows.
    pub fn p5(&self, table: &Table) -> Result<Evidence, Unfit> {
        let mut anchors = Vec::new();
        for (anchor, scored) in table.data().anchors.iter().zip(&self.candidate.anchors) {
            let before = self.baseline.anchors(anchor, &anchor.scored);
            let after = self.patched.anchors(anchor, scored);
            anchors.push(anchor_drift(&anchor.policy, &before, &after)?);
        }
        Ok(Evidence::P5(Anchors { anchors }))
    }

    /// P6, on dev or confirm.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn p6(&self, table: &Table, part: SplitPart) -> Result<Evidence, Unfit> {
        let candidate = (self.patched, &self.candidate.scored);
        let found = transport::transport(table, self.baseline, candidate, part, TRANSPORT_LEVEL)?;
        Ok(Evidence::P6(found))
    }

    /// Everything that is decided before sealing but P0 and P7: P1 to P6 on dev.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn dev(&self, compared: &RewardComparison<'_>) -> Result<Vec<Evidence>, Unfit> {
        Ok(vec![
            compared.p1()?,
            compared.p2()?,
            compared.greens(SplitPart::Dev)?,
            compared.p4(SplitPart::Dev)?,
            self.p5(compared.table)?,
            self.p6(compared.table, SplitPart::Dev)?,
        ])
    }

    /// Everything that is decided after unsealing: P4 and P6 again, P8 to P10.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn confirm(
        &self,
        compared: &RewardComparison<'_>,
        share: Option<f64>,
        (replicates, seed): (usize, [u8; 32]),
        block: Option<&Block>,
    ) -> Result<Vec<Evidence>, Unfit> {
        Ok(vec![
            compared.p4(SplitPart::Confirm)?,
            self.p6(compared.table, SplitPart::Confirm)?,
            compared.p8(replicates, seed, block)?,
            compared.greens(SplitPart::Confirm)?,
            compared.p10(share)?,
        ])
    }
}

/// How far one anchor set moves.
///
/// # Errors
/// [`SampleError`] for no rows, or different rows.
pub fn anchor_drift(
    policy: &PolicyId,
    before: &[f64],
    after: &[f64],
) -> Result<AnchorDrift, SampleError> {
    let drift = reliability::anchor_drift(
        Values::new("anchors", before)?,
        Values::new("anchors", after)?,
    )?;
    Ok(AnchorDrift {
        drift: finite(drift)?,
        policy: policy.clone(),
        rows: count(before.len()),
    })
}
