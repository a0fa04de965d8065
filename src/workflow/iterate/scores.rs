//! Scores of an iteration's rows under a candidate, as they go on record: each from its raw record, which is the one that
//! the iteration read, or that of a judge which was told what the candidate changes.

use clover_event::id::Root;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::scoring::ScoresRecomputed;
use clover_ground::canon;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_num::Count;
use clover_num::Finite;
use clover_stats::sample::SampleError;
use serde::Serialize;

use crate::iterate::compute::ScoredRubric;
use crate::iterate::course::Course;
use crate::iterate::course::CourseError;
use crate::iterate::course::text;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows::EvidenceMissing;
use crate::iterate::said::finite;
use crate::iterate::steps::BUILD;

/// One row or anchor.
#[derive(Serialize)]
struct ScoreRow<'a> {
    abstains: bool,
    /// The row, or the policy of an anchor.
    row: &'a str,
    score: Finite,
}

impl Course {
    /// The root over every row under a candidate, then every anchor, each in the order in which it was read; and how many.
    /// Where a judge was asked anew, rows of confirm are none of them: it is asked about those once candidates are sealed.
    fn scores_root(
        &self,
        candidate: &ScoredRubric,
        is_anew: bool,
    ) -> Result<(Root, usize), SampleError> {
        let data = self.loaded.table.data();
        let names = data.rows.iter().map(String::as_str);
        let scored = candidate.scored.scores.iter();
        let rows = names.zip(scored.zip(&candidate.scored.abstains));
        let is_asked = |part: &Option<SplitPart>| !is_anew || *part != Some(SplitPart::Confirm);
        let rows = rows.zip(&data.parts);
        let rows = rows.filter(|(_, part)| is_asked(part)).map(|(row, _)| row);
        let anchors = data.anchors.iter().zip(&candidate.anchors);
        let anchors = anchors.flat_map(|(anchor, scored)| {
            let both = scored.scores.iter().zip(&scored.abstains);
            both.map(|one| (anchor.policy.as_str(), one))
        });
        let (mut tree, mut count) = (Frontier::new(), 0);
        for (row, (score, &abstains)) in rows.chain(anchors) {
            let line = ScoreRow {
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
        let judge = of.answers.as_ref().map(|of| of.judge.clone());
        let (scores_root, count) = self
            .scores_root(&patched.candidate, judge.is_some())
            .map_err(|error| CourseError::Unfit(error.into()))?;
        let count = Count::new(count as u64).unwrap_or_default();
        let (recomputed, rescored) = match judge {
            None => (count, Count::default()),
            Some(_) => (Count::default(), count),
        };
        Ok(Ok(ScoresRecomputed {
            build: text(BUILD),
            candidate: of.hash,
            inputs: self.ground.inputs,
            iteration: self.opened.iteration.clone(),
            judge,
            recomputed,
            rescored,
            rubric_hash: of.rubric.hash(),
            scores_root,
        }))
    }
}
