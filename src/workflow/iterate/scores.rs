//! Scores of an iteration's rows under a candidate, as they go on record: each from its raw record, asked of nobody.

use serde::Serialize;

use crate::event::id::Root;
use crate::event::payload::scoring::ScoresRecomputed;
use crate::ground::canon;
use crate::ground::merkle;
use crate::ground::merkle::Frontier;
use crate::num::Count;
use crate::num::Finite;
use crate::stats::sample::SampleError;
use crate::workflow::iterate::compute::Candidate;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::course::Hypothesis;
use crate::workflow::iterate::course::text;
use crate::workflow::iterate::rows::EvidenceMissing;
use crate::workflow::iterate::said::finite;
use crate::workflow::iterate::steps::BUILD;

/// One row or anchor.
#[derive(Serialize)]
struct Line<'a> {
    abstains: bool,
    /// The row, or the policy of an anchor.
    row: &'a str,
    score: Finite,
}

impl Course {
    /// The root over every row under a candidate, then every anchor, each in the order in which it was read; and how many.
    fn scores_root(&self, candidate: &Candidate) -> Result<(Root, usize), SampleError> {
        let data = self.loaded.table.data();
        let names = data.rows.iter().map(String::as_str);
        let rows = names.zip(
            candidate
                .scored
                .scores
                .iter()
                .zip(&candidate.scored.abstains),
        );
        let anchors = data.anchors.iter().zip(&candidate.anchors);
        let anchors = anchors.flat_map(|(anchor, scored)| {
            let both = scored.scores.iter().zip(&scored.abstains);
            both.map(|one| (anchor.policy.as_str(), one))
        });
        let (mut tree, mut count) = (Frontier::new(), 0);
        for (row, (score, &abstains)) in rows.chain(anchors) {
            let line = Line {
                abstains,
                row,
                score: finite(*score)?,
            };
            let line = canon::to_bytes(&line).expect("BUG: ids and finite numbers are canonical");
            tree.push(merkle::leaf_hash(&line));
            count += 1;
        }
        Ok((Root(tree.root()), count))
    }

    /// Scores under a hypothesis, as they go on record.
    ///
    /// # Errors
    /// [`CourseError`], of a patch that needs raw answers anew too; the inner one where rows cannot be scored.
    pub fn recomputed(
        &self,
        of: &Hypothesis,
    ) -> Result<Result<ScoresRecomputed, EvidenceMissing>, CourseError> {
        if !of.valid {
            let what = "it needs raw answers anew, and nothing can be computed from the old ones";
            return Err(CourseError::Candidate(what.to_owned()));
        }
        let patched = match self.patched(of)? {
            Ok(patched) => patched,
            Err(missing) => return Ok(Err(missing)),
        };
        let (scores_root, count) = self
            .scores_root(&patched.candidate)
            .map_err(|error| CourseError::Unfit(error.into()))?;
        Ok(Ok(ScoresRecomputed {
            build: text(BUILD),
            candidate: of.hash,
            inputs: self.ground.inputs,
            iteration: self.opened.iteration.clone(),
            recomputed: Count::new(count as u64).unwrap_or_default(),
            rescored: Count::default(),
            rubric_hash: of.rubric.hash(),
            scores_root,
        }))
    }
}
