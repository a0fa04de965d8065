//! Simulated rows as columns: what an iteration computes on, without their text.

use clover_event::payload::intake::SplitPart;
use clover_num::draws::Draws;
use clover_num::math;
use clover_stats::sample::SampleError;
use rayon::prelude::*;

use crate::iterate::compute::Anchor;
use crate::iterate::compute::EnvironmentFamily;
use crate::iterate::compute::IterationRows;
use crate::iterate::compute::ScoredRubric;
use crate::iterate::compute::SliceFamily;
use crate::iterate::compute::Table;
use crate::iterate::compute::rows::RubricScores;
use crate::simulate::files::ANCHOR_ROWS;
use crate::simulate::iteration::Design;
use crate::simulate::world::Kind;
use crate::simulate::world::World;

/// Rows that are read at a time, so that texts do not pile up.
const BLOCK: u64 = 20_000;

/// Columns of drawn rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Columns {
    pub labels: Vec<f64>,
    /// Scores under the rubric in force.
    pub scores: Vec<f64>,
    /// Scores under the rubric with the true fix.
    pub fixed: Vec<f64>,
    /// ln(1 + tokens).
    pub tokens: Vec<f64>,
    pub slices: Vec<usize>,
}

/// One row of them.
type One = (f64, f64, f64, f64, usize);

/// Rows `0..rows` of a kind. Simulated rows lack nothing that the rules of their world read.
pub(super) fn drawn(world: &World, kind: Kind, rows: u64) -> Columns {
    let (rules, fixed) = (world.rules(), world.patched_rules());
    let one = |number: u64| -> One {
        let row = world.row(kind, number);
        let score = |rules| crate::simulate::truth::score(&row, rules).unwrap_or(0.0);
        let tokens = math::ln_1p(row.evidence.tokens.value() as f64);
        let label = row.label.value() as f64 / 1e6;
        (label, score(&rules), score(&fixed), tokens, row.slice)
    };
    let mut columns = Columns::default();
    let mut at = 0;
    while at < rows {
        let end = rows.min(at + BLOCK);
        let block: Vec<One> = (at..end).into_par_iter().map(one).collect();
        for (label, score, fixed, tokens, slice) in block {
            columns.labels.push(label);
            columns.scores.push(score);
            columns.fixed.push(fixed);
            columns.tokens.push(tokens);
            columns.slices.push(slice);
        }
        at = end;
    }
    columns
}

/// Rows of one simulated iteration.
pub(super) struct Stage {
    /// What the iteration reads.
    pub table: Table,
    /// Scores of its rows under the true fix.
    pub fixed: Vec<f64>,
    /// The same of its anchors.
    pub anchors: Vec<Vec<f64>>,
}

impl Stage {
    /// Draws fit, dev and confirm, all labelled, and both anchor sets.
    pub(super) fn new(design: &Design, world: &World) -> Result<Self, SampleError> {
        let rows = design.sizes.iter().sum::<usize>();
        let of = drawn(world, Kind::Base, rows as u64);
        let parts = [SplitPart::Fit, SplitPart::Dev, SplitPart::Confirm];
        let parts = parts.into_iter().zip(design.sizes);
        let tokens = |columns: &Columns| {
            let tokens = design.covariates.then(|| columns.tokens.clone());
            tokens.into_iter().collect::<Vec<_>>()
        };
        let mut data = IterationRows {
            rows: (0..rows).map(|row| format!("r{row}")).collect(),
            clusters: (0..rows).map(|row| format!("x{row}")).collect(),
            parts: parts
                .flat_map(|(part, size)| std::iter::repeat_n(Some(part), size))
                .collect(),
            covariates: tokens(&of),
            labels: of.labels.iter().map(|label| Some(*label)).collect(),
            inclusion: vec![Some(1.0); rows],
            slices: slices(design, world, &of.slices),
            environments: environments(design, world, &of.slices),
            scored: RubricScores::of(of.scores),
            ..IterationRows::default()
        };
        let mut anchors = Vec::new();
        for (policy, kind) in [("high", Kind::AnchorHigh), ("low", Kind::AnchorLow)] {
            let of = drawn(world, kind, ANCHOR_ROWS);
            data.anchors.push(Anchor {
                policy: policy.parse().expect("BUG: a constant id"),
                covariates: tokens(&of),
                scored: RubricScores::of(of.scores),
            });
            anchors.push(of.fixed);
        }
        Ok(Self {
            table: Table::new(data)?,
            fixed: of.fixed,
            anchors,
        })
    }

    /// The true fix.
    pub(super) fn fix(&self, patch: clover_ground::digest::Digest) -> ScoredRubric {
        ScoredRubric {
            patch,
            kappa: 3,
            scored: RubricScores::of(self.fixed.clone()),
            anchors: self.anchors.iter().cloned().map(RubricScores::of).collect(),
        }
    }

    /// A patch without merit.
    pub(super) fn arbitrary(
        &self,
        patch: clover_ground::digest::Digest,
        by: &Arbitrary,
    ) -> ScoredRubric {
        let data = self.table.data();
        let anchors = data
            .anchors
            .iter()
            .zip([PatchRows::AnchorHigh, PatchRows::AnchorLow]);
        ScoredRubric {
            patch,
            kappa: 3,
            scored: RubricScores::of(by.moved(PatchRows::Rows, &data.scored.scores)),
            anchors: anchors
                .map(|(anchor, set)| RubricScores::of(by.moved(set, &anchor.scored.scores)))
                .collect(),
        }
    }
}

/// Which slices of a world are cells of the plan: all, or as many as it has, that with the fault among them as the last.
fn cells(design: &Design, world: &World) -> Vec<usize> {
    let all = 0..world.slices();
    let Some(count) = design.cells.filter(|count| *count < all.len()) else {
        return all.collect();
    };
    let faulty = world.faulty_slice();
    let others = all.filter(|slice| *slice != faulty);
    let mut cells: Vec<usize> = others.take(count.saturating_sub(1)).collect();
    cells.extend((count > 0).then_some(faulty));
    cells
}

fn slices(design: &Design, world: &World, of_row: &[usize]) -> Vec<SliceFamily> {
    let cells = cells(design, world);
    if cells.is_empty() {
        return Vec::new();
    }
    let name = |slice| {
        let (domain, level) = world.slice(slice);
        format!("{domain}-{level}")
            .parse()
            .expect("BUG: plain words")
    };
    let cell_of = |slice: &usize| cells.iter().position(|cell| cell == slice);
    let family = SliceFamily {
        id: "cell".parse().expect("BUG: a constant id"),
        slices: cells.iter().copied().map(name).collect(),
        stakes: vec![0.5; cells.len()],
        must_not_regress: (0..cells.len())
            .map(|cell| cell < design.must_not_regress)
            .collect(),
        of_row: of_row.iter().map(cell_of).collect(),
    };
    vec![family]
}

fn environments(design: &Design, world: &World, of_row: &[usize]) -> Vec<EnvironmentFamily> {
    let domains = world.domains();
    let family = design.domains.map(|required| EnvironmentFamily {
        id: "domain".parse().expect("BUG: a constant id"),
        environments: domains
            .iter()
            .map(|domain| domain.parse().expect("BUG: a constant id"))
            .collect(),
        required: vec![required; domains.len()],
        of_row: of_row
            .iter()
            .map(|slice| domains.iter().position(|of| *of == world.slice(*slice).0))
            .collect(),
    });
    family.into_iter().collect()
}

/// Which rows an arbitrary patch moves: a stream of its own for each set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchRows {
    Rows,
    AnchorHigh,
    AnchorLow,
    Fresh,
}

/// A patch that moves the scores of an arbitrary share of rows, whatever they are: 2 to 10 %, by .03 to .12, up or down.
pub(super) struct Arbitrary {
    seed: [u8; 32],
    share: f64,
    by: f64,
}

impl Arbitrary {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        let mut draws = Draws::of(seed, 0);
        let share = 0.02 + 0.08 * draws.uniform();
        let size = 0.03 + 0.09 * draws.uniform();
        let by = if draws.coin() { size } else { -size };
        Self { seed, share, by }
    }

    /// Scores with the patch.
    pub(super) fn moved(&self, set: PatchRows, scores: &[f64]) -> Vec<f64> {
        let mut draws = Draws::of(self.seed, 1 + set as usize);
        let moved = scores.iter().map(|score| {
            if draws.uniform() < self.share {
                (score + self.by).clamp(0.0, 1.0)
            } else {
                *score
            }
        });
        moved.collect()
    }
}
