//! Residual cards: one per slice that is rejected or Risk, in two projections.
//!
//! The full card names rows; the optimizer's holds bins, fired rules, hints and rounded statistics, and nothing from
//! which a row, a text, a label or a score could be read. Source: CLOVER v1.1, section 3.

use std::collections::BTreeMap;

use clover_event::id::CardId;
use clover_event::id::FieldId;
use clover_event::id::IterationId;
use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::card::BinnedFeature;
use clover_event::payload::card::CardBasis;
use clover_event::payload::card::CardInterval;
use clover_event::payload::card::CardMean;
use clover_event::payload::card::CardPublished;
use clover_event::payload::card::Direction;
use clover_event::payload::card::Explanation;
use clover_event::payload::card::Hint;
use clover_event::payload::card::PublicCard;
use clover_event::payload::card::RedactedRow;
use clover_event::payload::card::SliceClass;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::math;
use clover_projection::decisions::CARD_LABEL;
use clover_projection::iterations::record::Attacks;
use clover_stats::inference;
use clover_stats::inference::Interval;
use clover_stats::quantile::Edges;
use clover_stats::rank;
use clover_stats::residuals::Class;
use clover_stats::residuals::Slice;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use serde::Serialize;

use crate::iterate::compute::audit::FamilyAudit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::Table;
use crate::iterate::compute::rows::pick;

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

/// A row of a full card. What the row was given stands in a card with a basis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedRow {
    /// Its label Y.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Finite>,
    /// Residual.
    pub residual: Finite,
    /// Its calibrated reward R.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<Finite>,
    /// Name of the row.
    pub row: String,
    /// Its score S under the rubric in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Finite>,
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

/// Paths of the rules that fired on a row, ascending; `None` without an evidence record.
pub type FiringPaths<'a> = &'a dyn Fn(usize) -> Option<Vec<Text>>;

/// What all cards of an iteration are computed on.
#[derive(Clone, Copy)]
pub struct Basis<'a> {
    /// Digest of the baseline's calibrator.
    pub calibrator: Digest,
    /// Rules of the rubric in force that fired on a row.
    pub fired: FiringPaths<'a>,
    /// The iteration.
    pub iteration: &'a IterationId,
    /// Hash of the rubric in force.
    pub rubric_hash: Digest,
    /// Slice families as registered.
    pub slices: &'a [manifest::SliceFamily],
}

impl Basis<'_> {
    /// That of one slice; `other` has no conditions.
    fn of(&self, family: &FamilyAudit, place: usize) -> CardBasis {
        let mut known = self.slices.iter();
        let known = known.find(|of| of.family == family.family);
        let cell = known.and_then(|of| of.cells.get(place));
        CardBasis {
            calibrator: self.calibrator,
            iteration: self.iteration.clone(),
            rubric_hash: self.rubric_hash,
            selector: cell.map_or_else(Vec::new, |cell| cell.conditions.clone()),
            split: SplitPart::Dev,
        }
    }
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

    /// The card as it was published before cards said what they were computed on.
    #[must_use]
    pub fn without_basis(mut self) -> Self {
        self.public.basis = None;
        self.public.interval_raw = None;
        self.public.p_raw_micro = None;
        self.public.shrink_micro = None;
        let rows = [&mut self.public.counterexamples, &mut self.public.exemplars];
        for row in rows.into_iter().flatten() {
            row.fired = None;
        }
        for row in [&mut self.counterexamples, &mut self.exemplars]
            .into_iter()
            .flatten()
        {
            (row.label, row.reward, row.score) = (None, None, None);
        }
        self
    }

    /// What is published of it; `build` of a card with a basis.
    pub fn published(&self, build: Text, iteration: IterationId) -> CardPublished {
        CardPublished {
            build: self.public.basis.as_ref().map(|_| build),
            card: self.public.clone(),
            full_digest: canon::digest(FULL_LABEL, self),
            iteration,
            public_digest: canon::digest(CARD_LABEL, &self.public),
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
    baseline: &CalibratorFit,
    audited: &[FamilyAudit],
    basis: Basis<'_>,
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
                    baseline,
                    rows,
                    residuals: &residuals,
                    over_scored: is_over_scored(slice, &residuals),
                    fired: basis.fired,
                };
                let of = basis.of(family, place);
                cards.push(card(&within, of, family, place)?);
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
    baseline: &'a CalibratorFit,
    rows: &'a [usize],
    residuals: &'a [f64],
    over_scored: bool,
    fired: FiringPaths<'a>,
}

fn ends(of: Interval) -> CardInterval {
    CardInterval {
        high_micro: four(of.high),
        low_micro: four(of.low),
    }
}

fn card(
    within: &Within<'_>,
    basis: CardBasis,
    family: &FamilyAudit,
    place: usize,
) -> Result<FullCard, Unfit> {
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
    let (pooled, raw) = (slice.pooled.as_ref(), slice.raw.as_ref());
    let public = PublicCard {
        basis: Some(basis),
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
        interval_raw: raw.and_then(|raw| raw.interval).map(ends),
        mean_raw_micro: raw.map(|raw| four(raw.mean)),
        mean_shrunk: pooled.map(|of| CardMean {
            high_micro: four(of.interval.high),
            low_micro: four(of.interval.low),
            mean_micro: four(of.mean),
        }),
        mse_micro: four(family.mse[place].unwrap_or(0.0)),
        p_adjusted_micro: raw.map(|raw| four(raw.p_adjusted)),
        p_raw_micro: raw.and_then(|raw| raw.p).map(four),
        rows: count(slice.rows),
        shrink_micro: pooled.map(|of| four(of.weight)),
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
        let data = self.table.data();
        let name = |&at: &usize| {
            let row = self.rows[at];
            NamedRow {
                label: data.labels[row].and_then(Finite::new),
                residual: Finite::new(self.residuals[at]).unwrap_or_default(),
                reward: Finite::new(self.baseline.rewards[row]),
                row: data.rows[row].clone(),
                score: Finite::new(data.scored.scores[row]),
            }
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

    /// Rows by the quarter of all logs that each feature falls into, and the rules that fired on them.
    fn redacted(&self, places: &[usize]) -> Result<Vec<RedactedRow>, SampleError> {
        let bare = |&at: &usize| RedactedRow {
            features: Vec::new(),
            fired: (self.fired)(self.rows[at]),
        };
        let mut rows: Vec<RedactedRow> = places.iter().map(bare).collect();
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn digest(byte: u8) -> Digest {
        Digest([byte; 32])
    }

    /// A card of one row each way, with everything that a card can say.
    fn full() -> FullCard {
        let small = Micro::new(100).unwrap();
        let ends = CardInterval {
            high_micro: small,
            low_micro: small,
        };
        let row = RedactedRow {
            features: Vec::new(),
            fired: Some(vec![Text::new("guards.tool_trace_consistency").unwrap()]),
        };
        let named = NamedRow {
            label: Finite::new(0.25),
            residual: Finite::new(-0.5).unwrap(),
            reward: Finite::new(0.75),
            row: "base/p1/0".to_owned(),
            score: Finite::new(0.875),
        };
        let public = PublicCard {
            basis: Some(CardBasis {
                calibrator: digest(1),
                iteration: "it-1".parse().unwrap(),
                rubric_hash: digest(2),
                selector: Vec::new(),
                split: SplitPart::Dev,
            }),
            candidate_paths: Vec::new(),
            card: "cell/long".parse().unwrap(),
            class: SliceClass::Risk,
            clusters: count(1),
            counterexamples: vec![row.clone()],
            direction: Direction::OverScored,
            exemplars: vec![row],
            explanations: Vec::new(),
            exposure_micro: small,
            family: "cell".parse().unwrap(),
            hints: Vec::new(),
            interval_raw: Some(ends),
            mean_raw_micro: Some(small),
            mean_shrunk: None,
            mse_micro: small,
            p_adjusted_micro: Some(small),
            p_raw_micro: Some(small),
            rows: count(1),
            shrink_micro: Some(small),
            slice: "long".parse().unwrap(),
            stakes_micro: small,
            stress: Vec::new(),
        };
        FullCard {
            counterexamples: vec![named.clone()],
            exemplars: vec![named],
            public,
        }
    }

    fn published(card: &FullCard) -> CardPublished {
        card.published(Text::new("clover 0").unwrap(), "it-1".parse().unwrap())
    }

    #[test]
    fn what_a_row_was_given_is_in_the_full_card_alone() {
        let card = full();
        let text = serde_json::to_string(&published(&card)).unwrap();
        let told = ["p1", "0.", "label", "residual", "reward", "\"score\""];
        assert!(told.iter().all(|word| !text.contains(word)), "{text}");
        let whole = serde_json::to_string(&card).unwrap();
        let given =
            r#"{"label":0.25,"residual":-0.5,"reward":0.75,"row":"base/p1/0","score":0.875}"#;
        assert!(whole.contains(given), "{whole}");
        // Whoever changes a row of the full card changes its digest.
        let mut other = card.clone();
        other.exemplars[0].label = Finite::new(0.5);
        let (one, two) = (published(&card), published(&other));
        assert_eq!(one.public_digest, two.public_digest);
        assert_ne!(one.full_digest, two.full_digest);
    }

    /// Digests of cards that said nothing of their basis are over these members and no others.
    #[test]
    fn a_card_without_a_basis_has_the_members_that_it_had() {
        let brief = full().without_basis();
        let said = serde_json::to_value(published(&brief)).unwrap();
        let names =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        let event = ["card", "full_digest", "iteration", "public_digest"];
        assert_eq!(names(&said), event);
        let members = "candidate_paths card class clusters counterexamples direction exemplars explanations \
                       exposure_micro family hints mean_raw_micro mse_micro p_adjusted_micro rows slice stakes_micro stress";
        let members: Vec<&str> = members.split_whitespace().collect();
        assert_eq!(names(&said["card"]), members);
        assert_eq!(names(&said["card"]["exemplars"][0]), ["features"]);
        assert_eq!(names(&said["card"]["counterexamples"][0]), ["features"]);
        let whole = serde_json::to_value(&brief).unwrap();
        assert_eq!(names(&whole), ["counterexamples", "exemplars", "public"]);
        for of in ["counterexamples", "exemplars"] {
            assert_eq!(names(&whole[of][0]), ["residual", "row"]);
        }
        let digest = Digest::labelled(FULL_LABEL, &canon::to_bytes(&whole).unwrap());
        assert_eq!(said["full_digest"], digest.to_hex());
    }
}
