//! Environments under a calibrator: mean residuals of each, with the calibrator's own variance.

use clover_event::id::EnvironmentId;
use clover_event::id::FamilyId;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::TestedEnvironment;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use clover_stats::environment;
use clover_stats::environment::Environment;
use clover_stats::environment::EnvironmentFinding;
use clover_stats::multiplicity::MultiplicityCorrection;
use clover_stats::sample::Clusters;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::EnvironmentFamily;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::compute::rows::Table;
use crate::iterate::compute::uncertainty;

/// One environment's numbers; `None` without labelled rows.
type EnvironmentTest = Option<EnvironmentFinding>;

/// Tests every environment of one family on the labelled rows of a part.
///
/// # Errors
/// [`Unfit`].
fn family(
    table: &Table,
    family: &EnvironmentFamily,
    fitted: &CalibratorFit,
    scored: &RubricScores,
    part: SplitPart,
    level: f64,
) -> Result<Vec<EnvironmentTest>, Unfit> {
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
    let mut found: Vec<EnvironmentTest> = vec![None; family.environments.len()];
    if !environments.is_empty() {
        let tested = environment::test(
            &environments,
            MultiplicityCorrection::BenjaminiHochberg,
            level,
        )?;
        for ((at, ..), finding) in columns.iter().zip(tested) {
            found[*at] = Some(finding);
        }
    }
    Ok(found)
}

/// What an event keeps of an environment; without labelled rows there is nothing to keep.
fn kept(
    (family, environment): (&FamilyId, &EnvironmentId),
    required: bool,
    found: Option<&EnvironmentFinding>,
    baseline_fails: bool,
) -> TestedEnvironment {
    let rows = found.map_or(0, |found| found.rows) as u64;
    TestedEnvironment {
        baseline_fails,
        detectable_bias: found.and_then(|f| Finite::new(f.detectable_bias?)),
        environment: environment.clone(),
        family: family.clone(),
        mean: found.and_then(|found| Finite::new(found.mean)),
        p: found.and_then(|found| Probability::new(found.p?)),
        required,
        rows: Count::new(rows).unwrap_or_default(),
        standard_error: found.and_then(|f| Finite::new(f.standard_error?)),
    }
}

/// Labelled rows that are tested as one environment, of whatever part.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Its name.
    pub environment: EnvironmentId,
    /// Whether it must pass.
    pub required: bool,
    /// Its rows: at least one, each with a label.
    pub rows: &'a [usize],
}

/// Tests groups of rows as the environments of one family. Of the first it is said whether any other fails, for then a
/// failure is not its own.
///
/// # Errors
/// [`Unfit`].
pub fn groups(
    table: &Table,
    (fitted, scored): (&CalibratorFit, &RubricScores),
    family: &FamilyId,
    groups: &[Group<'_>],
    level: f64,
) -> Result<Vec<TestedEnvironment>, Unfit> {
    let mut columns = Vec::with_capacity(groups.len());
    for group in groups {
        columns.push((
            fitted.residuals(table, group.rows),
            table.clusters(group.rows)?,
            uncertainty::variance_on(table, fitted, scored, group.rows)?,
        ));
    }
    let mut environments = Vec::with_capacity(groups.len());
    for (residuals, clusters, calibration_variance) in &columns {
        environments.push(Environment {
            residuals: Values::new("residuals", residuals)?,
            clusters,
            calibration_variance: *calibration_variance,
        });
    }
    let found = environment::test(
        &environments,
        MultiplicityCorrection::BenjaminiHochberg,
        level,
    )?;
    let others_fail = found
        .iter()
        .skip(1)
        .any(|found| found.verdict == environment::EnvironmentVerdict::Fail);
    let all = groups.iter().zip(&found).enumerate();
    let kept = all.map(|(at, (group, found))| {
        let place = (family, &group.environment);
        kept(place, group.required, Some(found), at == 0 && others_fail)
    });
    Ok(kept.collect())
}

/// The environments of every registered family under one calibrator, on the labelled rows of a part; an environment
/// without labelled rows has no finding.
///
/// # Errors
/// [`Unfit`].
pub fn under(
    table: &Table,
    (fitted, scored): (&CalibratorFit, &RubricScores),
    part: SplitPart,
    level: f64,
) -> Result<Vec<Vec<Option<EnvironmentFinding>>>, Unfit> {
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
    baseline: &CalibratorFit,
    candidate: (&CalibratorFit, &RubricScores),
    part: SplitPart,
    level: f64,
) -> Result<EnvironmentTests, Unfit> {
    let mut environments = Vec::new();
    for of in &table.data().environments {
        let before = family(table, of, baseline, &table.data().scored, part, level)?;
        let after = family(table, of, candidate.0, candidate.1, part, level)?;
        for (at, environment) in of.environments.iter().enumerate() {
            let fails = |found: &EnvironmentTest| {
                found
                    .as_ref()
                    .is_some_and(|found| found.verdict == environment::EnvironmentVerdict::Fail)
            };
            let place = (&of.id, environment);
            let found = after[at].as_ref();
            environments.push(kept(place, of.required[at], found, fails(&before[at])));
        }
    }
    Ok(EnvironmentTests { environments })
}
