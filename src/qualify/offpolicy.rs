//! `ope` vectors: stabilised weights, off-policy estimates and weight diagnostics on the real sample.

use std::collections::BTreeMap;

use clover_stats::calibrator;
use clover_stats::calibrator::Algorithm;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::Mode;
use clover_stats::calibrator::Model;
use clover_stats::folds;
use clover_stats::offpolicy;
use clover_stats::offpolicy::Draws;
use clover_stats::offpolicy::Estimator;
use clover_stats::offpolicy::Legacy;
use clover_stats::offpolicy::LoggedRows;
use clover_stats::offpolicy::OffPolicy;
use clover_stats::offpolicy::Outcome;
use clover_stats::offpolicy::Ranks;
use clover_stats::offpolicy::Rewards;
use clover_stats::offpolicy::RobustColumns;
use clover_stats::overlap;
use clover_stats::overlap::SurprisalThreshold;
use clover_stats::peer_draws;
use clover_stats::sample::Clusters;
use clover_stats::sample::Values;
use clover_stats::sample::Weights;
use clover_stats::weights;
use clover_stats::weights::CrossFitted;
use clover_stats::weights::LogRatios;
use clover_stats::weights::Objective;
use clover_stats::weights::Stabiliser;
use clover_stats::weights::StabiliserSettings;
use serde_json::Value;

use crate::check::Arena;
use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use crate::direct;
use crate::overlap::factors;
use crate::slips::Slip;

/// Seed of the calibration and outcome folds.
const SEED: i64 = 42;
/// Seed of the outer folds of calibrated IPS on its own.
const OUTER_SEED: i64 = 1042;
/// Target policies of the logged rows.
const TARGETS: [&str; 3] = ["clone", "parallel_universe_prompt", "unhelpful"];

/// Dispatches on the case's kind.
///
/// # Errors
/// [`Stop`].
pub fn ope(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let kind = case.input.at("kind")?;
    match kind.text()? {
        "simcal" => stabilised(case, check),
        "iso_mean_one_exact" => projected(case, check),
        "arena" => estimates(case, check),
        "arena_diag" => diagnostics(case, check),
        _ => Err(kind.unsupported("simcal, iso_mean_one_exact, arena and arena_diag")),
    }
}

fn column(values: &[f64]) -> Result<Values<'_>, Stop> {
    Values::new("column", values).map_err(refused)
}

fn weigh(values: &[f64]) -> Result<Weights<'_>, Stop> {
    Weights::new("weights", values, values.len()).map_err(refused)
}

fn projected(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (w, s) = (
        case.input.at("w")?.numbers()?,
        case.input.at("s")?.numbers()?,
    );
    let found = weights::project(weigh(&w)?, column(&s)?).map_err(refused)?;
    check.numbers(&case.expected.at("weights")?, &found)
}

fn stabilised(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let (w, s) = (input.at("w")?.numbers()?, input.at("s")?.numbers()?);
    let folds = input.at("fold_ids")?.counts()?;
    let config = input.at("config")?;
    if let Some(count) = config.maybe("n_folds")
        && folds
            .iter()
            .max()
            .is_some_and(|most| count.count().is_ok_and(|count| *most >= count))
    {
        return Err(count.malformed("more than every fold of fold_ids"));
    }
    let settings = StabiliserSettings {
        ess_floor: config.maybe("ess_floor").map(|n| n.number()).transpose()?,
        variance_cap: config.maybe("var_cap").map(|n| n.number()).transpose()?,
        baseline: config.at("include_baseline")?.flag()?,
        ridge: config.at("ridge_lambda")?.number()?,
        floor: config.at("epsilon")?.number()?,
    };
    let shrink = config.at("baseline_shrink")?;
    if shrink.number()?.abs() > 0.0 {
        return Err(shrink.unsupported("cases without shrinking, 0"));
    }
    let values;
    let objective = if let Some(residuals) = input.maybe("residuals") {
        values = residuals.numbers()?;
        Objective::Residuals(&values)
    } else {
        values = input.at("rewards")?.numbers()?;
        Objective::Rewards(&values)
    };
    let fitted = Stabiliser::fit(weigh(&w)?, column(&s)?, objective, &folds, &settings);
    let fitted = fitted.map_err(refused)?;
    let found = fitted.weights(weigh(&w)?, column(&s)?).map_err(refused)?;
    check.numbers(&expected.at("weights")?, &found)?;
    let shares: Vec<f64> = fitted.mixture.iter().map(|(_, share)| *share).collect();
    check.numbers(&expected.at("mixture")?, &shares)?;
    check.number(&expected.at("gamma")?, fitted.blend)?;
    let candidates = expected.at("candidates")?;
    check.count_of(&candidates, fitted.mixture.len());
    for (node, (shape, _)) in candidates.elements()?.iter().zip(&fitted.mixture) {
        check.text(node, shape.name())?;
    }
    for (name, values) in [("before", &w), ("after", &found)] {
        let measured = overlap::concentration(weigh(values)?);
        check.number(&expected.at(&format!("var_{name}"))?, measured.cv_squared)?;
        check.number(&expected.at(&format!("ess_{name}"))?, measured.ess.rows)?;
    }
    Ok(())
}

/// The logged rows of the real sample.
struct Log {
    ids: Vec<String>,
    scores: Vec<f64>,
    labels: Vec<Option<f64>>,
    base: Vec<f64>,
    targets: BTreeMap<String, Vec<f64>>,
    characters: Vec<f64>,
}

impl Log {
    fn read(arena: Option<&dyn Arena>) -> Result<Self, Stop> {
        let arena =
            arena.ok_or_else(|| Stop::NotRun("needs the real sample: --arena DIR".into()))?;
        let file = "logged_data.jsonl";
        let text = arena.text(file).map_err(Stop::NotRun)?;
        let mut log = Self {
            ids: Vec::new(),
            scores: Vec::new(),
            labels: Vec::new(),
            base: Vec::new(),
            targets: BTreeMap::new(),
            characters: Vec::new(),
        };
        for (at, line) in (1..).zip(text.lines()) {
            log.add(line).ok_or_else(|| Stop::Malformed {
                at: format!("{file}:{at}"),
                expected: "a logged row with its log-probabilities",
            })?;
        }
        Ok(log)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let row: Value = serde_json::from_str(line).ok()?;
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        let id = row
            .get("prompt_id")
            .or_else(|| row.get("metadata")?.get("prompt_id"));
        self.ids.push(id?.as_str()?.to_owned());
        self.scores.push(number("judge_score")?);
        self.labels.push(number("oracle_label"));
        self.base.push(number("base_policy_logprob")?);
        for (policy, value) in row.get("target_policy_logprobs")?.as_object()? {
            let of = self.targets.entry(policy.clone()).or_default();
            of.push(value.as_f64()?);
        }
        let response = row.get("response").and_then(Value::as_str);
        let counted = response.map(|text| text.chars().count() as f64);
        let characters = counted.or_else(|| number("response_characters"));
        self.characters.push(characters?.max(1.0));
        Some(())
    }

    fn folds(&self, seed: i64) -> Vec<usize> {
        let count = folds::FOLDS_DEFAULT;
        let of = self.ids.iter();
        of.map(|id| folds::hash_mod(id, count, seed)).collect()
    }

    fn ratios(&self, policy: &str) -> Result<LogRatios, Stop> {
        let target = self.targets.get(policy).map_or(&[][..], Vec::as_slice);
        LogRatios::new(target, &self.base).map_err(refused)
    }

    /// The calibrator of the labelled rows, on the folds of all.
    fn calibrator(&self, mode: Mode, folds: &[usize]) -> Result<Calibrator, Stop> {
        let rows: Vec<usize> = (0..self.ids.len())
            .filter(|&row| self.labels[row].is_some())
            .collect();
        let scores: Vec<f64> = rows.iter().map(|&row| self.scores[row]).collect();
        let labels: Vec<f64> = rows.iter().filter_map(|&row| self.labels[row]).collect();
        let own: Vec<usize> = rows.iter().map(|&row| folds[row]).collect();
        let settings = calibrator::CalibratorSettings {
            algorithm: Algorithm::Peer0,
            mode,
        };
        let count = folds::FOLDS_DEFAULT;
        calibrator::fit(&scores, &labels, &[], &own, count, None, settings).map_err(refused)
    }
}

/// Scores of a policy's draws with the number of each prompt among the logged ones.
fn draws_of(
    arena: Option<&dyn Arena>,
    policy: &str,
    log: &Log,
) -> Result<(Vec<f64>, Vec<u32>), Stop> {
    let file = format!("fresh_draws/{policy}_responses.jsonl");
    let fresh = direct::arena_file(arena, &file, &[])?;
    let number: BTreeMap<&str, u32> = log.ids.iter().map(String::as_str).zip(0..).collect();
    let of = fresh
        .prompts
        .iter()
        .map(|id| number.get(id.as_str()).copied());
    Ok((
        fresh.scores.clone(),
        of.map(|n| n.unwrap_or(u32::MAX)).collect(),
    ))
}

/// Rewards of draws as the peer predicts them, one at a time: at its slips the draw takes the rank of the tie before.
fn one_by_one(
    calibrator: &Calibrator,
    scores: Values<'_>,
    slips: &[Slip],
) -> Result<Rewards, Stop> {
    let rewards = Rewards::of(calibrator, scores, &[]).map_err(refused)?;
    let mut without_fold = rewards.without_fold().to_vec();
    for (fold, at) in slips.iter().map(|slip| (slip.fold, slip.score)) {
        let Some(Model::Ranked { ecdf, curve, .. }) = calibrator.without_fold.get(fold) else {
            continue;
        };
        let rank = calibrator.without_fold[fold].rank(at, &[]);
        let below = ecdf.knots().1.iter().filter(|known| **known < rank);
        let slipped = curve.at(below.fold(0.0, |most, &known| f64::max(most, known)));
        for (value, score) in without_fold[fold].iter_mut().zip(scores.as_slice()) {
            if (score - at).abs() <= 0.0 {
                *value = slipped.clamp(0.0, 1.0);
            }
        }
    }
    Rewards::new(rewards.full().to_vec(), without_fold).map_err(refused)
}

/// One policy's answer.
struct Answer {
    estimate: OffPolicy,
    legacy: Legacy,
    weights: Vec<f64>,
    parts: Option<RobustColumns>,
    components: Vec<OffPolicy>,
    shares: Vec<f64>,
    has_df: bool,
}

/// An answer with the interval that the peer gives it.
fn answer(
    estimate: OffPolicy,
    weights: Vec<f64>,
    clusters: Option<&[usize]>,
) -> Result<Answer, Stop> {
    Ok(Answer {
        legacy: estimate.legacy(clusters).map_err(refused)?,
        estimate,
        weights,
        parts: None,
        components: Vec::new(),
        shares: Vec::new(),
        has_df: false,
    })
}

/// What every policy of a case shares.
struct Setting<'a> {
    arena: Option<&'a dyn Arena>,
    slips: &'a [Slip],
    log: &'a Log,
    folds: &'a [usize],
    calibrator: &'a Calibrator,
    logged: &'a LoggedRows<'a>,
}

impl Setting<'_> {
    fn objective(&self) -> Objective<'_> {
        Objective::Rewards(self.logged.out_of_fold())
    }

    fn cross_fit(&self, raw: &[f64], outer: &[usize]) -> Result<CrossFitted, Stop> {
        let index = column(self.logged.out_of_fold())?;
        let settings = StabiliserSettings::default();
        weights::cross_fit(
            weigh(raw)?,
            index,
            self.objective(),
            outer,
            self.folds,
            &settings,
        )
        .map_err(refused)
    }

    fn weighted(&self, estimator: Estimator, found: Vec<f64>) -> Result<Answer, Stop> {
        let estimate = offpolicy::weighted_mean(estimator, self.logged, weigh(&found)?);
        answer(estimate.map_err(refused)?, found, None)
    }

    fn run(&self, estimator: &Node<'_>, policy: &str) -> Result<Answer, Stop> {
        let raw = self.log.ratios(policy)?.mean_one();
        match estimator.text()? {
            "snips" => self.weighted(Estimator::Snips, raw),
            "cal_ips_single_pass" => {
                let index = column(self.logged.out_of_fold())?;
                let (objective, settings) = (self.objective(), StabiliserSettings::default());
                let own = weigh(&raw)?;
                let fitted = Stabiliser::fit(own, index, objective, self.folds, &settings);
                let found = fitted
                    .map_err(refused)?
                    .weights(own, index)
                    .map_err(refused)?;
                self.weighted(Estimator::CalibratedIps, found)
            }
            "cal_ips_outer_cv" => {
                let outer = self.log.folds(OUTER_SEED);
                let found = self.cross_fit(&raw, &outer)?;
                let estimate = offpolicy::legacy_honest(self.logged, &found, &outer);
                let estimate = estimate.map_err(refused)?;
                let mut answer = answer(estimate, found.weights, Some(&outer))?;
                answer.has_df = true;
                Ok(answer)
            }
            "dr_cpo_raw_weights" => self.robust(policy, raw, false),
            "dr_cpo_calibrated" | "stacked_dr" => {
                let found = self.cross_fit(&raw, self.folds)?;
                let stacked = estimator.text()? == "stacked_dr";
                self.robust(policy, found.weights, stacked)
            }
            _ => Err(estimator.unsupported("the six estimators of VECTORS.md")),
        }
    }

    fn robust(&self, policy: &str, found: Vec<f64>, stacked: bool) -> Result<Answer, Stop> {
        let (scores, prompts) = draws_of(self.arena, policy, self.log)?;
        let scores = column(&scores)?;
        let rewards = one_by_one(self.calibrator, scores, self.slips)?;
        let draws = Draws::new(&rewards, &prompts, self.logged).map_err(refused)?;
        let own = weigh(&found)?;
        let (plain, parts) = offpolicy::doubly_robust(self.logged, &draws, own).map_err(refused)?;
        if !stacked {
            let mut answer = answer(plain, found, Some(self.folds))?;
            answer.parts = Some(parts);
            return Ok(answer);
        }
        let logged_scores = column(&self.log.scores)?;
        let ranks = |scores| Ranks::of(self.calibrator, scores, &[]).map_err(refused);
        let (logged_ranks, draw_ranks) = (ranks(logged_scores)?, ranks(scores)?);
        let outcome = |logged, weights| {
            Outcome::isotonic(logged, &draws, &logged_ranks, &draw_ranks, weights).map_err(refused)
        };
        let own_outcome = outcome(self.logged, None)?;
        let (moved, _) = offpolicy::targeted(
            self.logged,
            &draws,
            own,
            &own_outcome,
            logged_scores,
            scores,
        )
        .map_err(refused)?;
        // The peer fits this component on shuffled folds, not on those of the calibrator.
        let shuffled = peer_draws::shuffled_folds(42, self.logged.len(), folds::FOLDS_DEFAULT);
        let other = LoggedRows::new(self.logged.rewards(), &shuffled, self.logged.prompts());
        let other = other.map_err(refused)?;
        let weighted_outcome = outcome(&other, Some(own))?;
        let (weighted, _) =
            offpolicy::more_robust(&other, &draws, own, &weighted_outcome).map_err(refused)?;
        let components = vec![plain, moved, weighted];
        let stack = offpolicy::stack(&components).map_err(refused)?;
        let mut answer = answer(stack.estimate, found, Some(self.folds))?;
        answer.components = components;
        answer.shares = stack.shares.iter().map(|(_, share)| *share).collect();
        Ok(answer)
    }
}

fn estimates(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let input = &case.input;
    let (seed, count) = (input.at("seed")?, input.at("n_folds")?);
    if seed.integer()? != SEED {
        return Err(seed.unsupported("cases of seed 42: the peer's other seeds follow from it"));
    }
    if count.count()? != folds::FOLDS_DEFAULT {
        return Err(count.unsupported("cases of 5 folds"));
    }
    let mode = input.at("calibration_mode")?;
    let mode = match mode.text()? {
        "monotone" => Mode::Monotone,
        "two_stage" => Mode::TwoStage,
        _ => return Err(mode.unsupported("monotone and two_stage")),
    };
    let mut log = Log::read(case.arena)?;
    let known = |id: &str| log.ids.iter().any(|own| own == id);
    if let Some(kept) = direct::kept(&input.at("base_labels_kept")?, known)? {
        for (label, id) in log.labels.iter_mut().zip(&log.ids) {
            *label = label.filter(|_| kept.contains(id.as_str()));
        }
    }
    let folds = log.folds(SEED);
    let calibrator = log.calibrator(mode, &folds)?;
    let rewards = Rewards::of(&calibrator, column(&log.scores)?, &[]).map_err(refused)?;
    let prompts = Clusters::of(log.ids.iter()).map_err(refused)?;
    let logged = LoggedRows::new(&rewards, &folds, &prompts).map_err(refused)?;
    let setting = Setting {
        arena: case.arena,
        slips: case.slips,
        log: &log,
        folds: &folds,
        calibrator: &calibrator,
        logged: &logged,
    };
    let estimator = input.at("estimator")?;
    let answers: Vec<Answer> = TARGETS
        .iter()
        .map(|policy| setting.run(&estimator, policy))
        .collect::<Result<_, _>>()?;
    compare(&case.expected, check, &setting, &answers)
}

fn compare(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    setting: &Setting<'_>,
    answers: &[Answer],
) -> Result<(), Stop> {
    let column_of = |of: &dyn Fn(&Answer) -> f64| answers.iter().map(of).collect::<Vec<f64>>();
    check.numbers(
        &expected.at("estimates")?,
        &column_of(&|a| a.estimate.value),
    )?;
    check.numbers(
        &expected.at("standard_errors")?,
        &column_of(&|a| a.legacy.se),
    )?;
    let policies = expected.at("policies")?;
    check.count_of(&policies, TARGETS.len());
    for (at, (policy, answer)) in TARGETS.iter().zip(answers).enumerate() {
        check.text(&policies.index(at)?, policy)?;
        check.count(
            &expected.at("n_samples_used")?.at(policy)?,
            answer.weights.len(),
        )?;
        if let Some(df) = expected.maybe("df").and_then(|df| df.maybe(policy)) {
            check.count(&df, answer.legacy.df)?;
        } else if answer.has_df {
            check.fail(expected, "degrees of freedom are not expected".to_owned());
        }
        if let Some(ess) = expected.maybe("ess_fraction") {
            let found = overlap::ess(weigh(&answer.weights)?).fraction;
            check.number(&ess.at(policy)?, found)?;
        }
        if let Some(parts) = &answer.parts {
            residuals(expected, check, setting, policy, answer, parts)?;
        }
        stacked(expected, check, (at, policy), answer)?;
    }
    Ok(())
}

/// The diagnostics of a doubly robust estimate.
fn residuals(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    setting: &Setting<'_>,
    policy: &str,
    answer: &Answer,
    parts: &RobustColumns,
) -> Result<(), Stop> {
    let own = weigh(&answer.weights)?;
    let full = column(setting.logged.rewards().full())?;
    let predicted = column(&parts.predicted)?;
    let prompts = setting.logged.prompts();
    let test = overlap::orthogonality(own, full, predicted, prompts, 0.05).map_err(refused)?;
    let node = expected.at("orthogonality")?.at(policy)?;
    check.number(&node.at("score")?, test.mean)?;
    check.number(&node.at("se")?, test.standard_error)?;
    check.number(&node.at("z_statistic")?, test.z)?;
    check.p_value(&node.at("p_value")?, test.p)?;
    check.number(&node.at("ci_lower")?, test.interval.low)?;
    check.number(&node.at("ci_upper")?, test.interval.high)?;
    let split = overlap::split(column(&parts.direct)?, own, full, predicted).map_err(refused)?;
    let node = expected.at("dm_ips")?.at(policy)?;
    check.number(&node.at("dm_component")?, split.direct)?;
    check.number(&node.at("ips_augmentation")?, split.weighted)?;
    check.number(&node.at("total")?, split.total())?;
    check.number(&node.at("dm_se")?, split.direct_error)?;
    check.number(&node.at("ips_se")?, split.weighted_error)?;
    check.number(&node.at("dm_contribution")?, split.direct_share)?;
    check.number(&node.at("ips_contribution")?, 1.0 - split.direct_share)?;
    check.maybe(&node.at("correlation")?, split.correlation)?;
    let variance = expected.at("oracle_var")?.at(policy)?;
    check.number(&variance, answer.legacy.calibration)
}

/// The components of a mixture.
fn stacked(
    expected: &Node<'_>,
    check: &mut Check<'_>,
    (at, policy): (usize, &str),
    answer: &Answer,
) -> Result<(), Stop> {
    let Some(components) = expected.maybe("components") else {
        return Ok(());
    };
    check.count_of(&components, answer.components.len());
    for (place, component) in answer.components.iter().enumerate() {
        let name = component.estimator.name();
        check.text(&components.index(place)?, name)?;
        let values = expected.at("component_estimates")?.at(name)?;
        check.count_of(&values, TARGETS.len());
        check.number(&values.index(at)?, component.value)?;
    }
    let shares = expected.at("stack_weights")?.at(policy)?;
    check.numbers(&shares, &answer.shares)
}

fn diagnostics(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let expected = &case.expected;
    let log = Log::read(case.arena)?;
    let policy = case.input.at("policy")?;
    let policy = policy.text()?;
    let ratios = log.ratios(policy)?;
    let mean_one = ratios.mean_one();
    let weights = weigh(&mean_one)?;
    let found = overlap::concentration(weights);
    check.count(&expected.at("n")?, found.rows)?;
    check.number(&expected.at("ess_fraction")?, found.ess.fraction)?;
    check.number(&expected.at("max_share")?, found.max_share)?;
    check.maybe(&expected.at("hill")?, overlap::hill(weights, 0.05).index())?;
    check.maybe(
        &expected.at("hill_stable")?,
        overlap::hill_stable(weights).index(),
    )?;
    let affinity = overlap::hellinger_of_weights(weights);
    check.number(&expected.at("hellinger_action")?, affinity)?;
    let (fresh, _) = draws_of(case.arena, policy, &log)?;
    let shared = overlap::bhattacharyya(column(&log.scores)?, column(&fresh)?, 20);
    check.number(
        &expected.at("A_B_judge_vs_fresh")?,
        shared.map_err(refused)?,
    )?;
    let target = log.targets.get(policy).map_or(&[][..], Vec::as_slice);
    for (name, lengths) in [
        ("cle_total_surprisal", None),
        ("cle_per_char", Some(log.characters.as_slice())),
    ] {
        let found = overlap::coverage(
            target,
            &log.base,
            lengths,
            SurprisalThreshold::Logged,
            overlap::TYPICAL_MASS,
        );
        let found = found.map_err(refused)?;
        let node = expected.at(name)?;
        check.number(&node.at("beta")?, found.ttc)?;
        check.number(&node.at("bhattacharyya")?, found.hellinger)?;
        check.maybe(&node.at("chi_squared_T")?, found.chi_squared)?;
        check.count(&node.at("n_samples")?, target.len())?;
        factors(&node, check, &found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::bundled;

    #[test]
    fn the_vectors_pass() {
        let report = bundled("ope.json");
        assert!(report.is_clean(), "{:#?}", report.failures);
        assert_eq!(report.passed, report.cases, "{:?}", report.not_run);
    }
}
