//! Audits and classifications as events say them.

use clover_event::id::IterationId;
use clover_event::id::Text;
use clover_event::payload::predicate::RowsRead;
use clover_event::payload::slices::AuditedFamily;
use clover_event::payload::slices::AuditedSlice;
use clover_event::payload::slices::ClassifiedSlice;
use clover_event::payload::slices::PooledMean;
use clover_event::payload::slices::RawMean;
use clover_event::payload::slices::ResidualsAudited;
use clover_event::payload::slices::SlicesClassified;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use clover_projection::decisions::CLASSIFICATION_LABEL;
use clover_stats::pooling::Shrunk;
use clover_stats::residuals::Raw;
use clover_stats::sample::SampleError;

use crate::estimate::model;
use crate::estimate::model::Atom;
use crate::iterate::compute::Table;
use crate::iterate::compute::audit::FamilyAudit;
use crate::iterate::compute::audit::GateSlice;
use crate::iterate::compute::cards::class_word;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::steps::BUILD;

/// Algorithm of the residual audit, with its version. The two differ in families of one slice with rows alone: the first
/// said that its common mean weighs 0 there.
const ALGORITHMS: [&str; 2] = ["residuals/1", "residuals/2"];

/// Whether a family has one slice with rows.
fn is_lone(family: &AuditedFamily) -> bool {
    let pooled = family.slices.iter().filter(|slice| slice.pooled.is_some());
    pooled.count() == 1
}

/// Families of an audit whose only slice weighs its common mean 0, by the algorithm's first version.
pub(super) fn unweighted(said: &ResidualsAudited) -> impl Iterator<Item = &AuditedFamily> {
    let first = said.algorithm.as_str() == ALGORITHMS[0];
    let families = said.families.iter();
    families.filter(move |family| first && is_lone(family))
}

/// An audit computed again, as the version of the algorithm that was recorded says it.
pub fn as_recorded(mut again: ResidualsAudited, said: &ResidualsAudited) -> ResidualsAudited {
    if said.algorithm.as_str() != ALGORITHMS[0] {
        return again;
    }
    again.algorithm = text(ALGORITHMS[0]);
    for family in again.families.iter_mut().filter(|family| is_lone(family)) {
        for pooled in family
            .slices
            .iter_mut()
            .filter_map(|slice| slice.pooled.as_mut())
        {
            pooled.weight = Finite::default();
        }
    }
    again
}

/// A number that checked inputs make finite.
pub(super) fn finite(value: f64) -> Result<Finite, SampleError> {
    Finite::new(value).ok_or(SampleError::Parameter {
        name: "values",
        expected: "sums and squares within the range of a double",
    })
}

fn probability(value: f64) -> Result<Probability, SampleError> {
    Probability::new(value).ok_or(SampleError::Parameter {
        name: "values",
        expected: "a share from 0 to 1",
    })
}

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: short plain words")
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

fn pooled(shrunk: &Shrunk) -> Result<PooledMean, SampleError> {
    Ok(PooledMean {
        high: finite(shrunk.interval.high)?,
        low: finite(shrunk.interval.low)?,
        mean: finite(shrunk.mean)?,
        standard_error: finite(shrunk.standard_error)?,
        weight: finite(shrunk.weight)?,
    })
}

fn raw(found: &Raw) -> Result<RawMean, SampleError> {
    Ok(RawMean {
        mean: finite(found.mean)?,
        p: found.p.map(probability).transpose()?,
        p_adjusted: probability(found.p_adjusted)?,
        rejected: found.rejected,
        standard_error: found.standard_error.map(finite).transpose()?,
    })
}

/// The canonical bytes of a calibrator, the atom of abstaining rows included, and their digest.
pub(super) fn model(fitted: &CalibratorFit) -> (Vec<u8>, Digest) {
    let number = |value: f64| Finite::new(value).unwrap_or_default();
    let atom = fitted.atom.as_ref().map(|atom| Atom {
        full: number(atom.full),
        without_fold: atom.without_fold.iter().map(|of| number(*of)).collect(),
    });
    model::bytes(&fitted.calibrator, atom)
}

/// Digest of a calibrator: what events name it by.
pub fn calibrator(fitted: &CalibratorFit) -> Digest {
    model(fitted).1
}

/// The event of a residual audit.
///
/// # Errors
/// [`SampleError`] for a number that is not finite.
pub(super) fn audited(
    iteration: &IterationId,
    baseline: &CalibratorFit,
    families: &[FamilyAudit],
    inputs: RowsRead,
) -> Result<ResidualsAudited, SampleError> {
    let mut said = Vec::with_capacity(families.len());
    for family in families {
        let mut slices = Vec::with_capacity(family.names.len());
        for (place, slice) in family.audit.slices.iter().enumerate() {
            slices.push(AuditedSlice {
                clusters: count(slice.clusters),
                exposure: probability(slice.exposure)?,
                mse: family.mse[place].map(finite).transpose()?,
                pooled: slice.pooled.as_ref().map(pooled).transpose()?,
                raw: slice.raw.as_ref().map(raw).transpose()?,
                rows: count(slice.rows),
                slice: family.names[place].clone(),
                stakes: probability(slice.stakes)?,
            });
        }
        said.push(AuditedFamily {
            between: family.audit.between.map(finite).transpose()?,
            family: family.family.clone(),
            mu: family.audit.mu.map(finite).transpose()?,
            slices,
        });
    }
    let version = usize::from(said.iter().any(is_lone));
    Ok(ResidualsAudited {
        algorithm: text(ALGORITHMS[version]),
        build: text(BUILD),
        calibrator: calibrator(baseline),
        families: said,
        inputs,
        iteration: iteration.clone(),
    })
}

/// The event of a classification, with its digest.
///
/// # Errors
/// [`SampleError`] for a share outside [0, 1].
pub(super) fn classified(
    iteration: &IterationId,
    table: &Table,
    classified: &[GateSlice],
) -> Result<SlicesClassified, SampleError> {
    let mut slices = Vec::with_capacity(classified.len());
    for slice in classified {
        slices.push(ClassifiedSlice {
            class: class_word(slice.class),
            exposure: probability(slice.exposure)?,
            family: table.data().slices[slice.family].id.clone(),
            must_not_regress: slice.must_not_regress,
            slice: slice.name(table),
            stakes: probability(slice.stakes)?,
        });
    }
    Ok(SlicesClassified {
        classification_hash: canon::digest(CLASSIFICATION_LABEL, &slices),
        iteration: iteration.clone(),
        slices,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(algorithm: &str, families: &str) -> ResidualsAudited {
        let digest = "0".repeat(64);
        let text = format!(
            r#"{{"algorithm":"{algorithm}","build":"clover","calibrator":"{digest}","families":[{families}],
                "inputs":{{"digest":"{digest}","rows":50,"through_seq":2}},"iteration":"it-1"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn family(name: &str, weights: &[&str]) -> String {
        let slice = |weight: &&str| {
            format!(
                r#"{{"clusters":50,"exposure":0.5,"rows":50,"slice":"s","stakes":0.1,"pooled":
                    {{"high":0.3,"low":0.1,"mean":0.2,"standard_error":0.05,"weight":{weight}}}}}"#
            )
        };
        let slices: Vec<String> = weights.iter().map(slice).collect();
        format!(r#"{{"family":"{name}","slices":[{}]}}"#, slices.join(","))
    }

    /// An audit of the first version is computed again as it was said, in its lone families alone.
    #[test]
    fn an_audit_keeps_the_version_it_was_recorded_under() {
        let both =
            |first: &str| [family("lone", &[first]), family("two", &["0.4", "0.6"])].join(",");
        let (old, new) = (
            audit("residuals/1", &both("0.0")),
            audit("residuals/2", &both("1.0")),
        );
        assert_eq!(as_recorded(new.clone(), &old), old);
        assert_eq!(as_recorded(new.clone(), &new), new);
        let lone: Vec<_> = unweighted(&old).map(|of| of.family.as_str()).collect();
        assert_eq!(lone, ["lone"]);
        assert_eq!(unweighted(&new).count(), 0);
    }
}
