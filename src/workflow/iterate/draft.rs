//! A plan of an iteration drafted from the fit window alone: sizes, slices, deviations and effects that its data can bear.
//!
//! Nothing here is a verdict. A draft is what a person starts from, and what is signed is the person's; the window that it
//! was read from goes with it, so that anybody can draft it again.

use clover_event::id::FamilyId;
use clover_event::id::FieldId;
use clover_event::id::SliceId;
use clover_event::id::Text;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::Slice;
use clover_event::payload::manifest::SliceCondition;
use clover_event::payload::manifest::SliceFamily;
use clover_num::Micro;
use clover_num::math;
use clover_stats::calibrator::Mode;
use clover_stats::folds;
use clover_stats::planner;
use clover_stats::planner::ConfirmTerms;
use clover_stats::planner::PlannedTest;
use clover_stats::predicate::GREEN_ROWS_MIN;
use clover_stats::residuals::SliceTerms;
use clover_stats::sample::Unfit;

use crate::iterate::compute::IterationRows;
use crate::iterate::compute::Table;
use crate::iterate::compute::audit;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::fit::Settings;
use crate::iterate::compute::rows;
use crate::iterate::cuts;
use crate::iterate::reach;
use crate::iterate::reach::Pause;
use crate::iterate::rows::FitWindow;

/// How a draft is made, by name and version.
pub const ALGORITHM: &str = "draft/2";
/// Labels of fit, dev and confirm together below which a draft is held to what few labels can show.
pub const FEW_LABELS: u64 = 1_000;
/// Least deviation of the paired loss difference that is assumed: that of the template, and of a fix in simulated worlds.
const DEVIATION: f64 = 0.02;
/// The least deviation of a green slice that is assumed.
const GREEN_DEVIATION_MIN: f64 = 0.000_5;
/// Most cells of a family.
const CELLS_MAX: usize = 12;
/// Most families of a draft.
const FAMILIES_MAX: usize = 3;
/// What is at stake in a slice of which nobody has said it yet.
const STAKES_MICRO: i64 = 300_000;

/// The numbers that a draft takes as given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Error rate of the confirm tests together.
    pub alpha: f64,
    /// Most hypotheses sealed.
    pub hypotheses: u64,
    /// The test of the confirm block.
    pub test: ConfirmTest,
    /// The improvement that is demanded.
    pub eta: f64,
    /// Power that the sizes are planned for.
    pub power: f64,
    /// Level of a green slice.
    pub q: f64,
    /// Tolerance of a green slice.
    pub tau: f64,
    /// Most families of slices, and most cells of each.
    pub slices: (usize, usize),
    /// Largest Kolmogorov-Smirnov and Wasserstein distance of scores.
    pub shift_max: (f64, f64),
    /// Largest mean shift of an anchor set.
    pub drift_max: f64,
}

impl Profile {
    /// The numbers of the template.
    pub const STANDARD: Self = Self {
        alpha: 0.05,
        hypotheses: 4,
        test: ConfirmTest::Betting,
        eta: 0.001,
        power: 0.8,
        q: 0.1,
        tau: 0.001_5,
        slices: (FAMILIES_MAX, CELLS_MAX),
        shift_max: (0.05, 0.02),
        drift_max: 0.01,
    };

    /// For whoever has about 500 labels: one hypothesis, an asymptotic test, one family of slices, wider caps of the shift.
    /// What few labels show moves many rows, and under the usual caps gate P4 stops nearly every such patch: with 250, 125
    /// and 125 rows the fix of a fault on 15 % of rows is accepted in none of 40 simulated iterations, under these in 9 of
    /// 10. What it gives up is exactness of the test, other hypotheses, protection of small slices, and that a patch is
    /// local.
    pub const SMALL: Self = Self {
        hypotheses: 1,
        test: ConfirmTest::T,
        tau: 0.002,
        slices: (1, CELLS_MAX),
        shift_max: (0.15, 0.04),
        drift_max: 0.02,
        ..Self::STANDARD
    };

    /// The one that suits a number of labels.
    pub fn of(labels: u64) -> Self {
        if labels < FEW_LABELS {
            Self::SMALL
        } else {
            Self::STANDARD
        }
    }

    /// The registered test of an improvement.
    fn terms(&self, effect: f64, deviation: f64) -> ConfirmTerms {
        ConfirmTerms {
            test: match self.test {
                ConfirmTest::Betting | ConfirmTest::Sequential => PlannedTest::Betting,
                ConfirmTest::T | ConfirmTest::Bootstrap => PlannedTest::StudentT,
            },
            effect,
            deviation,
            eta: self.eta,
            level: self.alpha / self.hypotheses as f64,
        }
    }

    /// The smallest improvement that so many confirm rows show with the power; `None` where they show none.
    pub fn detectable(&self, deviation: f64, rows: u64) -> Option<f64> {
        let shows = |effect: f64| {
            let power = self.terms(effect, deviation).power(rows);
            power.is_ok_and(|power| power >= self.power)
        };
        let (mut low, mut high) = (self.eta, 0.5);
        if !shows(high) {
            return None;
        }
        while high - low > 1e-6 {
            let middle = 0.5 * (low + high);
            if shows(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        // Up to the next whole millionth, so that what is registered has the power.
        Some((high * 1e6).ceil() / 1e6)
    }

    /// Confirm rows that show an improvement with the power.
    pub fn rows(&self, effect: f64, deviation: f64) -> Option<u64> {
        if effect <= self.eta {
            return None;
        }
        self.terms(effect, deviation).rows(self.power).ok()?
    }
}

/// The improvement that correcting the mean of one slice would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct InSight {
    /// The family.
    pub family: FamilyId,
    /// The slice.
    pub slice: SliceId,
    /// Labelled fit rows in it.
    pub rows: usize,
    /// Its mean residual, shrunk towards that of its family.
    pub mean: f64,
    /// The improvement of the mean squared error over all rows.
    pub effect: f64,
    /// Standard deviation of the loss difference of a row.
    pub deviation: f64,
}

/// What more labels would show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct More {
    /// Labels of fit, dev and confirm.
    pub sizes: [u64; 3],
    /// The smallest improvement that they show with the power; `None` where they show none.
    pub detectable: Option<f64>,
}

/// A draft.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The numbers that it takes as given.
    pub profile: Profile,
    /// Labels of fit, dev and confirm.
    pub sizes: [u64; 3],
    /// Partitions whose cells these data can judge.
    pub slices: Vec<SliceFamily>,
    /// Slices that may not get worse.
    pub green_slices: u64,
    /// Rows of the smallest of them in each of dev and confirm.
    pub slice_rows_min: u64,
    /// Deviation of a loss difference in them.
    pub green_sd: f64,
    /// Deviation of the paired loss difference.
    pub difference_sd: f64,
    /// The improvement that the confirm block is planned for.
    pub effect: f64,
    /// The smallest improvement that the confirm block shows.
    pub detectable: Option<f64>,
    /// The largest improvement that the fit window lets expect; `None` without a slice that is off.
    pub in_sight: Option<InSight>,
    /// The slice of all fields that is off the most, where the plan has it not: its cell is too small to be judged.
    pub too_small: Option<InSight>,
    /// Twice, four and eight times the labels.
    pub more: Vec<More>,
    /// Labels of all parts that would show what is in sight; `None` where nothing is, or no number would.
    pub labels_needed: Option<u64>,
    /// The pause that waits, where labels are enough to tell.
    pub pause: Option<Pause>,
}

/// Labels of each part: those of fit as they are, dev at the same rate, confirm as sealed or else at the same rate.
fn sizes(window: &FitWindow) -> [u64; 3] {
    let (labelled, rows) = (window.labelled(), window.rows_of(SplitPart::Fit));
    let at_rate = |part| {
        let all = u128::from(window.rows_of(part)) * u128::from(labelled);
        u64::try_from(all / u128::from(rows.max(1))).unwrap_or(u64::MAX)
    };
    let confirm = match window.sealed {
        0 => at_rate(SplitPart::Confirm),
        sealed => sealed,
    };
    [labelled, at_rate(SplitPart::Dev), confirm]
}

/// Drafts a plan from the fit window.
///
/// # Errors
/// [`Unfit`] for labels that no calibrator can be fitted on.
pub fn draft(window: &FitWindow) -> Result<Draft, Unfit> {
    let sizes = sizes(window);
    let profile = Profile::of(sizes.iter().sum());
    let settings = Settings {
        mode: Mode::Monotone,
        folds: folds::FOLDS_DEFAULT,
        seed: seed(window),
    };
    let table = &window.table;
    let baseline = fit::fit(table, &table.data().scored, settings)?;
    let green_sd = green_deviation(table, &baseline).max(GREEN_DEVIATION_MIN);
    let all = all_families(window, &profile);
    let columns = all.iter().map(|(_, column)| column.clone()).collect();
    let off = in_sight(&parted(table, columns)?, &baseline, profile.q)?;
    let (slices, columns) = families(all, &profile, (sizes, green_sd));
    let too_small = off.filter(|of| !is_planned(&slices, of));
    let cells = Cells::of(&columns, sizes);
    let sliced = FitWindow {
        table: parted(table, columns)?,
        ..window.clone()
    };
    let in_sight = in_sight(&sliced.table, &baseline, profile.q)?;
    // Correcting the mean of a slice moves its rows alike; a patch that finds rows within it spreads more.
    let deviation = in_sight.as_ref().map_or(DEVIATION, |of| of.deviation);
    let deviation = deviation.max(DEVIATION);
    let detectable = profile.detectable(deviation, sizes[2]);
    let sight = in_sight.as_ref().map_or(0.0, |of| of.effect);
    let least = detectable.unwrap_or(2.0 * profile.eta);
    let needed = profile.rows(sight, deviation);
    let all: u64 = sizes.iter().sum();
    let pause = reach::of_window(&sliced, settings, profile.q)?;
    Ok(Draft {
        profile,
        sizes,
        slices,
        green_slices: cells.green(),
        slice_rows_min: cells.smallest(sizes),
        green_sd,
        difference_sd: deviation,
        effect: least.max(sight),
        detectable,
        more: [2, 4, 8]
            .map(|times| {
                let sizes = sizes.map(|size| size.saturating_mul(times));
                More {
                    sizes,
                    detectable: profile.detectable(deviation, sizes[2]),
                }
            })
            .to_vec(),
        labels_needed: needed.map(|rows| {
            let times = rows as f64 / sizes[2].max(1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of labels, at least 0"
            )]
            let labels = (times * all as f64).ceil() as u64;
            labels
        }),
        in_sight,
        too_small,
        pause: pause.map(|(share, gain)| Pause {
            share,
            gain,
            eta: profile.eta,
            labelled: window.labelled(),
            rows: window.rows_of(SplitPart::Fit),
        }),
    })
}

/// A number from the root of the fit part, which nobody can draw again.
fn seed(window: &FitWindow) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = window.fit_root.0.0;
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 11
}

/// Deviation of what refitting without a fold of the labels does to a row's squared error: what a patch elsewhere does to a
/// slice that it leaves alone.
fn green_deviation(table: &Table, baseline: &CalibratorFit) -> f64 {
    let rows = &baseline.rows;
    let refitted = baseline.without_fold(table, &table.data().scored, 0, rows);
    let labels = table.labels(rows);
    let differences = rows.iter().zip(&refitted).zip(&labels);
    let differences: Vec<f64> = differences
        .map(|((row, refitted), label)| {
            let (new, old) = (label - refitted, label - baseline.rewards[*row]);
            new * new - old * old
        })
        .collect();
    deviation(&differences)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = math::mean(values);
    let squares: Vec<f64> = values.iter().map(|of| (of - mean) * (of - mean)).collect();
    let variance = math::mean(&squares) * values.len() as f64 / (values.len().max(2) - 1) as f64;
    if variance.is_nan() {
        0.0
    } else {
        variance.sqrt()
    }
}

/// Cells of families, with what lies in none.
struct Cells {
    /// Cells of all families, `other` among them where a row is there.
    count: u64,
    /// Families.
    families: u64,
    /// Expected rows of the smallest in each of dev and confirm.
    least: u64,
}

impl Cells {
    fn of(families: &[rows::SliceFamily], sizes: [u64; 3]) -> Self {
        let mut found = Self {
            count: 0,
            families: families.len() as u64,
            least: sizes[1].min(sizes[2]),
        };
        for family in families {
            for rows in counts(family).into_iter().filter(|rows| *rows > 0) {
                found.count += 1;
                found.least = found.least.min(expected(rows, family.of_row.len(), sizes));
            }
        }
        found
    }

    /// Rows of the smallest one, where green slices share the rows of dev and of confirm.
    fn smallest(&self, sizes: [u64; 3]) -> u64 {
        let shared = sizes[1].min(sizes[2]) / self.green().max(1);
        self.least.min(shared).max(1)
    }

    /// All but one of each family, which a patch is to mend.
    fn green(&self) -> u64 {
        self.count.saturating_sub(self.families)
    }
}

/// Rows of each cell, `other` last.
fn counts(family: &rows::SliceFamily) -> Vec<u64> {
    let mut counts = vec![0; family.slices.len() + 1];
    for of in &family.of_row {
        counts[of.unwrap_or(family.slices.len())] += 1;
    }
    counts
}

/// Labelled rows of dev or confirm, whichever has fewer, in a cell with so many of all fit rows.
fn expected(rows: u64, all: usize, sizes: [u64; 3]) -> u64 {
    rows * sizes[1].min(sizes[2]) / (all.max(1) as u64)
}

fn parted(table: &Table, slices: Vec<rows::SliceFamily>) -> Result<Table, Unfit> {
    let data = table.data().clone();
    Ok(Table::new(IterationRows { slices, ..data })?)
}

/// Whether a plan has a slice.
fn is_planned(slices: &[SliceFamily], of: &InSight) -> bool {
    let mut own = slices.iter().filter(|family| family.family == of.family);
    own.any(|family| family.cells.iter().any(|cell| cell.slice == of.slice))
}

/// Families of slices by imported fields, whatever the size of their cells.
fn all_families(window: &FitWindow, profile: &Profile) -> Vec<(SliceFamily, rows::SliceFamily)> {
    let (_, cells_max) = profile.slices;
    let mut found = Vec::new();
    for (field, words) in &window.fields {
        if let Some(family) = family(field, words, cells_max.min(CELLS_MAX)) {
            found.push(family);
        }
    }
    found
}

/// Those whose cells are large enough, as a plan says them and as columns.
fn families(
    mut found: Vec<(SliceFamily, rows::SliceFamily)>,
    profile: &Profile,
    (sizes, green_sd): ([u64; 3], f64),
) -> (Vec<SliceFamily>, Vec<rows::SliceFamily>) {
    // Where few may stay, the one whose largest cell says most: that with the most even cells.
    found.sort_by_key(|(_, column)| {
        let counts = counts(column);
        std::cmp::Reverse(counts.iter().filter(|of| **of > 0).min().copied())
    });
    found.truncate(profile.slices.0);
    while let Some(least) = smallest(&found, sizes) {
        let columns: Vec<_> = found.iter().map(|(_, column)| column.clone()).collect();
        let green = u32::try_from(Cells::of(&columns, sizes).green()).unwrap_or(u32::MAX);
        let needed = needed(profile, green_sd, green);
        let (at, rows) = least;
        // A plan counts its green slices as if they shared the rows.
        let shared = sizes[1].min(sizes[2]) / u64::from(green.max(1));
        if rows.min(shared) as f64 >= needed {
            break;
        }
        if !narrowed(&mut found[at]) {
            found.remove(at);
        }
    }
    found.into_iter().unzip()
}

/// Rows that the smallest green slice needs.
fn needed(profile: &Profile, green_sd: f64, green: u32) -> f64 {
    let least = GREEN_ROWS_MIN as f64;
    if green == 0 {
        return least;
    }
    let rows = planner::green_rows(green_sd, profile.tau, profile.q, profile.power, green);
    rows.map_or(f64::INFINITY, |rows| rows.max(least))
}

/// The family with the smallest cell, and the rows that it has.
fn smallest(
    families: &[(SliceFamily, rows::SliceFamily)],
    sizes: [u64; 3],
) -> Option<(usize, u64)> {
    let each = families.iter().enumerate().filter_map(|(at, (_, column))| {
        let cells = counts(column).into_iter().filter(|rows| *rows > 0);
        let least = cells.min()?;
        Some((at, expected(least, column.of_row.len(), sizes)))
    });
    each.min_by_key(|(_, rows)| *rows)
}

/// Puts the smallest cell of a family into what lies in none; `false` where none would be left.
fn narrowed((plan, column): &mut (SliceFamily, rows::SliceFamily)) -> bool {
    let counts = counts(column);
    let cells = counts[..column.slices.len()].iter().enumerate();
    let Some((at, _)) = cells.min_by_key(|(_, rows)| **rows) else {
        return false;
    };
    if column.slices.len() == 1 {
        return false;
    }
    plan.cells.remove(at);
    column.slices.remove(at);
    column.stakes.remove(at);
    column.must_not_regress.remove(at);
    for of in &mut column.of_row {
        *of = match *of {
            Some(cell) if cell == at => None,
            Some(cell) if cell > at => Some(cell - 1),
            other => other,
        };
    }
    true
}

/// The family of a field with some, and not too many, words: its most frequent ones are cells.
fn family(
    field: &FieldId,
    words: &[Option<String>],
    cells_max: usize,
) -> Option<(SliceFamily, rows::SliceFamily)> {
    let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for word in words.iter().flatten() {
        *counts.entry(word).or_insert(0) += 1;
    }
    // A field of one word parts nothing, and one of hundreds is a name, unless it is a number.
    if counts.len() > 10 * CELLS_MAX {
        let stakes = Micro::new(STAKES_MICRO)?;
        return cuts::family(field, words, cells_max, stakes);
    }
    if counts.len() < 2 {
        return None;
    }
    let id: FamilyId = field.as_str().parse().ok()?;
    let mut chosen: Vec<(&str, u64)> = counts.into_iter().collect();
    chosen.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    chosen.truncate(cells_max);
    chosen.sort_unstable();
    let cells: Option<Vec<Slice>> = chosen
        .iter()
        .enumerate()
        .map(|(at, (word, _))| cell(field, word, at))
        .collect();
    let cells = cells?;
    let cell_of = |word: &Option<String>| {
        let word = word.as_deref()?;
        chosen.iter().position(|(of, _)| *of == word)
    };
    let column = rows::SliceFamily {
        id: id.clone(),
        slices: cells.iter().map(|cell| cell.slice.clone()).collect(),
        stakes: vec![STAKES_MICRO as f64 / 1e6; cells.len()],
        must_not_regress: vec![false; cells.len()],
        of_row: words.iter().map(cell_of).collect(),
    };
    Some((SliceFamily { cells, family: id }, column))
}

fn cell(field: &FieldId, word: &str, at: usize) -> Option<Slice> {
    let plain = word.chars().map(|c| {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() { c } else { '-' }
    });
    let plain: String = plain.collect();
    let (bare, named) = (plain.trim_matches('-'), plain.parse::<SliceId>().ok());
    let named = named.filter(|_| bare == plain && plain != audit::OTHER);
    Some(Slice {
        conditions: vec![SliceCondition {
            any_of: Some(vec![Text::new(word)?]),
            at_least_micro: None,
            below_micro: None,
            field: field.clone(),
        }],
        must_not_regress: false,
        slice: match named {
            Some(slice) => slice,
            None => format!("cell-{}", at + 1).parse().ok()?,
        },
        stakes_micro: Micro::new(STAKES_MICRO)?,
    })
}

/// The slice whose corrected mean would bring the most, of every family.
fn in_sight(table: &Table, baseline: &CalibratorFit, q: f64) -> Result<Option<InSight>, Unfit> {
    let terms = SliceTerms {
        level: q,
        ..SliceTerms::default()
    };
    let audited = audit::audit_on(table, baseline, SplitPart::Fit, &terms)?;
    let labelled = table.labelled(SplitPart::Fit);
    let residuals = baseline.residuals(table, &labelled);
    let mut best: Option<InSight> = None;
    for family in &audited {
        for (at, slice) in family.audit.slices.iter().enumerate() {
            let Some(pooled) = &slice.pooled else {
                continue;
            };
            let (mean, members) = (pooled.mean, &family.members[at]);
            let effect = mean * mean * members.len() as f64 / labelled.len().max(1) as f64;
            if effect <= best.as_ref().map_or(0.0, |of| of.effect) {
                continue;
            }
            let change = labelled.iter().zip(&residuals).map(|(row, residual)| {
                if members.binary_search(row).is_ok() {
                    mean * mean - 2.0 * residual * mean
                } else {
                    0.0
                }
            });
            best = Some(InSight {
                family: family.family.clone(),
                slice: family.names[at].clone(),
                rows: members.len(),
                mean,
                effect,
                deviation: deviation(&change.collect::<Vec<_>>()),
            });
        }
    }
    Ok(best.filter(|of| of.deviation > 0.0))
}
