//! Environments under a calibrator: mean residuals of each, with the calibrator's own variance.

use crate::event::payload::intake::SplitPart;
use crate::event::payload::predicate::TestedEnvironment;
use crate::event::payload::predicate::Transported;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Probability;
use crate::stats::environment;
use crate::stats::environment::Environment;
use crate::stats::environment::Finding;
use crate::stats::multiplicity::Correction;
use crate::stats::sample::Clusters;
use crate::stats::sample::Unfit;
use crate::stats::sample::Values;
use crate::workflow::iterate::compute::fit::Fitted;
use crate::workflow::iterate::compute::rows::EnvironmentFamily;
use crate::workflow::iterate::compute::rows::Scored;
use crate::workflow::iterate::compute::rows::Table;
use crate::workflow::iterate::compute::uncertainty;

/// One environment's numbers; `None` without labelled rows.
type Tested = Option<Finding>;

/// Tests every environment of one family on the labelled rows of a part.
///
/// # Errors
/// [`Unfit`].
fn family(
    table: &Table,
    family: &EnvironmentFamily,
    fitted: &Fitted,
    scored: &Scored,
    part: SplitPart,
    level: f64,
) -> Result<Vec<Tested>, Unfit> {
    let labelled = table.labelled(part);
    let mut of_each: Vec<Vec<usize>> = vec![Vec::new(); family.environments.len()];
    for &row in &labelled {
        if let Some(at) = family.of_row[row] {
            of_each[at].push(row);
        }
    }
    let mut columns: Vec<(usize, Vec<f64>, Clusters, f64)> = Vec::new();
    for (at, rows) in of_each.iter().enumerate() {
        if rows.is_empty() {
            continue;
        }
        let variance = uncertainty::variance_on(table, fitted, scored, rows)?;
        columns.push((
            at,
            fitted.residuals(table, rows),
            table.clusters(rows)?,
            variance,
        ));
    }
    let mut environments = Vec::with_capacity(columns.len());
    for (_, residuals, clusters, calibration_variance) in &columns {
        environments.push(Environment {
            residuals: Values::new("residuals", residuals)?,
            clusters,
            calibration_variance: *calibration_variance,
        });
    }
    let mut found: Vec<Tested> = vec![None; family.environments.len()];
    if !environments.is_empty() {
        let tested = environment::test(&environments, Correction::BenjaminiHochberg, level)?;
        for ((at, ..), finding) in columns.iter().zip(tested) {
            found[*at] = Some(finding);
        }
    }
    Ok(found)
}

/// The environments of every registered family under one calibrator, on the labelled rows of a part; an environment
/// without labelled rows has no finding.
///
/// # Errors
/// [`Unfit`].
pub fn under(
    table: &Table,
    (fitted, scored): (&Fitted, &Scored),
    part: SplitPart,
    level: f64,
) -> Result<Vec<Vec<Option<Finding>>>, Unfit> {
    let families = table.data().environments.iter();
    families
        .map(|of| family(table, of, fitted, scored, part, level))
        .collect()
}

/// Every registered environment under `fitted`, beside whether it fails under the baseline too.
///
/// # Errors
/// [`Unfit`].
pub fn transport(
    table: &Table,
    baseline: &Fitted,
    candidate: (&Fitted, &Scored),
    part: SplitPart,
    level: f64,
) -> Result<Transported, Unfit> {
    let mut environments = Vec::new();
    for of in &table.data().environments {
        let before = family(table, of, baseline, &table.data().scored, part, level)?;
        let after = family(table, of, candidate.0, candidate.1, part, level)?;
        for (at, environment) in of.environments.iter().enumerate() {
            let fails = |found: &Tested| {
                found
                    .as_ref()
                    .is_some_and(|found| found.verdict == environment::Verdict::Fail)
            };
            let found = after[at].as_ref();
            let rows = found.map_or(0, |found| found.rows) as u64;
            environments.push(TestedEnvironment {
                baseline_fails: fails(&before[at]),
                detectable_bias: found.and_then(|f| Finite::new(f.detectable_bias?)),
                environment: environment.clone(),
                family: of.id.clone(),
                mean: found.and_then(|found| Finite::new(found.mean)),
                p: found.and_then(|found| Probability::new(found.p?)),
                required: of.required[at],
                rows: Count::new(rows).unwrap_or_default(),
                standard_error: found.and_then(|f| Finite::new(f.standard_error?)),
            });
        }
    }
    Ok(Transported { environments })
}
