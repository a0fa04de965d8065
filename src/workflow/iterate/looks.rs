//! Looks at a confirm block whose test is sequential.

use clover_event::id::Text;
use clover_event::payload::predicate::ConfirmLooked;
use clover_event::payload::predicate::LookedHypothesis;
use clover_event::payload::rubric::PatchProposed;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::iterations::record::IterationRecord;

use crate::iterate::compute::sequential;
use crate::iterate::compute::sequential::Block;
use crate::iterate::course::Course;
use crate::iterate::course::CourseError;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows::IterationDataset;
use crate::iterate::steps;

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: short plain words")
}

impl Course {
    /// The confirm block in its order, where the test is sequential.
    pub(super) fn block(&self, unsealed: &IterationDataset) -> Option<Block> {
        let sequence = unsealed.sequence.as_ref()?;
        Some(Block {
            terms: sequential::terms_of(&self.opened.plan, &self.ground.thresholds)?,
            units: sequence
                .units
                .iter()
                .map(|unit| unit.rows.clone())
                .collect(),
            shown: sequence.shown(),
        })
    }

    /// A look at the confirm block: the test of each sealed hypothesis, in the order given.
    ///
    /// # Errors
    /// [`CourseError`]; [`CourseError::Candidate`] where the test is no sequential one, or a label is shown out of order.
    pub fn looked(
        &self,
        unsealed: &IterationDataset,
        hypotheses: &[Hypothesis],
    ) -> Result<ConfirmLooked, CourseError> {
        let none = || CourseError::Candidate("no sequential test of an unsealed block".to_owned());
        let sequence = unsealed.sequence.as_ref().ok_or_else(none)?;
        let block = self.block(unsealed).ok_or_else(none)?;
        if sequence.is_ahead() {
            let first = sequence.units.get(block.shown);
            let first = first.map_or(String::new(), |unit| unit.item.to_string());
            let what = format!("a label is shown before those of {first}, which is next in order");
            return Err(CourseError::Candidate(what));
        }
        let mut looked = Vec::with_capacity(hypotheses.len());
        for of in hypotheses {
            let answers = of.answers.as_deref();
            let candidate = unsealed.candidate((of.hash, of.kappa), &of.rubric.rules(), answers);
            let candidate =
                candidate.map_err(|missing| CourseError::Candidate(missing.to_string()))?;
            let patched = self
                .patched(of)?
                .map_err(|missing| CourseError::Candidate(missing.to_string()))?;
            looked.push(LookedHypothesis {
                candidate: of.hash,
                test: self
                    .ground
                    .looked(&unsealed.table, (&candidate, &patched.fitted), &block)?,
            });
        }
        let count = |value: usize| Count::new(value as u64).unwrap_or_default();
        Ok(ConfirmLooked {
            beacon: sequence.beacon,
            build: text(steps::BUILD),
            hypotheses: looked,
            inputs: steps::inputs(&unsealed.table, unsealed.through),
            iteration: self.opened.iteration.clone(),
            of_units: count(block.units.len()),
            params_hash: self.opened.plan.params_hash(),
            seed: sequence.seed,
            units: count(block.shown),
        })
    }

    /// The hypotheses that were sealed, in their order.
    ///
    /// # Errors
    /// [`CourseError::Candidate`].
    pub fn sealed(
        &self,
        history: &dyn History,
        record: &IterationRecord,
    ) -> Result<Vec<Hypothesis>, CourseError> {
        let sealed = record.sealed.iter().flat_map(|of| &of.said.hypotheses);
        let each = sealed.map(|one| {
            let of: Vec<&PatchProposed> = record
                .proposed
                .iter()
                .map(|patch| &patch.said)
                .filter(|patch| one.patches.contains(&patch.patch_hash))
                .collect();
            self.hypothesis(history, record, &of)
        });
        each.collect()
    }
}
