//! Residual cards: one per slice that is rejected or Risk, in two projections.
//!
//! The full card names rows; the optimizer's holds bins, hints and rounded statistics, and nothing from which a row, a
//! text, a label or a score could be read. Source: CLOVER v1.1, section 3.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::CardId;
use crate::event::id::FieldId;
use crate::event::id::IterationId;
use crate::event::id::Text;
use crate::event::payload::Verdict;
use crate::event::payload::card::BinnedFeature;
use crate::event::payload::card::CardMean;
use crate::event::payload::card::CardPublished;
use crate::event::payload::card::Direction;
use crate::event::payload::card::Explanation;
use crate::event::payload::card::Hint;
use crate::event::payload::card::PublicCard;
use crate::event::payload::card::RedactedRow;
use crate::event::payload::card::SliceClass;
use crate::ground::canon;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Micro;
use crate::num::math;
use crate::projection::batteries::Stress;
use crate::stats::inference;
use crate::stats::quantile::Edges;
use crate::stats::rank;
use crate::stats::residuals::Class;
use crate::stats::residuals::Slice;
use crate::stats::sample::SampleError;
use crate::stats::sample::Unfit;
use crate::stats::sample::Values;
use crate::workflow::iterate::compute::audit::Audited;
use crate::workflow::iterate::compute::fit::Fitted;
use crate::workflow::iterate::compute::rows::Table;
use crate::workflow::iterate::compute::rows::pick;

/// Label of the digest of an optimizer's projection.
pub const PUBLIC_LABEL: &str = "clover/card/v1";
/// Label of the digest of a full card.
pub const FULL_LABEL: &str = "clover/card-full/v1";
/// Exemplars of a card.
const EXEMPLARS: usize = 5;
/// Counterexamples of a card.
const COUNTEREXAMPLES: usize = 3;
/// Hints of a card.
const HINTS: usize = 5;
/// Standardised mean difference from which a feature is a hint.
const HINT_SMD: f64 = 0.2;
/// Residual below which a row is a reference for hints.
const REFERENCE: f64 = 0.05;
/// Residual up to which a row is a counterexample.
const WELL_JUDGED: f64 = 0.03;
/// Bins of a redacted feature.
const BINS: usize = 4;
/// Rank correlation with length from which length explains a slice.
const LENGTH_RHO: f64 = -0.15;
/// Level of that correlation.
const LENGTH_LEVEL: f64 = 0.05;
/// Difference of mean residuals from which a flag explains a slice.
const FLAG_EFFECT: f64 = -0.03;
/// Two-sided normal 95 %.
const CRITICAL: f64 = 1.959_964;

/// Explanations by a flag of the evidence record.
const FLAGS: [(&str, &str); 4] = [
    ("authority_tone", "confident"),
    ("contradiction", "contradiction"),
    ("fake_citations", "citations_bad"),
    ("missed_risk_framing", "risk_unframed"),
];

/// Rubric paths that a feature points to.
const PATHS: [(&str, &str); 8] = [
    (
        "citations_bad",
        "obligations.factual_adequacy.verification.mismatch_penalty",
    ),
    ("confident", "guards.confident_but_wrong_max"),
    (
        "contradiction",
        "obligations.reasoning_quality.requires_counter_position",
    ),
    (
        "counter_position",
        "obligations.reasoning_quality.requires_counter_position",
    ),
    ("critical_info_missing", "abstention.triggers"),
    (
        "risk_unframed",
        "obligations.risk_accounting.requires_stakeholders",
    ),
    ("tokens", "guards.length_bias_cap.if_tokens_gt"),
    ("tool_trace_gap", "guards.tool_trace_consistency"),
];

/// A row of a full card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedRow {
    /// Residual.
    pub residual: Finite,
    /// Name of the row.
    pub row: String,
}

/// A full card: for people with access to rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FullCard {
    /// Rows near the exemplars that are judged well.
    pub counterexamples: Vec<NamedRow>,
    /// Rows that are judged worst.
    pub exemplars: Vec<NamedRow>,
    /// The optimizer's projection.
    pub public: PublicCard,
}

/// What attacks on the rubric in force earned, as cards show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attacks {
    /// By family and slice.
    pub stress: Stress,
    /// Exploits: the row, the attacks in turn, and what they earn.
    pub exploits: Vec<(String, String, Micro)>,
}

/// Exploits of the same attacks in a slice from which they are an explanation.
const SIMILAR_MIN: usize = 3;

impl FullCard {
    /// Adds what attacks earned in the slice; three exploits of the same attacks there are an explanation.
    pub fn attacked(&mut self, table: &Table, attacks: &Attacks) {
        let (family, slice) = (&self.public.family, &self.public.slice);
        let known = attacks.stress.get(family).and_then(|of| of.get(slice));
        self.public.stress = known.cloned().unwrap_or_default();
        let data = table.data();
        let Some(family) = data.slices.iter().find(|of| of.id == *family) else {
            return;
        };
        let place = family.slices.iter().position(|of| of == slice);
        let lies_here = |row: &str| {
            let at = data.rows.iter().position(|name| name == row);
            at.is_some_and(|at| family.of_row[at] == place)
        };
        let mut by_attacks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (row, operators, uplift) in &attacks.exploits {
            if lies_here(row) {
                let of = by_attacks.entry(operators).or_default();
                of.push(uplift.value() as f64 / 1e6);
            }
        }
        for (operators, uplifts) in by_attacks {
            if uplifts.len() >= SIMILAR_MIN
                && let Ok(explanation) = FieldId::new(format!("exploit:{operators}"))
            {
                self.public.explanations.push(Explanation {
                    explanation,
                    score_micro: Some(four(math::mean(&uplifts))),
                    verdict: Verdict::Pass,
                });
            }
        }
    }

    /// What is published of it.
    pub fn published(&self, iteration: IterationId) -> CardPublished {
        CardPublished {
            card: self.public.clone(),
            full_digest: canon::digest(FULL_LABEL, self),
            iteration,
            public_digest: canon::digest(PUBLIC_LABEL, &self.public),
        }
    }
}

/// The class of a slice, as events say it.
pub fn class_word(class: Class) -> SliceClass {
    match class {
        Class::Green => SliceClass::Green,
        Class::Neutral => SliceClass::Neutral,
        Class::Risk => SliceClass::Risk,
    }
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

/// Four decimals, in millionths.
fn four(value: f64) -> Micro {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "statistics of scores in [0, 1] are small; what is not saturates"
    )]
    let tenths_of_a_thousandth = (value * 1e4).round() as i64;
    Micro::new(tenths_of_a_thousandth.saturating_mul(100)).unwrap_or_default()
}

/// Cards of every slice that is rejected or Risk, in the order of families and slices.
///
/// # Errors
/// [`Unfit`].
pub fn cards(
    table: &Table,
    baseline: &Fitted,
    audited: &[Audited],
) -> Result<Vec<FullCard>, Unfit> {
    let mut cards = Vec::new();
    for family in audited {
        for (place, slice) in family.audit.slices.iter().enumerate() {
            let rejected = slice.raw.as_ref().is_some_and(|raw| raw.rejected);
            let rows = &family.members[place];
            if (rejected || slice.class == Class::Risk) && !rows.is_empty() {
                let residuals = baseline.residuals(table, rows);
                let within = Within {
                    table,
                    rows,
                    residuals: &residuals,
                    over_scored: is_over_scored(slice, &residuals),
                };
                cards.push(card(&within, family, place)?);
            }
        }
    }
    Ok(cards)
}

fn is_over_scored(slice: &Slice, residuals: &[f64]) -> bool {
    let mean = slice.pooled.as_ref().map(|pooled| pooled.mean);
    mean.unwrap_or_else(|| math::mean(residuals)) < 0.0
}

/// The labelled rows of one slice.
struct Within<'a> {
    table: &'a Table,
    rows: &'a [usize],
    residuals: &'a [f64],
    over_scored: bool,
}

fn card(within: &Within<'_>, family: &Audited, place: usize) -> Result<FullCard, Unfit> {
    let slice = &family.audit.slices[place];
    let worst = within.by_severity();
    let exemplars: Vec<usize> = worst.iter().copied().take(EXEMPLARS).collect();
    let counterexamples = within.near(&exemplars);
    let hints = within.hints(&worst)?;
    let mut candidate_paths: Vec<Text> = PATHS
        .iter()
        .filter(|(feature, _)| hints.iter().any(|hint| hint.feature.as_str() == *feature))
        .filter_map(|(_, path)| Text::new(*path))
        .collect();
    candidate_paths.dedup();
    let name = format!("{}/{}", family.family, family.names[place]);
    let card = CardId::new(name).map_err(|_| SampleError::Parameter {
        name: "slice",
        expected: "names of family and slice of at most 200 bytes together",
    })?;
    let pooled = slice.pooled.as_ref();
    let public = PublicCard {
        candidate_paths,
        card,
        class: class_word(slice.class),
        clusters: count(slice.clusters),
        counterexamples: within.redacted(&counterexamples)?,
        direction: if within.over_scored {
            Direction::OverScored
        } else {
            Direction::UnderScored
        },
        exemplars: within.redacted(&exemplars)?,
        explanations: within.explanations()?,
        exposure_micro: four(slice.exposure),
        family: family.family.clone(),
        hints,
        mean_raw_micro: slice.raw.as_ref().map(|raw| four(raw.mean)),
        mean_shrunk: pooled.map(|of| CardMean {
            high_micro: four(of.interval.high),
            low_micro: four(of.interval.low),
            mean_micro: four(of.mean),
        }),
        mse_micro: four(family.mse[place].unwrap_or(0.0)),
        p_adjusted_micro: slice.raw.as_ref().map(|raw| four(raw.p_adjusted)),
        rows: count(slice.rows),
        slice: family.names[place].clone(),
        stakes_micro: four(slice.stakes),
        stress: Vec::new(),
    };
    Ok(FullCard {
        counterexamples: within.named(&counterexamples),
        exemplars: within.named(&exemplars),
        public,
    })
}

impl Within<'_> {
    /// Places of the slice's rows, the worst in its direction first.
    fn by_severity(&self) -> Vec<usize> {
        let severity = |at: usize| {
            if self.over_scored {
                -self.residuals[at]
            } else {
                self.residuals[at]
            }
        };
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|&a, &b| severity(b).total_cmp(&severity(a)).then(a.cmp(&b)));
        order
    }

    fn named(&self, places: &[usize]) -> Vec<NamedRow> {
        let name = |&at: &usize| NamedRow {
            residual: Finite::new(self.residuals[at]).unwrap_or_default(),
            row: self.table.data().rows[self.rows[at]].clone(),
        };
        places.iter().map(name).collect()
    }

    fn column(&self, feature: &[f64]) -> Vec<f64> {
        pick(feature, self.rows)
    }

    /// Well-judged rows nearest to an exemplar, features standardised over the slice.
    fn near(&self, exemplars: &[usize]) -> Vec<usize> {
        let features = self.table.data().features.iter();
        let columns: Vec<Vec<f64>> = features
            .map(|feature| {
                let column = self.column(&feature.values);
                let spread = inference::standard_deviation(&column).unwrap_or(0.0);
                let scale = if spread > 0.0 { spread } else { 1.0 };
                column.iter().map(|value| value / scale).collect()
            })
            .collect();
        let distance = |a: usize, b: usize| -> f64 {
            let squares = columns
                .iter()
                .map(|column| (column[a] - column[b]) * (column[a] - column[b]));
            squares.sum()
        };
        let mut found: Vec<(f64, usize)> = (0..self.rows.len())
            .filter(|at| self.residuals[*at].abs() <= WELL_JUDGED && !exemplars.contains(at))
            .map(|at| {
                let nearest = exemplars.iter().map(|&other| distance(at, other));
                (nearest.fold(f64::INFINITY, f64::min), at)
            })
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found
            .into_iter()
            .take(COUNTEREXAMPLES)
            .map(|(_, at)| at)
            .collect()
    }

    /// Features that differ between the worst quarter and the well-judged rows.
    fn hints(&self, worst: &[usize]) -> Result<Vec<Hint>, SampleError> {
        let worst = &worst[..worst.len().div_ceil(4)];
        let reference: Vec<usize> = (0..self.rows.len())
            .filter(|&at| self.residuals[at].abs() < REFERENCE)
            .collect();
        if worst.len() < 2 || reference.len() < 2 {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for feature in &self.table.data().features {
            let column = self.column(&feature.values);
            let (bad, good) = (pick(&column, worst), pick(&column, &reference));
            let square =
                |values: &[f64]| inference::standard_deviation(values).map_or(0.0, |sd| sd * sd);
            let spread = (0.5 * (square(&bad) + square(&good))).sqrt();
            let (from, to) = (math::mean(&good), math::mean(&bad));
            if spread > 0.0 && ((to - from) / spread).abs() >= HINT_SMD {
                found.push(((to - from) / spread, from, to, field(&feature.name)?));
            }
        }
        found.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(a.3.cmp(&b.3)));
        found.truncate(HINTS);
        let hint = found.into_iter().map(|(smd, from, to, feature)| Hint {
            feature,
            reference_micro: four(from),
            rows: count(worst.len()),
            smd_micro: four(smd),
            worst_micro: four(to),
        });
        Ok(hint.collect())
    }

    /// Rows by the quarter of all logs that each feature falls into.
    fn redacted(&self, places: &[usize]) -> Result<Vec<RedactedRow>, SampleError> {
        let mut rows = vec![
            RedactedRow {
                features: Vec::new()
            };
            places.len()
        ];
        for feature in &self.table.data().features {
            let logs = pick(&feature.values, self.table.logs());
            let edges = Edges::equal_frequency(Values::new("features", &logs)?, BINS)?;
            let name = field(&feature.name)?;
            for (row, &at) in rows.iter_mut().zip(places) {
                row.features.push(BinnedFeature {
                    bin: count(edges.bin(feature.values[self.rows[at]])),
                    feature: name.clone(),
                });
            }
        }
        for row in &mut rows {
            row.features.sort_by(|a, b| a.feature.cmp(&b.feature));
        }
        Ok(rows)
    }

    fn feature(&self, name: &str) -> Option<Vec<f64>> {
        let mut features = self.table.data().features.iter();
        let found = features.find(|feature| feature.name == name)?;
        Some(self.column(&found.values))
    }

    /// Explanations that can be checked by themselves: length, then flags.
    fn explanations(&self) -> Result<Vec<Explanation>, Unfit> {
        let mut found = Vec::new();
        for (explanation, flag) in FLAGS {
            let column = self.feature(flag);
            found.push(self.by_flag(explanation, column.as_deref())?);
        }
        let mut of_length = unknown("length_bias")?;
        if let Some(tokens) = self.feature("tokens")
            && tokens.len() >= 3
            && let Some(found) = rank::spearman(
                Values::new("residuals", self.residuals)?,
                Values::new("tokens", &tokens)?,
            )?
        {
            let sure = found.p.is_some_and(|p| p < LENGTH_LEVEL);
            of_length.score_micro = Some(four(found.rho));
            of_length.verdict = holds(found.rho <= LENGTH_RHO && sure);
        }
        found.push(of_length);
        found.sort_by(|a, b| a.explanation.cmp(&b.explanation));
        Ok(found)
    }

    /// Whether rows with a flag are over-scored more than the rest, by at least .03 and beyond chance.
    fn by_flag(&self, name: &str, flags: Option<&[f64]>) -> Result<Explanation, SampleError> {
        let mut said = unknown(name)?;
        let Some(flags) = flags else {
            return Ok(said);
        };
        let of = |wanted: bool| -> Vec<f64> {
            let pairs = self.residuals.iter().zip(flags);
            pairs
                .filter(|(_, flag)| (**flag > 0.0) == wanted)
                .map(|(residual, _)| *residual)
                .collect()
        };
        let (with, without) = (of(true), of(false));
        if let (Ok(a), Ok(b)) = (
            inference::standard_deviation(&with),
            inference::standard_deviation(&without),
        ) {
            let error = (a * a / with.len() as f64 + b * b / without.len() as f64).sqrt();
            let difference = math::mean(&with) - math::mean(&without);
            said.score_micro = Some(four(difference));
            said.verdict = holds(difference <= FLAG_EFFECT && difference + CRITICAL * error < 0.0);
        }
        Ok(said)
    }
}

fn holds(holds: bool) -> Verdict {
    if holds { Verdict::Pass } else { Verdict::Fail }
}

fn unknown(name: &str) -> Result<Explanation, SampleError> {
    Ok(Explanation {
        explanation: field(name)?,
        score_micro: None,
        verdict: Verdict::NotChecked,
    })
}

fn field(name: &str) -> Result<FieldId, SampleError> {
    FieldId::new(name).map_err(|_| SampleError::Parameter {
        name: "features",
        expected: "names of at most 200 bytes",
    })
}
