//! From rows to events: what each computed step of an iteration says, ready to be appended.
//!
//! The caller brings rows and candidates; every number, order and choice is made here, from the registered plan alone,
//! so that the same rows give the same events. `schema/GATES.md` says what the events must hold to.

use clover_event::Payload;
use clover_event::id::IterationId;
use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::diagnosis::ColumnBalance;
use clover_event::payload::diagnosis::IterationPausedForLabels;
use clover_event::payload::diagnosis::LabelProcessAudited;
use clover_event::payload::diagnosis::PrenticeChecked;
use clover_event::payload::manifest::CalibratorMode;
use clover_event::payload::manifest::IterationDesign;
use clover_event::payload::manifest::IterationPlan;
use clover_event::payload::predicate::Admissible;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::Gaming;
use clover_event::payload::predicate::GateCalibrators;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::RowsRead;
use clover_event::payload::predicate::SealedHypothesis;
use clover_event::payload::predicate::SequentialLook;
use clover_event::payload::predicate::Thresholds;
use clover_event::payload::predicate::Verdicts;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use clover_projection::decisions::composite_of;
use clover_projection::decisions::thresholds_of;
use clover_projection::iterations::record::Attacks;
use clover_stats::calibrator::Mode;
use clover_stats::folds;
use clover_stats::predicate::BOOTSTRAP_REPLICATES;
use clover_stats::residuals::SliceTerms;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use serde::Serialize;

use crate::iterate::compute::IterationRows;
use crate::iterate::compute::ScoredRubric;
use crate::iterate::compute::Table;
use crate::iterate::compute::audit;
use crate::iterate::compute::audit::FamilyAudit;
use crate::iterate::compute::audit::GateSlice;
use crate::iterate::compute::cards;
use crate::iterate::compute::evidence::Models;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::labels;
use crate::iterate::compute::sequential::Block;
use crate::iterate::compute::uncertainty;
use crate::iterate::compute::uncertainty::Uncertainty;
use crate::iterate::said;
use crate::predicate;

/// The program that computes, as events name it.
pub const BUILD: &str = concat!("clover ", env!("CARGO_PKG_VERSION"));
/// Label of the digest of the rows that were read.
const ROWS_LABEL: &str = "clover/iteration-rows/v1";
/// Label under which seeds are drawn from the registered one.
const SEED_LABEL: &str = "clover/iteration-seed/v1";

/// An open iteration, as its computations need it.
#[derive(Clone, Debug)]
pub struct OpenIteration {
    /// Its name.
    pub iteration: IterationId,
    /// Its parameters.
    pub plan: IterationPlan,
}

/// What an iteration knows before any candidate.
#[derive(Clone, Debug)]
pub struct Ground {
    /// What it is held to.
    pub thresholds: Thresholds,
    /// The calibrator of the rubric in force.
    pub baseline: CalibratorFit,
    /// How candidates are fitted.
    pub settings: Settings,
    /// The frozen classification.
    pub classified: Vec<GateSlice>,
    /// Its digest.
    pub classification_hash: Digest,
    /// Residuals on dev, slice by slice.
    pub audited: Vec<FamilyAudit>,
    /// Seeds of the folds of `uncertainty`, the baseline's own first.
    pub fold_seeds: Vec<u64>,
    /// Whether labels are what is missing: then there are no cards.
    pub pauses: bool,
    /// Share of the variance that the calibrator causes.
    pub uncertainty: Uncertainty,
    /// Lower bound on the gain in sight.
    pub gain: f64,
    /// What was read.
    pub inputs: RowsRead,
}

/// A candidate before confirm: its patches, and what its gates on dev said.
#[derive(Clone, Debug, PartialEq)]
pub struct OnDev {
    /// Hash of the patch, or of the composite.
    pub candidate: Digest,
    /// Its patches by hash, ascending.
    pub patches: Vec<Digest>,
    /// Risk improvement on dev, negative when better.
    pub risk_improve: Finite,
    /// Whether every gate let it pass.
    pub passed: bool,
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: short plain words")
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

impl OpenIteration {
    /// Evidence with what the plan claims of environments.
    fn claimed(&self, mut evidence: Evidence) -> Evidence {
        let design = self.plan.design.as_ref();
        let nowhere = design.is_some_and(IterationDesign::claims_no_environment);
        if let Evidence::P6(found) = &mut evidence {
            found.none_claimed = nowhere.then_some(true);
        }
        evidence
    }

    /// 32 bytes for one purpose, from the registered seed: SHA-256 over the label, the seed, the iteration and the
    /// purpose.
    fn seed(&self, purpose: &str) -> Digest {
        let registered = self.plan.design.as_ref().map(|design| design.seed);
        canon::digest(SEED_LABEL, &(registered, &self.iteration, purpose))
    }

    /// A seed of folds: 53 bits, which a double holds too.
    fn fold_seed(&self, number: usize) -> u64 {
        self.number(&format!("folds/{number}"))
    }

    /// A number of 53 bits for one purpose, from the registered seed.
    pub fn number(&self, purpose: &str) -> u64 {
        let bytes = self.seed(purpose);
        let [a, b, c, d, e, f, g, h, ..] = *bytes.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 11
    }

    /// How the baseline is fitted.
    pub fn settings(&self) -> Settings {
        let mode = self.plan.design.as_ref().map(|design| design.calibrator);
        Settings {
            mode: match mode {
                Some(CalibratorMode::Monotone) => Mode::Monotone,
                Some(CalibratorMode::TwoStage) => Mode::TwoStage,
                Some(CalibratorMode::Auto) | None => Mode::Auto,
            },
            folds: folds::FOLDS_DEFAULT,
            seed: self.fold_seed(0),
        }
    }

    fn seed_label(&self, split: CriterionSplit) -> Text {
        text(&format!("{}/bootstrap/{}", self.iteration, split.as_str()))
    }
}

/// Digest of rows as they are read: names, clusters, parts, scores and the labels that are known; then inclusion,
/// covariates, features, slices and environments by row, and anchors.
pub fn inputs(table: &Table, through_seq: Count) -> RowsRead {
    let data = table.data();
    let finite = |values: &[f64]| -> Vec<Option<Finite>> {
        values.iter().map(|value| Finite::new(*value)).collect()
    };
    let labels: Vec<Option<Finite>> = data
        .labels
        .iter()
        .map(|label| label.and_then(Finite::new))
        .collect();
    let scores = (finite(&data.scored.scores), &data.scored.abstains);
    RowsRead {
        digest: canon::digest(
            ROWS_LABEL,
            &(
                (&data.rows, &data.clusters, &data.parts, scores, labels),
                beside(data),
            ),
        ),
        rows: count(table.len()),
        through_seq,
    }
}

/// What stands beside scores and labels.
fn beside(data: &IterationRows) -> impl Serialize {
    let finite = |values: &[f64]| -> Vec<Option<Finite>> {
        values.iter().map(|value| Finite::new(*value)).collect()
    };
    let columns =
        |columns: &[Vec<f64>]| -> Vec<_> { columns.iter().map(|column| finite(column)).collect() };
    let chances = data.inclusion.iter();
    let chances: Vec<_> = chances.map(|chance| chance.and_then(Finite::new)).collect();
    let features: Vec<_> = data
        .features
        .iter()
        .map(|feature| (feature.name.clone(), finite(&feature.values)))
        .collect();
    let slices: Vec<_> = data.slices.iter().map(|of| of.of_row.clone()).collect();
    let places: Vec<_> = data
        .environments
        .iter()
        .map(|of| of.of_row.clone())
        .collect();
    let anchors: Vec<_> = data
        .anchors
        .iter()
        .map(|anchor| {
            let scored = (
                finite(&anchor.scored.scores),
                anchor.scored.abstains.clone(),
            );
            (anchor.policy.clone(), scored, columns(&anchor.covariates))
        })
        .collect();
    (
        chances,
        columns(&data.covariates),
        features,
        (slices, places),
        anchors,
    )
}

/// Everything before the cards: audits, classification, the pause if there is one, in order; and what gates stand on.
///
/// # Errors
/// [`Unfit`] for data that are too thin.
pub fn ground(
    opened: &OpenIteration,
    table: &Table,
    through_seq: Count,
) -> Result<(Ground, Vec<Payload>), Unfit> {
    let inputs = inputs(table, through_seq);
    let iteration = &opened.iteration;
    let settings = opened.settings();
    let baseline = fit::fit(table, &table.data().scored, settings)?;
    let q = opened.plan.q_micro.value() as f64 / 1e6;
    let terms = SliceTerms {
        level: q,
        ..SliceTerms::default()
    };
    let audited = audit::audit(table, &baseline, &terms)?;
    let seeds: Vec<u64> = (0..uncertainty::FOLD_SEEDS)
        .map(|number| opened.fold_seed(number))
        .collect();
    let uncertainty = uncertainty::uncertainty(table, &baseline, settings, &seeds)?;
    let gain = uncertainty::promising_gain(&audited);
    let mut events = vec![Payload::from(label_process(opened, table, inputs)?)];
    match audit::surrogacy(table, &baseline) {
        Ok(found) => events.push(Payload::from(prentice(opened, &found, inputs)?)),
        // Without a term to test there is nothing to say; the assumption stays untested.
        Err(Unfit::InsufficientData(_)) => {}
        Err(invalid) => return Err(invalid),
    }
    events.push(said::audited(iteration, &baseline, &audited, inputs)?.into());
    let classified = audit::classified(&audited);
    let frozen = said::classified(iteration, table, &classified)?;
    let classification_hash = frozen.classification_hash;
    events.push(frozen.into());
    let thresholds = thresholds_of(&opened.plan);
    let eta = thresholds.eta_micro.value() as f64 / 1e6;
    let share = uncertainty.share.share();
    let pauses = uncertainty::pauses(share, gain, eta);
    if pauses {
        events.push(Payload::from(IterationPausedForLabels {
            build: text(BUILD),
            gain: said::finite(gain)?,
            inputs,
            iteration: iteration.clone(),
            labels_requested: count(uncertainty.labels_missing(baseline.rows.len())),
            share: Probability::new(share.unwrap_or(0.0)).unwrap_or_default(),
        }));
    }
    let ground = Ground {
        thresholds,
        settings: settings.bound_to(&baseline),
        baseline,
        classified,
        classification_hash,
        audited,
        fold_seeds: seeds,
        pauses,
        uncertainty,
        gain,
        inputs,
    };
    Ok((ground, events))
}

fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Pass } else { Verdict::Fail }
}

fn label_process(
    opened: &OpenIteration,
    table: &Table,
    inputs: RowsRead,
) -> Result<LabelProcessAudited, Unfit> {
    let found = labels::label_process(table)?;
    let column = |column: &labels::Balance| -> Result<ColumnBalance, SampleError> {
        Ok(ColumnBalance {
            column: text(&column.name),
            smd: said::finite(column.smd)?,
        })
    };
    Ok(LabelProcessAudited {
        balance: found.balance.iter().map(column).collect::<Result<_, _>>()?,
        build: text(BUILD),
        inputs,
        iteration: opened.iteration.clone(),
        labelled: count(found.labelled),
        orphans: count(found.orphans),
        verdict: verdict(found.holds()),
    })
}

fn prentice(
    opened: &OpenIteration,
    found: &audit::Surrogacy,
    inputs: RowsRead,
) -> Result<PrenticeChecked, SampleError> {
    let check = &found.check;
    let top = found.names.get(check.largest).map_or("", String::as_str);
    Ok(PrenticeChecked {
        build: text(BUILD),
        df_rows: count(check.df_rows),
        df_terms: count(check.df_terms),
        f: said::finite(check.f)?,
        inputs,
        iteration: opened.iteration.clone(),
        p: Probability::new(check.p).unwrap_or_default(),
        top_term: text(top),
        verdict: verdict(!check.fails),
    })
}

/// A candidate with its calibrator.
#[derive(Clone, Debug)]
pub struct CandidateFit {
    /// Its scores.
    pub candidate: ScoredRubric,
    /// Fitted on the rows, folds and mode of the baseline.
    pub fitted: CalibratorFit,
}

impl Ground {
    /// Residual cards, with what attacks on the rubric in force earned; none in an iteration that pauses, since nobody
    /// writes patches for it.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn cards(
        &self,
        table: &Table,
        attacks: &Attacks,
        basis: cards::Basis<'_>,
    ) -> Result<Vec<cards::FullCard>, Unfit> {
        if self.pauses {
            return Ok(Vec::new());
        }
        let mut all = cards::cards(table, &self.baseline, &self.audited, basis)?;
        for card in &mut all {
            card.attacked(table, attacks);
        }
        Ok(all)
    }

    /// A candidate with its calibrator.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn patched(&self, table: &Table, candidate: ScoredRubric) -> Result<CandidateFit, Unfit> {
        let fitted = self.fitted(table, &candidate)?;
        Ok(CandidateFit { candidate, fitted })
    }

    /// The calibrator of a candidate: the same rows, folds and mode as the baseline's.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn fitted(&self, table: &Table, candidate: &ScoredRubric) -> Result<CalibratorFit, Unfit> {
        table.check(candidate)?;
        fit::fit(table, &candidate.scored, self.settings)
    }

    /// Risk improvement of a candidate on dev, negative when better.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn risk_improve(&self, table: &Table, patched: &CandidateFit) -> Result<Finite, Unfit> {
        let models = Models {
            baseline: &self.baseline,
            patched: &patched.fitted,
            candidate: &patched.candidate,
        };
        let compared = models.compared(table, &self.classified, &self.thresholds);
        compared.risk_improve(clover_event::payload::intake::SplitPart::Dev)
    }

    /// The event of a gate, with what both profiles say of its evidence.
    pub fn evaluated(
        &self,
        opened: &OpenIteration,
        candidate: Digest,
        split: CriterionSplit,
        inputs: RowsRead,
        evidence: Evidence,
        calibrators: Option<GateCalibrators>,
    ) -> GateEvaluated {
        let evidence = opened.claimed(evidence);
        GateEvaluated {
            battery: None,
            build: text(BUILD),
            calibrators,
            candidate,
            classification_hash: self.classification_hash,
            gate: evidence.gate(),
            inputs,
            iteration: opened.iteration.clone(),
            params_hash: opened.plan.params_hash(),
            seed_label: opened.seed_label(split),
            split,
            thresholds: self.thresholds.clone(),
            verdicts: predicate::verdicts(&evidence, &self.thresholds),
            evidence,
        }
    }

    /// Gates P0 to P7 of a candidate, in order, and its risk improvement on dev.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn on_dev(
        &self,
        opened: &OpenIteration,
        table: &Table,
        patched: &CandidateFit,
        patch: Admissible,
        battery: Gaming,
    ) -> Result<(Vec<GateEvaluated>, Finite), Unfit> {
        let models = Models {
            baseline: &self.baseline,
            patched: &patched.fitted,
            candidate: &patched.candidate,
        };
        let compared = models.compared(table, &self.classified, &self.thresholds);
        let mut evidence = vec![Evidence::P0(patch)];
        evidence.extend(models.dev(&compared)?);
        evidence.push(Evidence::P7(battery));
        let part = clover_event::payload::intake::SplitPart::Dev;
        let improve = compared.risk_improve(part)?;
        let calibrators = self.calibrators(&patched.fitted);
        let gate = |evidence| {
            self.evaluated(
                opened,
                patched.candidate.patch,
                CriterionSplit::Dev,
                self.inputs,
                evidence,
                Some(calibrators),
            )
        };
        Ok((evidence.into_iter().map(gate).collect(), improve))
    }

    fn calibrators(&self, patched: &CalibratorFit) -> GateCalibrators {
        GateCalibrators {
            baseline: said::calibrator(&self.baseline),
            candidate: said::calibrator(patched),
        }
    }

    /// Gates P4, P6, P8 to P10 of a candidate on the unsealed block, in order. The calibrators are those of dev: the block
    /// holds rows that were not there before, and no label of fit.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn on_confirm(
        &self,
        opened: &OpenIteration,
        table: &Table,
        (candidate, fitted): (&ScoredRubric, &CalibratorFit),
        (through_seq, block): (Count, Option<&Block>),
    ) -> Result<Vec<GateEvaluated>, Unfit> {
        table.check(candidate)?;
        let patched = fitted.clone().over(table, &candidate.scored);
        let baseline = self.baseline.clone().over(table, &table.data().scored);
        let models = Models {
            baseline: &baseline,
            patched: &patched,
            candidate,
        };
        let compared = models.compared(table, &self.classified, &self.thresholds);
        let seed = opened.seed(opened.seed_label(CriterionSplit::Confirm).as_str());
        let share = self.uncertainty.share.share();
        let draws = (BOOTSTRAP_REPLICATES, *seed.as_bytes());
        let found = models.confirm(&compared, share, draws, block)?;
        let read = inputs(table, through_seq);
        let calibrators = Some(self.calibrators(fitted));
        let gate = |evidence| {
            let split = CriterionSplit::Confirm;
            self.evaluated(opened, candidate.patch, split, read, evidence, calibrators)
        };
        Ok(found.into_iter().map(gate).collect())
    }
}

impl Ground {
    /// The sequential test of a candidate over the clusters that are shown; the calibrators are those of the gates.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn looked(
        &self,
        table: &Table,
        (candidate, fitted): (&ScoredRubric, &CalibratorFit),
        block: &Block,
    ) -> Result<SequentialLook, Unfit> {
        table.check(candidate)?;
        let patched = fitted.clone().over(table, &candidate.scored);
        let baseline = self.baseline.clone().over(table, &table.data().scored);
        let models = Models {
            baseline: &baseline,
            patched: &patched,
            candidate,
        };
        let compared = models.compared(table, &self.classified, &self.thresholds);
        compared.sequential(block)
    }
}

/// Whether gates let a candidate pass under the profile that binds; `waived` says which gate may go unchecked.
pub fn pass(gates: &[GateEvaluated], waived: impl Fn(&GateEvaluated) -> bool) -> bool {
    gates.iter().all(|gate| {
        let said: Verdicts = gate.verdicts;
        match said.under(gate.thresholds.profile) {
            Verdict::Pass => true,
            Verdict::NotChecked => waived(gate),
            Verdict::Fail | Verdict::Inconclusive => false,
        }
    })
}

/// The two best candidates that passed on dev, whose composite goes to confirm as well: by risk improvement, then hash.
pub fn best_two(on_dev: &[OnDev]) -> Option<[Digest; 2]> {
    let mut passed: Vec<&OnDev> = on_dev
        .iter()
        .filter(|one| one.passed && one.patches.len() == 1)
        .collect();
    passed.sort_by(|a, b| {
        let improve = a.risk_improve.value().total_cmp(&b.risk_improve.value());
        improve.then(a.candidate.cmp(&b.candidate))
    });
    let [first, second, ..] = passed[..] else {
        return None;
    };
    let mut both = [first.candidate, second.candidate];
    both.sort_unstable();
    Some(both)
}

/// What is sealed: every candidate that passed on dev, the composite included if it did. `None` if none passed; then no
/// peek is spent.
pub fn sealing(opened: &OpenIteration, on_dev: &[OnDev]) -> Option<CandidatesSealed> {
    let mut hypotheses: Vec<SealedHypothesis> = on_dev
        .iter()
        .filter(|one| one.passed)
        .map(|one| SealedHypothesis {
            candidate: composite_of(&one.patches),
            patches: one.patches.clone(),
        })
        .collect();
    hypotheses.sort_by_key(|one| one.candidate);
    (!hypotheses.is_empty()).then(|| CandidatesSealed {
        divisor: thresholds_of(&opened.plan).hypotheses,
        hypotheses,
        iteration: opened.iteration.clone(),
    })
}
