//! The statistics of a run over its record: integers become shares, and `clover_stats::descent` computes.

use std::collections::BTreeMap;

use clover_event::payload::sgd::SgdDistance;
use clover_event::payload::sgd::SgdLoss;
use clover_event::payload::sgd::SgdRanking;
use clover_event::payload::sgd::SgdRow;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd_steps::SgdTrigger;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::Unmet;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_projection::sgd::RowScores;
use clover_projection::sgd::SgdRun;
use clover_prompt::GradientRequest;
use clover_prompt::JudgePrompt;
use clover_prompt::gradient::ClassNumbers;
use clover_prompt::gradient::Hundredths;
use clover_prompt::gradient::LossNumbers;
use clover_stats::descent;
use clover_stats::descent::Aggregates;
use clover_stats::descent::Constants;
use clover_stats::descent::Deviation;
use clover_stats::descent::ErrorClasses;
use clover_stats::descent::Evaluation;
use clover_stats::descent::Loss;
use clover_stats::descent::LossTerms;
use clover_stats::descent::Ranking;
use clover_stats::descent::ScoredRows;
use clover_stats::descent::SplitPart;
use clover_stats::descent::Strata;
use clover_stats::descent::Trigger;

/// Where a score decides: scores near it are easily confused.
const CUT: f64 = 0.5;
/// Least gap of targets that makes a pair.
const GAP_MIN: f64 = 0.1;

/// What refuses to be computed.
#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are handed over as they come"
)]
fn refused<T: ToString>(what: T) -> Unmet {
    Unmet {
        expected: "numbers of which a loss is computed".to_owned(),
        found: what.to_string(),
    }
}

fn share(of: Micro) -> f64 {
    of.value() as f64 / 1e6
}

fn deviation(of: SgdDistance) -> Deviation {
    match of {
        SgdDistance::Huber => Deviation::Huber,
        SgdDistance::Mae => Deviation::Absolute,
    }
}

fn terms(run: &SgdRun) -> LossTerms {
    let of = &run.said.terms;
    LossTerms {
        alpha: share(of.alpha_micro),
        beta: share(of.beta_micro),
        gamma: share(of.gamma_micro),
        eta: share(of.eta_micro),
        zeta: share(of.zeta_micro),
        deviation: deviation(of.distance),
        ranking: match of.ranking {
            SgdRanking::Hinge => Ranking::Hinge,
            SgdRanking::Logistic => Ranking::Logistic,
        },
    }
}

fn targets<'r>(rows: impl IntoIterator<Item = &'r SgdRow>) -> Vec<f64> {
    rows.into_iter()
        .map(|row| share(row.target_micro))
        .collect()
}

fn constants(run: &SgdRun, selfvar: f64) -> Result<Constants, Unmet> {
    let targets = targets(run.rows(SgdSplit::Train));
    let found = Constants::of(&targets, selfvar, deviation(run.said.terms.distance));
    found.map_err(refused)
}

fn scored(run: &SgdRun, rows: &[&SgdRow], scores: &RowScores) -> Result<ScoredRows, Unmet> {
    let targets = targets(rows.iter().copied());
    // Shares of all rows one after the other: a run has many rows, and few scores of each.
    let shares: Vec<f64> = scores.iter().flatten().map(|score| share(*score)).collect();
    let mut rest = shares.as_slice();
    let of_row = scores.iter().map(|row| {
        let (of, after) = rest.split_at(row.len());
        rest = after;
        of
    });
    let repeats = u32::try_from(run.said.terms.repeats.value()).unwrap_or(u32::MAX);
    let found = ScoredRows::new(&targets, of_row, repeats);
    found.map_err(refused)
}

fn of_rows(
    run: &SgdRun,
    rows: &[&SgdRow],
    scores: &RowScores,
    selfvar: Option<f64>,
) -> Result<(ScoredRows, Loss), Unmet> {
    let rows = scored(run, rows, scores)?;
    let selfvar = selfvar.unwrap_or_else(|| rows.selfvar());
    let constants = constants(run, selfvar)?;
    let loss = descent::loss(&rows, &terms(run), &constants).map_err(refused)?;
    Ok((rows, loss))
}

fn finite(value: f64) -> Result<Finite, Unmet> {
    Finite::new(value).ok_or_else(|| refused(value))
}

/// The loss of rows with their scores; `selfvar` is that of prompt 0, where it is known.
///
/// # Errors
/// [`Unmet`] where the numbers give none.
pub fn loss(
    run: &SgdRun,
    rows: &[&SgdRow],
    scores: &RowScores,
    selfvar: Option<f64>,
) -> Result<SgdLoss, Unmet> {
    let (_, of) = of_rows(run, rows, scores, selfvar)?;
    let some = |value: Option<f64>| value.map(finite).transpose();
    Ok(SgdLoss {
        abs: finite(of.abs)?,
        concordance: some(of.concordance)?,
        contraction: finite(of.contraction)?,
        entropy: finite(of.entropy)?,
        failures: finite(of.failures)?,
        loss: finite(of.loss)?,
        pairs: Count::new(of.pairs).unwrap_or_default(),
        rank: some(of.rank)?,
        sd_ratio: some(of.sd_ratio)?,
        selfvar: finite(of.selfvar)?,
        spearman: some(of.spearman)?,
        tau_b: some(of.tau_b)?,
    })
}

/// Places of a batch in train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnBatch {
    /// Rows from the confusable stratum.
    pub confusable: u64,
    /// Rows from the high stratum.
    pub high: u64,
    /// Rows from the low stratum.
    pub low: u64,
    /// All of them, ascending.
    pub rows: Vec<usize>,
}

/// A seed below another: SHA-256 of it, a zero byte and a label.
pub fn seed_below(seed: Digest, label: &str) -> [u8; 32] {
    let mut bytes = seed.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(label.as_bytes());
    *Digest::sha256(&bytes).as_bytes()
}

/// The batch of the next step; drawn once more where it has no pair.
///
/// # Errors
/// [`Unmet`] where no row falls into it.
pub fn batch(run: &SgdRun) -> Result<DrawnBatch, Unmet> {
    let targets = targets(run.rows(SgdSplit::Train));
    let strata = Strata::of(&targets);
    let mut uses = vec![0_u32; targets.len()];
    for place in run.steps.iter().filter_map(|step| step.batch.as_ref()) {
        for place in &place.rows {
            let place = usize::try_from(place.value()).unwrap_or(usize::MAX);
            if let Some(uses) = uses.get_mut(place) {
                *uses += 1;
            }
        }
    }
    let last = run.train.iter().map(|scores| {
        let shares: Vec<f64> = scores.iter().map(|score| share(*score)).collect();
        let of = descent::RowScores::of(&shares)?;
        Some((of.mean, of.variance))
    });
    let last: Vec<_> = last.collect();
    let size = usize::try_from(run.said.terms.batch.value()).unwrap_or(0);
    let label = format!("sgd/batch/{}", run.taken());
    let draw = |label: &str| {
        let seed = seed_below(run.said.seed, label);
        descent::batch(&strata, &last, &[CUT], &uses, size, seed)
    };
    let has_pair = |batch: &descent::Batch| {
        let far = |high: &usize| {
            let mut low = batch.low.iter();
            low.any(|low| targets[*high] - targets[*low] >= GAP_MIN)
        };
        batch.high.iter().any(far)
    };
    let first = draw(&label);
    let drawn = if has_pair(&first) {
        first
    } else {
        draw(&format!("{label}/again"))
    };
    let rows = drawn.rows();
    if rows.is_empty() {
        return Err(refused("no row of train"));
    }
    Ok(DrawnBatch {
        confusable: drawn.confusable.len() as u64,
        high: drawn.high.len() as u64,
        low: drawn.low.len() as u64,
        rows,
    })
}

fn class(rows: Option<&descent::AggregateClass>) -> ClassNumbers {
    let hundredths = |of: fn(&descent::AggregateClass) -> i32| rows.map(|row| Hundredths(of(row)));
    ClassNumbers {
        axis_means: Vec::new(),
        count: rows.map(|of| of.count),
        mean_r: hundredths(|of| of.mean_r),
        quantiles: rows.map(|of| of.quantiles.map(Hundredths)),
        sd_r: hundredths(|of| of.sd_r),
        selfvar: hundredths(|of| of.selfvar),
    }
}

/// The request of a step: aggregates of its batch, and the prompt.
///
/// # Errors
/// [`Unmet`] where the numbers give none.
pub fn request(
    run: &SgdRun,
    (rows, scores): (&[&SgdRow], &RowScores),
    (prompt, lr, step, before): (&JudgePrompt, Micro, u32, Option<Digest>),
    selfvar: Option<f64>,
) -> Result<GradientRequest, Unmet> {
    let (rows, loss) = of_rows(run, rows, scores, selfvar)?;
    let classes = ErrorClasses::of(&rows);
    let told = Aggregates::of(&rows, &classes);
    let rounded = |value: f64| Hundredths(Aggregates::rounded(value));
    let [a, b, c] = &told.classes;
    Ok(GradientRequest {
        class_stats: [class(a.as_ref()), class(b.as_ref()), class(c.as_ref())],
        loss_terms: LossNumbers {
            abs: rounded(loss.abs),
            instability: rounded(loss.instability),
            loss: rounded(loss.loss),
            parse_failures: rounded(loss.failures),
            rank: loss.rank.map(rounded),
            spread: rounded(loss.contraction),
        },
        lr,
        prev_gradient_digest: before,
        prompt: prompt.clone(),
        step,
        table: told.table,
    })
}

/// Standard error of the weighted distance of val under a prompt less that under the best before, paired by item.
///
/// # Errors
/// [`Unmet`] where the numbers give none.
pub fn paired_error(run: &SgdRun, scores: &RowScores) -> Result<Finite, Unmet> {
    let rows: Vec<&SgdRow> = run.rows(SgdSplit::Val).iter().collect();
    let (now, best) = (
        scored(run, &rows, scores)?,
        scored(run, &rows, &run.best_scores)?,
    );
    let base = run.base_loss.required("sgd.loss_computed of base")?;
    let constants = constants(run, base.selfvar.value())?;
    let form = deviation(run.said.terms.distance);
    let of = |rows: &ScoredRows| -> BTreeMap<usize, f64> {
        let sizes = rows.residuals().into_iter().map(|of| form.of(of));
        rows.places.iter().copied().zip(sizes).collect()
    };
    let (now, best) = (of(&now), of(&best));
    let weight = share(run.said.terms.alpha_micro) / constants.c_abs;
    let differences = now
        .iter()
        .filter_map(|(place, now)| Some(weight * (now - best.get(place)?)));
    let differences: Vec<f64> = differences.collect();
    finite(descent::paired_error(&differences))
}

fn evaluations(run: &SgdRun) -> Result<Vec<Evaluation>, Unmet> {
    let evaluation = |train: &SgdLoss, val: &SgdLoss, error: f64| Evaluation {
        train: train.loss.value(),
        val: val.loss.value(),
        error,
        rank: val.tau_b.map(Finite::value),
        entropy: val.entropy.value(),
        selfvar: val.selfvar.value(),
        contraction: val.contraction.value(),
    };
    let base = run.base_loss.required("sgd.loss_computed of base")?;
    let val = run.val_loss.required("sgd.loss_computed of val")?;
    let first = evaluation(&base, &val, 0.0);
    let taken = run.steps.iter().filter_map(|step| step.committed.as_ref());
    let rest = taken.map(|of| evaluation(&of.train, &of.val, of.error.value()));
    Ok(std::iter::once(first).chain(rest).collect())
}

fn course(run: &SgdRun) -> Result<(descent::Course, usize), Unmet> {
    let all = evaluations(run)?;
    let base = run.base_loss.required("sgd.loss_computed of base")?;
    let constants = constants(run, base.selfvar.value())?;
    Ok((descent::course(&all, constants.v_0), all.len()))
}

/// Whether the last step is to be taken back.
///
/// # Errors
/// [`Unmet`] before the first losses.
pub fn reverts(run: &SgdRun) -> Result<bool, Unmet> {
    let (course, count) = course(run)?;
    Ok(count > 1 && course.takes_back(count))
}

fn word(of: Trigger) -> SgdTrigger {
    match of {
        Trigger::Contracted => SgdTrigger::Contraction,
        Trigger::EntropyLost => SgdTrigger::Entropy,
        Trigger::Oscillation => SgdTrigger::Oscillation,
        Trigger::Overfit => SgdTrigger::Overfit,
        Trigger::RankLost => SgdTrigger::Rank,
        Trigger::Unstable => SgdTrigger::Selfvar,
    }
}

/// What triggers a stop at the newest evaluation, in the order of the words.
///
/// # Errors
/// [`Unmet`] before the first losses.
pub fn triggers(run: &SgdRun) -> Result<Vec<SgdTrigger>, Unmet> {
    let (course, count) = course(run)?;
    let newest = course.triggers.iter().filter(|(at, _)| at + 1 == count);
    let mut words: Vec<SgdTrigger> = newest.map(|(_, of)| word(*of)).collect();
    words.sort_unstable();
    Ok(words)
}

/// The part of each of so many clusters, which are in ascending order.
pub fn parts(clusters: usize, seed: Digest) -> Vec<SgdSplit> {
    let parts = descent::split(clusters, seed_below(seed, "sgd/split"));
    let word = |of: SplitPart| match of {
        SplitPart::Confirm => SgdSplit::Confirm,
        SplitPart::Test => SgdSplit::Test,
        SplitPart::Train => SgdSplit::Train,
        SplitPart::Val => SgdSplit::Val,
    };
    parts.into_iter().map(word).collect()
}
