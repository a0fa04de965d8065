//! Whole iterations on simulated rows: how often a true fix is accepted, and how often a patch without merit is.
//!
//! Each run draws a world of its own, fits, audits, classifies, and judges one candidate by gates P1 to P6 on dev and P4,
//! P6 and P8 to P10 on confirm, through the code that judges real ones. What a candidate is truly worth is the change of
//! mean squared error of its calibrator against the baseline's on fresh rows. P0 and P7 (the patch itself, attacks on its
//! texts) are not simulated. A run is a pure function of design, seed and number: the same on any number of threads.
//! Source: CLOVER v1.1, section 5 and appendix C.

mod columns;
mod summary;

use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::CalibratorMode;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::manifest::Profile;
use clover_event::payload::manifest::RegressionGuard;
use clover_event::payload::manifest::ShiftMetric;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::SequentialLook;
use clover_event::payload::predicate::SequentialStop;
use clover_event::payload::predicate::Thresholds;
use clover_ground::digest::Digest;
use clover_ground::seed::SeedTree;
use clover_num::Count;
use clover_num::Micro;
use clover_num::math;
use clover_projection::decisions::thresholds_of;
use clover_stats::calibrator::Mode;
use clover_stats::folds;
use clover_stats::predicate::BOOTSTRAP_REPLICATES;
use clover_stats::predicate::SequentialTerms;
use clover_stats::residuals::SliceTerms;
use clover_stats::sample::Unfit;
use rayon::prelude::*;

use crate::iterate::compute::ScoredRubric;
use crate::iterate::compute::audit;
use crate::iterate::compute::audit::GateSlice;
use crate::iterate::compute::evidence::Models;
use crate::iterate::compute::evidence::RewardComparison;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::sequential::Block;
use crate::iterate::compute::sequential::terms_of;
use crate::iterate::compute::uncertainty;
use crate::predicate;
use crate::simulate::iteration::columns::Arbitrary;
use crate::simulate::iteration::columns::Columns;
use crate::simulate::iteration::columns::PatchRows;
use crate::simulate::iteration::columns::Stage;
use crate::simulate::world::Fault;
use crate::simulate::world::Kind;
use crate::simulate::world::Setting;
use crate::simulate::world::SettingError;
use crate::simulate::world::World;

pub use summary::GateBlock;
pub use summary::Share;
pub use summary::Summary;

/// Standard deviation of labels in the worlds of patches without merit, in millionths: where labels are noisy, chance on
/// dev is large.
pub const NULL_NOISE_MICRO: i64 = 300_000;
/// Patches that the search of a run without merit tries.
pub const TRIES: u64 = 100;

/// The looks of a sequential confirm test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looks {
    /// Clusters between two of them.
    pub every: usize,
    /// What the test is held to.
    pub terms: SequentialTerms,
}

/// A planned iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Cells of the partition, what lies in none of them aside; `None` for every slice of the world.
    pub cells: Option<usize>,
    /// Whether the calibrator sees ln(1 + tokens).
    pub covariates: bool,
    /// A family of environments, the domains: whether each must pass. `None` without one.
    pub domains: Option<bool>,
    /// How scores become rewards.
    pub mode: Mode,
    /// Slices that must not regress: the first ones.
    pub must_not_regress: usize,
    /// Looks and stops of a sequential confirm test.
    pub sequential: Option<Looks>,
    /// Labelled rows of fit, dev and confirm.
    pub sizes: [usize; 3],
    /// What the gates are held to.
    pub thresholds: Thresholds,
}

impl Design {
    /// Sizes under the thresholds of the template, monotone calibrators, one partition of slices, no environments.
    pub fn standard(sizes: [usize; 3]) -> Self {
        let micro = |value| Micro::new(value).unwrap_or_default();
        Self {
            cells: None,
            covariates: false,
            domains: None,
            mode: Mode::Monotone,
            must_not_regress: 0,
            sequential: None,
            sizes,
            thresholds: Thresholds {
                alpha_micro: micro(50_000),
                confirm_test: ConfirmTest::Betting,
                drift_max_micro: micro(10_000),
                ece_slack_micro: micro(5_000),
                eta_micro: micro(1_000),
                hypotheses: Count::new(4).unwrap_or_default(),
                ks_max_micro: micro(50_000),
                must_not_regress: RegressionGuard::Guard,
                profile: Profile::Recommended,
                q_micro: micro(100_000),
                shift_metric: ShiftMetric::Either,
                style_max_micro: micro(20_000),
                tau_micro: micro(1_500),
                uplift_max_micro: micro(50_000),
                w1_max_micro: micro(20_000),
            },
        }
    }

    /// What a manifest registers, as far as simulated rows can bear it.
    pub fn of(plan: &IterationPlan) -> Self {
        let size = |count: Count| usize::try_from(count.value()).unwrap_or(usize::MAX);
        let design = plan.design.as_ref();
        let environments = design.map_or(&[][..], |design| &design.environments);
        let families = design.map_or(&[][..], |design| &design.slices);
        let cells = families.iter().flat_map(|family| &family.cells);
        let largest = families.iter().map(|family| family.cells.len()).max();
        Self {
            cells: design.map(|_| largest.unwrap_or(0)),
            covariates: design.is_some_and(|design| !design.covariates.is_empty()),
            domains: (!environments.is_empty()).then(|| environments.iter().any(|of| of.required)),
            mode: match design.map(|design| design.calibrator) {
                Some(CalibratorMode::Monotone) | None => Mode::Monotone,
                Some(CalibratorMode::TwoStage) => Mode::TwoStage,
                Some(CalibratorMode::Auto) => Mode::Auto,
            },
            must_not_regress: cells.filter(|cell| cell.must_not_regress).count(),
            sequential: plan.sequential.as_ref().and_then(|of| {
                Some(Looks {
                    every: size(of.look_every).max(1),
                    terms: terms_of(plan, &thresholds_of(plan))?,
                })
            }),
            sizes: [plan.fit_rows, plan.dev_rows, plan.confirm_rows].map(size),
            thresholds: thresholds_of(plan),
        }
    }
}

/// What a run proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// The patch that mends the fault of its world.
    Fix,
    /// In a world without a fault and with noisy labels, the best on dev of [`TRIES`] patches that move arbitrary rows,
    /// of those that pass every gate there. It is not paused for labels: where chance is large the pause would stop
    /// nearly every run, and it is the gates that are tried.
    Null,
}

impl Proposal {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Null => "null",
        }
    }
}

/// What became of one run.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is counted by itself over the runs"
)]
pub struct IterationResult {
    /// Every gate on dev passed: the candidate reaches confirm.
    pub reached: bool,
    /// The iteration paused for labels before any candidate; never of [`Proposal::Null`].
    pub paused: bool,
    /// P8 passed.
    pub p8: bool,
    /// Every gate passed.
    pub accepted: bool,
    /// Change of mean squared error on confirm.
    pub dmse: f64,
    /// Standard deviation of a row's change there; `None` without a confirm block, or for one row.
    pub difference_sd: Option<f64>,
    /// The same on fresh rows: below 0 the candidate is truly better.
    pub worth: f64,
    /// Gates that did not pass.
    pub blocked: Vec<(Criterion, CriterionSplit)>,
    /// Under a sequential test: the share of the block's labels that are shown, and whether it crossed.
    pub labels: Option<(f64, bool)>,
}

/// Simulated iterations of one design and one kind of candidate.
pub struct Simulation {
    design: Design,
    proposal: Proposal,
    world: World,
    seed: SeedTree,
    fresh: Columns,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation({:?}, {:?})", self.proposal, self.design)
    }
}

/// What an iteration knows before a candidate.
struct Base {
    fitted: CalibratorFit,
    classified: Vec<GateSlice>,
    share: Option<f64>,
    gain: f64,
}

/// A candidate with its calibrator.
struct SimulatedCandidate {
    candidate: ScoredRubric,
    fitted: CalibratorFit,
    fresh: Vec<f64>,
}

impl Simulation {
    /// Draws the fresh rows. `setting` is the world of the true fix; its numbers of rows count for nothing here.
    ///
    /// # Errors
    /// [`SettingError`].
    pub fn new(
        design: Design,
        proposal: Proposal,
        setting: Setting,
        fresh: u64,
        seed: u64,
    ) -> Result<Self, SettingError> {
        let setting = match proposal {
            Proposal::Fix => setting,
            Proposal::Null => Setting {
                fault: Fault::None,
                label_noise_micro: Micro::new(NULL_NOISE_MICRO).unwrap_or_default(),
                ..setting
            },
        };
        let world = World::new(setting, seed)?;
        let fresh = columns::drawn(&world, Kind::Fresh, fresh);
        let seed = SeedTree::of_number(seed).child("simulate/iteration/1");
        Ok(Self {
            design,
            proposal,
            world,
            seed: seed.child(proposal.as_str()),
            fresh,
        })
    }

    /// Runs `from..to`, in order.
    ///
    /// # Errors
    /// [`Unfit`] for a design too small to compute anything.
    pub fn runs(&self, from: u64, to: u64) -> Result<Vec<IterationResult>, Unfit> {
        (from..to)
            .into_par_iter()
            .map(|number| self.run(number))
            .collect()
    }

    fn run(&self, number: u64) -> Result<IterationResult, Unfit> {
        let seed = self.seed.child(&number.to_string());
        let stage = Stage::new(&self.design, &self.world.again(number))?;
        let settings = Settings {
            mode: self.design.mode,
            folds: folds::FOLDS_DEFAULT,
            seed: fold_seed(&seed, 0),
        };
        let base = self.base(&stage, settings, &seed)?;
        let eta = self.design.thresholds.eta_micro.value() as f64 / 1e6;
        let paused = uncertainty::pauses(base.share, base.gain, eta);
        if paused && self.proposal == Proposal::Fix {
            return Ok(IterationResult {
                reached: false,
                paused,
                p8: false,
                accepted: false,
                dmse: 0.0,
                difference_sd: None,
                worth: 0.0,
                blocked: Vec::new(),
                labels: None,
            });
        }
        let settings = settings.bound_to(&base.fitted);
        let patch = Digest::sha256(&seed.seed());
        match self.proposal {
            Proposal::Fix => {
                let candidate = stage.fix(patch);
                let fitted = fit::fit(&stage.table, &candidate.scored, settings)?;
                let fresh = self.fresh.fixed.clone();
                let proposed = SimulatedCandidate {
                    candidate,
                    fitted,
                    fresh,
                };
                let dev = self.on_dev(&stage, &base, &proposed)?;
                self.found(&stage, &base, &proposed, &dev)
            }
            Proposal::Null => self.searched(&stage, &base, settings, &seed),
        }
    }

    fn base(&self, stage: &Stage, settings: Settings, seed: &SeedTree) -> Result<Base, Unfit> {
        let table = &stage.table;
        let fitted = fit::fit(table, &table.data().scored, settings)?;
        let terms = SliceTerms {
            level: self.design.thresholds.q_micro.value() as f64 / 1e6,
            ..SliceTerms::default()
        };
        let audited = audit::audit(table, &fitted, &terms)?;
        let seeds: Vec<u64> = (0..uncertainty::FOLD_SEEDS)
            .map(|number| fold_seed(seed, number))
            .collect();
        let share = uncertainty::uncertainty(table, &fitted, settings, &seeds)?;
        Ok(Base {
            classified: audit::classified(&audited),
            share: share.share.share(),
            gain: uncertainty::promising_gain(&audited),
            fitted,
        })
    }

    fn models<'a>(base: &'a Base, proposed: &'a SimulatedCandidate) -> Models<'a> {
        Models {
            baseline: &base.fitted,
            patched: &proposed.fitted,
            candidate: &proposed.candidate,
        }
    }

    fn compared<'a>(
        &'a self,
        stage: &'a Stage,
        base: &'a Base,
        proposed: &'a SimulatedCandidate,
    ) -> RewardComparison<'a> {
        Self::models(base, proposed).compared(
            &stage.table,
            &base.classified,
            &self.design.thresholds,
        )
    }

    fn on_dev(
        &self,
        stage: &Stage,
        base: &Base,
        proposed: &SimulatedCandidate,
    ) -> Result<Vec<Criterion>, Unfit> {
        let compared = self.compared(stage, base, proposed);
        Ok(self.not_passed(&Self::models(base, proposed).dev(&compared)?))
    }

    /// Gates that do not let pass what was measured, under the profile that binds.
    fn not_passed(&self, measured: &[Evidence]) -> Vec<Criterion> {
        let thresholds = &self.design.thresholds;
        let passes = |evidence: &&Evidence| {
            let said = predicate::verdicts(evidence, thresholds);
            said.under(thresholds.profile) == clover_event::payload::Verdict::Pass
        };
        let failing = measured.iter().filter(|evidence| !passes(evidence));
        failing.map(Evidence::gate).collect()
    }

    /// Confirm, and the truth.
    fn found(
        &self,
        stage: &Stage,
        base: &Base,
        proposed: &SimulatedCandidate,
        dev: &[Criterion],
    ) -> Result<IterationResult, Unfit> {
        let compared = self.compared(stage, base, proposed);
        let models = Self::models(base, proposed);
        // A bootstrap that decides nothing here need not be drawn in full.
        let replicates = match self.design.thresholds.confirm_test {
            ConfirmTest::Bootstrap => BOOTSTRAP_REPLICATES,
            ConfirmTest::Betting | ConfirmTest::Sequential | ConfirmTest::T => 1,
        };
        let seed = *proposed.candidate.patch.as_bytes();
        let block = self.block(stage);
        let labels = match &block {
            Some(block) => Some(compared.sequential(block)?).map(|test| self.shown(block, &test)),
            None => None,
        };
        let drawn = (replicates, seed);
        let confirm = models.confirm(&compared, base.share, drawn, block.as_ref())?;
        let confirm = self.not_passed(&confirm);
        let mut blocked: Vec<(Criterion, CriterionSplit)> = dev
            .iter()
            .map(|gate| (*gate, CriterionSplit::Dev))
            .collect();
        blocked.extend(confirm.iter().map(|gate| (*gate, CriterionSplit::Confirm)));
        let mean = compared.part(SplitPart::Confirm)?.mean();
        let error = mean.standard_error();
        Ok(IterationResult {
            reached: dev.is_empty(),
            paused: false,
            p8: !confirm.contains(&Criterion::P8),
            accepted: blocked.is_empty(),
            dmse: mean.mean,
            difference_sd: error.map(|error| error * (mean.rows as f64).sqrt()),
            worth: self.worth(base, proposed),
            blocked,
            labels,
        })
    }

    /// The labelled confirm rows in their order, each a cluster of its own: drawn independently, they are in random order.
    fn block(&self, stage: &Stage) -> Option<Block> {
        let looks = self.design.sequential?;
        let rows = stage.table.labelled(SplitPart::Confirm);
        Some(Block {
            terms: looks.terms,
            shown: rows.len(),
            units: rows.into_iter().map(|row| vec![row]).collect(),
        })
    }

    /// The share of a block's labels that are shown for one candidate: all of them unless its test stops without a
    /// crossing, then those up to the next look.
    fn shown(&self, block: &Block, test: &SequentialLook) -> (f64, bool) {
        let every = self.design.sequential.map_or(1, |looks| looks.every);
        let (all, at) = (block.units.len(), test.units.value());
        let looked = at.div_ceil(every as u64).saturating_mul(every as u64);
        let crossed = test.stop == SequentialStop::Crossed;
        let early = matches!(test.stop, SequentialStop::Futile | SequentialStop::Harmful);
        let share = (looked as f64 / all.max(1) as f64).min(1.0);
        (if early { share } else { 1.0 }, crossed)
    }

    /// The mean of (Y - R')^2 - (Y - R)^2 over the fresh rows.
    fn worth(&self, base: &Base, proposed: &SimulatedCandidate) -> f64 {
        let fresh = &self.fresh;
        let d = (0..fresh.labels.len()).map(|row| {
            let covariate = [fresh.tokens[row]];
            let covariates = &covariate[..usize::from(self.design.covariates)];
            let loss = |fitted: &CalibratorFit, score: f64| {
                let off = fresh.labels[row] - fitted.calibrator.predict(score, covariates);
                off * off
            };
            loss(&proposed.fitted, proposed.fresh[row]) - loss(&base.fitted, fresh.scores[row])
        });
        math::mean(&d.collect::<Vec<f64>>())
    }

    /// The best on dev of many patches without merit, of those that pass every gate there; without one, the best.
    fn searched(
        &self,
        stage: &Stage,
        base: &Base,
        settings: Settings,
        seed: &SeedTree,
    ) -> Result<IterationResult, Unfit> {
        let table = &stage.table;
        let mut tried = Vec::new();
        for number in 0..TRIES {
            let seed = seed.child("try").child(&number.to_string()).seed();
            let candidate = stage.arbitrary(Digest::sha256(&seed), &Arbitrary::new(seed));
            let fitted = fit::fit(table, &candidate.scored, settings)?;
            let proposed = SimulatedCandidate {
                candidate,
                fitted,
                fresh: Vec::new(),
            };
            let compared = self.compared(stage, base, &proposed);
            let dmse = compared.part(SplitPart::Dev)?.mean().mean;
            tried.push((dmse, number, seed, proposed));
        }
        tried.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut best = None;
        for (dmse, _, seed, proposed) in tried {
            let dev = self.on_dev(stage, base, &proposed)?;
            let (reaches, hopeless) = (dev.is_empty(), dmse >= 0.0);
            if reaches || best.is_none() {
                best = Some((dev, seed, proposed));
            }
            if reaches || hopeless {
                break;
            }
        }
        let (dev, seed, mut proposed) = best.expect("BUG: there are tries");
        proposed.fresh = Arbitrary::new(seed).moved(PatchRows::Fresh, &self.fresh.scores);
        self.found(stage, base, &proposed, &dev)
    }
}

/// A seed of folds: 53 bits, which a double holds too.
fn fold_seed(seed: &SeedTree, number: usize) -> u64 {
    let bytes = seed.child("folds").child(&number.to_string()).seed();
    let high = bytes.first_chunk::<8>();
    u64::from_be_bytes(*high.expect("BUG: a seed has 32 bytes")) >> 11
}
