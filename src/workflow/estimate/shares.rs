//! Whether as many rows of a policy are labelled as the designs of its labels draw.

use std::collections::BTreeMap;

use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::payload::label::DesignPurpose;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_projection::designs::Designs;

use crate::estimate::rows::Gathered;
use crate::estimate::shape;

/// The share of rows that a design for calibration draws, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct LabelRate {
    /// The largest of its strata.
    pub most: f64,
    /// That of every row; `None` where it has strata.
    pub even: Option<f64>,
}

/// What each registered design for calibration draws.
#[derive(Clone, Debug)]
pub struct LabelRates {
    by_design: BTreeMap<DesignId, LabelRate>,
    /// Whether labels of rows that are kept for confirm are missing too, as they are by a rulebook below 25.
    misses_confirm: bool,
}

/// More or fewer labels of a policy than were drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenLabels {
    /// The policy.
    pub policy: String,
    /// The design that draws fewer than it labelled; `None` where labels are missing.
    pub design: Option<DesignId>,
    /// What was drawn: `rows` or `prompts`.
    pub what: &'static str,
    /// How many there are.
    pub all: usize,
    /// How many are labelled.
    pub labelled: usize,
    /// How many are drawn on average.
    pub drawn: f64,
}

impl LabelRates {
    /// As the folds have them.
    pub fn of(state: &State, experiment: &ExperimentId) -> Self {
        let designs = state.fold::<Designs>().by_experiment.get(experiment);
        let designs = designs.into_iter().flat_map(|of| &of.designs);
        let rates = designs.filter_map(|(id, design)| {
            let of = design.registered.as_ref()?;
            let strata = of.strata.values().copied();
            let largest = strata.chain([of.inclusion_micro]).max()?;
            let share = |micro: i64| (micro as f64 / 1e6).min(1.0);
            let rate = LabelRate {
                most: share(largest),
                even: of.strata.is_empty().then(|| share(of.inclusion_micro)),
            };
            (of.purpose == DesignPurpose::Calibrate).then(|| (id.clone(), rate))
        });
        Self {
            by_design: rates.collect(),
            misses_confirm: false,
        }
    }

    /// As the rulebook in force counts what is missing.
    #[must_use]
    pub fn as_asked(mut self, state: &State) -> Self {
        self.misses_confirm = !state.asks(Question::OpenableRows);
        self
    }

    /// More rows of a policy are labelled by a design than that one can have drawn: each stands for its own labels, and a
    /// design that nobody labelled by excuses none. Or fewer are labelled by all of them than the one that draws most drew.
    pub fn beyond_the_draw(&self, gathered: &Gathered, policy: usize) -> Vec<ChosenLabels> {
        let of = &gathered.dataset.policies[policy];
        let by_design = gathered.sources[policy].labelled.iter();
        let beyond = by_design.filter_map(|(design, labelled)| {
            let rate = self.by_design.get(design)?.most;
            let rows = of.prompts.iter().enumerate();
            let units =
                LabelUnits::of(rows.map(|(row, prompt)| (*prompt, labelled.contains(&row))));
            let is_above = shape::is_above_draw(units.all, units.labelled, rate);
            is_above.then(|| units.chosen(&of.name, Some(design.clone()), rate))
        });
        let mut found: Vec<ChosenLabels> = beyond.collect();
        found.extend(self.short_of_the_draw(gathered, policy));
        found
    }

    /// Fewer rows of a policy are labelled than the designs of its labels draw, of those whose labels could be opened.
    fn short_of_the_draw(&self, gathered: &Gathered, policy: usize) -> Option<ChosenLabels> {
        let of = &gathered.dataset.policies[policy];
        let openable =
            (0..of.len()).filter(|row| self.misses_confirm || !gathered.is_kept(policy, *row));
        let units = LabelUnits::of(openable.map(|row| (of.prompts[row], of.labels[row].is_some())));
        let least = self.least_rate(gathered, policy);
        let least = least.filter(|_| units.labelled > 0)?;
        let is_below = shape::is_below_draw(units.all, units.labelled, least);
        is_below.then(|| units.chosen(&of.name, None, least))
    }

    /// The share of a policy's rows that the designs of its labels draw at least; `None` where one of them has strata, or was
    /// not registered.
    fn least_rate(&self, gathered: &Gathered, policy: usize) -> Option<f64> {
        let mut designs = gathered.sources[policy].labelled.keys();
        designs.try_fold(0.0_f64, |least, design| {
            let even = self.by_design.get(design)?.even?;
            Some(least.max(even))
        })
    }
}

impl Gathered {
    /// Whether a row that counts is of a cluster that a split kept for confirm which was formed before anybody could read a label:
    /// its own can be sealed alone.
    pub fn is_kept(&self, policy: usize, row: usize) -> bool {
        let prompt = self.dataset.policies[policy].prompts[row];
        let item = &self.prompts.ids()[prompt as usize];
        let item: Option<ItemId> = item.parse().ok();
        let since = item.and_then(|item| self.confirm.get(&item));
        since.is_some_and(|since| self.formed.is_some_and(|formed| *since < formed))
    }
}

/// What a design drew, and how many of it are labelled: rows, or prompts where every draw of a labelled prompt has a label.
struct LabelUnits {
    what: &'static str,
    all: usize,
    labelled: usize,
}

impl LabelUnits {
    /// Of each row its prompt, and whether it has a label.
    fn of(rows: impl Iterator<Item = (u32, bool)>) -> Self {
        let mut by_prompt: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (prompt, is_labelled) in rows {
            let of = by_prompt.entry(prompt).or_default();
            of.0 += 1;
            of.1 += usize::from(is_labelled);
        }
        let all = by_prompt.values().map(|of| of.0).sum();
        let whole = by_prompt.values().all(|of| of.1 == 0 || of.1 == of.0);
        if whole && by_prompt.len() < all {
            return Self {
                what: "prompts",
                all: by_prompt.len(),
                labelled: by_prompt.values().filter(|of| of.1 > 0).count(),
            };
        }
        Self {
            what: "rows",
            all,
            labelled: by_prompt.values().map(|of| of.1).sum(),
        }
    }

    fn chosen(&self, policy: &str, design: Option<DesignId>, rate: f64) -> ChosenLabels {
        ChosenLabels {
            policy: policy.to_owned(),
            design,
            what: self.what,
            all: self.all,
            labelled: self.labelled,
            drawn: self.all as f64 * rate,
        }
    }
}
