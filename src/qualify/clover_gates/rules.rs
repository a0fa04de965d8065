//! The same vectors through the code that judges candidates: evidence as a gate event carries it, verdicts by the rules.
//!
//! The vectors hold statistics, not verdicts; what a rule must say follows from the expected numbers and the default
//! thresholds.

use clover_event::payload::Verdict;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::Profile;
use clover_event::payload::manifest::RegressionGuard;
use clover_event::payload::manifest::ShiftMetric;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::Thresholds;
use clover_num::Count;
use clover_num::Micro;
use clover_stats::residuals::Class;

use crate::check::Case;
use crate::check::Check;
use crate::check::Node;
use crate::check::Stop;
use crate::check::refused;
use clover_workflow::iterate::compute::IterationRows;
use clover_workflow::iterate::compute::SliceFamily;
use clover_workflow::iterate::compute::Table;
use clover_workflow::iterate::compute::audit::GateSlice;
use clover_workflow::iterate::compute::evidence;
use clover_workflow::iterate::compute::evidence::RewardComparison;
use clover_workflow::iterate::compute::rows::RubricScores;
use clover_workflow::predicate;
use clover_workflow::predicate::ProfileThresholds;

const REPLICATES: usize = 50;

fn micro(value: f64) -> Micro {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tolerances and levels of the vectors are whole millionths"
    )]
    let millionths = (value * 1e6).round() as i64;
    Micro::new(millionths).unwrap_or_default()
}

/// The registered defaults, t on confirm, by the letter where a slice must not regress.
fn thresholds(input: &Node<'_>) -> Result<Thresholds, Stop> {
    Ok(Thresholds {
        alpha_micro: micro(0.05),
        confirm_test: ConfirmTest::T,
        drift_max_micro: micro(0.01),
        ece_slack_micro: micro(0.005),
        eta_micro: micro(0.0005),
        hypotheses: Count::new(1).unwrap_or_default(),
        ks_max_micro: micro(0.05),
        must_not_regress: RegressionGuard::Literal,
        profile: Profile::Recommended,
        q_micro: micro(input.at("bh_q")?.number()?),
        shift_metric: ShiftMetric::Ks,
        style_max_micro: micro(0.02),
        tau_micro: micro(input.at("tau_g_default")?.number()?),
        uplift_max_micro: micro(0.05),
        w1_max_micro: micro(0.02),
    })
}

/// The rows of a case, all in one part.
struct Stage {
    table: Table,
    classified: Vec<GateSlice>,
}

fn stage(input: &Node<'_>, part: SplitPart) -> Result<Stage, Stop> {
    let labels = input.at("y")?.numbers()?;
    let rows = labels.len();
    let of_row = input.at("slice")?.texts()?;
    let mut names = of_row.clone();
    names.sort_unstable();
    names.dedup();
    let (greens, risks) = (input.at("green")?.texts()?, input.at("risk")?.texts()?);
    let (mut classified, mut must_not_regress) = (Vec::new(), Vec::new());
    for (place, name) in names.iter().enumerate() {
        let class = if risks.contains(name) {
            Class::Risk
        } else if greens.contains(name) {
            Class::Green
        } else {
            Class::Neutral
        };
        must_not_regress.push(input.at("tau_g")?.maybe(name).is_some());
        classified.push(GateSlice {
            family: 0,
            place,
            class,
            exposure: input.at("w")?.at(name)?.number()?,
            stakes: input.at("u")?.at(name)?.number()?,
            must_not_regress: must_not_regress[place],
        });
    }
    let place = |name: &&str| names.iter().position(|other| other == name);
    let id = |name: &&str| name.parse().map_err(refused);
    let table = Table::new(IterationRows {
        rows: (0..rows).map(|row| row.to_string()).collect(),
        clusters: (0..rows).map(|row| row.to_string()).collect(),
        parts: vec![Some(part); rows],
        scored: RubricScores::of(input.at("R_baseline")?.numbers()?),
        labels: labels.into_iter().map(Some).collect(),
        inclusion: vec![None; rows],
        slices: vec![SliceFamily {
            id: "slice".parse().map_err(refused)?,
            slices: names.iter().map(id).collect::<Result<_, _>>()?,
            stakes: classified.iter().map(|slice| slice.stakes).collect(),
            must_not_regress,
            of_row: of_row.iter().map(place).collect(),
        }],
        ..IterationRows::default()
    });
    Ok(Stage {
        table: table.map_err(refused)?,
        classified,
    })
}

/// Judges evidence and compares with what the expected numbers demand.
fn demand(
    check: &mut Check<'_>,
    at: &Node<'_>,
    evidence: &Evidence,
    held: &ProfileThresholds,
    passes: bool,
) {
    let verdict = predicate::check(evidence, held);
    let wanted = if passes { Verdict::Pass } else { Verdict::Fail };
    if verdict != wanted {
        let gate = evidence.gate();
        check.fail(
            at,
            format!("gate {gate} says {verdict:?}, expected {wanted:?}"),
        );
    }
}

/// P1 to P5, P8 and P9 of one case.
///
/// # Errors
/// [`Stop`].
pub(super) fn through_the_rules(case: &Case<'_>, check: &mut Check<'_>) -> Result<(), Stop> {
    let (input, expected) = (&case.input, &case.expected);
    let thresholds = thresholds(input)?;
    let held = ProfileThresholds::under(&thresholds, Profile::Recommended);
    let before = input.at("R_baseline")?.numbers()?;
    let after = input.at("R_patched")?.numbers()?;
    let abstains = vec![false; after.len()];
    let change = expected.at("delta_mse")?.number()?;
    let p = expected.at("confirm_one_sided")?.at("p")?.number()?;
    for part in [SplitPart::Dev, SplitPart::Confirm] {
        let stage = stage(input, part)?;
        let compared = RewardComparison {
            table: &stage.table,
            before: &before,
            after: &after,
            abstains: &abstains,
            classified: &stage.classified,
            thresholds: &thresholds,
        };
        let greens = compared.greens(part).map_err(refused)?;
        let all = expected.at("noninferiority_all_pass")?;
        demand(check, &all, &greens, &held, all.flag()?);
        let improve = compared.risk_improve(part).map_err(refused)?;
        check.number(&expected.at("risk_improve")?, improve.value())?;
        let at = expected.at("ks")?;
        let blast = compared.p4(part).map_err(refused)?;
        demand(check, &at, &blast, &held, at.number()? <= held.ks_max);
        let at = expected.at("delta_mse")?;
        if part == SplitPart::Confirm {
            let found = compared.p8(REPLICATES, [0; 32], None).map_err(refused)?;
            let passes = change <= -held.eta && p <= held.level;
            demand(check, &at, &found, &held, passes);
            continue;
        }
        let found = compared.p1().map_err(refused)?;
        demand(check, &at, &found, &held, change <= -held.eta);
        let (ece, patched) = (expected.at("ece0")?, expected.at("ece1_same_edges")?);
        let grown = patched.number()? - ece.number()?;
        let found = compared.p2().map_err(refused)?;
        demand(check, &patched, &found, &held, grown <= held.ece_slack);
        let policy = "reference".parse().map_err(refused)?;
        let drift = evidence::anchor_drift(&policy, &before, &after).map_err(refused)?;
        check.number(&expected.at("anchor_drift_mean")?, drift.drift.value())?;
    }
    Ok(())
}
